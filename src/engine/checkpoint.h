/* SPDX-License-Identifier: MIT */
/*
 * checkpoint.h: what the store uses to save engines and to bring them back.
 *
 * An engine's results are a function of its configuration and of the contributions of its batches,
 * in order. So there are two ways to bring an engine to a position: restore a checkpoint together
 * with its nodes (a fork), or replay contributions that were reduced before. Both begin and end
 * with every batch closed. The bytes of a saved state are a checkpoint and its nodes in one piece.
 */
#ifndef IRON_ENGINE_CHECKPOINT_H
#define IRON_ENGINE_CHECKPOINT_H

#include "engine/engine.h"

/* Everything but the nodes. */
typedef struct iron__checkpoint {
    iron__contribution closed; /* of all batches, merged; .count is the position */
    uint64_t batches;
    iron__seal seal;
} iron__checkpoint;

/* Takes a checkpoint; afterwards the engine's nodes are up to date in host memory, also on a GPU.
 * The seals of equal checkpoints are equal byte for byte. */
iron_status iron__engine_checkpoint(iron_engine *engine, iron__checkpoint *checkpoint,
                                    iron_error *err);

/* Moves the engine to a checkpoint of another one with the same configuration. The arrays have
 * config.nodes entries and are copied; their values are not checked. Everything the engine had is
 * discarded, including an open batch. */
iron_status iron__engine_restore(iron_engine *engine, const iron__checkpoint *checkpoint,
                                 const uint32_t *xor_accumulators, const float *potentials,
                                 iron_error *err);

/* Applies batches that were reduced before, in order, without their tokens. Contributions do not
 * determine the seal, so the caller passes the seal after the batches (NULL for an engine without
 * one). Batches or a seal that this engine cannot have had are refused (IRON_E_FORMAT) before
 * anything is applied. On a GPU the nodes are sent to the device at the end. */
iron_status iron__engine_replay(iron_engine *engine, const iron__contribution *batches,
                                size_t count, const iron__seal *seal, iron_error *err);

/* From now on feed and end_batch call `callback` for each batch that closes, in order; not for
 * replayed batches, and not from a call that fails. NULL: none. On a GPU the engine then waits for
 * the device at the end of each batch. */
void iron__engine_on_batch(iron_engine *engine, iron__batch_callback callback, void *context);

/* The bytes of a saved state (the format is in state.c), in memory. `bytes` has room for
 * iron__state_bytes. */
size_t iron__state_bytes(const iron_engine *engine);
iron_status iron__state_write(iron_engine *engine, unsigned char *bytes, iron_error *err);

/* Creates an engine from the bytes of a saved state; `name` is for messages. The data must be
 * aligned for floats. */
iron_status iron__state_parse(const char *name, const unsigned char *data, size_t bytes,
                              const iron_config *run, iron_engine **out, iron_error *err);

#endif
