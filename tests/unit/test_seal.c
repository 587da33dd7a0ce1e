/* SPDX-License-Identifier: MIT */
/*
 * test_seal.c: the words and the text of the seal, its carry, merging, and error detection.
 *
 * Golden seals and quads come from an independent program. A second implementation in this file,
 * written from the definition, covers what the vectors do not: the window edge at quad 2^32. The
 * detection claim (no miss in 1.5 * 10^8 trials) is repeated with 10^6 trials: the words are sums
 * over quads, so a change within two quads shows as the difference of those two quads' words, and
 * no trial needs more than eight tokens, whatever the distance.
 */
#include "support.h"

#include "core/seal.h"
#include "selftest/golden.h"

static bool same(iron__seal_words x, iron__seal_words y) {
    return x.count == y.count && x.t == y.t && x.a == y.a && x.b == y.b;
}

static uint64_t mix(uint64_t z) {
    z ^= z >> 30;
    z *= UINT64_C(0xBF58476D1CE4E5B9);
    z ^= z >> 27;
    z *= UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static uint32_t rotl(uint32_t x, int by) { return x << by | x >> (32 - by); }

/* The formulas of docs/semantics.md, in their order. */
static iron__seal_words slow_quad(const uint32_t t[4], uint64_t q) {
    uint64_t w = mix((q >> 32) + UINT64_C(0x9E3779B97F4A7C15));
    uint32_t z = (uint32_t)q * 0x9E3779B1u + 0x165667B1u;
    uint32_t k[4];

    z ^= z >> 16;
    z *= 0x7FEB352Du;
    z ^= z >> 15;
    z *= 0x846CA68Bu;
    z ^= z >> 16;
    k[0] = z ^ (uint32_t)w;
    k[1] = (z * 0x9E3779B1u + 0x7F4A7C15u) ^ (uint32_t)(w >> 32);
    k[2] = rotl(k[0], 13);
    k[3] = rotl(k[1], 19);
    return (iron__seal_words){
        4, (uint64_t)t[0] + t[1] + t[2] + t[3],
        (uint64_t)(t[0] + k[0]) * (t[1] + k[1]) + (uint64_t)(t[2] + k[2]) * (t[3] + k[3]),
        (uint64_t)(t[0] + k[2]) * (t[2] + k[0]) + (uint64_t)(t[1] + k[3]) * (t[3] + k[1])};
}

static iron__seal_words quad_words(const uint32_t t[4], uint64_t q) {
    iron__seal_words w = {0, 0, 0, 0};

    iron__seal_quads(&w, t, q, 1);
    return w;
}

static void golden_quads(void **state) {
    const iron__golden *g = &iron__golden_vectors;

    (void)state;
    assert_true(g->quad_count > 0);
    for (size_t k = 0; k < g->quad_count; k++) {
        iron__seal_words w = quad_words(g->quads[k].tokens, g->quads[k].quad);

        assert_int_equal(w.a, g->quads[k].a);
        assert_int_equal(w.b, g->quads[k].b);
        assert_int_equal(w.count, 4);
    }
}

static void golden_seals(void **state) {
    const iron__golden *g = &iron__golden_vectors;

    (void)state;
    assert_true(g->seal_count > 0);
    for (size_t k = 0; k < g->seal_count; k++) {
        const iron__golden_seal *s = &g->seals[k];
        char text[IRON_SEAL_TEXT];
        iron__seal seal = {0};
        iron__seal_words w;
        size_t count;
        uint32_t *tokens = iron__golden_tokens(s->tokens, s->tokens_count, s->gen_seed,
                                               s->gen_limit, s->gen_count, &count);

        assert_non_null(tokens);
        iron__seal_feed(&seal, tokens, count);
        w = iron__seal_total(&seal);
        iron__seal_text(w, text);
        assert_string_equal(text, s->seal);
        assert_true(w.count == s->words[0] && w.t == s->words[1]);
        assert_true(w.a == s->words[2] && w.b == s->words[3]);
        free(tokens);
    }
}

static void quads_as_defined(void **state) {
    rng r = {51};

    (void)state;
    for (int k = 0; k < 100000; k++) {
        uint32_t t[4] = {rng_u32(&r), rng_u32(&r) >> 16, rng_u32(&r), rng_u32(&r) >> 15};
        uint64_t q = rng_next(&r) >> rng_below(&r, 64);

        assert_true(same(quad_words(t, q), slow_quad(t, q)));
    }
}

/* The key of the window changes between quads 2^32 - 1 and 2^32, and again 2^32 further on. */
static void window_edges(void **state) {
    enum { QUADS = 64 };
    uint32_t *tokens = grab_tokens(52, UINT64_C(1) << 32, 4 * QUADS);
    iron__seal_words same_key_words;

    (void)state;
    for (uint64_t window = 1; window < 5; window++) {
        for (uint64_t before = 0; before <= QUADS; before++) {
            uint64_t first = (window << 32) - before;
            iron__seal_words at_once = {0, 0, 0, 0}, singly = {0, 0, 0, 0};

            iron__seal_quads(&at_once, tokens, first, QUADS);
            for (uint64_t k = 0; k < QUADS; k++)
                singly = iron__seal_merge(singly, slow_quad(tokens + 4 * k, first + k));
            assert_true(same(at_once, singly));
        }
    }
    same_key_words = quad_words(tokens, 0);
    assert_true(quad_words(tokens, UINT64_C(1) << 32).a != same_key_words.a);
    assert_true(quad_words(tokens, UINT64_C(2) << 32).a != same_key_words.a);
    free(tokens);
}

static iron__seal_words seal_of(const uint32_t *tokens, size_t count) {
    iron__seal seal = {0};

    iron__seal_feed(&seal, tokens, count);
    return iron__seal_total(&seal);
}

static void any_pieces_make_the_whole(void **state) {
    enum { TOKENS = 1003 };
    uint32_t *tokens = grab_tokens(53, 50257, TOKENS);
    rng r = {53};

    (void)state;
    for (int n = 0; n < 3000; n++) {
        size_t total = (size_t)rng_below(&r, n < 1000 ? 24 : TOKENS + 1);
        iron__seal seal = {0};

        for (size_t done = 0; done < total;) {
            size_t piece = (size_t)rng_below(&r, 1 + rng_below(&r, n % 3 ? 6 : 300));

            piece = piece < total - done ? piece : total - done;
            iron__seal_feed(&seal, tokens + done, piece);
            done += piece;
            assert_true(seal.carried <= 3 && seal.carried == done % 4);
            assert_int_equal(seal.words.count, done - done % 4);
        }
        assert_true(same(iron__seal_total(&seal), seal_of(tokens, total)));
        assert_int_equal(iron__seal_total(&seal).count, total);
    }
    free(tokens);
}

static void totals_do_not_change_the_seal(void **state) {
    uint32_t tokens[] = {1, 2, 3, 4, 5, 6, 7};
    iron__seal seal = {0};

    (void)state;
    iron__seal_feed(&seal, tokens, 6);
    assert_true(same(iron__seal_total(&seal), seal_of(tokens, 6)));
    assert_true(same(iron__seal_total(&seal), seal_of(tokens, 6)));
    iron__seal_feed(&seal, tokens + 6, 1);
    assert_true(same(iron__seal_total(&seal), seal_of(tokens, 7)));
}

/* Parts that begin at multiples of four merge, in any order. */
static void parts_merge(void **state) {
    enum { TOKENS = 4001 };
    uint32_t *tokens = grab_tokens(54, UINT64_C(1) << 32, TOKENS);
    iron__seal_words whole = seal_of(tokens, TOKENS);
    rng r = {54};

    (void)state;
    for (int n = 0; n < 200; n++) {
        size_t first = (size_t)rng_below(&r, 500), second = 500 + (size_t)rng_below(&r, 500);
        iron__seal tail = {
            .words = {.count = 4 * second}}; /* as if everything before had been fed */
        iron__seal_words head = {0, 0, 0, 0}, middle = head, end;

        iron__seal_quads(&head, tokens, 0, first);
        iron__seal_quads(&middle, tokens + 4 * first, first, second - first);
        iron__seal_feed(&tail, tokens + 4 * second, TOKENS - 4 * second);
        end = iron__seal_total(&tail);
        end.count -= 4 * second;
        assert_true(same(iron__seal_merge(iron__seal_merge(end, head), middle), whole));
        assert_true(same(iron__seal_merge(middle, iron__seal_merge(head, end)), whole));
    }
    free(tokens);
}

/* Zeros at the end look like padding in the words, but the count differs. */
static void length_is_part_of_the_seal(void **state) {
    static const uint32_t zeros[9] = {0};
    char texts[10][IRON_SEAL_TEXT];

    (void)state;
    for (size_t k = 0; k <= 9; k++) {
        iron__seal_text(seal_of(zeros, k), texts[k]);
        assert_int_equal(strlen(texts[k]), 32);
        assert_int_equal(strspn(texts[k], "0123456789abcdef"), 32);
        for (size_t j = 0; j < k; j++)
            assert_string_not_equal(texts[j], texts[k]);
    }
}

static void text_as_defined(void **state) {
    rng r = {55};

    (void)state;
    for (int n = 0; n < 1000; n++) {
        uint64_t w[4] = {rng_next(&r) >> 20, rng_next(&r), rng_next(&r), rng_next(&r)};
        char text[IRON_SEAL_TEXT], want[64];
        uint64_t h[2] = {0, 1};

        for (int s = 0; s < 2; s++)
            for (int k = 0; k < 4; k++)
                h[s] = mix((h[s] ^ w[k]) + UINT64_C(0x9E3779B97F4A7C15));
        snprintf(want, sizeof want, "%016llx%016llx", (unsigned long long)h[0],
                 (unsigned long long)h[1]);
        iron__seal_text((iron__seal_words){w[0], w[1], w[2], w[3]}, text);
        assert_string_equal(text, want);
    }
}

/* Two quads of a long stream, before and after some damage. */
typedef struct two_quads {
    uint64_t q[2];
    uint32_t t[8];
} two_quads;

static iron__seal_words words_of(const two_quads *x) {
    return iron__seal_merge(quad_words(x->t, x->q[0]), quad_words(x->t + 4, x->q[1]));
}

/* The damage must not change T: swaps and pairs test A and B. */
static void assert_seen(const two_quads *before, const two_quads *after) {
    if (memcmp(before->t, after->t, sizeof before->t) == 0)
        return; /* equal tokens swapped: no damage */
    if (same(words_of(before), words_of(after)))
        fail_msg("missed: quads %llu and %llu", (unsigned long long)before->q[0],
                 (unsigned long long)before->q[1]);
}

static two_quads random_quads(uint64_t quad_distance, rng *r) {
    static const unsigned shifts[] = {0, 15, 16, 24, 31}; /* tokens of 32 ... 1 bits */
    unsigned shift = shifts[rng_below(r, COUNT(shifts))];
    two_quads x;

    x.q[0] = rng_next(r) >> (20 + rng_below(r, 44));
    x.q[1] = x.q[0] + quad_distance;
    for (int k = 0; k < 8; k++)
        x.t[k] = rng_u32(r) >> shift;
    return x;
}

static void swap_tokens(two_quads *x, size_t a, size_t b) {
    uint32_t moved = x->t[a];

    x->t[a] = x->t[b];
    x->t[b] = moved;
}

/* Kinds of damage: tokens swapped, whole quads swapped, +1 and -1, one token changed. */
static void damage(two_quads *x, int kind, rng *r) {
    size_t a = (size_t)rng_below(r, 4), b = 4 + (size_t)rng_below(r, 4);

    if (kind == 0) {
        swap_tokens(x, a, b);
    } else if (kind == 1) {
        for (size_t k = 0; k < 4; k++)
            swap_tokens(x, k, k + 4);
    } else if (kind == 2) {
        uint32_t by = 1 + (uint32_t)rng_below(r, 3);

        x->t[a] += by;
        x->t[b] -= by;
    } else if (kind == 3) {
        x->t[a] ^= UINT32_C(1) << rng_below(r, 32);
    } else {
        swap_tokens(x, a, (a + 1 + (size_t)rng_below(r, 3)) % 4); /* within a quad */
    }
}

static void check_distance(uint64_t quad_distance, int trials, rng *r) {
    for (int k = 0; k < trials; k++) {
        two_quads before = random_quads(quad_distance, r), after = before;

        damage(&after, k % 5, r);
        assert_seen(&before, &after);
    }
}

/* Token distances up to 2^40 are quad distances up to 2^38. */
static void no_damage_is_missed(void **state) {
    int factor = is_long_test() ? 20 : 1;
    rng r = {57};

    (void)state;
    for (int k = 0; k < 100 * factor; k++)
        check_distance(1 + (rng_next(&r) >> (26 + rng_below(&r, 37))), 5000, &r);
    for (int power = 0; power <= 38; power++)
        check_distance(UINT64_C(1) << power, 4000 * factor, &r);
    for (uint64_t near = 1; near <= 40; near++)
        check_distance(near, 4000 * factor, &r);
}

/* Where earlier drafts of the keys failed. */
static void known_weak_distances(void **state) {
    int trials = is_long_test() ? 2000000 : 100000;
    rng r = {58};

    (void)state;
    check_distance(UINT64_C(3852212057), trials, &r);
    check_distance(UINT64_C(8147179353), trials, &r);
}

/* One changed token always changes T. */
static void one_change_always_shows_in_t(void **state) {
    rng r = {59};

    (void)state;
    for (int k = 0; k < 100000; k++) {
        two_quads before = random_quads(1, &r), after = before;

        after.t[rng_below(&r, 8)] = rng_u32(&r);
        if (memcmp(before.t, after.t, sizeof before.t) != 0)
            assert_true(words_of(&before).t != words_of(&after).t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_quads),
        cmocka_unit_test(golden_seals),
        cmocka_unit_test(quads_as_defined),
        cmocka_unit_test(window_edges),
        cmocka_unit_test(any_pieces_make_the_whole),
        cmocka_unit_test(totals_do_not_change_the_seal),
        cmocka_unit_test(parts_merge),
        cmocka_unit_test(length_is_part_of_the_seal),
        cmocka_unit_test(text_as_defined),
        cmocka_unit_test(no_damage_is_missed),
        cmocka_unit_test(known_weak_distances),
        cmocka_unit_test(one_change_always_shows_in_t),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
