/* SPDX-License-Identifier: MIT */
/*
 * hosts.c: names and origins, compared as texts; nothing is ever looked up. See hosts.h.
 */
#include "server/hosts.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NAME_BYTES_MAX 253u

static bool is_port(iron__text port) {
    uint32_t value = 0;

    for (size_t k = 0; k < port.bytes; k++) {
        if (port.at[k] < '0' || port.at[k] > '9' || k >= 5)
            return false;
        value = value * 10 + (uint32_t)(port.at[k] - '0');
    }
    return port.bytes > 0 && value > 0 && value <= 65535;
}

static bool is_name(iron__text name) {
    for (size_t k = 0; k < name.bytes; k++) {
        char c = name.at[k];

        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
              c == '.' || c == '-' || c == '_'))
            return false;
    }
    return name.bytes > 0 && name.bytes <= NAME_BYTES_MAX;
}

/* The text as an address of a family (in_addr, in6_addr), if it is one. */
static bool read_address(iron__text text, int family, void *address) {
    char copy[INET6_ADDRSTRLEN];

    if (text.bytes >= sizeof copy)
        return false;
    memcpy(copy, text.at, text.bytes);
    copy[text.bytes] = '\0';
    return inet_pton(family, copy, address) == 1;
}

static bool is_v6(iron__text text) {
    struct in6_addr address;

    return read_address(text, AF_INET6, &address);
}

/* The name alone, without brackets and port; false if it is no host. */
static bool host_name(iron__text host, iron__text *name) {
    const char *end;
    iron__text port = {NULL, 0};

    if (host.bytes > 0 && host.at[0] == '[') {
        end = memchr(host.at, ']', host.bytes);
        if (!end)
            return false;
        *name = (iron__text){host.at + 1, (size_t)(end - host.at) - 1};
        end++;
    } else {
        end = memchr(host.at, ':', host.bytes);
        end = end ? end : host.at + host.bytes;
        *name = (iron__text){host.at, (size_t)(end - host.at)};
    }
    if (end != host.at + host.bytes) {
        port = (iron__text){end + 1, host.bytes - (size_t)(end - host.at) - 1};
        if (*end != ':' || !is_port(port))
            return false;
    }
    return host.at[0] == '[' ? is_v6(*name) : is_name(*name);
}

bool iron__host_is_valid(iron__text host) {
    iron__text name;

    return host.bytes > 0 && host_name(host, &name);
}

bool iron__host_is_name(iron__text host) {
    iron__text name;

    return host.bytes > 0 && host_name(host, &name) &&
           name.bytes + (host.at[0] == '[' ? 2u : 0u) == host.bytes;
}

/* In whichever way it is written: an IPv6 address has many. */
static bool is_loopback_address(iron__text name) {
    struct in_addr v4;
    struct in6_addr v6;

    if (read_address(name, AF_INET, &v4))
        return ntohl(v4.s_addr) >> 24 == 127;
    return read_address(name, AF_INET6, &v6) &&
           (IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127));
}

static bool is_among(const iron__hosts *hosts, iron__text name) {
    for (size_t k = 0; k < hosts->more_count; k++) {
        iron__text more;

        if (host_name(iron__text_of(hosts->more[k]), &more) && more.bytes == name.bytes &&
            strncasecmp(more.at, name.at, name.bytes) == 0)
            return true;
    }
    return false;
}

static bool is_ours(const iron__hosts *hosts, iron__text host) {
    iron__text name;

    if (!host_name(host, &name))
        return false;
    if (name.bytes > 1 && name.at[name.bytes - 1] == '.')
        name.bytes--; /* "localhost." is the same name */
    if (!hosts->is_loopback && hosts->more_count == 0)
        return true;
    if (is_among(hosts, name) || iron__text_is_caseless(name, hosts->address))
        return true;
    return hosts->is_loopback &&
           (iron__text_is_caseless(name, "localhost") || is_loopback_address(name));
}

static iron__verdict foreign(const char *detail) {
    return iron__verdict_make(
        "foreign-origin", "ask from a page of this server, or not from a browser", "%s", detail);
}

/* The origin of a page from here is our scheme and the very Host that the request is for. */
static bool is_own_origin(const iron__hosts *hosts, iron__text origin, iron__text host) {
    size_t scheme = strlen(hosts->scheme);

    return host.at && origin.bytes == scheme + 3 + host.bytes &&
           strncasecmp(origin.at, hosts->scheme, scheme) == 0 &&
           memcmp(origin.at + scheme, "://", 3) == 0 &&
           strncasecmp(origin.at + scheme + 3, host.at, host.bytes) == 0;
}

iron__verdict iron__hosts_check(const iron__hosts *hosts, const iron__header *header) {
    iron__text host = iron__header_find(header, "Host");
    iron__text origin = iron__header_find(header, "Origin");
    iron__text site = iron__header_find(header, "Sec-Fetch-Site");
    bool is_reading = iron__text_is(header->method, "GET") || iron__text_is(header->method, "HEAD");

    if (host.at && !is_ours(hosts, host))
        return iron__verdict_make("wrong-host", "use the server's address, or start it with --host",
                                  "this server is not %.*s",
                                  host.bytes < 100 ? (int)host.bytes : 100, host.at);
    if (origin.at && !is_own_origin(hosts, origin, host))
        return foreign("the Origin is not this server");
    if (site.at && !is_reading &&
        (iron__text_is_caseless(site, "cross-site") || iron__text_is_caseless(site, "same-site")))
        return foreign("the request comes from a page of another site");
    return iron__verdict_fine();
}
