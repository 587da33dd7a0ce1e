/* SPDX-License-Identifier: MIT */
/*
 * replay.h: reading at any position of a file that can only be decompressed in order.
 *
 * The file is decompressed once to find its length, and again as it is read: reading in order, in
 * two or three places at a time, costs nothing more; going back starts from the beginning.
 */
#ifndef IRON_IO_REPLAY_H
#define IRON_IO_REPLAY_H

#include "io/blocks.h"
#include "io/input.h"

typedef struct iron__replay iron__replay;

#define IRON_REPLAY_BLOCK_BYTES ((size_t)1 << 20)

/* Decompresses all of a regular file, which `in` has open, to count its bytes. */
iron_status iron__replay_open(const iron__input *in, iron__codec codec, const atomic_bool *stop,
                              iron__replay **out, iron_error *err);
void iron__replay_close(iron__replay *replay);

uint64_t iron__replay_bytes(const iron__replay *replay);

/* Block `index` of IRON_REPLAY_BLOCK_BYTES decompressed bytes; the last one may be shorter. May be
 * called from several threads, one of which decompresses at a time. */
iron_status iron__replay_decode(iron__replay *replay, uint64_t index, iron__block *out,
                                const atomic_bool *stop, iron_error *err);

#endif
