/* SPDX-License-Identifier: MIT */
/*
 * test_blocks.c: the cache of blocks, read by several threads: contents, order, errors, memory.
 */
#include "io/blocks.h"

#include "core/fail.h"
#include "core/memory.h"
#include "core/thread_pool.h"
#include "support.h"

#include <unistd.h>

#define BLOCK_BYTES 1000u

typedef struct maker {
    atomic_uint fills[64];
    atomic_int failing;  /* this block fails; -1: none */
    atomic_uint at_once; /* fills that are running, and the most there were */
    atomic_uint most;
    atomic_bool waits;    /* block 0 is ready only after block 1 was begun */
    atomic_bool has_next; /* block 1 was begun */
} maker;

static unsigned char byte_of(uint64_t index, size_t k) {
    return (unsigned char)(index * 31 + k * 7);
}

static iron_status make_block(void *context, uint64_t index, iron__block *block,
                              const atomic_bool *stop, iron_error *err) {
    maker *m = context;
    unsigned running = atomic_fetch_add(&m->at_once, 1) + 1;
    unsigned most = atomic_load(&m->most);

    (void)stop;
    while (most < running && !atomic_compare_exchange_weak(&m->most, &most, running)) {
    }
    atomic_fetch_add(&m->fills[index], 1);
    if (index == 1)
        atomic_store(&m->has_next, true);
    while (index == 0 && atomic_load(&m->waits) && !atomic_load(&m->has_next))
        usleep(100);
    atomic_fetch_sub(&m->at_once, 1);
    if (atomic_load(&m->failing) == (int)index)
        return iron__fail(err, IRON_E_FORMAT, 0, "block %d is bad", (int)index);
    assert_ok(iron__block_reserve(block, BLOCK_BYTES, err), err);
    for (size_t k = 0; k < BLOCK_BYTES; k++)
        block->data[k] = byte_of(index, k);
    block->bytes = BLOCK_BYTES;
    return iron__block_add_place(block, index, err);
}

static uint64_t size_of_block(void *context, uint64_t index) {
    (void)context, (void)index;
    return BLOCK_BYTES;
}

typedef struct reading {
    iron__blocks *blocks;
    iron__blocks_owner owner;
    maker maker;
    atomic_uint wrong;
} reading;

static void read_block(reading *r, uint64_t index) {
    const iron__block *block = NULL;
    iron_error err;

    assert_ok(iron__blocks_get(r->blocks, &r->owner, index, &block, NULL, &err), &err);
    if (block->bytes != BLOCK_BYTES || block->place_count != 1 || block->places[0] != index)
        atomic_fetch_add(&r->wrong, 1);
    for (size_t k = 0; k < BLOCK_BYTES; k++)
        if (block->data[k] != byte_of(index, k))
            atomic_fetch_add(&r->wrong, 1);
    iron__blocks_put(r->blocks, block, BLOCK_BYTES / 3 + 1);
}

static void begin(reading *r, uint32_t threads) {
    iron_error err;

    memset(r, 0, sizeof *r);
    atomic_store(&r->maker.failing, -1);
    r->owner = (iron__blocks_owner){64, make_block, size_of_block, &r->maker};
    assert_ok(iron__blocks_create(threads, &r->blocks, &err), &err);
}

static void read_in_order(void *context, size_t index) {
    (void)index;
    for (uint64_t k = 0; k < 64; k++)
        read_block(context, k);
}

static void read_anywhere(void *context, size_t index) {
    rng r = {index + 1};

    for (int k = 0; k < 300; k++)
        read_block(context, rng_below(&r, 64));
}

/* Threads that read in order produce every block about once; whatever they do, all see the same
 * bytes. */
