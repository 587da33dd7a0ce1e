/* SPDX-License-Identifier: MIT */
/*
 * scan_gpu.c: a whole stream on a GPU: the ring's readers fill page-locked slots, the device seals
 * what they hold. What has no page-locked slots is fed from ordinary ones.
 */
#include "core/fail.h"
#include "digest/scan.h"
#include "digest/seal_device.h"
#include "feed/ring.h"

typedef struct gpu_scan {
    iron__scan *scan;
    iron__team *team;
    iron__seal_device device;
    void *slots[IRON_FEED_SLOTS_MAX];
    char *memory; /* of slots that are not the device's */
    iron__ring *ring;
    uint64_t done;
} gpu_scan;

static iron_status open_ring(gpu_scan *g, iron_error *err) {
    iron__ring_options o = {
        .source = g->scan->source, .slots = g->slots, .allocator = iron__allocator_default()};

    iron__ring_take_shape(&o, iron__gpu_feed_shape(g->device.feed));
    o.slot_bytes = iron__gpu_feed_slot_bytes(g->device.feed, g->scan->dtype);
    if (iron__gpu_feed_has_slots(g->device.feed)) {
        IRON_TRY(iron__gpu_feed_slots(g->device.feed, g->slots, err));
        return iron__ring_create(&o, &g->ring, err);
    }
    g->memory = iron__allocate(o.allocator, o.slot_count, o.slot_bytes, "slots", err);
    if (!g->memory)
        return IRON_E_NOMEM;
    for (size_t k = 0; k < o.slot_count; k++)
        g->slots[k] = g->memory + k * o.slot_bytes;
    return iron__ring_create(&o, &g->ring, err);
}

static iron_status feed_slot(gpu_scan *g, size_t slot, size_t count, iron_error *err) {
    iron__tokens_view view = {g->scan->dtype, g->slots[slot], count};
    size_t released = 1;

    IRON_TRY(iron__view_check(&view, g->done, err));
    if (g->memory)
        IRON_TRY(iron__gpu_feed_host(g->device.feed, &view, err));
    else
        IRON_TRY(iron__gpu_feed_slot(g->device.feed, slot, view.dtype, view.count, &released, err));
    for (size_t k = 0; k < released; k++)
        iron__ring_free(g->ring);
    return IRON_OK;
}

static iron_status run(gpu_scan *g, iron_error *err) {
    for (;;) {
        size_t slot, count;

        IRON_TRY(iron__ring_next(g->ring, &slot, &count, err));
        if (count == 0)
            return IRON_OK;
        IRON_TRY(feed_slot(g, slot, count, err));
        g->done += count;
        IRON_TRY(iron__scan_tell(g->scan, g->done, err));
    }
}

static iron_status build(gpu_scan *g, iron_error *err) {
    iron__seal_device_config config = {.backend = g->scan->backend,
                                       .device = g->scan->options.device,
                                       .vocab = g->scan->options.vocab,
                                       .allocator = iron__allocator_default()};

    IRON_TRY(iron__team_create(g->scan->threads, config.allocator, &g->team, err));
    config.team = g->team;
    IRON_TRY(iron__seal_device_open(&g->device, &config, err));
    IRON_TRY(iron__seal_device_begin(&g->device, 0, err));
    return open_ring(g, err);
}

iron_status iron__scan_gpu(iron__scan *scan, iron_error *err) {
    gpu_scan g = {.scan = scan};
    iron_manifest *m = scan->manifest;
    iron_status status = build(&g, err);

    if (status == IRON_OK)
        status = run(&g, err);
    if (status == IRON_OK)
        status = iron__seal_device_fetch(&g.device, &m->words, &m->stats, err);
    iron__ring_destroy(g.ring); /* nobody fills slots any more, then they may go */
    iron__seal_device_close(&g.device);
    iron__team_destroy(g.team);
    iron__release(iron__allocator_default(), g.memory);
    scan->count = g.done;
    return status;
}
