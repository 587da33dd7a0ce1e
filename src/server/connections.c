/* SPDX-License-Identifier: MIT */
/*
 * connections.c: a connection from accept to close, with two threads for all connections:
 *
 *     the acceptor   accepts connections, limits their number, checks the first header of each, and
 *                    gives them to libmicrohttpd, which starts a thread for each; closes sockets so
 *                    that clients can read the last response
 *     timeouts       ends connections whose clients keep the server waiting too long
 */
#include "server/server_internal.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h> /* the kernel's: it has the counters of bytes */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define NS_PER_MS          UINT64_C(1000000)
#define REFUSED_MAX        64u
#define REFUSED_WAIT_NS    SECOND_NS
#define ACCEPTED_PER_EVENT 64
#define BODY_GRACE_NS      (10 * SECOND_NS) /* before the body's rate is checked */
#define STALL_NS           (30 * SECOND_NS) /* for a response that makes no progress */
#define TIMED_OUT_NS       (2 * SECOND_NS)  /* for the client to read a 408 */
#define DRAIN_NS           (2 * SECOND_NS)
#define DRAINED_MAX        256u
#define CUTTING_MS         1000u

/* Connection limits: the addresses of all clients, as many entries as connections are allowed, so
 * nothing is allocated after the start. A search looks at all of them: there are a few hundred, and
 * 65,536 at most. An IPv4 address counts the same however it is written; an IPv6 address counts by
 * its first 64 bits, since a client with one address of a network has all of them. Clients on a
 * file system socket have no address, and are not limited by it. */

typedef struct limit_entry {
    uint64_t key;   /* of the address */
    uint32_t count; /* connections from it */
} limit_entry;

typedef struct limits {
    uint32_t all, all_max, address_max;
    uint32_t used; /* entries */
    limit_entry *entries;
} limits;

typedef enum limit_result { LIMIT_OK, LIMIT_ALL, LIMIT_ADDRESS } limit_result;

static uint64_t address_key(const struct sockaddr *address) {
    uint64_t key = IRON_LOCAL_KEY;

    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;

        key = UINT64_C(0xFFFF) << 32 | ntohl(v4->sin_addr.s_addr);
    } else if (address->sa_family == AF_INET6) {
        const struct in6_addr *v6 =
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        bool is_v4 = IN6_IS_ADDR_V4MAPPED(v6);

        key = is_v4 ? 0xFFFF : 0; /* never IRON_LOCAL_KEY, which would be multicast */
        for (int k = is_v4 ? 12 : 0; k < (is_v4 ? 16 : 8); k++)
            key = key << 8 | v6->s6_addr[k];
    }
    return key;
}

/* The entry of a key; past the last one if it has none. */
static limit_entry *find_entry(const limits *l, uint64_t key) {
    limit_entry *at = l->entries;

    while (at < l->entries + l->used && at->key != key)
        at++;
    return at;
}

static limit_result limits_add(limits *l, uint64_t key) {
    limit_entry *entry = find_entry(l, key);
    bool is_new = entry == l->entries + l->used;

    if (!is_new && key != IRON_LOCAL_KEY && entry->count >= l->address_max)
        return LIMIT_ADDRESS;
    if (l->all == l->all_max)
        return LIMIT_ALL;
    if (is_new) { /* there is room, since there are as many entries as connections */
        *entry = (limit_entry){.key = key};
        l->used++;
    }
    entry->count++;
    l->all++;
    return LIMIT_OK;
}

static void limits_remove(limits *l, uint64_t key) {
    limit_entry *entry = find_entry(l, key);

    if (entry == l->entries + l->used)
        return;
    l->all--;
    if (--entry->count == 0)
        *entry = l->entries[--l->used];
}

/* The acceptor
 *
 * One thread accepts connections and checks the first header of each before libmicrohttpd sees it:
 * what is malformed, late or too much is answered here. The bytes are only peeked at, so
 * libmicrohttpd reads them all. A client that never completes its header costs one socket. Under
 * TLS nothing can be read before libmicrohttpd has decrypted it: such a connection is counted and
 * passed on at once.
 *
 * A pending connection is in a list and in epoll, edge-triggered: bytes that were peeked at stay
 * readable, and only new ones may wake the thread. A connection over a limit is pending too, for
 * its header or for a second, so that its refusal does not meet an unread request. At most
 * REFUSED_MAX of those wait; when there are more, the oldest is answered at once. */

typedef struct pending {
    struct pending *next, *prev;
    int fd;
    struct sockaddr_storage address;
    socklen_t address_bytes;
    uint64_t key; /* of the address */
    uint64_t since_ns, until_ns;
    iron__http_error refusal; /* kind NULL: it is within the limits */
    bool is_drained;          /* it was answered; what still arrives is discarded */
    dev_t device;             /* of the socket, while it is handed over */
    ino_t inode;
} pending;

