/* SPDX-License-Identifier: MIT */
/*
 * cub_peer.h: for the rows of CUB. A row is a function that calls CUB; the functions here open, run
 * and close its work with the workspace. Its own `open` only checks the arrays and chooses the
 * call.
 *
 * To add a row: write it in <op>_cub.cu, declare it below, add it to the list in tokens_cub.cu, and
 * the file to peers/CMakeLists.txt.
 */
#ifndef IRON_PEERS_CUB_PEER_H
#define IRON_PEERS_CUB_PEER_H

#include "cuda_peer.h"

#include <iron/iron_peer.h>

#include <cub/cub.cuh>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

/* All rows, each in the file of its op. */
extern const iron_peer cub_tokens_row, cub_tokens_sum_row;
extern const iron_peer cub_barrier_row;
extern const iron_peer cub_histogram_row, cub_histogram_pieces_row;

/* A call of CUB: with workspace NULL it only returns the size that it needs. */
typedef cudaError_t (*cub_call)(const iron_peer_case &c, void *workspace, size_t &workspace_bytes);

struct cub_work {
    iron_peer_case c;
    int device;
    cub_call call;
    void *workspace;
    size_t workspace_bytes;
};

inline int cub_refuse(char *why, size_t size, const char *text) {
    snprintf(why, size, "%s", text);
    return 1;
}

/* Does the case say "name=value"? */
inline bool cub_has_param(const iron_peer_case *c, const char *param) {
    const size_t length = strlen(param);

    if (c->struct_size < offsetof(iron_peer_case, params) + sizeof c->params)
        return false;
    for (const char *at = c->params; (at = strstr(at, param)); at += length)
        if ((at == c->params || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

inline void cub_close(void *state) {
    cub_work *w = static_cast<cub_work *>(state);

    if (w && w->workspace && cudaSetDevice(w->device) == cudaSuccess)
        cudaFree(w->workspace);
    delete w;
}

inline int cub_take_workspace(cub_work *w, char *why, size_t why_size) {
    if (cuda_set_device_of(w->c.output, &w->device, why, why_size) ||
        cuda_check(w->call(w->c, nullptr, w->workspace_bytes), "CUB", why, why_size))
        return 1;
    /* A workspace of no bytes would be NULL, which asks for the size again. */
    return cuda_check(cudaMalloc(&w->workspace, w->workspace_bytes + 1), "cudaMalloc", why,
                      why_size);
}

inline int cub_open(const iron_peer_case *c, cub_call call, void **state, char *why,
                    size_t why_size) {
    cub_work *w = new (std::nothrow) cub_work();

    *state = nullptr;
    if (!w)
        return cub_refuse(why, why_size, "out of memory");
    memcpy(&w->c, c, c->struct_size < sizeof w->c ? c->struct_size : sizeof w->c);
    w->call = call;
    if (cub_take_workspace(w, why, why_size)) {
        cub_close(w);
        return 1;
    }
    *state = w;
    return 0;
}

inline int cub_run(void *state, char *why, size_t why_size) {
    cub_work *w = static_cast<cub_work *>(state);

    if (cuda_check(cudaSetDevice(w->device), "cudaSetDevice", why, why_size))
        return 1;
    return cuda_check(w->call(w->c, w->workspace, w->workspace_bytes), "CUB", why, why_size);
}

#endif
