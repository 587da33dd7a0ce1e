/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_calibration.c: which mode `auto` takes on a GPU and the reason it gives: measurements
 * are kept in the user's cache folder, found again, and ignored when they are damaged or from
 * another driver. All but the last two tests need no device.
 */
#include "gpu_support.h"

#include "engine/modes.c"

#include <iron/iron_arena.h>

#define KEY "opencl|a device|a driver|1.2.3"

/* Modes in the rows' order. */
enum { ATOMIC2D, NODE, REDUCE = 7, CHAMPION = 8 };

static calibration sample(void) {
    calibration c = {.count = 3};

    c.cases[0] = (calibration_case){1024, 1, {10, 20, 30, 40, 50, 60, 70, 80, 90}};
    c.cases[1] = (calibration_case){16384, 4096, {0, 0, 0, 0, 0, 0, 0, 123.5, 1000.25}};
    c.cases[2] = (calibration_case){1048576, 4096, {0, 0, 0, 0, 0, 0, 0, 9e6, 3e5}};
    return c;
}

static void save(const char *key, const calibration *c) {
    iron_error err;

    assert_ok(calibration_save(key, c, &err), &err);
}

/* The calibration file in the cache folder, which holds other files too. */
static file_name calibration_file(void) {
    file_name cache = name_in(&gpu_place, "cache"), found = {""};
    DIR *directory = opendir(cache.path);
    struct dirent *entry;

    assert_non_null(directory);
    while ((entry = readdir(directory)))
        if (strncmp(entry->d_name, "calibration", 11) == 0) {
            assert_true(found.path[0] == '\0');
            snprintf(found.path, sizeof found.path, "%.200s/%.150s", cache.path, entry->d_name);
        }
    closedir(directory);
    assert_true(found.path[0] != '\0');
    return found;
}

static void forget(void) { assert_int_equal(unlink(calibration_file().path), 0); }

static void saved_and_loaded(void **state) {
    calibration c = sample(), got;

    (void)state;
    assert_false(calibration_load(KEY, &got));
    save(KEY, &c);
    assert_true(calibration_load(KEY, &got));
    assert_int_equal(got.count, c.count);
    for (size_t k = 0; k < c.count; k++) {
        assert_int_equal(got.cases[k].batch, c.cases[k].batch);
        assert_int_equal(got.cases[k].nodes, c.cases[k].nodes);
        for (size_t m = 0; m < CALIBRATED_MODES; m++) /* rounded to a tenth */
            assert_true(got.cases[k].ns[m] - c.cases[k].ns[m] < 0.06 &&
                        c.cases[k].ns[m] - got.cases[k].ns[m] < 0.06);
    }
    assert_false(calibration_load("opencl|a device|a newer driver|1.2.3", &got));
    c.count = 1; /* saved again, it is replaced */
    save(KEY, &c);
    assert_true(calibration_load(KEY, &got));
    assert_int_equal(got.count, 1);
    forget();
    assert_false(calibration_load(KEY, &got));
}

static void all_cases_fit(void **state) {
    calibration c = {.count = CALIBRATED_CASES}, got;

    (void)state;
    for (size_t k = 0; k < c.count; k++) {
        c.cases[k] = (calibration_case){UINT64_MAX, UINT64_MAX - k, {0}};
        for (size_t m = 0; m < CALIBRATED_MODES; m++)
            c.cases[k].ns[m] = 999999999999999.9;
    }
    save(KEY, &c);
    assert_true(calibration_load(KEY, &got));
    assert_int_equal(got.count, CALIBRATED_CASES);
    assert_int_equal(got.cases[19].nodes, UINT64_MAX - 19);
    forget();
}

static void assert_absent(const char *path, const char *text, size_t bytes) {
    calibration got;

    file_write(path, text, bytes);
    if (calibration_load(KEY, &got))
        fail_msg("believed: %.*s", (int)bytes, text);
}

