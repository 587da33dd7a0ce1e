/* SPDX-License-Identifier: MIT */
/*
 * outcome.h: how a command begins and ends: its standard streams, the one line that says what went
 * wrong, and whether its output arrived.
 */
#ifndef APPS_SHARED_OUTCOME_H
#define APPS_SHARED_OUTCOME_H

#include <iron/iron.h>

#include <stdbool.h>

/* Sees to it that descriptors 0 to 2 are open. */
void open_standard_streams(void);

/* "name: text" on standard error. */
void print_error(const char *name, const iron_error *err);

/* Did standard output take everything? If not, and all else went well, *status and err say so. A
 * reader that went away is no error to speak of: false. */
bool finish_output(iron_status *status, iron_error *err);

#endif
