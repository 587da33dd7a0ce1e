/* SPDX-License-Identifier: MIT */
/*
 * test_table.c: what all formats of tables share: the choice of a column, stored integers of every
 * width, and reading tokens at any place from blocks that lie in the file or are decoded.
 */
#include "formats/table.h"

#include "place.h"
#include "support.h"

static file_name name;

static int set_up(void **state) {
    (void)state;
    folder_make(&place);
    name = name_in(&place, "table");
    return 0;
}

/* A table of 64-bit integers that are 3 k: blocks of 10, 0, 7 and 25 tokens. Odd blocks are direct,
 * the others decoded; rows have 4 tokens each. */

static const uint64_t borders[] = {0, 10, 10, 17, 42};

static iron_status decode(const iron__table *t, const iron__input *in, size_t index,
                          bool wants_tokens, iron__block *out, iron_error *err) {
    uint64_t count = iron__table_block_tokens(t, index), first = t->blocks[index].first;
    uint64_t stored[64];

    if (wants_tokens) {
        assert_ok(iron__input_read_at(in, 8 * first, stored, 8 * count, err), err);
        assert_ok(iron__block_reserve(out, 4 * count, err), err);
        assert_int_equal(iron__stored_convert(IRON_STORED_I64, stored, count, out->data), count);
        out->bytes = 4 * count;
    }
    for (uint64_t k = 0; k < count; k++)
        if ((first + k) % 4 == 0)
            assert_ok(iron__block_add_place(out, k, err), err);
    return IRON_OK;
}

static const iron__table_kind kind = {decode, free, NULL};

static iron__table *make_table(void) {
    iron__table *t = NULL;
    iron_error err;

    assert_ok(iron__table_create(&kind, 1, &t, &err), &err);
    t->column = strdup("ids");
    t->dtype = iron__stored_dtype(IRON_STORED_I64);
    t->tokens = 42;
    t->rows = 11;
    for (size_t k = 0; k < 4; k++) {
        iron__table_block b = {.first = borders[k],
                               .first_row = (borders[k] + 3) / 4,
                               .at = 8 * borders[k],
                               .is_direct = k % 2 == 1 || k == 2,
                               .stored = IRON_STORED_I64};

        assert_ok(iron__table_add_block(t, &b, &err), &err);
    }
    return t;
}

static iron_status fill(void *context, uint64_t index, iron__block *block, const atomic_bool *stop,
                        iron_error *err) {
    iron__input in = {.path = name.path, .stop = stop, .fd = -1};
    iron_status status;

    assert_ok(iron__input_open(&in, err), err);
    status = decode(context, &in, (size_t)index, true, block, err);
    iron__input_close(&in);
    return status;
}

