/* SPDX-License-Identifier: MIT */
/*
 * event_stream.c: see event_stream.h. Names of engines are of an alphabet that JSON writes as it
 * is; nothing else that is written comes from a client.
 */
#include "server/event_stream.h"

#include "core/clock.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SILENCE_NS (UINT64_C(14) * 1000000000) /* with a wait (IRON_EVENT_WAIT_MS): 15 s at most */
#define FIRST_ROOM 1024u

static bool make_room(iron__event_stream *s, size_t more) {
    size_t room = s->room ? s->room : FIRST_ROOM;
    char *text;

    if (s->bytes + more <= s->room)
        return true;
    while (room < s->bytes + more)
        room *= 2;
    text = realloc(s->text, room);
    if (!text)
        return false;
    s->text = text;
    s->room = room;
    return true;
}

void iron__event_write(iron__event_stream *s, const char *format, ...) {
    char text[512];
    va_list values;
    int used;

    va_start(values, format);
    used = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (used < 0 || (size_t)used >= sizeof text || !make_room(s, (size_t)used)) {
        s->is_short = true; /* half an event is none: the stream ends */
        return;
    }
    memcpy(s->text + s->bytes, text, (size_t)used);
    s->bytes += (size_t)used;
}

void iron__event_write_engine(iron__event_stream *s, const iron__kept_view *view) {
    iron__event_write(s,
                      "event: engine\nid: %" PRIu64
                      "\ndata: {\"name\": \"%s\", \"tokens\": %" PRIu64 ", \"batches\": %" PRIu64
                      ", \"feeds\": %" PRIu64 ", \"xor\": \"%08" PRIx32 "\", \"sum\": \"%" PRIu64
                      "\", \"state\": \"%016" PRIx64 "\", \"seal\": \"%s\", \"version\": %" PRIu64
                      "}\n\n",
                      view->version, view->plan.name, view->tokens, view->batches, view->feeds,
                      view->xors, view->sum, view->state, view->seal, view->version);
}

void iron__event_write_deleted(iron__event_stream *s, const char *name) {
    iron__event_write(s, "event: deleted\ndata: {\"name\": \"%s\"}\n\n", name);
}

void iron__event_pace(uint64_t since_ns, uint64_t period_ns) {
    uint64_t gone = iron__clock_ns() - since_ns;
    struct timespec rest = {.tv_nsec = gone < period_ns ? (long)(period_ns - gone) : 0};

    if (rest.tv_nsec > 0)
        nanosleep(&rest, NULL);
}

/* Something to send, if there is anything yet; false at the end. */
static bool fill(iron__event_stream *s) {
    s->sent = s->bytes = 0;
    if (s->is_over || atomic_load(&s->site->is_stopping))
        return false;
    s->look(s);
    if (s->bytes == 0 && iron__clock_ns() - s->told_ns >= SILENCE_NS)
        iron__event_write(s, ": nothing new\n\n");
    if (s->bytes > 0)
        s->told_ns = iron__clock_ns();
    return !s->is_short;
}

ssize_t iron__event_stream_read(void *stream, char *room, size_t bytes) {
    iron__event_stream *s = stream;
    size_t count;

    if (s->sent == s->bytes && !fill(s))
        return -1;
    count = s->bytes - s->sent < bytes ? s->bytes - s->sent : bytes;
    if (count > 0)
        memcpy(room, s->text + s->sent, count);
    s->sent += count;
    return (ssize_t)count;
}

void iron__event_stream_deinit(iron__event_stream *s) { free(s->text); }

static void done(void *stream) {
    iron__event_stream *s = stream;

    s->destroy(s);
}

void iron__event_stream_answer(iron__exchange *x, iron__event_stream *s) {
    s->site = x->site;
    iron__answer_stream(x, 200, "text/event-stream", iron__event_stream_read, done, s);
}
