/* SPDX-License-Identifier: MIT */
/*
 * cpu_features.c: feature detection for each architecture that has vector code of its own. The
 * compiler's builtins read CPUID and, for AVX, XGETBV: the processor's and the system's word.
 */
#include "core/cpu.h"

#if defined(__AVX__)
#error "build the dispatcher for the baseline processor: vector files get their flags one by one"
#endif

#if defined(__aarch64__)

/* Advanced SIMD is part of the baseline of 64-bit Arm. */
uint32_t iron__cpu_features(void) { return IRON_CPU_NEON; }

#elif defined(__x86_64__)

uint32_t iron__cpu_features(void) {
    uint32_t features = 0;

    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        features |= IRON_CPU_AVX2;
    if (__builtin_cpu_supports("fma"))
        features |= IRON_CPU_FMA;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        features |= IRON_CPU_AVX512;
    return features;
}

#else

uint32_t iron__cpu_features(void) { return 0; }

#endif
