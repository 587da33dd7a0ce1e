/* SPDX-License-Identifier: MIT */
/*
 * test_thread_pool.c: a plain run calls every index exactly once, for any number of threads and
 * tasks, and when it returns the caller and the tasks of the next run see everything that was
 * written. An ordered run hands out pieces in order, reports the lowest failure and can be
 * cancelled.
 *
 * Tasks here write plain memory, no atomics: if an index were given to two threads, or a run
 * returned early, ThreadSanitizer would report it even if the numbers happened to be right.
 * cmocka's assertions work only on the main thread, so tasks only record.
 */
#include "support.h"

#include "core/thread_pool.c"

#include <signal.h>
#include <time.h>

#define THREADS_MAX 8u
#define TASKS_MAX   1000u

static const size_t counts[] = {0, 1, 2, 3, 7, 8, 9, 1000};

static iron__thread_pool *make_pool(uint32_t threads) {
    iron__thread_pool *pool = NULL;
    iron_error err;

    assert_ok(iron__thread_pool_create(threads, iron__allocator_default(), &pool, &err), &err);
    assert_int_equal(iron__thread_pool_threads(pool), threads);
    return pool;
}

static void count_hit(void *context, size_t index) {
    uint32_t *hits = context;

    hits[index]++;
}

/* A worker may be stopped between reading the round and entering it, for as long as others take for
 * several rounds. */
static void late_workers_do_not_enter(void **state) {
    const uint64_t closed = 7 * ROUND + 3, next = 8 * ROUND + 2;
    static worker w;

    (void)state;
    atomic_store(&w.last, closed);
    assert_false(enter(&w, 6 * ROUND + 4));
    assert_false(enter(&w, closed));
    assert_int_equal(atomic_load(&w.last), closed);
    assert_true(enter(&w, next));
    assert_int_equal(atomic_load(&w.last), next | INSIDE);
    assert_false(enter(&w, closed));
    assert_false(enter(&w, next));
}

static void every_index_exactly_once(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
        iron__thread_pool *pool = make_pool(threads);

        for (size_t c = 0; c < COUNT(counts); c++) {
            for (int round = 0; round < 50; round++) {
                uint32_t hits[TASKS_MAX + 1] = {0};

                iron__thread_pool_run(pool, count_hit, hits, counts[c]);
                for (size_t k = 0; k <= TASKS_MAX; k++)
                    if (hits[k] != (k < counts[c]))
                        fail_msg("%u threads, %zu tasks: index %zu ran %u times", threads,
                                 counts[c], k, hits[k]);
            }
        }
        iron__thread_pool_destroy(pool);
    }
}

/* Some threads take part in a run and some do not, awake or asleep. */
static void threads_without_a_task_wait(void **state) {
    const struct timespec pause = {.tv_nsec = 400000}; /* longer than they spin */
    iron__thread_pool *pool = make_pool(THREADS_MAX);
    uint32_t hits[THREADS_MAX] = {0};

    (void)state;
    for (uint32_t round = 0; round < 400; round++) {
        if (round % 8 == 0)
            nanosleep(&pause, NULL);
        iron__thread_pool_run(pool, count_hit, hits, 1 + round % 3 * 3);
    }
    iron__thread_pool_destroy(pool);
    for (size_t k = 0; k < THREADS_MAX; k++)
        assert_int_equal(hits[k], k == 0 ? 400 : k < 4 ? 266 : k < 7 ? 133 : 0);
}

static void spin_unless_caller(void *context, size_t index) {
    const uint64_t *nanoseconds = context;
    uint64_t end = iron__clock_ns() + *nanoseconds;

    while (index > 0 && iron__clock_ns() < end)
        continue;
}

/* The caller falls asleep just when the last worker finishes; that worker may still be about to
 * wake it when the pool is destroyed. ThreadSanitizer saw a signal to a destroyed condition. */
