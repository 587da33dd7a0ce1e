/* SPDX-License-Identifier: MIT */
/*
 * scan_support.h: shared by the tests of scans, manifests and parts: files of tokens of any width,
 * scans of them, and simple references: the seal's reference, a loop over values, every window.
 */
#ifndef TESTS_UNIT_SCAN_SUPPORT_H
#define TESTS_UNIT_SCAN_SUPPORT_H

#include "core/hash.h"
#include "digest/digest_internal.h"
#include "source_support.h"

/* Tokens as they are stored; free() it. */
static inline void *stored_as(iron_dtype dtype, const uint32_t *tokens, size_t count) {
    unsigned char *data = grab(count * 8);
    size_t width = iron_dtype_bytes(dtype);

    for (size_t k = 0; k < count; k++) {
        uint64_t token = tokens[k];

        memcpy(data + k * width, &token, width); /* little-endian, as all machines here */
    }
    return data;
}

static inline void write_tokens(const char *path, iron_dtype dtype, const uint32_t *tokens,
                                size_t count) {
    void *data = stored_as(dtype, tokens, count);

    file_write(path, data, count * iron_dtype_bytes(dtype));
    free(data);
}

static inline iron_scan_options scan_options(uint32_t threads, uint64_t chunk_tokens) {
    iron_scan_options o;

    iron_scan_options_init(&o);
    o.threads = threads;
    o.chunk_tokens = chunk_tokens;
    return o;
}

static inline iron_manifest *scan_paths(iron_dtype dtype, const char *const *paths, size_t count,
                                        const iron_scan_options *o) {
    iron_source *source = open_all(dtype, paths, count);
    iron_manifest *m = NULL;
    iron_error err;

    assert_ok(iron_scan(source, o, &m, &err), &err);
    iron_source_close(source);
    return m;
}

static inline iron__seal_words words_of(const uint32_t *tokens, size_t count) {
    iron__seal seal = {0};

    iron__seal_feed(&seal, tokens, count);
    return iron__seal_total(&seal);
}

/* A second implementation of marks, from docs/manifest.md. */
static inline uint64_t hash_by_definition(const uint32_t *t) {
    uint64_t sum = 0;

    for (uint64_t j = 0; j < 8; j++) {
        uint32_t k0 = (uint32_t)(iron__mix64((2 * j + 1) * IRON_GOLDEN_GAMMA) >> 32);
        uint32_t k1 = (uint32_t)(iron__mix64((2 * j + 2) * IRON_GOLDEN_GAMMA) >> 32);

        sum += (uint64_t)(uint32_t)(t[2 * j] + k0) * (uint32_t)(t[2 * j + 1] + k1);
    }
    return iron__mix64(sum) >> 1;
}

static inline bool is_candidate_by_definition(const uint32_t *t) {
    uint32_t word = t[0] * 0x9E3779B1u + t[1] * 0x85EBCA77u + t[2] * 0xC2B2AE3Du +
                    t[3] * 0x27D4EB2Fu + 0x165667B1u;

    return word < 1u << 25;
}

/* The mark of the chunk first ... end-1 of a stream, from its definition. */
static inline iron__chunk plain_chunk(const uint32_t *tokens, size_t total, size_t first,
                                      size_t end) {
    iron__seal_words words = words_of(tokens + first, end - first);
    iron__chunk c = {words.t, words.a, words.b, IRON_MARK_NONE, 0};

    for (size_t k = first; k < end && k + IRON_MARK_TOKENS <= total; k++) {
        if (!is_candidate_by_definition(tokens + k) || hash_by_definition(tokens + k) >= c.mark)
            continue;
        c.mark = hash_by_definition(tokens + k);
        c.mark_at = k - first;
    }
    return c;
}

static inline void assert_chunk(const iron__chunk *got, const iron__chunk *want) {
    assert_int_equal(got->t, want->t);
    assert_int_equal(got->a, want->a);
    assert_int_equal(got->b, want->b);
    assert_int_equal(got->mark, want->mark);
    assert_int_equal(got->mark_at, want->mark_at);
}

/* Compares the manifest of a whole stream with the simple references. */
static inline void assert_scanned(const iron_manifest *m, const uint32_t *tokens, size_t count) {
    iron__seal_words words = words_of(tokens, count);
    iron__token_stats stats = iron__token_stats_neutral();

    for (size_t k = 0; k < count; k++) {
        bool is_out = tokens[k] >= m->vocab;
        iron__token_stats one = {is_out, is_out ? k : UINT64_MAX, is_out ? tokens[k] : 0, tokens[k],
                                 tokens[k]};

        stats = iron__token_stats_merge(stats, one);
    }
    assert_memory_equal(&m->words, &words, sizeof words);
    assert_int_equal(m->stats.out_of_vocab, stats.out_of_vocab);
    assert_int_equal(m->stats.first_position, stats.first_position);
    assert_int_equal(m->stats.first_value, stats.first_value);
    assert_int_equal(m->stats.min, stats.min);
    assert_int_equal(m->stats.max, stats.max);
    assert_int_equal(m->tokens, count);
    assert_int_equal(m->chunk_count,
                     m->chunk_tokens ? (count + m->chunk_tokens - 1) / m->chunk_tokens : 0);
    for (size_t k = 0; k < m->chunk_count; k++) {
        size_t first = k * (size_t)m->chunk_tokens, end = first + (size_t)m->chunk_tokens;
        iron__chunk want = plain_chunk(tokens, count, first, end < count ? end : count);

        assert_chunk(&m->chunks[k], &want);
    }
    assert_int_equal(m->has_file_seals, m->chunk_tokens > 0);
    for (size_t k = 0; k < m->file_count && m->has_file_seals; k++) {
        iron__seal_words want = words_of(tokens + m->files[k].first, (size_t)m->files[k].tokens);

        assert_memory_equal(&m->files[k].words, &want, sizeof want);
    }
}

#endif
