/* SPDX-License-Identifier: MIT */
/*
 * route_plan.c: see route_plan.h. A table has one row a member; what is not in it is refused by
 * name, since a misspelt member that was passed over would make another engine than was meant.
 */
#include "server/route_plan.h"

#include "core/fail.h"
#include "core/json_read.h"
#include "core/lattice.h"
#include "core/memory.h"

#include <inttypes.h>
#include <string.h>

/* Above it not every whole number is a double, so what was written might not be what is read. */
#define WHOLE_MAX ((UINT64_C(1) << 53) - 1)

typedef struct reader {
    iron__plan *plan;
    const char *kind; /* of the problem, if there is one */
    iron_error *err;
} reader;

typedef struct member {
    const char *name;
    iron_status (*read)(reader *r, const struct member *m, const iron__json *value);
    size_t offset;     /* of the field in the plan */
    uint64_t min, max; /* of a number; of a text, max is its room */
} member;

static iron_status wrong_kind(reader *r, const char *name, const char *wanted) {
    r->kind = "bad-json";
    return iron__fail(r->err, IRON_E_ARG, 0, "%s must be %s", name, wanted);
}

static iron_status read_whole(reader *r, const member *m, const iron__json *value, uint64_t *out) {
    double number;

    if (!iron__json_number(value, &number))
        return wrong_kind(r, m->name, "a number");
    IRON_FAIL_IF(!iron__json_whole(value, m->max, out) || *out < m->min, r->err, IRON_E_ARG,
                 "%s is %.17g; it must be a whole number from %" PRIu64 " to %" PRIu64, m->name,
                 number, m->min, m->max);
    return IRON_OK;
}

static iron_status read_u64(reader *r, const member *m, const iron__json *value) {
    uint64_t whole = 0;

    IRON_TRY(read_whole(r, m, value, &whole));
    memcpy((char *)r->plan + m->offset, &whole, sizeof whole);
    return IRON_OK;
}

static iron_status read_u32(reader *r, const member *m, const iron__json *value) {
    uint64_t whole = 0;
    uint32_t word;

    IRON_TRY(read_whole(r, m, value, &whole));
    word = (uint32_t)whole;
    memcpy((char *)r->plan + m->offset, &word, sizeof word);
    return IRON_OK;
}

static iron_status read_text(reader *r, const member *m, const iron__json *value) {
    const char *text = iron__json_text(value);

    if (!text)
        return wrong_kind(r, m->name, "a string");
    IRON_FAIL_IF(!*text || strlen(text) >= m->max, r->err, IRON_E_ARG,
                 "%s has %zu characters; it must have 1 to %" PRIu64, m->name, strlen(text),
                 m->max - 1);
    memcpy((char *)r->plan + m->offset, text, strlen(text) + 1);
    return IRON_OK;
}

static iron_status read_name(reader *r, const member *m, const iron__json *value) {
    const char *text = iron__json_text(value);

    if (text) {
        r->kind = "bad-name";
        IRON_FAIL_IF(!iron__engine_name_is_valid(text), r->err, IRON_E_ARG,
                     "'%.80s' is no engine's name", text);
    }
    return read_text(r, m, value);
}

static iron_status read_backend(reader *r, const member *m, const iron__json *value) {
    static const char *const known[] = {"auto", "cpu", "cuda", "opencl"};
    const char *text = iron__json_text(value);
    size_t k = 0;

    while (text && k < sizeof known / sizeof known[0] && strcmp(known[k], text) != 0)
        k++;
    IRON_FAIL_IF(k == sizeof known / sizeof known[0], r->err, IRON_E_ARG,
                 "backend is '%.40s'; it must be auto, cpu, cuda or opencl", text);
    return read_text(r, m, value);
}