static void destroyed_right_after_a_run(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 1000; round++) {
        iron__thread_pool *pool = make_pool(2);
        uint64_t nanoseconds = 140000 + round % 100 * 400; /* the caller spins for 150 us */

        iron__thread_pool_run(pool, spin_unless_caller, &nanoseconds, 2);
        iron__thread_pool_destroy(pool);
    }
}

/* In each round every task reads what another task, probably on another thread, wrote in the last
 * round. */
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
        iron__thread_pool *pool = make_pool(threads);

        memset(got, 0, sizeof got);
        memset(want, 0, sizeof want);
        for (int round = 0; round < 200; round++) {
            size_t count = round % 4 == 3 ? 2 : TASKS_MAX;
            relay r = {got[round % 2], got[(round + 1) % 2], count};
            relay serial = {want[round % 2], want[(round + 1) % 2], count};

            iron__thread_pool_run(pool, pass_on, &r, count);
            for (size_t k = 0; k < count; k++)
                pass_on(&serial, k);
            assert_memory_equal(got, want, sizeof got);
        }
        iron__thread_pool_destroy(pool);
    }
}

/* A different task and context each time: nothing of an earlier run may be used. */
static void add_two(void *context, size_t index) {
    uint32_t *hits = context;

    hits[index] += 2;
}

static void pools_are_reused(void **state) {
    iron__thread_pool *pool = make_pool(4);

    (void)state;
    for (int round = 0; round < 2000; round++) {
        uint32_t first[16] = {0}, second[16] = {0};
        size_t count = (size_t)round % 17;

        iron__thread_pool_run(pool, count_hit, first, count);
        iron__thread_pool_run(pool, add_two, second, count);
        for (size_t k = 0; k < count; k++)
            assert_true(first[k] == 1 && second[k] == 2);
    }
    iron__thread_pool_destroy(pool);
}

static void sum_own_pool(void *context, size_t index) {
    uint64_t *cells = context;

    cells[index] += index + 1;
}

/* Two pools with two callers, at the same time: pools are independent. */
typedef struct caller {
    uint64_t cells[64];
    iron_status status;
} caller;

static void *caller_main(void *argument) {
    caller *c = argument;
    iron__thread_pool *pool = NULL;

    c->status = iron__thread_pool_create(3, iron__allocator_default(), &pool, NULL);
    for (int round = 0; round < 300 && pool; round++)
        iron__thread_pool_run(pool, sum_own_pool, c->cells, 64);
    iron__thread_pool_destroy(pool);
    return NULL;
}

static void pools_are_independent(void **state) {
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
        iron__thread_pool_destroy(make_pool(threads));
    iron__thread_pool_destroy(NULL);
}

static void *record_mask(void *argument) {
    sigset_t *mask = argument;

    pthread_sigmask(SIG_BLOCK, NULL, mask);
    return argument;
}

/* A signal to the process must not be delivered to a thread of the pool. */
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

/* Pieces of an ordered run; each worker has its own memory. */
#define PIECES 500u

typedef struct log_entry {
    uint32_t worker;
    uint32_t times;
} log_entry;

typedef struct pieces {
    log_entry log[PIECES];
    uint64_t last[THREADS_MAX]; /* piece of each worker, plus 1 */
    bool is_out_of_order;       /* a worker was given a lower piece than before */
    uint64_t fails[2];          /* pieces that fail */
    uint64_t cancels_at;        /* progress on this piece or a later one cancels */
    uint64_t progress_calls;
    bool is_wrong_thread; /* progress on another thread than the caller's */
    pthread_t caller;
} pieces;

static pieces no_failures(void) {
    return (pieces){
        .fails = {UINT64_MAX, UINT64_MAX}, .cancels_at = UINT64_MAX, .caller = pthread_self()};
}

