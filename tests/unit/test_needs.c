/* SPDX-License-Identifier: MIT */
/*
 * test_needs.c: requirements of contenders: exactly enough is accepted, one less is refused with
 * the device's name and both numbers, and only f64 needs f64.
 */
#include "support.h"

#include "ops/op.h"

static iron__gpu_device small_device(void) {
    return (iron__gpu_device){
        .info = {.name = "Abacus", .group_threads_max = 128, .local_bytes_max = 4096}};
}

static void assert_unsupported(iron_status status, const iron_error *err, const char *sentence) {
    assert_int_equal(status, IRON_E_UNSUPPORTED);
    assert_int_equal(err->status, IRON_E_UNSUPPORTED);
    assert_string_equal(err->text, sentence);
}

static void too_small_groups_are_refused(void **state) {
    iron__gpu_device device = small_device();
    iron_error err;

    (void)state;
    assert_ok(iron__needs_threads(&device, 128, &err), &err);
    assert_unsupported(iron__needs_threads(&device, 129, &err), &err,
                       "Abacus runs groups of at most 128 threads; this needs 129");
}

static void too_little_local_memory_is_refused(void **state) {
    iron__gpu_device device = small_device();
    iron_error err;

    (void)state;
    assert_ok(iron__needs_local(&device, 0, &err), &err);
    assert_ok(iron__needs_local(&device, 4096, &err), &err);
    assert_unsupported(iron__needs_local(&device, 4097, &err), &err,
                       "Abacus has 4096 bytes of local memory per group; this needs 4097");
}

static void only_f64_needs_f64(void **state) {
    iron__gpu_device device = small_device();
    iron__case floats = {.element = IRON_F32}, doubles = {.element = IRON_F64};
    iron_error err;

    (void)state;
    assert_ok(iron__needs_element(&device, &floats, &err), &err);
    assert_unsupported(iron__needs_element(&device, &doubles, &err), &err,
                       "Abacus does not support f64");
    device.info.has_f64 = true;
    assert_ok(iron__needs_element(&device, &doubles, &err), &err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_small_groups_are_refused),
        cmocka_unit_test(too_little_local_memory_is_refused),
        cmocka_unit_test(only_f64_needs_f64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
