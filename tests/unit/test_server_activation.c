/* SPDX-License-Identifier: MIT */
/*
 * test_server_activation.c: what a service manager leaves in the environment: taken, checked, and
 * gone from there; sockets that are adopted or refused. What is served over one, and what is told,
 * is tested from outside (tests/server/test_systemd.py).
 */
#include "server_support.h"

#include "server/listen.h"

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

static void test_nothing(void **state) {
    iron_service service;

    (void)state;
    assert_int_equal(iron_service_take(&service, NULL), IRON_OK);
    assert_int_equal(service.struct_size, sizeof service);
    assert_int_equal(service.listen_fd, 0);
    assert_int_equal(service.watchdog_us, 0);
    assert_string_equal(service.notify, "");
}

static void test_everything(void **state) {
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

static void test_for_another(void **state) {
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
    } rows[] = {{"LISTEN_FDS", "two", "no number"},
                {"LISTEN_FDS", "", "no number"},
                {"LISTEN_FDS", "99999999999999999999999", "no number"},
                {"LISTEN_FDS", "2", "listens on one"},
                {"WATCHDOG_USEC", "-1", "no number"},
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
    iron__listen listen_at;
    int fd = socket_at("127.0.0.1", SOCK_STREAM, true);

    (void)state;
    assert_int_equal(iron__listen_adopt(&listen_at, fd, NULL), IRON_OK);
    assert_true(listen_at.is_loopback);
    assert_string_equal(listen_at.host, "127.0.0.1");
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    iron__listen_name(&listen_at, "https");
    assert_int_equal(strncmp(listen_at.url, "https://127.0.0.1:", 18), 0);
    close(fd);
    fd = socket_at("0.0.0.0", SOCK_STREAM, true);
    assert_int_equal(iron__listen_adopt(&listen_at, fd, NULL), IRON_OK);
    assert_false(listen_at.is_loopback);
    close(fd);
}

static void assert_not_adopted(int fd, const char *word) {
    iron__listen listen_at;
    iron_error err;

    assert_refused(iron__listen_adopt(&listen_at, fd, &err), IRON_E_ARG, &err);
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
    assert_not_adopted(open("/dev/null", O_RDONLY), "no socket");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),     cmocka_unit_test(test_everything),
        cmocka_unit_test(test_for_another), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_adopted),     cmocka_unit_test(test_not_adopted),
    };

    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        unsetenv(names[k]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
