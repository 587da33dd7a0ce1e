/* SPDX-License-Identifier: MIT */
/*
 * route_metrics_text.c: see route_metrics.h. Names end in their unit, counters in _total; a family
 * has its HELP and TYPE once, before its samples, which stand together. What the system does not
 * tell is left out. docs/server.md has the same names in the same order.
 */
#include "server/route_metrics.h"

#include "server/exchange.h"

#include <inttypes.h>
#include <string.h>

#define NANO 1e-9

static const char *const outcomes[IRON_FEED_FAILED + 1] = {
    [IRON_FEED_POSITION] = "position", [IRON_FEED_KEY_REUSED] = "key_reused",
    [IRON_FEED_RAGGED] = "ragged",     [IRON_FEED_BAD_TOKEN] = "bad_token",
    [IRON_FEED_GONE] = "gone",         [IRON_FEED_BUSY] = "busy",
    [IRON_FEED_STOPPING] = "stopping", [IRON_FEED_READ_ONLY] = "read_only",
    [IRON_FEED_FAILED] = "failed",     [IRON_FEED_REPEATED] = "repeated",
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

    while (strcmp(iron__routes[k].pattern, iron__routes[row].pattern) != 0)
        k++;
    return k;
}

static void write_latency(FILE *to, const iron__site *site) {
    iron__latency_view none = {0};
    size_t rows = 0;

    family(to, "iron_request_seconds", "histogram",
           "From the header of a request to the end of its answer, or the beginning of a stream.");
    while (rows < IRON_ROUTES_MAX && iron__routes[rows].method)
        rows++;
    for (size_t k = 0; k < rows; k++) {
        iron__latency_view view = {0};
        char label[120];

        if (first_row(k) != k)
            continue;
        for (size_t other = k; other < rows; other++)
            if (first_row(other) == k)
                iron__latency_add(&site->latency[other], &view);
        snprintf(label, sizeof label, "route=\"%s\",", iron__routes[k].pattern);
        histogram(to, "iron_request_seconds", label, &view);
    }
    iron__latency_add(&site->latency[IRON_ROUTES_MAX], &none);
    histogram(to, "iron_request_seconds", "route=\"none\",", &none);
}

static void write_requests(FILE *to, const iron__site *site) {
    counter(to, "iron_requests_total", "Requests, also those refused before a route.",
            now(&site->requests));
    gauge(to, "iron_requests_in_flight",
          "Requests whose header has come and whose answer has not gone, this one too.",
          atomic_load(&site->in_flight));
    family(to, "iron_answers_total", "counter", "Answers by class of status.");
    for (unsigned k = 1; k < 6; k++)
        fprintf(to, "iron_answers_total{class=\"%uxx\"} %" PRIu64 "\n", k, now(&site->answers[k]));
    family(to, "iron_rejected_total", "counter", "Answers that are problems, by kind.");
    for (size_t k = 0; k < IRON_PROBLEM_COUNT; k++)
        labelled_whole(to, "iron_rejected_total", "reason", iron__problems[k].kind,
                       now(&site->rejected[k]));
    counter(to, "iron_requests_malformed_total", "Requests refused as malformed.",
            now(&site->malformed));
    counter(to, "iron_requests_timed_out_total", "Requests that a deadline ended.",
            now(&site->timed_out));
    write_latency(to, site);
    counter(to, "iron_body_bytes_total", "Bytes of bodies received.", now(&site->bytes_in));
    counter(to, "iron_answer_bytes_total", "Bytes of bodies of answers that have ended.",
            now(&site->bytes_out));
}

static void write_connections(FILE *to, const iron__metrics *m) {
    const iron__site *site = m->site;

    gauge(to, "iron_connections", "Connections now.", atomic_load(&site->connections));
    gauge(to, "iron_connections_limit", "Connections at most.", site->options.max_connections);
    counter(to, "iron_connections_refused_total", "Connections refused by a limit.",
            now(&site->refused_connections));
    gauge(to, "iron_uploads", "Large bodies on their way now.", m->counts.uploads);
    gauge(to, "iron_uploads_limit", "Large bodies at most.", site->options.max_uploads);
}

