/* SPDX-License-Identifier: MIT */
/*
 * test_manifest.c: manifests as files: written and read back the same, byte for byte; names of any
 * bytes; versions; and a table of contradictions, each refused with a message about it.
 */
#include "place.h"
#include "scan_support.h"

#include "digest/manifest.c"

static iron_manifest *scan_one(const char *path, uint64_t limit, size_t count,
                               uint64_t chunk_tokens) {
    uint32_t *tokens = grab_tokens(3, limit, count);
    iron_scan_options o = scan_options(2, chunk_tokens);
    const char *paths[] = {path};
    iron_manifest *m;

    write_tokens(path, IRON_DTYPE_U32, tokens, count);
    m = scan_paths(IRON_DTYPE_U32, paths, 1, &o);
    free(tokens);
    return m;
}

/* Writes, reads and writes again: the same bytes, and the same contents. */
static void assert_round_trip(const iron_manifest *m) {
    file_name first = name_in(&place, "first"), second = name_in(&place, "second");
    iron_manifest *back = NULL;
    iron_error err;
    size_t bytes;
    char *text;

    assert_ok(iron_manifest_write(m, first.path, &err), &err);
    assert_true(iron_manifest_is_one(first.path));
    assert_ok(iron_manifest_read(first.path, &back, &err), &err);
    assert_ok(iron_manifest_write(back, second.path, &err), &err);
    text = file_read(first.path, &bytes);
    assert_file_holds(second.path, text, bytes);
    assert_memory_equal(&back->words, &m->words, sizeof m->words);
    assert_int_equal(back->stats.out_of_vocab, m->stats.out_of_vocab);
    assert_int_equal(back->stats.first_position, m->stats.first_position);
    assert_int_equal(back->stats.first_value, m->stats.first_value);
    assert_int_equal(back->stats.min, m->stats.min);
    assert_int_equal(back->stats.max, m->stats.max);
    assert_int_equal(back->chunk_count, m->chunk_count);
    for (size_t k = 0; k < m->chunk_count; k++)
        assert_chunk(&back->chunks[k], &m->chunks[k]);
    assert_int_equal(back->file_count, m->file_count);
    assert_int_equal(back->has_file_seals, m->has_file_seals);
    for (size_t k = 0; k < m->file_count; k++) {
        assert_memory_equal(&back->files[k].words, &m->files[k].words, sizeof m->words);
        assert_string_equal(back->files[k].path, m->files[k].path);
        assert_int_equal(back->files[k].tokens, m->files[k].tokens);
        assert_string_equal(back->files[k].sample, m->files[k].sample);
        assert_int_equal(strlen(back->files[k].sample), 16);
    }
    free(text);
    iron_manifest_destroy(back);
}

static void test_round_trips(void **state) {
    static const struct {
        uint64_t limit;
        size_t count;
        uint64_t chunk;
    } rows[] = {
        {50257, 0, 0},       {50257, 0, 1024},    {1, 20, 1024},  {50257, 10, 1024},
        {60000, 5000, 1024}, {60000, 5001, 2048}, {60000, 77, 0}, {UINT64_C(1) << 32, 3000, 1024}};
    file_name name = name_in(&place, "tokens");

    (void)state;
    for (size_t k = 0; k < COUNT(rows); k++) {
        iron_manifest *m = scan_one(name.path, rows[k].limit, rows[k].count, rows[k].chunk);

        assert_round_trip(m);
        iron_manifest_destroy(m);
    }
}

static void test_names(void **state) {
    static const char *const names[] = {"quote\"back\\slash", "new\nline", "umlaut-\xC3\xBC",
                                        "broken-\xFF\xFE",    "\x7F",      "del\x1B[0m"};

    (void)state;
    for (size_t k = 0; k < COUNT(names); k++) {
        file_name name = name_in(&place, names[k]);
        iron_manifest *m = scan_one(name.path, 100, 100, 1024);

        assert_string_equal(m->files[0].path, name.path);
        assert_round_trip(m);
        iron_manifest_destroy(m);
    }
}

