/* SPDX-License-Identifier: MIT */
/*
 * mpi_feed.c: `iron-mpi feed`: the engine over ranks.
 *
 * Every rank makes the same two engines: one for its own batches, and one that stands where the
 * stream stands (new, or from --resume). Rank 0's second one takes what all ranks did; it is
 * reported and saved, and is bit for bit that of `iron feed`.
 */
#include "mpi_feed.h"

#include "feed_plan.h"
#include "feed_show.h"
#include "mpi_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Whoever does not say gets the CPU: many ranks on a machine would all take its first GPU. */
static void choose_backend(feed_plan *plan) {
    if (!plan->config.backend)
        plan->config.backend = "cpu";
}

static iron_status open_feed(const feed_options *o, feed_plan *plan, const args *a, rank_feed *f,
                             iron_error *err) {
    iron_report r = {.struct_size = sizeof r};
    iron_status status = feed_engine_make(o, plan, &f->whole, err);

    if (status == IRON_OK)
        status = iron_engine_report(f->whole, &r, err);
    if (status == IRON_OK)
        status = iron_engine_create(iron_engine_config(f->whole), &f->mine, err);
    if (status == IRON_OK && o->state && f->ranks->rank == 0)
        status = iron_state_path_check(o->state, err);
    if (status == IRON_OK)
        status = feed_source_open(o, a, &f->source, err);
    if (status != IRON_OK)
        return status;
    f->base = r.tokens;
    f->batch = iron_engine_config(f->whole)->batch;
    f->tokens = iron_source_tokens(f->source);
    f->batches = f->tokens / f->batch + (f->tokens % f->batch != 0);
    if (iron_engine_config(f->whole)->with_seal && f->base % 4 != 0)
        return usage(err,
                     "the state in %.100s is at position %" PRIu64
                     ", no multiple of 4, where ranks could seal on; resume it with iron feed",
                     o->resume, f->base);
    return IRON_OK;
}

/* Feeds, saves, and only then prints. */
static iron_status feed(const feed_options *o, rank_feed *f, iron_error *err) {
    size_t width = iron_dtype_bytes(iron_source_dtype(f->source));
    feed_findings found = {.engine = f->whole,
                           .source = f->source,
                           .ranks = (uint64_t)f->ranks->count,
                           .report.struct_size = sizeof found.report};
    bool is_exact = f->batches <= iron_engine_exact_batches(f->whole),
         is_first = f->ranks->rank == 0;
    double started = seconds_now();
    iron_status status;

    f->progress = progress_start(width);
    f->progress.is_shown = f->progress.is_shown && is_first;
    status = (is_exact ? rank_feed_sums : rank_feed_ordered)(f, err);
    if (status == IRON_OK && is_first)
        status = iron_engine_report(f->whole, &found.report, err);
    found.seconds = seconds_now() - started;
    progress_clear(&f->progress);
    if (status == IRON_OK && is_first && o->state)
        status = iron_engine_save(f->whole, o->state, err);
    status = ranks_agree(f->ranks, status, err);
    if (status != IRON_OK || !is_first)
        return status;
    found.rate = (double)f->tokens * (double)width / found.seconds * 1e-9;
    (o->wants_json ? feed_show_json : feed_show_text)(&found);
    return IRON_OK;
}

static iron_status run(const ranks *r, int argc, char **argv, iron_error *err) {
    feed_options o = {0};
    option options[FEED_OPTIONS];
    args a = {.options = options, .option_count = COUNT(options)};
    feed_plan plan = {0};
    rank_feed f = {.ranks = r};
    rank_view view = rank_view_begin(mpi_command_feed.name, argc, argv);
    iron_status status;
    bool is_done;

    feed_option_table(&o, options);
    status = mpi_command_args(&mpi_command_feed, r, &a, argc, argv, &is_done, err);
    if (is_done)
        return status;
    status = feed_plan_make(&o, &plan, err);
    choose_backend(&plan);
    if (status == IRON_OK)
        status = open_feed(&o, &plan, &a, &f, err);
    if (status == IRON_OK)
        status = rank_view_add(&view, f.source, err);
    status = ranks_same_view(r, status, &view, err);
    if (status == IRON_OK)
        status = feed(&o, &f, err);
    iron_source_close(f.source);
    iron_engine_destroy(f.mine);
    iron_engine_destroy(f.whole);
    free(plan.activations);
    return status;
}

const mpi_command mpi_command_feed = {
    "feed", "runs token files through the engine",
    "usage: mpirun -n RANKS iron-mpi feed FILE... [OPTIONS]\n\n"
    "What iron feed does, with the same options and the same result. Every rank reads its own\n"
    "batches; rank 0 saves the state and prints. Each rank takes the CPU unless --backend says\n"
    "otherwise, and every CPU it may use unless --threads does.\n\n"
    "example: mpirun -n 16 iron-mpi feed shards/ --dtype u16 --state run.state\n",
    run};