struct iron__acceptor {
    iron_server *server;
    pthread_t thread;
    bool is_running;
    atomic_bool is_stopping;
    int epoll, wake;
    uint64_t checked_ns; /* when timeouts were checked last */
    pending list;        /* head of a ring */
    uint32_t refused_count;
    char peeked[IRON_HEADER_BYTES_MAX];
    iron__header header;
    pthread_mutex_t mutex; /* guards what follows */
    limits limits;
    pending handed_over; /* head of a ring: given to libmicrohttpd, which has not started them */
    pending drained;     /* the same: closed soon */
    uint32_t drained_count;
};

static void insert(pending *head, pending *p) {
    p->prev = head;
    p->next = head->next;
    p->next->prev = p;
    head->next = p;
}

static pending *unlink_pending(pending *p) {
    p->prev->next = p->next;
    p->next->prev = p->prev;
    return p;
}

/* A connection has ended. From any thread. */
static void release(iron__acceptor *a, uint64_t key) {
    pthread_mutex_lock(&a->mutex);
    limits_remove(&a->limits, key);
    pthread_mutex_unlock(&a->mutex);
    atomic_fetch_sub(&a->server->connections, 1);
}

/* Removes a pending connection from the list and from epoll; its socket stays open. */
static void remove_pending(iron__acceptor *a, pending *p) {
    epoll_ctl(a->epoll, EPOLL_CTL_DEL, p->fd, NULL);
    unlink_pending(p);
    if (p->refusal.kind)
        a->refused_count--;
}

static void hang_up(iron__acceptor *a, pending *p) {
    remove_pending(a, p);
    close(p->fd);
    if (!p->refusal.kind)
        release(a, p->key);
    free(p);
}

/* Handing over
 *
 * libmicrohttpd queues the connection and starts it on its own thread. If it cannot (no memory), it
 * closes the socket without a callback, and the connection would be counted for ever. So a
 * connection stays in handed_over until libmicrohttpd reports its start. One whose descriptor is no
 * longer that socket was lost, and is released. */

/* Releases lost connections; those with descriptor `fd` (-1: none) too, since it was reused. */
static void release_lost(iron__acceptor *a, int fd) {
    struct stat now;

    pthread_mutex_lock(&a->mutex);
    for (pending *p = a->handed_over.next, *next; p != &a->handed_over; p = next) {
        next = p->next;
        if (p->fd != fd && fstat(p->fd, &now) == 0 && now.st_dev == p->device &&
            now.st_ino == p->inode)
            continue;
        limits_remove(&a->limits, p->key);
        atomic_fetch_sub(&a->server->connections, 1);
        free(unlink_pending(p));
    }
    pthread_mutex_unlock(&a->mutex);
}

/* Takes p, which is in no list. */
static void hand_over(iron__acceptor *a, pending *p) {
    struct sockaddr_storage address = p->address;
    socklen_t bytes = p->address_bytes;
    iron_server *server = a->server;
    struct stat socket = {0};
    enum MHD_Result result;
    int fd = p->fd;

    (void)fstat(fd, &socket);
    p->device = socket.st_dev;
    p->inode = socket.st_ino;
    release_lost(a, fd);
    pthread_mutex_lock(&a->mutex);
    insert(&a->handed_over, p);
    pthread_mutex_unlock(&a->mutex);
    pthread_mutex_lock(&server->daemon_lock);
    result = MHD_add_connection(server->daemon.mhd, fd, (const struct sockaddr *)&address, bytes);
    pthread_mutex_unlock(&server->daemon_lock);
    if (result != MHD_YES)
        release_lost(a, fd); /* it was closed; unless it was started and has ended, it is listed */
}

/* Draining
 *
 * The kernel discards (MSG_TRUNC), so nothing is copied. A duplicate shares its epoll entry with
 * the original, which may live longer: it is removed from epoll before it is closed. */

/* Takes p, which is in no list. From any thread. */
static void drain_pending(iron__acceptor *a, pending *p) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = p};
    const uint64_t one = 1;
    bool is_taken;

    p->is_drained = true;
    p->until_ns = a->server->now_ns() + DRAIN_NS;
    pthread_mutex_lock(&a->mutex);
    is_taken =
        a->drained_count < DRAINED_MAX && epoll_ctl(a->epoll, EPOLL_CTL_ADD, p->fd, &event) == 0;
    if (is_taken) {
        insert(&a->drained, p);
        if (a->drained_count++ == 0)
            (void)!write(a->wake, &one, sizeof one);
    }
    pthread_mutex_unlock(&a->mutex);
    if (!is_taken) {
        close(p->fd);
        free(p);
    }
}

