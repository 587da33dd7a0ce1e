/* SPDX-License-Identifier: MIT */
/*
 * test_formats_ds.c: X.ds with X.ds.index and X.ds.metadata. Either may be missing; each one that
 * is there must be right to the last number.
 */
#include "format_support.h"
#include "place.h"

#define TOKENS 20u

static file_name ds;

static int set_up(void **state) {
    blob b = raw_blob(TOKENS, 2);

    (void)state;
    folder_make(&place);
    ds = name_in(&place, "X.ds");
    save(&place, "X.ds", &b);
    return 0;
}

static blob index_of(const uint64_t *ends, size_t count) {
    blob b = {.count = 0};

    for (size_t k = 0; k < count; k++)
        put_number(&b, ends[k], 8);
    return b;
}

static void save_index(const uint64_t *ends, size_t count) {
    blob b = index_of(ends, count);

    save(&place, "X.ds.index", &b);
}

static void save_good(void) {
    static const uint64_t ends[] = {0, 7, 7, 20};

    save_index(ends, COUNT(ends));
    save_text(&place, "X.ds.metadata", "gpt2|2\n20\n20 T");
}

static void refuse(iron_dtype dtype, const char *word) {
    assert_open_fails(ds.path, NULL, dtype, IRON_E_FORMAT, word);
    assert_open_fails(ds.path, "ds", dtype, IRON_E_FORMAT, word);
}

static void good_ones(void **state) {
    static const char *const metadata[] = {"gpt2|2\n20\n20 T", "a/b|c|2\n20", "|2\n20\n",
                                           "Unknown Tokenizer|2|2\n20\n\n"};
    blob wide = raw_blob(TOKENS, 4);

    (void)state;
    save_good();
    for (size_t k = 0; k < COUNT(metadata); k++) {
        save_text(&place, "X.ds.metadata", metadata[k]);
        assert_reads(ds.path, NULL, IRON_DTYPE_NONE, "ds", IRON_DTYPE_U16, TOKENS);
        assert_reads(ds.path, "ds", IRON_DTYPE_U16, "ds", IRON_DTYPE_U16, TOKENS);
    }
    refuse(IRON_DTYPE_U32, "ds file of u16 tokens, but --dtype says u32");
    assert_reads(ds.path, "raw", IRON_DTYPE_U16, "raw", IRON_DTYPE_U16, TOKENS);
    save(&place, "X.ds", &wide);
    save_text(&place, "X.ds.metadata", "llama|4\n20\n20 T");
    assert_reads(ds.path, NULL, IRON_DTYPE_NONE, "ds", IRON_DTYPE_U32, TOKENS);
}

static void one_neighbour_is_enough(void **state) {
    file_name index = name_in(&place, "X.ds.index"), metadata = name_in(&place, "X.ds.metadata");

    (void)state;
    save_good();
    assert_int_equal(unlink(index.path), 0);
    assert_reads(ds.path, NULL, IRON_DTYPE_NONE, "ds", IRON_DTYPE_U16, TOKENS);
    save_good();
    assert_int_equal(unlink(metadata.path), 0);
    assert_reads(ds.path, NULL, IRON_DTYPE_U16, "ds", IRON_DTYPE_U16, TOKENS);
    assert_open_fails(ds.path, NULL, IRON_DTYPE_NONE, IRON_E_ARG,
                      "give --dtype u16, which agrees with its index");
    assert_open_fails(ds.path, "ds", IRON_DTYPE_NONE, IRON_E_ARG, "give --dtype u16");
    refuse(IRON_DTYPE_U32, "X.ds.index: the last document ends at token 20, expected 10");
    refuse(IRON_DTYPE_U8, "--dtype u8, expected u16 or u32");
    refuse(IRON_DTYPE_I32, "--dtype i32, expected u16 or u32");
    save_text(&place, "X.ds.metadata", "gpt2\n20\n20 T"); /* an old one, without a width */
    assert_reads(ds.path, NULL, IRON_DTYPE_U16, "ds", IRON_DTYPE_U16, TOKENS);
    assert_open_fails(ds.path, NULL, IRON_DTYPE_NONE, IRON_E_ARG, "--dtype");
    assert_int_equal(unlink(index.path), 0);
    assert_int_equal(unlink(metadata.path), 0);
    assert_reads(ds.path, NULL, IRON_DTYPE_U16, "raw", IRON_DTYPE_U16, TOKENS);
    assert_open_fails(ds.path, "ds", IRON_DTYPE_U16, IRON_E_FORMAT, "neither");
}

