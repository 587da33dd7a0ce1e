/* SPDX-License-Identifier: MIT */
/*
 * cmd_sum.c: `iron sum`: seals of token files, a line a file, or of all files as one stream, with a
 * manifest or of a part.
 *
 * What can be refused is refused before anything is read. Of several files, one that cannot be read
 * does not keep the others from their lines, as with sha256sum; the exit status tells of it.
 */
#include "command.h"
#include "progress.h"
#include "reading.h"
#include "sum_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sum_options {
    reading reading;
    uint64_t vocab, chunk;
    const char *manifest, *part_text, *output;
    uint32_t part, parts;
    bool has_chunk, wants_stream, wants_json;
} sum_options;

/* "2/3": digits, a stroke, digits. */
static iron_status parse_part(sum_options *o, iron_error *err) {
    const char *stroke = strchr(o->part_text, '/');
    uint64_t part = 0, parts = 0;
    char first[24] = "";

    if (stroke && stroke - o->part_text < (ptrdiff_t)sizeof first)
        memcpy(first, o->part_text, (size_t)(stroke - o->part_text));
    if (!stroke || parse_number("--part", first, &part, err) != IRON_OK ||
        parse_number("--part", stroke + 1, &parts, err) != IRON_OK)
        return usage(err, "--part '%.40s' is none; give I/N, such as 2/3", o->part_text);
    if (part < 1 || part > parts || parts > UINT32_MAX)
        return usage(err, "--part %.40s: parts count from 1 to their number", o->part_text);
    o->part = (uint32_t)part;
    o->parts = (uint32_t)parts;
    return IRON_OK;
}

static iron_status check_outputs(const sum_options *o, iron_error *err) {
    if (o->part_text && !o->output)
        return usage(err, "--part needs -o FILE, where the part goes; iron merge joins parts");
    if (o->output && !o->part_text)
        return usage(err, "-o is for --part; a whole stream's manifest is written by --manifest");
    if (o->manifest && o->part_text)
        return usage(err, "--manifest is of a whole stream; a part is written with -o");
    if (o->has_chunk && !o->manifest && !o->part_text)
        return usage(err, "--chunk is for --manifest and --part, which have chunks");
    if (o->has_chunk && (o->chunk < 1024 || o->chunk % 4 != 0))
        return usage(err, "--chunk is %" PRIu64 "; it must be a multiple of 4, at least 1024",
                     o->chunk);
    if (o->manifest)
        return reading_target("--manifest", o->manifest, err);
    return o->output ? reading_target("-o", o->output, err) : IRON_OK;
}

static iron_status check(sum_options *o, const args *a, iron_error *err) {
    iron_status status = reading_check(&o->reading, err);

    if (status == IRON_OK && a->value_count == 0)
        status = usage(err, "no input; name files, or - for standard input");
    if (status == IRON_OK && (o->vocab < 1 || o->vocab > UINT64_C(1) << 32))
        status = usage(err, "vocab is %" PRIu64 "; it must be 1 to 4294967296", o->vocab);
    if (status == IRON_OK && o->part_text)
        status = parse_part(o, err);
    return status == IRON_OK ? check_outputs(o, err) : status;
}

static iron_status set_scan(const sum_options *o, const iron_source *source, iron_scan_options *s,
                            iron_error *err) {
    uint64_t tokens = iron_source_tokens(source);

    iron_scan_options_init(s);
    s->threads = (uint32_t)o->reading.threads;
    s->device = (uint32_t)o->reading.device;
    s->backend = o->reading.backend;
    s->vocab = o->vocab;
    if (o->manifest || o->parts)
        s->chunk_tokens = o->chunk;
    if (o->parts == 0)
        return IRON_OK;
    if (tokens == IRON_COUNT_UNKNOWN)
        return usage(err, "--part needs files on a disk; nobody knows where a pipe's parts begin");
    s->part = o->part;
    s->parts = o->parts;
    return iron_part_range(tokens, o->part, o->parts, &s->first, &s->count, err);
}

/* Scans a source and shows it; the manifest is written first, so that a printed result is kept. */
static iron_status sum_source(const sum_options *o, iron_source *source, sum_result *result,
                              sum_printer *to, iron_error *err) {
    const char *target = o->manifest ? o->manifest : o->output;
    progress p = progress_start(iron_dtype_bytes(iron_source_dtype(source)));
    double started = seconds_now();
    iron_manifest *m = NULL;
    iron_scan_options s;
    iron_status status = set_scan(o, source, &s, err);

    s.progress = progress_tell;
    s.context = &p;
    if (status == IRON_OK)
        status = iron_scan(source, &s, &m, err);
    result->seconds = seconds_now() - started;
    result->manifest = m;
    progress_clear(&p);
    if (status == IRON_OK && target)
        status = iron_manifest_write(m, target, err);
    if (status == IRON_OK)
        status = sum_show(to, result, err);
    iron_manifest_destroy(m);
    return status;
}

