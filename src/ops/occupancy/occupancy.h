/* SPDX-License-Identifier: MIT */
/*
 * occupancy.h: what the files of the op occupancy share: the function that is computed, the
 * problem, and the rows.
 */
#ifndef IRON_OPS_OCCUPANCY_OCCUPANCY_H
#define IRON_OPS_OCCUPANCY_OCCUPANCY_H

#include "ops/op.h"

/* What becomes of a word. Each step can be undone, so different words stay different. */
static inline uint32_t iron__occupancy_mix(uint32_t x) {
    x ^= x >> 16;
    x *= UINT32_C(0x7FEB352D);
    return x ^ x >> 15;
}

iron_status iron__occupancy_make(iron__problem *out, iron__team *team, iron_error *err);
void iron__occupancy_unmake(iron__problem *problem);
bool iron__occupancy_check(const iron__problem *problem, const void *output, char *text,
                           size_t size);

bool iron__occupancy_contender_at(size_t index, iron__contender *out);

/* The least local memory a group, in whole KiB up to most_bytes, with which a unit holds no more
 * than `groups`; groups_with tells how many it holds with so much. UINT64_MAX: even the most is too
 * little. */
typedef uint32_t (*iron__occupancy_groups_with)(void *context, uint64_t local_bytes);
uint64_t iron__occupancy_hold(uint32_t groups, uint64_t most_bytes,
                              iron__occupancy_groups_with groups_with, void *context);

#endif
