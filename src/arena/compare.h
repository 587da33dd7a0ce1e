/* SPDX-License-Identifier: MIT */
/*
 * compare.h: a race of now against the report of an earlier one: what became slower, faster, broke,
 * came or went.
 *
 * Two runs of the same program never have the same medians. A row is called slower or faster only
 * if two things hold: its median moved by more than the threshold, and the two medians' 95 %
 * intervals, widened by how much each run drifted within itself, do not overlap. If only the first
 * holds it is unclear, and racing longer would tell.
 */
#ifndef IRON_ARENA_COMPARE_H
#define IRON_ARENA_COMPARE_H

#include "arena/report.h"

#include <stdio.h>

#define IRON_ARENA_SCHEMA "iron.arena/1"

typedef enum iron__change {
    IRON_CHANGE_SAME,
    IRON_CHANGE_FASTER,
    IRON_CHANGE_SLOWER,
    IRON_CHANGE_UNCLEAR, /* beyond the threshold, but within what the runs vary by */
    IRON_CHANGE_BROKEN,  /* was ok, now wrong or failed */
    IRON_CHANGE_NEW,     /* only now */
    IRON_CHANGE_GONE,    /* only then */
    IRON_CHANGES
} iron__change;

/* "same", "faster", "slower", "unclear", "broken", "new", "gone" */
const char *iron__change_name(iron__change change);

/* What makes two rows the same row. */
typedef struct iron__row_key {
    char op[24], contender[48], backend[12], memory[16], device[96], size[40], dtype[8];
    uint32_t vocab;
    iron__params params;
} iron__row_key;

typedef struct iron__comparison_row {
    iron__row_key key;
    iron__scope scope; /* IRON_SCOPES: the row as a whole */
    iron__change change;
    double old_ms, new_ms; /* medians; 0: none */
    double ratio;          /* new by old; 0: unknown */
    char reason[256];      /* why broken, new or gone, where there is more to say; "" */
} iron__comparison_row;

typedef struct iron__comparison {
    char path[256];
    double threshold_percent;
    iron__comparison_row *rows; /* owned; in the order of now's, then those that are gone */
    size_t row_count;
    size_t counts[IRON_CHANGES];
    size_t slower_count; /* slower and broken: what makes a comparison fail */
} iron__comparison;

/* Reads the JSON report at `path` and compares `now` with it, kernel and end_to_end. On failure
 * *out is empty. IRON_E_FORMAT: no report, with the line; IRON_E_IO; IRON_E_ARG: the threshold. */
iron_status iron__compare(const char *path, const iron__report *now, double threshold_percent,
                          iron__comparison *out, iron_error *err);
/* Everything that is not the same, and counts of all. */
void iron__comparison_print(const iron__comparison *comparison, FILE *to);
void iron__comparison_deinit(iron__comparison *comparison);

#endif
