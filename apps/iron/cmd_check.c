/* SPDX-License-Identifier: MIT */
/*
 * cmd_check.c: `iron check`: verifies files against a list of seals or a manifest. A list is
 * verified line by line while it is read; a manifest is verified as one stream by the library.
 */
#include "command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A name has at most 4095 bytes and may be escaped; a longer line is not a line of a list. */
#define LINE_ROOM 16384u

/* The unchanged files of a manifest with more files than this share one line. */
#define LINES_MAX 20u

typedef struct check_options {
    reading reading;
    bool is_quiet, is_silent, ignores_missing, warns, wants_json;
    iron_bag_cut cut; /* of the bags of a list */
} check_options;

static const option check_table[] = {
    OPTION("quiet", OPTION_FLAG, NULL, check_options, is_quiet,
           "hide OK lines; partly checked files are still shown"),
    OPTION("status", OPTION_FLAG, NULL, check_options, is_silent,
           "print nothing; the exit status is the result"),
    OPTION("ignore-missing", OPTION_FLAG, NULL, check_options, ignores_missing,
           "ignore files that do not exist"),
    OPTION("warn", OPTION_FLAG, NULL, check_options, warns,
           "name each line of a list that is not properly formatted", .letter = 'w'),
    OPTION("json", OPTION_FLAG, NULL, check_options, wants_json,
           "print one JSON document with file, status, reason, expected and found of each file"),
};

/* The results so far. */
typedef struct check_tally {
    const check_options *options;
    bool has_begun; /* the JSON array */
    iron_json_writer j;
    size_t counts[IRON_CHECK_PARTLY + 1], bad_lines; /* counts: by state */
    iron_status error; /* the last error that is not about a file's content */
} check_tally;

/* Counts a file and prints its line, unless it is unchanged and `hides_ok`. `status` is the error
 * if the file could not be read. */
static void add_file(check_tally *t, const iron_check_file *file, bool hides_ok,
                     iron_status status) {
    static const struct {
        const char *name, *word;
    } states[] = {{"ok", "OK"},
                  {"failed", "FAILED"},
                  {"missing", "FAILED open or read"},
                  {"error", "FAILED open or read"},
                  {"unchecked", "not checked"},
                  {"partly", "OK in part"}};
    const check_options *o = t->options;
    iron_error err = {IRON_E_IO, 0, ""};

    t->counts[file->state]++;
    /* a damaged file is a result; a missing option, memory or device is an error */
    if (status == IRON_E_ARG || status == IRON_E_NOMEM || status == IRON_E_UNSUPPORTED)
        t->error = status;
    if ((o->ignores_missing && file->state == IRON_CHECK_MISSING) || o->is_silent)
        return;
    if (o->wants_json) {
        if (!t->has_begun)
            t->j = json_begin('[');
        t->has_begun = true;
        JSON_PUT(&t->j,
                 OBJECT(NULL, TEXT("file", file->path), TEXT("status", states[file->state].name),
                        TEXT("reason", file->reason[0] ? file->reason : NULL),
                        TEXT("expected", file->expected[0] ? file->expected : NULL),
                        TEXT("found", file->found[0] ? file->found : NULL)));
        return;
    }
    if (hides_ok && file->state == IRON_CHECK_OK)
        return;
    if (file->state == IRON_CHECK_MISSING)
        snprintf(err.text, sizeof err.text, "%.120s: %.100s", file->path, file->reason);
    else if (file->state == IRON_CHECK_ERROR)
        snprintf(err.text, sizeof err.text, "%s", file->reason);
    if (err.text[0])
        command_complain(&err);
    seal_name_print(file->path);
    printf(": %s", states[file->state].word);
    if (file->reason[0] && !err.text[0])
        printf(" (%s)", file->reason);
    putchar('\n');
}

/* Fills err with one line about all failures: IRON_E_MISMATCH. */
static iron_status conclude(check_tally *t, const char *list, iron_error *err) {
    const check_options *o = t->options;
    const struct {
        size_t count;
        const char *one, *many;
    } rows[] = {{t->counts[IRON_CHECK_FAILED], "file differs", "files differ"},
                {o->ignores_missing ? 0 : t->counts[IRON_CHECK_MISSING], "file is missing",
                 "files are missing"},
                {t->counts[IRON_CHECK_ERROR], "file could not be read", "files could not be read"},
                {t->bad_lines, "line is improperly formatted", "lines are improperly formatted"}};

    *err = (iron_error){IRON_E_MISMATCH, 0, ""};
    for (size_t k = 0; k < COUNT(rows); k++) {
        size_t used = strlen(err->text);

        if (rows[k].count > 0)
            snprintf(err->text + used, sizeof err->text - used, "%s%zu %s", used ? ", " : "",
                     rows[k].count, rows[k].count == 1 ? rows[k].one : rows[k].many);
    }
    if (!err->text[0] && o->ignores_missing && t->counts[IRON_CHECK_MISSING] > 0 &&
        t->counts[IRON_CHECK_OK] + t->counts[IRON_CHECK_PARTLY] == 0)
        snprintf(err->text, sizeof err->text, "%.120s: no file was verified", list);
    if (t->error != IRON_OK)
        err->status = t->error;
    else if (!err->text[0])
        err->status = IRON_OK;
    if (o->is_silent)
        err->text[0] = '\0';
    return err->status;
}

