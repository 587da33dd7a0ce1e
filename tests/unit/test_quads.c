/* SPDX-License-Identifier: MIT */
/*
 * test_quads.c: every row of the seal (tokens.h) that runs here against the references, on shapes
 * that break vector code.
 *
 * The rows come from the table, so a new one is tested as soon as it is listed. The seal's
 * reference is core/seal.c, which test_seal.c checks against the definition; the statistics'
 * reference is in this file. Numbers of quads are around those of a vector, a turn and a block;
 * starts are unaligned in memory, and in the stream before the border of a window and far beyond
 * it; tokens are small, any, all zeros and all ones. Some buffers have unreadable pages directly
 * before and after them.
 */
#include "support.h"

#include "ops/tokens/tokens.h"
#include "selftest/golden.h"

#include <sys/mman.h>

#define BORDER (UINT64_C(1) << 32) /* quads under one window key */

static const uint64_t vocabs[] = {1, 2, 50257, UINT32_MAX, UINT64_C(1) << 32};

/* What is computed from a run. */
typedef struct outcome {
    iron__seal_words words;
    iron__token_stats stats;
} outcome;

static outcome nothing(void) { return (outcome){{0, 0, 0, 0}, iron__token_stats_neutral()}; }

static outcome define(const iron__quads_run *run) {
    outcome o = nothing();

    iron__seal_quads(&o.words, run->tokens, run->first_quad, run->quads);
    for (size_t k = 0; k < 4 * run->quads; k++) {
        uint32_t token = run->tokens[k];

        o.stats.min = token < o.stats.min ? token : o.stats.min;
        o.stats.max = token > o.stats.max ? token : o.stats.max;
        if (token < run->vocab)
            continue;
        if (o.stats.first_position == UINT64_MAX) {
            o.stats.first_position = 4 * run->first_quad + k;
            o.stats.first_value = token;
        }
        o.stats.out_of_vocab++;
    }
    return o;
}

static void assert_words(iron__seal_words got, iron__seal_words want, const char *row,
                         const iron__quads_run *run) {
    if (got.count != want.count || got.t != want.t || got.a != want.a || got.b != want.b)
        fail_msg("%s, %zu quads at %llu: words differ", row, run->quads,
                 (unsigned long long)run->first_quad);
}

static void assert_stats(iron__token_stats got, iron__token_stats want, const char *row,
                         const iron__quads_run *run) {
    if (got.min != want.min || got.max != want.max || got.out_of_vocab != want.out_of_vocab ||
        got.first_position != want.first_position || got.first_value != want.first_value)
        fail_msg("%s, %zu quads at %llu, vocab %llu: statistics differ", row, run->quads,
                 (unsigned long long)run->first_quad, (unsigned long long)run->vocab);
}

/* A row with statistics; without them, added to other words; and after a 0. */
static void assert_row(const iron__seal_variant *row, const iron__quads_run *run) {
    outcome want = define(run), got = nothing();
    iron__seal_words before = {1000, UINT64_MAX, 17, UINT64_C(1) << 63};
    iron__seal_words alone = before;

    row->take(run, &got.words, &got.stats);
    assert_words(got.words, want.words, row->name, run);
    assert_stats(got.stats, want.stats, row->name, run);
    row->take(run, &alone, NULL);
    assert_words(alone, iron__seal_merge(before, want.words), row->name, run);
    got = nothing();
    got.stats.min = want.stats.min = 0; /* then only the largest is computed */
    row->take(run, &got.words, &got.stats);
    assert_words(got.words, want.words, row->name, run);
    assert_stats(got.stats, want.stats, row->name, run);
}

static void assert_rows(const iron__quads_run *run) {
    const iron__seal_variant *row;
    size_t tried = 0;

    for (size_t k = 0; (row = iron__seal_variant_at(k)); k++)
        if (iron__seal_variant_runs_here(row)) {
            assert_row(row, run);
            tried++;
        }
    assert_true(tried >= 3);
}

