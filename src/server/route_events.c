/* SPDX-License-Identifier: MIT */
/*
 * route_events.c: GET /v1/engines/{name}/events: server-sent events, one a change but not more than
 * a screen shows; of changes that come faster the latest is told. A comment now and then keeps what
 * is between here and the reader from taking the silence for an end, and finds readers that have
 * gone.
 *
 * Waits are short: between two of them the server may stop.
 */
#include "server/route.h"

#include "core/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EVENT_NS   (UINT64_C(1000000000) / 60)
#define SILENCE_NS (UINT64_C(15) * 1000000000)
#define WAIT_MS    500u

typedef struct watch {
    iron__site *site;
    iron__kept *kept;
    uint64_t version;          /* that was told */
    uint64_t event_ns, any_ns; /* when an event, and anything, was told last */
    bool has_begun, is_over;
    char text[512]; /* that is being told */
    size_t bytes, sent;
} watch;

static void tell(watch *w, const iron__kept_view *view) {
    int used = snprintf(w->text, sizeof w->text,
                        "event: engine\nid: %" PRIu64 "\ndata: {\"tokens\": %" PRIu64
                        ", \"batches\": %" PRIu64 ", \"xor\": \"%08" PRIx32
                        "\", \"sum\": \"%" PRIu64 "\", \"state\": \"%016" PRIx64
                        "\", \"seal\": \"%s\", \"version\": %" PRIu64 "}\n\n",
                        view->version, view->tokens, view->batches, view->xors, view->sum,
                        view->state, view->seal, view->version);

    w->bytes = (size_t)used;
    w->version = view->version;
    w->event_ns = iron__clock_ns();
    w->has_begun = true;
}

static void tell_words(watch *w, const char *words) {
    w->bytes = strlen(words);
    memcpy(w->text, words, w->bytes);
}

/* Until an event may be told again. */
static void keep_pace(const watch *w) {
    uint64_t since = iron__clock_ns() - w->event_ns;
    struct timespec rest = {.tv_nsec = since < EVENT_NS ? (long)(EVENT_NS - since) : 0};

    if (rest.tv_nsec > 0)
        nanosleep(&rest, NULL);
}

/* Puts the next thing to tell into the text, if there is one yet. */
static void look(watch *w) {
    iron__kept_view view;

    if (w->has_begun && iron__kept_wait(w->kept, w->version, WAIT_MS))
        keep_pace(w);
    iron__kept_look(w->kept, &view);
    if (view.is_deleted) {
        tell_words(w, "event: deleted\ndata: {}\n\n");
        w->is_over = true;
    } else if (!w->has_begun || view.version != w->version) {
        tell(w, &view);
    } else if (iron__clock_ns() - w->any_ns >= SILENCE_NS) {
        tell_words(w, ": nothing new\n\n");
    }
}

static ssize_t read_events(void *context, char *room, size_t bytes) {
    watch *w = context;
    size_t count;

    if (w->sent == w->bytes) {
        w->sent = w->bytes = 0;
        if (w->is_over || atomic_load(&w->site->is_stopping))
            return -1;
        look(w);
    }
    if (w->bytes > 0)
        w->any_ns = iron__clock_ns();
    count = w->bytes - w->sent < bytes ? w->bytes - w->sent : bytes;
    memcpy(room, w->text + w->sent, count);
    w->sent += count;
    return (ssize_t)count;
}

static void done_events(void *context) {
    watch *w = context;

    iron__kept_release(w->kept);
    free(w);
}

void iron__route_events(iron__exchange *x) {
    iron__kept *kept = iron__route_engine(x);
    watch *w;

    if (!kept)
        return;
    w = calloc(1, sizeof *w);
    if (!w) {
        iron__kept_release(kept);
        iron__route_failure(x, &(iron_error){IRON_E_NOMEM, 0, "out of memory: a watcher"});
        return;
    }
    w->site = x->site;
    w->kept = kept;
    iron__answer_stream(x, 200, "text/event-stream", read_events, done_events, w);
}
