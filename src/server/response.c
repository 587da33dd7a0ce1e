/* SPDX-License-Identifier: MIT */
/*
 * response.c: builds responses (http.h), sends them, and counts them.
 *
 * A response can go out in three ways. After the body, libmicrohttpd sends it and keeps the
 * connection. Before the body, libmicrohttpd sends it and closes while the client may still be
 * sending: a duplicate of the socket is drained (connections.c), or one client in three would see a
 * reset instead of its response. In the middle of a body libmicrohttpd sends nothing at all: there
 * the response is written to the socket here, and libmicrohttpd is only told to close. Under TLS,
 * where only libmicrohttpd can write, the rest of the body is discarded and the response follows
 * it, unless the rest is too long.
 */
#include "server/server_internal.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>

#define PROBLEM_JSON "application/problem+json"
#define RAW_SEND_MS  5000
#define STREAM_BLOCK ((size_t)16 << 10)
#define PAUSE_NS     10000000

const iron__http_problem iron__http_problems[] = {
#define PROBLEM_ROW(kind, status, title) {kind, status, title},
    IRON_PROBLEM_MAP(PROBLEM_ROW)
#undef PROBLEM_ROW
        {NULL, 0, NULL}};

const iron__http_problem *iron__http_problem_find(const char *kind) {
    for (const iron__http_problem *row = iron__http_problems; row->kind; row++)
        if (strcmp(row->kind, kind) == 0)
            return row;
    return NULL;
}

/* Counting */

uint64_t iron__request_id(iron_server *server) {
    /* No server handles a request per nanosecond, so the numbers of one run are below those of the
     * next. */
    return server->started_ns + atomic_fetch_add(&server->requests, 1);
}

/* Counts a response by its status and, unless NULL, as a problem. */
static void count_response(iron_server *server, unsigned status,
                           const iron__http_problem *problem) {
    if (status / 100 < sizeof server->responses / sizeof server->responses[0])
        atomic_fetch_add(&server->responses[status / 100], 1);
    if (problem)
        atomic_fetch_add(&server->problems[problem - iron__http_problems], 1);
}

void iron__count_latency(iron_server *server, const iron__route *route, uint64_t ns) {
    size_t row = 0;

    while (row < IRON_ROUTES_MAX && iron__routes[row] && iron__routes[row] != route)
        row++;
    iron__latency_count(&server->latency[route && iron__routes[row] ? row : IRON_ROUTES_MAX], ns);
}

/* Building */

/* Accepts the first response; a second one is a route's bug, which is logged. */
static bool give(iron__request *req, iron__response_kind kind, unsigned status, const char *type) {
    iron__response *response = &req->response;

    if (req->is_answered) {
        iron__note(req->server->log, "request %016llx: a second response was dropped",
                   (unsigned long long)req->id);
        return false;
    }
    req->is_answered = true;
    response->kind = kind;
    response->status = status;
    response->type = type;
    return true;
}

void iron__response_header(iron__request *req, const char *name, const char *value) {
    iron__response *response = &req->response;
    char *copy = strdup(value);

    if (!copy || response->header_count == IRON_RESPONSE_HEADERS_MAX) {
        iron__note(req->server->log, "request %016llx: no room for the header %s",
                   (unsigned long long)req->id, name);
        free(copy);
        return;
    }
    response->headers[response->header_count].name = name;
    response->headers[response->header_count++].value = copy;
}

void iron__response_bytes(iron__request *req, iron__response_kind kind, unsigned status,
                          const char *type, const void *bytes, size_t count) {
    void *writable = (void *)(uintptr_t)bytes; /* static bytes are only read */

    if (give(req, kind, status, type)) {
        req->response.bytes = writable;
        req->response.count = count;
    } else if (kind == IRON_RESPONSE_OWNED) {
        free(writable);
    }
}

void iron__response_empty(iron__request *req, unsigned status) {
    (void)give(req, IRON_RESPONSE_EMPTY, status, NULL);
}

void iron__response_stream(iron__request *req, unsigned status, const char *type,
                           iron__stream_read read, void (*done)(void *context), void *context) {
    if (!give(req, IRON_RESPONSE_STREAM, status, type)) {
        done(context);
        return;
    }
    req->response.read = read;
    req->response.done = done;
    req->response.context = context;
}

iron_json_writer *iron__response_json(iron__request *req) {
    iron__response *response = &req->response;
    FILE *to = open_memstream(&response->text, &response->text_bytes);

    /* Without memory the document is discarded, and finish_json responds with 500. */
    response->json = (iron_json_writer){.to = to ? to : req->server->null_file};
    iron_json_open(&response->json, NULL, '{');
    return &response->json;
}

