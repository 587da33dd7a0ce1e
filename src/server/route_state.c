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
#include "core/number.h"
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
    bool is_npy;
    char *head; /* malloc'ed */
    size_t head_bytes, head_sent;
    node_array array; /* JSON: the one that is being written; NumPy: ARRAYS: records of all three */
    uint64_t node, nodes;
    uint32_t *words; /* the arrays, one after the other */
} dump;

/* Sixteen entries per line. Returns 0 if there are no more. */
static size_t step_json(dump *d, char *room) {
    char entry[24] = "null", opening[32] = "";
    float real;

    if (d->array == ARRAYS)
        return 0;
    if (d->node == d->nodes) {
        d->node = 0;
        d->array++;
        return (size_t)snprintf(room, STEP_MAX, "%s", d->array == ARRAYS ? "]\n}\n" : "]");
    }
    if (d->node == 0)
        snprintf(opening, sizeof opening, ",\n  \"%s\": [", array_names[d->array]);
    memcpy(&real, &d->words[d->array * d->nodes + d->node], sizeof real);
    if (d->array == ARRAY_XORS)
        snprintf(entry, sizeof entry, "%" PRIu32, d->words[d->node]);
    else if (isfinite(real))
        snprintf(entry, sizeof entry, "%.9g", (double)real);
    d->node++;
    return (size_t)snprintf(room, STEP_MAX, "%s%s%s", opening, entry,
                            d->node == d->nodes ? ""
                            : d->node % 16      ? ", "
                                                : ",\n    ");
}

/* A number of one array, or a record of all three. */
static size_t step_npy(dump *d, char *room) {
    size_t first = d->array < ARRAYS ? d->array : 0, count = d->array < ARRAYS ? 1 : ARRAYS;

    if (d->node == d->nodes)
        return 0;
    for (size_t k = 0; k < count; k++)
        memcpy(room + 4 * k, d->words + (first + k) * d->nodes + d->node, 4);
    d->node++;
    return 4 * count;
}

static void dump_destroy(void *context) {
    dump *d = context;

    iron__release_large(d->words, d->nodes * NODE_BYTES);
    free(d->head);
    free(d);
}

/* Copies the nodes, whose number never changes. The memory goes back to the system when they are
 * sent: an allocator would keep it. The head of JSON has the engine's members, in an object that is
 * left open for the arrays. NULL: no memory. */
static dump *dump_create(iron__store_engine *kept, bool is_npy, node_array array) {
    dump *d = calloc(1, sizeof *d);
    char head[IRON_NPY_HEAD_MAX], type[128];
    iron__store_engine_view view;
    iron_json_writer j = {.to = NULL};

    if (!d)
        return NULL;
    iron__store_engine_get_view(kept, &view, NULL);
    d->is_npy = is_npy;
    d->array = array;
    d->nodes = view.plan.nodes;
    d->words = iron__allocate_large(d->nodes * NODE_BYTES, NULL);
    j.to = d->words ? open_memstream(&d->head, &d->head_bytes) : NULL;
    if (!j.to) {
        dump_destroy(d);
        return NULL;
    }
    iron__store_engine_get_view(
        kept, &view,
        &(iron__engine_nodes){d->words, (float *)(void *)(d->words + ARRAY_POTENTIALS * d->nodes),
                              (float *)(void *)(d->words + ARRAY_ACTIVATIONS * d->nodes)});
    if (is_npy) {
        snprintf(type, sizeof type, "[('%s', %s), ('%s', %s), ('%s', %s)]", array_names[0],
                 array_types[0], array_names[1], array_types[1], array_names[2], array_types[2]);
        fwrite(head, 1, iron__npy_head(head, array < ARRAYS ? array_types[array] : type, d->nodes),
               j.to);
    } else {
        iron_json_open(&j, NULL, '{');
        iron__write_engine(&j, &view);
    }
    if (iron__close_whole(j.to))
        return d;
    dump_destroy(d);
    return NULL;
}

/* The next bytes, as many as fit into `room` (64 or more); -1 at the end. */
static ssize_t dump_read(void *context, char *room, size_t bytes) {
    dump *d = context;
    size_t used = iron__min_size(bytes, d->head_bytes - d->head_sent), step;

    if (used > 0) {
        memcpy(room, d->head + d->head_sent, used);
        d->head_sent += used;
        return (ssize_t)used;
    }
    while (bytes - used >= STEP_MAX &&
           (step = (d->is_npy ? step_npy : step_json)(d, room + used)) > 0)
        used += step;
    return used ? (ssize_t)used : -1;
}

typedef enum form { FORM_JSON, FORM_STATE, FORM_NPY, FORM_NONE } form;

/* The array with this name; ARRAYS if there is none. */
static node_array find_array(const char *name) {
    node_array array = ARRAY_XORS;

    while (array < ARRAYS && (!name || strcmp(array_names[array], name) != 0))
        array++;
    return array;
}

