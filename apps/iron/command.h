/* SPDX-License-Identifier: MIT */
/*
 * command.h: the commands of `iron`, and what main.c offers to them.
 */
#ifndef APPS_IRON_COMMAND_H
#define APPS_IRON_COMMAND_H

#include "reading.h"

extern const command command_info, command_gen, command_sniff, command_sum, command_check,
    command_diff, command_merge, command_lint, command_stat, command_feed, command_state,
    command_quantize, command_ledger, command_arena, command_selftest, command_serve, command_push,
    command_completion, command_man;

/* Describes the program itself, for `iron --help` and iron(1). */
extern const command command_iron;

/* The documented commands in the order of the overview; NULL after the last. */
const command *command_at(size_t index);

/* Without values, a command reads standard input; `missing` is the error if that is a terminal. */
iron_status command_default_input(args *a, const char *missing, iron_error *err);

/* `iron sum -c` is `iron check`: removes that option from the command line, if it is there. */
bool sum_takes_check(int *argc, char **argv);

/* Prints an error line, for commands that continue after an error. */
void command_complain(const iron_error *err);

/* Names a file that must be removed if a signal ends the process; NULL: no file. */
void command_guard_file(const char *temporary);

#define USUAL_EXIT_STATUS                                                                          \
    "0: success; 1: a comparison found a difference; 2: error, with one line on standard error."

/* Variables read by every command that may load a GPU driver; for command.environment. */
#define DRIVER_VARIABLES                                                                           \
    "IRON_CACHE_DIR XDG_CACHE_HOME HOME IRON_CUDA_LIBRARY IRON_OPENCL_LIBRARY IRON_OPENCL_CACHE"

#endif