static void write_store(FILE *to, const iron__store_counts *c) {
    counter(to, "iron_feeds_total", "Feeds made durable.", c->feeds);
    counter(to, "iron_tokens_total", "Tokens made durable.", c->tokens);
    counter(to, "iron_fed_bytes_total", "Bytes of feeds made durable.", c->bytes);
    counter(to, "iron_batches_total", "Batches made durable.", c->batches);
    family(to, "iron_feeds_refused_total", "counter", "Feeds that changed nothing, by reason.");
    for (size_t k = 0; k <= IRON_FEED_FAILED; k++)
        if (outcomes[k])
            labelled_whole(to, "iron_feeds_refused_total", "reason", outcomes[k], c->refused[k]);
    counter(to, "iron_commits_total", "Transactions.", c->commits);
    counter(to, "iron_commit_jobs_total", "Requests that went with transactions.", c->jobs);
    family(to, "iron_commit_seconds", "histogram", "A transaction, from its first row to COMMIT.");
    histogram(to, "iron_commit_seconds", "", &c->commit_latency);
    gauge(to, "iron_commit_queue", "Requests that wait for a transaction now.", c->queued);
    real(to, "iron_last_commit_timestamp_seconds", "gauge",
         "When the last transaction was done, since 1970; 0 if there was none since the start.",
         (double)c->last_commit_ms / 1e3);
    counter(to, "iron_snapshots_total", "Snapshots taken.", c->snapshots);
}

static void write_disk(FILE *to, const iron__store_disk *disk) {
    gauge(to, "iron_database_bytes", "The database file.", disk->database);
    gauge(to, "iron_database_log_bytes", "The write-ahead log beside it.", disk->log);
    gauge(to, "iron_data_free_bytes", "Free in the file system of the data folder.", disk->free);
    gauge(to, "iron_data_size_bytes", "The size of that file system.", disk->size);
}

/* A family with a sample an engine, of the whole number at this offset of its view. */
static void write_figure(FILE *to, const iron__metrics *m, const char *name, const char *type,
                         const char *help, size_t offset) {
    uint64_t value;

    family(to, name, type, help);
    for (size_t k = 0; k < m->engine_count; k++) {
        memcpy(&value, (const char *)&m->engines[k] + offset, sizeof value);
        labelled_whole(to, name, "engine", m->engines[k].plan.name, value);
    }
}

static void write_rates(FILE *to, const iron__metrics *m) {
    family(to, "iron_engine_tokens_per_second", "gauge",
           "Tokens that came to an engine, a second, over about the last two.");
    for (size_t k = 0; k < m->engine_count; k++) {
        labelled(to, "iron_engine_tokens_per_second", "engine", m->engines[k].plan.name);
        fprintf(to, "%.3f\n", m->engines[k].rate);
    }
}

static void write_engines(FILE *to, const iron__metrics *m) {
    gauge(to, "iron_engines", "Engines now.", m->engine_count);
    gauge(to, "iron_engines_limit", "Engines at most.", m->site->options.max_engines);
    if (m->engine_count == 0)
        return;
    write_figure(to, m, "iron_engine_tokens_total", "counter",
                 "Tokens of an engine since it was made.", offsetof(iron__kept_view, tokens));
    write_figure(to, m, "iron_engine_batches_total", "counter",
                 "Batches of an engine since it was made.", offsetof(iron__kept_view, batches));
    write_figure(to, m, "iron_engine_feeds_total", "counter",
                 "Feeds of an engine since it was made.", offsetof(iron__kept_view, feeds));
    write_rates(to, m);
    write_figure(to, m, "iron_engine_incoming_tokens", "gauge",
                 "Tokens of large bodies that have come and are not part of the engine yet.",
                 offsetof(iron__kept_view, incoming));
}

static void write_process(FILE *to, const iron__metrics *m) {
    const iron__process *p = &m->process;

    real(to, "process_cpu_seconds_total", "counter", "Processor time, of user and system.",
         p->cpu_seconds);
    if (p->resident_bytes)
        gauge(to, "process_resident_memory_bytes", "Memory in use.", p->resident_bytes);
    if (p->virtual_bytes)
        gauge(to, "process_virtual_memory_bytes", "Address space in use.", p->virtual_bytes);
    if (p->open_fds)
        gauge(to, "process_open_fds", "Descriptors that are open.", p->open_fds);
    if (p->max_fds)
        gauge(to, "process_max_fds", "Descriptors at most.", p->max_fds);
    if (m->site->process_start > 0)
        real(to, "process_start_time_seconds", "gauge", "When the process was started, since 1970.",
             m->site->process_start);
}

void iron__metrics_write(FILE *to, const iron__metrics *m) {
    family(to, "iron_build_info", "gauge", "1, with the version.");
    labelled_whole(to, "iron_build_info", "version", iron_version(), 1);
    real(to, "iron_uptime_seconds", "gauge", "Since the server was started.", m->uptime_seconds);
    gauge(to, "iron_read_only", "1 after a write has failed.", m->is_read_only);
    write_requests(to, m->site);
    write_connections(to, m);
    write_store(to, &m->counts);
    write_disk(to, &m->disk);
    write_engines(to, m);
    counter(to, "iron_log_lines_total", "Lines written to standard error.", m->log_lines);
    counter(to, "iron_log_dropped_total", "Lines that nobody took in time, or that failed.",
            m->log_dropped);
    write_process(to, m);
}
