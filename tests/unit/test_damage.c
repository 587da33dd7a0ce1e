/* SPDX-License-Identifier: MIT */
/*
 * test_damage.c: accidental damage to token streams, all of which the seal must detect.
 *
 * The words are sums over quads, so damage shows as a difference between the words of the affected
 * quads, and a trial needs only those: two tokens 2^40 apart are two quads. Each kind of damage is
 * tried at all distances, with contents of several sizes; no trial may be missed. The default is
 * 10^5 trials per kind, with IRON_TEST_LONG=1 10^7.
 *
 * As a negative control, the papers' (xor, sum) must miss exactly what SPEC says it misses.
 */
#include "support.h"

#include "core/seal.h"

#define QUADS_MAX  24u
#define BLOCK_MAX  8u
#define DISTANCES  43u
#define WEAK_VOCAB 50257u

/* The quads of a long stream that a damage affects. */
typedef struct scene {
    size_t count;
    uint64_t quads[QUADS_MAX];
    uint32_t tokens[4 * QUADS_MAX];
} scene;

/* One stream before and after. A damage function adds the affected quads to `before`, which is
 * empty, fills both alike, and changes `after`. */
typedef struct trial {
    scene before, after;
    uint64_t distance;
    uint64_t limit; /* exclusive limit of the tokens */
    rng *r;
} trial;

static void add_quads(scene *s, uint64_t first, size_t count) {
    for (size_t k = 0; k < count; k++) {
        bool there = false;

        for (size_t j = 0; j < s->count; j++)
            there |= s->quads[j] == first + k;
        if (!there)
            s->quads[s->count++] = first + k;
    }
}

static uint32_t *token_at(scene *s, uint64_t position) {
    for (size_t k = 0; k < s->count; k++)
        if (s->quads[k] == position / 4)
            return &s->tokens[4 * k + position % 4];
    fail_msg("position %llu is not in the scene", (unsigned long long)position);
    return NULL;
}

static void fill(trial *t) {
    for (size_t k = 0; k < 4 * t->before.count; k++)
        t->before.tokens[k] = (uint32_t)rng_below(t->r, t->limit);
    t->after = t->before;
}

/* A random position, on a logarithmic scale. */
static uint64_t anywhere(rng *r) { return rng_next(r) >> (22 + rng_below(r, 42)); }

/* Two tokens at this distance. */
static void two_tokens(trial *t, uint64_t *first, uint64_t *second) {
    *first = anywhere(t->r);
    *second = *first + t->distance;
    add_quads(&t->before, *first / 4, 1);
    add_quads(&t->before, *second / 4, 1);
    fill(t);
}

static void swap_tokens(trial *t) {
    uint64_t a, b;

    two_tokens(t, &a, &b);
    *token_at(&t->after, a) = *token_at(&t->before, b);
    *token_at(&t->after, b) = *token_at(&t->before, a);
}

/* One token increases by 1, another decreases by 1: the sum of all tokens is unchanged. */
static void shift_value(trial *t) {
    uint32_t by = 1 + (uint32_t)rng_below(t->r, 3);
    uint64_t a, b;

    two_tokens(t, &a, &b);
    *token_at(&t->after, a) += by;
    *token_at(&t->after, b) -= by;
}

static void flip_two_bits(trial *t) {
    uint32_t bit = UINT32_C(1) << rng_below(t->r, 32);
    uint64_t a, b;

    two_tokens(t, &a, &b);
    *token_at(&t->after, a) ^= bit;
    *token_at(&t->after, b) ^= rng_below(t->r, 4) ? bit : UINT32_C(1) << rng_below(t->r, 32);
}

/* Two blocks of whole quads at this distance in quads; returns their length. */
static size_t two_blocks(trial *t, size_t most, uint64_t *first, uint64_t *second) {
    size_t quads = 1 + (size_t)rng_below(t->r, most);

    if (quads > t->distance)
        quads = (size_t)t->distance;
    *first = anywhere(t->r);
    *second = *first + t->distance;
    add_quads(&t->before, *first, quads);
    add_quads(&t->before, *second, quads);
    fill(t);
    return quads;
}

