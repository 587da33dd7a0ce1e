/* SPDX-License-Identifier: MIT */
/*
 * test_engine_feed.c: tokens from a source: of files, which all threads take where they are, and of
 * pipes. The result is that of the same tokens from memory, however they are split over files. A
 * feed ends early on a bad token, a file that shrank, a cancelling caller, and without memory. The
 * range check of i32 and i64 tokens runs on all threads and reports the first bad token.
 */
#include "engine_support.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#define TOKENS 3000017u /* 12 MB as u32: mapped */

static folder place;

static int make_place(void **state) {
    (void)state;
    folder_make(&place);
    alarm(3000); /* a reader that never ends must not hang the test suite */
    return 0;
}

static int remove_place(void **state) {
    (void)state;
    alarm(0);
    folder_remove(&place);
    return 0;
}

static iron_config some_config(void) {
    iron_config c;

    iron_config_init(&c);
    c.nodes = 50;
    c.batch = 77777;
    c.threads = 2;
    c.with_seal = 1;
    return c;
}

static iron_source *open_source(iron_dtype dtype, const char *const *paths, size_t count) {
    iron_source_options o = {.struct_size = sizeof o,
                             .dtype = dtype,
                             .format = NULL,
                             .paths = paths,
                             .path_count = count};
    iron_source *s = NULL;
    iron_error err;

    assert_ok(iron_source_open(&o, &s, &err), &err);
    return s;
}

static void assert_same(iron_engine *a, iron_engine *b) {
    iron_report x = {.struct_size = sizeof x}, y = {.struct_size = sizeof y};

    assert_int_equal(iron_engine_end_batch(a, NULL), IRON_OK);
    assert_int_equal(iron_engine_end_batch(b, NULL), IRON_OK);
    assert_int_equal(iron_engine_report(a, &x, NULL), IRON_OK);
    assert_int_equal(iron_engine_report(b, &y, NULL), IRON_OK);
    assert_true(x.tokens == y.tokens && x.batches == y.batches && x.state == y.state);
    assert_true(x.xor_total == y.xor_total && x.sum == y.sum);
    assert_string_equal(x.seal, y.seal);
}

static void *store(iron_dtype dtype, const uint32_t *tokens, size_t count) {
    size_t width = iron_dtype_bytes(dtype);
    unsigned char *data = grab(count * width);

    for (size_t k = 0; k < count; k++) {
        uint64_t value = tokens[k];

        memcpy(data + k * width, &value, width);
    }
    return data;
}

/* The last progress callback, and when to cancel. */
typedef struct watcher {
    uint64_t done, total, calls, stop_after;
} watcher;

static int watch(void *context, uint64_t done, uint64_t total) {
    watcher *w = context;

    w->calls++;
    w->done = done;
    w->total = total;
    return w->stop_after && done >= w->stop_after;
}

/* Three files, cut at any position. */
static void check_width(iron_dtype dtype, uint32_t threads, const uint32_t *tokens, size_t count,
                        iron_engine *expected) {
    static const char *const names[] = {"a", "b", "c"};
    const size_t cuts[] = {0, count / 7, count / 7 + 1, count};
    size_t width = iron_dtype_bytes(dtype);
    char *data = store(dtype, tokens, count);
    file_name files[3];
    const char *paths[3];
    iron_config c = some_config();
    iron_engine *e;
    watcher w = {0};
    iron_source *s;
    iron_error err;

    c.threads = threads;
    e = create(&c);
    for (size_t k = 0; k < 3; k++) {
        files[k] = name_in(&place, names[k]);
        paths[k] = files[k].path;
        file_write(paths[k], data + cuts[k] * width, (cuts[k + 1] - cuts[k]) * width);
    }
    s = open_source(dtype, paths, 3);
    assert_ok(iron_engine_feed_source(e, s, watch, &w, &err), &err);
    iron_source_close(s);
    assert_true(w.calls > 0 && w.done == count && w.total == count);
    assert_same(e, expected);
    iron_engine_destroy(e);
    free(data);
}

