/* SPDX-License-Identifier: MIT */
/*
 * test_stat.c: statistics as an ordered monoid: for any split of a stream into ranges, and of
 * ranges into pieces, the appended result matches a simple model of the whole; it can be written as
 * words and read back, and damaged words are refused.
 *
 * Then statistics of files and pipes on several threads: the model again, for every width, number
 * of threads, and range; and every kind of early end.
 */
#include "stat_support.h"

#include "digest/stat.c"

#include <pthread.h>

static worker one; /* thread; its histogram is the test's */

/* The statistics of tokens begin ... end-1 of the case, in pieces of `size` tokens. */
static iron_stat *make_range(const stat_case *c, size_t begin, size_t end, size_t size) {
    stat_rule rule = {c->vocab, c->eos};
    worker *list[] = {&one};
    workers all = {.each = list, .worker_count = 1};
    iron_error err;
    piece p;

    assert_ok(stat_create(&rule, c->has_histogram, c->first + begin, &all.stat, &err), &err);
    memset(&one, 0, sizeof one);
    if (c->has_histogram) {
        assert_non_null(one.histogram[0] = calloc(2 * c->vocab, sizeof(uint32_t)));
        one.histogram[1] = one.histogram[0] + c->vocab;
    }
    for (size_t at = begin; at < end; at += size) {
        size_t count = end - at < size ? end - at : size;
        iron__tokens_view view = {IRON_DTYPE_U32, c->tokens + at, count};

        compute_piece(&p, &one, &rule, &view, c->first + at);
        append_piece(all.stat, &p);
    }
    collect_counts(&all);
    free(one.histogram[0]);
    return all.stat;
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
    rng r = {77};

    (void)state;
    SKIP_UNDER_TSAN();
    for (size_t count = 0; count <= (is_full_test() ? 14 : 6); count++) {
        for (size_t values = 1; values <= 4; values++) {
            uint32_t *tokens = grab_stream(&r, count, (uint32_t)values, 8);
            stat_case c = {tokens, count, 4 * values, 3, values % 3, true};

            assert_cuts(&c);
            c.eos = IRON_COUNT_UNKNOWN;
            c.has_histogram = false;
            assert_cuts(&c);
            free(tokens);
        }
    }
}

/* Several ranges of random lengths, some empty; grouping does not matter either. */
static void assert_random_cuts(const stat_case *c, rng *r, size_t size) {
    iron_stat *left = make_range(c, 0, 0, 1), *right = NULL;
    size_t at = 0, middle = c->count ? rng_below(r, c->count) : 0;

    while (at < middle) {
        size_t next = at + rng_below(r, middle - at + 1);

        append(left, make_range(c, at, next, size));
        at = next == at ? at : next;
        if (rng_below(r, 8) == 0) {
            append(left, make_range(c, at, middle, size));
            at = middle;
        }
    }
    right = make_range(c, middle, c->count, size);
    append(right, make_range(c, c->count, c->count, 1));
    append(left, right);
    assert_report(left, c);
    iron_stat_destroy(left);
}

static void random_cuts_of_long_streams(void **state) {
    static const size_t counts[] = {1, 127, 128, 129, 130, 257, 1000, 5000, 70000};
    static const size_t runs[] = {2, 5, 130, 600, 9000};
    rng random = {78};

    (void)state;
    SKIP_UNDER_TSAN();
    for (size_t n = 0; n < COUNT(counts); n++) {
        for (size_t r = is_full_test() ? 0 : n % 3; r < COUNT(runs); r += is_full_test() ? 1 : 3) {
            uint32_t values = (uint32_t)(1 + rng_below(&random, 300));
            uint32_t *tokens = grab_stream(&random, counts[n], values, runs[r]);
            stat_case c = {
                tokens,    counts[n], 0, 1 + rng_below(&random, 300), rng_below(&random, values),
                r % 2 == 0};

            assert_random_cuts(&c, &random, 1 + rng_below(&random, 5000));
            c.eos = 1u << 31; /* does not occur */
            assert_random_cuts(&c, &random, PIECE_TOKENS);
            free(tokens);
        }
    }
}

