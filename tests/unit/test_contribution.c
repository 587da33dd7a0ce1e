/* SPDX-License-Identifier: MIT */
/*
 * test_contribution.c: (count, xor, sum) with merge is a commutative monoid, and every registry row
 * respects it: however a stream is cut, and in whatever order and grouping the parts are merged,
 * the result is the same. This property allows threads, ranks and batches to share the work.
 */
#include "support.h"

#include "core/contribution.h"
#include "ops/tokens/tokens.h"

#define TOKENS     10007u
#define PIECES_MAX 64u

static bool same(iron__contribution a, iron__contribution b) {
    return a.count == b.count && a.xors == b.xors && a.sum == b.sum;
}

static iron__contribution random_contribution(rng *r) {
    return (iron__contribution){rng_next(r), rng_next(r), rng_u32(r)};
}

static void laws_of_a_commutative_monoid(void **state) {
    iron__contribution none = iron__contribution_neutral();
    rng r = {21};

    (void)state;
    assert_true(none.count == 0 && none.xors == 0 && none.sum == 0);
    for (int k = 0; k < 10000; k++) {
        iron__contribution a = random_contribution(&r), b = random_contribution(&r);
        iron__contribution c = random_contribution(&r);
        iron__contribution left = iron__contribution_merge(iron__contribution_merge(a, b), c);
        iron__contribution right = iron__contribution_merge(a, iron__contribution_merge(b, c));

        assert_true(same(iron__contribution_merge(a, none), a));
        assert_true(same(iron__contribution_merge(none, a), a));
        assert_true(same(iron__contribution_merge(a, b), iron__contribution_merge(b, a)));
        assert_true(same(left, right));
    }
}

static void merging_adds_and_xors(void **state) {
    iron__contribution a = {UINT64_MAX, UINT64_MAX - 1, 0xF0F0F0F0u};
    iron__contribution m = iron__contribution_merge(a, (iron__contribution){2, 3, 0xFF00FF00u});

    (void)state;
    assert_int_equal(m.count, 1);
    assert_int_equal(m.sum, 1);
    assert_int_equal(m.xors, 0x0FF00FF0u);
}

/* The stream's parts: cut at random, some of them empty. */
static size_t cut(rng *r, size_t cuts[PIECES_MAX + 1]) {
    size_t pieces = 1 + (size_t)rng_below(r, PIECES_MAX);

    cuts[0] = 0;
    for (size_t k = 1; k < pieces; k++)
        cuts[k] = (size_t)rng_below(r, TOKENS + 1);
    cuts[pieces] = TOKENS;
    for (size_t k = 1; k < pieces; k++) /* insertion sort of a few numbers */
        for (size_t j = k; j > 0 && cuts[j - 1] > cuts[j]; j--) {
            size_t moved = cuts[j];

            cuts[j] = cuts[j - 1];
            cuts[j - 1] = moved;
        }
    return pieces;
}

/* Merges two random parts until one is left: any order, any grouping. */
static iron__contribution merge_at_random(iron__contribution *parts, size_t count, rng *r) {
    while (count > 1) {
        size_t a = (size_t)rng_below(r, count);
        iron__contribution first = parts[a];
        size_t b;

        parts[a] = parts[--count];
        b = (size_t)rng_below(r, count);
        parts[b] = rng_below(r, 2) ? iron__contribution_merge(first, parts[b])
                                   : iron__contribution_merge(parts[b], first);
    }
    return parts[0];
}

