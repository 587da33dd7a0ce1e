/* SPDX-License-Identifier: MIT */
/*
 * test_opencl_cache.c: built programs on disk. The second load of a text is a hit, told by counting
 * how often the driver was given text and how often a binary; whatever else lies under the file's
 * name is ignored and replaced; and no folder, however useless, is an error.
 *
 * A device that stays open keeps its programs itself (test_opencl_shared.c); so every load here is
 * one of a device that was just opened. The counting functions stand in the loader's table in place
 * of the driver's. Without a device the tests are skipped with the reason.
 */
#include "opencl_support.h"

#include "gpu/opencl/opencl_loader.h"

#include <fcntl.h>

static const char text_a[] = "__kernel void one(__global uint *to) { to[get_global_id(0)] = 1; }\n";
static const char text_b[] = "__kernel void one(__global uint *to) { to[get_global_id(0)] = 2; }\n";

static iron__opencl_api *api, real;
static size_t from_text, from_binary;
static int32_t binary_code; /* what the driver says to binaries */
static char *first_file;    /* the name that text_a's program got, without the folder */

static iron__cl_program *count_text(iron__cl_context *context, uint32_t count, const char **texts,
                                    const size_t *bytes, int32_t *code) {
    from_text++;
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
    const iron__opencl_library *library;

    (void)state;
    folder_make(&place);
    setenv("POCL_CACHE_DIR", place.path, 0); /* PoCL's own, out of the user's home */
    if (OPS->device_open(0, &device, &reason) != IRON_OK)
        return 0;
    assert_ok(iron__opencl_load(&library, &reason), &reason);
    api = (iron__opencl_api *)&library->api;
    real = *api;
    api->clCreateProgramWithSource = count_text;
    api->clCreateProgramWithBinary = count_binary;
    return 0;
}

