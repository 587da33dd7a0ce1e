/* SPDX-License-Identifier: MIT */
/*
 * routes.c: the list of routes, and what several of them share: the engine that a path names,
 * failures of the store as problems, numbers in queries, Accept, times, and engines as JSON. Words
 * of 32 and 64 bits are written as hexadecimal text, the sum as decimal text: many JSON readers use
 * doubles for numbers.
 */
#include "server/server_internal.h"

/* All routes, in the order in which they are matched, shown in Allow and listed in /metrics. Each
 * row is at the end of the file that has its functions, where scripts/check-openapi reads it. */
#define ROUTES(X)                                                                                  \
    X(list_engines), X(create_engine), X(get_engine), X(delete_engine), X(feed), X(quantize),      \
        X(state), X(batches), X(engine_events), X(events), X(list_runs), X(get_run),               \
        X(delete_run), X(steps), X(findings), X(progress), X(run_diff), X(run_events),             \
        X(create_ticket), X(info), X(health), X(ready), X(metrics), X(openapi), X(dashboard),      \
        X(dashboard_script), X(dashboard_style), X(report)

#define ROUTE_NAME(name)    iron__route_##name
#define ROUTE_ADDRESS(name) &iron__route_##name
extern const iron__route ROUTES(ROUTE_NAME);
const iron__route *const iron__routes[] = {ROUTES(ROUTE_ADDRESS), NULL};

iron__store_engine *iron__route_engine(iron__request *req, const char *name) {
    iron__http_error error = iron__access_engine(req, name); /* a name in the query, too */
    iron__store_engine *kept;

    if (error.kind) {
        iron__response_error(req, &error);
        return NULL;
    }
    if (!iron__engine_name_is_valid(name)) {
        iron__response_problem(req, "bad-name", IRON_NAME_HELP,
                               "'%.80s' is not a valid engine name", name);
        return NULL;
    }
    kept = iron__store_find(req->server->store, name);
    if (!kept)
        iron__response_problem(req, "no-such-engine",
                               "GET /v1/engines lists the engines; POST /v1/engines creates one.",
                               "there is no engine named %s", name);
    return kept;
}

void iron__route_failure(iron__request *req, const iron_error *err) {
    const char *kind = "internal", *help = "See the server's log.";
    bool is_io = err->status == IRON_E_IO; /* a failed or refused write, or something else */
    iron_error why = *err;

    if (is_io && iron__store_failure(req->server->store, &why) != IRON_OK) {
        kind = "read-only";
        help = "It was not acknowledged. The operator must repair the data directory "
               "and restart the server; then check whether it was done.";
    } else if (is_io && iron__store_full(req->server->store, &why) != IRON_OK) {
        kind = "disk-full";
        help = IRON_FULL_HELP;
    } else if (is_io && atomic_load(&req->server->is_stopping)) {
        kind = "stopping";
        help = "Try again when the server is back.";
        why = (iron_error){.text = "the server is stopping"};
    } else if (err->status == IRON_E_FORMAT) {
        kind = "damaged";
        help = "The stored data differ from what was written: check the disk, and restore "
               "the data directory from a backup.";
    } else if (err->status == IRON_E_NOMEM) {
        kind = "busy";
        help = "Nothing was changed. Try again.";
    } else if (err->status == IRON_E_UNSUPPORTED) {
        kind = "backend-unavailable";
        help = "GET /v1/info lists the available backends.";
    }
    iron__response_problem(req, kind, help, "%s", why.text);
}

void iron__route_no_memory(iron__request *req, const char *what) {
    iron_error err;

    iron__no_memory(&err, what);
    iron__route_failure(req, &err);
}

/* At most 20 digits. */
static bool read_number(const char *text, uint64_t *value) {
    return strlen(text) <= 20 && iron__text_number(iron__text_of(text), value);
}

bool iron__route_number(iron__request *req, const char *name, uint64_t min, uint64_t max,
                        uint64_t *value) {
    const char *text = iron__request_query(req, name);
    uint64_t number;

    if (!text)
        return true;
    if (read_number(text, &number) && number >= min && number <= max) {
        *value = number;
        return true;
    }
    iron__response_problem(req, "bad-query", "Give a whole number in plain decimal digits.",
                           "%s is '%.40s'; it must be %" PRIu64 " to %" PRIu64, name, text, min,
                           max);
    return false;
}

/* How specifically a range names the type: 3 exactly, 2 by its first half, 1 by a wildcard, else
 * 0. */
static unsigned closeness(iron__text range, const char *type) {
    size_t half = strcspn(type, "/");

    if (iron__text_is_caseless(range, type))
        return 3;
    if (range.bytes == half + 2 && strncasecmp(range.at, type, half + 1) == 0 &&
        range.at[half + 1] == '*')
        return 2;
    return iron__text_is(range, type[half] ? "*/*" : "*");
}

