/* SPDX-License-Identifier: MIT */
/*
 * histogram_gpu.c: the GPU rows of histogram. Each row is one kernel that adds to an answer of
 * zeros; they differ in how it is launched, which a plan decides from the device and the case
 * (constants are in kernel_params.h). If local memory has no counters for the highest values ("far"
 * values), the kernel adds them to copies of their counters in device memory, and a second kernel
 * adds the copies.
 *
 * The champion's plan takes the first that fits:
 *
 *   few bins                     one table per lane, two groups per unit
 *   two tables of words fit      one table per group, two groups per unit
 *   two counters per word fit    packed: checked on each addition
 *   they do not fit              swept: the lowest values in local memory, the others far
 *   no groups of 1024 threads    one table, small groups
 *   ... and no space for it      no table
 *
 * A table of words that leaves space for only one group per unit is not on the list: counters of
 * half the width hold the same bins, and races show them to be faster there.
 *
 * The file holds, in order: plans, launches, rows.
 */
#include "core/fail.h"
#include "ops/histogram/histogram.h"
#include "ops/histogram/kernel_params.h"
#include "ops/kit.h"
#include "ops/op.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct plan {
    const char *kernel; /* without the element type: "histogram_lanes" */
    uint32_t threads;   /* per group */
    uint32_t groups;    /* per unit */
    size_t turn_bytes;  /* that a group reads at a time */
    size_t local_bytes;
    uint32_t copies, pairs; /* for the kernel: see histogram_span */
    uint32_t far;           /* number of far values */
} plan;

/* Fills *out for a device and a case. out->kernel is the row's kernel, or NULL if the plan chooses
 * it. IRON_E_UNSUPPORTED with the reason if the device cannot run the row. */
typedef iron_status (*planner)(const iron__gpu_info *info, const iron__case *c, plan *out,
                               iron_error *err);

#define QUAD 16u /* bytes of a vector load */

/* Two groups of this size fit a unit, even if a driver limits a group to less than a unit has. */
#define SMALL_TABLE ((size_t)49152)
#define GROUP_OWN   ((size_t)1024)

static size_t table_bytes(const iron__case *c) {
    return (size_t)iron__histogram_bins(c) * sizeof(k_u32);
}

/* If every bin has a counter. */
static size_t packed_bytes(const iron__case *c) {
    return ((size_t)(iron__histogram_bins(c) + 1) / 2 + HISTOGRAM_PACKED_SPARE) * sizeof(k_u32);
}

static size_t least_of(uint64_t a, uint64_t b) { return (size_t)(a < b ? a : b); }

/* Do two groups with that much local memory fit a unit? A unit has GROUP_OWN more than a group may
 * use, and reserves GROUP_OWN for each group. */
static bool is_for_two(uint64_t unit_bytes, size_t local_bytes) {
    return local_bytes <= SMALL_TABLE || 2 * local_bytes + GROUP_OWN <= unit_bytes;
}

static uint32_t groups_of(const iron__gpu_info *info, size_t local_bytes, uint32_t most) {
    return is_for_two(info->local_bytes_max, local_bytes) ? most : 1;
}

/* The last step of every plan with a table. */
static iron_status check_fit(const iron__gpu_info *info, const iron__case *c, const plan *p,
                             iron_error *err) {
    IRON_FAIL_IF(p->local_bytes > info->local_bytes_max, err, IRON_E_UNSUPPORTED,
                 "%" PRIu32 " bins need %zu bytes of local memory per group; %s has %" PRIu64,
                 iron__histogram_bins(c), p->local_bytes, info->name, info->local_bytes_max);
    return IRON_OK;
}

static iron_status plan_global(const iron__gpu_info *info, const iron__case *c, plan *out,
                               iron_error *err) {
    (void)info;
    (void)err;
    out->threads = HISTOGRAM_SMALL_THREADS;
    out->groups = HISTOGRAM_SMALL_GROUPS;
    out->turn_bytes = HISTOGRAM_SMALL_THREADS * iron__element_bytes(c->element);
    return IRON_OK;
}

static iron_status plan_table(const iron__gpu_info *info, const iron__case *c, size_t turn_bytes,
                              plan *out, iron_error *err) {
    out->threads = HISTOGRAM_TABLE_THREADS;
    out->turn_bytes = turn_bytes;
    out->local_bytes = table_bytes(c);
    out->groups = groups_of(info, out->local_bytes, HISTOGRAM_TABLE_GROUPS);
    return check_fit(info, c, out, err);
}

static iron_status plan_plain(const iron__gpu_info *info, const iron__case *c, plan *out,
                              iron_error *err) {
    return plan_table(info, c, HISTOGRAM_TABLE_THREADS * iron__element_bytes(c->element), out, err);
}

