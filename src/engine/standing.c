/* SPDX-License-Identifier: MIT */
/*
 * standing.c: engines brought to where others stand, and brought on without tokens.
 *
 * Both end where feeding would have ended, bit for bit: a standing is all that feeding leaves
 * behind, and a batch acts on the nodes through its contribution alone, in whatever mode it was
 * reduced.
 */
#include "engine/standing.h"

#include "core/fail.h"

#include <inttypes.h>
#include <string.h>

iron_status iron__engine_check_whole(const iron_engine *e, iron_error *err) {
    IRON_FAIL_IF(e->open.count > 0, err, IRON_E_STATE,
                 "a batch of %" PRIu64 " tokens is open; call iron_engine_end_batch before",
                 e->open.count);
    IRON_FAIL_IF(e->range.origin > 0 || e->range.record, err, IRON_E_STATE,
                 "this engine has only the batches from position %" PRIu64
                 " on; apply their effect to one that has all, and use that",
                 e->range.origin);
    return IRON_OK;
}

iron_status iron__engine_standing(iron_engine *engine, iron__standing *standing, iron_error *err) {
    IRON_TRY(iron__engine_check_whole(engine, err));
    IRON_TRY(iron__engine_settle(engine, err));
    *standing = (iron__standing){engine->closed, engine->batches, engine->seal};
    /* what was carried once and no longer counts would make equal standings look different */
    for (uint32_t k = standing->seal.carried; k < 3; k++)
        standing->seal.carry[k] = 0;
    return IRON_OK;
}

/* An engine without a seal keeps none, whatever the other had. */
static void take_seal(iron_engine *e, const iron__seal *seal) {
    e->seal = e->config.with_seal ? *seal : (iron__seal){.carried = 0};
}

iron_status iron__engine_stand(iron_engine *engine, const iron__standing *standing,
                               const uint32_t *xor_accumulators, const float *potentials,
                               iron_error *err) {
    size_t bytes = engine->nodes.count * sizeof(uint32_t);

    if (engine->failure.status != IRON_OK) {
        if (err)
            *err = engine->failure;
        return engine->failure.status;
    }
    memcpy(engine->nodes.xor_accumulators, xor_accumulators, bytes);
    memcpy(engine->nodes.potentials, potentials, bytes);
    engine->open = iron__contribution_neutral();
    engine->closed = standing->closed;
    engine->batches = standing->batches;
    take_seal(engine, &standing->seal);
    engine->range = (iron__range){.is_begun = false};
    engine->queued = 0;
    iron__per_node_clear(engine);
    return engine->gpu ? iron__gpu_engine_begin(engine, err) : IRON_OK;
}

/* Could these be batches of this engine, and the seal be that of the stream with them? */
static iron_status check_replay(const iron_engine *e, const iron__contribution *batches,
                                size_t count, const iron__seal *seal, iron_error *err) {
    uint64_t tokens = e->closed.count;

    for (size_t k = 0; k < count; k++) {
        IRON_FAIL_IF(batches[k].count < 1 || batches[k].count > e->config.batch, err, IRON_E_FORMAT,
                     "batch %" PRIu64 " is said to have %" PRIu64 " tokens; here are 1 to %" PRIu64,
                     e->batches + k, batches[k].count, e->config.batch);
        IRON_FAIL_IF(batches[k].count > UINT64_MAX - tokens, err, IRON_E_FORMAT,
                     "batch %" PRIu64 " would pass 2^64 tokens", e->batches + k);
        tokens += batches[k].count;
    }
    IRON_FAIL_IF(e->config.with_seal &&
                     (!seal || seal->carried > 3 || seal->words.count + seal->carried != tokens),
                 err, IRON_E_FORMAT,
                 "the seal after the batches is not that of a stream of %" PRIu64 " tokens",
                 tokens);
    return IRON_OK;
}

static void take_batch(iron_engine *e, iron__contribution batch) {
    iron__batch_effect effect = {batch.xors,
                                 iron__contribution_potential(batch, (uint32_t)e->config.vocab)};

    e->closed = iron__contribution_merge(e->closed, batch);
    e->batches++;
    (void)iron__range_take(e, effect); /* nothing is recorded here: the engine is whole */
    iron__queue_take(e, effect);
}

iron_status iron__engine_replay(iron_engine *engine, const iron__contribution *batches,
                                size_t count, const iron__seal *seal, iron_error *err) {
    IRON_TRY(iron__engine_check_whole(engine, err));
    IRON_TRY(iron__engine_settle(engine, err));
    IRON_TRY(check_replay(engine, batches, count, seal, err));
    for (size_t k = 0; k < count; k++)
        take_batch(engine, batches[k]);
    /* modes in which nodes reduce for themselves do not look at the queue when batches close */
    iron__queue_settle(engine);
    if (seal)
        take_seal(engine, seal);
    return engine->gpu ? iron__gpu_engine_begin(engine, err) : IRON_OK;
}

void iron__engine_listen(iron_engine *engine, iron__batch_heard heard, void *context) {
    engine->heard = heard;
    engine->heard_context = context;
}
