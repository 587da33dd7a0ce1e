/* SPDX-License-Identifier: MIT */
/*
 * select_params.h: which values of its axes an op is raced with, from the words of the command:
 * NAME=V,V... a parameter, several of them for different names.
 */
#ifndef IRON_ARENA_SELECT_PARAMS_H
#define IRON_ARENA_SELECT_PARAMS_H

#include "ops/op.h"

#define IRON_AXIS_VALUES_MAX 64u

typedef struct iron__axis_values {
    double at[IRON_AXIS_VALUES_MAX]; /* as iron__case has them */
    size_t count;
    bool is_asked; /* by name; else they are the op's own */
} iron__axis_values;

/* Words that are NAME=V,V... with a name of their own each? Whether an op knows them comes later.
 */
iron_status iron__params_check(const char *const *params, size_t count, iron_error *err);

/* Is `param` (NAME=V,V...) about that axis? */
bool iron__param_is_of(const char *param, const iron__axis *axis);

/* The values of an axis: those asked for; else all of them (is_wide) or the first. IRON_E_ARG with
 * the value and what would do when it is not the axis's. */
iron_status iron__select_values(const iron__op *op, const iron__axis *axis,
                                const char *const *params, size_t param_count, bool is_wide,
                                iron__axis_values *out, iron_error *err);

/* What an axis takes: "uniform, zipf or sorted", "numbers from 0 to 1". */
void iron__axis_takes(const iron__axis *axis, char *text, size_t size);
/* Its own values: "uniform, zipf, sorted", "1, 2, 4". */
void iron__axis_list(const iron__axis *axis, char *text, size_t size);

#endif
