/* SPDX-License-Identifier: MIT */
/*
 * test_scan.c: iron_scan against the reference of the seal, a loop over values, and the definition
 * of marks: every width, odd sizes, several files, ranges, chunks, threads, pipes, refusals.
 */
#include "place.h"
#include "scan_support.h"

#include <pthread.h>
#include <signal.h>

static void test_sizes_and_chunks(void **state) {
    static const size_t sizes[] = {0, 1, 3, 4, 5, 15, 16, 17, 1023, 1024, 1029, 4099, 70001};
    static const uint64_t chunks[] = {0, 1024, 1028, 4096, 65536, 1 << 20};
    uint32_t *tokens = grab_tokens(5, 60000, 70001);
    file_name name = name_in(&place, "sizes");
    const char *paths[] = {name.path};

    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (size_t c = 0; c < COUNT(chunks); c++) {
            iron_scan_options o = scan_options(1 + (uint32_t)(s + c) % 3, chunks[c]);
            iron_manifest *m;

            write_tokens(name.path, IRON_DTYPE_U16, tokens, sizes[s]);
            m = scan_paths(IRON_DTYPE_U16, paths, 1, &o);
            assert_scanned(m, tokens, sizes[s]);
            assert_int_equal(m->stream_tokens, sizes[s]);
            iron_manifest_destroy(m);
        }
    free(tokens);
}

/* Several pieces of every width, on any thread. */
static void test_widths_and_threads(void **state) {
    static const struct {
        iron_dtype dtype;
        uint64_t limit;
    } rows[] = {{IRON_DTYPE_U8, 256},
                {IRON_DTYPE_U16, 65536},
                {IRON_DTYPE_U32, UINT64_C(1) << 32},
                {IRON_DTYPE_I32, UINT64_C(1) << 31},
                {IRON_DTYPE_I64, UINT64_C(1) << 32}};
    const size_t count = 400003;
    file_name name = name_in(&place, "widths");
    const char *paths[] = {name.path};

    (void)state;
    for (size_t k = 0; k < COUNT(rows); k++) {
        uint32_t *tokens = grab_tokens(k, rows[k].limit, count);

        write_tokens(name.path, rows[k].dtype, tokens, count);
        for (uint32_t threads = 1; threads <= 8; threads += 3) {
            iron_scan_options o = scan_options(threads, threads == 4 ? 0 : 10000);
            iron_manifest *m = scan_paths(rows[k].dtype, paths, 1, &o);

            assert_scanned(m, tokens, count);
            iron_manifest_destroy(m);
        }
        free(tokens);
    }
}

/* For long runs of one token, the search for marks takes a shortcut. */
static void test_runs_of_one_token(void **state) {
    const size_t count = 20000;
    uint32_t *tokens = grab(count * sizeof *tokens);
    file_name name = name_in(&place, "runs");
    const char *paths[] = {name.path};
    iron_scan_options o = scan_options(2, 4096);
    size_t marked = 0;

    (void)state;
    for (uint32_t value = 0; value < 300; value++) {
        iron_manifest *m;

        for (size_t k = 0; k < count; k++)
            tokens[k] = k % 5000 < 3 ? (uint32_t)k : value;
        write_tokens(name.path, IRON_DTYPE_U16, tokens, count);
        m = scan_paths(IRON_DTYPE_U16, paths, 1, &o);
        assert_scanned(m, tokens, count);
        for (size_t k = 0; k < m->chunk_count; k++)
            marked += m->chunks[k].mark != IRON_MARK_NONE;
        iron_manifest_destroy(m);
    }
    assert_true(marked > 0);
    free(tokens);
}

static void test_files_are_one_stream(void **state) {
    static const size_t sizes[] = {1001, 0, 3, 140000, 1, 77777, 0};
    uint16_t *tokens = grab(300000 * sizeof *tokens);
    uint32_t *wide = grab(300000 * sizeof *wide);
    iron_scan_options o = scan_options(3, 2048);
    size_t total = 0;
    iron_manifest *m;
    shards s;

    (void)state;
    fill_u16(tokens, 300000);
    for (size_t k = 0; k < COUNT(sizes); k++)
        total += sizes[k];
    for (size_t k = 0; k < total; k++)
        wide[k] = tokens[k];
    s = shards_write(&place, tokens, sizes, COUNT(sizes));
    m = scan_paths(IRON_DTYPE_U16, s.paths, s.count, &o);
    assert_scanned(m, wide, total);
    assert_int_equal(m->file_count, COUNT(sizes));
    total = 0;
    for (size_t k = 0; k < COUNT(sizes); k++) {
        iron_manifest_file f = {.struct_size = sizeof f};
        iron_error err;

        assert_ok(iron_manifest_file_at(m, k, &f, &err), &err);
        assert_string_equal(f.path, s.paths[k]);
        assert_string_equal(f.format, "raw");
        assert_int_equal(f.dtype, IRON_DTYPE_U16);
        assert_int_equal(f.first, total);
        assert_int_equal(f.tokens, sizes[k]);
        total += sizes[k];
    }
    iron_manifest_destroy(m);
    shards_free(&s);
    free(wide);
    free(tokens);
}

