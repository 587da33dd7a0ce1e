/* SPDX-License-Identifier: MIT */
/*
 * test_digest_refusals.c: what a digest refuses, with which message, and that it is unchanged
 * afterwards: overlaps, gaps, values that are not tokens, the last positions, options, and failing
 * memory, at every allocation in turn.
 */
#include "digest_support.h"

static void overlaps_are_refused(void **state) {
    enum { TOKENS = 64 };
    uint32_t *stream = grab_tokens(81, DIGEST_VOCAB, TOKENS);
    rng r = {81};

    (void)state;
    for (int n = 0; n < 3000; n++) {
        iron_digest digest = digest_make(1, DIGEST_VOCAB), before;
        bool seen[TOKENS] = {false};

        before = digest_make(1, DIGEST_VOCAB);
        for (int k = 0; k < 12; k++) {
            uint64_t first = rng_below(&r, TOKENS), count = 1 + rng_below(&r, TOKENS - first);
            uint64_t bad = first, bad_end;
            char text[64];
            iron_error err;

            while (bad < first + count && !seen[bad])
                bad++;
            if (bad == first + count) {
                digest_take(&digest, stream, first, first + count);
                digest_take(&before, stream, first, first + count);
                memset(seen + first, 1, (size_t)count * sizeof seen[0]);
                continue;
            }
            for (bad_end = bad; bad_end < first + count && seen[bad_end];)
                bad_end++;
            assert_refused(iron_digest_update(&digest, first, IRON_DTYPE_U32, stream + first,
                                              (size_t)count, &err),
                           IRON_E_STATE, &err);
            if (bad_end - bad == 1)
                snprintf(text, sizeof text, "position %d was seen before; ", (int)bad);
            else
                snprintf(text, sizeof text, "positions %d to %d were seen before; ", (int)bad,
                         (int)bad_end - 1);
            assert_says(&err, text);
            assert_same_state(&digest, &before);
        }
        iron_digest_deinit(&digest);
        iron_digest_deinit(&before);
    }
    free(stream);
}

static void gaps_are_named(void **state) {
    uint32_t *stream = grab_tokens(82, DIGEST_VOCAB, 300);
    iron_digest digest = digest_make(1, DIGEST_VOCAB);
    iron_digest_result r = {.struct_size = sizeof r};
    uint64_t first, end;
    iron_error err;

    (void)state;
    digest_take(&digest, stream, 200, 250);
    iron_digest_gap(&digest, &first, &end);
    assert_true(first == 0 && end == 200);
    assert_refused(iron_digest_final(&digest, &r, &err), IRON_E_STATE, &err);
    assert_says(&err, "positions 0 to 199 were not seen");
    digest_take(&digest, stream, 0, 97);
    digest_take(&digest, stream, 128, 199);
    assert_refused(iron_digest_final(&digest, &r, &err), IRON_E_STATE, &err);
    assert_says(&err, "positions 97 to 127 were not seen");
    digest_take(&digest, stream, 97, 128);
    iron_digest_gap(&digest, &first, &end);
    assert_true(first == 199 && end == 200);
    digest_take(&digest, stream, 199, 200);
    iron_digest_gap(&digest, &first, &end);
    assert_true(first == 250 && end == IRON_COUNT_UNKNOWN);
    assert_int_equal(digest_result(&digest).tokens, 250);
    iron_digest_deinit(&digest);
    free(stream);
}

static void merges_are_refused(void **state) {
    uint32_t *stream = grab_tokens(83, DIGEST_VOCAB, 300);
    iron_digest a = digest_make(1, DIGEST_VOCAB), b = digest_make(1, DIGEST_VOCAB);
    iron_digest before = digest_make(1, DIGEST_VOCAB), other = digest_make(1, 100);
    iron_digest nothing = {NULL};
    iron_error err;

    (void)state;
    digest_take(&a, stream, 0, 128);
    digest_take(&before, stream, 0, 128);
    digest_take(&b, stream, 96, 130);
    assert_refused(iron_digest_merge(&a, &b, &err), IRON_E_STATE, &err);
    assert_says(&err, "positions 96 to 127 were seen before");
    assert_refused(iron_digest_merge(&a, &a, &err), IRON_E_STATE, &err);
    assert_refused(iron_digest_merge(&a, &other, &err), IRON_E_ARG, &err);
    assert_says(&err, "vocab 50257 and 100");
    assert_refused(iron_digest_merge(&a, &nothing, &err), IRON_E_STATE, &err);
    assert_refused(iron_digest_merge(&nothing, &a, &err), IRON_E_STATE, &err);
    assert_same_state(&a, &before);
    iron_digest_deinit(&a);
    iron_digest_deinit(&b);
    iron_digest_deinit(&before);
    iron_digest_deinit(&other);
    free(stream);
}

