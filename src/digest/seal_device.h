/* SPDX-License-Identifier: MIT */
/*
 * seal_device.h: a GPU that takes tokens for their seal and statistics, and for nothing else: a
 * feed (feed/gpu_feed.h) whose nodes nobody looks at.
 */
#ifndef IRON_DIGEST_SEAL_DEVICE_H
#define IRON_DIGEST_SEAL_DEVICE_H

#include "feed/gpu_feed.h"

typedef struct iron__seal_device {
    iron__gpu_feed *feed;
    iron_lattice *lattice; /* the feed has nodes, as an engine has: one, and this is its lattice */
    iron__nodes nodes;
    uint64_t first; /* position of the first token since begin */
} iron__seal_device;

typedef struct iron__seal_device_config {
    size_t backend; /* as gpu/gpu.h counts them, and its device */
    uint32_t device;
    uint64_t vocab;   /* 1 ... 2^32 */
    iron__team *team; /* borrowed */
    const iron_allocator *allocator;
} iron__seal_device_config;

iron_status iron__seal_device_open(iron__seal_device *device,
                                   const iron__seal_device_config *config, iron_error *err);
/* Takes a struct of zeros, too. */
void iron__seal_device_close(iron__seal_device *device);

/* Forgets what was there; the next token's position is a multiple of 4. */
iron_status iron__seal_device_begin(iron__seal_device *device, uint64_t position, iron_error *err);

/* What the tokens since then have come to: words and statistics, with their own count. */
iron_status iron__seal_device_fetch(iron__seal_device *device, iron__seal_words *words,
                                    iron__token_stats *stats, iron_error *err);

#endif