/* Reads a line; bytes that do not fit are dropped. False at the end. */
static bool read_line(FILE *from, char line[LINE_ROOM], size_t *length, bool *is_whole) {
    int c = EOF;

    *length = 0;
    *is_whole = true;
    while ((c = getc(from)) != EOF && c != '\n') {
        if (*length + 2 < LINE_ROOM)
            line[(*length)++] = (char)c;
        else
            *is_whole = false;
    }
    return c != EOF || *length > 0 || !*is_whole;
}

/* Compares with the current seal of a file, or its bag, cut as the list says. */
static void check_line(const check_options *o, const seal_line *line, check_tally *tally) {
    iron_check_file file = {.struct_size = sizeof file, .path = line->name};
    bool wants_bag = strchr(line->seal, '-');
    iron_digest_result digest = {.struct_size = sizeof digest};
    iron_bag_result bag = {.struct_size = sizeof bag};
    iron_source *source = NULL;
    iron_manifest *m = NULL;
    progress p = progress_start(0);
    iron_scan_options scan = reading_scan_options(&o->reading, &p);
    iron_status status = IRON_OK;
    iron_error why = {IRON_OK, 0, ""};

    snprintf(file.expected, sizeof file.expected, "%s", line->seal);
    if (strcmp(line->name, "-") != 0 && !iron_path_is_remote(line->name) &&
        access(line->name, F_OK) != 0 && errno == ENOENT) {
        file.state = IRON_CHECK_MISSING;
        snprintf(file.reason, sizeof file.reason, "file not found");
        add_file(tally, &file, o->is_quiet, status);
        return;
    }
    if (wants_bag)
        scan.bag = o->cut;
    if ((status = reading_open(&o->reading, &line->name, 1, &source, &why)) == IRON_OK)
        status = reading_scan(source, &scan, wants_bag, &m, &bag, &why);
    progress_clear(&p);
    if (status == IRON_OK && m)
        status = iron_manifest_digest(m, &digest, &why);
    iron_manifest_destroy(m);
    iron_source_close(source);
    if (status == IRON_OK) {
        snprintf(file.found, sizeof file.found, "%s", wants_bag ? bag.text : digest.seal);
        if (strcmp(file.found, file.expected) != 0)
            file.state = IRON_CHECK_FAILED;
    } else {
        file.state = IRON_CHECK_ERROR;
        memcpy(file.reason, why.text, sizeof file.reason);
    }
    add_file(tally, &file, o->is_quiet, status);
}

/* Options on the command line take precedence over those of the list. */
static iron_status use_options(const check_options *o, const seal_line *comment, const char *list,
                               check_options *out, iron_error *err) {
    *out = *o;
    if (comment->dtype && !o->reading.dtype_name) {
        out->reading.dtype_name = comment->dtype;
        if (reading_check(&out->reading, NULL) != IRON_OK)
            return usage(err, "%.100s: its comment gives an unknown dtype '%.40s'; give --dtype",
                         list, comment->dtype);
    }
    if (comment->format && !o->reading.format)
        out->reading.format = comment->format;
    if (comment->column && !o->reading.column)
        out->reading.column = comment->column;
    if (!o->reading.is_recursive && !o->reading.include.count && !o->reading.exclude.count) {
        out->reading.is_recursive = comment->is_recursive;
        out->reading.include = comment->include;
        out->reading.exclude = comment->exclude;
    }
    out->cut.kind = comment->sample ? IRON_BAG_CUT_SAMPLE
                    : comment->eos  ? IRON_BAG_CUT_EOS
                                    : IRON_BAG_CUT_FORMAT;
    if (comment->sample || comment->eos)
        return parse_number(comment->sample ? "--sample" : "--eos",
                            comment->sample ? comment->sample : comment->eos, &out->cut.value, err);
    return IRON_OK;
}

