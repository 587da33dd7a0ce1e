/* SPDX-License-Identifier: MIT */
/* cmd_merge.c: `iron merge`: joins the parts of a stream to the manifest of the whole stream. */
#include "command.h"

#include <stdlib.h>
#include <sys/stat.h>

typedef struct merge_options {
    const char *output;
    bool wants_json;
} merge_options;

static const option merge_table[] = {
    OPTION("output", OPTION_TEXT, "MANIFEST", merge_options, output,
           "write the manifest of the whole stream; the file appears when it is complete",
           .letter = 'o'),
    OPTION("json", OPTION_FLAG, NULL, merge_options, wants_json,
           "print one JSON document, like iron sum"),
};

static iron_status run(void *options, args *a, iron_error *err) {
    merge_options *o = options;
    iron_manifest **parts = NULL, *whole = NULL;
    sum_result result = {.is_stream = true};
    iron_bag_result bag = {.struct_size = sizeof bag};
    iron_manifest_info info = {.struct_size = sizeof info};
    const char **names = NULL;
    sum_printer to = {0};
    char *name = NULL;
    iron_status status;

    if (a->value_count == 0)
        return usage(err, "no parts; name the files that iron sum --part wrote");
    for (size_t k = 0; o->output && k < a->value_count; k++)
        if (is_same_file(a->values[k], o->output))
            return usage(err, "-o %.100s is one of the parts; give another name", o->output);
    if (o->output)
        IRON_TRY(reading_target("-o", o->output, err));
    parts = calloc(a->value_count, sizeof(void *));
    if (!parts)
        return usage(err, "out of memory for %zu parts", a->value_count);
    for (size_t k = 0; k < a->value_count; k++) {
        const char *path = a->values[k];
        struct stat found;

        /* a token file, for example; a pipe cannot be checked in advance */
        if (stat(path, &found) == 0 && S_ISREG(found.st_mode) && !iron_manifest_is_one(path))
            status = usage(
                err, "%.120s is not a part of a stream; name files that iron sum --part wrote",
                path);
        else
            status = iron_manifest_read(path, &parts[k], err);
        if (status != IRON_OK)
            goto done;
    }
    if ((status = iron_manifest_merge(parts, a->value_count, &whole, err)) != IRON_OK ||
        (o->output && (status = iron_manifest_write(whole, o->output, err)) != IRON_OK))
        goto done;
    if ((status = iron_manifest_describe(whole, &info, err)) != IRON_OK)
        goto done;
    names = calloc(info.file_count + 1, sizeof *names);
    for (size_t k = 0; names && k < info.file_count; k++) {
        iron_manifest_file f = {.struct_size = sizeof f};

        if ((status = iron_manifest_file_at(whole, k, &f, err)) != IRON_OK)
            goto done;
        names[k] = f.path;
    }
    if (!names)
        status = usage(err, "out of memory for %zu names", info.file_count);
    else if (!(name = join_names(names, info.file_count, err)))
        status = err->status;
    if (status != IRON_OK)
        goto done;
    result.name = name;
    result.manifest = whole;
    /* the line is the one that iron sum prints of the whole stream: parts with bags were made with
     * --bag */
    result.wants_bag =
        iron_manifest_bag(whole, &bag, NULL) == IRON_OK && bag.cut.kind != IRON_BAG_CUT_NONE;
    to.is_json = o->wants_json;
    status = sum_print(&to, &result, err);
    sum_print_end(&to);
done:
    for (size_t k = 0; k < a->value_count; k++)
        iron_manifest_destroy(parts[k]);
    iron_manifest_destroy(whole);
    free(parts);
    free(names);
    free(name);
    return status;
}

const command command_merge = {
    .name = "merge",
    .summary = "joins the parts of a stream that sum --part wrote",
    .synopsis = "PART... [-o MANIFEST] [--json]",
    .description =
        "Takes all parts of one stream, in any order, and prints <seal>  <files>, or <bag>  "
        "<files> if they were made with --bag. Seal, bag and manifest are the same as those of "
        "iron sum --manifest over the whole stream. If a part is missing, repeated, overlapping or "
        "from another stream, the message names it and the exit status is 2.",
    .groups = {{NULL, merge_table, COUNT(merge_table), 0}},
    .examples = "iron merge part-*.json -o corpus.manifest",
    .options_bytes = sizeof(merge_options),
    .run = run,
};
