/* SPDX-License-Identifier: MIT */
/*
 * event_stream.h: an answer of server-sent events, as the routes that give one share it: text that
 * is written and then sent, a comment into every long silence, the end when the server stops.
 *
 * A comment keeps what is between here and the reader from taking the silence for an end, and finds
 * readers that have gone.
 */
#ifndef IRON_SERVER_EVENT_STREAM_H
#define IRON_SERVER_EVENT_STREAM_H

#include "server/exchange.h"

/* No screen shows more changes of one engine. */
#define IRON_EVENT_NS (UINT64_C(1000000000) / 60)
/* Nobody waits longer for news without looking up: the reader may be gone. */
#define IRON_EVENT_WAIT_MS 1000u

typedef struct iron__event_stream iron__event_stream;

/* The first member of what a route keeps for its stream. */
struct iron__event_stream {
    iron__site *site;
    /* Waits for news for a while, then writes what there is to tell, if anything. */
    void (*look)(iron__event_stream *s);
    void (*destroy)(iron__event_stream *s);
    bool is_over;  /* what was written is the last */
    bool is_short; /* there was no memory for it */
    char *text;
    size_t bytes, sent, room;
    uint64_t told_ns; /* when anything was told last */
};

/* Answers with the stream, which it takes. */
void iron__event_stream_answer(iron__exchange *x, iron__event_stream *s);
void iron__event_stream_deinit(iron__event_stream *s);
/* The next bytes; see iron__stream_read. */
ssize_t iron__event_stream_read(void *stream, char *room, size_t bytes);

/* Adds to the text. */
void iron__event_write(iron__event_stream *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Events `engine` and `deleted` of one engine. */
void iron__event_write_engine(iron__event_stream *s, const iron__kept_view *view);
void iron__event_write_deleted(iron__event_stream *s, const char *name);

/* Sleeps until `period_ns` after `since_ns`, if that is still to come. */
void iron__event_pace(uint64_t since_ns, uint64_t period_ns);

#endif
