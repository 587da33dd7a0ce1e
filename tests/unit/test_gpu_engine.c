/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_engine.c: an engine on a GPU is used like one on the CPU and gives the same bits: feeds
 * of all sizes and widths by every memory strategy, reports in between, sources, states that move
 * between backends, and ranges of a stream. Bad arguments are refused with helpful messages, and
 * failures leak nothing.
 *
 * The selftest covers the shapes of streams; this file covers the order of calls.
 */
#include "gpu_support.h"

/* Two engines that are fed the same. */
typedef struct pair {
    iron_engine *gpu, *cpu;
} pair;

static pair pair_of(iron_config c) {
    iron_config reference = as_on_cpu(c);

    return (pair){engine_of(&c), engine_of(&reference)};
}

static void pair_destroy(pair *p) {
    iron_engine_destroy(p->gpu);
    iron_engine_destroy(p->cpu);
}

static void feed_both(pair *p, iron_dtype dtype, const void *tokens, size_t count) {
    iron_error err;

    assert_ok(iron_engine_feed_as(p->gpu, dtype, tokens, count, &err), &err);
    assert_ok(iron_engine_feed_as(p->cpu, dtype, tokens, count, &err), &err);
}

static void end_both(pair *p) {
    iron_error err;

    assert_ok(iron_engine_end_batch(p->gpu, &err), &err);
    assert_ok(iron_engine_end_batch(p->cpu, &err), &err);
}

static const iron_dtype dtypes[] = {IRON_DTYPE_U8, IRON_DTYPE_U16, IRON_DTYPE_U32, IRON_DTYPE_I32,
                                    IRON_DTYPE_I64};

/* Random tokens that the width can hold; free() them. */
static void *random_tokens(rng *r, iron_dtype dtype, size_t count) {
    size_t width = iron_dtype_bytes(dtype);
    unsigned char *tokens = grab(count * width);

    for (size_t k = 0; k < count; k++) {
        uint32_t value = dtype == IRON_DTYPE_I32 ? rng_u32(r) >> 1 : rng_u32(r);
        int64_t wide = value;

        memcpy(tokens + k * width, width == 8 ? (void *)&wide : (void *)&value, width);
    }
    return tokens;
}

static size_t random_count(rng *r, size_t round) {
    static const size_t sizes[] = {1, 1, 1, 2, 3, 5, 17, 999, 1000, 1001, 4096};

    if (round == 20)
        return ((size_t)4 << 20) / 4 + 12345; /* more than a slot of any width up to 4 bytes */
    return rng_below(r, 8) ? sizes[rng_below(r, COUNT(sizes))] : rng_below(r, 70000);
}

/* Feeds of one token among large ones, of changing widths, with reports now and then. */
static void feeds_of_all_sizes(void **state) {
    (void)state;
    NEED_GPU();
    for (iron__gpu_strategy k = 0; k < IRON_GPU_STRATEGIES; k++) {
        iron_config c = gpu_config();
        rng r = {11 + k};
        pair p;

        if (!gpu_offers(k))
            continue;
        c.memory = iron__gpu_strategy_name(k);
        c.with_seal = k % 2;
        c.positions = k % 3 ? IRON_POSITIONS_STREAM : IRON_POSITIONS_BATCH;
        p = pair_of(c);
        assert_string_equal(iron_engine_memory(p.gpu), c.memory);
        for (size_t round = 0; round < 60; round++) {
            iron_dtype dtype = dtypes[rng_below(&r, COUNT(dtypes))];
            size_t count = random_count(&r, round);
            void *tokens = random_tokens(&r, dtype, count);

            feed_both(&p, dtype, tokens, count);
            free(tokens);
            if (rng_below(&r, 5) == 0)
                assert_same_engines(p.gpu, p.cpu);
            if (rng_below(&r, 7) == 0)
                end_both(&p);
        }
        assert_same_engines(p.gpu, p.cpu);
        end_both(&p);
        assert_same_engines(p.gpu, p.cpu);
        pair_destroy(&p);
    }
}

