/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_arena.c: races on a GPU. With the ops of fake_op.h: the launched kernels are recorded
 * with a row, answers in the contender's own order are checked in every scope, and every memory
 * strategy races when requested. With the op `barrier`: a case that the op's baseline does not suit
 * gets another one.
 *
 * It runs on the first OpenCL device, which PoCL provides on every machine, because the kernels of
 * the fake op are OpenCL's. The ceilings use little memory: they are measured, but not tested here.
 * IRON_TEST_LONG=1 races all values, contenders and the usual working set of the ceilings; without
 * it one value per axis, and two contenders per case.
 */
#include "gpu_support.h"

#include "fake_op.h"

#include "arena/arena.c"
#include "arena/report.c"

#define ROWS          1000u
#define CEILING_BYTES (2u << 20)

static iron_arena *race_on_gpu(iron_arena_options *o, iron__op_lister op_at) {
    iron_arena *a = NULL;
    iron_error err;

    o->has_device = 1;
    o->runs = 2;
    o->threads = 1;
    assert_ok(open_arena(o, op_at, &a, &err), &err);
    a->ceiling_bytes = is_long_test() ? 0 : CEILING_BYTES;
    assert_ok(iron_arena_race(a, &err), &err);
    return a;
}

static void check_kernels(const iron__report_row *r) {
    const iron__gpu_launch_log *w;
    const iron__gpu_launch_record *last;
    bool is_prepare = false;

    assert_non_null(r->kernels);
    w = &r->kernels->answer;
    assert_int_equal(w->count, 2);
    assert_string_equal(w->seen[0].kernel, "echo_mark");
    assert_int_equal(w->seen[0].groups, 1);
    assert_string_equal(w->seen[1].kernel, "echo_not");
    assert_int_equal(w->seen[1].groups, (ROWS + FAKE_GROUP - 1) / FAKE_GROUP);
    assert_int_equal(w->seen[1].threads, FAKE_GROUP);
    assert_ptr_equal(main_kernel(r->kernels), &w->seen[1]); /* a larger one only prepares */
    last = kernels_at(r->kernels, 2, &is_prepare);
    assert_non_null(last);
    assert_true(is_prepare);
    assert_string_equal(last->kernel, "echo_ready");
    assert_int_equal(last->groups, 1000);
    assert_null(kernels_at(r->kernels, 3, &is_prepare));
}

static void every_memory_and_scope_races_when_requested(void **state) {
    static const char *const globs[] = {"echo.opencl.*"};
    const char *const params[] = {"data=zipf", is_long_test() ? "stride=1,4" : "stride=4"};
    size_t cases = is_long_test() ? 2 : 1, with_transfer = 0;
    iron_arena_options o;
    iron_arena *a;

    (void)state;
    NEED_GPU();
    if (strcmp(gpu_backend(), "opencl") != 0) {
        print_message("skipped: its kernels are OpenCL's, and this is %s\n", gpu_backend());
        skip();
    }
    iron_arena_options_init(&o);
    o.globs = globs;
    o.glob_count = COUNT(globs);
    o.params = params;
    o.param_count = COUNT(params);
    o.memory = "all";
    o.scopes = "transfer,end_to_end";
    a = race_on_gpu(&o, fake_op_at);
    assert_int_equal(a->report.row_count, cases * 2 * IRON_GPU_STRATEGIES);
    for (size_t k = 0; k < a->report.row_count; k++) {
        const iron__report_row *r = &a->report.rows[k];

        if (r->status == IRON_ROW_SKIPPED)
            continue;
        assert_int_equal(r->status, IRON_ROW_OK);
        assert_true(r->is_verified);
        assert_true(r->scopes[IRON_SCOPE_END_TO_END].is_measured);
        check_kernels(r);
        with_transfer += r->scopes[IRON_SCOPE_TRANSFER].is_measured;
    }
    assert_true(with_transfer >= cases * 2 * 3); /* contenders x pageable, pinned, streams */
    iron_arena_close(a);
}

/* For sums over the whole grid, the op's own baseline does not take part. */
static void a_case_without_the_baseline_has_another(void **state) {
    static const char *const all[] = {"barrier.opencl.*"};
    static const char *const few[] = {"barrier.opencl.block-barrier", "barrier.opencl.warp-segment",
                                      "barrier.opencl.two-launches", "barrier.opencl.atomic"};
    static const char *const params[] = {"reach=block,grid"};
    iron_arena_options o;
    iron_arena *a;

    (void)state;
    NEED_GPU();
    iron_arena_options_init(&o);
    o.globs = is_long_test() ? all : few;
    o.glob_count = is_long_test() ? COUNT(all) : COUNT(few);
    o.params = params;
    o.param_count = COUNT(params);
    o.sizes = "5000";
    a = race_on_gpu(&o, iron__op_at);
    assert_true(a->report.row_count >= 4);
    for (size_t k = 0; k < a->report.row_count; k++) {
        const iron__report_row *r = &a->report.rows[k];
        bool is_grid = strcmp(r->params.list[0].word, "grid") == 0;

        assert_string_equal(r->baseline, is_grid ? "two-launches" : "block-barrier");
        assert_true(r->speedup > 0);
    }
    iron_arena_close(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_case_without_the_baseline_has_another),
        cmocka_unit_test(every_memory_and_scope_races_when_requested),
    };

    return cmocka_run_group_tests(tests, gpu_set_up, gpu_tear_down);
}
