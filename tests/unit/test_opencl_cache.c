/* SPDX-License-Identifier: MIT */
/*
 * test_opencl_cache.c: built programs on disk. The second load of a source is a hit, detected by
 * counting how often the driver gets source and how often a binary. Anything else under the file's
 * name is ignored and replaced, and an unusable folder is not an error.
 *
 * An open device keeps its programs in memory (test_opencl_contexts.c), so every load here reopens
 * the device. Skipped with the reason if there is none.
 */
#include "opencl_support.h"

#include "gpu/opencl/opencl_program.c" /* for cache_read, cache_write */

static iron__gpu_device *device;
static iron__opencl_api *api, real;
static size_t from_source, from_binary;
static int32_t binary_code; /* what the driver returns for binaries */
static char *first_file;    /* file name of source_1's program */

static iron__cl_program *count_source(iron__cl_context *context, uint32_t count, const char **texts,
                                      const size_t *bytes, int32_t *code) {
    from_source++;
    return real.clCreateProgramWithSource(context, count, texts, bytes, code);
}

static iron__cl_program *count_binary(iron__cl_context *context, uint32_t count,
                                      iron__cl_device *const *devices, const size_t *bytes,
                                      const unsigned char **binaries, int32_t *verdicts,
                                      int32_t *code) {
    from_binary++;
    if (binary_code) {
        *code = binary_code;
        return NULL;
    }
    return real.clCreateProgramWithBinary(context, count, devices, bytes, binaries, verdicts, code);
}

static int open_device(void **state) {
    (void)state;
    make_place();
    if (OPS->device_open(0, &device, &reason) != IRON_OK)
        return 0;
    api = writable_api();
    real = *api;
    api->clCreateProgramWithSource = count_source;
    api->clCreateProgramWithBinary = count_binary;
    return 0;
}

static int close_device(void **state) {
    (void)state;
    OPS->device_close(device);
    opencl_forget();
    free(first_file);
    folder_remove(&place);
    return 0;
}

static folder cache_folder(void) {
    folder f;

    snprintf(f.path, sizeof f.path, "%.150s/a/b/cache", place.path);
    return f;
}

static int set_up(void **state) {
    folder f = cache_folder();

    (void)state;
    setenv("IRON_CACHE_DIR", f.path, 1);
    unsetenv("IRON_OPENCL_CACHE");
    from_source = from_binary = 0;
    binary_code = 0;
    return 0;
}

static int tear_down(void **state) {
    folder f = cache_folder();

    (void)state;
    if (access(f.path, F_OK) == 0)
        folder_remove(&f);
    return 0;
}

/* Afterwards only the disk has built programs. */
static void reopen(void) {
    iron_error err;

    OPS->device_close(device);
    assert_ok(OPS->device_open(0, &device, &err), &err);
}

/* Loads the source and runs it: a binary must also work. */
static void load_and_run(const char *source) {
    iron__gpu_image image = {.name = "one", .source = source};
    iron__gpu_program *program = NULL;
    iron_error err;

    reopen();
    assert_ok(iron__gpu_program_load(device, &image, &program, &err), &err);
    assert_int_equal(result_of(device, program, &err), source == source_1 ? 1 : 2);
    iron__gpu_program_unload(program->device, program);
}

/* The only file in the cache. */
static file_name only_file(const folder *f) {
    DIR *directory = opendir(f->path);
    struct dirent *entry;
    file_name name = {""};
    size_t count = 0;

    assert_non_null(directory);
    while ((entry = readdir(directory)))
        if (entry->d_name[0] != '.') {
            snprintf(name.path, sizeof name.path, "%s/%.100s", f->path, entry->d_name);
            count++;
            assert_int_equal(strncmp(entry->d_name, "opencl-", 7), 0);
            assert_int_equal(strlen(entry->d_name), strlen("opencl-0123456789abcdef.bin"));
        }
    closedir(directory);
    assert_int_equal(count, 1);
    assert_int_equal(folder_entries(f), 1); /* and no temporary file */
    return name;
}

