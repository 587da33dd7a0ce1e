/* SPDX-License-Identifier: MIT */
/*
 * test_source.c: several files as one stream of tokens, and the inputs that are errors: odd sizes,
 * headers of other formats, missing shards, files that shrink while being read. Pipes and standard
 * input are in test_source_pipes.c.
 *
 * The natural order of file names (part-2 before part-10) must be a total order for any names. A
 * list in the right order is compared pair by pair, both ways. Then the laws that qsort needs are
 * tested with random names made of characters that could break them: digits with leading zeros,
 * letters, signs on both sides of the digits in the character set, bytes above 127.
 */
#include "formats/files.c"
#include "place.h"
#include "source_support.h"
#include "support.h"

static void refuse(iron_dtype dtype, const char *format, const char *path, iron_status expected,
                   const char *word) {
    iron_source *s = (iron_source *)&s;
    iron_error err;

    assert_refused(try_open(dtype, format, &path, 1, &s, &err), expected, &err);
    assert_says(&err, word);
    assert_null(s);
    assert_int_equal(try_open(dtype, format, &path, 1, &s, NULL), expected);
}

/* Files of 0, 1, 2, 700 and 4000 tokens, in this order. */
static void several_files_are_one_stream(void **state) {
    static const size_t sizes[] = {0, 1, 2, 0, 700, 4000, 0};
    static const size_t capacities[] = {1, 2, 3, 7, 64, 699, 700, 701, 4703, 100000};
    uint16_t tokens[4703];
    shards files;

    (void)state;
    fill_u16(tokens, COUNT(tokens));
    files = shards_write(&place, tokens, sizes, COUNT(sizes));
    for (size_t c = 0; c < COUNT(capacities); c++) {
        iron_source *s = shards_open(&files);

        assert_int_equal(iron_source_tokens(s), COUNT(tokens));
        assert_int_equal(iron_source_file_count(s), COUNT(sizes));
        assert_string_equal(iron_source_file(s, 4), files.paths[4]);
        assert_null(iron_source_file(s, COUNT(sizes)));
        assert_stream(s, tokens, COUNT(tokens), capacities[c]);
        iron_source_close(s);
    }
    shards_free(&files);
}

/* part-2 before part-10; hidden files and folders are skipped. */
static void directories_are_read_in_natural_order(void **state) {
    static const char *const names[] = {"part-1", "part-2", "part-10", "part-10b", "tail"};
    uint16_t tokens[COUNT(names)];
    const char *path = place.path;
    iron_source *s;

    (void)state;
    fill_u16(tokens, COUNT(names));
    for (size_t k = COUNT(names); k-- > 0;)
        file_write(name_in(&place, names[k]).path, &tokens[k], sizeof tokens[k]);
    file_write(name_in(&place, ".hidden").path, "x", 1);
    assert_int_equal(mkdir(name_in(&place, "part-3").path, 0755), 0);
    file_write(name_in(&place, "part-3/inner").path, "xyz", 3);
    s = open_all(IRON_DTYPE_U16, &path, 1);
    assert_int_equal(iron_source_file_count(s), COUNT(names));
    for (size_t k = 0; k < COUNT(names); k++)
        assert_string_equal(iron_source_file(s, k), name_in(&place, names[k]).path);
    assert_stream(s, tokens, COUNT(names), 2);
    iron_source_close(s);
}

/* A dangling link is a missing shard: it must not be skipped. */
static void missing_shards_are_refused(void **state) {
    (void)state;
    file_write(name_in(&place, "part-1").path, "ab", 2);
    assert_int_equal(symlink("nowhere", name_in(&place, "part-2").path), 0);
    refuse(IRON_DTYPE_U8, NULL, place.path, IRON_E_IO, "part-2");
}

/* Arguments keep their order; only the files of a folder are sorted. */
/* The warnings of a source or a list: "kind:name " for each. */
static void note_warning(void *context, const iron_warning *w) {
    char *notes = context;
    const char *slash = strrchr(w->file, '/');
    size_t used = strlen(notes);

    assert_true(w->text[0] != '\0');
    snprintf(notes + used, 200 - used, "%d:%s ", (int)w->kind, slash + 1);
}

