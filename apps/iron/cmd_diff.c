/* SPDX-License-Identifier: MIT */
/*
 * cmd_diff.c: `iron diff`: where two token streams differ, and what happened between them.
 */
#include "command.h"
#include "diff_open.h"
#include "diff_show.h"
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct diff_options {
    reading reading;
    uint64_t chunk;
    bool has_chunk, wants_json;
} diff_options;

#define DTYPE_ROOM 8

/* --dtype u16,u32 is one for each side: which of the two is copied to `name`. */
static iron_status side_reading(const reading *given, int side, char name[DTYPE_ROOM], reading *out,
                                iron_error *err) {
    const char *comma = given->dtype_name ? strchr(given->dtype_name, ',') : NULL;
    const char *from = comma && side ? comma + 1 : given->dtype_name;
    size_t length = comma && !side ? (size_t)(comma - from) : strlen(comma ? from : "");

    *out = *given;
    out->is_for_raw = !comma; /* of two streams one may say its width, and not the other */
    if (comma) {
        if (length >= DTYPE_ROOM)
            return usage(err, "--dtype %.40s: use one of u8, u16, u32, i32 and i64, or two: A,B",
                         given->dtype_name);
        memcpy(name, from, length);
        name[length] = '\0';
        out->dtype_name = name;
    }
    return reading_check(out, err);
}

static iron_status check(const diff_options *o, const args *a, iron_error *err) {
    const char *backend = o->reading.backend;

    if (a->value_count != 2)
        return usage(err, "diff takes two streams, and got %zu; see iron diff --help",
                     a->value_count);
    if (strcmp(a->values[0], "-") == 0 && strcmp(a->values[1], "-") == 0)
        return usage(err, "standard input (-) can be one of the two streams, not both");
    if (backend && strcmp(backend, "auto") != 0 && strcmp(backend, "cpu") != 0)
        return usage(err, "--backend %.40s: streams are compared on the CPU; leave it out",
                     backend);
    if (o->has_chunk && o->chunk == 0)
        return usage(err, "chunks of 0 tokens; they must be a multiple of 4, at least 1024");
    return IRON_OK;
}

static iron_status open_inputs(const diff_options *o, const args *a, diff_input inputs[2],
                               iron_error *err) {
    for (int side = 0; side < 2; side++) {
        char name[DTYPE_ROOM];
        reading r;
        iron_status status = side_reading(&o->reading, side, name, &r, err);

        if (status == IRON_OK)
            status = diff_input_open(a->values[side], &r, &inputs[side], err);
        if (status != IRON_OK)
            return status;
    }
    return IRON_OK;
}

/* A finding is no failure: it has no error line, and the exit status of a difference. */
static iron_status compare(const diff_options *o, const diff_input inputs[2], iron_error *err) {
    const iron_diff_side a = {inputs[0].manifest, inputs[0].source, inputs[0].path};
    const iron_diff_side b = {inputs[1].manifest, inputs[1].source, inputs[1].path};
    progress p = progress_start(0);
    iron_diff_options options = {sizeof options, (uint32_t)o->reading.threads, o->chunk,
                                 progress_tell, &p};
    iron_diff_report r = {.struct_size = sizeof r};
    iron_diff *d = NULL;
    iron_status status = iron_diff_run(&a, &b, &options, &d, err);

    progress_clear(&p);
    if (status == IRON_OK)
        status = iron_diff_describe(d, &r, err);
    if (status == IRON_OK) {
        if (o->wants_json)
            diff_print_json(d, &r);
        else
            diff_print_text(d, &r, inputs);
        if (r.kind != IRON_DIFF_SAME) {
            status = IRON_E_MISMATCH;
            err->text[0] = '\0';
        }
    }
    iron_diff_destroy(d);
    return status;
}

static iron_status run(int argc, char **argv, iron_error *err) {
    diff_options o = {0};
    const option options[] = {
        {"chunk", OPTION_NUMBER, &o.chunk, &o.has_chunk},
        {"json", OPTION_FLAG, &o.wants_json, NULL},
        READING_OPTIONS(o.reading),
    };
    args a = {.options = options, .option_count = COUNT(options)};
    diff_input inputs[2] = {{0}};
    bool is_done;
    iron_status status = command_args(&command_diff, &a, argc, argv, &is_done, err);

    if (is_done)
        return status;
    status = check(&o, &a, err);
    if (status == IRON_OK)
        status = open_inputs(&o, &a, inputs, err);
    if (status == IRON_OK)
        status = compare(&o, inputs, err);
    diff_input_close(&inputs[0]);
    diff_input_close(&inputs[1]);
    return status;
}

const command command_diff = {
    "diff", "tells where two token streams differ, and how",
    "usage: iron diff A B [OPTIONS]\n\n"
    "Compares two streams token by token, whatever the formats and widths: files, directories\n"
    "(their files as one stream), - for standard input, or manifests of iron sum. Tells the first\n"
    "difference, which chunks differ, and what happened if that can be seen: one was cut, tokens\n"
    "were inserted or deleted, parts were reordered or repeated. Manifests are compared without\n"
    "their files; where those are still there, the first difference is shown exactly.\n\n"
    "  --chunk TOKENS      size of the chunks that are told as different (default: that of a\n"
    "                      manifest, else 1048576); a multiple of 4, at least 1024\n"
    "  --json              one JSON document, with all ranges\n" READING_HELP
    "  --dtype D,E         one for each side: --dtype u16,u32; one alone is for files that do not\n"
    "                      say it themselves\n\n"
    "Exit status: 0 the same, 1 different, 2 could not tell.\n\n"
    "example: iron diff corpus.manifest shards/\n",
    run};
