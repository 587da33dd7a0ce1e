/* SPDX-License-Identifier: MIT */
/*
 * arena_internal.h: how the arena's files work together.
 *
 *   arena.c       opens an arena: loads the peers (plug-ins), and plans which contenders race
 *                 over which cases on which devices
 *   run.c         runs the planned race: ceilings, then contenders case by case, device by device;
 *                 then turns the samples (stats.c) into a report
 *   energy.c      the energy that a row takes
 *   device_*.c    what the CPU or a GPU does for that: measures its ceilings, sets contenders up
 *   ceilings_cpu.c  the ceilings of the host's memory: the best of many ways, which it searches
 *   outside*.c    the same for contenders from the user's files, in a process of their own
 *   report.c      prints the report, and what there is to say about the ops
 *   compare.c     compares the report with an earlier one
 */
#ifndef IRON_ARENA_ARENA_INTERNAL_H
#define IRON_ARENA_ARENA_INTERNAL_H

#include "core/json.h"
#include "core/memory.h"
#include "ops/op.h"

#include <iron/iron_arena.h>
#include <iron/iron_peer.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The race: contenders are verified, timed in interleaved rounds, and verified again (run.c). It
 * knows nothing about ops, devices or memory. A contender is something that can be timed in some
 * scopes and whose answer can be checked. */
#define IRON_SAMPLES_MAX 1000u

/* With five samples even the least and the greatest enclose the median too rarely (94 %). */
#define IRON_SAMPLES_FOR_INTERVAL 6u

/* Summary of many timings of the same thing.
 *
 * The interval of the median comes from the order of the samples alone (the binomial distribution),
 * so it holds for any distribution: `coverage` is the probability that such an interval encloses
 * the median, at least 0.95. Noise is the standard deviation in percent of the mean: one outlier
 * among three samples shows. */
typedef struct iron__statistics {
    size_t count;
    double median, mean, min, max, p95;
    double noise_percent;       /* fewer than two samples: unknown, and 0 */
    double low, high, coverage; /* fewer than six samples: there is no interval, and all are 0 */
} iron__statistics;

/* Summarizes count samples (at most IRON_SAMPLES_MAX) without changing them; all zero if there are
 * none. */
iron__statistics iron__statistics_of(const double *samples, size_t count);

/* Is the interval within `fraction` of the median on both sides? Never with fewer than six
 * samples. */
static inline bool iron__statistics_is_within(const iron__statistics *s, double fraction) {
    double room = fraction * s->median;

    return s->count >= IRON_SAMPLES_FOR_INTERVAL && s->high - s->median <= room &&
           s->median - s->low <= room;
}

typedef enum iron__scope {
    IRON_SCOPE_PREPARE,    /* once: allocation, pinning, a transposed copy */
    IRON_SCOPE_KERNEL,     /* the computation, data in place */
    IRON_SCOPE_TRANSFER,   /* inputs to the device and the answer back, no computation */
    IRON_SCOPE_END_TO_END, /* from inputs in the host's memory to the answer there */
    IRON_SCOPES
} iron__scope;

const char *iron__scope_name(iron__scope scope);

typedef struct iron__race_contender iron__race_contender;

typedef struct iron__race_contender_ops {
    /* Runs `passes` passes of the scope in a row; *ms is the mean time of one. Cold: empties the
     * caches first, and passes is 1. */
    iron_status (*time)(iron__race_contender *c, iron__scope scope, bool is_cold, uint32_t passes,
                        double *ms, iron_error *err);
    /* Poisons the output (all bytes 0xFF: NaN), runs one pass of the scope, kernel or end_to_end,
     * and copies the answer to `output`, which is poisoned too. */
    iron_status (*answer)(iron__race_contender *c, iron__scope scope, void *output,
                          iron_error *err);
    void (*close)(iron__race_contender *c);
} iron__race_contender_ops;

typedef enum iron__row_status {
    IRON_ROW_OK,
    IRON_ROW_WRONG,
    IRON_ROW_SKIPPED,
    IRON_ROW_FAILED,
    IRON_ROW_IMPLAUSIBLE, /* faster than memory or cache can be */
    IRON_ROW_STATUSES
} iron__row_status;