/* The weight (q=0.5) among the parameters, in thousandths; 1000 if it is absent or invalid. */
static unsigned range_weight(iron__text rest) {
    const char *end = rest.at + rest.bytes;

    for (const char *at = rest.at, *next; at < end; at = next + 1) {
        unsigned weight = 0, unit = 1000;
        iron__text word;

        next = memchr(at, ';', (size_t)(end - at));
        next = next ? next : end;
        word = iron__text_trim((iron__text){at, (size_t)(next - at)});
        if (word.bytes < 2 || strncasecmp(word.at, "q=", 2) != 0)
            continue;
        if (word.bytes == 2 || word.at[2] > '1' || (word.bytes > 3 && word.at[3] != '.'))
            return 1000;
        for (size_t k = 2; k < word.bytes && unit > 0; k += k == 2 ? 2 : 1, unit /= 10) {
            if (word.at[k] < '0' || word.at[k] > '9')
                return 1000;
            weight += unit * (unsigned)(word.at[k] - '0');
        }
        return weight < 1000 ? weight : 1000;
    }
    return 1000;
}

unsigned iron__accept_weight(const char *accept, const char *type) {
    unsigned weight = 0, best = 0;

    if (!accept)
        return 1000;
    while (*accept) {
        size_t length = strcspn(accept, ","), name = strcspn(accept, ",;");
        iron__text range = iron__text_trim((iron__text){accept, name});
        unsigned close = range.bytes ? closeness(range, type) : 0;

        if (close > best) {
            best = close;
            weight = range_weight((iron__text){accept + name, length - name});
        }
        accept += length + (accept[length] == ',');
    }
    return weight;
}

void iron__write_time(iron_json_writer *j, const char *name, uint64_t milliseconds) {
    char text[IRON_TIME_TEXT];

    iron__time_text(milliseconds, text);
    iron_json_text(j, name, text);
}

void iron__write_number_or_null(iron_json_writer *j, const char *name, bool has_it,
                                uint64_t value) {
    if (has_it)
        iron_json_number(j, name, value);
    else
        iron_json_null(j, name);
}

void iron__write_finding(iron_json_writer *j, const iron_ledger_finding *finding) {
    char text[IRON_LEDGER_SENTENCE];

    iron_ledger_finding_text(finding, 1, finding->count, text);
    iron_json_open(j, NULL, '{');
    iron_json_text(j, "kind", iron_ledger_kind_name(finding->kind));
    iron_json_number(j, "step", finding->step);
    iron_json_number(j, "rank", finding->rank);
    iron_json_number(j, "first_step", finding->first_step);
    iron_json_number(j, "first_rank", finding->first_rank);
    iron_json_number(j, "count", finding->count);
    iron_json_text(j, "sentence", text);
    iron_json_close(j, '}');
}

void iron__write_sums(iron_json_writer *j, uint32_t xors, uint64_t sum) {
    char text[21];

    iron_json_hex(j, "xor", xors, 8);
    snprintf(text, sizeof text, "%" PRIu64, sum);
    iron_json_text(j, "sum", text);
}

void iron__write_engine(iron_json_writer *j, const iron__store_engine_view *view) {
    const iron__store_plan *plan = &view->plan;

    iron_json_text(j, "name", plan->name);
    iron_json_number(j, "nodes", plan->nodes);
    iron_json_number(j, "vocab", plan->vocab);
    iron_json_number(j, "batch", plan->batch);
    iron_json_text(j, "positions", plan->positions == IRON_POSITIONS_BATCH ? "batch" : "stream");
    iron_json_open(j, "lattice", '[');
    for (uint32_t k = 0; k < plan->lattice_count; k++)
        iron_json_number(j, NULL, plan->lattice[k]);
    iron_json_close(j, ']');
    iron_json_text(j, "mode", plan->mode);
    iron_json_text(j, "backend", plan->backend);
    iron_json_number(j, "device", plan->device);
    iron_json_text(j, "device_name", view->device);
    if (view->device_failure[0])
        iron_json_text(j, "device_failure", view->device_failure);
    iron_json_number(j, "tokens", view->tokens);
    iron_json_number(j, "batches", view->batches);
    iron__write_sums(j, view->xors, view->sum);
    iron_json_hex(j, "state", view->state, 16);
    iron_json_text(j, "seal", view->seal);
    iron_json_number(j, "feeds", view->feeds);
    iron__write_time(j, "created", view->created_ms);
    iron__write_time(j, "changed", view->changed_ms);
}

iron__store_engine_view *iron__route_views(const iron__request *req, size_t *count) {
    size_t room = req->server->options.max_engines, there, seen = 0;
    iron__store_engine **engines = calloc(room + 1, sizeof(iron__store_engine *));
    iron__store_engine_view *views = NULL;

    if (!engines)
        return NULL;
    there = iron__store_list(req->server->store, engines, room);
    there = there < room ? there : room;
    views = calloc(there + 1, sizeof *views);
    for (size_t k = 0; k < there; k++) {
        if (views) {
            iron__store_engine_get_view(engines[k], &views[seen], NULL);
            seen += iron__request_sees(req, views[seen].plan.name);
        }
        iron__store_engine_release(engines[k]);
    }
    free((void *)engines);
    *count = seen;
    return views;
}
