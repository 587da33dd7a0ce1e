/* SPDX-License-Identifier: MIT */
/*
 * test_nodes.c: applying many batches at once gives the same bits as one batch at a time; the state
 * hash.
 *
 * One batch on one node is checked against the two lines of the definition, written out here. Then
 * iron__nodes_apply is compared with one batch after the other, bit for bit: node counts on both
 * sides of the threshold for step functions, activations of every sign and size in random order,
 * potentials that start at 0, just below 2^24 and far beyond (where additions round and order
 * matters), lattices whose last point is large enough to cross 2^24 within one call, batch
 * potentials that are 0, -0, huge and denormal, any grouping of the batches.
 *
 * The fast state hash is compared with FNV-1a byte by byte: values with zeros in any bytes and in
 * none, changing within a block and between states, on both sides of a block's end, one to four
 * states.
 */
#include "core/hash.h"
#include "core/nodes.h"
#include "support.h"

#include <float.h>
#include <math.h>

_Static_assert(sizeof(*((iron__nodes *)0)->xor_accumulators) == 4, "accumulators have 32 bits");
_Static_assert(sizeof(*((iron__nodes *)0)->potentials) == 4, "potentials are floats");
_Static_assert(sizeof(*iron_engine_xor_accumulators((iron_engine *)0)) == 4, "in the API too");
_Static_assert(sizeof(((iron_batch_effect *)0)->xors) == 4, "a batch's XOR has 32 bits");

#define EFFECTS_MAX 400u

typedef enum activation_kind {
    ACT_DEFAULT,
    ACT_SIGNED,
    ACT_EXTREME,
    ACT_EQUAL,
    ACT_ZERO,
    ACT_NEGATIVE,
    ACT_KINDS
} activation_kind;

typedef enum start_kind {
    START_ZERO,
    START_NEAR,
    START_BEYOND,
    START_MIXED,
    START_KINDS
} start_kind;

static const uint32_t steep[] = {1, 5, 900, 65535};
static const uint32_t pair[] = {1, 2};
static const uint32_t top[] = {65534, 65535};

static iron_lattice *make_lattice(const uint32_t *points, uint32_t count) {
    iron_lattice *l = NULL;
    iron_error err;

    assert_ok(iron_lattice_create(points, count, &l, &err), &err);
    return l;
}

static float extreme_activation(rng *r) {
    static const float values[] = {0.0f,  -0.0f,   0x1p-96f, -0x1p-96f, 1e-20f, -1e-20f, 1.0f,
                                   -1.0f, FLT_MAX, -FLT_MAX, 1e20f,     -1e20f, 0.5f,    3.25f};

    return values[rng_below(r, COUNT(values))];
}

static float random_activation(activation_kind kind, rng *r) {
    float unit = (float)rng_below(r, 1 << 24) / (float)(1 << 24);

    switch (kind) {
    case ACT_SIGNED:
        return 2 * unit - 1;
    case ACT_EXTREME:
        return rng_below(r, 3) ? extreme_activation(r) : 200 * unit - 100;
    case ACT_EQUAL:
        return 0.75f;
    case ACT_NEGATIVE:
        return -unit - 0.001f;
    default:
        return 0;
    }
}

static float *make_activations(activation_kind kind, uint32_t count, rng *r) {
    float *a = grab(count * sizeof *a);

    for (uint32_t j = 0; j < count; j++)
        a[j] = random_activation(kind, r);
    assert_int_equal(iron__activations_check(a, count, NULL), IRON_OK);
    return a;
}

/* Whole numbers that floats represent exactly: all below 2^24, only some beyond. */
static float random_start(start_kind kind, rng *r) {
    float sign = rng_below(r, 2) ? 1.0f : -1.0f;

    if (kind == START_MIXED)
        kind = (start_kind)rng_below(r, START_MIXED);
    if (kind == START_NEAR)
        return sign * (float)((1 << 24) - 1 - (int)rng_below(r, 70000));
    if (kind == START_BEYOND)
        return sign * (float)((1 << 24) + 2 * (int)rng_below(r, 1 << 24));
    return 0;
}