static iron_status plan_vector(const iron__gpu_info *info, const iron__case *c, plan *out,
                               iron_error *err) {
    return plan_table(info, c, (size_t)HISTOGRAM_TABLE_THREADS * HISTOGRAM_VECTOR_LOADS * QUAD, out,
                      err);
}

/* As many copies as fit; a single one would equal the row that this one is compared with. */
static iron_status plan_copies(const iron__gpu_info *info, const iron__case *c, plan *out,
                               iron_error *err) {
    uint64_t room = info->local_bytes_max / table_bytes(c);

    IRON_TRY(plan_plain(info, c, out, err));
    IRON_FAIL_IF(room < 2, err, IRON_E_UNSUPPORTED,
                 "two tables of %" PRIu32 " bins need %zu bytes of local memory; %s has %" PRIu64,
                 iron__histogram_bins(c), 2 * table_bytes(c), info->name, info->local_bytes_max);
    out->copies = (uint32_t)least_of(room, HISTOGRAM_COPIES);
    out->local_bytes *= out->copies;
    out->groups = groups_of(info, out->local_bytes, HISTOGRAM_TABLE_GROUPS);
    return IRON_OK;
}

static iron_status plan_lane_tables(const iron__gpu_info *info, const iron__case *c, uint32_t loads,
                                    plan *out, iron_error *err) {
    out->threads = HISTOGRAM_LANES_THREADS;
    out->turn_bytes = (size_t)HISTOGRAM_LANES_THREADS * loads * QUAD;
    out->local_bytes = table_bytes(c) * HISTOGRAM_LANES;
    out->groups = groups_of(info, out->local_bytes, HISTOGRAM_LANES_GROUPS);
    return check_fit(info, c, out, err);
}

static iron_status plan_lanes(const iron__gpu_info *info, const iron__case *c, plan *out,
                              iron_error *err) {
    return plan_lane_tables(info, c, HISTOGRAM_LANES_ONE_LOADS, out, err);
}

static iron_status plan_packed(const iron__gpu_info *info, const iron__case *c, plan *out,
                               iron_error *err) {
    size_t words = least_of(info->local_bytes_max, HISTOGRAM_LOCAL_MOST) / sizeof(k_u32);
    uint32_t bins = iron__histogram_bins(c);

    IRON_FAIL_IF(words <= HISTOGRAM_PACKED_SPARE, err, IRON_E_UNSUPPORTED,
                 "%s has %" PRIu64
                 " bytes of local memory per group, too little for packed counters",
                 info->name, info->local_bytes_max);
    out->pairs = (uint32_t)least_of((bins + 1) / 2, words - HISTOGRAM_PACKED_SPARE);
    out->kernel = 2 * out->pairs < bins ? "histogram_packed_part" : "histogram_packed";
    out->threads = HISTOGRAM_PACKED_THREADS;
    out->turn_bytes = (size_t)HISTOGRAM_PACKED_THREADS * HISTOGRAM_PACKED_LOADS * QUAD;
    out->local_bytes = (out->pairs + HISTOGRAM_PACKED_SPARE) * sizeof(k_u32);
    out->groups = HISTOGRAM_PACKED_GROUPS;
    return IRON_OK;
}

/* Maximum bytes of the copies of far counters on any device. */
static uint64_t far_bytes(const iron__case *c) {
    uint64_t one = iron__histogram_bins(c) * sizeof(k_u64);
    uint64_t most = one > HISTOGRAM_FAR_BYTES ? one : HISTOGRAM_FAR_BYTES;

    return HISTOGRAM_FAR_COPIES * one < most ? HISTOGRAM_FAR_COPIES * one : most;
}

static iron_status plan_swept(const iron__gpu_info *info, const iron__case *c, plan *out,
                              iron_error *err) {
    size_t quads = least_of(info->local_bytes_max, HISTOGRAM_LOCAL_MOST) / QUAD;
    uint32_t bins = iron__histogram_bins(c);

    IRON_FAIL_IF(quads < 1, err, IRON_E_UNSUPPORTED,
                 "%s has %" PRIu64
                 " bytes of local memory per group, too little for swept counters",
                 info->name, info->local_bytes_max);
    out->pairs = (uint32_t)least_of((bins + 1) / 2, 4 * quads);
    out->kernel = 2 * out->pairs < bins ? "histogram_swept_part" : "histogram_swept";
    out->threads = HISTOGRAM_SWEPT_THREADS;
    out->turn_bytes = (size_t)HISTOGRAM_SWEPT_THREADS * HISTOGRAM_SWEPT_LOADS * QUAD;
    out->local_bytes = (size_t)(out->pairs + 3) / 4 * QUAD;
    out->groups = HISTOGRAM_SWEPT_GROUPS;
    if (2 * out->pairs < bins) {
        out->far = bins - 2 * out->pairs;
        out->copies = (uint32_t)least_of(HISTOGRAM_FAR_BYTES / (out->far * sizeof(k_u64)),
                                         HISTOGRAM_FAR_COPIES);
        out->copies = out->copies > 0 ? out->copies : 1;
    }
    return IRON_OK;
}

