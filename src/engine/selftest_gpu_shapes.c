/* SPDX-License-Identifier: MIT */
/*
 * selftest_gpu_shapes.c: every mode of a device against the CPU's reference, on the shapes that
 * break kernels: lengths around a quad, a warp, a group and a slot; batches shorter and longer than
 * a group's turn, and longer than the stream; few and many nodes; vocabularies at their limits;
 * tokens of every width and value; lattices and activations of a user's own.
 *
 * Not the product of all that, which would take days: a list in which every value occurs, and then
 * random combinations that are the same in every run.
 */
#include "core/mix.h"
#include "engine/selftest_gpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define RANDOM_QUICK 10u
#define RANDOM_GPU   60u
#define RANDOM_OTHER 30u
/* Of a random shape. However short, a batch costs the modes that take one at a time four launches,
 * and those with a group a node a group's threads. */
#define RANDOM_BATCHES    400u
#define RANDOM_PAIRS      (UINT64_C(1) << 21)
#define RANDOM_TOKENS_MAX 200000u
#define RANDOM_QUICK_MAX  5000u
#define GROUP_THREADS     256u

typedef enum shape_kind { KIND_IN_VOCAB, KIND_ANY, KIND_ONES, KINDS } shape_kind;
typedef enum shape_lattice { LATTICE_DEFAULT, LATTICE_TWO, LATTICE_MANY, LATTICES } shape_lattice;

typedef struct shape {
    size_t tokens;
    uint64_t nodes, batch, vocab;
    iron_positions positions;
    shape_kind kind;
    iron_dtype dtype;
    shape_lattice lattice;
    bool has_activations;
    size_t first; /* of the first feed */
    size_t lead;  /* tokens by which the memory is off a multiple of 64 bytes */
} shape;

#define STREAM IRON_POSITIONS_STREAM
#define BATCH  IRON_POSITIONS_BATCH
#define U8     IRON_DTYPE_U8
#define U16    IRON_DTYPE_U16
#define U32    IRON_DTYPE_U32
#define I32    IRON_DTYPE_I32
#define I64    IRON_DTYPE_I64

#define VOCAB_MAX  UINT64_C(2147483648)
#define BATCH_HUGE (UINT64_C(1) << 40)
#define BATCH_2_31 (UINT64_C(1) << 31)

/* Small ones first: a quick test ends where the tokens pass QUICK_TOKENS. */
#define QUICK_TOKENS 4097u

static const shape shapes[] = {
    {1, 1, 1, 2, STREAM, KIND_IN_VOCAB, U8, LATTICE_DEFAULT, false, 0, 0},
    {3, 31, 7, 3, BATCH, KIND_ANY, U16, LATTICE_TWO, true, 1, 1},
    {4, 4096, 4096, 50257, STREAM, KIND_ONES, U32, LATTICE_MANY, false, 2, 0},
    {5, 31, 1, 65536, BATCH, KIND_IN_VOCAB, I32, LATTICE_DEFAULT, true, 4, 3},
    {15, 1, 7, 128256, STREAM, KIND_ANY, I64, LATTICE_TWO, false, 6, 1},
    {16, 31, 16384, 2147483647, BATCH, KIND_ANY, U32, LATTICE_MANY, true, 0, 2},
    {5, 100003, 7, VOCAB_MAX, STREAM, KIND_ANY, U32, LATTICE_DEFAULT, false, 2, 0},
    {5, 1048576, 8, 50257, BATCH, KIND_ANY, U32, LATTICE_TWO, false, 3, 1}, /* all there can be */
    {17, 4096, 20000, 50257, BATCH, KIND_IN_VOCAB, I64, LATTICE_TWO, true, 16, 0},
    {255, 31, 1, 50257, BATCH, KIND_IN_VOCAB, U16, LATTICE_TWO, true, 100, 3},
    {255, 31, 786432, 3, STREAM, KIND_ONES, U8, LATTICE_MANY, false, 254, 2},
    {255, 1, BATCH_HUGE, 2, BATCH, KIND_ANY, U32, LATTICE_DEFAULT, true, 77, 1},
    {4097, 31, 7, 128256, STREAM, KIND_ANY, U32, LATTICE_MANY, false, 2048, 2},
    {4097, 4096, 4096, VOCAB_MAX, STREAM, KIND_ONES, I64, LATTICE_DEFAULT, true, 4095, 1},
    {4097, 31, BATCH_2_31, VOCAB_MAX, BATCH, KIND_ANY, U32, LATTICE_TWO, true, 1, 0},
    {4097, 1, 4096, 65536, BATCH, KIND_ANY, I32, LATTICE_MANY, false, 1365, 3},
    {65537, 31, 16384, 50257, STREAM, KIND_ANY, U32, LATTICE_DEFAULT, false, 16383, 1},
    {65537, 31, 20000, 65536, BATCH, KIND_IN_VOCAB, U16, LATTICE_MANY, true, 30000, 0},
    {65537, 1, 4096, 3, BATCH, KIND_ANY, U8, LATTICE_TWO, false, 21845, 3},
    {65537, 31, 786432, 128256, STREAM, KIND_ANY, I64, LATTICE_DEFAULT, true, 65536, 0},
    {999983, 1, 786432, 2147483647, STREAM, KIND_ANY, U32, LATTICE_DEFAULT, true, 333327, 3},
    {999983, 31, 20000, 128256, BATCH, KIND_ONES, U32, LATTICE_MANY, false, 500000, 2},
    {999983, 1, BATCH_HUGE, 50257, STREAM, KIND_IN_VOCAB, I64, LATTICE_TWO, true, 1, 0},
    {999983, 1, 16384, 2, BATCH, KIND_ANY, I32, LATTICE_DEFAULT, false, 999982, 1},
    {999983, 4096, 786432, 50257, STREAM, KIND_IN_VOCAB, U32, LATTICE_DEFAULT, false, 333327, 0},
};