static float random_potential(rng *r) {
    static const float odd[] = {0.0f,    -0.0f,        1e30f,   -1e30f, FLT_MAX, -FLT_MAX,
                                FLT_MIN, FLT_TRUE_MIN, -1e-42f, 1.0f,   -1.0f,   0x1p40f};
    double spread = ldexp(1, (int)rng_below(r, 24));

    if (rng_below(r, 8) == 0)
        return odd[rng_below(r, COUNT(odd))];
    return (float)(((double)rng_u32(r) / 0x1p31 - 1) * spread);
}

static void random_effects(iron_batch_effect *effects, size_t count, rng *r) {
    for (size_t k = 0; k < count; k++) {
        effects[k].xors = rng_u32(r) >> rng_below(r, 33 - 1);
        effects[k].potential = random_potential(r);
    }
}

static void make_nodes(iron__nodes *n, uint32_t count, const iron_lattice *l, const float *a) {
    iron_error err;

    assert_ok(iron__nodes_init(n, count, l, a, iron__allocator_default(), &err), &err);
}

static void copy_state(iron__nodes *to, const iron__nodes *from) {
    memcpy(to->xor_accumulators, from->xor_accumulators, from->count * sizeof(uint32_t));
    memcpy(to->potentials, from->potentials, from->count * sizeof(float));
}

static void assert_same_bits(const iron__nodes *a, const iron__nodes *b, const char *what) {
    for (uint32_t j = 0; j < a->count; j++) {
        if (a->xor_accumulators[j] != b->xor_accumulators[j])
            fail_msg("%s: %u nodes, node %u: %u for %u", what, a->count, j, b->xor_accumulators[j],
                     a->xor_accumulators[j]);
        if (memcmp(&a->potentials[j], &b->potentials[j], sizeof(float)) != 0)
            fail_msg("%s: %u nodes, node %u (activation %g): %.9g for %.9g", what, a->count, j,
                     (double)a->activations[j], (double)b->potentials[j], (double)a->potentials[j]);
    }
    assert_int_equal(iron__nodes_hash(a), iron__nodes_hash(b));
}

/* Three threads: ranges that do not divide the nodes evenly. */
static iron__thread_pool *pool;

static int start_team(void **state) {
    (void)state;
    return iron__thread_pool_create(3, iron__allocator_default(), &pool, NULL) == IRON_OK ? 0 : 1;
}

static int stop_team(void **state) {
    (void)state;
    iron__thread_pool_destroy(pool);
    return 0;
}

static void apply_in_groups(iron__nodes *n, const iron_batch_effect *effects, size_t count,
                            rng *r) {
    for (size_t done = 0; done < count;) {
        size_t group = (size_t)rng_below(r, 40) * (size_t)rng_below(r, 4);

        if (group > count - done)
            group = count - done;
        iron__nodes_apply(n, effects + done, group, done % 3 ? NULL : pool);
        done += group;
    }
}

/* One lattice, one set of activations, one start: at once and in groups against one by one. */
static void check_many(uint32_t count, const iron_lattice *l, activation_kind kind,
                       start_kind start, size_t batches, rng *r) {
    static iron_batch_effect effects[EFFECTS_MAX];
    float *a = kind == ACT_DEFAULT ? NULL : make_activations(kind, count, r);
    iron__nodes one, all, groups;

    make_nodes(&one, count, l, a);
    make_nodes(&all, count, l, a);
    make_nodes(&groups, count, l, a);
    for (uint32_t j = 0; j < count; j++)
        one.potentials[j] = random_start(start, r);
    copy_state(&all, &one);
    copy_state(&groups, &one);
    for (int round = 0; round < 2; round++) { /* twice: no scratch may be left dirty */
        random_effects(effects, batches, r);
        for (size_t k = 0; k < batches; k++)
            iron__nodes_apply_one(&one, effects[k]);
        iron__nodes_apply(&all, effects, batches, NULL);
        apply_in_groups(&groups, effects, batches, r);
        assert_same_bits(&one, &all, "at once");
        assert_same_bits(&one, &groups, "in groups");
    }
    iron__nodes_deinit(&one);
    iron__nodes_deinit(&all);
    iron__nodes_deinit(&groups);
    free(a);
}

