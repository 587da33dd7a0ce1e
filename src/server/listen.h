/* SPDX-License-Identifier: MIT */
/*
 * listen.h: the address that is listened on: "127.0.0.1:8080", "[::1]:0", "localhost:8080".
 */
#ifndef IRON_SERVER_LISTEN_H
#define IRON_SERVER_LISTEN_H

#include <iron/iron.h>

#include <stdbool.h>
#include <sys/socket.h>

typedef struct iron__listen {
    struct sockaddr_storage address;
    socklen_t bytes;
    bool is_loopback;
    char host[64]; /* the address as text, without brackets */
    char url[96];  /* after opening or naming: "http://127.0.0.1:8080" */
} iron__listen;

/* Names are not looked up, but for localhost, which is 127.0.0.1 here. */
iron_status iron__listen_parse(iron__listen *listen, const char *text, iron_error *err);
/* A socket that was handed over: must be a stream socket of IPv4 or IPv6 that listens already. It
 * never blocks from then on, and fills in address and url. The caller's, also if it is refused. */
iron_status iron__listen_adopt(iron__listen *listen, int fd, iron_error *err);
/* A listening socket that never blocks; fills in the port that was picked, and the url. */
iron_status iron__listen_open(iron__listen *listen, const char *scheme, int *fd, iron_error *err);
/* Fills in the url. */
void iron__listen_name(iron__listen *listen, const char *scheme);

#endif