typedef enum token_kind {
    KIND_SMALL,
    KIND_ANY,
    KIND_ZEROS,
    KIND_ONES,
    KIND_EDGES,
    KIND_COUNT
} kind;

static void fill(uint32_t *tokens, size_t count, kind of) {
    static const uint32_t edges[] = {0,     1,         50256,          50257,
                                     50258, INT32_MAX, UINT32_MAX - 1, UINT32_MAX};
    rng r = {91};

    for (size_t k = 0; k < count; k++)
        tokens[k] = of == KIND_SMALL   ? (uint32_t)rng_below(&r, 50257)
                    : of == KIND_ANY   ? rng_u32(&r)
                    : of == KIND_EDGES ? edges[rng_below(&r, COUNT(edges))]
                    : of == KIND_ONES  ? UINT32_MAX
                                       : 0;
}

static void any_number_of_quads(void **state) {
    enum { QUADS = 200 };
    static const uint64_t firsts[] = {
        0, 1, 12345, BORDER - 100, 5 * BORDER - 7, UINT64_MAX / 4 - 300};
    uint32_t *tokens = grab((4 * QUADS + 4) * sizeof *tokens);

    (void)state;
    for (kind of = 0; of < KIND_COUNT; of++) {
        fill(tokens, 4 * QUADS + 4, of);
        for (size_t quads = 0; quads <= QUADS; quads++)
            for (size_t f = 0; f < COUNT(firsts); f++) {
                iron__quads_run run = {tokens + (quads + f) % 4, quads, firsts[f],
                                       vocabs[(quads + f) % COUNT(vocabs)]};

                assert_rows(&run);
            }
    }
    free(tokens);
}

/* Longer than several blocks, with any number of quads before the border. */
static void long_runs(void **state) {
    enum { QUADS = 20011 };
    uint32_t *tokens = grab((4 * QUADS + 4) * sizeof *tokens);
    rng r = {92};

    (void)state;
    for (kind of = 0; of < KIND_COUNT; of++) {
        fill(tokens, 4 * QUADS + 4, of);
        for (int n = 0; n < 6; n++) {
            size_t quads = QUADS - (size_t)rng_below(&r, n % 2 ? 20000 : 100);
            uint64_t before = rng_below(&r, 2 * quads);
            iron__quads_run run = {tokens + n % 4, quads,
                                   ((rng_next(&r) >> 36) + 1) * BORDER - before, vocabs[n % 5]};

            assert_rows(&run);
        }
    }
    free(tokens);
}

/* A few tokens outside the vocabulary, at any place: none is missed between blocks. */
static void outside_tokens_are_found(void **state) {
    enum { QUADS = 10007, VOCAB = 1000 };
    uint32_t *tokens = grab((size_t)4 * QUADS * sizeof *tokens);
    rng r = {93};

    (void)state;
    for (int n = 0; n < 60; n++) {
        iron__quads_run run = {tokens, QUADS, rng_next(&r) >> 8, VOCAB};
        int outside = n % 6;

        for (size_t k = 0; k < (size_t)4 * QUADS; k++)
            tokens[k] = (uint32_t)rng_below(&r, VOCAB);
        for (int k = 0; k < outside; k++)
            tokens[rng_below(&r, (uint64_t)4 * QUADS)] =
                VOCAB + (rng_u32(&r) >> rng_below(&r, 32)) / 2;
        assert_rows(&run);
    }
    for (size_t at = 0; at < (size_t)4 * QUADS; at += at < 130 ? 1 : 997) {
        iron__quads_run run = {tokens, QUADS, 3, VOCAB};

        for (size_t k = 0; k < (size_t)4 * QUADS; k++)
            tokens[k] = k == at ? VOCAB : VOCAB - 1;
        assert_rows(&run);
    }
    free(tokens);
}

