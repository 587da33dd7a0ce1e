/* SPDX-License-Identifier: MIT */
/*
 * test_bag.c: bags against the golden vectors and against a simple reference, which seals one
 * sample after the other: every cut and width, several files, threads, parts, pipes, documents of
 * indexes, long samples (which are made short here), any order of samples, texts and refusals.
 */
#define LONG_TOKENS ((uint64_t)30000)
#include "digest/scan.c"

#include "core/json.h"
#include "place.h"
#include "scan_support.h"

#include <pthread.h>
#include <unistd.h>

static const iron_dtype dtypes[] = {IRON_DTYPE_U8, IRON_DTYPE_U16, IRON_DTYPE_U32, IRON_DTYPE_I32,
                                    IRON_DTYPE_I64};

/* The reference. */

static void plain_sample(iron_bag *bag, const uint32_t *tokens, size_t count) {
    char text[IRON_SEAL_TEXT], half[17] = "";

    iron__seal_text(words_of(tokens, count), text);
    memcpy(half, text, 16);
    bag->hi += strtoull(half, NULL, 16);
    bag->lo += strtoull(text + 16, NULL, 16);
    bag->samples++;
}

/* Samples that begin at first ... end-1. */
static iron_bag plain_bag(iron_bag_cut cut, const uint32_t *tokens, size_t count, size_t first,
                          size_t end) {
    iron_bag bag = {0, 0, 0};

    for (size_t begin = 0, next; begin < count; begin = next) {
        next = begin + 1;
        if (cut.kind == IRON_BAG_CUT_SAMPLE)
            next = cut.value < count - begin ? begin + (size_t)cut.value : count;
        while (cut.kind == IRON_BAG_CUT_EOS && next < count && tokens[next - 1] != cut.value)
            next++;
        if (begin >= first && begin < end)
            plain_sample(&bag, tokens + begin, next - begin);
    }
    return bag;
}

static void assert_bag(const iron_bag *got, const iron_bag *want) {
    assert_int_equal(got->samples, want->samples);
    assert_int_equal(got->hi, want->hi);
    assert_int_equal(got->lo, want->lo);
}

static iron_bag_result bag_of(iron_source *source, iron_bag_cut cut, uint32_t threads) {
    iron_bag_result result = {.struct_size = sizeof result};
    iron_bag_options o;
    iron_error err;

    iron_bag_options_init(&o);
    o.cut = cut;
    o.threads = threads;
    assert_ok(iron_bag_source(source, &o, &result, &err), &err);
    return result;
}

/* Golden vectors. */

static uint32_t *golden_tokens(const iron__json *list, size_t *count) {
    uint32_t *tokens = grab((iron__json_length(list) + 1) * sizeof *tokens);

    *count = iron__json_length(list);
    for (size_t k = 0; k < *count; k++) {
        uint64_t value = 0;

        assert_true(iron__json_get_whole(iron__json_at(list, k), UINT32_MAX, &value));
        tokens[k] = (uint32_t)value;
    }
    return tokens;
}

static uint32_t *golden_stream(const iron__json *c, size_t *count) {
    const iron__json *gen = iron__json_member(c, "gen");
    uint64_t seed = 0, tokens = 0, limit = 0;

    if (!gen)
        return golden_tokens(iron__json_member(c, "tokens"), count);
    assert_true(iron__json_get_whole(iron__json_member(gen, "seed"), UINT64_MAX, &seed));
    assert_true(iron__json_get_whole(iron__json_member(gen, "count"), UINT32_MAX, &tokens));
    assert_true(iron__json_get_whole(iron__json_member(gen, "limit"), UINT64_MAX, &limit));
    *count = (size_t)tokens;
    return grab_tokens(seed, limit, *count);
}

static void golden_rows(const iron__json *rows, const char *want) {
    char text[IRON_BAG_TEXT];
    iron_bag bag = {0, 0, 0};
    iron_error err;

    for (size_t k = 0; k < iron__json_length(rows); k++) {
        size_t count;
        uint32_t *row = golden_tokens(iron__json_at(rows, k), &count);

        assert_ok(iron_bag_add_sample(&bag, IRON_DTYPE_U32, row, count, &err), &err);
        free(row);
    }
    iron_bag_format(&bag, text);
    assert_string_equal(text, want);
}

