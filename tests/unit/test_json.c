/* SPDX-License-Identifier: MIT */
/*
 * test_json.c: the examples of the RFC, every escape, and texts that are almost JSON, each with the
 * place that the error must name. Texts are parsed from blocks of exactly their size, so that
 * sanitizers detect reads past their end.
 */
#include "support.h"

#include "core/json.h"
#include "core/memory.h"

#include <locale.h>
#include <math.h>

static iron_status parse_bytes(const char *text, size_t length, const iron__json **out,
                               iron_error *err) {
    char *copy = grab(length);
    iron_status status;

    memcpy(copy, text, length);
    status = iron__json_parse(copy, length, iron__allocator_default(), out, err);
    free(copy);
    return status;
}

static const iron__json *parse(const char *text) {
    const iron__json *root = NULL;
    iron_error err = {0};

    if (parse_bytes(text, strlen(text), &root, &err) != IRON_OK)
        fail_msg("%s: %s", text, err.text);
    assert_non_null(root);
    return root;
}

static void forget(const iron__json *root) { iron__json_destroy(iron__allocator_default(), root); }

static double number_at(const iron__json *object, const char *name) {
    double value = (double)NAN;

    assert_true(iron__json_get_number(iron__json_member(object, name), &value));
    return value;
}

/* RFC 8259, section 13. */
static void the_rfcs_object(void **state) {
    const iron__json *root =
        parse("{\n"
              "  \"Image\": {\n"
              "      \"Width\":  800,\n"
              "      \"Height\": 600,\n"
              "      \"Title\":  \"View from 15th Floor\",\n"
              "      \"Thumbnail\": {\n"
              "          \"Url\": \"http://www.example.com/image/481989943\",\n"
              "          \"Height\": 125,\n"
              "          \"Width\":  100\n"
              "      },\n"
              "      \"Animated\" : false,\n"
              "      \"IDs\": [116, 943, 234, 38793]\n"
              "    }\n"
              "}\n");
    const iron__json *image = iron__json_member(root, "Image");
    const iron__json *ids = iron__json_member(image, "IDs");
    static const double wanted[] = {116, 943, 234, 38793};
    bool is_animated = true;
    double id = 0;

    (void)state;
    assert_true(number_at(image, "Width") == 800 && number_at(image, "Height") == 600);
    assert_string_equal(iron__json_get_text(iron__json_member(image, "Title")),
                        "View from 15th Floor");
    assert_true(number_at(iron__json_member(image, "Thumbnail"), "Height") == 125);
    assert_true(iron__json_get_bool(iron__json_member(image, "Animated"), &is_animated));
    assert_false(is_animated);
    assert_int_equal(iron__json_length(ids), 4);
    for (size_t k = 0; k < 4; k++) {
        assert_true(iron__json_get_number(iron__json_at(ids, k), &id));
        assert_true(id == wanted[k]);
    }
    assert_null(iron__json_at(ids, 4));
    forget(root);
}

/* The section's array of two objects, and its three texts with a single value. */
static void the_rfcs_array_and_values(void **state) {
    const iron__json *root =
        parse("[{\"precision\": \"zip\", \"Latitude\":  37.7668, \"Longitude\": "
              "-122.3959, \"Address\": \"\", \"City\": \"SAN FRANCISCO\"},"
              "{\"precision\": \"zip\", \"Latitude\":  37.371991, \"Longitude\""
              ": -122.026020, \"Address\": \"\", \"City\": \"SUNNYVALE\"}]");
    double value = 0;

    (void)state;
    assert_int_equal(iron__json_length(root), 2);
    assert_true(number_at(iron__json_at(root, 1), "Longitude") == -122.026020);
    assert_string_equal(iron__json_get_text(iron__json_member(iron__json_at(root, 0), "Address")),
                        "");
    forget(root);
    root = parse("\"Hello world!\"");
    assert_string_equal(iron__json_get_text(root), "Hello world!");
    forget(root);
    root = parse("42");
    assert_true(iron__json_get_number(root, &value) && value == 42);
    forget(root);
    root = parse(" \t\r\n true \n");
    assert_int_equal(root->kind, IRON_JSON_TRUE);
    forget(root);
}