/* One at a time, past several batches, in a mode of each kind. */
static void one_token_at_a_time(void **state) {
    static const char *const modes[] = {"champion", "reduce", "atomic2d", "tiled-vector"};
    rng r = {3};

    (void)state;
    NEED_GPU();
    for (size_t m = 0; m < COUNT(modes); m++) {
        iron_config c = gpu_config();
        pair p;

        c.mode = modes[m];
        c.batch = 64;
        p = pair_of(c);
        for (size_t k = 0; k < 300; k++) {
            uint32_t token = rng_u32(&r);
            uint8_t small = (uint8_t)token;

            if (k / 10 % 2)
                feed_both(&p, IRON_DTYPE_U8, &small, 1);
            else
                feed_both(&p, IRON_DTYPE_U32, &token, 1);
            assert_int_equal(iron_engine_config(p.gpu)->batch, 64);
            if (k % 97 == 0)
                assert_same_engines(p.gpu, p.cpu);
        }
        feed_both(&p, IRON_DTYPE_U32, NULL, 0);
        end_both(&p);
        assert_same_engines(p.gpu, p.cpu);
        pair_destroy(&p);
    }
}

/* Memory from iron_engine_tokens_alloc: complete, from its middle, and freed in any order. */
static void feeds_from_its_own_memory(void **state) {
    size_t count = ((size_t)4 << 20) / 4 + 999;
    iron_config c = gpu_config();
    void *a = NULL, *b = NULL;
    rng r = {8};
    uint32_t *tokens;
    iron_error err;
    pair p;

    (void)state;
    NEED_GPU();
    p = pair_of(c);
    tokens = random_tokens(&r, IRON_DTYPE_U32, count);
    assert_ok(iron_engine_tokens_alloc(p.gpu, count * sizeof *tokens, &a, &err), &err);
    assert_ok(iron_engine_tokens_alloc(p.gpu, 400, &b, &err), &err);
    memcpy(a, tokens, count * sizeof *tokens);
    memcpy(b, tokens, 400);
    assert_ok(iron_engine_feed(p.gpu, a, count, &err), &err);
    memset(a, 0, 4096); /* it is free again when the feed returns */
    assert_ok(iron_engine_feed(p.gpu, b, 100, &err), &err);
    memset(b, 0, 400);
    assert_ok(iron_engine_feed(p.gpu, (uint32_t *)a + 1024, 5, &err), &err);
    iron_engine_tokens_free(p.gpu, a);
    iron_engine_tokens_free(p.gpu, NULL);
    assert_ok(iron_engine_feed(p.cpu, tokens, count, &err), &err);
    assert_ok(iron_engine_feed(p.cpu, tokens, 100, &err), &err);
    assert_ok(iron_engine_feed(p.cpu, tokens + 1024, 5, &err), &err);
    end_both(&p);
    assert_same_engines(p.gpu, p.cpu);
    free(tokens);
    pair_destroy(&p); /* while b is still allocated */
}

static iron_source *source_of(const char *path, iron_dtype dtype) {
    iron_source_options o = {
        .struct_size = sizeof o, .dtype = dtype, .format = NULL, .paths = &path, .path_count = 1};
    iron_source *s = NULL;
    iron_error err;

    assert_ok(iron_source_open(&o, &s, &err), &err);
    return s;
}

/* A file longer than all slots, with every strategy; ordinary feeds before and after. Wide tokens
 * fill the slots soonest. */