static void files_equal_memory(void **state) {
    uint32_t *tokens = grab_tokens(141, 256, TOKENS);
    iron_config c = some_config();
    iron_engine *expected = create(&c);
    iron_error err;

    (void)state;
    assert_ok(iron_engine_feed(expected, tokens, TOKENS, &err), &err);
    for (iron_dtype dtype = IRON_DTYPE_U8; dtype <= IRON_DTYPE_I64; dtype++)
        check_width(dtype, 2, tokens, TOKENS, expected);
    check_width(IRON_DTYPE_U32, 8, tokens, TOKENS, expected);
    iron_engine_destroy(expected);
    free(tokens);
}

/* Feeds tokens from a file of their own. */
static void feed_as_file(iron_engine *e, iron_dtype dtype, const uint32_t *tokens, size_t count) {
    file_name file = name_in(&place, "part");
    const char *path = file.path;
    char *data = store(dtype, tokens, count);
    iron_source *s;
    iron_error err;

    file_write(path, data, count * iron_dtype_bytes(dtype));
    s = open_source(dtype, &path, 1);
    assert_ok(iron_engine_feed_source(e, s, NULL, NULL, &err), &err);
    iron_source_close(s);
    free(data);
}

/* The open batch and the seal's carry continue from one source, or call, to the next. */
static void sources_continue_each_other(void **state) {
    uint32_t *tokens = grab_tokens(142, 50257, 20000);
    iron_config c = some_config();
    iron_engine *e = create(&c), *expected = create(&c);
    iron_error err;

    (void)state;
    assert_ok(iron_engine_feed(expected, tokens, 20000, &err), &err);
    for (size_t done = 0; done < 20000; done += 2501) {
        size_t count = 20000 - done < 2501 ? 20000 - done : 2501;

        feed_as_file(e, IRON_DTYPE_U32, tokens + done, count);
    }
    assert_same(e, expected);
    iron_engine_destroy(e);
    iron_engine_destroy(expected);
    free(tokens);
}

/* Any batch, any cut into sources, with or without a seal: runs and quads end everywhere. */
static void any_batch_and_any_cut(void **state) {
    static const uint64_t batches[] = {1, 3, 1000, 65536, 65537, 786432};
    enum { COUNT_MAX = 700001 };
    uint32_t *tokens = grab_tokens(145, 50257, COUNT_MAX);
    rng random = {7};

    (void)state;
    for (size_t round = 0; round < 60; round++) {
        iron_dtype dtype = round % 2 ? IRON_DTYPE_U32 : IRON_DTYPE_U16;
        size_t batch = (size_t)rng_below(&random, COUNT(batches)), count, some;
        iron_config c = some_config();
        iron_engine *e, *expected;
        iron_error err;

        c.batch = batches[batch];
        c.threads = 1 + (uint32_t)rng_below(&random, 4);
        c.with_seal = rng_below(&random, 4) > 0;
        c.positions = rng_below(&random, 2) ? IRON_POSITIONS_BATCH : IRON_POSITIONS_STREAM;
        count = (size_t)rng_below(&random, c.batch < 10 ? 20000 : COUNT_MAX);
        e = create(&c);
        expected = create(&c);
        for (size_t k = 0; k < count; k++)
            tokens[k] &= 0xFFFF;
        assert_ok(iron_engine_feed(expected, tokens, count, &err), &err);
        for (size_t done = 0; done < count; done += some) {
            some = 1 + (size_t)rng_below(&random, rng_below(&random, 2) ? 9 : count);
            some = some < count - done ? some : count - done;
            feed_as_file(e, dtype, tokens + done, some);
        }
        assert_same(e, expected);
        iron_engine_destroy(e);
        iron_engine_destroy(expected);
    }
    free(tokens);
}

static void an_empty_source_has_no_batch(void **state) {
    file_name file = name_in(&place, "empty");
    const char *path = file.path;
    iron_config c = some_config();
    iron_engine *e = create(&c), *fresh = create(&c);
    iron_report r = {.struct_size = sizeof r};
    iron_source *s;
    iron_error err;

    (void)state;
    file_write(path, "", 0);
    s = open_source(IRON_DTYPE_U32, &path, 1);
    assert_ok(iron_engine_feed_source(e, s, NULL, NULL, &err), &err);
    iron_source_close(s);
    assert_ok(iron_engine_report(e, &r, &err), &err);
    assert_true(r.batches == 0 && r.tokens == 0 && r.open_tokens == 0);
    assert_same(e, fresh);
    iron_engine_destroy(e);
    iron_engine_destroy(fresh);
}

