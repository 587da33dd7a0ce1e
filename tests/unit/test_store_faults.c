/* SPDX-License-Identifier: MIT */
/*
 * test_store_faults.c: disk failures, at every write and every sync in turn, once or permanently.
 * Acknowledged feeds are present afterwards; others are present completely or not at all; and after
 * the failure nothing more is accepted.
 *
 * Other calls fail on demand as well: creating the writer's thread, reading SQLite's answer,
 * reading the nodes from a device.
 */
#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>

#include <iron/iron.h>

static bool is_thread_refused, is_text_missing, is_device_lost;

static int create_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                         void *context) {
    return is_thread_refused ? EAGAIN : pthread_create(thread, attributes, run, context);
}

static const unsigned char *column_text(sqlite3_stmt *s, int at) {
    bool is_inspection = strstr(sqlite3_sql(s), "integrity_check") != NULL;

    return is_text_missing && is_inspection ? NULL : sqlite3_column_text(s, at);
}

static const float *potentials_of(iron_engine *engine) {
    return is_device_lost ? NULL : iron_engine_potentials(engine);
}

#define pthread_create         create_thread
#define sqlite3_column_text    column_text
#define iron_engine_potentials potentials_of
#include "store/engines.c"
#include "store/store.c"
#undef pthread_create
#undef sqlite3_column_text
#undef iron_engine_potentials

#include "failing_vfs.h"
#include "store_support.h"

#define FEEDS 6u

static uint32_t *tokens;
static iron_report wanted[FEEDS + 2]; /* after so many feeds */

/* The bodies of the scenario: small, with a key, large ones with a block each. */
static size_t body_tokens(size_t k) {
    static const size_t counts[FEEDS + 1] = {3, 40, 20000, 1, 16500, 7, 11};

    return counts[k];
}

static feeding body_how(size_t k) {
    static const char *const keys[FEEDS + 1] = {NULL, "a", NULL, "b", "c", NULL, NULL};

    return (feeding){.key = keys[k], .piece = 30000};
}

static iron__store_plan plan_of_test(void) {
    iron__store_plan plan = small_plan("hit");

    plan.batch = 4;
    return plan;
}

static int make_oracle(void **state) {
    iron__store_plan plan = plan_of_test();
    iron_engine *direct = direct_engine(&plan);

    (void)state;
    tokens = grab_tokens(1, 1000, 20100);
    wanted[0] = report_now(direct);
    for (size_t k = 0; k <= FEEDS; k++)
        wanted[k + 1] = direct_feed(direct, IRON_DTYPE_U32, tokens + k, body_tokens(k));
    iron_engine_destroy(direct);
    failing_vfs_register();
    return 0;
}

static int drop_oracle(void **state) {
    (void)state;
    free(tokens);
    return 0;
}

/* Feeds until a feed is refused; returns how many were acknowledged. */
static size_t feed_all(iron__store *store, iron__store_engine *entry) {
    size_t acknowledged = 0;
    bool has_failed = false;

    for (size_t k = 0; k < FEEDS; k++) {
        iron__feed_answer answer;
        iron_error err = {0};
        iron__feed_outcome outcome =
            feed_as(entry, body_how(k), tokens + k, 4 * body_tokens(k), &answer, &err);

        assert_true(outcome == IRON_FEED_DONE || outcome == IRON_FEED_READ_ONLY ||
                    (outcome == IRON_FEED_FULL && faults.code == SQLITE_FULL));
        assert_false(has_failed && outcome == IRON_FEED_DONE);
        has_failed = outcome != IRON_FEED_DONE;
        acknowledged += outcome == IRON_FEED_DONE;
        if (outcome == IRON_FEED_DONE)
            assert_answer(&answer, &wanted[k + 1]);
        else
            assert_true(err.text[0] && (iron__store_failure(store, NULL) != IRON_OK ||
                                        iron__store_full(store, NULL) != IRON_OK));
    }
    return acknowledged;
}

