/* SPDX-License-Identifier: MIT */
/*
 * test_diff.c: two streams compared token by token: the first difference, its values and the
 * differing chunks, for every width, number of threads, odd size and border, from files and pipes;
 * and refusals.
 */
#include "diff_support.h"
#include "place.h"

#include <pthread.h>

static const uint32_t threads_tried[] = {1, 2, 3, 8};

static void equal_streams_of_all_sizes(void **state) {
    static const size_t sizes[] = {0, 1, 3, 4, 1023, 1024, 1025, 32768, 262144, 262145, 600001};

    (void)state;
    for (size_t k = 0; k < COUNT(sizes); k++)
        for (size_t t = 0; t < COUNT(threads_tried); t++) {
            stream s = stream_random(5, 50257, sizes[k]);
            iron_diff_report r = compare_files(&place, &s, &s, 1024, threads_tried[t]);

            assert_int_equal(r.kind, IRON_DIFF_EQUAL);
            assert_int_equal(r.first, IRON_COUNT_UNKNOWN);
            assert_int_equal(r.differing_chunks, 0);
            free(s.tokens);
        }
}

/* One token at a time, at every border that the code or the chunks have. */
static void one_token_anywhere(void **state) {
    static const size_t places[] = {0,      1,      1023,   1024,   1025,   2047,   2048,
                                    32767,  32768,  65535,  65536,  131071, 131072, 262143,
                                    262144, 262145, 524287, 524288, 600000, 599999};
    stream a = stream_random(6, 50257, 600001), b = stream_part(&a, 0, a.count);

    (void)state;
    for (size_t k = 0; k < COUNT(places); k++) {
        iron_diff_report r;

        b.tokens[places[k]] ^= 1u << (k % 16);
        r = compare_files(&place, &a, &b, k % 2 ? 1024 : 1048576, threads_tried[k % 4]);
        assert_int_equal(r.kind, IRON_DIFF_CHANGED);
        assert_int_equal(r.differing_chunks, 1);
        b.tokens[places[k]] = a.tokens[places[k]];
    }
    free(a.tokens);
    free(b.tokens);
}

static void many_tokens_anywhere(void **state) {
    static const uint64_t chunks[] = {1024, 1028, 4096, 100000, 0};
    rng r = {77};

    (void)state;
    for (size_t trial = 0; trial < 40; trial++) {
        stream a = stream_random(trial + 1, 50257, 1 + rng_below(&r, 300000));
        stream b = stream_part(&a, 0, 1 + rng_below(&r, a.count));

        for (uint64_t k = rng_below(&r, 20); k > 0; k--)
            b.tokens[rng_below(&r, b.count)] = 50257 + (uint32_t)k;
        compare_files(&place, &a, &b, chunks[trial % COUNT(chunks)], threads_tried[trial % 4]);
        compare_files(&place, &b, &a, chunks[trial % COUNT(chunks)], threads_tried[trial % 4]);
        free(a.tokens);
        free(b.tokens);
    }
}

static iron_diff_report compare_dtypes(const stream *a, const stream *b, iron_dtype x, iron_dtype y,
                                       uint32_t threads) {
    file_name first = name_in(&place, "a.bin"), second = name_in(&place, "b.bin");
    iron_diff_side sides[2] = {{NULL, NULL, "A"}, {NULL, NULL, "B"}};
    iron_diff_report r;
    iron_diff *d;

    stream_store(a, x, first.path);
    stream_store(b, y, second.path);
    sides[0].source = source_open(first.path, x);
    sides[1].source = source_open(second.path, y);
    d = compare_sides(&sides[0], &sides[1], 1024, threads);
    r = assert_exact(d, a, b);
    iron_diff_destroy(d);
    iron_source_close(sides[0].source);
    iron_source_close(sides[1].source);
    return r;
}

static void every_pair_of_widths(void **state) {
    static const iron_dtype dtypes[] = {IRON_DTYPE_U8, IRON_DTYPE_U16, IRON_DTYPE_U32,
                                        IRON_DTYPE_I32, IRON_DTYPE_I64};
    stream a = stream_random(9, 256, 150001);
    rng r = {3};

    (void)state;
    for (size_t x = 0; x < COUNT(dtypes); x++)
        for (size_t y = 0; y < COUNT(dtypes); y++) {
            stream b = stream_part(&a, 0, a.count);
            uint32_t threads = threads_tried[(x + y) % 4];

            assert_int_equal(compare_dtypes(&a, &b, dtypes[x], dtypes[y], threads).kind,
                             IRON_DIFF_EQUAL);
            b.tokens[rng_below(&r, b.count)] ^= 4;
            compare_dtypes(&a, &b, dtypes[x], dtypes[y], threads);
            b.tokens[b.count - 1] ^= 1;
            compare_dtypes(&a, &b, dtypes[x], dtypes[y], threads);
            free(b.tokens);
        }
    free(a.tokens);
}

