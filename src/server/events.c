/* SPDX-License-Identifier: MIT */
/*
 * events.c: server-sent events: GET /v1/engines/{name}/events for one engine, GET /v1/events for
 * all that the dashboard shows over one connection, and GET /v1/runs/{run}/events for one run.
 *
 * An event stream collects text in memory, which libmicrohttpd then reads. A comment goes into
 * every long silence: it keeps proxies from closing the connection, and finds clients that are
 * gone. Engine names use only characters that JSON writes as they are; nothing else in the text
 * comes from a client.
 */
#include "server/server_internal.h"

#include "core/number.h"

#include <fnmatch.h>

#define ENGINE_NS  (SECOND_NS / 60) /* between two events of one engine: no screen shows more */
#define LIST_NS    (SECOND_NS / 4)  /* between two events of the list */
#define RECHECK_NS SECOND_NS        /* for engines with tokens on their way */
#define WAIT_MS    1000u            /* for news, before the client is checked */
#define SILENCE_NS (14 * SECOND_NS) /* and a wait: 15 s at most */

/* An event stream; the first member of what a route keeps for its own. */
typedef struct event_stream {
    iron_server *server;
    /* Waits a while for news, then writes the events that are due, if any. */
    void (*fill)(struct event_stream *s);
    void (*deinit)(struct event_stream *s); /* frees what the route has added; may be NULL */
    iron__store_engine *kept;               /* whose changes are sent; NULL: none */
    uint64_t version;                       /* of it, that was sent; 0: none */
    bool is_over;                           /* what was written is the last */
    bool is_truncated;                      /* there was no memory for all of it */
    FILE *to;                               /* takes the text while it is written */
    char *text;
    size_t bytes, sent;
    uint64_t written_ns; /* when anything was written last */
} event_stream;

static void write_engine_event(event_stream *s, const iron__store_engine_view *view) {
    fprintf(s->to,
            "event: engine\nid: %" PRIu64 "\ndata: {\"name\": \"%s\", \"tokens\": %" PRIu64
            ", \"batches\": %" PRIu64 ", \"feeds\": %" PRIu64 ", \"xor\": \"%08" PRIx32
            "\", \"sum\": \"%" PRIu64 "\", \"state\": \"%016" PRIx64
            "\", \"seal\": \"%s\", \"version\": %" PRIu64 "}\n\n",
            view->version, view->plan.name, view->tokens, view->batches, view->feeds, view->xors,
            view->sum, view->state, view->seal, view->version);
}

/* Writes the state of s->kept unless it was sent; false if it was deleted. */
static bool write_change(event_stream *s, iron__store_engine_view *view) {
    iron__store_engine_get_view(s->kept, view, NULL);
    if (!view->is_deleted && view->version != s->version) {
        write_engine_event(s, view);
        s->version = view->version;
    }
    return !view->is_deleted;
}

static void write_deleted_event(event_stream *s, const char *name) {
    fprintf(s->to, "event: deleted\ndata: {\"name\": \"%s\"}\n\n", name);
}

/* Sleeps until `period_ns` after `since_ns`, if that is in the future. */
static void sleep_until(uint64_t since_ns, uint64_t period_ns) {
    uint64_t gone = iron__clock_ns() - since_ns;

    if (gone < period_ns)
        nanosleep(&(struct timespec){.tv_nsec = (long)(period_ns - gone)}, NULL);
}

/* Waits, and collects the text of the events that are due. False: the stream ends, since half an
 * event must not be sent. */
static bool collect(event_stream *s) {
    free(s->text);
    s->text = NULL;
    s->sent = s->bytes = 0;
    s->to = open_memstream(&s->text, &s->bytes);
    if (!s->to)
        return false;
    s->fill(s);
    if (!iron__close_whole(s->to) || s->is_truncated)
        return false;
    if (s->bytes == 0 && iron__clock_ns() - s->written_ns >= SILENCE_NS) {
        free(s->text);
        s->text = strdup(": nothing new\n\n");
        s->bytes = s->text ? strlen(s->text) : 0;
    }
    if (s->bytes > 0)
        s->written_ns = iron__clock_ns();
    return true;
}

/* The next bytes; see iron__stream_read. */
static ssize_t stream_read(void *stream, char *room, size_t bytes) {
    event_stream *s = stream;
    size_t count;

    if (s->sent == s->bytes && (s->is_over || atomic_load(&s->server->is_stopping) || !collect(s)))
        return -1;
    count = s->bytes - s->sent < bytes ? s->bytes - s->sent : bytes;
    if (count > 0)
        memcpy(room, s->text + s->sent, count);
    s->sent += count;
    return (ssize_t)count;
}

