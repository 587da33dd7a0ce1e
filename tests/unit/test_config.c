/* SPDX-License-Identifier: MIT */
/*
 * test_config.c: configurations that are refused, what an engine reports about itself, and
 * allocations that fail at every place where the library allocates.
 *
 * Every refusal leaves *out NULL, names the value, and works without an iron_error. The allocator
 * counts: whatever fails, nothing leaks. It also fills memory with a pattern, so that code that
 * relies on zeroed memory fails here.
 */
#include "support.h"

#include "ops/tokens/tokens.h"

#include <math.h>

static iron_config small_config(void) {
    iron_config c;

    iron_config_init(&c);
    c.nodes = 8;
    c.threads = 1;
    return c;
}

static void refuse(const iron_config *c, iron_status expected, const char *word) {
    iron_engine *e = (iron_engine *)&e; /* anything but NULL */
    iron_error err;

    assert_refused(iron_engine_create(c, &e, &err), expected, &err);
    assert_says(&err, word);
    assert_null(e);
    assert_int_equal(iron_engine_create(c, &e, NULL), expected);
}

static void accept(const iron_config *c) {
    iron_engine *e = NULL;
    iron_error err;

    assert_ok(iron_engine_create(c, &e, &err), &err);
    iron_engine_destroy(e);
}

static void defaults(void **state) {
    iron_config c;

    (void)state;
    memset(&c, 0xA5, sizeof c);
    iron_config_init(&c);
    assert_int_equal(c.struct_size, sizeof c);
    assert_true(c.nodes == 4096 && c.vocab == 50257 && c.batch == 786432);
    assert_int_equal(c.positions, IRON_POSITIONS_STREAM);
    assert_true(!c.lattice && c.lattice_count == 0 && !c.activations && !c.with_seal);
    assert_true(!c.backend && !c.mode && !c.allocator && c.device == 0 && c.threads == 0);
    accept(&c);
}

static void struct_size_is_checked(void **state) {
    iron_config c = small_config();

    (void)state;
    c.struct_size = 0;
    refuse(&c, IRON_E_ARG, "struct_size");
    c.struct_size = sizeof c + 8;
    refuse(&c, IRON_E_ARG, "struct_size");
    refuse(NULL, IRON_E_ARG, "struct_size");
}

static void nodes_and_vocab(void **state) {
    iron_config c = small_config();

    (void)state;
    c.nodes = 0;
    refuse(&c, IRON_E_ARG, "nodes is 0");
    c.nodes = (1 << 20) + 1;
    refuse(&c, IRON_E_ARG, "1048577");
    c.nodes = UINT64_MAX;
    refuse(&c, IRON_E_ARG, "18446744073709551615");
    c.nodes = 1 << 20;
    accept(&c);
    c = small_config();
    c.vocab = 0;
    refuse(&c, IRON_E_ARG, "vocab is 0");
    c.vocab = 1;
    refuse(&c, IRON_E_ARG, "vocab is 1");
    c.vocab = (UINT64_C(1) << 31) + 1;
    refuse(&c, IRON_E_ARG, "2147483649");
    c.vocab = (UINT64_C(1) << 32) + 2; /* 2 in 32 bits */
    refuse(&c, IRON_E_ARG, "4294967298");
    c.vocab = UINT64_C(1) << 31;
    accept(&c);
    c.vocab = 2;
    accept(&c);
}

static void batch(void **state) {
    iron_config c = small_config();

    (void)state;
    c.batch = 0;
    refuse(&c, IRON_E_ARG, "batch is 0");
    c.vocab = 2;
    c.batch = UINT64_C(1) << 61;
    accept(&c);
    c.batch++;
    refuse(&c, IRON_E_ARG, "2305843009213693953");
    c.vocab = UINT64_C(1) << 31;
    c.batch = UINT64_C(1) << 31;
    accept(&c);
    c.batch++;
    refuse(&c, IRON_E_ARG, "2147483649");
    c.batch = UINT64_MAX;
    refuse(&c, IRON_E_ARG, "18446744073709551615");
    /* 3 does not divide 2^62: the last that fits, and the next */
    c.vocab = 3;
    c.batch = (UINT64_C(1) << 62) / 3;
    accept(&c);
    c.batch++;
    refuse(&c, IRON_E_ARG, "above 2^62");
}

