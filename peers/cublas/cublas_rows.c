/* SPDX-License-Identifier: MIT */
/*
 * cublas_rows.c: the plug-in around cuBLAS: which rows it has, and its version.
 */
#include "cublas_peer.h"

/* Asked without a handle, which would need a card. */
static void name_version(char *version, size_t size) {
    int major = 0, minor = 0, patch = 0;

    cublasGetProperty(MAJOR_VERSION, &major);
    cublasGetProperty(MINOR_VERSION, &minor);
    cublasGetProperty(PATCH_LEVEL, &patch);
    snprintf(version, size, "%d.%d.%d", major, minor, patch);
}

const iron_peer_list *iron_peer_list_get(void) {
    static iron_peer rows[2];
    static char version[32];
    static const iron_peer_list list = {IRON_PEER_ABI, "cuBLAS", version, rows, 2};

    rows[0] = peer_cublas_atax;
    rows[1] = peer_cublas_transpose;
    name_version(version, sizeof version);
    return &list;
}
