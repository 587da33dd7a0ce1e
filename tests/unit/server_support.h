/* SPDX-License-Identifier: MIT */
/*
 * server_support.h: a server with a few test routes and an empty store, and a client that sends
 * exactly the given bytes. The store's functions are defined here, so the real one is not linked.
 * The clock of the server's timeouts can be advanced, so no test has to wait for one.
 */
#ifndef TESTS_UNIT_SERVER_SUPPORT_H
#define TESTS_UNIT_SERVER_SUPPORT_H

#include "support.h"

#include "server/server.c"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

/* The empty store. */
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

iron_status iron__store_runs(iron__store *store, iron__run_view *out, size_t *count,
                             iron_error *err) {
    (void)store;
    (void)out;
    (void)err;
    *count = 0;
    return IRON_OK;
}

iron_status iron__store_run_records(iron__store *store, uint64_t run, iron__run_cursor *at,
                                    bool (*take)(void *context, uint64_t rank,
                                                 const unsigned char *bytes, size_t count),
                                    void *context, bool *is_over, iron_error *err) {
    (void)store;
    (void)run;
    (void)at;
    (void)take;
    (void)context;
    (void)err;
    *is_over = true;
    return IRON_OK;
}

void iron__store_count(iron__store *store, iron__store_counts *counts, iron__store_disk *disk) {
    (void)store;
    (void)disk;
    *counts = (iron__store_counts){0};
}

iron_status iron__store_failure(iron__store *store, iron_error *why) {
    (void)store;
    (void)why;
    return IRON_OK;
}

iron_status iron__store_full(iron__store *store, iron_error *why) {
    (void)store;
    (void)why;
    return IRON_OK;
}

void iron__latency_count(iron__latency *latency, uint64_t ns) {
    (void)latency;
    (void)ns;
}

size_t iron__store_list(iron__store *store, iron__store_engine **out, size_t room) {
    (void)store;
    (void)out;
    (void)room;
    return 3;
}

/* The clock of the timeouts: the real clock plus an offset. */
static atomic_uint_fast64_t skipped_ns;

static inline uint64_t test_clock(void) { return iron__clock_ns() + atomic_load(&skipped_ns); }

static inline void skip_ms(uint64_t milliseconds) {
    atomic_fetch_add(&skipped_ns, milliseconds * 1000000);
}

static inline void nap_ms(unsigned milliseconds) {
    nanosleep(&(struct timespec){.tv_sec = milliseconds / 1000,
                                 .tv_nsec = (long)(milliseconds % 1000) * 1000000},
              NULL);
}

#define TEST_TICK_MS 5u

/* How often routes were notified of the end of a request, and how many bytes they took. */
static atomic_uint_fast64_t drops, taken;

static inline void hello(iron__request *req) {
    iron_json_writer *json = iron__response_json(req);
    iron__text said = iron__request_header(req, "X-Said");
    char text[200];

    iron_json_text(json, "hello", req->variable);
    iron_json_text(json, "q", iron__request_query(req, "q"));
    if (said.at) {
        snprintf(text, sizeof text, "%.*s", (int)said.bytes, said.at);
        iron_json_text(json, "said", text);
    }
    iron__response_json_end(req, 200);
}

static inline void count_bytes(iron__request *req, const void *bytes, size_t count) {
    uint64_t *sum = req->own;

    if (count > 0 && memchr(bytes, '!', count < 64 ? count : 64)) {
        iron__response_problem(req, "bad-token-value", "send no '!'", "there is a '!'");
        return;
    }
    if (!sum)
        sum = req->own = calloc(1, sizeof *sum);
    *sum += count;
    atomic_fetch_add(&taken, count);
}

static inline void tell_count(iron__request *req) {
    iron_json_writer *json = iron__response_json(req);

    iron_json_number(json, "bytes", req->own ? *(uint64_t *)req->own : 0);
    iron__response_json_end(req, 200);
}

static inline void drop_own(iron__request *req) {
    free(req->own);
    atomic_fetch_add(&drops, 1);
}

/* Number of documents being parsed now, and the maximum so far. */
static atomic_uint readers, most_readers;

static inline iron_status count_reader(const iron__json *root, void *context, iron_error *err) {
    unsigned now = atomic_fetch_add(&readers, 1) + 1;

    (void)root;
    (void)context;
    (void)err;
    if (now > atomic_load(&most_readers))
        atomic_store(&most_readers, now);
    nap_ms(2);
    atomic_fetch_sub(&readers, 1);
    return IRON_OK;
}

static inline void parse(iron__request *req) {
    iron_error err;

    assert_ok(iron__request_read_json(req, count_reader, NULL, &err), &err);
    iron__response_bytes(req, IRON_RESPONSE_STATIC, 200, "text/plain", "parsed", 6);
}

/* Waits, after its body was parsed, until a second request does so too. */
static atomic_uint met;

static inline void meet(iron__request *req) {
    parse(req);
    atomic_fetch_add(&met, 1);
    for (int k = 0; k < 2000 && atomic_load(&met) < 2; k++)
        nap_ms(1);
}

