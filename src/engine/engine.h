/* SPDX-License-Identifier: MIT */
/*
 * engine.h: the engine's inside, shared by the files of this folder.
 *
 * An engine is the lattice state of closed batches, the contribution of the open one, and a queue
 * of closed batches whose effect the nodes have not taken yet: batches wait there so that many can
 * be applied at once (core/nodes.h). iron__engine_settle empties it; whoever looks at nodes calls
 * it first.
 *
 *   config.c      checks a configuration and makes an engine of it
 *   modes.c       from a backend's and a mode's name to a registry row
 *   feed.c        tokens in memory: cut into runs, reduced by the team, merged into batches
 *   seal_feed.c   the same tokens into the seal
 *   per_node.c    the same for the modes of Part I, where every node reduces for itself
 *   pipeline.c    tokens from a source: a reader thread fills slots while the team reduces others
 *   state_file.c  save and load
 *   selftest.c    golden vectors and every variant against the reference
 */
#ifndef IRON_ENGINE_ENGINE_H
#define IRON_ENGINE_ENGINE_H

#include "core/nodes.h"
#include "core/seal.h"
#include "core/team.h"
#include "formats/dtype.h"
#include "ops/tokens/tokens.h"

#include <stdbool.h>

#define IRON_NODES_MAX       (UINT64_C(1) << 20)
#define IRON_VOCAB_MAX       (UINT64_C(1) << 31)
#define IRON_BATCH_VOCAB_MAX (UINT64_C(1) << 62)

/* Batches wait in the queue until so many are there; enough to make a settling's O(nodes) rare. */
#define IRON_QUEUE_BATCHES 1024u

/* Runs that are reduced between two merges, and tokens a task should have at least. */
#define IRON_RUNS_MAX   4096u
#define IRON_RUN_TOKENS 65536u

/* One contribution a node, for the modes in which nodes reduce for themselves. */
typedef struct iron__per_node {
    uint32_t *xors;
    uint64_t *sums;
} iron__per_node;

struct iron_engine {
    iron_config config; /* as it is in force; its pointers point into this engine */
    const iron_allocator *allocator;
    iron_lattice *lattice;
    iron__divisor divisor;
    const iron__tokens_variant *variant;
    char mode_reason[160];
    char device[96];
    iron__team *team;

    iron__nodes nodes;
    iron__contribution open;   /* of the batch that is not closed yet */
    iron__contribution closed; /* of all closed batches, merged */
    uint64_t batches;
    iron__seal seal;

    iron__batch_effect *queue;
    size_t queued;
    iron__contribution *runs;    /* IRON_RUNS_MAX of them, scratch of a feed */
    iron__seal_words *seal_runs; /* likewise, with a seal only */
    iron__per_node per_node;
};

/* Position of the next token. */
static inline uint64_t iron__engine_position(const iron_engine *e) {
    return e->config.positions == IRON_POSITIONS_BATCH ? e->open.count
                                                       : e->closed.count + e->open.count;
}

iron_status iron__config_check(const iron_config *config, iron_error *err);

/* Finds the row for backend and mode, and says why it is that one. */
iron_status iron__mode_choose(const iron_config *config, const iron__tokens_variant **variant,
                              char *reason, size_t reason_bytes, iron_error *err);

/* Applies the batches that wait in the queue. */
void iron__engine_settle(iron_engine *engine);

/* Tokens reduced by every node for itself; the run does not pass the end of the open batch. */
void iron__per_node_feed(iron_engine *engine, const iron__tokens_run *run);
void iron__per_node_close(iron_engine *engine, uint64_t tokens);

/* Takes the tokens into the seal. */
void iron__engine_seal(iron_engine *engine, const iron__tokens_view *tokens);

#endif
