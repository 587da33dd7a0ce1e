/* SPDX-License-Identifier: MIT */
/*
 * cuda_backend.h: what the files of the CUDA backend share: the device behind iron__gpu_device, the
 * way every driver call is made, and the entries of the table that cuda_device.c puts together.
 *
 * Every entry works in the device's primary context, which a process shares with CUDA's runtime, so
 * that pointers and streams of other libraries can be wrapped. It is pushed on entering and popped
 * on leaving: the caller's current context is never disturbed. The usual shape is
 *
 *     IRON_TRY(iron__cuda_enter(device, err));
 *     return iron__cuda_leave(device, IRON_CU(device, err, cuStreamSynchronize, stream), err);
 *
 * Objects are made in two steps, the host's part and then the driver's; the destroyers take what
 * is half made, and so they are the way back from every failure.
 */
#ifndef IRON_GPU_CUDA_BACKEND_H
#define IRON_GPU_CUDA_BACKEND_H

#include "gpu/cuda/cuda_driver.h"
#include "gpu/gpu.h"

typedef struct iron__cuda_device {
    iron__gpu_device base; /* first: a pointer to one is a pointer to the other */
    const iron__cuda_driver *driver;
    iron__cu_device ordinal;
    iron__cu_context *context;
    struct iron__nvml_device *watched; /* the card as NVML knows it; NULL until it is asked for */
    size_t kept_bytes;                 /* of the cache that are set aside now, by this device */
    size_t window_bytes_max;           /* and of what a launch may want to be kept in them */
} iron__cuda_device;

struct iron__gpu_kernel {
    iron__gpu_kernel *next; /* of its program */
    iron__cu_function *function;
    size_t dynamic_bytes; /* of local memory that launches may ask for so far */
    char name[64];
};

static inline iron__cuda_device *iron__cuda_device_of(iron__gpu_device *device) {
    return (iron__cuda_device *)device;
}

static inline iron__cu_stream *iron__cuda_stream_of(const iron__gpu_queue *queue) {
    return (iron__cu_stream *)queue->native;
}

/* Where a buffer's byte is on the device. */
static inline iron__cu_pointer iron__cuda_address_of(const iron__gpu_buffer *buffer,
                                                     size_t offset) {
    return buffer->native + buffer->lead_bytes + offset;
}

/* IRON_OK for success. Otherwise err says "cuda: FUNCTION failed: NAME (text); what to do", and an
 * error that outlasts the call marks the device. */
iron_status iron__cuda_check(iron__cuda_device *device, iron_error *err, const char *function,
                             iron__cu_result code);

/* The same before there is a device to mark. */
iron_status iron__cuda_report(const iron__cuda_driver *driver, iron_error *err,
                              const char *function, iron__cu_result code);

/* Is it an error of a card that the embedded code is not made for? */
bool iron__cuda_lacks_code(iron__cu_result code);

