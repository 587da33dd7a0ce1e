/* SPDX-License-Identifier: MIT */
/*
 * transpose_problem.c: the data of the op transpose, and its judge.
 *
 * A's elements are a function of their index alone and look random, with all the digits that the
 * type has: an element that is moved to another's place is the same by chance once in 2^23 times
 * (f32), and then nothing is wrong. So the judge compares bit by bit, and an answer that is
 * shifted, permuted, not transposed at all, or left over from another seed differs nearly
 * everywhere.
 *
 * There is no reference: A is. Both matrices are read along their rows only, a tile at a time that
 * is turned in between; a walk down the columns of a GiB would take minutes.
 */
#include "ops/data.h"
#include "ops/transpose/transpose.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define STREAM_A 1
/* A tile's side: 32 KiB of doubles, on the stacks of the team. */
#define SIDE ((size_t)64)

iron_status iron__transpose_make(iron__problem *out, iron__team *team, iron_error *err) {
    size_t bytes = (size_t)out->c.rows * (size_t)out->c.cols * iron__element_bytes(out->c.element);
    iron_status status;

    *out = (iron__problem){.c = out->c, .team = team, .input_count = 1, .output_bytes = bytes};
    status = iron__data_take(&out->inputs[0], "A", bytes, err);
    if (status == IRON_OK)
        iron__data_fill_reals(&out->inputs[0], &out->c, STREAM_A, team);
    else
        iron__transpose_unmake(out);
    return status;
}

void iron__transpose_unmake(iron__problem *problem) {
    iron__data_release(problem);
    *problem = (iron__problem){.c = problem->c};
}

typedef struct comparison {
    const char *a, *b;
    size_t rows, cols;    /* of A */
    size_t element;       /* bytes */
    size_t across;        /* tiles side by side */
    _Atomic size_t first; /* index in B of the first difference found so far */
} comparison;

typedef struct place {
    size_t row, col, height, width; /* in A */
} place;

static size_t at_most(size_t value, size_t most) { return value < most ? value : most; }

/* The tile of A, turned; a line of it has SIDE elements. */
static void turn_f32(const comparison *c, place p, float *tile) {
    const float *a = (const float *)(const void *)c->a + p.row * c->cols + p.col;

    for (size_t i = 0; i < p.height; i++)
        for (size_t j = 0; j < p.width; j++)
            tile[j * SIDE + i] = a[i * c->cols + j];
}

static void turn_f64(const comparison *c, place p, double *tile) {
    const double *a = (const double *)(const void *)c->a + p.row * c->cols + p.col;

    for (size_t i = 0; i < p.height; i++)
        for (size_t j = 0; j < p.width; j++)
            tile[j * SIDE + i] = a[i * c->cols + j];
}

static void tell_lower(comparison *c, size_t index) {
    size_t first = atomic_load(&c->first);

    while (index < first && !atomic_compare_exchange_weak(&c->first, &first, index)) {
    }
}

/* Lines in order, and elements in order: the first difference is the tile's first. */
static void compare_tile(void *context, size_t index) {
    comparison *c = context;
    place p = {.row = index / c->across * SIDE, .col = index % c->across * SIDE};
    union {
        float f32[SIDE * SIDE];
        double f64[SIDE * SIDE];
        char bytes[1];
    } tile;

    if (p.col * c->rows + p.row > atomic_load(&c->first))
        return;
    p.height = at_most(c->rows - p.row, SIDE);
    p.width = at_most(c->cols - p.col, SIDE);
    if (c->element == sizeof(float))
        turn_f32(c, p, tile.f32);
    else
        turn_f64(c, p, tile.f64);
    for (size_t j = 0; j < p.width; j++) {
        size_t line = (p.col + j) * c->rows + p.row, i = 0;
        const char *is = c->b + line * c->element, *should = tile.bytes + j * SIDE * c->element;

        if (memcmp(is, should, p.height * c->element) == 0)
            continue;
        while (memcmp(is + i * c->element, should + i * c->element, c->element) == 0)
            i++;
        tell_lower(c, line + i);
        return;
    }
}

static double element_at(const char *array, size_t element, size_t index) {
    if (element == sizeof(float))
        return (double)((const float *)(const void *)array)[index];
    return ((const double *)(const void *)array)[index];
}

bool iron__transpose_check(const iron__problem *problem, const void *output, char *text,
                           size_t size) {
    size_t rows = (size_t)problem->c.rows, cols = (size_t)problem->c.cols;
    comparison c = {.a = problem->inputs[0].data,
                    .b = output,
                    .rows = rows,
                    .cols = cols,
                    .element = iron__element_bytes(problem->c.element),
                    .across = (cols + SIDE - 1) / SIDE,
                    .first = rows * cols};
    int digits = c.element == sizeof(float) ? 9 : 17;
    size_t at;

    iron__team_run(problem->team, compare_tile, &c, c.across * ((rows + SIDE - 1) / SIDE));
    at = c.first;
    if (at == rows * cols)
        return true;
    snprintf(text, size, "B[%zu][%zu] is %.*g, should be %.*g", at / rows, at % rows, digits,
             element_at(c.b, c.element, at), digits,
             element_at(c.a, c.element, at % rows * cols + at / rows));
    return false;
}