static iron_status read_positions(reader *r, const member *m, const iron__json *value) {
    const char *text = iron__json_text(value);

    if (!text)
        return wrong_kind(r, m->name, "a string");
    if (strcmp(text, "stream") == 0)
        r->plan->positions = IRON_POSITIONS_STREAM;
    else if (strcmp(text, "batch") == 0)
        r->plan->positions = IRON_POSITIONS_BATCH;
    else
        IRON_FAIL(r->err, IRON_E_ARG, "positions is '%.40s'; it must be stream or batch", text);
    return IRON_OK;
}

static iron_status read_lattice(reader *r, const member *m, const iron__json *value) {
    member point = {.name = "a point of lattice", .min = m->min, .max = m->max};
    size_t count = iron__json_length(value);

    if (!value || value->kind != IRON_JSON_ARRAY)
        return wrong_kind(r, m->name, "an array of numbers");
    IRON_FAIL_IF(count < IRON_LATTICE_MIN || count > IRON_LATTICE_MAX, r->err, IRON_E_ARG,
                 "lattice has %zu points; it must have %u to %u", count, IRON_LATTICE_MIN,
                 IRON_LATTICE_MAX);
    for (size_t k = 0; k < count; k++) {
        uint64_t whole = 0;

        IRON_TRY(read_whole(r, &point, iron__json_at(value, k), &whole));
        r->plan->lattice[k] = (uint32_t)whole;
    }
    r->plan->lattice_count = (uint32_t)count;
    return iron__lattice_check(r->plan->lattice, (uint32_t)count, r->err);
}

#define FIELD(name) offsetof(iron__plan, name)

static const member members[] = {
    {"name", read_name, FIELD(name), 0, sizeof(((iron__plan *)0)->name)},
    {"nodes", read_u64, FIELD(nodes), 1, UINT64_C(1) << 20},
    {"vocab", read_u64, FIELD(vocab), 2, UINT64_C(1) << 31},
    {"batch", read_u64, FIELD(batch), 1, WHOLE_MAX},
    {"positions", read_positions, 0, 0, 0},
    {"lattice", read_lattice, 0, 1, IRON_LATTICE_POINT_MAX},
    {"mode", read_text, FIELD(mode), 0, sizeof(((iron__plan *)0)->mode)},
    {"backend", read_backend, FIELD(backend), 0, sizeof(((iron__plan *)0)->backend)},
    {"device", read_u32, FIELD(device), 0, UINT32_MAX},
};

static const member *find_member(const char *name) {
    for (size_t k = 0; k < sizeof members / sizeof members[0]; k++)
        if (strcmp(members[k].name, name) == 0)
            return &members[k];
    return NULL;
}

static iron_status read_members(reader *r, const iron__json *root) {
    r->kind = "bad-json";
    IRON_FAIL_IF(root->kind != IRON_JSON_OBJECT, r->err, IRON_E_ARG,
                 "the body must be a JSON object, {\"name\": ...}");
    for (uint32_t k = 0; k < root->count; k++)
        IRON_FAIL_IF(!find_member(root->items[k].name), r->err, IRON_E_ARG,
                     "'%.60s' is no member of an engine; these are: name nodes vocab batch "
                     "positions lattice mode backend device",
                     root->items[k].name);
    IRON_FAIL_IF(!iron__json_member(root, "name"), r->err, IRON_E_ARG, "name is missing");
    for (uint32_t k = 0; k < root->count; k++) {
        const member *m = find_member(root->items[k].name);

        r->kind = "bad-configuration";
        IRON_TRY(m->read(r, m, &root->items[k]));
    }
    return IRON_OK;
}

iron_status iron__plan_parse(const char *text, size_t bytes, iron__plan *plan, const char **kind,
                             iron_error *err) {
    reader r = {.plan = plan, .kind = "bad-json", .err = err};
    const iron__json *root = NULL;
    iron_status status;

    iron__plan_init(plan);
    status = iron__json_parse(text, bytes, iron__allocator_default(), &root, err);
    if (status == IRON_OK)
        status = read_members(&r, root);
    iron__json_destroy(iron__allocator_default(), root);
    *kind = r.kind;
    return status;
}