static void test_is_one(void **state) {
    file_name name = name_in(&place, "what");

    (void)state;
    file_write(name.path, "{\"schema\": \"iron.manifest/7\"", 28);
    assert_true(iron_manifest_is_one(name.path));
    file_write(name.path, " \n{\"a\": 1, \"schema\":\"iron.manifest/1\"}", 38);
    assert_true(iron_manifest_is_one(name.path));
    file_write(name.path, "x{\"schema\": \"iron.manifest/1\"", 29);
    assert_false(iron_manifest_is_one(name.path));
    file_write(name.path, "{\"schema\": \"iron.arena/1\"}", 26);
    assert_false(iron_manifest_is_one(name.path));
    file_write(name.path, "", 0);
    assert_false(iron_manifest_is_one(name.path));
    assert_false(iron_manifest_is_one(place.path));
    assert_false(iron_manifest_is_one(name_in(&place, "nothing").path));
}

/* Members may be sorted differently: the schema may be anywhere, also across read blocks. */
static void test_is_one_wherever_the_schema_is(void **state) {
    static const char begin[] = "{\"a\": \"", end[] = "\", \"schema\": \"iron.manifest/1\"}";
    file_name name = name_in(&place, "sorted");
    char *text = grab(200000);

    (void)state;
    for (size_t bytes = 16320; bytes < 16390; bytes++) {
        memset(text, 'x', bytes);
        memcpy(text, begin, sizeof begin - 1);
        memcpy(text + bytes, end, sizeof end - 1);
        file_write(name.path, text, bytes + sizeof end - 1);
        assert_true(iron_manifest_is_one(name.path));
        file_write(name.path, text, bytes + sizeof end - 4 - 6);
        assert_false(iron_manifest_is_one(name.path));
    }
    memset(text, ' ', 100000);
    memcpy(text + 100000, begin, sizeof begin - 1);
    memcpy(text + 100000 + sizeof begin - 1, end, sizeof end - 1);
    file_write(name.path, text, 100000 + sizeof begin - 1 + sizeof end - 1);
    assert_true(iron_manifest_is_one(name.path));
    free(text);
}

/* Checking whether a pipe is a manifest reads nothing from it. */
static void test_a_pipe_is_not_read(void **state) {
    static const char text[] = "{\"schema\": \"iron.manifest/1\"}";
    char path[32], back[sizeof text] = "";
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, sizeof text), sizeof text);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_false(iron_manifest_is_one(path));
    close(ends[1]);
    assert_int_equal(read(ends[0], back, sizeof back), sizeof back);
    assert_string_equal(back, text);
    close(ends[0]);
}

