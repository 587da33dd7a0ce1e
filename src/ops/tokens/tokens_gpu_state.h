/* SPDX-License-Identifier: MIT */
/* tokens_gpu_state.h: the object of tokens_gpu.h, shared by the files that are it. */
#ifndef IRON_OPS_TOKENS_GPU_STATE_H
#define IRON_OPS_TOKENS_GPU_STATE_H

#include "ops/tokens/tokens_gpu.h"

/* Kernels beside the row's own. Step and stride are CUDA's alone: NULL elsewhere. */
typedef struct iron__tokens_gpu_kernels {
    iron__gpu_kernel *reduce, *few, *whole, *step, *stride;
    iron__gpu_kernel *apply_one, *gather, *settle;
    iron__gpu_kernel *widen_u8, *widen_u16, *widen_i64;
} iron__tokens_gpu_kernels;

/* Device memory; every array begins at a multiple of IRON_GPU_ALIGNMENT. */
typedef struct iron__tokens_gpu_buffers {
    iron__gpu_buffer *xors; /* u32; contributions of waiting batches and the open one, or a node */
    iron__gpu_buffer *sums; /* u64; likewise */
    iron__gpu_buffer *accumulators; /* u32 a node, never 16 bits */
    iron__gpu_buffer *potentials;   /* f32 a node */
    iron__gpu_buffer *activations;  /* f32 a node */
    iron__gpu_buffer *totals;       /* u64 sum, u64 whose lower half is the XOR: closed batches */
    iron__gpu_buffer *points;       /* u32, TOKENS_POINTS of them */
    iron__gpu_buffer *nearest;      /* u8, the lattice's table */
    iron__gpu_buffer *additions;    /* u32 a node, 0 between launches */
    iron__gpu_buffer *batch_potentials; /* f32 a waiting batch */
    iron__gpu_buffer *maps;             /* u8, TOKENS_POINTS a chunk */
    iron__gpu_buffer *slots;            /* of the step: 16 bytes a group */
    iron__gpu_buffer *epochs;           /* of the step: u32 */
    iron__gpu_buffer *arrived;          /* of the whole: u32, 0 between launches */
    iron__gpu_buffer *beyond;           /* u32: nonzero once a token had more than 32 bits */
} iron__tokens_gpu_buffers;

#define TOKENS_GPU_BUFFERS (sizeof(iron__tokens_gpu_buffers) / sizeof(iron__gpu_buffer *))

struct iron__tokens_gpu {
    iron__tokens_gpu_config config;
    iron__gpu_device *device;
    iron__gpu_program *program;
    iron__tokens_gpu_kernels kernels;
    iron__quads_gpu *quads; /* NULL: no seal */
    union {
        iron__tokens_gpu_buffers buffers;
        iron__gpu_buffer *all_buffers[TOKENS_GPU_BUFFERS];
    };
    tokens_span span;       /* what does not change from launch to launch is filled in */
    tokens_lattice lattice; /* likewise */
    tokens_closing closing; /* likewise */
    iron__tokens_gpu_progress progress;
    uint64_t totals[2]; /* on their way from or to the device: must outlive a failed call */
    uint32_t beyond;    /* likewise */
    uint32_t waiting;   /* closed batches that are not applied yet */
    uint32_t turn;      /* 0 or 1: the open batch's entry, where nodes share one */
    bool is_step_last;  /* the launch before was a step: the next one may overlap it */
};

/* Below this a batch is a matter of a small group; above, of all of them. */
#define TOKENS_FEW_MAX 16384u

/* tokens_gpu_whole.c: is the span one whole batch that a single launch can reduce and apply? And
 * that launch; nothing waits to be applied. */
bool iron__tokens_gpu_is_whole(const iron__tokens_gpu *t, const tokens_span *s);
iron_status iron__tokens_gpu_feed_whole(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                        const iron__gpu_buffer *tokens, const tokens_span *s,
                                        iron_error *err);

#endif
