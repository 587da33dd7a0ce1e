/* SPDX-License-Identifier: MIT */
/*
 * talk.h: an exchange with what is behind it: the HTTP library's connection, the target, the answer
 * as it grows. Routes see its first member alone.
 *
 * The way of a request: talk.c hears of it from the library, admit.c decides whether a route may
 * have it, the route answers (answer.c), deliver.c sends the answer by the way that is open.
 */
#ifndef IRON_SERVER_TALK_H
#define IRON_SERVER_TALK_H

#include "server/exchange.h"
#include "server/problem.h"
#include "server/server.h"
#include "server/target.h"

#define IRON_ANSWER_HEADERS_MAX 12u
#define IRON_TRIMMED_MAX        8u

/* Whoever is at the other end of a connection. */
typedef struct iron__caller {
    iron__watched *watched;
    bool was_heard; /* it has sent a request before: this one was not seen by the gate */
} iron__caller;

typedef enum iron__answer_kind {
    IRON_ANSWER_NONE,
    IRON_ANSWER_EMPTY,
    IRON_ANSWER_OWNED, /* malloc'ed bytes */
    IRON_ANSWER_FIXED,
    IRON_ANSWER_STREAM
} iron__answer_kind;

typedef struct iron__answer {
    iron__answer_kind kind;
    unsigned status;
    const char *type;
    void *bytes;
    size_t count;
    struct {
        char *name, *value;
    } headers[IRON_ANSWER_HEADERS_MAX];
    uint32_t header_count;
    iron__stream_read read;
    void (*done)(void *context);
    void *context;
    iron__json_writer json; /* into `text`, while it is written */
    char *text;
    size_t text_bytes;
    const iron__problem *problem; /* that is being written */
    const iron__problem *told;    /* that the answer is; NULL: it is none */
} iron__answer;

typedef struct iron__talk {
    iron__exchange x; /* first: one is the other */
    iron_server *server;
    struct MHD_Connection *connection;
    iron__caller *caller;
    const char *target_at; /* where the library has it */
    char *target_text;     /* a copy from before the library changed it */
    iron__target target;
    char *trimmed[IRON_TRIMMED_MAX]; /* copies of fields that had blanks at their end */
    char method[24];
    uint64_t begun_ns;
    uint64_t taken_bytes;    /* of the body */
    uint64_t received_bytes; /* of the body, also what is swallowed */
    uint64_t sent_bytes;     /* of the answer's body, given to the library or the socket */
    char *body;              /* IRON_BODY_JSON */
    size_t body_room;
    bool is_begun;      /* the header is complete */
    bool is_routed;     /* the route was asked: it is told of the end */
    bool is_body_over;  /* all of it was taken */
    bool is_swallowing; /* the answer waits for the end of a body that nobody reads */
    bool is_delivered;  /* the library was given the answer, and owns its bytes */
    bool is_sent;       /* the answer is on its way */
    bool is_stream;     /* one that may last, counted when it began */
    bool must_close;    /* the connection ends with this answer */
    iron__answer answer;
} iron__talk;

static inline iron__talk *iron__talk_of(const iron__exchange *x) {
    return (iron__talk *)(uintptr_t)x;
}

/* The callbacks of the library. */
void *iron__talk_create(void *server, const char *target, struct MHD_Connection *connection);
enum MHD_Result iron__talk_handle(void *server, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *count, void **context);
void iron__talk_end(void *server, struct MHD_Connection *connection, void **context,
                    enum MHD_RequestTerminationCode how);

/* admit.c: finds the route, or answers why there is none to be had. */
void iron__talk_admit(iron__talk *talk, const char *method, const char *version);

void iron__talk_refuse_large(iron__talk *talk, uint64_t max);

/* document.c: the body of IRON_BODY_JSON. */
void iron__document_take(iron__talk *talk, const char *bytes, size_t count);
void iron__document_read(iron__talk *talk); /* lets the route read it, and answer */
void iron__document_free(iron__talk *talk);

/* answer.c */
void iron__answer_verdict(iron__exchange *x, const iron__verdict *verdict);
void iron__answer_free(iron__answer *answer);

/* deliver.c: sends the answer that was given; what the library is to be told. */
enum MHD_Result iron__deliver(iron__talk *talk);        /* the body is over */
enum MHD_Result iron__deliver_early(iron__talk *talk);  /* the body has not begun */
enum MHD_Result iron__deliver_midway(iron__talk *talk); /* in the midst of the body */

#endif
