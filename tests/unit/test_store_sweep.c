/* SPDX-License-Identifier: MIT */
/*
 * test_store_sweep.c: what was deleted is swept up also while the writer is never idle.
 */
#include "store/inside.h"
#include "store_rows.h"
#include "store_support.h"

#include <pthread.h>

typedef struct crowd {
    iron__kept *kept;
    atomic_bool is_over;
} crowd;

static void *feed_on(void *context) {
    crowd *c = context;
    uint32_t token = 7;

    while (!atomic_load(&c->is_over))
        feed_done(c->kept, (feeding){.at = 0}, &token, sizeof token);
    return NULL;
}

static uint64_t commits_of(iron__store *store) {
    iron__store_counts counts;

    iron__store_count(store, &counts);
    return counts.commits;
}

/* Somebody always waits; twenty portions go all the same, counted in others' transactions. */
static void what_was_deleted_goes_under_load(void **state) {
    iron__store *store = store_at(&place);
    iron__plan busy = small_plan("busy"), gone = small_plan("gone");
    crowd c = {.kept = make_engine(store, &busy)};
    iron__kept *kept = make_engine(store, &gone);
    pthread_t threads[64];
    uint32_t token = 7;
    uint64_t begun;
    iron_error err = {0};

    (void)state;
    for (int k = 0; k < 1280; k++)
        feed_done(kept, (feeding){.at = 0}, &token, sizeof token);
    for (size_t k = 0; k < COUNT(threads); k++)
        assert_int_equal(pthread_create(&threads[k], NULL, feed_on, &c), 0);
    assert_ok(iron__store_delete(store, kept, &err), &err);
    begun = commits_of(store);
    while (count_rows("feeds WHERE engine = 2") > 0)
        assert_true(commits_of(store) - begun < 1500);
    atomic_store(&c.is_over, true);
    for (size_t k = 0; k < COUNT(threads); k++)
        pthread_join(threads[k], NULL);
    iron__kept_release(kept);
    iron__kept_release(c.kept);
    iron__store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_deleted_goes_under_load, make_place, remove_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
