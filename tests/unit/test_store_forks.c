/* SPDX-License-Identifier: MIT */
/*
 * test_store_forks.c: the private engines that large bodies are reduced on: there is a limit to
 * them all together, those that idle stand in nobody's way, and what is read needs none of them.
 */
#include "place.h"
#include "store/inside.h"
#include "store_support.h"

#define BODY    ((size_t)128 << 10) /* a large one */
#define ENGINES 3

static const unsigned char body[BODY];

/* A store in which all forks together have room for two engines' nodes, and engines for three. */
static iron__store *store_with_few_forks(iron__kept *engines[ENGINES]) {
    static const char *const names[ENGINES] = {"a", "b", "c"};
    iron__plan plan = small_plan("");
    iron__store *store =
        store_at_with(&place, (iron__store_options){.nodes_max = ENGINES * plan.nodes});

    for (size_t k = 0; k < ENGINES; k++) {
        plan = small_plan(names[k]);
        engines[k] = make_engine(store, &plan);
    }
    store->options.nodes_max = 2 * plan.nodes;
    return store;
}

static void close_store(iron__store *store, iron__kept *engines[ENGINES]) {
    for (size_t k = 0; k < ENGINES; k++)
        iron__kept_release(engines[k]);
    iron__store_close(store);
}

static iron__feed *begin(iron__kept *kept, iron__feed_outcome want) {
    iron__feed_request request = {.dtype = IRON_DTYPE_U32, .expected_bytes = BODY};
    iron__feed_answer answer;
    iron__feed *feed = NULL;
    iron_error err = {0};

    assert_int_equal(iron__feed_begin(kept, &request, &feed, &answer, &err), want);
    return feed;
}

static void idle_forks_make_room(void **state) {
    iron__kept *engines[ENGINES];
    iron__store *store = store_with_few_forks(engines);
    iron__feed *first = begin(engines[0], IRON_FEED_DONE);
    iron__feed *second = begin(engines[0], IRON_FEED_DONE);

    (void)state;
    assert_null(begin(engines[1], IRON_FEED_BUSY)); /* both are at work */
    iron__feed_abandon(first);
    iron__feed_abandon(second);
    assert_int_equal(engines[0]->idle_count, 2);
    for (size_t k = 0; k < ENGINES; k++)
        feed_done(engines[k], (feeding){.piece = 1000}, body, BODY);
    close_store(store, engines);
}

static void a_state_needs_no_fork(void **state) {
    iron__kept *engines[ENGINES];
    iron__store *store = store_with_few_forks(engines);
    iron__feed *first = begin(engines[0], IRON_FEED_DONE);
    iron__feed *second = begin(engines[1], IRON_FEED_DONE);
    unsigned char *bytes = NULL;
    size_t count = 0;
    iron_error err = {0};

    (void)state;
    assert_ok(iron__kept_state(engines[2], &bytes, &count, &err), &err);
    assert_true(count > 0);
    free(bytes);
    iron__feed_abandon(first);
    iron__feed_abandon(second);
    close_store(store, engines);
}

int main(void) {
#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(idle_forks_make_room),
        IN_A_PLACE(a_state_needs_no_fork),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
