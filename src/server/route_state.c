/* SPDX-License-Identifier: MIT */
/*
 * route_state.c: GET /v1/engines/{name}/state, in three forms. All of them need a copy of the
 * nodes, up to 12 MiB: those that are on their way at once may take COPIES_MAX together, so that
 * many slow readers of a large engine do not fill the memory.
 */
#include "server/route.h"
#include "server/route_dump.h"
#include "server/route_text.h"

#include <stdlib.h>
#include <string.h>

#define COPIES_MAX ((uint64_t)64 << 20)

/* A saved state has a header and a checksum besides its nodes. */
#define COPY_BYTES(nodes) (IRON_DUMP_NODE_BYTES * (nodes) + 1024)

typedef enum form { FORM_JSON, FORM_STATE, FORM_NPY, FORM_NONE } form;

typedef struct sending {
    uint64_t reserved;
} sending;

static ssize_t read_dump(void *context, char *room, size_t bytes) {
    size_t count = iron__dump_next(context, room, bytes);

    return count ? (ssize_t)count : -1;
}

static void done_dump(void *context) { iron__dump_destroy(context); }

static void name_file(iron__exchange *x, const char *array, const char *suffix) {
    char text[160];

    snprintf(text, sizeof text, "attachment; filename=\"%s%s%s.%s\"", x->variable, array ? "." : "",
             array ? array : "", suffix);
    iron__answer_header(x, "Content-Disposition", text);
}

static void answer_dump(iron__exchange *x, iron__dump *dump, const char *type) {
    if (dump)
        iron__answer_stream(x, 200, type, read_dump, done_dump, dump);
    else
        iron__route_failure(x, &(iron_error){IRON_E_NOMEM, 0, "out of memory: a copy of nodes"});
}

static void answer_npy(iron__exchange *x, iron__kept *kept) {
    const char *name = iron__exchange_query(x, "array");
    iron__array array = IRON_ARRAY_XORS;
    iron__dump *dump;

    while (array < IRON_ARRAYS && (!name || strcmp(iron__array_names[array], name) != 0))
        array++;
    dump = iron__dump_npy(kept, array);
    if (dump)
        name_file(x, name, "npy");
    answer_dump(x, dump, "application/octet-stream");
}

static void answer_state(iron__exchange *x, iron__kept *kept) {
    unsigned char *bytes = NULL;
    size_t count = 0;
    iron_error err = {0};

    if (iron__kept_state(kept, &bytes, &count, &err) != IRON_OK) {
        iron__route_failure(x, &err);
        return;
    }
    name_file(x, NULL, "state");
    iron__answer_bytes(x, 200, "application/octet-stream", bytes, count);
}

static form form_by_accept(const char *accept) {
    unsigned json = iron__accept_weight(accept, "application/json");
    unsigned bytes = iron__accept_weight(accept, "application/octet-stream");

    if (json == 0 && bytes == 0)
        return FORM_NONE;
    return bytes > json ? FORM_STATE : FORM_JSON;
}

/* Refuses what the query says; FORM_NONE: the exchange is answered. */
static form choose_form(iron__exchange *x) {
    static const char *const words[] = {"json", "state", "npy"};
    const char *text = iron__exchange_query(x, "format");
    form chosen = FORM_JSON;

    if (!text) {
        chosen = form_by_accept(iron__exchange_header(x, "Accept"));
        if (chosen == FORM_NONE)
            iron__answer_problem(x, "not-acceptable",
                                 "Accept application/json or application/octet-stream, or give "
                                 "?format=json, state or npy.",
                                 "none of the types in Accept is offered");
        return chosen;
    }
    while (chosen < FORM_NONE && strcmp(words[chosen], text) != 0)
        chosen++;
    if (chosen == FORM_NONE)
        iron__answer_problem(x, "bad-query", "Without format it is JSON, or what Accept asks for.",
                             "format is '%.40s'; it must be json, state or npy", text);
    return chosen;
}

static bool array_is_good(iron__exchange *x, form chosen) {
    const char *name = iron__exchange_query(x, "array");
    bool is_known = false;

    for (size_t k = 0; name && k < IRON_ARRAYS; k++)
        is_known = is_known || strcmp(iron__array_names[k], name) == 0;
    if (!name || (is_known && chosen == FORM_NPY))
        return true;
    if (is_known)
        iron__answer_problem(x, "bad-query", "Give format=npy too.",
                             "array goes with format=npy alone");
    else
        iron__answer_problem(x, "bad-query", "Without array the file has records of all three.",
                             "array is '%.40s'; it must be xor_accumulators, potentials or "
                             "activations",
                             name);
    return false;
}

static bool reserve(iron__exchange *x, uint64_t bytes) {
    sending *s = calloc(1, sizeof *s);

    if (s && atomic_fetch_add(&x->site->copied_bytes, bytes) + bytes <= COPIES_MAX) {
        s->reserved = bytes;
        x->own = s;
        return true;
    }
    if (s)
        atomic_fetch_sub(&x->site->copied_bytes, bytes);
    free(s);
    iron__answer_problem(x, "busy", "Try again a little later.",
                         "too many states are on their way to clients");
    return false;
}

void iron__route_state(iron__exchange *x) {
    form chosen = choose_form(x);
    iron__kept_view view;
    iron__kept *kept;

    if (chosen == FORM_NONE || !array_is_good(x, chosen) ||
        !(kept = iron__route_engine(x, x->variable)))
        return;
    iron__kept_look(kept, &view);
    if (reserve(x, COPY_BYTES(view.plan.nodes))) {
        if (chosen == FORM_JSON)
            answer_dump(x, iron__dump_json(kept), "application/json");
        else if (chosen == FORM_NPY)
            answer_npy(x, kept);
        else
            answer_state(x, kept);
    }
    iron__kept_release(kept);
}

void iron__route_state_drop(iron__exchange *x) {
    sending *s = x->own;

    if (s)
        atomic_fetch_sub(&x->site->copied_bytes, s->reserved);
    free(s);
    x->own = NULL;
}
