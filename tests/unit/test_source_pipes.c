/* SPDX-License-Identifier: MIT */
/*
 * test_source_pipes.c: standard input and named pipes as sources of tokens: they have no size,
 * their headers are known only when read, and they may end inside a token. Standard input is a pipe
 * of the test, placed on descriptor 0 for a while.
 *
 * A reader that another thread cancels must return even if nothing is ever written. The tests do
 * not measure how fast; a watchdog of many seconds only prevents a hanging suite.
 */
#include "source_support.h"

#include "formats/source.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#define WATCHDOG_S 3000u

static folder place;

static int set_up(void **state) {
    (void)state;
    folder_make(&place);
    alarm(WATCHDOG_S);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    alarm(0);
    folder_remove(&place);
    return 0;
}

static void standard_input(void **state) {
    static const char *const paths[] = {"-"};
    uint16_t tokens[500];
    iron_source *s;
    int saved, end = pipe_as_stdin(&saved);

    (void)state;
    fill_u16(tokens, COUNT(tokens));
    s = open_all(IRON_DTYPE_U16, paths, 1);
    assert_true(iron_source_tokens(s) == IRON_COUNT_UNKNOWN);
    assert_int_equal(write(end, tokens, sizeof tokens), sizeof tokens);
    close(end);
    assert_stream(s, tokens, COUNT(tokens), 33);
    iron_source_close(s);
    assert_true(fcntl(0, F_GETFD) >= 0); /* left open: it is not the library's */
    restore_stdin(saved);
}

/* The header of a pipe is checked when it is read, like that of a file. */
static void headers_on_standard_input(void **state) {
    static const char *const paths[] = {"-"};
    static const _Alignas(2) char header[16] = "\x93NUMPY\x01";
    iron_source *s = NULL;
    iron_error err;

    (void)state;
    for (int is_raw = 0; is_raw < 2; is_raw++) {
        int saved, end = pipe_as_stdin(&saved);

        assert_int_equal(write(end, header, sizeof header), sizeof header);
        close(end);
        assert_ok(try_open(IRON_DTYPE_U16, is_raw ? "raw" : NULL, paths, 1, &s, &err), &err);
        if (is_raw)
            assert_stream(s, (const uint16_t *)(const void *)header, 8, 3);
        else
            assert_read_fails(s, IRON_E_FORMAT, "NumPy header");
        iron_source_close(s);
        restore_stdin(saved);
    }
}

/* A file as standard input has a size, counted from its current offset. */
static void a_file_as_standard_input(void **state) {
    static const char *const paths[] = {"-"};
    file_name file = name_in(&place, "file");
    uint16_t tokens[100];
    int saved = dup(0), fd;
    iron_source *s;

    (void)state;
    fill_u16(tokens, COUNT(tokens));
    file_write(file.path, tokens, sizeof tokens);
    fd = open(file.path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && lseek(fd, 20, SEEK_SET) == 20);
    assert_int_equal(dup2(fd, 0), 0);
    close(fd);
    s = open_all(IRON_DTYPE_U16, paths, 1);
    assert_true(iron_source_tokens(s) == 90 || iron_source_tokens(s) == IRON_COUNT_UNKNOWN);
    assert_stream(s, tokens + 10, 90, 7);
    iron_source_close(s);
    restore_stdin(saved);
}

static void standard_input_between_files(void **state) {
    uint16_t tokens[] = {10, 20, 30, 40};
    file_name a = name_in(&place, "a"), b = name_in(&place, "b");
    const char *paths[] = {a.path, "-", b.path};
    iron_source *s;
    int saved, end = pipe_as_stdin(&saved);

    (void)state;
    file_write(a.path, &tokens[0], 2);
    file_write(b.path, &tokens[3], 2);
    s = open_all(IRON_DTYPE_U16, paths, 3);
    assert_int_equal(write(end, &tokens[1], 4), 4);
    close(end);
    assert_stream(s, tokens, 4, 3);
    iron_source_close(s);
    restore_stdin(saved);
}

static void standard_input_only_once(void **state) {
    static const char *const paths[] = {"-", "-"};
    iron_source *s = (iron_source *)&s;
    iron_error err;

    (void)state;
    assert_refused(try_open(IRON_DTYPE_U8, NULL, paths, 2, &s, &err), IRON_E_ARG, &err);
    assert_says(&err, "twice");
    assert_null(s);
}

static void pipes_that_end_inside_a_token(void **state) {
    static const char *const paths[] = {"-"};
    iron_source *s;
    int saved, end = pipe_as_stdin(&saved);

    (void)state;
    s = open_all(IRON_DTYPE_U32, paths, 1);
    assert_int_equal(write(end, "0123456789", 10), 10);
    close(end);
    assert_read_fails(s, IRON_E_FORMAT, "10 bytes");
    iron_source_close(s);
    restore_stdin(saved);
}

