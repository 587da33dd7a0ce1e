/* SPDX-License-Identifier: MIT */
/*
 * stat_crew.c: see stat_crew.h.
 *
 * Invariant: pieces are handed out in order and each that was taken is done or failed when the
 * round ends. So of several bad tokens the first is reported, whatever the threads did.
 */
#include "digest/stat_crew.h"

#include "core/cpu.h"
#include "core/fail.h"

#include <inttypes.h>

#define ROUND_PIECES     64u /* a thread: some 10 ms of work, against microseconds between rounds */
#define ROUND_PIECES_MAX ((size_t)1 << 15) /* 2^31 tokens: 32-bit counters hold a round */

/* Histograms of the threads together have so many counters at most: 2 GiB. Larger vocabularies get
 * fewer threads; they are slow anyway, as their counters are in no cache. */
#define COUNTERS_MAX (UINT64_C(1) << 29)

/* It has a position in the stream; people look for it in a file. */
static iron_status check_tokens(const iron__stat_crew *c, const iron__tokens_view *view,
                                uint64_t position, iron_error *err) {
    size_t bad = iron__view_first_bad(view), file;
    uint64_t byte;

    if (bad == view->count)
        return IRON_OK;
    position += bad;
    if (c->at &&
        iron__source_locate(c->source, iron__source_position(c->source) + position, &file, &byte))
        IRON_FAIL(err, IRON_E_FORMAT,
                  "%.100s at byte %" PRIu64 ": token at position %" PRIu64 " is %" PRId64
                  "; tokens must be 0 to 4294967295: check --dtype",
                  iron_source_file(c->source, file), byte, position, iron__view_stored(view, bad));
    IRON_FAIL(err, IRON_E_FORMAT,
              "token at position %" PRIu64 " is %" PRId64
              "; tokens must be 0 to 4294967295: check --dtype",
              position, iron__view_stored(view, bad));
}

static iron_status take_piece(iron__stat_crew *c, iron__stat_worker *w, size_t piece) {
    size_t begin = piece * IRON_PIECE_TOKENS;
    uint64_t position = c->stat->range.first + c->done + begin;
    iron__tokens_view all = {c->dtype, c->tokens, c->count};
    iron__tokens_view view = {c->dtype, w->buffer, 0};

    if (!c->at)
        view = iron__view_rest(&all, begin);
    view.count = c->count - begin;
    if (view.count > IRON_PIECE_TOKENS)
        view.count = IRON_PIECE_TOKENS;
    if (c->at)
        IRON_TRY(iron__source_at_read(c->at, position, w->buffer, view.count, NULL, &w->error));
    IRON_TRY(check_tokens(c, &view, position, &w->error));
    iron__stat_piece_take(&c->pieces[piece], &w->lane, &c->stat->rule, &view, position);
    return IRON_OK;
}

static void work(void *context, size_t index) {
    iron__stat_crew *c = context;
    iron__stat_worker *w = c->workers[index];

    while (!atomic_load_explicit(&c->has_failed, memory_order_relaxed)) {
        size_t piece = atomic_fetch_add(&c->next, 1);

        if (piece >= c->piece_count)
            return;
        w->status = take_piece(c, w, piece);
        if (w->status != IRON_OK) {
            w->failed_piece = piece;
            atomic_store(&c->has_failed, true);
        }
    }
}

static iron_status first_failure(const iron__stat_crew *c, iron_error *err) {
    const iron__stat_worker *first = c->workers[0];

    for (size_t k = 1; k < c->worker_count; k++) {
        const iron__stat_worker *w = c->workers[k];

        if (w->status != IRON_OK &&
            (first->status == IRON_OK || w->failed_piece < first->failed_piece))
            first = w;
    }
    if (err)
        *err = first->error;
    return first->status;
}

void iron__stat_crew_settle(iron__stat_crew *c) {
    for (size_t k = 0; k < c->worker_count; k++)
        iron__stat_take_lane(c->stat, &c->workers[k]->lane);
    c->unsettled = 0;
}