static void golden(void **state) {
    const iron_allocator *allocator = iron__allocator_default();
    file_name name = name_in(&place, "golden");
    const char *paths[] = {name.path};
    const iron__json *cases;
    iron__json *document = NULL;
    size_t bytes;
    char *text = file_read(IRON_TEST_GOLDEN, &bytes);
    iron_error err;

    (void)state;
    assert_ok(iron__json_parse(text, bytes, allocator, (void *)&document, &err), &err);
    cases = iron__json_member(document, "cases");
    assert_true(iron__json_length(cases) >= 10);
    for (size_t k = 0; k < iron__json_length(cases); k++) {
        const iron__json *c = iron__json_at(cases, k), *rows = iron__json_member(c, "rows");
        const char *want = iron__json_get_text(iron__json_member(c, "bag"));
        const char *cut_text = iron__json_get_text(iron__json_member(c, "cut"));
        iron_bag_result got;
        iron_source *source;
        iron_bag_cut cut;
        uint32_t *tokens;
        size_t count;

        assert_ok(iron_bag_cut_parse(cut_text, &cut, &err), &err);
        if (rows) {
            golden_rows(rows, want);
            continue;
        }
        tokens = golden_stream(c, &count);
        write_tokens(name.path, IRON_DTYPE_U32, tokens, count);
        source = open_all(IRON_DTYPE_U32, paths, 1);
        got = bag_of(source, cut, 2);
        assert_string_equal(got.text, want);
        assert_string_equal(got.cut_text, cut_text);
        iron_source_close(source);
        free(tokens);
    }
    iron__json_destroy(allocator, document);
    free(text);
}

/* Streams of files. */

#define FILES 7u

typedef struct stream {
    iron_dtype dtype;
    uint32_t *tokens;
    size_t count;
    file_name names[FILES];
    const char *paths[FILES];
} stream;

/* Random tokens below a limit in files of any size, some of them empty. */
static void stream_make(stream *s, iron_dtype dtype, uint64_t seed, uint32_t limit, size_t count) {
    rng r = {seed};
    size_t begin = 0;

    s->dtype = dtype;
    s->count = count;
    s->tokens = grab_tokens(seed, limit, count + 1);
    for (size_t k = 0; k < FILES; k++) {
        size_t left = count - begin;
        size_t some = k + 1 == FILES ? left : k % 3 == 1 ? 0 : (size_t)rng_below(&r, left / 2 + 1);
        char name[32];

        snprintf(name, sizeof name, "stream-%zu", k);
        s->names[k] = name_in(&place, name);
        s->paths[k] = s->names[k].path;
        write_tokens(s->paths[k], dtype, s->tokens + begin, some);
        begin += some;
    }
}

static iron_source *stream_open(const stream *s) { return open_all(s->dtype, s->paths, FILES); }

/* The whole stream by itself and within a scan; then parts of it. */
static void assert_stream_bag(const stream *s, iron_bag_cut cut, uint32_t threads, uint32_t parts) {
    iron_bag want = plain_bag(cut, s->tokens, s->count, 0, s->count), sum = {0, 0, 0};
    iron_source *source = stream_open(s);
    iron_bag_result got = bag_of(source, cut, threads);

    assert_bag(&got.bag, &want);
    for (uint32_t p = 0; p <= parts; p++) {
        iron_scan_options o = scan_options(threads, p % 2 ? 1024 : 0);
        iron_manifest *m = NULL;
        iron_error err;

        o.bag = cut;
        if (p > 0)
            assert_ok(iron_part_range(s->count, p, parts, &o.first, &o.count, &err), &err);
        assert_ok(iron_scan(source, &o, &m, &err), &err);
        if (p == 0) {
            iron__seal_words words = words_of(s->tokens, s->count);

            assert_bag(&m->bag, &want);
            assert_memory_equal(&m->words, &words, sizeof words);
        } else {
            iron_bag part =
                plain_bag(cut, s->tokens, s->count, (size_t)o.first, (size_t)(o.first + o.count));

            assert_bag(&m->bag, &part);
            iron_bag_merge(&sum, &m->bag);
        }
        iron_manifest_destroy(m);
    }
    if (parts > 0)
        assert_bag(&sum, &want);
    iron_source_close(source);
}

