/* SPDX-License-Identifier: MIT */
/*
 * test_divisor.c: p mod vocab is exact for every vocabulary and every 32-bit p.
 *
 * A quotient function of the form (p * m + a) >> s never decreases as p increases. So if it is
 * exact at p = mV - 1 and at p = mV for every multiple of V, it is exact everywhere in between.
 * This way two thousand vocabularies are verified in a second: all multiples if there are at most
 * 2^20 of them, otherwise samples and both ends.
 *
 * A sweep does not depend on that argument: it compares every p with the operators / and %, for
 * both quotient functions, and sends the same p through every registry row that runs here: a token
 * t = p - h(i) at position i becomes the positioned token p. The short test sweeps windows,
 * IRON_TEST_LONG=1 all of 2^32, on several threads.
 */
#include "support.h"

#include "core/divisor.h"
#include "core/hash.h"
#include "ops/tokens/tokens.h"

#include <pthread.h>

#define VOCABS        2000u
#define ALL_MULTIPLES 4096u /* from this vocabulary on, every multiple is tested */
#define SAMPLES       3000u

static const uint32_t typical[] = {
    32000,  32001,  32064,  32128,  49152,  50254,  50257,  50272,  50277,   50280,  50304,
    50400,  51200,  57344,  64000,  65024,  92416,  92544,  100256, 100277,  100352, 102400,
    128000, 128256, 129280, 151643, 151646, 151936, 152064, 199997, 200019,  200064, 250002,
    250112, 250880, 256000, 256128, 256206, 262144, 262145, 999983, 16777259};

static const uint32_t swept[] = {3, 7, 50257, 65536, 128256, 2147483647};

static size_t add_powers(uint32_t *vocabs, size_t count) {
    for (uint32_t k = 2; k <= 31; k++) {
        uint32_t power = UINT32_C(1) << k;

        vocabs[count++] = power - 1;
        vocabs[count++] = power;
        if (k < 31)
            vocabs[count++] = power + 1;
    }
    return count;
}

/* Small ones, typical ones, powers of two and their neighbours, and random ones of every size. */
static void choose_vocabs(uint32_t vocabs[VOCABS]) {
    rng r = {7};
    size_t count = 0;

    for (uint32_t v = 2; v <= 300; v++)
        vocabs[count++] = v;
    for (size_t k = 0; k < COUNT(typical); k++)
        vocabs[count++] = typical[k];
    count = add_powers(vocabs, count);
    while (count < VOCABS) {
        uint32_t bits = 8 + (uint32_t)rng_below(&r, 24);
        uint32_t low = UINT32_C(1) << (bits - 1);

        vocabs[count++] = low + (uint32_t)rng_below(&r, low);
    }
}

static void check_at(const iron__divisor *d, uint32_t p, uint32_t quotient, uint32_t remainder) {
    if (iron__divisor_quotient(d, p) != quotient)
        fail_msg("vocab %u: %u / it gave %u", d->vocab, p, iron__divisor_quotient(d, p));
    if (iron__divisor_remainder(d, p) != remainder)
        fail_msg("vocab %u: %u %% it gave %u", d->vocab, p, iron__divisor_remainder(d, p));
    if (d->has_half && iron__divisor_half_quotient(d, p) != quotient)
        fail_msg("vocab %u: half way, %u / it gave %u", d->vocab, p,
                 iron__divisor_half_quotient(d, p));
}

/* p = mV and p = mV - 1, m at least 1. */
static void check_multiple(const iron__divisor *d, uint32_t m) {
    uint32_t p = m * d->vocab;

    check_at(d, p, m, 0);
    check_at(d, p - 1, m - 1, d->vocab - 1);
}

static void check_sampled(const iron__divisor *d, uint32_t last, rng *random) {
    uint32_t samples = is_long_test() ? 100 * SAMPLES : SAMPLES;

    for (uint32_t k = 0; k < samples; k++) {
        check_multiple(d, 1 + k % last);
        check_multiple(d, last - k % last);
        check_multiple(d, 1 + (uint32_t)rng_below(random, last));
    }
}

static void check_vocab(uint32_t vocab, rng *random) {
    iron__divisor d = iron__divisor_make(vocab);
    uint32_t last = UINT32_MAX / vocab;

    assert_int_equal(d.vocab, vocab);
    check_at(&d, 0, 0, 0);
    check_at(&d, 1, 0, 1);
    check_at(&d, UINT32_MAX, UINT32_MAX / vocab, UINT32_MAX % vocab);
    if (vocab < ALL_MULTIPLES) {
        check_sampled(&d, last, random);
        return;
    }
    for (uint32_t m = 1; m <= last; m++)
        check_multiple(&d, m);
}

static void multiples_are_exact(void **state) {
    static uint32_t vocabs[VOCABS];
    rng random = {11};

    (void)state;
    choose_vocabs(vocabs);
    for (size_t k = 0; k < VOCABS; k++)
        check_vocab(vocabs[k], &random);
}

/* Random p against the operators / and %: does not depend on monotonicity. */
static void random_numbers_are_exact(void **state) {
    static uint32_t vocabs[VOCABS];
    rng random = {13};

    (void)state;
    choose_vocabs(vocabs);
    for (size_t k = 0; k < VOCABS; k++) {
        iron__divisor d = iron__divisor_make(vocabs[k]);

        for (int n = 0; n < 1000; n++) {
            uint32_t p = rng_u32(&random);

            check_at(&d, p, p / vocabs[k], p % vocabs[k]);
        }
    }
}

