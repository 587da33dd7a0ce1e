/* SPDX-License-Identifier: MIT */
/*
 * hosts.h: is the request meant for this server, and does no foreign page send it?
 *
 * A page from anywhere can make a browser send requests to a server on the same machine: by its
 * address (then Origin or Sec-Fetch-Site tell), or by a name of its own that it lets resolve to
 * 127.0.0.1 (then the Host is that name). Neither passes here.
 */
#ifndef IRON_SERVER_HOSTS_H
#define IRON_SERVER_HOSTS_H

#include "server/audit.h"

typedef struct iron__hosts {
    const char *scheme;      /* "http" or "https" */
    const char *address;     /* that is listened on, without brackets */
    bool is_loopback;        /* then only names of this machine are taken */
    const char *const *more; /* further names; on a public address they are the only ones */
    size_t more_count;
} iron__hosts;

/* A name or an address, `[...]` around one of IPv6, and perhaps a port. */
bool iron__host_is_valid(iron__text host);
/* The same without a port: what --host takes. */
bool iron__host_is_name(iron__text host);
/* Host, Origin and Sec-Fetch-Site of a header that the judge found right. */
iron__verdict iron__hosts_check(const iron__hosts *hosts, const iron__header *header);

#endif
