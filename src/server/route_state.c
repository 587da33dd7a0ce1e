/* SPDX-License-Identifier: MIT */
/*
 * route_state.c: GET /v1/engines/{name}/state, as JSON, as a NumPy file or as a saved state, and
 * POST /v1/engines/{name}/quantize.
 *
 * A state is sent from a copy of the nodes, up to 12 MiB. Copies that are being sent share a budget
 * of COPIES_MAX, so that many slow readers of a large engine do not fill the memory. JSON and NumPy
 * files are written while they are sent, so they take no more than that copy: a small head, then
 * one step after the other, each of at most STEP_MAX bytes: an entry of an array in JSON, a number
 * or a record in a NumPy file.
 */
#include "server/server_internal.h"

#include "core/memory.h"
#include "formats/npy.h"

#include <math.h>

#define STEP_MAX   48u
#define NODE_BYTES 12u /* of the copies of one node */
#define COPIES_MAX ((uint64_t)64 << 20)
#define VALUES_MAX 65536u

/* A saved state has a header and a checksum besides its nodes. */
#define COPY_BYTES(nodes) (NODE_BYTES * (nodes) + 1024)

/* In the order in which every form has them. */
typedef enum node_array { ARRAY_XORS, ARRAY_POTENTIALS, ARRAY_ACTIVATIONS, ARRAYS } node_array;

static const char *const array_names[ARRAYS] = {"xor_accumulators", "potentials", "activations"};

static const char *const array_types[ARRAYS] = {"'<u4'", "'<f4'", "'<f4'"};

/* A state while it is sent. */
typedef struct dump {
    char *head; /* malloc'ed */
    size_t head_bytes, head_sent;
    size_t (*step)(struct dump *d, char *room); /* 0: there are no more */
    node_array array;                           /* JSON: the one that is being written */
    uint64_t node, nodes;
    uint32_t *xors;       /* one block of memory with the reals after it */
    float *reals[ARRAYS]; /* [ARRAY_XORS] is not used */
} dump;

static void entry_text(const dump *d, char *room, size_t bytes) {
    double real;

    if (d->array == ARRAY_XORS) {
        snprintf(room, bytes, "%u", (unsigned)d->xors[d->node]);
        return;
    }
    real = (double)d->reals[d->array][d->node];
    if (isfinite(real))
        snprintf(room, bytes, "%.9g", real);
    else
        snprintf(room, bytes, "null");
}

/* Sixteen entries per line. */
static size_t step_json(dump *d, char *room) {
    char entry[24], opening[32] = "";

    if (d->array == ARRAYS)
        return 0;
    if (d->node == d->nodes) {
        d->node = 0;
        d->array++;
        return (size_t)snprintf(room, STEP_MAX, "%s", d->array == ARRAYS ? "]\n}\n" : "]");
    }
    if (d->node == 0)
        snprintf(opening, sizeof opening, ",\n  \"%s\": [", array_names[d->array]);
    entry_text(d, entry, sizeof entry);
    d->node++;
    return (size_t)snprintf(room, STEP_MAX, "%s%s%s", opening, entry,
                            d->node == d->nodes ? ""
                            : d->node % 16      ? ", "
                                                : ",\n    ");
}

/* A number of one array or (ARRAYS) a record of all three. */
static size_t step_npy(dump *d, char *room) {
    size_t first = d->array < ARRAYS ? d->array : 0, count = d->array < ARRAYS ? 1 : ARRAYS;

    if (d->node == d->nodes)
        return 0;
    for (size_t k = 0; k < count; k++)
        memcpy(room + 4 * k, d->xors + (first + k) * d->nodes + d->node, 4);
    d->node++;
    return 4 * count;
}

static void dump_destroy(dump *d) {
    if (!d)
        return;
    iron__release_large(d->xors, d->nodes * NODE_BYTES);
    free(d->head);
    free(d);
}

/* Copies the nodes, whose number never changes. The memory goes back to the system when they are
 * sent: an allocator would keep it. */
