/* SPDX-License-Identifier: MIT */
/*
 * test_check.c: iron_check_run with manifests of both versions, with and without chunks: files that
 * vanish or change in every combination, damaged manifests, cancelling, refusals. What the command
 * prints is tested in tests/cli/test_manifest.py.
 */
#include "place.h"
#include "scan_support.h"

#define FILES 4u

static const size_t sizes[FILES] = {3000, 10, 5000, 2001};

static shards write_files(uint16_t *tokens) {
    fill_u16(tokens, 10011);
    return shards_write(&place, tokens, sizes, FILES);
}

static iron_manifest *scan_files(const shards *s, uint64_t chunk) {
    iron_scan_options o = scan_options(2, chunk);

    return scan_paths(IRON_DTYPE_U16, s->paths, s->count, &o);
}

/* As version 1 was: without seals of files. */
static iron_manifest *scan_version_1(const shards *s, uint64_t chunk) {
    iron_manifest *m = scan_files(s, chunk);

    m->has_file_seals = false;
    return m;
}

static iron_check *run_check(const iron_manifest *m, bool takes_missing) {
    iron_check_options o = {.struct_size = sizeof o, .threads = 2, .takes_missing = takes_missing};
    iron_check *check = NULL;
    iron_error err;

    assert_ok(iron_check_run(m, &o, &check, &err), &err);
    assert_int_equal(iron_check_file_count(check), m->file_count);
    return check;
}

static iron_check_file file_of(const iron_check *check, size_t index) {
    iron_check_file f = {.struct_size = sizeof f};
    iron_error err;

    assert_ok(iron_check_file_at(check, index, &f, &err), &err);
    return f;
}

/* Whether a chunk that contains tokens of file `index` also contains tokens of a file in the
 * set. */
static bool shares_chunk(const iron_manifest *m, size_t index, unsigned set) {
    uint64_t size = m->chunk_tokens ? m->chunk_tokens : m->stream_tokens;
    const iron__manifest_entry *a = &m->files[index];

    for (size_t k = 0; k < m->file_count; k++) {
        const iron__manifest_entry *b = &m->files[k];

        if (set >> k & 1 && a->first / size <= (b->first + b->tokens - 1) / size &&
            b->first / size <= (a->first + a->tokens - 1) / size)
            return true;
    }
    return false;
}

/* Removes every subset of the files: the others are unchanged. */
static void test_missing_sets(void **state) {
    uint16_t tokens[10011];
    shards s = write_files(tokens);
    iron_manifest *m = scan_files(&s, 1024);

    (void)state;
    for (unsigned set = 0; set < 1u << FILES; set++)
        for (int takes_missing = 0; takes_missing < 2; takes_missing++) {
            iron_check *check;

            for (size_t k = 0; k < FILES; k++)
                if (set >> k & 1)
                    assert_int_equal(unlink(s.paths[k]), 0);
            check = run_check(m, takes_missing);
            for (size_t k = 0; k < FILES; k++)
                assert_int_equal(file_of(check, k).state,
                                 set >> k & 1 ? IRON_CHECK_MISSING : IRON_CHECK_OK);
            iron_check_destroy(check);
            shards_free(&s);
            s = write_files(tokens);
        }
    iron_manifest_destroy(m);
    shards_free(&s);
}

/* Version 1: the others are checked by the remaining chunks. */
static void test_missing_sets_by_chunks(void **state) {
    static const uint64_t chunks[] = {1024, 0};
    uint16_t tokens[10011];
    shards s = write_files(tokens);

    (void)state;
    for (size_t c = 0; c < COUNT(chunks); c++) {
        iron_manifest *m = scan_version_1(&s, chunks[c]);

        for (unsigned set = 0; set < 1u << FILES; set++) {
            iron_check *check;

            for (size_t k = 0; k < FILES; k++)
                if (set >> k & 1)
                    assert_int_equal(unlink(s.paths[k]), 0);
            check = run_check(m, false);
            for (size_t k = 0; k < FILES; k++) {
                iron_check_state want = set >> k & 1              ? IRON_CHECK_MISSING
                                        : shares_chunk(m, k, set) ? IRON_CHECK_FAILED
                                                                  : IRON_CHECK_OK;

                assert_string_equal(file_of(check, k).path, s.paths[k]);
                assert_int_equal(file_of(check, k).state, want);
            }
            iron_check_destroy(check);
            check = run_check(m, true);
            for (size_t k = 0; k < FILES; k++)
                if (set >> k & 1)
                    assert_int_equal(file_of(check, k).state, IRON_CHECK_MISSING);
                else if (shares_chunk(m, k, set))
                    assert_true(file_of(check, k).state == IRON_CHECK_PARTLY ||
                                file_of(check, k).state == IRON_CHECK_UNCHECKED);
                else
                    assert_int_equal(file_of(check, k).state, IRON_CHECK_OK);
            iron_check_destroy(check);
            shards_free(&s);
            s = write_files(tokens);
        }
        iron_manifest_destroy(m);
    }
    shards_free(&s);
}

