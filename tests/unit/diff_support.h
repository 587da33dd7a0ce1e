/* SPDX-License-Identifier: MIT */
/*
 * diff_support.h: shared by the tests of differences: streams that are edited, written to files or
 * turned into hand-made manifests, compared, and checked by loops over their tokens.
 */
#ifndef TESTS_UNIT_DIFF_SUPPORT_H
#define TESTS_UNIT_DIFF_SUPPORT_H

#include "source_support.h"

#include "core/hash.h"
#include "digest/digest_internal.h"

/* Tokens of a stream; free(tokens). */
typedef struct stream {
    uint32_t *tokens;
    size_t count;
} stream;

static inline stream stream_random(uint64_t seed, uint32_t limit, size_t count) {
    return (stream){grab_tokens(seed, limit, count), count};
}

static inline stream stream_filled(size_t count, uint32_t period) {
    stream s = {grab(count * sizeof *s.tokens), count};

    for (size_t k = 0; k < count; k++)
        s.tokens[k] = (uint32_t)(7 + k % period);
    return s;
}

static inline void append(stream *s, const uint32_t *tokens, size_t count) {
    uint32_t *all = grab((s->count + count) * sizeof *all);

    if (s->count)
        memcpy(all, s->tokens, s->count * sizeof *all);
    if (count)
        memcpy(all + s->count, tokens, count * sizeof *all);
    free(s->tokens);
    s->tokens = all;
    s->count += count;
}

static inline stream stream_part(const stream *s, size_t first, size_t count) {
    stream part = {NULL, 0};

    append(&part, s->tokens + first, count);
    return part;
}

/* s with `gone` tokens from `at` on replaced by these. */
static inline stream stream_spliced(const stream *s, size_t at, size_t gone, const uint32_t *tokens,
                                    size_t count) {
    stream edited = {NULL, 0};

    append(&edited, s->tokens, at);
    append(&edited, tokens, count);
    append(&edited, s->tokens + at + gone, s->count - at - gone);
    return edited;
}

/* `count` more random tokens at a place; the first differs from the token that was there. */
static inline stream stream_inserted(const stream *s, size_t at, size_t count, uint64_t seed) {
    stream more = stream_random(seed, 50000, count), edited;

    more.tokens[0] = 60001;
    edited = stream_spliced(s, at, 0, more.tokens, count);
    free(more.tokens);
    return edited;
}

static inline stream stream_deleted(const stream *s, size_t at, size_t count) {
    return stream_spliced(s, at, count, NULL, 0);
}

/* The first difference, or UINT64_MAX. */
static inline uint64_t first_difference(const stream *a, const stream *b) {
    size_t common = a->count < b->count ? a->count : b->count;

    for (size_t k = 0; k < common; k++)
        if (a->tokens[k] != b->tokens[k])
            return k;
    return a->count == b->count ? UINT64_MAX : common;
}

static inline bool agree(const stream *a, size_t i, const stream *b, size_t j, size_t count) {
    return i + count <= a->count && j + count <= b->count &&
           memcmp(a->tokens + i, b->tokens + j, count * sizeof *a->tokens) == 0;
}

static inline bool chunk_differs(const stream *a, const stream *b, size_t chunk, size_t size) {
    size_t first = chunk * size, i = first + size, j = i;

    i = i < a->count ? i : a->count;
    j = j < b->count ? j : b->count;
    return i != j || (first < i && !agree(a, first, b, first, i - first));
}

/* A file of tokens of some width, opened as a source. */
static inline void stream_store(const stream *s, iron_dtype dtype, const char *path) {
    size_t width = iron_dtype_bytes(dtype);
    unsigned char *bytes = grab(s->count * width);

    for (size_t k = 0; k < s->count; k++)
        for (size_t byte = 0; byte < width; byte++)
            bytes[k * width + byte] = (unsigned char)((uint64_t)s->tokens[k] >> (8 * byte));
    file_write(path, bytes, s->count * width);
    free(bytes);
}

static inline iron_source *source_open(const char *path, iron_dtype dtype) {
    return open_all(dtype, &path, 1);
}

/* A hand-made manifest. Its marks are the smallest windows under a different hash, because
 * comparing must not depend on the hash. */
static inline void chunk_fill(iron__chunk *chunk, const stream *s, size_t first, size_t count) {
    iron__seal seal = {0};
    iron__seal_words words;

    iron__seal_feed(&seal, s->tokens + first, count);
    words = iron__seal_total(&seal);
    *chunk = (iron__chunk){words.t, words.a, words.b, IRON_MARK_NONE, 0};
    for (size_t k = first; k < first + count && k + IRON_MARK_TOKENS <= s->count; k++) {
        uint64_t hash = 0;

        for (size_t j = 0; j < IRON_MARK_TOKENS; j++)
            hash = (hash ^ s->tokens[k + j]) * UINT64_C(0x9E3779B97F4A7C15) + 1;
        hash = iron__mix64(hash) >> 1;
        if (hash < chunk->mark) {
            chunk->mark = hash;
            chunk->mark_at = k - first;
        }
    }
}

static inline iron_manifest *manifest_by_hand(const stream *s, uint64_t chunk_tokens) {
    iron_manifest *m = grab(sizeof *m);
    iron__seal seal = {0};

    memset(m, 0, sizeof *m);
    m->tokens = m->stream_tokens = s->count;
    m->vocab = 50257;
    m->stats = iron__token_stats_neutral();
    iron__seal_feed(&seal, s->tokens, s->count);
    m->words = iron__seal_total(&seal);
    m->chunk_tokens = chunk_tokens;
    m->chunk_count = chunk_tokens ? (size_t)((s->count + chunk_tokens - 1) / chunk_tokens) : 0;
    m->chunks = grab((m->chunk_count + 1) * sizeof *m->chunks);
    for (size_t k = 0; k < m->chunk_count; k++) {
        size_t first = k * (size_t)chunk_tokens, left = s->count - first;

        chunk_fill(&m->chunks[k], s, first, left < chunk_tokens ? left : (size_t)chunk_tokens);
    }
    return m;
}

