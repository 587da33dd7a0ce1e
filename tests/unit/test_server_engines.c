/* SPDX-License-Identifier: MIT */
/*
 * test_server_engines.c: bodies of POST /v1/engines become configurations, or are refused with the
 * problem's kind and a message that names member, value and range.
 */
#include "support.h"

#include "core/memory.h"
#include "server/route_engines.c"

static iron_status parse_bytes(const char *text, size_t bytes, iron__store_plan *plan,
                               const char **kind, iron_error *err) {
    reader r = {.plan = plan, .kind = "bad-json"};
    const iron__json *root = NULL;
    iron_status status;

    memset(err, 0, sizeof *err);
    iron__store_plan_init(plan);
    status = iron__json_parse(text, bytes, iron__allocator_default(), &root, err);
    if (status == IRON_OK)
        status = read_plan(root, &r, err);
    iron__json_destroy(iron__allocator_default(), root);
    *kind = r.kind;
    return status;
}

static iron_status parse(const char *text, iron__store_plan *plan, const char **kind,
                         iron_error *err) {
    return parse_bytes(text, strlen(text), plan, kind, err);
}

static void test_defaults(void **state) {
    iron__store_plan plan, defaults;
    const char *kind;
    iron_error err;

    (void)state;
    assert_ok(parse("{\"name\": \"a\"}", &plan, &kind, &err), &err);
    iron__store_plan_init(&defaults);
    assert_string_equal(plan.name, "a");
    assert_int_equal(plan.nodes, 4096);
    assert_int_equal(plan.vocab, 50257);
    assert_int_equal(plan.batch, 786432);
    assert_int_equal(plan.positions, IRON_POSITIONS_STREAM);
    assert_int_equal(plan.lattice_count, 0);
    assert_string_equal(plan.mode, defaults.mode);
    assert_string_equal(plan.backend, defaults.backend);
    assert_int_equal(plan.device, 0);
}

static void test_every_member(void **state) {
    static const char text[] =
        "{\"name\": \"A.b_c-9\", \"nodes\": 12, \"vocab\": 65536, \"batch\": 9007199254740991,"
        " \"positions\": \"batch\", \"lattice\": [1, 2, 65535], \"mode\": \"scalar\","
        " \"backend\": \"cpu\", \"device\": 4294967295}";
    iron__store_plan plan;
    const char *kind;
    iron_error err;

    (void)state;
    assert_ok(parse(text, &plan, &kind, &err), &err);
    assert_string_equal(plan.name, "A.b_c-9");
    assert_int_equal(plan.nodes, 12);
    assert_int_equal(plan.vocab, 65536);
    assert_true(plan.batch == UINT64_C(9007199254740991));
    assert_int_equal(plan.positions, IRON_POSITIONS_BATCH);
    assert_int_equal(plan.lattice_count, 3);
    assert_int_equal(plan.lattice[0], 1);
    assert_int_equal(plan.lattice[2], 65535);
    assert_string_equal(plan.mode, "scalar");
    assert_string_equal(plan.backend, "cpu");
    assert_true(plan.device == UINT32_MAX);
}

typedef struct refusal {
    const char *text, *kind, *says;
} refusal;

