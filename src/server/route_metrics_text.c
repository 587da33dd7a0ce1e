/* SPDX-License-Identifier: MIT */
/*
 * route_metrics_text.c: see route_metrics.h. Names end in their unit, counters in _total; a family
 * has its HELP and TYPE once, before its samples, which stand together.
 */
#include "server/route_metrics.h"

#include <inttypes.h>

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

static uint64_t now(const atomic_uint_fast64_t *value) { return (uint64_t)atomic_load(value); }

/* Its count is the sum of its buckets, so that they agree whatever is counted meanwhile. */
static void write_latency(FILE *to, const iron__site *site) {
    static const unsigned edges[] = IRON_LATENCY_EDGES;
    uint64_t count = 0;

    _Static_assert(sizeof edges / sizeof edges[0] + 1 == IRON_LATENCY_BUCKETS, "one has no edge");
    family(to, "iron_request_seconds", "histogram",
           "From a request's header to the end of its answer.");
    for (size_t k = 0; k < IRON_LATENCY_BUCKETS; k++) {
        count += now(&site->latency[k]);
        if (k + 1 < IRON_LATENCY_BUCKETS)
            fprintf(to, "iron_request_seconds_bucket{le=\"%g\"} %" PRIu64 "\n", edges[k] / 1e3,
                    count);
        else
            fprintf(to, "iron_request_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", count);
    }
    fprintf(to, "iron_request_seconds_sum %.9g\n", (double)now(&site->latency_ns) * NANO);
    fprintf(to, "iron_request_seconds_count %" PRIu64 "\n", count);
}

static void write_requests(FILE *to, const iron__site *site) {
    counter(to, "iron_requests_total", "Requests.", now(&site->requests));
    family(to, "iron_answers_total", "counter", "Answers by class of status.");
    for (unsigned k = 1; k < 6; k++)
        fprintf(to, "iron_answers_total{class=\"%uxx\"} %" PRIu64 "\n", k, now(&site->answers[k]));
    counter(to, "iron_body_bytes_total", "Bytes of bodies received.", now(&site->bytes_in));
    counter(to, "iron_connections_refused_total", "Connections refused by a limit.",
            now(&site->refused_connections));
    counter(to, "iron_requests_timed_out_total", "Requests that a deadline ended.",
            now(&site->timed_out));
    counter(to, "iron_requests_malformed_total", "Requests refused as malformed.",
            now(&site->malformed));
    gauge(to, "iron_connections", "Connections now.", atomic_load(&site->connections));
    write_latency(to, site);
}

static void write_store(FILE *to, const iron__store_counts *c) {
    counter(to, "iron_feeds_total", "Feeds made durable.", c->feeds);
    counter(to, "iron_tokens_total", "Tokens made durable.", c->tokens);
    counter(to, "iron_fed_bytes_total", "Bytes of feeds made durable.", c->bytes);
    counter(to, "iron_batches_total", "Batches made durable.", c->batches);
    family(to, "iron_feeds_refused_total", "counter", "Feeds that changed nothing, by reason.");
    for (size_t k = 0; k <= IRON_FEED_FAILED; k++)
        if (outcomes[k])
            fprintf(to, "iron_feeds_refused_total{reason=\"%s\"} %" PRIu64 "\n", outcomes[k],
                    c->refused[k]);
    counter(to, "iron_commits_total", "Transactions.", c->commits);
    counter(to, "iron_commit_jobs_total", "Requests that went with transactions.", c->jobs);
    family(to, "iron_commit_seconds_total", "counter", "Time in transactions.");
    fprintf(to, "iron_commit_seconds_total %.9g\n", (double)c->commit_ns * NANO);
    counter(to, "iron_snapshots_total", "Snapshots taken.", c->snapshots);
    gauge(to, "iron_commit_queue", "Requests that wait for a transaction now.", c->queued);
    gauge(to, "iron_uploads", "Large bodies on their way now.", c->uploads);
}

/* Names are letters, digits, '.', '_' and '-': none needs to be escaped in a label. */
static void write_engines(FILE *to, const iron__metrics *m) {
    gauge(to, "iron_engines", "Engines now.", m->engine_count);
    if (m->engine_count == 0)
        return;
    family(to, "iron_engine_tokens_total", "counter", "Tokens of an engine since it was made.");
    for (size_t k = 0; k < m->engine_count; k++)
        fprintf(to, "iron_engine_tokens_total{engine=\"%s\"} %" PRIu64 "\n",
                m->engines[k].plan.name, m->engines[k].tokens);
    family(to, "iron_engine_batches_total", "counter", "Batches of an engine since it was made.");
    for (size_t k = 0; k < m->engine_count; k++)
        fprintf(to, "iron_engine_batches_total{engine=\"%s\"} %" PRIu64 "\n",
                m->engines[k].plan.name, m->engines[k].batches);
}

void iron__metrics_write(FILE *to, const iron__metrics *m) {
    family(to, "iron_build_info", "gauge", "1, with the version.");
    fprintf(to, "iron_build_info{version=\"%s\"} 1\n", iron_version());
    family(to, "iron_uptime_seconds", "gauge", "Since the server was started.");
    fprintf(to, "iron_uptime_seconds %.3f\n", m->uptime_seconds);
    gauge(to, "iron_read_only", "1 after a write has failed.", m->is_read_only);
    write_requests(to, m->site);
    write_store(to, &m->counts);
    write_engines(to, m);
}
