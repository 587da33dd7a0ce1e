/* SPDX-License-Identifier: MIT */
/*
 * test_store_damage.c: changed bytes in the database. Opening and reading it then either fails or
 * gives the exact result: never a wrong one, never a crash. A used key is never forgotten.
 */
#include "store/store_internal.h"
#include "store_support.h"

#define MOST_BATCHES 6000u

static folder place;
static file_name database;
static char *content;
static size_t content_bytes;
static uint32_t *tokens;

/* The contents of the intact store. */
static iron__store_engine_view views[2];
static iron__batch_row *rows[2];
static size_t row_counts[2];
static iron__feed_answer first_answers[3];

static const size_t keyed_tokens[3] = {5, 17000, 30};

static void feed_some(iron__store *store) {
    iron__store_plan plans[2] = {small_plan("left"), small_plan("right")};

    plans[1].batch = 4;
    for (size_t e = 0; e < 2; e++) {
        iron__store_engine *entry = make_engine(store, &plans[e]);

        for (size_t k = 0; k < 30; k++)
            feed_done(entry, (feeding){.key = NULL}, tokens + k, 4 * (k + 1));
        for (size_t k = 0; e == 1 && k < 3; k++) {
            char key[20];

            snprintf(key, sizeof key, "key-%zu", k);
            first_answers[k] = feed_done(entry, (feeding){.key = key}, tokens, 4 * keyed_tokens[k]);
        }
        for (size_t k = 0; k < 12; k++)
            feed_done(entry, (feeding){.key = NULL}, tokens + k, 4 * (k + 1));
        iron__store_engine_release(entry);
    }
}

static void note(iron__store *store) {
    static const char *const names[] = {"left", "right"};

    for (size_t e = 0; e < 2; e++) {
        iron__store_engine *entry = found(store, names[e]);

        views[e] = look_at(entry);
        rows[e] = grab(MOST_BATCHES * sizeof *rows[e]);
        assert_int_equal(
            iron__store_engine_batches(entry, 0, rows[e], MOST_BATCHES, &row_counts[e], NULL, NULL),
            IRON_OK);
        assert_true(row_counts[e] == views[e].batches && row_counts[e] < MOST_BATCHES);
        iron__store_engine_release(entry);
    }
}

static int make_content(void **state) {
    iron__store *store;

    (void)state;
    folder_make(&place);
    tokens = grab_tokens(1, 1000, 20000);
    store = store_at_with(&place, (iron__store_options){.snapshot_batches = 3000});
    feed_some(store);
    iron__store_close(store);
    store = store_at(&place); /* as loading and cleanup leave it */
    note(store);
    iron__store_close(store);
    database = name_in(&place, "iron.db");
    content = file_read(database.path, &content_bytes);
    return 0;
}

static int drop_content(void **state) {
    (void)state;
    free(content);
    free(tokens);
    free(rows[0]);
    free(rows[1]);
    folder_remove(&place);
    return 0;
}

static void assert_same_view(iron__store_engine *entry, const iron__store_engine_view *want) {
    iron__store_engine_view view = look_at(entry);

    assert_memory_equal(&view.plan, &want->plan, sizeof view.plan);
    assert_true(view.tokens == want->tokens && view.batches == want->batches);
    assert_true(view.sum == want->sum && view.xors == want->xors && view.state == want->state);
    assert_true(view.feeds == want->feeds && view.created_ms == want->created_ms);
    assert_string_equal(view.seal, want->seal);
}

static void assert_same_batches(iron__store_engine *entry, size_t e) {
    static iron__batch_row got[MOST_BATCHES];
    iron_error err = {0};
    size_t count;

    if (iron__store_engine_batches(entry, 0, got, MOST_BATCHES, &count, NULL, &err) != IRON_OK) {
        assert_true(err.text[0] != '\0');
        return;
    }
    assert_int_equal(count, row_counts[e]);
    for (size_t k = 0; k < count; k++)
        assert_true(got[k].batch == rows[e][k].batch && got[k].position == rows[e][k].position &&
                    got[k].tokens == rows[e][k].tokens && got[k].sum == rows[e][k].sum &&
                    got[k].xors == rows[e][k].xors);
}

static void assert_keys_known(iron__store_engine *entry) {
    for (size_t k = 0; k < 3; k++) {
        iron__feed_answer answer;
        iron_error err = {0};
        char key[20];
        iron__feed_outcome outcome;

        snprintf(key, sizeof key, "key-%zu", k);
        outcome = feed_as(entry, (feeding){.key = key}, tokens, 4 * keyed_tokens[k], &answer, &err);
        if (outcome == IRON_FEED_FAILED || outcome == IRON_FEED_READ_ONLY)
            continue;
        assert_int_equal(outcome, IRON_FEED_REPEATED);
        assert_true(answer.state == first_answers[k].state &&
                    answer.tokens == first_answers[k].tokens);
    }
}