const char *iron__row_status_name(iron__row_status status);

/* A contender set up on a device, ready to be timed. Implementations begin with this struct. */
struct iron__race_contender {
    const iron__race_contender_ops *ops;
    uint32_t scopes;     /* 1 << IRON_SCOPE_...: those it can be timed in besides prepare */
    uint32_t passes_max; /* of a sample; 0: the usual */
    bool has_cold;       /* cold samples of the kernel scope make sense */
    double prepare_ms;   /* what setting it up took; 0: nothing to prepare */
    /* What becomes of the row after an error, if not what the error's status says: set with it. */
    iron__row_status fault;
};

typedef enum iron__stop {
    IRON_STOP_NONE,      /* never sampled */
    IRON_STOP_PRECISION, /* the interval is narrow enough */
    IRON_STOP_TIME,      /* the time is spent */
    IRON_STOP_RUNS       /* the requested number of runs */
} iron__stop;

typedef struct iron__samples {
    double *ms; /* owned */
    size_t room;
    uint32_t count;
    uint32_t dropped; /* taken while the machine was throttled */
    uint32_t passes;  /* in a row behind each */
    iron__stop stop;
} iron__samples;

static inline void iron__samples_deinit(iron__samples *samples) {
    free(samples->ms);
    *samples = (iron__samples){0};
}

/* Energy (energy.c). What a row took, and what its device's clocks were meanwhile. */
typedef struct iron__energy {
    const char *source; /* "nvml" or "rapl"; NULL: it is not known */
    double joules_per_gb, watts;
    iron__gpu_clocks clocks; /* of a GPU: the lowest core clock, the highest temperature */
} iron__energy;

typedef struct iron__energy_reading {
    double joules, ms; /* since any time */
    iron__gpu_clocks clocks;
} iron__energy_reading;

#define IRON_RAPL_DOMAINS 32u

typedef struct iron__rapl_domain {
    char path[200];
    uint64_t last, range; /* of the counter, microjoules */
} iron__rapl_domain;

/* A counter of energy: of a GPU, or of the processors. */
typedef struct iron__energy_meter iron__energy_meter;
struct iron__energy_meter {
    const char *source; /* NULL: no readable counter */
    bool (*read)(iron__energy_meter *meter, iron__energy_reading *now);
    double update_ms; /* a reading is so old at most */
    iron__gpu_device *gpu;
    iron__rapl_domain domains[IRON_RAPL_DOMAINS];
    size_t domain_count;
    double joules;
};

/* gpu NULL: the processors. The variable IRON_POWERCAP names another folder than Linux's. */
iron__energy_meter iron__energy_meter_open(iron__gpu_device *gpu);

/* Runs the contender's kernel scope until its energy is known, at most for limit_ms; a pass takes
 * about pass_ms and is about so many useful bytes. An error is the contender's. */
iron_status iron__energy_measure(iron__energy_meter *meter, iron__race_contender *contender,
                                 double pass_ms, double bytes, double limit_ms, iron__energy *out,
                                 iron_error *err);

/* Checks an answer; `text` says where it differs first. */
typedef bool (*iron__answer_check)(const void *context, const void *output, char *text,
                                   size_t size);

/* One row of the race. The caller fills the first part; the race fills the rest. */
typedef struct iron__race_row {
    iron__race_contender *contender; /* the caller's; NULL: does not race, see status and reason */
    size_t output_bytes;
    iron__answer_check check; /* NULL: there is no answer to check */
    const void *check_context;
    double useful_bytes; /* 0: its energy is not measured */

    iron__row_status status;
    char reason[240];
    bool is_verified; /* before and after, in all scopes */
    double answer_ms; /* what its first answers took by the host's clock, all scopes together */
    double kernel_ms; /* what a pass of the kernel took before the first sample */
    iron__samples warm[IRON_SCOPES];
    iron__samples cold; /* of the kernel scope */
    iron__energy energy;
} iron__race_row;