static void swap_blocks_of(trial *t, size_t most) {
    uint64_t a, b;
    size_t quads = two_blocks(t, most, &a, &b);

    for (uint64_t k = 0; k < 4 * quads; k++) {
        *token_at(&t->after, 4 * a + k) = *token_at(&t->before, 4 * b + k);
        *token_at(&t->after, 4 * b + k) = *token_at(&t->before, 4 * a + k);
    }
}

static void swap_quads(trial *t) { swap_blocks_of(t, 1); }

static void swap_blocks(trial *t) { swap_blocks_of(t, BLOCK_MAX); }

/* Swaps tokens of two quads, each at any of the four places. */
static void swap_across_quads(trial *t) {
    uint64_t a, b;

    two_blocks(t, 1, &a, &b);
    a = 4 * a + rng_below(t->r, 4);
    b = 4 * b + rng_below(t->r, 4);
    *token_at(&t->after, a) = *token_at(&t->before, b);
    *token_at(&t->after, b) = *token_at(&t->before, a);
}

/* A block is read twice, in place of the block after it. */
static void repeat_block(trial *t) {
    uint64_t a, b;
    size_t quads = two_blocks(t, BLOCK_MAX, &a, &b);

    for (uint64_t k = 0; k < 4 * quads; k++)
        *token_at(&t->after, 4 * b + k) = *token_at(&t->before, 4 * a + k);
}

/* Rotates a range of tokens, by whole quads or not. */
static void rotate_stretch(trial *t) {
    uint64_t length = 4 * (2 + rng_below(t->r, QUADS_MAX - 1)), first = 4 * anywhere(t->r);
    uint64_t by = 1 + t->distance % (length - 1);

    add_quads(&t->before, first / 4, (size_t)length / 4);
    fill(t);
    for (uint64_t k = 0; k < length; k++)
        *token_at(&t->after, first + (k + by) % length) = *token_at(&t->before, first + k);
}

static bool seal_sees(const scene *x, const scene *y) {
    iron__seal_words u = {0, 0, 0, 0}, v = {0, 0, 0, 0};

    for (size_t k = 0; k < x->count; k++) {
        iron__seal_quads(&u, x->tokens + 4 * k, x->quads[k], 1);
        iron__seal_quads(&v, y->tokens + 4 * k, y->quads[k], 1);
    }
    return u.t != v.t || u.a != v.a || u.b != v.b;
}

/* The papers' (xor, sum), as SPEC defines them. */
static bool papers_see(const scene *x, const scene *y) {
    const scene *both[2] = {x, y};
    uint32_t xors[2] = {0, 0};
    uint64_t sums[2] = {0, 0};

    for (size_t s = 0; s < 2; s++) {
        for (size_t k = 0; k < 4 * both[s]->count; k++) {
            uint64_t i = 4 * both[s]->quads[k / 4] + k % 4;
            uint32_t p = both[s]->tokens[k] + (uint32_t)(137 * i + 17 * (i >> 4));

            xors[s] ^= p;
            sums[s] += p % WEAK_VOCAB;
        }
    }
    return xors[0] != xors[1] || sums[0] != sums[1];
}

typedef bool (*checker)(const scene *before, const scene *after);
typedef void (*damage)(trial *t);

/* Returns how many of the trials the checker misses; damage that changes nothing does not count. */
static int misses(checker sees, damage hurt, uint64_t distance, int trials, rng *r) {
    static const uint64_t limits[] = {50257, UINT64_C(1) << 32, 50257, 256};
    int missed = 0;

    for (int done = 0; done < trials;) {
        trial t = {.distance = distance, .limit = limits[done % 4], .r = r};

        hurt(&t);
        if (memcmp(t.before.tokens, t.after.tokens, 16 * t.before.count) == 0)
            continue;
        missed += !sees(&t.before, &t.after);
        done++;
    }
    return missed;
}

