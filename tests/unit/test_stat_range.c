/* SPDX-License-Identifier: MIT */
/*
 * test_stat_range.c: statistics as an ordered monoid. However a stream is cut into ranges, and
 * ranges into pieces, appended in order they say what a simple model says of the whole; as words
 * they go and come back, and damaged words are refused.
 */
#include "stat_support.h"

#include "core/fnv.h"
#include "digest/stat.h"
#include "digest/stat_entropy.h"

static iron__stat_lane lane; /* of one thread; its histogram is the test's */

/* The statistics of tokens begin ... end-1 of the case, in pieces of `piece` tokens. */
static iron_stat *make_range(const stat_case *c, size_t begin, size_t end, size_t piece) {
    iron__stat_rule rule = {c->vocab, c->eos};
    iron__stat_piece p;
    iron_stat *s = NULL;
    iron_error err;

    assert_ok(iron__stat_create(&rule, c->has_histogram, c->first + begin, &s, &err), &err);
    memset(&lane, 0, sizeof lane);
    for (size_t k = 0; c->has_histogram && k < 2; k++)
        assert_non_null(lane.histogram[k] = calloc(c->vocab, sizeof(uint32_t)));
    for (size_t at = begin; at < end; at += piece) {
        size_t count = end - at < piece ? end - at : piece;
        iron__tokens_view view = {IRON_DTYPE_U32, c->tokens + at, count};

        iron__stat_piece_take(&p, &lane, &rule, &view, c->first + at);
        iron__stat_take_piece(s, &p);
    }
    iron__stat_take_lane(s, &lane);
    free(lane.histogram[0]);
    free(lane.histogram[1]);
    return s;
}

static void append(iron_stat *s, iron_stat *next) {
    iron_error err;

    assert_ok(iron_stat_append(s, next, &err), &err);
    iron_stat_destroy(next);
}

/* Every cut in two. */
static void assert_cuts(const stat_case *c) {
    for (size_t cut = 0; cut <= c->count; cut++) {
        iron_stat *s = make_range(c, 0, cut, 1 + cut % 7);

        append(s, make_range(c, cut, c->count, 1000));
        assert_report(s, c);
        iron_stat_destroy(s);
    }
}

static void every_cut_of_short_streams(void **state) {
    dice d = {77};

    (void)state;
    for (size_t count = 0; count <= 14; count++) {
        for (size_t values = 1; values <= 4; values++) {
            uint32_t *tokens = grab_stream(&d, count, (uint32_t)values, 8);
            stat_case c = {tokens, count, 4 * values, 3, values % 3, true};

            assert_cuts(&c);
            c.eos = IRON_COUNT_UNKNOWN;
            c.has_histogram = false;
            assert_cuts(&c);
            free(tokens);
        }
    }
}

/* Several ranges of random lengths, empty ones among them; grouping does not matter either. */
static void assert_random_cuts(const stat_case *c, dice *d, size_t piece) {
    iron_stat *left = make_range(c, 0, 0, 1), *right = NULL;
    size_t at = 0, middle = c->count ? roll_below(d, c->count) : 0;

    while (at < middle) {
        size_t next = at + roll_below(d, middle - at + 1);

        append(left, make_range(c, at, next, piece));
        at = next == at ? at : next;
        if (roll_below(d, 8) == 0) {
            append(left, make_range(c, at, middle, piece));
            at = middle;
        }
    }
    right = make_range(c, middle, c->count, piece);
    append(right, make_range(c, c->count, c->count, 1));
    append(left, right);
    assert_report(left, c);
    iron_stat_destroy(left);
}

static void random_cuts_of_long_streams(void **state) {
    static const size_t counts[] = {1, 127, 128, 129, 130, 257, 1000, 5000, 70000};
    static const size_t runs[] = {2, 5, 130, 600, 9000};
    dice d = {78};

    (void)state;
    for (size_t n = 0; n < COUNT(counts); n++) {
        for (size_t r = 0; r < COUNT(runs); r++) {
            uint32_t values = (uint32_t)(1 + roll_below(&d, 300));
            uint32_t *tokens = grab_stream(&d, counts[n], values, runs[r]);
            stat_case c = {tokens,    counts[n], 0, 1 + roll_below(&d, 300), roll_below(&d, values),
                           r % 2 == 0};

            assert_random_cuts(&c, &d, 1 + roll_below(&d, 5000));
            c.eos = 1u << 31; /* never there */
            assert_random_cuts(&c, &d, IRON_PIECE_TOKENS);
            free(tokens);
        }
    }
}

static void all_the_same(void **state) {
    uint32_t *tokens = grab(3000 * sizeof *tokens);
    dice d = {79};

    (void)state;
    for (uint32_t value = 0; value < 3; value++) {
        stat_case c = {tokens, 3000, 400, 2, 1, true};

        for (size_t k = 0; k < c.count; k++)
            tokens[k] = value;
        for (size_t k = 0; k < 20; k++)
            assert_random_cuts(&c, &d, 1 + roll_below(&d, 700));
    }
    free(tokens);
}