/* Words and statistics of two pieces merge to those of the whole, for any cut. */
static void pieces_merge(void **state) {
    enum { QUADS = 5000 };
    uint32_t *tokens = grab((size_t)4 * QUADS * sizeof *tokens);
    const iron__seal_variant *row;
    rng r = {94};

    (void)state;
    fill(tokens, (size_t)4 * QUADS, KIND_ANY);
    for (size_t k = 0; (row = iron__seal_variant_at(k)); k++) {
        iron__quads_run whole = {tokens, QUADS, 3 * BORDER - 2000, UINT32_C(1) << 31};
        outcome want = define(&whole);

        for (int n = 0; iron__seal_variant_runs_here(row) && n < 50; n++) {
            outcome forth = nothing(), back = nothing();
            size_t cut = (size_t)rng_below(&r, QUADS + 1);
            iron__quads_run first = whole, second = whole;

            first.quads = cut;
            second.tokens += 4 * cut;
            second.quads -= cut;
            second.first_quad += cut;
            row->take(&first, &forth.words, &forth.stats);
            row->take(&second, &forth.words, &forth.stats);
            row->take(&second, &back.words, &back.stats);
            row->take(&first, &back.words, &back.stats);
            assert_words(forth.words, want.words, row->name, &whole);
            assert_stats(forth.stats, want.stats, row->name, &whole);
            assert_words(back.words, want.words, row->name, &whole);
            assert_stats(back.stats, want.stats, row->name, &whole);
        }
    }
    free(tokens);
}

/* A row's 16-bit function, against the reference for the same tokens widened. */
static void assert_narrow(const iron__seal_variant *row, const uint16_t *tokens,
                          const iron__quads_run *wide) {
    iron__quads_run_u16 run = {tokens, wide->quads, wide->first_quad, wide->vocab};
    outcome want = define(wide), got = nothing(), seen = nothing();
    iron__seal_words alone = {0, 0, 0, 0};

    row->take_u16(&run, &got.words, &got.stats);
    assert_words(got.words, want.words, row->name, wide);
    assert_stats(got.stats, want.stats, row->name, wide);
    row->take_u16(&run, &alone, NULL);
    assert_words(alone, want.words, row->name, wide);
    seen.stats.min = 0; /* then only the largest is computed */
    row->take_u16(&run, &seen.words, &seen.stats);
    want.stats.min = 0;
    assert_words(seen.words, want.words, row->name, wide);
    assert_stats(seen.stats, want.stats, row->name, wide);
}

