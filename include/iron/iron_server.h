/* SPDX-License-Identifier: MIT */
/*
 * iron_server.h: engines behind HTTP, and the client that feeds them.
 *
 * Not part of libiron, but of the command. The server needs libmicrohttpd and SQLite, and is left
 * out where they are not found; the client loads libcurl. Unstable: may change with any version.
 *
 *     iron_server_options options = {.struct_size = sizeof options, .data = "iron-data"};
 *     iron_server *server;
 *     if (iron_server_start(&options, &server, &err)) ...
 *     printf("serving %s\n", iron_server_url(server));
 *     ... wait for a signal ...
 *     iron_server_stop(server, &err);
 *
 * The contract of the routes is docs/server.md and /openapi.json; what the server defends against
 * is SECURITY.md.
 */
#ifndef IRON_IRON_SERVER_H
#define IRON_IRON_SERVER_H

#include <iron/iron.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a service manager gave this process (systemd's protocol: LISTEN_FDS, NOTIFY_SOCKET,
 * WATCHDOG_USEC). */
typedef struct iron_service {
    uint32_t struct_size; /* sizeof(iron_service) */
    uint32_t listen_fd;   /* a listening socket; 0: none */
    uint64_t watchdog_us; /* period in which it expects a sign of life; 0: none */
    char notify[112];     /* the socket for messages to it: a path, or @ and a name; "": none */
} iron_service;

/* Reads the variables and removes them from the environment, so call it once, before there are
 * threads. Refuses invalid ones with a message. */
IRON_API iron_status iron_service_take(iron_service *service, iron_error *err);

/* Zero and NULL mean the default. A server borrows the texts and lists until it is stopped. */
typedef struct iron_server_options {
    uint32_t struct_size;           /* sizeof(iron_server_options) */
    uint32_t max_engines;           /* 256 */
    const char *data;               /* "iron-data" */
    const char *token_file;         /* the token alone on a line; not readable by others */
    const char *tls_cert, *tls_key; /* PEM; both or none */
    const char *report;             /* a page of the arena, shown at /report */
    const char *const *hosts;       /* further names that requests may use */
    size_t host_count;
    const char *const *listens; /* "127.0.0.1:8080" alone; "[::1]:0": any free port; "unix:/path" */
    size_t listen_count;
    uint64_t max_body;        /* bytes; 1 TiB */
    uint32_t max_connections; /* 512 */
    uint32_t max_per_address; /* 256 */
    uint32_t max_uploads;     /* large bodies at once; 64 */
    uint32_t header_seconds;  /* for a request's header to arrive, also while idle; 15 */
    uint32_t request_seconds; /* for a whole request; 3600 */
    uint32_t grace_seconds;   /* for requests in flight when the server is stopped; 10 */
    uint32_t drain_seconds;   /* before that, in which only /readyz says that it stops; 0 */
    uint64_t min_body_rate;   /* bytes per second, after ten seconds of grace; 1024 */
    const char *log;          /* on standard error: "text", or "json" with one line per request */
    const char *log_level;    /* "debug", "info", "warning" or "error"; "info" */
    const iron_service *service; /* NULL: none. Its socket replaces `listen` */
    uint64_t reserve; /* bytes of disk kept for deleting when it is full; 64 MiB, or an eighth of a
                         disk below 512 MiB */
    uint32_t accept_loss, reserved; /* start although acknowledged data is missing */
    uint64_t keep_batches;          /* of each engine's history, at least; 0: all */
    uint64_t keep_keys; /* seconds until a key is forgotten; 0: it is kept as long as its feed */
    uint64_t max_run;   /* bytes of the records of a run; 256 MiB */
} iron_server_options;

typedef struct iron_server iron_server;

IRON_API iron_status iron_server_start(const iron_server_options *options, iron_server **out,
                                       iron_error *err);
IRON_API const char *
iron_server_url(const iron_server *server); /* the first: "http://127.0.0.1:8080" */
IRON_API uint64_t iron_server_engines(const iron_server *server);
/* Reads the token file and the TLS certificate and key again. What is open stays open. An error,
 * which is logged too: all of the old ones stay in use. */