static void contents(void **state) {
    iron__task tasks[] = {read_in_order, read_anywhere};

    (void)state;
    for (size_t t = 0; t < 2; t++)
        for (uint32_t threads = 1; threads < 6; threads++) {
            iron__thread_pool *pool = NULL;
            iron_error err;
            reading r;

            begin(&r, threads);
            assert_ok(iron__thread_pool_create(threads, iron__allocator_default(), &pool, &err),
                      &err);
            iron__thread_pool_run(pool, tasks[t], &r, threads);
            assert_int_equal(r.wrong, 0);
            assert_true(r.maker.most <= threads);
            iron__thread_pool_destroy(pool);
            iron__blocks_destroy(r.blocks);
        }
}

/* One thread alone produces each block once and nothing ahead. */
static void one_thread(void **state) {
    reading r;

    (void)state;
    begin(&r, 1);
    for (uint64_t k = 0; k < 10; k++)
        for (int again = 0; again < 3; again++)
            read_block(&r, k);
    for (size_t k = 0; k < 64; k++)
        assert_int_equal(r.maker.fills[k], k < 10 ? 1 : 0);
    iron__blocks_destroy(r.blocks);
}

static void read_first(void *context, size_t index) {
    (void)index;
    read_block(context, 0);
}

/* A thread that would wait for a block produces the next one meanwhile: here the first block is
 * ready only when that has begun. */
static void work_ahead_of_need(void **state) {
    iron__thread_pool *pool = NULL;
    iron_error err;
    reading r;

    (void)state;
    begin(&r, 2);
    atomic_store(&r.maker.waits, true);
    assert_ok(iron__thread_pool_create(2, iron__allocator_default(), &pool, &err), &err);
    iron__thread_pool_run(pool, read_first, &r, 2);
    assert_int_equal(r.maker.fills[0], 1);
    assert_int_equal(r.maker.fills[1], 1);
    iron__thread_pool_destroy(pool);
    iron__blocks_destroy(r.blocks);
}

/* An error is the caller's, every time, and does not harm other blocks. */
static void errors(void **state) {
    const iron__block *block = NULL;
    iron_error err;
    reading r;

    (void)state;
    begin(&r, 2);
    atomic_store(&r.maker.failing, 3);
    for (int again = 0; again < 2; again++) {
        assert_refused(iron__blocks_get(r.blocks, &r.owner, 3, &block, NULL, &err), IRON_E_FORMAT,
                       &err);
        assert_says(&err, "block 3 is bad");
        read_block(&r, 2);
        read_block(&r, 4);
    }
    atomic_store(&r.maker.failing, -1);
    read_block(&r, 3);
    assert_int_equal(r.wrong, 0);
    iron__blocks_destroy(r.blocks);
}

static void stopping(void **state) {
    const iron__block *block = NULL;
    atomic_bool stop = true;
    iron_error err;
    reading r;

    (void)state;
    begin(&r, 1);
    assert_refused(iron__blocks_get(r.blocks, &r.owner, 0, &block, &stop, &err), IRON_E_CANCELLED,
                   &err);
    iron__blocks_destroy(r.blocks);
}

/* Reserving keeps what is there. */
static void growing(void **state) {
    iron__block block = {.data = NULL};
    iron_error err;

    (void)state;
    assert_ok(iron__block_reserve(&block, 10, &err), &err);
    memcpy(block.data, "0123456789", 10);
    block.bytes = 10;
    assert_ok(iron__block_reserve(&block, 100000, &err), &err);
    assert_memory_equal(block.data, "0123456789", 10);
    assert_int_equal((uintptr_t)block.data % 64, 0);
    for (uint64_t k = 0; k < 1000; k++)
        assert_ok(iron__block_add_place(&block, k, &err), &err);
    for (uint64_t k = 0; k < 1000; k++)
        assert_int_equal(block.places[k], k);
    assert_refused(iron__block_reserve(&block, SIZE_MAX, &err), IRON_E_NOMEM, &err);
    assert_int_equal(block.bytes, 10);
    iron__block_clear(&block);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contents),           cmocka_unit_test(one_thread),
        cmocka_unit_test(work_ahead_of_need), cmocka_unit_test(errors),
        cmocka_unit_test(stopping),           cmocka_unit_test(growing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
