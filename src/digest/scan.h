/* SPDX-License-Identifier: MIT */
/*
 * scan.h: the inside of iron_scan.
 *
 *   scan.c         options, ranges, the manifest's frame; who runs it
 *   scan_files.c   seekable sources: every thread reads its own pieces and reduces them in cache
 *   scan_pipe.c    everything else: the ring reads ahead, the threads share each slot
 *   scan_crew.c    what both are made of: threads that take pieces of a stretch
 *   scan_piece.c   one piece: words, statistics, chunks, marks
 *   scan_gpu.c     a GPU, for whole streams without chunks
 */
#ifndef IRON_DIGEST_SCAN_H
#define IRON_DIGEST_SCAN_H

#include "core/team.h"
#include "digest/manifest.h"
#include "formats/dtype.h"
#include "ops/tokens/quads.h"
#include "ops/tokens/tokens.h"

#include <stdatomic.h>

/* A manifest is JSON of at most 256 MiB; a chunk is a line of at most 96 bytes. */
#define IRON_CHUNKS_MAX (UINT64_C(1) << 21)

/* Fast rows ask for lines of memory this far behind what they read. Where no memory is, asking
 * takes as long as everything else: so there must be some behind every buffer. */
#define IRON_SCAN_SLACK ((size_t)IRON_AHEAD_BYTES)

typedef struct iron__scan {
    iron_source *source;
    iron_scan_options options; /* checked */
    uint32_t threads;          /* at least 1 */
    size_t backend;            /* as gpu/gpu.h counts them; their count: the CPU */
    iron_dtype dtype;
    bool is_seekable;
    uint64_t base;  /* where in the source position 0 lies */
    uint64_t first; /* of the range */
    uint64_t count; /* IRON_COUNT_UNKNOWN: nobody knows before the end */
    uint64_t stream_tokens;
    iron_manifest *manifest; /* what is found goes in here; chunks of a known range have room */
    size_t chunk_room;
    pthread_mutex_t chunk_mutex;   /* of chunks that several pieces belong to */
    const iron__seal_variant *row; /* the fastest for this processor */
} iron__scan;

/* iron_scan of what follows in a seekable source from token `base` on, as a stream of its own; the
 * manifest then lists no files. */
iron_status iron__scan_from(iron_source *source, uint64_t base, const iron_scan_options *options,
                            iron_manifest **out, iron_error *err);

/* Either runs the whole scan. */
iron_status iron__scan_files(iron__scan *scan, iron_error *err);
iron_status iron__scan_pipe(iron__scan *scan, iron_error *err);
iron_status iron__scan_gpu(iron__scan *scan, iron_error *err);

/* Makes room for the chunks of tokens up to `end`; not while pieces are being taken. */
iron_status iron__scan_reserve(iron__scan *scan, uint64_t end, iron_error *err);
/* The chunk that holds a position of the range. */
iron__chunk *iron__scan_chunk(const iron__scan *scan, uint64_t position);
/* Tells the caller how far it is; IRON_E_CANCELLED if he has enough. */
iron_status iron__scan_tell(const iron__scan *scan, uint64_t done, iron_error *err);

/* What a thread has found so far. */
typedef struct iron__scan_tally {
    iron__seal_words words;
    iron__token_stats stats;
    uint32_t *wide; /* room for IRON_WIDEN_TOKENS, and behind it IRON_SCAN_SLACK bytes */
} iron__scan_tally;

/* Tokens in memory: `view` from position `first` on, a multiple of 4, and `ahead` tokens behind
 * them, which are not taken but complete windows: 15, or all that the stream still has. Only the
 * stream's last piece may be no multiple of 4. */
typedef struct iron__scan_piece {
    iron__tokens_view view;
    size_t ahead;
    uint64_t first;
} iron__scan_piece;

/* IRON_E_FORMAT: a token that is none. Any thread. */
iron_status iron__scan_take_piece(iron__scan *scan, const iron__scan_piece *piece,
                                  iron__scan_tally *tally, iron_error *err);

/* Threads that take the pieces of a stretch of the stream. */
typedef struct iron__crew iron__crew;

/* Brings tokens offset ... offset+count-1 of the stretch into memory: into `buffer`, or they are
 * there already. Any thread; gives up once *stop is set. */
typedef iron_status (*iron__crew_fetch)(void *context, uint64_t offset, size_t count, void *buffer,
                                        const void **tokens, const atomic_bool *stop,
                                        iron_error *err);

typedef struct iron__scan_stretch {
    uint64_t first, count; /* of the stream */
    uint64_t ahead;        /* tokens that can be fetched behind it */
    iron__crew_fetch fetch;
    void *context;
} iron__scan_stretch;

/* At most `pieces` are ever taken at once; needs_buffers: fetch reads into memory of the crew's. */
iron_status iron__crew_create(iron__scan *scan, uint64_t pieces, bool needs_buffers,
                              iron__crew **out, iron_error *err);
void iron__crew_destroy(iron__crew *crew);
size_t iron__crew_piece_tokens(const iron__scan *scan);
/* The first error in the stream's order, after every piece before it. */
iron_status iron__crew_run(iron__crew *crew, const iron__scan_stretch *stretch, iron_error *err);
/* Adds what all threads found to the manifest; once. */
void iron__crew_settle(iron__crew *crew);

#endif
