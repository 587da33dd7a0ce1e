/* SPDX-License-Identifier: MIT */
/*
 * server.c: a server's beginning and end.
 *
 * It begins with what can be refused quickly, then the store, which may take its time, and accepts
 * connections last. It ends in the opposite order: no new connections, no new work; what is in
 * flight has its grace; then bodies are refused at their next bytes, sockets are shut, threads
 * join, and the store is closed when nobody can use it any more.
 */
#include "server/server.h"

#include "server/process.h"

#include "core/clock.h"
#include "core/fail.h"
#include "core/small_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PEM_BYTES_MAX    ((size_t)1 << 20)
#define REPORT_BYTES_MAX ((size_t)64 << 20)
#define BODY_GRACE_MS    10000u
#define STALL_MS         30000u
#define CUTTING_MS       1000u

/* A connection takes a descriptor, and a second one while it ends; the rest is for everything
 * else. Where the system gives too few, so many connections are taken that others can be refused:
 * that takes a descriptor too. */
static void provide_descriptors(iron_server_options *options, iron__log *log) {
    rlim_t need = (rlim_t)options->max_connections + 1024;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return;
    limit.rlim_cur = limit.rlim_max < need ? limit.rlim_max : need;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 2 >= options->max_connections)
        return;
    options->max_connections = limit.rlim_cur > 2 ? (uint32_t)(limit.rlim_cur / 2) : 1;
    iron__note(log,
               "the system gives this process %llu descriptors (ulimit -n): %u connections at once",
               (unsigned long long)limit.rlim_cur, options->max_connections);
}

static iron_status read_secrets(iron_server *server, iron_error *err) {
    const iron_server_options *o = &server->site.options;
    size_t bytes;

    if (o->token_file)
        IRON_TRY(iron__token_read(&server->token, o->token_file, err));
    IRON_FAIL_IF(!server->listen.is_loopback && !o->token_file, err, IRON_E_ARG,
                 "listen '%s': an address that others can reach needs a token file (--token-file)",
                 server->listen.host);
    server->is_tls = o->tls_cert != NULL;
    if (server->is_tls) {
        IRON_TRY(iron__small_file_read(o->tls_cert, "certificate", PEM_BYTES_MAX, false,
                                       &server->tls_cert, &bytes, err));
        IRON_TRY(iron__small_file_read(o->tls_key, "TLS key", PEM_BYTES_MAX, true, &server->tls_key,
                                       &bytes, err));
    }
    if (!server->listen.is_loopback && !server->is_tls)
        iron__note(server->site.log,
                   "%s is reachable by others without TLS: the token and all data can be read on "
                   "their way",
                   server->listen.host);
    return IRON_OK;
}

static iron_status read_report(iron_server *server, iron_error *err) {
    const char *path = server->site.options.report;

    if (!path)
        return IRON_OK;
    IRON_TRY(iron__small_file_read(path, "report", REPORT_BYTES_MAX, false, &server->report,
                                   &server->site.report_bytes, err));
    server->site.report = (const unsigned char *)server->report;
    return IRON_OK;
}

/* Begins a line of JSON, where the log is one and tells of this. */
static bool begin_line(iron_server *server, iron__log_line *line, const char *event) {
    iron__log *log = server->site.log;

    return iron__log_is_json(log) && iron__log_wants(log, IRON_LOG_INFO) &&
           iron__log_begin(log, line, IRON_LOG_INFO, event);
}

/* What nobody needs who reads sentences. */
static void say_start(iron_server *server) {
    const iron_service *service = server->site.options.service;
    iron__log_line line;

    if (!begin_line(server, &line, "start"))
        return;
    iron__json_write_text(&line.json, "version", iron_version());
    iron__json_write_whole(&line.json, "pid", (uint64_t)getpid());
    iron__json_write_text(&line.json, "listen",
                          service && service->listen_fd ? "a socket that was handed over"
                                                        : server->site.options.listen);
    iron__log_end(&line);
}