/* Read-only: it can be read, but not changed. */
static void assert_read_only(iron__store *store, iron__store_engine *entry, size_t acknowledged) {
    iron__store_plan other = small_plan("another");
    iron__store_engine *none;
    iron_error err = {0};

    assert_true(iron__store_failure(store, &err) != IRON_OK ||
                iron__store_full(store, &err) != IRON_OK);
    assert_true(err.text[0] != '\0');
    assert_view(entry, &wanted[acknowledged]);
    assert_refused(iron__store_create(store, &other, &none, &err), IRON_E_IO, &err);
    assert_refused(iron__store_delete(store, entry, &err), IRON_E_IO, &err);
}

/* After reopening: all acknowledged feeds, or one more; and feeding continues from there. */
static void assert_recovered(const folder *place, size_t acknowledged) {
    iron__store *store = store_at(place);
    iron__store_engine *entry = found(store, "hit");
    size_t feeds = look_at(entry).feeds;

    assert_true(feeds == acknowledged || feeds == acknowledged + 1);
    assert_view(entry, &wanted[feeds]);
    for (size_t k = 0; k <= FEEDS; k++) { /* a client that does not know how many were fed */
        iron__feed_answer answer;
        iron_error err = {0};
        feeding how = body_how(k);
        uint64_t at = wanted[k].tokens;
        iron__feed_outcome outcome;

        how.has_at = true;
        how.at = at;
        outcome = feed_as(entry, how, tokens + k, 4 * body_tokens(k), &answer, &err);
        if (k >= feeds)
            assert_int_equal(outcome, IRON_FEED_DONE);
        else
            assert_int_equal(outcome, how.key ? IRON_FEED_REPEATED : IRON_FEED_POSITION);
    }
    assert_view(entry, &wanted[FEEDS + 1]);
    iron__store_engine_release(entry);
    iron__store_close(store);
}

/* One run with the n-th call failing; false when there was no n-th call. */
static bool run_with_fault(unsigned n, bool is_lasting, int code) {
    iron__store_plan plan = plan_of_test();
    iron__store *store;
    iron__store_engine *entry;
    size_t acknowledged;
    bool was_hit;
    folder place;

    folder_make(&place);
    store = store_at_with(&place, (iron__store_options){.snapshot_batches = 3000});
    entry = make_engine(store, &plan);
    faults_arm(n, is_lasting, code);
    acknowledged = feed_all(store, entry);
    if (acknowledged < FEEDS)
        assert_read_only(store, entry, acknowledged);
    iron__store_engine_release(entry);
    iron__store_close(store); /* the fault may be in its snapshots or its last checkpoint */
    faults_disarm();
    was_hit = atomic_load(&faults.failed) > 0;
    assert_recovered(&place, acknowledged);
    folder_remove(&place);
    return was_hit;
}

/* The thread sanitizer looks for races, not for places: a fifth of them will do. */
#ifdef __SANITIZE_THREAD__
#define STEP_FACTOR 5u
#else
#define STEP_FACTOR 1u
#endif

static unsigned run_all(unsigned step, bool is_lasting, int code) {
    unsigned n = 1;

    while (run_with_fault(n, is_lasting, code))
        n += STEP_FACTOR * step;
    return n;
}

/* Each call in turn. */
static void a_write_or_sync_fails_once(void **state) {
    (void)state;
    assert_true(run_all(1, false, SQLITE_IOERR_WRITE) > 30);
}

/* Every third call, with a longer check each. */
static void the_disk_fails_for_good(void **state) {
    (void)state;
    assert_true(run_all(is_long_test() ? 1 : 3, true, SQLITE_IOERR_WRITE) > 30);
}

static void the_disk_is_full(void **state) {
    (void)state;
    assert_true(run_all(is_long_test() ? 1 : 3, true, SQLITE_FULL) > 30);
}

/* Writes fail for lack of space from the n-th on; then there is room. Each feed is refused as a
 * whole, and succeeds when it is sent again to the same store. */