/* Large pieces: of a file where it is mapped, and of several files, which are read. */
static void test_large_files(void **state) {
    static const size_t sizes[] = {1001, 9000003, 70001};
    const size_t count = sizes[0] + sizes[1] + sizes[2];
    uint32_t *tokens = grab_tokens(11, 60000, count);
    file_name names[COUNT(sizes)];
    const char *paths[COUNT(sizes)];

    (void)state;
    for (size_t k = 0, first = 0; k < COUNT(sizes); first += sizes[k++]) {
        char name[8];

        snprintf(name, sizeof name, "large%zu", k);
        names[k] = name_in(&place, name);
        paths[k] = names[k].path;
        write_tokens(paths[k], IRON_DTYPE_U16, tokens + first, sizes[k]);
    }
    for (uint32_t threads = 1; threads <= 2; threads++) /* of two threads, each has too little */
        for (uint64_t chunk = 0; chunk <= 1 << 20; chunk += 1 << 20) {
            iron_scan_options o = scan_options(threads, chunk);
            iron_manifest *m = scan_paths(IRON_DTYPE_U16, paths, COUNT(sizes), &o);

            assert_scanned(m, tokens, count);
            iron_manifest_destroy(m);
        }
    free(tokens);
}

/* Files that begin at any position modulo 4 and end anywhere in pieces, of every width. */
static void test_seals_of_files(void **state) {
    static const iron_dtype dtypes[] = {IRON_DTYPE_U8, IRON_DTYPE_U16, IRON_DTYPE_U32,
                                        IRON_DTYPE_I32, IRON_DTYPE_I64};
    static const size_t limits[] = {3, 9, 70000, 300};
    enum { FILES = 40 };
    file_name names[FILES];
    const char *paths[FILES];
    rng r = {31};

    (void)state;
    for (size_t round = 0; round < 4 * COUNT(dtypes); round++) {
        iron_dtype dtype = dtypes[round % COUNT(dtypes)];
        uint32_t *tokens = grab_tokens(round, 256, FILES * limits[2]);
        iron_scan_options o = scan_options(1 + (uint32_t)round % 3, 1024 + 4 * (round % 2));
        iron_manifest *m = NULL;
        iron_source *source;
        size_t total = 0;
        iron_error err;

        for (size_t k = 0; k < FILES; k++) {
            size_t count = (size_t)rng_below(&r, limits[rng_below(&r, round % 4 + 1)]);
            char name[32];

            snprintf(name, sizeof name, "seal-%zu", k);
            names[k] = name_in(&place, name);
            paths[k] = names[k].path;
            write_tokens(paths[k], dtype, tokens + total, count);
            total += count;
        }
        m = scan_paths(dtype, paths, FILES, &o);
        assert_scanned(m, tokens, total);
        iron_manifest_destroy(m);
        /* without chunks too */
        source = open_all(dtype, paths, FILES);
        o.chunk_tokens = 0;
        assert_ok(iron__scan(source, IRON_SCAN_FILE_SEALS, 0, &o, &m, &err), &err);
        iron_source_close(source);
        assert_true(m->has_file_seals);
        for (size_t k = 0; k < FILES; k++) {
            iron__seal_words want =
                words_of(tokens + m->files[k].first, (size_t)m->files[k].tokens);

            assert_memory_equal(&m->files[k].words, &want, sizeof want);
        }
        iron_manifest_destroy(m);
        free(tokens);
    }
}

