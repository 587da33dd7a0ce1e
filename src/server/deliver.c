/* SPDX-License-Identifier: MIT */
/*
 * deliver.c: an answer on its way out; there are three.
 *
 * After the body the library sends it and keeps the connection. Before the body the library sends
 * it and closes, while the peer may be sending: a duplicate of the socket lingers (linger.h), or
 * one client in three would see a reset instead of its answer. In the midst of a body the library
 * sends nothing at all: there the answer is written to the socket here, and the library only
 * told to close; under TLS, where only the library can write, the rest of the body is swallowed
 * and the answer follows it, unless there is too much of it.
 */
#include "server/talk.h"
#include "server/wire.h"

#include "core/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#define MIDWAY_MS    5000
#define STREAM_BLOCK ((size_t)16 << 10)
#define PAUSE_NS     10000000

/* A streamed answer, as the library asks for it. */
typedef struct stream {
    const iron_server *server;
    uint64_t *sent_bytes; /* the talk's, which lives as long as it is read */
    int fd;
    iron__stream_read read;
    void (*done)(void *context);
    void *context;
} stream;

static bool is_peer_gone(int fd) {
    char byte;

    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static ssize_t stream_read(void *context, uint64_t position, char *room, size_t bytes) {
    stream *s = context;
    uint64_t asked_ns = iron__clock_ns();
    ssize_t got;

    (void)position;
    if (atomic_load(&s->server->is_cutting)) /* what is cut must not look whole */
        return MHD_CONTENT_READER_END_WITH_ERROR;
    got = s->read(s->context, room, bytes);
    if (got < 0 || (got == 0 && is_peer_gone(s->fd)))
        return MHD_CONTENT_READER_END_OF_STREAM;
    *s->sent_bytes += (uint64_t)got;
    if (got == 0 && iron__clock_ns() - asked_ns < PAUSE_NS) /* the library would ask at once */
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    return got;
}

static void stream_done(void *context) {
    stream *s = context;

    s->done(s->context);
    free(s);
}

/* The library's response takes the stream in any case. */
static struct MHD_Response *make_stream(iron__talk *talk) {
    iron__answer *answer = &talk->answer;
    stream *s = malloc(sizeof *s);
    struct MHD_Response *response;

    if (!s)
        return NULL; /* the answer still has it */
    *s = (stream){talk->server, &talk->sent_bytes, iron__watched_socket(talk->caller->watched),
                  answer->read, answer->done,      answer->context};
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, stream_read, s,
                                                 stream_done);
    if (response)
        answer->kind = IRON_ANSWER_NONE;
    else
        free(s);
    return response;
}

static struct MHD_Response *make_response(iron__talk *talk) {
    iron__answer *answer = &talk->answer;
    struct MHD_Response *response;

    if (answer->kind == IRON_ANSWER_STREAM)
        return make_stream(talk);
    if (answer->kind != IRON_ANSWER_OWNED)
        return MHD_create_response_from_buffer(answer->count, answer->bytes,
                                               MHD_RESPMEM_PERSISTENT);
    response = MHD_create_response_from_buffer(answer->count, answer->bytes, MHD_RESPMEM_MUST_FREE);
    if (response)
        answer->kind = IRON_ANSWER_NONE;
    return response;
}

static bool has_header(const iron__answer *answer, const char *name) {
    for (uint32_t k = 0; k < answer->header_count; k++)
        if (strcasecmp(answer->headers[k].name, name) == 0)
            return true;
    return false;
}

static bool add(struct MHD_Response *response, const iron__answer *answer, const char *name,
                const char *value) {
    return has_header(answer, name) || MHD_add_response_header(response, name, value) == MHD_YES;
}

static bool add_headers(iron__talk *talk, struct MHD_Response *response) {
    const iron__answer *answer = &talk->answer;
    char id[24];
    bool is_added;

    snprintf(id, sizeof id, "%016" PRIx64, talk->x.id);
    is_added = add(response, answer, "X-Request-Id", id) &&
               add(response, answer, "Cache-Control", "no-store") &&
               add(response, answer, "X-Content-Type-Options", "nosniff") &&
               (!answer->type || add(response, answer, "Content-Type", answer->type)) &&
               (!talk->must_close || add(response, answer, "Connection", "close"));
    for (uint32_t k = 0; k < answer->header_count && is_added; k++)
        is_added = MHD_add_response_header(response, answer->headers[k].name,
                                           answer->headers[k].value) == MHD_YES;
    return is_added;
}

/* It goes out now. A stream is counted at its beginning, for it ends when its reader likes. */
static void count_answer(iron__talk *talk) {
    iron__site *site = talk->x.site;

    talk->is_sent = true;
    iron__site_answered(site, talk->answer.status, talk->answer.told);
    if (talk->is_stream)
        iron__site_took(site, talk->x.route, iron__clock_ns() - talk->begun_ns);
    else if (strcmp(talk->method, "HEAD") != 0)
        talk->sent_bytes = talk->answer.count;
}

enum MHD_Result iron__deliver(iron__talk *talk) {
    iron__watched *watched = talk->caller->watched;
    struct MHD_Response *response;
    enum MHD_Result result = MHD_NO;

    if (atomic_load(&talk->server->site.is_stopping))
        talk->must_close = true;
    talk->is_stream = talk->answer.kind == IRON_ANSWER_STREAM;
    if (!(talk->is_stream ? iron__watched_stream : iron__watched_answer)(watched))
        return MHD_NO;
    response = make_response(talk);
    talk->is_delivered = true;
    if (response && add_headers(talk, response))
        result = MHD_queue_response(talk->connection, talk->answer.status, response);
    if (response)
        MHD_destroy_response(response); /* the library has its own hold on it */
    if (result == MHD_YES)
        count_answer(talk);
    return result;
}

/* From now on whatever still comes is discarded, also after the library has closed. */
static void linger(iron__talk *talk) {
    int fd = iron__watched_socket(talk->caller->watched);

    iron__linger_take(talk->server->linger, fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

enum MHD_Result iron__deliver_early(iron__talk *talk) {
    linger(talk);
    return iron__deliver(talk);
}

static void write_raw(iron__talk *talk, FILE *to) {
    const iron__answer *answer = &talk->answer;

    iron__wire_head(to, answer->status, answer->type, answer->count, talk->x.id);
    for (uint32_t k = 0; k < answer->header_count; k++)
        fprintf(to, "%s: %s\r\n", answer->headers[k].name, answer->headers[k].value);
    fprintf(to, "\r\n");
    if (answer->count)
        fwrite(answer->bytes, 1, answer->count, to);
}

enum MHD_Result iron__deliver_midway(iron__talk *talk) {
    int fd = iron__watched_socket(talk->caller->watched);
    char *text = NULL;
    size_t bytes = 0;
    FILE *to;

    if (talk->server->is_tls || talk->answer.kind == IRON_ANSWER_STREAM) {
        talk->is_swallowing = talk->must_close = true;
        return MHD_YES;
    }
    if (!iron__watched_answer(talk->caller->watched))
        return MHD_NO;
    count_answer(talk);
    to = open_memstream(&text, &bytes);
    if (to) {
        write_raw(talk, to);
        if (fclose(to) == 0 && iron__wire_send(fd, text, bytes, MIDWAY_MS))
            linger(talk);
    }
    free(text);
    return MHD_NO;
}
