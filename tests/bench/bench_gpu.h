/* SPDX-License-Identifier: MIT */
/* bench_gpu.h: what the files of bench-gpu share: a row, the device, and timing. */
#ifndef IRON_BENCH_GPU_H
#define IRON_BENCH_GPU_H

#include "gpu/gpu.h"
#include "ops/tokens/tokens_gpu.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define BENCH_ROWS    48u
#define BENCH_SAMPLES 32u
#define BENCH_NODES   4096u
#define BENCH_VOCAB   50257u
#define BENCH_CHUNK   ((uint64_t)1 << 24) /* tokens */

typedef struct bench_row {
    const char *group;
    char name[48];
    double bytes; /* useful bytes of a sample */
    double ms[BENCH_SAMPLES];
    uint32_t samples;
    bool is_right;
} bench_row;

typedef struct bench {
    const char *backend;
    size_t index;
    size_t bytes; /* resident */
    uint64_t count;
    iron__gpu_device *device;
    iron__gpu_program *program;
    iron__gpu_queue *queue;
    iron__gpu_event *from, *to;
    iron__gpu_buffer *tokens;
    iron_lattice *lattice;
    uint32_t *chunk; /* the resident tokens are copies of it */
    bench_row rows[BENCH_ROWS];
    size_t row_count;
    bench_row *ceiling;
} bench;

/* The GPU's part of an engine. */
typedef struct bench_engine {
    iron__tokens_gpu *tokens;
    iron__nodes nodes;
    uint64_t batch;
    bool by_batch;
} bench_engine;

typedef void (*bench_work)(bench *b, void *context);

void bench_die(const char *what, const iron_error *err) __attribute__((noreturn));
void bench_check(iron_status status, const char *what, const iron_error *err);
bench_row *bench_add(bench *b, const char *group, const char *name, double bytes);
void bench_sample(bench_row *r, double ms);
double bench_median(const bench_row *r);
double bench_rate(const bench_row *r);
void bench_time(bench *b, bench_row *r, bench_work work, void *context);

bench_engine bench_engine_make(bench *b, const char *mode, uint64_t batch, bool by_batch);
void bench_engine_reset(bench *b, bench_engine *e);
void bench_engine_free(bench_engine *e);
uint64_t bench_reference(const bench *b, uint64_t count, uint64_t batch, bool by_batch);
void bench_verify(bench *b, bench_row *r, bench_engine *e, uint64_t count, uint64_t expected);

/* The groups. */
void bench_resident(bench *b);
void bench_batch(bench *b);
void bench_replay(bench *b);
void bench_calls(bench *b);
void bench_feed(bench *b);

#endif
