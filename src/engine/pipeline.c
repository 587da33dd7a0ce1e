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
 * they are sent. Otherwise a slot is free again as soon as it was fed.
 */
#include "core/cpu.h"
#include "core/fail.h"
#include "engine/engine.h"
#include "feed/ring.h"

/* 4 x 4 MiB stays inside a server's last-level cache: what was read is reduced from there. */
#define SLOTS      4u
#define SLOT_BYTES ((size_t)4 << 20)

/* Few threads would miss the core of a second reader; many do not miss it, and reduce faster than
 * one reader copies out of the page cache. */
#define MANY_THREADS 8u

/* Eight readers bring a page-cached file at 42 to 53 GB/s on a Xeon, as fast as PCIe 5 takes it;
 * one brings 5. */
#define GPU_READERS_MAX 8u

/* A feed from a source. */
typedef struct pipeline {
    iron_engine *engine;
    bool is_lent; /* the slots are the GPU's */
    void *slots[IRON_GPU_SLOTS];
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

static iron_status consume(const pipeline *p, const iron_source *source, iron_progress progress,
                           void *context, iron_error *err) {
    iron_dtype dtype = iron_source_dtype(source);
    uint64_t done = 0, total = iron_source_tokens(source);

    for (;;) {
        size_t slot, count;

        IRON_TRY(iron__ring_next(p->ring, &slot, &count, err));
        if (count == 0)
            return IRON_OK;
        IRON_TRY(feed_slot(p, slot, dtype, count, err));
        done += count;
        IRON_FAIL_IF(progress && progress(context, done, total), err, IRON_E_CANCELLED,
                     "cancelled after %llu tokens", (unsigned long long)done);
    }
}

static iron_status take_slots(pipeline *p, iron__ring_options *options, iron_error *err) {
    iron_engine *e = p->engine;
    uint32_t cpus = iron__cpu_threads();

    p->is_lent = e->gpu && iron__gpu_feed_has_slots(e->gpu);
    options->slots = p->slots;
    if (p->is_lent) {
        options->slot_count = IRON_GPU_SLOTS;
        options->slot_bytes = IRON_GPU_SLOT_BYTES;
        options->readers = cpus < 2 * GPU_READERS_MAX ? (cpus + 1) / 2 : GPU_READERS_MAX;
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

iron_status iron_engine_feed_source(iron_engine *engine, iron_source *source,
                                    iron_progress progress, void *context, iron_error *err) {
    iron__ring_options options = {.source = source, .allocator = engine->allocator};
    pipeline p = {.engine = engine};
    iron_status status = take_slots(&p, &options, err);

    if (status == IRON_OK)
        status = iron__ring_create(&options, &p.ring, err);
    if (status == IRON_OK)
        status = consume(&p, source, progress, context, err);
    iron__ring_destroy(p.ring);
    if (p.is_lent) {
        /* nobody fills slots any more; what was sent must have left them before others do */
        iron_status sent = iron__gpu_feed_release(engine->gpu, status == IRON_OK ? err : NULL);

        status = status == IRON_OK ? sent : status;
    }
    iron__release(engine->allocator, p.memory);
    return status;
}
