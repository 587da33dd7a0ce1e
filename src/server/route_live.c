/* SPDX-License-Identifier: MIT */
/*
 * route_live.c: GET /v1/events: all that a page shows, over one connection: what changes of any
 * engine (roster.h), four times a second at most, and each change of the one engine that has the
 * focus, as often as a screen shows it.
 *
 * The thread sleeps until there is news. While there always is, it wakes as often as it may tell
 * something and no more often: what the news of a thousand feeds a second costs a reader does not
 * depend on how many they are.
 */
#include "server/roster.h"
#include "server/route.h"

#include "core/clock.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct live {
    iron__event_stream stream; /* first: one is the other */
    iron__roster roster;
    uint64_t seen;              /* news */
    uint64_t woken_ns, list_ns; /* when there was news, and when the list was looked at, last */
    bool is_list_due;
    char focus[IRON_ENGINE_NAME_MAX + 1]; /* "": none */
    iron__kept *kept;                     /* that has the focus; NULL: it is not there */
    uint64_t version;                     /* of it, that was told; 0: none */
} live;

/* When the list is to be looked at, whether there is news or not. */
static uint64_t list_at(const live *l) {
    uint64_t wake = l->is_list_due ? 0 : l->roster.wake_ns;

    return wake > l->list_ns + IRON_ROSTER_NS ? wake : l->list_ns + IRON_ROSTER_NS;
}

static uint32_t wait_ms(const live *l, uint64_t now_ns) {
    uint64_t until = list_at(l), rest_ms = until > now_ns ? (until - now_ns) / 1000000 + 1 : 0;

    return rest_ms < IRON_EVENT_WAIT_MS ? (uint32_t)rest_ms : IRON_EVENT_WAIT_MS;
}

static void wait_for_news(live *l) {
    uint64_t news;

    iron__event_pace(l->woken_ns, l->focus[0] ? IRON_EVENT_NS : IRON_ROSTER_NS);
    news = iron__store_wait(l->stream.site->store, l->seen, wait_ms(l, iron__clock_ns()));
    if (news == l->seen)
        return;
    l->seen = news;
    l->is_list_due = true;
    l->woken_ns = iron__clock_ns();
}

static void tell_list(live *l) {
    l->is_list_due = false;
    l->list_ns = iron__clock_ns();
    iron__roster_tell(&l->roster, &l->stream);
}

/* An engine that is deleted is in the list for a moment more: of one that was not told of, its end
 * is not told either. One that gets its name later gets the focus too. */
static void tell_focus(live *l) {
    iron__kept_view view;

    if (!l->kept)
        l->kept = iron__store_find(l->stream.site->store, l->focus);
    if (!l->kept)
        return;
    iron__kept_look(l->kept, &view);
    if (view.is_deleted) {
        if (l->version)
            iron__event_write_deleted(&l->stream, l->focus);
        iron__kept_release(l->kept);
        l->kept = NULL;
        l->version = 0;
    } else if (view.version != l->version) {
        iron__event_write_engine(&l->stream, &view);
        l->version = view.version;
    }
}

static void look(iron__event_stream *s) {
    live *l = (live *)s;

    if (l->roster.has_begun)
        wait_for_news(l);
    if (!l->roster.has_begun || list_at(l) <= iron__clock_ns())
        tell_list(l);
    if (l->focus[0])
        tell_focus(l);
    if (s->bytes > 0)
        l->woken_ns = iron__clock_ns();
}

static void destroy(iron__event_stream *s) {
    live *l = (live *)s;

    iron__event_stream_deinit(s);
    iron__roster_deinit(&l->roster);
    iron__kept_release(l->kept);
    free(l);
}

void iron__route_live(iron__exchange *x) {
    const char *focus = iron__exchange_query(x, "engine");
    iron__kept *kept = focus ? iron__route_engine(x, focus) : NULL;
    live *l;

    if (focus && !kept)
        return;
    l = calloc(1, sizeof *l);
    if (!l) {
        iron__kept_release(kept);
        iron__route_failure(x, &(iron_error){IRON_E_NOMEM, 0, "out of memory: a watcher"});
        return;
    }
    l->stream = (iron__event_stream){.look = look, .destroy = destroy};
    l->kept = kept;
    snprintf(l->focus, sizeof l->focus, "%s", focus ? focus : "");
    iron__event_stream_answer(x, &l->stream);
}
