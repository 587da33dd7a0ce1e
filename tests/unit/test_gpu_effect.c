/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_effect.c: ranges of a stream fed by a GPU, the effect of each applied to engines on the
 * CPU and on the GPU: both as if they had been fed everything. And what a GPU cannot tell, it says.
 */
#include "gpu_support.h"

#define TOKENS 30011u
#define RANGES 5u

static void feed(iron_engine *e, const uint32_t *tokens, size_t count) {
    iron_error err;

    assert_ok(iron_engine_feed(e, tokens, count, &err), &err);
    assert_ok(iron_engine_end_batch(e, &err), &err);
}

static void ranges_of_a_gpu(iron_positions positions) {
    uint32_t *tokens = grab_tokens(5, 50257, TOKENS);
    iron_effect effect = {.struct_size = sizeof effect};
    iron_config c = gpu_config(), on_cpu;
    iron_engine *rank, *serial, *whole, *there;
    int32_t additions[33];
    iron_error err;

    c.with_seal = 1;
    c.positions = positions;
    on_cpu = as_on_cpu(c);
    rank = engine_of(&c);
    there = engine_of(&c);
    serial = engine_of(&on_cpu);
    whole = engine_of(&on_cpu);
    feed(serial, tokens, TOKENS);
    feed(rank, tokens, 1234); /* of no importance, once it begins anew */
    for (size_t k = 0; k < RANGES; k++) {
        size_t first = k * 8000 < TOKENS ? k * 8000 : TOKENS / 4 * 4;
        size_t end = first + 8000 < TOKENS ? first + 8000 : k * 8000 < TOKENS ? TOKENS : first;

        assert_ok(iron_engine_begin_at(rank, first, &err), &err);
        feed(rank, tokens + first, end - first);
        assert_ok(iron_engine_effect(rank, &effect, additions, &err), &err);
        assert_ok(iron_engine_apply(whole, &effect, additions, &err), &err);
        assert_ok(iron_engine_apply(there, &effect, additions, &err), &err);
    }
    assert_same_engines(serial, whole);
    assert_same_engines(serial, there);
    feed(serial, tokens, 5000);
    feed(there, tokens, 5000);
    assert_same_engines(serial, there);
    iron_engine_destroy(rank);
    iron_engine_destroy(there);
    iron_engine_destroy(serial);
    iron_engine_destroy(whole);
    free(tokens);
}

static void ranges_are_the_whole(void **state) {
    (void)state;
    NEED_GPU();
    ranges_of_a_gpu(IRON_POSITIONS_STREAM);
    ranges_of_a_gpu(IRON_POSITIONS_BATCH);
}

static void what_a_gpu_cannot_tell(void **state) {
    iron_config c = gpu_config();
    iron_batch_effect batches[4];
    iron_engine *e;
    iron_error err;

    (void)state;
    NEED_GPU();
    e = engine_of(&c);
    assert_ok(iron_engine_begin_at(e, 0, &err), &err);
    assert_refused(iron_engine_record(e, batches, COUNT(batches), &err), IRON_E_UNSUPPORTED, &err);
    iron_engine_destroy(e);
    c.nodes = 11; /* and twelve points */
    e = engine_of(&c);
    assert_refused(iron_engine_begin_at(e, 0, &err), IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "11");
    iron_engine_destroy(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_the_whole),
        cmocka_unit_test(what_a_gpu_cannot_tell),
    };

    return cmocka_run_group_tests(tests, gpu_set_up, gpu_tear_down);
}
