/* SPDX-License-Identifier: MIT */
/* kept_views.c: what others see of an engine: always what was published last. */
#include "core/clock.h"
#include "core/fail.h"
#include "engine/state_file.h"
#include "store/inside.h"

#include <stdlib.h>
#include <string.h>

static void view_of(const iron__kept *kept, iron__kept_view *view) {
    const iron__moment *m = &kept->published;

    *view = (iron__kept_view){
        .plan = kept->in_force,
        .version = kept->version,
        .created_ms = kept->created_ms,
        .changed_ms = m->changed_ms,
        .feeds = m->feeds,
        .tokens = m->standing.closed.count,
        .batches = m->standing.batches,
        .sum = m->standing.closed.sum,
        .state = m->state,
        .xors = m->standing.closed.xors,
        .incoming = atomic_load(&kept->incoming),
        .rate = iron__meter_rate(&kept->meter, iron__clock_ns()),
        .is_deleted = kept->is_deleted,
    };
    memcpy(view->device, kept->device, sizeof view->device);
    iron__seal_text(iron__seal_total(&m->standing.seal), view->seal);
}

void iron__kept_look(iron__kept *kept, iron__kept_view *view) {
    iron__kept_nodes(kept, view, NULL, NULL, NULL);
}

void iron__kept_nodes(iron__kept *kept, iron__kept_view *view, uint32_t *xor_accumulators,
                      float *potentials, float *activations) {
    size_t bytes = kept->plan.nodes * sizeof(uint32_t);

    pthread_mutex_lock(&kept->lock);
    view_of(kept, view);
    if (xor_accumulators)
        memcpy(xor_accumulators, kept->nodes.xors, bytes);
    if (potentials)
        memcpy(potentials, kept->nodes.potentials, bytes);
    pthread_mutex_unlock(&kept->lock);
    for (uint64_t j = 0; activations && j < kept->plan.nodes; j++)
        activations[j] = (float)(j + 1) / (float)kept->plan.nodes; /* no plan has others */
}

static iron_status write_state(iron_engine *engine, unsigned char **out, size_t *bytes,
                               iron_error *err) {
    unsigned char *room;
    iron_status status;

    *bytes = iron__state_bytes(engine);
    room = malloc(*bytes);
    IRON_FAIL_IF(!room, err, IRON_E_NOMEM, "out of memory: a state of %zu bytes", *bytes);
    status = iron__state_write(engine, room, err);
    if (status != IRON_OK) {
        free(room);
        return status;
    }
    *out = room;
    return IRON_OK;
}

/* By an engine of its own on the CPU, which holds the same state as any: a device is not disturbed
 * for this, and it needs no fork, of which uploads may have taken all. */
iron_status iron__kept_state(iron__kept *kept, unsigned char **out, size_t *bytes,
                             iron_error *err) {
    iron_engine *engine = NULL;
    iron__moment base;
    iron_config config;
    iron_status status;

    *out = NULL;
    *bytes = 0;
    iron__plan_config_cpu(&kept->plan, &config);
    status = iron_engine_create(&config, &engine, err);
    if (status == IRON_OK)
        status = iron__fork_stand(kept, engine, &base, err);
    if (status == IRON_OK)
        status = write_state(engine, out, bytes, err);
    iron_engine_destroy(engine);
    return status;
}

bool iron__kept_wait(iron__kept *kept, uint64_t version, uint32_t milliseconds) {
    struct timespec end = iron__in_milliseconds(milliseconds);
    bool is_over = false, is_other;

    pthread_mutex_lock(&kept->lock);
    while (kept->version == version && !kept->is_deleted &&
           !atomic_load(&kept->store->is_stopping) && !is_over)
        is_over = pthread_cond_timedwait(&kept->changed, &kept->lock, &end) != 0;
    is_other = kept->version != version;
    pthread_mutex_unlock(&kept->lock);
    return is_other;
}