static void assert_listed(iron_source_options *o, const char *names, const char *warnings) {
    char listed[200] = "", notes[200] = "";
    iron_input_files *files = NULL;
    iron_source *s = NULL;
    iron_error err;

    o->warn = note_warning;
    o->warn_context = notes;
    assert_ok(iron_input_files_list(o, &files, &err), &err);
    assert_string_equal(notes, warnings);
    notes[0] = '\0';
    assert_ok(iron_source_open(o, &s, &err), &err);
    assert_string_equal(notes, warnings);
    assert_int_equal(iron_source_file_count(s), iron_input_files_count(files));
    for (size_t k = 0; k < iron_input_files_count(files); k++) {
        const char *path = iron_input_files_at(files, k);

        assert_string_equal(path, iron_source_file(s, k));
        strcat(strcat(listed, path + strlen(place.path) + 1), " ");
    }
    assert_null(iron_input_files_at(files, iron_input_files_count(files)));
    assert_string_equal(listed, names);
    iron_input_files_destroy(files);
    iron_source_close(s);
}

static void files_of_directories_are_chosen(void **state) {
    static const char *const bins[] = {"*.bin"}, *const tens[] = {"*10*", "sub/"};
    const char *path = place.path;
    iron_source_options o = {
        .struct_size = sizeof o, .dtype = IRON_DTYPE_U16, .paths = &path, .path_count = 1};
    iron_input_files *files = (iron_input_files *)&files;
    iron_error err;

    (void)state;
    assert_int_equal(mkdir(name_in(&place, "sub").path, 0700), 0);
    file_write(name_in(&place, "t2.bin").path, "\1\0\2\0", 4);
    file_write(name_in(&place, "t10.bin").path, "\1\0\2\0", 4);
    file_write(name_in(&place, "tokens").path, "\1\0\2\0", 4);
    file_write(name_in(&place, "sub/t1.bin").path, "\1\0\2\0", 4);
    file_write(name_in(&place, "a.md").path, "# tokens\n", 9);
    file_write(name_in(&place, "b.bin").path, "SQLite format 3\0", 16);
    assert_listed(&o, "t2.bin t10.bin tokens ", "2:a.md 2:b.bin ");
    o.include = bins;
    o.include_count = 1;
    assert_listed(&o, "t2.bin t10.bin ", "2:b.bin ");
    o.is_recursive = 1;
    assert_listed(&o, "sub/t1.bin t2.bin t10.bin ", "2:b.bin ");
    o.exclude = tens;
    o.exclude_count = 2;
    assert_listed(&o, "t2.bin ", "2:b.bin ");
    o.format = "raw";
    assert_listed(&o, "b.bin t2.bin ", "");
    o.struct_size--;
    assert_refused(iron_input_files_list(&o, &files, &err), IRON_E_ARG, &err);
    assert_null(files);
}

static void files_and_folders_mix(void **state) {
    file_name z = name_in(&place, "z"), inner = name_in(&place, "d");
    const char *paths[3] = {z.path, inner.path, z.path};
    uint16_t tokens[] = {1, 2, 3, 1};
    char with_slash[420];
    iron_source *s;

    (void)state;
    file_write(z.path, &tokens[0], 2);
    assert_int_equal(mkdir(inner.path, 0755), 0);
    file_write(name_in(&place, "d/a").path, &tokens[1], 2);
    file_write(name_in(&place, "d/b").path, &tokens[2], 2);
    s = open_all(IRON_DTYPE_U16, paths, 3);
    assert_stream(s, tokens, 4, 100);
    iron_source_close(s);
    snprintf(with_slash, sizeof with_slash, "%s/", inner.path);
    paths[1] = with_slash;
    s = open_all(IRON_DTYPE_U16, paths, 3);
    assert_stream(s, tokens, 4, 100);
    iron_source_close(s);
}

static void options_are_checked(void **state) {
    file_name good = name_in(&place, "good");
    const char *path = good.path;
    iron_source_options o = {
        .struct_size = 4, .dtype = IRON_DTYPE_U8, .paths = &path, .path_count = 1};
    iron_source *s = (iron_source *)&s;
    iron_error err;

    (void)state;
    file_write(good.path, "abcd", 4);
    assert_refused(iron_source_open(&o, &s, &err), IRON_E_ARG, &err);
    assert_says(&err, "struct_size");
    assert_null(s);
    assert_refused(iron_source_open(NULL, &s, &err), IRON_E_ARG, &err);
    assert_refused(try_open(IRON_DTYPE_U8, NULL, NULL, 0, &s, &err), IRON_E_ARG, &err);
    refuse(IRON_DTYPE_NONE, NULL, path, IRON_E_ARG, "--dtype");
    refuse((iron_dtype)42, NULL, path, IRON_E_ARG, "--dtype");
    refuse(IRON_DTYPE_U8, "zip", path, IRON_E_ARG, "zip");
    iron_source_close(NULL);
}

