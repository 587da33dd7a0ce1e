/* SPDX-License-Identifier: MIT */
/*
 * reading.c: the options of commands that read tokens, the checks of input and output paths that
 * all of them make before they start, and the warnings about files.
 */
#include "reading.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

const option reading_options[READING_COUNT] = {
    OPTION("dtype", OPTION_TEXT, "D", reading, dtype_name,
           "token type; required for headerless files, otherwise it must match the header",
           .choices = "u8 u16 u32 i32 i64"),
    OPTION("format", OPTION_TEXT, "F", reading, format,
           "file format; auto detects it for each file, raw takes every byte as token data",
           .choices = "auto raw llmc megatron npy ds litpkds arrow parquet mds",
           .standard = "auto"),
    OPTION("column", OPTION_TEXT, "NAME", reading, column,
           "of arrow, parquet and mds files, the column with the tokens",
           .standard = "input_ids, tokens, token_ids or ids, or the only column of integers"),
    OPTION("recursive", OPTION_FLAG, NULL, reading, is_recursive,
           "also read the files in subdirectories of a directory", .letter = 'r'),
    OPTION("include", OPTION_LIST, "GLOB", reading, include,
           "of a directory, read only files that match; may be repeated. GLOB is matched against "
           "the base name, or if it contains a slash against the path within the directory"),
    OPTION("exclude", OPTION_LIST, "GLOB", reading, exclude,
           "of a directory, skip files and subdirectories that match; may be repeated"),
    OPTION("strict", OPTION_FLAG, NULL, reading, is_strict,
           "exit with status 1 if there was a warning"),
    OPTION("threads", OPTION_NUMBER, "T", reading, threads, "number of CPU threads", .min = 1,
           .max = 1024, .standard = "all available CPUs"),
    OPTION("backend", OPTION_TEXT, "B", reading, backend,
           "where to compute; auto takes the first CUDA GPU, otherwise the first OpenCL GPU, "
           "otherwise the CPU",
           .choices = "auto cpu cuda opencl", .standard = "auto"),
    OPTION("device", OPTION_TEXT, "K", reading, devices,
           "device number within the backend, counted from 0; all, or several separated by commas, "
           "share the work",
           .standard = "0"),
};

iron_status reading_check(reading *r, iron_error *err) {
    return r->dtype_name ? iron_dtype_parse(r->dtype_name, &r->dtype, err) : IRON_OK;
}

/* The warnings of this run. A pipe's warning comes from the thread that reads it. */
static struct {
    pthread_mutex_t mutex;
    bool is_strict;
    size_t contradictions, unchecked, skipped;
    char contradiction[512]; /* the first one */
    char missing[512];       /* the first file that was not checked, and why */
    char names[512];         /* of the first skipped files */
} warnings = {.mutex = PTHREAD_MUTEX_INITIALIZER};

#define NAMES_SHOWN 3u

static void collect_warning(void *context, const iron_warning *w) {
    size_t used;

    (void)context;
    pthread_mutex_lock(&warnings.mutex);
    used = strlen(warnings.names);
    if (w->kind == IRON_WARNING_DTYPE && warnings.contradictions++ == 0)
        snprintf(warnings.contradiction, sizeof warnings.contradiction, "%.240s: %s", w->file,
                 w->text);
    if (w->kind == IRON_WARNING_UNCHECKED && warnings.unchecked++ == 0)
        snprintf(warnings.missing, sizeof warnings.missing, "%.240s: %s", w->file, w->text);
    if (w->kind == IRON_WARNING_SKIPPED && warnings.skipped++ < NAMES_SHOWN)
        snprintf(warnings.names + used, sizeof warnings.names - used, "%s%.100s (%s)",
                 used ? ", " : "", w->file, w->text);
    pthread_mutex_unlock(&warnings.mutex);
}

/* Reports the first warning of a kind, and how many more there were. */
static void report_first(const char *name, const char *first, size_t count) {
    if (count == 1)
        report_warning(name, "%s", first);
    else if (count > 1)
        report_warning(name, "%s (%zu other file%s, too)", first, count - 1, count > 2 ? "s" : "");
}

iron_status reading_finish(const char *name, iron_status status) {
    size_t skipped = warnings.skipped;
    char more[32] = "";

    if (skipped > NAMES_SHOWN)
        snprintf(more, sizeof more, " and %zu more", skipped - NAMES_SHOWN);
    if (name && skipped > 0)
        report_warning(name, "skipped %zu file%s that %s not tokens: %s%s", skipped,
                       skipped > 1 ? "s" : "", skipped > 1 ? "are" : "is", warnings.names, more);
    if (name) {
        report_first(name, warnings.contradiction, warnings.contradictions);
        report_first(name, warnings.missing, warnings.unchecked);
    }
    if (warnings.is_strict && skipped + warnings.contradictions + warnings.unchecked > 0)
        status = IRON_E_MISMATCH;
    warnings.skipped = warnings.contradictions = warnings.unchecked = 0;
    warnings.names[0] = '\0';
    return status;
}

static iron_source_options source_options(const reading *r, const char *const *paths,
                                          size_t count) {
    warnings.is_strict = r->is_strict;
    return (iron_source_options){.struct_size = sizeof(iron_source_options),
                                 .dtype = r->dtype,
                                 .format = r->format,
                                 .column = r->column,
                                 .wants_seekable = r->wants_seekable,
                                 .paths = paths,
                                 .path_count = count,
                                 .dtype_is_for_raw = r->is_for_raw,
                                 .is_recursive = r->is_recursive,
                                 .include = r->include.texts,
                                 .include_count = r->include.count,
                                 .exclude = r->exclude.texts,
                                 .exclude_count = r->exclude.count,
                                 .warn = r->is_quiet ? NULL : collect_warning};
}