/* Files that are truncated anywhere or contain anything unexpected. */
static void damaged_files_are_ignored(void **state) {
    static const struct {
        const char *from, *to;
    } changes[] = {
        {"iron calibration 1", "iron calibration 2"},
        {"key opencl", "key openCL"},
        {"modes atomic2d node", "modes node atomic2d"},
        {"1024 1 ", "0 1 "},
        {"1024 1 ", "1024 0 "},
        {"1024 1 ", "x 1 "},
        {"10.0", "ten"},
        {"10.0", "nan"},
        {"10.0", "inf"},
        {"10.0", "-10.0"},
        {"10.0 ", ""},
        {"90.0", "90.0 100.0"},
        {"\nend", "\nmiddle"},
    };
    calibration c = sample(), got;
    file_name file;
    size_t bytes;
    char *text;

    (void)state;
    save(KEY, &c);
    file = calibration_file();
    text = file_read(file.path, &bytes);
    for (size_t k = 0; k < bytes; k++)
        assert_absent(file.path, text, k);
    for (size_t k = 0; k < COUNT(changes); k++) {
        char *changed = grab(bytes + 100), *at = strstr(text, changes[k].from);

        assert_non_null(at);
        sprintf(changed, "%.*s%s%s", (int)(at - text), text, changes[k].to,
                at + strlen(changes[k].from));
        assert_absent(file.path, changed, strlen(changed));
        free(changed);
    }
    file_write(file.path, text, bytes);
    assert_true(calibration_load(KEY, &got));
    free(text);
    forget();
}

/* More cases than fit, and a very long line. */
static void long_files_are_ignored(void **state) {
    calibration c = sample();
    file_name file;
    size_t bytes;
    char *text, *many, *row, *at;

    (void)state;
    save(KEY, &c);
    file = calibration_file();
    text = file_read(file.path, &bytes);
    row = strstr(text, "1024 1 ");
    assert_non_null(row);
    many = grab(bytes + 100 * 100);
    at = many + sprintf(many, "%.*s", (int)(row - text), text);
    for (size_t k = 0; k < 100; k++)
        at += sprintf(at, "%.*s", (int)(strchr(row, '\n') + 1 - row), row);
    at += sprintf(at, "end\n");
    assert_absent(file.path, many, (size_t)(at - many));
    memset(many, '7', bytes + 9000);
    assert_absent(file.path, many, bytes + 9000);
    free(many);
    free(text);
    forget();
}

/* Distance is a ratio: twice as large is as far as half as large. */
static void nearest_and_fastest(void **state) {
    calibration c = sample();

    (void)state;
    assert_ptr_equal(nearest_case(&c, 1, 1), &c.cases[0]);
    assert_ptr_equal(nearest_case(&c, 1024, 1), &c.cases[0]);
    assert_ptr_equal(nearest_case(&c, 16384, 4096), &c.cases[1]);
    assert_ptr_equal(nearest_case(&c, 131071, 4096), &c.cases[1]);
    assert_ptr_equal(nearest_case(&c, 131073, 4096), &c.cases[2]);
    assert_ptr_equal(nearest_case(&c, UINT64_MAX, 1 << 20), &c.cases[2]);
    assert_int_equal(fastest_mode(&c.cases[0]), ATOMIC2D);
    assert_int_equal(fastest_mode(&c.cases[1]), REDUCE);
    assert_int_equal(fastest_mode(&c.cases[2]), CHAMPION);
    assert_int_equal(fastest_mode(&(calibration_case){.batch = 1, .nodes = 1}), CALIBRATED_MODES);
    c.count = 0;
    assert_null(nearest_case(&c, 1, 1));
}

/* A folder that cannot be written is an error; a folder that does not exist means no
 * calibration. */
