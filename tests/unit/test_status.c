/* SPDX-License-Identifier: MIT */
/*
 * test_status.c: names, messages and codes of every status, and the function that fills errors.
 *
 * The numbers are repeated here on purpose: published values never change their meaning, and this
 * test would detect a change. Exit codes: 0 done, 1 a difference was found, 2 everything else.
 */
#include "support.h"

#include "core/fail.h"

#include <ctype.h>

static const struct {
    iron_status status;
    int value;
    const char *name;
    int http, exit_code;
} published[] = {
    {IRON_OK, 0, "IRON_OK", 200, 0},
    {IRON_E_ARG, 1, "IRON_E_ARG", 400, 2},
    {IRON_E_NOMEM, 2, "IRON_E_NOMEM", 507, 2},
    {IRON_E_UNSUPPORTED, 3, "IRON_E_UNSUPPORTED", 501, 2},
    {IRON_E_IO, 4, "IRON_E_IO", 500, 2},
    {IRON_E_FORMAT, 5, "IRON_E_FORMAT", 422, 2},
    {IRON_E_STATE, 6, "IRON_E_STATE", 409, 2},
    {IRON_E_CANCELLED, 7, "IRON_E_CANCELLED", 499, 2},
    {IRON_E_MISMATCH, 8, "IRON_E_MISMATCH", 500, 1},
};

static void published_values_stay(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(published); k++) {
        iron_status s = published[k].status;

        assert_int_equal(s, published[k].value);
        assert_string_equal(iron_status_name(s), published[k].name);
        assert_int_equal(iron_status_http_code(s), published[k].http);
        assert_int_equal(iron_status_exit_code(s), published[k].exit_code);
    }
}

static void every_row_of_the_map_is_published(void **state) {
    size_t rows = 0;

    (void)state;
#define COUNT_ROW(name, value, text, http, code) rows++;
    IRON_STATUS_MAP(COUNT_ROW)
#undef COUNT_ROW
    assert_int_equal(rows, COUNT(published));
}

static void every_status_has_its_own_message(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(published); k++) {
        const char *text = iron_status_text(published[k].status);

        assert_true(strlen(text) > 3);
        for (size_t j = 0; j < k; j++)
            assert_string_not_equal(text, iron_status_text(published[j].status));
    }
}

/* Unknown values (from a newer library, for example) are reported as unknown and are never
 * success. */
static void unknown_values_are_failures(void **state) {
    static const int values[] = {9, 1000, -1};

    (void)state;
    for (size_t k = 0; k < COUNT(values); k++) {
        iron_status s = (iron_status)values[k];

        assert_string_equal(iron_status_name(s), "IRON_E_UNKNOWN");
        assert_true(iron_status_text(s)[0] != '\0');
        assert_int_equal(iron_status_exit_code(s), 2);
        assert_int_equal(iron_status_http_code(s), 500);
    }
}

static void errors_are_filled(void **state) {
    iron_error err = {0};

    (void)state;
    assert_int_equal(iron__fail(&err, IRON_E_IO, 28, "cannot write %s: %d", "a", 7), IRON_E_IO);
    assert_int_equal(err.status, IRON_E_IO);
    assert_int_equal(err.native, 28);
    assert_string_equal(err.text, "cannot write a: 7");
}

static void errors_are_optional(void **state) {
    (void)state;
    assert_int_equal(iron__fail(NULL, IRON_E_STATE, 0, "not read %d", 1), IRON_E_STATE);
}

static void long_texts_are_truncated(void **state) {
    char text[600];
    iron_error err;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memset(&err, '!', sizeof err);
    iron__fail(&err, IRON_E_ARG, 0, "%s", text);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static iron_status try_it(iron_status inner, iron_error *err) {
    IRON_TRY(inner);
    IRON_FAIL(err, IRON_E_MISMATCH, "came this far");
}

static iron_status fail_if(int condition, iron_error *err) {
    IRON_FAIL_IF(condition, err, IRON_E_ARG, "condition %d", condition);
    return IRON_OK;
}

static void macros_return(void **state) {
    iron_error err = {0};

    (void)state;
    assert_int_equal(try_it(IRON_E_NOMEM, &err), IRON_E_NOMEM);
    assert_string_equal(err.text, "");
    assert_int_equal(try_it(IRON_OK, &err), IRON_E_MISMATCH);
    assert_string_equal(err.text, "came this far");
    assert_int_equal(fail_if(0, &err), IRON_OK);
    assert_int_equal(fail_if(3, &err), IRON_E_ARG);
    assert_string_equal(err.text, "condition 3");
    assert_int_equal(fail_if(3, NULL), IRON_E_ARG);
}

/* MAJOR.MINOR.PATCH */
static void version_has_three_numbers(void **state) {
    const char *at = iron_version();
    int numbers = 0;

    (void)state;
    for (;;) {
        assert_true(isdigit((unsigned char)*at));
        at += strspn(at, "0123456789");
        numbers++;
        if (*at != '.')
            break;
        at++;
    }
    assert_int_equal(numbers, 3);
    assert_int_equal(*at, '\0');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_values_stay),
        cmocka_unit_test(every_row_of_the_map_is_published),
        cmocka_unit_test(every_status_has_its_own_message),
        cmocka_unit_test(unknown_values_are_failures),
        cmocka_unit_test(errors_are_filled),
        cmocka_unit_test(errors_are_optional),
        cmocka_unit_test(long_texts_are_truncated),
        cmocka_unit_test(macros_return),
        cmocka_unit_test(version_has_three_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
