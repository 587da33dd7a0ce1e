/* SPDX-License-Identifier: MIT */
/*
 * test_store_devices.c: an engine whose device was taken out is shown as it was, and not fed.
 */
#include "place.h"
#include "store/inside.h"
#include "store_support.h"

/* What was written for this machine is read on one without the device. */
static void move_to_cuda(const char *name) {
    iron__database *db = NULL;
    iron__ledger all;
    iron__engine_row *rows = NULL;
    size_t count = 0;
    iron_error err = {0};

    assert_ok(iron__database_open(place.path, true, &db, &err), &err);
    assert_ok(iron__ledger_read(db, &all, &err), &err);
    assert_ok(iron__engines_read(db, &all, &rows, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_string_equal(rows->plan.name, name);
    strcpy(rows->plan.backend, "cuda");
    all.engines_check = iron__plan_check(&rows->plan, rows->id, rows->created_ms);
    assert_ok(iron__engine_delete(db, rows->id, &err), &err);
    assert_ok(iron__engine_insert(db, rows, &err), &err);
    assert_ok(iron__ledger_write(db, &all, &err), &err);
    iron__database_close(db, true);
    free(rows);
}

static void an_engine_without_its_device_is_looked_at(void **state) {
    static const unsigned char large[100000];
    iron__store *store = store_at(&place);
    iron__plan plan = small_plan("e");
    iron__kept *kept = make_engine(store, &plan);
    iron__kept_view before, after;
    iron__feed_answer answer;
    iron_error err = {0};
    unsigned char *bytes = NULL;
    size_t count;

    (void)state;
    setenv("IRON_CUDA_LIBRARY", "none", 1);
    feed_done(kept, (feeding){.piece = 1000}, large, sizeof large);
    before = look_at(kept);
    iron__kept_release(kept);
    iron__store_close(store);
    move_to_cuda("e");
    store = store_at(&place);
    kept = found(store, "e");
    after = look_at(kept);
    assert_true(after.tokens == before.tokens && after.state == before.state);
    assert_int_equal(after.plan.lattice_count, before.plan.lattice_count);
    assert_ok(iron__kept_state(kept, &bytes, &count, &err), &err);
    free(bytes);
    for (size_t size = 4; size <= sizeof large; size += sizeof large - 4) {
        assert_int_equal(feed_as(kept, (feeding){.piece = 1000}, large, size, &answer, &err),
                         IRON_FEED_FAILED);
        assert_int_equal(err.status, IRON_E_UNSUPPORTED);
    }
    assert_true(look_at(kept).tokens == before.tokens);
    iron__kept_release(kept);
    iron__store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_engine_without_its_device_is_looked_at, make_place,
                                        remove_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
