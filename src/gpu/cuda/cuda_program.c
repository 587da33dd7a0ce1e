/* SPDX-License-Identifier: MIT */
/*
 * cuda_program.c: modules, compiling what users wrote, kernels, their resource usage, and launches.
 *
 * A fatbin holds machine code for some cards and PTX for newer ones, which the driver compiles
 * while loading. A card with neither gets IRON_E_UNSUPPORTED and the architecture to build for; the
 * device stays usable. A driver may defer loading until a kernel is looked up, so that can fail in
 * the same way. The driver's limit on dynamic local memory is state of the kernel, so all callers
 * share one kernel object with its record of that limit.
 *
 * The driver copies the arguments during the call, so a launch is built on the stack and allocates
 * nothing. A plain launch uses cuLaunchKernel. Attributes of cuLaunchKernelEx implement
 *
 *     OVERLAP       programmatic stream serialization: the kernel may start when the previous one
 *                   allows it, and waits for its results where necessary
 *     COOPERATIVE   a cooperative launch: all groups run concurrently, or an error
 *     persisting    an access policy window
 *
 * A launch that is too large leaves the device usable. The driver only says that it did not fit;
 * the messages here add what would fit.
 */
#include "gpu/cuda/cuda_internal.h"

#include "core/fail.h"
#include "core/library.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct iron__cuda_kernel {
    iron__gpu_kernel base;
    iron__cu_function *function;
    size_t dynamic_bytes; /* of local memory that launches may request so far */
} iron__cuda_kernel;

static iron__cuda_kernel *kernel_of(const iron__gpu_kernel *kernel) {
    return (iron__cuda_kernel *)kernel;
}

/* NVRTC, a library of the toolkit and of many Python packages, compiles a user's CUDA text where
 * there is no nvcc. It is large: loaded for the first text, and kept. Its functions return 0, or a
 * code that nvrtcGetErrorString explains. */
typedef struct nvrtc {
    int (*create)(void **program, const char *source, const char *name, int headers,
                  const char *const *texts, const char *const *names);
    int (*compile)(void *program, int count, const char *const *options);
    int (*log_size)(void *program, size_t *bytes);
    int (*log)(void *program, char *log);
    int (*code_size)(void *program, size_t *bytes);
    int (*code)(void *program, char *code);
    int (*destroy)(void **program);
    const char *(*explain)(int code);
} nvrtc;

#define SYMBOL(name, member)                                                                       \
    { name, offsetof(nvrtc, member), true }

