/* SPDX-License-Identifier: MIT */
/*
 * test_marks.c: marks follow their definition for any split of a chunk into pieces, and moved
 * content keeps its mark.
 */
#include "scan_support.h"

#include "digest/scan.c"

#define TOKENS 20000u

static uint32_t scratch[IRON_WIDEN_TOKENS];

static void test_definition(void **state) {
    uint32_t *tokens = grab_tokens(1, UINT64_C(1) << 32, TOKENS);
    size_t candidates = 0;

    (void)state;
    for (size_t k = 0; k + IRON_MARK_TOKENS <= TOKENS; k++) {
        const uint32_t *t = tokens + k;
        bool is_one = is_candidate(candidate_word(t));

        assert_int_equal(window_hash(t), hash_by_definition(t));
        assert_int_equal(is_one, is_candidate_by_definition(t));
        candidates += is_one;
    }
    /* one in 128, within five standard deviations */
    assert_in_range(candidates, TOKENS / 128 - 63, TOKENS / 128 + 63);
    free(tokens);
}

static void take(iron_dtype dtype, const void *data, size_t begin, size_t windows,
                 iron__chunk *chunk) {
    iron__tokens_view view = {dtype, data, TOKENS};
    iron__chunk piece = iron__chunk_empty();

    marks_add(&view, begin, windows, begin, scratch, &piece);
    iron__chunk_add(chunk, &piece);
}

/* Pieces of any length, in any order, of any width. */
static void test_cuts(void **state) {
    static const iron_dtype dtypes[] = {IRON_DTYPE_U8, IRON_DTYPE_U16, IRON_DTYPE_U32,
                                        IRON_DTYPE_I64};
    static const uint64_t limits[] = {2, 4, 200};
    const size_t windows = TOKENS - IRON_MARK_TOKENS + 1;
    rng r = {3};

    (void)state;
    for (size_t l = 0; l < COUNT(limits); l++)
        for (size_t k = 0; k < COUNT(dtypes); k++) {
            uint32_t *tokens = grab_tokens(l, limits[l], TOKENS);
            void *data = stored_as(dtypes[k], tokens, TOKENS);
            iron__chunk want = plain_chunk(tokens, TOKENS, 0, TOKENS), got = iron__chunk_empty();
            size_t middle = (size_t)rng_below(&r, windows);

            for (size_t at = middle, some; at < windows; at += some) {
                some = 1 + (size_t)rng_below(&r, 5000);
                some = some < windows - at ? some : windows - at;
                take(dtypes[k], data, at, some, &got);
            }
            for (size_t at = 0; at < middle; at++)
                take(dtypes[k], data, at, 1, &got);
            assert_int_equal(got.mark, want.mark);
            assert_int_equal(got.mark_at, want.mark_at);
            free(data);
            free(tokens);
        }
}

static void test_ties_go_to_the_first(void **state) {
    iron__chunk none = iron__chunk_empty(), a = {1, 2, 3, 77, 500}, b = {10, 20, 30, 77, 40}, sum;

    (void)state;
    sum = a;
    iron__chunk_add(&sum, &b);
    assert_chunk(&sum, &(iron__chunk){11, 22, 33, 77, 40});
    sum = b;
    iron__chunk_add(&sum, &a);
    assert_chunk(&sum, &(iron__chunk){11, 22, 33, 77, 40});
    iron__chunk_add(&sum, &none);
    iron__chunk_add(&none, &sum);
    assert_chunk(&none, &sum);
}

/* The purpose of marks: text after inserted tokens has the same mark, at a later position. */
static void test_content_that_moves(void **state) {
    uint32_t *tokens = grab_tokens(8, 50257, TOKENS);
    iron__chunk before, after;

    (void)state;
    before = plain_chunk(tokens, TOKENS, 4000, 12000);
    after = plain_chunk(tokens, TOKENS, 3900, 12000);
    assert_true(before.mark != IRON_MARK_NONE);
    assert_true(after.mark < before.mark || after.mark_at == before.mark_at + 100);
    free(tokens);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_ties_go_to_the_first),
        cmocka_unit_test(test_content_that_moves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
