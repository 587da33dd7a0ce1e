/* SPDX-License-Identifier: MIT */
/*
 * atax_openblas.c: what a user of a BLAS writes for y = A'(A x): two gemv, the second transposed,
 * with a vector between them. A is read from memory twice where it does not fit the caches.
 *
 *   bytes   2 * rows * cols * element, and the three vectors, which are small
 */
#include "atax_peer.h"
#include "openblas_peer.h"

#include <stdlib.h>

typedef struct work {
    openblas_case c;
    const void *a, *x;
    void *between, *y;
} work;

static int open_atax(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    size_t element = atax_element(c, why, why_size);
    openblas_case own;
    work *w;

    *state = NULL;
    if (element == 0 || openblas_take(c, element, &own, why, why_size) != 0)
        return 1;
    w = calloc(1, sizeof *w);
    if (!w)
        return peer_refuse(why, why_size, "out of memory");
    *w = (work){.c = own,
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
    blas.sgemv(CblasRowMajor, CblasNoTrans, w->c.rows, w->c.cols, 1, w->a, w->c.cols, w->x, 1, 0,
               w->between, 1);
    blas.sgemv(CblasRowMajor, CblasTrans, w->c.rows, w->c.cols, 1, w->a, w->c.cols, w->between, 1,
               0, w->y, 1);
}

static void run_f64(const work *w) {
    blas.dgemv(CblasRowMajor, CblasNoTrans, w->c.rows, w->c.cols, 1, w->a, w->c.cols, w->x, 1, 0,
               w->between, 1);
    blas.dgemv(CblasRowMajor, CblasTrans, w->c.rows, w->c.cols, 1, w->a, w->c.cols, w->between, 1,
               0, w->y, 1);
}

static int run_atax(void *state, char *why, size_t why_size) {
    const work *w = state;

    (void)why;
    (void)why_size;
    openblas_use_threads(w->c.threads);
    if (w->c.is_f64)
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
