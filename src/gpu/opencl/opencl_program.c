/* SPDX-License-Identifier: MIT */
/*
 * opencl_program.c: from an image's text to a program on a device.
 *
 * Building takes a driver seconds, so what it built is kept: with the context, for all who have the
 * device open (opencl_shared.c), and on disk (opencl_cache.c), under a key of everything that
 * decides the result: text, options, device, driver, platform. A binary from disk that the driver
 * refuses after all is built anew and replaced.
 *
 * Options ask for the language of OpenCL 1.2 and for nothing that changes arithmetic. They also
 * tell the kernels' words what the device can do.
 */
#include "core/fail.h"
#include "gpu/opencl/opencl_cache.h"
#include "gpu/opencl/opencl_device.h"
#include "gpu/opencl/opencl_error.h"
#include "gpu/opencl/opencl_shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* To be raised when what a key or a binary means changes. */
#define KEY_START "iron opencl program 1"

typedef struct build_options {
    char text[160];
} build_options;

static build_options options_for(const iron__opencl_device *d, const iron__gpu_image *image) {
    build_options options;
    int length = snprintf(options.text, sizeof options.text,
                          "-w -cl-std=CL1.2 -DK_HAS_U64_ATOMICS=%d -DK_HAS_F64=%d -DK_IS_GPU=%d",
                          d->has_u64_atomics, d->base.info.has_f64, d->base.info.is_gpu);

    if (d->has_register_limit && image->most_registers > 0)
        snprintf(options.text + length, sizeof options.text - (size_t)length,
                 " -DK_REGISTERS_ARE_LIMITED -cl-nv-maxrregcount=%u", image->most_registers);
    return options;
}

/* NULL when memory is out. free() it. */
static char *make_key(const iron__opencl_device *d, const iron__gpu_image *image) {
    static const uint32_t properties[] = {IRON_CL_DEVICE_NAME, IRON_CL_DEVICE_VENDOR,
                                          IRON_CL_DEVICE_VERSION, IRON_CL_DRIVER_VERSION};
    char *texts[5] = {NULL}, *key = NULL;
    bool is_complete;

    for (size_t k = 0; k < 4; k++)
        texts[k] = iron__opencl_device_text(d->api, d->entry->id, properties[k]);
    texts[4] = iron__opencl_platform_text(d->api, d->entry->platform, IRON_CL_PLATFORM_VERSION);
    is_complete = texts[0] && texts[1] && texts[2] && texts[3] && texts[4];
    if (!is_complete ||
        asprintf(&key,
                 KEY_START "\noptions %s\ndevice %s\nvendor %s\nversion %s\ndriver %s\n"
                           "platform %s\n%s",
                 options_for(d, image).text, texts[0], texts[1], texts[2], texts[3], texts[4],
                 image->source) < 0)
        key = NULL;
    for (size_t k = 0; k < 5; k++)
        free(texts[k]);
    return key;
}

static int32_t build(const iron__opencl_device *d, const iron__gpu_image *image,
                     iron__cl_program *program) {
    return d->api->clBuildProgram(program, 1, &d->entry->id, options_for(d, image).text, NULL,
                                  NULL);
}

/* False: not kept, or refused by the driver. */
static bool build_kept(const iron__opencl_device *d, const iron__gpu_image *image, const char *key,
                       iron__cl_program **out) {
    size_t bytes = 0;
    unsigned char *binary = iron__opencl_cache_read(key, &bytes);
    const unsigned char *binaries[] = {binary};
    int32_t verdict = IRON_CL_SUCCESS, code = IRON_CL_SUCCESS;

    if (!binary)
        return false;
    *out = d->api->clCreateProgramWithBinary(d->context, 1, &d->entry->id, &bytes, binaries,
                                             &verdict, &code);
    free(binary);
    if (*out && code == IRON_CL_SUCCESS && verdict == IRON_CL_SUCCESS &&
        build(d, image, *out) == IRON_CL_SUCCESS)
        return true;
    if (*out)
        d->api->clReleaseProgram(*out);
    *out = NULL;
    return false;
}

static void keep(const iron__opencl_device *d, iron__cl_program *program, const char *key) {
    size_t bytes = 0;
    unsigned char *binary;

    if (d->api->clGetProgramInfo(program, IRON_CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes,
                                 NULL) != IRON_CL_SUCCESS ||
        bytes == 0)
        return;
    binary = malloc(bytes);
    if (binary &&
        d->api->clGetProgramInfo(program, IRON_CL_PROGRAM_BINARIES, sizeof(unsigned char *),
                                 (void *)&binary, NULL) == IRON_CL_SUCCESS)
        iron__opencl_cache_write(key, binary, bytes);
    free(binary);
}

