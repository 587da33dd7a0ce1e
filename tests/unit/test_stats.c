/* SPDX-License-Identifier: MIT */
/*
 * test_stats.c: statistics of known data, by hand and from published tables.
 *
 * The ranks of the median's interval are those of the binomial tables in textbooks on nonparametric
 * statistics. The data with known statistics is Newcomb's of 1882 on the speed of light (Stigler
 * 1977), which has two outliers.
 */
#include "support.h"

#include "arena/arena_internal.h"

#include <math.h>

static void assert_near(double got, double wanted) {
    if (!(fabs(got - wanted) <= 1e-9 * (fabs(wanted) + 1)))
        fail_msg("%.12g should be %.12g", got, wanted);
}

static void nothing_is_all_zero(void **state) {
    iron__statistics zero = {0}, s = iron__statistics_of(NULL, 0);

    (void)state;
    assert_memory_equal(&s, &zero, sizeof s);
    assert_false(iron__statistics_is_within(&s, 1));
}

static void few_samples(void **state) {
    const double one[] = {3}, two[] = {4, 2}, five[] = {5, 1, 4, 2, 30};
    iron__statistics s = iron__statistics_of(one, 1);

    (void)state;
    assert_true(s.median == 3 && s.mean == 3 && s.min == 3 && s.p95 == 3);
    assert_true(s.max == 3 && s.noise_percent == 0 && s.count == 1);
    s = iron__statistics_of(two, 2);
    assert_true(s.median == 3 && s.mean == 3 && s.min == 2 && s.p95 == 4);
    assert_true(s.max == 4);
    assert_near(s.noise_percent, 100 * sqrt(2) / 3);
    s = iron__statistics_of(five, 5);
    assert_true(s.median == 4 && s.min == 1 && s.max == 30 && s.p95 == 30);
    assert_near(s.mean, 8.4);
    /* squares 11.56, 54.76, 19.36, 40.96, 466.56: their sum is 593.2 */
    assert_near(s.noise_percent, 100 * sqrt(593.2 / 4) / 8.4);
    assert_true(s.low == 0 && s.high == 0 && s.coverage == 0);  /* no interval */
    assert_true(five[0] == 5 && five[1] == 1 && five[4] == 30); /* unchanged */
}

/* Two that agree and one that does not: by the distances' median the noise would be 1 %. */
static void an_outlier_is_noise(void **state) {
    const double three[] = {125, 197, 124};
    iron__statistics s = iron__statistics_of(three, 3);

    (void)state;
    /* the mean is 446/3; 9 times the squares of the distances: 71^2 + 145^2 + 74^2 = 31542 */
    assert_near(s.noise_percent, 100 * sqrt(31542.0 / 9 / 2) / (446.0 / 3));
    assert_true(s.noise_percent > 25);
}

/* Nanoseconds over 24,800: median 27, mean 26.21, standard deviation 10.745 (Stigler 1977). */
static void newcombs_speed_of_light(void **state) {
    static const double light[] = {
        28, 26, 33, 24, 34, -44, 27, 16, 40, -2, 29, 22, 24, 21, 25, 30, 23, 29, 31, 19, 24, 20,
        36, 32, 36, 28, 25, 21,  28, 29, 37, 25, 28, 26, 30, 32, 36, 26, 30, 22, 36, 23, 27, 27,
        28, 27, 31, 27, 26, 33,  26, 32, 32, 24, 39, 28, 24, 25, 32, 25, 29, 27, 28, 29, 16, 23};
    double copy[COUNT(light)];
    iron__statistics s = iron__statistics_of(light, COUNT(light));

    (void)state;
    assert_int_equal(COUNT(light), 66);
    assert_near(s.median, 27);
    assert_near(s.mean, 1730.0 / 66);
    assert_near(s.min, -44);
    assert_true(fabs(s.noise_percent * s.mean / 100 - 10.745) < 0.001);
    /* 66 samples: ranks 25 and 42 */
    assert_near(s.low, 26);
    assert_near(s.high, 29);
    for (size_t k = 0; k < COUNT(light); k++)
        copy[k] = light[COUNT(light) - 1 - k];
    assert_true(iron__statistics_of(copy, COUNT(light)).median == s.median);
}

/* Samples 1 ... n, shuffled: a bound's value is its rank. */
static iron__statistics of_ranks(size_t count) {
    double samples[IRON_SAMPLES_MAX];
    rng r = {count};

    for (size_t k = 0; k < count; k++)
        samples[k] = (double)(k + 1);
    for (size_t k = count; k > 1; k--) {
        size_t other = (size_t)rng_below(&r, k);
        double kept = samples[k - 1];

        samples[k - 1] = samples[other];
        samples[other] = kept;
    }
    return iron__statistics_of(samples, count);
}

static void ranks_are_the_binomial_tables(void **state) {
    static const struct {
        size_t count;
        double low, high;
    } table[] = {{6, 1, 6},    {7, 1, 7},    {8, 1, 8},     {9, 2, 8},
                 {10, 2, 9},   {11, 2, 10},  {12, 3, 10},   {15, 4, 12},
                 {20, 6, 15},  {25, 8, 18},  {30, 10, 21},  {40, 14, 27},
                 {50, 18, 33}, {66, 25, 42}, {100, 40, 61}, {1000, 469, 532}};

    (void)state;
    for (size_t k = 0; k < COUNT(table); k++) {
        iron__statistics s = of_ranks(table[k].count);

        if (s.low != table[k].low || s.high != table[k].high)
            fail_msg("%zu samples: ranks %g and %g should be %g and %g", table[k].count, s.low,
                     s.high, table[k].low, table[k].high);
        assert_near(s.median, (double)(table[k].count + 1) / 2);
    }
}