static void check_lattice(const uint32_t *points, uint32_t points_count) {
    static const uint32_t counts[] = {1, 2, 127, 128, 129, 500};
    iron_lattice *l = make_lattice(points, points_count);
    rng r = {41 + points_count};

    for (size_t c = 0; c < COUNT(counts); c++)
        for (activation_kind kind = 0; kind < ACT_KINDS; kind++)
            for (start_kind start = 0; start < START_KINDS; start++)
                check_many(counts[c], l, kind, start, 1 + (size_t)rng_below(&r, 60), &r);
    for (activation_kind kind = 0; kind < ACT_KINDS; kind++)
        check_many(4096, l, kind, (start_kind)rng_below(&r, START_KINDS), 30, &r);
    check_many(200, l, ACT_SIGNED, START_ZERO, EFFECTS_MAX, &r);
    check_many(200, l, ACT_EXTREME, START_NEAR, EFFECTS_MAX, &r);
    iron_lattice_destroy(l);
}

static void default_lattice(void **state) {
    (void)state;
    check_lattice(NULL, 0);
}

/* 257 batches of 65,535 pass 2^24 within one call: the library must detect that beforehand. */
static void steep_lattice(void **state) {
    (void)state;
    check_lattice(steep, COUNT(steep));
}

static void tiny_and_high_lattices(void **state) {
    (void)state;
    check_lattice(pair, COUNT(pair));
    check_lattice(top, COUNT(top));
}

static void full_lattice(void **state) {
    uint32_t points[IRON_LATTICE_MAX];

    (void)state;
    for (uint32_t k = 0; k < IRON_LATTICE_MAX; k++)
        points[k] = 5 + 13 * k + k * k / 3;
    check_lattice(points, IRON_LATTICE_MAX);
}

/* All in one direction, exactly up to the limit, one short of it and one past it. */
static void exactness_ends_at_the_limit(void **state) {
    static iron_batch_effect effects[EFFECTS_MAX];
    iron_lattice *l = make_lattice(steep, COUNT(steep));
    iron__nodes one, all;

    (void)state;
    for (size_t k = 0; k < EFFECTS_MAX; k++)
        effects[k] = (iron_batch_effect){(uint32_t)k, k % 5 == 4 ? 3.0f : 1e9f};
    for (size_t batches = 250; batches < 262; batches++) {
        make_nodes(&one, 300, l, NULL);
        make_nodes(&all, 300, l, NULL);
        for (size_t k = 0; k < batches; k++)
            iron__nodes_apply_one(&one, effects[k]);
        iron__nodes_apply(&all, effects, batches, pool);
        assert_same_bits(&one, &all, "at the limit");
        iron__nodes_deinit(&one);
        iron__nodes_deinit(&all);
    }
    iron_lattice_destroy(l);
}

/* The definition for one node, with the public quantizers and each operation rounded to float. */
static void one_batch_as_defined(void **state) {
    iron_lattice *l = make_lattice(NULL, 0);
    rng r = {43};
    float *a = make_activations(ACT_EXTREME, 64, &r);
    iron__nodes n;

    (void)state;
    make_nodes(&n, 64, l, a);
    for (int k = 0; k < 500; k++) {
        iron_batch_effect e = {rng_u32(&r), random_potential(&r)};
        uint32_t j = (uint32_t)rng_below(&r, 64);
        volatile float product = a[j] * e.potential;
        double c = isinf(product) ? copysign(1e6, (double)product) : (double)product;
        volatile float sum = n.potentials[j] + (float)iron_lattice_quantize_real(l, c);
        uint32_t x = iron_lattice_quantize_xor(l, n.xor_accumulators[j] ^ e.xors);

        iron__nodes_apply_to(&n, j, e);
        assert_int_equal(n.xor_accumulators[j], x);
        assert_true(n.potentials[j] == sum);
    }
    iron__nodes_deinit(&n);
    iron_lattice_destroy(l);
    free(a);
}

