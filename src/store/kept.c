/* SPDX-License-Identifier: MIT */
/*
 * kept.c: an engine alive.
 *
 * There are two sets of nodes. One is published: whoever looks copies it under the lock. The other
 * is the writer's: it takes the nodes after the newest feed, and when that is durable the two
 * change places. So what is seen is always durable, and publishing costs nothing.
 *
 * The engine itself is only a means: everything it holds can be made anew from the published
 * moment. That is what happens after its device has failed.
 */
#include "core/clock.h"
#include "core/fail.h"
#include "store/inside.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A device that failed is not asked again before so long: it may take seconds to say no. */
#define RETRY_NS UINT64_C(5000000000)

bool iron__engine_name_is_valid(const char *name) {
    size_t length = strnlen(name, IRON_ENGINE_NAME_MAX + 1);
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static const char others[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    return length >= 1 && length <= IRON_ENGINE_NAME_MAX && strchr(first, name[0]) &&
           strspn(name, others) == length;
}

void iron__plan_init(iron__plan *plan) {
    iron_config defaults;

    iron_config_init(&defaults);
    *plan = (iron__plan){
        .nodes = defaults.nodes,
        .vocab = defaults.vocab,
        .batch = defaults.batch,
        .positions = defaults.positions,
        .mode = "auto",
        .backend = "auto",
    };
}

void iron__plan_config(const iron__plan *plan, iron_config *config) {
    iron_config_init(config);
    config->nodes = plan->nodes;
    config->vocab = plan->vocab;
    config->batch = plan->batch;
    config->positions = plan->positions;
    config->lattice = plan->lattice_count ? plan->lattice : NULL;
    config->lattice_count = plan->lattice_count;
    config->with_seal = 1;
    config->backend = plan->backend;
    config->mode = plan->mode;
    config->device = plan->device;
    config->threads = 1;
}

void iron__plan_config_cpu(const iron__plan *plan, iron_config *config) {
    iron__plan_config(plan, config);
    config->backend = "cpu";
    config->mode = "auto";
    config->device = 0;
}

void iron__plan_take_lattice(iron__plan *plan, const iron_config *config) {
    plan->lattice_count = config->lattice_count;
    memcpy(plan->lattice, config->lattice, config->lattice_count * sizeof plan->lattice[0]);
}

static iron_status arrays_create(iron__node_arrays *arrays, uint64_t nodes, iron_error *err) {
    arrays->xors = calloc(nodes, sizeof *arrays->xors);
    arrays->potentials = calloc(nodes, sizeof *arrays->potentials);
    IRON_FAIL_IF(!arrays->xors || !arrays->potentials, err, IRON_E_NOMEM,
                 "out of memory: nodes of an engine; use fewer engines or nodes");
    return IRON_OK;
}

static void arrays_free(iron__node_arrays *arrays) {
    free(arrays->xors);
    free(arrays->potentials);
}

/* Called with the engine new: what it has made of the plan. */
static void note_in_force(iron__kept *kept) {
    iron__plan *p = &kept->in_force;
    const iron_config *c;

    if (!kept->engine)
        return;
    c = iron_engine_config(kept->engine);
    iron__plan_take_lattice(p, c);
    snprintf(p->backend, sizeof p->backend, "%s", c->backend);
    snprintf(p->mode, sizeof p->mode, "%s", c->mode);
    p->device = c->device;
    snprintf(kept->device, sizeof kept->device, "%s", iron_engine_device(kept->engine));
}

static void kept_destroy(iron__kept *kept) {
    iron_engine_destroy(kept->engine);
    iron__forks_destroy(kept);
    arrays_free(&kept->ahead_nodes);
    arrays_free(&kept->nodes);
    pthread_cond_destroy(&kept->changed);
    pthread_mutex_destroy(&kept->lock);
    free(kept);
}

iron_status iron__kept_create(iron__store *store, const iron__engine_row *row, iron_engine *engine,
                              const iron_error *broken, const iron__moment *moment,
                              const uint32_t *xors, const float *potentials, iron__kept **out,
                              iron_error *err) {
    iron__kept *kept = calloc(1, sizeof *kept);
    size_t bytes = row->plan.nodes * sizeof(uint32_t);

    *out = NULL;
    if (!kept)
        iron_engine_destroy(engine);
    IRON_FAIL_IF(!kept, err, IRON_E_NOMEM, "out of memory: an engine");
    kept->store = store;
    kept->plan = kept->in_force = row->plan;
    kept->id = row->id;
    kept->created_ms = row->created_ms;
    kept->engine = engine;
    kept->broken = broken ? *broken : (iron_error){.status = IRON_OK};
    kept->broken_ns = engine ? 0 : iron__clock_ns();
    kept->ahead = kept->published = *moment;
    kept->version = 1;
    atomic_init(&kept->references, 1);
    pthread_mutex_init(&kept->lock, NULL);
    iron__condition_init(&kept->changed);
    note_in_force(kept);
    if (arrays_create(&kept->nodes, row->plan.nodes, err) != IRON_OK ||
        arrays_create(&kept->ahead_nodes, row->plan.nodes, err) != IRON_OK) {
        kept_destroy(kept);
        return IRON_E_NOMEM;
    }
    memcpy(kept->nodes.xors, xors, bytes);
    memcpy(kept->nodes.potentials, potentials, bytes);
    *out = kept;
    return IRON_OK;
}

iron__kept *iron__kept_hold(iron__kept *kept) {
    atomic_fetch_add_explicit(&kept->references, 1, memory_order_relaxed);
    return kept;
}

void iron__kept_release(iron__kept *kept) {
    if (kept && atomic_fetch_sub_explicit(&kept->references, 1, memory_order_acq_rel) == 1)
        kept_destroy(kept);
}

bool iron__kept_is_deleted(iron__kept *kept) {
    bool is_deleted;

    pthread_mutex_lock(&kept->lock);
    is_deleted = kept->is_deleted;
    pthread_mutex_unlock(&kept->lock);
    return is_deleted;
}

/* After the change, so that whoever hears of it sees it. */
static void tell(iron__kept *kept) {
    atomic_fetch_add(&kept->news, 1);
    iron__news_tell(&kept->store->news);
}

void iron__kept_receive(iron__kept *kept, uint64_t tokens) {
    atomic_fetch_add_explicit(&kept->incoming, tokens, memory_order_relaxed);
    if (iron__meter_add(&kept->meter, iron__clock_ns(), tokens))
        tell(kept);
}

void iron__kept_forgo(iron__kept *kept, uint64_t tokens) {
    if (tokens == 0)
        return;
    atomic_fetch_sub(&kept->incoming, tokens);
    tell(kept);
}

/* Of large bodies the tokens were counted when they came. */
static void swap(iron__kept *kept) {
    iron__node_arrays nodes = kept->ahead_nodes;
    uint64_t tokens =
        kept->ahead.standing.closed.count - kept->published.standing.closed.count - kept->landing;

    kept->ahead_nodes = kept->nodes;
    kept->nodes = nodes;
    kept->published = kept->ahead;
    (void)iron__meter_add(&kept->meter, iron__clock_ns(), tokens);
}

void iron__kept_publish(iron__kept *kept) {
    pthread_mutex_lock(&kept->lock);
    kept->is_deleted = kept->is_leaving;
    if (!kept->is_leaving)
        swap(kept);
    atomic_fetch_sub(&kept->incoming, kept->landing);
    kept->version++;
    pthread_cond_broadcast(&kept->changed);
    pthread_mutex_unlock(&kept->lock);
    kept->landing = 0;
    kept->is_ahead = false;
    tell(kept);
}

/* Only the writer changes what is published: it may look without the lock. */
const iron__node_arrays *iron__kept_newest(const iron__kept *kept) {
    return kept->is_ahead ? &kept->ahead_nodes : &kept->nodes;
}

void iron__kept_break(iron__kept *kept, const iron_error *why) {
    iron_engine_destroy(kept->engine);
    kept->engine = NULL;
    kept->broken = *why;
    kept->broken_ns = 0; /* once again at once: it may have been a mishap */
}

static iron_status make_anew(iron__kept *kept, iron_error *err) {
    const iron__node_arrays *nodes = iron__kept_newest(kept);
    iron_config config;

    iron__plan_config(&kept->plan, &config);
    IRON_TRY(iron_engine_create(&config, &kept->engine, err));
    return iron__engine_stand(kept->engine, &kept->ahead.standing, nodes->xors, nodes->potentials,
                              err);
}

iron_status iron__kept_engine(iron__kept *kept, iron_engine **out, iron_error *err) {
    iron_error why = {0};
    iron_status status = IRON_OK;

    if (!kept->engine) {
        bool is_soon = kept->broken_ns && iron__clock_ns() - kept->broken_ns < RETRY_NS;

        status = is_soon ? kept->broken.status : make_anew(kept, &why);
        if (status != IRON_OK && !is_soon) {
            iron__kept_break(kept, &why);
            kept->broken_ns = iron__clock_ns();
        }
        pthread_mutex_lock(&kept->lock);
        note_in_force(kept);
        pthread_mutex_unlock(&kept->lock);
    }
    if (status != IRON_OK && err)
        *err = kept->broken;
    *out = kept->engine;
    return status;
}