/* Whole numbers of sequences of heads and tails: of 2^6, 2 are one-sided; of 2^9, 2 (1 + 9); of
 * 2^12, 2 (1 + 12 + 66). */
static void coverage_is_that_of_the_ranks(void **state) {
    (void)state;
    assert_near(of_ranks(6).coverage, 1 - 2.0 / 64);
    assert_near(of_ranks(8).coverage, 1 - 2.0 / 256);
    assert_near(of_ranks(9).coverage, 1 - 2.0 * 10 / 512);
    assert_near(of_ranks(12).coverage, 1 - 2.0 * 79 / 4096);
    assert_near(of_ranks(5).coverage, 0);
}

/* From one row of Pascal's triangle to the next, halved: the probabilities of 0 ... n heads in n
 * throws. */
static void throw_again(double *chances, size_t n) {
    for (size_t k = n; k > 0; k--)
        chances[k] = (chances[k] + chances[k - 1]) / 2;
    chances[0] /= 2;
}

static double at_most(const double *chances, size_t heads) {
    double sum = 0;

    for (size_t k = 0; k <= heads; k++)
        sum += chances[k];
    return sum;
}

static void every_interval_is_the_narrowest(void **state) {
    static double chances[IRON_SAMPLES_MAX + 1] = {1};

    (void)state;
    for (size_t n = 1; n <= IRON_SAMPLES_MAX; n++) {
        iron__statistics s = of_ranks(n);
        size_t rank = (size_t)s.low;

        throw_again(chances, n);
        if (n < 6)
            continue;
        assert_near(s.coverage, 1 - 2 * at_most(chances, rank - 1));
        assert_true(s.high == (double)(n + 1 - rank));
        assert_true(2 * at_most(chances, rank - 1) <= 0.05);
        assert_true(2 * at_most(chances, rank) > 0.05);
    }
}

static void p95_is_the_nearest_rank(void **state) {
    static const size_t counts[] = {1, 19, 20, 21, 40, 100, 101, 1000};
    static const double ranks[] = {1, 19, 19, 20, 38, 95, 96, 950};

    (void)state;
    for (size_t k = 0; k < COUNT(counts); k++)
        assert_true(of_ranks(counts[k]).p95 == ranks[k]);
}

static double square(double x) { return x * x; }

/* About 95 of 100 intervals contain the median of their distribution, however skewed the samples
 * are. */
static void intervals_have_their_coverage(void **state) {
    unsigned held = 0, trials = 4000;
    rng r = {77};

    (void)state;
    for (unsigned t = 0; t < trials; t++) {
        double samples[25];
        iron__statistics s;

        for (size_t k = 0; k < COUNT(samples); k++)
            samples[k] = square((double)(rng_next(&r) >> 11) / 9007199254740992.0);
        s = iron__statistics_of(samples, COUNT(samples));
        held += s.low <= 0.25 && 0.25 <= s.high;
    }
    /* ranks 8 and 18 of 25 cover 95.7 %; the bounds are six standard deviations away */
    assert_in_range(held, 3750, 3905);
}

static void within_a_fraction(void **state) {
    const double steady[] = {10, 10, 10, 10, 10, 10}, wide[] = {9.5, 10, 10, 10, 10, 10.2};
    iron__statistics s = iron__statistics_of(steady, 6);

    (void)state;
    assert_true(iron__statistics_is_within(&s, 0));
    s = iron__statistics_of(steady, 5);
    assert_false(iron__statistics_is_within(&s, 1));
    s = iron__statistics_of(wide, 6);
    assert_true(iron__statistics_is_within(&s, 0.0501));
    assert_false(iron__statistics_is_within(&s, 0.049)); /* below */
    s.low = 10;
    assert_true(iron__statistics_is_within(&s, 0.0201));
    assert_false(iron__statistics_is_within(&s, 0.019)); /* above */
}

static void unusual_samples(void **state) {
    double samples[IRON_SAMPLES_MAX + 1];
    const double zeros[8] = {0};
    iron__statistics s = iron__statistics_of(zeros, 8);

    (void)state;
    assert_true(s.median == 0 && s.noise_percent == 0);
    for (size_t k = 0; k < COUNT(samples); k++)
        samples[k] = k % 3 == 0 ? (double)NAN : k % 3 == 1 ? (double)INFINITY : (double)k;
    s = iron__statistics_of(samples, COUNT(samples));
    assert_int_equal(s.count, IRON_SAMPLES_MAX);
    assert_true(s.min == 2);
    assert_false(iron__statistics_is_within(&s, 0.01));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_all_zero),
        cmocka_unit_test(few_samples),
        cmocka_unit_test(an_outlier_is_noise),
        cmocka_unit_test(newcombs_speed_of_light),
        cmocka_unit_test(ranks_are_the_binomial_tables),
        cmocka_unit_test(coverage_is_that_of_the_ranks),
        cmocka_unit_test(every_interval_is_the_narrowest),
        cmocka_unit_test(p95_is_the_nearest_rank),
        cmocka_unit_test(intervals_have_their_coverage),
        cmocka_unit_test(within_a_fraction),
        cmocka_unit_test(unusual_samples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
