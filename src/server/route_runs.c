/* SPDX-License-Identifier: MIT */
/*
 * route_runs.c: the records of training runs: POST /v1/runs/{run}/steps takes a part of a ledger,
 * its header and any of its frames; the other routes list, show, compare and delete runs, and say
 * what was found in them (runs.c).
 *
 * A frame counts once for each rank, whatever requests it comes in: so clients send again what they
 * are not sure about. The header counts as a frame, the mark of a resume: a rank whose ledger was
 * begun anew has simply resumed.
 */
#include "server/server_internal.h"

#include "core/number.h"
#include "io/checksum.h"
#include "ledger/ledger_internal.h"

#define FINDINGS_WAIT_MS 5000u

static void respond_no_run(iron__request *req, const char *name) {
    iron__response_problem(req, "no-such-run",
                           "GET /v1/runs lists the runs; the first records create one.",
                           "there is no run named %.80s", name);
}

static bool find_run(iron__request *req, const char *name, iron__run_view *view) {
    iron_error err = {0};
    bool found;

    if (iron__store_run_find(req->server->store, name, view, &found, &err) != IRON_OK)
        iron__route_failure(req, &err);
    else if (!found || !iron__request_sees(req, name))
        respond_no_run(req, name);
    else
        return true;
    return false;
}

bool iron__route_run(iron__request *req, iron__run_view *view) {
    return find_run(req, req->variable, view);
}

/* Taking records */

/* The frame that stands for a header. */
#define MARK_BYTES (LEDGER_FRAME_BYTES + LEDGER_RESUME_BYTES)
static void make_mark(const unsigned char *header, unsigned char mark[MARK_BYTES]) {
    uint32_t words[] = {LEDGER_RESUME, LEDGER_RESUME_BYTES}, crc; /* little-endian */

    memset(mark, 0, MARK_BYTES);
    memcpy(mark, words, sizeof words);
    memcpy(mark + LEDGER_FRAME_BYTES, header + 20, 4);     /* world */
    memcpy(mark + LEDGER_FRAME_BYTES + 8, header + 24, 8); /* time */
    crc = iron__ledger_frame_crc(mark, LEDGER_RESUME_BYTES);
    memcpy(mark + 8, &crc, sizeof crc);
}

static iron__run_record record_of(const unsigned char *frame, size_t bytes) {
    const unsigned char *payload = frame + LEDGER_FRAME_BYTES;
    iron__run_record r = {.kind = iron__ledger_u32(frame),
                          .step = UINT64_MAX,
                          .bytes = frame,
                          .count = (uint32_t)bytes};

    if (r.kind == LEDGER_STEP) {
        r.step = iron__ledger_u64(payload);
        r.time = iron__ledger_u64(payload + 64);
    } else if (r.kind == LEDGER_RESUME) {
        r.world = iron__ledger_u32(payload);
        r.time = iron__ledger_u64(payload + 8);
    } else {
        r.time = iron__ledger_u64(payload);
    }
    r.time = iron__min(r.time, INT64_MAX / 2);
    iron__run_record_seal(&r);
    return r;
}

/* The frames of the body, malloc'ed, with room for one before them; NULL: the response is given. */
static iron__run_record *read_frames(iron__request *req, size_t *count) {
    const unsigned char *body = (const unsigned char *)req->body;
    size_t room = 1 + req->body_bytes / (LEDGER_FRAME_BYTES + LEDGER_END_BYTES);
    iron__run_record *records = calloc(room, sizeof *records);

    *count = 1;
    if (!records) {
        iron__route_no_memory(req, "the records");
        return NULL;
    }
    for (size_t at = LEDGER_HEADER_BYTES, bytes; at < req->body_bytes; at += bytes) {
        const unsigned char *frame = body + at;
        uint64_t step;

        bytes = iron__ledger_frame(frame, req->body_bytes - at);
        step = bytes > 0 && iron__ledger_u32(frame) == LEDGER_STEP
                   ? iron__ledger_u64(frame + LEDGER_FRAME_BYTES)
                   : 0;
        if (bytes == 0 || step == UINT64_MAX) {
            iron__response_problem(req, "bad-ledger",
                                   "Send whole frames, as they are in the ledger; nothing was "
                                   "stored.",
                                   bytes == 0 ? "the frame at byte %zu is damaged or cut off"
                                              : "the frame at byte %zu has an impossible step",
                                   at);
            free(records);
            return NULL;
        }
        records[(*count)++] = record_of(frame, bytes);
    }
    return records;
}

