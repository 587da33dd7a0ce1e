/* SPDX-License-Identifier: MIT */
/*
 * gpu.c: the list of backends, and the calls of gpu.h: each goes through its backend's table unless
 * the device is marked by an earlier failure of its driver.
 *
 * The CUDA backend is part of every build, its kernels only of builds that had nvcc: a build
 * without them says so when it is probed.
 */
#include "gpu/gpu.h"

#include "core/fail.h"

#if IRON_WITH_CUDA
#include "gpu/cuda/cuda.h"
#endif
#if IRON_WITH_OPENCL
#include "gpu/opencl/opencl.h"
#endif

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* In the order in which --backend auto looks for a GPU. */
static const struct {
    const char *name;
    const iron__gpu_ops *ops;
    const char *absent; /* why not even probing makes sense; NULL: it does */
} backends[] = {
#if !IRON_WITH_CUDA
    {"cuda", NULL, "not part of this build"},
#elif !IRON_CUDA_KERNELS
    {"cuda", &iron__cuda_ops,
     "this build has no CUDA kernels: it was made without nvcc, or with IRON_CUDA=OFF"},
#else
    {"cuda", &iron__cuda_ops, NULL},
#endif
#if IRON_WITH_OPENCL
    {"opencl", &iron__opencl_ops, NULL},
#else
    {"opencl", NULL, "not part of this build"},
#endif
};

#define BACKEND_COUNT (sizeof backends / sizeof backends[0])

const char *iron__gpu_strategy_name(iron__gpu_strategy strategy) {
    static const char *const names[IRON_GPU_STRATEGIES] = {"pageable", "pinned",       "streams",
                                                           "uvm",      "uvm-prefetch", "zero-copy"};

    return strategy < IRON_GPU_STRATEGIES ? names[strategy] : "unknown";
}

iron__gpu_strategy iron__gpu_strategy_find(const char *name) {
    iron__gpu_strategy k = 0;

    while (k < IRON_GPU_STRATEGIES && strcmp(name, iron__gpu_strategy_name(k)) != 0)
        k++;
    return k;
}

size_t iron__gpu_backend_count(void) { return BACKEND_COUNT; }

const char *iron__gpu_backend_name(size_t backend) {
    return backend < BACKEND_COUNT ? backends[backend].name : NULL;
}

size_t iron__gpu_backend_find(const char *name) {
    size_t k = 0;

    while (k < BACKEND_COUNT && strcmp(backends[k].name, name) != 0)
        k++;
    return k;
}

iron_status iron__gpu_probe(size_t backend, size_t *count, iron_error *err) {
    *count = 0;
    IRON_FAIL_IF(backend >= BACKEND_COUNT, err, IRON_E_ARG, "GPU backend %zu does not exist",
                 backend);
    IRON_FAIL_IF(backends[backend].absent, err, IRON_E_UNSUPPORTED, "%s", backends[backend].absent);
    return backends[backend].ops->probe(count, err);
}

iron_status iron__gpu_describe(size_t backend, size_t index, iron__gpu_info *info,
                               iron_error *err) {
    size_t count;

    *info = (iron__gpu_info){.is_gpu = false};
    IRON_TRY(iron__gpu_probe(backend, &count, err));
    IRON_FAIL_IF(index >= count, err, IRON_E_ARG,
                 "device %zu does not exist; backend %s has %zu, counted from 0", index,
                 backends[backend].name, count);
    return backends[backend].ops->describe(index, info, err);
}

iron_status iron__gpu_device_open(size_t backend, size_t index, iron__gpu_device **out,
                                  iron_error *err) {
    iron__gpu_info info;

    *out = NULL;
    IRON_TRY(iron__gpu_describe(backend, index, &info, err));
    return backends[backend].ops->device_open(index, out, err);
}

void iron__gpu_device_close(iron__gpu_device *device) {
    if (device)
        device->ops->device_close(device);
}