static void check_row(const iron__tokens_variant *row, const iron__tokens_run *whole, rng *r) {
    iron__contribution want = iron__tokens_scalar(whole);

    assert_true(same(row->reduce(whole), want));
    for (int n = 0; n < 40; n++) {
        size_t cuts[PIECES_MAX + 1];
        iron__contribution parts[PIECES_MAX];
        size_t pieces = cut(r, cuts);

        for (size_t k = 0; k < pieces; k++) {
            iron__tokens_run part = {whole->tokens + cuts[k], cuts[k + 1] - cuts[k],
                                     whole->first + cuts[k], whole->divisor, NULL};

            parts[k] = row->reduce(&part);
            assert_int_equal(parts[k].count, part.count);
        }
        if (!same(merge_at_random(parts, pieces, r), want))
            fail_msg("%s: %zu pieces do not make the whole, vocab %u", row->name, pieces,
                     whole->divisor->vocab);
    }
}

static void any_split_in_any_order(void **state) {
    static const uint32_t vocabs[] = {2, 7, 50257, 65536, 128256, 2147483647, 2147483648};
    static const uint64_t firsts[] = {0, 3, (UINT64_C(1) << 32) - 5000, (UINT64_C(1) << 36) - 17};
    uint32_t *tokens = grab_tokens(77, UINT64_C(1) << 32, TOKENS);
    rng random = {23};

    (void)state;
    for (size_t r = 0; r < iron__tokens_variant_count(); r++) {
        const iron__tokens_variant *row = iron__tokens_variant_at(r);

        for (size_t k = 0; k < COUNT(vocabs) * COUNT(firsts); k++) {
            iron__divisor divisor = iron__divisor_make(vocabs[k % COUNT(vocabs)]);
            iron__tokens_run whole = {tokens, TOKENS, firsts[k / COUNT(vocabs)], &divisor, NULL};

            if (iron__tokens_variant_runs_here(row))
                check_row(row, &whole, &random);
        }
    }
    free(tokens);
}

/* Each operation separately, through memory, so that nothing can be contracted or kept in higher
 * precision. */
static float slow_potential(uint64_t sum, uint64_t count, uint64_t vocab) {
    volatile uint64_t half = vocab / 2;
    volatile double inverse = 1.0 / (double)half;
    volatile double centred = (double)(int64_t)(sum - count * half);
    volatile double product = centred * inverse;
    volatile float rounded = (float)product;

    return rounded;
}

static void potential_rounds_as_defined(void **state) {
    rng r = {29};

    (void)state;
    for (int k = 0; k < 100000; k++) {
        uint64_t vocab = 2 + rng_below(&r, (UINT64_C(1) << (1 + rng_below(&r, 31))) - 1);
        uint64_t most = (UINT64_C(1) << 62) / vocab;
        uint64_t count = 1 + (rng_next(&r) >> 2) % most;
        iron__contribution c = {count, rng_below(&r, vocab) * count, 0};
        float got = iron__contribution_potential(c, (uint32_t)vocab);
        float want = slow_potential(c.sum, count, vocab);

        assert_memory_equal(&got, &want, sizeof got);
    }
}

static void potential_of_known_contributions(void **state) {
    float none = iron__contribution_potential(iron__contribution_neutral(), 50257);

    (void)state;
    assert_true(none == 0);
    /* vocab 2 and 3: half is 1, so the potential is sum - count */
    assert_true(iron__contribution_potential((iron__contribution){10, 3, 0}, 2) == -7.0f);
    assert_true(iron__contribution_potential((iron__contribution){10, 20, 0}, 3) == 10.0f);
    /* 2^31: half is 2^30, and every step is exact */
    assert_true(iron__contribution_potential((iron__contribution){4, UINT64_C(1) << 31, 0},
                                             UINT32_C(1) << 31) == -2.0f);
    /* the golden case one-token */
    assert_true(iron__contribution_potential((iron__contribution){1, 42, 0x2a}, 50257) ==
                (float)(-25086.0 * (1.0 / 25128.0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(laws_of_a_commutative_monoid),
        cmocka_unit_test(merging_adds_and_xors),
        cmocka_unit_test(any_split_in_any_order),
        cmocka_unit_test(potential_rounds_as_defined),
        cmocka_unit_test(potential_of_known_contributions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
