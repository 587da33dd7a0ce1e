/* SPDX-License-Identifier: MIT */
/*
 * histogram_gpu.c: the GPU rows of histogram. Each row is one kernel that adds to an answer of
 * zeros; they differ in how it is launched, which a plan decides from the device and the case
 * (constants are in kernel_params.h). mixed has a second kernel, which adds the groups' tables.
 *
 * The champion's plan takes the first that fits:
 *
 *   few bins                     one table per lane, two groups per unit
 *   two tables of words fit      one table per group, two groups per unit
 *   one does, or u16             packed: two counters per word, one group per unit
 *   more bins                    mixed: counters of 16 and 8 bits, one group per unit
 *   no groups of 1024 threads    one table, small groups
 *   ... or no space for it       no table
 *
 * A table of words that leaves space for only one group per unit is not on the list: counters of
 * half the width hold the same bins, and races show them to be faster there.
 *
 * The file holds, in order: plans, launches, rows.
 */
#include "core/fail.h"
#include "core/memory.h"
#include "core/number.h"
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
    uint32_t loads;     /* of 16 bytes that a thread has in flight; 0: element by element */
    size_t local_bytes;
    uint32_t copies, wide, narrow, held; /* see histogram_span; held: 0 if not mixed */
} plan;

/* Fills *out for a device and a case. out->kernel and out->loads are the row's; if the kernel is
 * NULL, the plan chooses both. IRON_E_UNSUPPORTED with the reason if the device cannot run the
 * row. */
typedef iron_status (*planner)(const iron__gpu_info *info, const iron__case *c, plan *out,
                               iron_error *err);

#define QUAD 16u /* bytes of a vector load */

/* Two groups of this size fit a unit, even if a driver limits a group to less than a unit has. */
#define SMALL_TABLE ((size_t)49152)
#define GROUP_OWN   ((size_t)1024)

static size_t table_bytes(const iron__case *c) {
    return (size_t)iron__histogram_bins(c) * sizeof(k_u32);
}

/* Do two groups with that much local memory fit a unit? A unit has GROUP_OWN more than a group may
 * use, and reserves GROUP_OWN for each group. */
static bool is_for_two(uint64_t unit_bytes, size_t local_bytes) {
    return local_bytes <= SMALL_TABLE || 2 * local_bytes + GROUP_OWN <= unit_bytes;
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
    (void)c;
    (void)err;
    out->threads = HISTOGRAM_SMALL_THREADS;
    out->groups = HISTOGRAM_SMALL_GROUPS;
    return IRON_OK;
}

/* So many tables of words per group. */
static iron_status plan_tables(const iron__gpu_info *info, const iron__case *c, plan *out,
                               uint32_t tables, uint32_t most_groups, iron_error *err) {
    out->local_bytes = table_bytes(c) * tables;
    out->groups = is_for_two(info->local_bytes_max, out->local_bytes) ? most_groups : 1;
    return check_fit(info, c, out, err);
}

static iron_status plan_table(const iron__gpu_info *info, const iron__case *c, plan *out,
                              iron_error *err) {
    out->threads = HISTOGRAM_TABLE_THREADS;
    return plan_tables(info, c, out, 1, HISTOGRAM_TABLE_GROUPS, err);
}

/* As many copies as fit; a single one would equal the row that this one is compared with. */
static iron_status plan_copies(const iron__gpu_info *info, const iron__case *c, plan *out,
                               iron_error *err) {
    uint64_t room = info->local_bytes_max / table_bytes(c);

    IRON_TRY(plan_table(info, c, out, err));
    IRON_FAIL_IF(room < 2, err, IRON_E_UNSUPPORTED,
                 "two tables of %" PRIu32 " bins need %zu bytes of local memory; %s has %" PRIu64,
                 iron__histogram_bins(c), 2 * table_bytes(c), info->name, info->local_bytes_max);
    out->copies = (uint32_t)iron__min(room, HISTOGRAM_COPIES);
    return plan_tables(info, c, out, out->copies, HISTOGRAM_TABLE_GROUPS, err);
}

static iron_status plan_lanes(const iron__gpu_info *info, const iron__case *c, plan *out,
                              iron_error *err) {
    out->threads = HISTOGRAM_LANES_THREADS;
    return plan_tables(info, c, out, HISTOGRAM_LANES, HISTOGRAM_LANES_GROUPS, err);
}

