/* SPDX-License-Identifier: MIT */
/*
 * data.c: arrays, random numbers and loops over long arrays for all ops; see data.h.
 */
#include "ops/data.h"

#include "core/memory.h"

#include <stdatomic.h>

/* Elements that a thread takes at a time. */
#define PIECE ((size_t)65536)

iron_status iron__data_take(iron__array *array, const char *name, size_t bytes, iron_error *err) {
    *array = (iron__array){.name = name, .bytes = bytes};
    array->data = iron__allocate_large(bytes, err);
    return array->data ? IRON_OK : IRON_E_NOMEM;
}

void iron__data_release(iron__problem *problem) {
    for (size_t k = 0; k < problem->input_count; k++)
        iron__release_large(problem->inputs[k].data, problem->inputs[k].bytes);
    problem->input_count = 0;
}

typedef struct pieces {
    size_t count;
    iron__data_piece piece;
    void *context;
} pieces;

static void run_piece(void *context, size_t index) {
    const pieces *p = context;
    size_t begin = index * PIECE;

    p->piece(p->context, begin, p->count - begin < PIECE ? p->count : begin + PIECE);
}

void iron__data_pieces(iron__team *team, size_t count, iron__data_piece piece, void *context) {
    pieces p = {count, piece, context};

    iron__team_run(team, run_piece, &p, (count + PIECE - 1) / PIECE);
}

typedef struct filling {
    void *data;
    iron__element element;
    uint64_t base;
} filling;

static void fill_piece(void *context, size_t begin, size_t end) {
    const filling *f = context;

    if (f->element == IRON_F32) {
        float *to = f->data;

        for (size_t k = begin; k < end; k++)
            to[k] = iron__data_f32(iron__data_bits(f->base, k));
        return;
    }
    double *to = f->data;

    for (size_t k = begin; k < end; k++)
        to[k] = iron__data_f64(iron__data_bits(f->base, k));
}

void iron__data_fill_reals(const iron__array *array, const iron__case *c, uint64_t stream,
                           iron__team *team) {
    filling f = {array->data, c->element, iron__data_base(c->seed, stream)};

    iron__data_pieces(team, array->bytes / iron__element_bytes(c->element), fill_piece, &f);
}

typedef struct searching {
    iron__data_differs differs;
    const void *context;
    _Atomic size_t first; /* found so far */
} searching;

static void search_piece(void *context, size_t begin, size_t end) {
    searching *s = context;

    for (size_t k = begin; k < end && k < atomic_load_explicit(&s->first, memory_order_relaxed);
         k++) {
        size_t first = atomic_load(&s->first);

        if (!s->differs(s->context, k))
            continue;
        while (k < first && !atomic_compare_exchange_weak(&s->first, &first, k)) {
        }
        return;
    }
}

size_t iron__data_first(iron__team *team, size_t count, iron__data_differs differs,
                        const void *context) {
    searching s = {.differs = differs, .context = context, .first = count};

    iron__data_pieces(team, count, search_piece, &s);
    return s.first;
}
