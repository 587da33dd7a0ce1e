/* SPDX-License-Identifier: MIT */
/*
 * ceilings.h: the ceilings with the passes behind them, for those who report them; and one pass of
 * reading, for those who want the ceiling in the same breath as what they measure against it.
 */
#ifndef IRON_ARENA_CEILINGS_H
#define IRON_ARENA_CEILINGS_H

#include "core/team.h"

#include <iron/iron_arena.h>

/* What a ceiling's figure is the median of: the passes of the best way found. */
typedef struct iron__ceiling_passes {
    const char *name;  /* "read", "write", "copy", "to_device_pinned" ... */
    const char *shape; /* which way it was: "8 x 256 threads a unit, strided"; "" if there is one */
    double bytes;      /* that a pass moves: copies count both ways */
    const double *ms;  /* in the order of time */
    size_t count;
} iron__ceiling_passes;

typedef struct iron__ceiling_listener {
    void (*told)(void *context, const iron__ceiling_passes *passes); /* NULL: nobody listens */
    void *context;
} iron__ceiling_listener;

/* As iron_measure_ceilings, but with all threads alone where somebody listens: one thread takes as
 * long as all of the rest. And as iron_measure_device. */
iron_status iron__measure_cpu(const iron_measure_options *options, iron__ceiling_listener listener,
                              iron_ceilings *out, iron_error *err);
iron_status iron__measure_device(size_t backend, uint32_t device,
                                 const iron_measure_options *options,
                                 iron__ceiling_listener listener, iron_device_ceilings *out,
                                 iron_error *err);

/* Reads all of `bytes`, a multiple of 1 MiB, aligned to 16, once, on the team's threads; returns
 * the XOR of its 64-bit words. */
uint64_t iron__read_pass(iron__team *team, const void *data, size_t bytes);
/* Writes all of it: whoever was in the caches is not any more. */
void iron__write_pass(iron__team *team, void *data, size_t bytes);

#endif