static inline iron_diff_report describe(const iron_diff *d) {
    iron_diff_report r = {.struct_size = sizeof r};
    iron_error err;

    assert_ok(iron_diff_describe(d, &r, &err), &err);
    assert_true(r.text[0] != '\0' && strlen(r.text) < sizeof r.text);
    return r;
}

static inline iron_diff *compare_sides(const iron_diff_side *a, const iron_diff_side *b,
                                       uint64_t chunk_tokens, uint32_t threads) {
    iron_diff_options o = {
        .struct_size = sizeof o, .threads = threads, .chunk_tokens = chunk_tokens};
    iron_diff *d = NULL;
    iron_error err;

    assert_ok(iron_diff_run(a, b, &o, &d, &err), &err);
    return d;
}

/* Are the ranges those of the differing chunks, and not more? Not if edits moved what follows. */
static inline bool has_exact_ranges(const iron_diff_report *r) {
    return r->kind == IRON_DIFF_EQUAL || r->edits == IRON_COUNT_UNKNOWN ||
           (r->kind == IRON_DIFF_CHANGED && r->edits == 1 && r->tokens[0] == r->tokens[1]);
}

/* Ranges, their count and the number of chunks in them, against the tokens themselves: outside the
 * ranges all chunks are equal. */
static inline void assert_ranges(const iron_diff *d, const iron_diff_report *r, const stream *a,
                                 const stream *b) {
    size_t longer = a->count > b->count ? a->count : b->count, size = (size_t)r->chunk_tokens;
    size_t chunks = (longer + size - 1) / size, k = 0, inside = 0;
    uint64_t first, end, last = 0;

    assert_int_equal(r->chunks, chunks);
    for (size_t range = 0; iron_diff_range(d, range, &first, &end) == 0; range++) {
        assert_true(range < r->range_count);
        assert_true(first < end && first % size == 0 && (end % size == 0 || end == longer));
        assert_true(range == 0 || first > last); /* neighbours are one range */
        last = end;
        for (; k < first / size; k++)
            assert_false(chunk_differs(a, b, k, size));
        for (; k * size < end; k++, inside++)
            assert_true(!has_exact_ranges(r) || chunk_differs(a, b, k, size));
    }
    for (; k < chunks; k++)
        assert_false(chunk_differs(a, b, k, size));
    assert_int_not_equal(iron_diff_range(d, r->range_count, &first, &end), 0);
    assert_int_equal(r->differing_chunks, inside);
}

/* Checks everything of a comparison of tokens except the explanation. */
static inline iron_diff_report assert_exact(const iron_diff *d, const stream *a, const stream *b) {
    iron_diff_report r = describe(d);
    uint64_t first = first_difference(a, b);
    const stream *both[2] = {a, b};

    assert_int_equal(r.tokens[0], a->count);
    assert_int_equal(r.tokens[1], b->count);
    assert_int_equal(r.first, first);
    assert_int_equal(r.kind == IRON_DIFF_EQUAL, first == UINT64_MAX);
    for (int side = 0; side < 2 && first != UINT64_MAX; side++) {
        assert_int_equal(r.first_end, first + 1);
        assert_int_equal(r.has_value[side], first < both[side]->count);
        if (r.has_value[side])
            assert_int_equal(r.value[side], both[side]->tokens[first]);
    }
    assert_ranges(d, &r, a, b);
    return r;
}

/* Writes both to files of 32-bit tokens and compares them. */
static inline iron_diff_report compare_files(const folder *in, const stream *a, const stream *b,
                                             uint64_t chunk_tokens, uint32_t threads) {
    file_name names[2] = {name_in(in, "a.bin"), name_in(in, "b.bin")};
    iron_diff_side sides[2] = {{NULL, NULL, "A"}, {NULL, NULL, "B"}};
    const stream *both[2] = {a, b};
    iron_diff_report r;
    iron_diff *d;

    for (int k = 0; k < 2; k++) {
        stream_store(both[k], IRON_DTYPE_U32, names[k].path);
        sides[k].source = source_open(names[k].path, IRON_DTYPE_U32);
    }
    d = compare_sides(&sides[0], &sides[1], chunk_tokens, threads);
    r = assert_exact(d, a, b);
    iron_diff_destroy(d);
    iron_source_close(sides[0].source);
    iron_source_close(sides[1].source);
    return r;
}

/* Compares both as hand-made manifests, without files. */
static inline iron_diff_report compare_manifests(const stream *a, const stream *b,
                                                 uint64_t chunk_tokens) {
    iron_manifest *m[2] = {manifest_by_hand(a, chunk_tokens), manifest_by_hand(b, chunk_tokens)};
    iron_diff_side sides[2] = {{m[0], NULL, "A"}, {m[1], NULL, "B"}};
    iron_diff *d = compare_sides(&sides[0], &sides[1], 0, 2);
    iron_diff_report r = describe(d);
    uint64_t first = first_difference(a, b);

    assert_int_equal(r.kind == IRON_DIFF_EQUAL, first == UINT64_MAX);
    if (first != UINT64_MAX)
        assert_true(r.first <= first && first < r.first_end);
    assert_int_equal(r.has_value[0] | r.has_value[1], 0);
    assert_int_equal(r.chunk_tokens, chunk_tokens);
    assert_ranges(d, &r, a, b);
    iron_diff_destroy(d);
    iron_manifest_destroy(m[0]);
    iron_manifest_destroy(m[1]);
    return r;
}

#endif
