/* SPDX-License-Identifier: MIT */
/*
 * opencl_program.c: building programs, the cache of built programs, kernels, and launches.
 *
 * A driver takes seconds to build, so results are kept twice: with the context, for all handles of
 * the device, and on disk. Both use a key of everything that decides the result: source, options,
 * device, driver, platform. Builds are not locked: two handles that build the same source at the
 * same time both build it. A binary from disk that the driver refuses is rebuilt and replaced.
 *
 * The options select OpenCL C 1.2, change no arithmetic, and tell kernel_words.h what the device
 * supports.
 *
 * The cache on disk has one file opencl-<16 hex digits>.bin per program, device and driver:
 *
 *   0    8  "IRONOCLB"
 *   8    8  format version, in host byte order
 *  16    8  length of the key
 *  24    8  length of the binary
 *  32    8  FNV-1a of the binary
 *  40       the key, then the binary
 *
 * The file name is the FNV-1a of the key; because hashes can collide, the key in the file is
 * compared. A file that is truncated, too long, damaged, not a regular file, or owned by another
 * user (drivers execute it) counts as missing and is replaced by the next build. Files are written
 * atomically, so any number of processes may share a folder. Cache failures are never reported.
 */
#include "gpu/opencl/opencl_internal.h"

#include "core/fail.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Increase the number when the meaning of a key or a binary changes. */
#define KEY_START "iron opencl program 1"

#define CACHE_VERSION UINT64_C(1)

/* Far larger than any of our programs. */
#define BINARY_BYTES_MAX ((size_t)256 << 20)

typedef struct iron__opencl_kernel {
    iron__gpu_kernel base;
    iron__cl_program *program;
    iron__cl_kernel *native;
    uint32_t arg_count;
    uint32_t svm_args;    /* bit k: argument k was SVM since native was created */
    bool has_local_bytes; /* the driver reported local_bytes */
    uint64_t local_bytes; /* static local memory per group */
} iron__opencl_kernel;

static iron__opencl_kernel *kernel_of(const iron__gpu_kernel *kernel) {
    return (iron__opencl_kernel *)kernel;
}

typedef struct cache_header {
    char magic[8];
    uint64_t version, key_bytes, binary_bytes, binary_fnv;
} cache_header;

static const char cache_magic[8] = {'I', 'R', 'O', 'N', 'O', 'C', 'L', 'B'};

static bool is_cache_off(void) {
    const char *setting = getenv("IRON_OPENCL_CACHE");

    return setting && strcmp(setting, "0") == 0;
}

/* NULL: the cache is off or has no folder. free() it. */
static char *cache_path(const char *key) {
    if (is_cache_off())
        return NULL;
    return iron__cache_path("opencl", iron__fnv(IRON_FNV_START, key, strlen(key)), ".bin");
}

/* Checks type, owner, size and header of the file. */
static bool read_header(int fd, size_t key_bytes, cache_header *h) {
    struct stat info;
    uint64_t size;

    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
        iron__read_all(fd, h, sizeof *h) != (ssize_t)sizeof *h)
        return false;
    size = (uint64_t)info.st_size;
    return memcmp(h->magic, cache_magic, sizeof cache_magic) == 0 && h->version == CACHE_VERSION &&
           h->key_bytes == key_bytes && h->binary_bytes > 0 &&
           h->binary_bytes <= BINARY_BYTES_MAX &&
           size == sizeof *h + h->key_bytes + h->binary_bytes;
}

/* The binary cached for exactly this key; free() it. NULL: none. */
static unsigned char *cache_read(const char *key, size_t *bytes) {
    size_t key_bytes = strlen(key);
    unsigned char *content = NULL;
    bool is_valid = false;
    char *path = cache_path(key);
    /* O_NONBLOCK: a pipe of that name must not block */
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    cache_header h;

    if (fd >= 0 && read_header(fd, key_bytes, &h)) {
        *bytes = (size_t)h.binary_bytes;
        content = malloc(key_bytes + *bytes);
        is_valid =
            content &&
            iron__read_all(fd, content, key_bytes + *bytes) == (ssize_t)(key_bytes + *bytes) &&
            memcmp(content, key, key_bytes) == 0 &&
            iron__fnv(IRON_FNV_START, content + key_bytes, *bytes) == h.binary_fnv;
    }
    if (fd >= 0)
        close(fd);
    free(path);
    if (is_valid) {
        memmove(content, content + key_bytes, *bytes);
        return content;
    }
    free(content);
    return NULL;
}

