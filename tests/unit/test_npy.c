/* SPDX-License-Identifier: MIT */
/*
 * test_npy.c: NumPy headers read and written, and activations from such files.
 *
 * The header is a Python dict literal. Headers written by NumPy must be accepted, and variants that
 * other writers could produce: other orders of keys, other white space, double quotes, versions 1
 * to 3. Anything else, or a header that claims more than the file contains, is an error with a
 * message, at every truncation.
 */
#include "place.h"

#include "formats/npy.h"

#include <float.h>
#include <math.h>

#define ROOM 1024u

/* Magic, version, length and dict; returns the number of bytes. */
static size_t make_header(unsigned char data[ROOM], unsigned version, const char *dict) {
    size_t prefix = version == 1 ? 10 : 12, length = strlen(dict);

    assert_true(prefix + length <= ROOM);
    memcpy(data, "\x93NUMPY", 6);
    data[6] = (unsigned char)version;
    data[7] = 0;
    data[8] = (unsigned char)(length & 0xFF);
    data[9] = (unsigned char)(length >> 8);
    data[10] = data[11] = 0;
    memcpy(data + prefix, dict, length);
    return prefix + length;
}

static void parse_good(unsigned version, const char *dict, const char *descr, int is_fortran,
                       unsigned dimensions, uint64_t first, uint64_t second) {
    unsigned char data[ROOM];
    size_t bytes = make_header(data, version, dict);
    iron__npy_header h;
    iron_error err;

    assert_ok(iron__npy_parse(data, bytes, &h, &err), &err);
    assert_string_equal(h.descr, descr);
    assert_int_equal(h.is_fortran, is_fortran);
    assert_int_equal(h.dimensions, dimensions);
    assert_true(dimensions < 1 || h.shape[0] == first);
    assert_true(dimensions < 2 || h.shape[1] == second);
    assert_int_equal(h.data_offset, bytes);
    for (size_t cut = 0; cut < bytes; cut++)
        assert_int_equal(iron__npy_parse(data, cut, &h, NULL), IRON_E_FORMAT);
}

static void good_headers(void **state) {
    (void)state;
    parse_good(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4096,), }        \n", "<f4",
               0, 1, 4096, 0);
    parse_good(1, "{'descr': '<u2', 'fortran_order': True, 'shape': (3, 5), }\n", "<u2", 1, 2, 3,
               5);
    parse_good(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n", "<f8", 0, 0, 0, 0);
    parse_good(1, "{'descr': '<u2', 'fortran_order': False, 'shape': (3, 5, 2, 4), }\n", "<u2", 0,
               4, 3, 5);
    parse_good(2, "{'descr': '<i8', 'fortran_order': False, 'shape': (7,), }\n", "<i8", 0, 1, 7, 0);
    parse_good(3, "{'descr': '|u1', 'fortran_order': False, 'shape': (0,), }\n", "|u1", 0, 1, 0, 0);
}

static void other_writers(void **state) {
    (void)state;
    parse_good(1, "{\"shape\":(12,),\"descr\":\"<f4\",\"fortran_order\":False}", "<f4", 0, 1, 12,
               0);
    parse_good(1, " {\t'fortran_order' :True ,\n 'shape': ( 1 , 2 ) , 'descr' : '>f4' }\n", ">f4",
               1, 2, 1, 2);
    parse_good(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615,), }",
               "<f4", 0, 1, UINT64_MAX, 0);
}

static void parse_bad(const unsigned char *data, size_t bytes) {
    iron__npy_header h;
    iron_error err;

    assert_refused(iron__npy_parse(data, bytes, &h, &err), IRON_E_FORMAT, &err);
    assert_int_equal(iron__npy_parse(data, bytes, &h, NULL), IRON_E_FORMAT);
}

static void refuse_dict(const char *dict) {
    unsigned char data[ROOM];
    size_t bytes = make_header(data, 1, dict);
    iron__npy_header h;

    if (iron__npy_parse(data, bytes, &h, NULL) == IRON_OK)
        fail_msg("accepted: %s", dict);
    parse_bad(data, bytes);
}

