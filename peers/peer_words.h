/* SPDX-License-Identifier: MIT */
/*
 * peer_words.h: what all peers share: how they refuse, and which of the two float types a case has.
 */
#ifndef IRON_PEERS_PEER_WORDS_H
#define IRON_PEERS_PEER_WORDS_H

#include <iron/iron_peer.h>

#include <stdio.h>
#include <string.h>

/* 1, for `return peer_refuse(...)`. */
static inline int peer_refuse(char *why, size_t why_size, const char *text) {
    snprintf(why, why_size, "%s", text);
    return 1;
}

/* Bytes of an element of f32 or f64; 0: it is another type. */
static inline size_t peer_float_bytes(const iron_peer_case *c) {
    if (strcmp(c->dtype, "f64") == 0)
        return sizeof(double);
    return strcmp(c->dtype, "f32") == 0 ? sizeof(float) : 0;
}

/* The same where the arrays are there in full; 0 with `why` filled if not. */
static inline size_t peer_element(const iron_peer_case *c,
                                  int (*is_whole)(const iron_peer_case *c, size_t element),
                                  const char *otherwise, char *why, size_t why_size) {
    size_t element = peer_float_bytes(c);

    if (element == 0)
        peer_refuse(why, why_size, "this row has f32 and f64");
    else if (!is_whole(c, element))
        peer_refuse(why, why_size, otherwise);
    else
        return element;
    return 0;
}

#endif