void iron__drain_socket(iron_server *server, int fd) {
    pending *p = fd >= 0 ? calloc(1, sizeof *p) : NULL;

    if (p) {
        p->fd = fd;
        drain_pending(server->acceptor, p);
    } else if (fd >= 0) {
        close(fd);
    }
}

static void end_drain(iron__acceptor *a, pending *p) {
    pthread_mutex_lock(&a->mutex);
    unlink_pending(p);
    a->drained_count--;
    pthread_mutex_unlock(&a->mutex);
    epoll_ctl(a->epoll, EPOLL_CTL_DEL, p->fd, NULL);
    close(p->fd);
    free(p);
}

/* Discards at most 16 MiB, so that the other sockets get their turn. */
static void drain_some(iron__acceptor *a, pending *p) {
    for (int k = 0; k < 16; k++) {
        ssize_t got = recv(p->fd, NULL, (size_t)1 << 20, MSG_TRUNC | MSG_DONTWAIT);

        if (got > 0)
            continue;
        if (got < 0 && errno == EFAULT &&
            recv(p->fd, a->peeked, sizeof a->peeked, MSG_DONTWAIT) > 0)
            continue; /* not TCP: only that discards */
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            end_drain(a, p);
        return;
    }
}

/* Refusing */

/* Takes the text. Sends without waiting: what does not fit into the socket's buffer is lost. */
static void send_problem(int fd, char *text, size_t bytes) {
    if (text)
        (void)!send(fd, text, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    free(text);
}

/* Answers with a problem, counts and logs it; the client gets time to read it. header: NULL if it
 * did not arrive, or cannot be parsed. */
static void refuse(iron__acceptor *a, pending *p, const iron__http_error *error,
                   const iron__header *header) {
    iron_server *server = a->server;
    uint64_t id = iron__request_id(server);
    size_t head, bytes;
    char *text = iron__raw_problem(server, error, id, &head, &bytes);
    const iron__http_problem *problem = iron__http_problem_find(error->kind);
    iron__request_record record = {.id = id,
                                   .problem = problem,
                                   .status = problem->status,
                                   .detail = error->detail,
                                   .client = (const struct sockaddr *)&p->address,
                                   .ns = server->now_ns() - p->since_ns};

    if (recv(p->fd, a->peeked, 5, MSG_PEEK | MSG_DONTWAIT) == 5 &&
        memcmp(a->peeked, "HEAD ", 5) == 0)
        bytes = head;
    record.bytes_out = bytes - head;
    if (header) {
        record.method = header->method;
        record.target = header->target;
    }
    iron__count_latency(server, NULL, record.ns);
    atomic_fetch_add(&server->bytes_out, record.bytes_out);
    iron__log_request(server->log, &record);
    send_problem(p->fd, text, bytes);
    shutdown(p->fd, SHUT_WR);
    remove_pending(a, p);
    if (!p->refusal.kind)
        release(a, p->key);
    drain_pending(a, p);
}

/* Ends a connection whose header is incomplete; one that never asked for anything is not
 * answered. */
static void end_waiting(iron__acceptor *a, pending *p, const iron__http_error *error) {
    if (recv(p->fd, a->peeked, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
        refuse(a, p, error, NULL);
    else
        hang_up(a, p);
}

static void time_out(iron__acceptor *a, pending *p) {
    iron__http_error error = iron__http_error_make("too-slow", "send the whole header at once",
                                                   "the header was not complete after %u ms",
                                                   a->server->options.header_seconds * 1000);

    if (p->refusal.kind) {
        refuse(a, p, &p->refusal, NULL);
        return;
    }
    atomic_fetch_add(&a->server->timed_out, 1);
    end_waiting(a, p, &error);
}

/* Reads what has arrived: hands over, refuses, hangs up, or returns true to wait for more. is_all:
 * the client sends no more. */
static bool examine(iron__acceptor *a, pending *p, bool is_all) {
    ssize_t got = recv(p->fd, a->peeked, sizeof a->peeked, MSG_PEEK | MSG_DONTWAIT);
    iron__http_error error;
    bool is_parsed;
    size_t end;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (got <= 0) {
        hang_up(a, p);
        return false;
    }
    error = iron__header_parse(a->peeked, (size_t)got, &a->header, &end);
    if (end == 0 && !error.kind) {
        if (is_all)
            hang_up(a, p);
        return !is_all;
    }
    is_parsed = !error.kind;
    if (is_parsed)
        error = iron__header_check(&a->header);
    if (p->refusal.kind) {
        refuse(a, p, &p->refusal, is_parsed ? &a->header : NULL);
    } else if (error.kind) {
        atomic_fetch_add(&a->server->malformed, 1);
        refuse(a, p, &error, is_parsed ? &a->header : NULL);
    } else {
        remove_pending(a, p);
        hand_over(a, p);
    }
    return false;
}

/* Making room
 *
 * Connections that only wait for a header must not keep others out. When a limit is reached, the
 * one that has waited longest is dropped for a new one: among those that the acceptor holds, else
 * among those that libmicrohttpd holds (kept open after a response, or under TLS). A client that
 * sends its header at once is thus served, however many others are silent. */

static bool shut_longest_idle(iron_server *server, const uint64_t *key);

/* key: of an address whose limit is reached; NULL: any. False: no connection waits. True: try
 * again; one fewer does. */
static bool make_room(iron__acceptor *a, const uint64_t *key) {
    iron__http_error error =
        iron__http_error_make("busy", "send the whole header at once",
                              "another client took this place before the header was complete");
    pending *oldest = a->list.prev;

    while (oldest != &a->list && (oldest->refusal.kind || (key && oldest->key != *key)))
        oldest = oldest->prev;
    if (oldest != &a->list && !examine(a, oldest, false))
        return true; /* its header had just arrived, or it was gone */
    if (oldest != &a->list)
        end_waiting(a, oldest, &error);
    else if (!shut_longest_idle(a->server, key))
        return false;
    atomic_fetch_add(&a->server->dropped_connections, 1);
    return true;
}

/* Accepting */

static void add_pending(iron__acceptor *a, pending *p) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = p};
    pending *oldest = a->list.prev;

    p->since_ns = a->server->now_ns();
    p->until_ns = p->since_ns + (p->refusal.kind ? REFUSED_WAIT_NS
                                                 : a->server->options.header_seconds * SECOND_NS);
    insert(&a->list, p);
    if (p->refusal.kind && a->refused_count++ == REFUSED_MAX) {
        /* the oldest of those that wait for their refusal is answered now */
        while (!oldest->refusal.kind)
            oldest = oldest->prev;
        time_out(a, oldest);
    }
    if (epoll_ctl(a->epoll, EPOLL_CTL_ADD, p->fd, &event) != 0)
        hang_up(a, p);
}

static void add_connection(iron__acceptor *a, int fd, const struct sockaddr_storage *address,
                           socklen_t bytes) {
    const iron_server_options *o = &a->server->options;
    uint64_t key = address_key((const struct sockaddr *)address);
    iron__http_error refusal = iron__http_error_none();
    bool is_tls = a->server->is_tls;
    limit_result result;
    pending *p = NULL;

    do {
        pthread_mutex_lock(&a->mutex);
        result = limits_add(&a->limits, key);
        pthread_mutex_unlock(&a->mutex);
    } while (result != LIMIT_OK && make_room(a, result == LIMIT_ADDRESS ? &key : NULL));
    if (result == LIMIT_ALL)
        refusal = iron__http_error_make("busy", "try again a little later",
                                        "all %u connections of the server are in use",
                                        o->max_connections);
    else if (result == LIMIT_ADDRESS)
        refusal = iron__http_error_make(
            "too-many-connections", "reuse connections, or open fewer of them",
            "all %u connections of this address are in use", o->max_per_address);
    if (result == LIMIT_OK)
        atomic_fetch_add(&a->server->connections, 1);
    else
        atomic_fetch_add(&a->server->refused_connections, 1);
    if (!refusal.kind || !is_tls) /* under TLS a refusal cannot be sent */
        p = calloc(1, sizeof *p);
    if (p) {
        *p = (pending){
            .fd = fd, .address = *address, .address_bytes = bytes, .key = key, .refusal = refusal};
        (is_tls ? hand_over : add_pending)(a, p);
        return;
    }
    if (refusal.kind) {
        const iron__log_member what[] = {
            {.name = "client", .address = (const struct sockaddr *)address},
            {.name = "message", .text = refusal.detail},
            {0}};

        iron__log_event(a->server->log, IRON_LOG_WARNING, "refused", what, NULL);
    } else {
        release(a, key);
    }
    close(fd);
}

static void accept_some(iron__acceptor *a, int listen_fd) {
    for (int k = 0; k < ACCEPTED_PER_EVENT && listen_fd >= 0; k++) {
        struct sockaddr_storage address;
        socklen_t bytes = sizeof address;
        int fd =
            accept4(listen_fd, (struct sockaddr *)&address, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            add_connection(a, fd, &address, bytes);
        } else if (errno != ECONNABORTED && errno != EINTR) {
            if (errno != EAGAIN) /* no descriptors, no memory: others must end first */
                nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
            return;
        }
    }
}

static void time_out_late(iron__acceptor *a) {
    uint64_t now = a->server->now_ns();
    bool is_late;

    for (pending *p = a->list.next, *next; p != &a->list; p = next) {
        next = p->next;
        if (now >= p->until_ns)
            time_out(a, p);
    }
    do { /* the drained connection that has waited longest */
        pending *last;

        pthread_mutex_lock(&a->mutex);
        last = a->drained.prev;
        is_late = last != &a->drained && now >= last->until_ns;
        pthread_mutex_unlock(&a->mutex);
        if (is_late)
            end_drain(a, last);
    } while (is_late);
}

static bool is_waiting(iron__acceptor *a) {
    bool is_waiting;

    pthread_mutex_lock(&a->mutex);
    is_waiting = a->handed_over.next != &a->handed_over || a->drained_count > 0;
    pthread_mutex_unlock(&a->mutex);
    return is_waiting || a->list.next != &a->list;
}

/* Waits for events, for at most a tick if anything can time out, and deals with them. */
static void serve_events(iron__acceptor *a) {
    const int tick_ms = (int)a->server->tick_ms;
    struct epoll_event events[64];
    int ready = epoll_wait(a->epoll, events, 64, is_waiting(a) ? tick_ms : -1);
    bool has_more = false; /* a listening socket is ready, or the thread was woken */
    uint64_t calls;

    for (int k = 0; k < ready; k++) {
        pending *p = events[k].data.ptr;

        if (!p)
            has_more = true;
        else if (p->is_drained)
            drain_some(a, p);
        else
            (void)examine(a, p, events[k].events & EPOLLRDHUP);
    }
    if (has_more) { /* last: no new connection reuses a pointer still ahead */
        (void)!read(a->wake, &calls, sizeof calls);
        for (size_t k = 0; k < a->server->listener_count; k++)
            accept_some(a, a->server->listeners[k].fd);
    }
    if (iron__clock_ns() - a->checked_ns >= (uint64_t)tick_ms * NS_PER_MS) {
        a->checked_ns = iron__clock_ns();
        time_out_late(a);
        release_lost(a, -1);
    }
}

static void *run_acceptor(void *context) {
    iron__acceptor *a = context;

    while (!atomic_load(&a->is_stopping))
        serve_events(a);
    return NULL;
}

iron_status iron__connections_accept(iron_server *server, iron_error *err) {
    const iron_server_options *o = &server->options;
    iron__acceptor *a = calloc(1, sizeof *a);
    struct epoll_event event = {.events = EPOLLIN}; /* data.ptr NULL: no pending connection */
    bool is_watched;
    int number;

    IRON_FAIL_IF(!a, err, IRON_E_NOMEM, "out of memory for the acceptor");
    server->acceptor = a; /* from here on iron__connections_stop frees it */
    pthread_mutex_init(&a->mutex, NULL);
    a->server = server;
    a->list.next = a->list.prev = &a->list;
    a->handed_over.next = a->handed_over.prev = &a->handed_over;
    a->drained.next = a->drained.prev = &a->drained;
    a->epoll = epoll_create1(EPOLL_CLOEXEC);
    a->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    a->limits = (limits){.all_max = o->max_connections, .address_max = o->max_per_address};
    a->limits.entries = calloc(o->max_connections, sizeof *a->limits.entries);
    IRON_FAIL_IF(!a->limits.entries, err, IRON_E_NOMEM, "out of memory for a table of %u addresses",
                 o->max_connections);
    is_watched =
        a->epoll >= 0 && a->wake >= 0 && epoll_ctl(a->epoll, EPOLL_CTL_ADD, a->wake, &event) == 0;
    for (size_t k = 0; k < server->listener_count; k++)
        is_watched =
            is_watched && epoll_ctl(a->epoll, EPOLL_CTL_ADD, server->listeners[k].fd, &event) == 0;
    if (!is_watched)
        return iron__fail(err, IRON_E_IO, errno, "cannot watch the listening sockets: %s",
                          strerror(errno));
    number = pthread_create(&a->thread, NULL, run_acceptor, a);
    if (number != 0)
        return iron__fail(err, IRON_E_NOMEM, number, "cannot start a thread: %s", strerror(number));
    a->is_running = true;
    return IRON_OK;
}

void iron__listeners_close(iron_server *server) {
    for (iron__listener *l = server->listeners; l < server->listeners + server->listener_count;
         l++) {
        if (l->fd >= 0 && l->address.ss_family == AF_UNIX)
            (void)unlink(((const struct sockaddr_un *)&l->address)->sun_path);
        if (l->fd >= 0)
            close(l->fd);
        l->fd = -1;
    }
}

/* Timeouts
 *
 * One thread checks every tick which clients keep the server waiting too long:
 *
 *     a header that does not arrive, also on a connection kept open for the next request;
 *     a body that arrives more slowly than the minimum rate;
 *     a whole request that takes its client too long;
 *     a response that is not read.
 *
 * Only waiting for the client counts: while the server works (waits for the disk, for a device) no
 * clock runs. A client that is too slow gets a 408 if no response has begun and the connection is
 * not under TLS, and is disconnected.
 *
 * Two locks, always taken in this order: the list's, then a connection's. A connection leaves the
 * list before its descriptor is closed, so the thread never touches another's. Disconnecting has
 * two steps: the 408 and the end of our side, while the client may still read; two seconds later
 * the end of both sides, which also wakes the connection's thread. */

/* What TCP knows about a socket: bytes since the connection was made, and bytes written that the
 * client has not acknowledged; of other sockets only the last. */
typedef struct progress {
    uint64_t acked, received;
    int unsent;
} progress;

static progress socket_progress(int fd) {
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    progress p = {0};

    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0) {
        p.acked = info.tcpi_bytes_acked;
        p.received = info.tcpi_bytes_received;
    }
    if (ioctl(fd, SIOCOUTQ, &p.unsent) != 0)
        p.unsent = 0;
    return p;
}

