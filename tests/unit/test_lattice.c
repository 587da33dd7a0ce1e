/* SPDX-License-Identifier: MIT */
/*
 * test_lattice.c: the two quantizers against a slow implementation of their definition.
 *
 * The library uses one table. Here every answer is found by search: all points are compared, in
 * 128-bit integers that represent any double from 1 to 65,535 exactly, and the value that x folds
 * to is searched among L_0 ... L_last. The lattices are the default, the smallest, the widest, the
 * one with the most points, and random ones. The values are those that break tables: ties, their
 * two neighbouring doubles, the ends, zero of both signs, denormals, huge numbers and infinity.
 */
#include "support.h"

#include "core/lattice.h"
#include "selftest/golden.h"

#include <float.h>
#include <math.h>

typedef __int128 wide;

/* v >= 1 in units of 2^-52, exactly. */
static wide scaled(double v) { return (wide)ldexp(v, 52); }

static wide distance(wide a, wide b) { return a < b ? b - a : a - b; }

/* The point nearest to v in [L_0, L_last]; a tie goes to the lower one. */
static uint32_t slow_nearest(const iron_lattice *l, double v) {
    const uint32_t *points = iron_lattice_points(l);
    uint32_t best = points[0];

    for (uint32_t k = 1; k < iron_lattice_count(l); k++)
        if (distance(scaled(v), scaled(points[k])) < distance(scaled(v), scaled(best)))
            best = points[k];
    return best;
}

static double slow_real(const iron_lattice *l, double c) {
    const uint32_t *points = iron_lattice_points(l);
    double first = points[0], last = points[iron_lattice_count(l) - 1];
    double v = fabs(c);

    if (c == 0)
        return 0;
    if (v < first)
        v = first;
    if (v > last)
        v = last;
    return copysign(slow_nearest(l, v), c);
}

/* Searches for the v in L_0 ... L_last that is congruent to x; then its nearest point. */
static uint32_t slow_xor(const iron_lattice *l, uint32_t x) {
    const uint32_t *points = iron_lattice_points(l);
    int64_t first = points[0], last = points[iron_lattice_count(l) - 1];

    for (int64_t v = first; v <= last; v++)
        if (((int64_t)x - v) % (last - first + 1) == 0)
            return slow_nearest(l, (double)v);
    fail_msg("no number folds to %u", x);
    return 0;
}

static iron_lattice *make(const uint32_t *points, uint32_t count) {
    iron_lattice *l = NULL;
    iron_error err;

    assert_ok(iron_lattice_create(points, count, &l, &err), &err);
    assert_non_null(l);
    return l;
}

static void check_xor(const iron_lattice *l, uint32_t x) {
    uint32_t got = iron_lattice_quantize_xor(l, x);

    if (got != slow_xor(l, x))
        fail_msg("xor %u gave %u", x, got);
}

static void check_real(const iron_lattice *l, double c) {
    double got = iron_lattice_quantize_real(l, c), want = slow_real(l, c);

    if (got != want || (got == 0 && signbit(got)))
        fail_msg("%.17g gave %.17g, not %.17g", c, got, want);
}

static void check_both_signs(const iron_lattice *l, double c) {
    check_real(l, c);
    check_real(l, -c);
}

/* The double next to c > 0, up or down: nextafter would need libm. */
static double neighbour(double c, int64_t step) {
    int64_t bits;

    memcpy(&bits, &c, sizeof bits);
    bits += step;
    memcpy(&c, &bits, sizeof c);
    return c;
}

/* A tie and the doubles next to it, on both sides. */
static void check_around(const iron_lattice *l, double c) {
    check_both_signs(l, c);
    check_both_signs(l, neighbour(c, -1));
    check_both_signs(l, neighbour(c, 1));
}

