/* SPDX-License-Identifier: MIT */
/*
 * test_counts.c: iron_histogram on values in host memory, against a plain loop: every type, numbers
 * of bins on both sides of what a type can hold, all lengths from none on, pieces and merged parts.
 * A value without a bin is reported with its position, and nothing of its call is counted.
 */
#include "counts_support.h"

static void every_type(void **state) {
    static const uint64_t bins[] = {1, 2, 3, 255, 256, 257, 50257, 65536, 65537, 256000};
    static const size_t lengths[] = {0, 1, 2, 7, 8, 1000, 100003};

    (void)state;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (size_t b = 0; b < COUNT(bins); b++) {
            uint64_t *want = grab(bins[b] * sizeof *want), *got = grab(bins[b] * sizeof *got);

            for (size_t n = 0; n < COUNT(lengths); n++) {
                uint64_t limit = values_below(dtypes[d], bins[b]);
                void *values = values_of(dtypes[d], b, limit, lengths[n]);
                iron_error err;

                memset(want, 0, bins[b] * sizeof *want);
                memset(got, 255, bins[b] * sizeof *got);
                count_plainly(values, dtypes[d], lengths[n], want);
                assert_ok(iron_histogram(dtypes[d], values, lengths[n], got, bins[b], &err), &err);
                assert_memory_equal(got, want, bins[b] * sizeof *want);
                free(values);
            }
            free(want);
            free(got);
        }
}

/* More values than a piece, split in any way: the counts of the parts are those of the whole. */
static void pieces_and_merges(void **state) {
    const size_t count = ((size_t)1 << 22) + 12345;
    const uint64_t bins = 151936;

    (void)state;
    for (size_t d = 2; d < COUNT(dtypes); d++) {
        size_t width = iron_dtype_bytes(dtypes[d]);
        char *values = values_of(dtypes[d], d, bins, count);
        uint64_t *want = calloc(bins, sizeof *want);
        iron_histogram_context *whole = histogram_of(bins, NULL), *part = histogram_of(bins, NULL);
        rng r = {d};
        iron_error err;

        assert_non_null(want);
        count_plainly(values, dtypes[d], count, want);
        assert_ok(iron_histogram_add(whole, dtypes[d], values, count, &err), &err);
        assert_counts(whole, want, bins, count);
        iron_histogram_reset(whole);
        for (size_t at = 0; at < count;) {
            size_t next = (size_t)rng_below(&r, count / 3);

            next = next < count - at ? next : count - at;
            iron_histogram_reset(part);
            assert_ok(iron_histogram_add(part, dtypes[d], values + at * width, next, &err), &err);
            assert_ok(iron_histogram_merge(whole, part, &err), &err);
            at += next;
        }
        assert_counts(whole, want, bins, count);
        iron_histogram_destroy(whole);
        iron_histogram_destroy(part);
        free(values);
        free(want);
    }
}

static void values_without_a_bin(void **state) {
    static const int64_t bad[] = {100, 127, 128, 255, 65535, 2147483647, -1, -2147483647 - 1};
    const size_t count = 200000;

    (void)state;
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (size_t k = 0; k < COUNT(bad); k++) {
            size_t width = iron_dtype_bytes(dtypes[d]), at = 77777 + 9 * k;
            void *values = values_of(dtypes[d], k, 100, count);
            iron_histogram_context *h = histogram_of(100, NULL);
            bool is_signed = dtypes[d] == IRON_DTYPE_I32 || dtypes[d] == IRON_DTYPE_I64;
            uint64_t want[100] = {0}, *counts = grab(sizeof want);
            char place[40], value[24];
            iron_error err;

            if ((bad[k] < 0 && !is_signed) || (width == 1 && bad[k] > 255) ||
                (width == 2 && bad[k] > 65535)) {
                iron_histogram_destroy(h);
                free(values);
                free(counts);
                continue;
            }
            count_plainly(values, dtypes[d], 1000, want);
            assert_ok(iron_histogram_add(h, dtypes[d], values, 1000, &err), &err);
            put_value(values, dtypes[d], at, bad[k]);
            put_value(values, dtypes[d], count - 1, bad[k]);
            assert_refused(iron_histogram_add(h, dtypes[d], values, count, &err), IRON_E_FORMAT,
                           &err);
            snprintf(place, sizeof place, "position %zu ", 1000 + at);
            snprintf(value, sizeof value, "value %lld ", (long long)bad[k]);
            assert_says(&err, place);
            assert_says(&err, value);
            assert_says(&err, "0 to 99");
            assert_counts(h, want, 100, 1000);
            memset(counts, 7, sizeof want);
            assert_refused(iron_histogram(dtypes[d], values, count, counts, 100, &err),
                           IRON_E_FORMAT, &err);
            assert_int_equal(counts[99], UINT64_C(0x0707070707070707));
            iron_histogram_destroy(h);
            free(values);
            free(counts);
        }
}

