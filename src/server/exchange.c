/* SPDX-License-Identifier: MIT */
/*
 * exchange.c: what a route may ask of its request; see exchange.h.
 */
#include "server/exchange.h"

#include "server/talk.h"

#include <string.h>

/* A value without the blanks at its end, which the library leaves there. */
static const char *trim(iron__talk *talk, const char *value, size_t bytes) {
    size_t k = 0;

    while (k < IRON_TRIMMED_MAX && talk->trimmed[k])
        k++;
    if (k == IRON_TRIMMED_MAX)
        return value;
    talk->trimmed[k] = strndup(value, bytes);
    return talk->trimmed[k] ? talk->trimmed[k] : value;
}

const char *iron__exchange_header(const iron__exchange *x, const char *name) {
    iron__talk *talk = iron__talk_of(x);
    const char *value = MHD_lookup_connection_value(talk->connection, MHD_HEADER_KIND, name);
    size_t bytes = value ? strlen(value) : 0, kept = bytes;

    while (kept > 0 && (value[kept - 1] == ' ' || value[kept - 1] == '\t'))
        kept--;
    return kept == bytes ? value : trim(talk, value, kept);
}

const char *iron__exchange_query(const iron__exchange *x, const char *name) {
    return iron__target_query(&iron__talk_of(x)->target, name);
}
