/* SPDX-License-Identifier: MIT */
/*
 * digest_support.h: shared by the tests of digests: the expected result of a stream, computed from
 * the reference seal in one piece and a loop over its values; and digests of pieces of one stream.
 */
#ifndef TESTS_UNIT_DIGEST_SUPPORT_H
#define TESTS_UNIT_DIGEST_SUPPORT_H

#include "support.h"

#include "core/seal.h"

#define DIGEST_VOCAB 50257u

static inline iron_digest_result digest_expected(const uint32_t *tokens, size_t count,
                                                 uint64_t vocab) {
    iron_digest_result r = {.struct_size = sizeof r,
                            .seal_version = 1,
                            .tokens = count,
                            .vocab = vocab,
                            .first_out_position = IRON_COUNT_UNKNOWN,
                            .min = UINT32_MAX};
    iron__seal seal = {0};
    iron__seal_words w;

    iron__seal_feed(&seal, tokens, count);
    w = iron__seal_total(&seal);
    memcpy(r.words, (uint64_t[4]){w.count, w.t, w.a, w.b}, sizeof r.words);
    iron__seal_text(w, r.seal);
    for (size_t k = 0; k < count; k++) {
        r.min = tokens[k] < r.min ? tokens[k] : r.min;
        r.max = tokens[k] > r.max ? tokens[k] : r.max;
        if (tokens[k] >= vocab && r.out_of_vocab++ == 0) {
            r.first_out_position = k;
            r.first_out_value = tokens[k];
        }
    }
    return r;
}

static inline void assert_same_digest(const iron_digest_result *a, const iron_digest_result *b) {
    assert_string_equal(a->seal, b->seal);
    assert_memory_equal(a->words, b->words, sizeof a->words);
    assert_int_equal(a->tokens, b->tokens);
    assert_int_equal(a->vocab, b->vocab);
    assert_int_equal(a->seal_version, b->seal_version);
    assert_int_equal(a->out_of_vocab, b->out_of_vocab);
    assert_int_equal(a->first_out_position, b->first_out_position);
    assert_int_equal(a->first_out_value, b->first_out_value);
    assert_int_equal(a->min, b->min);
    assert_int_equal(a->max, b->max);
}

static inline iron_digest digest_make(uint32_t threads, uint64_t vocab) {
    iron_digest_options o = {.struct_size = sizeof o, .threads = threads, .vocab = vocab};
    iron_digest digest;
    iron_error err;

    assert_ok(iron_digest_init(&digest, &o, &err), &err);
    return digest;
}

static inline iron_digest_result digest_result(const iron_digest *digest) {
    iron_digest_result r = {.struct_size = sizeof r};
    iron_error err;

    assert_ok(iron_digest_final(digest, &r, &err), &err);
    return r;
}

static inline void digest_take(iron_digest *digest, const uint32_t *stream, uint64_t first,
                               uint64_t end) {
    iron_error err;

    assert_ok(iron_digest_update(digest, first, IRON_DTYPE_U32, stream + first,
                                 (size_t)(end - first), &err),
              &err);
}

/* Its complete state; free() it. */
static inline unsigned char *digest_bytes(const iron_digest *digest, size_t *bytes) {
    unsigned char *data;
    iron_error err;

    assert_ok(iron_digest_save(digest, NULL, 0, bytes, &err), &err);
    data = grab(*bytes);
    assert_ok(iron_digest_save(digest, data, *bytes, bytes, &err), &err);
    return data;
}

/* Both digests have the same state. */
static inline void assert_same_state(const iron_digest *a, const iron_digest *b) {
    size_t bytes_a, bytes_b;
    unsigned char *data_a = digest_bytes(a, &bytes_a), *data_b = digest_bytes(b, &bytes_b);

    assert_int_equal(bytes_a, bytes_b);
    assert_memory_equal(data_a, data_b, bytes_a);
    free(data_a);
    free(data_b);
}

/* Cuts 0 ... total into `count` pieces, some possibly empty; cuts[count] is total. */
static inline void digest_cuts(uint64_t *cuts, size_t count, uint64_t total, rng *r) {
    cuts[0] = 0;
    for (size_t k = 1; k < count; k++)
        cuts[k] = rng_below(r, total + 1);
    cuts[count] = total;
    for (size_t k = 1; k < count; k++) /* insertion sort */
        for (size_t j = k; j > 1 && cuts[j] < cuts[j - 1]; j--) {
            uint64_t moved = cuts[j];

            cuts[j] = cuts[j - 1];
            cuts[j - 1] = moved;
        }
}

/* 0 ... count-1 in random order. */
static inline void digest_order(size_t *order, size_t count, rng *r) {
    for (size_t k = 0; k < count; k++) {
        size_t j = (size_t)rng_below(r, k + 1);

        order[k] = k;
        order[k] = order[j];
        order[j] = k;
    }
}

#endif
