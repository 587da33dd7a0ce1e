/* SPDX-License-Identifier: MIT */
/*
 * iron_arena.h: measuring this machine and testing the library on it.
 *
 * Unlike iron.h this header makes no promise of a stable ABI: it grows with the arena.
 */
#ifndef IRON_IRON_ARENA_H
#define IRON_IRON_ARENA_H

#include <iron/iron.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes a second, in GB (10^9), with one thread and with all. Copy counts bytes read + written. */
typedef struct iron_ceiling {
    double one_thread_gb_s;
    double all_threads_gb_s;
} iron_ceiling;

typedef struct iron_ceilings {
    uint32_t threads;
    uint32_t passes;       /* timed passes behind each median */
    uint64_t buffer_bytes; /* working set of read and write; copy uses two halves */
    iron_ceiling read, write, copy;
} iron_ceilings;

typedef struct iron_measure_options {
    uint32_t threads;      /* 0: all; the CPU's ceilings only */
    uint64_t buffer_bytes; /* 0: at least 4 x the last-level cache, at most a quarter of memory */
    iron_progress progress;
    void *context;
} iron_measure_options;

/* The memory's ceilings on the CPU, medians of several passes. */
IRON_API iron_status iron_measure_ceilings(const iron_measure_options *options, iron_ceilings *out,
                                           iron_error *err);

/* A device's own memory, and the ways to it from the host's. */
typedef struct iron_device_ceilings {
    uint32_t passes;       /* timed passes behind each median */
    uint64_t buffer_bytes; /* working set of read and write; copy uses two halves */
    double read_gb_s, write_gb_s, copy_gb_s;
    double to_device_pageable_gb_s, to_device_pinned_gb_s, from_device_pinned_gb_s;
    double zero_copy_gb_s; /* kernels reading the host's memory; 0: the device cannot */
    char read_shape[40];   /* whose rate it is: "4 x 512 threads a unit, contiguous" */
} iron_device_ceilings;

/* The memory's ceilings on a device of "cuda" or "opencl": medians, each the best of several ways
 * to do it. Takes seconds. IRON_E_MISMATCH when the device reads what was not written. */
IRON_API iron_status iron_measure_device(const char *backend, uint32_t device,
                                         const iron_measure_options *options,
                                         iron_device_ceilings *out, iron_error *err);

/* The folder in which built kernels and calibrations are kept, whether it is there yet or not.
 * IRON_E_UNSUPPORTED where the environment names none. */
IRON_API iron_status iron_cache_folder(char *path, size_t size, iron_error *err);

/* Measures every mode on a GPU over batch sizes and numbers of nodes, and keeps the result in the
 * user's cache folder, where mode `auto` finds it. Takes seconds. */
IRON_API iron_status iron_calibrate(const char *backend, uint32_t device, iron_progress progress,
                                    void *context, iron_error *err);

typedef enum iron_verdict {
    IRON_VERDICT_PASSED = 0,
    IRON_VERDICT_FAILED = 1,
    IRON_VERDICT_SKIPPED = 2
} iron_verdict;

/* One check of a selftest: what was tested, and "" if it passed, else how the result differs, what
 * a driver said, or why the check was skipped. */
typedef void (*iron_selftest_line)(void *context, iron_verdict verdict, const char *what,
                                   const char *text);

typedef struct iron_selftest_options {
    int is_quick;            /* the same with smaller sizes */
    const char *only;        /* NULL, or: only checks whose names contain this */
    iron_selftest_line line; /* NULL: nobody wants to know */
    void *context;
} iron_selftest_options;

typedef struct iron_selftest_result {
    uint64_t passed, failed, skipped;
} iron_selftest_result;

/* Golden vectors and every variant on this machine against the reference: on the CPU, and on every
 * device of every GPU backend in every mode and memory strategy. IRON_E_MISMATCH when something
 * differs. */
IRON_API iron_status iron_selftest(const iron_selftest_options *options,
                                   iron_selftest_result *result, iron_error *err);

#ifdef __cplusplus
}
#endif

#endif
