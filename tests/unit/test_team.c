/* SPDX-License-Identifier: MIT */
/*
 * test_team.c: every index exactly once, whatever the number of threads and tasks; and when a run
 * returns, the caller and the tasks of the next run see all that was written.
 *
 * Tasks here write plain memory, no atomics: if an index were given to two threads, or a run
 * returned early, ThreadSanitizer would say so even where the numbers happen to come out. cmocka's
 * assertions belong to the main thread, so tasks only record.
 */
#include "support.h"

#include "core/team.h"

#include <signal.h>

#define THREADS_MAX 8u
#define TASKS_MAX   1000u

static const size_t counts[] = {0, 1, 2, 3, 7, 8, 9, 1000};

static iron__team *make_team(uint32_t threads) {
    iron__team *team = NULL;
    iron_error err;

    assert_ok(iron__team_create(threads, iron__allocator_default(), &team, &err), &err);
    assert_int_equal(iron__team_threads(team), threads);
    return team;
}

static void count_hit(void *context, size_t index) {
    uint32_t *hits = context;

    hits[index]++;
}

static void every_index_exactly_once(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
        iron__team *team = make_team(threads);

        for (size_t c = 0; c < COUNT(counts); c++) {
            for (int round = 0; round < 50; round++) {
                uint32_t hits[TASKS_MAX + 1] = {0};

                iron__team_run(team, count_hit, hits, counts[c]);
                for (size_t k = 0; k <= TASKS_MAX; k++)
                    if (hits[k] != (k < counts[c]))
                        fail_msg("%u threads, %zu tasks: index %zu ran %u times", threads,
                                 counts[c], k, hits[k]);
            }
        }
        iron__team_destroy(team);
    }
}

/* Each round every task reads what another task, likely another thread's, wrote in the last. */
typedef struct relay {
    const uint64_t *from;
    uint64_t *to;
    size_t count;
} relay;

static void pass_on(void *context, size_t index) {
    const relay *r = context;

    r->to[index] = 3 * r->from[(index * 7 + 5) % r->count] + index;
}

static void rounds_see_each_other(void **state) {
    static uint64_t got[2][TASKS_MAX], want[2][TASKS_MAX];

    (void)state;
    for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
        iron__team *team = make_team(threads);

        memset(got, 0, sizeof got);
        memset(want, 0, sizeof want);
        for (int round = 0; round < 200; round++) {
            size_t count = round % 4 == 3 ? 2 : TASKS_MAX;
            relay r = {got[round % 2], got[(round + 1) % 2], count};
            relay serial = {want[round % 2], want[(round + 1) % 2], count};

            iron__team_run(team, pass_on, &r, count);
            for (size_t k = 0; k < count; k++)
                pass_on(&serial, k);
            assert_memory_equal(got, want, sizeof got);
        }
        iron__team_destroy(team);
    }
}

/* A different task and context each time: nothing of an earlier run may be used. */
static void add_two(void *context, size_t index) {
    uint32_t *hits = context;

    hits[index] += 2;
}

static void teams_are_reused(void **state) {
    iron__team *team = make_team(4);

    (void)state;
    for (int round = 0; round < 2000; round++) {
        uint32_t first[16] = {0}, second[16] = {0};
        size_t count = (size_t)round % 17;

        iron__team_run(team, count_hit, first, count);
        iron__team_run(team, add_two, second, count);
        for (size_t k = 0; k < count; k++)
            assert_true(first[k] == 1 && second[k] == 2);
    }
    iron__team_destroy(team);
}

static void sum_own_team(void *context, size_t index) {
    uint64_t *cells = context;

    cells[index] += index + 1;
}

/* Two teams of two callers, at the same time: a team is its caller's own. */
typedef struct caller {
    uint64_t cells[64];
    iron_status status;
} caller;

static void *caller_main(void *argument) {
    caller *c = argument;
    iron__team *team = NULL;

    c->status = iron__team_create(3, iron__allocator_default(), &team, NULL);
    for (int round = 0; round < 300 && team; round++)
        iron__team_run(team, sum_own_team, c->cells, 64);
    iron__team_destroy(team);
    return NULL;
}

static void teams_do_not_meet(void **state) {
    static caller callers[2];
    pthread_t threads[2];

    (void)state;
    for (int k = 0; k < 2; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, caller_main, &callers[k]), 0);
    for (int k = 0; k < 2; k++)
        assert_int_equal(pthread_join(threads[k], NULL), 0);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(callers[k].status, IRON_OK);
        for (size_t n = 0; n < 64; n++)
            assert_int_equal(callers[k].cells[n], 300 * (n + 1));
    }
}

static void created_and_destroyed_unused(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= 32; threads++)
        iron__team_destroy(make_team(threads));
    iron__team_destroy(NULL);
}

static void *record_mask(void *argument) {
    sigset_t *mask = argument;

    pthread_sigmask(SIG_BLOCK, NULL, mask);
    return argument;
}

/* A signal to the process must not land in a thread that the program does not know. */
static void threads_block_signals(void **state) {
    sigset_t mask, before, after;
    pthread_t thread;
    void *result = NULL;

    (void)state;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    assert_int_equal(iron__thread_start(&thread, record_mask, &mask), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &mask);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    assert_true(sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGTERM) == 1);
    assert_true(sigismember(&mask, SIGHUP) == 1 && sigismember(&mask, SIGPIPE) == 1);
    assert_int_equal(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
}

static void no_memory_is_reported(void **state) {
    ledger books = {0};
    iron_allocator allocator = ledger_allocator(&books);
    iron__team *team = NULL;
    size_t failures = 0;

    (void)state;
    for (size_t at = 1; !team; at++) {
        iron_error err = {0};

        team = (iron__team *)&team; /* anything but NULL */
        books = (ledger){.fail_at = at};
        if (iron__team_create(4, &allocator, &team, &err) == IRON_OK)
            break;
        assert_null(team);
        assert_int_equal(err.status, IRON_E_NOMEM);
        assert_int_equal(books.out, 0);
        failures++;
    }
    assert_true(failures > 0);
    iron__team_destroy(team);
    assert_int_equal(books.out, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_exactly_once),
        cmocka_unit_test(rounds_see_each_other),
        cmocka_unit_test(teams_are_reused),
        cmocka_unit_test(teams_do_not_meet),
        cmocka_unit_test(created_and_destroyed_unused),
        cmocka_unit_test(threads_block_signals),
        cmocka_unit_test(no_memory_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
