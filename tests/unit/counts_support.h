/* SPDX-License-Identifier: MIT */
/* counts_support.h: shared by the tests of iron_histogram: values of every type, and a plain loop
 * that counts them. */
#ifndef TESTS_UNIT_COUNTS_SUPPORT_H
#define TESTS_UNIT_COUNTS_SUPPORT_H

#include "support.h"

#include <iron/iron_digest.h>

static const iron_dtype dtypes[] = {IRON_DTYPE_U8, IRON_DTYPE_U16, IRON_DTYPE_U32, IRON_DTYPE_I32,
                                    IRON_DTYPE_I64};

/* The values that a type has, at most `bins`. */
static inline uint64_t values_below(iron_dtype dtype, uint64_t bins) {
    uint64_t all = UINT64_C(1) << (8 * (iron_dtype_bytes(dtype) < 4 ? iron_dtype_bytes(dtype) : 4));

    return bins < all ? bins : all;
}

static inline void put_value(void *values, iron_dtype dtype, size_t index, int64_t value) {
    size_t width = iron_dtype_bytes(dtype);

    memcpy((char *)values + index * width, &value, width); /* little-endian */
}

/* Values below `limit`, as they are stored; free() them. */
static inline void *values_of(iron_dtype dtype, uint64_t seed, uint64_t limit, size_t count) {
    uint32_t *plain = grab_tokens(seed, limit, count + 1);
    void *values = grab((count + 1) * iron_dtype_bytes(dtype));

    for (size_t k = 0; k < count; k++)
        put_value(values, dtype, k, plain[k]);
    free(plain);
    return values;
}

static inline void count_plainly(const void *values, iron_dtype dtype, size_t count,
                                 uint64_t *counts) {
    size_t width = iron_dtype_bytes(dtype);

    for (size_t k = 0; k < count; k++) {
        uint64_t value = 0;

        memcpy(&value, (const char *)values + k * width, width);
        counts[value]++;
    }
}

static inline iron_histogram_context *histogram_of(uint64_t bins, const char *backend) {
    iron_histogram_context *h = NULL;
    iron_histogram_options o;
    iron_error err;

    iron_histogram_options_init(&o);
    o.bins = bins;
    o.threads = 2;
    o.backend = backend;
    assert_ok(iron_histogram_create(&o, &h, &err), &err);
    return h;
}

static inline void assert_counts(const iron_histogram_context *h, const uint64_t *want,
                                 uint64_t bins, uint64_t total) {
    uint64_t counted;
    const uint64_t *counts = iron_histogram_counts(h, &counted);

    assert_int_equal(counted, total);
    assert_memory_equal(counts, want, bins * sizeof *want);
}

#endif
