/* SPDX-License-Identifier: MIT */
/*
 * log.c: the queue of lines, and the thread that writes them; see log.h.
 *
 * Two buffers: lines are put into one while the other is written, then they change places. So
 * nobody waits for a write, and a burst is written in few. The time of a line is when it was put,
 * taken under the lock: lines stand in the order of their times.
 *
 * The thread asks poll before it writes, for a write that blocks could not be given up at the end;
 * the descriptor is not ours to make non-blocking, since others have it too. Should a write block
 * all the same, the log is left behind with its thread: the process is about to end.
 */
#include "server/log.h"

#include "core/clock.h"
#include "core/fail.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROOM_BYTES  ((size_t)2 << 20) /* a third of a second of 20,000 requests in each */
#define PATIENCE_MS 3000u
#define POLL_MS     50
#define PAUSE_NS    2000000 /* between two turns: a wake-up for each line would cost more than it */
#define STAMP_BYTES 37u     /* {"time": "2026-11-16T10:38:09.123Z", */

struct iron__log {
    iron__log_plan plan;
    pthread_t thread;
    pthread_mutex_t mutex;    /* guards what follows */
    pthread_cond_t call, end; /* there is work; the thread has ended */
    char *filled, *written;   /* written is the thread's */
    size_t used;              /* of filled */
    uint64_t untold;          /* lines that did not fit, since that was told last */
    time_t second;            /* what stamp says */
    char stamp[STAMP_BYTES + 1];
    bool is_idle, is_closing, is_over;
    uint64_t closing_ns; /* when it began to end */

    atomic_uint_fast64_t lines, dropped;
};

uint64_t iron__log_lines(const iron__log *log) { return log ? atomic_load(&log->lines) : 0; }

uint64_t iron__log_dropped(const iron__log *log) { return log ? atomic_load(&log->dropped) : 0; }

bool iron__log_is_json(const iron__log *log) { return log && log->plan.is_json; }

bool iron__log_wants(const iron__log *log, iron__log_level level) {
    return log && level >= log->plan.least;
}

/* The beginning of a line of JSON, with the time. Called with the lock held. */
static void stamp(iron__log *log) {
    struct timespec now;
    struct tm parts;
    char text[STAMP_BYTES + 1];

    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != log->second && gmtime_r(&now.tv_sec, &parts)) {
        strftime(log->stamp, sizeof log->stamp, "{\"time\": \"%Y-%m-%dT%H:%M:%S.000Z\", ", &parts);
        log->second = now.tv_sec;
    }
    snprintf(text, sizeof text, "%03u", (unsigned)(now.tv_nsec / 1000000) % 1000);
    memcpy(log->stamp + STAMP_BYTES - 7, text, 3);
}

static void append(iron__log *log, const char *bytes, size_t count) {
    memcpy(log->filled + log->used, bytes, count);
    log->used += count;
}

void iron__log_put(iron__log *log, const char *line, size_t bytes) {
    size_t more;

    if (!log)
        return;
    more = log->plan.is_json ? STAMP_BYTES - 1 : 0;
    pthread_mutex_lock(&log->mutex);
    if (!line || log->used + more + bytes > log->plan.room) {
        log->untold++;
        atomic_fetch_add(&log->dropped, 1);
    } else {
        if (log->plan.is_json) {
            stamp(log);
            append(log, log->stamp, STAMP_BYTES);
            append(log, line + 1, bytes - 1);
        } else {
            append(log, line, bytes);
        }
        if (log->is_idle)
            pthread_cond_signal(&log->call);
    }
    pthread_mutex_unlock(&log->mutex);
}

/* Has the end begun, and is its time over? */
static bool is_out_of_patience(iron__log *log) {
    bool is_out;

    pthread_mutex_lock(&log->mutex);
    is_out = log->is_closing &&
             iron__clock_ns() - log->closing_ns > log->plan.patience_ms * UINT64_C(1000000);
    pthread_mutex_unlock(&log->mutex);
    return is_out;
}