static void post_steps(iron__request *req) {
    const unsigned char *body = (const unsigned char *)req->body;
    unsigned char mark[MARK_BYTES];
    iron__run_view after = {.id = 0};
    iron__run_record *records;
    iron_json_writer *j;
    iron_error err = {0};
    iron_status status;
    uint64_t added = 0;
    uint32_t rank;
    size_t count;

    if (!iron__engine_name_is_valid(req->variable)) {
        iron__response_problem(req, "bad-name", IRON_NAME_HELP,
                               "'%.80s' is not a valid name of a run", req->variable);
        return;
    }
    if (req->body_bytes < LEDGER_HEADER_BYTES || !iron__ledger_header_is_valid(body)) {
        iron__response_problem(req, "bad-ledger",
                               "Send the 64 bytes that a ledger begins with, then its frames; "
                               "nothing was stored.",
                               "the body does not begin with the header of a ledger");
        return;
    }
    records = read_frames(req, &count);
    if (!records)
        return;
    make_mark(body, mark);
    records[0] = record_of(mark, sizeof mark);
    rank = iron__ledger_u32(body + 16);
    status = iron__store_run_add(req->server->store, req->variable, rank, records, count, &added,
                                 &after, &err);
    free(records);
    if (status == IRON_OK) {
        if (added > 0)
            iron__checker_notify(req->server);
        j = iron__response_json(req);
        iron_json_text(j, "run", after.name);
        iron_json_number(j, "rank", rank);
        iron_json_number(j, "received", count - 1);
        iron_json_number(j, "added", added);
        iron_json_number(j, "records", after.records);
        iron_json_number(j, "bytes", after.bytes);
        iron__response_json_end(req, 200);
    } else if (status == IRON_E_NOMEM) {
        iron__response_problem(req, "run-full",
                               "Nothing was stored; delete runs, or raise the limit.", "%s",
                               err.text);
    } else {
        iron__route_failure(req, &err);
    }
}

/* Showing runs */

static void write_run(iron_json_writer *j, const iron__run_view *v) {
    iron_json_text(j, "name", v->name);
    iron__write_time(j, "created", v->created_ms);
    iron__write_time(j, "changed", v->changed_ms);
    iron_json_number(j, "ranks", v->ranks);
    iron_json_number(j, "records", v->records);
    iron_json_number(j, "bytes", v->bytes);
}

static void list_runs(iron__request *req) {
    iron__run_view *views = calloc(IRON_RUNS_MAX, sizeof *views);
    iron__run_check *checks = calloc(IRON_RUNS_MAX + 1, sizeof *checks);
    iron_error err = {IRON_E_NOMEM, 0, "out of memory for the runs"};
    iron_json_writer *j;
    size_t count, checked;

    if (!views || !checks || iron__store_runs(req->server->store, views, &count, &err) != IRON_OK) {
        iron__route_failure(req, &err);
    } else {
        checked = iron__run_checks(req->server, checks);
        j = iron__response_json(req);
        iron_json_open(j, "runs", '[');
        for (size_t k = 0, at; k < count; k++) {
            if (!iron__request_sees(req, views[k].name))
                continue;
            for (at = 0; at < checked && checks[at].run != views[k].id;)
                at++; /* one more than there are: it has zeros */
            iron_json_open(j, NULL, '{');
            write_run(j, &views[k]);
            iron__write_number_or_null(j, "steps", at < checked, checks[at].summary.steps);
            iron__write_number_or_null(j, "findings_total", at < checked, checks[at].found.total);
            iron_json_close(j, '}');
        }
        iron_json_close(j, ']');
        iron__response_json_end(req, 200);
    }
    free(views);
    free(checks);
}

static void write_rank(iron_json_writer *j, const iron__run_rank *r) {
    char last[33];

    snprintf(last, sizeof last, "%016" PRIx64 "%016" PRIx64, r->last_hi, r->last_lo);
    iron_json_open(j, NULL, '{');
    iron_json_number(j, "rank", r->rank);
    iron_json_number(j, "world", r->world);
    iron_json_number(j, "records", r->records);
    iron_json_number(j, "steps", r->steps);
    iron_json_number(j, "bytes", r->bytes);
    iron__write_number_or_null(j, "last_step", r->steps > 0, r->last_step);
    iron__write_time(j, "last_time", r->last_time / 1000000);
    iron_json_text(j, "last", last);
    iron_json_bool(j, "is_closed", r->last_kind == LEDGER_END);
    iron_json_close(j, '}');
}

/* The run and its ranks, malloc'ed; NULL: the response is given. */
static iron__run_rank *read_ranks(iron__request *req, iron__run_view *view, size_t *count) {
    iron_error err = {IRON_E_NOMEM, 0, "out of memory for the ranks of a run"};
    iron__run_rank *ranks;

    if (!iron__route_run(req, view))
        return NULL;
    ranks = calloc(IRON_RUN_RANKS_MAX, sizeof *ranks);
    if (ranks && iron__store_run_ranks(req->server->store, view->id, ranks, count, &err) == IRON_OK)
        return ranks;
    iron__route_failure(req, &err);
    free(ranks);
    return NULL;
}

