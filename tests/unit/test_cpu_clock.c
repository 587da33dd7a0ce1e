/* SPDX-License-Identifier: MIT */
/*
 * test_cpu_clock.c: the clock and the throttle counters, read from a folder laid out like Linux's
 * sysfs.
 */
#include "support.h"

#include "core/cpu.h"

/* Writes ROOT/FOLDER/SUB/FILE; sub: "" for none. */
static void put(const folder *f, const char *where, const char *sub, const char *file,
                const char *text) {
    file_name n = name_in(f, where);
    size_t length;

    mkdir(n.path, 0700); /* may exist */
    length = strlen(n.path);
    snprintf(n.path + length, sizeof n.path - length, "/%s", sub);
    mkdir(n.path, 0700);
    length = strlen(n.path);
    snprintf(n.path + length, sizeof n.path - length, "/%s", file);
    file_write(n.path, text, strlen(text));
}

static void nothing_reported(void **state) {
    folder f;

    (void)state;
    assert_int_equal(iron__cpu_clock_read("/nowhere").mhz, 0);
    assert_int_equal(iron__cpu_clock_read("/nowhere").throttle_count, 0);
    folder_make(&f);
    assert_int_equal(iron__cpu_clock_read(f.path).mhz, 0);
    put(&f, "cpufreq", "policy0", "scaling_cur_freq", "<unknown>\n");
    put(&f, "cpu0", "thermal_throttle", "core_throttle_count", "");
    assert_int_equal(iron__cpu_clock_read(f.path).mhz, 0);
    assert_int_equal(iron__cpu_clock_read(f.path).throttle_count, 0);
    folder_remove(&f);
}

static void the_fastest_policy(void **state) {
    folder f;

    (void)state;
    folder_make(&f);
    put(&f, "cpufreq", "policy0", "scaling_cur_freq", "800000\n");
    put(&f, "cpufreq", "policy12", "scaling_cur_freq", "3499999\n");
    put(&f, "cpufreq", "policy4", "scaling_cur_freq", "2600000\n");
    put(&f, "cpufreq", "policies", "scaling_cur_freq", "9900000\n");
    put(&f, "cpufreq", "boost", "scaling_cur_freq", "9900000\n");
    assert_int_equal(iron__cpu_clock_read(f.path).mhz, 3499);
    folder_remove(&f);
}

static void counters_add_up(void **state) {
    folder f;

    (void)state;
    folder_make(&f);
    put(&f, "cpu0", "thermal_throttle", "core_throttle_count", "5\n");
    put(&f, "cpu0", "thermal_throttle", "package_throttle_count", "70\n");
    put(&f, "cpu11", "thermal_throttle", "core_throttle_count", "4294967295\n");
    put(&f, "cpuidle", "thermal_throttle", "core_throttle_count", "1000\n");
    put(&f, "cpu1", "thermal_throttle", "core_power_limit_count", "1000\n");
    assert_int_equal(iron__cpu_clock_read(f.path).throttle_count, UINT64_C(4294967295) + 75);
    folder_remove(&f);
}

/* Whatever values this machine has. */
static void this_machine(void **state) {
    uint64_t before = iron__cpu_clock_read(IRON_CPU_CLOCK_ROOT).throttle_count;

    (void)state;
    assert_true(iron__cpu_clock_read(IRON_CPU_CLOCK_ROOT).mhz < 20000);
    assert_true(iron__cpu_clock_read(IRON_CPU_CLOCK_ROOT).throttle_count >= before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_reported),
        cmocka_unit_test(the_fastest_policy),
        cmocka_unit_test(counters_add_up),
        cmocka_unit_test(this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
