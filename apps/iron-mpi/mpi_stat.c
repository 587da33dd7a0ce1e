/* SPDX-License-Identifier: MIT */
/*
 * mpi_stat.c: `iron-mpi stat`: every rank looks at a part of the stream, and what they found is
 * appended in rank order.
 */
#include "mpi_command.h"
#include "progress.h"
#include "stat_flags.h"

#include <stdlib.h>

static iron_status stat_share(const ranks *r, const stat_flags *o, iron_source *source, progress *p,
                              iron_stat **stat, iron_error *err) {
    iron_stat_options options = stat_options_of(o);
    iron_status status = iron_part_range(iron_source_tokens(source), (uint32_t)r->rank + 1,
                                         (uint32_t)r->count, &options.first, &options.count, err);

    options.progress = progress_tell;
    options.context = p;
    /* rank 0's is there in any case: all others follow on it */
    if (status == IRON_OK && (options.count > 0 || r->rank == 0))
        status = iron_stat_source(source, &options, stat, err);
    return ranks_agree(r, status, err);
}

static iron_status stat_stream(const ranks *r, const stat_flags *o, iron_source *source,
                               iron_error *err) {
    progress p = progress_start(iron_dtype_bytes(iron_source_dtype(source)));
    stat_findings *f = calloc(1, sizeof *f);
    iron_stat *stat = NULL;
    double started = seconds_now();
    iron_status status =
        ranks_agree(r, f ? IRON_OK : usage(err, "out of memory for the findings"), err);

    p.is_shown = p.is_shown && r->rank == 0;
    if (status == IRON_OK)
        status = stat_share(r, o, source, &p, &stat, err);
    if (status == IRON_OK)
        status = ranks_append_stats(r, &stat, err);
    progress_clear(&p);
    if (status == IRON_OK && r->rank == 0 && f) {
        f->source = source;
        f->seconds = seconds_now() - started;
        f->ranks = (uint64_t)r->count;
        status = stat_show(o, stat, f, err);
    }
    iron_stat_destroy(stat);
    free(f);
    return status;
}

static iron_status run(const ranks *r, int argc, char **argv, iron_error *err) {
    stat_flags o;
    option options[STAT_OPTIONS];
    args a = {.options = options, .option_count = COUNT(options)};
    rank_view view = rank_view_begin(mpi_command_stat.name, argc, argv);
    iron_source *source = NULL;
    iron_status status;
    bool is_done;

    stat_option_table(&o, options);
    status = mpi_command_args(&mpi_command_stat, r, &a, argc, argv, &is_done, err);
    if (is_done)
        return status;
    status = stat_source_open(&o, &a, &source, err);
    if (status == IRON_OK)
        status = rank_view_add(&view, source, err);
    status = ranks_same_view(r, status, &view, err);
    if (status == IRON_OK)
        status = stat_stream(r, &o, source, err);
    iron_source_close(source);
    return status;
}

const mpi_command mpi_command_stat = {
    "stat", "tells what the tokens of a stream are like",
    "usage: mpirun -n RANKS iron-mpi stat FILE... --vocab V [OPTIONS]\n\n"
    "What iron stat tells, with the same options and the same numbers. Every rank reads its own\n"
    "part of the stream; rank 0 prints.\n\n"
    "example: mpirun -n 16 iron-mpi stat shards/ --dtype u16 --vocab 50257 --eos 50256 --hist\n",
    run};