static void indexes_that_lie(void **state) {
    static const uint64_t back[] = {0, 7, 6, 20}, last[] = {0, 7, 19}, beyond[] = {21},
                          huge[] = {1, UINT64_MAX}, none[] = {0};
    blob odd = {.count = 9};

    (void)state;
    save_good();
    save_index(back, COUNT(back));
    refuse(IRON_DTYPE_NONE, "X.ds.index at byte 16: a document ends at token 6, expected 7");
    save_index(last, COUNT(last));
    refuse(IRON_DTYPE_NONE, "the last document ends at token 19, expected 20: 40 bytes of u16");
    save_index(beyond, COUNT(beyond));
    refuse(IRON_DTYPE_NONE, "the last document ends at token 21, expected 20");
    save_index(huge, COUNT(huge));
    refuse(IRON_DTYPE_NONE, "the last document ends at token 18446744073709551615");
    save_index(none, 1);
    refuse(IRON_DTYPE_NONE, "the last document ends at token 0, expected 20");
    save_index(none, 0);
    refuse(IRON_DTYPE_NONE, "the last document ends at token 0, expected 20");
    save(&place, "X.ds.index", &odd);
    refuse(IRON_DTYPE_NONE, "X.ds.index: 9 bytes, expected 8 for each document");
}

/* Longer than the pieces in which an index is read. */
static void a_long_index(void **state) {
    enum { MANY = 9000 };
    uint64_t *ends = grab(MANY * sizeof *ends);
    uint16_t *tokens = grab(MANY * sizeof *tokens);

    (void)state;
    for (size_t k = 0; k < MANY; k++) {
        ends[k] = k + 1;
        tokens[k] = (uint16_t)(k + 1);
    }
    file_write(ds.path, tokens, MANY * sizeof *tokens);
    file_write(name_in(&place, "X.ds.index").path, ends, MANY * sizeof *ends);
    save_text(&place, "X.ds.metadata", "gpt2|2\n9000\n9.0 kT");
    assert_reads(ds.path, NULL, IRON_DTYPE_NONE, "ds", IRON_DTYPE_U16, MANY);
    ends[4096] = 4095; /* the first of the second piece goes back behind the last of the first */
    file_write(name_in(&place, "X.ds.index").path, ends, MANY * sizeof *ends);
    refuse(IRON_DTYPE_NONE,
           "X.ds.index at byte 32768: a document ends at token 4095, expected 4096");
    free(ends);
    free(tokens);
}

static void metadata_that_lie(void **state) {
    static const struct {
        const char *text, *word;
    } liars[] = {
        {"", "one line, expected"},
        {"gpt2|2", "one line, expected"},
        {"gpt2|3\n20", "at byte 5: width '3', expected 2 or 4"},
        {"gpt2|\n20", "width ''"},
        {"gpt2|22\n20", "width '22'"},
        {"gpt2| 2\n20", "width ' 2'"},
        {"gpt2|8\n20", "width '8'"},
        {"gpt2|4\n20", "expected 10: 40 bytes of u32"},
        {"gpt2|2\n19", "X.ds.metadata: 19 tokens, expected 20: 40 bytes of u16"},
        {"gpt2|2\n21\n21 T", "X.ds.metadata: 21 tokens, expected 20"},
        {"gpt2|2\n\n", "at byte 7: '"},
        {"gpt2|2\n20 T", "expected the number of tokens alone"},
        {"gpt2|2\n-20", "'-20'"},
        {"gpt2|2\n2e1", "'2e1'"},
        {"gpt2|2\n18446744073709551616", "expected the number"},
        {"gpt2|2\n18446744073709551615", "expected the number"},
    };
    blob large = {.count = 4097};

    (void)state;
    save_good();
    for (size_t k = 0; k < COUNT(liars); k++) {
        save_text(&place, "X.ds.metadata", liars[k].text);
        refuse(IRON_DTYPE_NONE, liars[k].word);
    }
    save(&place, "X.ds.metadata", &large);
    refuse(IRON_DTYPE_NONE, "4097 bytes, expected three lines");
}

static void cut_tokens(void **state) {
    blob b = raw_blob(TOKENS, 2);

    (void)state;
    save_good();
    for (b.count = 0; b.count < 2 * TOKENS; b.count++) {
        save(&place, "X.ds", &b);
        refuse(IRON_DTYPE_NONE, "X.ds.index: the last document ends at token 20");
    }
    assert_int_equal(unlink(name_in(&place, "X.ds.index").path), 0);
    for (b.count = 0; b.count < 2 * TOKENS; b.count++) {
        save(&place, "X.ds", &b);
        refuse(IRON_DTYPE_NONE, "X.ds.metadata: 20 tokens, expected");
    }
}

/* In a file of no tokens an index without documents is right. */
static void nothing(void **state) {
    blob none = {.count = 0};

    (void)state;
    save(&place, "X.ds", &none);
    save(&place, "X.ds.index", &none);
    save_text(&place, "X.ds.metadata", "gpt2|2\n0\n0 T");
    assert_reads(ds.path, NULL, IRON_DTYPE_NONE, "ds", IRON_DTYPE_U16, 0);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, remove_place)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(good_ones),    CASE(one_neighbour_is_enough), CASE(indexes_that_lie),
        CASE(a_long_index), CASE(metadata_that_lie),       CASE(cut_tokens),
        CASE(nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
