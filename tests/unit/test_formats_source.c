/* SPDX-License-Identifier: MIT */
/*
 * test_formats_source.c: files of several formats in one stream: all have the same dtype, and
 * tokens come from behind each header, whether read in order or at any position; directories that
 * contain indexes; formats read from pipes, where only the header is known.
 */
#include "format_support.h"
#include "place.h"

#include "core/memory.h"
#include "formats/source.h"

#include <fcntl.h>

/* A blob's last `tokens` of 2 bytes become first, first+1, ... */
static void renumber(blob *b, size_t tokens, size_t first) {
    for (size_t k = 0; k < tokens; k++)
        poke(b, b->count - 2 * (tokens - k), first + k, 2);
}

#define EACH 11u
#define ALL  (6 * EACH)

/* The same dtype in all six formats, numbered consecutively; b.bin and e.ds with sidecars. */
static void save_six(void) {
    static const size_t lengths[] = {5, 6};
    static const uint64_t ends[] = {3, EACH};
    blob files[6] = {llmc_blob(20240520, 1, EACH, 2), raw_blob(EACH, 2), litpkds_blob(8, EACH, 2),
                     npy_of("<u2", EACH, 2),          raw_blob(EACH, 2), raw_blob(EACH, 2)};
    static const char *const names[] = {"a.bin", "b.bin", "c.bin", "d.npy", "e.ds", "f.npy"};
    blob idx = megatron_index(8, lengths, 2, 2);

    for (size_t k = 0; k < 6; k++) {
        renumber(&files[k], EACH, 1 + k * EACH);
        save(&place, names[k], &files[k]);
    }
    save(&place, "b.idx", &idx);
    file_write(name_in(&place, "e.ds.index").path, ends, sizeof ends);
    save_text(&place, "e.ds.metadata", "gpt2|2\n11\n11 T");
    save_text(&place, "e.ds.loss", "01010101010");
    save_text(&place, "e.ds.datalist", "e.ds\n11");
}

static iron_source *open_place(iron_dtype dtype) {
    const char *path = place.path;
    iron_source *s = NULL;
    iron_error err;

    assert_ok(try_open(dtype, NULL, &path, 1, &s, &err), &err);
    return s;
}

static void six_formats_are_one_stream(void **state) {
    static const char *const formats[] = {"llmc", "megatron", "litpkds", "npy", "ds", "raw"};
    uint16_t tokens[ALL];
    iron__parallel_source *at = NULL;
    iron_source *s;
    iron_error err;

    (void)state;
    save_six();
    s = open_place(IRON_DTYPE_U16);
    assert_int_equal(iron_source_file_count(s), 6);
    assert_int_equal(iron_source_tokens(s), ALL);
    for (size_t k = 0; k < 6; k++) {
        assert_string_equal(iron_source_file_format(s, k), formats[k]);
        assert_int_equal(iron_source_file_tokens(s, k), EACH);
    }
    assert_true(iron__source_is_seekable(s));
    assert_counting(s, ALL);
    for (size_t from = 0; from <= ALL; from++) {
        size_t count;

        iron__source_seek(s, from);
        assert_int_equal(iron__source_position(s), from);
        assert_ok(iron_source_read(s, tokens, 5, &count, &err), &err);
        assert_int_equal(count, ALL - from < 5 ? ALL - from : 5);
        assert_true(count == 0 || tokens[0] == from + 1);
        iron__source_seek(s, from);
        assert_ok(iron__parallel_source_open(s, iron__allocator_default(), &at, &err), &err);
        assert_int_equal(iron__parallel_source_tokens(at), ALL - from);
        assert_ok(iron__parallel_source_read(at, 0, tokens, ALL - from, NULL, &err), &err);
        for (size_t k = 0; k < ALL - from; k++)
            assert_int_equal(tokens[k], from + k + 1);
        iron__parallel_source_close(at);
    }
    iron_source_close(s);
}

static void tokens_are_located_behind_headers(void **state) {
    const uint64_t headers[] = {1024, 0, 24, npy_of("<u2", EACH, 2).count - 2 * EACH, 0, 0};
    iron_source *s;

    (void)state;
    save_six();
    s = open_place(IRON_DTYPE_U16);
    for (size_t k = 0; k < ALL; k++) {
        uint64_t byte;
        size_t file;

        assert_true(iron__source_locate(s, k, &file, &byte));
        assert_int_equal(file, k / EACH);
        assert_int_equal(byte, headers[file] + 2 * (k % EACH));
    }
    iron_source_close(s);
}

