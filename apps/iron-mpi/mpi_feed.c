/* SPDX-License-Identifier: MIT */
/*
 * mpi_feed.c: `iron-mpi feed`: the engine over ranks.
 *
 * Every rank creates the same two engines: one for its own batches, and one that is at the start
 * of the stream (new, or from --resume). The second engine of rank 0 takes the effects of all
 * ranks; its state is reported and saved, and equals that of `iron feed` bit for bit.
 *
 * There are two ways to combine the work of the ranks:
 *
 * - Sums, if no potential can pass 2^24: every rank feeds one range of whole batches. The effects
 *   of the ranges are joined and their additions to potentials added up, by one reduction of a few
 *   kilobytes.
 *
 * - Ordered, otherwise: float additions round, so rank 0 applies the batches one by one in stream
 *   order. The ranks do the expensive part, reading and reducing, and send eight bytes per batch.
 *   The stream is cut into blocks, which are dealt out in turn; a round is one block per rank:
 *
 *       round 0: rank 0 | rank 1 | rank 2      round 1: rank 0 | rank 1 | ...
 *
 *   At the end of a round rank 0 applies all blocks in order while the others start the next
 *   round. No rank ever keeps more than the batches of one block, however long the stream.
 *
 * Ranges and blocks start at multiples of four batches, so that no quad of the seal is divided.
 */
#include "ranks.h"
#include "reading.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GRID 4u /* batches */
/* 64 MiB of 16-bit tokens: processing a block takes much longer than starting to read it. */
#define BLOCK_TOKENS (UINT64_C(1) << 25)
/* Limits a block of tiny batches to 4 MiB of records. */
#define BLOCK_BATCHES_MAX (UINT64_C(1) << 19)

typedef struct rank_feed {
    const ranks *ranks;
    bool is_device_chosen; /* --device auto */
    iron_source *source;
    iron_engine *whole; /* the whole stream; only on rank 0 it takes the effects of all ranks */
    iron_engine *mine;  /* the batches of this rank */
    uint64_t base;      /* position of the first token: not 0 after --resume */
    uint64_t tokens;    /* in the files */
    uint64_t batches;
    uint64_t batch;              /* tokens of each batch but the last */
    progress progress;           /* of rank 0 */
    uint64_t done_before, total; /* tokens counted before the current range, and of all */
} rank_feed;

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

static int update_progress(void *context, uint64_t done, uint64_t total) {
    rank_feed *f = context;

    (void)total;
    return progress_update(&f->progress, f->done_before + done, f->total);
}

/* Feeds batches first ... first+count-1 of the files, as far as they exist. `room`: NULL, or
 * `count` places where the batches are recorded. */
static iron_status feed_batches(rank_feed *f, uint64_t first, uint64_t count,
                                iron_batch_effect *room, iron_error *err) {
    uint64_t begin = first < f->batches ? first * f->batch : f->tokens;
    uint64_t end =
        first < f->batches && count < f->batches - first ? (first + count) * f->batch : f->tokens;

    /* an empty range may start anywhere, but for the seal at a multiple of 4 */
    IRON_TRY(iron_engine_begin_at(f->mine, f->base + (begin < end ? begin : 0), err));
    if (room)
        IRON_TRY(iron_engine_record(f->mine, room, (size_t)count, err));
    IRON_TRY(
        iron_engine_feed_range(f->mine, f->source, begin, end - begin, update_progress, f, err));
    return iron_engine_end_batch(f->mine, err);
}

static iron_status feed_sums(rank_feed *f, iron_error *err) {
    uint64_t fours = f->batches / GRID + (f->batches % GRID != 0);
    uint64_t rank = (uint64_t)f->ranks->rank, count = (uint64_t)f->ranks->count;
    uint64_t first = fours / count * rank + smaller(rank, fours % count);
    uint64_t share = fours / count + (rank < fours % count);
    size_t nodes = (size_t)iron_engine_config(f->mine)->nodes;
    iron_effect effect = {.struct_size = sizeof effect};
    int32_t *additions = malloc(nodes * sizeof *additions);
    iron_status status = IRON_OK;

    f->total = f->tokens / count + 1;
    if (!additions)
        status = usage(err, "out of memory for %zu additions", nodes);
    else if ((status = feed_batches(f, first * GRID, share * GRID, NULL, err)) == IRON_OK)
        status = iron_engine_effect(f->mine, &effect, additions, err);

    status = ranks_agree(f->ranks, status, err);
    if (status == IRON_OK)
        status = ranks_join_effects(f->ranks, &effect, additions, nodes, err);
    if (status == IRON_OK && f->ranks->rank == 0)
        status = iron_engine_apply(f->whole, &effect, additions, err);
    free(additions);
    return status;
}