static const refusal refusals[] = {
    {"", "bad-json", "line 1"},
    {"{\"name\": \"a\",}", "bad-json", "line 1"},
    {"{\"name\": \"a\", \"name\": \"b\"}", "bad-json", "line 1"},
    {"[]", "bad-json", "object"},
    {"{}", "bad-json", "name is missing"},
    {"{\"nodes\": 1}", "bad-json", "name is missing"},
    {"{\"name\": \"a\", \"node\": 1}", "bad-json", "'node'"},
    {"{\"name\": \"a\", \"activations\": []}", "bad-json", "'activations'"},
    {"{\"name\": 1}", "bad-json", "name must be a string"},
    {"{\"name\": \"\"}", "bad-name", "''"},
    {"{\"name\": \"-a\"}", "bad-name", "'-a'"},
    {"{\"name\": \"a/b\"}", "bad-name", "'a/b'"},
    {"{\"name\": \"a b\"}", "bad-name", "'a b'"},
    {"{\"name\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
     "bad-name", "aaaa"},
    {"{\"name\": \"a\", \"nodes\": \"12\"}", "bad-json", "nodes must be a number"},
    {"{\"name\": \"a\", \"nodes\": null}", "bad-json", "nodes must be a number"},
    {"{\"name\": \"a\", \"nodes\": 0}", "bad-configuration", "nodes is 0; it must be a whole"},
    {"{\"name\": \"a\", \"nodes\": 1.5}", "bad-configuration", "nodes is 1.5"},
    {"{\"name\": \"a\", \"nodes\": -1}", "bad-configuration", "nodes is -1"},
    {"{\"name\": \"a\", \"nodes\": 1048577}", "bad-configuration", "from 1 to 1048576"},
    {"{\"name\": \"a\", \"nodes\": 1e300}", "bad-configuration", "nodes is 1"},
    {"{\"name\": \"a\", \"vocab\": 1}", "bad-configuration", "from 2 to 2147483648"},
    {"{\"name\": \"a\", \"vocab\": 2147483649}", "bad-configuration", "vocab is 2147483649"},
    {"{\"name\": \"a\", \"batch\": 0}", "bad-configuration", "batch is 0"},
    {"{\"name\": \"a\", \"batch\": 9007199254740993}", "bad-configuration", "to 9007199254740991"},
    {"{\"name\": \"a\", \"device\": 4294967296}", "bad-configuration", "from 0 to 4294967295"},
    {"{\"name\": \"a\", \"positions\": \"token\"}", "bad-configuration", "'token'"},
    {"{\"name\": \"a\", \"positions\": 0}", "bad-json", "positions must be a string"},
    {"{\"name\": \"a\", \"backend\": \"gpu\"}", "bad-configuration", "auto, cpu, cuda or opencl"},
    {"{\"name\": \"a\", \"backend\": 1}", "bad-json", "backend must be a string"},
    {"{\"name\": \"a\", \"mode\": \"\"}", "bad-configuration", "mode has 0 characters"},
    {"{\"name\": \"a\", \"mode\": \"123456789012345678901234567890123456789012345678\"}",
     "bad-configuration", "mode has 48 characters; it must have 1 to 47"},
    {"{\"name\": \"a\", \"lattice\": {}}", "bad-json", "lattice must be an array"},
    {"{\"name\": \"a\", \"lattice\": []}", "bad-configuration", "lattice has 0 points"},
    {"{\"name\": \"a\", \"lattice\": [7]}", "bad-configuration", "2 to 64"},
    {"{\"name\": \"a\", \"lattice\": [7, \"15\"]}", "bad-json", "a point of lattice"},
    {"{\"name\": \"a\", \"lattice\": [0, 7]}", "bad-configuration", "a point of lattice is 0"},
    {"{\"name\": \"a\", \"lattice\": [7, 65536]}", "bad-configuration", "from 1 to 65535"},
    {"{\"name\": \"a\", \"lattice\": [15, 7]}", "bad-configuration", ""},
    {"{\"name\": \"a\", \"lattice\": [7, 7]}", "bad-configuration", ""},
};

static void test_refusals(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(refusals); k++) {
        const refusal *r = &refusals[k];
        const char *kind = NULL;
        iron__store_plan plan;
        iron_error err;

        if (parse(r->text, &plan, &kind, &err) == IRON_OK)
            fail_msg("not refused: %s", r->text);
        if (strcmp(kind, r->kind) != 0)
            fail_msg("%s: refused as %s, not %s: %s", r->text, kind, r->kind, err.text);
        assert_true(err.text[0] != '\0');
        assert_says(&err, r->says);
    }
}

static void test_too_many_points(void **state) {
    char text[1024] = "{\"name\": \"a\", \"lattice\": [1";
    iron__store_plan plan;
    const char *kind;
    iron_error err;

    (void)state;
    for (int k = 2; k <= 65; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ",%d", k);
    snprintf(text + strlen(text), sizeof text - strlen(text), "]}");
    assert_refused(parse(text, &plan, &kind, &err), IRON_E_ARG, &err);
    assert_says(&err, "lattice has 65 points");
    assert_string_equal(kind, "bad-configuration");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_every_member),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_too_many_points),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
