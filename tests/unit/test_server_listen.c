/* SPDX-License-Identifier: MIT */
/*
 * test_server_listen.c: addresses to listen on; the variables of a service manager, which are read,
 * checked and removed; sockets that it passes, which are adopted or refused.
 * tests/server/test_systemd.py tests requests and notifications.
 */
#include "server_support.h"

#include <fcntl.h>
#include <sys/un.h>

static const char *const names[] = {"LISTEN_PID",    "LISTEN_FDS",    "LISTEN_FDNAMES",
                                    "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};

static void assert_cleared(void) {
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        assert_null(getenv(names[k]));
}

static const char *own_number(void) {
    static char text[24];

    snprintf(text, sizeof text, "%ld", (long)getpid());
    return text;
}

static void test_addresses(void **state) {
    static const char *const bad[] = {
        "",      "8080",   ":8080", "127.0.0.1", "127.0.0.1:",    "127.0.0.1:x", "127.0.0.1:65536",
        "a.b:1", "::1:80", "[::1]", "[::1:80",   "[127.0.0.1]:1", "1.2.3:4",     "127.0.0.1:-1",
        "unix:"};
    iron__listener at = {0};
    iron_error err;
    int fd;

    (void)state;
    for (size_t k = 0; k < COUNT(bad); k++)
        assert_refused(parse_address(&at, bad[k], &err), IRON_E_ARG, &err);
    assert_ok(parse_address(&at, "0.0.0.0:80", &err), &err);
    assert_false(at.is_loopback);
    assert_ok(parse_address(&at, "[::]:80", &err), &err);
    assert_false(at.is_loopback);
    assert_ok(parse_address(&at, "[::1]:80", &err), &err);
    assert_true(at.is_loopback);
    assert_ok(parse_address(&at, "localhost:0", &err), &err);
    assert_true(at.is_loopback);
    assert_ok(open_socket(&at, 0, false, &err), &err);
    assert_non_null(strstr(at.url, "http://127.0.0.1:"));
    assert_null(strstr(at.url, ":0"));
    fd = at.fd;
    at.fd = -1;
    assert_refused(open_socket(&at, 0, false, &err), IRON_E_IO, &err);
    assert_says(&err, "another port");
    assert_int_equal(at.fd, -1);
    close(fd);
}

static void test_paths(void **state) {
    iron__listener first = {0}, second = {0};
    char text[500], *path = text + 5;
    struct stat info;
    iron_error err;
    folder f;
    int fd;

    (void)state;
    folder_make(&f);
    snprintf(text, sizeof text, "unix:%s", name_in(&f, "socket").path);
    assert_ok(parse_address(&first, text, &err), &err);
    assert_true(first.is_loopback);
    assert_ok(open_socket(&first, 0, true, &err), &err);
    assert_string_equal(first.url, text);
    assert_int_equal(stat(path, &info), 0);
    assert_true(S_ISSOCK(info.st_mode));
    assert_int_equal(info.st_mode & 0007, 0);
    assert_ok(parse_address(&second, text, &err), &err);
    assert_refused(open_socket(&second, 0, false, &err), IRON_E_IO, &err); /* it is in use */
    close(first.fd);
    assert_ok(open_socket(&second, 0, false, &err), &err); /* what a crash left is replaced */
    iron__listeners_close(&(iron_server){.listeners = &second, .listener_count = 1});
    assert_int_equal(stat(path, &info), -1);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    assert_refused(open_socket(&second, 0, false, &err), IRON_E_IO, &err); /* a file is not */
    assert_int_equal(stat(path, &info), 0);
    memset(path, 'x', sizeof text - 6);
    text[sizeof text - 1] = '\0';
    assert_refused(parse_address(&first, text, &err), IRON_E_ARG, &err);
    folder_remove(&f);
}

static void test_empty_environment(void **state) {
    iron_service service;

    (void)state;
    assert_int_equal(iron_service_take(&service, NULL), IRON_OK);
    assert_int_equal(service.struct_size, sizeof service);
    assert_int_equal(service.listen_fd, 0);
    assert_int_equal(service.watchdog_us, 0);
    assert_string_equal(service.notify, "");
}

static void test_all_variables(void **state) {
    iron_service service;

    (void)state;
    setenv("LISTEN_PID", own_number(), 1);
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_FDNAMES", "iron.socket", 1);
    setenv("NOTIFY_SOCKET", "@manager", 1);
    setenv("WATCHDOG_PID", own_number(), 1);
    setenv("WATCHDOG_USEC", "3000000", 1);
    assert_int_equal(iron_service_take(&service, NULL), IRON_OK);
    assert_int_equal(service.listen_fd, 3);
    assert_int_equal(service.watchdog_us, 3000000);
    assert_string_equal(service.notify, "@manager");
    assert_cleared();
}

static void test_other_process(void **state) {
    iron_service service;

    (void)state;
    setenv("LISTEN_PID", "1", 1);
    setenv("LISTEN_FDS", "2", 1);
    setenv("WATCHDOG_PID", "1", 1);
    setenv("WATCHDOG_USEC", "5", 1);
    assert_int_equal(iron_service_take(&service, NULL), IRON_OK);
    assert_int_equal(service.listen_fd, 0);
    assert_int_equal(service.watchdog_us, 0);
    assert_cleared();
}

static void test_refused(void **state) {
    static const struct {
        const char *name, *value, *word;
    } rows[] = {{"LISTEN_FDS", "two", "not a number"},
                {"LISTEN_FDS", "", "not a number"},
                {"LISTEN_FDS", "99999999999999999999999", "not a number"},
                {"LISTEN_FDS", "2", "listens on one"},
                {"WATCHDOG_USEC", "-1", "not a number"},
                {"NOTIFY_SOCKET", "manager", "neither a path"}};
    iron_service service;
    iron_error err;

    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        setenv("LISTEN_PID", own_number(), 1);
        setenv(rows[k].name, rows[k].value, 1);
        assert_refused(iron_service_take(&service, &err), IRON_E_ARG, &err);
        assert_says(&err, rows[k].word);
        assert_cleared();
    }
}

