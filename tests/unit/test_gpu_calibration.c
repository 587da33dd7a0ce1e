/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_calibration.c: which mode `auto` takes on a GPU, and why it says so: measurements that
 * are kept in the user's cache folder, found again, and not believed when they are damaged or of
 * another driver. All but the last two tests need no device.
 */
#include "gpu_support.h"

#include "engine/calibration.h"

#include <iron/iron_arena.h>

#define KEY "opencl|a device|a driver|1.2.3"

/* Modes in the rows' order. */
enum { ATOMIC2D, NODE, REDUCE = 7, CHAMPION = 8 };

static iron__calibration sample(void) {
    iron__calibration c = {.count = 3};

    c.cases[0] = (iron__calibration_case){1024, 1, {10, 20, 30, 40, 50, 60, 70, 80, 90}};
    c.cases[1] = (iron__calibration_case){16384, 4096, {0, 0, 0, 0, 0, 0, 0, 123.5, 1000.25}};
    c.cases[2] = (iron__calibration_case){1048576, 4096, {0, 0, 0, 0, 0, 0, 0, 9e6, 3e5}};
    return c;
}

static void save(const char *key, const iron__calibration *c) {
    iron_error err;

    assert_ok(iron__calibration_save(key, c, &err), &err);
}

/* The one file in the cache folder whose name begins so; the folder holds other things too. */
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

static void kept_and_found(void **state) {
    iron__calibration c = sample(), got;

    (void)state;
    assert_false(iron__calibration_load(KEY, &got));
    save(KEY, &c);
    assert_true(iron__calibration_load(KEY, &got));
    assert_int_equal(got.count, c.count);
    for (size_t k = 0; k < c.count; k++) {
        assert_int_equal(got.cases[k].batch, c.cases[k].batch);
        assert_int_equal(got.cases[k].nodes, c.cases[k].nodes);
        for (size_t m = 0; m < IRON_CALIBRATION_MODES; m++) /* kept to a tenth */
            assert_true(got.cases[k].ns[m] - c.cases[k].ns[m] < 0.06 &&
                        c.cases[k].ns[m] - got.cases[k].ns[m] < 0.06);
    }
    assert_false(iron__calibration_load("opencl|a device|a newer driver|1.2.3", &got));
    c.count = 1; /* saved again, it is replaced */
    save(KEY, &c);
    assert_true(iron__calibration_load(KEY, &got));
    assert_int_equal(got.count, 1);
    forget();
    assert_false(iron__calibration_load(KEY, &got));
}

static void all_cases_fit(void **state) {
    iron__calibration c = {.count = IRON_CALIBRATION_CASES}, got;

    (void)state;
    for (size_t k = 0; k < c.count; k++) {
        c.cases[k] = (iron__calibration_case){UINT64_MAX, UINT64_MAX - k, {0}};
        for (size_t m = 0; m < IRON_CALIBRATION_MODES; m++)
            c.cases[k].ns[m] = 999999999999999.9;
    }
    save(KEY, &c);
    assert_true(iron__calibration_load(KEY, &got));
    assert_int_equal(got.count, IRON_CALIBRATION_CASES);
    assert_int_equal(got.cases[19].nodes, UINT64_MAX - 19);
    forget();
}

static void assert_absent(const char *path, const char *text, size_t bytes) {
    iron__calibration got;

    file_write(path, text, bytes);
    if (iron__calibration_load(KEY, &got))
        fail_msg("believed: %.*s", (int)bytes, text);
}

/* Cut off anywhere, or with something in it that does not belong there. */
static void damaged_files_count_as_absent(void **state) {
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
    iron__calibration c = sample(), got;
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
    assert_true(iron__calibration_load(KEY, &got));
    free(text);
    forget();
}

