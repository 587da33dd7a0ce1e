/* SPDX-License-Identifier: MIT */
/*
 * test_hash.c: FNV-1a, the position hash, and the token generator.
 *
 * FNV-1a is checked against the published test vectors of its authors (Fowler, Noll, Vo), and for
 * the two properties that saved states depend on: hashing in pieces gives the same result, and
 * every damaged bit changes it.
 *
 * The position hash h(i) = (137 i + 17 (i >> 4)) mod 2^32 has a 64-bit i. After the golden values
 * come the properties that would break if it were computed in 32 bits or stepped wrongly: the step
 * within a group of 16, from group to group, and the two periods that only a 64-bit i has: adding
 * 2^32 adds 17 * 2^28, adding 2^36 changes nothing.
 *
 * The formula of the generator is repeated here from docs/semantics.md. With a limit of 2^32 it is
 * splitmix64, whose first outputs for seed 0 are well known.
 */
#include "core/hash.h"
#include "ops/tokens/tokens.h"
#include "selftest/golden.h"
#include "support.h"

static const struct {
    const char *text;
    uint64_t hash;
} vectors[] = {{"", UINT64_C(0xcbf29ce484222325)},      {"a", UINT64_C(0xaf63dc4c8601ec8c)},
               {"b", UINT64_C(0xaf63df4c8601f1a5)},     {"c", UINT64_C(0xaf63de4c8601eff2)},
               {"foo", UINT64_C(0xdcb27518fed9d577)},   {"fo", UINT64_C(0x08985907b541d342)},
               {"foob", UINT64_C(0xdd120e790c2512af)},  {"fooba", UINT64_C(0xcac165afa2fef40a)},
               {"foobar", UINT64_C(0x85944171f73967e8)}};

static void published_vectors(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(vectors); k++)
        assert_int_equal(iron__fnv(IRON_FNV_START, vectors[k].text, strlen(vectors[k].text)),
                         vectors[k].hash);
    assert_int_equal(iron__fnv(IRON_FNV_START, "", 1), UINT64_C(0xaf63bd4c8601b7df)); /* one 0 */
}

static void bytes_are_unsigned(void **state) {
    (void)state;
    /* one step by hand: (start ^ 0xff) * prime */
    assert_int_equal(iron__fnv(IRON_FNV_START, "\xff", 1),
                     (UINT64_C(0xcbf29ce484222325) ^ 0xff) * UINT64_C(0x100000001b3));
}

static void pieces_make_the_whole(void **state) {
    unsigned char data[257];
    uint64_t whole;
    rng r = {67};

    (void)state;
    for (size_t k = 0; k < sizeof data; k++)
        data[k] = (unsigned char)rng_next(&r);
    whole = iron__fnv(IRON_FNV_START, data, sizeof data);
    for (size_t k = 0; k <= sizeof data; k++)
        assert_int_equal(iron__fnv(iron__fnv(IRON_FNV_START, data, k), data + k, sizeof data - k),
                         whole);
}

