/* SPDX-License-Identifier: MIT */
/*
 * blocks.h: a cache of blocks that are expensive to produce: decoded or decompressed parts of
 * files, which many threads read in small pieces.
 *
 * A thread that needs a block which another thread is producing does not wait idly: it produces one
 * of the following blocks. So threads that read a file in order, each its own pieces, decode on all
 * cores. Memory is bounded by the number of blocks that the cache holds, and by their sizes.
 */
#ifndef IRON_IO_BLOCKS_H
#define IRON_IO_BLOCKS_H

#include <iron/iron.h>

#include <stdatomic.h>
#include <stdbool.h>

/* A block: bytes, and optionally places in it (the tokens with which rows begin). */
typedef struct iron__block {
    unsigned char *data; /* aligned to 64 bytes; room for `capacity` bytes */
    size_t bytes, capacity;
    uint64_t *places;
    size_t place_count, place_capacity;
} iron__block;

/* Makes room for that many bytes, or places, at least; keeps what is there. A block that has some
 * already grows to twice its size at least: more will follow. */
iron_status iron__block_reserve(iron__block *block, size_t bytes, iron_error *err);
iron_status iron__block_reserve_places(iron__block *block, size_t count, iron_error *err);
iron_status iron__block_add_place(iron__block *block, uint64_t place, iron_error *err);
/* Frees what it holds. */
void iron__block_clear(iron__block *block);

/* What the blocks of a cache are: 0 ... count-1, in the order in which they are usually needed. */
typedef struct iron__blocks_owner {
    uint64_t count;
    /* Produces a block; it is empty, but may have room from before. */
    iron_status (*fill)(void *context, uint64_t index, iron__block *block, const atomic_bool *stop,
                        iron_error *err);
    /* (optional) About how many bytes the block will hold, so that large ones are not produced
     * ahead. */
    uint64_t (*size)(void *context, uint64_t index);
    void *context;
} iron__blocks_owner;

typedef struct iron__blocks iron__blocks;

/* `threads`: how many will read at once. */
iron_status iron__blocks_create(uint32_t threads, iron__blocks **out, iron_error *err);
void iron__blocks_destroy(iron__blocks *blocks);

/* The block, produced now unless it is there; it stays until it is put back. A thread holds one
 * block of a cache at a time. */
iron_status iron__blocks_get(iron__blocks *blocks, const iron__blocks_owner *owner, uint64_t index,
                             const iron__block **out, const atomic_bool *stop, iron_error *err);
/* `used`: how many of its bytes the caller looked at. When they add up to the block, it is the
 * first to be replaced: its memory is still in the processor's cache. */
void iron__blocks_put(iron__blocks *blocks, const iron__block *block, size_t used);

/* Part of an owner: a file whose blocks 0, 1, ... are the owner's from `base` on. */
typedef struct iron__blocks_range {
    iron__blocks *cache;
    const iron__blocks_owner *owner;
    uint64_t base;
} iron__blocks_range;

#endif
