/* SPDX-License-Identifier: MIT */
/*
 * atax_openblas.c: what a user of a BLAS writes for y = A'(A x): two gemv, the second transposed,
 * with a vector between them. A is read from memory twice where it does not fit the caches.
 *
 *   bytes   2 * rows * cols * element, and the three vectors, which are small
 *
 * Sizes are OpenBLAS's blasint, an int in all usual builds.
 */
#include "atax_peer.h"
#include "openblas_peer.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct work {
    bool is_f64;
    int threads, rows, cols;
    const void *a, *x;
    void *between, *y;
} work;

static int open_atax(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    size_t element = atax_element(c, why, why_size);
    work *w;

    *state = NULL;
    if (element == 0)
        return 1;
    if (c->rows > INT_MAX || c->cols > INT_MAX)
        return peer_refuse(why, why_size, "OpenBLAS counts rows and columns in an int");
    w = calloc(1, sizeof *w);
    if (!w)
        return peer_refuse(why, why_size, "out of memory");
    *w = (work){.is_f64 = element == sizeof(double),
                .threads = c->threads > 0 && c->threads <= INT_MAX ? (int)c->threads : 1,
                .rows = (int)c->rows,
                .cols = (int)c->cols,
                .a = c->inputs[0],
                .x = c->inputs[1],
                .between = calloc((size_t)c->rows, element),
                .y = c->output};
    if (!w->between) {
        free(w);
        return peer_refuse(why, why_size, "out of memory");
    }
    *state = w;
    return 0;
}

static void close_atax(void *state) {
    work *w = state;

    if (w)
        free(w->between);
    free(w);
}

static void run_f32(const work *w) {
    blas.sgemv(CblasRowMajor, CblasNoTrans, w->rows, w->cols, 1, w->a, w->cols, w->x, 1, 0,
               w->between, 1);
    blas.sgemv(CblasRowMajor, CblasTrans, w->rows, w->cols, 1, w->a, w->cols, w->between, 1, 0,
               w->y, 1);
}

static void run_f64(const work *w) {
    blas.dgemv(CblasRowMajor, CblasNoTrans, w->rows, w->cols, 1, w->a, w->cols, w->x, 1, 0,
               w->between, 1);
    blas.dgemv(CblasRowMajor, CblasTrans, w->rows, w->cols, 1, w->a, w->cols, w->between, 1, 0,
               w->y, 1);
}

static int run_atax(void *state, char *why, size_t why_size) {
    const work *w = state;

    (void)why;
    (void)why_size;
    openblas_use_threads(w->threads);
    if (w->is_f64)
        run_f64(w);
    else
        run_f32(w);
    return 0;
}

const iron_peer peer_openblas_atax = {
    .struct_size = sizeof peer_openblas_atax,
    .name = "atax.cpu.openblas",
    .idea = "two gemv of OpenBLAS, the second transposed",
    .dtypes = "f32 f64",
    .passes = 2,
    .open = open_atax,
    .run = run_atax,
    .close = close_atax,
};
