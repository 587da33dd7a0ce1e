/* SPDX-License-Identifier: MIT */
/*
 * push_token.h: the secret that a server asks for, from a file that nobody else may read.
 */
#ifndef IRON_CLIENT_PUSH_TOKEN_H
#define IRON_CLIENT_PUSH_TOKEN_H

#include <iron/iron.h>

#define IRON_PUSH_TOKEN_ROOM 1025u

/* The token alone on the file's one line, in visible ASCII. Whoever has it wipes it after use. */
iron_status iron__push_token_read(const char *path, char token[IRON_PUSH_TOKEN_ROOM],
                                  iron_error *err);

#endif
