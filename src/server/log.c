/* SPDX-License-Identifier: MIT */
/*
 * log.c: the queue of log lines, the thread that writes them, and the lines themselves.
 *
 * Two buffers: lines are put into one while the other is written, then they are swapped. So no
 * caller waits for a write, and a burst takes few writes. A line's time is when it was queued,
 * taken under the lock, so lines are in the order of their times. Each line goes out in one write,
 * which a pipe takes as a whole if it has at most WRITE_MAX bytes, whatever other processes write
 * there.
 *
 * The thread polls before it writes, since a blocked write could not be given up at the end; the
 * descriptor cannot be made non-blocking, since other processes share it. If a write blocks all the
 * same, the log is left behind with its thread: the process is about to end.
 */
#include "server/server_internal.h"

#include "core/thread_pool.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdarg.h>
#include <unistd.h>

#define ROOM_BYTES ((size_t)2 << 20) /* a third of a second at 20,000 requests per second */
#define WRITE_MAX  4096u             /* PIPE_BUF of Linux */
#define CLOSE_MS   3000u
#define POLL_MS    50
#define PAUSE_NS   2000000 /* between two swaps: waking up for each line would cost more */

/* Client-chosen texts are cut, so that the longest line still has at most WRITE_MAX bytes: each
 * byte may become six. */
#define PATH_MAX_BYTES   300
#define METHOD_MAX_BYTES 20
#define ENGINE_MAX_BYTES 100

/* The queue */

void iron__time_text(uint64_t milliseconds, char text[IRON_TIME_TEXT]) {
    const uint64_t last = UINT64_C(253402300799999); /* of the year 9999 */
    uint64_t bounded = milliseconds < last ? milliseconds : last;
    time_t seconds = (time_t)(bounded / 1000);
    struct tm at;
    size_t used;

    gmtime_r(&seconds, &at);
    used = strftime(text, IRON_TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &at);
    snprintf(text + used, IRON_TIME_TEXT - used, ".%03uZ", (unsigned)(bounded % 1000));
}

/* Queues a whole line with its end; JSON begins with '{', after which the time is put. NULL: there
 * was no memory for the line, and it counts as dropped. */
static void put(iron__log *log, const char *line, size_t bytes) {
    char stamp[64] = "", time[IRON_TIME_TEXT];
    size_t more = 0;

    pthread_mutex_lock(&log->mutex);
    if (log->options.is_json) {
        iron__time_text(iron__now_ms(), time);
        more = (size_t)snprintf(stamp, sizeof stamp, "{\"time\": \"%s\", ", time) - 1;
    }
    if (!line || log->used + more + bytes > log->options.room) {
        log->unreported++;
        atomic_fetch_add(&log->dropped, 1);
    } else {
        memcpy(log->filled + log->used, stamp, more); /* and its last blank instead of the '{' */
        memcpy(log->filled + log->used + more, line, bytes);
        if (more > 0)
            log->filled[log->used + more] = ' ';
        log->used += more + bytes;
        if (log->is_idle)
            pthread_cond_signal(&log->wake);
    }
    pthread_mutex_unlock(&log->mutex);
}

/* Is the log closing, and its time over? */
static bool is_out_of_time(iron__log *log) {
    bool is_out;

    pthread_mutex_lock(&log->mutex);
    is_out = log->is_closing &&
             iron__clock_ns() - log->closing_ns > log->options.close_ms * UINT64_C(1000000);
    pthread_mutex_unlock(&log->mutex);
    return is_out;
}