/* Phases, entered by the connection's thread */

bool iron__connection_enter(const iron_server *server, iron__connection *c, iron__phase phase,
                            size_t body_bytes) {
    bool is_response = phase == IRON_PHASE_SENDING || phase == IRON_PHASE_STREAMING;
    progress p = is_response ? socket_progress(c->fd) : (progress){0};
    uint64_t now = server->now_ns();
    bool is_alive;

    pthread_mutex_lock(&c->mutex);
    is_alive = c->phase != IRON_PHASE_TIMED_OUT && c->phase != IRON_PHASE_SHUT;
    if (is_alive) {
        if (c->phase == IRON_PHASE_IDLE)
            c->waited_ns = c->body_bytes = 0;
        if (c->phase == IRON_PHASE_BODY || c->phase == IRON_PHASE_SENDING)
            c->waited_ns += now - c->since_ns;
        c->body_bytes += body_bytes;
        c->phase = phase;
        c->since_ns = now;
        if (is_response) {
            c->acked = p.acked;
            c->received = p.received;
            c->acked_at_ns = now;
        }
    }
    pthread_mutex_unlock(&c->mutex);
    return is_alive;
}

/* Timeouts, checked by their own thread */

/* Sends the 408. If the header never arrived, no other code logs the request. */
static void send_timeout(iron_server *server, iron__connection *c, const char *reason,
                         uint64_t now) {
    iron__http_error error =
        iron__http_error_make("too-slow", "send faster, or in smaller pieces", "%s", reason);
    const iron__http_problem *problem = iron__http_problem_find("too-slow");
    bool has_request = c->phase == IRON_PHASE_BODY;
    uint64_t id = has_request ? c->request_id : iron__request_id(server);
    size_t head, bytes;
    char *text = iron__raw_problem(server, &error, id, &head, &bytes);

    c->is_told = true;
    if (!has_request) {
        struct sockaddr_storage address = {0};
        socklen_t address_bytes = sizeof address;

        (void)getpeername(c->fd, (struct sockaddr *)&address, &address_bytes);
        iron__count_latency(server, NULL, now - c->since_ns);
        iron__log_request(server->log,
                          &(iron__request_record){.id = id,
                                                  .status = problem->status,
                                                  .client = (struct sockaddr *)&address,
                                                  .ns = now - c->since_ns,
                                                  .problem = problem,
                                                  .detail = reason});
    }
    send_problem(c->fd, text, bytes);
    iron__drain_socket(server, fcntl(c->fd, F_DUPFD_CLOEXEC, 0));
}