static void feeds_from_files(void **state) {
    file_name path = name_in(&gpu_place, "tokens");
    const iron__feed_shape shape = iron__feed_shape_default(1);
    size_t count = ((shape.slot_count + 2) * shape.slot_bytes + 12345) / sizeof(int64_t);
    rng r = {21};
    int64_t *tokens;

    (void)state;
    NEED_GPU();
    tokens = random_tokens(&r, IRON_DTYPE_I64, count);
    file_write(path.path, tokens, count * sizeof *tokens);
    for (iron__gpu_strategy k = 0; k < IRON_GPU_STRATEGIES; k++) {
        iron_config c = gpu_config();
        iron_source *s;
        iron_error err;
        pair p;

        if (!gpu_offers(k))
            continue;
        c.memory = iron__gpu_strategy_name(k);
        c.batch = 100003;
        c.with_seal = k == IRON_GPU_STREAMS;
        p = pair_of(c);
        assert_ok(iron_engine_prepare(p.gpu, &err), &err);
        feed_both(&p, IRON_DTYPE_I64, tokens, 7);
        s = source_of(path.path, IRON_DTYPE_I64);
        assert_ok(iron_engine_feed_source(p.gpu, s, NULL, NULL, &err), &err);
        iron_source_close(s);
        assert_ok(iron_engine_feed_as(p.cpu, IRON_DTYPE_I64, tokens, count, &err), &err);
        feed_both(&p, IRON_DTYPE_I64, tokens + 1, 70001);
        feed_both(&p, IRON_DTYPE_U8, tokens, 5);
        end_both(&p);
        assert_same_engines(p.gpu, p.cpu);
        pair_destroy(&p);
    }
    free(tokens);
}

static int stop_soon(void *context, uint64_t done, uint64_t total) {
    (void)total;
    return done > *(uint64_t *)context;
}

/* A cancelled feed has consumed a part; the engine continues from there. */
static void cancelled_feeds(void **state) {
    file_name path = name_in(&gpu_place, "tokens");
    size_t count = (size_t)20 << 20;
    uint64_t limit = (uint64_t)6 << 20, before;
    iron_config c = gpu_config();
    rng r = {22};
    uint16_t *tokens;
    iron_source *s;
    iron_error err;
    pair p;

    (void)state;
    NEED_GPU();
    tokens = random_tokens(&r, IRON_DTYPE_U16, count);
    file_write(path.path, tokens, count * 2);
    p = pair_of(c);
    s = source_of(path.path, IRON_DTYPE_U16);
    assert_refused(iron_engine_feed_source(p.gpu, s, stop_soon, &limit, &err), IRON_E_CANCELLED,
                   &err);
    iron_source_close(s);
    before = report_of(p.gpu).tokens + report_of(p.gpu).open_tokens;
    assert_true(before > limit && before < count);
    assert_ok(iron_engine_feed_as(p.cpu, IRON_DTYPE_U16, tokens, (size_t)before, &err), &err);
    feed_both(&p, IRON_DTYPE_U16, tokens, 54321);
    end_both(&p);
    assert_same_engines(p.gpu, p.cpu);
    pair_destroy(&p);
    free(tokens);
}

