/* SPDX-License-Identifier: MIT */
/*
 * fake_cuda.h: how a test tells the pretended driver what to do and looks at what was done. The
 * test opens the same library as the backend, so both see one state; fake_cuda_control is the one
 * name that it looks up, by FAKE_CUDA_CONTROL.
 */
#ifndef TESTS_FAKE_CUDA_H
#define TESTS_FAKE_CUDA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define FAKE_CUDA_CONTROL   "fake_cuda_control"
#define FAKE_CUDA_DEVICES   2
#define FAKE_ARGUMENT_BYTES 160

/* A module's image is text: the card it is for, then a kernel a line with the size of each of its
 * arguments in bytes, 'p' for a pointer. */
#define FAKE_CUDA_IMAGE "sm_90\nnothing\ncount p48\nwide pppppppppppppppp\n"

/* What every module has of constant memory. */
#define FAKE_CONSTANT       "block"
#define FAKE_CONSTANT_BYTES 256

/* The most local memory that a group can have. */
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
    const void *window; /* what is to be kept in the cache */
    size_t window_bytes;
    float window_ratio;
    unsigned char arguments[FAKE_ARGUMENT_BYTES]; /* one after the other, no gaps */
    size_t argument_bytes;
} fake_launch;

typedef struct fake_cuda {
    /* What to pretend. */
    int version, devices;
    int capability; /* 10 * major + minor */
    int has_managed, has_concurrent_managed, maps_host, is_cooperative;
    size_t memory_bytes;                      /* of each device, and of what can be page-locked */
    size_t misalignment;                      /* of the addresses it gives */
    unsigned groups_max;                      /* that run together */
    int registers, spill_bytes, static_bytes; /* of every kernel; static: of local memory */
    int keep_max, window_max;                 /* of the cache, and of what is kept in it */
    size_t grants;                            /* so much of it at most, whatever is asked for */
    size_t texture_max;                       /* elements */

    /* Call number fail_at, counted from 1, fails with this; 0: none does. */
    unsigned fail_at;
    int fail_with;
    bool fails_on;      /* and so do all after it */
    const char *failed; /* the first that did */

    /* What was seen. */
    atomic_uint calls; /* but for those that put errors into words */
    int live[FAKE_KINDS];
    int orphans;         /* objects that died with their context: somebody forgot them */
    int pushed;          /* contexts on the stack */
    unsigned on_default; /* work that went into the default stream */
    unsigned launches, prefetches, synchronizations, replays;
    fake_launch last;
    size_t set_aside[FAKE_CUDA_DEVICES]; /* of the cache, now */
    unsigned let_go;                     /* how often all that was kept in it */
    size_t texture_bytes;                /* of the last one */
} fake_cuda;

/* The state, as it is at first; live objects stay. */
fake_cuda *fake_cuda_control(bool resets);

#endif
