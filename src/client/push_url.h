/* SPDX-License-Identifier: MIT */
/*
 * push_url.h: the address of an engine, taken apart. Strict: what is not of the one form that the
 * server has is refused before anything is sent anywhere.
 */
#ifndef IRON_CLIENT_PUSH_URL_H
#define IRON_CLIENT_PUSH_URL_H

#include <iron/iron.h>

#include <stdbool.h>

#define IRON_PUSH_URL_ROOM  512u
#define IRON_PUSH_NAME_ROOM 65u

typedef struct iron__push_url {
    char engine[IRON_PUSH_URL_ROOM]; /* http://HOST:PORT/v1/engines/NAME, without /feed */
    char name[IRON_PUSH_NAME_ROOM];
    bool is_loopback; /* the host is this machine, whoever resolves names: no proxy is asked */
} iron__push_url;

iron_status iron__push_url_parse(const char *text, iron__push_url *url, iron_error *err);

#endif
