/* SPDX-License-Identifier: MIT */
/*
 * ranks.h: the processes of one MPI job, and the commands they run.
 *
 * All ranks run the same command with the same arguments, and rank 0 prints. A rank that fails
 * must not leave the others waiting, and nothing may be printed that is not complete. So every
 * step that can fail ends with ranks_agree, which all ranks call: either all continue, or all get
 * the error of the first rank that failed. If one rank fails, all ranks exit with status 2.
 */
#ifndef APPS_IRON_MPI_RANKS_H
#define APPS_IRON_MPI_RANKS_H

#include "options.h"

#include <iron/iron_digest.h>

extern const command mpi_command_sum, mpi_command_stat, mpi_command_feed;

/* This rank, and what it works on: command, arguments, and names, formats and lengths of the
 * files. */
typedef struct ranks {
    int rank, count, place; /* place: among the ranks of this machine */
    uint64_t hash, files, tokens;
} ranks;

void ranks_begin(int *argc, char ***argv);
void ranks_end(void);
ranks *ranks_here(void);

/* Every rank passes its status. Returns IRON_OK if all ranks pass that, otherwise the error of the
 * first rank that failed, as "rank 3: ..." (without the number if all ranks failed). */
iron_status ranks_agree(const ranks *r, iron_status status, iron_error *err);

/* Replaces --device auto: the ranks of a machine take the devices of the backend in turn; without
 * a backend, the GPUs of the first one that has any, otherwise the CPU. */
void ranks_choose_device(const ranks *r, const char **backend, const char **devices);
/* Rank 0 gets the numbers of all ranks, to be freed; the others NULL. */
iron_status ranks_gather(const ranks *r, uint64_t number, uint64_t **numbers, iron_error *err);

/* What this rank works on. Refuses files that are not regular: ranks read ranges. */
void ranks_note_command(ranks *r, const char *command_name, int argc, char **argv);
iron_status ranks_note_files(ranks *r, const iron_source *source, iron_error *err);
/* ranks_agree, and checks that all ranks work on the same. */
iron_status ranks_work_on_same(const ranks *r, iron_status status, iron_error *err);

/* Merges `count` results of all ranks; every rank gets them. */
iron_status ranks_add_results(const ranks *r, iron_digest_result *results, size_t count,
                              iron_error *err);
/* Adds up `count` numbers of all ranks, modulo 2^64; every rank gets the sums. */
void ranks_add(uint64_t *numbers, size_t count);
/* The maximum over all ranks of each of `count` numbers. */
void ranks_largest(double *numbers, size_t count);
/* Joins effects in rank order and adds up additions; every rank gets them. */
iron_status ranks_join_effects(const ranks *r, iron_effect *effect, int32_t *additions,
                               size_t nodes, iron_error *err);
/* Appends the statistics of neighbouring ranges in rank order for rank 0; the *stat of other ranks
 * is destroyed and NULL. It may be NULL on a rank without tokens, except on rank 0. */
iron_status ranks_append_stats(const ranks *r, iron_stat **stat, iron_error *err);

/* Messages to rank 0. */
void ranks_send(const void *data, size_t bytes);
void ranks_receive(int from, void *data, size_t bytes);

#endif
