/* SPDX-License-Identifier: MIT */
/*
 * cuda_peer.h: what the peers on CUDA's runtime share. The runtime works in the same primary
 * context as iron's driver calls, so pointers and streams can be handed over; which card's it is,
 * an array tells. The card is chosen anew before every run: a race may go on another one in
 * between.
 */
#ifndef IRON_PEERS_CUDA_PEER_H
#define IRON_PEERS_CUDA_PEER_H

#include <cuda_runtime_api.h>

#include <stdio.h>

/* 0 for success, as all functions of a peer; else `why` says what failed. */
static inline int cuda_says(cudaError_t code, const char *what, char *why, size_t why_size) {
    if (code == cudaSuccess)
        return 0;
    cudaGetLastError(); /* takes it back: the next one who asks is not to blame for it */
    snprintf(why, why_size, "%s failed: %s", what, cudaGetErrorString(code));
    return 1;
}

/* The card that an array lies on becomes the current one. */
static inline int cuda_enter_device_of(const void *array, int *device, char *why, size_t why_size) {
    struct cudaPointerAttributes about;
    int failed = cuda_says(cudaPointerGetAttributes(&about, array), "cudaPointerGetAttributes", why,
                           why_size);

    if (failed)
        return failed;
    *device = about.device < 0 ? 0 : about.device;
    return cuda_says(cudaSetDevice(*device), "cudaSetDevice", why, why_size);
}

#endif
