/* SPDX-License-Identifier: MIT */
/*
 * gpu.c: the list of backends, the choice of one by name, and the functions of gpu.h, which check
 * their arguments and call the backend's table unless an earlier driver error marked the device as
 * failed.
 *
 * The CUDA backend is part of every build, but its kernels only of builds with nvcc. Without them,
 * probing the backend returns that reason.
 */
#include "gpu/gpu.h"

#include "core/fail.h"
#include "core/memory.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the order in which --backend auto looks for a GPU. */
static const struct {
    const char *name;
    const iron__gpu_ops *ops;
    const char *absent; /* why the backend cannot be probed; NULL: it can */
} backends[] = {
#if !IRON_WITH_CUDA
    {"cuda", NULL, "not part of this build"},
#elif !IRON_CUDA_KERNELS
    {"cuda", &iron__cuda_ops,
     "this build has no CUDA kernels: it was built without nvcc or with IRON_CUDA=OFF"},
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

bool iron__gpu_is_auto(const char *name) { return !name || strcmp(name, "auto") == 0; }

iron_status iron__gpu_devices_parse(const char *text, uint32_t device, iron__gpu_devices *out,
                                    iron_error *err) {
    const char *at = text;

    *out = (iron__gpu_devices){.backend = BACKEND_COUNT, .count = 1, .index = {device}};
    if (!text)
        return IRON_OK;
    out->count = 0;
    out->is_all = strcmp(text, "all") == 0;
    while (!out->is_all) {
        char *end;
        unsigned long number = strtoul(at, &end, 10);

        IRON_FAIL_IF(!isdigit((unsigned char)*at) || number > UINT32_MAX ||
                         (*end != ',' && *end != '\0'),
                     err, IRON_E_ARG,
                     "device '%.40s' must be 0 to 4294967295, several such numbers separated by "
                     "commas, or all",
                     text);
        IRON_FAIL_IF(out->count == IRON_GPU_DEVICES_MAX, err, IRON_E_ARG,
                     "more than %u devices; use at most so many", IRON_GPU_DEVICES_MAX);
        out->index[out->count++] = (uint32_t)number;
        if (*end == '\0')
            break;
        at = end + 1;
    }
    return IRON_OK;
}

void iron__gpu_devices_print(const iron__gpu_devices *devices, char text[IRON_GPU_DEVICES_TEXT]) {
    size_t used = 0;

    for (uint32_t k = 0; k < devices->count && used < IRON_GPU_DEVICES_TEXT; k++)
        used += (size_t)snprintf(text + used, IRON_GPU_DEVICES_TEXT - used, "%s%u", k ? "," : "",
                                 devices->index[k]);
}

static bool is_gpu(size_t backend, size_t index) {
    iron__gpu_info info;

    return iron__gpu_describe(backend, index, &info, NULL) == IRON_OK && info.is_gpu;
}

/* Sets the backend and, if all of its devices are wanted, those: only GPUs, or any. */
static void set_devices(size_t backend, size_t count, bool only_gpus, iron__gpu_devices *d) {
    d->backend = backend;
    if (!d->is_all)
        return;
    d->count = 0;
    for (uint32_t k = 0; k < count && d->count < IRON_GPU_DEVICES_MAX; k++)
        if (!only_gpus || is_gpu(backend, k))
            d->index[d->count++] = k;
}

/* The backend is usable and has these devices. */
static iron_status resolve_devices(size_t backend, iron__gpu_devices *d, iron_error *err) {
    const char *name = iron__gpu_backend_name(backend);
    iron_error why = {0};
    size_t devices;

    if (iron__gpu_probe(backend, &devices, &why) != IRON_OK)
        IRON_FAIL(err, IRON_E_UNSUPPORTED, "backend %s is absent: %.160s; use --backend cpu", name,
                  why.text);
    set_devices(backend, devices, false, d);
    for (uint32_t k = 0; k < d->count; k++)
        IRON_FAIL_IF(d->index[k] >= devices, err, IRON_E_ARG,
                     "device %u does not exist; backend %s has %zu, counted from 0", d->index[k],
                     name, devices);
    return IRON_OK;
}

bool iron__gpu_may_exist(void) {
    static const char *const files[] = {"/dev/nvidiactl", "/dev/nvhost-gpu", "/dev/dri",
                                        "/dev/kfd",       "/dev/dxg",        "/dev/mali0",
                                        "/dev/kgsl-3d0"};
    const char *cuda = secure_getenv("IRON_CUDA_LIBRARY"), *opencl;

    opencl = secure_getenv("IRON_OPENCL_LIBRARY");
    if ((cuda && cuda[0]) || (opencl && opencl[0]))
        return true; /* a driver of the user's choice, which may need no file */
    for (size_t k = 0; k < sizeof files / sizeof files[0]; k++)
        if (access(files[k], F_OK) == 0)
            return true;
    return false;
}

bool iron__gpu_is_for_auto(size_t backend, iron__gpu_devices *d) {
    size_t devices;

    if (!iron__gpu_may_exist() || iron__gpu_probe(backend, &devices, NULL) != IRON_OK)
        return false;
    set_devices(backend, devices, true, d);
    for (uint32_t k = 0; k < d->count; k++)
        if (!is_gpu(backend, d->index[k]))
            return false;
    return d->count > 0;
}

/* The CPU is one device; all of its devices are that one. */
static iron_status choose_cpu(iron__gpu_devices *d, const char *rest, iron_error *err) {
    d->backend = BACKEND_COUNT;
    if (d->is_all)
        *d = (iron__gpu_devices){.backend = BACKEND_COUNT, .is_all = true, .count = 1};
    for (uint32_t k = 0; k < d->count; k++)
        IRON_FAIL_IF(d->index[k] != 0, err, IRON_E_ARG, "device %u does not exist%s", d->index[k],
                     rest);
    IRON_FAIL_IF(d->count > 1, err, IRON_E_ARG,
                 "%u devices; the CPU is one, and uses all processors by itself", d->count);
    return IRON_OK;
}

iron_status iron__gpu_choose(const char *name, iron__gpu_devices *devices, iron_error *err) {
    if (name && strcmp(name, "cpu") == 0)
        return choose_cpu(devices, "; backend cpu has only device 0", err);
    if (!iron__gpu_is_auto(name)) {
        size_t backend = iron__gpu_backend_find(name);

        IRON_FAIL_IF(backend == BACKEND_COUNT, err, IRON_E_ARG,
                     "unknown backend '%.40s'; use auto, cpu, cuda or opencl", name);
        return resolve_devices(backend, devices, err);
    }
    for (size_t k = 0; k < BACKEND_COUNT; k++)
        if (iron__gpu_is_for_auto(k, devices))
            return IRON_OK;
    return choose_cpu(devices, ": no GPU has that number", err);
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

iron_status iron__gpu_clocks_read(iron__gpu_device *device, iron__gpu_clocks *out,
                                  iron_error *err) {
    *out = (iron__gpu_clocks){.is_throttled = false};
    IRON_TRY(iron__gpu_device_check(device, err));
    IRON_FAIL_IF(!device->ops->clocks, err, IRON_E_UNSUPPORTED, "%s does not report clocks",
                 device->ops->name);
    return device->ops->clocks(device, out, err);
}

/* Both surround every call of the backend on an open device; enter fails if the device has. */
static iron_status enter(iron__gpu_device *device, iron_error *err) {
    IRON_TRY(iron__gpu_device_check(device, err));
    return device->ops->enter ? device->ops->enter(device, err) : IRON_OK;
}

static iron_status leave(iron__gpu_device *device, iron_status status, iron_error *err) {
    return device->ops->leave ? device->ops->leave(device, status, err) : status;
}

/* Calls the backend and returns what came of it. */
#define RETURN_CALL(device, err, table, function, ...)                                             \
    do {                                                                                           \
        IRON_TRY(enter((device), (err)));                                                          \
        return leave((device), (device)->ops->table->function(__VA_ARGS__, (err)), (err));         \
    } while (0)

/* Calls the backend to make the object *out; `destroy` is for one that it could not make. */
#define RETURN_OBJECT(device, err, out, destroy, call)                                             \
    do {                                                                                           \
        iron_status made_ = leave((device), (call), (err));                                        \
        if (made_ != IRON_OK) {                                                                    \
            (destroy);                                                                             \
            *(out) = 0;                                                                            \
        }                                                                                          \
        return made_;                                                                              \
    } while (0)

iron_status iron__gpu_cache_reserve(iron__gpu_device *device, uint64_t bytes, iron_error *err) {
    IRON_TRY(iron__gpu_device_check(device, err));
    IRON_FAIL_IF(!device->ops->cache_reserve || !device->info.persisting_bytes_max, err,
                 IRON_E_UNSUPPORTED, "%s cannot reserve part of its cache", device->info.name);
    IRON_FAIL_IF(bytes > device->info.persisting_bytes_max, err, IRON_E_ARG,
                 "%s can reserve at most %" PRIu64 " bytes of its cache, not %" PRIu64,
                 device->info.name, device->info.persisting_bytes_max, bytes);
    IRON_TRY(enter(device, err));
    IRON_TRY(leave(device, device->ops->cache_reserve(device, bytes, err), err));
    device->persisting_bytes = bytes;
    device->has_persisting_lines = device->has_persisting_lines && bytes > 0;
    return IRON_OK;
}

static void free_object(void *object) { iron__release(iron__allocator_default(), object); }

/* Allocates zeroed memory for an object, to which the pointer at `to` points then, and enters the
 * device. */
static iron_status new_object(iron__gpu_device *device, size_t bytes, const char *what, void *to,
                              iron_error *err) {
    iron__array *out = to;
    iron_status status;

    *out = NULL;
    IRON_TRY(iron__gpu_device_check(device, err));
    *out = iron__allocate(iron__allocator_default(), 1, bytes, what, err);
    if (!*out)
        return IRON_E_NOMEM;
    status = enter(device, err);
    if (status != IRON_OK) {
        free_object(*out);
        *out = NULL;
    }
    return status;
}

iron_status iron__gpu_program_load(iron__gpu_device *device, const iron__gpu_image *image,
                                   iron__gpu_program **out, iron_error *err) {
    IRON_TRY(new_object(device, sizeof **out, "a program", out, err));
    **out = (iron__gpu_program){.device = device, .name = image->name};
    RETURN_OBJECT(device, err, out, iron__gpu_program_unload(device, *out),
                  device->ops->program->load(*out, image, err));
}

static void release_kernel(iron__gpu_program *program, iron__gpu_kernel *kernel) {
    const iron__gpu_program_ops *ops = program->device->ops->program;

    if (ops->kernel_release)
        ops->kernel_release(program, kernel);
    free_object(kernel);
}

void iron__gpu_program_unload(iron__gpu_device *device, iron__gpu_program *program) {
    if (!program)
        return;
    while (program->kernels) {
        iron__gpu_kernel *kernel = program->kernels;

        program->kernels = kernel->next;
        release_kernel(program, kernel);
    }
    if (program->native)
        device->ops->program->unload(program);
    free_object(program);
}

/* Looking up a name twice returns the same kernel. */
iron_status iron__gpu_kernel_find(iron__gpu_device *device, iron__gpu_program *program,
                                  const char *name, iron__gpu_kernel **out, iron_error *err) {
    size_t bytes = device->ops->program->kernel_bytes, name_bytes = strlen(name) + 1;
    iron__gpu_kernel *kernel = program->kernels;
    iron_status status;

    *out = NULL;
    IRON_TRY(iron__gpu_device_check(device, err));
    while (kernel && strcmp(kernel->name, name) != 0)
        kernel = kernel->next;
    *out = kernel;
    if (kernel)
        return IRON_OK;
    IRON_TRY(new_object(device, bytes + name_bytes, "a kernel", &kernel, err));
    kernel->name = memcpy((char *)kernel + bytes, name, name_bytes);
    status = leave(device, device->ops->program->kernel_find(program, kernel, err), err);
    if (status != IRON_OK) {
        release_kernel(program, kernel);
        return status;
    }
    kernel->next = program->kernels;
    program->kernels = kernel;
    *out = kernel;
    return IRON_OK;
}

iron_status iron__gpu_kernel_resources(iron__gpu_device *device, const iron__gpu_kernel *kernel,
                                       uint32_t threads, size_t local_bytes,
                                       iron__gpu_resources *out, iron_error *err) {
    *out = (iron__gpu_resources){.registers = 0};
    IRON_TRY(iron__gpu_device_check(device, err));
    if (device->ops->program->kernel_resources)
        device->ops->program->kernel_resources(device, kernel, threads, local_bytes, out);
    return IRON_OK;
}

/* Length of a kernel name in a record. Kernels with the same first NAME_BYTES share a record. */
#define NAME_BYTES (sizeof((iron__gpu_launch_record *)0)->kernel - 1)

/* Unknown resources are logged as 0. */
static void log_launch(iron__gpu_device *device, const iron__gpu_launch *launch) {
    iron__gpu_launch_log *log = device->launch_log;
    const char *name = launch->kernel->name;
    uint64_t groups = (uint64_t)launch->groups[0] * launch->groups[1];
    uint32_t threads = launch->threads[0] * launch->threads[1];
    size_t at = 0;

    while (at < log->count && strncmp(log->seen[at].kernel, name, NAME_BYTES) != 0)
        at++;
    if (at == IRON_GPU_LAUNCH_RECORDS || (at < log->count && log->seen[at].groups >= groups))
        return;
    log->count += at == log->count;
    snprintf(log->seen[at].kernel, sizeof log->seen[at].kernel, "%.*s", (int)NAME_BYTES, name);
    log->seen[at].groups = groups;
    log->seen[at].threads = threads;
    (void)iron__gpu_kernel_resources(device, launch->kernel, threads, launch->local_bytes,
                                     &log->seen[at].resources, NULL);
}

static iron_status check_launch(const iron__gpu_device *device, const iron__gpu_launch *l,
                                iron_error *err) {
    const char *backend = device->ops->name, *kernel = l->kernel->name;
    uint64_t threads = (uint64_t)l->threads[0] * l->threads[1];

    IRON_FAIL_IF(l->groups[0] == 0 || l->groups[0] > INT32_MAX || l->groups[1] > UINT16_MAX, err,
                 IRON_E_ARG, "%s: kernel '%s' in %u x %u groups; use 1 to 2^31-1 x 1 to 65535",
                 backend, kernel, l->groups[0], l->groups[1]);
    IRON_FAIL_IF(threads == 0 || threads > device->info.group_threads_max, err, IRON_E_ARG,
                 "%s: kernel '%s' with %" PRIu64 " threads per group; use 1 to %u", backend, kernel,
                 threads, device->info.group_threads_max);
    IRON_FAIL_IF(l->arg_count > IRON_GPU_ARGS_MAX, err, IRON_E_ARG,
                 "%s: kernel '%s' with %zu arguments; the maximum is %u", backend, kernel,
                 l->arg_count, IRON_GPU_ARGS_MAX);
    return IRON_OK;
}

iron_status iron__gpu_run(iron__gpu_queue *queue, const iron__gpu_launch *launch, iron_error *err) {
    iron__gpu_device *device = queue->device;
    iron__gpu_launch l = *launch;

    l.groups[1] += l.groups[1] == 0;
    l.threads[1] += l.threads[1] == 0;
    IRON_TRY(iron__gpu_device_check(device, err));
    IRON_TRY(check_launch(device, &l, err));
    IRON_TRY(enter(device, err));
    IRON_TRY(leave(device, device->ops->program->launch(queue, &l, err), err));
    if (device->launch_log)
        log_launch(device, &l);
    return IRON_OK;
}

static iron_status new_buffer(iron__gpu_device *device, iron__gpu_memory memory, size_t bytes,
                              iron__gpu_buffer **out, iron_error *err) {
    IRON_TRY(new_object(device, sizeof **out, "a buffer", out, err));
    **out = (iron__gpu_buffer){.device = device, .memory = memory, .bytes = bytes};
    return IRON_OK;
}

iron_status iron__gpu_buffer_create(iron__gpu_device *device, iron__gpu_memory memory, size_t bytes,
                                    iron__gpu_buffer **out, iron_error *err) {
    *out = NULL;
    IRON_TRY(iron__gpu_device_check(device, err));
    IRON_FAIL_IF(bytes == 0, err, IRON_E_ARG,
                 "%s: a buffer of 0 bytes was requested; request at least 1", device->ops->name);
    IRON_TRY(new_buffer(device, memory, bytes, out, err));
    RETURN_OBJECT(device, err, out, iron__gpu_buffer_destroy(*out),
                  device->ops->memory->buffer_create(*out, err));
}

iron_status iron__gpu_buffer_wrap(iron__gpu_device *device, uintptr_t native, size_t bytes,
                                  iron__gpu_buffer **out, iron_error *err) {
    *out = NULL;
    IRON_TRY(iron__gpu_device_check(device, err));
    IRON_FAIL_IF(native == 0, err, IRON_E_ARG, "%s: the buffer is 0; pass device memory",
                 device->ops->name);
    IRON_FAIL_IF(bytes == 0, err, IRON_E_ARG, "%s: a buffer of 0 bytes; pass at least 1",
                 device->ops->name);
    IRON_TRY(new_buffer(device, IRON_GPU_MEMORY_DEVICE, bytes, out, err));
    (*out)->is_borrowed = true;
    RETURN_OBJECT(device, err, out, iron__gpu_buffer_destroy(*out),
                  device->ops->memory->buffer_wrap(*out, native, err));
}

iron_status iron__gpu_constant_find(iron__gpu_device *device, iron__gpu_program *program,
                                    const char *name, size_t bytes, iron__gpu_buffer **out,
                                    iron_error *err) {
    IRON_TRY(new_buffer(device, IRON_GPU_MEMORY_DEVICE, bytes, out, err));
    RETURN_OBJECT(device, err, out, iron__gpu_buffer_destroy(*out),
                  device->ops->memory->constant_find(program, name, *out, err));
}

void iron__gpu_buffer_destroy(iron__gpu_buffer *buffer) {
    if (buffer)
        buffer->device->ops->memory->buffer_destroy(buffer);
    free_object(buffer);
}

iron_status iron__gpu_host_begin(iron__gpu_queue *queue, iron__gpu_buffer *buffer,
                                 iron_error *err) {
    RETURN_CALL(queue->device, err, memory, host_begin, queue, buffer);
}

iron_status iron__gpu_host_end(iron__gpu_queue *queue, iron__gpu_buffer *buffer, iron_error *err) {
    const iron__gpu_ops *ops = queue->device->ops;

    IRON_TRY(iron__gpu_device_check(queue->device, err));
    return ops->memory->host_end ? ops->memory->host_end(queue, buffer, err) : IRON_OK;
}

bool iron__gpu_is_pinned(iron__gpu_device *device, const void *memory, size_t bytes) {
    bool result;

    if (bytes == 0 || !device->ops->memory->is_pinned || enter(device, NULL) != IRON_OK)
        return false;
    result = device->ops->memory->is_pinned(device, memory, bytes);
    leave(device, IRON_OK, NULL);
    return result;
}

iron_status iron__gpu_texture_create(const iron__gpu_buffer *buffer, uint64_t *handle,
                                     iron_error *err) {
    iron__gpu_device *device = buffer->device;

    *handle = 0;
    IRON_TRY(iron__gpu_device_check(device, err));
    IRON_FAIL_IF(!device->ops->memory->texture_create || !device->info.has_textures, err,
                 IRON_E_UNSUPPORTED, "%s does not support textures", device->info.name);
    IRON_TRY(enter(device, err));
    RETURN_OBJECT(device, err, handle, iron__gpu_texture_destroy(device, *handle),
                  device->ops->memory->texture_create(buffer, handle, err));
}

void iron__gpu_texture_destroy(iron__gpu_device *device, uint64_t handle) {
    if (handle)
        device->ops->memory->texture_destroy(device, handle);
}

static iron_status new_queue(iron__gpu_device *device, iron__gpu_queue **out, iron_error *err) {
    IRON_TRY(new_object(device, sizeof **out, "a queue", out, err));
    (*out)->device = device;
    return IRON_OK;
}

iron_status iron__gpu_queue_create(iron__gpu_device *device, iron__gpu_queue **out,
                                   iron_error *err) {
    IRON_TRY(new_queue(device, out, err));
    RETURN_OBJECT(device, err, out, iron__gpu_queue_destroy(*out),
                  device->ops->queue->create(*out, err));
}

iron_status iron__gpu_queue_wrap(iron__gpu_device *device, uintptr_t native, iron__gpu_queue **out,
                                 iron_error *err) {
    const iron__gpu_queue_ops *ops = device->ops->queue;
    iron_status status;

    IRON_TRY(new_queue(device, out, err));
    (*out)->is_borrowed = true;
    status = ops->wrap ? ops->wrap(device, native, err) : IRON_OK;
    if (status == IRON_OK)
        (*out)->native = native;
    RETURN_OBJECT(device, err, out, iron__gpu_queue_destroy(*out), status);
}

void iron__gpu_queue_destroy(iron__gpu_queue *queue) {
    if (queue && queue->native)
        queue->device->ops->queue->destroy(queue);
    free_object(queue);
}

iron_status iron__gpu_queue_wait(iron__gpu_queue *queue, iron_error *err) {
    RETURN_CALL(queue->device, err, queue, wait, queue);
}

iron_status iron__gpu_queue_wait_event(iron__gpu_queue *queue, iron__gpu_event *event,
                                       iron_error *err) {
    RETURN_CALL(queue->device, err, queue, wait_event, queue, event);
}

static iron_status check_range(const iron__gpu_buffer *buffer, size_t offset, size_t bytes,
                               const char *what, iron_error *err) {
    IRON_FAIL_IF(offset > buffer->bytes || bytes > buffer->bytes - offset, err, IRON_E_ARG,
                 "%s: %s of %zu bytes at %zu exceeds a buffer of %zu bytes",
                 buffer->device->ops->name, what, bytes, offset, buffer->bytes);
    return IRON_OK;
}

iron_status iron__gpu_clear(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t offset,
                            size_t bytes, iron_error *err) {
    iron__gpu_device *device = queue->device;

    IRON_TRY(iron__gpu_device_check(device, err));
    IRON_FAIL_IF(offset % 4 != 0 || bytes % 4 != 0, err, IRON_E_ARG,
                 "%s: clearing %zu bytes at %zu: both must be multiples of 4", device->ops->name,
                 bytes, offset);
    IRON_TRY(check_range(buffer, offset, bytes, "clearing", err));
    if (bytes == 0)
        return IRON_OK;
    RETURN_CALL(device, err, queue, clear, queue, buffer, offset, bytes);
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
    iron__gpu_device *device = queue->device;

    IRON_TRY(iron__gpu_device_check(device, err));
    IRON_FAIL_IF(!copy->from == !copy->from_host || !copy->to == !copy->to_host, err, IRON_E_ARG,
                 "%s: each side of a copy is either a buffer or host memory; pass one of them",
                 device->ops->name);
    if (copy->from)
        IRON_TRY(check_range(copy->from, copy->from_offset, copy->bytes, "a copy", err));
    if (copy->to)
        IRON_TRY(check_range(copy->to, copy->to_offset, copy->bytes, "a copy", err));
    if (copy->bytes == 0)
        return IRON_OK;
    RETURN_CALL(device, err, queue, copy, queue, copy);
}

iron_status iron__gpu_prefetch(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t bytes,
                               iron_error *err) {
    iron__gpu_device *device = queue->device;
    const char *lacks = device->info.lacks[IRON_GPU_UVM_PREFETCH];

    IRON_TRY(iron__gpu_device_check(device, err));
    IRON_FAIL_IF(buffer->memory != IRON_GPU_MEMORY_MANAGED, err, IRON_E_ARG,
                 "%s: only managed memory can be prefetched; copy other memory", device->ops->name);
    IRON_FAIL_IF(lacks[0], err, IRON_E_UNSUPPORTED, "%s: %s; use uvm without prefetch",
                 device->ops->name, lacks);
    IRON_TRY(check_range(buffer, 0, bytes, "a prefetch", err));
    if (bytes == 0)
        return IRON_OK;
    RETURN_CALL(device, err, queue, prefetch, queue, buffer, bytes);
}

iron_status iron__gpu_event_create(iron__gpu_device *device, iron__gpu_event **out,
                                   iron_error *err) {
    const iron__gpu_queue_ops *ops = device->ops->queue;

    IRON_TRY(new_object(device, sizeof **out, "an event", out, err));
    (*out)->device = device;
    RETURN_OBJECT(device, err, out, iron__gpu_event_destroy(device, *out),
                  ops->event_create ? ops->event_create(*out, err) : IRON_OK);
}

void iron__gpu_event_destroy(iron__gpu_device *device, iron__gpu_event *event) {
    if (event && event->native)
        device->ops->queue->event_destroy(event);
    free_object(event);
}

iron_status iron__gpu_event_record(iron__gpu_queue *queue, iron__gpu_event *event,
                                   iron_error *err) {
    RETURN_CALL(queue->device, err, queue, event_record, queue, event);
}

iron_status iron__gpu_event_wait(iron__gpu_device *device, iron__gpu_event *event,
                                 iron_error *err) {
    RETURN_CALL(device, err, queue, event_wait, event);
}

iron_status iron__gpu_event_elapsed(iron__gpu_device *device, iron__gpu_event *from,
                                    iron__gpu_event *to, double *ms, iron_error *err) {
    *ms = 0;
    RETURN_CALL(device, err, queue, event_elapsed, from, to, ms);
}

iron_status iron__gpu_graph_begin(iron__gpu_queue *queue, iron_error *err) {
    iron__gpu_device *device = queue->device;
    iron_status begun, status;
    iron__gpu_graph *graph;

    IRON_TRY(iron__gpu_device_check(device, err));
    IRON_FAIL_IF(!device->info.can_graph, err, IRON_E_UNSUPPORTED, "%s does not support graphs",
                 device->info.name);
    IRON_TRY(enter(device, err));
    begun = device->ops->queue->graph_begin(queue, err);
    status = leave(device, begun, err);
    if (begun != status && iron__gpu_graph_end(queue, &graph, NULL) == IRON_OK)
        iron__gpu_graph_destroy(device, graph); /* a failed begin leaves nothing recording */
    return status;
}

iron_status iron__gpu_graph_end(iron__gpu_queue *queue, iron__gpu_graph **out, iron_error *err) {
    *out = NULL;
    IRON_TRY(enter(queue->device, err));
    RETURN_OBJECT(queue->device, err, out, iron__gpu_graph_destroy(queue->device, *out),
                  queue->device->ops->queue->graph_end(queue, out, err));
}

iron_status iron__gpu_graph_replay(iron__gpu_graph *graph, iron__gpu_queue *queue,
                                   iron_error *err) {
    RETURN_CALL(queue->device, err, queue, graph_replay, graph, queue);
}

void iron__gpu_graph_destroy(iron__gpu_device *device, iron__gpu_graph *graph) {
    if (graph)
        device->ops->queue->graph_destroy(graph);
}
