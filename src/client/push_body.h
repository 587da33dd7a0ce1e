/* SPDX-License-Identifier: MIT */
/*
 * push_body.h: a piece of the file as a request's body: bytes, taken in any amounts, and from the
 * beginning again when the request has to be sent again.
 */
#ifndef IRON_CLIENT_PUSH_BODY_H
#define IRON_CLIENT_PUSH_BODY_H

#include "client/push_plan.h"
#include "formats/source.h"

/* Who is told how many tokens of what is to be pushed have gone out. */
typedef struct iron__push_teller {
    iron_progress progress; /* NULL: nobody */
    void *context;
    uint64_t begin, total; /* tokens of the file: where pushing began, and how many from there */
} iron__push_teller;

typedef struct iron__push_body {
    iron__source_at *at; /* of the whole source */
    size_t width;        /* of a token, at most 8 */
    uint64_t first, tokens;
    uint64_t taken; /* bytes */
    const iron__push_teller *teller;
    iron_status status; /* of what ended the body early, with its error */
    iron_error error;
} iron__push_body;

uint64_t iron__push_body_bytes(const iron__push_body *body);
/* Up to `room` bytes more; 0 at the end, and when it failed or was called off: see status. */
size_t iron__push_body_take(iron__push_body *body, char *to, size_t room);

/* IRON_E_CANCELLED if whoever is told has enough. */
iron_status iron__push_tell(const iron__push_teller *teller, uint64_t token, iron_error *err);

#endif