static void start_values(void **state) {
    iron_lattice *l = make_lattice(NULL, 0);
    const uint32_t *points = iron_lattice_points(l);
    iron__nodes n;

    (void)state;
    make_nodes(&n, 1000, l, NULL);
    for (uint32_t j = 0; j < 1000; j++) {
        assert_int_equal(n.xor_accumulators[j], points[j % 12]);
        assert_true(n.potentials[j] == 0 && !signbit(n.potentials[j]));
        assert_true(n.activations[j] == (float)(j + 1) / 1000.0f);
    }
    iron__nodes_apply(&n, NULL, 0, NULL);
    assert_int_equal(n.xor_accumulators[999], points[999 % 12]);
    iron__nodes_deinit(&n);
    iron__nodes_deinit(&n); /* nothing left to do */
    iron_lattice_destroy(l);
}

/* FNV-1a byte by byte over numbers taken apart by hand. */
static void state_hash_as_defined(void **state) {
    iron_lattice *l = make_lattice(steep, COUNT(steep));
    uint64_t hash = UINT64_C(14695981039346656037);
    iron__nodes n;

    (void)state;
    make_nodes(&n, 77, l, NULL);
    iron__nodes_apply_one(&n, (iron_batch_effect){0x1234567, -17.5f});
    for (uint32_t k = 0; k < 2 * 77; k++) {
        uint32_t word;

        if (k < 77)
            word = n.xor_accumulators[k];
        else
            memcpy(&word, &n.potentials[k - 77], sizeof word);
        for (int byte = 0; byte < 4; byte++) {
            hash ^= word >> (8 * byte) & 0xFF;
            hash *= UINT64_C(1099511628211);
        }
    }
    assert_int_equal(iron__nodes_hash(&n), hash);
    iron__nodes_deinit(&n);
    iron_lattice_destroy(l);
}

static void bad_activations_are_refused(void **state) {
    static const float bad[] = {NAN, INFINITY, -INFINITY, 0x1p-97f, -0x1p-97f, FLT_TRUE_MIN};
    static const float good[] = {0.0f, -0.0f, 0x1p-96f, -0x1p-96f, FLT_MAX, -FLT_MAX, 1.0f};
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++) {
        float a[4] = {1, 2, 3, bad[k]};

        assert_refused(iron__activations_check(a, 4, &err), IRON_E_ARG, &err);
        assert_says(&err, "activation 3");
        assert_int_equal(iron__activations_check(a, 4, NULL), IRON_E_ARG);
        assert_int_equal(iron__activations_check(a, 3, NULL), IRON_OK);
    }
    assert_ok(iron__activations_check(good, COUNT(good), &err), &err);
}

static void no_memory_is_reported(void **state) {
    iron_lattice *l = make_lattice(NULL, 0);
    ledger books = {0};
    iron_allocator allocator = ledger_allocator(&books);
    iron_status status = IRON_E_NOMEM;
    iron__nodes n;
    size_t failures = 0;

    (void)state;
    for (size_t at = 1; status != IRON_OK; at++) {
        iron_error err = {0};

        books = (ledger){.fail_at = at};
        status = iron__nodes_init(&n, 10, l, NULL, &allocator, &err);
        if (status == IRON_OK)
            break;
        assert_int_equal(status, IRON_E_NOMEM);
        assert_int_equal(err.status, IRON_E_NOMEM);
        assert_int_equal(books.out, 0);
        failures++;
    }
    assert_true(failures >= 3);
    iron__nodes_deinit(&n);
    assert_int_equal(books.out, 0);
    iron_lattice_destroy(l);
}

#define NODES_MAX 1000u

static uint32_t accumulators[IRON_NODES_HASH_MAX][NODES_MAX];
static float potentials[IRON_NODES_HASH_MAX][NODES_MAX];

/* Bytes that may be nonzero, for accumulators and potentials. */
static const uint32_t masks[] = {0,          0xFF,       0xFFFF,     0xFF00,     0xFF0000,
                                 0xFF000000, 0xFFFF0000, 0xFFFFFF00, 0x00FFFFFF, 0xFFFFFFFF};

static uint64_t plain_hash(size_t which, uint32_t nodes) {
    uint64_t hash = iron__fnv(IRON_FNV_START, accumulators[which], nodes * sizeof(uint32_t));

    return iron__fnv(hash, potentials[which], nodes * sizeof(float));
}

