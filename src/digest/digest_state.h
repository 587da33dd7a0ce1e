/* SPDX-License-Identifier: MIT */
/*
 * digest_state.h: a digest as bytes, the same on every machine.
 *
 * Version 1, all numbers little-endian:
 *
 *     0    "IRONDGST"
 *     8    u32 version, u32 seal version
 *     16   u64 vocab
 *     24   u64 count, T, A, B            of whole quads alone
 *     56   u64 out of vocab, position of the first
 *     72   u32 its value, min, max, 0
 *     88   u64 stretches, u64 open quads
 *     104  stretches:   u64 first, u64 end
 *          open quads:  u64 quad, u32 tokens[4], u32 which are there, u32 0
 *     -8   u64 FNV-1a of everything before it
 */
#ifndef IRON_DIGEST_DIGEST_STATE_H
#define IRON_DIGEST_DIGEST_STATE_H

#include "digest/digest.h"

#define IRON_DIGEST_STATE_MAGIC    "IRONDGST"
#define IRON_DIGEST_STATE_VERSION  1u
#define IRON_DIGEST_HEADER_BYTES   104u
#define IRON_DIGEST_STRETCH_BYTES  16u
#define IRON_DIGEST_QUAD_BYTES     32u
#define IRON_DIGEST_CHECKSUM_BYTES 8u

/* Could a digest that saw these positions have these words, tokens and statistics? One sentence
 * says what cannot be: IRON_E_FORMAT. */
iron_status iron__digest_state_check(const iron__digest *d, iron_error *err);

#endif