/* Frees the row's samples, not its contender. */
static inline void iron__race_row_deinit(iron__race_row *row) {
    for (int scope = 0; scope < IRON_SCOPES; scope++)
        iron__samples_deinit(&row->warm[scope]);
    iron__samples_deinit(&row->cold);
}

/* The user's tokens. */
typedef struct iron__own_data {
    iron__op_data data; /* data.tokens: NULL without --data */
    uint32_t *tokens;   /* owned; iron__allocate_large, of so many bytes */
    size_t bytes;
    uint32_t vocab; /* of every case */
    char file[256]; /* as the user named it */
    uint64_t total; /* tokens of the file; data.count of them are used */
} iron__own_data;

/* The report: the results of a race, for everything that prints or compares them. run.c computes
 * every figure once; report.c only formats. */

/* The parameters of a case besides op, size and element type: its value on each axis of the op,
 * then other facts that the op states, such as its number of bins. */
#define IRON_PARAMS_MAX 8u

typedef struct iron__param {
    char name[24];
    char word[32]; /* "": it is a number */
    double number;
    bool is_axis; /* else a fact about the case */
} iron__param;

typedef struct iron__params {
    iron__param list[IRON_PARAMS_MAX]; /* axes first, in the op's order */
    size_t count;
} iron__params;

/* Same names with the same values, in any order? */
bool iron__params_are_same(const iron__params *a, const iron__params *b);

/* Is it a whole number that a double represents exactly (at most 2^53)? */
static inline bool iron__number_is_whole(double number) {
    const double limit = 9007199254740992.0; /* 2^53 */

    return number >= -limit && number <= limit && (double)(int64_t)number == number;
}

/* A value as it is read and written: "zipf", "0.25", "4294967296". */
typedef struct iron__param_value {
    char text[40];
} iron__param_value;
iron__param_value iron__param_text(const iron__param *param);

/* Nine significant digits; whole numbers without exponent. */
static inline iron__param_value iron__param_number(double number) {
    iron__param_value v;

    /* + 0.0 turns -0 into 0 */
    snprintf(v.text, sizeof v.text, iron__number_is_whole(number) ? "%.0f" : "%.9g", number + 0.0);
    return v;
}

/* "data zipf, density 0.5": the axes, or the other facts; "" if there are none. */
typedef struct iron__params_line {
    char text[IRON_PARAMS_MAX * 68];
} iron__params_line;
iron__params_line iron__params_text(const iron__params *params, bool is_axis);

/* The kernels that a row launched on its device, with the resources they use. */
typedef struct iron__kernels {
    iron__gpu_launch_log answer;  /* launched while it computed its first answer */
    iron__gpu_launch_log prepare; /* launched while it was set up: they may be larger */
} iron__kernels;

/* One scope of a row, or a ceiling. Times in ms. */
typedef struct iron__report_scope {
    bool is_measured;
    iron__statistics warm, cold; /* cold.count is 0 where there are no cold samples */
    double gb_s;                 /* useful bytes divided by the median */
    double cold_gb_s;            /* 0: no cold samples */
    double percent_of_ceiling;   /* 0: no ceiling was measured */
    double speedup;              /* over the baseline's same scope; 0: unknown */
    const iron__samples *samples, *cold_samples; /* borrowed; cold: NULL if there are none */
} iron__report_scope;

typedef struct iron__report_row {
    char op[24], contender[48], backend[12], device[96], size[40], dtype[8];
    char memory[16];              /* the strategy; "host" on the CPU */
    char size_name[40];           /* "talk:STANDARD"; "" */
    uint32_t vocab;               /* 0 where an op has none */
    uint32_t nodes;               /* likewise */
    uint32_t streams;             /* memory `streams`: number of queues; else 0 */
    uint32_t threads;             /* CPU: number of threads; else 0 */
    iron__params params;          /* of the case */
    const iron__kernels *kernels; /* borrowed; NULL: no launch was seen */
    const char *idea;             /* borrowed from the contender or peer */
    bool is_peer, is_outside, is_cache_resident, is_verified;
    bool is_above_ceiling; /* even after a new search: the ceiling was not found */
    uint64_t useful_bytes;
    double operations, passes; /* for the roofline: arithmetic, and reads of the big input */
    iron__row_status status;
    char reason[240];
    char baseline[48]; /* "naive": the contender that speedups refer to; "" if there is none */
    double speedup;    /* kernel scope; 0: unknown */
    uint32_t rank;     /* among the ok rows of its group, by the kernel's median; 0: not ranked */
    iron__report_scope scopes[IRON_SCOPES];
    iron__energy energy;
} iron__report_row;

