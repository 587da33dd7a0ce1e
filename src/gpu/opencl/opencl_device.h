/* SPDX-License-Identifier: MIT */
/*
 * opencl_device.h: the objects behind gpu.h's, as the files of this folder share them, and the
 * entries of the table, one group a file.
 *
 * Every object begins with the part that gpu.h knows. All of them belong to one device, which
 * belongs to one thread at a time: nothing here is locked. What several who have the device open
 * share is (opencl_shared.h).
 */
#ifndef IRON_GPU_OPENCL_OPENCL_DEVICE_H
#define IRON_GPU_OPENCL_OPENCL_DEVICE_H

#include "gpu/gpu.h"
#include "gpu/opencl/opencl_loader.h"

typedef struct iron__opencl_shared iron__opencl_shared;

typedef struct iron__opencl_device {
    iron__gpu_device base;
    const iron__opencl_api *api;
    const iron__opencl_entry *entry;
    iron__opencl_shared *shared; /* with all others who have the device open */
    iron__cl_context *context;   /* its */
    iron__cl_queue *service;     /* for mapping and touching, where the caller names no queue */
    uint64_t allocation_bytes_max;
    bool has_u64_atomics;
    bool has_register_limit; /* the compiler takes -cl-nv-maxrregcount */
} iron__opencl_device;

typedef struct iron__opencl_buffer {
    iron__gpu_buffer base;
    void *allocation; /* shared virtual memory as it was allocated; base.native is aligned in it */
} iron__opencl_buffer;

struct iron__gpu_program {
    iron__opencl_device *device;
    iron__cl_program *native;
    iron__gpu_kernel *kernels; /* those that were asked for */
    char name[64];
};

/* Of a device's local memory: NVIDIA's driver counts a byte of its own to kernels that get theirs
 * by an argument. */
#define IRON_OPENCL_LOCAL_RESERVE 256u

struct iron__gpu_kernel {
    iron__gpu_kernel *next;
    iron__cl_program *program;
    iron__cl_kernel *native;
    uint32_t arg_count;
    uint32_t shared_args; /* bit k: argument k was shared memory since native was made */
    bool tells_local;     /* the driver has told local_bytes */
    uint64_t local_bytes; /* of local memory that are the kernel's own, a group */
    char name[];
};

/* Zeroed, or NULL with err filled; destroy frees. For the small objects of this folder. */
void *iron__opencl_new(size_t bytes, const char *what, iron_error *err);
void iron__opencl_delete(void *object);

static inline iron__opencl_device *iron__opencl_device_of(iron__gpu_device *device) {
    return (iron__opencl_device *)device;
}

static inline iron__cl_queue *iron__opencl_queue_of(const iron__gpu_queue *queue) {
    return (iron__cl_queue *)queue->native;
}

static inline iron__cl_memory *iron__opencl_memory_of(const iron__gpu_buffer *buffer) {
    return (iron__cl_memory *)buffer->native;
}

/* Managed and mapped buffers have a host address between host_begin and host_end alone; meanwhile
 * the device must not touch them. */
static inline bool iron__opencl_is_open(const iron__gpu_buffer *buffer) {
    return buffer->host != NULL;
}

/* opencl_info.c */
void iron__opencl_describe(const iron__opencl_library *library, const iron__opencl_entry *entry,
                           iron__gpu_info *info);
/* A property that is a text, without blanks around it; "" if it cannot be had. free() it; NULL when
 * memory is out. */
char *iron__opencl_device_text(const iron__opencl_api *api, iron__cl_device *id, uint32_t what);
char *iron__opencl_platform_text(const iron__opencl_api *api, iron__cl_platform *id, uint32_t what);
uint64_t iron__opencl_device_number(const iron__opencl_api *api, iron__cl_device *id,
                                    uint32_t what);
bool iron__opencl_has_extension(const iron__opencl_api *api, iron__cl_device *id,
                                const char *extension);