static void empty_things(void **state) {
    const iron__json *root = parse("[[], {}, \"\", [ ], { }, null]");

    (void)state;
    assert_int_equal(iron__json_length(root), 6);
    assert_int_equal(iron__json_at(root, 0)->kind, IRON_JSON_ARRAY);
    assert_int_equal(iron__json_at(root, 4)->kind, IRON_JSON_OBJECT);
    assert_int_equal(iron__json_at(root, 4)->count, 0);
    assert_int_equal(iron__json_at(root, 5)->kind, IRON_JSON_NULL);
    forget(root);
}

static void numbers(void **state) {
    static const struct {
        const char *text;
        double value;
    } good[] = {
        {"0", 0},
        {"-0", 0},
        {"-1.5e+3", -1500},
        {"1E2", 100},
        {"0.1", 0.1},
        {"1e-400", 0},
        {"123456789012345678901234567890", 123456789012345678901234567890.0},
        {"1.7976931348623157e308", 1.7976931348623157e308},
        {"4.9e-324", 4.9e-324},
        {"9007199254740993", 9007199254740992},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(good); k++) {
        const iron__json *root = parse(good[k].text);
        double value = -1;

        assert_true(iron__json_get_number(root, &value));
        if (value != good[k].value)
            fail_msg("%s was read as %.17g", good[k].text, value);
        forget(root);
    }
}

/* The same numbers are read in a locale with a decimal comma. */
static void the_locale_does_not_matter(void **state) {
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "de_DE"};
    bool is_set = false;

    (void)state;
    for (size_t k = 0; k < COUNT(names) && !is_set; k++)
        is_set = setlocale(LC_NUMERIC, names[k]) != NULL;
    if (!is_set) {
        print_message("no locale with decimal commas is installed\n");
        skip();
    }
    numbers(state);
    setlocale(LC_NUMERIC, "C");
}

static void every_escape(void **state) {
    const iron__json *root = parse(
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\uD834\\udd1e\\uFFFF\\uDBFF\\uDFFF\"");

    (void)state;
    assert_string_equal(iron__json_get_text(root), "\"\\/\b\f\n\r\tA\u00e9\u20ac\U0001D11E"
                                                   "\xEF\xBF\xBF\xF4\x8F\xBF\xBF");
    assert_int_equal(root->count, strlen(iron__json_get_text(root)));
    forget(root);
    root = parse("{\"\\u0061b\": 1, \"\u00e9\U0001D11E\": 2}");
    assert_true(number_at(root, "ab") == 1 && number_at(root, "\u00e9\U0001D11E") == 2);
    forget(root);
}

typedef struct bad_text {
    const char *text, *says;
} bad_text;

static void assert_bad(const char *text, size_t length, const char *says) {
    const iron__json *root = (const iron__json *)text; /* anything but NULL */
    iron_error err = {0};

    if (parse_bytes(text, length, &root, &err) != IRON_E_FORMAT)
        fail_msg("%s was accepted", text);
    assert_null(root);
    assert_int_equal(err.status, IRON_E_FORMAT);
    if (strncmp(err.text, says, strlen(says)) != 0)
        fail_msg("%s: '%s' should be '%s'", text, err.text, says);
}