/* False: it cannot be written, or is not read and the log is closing. */
static bool write_bytes(iron__log *log, const char *at, size_t count) {
    while (count > 0) {
        struct pollfd ready = {.fd = log->options.fd, .events = POLLOUT};
        ssize_t done;

        if (poll(&ready, 1, POLL_MS) == 0) {
            if (is_out_of_time(log))
                return false;
            continue;
        }
        done = write(log->options.fd, at, count);
        if (done < 0 && errno != EINTR && errno != EAGAIN)
            return false;
        at += done > 0 ? done : 0;
        count -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* Each write has the first whole lines that fit into one. */
static void write_lines(iron__log *log, const char *at, size_t count) {
    bool has_given_up = false;

    while (count > 0) {
        uint64_t lines = 0;
        size_t bytes = 0;

        while (bytes < count) {
            const char *end = memchr(at + bytes, '\n', count - bytes);
            size_t next = end ? (size_t)(end - at) + 1 : count;

            if (lines > 0 && next > WRITE_MAX)
                break;
            bytes = next;
            lines++;
        }
        if (!has_given_up && write_bytes(log, at, bytes))
            atomic_fetch_add(&log->lines, lines);
        else
            atomic_fetch_add(&log->dropped, lines);
        has_given_up = has_given_up || is_out_of_time(log);
        at += bytes;
        count -= bytes;
    }
}

/* Waits for lines; false when there will be no more. `unreported`: how many did not fit since. */
static bool next_lines(iron__log *log, size_t *count, uint64_t *unreported) {
    char *full;

    pthread_mutex_lock(&log->mutex);
    log->is_idle = true;
    while (log->used == 0 && !log->is_closing)
        pthread_cond_wait(&log->wake, &log->mutex);
    log->is_idle = false;
    full = log->filled;
    log->filled = log->written;
    log->written = full;
    *count = log->used;
    log->used = 0;
    *unreported = log->unreported;
    log->unreported = 0;
    pthread_mutex_unlock(&log->mutex);
    return *count > 0;
}

static void *run(void *context) {
    iron__log *log = context;
    size_t count;
    uint64_t unreported;

    while (next_lines(log, &count, &unreported)) {
        write_lines(log, log->written, count);
        if (unreported > 0)
            iron__log_event(log, IRON_LOG_WARNING, "dropped", NULL,
                            "%llu lines of this log were dropped: they were not read in time",
                            (unsigned long long)unreported);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    pthread_mutex_lock(&log->mutex);
    log->is_over = true;
    pthread_cond_signal(&log->end);
    pthread_mutex_unlock(&log->mutex);
    return NULL;
}

/* Open and close */

static void destroy(iron__log *log) {
    pthread_cond_destroy(&log->wake);
    pthread_cond_destroy(&log->end);
    pthread_mutex_destroy(&log->mutex);
    free(log->filled);
    free(log->written);
    free(log);
}

iron_status iron__log_open(const iron__log_options *options, iron__log **out, iron_error *err) {
    iron__log *log = calloc(1, sizeof *log);
    int number;

    *out = NULL;
    IRON_FAIL_IF(!log, err, IRON_E_NOMEM, "out of memory for the log");
    log->options = *options;
    log->options.room = options->room ? options->room : ROOM_BYTES;
    log->options.close_ms = options->close_ms ? options->close_ms : CLOSE_MS;
    pthread_mutex_init(&log->mutex, NULL);
    iron__condition_init(&log->wake);
    iron__condition_init(&log->end);
    log->filled = malloc(log->options.room);
    log->written = malloc(log->options.room);
    /* with all signals blocked, SIGPIPE becomes an error of write */
    number = log->filled && log->written ? iron__thread_start(&log->thread, run, log) : ENOMEM;
    if (number != 0) {
        destroy(log);
        return iron__fail(err, IRON_E_NOMEM, number, "cannot start the log: %s", strerror(number));
    }
    *out = log;
    return IRON_OK;
}

void iron__log_close(iron__log *log) {
    struct timespec until; /* its time, and a little more */
    bool is_over;

    if (!log)
        return;
    until = iron__deadline_after((log->options.close_ms / 1000 + 2) * SECOND_NS);
    pthread_mutex_lock(&log->mutex);
    log->is_closing = true;
    log->closing_ns = iron__clock_ns();
    pthread_cond_signal(&log->wake);
    while (!log->is_over && pthread_cond_timedwait(&log->end, &log->mutex, &until) == 0)
        continue;
    is_over = log->is_over;
    pthread_mutex_unlock(&log->mutex);
    if (is_over) {
        pthread_join(log->thread, NULL);
        destroy(log);
    } else {
        pthread_detach(log->thread);
    }
}

/* Lines */

static bool wants(const iron__log *log, iron__log_level level) {
    return log && level >= log->options.level;
}

/* A JSON line while it is written. */
typedef struct json_line {
    iron__log *log;
    iron_json_writer json;
    char *text;
    size_t bytes;
} json_line;

/* Opens an object with its level and event; false: the log does not want it, or there is no memory
 * and the line is dropped. */
static bool begin_line(iron__log *log, json_line *line, iron__log_level level, const char *event) {
    static const char *const names[] = {"debug", "info", "warning", "error"};
    FILE *to;

    if (!wants(log, level) || !log->options.is_json)
        return false;
    *line = (json_line){.log = log};
    to = open_memstream(&line->text, &line->bytes);
    if (!to) {
        put(log, NULL, 0);
        return false;
    }
    line->json = (iron_json_writer){.to = to, .is_one_line = true};
    iron_json_open(&line->json, NULL, '{');
    iron_json_text(&line->json, "level", names[level]);
    iron_json_text(&line->json, "event", event);
    return true;
}

static void end_line(json_line *line) {
    bool is_whole;

    iron_json_close(&line->json, '}');
    iron_json_end(&line->json);
    is_whole = iron__close_whole(line->json.to);
    put(line->log, is_whole ? line->text : NULL, line->bytes);
    free(line->text);
}

/* Left out if it is unknown. */
static void write_address(iron_json_writer *j, const char *name, const struct sockaddr *client) {
    const void *address = client ? iron__address_bytes(client) : NULL;
    char text[INET6_ADDRSTRLEN];

    if (address && inet_ntop(client->sa_family, address, text, sizeof text))
        iron_json_text(j, name, text);
}

void iron__log_event(iron__log *log, iron__log_level level, const char *event,
                     const iron__log_member *members, const char *format, ...) {
    char *sentence = NULL, *text = NULL;
    json_line line;
    va_list values;
    int bytes = 0;

    if (!wants(log, level) || (!format && !log->options.is_json))
        return;
    va_start(values, format);
    if (format)
        bytes = vasprintf(&sentence, format, values);
    va_end(values);
    if (bytes >= 0 && !log->options.is_json)
        bytes = asprintf(&text, "iron: %s\n", sentence);
    if (bytes < 0) {
        put(log, NULL, 0);
    } else if (text) {
        for (int k = 0; k + 1 < bytes; k++) /* one line, whatever is quoted in it */
            if ((unsigned char)text[k] < 0x20)
                text[k] = '?';
        put(log, text, (size_t)bytes);
    } else if (begin_line(log, &line, level, event)) {
        if (!members)
            iron_json_text(&line.json, "message", sentence);
        for (; members && members->name; members++) {
            if (members->text)
                iron_json_text(&line.json, members->name, members->text);
            else if (members->address)
                write_address(&line.json, members->name, members->address);
            else
                iron_json_number(&line.json, members->name, members->number);
        }
        end_line(&line);
    }
    free(text);
    free(sentence);
}

/* Requests */

static iron__log_level level_of(const iron__request_record *r) {
    static const char routine[] = "/healthz /readyz /metrics"; /* every few seconds */

    if (r->route && r->status == 200 &&
        iron__text_is_one_of(iron__text_of(r->route->pattern), routine, false))
        return IRON_LOG_DEBUG;
    if (r->status >= 500 && r->status != 503 && r->status != 505) /* of the client's making */
        return IRON_LOG_ERROR;
    if (r->problem && strcmp(r->problem->kind, "read-only") == 0)
        return IRON_LOG_ERROR;
    return r->problem || r->status >= 400 ? IRON_LOG_WARNING : IRON_LOG_INFO;
}

static void write_cut(iron_json_writer *j, const char *name, iron__text text, int most) {
    char room[PATH_MAX_BYTES + 4];
    bool is_cut = text.bytes > (size_t)most;

    if (!text.at)
        return;
    snprintf(room, sizeof room, "%.*s%s", is_cut ? most : (int)text.bytes, text.at,
             is_cut ? "..." : "");
    iron_json_text(j, name, room);
}

void iron__log_request(iron__log *log, const iron__request_record *r) {
    iron__text path = r->target;
    const char *query = path.at ? memchr(path.at, '?', path.bytes) : NULL;
    json_line line;
    iron_json_writer *j = &line.json;

    if (!begin_line(log, &line, level_of(r), "request"))
        return;
    if (query)
        path.bytes = (size_t)(query - path.at);
    iron_json_hex(j, "request_id", r->id, 16);
    write_cut(j, "method", r->method, METHOD_MAX_BYTES);
    write_cut(j, "path", path, PATH_MAX_BYTES);
    iron_json_text(j, "route", r->route ? r->route->pattern : "none");
    iron_json_number(j, "status", r->status);
    if (r->engine && r->engine[0])
        write_cut(j, "engine", iron__text_of(r->engine), ENGINE_MAX_BYTES);
    write_address(j, "client", r->client);
    iron_json_number(j, "bytes_in", r->bytes_in);
    iron_json_number(j, "bytes_out", r->bytes_out);
    iron_json_real(j, "seconds", (double)r->ns * 1e-9);
    if (r->problem)
        iron_json_text(j, "problem", r->problem->kind);
    if (r->detail)
        iron_json_text(j, "detail", r->detail);
    end_line(&line);
}