/* At any place: head, quads, tail, a later block, another thread's task. */
static void values_that_are_not_tokens(void **state) {
    const size_t count = 200003;
    static const size_t places[] = {0, 2, 3, 4, 5000, 65539, 140000, 200001, 200002};
    static const int64_t values[] = {-1, INT64_C(1) << 32, INT64_MIN};
    int64_t *tokens = grab(count * sizeof *tokens);
    iron_digest digest = digest_make(2, DIGEST_VOCAB), empty = digest_make(1, DIGEST_VOCAB);
    iron_error err;

    (void)state;
    for (size_t k = 0; k < count; k++)
        tokens[k] = (int64_t)(k % 50000);
    for (size_t p = 0; p < COUNT(places); p++) {
        int64_t original = tokens[places[p]];
        char text[100];

        tokens[places[p]] = values[p % 3];
        tokens[count - 1] = p + 1 < COUNT(places) ? -7 : tokens[count - 1]; /* not the first */
        assert_refused(iron_digest_update(&digest, 1001, IRON_DTYPE_I64, tokens, count, &err),
                       IRON_E_FORMAT, &err);
        snprintf(text, sizeof text, "position %zu is %lld;", 1001 + places[p],
                 (long long)values[p % 3]);
        assert_says(&err, text);
        assert_same_state(&digest, &empty);
        tokens[places[p]] = original;
    }
    ((int32_t *)tokens)[1] = -5;
    assert_refused(iron_digest_update(&digest, 0, IRON_DTYPE_I32, tokens, 7, &err), IRON_E_FORMAT,
                   &err);
    assert_says(&err, "position 1 is -5");
    assert_same_state(&digest, &empty);
    iron_digest_deinit(&digest);
    iron_digest_deinit(&empty);
    free(tokens);
}

static void the_last_positions(void **state) {
    static const uint32_t tokens[8] = {1, 2, 3, 4, 5, 6, 7, 60000};
    iron_digest digest = digest_make(1, DIGEST_VOCAB), again;
    uint64_t first, end;
    iron_error err;
    size_t bytes;
    unsigned char *data;

    (void)state;
    assert_refused(iron_digest_update(&digest, UINT64_MAX, IRON_DTYPE_U32, tokens, 1, &err),
                   IRON_E_ARG, &err);
    assert_says(&err, "18446744073709551614");
    assert_refused(iron_digest_update(&digest, UINT64_MAX - 7, IRON_DTYPE_U32, tokens, 8, &err),
                   IRON_E_ARG, &err);
    assert_ok(iron_digest_update(&digest, UINT64_MAX - 8, IRON_DTYPE_U32, tokens, 8, &err), &err);
    assert_refused(iron_digest_update(&digest, UINT64_MAX - 1, IRON_DTYPE_U32, tokens, 1, &err),
                   IRON_E_STATE, &err);
    iron_digest_gap(&digest, &first, &end);
    assert_true(first == 0 && end == UINT64_MAX - 8);
    data = digest_bytes(&digest, &bytes);
    assert_ok(iron_digest_load(&again, NULL, data, bytes, &err), &err);
    assert_same_state(&digest, &again);
    free(data);
    iron_digest_deinit(&again);
    iron_digest_deinit(&digest);
}

static void arguments_are_checked(void **state) {
    static const uint32_t tokens[2] = {1, 2};
    const iron_digest_options good = {.struct_size = sizeof good};
    iron_digest_options o = good;
    iron_digest digest = {(void *)&o}, nothing = {NULL};
    iron_digest_result r = {.struct_size = 3};
    uint64_t first, end;
    iron_error err;

    (void)state;
    o.struct_size = 8;
    assert_refused(iron_digest_init(&digest, &o, &err), IRON_E_ARG, &err);
    assert_null(digest.own);
    o = good;
    o.threads = 1025;
    assert_refused(iron_digest_init(&digest, &o, &err), IRON_E_ARG, &err);
    o = good;
    o.vocab = (UINT64_C(1) << 32) + 1;
    assert_refused(iron_digest_init(&digest, &o, &err), IRON_E_ARG, &err);
    o = good;
    o.backend = "cpu";
    assert_refused(iron_digest_init(&digest, &o, &err), IRON_E_ARG, &err);
    assert_says(&err, "'cpu'");
    o.backend = "cuda";
    assert_ok(iron_digest_init(&digest, &o, &err), &err);
    assert_refused(iron_digest_update(&digest, 0, (iron_dtype)9, tokens, 1, &err), IRON_E_ARG,
                   &err);
    assert_refused(iron_digest_update(&digest, 0, IRON_DTYPE_U32, NULL, 1, &err), IRON_E_ARG, &err);
    assert_refused(
        iron_digest_update(&digest, 0, IRON_DTYPE_U32, (const char *)tokens + 1, 1, &err),
        IRON_E_ARG, &err);
    assert_says(&err, "aligned");
    assert_refused(iron_digest_update(&digest, 0, IRON_DTYPE_U32, tokens, SIZE_MAX / 2, &err),
                   IRON_E_ARG, &err);
    assert_refused(iron_digest_final(&digest, &r, &err), IRON_E_ARG, &err);
    assert_refused(iron_digest_update(&nothing, 0, IRON_DTYPE_U32, tokens, 1, &err), IRON_E_STATE,
                   &err);
    iron_digest_gap(&nothing, &first, &end);
    assert_true(first == 0 && end == IRON_COUNT_UNKNOWN);
    assert_int_equal(iron_digest_update(&digest, 0, IRON_DTYPE_U32, NULL, 1, NULL), IRON_E_ARG);
    iron_digest_deinit(&digest);
}