iron_status iron__stat_crew_round(iron__stat_crew *c, size_t count, iron_error *err) {
    if (c->unsettled > UINT32_MAX - count)
        iron__stat_crew_settle(c);
    c->count = count;
    c->piece_count = (count + IRON_PIECE_TOKENS - 1) / IRON_PIECE_TOKENS;
    atomic_store(&c->next, 0);
    iron__team_run(c->team, work, c, c->worker_count);
    if (atomic_load(&c->has_failed))
        return first_failure(c, err);
    for (size_t k = 0; k < c->piece_count; k++)
        iron__stat_take_piece(c->stat, &c->pieces[k]);
    c->unsettled += count;
    c->done += count;
    IRON_FAIL_IF(c->progress && c->progress(c->context, c->done, c->total), err, IRON_E_CANCELLED,
                 "cancelled after %" PRIu64 " tokens", c->done);
    return IRON_OK;
}

size_t iron__stat_crew_room(const iron__stat_crew *c) { return c->piece_room * IRON_PIECE_TOKENS; }

static iron_status make_worker(iron__stat_worker **out, const iron__stat_crew *c, bool reads_files,
                               iron_error *err) {
    const iron_allocator *memory = iron__allocator_default();
    size_t vocab = (size_t)c->stat->rule.vocab;
    iron__stat_worker *w = iron__allocate(memory, 1, sizeof *w, "a thread's statistics", err);

    *out = w;
    if (!w)
        return IRON_E_NOMEM;
    if (reads_files) {
        w->buffer = iron__allocate(memory, IRON_PIECE_TOKENS, iron_dtype_bytes(c->dtype),
                                   "a reading buffer", err);
        if (!w->buffer)
            return IRON_E_NOMEM;
    }
    if (c->stat->histogram) {
        w->counters = iron__allocate(memory, 2 * vocab, sizeof(uint32_t), "a histogram", err);
        if (!w->counters)
            return IRON_E_NOMEM;
        w->lane.histogram[0] = w->counters;
        w->lane.histogram[1] = w->counters + vocab;
    }
    return IRON_OK;
}

/* No more threads than there are pieces, or than may have a histogram. */
static size_t useful_workers(const iron__stat_crew *c, uint32_t threads) {
    uint64_t count = threads ? threads : iron__cpu_threads();
    uint64_t pieces = c->total / IRON_PIECE_TOKENS + 1;
    uint64_t histograms = COUNTERS_MAX / (2 * c->stat->rule.vocab) + 1;

    count = count < IRON_THREADS_MAX ? count : IRON_THREADS_MAX;
    count = count < pieces ? count : pieces;
    return (size_t)(c->stat->histogram && histograms < count ? histograms : count);
}

iron_status iron__stat_crew_init(iron__stat_crew *c, uint32_t threads, bool reads_files,
                                 iron_error *err) {
    const iron_allocator *memory = iron__allocator_default();
    size_t workers = useful_workers(c, threads);

    c->piece_room = workers * ROUND_PIECES;
    if (c->piece_room > ROUND_PIECES_MAX)
        c->piece_room = ROUND_PIECES_MAX;
    if (c->piece_room < IRON_STAT_SLOT_BYTES / IRON_PIECE_TOKENS)
        c->piece_room = IRON_STAT_SLOT_BYTES / IRON_PIECE_TOKENS; /* a slot of 8-bit tokens */
    IRON_TRY(iron__team_create((uint32_t)workers, memory, &c->team, err));
    c->pieces = iron__allocate(memory, c->piece_room, sizeof *c->pieces, "a round's pieces", err);
    if (!c->pieces)
        return IRON_E_NOMEM;
    c->workers =
        iron__allocate(memory, workers, sizeof(iron__stat_worker *), "a list of threads", err);
    if (!c->workers)
        return IRON_E_NOMEM;
    for (c->worker_count = 0; c->worker_count < workers;)
        IRON_TRY(make_worker(&c->workers[c->worker_count++], c, reads_files, err));
    return IRON_OK;
}

void iron__stat_crew_deinit(iron__stat_crew *c) {
    const iron_allocator *memory = iron__allocator_default();

    for (size_t k = 0; k < c->worker_count; k++) {
        if (!c->workers[k])
            continue;
        iron__release(memory, c->workers[k]->buffer);
        iron__release(memory, c->workers[k]->counters);
        iron__release(memory, c->workers[k]);
    }
    iron__release(memory, c->workers);
    iron__release(memory, c->pieces);
    iron__team_destroy(c->team);
}
