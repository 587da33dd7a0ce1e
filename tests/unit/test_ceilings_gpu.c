/* SPDX-License-Identifier: MIT */
/*
 * test_ceilings_gpu.c: the kernels behind a device's ceilings read, write or copy every byte and no
 * other, in every shape and at lengths around whole blocks; and the measurement itself with little
 * memory, cancelled at every step.
 *
 * On the first OpenCL device; without one most tests are skipped with the reason.
 */
#include "support.h"

#include "arena/device_gpu.c"

#define BLOCK_QUADS (PASS_BLOCK_BYTES / PASS_QUAD_BYTES)
#define QUADS_MAX   (9 * BLOCK_QUADS + 77)
#define GUARD       16u /* quads after the last one, which must stay unchanged */
#define WORDS(q)    (4 * (size_t)(q))

static folder place;
static iron_error reason; /* why there is no device */
static iron__gpu_device *device;
static iron__gpu_queue *queue;
static iron__gpu_buffer *buffer;
static pass_kernels passes;
static uint32_t *before, *after; /* the buffer's words on the host */

static const size_t lengths[] = {0,
                                 1,
                                 3,
                                 4,
                                 5,
                                 511,
                                 512,
                                 BLOCK_QUADS - 1,
                                 BLOCK_QUADS,
                                 BLOCK_QUADS + 1,
                                 3 * BLOCK_QUADS,
                                 8 * BLOCK_QUADS,
                                 8 * BLOCK_QUADS + 1,
                                 QUADS_MAX};

/* PoCL's compiler leaks; our own leaks are still found. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libpocl\nleak:libLLVM\n"; }

#define NEED_DEVICE()                                                                              \
    do {                                                                                           \
        if (!device) {                                                                             \
            print_message("skipped: %s\n", reason.text);                                           \
            skip();                                                                                \
        }                                                                                          \
    } while (0)

static int open_all(void **state) {
    size_t bytes = (2 * QUADS_MAX + GUARD) * PASS_QUAD_BYTES;

    (void)state;
    folder_make(&place);
    setenv("IRON_CACHE_DIR", name_in(&place, "cache").path, 1);
    setenv("POCL_CACHE_DIR", place.path, 0); /* PoCL's own cache, not in the user's home */
    if (iron__gpu_device_open(iron__gpu_backend_find("opencl"), 0, &device, &reason) != IRON_OK)
        return 0;
    if (iron__gpu_queue_create(device, &queue, &reason) != IRON_OK ||
        pass_kernels_init(&passes, device, &reason) != IRON_OK ||
        iron__gpu_buffer_create(device, IRON_GPU_MEMORY_DEVICE, bytes, &buffer, &reason) !=
            IRON_OK) {
        print_error("%s\n", reason.text);
        return -1;
    }
    before = grab_tokens(3, UINT64_C(1) << 32, bytes / sizeof *before);
    after = grab(bytes);
    return 0;
}

static int close_all(void **state) {
    (void)state;
    free(before);
    free(after);
    iron__gpu_buffer_destroy(buffer);
    pass_kernels_deinit(&passes);
    iron__gpu_queue_destroy(queue);
    iron__gpu_device_close(device);
    folder_remove(&place);
    return 0;
}

static void fill_buffer(void) {
    iron__gpu_copy copy = {.from_host = before, .to = buffer, .bytes = buffer->bytes};
    iron_error err;

    assert_ok(iron__gpu_copy_bytes(queue, &copy, &err), &err);
}

static void read_buffer(void) {
    iron__gpu_copy copy = {.from = buffer, .to_host = after, .bytes = buffer->bytes};
    iron_error err;

    assert_ok(iron__gpu_copy_bytes(queue, &copy, &err), &err);
    assert_ok(iron__gpu_queue_wait(queue, &err), &err);
}

static void put(pass_kind kind, pass_shape shape, size_t quads, uint32_t value) {
    iron_error err;

    assert_ok(put_pass(&passes, queue, kind, shape, buffer, quads, value, &err), &err);
}

