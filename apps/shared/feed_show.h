/* SPDX-License-Identifier: MIT */
/*
 * feed_show.h: how feeding's result is shown: as lines for people, or as one JSON document.
 */
#ifndef APPS_SHARED_FEED_SHOW_H
#define APPS_SHARED_FEED_SHOW_H

#include <iron/iron.h>

typedef struct feed_findings {
    const iron_engine *engine; /* that did it */
    const iron_source *source;
    iron_report report;
    double seconds, rate;
    double setup;   /* seconds before that: device, kernels, slots; 0: nothing to say of it */
    uint64_t ranks; /* 0: one process, and nothing to say of it */
} feed_findings;

void feed_show_text(const feed_findings *f);
void feed_show_json(const feed_findings *f);

#endif
