/* SPDX-License-Identifier: MIT */
/*
 * ledger_internal.h: the file of a ledger, and the records of a run as check.c and compare.c see
 * them.
 *
 *     recorder.c   writes a ledger
 *     ledgers.c    reads those of a run, and decides which records count
 *     check.c      findings within one run
 *     compare.c    the first difference between two runs
 *     trace.c      where in a dataset recorded samples come from
 *
 * A file is a header and frames, all little-endian. Each frame has a checksum over its kind, its
 * length and its payload, so that a torn end is recognised.
 *
 *     header    magic[8] version:u32 header_bytes:u32 rank:u32 world:u32 time_ns:u64 flags:u32
 *               zeros crc:u32                                                         64 bytes
 *     frame     kind:u32 bytes:u32 crc:u32 zero:u32, then the payload                 16 bytes
 *     STEP      step:u64 micro:u32 epoch:u32 tokens:u64 seal:2*u64 bag:2*u64 samples:u64
 *               time_ns:u64, then for each sample its seal: 2*u64                     72 + 16 n
 *     RESUME    world:u32 zero:u32 time_ns:u64                                        16 bytes
 *     END       time_ns:u64                                                           8 bytes
 */
#ifndef IRON_LEDGER_LEDGER_INTERNAL_H
#define IRON_LEDGER_LEDGER_INTERNAL_H

#include <iron/iron_ledger.h>

#include <stdbool.h>
#include <string.h>

#define LEDGER_MAGIC        "IRONLDGR"
#define LEDGER_VERSION      1u
#define LEDGER_HEADER_BYTES 64u
#define LEDGER_FRAME_BYTES  16u
#define LEDGER_STEP_BYTES   72u
#define LEDGER_SAMPLE_BYTES 16u
#define LEDGER_RESUME_BYTES 16u
#define LEDGER_END_BYTES    8u
/* A frame's length has 32 bits; this is 16 million samples in one micro step. */
#define LEDGER_FRAME_MAX (256u << 20)

#define LEDGER_WITHOUT_SAMPLES 1u /* flags of the header */

enum { LEDGER_STEP = 1, LEDGER_RESUME = 2, LEDGER_END = 3 };

static inline uint32_t iron__ledger_u32(const unsigned char *at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
static inline uint64_t iron__ledger_u64(const unsigned char *at) {
    return iron__ledger_u32(at) | (uint64_t)iron__ledger_u32(at + 4) << 32;
}

/* Whether these bytes are a whole header; and the checksum of a frame, whose payload follows. */
bool iron__ledger_header_is_valid(const unsigned char header[LEDGER_HEADER_BYTES]);
uint32_t iron__ledger_frame_crc(const unsigned char *frame, uint32_t bytes);
/* The length of the frame that begins here, with its header; 0: there is no whole one. */
size_t iron__ledger_frame(const unsigned char *at, size_t left);

/* What a STEP's payload says, besides its samples. */
typedef struct iron__ledger_step {
    uint64_t step, tokens, seal[2], time_ns;
    uint32_t micro, epoch;
    iron_bag bag;
} iron__ledger_step;

iron__ledger_step iron__ledger_step_read(const unsigned char *payload);

/* A part of a file: what was recorded between two resume marks. The parts of all ranks that ran at
 * the same time are one generation of the run. */
typedef struct iron__ledger_part {
    uint32_t world, generation;
    uint64_t time_ns;
} iron__ledger_part;

/* A record's place. Those of a run are sorted by step, rank, micro, generation and place, so that
 * records of one step and rank, a unit, are neighbours. */
typedef struct iron__ledger_entry {
    uint64_t step, offset; /* of the payload */
    uint32_t file, micro, epoch, generation;
} iron__ledger_entry;

typedef struct iron__ledger_file {
    iron_ledger_info info; /* its path is owned */
    const unsigned char *map;
    bool is_borrowed; /* the bytes are the caller's, and have no header */
    iron__ledger_part *parts;
    size_t part_count, part_capacity;
} iron__ledger_file;

/* A generation: it takes the place of everything that earlier ones recorded from its first step on.
 */
typedef struct iron__ledger_generation {
    uint32_t world;
    uint64_t time_ns, first_step, last_step; /* first > last: nothing was recorded */
    uint64_t limit;                          /* records from this step on do not count */
} iron__ledger_generation;

struct iron_ledgers {
    iron__ledger_file *files; /* sorted by rank */
    size_t file_count, file_capacity;
    iron__ledger_generation *generations;
    size_t generation_count;
    iron__ledger_entry *entries; /* those that count, */
    size_t count;
    iron__ledger_entry *history; /* then those that do not */
    size_t history_count, capacity;
    uint64_t steps, ranks;
};

/* The frames of a rank in memory, as they follow the header of a file; the first one is a RESUME
 * that stands for the header. */
typedef struct iron__ledger_frames {
    uint32_t rank;
    const unsigned char *bytes;
    size_t count;
} iron__ledger_frames;

/* The ledgers of a run whose frames are in memory, sorted by rank; they are borrowed. */
iron_status iron__ledgers_of_frames(const iron__ledger_frames *ranks, size_t count,
                                    iron_ledgers **out, iron_error *err);

static inline uint32_t iron__ledger_rank(const iron_ledgers *l, const iron__ledger_entry *e) {
    return l->files[e->file].info.rank;
}
static inline const unsigned char *iron__ledger_payload(const iron_ledgers *l,
                                                        const iron__ledger_entry *e) {
    return l->files[e->file].map + e->offset;
}
static inline iron__ledger_step iron__ledger_read(const iron_ledgers *l,
                                                  const iron__ledger_entry *e) {
    return iron__ledger_step_read(iron__ledger_payload(l, e));
}
/* The seals of a record's samples, 16 bytes each; *count is 0 if it was written without them. */
const unsigned char *iron__ledger_samples(const iron_ledgers *l, const iron__ledger_entry *e,
                                          uint64_t *count);

/* The end of the entries of the step, or of the step and rank, that begins at `from`. */
size_t iron__ledger_step_end(const iron__ledger_entry *e, size_t from, size_t count);
size_t iron__ledger_unit_end(const iron__ledger_entry *e, size_t from, size_t count);
/* The sum of the bags of entries from ... end-1. */
iron_bag iron__ledger_bag(const iron_ledgers *l, const iron__ledger_entry *e, size_t from,
                          size_t end);

/* Which of `parts` equal parts of the range of hashes a hash is in. */
static inline uint64_t iron__ledger_part_of(uint64_t hash, uint64_t parts) {
    return (uint64_t)(((unsigned __int128)hash * parts) >> 64);
}

static inline bool iron__ledger_bags_equal(const iron_bag *x, const iron_bag *y) {
    return x->hi == y->hi && x->lo == y->lo && x->samples == y->samples;
}

#endif