/* True if the store could not be opened. */
static bool open_damaged(void) {
    iron__store_options options = {.directory = place.path, .accept_loss = true};
    iron__store *store = NULL;
    iron_error err = {0};

    if (iron__store_open(&options, &store, &err) != IRON_OK) {
        assert_true(err.text[0] != '\0' && !store);
        return true;
    }
    assert_int_equal(iron__store_list(store, NULL, 0), 2);
    for (size_t e = 0; e < 2; e++) {
        iron__store_engine *entry = found(store, e ? "right" : "left");

        assert_same_view(entry, &views[e]);
        assert_same_batches(entry, e);
        if (e == 1)
            assert_keys_known(entry);
        assert_same_view(entry, &views[e]);
        iron__store_engine_release(entry);
    }
    iron__store_close(store);
    return false;
}

static bool try_damage(size_t at, unsigned char change) {
    file_name log = name_in(&place, "iron.db-wal"), shm = name_in(&place, "iron.db-shm");
    bool refused;

    unlink(log.path);
    unlink(shm.path);
    content[at] = (char)((unsigned char)content[at] ^ change);
    file_write(database.path, content, content_bytes);
    refused = open_damaged();
    content[at] = (char)((unsigned char)content[at] ^ change);
    return refused;
}

/* Every byte of the file header and of every page header, and many others. */
static void changed_bytes_are_detected(void **state) {
    size_t step = is_long_test() ? 7 : 211, tried = 0, refused = 0;
    rng r = {99};

    (void)state;
    assert_true(content_bytes > 100000 && content_bytes % 4096 == 0);
    for (size_t at = 0; at < content_bytes; at++) {
        size_t in_page = at % 4096;
        bool is_header = at < 100 || (in_page < 12 && (is_long_test() || in_page % 4 == 3));

        if (!is_header && at % step != 0)
            continue;
        tried++;
        refused += try_damage(at, (unsigned char)(rng_below(&r, 3) ? 1u << rng_below(&r, 8) : 255));
    }
    assert_true(refused > tried / 20); /* most bytes of a page are free space, or old */
    assert_true(refused < tried);
}

/* Missing pages are detected. The end of the last page may be unused. */
static void cut_files_are_refused(void **state) {
    (void)state;
    for (size_t bytes = 0; bytes < content_bytes; bytes += 2048) {
        bool is_in_last = bytes > content_bytes - 4096;

        file_write(database.path, content, bytes);
        assert_true(open_damaged() || is_in_last);
    }
}

/* A page of zeros, as a disk returns after a lost write. */
static void lost_pages_are_refused_or_unused(void **state) {
    char page[4096];
    size_t refused = 0;

    (void)state;
    for (size_t at = 0; at < content_bytes; at += sizeof page) {
        memcpy(page, content + at, sizeof page);
        memset(content + at, 0, sizeof page);
        file_write(database.path, content, content_bytes);
        refused += open_damaged();
        memcpy(content + at, page, sizeof page);
    }
    assert_true(refused > 10);
}

/* A file that is too large to be checked before it is used: damage is found soon after, and the
 * store becomes read-only. An intact store stays writable. */
static void large_files_are_inspected_in_the_background(void **state) {
    iron__store_options options = {
        .directory = place.path, .inspected_bytes = 1, .accept_loss = true};
    size_t opened = 0;

    (void)state;
    for (size_t at = 0; at + 5 < content_bytes; at++) {
        bool is_key = at > 0 && memcmp(content + at, "key-1", 5) == 0;
        iron__store *store = NULL;
        iron_error err = {0};

        if (at > 0 && !is_key)
            continue;
        content[at + 4] = (char)(content[at + 4] ^ is_key);
        file_write(database.path, content, content_bytes);
        content[at + 4] = (char)(content[at + 4] ^ is_key);
        if (iron__store_open(&options, &store, &err) != IRON_OK)
            continue;
        opened++;
        while (!atomic_load(&store->inspection_is_over))
            usleep(1000);
        assert_int_equal(iron__store_failure(store, &err), is_key ? IRON_E_FORMAT : IRON_OK);
        if (is_key)
            assert_says(&err, "damaged");
        iron__store_close(store);
    }
    assert_true(opened >= 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_bytes_are_detected),
        cmocka_unit_test(cut_files_are_refused),
        cmocka_unit_test(lost_pages_are_refused_or_unused),
        cmocka_unit_test(large_files_are_inspected_in_the_background),
    };

    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1); /* a thousand stores; this needs no disk */
    return cmocka_run_group_tests(tests, make_content, drop_content);
}
