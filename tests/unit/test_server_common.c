/* SPDX-License-Identifier: MIT */
/*
 * test_server_common.c: shared code of the routes: numbers in queries, times, Accept, and engines
 * as JSON.
 */
#include "support.h"

#include "core/json.h"
#include "core/memory.h"
#include "server/route_info.c"
#include "server/routes.c"

static void test_numbers(void **state) {
    static const char *const bad[] = {"",
                                      " 1",
                                      "1 ",
                                      "+1",
                                      "-1",
                                      "0x1",
                                      "1.0",
                                      "1e3",
                                      "one",
                                      "18446744073709551616",
                                      "99999999999999999999",
                                      "000000000000000000001"};
    uint64_t value = 7;

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++)
        if (read_number(bad[k], &value))
            fail_msg("'%s' was taken as %llu", bad[k], (unsigned long long)value);
    assert_int_equal(value, 7);
    assert_true(read_number("0", &value) && value == 0);
    assert_true(read_number("007", &value) && value == 7);
    assert_true(read_number("18446744073709551615", &value) && value == UINT64_MAX);
}

static void assert_time(uint64_t milliseconds, const char *expected) {
    char text[IRON_TIME_TEXT];

    iron__time_text(milliseconds, text);
    assert_string_equal(text, expected);
}

static void test_times(void **state) {
    (void)state;
    assert_time(0, "1970-01-01T00:00:00.000Z");
    assert_time(UINT64_C(951782400001), "2000-02-29T00:00:00.001Z");
    assert_time(UINT64_C(1772366407250), "2026-03-01T12:00:07.250Z");
    assert_time(UINT64_C(4294967296999), "2106-02-07T06:28:16.999Z");
    assert_time(UINT64_C(253402300799999), "9999-12-31T23:59:59.999Z");
    assert_time(UINT64_MAX, "9999-12-31T23:59:59.999Z");
}

static void test_encodings(void **state) {
    static const char *const wanted[] = {
        "gzip", "GZIP",       "deflate, gzip",   "gzip, deflate, br, zstd",
        "*",    "gzip;q=0.5", "br;q=1, *;q=0.1", "identity;q=0.5, gzip;q=0.5"};
    static const char *const unwanted[] = {"",
                                           "identity",
                                           "br",
                                           "gzip;q=0",
                                           "*;q=0",
                                           "gzip;q=0, *",
                                           "xgzip, gzipx, gzip/x",
                                           "gzip;q=0.5, identity",
                                           "*/*"};

    (void)state;
    assert_false(wants_gzip(NULL));
    for (size_t k = 0; k < COUNT(wanted); k++)
        if (!wants_gzip(wanted[k]))
            fail_msg("'%s' wants gzip", wanted[k]);
    for (size_t k = 0; k < COUNT(unwanted); k++)
        if (wants_gzip(unwanted[k]))
            fail_msg("'%s' does not want gzip", unwanted[k]);
}

static void test_accept(void **state) {
    static const struct {
        const char *accept;
        unsigned json, bytes;
    } cases[] = {
        {NULL, 1000, 1000},
        {"*/*", 1000, 1000},
        {"", 0, 0},
        {"application/json", 1000, 0},
        {"Application/JSON", 1000, 0},
        {"application/octet-stream", 0, 1000},
        {"application/*", 1000, 1000},
        {"text/html, application/json;q=0.5", 500, 0},
        {"application/json;q=0.25, */*;q=0.75", 250, 750},
        {"*/*;q=0.1,application/octet-stream ; q=0.999", 100, 999},
        {"application/json;q=0, */*", 0, 1000},
        {"application/json; charset=utf-8; q=0.3", 300, 0},
        {"application/json;q=2", 1000, 0},
        {"application/json;q=0.x", 1000, 0},
        {"text/*, image/png", 0, 0},
        {",,; ,", 0, 0},
        {"application/jsonx, xapplication/json, application/", 0, 0},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(cases); k++) {
        unsigned json = iron__accept_weight(cases[k].accept, "application/json");
        unsigned bytes = iron__accept_weight(cases[k].accept, "application/octet-stream");

        if (json != cases[k].json || bytes != cases[k].bytes)
            fail_msg("'%s' wants %u and %u, not %u and %u",
                     cases[k].accept ? cases[k].accept : "(none)", json, bytes, cases[k].json,
                     cases[k].bytes);
    }
}

