/* SPDX-License-Identifier: MIT */
/*
 * test_variants.c: every row of the contribution (tokens.h) that runs here against the definition,
 * on shapes that break vector code.
 *
 * The rows come from the table, so a new variant is tested as soon as it is listed. Lengths are
 * around those of a vector, a group of 16, a turn of 80 and a block; starts are aligned and not, in
 * memory and in the stream; positions pass 2^32 and 2^36, where all 64 bits of a position matter;
 * vocabularies use every method of divisor.h; tokens are small, any, and all ones. The reference is
 * written here a second time, from SPEC alone. Then the same with buffers that have unreadable
 * pages directly before and after them: a load beyond the run crashes the program.
 */
#include "support.h"

#include "core/divisor.h"
#include "ops/tokens/tokens.h"

#include <sys/mman.h>

#define LONG_TOKENS 999983u /* a prime near 10^6 */

static const size_t lengths[] = {0,  1,  3,  4,  15, 16, 17, 31,   32,   33,   63,   64,
                                 65, 79, 80, 81, 95, 96, 97, 4095, 4096, 4097, 4098, 4099};

static const uint64_t positions[] = {0,
                                     1,
                                     5,
                                     15,
                                     16,
                                     (UINT64_C(1) << 32) - 7,
                                     (UINT64_C(1) << 32) + 5,
                                     (UINT64_C(1) << 36) - 3,
                                     (UINT64_C(1) << 36) + 9,
                                     (UINT64_C(1) << 63) + 1};

/* 7, 100277, 999983, ... need an addend; 14, 1048574 are even without the half method. */
static const uint32_t vocabs[] = {
    2,      3,      5,       6,       7,       10,       14,         641,        4096,
    32000,  50257,  50304,   65535,   65536,   65537,    100277,     128256,     151936,
    200019, 999983, 1048574, 1048576, 1048577, 16777259, 2147483646, 2147483647, 2147483648};

typedef enum token_kind { KIND_IN_VOCAB, KIND_ANY, KIND_ONES, KIND_COUNT } token_kind;

static void fill(uint32_t *tokens, size_t count, token_kind kind, uint32_t vocab) {
    rng r = {vocab};

    for (size_t k = 0; k < count; k++)
        tokens[k] = kind == KIND_ONES  ? UINT32_MAX
                    : kind == KIND_ANY ? rng_u32(&r)
                                       : (uint32_t)rng_below(&r, vocab);
}

/* As in SPEC: h(i), p, XOR, sum; without the library's functions. */
static iron__contribution define(const iron__tokens_run *run) {
    iron__contribution c = {.count = run->count};

    for (size_t k = 0; k < run->count; k++) {
        uint64_t i = run->first + k;
        uint32_t token = run->tokens_u16 ? run->tokens_u16[k] : run->tokens[k];
        uint32_t p = (uint32_t)(token + 137 * i + 17 * (i >> 4));

        c.xors ^= p;
        c.sum += p % run->divisor->vocab;
    }
    return c;
}

static bool is_repeated(size_t row) {
    for (size_t k = 0; k < row; k++)
        if (iron__tokens_variant_at(k)->reduce == iron__tokens_variant_at(row)->reduce)
            return true;
    return false;
}

/* All rows that read this width on one run; a function that several rows share is tested once. */
static void check_rows_of(const iron__tokens_run *run) {
    iron__contribution want = define(run);

    for (size_t k = 0; k < iron__tokens_variant_count(); k++) {
        const iron__tokens_variant *row = iron__tokens_variant_at(k);
        iron__contribution got;

        if (!iron__tokens_variant_runs_here(row) || is_repeated(k) ||
            (run->tokens_u16 && !row->reads_u16))
            continue;
        got = row->reduce(run);
        if (got.count != want.count || got.xors != want.xors || got.sum != want.sum)
            fail_msg("%s, vocab %u, %zu tokens of %d bits at position %llu: xor %08x for %08x, sum "
                     "%llu for %llu",
                     row->name, run->divisor->vocab, run->count, run->tokens_u16 ? 16 : 32,
                     (unsigned long long)run->first, got.xors, want.xors,
                     (unsigned long long)got.sum, (unsigned long long)want.sum);
    }
}

/* The run, and the same bytes as 16-bit tokens. */
static void check_rows(const iron__tokens_run *run) {
    iron__tokens_run halves = {NULL, 2 * run->count, run->first, run->divisor,
                               (const uint16_t *)(const void *)run->tokens};

    check_rows_of(run);
    check_rows_of(&halves);
}

