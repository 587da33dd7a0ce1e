/* SPDX-License-Identifier: MIT */
/*
 * command.h: what a subcommand is: a name, a line for the overview, its help, and a function that
 * takes the arguments after its name and fills an error if it fails.
 */
#ifndef APPS_IRON_COMMAND_H
#define APPS_IRON_COMMAND_H

#include "args.h"

#include <stdio.h>

typedef struct command {
    const char *name;
    const char *summary;
    const char *help;
    iron_status (*run)(int argc, char **argv, iron_error *err);
} command;

extern const command command_info, command_gen, command_sniff, command_sum, command_check,
    command_diff, command_merge, command_stat, command_feed, command_state, command_quantize,
    command_arena, command_selftest, command_serve, command_push, command_completion, command_man;

/* The commands that users are told of, in the order of the overview; NULL beyond the last. */
const command *command_at(size_t index);

/* What `iron --help` prints. */
void command_overview(FILE *to);

/* Parses into `a`; answers --help itself. *is_done tells that nothing is left to do. */
iron_status command_args(const command *c, args *a, int argc, char **argv, bool *is_done,
                         iron_error *err);

/* Prints an error as a line on standard error, for commands that go on after one. */
void command_complain(const iron_error *err);

/* A signal that ends the process removes this file first; NULL: there is none any more. */
void command_guard_file(const char *temporary);

#endif