static iron_status open_library(nvrtc *n, iron_error *err) {
    static const iron__symbol symbols[] = {
        SYMBOL("nvrtcCreateProgram", create),   SYMBOL("nvrtcCompileProgram", compile),
        SYMBOL("nvrtcGetProgramLog", log),      SYMBOL("nvrtcGetProgramLogSize", log_size),
        SYMBOL("nvrtcGetCUBIN", code),          SYMBOL("nvrtcGetCUBINSize", code_size),
        SYMBOL("nvrtcDestroyProgram", destroy), SYMBOL("nvrtcGetErrorString", explain)};
    static const char *const usual[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", NULL};
    iron__library l = iron__library_open("IRON_NVRTC_LIBRARY", usual, symbols,
                                         sizeof symbols / sizeof symbols[0], n);

    IRON_FAIL_IF(!l.handle, err, IRON_E_UNSUPPORTED,
                 "cuda: no nvcc and no NVRTC (%.100s); install the CUDA toolkit, or set NVCC or "
                 "IRON_NVRTC_LIBRARY",
                 l.fault);
    IRON_FAIL_IF(l.missing, err, IRON_E_UNSUPPORTED, "cuda: %.100s has no %s; update it", l.path,
                 l.missing);
    return IRON_OK;
}

/* The compiler's messages, as they are. */
static void print_log(const nvrtc *n, void *program) {
    size_t bytes = 0;
    char *log;

    if (n->log_size(program, &bytes) != 0 || bytes < 2 || !(log = malloc(bytes)))
        return;
    if (n->log(program, log) == 0)
        fprintf(stderr, "%s\n", log);
    free(log);
}

/* Compiles a text for a card's version (900: 9.0). *code is owned by the caller. */
static iron_status compile(const char *source, uint32_t version, char **code, iron_error *err) {
    char arch[40];
    const char *const options[] = {arch, "-std=c++17", "-fmad=false"};
    void *program = NULL;
    size_t bytes = 0;
    iron_status status;
    int result;
    nvrtc n;

    *code = NULL;
    snprintf(arch, sizeof arch, "-arch=sm_%u", version / 10);
    IRON_TRY(open_library(&n, err));
    result = n.create(&program, source, "contender.cu", 0, NULL, NULL);
    IRON_FAIL_IF(result != 0, err, IRON_E_NOMEM, "cuda: nvrtcCreateProgram failed: %s",
                 n.explain(result));
    result = n.compile(program, (int)(sizeof options / sizeof options[0]), options);
    print_log(&n, program);
    status = result == 0 ? IRON_OK
                         : iron__fail(err, IRON_E_FORMAT, result,
                                      "it does not compile: NVRTC says why on standard error (%s)",
                                      n.explain(result));
    if (status == IRON_OK && (n.code_size(program, &bytes) != 0 || !(*code = malloc(bytes))))
        status = iron__no_memory(err, "a compiled kernel");
    if (status == IRON_OK && n.code(program, *code) != 0) {
        free(*code);
        *code = NULL;
        status = iron__fail(err, IRON_E_STATE, 0, "cuda: nvrtcGetCUBIN failed");
    }
    n.destroy(&program);
    return status;
}

static void unload(iron__gpu_program *program) {
    IRON_CU_RELEASE(program->device, cuModuleUnload, program->native);
}

/* Converts the result of a function that may load code, naming the program in the message. */
static iron_status check_load(const iron__gpu_program *program, const char *function,
                              iron__cu_result code, iron_error *err) {
    char what[64];

    snprintf(what, sizeof what, "%s of '%.20s'", function, program->name);
    return iron__cuda_check(iron__cuda_device_of(program->device), err, what, code);
}

static iron_status load(iron__gpu_program *program, const iron__gpu_image *image, iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(program->device);
    const void *code = image->machine_code;
    char *compiled = NULL;
    iron__cu_module *module = NULL;
    iron_status status;

    if (image->is_users && !code) {
        IRON_TRY(compile(image->source, program->device->info.version, &compiled, err));
        code = compiled;
    }
    IRON_FAIL_IF(!code || code == image->machine_code_end, err, IRON_E_UNSUPPORTED,
                 "cuda: this build has no CUDA kernels of '%s'; rebuild where nvcc is installed",
                 image->name);
    status =
        check_load(program, "cuModuleLoadData", d->driver->cuModuleLoadData(&module, code), err);
    free(compiled);
    program->native = module;
    return status;
}

static iron_status kernel_find(iron__gpu_program *program, iron__gpu_kernel *kernel,
                               iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(program->device);
    iron__cu_result code =
        d->driver->cuModuleGetFunction(&kernel_of(kernel)->function, program->native, kernel->name);

    if (code == IRON_CUDA_ERROR_NOT_FOUND)
        return iron__fail(err, IRON_E_ARG, code,
                          "cuda: program '%s' has no kernel '%.60s' (CUDA_ERROR_NOT_FOUND)",
                          program->name, kernel->name);
    return check_load(program, "cuModuleGetFunction", code, err);
}

/* Raises the kernel's limit on dynamic local memory. Needed before a launch uses more than what
 * every card has. Call it within the context; the result is not checked, so it never marks the
 * device. */
static iron__cu_result allow_local(const iron__cuda_device *d, iron__cuda_kernel *kernel,
                                   size_t bytes) {
    iron__cu_result code;

    if (bytes <= kernel->dynamic_bytes)
        return IRON_CUDA_SUCCESS;
    code = d->driver->cuFuncSetAttribute(
        kernel->function, IRON_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes);
    if (code == IRON_CUDA_SUCCESS)
        kernel->dynamic_bytes = bytes;
    return code;
}

/* False if the driver does not report the attribute; *out is then unchanged. */
static bool get_attribute(const iron__cuda_device *d, const iron__cuda_kernel *kernel,
                          iron__cu_function_attribute attribute, uint32_t *out) {
    int value = 0;

    if (d->driver->cuFuncGetAttribute(&value, attribute, kernel->function) != IRON_CUDA_SUCCESS ||
        value < 0)
        return false;
    *out = (uint32_t)value;
    return true;
}

static void get_occupancy(const iron__cuda_device *d, iron__cuda_kernel *kernel, uint32_t threads,
                          size_t local_bytes, iron__gpu_resources *out) {
    int groups = 0, threads_max = 0;

    if (allow_local(d, kernel, local_bytes) != IRON_CUDA_SUCCESS ||
        d->driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &groups, kernel->function, (int)threads, local_bytes) != IRON_CUDA_SUCCESS ||
        groups < 0)
        return;
    out->groups = (uint32_t)groups;
    if (d->driver->cuDeviceGetAttribute(&threads_max,
                                        IRON_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
                                        d->ordinal) == IRON_CUDA_SUCCESS &&
        threads_max > 0)
        out->occupancy = (double)groups * threads / threads_max;
}