static const size_t token_counts[] = {1, 3, 4, 5, 15, 16, 17, 255, 4097, 65537, 131072};
static const uint64_t node_counts[] = {1, 2, 31, 32, 33, 256, 257, 1000, 4096};
static const uint64_t batches[] = {1,     7,     64,    1000,   4096,      16383,
                                   16384, 16385, 20000, 786432, BATCH_2_31};
static const uint64_t vocabs[] = {2,     3,     7,      50257,      65535,
                                  65536, 65537, 128256, 2147483647, VOCAB_MAX};
static const iron_dtype dtypes[] = {U8, U16, U32, I32, I64};

/* Numbers that look random and are the same in every run. */
static uint64_t roll(uint64_t *state, uint64_t limit) {
    *state += IRON_GOLDEN_GAMMA;
    return iron__mix64(*state) % limit;
}

#define PICK(state, array) ((array)[roll((state), COUNT(array))])

static shape random_shape(uint64_t seed, bool is_quick) {
    uint64_t most = is_quick ? RANDOM_QUICK_MAX : RANDOM_TOKENS_MAX;
    uint64_t state = iron__mix64(seed), batches_most;
    shape s = {.nodes = PICK(&state, node_counts),
               .batch = PICK(&state, batches),
               .vocab = PICK(&state, vocabs),
               .positions = roll(&state, 2) ? STREAM : BATCH,
               .kind = (shape_kind)roll(&state, KINDS),
               .dtype = PICK(&state, dtypes),
               .lattice = (shape_lattice)roll(&state, LATTICES),
               .has_activations = roll(&state, 2) != 0,
               .lead = (size_t)roll(&state, 4)};

    batches_most = 1 + RANDOM_PAIRS / GROUP_THREADS / s.nodes;
    if (batches_most > RANDOM_BATCHES)
        batches_most = RANDOM_BATCHES;
    if (most > s.batch * batches_most)
        most = s.batch * batches_most;
    if (most > RANDOM_PAIRS / s.nodes)
        most = RANDOM_PAIRS / s.nodes;
    s.tokens = roll(&state, 2) ? PICK(&state, token_counts) : 1 + (size_t)roll(&state, most);
    s.tokens = s.tokens < most ? s.tokens : (size_t)most;
    s.first = (size_t)roll(&state, s.tokens + 1);
    return s;
}

static uint64_t largest_of(iron_dtype dtype) {
    switch (dtype) {
    case U8:
        return UINT8_MAX;
    case U16:
        return UINT16_MAX;
    case I32:
        return INT32_MAX;
    default: /* tokens have 32 bits, whatever holds them */
        return UINT32_MAX;
    }
}

static void store(void *tokens, iron_dtype dtype, size_t index, uint32_t value) {
    switch (dtype) {
    case U8:
        ((uint8_t *)tokens)[index] = (uint8_t)value;
        return;
    case U16:
        ((uint16_t *)tokens)[index] = (uint16_t)value;
        return;
    case I64:
        ((int64_t *)tokens)[index] = value;
        return;
    default:
        ((uint32_t *)tokens)[index] = value;
    }
}

