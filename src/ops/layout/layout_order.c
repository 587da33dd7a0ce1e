/* SPDX-License-Identifier: MIT */
/*
 * layout_order.c: particles from one layout into another, on all threads: the copies that CPU rows
 * work on, and the answers of all rows on their way to the judge.
 */
#include "ops/data.h"
#include "ops/layout/layout.h"

#include <string.h>

iron__layout_spot iron__layout_spot_of(size_t particle, size_t count) {
    size_t first = particle / LAYOUT_BLOCK * LAYOUT_BLOCK, left = count - first;

    return (iron__layout_spot){.at = first * LAYOUT_FIELDS + particle % LAYOUT_BLOCK,
                               .pitch = left < LAYOUT_BLOCK ? left : LAYOUT_BLOCK};
}

/* Particles as numbers, in the op's order and in another. */
typedef struct moving {
    const float *from;
    float *to;
    size_t count;
} moving;

static void piece_to_soa(void *context, size_t begin, size_t end) {
    const moving *m = context;

    for (size_t k = begin; k < end; k++)
        for (size_t f = 0; f < LAYOUT_FIELDS; f++)
            m->to[f * m->count + k] = m->from[k * LAYOUT_FIELDS + f];
}

static void piece_to_aosoa(void *context, size_t begin, size_t end) {
    const moving *m = context;

    for (size_t k = begin; k < end; k++) {
        iron__layout_spot s = iron__layout_spot_of(k, m->count);

        for (size_t f = 0; f < LAYOUT_FIELDS; f++)
            m->to[s.at + f * s.pitch] = m->from[k * LAYOUT_FIELDS + f];
    }
}

static void piece_from_soa(void *context, size_t begin, size_t end) {
    const moving *m = context;

    for (size_t k = begin; k < end; k++)
        for (size_t f = 0; f < LAYOUT_FIELDS; f++)
            m->to[k * LAYOUT_FIELDS + f] = m->from[f * m->count + k];
}

static void piece_from_aosoa(void *context, size_t begin, size_t end) {
    const moving *m = context;

    for (size_t k = begin; k < end; k++) {
        iron__layout_spot s = iron__layout_spot_of(k, m->count);

        for (size_t f = 0; f < LAYOUT_FIELDS; f++)
            m->to[k * LAYOUT_FIELDS + f] = m->from[s.at + f * s.pitch];
    }
}

static void piece_of_one(void *context, size_t begin, size_t end) {
    const moving *m = context;

    memcpy(m->to + begin, m->from + begin, (end - begin) * sizeof(float));
}

void iron__layout_to_soa(iron__team *team, const layout_particle *from, float *to, size_t count) {
    moving m = {(const float *)from, to, count};

    iron__data_pieces(team, count, piece_to_soa, &m);
}

void iron__layout_to_aosoa(iron__team *team, const layout_particle *from, float *to, size_t count) {
    moving m = {(const float *)from, to, count};

    iron__data_pieces(team, count, piece_to_aosoa, &m);
}

/* One field comes out in the order of particles, whatever the layout. */
static void unpack(const iron__problem *problem, const void *from, void *to,
                   iron__data_piece of_all) {
    moving m = {from, to, (size_t)problem->c.rows};

    iron__data_pieces(problem->team, m.count,
                      iron__layout_is_one(&problem->c) ? piece_of_one : of_all, &m);
}

void iron__layout_from_soa(const iron__problem *problem, const void *own_order, void *output) {
    unpack(problem, own_order, output, piece_from_soa);
}

void iron__layout_from_aosoa(const iron__problem *problem, const void *own_order, void *output) {
    unpack(problem, own_order, output, piece_from_aosoa);
}
