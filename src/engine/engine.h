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
 *   gpu_engine.c  the engine's calls, for an engine on a GPU
 *   gpu_heard.c   the same while somebody listens to its batches
 *   pipeline.c    tokens from a source: slots of a feed/ring.h into the engine, one after the other
 *   calibration.c which mode a GPU is fastest in; calibrate.c measures that
 *   effect.c      a range of the batches of a stream, for others to apply
 *   standing.c    an engine put where another stands, or brought on by batches reduced before
 *   state_save.c  saved states, written; state_file.c reads them
 *   selftest.c    golden vectors and every variant against the reference
 */
#ifndef IRON_ENGINE_ENGINE_H
#define IRON_ENGINE_ENGINE_H

#include "core/nodes.h"
#include "core/seal.h"
#include "core/team.h"
#include "feed/gpu_feed.h"
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

/* What an engine's backend and mode come down to: a row of the CPU's, or of the GPU's. */
typedef struct iron__mode_choice {
    const iron__tokens_variant *variant; /* NULL on a GPU */
    const iron__tokens_gpu_row *gpu_row; /* NULL on the CPU */
    size_t gpu_backend;
    char reason[160];
} iron__mode_choice;

/* What effect.c keeps of the batches since iron_engine_begin_at. */
typedef struct iron__range {
    bool is_begun;
    uint64_t origin;               /* position of the first token; closed.count counts from 0 */
    uint8_t map[IRON_LATTICE_MAX]; /* where the batches bring each point; not kept on a GPU */
    iron_batch_effect *record;     /* the caller's, or NULL: batches go to the nodes */
    size_t room, recorded;
} iron__range;

/* Told of a batch that has closed (standing.h). */
typedef void (*iron__batch_heard)(void *context, iron__contribution batch);

struct iron_engine {
    iron_config config; /* as it is in force; its pointers point into this engine */
    const iron_allocator *allocator;
    iron_lattice *lattice;
    iron__divisor divisor;
    iron__mode_choice choice;
    char device[96];
    iron__team *team;

    iron__nodes nodes;
    iron__contribution open;   /* of the batch that is not closed yet */
    iron__contribution closed; /* of all closed batches, merged */
    uint64_t batches;
    iron__seal seal;
    iron__range range;

    iron__batch_effect *queue;
    size_t queued;
    iron__contribution *runs;    /* IRON_RUNS_MAX of them, scratch of a feed */
    iron__seal_words *seal_runs; /* likewise, with a seal only */
    iron__per_node per_node;

    iron__batch_heard heard; /* NULL: nobody is told */
    void *heard_context;

    iron__gpu_feed *gpu; /* NULL on the CPU; the nodes above are a copy then, made on settling */
    iron_error failure;  /* of the device: from then on every call gives it again */
};

/* Position of the next token. */
static inline uint64_t iron__engine_position(const iron_engine *e) {
    return e->config.positions == IRON_POSITIONS_BATCH ? e->open.count
                                                       : e->closed.count + e->open.count;
}

iron_status iron__config_check(const iron_config *config, iron_error *err);

/* Finds the row for backend and mode, and says why it is that one. */
iron_status iron__mode_choose(const iron_config *config, iron__mode_choice *choice,
                              iron_error *err);

/* May these tokens be fed? Width, alignment, the stream's length, values. */
iron_status iron__feed_check(const iron_engine *engine, const iron__tokens_view *view,
                             iron_error *err);

/* Applies the batches that wait in the queue; on a GPU also brings the nodes here. */
iron_status iron__engine_settle(iron_engine *engine, iron_error *err);

/* A batch's effect waits for others; settle: the nodes take all that wait. Not for GPUs' own. */
void iron__queue_take(iron_engine *engine, iron__batch_effect effect);
void iron__queue_settle(iron_engine *engine);

/* Is every batch closed, and is the engine that of a whole stream? */
iron_status iron__engine_check_whole(const iron_engine *engine, iron_error *err);

/* gpu_engine.c; for engines whose gpu is not NULL. begin: from the engine's nodes and totals on. */
iron_status iron__gpu_engine_create(iron_engine *engine, iron_error *err);
iron_status iron__gpu_engine_begin(iron_engine *engine, iron_error *err);
iron_status iron__gpu_engine_feed(iron_engine *engine, const iron__tokens_view *view,
                                  iron_error *err);
/* The engine's page-locked slots, for a reader to fill. */
iron_status iron__gpu_engine_slots(iron_engine *engine, void *slots[IRON_FEED_SLOTS_MAX],
                                   iron_error *err);
/* A page-locked slot of the engine's; *released: how many of those fed may be filled again. */
iron_status iron__gpu_engine_feed_slot(iron_engine *engine, size_t slot,
                                       const iron__tokens_view *view, size_t *released,
                                       iron_error *err);
iron_status iron__gpu_engine_end_batch(iron_engine *engine, iron_error *err);
iron_status iron__gpu_engine_settle(iron_engine *engine, iron_error *err);
/* The same, and whoever listens is told. */
iron_status iron__gpu_heard_feed(iron_engine *engine, const iron__tokens_view *view,
                                 iron_error *err);
iron_status iron__gpu_heard_end_batch(iron_engine *engine, iron_error *err);

/* Tokens reduced by every node for itself; the run does not pass the end of the open batch. */
void iron__per_node_feed(iron_engine *engine, const iron__tokens_run *run);
void iron__per_node_close(iron_engine *engine, uint64_t tokens);

/* Forgets what nodes have reduced of the open batch. */
void iron__per_node_clear(iron_engine *engine);

/* A batch has closed; true when it was written down, and the nodes are not to take it. */
bool iron__range_take(iron_engine *engine, iron_batch_effect effect);
/* Is there room to write down the batches that so many more tokens close? */
iron_status iron__range_check(const iron_engine *engine, uint64_t tokens, iron_error *err);

/* Takes the tokens into the seal. */
void iron__engine_seal(iron_engine *engine, const iron__tokens_view *tokens);

#endif