static void bad_dicts(void **state) {
    static const char *const dicts[] = {
        "",
        "{",
        "{}",
        "()",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'shape': (1,)}",
        "{'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'shape': (1,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3,,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 5}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (5,)",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (5",
        "{'descr': <f4, 'fortran_order': False, 'shape': (5,)}",
        "{'descr': '<f4\", 'fortran_order': False, 'shape': (5,)}",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (5,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (5,)}",
        "{'descr': 'a very long type', 'fortran_order': False, 'shape': (5,)}",
        "{'a key beyond all reason': 1}",
        "{'descr' '<f4', 'fortran_order': False, 'shape': (5,)}"};

    (void)state;
    for (size_t k = 0; k < COUNT(dicts); k++)
        refuse_dict(dicts[k]);
}

/* NumPy's own maximum is 64. */
static void too_many_dimensions(void **state) {
    char dict[300] = "{'descr': '<u2', 'fortran_order': False, 'shape': (";

    (void)state;
    for (int k = 0; k < 64; k++)
        strcat(dict, "1,");
    strcat(dict, ")}");
    parse_good(1, dict, "<u2", 0, 64, 1, 1);
    strcpy(dict + strlen(dict) - 2, "1,)}");
    refuse_dict(dict);
}

/* White space may be anywhere, but nothing else: Python would accept none of these. */
static void nothing_but_the_dict(void **state) {
    (void)state;
    refuse_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (5,)} and more");
    refuse_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (5,)}}");
}

static void commas_between_entries(void **state) {
    (void)state;
    refuse_dict("{'descr': '<f4' 'fortran_order': False, 'shape': (5,)}");
    refuse_dict("{'descr': '<f4', 'fortran_order': False 'shape': (5,)}");
    refuse_dict("{, 'descr': '<f4', 'fortran_order': False, 'shape': (5,)}");
    refuse_dict("{'descr': '<f4',, 'fortran_order': False, 'shape': (5,)}");
}

static void bad_beginnings(void **state) {
    static const char dict[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (5,)}";
    unsigned char data[ROOM];
    size_t bytes = make_header(data, 1, dict);

    (void)state;
    for (unsigned k = 0; k < 6; k++) {
        data[k] ^= 1;
        parse_bad(data, bytes);
        data[k] ^= 1;
    }
    data[6] = 0;
    parse_bad(data, bytes);
    data[6] = 4;
    parse_bad(data, bytes);
    bytes = make_header(data, 1, dict);
    data[9] = 0xFF; /* a header longer than the file */
    parse_bad(data, bytes);
    bytes = make_header(data, 2, dict);
    data[11] = 0xFF; /* 4 GiB of header */
    parse_bad(data, bytes);
}

/* Writes header and numbers into a file, as another program would. */
static void write_npy(const char *path, const char *dict, const void *numbers, size_t bytes) {
    unsigned char header[ROOM];
    size_t used = make_header(header, 1, dict);
    char *all = grab(used + bytes);

    memcpy(all, header, used);
    if (bytes)
        memcpy(all + used, numbers, bytes);
    file_write(path, all, used + bytes);
    free(all);
}

#define F4(shape) "{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }\n"
#define F8(shape) "{'descr': '<f8', 'fortran_order': False, 'shape': " shape ", }\n"

static file_name path;

static int set_up(void **state) {
    (void)state;
    folder_make(&place);
    path = name_in(&place, "activations.npy");
    return 0;
}