static void almost_json(void **state) {
    static const bad_text bad[] = {
        {"", "line 1, column 1: expected a value"},
        {" \n ", "line 2, column 2: expected a value"},
        {"{\n  \"a\": 1,\n  \"b\" 2\n}", "line 3, column 7: expected ':'"},
        {"{\"a\": 1\n\"b\": 2}", "line 2, column 1: expected ',' or '}'"},
        {"[1 2]", "line 1, column 4: expected ',' or ']'"},
        {"[1,]", "line 1, column 4: expected a value"},
        {"[,1]", "line 1, column 2: expected a value"},
        {"{\"a\":1,}", "line 1, column 8: expected a member's name in quotes"},
        {"{a: 1}", "line 1, column 2: expected a member's name in quotes"},
        {"{'a': 1}", "line 1, column 2: expected a member's name in quotes"},
        {"{\"a\"}", "line 1, column 5: expected ':'"},
        {"{\"a\":}", "line 1, column 6: expected a value"},
        {"[", "line 1, column 2: expected a value"},
        {"[1", "line 1, column 3: expected ',' or ']'"},
        {"{", "line 1, column 2: expected a member's name in quotes"},
        {"{\"a\":1]", "line 1, column 7: expected ',' or '}'"},
        {"]", "line 1, column 1: expected a value"},
        {"1 2", "line 1, column 3: unexpected text after the value"},
        {"{} {}", "line 1, column 4: unexpected text after the value"},
        {"null,", "line 1, column 5: unexpected text after the value"},
        {"nul", "line 1, column 1: expected a value"},
        {"True", "line 1, column 1: expected a value"},
        {"[1] // end", "line 1, column 5: unexpected text after the value"},
        {"\xEF\xBB\xBF[]", "line 1, column 1: expected a value"},
        {"NaN", "line 1, column 1: expected a value"},
        {"-", "line 1, column 2: expected a digit"},
        {"-x", "line 1, column 2: expected a digit"},
        {"-Infinity", "line 1, column 2: expected a digit"},
        {"+1", "line 1, column 1: expected a value"},
        {".5", "line 1, column 1: expected a value"},
        {"5.", "line 1, column 3: expected a digit"},
        {"5.e1", "line 1, column 3: expected a digit"},
        {"1e", "line 1, column 3: expected a digit"},
        {"1e+", "line 1, column 4: expected a digit"},
        {"007", "line 1, column 1: a number must not have leading zeros"},
        {"-012", "line 1, column 2: a number must not have leading zeros"},
        {"0x10", "line 1, column 2: unexpected text"},
        {"1e309", "line 1, column 1: number is out of range for a double"},
        {"-1e99999999999999999999", "line 1, column 1: number is out of range for a double"},
        {"\"abc", "line 1, column 5: expected '\"' at the end of the string"},
        {"\"a\nb\"", "line 1, column 3: control character"},
        {"\"\\x41\"", "line 1, column 3: unknown escape"},
        {"\"\\", "line 1, column 3: unknown escape"},
        {"\"\\u12\"", "line 1, column 4: expected four hexadecimal digits"},
        {"\"\\u12G4\"", "line 1, column 4: expected four hexadecimal digits"},
        {"\"\\u0000\"", "line 1, column 4: a zero character"},
        {"\"\\uD834\"", "line 1, column 4: unpaired surrogate"},
        {"\"\\uD834x\\uDD1E\"", "line 1, column 4: unpaired surrogate"},
        {"\"\\uDD1E\"", "line 1, column 4: unpaired surrogate"},
        {"\"\\uD834\\uD834\"", "line 1, column 4: unpaired surrogate"},
        {"\"\\uD834\\u0041\"", "line 1, column 4: unpaired surrogate"},
        {"\"\\uD834\\u", "line 1, column 4: unpaired surrogate"},
        {"{\"a\": 1, \"b\": 2, \"a\": 3}", "line 1, column 24: two members"},
        {"{\"a\": 1, \"\\u0061\": 1}", "line 1, column 21: two members"},
        {"[\"\u00e9\u20ac\", x]", "line 1, column 8: expected a value"}, /* characters, not bytes */
    };

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++)
        assert_bad(bad[k].text, strlen(bad[k].text), bad[k].says);
    assert_bad("[\0]", 3, "line 1, column 2: expected a value");
    assert_bad("\"a\0b\"", 5, "line 1, column 3: control character");
    assert_bad("\"\\\0\"", 4, "line 1, column 3: unknown escape");
    assert_bad("1\0", 2, "line 1, column 2: unexpected text");
}

