/* SPDX-License-Identifier: MIT */
/*
 * cmd_feed.c: `iron feed`: reads token files or a pipe through the engine.
 *
 * Options, input files and the path of the state are checked before the first token is read. The
 * state is saved before the result is printed, so a printed result has always been saved.
 */
#include "command.h"

#include <stdlib.h>

/* The modes that read every token once per node can take hours: warn before they start. */
static void warn_if_slow(const iron_engine *e, uint64_t tokens) {
    double seconds = tokens == IRON_COUNT_UNKNOWN ? 0 : iron_engine_seconds_estimate(e, tokens);

    if (seconds > 60)
        fprintf(stderr,
                "iron: note: mode %s reads every token once per node and will take about %.0f "
                "minutes; --mode champion gives the same result in seconds\n",
                iron_engine_mode(e), seconds / 60);
}

static iron_status run(int argc, char **argv, iron_error *err) {
    feed_options o = {0};
    feed_plan plan = {0};
    feed_result result = {.report.struct_size = sizeof result.report};
    iron_report before = {.struct_size = sizeof before};
    iron_engine *engine = NULL;
    iron_source *source = NULL;
    double opened, started;
    progress p;
    size_t width;
    args a;
    bool is_done;
    iron_status status = command_parse(&command_feed, &o, &a, argc, argv, &is_done, err);

    if (is_done)
        return status;

    /* the engine, new or resumed, and the input */
    if ((status = feed_plan_make(&o, &plan, err)) != IRON_OK)
        goto done;
    opened = seconds_now();
    if ((status = feed_engine_make(&o, &plan, &engine, err)) != IRON_OK)
        goto done;
    if (o.state && (status = iron_state_path_check(o.state, err)) != IRON_OK)
        goto done;
    if ((status = feed_source_open(&o, &a, &source, err)) != IRON_OK)
        goto done;
    if ((status = iron_engine_report(engine, &before, err)) != IRON_OK)
        goto done;
    warn_if_slow(engine, iron_source_tokens(source));
    /* page-locked memory is allocated once however much is fed: not part of the measured time */
    if ((status = iron_engine_prepare(engine, err)) != IRON_OK)
        goto done;

    /* all tokens; the last, shorter batch ends with the stream */
    width = iron_dtype_bytes(iron_source_dtype(source));
    p = progress_start(width);
    started = seconds_now();
    status = iron_engine_feed_source(engine, source, progress_update, &p, err);
    if (status == IRON_OK)
        status = iron_engine_end_batch(engine, err);
    if (status == IRON_OK)
        status = iron_engine_report(engine, &result.report, err);
    result.seconds = seconds_now() - started;
    progress_clear(&p);
    if (status == IRON_OK && o.state)
        status = iron_engine_save(engine, o.state, err);
    if (status != IRON_OK)
        goto done;

    result.engine = engine;
    result.source = source;
    result.setup_seconds = started - opened;
    result.gb_per_s =
        (double)(result.report.tokens - before.tokens) * (double)width / result.seconds * 1e-9;
    feed_print(&result, o.wants_json);
done:
    iron_source_close(source);
    iron_engine_destroy(engine);
    free(plan.activations);
    return status;
}

const command command_feed = {
    .name = "feed",
    .summary = "runs token files or a pipe through the engine",
    .synopsis = "FILE...|- [OPTIONS]",
    .description =
        "Reads token files, updates the lattice batch by batch and prints the result. Several "
        "files form one stream; a directory stands for its files in natural order; - is standard "
        "input. Memory use does not depend on the length of the stream.\n\n"
        "iron info lists the backends and devices of this machine. iron sniff FILE guesses the "
        "token type of a headerless file.",
    .groups = {FEED_GROUPS},
    .environment = DRIVER_VARIABLES,
    .examples = "iron feed tokens.bin --dtype u16 --vocab 50257 --state run.state\n"
                "zstdcat tokens.zst | iron feed - --dtype u16",
    .run = run,
};