static inline void echo(iron__request *req) {
    char *copy = grab(req->body_bytes);

    memcpy(copy, req->body, req->body_bytes);
    iron__response_header(req, "X-Echo", "yes");
    iron__response_bytes(req, IRON_RESPONSE_OWNED, 200, "text/plain", copy, req->body_bytes);
}

static inline void remove_it(iron__request *req) { iron__response_empty(req, 204); }

static inline void say_nothing(iron__request *req) { (void)req; }

/* Works for three seconds of the server's clock. */
static inline void work_slowly(iron__request *req) {
    skip_ms(3000);
    nap_ms(6 * TEST_TICK_MS);
    iron__response_bytes(req, IRON_RESPONSE_STATIC, 200, "text/plain", "worked", 6);
}

typedef struct clockwork {
    const iron_server *server; /* the stop that ends it; NULL: it runs to its end */
    unsigned left;
} clockwork;

static inline ssize_t tick(void *context, char *room, size_t bytes) {
    clockwork *c = context;

    if (c->left == 0 || (c->server && atomic_load(&c->server->is_stopping)))
        return -1;
    --c->left;
    nap_ms(2);
    return c->left % 2 ? 0 : (ssize_t)snprintf(room, bytes, "data: %u\n\n", c->left);
}

static inline void answer_ticks(iron__request *req, const iron_server *server) {
    const char *count = iron__request_query(req, "n");
    clockwork *c = grab(sizeof *c);

    *c = (clockwork){server, count ? (unsigned)atoi(count) : 6};
    iron__response_stream(req, 200, "text/event-stream", tick, free, c);
}

static inline void stream_ticks(iron__request *req) { answer_ticks(req, req->server); }

static inline void run_down(iron__request *req) { answer_ticks(req, NULL); }

static inline ssize_t flood_read(void *context, char *room, size_t bytes) {
    (void)context;
    memset(room, 'x', bytes);
    return (ssize_t)bytes;
}

static inline void no_context(void *context) { (void)context; }

static inline void flood(iron__request *req) {
    iron__response_stream(req, 200, "text/plain", flood_read, no_context, NULL);
}

static const iron__route test_routes[] = {
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
    {.method = "GET", .pattern = "/slow", .end = work_slowly},
    {.method = "GET", .pattern = "/stream", .query = "n", .end = stream_ticks},
    {.method = "GET", .pattern = "/run-down", .query = "n", .end = run_down},
    {.method = "GET", .pattern = "/flood", .end = flood},
    {.method = "POST", .pattern = "/parse", .body = IRON_BODY_JSON, .end = parse},
    {.method = "POST", .pattern = "/meet", .body = IRON_BODY_JSON, .end = meet},
    {.method = "GET", .pattern = "/probe", .is_open = true, .is_probe = true, .end = hello}};

#define ROUTE(k) &test_routes[k]
const iron__route *const iron__routes[] = {ROUTE(0),  ROUTE(1),  ROUTE(2),  ROUTE(3), ROUTE(4),
                                           ROUTE(5),  ROUTE(6),  ROUTE(7),  ROUTE(8), ROUTE(9),
                                           ROUTE(10), ROUTE(11), ROUTE(12), NULL};

#define LISTEN(text) .listens = (const char *const[]){text}, .listen_count = 1

/* A server for one test, on any free port. */
typedef struct fixture {
    iron_server *server;
    uint16_t port;
    folder folder;
} fixture;

static inline void fixture_start(fixture *f, iron_server_options options) {
    static const char *const any_port[] = {"127.0.0.1:0"};
    iron_error err;
    const char *url;

    options.struct_size = sizeof options;
    if (options.listen_count == 0) {
        options.listens = any_port;
        options.listen_count = 1;
    }
    assert_ok(start_with_clock(&options, test_clock, TEST_TICK_MS, &f->server, &err), &err);
    url = iron_server_url(f->server);
    f->port = (uint16_t)atoi(strrchr(url, ':') + 1);
    assert_true(f->port > 0);
}

static inline void fixture_stop(fixture *f) {
    iron_error err;

    assert_ok(iron_server_stop(f->server, &err), &err);
    f->server = NULL;
}

/* A raw connection. */
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

/* Everything received until the peer closes, as a string; free() it. */
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

/* The same; until something arrives, the server's clock advances by `step_ms` each tick. */
static inline char *hear_later(int fd, uint64_t step_ms) {
    struct pollfd heard = {.fd = fd, .events = POLLIN};

    for (int k = 0; k < 20000 && poll(&heard, 1, (int)TEST_TICK_MS) == 0; k++)
        skip_ms(step_ms);
    return hear_all(fd);
}

/* One response on a connection that stays open, by its Content-Length; free() it. */
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

/* The response has this status and contains these words. */
static inline void assert_answer(const char *answer, unsigned status, const char *words) {
    if (status_of(answer) != status || (words && !strstr(answer, words)))
        fail_msg("expected %u with '%s', got:\n%s", status, words ? words : "", answer);
}

/* Sends the text on a new connection, and checks the response and that the connection is closed. */
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