/* Calls check for every order, some numbers of groups, and every length. */
static void in_every_shape(void (*check)(pass_shape shape, size_t quads)) {
    static const uint32_t groups[] = {1, 2, 4, 8};

    for (int order = PASS_CONTIGUOUS; order <= PASS_PER_THREAD; order++)
        for (size_t g = 0; g < COUNT(groups); g++)
            for (size_t k = 0; k < COUNT(lengths); k++)
                check((pass_shape){groups[g], (pass_order)order}, lengths[k]);
}

static void clear_result(void) {
    iron_error err;

    assert_ok(iron__gpu_clear(queue, passes.result, 0, sizeof(uint32_t), &err), &err);
}

static uint32_t fetch_result(void) {
    uint32_t found = 1;
    iron__gpu_copy copy = {.from = passes.result, .to_host = &found, .bytes = sizeof found};
    iron_error err;

    assert_ok(iron__gpu_copy_bytes(queue, &copy, &err), &err);
    assert_ok(iron__gpu_queue_wait(queue, &err), &err);
    return found;
}

static void check_read(pass_shape shape, size_t quads) {
    uint32_t expected = 0;

    for (size_t k = 0; k < WORDS(quads); k++)
        expected ^= before[k];
    clear_result();
    put(PASS_READ, shape, quads, 0);
    assert_int_equal(fetch_result(), expected);
}

static void reading_reads_every_word(void **state) {
    (void)state;
    NEED_DEVICE();
    fill_buffer();
    in_every_shape(check_read);
}

static void results_add_up(void **state) {
    pass_shape shape = {4, PASS_CONTIGUOUS};

    (void)state;
    NEED_DEVICE();
    fill_buffer();
    clear_result();
    put(PASS_READ, shape, QUADS_MAX, 0);
    put(PASS_READ, shape, QUADS_MAX, 0);
    assert_int_equal(fetch_result(), 0);
}

static void check_writing(pass_shape shape, size_t quads) {
    uint32_t value = 0xFFFFFF00u + (uint32_t)quads;

    fill_buffer();
    put(PASS_WRITE, shape, quads, value);
    read_buffer();
    for (size_t k = 0; k < WORDS(quads); k++)
        assert_int_equal(after[k], value + (uint32_t)k);
    assert_memory_equal(after + WORDS(quads), before + WORDS(quads), 16 * GUARD);
}

static void writing_writes_every_word(void **state) {
    (void)state;
    NEED_DEVICE();
    in_every_shape(check_writing);
}

static void check_copying(pass_shape shape, size_t quads) {
    fill_buffer();
    put(PASS_COPY, shape, quads, 0);
    read_buffer();
    assert_memory_equal(after, before, 16 * quads);
    assert_memory_equal(after + WORDS(quads), before, 16 * quads);
    assert_memory_equal(after + WORDS(2 * quads), before + WORDS(2 * quads), 16 * GUARD);
}

static void copying_copies_every_word(void **state) {
    (void)state;
    NEED_DEVICE();
    in_every_shape(check_copying);
}

static void shapes_have_names(void **state) {
    static const iron__gpu_info infos[] = {{.is_gpu = true}, {.is_gpu = false}};
    char text[sizeof((iron_device_ceilings){0}).read_shape];

    (void)state;
    for (size_t k = 0; k < COUNT(infos); k++)
        for (size_t s = 0; pass_shape_for(&infos[k], s); s++) {
            pass_shape_name(*pass_shape_for(&infos[k], s), text, sizeof text);
            assert_true(strlen(text) < sizeof text - 1); /* nothing is cut */
            assert_non_null(strstr(text, " x 256 threads a unit, "));
        }
    pass_shape_name((pass_shape){8, PASS_CONTIGUOUS}, text, sizeof text);
    assert_string_equal(text, "8 x 256 threads a unit, contiguous");
}

