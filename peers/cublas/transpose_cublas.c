/* SPDX-License-Identifier: MIT */
/*
 * transpose_cublas.c: what a user of CUDA writes for B = A^T: one geam of cuBLAS, a sum of two
 * matrices, each transposed or not, with nothing to add.
 *
 *   bytes   2 * rows * cols * element: A read once, B written once
 *
 * cuBLAS counts columns first: our A, a row after the other, is its matrix of cols x rows, and our
 * B its matrix of rows x cols, the transposed one. The second matrix, times 0, is not read; as B
 * itself it has a size that geam accepts. The _64 functions take any size (CUDA 12 and later).
 */
#include "cublas_peer.h"
#include "transpose_peer.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct work {
    bool is_f64;
    int device;
    int64_t rows, cols;
    const void *a;
    void *b;
    cublasHandle_t handle;
} work;

static void close_transpose(void *state) {
    work *w = state;

    if (!w)
        return;
    if (w->handle && cudaSetDevice(w->device) == cudaSuccess)
        cublasDestroy(w->handle);
    free(w);
}

static int take(work *w, void *stream, char *why, size_t size) {
    return cuda_enter_device_of(w->b, &w->device, why, size) ||
           cublas_says(cublasCreate(&w->handle), "cublasCreate", why, size) ||
           cublas_says(cublasSetStream(w->handle, stream), "cublasSetStream", why, size);
}

static int open_transpose(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    size_t element = transpose_element(c, why, why_size);
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
                .b = c->output};
    if (take(w, c->stream, why, why_size)) {
        close_transpose(w);
        return 1;
    }
    *state = w;
    return 0;
}

static cublasStatus_t run_f32(const work *w) {
    const float one = 1, zero = 0;

    return cublasSgeam_64(w->handle, CUBLAS_OP_T, CUBLAS_OP_N, w->rows, w->cols, &one, w->a,
                          w->cols, &zero, w->b, w->rows, w->b, w->rows);
}

static cublasStatus_t run_f64(const work *w) {
    const double one = 1, zero = 0;

    return cublasDgeam_64(w->handle, CUBLAS_OP_T, CUBLAS_OP_N, w->rows, w->cols, &one, w->a,
                          w->cols, &zero, w->b, w->rows, w->b, w->rows);
}

static int run_transpose(void *state, char *why, size_t why_size) {
    const work *w = state;

    if (cuda_says(cudaSetDevice(w->device), "cudaSetDevice", why, why_size))
        return 1;
    return cublas_says(w->is_f64 ? run_f64(w) : run_f32(w), "geam", why, why_size);
}

const iron_peer peer_cublas_transpose = {
    .struct_size = sizeof peer_cublas_transpose,
    .name = "transpose.cuda.cublas",
    .idea = "one geam of cuBLAS, transposed, with nothing to add",
    .dtypes = "f32 f64",
    .passes = 1,
    .open = open_transpose,
    .run = run_transpose,
    .close = close_transpose,
};
