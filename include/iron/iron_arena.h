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
    uint32_t threads;      /* 0: all */
    uint64_t buffer_bytes; /* 0: at least 4 x the last-level cache, at most a quarter of memory */
    iron_progress progress;
    void *context;
} iron_measure_options;

/* The memory's ceilings on the CPU, medians of several passes. */
IRON_API iron_status iron_measure_ceilings(const iron_measure_options *options, iron_ceilings *out,
                                           iron_error *err);

/* One line of a selftest: what was tested, and "" or how it differs. */
typedef void (*iron_selftest_line)(void *context, const char *what, const char *difference);

typedef struct iron_selftest_result {
    uint64_t passed, failed;
} iron_selftest_result;

/* Golden vectors and every variant on this machine against the reference. IRON_E_MISMATCH when
 * something differs. */
IRON_API iron_status iron_selftest(int quick, iron_selftest_line line, void *context,
                                   iron_selftest_result *result, iron_error *err);

#ifdef __cplusplus
}
#endif

#endif
