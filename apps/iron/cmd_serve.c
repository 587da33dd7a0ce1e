/* SPDX-License-Identifier: MIT */
/*
 * cmd_serve.c: `iron serve`: the server, until a signal asks it to stop.
 *
 * The signals are blocked before the server's threads start, so that they come to the one thread
 * that waits for them. The first asks for a clean stop; a second, while that is on its way, ends
 * the process as it would any other: what was acknowledged is on the disk.
 */
#include "command.h"

#include <iron/iron_server.h>

#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* A number among the options, the most it may be, and where it goes. */
typedef struct limit {
    const char *name;
    uint64_t most;
    uint32_t *target;
    uint64_t value;
    bool is_given;
} limit;

enum { LIMITS = 7, TEXTS = 11, OPTIONS = LIMITS + TEXTS };

typedef struct serve_flags {
    iron_server_options options;
    text_list hosts;
    limit limits[LIMITS];
    bool has_body, has_rate;
} serve_flags;

static void set_limits(serve_flags *o) {
    iron_server_options *s = &o->options;
    const limit rows[LIMITS] = {
        {"max-engines", 1000000, &s->max_engines, 0, false},
        {"max-connections", 65536, &s->max_connections, 0, false},
        {"max-per-address", 65536, &s->max_per_address, 0, false},
        {"max-uploads", 65536, &s->max_uploads, 0, false},
        {"header-seconds", 86400, &s->header_seconds, 0, false},
        {"request-seconds", 1000000, &s->request_seconds, 0, false},
        {"grace-seconds", 86400, &s->grace_seconds, 0, false},
    };

    memcpy(o->limits, rows, sizeof rows);
}

static void set_options(serve_flags *o, option table[OPTIONS]) {
    iron_server_options *s = &o->options;
    const option texts[TEXTS] = {
        {"listen", OPTION_TEXT, &s->listen, NULL},
        {"data", OPTION_TEXT, &s->data, NULL},
        {"token-file", OPTION_TEXT, &s->token_file, NULL},
        {"tls-cert", OPTION_TEXT, &s->tls_cert, NULL},
        {"tls-key", OPTION_TEXT, &s->tls_key, NULL},
        {"report", OPTION_TEXT, &s->report, NULL},
        {"log", OPTION_TEXT, &s->log, NULL},
        {"log-level", OPTION_TEXT, &s->log_level, NULL},
        {"host", OPTION_LIST, &o->hosts, NULL},
        {"max-body", OPTION_NUMBER, &s->max_body, &o->has_body},
        {"min-body-rate", OPTION_NUMBER, &s->min_body_rate, &o->has_rate},
    };

    memcpy(table, texts, sizeof texts);
    for (size_t k = 0; k < LIMITS; k++) {
        limit *l = &o->limits[k];

        table[TEXTS + k] = (option){l->name, OPTION_NUMBER, &l->value, &l->is_given};
    }
}

/* Zero would mean the default, which nobody who writes 0 means. */
static iron_status take_limits(serve_flags *o, iron_error *err) {
    for (size_t k = 0; k < LIMITS; k++) {
        const limit *l = &o->limits[k];

        if (!l->is_given)
            continue;
        if (l->value < 1 || l->value > l->most)
            return usage(err, "--%s is %" PRIu64 "; it must be 1 to %" PRIu64, l->name, l->value,
                         l->most);
        *l->target = (uint32_t)l->value;
    }
    if (o->has_body && o->options.max_body == 0)
        return usage(err, "--max-body is 0; it must be at least 1 byte");
    if (o->has_rate && o->options.min_body_rate == 0)
        return usage(err, "--min-body-rate is 0; it must be at least 1 byte a second");
    return IRON_OK;
}

static iron_status check(serve_flags *o, const args *a, iron_error *err) {
    iron_server_options *s = &o->options;

    if (a->value_count > 0)
        return usage(err, "'%.60s' is no option; iron serve takes options alone: see --help",
                     a->values[0]);
    if (!s->tls_cert != !s->tls_key)
        return usage(err, "--tls-cert and --tls-key belong together; give both or none");
    s->struct_size = sizeof *s;
    s->hosts = o->hosts.texts;
    s->host_count = o->hosts.count;
    return take_limits(o, err);
}

#if IRON_WITH_SERVER

