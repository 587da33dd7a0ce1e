/* SPDX-License-Identifier: MIT */
/*
 * cuda_nvrtc.c: compiles a user's CUDA text where there is no nvcc, with NVRTC, a library of the
 * toolkit and of many Python packages. Loaded for the first text and kept: it is large.
 */
#include "gpu/cuda/cuda_internal.h"

#include "core/fail.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* NVRTC's functions return 0, or a code that nvrtcGetErrorString explains. */
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
    static const iron__gpu_symbol symbols[] = {
        SYMBOL("nvrtcCreateProgram", create),   SYMBOL("nvrtcCompileProgram", compile),
        SYMBOL("nvrtcGetProgramLog", log),      SYMBOL("nvrtcGetProgramLogSize", log_size),
        SYMBOL("nvrtcGetCUBIN", code),          SYMBOL("nvrtcGetCUBINSize", code_size),
        SYMBOL("nvrtcDestroyProgram", destroy), SYMBOL("nvrtcGetErrorString", explain)};
    static const char *const names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"};
    iron__gpu_library l = {.handle = NULL};

    for (size_t k = 0; k < sizeof names / sizeof names[0] && !l.handle; k++)
        l = iron__gpu_library_open("IRON_NVRTC_LIBRARY", names[k], symbols,
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

iron_status iron__cuda_compile(const char *source, uint32_t version, char **code, iron_error *err) {
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
