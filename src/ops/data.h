/* SPDX-License-Identifier: MIT */
/*
 * data.h: makes and releases the problems of ops: large arrays, pseudo-random numbers, loops over
 * long arrays on all threads, and the search for the first wrong element.
 *
 * Each number is a function of the seed, a stream (the op's number for one of its arrays) and the
 * element's index. So threads fill pieces in any order, and the data do not depend on the number of
 * threads. The thread that touches a page first decides on which memory node it lies.
 */
#ifndef IRON_OPS_DATA_H
#define IRON_OPS_DATA_H

#include "core/hash.h"
#include "ops/op.h"

/* Allocates a zeroed array. */
iron_status iron__data_take(iron__op_array *array, const char *name, size_t bytes, iron_error *err);

/* An op's `make`: clears *out except for its case, sets the pool and an output of one element for
 * each row and column, calls the op's `fill`, and releases everything with the op's `unmake` if
 * that fails. */
iron_status iron__data_make(iron__op_problem *out, iron__thread_pool *pool, iron_error *err);
/* An op's `unmake`: releases inputs (input_count of them, also those whose data is NULL), reference
 * and own, and clears all but the case. */
void iron__data_unmake(iron__op_problem *problem);

/* The base of a stream, and 64 random bits for an index. */
static inline uint64_t iron__data_base(uint64_t seed, uint64_t stream) {
    return iron__mix64(seed + stream * IRON_GOLDEN_GAMMA);
}

static inline uint64_t iron__data_bits(uint64_t base, uint64_t index) {
    return iron__mix64(base + (index + 1) * IRON_GOLDEN_GAMMA);
}

/* Between -1 and 1, both excluded, and never 0: an odd numerator over a power of two, with all the
 * bits that the type holds. */
static inline float iron__data_f32(uint64_t bits) {
    return (float)((int64_t)(bits >> 41 << 1 | 1) - (INT64_C(1) << 23)) * 0x1p-23f;
}

static inline double iron__data_f64(uint64_t bits) {
    return (double)((int64_t)(bits >> 12 << 1 | 1) - (INT64_C(1) << 52)) * 0x1p-52;
}

/* Uniform in 0 ... limit-1. */
static inline uint32_t iron__data_below(uint64_t bits, uint32_t limit) {
    return (uint32_t)(((bits >> 32) * limit) >> 32);
}

/* Adds an input of `count` elements: those that `word` makes of its index and of 64 random bits, or
 * random ones of the case's type if it is NULL. Input number n uses the stream n + 1. */
typedef uint32_t (*iron__data_word)(const iron__op_problem *problem, size_t index, uint64_t bits);
iron_status iron__data_input(iron__op_problem *p, const char *name, size_t count,
                             iron__data_word word, iron_error *err);

/* Adds an input of c.rows elements: those of c.data, or zeros if that is NULL. The variation of a
 * seed other than 0 begins anywhere in the data, and one token of 1024 is another one of the data:
 * answers differ, the distribution hardly. */
iron_status iron__data_own(iron__op_problem *p, const char *name, iron_error *err);

/* Sets element `index` of the first input, of the type u8, u16 or u32. */
static inline void iron__data_put(const iron__op_problem *p, size_t index, uint32_t token) {
    void *to = p->inputs[0].data;

    if (p->c.element == IRON_U8)
        ((uint8_t *)to)[index] = (uint8_t)token;
    else if (p->c.element == IRON_U16)
        ((uint16_t *)to)[index] = (uint16_t)token;
    else
        ((uint32_t *)to)[index] = token;
}

/* Calls piece(context, begin, end) for disjoint ranges that cover 0 ... count-1, on all threads. */
typedef void (*iron__data_piece)(void *context, size_t begin, size_t end);
void iron__data_pieces(iron__thread_pool *pool, size_t count, iron__data_piece piece,
                       void *context);
/* A contender's `cpu_run`: its cpu_piece for all elements, likewise. */
void iron__line_run(const iron__cpu_work *work);

/* The first index below count at which an output differs from what is right, or count. Runs on all
 * threads, so differs must only read. */
typedef bool (*iron__data_differs)(const iron__op_problem *problem, const void *output,
                                   size_t index);
size_t iron__data_first(const iron__op_problem *problem, const void *output, size_t count,
                        iron__data_differs differs);
/* The first 32-bit word at which the output differs from what is expected, or count: see
 * iron__op.expected. */
size_t iron__data_first_word(const iron__op_problem *problem, const void *output, size_t count);
/* An op's `check` for c.rows words of output, integers or floats as the element type says. It
 * compares bits: -0 is not 0, and NaN is never right. */
bool iron__line_check(const iron__op_problem *problem, const void *output, char *text, size_t size);

static inline uint32_t iron__data_word_of(float value) {
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Members of an op whose file calls its functions `fill` and `check`. */
#define IRON_DATA_OP                                                                               \
    .make = iron__data_make, .unmake = iron__data_unmake, .fill = fill, .check = check
/* What ops over a line of elements of one type share that race kernels; the table is called
 * `contenders`. */
#define IRON_LINE_OP(type, its_check)                                                              \
    .elements = IRON_BIT(type), .usual = (type), .is_line = true, .is_resident = true,             \
    .accept = iron__line_accept_case, .make = iron__data_make, .unmake = iron__data_unmake,        \
    .fill = fill, .check = (its_check), IRON_CONTENDERS(contenders)

#endif