/* Results are not checked: a missing value stays 0, and the next call that has to work reports an
 * error of earlier commands. */
static void kernel_resources(iron__gpu_device *device, const iron__gpu_kernel *base,
                             uint32_t threads, size_t local_bytes, iron__gpu_resources *out) {
    const iron__cuda_device *d = iron__cuda_device_of(device);
    iron__cuda_kernel *kernel = kernel_of(base);
    iron__cu_context *popped = NULL;
    uint32_t static_bytes = 0;

    if (d->driver->cuCtxPushCurrent_v2(d->context) != IRON_CUDA_SUCCESS)
        return;
    (void)get_attribute(d, kernel, IRON_CU_FUNC_ATTRIBUTE_NUM_REGS, &out->registers);
    (void)get_attribute(d, kernel, IRON_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &out->spill_bytes);
    if (get_attribute(d, kernel, IRON_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &static_bytes))
        out->local_bytes = static_bytes + (uint64_t)local_bytes;
    if (local_bytes <= d->base.info.local_bytes_max && threads <= d->base.info.group_threads_max)
        get_occupancy(d, kernel, threads, local_bytes, out);
    (void)d->driver->cuCtxPopCurrent_v2(&popped);
}

typedef struct request {
    iron__cu_launch_config config;
    iron__cu_launch_attribute attributes[3];
    uintptr_t pointers[IRON_GPU_ARGS_MAX]; /* values of buffer arguments */
    void *values[IRON_GPU_ARGS_MAX];       /* address of each argument */
} request;

/* The access window of a launch; 0 bytes: none. A window larger than the reserved cache would evict
 * its own lines before they are read again, so only the fraction that fits is marked persisting. */
static iron_status fill_window(const iron__cuda_device *d, const iron__gpu_launch *launch,
                               iron__cu_window *out, iron_error *err) {
    const iron__gpu_buffer *buffer = launch->persisting;
    size_t bytes = launch->persisting_bytes;

    *out = (iron__cu_window){.bytes = 0};
    if (!buffer || bytes == 0)
        return IRON_OK;
    IRON_FAIL_IF(!buffer->native || bytes > buffer->bytes, err, IRON_E_ARG,
                 "cuda: kernel '%s': %zu persisting bytes of a buffer with %zu bytes on the device",
                 launch->kernel->name, bytes, buffer->native ? buffer->bytes : 0);
    if (d->reserved_bytes == 0)
        return IRON_OK;
    out->start = (void *)iron__cuda_address_of(buffer, 0);
    out->bytes = bytes < d->window_bytes_max ? bytes : d->window_bytes_max;
    out->hit_ratio =
        out->bytes > d->reserved_bytes ? (float)d->reserved_bytes / (float)out->bytes : 1.0F;
    out->hit = IRON_CU_ACCESS_PROPERTY_PERSISTING;
    out->miss = IRON_CU_ACCESS_PROPERTY_STREAMING;
    return IRON_OK;
}

/* The driver refuses the sum of the kernel's static and the launch's dynamic local memory; the
 * message states both. */
static iron_status fill_local(iron__cuda_device *d, const iron__gpu_launch *launch,
                              iron__cu_launch_config *config, iron_error *err) {
    iron__cuda_kernel *kernel = kernel_of(launch->kernel);
    size_t bytes = launch->local_bytes;
    uint32_t static_bytes = 0;
    iron__cu_result code;

    IRON_FAIL_IF(bytes > d->base.info.local_bytes_max, err, IRON_E_UNSUPPORTED,
                 "cuda: kernel '%s' with %zu bytes of local memory per group; the device has %llu",
                 kernel->base.name, bytes, (unsigned long long)d->base.info.local_bytes_max);
    config->shared_bytes = (unsigned)bytes;
    code = allow_local(d, kernel, bytes);
    if (code != IRON_CUDA_ERROR_INVALID_VALUE ||
        !get_attribute(d, kernel, IRON_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &static_bytes))
        return iron__cuda_check(d, err, "cuFuncSetAttribute", code);
    return iron__fail(err, IRON_E_UNSUPPORTED, code,
                      "cuda: kernel '%s' with %zu bytes of local memory per group plus %u static "
                      "bytes (CUDA_ERROR_INVALID_VALUE); the device has %llu",
                      kernel->base.name, bytes, static_bytes,
                      (unsigned long long)d->base.info.local_bytes_max);
}