/* A read that another thread may cancel. */
typedef struct reading {
    iron_source *source;
    atomic_bool stop, is_done;
    iron_status status;
    size_t count;
    iron_error err;
} reading;

static void *reading_main(void *argument) {
    reading *r = argument;
    uint16_t tokens[100];

    r->status = iron__source_read(r->source, tokens, 100, &r->count, &r->stop, &r->err);
    atomic_store(&r->is_done, true);
    return NULL;
}

static void silent_pipes_can_be_cancelled(void **state) {
    static const char *const paths[] = {"-"};
    reading r = {0};
    pthread_t thread;
    int saved, end = pipe_as_stdin(&saved);

    (void)state;
    r.source = open_all(IRON_DTYPE_U16, paths, 1);
    assert_int_equal(write(end, "abcd", 4), 4); /* two tokens, then silence */
    assert_int_equal(pthread_create(&thread, NULL, reading_main, &r), 0);
    atomic_store(&r.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(r.status, IRON_E_CANCELLED);
    assert_int_equal(r.err.status, IRON_E_CANCELLED);
    iron_source_close(r.source);
    close(end);
    restore_stdin(saved);
}

/* A stop flag that is never set has no effect. */
static void an_unused_stop_flag_changes_nothing(void **state) {
    static const char *const paths[] = {"-"};
    reading r = {0};
    int saved, end = pipe_as_stdin(&saved);

    (void)state;
    r.source = open_all(IRON_DTYPE_U16, paths, 1);
    assert_int_equal(write(end, "abcdef", 6), 6);
    close(end);
    reading_main(&r);
    assert_int_equal(r.status, IRON_OK);
    assert_int_equal(r.count, 3);
    iron_source_close(r.source);
    restore_stdin(saved);
}

/* A named pipe without a writer: opening it would block, and can be cancelled too. After many
 * seconds the test opens the other end itself, so that it fails instead of hanging. */
static void named_pipes_can_be_cancelled(void **state) {
    file_name fifo = name_in(&place, "fifo");
    const char *path = fifo.path;
    reading r = {0};
    pthread_t thread;
    bool came_back;
    int end = -1;

    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    r.source = open_all(IRON_DTYPE_U16, &path, 1);
    atomic_store(&r.stop, true);
    assert_int_equal(pthread_create(&thread, NULL, reading_main, &r), 0);
    for (int k = 0; k < 30000 && !atomic_load(&r.is_done); k++) /* five minutes: it hangs */
        poll(NULL, 0, 10);
    came_back = atomic_load(&r.is_done);
    if (!came_back)
        end = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (end >= 0)
        close(end);
    iron_source_close(r.source);
    assert_true(came_back);
    assert_int_equal(r.status, IRON_E_CANCELLED);
}

/* Opens a named pipe for writing as soon as it has a reader; -1 if the reader ended instead. */
static int open_for_writing(const char *path, const reading *r) {
    int end = -1;

    while (end < 0 && !atomic_load(&r->is_done)) {
        end = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (end < 0)
            poll(NULL, 0, 10);
    }
    return end;
}

static void nothing(int signal_number) { (void)signal_number; }

static void *patient_reading_main(void *argument) {
    reading *r = argument;
    uint16_t tokens[100];

    r->status = iron_source_read(r->source, tokens, 100, &r->count, &r->err);
    atomic_store(&r->is_done, true);
    return NULL;
}

/* A handled signal while waiting for the first writer does not end the stream. */
static void signals_do_not_end_a_named_pipe(void **state) {
    file_name fifo = name_in(&place, "fifo");
    struct sigaction before, quiet = {.sa_handler = nothing};
    const char *path = fifo.path;
    reading r = {0};
    pthread_t thread;
    int end;

    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    r.source = open_all(IRON_DTYPE_U16, &path, 1);
    assert_int_equal(sigaction(SIGUSR1, &quiet, &before), 0);
    assert_int_equal(pthread_create(&thread, NULL, patient_reading_main, &r), 0);
    for (int k = 0; k < 20; k++) {
        assert_int_equal(pthread_kill(thread, SIGUSR1), 0); /* not joined: its id stays valid */
        poll(NULL, 0, 10);
    }
    end = open_for_writing(path, &r);
    if (end >= 0) {
        assert_int_equal(write(end, "abcdef", 6), 6);
        close(end);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    iron_source_close(r.source);
    assert_int_equal(r.status, IRON_OK);
    assert_int_equal(r.count, 3);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(standard_input),
        CASE(headers_on_standard_input),
        CASE(a_file_as_standard_input),
        CASE(standard_input_between_files),
        CASE(standard_input_only_once),
        CASE(pipes_that_end_inside_a_token),
        CASE(silent_pipes_can_be_cancelled),
        CASE(an_unused_stop_flag_changes_nothing),
        CASE(named_pipes_can_be_cancelled),
        CASE(signals_do_not_end_a_named_pipe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
