/* SPDX-License-Identifier: MIT */
/*
 * server_support.h: a server with a few routes of its own and a store that keeps nothing, and a
 * client that writes exactly the bytes it is told to. The store's functions are defined here, so
 * the real one is not linked.
 */
#ifndef TESTS_UNIT_SERVER_SUPPORT_H
#define TESTS_UNIT_SERVER_SUPPORT_H

#include "support.h"

#include "server/exchange.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

/* The store that keeps nothing. */
struct iron__store {
    bool is_stopping;
};

iron_status iron__store_open(const iron__store_options *options, iron__store **out,
                             iron_error *err) {
    (void)options;
    (void)err;
    *out = calloc(1, sizeof **out);
    return *out ? IRON_OK : IRON_E_NOMEM;
}

void iron__store_stop(iron__store *store) { store->is_stopping = true; }

void iron__store_close(iron__store *store) { free(store); }

uint64_t iron__store_busy_ns(iron__store *store) {
    (void)store;
    return 0;
}

iron_status iron__store_failure(iron__store *store, iron_error *why) {
    (void)store;
    (void)why;
    return IRON_OK;
}

size_t iron__store_list(iron__store *store, iron__kept **out, size_t room) {
    (void)store;
    (void)out;
    (void)room;
    return 3;
}

/* How often routes were told that an exchange is over, and how many bytes they took. */
static atomic_uint_fast64_t drops, taken;

static inline void hello(iron__exchange *x) {
    iron__json_writer *json = iron__answer_json(x);

    iron__json_write_open(json, NULL, '{');
    iron__json_write_text(json, "hello", x->variable);
    iron__json_write_text(json, "q", iron__exchange_query(x, "q"));
    if (iron__exchange_header(x, "X-Said"))
        iron__json_write_text(json, "said", iron__exchange_header(x, "X-Said"));
    iron__json_write_close(json, '}');
    iron__answer_json_end(x, 200);
}

static inline void count_bytes(iron__exchange *x, const void *bytes, size_t count) {
    uint64_t *sum = x->own;

    if (count > 0 && memchr(bytes, '!', count < 64 ? count : 64)) {
        iron__answer_problem(x, "bad-token-value", "send no '!'", "there is a '!'");
        return;
    }
    if (!sum)
        sum = x->own = calloc(1, sizeof *sum);
    *sum += count;
    atomic_fetch_add(&taken, count);
}

static inline void tell_count(iron__exchange *x) {
    iron__json_writer *json = iron__answer_json(x);

    iron__json_write_open(json, NULL, '{');
    iron__json_write_whole(json, "bytes", x->own ? *(uint64_t *)x->own : 0);
    iron__json_write_close(json, '}');
    iron__answer_json_end(x, 200);
}

static inline void drop_own(iron__exchange *x) {
    free(x->own);
    atomic_fetch_add(&drops, 1);
}

/* Large bodies that are being read now, and at most at once. */
static atomic_uint readers, most_readers;

