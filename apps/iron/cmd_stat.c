/* SPDX-License-Identifier: MIT */
/*
 * cmd_stat.c: `iron stat`: statistics of a token stream.
 *
 * The command compares nothing, so without --strict its exit status is 0 whatever it finds; a
 * warning on standard error reports tokens outside the vocabulary.
 */
#include "command.h"

static iron_status run(void *options, args *a, iron_error *err) {
    stat_options *o = options;
    iron_stat_options scan;
    iron_source *source = NULL;
    iron_stat *stat = NULL;
    double started, seconds;
    progress p;
    iron_status status;

    IRON_TRY(stat_source_open(o, a, &source, err));
    p = progress_start(iron_dtype_bytes(iron_source_dtype(source)));
    scan = stat_scan_options(o);
    scan.progress = progress_update;
    scan.context = &p;
    started = seconds_now();
    status = iron_stat_source(source, &scan, &stat, err);
    seconds = seconds_now() - started;
    progress_clear(&p);
    if (status == IRON_OK)
        status = stat_print(o, stat, source, seconds, 0, err);
    iron_stat_destroy(stat);
    iron_source_close(source);
    return status;
}

const command command_stat = {
    .name = "stat",
    .summary = "prints statistics of a token stream",
    .synopsis = "FILE...|- --vocab V [OPTIONS]",
    .description =
        "Reads a stream once, with all threads, and reports the number of tokens, their range, "
        "tokens outside the vocabulary and where they are, the longest run of one token, and "
        "documents: the files' rows or documents, or with --eos what ends with that token; on "
        "request also how often each id occurs. Several files form one stream; a "
        "directory stands for its files in natural order; - is standard input. " STAT_CPU_ONLY,
    .groups = {STAT_GROUPS},
    .exit_status = "0: success, also if tokens are outside the vocabulary (a warning on standard "
                   "error; out_of_vocab in JSON); 1: with --strict, there was a warning; 2: error.",
    .examples = "iron stat shards/ --dtype u16 --vocab 50257 --eos 50256 --hist",
    .options_bytes = sizeof(stat_options),
    .run = run,
};
