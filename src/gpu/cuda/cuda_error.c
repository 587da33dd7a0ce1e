/* SPDX-License-Identifier: MIT */
/*
 * cuda_error.c: what a driver's error means to iron: a status, whether the device can go on, and
 * what the user can do.
 *
 * Two kinds. Errors of one call are listed below: a wrong argument, no memory, something that the
 * card or this moment does not allow. The device is as good as before. Everything else marks the
 * device: illegal addresses, timeouts, failed launches, memory errors, lost contexts. CUDA calls
 * those sticky; they belong to work queued earlier and come back from every later call. An error
 * that we have never heard of is taken for one of them: there is no ground to go on with.
 */
#include "gpu/cuda/cuda_backend.h"

#include "core/fail.h"

typedef struct verdict {
    iron__cu_result code;
    iron_status status;
    const char *advice;
} verdict;

static const char rebuild[] = "rebuild with IRON_CUDA_ARCHS for this card";

static const verdict of_one_call[] = {
    {IRON_CUDA_ERROR_INVALID_VALUE, IRON_E_ARG, "check the sizes asked for"},
    {IRON_CUDA_ERROR_INVALID_DEVICE, IRON_E_ARG, "list the devices with iron info"},
    {IRON_CUDA_ERROR_INVALID_HANDLE, IRON_E_ARG, "check that it belongs to this device"},
    {IRON_CUDA_ERROR_NOT_FOUND, IRON_E_ARG, "check the name"},
    {IRON_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, IRON_E_ARG, "launch fewer threads a group"},
    {IRON_CUDA_ERROR_OUT_OF_MEMORY, IRON_E_NOMEM, "free memory of the device, or ask for less"},
    {IRON_CUDA_ERROR_NO_BINARY_FOR_GPU, IRON_E_UNSUPPORTED, rebuild},
    {IRON_CUDA_ERROR_INVALID_IMAGE, IRON_E_UNSUPPORTED, rebuild},
    {IRON_CUDA_ERROR_INVALID_PTX, IRON_E_UNSUPPORTED, rebuild},
    {IRON_CUDA_ERROR_JIT_COMPILER_NOT_FOUND, IRON_E_UNSUPPORTED, rebuild},
    {IRON_CUDA_ERROR_UNSUPPORTED_PTX_VERSION, IRON_E_UNSUPPORTED, rebuild},
    {IRON_CUDA_ERROR_JIT_COMPILATION_DISABLED, IRON_E_UNSUPPORTED, rebuild},
    {IRON_CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, IRON_E_UNSUPPORTED, "launch fewer groups"},
    {IRON_CUDA_ERROR_NOT_PERMITTED, IRON_E_UNSUPPORTED, "use another mode or device"},
    {IRON_CUDA_ERROR_NOT_SUPPORTED, IRON_E_UNSUPPORTED, "use another mode or device"},
    {IRON_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, IRON_E_UNSUPPORTED, "use another queue"},
    {IRON_CUDA_ERROR_OPERATING_SYSTEM, IRON_E_IO, "see the system's log and limits"},
    {IRON_CUDA_ERROR_NOT_READY, IRON_E_STATE, "wait for the work first"},
};

static const verdict lasting = {0, IRON_E_IO, "start the program again to use this device"};
static const verdict capturing = {0, IRON_E_STATE, "record again"};

static const verdict *verdict_of(iron__cu_result code) {
    for (size_t k = 0; k < sizeof of_one_call / sizeof of_one_call[0]; k++)
        if (of_one_call[k].code == code)
            return &of_one_call[k];
    if (code >= IRON_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
        code <= IRON_CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
        return &capturing;
    return &lasting;
}

bool iron__cuda_lacks_code(iron__cu_result code) { return verdict_of(code)->advice == rebuild; }

iron_status iron__cuda_report(const iron__cuda_driver *driver, iron_error *err,
                              const char *function, iron__cu_result code) {
    const verdict *v;
    char words[160];

    if (code == IRON_CUDA_SUCCESS)
        return IRON_OK;
    v = verdict_of(code);
    iron__cuda_words(driver, code, words, sizeof words);
    return iron__fail(err, v->status, code, "cuda: %s failed: %s; %s", function, words, v->advice);
}

iron_status iron__cuda_check(iron__cuda_device *device, iron_error *err, const char *function,
                             iron__cu_result code) {
    iron_error own;

    if (code == IRON_CUDA_SUCCESS)
        return IRON_OK;
    iron__cuda_report(device->driver, &own, function, code);
    /* The first one is the cause; what follows are its echoes. */
    if (verdict_of(code) == &lasting && device->base.failure.status == IRON_OK)
        device->base.failure = own;
    if (err)
        *err = own;
    return own.status;
}
