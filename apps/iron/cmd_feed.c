/* SPDX-License-Identifier: MIT */
/*
 * cmd_feed.c: `iron feed`: token files or a pipe through the engine.
 *
 * Everything that can be refused is refused before the first token is read: options, the input's
 * files, the place for the state.
 */
#include "command.h"
#include "json.h"
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct feed_options {
    uint64_t vocab, nodes, batch, threads, device;
    const char *positions, *lattice, *activations, *mode, *memory, *state, *resume;
    const char *format, *dtype, *backend;
    bool has_vocab, has_nodes, has_batch, has_threads;
    bool wants_seal, wants_json;
} feed_options;

/* What the options' texts come down to; owns its activations. */
typedef struct feed_plan {
    iron_config config;
    iron_dtype dtype;
    uint32_t points[LATTICE_ROOM];
    float *activations;
} feed_plan;

static iron_status read_activations(const char *path, uint64_t nodes, feed_plan *plan,
                                    iron_error *err) {
    /* nodes is checked by the library later; do not allocate for a mistyped number */
    if (nodes < 1 || nodes > UINT64_C(1) << 20)
        return usage(err, "nodes is %" PRIu64 "; it must be 1 to 1048576", nodes);
    plan->activations = malloc((size_t)nodes * sizeof *plan->activations);
    if (!plan->activations)
        return usage(err, "out of memory for %" PRIu64 " activations", nodes);
    return iron_activations_read(path, plan->activations, nodes, err);
}

static iron_status plan_texts(const feed_options *o, feed_plan *plan, iron_error *err) {
    iron_config *c = &plan->config;
    iron_status status = IRON_OK;

    if (o->dtype)
        status = iron_dtype_parse(o->dtype, &plan->dtype, err);
    if (status == IRON_OK && o->positions)
        status = parse_positions(o->positions, &c->positions, err);
    if (status == IRON_OK && o->lattice) {
        status = parse_lattice(o->lattice, plan->points, &c->lattice_count, err);
        c->lattice = plan->points;
    }
    if (status == IRON_OK && o->has_threads && (o->threads < 1 || o->threads > 1024))
        status = usage(err, "threads is %" PRIu64 "; it must be 1 to 1024", o->threads);
    if (status == IRON_OK && o->device > UINT32_MAX)
        status = usage(err, "device %" PRIu64 " does not exist", o->device);
    return status;
}

static iron_status make_plan(const feed_options *o, feed_plan *plan, iron_error *err) {
    iron_config *c = &plan->config;
    iron_status status;

    iron_config_init(c);
    if (o->has_vocab)
        c->vocab = o->vocab;
    if (o->has_nodes)
        c->nodes = o->nodes;
    if (o->has_batch)
        c->batch = o->batch;
    c->backend = o->backend;
    c->mode = o->mode;
    c->memory = o->memory;
    c->with_seal = o->wants_seal;
    status = plan_texts(o, plan, err);
    c->threads = (uint32_t)o->threads;
    c->device = (uint32_t)o->device;
    if (status == IRON_OK && o->activations && !o->resume) {
        status = read_activations(o->activations, c->nodes, plan, err);
        c->activations = plan->activations;
    }
    return status;
}

static iron_status contradiction(const feed_options *o, const char *flag, iron_error *err) {
    return usage(err, "--%s contradicts the state in %.100s; leave it out, it is in the file", flag,
                 o->resume);
}

static iron_status check_activations(const feed_options *o, iron_engine *e, feed_plan *plan,
                                     iron_error *err) {
    iron_config saved;
    iron_status status;

    if (!o->activations)
        return IRON_OK;
    saved = *iron_engine_config(e);
    status = read_activations(o->activations, saved.nodes, plan, err);
    if (status != IRON_OK)
        return status;
    if (memcmp(plan->activations, saved.activations, saved.nodes * sizeof(float)) != 0)
        return contradiction(o, "activations", err);
    return IRON_OK;
}

/* Flags given along with --resume must say what the file says. */
static iron_status check_flags(const feed_options *o, iron_engine *e, feed_plan *plan,
                               iron_error *err) {
    const iron_config *c = &plan->config;
    iron_config saved;

    saved = *iron_engine_config(e);
    if (o->has_vocab && o->vocab != saved.vocab)
        return contradiction(o, "vocab", err);
    if (o->has_nodes && o->nodes != saved.nodes)
        return contradiction(o, "nodes", err);
    if (o->has_batch && o->batch != saved.batch)
        return contradiction(o, "batch", err);
    if (o->positions && c->positions != saved.positions)
        return contradiction(o, "positions", err);
    if (o->lattice &&
        (c->lattice_count != saved.lattice_count ||
         memcmp(c->lattice, saved.lattice, saved.lattice_count * sizeof *saved.lattice) != 0))
        return contradiction(o, "lattice", err);
    if (o->wants_seal && !saved.with_seal)
        return usage(err, "%.100s was saved without a seal; begin the stream anew with --seal",
                     o->resume);
    return check_activations(o, e, plan, err);
}