/* The lengths around those of quads, blocks and pieces; a piece has 65536 or 131072 tokens. */
static void samples_of_files(void **state) {
    static const uint64_t lengths[] = {1,     2,     3,      4,      5,        7,         16,
                                       64,    65,    1000,   4096,   4097,     65535,     65536,
                                       65537, 99999, 131072, 200000, 1u << 30, UINT64_MAX};
    static const size_t counts[] = {0, 1, 3, 1000, 140001, 200000};

    (void)state;
    for (size_t k = 0; k < COUNT(lengths); k++) {
        iron_dtype dtype = dtypes[k % COUNT(dtypes)];
        iron_bag_cut cut = {IRON_BAG_CUT_SAMPLE, lengths[k]};

        for (size_t n = k % 2; n < COUNT(counts); n += 2) {
            stream s;

            stream_make(&s, dtype, k + n, 256, counts[n]);
            assert_stream_bag(&s, cut, 1 + (uint32_t)(k + n) % 7, (uint32_t)(k % 3));
            free(s.tokens);
        }
    }
}

/* A limit of 2: every second token ends a document; larger ones: documents of that length. */
static void documents_by_eos(void **state) {
    static const uint32_t limits[] = {1, 2, 3, 50, 200, 70000};
    static const size_t counts[] = {0, 1, 2, 5000, 70001, 140000};

    (void)state;
    for (size_t k = 0; k < COUNT(limits); k++)
        for (size_t n = 0; n < COUNT(counts); n++) {
            iron_dtype dtype = dtypes[limits[k] > 256 ? 2 + n % 3 : n % COUNT(dtypes)];
            iron_bag_cut cut = {IRON_BAG_CUT_EOS, 0};
            stream s;

            stream_make(&s, dtype, k + n, limits[k], counts[n]);
            if (s.count > 100 && n % 2) { /* at the beginning and the end */
                cut.value = s.tokens[0];
                assert_stream_bag(&s, cut, 2, 0);
                cut.value = s.tokens[s.count - 1];
            }
            assert_stream_bag(&s, cut, 1 + (uint32_t)(k + n) % 7, (uint32_t)(n % 4));
            cut.value = UINT32_MAX - 1; /* none, and none that fits the width */
            assert_stream_bag(&s, cut, 1 + (uint32_t)n % 7, (uint32_t)(k % 3));
            free(s.tokens);
        }
}

/* Pipes. */

typedef struct pipe_writer {
    int fd;
    const void *data;
    size_t bytes;
} pipe_writer;

static void *write_all(void *context) {
    const pipe_writer *w = context;

    for (size_t done = 0; done < w->bytes;) {
        ssize_t some = write(w->fd, (const char *)w->data + done, w->bytes - done);

        if (some <= 0)
            break;
        done += (size_t)some;
    }
    close(w->fd);
    return NULL;
}

static iron_bag pipe_bag(iron_dtype dtype, const uint32_t *tokens, size_t count, iron_bag_cut cut) {
    static const char *const paths[] = {"-"};
    void *data = stored_as(dtype, tokens, count);
    pipe_writer w = {.data = data, .bytes = count * iron_dtype_bytes(dtype)};
    iron_source *source;
    iron_bag_result got;
    pthread_t thread;
    int saved;

    w.fd = pipe_as_stdin(&saved);
    assert_int_equal(pthread_create(&thread, NULL, write_all, &w), 0);
    source = open_all(dtype, paths, 1);
    got = bag_of(source, cut, 2);
    iron_source_close(source);
    pthread_join(thread, NULL);
    restore_stdin(saved);
    free(data);
    return got.bag;
}