/* The text with the first `from` replaced; free() it. */
static char *replaced(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    char *out = grab(strlen(text) + strlen(to) + 1);

    if (!at)
        fail_msg("the manifest has no '%s'", from);
    sprintf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

static void assert_contradiction(const char *text, const char *from, const char *to,
                                 iron_status status, const char *word) {
    char *changed = replaced(text, from, to);
    iron_manifest *m = NULL;
    iron_error err;

    assert_refused(parse_manifest("changed", changed, strlen(changed), &m, &err), status, &err);
    if (!strstr(err.text, word))
        fail_msg("%s -> %s: '%s' does not say '%s'", from, to, err.text, word);
    assert_null(m);
    free(changed);
}

/* A manifest with known numbers: three files, 3000 tokens, all 7 except one. */
static char *known_text(void) {
    static const size_t sizes[] = {1000, 0, 2000};
    iron_scan_options o = scan_options(1, 1024);
    uint16_t tokens[3000];
    file_name name = name_in(&place, "known");
    iron_manifest *m;
    iron_error err;
    size_t bytes;
    shards s;

    for (size_t k = 0; k < 3000; k++)
        tokens[k] = (uint16_t)(k % 251);
    tokens[1500] = 60000;
    s = shards_write(&place, tokens, sizes, 3);
    m = scan_paths(IRON_DTYPE_U16, s.paths, 3, &o);
    assert_ok(iron_manifest_write(m, name.path, &err), &err);
    iron_manifest_destroy(m);
    shards_free(&s);
    return file_read(name.path, &bytes);
}

static void test_contradictions(void **state) {
    static const struct {
        const char *from, *to, *word;
    } rows[] = {
        {"\"tokens\": 3000", "\"tokens\": 2999", "2999"},
        {"\"first\": 0", "\"first\": 4", "3004"},
        {"\"first\": 0", "\"first\": -1", "first"},
        {"\"stream_tokens\": 3000", "\"stream_tokens\": 3001", "3001"},
        {"\"stream_tokens\": 3000", "\"stream_tokens\": 9007199254740993", "9007199254740992"},
        {"\"part\": 0", "\"part\": 1", "part 1 of 0"},
        {"\"parts\": 0", "\"parts\": 2", "part 0 of 2"},
        {"\"vocab\": 50257", "\"vocab\": 0", "vocab"},
        {"\"vocab\": 50257", "\"vocab\": 65536", "vocabulary"},
        {"\"min\": 0", "\"min\": 60001", "60001"},
        {"\"min\": 0", "\"min\": null", "tokens from"},
        {"\"max\": 60000", "\"max\": 250", "vocabulary"},
        {"\"max\": 60000", "\"max\": 4294967296", "max"},
        {"\"out_of_vocab\": 1", "\"out_of_vocab\": 0", "vocabulary"},
        {"\"out_of_vocab\": 1", "\"out_of_vocab\": 3001", "3001"},
        {"\"position\": 1500", "\"position\": 3000", "3000"},
        {"\"value\": 60000", "\"value\": 100", "first token"},
        {"\"dtype\": \"u16\"", "\"dtype\": \"f16\"", "f16"},
        {"\"format\": \"raw\"", "\"format\": \"\"", "format"},
        {"\"format\": \"raw\"", "\"format\": \"a-very-long-name\"", "format"},
        {"\"first\": 1000", "\"first\": 1004", "1004"},
        {"\"tokens\": 2000", "\"tokens\": 2004", "2004"},
        {"\"tokens\": 0", "\"tokens\": 4", "seal of"},
        {"[\"2000\"", "[\"1996\"", "1996"},
        {"[\"2000\"", "[\"2000\", \"0\"", "5 entries"},
        {"[\"1000\"", "[1000", "decimal"},
        {"\"chunk_tokens\": 1024", "\"chunk_tokens\": 1022", "multiple of 4"},
        {"\"chunk_tokens\": 1024", "\"chunk_tokens\": 2048", "2"},
        {"\"chunk_tokens\": 1024", "\"chunk_tokens\": 0", "3 chunks"},
        {"\"words\"", "\"wordz\"", "words"},
        {"\"seal_version\": 1", "\"seal_version\": 0", "version 0"},
        {"\"statistics\"", "\"statistica\"", "statistics"},
        {"\"files\"", "\"filez\"", "files"},
        {"\"chunks\"", "\"chunkz\"", "chunks"},
        {"\"path\"", "\"paths\"", "path"},
        {"\"schema\": \"iron.manifest/2\"", "\"schema\": \"iron.manifest/\"", "schema"},
        {"\"schema\": \"iron.manifest/2\"", "\"schema\": \"iron.manifest/0\"", "unknown"},
        {"\"schema\": \"iron.manifest/2\"", "\"schema\": \"iron.arena/1\"", "not a manifest"},
        {"\"schema\": \"iron.manifest/2\"", "\"schema\": 1", "schema"},
    };
    char *text = known_text();

    (void)state;
    for (size_t k = 0; k < COUNT(rows); k++)
        assert_contradiction(text, rows[k].from, rows[k].to, IRON_E_FORMAT, rows[k].word);
    assert_contradiction(text, "iron.manifest/2", "iron.manifest/3", IRON_E_UNSUPPORTED,
                         "version 3");
    assert_contradiction(text, "\"seal_version\": 1", "\"seal_version\": 2", IRON_E_UNSUPPORTED,
                         "version 2");
    assert_contradiction(text, "{", "[", IRON_E_FORMAT, "line 2");
    free(text);
}

/* A changed digit of the seal, of a word, or of a chunk's line is detected. */
static void test_damaged_digits(void **state) {
    char *text = known_text();
    iron_manifest *m = NULL;
    size_t damaged = 0;
    iron_error err;

    (void)state;
    for (char *at = strstr(text, "\"seal\""); at < strstr(text, "\"tokens\""); at++) {
        char original = *at;

        if (original < '0' || original > '9')
            continue;
        *at = original == '7' ? '8' : '7';
        assert_true(parse_manifest("damaged", text, strlen(text), &m, &err) != IRON_OK);
        *at = original;
        damaged++;
    }
    assert_true(damaged > 60);
    for (char *at = strstr(text, "\"chunks\": ["); (at = strstr(at, "    \"")); at += 5) {
        char original = at[5]; /* the first digit of a chunk's sum */

        at[5] = original == '7' ? '8' : '7';
        assert_refused(parse_manifest("damaged", text, strlen(text), &m, &err), IRON_E_FORMAT,
                       &err);
        assert_says(&err, "sums");
        at[5] = original;
    }
    assert_ok(parse_manifest("as it was", text, strlen(text), &m, &err), &err);
    iron_manifest_destroy(m);
    free(text);
}

/* A changed digit of a file's seal or words is detected. So are two files whose words were
 * exchanged for others that fit their seals, if the sums differ. */
static void test_damaged_file_seals(void **state) {
    char *text = known_text();
    char *files = strstr(text, "\"files\""), *end = strstr(text, "\"chunk_tokens\"");
    iron_manifest *m = NULL;
    size_t damaged = 0;
    iron_error err;

    (void)state;
    for (char *at = files; (at = strstr(at, "\"seal\"")) && at < end; at += 8)
        for (char *digit = at; *digit != '}'; digit++) {
            char original = *digit;

            if (original < '0' || original > '9')
                continue;
            *digit = original == '7' ? '8' : '7';
            assert_refused(parse_manifest("damaged", text, strlen(text), &m, &err), IRON_E_FORMAT,
                           &err);
            *digit = original;
            damaged++;
        }
    assert_true(damaged > 150);
    assert_ok(parse_manifest("as it was", text, strlen(text), &m, &err), &err);
    m->files[0].words.t++;
    assert_refused(check_manifest(m, "more", &err), IRON_E_FORMAT, &err);
    assert_says(&err, "the files' sums");
    m->files[2].words.t--;
    assert_ok(check_manifest(m, "shifted", &err), &err);
    m->files[1].words.a++;
    assert_refused(check_manifest(m, "empty", &err), IRON_E_FORMAT, &err);
    assert_says(&err, "has no tokens");
    iron_manifest_destroy(m);
    free(text);
}

/* The only file of a stream has its words. */
static void test_only_file(void **state) {
    file_name name = name_in(&place, "tokens");
    iron_manifest *m = scan_one(name.path, 60000, 5000, 1024);
    iron_error err;

    (void)state;
    assert_memory_equal(&m->files[0].words, &m->words, sizeof m->words);
    m->files[0].words.b++;
    assert_refused(check_manifest(m, "other", &err), IRON_E_FORMAT, &err);
    assert_says(&err, "its only file");
    iron_manifest_destroy(m);
}

/* Version 1 has no seals of files, and none are written when it is written again. */
static void test_version_1(void **state) {
    char *text = known_text();
    char *old = replaced(text, "iron.manifest/2", "iron.manifest/1");
    file_name name = name_in(&place, "again");
    iron_manifest *m = NULL;
    iron_error err;
    size_t bytes;
    char *again;

    (void)state;
    assert_ok(parse_manifest("old", old, strlen(old), &m, &err), &err);
    assert_false(m->has_file_seals);
    assert_int_equal(m->files[0].words.count, 0);
    assert_ok(iron_manifest_write(m, name.path, &err), &err);
    again = file_read(name.path, &bytes);
    assert_non_null(strstr(again, "\"iron.manifest/1\""));
    assert_null(strstr(strstr(again, "\"files\""), "\"seal\""));
    iron_manifest_destroy(m);
    free(again);
    free(old);
    free(text);
}

static void test_bad_chunks(void **state) {
    static const char *const lines[] = {"",
                                        "1 2 3",
                                        "1 2 3 4",
                                        "1 2 3 4 5 6",
                                        "1 2 3 -",
                                        "1  2 3 4 5",
                                        "g 2 3 4 5",
                                        "1 2 3 4 5 ",
                                        " 1 2 3 4 5",
                                        "10000000000000000 2 3 4 5",
                                        "1 2 3 ffffffffffffffff 0"};
    char *text = known_text();
    char *line = strstr(strstr(text, "\"chunks\": ["), "    \"") + 5;
    char from[120];

    (void)state;
    snprintf(from, sizeof from, "%.*s", (int)(strchr(line, '"') - line), line);
    for (size_t k = 0; k < COUNT(lines); k++)
        assert_contradiction(text, from, lines[k], IRON_E_FORMAT, "chunk 0 is");
    free(text);
}

static void test_unknown_fields_are_ignored(void **state) {
    char *text = known_text();
    char *more = replaced(text, "\"tokens\": 3000", "\"comment\": {\"x\": [1]}, \"tokens\": 3000");
    iron_manifest *m = NULL;
    iron_error err;

    (void)state;
    assert_ok(parse_manifest("more", more, strlen(more), &m, &err), &err);
    iron_manifest_destroy(m);
    free(more);
    free(text);
}

static void test_unreadable(void **state) {
    iron_manifest *m = NULL;
    iron_error err;

    (void)state;
    assert_refused(iron_manifest_read(name_in(&place, "nothing").path, &m, &err), IRON_E_IO, &err);
    assert_null(m);
    assert_refused(iron_manifest_read(place.path, &m, &err), IRON_E_IO, &err);
    assert_null(m);
}

static void test_describe(void **state) {
    file_name name = name_in(&place, "tokens");
    iron_manifest *m = scan_one(name.path, 60000, 5000, 1024);
    iron_manifest_info info = {.struct_size = sizeof info};
    iron_manifest_file file = {.struct_size = sizeof file};
    iron_digest_result r = {.struct_size = sizeof r};
    char seal[IRON_SEAL_TEXT];
    iron_error err;

    (void)state;
    assert_ok(iron_manifest_describe(m, &info, &err), &err);
    assert_int_equal(info.chunk_count, 5);
    assert_int_equal(info.tokens, 5000);
    assert_ok(iron_manifest_digest(m, &r, &err), &err);
    iron__seal_text(m->words, seal);
    assert_string_equal(r.seal, seal);
    assert_int_equal(r.words[0], 5000);
    assert_int_equal(r.seal_version, 1);
    assert_refused(iron_manifest_file_at(m, 1, &file, &err), IRON_E_ARG, &err);
    r.struct_size = info.struct_size = file.struct_size = 4;
    assert_refused(iron_manifest_digest(m, &r, &err), IRON_E_ARG, &err);
    assert_refused(iron_manifest_describe(m, &info, &err), IRON_E_ARG, &err);
    assert_refused(iron_manifest_file_at(m, 0, &file, &err), IRON_E_ARG, &err);
    iron_manifest_destroy(m);
    iron_manifest_destroy(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_is_one),
        cmocka_unit_test(test_is_one_wherever_the_schema_is),
        cmocka_unit_test(test_a_pipe_is_not_read),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_damaged_digits),
        cmocka_unit_test(test_damaged_file_seals),
        cmocka_unit_test(test_only_file),
        cmocka_unit_test(test_version_1),
        cmocka_unit_test(test_bad_chunks),
        cmocka_unit_test(test_unknown_fields_are_ignored),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_describe),
    };

    return cmocka_run_group_tests(tests, make_place, remove_place);
}