static void disconnect(iron_server *server, iron__connection *c, const char *reason, uint64_t now) {
    bool can_tell = c->phase == IRON_PHASE_BODY ||
                    (c->phase == IRON_PHASE_IDLE && socket_progress(c->fd).received != c->received);

    c->timeout_reason = reason;
    if (c->phase != IRON_PHASE_IDLE || can_tell)
        atomic_fetch_add(&server->timed_out, 1);
    if (can_tell && !server->is_tls) {
        send_timeout(server, c, reason, now);
        shutdown(c->fd, SHUT_WR);
        c->phase = IRON_PHASE_TIMED_OUT;
        c->since_ns = now;
        return;
    }
    c->phase = IRON_PHASE_SHUT;
    shutdown(c->fd, SHUT_RDWR);
}

/* Is the response no longer read? What the client acknowledges, it has received. */
static bool is_stalled(iron__connection *c, uint64_t now) {
    progress p = socket_progress(c->fd);

    if (p.unsent == 0 || p.acked != c->acked || p.unsent != c->unsent) {
        c->acked = p.acked;
        c->unsent = p.unsent;
        c->acked_at_ns = now;
    }
    return now - c->acked_at_ns > STALL_NS;
}

/* Why the connection has timed out, or NULL. */
static const char *timeout_reason(const iron_server_options *o, iron__connection *c, uint64_t now) {
    uint64_t here = now - c->since_ns, waited = c->waited_ns + here;

    switch (c->phase) {
    case IRON_PHASE_IDLE:
        return here > o->header_seconds * SECOND_NS ? "the header was not complete in time" : NULL;
    case IRON_PHASE_BODY:
        if (waited > o->request_seconds * SECOND_NS)
            return "the request was not complete in time";
        if (waited > BODY_GRACE_NS &&
            (double)c->body_bytes < (double)o->min_body_rate * ((double)waited / 1e9))
            return "the body arrives more slowly than this server accepts";
        return NULL;
    case IRON_PHASE_SENDING:
        if (waited > o->request_seconds * SECOND_NS)
            return "the response was not read in time";
        return is_stalled(c, now) ? "the response is not read" : NULL;
    case IRON_PHASE_STREAMING:
        return is_stalled(c, now) ? "the response is not read" : NULL;
    default:
        return NULL;
    }
}