static iron_status plan_packed(const iron__gpu_info *info, const iron__case *c, plan *out,
                               iron_error *err) {
    out->wide = (iron__histogram_bins(c) + 1) / 2;
    out->threads = HISTOGRAM_PACKED_THREADS;
    out->loads = HISTOGRAM_PACKED_LOADS;
    out->local_bytes = out->wide * sizeof(k_u32);
    out->groups = HISTOGRAM_PACKED_GROUPS;
    return check_fit(info, c, out, err);
}

static size_t room_in(uint64_t local_bytes) {
    const size_t control = HISTOGRAM_CONTROL * sizeof(k_u32);

    return local_bytes > control ? (local_bytes - control) / QUAD * QUAD : 0;
}

/* Do 4-bit counters give all bins a place in that much local memory? */
static bool is_tiny(uint64_t bins, uint64_t room) {
    return bins + HISTOGRAM_WIDE_LEAST > room_in(HISTOGRAM_LOCAL_LEAN) &&
           bins + HISTOGRAM_TINY_OTHERS + (uint64_t)2 * HISTOGRAM_WIDE_LEAST <= 2 * room;
}

/* The tables of all groups, and the copies of far counters, on any device. */
static uint64_t mixed_bytes(const iron__case *c, size_t buffer) {
    uint64_t bins = iron__histogram_bins(c), far = bins * sizeof(k_u64);

    if (buffer == 0)
        return HISTOGRAM_MIXED_GROUPS *
               iron__min(2 * bins + QUAD, is_tiny(bins, HISTOGRAM_LOCAL_MOST)
                                              ? HISTOGRAM_LOCAL_MOST + bins / 2
                                              : HISTOGRAM_LOCAL_MOST);
    return buffer == 1 ? iron__min(HISTOGRAM_FAR_COPIES * far,
                                   far > HISTOGRAM_FAR_BYTES ? far : HISTOGRAM_FAR_BYTES)
                       : 0;
}

/* histogram_quads() of histogram.k. */
static size_t mixed_quads(uint64_t wide, uint64_t narrow, uint64_t held) {
    return iron__kit_pieces(2 * wide + narrow + held, (size_t)2 * QUAD);
}

/* Bytes of counters: all that fit, or what leaves the unit's cache large enough for the loads in
 * flight if that has space for all bins. */
static size_t mixed_room(const iron__gpu_info *info, uint32_t bins) {
    size_t room = room_in(iron__min(info->local_bytes_max, HISTOGRAM_LOCAL_MOST));
    size_t lean = room_in(HISTOGRAM_LOCAL_LEAN);

    return room > lean && (bins + HISTOGRAM_WIDE_LEAST <= lean || is_tiny(bins, lean)) ? lean
                                                                                       : room;
}

/* As many wide counters as possible with a counter for each bin, or as few as pay. If not all bins
 * fit that way, as few 4-bit counters as needed; if that is too many, some values are far. */
static iron_status plan_mixed(const iron__gpu_info *info, const iron__case *c, plan *out,
                              iron_error *err) {
    uint32_t bins = iron__histogram_bins(c), room = (uint32_t)mixed_room(info, bins);
    uint32_t least = (uint32_t)iron__min(HISTOGRAM_WIDE_LEAST, room / 4), far;

    IRON_FAIL_IF(room < HISTOGRAM_ROOM_LEAST, err, IRON_E_UNSUPPORTED,
                 "%s has %" PRIu64
                 " bytes of local memory per group, too little for mixed counters",
                 info->name, info->local_bytes_max);
    out->held = (uint32_t)iron__min(bins, room - least);
    out->wide = (uint32_t)iron__min(bins + 7, room - out->held) / 8 * 8;
    out->narrow = out->held;
    out->kernel = out->held < bins ? "histogram_mixed_part" : "histogram_mixed";
    if (out->held < bins && c->element == IRON_U32 && is_tiny(bins, room)) {
        out->held = bins;
        out->narrow = (uint32_t)iron__min(2 * (uint64_t)(room - out->wide) - bins,
                                          bins - HISTOGRAM_TINY_LEAST);
        out->narrow = (out->narrow + out->wide) / 16 * 16 - out->wide;
        out->kernel = "histogram_mixed_tiny";
    }
    out->threads = HISTOGRAM_MIXED_THREADS;
    out->loads = HISTOGRAM_MIXED_LOADS;
    out->local_bytes =
        QUAD * mixed_quads(out->wide, out->narrow, out->held) + HISTOGRAM_CONTROL * sizeof(k_u32);
    out->groups = 1;
    far = bins - out->narrow;
    out->copies = far == 0
                      ? 1
                      : (uint32_t)iron__min(mixed_bytes(c, 1) / ((uint64_t)far * sizeof(k_u64)),
                                            HISTOGRAM_FAR_COPIES);
    return IRON_OK;
}