/* Powers of two up to 2^40, and where earlier drafts of the keys failed. */
static uint64_t distance_at(size_t k) {
    if (k <= 40)
        return UINT64_C(1) << k;
    return k == 41 ? UINT64_C(3852212057) : UINT64_C(8147179353);
}

static void no_damage_is_missed(void **state) {
    static const struct {
        const char *name;
        damage hurt;
    } kinds[] = {
        {"tokens swapped", swap_tokens},
        {"quads swapped", swap_quads},
        {"tokens swapped between quads", swap_across_quads},
        {"blocks swapped", swap_blocks},
        {"one more and one less", shift_value},
        {"two bits flipped", flip_two_bits},
        {"a block repeated", repeat_block},
        {"a stretch rotated", rotate_stretch},
    };
    int trials = (is_long_test() ? 10000000 : 100000) / (int)DISTANCES + 1;
    rng r = {91};

    (void)state;
    for (size_t n = 0; n < COUNT(kinds); n++)
        for (size_t k = 0; k < DISTANCES; k++) {
            int missed = misses(seal_sees, kinds[n].hurt, distance_at(k), trials, &r);

            if (missed)
                fail_msg("%s at distance %llu: %d of %d missed", kinds[n].name,
                         (unsigned long long)distance_at(k), missed, trials);
        }
}

/* The same trials with a checker that is too weak: SPEC lists what it misses. */
static void weak_checksum_misses_damage(void **state) {
    enum { TRIALS = 20000 };
    rng r = {92};
    int missed;

    (void)state;
    missed = misses(papers_see, swap_tokens, 1, TRIALS, &r);
    assert_in_range(missed, TRIALS / 100, TRIALS / 5);
    missed = misses(papers_see, swap_tokens, 65536, TRIALS, &r);
    assert_in_range(missed, TRIALS / 10, TRIALS / 2);
    missed = misses(papers_see, swap_tokens, UINT64_C(1) << 36, TRIALS, &r);
    assert_int_equal(missed, TRIALS);
    missed = misses(papers_see, shift_value, 4096, TRIALS, &r);
    assert_in_range(missed, TRIALS / 20, TRIALS);
}

static iron__seal_words words_of(const uint32_t *tokens, size_t count) {
    iron__seal seal = {0};

    iron__seal_feed(&seal, tokens, count);
    return iron__seal_total(&seal);
}

/* A changed length is detected by the count, even if only zeros are lost. */
static void lengths_are_seen(void **state) {
    const size_t count = 4096, shard = 1024, width = sizeof(uint32_t);
    uint32_t *tokens = grab_tokens(93, 50257, count), *repeated = grab(5 * shard * width);
    uint32_t *zeros = grab(count * width);
    char whole[IRON_SEAL_TEXT], text[IRON_SEAL_TEXT];

    (void)state;
    memset(zeros, 0, count * width);
    for (size_t cut = 0; cut < count; cut++) {
        iron__seal_text(words_of(tokens, count), whole);
        iron__seal_text(words_of(tokens, cut), text);
        assert_string_not_equal(text, whole);
        iron__seal_text(words_of(zeros, count), whole);
        iron__seal_text(words_of(zeros, cut), text);
        assert_string_not_equal(text, whole);
    }
    iron__seal_text(words_of(tokens, count), whole);
    for (size_t k = 0; k < 4; k++) {
        size_t end = (k + 1) * shard;

        memcpy(repeated, tokens, end * width);
        memcpy(repeated + end, tokens + end - shard, shard * width);
        memcpy(repeated + end + shard, tokens + end, (count - end) * width);
        iron__seal_text(words_of(repeated, count + shard), text); /* one more shard */
        assert_string_not_equal(text, whole);
        iron__seal_text(words_of(repeated, count), text); /* and the last one missing */
        assert_true((strcmp(text, whole) == 0) == (k == 3));
    }
    free(zeros);
    free(repeated);
    free(tokens);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_damage_is_missed),
        cmocka_unit_test(weak_checksum_misses_damage),
        cmocka_unit_test(lengths_are_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