static void calibration_without_a_folder(void **state) {
    file_name blocked = name_in(&gpu_place, "blocked"), cache = name_in(&gpu_place, "cache");
    calibration c = sample(), got;
    char *home = strdup(getenv("HOME") ? getenv("HOME") : "");
    iron_error err;

    (void)state;
    file_write(blocked.path, "", 0); /* a file where the folder should be */
    setenv("IRON_CACHE_DIR", blocked.path, 1);
    assert_refused(calibration_save(KEY, &c, &err), IRON_E_IO, &err);
    assert_false(calibration_load(KEY, &got));
    unsetenv("IRON_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    assert_refused(calibration_save(KEY, &c, &err), IRON_E_IO, &err);
    assert_says(&err, "IRON_CACHE_DIR");
    assert_false(calibration_load(KEY, &got));
    setenv("HOME", home, 1);
    setenv("IRON_CACHE_DIR", cache.path, 1);
    free(home);
}

static void unknown_backends(void **state) {
    iron_error err;

    (void)state;
    assert_refused(iron_calibrate("cpu", 0, NULL, NULL, &err), IRON_E_ARG, &err);
    assert_says(&err, "cpu");
    assert_refused(iron_calibrate("abacus", 0, NULL, NULL, &err), IRON_E_ARG, &err);
}

static void assert_auto_takes(uint64_t batch, uint64_t nodes, const char *mode, const char *why) {
    iron_config c = gpu_config();
    iron_engine *e;

    c.mode = batch % 2 ? "auto" : NULL;
    c.batch = batch;
    c.nodes = nodes;
    e = engine_of(&c);
    assert_string_equal(iron_engine_mode(e), mode);
    if (!strstr(iron_engine_mode_reason(e), why))
        fail_msg("'%s' does not say '%s'", iron_engine_mode_reason(e), why);
    assert_int_equal(strncmp(iron_engine_mode_reason(e), "auto: tokens.", 13), 0);
    iron_engine_destroy(e);
}

/* `auto` with a calibration, without one, and with a damaged one. */
static void auto_gives_a_reason(void **state) {
    calibration c = sample();
    iron__gpu_info info;
    char key[320];
    iron_error err;

    (void)state;
    NEED_GPU();
    assert_ok(iron__gpu_describe(gpu_index(), 0, &info, &err), &err);
    calibration_key(gpu_index(), &info, key, sizeof key);
    assert_non_null(strstr(key, info.driver));
    assert_auto_takes(1000, 33, "champion", "not calibrated");
    save(key, &c);
    assert_auto_takes(1001, 1, "atomic2d", "calibrated with batches of 1024 on 1 nodes (0.01 us");
    assert_auto_takes(20000, 4000, "reduce", "batches of 16384 on 4096 nodes (0.12 us");
    assert_auto_takes(786432, 4096, "champion", "batches of 1048576 on 4096 nodes (300.00 us");
    file_write(calibration_file().path, "iron calibration 1\n", 19);
    assert_auto_takes(1001, 1, "champion", "not calibrated");
    forget();
}

static int stop_at_once(void *context, uint64_t done, uint64_t total) {
    (void)context;
    assert_true(done <= total);
    return 1;
}

static int count_calls(void *context, uint64_t done, uint64_t total) {
    assert_true(done <= total);
    ++*(size_t *)context;
    return 0;
}

/* A real calibration: every measured case has a fastest mode, and `auto` uses it. */
static void measured(void **state) {
    calibration got;
    iron__gpu_info info;
    size_t calls = 0;
    char key[320];
    iron_error err;

    (void)state;
    NEED_GPU();
    assert_refused(iron_calibrate(gpu_backend(), 99, NULL, NULL, &err), IRON_E_ARG, &err);
    assert_ok(iron__gpu_describe(gpu_index(), 0, &info, &err), &err);
    calibration_key(gpu_index(), &info, key, sizeof key);
    assert_refused(iron_calibrate(gpu_backend(), 0, stop_at_once, NULL, &err), IRON_E_CANCELLED,
                   &err);
    assert_false(calibration_load(key, &got));
    assert_ok(iron_calibrate(gpu_backend(), 0, count_calls, &calls, &err), &err);
    assert_true(calls > 0);
    assert_true(calibration_load(key, &got));
    assert_true(got.count >= 8);
    for (size_t k = 0; k < got.count; k++) {
        size_t best = fastest_mode(&got.cases[k]);

        assert_true(best < CALIBRATED_MODES && got.cases[k].ns[best] > 0);
        assert_true(got.cases[k].ns[CHAMPION] > 0);
    }
    assert_auto_takes(got.cases[0].batch, got.cases[0].nodes,
                      iron__tokens_gpu_row_at(fastest_mode(&got.cases[0]))->mode,
                      "the fastest of all when calibrated");
    forget();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_and_loaded),
        cmocka_unit_test(all_cases_fit),
        cmocka_unit_test(damaged_files_are_ignored),
        cmocka_unit_test(long_files_are_ignored),
        cmocka_unit_test(nearest_and_fastest),
        cmocka_unit_test(calibration_without_a_folder),
        cmocka_unit_test(unknown_backends),
        cmocka_unit_test(auto_gives_a_reason),
        cmocka_unit_test(measured),
    };

    return cmocka_run_group_tests(tests, gpu_set_up, gpu_tear_down);
}