static void there_is_room_again(void **state) {
    iron__store_plan plan = plan_of_test();

    (void)state;
    for (unsigned n = 1; n <= 30; n += is_long_test() ? 1 : 4) {
        iron__store *store;
        iron__store_engine *entry;
        folder place;
        size_t refused = 0;

        folder_make(&place);
        store = store_at_with(&place, (iron__store_options){.snapshot_batches = 3000});
        entry = make_engine(store, &plan);
        for (size_t k = 0; k < FEEDS; k++) {
            iron__feed_outcome outcome;
            iron__feed_answer answer;
            iron_error err = {0};

            faults.only_writes = true;
            faults_arm(n, true, SQLITE_FULL);
            outcome = feed_as(entry, body_how(k), tokens + k, 4 * body_tokens(k), &answer, &err);
            faults_disarm();
            faults.only_writes = false;
            assert_int_equal(iron__store_failure(store, &err), IRON_OK);
            assert_true(outcome == IRON_FEED_DONE || outcome == IRON_FEED_FULL);
            if (outcome == IRON_FEED_FULL) {
                refused++;
                assert_view(entry, &wanted[k]);
                while (outcome == IRON_FEED_FULL) /* until the writer looks again */
                    outcome =
                        feed_as(entry, body_how(k), tokens + k, 4 * body_tokens(k), &answer, &err);
            }
            assert_int_equal(outcome, IRON_FEED_DONE);
            assert_answer(&answer, &wanted[k + 1]);
        }
        assert_true(refused > 0 || n > 1);
        iron__store_engine_release(entry);
        iron__store_close(store);
        assert_recovered(&place, FEEDS);
        folder_remove(&place);
    }
}

/* A failed checkpoint is a failure, although no caller waits for it: SQLite alone would retry the
 * fsync and trust it. */
static void a_failed_checkpoint_is_a_failure(void **state) {
    iron__store_plan plan = plan_of_test();
    iron__store *store;
    iron__store_engine *entry;
    iron_error err = {0};
    iron__feed_answer answer;
    size_t fed = 0;
    folder place;

    (void)state;
    folder_make(&place);
    store = store_at(&place);
    entry = make_engine(store, &plan);
    faults.only_main = true;
    faults_arm(1, false, SQLITE_IOERR_WRITE); /* once: a retry would succeed */
    while (fed < 40000 &&
           feed_as(entry, (feeding){.key = NULL}, tokens, 4, &answer, &err) == IRON_FEED_DONE)
        fed++;
    assert_true(fed > 100 && fed < 40000 && atomic_load(&faults.calls) == 1);
    faults.only_main = false;
    assert_int_not_equal(iron__store_failure(store, &err), IRON_OK);
    assert_true(look_at(entry).feeds == fed);
    iron__store_engine_release(entry);
    iron__store_close(store);
    faults_disarm();
    store = store_at(&place);
    entry = found(store, "hit");
    assert_true(look_at(entry).feeds == fed); /* all were acknowledged before it */
    iron__store_engine_release(entry);
    iron__store_close(store);
    folder_remove(&place);
}

/* The disk fails while the store is opened: an error, and nothing is lost. */
static void failed_opening_loses_nothing(void **state) {
    iron__store_plan plan = plan_of_test();
    iron__store *store;
    iron__store_engine *entry;
    bool was_hit = true;
    folder place;

    (void)state;
    folder_make(&place);
    store = store_at(&place);
    entry = make_engine(store, &plan);
    feed_done(entry, body_how(0), tokens, 4 * body_tokens(0));
    iron__store_engine_release(entry);
    iron__store_close(store);
    for (unsigned n = 1; was_hit; n++) {
        iron__store_options options = {.directory = place.path};
        iron_error err = {0};

        faults_arm(n, true, SQLITE_IOERR_WRITE);
        if (iron__store_open(&options, &store, &err) == IRON_OK)
            iron__store_close(store);
        else
            assert_true(err.text[0] != '\0');
        faults_disarm();
        was_hit = atomic_load(&faults.failed) > 0;
        store = store_at(&place);
        entry = found(store, "hit");
        assert_view(entry, &wanted[1]);
        iron__store_engine_release(entry);
        iron__store_close(store);
    }
    folder_remove(&place);
}

