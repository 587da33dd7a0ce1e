/* SPDX-License-Identifier: MIT */
/*
 * histogram_gpu.c: the rows of histogram on GPUs. All of them are one kernel that adds to an answer
 * of zeros; what differs is how it is launched, which histogram_plan.c says. Where values are far
 * (histogram_swept.k), it also adds to copies of their counters, and a second one adds these up.
 */
#include "core/fail.h"
#include "ops/histogram/histogram.h"
#include "ops/histogram/histogram_plan.h"
#include "ops/histogram/kernel_params.h"
#include "ops/kit.h"
#include "ops/needs.h"

#include <stdio.h>

_Static_assert(sizeof(histogram_span) == 24, "kernels see the same layout");

/* Elements that a group counts at most: counters in local memory have 32 bits. */
#define GROUP_MAX (UINT64_C(1) << 31)

IRON_GPU_EMBEDDED(histogram)

static const iron__gpu_image image = IRON_GPU_IMAGE(histogram);

typedef struct style {
    const char *kernel; /* NULL: the plan chooses */
    iron__histogram_planner plan;
} style;

/* What set_up leaves for run. */
enum { KEPT_THREADS, KEPT_GROUPS, KEPT_LOCAL_BYTES, KEPT_PARAMS };

static uint32_t groups_of(const iron__gpu_work *work, const iron__histogram_plan *plan) {
    uint64_t bytes = work->c.rows * iron__element_bytes(work->c.element);
    uint32_t groups =
        iron__kit_groups(work, iron__kit_pieces(bytes, plan->turn_bytes), plan->groups);
    uint64_t least = iron__kit_pieces(work->c.rows, GROUP_MAX);

    return groups < least ? (uint32_t)least : groups;
}

static iron_status set_up(iron__gpu_work *work, iron_error *err) {
    const iron__gpu_info *info = &work->device->info;
    const style *s = work->recipe->own;
    iron__histogram_plan plan = {.kernel = s->kernel};
    char name[64];

    IRON_TRY(s->plan(info, &work->c, &plan, err));
    IRON_TRY(iron__needs_threads(work->device, plan.threads, err));
    work->kept[KEPT_THREADS] = plan.threads;
    work->kept[KEPT_GROUPS] = groups_of(work, &plan);
    work->kept[KEPT_LOCAL_BYTES] = plan.local_bytes;
    if (plan.far && plan.copies > work->kept[KEPT_GROUPS])
        plan.copies = (uint32_t)work->kept[KEPT_GROUPS];
    work->kept[KEPT_PARAMS] = (uint64_t)plan.pairs << 32 | plan.copies;
    snprintf(name, sizeof name, "%s_%s", plan.kernel, iron__element_name(work->c.element));
    IRON_TRY(iron__gpu_kernel_find(work->device, work->program, name, &work->kernels[0], err));
    if (plan.far)
        IRON_TRY(iron__gpu_kernel_find(work->device, work->program, "histogram_far",
                                       &work->kernels[1], err));
    return IRON_OK;
}

static uint64_t far_buffer_bytes(const iron__case *c, size_t index) {
    return index == 0 ? iron__histogram_far_bytes(c) : 0;
}

static uint32_t far_values(const histogram_span *span) { return span->bins - 2 * span->pairs; }

static iron_status clear_far(iron__gpu_work *work, const histogram_span *span,
                             iron__gpu_queue *queue, iron_error *err) {
    size_t bytes = (size_t)far_values(span) * span->copies * sizeof(k_u64);

    return iron__gpu_clear(queue, work->buffers[0], 0, bytes, err);
}

static iron_status add_far(iron__gpu_work *work, const iron__gpu_data *data,
                           const histogram_span *span, iron__gpu_queue *queue, iron_error *err) {
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(work->buffers[0]), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(*span)};
    const iron__gpu_launch launch = {
        .kernel = work->kernels[1],
        .groups = {(uint32_t)iron__kit_pieces(far_values(span), HISTOGRAM_SMALL_THREADS)},
        .threads = {HISTOGRAM_SMALL_THREADS},
        .args = args,
        .arg_count = IRON_KIT_COUNT(args)};

    return iron__gpu_run(queue, &launch, err);
}

static iron_status run(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err) {
    const bool has_far = work->kernels[1] != NULL;
    histogram_span span = {.count = work->c.rows,
                           .bins = iron__histogram_bins(&work->c),
                           .copies = (uint32_t)work->kept[KEPT_PARAMS],
                           .pairs = (uint32_t)(work->kept[KEPT_PARAMS] >> 32)};
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(span), IRON_GPU_BUFFER(work->buffers[0])};
    const iron__gpu_launch launch = {.kernel = work->kernels[0],
                                     .groups = {(uint32_t)work->kept[KEPT_GROUPS]},
                                     .threads = {(uint32_t)work->kept[KEPT_THREADS]},
                                     .args = args,
                                     .arg_count = has_far ? 4 : 3,
                                     .local_bytes = (size_t)work->kept[KEPT_LOCAL_BYTES]};

    IRON_TRY(iron__gpu_clear(queue, data->output, 0, span.bins * sizeof(k_u64), err));
    if (has_far)
        IRON_TRY(clear_far(work, &span, queue, err));
    IRON_TRY(iron__gpu_run(queue, &launch, err));
    return has_far ? add_far(work, data, &span, queue, err) : IRON_OK;
}

