/* SPDX-License-Identifier: MIT */
/*
 * test_energy.c: energy per byte, with a counter and a clock that the test moves, and with folders
 * like Linux's powercap. Real time decides nothing: where RAPL's readings have real times, only the
 * energy per byte is compared.
 */
#include "support.h"

#include "arena/energy.c"

#include <math.h>

/* A contender that takes `pass_ms` and `pass_joules`; the counter shows them every `update_ms`. */
typedef struct fake {
    iron__race_contender base; /* first */
    iron__energy_meter meter;
    double pass_ms, pass_joules, update_ms;
    double now_ms;
    uint32_t calls, passes, fails_at, throttles_at, breaks_at;
} fake;

static fake *now_timed;

static iron_status fake_time(iron__race_contender *c, iron__scope scope, bool is_cold,
                             uint32_t passes, double *ms, iron_error *err) {
    fake *f = (fake *)c;

    assert_int_equal(scope, IRON_SCOPE_KERNEL);
    assert_false(is_cold);
    f->calls++;
    IRON_FAIL_IF(f->fails_at && f->calls >= f->fails_at, err, IRON_E_STATE, "it fell off the bus");
    f->passes += passes;
    f->now_ms += passes * f->pass_ms;
    *ms = f->pass_ms;
    return IRON_OK;
}

static bool fake_read(iron__energy_meter *m, iron__energy_reading *now) {
    const fake *f = now_timed;
    double shown = (double)(uint64_t)(f->now_ms / f->update_ms) * f->update_ms;

    (void)m;
    *now = (iron__energy_reading){.ms = f->now_ms, .joules = shown / f->pass_ms * f->pass_joules};
    now->clocks.core_mhz = f->calls == 3 ? 1200 : 1980;
    now->clocks.memory_mhz = 3201;
    now->clocks.celsius = 60 + f->calls % 5;
    now->clocks.is_throttled = f->throttles_at && f->calls >= f->throttles_at;
    return !f->breaks_at || f->calls < f->breaks_at;
}

static const iron__race_contender_ops fake_ops = {.time = fake_time};

static fake make_fake(double pass_ms, double watts, double update_ms) {
    return (fake){.base = {.ops = &fake_ops},
                  .meter = {.source = "nvml", .read = fake_read, .update_ms = NVML_UPDATE_MS},
                  .pass_ms = pass_ms,
                  .pass_joules = watts * pass_ms * 1e-3,
                  .update_ms = update_ms};
}

static iron_status measure(fake *f, double limit_ms, iron__energy *out, iron_error *err) {
    *err = (iron_error){IRON_OK, 0, ""};
    now_timed = f;
    return iron__energy_measure(&f->meter, &f->base, f->pass_ms, 2e9, limit_ms, out, err);
}

static void assert_near(double value, double wanted, double part) {
    if (!(fabs(value - wanted) <= part * wanted))
        fail_msg("%g, should be %g", value, wanted);
}

/* Whatever the pass and the counter's interval, the figure is right within the gaps. */
static void finds_energy_between_changes(void **state) {
    static const double passes[] = {0.003, 0.5, 7, 30, 250}, updates[] = {1, 20, 55, 100};

    (void)state;
    for (size_t p = 0; p < COUNT(passes); p++)
        for (size_t u = 0; u < COUNT(updates); u++) {
            fake f = make_fake(passes[p], 400, updates[u]);
            iron__energy e;
            iron_error err;

            assert_ok(measure(&f, 60000, &e, &err), &err);
            assert_string_equal(e.source, "nvml");
            assert_near(e.watts, 400, GAPS);
            assert_near(e.joules_per_gb, f.pass_joules / 2, GAPS);
            assert_near(e.watts / e.joules_per_gb, 2 / (passes[p] * 1e-3), 1e-6); /* GB/s */
            assert_true(f.now_ms <= 60000);
            assert_int_equal(e.clocks.core_mhz, f.calls >= 3 ? 1200 : 1980);
            assert_int_equal(e.clocks.celsius, 64);
        }
}

static void no_figure_without_time_or_changes(void **state) {
    fake f = make_fake(1, 400, 20), slow = make_fake(250, 400, 100), still = make_fake(1, 0, 20);
    iron__energy e;
    iron_error err;

    (void)state;
    assert_ok(measure(&f, 100, &e, &err), &err); /* too few changes */
    assert_null(e.source);
    assert_int_equal(f.passes, 0); /* which was clear before */
    assert_ok(measure(&slow, 4000, &e, &err), &err);
    assert_null(e.source);
    assert_int_equal(slow.passes, 0);
    assert_ok(measure(&still, 1000, &e, &err), &err);
    assert_null(e.source);
    assert_true(still.now_ms >= 1000 && still.now_ms < 1100);
    assert_int_equal(e.clocks.memory_mhz, 3201);
}

static void no_figure_of_a_throttled_card(void **state) {
    fake f = make_fake(1, 400, 20), broken = make_fake(1, 400, 20), failed = make_fake(1, 400, 20);
    iron__energy e;
    iron_error err;

    (void)state;
    f.throttles_at = 4;
    assert_ok(measure(&f, 60000, &e, &err), &err);
    assert_null(e.source);
    assert_true(e.clocks.is_throttled);
    assert_int_equal(f.calls, 4);
    broken.breaks_at = 4;
    assert_ok(measure(&broken, 60000, &e, &err), &err);
    assert_null(e.source);
    broken.breaks_at = 1;
    assert_ok(measure(&broken, 60000, &e, &err), &err);
    failed.fails_at = 2;
    assert_int_equal(measure(&failed, 60000, &e, &err), IRON_E_STATE);
    assert_string_equal(err.text, "it fell off the bus");
    assert_null(e.source);
}