/* A marked device answers with what marked it. */
static iron_status check(const iron__gpu_device *device, iron_error *err) {
    if (device->failure.status != IRON_OK && err)
        *err = device->failure;
    return device->failure.status;
}

iron_status iron__gpu_clocks_read(iron__gpu_device *device, iron__gpu_clocks *out,
                                  iron_error *err) {
    *out = (iron__gpu_clocks){.is_throttled = false};
    IRON_TRY(check(device, err));
    IRON_FAIL_IF(!device->ops->clocks, err, IRON_E_UNSUPPORTED, "%s does not tell of clocks",
                 device->ops->name);
    return device->ops->clocks(device, out, err);
}

iron_status iron__gpu_program_load(iron__gpu_device *device, const iron__gpu_image *image,
                                   iron__gpu_program **out, iron_error *err) {
    *out = NULL;
    IRON_TRY(check(device, err));
    return device->ops->program_load(device, image, out, err);
}

void iron__gpu_program_unload(iron__gpu_device *device, iron__gpu_program *program) {
    if (program)
        device->ops->program_unload(program);
}

iron_status iron__gpu_kernel_find(iron__gpu_device *device, iron__gpu_program *program,
                                  const char *name, iron__gpu_kernel **out, iron_error *err) {
    *out = NULL;
    IRON_TRY(check(device, err));
    return device->ops->kernel_find(program, name, out, err);
}

iron_status iron__gpu_constant_find(iron__gpu_device *device, iron__gpu_program *program,
                                    const char *name, size_t bytes, iron__gpu_buffer **out,
                                    iron_error *err) {
    *out = NULL;
    IRON_TRY(check(device, err));
    IRON_FAIL_IF(!device->ops->constant_find, err, IRON_E_UNSUPPORTED,
                 "%s: no constant memory here; use ordinary memory", device->ops->name);
    return device->ops->constant_find(program, name, bytes, out, err);
}

iron_status iron__gpu_kernel_facts(iron__gpu_device *device, const iron__gpu_kernel *kernel,
                                   uint32_t threads, size_t local_bytes, iron__gpu_facts *out,
                                   iron_error *err) {
    *out = (iron__gpu_facts){.registers = 0};
    IRON_TRY(check(device, err));
    if (!device->ops->kernel_facts)
        return IRON_OK;
    return device->ops->kernel_facts(device, kernel, threads, local_bytes, out, err);
}

iron_status iron__gpu_texture_create(const iron__gpu_buffer *buffer, uint64_t *handle,
                                     iron_error *err) {
    *handle = 0;
    IRON_TRY(check(buffer->device, err));
    IRON_FAIL_IF(!buffer->device->ops->texture_create || !buffer->device->info.has_textures, err,
                 IRON_E_UNSUPPORTED, "%s has no textures that kernels could be given",
                 buffer->device->info.name);
    return buffer->device->ops->texture_create(buffer, handle, err);
}

void iron__gpu_texture_destroy(iron__gpu_device *device, uint64_t handle) {
    if (handle)
        device->ops->texture_destroy(device, handle);
}

iron_status iron__gpu_keep(iron__gpu_device *device, uint64_t bytes, iron_error *err) {
    IRON_TRY(check(device, err));
    IRON_FAIL_IF(!device->ops->keep || !device->info.keep_bytes_max, err, IRON_E_UNSUPPORTED,
                 "%s cannot set a part of its cache aside", device->info.name);
    IRON_FAIL_IF(bytes > device->info.keep_bytes_max, err, IRON_E_ARG,
                 "%s can set %" PRIu64 " bytes of its cache aside, not %" PRIu64, device->info.name,
                 device->info.keep_bytes_max, bytes);
    IRON_TRY(device->ops->keep(device, bytes, err));
    device->kept_bytes = bytes;
    device->has_marks = device->has_marks && bytes > 0;
    return IRON_OK;
}