static int close_device(void **state) {
    (void)state;
    OPS->device_close(device);
    iron__opencl_forget();
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
    from_text = from_binary = 0;
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

/* Now the disk alone knows what was built. */
static void reopen(void) {
    iron_error err;

    OPS->device_close(device);
    assert_ok(OPS->device_open(0, &device, &err), &err);
}

/* Loads the text, and runs it: a binary must not only load. */
static void load(const char *text) {
    iron__gpu_image image = {.name = "one", .source = text};
    iron__gpu_launch launch = {.groups = {1}, .threads = {1}, .arg_count = 1};
    iron__gpu_program *program = NULL;
    iron__gpu_buffer *b = NULL;
    iron__gpu_queue *queue = NULL;
    uint32_t got = 0;
    iron_error err;

    reopen();
    assert_ok(OPS->program_load(device, &image, &program, &err), &err);
    assert_ok(OPS->queue_create(device, &queue, &err), &err);
    assert_ok(OPS->buffer_create(device, IRON_GPU_MEMORY_DEVICE, 4, &b, &err), &err);
    assert_ok(OPS->kernel_find(program, "one", &launch.kernel, &err), &err);
    launch.args = &IRON_GPU_BUFFER(b);
    assert_ok(OPS->launch(queue, &launch, &err), &err);
    iron__gpu_copy copy = {.from = b, .to_host = &got, .bytes = 4};
    assert_ok(OPS->copy(queue, &copy, &err), &err);
    assert_ok(OPS->queue_wait(queue, &err), &err);
    assert_int_equal(got, text == text_a ? 1 : 2);
    OPS->buffer_destroy(b);
    OPS->queue_destroy(queue);
    OPS->program_unload(program);
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
    assert_int_equal(folder_entries(f), 1); /* no temporary file either */
    return name;
}

static void assert_loaded(size_t texts, size_t binaries) {
    assert_int_equal(from_text, texts);
    assert_int_equal(from_binary, binaries);
    from_text = from_binary = 0;
}

static void the_second_load_is_a_hit(void **state) {
    folder f = cache_folder();
    struct stat before, after, info;

    (void)state;
    NEED_DEVICE();
    load(text_a);
    assert_loaded(1, 0);
    assert_int_equal(stat(only_file(&f).path, &before), 0);
    load(text_a);
    assert_loaded(0, 1);
    assert_int_equal(stat(only_file(&f).path, &after), 0);
    assert_true(before.st_ino == after.st_ino && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
    assert_int_equal(stat(f.path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    first_file = strdup(strrchr(only_file(&f).path, '/') + 1);
}

static void another_text_is_another_file(void **state) {
    folder f = cache_folder();

    (void)state;
    NEED_DEVICE();
    load(text_a);
    load(text_b);
    assert_loaded(2, 0);
    assert_int_equal(folder_entries(&f), 2);
    load(text_a);
    load(text_b);
    assert_loaded(0, 2);
}

static void damaged_files_are_replaced(void **state) {
    folder f = cache_folder();
    file_name name;
    size_t bytes, key;
    char *good;
    dice d = {9};

    (void)state;
    NEED_DEVICE();
    load(text_a);
    name = only_file(&f);
    good = file_read(name.path, &bytes);
    key = (size_t)(strstr(good + 40, text_a) - good);
    assert_true(bytes > 100 && key < bytes);
    from_text = 0;
    for (int round = 0; round < 40; round++) {
        size_t length = bytes, at;
        char *bad = grab(bytes + 1);

        memcpy(bad, good, bytes);
        bad[bytes] = 0;
        if (round < 8) /* shorter */
            length = (const size_t[]){0, 1, 8, 39, 40, 41, bytes / 2, bytes - 1}[round];
        else if (round == 8)
            length = bytes + 1;
        else { /* a bit somewhere: header, key, binary */
            at = round < 19 ? (size_t)round % 5 * 8 : (size_t)roll_below(&d, bytes);
            bad[round == 39 ? key : at] ^= (char)(1 << roll_below(&d, 8));
        }
        file_write(name.path, bad, length);
        load(text_a);
        assert_loaded(1, 0);
        load(text_a);
        assert_loaded(0, 1);
        free(bad);
    }
    free(good);
}

/* The name is a hash; whoever has the same one by chance must not be taken for the other. */
static void a_file_of_another_key_is_not_trusted(void **state) {
    folder f = cache_folder();
    file_name theirs;

    (void)state;
    NEED_DEVICE();
    assert_non_null(first_file);
    load(text_b);
    theirs = only_file(&f);
    assert_int_equal(rename(theirs.path, name_in(&f, first_file).path), 0);
    from_text = 0;
    load(text_a);
    assert_loaded(1, 0);
    load(text_a);
    assert_loaded(0, 1);
}

static void things_that_are_no_files(void **state) {
    folder f = cache_folder();
    file_name name;

    (void)state;
    NEED_DEVICE();
    assert_non_null(first_file);
    name = name_in(&f, first_file);
    load(text_b);
    from_text = 0;
    assert_int_equal(mkdir(name.path, 0700), 0);
    load(text_a);
    assert_loaded(1, 0);
    assert_int_equal(rmdir(name.path), 0);
    assert_int_equal(mkfifo(name.path, 0600), 0); /* neither side may wait for the other */
    load(text_a);
    assert_loaded(1, 0);
    assert_int_equal(unlink(name.path), 0);
    assert_int_equal(symlink("/dev/zero", name.path), 0);
    load(text_a);
    assert_loaded(1, 0);
}

static void a_binary_that_the_driver_refuses(void **state) {
    folder f = cache_folder();
    struct stat before, after;

    (void)state;
    NEED_DEVICE();
    load(text_a);
    assert_int_equal(stat(only_file(&f).path, &before), 0);
    from_text = 0;
    binary_code = IRON_CL_INVALID_BINARY;
    load(text_a);
    assert_loaded(1, 1);
    assert_int_equal(stat(only_file(&f).path, &after), 0);
    assert_true(before.st_ino != after.st_ino);
    binary_code = 0;
    load(text_a);
    assert_loaded(0, 1);
}

static void folders_that_cannot_be(void **state) {
    file_name file = name_in(&place, "file"), below = name_in(&place, "file/cache");

    (void)state;
    NEED_DEVICE();
    file_write(file.path, "x", 1);
    setenv("IRON_CACHE_DIR", below.path, 1);
    load(text_a);
    load(text_a);
    assert_loaded(2, 0);
    setenv("IRON_CACHE_DIR", "/proc/nobody/cache", 1);
    load(text_a);
    assert_loaded(1, 0);
    assert_file_holds(file.path, "x", 1);
}

static void where_the_cache_lies(void **state) {
    folder xdg, home;
    char *old_home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;

    (void)state;
    if (!device)
        free(old_home);
    NEED_DEVICE();
    snprintf(xdg.path, sizeof xdg.path, "%.150s/xdg/iron", place.path);
    snprintf(home.path, sizeof home.path, "%.150s/home/.cache/iron", place.path);
    unsetenv("IRON_CACHE_DIR");
    setenv("XDG_CACHE_HOME", name_in(&place, "xdg").path, 1);
    setenv("HOME", name_in(&place, "home").path, 1);
    load(text_a);
    only_file(&xdg);
    setenv("XDG_CACHE_HOME", "relative", 1);
    load(text_a);
    only_file(&home);
    assert_loaded(2, 0);
    unsetenv("XDG_CACHE_HOME");
    load(text_a);
    assert_loaded(0, 1);
    unsetenv("HOME"); /* nowhere */
    load(text_a);
    assert_loaded(1, 0);
    setenv("HOME", name_in(&place, "home").path, 1);
    setenv("IRON_OPENCL_CACHE", "0", 1); /* off */
    load(text_a);
    load(text_b);
    assert_loaded(2, 0);
    only_file(&home);
    setenv("IRON_OPENCL_CACHE", "1", 1);
    load(text_a);
    assert_loaded(0, 1);
    if (old_home)
        setenv("HOME", old_home, 1);
    free(old_home);
}

#define CACHE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CACHE_TEST(the_second_load_is_a_hit),   CACHE_TEST(another_text_is_another_file),
        CACHE_TEST(damaged_files_are_replaced), CACHE_TEST(a_file_of_another_key_is_not_trusted),
        CACHE_TEST(things_that_are_no_files),   CACHE_TEST(a_binary_that_the_driver_refuses),
        CACHE_TEST(folders_that_cannot_be),     CACHE_TEST(where_the_cache_lies),
    };

    return cmocka_run_group_tests_name("opencl_cache", tests, open_device, close_device);
}
