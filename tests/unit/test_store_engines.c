/* SPDX-License-Identifier: MIT */
/*
 * test_store_engines.c: creating, listing and deleting engines, and the cleanup; limits; waiting
 * for changes; stopping; and the files and directories that a store refuses to open.
 */
#include "store/store_internal.h"
#include "store_rows.h"
#include "store_support.h"

#include <pthread.h>
#include <sys/file.h>
#include <sys/wait.h>

static void names_are_checked(void **state) {
    static const char *const good[] = {"a", "Z9", "0", "a.b_c-d", "aa..--__"};
    static const char *const bad[] = {"", ".a", "-a", "_a", "a/b", "a b", "\xc3\xa4", "a\n", "a%"};
    char name[IRON_ENGINE_NAME_MAX + 2];

    (void)state;
    for (size_t k = 0; k < COUNT(good); k++)
        assert_true(iron__engine_name_is_valid(good[k]));
    for (size_t k = 0; k < COUNT(bad); k++)
        assert_false(iron__engine_name_is_valid(bad[k]));
    memset(name, 'n', sizeof name);
    name[IRON_ENGINE_NAME_MAX + 1] = '\0';
    assert_false(iron__engine_name_is_valid(name));
    name[IRON_ENGINE_NAME_MAX] = '\0';
    assert_true(iron__engine_name_is_valid(name));
}

static void assert_names(iron__store *store, const char *const *names, size_t count) {
    iron__store_engine *all[20];

    assert_int_equal(iron__store_list(store, all, COUNT(all)), count);
    for (size_t k = 0; k < count; k++) {
        assert_string_equal(look_at(all[k]).plan.name, names[k]);
        iron__store_engine_release(all[k]);
    }
}

static void engines_are_created_and_deleted(void **state) {
    static const char *const three[] = {"a", "b", "c"}, *const two[] = {"a", "c"};
    iron__store *store = store_at(&place);
    iron__store_plan plan;
    iron__store_engine *b, *again = NULL, *entry;
    uint32_t token = 7;
    iron__feed_answer answer;
    iron_error err;

    (void)state;
    for (const char *name = "cab"; *name; name++) {
        char text[2] = {*name, '\0'};

        plan = small_plan(text);
        iron__store_engine_release(make_engine(store, &plan));
    }
    assert_names(store, three, 3);
    assert_refused(iron__store_create(store, &plan, &again, &err), IRON_E_STATE, &err);
    assert_null(again);
    b = found(store, "b");
    feed_done(b, (feeding){.key = NULL}, &token, 4);
    assert_ok(iron__store_delete(store, b, &err), &err);
    assert_refused(iron__store_delete(store, b, &err), IRON_E_STATE, &err);
    assert_null(iron__store_find(store, "b"));
    assert_true(look_at(b).is_deleted);
    assert_int_equal(feed_as(b, (feeding){.key = NULL}, &token, 4, &answer, &err), IRON_FEED_GONE);
    assert_names(store, two, 2);
    entry = make_engine(
        store, &plan); /* the name is free at once, and the new engine is a different one */
    assert_true(look_at(entry).tokens == 0);
    iron__store_engine_release(b);
    iron__store_engine_release(entry);
    iron__store_close(store);
    store = store_at(&place);
    assert_names(store, three, 3);
    entry = found(store, "b");
    assert_true(look_at(entry).tokens == 0 && !look_at(entry).is_deleted);
    iron__store_engine_release(entry);
    iron__store_close(store);
}

static void plans_are_stored(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("planned");
    iron__store_engine *entry;
    iron__store_engine_view before, after;

    (void)state;
    plan.positions = IRON_POSITIONS_BATCH;
    plan.lattice_count = 3;
    plan.lattice[0] = 5;
    plan.lattice[1] = 50;
    plan.lattice[2] = 500;
    strcpy(plan.mode, "scalar");
    entry = make_engine(store, &plan);
    before = look_at(entry);
    assert_string_equal(before.plan.mode, "scalar");
    assert_true(before.device[0] != '\0' && before.created_ms > 0);
    iron__store_engine_release(entry);
    iron__store_close(store);
    store = store_at(&place);
    entry = found(store, "planned");
    after = look_at(entry);
    assert_memory_equal(&before.plan, &after.plan, sizeof before.plan);
    assert_true(before.created_ms == after.created_ms && before.state == after.state);
    iron__store_engine_release(entry);
    iron__store_close(store);
}