/* The ranges' words add up to the whole's, for any cuts. */
static void test_ranges(void **state) {
    const size_t count = 150001;
    uint32_t *tokens = grab_tokens(9, 70000, count);
    file_name name = name_in(&place, "ranges");
    const char *paths[] = {name.path};
    iron__seal_words whole = words_of(tokens, count);
    iron_scan_options o = scan_options(2, 4096);
    rng r = {77};

    (void)state;
    write_tokens(name.path, IRON_DTYPE_U32, tokens, count);
    for (size_t round = 0; round < 20; round++) {
        uint64_t cut = rng_below(&r, count / 4) * 4;
        iron_manifest *a, *b;
        iron__seal_words sum;

        o.first = 0;
        o.count = cut;
        o.part = 1;
        o.parts = 2;
        a = scan_paths(IRON_DTYPE_U32, paths, 1, &o);
        o.first = cut;
        o.count = IRON_COUNT_UNKNOWN;
        o.part = 2;
        b = scan_paths(IRON_DTYPE_U32, paths, 1, &o);
        sum = iron__seal_merge(a->words, b->words);
        assert_memory_equal(&sum, &whole, sizeof sum);
        assert_int_equal(a->tokens + b->tokens, count);
        assert_int_equal(b->first, cut);
        assert_int_equal(b->stream_tokens, count);
        iron_manifest_destroy(a);
        iron_manifest_destroy(b);
    }
    free(tokens);
}

typedef struct sender {
    int fd;
    const char *data;
    size_t bytes;
} sender;

static void *send_all(void *argument) {
    const sender *s = argument;

    for (size_t done = 0; done < s->bytes;) {
        ssize_t count = write(s->fd, s->data + done, s->bytes - done);

        if (count <= 0)
            break;
        done += (size_t)count;
    }
    close(s->fd);
    return NULL;
}

static iron_status scan_pipe(const void *data, size_t bytes, iron_dtype dtype,
                             const iron_scan_options *o, iron_manifest **m, iron_error *err) {
    const char *paths[] = {"-"};
    sender s = {.data = data, .bytes = bytes};
    iron_source *source;
    pthread_t thread;
    iron_status status;
    int saved;

    s.fd = pipe_as_stdin(&saved);
    assert_int_equal(pthread_create(&thread, NULL, send_all, &s), 0);
    source = open_all(dtype, paths, 1);
    status = iron_scan(source, o, m, err);
    iron_source_close(source);
    restore_stdin(saved);
    pthread_join(thread, NULL);
    return status;
}

/* Slots hold 4 MiB: sizes around one and two of them, with windows across their borders. */
static void test_pipes(void **state) {
    static const size_t sizes[] = {0, 1, 5, 2097151, 2097152, 2097153, 2097160, 4194304, 4200001};
    uint32_t *tokens = grab_tokens(11, 50257, 4200001);
    void *data = stored_as(IRON_DTYPE_U16, tokens, 4200001);

    (void)state;
    for (size_t k = 0; k < COUNT(sizes); k++) {
        iron_scan_options o = scan_options(2, 1 << 18);
        iron_manifest *m = NULL;
        iron_error err;

        assert_ok(scan_pipe(data, sizes[k] * 2, IRON_DTYPE_U16, &o, &m, &err), &err);
        assert_scanned(m, tokens, sizes[k]);
        assert_int_equal(m->stream_tokens, sizes[k]);
        assert_int_equal(m->files[0].tokens, sizes[k]);
        iron_manifest_destroy(m);
    }
    free(data);
    free(tokens);
}

/* A pipe between two files, whose end is known only when it was read: at, before and after the
 * border of a slot of 2097152 tokens. */
static void test_seals_of_pipes(void **state) {
    static const size_t sizes[] = {0,       1,       2,       7,       2097146,
                                   2097147, 2097148, 2097152, 4194299, 4194303};
    enum { BEFORE = 5, AFTER = 10, MOST = 4194303 };
    uint32_t *tokens = grab_tokens(12, 50257, BEFORE + MOST + AFTER);
    void *data = stored_as(IRON_DTYPE_U16, tokens, BEFORE + MOST + AFTER);
    file_name before = name_in(&place, "before"), after = name_in(&place, "after");
    const char *paths[] = {before.path, "-", after.path};

    (void)state;
    write_tokens(before.path, IRON_DTYPE_U16, tokens, BEFORE);
    for (size_t k = 0; k < COUNT(sizes); k++) {
        iron_scan_options o = scan_options(2, 1 << 18);
        sender s = {.data = (char *)data + 2 * BEFORE, .bytes = 2 * sizes[k]};
        iron_manifest *m = NULL;
        iron_source *source;
        pthread_t thread;
        iron_error err;
        int saved;

        write_tokens(after.path, IRON_DTYPE_U16, tokens + BEFORE + sizes[k], AFTER);
        s.fd = pipe_as_stdin(&saved);
        assert_int_equal(pthread_create(&thread, NULL, send_all, &s), 0);
        source = open_all(IRON_DTYPE_U16, paths, 3);
        assert_ok(iron_scan(source, &o, &m, &err), &err);
        iron_source_close(source);
        restore_stdin(saved);
        pthread_join(thread, NULL);
        assert_int_equal(m->files[1].tokens, sizes[k]);
        assert_scanned(m, tokens, BEFORE + sizes[k] + AFTER);
        iron_manifest_destroy(m);
    }
    free(data);
    free(tokens);
}

