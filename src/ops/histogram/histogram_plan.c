/* SPDX-License-Identifier: MIT */
/*
 * histogram_plan.c: plans of histogram's rows on GPUs; see histogram_plan.h. What they are made of
 * is in kernel_params.h.
 *
 * The champion takes what fits, best first:
 *
 *   few bins                     a table a lane, two groups a unit
 *   two tables of words fit      one table a group, two groups a unit
 *   two counters a word fit      packed: looked at when they are added to
 *   they do not                  swept: those of the lowest values, and copies of the others in
 *                                device memory
 *   no groups of 1024 threads    one table, small groups
 *   ... and no room for a table  no table at all
 *
 * A table of words that leaves room for one group alone is not among them: counters of half the
 * width hold the same bins, and races show them to be faster there.
 */
#include "ops/histogram/histogram_plan.h"

#include "core/fail.h"
#include "ops/histogram/histogram.h"
#include "ops/histogram/kernel_params.h"

#include <inttypes.h>

#define QUAD 16u

/* Two groups of this size fit a unit, even where a driver gives a group less than a unit has. */
#define SMALL_TABLE ((size_t)49152)
#define GROUP_OWN   ((size_t)1024)

static size_t table_bytes(const iron__case *c) {
    return (size_t)iron__histogram_bins(c) * sizeof(k_u32);
}

/* Where every bin has a counter. */
static size_t packed_bytes(const iron__case *c) {
    return ((size_t)(iron__histogram_bins(c) + 1) / 2 + HISTOGRAM_PACKED_SPARE) * sizeof(k_u32);
}

static size_t least_of(uint64_t a, uint64_t b) { return (size_t)(a < b ? a : b); }

/* Do two groups with that much local memory fit a unit? It has what a group may take and
 * GROUP_OWN, and keeps GROUP_OWN of it for each. */
static bool is_for_two(uint64_t unit_bytes, size_t local_bytes) {
    return local_bytes <= SMALL_TABLE || 2 * local_bytes + GROUP_OWN <= unit_bytes;
}

static uint32_t groups_of(const iron__gpu_info *info, size_t local_bytes, uint32_t most) {
    return is_for_two(info->local_bytes_max, local_bytes) ? most : 1;
}

/* The last step of every plan with a table. */
static iron_status fit(const iron__gpu_info *info, const iron__case *c,
                       const iron__histogram_plan *plan, iron_error *err) {
    IRON_FAIL_IF(plan->local_bytes > info->local_bytes_max, err, IRON_E_UNSUPPORTED,
                 "%" PRIu32 " bins take %zu bytes of local memory a group; %s has %" PRIu64,
                 iron__histogram_bins(c), plan->local_bytes, info->name, info->local_bytes_max);
    return IRON_OK;
}

iron_status iron__histogram_plan_global(const iron__gpu_info *info, const iron__case *c,
                                        iron__histogram_plan *out, iron_error *err) {
    (void)info;
    (void)err;
    out->threads = HISTOGRAM_SMALL_THREADS;
    out->groups = HISTOGRAM_SMALL_GROUPS;
    out->turn_bytes = HISTOGRAM_SMALL_THREADS * iron__element_bytes(c->element);
    return IRON_OK;
}

static iron_status plan_table(const iron__gpu_info *info, const iron__case *c, size_t turn_bytes,
                              iron__histogram_plan *out, iron_error *err) {
    out->threads = HISTOGRAM_TABLE_THREADS;
    out->turn_bytes = turn_bytes;
    out->local_bytes = table_bytes(c);
    out->groups = groups_of(info, out->local_bytes, HISTOGRAM_TABLE_GROUPS);
    return fit(info, c, out, err);
}

iron_status iron__histogram_plan_plain(const iron__gpu_info *info, const iron__case *c,
                                       iron__histogram_plan *out, iron_error *err) {
    return plan_table(info, c, HISTOGRAM_TABLE_THREADS * iron__element_bytes(c->element), out, err);
}

iron_status iron__histogram_plan_vector(const iron__gpu_info *info, const iron__case *c,
                                        iron__histogram_plan *out, iron_error *err) {
    return plan_table(info, c, (size_t)HISTOGRAM_TABLE_THREADS * HISTOGRAM_VECTOR_LOADS * QUAD, out,
                      err);
}

/* As many copies as there is room for; one would be the row that this one is compared with. */
iron_status iron__histogram_plan_copies(const iron__gpu_info *info, const iron__case *c,
                                        iron__histogram_plan *out, iron_error *err) {
    uint64_t room = info->local_bytes_max / table_bytes(c);

    IRON_TRY(iron__histogram_plan_plain(info, c, out, err));
    IRON_FAIL_IF(room < 2, err, IRON_E_UNSUPPORTED,
                 "two tables of %" PRIu32 " bins take %zu bytes of local memory; %s has %" PRIu64,
                 iron__histogram_bins(c), 2 * table_bytes(c), info->name, info->local_bytes_max);
    out->copies = (uint32_t)least_of(room, HISTOGRAM_COPIES);
    out->local_bytes *= out->copies;
    out->groups = groups_of(info, out->local_bytes, HISTOGRAM_TABLE_GROUPS);
    return IRON_OK;
}