/* A slot has 4 MiB. */
static void pipes(void **state) {
    static const iron_bag_cut cuts[] = {{IRON_BAG_CUT_SAMPLE, 1},
                                        {IRON_BAG_CUT_SAMPLE, 1000},
                                        {IRON_BAG_CUT_SAMPLE, 1u << 20},
                                        {IRON_BAG_CUT_EOS, 0},
                                        {IRON_BAG_CUT_EOS, 77}};
    static const size_t counts[] = {0, 1, 30, 700001};
    uint32_t *tokens = grab_tokens(5, 300, counts[3]);

    (void)state;
    for (size_t k = 0; k < COUNT(cuts); k++)
        for (size_t n = 0; n < COUNT(counts); n++) {
            iron_dtype dtype = n == 3 ? IRON_DTYPE_I64 : dtypes[1 + (k + n) % 4];
            iron_bag want = plain_bag(cuts[k], tokens, counts[n], 0, counts[n]);
            iron_bag got = pipe_bag(dtype, tokens, counts[n], cuts[k]);

            assert_bag(&got, &want);
        }
    free(tokens);
}

/* Rows of a pipe: starts arrive with the tokens; some rows are empty, also at the end. */
static void rows_of_pipes(void **state) {
    static const uint64_t starts[] = {0, 0, 3, 3, 3, 10, 100, 100, 250, 300, 300};
    uint32_t *tokens = grab_tokens(6, 1000, 300);
    iron_bag want = {0, 0, 0};

    (void)state;
    for (size_t k = 0; k < COUNT(starts); k++)
        plain_sample(&want, tokens + starts[k],
                     (size_t)((k + 1 < COUNT(starts) ? starts[k + 1] : 300) - starts[k]));
    for (size_t step = 1; step <= 300; step += step < 20 ? 1 : 37) {
        bag_job job = {.cut = {IRON_BAG_CUT_ROWS, 0}};
        uint32_t wide[IRON_WIDEN_TOKENS];
        bag_cutter c;
        size_t next = 0;
        iron_error err;

        cutter_init(&c, &job, wide);
        for (size_t at = 0; at <= 300; at += step) {
            iron__tokens_view view = {IRON_DTYPE_U32, tokens + at,
                                      step < 300 - at ? step : 300 - at};
            iron__block read = {.data = NULL};

            while (next < COUNT(starts) && starts[next] < at + view.count + (step % 2))
                assert_ok(iron__block_add_place(&read, starts[next++], &err), &err);
            while (view.count < step && next < COUNT(starts))
                assert_ok(iron__block_add_place(&read, starts[next++], &err), &err);
            assert_ok(cut_pipe(&c, &view, &read, &err), &err);
            iron__block_clear(&read);
        }
        while (next < COUNT(starts)) { /* at the end, without tokens */
            iron__tokens_view none = {IRON_DTYPE_U32, tokens, 0};
            iron__block read = {.data = NULL};

            assert_ok(iron__block_add_place(&read, starts[next++], &err), &err);
            assert_ok(cut_pipe(&c, &none, &read, &err), &err);
            iron__block_clear(&read);
        }
        finish_pipe(&job, &c);
        assert_bag(&job.sums, &want);
        cutter_deinit(&c);
    }
    free(tokens);
}

/* Documents of indexes: two or more files in one stream, also without tokens. */

static void write_numbers(const char *path, const uint64_t *numbers, size_t count) {
    file_write(path, numbers, count * sizeof *numbers);
}

typedef struct collection {
    uint32_t *tokens;
    size_t count, document_count;
    uint64_t *firsts; /* of documents in the stream, and the end of the last */
    file_name names[4];
    const char *paths[4];
} collection;

