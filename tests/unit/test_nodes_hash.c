/* SPDX-License-Identifier: MIT */
/*
 * test_nodes_hash.c: the quick ways to the state hash against FNV-1a a byte at a time (core/fnv.h,
 * which test_fnv.c holds against its authors' vectors): values with zeros in any bytes and in none,
 * changing within a block and between lanes, on both sides of a block's end, one to four lanes.
 */
#include "support.h"

#include "core/fnv.h"
#include "core/nodes.h"

#define NODES_MAX 1000u

static uint32_t accumulators[IRON_HASH_LANES][NODES_MAX];
static float potentials[IRON_HASH_LANES][NODES_MAX];

/* Bytes that may be other than zero, for accumulators and potentials. */
static const uint32_t masks[] = {0,          0xFF,       0xFFFF,     0xFF00,     0xFF0000,
                                 0xFF000000, 0xFFFF0000, 0xFFFFFF00, 0x00FFFFFF, 0xFFFFFFFF};

static uint64_t plain_hash(size_t lane, uint32_t nodes) {
    uint64_t hash = iron__fnv(IRON_FNV_START, accumulators[lane], nodes * sizeof(uint32_t));

    return iron__fnv(hash, potentials[lane], nodes * sizeof(float));
}

static void fill(dice *d, size_t lane, uint32_t xor_mask, uint32_t potential_mask) {
    for (size_t k = 0; k < NODES_MAX; k++) {
        uint32_t bits = roll_u32(d) & potential_mask;

        accumulators[lane][k] = roll_u32(d) & xor_mask;
        memcpy(&potentials[lane][k], &bits, sizeof bits); /* any bits, also those of NaNs */
    }
}

static void check_lanes(size_t count, uint32_t nodes) {
    iron__hash_lane lanes[IRON_HASH_LANES];

    for (size_t l = 0; l < count; l++)
        lanes[l] = (iron__hash_lane){accumulators[l], potentials[l], 0};
    iron__nodes_hash_lanes(lanes, count, nodes);
    for (size_t l = 0; l < count; l++)
        assert_int_equal(lanes[l].hash, plain_hash(l, nodes));
}

static void check_all(uint32_t nodes) {
    iron__nodes alone = {
        .count = nodes, .xor_accumulators = accumulators[0], .potentials = potentials[0]};

    assert_int_equal(iron__nodes_hash(&alone), plain_hash(0, nodes));
    for (size_t count = 1; count <= IRON_HASH_LANES; count++)
        check_lanes(count, nodes);
}

static void zeros_anywhere(void **state) {
    dice d = {71};

    (void)state;
    for (size_t x = 0; x < COUNT(masks); x++)
        for (size_t p = 0; p < COUNT(masks); p++) {
            for (size_t l = 0; l < IRON_HASH_LANES; l++)
                fill(&d, l, masks[x], masks[p]);
            check_all(200);
        }
}

static void lanes_of_different_kinds(void **state) {
    dice d = {73};

    (void)state;
    for (size_t round = 0; round < 200; round++) {
        for (size_t l = 0; l < IRON_HASH_LANES; l++)
            fill(&d, l, masks[roll_below(&d, COUNT(masks))], masks[roll_below(&d, COUNT(masks))]);
        check_all(1 + (uint32_t)roll_below(&d, NODES_MAX));
    }
}

static void every_count(void **state) {
    dice d = {79};

    (void)state;
    for (size_t l = 0; l < IRON_HASH_LANES; l++)
        fill(&d, l, 0xFFFF, 0xFFFFFF00);
    for (uint32_t nodes = 0; nodes <= 200; nodes++)
        check_all(nodes);
}

/* One value that is not like the others must not be lost, wherever it stands. */
static void one_that_differs(void **state) {
    dice d = {83};

    (void)state;
    fill(&d, 0, 0xFFFF, 0xFFFF0000);
    for (size_t l = 1; l < IRON_HASH_LANES; l++)
        fill(&d, l, 0xFFFF, 0xFFFF0000);
    for (size_t k = 0; k < 150; k++) {
        uint32_t bits = 0x3F800001;
        size_t lane = k % IRON_HASH_LANES;

        accumulators[lane][k] = 0x10000u << (k % 16);
        memcpy(&potentials[lane][149 - k], &bits, sizeof bits);
        check_all(150);
        fill(&d, lane, 0xFFFF, 0xFFFF0000);
    }
}

static void no_lanes_at_all(void **state) {
    (void)state;
    iron__nodes_hash_lanes(NULL, 0, 100); /* touches nothing */
    check_lanes(1, 0);
    assert_int_equal(plain_hash(0, 0), IRON_FNV_START);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeros_anywhere),  cmocka_unit_test(lanes_of_different_kinds),
        cmocka_unit_test(every_count),     cmocka_unit_test(one_that_differs),
        cmocka_unit_test(no_lanes_at_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