/* The first opening, which creates the file, fails anywhere: the next one succeeds. */
static void failed_creation_can_be_repeated(void **state) {
    bool was_hit = true;

    (void)state;
    for (unsigned n = 1; was_hit; n++) {
        iron__store *store = NULL;
        iron__store_options options;
        iron_error err = {0};
        folder place;

        folder_make(&place);
        options = (iron__store_options){.directory = place.path};
        faults_arm(n, true, SQLITE_FULL);
        if (iron__store_open(&options, &store, &err) == IRON_OK)
            iron__store_close(store);
        faults_disarm();
        was_hit = atomic_load(&faults.failed) > 0;
        iron__store_close(store_at(&place));
        folder_remove(&place);
    }
}

static void open_without(bool *fault, iron_status want, iron_error *err) {
    folder place;
    iron__store_options options;
    iron__store *store = NULL;

    folder_make(&place);
    options = (iron__store_options){.directory = place.path};
    *fault = true;
    assert_refused(iron__store_open(&options, &store, err), want, err);
    *fault = false;
    assert_null(store);
    iron__store_close(store_at(&place));
    folder_remove(&place);
}

/* pthread_create returns its error: errno may hold anything. */
static void no_thread_for_the_writer(void **state) {
    iron_error err = {0};

    (void)state;
    errno = ENOENT;
    open_without(&is_thread_refused, IRON_E_NOMEM, &err);
    assert_int_equal(err.native, EAGAIN);
    assert_says(&err, strerror(EAGAIN));
}

/* SQLite returns no text when memory runs out. */
static void inspection_without_a_text(void **state) {
    iron_error err = {0};

    (void)state;
    open_without(&is_text_missing, IRON_E_NOMEM, &err);
    assert_says(&err, "out of memory");
}

/* The device fails after an engine was created on it, or during a feed: this gives an error, and
 * nothing else. */
static void a_device_is_lost(void **state) {
    iron__store_plan plan = plan_of_test(), second;
    iron__store_engine *entry, *none = NULL;
    iron__feed_answer answer;
    iron__store *store;
    iron_error err = {0};
    folder place;

    (void)state;
    folder_make(&place);
    store = store_at(&place);
    entry = make_engine(store, &plan);
    second = small_plan("second");
    is_device_lost = true;
    assert_int_equal(iron__store_create(store, &second, &none, &err), IRON_E_IO);
    assert_null(none);
    for (size_t k = 0; k < FEEDS; k++)
        assert_int_equal(feed_as(entry, body_how(k), tokens, 4 * body_tokens(k), &answer, &err),
                         IRON_FEED_FAILED);
    is_device_lost = false;
    assert_int_equal(look_at(entry).tokens, 0);
    assert_int_equal(iron__store_failure(store, &err), IRON_OK);
    feed_done(entry, body_how(0), tokens, 4 * body_tokens(0));
    iron__store_engine_release(make_engine(store, &second));
    iron__store_engine_release(entry);
    iron__store_close(store);
    folder_remove(&place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_or_sync_fails_once),
        cmocka_unit_test(the_disk_fails_for_good),
        cmocka_unit_test(the_disk_is_full),
        cmocka_unit_test(there_is_room_again),
        cmocka_unit_test(a_failed_checkpoint_is_a_failure),
        cmocka_unit_test(failed_opening_loses_nothing),
        cmocka_unit_test(failed_creation_can_be_repeated),
        cmocka_unit_test(no_thread_for_the_writer),
        cmocka_unit_test(inspection_without_a_text),
        cmocka_unit_test(a_device_is_lost),
    };

    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1); /* hundreds of stores; this needs no disk */
    return cmocka_run_group_tests(tests, make_oracle, drop_oracle);
}