/* For devices with small groups. */
static iron_status plan_small(const iron__gpu_info *info, const iron__case *c, plan *out,
                              iron_error *err) {
    if (table_bytes(c) > info->local_bytes_max) {
        out->kernel = "histogram_global";
        return plan_global(info, c, out, err);
    }
    out->kernel = "histogram_table_small";
    out->threads = HISTOGRAM_SMALL_THREADS;
    out->turn_bytes = (size_t)HISTOGRAM_SMALL_THREADS * HISTOGRAM_SMALL_LOADS * QUAD;
    out->local_bytes = table_bytes(c);
    out->groups =
        (uint32_t)least_of(info->local_bytes_max / out->local_bytes, HISTOGRAM_SMALL_GROUPS);
    return IRON_OK;
}

static iron_status plan_champion(const iron__gpu_info *info, const iron__case *c, plan *out,
                                 iron_error *err) {
    size_t room = least_of(info->local_bytes_max, HISTOGRAM_LOCAL_MOST);

    if (info->group_threads_max < HISTOGRAM_TABLE_THREADS)
        return plan_small(info, c, out, err);
    if (iron__histogram_bins(c) <= HISTOGRAM_LANES_BINS &&
        table_bytes(c) * HISTOGRAM_LANES <= room) {
        out->kernel = "histogram_lanes";
        return plan_lane_tables(info, c, HISTOGRAM_LANES_LOADS, out, err);
    }
    if (table_bytes(c) <= room && is_for_two(room, table_bytes(c))) {
        out->kernel = "histogram_table";
        return plan_table(info, c, (size_t)HISTOGRAM_TABLE_THREADS * HISTOGRAM_TABLE_LOADS * QUAD,
                          out, err);
    }
    if (packed_bytes(c) <= room)
        return plan_packed(info, c, out, err);
    return plan_swept(info, c, out, err);
}

_Static_assert(sizeof(histogram_span) == 24, "kernels see the same layout");

/* Maximum of elements per group: counters in local memory have 32 bits. */
#define GROUP_MAX (UINT64_C(1) << 31)

IRON_GPU_EMBEDDED(histogram)

static const iron__gpu_image image = IRON_GPU_IMAGE(histogram);

/* A launcher's own. */
typedef struct style {
    const char *kernel; /* NULL: the plan chooses */
    planner make_plan;
} style;

/* params[] of a work; the last holds pairs and copies. */
enum { PARAM_THREADS, PARAM_GROUPS, PARAM_LOCAL_BYTES, PARAM_SPAN };

static uint32_t group_count(const iron__gpu_work *work, const plan *p) {
    uint64_t bytes = work->c.rows * iron__element_bytes(work->c.element);
    uint32_t groups = iron__kit_groups(work, iron__kit_pieces(bytes, p->turn_bytes), p->groups);
    uint64_t least = iron__kit_pieces(work->c.rows, GROUP_MAX);

    return groups < least ? (uint32_t)least : groups;
}

static iron_status set_up(iron__gpu_work *work, iron_error *err) {
    const iron__gpu_info *info = &work->device->info;
    const style *s = work->spec->own;
    plan p = {.kernel = s->kernel};
    char name[64];

    IRON_TRY(s->make_plan(info, &work->c, &p, err));
    IRON_TRY(iron__needs_threads(work->device, p.threads, err));
    work->params[PARAM_THREADS] = p.threads;
    work->params[PARAM_GROUPS] = group_count(work, &p);
    work->params[PARAM_LOCAL_BYTES] = p.local_bytes;
    if (p.far && p.copies > work->params[PARAM_GROUPS])
        p.copies = (uint32_t)work->params[PARAM_GROUPS];
    work->params[PARAM_SPAN] = (uint64_t)p.pairs << 32 | p.copies;
    snprintf(name, sizeof name, "%s_%s", p.kernel, iron__element_name(work->c.element));
    IRON_TRY(iron__gpu_kernel_find(work->device, work->program, name, &work->kernels[0], err));
    if (p.far)
        IRON_TRY(iron__gpu_kernel_find(work->device, work->program, "histogram_far",
                                       &work->kernels[1], err));
    return IRON_OK;
}

static uint64_t far_buffer_bytes(const iron__case *c, size_t index) {
    return index == 0 ? far_bytes(c) : 0;
}

