/* SPDX-License-Identifier: MIT */
/*
 * test_dtype.c: names and widths of stored tokens, widening to 32 bits, and finding the first value
 * that is not a token: negative in i32, outside 0 ... 2^32-1 in i64.
 */
#include "support.h"

#include "formats/dtype.h"

static const struct {
    iron_dtype dtype;
    const char *name;
    size_t bytes;
} table[] = {{IRON_DTYPE_U8, "u8", 1},
             {IRON_DTYPE_U16, "u16", 2},
             {IRON_DTYPE_U32, "u32", 4},
             {IRON_DTYPE_I32, "i32", 4},
             {IRON_DTYPE_I64, "i64", 8}};

static void names_and_widths(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(table); k++) {
        iron_dtype dtype = IRON_DTYPE_NONE;
        iron_error err;

        assert_ok(iron_dtype_parse(table[k].name, &dtype, &err), &err);
        assert_int_equal(dtype, table[k].dtype);
        assert_string_equal(iron_dtype_name(dtype), table[k].name);
        assert_int_equal(iron_dtype_bytes(dtype), table[k].bytes);
    }
    assert_int_equal(iron_dtype_bytes(IRON_DTYPE_NONE), 0);
    assert_int_equal(iron_dtype_bytes((iron_dtype)99), 0);
    assert_non_null(iron_dtype_name(IRON_DTYPE_NONE));
    assert_non_null(iron_dtype_name((iron_dtype)99));
}

static void other_names_are_refused(void **state) {
    static const char *const bad[] = {"", "u", "u33", "U32", " u32", "u32 ", "u64", "f32", "none"};

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++) {
        iron_dtype dtype = IRON_DTYPE_U8;
        iron_error err;

        assert_refused(iron_dtype_parse(bad[k], &dtype, &err), IRON_E_ARG, &err);
        assert_says(&err, bad[k]);
        assert_int_equal(dtype, IRON_DTYPE_NONE);
        assert_int_equal(iron_dtype_parse(bad[k], &dtype, NULL), IRON_E_ARG);
    }
}

/* `count` tokens, stored as dtype; each fits any width. */
static void *store(iron_dtype dtype, const uint32_t *tokens, size_t count) {
    unsigned char *data = grab(count * iron_dtype_bytes(dtype));

    for (size_t k = 0; k < count; k++) {
        uint64_t value = tokens[k];

        memcpy(data + k * iron_dtype_bytes(dtype), &value, iron_dtype_bytes(dtype));
    }
    return data;
}

static void widened_tokens_are_the_same(void **state) {
    enum { TOKENS = 10000 };
    uint32_t wide[IRON_WIDEN_TOKENS];
    uint32_t *tokens = grab_tokens(73, 256, TOKENS);

    (void)state;
    for (size_t k = 0; k < COUNT(table); k++) {
        void *data = store(table[k].dtype, tokens, TOKENS);
        iron__tokens_view view = {table[k].dtype, data, TOKENS};

        for (size_t begin = 0; begin < TOKENS;) {
            size_t count = TOKENS - begin;
            const uint32_t *got = iron__view_tokens(&view, begin, &count, wide);

            assert_true(count > 0 && count <= TOKENS - begin);
            assert_memory_equal(got, tokens + begin, count * sizeof *got);
            begin += count;
        }
        assert_int_equal(iron__view_first_bad(&view), TOKENS);
        assert_int_equal(iron__view_stored(&view, 77), tokens[77]);
        free(data);
    }
    free(tokens);
}

static void largest_values(void **state) {
    static const uint8_t u8[] = {0, 255};
    static const uint16_t u16[] = {0, 65535};
    static const uint32_t u32[] = {0, UINT32_MAX};
    static const int32_t i32[] = {0, INT32_MAX};
    static const int64_t i64[] = {0, UINT32_MAX};
    const iron__tokens_view views[] = {{IRON_DTYPE_U8, u8, 2},
                                       {IRON_DTYPE_U16, u16, 2},
                                       {IRON_DTYPE_U32, u32, 2},
                                       {IRON_DTYPE_I32, i32, 2},
                                       {IRON_DTYPE_I64, i64, 2}};
    static const uint32_t want[] = {255, 65535, UINT32_MAX, INT32_MAX, UINT32_MAX};
    uint32_t wide[IRON_WIDEN_TOKENS];

    (void)state;
    for (size_t k = 0; k < COUNT(views); k++) {
        size_t count = 2;
        const uint32_t *got = iron__view_tokens(&views[k], 0, &count, wide);

        assert_int_equal(count, 2);
        assert_int_equal(got[0], 0);
        assert_int_equal(got[1], want[k]);
        assert_int_equal(iron__view_first_bad(&views[k]), 2);
        assert_int_equal(iron__view_stored(&views[k], 1), want[k]);
    }
}

static void first_bad_i32(void **state) {
    static const int32_t bad[] = {-1, INT32_MIN, -50257};
    int32_t tokens[100] = {0};
    iron__tokens_view view = {IRON_DTYPE_I32, tokens, COUNT(tokens)};

    (void)state;
    for (size_t k = 0; k < COUNT(tokens); k++) {
        tokens[k] = bad[k % COUNT(bad)];
        tokens[COUNT(tokens) - 1] = k % 2 ? -5 : tokens[COUNT(tokens) - 1];
        assert_int_equal(iron__view_first_bad(&view), k);
        assert_int_equal(iron__view_stored(&view, k), tokens[k]);
        tokens[k] = tokens[COUNT(tokens) - 1] = 0;
    }
}

static void first_bad_i64(void **state) {
    static const int64_t bad[] = {-1, INT64_MIN, INT64_MAX, INT64_C(1) << 32, INT64_C(1) << 62};
    int64_t tokens[100] = {0};
    iron__tokens_view view = {IRON_DTYPE_I64, tokens, COUNT(tokens)};

    (void)state;
    for (size_t k = 0; k < COUNT(tokens); k++) {
        tokens[k] = bad[k % COUNT(bad)];
        assert_int_equal(iron__view_first_bad(&view), k);
        assert_int_equal(iron__view_stored(&view, k), tokens[k]);
        tokens[k] = UINT32_MAX;
    }
    assert_int_equal(iron__view_first_bad(&view), COUNT(tokens));
    view.count = 0;
    assert_int_equal(iron__view_first_bad(&view), 0);
}

static void rest_of_a_view(void **state) {
    static const int64_t tokens[] = {10, 11, 12, 13, 14};
    iron__tokens_view view = {IRON_DTYPE_I64, tokens, 5};
    iron__tokens_view rest = iron__view_rest(&view, 3);

    (void)state;
    assert_int_equal(rest.dtype, IRON_DTYPE_I64);
    assert_ptr_equal(rest.data, tokens + 3);
    assert_int_equal(rest.count, 2);
    assert_int_equal(iron__view_rest(&rest, 2).count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_widths),
        cmocka_unit_test(other_names_are_refused),
        cmocka_unit_test(widened_tokens_are_the_same),
        cmocka_unit_test(largest_values),
        cmocka_unit_test(first_bad_i32),
        cmocka_unit_test(first_bad_i64),
        cmocka_unit_test(rest_of_a_view),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
