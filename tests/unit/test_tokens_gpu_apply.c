/* SPDX-License-Identifier: MIT */
/*
 * test_tokens_gpu_apply.c: apply.k computes a batch's potential in integers, since not every device
 * has doubles, and must give the same bits as the definition, which uses doubles. The kernel is
 * compiled here as C, so millions of cases are fast and no device is needed.
 */
#include "support.h"

#include "core/contribution.h"
#include "core/divisor.h"
#include "core/lattice.h"
#include "gpu/kernel_words.h"
#include "ops/tokens/kernel_params.h"

/* The words of kernels, for a single thread. */
#define K_KERNEL(n) static void __attribute__((unused))
#define K_DEVICE    static inline __attribute__((unused))
#define K_GLOBAL
#define K_LOCAL_VAR static
#define K_LOCAL_PTR
#define K_RESTRICT             restrict
#define K_THREAD               0u
#define K_GROUP                0u
#define K_GROUP_Y              0u
#define K_BARRIER()            ((void)0)
#define K_ATOMIC_ADD_U32(p, v) ((void)(*(p) += (v)))
#define K_ATOMIC_XOR_U32(p, v) ((void)(*(p) ^= (v)))
#define K_ATOMIC_ADD_U64(p, v) ((void)(*(p) += (v)))
#define k_abs(v)               fabsf(v)

static inline k_u64 k_mul_high_u64(k_u64 a, k_u64 b) {
    return (k_u64)(((unsigned __int128)a * b) >> 64);
}

/* Without libm, which the tests do not link. Only small numbers are used. */
static inline k_f32 k_ceil(k_f32 v) {
    k_f32 whole = (k_f32)(k_i32)v;

    return whole < v ? whole + 1 : whole;
}

static inline k_u32 k_leading_zeros_u64(k_u64 v) { return (k_u32)__builtin_clzll(v); }