static void reading(void **state) {
    iron__table *t = make_table();
    iron__blocks_owner owner = {4, fill, NULL, t};
    iron__blocks_range blocks = {NULL, &owner, 0};
    iron__input in = {.path = name.path, .fd = -1};
    int64_t stored[42];
    uint32_t got[43];
    iron_error err;

    (void)state;
    for (int64_t k = 0; k < 42; k++)
        stored[k] = 3 * k;
    file_write(name.path, stored, sizeof stored);
    assert_ok(iron__blocks_create(1, &blocks.cache, &err), &err);
    assert_ok(iron__input_open(&in, &err), &err);
    for (size_t first = 0; first <= 42; first++)
        for (size_t count = 0; first + count <= 42; count++) {
            got[count] = 0xABCDEF;
            assert_ok(iron__table_read(t, &in, &blocks, first, got, count, &err), &err);
            for (size_t k = 0; k < count; k++)
                assert_int_equal(got[k], 3 * (first + k));
            assert_int_equal(got[count], 0xABCDEF);
        }
    iron__input_close(&in);
    /* token 13, of a direct block, is in row 3 */
    stored[13] = -7;
    file_write(name.path, stored, sizeof stored);
    assert_ok(iron__input_open(&in, &err), &err);
    assert_refused(iron__table_read(t, &in, &blocks, 11, got, 5, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "row 3 of column ids has -7");
    /* cut */
    file_write(name.path, stored, 15 * 8 + 1);
    assert_refused(iron__table_read(t, &in, &blocks, 14, got, 3, &err), IRON_E_IO, &err);
    iron__input_close(&in);
    iron__blocks_destroy(blocks.cache);
    iron__table_destroy(t);
}

static void row_starts(void **state) {
    iron__table *t = make_table();
    iron__block places = {.data = NULL};
    iron_error err;

    (void)state;
    for (size_t k = 0; k < 4; k++)
        assert_ok(iron__table_row_starts(t, NULL, k, &places, &err), &err);
    assert_int_equal(places.place_count, 11);
    for (size_t k = 0; k < 11; k++)
        assert_int_equal(places.places[k], 4 * k);
    iron__block_clear(&places);
    iron__table_destroy(t);
}

/* The bytes of `value` in a width of its own, after `before` good values. */
static size_t convert(iron__stored stored, int64_t value, uint64_t *first) {
    size_t width = iron__stored_bytes(stored), good;
    unsigned char from[8 * 9 + 1] = {0}, to[8 * 9];

    for (size_t k = 0; k < 9; k++) { /* not aligned */
        int64_t one = k == 5 ? value : (int64_t)k;

        memcpy(from + 1 + k * width, &one, width);
    }
    good = iron__stored_convert(stored, from + 1, 9, to);
    *first = 0;
    memcpy(first, to + 5 * iron_dtype_bytes(iron__stored_dtype(stored)),
           iron_dtype_bytes(iron__stored_dtype(stored)));
    return good;
}

static void stored_integers(void **state) {
    static const struct {
        iron__stored stored;
        int64_t value;
        bool is_token;
    } cases[] = {
        {IRON_STORED_U8, 255, true},         {IRON_STORED_U16, 65535, true},
        {IRON_STORED_U32, UINT32_MAX, true}, {IRON_STORED_U64, UINT32_MAX, true},
        {IRON_STORED_U64, -1, false},        {IRON_STORED_U64, (int64_t)1 << 32, false},
        {IRON_STORED_I8, 127, true},         {IRON_STORED_I8, -128, false},
        {IRON_STORED_I16, 32767, true},      {IRON_STORED_I16, -1, false},
        {IRON_STORED_I32, INT32_MAX, true},  {IRON_STORED_I32, INT32_MIN, false},
        {IRON_STORED_I64, UINT32_MAX, true}, {IRON_STORED_I64, (int64_t)1 << 32, false},
        {IRON_STORED_I64, INT64_MIN, false}, {IRON_STORED_I64, INT64_MAX, false},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(cases); k++) {
        uint64_t token;

        assert_int_equal(convert(cases[k].stored, cases[k].value, &token),
                         cases[k].is_token ? 9 : 5);
        if (cases[k].is_token)
            assert_int_equal(token, cases[k].value);
    }
}

static void refusals_name_the_value(void **state) {
    const uint64_t large = UINT64_MAX;
    const int8_t small = -3;
    iron_error err;

    (void)state;
    assert_refused(iron__stored_refuse(IRON_STORED_U64, &large, 0, "f", "c", 12, &err),
                   IRON_E_FORMAT, &err);
    assert_says(&err, "row 12 of column c has 18446744073709551615");
    assert_refused(iron__stored_refuse(IRON_STORED_I8, &small, 0, "f", "c", 0, &err), IRON_E_FORMAT,
                   &err);
    assert_says(&err, "row 0 of column c has -3");
    assert_refused(iron__table_refuse_null("f", "c", 5, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "row 5 of column c");
}

static size_t choose(const char *names, const char *wanted, iron_status expected, iron_error *err) {
    iron__table_column columns[8];
    char text[128], *rest = NULL;
    size_t count = 0, index = 99;

    snprintf(text, sizeof text, "%s", names);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        bool is_text = word[0] == '-';

        columns[count] = (iron__table_column){.name = word + is_text, .is_tokens = !is_text};
        strcpy(columns[count++].type, is_text ? "string" : "int32");
    }
    memset(err, 0, sizeof *err);
    assert_int_equal(iron__table_choose(columns, count, wanted, "f", &index, err), expected);
    return index;
}

static void choices(void **state) {
    iron_error err;

    (void)state;
    assert_int_equal(choose("a ids tokens input_ids", NULL, IRON_OK, &err), 3);
    assert_int_equal(choose("token_ids ids tokens", NULL, IRON_OK, &err), 2);
    assert_int_equal(choose("ids token_ids", NULL, IRON_OK, &err), 1);
    assert_int_equal(choose("-input_ids ids b", NULL, IRON_OK, &err), 1); /* input_ids is text */
    assert_int_equal(choose("-text x", NULL, IRON_OK, &err), 1);
    assert_int_equal(choose("x y tokens", "y", IRON_OK, &err), 1);
    choose("x y -text", NULL, IRON_E_ARG, &err);
    assert_says(&err, "--column: x (int32), y (int32), text (string)");
    choose("-text", NULL, IRON_E_FORMAT, &err);
    assert_says(&err, "text (string)");
    choose("", NULL, IRON_E_FORMAT, &err);
    choose("x -text", "text", IRON_E_FORMAT, &err);
    assert_says(&err, "column text is string");
    choose("x -text", "z", IRON_E_ARG, &err);
    assert_says(&err, "no column z");
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, remove_place)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(reading), CASE(row_starts), CASE(stored_integers), CASE(refusals_name_the_value),
        CASE(choices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
