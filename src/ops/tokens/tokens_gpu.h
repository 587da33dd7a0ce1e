/* SPDX-License-Identifier: MIT */
/*
 * tokens_gpu.h: contribution, seal and statistics on a GPU. Tokens in device memory are reduced,
 * and the nodes, which are there too, are updated.
 *
 * The modes are rows, as on the CPU. There are two kinds:
 *
 *   takes_many   one launch takes any number of batches. Contributions of closed batches are
 *                entries 0, 1, ... of two arrays; the open batch's entry follows them. When the
 *                arrays are full, or the caller asks for the nodes, all pending batches are applied
 *   at once. the others   one launch takes a piece of one batch, which is applied as soon as it is
 *   closed.
 *
 * per_node rows (Part I) keep one contribution per node. Everything is enqueued in the caller's
 * queue, in order; only begin and the fetch functions wait. Use one queue at a time: a caller that
 * changes queues makes the new one follow the old one.
 *
 * The seal of the same tokens (config.outputs) is computed in the same read if batches and buffers
 * begin at multiples of four tokens and the mode takes many batches; otherwise by separate
 * launches.
 */
#ifndef IRON_OPS_TOKENS_TOKENS_GPU_H
#define IRON_OPS_TOKENS_TOKENS_GPU_H

#include "core/contribution.h"
#include "core/nodes.h"
#include "core/seal.h"
#include "gpu/gpu.h"
#include "gpu/kernel_words.h"
#include "ops/tokens/kernel_params.h"

#include <stdbool.h>

typedef struct iron__tokens_gpu_row {
    const char *names[2]; /* "tokens.cuda.champion", "tokens.opencl.champion": by backend */
    const char *mode;
    const char *kernel;
    uint32_t threads[2]; /* of a group */
    bool takes_many;
    bool per_node;
    bool shares_sum;   /* per node, but with one sum for all nodes */
    double unit_pairs; /* per node: pairs of node and token per second on one unit of an H200 */
    double token_ns;   /* per node: the least time per token where one thread visits all tokens */
    uint32_t nodes;    /* of a group; 0: `groups` returns how many a span takes on a device */
    void (*groups)(const iron__gpu_info *info, const tokens_span *span, uint32_t groups[2]);
    const char *idea;
    const char *beats; /* the mode it improves on, or NULL */
} iron__tokens_gpu_row;

/* SPEC's nine modes, from the first kernel to the last; NULL past the end. */
const iron__tokens_gpu_row *iron__tokens_gpu_row_at(size_t index);
/* By mode, or by one of its full names; NULL: not found. */
const iron__tokens_gpu_row *iron__tokens_gpu_row_find(const char *name);
/* By mode, or by its full name on that backend; NULL: not found. */
const iron__tokens_gpu_row *iron__tokens_gpu_row_for(size_t backend, const char *name);

/* About how long a per-node mode takes for so many tokens on a device; 0 for the others. */
double iron__tokens_gpu_seconds(const iron__tokens_gpu_row *row, const iron__gpu_info *info,
                                uint64_t nodes, uint64_t tokens);

/* The kernels of this op, for iron__gpu_program_load. */
extern const iron__gpu_image iron__tokens_image;

typedef struct iron__tokens_gpu iron__tokens_gpu;

/* What is computed besides the contribution. */
enum {
    IRON_TOKENS_SEAL = 1,
    IRON_TOKENS_STATS = 2,     /* with the seal */
    IRON_TOKENS_SEAL_ONLY = 4, /* no contribution: the nodes do not change */
    IRON_TOKENS_TWO_READS = 8  /* contribution and seal each read the tokens: for comparison */
};

typedef struct iron__tokens_gpu_config {
    const iron__tokens_gpu_row *row;
    const iron_lattice *lattice; /* borrowed for the object's life */
    const iron_allocator *allocator;
    iron__gpu_program *program; /* NULL, or iron__tokens_image loaded: borrowed, to save time */
    uint64_t batch;
    uint32_t nodes, vocab;
    uint32_t outputs; /* IRON_TOKENS_... bits; 0: only the contribution */
    uint32_t last;    /* for statistics: the largest token of the vocabulary */
    bool by_batch;    /* positions restart with each batch */
    bool is_chained;  /* a promise: all tokens are in place before the first feed, and nothing but
                         feeds enters the queue. Then a launch may begin before the previous one has
                         ended. Without it a launch waits for everything in the queue. */
} iron__tokens_gpu_config;

/* The tokens fed so far, as counted by the host. */
typedef struct iron__tokens_gpu_progress {
    uint64_t closed_tokens, batches; /* of closed batches */
    uint64_t open_tokens;
} iron__tokens_gpu_progress;

/* Seal and statistics of a stream. */
typedef struct iron__quads_total {
    iron__seal seal;
    iron__token_stats stats;
} iron__quads_total;

iron_status iron__tokens_gpu_create(iron__gpu_device *device, const iron__tokens_gpu_config *config,
                                    iron__tokens_gpu **out, iron_error *err);
void iron__tokens_gpu_destroy(iron__tokens_gpu *t);

/* Sets the nodes and the total of the closed batches; no batch is open. Waits for the queue. */
iron_status iron__tokens_gpu_begin(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                   const iron__nodes *nodes, iron__contribution closed,
                                   uint64_t batches, iron_error *err);

/* After begin, for modes that take many batches: closed batches go to the host and not to the
 * nodes. Where the pending ones would be applied, `closed` is called with each of them, in order.
 * Until the next begin. */
typedef void (*iron__batch_closed)(void *context, iron__contribution batch);
iron_status iron__tokens_gpu_record(iron__tokens_gpu *t, iron__batch_closed closed, void *context,
                                    iron_error *err);

/* Takes tokens begin ... begin+count-1 of a buffer of 32-bit tokens. The buffer must stay until the
 * queue has executed this. */
iron_status iron__tokens_gpu_feed(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                  const iron__gpu_buffer *tokens, uint64_t begin, uint64_t count,
                                  iron_error *err);

/* Converts tokens of `width` bytes (1, 2 or 8), from number `begin` of the buffer on, to 32 bits on
 * the device. Of 8-byte tokens it takes the lower half; iron__tokens_gpu_overflowed then tells
 * whether any of them since iron__tokens_gpu_begin needed more than 32 bits. */
iron_status iron__tokens_gpu_widen(iron__tokens_gpu *t, iron__gpu_queue *queue, size_t width,
                                   const iron__gpu_buffer *from, uint64_t begin,
                                   const iron__gpu_buffer *to, uint64_t count, iron_error *err);

iron_status iron__tokens_gpu_overflowed(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                        bool *overflowed, iron_error *err);

/* Closes the open batch, if there is one. */
iron_status iron__tokens_gpu_end_batch(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                       iron_error *err);

/* Applies the pending batches to the nodes. */
iron_status iron__tokens_gpu_apply_pending(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                           iron_error *err);

/* Applies the pending batches, waits, and copies accumulators, potentials and the total of the
 * closed batches to the host. */
iron_status iron__tokens_gpu_fetch(iron__tokens_gpu *t, iron__gpu_queue *queue, iron__nodes *nodes,
                                   iron__contribution *closed, iron_error *err);

iron__tokens_gpu_progress iron__tokens_gpu_progress_of(const iron__tokens_gpu *t);

/* With config.outputs: sets the seal and statistics of the tokens before, after begin and before
 * the first feed; and reads them back. Both wait. */
iron_status iron__tokens_gpu_seal_begin(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                        const iron__quads_total *from, iron_error *err);
iron_status iron__tokens_gpu_seal_fetch(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                        iron__quads_total *total, iron_error *err);

#endif
