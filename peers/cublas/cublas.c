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

static int create_handle(cublas_work *w, void *stream, char *why, size_t size) {
    return cuda_set_device_of(w->out, &w->device, why, size) ||
           cublas_check(cublasCreate(&w->handle), "cublasCreate", why, size) ||
           cublas_check(cublasSetStream(w->handle, stream), "cublasSetStream", why, size);
}

/* Memory for atax. */
static int allocate(cublas_work *w, size_t element, char *why, size_t size) {
    return cuda_check(cudaMalloc(&w->between, (size_t)w->rows * element), "cudaMalloc", why,
                      size) ||
           cuda_check(cudaMalloc(&w->workspace, WORKSPACE_BYTES), "cudaMalloc", why, size) ||
           cublas_check(cublasSetWorkspace(w->handle, w->workspace, WORKSPACE_BYTES),
                        "cublasSetWorkspace", why, size);
}

/* element is 0 if the case was refused. */
static int open_work(const iron_peer_case *c, size_t element, bool is_atax, void **state, char *why,
                     size_t why_size) {
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
    if (create_handle(w, c->stream, why, why_size) ||
        (is_atax && allocate(w, element, why, why_size))) {
        close_work(w);
        return 1;
    }
    *state = w;
    return 0;
}

static int open_atax(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    return open_work(c, atax_element(c, why, why_size), true, state, why, why_size);
}

static int open_transpose(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    return open_work(c, transpose_element(c, why, why_size), false, state, why, why_size);
}

static cublasStatus_t gemv_f32(const cublas_work *w) {
    const float one = 1, zero = 0;
    cublasStatus_t status = cublasSgemv_64(w->handle, CUBLAS_OP_T, w->cols, w->rows, &one, w->a,
                                           w->cols, w->x, 1, &zero, w->between, 1);

    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    return cublasSgemv_64(w->handle, CUBLAS_OP_N, w->cols, w->rows, &one, w->a, w->cols, w->between,
                          1, &zero, w->out, 1);
}

static cublasStatus_t gemv_f64(const cublas_work *w) {
    const double one = 1, zero = 0;
    cublasStatus_t status = cublasDgemv_64(w->handle, CUBLAS_OP_T, w->cols, w->rows, &one, w->a,
                                           w->cols, w->x, 1, &zero, w->between, 1);

    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    return cublasDgemv_64(w->handle, CUBLAS_OP_N, w->cols, w->rows, &one, w->a, w->cols, w->between,
                          1, &zero, w->out, 1);
}

static int run_atax(void *state, char *why, size_t why_size) {
    const cublas_work *w = state;

    if (cuda_check(cudaSetDevice(w->device), "cudaSetDevice", why, why_size))
        return 1;
    return cublas_check(w->is_f64 ? gemv_f64(w) : gemv_f32(w), "gemv", why, why_size);
}

static cublasStatus_t geam_f32(const cublas_work *w) {
    const float one = 1, zero = 0;

    return cublasSgeam_64(w->handle, CUBLAS_OP_T, CUBLAS_OP_N, w->rows, w->cols, &one, w->a,
                          w->cols, &zero, w->out, w->rows, w->out, w->rows);
}

static cublasStatus_t geam_f64(const cublas_work *w) {
    const double one = 1, zero = 0;

    return cublasDgeam_64(w->handle, CUBLAS_OP_T, CUBLAS_OP_N, w->rows, w->cols, &one, w->a,
                          w->cols, &zero, w->out, w->rows, w->out, w->rows);
}

static int run_transpose(void *state, char *why, size_t why_size) {
    const cublas_work *w = state;

    if (cuda_check(cudaSetDevice(w->device), "cudaSetDevice", why, why_size))
        return 1;
    return cublas_check(w->is_f64 ? geam_f64(w) : geam_f32(w), "geam", why, why_size);
}

/* Without a handle, which would need a device. */
static void name_version(char *version, size_t size) {
    int major = 0, minor = 0, patch = 0;

    cublasGetProperty(MAJOR_VERSION, &major);
    cublasGetProperty(MINOR_VERSION, &minor);
    cublasGetProperty(PATCH_LEVEL, &patch);
    snprintf(version, size, "%d.%d.%d", major, minor, patch);
}

static const iron_peer rows[] = {
    {.struct_size = sizeof rows[0],
     .name = "atax.cuda.cublas",
     .idea = "two gemv of cuBLAS, the second transposed",
     .dtypes = "f32 f64",
     .passes = 2,
     .open = open_atax,
     .run = run_atax,
     .close = close_work},
    {.struct_size = sizeof rows[0],
     .name = "transpose.cuda.cublas",
     .idea = "one geam of cuBLAS, transposed, with nothing to add",
     .dtypes = "f32 f64",
     .passes = 1,
     .open = open_transpose,
     .run = run_transpose,
     .close = close_work},
};

const iron_peer_list *iron_peer_list_get(void) {
    static char version[32];
    static const iron_peer_list list = {IRON_PEER_ABI, "cuBLAS", version, rows, 2};

    name_version(version, sizeof version);
    return &list;
}
