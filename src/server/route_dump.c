/* SPDX-License-Identifier: MIT */
/*
 * route_dump.c: see route_dump.h. A dump is a head, made at once and small, and then one step after
 * the other, each of at most STEP_MAX bytes: an entry of an array in JSON, a number or a record in
 * a NumPy file.
 */
#include "server/route_dump.h"

#include "core/memory.h"
#include "formats/npy.h"
#include "server/route_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP_MAX 48u

const char *const iron__array_names[IRON_ARRAYS] = {"xor_accumulators", "potentials",
                                                    "activations"};

static const char *const array_types[IRON_ARRAYS] = {"'<u4'", "'<f4'", "'<f4'"};

struct iron__dump {
    char *head; /* malloc'ed */
    size_t head_bytes, head_sent;
    size_t (*step)(iron__dump *d, char *room); /* 0: there are no more */
    iron__array array;                         /* JSON: the one that is being written */
    uint64_t node, nodes;
    uint32_t *xors;            /* one block of memory with the reals after it */
    float *reals[IRON_ARRAYS]; /* [IRON_ARRAY_XORS] is not used */
};

static void entry_text(const iron__dump *d, char *room, size_t bytes) {
    double real;

    if (d->array == IRON_ARRAY_XORS) {
        snprintf(room, bytes, "%u", (unsigned)d->xors[d->node]);
        return;
    }
    real = (double)d->reals[d->array][d->node];
    if (isfinite(real))
        snprintf(room, bytes, "%.9g", real);
    else
        snprintf(room, bytes, "null");
}

/* A row of sixteen entries a line. */
static size_t step_json(iron__dump *d, char *room) {
    char entry[24], opening[32] = "";

    if (d->array == IRON_ARRAYS)
        return 0;
    if (d->node == d->nodes) {
        d->node = 0;
        d->array++;
        return (size_t)snprintf(room, STEP_MAX, "%s", d->array == IRON_ARRAYS ? "]\n}\n" : "]");
    }
    if (d->node == 0)
        snprintf(opening, sizeof opening, ",\n  \"%s\": [", iron__array_names[d->array]);
    entry_text(d, entry, sizeof entry);
    d->node++;
    return (size_t)snprintf(room, STEP_MAX, "%s%s%s", opening, entry,
                            d->node == d->nodes ? ""
                            : d->node % 16      ? ", "
                                                : ",\n    ");
}

static size_t step_array(iron__dump *d, char *room) {
    if (d->node == d->nodes)
        return 0;
    if (d->array == IRON_ARRAY_XORS)
        memcpy(room, &d->xors[d->node], 4);
    else
        memcpy(room, &d->reals[d->array][d->node], 4);
    d->node++;
    return 4;
}

static size_t step_record(iron__dump *d, char *room) {
    if (d->node == d->nodes)
        return 0;
    memcpy(room, &d->xors[d->node], 4);
    memcpy(room + 4, &d->reals[IRON_ARRAY_POTENTIALS][d->node], 4);
    memcpy(room + 8, &d->reals[IRON_ARRAY_ACTIVATIONS][d->node], 4);
    d->node++;
    return 12;
}

/* The copies of the nodes; how many there are never changes. The memory goes back to the system
 * when they are sent: an allocator would keep it. */
static iron__dump *copy_nodes(iron__kept *kept, iron__kept_view *view) {
    iron__dump *d = calloc(1, sizeof *d);

    iron__kept_look(kept, view);
    if (!d)
        return NULL;
    d->nodes = view->plan.nodes;
    d->xors = iron__allocate_large(d->nodes * IRON_DUMP_NODE_BYTES, NULL);
    if (!d->xors) {
        free(d);
        return NULL;
    }
    d->reals[IRON_ARRAY_POTENTIALS] = (float *)(void *)(d->xors + d->nodes);
    d->reals[IRON_ARRAY_ACTIVATIONS] = (float *)(void *)(d->xors + 2 * d->nodes);
    iron__kept_nodes(kept, view, d->xors, d->reals[IRON_ARRAY_POTENTIALS],
                     d->reals[IRON_ARRAY_ACTIVATIONS]);
    return d;
}

/* An object that is not closed yet: what follows goes into it. */
static bool json_head(iron__dump *d, const iron__kept_view *view) {
    iron__json_writer j = {.to = open_memstream(&d->head, &d->head_bytes)};
    bool is_whole;

    if (!j.to)
        return false;
    iron__json_write_open(&j, NULL, '{');
    iron__write_engine(&j, view);
    is_whole = !ferror(j.to);
    return fclose(j.to) == 0 && is_whole;
}

iron__dump *iron__dump_json(iron__kept *kept) {
    iron__kept_view view;
    iron__dump *d = copy_nodes(kept, &view);

    if (d && !json_head(d, &view)) {
        iron__dump_destroy(d);
        return NULL;
    }
    if (d)
        d->step = step_json;
    return d;
}

static void npy_type(iron__array array, char *text, size_t bytes) {
    if (array < IRON_ARRAYS)
        snprintf(text, bytes, "%s", array_types[array]);
    else
        snprintf(text, bytes, "[('%s', %s), ('%s', %s), ('%s', %s)]", iron__array_names[0],
                 array_types[0], iron__array_names[1], array_types[1], iron__array_names[2],
                 array_types[2]);
}

iron__dump *iron__dump_npy(iron__kept *kept, iron__array array) {
    iron__kept_view view;
    iron__dump *d = copy_nodes(kept, &view);
    char type[128];

    if (d && !(d->head = malloc(IRON_NPY_HEAD_MAX))) {
        iron__dump_destroy(d);
        return NULL;
    }
    if (!d)
        return NULL;
    npy_type(array, type, sizeof type);
    d->head_bytes = iron__npy_head(d->head, type, d->nodes);
    d->array = array;
    d->step = array < IRON_ARRAYS ? step_array : step_record;
    return d;
}

size_t iron__dump_next(iron__dump *dump, char *room, size_t bytes) {
    size_t head = dump->head_bytes - dump->head_sent, used, step;

    if (head > 0) {
        used = head < bytes ? head : bytes;
        memcpy(room, dump->head + dump->head_sent, used);
        dump->head_sent += used;
        return used;
    }
    used = 0;
    while (bytes - used >= STEP_MAX && (step = dump->step(dump, room + used)) > 0)
        used += step;
    return used;
}

void iron__dump_destroy(iron__dump *dump) {
    if (!dump)
        return;
    iron__release_large(dump->xors, dump->nodes * IRON_DUMP_NODE_BYTES);
    free(dump->head);
    free(dump);
}
