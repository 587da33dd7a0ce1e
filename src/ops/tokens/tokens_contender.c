/* SPDX-License-Identifier: MIT */
/* tokens_contender.c: see tokens_contender.h. */
#include "ops/tokens/tokens_contender.h"

#include "core/fail.h"

#include <inttypes.h>
#include <stdlib.h>

void iron__tokens_usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element,
                             uint64_t *rows, uint64_t *cols) {
    *rows = iron__line_usual(UINT64_C(1) << (has_gpu ? 28 : 26), IRON_TOKENS_ROWS_MAX,
                             iron__element_bytes(element), cache_bytes);
    *cols = 1;
}

uint64_t iron__tokens_useful_bytes(const iron__case *c) { return c->rows * sizeof(uint32_t); }

iron_status iron__tokens_accept_vocab(const iron__case *c, iron_error *err) {
    IRON_FAIL_IF(c->vocab < 2 || c->vocab > UINT32_C(1) << 31, err, IRON_E_ARG,
                 "vocab is %" PRIu32 "; it must be 2 to 2147483648", c->vocab);
    return IRON_OK;
}

void iron__tokens_contender_destroy(iron__gpu_work *work) {
    iron__tokens_contender *c = (iron__tokens_contender *)work;

    if (!c)
        return;
    iron__gpu_event_destroy(c->device, c->fed);
    iron__tokens_gpu_destroy(c->tokens);
    iron__nodes_deinit(&c->nodes);
    iron_lattice_destroy(c->lattice);
    free(c);
}

iron_status iron__tokens_contender_create(iron__gpu_device *device, const iron__contender *row,
                                          const iron__op_problem *problem, uint32_t parts,
                                          iron__gpu_work **out, iron_error *err) {
    iron__tokens_contender *c = calloc(1, sizeof *c);
    iron_status status;

    (void)parts;
    *out = NULL;
    if (!c)
        return iron__fail(err, IRON_E_NOMEM, 0, "out of memory: a contender");
    c->device = device;
    c->row = *row;
    c->problem = problem;
    status = iron__gpu_event_create(device, &c->fed, err);
    if (status == IRON_OK)
        status = row->gpu->set_up((iron__gpu_work *)c, err);
    if (status != IRON_OK) {
        iron__tokens_contender_destroy((iron__gpu_work *)c);
        return status;
    }
    *out = (iron__gpu_work *)c;
    return IRON_OK;
}

iron_status iron__tokens_contender_finish(iron__gpu_work *work, const iron__gpu_data *data,
                                          iron__gpu_queue *queue, iron_error *err) {
    (void)data;
    return iron__tokens_gpu_apply_pending(((iron__tokens_contender *)work)->tokens, queue, err);
}

iron_status iron__tokens_contender_run(iron__gpu_work *work, const iron__gpu_data *data,
                                       iron__gpu_queue *queue, iron_error *err) {
    iron__tokens_contender *c = (iron__tokens_contender *)work;

    IRON_TRY(iron__tokens_gpu_feed(c->tokens, queue, data->inputs[0], 0, c->problem->c.rows, err));
    return iron__tokens_contender_finish(work, data, queue, err);
}

iron_status iron__tokens_contender_run_part(iron__gpu_work *work, const iron__gpu_data *data,
                                            iron__gpu_part part, iron__gpu_queue *queue,
                                            iron_error *err) {
    iron__tokens_contender *c = (iron__tokens_contender *)work;

    if (part.index > 0)
        IRON_TRY(iron__gpu_queue_wait_event(queue, c->fed, err));
    IRON_TRY(iron__tokens_gpu_feed(c->tokens, queue, data->inputs[0], part.first, part.count, err));
    return iron__gpu_event_record(queue, c->fed, err);
}