static dump *copy_nodes(iron__store_engine *kept, iron__store_engine_view *view) {
    dump *d = calloc(1, sizeof *d);

    iron__store_engine_get_view(kept, view, NULL);
    if (!d)
        return NULL;
    d->nodes = view->plan.nodes;
    d->xors = iron__allocate_large(d->nodes * NODE_BYTES, NULL);
    if (!d->xors) {
        free(d);
        return NULL;
    }
    d->reals[ARRAY_POTENTIALS] = (float *)(void *)(d->xors + d->nodes);
    d->reals[ARRAY_ACTIVATIONS] = (float *)(void *)(d->xors + 2 * d->nodes);
    iron__store_engine_get_view(
        kept, view,
        &(iron__engine_nodes){d->xors, d->reals[ARRAY_POTENTIALS], d->reals[ARRAY_ACTIVATIONS]});
    return d;
}

/* JSON: the engine's members, in an object that is left open for the arrays, and three arrays.
 * NULL: no memory. */
static dump *dump_json(iron__store_engine *kept) {
    iron__store_engine_view view;
    dump *d = copy_nodes(kept, &view);
    iron_json_writer j = {.to = d ? open_memstream(&d->head, &d->head_bytes) : NULL};

    if (j.to) {
        iron_json_open(&j, NULL, '{');
        iron__write_engine(&j, &view);
    }
    if (!j.to || !iron__close_whole(j.to)) {
        dump_destroy(d);
        return NULL;
    }
    d->step = step_json;
    return d;
}

/* A NumPy file: of one array or (ARRAYS) of records of all three. NULL: no memory. */
static dump *dump_npy(iron__store_engine *kept, node_array array) {
    iron__store_engine_view view;
    dump *d = copy_nodes(kept, &view);
    char type[128];

    if (!d || !(d->head = malloc(IRON_NPY_HEAD_MAX))) {
        dump_destroy(d);
        return NULL;
    }
    snprintf(type, sizeof type, "[('%s', %s), ('%s', %s), ('%s', %s)]", array_names[0],
             array_types[0], array_names[1], array_types[1], array_names[2], array_types[2]);
    d->head_bytes = iron__npy_head(d->head, array < ARRAYS ? array_types[array] : type, d->nodes);
    d->array = array;
    d->step = step_npy;
    return d;
}

/* The next bytes, as many as fit into `room` (64 or more); 0 at the end. */
static size_t dump_next(dump *d, char *room, size_t bytes) {
    size_t head = d->head_bytes - d->head_sent, used, step;

    if (head > 0) {
        used = head < bytes ? head : bytes;
        memcpy(room, d->head + d->head_sent, used);
        d->head_sent += used;
        return used;
    }
    used = 0;
    while (bytes - used >= STEP_MAX && (step = d->step(d, room + used)) > 0)
        used += step;
    return used;
}

typedef enum form { FORM_JSON, FORM_STATE, FORM_NPY, FORM_NONE } form;

static ssize_t read_dump(void *context, char *room, size_t bytes) {
    size_t count = dump_next(context, room, bytes);

    return count ? (ssize_t)count : -1;
}

static void done_dump(void *context) { dump_destroy(context); }

static void name_file(iron__request *req, const char *array, const char *suffix) {
    char text[160];

    snprintf(text, sizeof text, "attachment; filename=\"%s%s%s.%s\"", req->variable,
             array ? "." : "", array ? array : "", suffix);
    iron__response_header(req, "Content-Disposition", text);
}

static void respond_dump(iron__request *req, dump *d, const char *type) {
    if (d)
        iron__response_stream(req, 200, type, read_dump, done_dump, d);
    else
        iron__route_no_memory(req, "a copy of nodes");
}

/* The array with this name; ARRAYS if there is none. */
static node_array find_array(const char *name) {
    node_array array = ARRAY_XORS;

    while (array < ARRAYS && (!name || strcmp(array_names[array], name) != 0))
        array++;
    return array;
}

static void respond_npy(iron__request *req, iron__store_engine *kept) {
    const char *name = iron__request_query(req, "array");
    dump *d = dump_npy(kept, find_array(name));

    if (d)
        name_file(req, name, "npy");
    respond_dump(req, d, "application/octet-stream");
}