static uint32_t far_values(const histogram_span *span) { return span->bins - 2 * span->pairs; }

static iron_status clear_far(iron__gpu_work *work, const histogram_span *span,
                             iron__gpu_queue *queue, iron_error *err) {
    size_t bytes = (size_t)far_values(span) * span->copies * sizeof(k_u64);

    return iron__gpu_clear(queue, work->buffers[0], 0, bytes, err);
}

static iron_status add_far(iron__gpu_work *work, const iron__gpu_data *data,
                           const histogram_span *span, iron__gpu_queue *queue, iron_error *err) {
    uint64_t groups = iron__kit_pieces(far_values(span), HISTOGRAM_SMALL_THREADS);

    return IRON_KIT_LAUNCH(queue, err, work->kernels[1], groups, HISTOGRAM_SMALL_THREADS,
                           IRON_GPU_BUFFER(work->buffers[0]), IRON_GPU_BUFFER(data->output),
                           IRON_GPU_VALUE(*span));
}

static iron_status run(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err) {
    const bool has_far = work->kernels[1] != NULL;
    histogram_span span = {.count = work->c.rows,
                           .bins = iron__histogram_bins(&work->c),
                           .copies = (uint32_t)work->params[PARAM_SPAN],
                           .pairs = (uint32_t)(work->params[PARAM_SPAN] >> 32)};
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(span), IRON_GPU_BUFFER(work->buffers[0])};
    const iron__gpu_launch launch = {.kernel = work->kernels[0],
                                     .groups = {(uint32_t)work->params[PARAM_GROUPS]},
                                     .threads = {(uint32_t)work->params[PARAM_THREADS]},
                                     .args = args,
                                     .arg_count = has_far ? 4 : 3,
                                     .local_bytes = (size_t)work->params[PARAM_LOCAL_BYTES]};

    IRON_TRY(iron__gpu_clear(queue, data->output, 0, span.bins * sizeof(k_u64), err));
    if (has_far)
        IRON_TRY(clear_far(work, &span, queue, err));
    IRON_TRY(iron__gpu_run(queue, &launch, err));
    return has_far ? add_far(work, data, &span, queue, err) : IRON_OK;
}

/* Approximate additions per second of a large card, to tell milliseconds from seconds: to one
 * counter, or the few that sorted data use at a time; to uniform data's counters, times the square
 * root of their number; to zipf's, times the logarithm of their number. */
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

#define PLAN(its_kernel, planner, ...)                                                             \
    .gpu = IRON_KIT(.set_up = set_up, .run = run, .own = &(const style){(its_kernel), (planner)},  \
                    __VA_ARGS__)
#define ON_GPU(kernel, planner) IRON_ON_GPU, PLAN(kernel, planner, .scratch = 0)
/* A plan that may have far values. */
#define FAR(planner)                                                                               \
    IRON_ON_GPU, PLAN(NULL, planner, .buffer_bytes = far_buffer_bytes, .scratch = IRON_BIT(0))

#define U8  IRON_BIT(IRON_U8)
#define U16 IRON_BIT(IRON_U16)
#define U32 IRON_BIT(IRON_U32)

const iron__contender iron__histogram_gpu_rows[IRON_HISTOGRAM_GPU_ROWS] = {
    {"global-atomic", "every element adds 1 to its count in device memory", NULL,
     ON_GPU("histogram_global", plan_global), .seconds = global_seconds},
    {"shared", "one table per group in local memory, added to the answer at the end",
     "global-atomic", ON_GPU("histogram_shared", plan_plain)},
    {"warp-merged", "the same, and each warp writes back its own range of bins", "shared",
     ON_GPU("histogram_merged", plan_plain)},
    {"shared-replicated", "several tables per group: warps collide less often", "shared",
     ON_GPU("histogram_replicated", plan_copies)},
    {"match-any", "lanes with the same value find each other, and one adds for all", "shared",
     IRON_ON_CUDA, PLAN("histogram_match", plan_plain, .scratch = 0)},
    {"vector-loads", "one table per group, data in 16-byte loads", "shared",
     ON_GPU("histogram_vector", plan_vector)},
    {"lane-private", "32 tables per group, one per lane and bank: no lane waits for another",
     "vector-loads", ON_GPU("histogram_lane_private", plan_lanes), .elements = U8 | U32},
    {"packed", "two counters per word, checked so that none overflows: twice as many bins fit",
     "vector-loads", ON_GPU(NULL, plan_packed), .elements = U16 | U32},
    {"swept", "two counters per word, added without checks and swept before one can overflow",
     "packed", FAR(plan_swept), .elements = U16 | U32},
    {"champion",
     "tables per lane or per group, packed or swept, whichever fits; several loads in flight",
     "lane-private", FAR(plan_champion)},
};