static iron_status plan_lanes(const iron__gpu_info *info, const iron__case *c, uint32_t loads,
                              iron__histogram_plan *out, iron_error *err) {
    out->threads = HISTOGRAM_LANES_THREADS;
    out->turn_bytes = (size_t)HISTOGRAM_LANES_THREADS * loads * QUAD;
    out->local_bytes = table_bytes(c) * HISTOGRAM_LANES;
    out->groups = groups_of(info, out->local_bytes, HISTOGRAM_LANES_GROUPS);
    return fit(info, c, out, err);
}

iron_status iron__histogram_plan_lanes(const iron__gpu_info *info, const iron__case *c,
                                       iron__histogram_plan *out, iron_error *err) {
    return plan_lanes(info, c, HISTOGRAM_LANES_ONE_LOADS, out, err);
}

iron_status iron__histogram_plan_packed(const iron__gpu_info *info, const iron__case *c,
                                        iron__histogram_plan *out, iron_error *err) {
    size_t words = least_of(info->local_bytes_max, HISTOGRAM_LOCAL_MOST) / sizeof(k_u32);
    uint32_t bins = iron__histogram_bins(c);

    IRON_FAIL_IF(words <= HISTOGRAM_PACKED_SPARE, err, IRON_E_UNSUPPORTED,
                 "%s has %" PRIu64 " bytes of local memory a group, which is too little for packed "
                 "counters",
                 info->name, info->local_bytes_max);
    out->pairs = (uint32_t)least_of((bins + 1) / 2, words - HISTOGRAM_PACKED_SPARE);
    out->kernel = 2 * out->pairs < bins ? "histogram_packed_part" : "histogram_packed";
    out->threads = HISTOGRAM_PACKED_THREADS;
    out->turn_bytes = (size_t)HISTOGRAM_PACKED_THREADS * HISTOGRAM_PACKED_LOADS * QUAD;
    out->local_bytes = (out->pairs + HISTOGRAM_PACKED_SPARE) * sizeof(k_u32);
    out->groups = HISTOGRAM_PACKED_GROUPS;
    return IRON_OK;
}

uint64_t iron__histogram_far_bytes(const iron__case *c) {
    uint64_t one = iron__histogram_bins(c) * sizeof(k_u64);
    uint64_t most = one > HISTOGRAM_FAR_BYTES ? one : HISTOGRAM_FAR_BYTES;

    return HISTOGRAM_FAR_COPIES * one < most ? HISTOGRAM_FAR_COPIES * one : most;
}

iron_status iron__histogram_plan_swept(const iron__gpu_info *info, const iron__case *c,
                                       iron__histogram_plan *out, iron_error *err) {
    size_t quads = least_of(info->local_bytes_max, HISTOGRAM_LOCAL_MOST) / QUAD;
    uint32_t bins = iron__histogram_bins(c);

    IRON_FAIL_IF(quads < 1, err, IRON_E_UNSUPPORTED,
                 "%s has %" PRIu64 " bytes of local memory a group, which is too little for swept "
                 "counters",
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

/* Where groups are small. */
static iron_status plan_small(const iron__gpu_info *info, const iron__case *c,
                              iron__histogram_plan *out, iron_error *err) {
    if (table_bytes(c) > info->local_bytes_max) {
        out->kernel = "histogram_global";
        return iron__histogram_plan_global(info, c, out, err);
    }
    out->kernel = "histogram_table_small";
    out->threads = HISTOGRAM_SMALL_THREADS;
    out->turn_bytes = (size_t)HISTOGRAM_SMALL_THREADS * HISTOGRAM_SMALL_LOADS * QUAD;
    out->local_bytes = table_bytes(c);
    out->groups =
        (uint32_t)least_of(info->local_bytes_max / out->local_bytes, HISTOGRAM_SMALL_GROUPS);
    return IRON_OK;
}

iron_status iron__histogram_plan_champion(const iron__gpu_info *info, const iron__case *c,
                                          iron__histogram_plan *out, iron_error *err) {
    size_t room = least_of(info->local_bytes_max, HISTOGRAM_LOCAL_MOST);

    if (info->group_threads_max < HISTOGRAM_TABLE_THREADS)
        return plan_small(info, c, out, err);
    if (iron__histogram_bins(c) <= HISTOGRAM_LANES_BINS &&
        table_bytes(c) * HISTOGRAM_LANES <= room) {
        out->kernel = "histogram_lanes";
        return plan_lanes(info, c, HISTOGRAM_LANES_LOADS, out, err);
    }
    if (table_bytes(c) <= room && is_for_two(room, table_bytes(c))) {
        out->kernel = "histogram_table";
        return plan_table(info, c, (size_t)HISTOGRAM_TABLE_THREADS * HISTOGRAM_TABLE_LOADS * QUAD,
                          out, err);
    }
    if (packed_bytes(c) <= room)
        return iron__histogram_plan_packed(info, c, out, err);
    return iron__histogram_plan_swept(info, c, out, err);
}
