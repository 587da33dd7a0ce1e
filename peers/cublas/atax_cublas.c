/* SPDX-License-Identifier: MIT */
/*
 * atax_cublas.c: what a user of CUDA writes for y = A'(A x): two gemv of cuBLAS with a vector
 * between them. A is read from the card's memory twice.
 *
 *   bytes   2 * rows * cols * element, and the three vectors, which are small
 *
 * cuBLAS counts columns first: our A, a row after the other, is its matrix of cols x rows,
 * transposed. So A x asks for the transposed one, and A' t for the plain one.
 *
 * Everything is taken in open: the handle, the vector between, and a workspace, without which the
 * first run would allocate one. Setting a stream throws the workspace away, so the stream comes
 * first. The _64 functions take any size (CUDA 12 and later).
 */
#include "atax_peer.h"
#include "cublas_peer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What NVIDIA recommends for Hopper; 4 MiB would do for older cards. */
#define WORKSPACE_BYTES ((size_t)32 << 20)

typedef struct work {
    bool is_f64;
    int device;
    int64_t rows, cols;
    const void *a, *x;
    void *between, *y, *workspace;
    cublasHandle_t handle;
} work;

static void close_atax(void *state) {
    work *w = state;

    if (!w)
        return;
    if (cudaSetDevice(w->device) == cudaSuccess) {
        if (w->handle)
            cublasDestroy(w->handle);
        cudaFree(w->between);
        cudaFree(w->workspace);
    }
    free(w);
}

static int take(work *w, void *stream, size_t element, char *why, size_t size) {
    if (cuda_enter_device_of(w->y, &w->device, why, size) ||
        cuda_says(cudaMalloc(&w->between, (size_t)w->rows * element), "cudaMalloc", why, size) ||
        cuda_says(cudaMalloc(&w->workspace, WORKSPACE_BYTES), "cudaMalloc", why, size) ||
        cublas_says(cublasCreate(&w->handle), "cublasCreate", why, size) ||
        cublas_says(cublasSetStream(w->handle, stream), "cublasSetStream", why, size))
        return 1;
    return cublas_says(cublasSetWorkspace(w->handle, w->workspace, WORKSPACE_BYTES),
                       "cublasSetWorkspace", why, size);
}

static int open_atax(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    size_t element = atax_element(c, why, why_size);
    work *w;

    *state = NULL;
    if (element == 0)
        return 1;
    w = calloc(1, sizeof *w);
    if (!w)
        return peer_refuse(why, why_size, "out of memory");
    *w = (work){.is_f64 = element == sizeof(double),
                .rows = (int64_t)c->rows,
                .cols = (int64_t)c->cols,
                .a = c->inputs[0],
                .x = c->inputs[1],
                .y = c->output};
    if (take(w, c->stream, element, why, why_size)) {
        close_atax(w);
        return 1;
    }
    *state = w;
    return 0;
}

static cublasStatus_t run_f32(const work *w) {
    const float one = 1, zero = 0;
    cublasStatus_t status = cublasSgemv_64(w->handle, CUBLAS_OP_T, w->cols, w->rows, &one, w->a,
                                           w->cols, w->x, 1, &zero, w->between, 1);

    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    return cublasSgemv_64(w->handle, CUBLAS_OP_N, w->cols, w->rows, &one, w->a, w->cols, w->between,
                          1, &zero, w->y, 1);
}

static cublasStatus_t run_f64(const work *w) {
    const double one = 1, zero = 0;
    cublasStatus_t status = cublasDgemv_64(w->handle, CUBLAS_OP_T, w->cols, w->rows, &one, w->a,
                                           w->cols, w->x, 1, &zero, w->between, 1);

    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    return cublasDgemv_64(w->handle, CUBLAS_OP_N, w->cols, w->rows, &one, w->a, w->cols, w->between,
                          1, &zero, w->y, 1);
}

static int run_atax(void *state, char *why, size_t why_size) {
    const work *w = state;

    if (cuda_says(cudaSetDevice(w->device), "cudaSetDevice", why, why_size))
        return 1;
    return cublas_says(w->is_f64 ? run_f64(w) : run_f32(w), "gemv", why, why_size);
}

const iron_peer peer_cublas_atax = {
    .struct_size = sizeof peer_cublas_atax,
    .name = "atax.cuda.cublas",
    .idea = "two gemv of cuBLAS, the second transposed",
    .dtypes = "f32 f64",
    .passes = 2,
    .open = open_atax,
    .run = run_atax,
    .close = close_atax,
};
