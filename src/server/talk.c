/* SPDX-License-Identifier: MIT */
/*
 * talk.c: what the HTTP library says of a request, in its order: the target, the header, pieces of
 * the body, its end, and that all is over. The library calls from the connection's own thread.
 *
 * An answer to a request without a body is given at its end and not before, since the library
 * closes a connection whose request was answered at the header.
 */
#include "server/talk.h"

#include "server/log_request.h"
#include "server/wire.h"

#include "core/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SWALLOW_MAX ((uint64_t)64 << 20)

static iron__caller *caller_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

void *iron__talk_create(void *server, const char *target, struct MHD_Connection *connection) {
    iron__talk *talk = calloc(1, sizeof *talk);

    if (!talk)
        return NULL;
    talk->server = server;
    talk->connection = connection;
    talk->caller = caller_of(connection);
    talk->target_at = target;
    talk->target_text = strdup(target ? target : "");
    talk->x.site = &talk->server->site;
    talk->x.variable = "";
    if (talk->target_text && talk->caller)
        return talk;
    free(talk->target_text);
    free(talk);
    return NULL;
}

void iron__talk_refuse_large(iron__talk *talk, uint64_t max) {
    iron__answer_problem(&talk->x, "too-large", "send less at once",
                         "the body has more than the %llu bytes that are taken",
                         (unsigned long long)max);
}

static void take_bytes(iron__talk *talk, const char *bytes, size_t count) {
    uint64_t max = talk->server->site.options.max_body;

    talk->taken_bytes += count;
    if (atomic_load(&talk->server->is_cutting))
        iron__answer_problem(&talk->x, "stopping", "send it again when the server is back",
                             "the server stops and no longer waits for bodies");
    else if (talk->taken_bytes > max)
        iron__talk_refuse_large(talk, max);
    else if (talk->x.route->body == IRON_BODY_JSON)
        iron__document_take(talk, bytes, count);
    else if (talk->x.route->take)
        talk->x.route->take(&talk->x, bytes, count);
}

static enum MHD_Result take(iron__talk *talk, const char *bytes, size_t *count) {
    size_t taken = *count;

    *count = 0;
    atomic_fetch_add(&talk->x.site->bytes_in, taken);
    talk->received_bytes += taken;
    if (talk->is_swallowing) {
        talk->taken_bytes += taken;
        return talk->taken_bytes < SWALLOW_MAX && iron__watched_body(talk->caller->watched, taken)
                   ? MHD_YES
                   : MHD_NO;
    }
    if (!iron__watched_work(talk->caller->watched, talk->x.id))
        return MHD_NO;
    take_bytes(talk, bytes, taken);
    if (talk->x.is_answered) {
        talk->taken_bytes = 0; /* of what is swallowed from here on */
        return iron__deliver_midway(talk);
    }
    return iron__watched_body(talk->caller->watched, taken) ? MHD_YES : MHD_NO;
}

static enum MHD_Result end(iron__talk *talk) {
    talk->is_body_over = true;
    if (!iron__watched_work(talk->caller->watched, talk->x.id))
        return MHD_NO;
    if (!talk->x.is_answered && talk->x.route->body == IRON_BODY_JSON)
        iron__document_read(talk);
    else if (!talk->x.is_answered)
        talk->x.route->end(&talk->x);
    if (!talk->x.is_answered) {
        iron__note(talk->x.site->log, "request %016llx: %s %s has no answer",
                   (unsigned long long)talk->x.id, talk->x.route->method, talk->x.route->pattern);
        iron__answer_problem(&talk->x, "internal", "report this", "the server has no answer");
    }
    return iron__deliver(talk);
}

static bool expects_continue(const iron__talk *talk) {
    return iron__exchange_header(&talk->x, "Expect") != NULL;
}

/* Asked to continue although there is no body, the library would say so, take what follows (the
 * next request, if it is there) for the body, and then refuse our answer. */
static enum MHD_Result end_at_once(iron__talk *talk) {
    talk->must_close = true;
    return end(talk);
}