/* 64 bits whose lower half has a bin. */
static void wide_values(void **state) {
    int64_t values[] = {1, 2, INT64_C(1) << 32, 3};
    uint64_t counts[8];
    iron_error err;

    (void)state;
    assert_refused(iron_histogram(IRON_DTYPE_I64, values, 4, counts, 8, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "value 4294967296 at position 2");
    values[2] = INT64_MIN;
    assert_refused(iron_histogram(IRON_DTYPE_I64, values, 4, counts, 8, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "position 2");
}

static void refusals(void **state) {
    iron_histogram_context *h = NULL, *other = histogram_of(4, NULL);
    iron_histogram_options o;
    uint32_t values[4] = {0};
    uint64_t counts[4];
    iron_error err;

    (void)state;
    iron_histogram_options_init(&o);
    assert_refused(iron_histogram_create(&o, &h, &err), IRON_E_ARG, &err);
    assert_says(&err, "bins is 0");
    o.bins = (UINT64_C(1) << 24) + 1;
    assert_refused(iron_histogram_create(&o, &h, &err), IRON_E_ARG, &err);
    o.bins = 5;
    o.threads = 5000;
    assert_refused(iron_histogram_create(&o, &h, &err), IRON_E_ARG, &err);
    o.threads = 0;
    o.struct_size--;
    assert_refused(iron_histogram_create(&o, &h, &err), IRON_E_ARG, &err);
    assert_null(h);
    h = histogram_of(5, NULL);
    assert_refused(iron_histogram_merge(h, other, &err), IRON_E_ARG, &err);
    assert_refused(iron_histogram_add(h, IRON_DTYPE_NONE, values, 1, &err), IRON_E_ARG, &err);
    assert_refused(iron_histogram_add(h, IRON_DTYPE_U32, (char *)values + 1, 1, &err), IRON_E_ARG,
                   &err);
    assert_refused(iron_histogram_add(h, IRON_DTYPE_U32, NULL, 1, &err), IRON_E_ARG, &err);
    assert_ok(iron_histogram_add(h, IRON_DTYPE_U32, NULL, 0, &err), &err);
    assert_refused(iron_histogram(IRON_DTYPE_U32, values, 1, NULL, 5, &err), IRON_E_ARG, &err);
    assert_refused(iron_histogram_add_device(h, IRON_DTYPE_U32, values, 1, NULL, &err),
                   IRON_E_UNSUPPORTED, &err); /* this test has no GPUs */
    assert_null(iron_histogram_native_context(h, &err));
    assert_ok(iron_histogram(IRON_DTYPE_U32, values, 4, counts, 4, &err), &err);
    assert_int_equal(counts[0], 4);
    iron_histogram_destroy(h);
    iron_histogram_destroy(other);
    iron_histogram_destroy(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type),
        cmocka_unit_test(pieces_and_merges),
        cmocka_unit_test(values_without_a_bin),
        cmocka_unit_test(wide_values),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests_name("counts", tests, NULL, NULL);
}