/* Feeds a file that cannot be fed completely. */
static void fail_to_feed(const char *path, iron_dtype dtype, watcher *w, iron_status expected,
                         const char *word) {
    iron_config c = some_config();
    iron_engine *e = create(&c);
    iron_source *s = open_source(dtype, &path, 1);
    iron_report r = {.struct_size = sizeof r};
    iron_error err;

    assert_refused(iron_engine_feed_source(e, s, watch, w, &err), expected, &err);
    assert_says(&err, word);
    iron_source_close(s);
    /* it has taken an unspecified part and can still report */
    assert_ok(iron_engine_report(e, &r, &err), &err);
    iron_engine_destroy(e);
}

static void bad_tokens_end_it(void **state) {
    file_name file = name_in(&place, "bad");
    int32_t *tokens = grab(TOKENS * sizeof *tokens);
    watcher w = {0};

    (void)state;
    memset(tokens, 0, TOKENS * sizeof *tokens);
    tokens[2500000] = -5;
    file_write(file.path, tokens, TOKENS * sizeof *tokens);
    fail_to_feed(file.path, IRON_DTYPE_I32, &w, IRON_E_FORMAT, "position 2500000 is -5;");
    tokens[3] = INT32_MIN; /* while the reader is still running */
    file_write(file.path, tokens, TOKENS * sizeof *tokens);
    fail_to_feed(file.path, IRON_DTYPE_I32, &w, IRON_E_FORMAT, "position 3 is -2147483648;");
    free(tokens);
}

static void callers_can_cancel(void **state) {
    file_name file = name_in(&place, "long");
    uint32_t *tokens = grab_tokens(143, 50257, TOKENS);
    watcher w = {.stop_after = 1};

    (void)state;
    file_write(file.path, tokens, TOKENS * sizeof *tokens);
    fail_to_feed(file.path, IRON_DTYPE_U32, &w, IRON_E_CANCELLED, "cancel");
    assert_int_equal(w.calls, 1);
    assert_true(w.done > 0 && w.done <= TOKENS);
    free(tokens);
}

static void pipes_have_no_total(void **state) {
    static const char *const paths[] = {"-"};
    iron_config c = some_config();
    iron_engine *e = create(&c);
    watcher w = {0};
    iron_source *s;
    iron_error err;
    int saved, end = pipe_as_stdin(&saved);

    (void)state;
    s = open_source(IRON_DTYPE_U16, paths, 1);
    assert_int_equal(write(end, "abcdef", 6), 6);
    close(end);
    assert_ok(iron_engine_feed_source(e, s, watch, &w, &err), &err);
    assert_true(w.done == 3 && w.total == UINT64_MAX);
    iron_source_close(s);
    restore_stdin(saved);
    iron_engine_destroy(e);
}

/* Writes zeros until told to stop, then writes nothing and keeps the pipe open. */
typedef struct sender {
    int end;
    atomic_bool has_enough;
} sender;

static void *sender_main(void *argument) {
    static const char zeros[65536];
    sender *s = argument;

    while (!atomic_load(&s->has_enough) && write(s->end, zeros, sizeof zeros) > 0)
        ;
    return NULL;
}

static int enough(void *context, uint64_t done, uint64_t total) {
    sender *s = context;

    (void)done;
    (void)total;
    atomic_store(&s->has_enough, true);
    return 1;
}

static void silent_pipes_can_be_cancelled(void **state) {
    static const char *const paths[] = {"-"};
    iron_config c = some_config();
    iron_engine *e = create(&c);
    iron_source *s;
    iron_error err;
    pthread_t thread;
    int saved;
    sender writer = {.end = pipe_as_stdin(&saved)};

    (void)state;
    signal(SIGPIPE, SIG_IGN);
    s = open_source(IRON_DTYPE_U32, paths, 1);
    assert_int_equal(pthread_create(&thread, NULL, sender_main, &writer), 0);
    assert_refused(iron_engine_feed_source(e, s, enough, &writer, &err), IRON_E_CANCELLED, &err);
    iron_source_close(s);
    restore_stdin(saved); /* no reader is left: a blocked writer ends */
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(writer.end);
    signal(SIGPIPE, SIG_DFL);
    iron_engine_destroy(e);
}