static iron_status make_engine(const feed_options *o, feed_plan *plan, iron_engine **e,
                               iron_error *err) {
    iron_config run;
    iron_status status;

    if (!o->resume)
        return iron_engine_create(&plan->config, e, err);
    iron_config_init(&run);
    run.backend = plan->config.backend;
    run.mode = plan->config.mode;
    run.memory = plan->config.memory;
    run.threads = plan->config.threads;
    run.device = plan->config.device;
    status = iron_engine_load(o->resume, &run, e, err);
    return status == IRON_OK ? check_flags(o, *e, plan, err) : status;
}

/* O(nodes x tokens) modes can take hours: say so before, not after. */
static void warn_if_slow(iron_engine *e, uint64_t tokens) {
    double seconds = tokens == IRON_COUNT_UNKNOWN ? 0 : iron_engine_seconds_estimate(e, tokens);

    if (seconds > 60)
        fprintf(stderr,
                "iron: note: mode %s reads every token once a node: about %.0f minutes; "
                "--mode champion gives the same result at once\n",
                iron_engine_mode(e), seconds / 60);
}

static void print_files(const iron_source *source) {
    for (size_t k = 0; k < iron_source_file_count(source); k++)
        printf("%-9s %s\n", k ? "" : "files", iron_source_file(source, k));
}

static void print_text(iron_engine *e, const iron_report *r, const iron_source *source,
                       double seconds, double rate) {
    if (iron_source_file_count(source) > 1)
        print_files(source);
    printf("tokens    %" PRIu64 "\nbatches   %" PRIu64 "\nxor       %08" PRIx32
           "\nsum       %" PRIu64 "\nstate     %016" PRIx64 "\n",
           r->tokens, r->batches, r->xor_total, r->sum, r->state);
    if (r->has_seal)
        printf("seal      %s\n", r->seal);
    printf("mode      %s (%s)\ndevice    %s: %s\nmemory    %s\ntime      %.6f s, %.3f GB/s\n",
           iron_engine_mode(e), iron_engine_mode_reason(e), iron_engine_backend(e),
           iron_engine_device(e), iron_engine_memory(e), seconds, rate);
}

