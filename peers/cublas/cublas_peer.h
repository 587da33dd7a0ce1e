/* SPDX-License-Identifier: MIT */
/*
 * cublas_peer.h: what the rows of cuBLAS share: its errors as sentences, and their names for the
 * list of them, which stands in cublas_rows.c.
 */
#ifndef IRON_PEERS_CUBLAS_PEER_H
#define IRON_PEERS_CUBLAS_PEER_H

#include "cuda_peer.h"

#include <iron/iron_peer.h>

#include <cublas_v2.h>

extern const iron_peer peer_cublas_atax, peer_cublas_transpose;

static inline int cublas_says(cublasStatus_t status, const char *what, char *why, size_t why_size) {
    if (status == CUBLAS_STATUS_SUCCESS)
        return 0;
    snprintf(why, why_size, "%s failed: %s", what, cublasGetStatusString(status));
    return 1;
}

#endif
