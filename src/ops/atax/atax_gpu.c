/* SPDX-License-Identifier: MIT */
/*
 * atax_gpu.c: the contenders of atax on GPUs: their rows, and the making of their objects: program,
 * kernels, device memory. What runs is in atax_gpu_ways.c, atax_gpu_single.c and atax_gpu_once.c.
 *
 * The rows are ordered as a story: the talk's first kernels, what the talk tried on them, two
 * passes done well, and one pass.
 */
#include "ops/atax/atax_gpu.h"

#include "core/fail.h"
#include "core/memory.h"
#include "ops/atax/atax_gpu_work.h"
#include "ops/needs.h"

#include <stdio.h>

_Static_assert(sizeof(atax_span) == 24, "kernels see the same layout");

IRON_GPU_EMBEDDED(atax)

static const iron__gpu_image image = IRON_GPU_IMAGE(atax);

static const iron__atax_recipe naive = {.tmp = "atax_naive_tmp",
                                        .y = "atax_naive_y",
                                        .tmp_rows = ATAX_THREADS,
                                        .y_cols = ATAX_THREADS,
                                        .threads = ATAX_THREADS,
                                        .has_tmp = true};
static const iron__atax_recipe constant = {.tmp = "atax_constant_tmp",
                                           .y = "atax_naive_y",
                                           .tmp_rows = ATAX_THREADS,
                                           .y_cols = ATAX_THREADS,
                                           .threads = ATAX_THREADS,
                                           .has_tmp = true,
                                           .has_block = true};
static const iron__atax_recipe transposed = {.tmp = "atax_transposed_tmp",
                                             .y = "atax_naive_y",
                                             .tmp_rows = ATAX_THREADS,
                                             .y_cols = ATAX_THREADS,
                                             .threads = ATAX_THREADS,
                                             .has_tmp = true,
                                             .has_copy = true};
static const iron__atax_recipe tiled = {.tmp = "atax_tiled_tmp",
                                        .y = "atax_tiled_y",
                                        .tmp_rows = ATAX_TILE,
                                        .y_cols = ATAX_TILE,
                                        .threads = ATAX_TILE_THREADS,
                                        .has_tmp = true};
static const iron__atax_recipe coalesced = {.tmp = "atax_coalesced_tmp",
                                            .y = "atax_coalesced_y",
                                            .tmp_rows = ATAX_THREADS / 32,
                                            .y_cols = ATAX_THREADS,
                                            .threads = ATAX_THREADS,
                                            .has_tmp = true,
                                            .has_partials = true};
static const iron__atax_recipe single = {.has_partials = true};
static const iron__atax_recipe together = {.has_partials = true, .is_together = true};
static const iron__atax_recipe replayed = {.has_partials = true, .is_replayed = true};

#define FLOATS (IRON_BIT(IRON_F32) | IRON_BIT(IRON_F64))

static const iron__contender rows[] = {
    {.name = "naive",
     .idea = "a thread a row for A x, a thread a column for A'(A x): the talk's first kernels",
     .backends = IRON_ON_GPU,
     .elements = FLOATS,
     .passes = 2,
     .gpu = &iron__atax_two_passes,
     .own = &naive},
    {.name = "constant",
     .idea = "the same with x in constant memory, 64 KiB of it at a time",
     .beats = "naive",
     .backends = IRON_ON_GPU,
     .elements = FLOATS,
     .passes = 2,
     .gpu = &iron__atax_constant,
     .own = &constant},
    {.name = "transposed",
     .idea = "A x reads a transposed copy, made beforehand: neighbours read neighbours",
     .beats = "naive",
     .backends = IRON_ON_GPU,
     .elements = FLOATS,
     .passes = 2,
     .gpu = &iron__atax_transposed,
     .own = &transposed},
    {.name = "tiled",
     .idea = "both products through 32 x 32 tiles in local memory, loaded along rows",
     .beats = "naive",
     .backends = IRON_ON_GPU,
     .elements = FLOATS,
     .passes = 2,
     .gpu = &iron__atax_two_passes,
     .own = &tiled},
    {.name = "coalesced",
     .idea = "a warp a row for A x; a thread a column and slice of rows for y, then a sum",
     .beats = "tiled",
     .backends = IRON_ON_GPU,
     .elements = FLOATS,
     .passes = 2,
     .gpu = &iron__atax_coalesced,
     .own = &coalesced},
    {.name = "single-pass",
     .idea = "a group holds rows and its share of y in registers: A is read once",
     .beats = "coalesced",
     .backends = IRON_ON_GPU,
     .elements = FLOATS,
     .passes = 1,
     .gpu = &iron__atax_single,
     .own = &single},
    {.name = "graph",
     .idea = "the single pass's two launches, recorded once and replayed with one call",
     .beats = "single-pass",
     .backends = IRON_ON_CUDA,
     .elements = FLOATS,
     .passes = 1,
     .gpu = &iron__atax_graph,
     .own = &replayed},
    {.name = "one-launch",
     .idea = "the single pass, whose groups then meet and add up their shares: no second launch",
     .beats = "single-pass",
     .backends = IRON_ON_CUDA,
     .elements = FLOATS,
     .passes = 1,
     .gpu = &iron__atax_together,
     .own = &together},
};