static inline void count_reader(const iron__exchange *x) {
    unsigned now = atomic_fetch_add(&readers, 1) + 1;

    if (x->body_bytes > 4096) {
        if (now > atomic_load(&most_readers))
            atomic_store(&most_readers, now);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    atomic_fetch_sub(&readers, 1);
}

static inline void echo(iron__exchange *x) {
    char *copy = grab(x->body_bytes);

    count_reader(x);
    memcpy(copy, x->body, x->body_bytes);
    iron__answer_header(x, "X-Echo", "yes");
    iron__answer_bytes(x, 200, "text/plain", copy, x->body_bytes);
}

static inline void remove_it(iron__exchange *x) { iron__answer_empty(x, 204); }

static inline void say_nothing(iron__exchange *x) { (void)x; }

static inline void wait_seconds(iron__exchange *x) {
    nanosleep(&(struct timespec){.tv_sec = 3}, NULL);
    iron__answer_fixed(x, 200, "text/plain", "waited", 6);
}

typedef struct clockwork {
    const iron__site *site; /* whose stop ends it; NULL: it runs down */
    unsigned left;
} clockwork;

static inline ssize_t tick(void *context, char *room, size_t bytes) {
    clockwork *c = context;

    if (c->left == 0 || (c->site && atomic_load(&c->site->is_stopping)))
        return -1;
    --c->left;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return c->left % 2 ? 0 : (ssize_t)snprintf(room, bytes, "data: %u\n\n", c->left);
}

static inline void answer_ticks(iron__exchange *x, const iron__site *site) {
    const char *count = iron__exchange_query(x, "n");
    clockwork *c = grab(sizeof *c);

    *c = (clockwork){site, count ? (unsigned)atoi(count) : 6};
    iron__answer_stream(x, 200, "text/event-stream", tick, free, c);
}

static inline void stream(iron__exchange *x) { answer_ticks(x, x->site); }

static inline void run_down(iron__exchange *x) { answer_ticks(x, NULL); }

static inline ssize_t flood_read(void *context, char *room, size_t bytes) {
    (void)context;
    memset(room, 'x', bytes);
    return (ssize_t)bytes;
}

static inline void no_context(void *context) { (void)context; }

static inline void flood(iron__exchange *x) {
    iron__answer_stream(x, 200, "text/plain", flood_read, no_context, NULL);
}

const iron__route iron__routes[] = {
    {.method = "GET", .pattern = "/open", .query = "q", .is_open = true, .end = hello},
    {.method = "GET",
     .pattern = "/hello/{name}",
     .query = "q other",
     .end = hello,
     .drop = drop_own},
    {.method = "DELETE", .pattern = "/hello/{name}", .end = remove_it},
    {.method = "POST",
     .pattern = "/count",
     .body = IRON_BODY_STREAM,
     .take = count_bytes,
     .end = tell_count,
     .drop = drop_own},
    {.method = "POST", .pattern = "/echo", .body = IRON_BODY_JSON, .end = echo, .drop = drop_own},
    {.method = "GET", .pattern = "/mute", .end = say_nothing},
    {.method = "GET", .pattern = "/slow", .end = wait_seconds},
    {.method = "GET", .pattern = "/stream", .query = "n", .end = stream},
    {.method = "GET", .pattern = "/run-down", .query = "n", .end = run_down},
    {.method = "GET", .pattern = "/flood", .end = flood},
    {.method = NULL}};

/* A server of a test's own, on any free port. */
typedef struct fixture {
    iron_server *server;
    uint16_t port;
    folder folder;
} fixture;

static inline void fixture_start(fixture *f, iron_server_options options) {
    iron_error err;
    const char *url;

    options.struct_size = sizeof options;
    options.listen = options.listen ? options.listen : "127.0.0.1:0";
    assert_ok(iron_server_start(&options, &f->server, &err), &err);
    url = iron_server_url(f->server);
    f->port = (uint16_t)atoi(strrchr(url, ':') + 1);
    assert_true(f->port > 0);
}

static inline void fixture_stop(fixture *f) {
    iron_error err;

    assert_ok(iron_server_stop(f->server, &err), &err);
    f->server = NULL;
}

/* A raw connection. What is read ends after five seconds without a byte. */
static inline int dial_from(const fixture *f, const char *address) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(f->port)};
    struct sockaddr_in from = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {.tv_sec = 300};

    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (address) {
        inet_pton(AF_INET, address, &from.sin_addr);
        assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    }
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static inline int dial(const fixture *f) { return dial_from(f, NULL); }

static inline bool say_bytes(int fd, const void *bytes, size_t count) {
    const char *at = bytes;

    while (count > 0) {
        ssize_t sent = send(fd, at, count, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        at += sent;
        count -= (size_t)sent;
    }
    return true;
}

static inline bool say(int fd, const char *text) { return say_bytes(fd, text, strlen(text)); }

/* All that comes until the peer closes, as a string; free() it. */
static inline char *hear_all(int fd) {
    size_t have = 0, room = 1 << 16;
    char *text = grab(room);

    for (;;) {
        ssize_t got = recv(fd, text + have, room - have - 1, 0);

        if (got <= 0)
            break;
        have += (size_t)got;
        if (room - have < 4096) {
            room *= 2;
            text = realloc(text, room);
            assert_non_null(text);
        }
    }
    text[have] = '\0';
    return text;
}

/* One answer of a connection that stays open: by its Content-Length. free() it. */
static inline char *hear_one(int fd) {
    char *text = grab(1 << 16), *end = NULL, *length;
    size_t have = 0, need = (1 << 16) - 1;

    while (have < need) {
        ssize_t got = recv(fd, text + have, end ? need - have : 1, 0);

        if (got <= 0)
            break;
        have += (size_t)got;
        text[have] = '\0';
        if (!end && (end = strstr(text, "\r\n\r\n"))) {
            length = strstr(text, "Content-Length: ");
            need = (size_t)(end - text) + 4 + (length ? (size_t)atoi(length + 16) : 0);
        }
    }
    text[have] = '\0';
    return text;
}

static inline unsigned status_of(const char *answer) {
    unsigned status = 0;

    if (sscanf(answer, "HTTP/1.1 %u ", &status) != 1)
        return 0;
    return status;
}

/* The answer has this status, and these words somewhere. */
static inline void assert_answer(const char *answer, unsigned status, const char *words) {
    if (status_of(answer) != status || (words && !strstr(answer, words)))
        fail_msg("expected %u with '%s', got:\n%s", status, words ? words : "", answer);
}

/* Says it on a new connection, hears the answer and that the connection ends. */
static inline void expect_bytes(const fixture *f, const void *bytes, size_t count, unsigned status,
                                const char *words) {
    int fd = dial(f);
    char *answer;

    assert_true(say_bytes(fd, bytes, count));
    answer = hear_all(fd);
    assert_answer(answer, status, words);
    free(answer);
    close(fd);
}

static inline void expect(const fixture *f, const char *request, unsigned status,
                          const char *words) {
    expect_bytes(f, request, strlen(request), status, words);
}

#endif