static void positions_threads_device(void **state) {
    iron_config c = small_config();

    (void)state;
    c.positions = (iron_positions)7;
    refuse(&c, IRON_E_ARG, "positions is 7");
    c = small_config();
    c.threads = 1025;
    refuse(&c, IRON_E_ARG, "1025");
    c = small_config();
    c.device = 3;
    refuse(&c, IRON_E_ARG, "device 3");
}

static void lattices(void **state) {
    static const uint32_t falling[] = {7, 15, 12};
    static const uint32_t large[] = {7, 70000};
    static const uint32_t zero[] = {0, 5};
    uint32_t many[65];
    iron_config c = small_config();

    (void)state;
    for (uint32_t k = 0; k < COUNT(many); k++)
        many[k] = k + 1;
    c.lattice = falling;
    c.lattice_count = 3;
    refuse(&c, IRON_E_ARG, "12");
    c.lattice_count = 1;
    refuse(&c, IRON_E_ARG, "1 points");
    c.lattice_count = 0;
    refuse(&c, IRON_E_ARG, "0 points");
    c.lattice = large;
    c.lattice_count = 2;
    refuse(&c, IRON_E_ARG, "70000");
    c.lattice = zero;
    refuse(&c, IRON_E_ARG, "0");
    c.lattice = many;
    c.lattice_count = 65;
    refuse(&c, IRON_E_ARG, "65");
    c.lattice_count = 64;
    accept(&c);
    c.lattice = NULL;
    refuse(&c, IRON_E_ARG, "lattice_count is 64");
}

static void activations(void **state) {
    static const float bad[] = {NAN, INFINITY, -INFINITY, 0x1p-97f, -1e-40f};
    float a[8] = {0, -0.0f, 0x1p-96f, -0x1p-96f, 3e38f, -3e38f, 1, 2};
    iron_config c = small_config();

    (void)state;
    c.activations = a;
    accept(&c);
    for (size_t k = 0; k < COUNT(bad); k++) {
        a[5] = bad[k];
        refuse(&c, IRON_E_ARG, "activation 5");
    }
}

static void modes_and_backends(void **state) {
    iron_config c = small_config();

    (void)state;
    c.mode = "fastest";
    refuse(&c, IRON_E_ARG, "fastest");
    refuse(&c, IRON_E_ARG, "scalar vector threads champion node hybrid");
    c.mode = "";
    refuse(&c, IRON_E_ARG, "mode");
    c.mode = "auto";
    accept(&c);
    c.backend = "tpu";
    refuse(&c, IRON_E_ARG, "tpu");
    c.backend = "auto";
    accept(&c);
    c.backend = "cpu";
    accept(&c);
}

/* A known backend that is not available is unsupported, with its reason. */
static void absent_backends(void **state) {
    iron_config c = small_config();
    size_t known = iron_backend_count(), available = 0;

    (void)state;
    for (size_t k = 0; k < known; k++) {
        iron_backend_info info = {.struct_size = sizeof info};
        iron_error err;

        assert_ok(iron_backend_at(k, &info, &err), &err);
        available += info.is_available;
        assert_int_equal(info.reason[0] == '\0', info.is_available);
        c.backend = info.name;
        if (!info.is_available)
            refuse(&c, IRON_E_UNSUPPORTED, info.name);
    }
    assert_true(available >= 1);
}

static void lists_are_checked(void **state) {
    iron_backend_info backend = {.struct_size = sizeof backend};
    iron_mode_info mode = {.struct_size = sizeof mode};
    iron_error err;

    (void)state;
    assert_refused(iron_backend_at(iron_backend_count(), &backend, &err), IRON_E_ARG, &err);
    assert_refused(iron_mode_at("cpu", iron_mode_count("cpu"), &mode, &err), IRON_E_ARG, &err);
    assert_refused(iron_variant_at("cpu", iron_variant_count("cpu"), &mode, &err), IRON_E_ARG,
                   &err);
    mode.struct_size = 1;
    assert_refused(iron_mode_at("cpu", 0, &mode, &err), IRON_E_ARG, &err);
    assert_refused(iron_variant_at("cpu", 0, &mode, &err), IRON_E_ARG, &err);
    backend.struct_size = 1;
    assert_refused(iron_backend_at(0, &backend, &err), IRON_E_ARG, &err);
    assert_int_equal(iron_mode_count("abacus"), 0);
    assert_int_equal(iron_mode_count(NULL), 0);
    assert_int_equal(iron_variant_count("abacus"), 0);
}

