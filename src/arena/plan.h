/* SPDX-License-Identifier: MIT */
/*
 * plan.h: who races over what, where: cases (op, size, element type, parameters), devices, and
 * rows, each a contender or a peer with a memory strategy on a device. Nothing is measured yet.
 *
 * Devices: the CPU, and of each GPU backend the first GPU or the one asked for. An OpenCL device
 * that is no GPU takes part only when a glob names opencl: nobody means it by "everything". Rows of
 * a backend that is not there are left out with a remark, or, when a glob names the backend, kept
 * and skipped with the reason.
 */
#ifndef IRON_ARENA_PLAN_H
#define IRON_ARENA_PLAN_H

#include "arena/params.h"
#include "arena/peers.h"
#include "ops/op.h"

#include <iron/iron_arena.h>

#define IRON_PLAN_DEVICES 3u /* the CPU and a device a backend */

typedef struct iron__plan_device {
    char backend[12];     /* "cpu", "cuda", "opencl" */
    uint32_t on;          /* IRON_ON_... */
    size_t gpu_backend;   /* for iron__gpu_...; the CPU: not used */
    uint32_t index;       /* of the device */
    iron__gpu_info info;  /* the CPU: name and caches only */
    uint64_t cache_bytes; /* of the last level; 0 unknown */
    bool is_cpu, is_there;
    bool is_named; /* a glob asks for the backend by its name */
    char reason[240];
} iron__plan_device;

typedef struct iron__plan_case {
    iron__case c;
    char size[40], size_name[40];
    iron__params params;
    iron__params_line axes; /* the params that are axes, in words */
    uint32_t scopes;        /* bits of iron__scope that are timed */
} iron__plan_case;

typedef struct iron__plan_row {
    size_t case_index, device_index;
    iron__contender contender; /* of a peer: name, idea and passes alone */
    const iron_peer *peer;     /* NULL: one of ours */
    char name[80];             /* "atax.cuda.single-pass" */
    iron__gpu_strategy memory; /* IRON_GPU_STRATEGIES on the CPU */
    char reason[240];          /* why it is skipped; "" */
} iron__plan_row;

/* The ops there are, by number; NULL past the last. */
typedef const iron__op *(*iron__op_lister)(size_t index);

typedef struct iron__plan {
    iron__op_lister op_at;
    iron__peers *peers;
    iron__plan_device devices[IRON_PLAN_DEVICES];
    size_t device_count;
    uint64_t host_bytes; /* of the host's memory; 0 unknown */
    iron__plan_case *cases;
    size_t case_count, case_room;
    iron__plan_row *rows; /* by case, then device, then as listed */
    size_t row_count, row_room;
    char (*remarks)[320];
    size_t remark_count;
} iron__plan;

/* Over the ops of op_at: iron__op_at, unless somebody brings ops of their own. */
iron_status iron__plan_make(iron__plan *plan, const iron_arena_options *options,
                            iron__op_lister op_at, iron_error *err);
void iron__plan_deinit(iron__plan *plan); /* takes a struct of zeros, too */

/* "host" for the CPU's rows. */
const char *iron__plan_memory_name(const iron__plan_row *row);

#endif