static void check_extremes(const iron_lattice *l) {
    static const double extremes[] = {0,      DBL_TRUE_MIN, DBL_MIN, 1e-300, 0x1p-149, 0x1p-96,
                                      0.4999, 1e10,         0x1p31,  0x1p32, 1e300,    DBL_MAX};

    for (size_t k = 0; k < COUNT(extremes); k++)
        check_both_signs(l, extremes[k]);
    /* the public function takes finite numbers; internal products may overflow */
    assert_true(iron__lattice_real(l, INFINITY) == l->last);
    assert_true(iron__lattice_real(l, -INFINITY) == -(double)l->last);
}

static void check_borders(const iron_lattice *l) {
    const uint32_t *points = iron_lattice_points(l);
    uint32_t count = iron_lattice_count(l);

    for (uint32_t k = 0; k < count; k++) {
        check_around(l, points[k]);
        check_xor(l, points[k]);
        assert_int_equal(iron_lattice_quantize_xor(l, points[k]), points[k]);
        assert_true(iron_lattice_quantize_real(l, points[k]) == points[k]);
        if (k + 1 < count)
            check_around(l, (points[k] + points[k + 1]) / 2.0);
    }
}

static void check_random(const iron_lattice *l, int rounds, rng *r) {
    for (int k = 0; k < rounds; k++) {
        uint32_t x = rng_u32(r) >> rng_below(r, 32);

        check_xor(l, x);
        check_both_signs(l, ldexp((double)rng_u32(r), -(int)rng_below(r, 40)));
        check_both_signs(l, (double)(rng_u32(r) % (2 * l->last + 8)) / 2);
    }
    check_xor(l, 0);
    check_xor(l, UINT32_MAX);
    check_xor(l, UINT32_C(1) << 31);
}

static void check_lattice(const uint32_t *points, uint32_t count, rng *r) {
    iron_lattice *l = make(points, count);
    uint32_t span = l->last - l->first + 1;

    check_extremes(l);
    check_borders(l);
    check_random(l, span > 4096 ? 60 : 400, r);
    for (uint32_t x = 0; x < 3 * span && span <= 1024; x++)
        check_xor(l, x);
    iron_lattice_destroy(l);
}

static void golden_tables(void **state) {
    const iron__golden *g = &iron__golden_vectors;
    iron_lattice *l = make(NULL, 0);

    (void)state;
    assert_true(g->quantize_xor_count > 0 && g->quantize_real_count > 0);
    for (size_t k = 0; k < g->quantize_xor_count; k++)
        assert_int_equal(iron_lattice_quantize_xor(l, (uint32_t)g->quantize_xor[k].from),
                         g->quantize_xor[k].to);
    for (size_t k = 0; k < g->quantize_real_count; k++)
        assert_true(iron_lattice_quantize_real(l, g->quantize_real[k].from) ==
                    g->quantize_real[k].to);
    iron_lattice_destroy(l);
}

static void default_points(void **state) {
    static const uint32_t points[] = {7, 15, 23, 31, 47, 63, 95, 127, 191, 255, 383, 511};
    iron_lattice *l = make(NULL, 0);

    (void)state;
    assert_int_equal(iron_lattice_count(l), COUNT(points));
    assert_memory_equal(iron_lattice_points(l), points, sizeof points);
    /* ties go to the smaller magnitude for both signs */
    assert_true(iron_lattice_quantize_real(l, 11.0) == 7);
    assert_true(iron_lattice_quantize_real(l, -11.0) == -7);
    assert_true(iron_lattice_quantize_real(l, 11.5) == 15);
    assert_true(iron_lattice_quantize_real(l, 0.001) == 7);
    assert_true(iron_lattice_quantize_real(l, -1e9) == -511);
    iron_lattice_destroy(l);
}