bool iron__atax_gpu_contender_at(size_t index, iron__contender *out) {
    if (index >= sizeof rows / sizeof rows[0])
        return false;
    *out = rows[index];
    return true;
}

/* Of this case's width: "atax_sum" is "atax_sum_f64". */
static iron_status find(iron__gpu_work *work, const char *stem, bool is_by_element,
                        iron__gpu_kernel **out, iron_error *err) {
    char name[64];

    snprintf(name, sizeof name, "%s%s_%s", stem, is_by_element ? "_unaligned" : "",
             iron__element_name(work->c.element));
    return iron__gpu_kernel_find(work->device, work->program, name, out, err);
}

/* A kernel of this case's shape. */
static iron_status find_shape(iron__gpu_work *work, const char *kind, iron__gpu_kernel **out,
                              iron_error *err) {
    char stem[48];

    snprintf(stem, sizeof stem, "atax_%s_%s", kind, work->shape.name);
    return find(work, stem, work->shape.is_by_element, out, err);
}

static iron_status find_kernels(iron__gpu_work *work, iron_error *err) {
    const iron__atax_recipe *recipe = work->recipe;

    IRON_TRY(iron__gpu_program_load(work->device, &image, &work->program, err));
    if (recipe->tmp)
        IRON_TRY(find(work, recipe->tmp, false, &work->tmp_kernel, err));
    else
        IRON_TRY(find_shape(work, "single", &work->tmp_kernel, err));
    if (recipe->is_together)
        IRON_TRY(find_shape(work, "together", &work->together_kernel, err));
    if (recipe->y)
        IRON_TRY(find(work, recipe->y, false, &work->y_kernel, err));
    if (recipe->has_copy)
        IRON_TRY(find(work, "atax_transpose", false, &work->transpose_kernel, err));
    return recipe->has_partials ? find(work, "atax_sum", false, &work->sum_kernel, err) : IRON_OK;
}

static iron_status take_memory(iron__gpu_work *work, uint32_t parts, iron_error *err) {
    const iron__atax_recipe *recipe = work->recipe;
    size_t element_bytes = iron__element_bytes(work->c.element);
    size_t line_bytes = (size_t)work->c.cols * element_bytes;
    size_t part_lines = (size_t)parts * work->part_partials;
    size_t lines = part_lines > work->run_partials ? part_lines : work->run_partials;
    const struct {
        bool is_wanted;
        iron__gpu_buffer **buffer;
        size_t bytes;
    } wanted[] = {
        {recipe->has_tmp, &work->tmp, (size_t)work->c.rows * element_bytes},
        {recipe->has_copy, &work->copy, (size_t)work->c.rows * line_bytes},
        {recipe->has_partials, &work->partials, lines * line_bytes},
        {recipe->is_together, &work->meeting, IRON_ATAX_MEETING},
    };

    for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++)
        if (wanted[k].is_wanted)
            IRON_TRY(iron__gpu_buffer_create(work->device, IRON_GPU_MEMORY_DEVICE, wanted[k].bytes,
                                             wanted[k].buffer, err));
    if (!recipe->has_block)
        return IRON_OK;
    IRON_TRY(iron__gpu_event_create(work->device, &work->block_free, err));
    return iron__gpu_constant_find(work->device, work->program, "atax_block", ATAX_BLOCK,
                                   &work->block, err);
}

/* Enough groups to fill the device with this many rows, and no more than there is use for. */
static uint64_t wanted_partials(const iron__gpu_work *work, uint64_t count) {
    uint64_t units = work->device->info.units ? work->device->info.units : 1;
    uint64_t fill, useful;

    if (work->recipe->tmp) { /* 8 groups of 256 threads a unit, slices of 32 rows at least */
        fill = iron__atax_groups(8 * units, iron__atax_groups(work->c.cols, work->recipe->y_cols));
        useful = iron__atax_groups(count, 32);
    } else {
        fill = units * work->shape.groups_a_unit;
        /* Where waiting is all, rows are spread: each has a warp's loads in flight. */
        useful = iron__atax_groups(count, work->recipe->is_together ? work->shape.slot_rows
                                                                    : work->shape.round_rows);
    }
    return useful < fill ? useful : fill;
}