#define IRON_SHAPE_ROOM 112u

/* One measured limit of one device: "read", "write", "copy", "triad", "to_device_pageable",
 * "to_device_pinned", "from_device_pinned", "zero_copy". `shape` names the best way found. */
typedef struct iron__report_ceiling {
    char backend[12], device[96], name[24], shape[IRON_SHAPE_ROOM];
    uint64_t bytes;             /* moved by a pass: copy counts both ways */
    iron__report_scope figures; /* of the best measurement */
    uint32_t measurements;      /* before, during and after the race */
    double low_gb_s;            /* of the worst: the ceiling is a band */
    double peak_gb_s;           /* of the datasheet; 0: unknown */
} iron__report_ceiling;

typedef struct iron__report_device {
    char backend[12], name[96], driver[96];
    uint32_t index, units;
    uint64_t memory_bytes, cache_bytes;
    bool is_available;
    char reason[240]; /* why it does not race; "" */
    /* Clocks seen during the race, MHz; 0: unknown. */
    uint32_t clock_min, clock_max, memory_clock;
    uint32_t celsius;  /* the highest; 0: unknown */
    char throttle[96]; /* reasons seen, "" for none */
} iron__report_device;

typedef struct iron__report_host {
    char name[64], cpu[96], features[48], kernel[96], compiler[96], flags[96], commit[48], date[32];
    uint32_t threads;
    uint64_t memory_bytes, cache_bytes;
} iron__report_host;

#define IRON_REPORT_OPS  64u
#define IRON_REMARK_ROOM 320u

typedef struct iron__report {
    iron__report_host host;
    char version[24]; /* iron's */
    iron__report_device *devices;
    size_t device_count;
    iron__report_ceiling *ceilings;
    size_t ceiling_count;
    /* In groups of one op, size, dtype and params: ranked rows first, then the others. */
    iron__report_row *rows;
    size_t row_count;
    const iron__op *ops[IRON_REPORT_OPS]; /* those that raced */
    size_t op_count;
    const iron__own_data *own; /* borrowed from the plan */
    /* That the whole took; of it, measuring the ceilings; and answers and samples, which are what
     * the time asked for is for. The rest made data and set contenders up. */
    double seconds, ceiling_seconds, race_seconds;
    const char (*remarks)[IRON_REMARK_ROOM]; /* borrowed: the plan's */
    size_t remark_count;
    char *comparison;  /* with an earlier race (compare.c), for the page; owned; or NULL */
    char command[512]; /* how to run it again */
} iron__report;

/* Same op, size, type and parameters: these rows race each other. */
static inline bool iron__rows_are_grouped(const iron__report_row *a, const iron__report_row *b) {
    return strcmp(a->op, b->op) == 0 && strcmp(a->size, b->size) == 0 &&
           strcmp(a->dtype, b->dtype) == 0 && a->vocab == b->vocab &&
           iron__params_are_same(&a->params, &b->params);
}

/* The row after the last of the group that begins at `first`. */
static inline size_t iron__report_group_end(const iron__report *report, size_t first) {
    size_t k = first + 1;

    while (k < report->row_count && iron__rows_are_grouped(&report->rows[first], &report->rows[k]))
        k++;
    return k;
}

/* The scope, or NULL where it does not apply or the row's figures do not count. */
static inline const iron__report_scope *iron__row_scope(const iron__report_row *row,
                                                        iron__scope scope) {
    return row->status == IRON_ROW_OK && row->scopes[scope].is_measured ? &row->scopes[scope]
                                                                        : NULL;
}