/* For devices with small groups or little local memory. */
static iron_status plan_small(const iron__gpu_info *info, const iron__case *c, plan *out,
                              iron_error *err) {
    if (table_bytes(c) > info->local_bytes_max) {
        out->kernel = "histogram_global";
        return plan_global(info, c, out, err);
    }
    out->kernel = "histogram_table_small";
    out->threads = HISTOGRAM_SMALL_THREADS;
    out->loads = HISTOGRAM_SMALL_LOADS;
    out->local_bytes = table_bytes(c);
    out->groups =
        (uint32_t)iron__min(info->local_bytes_max / out->local_bytes, HISTOGRAM_SMALL_GROUPS);
    return IRON_OK;
}

static iron_status plan_champion(const iron__gpu_info *info, const iron__case *c, plan *out,
                                 iron_error *err) {
    size_t room = iron__min(info->local_bytes_max, HISTOGRAM_LOCAL_MOST);

    if (info->group_threads_max < HISTOGRAM_TABLE_THREADS)
        return plan_small(info, c, out, err);
    if (iron__histogram_bins(c) <= HISTOGRAM_LANES_BINS &&
        table_bytes(c) * HISTOGRAM_LANES <= room) {
        out->kernel = "histogram_lanes";
        out->loads = HISTOGRAM_LANES_LOADS;
        return plan_lanes(info, c, out, err);
    }
    if (table_bytes(c) <= room && is_for_two(room, table_bytes(c))) {
        out->kernel = "histogram_table";
        out->loads = HISTOGRAM_TABLE_LOADS;
        return plan_table(info, c, out, err);
    }
    if ((c->element == IRON_U16 || iron__histogram_bins(c) <= HISTOGRAM_PACKED_BINS) &&
        table_bytes(c) / 2 + sizeof(k_u32) <= room) {
        out->kernel = "histogram_packed";
        return plan_packed(info, c, out, err);
    }
    if (mixed_room(info, iron__histogram_bins(c)) < HISTOGRAM_ROOM_LEAST)
        return plan_small(info, c, out, err);
    return plan_mixed(info, c, out, err);
}

_Static_assert(sizeof(histogram_span) == 32, "kernels see the same layout");

/* Maximum of elements per group: counters in local memory have 32 bits. */
#define GROUP_MAX (UINT64_C(1) << 31)

IRON_KIT_IMAGE(histogram)

/* A launcher's own. */
typedef struct style {
    const char *kernel; /* NULL: the plan chooses */
    planner make_plan;
    uint32_t loads;
} style;

/* The groups of a launch; the plan has those of a unit. */
static uint32_t group_count(const iron__gpu_work *work, const plan *p) {
    size_t element = iron__element_bytes(work->c.element);
    size_t turn_bytes = p->threads * (p->loads ? p->loads * (size_t)QUAD : element);
    uint64_t turns = iron__kit_pieces(work->c.rows * element, turn_bytes);
    uint64_t groups = iron__kit_groups(work, turns, p->groups);

    if (p->held)
        groups = iron__min(groups, HISTOGRAM_MIXED_GROUPS);
    return (uint32_t)iron__max(groups, iron__kit_pieces(work->c.rows, GROUP_MAX));
}

/* The work's own is its plan. */
static iron_status set_up(iron__gpu_work *work, iron_error *err) {
    const style *s = work->spec->own;
    plan *p = work->own; /* of an earlier number of elements */

    if (!p)
        IRON_TRY(IRON_ALLOCATE(&p, iron__allocator_default(), 1, "a plan", err));
    work->own = p;
    *p = (plan){.kernel = s->kernel, .loads = s->loads};
    IRON_TRY(s->make_plan(&work->device->info, &work->c, p, err));
    IRON_TRY(iron__needs_threads(work->device, p->threads, err));
    IRON_TRY(iron__kit_find(work, 0, p->kernel, true, err));
    return p->held ? iron__kit_find(work, 1, "histogram_add_tables", false, err) : IRON_OK;
}

/* The last step of mixed. */
static iron_status add_tables(iron__gpu_work *work, const iron__gpu_data *data,
                              const histogram_span *span, uint32_t groups, iron__gpu_queue *queue,
                              iron_error *err) {
    const size_t each = HISTOGRAM_SMALL_THREADS / HISTOGRAM_TABLE_PARTS; /* quads or tiny words */
    uint64_t quads = iron__kit_pieces((uint64_t)span->wide + span->narrow, QUAD);
    uint64_t tiny = mixed_quads(span->wide, span->narrow, span->held) - quads;
    uint64_t pieces = iron__kit_pieces(quads, each) + iron__kit_pieces(4 * tiny, each) +
                      iron__kit_pieces(span->bins - span->narrow, HISTOGRAM_SMALL_THREADS);

    return IRON_KIT_LAUNCH(queue, err, work->kernels[1], pieces, HISTOGRAM_SMALL_THREADS,
                           IRON_GPU_BUFFER(work->buffers[0]), IRON_GPU_BUFFER(work->buffers[1]),
                           IRON_GPU_BUFFER(data->output), IRON_GPU_VALUE(*span),
                           IRON_GPU_VALUE(groups));
}