static void get_run(iron__request *req) {
    iron__run_rank *ranks = NULL;
    iron__run_view view;
    iron_json_writer *j;
    uint64_t only = UINT64_MAX;
    size_t count = 0;

    if (iron__route_number(req, "rank", 0, UINT32_MAX, &only))
        ranks = read_ranks(req, &view, &count);
    if (!ranks)
        return;
    j = iron__response_json(req);
    write_run(j, &view);
    iron_json_open(j, "by_rank", '[');
    for (size_t k = 0; k < count; k++)
        if (only == UINT64_MAX || ranks[k].rank == only)
            write_rank(j, &ranks[k]);
    iron_json_close(j, ']');
    iron__response_json_end(req, 200);
    free(ranks);
}

/* The steps of each rank over time. */

#define POINTS_MAX      65536u /* of all ranks together */
#define RANK_POINTS_MAX 200u

typedef struct progress {
    const iron__run_rank *ranks;
    size_t count, at;     /* at: of the rank that is read */
    uint64_t limit, seen; /* points of a rank; its step records so far */
    struct {
        uint64_t rank, time_ms, step;
    } * points;
    size_t used;
} progress;

/* Takes every n-th step of a rank and its last. Ranks and records that came since the ranks were
 * counted are left out, so a rank has at most `limit` points. */
static bool take_point(void *context, uint64_t rank, const unsigned char *bytes, size_t count) {
    const unsigned char *payload = bytes + LEDGER_FRAME_BYTES;
    progress *p = context;
    uint64_t steps, stride;
    (void)count;

    for (; p->at < p->count && p->ranks[p->at].rank < rank; p->at++)
        p->seen = 0;
    steps = p->at < p->count && p->ranks[p->at].rank == rank ? p->ranks[p->at].steps : 0;
    if (iron__ledger_u32(bytes) != LEDGER_STEP || p->seen >= steps)
        return true;
    stride = (steps + p->limit - 2) / (p->limit - 1);
    if (p->seen++ % stride == 0 || p->seen == steps) {
        p->points[p->used].rank = rank;
        p->points[p->used].time_ms = iron__ledger_u64(payload + 64) / 1000000;
        p->points[p->used++].step = iron__ledger_u64(payload);
    }
    return true;
}

static void get_progress(iron__request *req) {
    iron_error err = {IRON_E_NOMEM, 0, "out of memory for the steps of a run"};
    iron__run_cursor at = {.rank = -1};
    iron_status status;
    progress p = {.count = 0};
    iron__run_rank *ranks;
    iron__run_view view;
    iron_json_writer *j;
    bool is_over = false;

    ranks = read_ranks(req, &view, &p.count);
    if (!ranks)
        return;
    p.ranks = ranks;
    p.limit = p.count > 0 ? iron__min(POINTS_MAX / p.count, RANK_POINTS_MAX) : 2; /* 16 at least */
    p.points = calloc(p.count * p.limit + 1, sizeof *p.points);
    status = p.points ? IRON_OK : IRON_E_NOMEM;
    while (status == IRON_OK && !is_over)
        status = iron__store_run_records(req->server->store, view.id, &at, take_point, &p, &is_over,
                                         &err);
    if (status == IRON_OK) {
        j = iron__response_json(req);
        iron_json_open(j, "by_rank", '[');
        for (size_t k = 0; k < p.used; k++) {
            if (k == 0 || p.points[k].rank != p.points[k - 1].rank) {
                iron_json_open(j, NULL, '{');
                iron_json_number(j, "rank", p.points[k].rank);
                iron_json_open(j, "points", '[');
            }
            iron_json_open(j, NULL, '[');
            iron_json_number(j, NULL, p.points[k].time_ms);
            iron_json_number(j, NULL, p.points[k].step);
            iron_json_close(j, ']');
            if (k + 1 == p.used || p.points[k].rank != p.points[k + 1].rank) {
                iron_json_close(j, ']');
                iron_json_close(j, '}');
            }
        }
        iron_json_close(j, ']');
        iron__response_json_end(req, 200);
    } else {
        iron__route_failure(req, &err);
    }
    free(p.points);
    free(ranks);
}

static void delete_run(iron__request *req) {
    iron_error err = {0};
    bool found = false;

    if (iron__store_run_delete(req->server->store, req->variable, &found, &err) != IRON_OK) {
        iron__route_failure(req, &err);
    } else if (!found) {
        respond_no_run(req, req->variable);
    } else {
        iron__checker_notify(req->server);
        iron__response_empty(req, 204);
    }
}

