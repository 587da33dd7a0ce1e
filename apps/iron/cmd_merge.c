/* SPDX-License-Identifier: MIT */
/* cmd_merge.c: `iron merge`: the parts of a stream become the manifest of the whole. */
#include "command.h"
#include "reading.h"
#include "sum_show.h"

#include <stdlib.h>
#include <sys/stat.h>

typedef struct merge_options {
    const char *output;
    bool wants_json;
} merge_options;

/* The result must not replace a part before all is known to be well. */
static iron_status check_output(const merge_options *o, const args *a, iron_error *err) {
    struct stat target, part;

    if (!o->output)
        return IRON_OK;
    if (stat(o->output, &target) == 0)
        for (size_t k = 0; k < a->value_count; k++)
            if (stat(a->values[k], &part) == 0 && part.st_dev == target.st_dev &&
                part.st_ino == target.st_ino)
                return usage(err, "-o %.100s is one of the parts; give another name", o->output);
    return reading_target("-o", o->output, err);
}

static iron_status read_parts(const args *a, iron_manifest **parts, iron_error *err) {
    iron_status status = IRON_OK;

    for (size_t k = 0; k < a->value_count && status == IRON_OK; k++) {
        const char *path = a->values[k];
        struct stat info;

        /* token files, say; what a pipe brings cannot be looked at beforehand */
        if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && !iron_manifest_is_one(path))
            return usage(
                err, "%.120s is no part of a stream; name files that iron sum --part wrote", path);
        status = iron_manifest_read(path, &parts[k], err);
    }
    return status;
}

/* The names of a manifest's files, with blanks between them; free() it. */
static char *name_files(const iron_manifest *m, iron_error *err) {
    iron_manifest_info info = {.struct_size = sizeof info};
    const char **names;
    char *all = NULL;

    if (iron_manifest_describe(m, &info, err) != IRON_OK)
        return NULL;
    names = calloc(info.file_count + 1, sizeof *names);
    if (!names) {
        usage(err, "out of memory for %zu names", info.file_count);
        return NULL;
    }
    for (size_t k = 0; k < info.file_count; k++) {
        iron_manifest_file f = {.struct_size = sizeof f};

        if (iron_manifest_file_at(m, k, &f, err) == IRON_OK)
            names[k] = f.path;
    }
    all = sum_join_names(names, info.file_count, err);
    free(names);
    return all;
}

static iron_status show(const merge_options *o, const iron_manifest *whole, iron_error *err) {
    char *name = name_files(whole, err);
    sum_result result = {.name = name, .manifest = whole, .is_stream = true};
    sum_printer to = {.is_json = o->wants_json};
    iron_status status = err->status;

    if (name)
        status = sum_show(&to, &result, err);
    sum_show_end(&to);
    free(name);
    return status;
}

static iron_status merge(const merge_options *o, const args *a, iron_manifest **parts,
                         iron_error *err) {
    iron_manifest *whole = NULL;
    iron_status status = read_parts(a, parts, err);

    if (status == IRON_OK)
        status = iron_manifest_merge(parts, a->value_count, &whole, err);
    if (status == IRON_OK && o->output)
        status = iron_manifest_write(whole, o->output, err);
    if (status == IRON_OK)
        status = show(o, whole, err);
    iron_manifest_destroy(whole);
    return status;
}

static iron_status run(int argc, char **argv, iron_error *err) {
    merge_options o = {0};
    const option options[] = {
        {"output", OPTION_TEXT, &o.output, NULL},
        {"json", OPTION_FLAG, &o.wants_json, NULL},
    };
    args a = {.options = options, .option_count = COUNT(options)};
    iron_manifest **parts;
    iron_status status;
    bool is_done;

    status = command_args(&command_merge, &a, argc, argv, &is_done, err);
    if (is_done)
        return status;
    if (a.value_count == 0)
        return usage(err, "no parts; name the files that iron sum --part wrote");
    if ((status = check_output(&o, &a, err)) != IRON_OK)
        return status;
    parts = calloc(a.value_count, sizeof(void *));
    if (!parts)
        return usage(err, "out of memory for %zu parts", a.value_count);
    status = merge(&o, &a, parts, err);
    for (size_t k = 0; k < a.value_count; k++)
        iron_manifest_destroy(parts[k]);
    free(parts);
    return status;
}

const command command_merge = {
    "merge", "joins the parts of a stream that sum --part wrote",
    "usage: iron merge PART... [-o MANIFEST] [--json]\n\n"
    "Takes all parts of one stream, in any order, and prints <seal>  <files>: the same seal, and\n"
    "the same manifest, as one iron sum --manifest over the whole stream gives. A part that is\n"
    "missing, there twice, overlapping or of another stream is named, and the exit status is 2.\n\n"
    "  -o MANIFEST         where the manifest goes; appears whole or not at all\n"
    "  --json              one JSON document, as iron sum prints it\n\n"
    "example: iron merge part-*.json -o corpus.manifest\n",
    run};
