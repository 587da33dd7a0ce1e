/* SPDX-License-Identifier: MIT */
/*
 * openblas_rows.c: the plug-in around OpenBLAS: loads the library, and lists the rows.
 *
 * Its idle threads spin, for a tenth of a second unless told otherwise, and would take the
 * processor from whoever has the next turn; how long is read from the environment when the library
 * is loaded. So it is loaded here, with 2^20 cycles of spinning: long enough for its own next call.
 */
#include "openblas_peer.h"
#include "peer_words.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPIN_VARIABLE "OPENBLAS_THREAD_TIMEOUT"
#define SPIN_CYCLES   "20" /* as a power of two */

openblas blas;

void openblas_use_threads(int threads) {
    if (blas.get_threads() != threads)
        blas.set_threads(threads);
}

int openblas_take(const iron_peer_case *c, size_t element, openblas_case *out, char *why,
                  size_t why_size) {
    if (c->rows > INT_MAX || c->cols > INT_MAX)
        return peer_refuse(why, why_size, "OpenBLAS counts rows and columns in an int");
    *out = (openblas_case){.is_f64 = element == sizeof(double),
                           .threads = c->threads > 0 && c->threads <= INT_MAX ? (int)c->threads : 1,
                           .rows = (int)c->rows,
                           .cols = (int)c->cols};
    return 0;
}

/* "0.3.21 neoversev1" out of "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...", and the kernels that it
 * chose for this processor. */
static void name_version(char *version, size_t size) {
    const char *config = blas.get_config(), *word = strchr(config, ' ');

    word = word ? word + 1 : config;
    snprintf(version, size, "%.*s %s", (int)strcspn(word, " "), word, blas.get_corename());
}

/* omatcopy is an extension; without it there is a row less. */
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
    static iron_peer rows[2];
    static char version[64];
    static iron_peer_list list = {IRON_PEER_ABI, "OpenBLAS", version, rows, 1};

    if (!load())
        return NULL;
    rows[0] = peer_openblas_atax;
    rows[1] = peer_openblas_transpose;
    list.count = blas.somatcopy && blas.domatcopy ? 2 : 1;
    name_version(version, sizeof version);
    return &list;
}