/* A token out of range is refused before anything is consumed. */
static void bad_tokens(void **state) {
    int64_t wide[] = {1, 2, -1, 4};
    iron_config c = gpu_config();
    iron_error err;
    pair p;

    (void)state;
    NEED_GPU();
    c.with_seal = 1;
    p = pair_of(c);
    feed_both(&p, IRON_DTYPE_I64, wide, 2);
    assert_refused(iron_engine_feed_as(p.gpu, IRON_DTYPE_I64, wide, 4, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "position 4 is -1");
    wide[2] = INT64_C(1) << 32;
    assert_refused(iron_engine_feed_as(p.gpu, IRON_DTYPE_I64, wide, 4, &err), IRON_E_FORMAT, &err);
    assert_refused(iron_engine_feed_as(p.gpu, IRON_DTYPE_U32, (char *)wide + 1, 1, &err),
                   IRON_E_ARG, &err);
    wide[2] = UINT32_MAX;
    feed_both(&p, IRON_DTYPE_I64, wide, 4);
    end_both(&p);
    assert_same_engines(p.gpu, p.cpu);
    pair_destroy(&p);
}

/* A state moves between any two backends. */
static void states_move_between_backends(void **state) {
    size_t count = 54321;
    rng r = {31};
    uint32_t *tokens;

    (void)state;
    NEED_GPU();
    tokens = random_tokens(&r, IRON_DTYPE_U32, count);
    for (size_t turn = 0; turn < 4; turn++) {
        iron_config c = gpu_config(), run, reference = as_on_cpu(c);
        file_name path = name_in(&gpu_place, "state");
        iron_engine *whole, *first, *second = NULL;
        iron_error err;

        c.with_seal = reference.with_seal = 1;
        run = turn & 1 ? c : reference;
        whole = engine_of(&reference);
        first = engine_of(turn & 2 ? &c : &reference);
        assert_ok(iron_engine_feed(first, tokens, 20001, &err), &err);
        assert_refused(iron_engine_save(first, path.path, &err), IRON_E_STATE, &err);
        assert_ok(iron_engine_end_batch(first, &err), &err);
        assert_ok(iron_engine_save(first, path.path, &err), &err);
        assert_ok(iron_engine_load(path.path, &run, &second, &err), &err);
        assert_string_equal(iron_engine_backend(second), run.backend);
        assert_same_engines(second, first);
        assert_ok(iron_engine_feed(second, tokens + 20001, count - 20001, &err), &err);
        assert_ok(iron_engine_end_batch(second, &err), &err);
        assert_ok(iron_engine_feed(whole, tokens, 20001, &err), &err);
        assert_ok(iron_engine_end_batch(whole, &err), &err);
        assert_ok(iron_engine_feed(whole, tokens + 20001, count - 20001, &err), &err);
        assert_ok(iron_engine_end_batch(whole, &err), &err);
        assert_same_engines(second, whole);
        iron_engine_destroy(whole);
        iron_engine_destroy(first);
        iron_engine_destroy(second);
    }
    free(tokens);
}

static void refuse(const iron_config *c, iron_status expected, const char *word) {
    iron_engine *e = (iron_engine *)&gpu_place;
    iron_error err;

    assert_refused(iron_engine_create(c, &e, &err), expected, &err);
    assert_null(e);
    assert_says(&err, word);
}

static void refusals_have_advice(void **state) {
    iron_config c = gpu_config();

    (void)state;
    NEED_GPU();
    c.memory = "telepathy";
    refuse(&c, IRON_E_ARG, "unknown memory strategy 'telepathy'");
    refuse(&c, IRON_E_ARG, "pageable, pinned, streams, uvm, uvm-prefetch or zero-copy");
    c.memory = "auto";
    c.device = 99;
    refuse(&c, IRON_E_ARG, "device 99 does not exist");
    refuse(&c, IRON_E_ARG, gpu_backend());
    c.device = 0;
    c.mode = "scalar";
    refuse(&c, IRON_E_ARG, "has no mode 'scalar'");
    refuse(&c, IRON_E_ARG, "atomic2d node hybrid tiled tiled-wide tiled-vector hybrid-vector");
    c.mode = "";
    refuse(&c, IRON_E_ARG, "mode");
    c.mode = "champion";
    c.nodes = 0;
    refuse(&c, IRON_E_ARG, "nodes");
    c = as_on_cpu(gpu_config());
    c.memory = "streams";
    refuse(&c, IRON_E_ARG, "memory strategy streams is for GPUs");
    c.memory = "telepathy";
    refuse(&c, IRON_E_ARG, "unknown memory strategy");
    c.memory = NULL;
    c.device = 1;
    refuse(&c, IRON_E_ARG, "device 1 does not exist");
}

/* A strategy that the device lacks is refused with the device's reason. */
static void missing_strategies(void **state) {
    iron__gpu_info info;
    size_t lacking = 0;
    iron_error err;

    (void)state;
    NEED_GPU();
    assert_ok(iron__gpu_describe(gpu_index(), 0, &info, &err), &err);
    for (iron__gpu_strategy k = 0; k < IRON_GPU_STRATEGIES; k++) {
        iron_config c = gpu_config();

        if (!info.lacks[k][0])
            continue;
        c.memory = iron__gpu_strategy_name(k);
        refuse(&c, IRON_E_UNSUPPORTED, info.lacks[k]);
        refuse(&c, IRON_E_UNSUPPORTED, c.memory);
        lacking++;
    }
    if (lacking == 0)
        print_message("the device offers every strategy\n");
}

static void engines_describe_themselves(void **state) {
    iron_config c = gpu_config();
    iron_engine *e;
    iron__gpu_info info;
    iron_error err;

    (void)state;
    NEED_GPU();
    assert_ok(iron__gpu_describe(gpu_index(), 0, &info, &err), &err);
    e = engine_of(&c);
    assert_string_equal(iron_engine_device(e), info.name);
    assert_string_equal(iron_engine_mode(e), "champion");
    assert_int_equal(strncmp(iron_engine_mode_reason(e), "asked for: tokens.", 18), 0);
    assert_string_equal(iron_engine_memory(e),
                        gpu_offers(IRON_GPU_STREAMS) ? "streams" : "pageable");
    assert_non_null(iron_engine_native_context(e));
    assert_true(iron_engine_seconds_estimate(e, 1 << 30) == 0);
    iron_engine_destroy(e);
    c.mode = "node";
    e = engine_of(&c);
    assert_true(iron_engine_seconds_estimate(e, 1 << 30) > 0);
    iron_engine_destroy(e);
}

/* The n-th allocation fails, for every n: no leak, a clear error, and the last n works. */
static void out_of_memory(void **state) {
    static const char *const modes[] = {"champion", "atomic2d"};

    (void)state;
    NEED_GPU();
    for (size_t m = 0; m < COUNT(modes); m++) {
        for (size_t n = 1;; n++) {
            ledger l = {.fail_at = n};
            iron_allocator allocator = ledger_allocator(&l);
            iron_config c = gpu_config();
            iron_engine *e = NULL;
            iron_error err = {0};
            iron_status status;

            c.allocator = &allocator;
            c.mode = modes[m];
            c.with_seal = 1;
            status = iron_engine_create(&c, &e, &err);
            if (status == IRON_OK) {
                assert_true(n > 5 && l.calls == n - 1);
                iron_engine_destroy(e);
                assert_int_equal(l.out, 0);
                break;
            }
            assert_int_equal(status, IRON_E_NOMEM);
            assert_says(&err, "out of memory");
            assert_null(e);
            assert_int_equal(l.out, 0);
        }
    }
}

/* The same for a feed: the error is reported, and the engine can be destroyed. */
static void out_of_memory_while_feeding(void **state) {
    ledger l = {0};
    iron_allocator allocator = ledger_allocator(&l);
    iron_config c = gpu_config();
    uint32_t token = 7;
    iron_engine *e;
    iron_error err;
    void *memory;

    (void)state;
    NEED_GPU();
    c.allocator = &allocator;
    c.memory = "pageable";
    e = engine_of(&c);
    l.fail_at = l.calls + 1;
    assert_refused(iron_engine_tokens_alloc(e, 100, &memory, &err), IRON_E_NOMEM, &err);
    assert_null(memory);
    l.fail_at = l.calls + 1;
    assert_refused(iron_engine_feed(e, &token, 1, &err), IRON_E_NOMEM, &err);
    l.fail_at = 0;
    iron_engine_destroy(e);
    assert_int_equal(l.out, 0);
}

/* After a device failure every call returns the error, and the engine can be destroyed. */
static void broken_devices(void **state) {
    uint32_t tokens[100] = {0};
    iron_report r = {.struct_size = sizeof r};
    iron_config c = gpu_config();
    iron_error err;
    iron_engine *e;

    (void)state;
    NEED_GPU();
    e = engine_of(&c);
    assert_ok(iron_engine_feed(e, tokens, COUNT(tokens), &err), &err);
    assert_ok(iron_engine_end_batch(e, &err), &err);
    device_of(e)->failure = (iron_error){IRON_E_IO, -36, "opencl: the test broke the device"};
    assert_refused(iron_engine_report(e, &r, &err), IRON_E_IO, &err);
    assert_says(&err, "the test broke the device");
    device_of(e)->failure = (iron_error){.status = IRON_OK}; /* the error persists */
    assert_refused(iron_engine_report(e, &r, &err), IRON_E_IO, &err);
    assert_refused(iron_engine_feed(e, tokens, 1, &err), IRON_E_IO, &err);
    assert_says(&err, "the test broke the device");
    assert_refused(iron_engine_end_batch(e, &err), IRON_E_IO, &err);
    assert_refused(iron_engine_prepare(e, &err), IRON_E_IO, &err);
    assert_refused(iron_engine_save(e, name_in(&gpu_place, "broken").path, &err), IRON_E_IO, &err);
    assert_null(iron_engine_xor_accumulators(e));
    assert_null(iron_engine_potentials(e));
    iron_engine_destroy(e);
}

/* Copies and kernels are still running when the engine is destroyed. */
static void destroyed_while_working(void **state) {
    size_t count = (size_t)3 << 20;
    uint32_t *tokens;

    (void)state;
    NEED_GPU();
    tokens = grab_tokens(5, 50257, count);
    for (iron__gpu_strategy k = 0; k < IRON_GPU_STRATEGIES; k++) {
        iron_config c = gpu_config();
        iron_engine *e;
        iron_error err;

        if (!gpu_offers(k))
            continue;
        c.memory = iron__gpu_strategy_name(k);
        e = engine_of(&c);
        assert_ok(iron_engine_feed(e, tokens, count, &err), &err);
        assert_ok(iron_engine_feed_as(e, IRON_DTYPE_U8, tokens, 12345, &err), &err);
        iron_engine_destroy(e);
        e = engine_of(&c);
        assert_ok(iron_engine_feed(e, tokens, 1, &err), &err); /* collected, and never sent */
        iron_engine_destroy(e);
    }
    free(tokens);
}

/* Ranges of a stream fed by a GPU, with the effect of each applied to engines on the CPU and on the
 * GPU: both equal an engine that was fed everything. */

#define EFFECT_TOKENS 30011u
#define EFFECT_RANGES 5u

static void feed_and_end(iron_engine *e, const uint32_t *tokens, size_t count) {
    iron_error err;

    assert_ok(iron_engine_feed(e, tokens, count, &err), &err);
    assert_ok(iron_engine_end_batch(e, &err), &err);
}

static void ranges_of_a_gpu(iron_positions positions) {
    uint32_t *tokens = grab_tokens(5, 50257, EFFECT_TOKENS);
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
    feed_and_end(serial, tokens, EFFECT_TOKENS);
    feed_and_end(rank, tokens, 1234); /* discarded by begin_at */
    for (size_t k = 0; k < EFFECT_RANGES; k++) {
        size_t first = k * 8000 < EFFECT_TOKENS ? k * 8000 : EFFECT_TOKENS / 4 * 4;
        size_t end = first + 8000 < EFFECT_TOKENS ? first + 8000
                     : k * 8000 < EFFECT_TOKENS   ? EFFECT_TOKENS
                                                  : first;

        assert_ok(iron_engine_begin_at(rank, first, &err), &err);
        feed_and_end(rank, tokens + first, end - first);
        assert_ok(iron_engine_effect(rank, &effect, additions, &err), &err);
        assert_ok(iron_engine_apply(whole, &effect, additions, &err), &err);
        assert_ok(iron_engine_apply(there, &effect, additions, &err), &err);
    }
    assert_same_engines(serial, whole);
    assert_same_engines(serial, there);
    feed_and_end(serial, tokens, 5000);
    feed_and_end(there, tokens, 5000);
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

static void unsupported_effects(void **state) {
    iron_config c = gpu_config();
    iron_batch_effect batches[4];
    iron_engine *e;
    iron_error err;

    (void)state;
    NEED_GPU();
    c.mode = "reduce"; /* applies each batch at once */
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
        cmocka_unit_test(feeds_of_all_sizes),
        cmocka_unit_test(one_token_at_a_time),
        cmocka_unit_test(feeds_from_its_own_memory),
        cmocka_unit_test(feeds_from_files),
        cmocka_unit_test(cancelled_feeds),
        cmocka_unit_test(bad_tokens),
        cmocka_unit_test(states_move_between_backends),
        cmocka_unit_test(refusals_have_advice),
        cmocka_unit_test(missing_strategies),
        cmocka_unit_test(engines_describe_themselves),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(out_of_memory_while_feeding),
        cmocka_unit_test(broken_devices),
        cmocka_unit_test(destroyed_while_working),
        cmocka_unit_test(ranges_are_the_whole),
        cmocka_unit_test(unsupported_effects),
    };

    return cmocka_run_group_tests(tests, gpu_set_up, gpu_tear_down);
}