/* Makes two digests of many small pieces and merges them; false when memory ran out, in which case
 * every digest was as before the call that failed. */
static bool work_with(const iron_allocator *allocator, const uint32_t *stream) {
    iron_digest_options o = {
        .struct_size = sizeof o, .threads = 3, .vocab = DIGEST_VOCAB, .allocator = allocator};
    iron_digest made[2] = {{NULL}, {NULL}}, twin = digest_make(1, DIGEST_VOCAB);
    iron_status status = IRON_OK;
    iron_error err;

    for (size_t k = 0; k < 2 && status == IRON_OK; k++)
        status = iron_digest_init(&made[k], &o, &err);
    for (uint64_t k = 0; k < 40 && status == IRON_OK; k++) {
        uint64_t at = (k & 1) * 1000 + (39 - k) * 11; /* backwards, so that each leaves a gap */

        status = iron_digest_update(&made[k & 1], at, IRON_DTYPE_U32, stream + at, 7, &err);
        if (status == IRON_OK && k & 1)
            digest_take(&twin, stream, at, at + 7);
    }
    if (status == IRON_OK)
        status = iron_digest_update(&made[0], 4001, IRON_DTYPE_U32, stream + 4001, 190000, &err);
    if (made[1].own && (status == IRON_E_NOMEM || status == IRON_OK))
        assert_same_state(&made[1], &twin);
    if (status == IRON_OK) {
        status = iron_digest_merge(&made[1], &made[0], &err);
        if (status != IRON_OK)
            assert_same_state(&made[1], &twin);
    }
    if (status != IRON_OK)
        assert_int_equal(status, IRON_E_NOMEM);
    iron_digest_deinit(&twin);
    iron_digest_deinit(&made[0]);
    iron_digest_deinit(&made[1]);
    return status == IRON_OK;
}

static void memory_runs_out(void **state) {
    uint32_t *stream = grab_tokens(84, 60000, 200000);
    bool done = false;
    size_t failures = 0;

    (void)state;
    for (size_t n = 1; !done; n++) {
        ledger l = {.fail_at = n};
        iron_allocator allocator = ledger_allocator(&l);

        done = work_with(&allocator, stream);
        failures += !done;
        assert_int_equal(l.out, 0);
        assert_true(n < 1000);
    }
    assert_true(failures > 10);
    free(stream);
}

/* Another test covers saving and loading; here only out-of-memory errors. */
static void memory_runs_out_while_loading(void **state) {
    uint32_t *stream = grab_tokens(85, 60000, 2000);
    iron_digest digest = digest_make(1, DIGEST_VOCAB);
    bool done = false;
    unsigned char *data;
    size_t bytes;

    (void)state;
    for (uint64_t k = 0; k < 50; k++)
        digest_take(&digest, stream, 30 * k, 30 * k + 7);
    data = digest_bytes(&digest, &bytes);
    for (size_t n = 1; !done; n++) {
        ledger l = {.fail_at = n};
        iron_allocator allocator = ledger_allocator(&l);
        iron_digest_options o = {.struct_size = sizeof o, .allocator = &allocator};
        iron_digest loaded = {NULL};

        done = iron_digest_load(&loaded, &o, data, bytes, NULL) == IRON_OK;
        assert_true(done == (loaded.own != NULL));
        iron_digest_deinit(&loaded);
        assert_int_equal(l.out, 0);
        assert_true(done == (n == 7)); /* digest, sums, and two each for positions and open quads */
    }
    iron_digest_deinit(&digest);
    free(data);
    free(stream);
}

static void without_a_gpu(void **state) {
    static const uint32_t tokens[4] = {1, 2, 3, 4};
    iron_digest digest = digest_make(1, DIGEST_VOCAB);
    iron_error err;

    (void)state;
    assert_refused(iron_digest_update_device(&digest, 0, IRON_DTYPE_U32, tokens, 4, NULL, &err),
                   IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "no CUDA or OpenCL GPU was found; copy the tokens");
    assert_null(iron_digest_native_context(&digest, &err));
    assert_int_equal(err.status, IRON_E_UNSUPPORTED);
    assert_int_equal(digest_result(&digest).tokens, 0);
    iron_digest_deinit(&digest);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlaps_are_refused), cmocka_unit_test(gaps_are_named),
        cmocka_unit_test(merges_are_refused),   cmocka_unit_test(values_that_are_not_tokens),
        cmocka_unit_test(the_last_positions),   cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(memory_runs_out),      cmocka_unit_test(memory_runs_out_while_loading),
        cmocka_unit_test(without_a_gpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
