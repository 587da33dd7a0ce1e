/* SPDX-License-Identifier: MIT */
/*
 * ranks.h: the processes of one job, and how they stay of one mind.
 *
 * A rank that fails must not leave the others waiting for it, and nothing may be printed that not
 * all stand behind. So every step that can fail ends in ranks_agree, which all call: either all go
 * on, or all get the first failing rank's error, and the job ends with its status.
 */
#ifndef APPS_IRON_MPI_RANKS_H
#define APPS_IRON_MPI_RANKS_H

#include <iron/iron_digest.h>

#include <stdbool.h>

typedef struct ranks {
    int rank, count;
} ranks;

/* MPI begins and ends; every rank calls both. */
ranks ranks_begin(int *argc, char ***argv);
void ranks_end(void);

/* Every rank tells how it fared: IRON_OK for all, or for all the error of the first that failed,
 * "rank 3: ..." (without its number if none was better off). */
iron_status ranks_agree(const ranks *r, iron_status status, iron_error *err);

/* What a rank was given: command, arguments, and names, formats and lengths of the files. */
typedef struct rank_view {
    uint64_t hash, files, tokens;
} rank_view;

rank_view rank_view_begin(const char *command, int argc, char **argv);
/* Refuses what is no regular file: ranks read ranges. */
iron_status rank_view_add(rank_view *view, const iron_source *source, iron_error *err);

/* ranks_agree, and do all see the same? */
iron_status ranks_same_view(const ranks *r, iron_status status, const rank_view *view,
                            iron_error *err);

/* What all ranks found, merged, on every rank; `count` results each. */
iron_status ranks_add_results(const ranks *r, iron_digest_result *results, size_t count,
                              iron_error *err);

/* The largest of each of `count` numbers. */
void ranks_largest(double *numbers, size_t count);

/* Effects joined in rank order and additions added, on every rank. */
iron_status ranks_join_effects(const ranks *r, iron_effect *effect, int32_t *additions,
                               size_t nodes, iron_error *err);

/* Statistics of neighbouring ranges, appended in rank order, for rank 0; *stat of the others is
 * destroyed and NULL. Those of a rank without tokens may be NULL, but not rank 0's. */
iron_status ranks_append_stats(const ranks *r, iron_stat **stat, iron_error *err);

/* Rank 0 takes from every rank in turn, itself first, what it sends; see mpi_feed_ordered.c. */
void ranks_send(const void *data, size_t bytes);
void ranks_receive(int from, void *data, size_t bytes);

#endif
