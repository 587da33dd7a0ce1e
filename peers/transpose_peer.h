/* SPDX-License-Identifier: MIT */
/*
 * transpose_peer.h: what the peers of transpose share: is the case a matrix and one of its size?
 */
#ifndef IRON_PEERS_TRANSPOSE_PEER_H
#define IRON_PEERS_TRANSPOSE_PEER_H

#include "peer_words.h"

static inline int transpose_is_whole(const iron_peer_case *c, size_t element) {
    return c->rows > 0 && c->cols > 0 && c->input_count >= 1 &&
           c->input_bytes[0] / element / c->cols >= c->rows &&
           c->output_bytes / element / c->cols >= c->rows;
}

/* Bytes of an element, where A and B are there in full; 0 with `why` filled if not. */
static inline size_t transpose_element(const iron_peer_case *c, char *why, size_t why_size) {
    return peer_element(c, transpose_is_whole, "the arrays are not A and B of transpose", why,
                        why_size);
}

#endif
