/* SPDX-License-Identifier: MIT */
/*
 * test_stat_source.c: statistics of files and pipes by several threads: what a simple model says,
 * for every width, number of threads, and range; and every way it ends early ends it.
 */
#include "stat_support.h"

#include <pthread.h>

#define TOKENS 700013u /* eleven pieces */

static folder place;
static uint32_t *tokens;

static int set_up(void **state) {
    dice d = {91};

    (void)state;
    folder_make(&place);
    tokens = grab_stream(&d, TOKENS, 250, 90);
    alarm(300);
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

/* The stream as three files, of which the second is empty. */
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
            o.eos = n % 3 == 2 ? 70000 : 17; /* one that 16 bits cannot hold */
            assert_statistics(s, &o, counts[n]);
            assert_int_equal(iron_source_read(s, &token, 1, &more, NULL), IRON_OK);
            assert_int_equal(more, 0); /* the source has moved on */
            iron_source_close(s);
        }
    }
}

/* Ranges one after the other, as processes take them, joined through their words. */
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

static void what_is_refused(void **state) {
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

/* Of several bad tokens the first is named, whatever thread found which. */
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
        cmocka_unit_test(files_of_every_width),
        cmocka_unit_test(ranges_join),
        cmocka_unit_test(a_pipe),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(bad_tokens),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(a_file_that_shrank),
        cmocka_unit_test(a_file_that_grew),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