/* Peers: rows from plug-ins (iron/iron_peer.h).
 *
 * A plug-in that keeps to the contract stays loaded as long as the process, also after the list was
 * closed: the libraries behind it leave threads and exit handlers that must not lose their code. */
typedef struct iron__peer_library {
    char *path;                 /* of the plug-in, or of a folder that cannot be read; "": of all */
    const iron_peer_list *list; /* NULL: it cannot be used, for this reason */
    char reason[240];
} iron__peer_library;

typedef struct iron__peers {
    iron__peer_library *libraries; /* folder by folder, by name in each */
    size_t count;
} iron__peers;

/* A number that a contender from outside is compiled with. */
#define IRON_OUTSIDE_DEFINES 16u
#define IRON_OUTSIDE_NAME    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

typedef struct iron__define {
    char name[32], value[64];
} iron__define;

typedef struct iron__defines {
    iron__define list[IRON_OUTSIDE_DEFINES];
    size_t count;
} iron__defines;

/* A contender in a file of the user's (outside.c), once for each combination of its --define. */
typedef struct iron__outside {
    char *path, *text; /* owned; text is the file, zero-terminated */
    size_t bytes;      /* of the file */
    char name[48];     /* "mine", or "mine.BLOCK=2" */
    const iron__op *op;
    uint32_t on; /* IRON_ON_... */
    bool is_library;
    bool is_op;         /* it is compiled as the op that the file brings, for the CPU */
    bool has_contender; /* a file that brings an op may have none */
    iron__defines defines;
    /* What the last case needed: the compiled file in memory (-1: none), and with what. */
    int module;
    uint64_t module_bytes;
    bool is_compiled; /* it is no text */
    char *key;
} iron__outside;

/* Reads a file; *o is to be closed also after a failure. IRON_E_ARG. */
iron_status iron__outside_read(const char *path, iron__outside *o, iron_error *err);
void iron__outside_deinit(iron__outside *o);
/* Finds its op, which may be one of those that the files bring. IRON_E_ARG. */
iron_status iron__outside_resolve(iron__outside *o, const iron__op *const *own, size_t count,
                                  iron_error *err);
/* The op that the file brings, to be freed with iron__outside_op_free; NULL: it brings none. The
 * command runs the op's processes and must outlive it. IRON_E_ARG. */
iron_status iron__outside_op_create(const char *path, const char *command, iron__op **out,
                                    iron_error *err);
void iron__outside_op_free(iron__op *op);

/* The plan: cases (op, size, element type, parameters), devices, and rows, each a contender or a
 * peer with a memory strategy on a device. Making one measures nothing.
 *
 * Devices: the CPU, and of each GPU backend the first GPU or the requested one. An OpenCL device
 * that is not a GPU takes part only when a glob names opencl: it is not meant by "everything". Rows
 * of an absent backend are left out with a remark, or, when a glob names the backend, kept and
 * skipped with the reason. */
#define IRON_PLAN_BACKEND 16u                           /* devices of a backend at most */
#define IRON_PLAN_DEVICES (1u + 2u * IRON_PLAN_BACKEND) /* with the CPU */

typedef struct iron__race_plan_device {
    char backend[12];     /* "cpu", "cuda", "opencl" */
    uint32_t on;          /* IRON_ON_... */
    size_t gpu_backend;   /* for iron__gpu_...; not used for the CPU */
    uint32_t index;       /* of the device */
    iron__gpu_info info;  /* the CPU: name and caches only */
    uint64_t cache_bytes; /* of the last level; 0 unknown */
    bool is_cpu, is_available;
    bool is_named; /* a glob names the backend */
    char reason[240];
} iron__race_plan_device;

typedef struct iron__race_plan_case {
    iron__case c;
    char size[40], size_name[40];
    iron__params params;
    iron__params_line axes; /* the params that are axes, as text */
    uint32_t scopes;        /* bits of iron__scope that are timed */
} iron__race_plan_case;

