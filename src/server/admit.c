/* SPDX-License-Identifier: MIT */
/*
 * admit.c: may this request have a route? In the order that exchange.h promises: the header, Host
 * and Origin, the token, the path and method, the query's names, the body's length and type. The
 * first that is wrong is the answer.
 */
#include "server/reread.h"
#include "server/talk.h"

#include "core/clock.h"

#include <string.h>
#include <strings.h>

static iron__verdict admit_header(iron__talk *talk, const char *method, const char *version,
                                  iron__header *header) {
    size_t bytes = strlen(talk->target_text);
    bool was_seen = !talk->caller->was_heard && !talk->server->is_tls; /* by the gate */
    iron__verdict verdict = iron__reread_view(talk->connection, method, version, header);

    if (verdict.kind)
        return verdict;
    if (!iron__reread_is_strict(talk->connection, header, talk->target_at, bytes)) {
        talk->must_close = true;
        if (!was_seen)
            return iron__verdict_make("malformed-request",
                                      "send the request as RFC 9112 writes it; HTTP libraries do",
                                      "the header is not written strictly");
    }
    header->target = (iron__text){talk->target_text, bytes};
    return iron__audit_judge(header);
}

static iron__verdict admit_ticket(iron__talk *talk, const char *ticket) {
    if (iron__tickets_redeem(&talk->server->site.tickets, iron__clock_ns(), ticket))
        return iron__verdict_fine();
    return iron__verdict_make(
        "unauthorized", "get a new one: POST /v1/tickets with the server's token",
        "the ticket is none, was used, or is older than %u seconds", IRON_TICKET_SECONDS);
}

/* A path that is not there is told only to those who may know what is. A ticket that is not needed
 * is not used up. */
static iron__verdict admit_token(iron__talk *talk, const iron__match *match,
                                 const iron__header *header) {
    bool is_open = match->route ? match->route->is_open : match->is_open;
    bool takes_ticket = match->route && match->route->takes_ticket;
    const char *ticket = takes_ticket ? iron__target_query(&talk->target, "ticket") : NULL;

    if (is_open ||
        iron__token_admits(&talk->server->token, iron__header_find(header, "Authorization")))
        return iron__verdict_fine();
    if (ticket)
        return admit_ticket(talk, ticket);
    return iron__verdict_make("unauthorized",
                              "send `Authorization: Bearer TOKEN` with the token of the server's "
                              "token file",
                              "the token is missing or not the one");
}

static iron__verdict admit_path(const iron__match *match, const char *method) {
    if (!match->is_path_known)
        return iron__verdict_make("no-such-path", "see /openapi.json for what there is",
                                  "nothing is at this path");
    if (!match->route)
        return iron__verdict_make("method-not-allowed", "use one of the methods in Allow",
                                  "%s is not for this path, but %s", method, match->allow);
    return iron__verdict_fine();
}

static bool type_is(iron__text type, const char *name) {
    size_t bytes = strlen(name);

    return type.bytes >= bytes && strncasecmp(type.at, name, bytes) == 0 &&
           (type.bytes == bytes || strchr("; \t", type.at[bytes]));
}

/* A form's type is what curl says of any --data. That pages of other sites can send it without
 * asking first is what the check of Origin is for. */
static bool is_json_type(iron__text type) {
    return type_is(type, "application/json") || type_is(type, "application/x-www-form-urlencoded");
}

static iron__verdict admit_type(const iron__talk *talk, const iron__header *header) {
    iron__text type = iron__header_find(header, "Content-Type");
    iron__text coding = iron__header_find(header, "Content-Encoding");

    if (coding.at && !iron__text_is_caseless(coding, "identity"))
        return iron__verdict_make("unsupported-type", "send the body as it is",
                                  "bodies with a Content-Encoding are not taken");
    if (talk->x.route->body == IRON_BODY_JSON && type.at && !is_json_type(type))
        return iron__verdict_make("unsupported-type", "send `Content-Type: application/json`",
                                  "the body of this path is JSON");
    return iron__verdict_fine();
}

static iron__verdict admit_body(const iron__talk *talk, const iron__header *header) {
    uint64_t max = talk->server->site.options.max_body;
    iron__body_kind kind = talk->x.route->body;

    if (header->body_bytes == 0)
        return iron__verdict_fine();
    if (kind == IRON_BODY_NONE)
        return iron__verdict_make("unexpected-body", "send the request without a body",
                                  "this path takes no body");
    if (kind == IRON_BODY_JSON && max > IRON_JSON_BODY_MAX)
        max = IRON_JSON_BODY_MAX;
    if (header->body_bytes != IRON_LENGTH_UNKNOWN && header->body_bytes > max)
        return iron__verdict_make("too-large", "send less at once",
                                  "the body has %llu bytes, at most %llu are taken",
                                  (unsigned long long)header->body_bytes, (unsigned long long)max);
    return admit_type(talk, header);
}

static iron__verdict admit_route(iron__talk *talk, const iron__header *header, const char *method) {
    iron__match match;
    iron__verdict broken = iron__target_init(&talk->target, talk->target_text);
    iron__verdict variable = iron__target_match(&talk->target, iron__routes, method, &match);
    iron__verdict verdict = admit_token(talk, &match, header);

    talk->x.route = match.route;
    talk->x.variable = talk->target.variable;
    if (!verdict.kind)
        verdict = admit_path(&match, method);
    if (match.is_path_known && !match.route && !strcmp(verdict.kind, "method-not-allowed"))
        iron__answer_header(&talk->x, "Allow", match.allow);
    if (!verdict.kind)
        verdict = variable.kind ? variable : broken;
    if (!verdict.kind)
        verdict = iron__target_check_query(&talk->target, match.route->query);
    return verdict.kind ? verdict : admit_body(talk, header);
}

void iron__talk_admit(iron__talk *talk, const char *method, const char *version) {
    iron__site *site = talk->x.site;
    iron__header header;
    iron__verdict verdict = admit_header(talk, method, version, &header);

    if (verdict.kind) {
        atomic_fetch_add(&site->malformed, 1);
        talk->must_close = true;
        /* What the body's length is nobody can say now. */
        talk->x.expected_bytes = IRON_LENGTH_UNKNOWN;
    } else {
        talk->x.expected_bytes = header.body_bytes;
        talk->must_close |= header.body_bytes == IRON_LENGTH_UNKNOWN;
        if (atomic_load(&site->is_stopping))
            verdict = iron__verdict_make("stopping", "try again when the server is back",
                                         "the server takes no new requests");
    }
    if (!verdict.kind)
        verdict = iron__hosts_check(&talk->server->hosts, &header);
    if (!verdict.kind)
        verdict = admit_route(talk, &header, method);
    if (verdict.kind)
        iron__answer_verdict(&talk->x, &verdict);
}