static void check_shapes(const uint32_t *tokens, const iron__divisor *d) {
    for (size_t p = 0; p < COUNT(positions); p++) {
        for (size_t k = 0; k < COUNT(lengths); k++) {
            for (size_t offset = 0; offset < 4; offset++) {
                iron__tokens_run run = {tokens + offset, lengths[k], positions[p], d, NULL};

                check_rows(&run);
            }
        }
    }
}

static void shapes(void **state) {
    static _Alignas(64) uint32_t tokens[4099 + 3];

    (void)state;
    for (size_t v = 0; v < COUNT(vocabs); v++) {
        iron__divisor d = iron__divisor_make(vocabs[v]);

        for (token_kind kind = 0; kind < KIND_COUNT; kind++) {
            fill(tokens, COUNT(tokens), kind, vocabs[v]);
            check_shapes(tokens, &d);
        }
    }
}

/* A long run for every vocabulary and kind: all positions and offsets in the long test, otherwise
 * one pair of them in turn. */
static void long_runs(void **state) {
    uint32_t *tokens = grab((LONG_TOKENS + 3) * sizeof *tokens);
    size_t turn = 0;

    (void)state;
    for (size_t v = 0; v < COUNT(vocabs); v++) {
        iron__divisor d = iron__divisor_make(vocabs[v]);

        for (token_kind kind = 0; kind < KIND_COUNT; kind++, turn++) {
            size_t steps = is_long_test() ? 4 * COUNT(positions) : 1;

            fill(tokens, LONG_TOKENS + 3, kind, vocabs[v]);
            for (size_t k = turn; k < turn + steps; k++) {
                iron__tokens_run run = {tokens + k % 4, LONG_TOKENS,
                                        positions[k / 4 % COUNT(positions)], &d, NULL};

                check_rows(&run);
            }
        }
    }
    free(tokens);
}

/* Every length up to a few turns, so that no length between the chosen ones hides a bug. */
static void every_short_length(void **state) {
    static uint32_t tokens[400 + 3];
    static const uint32_t some[] = {7, 50257, 65536, 128256, 2147483647};

    (void)state;
    for (size_t v = 0; v < COUNT(some); v++) {
        iron__divisor d = iron__divisor_make(some[v]);

        fill(tokens, COUNT(tokens), KIND_ANY, some[v]);
        for (size_t count = 0; count <= 400; count++) {
            iron__tokens_run run = {tokens + count % 4, count, 11 * count, &d, NULL};

            check_rows(&run);
        }
    }
}

/* Pages between two unreadable ones:  guard | pages | guard */
typedef struct fenced {
    char *map;
    size_t page, bytes;
} fenced;