static void print_json(iron_engine *e, const iron_report *r, const iron_source *source,
                       double seconds, double rate) {
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
    json_real(&j, "seconds", "%.6f", seconds);
    json_real(&j, "gb_per_s", "%.6f", rate);
    json_open(&j, "files", '[');
    for (size_t k = 0; k < iron_source_file_count(source); k++)
        json_text(&j, NULL, iron_source_file(source, k));
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

/* Feeds, saves, prints; in this order, so that a printed result is a saved one. */
static iron_status feed(const feed_options *o, iron_engine *e, iron_source *source,
                        iron_error *err) {
    size_t width = iron_dtype_bytes(iron_source_dtype(source));
    iron_report before = {.struct_size = sizeof before}, r = {.struct_size = sizeof r};
    progress p = progress_start(width);
    double started, seconds, rate;
    iron_status status;

    if ((status = iron_engine_report(e, &before, err)) != IRON_OK)
        return status;
    warn_if_slow(e, iron_source_tokens(source));
    /* page-locked memory is taken once, however much is fed: not part of the time */
    if ((status = iron_engine_prepare(e, err)) != IRON_OK)
        return status;
    started = seconds_now();
    status = iron_engine_feed_source(e, source, progress_tell, &p, err);
    if (status == IRON_OK)
        status = iron_engine_end_batch(e, err);
    if (status == IRON_OK)
        status = iron_engine_report(e, &r, err);
    seconds = seconds_now() - started;
    progress_clear(&p);
    if (status == IRON_OK && o->state)
        status = iron_engine_save(e, o->state, err);
    if (status != IRON_OK)
        return status;
    rate = (double)(r.tokens - before.tokens) * (double)width / seconds * 1e-9;
    (o->wants_json ? print_json : print_text)(e, &r, source, seconds, rate);
    return IRON_OK;
}

/* A state must not replace the tokens it was made of. */
static iron_status check_state_target(const char *state, const iron_source *source,
                                      iron_error *err) {
    struct stat target, input;

    if (!state || stat(state, &target) != 0)
        return IRON_OK;
    for (size_t k = 0; k < iron_source_file_count(source); k++) {
        const char *file = iron_source_file(source, k);

        if (stat(file, &input) == 0 && input.st_dev == target.st_dev &&
            input.st_ino == target.st_ino)
            return usage(err, "--state %.100s is an input file; give another name", state);
    }
    return IRON_OK;
}

static iron_status run_planned(const feed_options *o, feed_plan *plan, const args *a,
                               iron_error *err) {
    iron_source_options inputs = {.struct_size = sizeof inputs,
                                  .dtype = plan->dtype,
                                  .format = o->format,
                                  .paths = (const char *const *)a->values,
                                  .path_count = a->value_count};
    iron_source *source = NULL;
    iron_engine *engine = NULL;
    iron_status status = make_engine(o, plan, &engine, err);

    if (status == IRON_OK && o->state)
        status = iron_state_path_check(o->state, err);
    if (status == IRON_OK)
        status = iron_source_open(&inputs, &source, err);
    if (status == IRON_OK)
        status = check_state_target(o->state, source, err);
    if (status == IRON_OK)
        status = feed(o, engine, source, err);
    iron_source_close(source);
    iron_engine_destroy(engine);
    return status;
}

static iron_status run(int argc, char **argv, iron_error *err) {
    feed_options o = {0};
    const option options[] = {
        {"vocab", OPTION_NUMBER, &o.vocab, &o.has_vocab},
        {"nodes", OPTION_NUMBER, &o.nodes, &o.has_nodes},
        {"batch", OPTION_NUMBER, &o.batch, &o.has_batch},
        {"threads", OPTION_NUMBER, &o.threads, &o.has_threads},
        {"device", OPTION_NUMBER, &o.device, NULL},
        {"positions", OPTION_TEXT, &o.positions, NULL},
        {"lattice", OPTION_TEXT, &o.lattice, NULL},
        {"activations", OPTION_TEXT, &o.activations, NULL},
        {"mode", OPTION_TEXT, &o.mode, NULL},
        {"memory", OPTION_TEXT, &o.memory, NULL},
        {"state", OPTION_TEXT, &o.state, NULL},
        {"resume", OPTION_TEXT, &o.resume, NULL},
        {"format", OPTION_TEXT, &o.format, NULL},
        {"dtype", OPTION_TEXT, &o.dtype, NULL},
        {"backend", OPTION_TEXT, &o.backend, NULL},
        {"seal", OPTION_FLAG, &o.wants_seal, NULL},
        {"json", OPTION_FLAG, &o.wants_json, NULL},
    };
    args a = {.options = options, .option_count = COUNT(options)};
    feed_plan plan = {0};
    iron_status status;
    bool is_done;

    status = command_args(&command_feed, &a, argc, argv, &is_done, err);
    if (is_done)
        return status;
    status = make_plan(&o, &plan, err);
    if (status == IRON_OK)
        status = run_planned(&o, &plan, &a, err);
    free(plan.activations);
    return status;
}

const command command_feed = {
    "feed", "runs token files or a pipe through the engine",
    "usage: iron feed FILE...|- --dtype D [OPTIONS]\n\n"
    "Reads raw little-endian tokens, updates the lattice batch by batch and prints what came out.\n"
    "Several files are one stream; a directory stands for its files in natural order; - is\n"
    "standard input. Memory stays bounded however long the stream.\n\n"
    "  --dtype D           u8, u16, u32, i32 or i64: raw data does not say\n"
    "  --format F          auto or raw\n"
    "  --vocab V           2 to 2147483648 (default 50257)\n"
    "  --nodes N           1 to 1048576 (default 4096)\n"
    "  --batch B           tokens in a batch (default 786432)\n"
    "  --positions P       stream: positions count through (default); batch: restart with each\n"
    "  --lattice A,B,...   2 to 64 strictly increasing points in 1 to 65535\n"
    "  --activations F     a .npy file of N numbers (default (j+1)/N)\n"
    "  --backend B         cpu, cuda, opencl, or auto (default): the first CUDA GPU, else the\n"
    "                      first OpenCL GPU, else the CPU; iron info lists what is here\n"
    "  --device K          which device of the backend, counted from 0 (default 0)\n"
    "  --mode M            all give the same result; auto (default) is the fastest. On the CPU:\n"
    "                      scalar vector threads champion node hybrid. On GPUs: atomic2d node\n"
    "                      hybrid tiled tiled-wide tiled-vector hybrid-vector reduce champion\n"
    "  --memory S          how tokens come to a GPU: auto (default) pageable pinned streams uvm\n"
    "                      uvm-prefetch zero-copy. On the CPU: auto or pageable\n"
    "  --threads T         the CPU's threads (default: every CPU this process may use)\n"
    "  --seal              also the stream's seal: same tokens, same order?\n"
    "  --state FILE        saves the state, whole or not at all\n"
    "  --resume FILE       goes on from a saved state, with a new batch\n"
    "  --json              one JSON document\n\n"
    "example: iron feed tokens.bin --dtype u16 --vocab 50257 --state run.state\n",
    run};
