/* SPDX-License-Identifier: MIT */
/*
 * cpu_clock_linux.h: how fast the processor runs now, and how often it was slowed down by heat, as
 * far as Linux tells. Virtual machines mostly tell nothing.
 */
#ifndef IRON_CORE_CPU_CLOCK_LINUX_H
#define IRON_CORE_CPU_CLOCK_LINUX_H

#include <stdint.h>

/* The folder that both look in; tests name another. */
#define IRON_CPU_CLOCK_ROOT "/sys/devices/system/cpu"

/* The fastest clock of all CPUs at this moment; 0: unknown. */
uint32_t iron__cpu_clock_mhz(const char *root);

/* Sum of all CPUs' counters of thermal throttling: only its growth means something. x86 alone has
 * them; 0: unknown, or none since the system started. */
uint64_t iron__cpu_throttle_count(const char *root);

#endif