static void shrunken_files_end_it(void **state) {
    file_name file = name_in(&place, "shrinking");
    const char *path = file.path;
    uint32_t *tokens = grab_tokens(144, 50257, TOKENS);
    iron_config c = some_config();
    iron_engine *e = create(&c);
    iron_source *s;
    iron_error err;

    (void)state;
    file_write(path, tokens, TOKENS * sizeof *tokens);
    s = open_source(IRON_DTYPE_U32, &path, 1);
    assert_int_equal(truncate(path, 9000000), 0);
    assert_refused(iron_engine_feed_source(e, s, NULL, NULL, &err), IRON_E_IO, &err);
    assert_says(&err, "9000000");
    iron_source_close(s);
    iron_engine_destroy(e);
    free(tokens);
}

static void no_memory_for_files(void **state) {
    ledger books = {0};
    iron_allocator allocator = ledger_allocator(&books);
    file_name file = name_in(&place, "tiny");
    const char *path = file.path;
    iron_config c = some_config();
    iron_engine *e;
    iron_source *s;
    iron_error err;
    size_t out;

    (void)state;
    c.allocator = &allocator;
    e = create(&c);
    out = books.out;
    file_write(path, "abcdefghijklmnop", 16);
    s = open_source(IRON_DTYPE_U32, &path, 1);
    for (size_t n = 1; n <= 3; n++) { /* twice for the files, once for buffers */
        books.fail_at = books.calls + n;
        assert_refused(iron_engine_feed_source(e, s, NULL, NULL, &err), IRON_E_NOMEM, &err);
        assert_int_equal(books.out, out);
    }
    assert_ok(iron_engine_feed_source(e, s, NULL, NULL, &err), &err); /* nothing was taken */
    assert_int_equal(books.out, out);
    iron_source_close(s);
    iron_engine_destroy(e);
    assert_int_equal(books.out, 0);
}

/* Two bad tokens in different tasks of the range check: the first one is named, by position, and
 * the engine is unchanged. */
static void first_bad_token_is_named(void **state) {
    size_t count = 300000, places[] = {0, 65535, 65536, 131071, 200001};
    int64_t *tokens = grab(count * sizeof *tokens);
    iron_config c;
    iron_engine *e;
    iron_error err;
    char says[80];

    (void)state;
    iron_config_init(&c);
    c.backend = "cpu";
    c.threads = 3;
    e = create(&c);
    for (size_t k = 0; k < count; k++)
        tokens[k] = (int64_t)k;
    assert_ok(iron_engine_feed_as(e, IRON_DTYPE_I64, tokens, 1000, &err), &err);
    for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
        tokens[places[k]] = -5;
        tokens[count - 1] = INT64_C(1) << 32;
        assert_refused(iron_engine_feed_as(e, IRON_DTYPE_I64, tokens, count, &err), IRON_E_FORMAT,
                       &err);
        snprintf(says, sizeof says, "token at position %zu is -5;", places[k] + 1000);
        assert_says(&err, says);
        assert_int_equal(report_of(e).open_tokens, 1000);
        tokens[places[k]] = 5;
    }
    tokens[count - 1] = UINT32_MAX;
    assert_ok(iron_engine_feed_as(e, IRON_DTYPE_I64, tokens, count, &err), &err);
    iron_engine_destroy(e);
    free(tokens);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_bad_token_is_named),
        cmocka_unit_test(files_equal_memory),
        cmocka_unit_test(sources_continue_each_other),
        cmocka_unit_test(any_batch_and_any_cut),
        cmocka_unit_test(an_empty_source_has_no_batch),
        cmocka_unit_test(bad_tokens_end_it),
        cmocka_unit_test(callers_can_cancel),
        cmocka_unit_test(pipes_have_no_total),
        cmocka_unit_test(silent_pipes_can_be_cancelled),
        cmocka_unit_test(shrunken_files_end_it),
        cmocka_unit_test(no_memory_for_files),
    };

    return cmocka_run_group_tests(tests, make_place, remove_place);
}