static fenced fence(size_t bytes) {
    fenced f = {NULL, (size_t)sysconf(_SC_PAGESIZE), 0};
    void *map;

    f.bytes = (bytes + f.page - 1) / f.page * f.page;
    map = mmap(NULL, f.bytes + 2 * f.page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    f.map = map;
    assert_int_equal(mprotect(f.map + f.page, f.bytes, PROT_READ | PROT_WRITE), 0);
    return f;
}

static void unfence(fenced f) { assert_int_equal(munmap(f.map, f.bytes + 2 * f.page), 0); }

static void no_read_beyond_the_run(void **state) {
    fenced f = fence(4099 * sizeof(uint32_t));
    uint32_t *first = (uint32_t *)(void *)(f.map + f.page);
    uint32_t *end = first + f.bytes / sizeof *first;

    (void)state;
    for (size_t v = 0; v < COUNT(vocabs); v++) {
        iron__divisor d = iron__divisor_make(vocabs[v]);

        fill(first, f.bytes / sizeof *first, KIND_ANY, vocabs[v]);
        for (size_t k = 0; k < COUNT(lengths); k++) {
            for (size_t p = 0; p < 5; p++) {
                iron__tokens_run at_start = {first, lengths[k], positions[p], &d, NULL};
                iron__tokens_run at_end = {end - lengths[k], lengths[k], positions[p], &d, NULL};

                check_rows(&at_start);
                check_rows(&at_end);
            }
        }
    }
    unfence(f);
}

/* The vocabularies above include every kind that vector code distinguishes. */
static void vocabularies_use_every_method(void **state) {
    size_t addend = 0, half = 0, even_plain = 0, odd_plain = 0, power = 0, wide = 0;

    (void)state;
    for (size_t v = 0; v < COUNT(vocabs); v++) {
        iron__divisor d = iron__divisor_make(vocabs[v]);
        bool is_narrow = vocabs[v] <= UINT32_C(1) << 20;

        power += d.is_power_of_two && is_narrow;
        half += d.has_half && is_narrow;
        addend += d.addend != 0 && !d.has_half && is_narrow;
        even_plain += vocabs[v] % 2 == 0 && !d.is_power_of_two && !d.has_half;
        odd_plain += vocabs[v] % 2 == 1 && d.addend == 0 && is_narrow;
        wide += !is_narrow;
    }
    assert_true(addend > 1 && half > 1 && even_plain > 0 && odd_plain > 1);
    assert_true(power > 1 && wide > 3);
}

/* tokens.cpu.<mode> or tokens.cpu.<mode>.<isa> */
static void check_name(const iron__tokens_variant *row) {
    const char *prefix = "tokens.cpu.";
    const char *mode = row->name + strlen(prefix);
    size_t length = strlen(row->mode);

    assert_int_equal(strncmp(row->name, prefix, strlen(prefix)), 0);
    assert_true(length > 0 && strspn(row->mode, "abcdefghijklmnopqrstuvwxyz-") == length);
    assert_int_equal(strncmp(mode, row->mode, length), 0);
    if (mode[length] == '\0')
        return;
    assert_int_equal(mode[length], '.');
    assert_true(mode[length + 1] != '\0' && !strchr(mode + length + 1, '.'));
}

static bool has_row(const char *name) {
    for (size_t k = 0; k < iron__tokens_variant_count(); k++)
        if (strcmp(iron__tokens_variant_at(k)->name, name) == 0)
            return true;
    return false;
}

static void rows_are_complete(void **state) {
    size_t count = iron__tokens_variant_count();

    (void)state;
    assert_true(count >= 6);
    assert_null(iron__tokens_variant_at(count));
    for (size_t k = 0; k < count; k++) {
        const iron__tokens_variant *row = iron__tokens_variant_at(k);

        check_name(row);
        assert_non_null(row->reduce);
        assert_true(row->idea && row->idea[0] != '\0');
        assert_true(!row->beats || (has_row(row->beats) && strcmp(row->beats, row->name) != 0));
        for (size_t j = 0; j < k; j++)
            assert_string_not_equal(row->name, iron__tokens_variant_at(j)->name);
    }
}

static void rows_of_a_mode_are_adjacent(void **state) {
    size_t modes = 0, count = iron__tokens_variant_count();

    (void)state;
    for (size_t k = 0; k < count; k++) {
        const char *mode = iron__tokens_variant_at(k)->mode;

        if (k > 0 && strcmp(mode, iron__tokens_variant_at(k - 1)->mode) == 0)
            continue;
        assert_string_equal(iron__tokens_mode_at(modes++), mode);
        for (size_t j = 0; j < k; j++)
            assert_string_not_equal(iron__tokens_variant_at(j)->mode, mode);
    }
    assert_null(iron__tokens_mode_at(modes));
}

/* All modes of DESIGN exist, and each selects its first row that runs here. */
static void modes_and_names_are_found(void **state) {
    static const char *const modes[] = {"scalar",   "vector", "threads",
                                        "champion", "node",   "hybrid"};

    (void)state;
    for (size_t m = 0; m < COUNT(modes); m++) {
        const iron__tokens_variant *found = iron__tokens_variant_find(modes[m]);
        const iron__tokens_variant *first = NULL;

        for (size_t k = iron__tokens_variant_count(); k-- > 0;) {
            const iron__tokens_variant *row = iron__tokens_variant_at(k);

            if (strcmp(row->mode, modes[m]) == 0 && iron__tokens_variant_runs_here(row))
                first = row;
        }
        assert_non_null(first);
        assert_ptr_equal(found, first);
        assert_ptr_equal(iron__tokens_variant_find(first->name), first);
    }
    assert_null(iron__tokens_variant_find("gpu"));
    assert_null(iron__tokens_variant_find(""));
    assert_null(iron__tokens_variant_find("tokens.cpu"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vocabularies_use_every_method),
        cmocka_unit_test(shapes),
        cmocka_unit_test(long_runs),
        cmocka_unit_test(every_short_length),
        cmocka_unit_test(no_read_beyond_the_run),
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(rows_of_a_mode_are_adjacent),
        cmocka_unit_test(modes_and_names_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
