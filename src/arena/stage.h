/* SPDX-License-Identifier: MIT */
/*
 * stage.h: what a GPU lends its contenders for one problem: queues, events to time with, the inputs
 * in every kind of memory that somebody needs (made once, shared by all), and a way to empty its
 * caches.
 *
 * Contenders of one problem may share the inputs since none writes them.
 */
#ifndef IRON_ARENA_STAGE_H
#define IRON_ARENA_STAGE_H

#include "arena/gpu_passes.h"
#include "ops/op.h"

#define IRON_STREAMS_MAX 32u
#define IRON_MEMORIES    (IRON_GPU_MEMORY_MAPPED + 1)

/* The inputs in one kind of memory. */
typedef struct iron__place {
    iron__gpu_buffer *inputs[IRON_OP_INPUTS]; /* all NULL: not made yet */
    double ms;                                /* what taking the memory took */
} iron__place;

typedef struct iron__stage {
    iron__gpu_device *device; /* borrowed, as the problem */
    const iron__problem *problem;
    uint32_t streams;
    iron__gpu_queue *queues[IRON_STREAMS_MAX]; /* the first is the one for all that is not split */
    iron__gpu_event *begin, *end;
    iron__gpu_event *joined[IRON_STREAMS_MAX];
    iron__place places[IRON_MEMORIES];
    iron__passes passes;
    iron__gpu_buffer *flush; /* twice the last-level cache */
    uint64_t lent_bytes;     /* of device memory: to places and contenders */
    void *poison;            /* as long as an output, all bytes 0xFF */
    void *answer;            /* likewise: where timed passes bring theirs, and nobody looks */
    bool has_event_times;    /* else the host's clock is all there is */
} iron__stage;

/* Device and problem outlive it. On failure nothing is left behind. */
iron_status iron__stage_open(iron__stage *stage, iron__gpu_device *device,
                             const iron__problem *problem, uint32_t streams, iron_error *err);
void iron__stage_close(iron__stage *stage); /* takes a struct of zeros, too */

/* The inputs in that memory, made and filled if they are not there yet. */
iron_status iron__stage_place(iron__stage *stage, iron__gpu_memory memory, const iron__place **out,
                              iron_error *err);
/* The host writes the inputs anew, so that pages that had moved come back. */
iron_status iron__stage_refill(iron__stage *stage, iron__gpu_memory memory, iron_error *err);

/* Clears the inputs in device memory: whoever needs them has to bring them anew. */
iron_status iron__stage_forget(iron__stage *stage, iron_error *err);
/* Until all queues are empty, whatever happened in them. */
void iron__stage_wait(iron__stage *stage);

/* Puts a pass into the first queue after which the caches hold nothing of the problem. */
iron_status iron__stage_flush(iron__stage *stage, iron_error *err);

#endif