/* Checks the lines of a section: those up to a comment with options, or to the end of the list.
 * *good counts the proper ones, and *before all lines so far. */
static iron_status check_section(const check_options *o, FILE *from, const char *list,
                                 size_t *before, check_tally *tally, size_t *good,
                                 iron_error *err) {
    char comment[LINE_ROOM], line[LINE_ROOM]; /* the options point into the comment */
    seal_line_kind kind = SEAL_LINE_EMPTY;
    seal_line read = {.name = NULL};
    off_t begin = ftello(from);
    check_options options;
    size_t length, count = 0;
    bool is_whole;

    for (; kind != SEAL_LINE_OPTIONS && read_line(from, comment, &length, &is_whole); count++)
        kind = is_whole ? seal_line_read(comment, length, &read) : SEAL_LINE_BAD;
    if (kind != SEAL_LINE_OPTIONS)
        read = (seal_line){.name = NULL};
    IRON_TRY(use_options(o, &read, list, &options, err));
    if (fseeko(from, begin, SEEK_SET) != 0)
        return usage(err, "cannot read %.120s: %s", list, strerror(errno));
    for (; count > 0 && read_line(from, line, &length, &is_whole); count--) {
        ++*before;
        kind = seal_line_read(line, length, &read);
        if (kind == SEAL_LINE_BAD || (kind == SEAL_LINE_GOOD && !is_whole)) {
            tally->bad_lines++;
            if (o->warns && !o->is_silent)
                fprintf(stderr, "iron: %.120s: %zu: improperly formatted line\n", list, *before);
        } else if (kind == SEAL_LINE_GOOD) {
            ++*good;
            check_line(&options, &read, tally);
        }
    }
    return IRON_OK;
}

/* The options of a list follow its lines: a pipe is copied to a temporary file first. */
static FILE *open_list(const char *path, iron_error *err) {
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *from = is_stdin ? stdin : fopen(path, "re"), *copy = NULL;
    char block[4096];
    size_t count;

    if (from && fseeko(from, 0, SEEK_CUR) == 0)
        return from;
    copy = from ? tmpfile() : NULL;
    while (copy && (count = fread(block, 1, sizeof block, from)) > 0)
        if (fwrite(block, 1, count, copy) != count)
            break;
    if (!copy || ferror(copy) || ferror(from) || fseeko(copy, 0, SEEK_SET) != 0) {
        usage(err, "cannot %s %.120s: %s", from ? "read" : "open", path, strerror(errno));
        if (copy)
            fclose(copy);
        copy = NULL;
    }
    if (from && from != stdin)
        fclose(from);
    return copy;
}

static iron_status check_list(const check_options *o, const char *path, check_tally *tally,
                              iron_error *err) {
    const char *list = strcmp(path, "-") == 0 ? "standard input" : path;
    FILE *from = open_list(path, err);
    iron_status status = IRON_OK;
    size_t good = 0, before = 0;
    int next;

    if (!from)
        return err->status;
    while (status == IRON_OK && (next = getc(from)) != EOF) {
        ungetc(next, from);
        status = check_section(o, from, list, &before, tally, &good, err);
    }
    if (status == IRON_OK && ferror(from))
        status = usage(err, "cannot read %.120s: %s", list, strerror(errno));
    else if (status == IRON_OK && good == 0)
        status = usage(err,
                       "%.120s has no line of the form <seal>  <file>, and is not a manifest "
                       "(which must be a regular file); give the output of iron sum, or a file "
                       "that it wrote with --manifest",
                       list);
    if (from != stdin)
        fclose(from);
    return status;
}

/* The files that differ are always named. The others are, too, unless there are many: then one line
 * counts them, which also ends with OK. */
static iron_status print_files(const check_options *o, const char *path, const iron_manifest *m,
                               const iron_check *check, check_tally *tally, iron_error *err) {
    iron_manifest_info info = {.struct_size = sizeof info};
    iron_status status = iron_manifest_describe(m, &info, err);
    bool are_many = info.file_count > LINES_MAX;
    size_t right = tally->counts[IRON_CHECK_OK];

    for (size_t k = 0; status == IRON_OK && k < iron_check_file_count(check); k++) {
        iron_check_file file = {.struct_size = sizeof file};

        status = iron_check_file_at(check, k, &file, err);
        if (status == IRON_OK)
            add_file(tally, &file, o->is_quiet || are_many, IRON_OK);
    }
    right = tally->counts[IRON_CHECK_OK] - right;
    if (status != IRON_OK || !are_many || right == 0 || o->is_quiet || o->is_silent ||
        o->wants_json)
        return status;
    if (right < info.file_count)
        printf("%zu of ", right);
    printf("%zu files of ", info.file_count);
    seal_name_print(path);
    puts(": OK");
    return status;
}