static void cache_write(const char *key, const unsigned char *binary, size_t bytes) {
    cache_header h = {
        .version = CACHE_VERSION,
        .key_bytes = strlen(key),
        .binary_bytes = bytes,
        .binary_fnv = iron__fnv(IRON_FNV_START, binary, bytes),
    };
    char *path = bytes > 0 && bytes <= BINARY_BYTES_MAX ? cache_path(key) : NULL;
    struct stat info;
    iron_output *output;

    if (!path)
        return;
    iron__cache_folder_create();
    memcpy(h.magic, cache_magic, sizeof cache_magic);
    /* only a regular file is replaced */
    if ((lstat(path, &info) == 0 ? S_ISREG(info.st_mode) : errno == ENOENT) &&
        iron_output_open(path, &output, NULL) == IRON_OK) {
        if (iron_output_write(output, &h, sizeof h, NULL) == IRON_OK &&
            iron_output_write(output, key, strlen(key), NULL) == IRON_OK &&
            iron_output_write(output, binary, bytes, NULL) == IRON_OK)
            iron_output_commit(output, NULL);
        else
            iron_output_abandon(output);
    }
    free(path);
}

/* How and what to build. */
typedef struct order {
    const iron__gpu_image *image;
    char options[160];
} order;

static int32_t build(const iron__opencl_device *d, const order *o, iron__cl_program *program) {
    return d->api->clBuildProgram(program, 1, &d->entry->id, o->options, NULL, NULL);
}

/* NULL: not on disk, or the driver refused the binary. */
static iron__cl_program *build_cached(const iron__opencl_device *d, const order *o,
                                      const char *key) {
    size_t bytes = 0;
    unsigned char *binary = cache_read(key, &bytes);
    const unsigned char *binaries[] = {binary};
    int32_t binary_code = IRON_CL_SUCCESS, code = IRON_CL_SUCCESS;
    iron__cl_program *program;

    if (!binary)
        return NULL;
    program = d->api->clCreateProgramWithBinary(d->context, 1, &d->entry->id, &bytes, binaries,
                                                &binary_code, &code);
    free(binary);
    if (program && (code != IRON_CL_SUCCESS || binary_code != IRON_CL_SUCCESS ||
                    build(d, o, program) != IRON_CL_SUCCESS)) {
        d->api->clReleaseProgram(program);
        program = NULL;
    }
    return program;
}

static void cache_program(const iron__opencl_device *d, iron__cl_program *program,
                          const char *key) {
    size_t bytes = 0;
    unsigned char *binary;

    /* asking for the binary makes PoCL compile every kernel of the program */
    if (is_cache_off() ||
        d->api->clGetProgramInfo(program, IRON_CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes,
                                 NULL) != IRON_CL_SUCCESS ||
        bytes == 0)
        return;
    binary = malloc(bytes);
    if (binary &&
        d->api->clGetProgramInfo(program, IRON_CL_PROGRAM_BINARIES, sizeof(unsigned char *),
                                 (void *)&binary, NULL) == IRON_CL_SUCCESS)
        cache_write(key, binary, bytes);
    free(binary);
}

static iron_status fail_build(const iron__opencl_device *d, iron__cl_program *program, int32_t code,
                              const iron__gpu_image *image, iron_error *err) {
    char line[sizeof err->text] = "no build log; update the driver";
    size_t bytes = 0, length = 0;
    char *log = NULL;

    if (d->api->clGetProgramBuildInfo(program, d->entry->id, IRON_CL_PROGRAM_BUILD_LOG, 0, NULL,
                                      &bytes) == IRON_CL_SUCCESS)
        log = calloc(1, bytes + 1);
    if (log &&
        d->api->clGetProgramBuildInfo(program, d->entry->id, IRON_CL_PROGRAM_BUILD_LOG, bytes, log,
                                      NULL) == IRON_CL_SUCCESS &&
        log[strspn(log, " \t\r\n")] != '\0') {
        if (image->is_users)
            fprintf(stderr, "%s\n", log);
        /* its start in one line: runs of white space become one blank */
        for (const char *at = log; *at && length + 1 < sizeof line; at++) {
            if ((unsigned char)*at > ' ')
                line[length++] = *at;
            else if (length > 0 && line[length - 1] != ' ')
                line[length++] = ' ';
        }
        length -= length > 0 && line[length - 1] == ' ';
        line[length] = '\0';
    }
    free(log);
    return iron__fail(err, IRON_E_IO, code, "opencl: clBuildProgram failed: %s; correct '%s': %s",
                      iron__opencl_error_name(code).text, image->name, line);
}

