/* SPDX-License-Identifier: MIT */
/*
 * test_store_engines.c: engines made, listed, deleted and swept up; limits; waiting for changes;
 * stopping; and the files and directories that a store refuses to open.
 */
#include "store/inside.h"
#include "store/upload.h"
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
    iron__kept *all[20];

    assert_int_equal(iron__store_list(store, all, COUNT(all)), count);
    for (size_t k = 0; k < count; k++) {
        assert_string_equal(look_at(all[k]).plan.name, names[k]);
        iron__kept_release(all[k]);
    }
}

static void engines_come_and_go(void **state) {
    static const char *const three[] = {"a", "b", "c"}, *const two[] = {"a", "c"};
    iron__store *store = store_at(&place);
    iron__plan plan;
    iron__kept *b, *again = NULL, *kept;
    uint32_t token = 7;
    iron__feed_answer answer;
    iron_error err;

    (void)state;
    for (const char *name = "cab"; *name; name++) {
        char text[2] = {*name, '\0'};

        plan = small_plan(text);
        iron__kept_release(make_engine(store, &plan));
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
    kept = make_engine(store, &plan); /* the name is free at once, and it is another engine */
    assert_true(look_at(kept).tokens == 0);
    iron__kept_release(b);
    iron__kept_release(kept);
    iron__store_close(store);
    store = store_at(&place);
    assert_names(store, three, 3);
    kept = found(store, "b");
    assert_true(look_at(kept).tokens == 0 && !look_at(kept).is_deleted);
    iron__kept_release(kept);
    iron__store_close(store);
}

static void plans_are_kept(void **state) {
    iron__store *store = store_at(&place);
    iron__plan plan = small_plan("planned");
    iron__kept *kept;
    iron__kept_view before, after;

    (void)state;
    plan.positions = IRON_POSITIONS_BATCH;
    plan.lattice_count = 3;
    plan.lattice[0] = 5;
    plan.lattice[1] = 50;
    plan.lattice[2] = 500;
    strcpy(plan.mode, "scalar");
    kept = make_engine(store, &plan);
    before = look_at(kept);
    assert_string_equal(before.plan.mode, "scalar");
    assert_true(before.device[0] != '\0' && before.created_ms > 0);
    iron__kept_release(kept);
    iron__store_close(store);
    store = store_at(&place);
    kept = found(store, "planned");
    after = look_at(kept);
    assert_memory_equal(&before.plan, &after.plan, sizeof before.plan);
    assert_true(before.created_ms == after.created_ms && before.state == after.state);
    iron__kept_release(kept);
    iron__store_close(store);
}

static void plans_are_refused(void **state) {
    iron__store *store =
        store_at_with(&place, (iron__store_options){.engines_max = 2, .nodes_max = 1000});
    iron__plan plan = small_plan("x");
    iron__kept *one, *two, *none;
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
    iron__kept_release(one);
    one = make_engine(store, &plan);
    iron__kept_release(one);
    iron__kept_release(two);
    iron__store_close(store);
    /* lowered limits keep nobody from what there is */
    store = store_at_with(&place, (iron__store_options){.engines_max = 1, .nodes_max = 10});
    assert_int_equal(iron__store_list(store, NULL, 0), 2);
    iron__store_close(store);
}

/* Waits for the writer to be idle: what it sweeps is gone after a while. */
static bool becomes_empty(const char *table) {
    for (int k = 0; k < 30000 && count_rows(table) > 0; k++)
        usleep(10000);
    return count_rows(table) == 0;
}

/* What an upload reduces at once, of batches of one token, and the blocks that it becomes. */
#define STAGE_TOKENS (IRON_STAGE_BYTES / sizeof(uint32_t))
#define STAGE_BLOCKS (STAGE_TOKENS / IRON_BLOCK_BATCHES)

static void what_belongs_to_nothing_is_swept(void **state) {
    iron__store *store = store_at_with(&place, (iron__store_options){.snapshot_batches = 500});
    iron__plan plan = small_plan("gone");
    uint32_t *tokens = grab_tokens(1, 1000, STAGE_TOKENS);
    iron__feed_request request = {.dtype = IRON_DTYPE_U32, .expected_bytes = 2 * IRON_STAGE_BYTES};
    iron__feed_answer answer;
    iron__feed *feed;
    iron__kept *kept;
    iron_error err;

    (void)state;
    plan.batch = 1;
    kept = make_engine(store, &plan);
    for (size_t k = 0; k < 1500; k++)
        feed_done(kept, (feeding){.key = NULL}, tokens, 4);
    feed_done(kept, (feeding){.key = NULL}, tokens, 200000);
    /* an upload whose blocks are no feed yet is left alone by a sweep, */
    assert_int_equal(iron__feed_begin(kept, &request, &feed, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_take(feed, tokens, IRON_STAGE_BYTES, &answer, &err),
                     IRON_FEED_DONE);
    assert_int_equal(count_rows("blocks"), 12 + STAGE_BLOCKS);
    assert_ok(iron__store_delete(store, kept, &err), &err);
    assert_true(becomes_empty("feeds") && becomes_empty("snapshots"));
    for (int k = 0; k < 30000 && count_rows("blocks") > STAGE_BLOCKS; k++)
        usleep(10000);
    assert_int_equal(count_rows("blocks"), STAGE_BLOCKS);
    /* and swept up when it is abandoned */
    iron__feed_abandon(feed);
    assert_true(becomes_empty("blocks"));
    assert_int_equal(count_rows("engines"), 0);
    iron__kept_release(kept);
    iron__store_close(store);
    free(tokens);
}

/* Remains of a process that ended without a word. */
static void remains_are_swept_at_the_start(void **state) {
    uint32_t *tokens = grab_tokens(1, 1000, STAGE_TOKENS);
    iron__store *store;
    iron__kept *kept;
    int status;
    pid_t child = fork();

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        iron__plan plan = small_plan("left");
        iron__feed_request request = {.dtype = IRON_DTYPE_U32,
                                      .expected_bytes = 2 * IRON_STAGE_BYTES};
        iron__feed_answer answer;
        iron__feed *feed;

        plan.batch = 1;
        store = store_at(&place);
        kept = make_engine(store, &plan);
        feed_done(kept, (feeding){.key = NULL}, tokens, 100000);
        if (iron__feed_begin(kept, &request, &feed, &answer, NULL) != IRON_FEED_DONE ||
            iron__feed_take(feed, tokens, IRON_STAGE_BYTES, &answer, NULL) != IRON_FEED_DONE)
            _exit(1);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(count_rows("blocks"), 6 + STAGE_BLOCKS);
    store = store_at(&place);
    for (int k = 0; k < 30000 && count_rows("blocks") > 6; k++)
        usleep(10000);
    assert_int_equal(count_rows("blocks"), 6);
    kept = found(store, "left");
    assert_true(look_at(kept).tokens == 25000);
    /* new blocks do not mix with old ones */
    feed_done(kept, (feeding){.key = NULL}, tokens, 200000);
    assert_int_equal(count_rows("blocks"), 18);
    iron__kept_release(kept);
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
    /* a file that lost its bytes is not begun anew, and none is touched */
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

static void directories_are_made_for_their_owner(void **state) {
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
    iron__kept *kept;
    uint64_t version;
    bool is_changed;
} waiter;

static void *wait_on(void *context) {
    waiter *w = context;

    w->is_changed = iron__kept_wait(w->kept, w->version, 60000);
    return NULL;
}

static bool wait_while(iron__kept *kept, void (*change)(iron__store *, iron__kept *),
                       iron__store *store) {
    waiter w = {.kept = kept, .version = look_at(kept).version};

    assert_int_equal(pthread_create(&w.thread, NULL, wait_on, &w), 0);
    usleep(20000);
    change(store, kept);
    pthread_join(w.thread, NULL);
    return w.is_changed;
}

static void change_by_feed(iron__store *store, iron__kept *kept) {
    uint32_t token = 1;

    (void)store;
    feed_done(kept, (feeding){.key = NULL}, &token, 4);
}

static void change_by_stop(iron__store *store, iron__kept *kept) {
    (void)kept;
    iron__store_stop(store);
}

static void change_by_delete(iron__store *store, iron__kept *kept) {
    assert_int_equal(iron__store_delete(store, kept, NULL), IRON_OK);
}

static void waiting_ends(void **state) {
    iron__store *store = store_at(&place);
    iron__plan plan = small_plan("waited"), other = small_plan("other");
    iron__kept *kept = make_engine(store, &plan), *second = make_engine(store, &other);

    (void)state;
    assert_false(iron__kept_wait(kept, look_at(kept).version, 1));
    assert_true(iron__kept_wait(kept, look_at(kept).version - 1, 60000));
    assert_true(wait_while(kept, change_by_feed, store));
    assert_true(wait_while(second, change_by_delete, store));
    assert_false(wait_while(kept, change_by_stop, store));
    iron__kept_release(kept);
    iron__kept_release(second);
    iron__store_close(store);
}

/* From a stop on nothing is begun, and what was begun may end. */
static void stopping_lets_things_end(void **state) {
    iron__store *store = store_at(&place);
    iron__plan plan = small_plan("stopped"), other = small_plan("other");
    iron__kept *kept = make_engine(store, &plan), *none;
    uint32_t *tokens = grab_tokens(1, 1000, 50000);
    iron__feed_request small = {.dtype = IRON_DTYPE_U32, .expected_bytes = 4};
    iron__feed_request large = {.dtype = IRON_DTYPE_U32, .expected_bytes = 200000};
    iron__feed_answer answer;
    iron__feed *one, *two, *three;
    iron_error err;

    (void)state;
    assert_int_equal(iron__feed_begin(kept, &small, &one, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_begin(kept, &large, &two, &answer, &err), IRON_FEED_DONE);
    iron__store_stop(store);
    assert_int_equal(iron__feed_begin(kept, &small, &three, &answer, &err), IRON_FEED_STOPPING);
    assert_refused(iron__store_create(store, &other, &none, &err), IRON_E_IO, &err);
    assert_int_equal(iron__store_feeds_open(store), 2);
    assert_int_equal(iron__feed_take(two, tokens, 200000, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_end(two, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_take(one, tokens, 4, &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_end(one, &answer, &err), IRON_FEED_DONE);
    assert_true(answer.tokens == 50001);
    assert_int_equal(iron__store_feeds_open(store), 0);
    iron__kept_release(kept);
    iron__store_close(store);
    store = store_at(&place);
    kept = found(store, "stopped");
    assert_true(look_at(kept).tokens == 50001);
    iron__kept_release(kept);
    iron__store_close(store);
    free(tokens);
}

static void uploads_are_limited(void **state) {
    iron__store *store = store_at_with(&place, (iron__store_options){.uploads_max = 3});
    iron__plan plan = small_plan("limited");
    iron__kept *kept = make_engine(store, &plan);
    iron__feed_request large = {.dtype = IRON_DTYPE_U32, .expected_bytes = 200000};
    iron__feed_answer answer;
    iron__feed *feeds[4];
    iron__store_counts counts;
    iron_error err;
    uint32_t token = 1;

    (void)state;
    for (size_t k = 0; k < 3; k++)
        assert_int_equal(iron__feed_begin(kept, &large, &feeds[k], &answer, &err), IRON_FEED_DONE);
    assert_int_equal(iron__feed_begin(kept, &large, &feeds[3], &answer, &err), IRON_FEED_BUSY);
    feed_done(kept, (feeding){.key = NULL}, &token, 4); /* small ones go on */
    iron__store_count(store, &counts);
    assert_true(counts.uploads == 3 && counts.refused[IRON_FEED_BUSY] == 1);
    assert_true(counts.feeds == 1 && counts.tokens == 1 && counts.bytes == 4);
    iron__feed_abandon(feeds[0]);
    assert_int_equal(iron__feed_begin(kept, &large, &feeds[0], &answer, &err), IRON_FEED_DONE);
    for (size_t k = 0; k < 3; k++)
        iron__feed_abandon(feeds[k]);
    iron__kept_release(kept);
    iron__store_close(store);
}

int main(void) {
#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_checked),
        IN_A_PLACE(engines_come_and_go),
        IN_A_PLACE(plans_are_kept),
        IN_A_PLACE(plans_are_refused),
        IN_A_PLACE(what_belongs_to_nothing_is_swept),
        IN_A_PLACE(remains_are_swept_at_the_start),
        IN_A_PLACE(a_second_store_is_refused),
        IN_A_PLACE(other_files_are_refused),
        IN_A_PLACE(directories_are_made_for_their_owner),
        IN_A_PLACE(waiting_ends),
        IN_A_PLACE(stopping_lets_things_end),
        IN_A_PLACE(uploads_are_limited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