static void a_device_is_measured(void **state) {
    iron_measure_options options = {.buffer_bytes = 5 << 20};
    iron_device_ceilings c;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    assert_ok(iron_measure_device("opencl", 0, &options, &c, &err), &err);
    assert_int_equal(c.passes, 9);
    assert_int_equal(c.buffer_bytes, 4 << 20); /* whole granules */
    assert_true(c.read_gb_s > 0 && c.write_gb_s > 0 && c.copy_gb_s > 0);
    assert_true(c.to_device_pageable_gb_s > 0 && c.to_device_pinned_gb_s > 0);
    assert_true(c.from_device_pinned_gb_s > 0);
    assert_true((c.zero_copy_gb_s > 0) == !device->info.lacks[IRON_GPU_ZERO_COPY][0]);
    assert_non_null(strstr(c.read_shape, " x 256 threads a unit, "));
}

typedef struct progress_calls {
    uint64_t calls, limit, total;
} progress_calls;

static int count_and_cancel(void *context, uint64_t done, uint64_t total) {
    progress_calls *p = context;

    assert_int_equal(done, ++p->calls);
    p->total = total;
    return done == p->limit;
}

static void measuring_is_cancelled_at_every_step(void **state) {
    progress_calls p = {.limit = UINT64_MAX};
    iron_measure_options options = {2, 2 << 20, count_and_cancel, &p};
    iron_device_ceilings c;
    uint64_t total;
    iron_error err;

    (void)state;
    NEED_DEVICE();
    assert_ok(iron_measure_device("opencl", 0, &options, &c, &err), &err);
    assert_int_equal(p.calls, p.total);
    total = p.total;
    for (uint64_t limit = 1; limit <= total; limit++) {
        p = (progress_calls){.limit = limit};
        assert_refused(iron_measure_device("opencl", 0, &options, &c, &err), IRON_E_CANCELLED,
                       &err);
        assert_int_equal(p.calls, limit);
    }
}

static void unknown_devices_are_refused(void **state) {
    iron_measure_options options = {.buffer_bytes = 2 << 20};
    iron_device_ceilings c;
    iron_error err;

    (void)state;
    assert_refused(iron_measure_device("cpu", 0, &options, &c, &err), IRON_E_ARG, &err);
    assert_says(&err, "cpu");
    assert_refused(iron_measure_device(NULL, 0, &options, &c, &err), IRON_E_ARG, &err);
    if (device) {
        assert_refused(iron_measure_device("opencl", 99, &options, &c, &err), IRON_E_ARG, &err);
        assert_says(&err, "99");
        /* more than any device can allocate: does not mark the device as failed */
        options.buffer_bytes = UINT64_C(1) << 50;
        assert_refused(iron_measure_device("opencl", 0, &options, &c, &err), IRON_E_NOMEM, &err);
    }
}

static void the_cache_folder(void **state) {
    char path[64];
    iron_error err;

    (void)state;
    setenv("IRON_CACHE_DIR", "/some/place", 1);
    assert_ok(iron_cache_folder(path, sizeof path, &err), &err);
    assert_string_equal(path, "/some/place");
    assert_refused(iron_cache_folder(path, sizeof "/some/place" - 1, &err), IRON_E_ARG, &err);
    assert_string_equal(path, "");
    unsetenv("IRON_CACHE_DIR");
    setenv("XDG_CACHE_HOME", "/of/xdg", 1);
    assert_ok(iron_cache_folder(path, sizeof path, &err), &err);
    assert_string_equal(path, "/of/xdg/iron");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "", 1);
    assert_refused(iron_cache_folder(path, sizeof path, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "IRON_CACHE_DIR");
    assert_string_equal(path, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_reads_every_word),
        cmocka_unit_test(results_add_up),
        cmocka_unit_test(writing_writes_every_word),
        cmocka_unit_test(copying_copies_every_word),
        cmocka_unit_test(shapes_have_names),
        cmocka_unit_test(a_device_is_measured),
        cmocka_unit_test(measuring_is_cancelled_at_every_step),
        cmocka_unit_test(unknown_devices_are_refused),
        cmocka_unit_test(the_cache_folder),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
