/* SPDX-License-Identifier: MIT */
/*
 * selftest_gpu.h: one device under test, shared by the files that test it.
 *
 * The device is held open during all of its checks, so that what it costs to wake it up is paid
 * once. A driver's error ends the device's test: it is told as one failed check, and whatever was
 * left is not run.
 */
#ifndef IRON_ENGINE_SELFTEST_GPU_H
#define IRON_ENGINE_SELFTEST_GPU_H

#include "engine/selftest.h"
#include "ops/tokens/tokens_gpu.h"

typedef struct iron__selftest_device {
    iron__selftest *test;
    size_t backend, index;
    iron__gpu_device *device;
    bool is_lost;
} iron__selftest_device;

/* "<what>, tokens.opencl.champion, device 0". */
typedef struct iron__selftest_name {
    char text[240];
} iron__selftest_name;

iron__selftest_name iron__selftest_name_of(const iron__selftest_device *d,
                                           const iron__tokens_gpu_row *row, const char *what);

/* May a mode take so many tokens on so many nodes on this device? */
bool iron__selftest_affords(const iron__selftest_device *d, const iron__tokens_gpu_row *row,
                            uint64_t nodes, uint64_t tokens);

/* Tells a check that was run: "" or a difference, or what kept it from its answer. */
void iron__selftest_tell_gpu(iron__selftest_device *d, const char *what, iron_status status,
                             const char *difference, const iron_error *error);

/* A stream, how it is fed, and under which configuration: backend, mode, device and memory of
 * `config` are filled in by whoever runs it. */
typedef struct iron__selftest_stream {
    iron_config config;
    iron_dtype dtype;
    const void *tokens;
    size_t count;
    size_t first;     /* tokens of the first feed; the second takes the others */
    bool is_from_own; /* the second feed is from the engine's own, page-locked memory */
} iron__selftest_stream;

/* The stream through the reference on the CPU, to its end. The engine is returned owned. */
iron_status iron__selftest_reference(const iron__selftest_stream *s, iron_engine **out,
                                     iron_error *err);

/* One check: the stream on the device, compared with the reference's engine in all that can be
 * seen. */
void iron__selftest_compare(iron__selftest_device *d, const iron__tokens_gpu_row *row,
                            const char *memory, const char *what, const iron__selftest_stream *s,
                            iron_engine *want);

/* Shapes against the CPU: lengths, batches, nodes, vocabularies, widths, lattices. */
void iron__selftest_gpu_shapes(iron__selftest_device *d);

/* Tokens that lie on the device: any alignment, many batches waiting, potentials near 2^24. */
void iron__selftest_gpu_resident(iron__selftest_device *d);

/* Tokens that a caller brings, by iron_feed_device. */
void iron__selftest_gpu_callers(iron__selftest_device *d);

/* Digests of tokens that a caller brings, by iron_digest_update_device. */
void iron__selftest_gpu_digests(iron__selftest_device *d);

/* Engines as a store keeps them: heard, made anew, forked. */
void iron__selftest_gpu_kept(iron__selftest_device *d);

/* Every contender of every op, over shapes. */
void iron__selftest_gpu_ops(iron__selftest_device *d);

/* More than 2^31 tokens on the device. */
void iron__selftest_gpu_large(iron__selftest_device *d);

#endif