/* At the end of readable memory, unaligned, around the sizes of turns and blocks. */
static void tokens_of_16_bits(void **state) {
    static const uint32_t limits[] = {1, 2, 50257, 65536};
    enum { QUADS = 9000 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t middle = ((size_t)8 * QUADS + page) / page * page;
    char *map =
        mmap(NULL, middle + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint16_t *end = (uint16_t *)(void *)(map + middle);
    uint32_t *wide = grab((size_t)4 * QUADS * sizeof *wide);
    const iron__seal_variant *row;
    rng r = {95};

    (void)state;
    assert_true(map != MAP_FAILED && mprotect(map + middle, page, PROT_NONE) == 0);
    for (size_t v = 0; (row = iron__seal_variant_at(v)); v++) {
        if (!row->take_u16 || !iron__seal_variant_runs_here(row))
            continue;
        for (size_t quads = 0; quads <= QUADS; quads += quads < 50 ? 1 : 1779) {
            for (size_t k = 0; k < COUNT(limits); k++) {
                uint16_t *tokens = end - 4 * quads - (quads + k) % 3;
                iron__quads_run run = {wide, quads, (rng_next(&r) >> 40) * BORDER - quads / 2,
                                       vocabs[rng_below(&r, COUNT(vocabs))]};

                for (size_t j = 0; j < 4 * quads; j++)
                    tokens[j] =
                        (uint16_t)(wide[j] = limits[k] - 1 - (uint32_t)rng_below(&r, limits[k]));
                assert_narrow(row, tokens, &run);
            }
        }
    }
    free(wide);
    munmap(map, middle + page);
}

static void golden_words(void **state) {
    const iron__golden *g = &iron__golden_vectors;
    const iron__seal_variant *row;

    (void)state;
    assert_true(g->seal_count > 0 && g->quad_count > 0);
    for (size_t v = 0; (row = iron__seal_variant_at(v)); v++) {
        for (size_t k = 0; iron__seal_variant_runs_here(row) && k < g->seal_count; k++) {
            const iron__golden_seal *s = &g->seals[k];
            iron__seal_words w = {0, 0, 0, 0};
            char text[IRON_SEAL_TEXT];
            size_t count;
            uint32_t *tokens = iron__golden_tokens(s->tokens, s->tokens_count, s->gen_seed,
                                                   s->gen_limit, s->gen_count, &count);
            size_t whole = (count + 3) / 4;
            uint32_t *padded = grab(4 * whole * sizeof *padded);
            iron__quads_run run = {padded, whole, 0, 1};

            assert_non_null(tokens);
            memset(padded, 0, 4 * whole * sizeof *padded);
            memcpy(padded, tokens, count * sizeof *padded);
            row->take(&run, &w, NULL);
            w.count = count;
            iron__seal_text(w, text);
            assert_string_equal(text, s->seal);
            free(padded);
            free(tokens);
        }
        for (size_t k = 0; iron__seal_variant_runs_here(row) && k < g->quad_count; k++) {
            iron__quads_run run = {g->quads[k].tokens, 1, g->quads[k].quad, 1};
            iron__seal_words w = {0, 0, 0, 0};

            row->take(&run, &w, NULL);
            assert_true(w.count == 4 && w.a == g->quads[k].a && w.b == g->quads[k].b);
        }
    }
}

/* A load beyond the run crashes the program. */
static void nothing_beyond_the_run_is_read(void **state) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), middle = 16 * page;
    char *map =
        mmap(NULL, middle + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t *tokens = (uint32_t *)(void *)(map + page);

    (void)state;
    assert_true(map != MAP_FAILED);
    fill(tokens, middle / 4, KIND_SMALL);
    assert_int_equal(mprotect(map, page, PROT_NONE), 0);
    assert_int_equal(mprotect(map + page + middle, page, PROT_NONE), 0);
    for (size_t quads = 0; quads <= middle / 16; quads += quads < 120 ? 1 : 331) {
        iron__quads_run at_start = {tokens, quads, 9, 50257};
        iron__quads_run at_end = {tokens + middle / 4 - 4 * quads, quads, 9, 50257};

        assert_rows(&at_start);
        assert_rows(&at_end);
    }
    munmap(map, middle + 2 * page);
}

static void rows_are_listed(void **state) {
    const iron__seal_variant *row;

    (void)state;
    for (size_t k = 0; (row = iron__seal_variant_at(k)); k++) {
        assert_true(strncmp(row->name, "seal.cpu.", 9) == 0 && row->take && row->idea[0]);
        assert_true(row->beats ? k > 0 : strcmp(row->mode, "reference") == 0);
        if (iron__seal_variant_runs_here(row))
            assert_ptr_equal(iron__seal_variant_find(row->name), row);
        else
            assert_null(iron__seal_variant_find(row->name));
    }
    assert_string_equal(iron__seal_variant_find("champion")->mode, "champion");
    assert_true(iron__seal_variant_find("champion")->all_threads);
    assert_false(iron__seal_variant_find("vector")->all_threads);
    assert_ptr_equal(iron__seal_variant_find("champion")->take,
                     iron__seal_variant_find("vector")->take);
    assert_null(iron__seal_variant_find("seal.cpu.nothing"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_words),
        cmocka_unit_test(any_number_of_quads),
        cmocka_unit_test(long_runs),
        cmocka_unit_test(outside_tokens_are_found),
        cmocka_unit_test(pieces_merge),
        cmocka_unit_test(tokens_of_16_bits),
        cmocka_unit_test(nothing_beyond_the_run_is_read),
        cmocka_unit_test(rows_are_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