static void *run_timeouts(void *context) {
    iron_server *server = context;
    iron__worker *w = &server->timeouts;
    const iron__connection *end = &server->connected;
    struct timespec until;

    pthread_mutex_lock(&w->mutex);
    while (!w->is_over) {
        uint64_t now = server->now_ns();

        for (iron__connection *c = end->next; c != end; c = c->next) {
            const char *reason = NULL;

            pthread_mutex_lock(&c->mutex);
            if (now > c->since_ns) /* it may have changed since `now` was read */
                reason = timeout_reason(&server->options, c, now);
            if (reason)
                disconnect(server, c, reason, now);
            if (c->phase == IRON_PHASE_TIMED_OUT && now > c->since_ns + TIMED_OUT_NS) {
                c->phase = IRON_PHASE_SHUT;
                shutdown(c->fd, SHUT_RDWR);
            }
            pthread_mutex_unlock(&c->mutex);
        }
        until = iron__deadline_after(server->tick_ms * NS_PER_MS);
        if (end->next == end)
            pthread_cond_wait(&w->wake, &w->mutex);
        else
            pthread_cond_timedwait(&w->wake, &w->mutex, &until);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

static iron_status timeouts_start(iron_server *server, iron_error *err) {
    server->connected.next = server->connected.prev = &server->connected;
    return iron__worker_start(&server->timeouts, run_timeouts, server, err);
}

/* Shuts the connection that has waited longest for a header, and no longer counts it; see
 * make_room. Those that have sent a token go last. */
static bool shut_longest_idle(iron_server *server, const uint64_t *key) {
    const iron__connection *end = &server->connected;
    iron__connection *chosen = NULL; /* stays locked */

    pthread_mutex_lock(&server->timeouts.mutex);
    for (iron__connection *c = end->next; c != end; c = c->next) {
        iron__connection *passed = c;

        pthread_mutex_lock(&c->mutex);
        if (c->phase == IRON_PHASE_IDLE && (!key || c->key == *key) &&
            (!chosen || c->is_known < chosen->is_known ||
             (c->is_known == chosen->is_known && c->since_ns < chosen->since_ns))) {
            passed = chosen;
            chosen = c;
        }
        if (passed)
            pthread_mutex_unlock(&passed->mutex);
    }
    if (chosen) {
        chosen->phase = IRON_PHASE_SHUT;
        chosen->is_released = true;
        shutdown(chosen->fd, SHUT_RDWR);
        pthread_mutex_unlock(&chosen->mutex);
        release(server->acceptor, chosen->key);
    }
    pthread_mutex_unlock(&server->timeouts.mutex);
    return chosen != NULL;
}

/* A connection that the acceptor hands over has a header already, except under TLS. */
static iron__connection *connection_open(iron_server *server, int fd,
                                         const struct sockaddr *address) {
    iron__connection *c = calloc(1, sizeof *c), *head = &server->connected;

    if (!c)
        return NULL;
    pthread_mutex_init(&c->mutex, NULL);
    c->fd = fd;
    c->key = address_key(address);
    c->phase = server->is_tls ? IRON_PHASE_IDLE : IRON_PHASE_WORKING;
    c->since_ns = server->now_ns();
    pthread_mutex_lock(&server->timeouts.mutex);
    if (head->next == head)
        pthread_cond_signal(&server->timeouts.wake);
    c->prev = head;
    c->next = head->next;
    c->next->prev = c;
    head->next = c;
    pthread_mutex_unlock(&server->timeouts.mutex);
    return c;
}

/* False: it is no longer counted. */
static bool connection_close(iron_server *server, iron__connection *c) {
    bool is_counted;

    pthread_mutex_lock(&server->timeouts.mutex);
    c->prev->next = c->next;
    c->next->prev = c->prev;
    is_counted = !c->is_released;
    pthread_mutex_unlock(&server->timeouts.mutex);
    pthread_mutex_destroy(&c->mutex);
    free(c);
    return is_counted;
}

/* Start and stop */

/* libmicrohttpd's callback for connections that begin and end; their context is the connection. */
static void connection_notify(void *context, struct MHD_Connection *mhd, void **socket_context,
                              enum MHD_ConnectionNotificationCode code) {
    const struct sockaddr *address =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    iron_server *server = context;
    iron__acceptor *a = server->acceptor;
    iron__connection *c;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        int fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        pending *p;

        pthread_mutex_lock(&a->mutex);
        for (p = a->handed_over.next; p != &a->handed_over && p->fd != fd;)
            p = p->next;
        if (p != &a->handed_over)
            free(unlink_pending(p));
        pthread_mutex_unlock(&a->mutex);
        *socket_context = c = connection_open(server, fd, address);
        if (c)
            c->mhd = mhd;
        if (c && server->is_tls)
            iron__tls_watch(c);
        return; /* NULL, without memory: its requests end at once */
    }
    if (!*socket_context || connection_close(server, *socket_context))
        release(a, address_key(address));
    *socket_context = NULL;
}

iron_status iron__connections_start(iron_server *server, iron_error *err) {
    IRON_TRY(timeouts_start(server, err));
    return iron__http_start(server, connection_notify, &server->daemon, err);
}

void iron__daemon_stop(iron__daemon *daemon) {
    if (daemon->mhd)
        MHD_stop_daemon(daemon->mhd);
    if (daemon->key)
        explicit_bzero(daemon->key, strlen(daemon->key));
    free(daemon->key);
    free(daemon->cert);
    *daemon = (iron__daemon){0};
}

/* libmicrohttpd cannot change its certificate. So a second one is started for new connections, and
 * the first is stopped when its connections have ended: at a later call, or with the server. */
iron_status iron__connections_renew(iron_server *server, iron__daemon renewed, iron_error *err) {
    iron__daemon *place = NULL;

    for (iron__daemon *d = server->retired; d < server->retired + IRON_RETIRED_MAX; d++) {
        const union MHD_DaemonInfo *info =
            d->mhd ? MHD_get_daemon_info(d->mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS) : NULL;

        if (info && info->num_connections == 0)
            iron__daemon_stop(d);
        if (!d->mhd)
            place = d;
    }
    IRON_FAIL_IF(
        !place, err, IRON_E_STATE,
        "connections with each of the last %u certificates are still open; try again later",
        IRON_RETIRED_MAX);
    IRON_TRY(iron__http_start(server, connection_notify, &renewed, err));
    pthread_mutex_lock(&server->daemon_lock);
    *place = server->daemon;
    server->daemon = renewed;
    pthread_mutex_unlock(&server->daemon_lock);
    return IRON_OK;
}

static void wait_for_requests(iron_server *server, uint64_t milliseconds) {
    uint64_t until_ns = server->now_ns() + milliseconds * NS_PER_MS;

    while (atomic_load(&server->in_flight) > 0 && server->now_ns() < until_ns)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

void iron__connections_stop(iron_server *server) {
    iron__acceptor *a = server->acceptor;
    const uint64_t one = 1;

    if (a) {
        wait_for_requests(server, server->options.grace_seconds * UINT64_C(1000));
        if (a->is_running) {
            atomic_store(&a->is_stopping, true);
            (void)!write(a->wake, &one, sizeof one);
            pthread_join(a->thread, NULL);
        }
        for (pending *p = a->list.next, *next; p != &a->list; p = next) {
            next = p->next;
            hang_up(a, p);
        }
        for (size_t k = 0; k < server->listener_count; k++) /* a service manager keeps them open */
            (void)epoll_ctl(a->epoll, EPOLL_CTL_DEL, server->listeners[k].fd, NULL);
        iron__listeners_close(server);
    }
    atomic_store(&server->is_cutting, true);
    wait_for_requests(server, CUTTING_MS);
    iron__daemon_stop(&server->daemon);
    for (iron__daemon *d = server->retired; d < server->retired + IRON_RETIRED_MAX; d++)
        iron__daemon_stop(d);
    iron__worker_stop(&server->timeouts);
    if (!a)
        return;
    while (a->drained_count > 0) /* the last connections get their time to be drained */
        serve_events(a);
    for (pending *p = a->handed_over.next, *next; p != &a->handed_over; p = next) {
        next = p->next;
        free(p);
    }
    if (a->epoll >= 0)
        close(a->epoll);
    if (a->wake >= 0)
        close(a->wake);
    free(a->limits.entries);
    pthread_mutex_destroy(&a->mutex);
    free(a);
    server->acceptor = NULL;
}