static void activations_of_both_widths(void **state) {
    static const float narrow[] = {-1, 0, 0.25f, FLT_MAX, 0x1p-96f};
    double wide[5];
    float got[5];
    iron_error err;

    (void)state;
    for (int k = 0; k < 5; k++)
        wide[k] = (double)narrow[k];
    write_npy(path.path, F4("(5,)"), narrow, sizeof narrow);
    assert_ok(iron_activations_read(path.path, got, 5, &err), &err);
    assert_memory_equal(got, narrow, sizeof got);
    memset(got, 0, sizeof got);
    write_npy(path.path, F8("(5,)"), wide, sizeof wide);
    assert_ok(iron_activations_read(path.path, got, 5, &err), &err);
    assert_memory_equal(got, narrow, sizeof got);
    wide[0] = 0.1; /* not a float: rounded once */
    write_npy(path.path, F8("(5,)"), wide, sizeof wide);
    assert_ok(iron_activations_read(path.path, got, 5, &err), &err);
    assert_true(got[0] == 0.1f);
}

static void refuse_activations(iron_status expected, const char *word) {
    float got[5];
    iron_error err;

    assert_refused(iron_activations_read(path.path, got, 5, &err), expected, &err);
    assert_says(&err, word);
    assert_int_equal(iron_activations_read(path.path, got, 5, NULL), expected);
}

