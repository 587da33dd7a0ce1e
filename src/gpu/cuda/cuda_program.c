/* SPDX-License-Identifier: MIT */
/*
 * cuda_program.c: the embedded machine code as a module on the card, and kernels and constant
 * memory in it by name.
 *
 * A fatbin holds code for some cards and text for newer ones, which the driver compiles while it
 * loads. A card that is neither gets IRON_E_UNSUPPORTED with what to build: that is a matter of the
 * build, and the device stays good. A driver may put the loading off until a kernel is asked for,
 * so both places look for it. The same name is the same kernel: what a launch has asked for of one
 * is the driver's state, and must be known to all who launch it.
 */
#include "gpu/cuda/cuda_backend.h"

#include "core/fail.h"
#include "core/memory.h"

#include <stdio.h>

struct iron__gpu_program {
    iron__cuda_device *device;
    const char *name; /* the image's, which outlives everything */
    iron__cu_module *module;
    iron__gpu_kernel *kernels;
};

/* The device lacks code: which one, and what to build. Other errors as everywhere. */
static iron_status check_image(const iron__gpu_program *program, const char *function,
                               iron__cu_result code, iron_error *err) {
    unsigned arch = program->device->base.info.version / 10;
    char words[160];

    if (!iron__cuda_lacks_code(code))
        return iron__cuda_check(program->device, err, function, code);
    iron__cuda_words(program->device->driver, code, words, sizeof words);
    return iron__fail(err, IRON_E_UNSUPPORTED, code,
                      "cuda: %s failed: %s: no code of '%.20s' for sm_%u; rebuild with "
                      "IRON_CUDA_ARCHS=%u",
                      function, words, program->name, arch, arch);
}

void iron__cuda_program_unload(iron__gpu_program *program) {
    if (!program)
        return;
    if (program->module)
        IRON_CU_DROP(program->device, cuModuleUnload, program->module);
    while (program->kernels) {
        iron__gpu_kernel *kernel = program->kernels;

        program->kernels = kernel->next;
        iron__release(iron__allocator_default(), kernel);
    }
    iron__release(iron__allocator_default(), program);
}

static iron_status load(iron__gpu_program *program, const void *code, iron_error *err) {
    iron__cuda_device *d = program->device;
    iron_status status;

    IRON_TRY(iron__cuda_enter(d, err));
    status = check_image(program, "cuModuleLoadData",
                         d->driver->cuModuleLoadData(&program->module, code), err);
    return iron__cuda_leave(d, status, err);
}

iron_status iron__cuda_program_load(iron__gpu_device *device, const iron__gpu_image *image,
                                    iron__gpu_program **out, iron_error *err) {
    iron__gpu_program *program;
    iron_status status;

    *out = NULL;
    IRON_FAIL_IF(!image->machine_code || image->machine_code == image->machine_code_end, err,
                 IRON_E_UNSUPPORTED,
                 "cuda: this build has no CUDA kernels of '%s'; rebuild where nvcc is installed",
                 image->name);
    program = iron__allocate(iron__allocator_default(), 1, sizeof *program, "a program", err);
    if (!program)
        return IRON_E_NOMEM;
    program->device = iron__cuda_device_of(device);
    program->name = image->name;
    status = load(program, image->machine_code, err);
    if (status != IRON_OK) {
        iron__cuda_program_unload(program);
        return status;
    }
    *out = program;
    return IRON_OK;
}

static iron_status find(iron__gpu_program *program, const char *name, iron__cu_function **function,
                        iron_error *err) {
    iron__cuda_device *d = program->device;
    iron__cu_result code;
    iron_status status;

    IRON_TRY(iron__cuda_enter(d, err));
    code = d->driver->cuModuleGetFunction(function, program->module, name);
    if (code == IRON_CUDA_ERROR_NOT_FOUND)
        status = iron__fail(err, IRON_E_ARG, code,
                            "cuda: program '%s' has no kernel '%.60s' (CUDA_ERROR_NOT_FOUND)",
                            program->name, name);
    else
        status = check_image(program, "cuModuleGetFunction", code, err);
    return iron__cuda_leave(d, status, err);
}

iron_status iron__cuda_kernel_find(iron__gpu_program *program, const char *name,
                                   iron__gpu_kernel **out, iron_error *err) {
    iron__cu_function *function = NULL;
    iron__gpu_kernel *kernel;

    *out = NULL;
    IRON_TRY(find(program, name, &function, err));
    for (kernel = program->kernels; kernel; kernel = kernel->next)
        if (kernel->function == function) {
            *out = kernel;
            return IRON_OK;
        }
    kernel = iron__allocate(iron__allocator_default(), 1, sizeof *kernel, "a kernel", err);
    if (!kernel)
        return IRON_E_NOMEM;
    kernel->function = function;
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    kernel->next = program->kernels;
    program->kernels = kernel;
    *out = kernel;
    return IRON_OK;
}

static iron_status find_constant(iron__gpu_program *program, const char *name,
                                 iron__gpu_buffer *buffer, iron_error *err) {
    iron__cuda_device *d = program->device;
    size_t bytes = 0;
    iron__cu_result code;

    IRON_TRY(iron__cuda_enter(d, err));
    code = d->driver->cuModuleGetGlobal_v2(&buffer->native, &bytes, program->module, name);
    if (code == IRON_CUDA_ERROR_NOT_FOUND)
        return iron__cuda_leave(d,
                                iron__fail(err, IRON_E_ARG, code,
                                           "cuda: program '%s' has no constant memory '%.60s' "
                                           "(CUDA_ERROR_NOT_FOUND)",
                                           program->name, name),
                                err);
    IRON_TRY(iron__cuda_leave(d, check_image(program, "cuModuleGetGlobal_v2", code, err), err));
    IRON_FAIL_IF(bytes < buffer->bytes, err, IRON_E_ARG,
                 "cuda: '%.60s' of program '%s' has %zu bytes, not %zu", name, program->name, bytes,
                 buffer->bytes);
    return IRON_OK;
}

iron_status iron__cuda_constant_find(iron__gpu_program *program, const char *name, size_t bytes,
                                     iron__gpu_buffer **out, iron_error *err) {
    iron__gpu_buffer *buffer;
    iron_status status;

    *out = NULL;
    buffer = iron__cuda_buffer_new(&program->device->base, IRON_GPU_MEMORY_DEVICE, bytes, err);
    if (!buffer)
        return IRON_E_NOMEM;
    buffer->is_borrowed = true; /* the module's */
    status = find_constant(program, name, buffer, err);
    if (status != IRON_OK) {
        iron__cuda_buffer_destroy(buffer);
        return status;
    }
    *out = buffer;
    return IRON_OK;
}

const char *iron__cuda_kernel_name(const iron__gpu_kernel *kernel) { return kernel->name; }
