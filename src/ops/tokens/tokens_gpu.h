/* SPDX-License-Identifier: MIT */
/*
 * tokens_gpu.h: the op `tokens` on a GPU: tokens that lie in device memory are reduced, and the
 * nodes, which live there too, are updated.
 *
 * The modes are rows, as on the CPU. There are two kinds of them:
 *
 *   takes_many   one launch takes any number of batches. Contributions of closed batches wait in
 *                entries 0, 1, ... of two arrays, the open batch's entry follows them; when the
 *                arrays are full, or somebody looks, all waiting batches are applied at once.
 *   the others   one launch takes a piece of one batch, which is applied as soon as it is closed.
 *
 * per_node rows (Part I) keep one contribution a node. Everything is put into the caller's queue,
 * in order, and nothing waits but iron__tokens_gpu_fetch. One queue at a time: whoever changes
 * queues makes the new one follow the old.
 *
 * The seal of the same tokens, where it is asked for (lanes), is taken in the same read if batches
 * and buffers lie on multiples of four tokens and the mode takes many; else by a launch of its own.
 */
#ifndef IRON_OPS_TOKENS_GPU_H
#define IRON_OPS_TOKENS_GPU_H

#include "core/nodes.h"
#include "ops/tokens/quads_gpu.h"

typedef struct iron__tokens_gpu_row {
    const char *names[2]; /* "tokens.cuda.champion", "tokens.opencl.champion": by backend */
    const char *mode;
    const char *kernel;
    uint32_t threads[2]; /* of a group */
    bool takes_many;
    bool per_node;
    bool shares_sum;   /* per node, but with one sum for all */
    double unit_pairs; /* per node: pairs of node and token a second that a unit of an H200 takes */
    double token_ns;   /* and what a token costs at least, where a thread walks through them */
    /* Groups for a span on a device. */
    void (*groups)(const iron__gpu_info *info, const tokens_span *span, uint32_t groups[2]);
    const char *idea;
    const char *beats; /* the mode it improves on, or NULL */
} iron__tokens_gpu_row;

/* SPEC's nine, from the first kernel to the last; NULL past the end or if there is none. */
const iron__tokens_gpu_row *iron__tokens_gpu_row_at(size_t index);
/* By mode, or by one of its full names. */
const iron__tokens_gpu_row *iron__tokens_gpu_row_find(const char *name);
/* By mode, or by its full name on that backend. */
const iron__tokens_gpu_row *iron__tokens_gpu_row_for(size_t backend, const char *name);

/* About how long a per-node mode takes for so many tokens on a device; 0 for the others. */
double iron__tokens_gpu_seconds(const iron__tokens_gpu_row *row, const iron__gpu_info *info,
                                uint64_t nodes, uint64_t tokens);

/* The kernels of this op, for iron__gpu_program_load. */
extern const iron__gpu_image iron__tokens_image;

typedef struct iron__tokens_gpu iron__tokens_gpu;

/* What a stream is taken for besides its contribution. */
enum {
    IRON_LANE_SEAL = 1,
    IRON_LANE_STATS = 2, /* with the seal */
    IRON_LANE_ALONE = 4, /* the seal alone: no contribution, nodes stay as they are */
    IRON_LANE_APART = 8  /* contribution and seal read the tokens each: for comparing */
};

typedef struct iron__tokens_gpu_config {
    const iron__tokens_gpu_row *row;
    const iron_lattice *lattice; /* borrowed for the object's life */
    const iron_allocator *allocator;
    iron__gpu_program *program; /* NULL, or iron__tokens_image loaded: borrowed, to save time */
    uint64_t batch;
    uint32_t nodes, vocab;
    uint32_t lanes;  /* IRON_LANE_...: 0 is the contribution alone */
    uint32_t last;   /* for statistics: the largest token of the vocabulary */
    bool by_batch;   /* positions restart with each batch */
    bool is_chained; /* a promise: all tokens are in place before the first feed, and nothing but
                        feeds goes into the queue. Then a launch may begin before the one ahead of
                        it has ended. Without it a launch waits for all that is in the queue. */
} iron__tokens_gpu_config;

/* What has been taken: the host's side, always up to date. */
typedef struct iron__tokens_gpu_progress {
    uint64_t closed_tokens, batches; /* of closed batches */
    uint64_t open_tokens;
} iron__tokens_gpu_progress;

iron_status iron__tokens_gpu_create(iron__gpu_device *device, const iron__tokens_gpu_config *config,
                                    iron__tokens_gpu **out, iron_error *err);
void iron__tokens_gpu_destroy(iron__tokens_gpu *t);

/* Sets the nodes and what closed batches have come to; no batch is open. Waits for the queue. */
iron_status iron__tokens_gpu_begin(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                   const iron__nodes *nodes, iron__contribution closed,
                                   uint64_t batches, iron_error *err);

/* Tokens begin ... begin+count-1 of a buffer of 32-bit tokens, which must stay until the queue has
 * passed. */
iron_status iron__tokens_gpu_feed(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                  const iron__gpu_buffer *tokens, uint64_t begin, uint64_t count,
                                  iron_error *err);

/* Makes 32-bit tokens of others on the device: `width` bytes each, 1, 2 or 8, from number `begin`
 * of the buffer on. Of those of 8 bytes the lower half is taken; is_beyond tells, once the queue
 * has passed, whether one of them since `begin` was more than that. */
iron_status iron__tokens_gpu_widen(iron__tokens_gpu *t, iron__gpu_queue *queue, size_t width,
                                   const iron__gpu_buffer *from, uint64_t begin,
                                   const iron__gpu_buffer *to, uint64_t count, iron_error *err);

iron_status iron__tokens_gpu_is_beyond(iron__tokens_gpu *t, iron__gpu_queue *queue, bool *beyond,
                                       iron_error *err);

/* Closes the open batch, if there is one. */
iron_status iron__tokens_gpu_end_batch(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                       iron_error *err);

/* Applies the batches that wait. */
iron_status iron__tokens_gpu_settle(iron__tokens_gpu *t, iron__gpu_queue *queue, iron_error *err);

/* Settles, waits, and brings accumulators, potentials and the closed batches' total to the host. */
iron_status iron__tokens_gpu_fetch(iron__tokens_gpu *t, iron__gpu_queue *queue, iron__nodes *nodes,
                                   iron__contribution *closed, iron_error *err);

iron__tokens_gpu_progress iron__tokens_gpu_progress_of(const iron__tokens_gpu *t);

/* With lanes: what the stream's seal and statistics go on from, after begin and before the first
 * feed; and what they have come to. Both wait. */
iron_status iron__tokens_gpu_seal_begin(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                        const iron__quads_total *from, iron_error *err);
iron_status iron__tokens_gpu_seal_fetch(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                        iron__quads_total *total, iron_error *err);

#endif
