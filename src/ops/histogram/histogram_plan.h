/* SPDX-License-Identifier: MIT */
/*
 * histogram_plan.h: how a row of histogram is launched on a device: which kernel, how large its
 * groups and its tables are, how many of them a unit gets.
 */
#ifndef IRON_OPS_HISTOGRAM_HISTOGRAM_PLAN_H
#define IRON_OPS_HISTOGRAM_HISTOGRAM_PLAN_H

#include "ops/op.h"

typedef struct iron__histogram_plan {
    const char *kernel; /* without the element type: "histogram_lanes" */
    uint32_t threads;   /* of a group */
    uint32_t groups;    /* a unit */
    size_t turn_bytes;  /* that a group reads at a time */
    size_t local_bytes;
    uint32_t copies, pairs; /* for the kernel: see histogram_span */
    uint32_t far;           /* values whose counters are copies, which a second kernel adds up */
} iron__histogram_plan;

/* Fills *out for a device and a case; out->kernel is the row's own already, or NULL where the plan
 * chooses it. IRON_E_UNSUPPORTED with the reason where it cannot be. */
typedef iron_status (*iron__histogram_planner)(const iron__gpu_info *info, const iron__case *c,
                                               iron__histogram_plan *out, iron_error *err);

iron_status iron__histogram_plan_global(const iron__gpu_info *info, const iron__case *c,
                                        iron__histogram_plan *out, iron_error *err);
iron_status iron__histogram_plan_plain(const iron__gpu_info *info, const iron__case *c,
                                       iron__histogram_plan *out, iron_error *err);
iron_status iron__histogram_plan_copies(const iron__gpu_info *info, const iron__case *c,
                                        iron__histogram_plan *out, iron_error *err);
iron_status iron__histogram_plan_vector(const iron__gpu_info *info, const iron__case *c,
                                        iron__histogram_plan *out, iron_error *err);
iron_status iron__histogram_plan_lanes(const iron__gpu_info *info, const iron__case *c,
                                       iron__histogram_plan *out, iron_error *err);
iron_status iron__histogram_plan_packed(const iron__gpu_info *info, const iron__case *c,
                                        iron__histogram_plan *out, iron_error *err);
iron_status iron__histogram_plan_swept(const iron__gpu_info *info, const iron__case *c,
                                       iron__histogram_plan *out, iron_error *err);
iron_status iron__histogram_plan_champion(const iron__gpu_info *info, const iron__case *c,
                                          iron__histogram_plan *out, iron_error *err);

/* Bytes that the copies of far counters take at most, whatever room a device has. */
uint64_t iron__histogram_far_bytes(const iron__case *c);

#endif