static void assert_loaded(size_t sources, size_t binaries) {
    assert_int_equal(from_source, sources);
    assert_int_equal(from_binary, binaries);
    from_source = from_binary = 0;
}

static void second_load_is_a_hit(void **state) {
    folder f = cache_folder();
    struct stat before, after, info;

    (void)state;
    NEED_DEVICE();
    load_and_run(source_1);
    assert_loaded(1, 0);
    assert_int_equal(stat(only_file(&f).path, &before), 0);
    load_and_run(source_1);
    assert_loaded(0, 1);
    assert_int_equal(stat(only_file(&f).path, &after), 0);
    assert_true(before.st_ino == after.st_ino && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
    assert_int_equal(stat(f.path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    first_file = strdup(strrchr(only_file(&f).path, '/') + 1);
}

static void one_file_per_source(void **state) {
    folder f = cache_folder();

    (void)state;
    NEED_DEVICE();
    load_and_run(source_1);
    load_and_run(source_2);
    assert_loaded(2, 0);
    assert_int_equal(folder_entries(&f), 2);
    load_and_run(source_1);
    load_and_run(source_2);
    assert_loaded(0, 2);
}

/* Not read: truncated at any length, longer by a byte, with a flipped bit anywhere. A write repairs
 * the file. */
static void damaged_files_are_ignored(void **state) {
    static const char key[] = "a key";
    const unsigned char binary[] = "the binary of a program";
    folder f = cache_folder();
    unsigned char *read_back;
    size_t bytes = 0, read_bytes = 0;
    file_name name;
    char *good, *bad;

    (void)state;
    cache_write(key, binary, sizeof binary);
    name = only_file(&f);
    good = file_read(name.path, &bytes);
    assert_int_equal(bytes, 40 + strlen(key) + sizeof binary);
    bad = grab(bytes + 1);
    for (size_t k = 0; k <= bytes + 1; k++) {
        bool is_whole = k == bytes;

        memcpy(bad, good, bytes);
        bad[bytes] = 0;
        file_write(name.path, bad, k);
        read_back = cache_read(key, &read_bytes);
        assert_int_equal(read_back != NULL, is_whole);
        free(read_back);
    }
    for (size_t k = 0; k < 8 * bytes; k++) {
        memcpy(bad, good, bytes);
        bad[k / 8] ^= (char)(1 << k % 8);
        file_write(name.path, bad, bytes);
        assert_null(cache_read(key, &read_bytes));
    }
    cache_write(key, binary, sizeof binary);
    read_back = cache_read(key, &read_bytes);
    assert_non_null(read_back);
    assert_int_equal(read_bytes, sizeof binary);
    assert_memory_equal(read_back, binary, sizeof binary);
    free(read_back);
    free(good);
    free(bad);
}

static void damaged_files_are_replaced(void **state) {
    folder f = cache_folder();
    file_name name;
    size_t bytes;
    char *good;

    (void)state;
    NEED_DEVICE();
    load_and_run(source_1);
    name = only_file(&f);
    good = file_read(name.path, &bytes);
    from_source = 0;
    for (int round = 0; round < 3; round++) {
        char *bad = grab(bytes);
        size_t key = (size_t)(strstr(good + 40, source_1) - good);

        memcpy(bad, good, bytes);
        bad[round == 1 ? key : bytes - 1] ^= 4; /* in the key, in the binary */
        file_write(name.path, bad, round == 2 ? bytes / 2 : bytes);
        free(bad);
        load_and_run(source_1);
        assert_loaded(1, 0);
        load_and_run(source_1);
        assert_loaded(0, 1);
    }
    free(good);
}

/* File names are hashes: a file with the same name may belong to another key. */
static void key_is_compared(void **state) {
    folder f = cache_folder();
    file_name theirs;

    (void)state;
    NEED_DEVICE();
    assert_non_null(first_file);
    load_and_run(source_2);
    theirs = only_file(&f);
    assert_int_equal(rename(theirs.path, name_in(&f, first_file).path), 0);
    from_source = 0;
    load_and_run(source_1);
    assert_loaded(1, 0);
    load_and_run(source_1);
    assert_loaded(0, 1);
}

static void not_a_regular_file(void **state) {
    folder f = cache_folder();
    file_name name;

    (void)state;
    NEED_DEVICE();
    assert_non_null(first_file);
    name = name_in(&f, first_file);
    load_and_run(source_2);
    from_source = 0;
    assert_int_equal(mkdir(name.path, 0700), 0);
    load_and_run(source_1);
    assert_loaded(1, 0);
    assert_int_equal(rmdir(name.path), 0);
    assert_int_equal(mkfifo(name.path, 0600), 0); /* opening it must not block */
    load_and_run(source_1);
    assert_loaded(1, 0);
    assert_int_equal(unlink(name.path), 0);
    assert_int_equal(symlink("/dev/zero", name.path), 0);
    load_and_run(source_1);
    assert_loaded(1, 0);
}

static void refused_binary(void **state) {
    folder f = cache_folder();
    struct stat before, after;

    (void)state;
    NEED_DEVICE();
    load_and_run(source_1);
    assert_int_equal(stat(only_file(&f).path, &before), 0);
    from_source = 0;
    binary_code = IRON_CL_INVALID_BINARY;
    load_and_run(source_1);
    assert_loaded(1, 1);
    assert_int_equal(stat(only_file(&f).path, &after), 0);
    assert_true(before.st_ino != after.st_ino);
    binary_code = 0;
    load_and_run(source_1);
    assert_loaded(0, 1);
}

static void unusable_folders(void **state) {
    file_name file = name_in(&place, "file"), below = name_in(&place, "file/cache");

    (void)state;
    NEED_DEVICE();
    file_write(file.path, "x", 1);
    setenv("IRON_CACHE_DIR", below.path, 1);
    load_and_run(source_1);
    load_and_run(source_1);
    assert_loaded(2, 0);
    setenv("IRON_CACHE_DIR", "/proc/absent/cache", 1);
    load_and_run(source_1);
    assert_loaded(1, 0);
    assert_file_holds(file.path, "x", 1);
}

static void cache_locations(void **state) {
    folder xdg, home;
    char *old_home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;

    (void)state;
    if (reason.status != IRON_OK)
        free(old_home);
    NEED_DEVICE();
    snprintf(xdg.path, sizeof xdg.path, "%.150s/xdg/iron", place.path);
    snprintf(home.path, sizeof home.path, "%.150s/home/.cache/iron", place.path);
    unsetenv("IRON_CACHE_DIR");
    setenv("XDG_CACHE_HOME", name_in(&place, "xdg").path, 1);
    setenv("HOME", name_in(&place, "home").path, 1);
    load_and_run(source_1);
    only_file(&xdg);
    setenv("XDG_CACHE_HOME", "relative", 1);
    load_and_run(source_1);
    only_file(&home);
    assert_loaded(2, 0);
    unsetenv("XDG_CACHE_HOME");
    load_and_run(source_1);
    assert_loaded(0, 1);
    unsetenv("HOME"); /* nowhere */
    load_and_run(source_1);
    assert_loaded(1, 0);
    setenv("HOME", name_in(&place, "home").path, 1);
    setenv("IRON_OPENCL_CACHE", "0", 1); /* off */
    load_and_run(source_1);
    load_and_run(source_2);
    assert_loaded(2, 0);
    only_file(&home);
    setenv("IRON_OPENCL_CACHE", "1", 1);
    load_and_run(source_1);
    assert_loaded(0, 1);
    if (old_home)
        setenv("HOME", old_home, 1);
    free(old_home);
}

#define CACHE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CACHE_TEST(second_load_is_a_hit),
        CACHE_TEST(one_file_per_source),
        CACHE_TEST(damaged_files_are_ignored),
        CACHE_TEST(damaged_files_are_replaced),
        CACHE_TEST(key_is_compared),
        CACHE_TEST(not_a_regular_file),
        CACHE_TEST(refused_binary),
        CACHE_TEST(unusable_folders),
        CACHE_TEST(cache_locations),
    };

    return cmocka_run_group_tests_name("opencl_cache", tests, open_device, close_device);
}