static void respond_dump(iron__request *req, iron__store_engine *kept, form chosen) {
    node_array array = find_array(iron__request_query(req, "array"));
    dump *d = dump_create(kept, chosen == FORM_NPY, chosen == FORM_NPY ? array : ARRAY_XORS);
    char text[160];

    if (!d) {
        iron__route_no_memory(req, "a copy of nodes");
        return;
    }
    if (chosen == FORM_NPY) {
        snprintf(text, sizeof text, "attachment; filename=\"%s%s%s.npy\"", req->variable,
                 array < ARRAYS ? "." : "", array < ARRAYS ? array_names[array] : "");
        iron__response_header(req, "Content-Disposition", text);
    }
    iron__response_stream(req, 200,
                          chosen == FORM_NPY ? "application/octet-stream" : "application/json",
                          dump_read, dump_destroy, d);
}

static void respond_state(iron__request *req, iron__store_engine *kept) {
    unsigned char *bytes = NULL;
    size_t count = 0;
    iron_error err = {0};
    char text[160];

    if (iron__store_engine_serialize(kept, &bytes, &count, &err) != IRON_OK) {
        iron__route_failure(req, &err);
        return;
    }
    snprintf(text, sizeof text, "attachment; filename=\"%s.state\"", req->variable);
    iron__response_header(req, "Content-Disposition", text);
    iron__response_bytes(req, IRON_RESPONSE_OWNED, 200, "application/octet-stream", bytes, count);
}

/* FORM_NONE: the request asks for none that exists, and is answered. */
static form choose_form(iron__request *req) {
    static const char *const words[] = {"json", "state", "npy"};
    const char *text = iron__request_query(req, "format");
    const char *accept = iron__request_header(req, "Accept").at;
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

/* A copy takes its bytes from a budget; state_drop returns them. */
static void get_state(iron__request *req) {
    form chosen = choose_form(req);
    iron__store_engine_view view;
    iron__store_engine *kept;
    uint64_t *reserved;

    if (chosen == FORM_NONE || !check_array(req, chosen) ||
        !(kept = iron__route_engine(req, req->variable)))
        return;
    iron__store_engine_get_view(kept, &view, NULL);
    reserved = req->own = calloc(1, sizeof *reserved);
    if (!reserved ||
        !iron__budget_take(&req->server->copied_bytes, COPY_BYTES(view.plan.nodes), COPIES_MAX)) {
        iron__response_problem(req, "busy", "Try again a little later.",
                               "too many states are being sent to clients");
    } else {
        *reserved = COPY_BYTES(view.plan.nodes);
        if (chosen == FORM_STATE)
            respond_state(req, kept);
        else
            respond_dump(req, kept, chosen);
    }
    iron__store_engine_release(kept);
}

static void state_drop(iron__request *req) {
    uint64_t *reserved = req->own;

    if (reserved)
        atomic_fetch_sub(&req->server->copied_bytes, *reserved);
    free(reserved);
}

IRON_ROUTE(state, "GET", "/v1/engines/{name}/state", .query = "format array", .end = get_state,
           .drop = state_drop);

/* POST /v1/engines/{name}/quantize: numbers to points of the engine's lattice */
typedef struct question {
    iron__request *req;
    const iron__json *values;
    bool is_xor;
} question;

static iron_status read_question(const iron__json *root, question *q, iron_error *err) {
    const iron__json *kind = iron__json_member(root, "kind");
    const char *text = iron__json_get_text(kind);
    size_t count;

    IRON_FAIL_IF(root->kind != IRON_JSON_OBJECT, err, IRON_E_ARG,
                 "the body must be a JSON object, {\"values\": [...]}");
    for (uint32_t k = 0; k < root->count; k++)
        IRON_FAIL_IF(
            !iron__text_is_one_of(iron__text_of(root->items[k].name), "kind values", false), err,
            IRON_E_ARG, "unknown member '%.60s'; the members are kind and values",
            root->items[k].name);
    IRON_FAIL_IF(kind && !text, err, IRON_E_ARG, "kind must be a string");
    IRON_FAIL_IF(text && strcmp(text, "real") != 0 && strcmp(text, "xor") != 0, err, IRON_E_ARG,
                 "kind is '%.40s'; it must be real or xor", text);
    q->is_xor = text && strcmp(text, "xor") == 0;
    q->values = iron__json_member(root, "values");
    IRON_FAIL_IF(!q->values || q->values->kind != IRON_JSON_ARRAY, err, IRON_E_ARG,
                 "values must be an array of numbers");
    count = iron__json_length(q->values);
    IRON_FAIL_IF(count > VALUES_MAX, err, IRON_E_ARG,
                 "there are %zu values; at most %u are accepted", count, VALUES_MAX);
    for (size_t k = 0; k < count; k++) {
        const iron__json *value = iron__json_at(q->values, k);
        uint64_t word;
        double number;

        IRON_FAIL_IF(!iron__json_get_number(value, &number), err, IRON_E_ARG,
                     "value %zu is not a number", k);
        IRON_FAIL_IF(
            q->is_xor && !iron__json_get_whole(value, UINT32_MAX, &word), err, IRON_E_ARG,
            "value %zu is %.17g; with kind xor it must be a whole number from 0 to 4294967295", k,
            number);
    }
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

IRON_ROUTE(quantize, "POST", "/v1/engines/{name}/quantize", .body = IRON_BODY_JSON,
           .end = post_quantize);