static void all_the_same(void **state) {
    uint32_t *tokens;
    rng r = {79};

    (void)state;
    SKIP_UNDER_TSAN();
    tokens = grab(3000 * sizeof *tokens);
    for (uint32_t value = 0; value < 3; value++) {
        stat_case c = {tokens, 3000, 400, 2, 1, true};

        for (size_t k = 0; k < c.count; k++)
            tokens[k] = value;
        for (size_t k = 0; k < (is_full_test() ? 20 : 4); k++)
            assert_random_cuts(&c, &r, 1 + rng_below(&r, 700));
    }
    free(tokens);
}

/* The largest tokens and the largest vocabulary. */
static void extremes(void **state) {
    uint32_t tokens[300];
    rng r = {80};

    (void)state;
    for (size_t k = 0; k < COUNT(tokens); k++)
        tokens[k] = rng_below(&r, 2) ? UINT32_MAX : UINT32_MAX - 1;
    for (uint64_t vocab = UINT32_MAX - UINT64_C(1); vocab <= UINT64_C(1) << 32; vocab++) {
        stat_case c = {tokens, COUNT(tokens), 0, vocab, UINT32_MAX, false};

        assert_random_cuts(&c, &r, 200);
    }
}

/* Documents longer than a piece, and longer than the exactly counted lengths. */
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
    s = make_range(&c, 0, count, PIECE_TOKENS);
    assert_report(
        s,
        &c); /* 6, 4096, 4097, 91802, 2^20 in all, 2^21 + 1, the rest: median and largest exact */
    iron_stat_destroy(s);
    for (size_t k = 0; k < 4; k++)
        tokens[ends[k]] = 0;
    m = model_report(&c);
    s = make_range(&c, 0, count, PIECE_TOKENS);
    assert_int_equal(iron_stat_describe(s, &r, NULL), IRON_OK);
    assert_int_equal(m.document_median, (2 << 20) - 100002);
    assert_int_equal(r.document_median,
                     m.document_median / 1024 * 1024); /* the smallest of its counter */
    r.document_median = m.document_median;
    assert_same_report(&r, &m);
    iron_stat_destroy(s);
    free(tokens);
}

static uint64_t documents_in(const stat_lengths *t) {
    uint64_t total = 0;

    for (size_t k = 0; k < LENGTHS_COUNTERS; k++)
        total += t->counts[k];
    return total;
}

