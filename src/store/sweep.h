/* SPDX-License-Identifier: MIT */
/*
 * sweep.h: rows that belong to nothing any more: feeds and snapshots of engines that were deleted,
 * blocks of uploads that never became a feed. They are removed in small portions while nobody
 * waits, so that a deletion costs one row; what is left when the process ends is found again.
 */
#ifndef IRON_STORE_SWEEP_H
#define IRON_STORE_SWEEP_H

#include "store/inside.h"

typedef struct iron__sweep {
    bool is_wanted;
    int stage;     /* which table */
    uint64_t seen; /* engines, or uploads, up to this one are done */
} iron__sweep;

/* From the beginning. */
void iron__sweep_begin(iron__sweep *sweep);
/* One portion, as a transaction of its own. A failure is the store's. */
iron_status iron__sweep_some(iron__writer *writer, iron_error *err);

/* Uploads that have blocks and are no feed yet are noted; those that are not may be swept up. */
bool iron__upload_is_open(iron__store *store, uint64_t upload);

#endif
