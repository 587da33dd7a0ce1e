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
    size_t element = peer_float_bytes(c);

    if (element == 0)
        peer_refuse(why, why_size, "this row has f32 and f64");
    else if (!transpose_is_whole(c, element))
        peer_refuse(why, why_size, "the arrays are not A and B of transpose");
    else
        return element;
    return 0;
}

#endif
