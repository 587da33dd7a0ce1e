/* SPDX-License-Identifier: MIT */
/*
 * barrier_gpu.c: the rows of barrier on GPUs, and their launches.
 *
 * reach=block: one launch, whose groups take a segment each, or a segment a warp. reach=grid: a few
 * groups a unit, fewer where the line is short, and one sum of each. What the groups keep between
 * launches is a number of arrivals; it is 0 when an object is made, and every launch leaves it fit
 * for the next.
 */
#include "core/fail.h"
#include "ops/barrier/barrier.h"
#include "ops/kit.h"
#include "ops/needs.h"

IRON_GPU_EMBEDDED(barrier)

static const iron__gpu_image image = IRON_GPU_IMAGE(barrier);

/* The work's own buffers. */
enum { PARTIALS = 0, ARRIVED = 1 };

/* kept: how the line is dealt out where all of it is added up. */
enum { GROUPS = 0, SHARE = 1 };

static bool is_block(const iron__contender *row, const iron__case *c) {
    (void)row;
    return !iron__barrier_is_grid(c);
}

static bool is_grid(const iron__contender *row, const iron__case *c) {
    (void)row;
    return iron__barrier_is_grid(c);
}

static iron_status suits(const iron__gpu_device *device, const iron__case *c, iron_error *err) {
    (void)c;
    return iron__needs_threads(device, BARRIER_THREADS, err);
}

static iron_status suits_together(const iron__gpu_device *device, const iron__case *c,
                                  iron_error *err) {
    IRON_FAIL_IF(!device->info.can_gather, err, IRON_E_UNSUPPORTED,
                 "%s does not launch groups that wait for each other", device->info.name);
    return suits(device, c, err);
}

static uint64_t partials_bytes(const iron__case *c, size_t index) {
    (void)c;
    return index == PARTIALS ? BARRIER_PARTIALS * sizeof(uint64_t) : 0;
}

static uint64_t meeting_bytes(const iron__case *c, size_t index) {
    return index == ARRIVED ? sizeof(uint32_t) : partials_bytes(c, index);
}

/* Deals the line out to so many groups at most: SHARE loads for each of a group's threads. */
static void deal(iron__gpu_work *work, uint64_t most) {
    uint64_t pieces = iron__kit_pieces(work->c.rows / 4, BARRIER_THREADS);
    uint64_t share = iron__kit_pieces(pieces, most);

    work->kept[SHARE] = share > 0 ? share : 1;
    work->kept[GROUPS] = pieces > 0 ? iron__kit_pieces(pieces, work->kept[SHARE]) : 1;
}

static uint64_t most_groups(const iron__gpu_work *work) {
    return iron__kit_groups(work, BARRIER_PARTIALS, BARRIER_GROUPS);
}

static iron_status set_up_groups(iron__gpu_work *work, iron_error *err) {
    (void)err;
    deal(work, most_groups(work));
    return IRON_OK;
}

static iron_status clear_arrivals(iron__gpu_work *work, iron_error *err) {
    return iron__gpu_clear_now(work->buffers[ARRIVED], sizeof(uint32_t), err);
}

static iron_status set_up_meeting(iron__gpu_work *work, iron_error *err) {
    IRON_TRY(set_up_groups(work, err));
    return clear_arrivals(work, err);
}

/* No more groups than run at the same time. */
static iron_status set_up_together(iron__gpu_work *work, iron_error *err) {
    iron__gpu_facts facts;
    uint64_t most = most_groups(work), fit;

    IRON_TRY(
        iron__gpu_kernel_facts(work->device, work->kernels[0], BARRIER_THREADS, 0, &facts, err));
    fit = (uint64_t)facts.groups * work->device->info.units;
    deal(work, fit > 0 && fit < most ? fit : most);
    return clear_arrivals(work, err);
}

static iron_status launch(iron__gpu_kernel *kernel, uint64_t groups, uint32_t flags,
                          const iron__gpu_arg *args, size_t arg_count, iron__gpu_queue *queue,
                          iron_error *err) {
    const iron__gpu_launch l = {.kernel = kernel,
                                .groups = {(uint32_t)groups},
                                .threads = {BARRIER_THREADS},
                                .flags = flags,
                                .args = args,
                                .arg_count = arg_count};

    return iron__gpu_run(queue, &l, err);
}