static void chosen_lattices_against_the_definition(void **state) {
    uint32_t full[IRON_LATTICE_MAX], spread[IRON_LATTICE_MAX];
    rng r = {31};

    (void)state;
    for (uint32_t k = 0; k < IRON_LATTICE_MAX; k++) {
        full[k] = k + 1;
        spread[k] = 65535 - 1000 * (IRON_LATTICE_MAX - 1 - k);
    }
    check_lattice(NULL, 0, &r);
    check_lattice((uint32_t[]){1, 2}, 2, &r);
    check_lattice((uint32_t[]){1, 65535}, 2, &r);
    check_lattice((uint32_t[]){65534, 65535}, 2, &r);
    check_lattice((uint32_t[]){3, 10, 100, 1000, 4000}, 5, &r);
    check_lattice(full, IRON_LATTICE_MAX, &r);
    check_lattice(spread, IRON_LATTICE_MAX, &r);
}

static void random_lattices_against_the_definition(void **state) {
    rng r = {37};

    (void)state;
    for (int n = 0; n < 60; n++) {
        uint32_t points[IRON_LATTICE_MAX];
        uint32_t count = 2 + (uint32_t)rng_below(&r, IRON_LATTICE_MAX - 1);
        uint32_t step = n % 10 == 0 ? 1000 : 1 + (uint32_t)rng_below(&r, 30);
        uint32_t at = 1 + (uint32_t)rng_below(&r, 500);

        for (uint32_t k = 0; k < count; k++, at += 1 + (uint32_t)rng_below(&r, step))
            points[k] = at;
        check_lattice(points, count, &r);
    }
}

static void refuse(const uint32_t *points, uint32_t count, const char *named) {
    iron_lattice *l = (iron_lattice *)&l; /* anything but NULL */
    iron_error err;

    assert_refused(iron_lattice_create(points, count, &l, &err), IRON_E_ARG, &err);
    assert_says(&err, named);
    assert_null(l);
    assert_int_equal(iron_lattice_create(points, count, &l, NULL), IRON_E_ARG);
}

static void bad_points_are_refused(void **state) {
    uint32_t many[IRON_LATTICE_MAX + 1];

    (void)state;
    for (uint32_t k = 0; k <= IRON_LATTICE_MAX; k++)
        many[k] = k + 1;
    refuse(many, IRON_LATTICE_MAX + 1, "65");
    refuse(many, 1, "1 points");
    refuse(many, 0, "0 points");
    refuse((uint32_t[]){0, 5}, 2, "0");
    refuse((uint32_t[]){5, 65536}, 2, "65536");
    refuse((uint32_t[]){5, UINT32_MAX}, 2, "4294967295");
    refuse((uint32_t[]){7, 7}, 2, "7");
    refuse((uint32_t[]){7, 15, 12, 31}, 4, "12");
}

static void points_are_copied(void **state) {
    uint32_t points[] = {3, 10, 100};
    iron_lattice *l = make(points, 3);

    (void)state;
    memset(points, 0, sizeof points);
    assert_int_equal(iron_lattice_points(l)[1], 10);
    assert_int_equal(iron_lattice_quantize_xor(l, 100), 100);
    iron_lattice_destroy(l);
    iron_lattice_destroy(NULL);
}

static void no_memory_is_reported(void **state) {
    ledger books = {.fail_at = 1};
    iron_allocator allocator = ledger_allocator(&books);
    iron_lattice *l = (iron_lattice *)&l;
    iron_error err;

    (void)state;
    assert_refused(iron__lattice_create(NULL, 0, &allocator, &l, &err), IRON_E_NOMEM, &err);
    assert_null(l);
    books = (ledger){0};
    assert_ok(iron__lattice_create(NULL, 0, &allocator, &l, &err), &err);
    assert_int_equal(books.out, 1);
    iron_lattice_destroy(l);
    assert_int_equal(books.out, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_tables),
        cmocka_unit_test(default_points),
        cmocka_unit_test(chosen_lattices_against_the_definition),
        cmocka_unit_test(random_lattices_against_the_definition),
        cmocka_unit_test(bad_points_are_refused),
        cmocka_unit_test(points_are_copied),
        cmocka_unit_test(no_memory_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
