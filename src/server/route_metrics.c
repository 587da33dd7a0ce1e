/* SPDX-License-Identifier: MIT */
/*
 * route_metrics.c: GET /metrics, in Prometheus' text format 0.0.4.
 *
 * Names end in their unit, counters in _total; a family has its HELP and TYPE once, before its
 * samples, which are together. What /proc does not tell is left out. docs/server.md has the same
 * names in the same order.
 */
#include "server/server_internal.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#define NANO 1e-9

/* All figures, collected before the text is written. */
typedef struct metrics {
    const iron_server *server; /* counters and options; store and log are not used */
    iron__store_counts counts;
    iron__store_disk disk;
    uint64_t log_lines, log_dropped;
    bool is_read_only;
    double uptime_seconds;
    const iron__store_engine_view *engines;
    size_t engine_count;
    iron__run_check *runs; /* that were checked */
    size_t run_count;
} metrics;

static const char *const outcomes[IRON_FEED_FAILED + 1] = {
    [IRON_FEED_POSITION] = "position", [IRON_FEED_KEY_REUSED] = "key_reused",
    [IRON_FEED_RAGGED] = "ragged",     [IRON_FEED_BAD_TOKEN] = "bad_token",
    [IRON_FEED_GONE] = "gone",         [IRON_FEED_BUSY] = "busy",
    [IRON_FEED_STOPPING] = "stopping", [IRON_FEED_READ_ONLY] = "read_only",
    [IRON_FEED_FAILED] = "failed",     [IRON_FEED_REPEATED] = "repeated",
    [IRON_FEED_FULL] = "full",
};