/* A call of the driver as a status. */
#define IRON_CU(device, err, function, ...)                                                        \
    iron__cuda_check((device), (err), #function, (device)->driver->function(__VA_ARGS__))

iron_status iron__cuda_enter(iron__cuda_device *device, iron_error *err);
/* Returns status, or why leaving failed if status was IRON_OK. */
iron_status iron__cuda_leave(iron__cuda_device *device, iron_status status, iron_error *err);

/* Gives a handle back. It is tried whatever happens: nobody is there to be told, the device is. */
#define IRON_CU_DROP(device, function, handle)                                                     \
    do {                                                                                           \
        iron_status entered_ = iron__cuda_enter((device), NULL);                                   \
        IRON_CU(device, NULL, function, handle);                                                   \
        if (entered_ == IRON_OK)                                                                   \
            iron__cuda_leave((device), IRON_OK, NULL);                                             \
    } while (0)

/* cuda_info.c */
iron_status iron__cuda_describe(size_t index, iron__gpu_info *info, iron_error *err);
/* The kernel module's version out of the first line of /proc/driver/nvidia/version; "" if none. */
void iron__cuda_module_version(const char *line, char *version, size_t size);

/* cuda_nvml.c */
iron_status iron__cuda_clocks(iron__gpu_device *device, iron__gpu_clocks *out, iron_error *err);

/* cuda_program.c */
iron_status iron__cuda_program_load(iron__gpu_device *device, const iron__gpu_image *image,
                                    iron__gpu_program **out, iron_error *err);
void iron__cuda_program_unload(iron__gpu_program *program);
const char *iron__cuda_kernel_name(const iron__gpu_kernel *kernel);
iron_status iron__cuda_kernel_find(iron__gpu_program *program, const char *name,
                                   iron__gpu_kernel **out, iron_error *err);
iron_status iron__cuda_constant_find(iron__gpu_program *program, const char *name, size_t bytes,
                                     iron__gpu_buffer **out, iron_error *err);

/* cuda_facts.c */
iron_status iron__cuda_kernel_facts(iron__gpu_device *device, const iron__gpu_kernel *kernel,
                                    uint32_t threads, size_t local_bytes, iron__gpu_facts *out,
                                    iron_error *err);
/* The next two within the context, and without a mark. Launches of the kernel may have so much
 * dynamic local memory, if that succeeds. */
iron__cu_result iron__cuda_allow_local(const iron__cuda_device *device, iron__gpu_kernel *kernel,
                                       size_t bytes);
/* What a kernel has of local memory beside that; false: the driver does not tell. */
bool iron__cuda_static_local(const iron__cuda_device *device, const iron__gpu_kernel *kernel,
                             uint32_t *bytes);

/* cuda_texture.c */
iron_status iron__cuda_texture_create(const iron__gpu_buffer *buffer, uint64_t *handle,
                                      iron_error *err);
void iron__cuda_texture_destroy(iron__gpu_device *device, uint64_t handle);

/* cuda_keep.c */
iron_status iron__cuda_keep(iron__gpu_device *device, uint64_t bytes, iron_error *err);
/* What a launch wants to be kept, as the driver takes it; 0 bytes: nothing. */
iron_status iron__cuda_window(const iron__cuda_device *device, const iron__gpu_launch *launch,
                              iron__cu_window *out, iron_error *err);

/* cuda_memory.c */
/* Zeros but for these; NULL with err filled when memory is out. */
iron__gpu_buffer *iron__cuda_buffer_new(iron__gpu_device *device, iron__gpu_memory memory,
                                        size_t bytes, iron_error *err);
iron_status iron__cuda_buffer_create(iron__gpu_device *device, iron__gpu_memory memory,
                                     size_t bytes, iron__gpu_buffer **out, iron_error *err);
iron_status iron__cuda_buffer_wrap(iron__gpu_device *device, uintptr_t native, size_t bytes,
                                   iron__gpu_buffer **out, iron_error *err);
void iron__cuda_buffer_destroy(iron__gpu_buffer *buffer);
iron_status iron__cuda_host_begin(iron__gpu_queue *queue, iron__gpu_buffer *buffer,
                                  iron_error *err);
bool iron__cuda_is_pinned(iron__gpu_device *device, const void *memory, size_t bytes);

/* cuda_queue.c */
iron_status iron__cuda_queue_create(iron__gpu_device *device, iron__gpu_queue **out,
                                    iron_error *err);
iron_status iron__cuda_queue_wrap(iron__gpu_device *device, uintptr_t native, iron__gpu_queue **out,
                                  iron_error *err);
void iron__cuda_queue_destroy(iron__gpu_queue *queue);
iron_status iron__cuda_queue_wait(iron__gpu_queue *queue, iron_error *err);
iron_status iron__cuda_event_create(iron__gpu_device *device, iron__gpu_event **out,
                                    iron_error *err);
void iron__cuda_event_destroy(iron__gpu_event *event);
iron_status iron__cuda_event_record(iron__gpu_queue *queue, iron__gpu_event *event,
                                    iron_error *err);
iron_status iron__cuda_event_follow(iron__gpu_queue *queue, iron__gpu_event *event,
                                    iron_error *err);
iron_status iron__cuda_event_wait(iron__gpu_event *event, iron_error *err);
iron_status iron__cuda_event_elapsed(iron__gpu_event *from, iron__gpu_event *to, double *ms,
                                     iron_error *err);

/* cuda_work.c */
iron_status iron__cuda_clear(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t offset,
                             size_t bytes, iron_error *err);
iron_status iron__cuda_copy(iron__gpu_queue *queue, const iron__gpu_copy *copy, iron_error *err);
iron_status iron__cuda_prefetch(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t bytes,
                                iron_error *err);

/* cuda_launch.c */
iron_status iron__cuda_launch(iron__gpu_queue *queue, const iron__gpu_launch *launch,
                              iron_error *err);

/* cuda_graph.c */
iron_status iron__cuda_graph_begin(iron__gpu_queue *queue, iron_error *err);
iron_status iron__cuda_graph_end(iron__gpu_queue *queue, iron__gpu_graph **out, iron_error *err);
iron_status iron__cuda_graph_replay(iron__gpu_graph *graph, iron__gpu_queue *queue,
                                    iron_error *err);
void iron__cuda_graph_destroy(iron__gpu_graph *graph);

#endif
