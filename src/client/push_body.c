/* SPDX-License-Identifier: MIT */
/*
 * push_body.c: see push_body.h. Tokens are read right to where the HTTP library sends them from:
 * one copy out of the page cache, one into the socket, no thread beside. Files are read, not
 * mapped: one that is cut meanwhile would end the process instead of the push.
 */
#include "client/push_body.h"

#include "core/fail.h"

#include <inttypes.h>
#include <string.h>

uint64_t iron__push_body_bytes(const iron__push_body *body) { return body->tokens * body->width; }

iron_status iron__push_tell(const iron__push_teller *teller, uint64_t token, iron_error *err) {
    uint64_t done = token - teller->begin;

    IRON_FAIL_IF(teller->progress && teller->progress(teller->context, done, teller->total), err,
                 IRON_E_CANCELLED, "cancelled after %" PRIu64 " tokens", done);
    return IRON_OK;
}

/* Whole tokens, straight to where they belong. */
static size_t take_tokens(iron__push_body *b, char *to, size_t room) {
    uint64_t token = b->taken / b->width, left = b->tokens - token;
    size_t count = room / b->width < left ? room / b->width : (size_t)left;

    b->status = iron__source_at_read(b->at, b->first + token, to, count, NULL, &b->error);
    return b->status == IRON_OK ? count * b->width : 0;
}

/* The rest of a token that was cut, or as much as there is room for. */
static size_t take_cut(iron__push_body *b, char *to, size_t room) {
    size_t skip = (size_t)(b->taken % b->width), some = b->width - skip;
    char token[8];

    b->status =
        iron__source_at_read(b->at, b->first + b->taken / b->width, token, 1, NULL, &b->error);
    if (b->status != IRON_OK)
        return 0;
    some = some < room ? some : room;
    memcpy(to, token + skip, some);
    return some;
}

size_t iron__push_body_take(iron__push_body *body, char *to, size_t room) {
    bool is_cut = body->taken % body->width != 0 || room < body->width;
    size_t some;

    if (body->status != IRON_OK || body->taken == iron__push_body_bytes(body) || room == 0)
        return 0;
    body->status =
        iron__push_tell(body->teller, body->first + body->taken / body->width, &body->error);
    if (body->status != IRON_OK)
        return 0;
    some = (is_cut ? take_cut : take_tokens)(body, to, room);
    body->taken += some;
    return some;
}