/* Those that would end the process; what was ignored when it was started stays ignored. */
static void hold_signals(sigset_t *held) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

    sigemptyset(held);
    for (size_t k = 0; k < COUNT(signals); k++) {
        struct sigaction now;

        if (sigaction(signals[k], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(held, signals[k]);
    }
    pthread_sigmask(SIG_BLOCK, held, NULL);
    /* whoever reads what we say may go; that is no reason to end */
    signal(SIGPIPE, SIG_IGN);
}

/* What is large goes back to the system when it is freed; left alone, glibc learns to keep it. */
static void give_back_memory(void) {
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
#endif
}

/* Where the log is JSON the last line is too. */
static void complain(const serve_flags *o, iron_error *err) {
    if (o->options.log && strcmp(o->options.log, "json") == 0 &&
        iron_server_complain(&o->options, err))
        err->text[0] = '\0'; /* it was said */
}

static iron_status serve(const serve_flags *o, iron_error *err) {
    iron_server_options options = o->options;
    iron_service service;
    iron_server *server = NULL;
    iron_status status;
    sigset_t held;
    int got;

    give_back_memory();
    status = iron_service_take(&service, err);
    if (status != IRON_OK)
        return status;
    options.service = &service;
    hold_signals(&held);
    status = iron_server_start(&options, &server, err);
    if (status == IRON_OK) {
        sigwait(&held, &got);
        pthread_sigmask(SIG_UNBLOCK, &held, NULL);
        status = iron_server_stop(server, err);
    }
    return status;
}

#else

static void complain(const serve_flags *o, const iron_error *err) {
    (void)o;
    (void)err; /* main says it */
}

static iron_status serve(const serve_flags *o, iron_error *err) {
    (void)o;
    return usage(err, "iron serve is not part of this build: %s", IRON_SERVER_WHY);
}

#endif

static iron_status run(int argc, char **argv, iron_error *err) {
    serve_flags o = {0};
    option options[OPTIONS];
    args a = {.options = options, .option_count = COUNT(options)};
    iron_status status;
    bool is_done;

    set_limits(&o);
    set_options(&o, options);
    status = command_args(&command_serve, &a, argc, argv, &is_done, err);
    if (is_done)
        return status;
    status = check(&o, &a, err);
    if (status == IRON_OK)
        status = serve(&o, err);
    if (status != IRON_OK)
        complain(&o, err);
    return status;
}

const command command_serve = {
    "serve", "serves engines over HTTP; what it acknowledges can no longer be lost",
    "usage: iron serve [OPTIONS]\n\n"
    "Serves engines over HTTP: they are made, fed, read and deleted by requests (docs/server.md,\n"
    "and /openapi.json of the server itself). A feed is acknowledged when it is on the disk, and\n"
    "not before. Ends cleanly with SIGINT, SIGTERM or SIGHUP: what is in flight is finished or\n"
    "refused; a second signal ends it at once, and nothing acknowledged is lost then either.\n"
    "A service manager may hand over the socket and be told when it is ready, as systemd does\n"
    "(docs/operations.md).\n\n"
    "  --listen ADDR:PORT       where (default 127.0.0.1:8080); port 0: any that is free. An\n"
    "                           address that others can reach needs --token-file\n"
    "  --data DIR               where engines are kept (default iron-data); created if need be\n"
    "  --token-file FILE        the token that every request must bear, alone on a line; nobody\n"
    "                           else may read the file (chmod 600)\n"
    "  --tls-cert F --tls-key F HTTPS with this certificate and key (PEM)\n"
    "  --report FILE.html       a page of iron arena, shown at /report\n"
    "  --log text|json          what is written to standard error: sentences (the default), or an\n"
    "                           object a line, one for each request\n"
    "  --log-level LEVEL        debug, info (the default), warning or error: what is left out is\n"
    "                           less grave\n"
    "  --host NAME              a further name that requests may be for; may be given 16 times\n"
    "  --max-engines N          engines at once (default 256)\n"
    "  --max-body BYTES         of one request (default 1 TiB)\n"
    "  --max-connections N      at once (default 512), and from one address:\n"
    "  --max-per-address N      (default 256)\n"
    "  --max-uploads N          large bodies at once (default 64)\n"
    "  --header-seconds S       for a request's header to arrive (default 15)\n"
    "  --request-seconds S      for a whole request (default 3600)\n"
    "  --min-body-rate BYTES    a second that a body must come with (default 1024)\n"
    "  --grace-seconds S        for what is in flight when it is stopped (default 10)\n\n"
    "examples: iron serve --data /var/lib/iron\n"
    "          curl -d '{\"name\": \"corpus\"}' -H 'Content-Type: application/json' \\\n"
    "              http://127.0.0.1:8080/v1/engines\n"
    "          iron push tokens.bin http://127.0.0.1:8080/v1/engines/corpus --dtype u16\n",
    run};