static enum MHD_Result begin(iron__talk *talk, const char *method, const char *version) {
    talk->is_begun = true;
    talk->begun_ns = iron__clock_ns();
    talk->x.id = iron__request_id(talk->x.site);
    snprintf(talk->method, sizeof talk->method, "%s", method);
    atomic_fetch_add(&talk->x.site->in_flight, 1);
    if (!iron__watched_work(talk->caller->watched, talk->x.id))
        return MHD_NO;
    iron__talk_admit(talk, method, version);
    talk->caller->was_heard = true;
    if (!talk->x.is_answered) {
        talk->is_routed = true;
        if (talk->x.route->begin)
            talk->x.route->begin(&talk->x);
    }
    if (talk->x.expected_bytes == 0)
        return expects_continue(talk) ? end_at_once(talk) : MHD_YES; /* it calls again at once */
    if (talk->x.is_answered)
        return iron__deliver_early(talk);
    return iron__watched_body(talk->caller->watched, 0) ? MHD_YES : MHD_NO;
}

enum MHD_Result iron__talk_handle(void *server, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *count, void **context) {
    iron__talk *talk = *context;

    (void)server;
    (void)connection;
    (void)url; /* the library's way to decode is not ours */
    if (!talk)
        return MHD_NO;
    if (!talk->is_begun)
        return begin(talk, method, version);
    if (talk->is_delivered) /* a library that is shutting down takes no answer, and goes on */
        return MHD_NO;
    if (*count > 0)
        return take(talk, bytes, count);
    return end(talk);
}

static const struct sockaddr *client_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    return info ? info->client_addr : NULL;
}

/* In the path or, where that is a parameter, in the query. */
static const char *engine_of(const iron__talk *talk) {
    const iron__route *route = talk->x.route;

    if (talk->x.variable[0] || !route || !route->query || !strstr(route->query, "engine"))
        return talk->x.variable;
    return iron__exchange_query(&talk->x, "engine");
}

/* A request has ended: what it was, and what came of it. */
static void record(const iron__talk *talk, uint64_t ns) {
    bool is_told = false;
    iron__request_record r = {.id = talk->x.id,
                              .method = iron__text_of(talk->method),
                              .target = iron__text_of(talk->target_text),
                              .route = talk->x.route,
                              .engine = engine_of(talk),
                              .client = client_of(talk->connection),
                              .bytes_in = talk->received_bytes,
                              .bytes_out = talk->sent_bytes,
                              .ns = ns};

    if (talk->is_sent) {
        r.status = talk->answer.status;
        r.problem = talk->answer.told;
    } else {
        r.detail = iron__watched_cut(talk->caller->watched, &is_told);
    }
    if (is_told) {
        r.problem = iron__problem_find("too-slow");
        r.status = r.problem->status;
    }
    iron__log_request(talk->x.site->log, &r);
}

static void account(iron__talk *talk) {
    iron__site *site = talk->x.site;
    uint64_t ns = iron__clock_ns() - talk->begun_ns;

    if (!talk->is_stream)
        iron__site_took(site, talk->x.route, ns);
    atomic_fetch_add(&site->bytes_out, talk->sent_bytes);
    record(talk, ns);
}

void iron__talk_end(void *server, struct MHD_Connection *connection, void **context,
                    enum MHD_RequestTerminationCode how) {
    iron__talk *talk = *context;

    (void)server;
    (void)connection;
    (void)how;
    *context = NULL;
    if (!talk)
        return;
    if (talk->is_routed && talk->x.route->drop)
        talk->x.route->drop(&talk->x);
    if (talk->is_begun) {
        account(talk);
        iron__watched_idle(talk->caller->watched);
        atomic_fetch_sub(&talk->x.site->in_flight, 1);
    }
    iron__answer_free(&talk->answer);
    iron__target_deinit(&talk->target);
    for (size_t k = 0; k < IRON_TRIMMED_MAX; k++)
        free(talk->trimmed[k]);
    free(talk->target_text);
    iron__document_free(talk);
    free(talk);
}