/* A group, or a warp, a segment. */
static iron_status run_segments(iron__gpu_work *work, uint64_t groups, const iron__gpu_data *data,
                                iron__gpu_queue *queue, iron_error *err) {
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(work->c.rows)};

    return launch(work->kernels[0], groups, 0, args, IRON_KIT_COUNT(args), queue, err);
}

static iron_status run_group_a_segment(iron__gpu_work *work, const iron__gpu_data *data,
                                       iron__gpu_queue *queue, iron_error *err) {
    return run_segments(work, iron__barrier_segments(&work->c), data, queue, err);
}

static iron_status run_warp_a_segment(iron__gpu_work *work, const iron__gpu_data *data,
                                      iron__gpu_queue *queue, iron_error *err) {
    uint64_t groups = iron__kit_pieces(iron__barrier_segments(&work->c), BARRIER_THREADS / 32);

    return run_segments(work, groups, data, queue, err);
}

/* The whole line, to partial sums or to one word. */
static iron_status run_line(iron__gpu_work *work, const iron__gpu_data *data,
                            const iron__gpu_buffer *to, iron__gpu_queue *queue, iron_error *err) {
    uint32_t share = (uint32_t)work->kept[SHARE];
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(to),
                                  IRON_GPU_VALUE(work->c.rows), IRON_GPU_VALUE(share)};

    return launch(work->kernels[0], work->kept[GROUPS], 0, args, IRON_KIT_COUNT(args), queue, err);
}

static iron_status run_two_launches(iron__gpu_work *work, const iron__gpu_data *data,
                                    iron__gpu_queue *queue, iron_error *err) {
    const iron__gpu_buffer *partials = work->buffers[PARTIALS];
    uint32_t groups = (uint32_t)work->kept[GROUPS];
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(partials), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(groups)};

    IRON_TRY(run_line(work, data, partials, queue, err));
    return launch(work->kernels[1], 1, 0, args, IRON_KIT_COUNT(args), queue, err);
}

static iron_status run_meeting(iron__gpu_work *work, uint32_t flags, const iron__gpu_data *data,
                               iron__gpu_queue *queue, iron_error *err) {
    uint32_t share = (uint32_t)work->kept[SHARE];
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]),
                                  IRON_GPU_BUFFER(work->buffers[PARTIALS]),
                                  IRON_GPU_BUFFER(work->buffers[ARRIVED]),
                                  IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(work->c.rows),
                                  IRON_GPU_VALUE(share)};

    return launch(work->kernels[0], work->kept[GROUPS], flags, args, IRON_KIT_COUNT(args), queue,
                  err);
}

static iron_status run_last_block(iron__gpu_work *work, const iron__gpu_data *data,
                                  iron__gpu_queue *queue, iron_error *err) {
    return run_meeting(work, 0, data, queue, err);
}

static iron_status run_grid_sync(iron__gpu_work *work, const iron__gpu_data *data,
                                 iron__gpu_queue *queue, iron_error *err) {
    return run_meeting(work, IRON_GPU_LAUNCH_TOGETHER, data, queue, err);
}

static iron_status run_atomic(iron__gpu_work *work, const iron__gpu_data *data,
                              iron__gpu_queue *queue, iron_error *err) {
    IRON_TRY(iron__gpu_clear(queue, data->output, 0, sizeof(uint64_t), err));
    return run_line(work, data, data->output, queue, err);
}

/* Not the arrivals: a launch that leaves them unfit for the next must show. */
#define SCRATCH IRON_BIT(PARTIALS)

static const iron__kit_recipe block_barrier = {
    .image = &image, .kernels = {"barrier_block_barrier"}, .suits = suits};
static const iron__kit_recipe warp_sync = {
    .image = &image, .kernels = {"barrier_warp_sync"}, .suits = suits};
