/* SPDX-License-Identifier: MIT */
/*
 * cuda_peer.h: for peers on CUDA's runtime. The runtime works in the same primary context as iron's
 * driver calls, so pointers and streams can be passed to it. The device is that of an array. It is
 * set again before every run: a race may use another one in between.
 */
#ifndef IRON_PEERS_CUDA_PEER_H
#define IRON_PEERS_CUDA_PEER_H

#include <cuda_runtime_api.h>

#include <stdio.h>

/* 0 for success, like all functions of a peer; else `why` says what failed. */
static inline int cuda_check(cudaError_t code, const char *what, char *why, size_t why_size) {
    if (code == cudaSuccess)
        return 0;
    cudaGetLastError(); /* clears it: the next call that asks must not see it */
    snprintf(why, why_size, "%s failed: %s", what, cudaGetErrorString(code));
    return 1;
}

/* Makes the device of an array the current one. */
static inline int cuda_set_device_of(const void *array, int *device, char *why, size_t why_size) {
    struct cudaPointerAttributes about;
    int failed = cuda_check(cudaPointerGetAttributes(&about, array), "cudaPointerGetAttributes",
                            why, why_size);

    if (failed)
        return failed;
    *device = about.device < 0 ? 0 : about.device;
    return cuda_check(cudaSetDevice(*device), "cudaSetDevice", why, why_size);
}

#endif