static const iron__gpu_way way = {IRON_KIT_WAY, .run = run};

#define STYLE(name, text_kernel, planner)                                                          \
    static const style name##_style = {(text_kernel), (planner)};                                  \
    static const iron__kit_recipe name = {.image = &image, .set_up = set_up, .own = &name##_style}

/* A row whose plan may have far values. */
#define FAR_STYLE(name, planner)                                                                   \
    static const style name##_style = {NULL, (planner)};                                           \
    static const iron__kit_recipe name = {.image = &image,                                         \
                                          .buffer_bytes = far_buffer_bytes,                        \
                                          .scratch = IRON_BIT(0),                                  \
                                          .set_up = set_up,                                        \
                                          .own = &name##_style}

STYLE(global, "histogram_global", iron__histogram_plan_global);
STYLE(shared, "histogram_shared", iron__histogram_plan_plain);
STYLE(merged, "histogram_merged", iron__histogram_plan_plain);
STYLE(replicated, "histogram_replicated", iron__histogram_plan_copies);
STYLE(vector, "histogram_vector", iron__histogram_plan_vector);
STYLE(match, "histogram_match", iron__histogram_plan_plain);
STYLE(lanes, "histogram_lane_private", iron__histogram_plan_lanes);
STYLE(packed, NULL, iron__histogram_plan_packed);
FAR_STYLE(swept, iron__histogram_plan_swept);
FAR_STYLE(champion, iron__histogram_plan_champion);

/* Elements that all threads of a large card add in a second: to one counter, or the few that sorted
 * data have at a time; to uniform data's, times the square root of how many there are; to zipf's,
 * times the logarithm of that. Enough to tell milliseconds from seconds. */
#define ADDED_TO_ONE     1.37e9
#define ADDED_TO_UNIFORM 0.39e9
#define ADDED_TO_ZIPF    0.36e9

static double global_seconds(const iron__contender *row, const iron__case *c,
                             const iron__gpu_info *device, uint32_t threads) {
    uint32_t bins = iron__histogram_bins(c);
    double root = 1, logarithm = 0, rate = ADDED_TO_ONE;

    (void)row;
    (void)threads;
    while (root * root < bins)
        root++;
    while (logarithm < 32 && bins >> (uint32_t)logarithm > 1)
        logarithm++;
    if (iron__histogram_data_of(c) == IRON_HISTOGRAM_UNIFORM)
        rate = ADDED_TO_UNIFORM * root;
    else if (iron__histogram_data_of(c) == IRON_HISTOGRAM_ZIPF)
        rate = ADDED_TO_ZIPF * logarithm;
    return device->is_gpu ? (double)c->rows / rate : 0;
}

#define ROW(text_name, slower, where, types, recipe, text_idea)                                    \
    {                                                                                              \
        .name = (text_name), .idea = (text_idea), .beats = (slower), .backends = (where),          \
        .elements = (types), .gpu = &way, .own = &(recipe)                                         \
    }

#define U8  IRON_BIT(IRON_U8)
#define U16 IRON_BIT(IRON_U16)
#define U32 IRON_BIT(IRON_U32)

static const iron__contender rows[] = {
    {.name = "global-atomic",
     .idea = "every element adds 1 where its count lies",
     .backends = IRON_ON_GPU,
     .gpu = &way,
     .own = &global,
     .seconds = global_seconds},
    ROW("shared", "global-atomic", IRON_ON_GPU, 0, shared,
        "a table a group in local memory, added to the answer in the end"),
    ROW("warp-merged", "shared", IRON_ON_GPU, 0, merged,
        "the same, and each warp writes back its own stretch of bins"),
    ROW("shared-replicated", "shared", IRON_ON_GPU, 0, replicated,
        "several tables a group: warps meet less often"),
    ROW("match-any", "shared", IRON_ON_CUDA, 0, match,
        "lanes of one value find each other, and one of them adds for all"),
    ROW("vector-loads", "shared", IRON_ON_GPU, 0, vector,
        "a table a group, and the data come by 16 bytes"),
    ROW("lane-private", "vector-loads", IRON_ON_GPU, U8 | U32, lanes,
        "32 tables a group, one a lane and bank: no lane ever waits for another"),
    ROW("packed", "vector-loads", IRON_ON_GPU, U16 | U32, packed,
        "two counters a word, watched so that none overflows: twice the bins fit"),
    ROW("swept", "packed", IRON_ON_GPU, U16 | U32, swept,
        "two counters a word, added to blindly, and swept before one could overflow"),
    ROW("champion", "lane-private", IRON_ON_GPU, 0, champion,
        "tables a lane, one a group, packed or swept, as bins have room; several loads under way"),
};

bool iron__histogram_gpu_contender_at(size_t index, iron__contender *out) {
    if (index >= IRON_KIT_COUNT(rows))
        return false;
    *out = rows[index];
    return true;
}
