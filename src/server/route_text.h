/* SPDX-License-Identifier: MIT */
/*
 * route_text.h: numbers, times and engines as the answers of routes write them, and the headers
 * Accept and Accept-Encoding as they read them. Pure functions: no exchange, no store.
 */
#ifndef IRON_SERVER_ROUTE_TEXT_H
#define IRON_SERVER_ROUTE_TEXT_H

#include "core/json_write.h"
#include "store/store.h"

/* Digits alone, at least one, at most 20 of them, below 2^64. */
bool iron__text_number(const char *text, uint64_t *value);

/* "2026-03-01T12:00:07.250Z" of milliseconds since 1970; years up to 9999. */
#define IRON_TIME_TEXT 25u
void iron__time_text(uint64_t milliseconds, char text[IRON_TIME_TEXT]);

/* How much Accept (NULL: anything) wants a type, in thousandths, 0: not at all. The most specific
 * range that names it decides, RFC 9110 12.5.1. What cannot be read as a range wants nothing. A
 * coding ("gzip") is a type without a slash: its one range besides itself is "*". */
unsigned iron__accept_weight(const char *accept, const char *type);
/* Does Accept-Encoding (NULL: no) want gzip, and not less than the bytes as they are? */
bool iron__wants_gzip(const char *accept_encoding);

/* Where an engine stands: the six members tokens batches xor sum state seal. */
typedef struct iron__stand_text {
    uint64_t tokens, batches, sum, state;
    uint32_t xors;
    const char *seal;
} iron__stand_text;

void iron__write_stand(iron__json_writer *j, const iron__stand_text *stand);
/* All members of an engine, inside an object that the caller opens and closes. */
void iron__write_engine(iron__json_writer *j, const iron__kept_view *view);

#endif
