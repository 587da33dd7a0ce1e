/* SPDX-License-Identifier: MIT */
/*
 * tokens_race.c: contenders that feed iron__tokens_gpu; see tokens_race.h.
 */
#include "ops/tokens/tokens_race.h"

#include "core/fail.h"

#include <stdlib.h>

void iron__tokens_race_destroy(iron__gpu_work *w) {
    if (!w)
        return;
    iron__gpu_event_destroy(w->device, w->fed);
    iron__tokens_gpu_destroy(w->tokens);
    iron__nodes_deinit(&w->nodes);
    iron_lattice_destroy(w->lattice);
    free(w);
}

static iron_status fill(iron__gpu_work *w, const iron__contender *row,
                        iron__tokens_race_make make_tokens, iron_error *err) {
    IRON_TRY(iron__gpu_event_create(w->device, &w->fed, err));
    return make_tokens(w, row, err);
}

iron_status iron__tokens_race_create(iron__gpu_device *device, const iron__contender *row,
                                     const iron__problem *problem,
                                     iron__tokens_race_make make_tokens, iron__gpu_work **out,
                                     iron_error *err) {
    iron__gpu_work *w = calloc(1, sizeof *w);
    iron_status status;

    *out = NULL;
    if (!w)
        return iron__fail(err, IRON_E_NOMEM, 0, "out of memory: a contender");
    w->device = device;
    w->problem = problem;
    status = fill(w, row, make_tokens, err);
    if (status != IRON_OK)
        iron__tokens_race_destroy(w);
    else
        *out = w;
    return status;
}

iron_status iron__tokens_race_finish(iron__gpu_work *w, const iron__gpu_data *data,
                                     iron__gpu_queue *queue, iron_error *err) {
    (void)data;
    return iron__tokens_gpu_settle(w->tokens, queue, err);
}

iron_status iron__tokens_race_run(iron__gpu_work *w, const iron__gpu_data *data,
                                  iron__gpu_queue *queue, iron_error *err) {
    IRON_TRY(iron__tokens_gpu_feed(w->tokens, queue, data->inputs[0], 0, w->problem->c.rows, err));
    return iron__tokens_race_finish(w, data, queue, err);
}

iron_status iron__tokens_race_run_part(iron__gpu_work *w, const iron__gpu_data *data,
                                       iron__gpu_part part, iron__gpu_queue *queue,
                                       iron_error *err) {
    if (part.index > 0)
        IRON_TRY(iron__gpu_event_follow(queue, w->fed, err));
    IRON_TRY(iron__tokens_gpu_feed(w->tokens, queue, data->inputs[0], part.first, part.count, err));
    return iron__gpu_event_record(queue, w->fed, err);
}
