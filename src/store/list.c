/* SPDX-License-Identifier: MIT */
/*
 * list.c: the engines in the order of their names, and how many there may be. Those that were
 * written before a limit was lowered are loaded all the same; only new ones are refused.
 */
#include "core/fail.h"
#include "store/inside.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Where the name is, or would be. Called with the lock held. */
static size_t place_of(const iron__store *store, const char *name, bool *is_there) {
    size_t low = 0, high = store->engine_count;

    *is_there = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(store->engines[middle]->plan.name, name);

        if (order == 0) {
            *is_there = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

iron_status iron__list_room(iron__store *store, size_t count, iron_error *err) {
    iron__kept **engines;

    if (count <= store->engines_room)
        return IRON_OK;
    engines = realloc(store->engines, count * sizeof(iron__kept *));
    IRON_FAIL_IF(!engines, err, IRON_E_NOMEM, "out of memory: a list of %zu engines", count);
    store->engines = engines;
    store->engines_room = count;
    return IRON_OK;
}

static iron_status reserve(iron__store *store, uint64_t nodes, iron_error *err) {
    const iron__store_options *o = &store->options;

    IRON_FAIL_IF(store->planned_engines >= o->engines_max, err, IRON_E_NOMEM,
                 "there are %" PRIu64 " engines, the most there may be; delete one",
                 store->planned_engines);
    IRON_FAIL_IF(nodes > o->nodes_max || store->planned_nodes > o->nodes_max - nodes, err,
                 IRON_E_NOMEM,
                 "engines have %" PRIu64 " nodes in all, and %" PRIu64
                 " more would be above %" PRIu64 "; use fewer, or delete an engine",
                 store->planned_nodes, nodes, o->nodes_max);
    /* two beyond: one that is deleted is still in the list when its successor is planned */
    IRON_TRY(iron__list_room(store, store->engine_count + store->planned_engines + 2, err));
    store->planned_engines++;
    store->planned_nodes += nodes;
    return IRON_OK;
}

iron_status iron__plan_reserve(iron__store *store, uint64_t nodes, iron_error *err) {
    iron_status status;

    pthread_mutex_lock(&store->lock);
    status = reserve(store, nodes, err);
    pthread_mutex_unlock(&store->lock);
    return status;
}

void iron__plan_drop(iron__store *store, uint64_t nodes) {
    pthread_mutex_lock(&store->lock);
    store->planned_engines--;
    store->planned_nodes -= nodes;
    pthread_mutex_unlock(&store->lock);
}

void iron__list_add(iron__store *store, iron__kept *kept) {
    bool is_there;
    size_t at;

    pthread_mutex_lock(&store->lock);
    at = place_of(store, kept->plan.name, &is_there);
    memmove(store->engines + at + 1, store->engines + at,
            (store->engine_count - at) * sizeof(iron__kept *));
    store->engines[at] = kept;
    store->engine_count++;
    pthread_mutex_unlock(&store->lock);
    iron__news_tell(&store->news);
}

void iron__list_remove(iron__store *store, iron__kept *kept) {
    bool is_there = false;

    pthread_mutex_lock(&store->lock);
    for (size_t at = 0; at < store->engine_count && !is_there; at++) {
        is_there = store->engines[at] == kept;
        if (is_there) {
            store->engine_count--;
            memmove(store->engines + at, store->engines + at + 1,
                    (store->engine_count - at) * sizeof(iron__kept *));
        }
    }
    pthread_mutex_unlock(&store->lock);
    if (!is_there)
        return;
    iron__news_tell(&store->news);
    iron__kept_release(kept);
}

iron__kept *iron__store_find(iron__store *store, const char *name) {
    iron__kept *kept = NULL;
    bool is_there;
    size_t at;

    pthread_mutex_lock(&store->lock);
    at = place_of(store, name, &is_there);
    if (is_there)
        kept = iron__kept_hold(store->engines[at]);
    pthread_mutex_unlock(&store->lock);
    return kept;
}

size_t iron__store_list(iron__store *store, iron__kept **out, size_t room) {
    size_t count;

    pthread_mutex_lock(&store->lock);
    count = store->engine_count;
    for (size_t k = 0; k < count && k < room; k++)
        out[k] = iron__kept_hold(store->engines[k]);
    pthread_mutex_unlock(&store->lock);
    return count;
}

uint64_t iron__store_wait(iron__store *store, uint64_t seen, uint32_t milliseconds) {
    return iron__news_wait(&store->news, seen, milliseconds);
}

size_t iron__store_glance(iron__store *store, iron__glimpse *out, size_t room) {
    size_t count;

    pthread_mutex_lock(&store->lock);
    count = store->engine_count;
    for (size_t k = 0; k < count && k < room; k++) {
        iron__kept *kept = store->engines[k];

        out[k] = (iron__glimpse){.id = kept->id, .news = atomic_load(&kept->news)};
        memcpy(out[k].name, kept->plan.name, sizeof out[k].name);
    }
    pthread_mutex_unlock(&store->lock);
    return count;
}
