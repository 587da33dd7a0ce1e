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
    size_t element = peer_float_bytes(c);

    if (element == 0)
        peer_refuse(why, why_size, "this row has f32 and f64");
    else if (!atax_is_whole(c, element))
        peer_refuse(why, why_size, "the arrays are not A, x and y of atax");
    else
        return element;
    return 0;
}

#endif