static void test_bad_pipe(void **state) {
    iron_scan_options o = scan_options(2, 0);
    iron_manifest *m = NULL;
    iron_error err;

    (void)state;
    assert_refused(scan_pipe("abc", 3, IRON_DTYPE_U16, &o, &m, &err), IRON_E_FORMAT, &err);
    assert_null(m);
    o.first = 4;
    assert_refused(scan_pipe("abcd", 4, IRON_DTYPE_U16, &o, &m, &err), IRON_E_ARG, &err);
    assert_says(&err, "pipe");
}

/* The first bad token of the stream is reported, even if another thread finds a later one first. */
static void test_bad_tokens(void **state) {
    const size_t count = 300000;
    int32_t *tokens = calloc(count, sizeof *tokens);
    file_name name = name_in(&place, "bad");
    const char *paths[] = {name.path};

    (void)state;
    assert_non_null(tokens);
    for (size_t k = 250000; k < count; k++)
        tokens[k] = -1;
    tokens[123457] = -77;
    file_write(name.path, tokens, count * sizeof *tokens);
    for (uint32_t threads = 1; threads <= 4; threads++) {
        iron_scan_options o = scan_options(threads, 0);
        iron_source *source = open_all(IRON_DTYPE_I32, paths, 1);
        iron_manifest *m = NULL;
        iron_error err;

        assert_refused(iron_scan(source, &o, &m, &err), IRON_E_FORMAT, &err);
        assert_says(&err, "position 123457 is -77");
        assert_null(m);
        iron_source_close(source);
    }
    free(tokens);
}

static int cancel_late(void *context, uint64_t done, uint64_t total) {
    size_t *calls = context;

    assert_true(done <= total);
    return ++*calls == 2;
}

static void test_cancel(void **state) {
    const size_t count = 4000000;
    uint32_t *tokens = grab_tokens(1, 100, count);
    file_name name = name_in(&place, "cancel");
    const char *paths[] = {name.path};
    iron_scan_options o = scan_options(1, 1024);
    size_t calls = 0;
    iron_manifest *m = NULL;
    iron_source *source;
    iron_error err;

    (void)state;
    write_tokens(name.path, IRON_DTYPE_U32, tokens, count);
    source = open_all(IRON_DTYPE_U32, paths, 1);
    o.progress = cancel_late;
    o.context = &calls;
    assert_refused(iron_scan(source, &o, &m, &err), IRON_E_CANCELLED, &err);
    assert_int_equal(calls, 2);
    assert_null(m);
    iron_source_close(source);
    free(tokens);
}

/* What happens to the file while it is read. */
typedef struct accident {
    const char *path, *other;
    bool is_replaced, has_happened;
} accident;

static int happen(void *context, uint64_t done, uint64_t total) {
    accident *a = context;

    (void)done;
    (void)total;
    if (!a->has_happened && a->is_replaced) {
        assert_int_equal(rename(a->other, a->path), 0);
    } else if (!a->has_happened) {
        FILE *file = fopen(a->path, "ab");

        assert_non_null(file);
        assert_int_equal(fwrite("more", 1, 4, file), 4);
        assert_int_equal(fclose(file), 0);
    }
    a->has_happened = true;
    return 0;
}

static void test_files_that_change(void **state) {
    const size_t count = 400000;
    uint32_t *tokens = grab_tokens(11, 60000, count);
    file_name name = name_in(&place, "change"), other = name_in(&place, "other");
    const char *paths[] = {name.path};

    (void)state;
    for (int is_replaced = 0; is_replaced < 2; is_replaced++) {
        accident a = {name.path, other.path, is_replaced, false};
        iron_scan_options o = scan_options(1, 1024);
        iron_manifest *m = NULL;
        iron_source *source;
        iron_error err;

        write_tokens(name.path, IRON_DTYPE_U32, tokens, count);
        write_tokens(other.path, IRON_DTYPE_U32, tokens, count);
        source = open_all(IRON_DTYPE_U32, paths, 1);
        o.progress = happen;
        o.context = &a;
        assert_refused(iron_scan(source, &o, &m, &err), IRON_E_IO, &err);
        assert_true(a.has_happened);
        assert_says(&err, is_replaced ? "replaced" : "1600004 bytes now, it had 1600000");
        assert_null(m);
        iron_source_close(source);
    }
    free(tokens);
}

