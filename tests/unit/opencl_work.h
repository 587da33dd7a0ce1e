/* SPDX-License-Identifier: MIT */
/*
 * opencl_work.h: for tests that work on the device: a queue, a program, which is `image` of the
 * including file, and buffers.
 */
#ifndef IRON_UNIT_OPENCL_WORK_H
#define IRON_UNIT_OPENCL_WORK_H

#include "opencl_support.h"

static const iron__gpu_image image;
static iron__gpu_queue *queue;
static iron__gpu_program *program;

static int open_all(void **state) {
    (void)state;
    folder_make(&place);
    setenv("IRON_CACHE_DIR", name_in(&place, "cache").path, 1);
    setenv("POCL_CACHE_DIR", place.path, 0); /* PoCL's own, out of the user's home */
    if (OPS->device_open(0, &device, &reason) != IRON_OK)
        return 0;
    if (OPS->queue_create(device, &queue, &reason) != IRON_OK ||
        OPS->program_load(device, &image, &program, &reason) != IRON_OK) {
        print_error("%s\n", reason.text);
        return -1;
    }
    return 0;
}

static int close_all(void **state) {
    (void)state;
    if (device)
        assert_int_equal(device->failure.status, IRON_OK);
    if (device) {
        OPS->program_unload(program);
        OPS->queue_destroy(queue);
        OPS->device_close(device);
    }
    iron__opencl_forget();
    folder_remove(&place);
    return 0;
}

static iron__gpu_buffer *buffer_of(iron__gpu_memory memory, size_t bytes) {
    iron__gpu_buffer *buffer = NULL;
    iron_error err;

    assert_ok(OPS->buffer_create(device, memory, bytes, &buffer, &err), &err);
    assert_ptr_equal(buffer->device, device);
    assert_int_equal(buffer->memory, memory);
    assert_int_equal(buffer->bytes, bytes);
    assert_true(buffer->native != 0 && !buffer->is_borrowed);
    return buffer;
}

#endif
