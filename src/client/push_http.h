/* SPDX-License-Identifier: MIT */
/*
 * push_http.h: requests to one engine, over one connection that stays: where does it stand, and
 * here is a piece. Nothing is decided here: what came of a request is an answer.
 */
#ifndef IRON_CLIENT_PUSH_HTTP_H
#define IRON_CLIENT_PUSH_HTTP_H

#include "client/push_answer.h"
#include "client/push_body.h"
#include "client/push_url.h"

typedef struct iron__push_http iron__push_http;

/* Both files may be NULL. Nothing is sent yet. */
iron_status iron__push_http_open(const iron__push_url *url, const char *token_file,
                                 const char *ca_file, iron__push_http **out, iron_error *err);
void iron__push_http_close(iron__push_http *http);

void iron__push_http_ask(iron__push_http *http, iron__push_answer *answer);
/* From the body's beginning. If the body fails there is no answer: see its status. */
void iron__push_http_send(iron__push_http *http, iron_dtype dtype, uint64_t at,
                          iron__push_body *body, iron__push_answer *answer);

#endif
