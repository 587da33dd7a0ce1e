/* SPDX-License-Identifier: MIT */
/*
 * cmd_stat.c: `iron stat`: what the tokens of a stream are like.
 *
 * It compares nothing, so it ends with 0 whatever it finds; tokens that are not in the vocabulary
 * are pointed at by a line on standard error.
 */
#include "command.h"
#include "progress.h"
#include "stat_flags.h"

#include <stdlib.h>

static iron_status stat_stream(const stat_flags *o, iron_source *source, iron_error *err) {
    progress p = progress_start(iron_dtype_bytes(iron_source_dtype(source)));
    stat_findings *f = calloc(1, sizeof *f);
    iron_stat_options options = stat_options_of(o);
    iron_stat *stat = NULL;
    iron_status status;
    double started = seconds_now();

    if (!f)
        return usage(err, "out of memory for the findings");
    options.progress = progress_tell;
    options.context = &p;
    status = iron_stat_source(source, &options, &stat, err);
    f->seconds = seconds_now() - started;
    f->source = source;
    progress_clear(&p);
    if (status == IRON_OK)
        status = stat_show(o, stat, f, err);
    iron_stat_destroy(stat);
    free(f);
    return status;
}

static iron_status open_and_stat(stat_flags *o, const args *a, iron_error *err) {
    iron_source *source = NULL;
    iron_status status = stat_source_open(o, a, &source, err);

    if (status == IRON_OK)
        status = stat_stream(o, source, err);
    iron_source_close(source);
    return status;
}

static iron_status run(int argc, char **argv, iron_error *err) {
    stat_flags o;
    option options[STAT_OPTIONS];
    args a = {.options = options, .option_count = COUNT(options)};
    iron_status status;
    bool is_done;

    stat_option_table(&o, options);
    status = command_args(&command_stat, &a, argc, argv, &is_done, err);
    return is_done ? status : open_and_stat(&o, &a, err);
}

const command command_stat = {
    "stat", "tells what the tokens of a stream are like",
    "usage: iron stat FILE...|- --vocab V [OPTIONS]\n\n"
    "Reads a stream once, with all threads: how many tokens, their range, those that are not in\n"
    "the vocabulary and where, the longest run of one token; the documents, and how often each id\n"
    "is used, if asked for. Several files are one stream; a directory stands for its files in\n"
    "natural order; - is standard input. Exit status 0 also if tokens are out of the vocabulary:\n"
    "a warning on standard error says so, in JSON out_of_vocab.\n\n"
    "  --vocab V           1 to 4294967296: ids are 0 to V-1\n"
    "  --eos E             documents end with token E, which counts to their length; median and\n"
    "                      p95 are exact up to 1048576 tokens, beyond to a 1024th\n"
    "  --hist              counts every id, for vocabularies up to 67108864: ids used and unused,\n"
    "                      entropy, the most frequent\n"
    "  --top K             with --hist: so many of the most frequent, 0 to 1000 (default 10)\n"
    "  --json              one JSON document\n" READING_HELP
    "                      (statistics run on the CPU: auto or cpu, and 0)\n\n"
    "example: iron stat shards/ --dtype u16 --vocab 50257 --eos 50256 --hist\n",
    run};
