/* SPDX-License-Identifier: MIT */
/*
 * test_store_devices.c: an engine whose device is missing continues on the CPU; and the forks on
 * which large bodies are reduced: they are limited, idle ones are released, and reading needs none.
 */
#include "store/recovery.c"
#include "store/store.c"

#include "place.h"
#include "store_support.h"

/* As if the store had been written on a machine with CUDA. */
static void move_to_cuda(const char *name) {
    iron__store bare = {.directory = place.path};
    iron__database *db = NULL;
    iron__store_ledger all;
    iron__engine_row *rows = NULL;
    size_t count = 0;
    iron_error err = {0};
    char sql[300];

    assert_ok(database_open(&bare, true, &db, &err), &err);
    assert_ok(read_ledger(db, &all, &err), &err);
    assert_ok(read_engines(db, &all, &rows, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_string_equal(rows->plan.name, name);
    strcpy(rows->plan.backend, "cuda");
    all.engines_check = iron__engine_row_check(rows);
    snprintf(sql, sizeof sql,
             "UPDATE engines SET backend = 'cuda', check_word = %lld;"
             "UPDATE ledger SET engines_check = %lld, check_word = %lld",
             (long long)all.engines_check, (long long)all.engines_check,
             (long long)iron__ledger_check(&all));
    assert_int_equal(sqlite3_exec(db->handle, sql, NULL, NULL, NULL), SQLITE_OK);
    iron__database_close(db, true);
    close(bare.directory_fd);
    free(rows);
}

static void an_engine_without_its_device_continues(void **state) {
    static const unsigned char large[100000];
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("e");
    iron__store_engine *entry = make_engine(store, &plan);
    iron_engine *direct = direct_engine(&plan);
    iron__store_engine_view before, after;
    iron__store_counts counts;
    iron_report want;
    iron_error err = {0};
    unsigned char *bytes = NULL;
    size_t count;

    (void)state;
    setenv("IRON_CUDA_LIBRARY", "none", 1);
    feed_done(entry, (feeding){.piece = 1000}, large, sizeof large);
    want = direct_feed(direct, IRON_DTYPE_U32, large, sizeof large / 4);
    before = look_at(entry);
    iron__store_engine_release(entry);
    iron__store_close(store);
    move_to_cuda("e");
    store = store_at(&place);
    entry = found(store, "e");
    after = look_at(entry);
    assert_true(after.tokens == before.tokens && after.state == before.state);
    assert_int_equal(after.plan.lattice_count, before.plan.lattice_count);
    assert_string_equal(after.plan.backend, "cpu");
    assert_string_equal(after.device, before.device);
    assert_string_not_equal(after.device_failure, "");
    iron__store_count(store, &counts, NULL);
    assert_int_equal(counts.moved, 1);
    assert_ok(iron__store_engine_serialize(entry, &bytes, &count, &err), &err);
    free(bytes);
    for (size_t size = 4; size <= sizeof large; size += sizeof large - 4) {
        feed_done(entry, (feeding){.piece = 1000}, large, size);
        want = direct_feed(direct, IRON_DTYPE_U32, large, size / 4);
        assert_view(entry, &want);
    }
    iron__store_engine_release(entry);
    iron__store_close(store);
    iron_engine_destroy(direct);
}

#define BODY    ((size_t)128 << 10) /* a large one */
#define ENGINES 3

static const unsigned char body[BODY];

/* A store in which all forks together have room for two engines' nodes, and engines for three. */
static iron__store *store_with_few_forks(iron__store_engine *engines[ENGINES]) {
    static const char *const names[ENGINES] = {"a", "b", "c"};
    iron__store_plan plan = small_plan("");
    iron__store *store =
        store_at_with(&place, (iron__store_options){.nodes_max = ENGINES * plan.nodes});

    for (size_t k = 0; k < ENGINES; k++) {
        plan = small_plan(names[k]);
        engines[k] = make_engine(store, &plan);
    }
    store->options.nodes_max = 2 * plan.nodes;
    return store;
}

static void close_store(iron__store *store, iron__store_engine *engines[ENGINES]) {
    for (size_t k = 0; k < ENGINES; k++)
        iron__store_engine_release(engines[k]);
    iron__store_close(store);
}

static iron__feed *begin(iron__store_engine *entry, iron__feed_outcome want) {
    iron__feed_request request = {.dtype = IRON_DTYPE_U32, .expected_bytes = BODY};
    iron__feed_answer answer;
    iron__feed *feed = NULL;
    iron_error err = {0};

    assert_int_equal(iron__feed_begin(entry, &request, &feed, &answer, &err), want);
    return feed;
}

static void idle_forks_make_room(void **state) {
    iron__store_engine *engines[ENGINES];
    iron__store *store = store_with_few_forks(engines);
    iron__feed *first = begin(engines[0], IRON_FEED_DONE);
    iron__feed *second = begin(engines[0], IRON_FEED_DONE);

    (void)state;
    assert_null(begin(engines[1], IRON_FEED_BUSY)); /* both are in use */
    iron__feed_abandon(first);
    iron__feed_abandon(second);
    assert_int_equal(engines[0]->idle_count, 2);
    for (size_t k = 0; k < ENGINES; k++)
        feed_done(engines[k], (feeding){.piece = 1000}, body, BODY);
    close_store(store, engines);
}

static void a_state_needs_no_fork(void **state) {
    iron__store_engine *engines[ENGINES];
    iron__store *store = store_with_few_forks(engines);
    iron__feed *first = begin(engines[0], IRON_FEED_DONE);
    iron__feed *second = begin(engines[1], IRON_FEED_DONE);
    unsigned char *bytes = NULL;
    size_t count = 0;
    iron_error err = {0};

    (void)state;
    assert_ok(iron__store_engine_serialize(engines[2], &bytes, &count, &err), &err);
    assert_true(count > 0);
    free(bytes);
    iron__feed_abandon(first);
    iron__feed_abandon(second);
    close_store(store, engines);
}

int main(void) {
#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(an_engine_without_its_device_continues),
        IN_A_PLACE(idle_forks_make_room),
        IN_A_PLACE(a_state_needs_no_fork),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
