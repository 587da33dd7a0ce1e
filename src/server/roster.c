/* SPDX-License-Identifier: MIT */
/*
 * roster.c: see roster.h.
 *
 * A glance at the list tells which engines have news, without a lock of theirs; only these are
 * looked at. A rate falls without any news: an engine that was told with one is looked at again
 * until it was told with none. Nothing is held between two events: a reader that is slow does not
 * keep an engine that was deleted.
 */
#include "server/roster.h"

#include "server/route_text.h"

#include "core/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN_NS UINT64_C(1000000000)

static bool make_room(iron__roster *r, size_t count) {
    iron__roster_row *rows = calloc(count, sizeof *rows), *next = calloc(count, sizeof *next);
    iron__glimpse *glimpses = calloc(count, sizeof *glimpses);

    if (!rows || !next || !glimpses) {
        free(rows);
        free(next);
        free(glimpses);
        return false;
    }
    if (r->count > 0)
        memcpy(rows, r->rows, r->count * sizeof *rows);
    iron__roster_deinit(r);
    r->rows = rows;
    r->next = next;
    r->glimpses = glimpses;
    r->room = count;
    return true;
}

/* All of them, however many there are by now. */
static bool glance(iron__roster *r, iron__store *store, size_t *count) {
    while ((*count = iron__store_glance(store, r->glimpses, r->room)) > r->room)
        if (!make_room(r, *count + 8))
            return false;
    return true;
}

static int compare(const void *name, const void *row) {
    return strcmp(name, ((const iron__roster_row *)row)->glimpse.name);
}

static const iron__roster_row *find(const iron__roster_row *rows, size_t count, const char *name) {
    return count ? bsearch(name, rows, count, sizeof *rows, compare) : NULL;
}

static uint64_t wake_of(const iron__roster_row *row) {
    if (row->rate > 0)
        return row->told_ns + IRON_ROSTER_NS;
    return row->incoming ? row->told_ns + AGAIN_NS : UINT64_MAX;
}

static bool is_new(const iron__roster_row *told, const iron__glimpse *glimpse, uint64_t now_ns) {
    return !told || told->glimpse.id != glimpse->id || told->glimpse.news != glimpse->news ||
           wake_of(told) <= now_ns;
}

static void write_row(iron__event_stream *s, const iron__kept_view *view, bool is_first) {
    char changed[IRON_TIME_TEXT];

    iron__time_text(view->changed_ms, changed);
    iron__event_write(s,
                      "%s{\"name\": \"%s\", \"tokens\": %" PRIu64 ", \"batches\": %" PRIu64
                      ", \"feeds\": %" PRIu64 ", \"incoming\": %" PRIu64
                      ", \"rate\": %.1f, \"version\": %" PRIu64 ", \"changed\": \"%s\"}",
                      is_first ? "" : ", ", view->plan.name, view->tokens, view->batches,
                      view->feeds, view->incoming, view->rate, view->version, changed);
}

/* False if it was deleted since the glance. */
static bool look(iron__store *store, const char *name, iron__kept_view *view) {
    iron__kept *kept = iron__store_find(store, name);

    if (kept)
        iron__kept_look(kept, view);
    iron__kept_release(kept);
    return kept && !view->is_deleted;
}

/* Fills `next`; returns how many were written. */
static size_t write_engines(iron__roster *r, iron__event_stream *s, size_t glimpses,
                            size_t *count) {
    uint64_t now_ns = iron__clock_ns();
    size_t written = 0;
    iron__kept_view view;

    for (size_t k = *count = 0; k < glimpses; k++) {
        const iron__glimpse *glimpse = &r->glimpses[k];
        const iron__roster_row *told = find(r->rows, r->count, glimpse->name);

        if (is_new(told, glimpse, now_ns) && look(s->site->store, glimpse->name, &view)) {
            write_row(s, &view, written++ == 0);
            r->next[(*count)++] = (iron__roster_row){*glimpse, now_ns, view.incoming, view.rate};
        } else if (told) {
            r->next[(*count)++] = *told; /* or it has gone, as the next glance shows */
        }
    }
    return written;
}

static size_t write_removed(const iron__roster *r, iron__event_stream *s, size_t count) {
    size_t written = 0;

    for (size_t k = 0; k < r->count; k++)
        if (!find(r->next, count, r->rows[k].glimpse.name))
            iron__event_write(s, "%s\"%s\"", written++ ? ", " : "", r->rows[k].glimpse.name);
    return written;
}

static void take_next(iron__roster *r, size_t count) {
    iron__roster_row *rows = r->rows;

    r->rows = r->next;
    r->next = rows;
    r->count = count;
    r->wake_ns = UINT64_MAX;
    for (size_t k = 0; k < count; k++)
        if (wake_of(&r->rows[k]) < r->wake_ns)
            r->wake_ns = wake_of(&r->rows[k]);
    r->has_begun = true;
}

void iron__roster_tell(iron__roster *r, iron__event_stream *s) {
    size_t begin = s->bytes, glimpses, count, written;

    if (!glance(r, s->site->store, &glimpses)) {
        s->is_short = true;
        return;
    }
    iron__event_write(s, "event: engines\ndata: {\"complete\": %s, \"engines\": [",
                      r->has_begun ? "false" : "true");
    written = write_engines(r, s, glimpses, &count);
    iron__event_write(s, "], \"removed\": [");
    written += write_removed(r, s, count);
    iron__event_write(s, "]}\n\n");
    if (r->has_begun && written == 0)
        s->bytes = begin;
    take_next(r, count);
}

void iron__roster_deinit(iron__roster *r) {
    free(r->rows);
    free(r->next);
    free(r->glimpses);
}
