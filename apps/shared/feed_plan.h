/* SPDX-License-Identifier: MIT */
/*
 * feed_plan.h: what feeding is to be like: from options to a configuration, and to the engine that
 * does it.
 */
#ifndef APPS_SHARED_FEED_PLAN_H
#define APPS_SHARED_FEED_PLAN_H

#include "reading.h"

typedef struct feed_options {
    reading reading;
    uint64_t vocab, nodes, batch;
    const char *positions, *lattice, *activations, *mode, *memory, *state, *resume;
    bool has_vocab, has_nodes, has_batch;
    bool wants_seal, wants_json;
} feed_options;

/* What the options' texts come down to; owns its activations. */
typedef struct feed_plan {
    iron_config config;
    uint32_t points[LATTICE_ROOM];
    float *activations;
} feed_plan;

#define FEED_OPTIONS 17u

/* The options that fill `o`. */
void feed_option_table(feed_options *o, option table[FEED_OPTIONS]);

/* Free plan->activations, also when it fails. */
iron_status feed_plan_make(feed_options *o, feed_plan *plan, iron_error *err);

/* A new engine, or one from the state that --resume names. */
iron_status feed_engine_make(const feed_options *o, feed_plan *plan, iron_engine **e,
                             iron_error *err);

/* Opens the files, and refuses a --state that is one of them. */
iron_status feed_source_open(const feed_options *o, const args *a, iron_source **source,
                             iron_error *err);

#endif
