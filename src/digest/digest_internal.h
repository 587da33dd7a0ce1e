/* SPDX-License-Identifier: MIT */
/*
 * digest_internal.h: what the files of this folder share: chunks, manifests, GPUs, scans.
 *
 *     digest.c         iron_digest: pieces in any order become a seal
 *     seal_device.c    a GPU that seals tokens, for digests and scans
 *     scan.c           iron_scan: files and pipes become a manifest, with bags of their samples
 *     bag.c            bags: order-free seals; what a sample is in which source
 *     manifest.c       manifests as objects and as JSON files
 *     parts.c          parts of a stream, and joining their manifests
 *     check.c          are files still what their manifest says?
 *     diff.c           where do two streams differ, and what happened?
 *     stat.c           iron_stat: statistics of a source
 */
#ifndef IRON_DIGEST_DIGEST_INTERNAL_H
#define IRON_DIGEST_DIGEST_INTERNAL_H

#include "core/contribution.h"
#include "core/seal.h"
#include "core/thread_pool.h"
#include "feed/gpu_feed.h"
#include "feed/stored.h"
#include "formats/dtype.h"
#include "formats/format.h"
#include "formats/source.h"
#include "ops/tokens/tokens.h"

#include <iron/iron_digest.h>

/* A GPU that takes tokens for their seal and statistics only: a feed whose nodes are not read. */
typedef struct iron__seal_device {
    iron__gpu_feed *feed;
    iron_lattice *lattice; /* a feed has nodes, as an engine has: one, and this is its lattice */
    iron__nodes nodes;
    uint64_t first; /* position of the first token since begin */
} iron__seal_device;

typedef struct iron__seal_device_config {
    size_t backend; /* as gpu/gpu.h counts them, and its device */
    uint32_t device;
    uint64_t vocab;          /* 1 ... 2^32 */
    uint32_t sharers;        /* how many devices seal at the same time; 0: this one */
    iron__thread_pool *pool; /* borrowed */
    const iron_allocator *allocator;
} iron__seal_device_config;

iron_status iron__seal_device_open(iron__seal_device *device,
                                   const iron__seal_device_config *config, iron_error *err);
/* Takes a struct of zeros, too. */
void iron__seal_device_close(iron__seal_device *device);
/* Starts anew; the position of the next token is a multiple of 4. */
iron_status iron__seal_device_begin(iron__seal_device *device, uint64_t position, iron_error *err);
/* Words and statistics of the tokens since then, with their own count. */
iron_status iron__seal_device_fetch(iron__seal_device *device, iron__seal_words *words,
                                    iron__token_stats *stats, iron_error *err);

/* Adds a few tokens, one by one. */
static inline void iron__stats_add(iron__token_stats *stats, const uint32_t *tokens, size_t count,
                                   uint64_t position, uint64_t vocab) {
    for (size_t k = 0; k < count; k++) {
        uint32_t t = tokens[k];
        iron__token_stats one = {0, UINT64_MAX, 0, t, t};

        if (t >= vocab) {
            one.out_of_vocab = 1;
            one.first_position = position + k;
            one.first_value = t;
        }
        *stats = iron__token_stats_merge(*stats, one);
    }
}

/* Chunks and manifests.
 *
 * A stream's seal depends on positions, so it cannot show that a chunk is elsewhere. Chunks
 * therefore have words of their own: those of a stream that begins with the chunk. Where a cut
 * between parts goes through a chunk, both parts have a piece of it, with the chunk's positions;
 * pieces add up.
 *
 * Nor can a chunk's words show that its content has moved by a few tokens. So a chunk also has a
 * mark, which others call a minimizer: of all windows of IRON_MARK_TOKENS tokens that begin in it,
 * the one whose hash is smallest, and where it begins. The same text has the same smallest window
 * wherever it is, so a shift can be read off two manifests alone (scan.c defines marks). */

#define IRON_MARK_TOKENS 16u
#define IRON_MARK_NONE   UINT64_MAX

/* Integers in JSON are exact up to here. */
#define IRON_MANIFEST_WHOLE_MAX (UINT64_C(1) << 53)

typedef struct iron__chunk {
    uint64_t t, a, b; /* of the chunk as a stream of its own; the count follows from the place */
    uint64_t mark;    /* IRON_MARK_NONE: no candidate window begins in it */
    uint64_t mark_at; /* offset in the chunk */
} iron__chunk;

typedef struct iron__manifest_entry {
    char *path; /* from malloc */
    char format[16];
    char compression[8]; /* "": none */
    char *column;        /* of a table, from malloc; or NULL */
    iron_dtype dtype;
    uint64_t first, tokens;
    char sample[17];        /* iron__source_sample in hex; "": a pipe, or an older manifest */
    iron__seal_words words; /* of its quads that begin in the scanned range, as a stream of its
                               own; zeros if the manifest has no seals of files */
} iron__manifest_entry;

struct iron_manifest {
    uint64_t first, tokens, stream_tokens;
    uint32_t part, parts; /* 0: the whole stream */
    uint64_t vocab;
    iron__seal_words words; /* at the stream's positions */
    iron__token_stats stats;
    uint64_t chunk_tokens; /* 0: no chunks */
    size_t chunk_count;    /* from chunk first / chunk_tokens of the stream on */
    iron__chunk *chunks;   /* from malloc, like the manifest */
    size_t file_count;
    iron__manifest_entry *files; /* all of the stream, in order */
    bool has_file_seals;         /* version 2; version 1 has none */
    iron_bag_cut bag_cut;        /* NONE: no bag */
    iron_bag bag;                /* of the samples that begin in the range */
    char *origin;                /* the file it was read from, for messages, or NULL */
};

