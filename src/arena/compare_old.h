/* SPDX-License-Identifier: MIT */
/* compare_old.h: the report of an earlier race, as far as a comparison needs it. */
#ifndef IRON_ARENA_COMPARE_OLD_H
#define IRON_ARENA_COMPARE_OLD_H

#include "arena/compare.h"
#include "core/json_read.h"

typedef struct iron__old_row {
    iron__row_key key;
    /* UINT64_MAX: the report does not say, and any number matches. */
    uint64_t nodes, threads, streams;
    iron__row_status status;
    const iron__json *samples[IRON_SCOPES]; /* arrays of numbers, 1 ... IRON_SAMPLES_MAX; or NULL */
    bool is_matched;                        /* the comparison's */
} iron__old_row;

typedef struct iron__old_report {
    const iron__json *root;
    iron__old_row *rows;
    size_t row_count;
} iron__old_report;

iron_status iron__old_report_read(const char *path, iron__old_report *out, iron_error *err);
void iron__old_report_deinit(iron__old_report *report);

#endif
