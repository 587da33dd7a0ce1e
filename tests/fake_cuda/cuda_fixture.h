/* SPDX-License-Identifier: MIT */
/*
 * cuda_fixture.h: for tests of the CUDA backend: control of the fake driver, and a fixture with one
 * object of each kind, created and used in the order in which an engine would, with or without a
 * call that fails.
 */
#ifndef TESTS_CUDA_FIXTURE_H
#define TESTS_CUDA_FIXTURE_H

#include "fake_cuda.h"

#include "gpu/cuda/cuda_device.c" /* for cuda_forget */
#include "gpu/cuda/cuda_internal.h"

#include <dlfcn.h>

#include "../unit/support.h"

#define BYTES   4096u
#define LIBRARY "IRON_CUDA_LIBRARY"

#define RESERVED (8u << 20) /* bytes of cache */

/* Arguments of the fixture's kernel besides a buffer. LOCAL_BYTES is more than every card has. */
#define LOCAL_BYTES (100u << 10)
#define SMALL       0x01020304u
#define LARGE       UINT64_C(0x1112131415161718)

static const iron__gpu_ops *const ops = &iron__cuda_ops;
static const iron__gpu_image image = {.name = "tokens", .machine_code = FAKE_CUDA_IMAGE};
static fake_cuda *fake;

static inline fake_cuda *control_of(void *library, bool resets) {
    fake_cuda *(*control)(bool) = NULL;
    void *symbol = dlsym(library, FAKE_CUDA_CONTROL);

    assert_non_null(symbol);
    memcpy(&control, &symbol, sizeof control);
    return control(resets);
}

/* Closes the driver, so that the next call loads it again. No device may be open. */
static inline void cuda_forget(void) {
    pthread_mutex_lock(&driver_once.mutex);
    if (driver_library)
        dlclose(driver_library);
    driver_library = NULL;
    memset(&the_driver, 0, sizeof the_driver);
    driver_once.is_tried = false;
    pthread_mutex_unlock(&driver_once.mutex);
}

static inline int reset_driver(void **state) {
    static void *library; /* stays open, so its state stays too */

    (void)state;
    cuda_forget();
    setenv(LIBRARY, FAKE_CUDA_LIBRARY, 1);
    if (!library)
        library = dlopen(FAKE_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    fake = control_of(library, true);
    return 0;
}

/* Lets `calls` calls succeed; the next one fails with code. */
static inline void fail_after(unsigned calls, int code) {
    fake->fail_at = atomic_load(&fake->calls) + calls + 1;
    fake->fail_with = code;
}

static inline void assert_nothing_lives(void) {
    static const char *const names[] = {"context", "memory", "module", "stream",
                                        "event",   "graph",  "exec",   "texture"};

    for (int k = 0; k < FAKE_KINDS; k++)
        if (fake->live[k] != 0)
            fail_msg("%d objects '%s' were not destroyed", fake->live[k], names[k]);
    assert_int_equal(fake->contexts_pushed, 0);
}

typedef struct fixture {
    iron__gpu_device *device;
    iron__gpu_program *program;
    iron__gpu_kernel *kernel;
    iron__gpu_buffer *buffers[4]; /* by iron__gpu_memory */
    iron__gpu_buffer *wrapped;    /* the device buffer from byte 260 on */
    iron__gpu_buffer *constant;
    iron__gpu_queue *queue, *default_queue;
    iron__gpu_event *events[2];
    iron__gpu_graph *graph;
    uint64_t texture;              /* of the device buffer */
    iron__gpu_resources resources; /* of the kernel, with LOCAL_BYTES */
    bool failed_silently;          /* a call failed that does not report it */
} fixture;

static inline iron_status make_memory(fixture *s, iron_error *err) {
    const char *failed;

    for (int k = 0; k < 4; k++) {
        iron_status status =
            iron__gpu_buffer_create(s->device, (iron__gpu_memory)k, BYTES, &s->buffers[k], err);

        assert_true((status == IRON_OK) == (s->buffers[k] != NULL));
        if (status != IRON_OK)
            return status;
    }
    failed = fake->failed;
    if (iron__gpu_buffer_wrap(s->device, s->buffers[0]->native + 260, BYTES - 260, &s->wrapped,
                              err))
        return err->status;
    iron__gpu_is_pinned(s->device, s->buffers[IRON_GPU_MEMORY_PINNED]->host, BYTES);
    s->failed_silently = fake->failed != failed; /* only the first query of a wrap must succeed */
    return IRON_OK;
}

/* Unreported resources are not an error; all other failures must be reported. */
static inline iron_status make_extras(fixture *s, iron_error *err) {
    iron_status status = iron__gpu_texture_create(s->buffers[0], &s->texture, err);
    const char *failed;

    assert_true((status == IRON_OK) == (s->texture != 0));
    if (status != IRON_OK || (s->device->info.persisting_bytes_max > 0 &&
                              iron__gpu_cache_reserve(s->device, RESERVED, err)))
        return err->status;
    failed = fake->failed;
    assert_int_equal(
        iron__gpu_kernel_resources(s->device, s->kernel, 128, LOCAL_BYTES, &s->resources, err),
        IRON_OK);
    if (fake->failed != failed) {
        assert_int_equal(s->device->failure.status, IRON_OK);
        s->failed_silently = true;
    }
    return IRON_OK;
}

static inline iron_status make_objects(fixture *s, iron_error *err) {
    size_t count;

    if (ops->probe(&count, err) || ops->device_open(0, &s->device, err) ||
        iron__gpu_program_load(s->device, &image, &s->program, err) ||
        iron__gpu_kernel_find(s->program->device, s->program, "count", &s->kernel, err) ||
        iron__gpu_constant_find(s->program->device, s->program, FAKE_CONSTANT, FAKE_CONSTANT_BYTES,
                                &s->constant, err) ||
        make_memory(s, err) || make_extras(s, err) ||
        iron__gpu_queue_create(s->device, &s->queue, err) ||
        iron__gpu_queue_wrap(s->device, 0, &s->default_queue, err) ||
        iron__gpu_event_create(s->device, &s->events[0], err) ||
        iron__gpu_event_create(s->device, &s->events[1], err))
        return err->status;
    return IRON_OK;
}

/* `more` has the options that launch does not set. */
static inline iron_status launch_with(fixture *s, uint32_t flags, const iron__gpu_launch *more,
                                      iron_error *err) {
    uint32_t small = SMALL;
    uint64_t large = LARGE;
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(s->buffers[0]), IRON_GPU_VALUE(small),
                                  IRON_GPU_VALUE(large)};
    const iron__gpu_launch l = {.kernel = s->kernel,
                                .groups = {7, 3},
                                .threads = {128},
                                .flags = flags,
                                .args = args,
                                .arg_count = COUNT(args),
                                .local_bytes = more->local_bytes,
                                .persisting = more->persisting,
                                .persisting_bytes = more->persisting_bytes};

    return iron__gpu_run(s->queue, &l, err);
}

