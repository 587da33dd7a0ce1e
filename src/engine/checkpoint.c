/* SPDX-License-Identifier: MIT */
/*
 * checkpoint.c: checkpoints, restoring them in another engine, and replaying batches.
 *
 * Restore and replay end exactly where feeding would have ended: a checkpoint and the nodes are all
 * that feeding leaves behind, and a batch acts on the nodes through its contribution alone, in
 * whatever mode it was reduced.
 */
#include "engine/checkpoint.h"

#include "core/fail.h"

#include <inttypes.h>
#include <string.h>

iron_status iron__engine_checkpoint(iron_engine *engine, iron__checkpoint *checkpoint,
                                    iron_error *err) {
    IRON_TRY(iron__engine_check_complete(engine, err));
    IRON_TRY(iron__engine_sync(engine, err));
    *checkpoint = (iron__checkpoint){engine->closed, engine->batches, engine->seal};
    /* stale tokens of the carry would make equal checkpoints differ */
    for (uint32_t k = checkpoint->seal.carried; k < 3; k++)
        checkpoint->seal.carry[k] = 0;
    return IRON_OK;
}

/* An engine without a seal ignores that of the other. */
static void set_seal(iron_engine *e, const iron__seal *seal) {
    e->seal = e->config.with_seal ? *seal : (iron__seal){.carried = 0};
}

iron_status iron__engine_restore(iron_engine *engine, const iron__checkpoint *checkpoint,
                                 const uint32_t *xor_accumulators, const float *potentials,
                                 iron_error *err) {
    size_t bytes = engine->nodes.count * sizeof(uint32_t);

    IRON_TRY(iron__engine_check_failure(engine, err));
    memcpy(engine->nodes.xor_accumulators, xor_accumulators, bytes);
    memcpy(engine->nodes.potentials, potentials, bytes);
    engine->open = iron__contribution_neutral();
    engine->closed = checkpoint->closed;
    engine->batches = checkpoint->batches;
    set_seal(engine, &checkpoint->seal);
    engine->range = (iron__range){.is_begun = false};
    return engine->backend->restart(engine, err);
}

/* Fails unless these can be the engine's next batches and the seal that of the stream after them.
 */
static iron_status check_replay(const iron_engine *e, const iron__contribution *batches,
                                size_t count, const iron__seal *seal, iron_error *err) {
    uint64_t tokens = e->closed.count;

    for (size_t k = 0; k < count; k++) {
        IRON_FAIL_IF(batches[k].count < 1 || batches[k].count > e->config.batch, err, IRON_E_FORMAT,
                     "batch %" PRIu64 " claims %" PRIu64 " tokens; it must have 1 to %" PRIu64,
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

iron_status iron__engine_replay(iron_engine *engine, const iron__contribution *batches,
                                size_t count, const iron__seal *seal, iron_error *err) {
    iron_batch_effect effects[IRON_QUEUE_BATCHES];

    IRON_TRY(iron__engine_check_complete(engine, err));
    IRON_TRY(iron__engine_sync(engine, err));
    IRON_TRY(check_replay(engine, batches, count, seal, err));
    for (size_t done = 0; done < count;) {
        size_t taken = 0;

        for (; taken < IRON_QUEUE_BATCHES && done < count; taken++, done++) {
            effects[taken] = iron__batch_effect_of(engine, batches[done]);
            engine->closed = iron__contribution_merge(engine->closed, batches[done]);
        }
        iron__engine_apply_effects(engine, effects, taken);
    }
    engine->batches += count;
    if (seal)
        set_seal(engine, seal);
    return engine->backend->restart(engine, err);
}

void iron__engine_on_batch(iron_engine *engine, iron__batch_callback callback, void *context) {
    engine->on_batch = callback;
    engine->on_batch_context = context;
}
