/* SPDX-License-Identifier: MIT */
/*
 * seal_device.c: a GPU that seals tokens: for digests of tokens in its memory, and for scans of
 * whole streams.
 */
#include "digest/digest_internal.h"

#include "core/fail.h"

/* Longer than any stream: its one batch is never closed. */
#define NO_BATCH_END (UINT64_C(1) << 63)

void iron__seal_device_close(iron__seal_device *device) {
    iron__gpu_feed_destroy(device->feed);
    iron__nodes_deinit(&device->nodes);
    iron_lattice_destroy(device->lattice);
    *device = (iron__seal_device){.feed = NULL};
}

iron_status iron__seal_device_open(iron__seal_device *d, const iron__seal_device_config *c,
                                   iron_error *err) {
    iron__gpu_feed_config config = {
        .backend = c->backend,
        .device = c->device,
        .tokens = {.row = iron__tokens_gpu_row_find("champion"),
                   .allocator = c->allocator,
                   .batch = NO_BATCH_END,
                   .nodes = 1,
                   .vocab = 2, /* of the contribution, which is not computed */
                   .outputs = IRON_TOKENS_SEAL | IRON_TOKENS_STATS | IRON_TOKENS_SEAL_ONLY,
                   .last = (uint32_t)(c->vocab - 1)},
        .pool = c->pool,
        .sharers = c->sharers,
    };
    iron_status status;

    *d = (iron__seal_device){.feed = NULL};
    status = iron_lattice_create(NULL, 0, &d->lattice, err);
    if (status == IRON_OK)
        status = iron__nodes_init(&d->nodes, 1, d->lattice, NULL, c->allocator, err);
    config.tokens.lattice = d->lattice;
    if (status == IRON_OK)
        status = iron__gpu_feed_create(&config, &d->feed, err);
    if (status != IRON_OK)
        iron__seal_device_close(d);
    return status;
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
