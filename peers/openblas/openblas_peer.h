/* SPDX-License-Identifier: MIT */
/*
 * openblas_peer.h: what the rows of OpenBLAS share: the library as it was loaded, its number of
 * threads, sizes as it counts them, and their names for the list of them, which stands in
 * openblas_rows.c.
 */
#ifndef IRON_PEERS_OPENBLAS_PEER_H
#define IRON_PEERS_OPENBLAS_PEER_H

#include <iron/iron_peer.h>

#include <cblas.h>
#include <stdbool.h>

/* What is called of it. */
typedef struct openblas {
    __typeof__(cblas_sgemv) *sgemv;
    __typeof__(cblas_dgemv) *dgemv;
    __typeof__(cblas_somatcopy) *somatcopy;
    __typeof__(cblas_domatcopy) *domatcopy;
    __typeof__(openblas_get_num_threads) *get_threads;
    __typeof__(openblas_set_num_threads) *set_threads;
    __typeof__(openblas_get_config) *get_config;
    __typeof__(openblas_get_corename) *get_corename;
} openblas;

/* Filled once, before any row is known to anybody. */
extern openblas blas;

/* A setting of the whole OpenBLAS: before every run, since other rows of the same race may want
 * another. */
void openblas_use_threads(int threads);

/* A case as OpenBLAS takes it. Its sizes are OpenBLAS's blasint, an int in all usual builds. */
typedef struct openblas_case {
    bool is_f64;
    int threads, rows, cols;
} openblas_case;

/* 1, with `why` filled, where rows or columns are more than an int counts. */
int openblas_take(const iron_peer_case *c, size_t element, openblas_case *out, char *why,
                  size_t why_size);

extern const iron_peer peer_openblas_atax, peer_openblas_transpose;

#endif
