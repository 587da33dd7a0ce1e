/* SPDX-License-Identifier: MIT */
/*
 * token.h: the bearer token that lets requests in. How long a comparison takes tells neither how
 * much of a guess was right nor how long the token is.
 */
#ifndef IRON_SERVER_TOKEN_H
#define IRON_SERVER_TOKEN_H

#include "core/token_file.h"
#include "server/audit.h"

#include <iron/iron.h>

typedef struct iron__token {
    size_t bytes; /* 0: none is needed */
    char text[IRON_TOKEN_ROOM];
} iron__token;

/* The token alone on a line of a file that nobody else may read. */
iron_status iron__token_read(iron__token *token, const char *path, iron_error *err);
/* `Authorization: Bearer TOKEN`; a text whose `at` is NULL is no such header. */
bool iron__token_admits(const iron__token *token, iron__text authorization);

#endif