static iron_status feed_ordered(rank_feed *f, iron_error *err) {
    uint64_t count = (uint64_t)f->ranks->count;
    bool is_first = f->ranks->rank == 0;
    iron_effect effect = {.struct_size = sizeof effect};
    iron_batch_effect *batches; /* room for one block */
    iron_status status = IRON_OK, before = IRON_OK;
    /* batches per block; small enough that a short stream has a block for every rank */
    uint64_t share = f->batches / count / GRID * GRID + GRID;
    uint64_t block = smaller(BLOCK_TOKENS / f->batch / GRID * GRID, BLOCK_BATCHES_MAX);

    block = smaller(block > GRID ? block : GRID, share);
    batches = malloc((size_t)block * sizeof *batches);
    if (!batches)
        status = usage(err, "out of memory for %zu batches", (size_t)block);
    status = ranks_agree(f->ranks, status, err);
    f->total = f->tokens;
    for (uint64_t first = 0; first < f->batches && status == IRON_OK; first += count * block) {
        /* past the last block this rank feeds nothing */
        uint64_t mine = smaller(first + (uint64_t)f->ranks->rank * block, f->batches);

        f->done_before = mine < f->batches ? mine * f->batch : f->tokens;
        if ((status = before) == IRON_OK &&
            (status = feed_batches(f, mine, block, batches, err)) == IRON_OK)
            status = iron_engine_effect(f->mine, &effect, NULL, err);
        status = ranks_agree(f->ranks, status, err);
        /* rank 0 applies the blocks of all ranks in order; the other ranks send theirs */
        for (int from = 0; status == IRON_OK && from < f->ranks->count && is_first; from++) {
            if (from != 0) {
                ranks_receive(from, &effect, sizeof effect);
                ranks_receive(from, batches, (size_t)effect.batches * sizeof *batches);
            }
            if (before == IRON_OK)
                before = iron_engine_apply_batches(f->whole, &effect, batches, err);
        }
        if (status == IRON_OK && !is_first) {
            ranks_send(&effect, sizeof effect);
            ranks_send(batches, (size_t)effect.batches * sizeof *batches);
        }
    }
    free(batches);
    return status == IRON_OK ? before : status;
}

static iron_status open_feed(const feed_options *o, feed_plan *plan, const args *a, rank_feed *f,
                             iron_error *err) {
    iron_report r = {.struct_size = sizeof r};
    uint64_t done, tokens;

    IRON_TRY(feed_engine_make(o, plan, &f->whole, err));
    if (iron_engine_checkpoint(f->whole, &done, &tokens))
        return usage(err,
                     "--resume %.100s is a checkpoint of a feed that has read %" PRIu64
                     " of %" PRIu64 " tokens; feed the rest with iron feed --continue",
                     o->resume, done, tokens);
    IRON_TRY(iron_engine_report(f->whole, &r, err));
    IRON_TRY(iron_engine_create(iron_engine_config(f->whole), &f->mine, err));
    if (o->state && f->ranks->rank == 0)
        IRON_TRY(iron_state_path_check(o->state, err));
    IRON_TRY(feed_source_open(o, a, &f->source, err));
    f->base = r.tokens;
    f->batch = iron_engine_config(f->whole)->batch;
    f->tokens = iron_source_tokens(f->source);
    f->batches = f->tokens / f->batch + (f->tokens % f->batch != 0);
    if (iron_engine_config(f->whole)->with_seal && f->base % 4 != 0)
        return usage(err,
                     "the state in %.100s is at position %" PRIu64
                     ", which is not a multiple of 4: ranks cannot continue its seal; resume it "
                     "with iron feed",
                     o->resume, f->base);
    return IRON_OK;
}

static iron_status run(void *options, args *a, iron_error *err) {
    feed_options *o = options;
    feed_plan plan = {0};
    ranks *r = ranks_here();
    rank_feed f = {.ranks = r};
    feed_result found = {.ranks = (uint64_t)r->count, .report.struct_size = sizeof found.report};
    bool is_first = r->rank == 0;
    uint64_t *devices = NULL;
    double started;
    size_t width;
    iron_status status;

    f.is_device_chosen = o->reading.devices && strcmp(o->reading.devices, "auto") == 0;
    ranks_choose_device(r, &o->reading.backend, &o->reading.devices);
    if (!o->reading.backend)
        o->reading.backend = "cpu"; /* all ranks of a machine would take its first GPU */
    o->reading.wants_seekable = true;
    if ((status = feed_plan_make(o, &plan, err)) == IRON_OK &&
        (status = open_feed(o, &plan, a, &f, err)) == IRON_OK)
        status = ranks_note_files(r, f.source, err);
    if ((status = ranks_work_on_same(r, status, err)) != IRON_OK)
        goto done;
    width = iron_dtype_bytes(iron_source_dtype(f.source));
    started = seconds_now();
    f.progress = progress_start(width);
    f.progress.is_shown = f.progress.is_shown && is_first;
    status = (f.batches <= iron_engine_exact_batches(f.whole) ? feed_sums : feed_ordered)(&f, err);
    if (status == IRON_OK && is_first)
        status = iron_engine_report(f.whole, &found.report, err);
    found.seconds = seconds_now() - started;
    progress_clear(&f.progress);
    if (status == IRON_OK && is_first && o->state) /* before the result is printed */
        status = iron_engine_save(f.whole, o->state, err);
    status = ranks_agree(r, status, err);
    if (status == IRON_OK && f.is_device_chosen)
        status = ranks_gather(r, iron_engine_config(f.mine)->device, &devices, err);
    if (status == IRON_OK && is_first) {
        found.engine = f.whole;
        found.source = f.source;
        found.rank_devices = devices;
        found.gb_per_s = (double)f.tokens * (double)width / found.seconds * 1e-9;
        feed_print(&found, o->wants_json);
    }
    free(devices);
done:
    iron_source_close(f.source);
    iron_engine_destroy(f.mine);
    iron_engine_destroy(f.whole);
    free(plan.activations);
    return status;
}

const command mpi_command_feed = {
    .name = "feed",
    .summary = "runs token files through the engine",
    .synopsis = "FILE... [OPTIONS]",
    .description =
        "Does what iron feed does, with the same result and the same options, except --every and "
        "--continue. Every rank reads its own batches; rank 0 saves the state and prints. Each "
        "rank uses the CPU unless --backend is given, and all CPUs it may use unless --threads is "
        "given. With --device auto the ranks of a machine take its GPUs in turn, or those of "
        "--backend; JSON has each rank's as rank_devices.",
    .groups = {FEED_GROUPS},
    .examples = "mpirun -n 16 iron-mpi feed shards/ --dtype u16 --state run.state",
    .options_bytes = sizeof(feed_options),
    .run = run,
};