static const char *text_of(iron__seal_words words, char text[IRON_SEAL_TEXT]) {
    iron__seal_text(words, text);
    return text;
}

/* Changes one token, and takes away a file or none: exactly the file with the token fails. */
static void change_token(const iron_manifest *m, uint16_t *tokens, size_t position,
                         size_t removed) {
    uint16_t original = tokens[position];
    iron_check *check;
    shards s;

    tokens[position] ^= 8;
    s = shards_write(&place, tokens, sizes, FILES);
    if (removed < FILES)
        assert_int_equal(unlink(s.paths[removed]), 0);
    check = run_check(m, false);
    for (size_t k = 0; k < FILES; k++) {
        const iron__manifest_entry *f = &m->files[k];
        bool is_hit = position >= f->first && position < f->first + f->tokens;
        iron_check_file file = file_of(check, k);
        char text[IRON_SEAL_TEXT];

        if (k == removed) {
            assert_int_equal(file.state, IRON_CHECK_MISSING);
            continue;
        }
        assert_int_equal(file.state, is_hit ? IRON_CHECK_FAILED : IRON_CHECK_OK);
        assert_string_equal(file.expected, is_hit ? text_of(f->words, text) : "");
        assert_int_equal(strlen(file.found), is_hit ? 32 : 0);
    }
    iron_check_destroy(check);
    tokens[position] = original;
    shards_free(&s);
}

static void test_changes(void **state) {
    uint16_t tokens[10011];
    shards s = write_files(tokens);
    iron_manifest *m = scan_files(&s, 1024);

    (void)state;
    for (size_t position = 3; position < 10011; position += 501)
        for (size_t removed = 0; removed <= FILES; removed++)
            change_token(m, tokens, position, removed);
    iron_manifest_destroy(m);
    shards_free(&s);
}

/* The positions that are reported are those of the differing chunks, in runs and in parts of the
 * stream; a file that differs in its only chunk is reported without positions. */
static void test_positions(void **state) {
    static const struct {
        size_t position, removed, file;
        const char *reason;
    } rows[] = {{2048, FILES, 0, "positions 2048 to 2999 differ"},
                {3005, FILES, 1, ""},
                {3005, 0, 1, ""},
                {5000, FILES, 2, "positions 4096 to 5119 differ"},
                {5000, 0, 2, "positions 4096 to 5119 differ"},
                {5000, 3, 2, "positions 4096 to 5119 differ"},
                {3012, 0, 2, ""}, /* its chunk cannot be read without file 0 */
                {10010, 2, 3, "positions 9216 to 10010 differ"}};
    uint16_t tokens[10011];
    shards s = write_files(tokens);
    iron_manifest *m = scan_files(&s, 1024);

    (void)state;
    for (size_t k = 0; k < COUNT(rows); k++) {
        iron_check *check;

        tokens[rows[k].position] ^= 1;
        shards_free(&s);
        s = shards_write(&place, tokens, sizes, FILES);
        tokens[rows[k].position] ^= 1;
        if (rows[k].removed < FILES)
            assert_int_equal(unlink(s.paths[rows[k].removed]), 0);
        check = run_check(m, false);
        assert_int_equal(file_of(check, rows[k].file).state, IRON_CHECK_FAILED);
        assert_string_equal(file_of(check, rows[k].file).reason, rows[k].reason);
        iron_check_destroy(check);
    }
    iron_manifest_destroy(m);
    shards_free(&s);
}

/* Version 1: the file fails, and all files that share the chunk. */
static void test_changes_by_chunks(void **state) {
    uint16_t tokens[10011];
    shards s = write_files(tokens);
    iron_manifest *m = scan_version_1(&s, 1024);

    (void)state;
    for (size_t position = 3; position < 10011; position += 501) {
        uint16_t original = tokens[position];
        iron_check *check;

        tokens[position] ^= 8;
        shards_free(&s);
        s = shards_write(&place, tokens, sizes, FILES);
        tokens[position] = original;
        check = run_check(m, false);
        for (size_t k = 0; k < FILES; k++) {
            uint64_t chunk = position / 1024, first = m->files[k].first / 1024;
            uint64_t last = (m->files[k].first + m->files[k].tokens - 1) / 1024;
            bool is_hit = chunk >= first && chunk <= last;

            assert_int_equal(file_of(check, k).state, is_hit ? IRON_CHECK_FAILED : IRON_CHECK_OK);
            assert_int_equal(strlen(file_of(check, k).found), is_hit ? 32 : 0);
        }
        iron_check_destroy(check);
    }
    iron_manifest_destroy(m);
    shards_free(&s);
}