static void say_ready(iron_server *server) {
    const char *url = iron_server_url(server), *data = server->site.options.data;
    uint64_t engines = iron_server_engines(server);
    iron__log_line line;

    if (!iron__log_is_json(server->site.log)) {
        iron__log_tell(server->site.log, IRON_LOG_INFO, "ready",
                       "serving %s, data in %s, %" PRIu64 " engine%s", url, data, engines,
                       engines == 1 ? "" : "s");
    } else if (begin_line(server, &line, "ready")) {
        iron__json_write_text(&line.json, "url", url);
        iron__json_write_text(&line.json, "data", data);
        iron__json_write_whole(&line.json, "engines", engines);
        iron__log_end(&line);
    }
}

static iron_status prepare(iron_server *server, const iron_server_options *given, iron_error *err) {
    iron_server_options *o = &server->site.options;
    iron__log_plan log;

    IRON_TRY(iron__options_init(o, given, err));
    IRON_TRY(iron__options_log(o, &log, err));
    IRON_TRY(iron__log_open(&log, &server->site.log, err));
    iron__notify_open(&server->notify, o->service, server->site.log);
    say_start(server);
    if (o->service && o->service->listen_fd)
        IRON_TRY(iron__listen_adopt(&server->listen, (int)o->service->listen_fd, err));
    else
        IRON_TRY(iron__listen_parse(&server->listen, o->listen, err));
    IRON_TRY(read_secrets(server, err));
    IRON_TRY(read_report(server, err));
    server->nowhere = fopen("/dev/null", "w");
    IRON_FAIL_IF(!server->nowhere, err, IRON_E_IO, "cannot open /dev/null");
    server->hosts = (iron__hosts){.scheme = server->is_tls ? "https" : "http",
                                  .address = server->listen.host,
                                  .is_loopback = server->listen.is_loopback,
                                  .more = o->hosts,
                                  .more_count = o->host_count};
    provide_descriptors(o, server->site.log);
    return IRON_OK;
}

static iron_status open_store(iron_server *server, iron_error *err) {
    const iron_server_options *o = &server->site.options;
    iron__store_options options = {.directory = o->data,
                                   .engines_max = o->max_engines,
                                   .uploads_max = o->max_uploads,
                                   .loading = iron__notify_loading,
                                   .loading_context = &server->notify};

    return iron__store_open(&options, &server->site.store, err);
}

static iron_status open_gate(iron_server *server, int listen_fd, iron_error *err) {
    const iron_server_options *o = &server->site.options;
    iron__gate_plan plan = {.listen_fd = listen_fd,
                            .is_tls = server->is_tls,
                            .header_ms = o->header_seconds * 1000,
                            .site = &server->site,
                            .linger = server->linger,
                            .hand = iron__daemon_hand,
                            .context = server};

    return iron__gate_open(&plan, &server->gate, err);
}

static iron_status start_watch(iron_server *server, iron_error *err) {
    const iron_server_options *o = &server->site.options;
    iron__watch_plan plan = {.site = &server->site,
                             .linger = server->linger,
                             .is_tls = server->is_tls,
                             .header_ms = o->header_seconds * 1000,
                             .request_ms = o->request_seconds * 1000,
                             .body_grace_ms = BODY_GRACE_MS,
                             .body_rate = o->min_body_rate,
                             .stall_ms = STALL_MS};

    return iron__watch_start(&plan, &server->watch, err);
}

/* The socket that was handed over, or one of our own. */
static iron_status open_socket(iron_server *server, int *fd, iron_error *err) {
    const iron_service *service = server->site.options.service;

    if (!service || !service->listen_fd)
        return iron__listen_open(&server->listen, server->hosts.scheme, fd, err);
    iron__listen_name(&server->listen, server->hosts.scheme);
    *fd = (int)service->listen_fd;
    return IRON_OK;
}

static iron_status start_serving(iron_server *server, iron_error *err) {
    const iron_service *service = server->site.options.service;

    IRON_TRY(iron__gate_start(server->gate, err));
    IRON_TRY(iron__pulse_start(&server->notify, &server->site, server->listen.url,
                               service ? service->watchdog_us : 0, &server->pulse, err));
    say_ready(server);
    return IRON_OK;
}