static int socket_at(const char *address, int type, bool listens) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    int fd = socket(AF_INET, type, 0);

    assert_true(fd >= 0);
    assert_int_equal(inet_pton(AF_INET, address, &at.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    if (listens)
        assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static void test_adopted(void **state) {
    iron__listener server = {0};
    int fd = socket_at("127.0.0.1", SOCK_STREAM, true);

    (void)state;
    assert_int_equal(adopt_socket(&server, fd, NULL), IRON_OK);
    assert_true(server.is_loopback);
    assert_string_equal(server.host, "127.0.0.1");
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    write_url(&server, true);
    assert_int_equal(strncmp(server.url, "https://127.0.0.1:", 18), 0);
    close(fd);
    fd = socket_at("0.0.0.0", SOCK_STREAM, true);
    assert_int_equal(adopt_socket(&server, fd, NULL), IRON_OK);
    assert_false(server.is_loopback);
    close(fd);
}

static void assert_not_adopted(int fd, const char *word) {
    iron__listener server = {0};
    iron_error err;

    assert_refused(adopt_socket(&server, fd, &err), IRON_E_ARG, &err);
    assert_says(&err, word);
    close(fd);
}

static void test_not_adopted(void **state) {
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_not_adopted(pair[0], "file system");
    close(pair[1]);
    assert_not_adopted(socket_at("127.0.0.1", SOCK_STREAM, false), "does not listen");
    assert_not_adopted(socket_at("127.0.0.1", SOCK_DGRAM, false), "does not listen");
    assert_not_adopted(open("/dev/null", O_RDONLY), "not a socket");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),     cmocka_unit_test(test_empty_environment),
        cmocka_unit_test(test_all_variables), cmocka_unit_test(test_other_process),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_adopted),
        cmocka_unit_test(test_not_adopted),   cmocka_unit_test(test_paths),
    };

    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        unsetenv(names[k]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