static void family(FILE *to, const char *name, const char *type, const char *help) {
    fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void counter(FILE *to, const char *name, const char *help, uint64_t value) {
    family(to, name, "counter", help);
    fprintf(to, "%s %" PRIu64 "\n", name, value);
}

static void gauge(FILE *to, const char *name, const char *help, uint64_t value) {
    family(to, name, "gauge", help);
    fprintf(to, "%s %" PRIu64 "\n", name, value);
}

static void real(FILE *to, const char *name, const char *type, const char *help, double value) {
    family(to, name, type, help);
    fprintf(to, "%s %.3f\n", name, value);
}

/* The beginning of a sample with a label, whose text may hold anything. */
static void labelled(FILE *to, const char *name, const char *label, const char *text) {
    fprintf(to, "%s{%s=\"", name, label);
    for (; *text; text++) {
        if (*text == '\n')
            fputs("\\n", to);
        else if (*text == '"' || *text == '\\')
            fprintf(to, "\\%c", *text);
        else
            fputc(*text, to);
    }
    fputs("\"} ", to);
}

static void labelled_whole(FILE *to, const char *name, const char *label, const char *text,
                           uint64_t value) {
    labelled(to, name, label, text);
    fprintf(to, "%" PRIu64 "\n", value);
}

static uint64_t now(const atomic_uint_fast64_t *value) { return (uint64_t)atomic_load(value); }

/* The samples of a histogram; labels: "" or `name="value",`, for the buckets. Its count is the sum
 * of its buckets, so that they agree whatever is counted meanwhile. */
static void histogram(FILE *to, const char *name, const char *labels,
                      const iron__latency_view *view) {
    int bare = labels[0] ? (int)strlen(labels) - 1 : 0; /* without the comma */
    const char *open = bare ? "{" : "", *close = bare ? "}" : "";
    uint64_t count = 0;

    for (size_t k = 0; k < IRON_LATENCY_BUCKETS; k++) {
        count += view->buckets[k];
        fprintf(to, "%s_bucket{%sle=\"", name, labels);
        if (k + 1 < IRON_LATENCY_BUCKETS)
            fprintf(to, "%g", iron__latency_edges_us[k] / 1e6);
        else
            fputs("+Inf", to);
        fprintf(to, "\"} %" PRIu64 "\n", count);
    }
    fprintf(to, "%s_sum%s%.*s%s %.9f\n", name, open, bare, labels, close, (double)view->ns * NANO);
    fprintf(to, "%s_count%s%.*s%s %" PRIu64 "\n", name, open, bare, labels, close, count);
}

/* The first row of the table with this row's pattern: methods of a path are one route. */
static size_t first_row(size_t row) {
    size_t k = 0;

    while (strcmp(iron__routes[k]->pattern, iron__routes[row]->pattern) != 0)
        k++;
    return k;
}

static void write_latency(FILE *to, const iron_server *server) {
    iron__latency_view none = {0};
    size_t rows = 0;

    family(to, "iron_request_seconds", "histogram",
           "From a request's header to the end of its response, or to the beginning of a stream.");
    while (rows < IRON_ROUTES_MAX && iron__routes[rows])
        rows++;
    for (size_t k = 0; k < rows; k++) {
        iron__latency_view view = {0};
        char label[120];

        if (first_row(k) != k)
            continue;
        for (size_t other = k; other < rows; other++)
            if (first_row(other) == k)
                iron__latency_add(&server->latency[other], &view);
        snprintf(label, sizeof label, "route=\"%s\",", iron__routes[k]->pattern);
        histogram(to, "iron_request_seconds", label, &view);
    }
    iron__latency_add(&server->latency[IRON_ROUTES_MAX], &none);
    histogram(to, "iron_request_seconds", "route=\"none\",", &none);
}

static void write_requests(FILE *to, const metrics *m) {
    const iron_server *server = m->server;

    counter(to, "iron_requests_total", "Requests, including those refused before a route.",
            now(&server->requests));
    gauge(to, "iron_requests_in_flight", "Requests in progress, including this one.",
          atomic_load(&server->in_flight));
    family(to, "iron_answers_total", "counter", "Responses by class of status.");
    for (unsigned k = 1; k < 6; k++)
        fprintf(to, "iron_answers_total{class=\"%uxx\"} %" PRIu64 "\n", k,
                now(&server->responses[k]));
    family(to, "iron_rejected_total", "counter", "Responses that are problems, by kind.");
    for (size_t k = 0; k < IRON_PROBLEM_COUNT; k++)
        labelled_whole(to, "iron_rejected_total", "reason", iron__http_problems[k].kind,
                       now(&server->problems[k]));
    counter(to, "iron_requests_malformed_total", "Requests refused as malformed.",
            now(&server->malformed));
    counter(to, "iron_requests_timed_out_total", "Requests ended by a timeout.",
            now(&server->timed_out));
    write_latency(to, server);
    counter(to, "iron_body_bytes_total", "Bytes of bodies received.", now(&server->bytes_in));
    counter(to, "iron_answer_bytes_total", "Bytes of bodies of finished responses.",
            now(&server->bytes_out));
    gauge(to, "iron_connections", "Connections now.", atomic_load(&server->connections));
    gauge(to, "iron_connections_limit", "Connections at most.", server->options.max_connections);
    counter(to, "iron_connections_refused_total", "Connections refused by a limit.",
            now(&server->refused_connections));
    counter(to, "iron_connections_dropped_total",
            "Connections without a complete header that were closed to make room for others.",
            now(&server->dropped_connections));
    gauge(to, "iron_uploads", "Large bodies arriving now.", m->counts.uploads);
    gauge(to, "iron_uploads_limit", "Large bodies at most.", server->options.max_uploads);
}

static void write_store(FILE *to, const iron__store_counts *c, const iron__store_disk *disk) {
    counter(to, "iron_feeds_total", "Feeds made durable.", c->feeds);
    counter(to, "iron_tokens_total", "Tokens made durable.", c->tokens);
    counter(to, "iron_fed_bytes_total", "Bytes of feeds made durable.", c->bytes);
    counter(to, "iron_batches_total", "Batches made durable.", c->batches);
    family(to, "iron_feeds_refused_total", "counter", "Feeds that changed nothing, by reason.");
    for (size_t k = 0; k <= IRON_FEED_FAILED; k++)
        if (outcomes[k])
            labelled_whole(to, "iron_feeds_refused_total", "reason", outcomes[k], c->refused[k]);
    counter(to, "iron_commits_total", "Transactions.", c->commits);
    counter(to, "iron_commit_jobs_total", "Requests committed by transactions.", c->jobs);
    family(to, "iron_commit_seconds", "histogram", "A transaction, from its first row to COMMIT.");
    histogram(to, "iron_commit_seconds", "", &c->commit_latency);
    gauge(to, "iron_commit_queue", "Requests waiting for a transaction now.", c->queued);
    real(to, "iron_last_commit_timestamp_seconds", "gauge",
         "Time of the last commit since 1970; 0 if there was none since the start.",
         (double)c->last_commit_ms / 1e3);
    counter(to, "iron_snapshots_total", "Snapshots taken.", c->snapshots);
    counter(to, "iron_engines_moved_total", "Engines moved to the CPU because their device failed.",
            c->moved);
    gauge(to, "iron_database_bytes", "The database file.", disk->database);
    gauge(to, "iron_database_log_bytes", "The write-ahead log beside it.", disk->log);
    gauge(to, "iron_data_free_bytes", "Free space in the file system of the data folder.",
          disk->free);
    gauge(to, "iron_data_size_bytes", "The size of that file system.", disk->size);
    gauge(to, "iron_reserve_bytes", "Disk space held for deletions.", disk->reserve);
}

/* A family with a sample an engine, of the whole number at this offset of its view. */
static void write_figure(FILE *to, const metrics *m, const char *name, const char *type,
                         const char *help, size_t offset) {
    uint64_t value;

    family(to, name, type, help);
    for (size_t k = 0; k < m->engine_count; k++) {
        memcpy(&value, (const char *)&m->engines[k] + offset, sizeof value);
        labelled_whole(to, name, "engine", m->engines[k].plan.name, value);
    }
}

static void write_engines(FILE *to, const metrics *m) {
    gauge(to, "iron_engines", "Engines now.", m->engine_count);
    gauge(to, "iron_engines_limit", "Engines at most.", m->server->options.max_engines);
    if (m->engine_count == 0)
        return;
    write_figure(to, m, "iron_engine_tokens_total", "counter",
                 "Tokens of an engine since it was created.",
                 offsetof(iron__store_engine_view, tokens));
    write_figure(to, m, "iron_engine_batches_total", "counter",
                 "Batches of an engine since it was created.",
                 offsetof(iron__store_engine_view, batches));
    write_figure(to, m, "iron_engine_feeds_total", "counter",
                 "Feeds of an engine since it was created.",
                 offsetof(iron__store_engine_view, feeds));
    family(to, "iron_engine_tokens_per_second", "gauge",
           "Tokens per second that arrived for an engine, over about the last two seconds.");
    for (size_t k = 0; k < m->engine_count; k++) {
        labelled(to, "iron_engine_tokens_per_second", "engine", m->engines[k].plan.name);
        fprintf(to, "%.3f\n", m->engines[k].rate);
    }
    write_figure(to, m, "iron_engine_incoming_tokens", "gauge",
                 "Tokens of large bodies that have arrived and are not part of the engine yet.",
                 offsetof(iron__store_engine_view, incoming));
}

static void write_runs(FILE *to, const metrics *m) {
    gauge(to, "iron_runs", "Training runs that have been checked.", m->run_count);
    if (m->run_count == 0)
        return;
    family(to, "iron_run_records_total", "counter", "Records of a run that were checked.");
    for (size_t k = 0; k < m->run_count; k++)
        labelled_whole(to, "iron_run_records_total", "run", m->runs[k].name, m->runs[k].records);
    family(to, "iron_run_findings_total", "counter",
           "Findings in a run, by kind: the most that a check has found since the start.");
    for (size_t k = 0; k < m->run_count; k++)
        for (int kind = 0; kind < IRON_LEDGER_KINDS; kind++)
            fprintf(to, "iron_run_findings_total{run=\"%s\",kind=\"%s\"} %" PRIu64 "\n",
                    m->runs[k].name, iron_ledger_kind_name((iron_ledger_kind)kind),
                    m->runs[k].most[kind]);
}

/* What is unknown is left out. */
static void write_process(FILE *to, double start) {
    unsigned long long all = 0, resident = 0;
    FILE *from = fopen("/proc/self/statm", "re");
    DIR *fds = opendir("/proc/self/fd");
    long page = sysconf(_SC_PAGESIZE);
    struct rlimit limit;
    struct timespec cpu;
    uint64_t count = 0;

    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0)
        real(to, "process_cpu_seconds_total", "counter", "User and system CPU time.",
             (double)cpu.tv_sec + (double)cpu.tv_nsec * NANO);
    if (from && fscanf(from, "%llu %llu", &all, &resident) == 2) { // NOLINT(cert-err34-c)
        gauge(to, "process_resident_memory_bytes", "Memory in use.", resident * (uint64_t)page);
        gauge(to, "process_virtual_memory_bytes", "Address space in use.", all * (uint64_t)page);
    }
    if (from)
        fclose(from);
    if (fds) {
        for (const struct dirent *entry = readdir(fds); entry; entry = readdir(fds))
            count += entry->d_name[0] != '.';
        closedir(fds);
        gauge(to, "process_open_fds", "Open file descriptors.", count - 1); /* without `fds` */
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        gauge(to, "process_max_fds", "Maximum number of file descriptors.", limit.rlim_cur);
    if (start > 0)
        real(to, "process_start_time_seconds", "gauge", "When the process was started, since 1970.",
             start);
}

static void write_metrics(FILE *to, const metrics *m) {
    family(to, "iron_build_info", "gauge", "1, with the version.");
    labelled_whole(to, "iron_build_info", "version", iron_version(), 1);
    real(to, "iron_uptime_seconds", "gauge", "Time since the server was started.",
         m->uptime_seconds);
    gauge(to, "iron_read_only", "1 after a write has failed.", m->is_read_only);
    gauge(to, "iron_disk_full", "1 while feeds are refused because the disk is full.",
          m->counts.is_full);
    write_requests(to, m);
    write_store(to, &m->counts, &m->disk);
    write_engines(to, m);
    write_runs(to, m);
    counter(to, "iron_log_lines_total", "Lines written to standard error.", m->log_lines);
    counter(to, "iron_log_dropped_total", "Lines that were dropped or could not be written.",
            m->log_dropped);
    write_process(to, m->server->process_start);
}

static void get_metrics(iron__request *req) {
    iron_server *server = req->server;
    metrics m = {.server = server};
    iron__store_engine_view *views = iron__route_views(req, &m.engine_count);
    iron__run_check *runs = calloc(IRON_RUNS_MAX, sizeof *runs);
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = views && runs ? open_memstream(&text, &bytes) : NULL;
    bool is_good = to != NULL;

    if (is_good) {
        m.engines = views;
        m.runs = runs;
        for (size_t k = 0, count = iron__run_checks(server, runs); k < count; k++)
            if (iron__request_sees(req, runs[k].name))
                runs[m.run_count++] = runs[k];
        m.uptime_seconds = (double)(iron__clock_ns() - server->started_ns) * NANO;
        m.is_read_only = iron__store_failure(server->store, NULL) != IRON_OK;
        iron__store_count(server->store, &m.counts, &m.disk);
        m.log_lines = atomic_load(&server->log->lines);
        m.log_dropped = atomic_load(&server->log->dropped);
        write_metrics(to, &m);
        is_good = iron__close_whole(to);
    }
    free(views);
    free(runs);
    if (is_good) {
        iron__response_bytes(req, IRON_RESPONSE_OWNED, 200,
                             "text/plain; version=0.0.4; charset=utf-8", text, bytes);
    } else {
        free(text);
        iron__route_no_memory(req, "the figures");
    }
}

IRON_ROUTE(metrics, "GET", "/metrics", .end = get_metrics);
