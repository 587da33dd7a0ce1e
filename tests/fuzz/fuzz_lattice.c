/* SPDX-License-Identifier: MIT */
/*
 * fuzz_lattice.c: a user's lattice. The input is the text of --lattice up to a zero byte, then
 * numbers to quantize: eight bytes each, taken as a 32-bit integer and as a double.
 *
 * The text is accepted iff it consists of 32-bit numbers separated by commas; the points are
 * accepted iff there are 2 ... 64 of them, increasing, in 1 ... 65,535. An accepted lattice maps
 * each of its points to itself, and every number to the point that a linear search from the
 * definition finds, with ties going down.
 */
#include "fuzz.h"
#include "options.h"

#include <math.h>

/* The point nearest to v: the first whose border with the next one is not below v. */
static uint32_t nearest(const uint32_t *points, uint32_t count, double v) {
    uint32_t k = 0;

    while (k + 1 < count && v > ((double)points[k] + (double)points[k + 1]) / 2)
        k++;
    return points[k];
}

/* The number that is x modulo the width of the lattice and lies between its ends. */
static uint32_t fold(const uint32_t *points, uint32_t count, uint32_t x) {
    uint64_t span = points[count - 1] - points[0] + UINT64_C(1);
    uint64_t v = x % span;

    if (v < points[0])
        v += (points[0] - v + span - 1) / span * span;
    return (uint32_t)v;
}

static void check_values(const iron_lattice *l, uint32_t x, double c) {
    const uint32_t *points = iron_lattice_points(l);
    uint32_t count = iron_lattice_count(l);
    uint32_t to = iron_lattice_quantize_xor(l, x);
    double real, wanted;

    FUZZ_REQUIRE(to == nearest(points, count, fold(points, count, x)));
    FUZZ_REQUIRE(iron_lattice_quantize_xor(l, to) == to);
    if (!isfinite(c))
        return;
    real = iron_lattice_quantize_real(l, c);
    wanted = c == 0 ? 0 : copysign(nearest(points, count, fabs(c)), c);
    FUZZ_REQUIRE(real == wanted);
    FUZZ_REQUIRE(real == 0 || iron_lattice_quantize_real(l, real) == real);
    FUZZ_REQUIRE(iron_lattice_quantize_real(l, -c) == -real);
}

/* Around every point and border, where tables go wrong, and what the input asks for. */
static void check_lattice(const iron_lattice *l, fuzz_input *in) {
    const uint32_t *points = iron_lattice_points(l);
    uint32_t count = iron_lattice_count(l);

    for (uint32_t k = 0; k < count; k++) {
        double next = points[k + 1 < count ? k + 1 : k], border = (points[k] + next) / 2;

        FUZZ_REQUIRE(iron_lattice_quantize_xor(l, points[k]) == points[k]);
        check_values(l, points[k] - 1, points[k]);
        check_values(l, (uint32_t)border, border);
        check_values(l, (uint32_t)border + 1, nextafter(border, INFINITY));
        check_values(l, (uint32_t)border - 1, nextafter(border, 0));
    }
    for (unsigned k = 0; in->left > 0 && k < 64; k++) {
        uint64_t word = fuzz_word(in, 8);
        double real;

        memcpy(&real, &word, sizeof real);
        check_values(l, (uint32_t)word, real);
        check_values(l, (uint32_t)(word >> 32), (double)(int64_t)word / 65536);
    }
}

static bool is_lattice(const uint32_t *points, uint32_t count) {
    bool is_good = count >= 2 && count <= 64;

    for (uint32_t k = 0; is_good && k < count; k++)
        is_good = points[k] >= (k ? points[k - 1] + 1 : 1) && points[k] <= 65535;
    return is_good;
}

/* Numbers of 32 bits with commas between them; of at most 23 digits, zeros in front included. */
static bool is_list(const char *at) {
    for (;; at++) {
        size_t digits = strspn(at, "0123456789");

        if (digits == 0 || digits > 23 || strtoull(at, NULL, 10) > UINT32_MAX)
            return false;
        at += digits;
        if (*at != ',')
            return *at == '\0';
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    char *text = fuzz_text(&in);
    uint32_t points[LATTICE_ROOM], count = 0;
    iron_lattice *lattice = NULL;
    iron_error err;

    if (!fuzz_refused(parse_lattice(text, points, &count, &err), &err)) {
        FUZZ_REQUIRE(is_list(text) && count >= 1 && count <= LATTICE_ROOM);
        if (fuzz_refused(iron_lattice_create(points, count, &lattice, &err), &err)) {
            FUZZ_REQUIRE(!lattice && !is_lattice(points, count));
        } else {
            FUZZ_REQUIRE(is_lattice(points, count));
            FUZZ_REQUIRE(iron_lattice_count(lattice) == count);
            FUZZ_REQUIRE(memcmp(iron_lattice_points(lattice), points, 4 * count) == 0);
            check_lattice(lattice, &in);
        }
    } else {
        FUZZ_REQUIRE(!is_list(text));
    }
    iron_lattice_destroy(lattice);
    free(text);
    return 0;
}