static void collection_make(collection *c, uint64_t seed, const size_t documents[4],
                            size_t longest) {
    rng r = {seed};
    size_t all = documents[0] + documents[1] + documents[2] + documents[3], d = 0;

    c->firsts = grab((all + 1) * sizeof *c->firsts);
    c->firsts[0] = 0;
    c->document_count = all;
    for (size_t k = 0; k < all; k++) {
        size_t length = rng_below(&r, 3) == 0 ? 0 : (size_t)rng_below(&r, longest + 1);

        length = seed % 5 == 0 && k % 50 == 0 ? 90000 : length;
        c->firsts[k + 1] = c->firsts[k] + length;
    }
    c->count = (size_t)c->firsts[all];
    c->tokens = grab_tokens(seed, 60000, c->count + 1);
    for (size_t k = 0; k < 4; k++) {
        uint64_t *ends = grab((documents[k] + 1) * sizeof *ends), base = c->firsts[d];
        char text[64];

        snprintf(text, sizeof text, "c%zu.ds", k);
        c->names[k] = name_in(&place, text);
        c->paths[k] = c->names[k].path;
        for (size_t n = 0; n < documents[k]; n++)
            ends[n] = c->firsts[d + n + 1] - base;
        d += documents[k];
        write_tokens(c->paths[k], IRON_DTYPE_U16, c->tokens + base, (size_t)(c->firsts[d] - base));
        snprintf(text, sizeof text, "c%zu.ds.index", k);
        write_numbers(name_in(&place, text).path, ends, documents[k]);
        free(ends);
    }
}

static void documents_of_indexes(void **state) {
    static const size_t documents[][4] = {{1, 0, 1, 0},      {0, 0, 0, 0},         {5, 1, 0, 7},
                                          {100, 3, 500, 20}, {9000, 2, 700, 3000}, {60, 60, 60, 60},
                                          {0, 7, 0, 0}};
    static const size_t longest[] = {0, 1, 5, 70, 900};
    static const iron_bag_cut cut = {IRON_BAG_CUT_FORMAT, 0};

    (void)state;
    for (size_t k = 0; k < COUNT(documents); k++)
        for (size_t n = 0; n < COUNT(longest) - (k == 4); n++) {
            uint32_t threads = 1 + (uint32_t)(k + n) % 7, parts = 1 + (uint32_t)(k + n) % 5;
            iron_bag want = {0, 0, 0}, sum = {0, 0, 0};
            iron_bag_result got;
            iron_source *source;
            collection c;

            collection_make(&c, k + n, documents[k], longest[n]);
            for (size_t d = 0; d < c.document_count; d++)
                plain_sample(&want, c.tokens + c.firsts[d],
                             (size_t)(c.firsts[d + 1] - c.firsts[d]));
            source = open_all(IRON_DTYPE_U16, c.paths, 4);
            got = bag_of(source, cut, threads);
            assert_bag(&got.bag, &want);
            assert_string_equal(got.cut_text, "documents");
            for (uint32_t p = 1; p <= parts; p++) {
                iron_scan_options o = scan_options(threads, 0);
                iron_manifest *m = NULL;
                iron_error err;

                o.bag = cut;
                o.part = p;
                o.parts = parts;
                assert_ok(iron_part_range(c.count, p, parts, &o.first, &o.count, &err), &err);
                assert_ok(iron_scan(source, &o, &m, &err), &err);
                iron_bag_merge(&sum, &m->bag);
                iron_manifest_destroy(m);
            }
            assert_bag(&sum, &want);
            iron_source_close(source);
            free(c.tokens);
            free(c.firsts);
        }
}

/* Samples in memory. */

static void any_order(void **state) {
    enum { SAMPLES = 40, LENGTH = 37 };
    uint32_t *tokens = grab_tokens(8, 1000, SAMPLES * LENGTH);
    iron_bag want = {0, 0, 0}, rows = {0, 0, 0};
    char text[IRON_BAG_TEXT];
    rng r = {3};
    iron_error err;

    (void)state;
    for (size_t k = 0; k < SAMPLES; k++)
        plain_sample(&want, tokens + k * LENGTH, LENGTH);
    for (int round = 0; round < 20; round++) {
        iron_bag halves[2] = {{0, 0, 0}, {0, 0, 0}};
        size_t order[SAMPLES];

        for (size_t k = 0; k < SAMPLES; k++) {
            size_t other = (size_t)rng_below(&r, k + 1);

            order[k] = k;
            order[k] = order[other];
            order[other] = k;
        }
        for (size_t k = 0; k < SAMPLES; k++)
            assert_ok(iron_bag_add_sample(&halves[rng_below(&r, 2)], IRON_DTYPE_U32,
                                          tokens + order[k] * LENGTH, LENGTH, &err),
                      &err);
        iron_bag_merge(&halves[0], &halves[1]);
        assert_bag(&halves[0], &want);
    }
    for (size_t d = 1; d < COUNT(dtypes); d++) {
        void *data = stored_as(dtypes[d], tokens, SAMPLES * LENGTH);

        rows = (iron_bag){0, 0, 0};
        assert_ok(iron_bag_add_rows(&rows, dtypes[d], data, SAMPLES, LENGTH, &err), &err);
        assert_bag(&rows, &want);
        free(data);
    }
    iron_bag_format(&want, text);
    assert_ok(iron_bag_parse(text, &rows, &err), &err);
    assert_bag(&rows, &want);
    /* one token of one sample */
    tokens[5]++;
    rows = (iron_bag){0, 0, 0};
    assert_ok(iron_bag_add_rows(&rows, IRON_DTYPE_U32, tokens, SAMPLES, LENGTH, &err), &err);
    assert_true(rows.hi != want.hi && rows.lo != want.lo);
    free(tokens);
}

