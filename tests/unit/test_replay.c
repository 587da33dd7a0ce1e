/* SPDX-License-Identifier: MIT */
/*
 * test_replay.c: a file that can only be decompressed in order, read at any position: forwards,
 * backwards, by several threads, and after it was damaged.
 */
#include "io/frames.h"

#include "core/cpu.h"
#include "core/memory.h"
#include "core/thread_pool.h"
#include "place.h"
#include "support.h"

#include <zlib.h>

#define BLOCK_BYTES ((size_t)1 << 20) /* of a block of what is decompressed */
#define BYTES       (5 * BLOCK_BYTES + 12345)

static const iron__input closed = {.fd = -1}; /* a replay opens the file itself */
static file_name name;
static unsigned char *plain;

static void write_gzip(size_t bytes) {
    gzFile file = gzopen(name.path, "wb1");

    assert_non_null(file);
    assert_int_equal(gzwrite(file, plain, (unsigned)bytes), bytes);
    assert_int_equal(gzclose(file), Z_OK);
}

static int set_up(void **state) {
    rng r = {7};

    (void)state;
    folder_make(&place);
    name = name_in(&place, "a.gz");
    plain = grab(BYTES);
    for (size_t k = 0; k < BYTES; k++)
        plain[k] = (unsigned char)(rng_next(&r) >> 60);
    write_gzip(BYTES);
    return 0;
}

static int tear_down(void **state) {
    free(plain);
    return remove_place(state);
}

static iron__frames *open_replay(iron_error *err, iron_status expected) {
    iron__frames *replay = NULL;
    struct stat info;
    iron__input in = {.path = name.path, .fd = -1};

    assert_int_equal(stat(name.path, &info), 0);
    in.bytes = (uint64_t)info.st_size;
    assert_ok(iron__input_open(&in, err), err);
    assert_int_equal(iron__frames_open_any(&in, IRON_CODEC_GZIP, &replay, err), expected);
    iron__input_close(&in);
    return replay;
}

static void check_block(iron__frames *replay, uint64_t index) {
    iron__block block = {.data = NULL};
    size_t first = (size_t)index * BLOCK_BYTES;
    size_t bytes = BYTES - first < BLOCK_BYTES ? BYTES - first : BLOCK_BYTES;
    iron_error err;

    assert_ok(iron__frames_decode(replay, &closed, index, &block, &err), &err);
    assert_int_equal(block.bytes, bytes);
    assert_memory_equal(block.data, plain + first, bytes);
    iron__block_clear(&block);
}

static void any_order(void **state) {
    static const uint64_t order[] = {3, 0, 1, 2, 5, 4, 0, 5, 5, 2};
    iron_error err;
    iron__frames *replay = open_replay(&err, IRON_OK);

    (void)state;
    assert_int_equal(iron__frames_bytes(replay), BYTES);
    for (size_t k = 0; k < COUNT(order); k++)
        check_block(replay, order[k]);
    iron__frames_close(replay);
}

/* More blocks than are kept, in places that are far from one another, forwards and back. */
static void several_places(void **state) {
    uint64_t count = 4 * (uint64_t)iron__cpu_threads() + 12, far = count - 4;
    unsigned char *data = grab(BLOCK_BYTES);
    iron__block block = {.data = NULL};
    gzFile file = gzopen(name.path, "wb1");
    iron__frames *replay;
    iron_error err;

    (void)state;
    for (uint64_t k = 0; k < count; k++) {
        memset(data, (int)(k + 1), BLOCK_BYTES);
        assert_int_equal(gzwrite(file, data, BLOCK_BYTES), BLOCK_BYTES);
    }
    assert_int_equal(gzclose(file), Z_OK);
    replay = open_replay(&err, IRON_OK);
    for (uint64_t k = 0; k < 16; k++) {
        static const uint64_t places[] = {0, 2, 1};
        uint64_t index = places[k % 3] * (far / 2) + k / 4;

        assert_ok(iron__frames_decode(replay, &closed, index, &block, &err), &err);
        assert_int_equal(block.bytes, BLOCK_BYTES);
        memset(data, (int)(index + 1), BLOCK_BYTES);
        assert_memory_equal(block.data, data, BLOCK_BYTES);
    }
    iron__block_clear(&block);
    iron__frames_close(replay);
    free(data);
}

static void read_all(void *context, size_t index) {
    for (uint64_t k = 0; k < 6; k++)
        check_block(context, (k + index) % 6);
}

static void several_threads(void **state) {
    iron__thread_pool *pool = NULL;
    iron_error err;
    iron__frames *replay = open_replay(&err, IRON_OK);

    (void)state;
    assert_ok(iron__thread_pool_create(4, iron__allocator_default(), &pool, &err), &err);
    iron__thread_pool_run(pool, read_all, replay, 4);
    iron__thread_pool_destroy(pool);
    iron__frames_close(replay);
}

/* A file that is other than it was when its bytes were counted. */
static void files_that_change(void **state) {
    iron__block block = {.data = NULL};
    iron_error err;
    iron__frames *replay = open_replay(&err, IRON_OK);

    (void)state;
    write_gzip(BYTES / 2);
    assert_int_equal(iron__frames_decode(replay, &closed, 5, &block, &err) == IRON_OK, false);
    write_gzip(BYTES);
    check_block(replay, 5);
    iron__block_clear(&block);
    iron__frames_close(replay);
}

static void damage(void **state) {
    struct stat info;
    iron_error err;

    (void)state;
    assert_int_equal(stat(name.path, &info), 0);
    assert_int_equal(truncate(name.path, info.st_size - 9), 0);
    assert_null(open_replay(&err, IRON_E_FORMAT));
    assert_says(&err, name.path);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {CASE(any_order), CASE(several_places), CASE(several_threads),
                                       CASE(files_that_change), CASE(damage)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