static void stream_done(void *stream) {
    event_stream *s = stream;

    if (s->deinit)
        s->deinit(s);
    free(s->text);
    iron__store_engine_release(s->kept);
    free(s);
}

/* A stream of so many bytes, which takes `kept`. NULL: no memory, and the response is given. */
static void *stream_create(iron__request *req, size_t bytes, void (*fill)(event_stream *s),
                           iron__store_engine *kept) {
    event_stream *s = calloc(1, bytes);

    if (!s) {
        iron__store_engine_release(kept);
        iron__route_no_memory(req, "an event stream");
        return NULL;
    }
    s->server = req->server;
    s->fill = fill;
    s->kept = kept;
    return s;
}

/* Responds with the stream, which it takes. */
static void respond(iron__request *req, event_stream *s) {
    iron__response_stream(req, 200, "text/event-stream", stream_read, stream_done, s);
}

/* GET /v1/engines/{name}/events: one event for each change of an engine, at most 60 per second; of
 * changes that come faster, the latest is sent. */

static void engine_fill(event_stream *s) {
    iron__store_engine_view view;

    if (s->version && iron__store_engine_wait(s->kept, s->version, WAIT_MS))
        sleep_until(s->written_ns, ENGINE_NS);
    s->is_over = !write_change(s, &view);
    if (s->is_over)
        write_deleted_event(s, view.plan.name);
}

static void get_engine_events(iron__request *req) {
    iron__store_engine *kept = iron__route_engine(req, req->variable);
    event_stream *s = kept ? stream_create(req, sizeof(event_stream), engine_fill, kept) : NULL;

    if (s)
        respond(req, s);
}

IRON_ROUTE(engine_events, "GET", "/v1/engines/{name}/events", .end = get_engine_events);

/* GET /v1/events: what changes of any engine, at most four times a second, and every change of the
 * one engine in focus, at most 60 times a second.
 *
 * A summary of the store's list shows which engines have news, without any engine's lock; only
 * those are looked at. A rate falls without news, so an engine that was sent with a rate is looked
 * at again until it was sent with none. Nothing is retained between two events: a slow client does
 * not keep a deleted engine alive.
 *
 * The thread sleeps until there is news. While there always is, it wakes only as often as it may
 * send something: a thousand feeds per second cost a client no more than four. */

/* What was sent of an engine. */
typedef struct list_row {
    iron__engine_stamp stamp;
    uint64_t sent_ns, incoming;
    double rate;
} list_row;

typedef struct engine_list {
    bool has_begun;
    char seen[IRON_ENGINE_NAME_MAX + 1]; /* the pattern of the client's token; "": all */
    list_row *rows;                      /* by name */
    size_t count;
    uint64_t wake_ns; /* when something must be sent although there is no news */
} engine_list;

static int compare(const void *name, const void *row) {
    return strcmp(name, ((const list_row *)row)->stamp.name);
}

static const list_row *find_row(const list_row *rows, size_t count, const char *name) {
    return count ? bsearch(name, rows, count, sizeof *rows, compare) : NULL;
}

/* When the row must be sent again although there is no news. */
static uint64_t wake_time(const list_row *row) {
    if (row->rate > 0)
        return row->sent_ns + LIST_NS;
    return row->incoming ? row->sent_ns + RECHECK_NS : UINT64_MAX;
}

/* The stamps of all engines, malloc'ed; NULL: no memory. */
static iron__engine_stamp *read_stamps(iron__store *store, size_t *count) {
    iron__engine_stamp *stamps = NULL;
    size_t room;

    do {
        free(stamps);
        room = iron__store_stamps(store, NULL, 0) + 8;
        stamps = malloc(room * sizeof *stamps);
        if (!stamps)
            return NULL;
        *count = iron__store_stamps(store, stamps, room);
    } while (*count > room);
    return stamps;
}

/* False if the engine was deleted meanwhile. */
static bool look_up(iron__store *store, const char *name, iron__store_engine_view *view) {
    iron__store_engine *kept = iron__store_find(store, name);

    if (kept)
        iron__store_engine_get_view(kept, view, NULL);
    iron__store_engine_release(kept);
    return kept && !view->is_deleted;
}