static iron_status note_piece(void *context, uint32_t worker, uint64_t piece,
                              const atomic_bool *stop, iron_error *err) {
    pieces *p = context;

    if (piece + 1 <= p->last[worker])
        p->is_out_of_order = true;
    p->last[worker] = piece + 1;
    p->log[piece].worker = worker;
    p->log[piece].times++;
    (void)stop;
    IRON_FAIL_IF(piece == p->fails[0] || piece == p->fails[1], err, IRON_E_IO, "piece %u failed",
                 (unsigned)piece);
    return IRON_OK;
}

static iron_status note_progress(void *context, uint64_t piece, iron_error *err) {
    pieces *p = context;

    p->progress_calls++;
    p->is_wrong_thread = p->is_wrong_thread || !pthread_equal(pthread_self(), p->caller);
    IRON_FAIL_IF(piece >= p->cancels_at, err, IRON_E_CANCELLED, "cancelled");
    return IRON_OK;
}

static iron_status run_pieces_on(iron__thread_pool *pool, pieces *p, uint64_t count,
                                 iron_error *err) {
    iron__ordered_run run = {
        .count = count, .piece = note_piece, .progress = note_progress, .context = p};

    return iron__thread_pool_run_ordered(pool, &run, err);
}

static void pieces_run_once_and_in_order(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
        iron__thread_pool *pool = make_pool(threads);

        for (uint64_t count = 0; count <= PIECES; count += count < 10 ? 1 : 70) {
            pieces p = no_failures();
            iron_error err = {0};

            assert_ok(run_pieces_on(pool, &p, count, &err), &err);
            for (size_t k = 0; k < PIECES; k++) {
                assert_int_equal(p.log[k].times, k < count);
                assert_true(p.log[k].worker < threads);
            }
            assert_false(p.is_out_of_order || p.is_wrong_thread);
            if (threads == 1)
                assert_int_equal(p.progress_calls, count);
        }
        iron__thread_pool_destroy(pool);
    }
}

/* On any schedule: the lowest failure is reported, everything before it has run, and little after
 * it. */
static void first_failure_wins(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
        iron__thread_pool *pool = make_pool(threads);

        for (uint64_t at = 0; at < PIECES; at += 83) {
            for (uint64_t further = 1; further < 4; further++) {
                pieces p = no_failures();
                iron_error err = {0};
                char text[32];

                p.fails[0] = at;
                p.fails[1] = at + further;
                assert_int_equal(run_pieces_on(pool, &p, PIECES, &err), IRON_E_IO);
                snprintf(text, sizeof text, "piece %u failed", (unsigned)at);
                assert_string_equal(err.text, text);
                assert_int_equal(err.status, IRON_E_IO);
                for (size_t k = 0; k <= at; k++)
                    assert_int_equal(p.log[k].times, 1);
                if (threads == 1)
                    assert_int_equal(p.log[at + 1].times, 0);
                memset(p.last, 0, sizeof p.last); /* a new run begins at piece 0 again */
                assert_int_equal(run_pieces_on(pool, &p, PIECES, NULL), IRON_E_IO);
                assert_false(p.is_out_of_order);
            }
        }
        iron__thread_pool_destroy(pool);
    }
}

static void progress_can_cancel(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
        iron__thread_pool *pool = make_pool(threads);
        bool is_cancelled = false;

        /* all pieces may go to the other threads before this one gets its first: then try again */
        for (int attempt = 0; attempt < 1000 && !is_cancelled; attempt++) {
            pieces p = no_failures();
            iron_error err = {0};
            iron_status status;

            p.cancels_at = 0;
            status = run_pieces_on(pool, &p, PIECES, &err);
            is_cancelled = status == IRON_E_CANCELLED;
            assert_true(is_cancelled || (status == IRON_OK && p.progress_calls == 0));
            if (is_cancelled) {
                assert_string_equal(err.text, "cancelled");
                assert_int_equal(p.progress_calls, 1);
            }
            assert_false(p.is_wrong_thread);
        }
        assert_true(is_cancelled);
        iron__thread_pool_destroy(pool);
    }
}