static void invalid_utf8(void **state) {
    static const char *const bad[] = {
        "\"\x80\"",             /* begins with a continuation */
        "\"\xC3\"",             /* cut off by the quote */
        "\"\xC3",               /* cut off by the end */
        "\"\xC0\xAF\"",         /* overlong encoding */
        "\"\xE0\x80\xAF\"",     /* overlong encoding */
        "\"\xF0\x8F\xBF\xBF\"", /* overlong encoding */
        "\"\xED\xA0\x80\"",     /* a surrogate */
        "\"\xF4\x90\x80\x80\"", /* past U+10FFFF */
        "\"\xF5\x80\x80\x80\"",
        "\"\xFF\"",
        "\"\xE2\x82(\"",
        "\"\xF0\x90\x8D(\"",
    };

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++)
        assert_bad(bad[k], strlen(bad[k]), "line 1, column 2: invalid UTF-8");
    for (uint32_t c = 0x80; c < 0x110000; c += c < 0x900 || c > 0xD700 ? 1 : 97) {
        char text[8] = {'"'};
        const iron__json *root;

        if (c == 0xD800)
            c = 0xE000;
        if (c < 0x800)
            snprintf(text + 1, 7, "%c%c\"", (int)(0xC0 | c >> 6), (int)(0x80 | (c & 63)));
        else if (c < 0x10000)
            snprintf(text + 1, 7, "%c%c%c\"", (int)(0xE0 | c >> 12), (int)(0x80 | (c >> 6 & 63)),
                     (int)(0x80 | (c & 63)));
        else
            snprintf(text + 1, 7, "%c%c%c%c\"", (int)(0xF0 | c >> 18), (int)(0x80 | (c >> 12 & 63)),
                     (int)(0x80 | (c >> 6 & 63)), (int)(0x80 | (c & 63)));
        root = parse(text);
        assert_memory_equal(iron__json_get_text(root), text + 1, root->count);
        forget(root);
        if (c > 0x10000)
            c += 997;
    }
}

static void depth_is_limited(void **state) {
    char text[200];

    (void)state;
    for (size_t depth = 1; depth <= 80; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        text[2 * depth] = '\0';
        if (depth <= IRON_JSON_DEPTH_MAX)
            forget(parse(text));
        else
            assert_bad(text, 2 * depth, "line 1, column 65: nesting is deeper than 64 levels");
    }
}

/* A million nested brackets fail early. */
static void deep_nesting_does_not_overflow_the_stack(void **state) {
    size_t length = 1000000;
    char *text = grab(length);

    (void)state;
    memset(text, '[', length);
    assert_bad(text, length, "line 1, column 65: nesting is deeper than 64 levels");
    memset(text, ',', length);
    assert_bad(text, length, "line 1, column 1: expected a value");
    for (size_t k = 0; k + 5 <= length; k += 5)
        for (size_t n = 0; n < 5; n++)
            text[k + n] = "{\"a\":"[n];
    assert_bad(text, length, "line 1, column 321: nesting is deeper than 64 levels");
    free(text);
}

static void number_length_is_limited(void **state) {
    char text[200];

    (void)state;
    memset(text, '1', sizeof text);
    assert_bad(text, 129, "line 1, column 1: number is longer than 128 characters");
    text[128] = '\0';
    forget(parse(text));
}

/* Thousands of members in descending order with long common prefixes, and a duplicate among
 * them. */
static void large_objects(void **state) {
    enum { MEMBERS = 20000, EACH = 64 };
    char *text = grab((size_t)MEMBERS * EACH + 2);
    size_t length = 0;
    const iron__json *root;

    (void)state;
    text[length++] = '{';
    for (int k = 0; k < MEMBERS; k++)
        length += (size_t)snprintf(text + length, EACH, "%s\"a rather long beginning %d\": %d",
                                   k ? "," : "", MEMBERS - k, MEMBERS - k);
    text[length++] = '}';
    text[length] = '\0';
    root = parse(text);
    for (int k = 1; k <= MEMBERS; k += 7) {
        char name[EACH];

        snprintf(name, sizeof name, "a rather long beginning %d", k);
        assert_true(number_at(root, name) == k);
    }
    assert_null(iron__json_member(root, "a rather long beginning 0"));
    forget(root);
    memcpy(strstr(text, "beginning 20000\""), "beginning 19999\"", 16);
    assert_bad(text, length, "line 1, column ");
    free(text);
}