/* The log's beginning as one line: blanks and line ends become one blank. */
static void shorten_log(const char *log, char *line, size_t size) {
    size_t length = 0;

    for (; *log && length + 1 < size; log++) {
        bool is_blank = (unsigned char)*log <= ' ';

        if (!is_blank)
            line[length++] = *log;
        else if (length > 0 && line[length - 1] != ' ')
            line[length++] = ' ';
    }
    length -= length > 0 && line[length - 1] == ' ';
    line[length] = '\0';
}

static iron_status fail_build(const iron__opencl_device *d, iron__cl_program *program, int32_t code,
                              const char *name, iron_error *err) {
    char line[sizeof err->text] = "there is no build log; update the driver";
    size_t bytes = 0;
    char *log = NULL;

    if (d->api->clGetProgramBuildInfo(program, d->entry->id, IRON_CL_PROGRAM_BUILD_LOG, 0, NULL,
                                      &bytes) == IRON_CL_SUCCESS)
        log = calloc(1, bytes + 1);
    if (log &&
        d->api->clGetProgramBuildInfo(program, d->entry->id, IRON_CL_PROGRAM_BUILD_LOG, bytes, log,
                                      NULL) == IRON_CL_SUCCESS &&
        log[strspn(log, " \t\r\n")] != '\0')
        shorten_log(log, line, sizeof line);
    free(log);
    return iron__fail(err, IRON_OPENCL_DRIVER_STATUS, code,
                      "opencl: clBuildProgram failed: %s; correct '%s': %s",
                      iron__opencl_error_name(code).text, name, line);
}

static iron_status build_source(iron__opencl_device *d, const iron__gpu_image *image,
                                iron__cl_program **out, iron_error *err) {
    const char *sources[] = {image->source};
    int32_t code = IRON_CL_SUCCESS;
    iron__cl_program *program =
        d->api->clCreateProgramWithSource(d->context, 1, sources, NULL, &code);

    IRON_TRY(iron__opencl_check(&d->base, code, "clCreateProgramWithSource", err));
    code = build(d, image, program);
    if (code != IRON_CL_SUCCESS) {
        iron_status status = code == IRON_CL_BUILD_PROGRAM_FAILURE
                                 ? fail_build(d, program, code, image->name, err)
                                 : iron__opencl_check(&d->base, code, "clBuildProgram", err);

        d->api->clReleaseProgram(program);
        return status;
    }
    *out = program;
    return IRON_OK;
}

static iron_status build_program(iron__opencl_device *d, const iron__gpu_image *image,
                                 iron__cl_program **out, iron_error *err) {
    char *key = make_key(d, image);
    iron_status status = IRON_OK;

    *out = key ? iron__opencl_shared_program(d, key) : NULL;
    if (*out) {
        free(key);
        return IRON_OK;
    }
    if (!key || !build_kept(d, image, key, out)) {
        status = build_source(d, image, out, err);
        if (status == IRON_OK && key)
            keep(d, *out, key);
    }
    if (status == IRON_OK && key)
        iron__opencl_shared_keep(d, key, *out);
    free(key);
    return status;
}

iron_status iron__opencl_program_load(iron__gpu_device *device, const iron__gpu_image *image,
                                      iron__gpu_program **out, iron_error *err) {
    iron__opencl_device *d = iron__opencl_device_of(device);
    iron__gpu_program *program;
    iron_status status;

    *out = NULL;
    IRON_FAIL_IF(!image->source, err, IRON_E_UNSUPPORTED,
                 "opencl: this build holds no OpenCL text of '%s'; build with OpenCL", image->name);
    program = iron__opencl_new(sizeof *program, "an OpenCL program", err);
    if (!program)
        return IRON_E_NOMEM;
    program->device = d;
    snprintf(program->name, sizeof program->name, "%s", image->name);
    status = build_program(d, image, &program->native, err);
    if (status != IRON_OK) {
        iron__opencl_delete(program);
        return status;
    }
    *out = program;
    return IRON_OK;
}

void iron__opencl_program_unload(iron__gpu_program *program) {
    const iron__opencl_api *cl;

    if (!program)
        return;
    cl = program->device->api;
    iron__opencl_kernels_destroy(program);
    cl->clReleaseProgram(program->native);
    iron__opencl_delete(program);
}

/* OpenCL has no constant memory of a program that the host could write: kernels are given a buffer,
 * and read it as constant. */
iron_status iron__opencl_constant_find(iron__gpu_program *program, const char *name, size_t bytes,
                                       iron__gpu_buffer **out, iron_error *err) {
    (void)name;
    return iron__opencl_buffer_create(&program->device->base, IRON_GPU_MEMORY_DEVICE, bytes, out,
                                      err);
}
