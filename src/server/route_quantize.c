/* SPDX-License-Identifier: MIT */
/*
 * route_quantize.c: POST /v1/engines/{name}/quantize: numbers to the points of an engine's lattice.
 */
#include "server/route.h"

#include "core/fail.h"
#include "core/json_read.h"
#include "core/memory.h"

#include <string.h>

#define VALUES_MAX 65536u

/* What was asked for, once it is known to be right. */
typedef struct question {
    const iron__json *values;
    bool is_xor;
} question;

static iron_status check_value(const iron__json *value, size_t index, bool is_xor,
                               iron_error *err) {
    uint64_t word;
    double number;

    IRON_FAIL_IF(!iron__json_number(value, &number), err, IRON_E_ARG, "value %zu is no number",
                 index);
    IRON_FAIL_IF(is_xor && !iron__json_whole(value, UINT32_MAX, &word), err, IRON_E_ARG,
                 "value %zu is %.17g; of kind xor it must be a whole number from 0 to 4294967295",
                 index, number);
    return IRON_OK;
}

static iron_status read_kind(const iron__json *root, question *q, iron_error *err) {
    const iron__json *kind = iron__json_member(root, "kind");
    const char *text = iron__json_text(kind);

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
                     err, IRON_E_ARG, "'%.60s' is not known here; the members are kind and values",
                     root->items[k].name);
    IRON_TRY(read_kind(root, q, err));
    q->values = iron__json_member(root, "values");
    IRON_FAIL_IF(!q->values || q->values->kind != IRON_JSON_ARRAY, err, IRON_E_ARG,
                 "values must be an array of numbers");
    count = iron__json_length(q->values);
    IRON_FAIL_IF(count > VALUES_MAX, err, IRON_E_ARG, "there are %zu values; at most %u are taken",
                 count, VALUES_MAX);
    for (size_t k = 0; k < count; k++)
        IRON_TRY(check_value(iron__json_at(q->values, k), k, q->is_xor, err));
    return IRON_OK;
}

static void answer_points(iron__exchange *x, const question *q, const iron_lattice *lattice) {
    iron__json_writer *j = iron__answer_json(x);

    iron__json_write_open(j, NULL, '{');
    iron__json_write_open(j, "points", '[');
    for (size_t k = 0; k < iron__json_length(q->values); k++) {
        double value = iron__json_at(q->values, k)->number;

        iron__json_write_real(j, NULL,
                              q->is_xor ? iron_lattice_quantize_xor(lattice, (uint32_t)value)
                                        : iron_lattice_quantize_real(lattice, value));
    }
    iron__json_write_close(j, ']');
    iron__json_write_close(j, '}');
    iron__answer_json_end(x, 200);
}

static void quantize(iron__exchange *x, const question *q) {
    iron__kept *kept = iron__route_engine(x, x->variable);
    iron_lattice *lattice = NULL;
    iron__kept_view view;
    iron_error err = {0};

    if (!kept)
        return;
    iron__kept_look(kept, &view);
    iron__kept_release(kept);
    if (iron_lattice_create(view.plan.lattice, view.plan.lattice_count, &lattice, &err) == IRON_OK)
        answer_points(x, q, lattice);
    else
        iron__route_failure(x, &err);
    iron_lattice_destroy(lattice);
}

void iron__route_quantize(iron__exchange *x) {
    const iron__json *root = NULL;
    question q = {0};
    iron_error err = {0};
    iron_status status =
        iron__json_parse(x->body, x->body_bytes, iron__allocator_default(), &root, &err);

    if (status == IRON_OK)
        status = read_question(root, &q, &err);
    if (status == IRON_OK)
        quantize(x, &q);
    else if (status == IRON_E_NOMEM)
        iron__route_failure(x, &err);
    else
        iron__answer_problem(x, "bad-json", "GET /openapi.json has the schema, Values.", "%s",
                             err.text);
    iron__json_destroy(iron__allocator_default(), root);
}
