/* SPDX-License-Identifier: MIT */
/*
 * cublas.c: cuBLAS for atax and transpose. cuBLAS is column-major: our row-major A is its matrix of
 * cols x rows, transposed. The _64 functions take any size (CUDA 12 and later).
 *
 * atax, y = A'(A x): two gemv with a vector between them: A x uses the transposed matrix, A' t the
 * plain one. A is read from device memory twice.
 *
 *   bytes   2 * rows * cols * element, and three small vectors
 *
 * Everything is allocated in open: the handle, the vector, and a workspace, without which the first
 * run would allocate one. Setting a stream discards the workspace, so the stream comes first.
 *
 * transpose, B = A^T: one geam, a sum of two matrices, each transposed or not, with nothing to add.
 * The second matrix, times 0, is not read; B itself has a size that geam accepts for it.
 *
 *   bytes   2 * rows * cols * element: A read once, B written once
 */
#include "cuda_peer.h"
#include "peer.h"

#include <cublas_v2.h>
#include <stdbool.h>
#include <stdlib.h>

static int cublas_check(cublasStatus_t status, const char *what, char *why, size_t why_size) {
    if (status == CUBLAS_STATUS_SUCCESS)
        return 0;
    snprintf(why, why_size, "%s failed: %s", what, cublasGetStatusString(status));
    return 1;
}

/* NVIDIA's recommendation for Hopper; older cards need 4 MiB. */
#define WORKSPACE_BYTES ((size_t)32 << 20)

typedef struct cublas_work {
    bool is_f64;
    int device;
    int64_t rows, cols;
    const void *a, *x;
    void *between, *workspace; /* of atax */
    void *out;
    cublasHandle_t handle;
} cublas_work;

static void close_work(void *state) {
    cublas_work *w = state;

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

/* The handle, and memory for atax. */
static int allocate(cublas_work *w, void *stream, size_t element, char *why, size_t size) {
    return cuda_set_device_of(w->out, &w->device, why, size) ||
           cublas_check(cublasCreate(&w->handle), "cublasCreate", why, size) ||
           cublas_check(cublasSetStream(w->handle, stream), "cublasSetStream", why, size) ||
           (w->x &&
            (cuda_check(cudaMalloc(&w->between, (size_t)w->rows * element), "cudaMalloc", why,
                        size) ||
             cuda_check(cudaMalloc(&w->workspace, WORKSPACE_BYTES), "cudaMalloc", why, size) ||
             cublas_check(cublasSetWorkspace(w->handle, w->workspace, WORKSPACE_BYTES),
                          "cublasSetWorkspace", why, size)));
}

static int open_work(const iron_peer_case *c, bool is_atax, void **state, char *why,
                     size_t why_size) {
    size_t element = peer_element(c, is_atax, why, why_size);
    cublas_work *w;

    *state = NULL;
    if (element == 0)
        return 1;
    w = calloc(1, sizeof *w);
    if (!w)
        return peer_refuse(why, why_size, "out of memory");
    *w = (cublas_work){.is_f64 = element == sizeof(double),
                       .rows = (int64_t)c->rows,
                       .cols = (int64_t)c->cols,
                       .a = c->inputs[0],
                       .x = is_atax ? c->inputs[1] : NULL,
                       .out = c->output};
    if (allocate(w, c->stream, element, why, why_size)) {
        close_work(w);
        return 1;
    }
    *state = w;
    return 0;
}

static int open_atax(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    return open_work(c, true, state, why, why_size);
}

static int open_transpose(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    return open_work(c, false, state, why, why_size);
}

/* A product with the matrix or its transpose, and the transposed copy, by the functions of the
 * element type. */
#define GEMV(gemv, type, w, op, x, y)                                                              \
    gemv((w)->handle, (op), (w)->cols, (w)->rows, &(const type){1}, (w)->a, (w)->cols, (x), 1,     \
         &(const type){0}, (y), 1)
#define GEAM(geam, type, w)                                                                        \
    geam((w)->handle, CUBLAS_OP_T, CUBLAS_OP_N, (w)->rows, (w)->cols, &(const type){1}, (w)->a,    \
         (w)->cols, &(const type){0}, (w)->out, (w)->rows, (w)->out, (w)->rows)

static cublasStatus_t gemv(const cublas_work *w, cublasOperation_t op, const void *x, void *y) {
    return w->is_f64 ? GEMV(cublasDgemv_64, double, w, op, x, y)
                     : GEMV(cublasSgemv_64, float, w, op, x, y);
}

static int run_atax(void *state, char *why, size_t why_size) {
    const cublas_work *w = state;

    return cuda_check(cudaSetDevice(w->device), "cudaSetDevice", why, why_size) ||
           cublas_check(gemv(w, CUBLAS_OP_T, w->x, w->between), "gemv", why, why_size) ||
           cublas_check(gemv(w, CUBLAS_OP_N, w->between, w->out), "gemv", why, why_size);
}

static int run_transpose(void *state, char *why, size_t why_size) {
    const cublas_work *w = state;

    return cuda_check(cudaSetDevice(w->device), "cudaSetDevice", why, why_size) ||
           cublas_check(w->is_f64 ? GEAM(cublasDgeam_64, double, w)
                                  : GEAM(cublasSgeam_64, float, w),
                        "geam", why, why_size);
}

static const iron_peer rows[] = {
    {sizeof rows[0], "atax.cuda.cublas", "two gemv of cuBLAS, the second transposed", "f32 f64", 2,
     open_atax, run_atax, close_work, NULL},
    {sizeof rows[0], "transpose.cuda.cublas", "one geam of cuBLAS, transposed, with nothing to add",
     "f32 f64", 1, open_transpose, run_transpose, close_work, NULL},
};

const iron_peer_list *iron_peer_list_get(void) {
    static char version[32];
    static const iron_peer_list list = {IRON_PEER_ABI, "cuBLAS", version, rows, 2};
    int major = 0, minor = 0, patch = 0;

    cublasGetProperty(MAJOR_VERSION, &major); /* needs no handle, which would need a device */
    cublasGetProperty(MINOR_VERSION, &minor);
    cublasGetProperty(PATCH_LEVEL, &patch);
    snprintf(version, sizeof version, "%d.%d.%d", major, minor, patch);
    return &list;
}