static iron_status start(iron_server *server, const iron_server_options *given, iron_error *err) {
    int listen_fd;

    IRON_TRY(prepare(server, given, err));
    IRON_TRY(iron__linger_start(&server->linger, err));
    IRON_TRY(start_watch(server, err));
    IRON_TRY(open_socket(server, &listen_fd, err));
    IRON_TRY(open_gate(server, listen_fd, err));
    IRON_TRY(iron__daemon_start(server, err));
    IRON_TRY(open_store(server, err));
    server->site.started_ns = iron__clock_ns();
    server->site.started_ms = iron__now_ms();
    server->site.process_start = iron__process_start();
    return start_serving(server, err);
}

static void destroy(iron_server *server) {
    iron__pulse_stop(server->pulse);
    MHD_stop_daemon(server->daemon);
    iron__linger_stop(server->linger);
    iron__watch_stop(server->watch);
    iron__gate_close(server->gate);
    if (server->site.store)
        iron__store_close(server->site.store);
    iron__notify_close(&server->notify);
    if (server->nowhere)
        fclose(server->nowhere);
    if (server->tls_key)
        explicit_bzero(server->tls_key, strlen(server->tls_key));
    explicit_bzero(&server->token, sizeof server->token);
    free(server->tls_key);
    free(server->tls_cert);
    free(server->report);
    iron__options_deinit(&server->site.options);
    iron__tickets_deinit(&server->site.tickets);
    iron__log_close(server->site.log);
    pthread_mutex_destroy(&server->reading);
    free(server);
}

iron_status iron_server_start(const iron_server_options *options, iron_server **out,
                              iron_error *err) {
    iron_error why = {0};
    iron_server *server;
    iron_status status;

    *out = NULL;
    IRON_FAIL_IF(!options, err, IRON_E_ARG, "a server needs options");
    server = calloc(1, sizeof *server);
    IRON_FAIL_IF(!server, err, IRON_E_NOMEM, "out of memory: server");
    pthread_mutex_init(&server->reading, NULL);
    iron__tickets_init(&server->site.tickets);
    server->notify.fd = -1;
    status = start(server, options, &why);
    if (status == IRON_OK) {
        *out = server;
        return IRON_OK;
    }
    iron__notify_tell(&server->notify, "STATUS=refused: %s", why.text);
    destroy(server);
    if (err)
        *err = why;
    return status;
}

const char *iron_server_url(const iron_server *server) { return server->listen.url; }

uint64_t iron_server_engines(const iron_server *server) {
    return iron__store_list(server->site.store, NULL, 0);
}

static void wait_for_flights(iron_server *server, uint64_t milliseconds) {
    uint64_t until_ns = iron__clock_ns() + milliseconds * 1000000;

    while (atomic_load(&server->site.in_flight) > 0 && iron__clock_ns() < until_ns)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

iron_status iron_server_stop(iron_server *server, iron_error *err) {
    iron_status status;

    if (!server)
        return IRON_OK;
    iron__log_tell(server->site.log, IRON_LOG_INFO, "stop", "stopping");
    iron__pulse_stop(server->pulse);
    server->pulse = NULL;
    iron__notify_tell(&server->notify, "STOPPING=1\nSTATUS=stopping: what is in flight has %u s",
                      server->site.options.grace_seconds);
    atomic_store(&server->site.is_stopping, true);
    iron__store_stop(server->site.store);
    iron__gate_shut(server->gate);
    wait_for_flights(server, server->site.options.grace_seconds * UINT64_C(1000));
    atomic_store(&server->is_cutting, true);
    wait_for_flights(server, CUTTING_MS);
    MHD_stop_daemon(server->daemon);
    server->daemon = NULL;
    status = iron__store_failure(server->site.store, err);
    destroy(server);
    return status;
}

bool iron_server_complain(const iron_server_options *options, const iron_error *error) {
    iron_server_options asked = {.log = options->log ? options->log : "text",
                                 .log_level = options->log_level ? options->log_level : "info"};
    iron__log_plan plan;
    iron__log *log;

    if (iron__options_log(&asked, &plan, NULL) != IRON_OK ||
        iron__log_open(&plan, &log, NULL) != IRON_OK)
        return false;
    iron__log_tell(log, IRON_LOG_ERROR, "error", "%s", error->text);
    iron__log_close(log);
    return true;
}