typedef struct iron__race_plan_row {
    size_t case_index, device_index;
    iron__contender contender; /* of a peer: name, idea, passes and elements only */
    const iron_peer *peer;     /* NULL: one of our contenders */
    iron__outside *outside;    /* likewise; shared by the rows of a file */
    char name[96];             /* "atax.cuda.single-pass" */
    iron__gpu_strategy memory; /* IRON_GPU_STRATEGIES on the CPU */
    char reason[240];          /* why it is skipped; "" */
} iron__race_plan_row;

/* The ops there are, by number; NULL past the last. */
typedef const iron__op *(*iron__op_lister)(size_t index);

typedef struct iron__race_plan {
    iron__op_lister op_at;
    iron__own_data own;
    iron__peers peers;
    iron__outside *outside; /* room for all, so that rows can point to them */
    size_t outside_count;
    iron__op **own_ops; /* that files of the user's bring */
    size_t own_op_count;
    iron__race_plan_device devices[IRON_PLAN_DEVICES];
    size_t device_count;
    uint64_t host_bytes; /* of the host's memory; 0 unknown */
    iron__race_plan_case *cases;
    size_t case_count, case_room;
    iron__race_plan_row *rows; /* by case, then device, then as listed */
    size_t row_count, row_room;
    char (*remarks)[IRON_REMARK_ROOM]; /* "passed over: atax: ...", "unavailable: cuda: ..." */
    size_t remark_count;
} iron__race_plan;

/* "host" for the CPU's rows. */
static inline const char *iron__race_plan_memory(const iron__race_plan_row *row) {
    return row->memory == IRON_GPU_STRATEGIES ? "host" : iron__gpu_strategy_name(row->memory);
}

/* "4000x4000", or "67108864" for a one-dimensional op. */
static inline void iron__size_text(const iron__op *op, uint64_t rows, uint64_t cols, char *text,
                                   size_t size) {
    if (op->is_line)
        snprintf(text, size, "%" PRIu64, rows);
    else
        snprintf(text, size, "%" PRIu64 "x%" PRIu64, rows, cols);
}

/* The values that an axis accepts: "uniform, zipf or sorted", "numbers from 0 to 1". */
void iron__axis_accepts(const iron__axis *axis, char *text, size_t size);

/* Ceilings: the samples behind a figure, of the best way found. */
typedef struct iron__ceiling_samples {
    const char *name;  /* "read", "write", "copy", "to_device_pinned" ... */
    const char *shape; /* the best way: "8 x 256 threads a unit, strided"; "" if there is one way */
    double bytes;      /* moved by a pass: copies count both ways */
    const double *ms;  /* one per pass, in time order */
    size_t count;
} iron__ceiling_samples;

/* Called for each ceiling when it is measured. */
typedef struct iron__ceiling_sink {
    void (*add)(void *context, const iron__ceiling_samples *samples); /* may be NULL */
    void *context;
} iron__ceiling_sink;

/* The ceilings of the host's memory (ceilings_cpu.c). */
typedef enum iron__cpu_pass {
    IRON_CPU_READ,
    IRON_CPU_WRITE,
    IRON_CPU_COPY,
    IRON_CPU_TRIAD, /* two arrays are read, one is written */
    IRON_CPU_PASSES
} iron__cpu_pass;

/* "read" ...; IRON_CPU_PASSES: there is no such ceiling. */
iron__cpu_pass iron__cpu_pass_find(const char *name);

typedef struct iron__cpu_ceilings iron__cpu_ceilings;

/* The working set that was asked for: by an option, else by the variable IRON_CEILING_MIB; 0: by
 * neither. */
uint64_t iron__ceiling_bytes(uint64_t asked);

/* 0 threads: all; 0 bytes: the usual working set. */
iron_status iron__cpu_ceilings_create(uint32_t threads, uint64_t bytes, iron__cpu_ceilings **out,
                                      iron_error *err);
void iron__cpu_ceilings_destroy(iron__cpu_ceilings *c);
/* Makes the working set, and searches the best ways unless they are known, or anyway. */
iron_status iron__cpu_ceilings_prepare(iron__cpu_ceilings *c, bool is_new_search, iron_error *err);
/* Frees the working set until it is prepared again. */
void iron__cpu_ceilings_release(iron__cpu_ceilings *c);
/* Prepares, and measures all. */
iron_status iron__cpu_ceilings_measure(iron__cpu_ceilings *c, bool is_new_search,
                                       iron__ceiling_sink sink, iron_error *err);
