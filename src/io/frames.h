/* SPDX-License-Identifier: MIT */
/*
 * frames.h: reading at any position of what a compressed file decompresses to.
 *
 * Possible for files that consist of parts which can be decompressed alone, all of known size:
 * frames of zstd and lz4, blocks of xz. Parts are decompressed by several threads at once.
 */
#ifndef IRON_IO_FRAMES_H
#define IRON_IO_FRAMES_H

#include "io/blocks.h"
#include "io/input.h"

typedef struct iron__frames iron__frames;

/* Finds the parts of a regular file, without decompressing. *out is NULL if sizes are unknown or a
 * part is larger than a bound: then the file can only be read in order. */
iron_status iron__frames_open(const iron__input *in, iron__codec codec, iron__frames **out,
                              iron_error *err);
/* The same for any compressed file: what can only be decompressed in order is decompressed once to
 * find its length, and again as it is read. */
iron_status iron__frames_open_any(const iron__input *in, iron__codec codec, iron__frames **out,
                                  iron_error *err);
void iron__frames_close(iron__frames *frames);

/* Gives the parts a cache of their own, for iron__frames_read_at. */
iron_status iron__frames_add_cache(iron__frames *frames, iron_error *err);

/* Decompressed bytes, all of them. */
uint64_t iron__frames_bytes(const iron__frames *frames);

/* Small parts are grouped into blocks of up to 1 MiB: how many there are, how large each is, and
 * decompressing one (`in` is the file, open). May be called from several threads at once. */
uint64_t iron__frames_block_count(const iron__frames *frames);
uint64_t iron__frames_block_bytes(const iron__frames *frames, uint64_t index);
iron_status iron__frames_decode(const iron__frames *frames, const iron__input *in, uint64_t index,
                                iron__block *out, iron_error *err);

/* The block with a decompressed byte, and where it is in there. */
uint64_t iron__frames_find(const iron__frames *frames, uint64_t at, size_t *offset);

/* Reads bytes at ... at+want-1, which must exist, from the file's blocks. May be called from
 * several threads at once. */
iron_status iron__frames_read(const iron__frames *frames, const iron__blocks_range *blocks,
                              uint64_t at, void *to, size_t want, const atomic_bool *stop,
                              iron_error *err);
/* The same, from the parts' own cache. */
iron_status iron__frames_read_at(const iron__frames *frames, uint64_t at, void *to, size_t want,
                                 const atomic_bool *stop, iron_error *err);

#endif
