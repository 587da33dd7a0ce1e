/* SPDX-License-Identifier: MIT */
/*
 * test_digest.c: a digest's result depends on the stream only: not on cuts, order, widths, threads
 * or the number of digests. Positions seen before are refused, missing ones are named, and a call
 * that fails changes nothing.
 */
#include "digest_support.h"

#include "selftest/golden.h"

#include <sys/wait.h>

static void golden_seals(void **state) {
    const iron__golden *g = &iron__golden_vectors;

    (void)state;
    assert_true(g->seal_count > 0);
    for (size_t k = 0; k < g->seal_count; k++) {
        const iron__golden_seal *s = &g->seals[k];
        iron_digest digest = digest_make(0, DIGEST_VOCAB);
        iron_digest_result r, want;
        size_t count;
        uint32_t *tokens = iron__golden_tokens(s->tokens, s->tokens_count, s->gen_seed,
                                               s->gen_limit, s->gen_count, &count);

        digest_take(&digest, tokens, 0, count);
        r = digest_result(&digest);
        assert_string_equal(r.seal, s->seal);
        assert_memory_equal(r.words, s->words, sizeof r.words);
        want = digest_expected(tokens, count, DIGEST_VOCAB);
        assert_same_digest(&r, &want);
        iron_digest_deinit(&digest);
        free(tokens);
    }
}

static void an_empty_stream(void **state) {
    iron_digest digest = digest_make(1, 0);
    iron_digest_result r = digest_result(&digest), want = digest_expected(NULL, 0, DIGEST_VOCAB);
    iron_error err;
    uint64_t first, end;

    (void)state;
    assert_same_digest(&r, &want);
    assert_ok(iron_digest_update(&digest, 77, IRON_DTYPE_U16, NULL, 0, &err), &err);
    iron_digest_gap(&digest, &first, &end);
    assert_int_equal(first, 0);
    assert_true(end == IRON_COUNT_UNKNOWN);
    iron_digest_deinit(&digest);
    assert_null(digest.own);
    iron_digest_deinit(&digest);
    iron_digest_deinit(NULL);
}

/* Every cut of short streams in two and three, in every order. */
static void every_cut_of_short_streams(void **state) {
    static const size_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    uint32_t *stream = grab_tokens(71, UINT64_C(1) << 17, 16);

    (void)state;
    for (uint64_t total = 0; total <= 14; total++) {
        iron_digest_result want = digest_expected(stream, (size_t)total, DIGEST_VOCAB);

        for (uint64_t a = 0; a <= total; a++)
            for (uint64_t b = a; b <= total; b++)
                for (size_t o = 0; o < 6; o++) {
                    const uint64_t cuts[4] = {0, a, b, total};
                    iron_digest digest = digest_make(1, DIGEST_VOCAB);
                    iron_digest_result r;

                    for (size_t k = 0; k < 3; k++)
                        digest_take(&digest, stream, cuts[orders[o][k]], cuts[orders[o][k] + 1]);
                    r = digest_result(&digest);
                    assert_same_digest(&r, &want);
                    iron_digest_deinit(&digest);
                }
    }
    free(stream);
}

/* Pieces assigned to digests at random, saved and loaded in between, merged in random order. */
static void pieces_to_many(const uint32_t *stream, uint64_t total, size_t pieces, size_t digests,
                           rng *r, iron_digest *out) {
    uint64_t cuts[65];
    size_t order[64];
    iron_digest each[8];
    iron_error err;

    for (size_t k = 0; k < digests; k++)
        each[k] = digest_make(1 + (uint32_t)rng_below(r, 2), DIGEST_VOCAB);
    digest_cuts(cuts, pieces, total, r);
    digest_order(order, pieces, r);
    for (size_t k = 0; k < pieces; k++) {
        iron_digest *to = &each[rng_below(r, digests)];

        digest_take(to, stream, cuts[order[k]], cuts[order[k] + 1]);
        if (rng_below(r, 8) == 0) {
            size_t bytes;
            unsigned char *data = digest_bytes(to, &bytes);

            iron_digest_deinit(to);
            assert_ok(iron_digest_load(to, NULL, data, bytes, &err), &err);
            free(data);
        }
    }
    digest_order(order, digests, r);
    *out = digest_make(1, DIGEST_VOCAB);
    for (size_t k = 0; k < digests; k++) {
        assert_ok(iron_digest_merge(out, &each[order[k]], &err), &err);
        iron_digest_deinit(&each[order[k]]);
    }
}

static void any_pieces_any_order_any_digests(void **state) {
    enum { TOKENS = 3001 };
    uint32_t *stream = grab_tokens(72, 51000, TOKENS); /* a few are outside the vocabulary */
    rng random = {72};

    (void)state;
    for (int n = 0; n < 2000; n++) {
        uint64_t total = rng_below(&random, n % 2 ? 40 : TOKENS + 1);
        iron_digest_result want = digest_expected(stream, (size_t)total, DIGEST_VOCAB), r;
        iron_digest digest, whole = digest_make(1, DIGEST_VOCAB);

        pieces_to_many(stream, total, 1 + (size_t)rng_below(&random, 64),
                       1 + (size_t)rng_below(&random, 8), &random, &digest);
        r = digest_result(&digest);
        assert_same_digest(&r, &want);
        digest_take(&whole, stream, 0, total);
        assert_same_state(&digest, &whole);
        iron_digest_deinit(&digest);
        iron_digest_deinit(&whole);
    }
    free(stream);
}

