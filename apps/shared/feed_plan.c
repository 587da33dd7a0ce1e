/* SPDX-License-Identifier: MIT */
/* feed_plan.c: see feed_plan.h. What can be refused before the first token is refused here. */
#include "feed_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void feed_option_table(feed_options *o, option table[FEED_OPTIONS]) {
    const option options[FEED_OPTIONS] = {
        {"vocab", OPTION_NUMBER, &o->vocab, &o->has_vocab},
        {"nodes", OPTION_NUMBER, &o->nodes, &o->has_nodes},
        {"batch", OPTION_NUMBER, &o->batch, &o->has_batch},
        {"positions", OPTION_TEXT, &o->positions, NULL},
        {"lattice", OPTION_TEXT, &o->lattice, NULL},
        {"activations", OPTION_TEXT, &o->activations, NULL},
        {"mode", OPTION_TEXT, &o->mode, NULL},
        {"memory", OPTION_TEXT, &o->memory, NULL},
        {"state", OPTION_TEXT, &o->state, NULL},
        {"resume", OPTION_TEXT, &o->resume, NULL},
        {"seal", OPTION_FLAG, &o->wants_seal, NULL},
        {"json", OPTION_FLAG, &o->wants_json, NULL},
        READING_OPTIONS(o->reading),
    };

    memcpy(table, options, sizeof options);
}

static iron_status read_activations(const char *path, uint64_t nodes, feed_plan *plan,
                                    iron_error *err) {
    /* nodes is checked by the library later; do not allocate for a mistyped number */
    if (nodes < 1 || nodes > UINT64_C(1) << 20)
        return usage(err, "nodes is %" PRIu64 "; it must be 1 to 1048576", nodes);
    plan->activations = malloc((size_t)nodes * sizeof *plan->activations);
    if (!plan->activations)
        return usage(err, "out of memory for %" PRIu64 " activations", nodes);
    return iron_activations_read(path, plan->activations, nodes, err);
}

static iron_status plan_texts(const feed_options *o, feed_plan *plan, iron_error *err) {
    iron_config *c = &plan->config;
    iron_status status = IRON_OK;

    if (o->positions)
        status = parse_positions(o->positions, &c->positions, err);
    if (status == IRON_OK && o->lattice) {
        status = parse_lattice(o->lattice, plan->points, &c->lattice_count, err);
        c->lattice = plan->points;
    }
    return status;
}

iron_status feed_plan_make(feed_options *o, feed_plan *plan, iron_error *err) {
    iron_config *c = &plan->config;
    iron_status status = reading_check(&o->reading, err);

    iron_config_init(c);
    if (o->has_vocab)
        c->vocab = o->vocab;
    if (o->has_nodes)
        c->nodes = o->nodes;
    if (o->has_batch)
        c->batch = o->batch;
    c->backend = o->reading.backend;
    c->mode = o->mode;
    c->memory = o->memory;
    c->with_seal = o->wants_seal;
    if (status == IRON_OK)
        status = plan_texts(o, plan, err);
    c->threads = (uint32_t)o->reading.threads;
    c->device = (uint32_t)o->reading.device;
    if (status == IRON_OK && o->activations && !o->resume) {
        status = read_activations(o->activations, c->nodes, plan, err);
        c->activations = plan->activations;
    }
    return status;
}

static iron_status contradiction(const feed_options *o, const char *flag, iron_error *err) {
    return usage(err, "--%s contradicts the state in %.100s; leave it out, it is in the file", flag,
                 o->resume);
}

static iron_status check_activations(const feed_options *o, iron_engine *e, feed_plan *plan,
                                     iron_error *err) {
    iron_config saved;
    iron_status status;

    if (!o->activations)
        return IRON_OK;
    saved = *iron_engine_config(e);
    status = read_activations(o->activations, saved.nodes, plan, err);
    if (status != IRON_OK)
        return status;
    if (memcmp(plan->activations, saved.activations, saved.nodes * sizeof(float)) != 0)
        return contradiction(o, "activations", err);
    return IRON_OK;
}

/* Flags given along with --resume must say what the file says. */
static iron_status check_flags(const feed_options *o, iron_engine *e, feed_plan *plan,
                               iron_error *err) {
    const iron_config *c = &plan->config;
    iron_config saved;

    saved = *iron_engine_config(e);
    if (o->has_vocab && o->vocab != saved.vocab)
        return contradiction(o, "vocab", err);
    if (o->has_nodes && o->nodes != saved.nodes)
        return contradiction(o, "nodes", err);
    if (o->has_batch && o->batch != saved.batch)
        return contradiction(o, "batch", err);
    if (o->positions && c->positions != saved.positions)
        return contradiction(o, "positions", err);
    if (o->lattice &&
        (c->lattice_count != saved.lattice_count ||
         memcmp(c->lattice, saved.lattice, saved.lattice_count * sizeof *saved.lattice) != 0))
        return contradiction(o, "lattice", err);
    if (o->wants_seal && !saved.with_seal)
        return usage(err, "%.100s was saved without a seal; begin the stream anew with --seal",
                     o->resume);
    return check_activations(o, e, plan, err);
}

iron_status feed_engine_make(const feed_options *o, feed_plan *plan, iron_engine **e,
                             iron_error *err) {
    iron_config run;
    iron_status status;

    if (!o->resume)
        return iron_engine_create(&plan->config, e, err);
    iron_config_init(&run);
    run.backend = plan->config.backend;
    run.mode = plan->config.mode;
    run.memory = plan->config.memory;
    run.threads = plan->config.threads;
    run.device = plan->config.device;
    status = iron_engine_load(o->resume, &run, e, err);
    return status == IRON_OK ? check_flags(o, *e, plan, err) : status;
}

iron_status feed_source_open(const feed_options *o, const args *a, iron_source **source,
                             iron_error *err) {
    iron_status status =
        reading_open(&o->reading, (const char *const *)a->values, a->value_count, source, err);

    return status == IRON_OK ? reading_guard(*source, "--state", o->state, err) : status;
}