static void lengths_beyond_the_exact(void **state) {
    stat_lengths *t = calloc(1, sizeof *t);
    rng r = {81};

    (void)state;
    assert_non_null(t);
    assert_int_equal(lengths_min(t), 0);
    assert_int_equal(lengths_max(t), 0);
    for (size_t bits = 1; bits <= 64; bits++) {
        uint64_t length = (rng_next(&r) | UINT64_C(1) << 63) >> (64 - bits), found;

        lengths_add(t, length, 3);
        assert_int_equal(lengths_max(t), length);
        assert_int_equal(documents_in(t), 3 * bits);
        found = lengths_at(t, NULL, 0, 3 * bits);
        assert_true(found <= length && length - found <= length / 1024);
        assert_true(length > LENGTHS_EXACT || found == length);
        assert_int_equal(lengths_at(t, NULL, 0, 1), 1);
    }
    assert_int_equal(lengths_at(t, (uint64_t[]){1, 1}, 2, 5), 1);
    memset(t, 0, sizeof *t);
    lengths_add(t, UINT64_MAX, 1);
    lengths_add(t, LENGTHS_EXACT + 1, 1);
    assert_int_equal(lengths_min(t), LENGTHS_EXACT + 1);
    assert_int_equal(lengths_max(t), UINT64_MAX);
    assert_int_equal(lengths_at(t, NULL, 0, 1), LENGTHS_EXACT + 1);
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

static void words_round_trip(void **state) {
    rng r = {82};

    (void)state;
    for (size_t count = 0; count < 400; count += 1 + count / 3) {
        uint32_t *tokens = grab_stream(&r, count, 30, 50);
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

/* Any bit, any truncation; and contradictions with a correct checksum. */
static void damaged_words(void **state) {
    static const size_t fields[] = {5, 6, 7, 9, 27, 29, 30, 35, 36, 37, 38, 39, 26, 32, 33};
    const size_t subtle = 12; /* from here on, one more is possible, but too many are not */
    rng r = {83};
    uint32_t *tokens = grab_stream(&r, 200, 30, 9);
    stat_case c = {tokens, 200, 8, 25, 7, true};
    iron_stat *s = make_range(&c, 0, 200, 100);
    size_t count;
    uint64_t *w = grab_words(s, &count);

    (void)state;
    for (size_t k = 0; k < count; k++) {
        uint64_t bit = UINT64_C(1) << rng_below(&r, 64);

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
    rng r = {84};

    (void)state;
    assert_true(log2_of(1) == 0 && log2_of(8) == 3 && log2_of(0.25) == -2);
    for (size_t k = 0; k < 200000; k++) {
        double x = ldexp(1 + (double)(rng_next(&r) >> 11) * 0x1p-53, (int)rng_below(&r, 130) - 65);
        double found = log2_of(x), wanted = log2(x);

        assert_true(fabs(found - wanted) <= 1e-15 * (fabs(wanted) > 1 ? fabs(wanted) : 1));
    }
    for (int k = -10000; k < 10000; k++) {
        double x = 1 + 1e-8 * k;

        assert_true(fabs(log2_of(x) - log2(x)) <= 1e-15);
    }
}

static void refused_rules(void **state) {
    static const stat_rule bad[] = {{0, 0}, {(UINT64_C(1) << 32) + 1, 0}, {5, UINT64_C(1) << 32}};
    stat_rule large = {HISTOGRAM_MAX + 1, 0};
    iron_stat *s;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++)
        assert_refused(stat_create(&bad[k], false, 0, &s, &err), IRON_E_ARG, &err);
    assert_refused(stat_create(&large, true, 0, &s, &err), IRON_E_ARG, &err);
    assert_says(&err, "67108864");
}

#define TOKENS 700013u /* eleven pieces */

static folder place;
static uint32_t *tokens;

static int set_up(void **state) {
    rng r = {91};

    (void)state;
    folder_make(&place);
    tokens = grab_stream(&r, TOKENS, 250, 90);
    alarm(3000);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    alarm(0);
    free(tokens);
    folder_remove(&place);
    return 0;
}

static void *store(iron_dtype dtype, const uint32_t *from, size_t count) {
    size_t width = iron_dtype_bytes(dtype);
    unsigned char *data = grab(count * width);

    for (size_t k = 0; k < count; k++) {
        uint64_t value = from[k];

        memcpy(data + k * width, &value, width); /* the low bytes come first */
    }
    return data;
}

/* The stream as three files; the second is empty. */
static iron_source *open_files(iron_dtype dtype, size_t count) {
    const char *names[] = {"a", "b", "c"};
    size_t width = iron_dtype_bytes(dtype), cuts[] = {0, count / 3, count / 3, count};
    unsigned char *data = store(dtype, tokens, count);
    file_name files[3];
    const char *paths[3];
    iron_source_options o = {
        .struct_size = sizeof o, .dtype = dtype, .format = "raw", .paths = paths, .path_count = 3};
    iron_source *s = NULL;
    iron_error err;

    for (size_t k = 0; k < 3; k++) {
        files[k] = name_in(&place, names[k]);
        paths[k] = files[k].path;
        file_write(paths[k], data + cuts[k] * width, (cuts[k + 1] - cuts[k]) * width);
    }
    free(data);
    assert_ok(iron_source_open(&o, &s, &err), &err);
    return s;
}

static iron_stat_options some_options(void) {
    iron_stat_options o;

    iron_stat_options_init(&o);
    o.vocab = 240;
    o.eos = 17;
    o.wants_histogram = 1;
    o.threads = 3;
    return o;
}

static void assert_statistics(iron_source *s, const iron_stat_options *o, size_t count) {
    stat_case c = {tokens + o->first, count, o->first, o->vocab, o->eos, o->wants_histogram};
    iron_stat *stat = NULL;
    iron_error err;

    assert_ok(iron_stat_source(s, o, &stat, &err), &err);
    assert_report(stat, &c);
    iron_stat_destroy(stat);
}

static void files_of_every_width(void **state) {
    static const iron_dtype dtypes[] = {IRON_DTYPE_U8, IRON_DTYPE_U16, IRON_DTYPE_U32,
                                        IRON_DTYPE_I32, IRON_DTYPE_I64};
    static const size_t counts[] = {0, 1, 65536, 65537, TOKENS};
    static const uint32_t threads[] = {0, 1, 7};

    (void)state;
    for (size_t w = 0; w < COUNT(dtypes); w++) {
        for (size_t n = 0; n < COUNT(counts); n++) {
            iron_source *s = open_files(dtypes[w], counts[n]);
            iron_stat_options o = some_options();
            size_t more;
            uint64_t token;

            o.threads = threads[(w + n) % COUNT(threads)];
            o.eos = n % 3 == 2 ? 70000 : 17; /* does not fit 16 bits */
            assert_statistics(s, &o, counts[n]);
            assert_int_equal(iron_source_read(s, &token, 1, &more, NULL), IRON_OK);
            assert_int_equal(more, 0); /* the source has advanced */
            iron_source_close(s);
        }
    }
}

/* Consecutive ranges, as separate processes compute them, joined through their words. */
static void ranges_join(void **state) {
    static const uint64_t cuts[] = {0, 4, 65536, 65536, 300000, 300004, TOKENS};
    stat_case c = {tokens, TOKENS, 0, 240, 17, true};
    iron_stat *all = NULL;
    iron_error err;

    (void)state;
    for (size_t k = 0; k + 1 < COUNT(cuts); k++) {
        iron_stat_options o = some_options();
        iron_source *s = open_files(IRON_DTYPE_U16, TOKENS);
        iron_stat *part = NULL;

        o.first = cuts[k];
        o.count = cuts[k + 1] - cuts[k];
        assert_ok(iron_stat_source(s, &o, &part, &err), &err);
        iron_source_close(s);
        if (!all) {
            all = part;
            continue;
        }
        assert_ok(iron_stat_append(all, part, &err), &err);
        iron_stat_destroy(part);
    }
    assert_report(all, &c);
    iron_stat_destroy(all);
}

typedef struct sender {
    const void *data;
    size_t bytes;
    int to;
} sender;

static void *send_all(void *argument) {
    const sender *s = argument;
    const char *at = s->data;

    for (size_t left = s->bytes; left > 0;) {
        ssize_t sent = write(s->to, at, left);

        if (sent <= 0)
            break;
        at += sent;
        left -= (size_t)sent;
    }
    close(s->to);
    return NULL;
}

static void a_pipe(void **state) {
    static const iron_dtype dtypes[] = {IRON_DTYPE_U8, IRON_DTYPE_U16, IRON_DTYPE_I64};

    (void)state;
    for (size_t w = 0; w < COUNT(dtypes); w++) {
        const char *path = "-";
        iron_source_options so = {.struct_size = sizeof so,
                                  .dtype = dtypes[w],
                                  .format = "raw",
                                  .paths = &path,
                                  .path_count = 1};
        iron_stat_options o = some_options();
        void *data = store(dtypes[w], tokens, TOKENS);
        sender send = {data, TOKENS * iron_dtype_bytes(dtypes[w]), -1};
        iron_source *s = NULL;
        pthread_t thread;
        int saved;

        send.to = pipe_as_stdin(&saved);
        assert_int_equal(pthread_create(&thread, NULL, send_all, &send), 0);
        assert_int_equal(iron_source_open(&so, &s, NULL), IRON_OK);
        assert_statistics(s, &o, TOKENS);
        pthread_join(thread, NULL);
        iron_source_close(s);
        restore_stdin(saved);
        free(data);
    }
}

static void assert_stat_refused(iron_source *s, const iron_stat_options *o, iron_status status,
                                const char *word) {
    iron_stat *stat = (iron_stat *)(uintptr_t)1;
    iron_error err;

    assert_refused(iron_stat_source(s, o, &stat, &err), status, &err);
    assert_says(&err, word);
    assert_null(stat);
    assert_int_equal(iron_stat_source(s, o, &stat, NULL), status);
}

static void refusals(void **state) {
    iron_source *s = open_files(IRON_DTYPE_U8, 1000);
    iron_stat_options o = some_options();

    (void)state;
    o.struct_size--;
    assert_stat_refused(s, &o, IRON_E_ARG, "struct_size");
    o = some_options();
    o.first = 6;
    assert_stat_refused(s, &o, IRON_E_ARG, "multiples of 4");
    o.first = 1004;
    assert_stat_refused(s, &o, IRON_E_ARG, "1000");
    o.first = 8;
    o.count = 993;
    assert_stat_refused(s, &o, IRON_E_ARG, "1000");
    o = some_options();
    o.vocab = 0;
    assert_stat_refused(s, &o, IRON_E_ARG, "vocab");
    o = some_options();
    assert_statistics(s, &o, 1000);
    iron_source_close(s);
}

/* The first of several bad tokens is reported, whichever thread found which. */
static void bad_tokens(void **state) {
    int32_t *data = store(IRON_DTYPE_I32, tokens, TOKENS);
    static const size_t bad[] = {300001, 300002, 420000, 700000};
    file_name file = name_in(&place, "bad");
    const char *path = file.path;
    iron_source_options so = {.struct_size = sizeof so,
                              .dtype = IRON_DTYPE_I32,
                              .format = "raw",
                              .paths = &path,
                              .path_count = 1};

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++)
        data[bad[k]] = -(int32_t)k - 5;
    file_write(path, data, TOKENS * sizeof *data);
    for (uint32_t threads = 1; threads <= 8; threads++) {
        iron_stat_options o = some_options();
        iron_source *s = NULL;

        o.threads = threads;
        assert_int_equal(iron_source_open(&so, &s, NULL), IRON_OK);
        assert_stat_refused(s, &o, IRON_E_FORMAT, "position 300001 is -5");
        iron_source_close(s);
    }
    free(data);
}

static int stop_at_once(void *context, uint64_t done, uint64_t total) {
    uint64_t *seen = context;

    assert_true(done > 0 && done <= total);
    *seen = done;
    return done > 0;
}

static void cancelled(void **state) {
    iron_source *s = open_files(IRON_DTYPE_U16, TOKENS);
    iron_stat_options o = some_options();
    uint64_t seen = 0;

    (void)state;
    o.progress = stop_at_once;
    o.context = &seen;
    assert_stat_refused(s, &o, IRON_E_CANCELLED, "cancelled");
    assert_true(seen > 0);
    iron_source_close(s);
}

static void a_file_that_shrank(void **state) {
    iron_source *s = open_files(IRON_DTYPE_U16, TOKENS);
    iron_stat_options o = some_options();

    (void)state;
    assert_int_equal(truncate(name_in(&place, "c").path, 2000), 0);
    assert_stat_refused(s, &o, IRON_E_IO, "c");
    iron_source_close(s);
}

static void a_file_that_grew(void **state) {
    iron_source *s = open_files(IRON_DTYPE_U16, TOKENS);
    iron_stat_options o = some_options();

    (void)state;
    assert_int_equal(truncate(name_in(&place, "c").path, 4 * TOKENS), 0);
    assert_stat_refused(s, &o, IRON_E_IO, "bytes now");
    iron_source_close(s);
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
        cmocka_unit_test(words_round_trip),
        cmocka_unit_test(damaged_words),
        cmocka_unit_test(logarithms),
        cmocka_unit_test(refused_rules),
        cmocka_unit_test(files_of_every_width),
        cmocka_unit_test(ranges_join),
        cmocka_unit_test(a_pipe),
        cmocka_unit_test(refusals),
        cmocka_unit_test(bad_tokens),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(a_file_that_shrank),
        cmocka_unit_test(a_file_that_grew),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}