static inline iron_status launch(fixture *s, uint32_t flags, iron_error *err) {
    return launch_with(s, flags, &(iron__gpu_launch){.local_bytes = 0}, err);
}

/* More local memory than kernel_resources requested, and a persisting buffer. */
static inline iron_status launch_with_all(fixture *s, iron_error *err) {
    const iron__gpu_launch more = {
        .local_bytes = 2 * LOCAL_BYTES, .persisting = s->buffers[0], .persisting_bytes = BYTES};

    return launch_with(s, 0, &more, err);
}

static inline iron_status copy(fixture *s, int from, int to, size_t from_offset, size_t to_offset,
                               size_t bytes, iron_error *err) {
    const iron__gpu_copy c = {.from = s->buffers[from],
                              .to = s->buffers[to],
                              .from_offset = from_offset,
                              .to_offset = to_offset,
                              .bytes = bytes};

    return iron__gpu_copy_bytes(s->queue, &c, err);
}

static inline iron_status run_commands(fixture *s, unsigned char *host, iron_error *err) {
    iron__gpu_buffer *device = s->buffers[IRON_GPU_MEMORY_DEVICE],
                     *managed = s->buffers[IRON_GPU_MEMORY_MANAGED];
    const iron__gpu_copy in = {.from_host = host, .to = device, .to_offset = 1024, .bytes = 1024};
    const iron__gpu_copy out = {.from = managed, .to_host = host, .from_offset = 64, .bytes = 512};
    double ms = -1;

    if (iron__gpu_clear(s->queue, device, 0, BYTES, err) ||
        iron__gpu_copy_bytes(s->queue, &in, err) ||
        copy(s, IRON_GPU_MEMORY_DEVICE, IRON_GPU_MEMORY_MANAGED, 960, 0, 2048, err) ||
        copy(s, IRON_GPU_MEMORY_DEVICE, IRON_GPU_MEMORY_PINNED, 1024, 8, 16, err) ||
        copy(s, IRON_GPU_MEMORY_PINNED, IRON_GPU_MEMORY_DEVICE, 8, 0, 16, err) ||
        copy(s, IRON_GPU_MEMORY_DEVICE, IRON_GPU_MEMORY_MAPPED, 0, 32, 16, err) ||
        iron__gpu_prefetch(s->queue, managed, BYTES, err) ||
        iron__gpu_event_record(s->queue, s->events[0], err) || launch(s, 0, err) ||
        launch(s, IRON_GPU_LAUNCH_OVERLAP | IRON_GPU_LAUNCH_COOPERATIVE, err) ||
        launch_with_all(s, err) || iron__gpu_event_record(s->queue, s->events[1], err) ||
        iron__gpu_queue_wait_event(s->default_queue, s->events[1], err) ||
        iron__gpu_event_wait(s->device, s->events[1], err) ||
        iron__gpu_event_elapsed(s->device, s->events[0], s->events[1], &ms, err) ||
        iron__gpu_graph_begin(s->queue, err) || iron__gpu_clear(s->queue, managed, 0, 64, err) ||
        launch(s, 0, err) || iron__gpu_copy_bytes(s->queue, &out, err) ||
        iron__gpu_graph_end(s->queue, &s->graph, err) ||
        iron__gpu_graph_replay(s->graph, s->queue, err) ||
        iron__gpu_graph_replay(s->graph, s->default_queue, err) ||
        iron__gpu_queue_wait(s->queue, err))
        return err->status;
    assert_true(ms == 1.5);
    return IRON_OK;
}

