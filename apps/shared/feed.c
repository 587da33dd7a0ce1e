/* SPDX-License-Identifier: MIT */
/*
 * feed.c: the options of `feed`, and what is made from them: a configuration, an engine, an open
 * input. Everything that can be refused is refused before the first token is read.
 */
#include "reading.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const option feed_table[FEED_COUNT] = {
    OPTION("vocab", OPTION_NUMBER, "V", feed_options, vocab, "size of the vocabulary", .min = 2,
           .max = UINT64_C(1) << 31, .standard = "50257", GIVEN(feed_options, has_vocab)),
    OPTION("nodes", OPTION_NUMBER, "N", feed_options, nodes, "number of lattice nodes", .min = 1,
           .max = 1 << 20, .standard = "4096", GIVEN(feed_options, has_nodes)),
    OPTION("batch", OPTION_NUMBER, "B", feed_options, batch, "tokens per batch", .min = 1,
           .standard = "786432", GIVEN(feed_options, has_batch)),
    OPTION("positions", OPTION_CHOICE, "P", feed_options, positions,
           "count token positions through the whole stream, or restart at 0 in each batch",
           .choices = "stream batch", .standard = "stream"),
    OPTION("lattice", OPTION_TEXT, "A,B,...", feed_options, lattice, LATTICE_HELP,
           .standard = LATTICE_STANDARD),
    OPTION("activations", OPTION_TEXT, "FILE", feed_options, activations,
           "a .npy file with one 32-bit float per node", .standard = "(j+1)/N"),
    OPTION("mode", OPTION_TEXT, "M", feed_options, mode,
           "algorithm; all modes give the same result, and auto chooses the fastest. scalar, "
           "vector and threads need the CPU, champion, node and hybrid run everywhere, the others "
           "need a GPU",
           .choices = "auto scalar vector threads champion node hybrid atomic2d tiled tiled-wide "
                      "tiled-vector hybrid-vector reduce",
           .standard = "auto"),
    OPTION("memory", OPTION_TEXT, "S", feed_options, memory,
           "how tokens are moved to a GPU; the CPU accepts only auto and pageable",
           .choices = "auto pageable pinned streams uvm uvm-prefetch zero-copy",
           .standard = "auto"),
    OPTION("seal", OPTION_FLAG, NULL, feed_options, wants_seal,
           "also print the seal of the stream, which identifies the tokens and their order"),
    OPTION("state", OPTION_TEXT, "FILE", feed_options, state,
           "save the state to FILE when the whole stream has been read; an existing file is "
           "replaced atomically"),
    OPTION("resume", OPTION_TEXT, "FILE", feed_options, resume,
           "continue from a saved state, starting a new batch"),
    OPTION("json", OPTION_FLAG, NULL, feed_options, wants_json, JSON_HELP),
};

static iron_status read_activations(const char *path, uint64_t nodes, feed_plan *plan,
                                    iron_error *err) {
    plan->activations = malloc((size_t)nodes * sizeof *plan->activations);
    if (!plan->activations)
        return usage(err, "out of memory for %" PRIu64 " activations", nodes);
    return iron_activations_read(path, plan->activations, nodes, err);
}

iron_status feed_plan_make(feed_options *o, feed_plan *plan, iron_error *err) {
    iron_config *c = &plan->config;

    iron_config_init(c);
    IRON_TRY(reading_check(&o->reading, err));
    if (o->has_vocab)
        c->vocab = o->vocab;
    if (o->has_nodes)
        c->nodes = o->nodes;
    if (o->has_batch)
        c->batch = o->batch;
    if (o->positions)
        c->positions =
            strcmp(o->positions, "batch") == 0 ? IRON_POSITIONS_BATCH : IRON_POSITIONS_STREAM;
    c->backend = o->reading.backend;
    c->threads = o->reading.threads;
    c->devices = o->reading.devices;
    c->mode = o->mode;
    c->memory = o->memory;
    c->with_seal = o->wants_seal;
    if (o->lattice) {
        IRON_TRY(parse_lattice(o->lattice, plan->points, &c->lattice_count, err));
        c->lattice = plan->points;
    }
    if (o->activations && !o->resume) {
        IRON_TRY(read_activations(o->activations, c->nodes, plan, err));
        c->activations = plan->activations;
    }
    return IRON_OK;
}

static iron_status contradiction(const feed_options *o, const char *flag, iron_error *err) {
    return usage(err, "--%s contradicts the state in %.100s; leave the option out", flag,
                 o->resume);
}

