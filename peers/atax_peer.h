/* SPDX-License-Identifier: MIT */
/*
 * atax_peer.h: what the peers of atax share: is the case one that two gemv can compute?
 */
#ifndef IRON_PEERS_ATAX_PEER_H
#define IRON_PEERS_ATAX_PEER_H

#include "peer_words.h"

static inline int atax_is_whole(const iron_peer_case *c, size_t element) {
    return c->rows > 0 && c->cols > 0 && c->input_count >= 2 &&
           c->input_bytes[0] / element / c->cols >= c->rows &&
           c->input_bytes[1] / element >= c->cols && c->output_bytes / element >= c->cols;
}

/* Bytes of an element, where A, x and y are there in full; 0 with `why` filled if not. */
static inline size_t atax_element(const iron_peer_case *c, char *why, size_t why_size) {
    return peer_element(c, atax_is_whole, "the arrays are not A, x and y of atax", why, why_size);
}

#endif
