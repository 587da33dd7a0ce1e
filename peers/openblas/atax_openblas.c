/* SPDX-License-Identifier: MIT */
/*
 * atax_openblas.c: what a user of a BLAS writes for y = A'(A x): two gemv, the second transposed,
 * with a vector between them. A is read from memory twice where it does not fit the caches.
 *
 *   bytes   2 * rows * cols * element, and the three vectors, which are small
 *
 * The number of threads is a setting of the whole OpenBLAS: it is set before every run, since other
 * rows of the same race may want another. Sizes are OpenBLAS's blasint, an int in all usual builds.
 *
 * Its idle threads spin, for a tenth of a second unless told otherwise, and would take the
 * processor from whoever has the next turn; how long is read from the environment when the library
 * is loaded. So it is loaded here, with 2^20 cycles of spinning: long enough for its own next call.
 */
#include "atax_peer.h"

#include <cblas.h>

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPIN_VARIABLE "OPENBLAS_THREAD_TIMEOUT"
#define SPIN_CYCLES   "20" /* as a power of two */

/* What is called of it. */
typedef struct library {
    __typeof__(cblas_sgemv) *sgemv;
    __typeof__(cblas_dgemv) *dgemv;
    __typeof__(openblas_get_num_threads) *get_threads;
    __typeof__(openblas_set_num_threads) *set_threads;
    __typeof__(openblas_get_config) *get_config;
    __typeof__(openblas_get_corename) *get_corename;
} library;

static library blas; /* filled once, before any row is known to anybody */

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
    if (blas.get_threads() != w->threads)
        blas.set_threads(w->threads);
    if (w->is_f64)
        run_f64(w);
    else
        run_f32(w);
    return 0;
}

/* "0.3.21 neoversev1" out of "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...", and the kernels that it
 * chose for this processor. */
static void name_version(char *version, size_t size) {
    const char *config = blas.get_config(), *word = strchr(config, ' ');

    word = word ? word + 1 : config;
    snprintf(version, size, "%.*s %s", (int)strcspn(word, " "), word, blas.get_corename());
}

static bool find_all(void *handle) {
    const struct {
        void *to;
        const char *name;
    } names[] = {{&blas.sgemv, "cblas_sgemv"},
                 {&blas.dgemv, "cblas_dgemv"},
                 {&blas.get_threads, "openblas_get_num_threads"},
                 {&blas.set_threads, "openblas_set_num_threads"},
                 {&blas.get_config, "openblas_get_config"},
                 {&blas.get_corename, "openblas_get_corename"}};

    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        void *symbol = dlsym(handle, names[k].name);

        if (!symbol)
            return false;
        memcpy(names[k].to, &symbol, sizeof symbol); /* a function's address, as POSIX has it */
    }
    return true;
}

static bool load(void) {
    void *handle;

    if (blas.get_corename)
        return true;
    setenv(SPIN_VARIABLE, SPIN_CYCLES, 0);                 /* a user's own word counts */
    handle = dlopen(OPENBLAS_FILE, RTLD_NOW | RTLD_LOCAL); /* the one that this was built with */
    if (!handle)
        handle = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    return handle && find_all(handle);
}

/* NULL where the library is not there any more. */
const iron_peer_list *iron_peer_list_get(void) {
    static const iron_peer rows[] = {{
        .struct_size = sizeof rows[0],
        .name = "atax.cpu.openblas",
        .idea = "two gemv of OpenBLAS, the second transposed",
        .dtypes = "f32 f64",
        .passes = 2,
        .open = open_atax,
        .run = run_atax,
        .close = close_atax,
    }};
    static char version[64];
    static const iron_peer_list list = {IRON_PEER_ABI, "OpenBLAS", version, rows, 1};

    if (!load())
        return NULL;
    name_version(version, sizeof version);
    return &list;
}
