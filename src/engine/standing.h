/* SPDX-License-Identifier: MIT */
/*
 * standing.h: where an engine stands, for those who keep engines: a store that writes every batch
 * down before it counts, and makes engines anew from what it wrote.
 *
 * An engine's results are a function of its configuration and of the contributions of its batches,
 * in order. So there are two ways to bring an engine somewhere: give it a standing with the nodes
 * that belong to it (what a fork of another engine does), or replay contributions that were reduced
 * before. Both begin and end where every batch is closed.
 */
#ifndef IRON_ENGINE_STANDING_H
#define IRON_ENGINE_STANDING_H

#include "engine/engine.h"

/* Everything but the nodes. */
typedef struct iron__standing {
    iron__contribution closed; /* of all batches, merged; .count is the position */
    uint64_t batches;
    iron__seal seal;
} iron__standing;

/* Where the engine stands, and its nodes: settled, and lying here also when it is on a GPU. Equal
 * standings are equal byte for byte in their seals. */
iron_status iron__engine_standing(iron_engine *engine, iron__standing *standing, iron_error *err);

/* Puts the engine where another of the same configuration stands. The arrays have config.nodes
 * entries and are copied; values are believed. What the engine had, an open batch too, is
 * forgotten. */
iron_status iron__engine_stand(iron_engine *engine, const iron__standing *standing,
                               const uint32_t *xor_accumulators, const float *potentials,
                               iron_error *err);

/* Takes batches that were reduced before, in order, without their tokens. The seal is not made of
 * contributions: the caller knows what it was after them. On a GPU the nodes go there at the end.
 * count may be any number; potentials are computed from each contribution as feeding does. Batches
 * or a seal that this engine cannot have had (IRON_E_FORMAT) are refused before one is taken. seal
 * may be NULL for an engine without one. */
iron_status iron__engine_replay(iron_engine *engine, const iron__contribution *batches,
                                size_t count, const iron__seal *seal, iron_error *err);

/* From now on `heard` (engine.h) is told of each batch that closes, in order, from within feed and
 * end_batch: not of batches that are replayed, and of none in a call that fails. NULL: nobody is.
 * On a GPU the engine then waits for the device at the end of each batch. */
void iron__engine_listen(iron_engine *engine, iron__batch_heard heard, void *context);

/* The bytes of a saved state (state_file.h), in memory. room: iron__state_bytes. */
size_t iron__state_bytes(const iron_engine *engine);
iron_status iron__state_write(iron_engine *engine, unsigned char *room, iron_error *err);

#endif
