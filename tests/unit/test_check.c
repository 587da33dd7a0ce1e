/* SPDX-License-Identifier: MIT */
/*
 * test_check.c: iron_check_run with manifests with and without chunks, files that vanish or change
 * in every combination, many small files in one chunk, cancelling, refusals. What the command
 * prints is tested in tests/cli/test_sum.py.
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

/* Removes every subset of the files; the others are checked by the remaining chunks. */
static void test_missing_sets(void **state) {
    static const uint64_t chunks[] = {1024, 0};
    uint16_t tokens[10011];
    shards s = write_files(tokens);

    (void)state;
    for (size_t c = 0; c < COUNT(chunks); c++) {
        iron_manifest *m = scan_files(&s, chunks[c]);

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

/* One token of each file in turn: the file fails, and only files that share the chunk. */
static void test_changes(void **state) {
    uint16_t tokens[10011];
    shards s = write_files(tokens);
    iron_manifest *m = scan_files(&s, 1024);

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
                {&m->chunks[2].mark_at, "mark of chunk 2"}};

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
        cmocka_unit_test(test_missing_sets),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_damaged_manifests),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, make_place, remove_place);
}