static inline k_f32 k_f32_of_bits(k_u32 bits) {
    k_f32 value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include "ops/tokens/apply.k"
#pragma GCC diagnostic pop

/* sum and count within the limits of a batch: count * vocab <= 2^62. */
static void check(uint64_t sum, uint64_t count, uint32_t vocab) {
    iron__contribution c = {count, sum, 0};
    double inverse = 1.0 / (double)(vocab / 2);
    float want = iron__contribution_potential(c, vocab), got;
    uint64_t bits;

    memcpy(&bits, &inverse, sizeof bits);
    got = apply_potential(sum, count, vocab / 2, bits);
    if (memcmp(&got, &want, sizeof got) != 0)
        fail_msg("sum %llu count %llu vocab %u: %a, expected %a", (unsigned long long)sum,
                 (unsigned long long)count, vocab, (double)got, (double)want);
}

static const uint32_t vocabs[] = {2,     3,     4,      5,      6,       7,          10,
                                  255,   256,   32000,  50257,  50304,   65535,      65536,
                                  65537, 99999, 128256, 151936, 1048577, 2147483647, 2147483648};

static uint64_t count_max(uint32_t vocab) { return (UINT64_C(1) << 62) / vocab; }

/* Around all values where a rounding or an exponent changes. */
static void potentials_at_the_edges(void **state) {
    (void)state;
    for (size_t v = 0; v < COUNT(vocabs); v++) {
        uint64_t most = count_max(vocabs[v]), half = vocabs[v] / 2;
        const uint64_t counts[] = {1,       2,        3,        16,  786432, UINT64_C(1) << 24,
                                   1 << 30, most / 3, most - 1, most};

        for (size_t k = 0; k < COUNT(counts); k++) {
            uint64_t n = counts[k] < most ? counts[k] : most, top = n * (vocabs[v] - 1);

            for (uint64_t off = 0; off < 70; off++) {
                check(off < top ? off : top, n, vocabs[v]);
                check(off < top ? top - off : 0, n, vocabs[v]);
                check(n * half + off <= top ? n * half + off : top, n, vocabs[v]);
                check(off < n * half ? n * half - off : 0, n, vocabs[v]);
            }
            for (unsigned bit = 0; bit < 62; bit++)
                for (uint64_t off = 0; off < 5; off++) {
                    uint64_t sum = n * half + (UINT64_C(1) << bit) + off - 2;

                    if (sum <= top)
                        check(sum, n, vocabs[v]);
                }
        }
    }
}

static void potentials_at_random(void **state) {
    uint64_t rounds = is_long_test() ? 200000000 : 3000000;
    rng r = {2024};

    (void)state;
    for (uint64_t k = 0; k < rounds; k++) {
        uint32_t vocab = k % 3 ? vocabs[rng_below(&r, COUNT(vocabs))]
                               : 2 + (uint32_t)rng_below(&r, UINT64_C(2147483647));
        uint64_t count = 1 + rng_next(&r) % (count_max(vocab) >> rng_below(&r, 30));
        uint64_t top = count * (vocab - 1);

        check(rng_next(&r) % (top + 1) >> rng_below(&r, 8), count, vocab);
    }
}

/* Results exactly between two floats, or so near that a second rounding would show. */
static void potentials_between_floats(void **state) {
    rng r = {77};

    (void)state;
    for (unsigned k = 0; k < 200000; k++) {
        /* half is a power of two: the quotient is exact, and these are ties */
        uint32_t vocab = UINT32_C(1) << (1 + rng_below(&r, 31));
        uint64_t half = vocab / 2;
        unsigned shift = (unsigned)rng_below(&r, 30);
        uint64_t tie = (((UINT64_C(1) << 24) + rng_below(&r, 1 << 24)) * 2 + 1) << shift;
        uint64_t count = tie / half + 2;

        if (count > count_max(vocab))
            continue;
        for (uint64_t off = 0; off < 3; off++) {
            if (count * half + tie + off - 1 <= count * (vocab - 1))
                check(count * half + tie + off - 1, count, vocab);
            if (tie + off - 1 <= count * half)
                check(count * half - tie - off + 1, count, vocab);
        }
    }
}

static tokens_lattice params_of(const iron_lattice *l) {
    iron__divisor span = iron__divisor_make(l->span);

    return (tokens_lattice){.span_addend = span.addend,
                            .span_multiplier = span.multiplier,
                            .span_shift = span.shift - 32,
                            .count = l->count,
                            .first = l->first,
                            .last = l->last,
                            .span = l->span,
                            .first_fold = l->first_fold,
                            .nodes = 1};
}

static void check_lattice(const uint32_t *points, uint32_t count, rng *r) {
    iron_lattice *l = NULL;
    tokens_lattice params;
    iron_error err;

    assert_ok(iron_lattice_create(points, count, &l, &err), &err);
    params = params_of(l);
    for (uint64_t x = 0; x < 3 * (uint64_t)l->span + 10; x++) {
        assert_int_equal(apply_index(&params, l->nearest, (uint32_t)x),
                         iron__lattice_index_xor(l, (uint32_t)x));
        assert_int_equal(apply_index(&params, l->nearest, UINT32_MAX - (uint32_t)x),
                         iron__lattice_index_xor(l, UINT32_MAX - (uint32_t)x));
    }
    for (uint32_t k = 0; k < 2 * l->span + 20; k++) {
        float middle = (float)(k + 1) * 0.5f;
        uint32_t bits;
        float near[3];

        memcpy(&bits, &middle, sizeof bits);
        for (uint32_t n = 0; n < 3; n++)
            near[n] = k_f32_of_bits(bits + n - 1); /* its neighbours as well */
        for (size_t n = 0; n < 2 * COUNT(near); n++) {
            float c = n < 3 ? near[n] : -near[n - 3];

            assert_int_equal(apply_real(&params, l->points, l->nearest, c),
                             (int)iron__lattice_real(l, (double)c));
        }
    }
    for (uint32_t k = 0; k < 20000; k++) {
        float c = k_f32_of_bits(rng_u32(r));

        if (isfinite(c) || isinf(c))
            assert_int_equal(apply_real(&params, l->points, l->nearest, c),
                             (int)iron__lattice_real(l, (double)c));
    }
    iron_lattice_destroy(l);
}

/* The kernel's look-ups equal the host's for every possible argument. */
static void lattices(void **state) {
    static const uint32_t two[] = {1, 2}, wide[] = {1, 65535}, high[] = {65534, 65535},
                          some[] = {3, 10, 100, 1000, 4000};
    uint32_t many[64];
    rng r = {5};

    (void)state;
    check_lattice(NULL, 0, &r);
    check_lattice(two, COUNT(two), &r);
    check_lattice(wide, COUNT(wide), &r);
    check_lattice(high, COUNT(high), &r);
    check_lattice(some, COUNT(some), &r);
    for (unsigned round = 0; round < 6; round++) {
        uint32_t count = 2 + (uint32_t)rng_below(&r, 63), at = 0;

        for (uint32_t k = 0; k < count; k++)
            many[k] = at += 1 + (uint32_t)rng_below(&r, 65535 / count);
        check_lattice(many, count, &r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(potentials_at_the_edges),
        cmocka_unit_test(potentials_at_random),
        cmocka_unit_test(potentials_between_floats),
        cmocka_unit_test(lattices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