/* In the order of a shuffled loader: thousands of gaps, which close again; two ranks, merged. */
static void shuffled_pieces(void **state) {
    enum { PIECES = 9001, PIECE = 7 };
    const uint64_t total = (uint64_t)PIECES * PIECE;
    uint32_t *stream = grab_tokens(76, 51000, (size_t)total);
    iron_digest_result want = digest_expected(stream, (size_t)total, DIGEST_VOCAB), r;
    iron_digest ranks[2] = {digest_make(1, DIGEST_VOCAB), digest_make(1, DIGEST_VOCAB)};
    size_t *order = grab(PIECES * sizeof *order);
    rng random = {76};
    iron_error err;

    (void)state;
    digest_order(order, PIECES, &random);
    for (size_t k = 0; k < PIECES; k++) {
        digest_take(&ranks[k % 2], stream, PIECE * order[k], PIECE * (order[k] + 1));
        if (k % 3000 == 2999) {
            size_t bytes;
            unsigned char *data = digest_bytes(&ranks[0], &bytes);

            iron_digest_deinit(&ranks[0]);
            assert_ok(iron_digest_load(&ranks[0], NULL, data, bytes, &err), &err);
            assert_true(bytes > 30000); /* there are many gaps */
            free(data);
        }
    }
    assert_ok(iron_digest_merge(&ranks[1], &ranks[0], &err), &err);
    r = digest_result(&ranks[1]);
    assert_same_digest(&r, &want);
    iron_digest_deinit(&ranks[0]);
    iron_digest_deinit(&ranks[1]);
    free(order);
    free(stream);
}

/* Long enough for several threads and for more than one round of their tasks. */
static void many_threads(void **state) {
    const size_t count = 256 * 65536 + 65536 + 7;
    uint32_t *stream = grab_tokens(73, 50400, count);
    iron_digest_result want = digest_expected(stream, count, DIGEST_VOCAB);

    (void)state;
    for (uint32_t threads = 1; threads <= 5; threads += 2) {
        iron_digest digest = digest_make(threads, DIGEST_VOCAB);
        iron_digest_result r;

        digest_take(&digest, stream, 200001, count);
        digest_take(&digest, stream, 0, 200001);
        r = digest_result(&digest);
        assert_same_digest(&r, &want);
        iron_digest_deinit(&digest);
    }
    free(stream);
}

static void *as_width(const uint32_t *tokens, size_t count, iron_dtype dtype) {
    size_t width = iron_dtype_bytes(dtype);
    unsigned char *data = grab(count * width);

    for (size_t k = 0; k < count; k++)
        for (size_t byte = 0; byte < width; byte++)
            data[k * width + byte] = (unsigned char)((uint64_t)tokens[k] >> 8 * byte);
    return data;
}

static void every_width(void **state) {
    static const struct {
        iron_dtype dtype;
        uint64_t limit;
    } widths[] = {{IRON_DTYPE_U8, 256},
                  {IRON_DTYPE_U16, 65536},
                  {IRON_DTYPE_U32, UINT64_C(1) << 32},
                  {IRON_DTYPE_I32, UINT64_C(1) << 31},
                  {IRON_DTYPE_I64, UINT64_C(1) << 32}};
    const size_t count = 140003, cut = 70001;

    (void)state;
    for (size_t k = 0; k < COUNT(widths); k++) {
        uint32_t *tokens = grab_tokens(74, widths[k].limit, count);
        char *stored = as_width(tokens, count, widths[k].dtype);
        size_t width = iron_dtype_bytes(widths[k].dtype);
        iron_digest_result want = digest_expected(tokens, count, 200), r;
        iron_digest digest = digest_make(2, 200);
        iron_error err;

        assert_ok(iron_digest_update(&digest, cut, widths[k].dtype, stored + cut * width,
                                     count - cut, &err),
                  &err);
        assert_ok(iron_digest_update(&digest, 0, widths[k].dtype, stored, cut, &err), &err);
        r = digest_result(&digest);
        assert_same_digest(&r, &want);
        iron_digest_deinit(&digest);
        free(stored);
        free(tokens);
    }
}

/* ThreadSanitizer ends a process that starts threads after a fork. */
#if defined(__SANITIZE_THREAD__)
#define CAN_FORK false
#elif defined(__has_feature)
#define CAN_FORK (!__has_feature(thread_sanitizer))
#else
#define CAN_FORK true
#endif

/* A forked process has the digest, but none of its threads. */
static void forked_process_continues(void **state) {
    enum { TOKENS = 300001 };
    uint32_t *stream;
    iron_digest digest;
    iron_digest_result want, r;
    int status = -1;
    pid_t child;

    (void)state;
    if (!CAN_FORK)
        skip();
    stream = grab_tokens(75, 60000, TOKENS);
    digest = digest_make(3, DIGEST_VOCAB);
    want = digest_expected(stream, TOKENS, DIGEST_VOCAB);
    digest_take(&digest, stream, 0, 140001);
    child = fork();
    if (child == 0) {
        iron_digest_result own = {.struct_size = sizeof own};
        int differs = iron_digest_update(&digest, 140001, IRON_DTYPE_U32, stream + 140001,
                                         TOKENS - 140001, NULL) ||
                      iron_digest_final(&digest, &own, NULL) || strcmp(own.seal, want.seal) != 0;

        iron_digest_deinit(&digest);
        _exit(differs);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    digest_take(&digest, stream, 140001, TOKENS);
    r = digest_result(&digest);
    assert_same_digest(&r, &want);
    iron_digest_deinit(&digest);
    free(stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_seals),
        cmocka_unit_test(an_empty_stream),
        cmocka_unit_test(every_cut_of_short_streams),
        cmocka_unit_test(any_pieces_any_order_any_digests),
        cmocka_unit_test(shuffled_pieces),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(every_width),
        cmocka_unit_test(forked_process_continues),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