/* Options given together with --resume must agree with the saved configuration. */
static iron_status check_resumed(const feed_options *o, const iron_engine *e, feed_plan *plan,
                                 iron_error *err) {
    const iron_config *c = &plan->config, *saved = iron_engine_config(e);

    if (o->has_vocab && o->vocab != saved->vocab)
        return contradiction(o, "vocab", err);
    if (o->has_nodes && o->nodes != saved->nodes)
        return contradiction(o, "nodes", err);
    if (o->has_batch && o->batch != saved->batch)
        return contradiction(o, "batch", err);
    if (o->positions && c->positions != saved->positions)
        return contradiction(o, "positions", err);
    if (o->lattice &&
        (c->lattice_count != saved->lattice_count ||
         memcmp(c->lattice, saved->lattice, saved->lattice_count * sizeof *saved->lattice) != 0))
        return contradiction(o, "lattice", err);
    if (o->wants_seal && !saved->with_seal)
        return usage(err, "%.100s was saved without a seal; start the stream again with --seal",
                     o->resume);
    if (!o->activations)
        return IRON_OK;
    IRON_TRY(read_activations(o->activations, saved->nodes, plan, err));
    if (memcmp(plan->activations, saved->activations, saved->nodes * sizeof(float)) != 0)
        return contradiction(o, "activations", err);
    return IRON_OK;
}

iron_status feed_engine_make(const feed_options *o, feed_plan *plan, iron_engine **e,
                             iron_error *err) {
    iron_config run;

    if (!o->resume)
        return iron_engine_create(&plan->config, e, err);
    iron_config_init(&run);
    run.backend = plan->config.backend;
    run.mode = plan->config.mode;
    run.memory = plan->config.memory;
    run.threads = plan->config.threads;
    run.devices = plan->config.devices;
    IRON_TRY(iron_engine_load(o->resume, &run, e, err));
    return check_resumed(o, *e, plan, err);
}

iron_status feed_source_open(const feed_options *o, const args *a, iron_source **source,
                             iron_error *err) {
    IRON_TRY(
        reading_open(&o->reading, (const char *const *)a->values, a->value_count, source, err));
    return reading_guard(*source, "--state", o->state, err);
}

static void print_text(const feed_result *f) {
    const iron_engine *e = f->engine;
    const iron_report *r = &f->report;
    size_t files = iron_source_file_count(f->source);

    for (size_t k = 0; files > 1 && k < files; k++)
        printf("%-9s %s\n", k ? "" : "files", iron_source_file(f->source, k));
    printf("tokens    %" PRIu64 "\nbatches   %" PRIu64 "\nxor       %08" PRIx32
           "\nsum       %" PRIu64 "\nstate     %016" PRIx64 "\n",
           r->tokens, r->batches, r->xor_total, r->sum, r->state);
    if (r->has_seal)
        printf("seal      %s\n", r->seal);
    printf("mode      %s (%s)\ndevice    %s: %s\nmemory    %s\ntime      %.6f s, %.3f GB/s\n",
           iron_engine_mode(e), iron_engine_mode_reason(e), iron_engine_backend(e),
           iron_engine_device(e), iron_engine_memory(e), f->seconds, f->gb_per_s);
    if (f->ranks > 0)
        printf("ranks     %" PRIu64 "\n", f->ranks);
}

static void print_json(const feed_result *f) {
    const iron_engine *e = f->engine;
    iron_json_writer j = json_begin('{');

    json_totals(&j, &f->report);
    JSON_PUT(&j, TEXT("mode", iron_engine_mode(e)), TEXT("mode_reason", iron_engine_mode_reason(e)),
             TEXT("backend", iron_engine_backend(e)), TEXT("device", iron_engine_device(e)),
             TEXT("memory", iron_engine_memory(e)), REAL("seconds", "%.6f", f->seconds),
             REAL("gb_per_s", "%.6f", f->gb_per_s));
    if (f->setup_seconds > 0)
        iron_json_real_format(&j, "setup_seconds", "%.6f", f->setup_seconds);
    if (f->ranks > 0)
        iron_json_number(&j, "ranks", f->ranks);
    if (f->rank_devices) {
        iron_json_open(&j, "rank_devices", '[');
        for (uint64_t k = 0; k < f->ranks; k++)
            iron_json_number(&j, NULL, f->rank_devices[k]);
        iron_json_close(&j, ']');
    }
    json_files(&j, f->source);
    json_end(&j, '}');
}

void feed_print(const feed_result *f, bool as_json) { (as_json ? print_json : print_text)(f); }