static iron_status build_source(iron__opencl_device *d, const order *o, iron__cl_program **out,
                                iron_error *err) {
    const char *sources[] = {o->image->source};
    int32_t code = IRON_CL_SUCCESS;
    iron__cl_program *program =
        d->api->clCreateProgramWithSource(d->context, 1, sources, NULL, &code);
    iron_status status;

    IRON_TRY(iron__opencl_check(&d->base, code, "clCreateProgramWithSource", err));
    code = build(d, o, program);
    status = code == IRON_CL_BUILD_PROGRAM_FAILURE
                 ? fail_build(d, program, code, o->image, err)
                 : iron__opencl_check(&d->base, code, "clBuildProgram", err);
    if (status == IRON_OK)
        *out = program;
    else
        d->api->clReleaseProgram(program);
    return status;
}

/* The program with this key that was built in the context; NULL: none. It stays while the device is
 * open. */
static iron__cl_program *find_shared(iron__opencl_shared_context *c, const char *key) {
    const iron__opencl_built_program *p;

    pthread_mutex_lock(&c->programs_lock);
    for (p = c->programs; p && strcmp(p->key, key) != 0;)
        p = p->next;
    pthread_mutex_unlock(&c->programs_lock);
    return p ? p->native : NULL;
}

/* Shares a built program with other handles. If another thread built the same one meanwhile, both
 * are kept, and the newer one is found. */
static void share(iron__opencl_device *d, const char *key, iron__cl_program *program) {
    size_t key_bytes = strlen(key) + 1;
    iron__opencl_built_program *p = iron__allocate(iron__allocator_default(), 1,
                                                   sizeof *p + key_bytes, "a built program", NULL);

    if (!p || d->api->clRetainProgram(program) != IRON_CL_SUCCESS) {
        iron__release(iron__allocator_default(), p);
        return;
    }
    memcpy(p->key, key, key_bytes);
    p->native = program;
    pthread_mutex_lock(&d->shared->programs_lock);
    p->next = d->shared->programs;
    d->shared->programs = p;
    pthread_mutex_unlock(&d->shared->programs_lock);
}

/* From the context, from disk, or from source. */
static iron_status build_program(iron__opencl_device *d, const order *o, iron__cl_program **out,
                                 iron_error *err) {
    char *key = d->identity ? iron__print(KEY_START "\noptions %s\n%s%s", o->options, d->identity,
                                          o->image->source)
                            : NULL;
    iron_status status = IRON_OK;

    if (!key)
        return build_source(d, o, out, err); /* out of memory: works without caches */
    *out = find_shared(d->shared, key);
    if (*out && d->api->clRetainProgram(*out) == IRON_CL_SUCCESS)
        goto done;
    *out = build_cached(d, o, key);
    if (!*out) {
        status = build_source(d, o, out, err);
        if (status != IRON_OK)
            goto done;
        cache_program(d, *out, key);
    }
    share(d, key, *out);
done:
    free(key);
    return status;
}

static iron_status load(iron__gpu_program *program, const iron__gpu_image *image, iron_error *err) {
    iron__opencl_device *d = iron__opencl_device_of(program->device);
    iron__cl_program *native = NULL;
    order o = {.image = image};

    IRON_FAIL_IF(!image->source, err, IRON_E_UNSUPPORTED,
                 "opencl: this build has no OpenCL source of '%s'; build with OpenCL", image->name);
    snprintf(o.options, sizeof o.options,
             "-w -cl-std=CL1.2 -DK_HAS_U64_ATOMICS=%d -DK_HAS_F64=%d -DK_IS_GPU=%d",
             d->has_u64_atomics, d->base.info.has_f64, d->base.info.is_gpu);
    if (d->has_register_limit && image->registers_max > 0)
        iron__append(o.options, sizeof o.options,
                     " -DK_REGISTERS_ARE_LIMITED -cl-nv-maxrregcount=%u", image->registers_max);
    IRON_TRY(build_program(d, &o, &native, err));
    program->native = native;
    return IRON_OK;
}

