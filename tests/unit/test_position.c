/* SPDX-License-Identifier: MIT */
/*
 * test_position.c: the position hash h(i) = (137 i + 17 (i >> 4)) mod 2^32, i in 64 bits.
 *
 * Golden values first. Then what follows from the formula and would break if someone computed it in
 * 32 bits, or stepped it wrongly: the step within a group of 16, from group to group, and the two
 * periods that only a 64-bit i has: adding 2^32 adds 17 * 2^28, adding 2^36 changes nothing.
 */
#include "support.h"

#include "core/mix.h"
#include "engine/golden.h"
#include "ops/tokens/tokens.h"

/* The formula in twice the width, so that nothing can be lost on the way. */
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
    const iron__golden *g = iron__golden_vectors();

    (void)state;
    assert_true(g->position_hash_count > 0);
    for (size_t k = 0; k < g->position_hash_count; k++)
        assert_int_equal(iron__position_hash(g->position_hash[k].from), g->position_hash[k].to);
}

static void formula_in_full_width(void **state) {
    dice d = {3};

    (void)state;
    for (size_t k = 0; k < COUNT(edges); k++)
        assert_int_equal(iron__position_hash(edges[k]), slow_hash(edges[k]));
    for (int k = 0; k < 100000; k++) {
        uint64_t i = roll(&d) >> roll_below(&d, 64);

        assert_int_equal(iron__position_hash(i), slow_hash(i));
    }
}

static void steps_within_and_between_groups(void **state) {
    dice d = {5};

    (void)state;
    for (int k = 0; k < 10000; k++) {
        uint64_t group = (roll(&d) >> roll_below(&d, 60)) & ~UINT64_C(15);
        uint32_t base = iron__position_hash(group);

        for (uint32_t lane = 0; lane < IRON_HASH_GROUP; lane++)
            assert_int_equal(iron__position_hash(group + lane), base + IRON_HASH_STEP * lane);
        if (group < UINT64_MAX - 16)
            assert_int_equal(iron__position_hash(group + 16),
                             (uint32_t)(base + IRON_HASH_GROUP_STEP));
    }
    assert_int_equal(IRON_HASH_GROUP_STEP, 2209);
}

static void positions_have_64_bits(void **state) {
    dice d = {9};

    (void)state;
    for (int k = 0; k < 10000; k++) {
        uint64_t i = roll(&d) >> 2;
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
            iron__tokens_run run = {&tokens[n], 1, edges[k], &divisor};
            iron__contribution c = iron__tokens_scalar(&run);
            uint32_t p = tokens[n] + slow_hash(edges[k]);

            assert_int_equal(c.count, 1);
            assert_int_equal(c.xors, p);
            assert_int_equal(c.sum, p % 50257);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_values),
        cmocka_unit_test(formula_in_full_width),
        cmocka_unit_test(steps_within_and_between_groups),
        cmocka_unit_test(positions_have_64_bits),
        cmocka_unit_test(positioned_token_wraps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
