/* SPDX-License-Identifier: MIT */
/*
 * peer.h: for peers on the CPU and on CUDA: how they refuse a case, and the checks of cases of atax
 * and transpose.
 */
#ifndef IRON_PEERS_PEER_H
#define IRON_PEERS_PEER_H

#include <iron/iron_peer.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* 1, for `return peer_refuse(...)`. */
static inline int peer_refuse(char *why, size_t why_size, const char *text) {
    snprintf(why, why_size, "%s", text);
    return 1;
}

/* Bytes of an element if A, x and y of y = A'(A x), or A and B of B = A^T, are long enough; else 0
 * with `why` filled. */
static inline size_t peer_element(const iron_peer_case *c, bool is_atax, char *why,
                                  size_t why_size) {
    size_t element = strcmp(c->dtype, "f64") == 0   ? sizeof(double)
                     : strcmp(c->dtype, "f32") == 0 ? sizeof(float)
                                                    : 0;

    if (element == 0)
        peer_refuse(why, why_size, "this row supports f32 and f64 only");
    else if (c->rows == 0 || c->cols == 0 || c->input_count < (is_atax ? 2 : 1) ||
             c->input_bytes[0] / element / c->cols < c->rows ||
             (is_atax && c->input_bytes[1] / element < c->cols) ||
             c->output_bytes / element / c->cols < (is_atax ? 1 : c->rows))
        peer_refuse(why, why_size,
                    is_atax ? "the arrays are not A, x and y of atax"
                            : "the arrays are not A and B of transpose");
    else
        return element;
    return 0;
}

#endif