static void write_row(event_stream *s, const iron__store_engine_view *view, bool is_first) {
    char changed[IRON_TIME_TEXT];

    iron__time_text(view->changed_ms, changed);
    fprintf(s->to,
            "%s{\"name\": \"%s\", \"tokens\": %" PRIu64 ", \"batches\": %" PRIu64
            ", \"feeds\": %" PRIu64 ", \"incoming\": %" PRIu64
            ", \"rate\": %.1f, \"version\": %" PRIu64 ", \"changed\": \"%s\"}",
            is_first ? "" : ", ", view->plan.name, view->tokens, view->batches, view->feeds,
            view->incoming, view->rate, view->version, changed);
}

/* Writes an `engines` event: the first has all engines, later ones the changes; none if there are
 * none. */
static void write_list_event(engine_list *l, event_stream *s) {
    size_t stamp_count = 0, count = 0, written = 0, removed = 0;
    iron__engine_stamp *stamps = read_stamps(s->server->store, &stamp_count);
    list_row *rows = stamps ? malloc((stamp_count + 1) * sizeof *rows) : NULL;
    uint64_t now_ns = iron__clock_ns();
    iron__store_engine_view view;

    s->is_truncated = !rows;
    fprintf(s->to, "event: engines\ndata: {\"complete\": %s, \"engines\": [",
            l->has_begun ? "false" : "true");
    for (const iron__engine_stamp *stamp = stamps; rows && stamp < stamps + stamp_count; stamp++) {
        const list_row *sent = find_row(l->rows, l->count, stamp->name);
        bool is_due = !sent || sent->stamp.id != stamp->id ||
                      sent->stamp.changes != stamp->changes || wake_time(sent) <= now_ns;

        if (l->seen[0] && fnmatch(l->seen, stamp->name, 0) != 0)
            continue;
        if (is_due && look_up(s->server->store, stamp->name, &view)) {
            write_row(s, &view, written++ == 0);
            rows[count++] = (list_row){*stamp, now_ns, view.incoming, view.rate};
        } else if (sent) {
            rows[count++] = *sent; /* if it was deleted, the next summary shows it */
        }
    }
    fprintf(s->to, "], \"removed\": [");
    for (size_t k = 0; k < l->count; k++)
        if (!find_row(rows, count, l->rows[k].stamp.name))
            fprintf(s->to, "%s\"%s\"", removed++ ? ", " : "", l->rows[k].stamp.name);
    fprintf(s->to, "]}\n\n");
    if (l->has_begun && written + removed == 0)
        rewind(s->to); /* nothing was written before */
    free(stamps);
    free(l->rows);
    l->rows = rows;
    l->count = count;
    l->wake_ns = UINT64_MAX;
    for (size_t k = 0; k < count; k++)
        l->wake_ns = iron__min(l->wake_ns, wake_time(&rows[k]));
    l->has_begun = true;
}

typedef struct all_events {
    event_stream stream; /* first */
    engine_list list;
    uint64_t seen;              /* news */
    uint64_t woken_ns, list_ns; /* when there was news, and when the list was read, last */
    bool is_list_due;
    char focus[IRON_ENGINE_NAME_MAX + 1]; /* the name of stream.kept, which may be gone; "": none */
} all_events;

/* When the list is read next, whether there is news or not. */
static uint64_t next_list_ns(const all_events *a) {
    uint64_t wake = a->is_list_due ? 0 : a->list.wake_ns;

    return iron__max(wake, a->list_ns + LIST_NS);
}

static void wait_for_news(all_events *a) {
    uint64_t now, until, rest_ms, news;

    sleep_until(a->woken_ns, a->focus[0] ? ENGINE_NS : LIST_NS);
    now = iron__clock_ns();
    until = next_list_ns(a);
    rest_ms = until > now ? (until - now) / 1000000 + 1 : 0;
    news =
        iron__store_wait(a->stream.server->store, a->seen, (uint32_t)iron__min(rest_ms, WAIT_MS));
    if (news == a->seen)
        return;
    a->seen = news;
    a->is_list_due = true;
    a->woken_ns = iron__clock_ns();
}

/* A deleted engine stays in the store's list for a short time: its end is sent only if it was sent
 * itself. A later engine with the same name gets the focus too. */
static void write_focus(event_stream *s, const char *name) {
    iron__store_engine_view view;

    if (!s->kept)
        s->kept = iron__store_find(s->server->store, name);
    if (!s->kept)
        return;
    if (write_change(s, &view))
        return;
    if (s->version)
        write_deleted_event(s, name);
    iron__store_engine_release(s->kept);
    s->kept = NULL;
    s->version = 0;
}

