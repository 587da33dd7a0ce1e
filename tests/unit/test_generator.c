/* SPDX-License-Identifier: MIT */
/*
 * test_generator.c: gen(seed, limit) as SPEC defines it, addressable at any position.
 *
 * SPEC's formula is written here once more; the first outputs of splitmix64 for seed 0, which the
 * formula is with a limit of 2^32, are well known and stand as numbers.
 */
#include "support.h"

/* Token k of gen(seed, limit), by the sentence in SPEC. */
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
    dice d = {61};

    (void)state;
    for (int n = 0; n < 500; n++) {
        uint64_t seed = n < 10 ? (uint64_t)n : roll(&d);
        uint64_t first = n % 3 ? roll(&d) >> roll_below(&d, 64) : 0; /* may wrap, as SPEC says */
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

static void nothing_is_written_for_none(void **state) {
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
        cmocka_unit_test(known_values),
        cmocka_unit_test(formula),
        cmocka_unit_test(any_window_is_the_same_stream),
        cmocka_unit_test(nothing_is_written_for_none),
        cmocka_unit_test(bad_limits_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
