/* SPDX-License-Identifier: MIT */
/*
 * listen.c: see listen.h.
 */
#include "server/listen.h"

#include "core/fail.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static iron_status read_port(const char *text, const char *digits, in_port_t *port,
                             iron_error *err) {
    unsigned long value = 0;
    size_t count = strlen(digits);

    IRON_FAIL_IF(count == 0 || count > 5 || strspn(digits, "0123456789") != count, err, IRON_E_ARG,
                 "listen '%s': '%s' is no port; write ADDRESS:PORT, as in 127.0.0.1:8080", text,
                 digits);
    value = strtoul(digits, NULL, 10);
    IRON_FAIL_IF(value > 65535, err, IRON_E_ARG, "listen '%s': ports end at 65535", text);
    *port = htons((in_port_t)value);
    return IRON_OK;
}

static bool is_loopback(const struct sockaddr_storage *address) {
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

    if (address->ss_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127);
}

static bool set_v4(iron__listen *listen, const char *host, in_port_t port) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)&listen->address;

    if (inet_pton(AF_INET, host, &v4->sin_addr) != 1)
        return false;
    v4->sin_family = AF_INET;
    v4->sin_port = port;
    listen->bytes = sizeof *v4;
    listen->is_loopback = is_loopback(&listen->address);
    return true;
}

static bool set_v6(iron__listen *listen, const char *host, in_port_t port) {
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&listen->address;

    if (inet_pton(AF_INET6, host, &v6->sin6_addr) != 1)
        return false;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = port;
    listen->bytes = sizeof *v6;
    listen->is_loopback = is_loopback(&listen->address);
    return true;
}

iron_status iron__listen_parse(iron__listen *listen, const char *text, iron_error *err) {
    const char *colon = strrchr(text, ':');
    bool is_v6 = text[0] == '[';
    size_t bytes = colon ? (size_t)(colon - text) : 0;
    in_port_t port = 0;

    memset(listen, 0, sizeof *listen);
    IRON_FAIL_IF(!colon || bytes == 0 || (is_v6 && (bytes < 2 || text[bytes - 1] != ']')), err,
                 IRON_E_ARG, "listen '%s': write ADDRESS:PORT or [ADDRESS]:PORT", text);
    IRON_TRY(read_port(text, colon + 1, &port, err));
    bytes -= is_v6 ? 2 : 0;
    IRON_FAIL_IF(bytes >= sizeof listen->host, err, IRON_E_ARG, "listen '%s': that is no address",
                 text);
    memcpy(listen->host, text + (is_v6 ? 1 : 0), bytes);
    if (!is_v6 && strcmp(listen->host, "localhost") == 0)
        snprintf(listen->host, sizeof listen->host, "127.0.0.1");
    IRON_FAIL_IF(!(is_v6 ? set_v6 : set_v4)(listen, listen->host, port), err, IRON_E_ARG,
                 "listen '%s': that is no address; names are not looked up: write 0.0.0.0:PORT or "
                 "[::]:PORT for every address",
                 text);
    return IRON_OK;
}

static bool prepare(int fd, const iron__listen *listen_at) {
    const int yes = 1, no = 0;

    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0)
        return false;
    if (listen_at->address.ss_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) != 0)
        return false;
    return bind(fd, (const struct sockaddr *)&listen_at->address, listen_at->bytes) == 0 &&
           listen(fd, 1024) == 0;
}

void iron__listen_name(iron__listen *listen, const char *scheme) {
    bool is_v6 = listen->address.ss_family == AF_INET6;
    in_port_t port = is_v6 ? ((const struct sockaddr_in6 *)&listen->address)->sin6_port
                           : ((const struct sockaddr_in *)&listen->address)->sin_port;

    snprintf(listen->url, sizeof listen->url, "%s://%s%s%s:%u", scheme, is_v6 ? "[" : "",
             listen->host, is_v6 ? "]" : "", (unsigned)ntohs(port));
}

iron_status iron__listen_open(iron__listen *listen, const char *scheme, int *fd, iron_error *err) {
    int number;

    *fd = socket(listen->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd >= 0 && prepare(*fd, listen) &&
        getsockname(*fd, (struct sockaddr *)&listen->address, &listen->bytes) == 0) {
        iron__listen_name(listen, scheme);
        return IRON_OK;
    }
    number = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    iron__listen_name(listen, scheme);
    return iron__fail(err, IRON_E_IO, number, "cannot listen on %s: %s%s", listen->url,
                      strerror(number),
                      number == EADDRINUSE ? "; choose another port, or 0 for any" : "");
}

/* Of what is asked of it: a stream, and listening? */
static bool is_listening_stream(int fd) {
    int type = 0, accepts = 0;
    socklen_t type_bytes = sizeof type, accepts_bytes = sizeof accepts;

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes) == 0 && type == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &accepts_bytes) == 0 && accepts;
}

static void write_host(iron__listen *listen) {
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&listen->address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&listen->address;
    int family = listen->address.ss_family;
    const void *address = family == AF_INET ? (const void *)&v4->sin_addr : &v6->sin6_addr;

    inet_ntop(family, address, listen->host, sizeof listen->host);
}

iron_status iron__listen_adopt(iron__listen *listen, int fd, iron_error *err) {
    int flags, family;

    memset(listen, 0, sizeof *listen);
    listen->bytes = sizeof listen->address;
    if (getsockname(fd, (struct sockaddr *)&listen->address, &listen->bytes) != 0)
        return iron__fail(err, IRON_E_ARG, errno,
                          "descriptor %d was handed over (LISTEN_FDS), but is no socket: %s", fd,
                          strerror(errno));
    family = listen->address.ss_family;
    IRON_FAIL_IF(family == AF_UNIX, err, IRON_E_ARG,
                 "the socket that was handed over is of the file system; give an address and a "
                 "port to ListenStream=, as in 127.0.0.1:8080");
    IRON_FAIL_IF(family != AF_INET && family != AF_INET6, err, IRON_E_ARG,
                 "the socket that was handed over is of family %d, neither IPv4 nor IPv6", family);
    IRON_FAIL_IF(!is_listening_stream(fd), err, IRON_E_ARG,
                 "the socket that was handed over does not listen for connections; use "
                 "ListenStream= and Accept=no in the socket unit");
    flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot use descriptor %d: %s", fd,
                          strerror(errno));
    listen->is_loopback = is_loopback(&listen->address);
    write_host(listen);
    return IRON_OK;
}