static void unload(iron__gpu_program *program) {
    iron__opencl_device_of(program->device)->api->clReleaseProgram(program->native);
}

static void kernel_release(iron__gpu_program *program, iron__gpu_kernel *kernel) {
    if (kernel_of(kernel)->native)
        iron__opencl_device_of(program->device)->api->clReleaseKernel(kernel_of(kernel)->native);
}

/* Creates the native kernel, or replaces it by one without arguments. */
static iron_status create_native(iron__opencl_device *d, iron__opencl_kernel *kernel,
                                 iron_error *err) {
    const iron__opencl_api *cl = d->api;
    int32_t code = IRON_CL_SUCCESS;
    iron__cl_kernel *native = cl->clCreateKernel(kernel->program, kernel->base.name, &code);
    uint64_t bytes = 0;

    IRON_TRY(iron__opencl_check(&d->base, code, "clCreateKernel", err));
    if (kernel->native)
        cl->clReleaseKernel(kernel->native);
    kernel->native = native;
    kernel->svm_args = 0;
    /* Local memory arguments count once they are set, so the static size is read before that. A
     * driver that does not report it is not a failure. */
    kernel->has_local_bytes =
        cl->clGetKernelWorkGroupInfo(native, d->entry->id, IRON_CL_KERNEL_LOCAL_MEM_SIZE,
                                     sizeof bytes, &bytes, NULL) == IRON_CL_SUCCESS;
    kernel->local_bytes = kernel->has_local_bytes ? bytes : 0;
    return IRON_CL(&d->base, err, clGetKernelInfo, native, IRON_CL_KERNEL_NUM_ARGS,
                   sizeof kernel->arg_count, &kernel->arg_count, NULL);
}

static iron_status kernel_find(iron__gpu_program *program, iron__gpu_kernel *kernel,
                               iron_error *err) {
    iron_status status;

    kernel_of(kernel)->program = program->native;
    status = create_native(iron__opencl_device_of(program->device), kernel_of(kernel), err);
    if (status == IRON_E_ARG)
        return iron__fail(err, IRON_E_ARG, IRON_CL_INVALID_KERNEL_NAME,
                          "opencl: clCreateKernel failed: CL_INVALID_KERNEL_NAME; '%s' has no "
                          "kernel '%.80s'",
                          program->name, kernel->name);
    return status;
}

/* OpenCL reports no registers and no resident groups, and its private memory of a thread is not
 * necessarily what was spilled. */
static void kernel_resources(iron__gpu_device *device, const iron__gpu_kernel *base,
                             uint32_t threads, size_t local_bytes, iron__gpu_resources *out) {
    const iron__opencl_kernel *kernel = kernel_of(base);

    (void)device;
    (void)threads;
    out->local_bytes = kernel->has_local_bytes ? kernel->local_bytes + local_bytes : 0;
}

/* A buffer that the host has access to must not be used by a kernel. OpenCL does not check that. */
static iron_status set_buffer(iron__opencl_device *d, iron__opencl_kernel *kernel, uint32_t index,
                              const iron__gpu_buffer *buffer, iron_error *err) {
    iron__cl_memory *memory = iron__opencl_memory_of(buffer);

    IRON_FAIL_IF(buffer->memory == IRON_GPU_MEMORY_PINNED, err, IRON_E_ARG,
                 "opencl: %s: argument %u is page-locked memory; pass mapped memory",
                 kernel->base.name, index);
    IRON_FAIL_IF(
        buffer->host, err, IRON_E_STATE,
        "opencl: %s: the host has access to the buffer of argument %u; call host_end first",
        kernel->base.name, index);
    if (buffer->memory == IRON_GPU_MEMORY_MANAGED) {
        kernel->svm_args |= UINT32_C(1) << index;
        return IRON_CL(&d->base, err, clSetKernelArgSVMPointer, kernel->native, index,
                       (void *)buffer->native);
    }
    return IRON_CL(&d->base, err, clSetKernelArg, kernel->native, index, sizeof(iron__cl_memory *),
                   (const void *)&memory);
}

