/* SPDX-License-Identifier: MIT */
/*
 * gpu_passes.h: one pass of reading, writing or copying a device's memory, put into a queue: for
 * the ceilings, and for those who want them in the same breath as what they measure against them.
 *
 * Sizes are counted in quads of 16 bytes. Any number of them is right; whole turns (ceilings.k) are
 * fast.
 */
#ifndef IRON_ARENA_GPU_PASSES_H
#define IRON_ARENA_GPU_PASSES_H

#include "gpu/gpu.h"

#define IRON_PASS_QUAD_BYTES ((size_t)16)
#define IRON_PASS_TURN_BYTES ((size_t)16384)

typedef enum iron__pass_verb {
    IRON_PASS_READ,  /* XORs all 32-bit words into the result */
    IRON_PASS_WRITE, /* word j becomes value + j, modulo 2^32 */
    IRON_PASS_COPY,  /* the first `quads` quads to the place right behind them */
    IRON_PASS_VERBS
} iron__pass_verb;

/* Who takes what: see ceilings.k. */
typedef enum iron__pass_order {
    IRON_PASS_CONTIGUOUS, /* each group has a range */
    IRON_PASS_STRIDED,    /* groups take turns */
    IRON_PASS_ALONE       /* each thread has a range: for CPUs */
} iron__pass_order;

/* What suits one device best, the next may dislike. */
typedef struct iron__pass_shape {
    uint32_t groups_a_unit;
    iron__pass_order order;
} iron__pass_shape;

/* "8 x 256 threads a unit, contiguous" */
void iron__pass_shape_name(iron__pass_shape shape, char *text, size_t size);

/* The shapes that a GPU's ceilings are the best of; NULL after the last. */
const iron__pass_shape *iron__pass_shape_at(size_t index);
/* The same for any device. */
const iron__pass_shape *iron__pass_shape_for(const iron__gpu_info *info, size_t index);

typedef struct iron__passes {
    iron__gpu_device *device; /* borrowed */
    iron__gpu_program *program;
    iron__gpu_kernel *kernels[IRON_PASS_VERBS], *alone[IRON_PASS_VERBS];
    iron__gpu_buffer *result; /* of reading: 4 bytes */
} iron__passes;

/* On failure nothing is left behind; deinit takes a struct of zeros, too. */
iron_status iron__passes_init(iron__passes *p, iron__gpu_device *device, iron_error *err);
void iron__passes_deinit(iron__passes *p);

/* Puts a pass over the buffer's first `quads` quads into the queue; `value` is for writing. */
iron_status iron__passes_put(iron__passes *p, iron__gpu_queue *queue, iron__pass_verb verb,
                             iron__pass_shape shape, const iron__gpu_buffer *data, uint64_t quads,
                             uint32_t value, iron_error *err);
iron_status iron__passes_read(iron__passes *p, iron__gpu_queue *queue, iron__pass_shape shape,
                              const iron__gpu_buffer *data, uint64_t quads, iron_error *err);

/* Sets the result to 0, in the queue's order. */
iron_status iron__passes_reset(iron__passes *p, iron__gpu_queue *queue, iron_error *err);
/* Waits for the queue and tells the result. */
iron_status iron__passes_result(iron__passes *p, iron__gpu_queue *queue, uint32_t *xors,
                                iron_error *err);

#endif
