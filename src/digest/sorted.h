/* SPDX-License-Identifier: MIT */
/*
 * sorted.h: entries in the order of a 64-bit key, for those who come in any order.
 *
 * A shuffled data loader leaves a gap behind almost every piece: millions of entries, and each new
 * one lies anywhere among them. One sorted array would move half of itself for it, tens of
 * megabytes. So entries lie in blocks of at most IRON_SORTED_BLOCK, and a row of slots, one a
 * block, says with which key each begins: an insertion moves a part of one block. A full block is
 * split in halves, or begun anew where keys only grow; neighbours that have become sparse are
 * joined. Looking behind the last key, as streams in order do, costs a few steps in the last block.
 *
 * Room is made in calls of their own that may fail; nothing else here can.
 */
#ifndef IRON_DIGEST_SORTED_H
#define IRON_DIGEST_SORTED_H

#include "core/memory.h"

#include <stdbool.h>

#define IRON_SORTED_BLOCK ((size_t)128)

typedef struct iron__sorted_slot {
    uint64_t key; /* of the first entry */
    unsigned char *entries;
    size_t count; /* never 0 */
} iron__sorted_slot;

/* Entries are structs that begin with their key, a uint64_t; each key stands once. */
typedef struct iron__sorted {
    const iron_allocator *allocator;
    size_t entry_bytes; /* a multiple of 8 */
    size_t count;       /* of all entries */
    iron__sorted_slot *slots;
    size_t slot_count, slot_room;
    void *spare; /* blocks to come: each begins with a pointer to the next */
    size_t spare_count;
} iron__sorted;

/* Where an entry is; good until the next insertion or removal. */
typedef struct iron__sorted_place {
    size_t slot, index;
} iron__sorted_place;

iron__sorted iron__sorted_make(size_t entry_bytes, const iron_allocator *allocator);
void iron__sorted_deinit(iron__sorted *s);

/* Room for so many insertions anywhere; or for so many in the order of their keys, behind all. */
iron_status iron__sorted_reserve(iron__sorted *s, size_t insertions, iron_error *err);
iron_status iron__sorted_reserve_behind(iron__sorted *s, size_t insertions, iron_error *err);

/* Gives back what was reserved and not used, but for so many blocks. */
void iron__sorted_trim(iron__sorted *s, size_t blocks);

/* The last entry whose key is not above `key`, or NULL; the place where it is. */
void *iron__sorted_upto(const iron__sorted *s, uint64_t key, iron__sorted_place *place);

/* The first entry, and the one behind the place, which moves on to it; NULL if there is none. */
void *iron__sorted_first(const iron__sorted *s, iron__sorted_place *place);
void *iron__sorted_next(const iron__sorted *s, iron__sorted_place *place);

/* Inserts a copy of an entry whose key is not there; needs room. */
void iron__sorted_insert(iron__sorted *s, const void *entry);
void iron__sorted_remove(iron__sorted *s, iron__sorted_place place);
/* The entry's key was changed in place, and is still between its neighbours'. */
void iron__sorted_rekey(iron__sorted *s, iron__sorted_place place);

#endif
