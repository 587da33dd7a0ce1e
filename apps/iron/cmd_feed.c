/* SPDX-License-Identifier: MIT */
/*
 * cmd_feed.c: `iron feed`: reads token files or a pipe through the engine.
 *
 * Options, input files and the path of the state are checked before the first token is read. The
 * state is saved before the result is printed, so a printed result has always been saved.
 *
 * With --every, the state file is a checkpoint until the end: a state that also records what
 * identifies the files. Only --continue accepts one. Everything else refuses it, so that tokens
 * cannot be fed twice, or hours of work be overwritten, by repeating a command.
 */
#include "command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct feed_command {
    feed_options feed; /* first: FEED_GROUPS count their offsets from there */
    uint64_t every;
    bool has_every, wants_continue;
} feed_command;

static const option checkpoint_table[] = {
    OPTION("every", OPTION_NUMBER, "TOKENS", feed_command, every,
           "save a checkpoint to --state each time so many tokens have been fed, rounded up to "
           "whole batches",
           .min = 1, GIVEN(feed_command, has_every)),
    OPTION("continue", OPTION_FLAG, NULL, feed_command, wants_continue,
           "if --state is a checkpoint of these files, feed only the rest; if it does not exist, "
           "start at the beginning"),
};

static iron_status refuse_checkpoint(const char *option_name, const char *path, uint64_t done,
                                     uint64_t tokens, iron_error *err) {
    return usage(err,
                 "%s %.90s is a checkpoint of a feed that has read %" PRIu64 " of %" PRIu64
                 " tokens; add --continue to feed the rest, or remove the file to start again",
                 option_name, path, done, tokens);
}

/* Checks whether --state is a checkpoint. With --continue it then takes the place of --resume. */
static iron_status check_state(feed_command *c, iron_error *err) {
    feed_options *o = &c->feed;
    uint64_t done = 0, tokens = 0;
    iron_engine *saved = NULL;
    iron_config run;
    struct stat info;
    iron_status status;

    if ((c->has_every || c->wants_continue) && !o->state)
        return usage(err, "--%s needs --state FILE, the file with the checkpoint",
                     c->has_every ? "every" : "continue");
    if (!o->state || stat(o->state, &info) != 0 || !S_ISREG(info.st_mode))
        return IRON_OK;
    iron_config_init(&run);
    run.backend = "cpu"; /* only the mark is wanted */
    run.threads = 1;
    status = iron_engine_load(o->state, &run, &saved, c->wants_continue ? err : NULL);
    if (status != IRON_OK) /* any other file may be replaced */
        return c->wants_continue ? status : IRON_OK;
    iron_engine_checkpoint(saved, &done, &tokens);
    iron_engine_destroy(saved);
    if (tokens > 0 && !c->wants_continue)
        return refuse_checkpoint("--state", o->state, done, tokens, err);
    if (tokens > 0)
        o->resume = o->state;
    else if (c->wants_continue && (!o->resume || strcmp(o->resume, o->state) != 0))
        return usage(err,
                     "--continue: %.100s is a finished state, not a checkpoint; use --resume to "
                     "feed other files after it, or remove it to start again",
                     o->state);
    return IRON_OK;
}

static iron_status run(void *options, args *a, iron_error *err) {
    feed_command *c = options;
    feed_options *o = &c->feed;
    feed_plan plan = {0};
    feed_result result = {.report.struct_size = sizeof result.report};
    iron_report before = {.struct_size = sizeof before};
    iron_engine *engine = NULL;
    iron_source *source = NULL;
    iron_stat_place first;
    uint64_t fed, total, outside;
    double opened, started, seconds;
    progress p;
    size_t width;
    iron_status status;

    /* the engine, new or resumed, and the input */
    o->reading.wants_seekable = c->has_every || c->wants_continue;
    IRON_TRY(check_state(c, err));
    if ((status = feed_plan_make(o, &plan, err)) != IRON_OK)
        goto done;
    opened = seconds_now();
    if ((status = feed_engine_make(o, &plan, &engine, err)) != IRON_OK)
        goto done;
    if (iron_engine_checkpoint(engine, &fed, &total) && o->resume != o->state) {
        status = refuse_checkpoint("--resume", o->resume, fed, total, err);
        goto done;
    }
    if ((o->state && (status = iron_state_path_check(o->state, err)) != IRON_OK) ||
        (status = feed_source_open(o, a, &source, err)) != IRON_OK ||
        (status = iron_engine_report(engine, &before, err)) != IRON_OK)
        goto done;
    if (o->has_vocab)
        iron_engine_count_out_of_vocab(engine);
    /* modes that read every token once per node can take hours: warn before they start */
    total = iron_source_tokens(source);
    seconds = total == IRON_COUNT_UNKNOWN ? 0 : iron_engine_seconds_estimate(engine, total);
    if (seconds > 60)
        fprintf(stderr,
                "iron: note: mode %s reads every token once per node and will take about %.0f "
                "minutes; --mode champion gives the same result in seconds\n",
                iron_engine_mode(engine), seconds / 60);
    /* page-locked memory is allocated once however much is fed: not part of the measured time */
    if ((status = iron_engine_prepare(engine, err)) != IRON_OK)
        goto done;

    /* all tokens; the last, shorter batch ends with the stream */
    width = iron_dtype_bytes(iron_source_dtype(source));
    p = progress_start(width);
    started = seconds_now();
    if (c->has_every || c->wants_continue)
        status = iron_engine_feed_saving(engine, source, o->state,
                                         c->has_every ? c->every : IRON_COUNT_UNKNOWN,
                                         progress_update, &p, err);
    else
        status = iron_engine_feed_source(engine, source, progress_update, &p, err);
    if (status == IRON_OK && (status = iron_engine_end_batch(engine, err)) == IRON_OK)
        status = iron_engine_report(engine, &result.report, err);
    result.seconds = seconds_now() - started;
    progress_clear(&p);
    if (status == IRON_OK && o->state)
        status = iron_engine_save(engine, o->state, err);
    if (status != IRON_OK)
        goto done;

    result.engine = engine;
    result.source = source;
    result.setup_seconds = started - opened;
    result.gb_per_s =
        (double)(result.report.tokens - before.tokens) * (double)width / result.seconds * 1e-9;
    feed_print(&result, o->wants_json);
    /* only if the user told the size: most vocabularies differ from the default */
    outside = iron_engine_out_of_vocab(engine, &first.position, &first.value);
    if (o->has_vocab && outside > 0) {
        char *name = join_names((const char *const *)a->values, a->value_count, err);

        status = name ? reading_warn_of_vocab(&o->reading, name, &first, outside,
                                              result.report.tokens - before.tokens, o->vocab, err)
                      : IRON_E_NOMEM;
        free(name);
    }
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
        "With --every, the --state file is a checkpoint until the feed is done. If the feed is "
        "interrupted, the same command with --continue feeds the rest, and the result is that of "
        "an uninterrupted feed. It checks that the files are the same (their lengths and samples "
        "of their bytes). A checkpoint is refused without --continue.\n\n"
        "iron info lists the backends and devices of this machine. iron sniff FILE guesses the "
        "token type of a headerless file.",
    .groups = {FEED_GROUPS, {"Checkpoint options", checkpoint_table, COUNT(checkpoint_table), 0}},
    .environment = DRIVER_VARIABLES,
    .examples = "iron feed tokens.bin --dtype u16 --vocab 50257 --state run.state\n"
                "iron feed shards/ --dtype u16 --state run.state --every 10G --continue\n"
                "zstdcat tokens.zst | iron feed - --dtype u16",
    .options_bytes = sizeof(feed_command),
    .run = run,
};