iron_status iron__gpu_buffer_create(iron__gpu_device *device, iron__gpu_memory memory, size_t bytes,
                                    iron__gpu_buffer **out, iron_error *err) {
    *out = NULL;
    IRON_TRY(check(device, err));
    return device->ops->buffer_create(device, memory, bytes, out, err);
}

iron_status iron__gpu_buffer_wrap(iron__gpu_device *device, uintptr_t native, size_t bytes,
                                  iron__gpu_buffer **out, iron_error *err) {
    *out = NULL;
    IRON_TRY(check(device, err));
    return device->ops->buffer_wrap(device, native, bytes, out, err);
}

void iron__gpu_buffer_destroy(iron__gpu_buffer *buffer) {
    if (buffer)
        buffer->device->ops->buffer_destroy(buffer);
}

iron_status iron__gpu_host_begin(iron__gpu_queue *queue, iron__gpu_buffer *buffer,
                                 iron_error *err) {
    const iron__gpu_ops *ops = queue->device->ops;

    IRON_TRY(check(queue->device, err));
    return ops->host_begin ? ops->host_begin(queue, buffer, err) : IRON_OK;
}

iron_status iron__gpu_host_end(iron__gpu_queue *queue, iron__gpu_buffer *buffer, iron_error *err) {
    const iron__gpu_ops *ops = queue->device->ops;

    IRON_TRY(check(queue->device, err));
    return ops->host_end ? ops->host_end(queue, buffer, err) : IRON_OK;
}

bool iron__gpu_is_pinned(iron__gpu_device *device, const void *memory, size_t bytes) {
    return device->failure.status == IRON_OK && device->ops->is_pinned &&
           device->ops->is_pinned(device, memory, bytes);
}

iron_status iron__gpu_queue_create(iron__gpu_device *device, iron__gpu_queue **out,
                                   iron_error *err) {
    *out = NULL;
    IRON_TRY(check(device, err));
    return device->ops->queue_create(device, out, err);
}

iron_status iron__gpu_queue_wrap(iron__gpu_device *device, uintptr_t native, iron__gpu_queue **out,
                                 iron_error *err) {
    *out = NULL;
    IRON_TRY(check(device, err));
    return device->ops->queue_wrap(device, native, out, err);
}

void iron__gpu_queue_destroy(iron__gpu_queue *queue) {
    if (queue)
        queue->device->ops->queue_destroy(queue);
}

iron_status iron__gpu_queue_wait(iron__gpu_queue *queue, iron_error *err) {
    IRON_TRY(check(queue->device, err));
    return queue->device->ops->queue_wait(queue, err);
}

iron_status iron__gpu_clear(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t offset,
                            size_t bytes, iron_error *err) {
    IRON_TRY(check(queue->device, err));
    return queue->device->ops->clear(queue, buffer, offset, bytes, err);
}

iron_status iron__gpu_clear_now(iron__gpu_buffer *buffer, size_t bytes, iron_error *err) {
    iron__gpu_queue *queue;
    iron_status status;

    IRON_TRY(iron__gpu_queue_create(buffer->device, &queue, err));
    status = iron__gpu_clear(queue, buffer, 0, bytes, err);
    if (status == IRON_OK)
        status = iron__gpu_queue_wait(queue, err);
    iron__gpu_queue_destroy(queue);
    return status;
}

iron_status iron__gpu_copy_bytes(iron__gpu_queue *queue, const iron__gpu_copy *copy,
                                 iron_error *err) {
    IRON_TRY(check(queue->device, err));
    return queue->device->ops->copy(queue, copy, err);
}

iron_status iron__gpu_prefetch(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t bytes,
                               iron_error *err) {
    const iron__gpu_ops *ops = queue->device->ops;

    IRON_TRY(check(queue->device, err));
    return ops->prefetch ? ops->prefetch(queue, buffer, bytes, err) : IRON_OK;
}

/* Of a kernel's name that a sighting holds; two that begin with the same are one. */
#define NAME_BYTES (sizeof((iron__gpu_sighting *)0)->kernel - 1)