static void missing_and_empty_are_refused(void **state) {
    file_name missing = name_in(&place, "missing"), empty = name_in(&place, "empty-folder");

    (void)state;
    assert_int_equal(mkdir(empty.path, 0755), 0);
    refuse(IRON_DTYPE_U8, NULL, missing.path, IRON_E_IO, "missing");
    refuse(IRON_DTYPE_U8, NULL, empty.path, IRON_E_ARG, "empty-folder");
    file_write(name_in(&place, "empty-folder/.hidden").path, "x", 1);
    refuse(IRON_DTYPE_U8, NULL, empty.path, IRON_E_ARG, "empty-folder");
    refuse(IRON_DTYPE_U8, NULL, "", IRON_E_IO, "open");
}

static void odd_sizes_are_refused(void **state) {
    file_name odd = name_in(&place, "odd");
    const char *path = odd.path;
    iron_source *s;

    (void)state;
    file_write(odd.path, "0123456789abcd", 14);
    refuse(IRON_DTYPE_U32, NULL, path, IRON_E_FORMAT, "14 bytes");
    refuse(IRON_DTYPE_I32, NULL, path, IRON_E_FORMAT, "14 bytes");
    refuse(IRON_DTYPE_I64, NULL, path, IRON_E_FORMAT, "14 bytes");
    s = open_all(IRON_DTYPE_U16, &path, 1);
    assert_int_equal(iron_source_tokens(s), 7);
    iron_source_close(s);
    s = open_all(IRON_DTYPE_U8, &path, 1);
    assert_int_equal(iron_source_tokens(s), 14);
    iron_source_close(s);
}

static void empty_files_are_an_empty_stream(void **state) {
    file_name empty = name_in(&place, "empty");
    const char *paths[2] = {empty.path, empty.path};
    iron_source *s;

    (void)state;
    file_write(empty.path, "", 0);
    s = open_all(IRON_DTYPE_I64, paths, 2);
    assert_int_equal(iron_source_tokens(s), 0);
    assert_stream(s, NULL, 0, 10);
    iron_source_close(s);
}

/* A file that begins like a format is examined as that format, and an error if it is invalid; raw
 * accepts it. */
static void check_header(const char *word, const void *start, size_t start_bytes) {
    file_name n = name_in(&place, "with-header");
    const char *path = n.path;
    _Alignas(2) unsigned char data[1032] = {0};
    iron_source *s = NULL;
    iron_error err;

    memcpy(data, start, start_bytes);
    file_write(path, data, sizeof data);
    refuse(IRON_DTYPE_U16, NULL, path, IRON_E_FORMAT, word);
    refuse(IRON_DTYPE_U16, "auto", path, IRON_E_FORMAT, word);
    assert_ok(try_open(IRON_DTYPE_U16, "raw", &path, 1, &s, &err), &err);
    assert_int_equal(iron_source_tokens(s), 516);
    assert_string_equal(iron_source_file_format(s, 0), "raw");
    assert_int_equal(iron_source_file_tokens(s, 0), 516);
    assert_null(iron_source_file_format(s, 1));
    assert_true(iron_source_file_tokens(s, 1) == IRON_COUNT_UNKNOWN);
    assert_stream(s, (const uint16_t *)(const void *)data, 516, 100);
    iron_source_close(s);
}

static void headers_are_recognised(void **state) {
    static const uint32_t gpt2[] = {20240520, 1, 1000}, llama3[] = {20240801, 7, 1000};
    static const uint32_t other[] = {20240520, 2, 20240801, 1};
    file_name plain = name_in(&place, "plain");
    const char *path = plain.path;

    (void)state;
    check_header("NumPy", "\x93NUMPY\x01\x00", 8);
    check_header("LITPKDS", "LITPKDS\x00", 8);
    check_header("Megatron", "MMIDIDX\x00", 8);
    check_header("says 1000 tokens", gpt2, sizeof gpt2);
    check_header("of format llmc, with u32 tokens, but --dtype says u16", llama3, sizeof llama3);
    check_header("llm.c version 2", other, sizeof other);
    file_write(path, "\x93NUMP", 5); /* shorter than any header */
    iron_source_close(open_all(IRON_DTYPE_U8, &path, 1));
}

static void files_that_change_are_an_error(void **state) {
    static const char bytes[4000] = {0};
    file_name changing = name_in(&place, "changing");
    const char *path = changing.path;
    iron_source *s;

    (void)state;
    file_write(path, bytes, sizeof bytes);
    s = open_all(IRON_DTYPE_U16, &path, 1);
    assert_int_equal(truncate(path, 3000), 0); /* between opening and reading */
    assert_read_fails(s, IRON_E_IO, "3000");
    iron_source_close(s);
    file_write(path, bytes, sizeof bytes);
    s = open_all(IRON_DTYPE_U16, &path, 1);
    assert_int_equal(unlink(path), 0);
    assert_read_fails(s, IRON_E_IO, "changing");
    iron_source_close(s);
}