static iron_status run(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                       iron_error *err) {
    const plan *p = work->own;
    const bool is_mixed = p->held != 0;
    const uint32_t groups = group_count(work, p);
    histogram_span span = {.count = work->c.rows,
                           .bins = iron__histogram_bins(&work->c),
                           .copies = p->copies,
                           .wide = p->wide,
                           .narrow = p->narrow,
                           .held = p->held};
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(span), IRON_GPU_BUFFER(work->buffers[0]),
                                  IRON_GPU_BUFFER(work->buffers[1])};
    const iron__gpu_launch launch = {.kernel = work->kernels[0],
                                     .groups = {groups},
                                     .threads = {p->threads},
                                     .args = args,
                                     .arg_count = is_mixed ? 5 : 3,
                                     .local_bytes = p->local_bytes};

    IRON_TRY(iron__gpu_clear(queue, data->output, 0, span.bins * sizeof(k_u64), err));
    if (is_mixed && span.narrow < span.bins)
        IRON_TRY(iron__gpu_clear(queue, work->buffers[1], 0,
                                 (size_t)(span.bins - span.narrow) * span.copies * sizeof(k_u64),
                                 err));
    IRON_TRY(iron__gpu_run(queue, &launch, err));
    return is_mixed ? add_tables(work, data, &span, groups, queue, err) : IRON_OK;
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

#define PLAN(its_kernel, planner, its_loads, ...)                                                  \
    .gpu = IRON_KIT(.set_up = set_up, .run = run,                                                  \
                    .own = &(const style){(its_kernel), (planner), (its_loads)}, __VA_ARGS__)
#define ON_GPU(kernel, planner, loads) IRON_ON_GPU, PLAN(kernel, planner, loads, .scratch = 0)
/* A plan that may be mixed. */
#define MIXED(planner)                                                                             \
    IRON_ON_GPU,                                                                                   \
        PLAN(NULL, planner, 0, .buffer_bytes = mixed_bytes, .scratch = IRON_BIT(0) | IRON_BIT(1))

#define U8  IRON_BIT(IRON_U8)
#define U16 IRON_BIT(IRON_U16)
#define U32 IRON_BIT(IRON_U32)

const iron__contender iron__histogram_gpu_rows[IRON_HISTOGRAM_GPU_ROWS] = {
    {"global-atomic", "every element adds 1 to its count in device memory", NULL,
     ON_GPU("histogram_global", plan_global, 0), .seconds = global_seconds},
    {"shared", "one table per group in local memory, added to the answer at the end",
     "global-atomic", ON_GPU("histogram_shared", plan_table, 0)},
    {"warp-merged", "the same, and each warp writes back its own range of bins", "shared",
     ON_GPU("histogram_merged", plan_table, 0)},
    {"shared-replicated", "several tables per group: warps collide less often", "shared",
     ON_GPU("histogram_replicated", plan_copies, 0)},
    {"match-any", "lanes with the same value find each other, and one adds for all", "shared",
     IRON_ON_CUDA, PLAN("histogram_match", plan_table, 0, .scratch = 0)},
    {"vector-loads", "one table per group, data in 16-byte loads", "shared",
     ON_GPU("histogram_vector", plan_table, HISTOGRAM_VECTOR_LOADS)},
    {"lane-private", "32 tables per group, one per lane and bank: no lane waits for another",
     "vector-loads", ON_GPU("histogram_lane_private", plan_lanes, HISTOGRAM_LANES_ONE_LOADS),
     .elements = U8 | U32},
    {"packed", "two counters per word, checked so that none overflows: twice as many bins fit",
     "vector-loads", ON_GPU("histogram_packed", plan_packed, 0), .elements = U16 | U32},
    {"mixed",
     "two, four or eight counters per word, added without checks: their sum betrays an overflow, "
     "and what "
     "overflowed is counted again",
     "packed", MIXED(plan_mixed), .elements = U16 | U32},
    {"champion",
     "tables per lane or per group, packed or mixed, whichever fits; several loads in flight",
     "lane-private", MIXED(plan_champion)},
};
