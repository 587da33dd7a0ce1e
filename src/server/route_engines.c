/* SPDX-License-Identifier: MIT */
/*
 * route_engines.c: creating, listing, showing and deleting engines, and their history of batches.
 * What is shown was published by the store: it can no longer be lost.
 *
 * An engine's configuration is read through a table with one row for each member. A member that is
 * not in it is refused by name, since ignoring a misspelt one would create a different engine than
 * was meant. Whether the backend and the mode exist, and whether batch times vocab is too large, is
 * checked by the store.
 */
#include "server/server_internal.h"

#include "core/lattice.h"

#define BATCHES_DEFAULT 1000u
#define BATCHES_MAX     10000u
#define ENGINES_MAX     1000000u

/* The configuration */

/* Not every larger whole number is a double: what is read might not be what was written. */
#define WHOLE_MAX ((UINT64_C(1) << 53) - 1)

typedef struct reader {
    iron__store_plan *plan;
    const char *kind; /* of the problem, on failure: "bad-json" for the wrong structure, "bad-name",
                         "bad-configuration" for values out of range */
    iron_error *err;
} reader;

typedef struct member {
    const char *name;
    size_t offset, bytes;       /* of the field in the plan */
    uint64_t min, max;          /* of a number; max 0: it is a text */
    const char *words, *listed; /* that a text may be; NULL: any */
} member;

#define FIELD(name) offsetof(iron__store_plan, name), sizeof(((iron__store_plan *)0)->name)

enum { MEMBER_NAME, MEMBER_POSITIONS, MEMBER_LATTICE };

static const member members[] = {
    [MEMBER_NAME] = {"name", FIELD(name), 0, 0, NULL, NULL},
    [MEMBER_POSITIONS] = {"positions", FIELD(positions), 0, 0, "stream batch", "stream or batch"},
    [MEMBER_LATTICE] = {"lattice", FIELD(lattice), 1, IRON_LATTICE_POINT_MAX, NULL, NULL},
    {"nodes", FIELD(nodes), 1, UINT64_C(1) << 20, NULL, NULL},
    {"vocab", FIELD(vocab), 2, UINT64_C(1) << 31, NULL, NULL},
    {"batch", FIELD(batch), 1, WHOLE_MAX, NULL, NULL},
    {"mode", FIELD(mode), 0, 0, NULL, NULL},
    {"backend", FIELD(backend), 0, 0, "auto cpu cuda opencl", "auto, cpu, cuda or opencl"},
    {"device", FIELD(device), 0, UINT32_MAX, NULL, NULL},
};

static iron_status wrong_kind(reader *r, const char *name, const char *wanted) {
    r->kind = "bad-json";
    return iron__fail(r->err, IRON_E_ARG, 0, "%s must be %s", name, wanted);
}

static iron_status read_whole(reader *r, const member *m, const char *name, const iron__json *value,
                              uint64_t *out) {
    double number;

    if (!iron__json_get_number(value, &number))
        return wrong_kind(r, name, "a number");
    IRON_FAIL_IF(!iron__json_get_whole(value, m->max, out) || *out < m->min, r->err, IRON_E_ARG,
                 "%s is %.17g; it must be a whole number from %" PRIu64 " to %" PRIu64, name,
                 number, m->min, m->max);
    return IRON_OK;
}

static iron_status read_lattice(reader *r, const member *m, const iron__json *value) {
    size_t count = iron__json_length(value);

    if (value->kind != IRON_JSON_ARRAY)
        return wrong_kind(r, m->name, "an array of numbers");
    IRON_FAIL_IF(count < IRON_LATTICE_MIN || count > IRON_LATTICE_MAX, r->err, IRON_E_ARG,
                 "lattice has %zu points; it must have %u to %u", count, IRON_LATTICE_MIN,
                 IRON_LATTICE_MAX);
    for (size_t k = 0; k < count; k++) {
        uint64_t whole = 0;

        IRON_TRY(read_whole(r, m, "a point of lattice", iron__json_at(value, k), &whole));
        r->plan->lattice[k] = (uint32_t)whole;
    }
    r->plan->lattice_count = (uint32_t)count;
    return iron__lattice_check(r->plan->lattice, (uint32_t)count, r->err);
}