/* Bytes appended after opening are not part of the stream. */
static void growing_files_are_read_with_their_old_size(void **state) {
    uint16_t tokens[100];
    file_name growing = name_in(&place, "growing");
    const char *path = growing.path;
    iron_source *s;

    (void)state;
    fill_u16(tokens, COUNT(tokens));
    file_write(path, tokens, 60 * sizeof *tokens);
    s = open_all(IRON_DTYPE_U16, &path, 1);
    file_write(path, tokens, sizeof tokens);
    assert_stream(s, tokens, 60, 1000);
    iron_source_close(s);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, make_place, remove_place)

static const char *const ordered[] = {"",
                                      "-1",
                                      "0",
                                      "00",
                                      "1",
                                      "2",
                                      "10",
                                      "99999999999999999999",
                                      "100000000000000000000",
                                      "a",
                                      "a0",
                                      "a1",
                                      "a01b",
                                      "a1c",
                                      "a2",
                                      "a10",
                                      "a10b",
                                      "ab",
                                      "part",
                                      "part-",
                                      "part-1.bin",
                                      "part-2.bin",
                                      "part-10.bin",
                                      "part-10a.bin",
                                      "part-100.bin",
                                      "part_1",
                                      "sub",
                                      "sub/a",
                                      "sub/b",
                                      "sub-2/a",
                                      "sub2",
                                      "z",
                                      "\xc3\xa4"};

static int sign(int x) { return (x > 0) - (x < 0); }

static void numbers_in_names_are_compared(void **state) {
    (void)state;
    for (size_t a = 0; a < COUNT(ordered); a++) {
        for (size_t b = 0; b < COUNT(ordered); b++) {
            int got = sign(natural_compare(ordered[a], ordered[b]));

            if (got != (a > b) - (a < b))
                fail_msg("'%s' against '%s' gave %d", ordered[a], ordered[b], got);
        }
    }
}

static void leading_zeros_do_not_change_the_number(void **state) {
    (void)state;
    assert_true(natural_compare("x007", "x8") < 0);
    assert_true(natural_compare("x010", "x9") > 0);
    assert_true(natural_compare("x08y", "x8z") < 0);
    assert_true(natural_compare("x8y", "x08z") < 0);
    /* equal numbers: any order, but antisymmetric */
    assert_int_equal(sign(natural_compare("x01", "x1")), -sign(natural_compare("x1", "x01")));
    assert_true(natural_compare("x01", "x1") != 0);
    assert_int_equal(natural_compare("x01", "x01"), 0);
}

static void random_name(char name[8], rng *r) {
    static const char alphabet[] = "00112.-/:a~\xc3";
    size_t length = (size_t)rng_below(r, 7);

    for (size_t k = 0; k < length; k++)
        name[k] = alphabet[rng_below(r, sizeof alphabet - 1)];
    name[length] = '\0';
}

static void a_total_order(void **state) {
    rng r = {71};

    (void)state;
    for (int n = 0; n < 300000; n++) {
        char a[8], b[8], c[8];
        int ab, bc, ac;

        random_name(a, &r);
        random_name(b, &r);
        random_name(c, &r);
        ab = sign(natural_compare(a, b));
        bc = sign(natural_compare(b, c));
        ac = sign(natural_compare(a, c));
        if (ab != -sign(natural_compare(b, a)))
            fail_msg("not antisymmetric: '%s' '%s'", a, b);
        if ((ab == 0) != (strcmp(a, b) == 0))
            fail_msg("equal but not identical, or the reverse: '%s' '%s'", a, b);
        if (ab <= 0 && bc <= 0 && ac > 0)
            fail_msg("not transitive: '%s' '%s' '%s'", a, b, c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(several_files_are_one_stream),
        CASE(directories_are_read_in_natural_order),
        CASE(missing_shards_are_refused),
        CASE(files_of_directories_are_chosen),
        CASE(files_and_folders_mix),
        CASE(options_are_checked),
        CASE(missing_and_empty_are_refused),
        CASE(odd_sizes_are_refused),
        CASE(empty_files_are_an_empty_stream),
        CASE(headers_are_recognised),
        CASE(files_that_change_are_an_error),
        CASE(growing_files_are_read_with_their_old_size),
        cmocka_unit_test(numbers_in_names_are_compared),
        cmocka_unit_test(leading_zeros_do_not_change_the_number),
        cmocka_unit_test(a_total_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
