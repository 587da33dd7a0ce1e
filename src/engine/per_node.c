/* SPDX-License-Identifier: MIT */
/*
 * per_node.c: the modes of Part I, in which every node reduces all tokens for itself: O(nodes x
 * tokens). Nodes are dealt out to the threads. Each node keeps the XOR and the sum of the open
 * batch, and applies its own when the batch closes; node 0's stand for the batch in the report.
 */
#include "engine/engine.h"

#include <string.h>

/* Nodes a task takes: enough to make dealing out cheap, few enough for small lattices to share. */
#define TASK_NODES 16u

typedef struct node_work {
    iron_engine *engine;
    const iron__tokens_run *run;
} node_work;

static void reduce_nodes(void *context, size_t task) {
    const node_work *w = context;
    iron_engine *e = w->engine;
    uint32_t first = (uint32_t)task * TASK_NODES;
    uint32_t last = first + TASK_NODES < e->nodes.count ? first + TASK_NODES : e->nodes.count;

    for (uint32_t j = first; j < last; j++) {
        iron__contribution c = e->choice.variant->reduce(w->run);

        e->per_node.xors[j] ^= c.xors;
        e->per_node.sums[j] += c.sum;
    }
}

void iron__per_node_feed(iron_engine *e, const iron__tokens_run *run) {
    node_work work = {e, run};

    iron__team_run(e->team, reduce_nodes, &work, (e->nodes.count + TASK_NODES - 1) / TASK_NODES);
    e->open =
        (iron__contribution){e->open.count + run->count, e->per_node.sums[0], e->per_node.xors[0]};
}

void iron__per_node_close(iron_engine *e, uint64_t tokens) {
    for (uint32_t j = 0; j < e->nodes.count; j++) {
        iron__contribution c = {tokens, e->per_node.sums[j], e->per_node.xors[j]};
        iron__batch_effect effect = {c.xors,
                                     iron__contribution_potential(c, (uint32_t)e->config.vocab)};

        iron__nodes_apply_to(&e->nodes, j, effect);
    }
}

void iron__per_node_clear(iron_engine *e) {
    if (!e->per_node.xors)
        return;
    memset(e->per_node.xors, 0, e->nodes.count * sizeof e->per_node.xors[0]);
    memset(e->per_node.sums, 0, e->nodes.count * sizeof e->per_node.sums[0]);
}
