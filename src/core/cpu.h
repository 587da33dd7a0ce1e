/* SPDX-License-Identifier: MIT */
/*
 * cpu.h: what this processor can do and what it looks like. Features are detected at run time, from
 * the processor and from the operating system's word that it saves the registers; one binary holds
 * the code for all of them.
 */
#ifndef IRON_CORE_CPU_H
#define IRON_CORE_CPU_H

#include <iron/iron.h>

typedef enum iron__cpu_feature {
    IRON_CPU_NEON = 1 << 0,
    IRON_CPU_AVX2 = 1 << 1,
    IRON_CPU_AVX512 = 1 << 2, /* F, BW, DQ and VL together */
    IRON_CPU_FMA = 1 << 3,    /* fused multiply-add of AVX's vectors */
} iron__cpu_feature;

/* The features of this machine. */
uint32_t iron__cpu_features(void);

/* CPUs that this process may run on, at least 1. */
uint32_t iron__cpu_threads(void);

/* The processor's name, as the operating system tells it. */
void iron__cpu_name(char *name, size_t size);

/* Bytes of all third-level caches; 32 MiB where the operating system tells of none. */
uint64_t iron__cpu_last_cache_bytes(void);

#endif