static void widths_must_agree(void **state) {
    file_name a = name_in(&place, "a"), b = name_in(&place, "b"), c = name_in(&place, "c");
    const char *const paths[] = {a.path, b.path, c.path};
    blob u16 = npy_of("<u2", 4, 2), u32 = npy_of("<u4", 4, 4), raw = raw_blob(4, 2);
    iron_source *s = NULL;
    iron_error err;

    (void)state;
    save(&place, "a", &u16);
    save(&place, "b", &u32);
    save(&place, "c", &raw);
    assert_refused(try_open(IRON_DTYPE_NONE, NULL, paths, 2, &s, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "/b holds u32 tokens and ");
    assert_says(&err, "/a u16");
    assert_refused(try_open(IRON_DTYPE_U16, NULL, paths, 2, &s, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "/b is of format npy, with u32 tokens, but --dtype says u16");
    /* the other files do not determine the dtype of a raw file */
    save(&place, "b", &u16);
    assert_refused(try_open(IRON_DTYPE_NONE, NULL, paths, 3, &s, &err), IRON_E_ARG, &err);
    assert_says(&err, "/c: raw token files do not store a dtype");
    assert_null(s);
    assert_ok(try_open(IRON_DTYPE_U16, NULL, paths, 3, &s, &err), &err);
    assert_int_equal(iron_source_tokens(s), 12);
    iron_source_close(s);
}

static void sidecars_are_not_tokens(void **state) {
    static const char *const sidecars[] = {"e.ds.index", "e.ds.metadata", "e.ds.loss", "b.idx"};
    file_name lonely = name_in(&place, "z.ds.index"), idx = name_in(&place, "z.idx");
    blob b = raw_blob(4, 2);

    (void)state;
    save_six();
    for (size_t k = 0; k < COUNT(sidecars); k++) {
        file_name n = name_in(&place, sidecars[k]);

        assert_open_fails(n.path, NULL, IRON_DTYPE_U8, IRON_E_ARG, k < 3 ? "e.ds, " : "b.bin, ");
        assert_open_fails(n.path, "auto", IRON_DTYPE_U8, IRON_E_ARG, "name that");
    }
    save(&place, "z.ds.index", &b);
    assert_open_fails(lonely.path, NULL, IRON_DTYPE_U8, IRON_E_ARG, "z.ds, which is missing");
    assert_open_fails(place.path, NULL, IRON_DTYPE_U16, IRON_E_ARG, "z.ds, which is missing");
    assert_reads(lonely.path, "raw", IRON_DTYPE_U16, "raw", IRON_DTYPE_U16, 4);
    save(&place, "z.idx", &b); /* only a name */
    assert_reads(idx.path, NULL, IRON_DTYPE_U16, "raw", IRON_DTYPE_U16, 4);
}

/* A given format applies to every file. */
static void forced_formats(void **state) {
    static const char *const formats[] = {"npy", "litpkds", "llmc", "megatron", "ds"};
    file_name plain = name_in(&place, "plain");
    blob b = raw_blob(600, 4);

    (void)state;
    save(&place, "plain", &b);
    for (size_t k = 0; k < COUNT(formats); k++)
        assert_open_fails(plain.path, formats[k], IRON_DTYPE_U16, IRON_E_FORMAT, "/plain");
    save_six();
    for (size_t k = 0; k < COUNT(formats); k++)
        assert_open_fails(place.path, formats[k], IRON_DTYPE_U16, IRON_E_FORMAT,
                          strcmp(formats[k], "llmc") == 0 ? "/b.bin" : "/a.bin");
}

/* Pipes. */

typedef struct piped {
    iron_dtype given;
    const char *format;
} piped;

/* A source of one pipe that contains only these bytes. */
static iron_status open_piped(const blob *b, const piped *p, iron_source **s, iron_error *err) {
    static const char *const paths[] = {"-"};
    int saved, end = pipe_as_stdin(&saved);
    iron_status status;

    assert_int_equal(write(end, b->data, b->count), b->count);
    close(end);
    status = try_open(p->given, p->format, paths, 1, s, err);
    if (status == IRON_OK)
        assert_false(iron__source_is_seekable(*s));
    if (status == IRON_OK)
        assert_true(iron_source_tokens(*s) == IRON_COUNT_UNKNOWN);
    /* the source does not duplicate standard input: keep the pipe there */
    if (status != IRON_OK)
        restore_stdin(saved);
    else
        close(saved);
    return status;
}

static void pipe_reads(const blob *b, const piped *p, const char *format, iron_dtype dtype,
                       size_t tokens) {
    int before = dup(0);
    iron_source *s = NULL;
    iron_error err;

    assert_ok(open_piped(b, p, &s, &err), &err);
    assert_counting(s, tokens);
    assert_int_equal(iron_source_dtype(s), dtype);
    assert_string_equal(iron_source_file_format(s, 0), format);
    assert_int_equal(iron_source_file_tokens(s, 0), tokens);
    iron_source_close(s);
    restore_stdin(before);
}

/* Fails at open if the dtype is not yet known, otherwise at read. */
static void pipe_fails(const blob *b, const piped *p, iron_status expected, const char *word) {
    int before = dup(0);
    iron_source *s = NULL;
    iron_error err = {0};
    iron_status status = open_piped(b, p, &s, &err);

    if (status == IRON_OK) {
        assert_read_fails(s, expected, word);
    } else {
        assert_int_equal(status, expected);
        assert_null(s);
        assert_says(&err, word);
    }
    iron_source_close(s);
    restore_stdin(before);
}

static void formats_from_pipes(void **state) {
    const struct {
        blob bytes;
        const char *format;
        iron_dtype dtype;
        size_t tokens;
    } good[] = {
        {llmc_blob(20240520, 1, 40, 2), "llmc", IRON_DTYPE_U16, 40},
        {llmc_blob(20240801, 7, 3, 4), "llmc", IRON_DTYPE_U32, 3},
        {llmc_blob(20240801, 7, 0, 4), "llmc", IRON_DTYPE_U32, 0},
        {npy_of("<i8", 19, 8), "npy", IRON_DTYPE_I64, 19},
        {npy_blob(2, "{'descr':'|u1','fortran_order':False,'shape':(2,7)}", 14, 1), "npy",
         IRON_DTYPE_U8, 14},
        {litpkds_blob(4, 30, 4), "litpkds", IRON_DTYPE_I32, 30},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(good); k++) {
        const piped ways[] = {{IRON_DTYPE_NONE, NULL},
                              {good[k].dtype, NULL},
                              {IRON_DTYPE_NONE, good[k].format},
                              {good[k].dtype, good[k].format}};

        for (size_t w = 0; w < COUNT(ways); w++)
            pipe_reads(&good[k].bytes, &ways[w], good[k].format, good[k].dtype, good[k].tokens);
    }
}

static void big_endian_from_pipes(void **state) {
    blob b = npy_blob(1, "{'descr':'>u2','fortran_order':True,'shape':(1, 20)}", 0, 2);
    piped p = {IRON_DTYPE_NONE, NULL};

    (void)state;
    for (uint64_t token = 1; token <= 20; token++)
        put_number(&b, token << 8, 2);
    pipe_reads(&b, &p, "npy", IRON_DTYPE_U16, 20);
    b.count--;
    pipe_fails(&b, &p, IRON_E_FORMAT, "with 19 of the 20 tokens");
}

static void raw_from_pipes(void **state) {
    (void)state;
    for (size_t tokens = 0; tokens < 20; tokens++) { /* also fewer bytes than a head */
        blob b = raw_blob(tokens, 2);

        pipe_reads(&b, &(piped){IRON_DTYPE_U16, NULL}, "raw", IRON_DTYPE_U16, tokens);
        pipe_reads(&b, &(piped){IRON_DTYPE_U16, "raw"}, "raw", IRON_DTYPE_U16, tokens);
        pipe_fails(&b, &(piped){IRON_DTYPE_NONE, NULL}, IRON_E_ARG, "iron sniff");
        pipe_fails(&b, &(piped){IRON_DTYPE_NONE, "raw"}, IRON_E_ARG, "iron sniff");
    }
}

static void pipes_with_wrong_headers(void **state) {
    static const iron_dtype given[] = {IRON_DTYPE_NONE, IRON_DTYPE_U16};

    (void)state;
    for (size_t k = 0; k < COUNT(given); k++) {
        piped p = {given[k], NULL};
        blob b = llmc_blob(20240520, 1, 20, 2);

        b.count -= 2;
        pipe_fails(&b, &p, IRON_E_FORMAT, "with 19 of the 20 tokens in its llmc header");
        b.count -= 1;
        pipe_fails(&b, &p, IRON_E_FORMAT, "with 18 of the 20 tokens");
        b.count = 1000;
        pipe_fails(&b, &p, IRON_E_FORMAT, "ended at byte 1000, inside its header");
        b.count = 1024 + 40;
        put_number(&b, 7, 1);
        pipe_fails(&b, &p, IRON_E_FORMAT, "continues after byte 1064, but its llmc header says 20");
        poke(&b, 4, 2, 4);
        pipe_fails(&b, &p, IRON_E_FORMAT, "llm.c version 2");
        b = litpkds_blob(8, 20, 2);
        b.count--;
        pipe_fails(&b, &p, IRON_E_FORMAT, "not a whole number of u16 tokens");
        b = npy_blob(1, "{'descr':'<u2','fortran_order':True,'shape':(4, 5)}", 20, 2);
        pipe_fails(&b, &p, IRON_E_UNSUPPORTED, "Fortran order, which cannot be read from a pipe");
        b = npy_blob(1, "{'descr':'<u2','fortran_order':False,'shape':(9223372036854775808,)}", 0,
                     2);
        pipe_fails(&b, &p, IRON_E_FORMAT, "says 9223372036854775808 u16 tokens, more than 2^64");
        b = npy_blob(1, "{'descr':'<u2','fortran_order':False,'shape':(9223372036854775807,)}", 3,
                     2);
        pipe_fails(&b, &p, IRON_E_FORMAT, "with 3 of the 9223372036854775807 tokens");
    }
}

static void pipes_and_widths(void **state) {
    blob u32 = llmc_blob(20240801, 7, 20, 4), raw = raw_blob(20, 2);

    (void)state;
    pipe_fails(&u32, &(piped){IRON_DTYPE_U16, NULL}, IRON_E_FORMAT, "but --dtype says u16");
    pipe_fails(&raw, &(piped){IRON_DTYPE_U16, "llmc"}, IRON_E_FORMAT, "expected llm.c's magic");
    pipe_fails(&raw, &(piped){IRON_DTYPE_U16, "megatron"}, IRON_E_UNSUPPORTED, "is a pipe");
    pipe_fails(&raw, &(piped){IRON_DTYPE_NONE, "megatron"}, IRON_E_UNSUPPORTED, "is a pipe");
    pipe_fails(&raw, &(piped){IRON_DTYPE_U16, "ds"}, IRON_E_UNSUPPORTED, "is a pipe");
}

/* A pipe after a file whose width is known, and before one that disagrees. */
static void pipes_among_files(void **state) {
    file_name first = name_in(&place, "first");
    const char *const paths[] = {first.path, "-", first.path}, *const reversed[] = {"-",
                                                                                    first.path};
    blob u16 = npy_of("<u2", 4, 2), u32 = npy_of("<u4", 4, 4);
    int saved, end = pipe_as_stdin(&saved);
    iron_source *s = NULL;
    iron_error err;
    uint16_t tokens[20];
    size_t count;

    (void)state;
    save(&place, "first", &u16);
    assert_int_equal(write(end, u16.data, u16.count), u16.count);
    close(end);
    assert_ok(try_open(IRON_DTYPE_NONE, NULL, paths, 3, &s, &err), &err);
    assert_ok(iron_source_read(s, tokens, 20, &count, &err), &err);
    assert_int_equal(count, 12);
    iron_source_close(s);
    restore_stdin(saved);
    end = pipe_as_stdin(&saved);
    assert_int_equal(write(end, u32.data, u32.count), u32.count);
    close(end);
    assert_ok(try_open(IRON_DTYPE_NONE, NULL, reversed, 2, &s, &err), &err);
    assert_int_equal(iron_source_dtype(s), IRON_DTYPE_U16); /* as the file says */
    assert_read_fails(s, IRON_E_FORMAT, "standard input holds u32 tokens and ");
    iron_source_close(s);
    restore_stdin(saved);
}

/* Standard input that is a file has a size and a header at its current offset. */
static void files_as_standard_input(void **state) {
    static const char *const paths[] = {"-"};
    file_name file = name_in(&place, "file");
    blob inner = llmc_blob(20240520, 1, 9, 2), b = {.count = 5};
    int saved = dup(0), fd;
    iron_source *s = NULL;
    iron_error err;

    (void)state;
    put(&b, inner.data, inner.count);
    save(&place, "file", &b);
    fd = open(file.path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && lseek(fd, 5, SEEK_SET) == 5);
    assert_int_equal(dup2(fd, 0), 0);
    assert_ok(try_open(IRON_DTYPE_NONE, NULL, paths, 1, &s, &err), &err);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 5); /* examining it does not move the offset */
    assert_int_equal(iron_source_tokens(s), 9);
    assert_counting(s, 9);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), b.count);
    iron_source_close(s);
    close(fd);
    restore_stdin(saved);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, make_place, remove_place)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(six_formats_are_one_stream),
        CASE(tokens_are_located_behind_headers),
        CASE(widths_must_agree),
        CASE(sidecars_are_not_tokens),
        CASE(forced_formats),
        CASE(formats_from_pipes),
        CASE(big_endian_from_pipes),
        CASE(raw_from_pipes),
        CASE(pipes_with_wrong_headers),
        CASE(pipes_and_widths),
        CASE(pipes_among_files),
        CASE(files_as_standard_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