/* The largest tokens and the largest vocabulary. */
static void extremes(void **state) {
    uint32_t tokens[300];
    dice d = {80};

    (void)state;
    for (size_t k = 0; k < COUNT(tokens); k++)
        tokens[k] = roll_below(&d, 2) ? UINT32_MAX : UINT32_MAX - 1;
    for (uint64_t vocab = UINT32_MAX - UINT64_C(1); vocab <= UINT64_C(1) << 32; vocab++) {
        stat_case c = {tokens, COUNT(tokens), 0, vocab, UINT32_MAX, false};

        assert_random_cuts(&c, &d, 200);
    }
}

/* Documents longer than a piece, and longer than lengths are counted one by one. */
static void long_documents(void **state) {
    size_t count = (size_t)5 << 20;
    uint32_t *tokens = calloc(count, sizeof *tokens);
    stat_case c = {tokens, count, 0, 10, 9, false};
    size_t ends[] = {5, 4101, 4102 + 4096, 100000, (1 << 20) + 100000, (3 << 20) + 100001};
    iron_stat_report r = {.struct_size = sizeof r}, m;
    iron_stat *s;

    (void)state;
    assert_non_null(tokens);
    for (size_t k = 0; k < COUNT(ends); k++)
        tokens[ends[k]] = 9;
    s = make_range(&c, 0, count, IRON_PIECE_TOKENS);
    assert_report(
        s,
        &c); /* 6, 4096, 4097, 91802, 2^20 in all, 2^21 + 1, the rest: median and largest exact */
    iron_stat_destroy(s);
    for (size_t k = 0; k < 4; k++)
        tokens[ends[k]] = 0;
    m = model_report(&c);
    s = make_range(&c, 0, count, IRON_PIECE_TOKENS);
    assert_int_equal(iron_stat_describe(s, &r, NULL), IRON_OK);
    assert_int_equal(m.document_median, (2 << 20) - 100002);
    assert_int_equal(r.document_median, m.document_median / 1024 * 1024); /* of its counter, the
                                                                             smallest */
    r.document_median = m.document_median;
    assert_same_report(&r, &m);
    iron_stat_destroy(s);
    free(tokens);
}

static void lengths_beyond_the_exact(void **state) {
    iron__stat_lengths *t = calloc(1, sizeof *t);
    dice d = {81};

    (void)state;
    assert_non_null(t);
    assert_int_equal(iron__stat_lengths_min(t), 0);
    assert_int_equal(iron__stat_lengths_max(t), 0);
    for (size_t bits = 1; bits <= 64; bits++) {
        uint64_t length = (roll(&d) | UINT64_C(1) << 63) >> (64 - bits), found;

        iron__stat_lengths_add(t, length, 3);
        assert_int_equal(iron__stat_lengths_max(t), length);
        assert_int_equal(iron__stat_lengths_total(t), 3 * bits);
        found = iron__stat_lengths_at(t, NULL, 0, 3 * bits);
        assert_true(found <= length && length - found <= length / 1024);
        assert_true(length > IRON_LENGTHS_EXACT || found == length);
        assert_int_equal(iron__stat_lengths_at(t, NULL, 0, 1), 1);
    }
    assert_int_equal(iron__stat_lengths_at(t, (uint64_t[]){1, 1}, 2, 5), 1);
    memset(t, 0, sizeof *t);
    iron__stat_lengths_add(t, UINT64_MAX, 1);
    iron__stat_lengths_add(t, IRON_LENGTHS_EXACT + 1, 1);
    assert_int_equal(iron__stat_lengths_min(t), IRON_LENGTHS_EXACT + 1);
    assert_int_equal(iron__stat_lengths_max(t), UINT64_MAX);
    assert_int_equal(iron__stat_lengths_at(t, NULL, 0, 1), IRON_LENGTHS_EXACT + 1);
    free(t);
}