static inline void clean_up(fixture *s) {
    iron__gpu_graph_destroy(s->device, s->graph);
    for (int k = 0; k < 2; k++)
        iron__gpu_event_destroy(s->device, s->events[k]);
    iron__gpu_queue_destroy(s->default_queue);
    iron__gpu_queue_destroy(s->queue);
    iron__gpu_buffer_destroy(s->wrapped);
    iron__gpu_buffer_destroy(s->constant);
    if (s->texture)
        iron__gpu_texture_destroy(s->device, s->texture);
    for (int k = 0; k < 4; k++)
        iron__gpu_buffer_destroy(s->buffers[k]);
    iron__gpu_program_unload(s->device, s->program);
    ops->device_close(s->device);
}

static inline fixture make_fixture(void) {
    fixture s = {0};
    iron_error err;

    assert_ok(make_objects(&s, &err), &err);
    return s;
}

/* Copies a library without some symbols: their names are overwritten. */
static inline void copy_library_without(const char *library, const char *path,
                                        const char *const *names, size_t count) {
    size_t bytes;
    char *data = file_read(library, &bytes);

    for (size_t k = 0; k < count; k++) {
        size_t length = strlen(names[k]) + 1, found = 0;

        for (char *at = data; (at = memmem(at, (size_t)(data + bytes - at), names[k], length));) {
            *at = 'x';
            found++;
        }
        assert_true(found > 0);
    }
    file_write(path, data, bytes);
    free(data);
}

/* Probing fails, with the same reason every time. */
static inline void assert_unavailable(const char *word, const char *other) {
    size_t count = 1;
    iron_error err;

    for (int round = 0; round < 2; round++) {
        assert_refused(ops->probe(&count, &err), IRON_E_UNSUPPORTED, &err);
        assert_int_equal(count, 0);
        assert_says(&err, "cuda: ");
        assert_says(&err, word);
        assert_says(&err, other);
    }
    assert_int_equal(ops->probe(&count, NULL), IRON_E_UNSUPPORTED);
}

static inline void check_without_symbol(const folder *f, const char *name, bool is_required) {
    file_name copy = name_in(f, name);
    size_t count = 0;

    copy_library_without(FAKE_CUDA_LIBRARY, copy.path, &name, 1);
    cuda_forget();
    setenv(LIBRARY, copy.path, 1);
    if (!is_required)
        assert_int_equal(ops->probe(&count, NULL), IRON_OK);
    else if (strcmp(name, "cuDriverGetVersion") == 0)
        assert_unavailable("has no cuDriverGetVersion", "unknown version");
    else
        assert_unavailable(name, "CUDA 13.0) is too old");
}

static inline bool is_sticky(int code) {
    return code != IRON_CUDA_ERROR_INVALID_VALUE && code != IRON_CUDA_ERROR_OUT_OF_MEMORY;
}

/* Runs everything with call number n failing. False if there was no such call. */
static inline bool fail_once(unsigned n, int code, const char *word) {
    unsigned char host[1024] = {0};
    fixture s = {0};
    iron_error err = {0};
    iron_status status;
    const char *failed;

    reset_driver(NULL);
    fake->fail_at = n;
    fake->fail_with = code;
    status = make_objects(&s, &err);
    if (status == IRON_OK)
        status = run_commands(&s, host, &err);
    failed = fake->failed;
    if (status != IRON_OK) {
        assert_non_null(failed);
        assert_int_equal(err.status, status);
        assert_int_equal(err.native, code);
        assert_says(&err, word);
    } else if (failed && !s.failed_silently) {
        fail_msg("%s failed, but no error was reported", failed);
    }
    if (s.device && failed && !s.failed_silently)
        assert_int_equal(s.device->failure.status, is_sticky(code) ? IRON_E_IO : IRON_OK);
    clean_up(&s);
    assert_nothing_lives();
    /* Objects that cannot be released without a context are destroyed with it. */
    if (!fake->failed || strcmp(fake->failed, "cuCtxPushCurrent_v2") != 0)
        assert_int_equal(fake->orphans, 0);
    return fake->failed != NULL;
}

#endif
