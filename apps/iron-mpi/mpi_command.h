/* SPDX-License-Identifier: MIT */
/*
 * mpi_command.h: what a subcommand of iron-mpi is. All ranks run it with the same arguments; rank 0
 * prints. It is called with the arguments after its name, and returns what ranks_agree did.
 */
#ifndef APPS_IRON_MPI_MPI_COMMAND_H
#define APPS_IRON_MPI_MPI_COMMAND_H

#include "args.h"
#include "ranks.h"

typedef struct mpi_command {
    const char *name;
    const char *summary;
    const char *help;
    iron_status (*run)(const ranks *r, int argc, char **argv, iron_error *err);
} mpi_command;

extern const mpi_command mpi_command_sum, mpi_command_stat, mpi_command_feed;

/* Parses; rank 0 answers --help. *is_done tells that nothing is left to do. */
iron_status mpi_command_args(const mpi_command *c, const ranks *r, args *a, int argc, char **argv,
                             bool *is_done, iron_error *err);

#endif
