/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_digest.c: digests of tokens in a device's memory, and scans of files by a
 * device, against the same on the CPU: every width, positions and lengths of every remainder,
 * pieces in any order, values that are not tokens, and a missing device.
 */
#include "gpu_support.h"

#include "digest/digest.c"

#include <iron/iron_digest.h>

#define TOKENS 50000u

static const iron_dtype dtypes[] = {IRON_DTYPE_U8, IRON_DTYPE_U16, IRON_DTYPE_U32, IRON_DTYPE_I32,
                                    IRON_DTYPE_I64};

typedef struct on_device {
    iron__gpu_buffer *buffer;
    iron__gpu_queue *queue;
} on_device;

static iron_digest digest_of(void) {
    iron_digest_options o = {
        .struct_size = sizeof o, .threads = 2, .vocab = 200, .backend = gpu_backend()};
    iron_digest d;
    iron_error err;

    assert_ok(iron_digest_init(&d, &o, &err), &err);
    return d;
}

static iron__gpu_device *device_of_digest(iron_digest *d) {
    const digest_data *own;
    const char *info;
    iron_error err;

    assert_true(iron_digest_native_context(d, &err) || strcmp(gpu_backend(), "cuda") == 0);
    own = d->own;
    info = (const char *)&own->gpu->feed->device->info;
    return (iron__gpu_device *)(void *)(info - offsetof(iron__gpu_device, info));
}

/* Tokens below 256, as they are stored. */
static void *stored_as(iron_dtype dtype, uint64_t seed) {
    uint32_t *plain = grab_tokens(seed, 256, TOKENS);
    uint64_t *stored = grab(TOKENS * sizeof *stored);

    for (size_t k = 0; k < TOKENS; k++)
        switch (iron_dtype_bytes(dtype)) {
        case 1:
            ((uint8_t *)stored)[k] = (uint8_t)plain[k];
            break;
        case 2:
            ((uint16_t *)stored)[k] = (uint16_t)plain[k];
            break;
        case 4:
            ((uint32_t *)stored)[k] = plain[k];
            break;
        default:
            stored[k] = plain[k];
        }
    free(plain);
    return stored;
}

static on_device send(iron__gpu_device *device, const void *tokens, size_t bytes) {
    iron__gpu_copy copy = {.from_host = tokens, .bytes = bytes};
    on_device there;
    iron_error err;

    assert_ok(iron__gpu_buffer_create(device, IRON_GPU_MEMORY_DEVICE, bytes, &there.buffer, &err),
              &err);
    assert_ok(iron__gpu_queue_create(device, &there.queue, &err), &err);
    copy.to = there.buffer;
    assert_ok(iron__gpu_copy_bytes(there.queue, &copy, &err), &err);
    assert_ok(iron__gpu_queue_wait(there.queue, &err), &err);
    return there;
}

static void leave(on_device *there) {
    iron__gpu_queue_destroy(there->queue);
    iron__gpu_buffer_destroy(there->buffer);
}

static iron_status update(iron_digest *d, uint64_t position, iron_dtype dtype,
                          const on_device *there, uint64_t count, iron_error *err) {
    return iron_digest_update_device(d, position, dtype, (const void *)there->buffer->native, count,
                                     (void *)there->queue->native, err);
}

static void assert_same_digests(const iron_digest *a, const iron_digest *b) {
    iron_digest_result ra = {.struct_size = sizeof ra}, rb = {.struct_size = sizeof rb};
    iron_error err;

    assert_ok(iron_digest_final(a, &ra, &err), &err);
    assert_ok(iron_digest_final(b, &rb, &err), &err);
    assert_string_equal(ra.seal, rb.seal);
    assert_int_equal(ra.tokens, rb.tokens);
    assert_int_equal(ra.min, rb.min);
    assert_int_equal(ra.max, rb.max);
    assert_int_equal(ra.out_of_vocab, rb.out_of_vocab);
    assert_int_equal(ra.first_out_position, rb.first_out_position);
    assert_int_equal(ra.first_out_value, rb.first_out_value);
}

/* Pieces of the same memory, from the last to the first, between pieces from the host. */
static void every_width_and_place(void **state) {
    static const uint64_t counts[] = {1, 2, 3, 4, 5, 7, 1001, 40001, 6, TOKENS};

    (void)state;
    NEED_GPU();
    for (size_t w = 0; w < COUNT(dtypes); w++) {
        void *tokens = stored_as(dtypes[w], w);
        iron_digest d = digest_of(), want = digest_of();
        on_device there = send(device_of_digest(&d), tokens, TOKENS * iron_dtype_bytes(dtypes[w]));
        uint64_t end = 0;
        iron_error err;

        for (size_t k = 0; k < COUNT(counts); k++)
            end += counts[k];
        for (size_t k = COUNT(counts); k-- > 0;) {
            end -= counts[k];
            if (k % 4 == 3)
                assert_ok(iron_digest_update(&d, end, dtypes[w], tokens, (size_t)counts[k], &err),
                          &err);
            else
                assert_ok(update(&d, end, dtypes[w], &there, counts[k], &err), &err);
            assert_ok(iron_digest_update(&want, end, dtypes[w], tokens, (size_t)counts[k], &err),
                      &err);
        }
        assert_same_digests(&d, &want);
        leave(&there);
        iron_digest_deinit(&d);
        iron_digest_deinit(&want);
        free(tokens);
    }
}