static void plans_are_refused(void **state) {
    iron__store *store =
        store_at_with(&place, (iron__store_options){.engines_max = 2, .nodes_max = 1000});
    iron__store_plan plan = small_plan("x");
    iron__store_engine *one, *two, *none;
    iron_error err;

    (void)state;
    strcpy(plan.name, "no/name");
    assert_refused(iron__store_create(store, &plan, &none, &err), IRON_E_ARG, &err);
    plan = small_plan("x");
    plan.vocab = 1;
    assert_refused(iron__store_create(store, &plan, &none, &err), IRON_E_ARG, &err);
    plan = small_plan("x");
    strcpy(plan.mode, "fastest");
    assert_int_not_equal(iron__store_create(store, &plan, &none, &err), IRON_OK);
    plan = small_plan("x");
    strcpy(plan.backend, "cuda");
    assert_refused(iron__store_create(store, &plan, &none, &err), IRON_E_UNSUPPORTED, &err);
    plan = small_plan("x");
    plan.nodes = 1001;
    assert_refused(iron__store_create(store, &plan, &none, &err), IRON_E_NOMEM, &err);
    plan.nodes = 600;
    one = make_engine(store, &plan);
    strcpy(plan.name, "y");
    assert_refused(iron__store_create(store, &plan, &none, &err), IRON_E_NOMEM, &err);
    plan.nodes = 400;
    two = make_engine(store, &plan);
    plan = small_plan("z");
    plan.nodes = 1;
    assert_refused(iron__store_create(store, &plan, &none, &err), IRON_E_NOMEM, &err);
    assert_ok(iron__store_delete(store, one, &err), &err);
    iron__store_engine_release(one);
    one = make_engine(store, &plan);
    iron__store_engine_release(one);
    iron__store_engine_release(two);
    iron__store_close(store);
    /* reduced limits do not apply to stored engines */
    store = store_at_with(&place, (iron__store_options){.engines_max = 1, .nodes_max = 10});
    assert_int_equal(iron__store_list(store, NULL, 0), 2);
    iron__store_close(store);
}

/* Waits until the writer has removed everything. */
static bool becomes_empty(const char *table) {
    for (int k = 0; k < 30000 && count_rows(table) > 0; k++)
        usleep(10000);
    return count_rows(table) == 0;
}

/* The amount that an upload reduces at once, with batches of one token, and its number of
 * blocks. */
#define BUFFER_TOKENS (IRON_UPLOAD_BUFFER_BYTES / sizeof(uint32_t))
#define BUFFER_BLOCKS (BUFFER_TOKENS / IRON_BLOCK_BATCHES)