/* A folder of counters. */
typedef struct domain {
    const char *folder, *name;
    uint64_t energy, range;
} domain;

static void put(const folder *f, const char *in, const char *name, const char *text) {
    char path[400];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s/%s", f->path, in, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void put_number(const folder *f, const char *in, const char *name, uint64_t number) {
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64 "\n", number);
    put(f, in, name, text);
}

static void put_domain(const folder *f, domain d) {
    char path[400];

    snprintf(path, sizeof path, "%s/%s", f->path, d.folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s\n", d.name);
    put(f, d.folder, "name", path);
    put_number(f, d.folder, "energy_uj", d.energy);
    put_number(f, d.folder, "max_energy_range_uj", d.range);
}

#define RANGE UINT64_C(262143328850)

/* Two packages and the memory of one count; the second package's counter is about to wrap. */
static const domain two_packages[] = {
    {"intel-rapl:0", "package-0", 5000000, RANGE},
    {"intel-rapl:0:0", "core", 700, RANGE},
    {"intel-rapl:0:1", "dram", 90000, 65712999613},
    {"intel-rapl:1", "package-1", RANGE - 1000000, RANGE},
    {"intel-rapl:2", "psys", 123, RANGE},
    {"intel-rapl-mmio:0", "package-0", 1, RANGE},
};

static folder powercap;

static int make_powercap(void **state) {
    (void)state;
    folder_make(&powercap);
    for (size_t k = 0; k < COUNT(two_packages); k++)
        put_domain(&powercap, two_packages[k]);
    setenv("IRON_POWERCAP", powercap.path, 1);
    return 0;
}

static int remove_powercap(void **state) {
    (void)state;
    unsetenv("IRON_POWERCAP");
    folder_remove(&powercap);
    return 0;
}

static uint64_t taken_uj;

/* All counters have moved on by their share of so many microjoules, modulo their range. */
static void move_counters(uint64_t by) {
    taken_uj += by;
    put_number(&powercap, "intel-rapl:0", "energy_uj", 5000000 + taken_uj / 2);
    put_number(&powercap, "intel-rapl:0:0", "energy_uj", 700 + taken_uj / 4);
    put_number(&powercap, "intel-rapl:0:1", "energy_uj", 90000 + taken_uj / 10);
    put_number(&powercap, "intel-rapl:1", "energy_uj",
               (RANGE - 1000000 + taken_uj / 10 * 4) % RANGE);
    put_number(&powercap, "intel-rapl:2", "energy_uj", 123 + 2 * taken_uj);
    put_number(&powercap, "intel-rapl-mmio:0", "energy_uj", 1 + taken_uj / 2);
}

static void counts_packages_and_memory(void **state) {
    iron__energy_meter m = iron__energy_meter_open(NULL);
    iron__energy_reading now;

    (void)state;
    taken_uj = 0;
    assert_string_equal(m.source, "rapl");
    assert_int_equal(m.domain_count, 3);
    assert_true(m.read(&m, &now));
    assert_true(now.joules >= 0 && now.joules <= 0);
    for (int k = 1; k <= 5; k++) { /* package 1 wraps at the third */
        double before = now.ms;

        move_counters(1000000);
        assert_true(m.read(&m, &now));
        assert_near(now.joules, k, 1e-9);
        assert_true(now.ms >= before);
    }
    put(&powercap, "intel-rapl:1", "energy_uj", "\n");
    assert_false(m.read(&m, &now));
}

/* A pass takes 20 mJ. */
static iron_status take_energy(iron__race_contender *c, iron__scope scope, bool is_cold,
                               uint32_t passes, double *ms, iron_error *err) {
    (void)c, (void)scope, (void)is_cold, (void)err;
    move_counters(UINT64_C(20000) * passes);
    *ms = 20;
    return IRON_OK;
}

static void measures_with_packages(void **state) {
    static const iron__race_contender_ops ops = {.time = take_energy};
    iron__energy_meter m = iron__energy_meter_open(NULL);
    iron__race_contender c = {.ops = &ops};
    iron__energy e;
    iron_error err;

    (void)state;
    taken_uj = 0;
    assert_ok(iron__energy_measure(&m, &c, 20, 5e8, 1e9, &e, &err), &err);
    assert_string_equal(e.source, "rapl");
    assert_near(e.joules_per_gb, 0.04, 1e-9);
    assert_true(e.watts > 0);
    assert_int_equal(e.clocks.core_mhz, 0);
}

static void no_counter_that_cannot_be_read(void **state) {
    char path[400];

    (void)state;
    snprintf(path, sizeof path, "%s/intel-rapl:0:1/energy_uj", powercap.path);
    assert_int_equal(unlink(path), 0); /* one of three */
    assert_null(iron__energy_meter_open(NULL).source);
    setenv("IRON_POWERCAP", "none", 1);
    assert_null(iron__energy_meter_open(NULL).source);
    setenv("IRON_POWERCAP", "/proc/self/fd", 1); /* there are no domains */
    assert_null(iron__energy_meter_open(NULL).source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_energy_between_changes),
        cmocka_unit_test(no_figure_without_time_or_changes),
        cmocka_unit_test(no_figure_of_a_throttled_card),
        cmocka_unit_test_setup_teardown(counts_packages_and_memory, make_powercap, remove_powercap),
        cmocka_unit_test_setup_teardown(measures_with_packages, make_powercap, remove_powercap),
        cmocka_unit_test_setup_teardown(no_counter_that_cannot_be_read, make_powercap,
                                        remove_powercap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
