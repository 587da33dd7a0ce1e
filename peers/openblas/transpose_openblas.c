/* SPDX-License-Identifier: MIT */
/*
 * transpose_openblas.c: what a user of a BLAS writes for B = A^T: omatcopy, an extension that
 * OpenBLAS has and others know too: a copy, scaled and transposed.
 *
 *   bytes   2 * rows * cols * element: A read once, B written once
 *
 * OpenBLAS does it on one thread.
 */
#include "openblas_peer.h"
#include "transpose_peer.h"

#include <stdlib.h>

typedef struct work {
    openblas_case c;
    const void *a;
    void *b;
} work;

static int open_transpose(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    size_t element = transpose_element(c, why, why_size);
    openblas_case own;
    work *w;

    *state = NULL;
    if (element == 0 || openblas_take(c, element, &own, why, why_size) != 0)
        return 1;
    w = calloc(1, sizeof *w);
    if (!w)
        return peer_refuse(why, why_size, "out of memory");
    *w = (work){.c = own, .a = c->inputs[0], .b = c->output};
    *state = w;
    return 0;
}

static int run_transpose(void *state, char *why, size_t why_size) {
    const work *w = state;

    (void)why;
    (void)why_size;
    openblas_use_threads(w->c.threads);
    if (w->c.is_f64)
        blas.domatcopy(CblasRowMajor, CblasTrans, w->c.rows, w->c.cols, 1, w->a, w->c.cols, w->b,
                       w->c.rows);
    else
        blas.somatcopy(CblasRowMajor, CblasTrans, w->c.rows, w->c.cols, 1, w->a, w->c.cols, w->b,
                       w->c.rows);
    return 0;
}

const iron_peer peer_openblas_transpose = {
    .struct_size = sizeof peer_openblas_transpose,
    .name = "transpose.cpu.openblas",
    .idea = "omatcopy of OpenBLAS, on one thread",
    .dtypes = "f32 f64",
    .passes = 1,
    .open = open_transpose,
    .run = run_transpose,
    .close = free,
};