/* A bad value is found anywhere: in a chunk that differs anyway, after the other's end. */
static void values_that_are_not_tokens(void **state) {
    static const size_t bad_places[] = {5, 1500, 90000, 99999};
    file_name first = name_in(&place, "a.bin"), second = name_in(&place, "b.bin");
    stream a = stream_random(10, 256, 100000), b = stream_part(&a, 0, 50000);
    int32_t *stored = grab(a.count * sizeof *stored);

    (void)state;
    b.tokens[3] ^= 1;
    stream_store(&b, IRON_DTYPE_U16, second.path);
    for (size_t k = 0; k < COUNT(bad_places); k++) {
        iron_diff_side sides[2] = {{NULL, NULL, "A"}, {NULL, NULL, "B"}};
        iron_diff *d = NULL;
        char says[32];
        iron_error err;

        memcpy(stored, a.tokens, a.count * sizeof *stored);
        stored[bad_places[k]] = -7;
        file_write(first.path, stored, a.count * sizeof *stored);
        sides[0].source = source_open(first.path, IRON_DTYPE_I32);
        sides[1].source = source_open(second.path, IRON_DTYPE_U16);
        assert_refused(iron_diff_run(&sides[0], &sides[1], NULL, &d, &err), IRON_E_FORMAT, &err);
        assert_null(d);
        snprintf(says, sizeof says, "position %zu is -7", bad_places[k]);
        assert_says(&err, says);
        iron_source_close(sides[0].source);
        iron_source_close(sides[1].source);
    }
    free(stored);
    free(a.tokens);
    free(b.tokens);
}

/* The same tokens in other files: the file boundaries do not matter. */
static void shards_against_one_file(void **state) {
    static const size_t sizes[] = {0, 1, 30000, 0, 5, 69994};
    uint16_t *tokens = grab(100000 * sizeof *tokens);
    stream a = {grab(100000 * sizeof *a.tokens), 100000};
    file_name whole = name_in(&place, "b.bin");
    iron_diff_side sides[2] = {{NULL, NULL, "A"}, {NULL, NULL, "B"}};
    shards files;
    iron_diff *d;

    (void)state;
    fill_u16(tokens, a.count);
    for (size_t k = 0; k < a.count; k++)
        a.tokens[k] = tokens[k];
    files = shards_write(&place, tokens, sizes, COUNT(sizes));
    for (size_t at = 29999; at < 30010; at++) {
        stream b = stream_part(&a, 0, a.count);

        b.tokens[at] ^= 1;
        stream_store(&b, IRON_DTYPE_U32, whole.path);
        sides[0].source = shards_open(&files);
        sides[1].source = source_open(whole.path, IRON_DTYPE_U32);
        d = compare_sides(&sides[0], &sides[1], 1024, 2);
        assert_exact(d, &a, &b);
        iron_diff_destroy(d);
        iron_source_close(sides[0].source);
        iron_source_close(sides[1].source);
        free(b.tokens);
    }
    shards_free(&files);
    free(tokens);
    free(a.tokens);
}

typedef struct writer {
    int fd;
    const stream *s;
} writer;

static void *write_stream(void *context) {
    const writer *w = context;
    const char *bytes = (const char *)w->s->tokens;
    size_t left = w->s->count * sizeof *w->s->tokens;

    while (left > 0) {
        ssize_t done = write(w->fd, bytes, left);

        if (done <= 0)
            break;
        bytes += done;
        left -= (size_t)done;
    }
    close(w->fd);
    return NULL;
}

/* Standard input as a pipe, on either side. */
static iron_diff_report compare_piped(const stream *a, const stream *b, int piped) {
    const stream *both[2] = {a, b};
    file_name name = name_in(&place, "other.bin");
    iron_diff_side sides[2] = {{NULL, NULL, "A"}, {NULL, NULL, "B"}};
    writer w = {.s = both[piped]};
    iron_diff_report r;
    pthread_t thread;
    iron_diff *d;
    int saved;

    stream_store(both[!piped], IRON_DTYPE_U32, name.path);
    w.fd = pipe_as_stdin(&saved);
    assert_int_equal(pthread_create(&thread, NULL, write_stream, &w), 0);
    sides[piped].source = source_open("-", IRON_DTYPE_U32);
    sides[!piped].source = source_open(name.path, IRON_DTYPE_U32);
    d = compare_sides(&sides[0], &sides[1], 1024, 2);
    r = assert_exact(d, a, b);
    iron_diff_destroy(d);
    iron_source_close(sides[0].source);
    iron_source_close(sides[1].source);
    pthread_join(thread, NULL);
    restore_stdin(saved);
    return r;
}