/* Every mode that is listed as available can be requested and is used. */
static void listed_modes_work(void **state) {
    size_t count = iron_mode_count("cpu");

    (void)state;
    assert_true(count >= 6);
    for (size_t k = 0; k < count; k++) {
        iron_mode_info info = {.struct_size = sizeof info};
        iron_config c = small_config();
        iron_engine *e = NULL;
        iron_error err;

        assert_ok(iron_mode_at("cpu", k, &info, &err), &err);
        assert_int_equal(info.is_available, 1);
        assert_true(info.idea[0] != '\0');
        c.mode = info.name;
        assert_ok(iron_engine_create(&c, &e, &err), &err);
        assert_string_equal(iron_engine_mode(e), info.name);
        assert_non_null(strstr(iron_engine_mode_reason(e), info.variant));
        assert_string_equal(iron_engine_backend(e), "cpu");
        assert_true(iron_engine_device(e)[0] != '\0');
        iron_engine_destroy(e);
    }
}

static void auto_gives_a_reason(void **state) {
    iron_config c = small_config(), got;
    iron_engine *e = NULL;
    iron_error err;

    (void)state;
    assert_ok(iron_engine_create(&c, &e, &err), &err);
    assert_string_equal(iron_engine_mode(e), "vector"); /* one thread */
    assert_int_equal(strncmp(iron_engine_mode_reason(e), "auto", 4), 0);
    iron_engine_destroy(e);
    c.threads = 3;
    assert_ok(iron_engine_create(&c, &e, &err), &err);
    assert_string_equal(iron_engine_mode(e), "champion");
    got = *iron_engine_config(e);
    assert_int_equal(got.threads, 3);
    iron_engine_destroy(e);
}

/* The engine copies the configuration: the caller's memory may be freed. */
static void configuration_is_copied(void **state) {
    uint32_t points[] = {3, 10, 100};
    float a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    char mode[] = "scalar";
    iron_config c = small_config(), got;
    iron_engine *e = NULL;
    iron_error err;

    (void)state;
    c.lattice = points;
    c.lattice_count = 3;
    c.activations = a;
    c.mode = mode;
    c.vocab = 1000;
    c.batch = 77;
    c.positions = IRON_POSITIONS_BATCH;
    assert_ok(iron_engine_create(&c, &e, &err), &err);
    memset(points, 0, sizeof points);
    memset(a, 0, sizeof a);
    memset(mode, 'x', sizeof mode - 1);
    got = *iron_engine_config(e);
    assert_true(got.vocab == 1000 && got.batch == 77 && got.nodes == 8);
    assert_int_equal(got.positions, IRON_POSITIONS_BATCH);
    assert_int_equal(got.lattice_count, 3);
    assert_int_equal(got.lattice[2], 100);
    assert_true(got.activations[7] == 8.0f && iron_engine_activations(e)[0] == 1.0f);
    assert_string_equal(got.mode, "scalar");
    assert_int_equal(got.struct_size, sizeof got);
    iron_engine_destroy(e);
}

/* Fails the n-th allocation for n = 1, 2, ... until the call succeeds; returns how many. */
static size_t starve_create(iron_config c) {
    ledger books = {0};
    iron_allocator allocator = ledger_allocator(&books);
    iron_engine *e = NULL;
    size_t failures = 0;

    c.allocator = &allocator;
    for (;; failures++) {
        iron_error err = {0};
        iron_status status;

        e = (iron_engine *)&e;
        books = (ledger){.fail_at = failures + 1};
        status = iron_engine_create(&c, &e, &err);
        if (status == IRON_OK)
            break;
        assert_int_equal(status, IRON_E_NOMEM);
        assert_int_equal(err.status, IRON_E_NOMEM);
        assert_says(&err, "memory");
        assert_null(e);
        assert_int_equal(books.out, 0);
    }
    assert_int_equal(books.calls, failures);
    iron_engine_destroy(e);
    assert_int_equal(books.out, 0);
    return failures;
}