static void every_bit_counts(void **state) {
    unsigned char data[300] = {0};
    uint64_t whole = iron__fnv(IRON_FNV_START, data, sizeof data);

    (void)state;
    for (size_t bit = 0; bit < 8 * sizeof data; bit++) {
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(iron__fnv(IRON_FNV_START, data, sizeof data) != whole);
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

/* The formula in twice the width, so that nothing overflows. */
static uint32_t slow_hash(uint64_t i) {
    unsigned __int128 wide = i;

    return (uint32_t)((137 * wide + 17 * (wide >> 4)) & UINT32_MAX);
}

static const uint64_t edges[] = {0,
                                 1,
                                 15,
                                 16,
                                 17,
                                 (UINT64_C(1) << 32) - 1,
                                 UINT64_C(1) << 32,
                                 (UINT64_C(1) << 32) + 1,
                                 (UINT64_C(1) << 36) - 1,
                                 UINT64_C(1) << 36,
                                 (UINT64_C(1) << 63) - 1,
                                 UINT64_C(1) << 63,
                                 UINT64_MAX - 16,
                                 UINT64_MAX};

static void golden_values(void **state) {
    const iron__golden *g = &iron__golden_vectors;

    (void)state;
    assert_true(g->position_hash_count > 0);
    for (size_t k = 0; k < g->position_hash_count; k++)
        assert_int_equal(iron__position_hash(g->position_hash[k].from), g->position_hash[k].to);
}

static void formula_in_full_width(void **state) {
    rng r = {3};

    (void)state;
    for (size_t k = 0; k < COUNT(edges); k++)
        assert_int_equal(iron__position_hash(edges[k]), slow_hash(edges[k]));
    for (int k = 0; k < 100000; k++) {
        uint64_t i = rng_next(&r) >> rng_below(&r, 64);

        assert_int_equal(iron__position_hash(i), slow_hash(i));
    }
}

static void steps_within_and_between_groups(void **state) {
    rng r = {5};

    (void)state;
    for (int k = 0; k < 10000; k++) {
        uint64_t group = (rng_next(&r) >> rng_below(&r, 60)) & ~UINT64_C(15);
        uint32_t base = iron__position_hash(group);

        for (uint32_t k16 = 0; k16 < IRON_HASH_GROUP; k16++)
            assert_int_equal(iron__position_hash(group + k16), base + IRON_HASH_STEP * k16);
        if (group < UINT64_MAX - 16)
            assert_int_equal(iron__position_hash(group + 16),
                             (uint32_t)(base + IRON_HASH_GROUP_STEP));
    }
    assert_int_equal(IRON_HASH_GROUP_STEP, 2209);
}

static void positions_have_64_bits(void **state) {
    rng r = {9};

    (void)state;
    for (int k = 0; k < 10000; k++) {
        uint64_t i = rng_next(&r) >> 2;
        uint32_t h = iron__position_hash(i);

        assert_int_equal(iron__position_hash(i + (UINT64_C(1) << 32)),
                         (uint32_t)(h + (UINT32_C(17) << 28)));
        assert_int_equal(iron__position_hash(i + (UINT64_C(1) << 36)), h);
    }
}

/* One token through the reference: its XOR is the positioned token itself. */
static void positioned_token_wraps(void **state) {
    static const uint32_t tokens[] = {0, 1, 50256, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
    iron__divisor divisor = iron__divisor_make(50257);

    (void)state;
    for (size_t k = 0; k < COUNT(edges); k++) {
        for (size_t n = 0; n < COUNT(tokens); n++) {
            iron__tokens_run run = {&tokens[n], 1, edges[k], &divisor, NULL};
            iron__contribution c = iron__tokens_scalar(&run);
            uint32_t p = tokens[n] + slow_hash(edges[k]);

            assert_int_equal(c.count, 1);
            assert_int_equal(c.xors, p);
            assert_int_equal(c.sum, p % 50257);
        }
    }
}

/* Token k of gen(seed, limit), by the definition. */
static uint32_t slow_token(uint64_t seed, uint64_t limit, uint64_t k) {
    uint64_t z = seed + (k + 1) * UINT64_C(0x9E3779B97F4A7C15);

    z ^= z >> 30;
    z *= UINT64_C(0xBF58476D1CE4E5B9);
    z ^= z >> 27;
    z *= UINT64_C(0x94D049BB133111EB);
    z ^= z >> 31;
    return (uint32_t)(z % limit);
}

/* splitmix64 from seed 0 begins e220a8397b1dcdaf 6e789e6aa1b965f4 06c45d188009454f. */
static void known_values(void **state) {
    uint32_t tokens[3];

    (void)state;
    assert_int_equal(iron_generate(0, UINT64_C(1) << 32, 0, tokens, 3, NULL), IRON_OK);
    assert_int_equal(tokens[0], 0x7b1dcdaf);
    assert_int_equal(tokens[1], 0xa1b965f4);
    assert_int_equal(tokens[2], 0x8009454f);
}

static void formula(void **state) {
    static const uint64_t limits[] = {1, 2, 3, 256, 50257, 65536, 128256, UINT64_C(1) << 32};
    static uint32_t tokens[200];
    rng r = {61};

    (void)state;
    for (int n = 0; n < 500; n++) {
        uint64_t seed = n < 10 ? (uint64_t)n : rng_next(&r);
        uint64_t first = n % 3 ? rng_next(&r) >> rng_below(&r, 64) : 0; /* may wrap, as defined */
        uint64_t limit = limits[(size_t)n % COUNT(limits)];

        assert_int_equal(iron_generate(seed, limit, first, tokens, COUNT(tokens), NULL), IRON_OK);
        for (size_t k = 0; k < COUNT(tokens); k++) {
            assert_int_equal(tokens[k], slow_token(seed, limit, first + k));
            assert_true(tokens[k] < limit);
        }
    }
}

static void any_window_is_the_same_stream(void **state) {
    uint32_t *all = grab_tokens(9, 50257, 5000);
    uint32_t part[37];

    (void)state;
    for (uint64_t first = 0; first + COUNT(part) <= 5000; first += 41) {
        assert_int_equal(iron_generate(9, 50257, first, part, COUNT(part), NULL), IRON_OK);
        assert_memory_equal(part, all + first, sizeof part);
    }
    free(all);
}

static void zero_tokens_write_nothing(void **state) {
    uint32_t token = 0xABCD;

    (void)state;
    assert_int_equal(iron_generate(1, 10, 0, &token, 0, NULL), IRON_OK);
    assert_int_equal(token, 0xABCD);
}

static void bad_limits_are_refused(void **state) {
    uint32_t token = 0xABCD;
    iron_error err;

    (void)state;
    assert_refused(iron_generate(1, 0, 0, &token, 1, &err), IRON_E_ARG, &err);
    assert_says(&err, "limit is 0");
    assert_refused(iron_generate(1, (UINT64_C(1) << 32) + 1, 0, &token, 1, &err), IRON_E_ARG, &err);
    assert_says(&err, "4294967297");
    assert_int_equal(iron_generate(1, 0, 0, &token, 1, NULL), IRON_E_ARG);
    assert_int_equal(token, 0xABCD);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(bytes_are_unsigned),
        cmocka_unit_test(pieces_make_the_whole),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(golden_values),
        cmocka_unit_test(formula_in_full_width),
        cmocka_unit_test(steps_within_and_between_groups),
        cmocka_unit_test(positions_have_64_bits),
        cmocka_unit_test(positioned_token_wraps),
        cmocka_unit_test(known_values),
        cmocka_unit_test(formula),
        cmocka_unit_test(any_window_is_the_same_stream),
        cmocka_unit_test(zero_tokens_write_nothing),
        cmocka_unit_test(bad_limits_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
