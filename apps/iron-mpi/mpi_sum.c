/* SPDX-License-Identifier: MIT */
/*
 * mpi_sum.c: `iron-mpi sum`: the seals of files, or of all files as one stream.
 *
 * Each stream gets an iron_digest_result on every rank, of what that rank has read of it: words and
 * statistics, which one reduction at the end adds up. A large file is read by all ranks, a part
 * each; small ones are dealt out whole, since opening a file for a few tokens costs more than
 * reading them.
 */
#include "mpi_sum.h"

#include "mpi_command.h"
#include "progress.h"
#include "sum_show.h"

#include <inttypes.h>
#include <stdlib.h>

/* A file with fewer tokens a rank is one rank's. */
#define SHARE_TOKENS (UINT64_C(1) << 20)

typedef struct sum_flags {
    reading reading;
    uint64_t vocab;
    bool wants_stream, wants_json;
} sum_flags;

typedef struct sum_work {
    const ranks *ranks;
    const sum_flags *flags;
    const sum_streams *streams;
    iron_digest_result *results; /* one a stream, like the seconds */
    double *seconds;
    progress progress;
} sum_work;

static iron_digest_result result_of_nothing(uint64_t vocab) {
    return (iron_digest_result){.struct_size = sizeof(iron_digest_result),
                                .seal_version = IRON_SEAL_VERSION,
                                .vocab = vocab,
                                .first_out_position = IRON_COUNT_UNKNOWN,
                                .min = UINT32_MAX};
}

/* Which tokens of a stream this rank reads. */
static iron_status my_range(const sum_work *w, size_t index, uint64_t *first, uint64_t *count,
                            iron_error *err) {
    uint64_t rank = (uint64_t)w->ranks->rank, all = (uint64_t)w->ranks->count;
    uint64_t tokens = w->streams->list[index].tokens;

    if (w->streams->count == 1 || tokens / all >= SHARE_TOKENS)
        return iron_part_range(tokens, (uint32_t)rank + 1, (uint32_t)all, first, count, err);
    *first = 0;
    *count = index % all == rank ? tokens : 0;
    return IRON_OK;
}

static iron_status scan(sum_work *w, size_t index, iron_source *source, iron_scan_options *o,
                        iron_error *err) {
    const reading *r = &w->flags->reading;
    iron_manifest *m = NULL;
    iron_status status;

    o->threads = (uint32_t)r->threads;
    o->device = (uint32_t)r->device;
    o->backend = r->backend ? r->backend : "cpu"; /* ranks of a machine would share a GPU */
    o->vocab = w->flags->vocab;
    o->progress = progress_tell;
    o->context = &w->progress;
    if (iron_source_tokens(source) != w->streams->list[index].tokens)
        return usage(err, "%.120s changed while it was read", w->streams->list[index].name);
    status = iron_scan(source, o, &m, err);
    if (status == IRON_OK)
        status = iron_manifest_digest(m, &w->results[index], err);
    iron_manifest_destroy(m);
    return status;
}

static iron_status scan_stream(sum_work *w, size_t index, iron_error *err) {
    const char *path = w->streams->list[index].name;
    iron_source *source = w->streams->source;
    double started = seconds_now();
    iron_scan_options o;
    iron_status status;

    w->results[index] = result_of_nothing(w->flags->vocab);
    iron_scan_options_init(&o);
    status = my_range(w, index, &o.first, &o.count, err);
    if (status == IRON_OK && o.count > 0 && !source)
        status = reading_open(&w->flags->reading, &path, 1, &source, err);
    if (status == IRON_OK && o.count > 0)
        status = scan(w, index, source, &o, err);
    if (source != w->streams->source)
        iron_source_close(source);
    w->seconds[index] = seconds_now() - started;
    return status;
}

/* Adding nothing makes the seal of a result that no rank had a part of. */
static iron_status reduce(sum_work *w, iron_error *err) {
    iron_digest_result none = result_of_nothing(w->flags->vocab);
    iron_status status = ranks_add_results(w->ranks, w->results, w->streams->count, err);

    ranks_largest(w->seconds, w->streams->count);
    for (size_t k = 0; k < w->streams->count && status == IRON_OK; k++)
        status = iron_digest_result_add(&w->results[k], &none, err);
    return ranks_agree(w->ranks, status, err);
}