static iron_status read_member(reader *r, const member *m, const iron__json *value) {
    void *field = (char *)r->plan + m->offset;
    const char *text = iron__json_get_text(value);
    uint64_t whole = 0;

    if (m == &members[MEMBER_LATTICE])
        return read_lattice(r, m, value);
    if (m->max > 0) {
        IRON_TRY(read_whole(r, m, m->name, value, &whole));
        memcpy(field, &whole, m->bytes); /* little-endian */
        return IRON_OK;
    }
    if (!text)
        return wrong_kind(r, m->name, "a string");
    if (m == &members[MEMBER_NAME] && !iron__engine_name_is_valid(text)) {
        r->kind = "bad-name";
        IRON_FAIL(r->err, IRON_E_ARG, "'%.80s' is not a valid engine name", text);
    }
    IRON_FAIL_IF(m->words && !iron__text_is_one_of(iron__text_of(text), m->words, false), r->err,
                 IRON_E_ARG, "%s is '%.40s'; it must be %s", m->name, text, m->listed);
    if (m == &members[MEMBER_POSITIONS]) {
        r->plan->positions = text[0] == 's' ? IRON_POSITIONS_STREAM : IRON_POSITIONS_BATCH;
        return IRON_OK;
    }
    IRON_FAIL_IF(!*text || strlen(text) >= m->bytes, r->err, IRON_E_ARG,
                 "%s has %zu characters; it must have 1 to %zu", m->name, strlen(text),
                 m->bytes - 1);
    memcpy(field, text, strlen(text) + 1);
    return IRON_OK;
}

static const member *find_member(const char *name) {
    for (size_t k = 0; k < sizeof members / sizeof members[0]; k++)
        if (strcmp(members[k].name, name) == 0)
            return &members[k];
    return NULL;
}

/* Reads the body of POST /v1/engines; members that are not given keep their default. */
static iron_status read_plan(const iron__json *root, void *context, iron_error *err) {
    reader *r = context;

    r->err = err;
    IRON_FAIL_IF(root->kind != IRON_JSON_OBJECT, err, IRON_E_ARG,
                 "the body must be a JSON object, {\"name\": ...}");
    for (uint32_t k = 0; k < root->count; k++)
        IRON_FAIL_IF(!find_member(root->items[k].name), r->err, IRON_E_ARG,
                     "unknown member '%.60s'; an engine has: name nodes vocab batch positions "
                     "lattice mode backend device",
                     root->items[k].name);
    IRON_FAIL_IF(!iron__json_member(root, "name"), r->err, IRON_E_ARG, "name is missing");
    for (uint32_t k = 0; k < root->count; k++) {
        r->kind = "bad-configuration";
        IRON_TRY(read_member(r, find_member(root->items[k].name), &root->items[k]));
    }
    return IRON_OK;
}

/* Engines */

static void respond_engine(iron__request *req, iron__store_engine *kept, unsigned status) {
    iron_json_writer *j = iron__response_json(req);
    iron__store_engine_view view;

    iron__store_engine_get_view(kept, &view, NULL);
    iron__write_engine(j, &view);
    iron__response_json_end(req, status);
}

/* Without a limit all engines. A page begins behind a name, so that engines that are created or
 * deleted meanwhile shift nothing. */
static void list_engines(iron__request *req) {
    const char *after = iron__request_query(req, "after");
    char next[64 + IRON_ENGINE_NAME_MAX];
    uint64_t limit = ENGINES_MAX;
    size_t count, first = 0;
    iron__store_engine_view *views;
    iron_json_writer *j;

    if (!iron__route_number(req, "limit", 1, ENGINES_MAX, &limit))
        return;
    if (after && !iron__engine_name_is_valid(after)) {
        iron__response_problem(req, "bad-query", "Give the name of the last engine that you have.",
                               "after is '%.80s', which is not a valid engine name", after);
        return;
    }
    views = iron__route_views(req, &count);
    if (!views) {
        iron__route_no_memory(req, "a list of engines");
        return;
    }
    j = iron__response_json(req);
    iron_json_open(j, "engines", '[');
    while (after && first < count && strcmp(views[first].plan.name, after) <= 0)
        first++;
    for (size_t k = first; k < count && k - first < limit; k++) {
        iron_json_open(j, NULL, '{');
        iron__write_engine(j, &views[k]);
        iron_json_close(j, '}');
    }
    iron_json_close(j, ']');
    if (count - first > limit) {
        snprintf(next, sizeof next, "/v1/engines?limit=%" PRIu64 "&after=%s", limit,
                 views[first + limit - 1].plan.name);
        iron_json_text(j, "next", next);
    }
    iron__response_json_end(req, 200);
    free(views);
}

static void refuse_plan(iron__request *req, const char *kind, const iron_error *err) {
    iron__response_problem(req, kind,
                           strcmp(kind, "bad-name") == 0
                               ? IRON_NAME_HELP
                               : "See the schema Plan in GET /openapi.json.",
                           "%s", err->text);
}

