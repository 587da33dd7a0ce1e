/* SPDX-License-Identifier: MIT */
/*
 * opencl_support.h: shared by the tests of the OpenCL backend: the first device, or the reason why
 * there is none, a temporary folder, and functions that fail with a given code in place of the
 * driver's. Tests replace functions in the loader's table (`api`); `real` has the originals.
 */
#ifndef IRON_UNIT_OPENCL_SUPPORT_H
#define IRON_UNIT_OPENCL_SUPPORT_H

#include "support.h"

#include "gpu/opencl/opencl_device.c" /* for opencl_forget */

#define OPS (&iron__opencl_ops)

static folder place;
static iron_error reason __attribute__((unused)); /* why there is no device */

/* PoCL's compiler never frees some memory; our own leaks are still found. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libpocl\nleak:libLLVM\n"; }

#define NEED_DEVICE()                                                                              \
    do {                                                                                           \
        if (reason.status != IRON_OK) {                                                            \
            print_message("skipped: %s\n", reason.text);                                           \
            skip();                                                                                \
        }                                                                                          \
    } while (0)

/* Makes the folder and puts PoCL's own cache into it, outside of the user's home. */
static inline void make_place(void) {
    folder_make(&place);
    setenv("POCL_CACHE_DIR", place.path, 0);
}

/* Discards the list of devices, so that the next call loads the library again. No device may be
 * open. */
static inline void opencl_forget(void) {
    pthread_mutex_lock(&library_once.mutex);
    discard_devices();
    library_once.is_tried = false;
    pthread_mutex_unlock(&library_once.mutex);
}

/* The loader's table, which tests may change. */
static inline iron__opencl_api *writable_api(void) {
    iron_error err;

    assert_ok(need_library(&err), &err);
    return &the_library.api;
}

static int32_t fail_code; /* returned by the failing functions */

static inline iron__cl_context *fail_context(const intptr_t *properties, uint32_t count,
                                             iron__cl_device *const *devices,
                                             iron__cl_context_callback callback, void *user,
                                             int32_t *code) {
    (void)properties;
    (void)count;
    (void)devices;
    (void)callback;
    (void)user;
    *code = fail_code;
    return NULL;
}

static inline int32_t fail_finish(iron__cl_queue *queue) {
    (void)queue;
    return fail_code;
}

/* For tests of built programs: a kernel that writes 1, one that writes 2. */
static const char source_1[] __attribute__((unused)) =
    "__kernel void one(__global uint *to) { to[get_global_id(0)] = 1; }\n";
static const char source_2[] __attribute__((unused)) =
    "__kernel void one(__global uint *to) { to[get_global_id(0)] = 2; }\n";

/* The value that the kernel writes; 0: something failed, and err has the reason. */
static inline uint32_t result_of(iron__gpu_device *on, iron__gpu_program *program,
                                 iron_error *err) {
    iron__gpu_launch launch = {.groups = {1}, .threads = {1}, .arg_count = 1};
    iron__gpu_queue *queue = NULL;
    iron__gpu_buffer *b = NULL;
    uint32_t got = 0;

    if (iron__gpu_queue_create(on, &queue, err) == IRON_OK &&
        iron__gpu_buffer_create(on, IRON_GPU_MEMORY_DEVICE, 4, &b, err) == IRON_OK &&
        iron__gpu_kernel_find(program->device, program, "one", &launch.kernel, err) == IRON_OK) {
        iron__gpu_arg arg = IRON_GPU_BUFFER(b);
        iron__gpu_copy copy = {.from = b, .to_host = &got, .bytes = 4};

        launch.args = &arg;
        if (iron__gpu_run(queue, &launch, err) != IRON_OK ||
            iron__gpu_copy_bytes(queue, &copy, err) != IRON_OK ||
            iron__gpu_queue_wait(queue, err) != IRON_OK)
            got = 0;
    }
    iron__gpu_buffer_destroy(b);
    iron__gpu_queue_destroy(queue);
    return got;
}

#endif