static iron_status show(const sum_work *w, iron_error *err) {
    sum_printer to = {.is_json = w->flags->wants_json};
    iron_status status = IRON_OK;

    for (size_t k = 0; k < w->streams->count && status == IRON_OK; k++) {
        const sum_stream *s = &w->streams->list[k];
        sum_result result = {.name = s->name,
                             .digest = &w->results[k],
                             .dtype = s->dtype,
                             .source = w->streams->source,
                             .is_stream = w->flags->wants_stream,
                             .seconds = w->seconds[k],
                             .ranks = (uint64_t)w->ranks->count};

        status = sum_show(&to, &result, err);
    }
    sum_show_end(&to);
    return status;
}

static iron_status work(sum_work *w, iron_error *err) {
    size_t count = w->streams->count;
    iron_status status = IRON_OK;

    w->results = calloc(count + 1, sizeof *w->results);
    w->seconds = calloc(count + 1, sizeof *w->seconds);
    w->progress = progress_start(0);
    w->progress.is_shown = w->progress.is_shown && w->ranks->rank == 0;
    if (!w->results || !w->seconds)
        status = usage(err, "out of memory for %zu results", count);
    else
        for (size_t k = 0; k < count && status == IRON_OK; k++)
            status = scan_stream(w, k, err);
    progress_clear(&w->progress);
    status = ranks_agree(w->ranks, status, err);
    if (status == IRON_OK)
        status = reduce(w, err);
    if (status == IRON_OK && w->ranks->rank == 0)
        status = show(w, err);
    free(w->results);
    free(w->seconds);
    return status;
}

static iron_status check(sum_flags *o, iron_error *err) {
    if (o->vocab < 1 || o->vocab > UINT64_C(1) << 32)
        return usage(err, "vocab is %" PRIu64 "; it must be 1 to 4294967296", o->vocab);
    return reading_check(&o->reading, err);
}

static iron_status run(const ranks *r, int argc, char **argv, iron_error *err) {
    sum_flags o = {.vocab = 50257};
    const option options[] = {
        {"vocab", OPTION_NUMBER, &o.vocab, NULL},
        {"stream", OPTION_FLAG, &o.wants_stream, NULL},
        {"json", OPTION_FLAG, &o.wants_json, NULL},
        READING_OPTIONS(o.reading),
    };
    args a = {.options = options, .option_count = COUNT(options)};
    rank_view view = rank_view_begin(mpi_command_sum.name, argc, argv);
    sum_streams streams = {0};
    iron_status status;
    bool is_done;

    status = mpi_command_args(&mpi_command_sum, r, &a, argc, argv, &is_done, err);
    if (is_done)
        return status;
    status = check(&o, err);
    if (status == IRON_OK)
        status = sum_streams_open(&streams, &o.reading, &a, o.wants_stream, &view, err);
    status = ranks_same_view(r, status, &view, err);
    if (status == IRON_OK)
        status = work(&(sum_work){.ranks = r, .flags = &o, .streams = &streams}, err);
    sum_streams_close(&streams);
    return status;
}

const mpi_command mpi_command_sum = {
    "sum", "prints seals of token files",
    "usage: mpirun -n RANKS iron-mpi sum FILE... [OPTIONS]\n\n"
    "What iron sum prints: <seal>  <file> for each file; a directory stands for its files. Unlike\n"
    "there, a file that cannot be read ends it, with nothing printed. Manifests are made of "
    "parts:\n"
    "iron sum --part, iron merge.\n\n"
    "  --stream            all files are one stream, with one seal\n"
    "  --vocab V           tokens at or above V are counted (default 50257)\n"
    "  --json              one JSON document: an array with an object for each line\n" READING_HELP
    "\nexample: mpirun -n 16 iron-mpi sum shards/ --dtype u16 --stream\n",
    run};
