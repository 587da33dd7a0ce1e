/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_feed_shapes.c: files fed to a GPU in other shapes than the default: few or many slots,
 * short or as long as a lane, read in pieces, past the page cache. The result always equals the
 * CPU's bit for bit, also after an aborted feed; impossible shapes are refused.
 */
#include "gpu_support.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static const iron__feed_shape shapes[] = {
    {1, 5, 8, 0, IRON_DIRECT_NEVER},
    {3, 5, 64 * KIB, 1000, IRON_DIRECT_NEVER},
    {8, 32, 16 * KIB, 4 * KIB, IRON_DIRECT_ALWAYS},
    {4, 7, 1000000, 300 * KIB, IRON_DIRECT_ALWAYS},
    {4, 6, 16 * MIB, MIB, IRON_DIRECT_COLD},
};

static iron_source *source_of(const char *path, iron_dtype dtype) {
    iron_source_options o = {
        .struct_size = sizeof o, .dtype = dtype, .format = "raw", .paths = &path, .path_count = 1};
    iron_source *s = NULL;
    iron_error err;

    assert_ok(iron_source_open(&o, &s, &err), &err);
    return s;
}

static iron_engine *engine_shaped(const iron__feed_shape *shape) {
    iron_config c = gpu_config();
    iron_engine *e;
    iron_error err;

    c.batch = 100003;
    c.with_seal = true;
    e = engine_of(&c);
    assert_ok(iron__gpu_feed_reshape(e->gpu, shape, &err), &err);
    return e;
}

static iron_engine *engine_on_cpu(void) {
    iron_config c = gpu_config();

    c.batch = 100003;
    c.with_seal = true;
    c = as_on_cpu(c);
    return engine_of(&c);
}

static void check_shape(const iron__feed_shape *shape, const char *path, iron_dtype dtype,
                        const void *tokens, size_t count) {
    iron_engine *gpu = engine_shaped(shape), *cpu = engine_on_cpu();
    iron_source *s = source_of(path, dtype);
    iron_error err;

    assert_ok(iron_engine_feed_source(gpu, s, NULL, NULL, &err), &err);
    assert_ok(iron_engine_feed_as(cpu, dtype, tokens, count, &err), &err);
    /* and from host memory, through the same slots */
    assert_ok(iron_engine_feed_as(gpu, dtype, tokens, count / 2, &err), &err);
    assert_ok(iron_engine_feed_as(cpu, dtype, tokens, count / 2, &err), &err);
    assert_ok(iron_engine_end_batch(gpu, &err), &err);
    assert_ok(iron_engine_end_batch(cpu, &err), &err);
    assert_same_engines(gpu, cpu);
    iron_source_close(s);
    iron_engine_destroy(gpu);
    iron_engine_destroy(cpu);
}

/* Random bytes are valid tokens of any unsigned width; the shortest slots get few of them. */
static void every_shape_gives_the_same(void **state) {
    static const iron_dtype dtypes[] = {IRON_DTYPE_U8, IRON_DTYPE_U16, IRON_DTYPE_U32};
    file_name path = name_in(&gpu_place, "tokens");
    rng r = {31};
    size_t most = 18 * MIB + 12;
    uint32_t *tokens;

    (void)state;
    NEED_GPU();
    tokens = grab(most);
    for (size_t k = 0; k < most / 4; k++)
        tokens[k] = rng_u32(&r);
    for (size_t k = 0; k < COUNT(shapes); k++)
        for (size_t t = 0; t < COUNT(dtypes); t++) {
            size_t bytes = shapes[k].slot_bytes < 100 ? 4444 : most / (t == 0 ? 3 : 1);
            size_t width = iron_dtype_bytes(dtypes[t]);

            file_write(path.path, tokens, bytes / 4 * 4);
            check_shape(&shapes[k], path.path, dtypes[t], tokens, bytes / 4 * 4 / width);
        }
    free(tokens);
}

/* A file that is truncated while it is read gives one error message in any shape. */
static void truncated_files_fail_alike(void **state) {
    file_name path = name_in(&gpu_place, "tokens");
    size_t count = 300000;
    rng r = {32};
    uint32_t *tokens;

    (void)state;
    NEED_GPU();
    tokens = grab(count * sizeof *tokens);
    for (size_t k = 0; k < count; k++)
        tokens[k] = rng_u32(&r);
    for (size_t k = 1; k < COUNT(shapes); k++) {
        iron_engine *e = engine_shaped(&shapes[k]);
        iron_source *s;
        iron_error err;

        file_write(path.path, tokens, count * sizeof *tokens);
        s = source_of(path.path, IRON_DTYPE_U32);
        assert_int_equal(truncate(path.path, 1000001), 0);
        assert_refused(iron_engine_feed_source(e, s, NULL, NULL, &err), IRON_E_IO, &err);
        assert_says(&err, "ended at byte 1000001 of 1200000; it was cut while being read");
        iron_source_close(s);
        iron_engine_destroy(e);
    }
    free(tokens);
}

static void impossible_shapes_are_refused(void **state) {
    static const iron__feed_shape wrong[] = {
        {1, 4, MIB, 0, IRON_DIRECT_NEVER},
        {1, 33, MIB, 0, IRON_DIRECT_NEVER},
        {1, 8, 0, 0, IRON_DIRECT_NEVER},
        {1, 8, 1001, 0, IRON_DIRECT_NEVER},
        {1, 8, 16 * MIB + 8, 0, IRON_DIRECT_NEVER},
    };
    static const uint32_t token = 1;
    iron_config c = gpu_config();
    iron_engine *e;
    iron_error err;

    (void)state;
    NEED_GPU();
    e = engine_of(&c);
    for (size_t k = 0; k < COUNT(wrong); k++)
        assert_refused(iron__gpu_feed_reshape(e->gpu, &wrong[k], &err), IRON_E_ARG, &err);
    assert_ok(iron_engine_feed(e, &token, 1, &err), &err);
    assert_refused(iron__gpu_feed_reshape(e->gpu, &shapes[1], &err), IRON_E_STATE, &err);
    iron_engine_destroy(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_gives_the_same),
        cmocka_unit_test(truncated_files_fail_alike),
        cmocka_unit_test(impossible_shapes_are_refused),
    };

    return cmocka_run_group_tests(tests, gpu_set_up, gpu_tear_down);
}