/* Closes the document and gives it as the response; problem: NULL for a success. */
static void finish_json(iron__request *req, unsigned status, const char *type,
                        const iron__http_problem *problem) {
    static const char no_memory[] = "{\n  \"type\": \"urn:iron:problem:internal\",\n"
                                    "  \"title\": \"Internal error\",\n  \"status\": 500,\n"
                                    "  \"detail\": \"the server is out of memory\",\n"
                                    "  \"help\": \"Try again a little later.\"\n}\n";
    iron__response *response = &req->response;
    bool is_whole = response->json.to != req->server->null_file;

    iron_json_close(&response->json, '}');
    iron_json_end(&response->json);
    if (is_whole)
        is_whole = iron__close_whole(response->json.to);
    response->json.to = NULL;
    if (!req->is_answered)
        response->problem = is_whole ? problem : iron__http_problem_find("internal");
    if (is_whole) {
        iron__response_bytes(req, IRON_RESPONSE_OWNED, status, type, response->text,
                             response->text_bytes);
    } else {
        free(response->text);
        iron__response_bytes(req, IRON_RESPONSE_STATIC, 500, PROBLEM_JSON, no_memory,
                             sizeof no_memory - 1);
    }
    response->text = NULL;
}

void iron__response_json_end(iron__request *req, unsigned status) {
    finish_json(req, status, "application/json", NULL);
}

/* Problems */

void iron__response_problem(iron__request *req, const char *kind, const char *help,
                            const char *detail, ...) {
    const iron__http_problem *problem = iron__http_problem_find(kind);
    iron__text word = iron__text_of(kind);
    char text[400], type[80], instance[40];
    iron_json_writer *json;
    va_list values;

    va_start(values, detail);
    vsnprintf(text, sizeof text, detail, values);
    va_end(values);
    if (!problem)
        problem = iron__http_problem_find("internal");
    if (iron__text_is_one_of(word, "stopping disk-full", false))
        iron__response_header(req, "Retry-After", "5");
    if (iron__text_is_one_of(word, "busy key-in-use too-many-connections too-many-guesses", false))
        iron__response_header(req, "Retry-After", "1");
    if (problem->status == 401)
        iron__response_header(req, "WWW-Authenticate", "Bearer");
    if (strstr(kind, "key")) /* as the draft of Idempotency-Key asks */
        iron__response_header(req, "Link",
                              "</openapi.json>; rel=\"describedby\"; type=\"application/json\"");
    snprintf(type, sizeof type, "urn:iron:problem:%s", problem->kind);
    snprintf(instance, sizeof instance, "/requests/%016" PRIx64, req->id);
    json = iron__response_json(req);
    iron_json_text(json, "type", type);
    iron_json_text(json, "title", problem->title);
    iron_json_number(json, "status", problem->status);
    iron_json_text(json, "detail", text);
    if (help)
        iron_json_text(json, "help", help);
    iron_json_text(json, "instance", instance);
    if (req->problem_member)
        iron_json_number(json, req->problem_member, req->problem_number);
    finish_json(req, problem->status, PROBLEM_JSON, problem);
}

void iron__response_error(iron__request *req, const iron__http_error *error) {
    iron__response_problem(req, error->kind, error->help, "%s", error->detail);
}

/* Sending */

#define FIELDS_MAX (IRON_RESPONSE_HEADERS_MAX + 5)

typedef struct field {
    const char *name, *value;
} field;

/* The header's fields: those of the route, and the usual ones that it has not set. Returns how
 * many; `id` is room for a value. */
static size_t list_fields(const iron__request *req, char id[24], field fields[FIELDS_MAX]) {
    const iron__response *response = &req->response;
    const field usual[] = {{"X-Request-Id", id},
                           {"Cache-Control", "no-store"},
                           {"X-Content-Type-Options", "nosniff"},
                           {"Content-Type", response->type},
                           {"Connection", req->must_close ? "close" : NULL}};
    size_t count = 0, at;

    snprintf(id, 24, "%016" PRIx64, req->id);
    for (; count < response->header_count; count++)
        fields[count] = (field){response->headers[count].name, response->headers[count].value};
    for (size_t k = 0; k < sizeof usual / sizeof usual[0]; k++) {
        for (at = 0; at < response->header_count; at++)
            if (strcasecmp(fields[at].name, usual[k].name) == 0)
                break;
        if (at == response->header_count && usual[k].value)
            fields[count++] = usual[k];
    }
    return count;
}

/* The whole response, which ends its connection; from malloc, NULL without memory. */
static char *write_raw(iron__request *req, size_t *bytes) {
    const iron__response *response = &req->response;
    time_t now = time(NULL);
    struct tm parts;
    char date[40] = "", id[24], *text = NULL;
    field fields[FIELDS_MAX];
    size_t count;
    FILE *to = open_memstream(&text, bytes);

    *bytes = 0;
    if (!to)
        return NULL;
    if (gmtime_r(&now, &parts))
        strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    fprintf(to, "HTTP/1.1 %u %s\r\nDate: %s\r\nContent-Length: %zu\r\n", response->status,
            MHD_get_reason_phrase_for(response->status), date, response->count);
    req->must_close = true;
    count = list_fields(req, id, fields);
    for (size_t k = 0; k < count; k++)
        fprintf(to, "%s: %s\r\n", fields[k].name, fields[k].value);
    fprintf(to, "\r\n");
    if (response->count)
        fwrite(response->bytes, 1, response->count, to);
    if (iron__close_whole(to))
        return text;
    free(text);
    *bytes = 0;
    return NULL;
}

