/* SPDX-License-Identifier: MIT */
/*
 * log_request.c: see log_request.h. Texts that a client chooses are cut, so that the longest line
 * still goes into a pipe as a whole (log.h): each of their bytes may become six.
 */
#include "server/log_request.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>

#define PATH_MAX_BYTES   300
#define METHOD_MAX_BYTES 20
#define ENGINE_MAX_BYTES 100

/* What somebody asks for every few seconds, and nobody wants to read. */
static bool is_routine(const iron__request_record *r) {
    static const char *const patterns[] = {"/healthz", "/readyz", "/metrics"};

    for (size_t k = 0; r->route && r->status == 200 && k < sizeof patterns / sizeof *patterns; k++)
        if (strcmp(r->route->pattern, patterns[k]) == 0)
            return true;
    return false;
}

static iron__log_level level_of(const iron__request_record *r) {
    if (is_routine(r))
        return IRON_LOG_DEBUG;
    if (r->status >= 500 && r->status != 503)
        return IRON_LOG_ERROR;
    if (r->problem && strcmp(r->problem->kind, "read-only") == 0)
        return IRON_LOG_ERROR;
    return r->problem || r->status >= 400 ? IRON_LOG_WARNING : IRON_LOG_INFO;
}

static void write_cut(iron__json_writer *j, const char *name, iron__text text, int most) {
    char room[PATH_MAX_BYTES + 4];
    bool is_cut = text.bytes > (size_t)most;

    if (!text.at)
        return;
    snprintf(room, sizeof room, "%.*s%s", is_cut ? most : (int)text.bytes, text.at,
             is_cut ? "..." : "");
    iron__json_write_text(j, name, room);
}

static void write_path(iron__json_writer *j, iron__text target) {
    const char *query = target.at ? memchr(target.at, '?', target.bytes) : NULL;

    if (query)
        target.bytes = (size_t)(query - target.at);
    write_cut(j, "path", target, PATH_MAX_BYTES);
}

static void write_client(iron__json_writer *j, const struct sockaddr *client) {
    char text[INET6_ADDRSTRLEN] = "";
    const void *address = NULL;

    if (client && client->sa_family == AF_INET)
        address = &((const struct sockaddr_in *)(const void *)client)->sin_addr;
    else if (client && client->sa_family == AF_INET6)
        address = &((const struct sockaddr_in6 *)(const void *)client)->sin6_addr;
    if (address && inet_ntop(client->sa_family, address, text, sizeof text))
        iron__json_write_text(j, "client", text);
}

static void write_record(iron__json_writer *j, const iron__request_record *r) {
    char id[24];

    snprintf(id, sizeof id, "%016" PRIx64, r->id);
    iron__json_write_text(j, "request_id", id);
    write_cut(j, "method", r->method, METHOD_MAX_BYTES);
    write_path(j, r->target);
    iron__json_write_text(j, "route", r->route ? r->route->pattern : "none");
    iron__json_write_whole(j, "status", r->status);
    if (r->engine && r->engine[0])
        write_cut(j, "engine", iron__text_of(r->engine), ENGINE_MAX_BYTES);
    write_client(j, r->client);
    iron__json_write_whole(j, "bytes_in", r->bytes_in);
    iron__json_write_whole(j, "bytes_out", r->bytes_out);
    iron__json_write_real(j, "seconds", (double)r->ns * 1e-9);
    if (r->problem)
        iron__json_write_text(j, "problem", r->problem->kind);
    if (r->detail)
        iron__json_write_text(j, "detail", r->detail);
}

void iron__log_request(iron__log *log, const iron__request_record *record) {
    iron__log_level level = level_of(record);
    iron__log_line line;

    if (!iron__log_is_json(log) || !iron__log_wants(log, level) ||
        !iron__log_begin(log, &line, level, "request"))
        return;
    write_record(&line.json, record);
    iron__log_end(&line);
}

void iron__log_refused(iron__log *log, const struct sockaddr *client, const char *why) {
    iron__log_line line;

    if (!iron__log_is_json(log) || !iron__log_wants(log, IRON_LOG_WARNING) ||
        !iron__log_begin(log, &line, IRON_LOG_WARNING, "refused"))
        return;
    write_client(&line.json, client);
    iron__json_write_text(&line.json, "message", why);
    iron__log_end(&line);
}
