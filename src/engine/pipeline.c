/* SPDX-License-Identifier: MIT */
/*
 * pipeline.c: tokens from a source, with reading and reducing at the same time.
 *
 * The ring's threads fill slots; the caller feeds full slots to the engine, which reduces them
 * while the next are filled. Memory is the slots, however long the stream.
 *
 *     source  ->  readers  ->  [slot 0][slot 1][slot 2][slot 3]  ->  team, or GPU
 *
 * A GPU that sends from page-locked memory brings slots of its own, and holds several of them until
 * they are sent; but not while somebody listens to its batches, since each is waited for then.
 * Otherwise a slot is free again as soon as it was fed.
 */
#include "core/fail.h"
#include "engine/engine.h"
#include "feed/ring.h"
#include "formats/source.h"

#include <inttypes.h>

/* 4 x 4 MiB stays inside a server's last-level cache: what was read is reduced from there. */
#define SLOTS      4u
#define SLOT_BYTES ((size_t)4 << 20)

/* Few threads would miss the core of a second reader; many do not miss it, and reduce faster than
 * one reader copies out of the page cache. */
#define MANY_THREADS 8u

/* A feed from a source. */
typedef struct pipeline {
    iron_engine *engine;
    bool is_lent; /* the slots are the GPU's */
    void *slots[IRON_FEED_SLOTS_MAX];
    char *memory; /* of slots that are not */
    iron__ring *ring;
} pipeline;

static iron_status feed_slot(const pipeline *p, size_t slot, iron_dtype dtype, size_t count,
                             iron_error *err) {
    iron__tokens_view view = {dtype, p->slots[slot], count};
    size_t released = 1;

    if (p->is_lent)
        IRON_TRY(iron__gpu_engine_feed_slot(p->engine, slot, &view, &released, err));
    else
        IRON_TRY(iron_engine_feed_as(p->engine, dtype, p->slots[slot], count, err));
    for (size_t k = 0; k < released; k++)
        iron__ring_free(p->ring);
    return IRON_OK;
}

/* A bad token has a position in the stream; people look for it in a file. `first` is the view's
 * first token in the source. */
static void name_place(const iron_source *source, uint64_t first, const iron__tokens_view *view,
                       iron_error *err) {
    size_t bad = iron__view_first_bad(view), file;
    iron_error why = err ? *err : (iron_error){0};
    uint64_t byte;

    if (err && bad < view->count && iron__source_locate(source, first + bad, &file, &byte))
        iron__fail(err, why.status, why.native, "%.100s at byte %" PRIu64 ": %.110s",
                   iron_source_file(source, file), byte, why.text);
}

static iron_status consume(const pipeline *p, const iron_source *source, uint64_t total,
                           iron_progress progress, void *context, iron_error *err) {
    iron_dtype dtype = iron_source_dtype(source);
    uint64_t done = 0;
    bool has_places = iron__source_is_seekable(source); /* and stands still while it is read */
    uint64_t begin = has_places ? iron__source_position(source) : 0;

    for (;;) {
        size_t slot, count;
        iron_status status;

        IRON_TRY(iron__ring_next(p->ring, &slot, &count, err));
        if (count == 0)
            return IRON_OK;
        status = feed_slot(p, slot, dtype, count, err);
        if (status == IRON_E_FORMAT && has_places)
            name_place(source, begin + done, &(iron__tokens_view){dtype, p->slots[slot], count},
                       err);
        IRON_TRY(status);
        done += count;
        IRON_FAIL_IF(progress && progress(context, done, total), err, IRON_E_CANCELLED,
                     "cancelled after %llu tokens", (unsigned long long)done);
    }
}

static iron_status take_slots(pipeline *p, iron__ring_options *options, iron_error *err) {
    iron_engine *e = p->engine;

    p->is_lent = e->gpu && !e->heard && iron__gpu_feed_has_slots(e->gpu);
    options->slots = p->slots;
    if (p->is_lent) {
        iron__ring_take_shape(options, iron__gpu_feed_shape(e->gpu));
        options->slot_bytes = iron__gpu_feed_slot_bytes(e->gpu, iron_source_dtype(options->source));
        return iron__gpu_engine_slots(e, p->slots, err);
    }
    options->slot_count = SLOTS;
    options->slot_bytes = SLOT_BYTES;
    options->readers = iron__team_threads(e->team) < MANY_THREADS ? 1 : 2;
    p->memory = iron__allocate(e->allocator, SLOTS, SLOT_BYTES, "the reading ring", err);
    if (!p->memory)
        return IRON_E_NOMEM;
    for (size_t k = 0; k < SLOTS; k++)
        p->slots[k] = p->memory + k * SLOT_BYTES;
    return IRON_OK;
}

/* `most`: 0, or tokens to take of files. */
static iron_status feed(iron_engine *engine, iron_source *source, uint64_t most,
                        iron_progress progress, void *context, iron_error *err) {
    iron__ring_options options = {.source = source, .tokens = most, .allocator = engine->allocator};
    uint64_t total = most ? most : iron_source_tokens(source);
    pipeline p = {.engine = engine};
    iron_status status = take_slots(&p, &options, err);

    if (status == IRON_OK)
        status = iron__ring_create(&options, &p.ring, err);
    if (status == IRON_OK)
        status = consume(&p, source, total, progress, context, err);
    iron__ring_destroy(p.ring);
    if (p.is_lent) {
        /* nobody fills slots any more; what was sent must have left them before others do */
        iron_status sent = iron__gpu_feed_release(engine->gpu, status == IRON_OK ? err : NULL);

        status = status == IRON_OK ? sent : status;
    }
    iron__release(engine->allocator, p.memory);
    return status;
}

iron_status iron_engine_feed_source(iron_engine *engine, iron_source *source,
                                    iron_progress progress, void *context, iron_error *err) {
    return feed(engine, source, 0, progress, context, err);
}

iron_status iron_engine_feed_range(iron_engine *engine, iron_source *source, uint64_t first,
                                   uint64_t count, iron_progress progress, void *context,
                                   iron_error *err) {
    uint64_t tokens = iron_source_tokens(source);

    IRON_FAIL_IF(!iron__source_is_seekable(source), err, IRON_E_ARG,
                 "a range can be read of regular files only, not of pipes or standard input");
    IRON_FAIL_IF(first > tokens || count > tokens - first, err, IRON_E_ARG,
                 "tokens %" PRIu64 " to %" PRIu64 " are wanted, and there are %" PRIu64, first,
                 first + count, tokens);
    if (count == 0)
        return IRON_OK;
    iron__source_seek(source, first);
    return feed(engine, source, count, progress, context, err);
}