static void all_fill(event_stream *s) {
    all_events *a = (all_events *)s;

    if (a->list.has_begun)
        wait_for_news(a);
    if (!a->list.has_begun || next_list_ns(a) <= iron__clock_ns()) {
        a->is_list_due = false;
        a->list_ns = iron__clock_ns();
        write_list_event(&a->list, s);
    }
    if (a->focus[0])
        write_focus(s, a->focus);
    if (ftell(s->to) > 0)
        a->woken_ns = iron__clock_ns();
}

static void all_deinit(event_stream *s) { free(((all_events *)s)->list.rows); }

static void get_all_events(iron__request *req) {
    const char *focus = iron__request_query(req, "engine");
    iron__store_engine *kept = focus ? iron__route_engine(req, focus) : NULL;
    all_events *a;

    if (focus && !kept)
        return;
    a = stream_create(req, sizeof *a, all_fill, kept);
    if (!a)
        return;
    a->stream.deinit = all_deinit;
    memcpy(a->list.seen, req->engines, sizeof a->list.seen);
    snprintf(a->focus, sizeof a->focus, "%s", focus ? focus : "");
    respond(req, &a->stream);
}

IRON_ROUTE(events, "GET", "/v1/events", .query = "engine", .end = get_all_events);

/* GET /v1/runs/{run}/events: an event `run` when there are new records or a new check, at most four
 * times a second, and an event `finding` for each one that was not sent before. */

typedef struct run_events {
    event_stream stream; /* first */
    char name[IRON_ENGINE_NAME_MAX + 1];
    uint64_t run, records, checked; /* as sent; run: its id */
    uint64_t changes;
    iron_ledger_findings sent;
} run_events;

static int compare_findings(const iron_ledger_finding *x, const iron_ledger_finding *y) {
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

/* Those that were not sent, and those whose count has changed; both lists are sorted. */
static void write_findings(event_stream *s, const iron_ledger_findings *sent,
                           const iron_ledger_findings *found) {
    for (size_t k = 0, at = 0; k < found->count; k++) {
        const iron_ledger_finding *f = &found->list[k];
        iron_json_writer json = {.to = s->to, .is_one_line = true};

        while (at < sent->count && compare_findings(&sent->list[at], f) < 0)
            at++;
        if (at < sent->count && compare_findings(&sent->list[at], f) == 0 &&
            sent->list[at].count == f->count)
            continue;
        fprintf(s->to, "event: finding\ndata: ");
        iron__write_finding(&json, f);
        fprintf(s->to, "\n\n");
    }
}

static void run_fill(event_stream *s) {
    run_events *e = (run_events *)s;
    iron__run_check check;
    iron__run_view view;
    bool found, is_checked;

    if (e->run) {
        sleep_until(s->written_ns, LIST_NS);
        e->changes = iron__checker_wait(s->server, e->changes, WAIT_MS);
    }
    if (iron__store_run_find(s->server->store, e->name, &view, &found, NULL) != IRON_OK) {
        s->is_over = true;
        return;
    }
    if (!found || (e->run && view.id != e->run)) {
        write_deleted_event(s, e->name);
        s->is_over = true;
        return;
    }
    is_checked = iron__run_check_get(s->server, view.id, &check);
    if (!e->run || view.records != e->records || check.records != e->checked) {
        fprintf(s->to,
                "event: run\ndata: {\"name\": \"%s\", \"ranks\": %" PRIu64 ", \"records\": %" PRIu64
                ", \"bytes\": %" PRIu64 ", \"is_current\": %s, \"steps\": %" PRIu64
                ", \"last_step\": %" PRIu64 ", \"findings_total\": %" PRIu64 "}\n\n",
                view.name, view.ranks, view.records, view.bytes,
                check.records == view.records ? "true" : "false", check.summary.steps,
                check.summary.last_step, check.found.total);
    }
    e->run = view.id;
    e->records = view.records;
    e->checked = check.records;
    if (!is_checked)
        return;
    write_findings(s, &e->sent, &check.found);
    iron_ledger_findings_deinit(&e->sent);
    e->sent = check.found;
}

static void run_deinit(event_stream *s) { iron_ledger_findings_deinit(&((run_events *)s)->sent); }

static void get_run_events(iron__request *req) {
    iron__run_view view;
    run_events *e = NULL;

    if (iron__route_run(req, &view))
        e = stream_create(req, sizeof *e, run_fill, NULL);
    if (!e)
        return;
    e->stream.deinit = run_deinit;
    memcpy(e->name, view.name, sizeof e->name);
    respond(req, &e->stream);
}

IRON_ROUTE(run_events, "GET", "/v1/runs/{run}/events", .end = get_run_events);
