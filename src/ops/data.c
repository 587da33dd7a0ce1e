/* SPDX-License-Identifier: MIT */
/*
 * data.c: problems of ops, pseudo-random arrays, and parallel loops over them; see data.h.
 */
#include "ops/data.h"

#include "core/fail.h"
#include "core/memory.h"
#include "core/number.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

/* Elements of one task. */
#define PIECE ((size_t)65536)

iron_status iron__data_take(iron__op_array *array, const char *name, size_t bytes,
                            iron_error *err) {
    *array = (iron__op_array){.name = name, .bytes = bytes};
    array->data = iron__allocate_large(bytes, err);
    return array->data ? IRON_OK : IRON_E_NOMEM;
}

iron_status iron__data_make(iron__op_problem *out, iron__thread_pool *pool, iron_error *err) {
    iron_status status;

    *out = (iron__op_problem){.c = out->c, .pool = pool};
    out->output_bytes =
        (size_t)out->c.rows * (size_t)out->c.cols * iron__element_bytes(out->c.element);
    status = out->c.op->fill(out, err);
    if (status != IRON_OK)
        out->c.op->unmake(out);
    return status;
}

void iron__data_unmake(iron__op_problem *problem) {
    for (size_t k = 0; k < problem->input_count; k++)
        iron__release_large(problem->inputs[k].data, problem->inputs[k].bytes);
    iron__release_large(problem->reference.data, problem->reference.bytes);
    iron__release(iron__allocator_default(), problem->own);
    *problem = (iron__op_problem){.c = problem->c};
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

void iron__data_pieces(iron__thread_pool *pool, size_t count, iron__data_piece piece,
                       void *context) {
    pieces p = {count, piece, context};

    iron__thread_pool_run(pool, run_piece, &p, (count + PIECE - 1) / PIECE);
}

static void run_piece_of(void *context, size_t begin, size_t end) {
    const iron__cpu_work *work = context;

    work->row->cpu_piece(work, begin, end);
}

void iron__line_run(const iron__cpu_work *work) {
    iron__data_pieces(work->pool, (size_t)work->problem->c.rows, run_piece_of,
                      (void *)(uintptr_t)work);
}

/* An input. */
typedef struct making {
    const iron__op_problem *problem;
    iron__data_word word;
    const iron__op_array *array;
    uint64_t base;
} making;

static void make_f32(void *context, size_t begin, size_t end) {
    const making *m = context;

    for (size_t k = begin; k < end; k++)
        ((float *)m->array->data)[k] = iron__data_f32(iron__data_bits(m->base, k));
}

static void make_f64(void *context, size_t begin, size_t end) {
    const making *m = context;

    for (size_t k = begin; k < end; k++)
        ((double *)m->array->data)[k] = iron__data_f64(iron__data_bits(m->base, k));
}

static void make_words(void *context, size_t begin, size_t end) {
    const making *m = context;
    uint32_t *data = m->array->data;

    for (size_t k = begin; k < end; k++)
        data[k] = m->word(m->problem, k, iron__data_bits(m->base, k));
}

/* Elements of u8 and u16, eight bytes at a time. */
static void make_bytes(void *context, size_t begin, size_t end) {
    const making *m = context;
    const iron__op_array *to = m->array;

    for (size_t k = begin; k < end; k++) {
        uint64_t bits = iron__data_bits(m->base, k);
        size_t left = to->bytes - k * sizeof bits;

        memcpy((char *)to->data + k * sizeof bits, &bits, left < sizeof bits ? left : sizeof bits);
    }
}

static uint32_t random_word(const iron__op_problem *problem, size_t index, uint64_t bits) {
    (void)problem;
    (void)index;
    return (uint32_t)(bits >> 32);
}

iron_status iron__data_input(iron__op_problem *p, const char *name, size_t count,
                             iron__data_word word, iron_error *err) {
    iron__op_array *array = &p->inputs[p->input_count++];
    making m = {p, word, array, iron__data_base(p->c.seed, p->input_count)};

    if (!word && p->c.element == IRON_U32)
        m.word = random_word;
    IRON_TRY(iron__data_take(array, name, count * iron__element_bytes(p->c.element), err));
    if (m.word)
        iron__data_pieces(p->pool, count, make_words, &m);
    else if (p->c.element == IRON_U8 || p->c.element == IRON_U16)
        iron__data_pieces(p->pool, (array->bytes + 7) / 8, make_bytes, &m);
    else
        iron__data_pieces(p->pool, count, p->c.element == IRON_F32 ? make_f32 : make_f64, &m);
    return IRON_OK;
}

#define VARIED_EVERY 1024u /* divides PIECE */

static void copy_own(void *context, size_t begin, size_t end) {
    const iron__op_problem *p = context;
    const iron__op_data *d = p->c.data;
    uint64_t base = iron__data_base(p->c.seed, 1), shift = p->c.seed ? base % d->count : 0;
    uint64_t from = (begin + shift) % d->count;

    for (size_t k = begin; k < end; k++) {
        iron__data_put(p, k, d->tokens[from]);
        from = from + 1 < d->count ? from + 1 : 0;
    }
    for (size_t k = begin; p->c.seed && k < end; k += VARIED_EVERY) {
        uint64_t bits = iron__data_bits(base, k);
        size_t at = k + bits % VARIED_EVERY;

        iron__data_put(p, at < end ? at : k, d->tokens[(bits >> 10) % d->count]);
    }
}

iron_status iron__data_own(iron__op_problem *p, const char *name, iron_error *err) {
    size_t rows = (size_t)p->c.rows;

    p->input_count = 1;
    IRON_TRY(iron__data_take(&p->inputs[0], name, rows * iron__element_bytes(p->c.element), err));
    if (p->c.data)
        iron__data_pieces(p->pool, rows, copy_own, p);
    return IRON_OK;
}

typedef struct searching {
    const iron__op_problem *problem;
    const void *output;
    iron__data_differs differs;
    _Atomic uint64_t first; /* the lowest index found so far */
} searching;

static void search_piece(void *context, size_t begin, size_t end) {
    searching *s = context;

    for (size_t k = begin; k < end && k < atomic_load_explicit(&s->first, memory_order_relaxed);
         k++)
        if (s->differs(s->problem, s->output, k)) {
            iron__lower(&s->first, k);
            return;
        }
}

size_t iron__data_first(const iron__op_problem *problem, const void *output, size_t count,
                        iron__data_differs differs) {
    searching s = {problem, output, differs, count};

    iron__data_pieces(problem->pool, count, search_piece, &s);
    return (size_t)s.first;
}

static uint32_t expected_word(const iron__op_problem *p, size_t index) {
    const iron__op *op = p->c.op;

    return op->expected ? op->expected(p, index) : ((const uint32_t *)p->reference.data)[index];
}

static bool word_differs(const iron__op_problem *problem, const void *output, size_t index) {
    return ((const uint32_t *)output)[index] != expected_word(problem, index);
}

size_t iron__data_first_word(const iron__op_problem *problem, const void *output, size_t count) {
    return iron__data_first(problem, output, count, word_differs);
}

bool iron__line_check(const iron__op_problem *problem, const void *output, char *text,
                      size_t size) {
    const char *name = problem->c.op->output;
    size_t count = (size_t)problem->c.rows;
    size_t first = iron__data_first_word(problem, output, count);
    union {
        uint32_t word;
        float value;
    } is, should_be;

    if (first == count)
        return true;
    is.word = ((const uint32_t *)output)[first];
    should_be.word = expected_word(problem, first);
    if (problem->c.element == IRON_F32)
        snprintf(text, size, "%s[%zu] is %.9g, should be %.9g", name, first, (double)is.value,
                 (double)should_be.value);
    else
        snprintf(text, size, "%s[%zu] is %" PRIu32 ", should be %" PRIu32, name, first, is.word,
                 should_be.word);
    return false;
}