static void plan_partials(iron__gpu_work *work, uint32_t parts) {
    uint64_t of_run = wanted_partials(work, work->c.rows);
    uint64_t of_part = wanted_partials(work, iron__atax_groups(work->c.rows, parts));
    uint64_t room = IRON_ATAX_PARTIALS / parts > 0 ? IRON_ATAX_PARTIALS / parts : 1;

    work->run_partials = (uint32_t)(of_run < IRON_ATAX_PARTIALS ? of_run : IRON_ATAX_PARTIALS);
    work->part_partials = (uint32_t)(of_part < room ? of_part : room);
}

static iron_status check(const iron__gpu_work *work, iron_error *err) {
    const iron__gpu_info *info = &work->device->info;
    uint32_t threads = work->recipe->tmp ? work->recipe->threads : work->shape.threads;

    if (work->recipe->has_partials && threads < ATAX_SUM_COLS * ATAX_SUM_WAYS)
        threads = ATAX_SUM_COLS * ATAX_SUM_WAYS;
    IRON_TRY(iron__needs_element(work->device, &work->c, err));
    IRON_TRY(iron__needs_threads(work->device, threads, err));
    if (work->recipe->is_replayed)
        IRON_TRY(iron__recording_suits(work->device, err));
    IRON_FAIL_IF(work->recipe->is_together && !info->can_gather, err, IRON_E_UNSUPPORTED,
                 "%s cannot promise that all groups of a launch run at once", info->name);
    IRON_FAIL_IF(work->recipe->is_together && !work->shape.is_held, err, IRON_E_UNSUPPORTED,
                 "a group cannot hold rows of %llu columns; single-pass takes them in two launches",
                 (unsigned long long)work->c.cols);
    IRON_FAIL_IF(work->c.rows > UINT32_MAX || work->c.cols > UINT32_MAX, err, IRON_E_UNSUPPORTED,
                 "a matrix of 2^32 rows or columns is more than one launch can number");
    return IRON_OK;
}

iron_status iron__atax_gpu_create(iron__gpu_device *device, const iron__contender *row,
                                  const iron__problem *problem, uint32_t parts,
                                  iron__gpu_work **out, iron_error *err) {
    iron__gpu_work *work =
        iron__allocate(iron__allocator_default(), 1, sizeof *work, "atax on a GPU", err);
    iron_status status;

    *out = NULL;
    if (!work)
        return IRON_E_NOMEM;
    parts = parts ? parts : 1;
    work->device = device;
    work->recipe = row->own;
    work->c = problem->c;
    work->shape = iron__atax_shape_of(&work->c);
    plan_partials(work, parts);
    status = check(work, err);
    if (status == IRON_OK)
        status = find_kernels(work, err);
    if (status == IRON_OK)
        status = take_memory(work, parts, err);
    if (status != IRON_OK) {
        iron__atax_gpu_destroy(work);
        return status;
    }
    *out = work;
    return IRON_OK;
}

iron_status iron__atax_gpu_spoil(iron__gpu_work *work, iron__gpu_queue *queue, iron_error *err) {
    iron__gpu_buffer *const kept[] = {work->tmp, work->partials};

    for (size_t k = 0; k < sizeof kept / sizeof kept[0]; k++)
        if (kept[k])
            IRON_TRY(iron__gpu_clear(queue, kept[k], 0, kept[k]->bytes & ~(size_t)3, err));
    return IRON_OK;
}

void iron__atax_gpu_destroy(iron__gpu_work *work) {
    if (!work)
        return;
    iron__recording_deinit(&work->recording, work->device);
    iron__gpu_event_destroy(work->device, work->block_free);
    iron__gpu_buffer_destroy(work->meeting);
    iron__gpu_buffer_destroy(work->block);
    iron__gpu_buffer_destroy(work->copy);
    iron__gpu_buffer_destroy(work->partials);
    iron__gpu_buffer_destroy(work->tmp);
    iron__gpu_program_unload(work->device, work->program);
    iron__release(iron__allocator_default(), work);
}

/* At most: how many partial answers there are depends on the device. */
uint64_t iron__atax_gpu_device_bytes(const iron__contender *row, const iron__case *c) {
    const iron__atax_recipe *recipe = row->own;
    uint64_t element_bytes = iron__element_bytes(c->element);
    uint64_t lines = c->rows < IRON_ATAX_PARTIALS ? c->rows : IRON_ATAX_PARTIALS;

    return (recipe->has_tmp ? c->rows * element_bytes : 0) +
           (recipe->has_copy ? c->rows * c->cols * element_bytes : 0) +
           (recipe->has_partials ? lines * c->cols * element_bytes : 0) +
           (recipe->has_block ? ATAX_BLOCK : 0);
}