/* Too few arguments are refused: OpenCL would reuse those of the previous launch. */
static iron_status set_args(iron__opencl_device *d, const iron__gpu_launch *launch,
                            iron_error *err) {
    iron__opencl_kernel *kernel = kernel_of(launch->kernel);
    const char *name = launch->kernel->name;
    size_t given = launch->arg_count + (launch->local_bytes > 0);
    uint64_t most = d->base.info.local_bytes_max;
    uint64_t own = kernel->local_bytes > IRON_OPENCL_LOCAL_RESERVE ? kernel->local_bytes : 0;
    const iron__gpu_arg *args = launch->args, *end = args + launch->arg_count, *arg = args;

    IRON_FAIL_IF(given > IRON_GPU_ARGS_MAX || given != kernel->arg_count, err, IRON_E_ARG,
                 "opencl: %s: %zu arguments for %u parameters; the maximum is %u", name, given,
                 kernel->arg_count, IRON_GPU_ARGS_MAX);
    /* NVIDIA's driver (580) returns CL_INVALID_KERNEL_ARGS for every launch after an argument
     * changes from SVM to a buffer. A new kernel object avoids that. */
    while (arg < end && !(kernel->svm_args >> (arg - args) & 1 && arg->buffer &&
                          arg->buffer->memory != IRON_GPU_MEMORY_MANAGED))
        arg++;
    if (arg < end)
        IRON_TRY(create_native(d, kernel, err));
    for (uint32_t k = 0; k < launch->arg_count; k++) {
        arg = &args[k];
        if (arg->buffer) {
            IRON_TRY(set_buffer(d, kernel, k, arg->buffer, err));
            continue;
        }
        IRON_FAIL_IF(!arg->value || arg->bytes == 0, err, IRON_E_ARG,
                     "opencl: %s: argument %u is neither a buffer nor a value; pass one", name, k);
        IRON_TRY(IRON_CL(&d->base, err, clSetKernelArg, kernel->native, k, arg->bytes, arg->value));
    }
    if (launch->local_bytes == 0)
        return IRON_OK;
    IRON_FAIL_IF(launch->local_bytes > most || own > most - launch->local_bytes, err,
                 IRON_E_UNSUPPORTED,
                 "opencl: %s: %zu bytes of local memory per group plus %llu static bytes; the "
                 "device has %llu",
                 name, launch->local_bytes, (unsigned long long)own, (unsigned long long)most);
    /* dynamic local memory is the last parameter, after all arguments */
    return IRON_CL(&d->base, err, clSetKernelArg, kernel->native, (uint32_t)launch->arg_count,
                   launch->local_bytes, NULL);
}

/* launch->persisting has no effect: OpenCL has no cache control. */
static iron_status launch_kernel(iron__gpu_queue *queue, const iron__gpu_launch *launch,
                                 iron_error *err) {
    iron__opencl_device *d = iron__opencl_device_of(queue->device);
    size_t threads[2] = {launch->threads[0], launch->threads[1]};
    size_t all[2] = {launch->groups[0] * threads[0], launch->groups[1] * threads[1]};

    IRON_FAIL_IF(launch->flags & IRON_GPU_LAUNCH_COOPERATIVE, err, IRON_E_UNSUPPORTED,
                 "opencl: %s: OpenCL has no cooperative launches; use another variant",
                 launch->kernel->name);
    IRON_TRY(set_args(d, launch, err));
    IRON_TRY(IRON_CL(queue->device, err, clEnqueueNDRangeKernel, iron__opencl_queue_of(queue),
                     kernel_of(launch->kernel)->native, all[1] > 1 ? 2 : 1, NULL, all, threads, 0,
                     NULL, NULL));
    return iron__opencl_flush(queue, err);
}

const iron__gpu_program_ops iron__opencl_program_ops = {
    .load = load,
    .unload = unload,
    .kernel_bytes = sizeof(iron__opencl_kernel),
    .kernel_find = kernel_find,
    .kernel_release = kernel_release,
    .kernel_resources = kernel_resources,
    .launch = launch_kernel,
};