static const iron__kit_recipe shuffle = {
    .image = &image, .kernels = {"barrier_shuffle"}, .suits = suits};
static const iron__kit_recipe redux = {
    .image = &image, .kernels = {"barrier_redux"}, .suits = suits};
static const iron__kit_recipe warp_segment = {
    .image = &image, .kernels = {"barrier_warp_segment"}, .suits = suits};
static const iron__kit_recipe two_launches = {.image = &image,
                                              .kernels = {"barrier_partials", "barrier_total"},
                                              .suits = suits,
                                              .buffer_bytes = partials_bytes,
                                              .scratch = SCRATCH,
                                              .set_up = set_up_groups};
static const iron__kit_recipe last_block = {.image = &image,
                                            .kernels = {"barrier_last_block"},
                                            .suits = suits,
                                            .buffer_bytes = meeting_bytes,
                                            .scratch = SCRATCH,
                                            .set_up = set_up_meeting};
static const iron__kit_recipe grid_sync = {.image = &image,
                                           .kernels = {"barrier_grid_sync"},
                                           .suits = suits_together,
                                           .buffer_bytes = meeting_bytes,
                                           .scratch = SCRATCH,
                                           .set_up = set_up_together};
static const iron__kit_recipe atomic = {
    .image = &image, .kernels = {"barrier_atomic"}, .suits = suits, .set_up = set_up_groups};

static const iron__gpu_way group_a_segment = {IRON_KIT_WAY, .run = run_group_a_segment};
static const iron__gpu_way warp_a_segment = {IRON_KIT_WAY, .run = run_warp_a_segment};
static const iron__gpu_way in_two_launches = {IRON_KIT_WAY, .run = run_two_launches};
static const iron__gpu_way by_last_block = {IRON_KIT_WAY, .run = run_last_block};
static const iron__gpu_way by_grid_sync = {IRON_KIT_WAY, .run = run_grid_sync};
static const iron__gpu_way by_atomic = {IRON_KIT_WAY, .run = run_atomic};

#define ROW(row_name, row_idea, slower, on, when, how, recipe)                                     \
    {                                                                                              \
        .name = (row_name), .idea = (row_idea), .beats = (slower), .backends = (on),               \
        .suits = (when), .gpu = (how), .own = (recipe)                                             \
    }

static const iron__contender rows[] = {
    ROW("block-barrier", "a tree in local memory, a barrier of the group before each step", NULL,
        IRON_ON_GPU, is_block, &group_a_segment, &block_barrier),
    ROW("warp-sync", "the same tree; once a warp is left, it waits for itself alone",
        "block-barrier", IRON_ON_GPU, is_block, &group_a_segment, &warp_sync),
    ROW("shuffle", "warps add up in registers; one barrier, and eight sums are left", "warp-sync",
        IRON_ON_GPU, is_block, &group_a_segment, &shuffle),
    ROW("redux", "a warp's sum in one instruction (8.0 and later; shuffles on older cards)",
        "shuffle", IRON_ON_CUDA, is_block, &group_a_segment, &redux),
    ROW("warp-segment", "a warp a segment, eight loads a thread: no barrier at all", "shuffle",
        IRON_ON_GPU, is_block, &warp_a_segment, &warp_segment),
    ROW("two-launches", "a sum a group; a second launch adds them up", NULL, IRON_ON_GPU, is_grid,
        &in_two_launches, &two_launches),
    ROW("last-block", "one launch: the group that arrives last adds up what all have left",
        "two-launches", IRON_ON_GPU, is_grid, &by_last_block, &last_block),
    ROW("grid-sync", "one cooperative launch: all groups wait for each other, the first adds up",
        "two-launches", IRON_ON_CUDA, is_grid, &by_grid_sync, &grid_sync),
    ROW("atomic", "every group adds to one word, which is cleared first", "two-launches",
        IRON_ON_GPU, is_grid, &by_atomic, &atomic),
};

bool iron__barrier_gpu_contender_at(size_t index, iron__contender *out) {
    if (index >= IRON_KIT_COUNT(rows))
        return false;
    *out = rows[index];
    return true;
}