static void respond_state(iron__request *req, iron__store_engine *kept) {
    unsigned char *bytes = NULL;
    size_t count = 0;
    iron_error err = {0};

    if (iron__store_engine_serialize(kept, &bytes, &count, &err) != IRON_OK) {
        iron__route_failure(req, &err);
        return;
    }
    name_file(req, NULL, "state");
    iron__response_bytes(req, IRON_RESPONSE_OWNED, 200, "application/octet-stream", bytes, count);
}

/* FORM_NONE: the request asks for none that exists, and is answered. */
static form choose_form(iron__request *req) {
    static const char *const words[] = {"json", "state", "npy"};
    const char *text = iron__request_query(req, "format");
    const char *accept = iron__request_header(req, "Accept");
    unsigned json = iron__accept_weight(accept, "application/json");
    unsigned bytes = iron__accept_weight(accept, "application/octet-stream");
    form chosen = FORM_JSON;

    if (!text && (json > 0 || bytes > 0))
        return bytes > json ? FORM_STATE : FORM_JSON;
    if (!text) {
        iron__response_problem(req, "not-acceptable",
                               "Accept application/json or application/octet-stream, or give "
                               "?format=json, state or npy.",
                               "no type in Accept is available");
        return FORM_NONE;
    }
    while (chosen < FORM_NONE && strcmp(words[chosen], text) != 0)
        chosen++;
    if (chosen == FORM_NONE)
        iron__response_problem(req, "bad-query",
                               "Without format it is JSON, or what Accept asks for.",
                               "format is '%.40s'; it must be json, state or npy", text);
    return chosen;
}

static bool check_array(iron__request *req, form chosen) {
    const char *name = iron__request_query(req, "array");
    bool is_known = find_array(name) < ARRAYS;

    if (!name || (is_known && chosen == FORM_NPY))
        return true;
    if (is_known)
        iron__response_problem(req, "bad-query", "Give format=npy too.",
                               "array goes with format=npy alone");
    else
        iron__response_problem(req, "bad-query", "Without array the file has records of all three.",
                               "array is '%.40s'; it must be xor_accumulators, potentials or "
                               "activations",
                               name);
    return false;
}

/* Takes the bytes of a copy from the budget; state_drop returns them. */
static bool reserve(iron__request *req, uint64_t bytes) {
    uint64_t *reserved = calloc(1, sizeof *reserved);

    if (reserved && iron__budget_take(&req->server->copied_bytes, bytes, COPIES_MAX)) {
        *reserved = bytes;
        req->own = reserved;
        return true;
    }
    free(reserved);
    iron__response_problem(req, "busy", "Try again a little later.",
                           "too many states are being sent to clients");
    return false;
}

static void get_state(iron__request *req) {
    form chosen = choose_form(req);
    iron__store_engine_view view;
    iron__store_engine *kept;

    if (chosen == FORM_NONE || !check_array(req, chosen) ||
        !(kept = iron__route_engine(req, req->variable)))
        return;
    iron__store_engine_get_view(kept, &view, NULL);
    if (reserve(req, COPY_BYTES(view.plan.nodes))) {
        if (chosen == FORM_JSON)
            respond_dump(req, dump_json(kept), "application/json");
        else if (chosen == FORM_NPY)
            respond_npy(req, kept);
        else
            respond_state(req, kept);
    }
    iron__store_engine_release(kept);
}

static void state_drop(iron__request *req) {
    uint64_t *reserved = req->own;

    if (reserved)
        atomic_fetch_sub(&req->server->copied_bytes, *reserved);
    free(reserved);
    req->own = NULL;
}

const iron__route iron__route_state = {.method = "GET",
                                       .pattern = "/v1/engines/{name}/state",
                                       .query = "format array",
                                       .end = get_state,
                                       .drop = state_drop};

/* POST /v1/engines/{name}/quantize: numbers to points of the engine's lattice */
typedef struct question {
    iron__request *req;
    const iron__json *values;
    bool is_xor;
} question;

