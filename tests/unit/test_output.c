/* SPDX-License-Identifier: MIT */
/*
 * test_output.c: a file appears complete under its name, or not at all.
 *
 * Before the commit the folder is unchanged; after it, it holds the new file and nothing else;
 * after abandon or a failure, the old content is untouched. A replaced file keeps its permissions,
 * and a symbolic link keeps pointing at it.
 */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

static file_name target;

static int set_up(void **state) {
    (void)state;
    folder_make(&place);
    target = name_in(&place, "target");
    return 0;
}

static iron_output *open_output(const char *path) {
    iron_output *o = NULL;
    iron_error err;

    assert_ok(iron_output_open(path, &o, &err), &err);
    assert_non_null(o);
    return o;
}

static void write_text(iron_output *o, const char *text) {
    iron_error err;

    assert_ok(iron_output_write(o, text, strlen(text), &err), &err);
}

static void commit(iron_output *o) {
    iron_error err;

    assert_ok(iron_output_commit(o, &err), &err);
}

static mode_t mode_of(const char *path) {
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777;
}

static void a_new_file_appears_complete(void **state) {
    iron_output *o = open_output(target.path);

    (void)state;
    write_text(o, "one ");
    assert_int_equal(access(target.path, F_OK), -1);
    write_text(o, "");
    write_text(o, "two");
    assert_int_equal(access(target.path, F_OK), -1);
    commit(o);
    assert_file_holds(target.path, "one two", 7);
    assert_int_equal(folder_entries(&place), 1);
}

static void an_empty_file_too(void **state) {
    (void)state;
    commit(open_output(target.path));
    assert_file_holds(target.path, "", 0);
    assert_int_equal(folder_entries(&place), 1);
}

static void an_old_file_stays_until_the_commit(void **state) {
    iron_output *o;

    (void)state;
    file_write(target.path, "old and longer", 14);
    o = open_output(target.path);
    write_text(o, "new");
    assert_file_holds(target.path, "old and longer", 14);
    commit(o);
    assert_file_holds(target.path, "new", 3);
    assert_int_equal(folder_entries(&place), 1);
}

static void abandoning_leaves_nothing(void **state) {
    iron_output *o;

    (void)state;
    o = open_output(target.path);
    write_text(o, "never seen");
    iron_output_abandon(o);
    assert_int_equal(folder_entries(&place), 0);
    file_write(target.path, "old", 3);
    o = open_output(target.path);
    write_text(o, "never seen");
    iron_output_abandon(o);
    assert_file_holds(target.path, "old", 3);
    assert_int_equal(folder_entries(&place), 1);
    iron_output_abandon(NULL);
}

/* Large enough for several write calls. */
static void many_bytes(void **state) {
    size_t bytes = (size_t)5 << 20;
    unsigned char *data = grab(bytes);
    iron_output *o = open_output(target.path);
    rng r = {111};
    iron_error err;

    (void)state;
    for (size_t k = 0; k < bytes; k++)
        data[k] = (unsigned char)rng_next(&r);
    for (size_t done = 0; done < bytes;) {
        size_t piece = 1 + (size_t)rng_below(&r, 300000);

        piece = piece < bytes - done ? piece : bytes - done;
        assert_ok(iron_output_write(o, data + done, piece, &err), &err);
        done += piece;
    }
    commit(o);
    assert_file_holds(target.path, data, bytes);
    free(data);
}