/* opencl_program.c */
iron_status iron__opencl_program_load(iron__gpu_device *device, const iron__gpu_image *image,
                                      iron__gpu_program **out, iron_error *err);
void iron__opencl_program_unload(iron__gpu_program *program);
iron_status iron__opencl_constant_find(iron__gpu_program *program, const char *name, size_t bytes,
                                       iron__gpu_buffer **out, iron_error *err);

/* opencl_kernel.c */
const char *iron__opencl_kernel_name(const iron__gpu_kernel *kernel);
iron_status iron__opencl_kernel_find(iron__gpu_program *program, const char *name,
                                     iron__gpu_kernel **out, iron_error *err);
iron_status iron__opencl_kernel_facts(iron__gpu_device *device, const iron__gpu_kernel *kernel,
                                      uint32_t threads, size_t local_bytes, iron__gpu_facts *out,
                                      iron_error *err);
/* A fresh native kernel in place of the one there is; its arguments are unset. */
iron_status iron__opencl_kernel_renew(iron__opencl_device *device, iron__gpu_kernel *kernel,
                                      iron_error *err);
void iron__opencl_kernels_destroy(iron__gpu_program *program); /* all of them */

/* opencl_memory.c */
iron_status iron__opencl_buffer_create(iron__gpu_device *device, iron__gpu_memory memory,
                                       size_t bytes, iron__gpu_buffer **out, iron_error *err);
iron_status iron__opencl_buffer_wrap(iron__gpu_device *device, uintptr_t native, size_t bytes,
                                     iron__gpu_buffer **out, iron_error *err);
void iron__opencl_buffer_destroy(iron__gpu_buffer *buffer);
iron_status iron__opencl_host_begin(iron__gpu_queue *queue, iron__gpu_buffer *buffer,
                                    iron_error *err);
iron_status iron__opencl_host_end(iron__gpu_queue *queue, iron__gpu_buffer *buffer,
                                  iron_error *err);

/* opencl_queue.c */
iron__cl_queue *iron__opencl_queue_new(const iron__opencl_device *device, int32_t *code);
iron_status iron__opencl_queue_create(iron__gpu_device *device, iron__gpu_queue **out,
                                      iron_error *err);
iron_status iron__opencl_queue_wrap(iron__gpu_device *device, uintptr_t native,
                                    iron__gpu_queue **out, iron_error *err);
void iron__opencl_queue_destroy(iron__gpu_queue *queue);
iron_status iron__opencl_queue_wait(iron__gpu_queue *queue, iron_error *err);
/* Work that was just put into a queue begins without waiting for more. */
iron_status iron__opencl_queue_flush(iron__gpu_queue *queue, iron_error *err);

/* opencl_launch.c */
iron_status iron__opencl_launch(iron__gpu_queue *queue, const iron__gpu_launch *launch,
                                iron_error *err);

/* opencl_copy.c */
iron_status iron__opencl_clear(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t offset,
                               size_t bytes, iron_error *err);
iron_status iron__opencl_copy(iron__gpu_queue *queue, const iron__gpu_copy *copy, iron_error *err);
iron_status iron__opencl_prefetch(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t bytes,
                                  iron_error *err);

/* opencl_event.c */
iron_status iron__opencl_event_create(iron__gpu_device *device, iron__gpu_event **out,
                                      iron_error *err);
void iron__opencl_event_destroy(iron__gpu_event *event);
iron_status iron__opencl_event_record(iron__gpu_queue *queue, iron__gpu_event *event,
                                      iron_error *err);
iron_status iron__opencl_event_follow(iron__gpu_queue *queue, iron__gpu_event *event,
                                      iron_error *err);
iron_status iron__opencl_event_wait(iron__gpu_event *event, iron_error *err);
iron_status iron__opencl_event_elapsed(iron__gpu_event *from, iron__gpu_event *to, double *ms,
                                       iron_error *err);

#endif