/* Position of chunk k's first token, and how many tokens of the chunk the manifest covers. */
static inline uint64_t iron__manifest_chunk_first(const iron_manifest *m, size_t k) {
    return (m->first / m->chunk_tokens + k) * m->chunk_tokens;
}

static inline uint64_t iron__manifest_chunk_tokens(const iron_manifest *m, size_t k) {
    uint64_t first = iron__manifest_chunk_first(m, k), end = first + m->chunk_tokens;
    uint64_t seen_end = m->first + m->tokens;

    first = first > m->first ? first : m->first;
    end = end < seen_end ? end : seen_end;
    return end - first;
}

/* Seals of files.
 *
 * The seal of a file is that of a stream that begins with it, so its quads do not lie where the
 * stream's do unless the file begins at a multiple of 4. A quad of a file belongs to the piece or
 * part in which it begins, and its last tokens may be in the next one. So the words of pieces and
 * parts add up here as well. */

/* How many of the file's first tokens are in quads that begin before the position. */
static inline uint64_t iron__file_tokens_before(uint64_t first, uint64_t tokens,
                                                uint64_t position) {
    uint64_t before = position > first ? (position - first + 3) / 4 * 4 : 0;

    return before < tokens ? before : tokens;
}

/* How many of the file's tokens are in the manifest's words of it. */
static inline uint64_t iron__manifest_file_tokens(const iron_manifest *m, size_t index) {
    const iron__manifest_entry *f = &m->files[index];

    return iron__file_tokens_before(f->first, f->tokens, m->first + m->tokens) -
           iron__file_tokens_before(f->first, f->tokens, m->first);
}

/* How many chunks a range touches; 0 without chunks. */
uint64_t iron__manifest_chunks_of(uint64_t first, uint64_t tokens, uint64_t chunk_tokens);

/* Whether samples are what the files' format cuts them into. */
static inline bool iron__cut_is_own(iron_bag_cut_kind kind) {
    return kind == IRON_BAG_CUT_ROWS || kind == IRON_BAG_CUT_DOCUMENTS ||
           kind == IRON_BAG_CUT_FORMAT;
}

/* Refuses a chunk size that is neither 0 nor a multiple of 4 and at least IRON_CHUNK_TOKENS_MIN. */
#define IRON_CHUNK_TOKENS_MIN 1024u
iron_status iron__chunk_tokens_check(uint64_t chunk_tokens, iron_error *err);

static inline bool iron__words_equal(const iron__seal_words *x, const iron__seal_words *y) {
    return x->count == y->count && x->t == y->t && x->a == y->a && x->b == y->b;
}

/* Fills a result; its struct_size was checked. */
void iron__digest_result_set(iron_digest_result *result, iron__seal_words words,
                             const iron__token_stats *stats, uint64_t vocab);

/* A chunk without tokens; and adding a piece of the same chunk to it. */
static inline iron__chunk iron__chunk_empty(void) { return (iron__chunk){.mark = IRON_MARK_NONE}; }
void iron__chunk_add(iron__chunk *chunk, const iron__chunk *piece);

/* Scans. */

/* What a scan is for. */
typedef enum iron__scan_what {
    IRON_SCAN_MANIFEST,   /* a manifest to be written */
    IRON_SCAN_FILE_SEALS, /* a comparison: seals of files, also without chunks, but no samples */
    IRON_SCAN_SEAL,       /* the stream alone; the manifest lists no files */
    IRON_SCAN_BAG         /* the bag alone: neither seals nor statistics */
} iron__scan_what;

/* iron_scan of what follows from token `base` on, as a stream of its own. */
iron_status iron__scan(iron_source *source, iron__scan_what what, uint64_t base,
                       const iron_scan_options *options, iron_manifest **out, iron_error *err);

/* Files of a seekable source, and their rows or documents (bag.c). */

/* Where each file begins, and the end of the last; free() it. NULL: err is filled. */
uint64_t *iron__file_starts(const iron_source *source, iron_error *err);

/* The documents of the file that a thread is at. */
typedef struct iron__document_walk {
    iron_documents *documents; /* NULL: none yet */
    size_t file;
    uint64_t base; /* where the file begins */
} iron__document_walk;

/* Calls `use` for the documents that begin at positions first ... end-1, one file after another.
 * It gets tokens of the file that begins at walk->base. Files without tokens are left out. */
iron_status iron__document_walk_range(iron__document_walk *walk, const iron_source *source,
                                      const uint64_t *starts, uint64_t first, uint64_t end,
                                      iron__document_use use, void *context,
                                      const atomic_bool *stop, iron_error *err);

/* How many documents, all empty, there are in files without tokens that lie in the range, or at its
 * end if it is the last. */
uint64_t iron__documents_without_tokens(const iron_source *source, const uint64_t *starts,
                                        uint64_t first, uint64_t end, bool is_last);

/* Adds tokens begin ... end-1 of a checked view to a seal; up to three are carried over. `wide` is
 * scratch memory: IRON_WIDEN_TOKENS, with IRON_PREFETCH_BYTES after. */
void iron__seal_view(const iron__seal_variant *row, const iron__tokens_view *view, size_t begin,
                     size_t end, uint32_t *wide, iron__seal *seal);

/* Adds a sample with these words, so many times. */
static inline void iron__bag_add(iron_bag *bag, iron__seal_words words, uint64_t times) {
    bag->hi += times * iron__seal_fold(0, words);
    bag->lo += times * iron__seal_fold(1, words);
    bag->samples += times;
}

/* Fills a result; the error is about its struct_size. */
iron_status iron__bag_result_set(iron_bag_result *result, iron_bag bag, iron_bag_cut cut,
                                 iron_error *err);

#endif
