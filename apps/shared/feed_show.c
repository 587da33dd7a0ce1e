/* SPDX-License-Identifier: MIT */
/* feed_show.c: see feed_show.h. */
#include "feed_show.h"

#include "json.h"

#include <inttypes.h>
#include <stdio.h>

static void print_files(const iron_source *source) {
    for (size_t k = 0; k < iron_source_file_count(source); k++)
        printf("%-9s %s\n", k ? "" : "files", iron_source_file(source, k));
}

void feed_show_text(const feed_findings *f) {
    const iron_engine *e = f->engine;
    const iron_source *source = f->source;
    const iron_report *r = &f->report;

    if (iron_source_file_count(source) > 1)
        print_files(source);
    printf("tokens    %" PRIu64 "\nbatches   %" PRIu64 "\nxor       %08" PRIx32
           "\nsum       %" PRIu64 "\nstate     %016" PRIx64 "\n",
           r->tokens, r->batches, r->xor_total, r->sum, r->state);
    if (r->has_seal)
        printf("seal      %s\n", r->seal);
    printf("mode      %s (%s)\ndevice    %s: %s\nmemory    %s\ntime      %.6f s, %.3f GB/s\n",
           iron_engine_mode(e), iron_engine_mode_reason(e), iron_engine_backend(e),
           iron_engine_device(e), iron_engine_memory(e), f->seconds, f->rate);
    if (f->ranks > 0)
        printf("ranks     %" PRIu64 "\n", f->ranks);
}

void feed_show_json(const feed_findings *f) {
    const iron_engine *e = f->engine;
    const iron_source *source = f->source;
    const iron_report *r = &f->report;
    char sum[24];
    json j = {0};

    snprintf(sum, sizeof sum, "%" PRIu64, r->sum);
    json_open(&j, NULL, '{');
    json_number(&j, "tokens", r->tokens);
    json_number(&j, "batches", r->batches);
    json_hex(&j, "xor", r->xor_total, 8);
    json_text(&j, "sum", sum);
    json_hex(&j, "state", r->state, 16);
    if (r->has_seal)
        json_text(&j, "seal", r->seal);
    json_text(&j, "mode", iron_engine_mode(e));
    json_text(&j, "mode_reason", iron_engine_mode_reason(e));
    json_text(&j, "backend", iron_engine_backend(e));
    json_text(&j, "device", iron_engine_device(e));
    json_text(&j, "memory", iron_engine_memory(e));
    json_real(&j, "seconds", "%.6f", f->seconds);
    json_real(&j, "gb_per_s", "%.6f", f->rate);
    if (f->setup > 0)
        json_real(&j, "setup_seconds", "%.6f", f->setup);
    if (f->ranks > 0)
        json_number(&j, "ranks", f->ranks);
    json_open(&j, "files", '[');
    for (size_t k = 0; k < iron_source_file_count(source); k++)
        json_text(&j, NULL, iron_source_file(source, k));
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}