/* Findings */

static void write_check(iron_json_writer *j, const iron__run_check *c, uint64_t records) {
    const iron_ledgers_summary *s = &c->summary;

    iron_json_bool(j, "is_current", c->records == records);
    iron_json_number(j, "steps", s->steps);
    iron_json_number(j, "ranks", s->ranks);
    iron_json_number(j, "world", s->world);
    iron_json_number(j, "samples", s->samples);
    iron_json_number(j, "tokens", s->tokens);
    iron__write_number_or_null(j, "first_step", s->steps > 0, s->first_step);
    iron__write_number_or_null(j, "last_step", s->steps > 0, s->last_step);
    iron_json_number(j, "records", s->records);
    iron_json_number(j, "superseded", s->superseded);
    iron_json_number(j, "missing_ranks", s->missing_ranks);
    iron_json_open(j, "findings", '[');
    for (size_t k = 0; k < c->found.count; k++)
        iron__write_finding(j, &c->found.list[k]);
    iron_json_close(j, ']');
    iron_json_number(j, "findings_total", c->found.total);
    iron_json_open(j, "totals", '{');
    for (int k = 0; k < IRON_LEDGER_KINDS; k++)
        iron_json_number(j, iron_ledger_kind_name((iron_ledger_kind)k), c->found.totals[k]);
    iron_json_close(j, '}');
}

/* Waits a while until what is there now has been checked. */
static void get_findings(iron__request *req) {
    uint64_t end = iron__clock_ns() + FINDINGS_WAIT_MS * UINT64_C(1000000), now, seen = 0;
    iron__run_check check = {.run = 0};
    iron__run_view view;
    bool has_check = false;

    if (!iron__route_run(req, &view))
        return;
    for (;;) {
        iron_ledger_findings_deinit(&check.found);
        has_check = iron__run_check_get(req->server, view.id, &check);
        now = iron__clock_ns();
        if ((has_check && check.records >= view.records) || now >= end ||
            atomic_load(&req->server->is_stopping))
            break;
        seen = iron__checker_wait(req->server, seen, (uint32_t)((end - now) / 1000000 + 1));
    }
    if (has_check) {
        write_check(iron__response_json(req), &check, view.records);
        iron__response_json_end(req, 200);
    } else {
        iron__response_problem(req, "busy", "Try again a little later.",
                               "run %s has not been checked yet", view.name);
    }
    iron_ledger_findings_deinit(&check.found);
}

static void get_run_diff(iron__request *req) {
    const char *name = iron__request_query(req, "reference");
    iron_ledger_diff d = {.struct_size = sizeof d};
    iron__run_view view, reference;
    iron_error err = {0};
    iron_status status;
    iron_json_writer *j;

    if (!iron__route_run(req, &view))
        return;
    if (!name) {
        iron__response_problem(req, "bad-query", "Name a run: ?reference=NAME.",
                               "reference is missing");
        return;
    }
    if (!find_run(req, name, &reference))
        return;
    status = iron__run_diff(req->server, &reference, &view, &d, &err);
    if (status == IRON_E_STATE) {
        respond_no_run(req, name);
    } else if (status != IRON_OK) {
        iron__route_failure(req, &err);
    } else {
        j = iron__response_json(req);
        iron_json_text(j, "kind", iron_ledger_change_name(d.change));
        iron__write_number_or_null(j, "first_step", d.change != IRON_LEDGER_EQUAL, d.first_step);
        iron_json_text(j, "sentence", d.sentence);
        iron_json_number(j, "steps_equal", d.steps);
        iron_json_number(j, "steps_a", d.steps_a);
        iron_json_number(j, "steps_b", d.steps_b);
        iron__response_json_end(req, 200);
    }
}

IRON_ROUTE(list_runs, "GET", "/v1/runs", .end = list_runs);
IRON_ROUTE(get_run, "GET", "/v1/runs/{run}", .query = "rank", .end = get_run);
IRON_ROUTE(delete_run, "DELETE", "/v1/runs/{run}", .role = IRON_ROLE_ADMIN, .end = delete_run);
IRON_ROUTE(steps, "POST", "/v1/runs/{run}/steps", .role = IRON_ROLE_FEED, .body = IRON_BODY_BYTES,
           .end = post_steps);
IRON_ROUTE(findings, "GET", "/v1/runs/{run}/findings", .end = get_findings);
IRON_ROUTE(progress, "GET", "/v1/runs/{run}/progress", .end = get_progress);
IRON_ROUTE(run_diff, "GET", "/v1/runs/{run}/diff", .query = "reference", .end = get_run_diff);