/* What divisor.h says about the fields; and the vocabularies above cover all three methods. */
static void fields_are_as_documented(void **state) {
    static uint32_t vocabs[VOCABS];
    size_t powers = 0, halves = 0, evens_without_half = 0, addends = 0, plain = 0;

    (void)state;
    choose_vocabs(vocabs);
    for (size_t k = 0; k < VOCABS; k++) {
        uint32_t v = vocabs[k];
        iron__divisor d = iron__divisor_make(v);
        bool is_power = __builtin_popcount(v) == 1;

        assert_int_equal(d.is_power_of_two, is_power);
        assert_in_range(d.shift, 32, 63);
        if (d.has_half) {
            assert_true(v % 2 == 0 && !is_power);
            assert_int_equal(d.half_preshift, __builtin_ctz(v));
            assert_true(d.half_multiplier < UINT32_C(1) << 31);
        } else {
            assert_true(v % 4 != 0 || is_power);
        }
        powers += is_power;
        halves += d.has_half;
        evens_without_half += v % 2 == 0 && !is_power && !d.has_half;
        addends += d.addend != 0;
        plain += v % 2 == 1 && d.addend == 0;
    }
    assert_true(powers >= 30 && halves > 50 && evens_without_half > 10);
    assert_true(addends > 50 && plain > 50);
}

/* A range of p that one thread compares. */
typedef struct sweep {
    pthread_t thread;
    uint32_t vocab;
    uint64_t begin, end;
    char difference[160]; /* "" if there is none */
} sweep;

#define CHUNK ((size_t)1 << 20)

static void compare_quotients(sweep *s, const iron__divisor *d, uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end; at++) {
        uint32_t p = (uint32_t)at, q = p / d->vocab, r = p % d->vocab;
        bool is_right = iron__divisor_quotient(d, p) == q && iron__divisor_remainder(d, p) == r &&
                        (!d->has_half || iron__divisor_half_quotient(d, p) == q);

        if (!is_right)
            snprintf(s->difference, sizeof s->difference, "vocab %u, p %u", d->vocab, p);
    }
}

/* Rows that share a function (vector and champion do) are run once. */
static bool is_repeated(size_t row) {
    for (size_t k = 0; k < row; k++)
        if (iron__tokens_variant_at(k)->reduce == iron__tokens_variant_at(row)->reduce)
            return true;
    return false;
}

static void compare_rows(sweep *s, const iron__tokens_run *run, iron__contribution want) {
    for (size_t k = 0; k < iron__tokens_variant_count(); k++) {
        const iron__tokens_variant *row = iron__tokens_variant_at(k);
        iron__contribution got;

        if (!iron__tokens_variant_runs_here(row) || is_repeated(k))
            continue;
        got = row->reduce(run);
        if (got.count != want.count || got.xors != want.xors || got.sum != want.sum)
            snprintf(s->difference, sizeof s->difference, "%s, vocab %u, p's from %llu on",
                     row->name, s->vocab, (unsigned long long)run->first);
    }
}

/* The tokens whose positioned values are p = at, at + 1, ...; and their contribution. */
static iron__contribution fill_chunk(uint32_t *tokens, size_t count, uint64_t at, uint32_t vocab) {
    iron__contribution want = {.count = count};

    for (size_t k = 0; k < count; k++) {
        uint32_t p = (uint32_t)(at + k);

        tokens[k] = p - iron__position_hash(at + k);
        want.xors ^= p;
        want.sum += p % vocab;
    }
    return want;
}

static void *sweep_main(void *argument) {
    sweep *s = argument;
    iron__divisor d = iron__divisor_make(s->vocab);
    uint32_t *tokens = malloc(CHUNK * sizeof *tokens);

    if (!tokens)
        snprintf(s->difference, sizeof s->difference, "out of memory");
    for (uint64_t at = s->begin; tokens && at < s->end; at += CHUNK) {
        size_t count = s->end - at < CHUNK ? (size_t)(s->end - at) : CHUNK;
        iron__contribution want = fill_chunk(tokens, count, at, s->vocab);
        iron__tokens_run run = {tokens, count, at, &d, NULL};

        compare_quotients(s, &d, at, at + count);
        compare_rows(s, &run, want);
    }
    free(tokens);
    return NULL;
}

static void sweep_windows(uint32_t vocab) {
    const uint64_t all = UINT64_C(1) << 32;
    const uint64_t window = UINT64_C(1) << 19;
    const uint64_t starts[] = {0, all - window, all / 2 - window / 2, UINT64_C(0x12345678)};

    for (size_t k = 0; k < COUNT(starts); k++) {
        sweep s = {.vocab = vocab, .begin = starts[k], .end = starts[k] + window};

        sweep_main(&s);
        assert_string_equal(s.difference, "");
    }
}

static void sweep_all(uint32_t vocab) {
    enum { THREADS = 4 };
    const uint64_t share = (UINT64_C(1) << 32) / THREADS;
    sweep parts[THREADS];

    for (unsigned k = 0; k < THREADS; k++) {
        parts[k] = (sweep){.vocab = vocab, .begin = k * share, .end = (k + 1) * share};
        assert_int_equal(pthread_create(&parts[k].thread, NULL, sweep_main, &parts[k]), 0);
    }
    for (unsigned k = 0; k < THREADS; k++)
        assert_int_equal(pthread_join(parts[k].thread, NULL), 0);
    for (unsigned k = 0; k < THREADS; k++)
        assert_string_equal(parts[k].difference, "");
}

static void every_number_and_every_row_agree(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(swept); k++) {
        if (is_long_test())
            sweep_all(swept[k]);
        else
            sweep_windows(swept[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multiples_are_exact),
        cmocka_unit_test(random_numbers_are_exact),
        cmocka_unit_test(fields_are_as_documented),
        cmocka_unit_test(every_number_and_every_row_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