iron_status reading_open(const reading *r, const char *const *paths, size_t count,
                         iron_source **out, iron_error *err) {
    iron_source_options options = source_options(r, paths, count);

    return iron_source_open(&options, out, err);
}

seal_line reading_comment(const reading *r, bool is_stream) {
    seal_line comment = {.format = r->format, .column = r->column};

    if (r->dtype != IRON_DTYPE_NONE)
        comment.dtype = iron_dtype_name(r->dtype);
    if (is_stream) { /* which files it was made of */
        comment.is_recursive = r->is_recursive;
        comment.include = r->include;
        comment.exclude = r->exclude;
    }
    return comment;
}

iron_status reading_list(const reading *r, const char *path, iron_input_files **out,
                         iron_error *err) {
    iron_source_options options = source_options(r, &path, 1);

    return iron_input_files_list(&options, out, err);
}

iron_scan_options reading_scan_options(const reading *r, progress *p) {
    iron_scan_options o;

    iron_scan_options_init(&o);
    o.threads = r->threads;
    o.devices = r->devices;
    o.backend = r->backend;
    o.progress = progress_update;
    o.context = p;
    return o;
}

iron_status reading_scan(iron_source *source, const iron_scan_options *options, bool is_bag_only,
                         iron_manifest **manifest, iron_bag_result *bag, iron_error *err) {
    iron_bag_options b;

    if (!is_bag_only)
        return iron_scan(source, options, manifest, err);
    iron_bag_options_init(&b);
    b.threads = options->threads;
    b.cut = options->bag;
    b.progress = options->progress;
    b.context = options->context;
    return iron_bag_source(source, &b, bag, err);
}

const char *reading_find_file(const iron_source *source, uint64_t position, uint64_t *offset) {
    size_t files = iron_source_file_count(source);

    for (size_t k = 0; k < files; k++) {
        uint64_t tokens = iron_source_file_tokens(source, k);

        *offset = position;
        if (tokens == IRON_COUNT_UNKNOWN)
            return k + 1 == files ? iron_source_file(source, k) : NULL;
        if (position < tokens)
            return iron_source_file(source, k);
        position -= tokens;
    }
    return NULL;
}

iron_status reading_warn_of_vocab(const reading *r, const char *name, const iron_stat_place *first,
                                  uint64_t count, uint64_t tokens, uint64_t vocab,
                                  iron_error *err) {
    report_warning("iron",
                   "%.120s: %" PRIu64 " of %" PRIu64 " tokens %s not below --vocab %" PRIu64
                   "; the first is %" PRIu32 " at position %" PRIu64,
                   name, count, tokens, count == 1 ? "is" : "are", vocab, first->value,
                   first->position);
    err->text[0] = '\0';
    return r->is_strict ? IRON_E_MISMATCH : IRON_OK;
}

iron_status reading_cpu_backend(const reading *r, const char *what, iron_error *err) {
    if (r->backend && strcmp(r->backend, "auto") != 0 && strcmp(r->backend, "cpu") != 0)
        return usage(err, "--backend %.40s: %s on the CPU; leave the option out", r->backend, what);
    return IRON_OK;
}

iron_status reading_cpu_only(const reading *r, const char *what, iron_error *err) {
    IRON_TRY(reading_cpu_backend(r, what, err));
    if (r->devices && strcmp(r->devices, "0") != 0 && strcmp(r->devices, "all") != 0)
        return usage(err, "device %.40s does not exist: %s on the CPU, device 0", r->devices, what);
    return IRON_OK;
}

bool is_same_file(const char *a, const char *b) {
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

iron_status reading_guard(const iron_source *source, const char *option_name, const char *path,
                          iron_error *err) {
    for (size_t k = 0; path && k < iron_source_file_count(source); k++)
        if (is_same_file(iron_source_file(source, k), path))
            return usage(err, "%s %.100s is an input file; give another name", option_name, path);
    return IRON_OK;
}

iron_status reading_target(const char *option_name, const char *path, iron_error *err) {
    iron_output *probe = NULL;
    struct stat info;

    if (strcmp(path, "-") == 0)
        return usage(err, "%s cannot be standard output; name a file (./- for one called -)",
                     option_name);
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return usage(err, "%s %.100s exists and is not a regular file; give another name",
                     option_name, path);
    /* open it the way the command will, without writing anything */
    IRON_TRY(iron_output_open(path, &probe, err));
    iron_output_abandon(probe);
    return IRON_OK;
}

iron_status bag_check(const bag_options *o, iron_error *err) {
    if (!o->wants_bag && (o->has_sample || o->has_eos))
        return usage(err, "--sample and --eos say what a sample of a bag is; give --bag, too");
    if (o->has_sample && o->has_eos)
        return usage(err, "--sample and --eos both say what a sample is; give one of them");
    return IRON_OK;
}

iron_bag_cut bag_cut_of(const bag_options *o) {
    if (!o->wants_bag)
        return (iron_bag_cut){IRON_BAG_CUT_NONE, 0};
    if (o->has_sample)
        return (iron_bag_cut){IRON_BAG_CUT_SAMPLE, o->sample};
    if (o->has_eos)
        return (iron_bag_cut){IRON_BAG_CUT_EOS, o->eos};
    return (iron_bag_cut){IRON_BAG_CUT_FORMAT, 0};
}
