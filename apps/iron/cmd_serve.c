/* SPDX-License-Identifier: MIT */
/*
 * cmd_serve.c: `iron serve`: runs the server until a signal stops it; copies and verifies its data.
 *
 * The signals are blocked before the threads of the server start, so that only the thread that
 * waits for them receives them. SIGHUP makes the server read its tokens and certificate again. The
 * first other signal asks for a clean stop; a second one during that stop ends the process
 * immediately: everything acknowledged is already on disk.
 */
#include "command.h"

#include <iron/iron_server.h>

#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

typedef struct serve_options {
    iron_server_options server;
    text_list hosts, listens;
    bool accept_loss;
} serve_options;

static const option serve_table[] = {
    OPTION("listen", OPTION_LIST, "ADDR:PORT", serve_options, listens,
           "address to listen on, or unix:PATH; up to 16 times. Port 0 chooses a free port. An "
           "address that other machines can reach needs --token-file",
           .standard = "127.0.0.1:8080"),
    OPTION("data", OPTION_TEXT, "DIR", serve_options, server.data,
           "directory of the engines; created if necessary", .standard = "iron-data"),
    OPTION("reserve", OPTION_NUMBER, "SIZE", serve_options, server.reserve,
           "disk space kept for deleting engines when the disk is full; feeds never use it",
           .min = 65536, .standard = "64 MiB, or an eighth of a disk below 512 MiB"),
    OPTION("keep-batches", OPTION_NUMBER, "N", serve_options, server.keep_batches,
           "batches of history to keep of each engine; older ones may be removed, with the keys of "
           "their feeds",
           .min = 1, .max = INT64_MAX, .standard = "all"),
    OPTION("keep-keys", OPTION_NUMBER, "S", serve_options, server.keep_keys,
           "seconds after which the Idempotency-Key of a feed may be used again", .min = 1,
           .max = UINT32_MAX, .standard = "as long as its feed is kept"),
    OPTION("accept-loss", OPTION_FLAG, NULL, serve_options, accept_loss,
           "start although acknowledged feeds are missing from DIR, and log which; without it such "
           "a start is refused"),
    OPTION(
        "token-file", OPTION_TEXT, "FILE", serve_options, server.token_file,
        "file with the token that every request must carry, or with lines of TOKEN ROLE "
        "[ENGINES]: read, feed or admin, and a pattern of names; it must be readable only by its "
        "owner (chmod 600)"),
    OPTION("tls-cert", OPTION_TEXT, "FILE", serve_options, server.tls_cert,
           "certificate (PEM) for HTTPS; needs --tls-key"),
    OPTION("tls-key", OPTION_TEXT, "FILE", serve_options, server.tls_key,
           "private key (PEM) for HTTPS; needs --tls-cert"),
    OPTION("report", OPTION_TEXT, "FILE.html", serve_options, server.report,
           "an HTML report of iron arena, served at /report"),
    OPTION("log", OPTION_TEXT, "FORMAT", serve_options, server.log,
           "log format on standard error: sentences, or one JSON object per line and request",
           .choices = "text json", .standard = "text"),
    OPTION("log-level", OPTION_TEXT, "LEVEL", serve_options, server.log_level,
           "least severe messages to log", .choices = "debug info warning error",
           .standard = "info"),
    OPTION("host", OPTION_LIST, "NAME", serve_options, hosts,
           "an additional host name that requests may use; up to 16 times"),
};

static const option limit_table[] = {
    OPTION("max-engines", OPTION_NUMBER, "N", iron_server_options, max_engines, "number of engines",
           .min = 1, .max = 1000000, .standard = "256"),
    OPTION("max-body", OPTION_NUMBER, "BYTES", iron_server_options, max_body,
           "size of one request body", .min = 1, .standard = "1 TiB"),
    OPTION("max-connections", OPTION_NUMBER, "N", iron_server_options, max_connections,
           "number of connections", .min = 1, .max = 65536, .standard = "512"),
    OPTION("max-per-address", OPTION_NUMBER, "N", iron_server_options, max_per_address,
           "number of connections from one address", .min = 1, .max = 65536, .standard = "256"),
    OPTION("max-uploads", OPTION_NUMBER, "N", iron_server_options, max_uploads,
           "number of large request bodies at the same time", .min = 1, .max = 65536,
           .standard = "64"),
    OPTION("max-run", OPTION_NUMBER, "SIZE", iron_server_options, max_run,
           "size of the records of a training run; checking one takes as much memory", .min = 65536,
           .max = UINT64_C(1) << 40, .standard = "256 MiB"),
    OPTION("header-seconds", OPTION_NUMBER, "S", iron_server_options, header_seconds,
           "time for a request header to arrive", .min = 1, .max = 86400, .standard = "15"),
    OPTION("request-seconds", OPTION_NUMBER, "S", iron_server_options, request_seconds,
           "time for a whole request", .min = 1, .max = 1000000, .standard = "3600"),
    OPTION("min-body-rate", OPTION_NUMBER, "BYTES", iron_server_options, min_body_rate,
           "minimum rate of a request body in bytes per second", .min = 1, .standard = "1024"),
    OPTION("grace-seconds", OPTION_NUMBER, "S", iron_server_options, grace_seconds,
           "time for requests in progress when the server stops", .min = 1, .max = 86400,
           .standard = "10"),
    OPTION("drain-seconds", OPTION_NUMBER, "S", iron_server_options, drain_seconds,
           "time before that in which only /readyz shows that the server stops", .max = 86400,
           .standard = "0"),
};

#if IRON_WITH_SERVER