static void create_without_memory(void **state) {
    iron_config c = small_config();

    (void)state;
    for (size_t v = 0; v < iron__tokens_variant_count(); v++) {
        const iron__tokens_variant *row = iron__tokens_variant_at(v);

        if (!iron__tokens_variant_runs_here(row))
            continue;
        for (uint32_t with_seal = 0; with_seal < 2; with_seal++) {
            c.mode = row->name;
            c.threads = 3;
            c.with_seal = with_seal;
            assert_true(starve_create(c) >= 8);
        }
    }
}

/* Saves an engine to a path, for the test below. */
static void save_some_state(const char *path) {
    static const uint32_t tokens[] = {1, 2, 3, 4, 5};
    iron_config c = small_config();
    iron_engine *e = NULL;
    iron_error err;

    c.with_seal = 1;
    assert_ok(iron_engine_create(&c, &e, &err), &err);
    assert_ok(iron_engine_feed(e, tokens, 5, &err), &err);
    assert_ok(iron_engine_end_batch(e, &err), &err);
    assert_ok(iron_engine_save(e, path, &err), &err);
    iron_engine_destroy(e);
}

static void load_without_memory(void **state) {
    ledger books = {0};
    iron_allocator allocator = ledger_allocator(&books);
    iron_config run = small_config();
    iron_engine *e = NULL;
    size_t failures = 0;
    file_name path;
    folder f;

    (void)state;
    folder_make(&f);
    path = name_in(&f, "state");
    save_some_state(path.path);
    run.allocator = &allocator;
    run.threads = 2;
    for (;; failures++) {
        iron_error err = {0};
        iron_status status;

        e = (iron_engine *)&e;
        books = (ledger){.fail_at = failures + 1};
        status = iron_engine_load(path.path, &run, &e, &err);
        if (status == IRON_OK)
            break;
        assert_int_equal(status, IRON_E_NOMEM);
        assert_int_equal(err.status, IRON_E_NOMEM);
        assert_null(e);
        assert_int_equal(books.out, 0);
    }
    assert_true(failures >= 9);
    iron_engine_destroy(e);
    assert_int_equal(books.out, 0);
    folder_remove(&f);
}

/* Feeding, reporting and closing batches allocate nothing, so none of them can fail mid-stream. */
static void feeding_takes_no_memory(void **state) {
    ledger books = {0};
    iron_allocator allocator = ledger_allocator(&books);
    uint32_t *tokens = grab_tokens(91, 50257, 300000);
    iron_report r = {.struct_size = sizeof r};
    iron_config c = small_config();
    iron_engine *e = NULL;
    iron_error err;
    size_t calls;

    (void)state;
    c.allocator = &allocator;
    c.threads = 3;
    c.batch = 1000;
    c.with_seal = 1;
    assert_ok(iron_engine_create(&c, &e, &err), &err);
    calls = books.calls;
    books.fail_at = calls + 1;
    assert_ok(iron_engine_feed(e, tokens, 300000, &err), &err);
    assert_ok(iron_engine_end_batch(e, &err), &err);
    assert_ok(iron_engine_report(e, &r, &err), &err);
    assert_int_equal(books.calls, calls);
    assert_int_equal(r.batches, 300);
    iron_engine_destroy(e);
    assert_int_equal(books.out, 0);
    free(tokens);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(struct_size_is_checked),
        cmocka_unit_test(nodes_and_vocab),
        cmocka_unit_test(batch),
        cmocka_unit_test(positions_threads_device),
        cmocka_unit_test(lattices),
        cmocka_unit_test(activations),
        cmocka_unit_test(modes_and_backends),
        cmocka_unit_test(absent_backends),
        cmocka_unit_test(lists_are_checked),
        cmocka_unit_test(listed_modes_work),
        cmocka_unit_test(auto_gives_a_reason),
        cmocka_unit_test(configuration_is_copied),
        cmocka_unit_test(create_without_memory),
        cmocka_unit_test(load_without_memory),
        cmocka_unit_test(feeding_takes_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