static void too_long_texts_are_not_parsed(void **state) {
    const iron__json *root = NULL;
    iron_error err;

    (void)state;
    assert_refused(
        iron__json_parse("1", IRON_JSON_BYTES_MAX + 1, iron__allocator_default(), &root, &err),
        IRON_E_FORMAT, &err);
    assert_says(&err, "268435457");
}

/* Every prefix of a text is an error, and none is read past its end. */
static void prefixes(void **state) {
    static const char text[] =
        "{\"a\": [1.5e-3, true, \"\\ud834\\udd1e\u20ac\"], \"b\": {\"c\": null}}";

    (void)state;
    for (size_t length = 0; length < sizeof text - 1; length++)
        assert_bad(text, length, "line 1, column ");
    forget(parse(text));
}

static void lookups_of_missing_values(void **state) {
    const iron__json *root =
        parse("{\"n\": 1.5, \"big\": 1e20, \"minus\": -1, \"t\": \"x\", \"a\": [1]}");
    double number = 7;
    bool flag = true;
    uint64_t whole = 7;

    (void)state;
    assert_null(iron__json_member(NULL, "n"));
    assert_null(iron__json_member(root, ""));
    assert_null(iron__json_member(iron__json_member(root, "a"), "n"));
    assert_null(iron__json_at(root, 0));
    assert_null(iron__json_at(NULL, 0));
    assert_int_equal(iron__json_length(root), 0);
    assert_int_equal(iron__json_length(NULL), 0);
    assert_null(iron__json_get_text(iron__json_member(root, "n")));
    assert_null(iron__json_get_text(NULL));
    assert_false(iron__json_get_number(iron__json_member(root, "t"), &number));
    assert_false(iron__json_get_bool(iron__json_member(root, "n"), &flag));
    assert_false(iron__json_get_whole(iron__json_member(root, "n"), 100, &whole));
    assert_false(iron__json_get_whole(iron__json_member(root, "big"), UINT64_C(1) << 53, &whole));
    assert_false(iron__json_get_whole(iron__json_member(root, "minus"), 100, &whole));
    assert_true(number == 7 && flag && whole == 7);
    assert_true(iron__json_get_whole(iron__json_at(iron__json_member(root, "a"), 0), 1, &whole));
    assert_int_equal(whole, 1);
    forget(root);
    forget(NULL);
}

static void no_memory_is_reported(void **state) {
    ledger books = {.fail_at = 1};
    iron_allocator allocator = ledger_allocator(&books);
    const iron__json *root = NULL;
    iron_error err;

    (void)state;
    assert_refused(iron__json_parse("[1]", 3, &allocator, &root, &err), IRON_E_NOMEM, &err);
    assert_ok(iron__json_parse("[1]", 3, &allocator, &root, &err), &err);
    assert_int_equal(books.out, 1); /* one block */
    iron__json_destroy(&allocator, root);
    assert_refused(iron__json_parse("[1", 2, &allocator, &root, &err), IRON_E_FORMAT, &err);
    assert_int_equal(books.out, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rfcs_object),
        cmocka_unit_test(the_rfcs_array_and_values),
        cmocka_unit_test(empty_things),
        cmocka_unit_test(numbers),
        cmocka_unit_test(the_locale_does_not_matter),
        cmocka_unit_test(every_escape),
        cmocka_unit_test(almost_json),
        cmocka_unit_test(invalid_utf8),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(deep_nesting_does_not_overflow_the_stack),
        cmocka_unit_test(number_length_is_limited),
        cmocka_unit_test(large_objects),
        cmocka_unit_test(too_long_texts_are_not_parsed),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(lookups_of_missing_values),
        cmocka_unit_test(no_memory_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
