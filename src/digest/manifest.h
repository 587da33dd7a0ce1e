/* SPDX-License-Identifier: MIT */
/*
 * manifest.h: the inside of iron_manifest, shared by those who make, write, read, join and compare
 * them.
 *
 * A stream's seal depends on positions, so it cannot tell that a chunk stands elsewhere. Chunks
 * therefore have words of their own: those of a stream that begins with the chunk. Where a cut
 * between parts goes through a chunk, both have a piece of it, with the chunk's positions; pieces
 * add up.
 *
 * Nor can a chunk's words tell that its content has moved by a few tokens. So a chunk also has a
 * mark: of all windows of IRON_MARK_TOKENS tokens that begin in it, the one whose hash is smallest,
 * and where it begins. The same text has the same smallest window, wherever it stands; from two
 * manifests alone a shift can be read off (marks.h).
 */
#ifndef IRON_DIGEST_MANIFEST_H
#define IRON_DIGEST_MANIFEST_H

#include "core/seal.h"
#include "core/token_stats.h"

#include <iron/iron_digest.h>

#define IRON_MARK_TOKENS 16u
#define IRON_MARK_NONE   UINT64_MAX

/* Whole numbers of a JSON file are exact up to here. */
#define IRON_MANIFEST_WHOLE_MAX (UINT64_C(1) << 53)

#define IRON_MANIFEST_SCHEMA  "iron.manifest/"
#define IRON_MANIFEST_VERSION 1u

typedef struct iron__chunk {
    uint64_t t, a, b; /* of the chunk as a stream of its own; the count follows from the place */
    uint64_t mark;    /* IRON_MARK_NONE: no window began in it */
    uint64_t mark_at; /* offset in the chunk */
} iron__chunk;

typedef struct iron__manifest_entry {
    char *path; /* from malloc */
    char format[16];
    iron_dtype dtype;
    uint64_t first, tokens;
    char sample[17]; /* iron__source_sample in hex; "": a pipe, or an older manifest */
} iron__manifest_entry;

struct iron_manifest {
    uint64_t first, tokens, stream_tokens;
    uint32_t part, parts; /* 0: the whole */
    uint64_t vocab;
    iron__seal_words words; /* at the stream's positions */
    iron__token_stats stats;
    uint64_t chunk_tokens; /* 0: no chunks */
    size_t chunk_count;    /* from chunk first / chunk_tokens of the stream on */
    iron__chunk *chunks;   /* from malloc, like the manifest */
    size_t file_count;
    iron__manifest_entry *files; /* all of the stream, in order */
    char *origin;                /* the file it was read from, for messages; NULL: none */
};

/* Position of chunk k's first token, and how many tokens of it the manifest has seen. */
uint64_t iron__manifest_chunk_first(const iron_manifest *m, size_t k);
uint64_t iron__manifest_chunk_tokens(const iron_manifest *m, size_t k);
/* How many chunks a range touches; 0 without chunks. */
uint64_t iron__manifest_chunks_of(uint64_t first, uint64_t tokens, uint64_t chunk_tokens);

/* 0, or a multiple of 4 that is not too small. */
iron_status iron__chunk_tokens_check(uint64_t chunk_tokens, iron_error *err);

/* From the text of a file; `name` is for messages. */
iron_status iron__manifest_parse(const char *name, const char *text, size_t length,
                                 iron_manifest **out, iron_error *err);
/* Does the manifest hold together? IRON_E_FORMAT: what, found, expected. */
iron_status iron__manifest_check(const iron_manifest *m, const char *name, iron_error *err);

#endif
