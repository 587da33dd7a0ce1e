/* SPDX-License-Identifier: MIT */
/*
 * test_state_save.c: how a state is written: whole or not at all, with nothing left beside it, and
 * only where a state may go. What is in the file, and what is believed of it, is in
 * test_state_file.c.
 */
#include "engine_support.h"
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Has seen 47 tokens; its batches are closed. */
static iron_engine *small_engine(void) {
    uint32_t tokens[47];
    iron_engine *e = NULL;
    iron_config c;
    iron_error err;

    iron_config_init(&c);
    c.nodes = 5;
    c.batch = 10;
    c.threads = 1;
    c.with_seal = 1;
    assert_ok(iron_generate(5, 1000, 0, tokens, COUNT(tokens), &err), &err);
    assert_ok(iron_engine_create(&c, &e, &err), &err);
    assert_ok(iron_engine_feed(e, tokens, COUNT(tokens), &err), &err);
    assert_ok(iron_engine_end_batch(e, &err), &err);
    return e;
}

/* The file at `path` holds the state of `e`. */
static void assert_holds_state(const char *path, iron_engine *e) {
    iron_report want = report_of(e), got;
    iron_engine *loaded = NULL;
    iron_error err;

    assert_ok(iron_engine_load(path, NULL, &loaded, &err), &err);
    got = report_of(loaded);
    assert_true(got.tokens == want.tokens && got.state == want.state && got.sum == want.sum);
    assert_string_equal(got.seal, want.seal);
    iron_engine_destroy(loaded);
}

static void open_batches_are_not_saved(void **state) {
    static const uint32_t tokens[] = {1, 2, 3};
    file_name path = name_in(&place, "open");
    iron_engine *e = small_engine();
    size_t before = folder_entries(&place);
    iron_error err;

    (void)state;
    assert_ok(iron_engine_feed(e, tokens, 3, &err), &err);
    assert_refused(iron_engine_save(e, path.path, &err), IRON_E_STATE, &err);
    assert_says(&err, "3 tokens");
    assert_int_equal(iron_engine_save(e, path.path, NULL), IRON_E_STATE);
    assert_int_equal(folder_entries(&place), before);
    assert_ok(iron_engine_end_batch(e, &err), &err);
    assert_ok(iron_engine_save(e, path.path, &err), &err);
    iron_engine_destroy(e);
}

/* Who had the old file open keeps it whole; nothing else is in the folder before or after. */
static void saving_replaces_at_once(void **state) {
    static const char old[] = "the old content";
    iron_engine *e = small_engine();
    char content[sizeof old] = "";
    file_name path;
    iron_error err;
    folder f;
    int fd;

    (void)state;
    folder_make(&f);
    path = name_in(&f, "state");
    file_write(path.path, old, sizeof old);
    fd = open(path.path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_ok(iron_engine_save(e, path.path, &err), &err);
    assert_int_equal(read(fd, content, sizeof content), sizeof old);
    assert_string_equal(content, old);
    close(fd);
    assert_int_equal(folder_entries(&f), 1);
    assert_holds_state(path.path, e);
    iron_engine_destroy(e);
    folder_remove(&f);
}

/* A disk that is full, as far as this process can tell: files may have 100 bytes. */
static void failed_saves_leave_what_was_there(void **state) {
    static const char old[] = "the old content";
    iron_engine *e = small_engine();
    struct rlimit limit, before;
    file_name path;
    iron_error err = {0};
    iron_status status;
    folder f;

    (void)state;
    folder_make(&f);
    path = name_in(&f, "state");
    file_write(path.path, old, sizeof old);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 100;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    status = iron_engine_save(e, path.path, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, IRON_E_IO);
    assert_true(err.native != 0 && err.text[0] != '\0');
    assert_file_holds(path.path, old, sizeof old);
    assert_int_equal(folder_entries(&f), 1);
    assert_ok(iron_engine_save(e, path.path, &err), &err);
    assert_holds_state(path.path, e);
    iron_engine_destroy(e);
    folder_remove(&f);
}

static void refuse_target(iron_engine *e, const char *path, iron_status expected) {
    iron_error err;

    assert_refused(iron_engine_save(e, path, &err), expected, &err);
    assert_refused(iron_state_path_check(path, &err), expected, &err);
    assert_int_equal(iron_state_path_check(path, NULL), expected);
}

static void places_where_no_state_goes(void **state) {
    file_name fifo = name_in(&place, "fifo"), under = name_in(&place, "missing/state");
    file_name good = name_in(&place, "good"), slash = name_in(&place, "new/");
    iron_engine *e = small_engine();
    iron_error err;

    (void)state;
    assert_int_equal(mkfifo(fifo.path, 0600), 0);
    refuse_target(e, place.path, IRON_E_ARG);
    refuse_target(e, "/dev/null", IRON_E_ARG);
    refuse_target(e, fifo.path, IRON_E_ARG);
    refuse_target(e, "", IRON_E_ARG);
    refuse_target(e, "-", IRON_E_ARG);
    assert_true(iron_engine_save(e, slash.path, NULL) != IRON_OK);
    assert_true(iron_state_path_check(slash.path, NULL) != IRON_OK);
    refuse_target(e, under.path, IRON_E_IO);
    assert_ok(iron_state_path_check(good.path, &err), &err);
    assert_int_equal(access(good.path, F_OK), -1); /* the check left nothing there */
    iron_engine_destroy(e);
}

/* What a process without rights sees; as root, a child gives its rights away first. */
static int save_as_nobody(iron_engine *e, const char *path) {
    iron_error err = {0};
    iron_status saved, checked;

    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 3;
    checked = iron_state_path_check(path, &err);
    saved = iron_engine_save(e, path, &err);
    return saved == IRON_E_IO && checked == IRON_E_IO && err.native == EACCES ? 0 : 4;
}

static void folders_without_permission(void **state) {
    iron_engine *e = small_engine();
    file_name path;
    folder f;
    pid_t child;
    int result = -1;

    (void)state;
    folder_make(&f);
    path = name_in(&f, "state");
    assert_int_equal(chmod(f.path, 0555), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(save_as_nobody(e, path.path));
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
    assert_int_equal(chmod(f.path, 0755), 0);
    assert_int_equal(folder_entries(&f), 0);
    folder_remove(&f);
    iron_engine_destroy(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_batches_are_not_saved),
        cmocka_unit_test(saving_replaces_at_once),
        cmocka_unit_test(failed_saves_leave_what_was_there),
        cmocka_unit_test(places_where_no_state_goes),
        cmocka_unit_test(folders_without_permission),
    };

    return cmocka_run_group_tests(tests, make_place, remove_place);
}
