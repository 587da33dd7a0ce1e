/* SPDX-License-Identifier: MIT */
/*
 * atax_gpu_work.h: what the files of atax on a GPU share: a contender's recipe, and its object.
 *
 * A recipe says which kernels a contender consists of and how much of the matrix a group of each
 * takes; the ways (atax_gpu_ways.c, atax_gpu_single.c) put them into queues. Partial answers are
 * lines of `cols` elements: a part of the matrix fills the same number of them each time, empty
 * ones with zeros, so that finish knows without looking how many there are.
 */
#ifndef IRON_OPS_ATAX_GPU_WORK_H
#define IRON_OPS_ATAX_GPU_WORK_H

#include "gpu/kernel_words.h"
#include "ops/atax/kernel_params.h"
#include "ops/recording.h"

/* The most partial answers there are, whatever the device: 4 parts on 192 units. */
#define IRON_ATAX_PARTIALS 768u

/* Words of a meeting (together.cu), in bytes. */
#define IRON_ATAX_MEETING 256u

typedef struct iron__atax_recipe {
    const char *tmp, *y;         /* kernels, without _f32; y may be NULL */
    uint32_t tmp_rows, y_cols;   /* of a group */
    uint32_t threads;            /* of a group */
    bool has_copy, has_partials; /* what it takes memory for, */
    bool has_tmp, has_block;     /* besides */
    bool is_together;            /* one launch, whose groups meet */
    bool is_replayed;            /* its launches are recorded */
} iron__atax_recipe;

/* How a launch of the single pass looks for a case. */
typedef struct iron__atax_shape {
    const char *name; /* of the kernel, between atax_single_ and _f32 */
    uint32_t threads, groups_a_unit;
    uint32_t width;      /* threads that share a row */
    uint32_t round_rows; /* that a group takes at a time */
    uint32_t slot_rows;  /* of which so many are read by the same threads */
    bool is_held;        /* a group holds whole rows */
    bool is_by_element;  /* rows begin anywhere: the kernel's other form */
} iron__atax_shape;

struct iron__gpu_work {
    iron__gpu_device *device;
    const iron__atax_recipe *recipe;
    iron__case c;
    iron__atax_shape shape; /* of the single pass */
    uint32_t run_partials;  /* lines that a run fills */
    uint32_t part_partials; /* and a part */
    uint32_t parts;         /* that finish has to add; constant: begun since the last finish */
    iron__gpu_program *program;
    iron__gpu_kernel *tmp_kernel, *y_kernel, *sum_kernel, *transpose_kernel, *together_kernel;
    iron__gpu_buffer *tmp, *partials, *copy, *block, *meeting;
    iron__recording recording;
    iron__gpu_event *block_free; /* the last part's kernels have read the block */
};

extern const iron__gpu_way iron__atax_two_passes, iron__atax_constant, iron__atax_transposed,
    iron__atax_coalesced, iron__atax_single, iron__atax_together, iron__atax_graph;

/* What all ways have in common. */
iron_status iron__atax_gpu_create(iron__gpu_device *device, const iron__contender *row,
                                  const iron__problem *problem, uint32_t parts,
                                  iron__gpu_work **out, iron_error *err);
void iron__atax_gpu_destroy(iron__gpu_work *work);
iron_status iron__atax_gpu_spoil(iron__gpu_work *work, iron__gpu_queue *queue, iron_error *err);
uint64_t iron__atax_gpu_device_bytes(const iron__contender *row, const iron__case *c);

/* The shape for a case. */
iron__atax_shape iron__atax_shape_of(const iron__case *c);

/* All rows. */
static inline atax_span iron__atax_whole(const iron__gpu_work *work) {
    return (atax_span){.first = 0, .count = work->c.rows, .cols = work->c.cols};
}

static inline atax_span iron__atax_part(const iron__gpu_work *work, iron__gpu_part part) {
    return (atax_span){.first = part.first, .count = part.count, .cols = work->c.cols};
}

static inline uint64_t iron__atax_groups(uint64_t of, uint64_t size) {
    return (of + size - 1) / size;
}

/* The single pass: as a whole, a part of it, and the sum over the parts. */
iron_status iron__atax_single_run(iron__gpu_work *work, const iron__gpu_data *data,
                                  iron__gpu_queue *queue, iron_error *err);
iron_status iron__atax_single_part(iron__gpu_work *work, const iron__gpu_data *data,
                                   iron__gpu_part part, iron__gpu_queue *queue, iron_error *err);
iron_status iron__atax_single_finish(iron__gpu_work *work, const iron__gpu_data *data,
                                     iron__gpu_queue *queue, iron_error *err);

/* y, from the first `lines` partial answers. */
iron_status iron__atax_sum(iron__gpu_work *work, const iron__gpu_data *data, uint32_t lines,
                           iron__gpu_queue *queue, iron_error *err);

#endif