static void activations_that_do_not_fit(void **state) {
    static const float numbers[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

    (void)state;
    refuse_activations(IRON_E_IO, "activations.npy"); /* missing */
    file_write(path.path, "", 0);
    refuse_activations(IRON_E_FORMAT, "activations.npy");
    write_npy(path.path, F4("(4,)"), numbers, 16);
    refuse_activations(IRON_E_ARG, "4");
    write_npy(path.path, F4("(6,)"), numbers, 24);
    refuse_activations(IRON_E_ARG, "6");
    write_npy(path.path, F4("(5, 1)"), numbers, 20);
    refuse_activations(IRON_E_ARG, "2 dimensions");
    write_npy(path.path, F4("()"), numbers, 20);
    refuse_activations(IRON_E_ARG, "0 dimensions");
    write_npy(path.path, F4("(5,)"), numbers, 19);
    refuse_activations(IRON_E_FORMAT, "19");
    write_npy(path.path, F4("(5,)"), numbers, 24);
    refuse_activations(IRON_E_FORMAT, "24");
    write_npy(path.path, F8("(5,)"), numbers, 20);
    refuse_activations(IRON_E_FORMAT, "20");
    write_npy(path.path, "{'descr': '<i4', 'fortran_order': False, 'shape': (5,), }", numbers, 20);
    refuse_activations(IRON_E_FORMAT, "<i4");
    write_npy(path.path, "{'descr': '>f4', 'fortran_order': False, 'shape': (5,), }", numbers, 20);
    refuse_activations(IRON_E_FORMAT, ">f4");
}

static void refuse_f8(double bad) {
    double numbers[5] = {1, 2, 3, bad, 5};

    write_npy(path.path, F8("(5,)"), numbers, sizeof numbers);
    refuse_activations(IRON_E_ARG, "3");
}

/* Values that are not finite or have 0 < |a| < 2^-96 are errors, for both widths. */
static void invalid_activations(void **state) {
    float numbers[5] = {1, 2, NAN, 4, 5};

    (void)state;
    write_npy(path.path, F4("(5,)"), numbers, sizeof numbers);
    refuse_activations(IRON_E_ARG, "2");
    numbers[2] = -0x1p-97f;
    write_npy(path.path, F4("(5,)"), numbers, sizeof numbers);
    refuse_activations(IRON_E_ARG, "2");
    refuse_f8((double)INFINITY);
    refuse_f8(1e300); /* not a float */
    refuse_f8(1e-40);
}

/* Doubles that are too small for a float must not become 0. */
static void doubles_below_all_floats(void **state) {
    (void)state;
    refuse_f8(1e-300);
    refuse_f8(-1e-50);
}

/* The library reads the files it writes: version 1.0, data at a multiple of 64. */
static void written_files_are_read(void **state) {
    static const float numbers[5] = {1, -2, 3.5f, 0, 1e30f};
    iron__npy_header h;
    iron_output *o = NULL;
    float got[5];
    iron_error err;
    size_t bytes;
    char *data;

    (void)state;
    assert_ok(iron__npy_write(path.path, "<f4", numbers, 5, 4, &o, &err), &err);
    assert_int_equal(folder_entries(&place), iron_output_temporary(o) ? 1 : 0);
    assert_ok(iron_output_commit(o, &err), &err);
    assert_ok(iron_activations_read(path.path, got, 5, &err), &err);
    assert_memory_equal(got, numbers, sizeof got);
    data = file_read(path.path, &bytes);
    assert_ok(iron__npy_parse((const unsigned char *)data, bytes, &h, &err), &err);
    assert_int_equal(h.data_offset % 64, 0);
    assert_int_equal(data[h.data_offset - 1], '\n');
    assert_true(data[6] == 1 && data[7] == 0);
    assert_true(h.dimensions == 1 && h.shape[0] == 5 && !h.is_fortran);
    free(data);
}

static void unwritable_targets_are_refused(void **state) {
    static const float numbers[5] = {0};
    iron_output *o = NULL;
    iron_error err;

    (void)state;
    assert_refused(iron__npy_write(place.path, "<f4", numbers, 5, 4, &o, &err), IRON_E_ARG, &err);
    assert_null(o);
    assert_refused(iron__npy_write("/dev/full", "<f4", numbers, 5, 4, &o, &err), IRON_E_IO, &err);
    assert_null(o);
}

static void export_file(const char *name, const char *descr, const void *want, size_t nodes) {
    char inner[64];
    iron__npy_header h;
    iron_error err;
    size_t bytes;
    char *data;

    snprintf(inner, sizeof inner, "out/%s.npy", name);
    data = file_read(name_in(&place, inner).path, &bytes);
    assert_ok(iron__npy_parse((const unsigned char *)data, bytes, &h, &err), &err);
    assert_string_equal(h.descr, descr);
    assert_true(h.dimensions == 1 && h.shape[0] == nodes);
    assert_int_equal(bytes - h.data_offset, 4 * nodes);
    assert_memory_equal(data + h.data_offset, want, 4 * nodes);
    free(data);
}

/* The three arrays of an engine, exported twice to the same files. */
static void engines_are_exported(void **state) {
    uint32_t *tokens = grab_tokens(131, 50257, 1000);
    file_name out = name_in(&place, "out");
    folder inside;
    iron_engine *e = NULL;
    iron_config c;
    iron_error err;

    (void)state;
    snprintf(inside.path, sizeof inside.path, "%.190s", out.path);
    iron_config_init(&c);
    c.nodes = 77;
    c.batch = 10;
    assert_ok(iron_engine_create(&c, &e, &err), &err);
    for (int round = 0; round < 2; round++) {
        assert_ok(iron_engine_feed(e, tokens, 1000, &err), &err);
        assert_ok(iron_engine_export_npy(e, out.path, &err), &err);
        export_file("xor_accumulators", "<u4", iron_engine_xor_accumulators(e), 77);
        export_file("potentials", "<f4", iron_engine_potentials(e), 77);
        export_file("activations", "<f4", iron_engine_activations(e), 77);
        assert_int_equal(folder_entries(&inside), 3);
    }
    file_write(path.path, "x", 1);
    assert_refused(iron_engine_export_npy(e, path.path, &err), IRON_E_IO, &err); /* a file */
    assert_refused(iron_engine_export_npy(e, name_in(&place, "no/where").path, &err), IRON_E_IO,
                   &err);
    iron_engine_destroy(e);
    free(tokens);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, remove_place)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(good_headers),
        CASE(other_writers),
        CASE(bad_dicts),
        CASE(too_many_dimensions),
        CASE(nothing_but_the_dict),
        CASE(commas_between_entries),
        CASE(bad_beginnings),
        CASE(activations_of_both_widths),
        CASE(activations_that_do_not_fit),
        CASE(invalid_activations),
        CASE(doubles_below_all_floats),
        CASE(written_files_are_read),
        CASE(unwritable_targets_are_refused),
        CASE(engines_are_exported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
