/* SPDX-License-Identifier: MIT */
/* shape.c: the shape that was measured to be best. */
#include "feed/shape.h"

#include "core/cpu.h"

/* On an H200 with 16 Xeon cores beside it, of a page-cached file (bench-feed, 2026-11-16): eight
 * readers bring 57 GB/s and twelve 75, where PCIe 5 takes 54.6; more of them only get in each
 * other's way. A quarter of the processors is left to whoever else works here. */
#define READERS_MAX 12u

/* Slots of 8 MiB are fed at 53.2 GB/s, of 4 at 51.8, of 2 at 49.4: each send has its price. Larger
 * ones gain another per cent, and take three times as long to lock. Readers fill a slot together,
 * so that the first is there soon. */
#define SLOTS       8u
#define SLOT_BYTES  ((size_t)8 << 20)
#define PIECE_BYTES ((size_t)512 << 10)

/* A file that is hardly in the page cache comes faster past it: the disk has more to do at a time,
 * and nothing has to make room. But it is not in the cache afterwards either. */
#define DIRECT IRON_DIRECT_COLD

iron__feed_shape iron__feed_shape_default(void) {
    uint32_t cpus = iron__cpu_threads();

    return (iron__feed_shape){
        .readers = cpus < READERS_MAX * 4 / 3 ? (3 * cpus + 3) / 4 : READERS_MAX,
        .slot_count = SLOTS,
        .slot_bytes = SLOT_BYTES,
        .piece_bytes = PIECE_BYTES,
        .direct = DIRECT,
    };
}
