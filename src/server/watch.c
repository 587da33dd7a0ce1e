/* SPDX-License-Identifier: MIT */
/*
 * watch.c: see watch.h.
 *
 * Two locks, always in this order: the list's, and each connection's. A connection leaves the list
 * before its descriptor is closed, so the thread never touches another's. Cutting off has two
 * steps: the 408 and the end of our side, while the peer may still read it; two seconds later the
 * end of both, which also wakes the connection's thread.
 */
#include "server/watch.h"

#include "server/log_request.h"
#include "server/progress.h"
#include "server/wire.h"

#include "core/clock.h"
#include "core/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define LOOK_NS UINT64_C(250000000)
#define CUT_NS  UINT64_C(2000000000)
#define MS      UINT64_C(1000000)

typedef enum phase { IDLE, WORKING, BODY, ANSWERING, STREAMING, CUT, OVER } phase;

struct iron__watched {
    iron__watched *next, *before;
    pthread_mutex_t mutex; /* guards what follows */
    int fd;
    phase phase;
    uint64_t id;
    const char *cut_why; /* NULL: it is not cut off */
    bool is_told;        /* with a 408 */
    uint64_t since_ns;   /* of the phase */
    uint64_t waited_ns;  /* for the client, in earlier phases of this request */
    uint64_t body_bytes;
    uint64_t received;           /* by the socket, when the last answer began */
    uint64_t acked, acked_at_ns; /* the last progress of an answer */
};

struct iron__watch {
    iron__watch_plan plan;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the list and is_stopping */
    pthread_cond_t call;
    bool is_stopping;
    iron__watched list; /* head of a ring */
};

/* Goes to a phase; false if the connection was cut off. */
static bool turn(iron__watched *w, phase next) {
    uint64_t now = iron__clock_ns();

    if (w->phase == CUT || w->phase == OVER)
        return false;
    if (w->phase == BODY || w->phase == ANSWERING)
        w->waited_ns += now - w->since_ns;
    w->phase = next;
    w->since_ns = now;
    return true;
}

bool iron__watched_work(iron__watched *w, uint64_t id) {
    bool is_alive;

    pthread_mutex_lock(&w->mutex);
    if (w->phase == IDLE)
        w->waited_ns = w->body_bytes = 0;
    w->id = id;
    is_alive = turn(w, WORKING);
    pthread_mutex_unlock(&w->mutex);
    return is_alive;
}

bool iron__watched_body(iron__watched *w, size_t bytes) {
    bool is_alive;

    pthread_mutex_lock(&w->mutex);
    w->body_bytes += bytes;
    is_alive = turn(w, BODY);
    pthread_mutex_unlock(&w->mutex);
    return is_alive;
}

static bool send_phase(iron__watched *w, phase next) {
    iron__progress p = iron__progress_of(w->fd);
    bool is_alive;

    pthread_mutex_lock(&w->mutex);
    is_alive = turn(w, next);
    w->acked = p.acked;
    w->received = p.received;
    w->acked_at_ns = w->since_ns;
    pthread_mutex_unlock(&w->mutex);
    return is_alive;
}

bool iron__watched_answer(iron__watched *w) { return send_phase(w, ANSWERING); }

bool iron__watched_stream(iron__watched *w) { return send_phase(w, STREAMING); }

void iron__watched_idle(iron__watched *w) {
    pthread_mutex_lock(&w->mutex);
    (void)turn(w, IDLE);
    pthread_mutex_unlock(&w->mutex);
}

const char *iron__watched_cut(iron__watched *w, bool *is_told) {
    const char *why;

    pthread_mutex_lock(&w->mutex);
    why = w->cut_why;
    *is_told = w->is_told;
    pthread_mutex_unlock(&w->mutex);
    return why;
}

int iron__watched_socket(const iron__watched *w) { return w->fd; }

/* A request whose header never came to its end has nobody else who could tell of it. */
static void record(const iron__watch *watch, const iron__watched *w, uint64_t id, const char *why,
                   uint64_t now) {
    struct sockaddr_storage address = {0};
    socklen_t bytes = sizeof address;

    (void)getpeername(w->fd, (struct sockaddr *)&address, &bytes);
    iron__site_took(watch->plan.site, NULL, now - w->since_ns);
    iron__log_request(watch->plan.site->log,
                      &(iron__request_record){.id = id,
                                              .status = 408,
                                              .client = (struct sockaddr *)&address,
                                              .ns = now - w->since_ns,
                                              .problem = iron__problem_find("too-slow"),
                                              .detail = why});
}

/* The 408, where it can still be said. */
static void tell(const iron__watch *watch, iron__watched *w, const char *why, uint64_t now) {
    iron__verdict verdict =
        iron__verdict_make("too-slow", "send faster, or in smaller pieces", "%s", why);
    uint64_t id = w->phase == BODY ? w->id : iron__request_id(watch->plan.site);
    char room[IRON_WIRE_PROBLEM_MAX];
    size_t bytes = iron__wire_problem(room, &verdict, id);

    w->is_told = true;
    iron__site_answered(watch->plan.site, 408, iron__problem_find("too-slow"));
    if (w->phase != BODY)
        record(watch, w, id, why, now);
    (void)iron__wire_send(w->fd, room, bytes, 0);
    iron__linger_take(watch->plan.linger, fcntl(w->fd, F_DUPFD_CLOEXEC, 0));
}