/* Changed words of the manifest are detected only by a scan of all files. */
static void test_damaged_manifests(void **state) {
    uint16_t tokens[10011];
    shards s = write_files(tokens);
    iron_manifest *m = scan_files(&s, 1024);
    struct {
        uint64_t *what;
        const char *word;
    } rows[] = {{&m->words.a, "seal"},
                {&m->words.b, "seal"},
                {&m->stats.out_of_vocab, "statistics"},
                {&m->stats.first_position, "statistics"},
                {&m->chunks[2].mark, "mark of chunk 2"},
                {&m->chunks[2].mark_at, "mark of chunk 2"},
                {&m->chunks[2].a, "chunk 2 does not match its files"},
                {&m->files[0].words.b, "its seal of "},
                {&m->files[1].words.a, "its seal of "},
                {&m->files[3].words.a, "its seal of "}};

    (void)state;
    for (size_t k = 0; k < COUNT(rows); k++) {
        iron_check_options o = {.struct_size = sizeof o, .threads = 2};
        iron_check *check = NULL;
        iron_error err;

        ++*rows[k].what;
        assert_ok(iron_check_run(m, &o, &check, &err), &err);
        assert_int_equal(iron_check_file_count(check), FILES + 1);
        for (size_t f = 0; f < FILES; f++)
            assert_int_equal(file_of(check, f).state, IRON_CHECK_OK);
        assert_int_equal(file_of(check, FILES).state, IRON_CHECK_FAILED);
        assert_non_null(strstr(file_of(check, FILES).reason, rows[k].word));
        assert_string_equal(file_of(check, FILES).path, "the manifest");
        iron_check_destroy(check);
        --*rows[k].what;
    }
    /* with a part of the stream, too, if all chunks of the file can be read */
    m->files[2].words.a++;
    m->files[3].words.a++;
    assert_int_equal(unlink(s.paths[0]), 0);
    {
        iron_check_options o = {.struct_size = sizeof o, .threads = 2};
        iron_check *check = NULL;
        iron_error err;

        assert_ok(iron_check_run(m, &o, &check, &err), &err);
        assert_int_equal(file_of(check, 2).state, IRON_CHECK_FAILED); /* shares a chunk with 0 */
        assert_int_equal(file_of(check, 3).state, IRON_CHECK_OK);
        assert_int_equal(file_of(check, FILES).state, IRON_CHECK_FAILED);
        assert_non_null(strstr(file_of(check, FILES).reason, "f3"));
        iron_check_destroy(check);
    }
    m->files[2].words.a--;
    m->files[3].words.a--;
    shards_free(&s);
    s = write_files(tokens);
    iron_check_destroy(run_check(m, false));
    iron_manifest_destroy(m);
    shards_free(&s);
}

static int cancel(void *context, uint64_t done, uint64_t total) {
    (void)context;
    assert_true(done <= total);
    return 1;
}

static void test_refusals(void **state) {
    uint16_t tokens[10011];
    shards s = write_files(tokens);
    iron_manifest *m = scan_files(&s, 1024);
    iron_check_options o = {.struct_size = sizeof o, .progress = cancel};
    iron_check *check = NULL;
    iron_check_file f = {.struct_size = 4};
    iron_error err;

    (void)state;
    assert_refused(iron_check_run(m, &o, &check, &err), IRON_E_CANCELLED, &err);
    assert_null(check);
    o = (iron_check_options){.struct_size = 4};
    assert_refused(iron_check_run(m, &o, &check, &err), IRON_E_ARG, &err);
    o.struct_size = sizeof o;
    m->part = m->parts = 1;
    assert_refused(iron_check_run(m, &o, &check, &err), IRON_E_ARG, &err);
    assert_says(&err, "merge");
    m->part = m->parts = 0;
    check = run_check(m, false);
    assert_refused(iron_check_file_at(check, 0, &f, &err), IRON_E_ARG, &err);
    f.struct_size = sizeof f;
    assert_refused(iron_check_file_at(check, FILES, &f, &err), IRON_E_ARG, &err);
    iron_check_destroy(check);
    iron_check_destroy(NULL);
    iron_manifest_destroy(m);
    shards_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_sets), cmocka_unit_test(test_missing_sets_by_chunks),
        cmocka_unit_test(test_changes),      cmocka_unit_test(test_changes_by_chunks),
        cmocka_unit_test(test_positions),    cmocka_unit_test(test_damaged_manifests),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, make_place, remove_place);
}