static iron_status check_manifest(const check_options *o, const char *path, check_tally *tally,
                                  iron_error *err) {
    progress p = progress_start(0);
    iron_check_options options = {.struct_size = sizeof options,
                                  .threads = o->reading.threads,
                                  .devices = o->reading.devices,
                                  .backend = o->reading.backend,
                                  .takes_missing = o->ignores_missing,
                                  .progress = progress_update,
                                  .context = &p};
    iron_manifest_file f = {.struct_size = sizeof f};
    const char *format = o->reading.format;
    iron_manifest *m = NULL;
    iron_check *check = NULL;
    iron_status status = iron_manifest_read(path, &m, err);

    if (format && strcmp(format, "auto") == 0)
        format = NULL;
    for (size_t k = 0; status == IRON_OK && iron_manifest_file_at(m, k, &f, NULL) == IRON_OK; k++) {
        if (o->reading.dtype != IRON_DTYPE_NONE && o->reading.dtype != f.dtype)
            status = usage(err, "--dtype %s contradicts the manifest, where %.100s is %s",
                           o->reading.dtype_name, f.path, iron_dtype_name(f.dtype));
        else if (format && strcmp(format, f.format) != 0)
            status = usage(err, "--format %.20s contradicts the manifest, where %.100s is %s",
                           format, f.path, f.format);
    }
    if (status == IRON_OK)
        status = iron_check_run(m, &options, &check, err);
    progress_clear(&p);
    if (status == IRON_OK)
        status = print_files(o, path, m, check, tally, err);
    iron_check_destroy(check);
    iron_manifest_destroy(m);
    return status;
}

/* Checks each list or manifest. One that cannot be used does not keep the others from being
 * checked; the exit status is then 2. */
static iron_status run(void *options, args *a, iron_error *err) {
    check_options *o = options;
    check_tally tally = {.options = o};
    iron_status result = IRON_OK;
    iron_error first = {IRON_OK, 0, ""};

    IRON_TRY(command_default_input(
        a, "no list; name lists or manifests, or give a list on standard input", err));
    IRON_TRY(reading_check(&o->reading, err));
    o->reading.is_for_raw = true;
    o->reading.is_quiet = true; /* the seals tell whether the files were read as they were sealed */

    for (size_t k = 0; k < a->value_count; k++) {
        const char *path = a->values[k];
        iron_error why = {IRON_OK, 0, ""};
        iron_status status =
            (iron_manifest_is_one(path) ? check_manifest : check_list)(o, path, &tally, &why);

        if (status != IRON_OK && result != IRON_OK)
            command_complain(&why);
        if (status != IRON_OK && result == IRON_OK) {
            result = status;
            first = why;
        }
    }
    if (tally.has_begun)
        json_end(&tally.j, ']');
    else if (o->wants_json && !o->is_silent && result == IRON_OK)
        puts("[]");
    if (conclude(&tally, a->value_count == 1 ? a->values[0] : "the lists", err) != IRON_OK &&
        result != IRON_OK && a->value_count > 1 && err->text[0])
        command_complain(err);
    if (result == IRON_OK)
        return err->status;
    *err = first;
    return result;
}

const command command_check = {
    .name = "check",
    .summary = "verifies files against a list of seals or a manifest",
    .synopsis = "[FILE...] [OPTIONS]",
    .description =
        "Each FILE is the output of iron sum or a manifest; without files, or for -, a list is "
        "read from standard input. Prints <file>: OK or FAILED for each file, like sha256sum -c; "
        "for a manifest also the positions that differ, and one line for all unchanged files if it "
        "has more than 20 files. File names are the ones given to iron sum: run check in the same "
        "directory, or keep a manifest next to its files.\n\n"
        "A list ends with a comment that contains the options it needs, and a manifest contains "
        "them too; --dtype and --format are needed only for a list without that comment.",
    .groups = {{NULL, check_table, COUNT(check_table), 0}, READING_GROUP(check_options, reading)},
    .exit_status = "0: all files are unchanged; 1: a file differs, is missing or cannot be read, "
                   "or a line is malformed; 2: error, nothing could be verified.",
    .environment = DRIVER_VARIABLES,
    .examples = "iron check corpus.manifest\n"
                "iron sum shards/ --dtype u16 | iron check",
    .options_bytes = sizeof(check_options),
    .run = run,
};
