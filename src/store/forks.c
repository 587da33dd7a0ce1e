/* SPDX-License-Identifier: MIT */
/*
 * forks.c: private engines that stand where a kept engine is published to be. To make one takes
 * memory and a sort of the nodes, so a few stay with their engine when they are given back. All
 * forks together have no more nodes than all engines may have: memory is bounded however many
 * uploads come. Idle ones make room for those that are needed, also for other engines.
 */
#include "core/fail.h"
#include "store/inside.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void drop_nodes(iron__store *store, uint64_t nodes) {
    pthread_mutex_lock(&store->lock);
    store->fork_nodes -= nodes;
    pthread_mutex_unlock(&store->lock);
}

static void destroy_fork(iron__kept *kept, iron_engine *fork) {
    iron_engine_destroy(fork);
    drop_nodes(kept->store, kept->plan.nodes);
}

void iron__forks_destroy(iron__kept *kept) {
    for (uint32_t k = 0; k < kept->idle_count; k++) {
        destroy_fork(kept, kept->idle[k]);
        atomic_fetch_sub(&kept->store->idle_forks, 1);
    }
    kept->idle_count = 0;
}

static iron_engine *take_idle(iron__kept *kept) {
    iron_engine *fork = NULL;

    pthread_mutex_lock(&kept->lock);
    if (kept->idle_count > 0)
        fork = kept->idle[--kept->idle_count];
    pthread_mutex_unlock(&kept->lock);
    if (fork)
        atomic_fetch_sub(&kept->store->idle_forks, 1);
    return fork;
}

static bool reserve_nodes(iron__store *store, uint64_t nodes) {
    bool has_room;

    pthread_mutex_lock(&store->lock);
    has_room = store->fork_nodes + nodes <= store->options.nodes_max || store->fork_nodes == 0;
    if (has_room)
        store->fork_nodes += nodes;
    pthread_mutex_unlock(&store->lock);
    return has_room;
}

/* Held, or NULL: an engine that has an idle fork. Another may take that meanwhile. */
static iron__kept *find_idle(iron__store *store) {
    iron__kept *found = NULL;

    pthread_mutex_lock(&store->lock);
    for (size_t k = 0; k < store->engine_count && !found; k++) {
        iron__kept *kept = store->engines[k];

        pthread_mutex_lock(&kept->lock);
        if (kept->idle_count > 0)
            found = iron__kept_hold(kept);
        pthread_mutex_unlock(&kept->lock);
    }
    pthread_mutex_unlock(&store->lock);
    return found;
}

/* False: no fork is idle, all are at work. */
static bool destroy_idle(iron__store *store) {
    iron__kept *kept = find_idle(store);
    iron_engine *fork = kept ? take_idle(kept) : NULL;

    if (fork)
        destroy_fork(kept, fork);
    iron__kept_release(kept);
    return kept != NULL;
}

static iron_status create_fork(iron__kept *kept, iron_engine **out, iron_error *err) {
    iron__store *store = kept->store;
    iron_config config;
    iron_status status;
    bool has_room;

    do
        has_room = reserve_nodes(store, kept->plan.nodes);
    while (!has_room && destroy_idle(store));
    IRON_FAIL_IF(!has_room, err, IRON_E_STATE,
                 "large bodies for engines of %" PRIu64
                 " nodes take all memory that is meant for them; try again",
                 kept->plan.nodes);
    iron__plan_config(&kept->plan, &config);
    status = iron_engine_create(&config, out, err);
    if (status != IRON_OK)
        drop_nodes(store, kept->plan.nodes);
    return status;
}

/* The nodes are copied twice, so that a device is never waited for under the lock. */
iron_status iron__fork_stand(iron__kept *kept, iron_engine *fork, iron__moment *base,
                             iron_error *err) {
    size_t nodes = kept->plan.nodes, bytes = nodes * sizeof(uint32_t);
    uint32_t *xors = malloc(2 * bytes);
    float *potentials;
    iron_status status;

    IRON_FAIL_IF(!xors, err, IRON_E_NOMEM, "out of memory: a copy of %zu nodes", nodes);
    potentials = (float *)(void *)(xors + nodes);
    pthread_mutex_lock(&kept->lock);
    memcpy(xors, kept->nodes.xors, bytes);
    memcpy(potentials, kept->nodes.potentials, bytes);
    *base = kept->published;
    pthread_mutex_unlock(&kept->lock);
    status = iron__engine_stand(fork, &base->standing, xors, potentials, err);
    free(xors);
    return status;
}

iron_status iron__fork_take(iron__kept *kept, iron_engine **out, iron__moment *base,
                            iron_error *err) {
    iron_engine *fork = take_idle(kept);
    iron_status status = fork ? IRON_OK : create_fork(kept, &fork, err);

    *out = NULL;
    if (status == IRON_OK)
        status = iron__fork_stand(kept, fork, base, err);
    if (status == IRON_OK)
        *out = fork;
    else if (fork)
        destroy_fork(kept, fork);
    return status;
}

void iron__fork_give(iron__kept *kept, iron_engine *fork, bool is_whole) {
    iron__store *store = kept->store;

    if (!fork)
        return;
    iron__engine_listen(fork, NULL, NULL);
    if (is_whole && atomic_fetch_add(&store->idle_forks, 1) < IRON_STORE_IDLE_FORKS) {
        pthread_mutex_lock(&kept->lock);
        if (kept->idle_count < IRON_IDLE_FORKS && !kept->is_deleted) {
            kept->idle[kept->idle_count++] = fork;
            fork = NULL;
        }
        pthread_mutex_unlock(&kept->lock);
    }
    if (fork && is_whole)
        atomic_fetch_sub(&store->idle_forks, 1);
    if (fork)
        destroy_fork(kept, fork);
}