static iron_status submit(iron__cuda_device *d, const iron__cuda_kernel *kernel, request *r,
                          iron_error *err) {
    const iron__cu_launch_config *c = &r->config;
    bool is_plain = c->attribute_count == 0;
    iron__cu_result code;
    char what[96];

    if (is_plain)
        code = d->driver->cuLaunchKernel(kernel->function, c->grid_x, c->grid_y, c->grid_z,
                                         c->block_x, c->block_y, c->block_z, c->shared_bytes,
                                         c->stream, r->values, NULL);
    else
        code = d->driver->cuLaunchKernelEx(c, kernel->function, r->values, NULL);
    if (code == IRON_CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE) {
        /* A cooperative launch did not fit: states how many groups would. */
        unsigned threads = c->block_x * c->block_y;
        unsigned long long groups = (unsigned long long)c->grid_x * c->grid_y, fit;
        int per_unit = 0;

        IRON_TRY(IRON_CU(d, err, cuOccupancyMaxActiveBlocksPerMultiprocessor, &per_unit,
                         kernel->function, (int)threads, c->shared_bytes));
        fit = (unsigned long long)per_unit * d->base.info.units;
        return iron__fail(
            err, IRON_E_UNSUPPORTED, code,
            "cuda: kernel '%s': %llu groups of %u threads do not fit on the device at "
            "once (CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE); launch at most %llu",
            kernel->base.name, groups, threads, fit);
    }
    if (code == IRON_CUDA_SUCCESS)
        return IRON_OK;
    snprintf(what, sizeof what, "%s of '%.40s'", is_plain ? "cuLaunchKernel" : "cuLaunchKernelEx",
             kernel->base.name);
    return iron__cuda_check(d, err, what, code);
}

static iron_status launch_kernel(iron__gpu_queue *queue, const iron__gpu_launch *launch,
                                 iron_error *err) {
    iron__cuda_device *d = iron__cuda_device_of(queue->device);
    request r = {.config = {.grid_x = launch->groups[0],
                            .grid_y = launch->groups[1],
                            .grid_z = 1,
                            .block_x = launch->threads[0],
                            .block_y = launch->threads[1],
                            .block_z = 1,
                            .stream = iron__cuda_stream_of(queue)}};
    uint32_t flags;
    iron__cu_window window;
    unsigned count = 0;

    for (size_t k = 0; k < launch->arg_count; k++) {
        const iron__gpu_arg *arg = &launch->args[k];

        if (!arg->buffer) {
            r.values[k] = (void *)arg->value; /* the driver only reads it */
            continue;
        }
        IRON_FAIL_IF(!arg->buffer->native, err, IRON_E_ARG,
                     "cuda: argument %zu of kernel '%s' is host memory without a device address; "
                     "pass mapped memory",
                     k, launch->kernel->name);
        r.pointers[k] = arg->buffer->native;
        r.values[k] = &r.pointers[k];
    }
    flags = launch->flags;
    IRON_TRY(fill_window(d, launch, &window, err));
    IRON_FAIL_IF(flags & IRON_GPU_LAUNCH_COOPERATIVE && !d->base.info.can_cooperate, err,
                 IRON_E_UNSUPPORTED,
                 "cuda: this device or driver does not support cooperative launches");
    if (flags & IRON_GPU_LAUNCH_COOPERATIVE) {
        r.attributes[count].id = IRON_CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        r.attributes[count++].value.is_cooperative = 1;
    }
    if (flags & IRON_GPU_LAUNCH_OVERLAP && d->base.info.can_overlap) {
        r.attributes[count].id = IRON_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        r.attributes[count++].value.may_overlap = 1;
    }
    if (window.bytes > 0) {
        r.attributes[count].id = IRON_CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
        r.attributes[count++].value.window = window;
    }
    r.config.attributes = r.attributes;
    r.config.attribute_count = count;
    IRON_TRY(fill_local(d, launch, &r.config, err));
    return submit(d, kernel_of(launch->kernel), &r, err);
}

const iron__gpu_program_ops iron__cuda_program_ops = {
    .load = load,
    .unload = unload,
    .kernel_bytes = sizeof(iron__cuda_kernel),
    .kernel_find = kernel_find,
    .kernel_resources = kernel_resources,
    .launch = launch_kernel,
};
