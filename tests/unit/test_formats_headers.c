/* SPDX-License-Identifier: MIT */
/*
 * test_formats_headers.c: the formats that begin with a header (llmc, litpkds, npy): good files are
 * read, recognised or forced, and every way in which a header can lie is refused with the place,
 * what was found and what was expected.
 */
#include "format_support.h"
#include "place.h"

static file_name name;

static int set_up(void **state) {
    (void)state;
    folder_make(&place);
    name = name_in(&place, "file");
    return 0;
}

/* The file is refused, recognised or forced, with and without an error to fill. */
static void refuse(const blob *b, const char *format, const char *word) {
    save(&place, "file", b);
    assert_open_fails(name.path, NULL, IRON_DTYPE_NONE, IRON_E_FORMAT, word);
    assert_open_fails(name.path, format, IRON_DTYPE_NONE, IRON_E_FORMAT, word);
}

static void accept(const blob *b, const char *format, iron_dtype dtype, size_t tokens) {
    save(&place, "file", b);
    assert_reads(name.path, NULL, IRON_DTYPE_NONE, format, dtype, tokens);
    assert_reads(name.path, "auto", dtype, format, dtype, tokens);
    assert_reads(name.path, format, IRON_DTYPE_NONE, format, dtype, tokens);
}

/* Every cut of a good file is refused, but none that is too short to show what it is. */
static void refuse_cuts(blob b, const char *format, size_t shown) {
    for (b.count--; b.count >= shown; b.count--) {
        save(&place, "file", &b);
        assert_open_fails(name.path, NULL, IRON_DTYPE_NONE, IRON_E_FORMAT, "file");
        assert_open_fails(name.path, format, IRON_DTYPE_NONE, IRON_E_FORMAT, "file");
    }
    save(&place, "file", &b);
    assert_open_fails(name.path, format, IRON_DTYPE_NONE, IRON_E_FORMAT, "ended at byte");
    assert_open_fails(name.path, NULL, IRON_DTYPE_NONE, IRON_E_ARG, "--dtype");
}

static void llmc(void **state) {
    blob b;

    (void)state;
    for (size_t tokens = 0; tokens < 30; tokens++) {
        b = llmc_blob(20240520, 1, tokens, 2);
        accept(&b, "llmc", IRON_DTYPE_U16, tokens);
        b = llmc_blob(20240801, 7, tokens, 4);
        accept(&b, "llmc", IRON_DTYPE_U32, tokens);
    }
    assert_open_fails(name.path, NULL, IRON_DTYPE_U16, IRON_E_FORMAT,
                      "llmc file of u32 tokens, but --dtype says u16");
    refuse_cuts(llmc_blob(20240520, 1, 3, 2), "llmc", 4);
    put_number(&b, 0, 4);
    refuse(&b, "llmc", "says 29 tokens of 4 bytes, but from byte 1024 on there are 120 bytes");
}

static void llmc_that_lies(void **state) {
    static const uint32_t wrong[][2] = {{20240520, 0}, {20240520, 2}, {20240520, 7},
                                        {20240801, 1}, {20240801, 8}, {20240520, UINT32_MAX}};
    const char *path = name.path;
    blob b;

    (void)state;
    for (size_t k = 0; k < COUNT(wrong); k++) {
        char word[60];

        b = llmc_blob(wrong[k][0], wrong[k][1], 5, 2);
        snprintf(word, sizeof word, "at byte 4: llm.c version %d, expected %d", (int)wrong[k][1],
                 wrong[k][0] == 20240520 ? 1 : 7);
        refuse(&b, "llmc", word);
    }
    b = llmc_blob(20240520, 1, 5, 2);
    poke(&b, 8, 6, 4);
    refuse(&b, "llmc", "its header says 6 tokens");
    poke(&b, 8, 4, 4);
    refuse(&b, "llmc", "its header says 4 tokens");
    poke(&b, 8, UINT32_MAX, 4);
    refuse(&b, "llmc", "at byte 8: -1 tokens");
    poke(&b, 8, INT32_MAX, 4);
    refuse(&b, "llmc", "its header says 2147483647 tokens");
    poke(&b, 8, 5, 4);
    poke(&b, 0, 20240521, 4);
    save(&place, "file", &b);
    assert_open_fails(name.path, "llmc", IRON_DTYPE_NONE, IRON_E_FORMAT,
                      "at byte 0: 20240521, expected llm.c's magic 20240520 or 20240801");
    iron_source_close(open_all(IRON_DTYPE_U8, &path, 1)); /* no magic: tokens like others */
}

static void litpkds(void **state) {
    static const struct {
        unsigned code, width;
        iron_dtype dtype;
    } kinds[] = {{1, 1, IRON_DTYPE_U8},
                 {4, 4, IRON_DTYPE_I32},
                 {5, 8, IRON_DTYPE_I64},
                 {8, 2, IRON_DTYPE_U16}};
    blob b;

    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        b = litpkds_blob(kinds[k].code, 21, kinds[k].width);
        accept(&b, "litpkds", kinds[k].dtype, 21);
    }
    poke(&b, 16, 4096, 8); /* what the writer aimed at */
    accept(&b, "litpkds", IRON_DTYPE_U16, 21);
    assert_open_fails(name.path, NULL, IRON_DTYPE_I64, IRON_E_FORMAT,
                      "litpkds file of u16 tokens, but --dtype says i64");
    put_number(&b, 0, 1);
    refuse(&b, "litpkds", "43 bytes after its header, not a whole number of u16 tokens");
}

