/* SPDX-License-Identifier: MIT */
/*
 * daemon.c: the HTTP library's settings, and the connections it is given.
 *
 * A thread for each connection, so that routes may wait, for the disk or for a device, and nobody
 * else does. The library listens to nothing: the gate hands it what it has let in.
 */
#include "server/server.h"
#include "server/talk.h"

#include "core/fail.h"

#include <stdlib.h>
#include <string.h>

/* For each connection: half of it reads bodies, the library takes what it can get in one call. */
#define POOL_BYTES ((size_t)128 << 10)
/* Address space, of which only what is touched becomes memory; sanitizers touch more. */
#define STACK_BYTES ((size_t)1 << 20)
#define PRIORITIES  "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* Escapes stay: target.c decodes, once and strictly. */
static size_t keep_escapes(void *context, struct MHD_Connection *connection, char *text) {
    (void)context;
    (void)connection;
    return strlen(text);
}

static int socket_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info ? info->connect_fd : -1;
}

static void connected(iron_server *server, struct MHD_Connection *connection, void **context) {
    iron__caller *caller = calloc(1, sizeof *caller);

    if (caller)
        caller->watched = iron__watch_add(server->watch, socket_of(connection));
    if (caller && !caller->watched) {
        free(caller);
        caller = NULL; /* its requests find nobody and end */
    }
    *context = caller;
}

static void disconnected(iron_server *server, struct MHD_Connection *connection, void **context) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    iron__caller *caller = *context;

    if (caller) {
        iron__watch_remove(server->watch, caller->watched);
        free(caller);
        *context = NULL;
    }
    if (info)
        iron__gate_leave(server->gate, info->client_addr);
}

static void notified(void *context, struct MHD_Connection *connection, void **socket_context,
                     enum MHD_ConnectionNotificationCode code) {
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        connected(context, connection, socket_context);
    else
        disconnected(context, connection, socket_context);
}

void iron__daemon_hand(void *context, int fd, const struct sockaddr *address, socklen_t bytes) {
    iron_server *server = context;

    if (MHD_add_connection(server->daemon, fd, address, bytes) != MHD_YES)
        iron__gate_leave(server->gate, address); /* the library has closed it */
}

/* The library's own strictness is off: what it would find, the audit finds, and says it better. */
iron_status iron__daemon_start(iron_server *server, iron_error *err) {
    const iron_server_options *options = &server->site.options;
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                     MHD_USE_POLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC;
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_KEY, 0, server->tls_key},
                                   {MHD_OPTION_HTTPS_MEM_CERT, 0, server->tls_cert},
                                   {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)PRIORITIES},
                                   {MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};

    IRON_FAIL_IF(server->is_tls && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES, err,
                 IRON_E_UNSUPPORTED, "this libmicrohttpd was built without TLS");
    if (server->is_tls)
        flags |= MHD_USE_TLS;
    server->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, iron__talk_handle, server, MHD_OPTION_ARRAY,
        server->is_tls ? tls : none, MHD_OPTION_CONNECTION_LIMIT, options->max_connections + 64u,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, POOL_BYTES, MHD_OPTION_THREAD_STACK_SIZE, STACK_BYTES,
        MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_URI_LOG_CALLBACK, iron__talk_create, server,
        MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_NOTIFY_CONNECTION, notified,
        server, MHD_OPTION_NOTIFY_COMPLETED, iron__talk_end, server, MHD_OPTION_END);
    IRON_FAIL_IF(!server->daemon && server->is_tls, err, IRON_E_ARG,
                 "TLS cannot start: %s and %s are not a certificate and its key in PEM",
                 options->tls_cert, options->tls_key);
    IRON_FAIL_IF(!server->daemon, err, IRON_E_IO, "libmicrohttpd cannot start (threads, memory?)");
    return IRON_OK;
}