/* A kernel was launched while somebody watches. What cannot be told of it is no failure. */
static void see(iron__gpu_device *device, const iron__gpu_launch *launch) {
    iron__gpu_watch *w = device->watch;
    const char *name = device->ops->kernel_name(launch->kernel);
    uint64_t groups = (uint64_t)launch->groups[0] * (launch->groups[1] ? launch->groups[1] : 1);
    uint32_t threads = launch->threads[0] * (launch->threads[1] ? launch->threads[1] : 1);
    size_t at = 0;
    iron_error why;

    while (at < w->count && strncmp(w->seen[at].kernel, name, NAME_BYTES) != 0)
        at++;
    if (at == IRON_GPU_SIGHTINGS || (at < w->count && w->seen[at].groups >= groups))
        return;
    w->count += at == w->count;
    snprintf(w->seen[at].kernel, sizeof w->seen[at].kernel, "%.*s", (int)NAME_BYTES, name);
    w->seen[at].groups = groups;
    w->seen[at].threads = threads;
    (void)iron__gpu_kernel_facts(device, launch->kernel, threads, launch->local_bytes,
                                 &w->seen[at].facts, &why);
}

iron_status iron__gpu_run(iron__gpu_queue *queue, const iron__gpu_launch *launch, iron_error *err) {
    IRON_TRY(check(queue->device, err));
    IRON_TRY(queue->device->ops->launch(queue, launch, err));
    if (queue->device->watch)
        see(queue->device, launch);
    return IRON_OK;
}

iron_status iron__gpu_event_create(iron__gpu_device *device, iron__gpu_event **out,
                                   iron_error *err) {
    *out = NULL;
    IRON_TRY(check(device, err));
    return device->ops->event_create(device, out, err);
}

void iron__gpu_event_destroy(iron__gpu_device *device, iron__gpu_event *event) {
    if (event)
        device->ops->event_destroy(event);
}

iron_status iron__gpu_event_record(iron__gpu_queue *queue, iron__gpu_event *event,
                                   iron_error *err) {
    IRON_TRY(check(queue->device, err));
    return queue->device->ops->event_record(queue, event, err);
}

iron_status iron__gpu_event_follow(iron__gpu_queue *queue, iron__gpu_event *event,
                                   iron_error *err) {
    IRON_TRY(check(queue->device, err));
    return queue->device->ops->event_follow(queue, event, err);
}

iron_status iron__gpu_event_wait(iron__gpu_device *device, iron__gpu_event *event,
                                 iron_error *err) {
    IRON_TRY(check(device, err));
    return device->ops->event_wait(event, err);
}

iron_status iron__gpu_event_elapsed(iron__gpu_device *device, iron__gpu_event *from,
                                    iron__gpu_event *to, double *ms, iron_error *err) {
    *ms = 0;
    IRON_TRY(check(device, err));
    return device->ops->event_elapsed(from, to, ms, err);
}

iron_status iron__gpu_graph_begin(iron__gpu_queue *queue, iron_error *err) {
    IRON_TRY(check(queue->device, err));
    IRON_FAIL_IF(!queue->device->info.can_graph, err, IRON_E_UNSUPPORTED,
                 "%s cannot record and replay work", queue->device->info.name);
    return queue->device->ops->graph_begin(queue, err);
}

iron_status iron__gpu_graph_end(iron__gpu_queue *queue, iron__gpu_graph **out, iron_error *err) {
    *out = NULL;
    IRON_TRY(check(queue->device, err));
    return queue->device->ops->graph_end(queue, out, err);
}

iron_status iron__gpu_graph_replay(iron__gpu_graph *graph, iron__gpu_queue *queue,
                                   iron_error *err) {
    IRON_TRY(check(queue->device, err));
    return queue->device->ops->graph_replay(graph, queue, err);
}

void iron__gpu_graph_destroy(iron__gpu_device *device, iron__gpu_graph *graph) {
    if (graph)
        device->ops->graph_destroy(graph);
}