static void ranges_that_do_not_join(void **state) {
    uint32_t tokens[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    stat_case c = {tokens, 8, 0, 100, 5, true}, others[] = {c, c, c};
    iron_stat *s = make_range(&c, 0, 4, 8);
    iron_error err;

    (void)state;
    others[0].vocab = 101;
    others[1].eos = 6;
    others[2].has_histogram = false;
    for (size_t k = 0; k < COUNT(others); k++) {
        iron_stat *next = make_range(&others[k], 4, 8, 8);

        assert_refused(iron_stat_append(s, next, &err), IRON_E_ARG, &err);
        iron_stat_destroy(next);
    }
    for (size_t begin = 0; begin < 8; begin++) {
        iron_stat *next = make_range(&c, begin, 8, 8);

        if (begin != 4)
            assert_refused(iron_stat_append(s, next, &err), IRON_E_ARG, &err);
        iron_stat_destroy(next);
    }
    append(s, make_range(&c, 4, 8, 8));
    assert_report(s, &c);
    iron_stat_destroy(s);
    iron_stat_destroy(NULL);
}

static uint64_t *grab_words(const iron_stat *s, size_t *count) {
    uint64_t *words;

    *count = iron_stat_words(s, NULL, 0);
    words = grab(*count * sizeof *words);
    assert_int_equal(iron_stat_words(s, words, *count), *count);
    return words;
}

static void words_there_and_back(void **state) {
    dice d = {82};

    (void)state;
    for (size_t count = 0; count < 400; count += 1 + count / 3) {
        uint32_t *tokens = grab_stream(&d, count, 30, 50);
        stat_case c = {tokens, count, 8, 25, count % 2 ? 7 : IRON_COUNT_UNKNOWN, count % 3 == 0};
        iron_stat *s = make_range(&c, 0, count / 2, 100), *back = NULL, *next = NULL;
        size_t words;
        uint64_t *w = grab_words(s, &words);
        iron_error err;

        assert_ok(iron_stat_from_words(w, words, &back, &err), &err);
        free(w);
        next = make_range(&c, count / 2, count, 100);
        append(back, next);
        assert_report(back, &c);
        iron_stat_destroy(s);
        iron_stat_destroy(back);
        free(tokens);
    }
}

static void assert_no_statistics(const uint64_t *words, size_t count) {
    iron_stat *s = (iron_stat *)(uintptr_t)1;
    iron_error err;

    assert_refused(iron_stat_from_words(words, count, &s, &err), IRON_E_FORMAT, &err);
    assert_null(s);
}

/* Any bit, any cut; and contradictions whose checksum is right. */
static void damaged_words(void **state) {
    static const size_t fields[] = {5, 6, 7, 9, 27, 29, 30, 35, 36, 37, 38, 39, 26, 32, 33};
    const size_t subtle = 12; /* from here on one more could be true: too many cannot */
    dice d = {83};
    uint32_t *tokens = grab_stream(&d, 200, 30, 9);
    stat_case c = {tokens, 200, 8, 25, 7, true};
    iron_stat *s = make_range(&c, 0, 200, 100);
    size_t count;
    uint64_t *w = grab_words(s, &count);

    (void)state;
    for (size_t k = 0; k < count; k++) {
        uint64_t bit = UINT64_C(1) << roll_below(&d, 64);

        w[k] ^= bit;
        assert_no_statistics(w, count);
        w[k] ^= bit;
        assert_no_statistics(w, k);
    }
    for (size_t k = 0; k < COUNT(fields); k++) {
        uint64_t before = w[fields[k]];

        for (size_t more = k >= subtle; more < 3; more++) {
            w[fields[k]] = more == 0 ? before + 1 : more == 1 ? before + 1000000 : UINT64_MAX;
            w[count - 1] = iron__fnv(IRON_FNV_START, w, (count - 1) * sizeof *w);
            assert_no_statistics(w, count);
        }
        w[fields[k]] = before;
    }
    free(w);
    free(tokens);
    iron_stat_destroy(s);
}

static void logarithms(void **state) {
    dice d = {84};

    (void)state;
    assert_true(iron__log2(1) == 0 && iron__log2(8) == 3 && iron__log2(0.25) == -2);
    for (size_t k = 0; k < 200000; k++) {
        double x = ldexp(1 + (double)(roll(&d) >> 11) * 0x1p-53, (int)roll_below(&d, 130) - 65);
        double found = iron__log2(x), wanted = log2(x);

        assert_true(fabs(found - wanted) <= 1e-15 * (fabs(wanted) > 1 ? fabs(wanted) : 1));
    }
    for (int k = -10000; k < 10000; k++) {
        double x = 1 + 1e-8 * k;

        assert_true(fabs(iron__log2(x) - log2(x)) <= 1e-15);
    }
}

static void refused_rules(void **state) {
    static const iron__stat_rule bad[] = {
        {0, 0}, {(UINT64_C(1) << 32) + 1, 0}, {5, UINT64_C(1) << 32}};
    iron__stat_rule large = {IRON_STAT_HISTOGRAM_MAX + 1, 0};
    iron_stat *s;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++)
        assert_refused(iron__stat_create(&bad[k], false, 0, &s, &err), IRON_E_ARG, &err);
    assert_refused(iron__stat_create(&large, true, 0, &s, &err), IRON_E_ARG, &err);
    assert_says(&err, "67108864");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_of_short_streams),
        cmocka_unit_test(random_cuts_of_long_streams),
        cmocka_unit_test(all_the_same),
        cmocka_unit_test(extremes),
        cmocka_unit_test(long_documents),
        cmocka_unit_test(lengths_beyond_the_exact),
        cmocka_unit_test(ranges_that_do_not_join),
        cmocka_unit_test(words_there_and_back),
        cmocka_unit_test(damaged_words),
        cmocka_unit_test(logarithms),
        cmocka_unit_test(refused_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