static void litpkds_that_lies(void **state) {
    static const struct {
        unsigned code;
        const char *word;
    } types[] = {{0, "0 (nothing)"}, {2, "2 (i8)"}, {3, "3 (i16)"},        {6, "6 (f32)"},
                 {7, "7 (f64)"},     {9, "9 (unk"}, {255, "255 (unknown)"}};
    blob b = litpkds_blob(8, 5, 2), short_one;

    (void)state;
    for (size_t k = 0; k < COUNT(types); k++) {
        poke(&b, 15, types[k].code, 1);
        refuse(&b, "litpkds", types[k].word);
        refuse(&b, "litpkds", "at byte 15");
    }
    poke(&b, 15, 8, 1);
    poke(&b, 7, 2, 8);
    refuse(&b, "litpkds", "at byte 7: LITPKDS version 2, expected 1");
    poke(&b, 7, UINT64_C(1) << 40 | 1, 8);
    refuse(&b, "litpkds", "version 1099511627777");
    poke(&b, 7, 1, 8);
    poke(&b, 16, 0, 8);
    refuse(&b, "litpkds", "its header says 0 tokens of 2 bytes, but");
    poke(&b, 16, 5, 8);
    poke(&b, 6, 'X', 1);
    save(&place, "file", &b);
    assert_open_fails(name.path, "litpkds", IRON_DTYPE_NONE, IRON_E_FORMAT,
                      "at byte 0: 4c 49 54 50 ..., expected the magic LITPKDS");
    short_one = litpkds_blob(8, 0, 2);
    refuse_cuts(short_one, "litpkds", 7);
}

static void npy(void **state) {
    static const struct {
        const char *descr;
        unsigned width;
        iron_dtype dtype;
    } kinds[] = {{"|u1", 1, IRON_DTYPE_U8},
                 {"<u2", 2, IRON_DTYPE_U16},
                 {"<u4", 4, IRON_DTYPE_U32},
                 {"<i4", 4, IRON_DTYPE_I32},
                 {"<i8", 8, IRON_DTYPE_I64}};
    blob b;

    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        b = npy_of(kinds[k].descr, 33, kinds[k].width);
        accept(&b, "npy", kinds[k].dtype, 33);
        b = npy_of(kinds[k].descr, 0, kinds[k].width);
        accept(&b, "npy", kinds[k].dtype, 0);
    }
    for (unsigned version = 1; version <= 3; version++) {
        b = npy_blob(version, "{'shape': (3, 4), 'fortran_order': False, 'descr': '<u2'}", 12, 2);
        accept(&b, "npy", IRON_DTYPE_U16, 12);
    }
    b = npy_of("<u2", 3, 2);
    refuse_cuts(b, "npy", 6);
    put_number(&b, 0, 2);
    refuse(&b, "npy", "says 3 tokens");
    assert_open_fails(name.path, NULL, IRON_DTYPE_U32, IRON_E_FORMAT, "says u32");
}

static void npy_that_lies(void **state) {
    static const struct {
        const char *header, *word;
    } liars[] = {
        {"{'descr': '>u2', 'fortran_order': False, 'shape': (4,)}", "'>u2', big-endian"},
        {"{'descr': '<u8', 'fortran_order': False, 'shape': (4,)}", "'<u8'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", "'<f4'"},
        {"{'descr': '|i1', 'fortran_order': False, 'shape': (4,)}", "'|i1'"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (4,)}", "'<i2'"},
        {"{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", "'|b1'"},
        {"{'descr': '<u2', 'fortran_order': True, 'shape': (4,)}", "fortran_order"},
        {"{'descr': '<u2', 'fortran_order': True, 'shape': (2, 2)}", "fortran_order"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': ()}", "no dimensions"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (1, 2, 2)}", "NumPy header"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (3,)}", "says 3 tokens"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (5,)}", "says 5 tokens"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3)}", "says 6 tokens"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (9223372036854775812,)}", "tokens"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (18446744073709551615,)}", "2^64"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "2^64"},
        {"{'descr': '<u2', 'fortran_order': False}", "NumPy header"},
        {"{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (4,)}", "NumPy header"},
        {"", "NumPy header"},
    };
    blob b;

    (void)state;
    for (size_t k = 0; k < COUNT(liars); k++) {
        b = npy_blob(1, liars[k].header, 4, 2);
        refuse(&b, "npy", liars[k].word);
    }
    b = npy_of("<u2", 4, 2);
    poke(&b, 6, 4, 1);
    refuse(&b, "npy", "at byte 6: NumPy format version 4.0");
    poke(&b, 6, 2, 1); /* its header's length goes on in the dict */
    refuse(&b, "npy", "at byte 8: a NumPy header of");
    poke(&b, 6, 1, 1);
    poke(&b, 8, 60000, 2);
    refuse(&b, "npy", "inside its header");
    poke(&b, 0, 'x', 1);
    save(&place, "file", &b);
    assert_open_fails(name.path, "npy", IRON_DTYPE_NONE, IRON_E_FORMAT, "expected NumPy's magic");
}

/* OLMo's way: the name says NumPy, the bytes do not. */
static void npy_by_name_alone(void **state) {
    file_name n = name_in(&place, "part.npy");
    blob b = raw_blob(10, 2);

    (void)state;
    file_write(n.path, b.data, b.count);
    assert_reads(n.path, NULL, IRON_DTYPE_U16, "raw", IRON_DTYPE_U16, 10);
    assert_open_fails(n.path, NULL, IRON_DTYPE_NONE, IRON_E_ARG, "iron sniff");
    assert_open_fails(n.path, "npy", IRON_DTYPE_U16, IRON_E_FORMAT, "NumPy's magic");
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, remove_place)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(llmc), CASE(llmc_that_lies), CASE(litpkds),           CASE(litpkds_that_lies),
        CASE(npy),  CASE(npy_that_lies),  CASE(npy_by_name_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