/* Invalid changes of valid options. */
typedef struct refusal {
    void (*spoil)(iron_scan_options *o, uint64_t a, uint64_t b);
    uint64_t a, b;
    const char *word;
} refusal;

static void set_size(iron_scan_options *o, uint64_t a, uint64_t b) {
    o->struct_size = (uint32_t)(a + b);
}

static void set_vocab(iron_scan_options *o, uint64_t a, uint64_t b) { o->vocab = a + b; }

static void set_threads(iron_scan_options *o, uint64_t a, uint64_t b) {
    o->threads = (uint32_t)(a + b);
}

static void set_chunk(iron_scan_options *o, uint64_t a, uint64_t b) { o->chunk_tokens = a + b; }

static void set_range(iron_scan_options *o, uint64_t a, uint64_t b) {
    o->first = a;
    o->count = b;
}

static void set_part(iron_scan_options *o, uint64_t a, uint64_t b) {
    o->part = (uint32_t)a;
    o->parts = (uint32_t)b;
}

static void test_refusals(void **state) {
    static const refusal rows[] = {
        {set_size, 8, 0, "struct_size"},
        {set_vocab, 0, 0, "vocab"},
        {set_vocab, UINT64_C(1) << 32, 1, "vocab"},
        {set_threads, 1025, 0, "threads"},
        {set_chunk, 1020, 0, "1020"},
        {set_chunk, 1026, 0, "multiple of 4"},
        {set_range, 2, IRON_COUNT_UNKNOWN, "multiples of 4"},
        {set_range, 0, 6, "multiples of 4"},
        {set_range, 12, IRON_COUNT_UNKNOWN, "position 12"},
        {set_range, 8, 4, "4 tokens"},
        {set_part, 1, 0, "part 1 of 0"},
        {set_part, 3, 2, "part 3 of 2"},
    };
    static const uint32_t tokens[10] = {0};
    file_name name = name_in(&place, "ten");
    const char *paths[] = {name.path};
    iron_source *source;

    (void)state;
    write_tokens(name.path, IRON_DTYPE_U32, tokens, 10);
    source = open_all(IRON_DTYPE_U32, paths, 1);
    for (size_t k = 0; k < COUNT(rows); k++) {
        iron_scan_options o = scan_options(1, 0);
        iron_manifest *m = NULL;
        iron_error err;

        rows[k].spoil(&o, rows[k].a, rows[k].b);
        assert_refused(iron_scan(source, &o, &m, &err), IRON_E_ARG, &err);
        assert_says(&err, rows[k].word);
        assert_null(m);
    }
    iron_source_close(source);
}

static void test_backends(void **state) {
    static const uint32_t tokens[10] = {0};
    file_name name = name_in(&place, "ten");
    const char *paths[] = {name.path};
    iron_scan_options o = scan_options(1, 0);
    iron_manifest *m = NULL;
    iron_source *source;
    iron_error err;

    (void)state;
    write_tokens(name.path, IRON_DTYPE_U32, tokens, 10);
    source = open_all(IRON_DTYPE_U32, paths, 1);
    o.backend = "gpu";
    assert_refused(iron_scan(source, &o, &m, &err), IRON_E_ARG, &err);
    assert_says(&err, "unknown backend 'gpu'");
    assert_null(m);
    o.backend = "cpu";
    o.first = 8;
    assert_ok(iron_scan(source, &o, &m, &err), &err);
    assert_int_equal(m->tokens, 2);
    iron_manifest_destroy(m);
    iron_source_close(source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_and_chunks),
        cmocka_unit_test(test_widths_and_threads),
        cmocka_unit_test(test_runs_of_one_token),
        cmocka_unit_test(test_files_are_one_stream),
        cmocka_unit_test(test_seals_of_files),
        cmocka_unit_test(test_large_files),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_pipes),
        cmocka_unit_test(test_seals_of_pipes),
        cmocka_unit_test(test_bad_pipe),
        cmocka_unit_test(test_bad_tokens),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_files_that_change),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_backends),
    };

    signal(SIGPIPE, SIG_IGN); /* a refused scan does not end a sender */
    return cmocka_run_group_tests(tests, make_place, remove_place);
}
