/* SPDX-License-Identifier: MIT */
/*
 * state_file.h: what a saved state looks like, little-endian:
 *
 *     header | xor_accumulators u32[] | potentials f32[] | activations f32[] | checksum u64
 *
 * The last word is FNV-1a, 64 bit, over all bytes before it.
 */
#ifndef IRON_ENGINE_STATE_FILE_H
#define IRON_ENGINE_STATE_FILE_H

#include "engine/engine.h"

#define IRON_STATE_MAGIC   "IRONSTAT"
#define IRON_STATE_VERSION 1u

typedef struct iron__state_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint64_t nodes, vocab, batch;
    uint32_t positions;
    uint32_t lattice_count;
    uint32_t lattice[IRON_LATTICE_MAX];
    uint64_t tokens, batches, sum;
    uint32_t xors;
    uint32_t with_seal;
    uint64_t seal_words[4];
    uint32_t seal_carry[3];
    uint32_t seal_carried;
} iron__state_header;

_Static_assert(sizeof(iron__state_header) == 384, "the header has no padding");

/* Bytes of the state of so many nodes. */
static inline uint64_t iron__state_room(uint64_t nodes) {
    return sizeof(iron__state_header) + nodes * (sizeof(uint32_t) + 2 * sizeof(float)) +
           sizeof(uint64_t);
}

/* An engine from the bytes of a state file; `name` is for messages. */
iron_status iron__state_parse(const char *name, const unsigned char *data, size_t bytes,
                              const iron_config *run, iron_engine **out, iron_error *err);

#endif