static void fill_tokens(void *tokens, const shape *s) {
    uint64_t largest = largest_of(s->dtype), limit = largest + 1;

    if (s->kind == KIND_IN_VOCAB && s->vocab < limit)
        limit = s->vocab;
    for (size_t k = 0; k < s->tokens; k++)
        store(tokens, s->dtype, k,
              (uint32_t)(s->kind == KIND_ONES
                             ? largest
                             : iron__mix64(s->vocab + (k + 1) * IRON_GOLDEN_GAMMA) % limit));
}

/* Negative, zero, huge, as small as they may be, and such that products fall between points. */
static void fill_activations(float *activations, uint64_t nodes) {
    static const float values[] = {-1.0f, 0.0f,      3e38f,     -3e38f,   0x1p-96f,
                                   0.5f,  -65535.5f, 7.000001f, 1e-6f,    -1e-6f,
                                   1.0f,  -0x1p-96f, 511.25f,   -0.3333f, 1e9f};

    for (uint64_t j = 0; j < nodes; j++)
        activations[j] = values[j % COUNT(values)];
}

/* 64 points up to 65,535, at growing distances. */
static void fill_lattice(uint32_t points[64]) {
    for (uint32_t k = 0; k < 63; k++)
        points[k] = 1 + k + 16 * k * k;
    points[63] = 65535;
}

static void describe(const shape *s, char *text, size_t size) {
    static const char *const kinds[] = {"in vocabulary", "of all values", "all ones"};

    snprintf(text, size,
             "%zu %s tokens %s, batch %" PRIu64 ", nodes %" PRIu64 ", vocab %" PRIu64
             ", positions %s, lattice %d, activations %d",
             s->tokens, iron_dtype_name(s->dtype), kinds[s->kind], s->batch, s->nodes, s->vocab,
             s->positions == STREAM ? "stream" : "batch", (int)s->lattice, s->has_activations);
}

static iron__selftest_stream stream_of(const shape *s, const uint32_t *many, const float *own,
                                       const unsigned char *tokens) {
    static const uint32_t two[] = {1, 2};
    iron__selftest_stream stream = {.config = iron__selftest_config(&(iron__selftest_place){0}),
                                    .dtype = s->dtype,
                                    .tokens = tokens + s->lead * iron_dtype_bytes(s->dtype),
                                    .count = s->tokens,
                                    .first = s->first};
    iron_config *c = &stream.config;

    c->nodes = s->nodes;
    c->vocab = s->vocab;
    c->batch = s->batch;
    c->positions = s->positions;
    c->activations = s->has_activations ? own : NULL;
    if (s->lattice != LATTICE_DEFAULT) {
        c->lattice = s->lattice == LATTICE_TWO ? two : many;
        c->lattice_count = s->lattice == LATTICE_TWO ? 2 : 64;
    }
    return stream;
}

/* One shape in every mode; the reference is computed once. */
static void test_shape(iron__selftest_device *d, const shape *s) {
    uint64_t *room = malloc((s->tokens + s->lead) * sizeof *room); /* for the widest tokens */
    unsigned char *tokens = (unsigned char *)room;
    float *activations = malloc((size_t)s->nodes * sizeof *activations);
    iron__selftest_stream stream;
    iron_engine *want = NULL;
    uint32_t many[64];
    char what[180];
    iron_error err = iron__selftest_no_memory;

    if (tokens && activations) {
        fill_lattice(many);
        fill_activations(activations, s->nodes);
        fill_tokens(tokens + s->lead * iron_dtype_bytes(s->dtype), s);
        describe(s, what, sizeof what);
        stream = stream_of(s, many, activations, tokens);
        (void)iron__selftest_reference(&stream, &want, &err);
    }
    if (!want)
        iron__selftest_fail(d->test, &err);
    for (size_t r = 0; want && iron__tokens_gpu_row_at(r); r++)
        iron__selftest_compare(d, iron__tokens_gpu_row_at(r), NULL, what, &stream, want);
    iron_engine_destroy(want);
    free(activations);
    free(tokens);
}

void iron__selftest_gpu_shapes(iron__selftest_device *d) {
    bool is_quick = d->test->is_quick;
    uint64_t rolls = is_quick ? RANDOM_QUICK : d->device->info.is_gpu ? RANDOM_GPU : RANDOM_OTHER;

    for (size_t k = 0; k < COUNT(shapes) && !d->is_lost; k++)
        if (!is_quick || shapes[k].tokens <= QUICK_TOKENS)
            test_shape(d, &shapes[k]);
    for (uint64_t k = 0; k < rolls && !d->is_lost; k++) {
        shape s = random_shape(k, is_quick);

        test_shape(d, &s);
    }
}
