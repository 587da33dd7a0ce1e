/* SPDX-License-Identifier: MIT */
/*
 * residency.h: what the files of the op residency share: the answer, the problem, and the rows.
 */
#ifndef IRON_OPS_RESIDENCY_RESIDENCY_H
#define IRON_OPS_RESIDENCY_RESIDENCY_H

#include "ops/op.h"

/* Over all words of the stream, keys being replaced by key ^ table[...]. */
typedef struct iron__residency_answer {
    uint64_t sum;  /* modulo 2^64 */
    uint64_t xors; /* below 2^32 */
} iron__residency_answer;

/* The axis "table" counts MiB. */
#define IRON_RESIDENCY_TABLE_MAX 64.0

static inline uint64_t iron__residency_table_bytes(const iron__case *c) {
    return (uint64_t)c->at[0] << 20;
}

/* Where in a table of so many words a key points to: all places as likely, without a division. */
static inline uint32_t iron__residency_place(uint32_t key, uint32_t words) {
    return (uint32_t)((uint64_t)key * words >> 32);
}

iron_status iron__residency_make(iron__problem *out, iron__team *team, iron_error *err);
void iron__residency_unmake(iron__problem *problem);
bool iron__residency_check(const iron__problem *problem, const void *output, char *text,
                           size_t size);

bool iron__residency_contender_at(size_t index, iron__contender *out);

/* Makes the device's cache what a contender wants: so many bytes set aside, and nothing in it that
 * somebody else's kernels have marked (is_marking: this one's do it themselves). Asks the driver
 * only where something changes. */
iron_status iron__residency_settle(iron__gpu_device *device, uint64_t bytes, bool is_marking,
                                   iron_error *err);

#endif
