/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_counts.c: iron_histogram_add_device against a plain loop: every type, numbers of bins,
 * lengths one after the other on one context, pointers of any alignment, and values without a bin.
 */
#include "counts_support.h"
#include "gpu_support.h"

#include "digest/histogram.c"

#define COUNT_MAX ((size_t)300001)

/* Values in a buffer that a caller would have: of the context's device. */
typedef struct callers {
    iron__gpu_buffer *buffer;
    iron__gpu_queue *queue;
} callers;

static callers upload(iron_histogram_context *h, const void *values, size_t bytes) {
    iron__gpu_copy copy = {.from_host = values, .bytes = bytes};
    callers c = {NULL, NULL};
    iron_error err;

    assert_non_null(iron_histogram_native_context(h, &err));
    assert_ok(iron__gpu_queue_create(histogram_device(h), &c.queue, &err), &err);
    assert_ok(iron__gpu_buffer_create(histogram_device(h), IRON_GPU_MEMORY_DEVICE, bytes, &c.buffer,
                                      &err),
              &err);
    copy.to = c.buffer;
    assert_ok(iron__gpu_copy_bytes(c.queue, &copy, &err), &err);
    assert_ok(iron__gpu_queue_wait(c.queue, &err), &err);
    return c;
}

static void leave(callers *c) {
    iron__gpu_queue_destroy(c->queue);
    iron__gpu_buffer_destroy(c->buffer);
}

static iron_status add(iron_histogram_context *h, const callers *c, iron_dtype dtype, size_t first,
                       uint64_t count, iron_error *err) {
    return iron_histogram_add_device(
        h, dtype, (const void *)(c->buffer->native + first * iron_dtype_bytes(dtype)), count,
        (void *)c->queue->native, err);
}

static void every_type_on_a_device(void **state) {
    static const uint64_t bins[] = {1, 200, 256, 50257, 65536, 256000};
    static const uint64_t lengths[] = {1, 2, 1023, COUNT_MAX, 77777, 77777};

    (void)state;
    NEED_GPU();
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (size_t b = 0; b < COUNT(bins); b++) {
            size_t width = iron_dtype_bytes(dtypes[d]);
            uint64_t *want = calloc(bins[b], sizeof *want), total = 0;
            char *values = values_of(dtypes[d], b, values_below(dtypes[d], bins[b]), COUNT_MAX);
            iron_histogram_context *h = histogram_of(bins[b], gpu_backend());
            callers c = upload(h, values, COUNT_MAX * width);
            iron_error err;

            assert_non_null(want);
            for (size_t n = 0; n < COUNT(lengths); n++) {
                size_t first = histogram_device(h)->info.has_addresses && n % 2 ? 3 * n : 0;
                uint64_t count = lengths[n] < COUNT_MAX - first ? lengths[n] : COUNT_MAX - first;

                assert_ok(add(h, &c, dtypes[d], first, count, &err), &err);
                count_plainly(values + first * width, dtypes[d], (size_t)count, want);
                total += count;
            }
            assert_ok(iron_histogram_add(h, dtypes[d], values, 1000, &err), &err);
            count_plainly(values, dtypes[d], 1000, want);
            assert_ok(add(h, &c, dtypes[d], 0, 0, &err), &err);
            assert_counts(h, want, bins[b], total + 1000);
            leave(&c);
            iron_histogram_destroy(h);
            free(values);
            free(want);
        }
}

static void bad_values_on_a_device(void **state) {
    (void)state;
    NEED_GPU();
    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (size_t k = 0; k < 2; k++) {
            size_t width = iron_dtype_bytes(dtypes[d]), at = 70001;
            char *values = values_of(dtypes[d], d, 100, COUNT_MAX);
            iron_histogram_context *h = histogram_of(100, gpu_backend());
            int64_t bad = k == 0                        ? 100
                          : dtypes[d] == IRON_DTYPE_I64 ? (INT64_C(1) << 32) + 5
                          : dtypes[d] == IRON_DTYPE_I32 ? -7
                                                        : 251;
            uint64_t want[100] = {0};
            char place[80];
            callers c;
            iron_error err;

            put_value(values, dtypes[d], at, bad);
            put_value(values, dtypes[d], COUNT_MAX - 2, 101);
            c = upload(h, values, COUNT_MAX * width);
            assert_ok(add(h, &c, dtypes[d], 0, at, &err), &err);
            count_plainly(values, dtypes[d], at, want);
            assert_refused(add(h, &c, dtypes[d], 0, COUNT_MAX, &err), IRON_E_FORMAT, &err);
            snprintf(place, sizeof place, "value %lld at position %zu ", (long long)bad, at + at);
            assert_says(&err, place);
            assert_counts(h, want, 100, at);
            assert_ok(add(h, &c, dtypes[d], 0, at, &err), &err);
            leave(&c);
            iron_histogram_destroy(h);
            free(values);
        }
}

static void missing_devices(void **state) {
    iron_histogram_context *h = NULL;
    iron_histogram_options o;
    uint32_t value = 0;
    iron_error err;

    (void)state;
    NEED_GPU();
    iron_histogram_options_init(&o);
    o.bins = 7;
    o.backend = gpu_backend();
    o.device = 4711;
    assert_ok(iron_histogram_create(&o, &h, &err), &err);
    assert_refused(iron_histogram_add_device(h, IRON_DTYPE_U32, &value, 1, NULL, &err), IRON_E_ARG,
                   &err);
    assert_says(&err, "4711");
    assert_ok(iron_histogram_add(h, IRON_DTYPE_U32, &value, 1, &err), &err);
    iron_histogram_destroy(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_on_a_device),
        cmocka_unit_test(bad_values_on_a_device),
        cmocka_unit_test(missing_devices),
    };

    return cmocka_run_group_tests_name("gpu_counts", tests, gpu_set_up, gpu_tear_down);
}
