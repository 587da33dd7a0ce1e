/* SPDX-License-Identifier: MIT */
/*
 * adaptive_apply.c: the op's function on the CPU, sixteen values at a time.
 *
 * A value's hundred turns are a chain in which every operation waits for the one before it. Four
 * vectors of four values are sixteen chains that have nothing to do with each other: while one
 * waits, others go on. The vectors are the compiler's own, so any instruction set will do.
 */
#include "ops/adaptive/adaptive.h"

#include <string.h>

typedef float lanes __attribute__((vector_size(16)));

static inline lanes turn(lanes v) {
    lanes w = v * v;
    lanes q = w * ADAPTIVE_C7 + ADAPTIVE_C5;

    q = q * w + ADAPTIVE_C3;
    q = q * w + 1.0f;
    return v * q;
}

static void apply_block(float *values) {
    lanes v[4];

    memcpy(v, values, sizeof v);
    for (int k = 0; k < ADAPTIVE_TURNS; k++) {
        v[0] = turn(v[0]);
        v[1] = turn(v[1]);
        v[2] = turn(v[2]);
        v[3] = turn(v[3]);
    }
    memcpy(values, v, sizeof v);
}

_Static_assert(4 * sizeof(lanes) == IRON_ADAPTIVE_BLOCK * sizeof(float), "a block is four vectors");

void iron__adaptive_apply(float *values, size_t count) {
    float last[IRON_ADAPTIVE_BLOCK] = {0};
    size_t whole = count / IRON_ADAPTIVE_BLOCK * IRON_ADAPTIVE_BLOCK;

    for (size_t k = 0; k < whole; k += IRON_ADAPTIVE_BLOCK)
        apply_block(values + k);
    if (whole == count)
        return;
    memcpy(last, values + whole, (count - whole) * sizeof(float));
    apply_block(last);
    memcpy(values + whole, last, (count - whole) * sizeof(float));
}

bool iron__adaptive_has_any(const float *values, size_t count) {
    bool has_any = false;

    for (size_t k = 0; k < count; k++)
        has_any |= values[k] != 0;
    return has_any;
}
