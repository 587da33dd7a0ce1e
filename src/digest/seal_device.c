/* SPDX-License-Identifier: MIT */
/* seal_device.c: see seal_device.h. */
#include "digest/seal_device.h"

#include "core/fail.h"

/* Longer than any stream: its one batch is never closed. */
#define NO_BATCH_END (UINT64_C(1) << 63)

static iron_status build(iron__seal_device *d, const iron__seal_device_config *c, iron_error *err) {
    iron__gpu_feed_config config = {
        .backend = c->backend,
        .device = c->device,
        .tokens = {.row = iron__tokens_gpu_row_find("champion"),
                   .allocator = c->allocator,
                   .batch = NO_BATCH_END,
                   .nodes = 1,
                   .vocab = 2, /* of the contribution, which there is none of */
                   .lanes = IRON_LANE_SEAL | IRON_LANE_STATS | IRON_LANE_ALONE,
                   .last = (uint32_t)(c->vocab - 1)},
        .team = c->team,
    };

    IRON_TRY(iron_lattice_create(NULL, 0, &d->lattice, err));
    IRON_TRY(iron__nodes_init(&d->nodes, 1, d->lattice, NULL, c->allocator, err));
    config.tokens.lattice = d->lattice;
    return iron__gpu_feed_create(&config, &d->feed, err);
}

iron_status iron__seal_device_open(iron__seal_device *device,
                                   const iron__seal_device_config *config, iron_error *err) {
    iron_status status;

    *device = (iron__seal_device){.feed = NULL};
    status = build(device, config, err);
    if (status != IRON_OK)
        iron__seal_device_close(device);
    return status;
}

void iron__seal_device_close(iron__seal_device *device) {
    iron__gpu_feed_destroy(device->feed);
    iron__nodes_deinit(&device->nodes);
    iron_lattice_destroy(device->lattice);
    *device = (iron__seal_device){.feed = NULL};
}

iron_status iron__seal_device_begin(iron__seal_device *device, uint64_t position, iron_error *err) {
    iron__contribution before = {.count = position};
    iron__quads_total nothing = {.stats = iron__token_stats_neutral()};

    device->first = position;
    IRON_TRY(iron__gpu_feed_begin(device->feed, &device->nodes, before, 0, err));
    return iron__gpu_feed_seal_begin(device->feed, &nothing, err);
}

iron_status iron__seal_device_fetch(iron__seal_device *device, iron__seal_words *words,
                                    iron__token_stats *stats, iron_error *err) {
    iron__quads_total total;

    IRON_TRY(iron__gpu_feed_seal_fetch(device->feed, &total, err));
    *words = iron__seal_total(&total.seal);
    words->count -= device->first;
    *stats = total.stats;
    return IRON_OK;
}
