/* SPDX-License-Identifier: MIT */
/*
 * openblas.c: OpenBLAS for atax and transpose.
 *
 * atax, y = A'(A x): two gemv, the second transposed, with a vector between them. A is read from
 * memory twice where it does not fit into the caches.
 *
 *   bytes   2 * rows * cols * element, and three small vectors
 *
 * transpose, B = A^T: omatcopy, an extension of OpenBLAS and others that copies, scales and
 * transposes. OpenBLAS does it on one thread.
 *
 *   bytes   2 * rows * cols * element: A read once, B written once
 *
 * Idle threads of OpenBLAS spin, by default for a tenth of a second, and would take the processor
 * from the contender that is timed next; the library reads the time from the environment when it is
 * loaded. So it is loaded here, with 2^18 cycles of spinning: about as long as ours.
 */
#include "peer.h"

#include <cblas.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

#define SPIN_VARIABLE "OPENBLAS_THREAD_TIMEOUT"
#define SPIN_CYCLES   "18" /* as a power of two */

/* The functions that are called; loaded once, before the rows are listed. */
static struct {
    __typeof__(cblas_sgemv) *sgemv;
    __typeof__(cblas_dgemv) *dgemv;
    __typeof__(cblas_somatcopy) *somatcopy;
    __typeof__(cblas_domatcopy) *domatcopy;
    __typeof__(openblas_get_num_threads) *get_threads;
    __typeof__(openblas_set_num_threads) *set_threads;
    __typeof__(openblas_get_config) *get_config;
    __typeof__(openblas_get_corename) *get_corename;
} blas;

/* A case with sizes as OpenBLAS takes them: blasint, an int in all usual builds. */
typedef struct blas_work {
    bool is_f64;
    int threads, rows, cols;
    const void *a, *x;
    void *between; /* of atax */
    void *out;
} blas_work;

/* The number of threads is a setting of the whole library: set before every run, since other
 * rows of the same race may want another. */
static void use_threads(int threads) {
    if (blas.get_threads() != threads)
        blas.set_threads(threads);
}

static void close_work(void *state) {
    blas_work *w = state;

    if (w)
        free(w->between);
    free(w);
}

static int open_work(const iron_peer_case *c, bool is_atax, void **state, char *why,
                     size_t why_size) {
    size_t element = peer_element(c, is_atax, why, why_size);
    blas_work *w;

    *state = NULL;
    if (element == 0)
        return 1;
    if (c->rows > INT_MAX || c->cols > INT_MAX)
        return peer_refuse(why, why_size, "OpenBLAS counts rows and columns in an int");
    w = calloc(1, sizeof *w);
    if (!w)
        return peer_refuse(why, why_size, "out of memory");
    *w = (blas_work){.is_f64 = element == sizeof(double),
                     .threads = c->threads > 0 && c->threads <= INT_MAX ? (int)c->threads : 1,
                     .rows = (int)c->rows,
                     .cols = (int)c->cols,
                     .a = c->inputs[0],
                     .x = is_atax ? c->inputs[1] : NULL,
                     .between = is_atax ? calloc((size_t)c->rows, element) : NULL,
                     .out = c->output};
    if (is_atax && !w->between) {
        free(w);
        return peer_refuse(why, why_size, "out of memory");
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

/* Both products, by the gemv of the element type. */
#define GEMV_TWICE(gemv, w)                                                                        \
    (gemv(CblasRowMajor, CblasNoTrans, (w)->rows, (w)->cols, 1, (w)->a, (w)->cols, (w)->x, 1, 0,   \
          (w)->between, 1),                                                                        \
     gemv(CblasRowMajor, CblasTrans, (w)->rows, (w)->cols, 1, (w)->a, (w)->cols, (w)->between, 1,  \
          0, (w)->out, 1))

static int run_atax(void *state, char *why, size_t why_size) {
    const blas_work *w = state;

    (void)why;
    (void)why_size;
    use_threads(w->threads);
    if (w->is_f64)
        GEMV_TWICE(blas.dgemv, w);
    else
        GEMV_TWICE(blas.sgemv, w);
    return 0;
}

static int run_transpose(void *state, char *why, size_t why_size) {
    const blas_work *w = state;

    (void)why;
    (void)why_size;
    use_threads(w->threads);
    if (w->is_f64)
        blas.domatcopy(CblasRowMajor, CblasTrans, w->rows, w->cols, 1, w->a, w->cols, w->out,
                       w->rows);
    else
        blas.somatcopy(CblasRowMajor, CblasTrans, w->rows, w->cols, 1, w->a, w->cols, w->out,
                       w->rows);
    return 0;
}

/* omatcopy is an extension; without it there is one row less. */
static bool find_all(void *handle) {
    const struct {
        void *to;
        const char *name;
        bool is_optional;
    } names[] = {{&blas.sgemv, "cblas_sgemv", false},
                 {&blas.dgemv, "cblas_dgemv", false},
                 {&blas.somatcopy, "cblas_somatcopy", true},
                 {&blas.domatcopy, "cblas_domatcopy", true},
                 {&blas.get_threads, "openblas_get_num_threads", false},
                 {&blas.set_threads, "openblas_set_num_threads", false},
                 {&blas.get_config, "openblas_get_config", false},
                 {&blas.get_corename, "openblas_get_corename", false}};

    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        void *symbol = dlsym(handle, names[k].name);

        if (!symbol && !names[k].is_optional)
            return false;
        memcpy(names[k].to, &symbol, sizeof symbol); /* a function's address (POSIX) */
    }
    return true;
}

static bool load(void) {
    void *handle;

    if (blas.get_corename)
        return true;
    setenv(SPIN_VARIABLE, SPIN_CYCLES, 0);                 /* keeps a value set by the user */
    handle = dlopen(OPENBLAS_FILE, RTLD_NOW | RTLD_LOCAL); /* the one this was built with */
    if (!handle)
        handle = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    return handle && find_all(handle);
}

static const iron_peer rows[] = {
    {sizeof rows[0], "atax.cpu.openblas", "two gemv of OpenBLAS, the second transposed", "f32 f64",
     2, open_atax, run_atax, close_work, NULL},
    {sizeof rows[0], "transpose.cpu.openblas", "omatcopy of OpenBLAS, on one thread", "f32 f64", 1,
     open_transpose, run_transpose, close_work, NULL},
};

/* NULL if the library is no longer there. The version is "0.3.21 neoversev1" out of "OpenBLAS
 * 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...", and the kernels that it chose for this processor. */
const iron_peer_list *iron_peer_list_get(void) {
    static char version[64];
    static iron_peer_list list = {IRON_PEER_ABI, "OpenBLAS", version, rows, 1};
    const char *config, *word;

    if (!load())
        return NULL;
    list.count = blas.somatcopy && blas.domatcopy ? 2 : 1;
    config = blas.get_config();
    word = strchr(config, ' ');
    word = word ? word + 1 : config;
    snprintf(version, sizeof version, "%.*s %s", (int)strcspn(word, " "), word,
             blas.get_corename());
    return &list;
}
