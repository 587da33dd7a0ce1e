/* SPDX-License-Identifier: MIT */
/*
 * layout_problem.c: the data of the op layout, and its judge.
 *
 * Six numbers a particle that look random, all of them a function of their own index: a particle
 * that stands in another's place, a field in another field's, or an answer that was not computed at
 * all differs in nearly every element. The step rounds once an operation and fuses nothing: there
 * is one right answer, to the bit. The judge computes it again from the inputs, particle by
 * particle, in its own words.
 */
#include "ops/data.h"
#include "ops/layout/layout.h"

#include <stdio.h>
#include <string.h>

#define STREAM_PARTICLES 1

_Static_assert(sizeof(layout_particle) == LAYOUT_FIELDS * sizeof(float), "no gaps");

iron_status iron__layout_make_problem(iron__problem *out, iron__team *team, iron_error *err) {
    size_t count = (size_t)out->c.rows;
    iron_status status;

    *out = (iron__problem){.c = out->c, .team = team, .input_count = 1};
    out->output_bytes =
        count * (iron__layout_is_one(&out->c) ? sizeof(float) : sizeof(layout_particle));
    status = iron__data_take(&out->inputs[0], "particles", count * sizeof(layout_particle), err);
    if (status == IRON_OK)
        iron__data_fill_reals(&out->inputs[0], &out->c, STREAM_PARTICLES, team);
    else
        iron__layout_unmake_problem(out);
    return status;
}

void iron__layout_unmake_problem(iron__problem *problem) {
    iron__data_release(problem);
    *problem = (iron__problem){.c = problem->c};
}

typedef struct comparison {
    const float *from, *is;
    bool is_one;
} comparison;

/* What should be there of particle `index`: its fields one after the other, or its x; the rest is
 * 0. How many there are. */
static size_t compute(const comparison *c, size_t index, float should_be[LAYOUT_FIELDS]) {
    const float *p = c->from + index * LAYOUT_FIELDS;
    float speeds[3] = {p[3], p[4], p[5] - LAYOUT_FALL};

    memset(should_be, 0, LAYOUT_FIELDS * sizeof *should_be);
    if (c->is_one) {
        should_be[0] = p[0] + LAYOUT_SHIFT;
        return 1;
    }
    for (size_t k = 0; k < 3; k++) {
        float way = speeds[k] * LAYOUT_DT;

        should_be[k] = p[k] + way;
        should_be[3 + k] = speeds[k];
    }
    return LAYOUT_FIELDS;
}

static uint32_t bits_of(float value) {
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The first field that differs, bit by bit; `fields`: none does. */
static size_t first_field(const float *is, const float *should_be, size_t fields) {
    size_t k = 0;

    while (k < fields && bits_of(is[k]) == bits_of(should_be[k]))
        k++;
    return k;
}

static bool differs(const void *context, size_t index) {
    const comparison *c = context;
    float should_be[LAYOUT_FIELDS];
    size_t fields = compute(c, index, should_be);

    return first_field(c->is + index * fields, should_be, fields) < fields;
}

bool iron__layout_check(const iron__problem *problem, const void *output, char *text, size_t size) {
    static const char *const names[] = {"x", "y", "z", "vx", "vy", "vz"};
    comparison c = {problem->inputs[0].data, output, iron__layout_is_one(&problem->c)};
    size_t count = (size_t)problem->c.rows, fields, field;
    size_t first = iron__data_first(problem->team, count, differs, &c);
    float should_be[LAYOUT_FIELDS];
    const float *is;

    if (first == count)
        return true;
    fields = compute(&c, first, should_be);
    is = c.is + first * fields;
    field = first_field(is, should_be, fields);
    snprintf(text, size, "%s of particle %zu is %.9g, should be %.9g", names[field], first,
             (double)is[field], (double)should_be[field]);
    return false;
}
