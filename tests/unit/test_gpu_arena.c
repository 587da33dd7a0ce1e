/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_arena.c: a race on a GPU with an op made for it (fake_op.h): the kernels that a row
 * launches are noted with it, answers in an order of their own are judged in every scope, and an op
 * that is about kernels is raced with every memory strategy when that is asked for.
 *
 * On the first OpenCL device, which PoCL gives every machine: the kernels here are OpenCL's.
 */
#include "gpu_support.h"

#include "fake_op.h"

#include "arena/arena.h"
#include "arena/report_words.h"

#define ROWS 1000u

/* One race, since most of its time goes to the device's ceilings. */
static iron_arena *raced(const char *memory, const char *scopes) {
    static const char *const globs[] = {"echo.opencl.*"};
    static const char *const params[] = {"data=zipf", "stride=1,4"};
    iron_arena_options o;
    iron_arena *a = NULL;
    iron_error err;

    iron_arena_options_init(&o);
    o.globs = globs;
    o.glob_count = COUNT(globs);
    o.params = params;
    o.param_count = COUNT(params);
    o.memory = memory;
    o.scopes = scopes;
    o.has_device = 1;
    o.runs = 2;
    o.threads = 1;
    assert_ok(iron__arena_open(&o, fake_op_at, &a, &err), &err);
    assert_ok(iron_arena_race(a, &err), &err);
    return a;
}

static void check_kernels(const iron__report_row *r) {
    const iron__gpu_watch *w;
    const iron__gpu_sighting *last;
    bool is_prepare = false;

    assert_non_null(r->kernels);
    w = &r->kernels->answer;
    assert_int_equal(w->count, 2);
    assert_string_equal(w->seen[0].kernel, "echo_mark");
    assert_int_equal(w->seen[0].groups, 1);
    assert_string_equal(w->seen[1].kernel, "echo_not");
    assert_int_equal(w->seen[1].groups, (ROWS + FAKE_GROUP - 1) / FAKE_GROUP);
    assert_int_equal(w->seen[1].threads, FAKE_GROUP);
    assert_ptr_equal(iron__kernels_main(r->kernels), &w->seen[1]); /* though one is larger */
    last = iron__kernels_at(r->kernels, 2, &is_prepare);
    assert_non_null(last);
    assert_true(is_prepare);
    assert_string_equal(last->kernel, "echo_ready");
    assert_int_equal(last->groups, 1000);
    assert_null(iron__kernels_at(r->kernels, 3, &is_prepare));
}

static void every_memory_and_scope_when_asked(void **state) {
    size_t pieces = 0;
    iron_arena *a;

    (void)state;
    NEED_GPU();
    if (strcmp(gpu_backend(), "opencl") != 0) {
        print_message("skipped: its kernels are OpenCL's, and this is %s\n", gpu_backend());
        skip();
    }
    a = raced("all", "transfer,end_to_end");
    assert_int_equal(a->report.row_count, 2ul * 2 * IRON_GPU_STRATEGIES);
    for (size_t k = 0; k < a->report.row_count; k++) {
        const iron__report_row *r = &a->report.rows[k];

        if (r->status == IRON_ROW_SKIPPED)
            continue;
        assert_int_equal(r->status, IRON_ROW_OK);
        assert_true(r->is_verified);
        assert_true(r->scopes[IRON_SCOPE_END_TO_END].is_there);
        check_kernels(r);
        pieces += r->scopes[IRON_SCOPE_TRANSFER].is_there;
    }
    assert_true(pieces >= 12); /* 2 cases x 2 contenders x pageable, pinned, streams */
    iron_arena_close(a);
}

/* Where sums reach over the grid, the op's own baseline is not there. */
static void a_case_without_the_baseline_has_another(void **state) {
    static const char *const globs[] = {"barrier.opencl.*"};
    static const char *const params[] = {"reach=block,grid"};
    iron_arena_options o;
    iron_arena *a = NULL;
    iron_error err;

    (void)state;
    NEED_GPU();
    iron_arena_options_init(&o);
    o.globs = globs;
    o.glob_count = COUNT(globs);
    o.params = params;
    o.param_count = COUNT(params);
    o.sizes = "5000";
    o.has_device = 1;
    o.runs = 2;
    o.threads = 1;
    assert_ok(iron_arena_open(&o, &a, &err), &err);
    assert_ok(iron_arena_race(a, &err), &err);
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
        cmocka_unit_test(every_memory_and_scope_when_asked),
    };

    return cmocka_run_group_tests(tests, gpu_set_up, gpu_tear_down);
}