static void assert_text(const iron__json *root, const char *name, const char *expected) {
    assert_string_equal(iron__json_get_text(iron__json_member(root, name)), expected);
}

static void assert_number(const iron__json *root, const char *name, double expected) {
    double number = -1;

    assert_true(iron__json_get_number(iron__json_member(root, name), &number));
    assert_true(number == expected);
}

static iron__store_engine_view example(void) {
    iron__store_engine_view view = {.version = 9,
                                    .created_ms = UINT64_C(1772366400000),
                                    .changed_ms = UINT64_C(1772366407250),
                                    .feeds = 1,
                                    .tokens = 33,
                                    .batches = 3,
                                    .sum = UINT64_MAX,
                                    .state = 0xFB,
                                    .xors = 0x1BA2,
                                    .seal = "55ca5730297d2312377f1c4d2334ce8d"};

    snprintf(view.plan.name, sizeof view.plan.name, "demo");
    snprintf(view.plan.mode, sizeof view.plan.mode, "champion");
    snprintf(view.plan.backend, sizeof view.plan.backend, "cpu");
    snprintf(view.device, sizeof view.device, "A \"device\"");
    view.plan.nodes = 12;
    view.plan.vocab = 50257;
    view.plan.batch = 16;
    view.plan.positions = IRON_POSITIONS_BATCH;
    view.plan.lattice_count = 2;
    view.plan.lattice[0] = 7;
    view.plan.lattice[1] = 15;
    return view;
}

static const iron__json *written(const iron__store_engine_view *view) {
    char *text = NULL;
    size_t bytes = 0;
    iron_json_writer j = {.to = open_memstream(&text, &bytes)};
    const iron__json *root = NULL;
    iron_error err;

    iron_json_open(&j, NULL, '{');
    iron__write_engine(&j, view);
    iron_json_close(&j, '}');
    assert_int_equal(fclose(j.to), 0);
    assert_ok(iron__json_parse(text, bytes, iron__allocator_default(), &root, &err), &err);
    free(text);
    return root;
}

static void test_engine(void **state) {
    iron__store_engine_view view = example();
    const iron__json *root = written(&view);

    (void)state;
    assert_int_equal(root->count, 19);
    assert_text(root, "name", "demo");
    assert_number(root, "nodes", 12);
    assert_number(root, "vocab", 50257);
    assert_number(root, "batch", 16);
    assert_text(root, "positions", "batch");
    assert_int_equal(iron__json_length(iron__json_member(root, "lattice")), 2);
    assert_text(root, "mode", "champion");
    assert_text(root, "backend", "cpu");
    assert_number(root, "device", 0);
    assert_text(root, "device_name", "A \"device\"");
    assert_number(root, "tokens", 33);
    assert_number(root, "batches", 3);
    assert_text(root, "xor", "00001ba2");
    assert_text(root, "sum", "18446744073709551615");
    assert_text(root, "state", "00000000000000fb");
    assert_text(root, "seal", "55ca5730297d2312377f1c4d2334ce8d");
    assert_number(root, "feeds", 1);
    assert_text(root, "created", "2026-03-01T12:00:00.000Z");
    assert_text(root, "changed", "2026-03-01T12:00:07.250Z");
    iron__json_destroy(iron__allocator_default(), root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_times),
        cmocka_unit_test(test_accept),  cmocka_unit_test(test_encodings),
        cmocka_unit_test(test_engine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