static void fill(rng *r, size_t which, uint32_t xor_mask, uint32_t potential_mask) {
    for (size_t k = 0; k < NODES_MAX; k++) {
        uint32_t bits = rng_u32(r) & potential_mask;

        accumulators[which][k] = rng_u32(r) & xor_mask;
        memcpy(&potentials[which][k], &bits, sizeof bits); /* any bits, also those of NaNs */
    }
}

static void check_states(size_t count, uint32_t nodes) {
    iron__hashed_nodes states[IRON_NODES_HASH_MAX];

    for (size_t l = 0; l < count; l++)
        states[l] = (iron__hashed_nodes){accumulators[l], potentials[l], 0};
    iron__nodes_hash_many(states, count, nodes);
    for (size_t l = 0; l < count; l++)
        assert_int_equal(states[l].hash, plain_hash(l, nodes));
}

static void check_all(uint32_t nodes) {
    iron__nodes alone = {
        .count = nodes, .xor_accumulators = accumulators[0], .potentials = potentials[0]};

    assert_int_equal(iron__nodes_hash(&alone), plain_hash(0, nodes));
    for (size_t count = 1; count <= IRON_NODES_HASH_MAX; count++)
        check_states(count, nodes);
}

static void zeros_anywhere(void **state) {
    rng r = {71};

    (void)state;
    for (size_t x = 0; x < COUNT(masks); x++)
        for (size_t p = 0; p < COUNT(masks); p++) {
            for (size_t l = 0; l < IRON_NODES_HASH_MAX; l++)
                fill(&r, l, masks[x], masks[p]);
            check_all(200);
        }
}

static void states_of_different_kinds(void **state) {
    rng r = {73};

    (void)state;
    for (size_t round = 0; round < 200; round++) {
        for (size_t l = 0; l < IRON_NODES_HASH_MAX; l++)
            fill(&r, l, masks[rng_below(&r, COUNT(masks))], masks[rng_below(&r, COUNT(masks))]);
        check_all(1 + (uint32_t)rng_below(&r, NODES_MAX));
    }
}

static void every_count(void **state) {
    rng r = {79};

    (void)state;
    for (size_t l = 0; l < IRON_NODES_HASH_MAX; l++)
        fill(&r, l, 0xFFFF, 0xFFFFFF00);
    for (uint32_t nodes = 0; nodes <= 200; nodes++)
        check_all(nodes);
}

/* A single different value must not be lost, at any position. */
static void one_that_differs(void **state) {
    rng r = {83};

    (void)state;
    fill(&r, 0, 0xFFFF, 0xFFFF0000);
    for (size_t l = 1; l < IRON_NODES_HASH_MAX; l++)
        fill(&r, l, 0xFFFF, 0xFFFF0000);
    for (size_t k = 0; k < 150; k++) {
        uint32_t bits = 0x3F800001;
        size_t which = k % IRON_NODES_HASH_MAX;

        accumulators[which][k] = 0x10000u << (k % 16);
        memcpy(&potentials[which][149 - k], &bits, sizeof bits);
        check_all(150);
        fill(&r, which, 0xFFFF, 0xFFFF0000);
    }
}

static void no_states(void **state) {
    (void)state;
    iron__nodes_hash_many(NULL, 0, 100); /* touches nothing */
    check_states(1, 0);
    assert_int_equal(plain_hash(0, 0), IRON_FNV_START);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_values),
        cmocka_unit_test(one_batch_as_defined),
        cmocka_unit_test(default_lattice),
        cmocka_unit_test(steep_lattice),
        cmocka_unit_test(tiny_and_high_lattices),
        cmocka_unit_test(full_lattice),
        cmocka_unit_test(exactness_ends_at_the_limit),
        cmocka_unit_test(state_hash_as_defined),
        cmocka_unit_test(bad_activations_are_refused),
        cmocka_unit_test(no_memory_is_reported),
        cmocka_unit_test(zeros_anywhere),
        cmocka_unit_test(states_of_different_kinds),
        cmocka_unit_test(every_count),
        cmocka_unit_test(one_that_differs),
        cmocka_unit_test(no_states),
    };

    return cmocka_run_group_tests(tests, start_team, stop_team);
}