/* More cases than there is room for, and a line that never ends. */
static void endless_files_count_as_absent(void **state) {
    iron__calibration c = sample();
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

/* As many times larger as smaller is as far. */
static void nearest_and_fastest(void **state) {
    iron__calibration c = sample();

    (void)state;
    assert_ptr_equal(iron__calibration_nearest(&c, 1, 1), &c.cases[0]);
    assert_ptr_equal(iron__calibration_nearest(&c, 1024, 1), &c.cases[0]);
    assert_ptr_equal(iron__calibration_nearest(&c, 16384, 4096), &c.cases[1]);
    assert_ptr_equal(iron__calibration_nearest(&c, 131071, 4096), &c.cases[1]);
    assert_ptr_equal(iron__calibration_nearest(&c, 131073, 4096), &c.cases[2]);
    assert_ptr_equal(iron__calibration_nearest(&c, UINT64_MAX, 1 << 20), &c.cases[2]);
    assert_int_equal(iron__calibration_fastest(&c.cases[0]), ATOMIC2D);
    assert_int_equal(iron__calibration_fastest(&c.cases[1]), REDUCE);
    assert_int_equal(iron__calibration_fastest(&c.cases[2]), CHAMPION);
    assert_int_equal(iron__calibration_fastest(&(iron__calibration_case){.batch = 1, .nodes = 1}),
                     IRON_CALIBRATION_MODES);
    c.count = 0;
    assert_null(iron__calibration_nearest(&c, 1, 1));
}

/* A place that cannot be written is said; a place that does not exist is no calibration. */
static void nowhere_to_keep_it(void **state) {
    file_name blocked = name_in(&gpu_place, "blocked"), cache = name_in(&gpu_place, "cache");
    iron__calibration c = sample(), got;
    char *home = strdup(getenv("HOME") ? getenv("HOME") : "");
    iron_error err;

    (void)state;
    file_write(blocked.path, "", 0); /* a file where the folder should be */
    setenv("IRON_CACHE_DIR", blocked.path, 1);
    assert_refused(iron__calibration_save(KEY, &c, &err), IRON_E_IO, &err);
    assert_false(iron__calibration_load(KEY, &got));
    unsetenv("IRON_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    assert_refused(iron__calibration_save(KEY, &c, &err), IRON_E_IO, &err);
    assert_says(&err, "IRON_CACHE_DIR");
    assert_false(iron__calibration_load(KEY, &got));
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

/* `auto` with a calibration, without one, and with one that is no good. */
static void auto_says_why(void **state) {
    iron__calibration c = sample();
    iron__gpu_info info;
    char key[320];
    iron_error err;

    (void)state;
    NEED_GPU();
    assert_ok(iron__gpu_describe(gpu_index(), 0, &info, &err), &err);
    iron__calibration_key(gpu_index(), &info, key, sizeof key);
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

/* The real thing: every case that it measured has a fastest mode, and `auto` uses them. */
static void measured(void **state) {
    iron__calibration got;
    iron__gpu_info info;
    size_t calls = 0;
    char key[320];
    iron_error err;

    (void)state;
    NEED_GPU();
    assert_refused(iron_calibrate(gpu_backend(), 99, NULL, NULL, &err), IRON_E_ARG, &err);
    assert_ok(iron__gpu_describe(gpu_index(), 0, &info, &err), &err);
    iron__calibration_key(gpu_index(), &info, key, sizeof key);
    assert_refused(iron_calibrate(gpu_backend(), 0, stop_at_once, NULL, &err), IRON_E_CANCELLED,
                   &err);
    assert_false(iron__calibration_load(key, &got));
    assert_ok(iron_calibrate(gpu_backend(), 0, count_calls, &calls, &err), &err);
    assert_true(calls > 0);
    assert_true(iron__calibration_load(key, &got));
    assert_true(got.count >= 8);
    for (size_t k = 0; k < got.count; k++) {
        size_t best = iron__calibration_fastest(&got.cases[k]);

        assert_true(best < IRON_CALIBRATION_MODES && got.cases[k].ns[best] > 0);
        assert_true(got.cases[k].ns[CHAMPION] > 0);
    }
    assert_auto_takes(got.cases[0].batch, got.cases[0].nodes,
                      iron__tokens_gpu_row_at(iron__calibration_fastest(&got.cases[0]))->mode,
                      "the fastest of all when calibrated");
    forget();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_and_found),
        cmocka_unit_test(all_cases_fit),
        cmocka_unit_test(damaged_files_count_as_absent),
        cmocka_unit_test(endless_files_count_as_absent),
        cmocka_unit_test(nearest_and_fastest),
        cmocka_unit_test(nowhere_to_keep_it),
        cmocka_unit_test(unknown_backends),
        cmocka_unit_test(auto_says_why),
        cmocka_unit_test(measured),
    };

    return cmocka_run_group_tests(tests, gpu_set_up, gpu_tear_down);
}
