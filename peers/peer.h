/* SPDX-License-Identifier: MIT */
/*
 * peer.h: for peers on the CPU and on CUDA: how they refuse a case, and the checks of cases of atax
 * and transpose.
 */
#ifndef IRON_PEERS_PEER_H
#define IRON_PEERS_PEER_H

#include <iron/iron_peer.h>

#include <stdio.h>
#include <string.h>

/* 1, for `return peer_refuse(...)`. */
static inline int peer_refuse(char *why, size_t why_size, const char *text) {
    snprintf(why, why_size, "%s", text);
    return 1;
}

/* Bytes of an element of f32 or f64; 0 for another type. */
static inline size_t peer_float_bytes(const iron_peer_case *c) {
    if (strcmp(c->dtype, "f64") == 0)
        return sizeof(double);
    return strcmp(c->dtype, "f32") == 0 ? sizeof(float) : 0;
}

/* The same if the arrays are long enough; else 0 with `why` filled. */
static inline size_t peer_element(const iron_peer_case *c,
                                  int (*is_whole)(const iron_peer_case *c, size_t element),
                                  const char *otherwise, char *why, size_t why_size) {
    size_t element = peer_float_bytes(c);

    if (element == 0)
        peer_refuse(why, why_size, "this row supports f32 and f64 only");
    else if (!is_whole(c, element))
        peer_refuse(why, why_size, otherwise);
    else
        return element;
    return 0;
}

static inline int atax_is_whole(const iron_peer_case *c, size_t element) {
    return c->rows > 0 && c->cols > 0 && c->input_count >= 2 &&
           c->input_bytes[0] / element / c->cols >= c->rows &&
           c->input_bytes[1] / element >= c->cols && c->output_bytes / element >= c->cols;
}

/* Bytes of an element if A, x and y of y = A'(A x) are long enough; else 0 with `why` filled. */
static inline size_t atax_element(const iron_peer_case *c, char *why, size_t why_size) {
    return peer_element(c, atax_is_whole, "the arrays are not A, x and y of atax", why, why_size);
}

static inline int transpose_is_whole(const iron_peer_case *c, size_t element) {
    return c->rows > 0 && c->cols > 0 && c->input_count >= 1 &&
           c->input_bytes[0] / element / c->cols >= c->rows &&
           c->output_bytes / element / c->cols >= c->rows;
}

/* Bytes of an element if A and B of B = A^T are long enough; else 0 with `why` filled. */
static inline size_t transpose_element(const iron_peer_case *c, char *why, size_t why_size) {
    return peer_element(c, transpose_is_whole, "the arrays are not A and B of transpose", why,
                        why_size);
}

#endif
