/* SPDX-License-Identifier: MIT */
/*
 * stat_show.h: how `iron stat` shows what it found: as lines for people, or as one JSON document.
 */
#ifndef APPS_SHARED_STAT_SHOW_H
#define APPS_SHARED_STAT_SHOW_H

#include <iron/iron_digest.h>

#include <stdbool.h>

#define TOP_MAX    1000u
#define RANGES_MAX 16u

typedef struct stat_id {
    uint64_t id, count;
} stat_id;

typedef struct stat_ids {
    uint64_t first, last;
} stat_ids;

/* What there is to show; the top and the ranges only with a histogram. */
typedef struct stat_findings {
    const iron_source *source;
    iron_stat_report report;
    uint64_t vocab;
    bool has_documents, has_histogram;
    double seconds, rate;
    uint64_t ranks; /* 0: one process, and nothing to say of it */
    size_t top_count, range_count;
    stat_id top[TOP_MAX];        /* the most frequent ids; of equal ones the smaller first */
    stat_ids ranges[RANGES_MAX]; /* the first ranges of ids that are not used */
} stat_findings;

/* Fills top (of up to `wanted` ids) and ranges. */
void stat_find_ids(stat_findings *f, const uint64_t *counts, uint64_t ids, uint64_t wanted);

void stat_show_text(const stat_findings *f);
void stat_show_json(const stat_findings *f);

#endif
