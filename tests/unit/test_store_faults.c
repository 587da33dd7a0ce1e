/* SPDX-License-Identifier: MIT */
/*
 * test_store_faults.c: the disk fails, at every write and every sync in turn, once or for good.
 * What was acknowledged is there afterwards; what was not is there wholly or not at all; and from
 * the failure on nothing is taken any more.
 */
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

static iron__plan plan_of_test(void) {
    iron__plan plan = small_plan("hit");

    plan.batch = 4;
    return plan;
}

static int make_oracle(void **state) {
    iron__plan plan = plan_of_test();
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

/* Feeds until something is refused; how many were acknowledged. */
static size_t feed_all(iron__store *store, iron__kept *kept) {
    size_t acknowledged = 0;
    bool has_failed = false;

    for (size_t k = 0; k < FEEDS; k++) {
        iron__feed_answer answer;
        iron_error err = {0};
        iron__feed_outcome outcome =
            feed_as(kept, body_how(k), tokens + k, 4 * body_tokens(k), &answer, &err);

        assert_true(outcome == IRON_FEED_DONE || outcome == IRON_FEED_READ_ONLY);
        assert_false(has_failed && outcome == IRON_FEED_DONE);
        has_failed = outcome == IRON_FEED_READ_ONLY;
        acknowledged += outcome == IRON_FEED_DONE;
        if (outcome == IRON_FEED_DONE)
            assert_answer(&answer, &wanted[k + 1]);
        else
            assert_true(err.text[0] && iron__store_failure(store, NULL) != IRON_OK);
    }
    return acknowledged;
}

/* Read-only: it can still be looked at, and nothing can be changed. */
static void assert_read_only(iron__store *store, iron__kept *kept, size_t acknowledged) {
    iron__plan other = small_plan("another");
    iron__kept *none;
    iron_error err = {0};

    assert_int_not_equal(iron__store_failure(store, &err), IRON_OK);
    assert_true(err.text[0] != '\0');
    assert_view(kept, &wanted[acknowledged]);
    assert_refused(iron__store_create(store, &other, &none, &err), IRON_E_IO, &err);
    assert_refused(iron__store_delete(store, kept, &err), IRON_E_IO, &err);
}

/* After reopening: what was acknowledged, or one more; and it goes on from there. */
static void assert_recovered(const folder *place, size_t acknowledged) {
    iron__store *store = store_at(place);
    iron__kept *kept = found(store, "hit");
    size_t feeds = look_at(kept).feeds;

    assert_true(feeds == acknowledged || feeds == acknowledged + 1);
    assert_view(kept, &wanted[feeds]);
    for (size_t k = 0; k <= FEEDS; k++) { /* a client that does not know how far it came */
        iron__feed_answer answer;
        iron_error err = {0};
        feeding how = body_how(k);
        uint64_t at = wanted[k].tokens;
        iron__feed_outcome outcome;

        how.has_at = true;
        how.at = at;
        outcome = feed_as(kept, how, tokens + k, 4 * body_tokens(k), &answer, &err);
        if (k >= feeds)
            assert_int_equal(outcome, IRON_FEED_DONE);
        else
            assert_int_equal(outcome, how.key ? IRON_FEED_REPEATED : IRON_FEED_POSITION);
    }
    assert_view(kept, &wanted[FEEDS + 1]);
    iron__kept_release(kept);
    iron__store_close(store);
}

/* One run with the n-th call failing; false when there was no n-th call. */
static bool run_with_fault(unsigned n, bool is_lasting, int code) {
    iron__plan plan = plan_of_test();
    iron__store *store;
    iron__kept *kept;
    size_t acknowledged;
    bool was_hit;
    folder place;

    folder_make(&place);
    store = store_at_with(&place, (iron__store_options){.snapshot_batches = 3000});
    kept = make_engine(store, &plan);
    faults_arm(n, is_lasting, code);
    acknowledged = feed_all(store, kept);
    if (acknowledged < FEEDS)
        assert_read_only(store, kept, acknowledged);
    iron__kept_release(kept);
    iron__store_close(store); /* the fault may be in its snapshots or its last checkpoint */
    faults_disarm();
    was_hit = atomic_load(&faults.failed) > 0;
    assert_recovered(&place, acknowledged);
    folder_remove(&place);
    return was_hit;
}

static unsigned run_all(unsigned step, bool is_lasting, int code) {
    unsigned n = 1;

    while (run_with_fault(n, is_lasting, code))
        n += step;
    return n;
}

/* Each call in turn. */
static void a_write_or_sync_fails_once(void **state) {
    (void)state;
    assert_true(run_all(1, false, SQLITE_IOERR_WRITE) > 30);
}

/* Each third, but with a long test each. */
static void the_disk_fails_for_good(void **state) {
    (void)state;
    assert_true(run_all(is_long_test() ? 1 : 3, true, SQLITE_IOERR_WRITE) > 30);
}

static void the_disk_is_full(void **state) {
    (void)state;
    assert_true(run_all(is_long_test() ? 1 : 3, true, SQLITE_FULL) > 30);
}

/* A failing checkpoint is a failure too, though nobody waits for it: SQLite alone would try the
 * fsync again and believe it. */
static void a_failed_checkpoint_is_not_forgiven(void **state) {
    iron__plan plan = plan_of_test();
    iron__store *store;
    iron__kept *kept;
    iron_error err = {0};
    iron__feed_answer answer;
    size_t fed = 0;
    folder place;

    (void)state;
    folder_make(&place);
    store = store_at(&place);
    kept = make_engine(store, &plan);
    faults.only_main = true;
    faults_arm(1, false, SQLITE_IOERR_WRITE); /* once: a second try would succeed */
    while (fed < 40000 &&
           feed_as(kept, (feeding){.key = NULL}, tokens, 4, &answer, &err) == IRON_FEED_DONE)
        fed++;
    assert_true(fed > 100 && fed < 40000 && atomic_load(&faults.calls) == 1);
    faults.only_main = false;
    assert_int_not_equal(iron__store_failure(store, &err), IRON_OK);
    assert_true(look_at(kept).feeds == fed);
    iron__kept_release(kept);
    iron__store_close(store);
    faults_disarm();
    store = store_at(&place);
    kept = found(store, "hit");
    assert_true(look_at(kept).feeds == fed); /* all were acknowledged before it */
    iron__kept_release(kept);
    iron__store_close(store);
    folder_remove(&place);
}

/* The disk fails while the store is opened: refused, and nothing is lost by that. */
static void opening_fails_and_harms_nothing(void **state) {
    iron__plan plan = plan_of_test();
    iron__store *store;
    iron__kept *kept;
    bool was_hit = true;
    folder place;

    (void)state;
    folder_make(&place);
    store = store_at(&place);
    kept = make_engine(store, &plan);
    feed_done(kept, body_how(0), tokens, 4 * body_tokens(0));
    iron__kept_release(kept);
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
        kept = found(store, "hit");
        assert_view(kept, &wanted[1]);
        iron__kept_release(kept);
        iron__store_close(store);
    }
    folder_remove(&place);
}

/* The first opening, which makes the file, interrupted anywhere: the next one succeeds. */
static void making_fails_and_is_made_again(void **state) {
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_or_sync_fails_once),
        cmocka_unit_test(the_disk_fails_for_good),
        cmocka_unit_test(the_disk_is_full),
        cmocka_unit_test(a_failed_checkpoint_is_not_forgiven),
        cmocka_unit_test(opening_fails_and_harms_nothing),
        cmocka_unit_test(making_fails_and_is_made_again),
    };

    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1); /* hundreds of stores, and no disk is needed for this */
    return cmocka_run_group_tests(tests, make_oracle, drop_oracle);
}
