/* SPDX-License-Identifier: MIT */
/*
 * test_select.c: what users write to choose contenders, sizes and strategies: what is understood,
 * and that nothing else is.
 */
#include "support.h"

#include "arena/select.h"

static void globs_choose_by_the_whole_name(void **state) {
    (void)state;
    assert_true(iron__select_matches("atax.cpu.naive", "atax.cpu.naive"));
    assert_true(iron__select_matches("*", "atax.cpu.naive"));
    assert_true(iron__select_matches("atax.*", "atax.cuda.single-pass"));
    assert_true(iron__select_matches("*.cpu.*", "tokens.cpu.vector.neon"));
    assert_true(iron__select_matches("*.single-pass", "atax.opencl.single-pass"));
    assert_true(iron__select_matches("atax.c[pu]*.naive", "atax.cpu.naive"));
    assert_false(iron__select_matches("atax.cpu", "atax.cpux.naive"));
    assert_false(iron__select_matches("tax.*", "atax.cpu.naive"));
    assert_false(iron__select_matches("atax.cpu.naiv", "atax.cpu.naive"));
    assert_false(iron__select_matches("", "atax.cpu.naive"));
}

static void a_glob_that_ends_at_a_dot_chooses_what_is_below(void **state) {
    (void)state;
    assert_true(iron__select_matches("atax", "atax.cpu.naive"));
    assert_true(iron__select_matches("tokens.cpu", "tokens.cpu.vector.neon"));
    assert_true(iron__select_matches("tokens.cpu.vector", "tokens.cpu.vector.neon"));
    assert_false(iron__select_matches("tokens.cpu.vect", "tokens.cpu.vector.neon"));
}

static void a_backend_is_named_by_its_letters_alone(void **state) {
    (void)state;
    assert_true(iron__select_names("atax.opencl.*", "opencl"));
    assert_false(iron__select_names("atax.*", "opencl"));
    assert_false(iron__select_names("atax.open*", "opencl"));
}

static const iron__op *op_named(const char *name) {
    const iron__op *op = iron__op_find(name);

    assert_non_null(op);
    return op;
}

static size_t choose(const char *op, const char *list, iron__chosen_size *sizes) {
    size_t count = 99;
    iron_error err;

    assert_ok(iron__select_sizes(op_named(op), list, sizes, &count, &err), &err);
    return count;
}

static void sizes_have_names_and_numbers(void **state) {
    iron__chosen_size s[IRON_SIZES_MAX];

    (void)state;
    assert_int_equal(choose("tokens", "1000", s), 1);
    assert_int_equal(s[0].rows, 1000);
    assert_int_equal(s[0].cols, 1);
    assert_string_equal(s[0].name, "");
    assert_int_equal(choose("tokens", "batch:3MiB", s), 1);
    assert_int_equal(s[0].rows, 786432);
    assert_string_equal(s[0].name, "batch:3MiB");
    assert_int_equal(choose("tokens", "3MiB,5", s), 2);
    assert_int_equal(s[1].rows, 5);
    assert_int_equal(choose("tokens", "batch:*", s), op_named("tokens")->size_count);
}

static void a_bare_name_is_the_first_sets(void **state) {
    iron__chosen_size s[IRON_SIZES_MAX];

    (void)state;
    assert_int_equal(choose("atax", "STANDARD", s), 1);
    assert_string_equal(s[0].name, "talk:STANDARD");
    assert_int_equal(s[0].rows, 4000);
    assert_int_equal(choose("atax", "acc:LARGE,polybench:MEDIUM,7x9", s), 3);
    assert_int_equal(s[0].rows, 8192);
    assert_string_equal(s[0].dtype, "f32");
    assert_int_equal(s[1].rows, 390);
    assert_int_equal(s[1].cols, 410);
    assert_int_equal(s[2].rows, 7);
    assert_int_equal(s[2].cols, 9);
}

/* A size of another kind is not this op's, and no error: another op may have been meant. */
static void sizes_of_other_ops_are_passed_over(void **state) {
    iron__chosen_size s[IRON_SIZES_MAX];

    (void)state;
    assert_int_equal(choose("tokens", "4x4", s), 0);
    assert_int_equal(choose("atax", "1000", s), 0);
    assert_int_equal(choose("tokens", "STANDARD", s), 0);
}

static void what_is_no_size_is_refused_and_shown(void **state) {
    static const char *const bad[] = {"",      "0",      "STANDART",
                                      "x5",    "5x",     "5x0",
                                      "-3",    "4 4",    "1e6",
                                      "talk:", ":MINI",  "4x4x4",
                                      "0x10",  "MINI,,", "99999999999999999999"};
    iron__chosen_size s[IRON_SIZES_MAX];
    size_t count;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++)
        assert_refused(iron__select_sizes(op_named("atax"), bad[k], s, &count, &err), IRON_E_ARG,
                       &err);
    assert_refused(iron__select_sizes(op_named("atax"), "STANDART", s, &count, &err), IRON_E_ARG,
                   &err);
    assert_says(&err, "STANDART");
}

static void strategies_are_bits(void **state) {
    uint32_t bits = 0;
    iron_error err;

    (void)state;
    assert_ok(iron__select_memory(NULL, &bits, &err), &err);
    assert_int_equal(bits, 0x3F);
    assert_ok(iron__select_memory("all", &bits, &err), &err);
    assert_int_equal(bits, 0x3F);
    assert_ok(iron__select_memory("pinned,zero-copy", &bits, &err), &err);
    assert_int_equal(bits, IRON_BIT(IRON_GPU_PINNED) | IRON_BIT(IRON_GPU_ZERO_COPY));
    assert_refused(iron__select_memory("pined", &bits, &err), IRON_E_ARG, &err);
    assert_says(&err, "pined");
    assert_refused(iron__select_memory("", &bits, &err), IRON_E_ARG, &err);
}

static void scopes_are_bits_and_kernel_is_always_there(void **state) {
    uint32_t bits = 0;
    iron_error err;

    (void)state;
    assert_ok(iron__select_scopes(NULL, &bits, &err), &err);
    assert_int_equal(bits, 0xF);
    assert_ok(iron__select_scopes("kernel", &bits, &err), &err);
    assert_int_equal(bits, IRON_BIT(IRON_SCOPE_KERNEL));
    assert_ok(iron__select_scopes("end_to_end,transfer", &bits, &err), &err);
    assert_int_equal(bits, IRON_BIT(IRON_SCOPE_KERNEL) | IRON_BIT(IRON_SCOPE_TRANSFER) |
                               IRON_BIT(IRON_SCOPE_END_TO_END));
    assert_refused(iron__select_scopes("kernels", &bits, &err), IRON_E_ARG, &err);
    assert_says(&err, "kernels");
    assert_refused(iron__select_scopes("", &bits, &err), IRON_E_ARG, &err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(globs_choose_by_the_whole_name),
        cmocka_unit_test(a_glob_that_ends_at_a_dot_chooses_what_is_below),
        cmocka_unit_test(a_backend_is_named_by_its_letters_alone),
        cmocka_unit_test(sizes_have_names_and_numbers),
        cmocka_unit_test(a_bare_name_is_the_first_sets),
        cmocka_unit_test(sizes_of_other_ops_are_passed_over),
        cmocka_unit_test(what_is_no_size_is_refused_and_shown),
        cmocka_unit_test(strategies_are_bits),
        cmocka_unit_test(scopes_are_bits_and_kernel_is_always_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