static void cut(const iron__watch *watch, iron__watched *w, const char *why, uint64_t now) {
    bool can_tell =
        w->phase == BODY || (w->phase == IDLE && iron__progress_of(w->fd).received != w->received);

    w->cut_why = why;
    if (w->phase != IDLE || can_tell)
        atomic_fetch_add(&watch->plan.site->timed_out, 1);
    if (can_tell && !watch->plan.is_tls) {
        tell(watch, w, why, now);
        shutdown(w->fd, SHUT_WR);
        w->phase = CUT;
        w->since_ns = now;
        return;
    }
    w->phase = OVER;
    shutdown(w->fd, SHUT_RDWR);
}

/* Is the answer being read? What the peer acknowledges, it has taken. */
static bool is_stalled(const iron__watch *watch, iron__watched *w, uint64_t now) {
    iron__progress p = iron__progress_of(w->fd);

    if (p.unsent == 0 || p.acked != w->acked) {
        w->acked = p.acked;
        w->acked_at_ns = now;
    }
    return now - w->acked_at_ns > watch->plan.stall_ms * MS;
}

/* What is wrong with a connection now, or NULL. */
static const char *fault(const iron__watch *watch, iron__watched *w, uint64_t now) {
    const iron__watch_plan *plan = &watch->plan;
    uint64_t here = now - w->since_ns, waited = w->waited_ns + here;

    switch (w->phase) {
    case IDLE:
        return here > plan->header_ms * MS ? "the header was not complete in time" : NULL;
    case BODY:
        if (waited > plan->request_ms * MS)
            return "the request was not complete in time";
        if (waited > plan->body_grace_ms * MS &&
            (double)w->body_bytes < (double)plan->body_rate * ((double)waited / 1e9))
            return "the body comes more slowly than this server waits";
        return NULL;
    case ANSWERING:
        if (waited > plan->request_ms * MS)
            return "the answer was not read in time";
        return is_stalled(watch, w, now) ? "the answer is not read" : NULL;
    case STREAMING:
        return is_stalled(watch, w, now) ? "the answer is not read" : NULL;
    default:
        return NULL;
    }
}

static void look(const iron__watch *watch, iron__watched *w, uint64_t now) {
    const char *why;

    pthread_mutex_lock(&w->mutex);
    if (now > w->since_ns) { /* it may have changed since `now` was read */
        why = fault(watch, w, now);
        if (why)
            cut(watch, w, why, now);
        if (w->phase == CUT && now - w->since_ns > CUT_NS) {
            w->phase = OVER;
            shutdown(w->fd, SHUT_RDWR);
        }
    }
    pthread_mutex_unlock(&w->mutex);
}

static void *run(void *context) {
    iron__watch *watch = context;
    struct timespec until;

    pthread_mutex_lock(&watch->mutex);
    while (!watch->is_stopping) {
        uint64_t now = iron__clock_ns();

        for (iron__watched *w = watch->list.next; w != &watch->list; w = w->next)
            look(watch, w, now);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)LOOK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&watch->call, &watch->mutex, &until);
    }
    pthread_mutex_unlock(&watch->mutex);
    return NULL;
}

iron__watched *iron__watch_add(iron__watch *watch, int fd) {
    iron__watched *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    pthread_mutex_init(&w->mutex, NULL);
    w->fd = fd;
    w->since_ns = iron__clock_ns();
    pthread_mutex_lock(&watch->mutex);
    w->before = &watch->list;
    w->next = watch->list.next;
    w->next->before = w;
    watch->list.next = w;
    pthread_mutex_unlock(&watch->mutex);
    return w;
}

void iron__watch_remove(iron__watch *watch, iron__watched *w) {
    pthread_mutex_lock(&watch->mutex);
    w->before->next = w->next;
    w->next->before = w->before;
    pthread_mutex_unlock(&watch->mutex);
    pthread_mutex_destroy(&w->mutex);
    free(w);
}

iron_status iron__watch_start(const iron__watch_plan *plan, iron__watch **out, iron_error *err) {
    iron__watch *watch = calloc(1, sizeof *watch);
    pthread_condattr_t monotonic;
    int number;

    *out = NULL;
    IRON_FAIL_IF(!watch, err, IRON_E_NOMEM, "out of memory: the watch");
    watch->plan = *plan;
    watch->list.next = watch->list.before = &watch->list;
    pthread_mutex_init(&watch->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->call, &monotonic);
    pthread_condattr_destroy(&monotonic);
    number = pthread_create(&watch->thread, NULL, run, watch);
    if (number != 0) {
        pthread_cond_destroy(&watch->call);
        pthread_mutex_destroy(&watch->mutex);
        free(watch);
        return iron__fail(err, IRON_E_NOMEM, number, "cannot start a thread: %s", strerror(number));
    }
    *out = watch;
    return IRON_OK;
}

void iron__watch_stop(iron__watch *watch) {
    if (!watch)
        return;
    pthread_mutex_lock(&watch->mutex);
    watch->is_stopping = true;
    pthread_cond_signal(&watch->call);
    pthread_mutex_unlock(&watch->mutex);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->call);
    pthread_mutex_destroy(&watch->mutex);
    free(watch);
}
