/* SPDX-License-Identifier: MIT */
/*
 * cmd_feed.c: `iron feed`: token files or a pipe through the engine.
 *
 * Everything that can be refused is refused before the first token is read: options, the input's
 * files, the place for the state.
 */
#include "command.h"
#include "feed_plan.h"
#include "feed_show.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>

/* O(nodes x tokens) modes can take hours: say so before, not after. */
static void warn_if_slow(iron_engine *e, uint64_t tokens) {
    double seconds = tokens == IRON_COUNT_UNKNOWN ? 0 : iron_engine_seconds_estimate(e, tokens);

    if (seconds > 60)
        fprintf(stderr,
                "iron: note: mode %s reads every token once a node: about %.0f minutes; "
                "--mode champion gives the same result at once\n",
                iron_engine_mode(e), seconds / 60);
}

/* Feeds, saves, prints; in this order, so that a printed result is a saved one. `begun`: when the
 * engine was asked for. */
static iron_status feed(const feed_options *o, iron_engine *e, iron_source *source, double begun,
                        iron_error *err) {
    size_t width = iron_dtype_bytes(iron_source_dtype(source));
    iron_report before = {.struct_size = sizeof before};
    feed_findings f = {.engine = e, .source = source, .report.struct_size = sizeof f.report};
    progress p = progress_start(width);
    double started;
    iron_status status;

    if ((status = iron_engine_report(e, &before, err)) != IRON_OK)
        return status;
    warn_if_slow(e, iron_source_tokens(source));
    /* page-locked memory is taken once, however much is fed: not part of the time */
    if ((status = iron_engine_prepare(e, err)) != IRON_OK)
        return status;
    started = seconds_now();
    f.setup = started - begun;
    status = iron_engine_feed_source(e, source, progress_tell, &p, err);
    if (status == IRON_OK)
        status = iron_engine_end_batch(e, err);
    if (status == IRON_OK)
        status = iron_engine_report(e, &f.report, err);
    f.seconds = seconds_now() - started;
    progress_clear(&p);
    if (status == IRON_OK && o->state)
        status = iron_engine_save(e, o->state, err);
    if (status != IRON_OK)
        return status;
    f.rate = (double)(f.report.tokens - before.tokens) * (double)width / f.seconds * 1e-9;
    (o->wants_json ? feed_show_json : feed_show_text)(&f);
    return IRON_OK;
}

static iron_status run_planned(const feed_options *o, feed_plan *plan, const args *a,
                               iron_error *err) {
    iron_source *source = NULL;
    iron_engine *engine = NULL;
    double begun = seconds_now();
    iron_status status = feed_engine_make(o, plan, &engine, err);

    if (status == IRON_OK && o->state)
        status = iron_state_path_check(o->state, err);
    if (status == IRON_OK)
        status = feed_source_open(o, a, &source, err);
    if (status == IRON_OK)
        status = feed(o, engine, source, begun, err);
    iron_source_close(source);
    iron_engine_destroy(engine);
    return status;
}

static iron_status run(int argc, char **argv, iron_error *err) {
    feed_options o = {0};
    option options[FEED_OPTIONS];
    args a = {.options = options, .option_count = COUNT(options)};
    feed_plan plan = {0};
    iron_status status;
    bool is_done;

    feed_option_table(&o, options);
    status = command_args(&command_feed, &a, argc, argv, &is_done, err);
    if (is_done)
        return status;
    status = feed_plan_make(&o, &plan, err);
    if (status == IRON_OK)
        status = run_planned(&o, &plan, &a, err);
    free(plan.activations);
    return status;
}

const command command_feed = {
    "feed", "runs token files or a pipe through the engine",
    "usage: iron feed FILE...|- [--dtype D] [OPTIONS]\n\n"
    "Reads token files, updates the lattice batch by batch and prints what came out. Several "
    "files\n"
    "are one stream; a directory stands for its files in natural order; - is standard input. "
    "Memory\n"
    "stays bounded however long the stream.\n\n"
    "  --dtype D           u8, u16, u32, i32 or i64: raw tokens do not say, other files must "
    "agree;\n"
    "                      iron sniff FILE guesses\n"
    "  --format F          raw, llmc, megatron, npy, ds, litpkds, or auto (default): looked for "
    "in\n"
    "                      each file; raw takes every byte for tokens\n"
    "  --vocab V           2 to 2147483648 (default 50257)\n"
    "  --nodes N           1 to 1048576 (default 4096)\n"
    "  --batch B           tokens in a batch (default 786432)\n"
    "  --positions P       stream: positions count through (default); batch: restart with each\n"
    "  --lattice A,B,...   2 to 64 strictly increasing points in 1 to 65535\n"
    "                      (default 7,15,23,31,47,63,95,127,191,255,383,511)\n"
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
