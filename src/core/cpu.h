/* SPDX-License-Identifier: MIT */
/*
 * cpu.h: what this processor supports, its caches and its clock. Features are detected at run time,
 * both from the processor and from whether the operating system saves the registers; one binary
 * holds the code for all of them.
 */
#ifndef IRON_CORE_CPU_H
#define IRON_CORE_CPU_H

#include <iron/iron.h>

#include <stdbool.h>

typedef enum iron__cpu_feature {
    IRON_CPU_NEON = 1 << 0,
    IRON_CPU_AVX2 = 1 << 1,
    IRON_CPU_AVX512 = 1 << 2, /* F, BW, DQ and VL together */
    IRON_CPU_FMA = 1 << 3,    /* fused multiply-add of AVX vectors */
} iron__cpu_feature;

/* Loops over long arrays prefetch the line this far ahead into the second-level cache: the
 * hardware's own prefetchers leave bandwidth unused (figures in ops/tokens/tokens_neon.c and
 * tokens_avx512.c). Prefetching beyond the end of an array is harmless. */
#define IRON_PREFETCH_BYTES 32768

static inline void iron__prefetch(const void *at) {
    __builtin_prefetch((const char *)at + IRON_PREFETCH_BYTES, 0, 2);
}

/* The features of this machine, a mask of iron__cpu_feature. */
uint32_t iron__cpu_features(void);

static inline bool iron__cpu_has(uint32_t features) {
    return (features & ~iron__cpu_features()) == 0;
}

/* Number of CPUs that this process may run on, at least 1. */
uint32_t iron__cpu_threads(void);

/* The processor's name as reported by the operating system. */
void iron__cpu_name(char *name, size_t size);

/* Total bytes of all third-level caches; 32 MiB if the operating system reports none. */
uint64_t iron__cpu_last_cache_bytes(void);

/* The root folder for the clock and throttle counters; tests pass another one. */
#define IRON_CPU_CLOCK_ROOT "/sys/devices/system/cpu"

typedef struct iron__cpu_clock {
    uint32_t
        mhz; /* the fastest current clock of all CPUs; 0: unknown, as in most virtual machines */
    /* Sum of the thermal throttling counters of all CPUs. Only a difference of two sums is
     * meaningful. Only x86 has these counters; 0: unknown. */
    uint64_t throttle_count;
} iron__cpu_clock;

iron__cpu_clock iron__cpu_clock_read(const char *root);

#endif
