/* SPDX-License-Identifier: MIT */
/*
 * fake_cuda.h: how a test controls the fake driver and inspects what was called. The test opens the
 * same library as the backend, so both see the same state. The test looks up one symbol,
 * fake_cuda_control (FAKE_CUDA_CONTROL).
 */
#ifndef TESTS_FAKE_CUDA_H
#define TESTS_FAKE_CUDA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define FAKE_CUDA_CONTROL   "fake_cuda_control"
#define FAKE_CUDA_DEVICES   2
#define FAKE_ARGUMENT_BYTES 160

/* A module image is text: the architecture, then one line per kernel with the size in bytes of each
 * argument, 'p' for a pointer. */
#define FAKE_CUDA_IMAGE "sm_90\nnothing\ncount p48\nwide pppppppppppppppp\n"

/* The constant memory of every module. */
#define FAKE_CONSTANT       "block"
#define FAKE_CONSTANT_BYTES 256

/* Maximum local memory of a group. */
#define FAKE_LOCAL_BYTES 232448

typedef enum fake_kind {
    FAKE_CONTEXT,
    FAKE_MEMORY,
    FAKE_MODULE,
    FAKE_STREAM,
    FAKE_EVENT,
    FAKE_GRAPH,
    FAKE_EXEC,
    FAKE_TEXTURE,
    FAKE_KINDS
} fake_kind;

typedef struct fake_launch {
    const char *kernel;
    unsigned grid[3], block[3];
    bool is_cooperative, may_overlap, is_extended;
    unsigned local_bytes;
    const void *window; /* start of the persisting accesses */
    size_t window_bytes;
    float window_ratio;
    unsigned char arguments[FAKE_ARGUMENT_BYTES]; /* concatenated */
    size_t argument_bytes;
} fake_launch;

typedef struct fake_cuda {
    /* Properties of driver and cards. */
    int version, devices;
    int capability; /* 10 * major + minor */
    int has_managed, has_concurrent_managed, maps_host, is_cooperative;
    size_t memory_bytes;                      /* of each device, and of page-locked memory */
    size_t misalignment;                      /* of returned addresses */
    unsigned groups_max;                      /* resident at the same time */
    int registers, spill_bytes, static_bytes; /* of every kernel; static: local memory */
    int persisting_max, window_max;           /* of the cache, and of an access window */
    size_t grant_max;                         /* granted of a cache reservation at most */
    size_t texture_max;                       /* elements */

    /* Call number fail_at, counted from 1, returns fail_with; 0: none. */
    unsigned fail_at;
    int fail_with;
    bool keeps_failing; /* all later calls fail too */
    const char *failed; /* the first call that failed */

    /* What happened. */
    atomic_uint calls; /* except those that translate errors */
    int live[FAKE_KINDS];
    int orphans;         /* objects destroyed with their context, that is, leaked */
    int contexts_pushed; /* depth of the context stack */
    unsigned default_stream_commands;
    unsigned launches, prefetches, synchronizations, replays;
    fake_launch last;
    size_t reserved[FAKE_CUDA_DEVICES]; /* bytes of cache reserved now */
    unsigned cache_resets;
    size_t texture_bytes; /* of the last texture */
} fake_cuda;

/* Returns the state; resets it first if asked to. Live objects stay. */
fake_cuda *fake_cuda_control(bool resets);

#endif