static void a_pipe_on_either_side(void **state) {
    static const size_t counts[] = {0, 1, 65535, 65536, 65537, 131072, 200000};
    stream a = stream_random(12, 50257, 200000);

    (void)state;
    for (size_t k = 0; k < COUNT(counts); k++) {
        stream b = stream_part(&a, 0, counts[k]);

        for (int piped = 0; piped < 2; piped++) {
            iron_diff_report r = compare_piped(&a, &b, piped);

            assert_int_equal(r.kind, counts[k] == a.count ? IRON_DIFF_EQUAL : IRON_DIFF_TRUNCATED);
            assert_int_equal(compare_piped(&b, &a, piped).kind,
                             counts[k] == a.count ? IRON_DIFF_EQUAL : IRON_DIFF_EXTENDED);
            if (counts[k] > 0) {
                b.tokens[counts[k] / 2] ^= 1;
                b.tokens[counts[k] - 1] ^= 1;
                compare_piped(&a, &b, piped);
                b.tokens[counts[k] / 2] ^= 1;
                b.tokens[counts[k] - 1] ^= 1;
            }
        }
        free(b.tokens);
    }
    free(a.tokens);
}

static int stop_at_once(void *context, uint64_t done, uint64_t total) {
    (void)done;
    (void)total;
    ++*(int *)context;
    return 1;
}

static void refused_calls(void **state) {
    stream a = stream_random(13, 100, 5000);
    file_name name = name_in(&place, "a.bin");
    iron_diff_side none = {NULL, NULL, "nothing"}, side = {NULL, NULL, NULL}, other = side;
    iron_diff_options o = {.struct_size = sizeof o, .chunk_tokens = 1022};
    iron_diff_report r = {0};
    iron_diff *d = NULL;
    iron_error err;
    int calls = 0;

    (void)state;
    stream_store(&a, IRON_DTYPE_U32, name.path);
    side.source = source_open(name.path, IRON_DTYPE_U32);
    other.source = source_open(name.path, IRON_DTYPE_U32);
    assert_refused(iron_diff_run(&side, &none, NULL, &d, &err), IRON_E_ARG, &err);
    assert_says(&err, "nothing");
    assert_refused(iron_diff_run(&side, &side, NULL, &d, &err), IRON_E_ARG, &err);
    assert_refused(iron_diff_run(&side, &other, &o, &d, &err), IRON_E_ARG, &err);
    o.chunk_tokens = 512;
    assert_refused(iron_diff_run(&side, &other, &o, &d, &err), IRON_E_ARG, &err);
    o.chunk_tokens = 1024;
    o.threads = 5000;
    assert_refused(iron_diff_run(&side, &other, &o, &d, &err), IRON_E_ARG, &err);
    o.threads = 1;
    o.struct_size = 8;
    assert_refused(iron_diff_run(&side, &other, &o, &d, &err), IRON_E_ARG, &err);
    o.struct_size = sizeof o;
    o.progress = stop_at_once;
    o.context = &calls;
    assert_refused(iron_diff_run(&side, &other, &o, &d, &err), IRON_E_CANCELLED, &err);
    assert_true(calls > 0);
    assert_null(d);
    assert_int_equal(iron_diff_run(&side, &other, NULL, &d, NULL), IRON_OK);
    assert_refused(iron_diff_describe(d, &r, &err), IRON_E_ARG, &err);
    iron_diff_destroy(d);
    iron_diff_destroy(NULL);
    iron_source_close(side.source);
    iron_source_close(other.source);
    free(a.tokens);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_streams_of_all_sizes), cmocka_unit_test(one_token_anywhere),
        cmocka_unit_test(many_tokens_anywhere),       cmocka_unit_test(every_pair_of_widths),
        cmocka_unit_test(values_that_are_not_tokens), cmocka_unit_test(shards_against_one_file),
        cmocka_unit_test(a_pipe_on_either_side),      cmocka_unit_test(refused_calls),
    };

    return cmocka_run_group_tests(tests, make_place, remove_place);
}