/* Invalid tokens are reported by position and value, and the digest is unchanged. */
static void bad_tokens_are_named(void **state) {
    static const uint64_t places[] = {0, 2, 3, 4, 33333, TOKENS - 1};

    (void)state;
    NEED_GPU();
    for (size_t k = 0; k < 2 * COUNT(places); k++) {
        iron_dtype dtype = k % 2 ? IRON_DTYPE_I64 : IRON_DTYPE_I32;
        void *tokens = stored_as(dtype, 3);
        uint64_t place = places[k / 2];
        iron_digest d = digest_of();
        iron__gpu_device *device = device_of_digest(&d);
        on_device there;
        iron_error err;
        char word[64];

        if (k % 2)
            ((int64_t *)tokens)[place] = INT64_C(1) << 32;
        else
            ((int32_t *)tokens)[place] = -7;
        there = send(device, tokens, TOKENS * iron_dtype_bytes(dtype));
        assert_refused(update(&d, 1, dtype, &there, TOKENS, &err), IRON_E_FORMAT, &err);
        snprintf(word, sizeof word, "position %llu is %s", (unsigned long long)place + 1,
                 k % 2 ? "4294967296" : "-7");
        assert_says(&err, word);
        if (place > 0) { /* the tokens before it are valid */
            iron_digest want = digest_of();

            assert_ok(update(&d, 0, dtype, &there, place, &err), &err);
            assert_ok(iron_digest_update(&want, 0, dtype, tokens, (size_t)place, &err), &err);
            assert_same_digests(&d, &want);
            iron_digest_deinit(&want);
        }
        leave(&there);
        iron_digest_deinit(&d);
        free(tokens);
    }
}

static void refusals(void **state) {
    uint32_t tokens[4] = {1, 2, 3, 4};
    iron_digest_options o = {.struct_size = sizeof o, .device = 4711, .backend = gpu_backend()};
    iron_digest d;
    iron_error err;

    (void)state;
    assert_ok(iron_digest_init(&d, &o, &err), &err);
    assert_int_not_equal(iron_digest_update_device(&d, 0, IRON_DTYPE_U32, tokens, 4, NULL, &err),
                         IRON_OK);
    assert_refused(iron_digest_update_device(&d, 0, IRON_DTYPE_NONE, tokens, 4, NULL, &err),
                   IRON_E_ARG, &err);
    assert_refused(iron_digest_update_device(&d, 0, IRON_DTYPE_U32, NULL, 4, NULL, &err),
                   IRON_E_ARG, &err);
    assert_ok(iron_digest_update_device(&d, 0, IRON_DTYPE_U32, NULL, 0, NULL, &err), &err);
    assert_ok(iron_digest_update(&d, 0, IRON_DTYPE_U32, tokens, 4, &err), &err);
    assert_refused(iron_digest_update_device(&d, 3, IRON_DTYPE_U32, tokens, 4, NULL, &err),
                   IRON_E_STATE, &err);
    iron_digest_deinit(&d);
}

static iron_digest_result scan(const char *path, iron_dtype dtype, const char *backend) {
    iron_source_options inputs = {
        .struct_size = sizeof inputs, .dtype = dtype, .paths = &path, .path_count = 1};
    iron_digest_result r = {.struct_size = sizeof r};
    iron_source *source = NULL;
    iron_manifest *m = NULL;
    iron_scan_options o;
    iron_error err;

    iron_scan_options_init(&o);
    o.backend = backend;
    o.vocab = 200;
    assert_ok(iron_source_open(&inputs, &source, &err), &err);
    assert_ok(iron_scan(source, &o, &m, &err), &err);
    assert_ok(iron_manifest_digest(m, &r, &err), &err);
    iron_manifest_destroy(m);
    iron_source_close(source);
    return r;
}

/* Files of every width, one of them longer than all slots together. */
static void files_are_scanned(void **state) {
    file_name path = name_in(&gpu_place, "tokens.bin");

    (void)state;
    NEED_GPU();
    for (size_t w = 0; w < COUNT(dtypes); w++) {
        void *tokens = stored_as(dtypes[w], w);
        iron_digest_result a, b;

        file_write(path.path, tokens, (TOKENS - w) * iron_dtype_bytes(dtypes[w]));
        a = scan(path.path, dtypes[w], gpu_backend());
        b = scan(path.path, dtypes[w], "cpu");
        assert_memory_equal(&a, &b, sizeof a);
        assert_int_equal(a.tokens, TOKENS - w);
        free(tokens);
    }
    file_write(path.path, "", 0);
    assert_int_equal(scan(path.path, IRON_DTYPE_U16, gpu_backend()).tokens, 0);
}

/* Chunks and parts equal the CPU's. */
static void chunks_are_refused(void **state) {
    file_name path = name_in(&gpu_place, "few.bin");
    const char *paths[] = {path.path};
    iron_source_options inputs = {
        .struct_size = sizeof inputs, .dtype = IRON_DTYPE_U8, .paths = paths, .path_count = 1};
    iron_source *source = NULL;
    iron_manifest *m = NULL;
    iron_scan_options o;
    iron_error err;

    (void)state;
    NEED_GPU();
    file_write(path.path, "tokens", 6);
    iron_scan_options_init(&o);
    o.backend = gpu_backend();
    o.chunk_tokens = 1024;
    assert_ok(iron_source_open(&inputs, &source, &err), &err);
    assert_refused(iron_scan(source, &o, &m, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "on the CPU");
    assert_null(m);
    iron_source_close(source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_width_and_place),
        cmocka_unit_test(bad_tokens_are_named),
        cmocka_unit_test(refusals),
        cmocka_unit_test(files_are_scanned),
        cmocka_unit_test(chunks_are_refused),
    };

    return cmocka_run_group_tests_name("gpu_digest", tests, gpu_set_up, gpu_tear_down);
}
