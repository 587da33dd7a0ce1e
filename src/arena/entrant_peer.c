/* SPDX-License-Identifier: MIT */
/*
 * entrant_peer.c: a peer that works on a device's memory, as a contender of op.h: its functions get
 * the addresses of the buffers and the queue's own stream. It is opened when the buffers are known,
 * which is when the inputs have arrived for the first time.
 */
#include "arena/entrants.h"
#include "core/fail.h"

#include <stdlib.h>

struct iron__gpu_work {
    const iron_peer *peer;
    const iron__problem *problem;
    void *state;
    bool is_open;
};

static void destroy(iron__gpu_work *w) {
    if (!w)
        return;
    if (w->is_open)
        w->peer->close(w->state);
    free(w);
}

static iron_status create(iron__gpu_device *device, const iron__contender *row,
                          const iron__problem *problem, uint32_t parts, iron__gpu_work **out,
                          iron_error *err) {
    (void)parts;
    *out = NULL;
    IRON_FAIL_IF(!device->info.has_addresses, err, IRON_E_UNSUPPORTED,
                 "%s has no addresses that a peer could use", device->info.name);
    *out = calloc(1, sizeof **out);
    IRON_FAIL_IF(!*out, err, IRON_E_NOMEM, "out of memory: a peer");
    (*out)->peer = row->own;
    (*out)->problem = problem;
    return IRON_OK;
}

static iron_status derive(iron__gpu_work *w, const iron__gpu_data *data, iron__gpu_queue *queue,
                          iron_error *err) {
    iron_peer_case c = iron__peer_case(w->problem, NULL, 1);
    char why[160] = "";

    if (w->is_open)
        return IRON_OK;
    for (size_t k = 0; k < w->problem->input_count; k++)
        c.inputs[k] = (const void *)data->inputs[k]->native;
    c.output = (void *)data->output->native;
    c.stream = (void *)queue->native;
    IRON_FAIL_IF(w->peer->open(&c, &w->state, why, sizeof why) != 0, err, IRON_E_UNSUPPORTED,
                 "%s: %s", w->peer->name, why);
    w->is_open = true;
    return IRON_OK;
}

static iron_status run(iron__gpu_work *w, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err) {
    char why[160] = "";

    (void)data;
    (void)queue;
    IRON_FAIL_IF(w->peer->run(w->state, why, sizeof why) != 0, err, IRON_E_STATE, "%s failed: %s",
                 w->peer->name, why);
    return IRON_OK;
}

static const iron__gpu_way way = {
    .create = create, .destroy = destroy, .derive = derive, .run = run};

iron__contender iron__peer_contender(const iron_peer *peer, const iron__contender *names) {
    iron__contender c = *names;

    c.gpu = &way;
    c.own = peer;
    return c;
}