/* One pass in the best way, once prepared; its time, and all of *what but the samples. */
double iron__cpu_ceilings_pass(iron__cpu_ceilings *c, iron__cpu_pass pass,
                               iron__ceiling_samples *what);

/* A device during a race, and what the CPU or a GPU does for it. Problems follow each other on a
 * device. Setting a contender up is what the scope `prepare` measures. */
typedef struct iron__race_device iron__race_device;

typedef struct iron__race_device_ops {
    /* Measures the ceilings for the sink; anew also which ways are the best, where that is kept. */
    iron_status (*measure)(iron__race_device *device, const iron__race_plan_device *planned,
                           const iron_measure_options *options, bool is_new_search,
                           iron__ceiling_sink sink, iron_error *err);
    /* NULL, or: one ceiling as a contender that takes turns with the others, in the way that was
     * found the best. Fills in *what except the samples. Between begin and end. */
    iron_status (*ceiling_open)(iron__race_device *device, const char *name,
                                iron__ceiling_samples *what, iron__race_contender **out,
                                iron_error *err);
    /* The plan and the pool outlive the device. */
    iron_status (*open)(const iron__race_plan *plan, size_t index, uint32_t streams,
                        iron__thread_pool *pool, iron__race_device **out, iron_error *err);
    void (*close)(iron__race_device *device);
    /* Contenders of the problem are opened and closed between begin and end. end is called also
     * after begin failed. */
    iron_status (*begin)(iron__race_device *device, const iron__op_problem *problem,
                         iron_error *err);
    void (*end)(iron__race_device *device);
    /* The row is borrowed for the contender's life; its ops->close frees it. The kernels that it
     * launches while it is set up and computes its first answer are noted in *kernels, which must
     * outlive it. */
    iron_status (*contender_open)(iron__race_device *device, const iron__race_plan_row *row,
                                  iron__kernels *kernels, iron__race_contender **out,
                                  iron_error *err);
} iron__race_device_ops;

extern const iron__race_device_ops iron__race_cpu, iron__race_gpu;

/* GB/s that so many threads can at most read of data of this size, wherever it fits: the best of
 * short reads by one thread, which load does not slow down, times the threads. 0: no memory. */
double iron__cpu_read_gb_s(uint64_t bytes, uint32_t threads);

/* Implementations begin with this struct. */
struct iron__race_device {
    const iron__race_device_ops *ops;
    iron__gpu_device *gpu; /* whose clocks are read; NULL on the CPU, and while it is not open */
};

/* Host memory used by the inputs and so many outputs. */
static inline uint64_t iron__problem_bytes(const iron__op_problem *problem, uint64_t outputs) {
    uint64_t bytes = outputs * problem->output_bytes;

    for (size_t k = 0; k < problem->input_count; k++)
        bytes += problem->inputs[k].bytes;
    return bytes;
}

/* The case's value on each axis of its op, then the other facts that the op states. */
iron__params iron__params_of(const iron__case *c);

/* A case as a peer sees it, with pointers to the host's memory. */
iron_peer_case iron__peer_case(const iron__op_problem *problem, void *output, uint32_t threads);

/* The arena. */
#define IRON_CEILINGS_MAX    ((size_t)7 * IRON_PLAN_DEVICES) /* seven per device at most */
#define IRON_SECONDS_DEFAULT 60.0
#define IRON_STREAMS_DEFAULT 4u

struct iron_arena {
    iron_arena_options options; /* pointers other than progress and context are for opening only */
    iron__race_plan plan;
    iron__race_row *race_rows;      /* one per row of the plan */
    iron__kernels *kernels;         /* likewise: what each launched; empty on the CPU */
    iron__samples *ceiling_samples; /* one per ceiling of the report */
    iron__report report;
    uint64_t ceiling_bytes;    /* working set of the ceilings; 0: the usual. Tests set it */
    bool has_begun, has_raced; /* the race was started; it ran to its end */
};

#endif
