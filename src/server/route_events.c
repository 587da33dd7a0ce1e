/* SPDX-License-Identifier: MIT */
/*
 * route_events.c: GET /v1/engines/{name}/events: an event for each change of one engine, but not
 * more than a screen shows; of changes that come faster the latest is told.
 */
#include "server/event_stream.h"
#include "server/route.h"

#include "core/clock.h"

#include <stdlib.h>

typedef struct watcher {
    iron__event_stream stream; /* first: one is the other */
    iron__kept *kept;
    uint64_t version; /* that was told; 0: none */
    uint64_t event_ns;
} watcher;

static void look(iron__event_stream *s) {
    watcher *w = (watcher *)s;
    iron__kept_view view;

    if (w->version && iron__kept_wait(w->kept, w->version, IRON_EVENT_WAIT_MS))
        iron__event_pace(w->event_ns, IRON_EVENT_NS);
    iron__kept_look(w->kept, &view);
    if (view.is_deleted) {
        iron__event_write_deleted(s, view.plan.name);
        s->is_over = true;
    } else if (view.version != w->version) {
        iron__event_write_engine(s, &view);
        w->version = view.version;
        w->event_ns = iron__clock_ns();
    }
}

static void destroy(iron__event_stream *s) {
    watcher *w = (watcher *)s;

    iron__event_stream_deinit(s);
    iron__kept_release(w->kept);
    free(w);
}

void iron__route_events(iron__exchange *x) {
    iron__kept *kept = iron__route_engine(x, x->variable);
    watcher *w;

    if (!kept)
        return;
    w = calloc(1, sizeof *w);
    if (!w) {
        iron__kept_release(kept);
        iron__route_failure(x, &(iron_error){IRON_E_NOMEM, 0, "out of memory: a watcher"});
        return;
    }
    *w = (watcher){.stream = {.look = look, .destroy = destroy}, .kept = kept};
    iron__event_stream_answer(x, &w->stream);
}