static void a_link_keeps_pointing_at_the_file(void **state) {
    file_name link = name_in(&place, "link"), real = name_in(&place, "folder/real");
    struct stat info;
    iron_output *o;

    (void)state;
    assert_int_equal(mkdir(name_in(&place, "folder").path, 0755), 0);
    file_write(real.path, "old", 3);
    assert_int_equal(symlink("folder/real", link.path), 0);
    o = open_output(link.path);
    write_text(o, "new");
    commit(o);
    assert_int_equal(lstat(link.path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_file_holds(real.path, "new", 3);
    assert_file_holds(link.path, "new", 3);
    assert_int_equal(folder_entries(&place), 2);
}

static void new_files_respect_the_umask(void **state) {
    static const mode_t masks[] = {022, 077, 0, 027};

    (void)state;
    for (size_t k = 0; k < COUNT(masks); k++) {
        mode_t before = umask(masks[k]);

        commit(open_output(target.path));
        umask(before);
        assert_int_equal(mode_of(target.path), 0666 & ~masks[k]);
        assert_int_equal(unlink(target.path), 0);
    }
}

/* The umask applies to new files; a replaced file keeps its permissions. */
static void replaced_files_keep_their_permissions(void **state) {
    static const mode_t modes[] = {0600, 0644, 0640, 0400, 0664, 0666, 0755};
    mode_t before = umask(022);

    (void)state;
    for (size_t k = 0; k < COUNT(modes); k++) {
        mode_t after;

        file_write(target.path, "old", 3);
        assert_int_equal(chmod(target.path, modes[k]), 0);
        commit(open_output(target.path));
        after = mode_of(target.path);
        assert_int_equal(unlink(target.path), 0);
        if (after != modes[k]) {
            umask(before);
            fail_msg("a file of mode %03o has mode %03o after being replaced", modes[k], after);
        }
    }
    umask(before);
}

static void devices_are_written_directly(void **state) {
    iron_output *o = open_output("/dev/null");
    struct stat info;

    (void)state;
    write_text(o, "gone");
    assert_null(iron_output_temporary(o));
    commit(o);
    o = open_output("/dev/null");
    iron_output_abandon(o);
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

static void full_devices_are_an_error(void **state) {
    iron_output *o = open_output("/dev/full");
    iron_error err;

    (void)state;
    assert_refused(iron_output_write(o, "x", 1, &err), IRON_E_IO, &err);
    assert_int_equal(err.native, ENOSPC);
    assert_int_equal(iron_output_write(o, "x", 1, NULL), IRON_E_IO);
    iron_output_abandon(o);
}

static void pipes_are_written_directly(void **state) {
    file_name fifo = name_in(&place, "fifo");
    char got[8] = "";
    iron_output *o;
    int fd;

    (void)state;
    assert_int_equal(mkfifo(fifo.path, 0600), 0);
    fd = open(fifo.path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* so that the writer can open it */
    assert_true(fd >= 0);
    o = open_output(fifo.path);
    write_text(o, "hello");
    commit(o);
    assert_int_equal(read(fd, got, sizeof got), 5);
    assert_string_equal(got, "hello");
    close(fd);
    assert_int_equal(folder_entries(&place), 1);
}

/* "-" goes to descriptor 1 and leaves it open. */
static void standard_output(void **state) {
    int saved, fd = open(target.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    iron_status written, committed;
    iron_output *o;

    (void)state;
    assert_true(fd >= 0);
    o = open_output("-");
    fflush(stdout);
    saved = dup(1);
    assert_true(saved >= 0 && dup2(fd, 1) == 1);
    written = iron_output_write(o, "out", 3, NULL);
    committed = iron_output_commit(o, NULL);
    assert_int_equal(dup2(saved, 1), 1);
    close(saved);
    close(fd);
    assert_int_equal(written, IRON_OK);
    assert_int_equal(committed, IRON_OK);
    assert_int_equal(fcntl(1, F_GETFD) >= 0, 1);
    assert_file_holds(target.path, "out", 3);
}

static void refuse(const char *path, iron_status expected) {
    iron_output *o = (iron_output *)&o;
    iron_error err;

    assert_refused(iron_output_open(path, &o, &err), expected, &err);
    assert_null(o);
    assert_int_equal(iron_output_open(path, &o, NULL), expected);
}

static void targets_that_cannot_be_files(void **state) {
    (void)state;
    refuse(place.path, IRON_E_ARG);
    refuse(name_in(&place, "missing/file").path, IRON_E_IO);
    file_write(target.path, "x", 1);
    refuse(name_in(&place, "target/file").path, IRON_E_IO);
    refuse("/proc/iron-cannot-write-here", IRON_E_IO);
    assert_int_equal(folder_entries(&place), 1);
}

/* An empty name is IRON_E_ARG, not IRON_E_NOMEM. */
static void an_empty_name_is_refused(void **state) {
    iron_output *o = (iron_output *)&o;
    iron_error err = {0};
    iron_status status = iron_output_open("", &o, &err);

    (void)state;
    assert_null(o);
    if (status != IRON_E_ARG && status != IRON_E_IO)
        fail_msg("%s: %s", iron_status_name(status), err.text);
}

/* A relative name, without a slash. */
static void names_without_a_folder(void **state) {
    int back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    iron_output *o;

    (void)state;
    assert_true(back >= 0);
    assert_int_equal(chdir(place.path), 0);
    o = open_output("plain");
    write_text(o, "here");
    commit(o);
    assert_int_equal(fchdir(back), 0);
    close(back);
    assert_file_holds(name_in(&place, "plain").path, "here", 4);
    assert_int_equal(folder_entries(&place), 1);
}

/* The target became a folder while the file was written: the commit fails and cleans up. */
static void failed_commits_leave_nothing(void **state) {
    iron_output *o = open_output(target.path);
    iron_error err;

    (void)state;
    write_text(o, "never seen");
    assert_int_equal(mkdir(target.path, 0755), 0);
    assert_refused(iron_output_commit(o, &err), IRON_E_IO, &err);
    assert_int_equal(folder_entries(&place), 1);
}

static void failed_writes_leave_what_was_there(void **state) {
    struct rlimit limit, before;
    iron_output *o;
    iron_status status;
    iron_error err = {0};

    (void)state;
    file_write(target.path, "old", 3);
    o = open_output(target.path);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 4;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    status = iron_output_write(o, "0123456789", 10, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, IRON_E_IO);
    assert_int_equal(err.native, EFBIG);
    iron_output_abandon(o);
    assert_file_holds(target.path, "old", 3);
    assert_int_equal(folder_entries(&place), 1);
}

/* If there is a temporary name, the file exists in the folder of the target. */
static void temporary_names(void **state) {
    iron_output *o = open_output(target.path);
    const char *name = iron_output_temporary(o);

    (void)state;
    assert_int_equal(folder_entries(&place), name ? 1 : 0);
    if (name)
        assert_int_equal(access(name, F_OK), 0);
    iron_output_abandon(o);
    assert_null(iron_output_temporary(NULL));
    assert_int_equal(folder_entries(&place), 0);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, remove_place)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(a_new_file_appears_complete),
        CASE(an_empty_file_too),
        CASE(an_old_file_stays_until_the_commit),
        CASE(abandoning_leaves_nothing),
        CASE(many_bytes),
        CASE(a_link_keeps_pointing_at_the_file),
        CASE(new_files_respect_the_umask),
        CASE(replaced_files_keep_their_permissions),
        CASE(devices_are_written_directly),
        CASE(full_devices_are_an_error),
        CASE(pipes_are_written_directly),
        CASE(standard_output),
        CASE(targets_that_cannot_be_files),
        CASE(an_empty_name_is_refused),
        CASE(names_without_a_folder),
        CASE(failed_commits_leave_nothing),
        CASE(failed_writes_leave_what_was_there),
        CASE(temporary_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