static void refusals(void **state) {
    static const char *const bad_bags[] = {"",
                                           "0",
                                           "75cc79b64c72745e5b4579e8ce4f0323",
                                           "75cc79b64c72745e5b4579e8ce4f0323-",
                                           "75cc79b64c72745e5b4579e8ce4f0323-01",
                                           "75cc79b64c72745e5b4579e8ce4f0323-1 ",
                                           "75CC79B64C72745E5B4579E8CE4F0323-1",
                                           "75cc79b64c72745e5b4579e8ce4f0323-18446744073709551616"};
    static const char *const bad_cuts[] = {
        "",       "row",       "sample", "sample=", "sample=0", "sample=-1", "eos=4294967296",
        "eos=1x", "documents "};
    static const int64_t negative[] = {1, -1};
    file_name name = name_in(&place, "raw");
    const char *paths[] = {name.path};
    iron_bag_result result = {.struct_size = sizeof result};
    iron_bag bag = {1, 2, 3};
    iron_bag_options o;
    iron_source *source;
    iron_bag_cut cut;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(bad_bags); k++)
        assert_refused(iron_bag_parse(bad_bags[k], &bag, &err), IRON_E_FORMAT, &err);
    for (size_t k = 0; k < COUNT(bad_cuts); k++)
        assert_refused(iron_bag_cut_parse(bad_cuts[k], &cut, &err), IRON_E_FORMAT, &err);
    assert_refused(iron_bag_add_sample(&bag, IRON_DTYPE_I64, negative, 2, &err), IRON_E_FORMAT,
                   &err);
    assert_refused(iron_bag_add_sample(&bag, IRON_DTYPE_NONE, negative, 2, &err), IRON_E_ARG, &err);
    assert_refused(iron_bag_add_rows(&bag, IRON_DTYPE_U8, negative, SIZE_MAX, 2, &err), IRON_E_ARG,
                   &err);
    assert_true(bag.hi == 1 && bag.lo == 2 && bag.samples == 3);
    file_write(name.path, negative, sizeof negative);
    source = open_all(IRON_DTYPE_I64, paths, 1);
    iron_bag_options_init(&o);
    assert_refused(iron_bag_source(source, &o, &result, &err), IRON_E_ARG, &err);
    assert_says(&err, "--sample");
    o.cut = (iron_bag_cut){IRON_BAG_CUT_SAMPLE, 0};
    assert_refused(iron_bag_source(source, &o, &result, &err), IRON_E_ARG, &err);
    o.cut = (iron_bag_cut){IRON_BAG_CUT_SAMPLE, 5};
    assert_refused(iron_bag_source(source, &o, &result, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "position 1 is -1");
    o.cut.kind = IRON_BAG_CUT_NONE;
    assert_refused(iron_bag_source(source, &o, &result, &err), IRON_E_ARG, &err);
    iron_source_close(source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden),           cmocka_unit_test(samples_of_files),
        cmocka_unit_test(documents_by_eos), cmocka_unit_test(pipes),
        cmocka_unit_test(rows_of_pipes),    cmocka_unit_test(documents_of_indexes),
        cmocka_unit_test(any_order),        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, make_place, remove_place);
}