/* All of them, or false: it cannot be written, or nobody takes it and the log ends. */
static bool write_bytes(iron__log *log, const char *at, size_t count) {
    while (count > 0) {
        struct pollfd ready = {.fd = log->plan.fd, .events = POLLOUT};
        ssize_t done;

        if (poll(&ready, 1, POLL_MS) == 0) {
            if (is_out_of_patience(log))
                return false;
            continue;
        }
        done = write(log->plan.fd, at, count);
        if (done < 0 && errno != EINTR && errno != EAGAIN)
            return false;
        at += done > 0 ? done : 0;
        count -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* Whole lines from the beginning, as many as go into one write. */
static size_t take_lines(const char *at, size_t count, uint64_t *lines) {
    size_t taken = 0;

    *lines = 0;
    while (taken < count) {
        const char *end = memchr(at + taken, '\n', count - taken);
        size_t next = end ? (size_t)(end - at) + 1 : count;

        if (*lines > 0 && next > IRON_LOG_WRITE_MAX)
            break;
        taken = next;
        ++*lines;
    }
    return taken;
}

static void write_lines(iron__log *log, const char *at, size_t count) {
    bool is_given_up = false;

    while (count > 0) {
        uint64_t lines;
        size_t bytes = take_lines(at, count, &lines);

        if (!is_given_up && write_bytes(log, at, bytes))
            atomic_fetch_add(&log->lines, lines);
        else
            atomic_fetch_add(&log->dropped, lines);
        is_given_up = is_given_up || is_out_of_patience(log);
        at += bytes;
        count -= bytes;
    }
}

/* Waits for lines; false when there will be none. `untold`: how many did not fit since. */
static bool next_lines(iron__log *log, size_t *count, uint64_t *untold) {
    char *full;

    pthread_mutex_lock(&log->mutex);
    log->is_idle = true;
    while (log->used == 0 && !log->is_closing)
        pthread_cond_wait(&log->call, &log->mutex);
    log->is_idle = false;
    full = log->filled;
    log->filled = log->written;
    log->written = full;
    *count = log->used;
    log->used = 0;
    *untold = log->untold;
    log->untold = 0;
    pthread_mutex_unlock(&log->mutex);
    return *count > 0;
}

static void *run(void *context) {
    iron__log *log = context;
    size_t count;
    uint64_t untold;

    while (next_lines(log, &count, &untold)) {
        write_lines(log, log->written, count);
        if (untold > 0)
            iron__log_tell(log, IRON_LOG_WARNING, "dropped",
                           "%llu lines of this log were dropped: nobody took them in time",
                           (unsigned long long)untold);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    pthread_mutex_lock(&log->mutex);
    log->is_over = true;
    pthread_cond_signal(&log->end);
    pthread_mutex_unlock(&log->mutex);
    return NULL;
}

static void destroy(iron__log *log) {
    pthread_cond_destroy(&log->call);
    pthread_cond_destroy(&log->end);
    pthread_mutex_destroy(&log->mutex);
    free(log->filled);
    free(log->written);
    free(log);
}

/* Signals are for whoever waits for them; a pipe without a reader is an error of write. */
static int start_thread(iron__log *log) {
    sigset_t all, before;
    int number;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    number = pthread_create(&log->thread, NULL, run, log);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return number;
}

iron_status iron__log_open(const iron__log_plan *plan, iron__log **out, iron_error *err) {
    iron__log *log = calloc(1, sizeof *log);
    pthread_condattr_t monotonic;
    int number;

    *out = NULL;
    IRON_FAIL_IF(!log, err, IRON_E_NOMEM, "out of memory: the log");
    log->plan = *plan;
    log->plan.room = plan->room ? plan->room : ROOM_BYTES;
    log->plan.patience_ms = plan->patience_ms ? plan->patience_ms : PATIENCE_MS;
    log->second = -1;
    pthread_mutex_init(&log->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&log->call, NULL);
    pthread_cond_init(&log->end, &monotonic);
    pthread_condattr_destroy(&monotonic);
    log->filled = malloc(log->plan.room);
    log->written = malloc(log->plan.room);
    number = log->filled && log->written ? start_thread(log) : ENOMEM;
    if (number != 0) {
        destroy(log);
        return iron__fail(err, IRON_E_NOMEM, number, "the log cannot start: %s", strerror(number));
    }
    *out = log;
    return IRON_OK;
}

/* Has the thread ended by itself, in its time and a little more? */
static bool wait_for_end(iron__log *log) {
    struct timespec until;
    bool is_over;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(log->plan.patience_ms / 1000 + 2);
    pthread_mutex_lock(&log->mutex);
    log->is_closing = true;
    log->closing_ns = iron__clock_ns();
    pthread_cond_signal(&log->call);
    while (!log->is_over && pthread_cond_timedwait(&log->end, &log->mutex, &until) == 0)
        continue;
    is_over = log->is_over;
    pthread_mutex_unlock(&log->mutex);
    return is_over;
}

void iron__log_close(iron__log *log) {
    if (!log)
        return;
    if (!wait_for_end(log)) {
        pthread_detach(log->thread);
        return;
    }
    pthread_join(log->thread, NULL);
    destroy(log);
}