IRON_API iron_status iron_server_reload(iron_server *server, iron_error *err);
/* Finishes or refuses requests in flight, takes snapshots, frees the server; an error says what
 * could not be written (nothing that was acknowledged is lost). */
IRON_API iron_status iron_server_stop(iron_server *server, iron_error *err);
/* Writes an error as a server with these options logs: for errors of start and stop, when there is
 * no server. False: that failed. */
IRON_API bool iron_server_complain(const iron_server_options *options, const iron_error *err);

/* Copies the data directory of a server, running or not, to a new directory, which is complete when
 * this returns, or absent. */
IRON_API iron_status iron_server_backup(const char *data, const char *target, iron_error *err);

typedef struct iron_server_verified {
    uint32_t struct_size; /* set by the call */
    uint32_t is_running;  /* a server uses it: a lost log could not be noticed */
    uint64_t engines, feeds, batches;
    uint64_t removed; /* older feeds that are no longer kept */
    uint64_t runs, records;
} iron_server_verified;

/* Replays every engine of a data directory from its first feed, or from a snapshot if older feeds
 * were removed, and compares each state that is stored. IRON_E_MISMATCH names the first
 * difference. */
IRON_API iron_status iron_server_verify(const char *data, iron_server_verified *found,
                                        iron_error *err);

/* Feeding a file to a server, and resuming exactly. */
typedef struct iron_push_options {
    uint32_t struct_size; /* sizeof(iron_push_options) */
    uint32_t retries;     /* of a piece, with growing pauses; 0: 8 */
    const char *url;      /* http://HOST:PORT/v1/engines/NAME, with or without /feed */
    const char *token_file;
    const char *ca_file;   /* certificates to trust; NULL: the system's */
    uint64_t piece_tokens; /* of one request, rounded to whole batches; 0: about 256 MiB */
    uint32_t is_append;    /* the file follows what the engine holds, whatever that is */
    uint32_t reserved;
    /* NULL, or told what a person would like to know meanwhile ("resuming at token 5 of 9"), with
     * the context of the progress. */
    void (*note)(void *context, const char *sentence);
} iron_push_options;

typedef struct iron_push_result {
    uint32_t struct_size; /* set by the caller */
    uint32_t retried;     /* requests that were sent again */
    uint64_t resumed_at;  /* tokens of the file that the engine had already */
    uint64_t pushed;      /* tokens that were sent and acknowledged */
    uint64_t tokens, batches, sum, state;
    uint32_t xor_total;
    char seal[33];
    char engine[65];
} iron_push_result;

/* The source must be of files that can be read again. If the engine holds tokens already they must
 * be the file's first ones, unless is_append: their seal tells. progress is told of the tokens that
 * are sealed for that, then, from 0 again, of those that are sent; it may be NULL. */
IRON_API iron_status iron_push(const iron_push_options *options, iron_source *source,
                               iron_progress progress, void *context, iron_push_result *result,
                               iron_error *err);

typedef struct iron_push_ledger_result {
    uint32_t struct_size; /* set by the caller */
    uint32_t retried;     /* requests that were sent again */
    uint32_t rank, reserved;
    uint64_t resumed_at;  /* byte of the ledger, if the server had what is before; else 0 */
    uint64_t sent, added; /* records sent; those, and perhaps the header, that the server had not */
    uint64_t torn;        /* bytes at the end that are not a whole record yet */
    char run[65];
} iron_push_ledger_result;

/* Sends the records of a ledger (iron_ledger.h) to a run, http://HOST:PORT/v1/runs/NAME. Of the
 * options, those of tokens are not used. Sending a ledger again is harmless. progress counts bytes.
 */
IRON_API iron_status iron_push_ledger(const iron_push_options *options, const char *path,
                                      iron_progress progress, void *context,
                                      iron_push_ledger_result *result, iron_error *err);

#ifdef __cplusplus
}
#endif

#endif