static void rows_without_an_owner_are_removed(void **state) {
    iron__store *store = store_at_with(&place, (iron__store_options){.snapshot_batches = 500});
    iron__store_plan plan = small_plan("gone");
    uint32_t *tokens = grab_tokens(1, 1000, BUFFER_TOKENS);
    iron__feed_request request = {.dtype = IRON_DTYPE_U32,
                                  .expected_bytes = 2 * IRON_UPLOAD_BUFFER_BYTES};
    iron__feed_answer answer;
    iron__feed *feed;
    iron__store_engine *entry;
    iron_error err;

    (void)state;
    plan.batch = 1;
    entry = make_engine(store, &plan);
    for (size_t k = 0; k < 1500; k++)
        feed_done(entry, (feeding){.key = NULL}, tokens, 4);
    feed_done(entry, (feeding){.key = NULL}, tokens, 200000);
    /* the blocks of an open upload stay, */
    assert_int_equal(iron__feed_begin(entry, &request, &feed, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_take(feed, tokens, IRON_UPLOAD_BUFFER_BYTES, &answer, &err),
                     IRON_FEED_DONE);
    assert_int_equal(count_rows("blocks"), 12 + BUFFER_BLOCKS);
    assert_ok(iron__store_delete(store, entry, &err), &err);
    assert_true(becomes_empty("feeds") && becomes_empty("snapshots"));
    for (int k = 0; k < 30000 && count_rows("blocks") > BUFFER_BLOCKS; k++)
        usleep(10000);
    assert_int_equal(count_rows("blocks"), BUFFER_BLOCKS);
    /* and are removed when it is abandoned */
    iron__feed_abandon(feed);
    assert_true(becomes_empty("blocks"));
    assert_int_equal(count_rows("engines"), 0);
    iron__store_engine_release(entry);
    iron__store_close(store);
    free(tokens);
}

typedef struct load {
    iron__store_engine *entry;
    atomic_bool is_over;
} load;

static void *feed_on(void *context) {
    load *c = context;
    uint32_t token = 7;

    while (!atomic_load(&c->is_over))
        feed_done(c->entry, (feeding){.at = 0}, &token, sizeof token);
    return NULL;
}

static uint64_t commits_of(iron__store *store) {
    iron__store_counts counts;

    iron__store_count(store, &counts, NULL);
    return counts.commits;
}

/* There are always waiting jobs; the twenty portions are still removed. */
static void deleted_data_is_removed_under_load(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan busy = small_plan("busy"), gone = small_plan("gone");
    load c = {.entry = make_engine(store, &busy)};
    iron__store_engine *entry = make_engine(store, &gone);
    pthread_t threads[64];
    uint32_t token = 7;
    uint64_t begun;
    iron_error err = {0};

    (void)state;
    for (int k = 0; k < 1280; k++)
        feed_done(entry, (feeding){.at = 0}, &token, sizeof token);
    for (size_t k = 0; k < COUNT(threads); k++)
        assert_int_equal(pthread_create(&threads[k], NULL, feed_on, &c), 0);
    assert_ok(iron__store_delete(store, entry, &err), &err);
    begun = commits_of(store);
    while (count_rows("feeds WHERE engine = 2") > 0)
        assert_true(commits_of(store) - begun < 1500);
    atomic_store(&c.is_over, true);
    for (size_t k = 0; k < COUNT(threads); k++)
        pthread_join(threads[k], NULL);
    iron__store_engine_release(entry);
    iron__store_engine_release(c.entry);
    iron__store_close(store);
}

/* Left by a process that was killed. */
static void remains_are_removed_at_start(void **state) {
    uint32_t *tokens = grab_tokens(1, 1000, BUFFER_TOKENS);
    iron__store *store;
    iron__store_engine *entry;
    int status;
    pid_t child = fork();

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        iron__store_plan plan = small_plan("left");
        iron__feed_request request = {.dtype = IRON_DTYPE_U32,
                                      .expected_bytes = 2 * IRON_UPLOAD_BUFFER_BYTES};
        iron__feed_answer answer;
        iron__feed *feed;

        plan.batch = 1;
        store = store_at(&place);
        entry = make_engine(store, &plan);
        feed_done(entry, (feeding){.key = NULL}, tokens, 100000);
        if (iron__feed_begin(entry, &request, &feed, &answer, NULL) != IRON_FEED_DONE ||
            iron__feed_take(feed, tokens, IRON_UPLOAD_BUFFER_BYTES, &answer, NULL) !=
                IRON_FEED_DONE)
            _exit(1);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(count_rows("blocks"), 6 + BUFFER_BLOCKS);
    store = store_at(&place);
    for (int k = 0; k < 30000 && count_rows("blocks") > 6; k++)
        usleep(10000);
    assert_int_equal(count_rows("blocks"), 6);
    entry = found(store, "left");
    assert_true(look_at(entry).tokens == 25000);
    /* new blocks do not mix with old ones */
    feed_done(entry, (feeding){.key = NULL}, tokens, 200000);
    assert_int_equal(count_rows("blocks"), 18);
    iron__store_engine_release(entry);
    iron__store_close(store);
    free(tokens);
}

static void a_second_store_is_refused(void **state) {
    iron__store *store = store_at(&place), *second = NULL;
    iron__store_options options = {.directory = place.path};
    char pid[32];
    iron_error err;

    (void)state;
    assert_refused(iron__store_open(&options, &second, &err), IRON_E_STATE, &err);
    assert_null(second);
    assert_says(&err, "is in use by another iron serve");
    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    assert_says(&err, pid);
    iron__store_close(store);
    iron__store_close(store_at(&place));
}

static void patch(const char *path, long offset, const void *bytes, size_t count) {
    FILE *file = fopen(path, "r+b");

    assert_non_null(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

static void assert_open_says(const char *word, iron_status status) {
    iron__store_options options = {.directory = place.path};
    iron__store *store = NULL;
    iron_error err;

    assert_refused(iron__store_open(&options, &store, &err), status, &err);
    assert_null(store);
    assert_says(&err, word);
}

static void other_files_are_refused(void **state) {
    static const unsigned char two[4] = {0, 0, 0, 2}, zero[4], one[4] = {0, 0, 0, 1};
    static const unsigned char id[4] = {'I', 'R', 'O', 'N'};
    file_name db = name_in(&place, "iron.db"), log = name_in(&place, "iron.db-wal");
    size_t bytes;
    char *content;

    (void)state;
    iron__store_close(store_at(&place));
    content = file_read(db.path, &bytes);
    patch(db.path, 60, two, 4);
    assert_open_says("written by a newer iron (format 2, this one knows 1); use that one",
                     IRON_E_FORMAT);
    patch(db.path, 60, zero, 4);
    assert_open_says("damaged", IRON_E_FORMAT);
    patch(db.path, 60, one, 4);
    patch(db.path, 68, zero, 4);
    assert_open_says("another program", IRON_E_FORMAT);
    patch(db.path, 68, id, 4);
    iron__store_close(store_at(&place));
    /* an empty file is not created again, and no file is changed */
    file_write(db.path, "", 0);
    assert_open_says("damaged", IRON_E_FORMAT);
    assert_file_holds(db.path, "", 0);
    file_write(db.path, "these are no tables", 19);
    assert_open_says("not a database", IRON_E_FORMAT);
    assert_file_holds(db.path, "these are no tables", 19);
    file_write(db.path, content, bytes / 4096 / 2 * 4096);
    assert_open_says("damaged", IRON_E_FORMAT);
    unlink(db.path);
    file_write(log.path, content, bytes);
    assert_open_says("is missing, but its log is there", IRON_E_FORMAT);
    unlink(log.path);
    iron__store_close(store_at(&place)); /* now it is new */
    free(content);
}

static void directories_are_created_for_the_owner(void **state) {
    file_name inner = name_in(&place, "inner"), file;
    iron__store_options options = {.directory = inner.path};
    iron__store *store = NULL;
    struct stat info;
    iron_error err;

    (void)state;
    assert_ok(iron__store_open(&options, &store, &err), &err);
    assert_int_equal(stat(inner.path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    snprintf(file.path, sizeof file.path, "%.300s/iron.db", inner.path);
    assert_int_equal(stat(file.path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    iron__store_close(store);
    file = name_in(&place, "file");
    file_write(file.path, "x", 1);
    options.directory = file.path;
    assert_refused(iron__store_open(&options, &store, &err), IRON_E_IO, &err);
    options.directory = "/nonexistent/iron/data";
    assert_refused(iron__store_open(&options, &store, &err), IRON_E_IO, &err);
}

typedef struct waiter {
    pthread_t thread;
    iron__store_engine *entry;
    uint64_t version;
    bool is_changed;
} waiter;

static void *wait_on(void *context) {
    waiter *w = context;

    w->is_changed = iron__store_engine_wait(w->entry, w->version, 60000);
    return NULL;
}

static bool wait_while(iron__store_engine *entry,
                       void (*change)(iron__store *, iron__store_engine *), iron__store *store) {
    waiter w = {.entry = entry, .version = look_at(entry).version};

    assert_int_equal(pthread_create(&w.thread, NULL, wait_on, &w), 0);
    usleep(20000);
    change(store, entry);
    pthread_join(w.thread, NULL);
    return w.is_changed;
}

static void change_by_feed(iron__store *store, iron__store_engine *entry) {
    uint32_t token = 1;

    (void)store;
    feed_done(entry, (feeding){.key = NULL}, &token, 4);
}

static void change_by_stop(iron__store *store, iron__store_engine *entry) {
    (void)entry;
    iron__store_stop(store);
}

static void change_by_delete(iron__store *store, iron__store_engine *entry) {
    assert_int_equal(iron__store_delete(store, entry, NULL), IRON_OK);
}

static void waiting_ends(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("waited"), other = small_plan("other");
    iron__store_engine *entry = make_engine(store, &plan), *second = make_engine(store, &other);

    (void)state;
    assert_false(iron__store_engine_wait(entry, look_at(entry).version, 1));
    assert_true(iron__store_engine_wait(entry, look_at(entry).version - 1, 60000));
    assert_true(wait_while(entry, change_by_feed, store));
    assert_true(wait_while(second, change_by_delete, store));
    assert_false(wait_while(entry, change_by_stop, store));
    iron__store_engine_release(entry);
    iron__store_engine_release(second);
    iron__store_close(store);
}

/* After a stop nothing new begins, and open feeds may finish. */
static void stopping_lets_open_feeds_finish(void **state) {
    iron__store *store = store_at(&place);
    iron__store_plan plan = small_plan("stopped"), other = small_plan("other");
    iron__store_engine *entry = make_engine(store, &plan), *none;
    uint32_t *tokens = grab_tokens(1, 1000, 50000);
    iron__feed_request small = {.dtype = IRON_DTYPE_U32, .expected_bytes = 4};
    iron__feed_request large = {.dtype = IRON_DTYPE_U32, .expected_bytes = 200000};
    iron__feed_answer answer;
    iron__feed *one, *two, *three;
    iron_error err;

    (void)state;
    assert_int_equal(iron__feed_begin(entry, &small, &one, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_begin(entry, &large, &two, &answer, &err), IRON_FEED_DONE);
    iron__store_stop(store);
    assert_int_equal(iron__feed_begin(entry, &small, &three, &answer, &err), IRON_FEED_STOPPING);
    assert_refused(iron__store_create(store, &other, &none, &err), IRON_E_IO, &err);
    assert_int_equal((int)atomic_load(&store->feeds_open), 2);
    assert_int_equal(iron__feed_take(two, tokens, 200000, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_end(two, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_take(one, tokens, 4, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_end(one, &answer, &err), IRON_FEED_DONE);
    assert_true(answer.tokens == 50001);
    assert_int_equal((int)atomic_load(&store->feeds_open), 0);
    iron__store_engine_release(entry);
    iron__store_close(store);
    store = store_at(&place);
    entry = found(store, "stopped");
    assert_true(look_at(entry).tokens == 50001);
    iron__store_engine_release(entry);
    iron__store_close(store);
    free(tokens);
}

static void uploads_are_limited(void **state) {
    iron__store *store = store_at_with(&place, (iron__store_options){.uploads_max = 3});
    iron__store_plan plan = small_plan("limited");
    iron__store_engine *entry = make_engine(store, &plan);
    iron__feed_request large = {.dtype = IRON_DTYPE_U32, .expected_bytes = 200000};
    iron__feed_answer answer;
    iron__feed *feeds[4];
    iron__store_counts counts;
    iron_error err;
    uint32_t token = 1;

    (void)state;
    for (size_t k = 0; k < 3; k++)
        assert_int_equal(iron__feed_begin(entry, &large, &feeds[k], &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_begin(entry, &large, &feeds[3], &answer, &err), IRON_FEED_BUSY);
    feed_done(entry, (feeding){.key = NULL}, &token, 4); /* small ones go on */
    iron__store_count(store, &counts, NULL);
    assert_true(counts.uploads == 3 && counts.refused[IRON_FEED_BUSY] == 1);
    assert_true(counts.feeds == 1 && counts.tokens == 1 && counts.bytes == 4);
    iron__feed_abandon(feeds[0]);
    assert_int_equal(iron__feed_begin(entry, &large, &feeds[0], &answer, &err), IRON_FEED_DONE);
    for (size_t k = 0; k < 3; k++)
        iron__feed_abandon(feeds[k]);
    iron__store_engine_release(entry);
    iron__store_close(store);
}

int main(void) {
#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_checked),
        IN_A_PLACE(engines_are_created_and_deleted),
        IN_A_PLACE(plans_are_stored),
        IN_A_PLACE(plans_are_refused),
        IN_A_PLACE(rows_without_an_owner_are_removed),
        IN_A_PLACE(deleted_data_is_removed_under_load),
        IN_A_PLACE(remains_are_removed_at_start),
        IN_A_PLACE(a_second_store_is_refused),
        IN_A_PLACE(other_files_are_refused),
        IN_A_PLACE(directories_are_created_for_the_owner),
        IN_A_PLACE(waiting_ends),
        IN_A_PLACE(stopping_lets_open_feeds_finish),
        IN_A_PLACE(uploads_are_limited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