static iron_status check_value(const iron__json *value, size_t index, bool is_xor,
                               iron_error *err) {
    uint64_t word;
    double number;

    IRON_FAIL_IF(!iron__json_get_number(value, &number), err, IRON_E_ARG,
                 "value %zu is not a number", index);
    IRON_FAIL_IF(is_xor && !iron__json_get_whole(value, UINT32_MAX, &word), err, IRON_E_ARG,
                 "value %zu is %.17g; with kind xor it must be a whole number from 0 to 4294967295",
                 index, number);
    return IRON_OK;
}

static iron_status read_kind(const iron__json *root, question *q, iron_error *err) {
    const iron__json *kind = iron__json_member(root, "kind");
    const char *text = iron__json_get_text(kind);

    IRON_FAIL_IF(kind && !text, err, IRON_E_ARG, "kind must be a string");
    IRON_FAIL_IF(text && strcmp(text, "real") != 0 && strcmp(text, "xor") != 0, err, IRON_E_ARG,
                 "kind is '%.40s'; it must be real or xor", text);
    q->is_xor = text && strcmp(text, "xor") == 0;
    return IRON_OK;
}

static iron_status read_question(const iron__json *root, question *q, iron_error *err) {
    size_t count;

    IRON_FAIL_IF(root->kind != IRON_JSON_OBJECT, err, IRON_E_ARG,
                 "the body must be a JSON object, {\"values\": [...]}");
    for (uint32_t k = 0; k < root->count; k++)
        IRON_FAIL_IF(strcmp(root->items[k].name, "kind") != 0 &&
                         strcmp(root->items[k].name, "values") != 0,
                     err, IRON_E_ARG, "unknown member '%.60s'; the members are kind and values",
                     root->items[k].name);
    IRON_TRY(read_kind(root, q, err));
    q->values = iron__json_member(root, "values");
    IRON_FAIL_IF(!q->values || q->values->kind != IRON_JSON_ARRAY, err, IRON_E_ARG,
                 "values must be an array of numbers");
    count = iron__json_length(q->values);
    IRON_FAIL_IF(count > VALUES_MAX, err, IRON_E_ARG,
                 "there are %zu values; at most %u are accepted", count, VALUES_MAX);
    for (size_t k = 0; k < count; k++)
        IRON_TRY(check_value(iron__json_at(q->values, k), k, q->is_xor, err));
    return IRON_OK;
}

static void respond_points(iron__request *req, const question *q, const iron_lattice *lattice) {
    iron_json_writer *j = iron__response_json(req);

    iron_json_open(j, "points", '[');
    for (size_t k = 0; k < iron__json_length(q->values); k++) {
        double value = iron__json_at(q->values, k)->number;

        iron_json_real(j, NULL,
                       q->is_xor ? iron_lattice_quantize_xor(lattice, (uint32_t)value)
                                 : iron_lattice_quantize_real(lattice, value));
    }
    iron_json_close(j, ']');
    iron__response_json_end(req, 200);
}

/* Checks the body and responds. */
static iron_status quantize(const iron__json *root, void *context, iron_error *err) {
    question *q = context;
    iron_error why = {0};
    iron_lattice *lattice = NULL;
    iron__store_engine_view view;
    iron__store_engine *kept;

    IRON_TRY(read_question(root, q, err));
    kept = iron__route_engine(q->req, q->req->variable);
    if (!kept)
        return IRON_OK;
    iron__store_engine_get_view(kept, &view, NULL);
    iron__store_engine_release(kept);
    if (iron_lattice_create(view.plan.lattice, view.plan.lattice_count, &lattice, &why) == IRON_OK)
        respond_points(q->req, q, lattice);
    else
        iron__route_failure(q->req, &why);
    iron_lattice_destroy(lattice);
    return IRON_OK;
}

static void post_quantize(iron__request *req) {
    question q = {.req = req};
    iron_error err = {0};
    iron_status status = iron__request_read_json(req, quantize, &q, &err);

    if (status == IRON_E_NOMEM)
        iron__route_failure(req, &err);
    else if (status != IRON_OK)
        iron__response_problem(req, "bad-json", "See the schema Values in GET /openapi.json.", "%s",
                               err.text);
}

const iron__route iron__route_quantize = {.method = "POST",
                                          .pattern = "/v1/engines/{name}/quantize",
                                          .body = IRON_BODY_JSON,
                                          .end = post_quantize};