static void create_engine(iron__request *req) {
    iron_error err = {0};
    iron__store_engine *kept = NULL;
    iron__store_plan plan;
    reader r = {.plan = &plan, .kind = "bad-json"};
    iron__http_error error;
    char location[sizeof "/v1/engines/" + IRON_ENGINE_NAME_MAX];

    iron__store_plan_init(&plan);
    if (iron__request_read_json(req, read_plan, &r, &err) != IRON_OK) {
        if (err.status == IRON_E_NOMEM)
            iron__route_failure(req, &err);
        else
            refuse_plan(req, r.kind, &err);
        return;
    }
    error = iron__access_engine(req, plan.name);
    if (error.kind) {
        iron__response_error(req, &error);
        return;
    }
    switch (iron__store_create(req->server->store, &plan, &kept, &err)) {
    case IRON_OK:
        snprintf(location, sizeof location, "/v1/engines/%s", plan.name);
        iron__response_header(req, "Location", location);
        respond_engine(req, kept, 201);
        iron__store_engine_release(kept);
        break;
    case IRON_E_STATE:
        iron__response_problem(req, "engine-exists",
                               "Choose another name, or delete the engine that has it.",
                               "an engine named %s exists already", plan.name);
        break;
    case IRON_E_ARG:
        refuse_plan(req, "bad-configuration", &err);
        break;
    case IRON_E_NOMEM:
        iron__response_problem(req, "too-many-engines",
                               "Delete engines that are not needed, or ask for fewer nodes; "
                               "GET /v1/info has the limits.",
                               "%s", err.text);
        break;
    default:
        iron__route_failure(req, &err);
    }
}

static void get_engine(iron__request *req) {
    iron__store_engine *kept = iron__route_engine(req, req->variable);

    if (kept)
        respond_engine(req, kept, 200);
    iron__store_engine_release(kept);
}

static void delete_engine(iron__request *req) {
    iron__store_engine *kept = iron__route_engine(req, req->variable);
    iron_error err = {0};

    if (!kept)
        return;
    if (iron__store_delete(req->server->store, kept, &err) == IRON_OK)
        iron__response_empty(req, 204);
    else if (err.status == IRON_E_STATE)
        iron__response_problem(req, "no-such-engine", "Nothing is left to do.",
                               "%s was already deleted", req->variable);
    else
        iron__route_failure(req, &err);
    iron__store_engine_release(kept);
}

/* GET /v1/engines/{name}/batches: an engine's history, one page at a time */

static void get_batches(iron__request *req) {
    iron_error err = {IRON_E_NOMEM, 0, "out of memory for a page of batches"};
    uint64_t since = 0, limit = BATCHES_DEFAULT, first = 0, next;
    iron_status status = IRON_E_NOMEM;
    iron__store_engine_view view;
    iron__store_engine *kept;
    iron__batch_row *rows;
    iron_json_writer *j;
    size_t count = 0;

    if (!iron__route_number(req, "since", 0, UINT64_MAX, &since) ||
        !iron__route_number(req, "limit", 1, BATCHES_MAX, &limit) ||
        !(kept = iron__route_engine(req, req->variable)))
        return;
    rows = calloc(limit, sizeof *rows);
    iron__store_engine_get_view(kept, &view, NULL);
    if (rows)
        status = iron__store_engine_batches(kept, since, rows, limit, &count, &first, &err);
    if (status == IRON_OK) {
        j = iron__response_json(req);
        iron_json_open(j, "batches", '[');
        for (const iron__batch_row *row = rows; row < rows + count; row++) {
            iron_json_open(j, NULL, '{');
            iron_json_number(j, "batch", row->batch);
            iron_json_number(j, "position", row->position);
            iron_json_number(j, "tokens", row->tokens);
            iron__write_sums(j, row->xors, row->sum);
            iron_json_close(j, '}');
        }
        iron_json_close(j, ']');
        /* A page past the end is empty, and the next one starts there too, so that a client that
         * waits for more asks for the right ones. */
        next = count > 0 ? rows[count - 1].batch + 1 : since;
        iron_json_number(j, "first", first);
        iron_json_number(j, "next", next);
        iron_json_number(j, "total", view.batches > next || count == 0 ? view.batches : next);
        iron__response_json_end(req, 200);
    } else if (status == IRON_E_STATE) {
        iron__response_problem(req, "no-such-engine", "GET /v1/engines lists the engines.",
                               "%s was deleted while its batches were read", req->variable);
    } else {
        iron__route_failure(req, &err);
    }
    free(rows);
    iron__store_engine_release(kept);
}

IRON_ROUTE(list_engines, "GET", "/v1/engines", .query = "limit after", .end = list_engines);
IRON_ROUTE(create_engine, "POST", "/v1/engines", .role = IRON_ROLE_ADMIN, .body = IRON_BODY_JSON,
           .end = create_engine);
IRON_ROUTE(get_engine, "GET", "/v1/engines/{name}", .end = get_engine);
IRON_ROUTE(delete_engine, "DELETE", "/v1/engines/{name}", .role = IRON_ROLE_ADMIN,
           .end = delete_engine);
IRON_ROUTE(batches, "GET", "/v1/engines/{name}/batches", .query = "since limit",
           .end = get_batches);