/* Pieces on other threads wait until they are stopped; the caller's own piece cancels. */
static iron_status wait_for_stop(void *context, uint32_t worker, uint64_t piece,
                                 const atomic_bool *stop, iron_error *err) {
    const pieces *p = context;

    (void)worker;
    (void)piece;
    (void)err;
    while (!pthread_equal(pthread_self(), p->caller) && !atomic_load(stop))
        ;
    return IRON_OK;
}

static void cancelling_stops_running_pieces(void **state) {
    iron__thread_pool *pool = make_pool(3);
    pieces p = no_failures();
    iron__ordered_run run = {
        .count = PIECES, .piece = wait_for_stop, .progress = note_progress, .context = &p};
    iron_error err = {0};

    (void)state;
    p.cancels_at = 0;
    assert_int_equal(iron__thread_pool_run_ordered(pool, &run, &err), IRON_E_CANCELLED);
    assert_int_equal(p.progress_calls, 1);
    iron__thread_pool_destroy(pool);
}

static void lowest_end_of_pieces_counts(void **state) {
    iron_error late = {IRON_E_IO, 5, "late"}, early = {IRON_E_FORMAT, 0, "early"};
    iron__pieces p;
    uint64_t piece = 0;

    (void)state;
    iron__pieces_init(&p, 10);
    for (uint64_t k = 0; k < 8; k++)
        assert_true(iron__pieces_take(&p, &piece) && piece == k);
    iron__pieces_end(&p, 7, IRON_E_IO, &late);
    iron__pieces_end(&p, 5, IRON_E_FORMAT, &early);
    iron__pieces_end(&p, 6, IRON_E_IO, &late);
    assert_false(iron__pieces_take(&p, &piece));
    assert_int_equal(atomic_load(&p.end), 5);
    assert_int_equal(p.status, IRON_E_FORMAT);
    assert_string_equal(p.error.text, "early");
    iron__pieces_end(&p, 4, IRON_OK, NULL); /* beyond the end: not an error */
    assert_int_equal(p.status, IRON_OK);
    iron__pieces_deinit(&p);
    iron__pieces_init(&p, 10);
    atomic_store(&p.stop, true);
    assert_false(iron__pieces_take(&p, &piece));
    iron__pieces_deinit(&p);
}

static void no_memory_is_reported(void **state) {
    ledger books = {0};
    iron_allocator allocator = ledger_allocator(&books);
    iron__thread_pool *pool = NULL;
    size_t failures = 0;

    (void)state;
    for (size_t at = 1; !pool; at++) {
        iron_error err = {0};

        pool = (iron__thread_pool *)&pool; /* anything but NULL */
        books = (ledger){.fail_at = at};
        if (iron__thread_pool_create(4, &allocator, &pool, &err) == IRON_OK)
            break;
        assert_null(pool);
        assert_int_equal(err.status, IRON_E_NOMEM);
        assert_int_equal(books.out, 0);
        failures++;
    }
    assert_true(failures > 0);
    iron__thread_pool_destroy(pool);
    assert_int_equal(books.out, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_workers_do_not_enter),
        cmocka_unit_test(every_index_exactly_once),
        cmocka_unit_test(threads_without_a_task_wait),
        cmocka_unit_test(rounds_see_each_other),
        cmocka_unit_test(pools_are_reused),
        cmocka_unit_test(pools_are_independent),
        cmocka_unit_test(created_and_destroyed_unused),
        cmocka_unit_test(destroyed_right_after_a_run),
        cmocka_unit_test(threads_block_signals),
        cmocka_unit_test(pieces_run_once_and_in_order),
        cmocka_unit_test(first_failure_wins),
        cmocka_unit_test(progress_can_cancel),
        cmocka_unit_test(cancelling_stops_running_pieces),
        cmocka_unit_test(lowest_end_of_pieces_counts),
        cmocka_unit_test(no_memory_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