static iron_status serve(const serve_options *o, iron_error *err) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    iron_server_options options = o->server;
    iron_service service;
    iron_server *server = NULL;
    iron_status status;
    sigset_t blocked;
    int got;

#ifdef M_MMAP_THRESHOLD
    /* return large blocks to the system when they are freed; glibc would learn to keep them */
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
#endif
    IRON_TRY(iron_service_take(&service, err));
    options.service = &service;
    /* those that stop the server or make it reload, but not if they were ignored at start */
    sigemptyset(&blocked);
    for (size_t k = 0; k < COUNT(signals); k++) {
        struct sigaction now;

        if (sigaction(signals[k], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&blocked, signals[k]);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    signal(SIGPIPE, SIG_IGN); /* a closed log pipe must not end the server */
    status = iron_server_start(&options, &server, err);
    if (status == IRON_OK) {
        while (sigwait(&blocked, &got) == 0 && got == SIGHUP)
            (void)iron_server_reload(server, NULL); /* it logs the result */
        sigdelset(&blocked, SIGHUP);                /* no reason to end at once */
        pthread_sigmask(SIG_UNBLOCK, &blocked, NULL);
        status = iron_server_stop(server, err);
    }
    return status;
}

static iron_status run(void *options, args *a, iron_error *err) {
    serve_options *o = options;
    const char *verb = a->value_count > 0 ? a->values[0] : "";
    iron_server_verified found;
    iron_status status;

    o->server.hosts = o->hosts.texts;
    o->server.host_count = o->hosts.count;
    o->server.listens = o->listens.texts;
    o->server.listen_count = o->listens.count;
    o->server.accept_loss = o->accept_loss;
    if (strcmp(verb, "backup") == 0) {
        if (a->value_count != 3)
            return usage(err, "write iron serve backup DIR TARGET");
        IRON_TRY(iron_server_backup(a->values[1], a->values[2], err));
        printf("%s is a backup of %s\n", a->values[2], a->values[1]);
        return IRON_OK;
    }
    if (strcmp(verb, "verify") == 0) {
        if (a->value_count != 2)
            return usage(err, "write iron serve verify DIR");
        IRON_TRY(iron_server_verify(a->values[1], &found, err));
        printf("%s is sound: %" PRIu64 " engine%s, %" PRIu64 " feed%s, %" PRIu64 " batch%s",
               a->values[1], found.engines, plural_s(found.engines), found.feeds,
               plural_s(found.feeds), found.batches, found.batches == 1 ? "" : "es");
        if (found.runs > 0)
            printf("; %" PRIu64 " run%s, %" PRIu64 " record%s", found.runs, plural_s(found.runs),
                   found.records, plural_s(found.records));
        if (found.removed > 0)
            printf("; %" PRIu64 " older feeds are no longer kept", found.removed);
        puts(found.is_running
                 ? "; a server is running: a lost log is noticed only when it is stopped"
                 : "");
        return IRON_OK;
    }
    if (a->value_count > 0)
        status = usage(err,
                       "unexpected argument '%.60s'; iron serve takes only options, or backup or "
                       "verify, see --help",
                       a->values[0]);
    else if (!o->server.tls_cert != !o->server.tls_key)
        status = usage(err, "--tls-cert and --tls-key belong together; give both or neither");
    else
        status = serve(o, err);
    /* if the log is JSON, the error line is too */
    if (status != IRON_OK && o->server.log && strcmp(o->server.log, "json") == 0 &&
        iron_server_complain(&o->server, err))
        err->text[0] = '\0'; /* main.c has nothing more to print */
    return status;
}

#else

static iron_status run(void *options, args *a, iron_error *err) {
    (void)options;
    (void)a;
    return usage(err, "iron serve is not part of this build: %s", IRON_SERVER_WHY);
}

#endif

const command command_serve = {
    .name = "serve",
    .summary = "serves engines over HTTP; acknowledged data is durable",
    .synopsis = "[OPTIONS] | backup DIR TARGET | verify DIR",
    .description =
        "Serves engines over HTTP. Requests create, feed, read and delete them; docs/server.md and "
        "/openapi.json of the server describe the requests. A feed is acknowledged only when it is "
        "on disk. SIGINT and SIGTERM stop the server cleanly: requests in progress are finished or "
        "refused. A second signal stops it immediately, without losing acknowledged data. SIGHUP "
        "makes it read the token file, the certificate and its key again.\n\n"
        "iron serve backup copies the data directory DIR to the new directory TARGET, also while a "
        "server uses it. TARGET is complete or absent; it is a data directory: iron serve --data "
        "TARGET serves it.\n\n"
        "iron serve verify replays every engine of DIR from its first feed, and compares every "
        "stored state. While a server uses DIR it verifies what is there at that time.\n\n"
        "A service manager such as systemd can pass the socket and is told when the server is "
        "ready (docs/operations.md).",
    .groups = {{NULL, serve_table, COUNT(serve_table), 0},
               {"Limits", limit_table, COUNT(limit_table), offsetof(serve_options, server)}},
    .exit_status = "0: stopped cleanly, backed up, or sound; 1: verify found a difference, and "
                   "says where; 2: error.",
    .environment =
        DRIVER_VARIABLES " LISTEN_FDS LISTEN_PID NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID",
    .examples = "iron serve --data /var/lib/iron\n"
                "curl -d '{\"name\": \"corpus\"}' -H 'Content-Type: application/json' \\\n"
                "    http://127.0.0.1:8080/v1/engines\n"
                "iron push tokens.bin http://127.0.0.1:8080/v1/engines/corpus --dtype u16",
    .options_bytes = sizeof(serve_options),
    .defaults = &(const serve_options){.server.struct_size = sizeof(iron_server_options)},
    .run = run,
};