void iron__response_free(iron__response *response) {
    if (response->kind == IRON_RESPONSE_OWNED)
        free(response->bytes);
    if (response->kind == IRON_RESPONSE_STREAM)
        response->done(response->context);
    for (uint32_t k = 0; k < response->header_count; k++)
        free(response->headers[k].value);
}

char *iron__raw_problem(iron_server *server, const iron__http_error *error, uint64_t id,
                        size_t *head, size_t *bytes) {
    iron__request req = {.server = server, .id = id};
    char *text;

    iron__response_error(&req, error);
    count_response(server, req.response.status, req.response.problem);
    text = write_raw(&req, bytes);
    *head = text ? *bytes - req.response.count : 0;
    iron__response_free(&req.response);
    return text;
}

/* Writes all of it, waiting at most RAW_SEND_MS for the client each time. */
static bool send_all(int fd, const void *bytes, size_t count) {
    const char *at = bytes;

    while (count > 0) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        ssize_t sent = send(fd, at, count, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent >= 0) {
            at += sent;
            count -= (size_t)sent;
        } else if (errno != EINTR && (errno != EAGAIN || poll(&ready, 1, RAW_SEND_MS) <= 0)) {
            return false;
        }
    }
    return true;
}

/* The next bytes of a stream, for libmicrohttpd. */
static ssize_t read_stream(void *context, uint64_t position, char *room, size_t bytes) {
    iron__request *req = context;
    uint64_t asked_ns = iron__clock_ns();
    ssize_t got;
    char byte;

    (void)position;
    if (atomic_load(&req->server->is_cutting)) /* a stream that is cut must not look complete */
        return MHD_CONTENT_READER_END_WITH_ERROR;
    got = req->response.read(req->response.context, room, bytes);
    if (got < 0 || (got == 0 && recv(req->connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0))
        return MHD_CONTENT_READER_END_OF_STREAM; /* or the client is gone */
    req->sent_bytes += (uint64_t)got;
    if (got == 0 && iron__clock_ns() - asked_ns < PAUSE_NS) /* it would be called again at once */
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    return got;
}

/* The response goes out now. A stream is counted at its beginning, since the client ends it. */
static void count_sent(iron__request *req) {
    req->is_sent = true;
    count_response(req->server, req->response.status, req->response.problem);
    if (req->is_stream)
        iron__count_latency(req->server, req->route, iron__clock_ns() - req->begun_ns);
    else if (strcmp(req->method, "HEAD") != 0)
        req->sent_bytes = req->response.count;
}

/* The response's bytes and its stream stay the request's, which ends after them. */
static enum MHD_Result queue(iron__request *req) {
    iron__response *response = &req->response;
    enum MHD_Result result = MHD_YES;
    struct MHD_Response *made;
    field fields[FIELDS_MAX];
    char id[24];

    if (atomic_load(&req->server->is_stopping))
        req->must_close = true;
    req->is_stream = response->kind == IRON_RESPONSE_STREAM;
    if (!iron__connection_enter(req->server, req->connection,
                                req->is_stream ? IRON_PHASE_STREAMING : IRON_PHASE_SENDING, 0))
        return MHD_NO;
    made = req->is_stream ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK,
                                                              read_stream, req, NULL)
                          : MHD_create_response_from_buffer(response->count, response->bytes,
                                                            MHD_RESPMEM_PERSISTENT);
    req->is_queued = true;
    if (!made)
        return MHD_NO;
    for (size_t k = 0, count = list_fields(req, id, fields); k < count && result == MHD_YES; k++)
        result = MHD_add_response_header(made, fields[k].name, fields[k].value);
    if (result == MHD_YES)
        result = MHD_queue_response(req->mhd, response->status, made);
    MHD_destroy_response(made); /* libmicrohttpd has its own reference */
    if (result == MHD_YES)
        count_sent(req);
    return result;
}

/* From now on whatever arrives is discarded, also after libmicrohttpd has closed. */
static void drain(iron__request *req) {
    iron__drain_socket(req->server, fcntl(req->connection->fd, F_DUPFD_CLOEXEC, 0));
}

void iron__response_send_raw(iron__request *req) {
    int fd = req->connection->fd;
    size_t bytes;
    char *text;

    if (!iron__connection_enter(req->server, req->connection, IRON_PHASE_SENDING, 0))
        return;
    count_sent(req);
    text = write_raw(req, &bytes);
    if (text && (req->server->is_tls ? iron__tls_send(req->connection, text, bytes)
                                     : send_all(fd, text, bytes)))
        drain(req);
    free(text);
    shutdown(fd, SHUT_WR);
}

enum MHD_Result iron__response_send(iron__request *req) {
    if (req->is_body_over)
        return queue(req);
    if (req->received_bytes == 0) {
        drain(req);
        return queue(req);
    }
    if (req->server->is_tls || req->response.kind == IRON_RESPONSE_STREAM) {
        req->is_discarding = req->must_close = true;
        req->taken_bytes = 0; /* counts what is discarded from here on */
        return MHD_YES;
    }
    iron__response_send_raw(req);
    return MHD_NO;
}