static iron_status sum_stream(const sum_options *o, const args *a, sum_printer *to,
                              iron_error *err) {
    const char *const *paths = (const char *const *)a->values;
    sum_result result = {.is_stream = true};
    iron_source *source = NULL;
    char *name = sum_join_names(paths, a->value_count, err);
    iron_status status = name ? IRON_OK : IRON_E_NOMEM;

    result.name = name;
    if (status == IRON_OK)
        status = reading_open(&o->reading, paths, a->value_count, &source, err);
    if (status == IRON_OK)
        status = reading_guard(source, "--manifest", o->manifest, err);
    if (status == IRON_OK)
        status = reading_guard(source, "-o", o->output, err);
    if (status == IRON_OK)
        status = sum_source(o, source, &result, to, err);
    iron_source_close(source);
    free(name);
    return status;
}

static iron_status sum_file(const sum_options *o, const char *path, sum_printer *to,
                            iron_error *err) {
    sum_result result = {.name = path};
    iron_source *source = NULL;
    iron_status status = reading_open(&o->reading, &path, 1, &source, err);

    if (status == IRON_OK)
        status = sum_source(o, source, &result, to, err);
    iron_source_close(source);
    return status;
}

/* Complains and goes on; what every file would get to hear is said once. */
static void note(iron_status status, const iron_error *why, iron_error *last) {
    if (status == IRON_OK)
        return;
    if (last->status == IRON_OK || strcmp(last->text, why->text) != 0)
        command_complain(why);
    *last = *why;
    last->status = status;
}

static iron_status sum_each(const sum_options *o, const args *a, sum_printer *to, iron_error *err) {
    iron_error last = {IRON_OK, 0, ""};

    for (size_t k = 0; k < a->value_count; k++) {
        iron_file_names *names = NULL;
        iron_error why = {IRON_OK, 0, ""};
        iron_status status = iron_file_names_list(a->values[k], &names, &why);

        note(status, &why, &last);
        for (size_t n = 0; status == IRON_OK && n < iron_file_names_count(names); n++) {
            why = (iron_error){IRON_OK, 0, ""};
            note(sum_file(o, iron_file_names_at(names, n), to, &why), &why, &last);
        }
        iron_file_names_destroy(names);
    }
    err->text[0] = '\0';
    return last.status;
}

static iron_status run(int argc, char **argv, iron_error *err) {
    sum_options o = {.vocab = 50257, .chunk = IRON_CHUNK_TOKENS};
    const option options[] = {
        {"vocab", OPTION_NUMBER, &o.vocab, NULL},
        {"stream", OPTION_FLAG, &o.wants_stream, NULL},
        {"manifest", OPTION_TEXT, &o.manifest, NULL},
        {"chunk", OPTION_NUMBER, &o.chunk, &o.has_chunk},
        {"part", OPTION_TEXT, &o.part_text, NULL},
        {"output", OPTION_TEXT, &o.output, NULL},
        {"json", OPTION_FLAG, &o.wants_json, NULL},
        READING_OPTIONS(o.reading),
    };
    args a = {.options = options, .option_count = COUNT(options)};
    iron_status status;
    bool is_done, is_stream;
    sum_printer to = {0};

    status = command_args(&command_sum, &a, argc, argv, &is_done, err);
    if (is_done || (status = check(&o, &a, err)) != IRON_OK)
        return status;
    to.is_json = o.wants_json;
    is_stream = o.wants_stream || o.manifest || o.part_text;
    o.reading.is_for_raw = !is_stream && a.value_count > 1;
    status = (is_stream ? sum_stream : sum_each)(&o, &a, &to, err);
    sum_show_end(&to);
    return status;
}

const command command_sum = {
    "sum", "prints seals of token files, as sha256sum does",
    "usage: iron sum FILE...|- [OPTIONS]\n\n"
    "Prints <seal>  <file> for each file; a directory stands for its files in natural order. The\n"
    "seal tells whether two streams are the same tokens in the same order, whatever their format\n"
    "and width: against accidents, not against an adversary. iron check verifies what is printed.\n"
    "\n"
    "  --stream            all files are one stream, with one seal\n"
    "  --manifest FILE     one stream, and a manifest: seals of its chunks, by which iron check\n"
    "                      and iron diff tell where something changed\n"
    "  --chunk TOKENS      size of the chunks, a multiple of 4, at least 1024 (default 1048576)\n"
    "  --part I/N -o FILE  one stream, and of it part I of N (from 1) alone, for iron merge\n"
    "  --vocab V           tokens at or above V are counted (default 50257)\n"
    "  --json              one JSON document: an array with an object for each line\n" READING_HELP
    "\nexample: iron sum shards/ --dtype u16 > seals.txt && iron check seals.txt --dtype u16\n",
    run};
