/* SPDX-License-Identifier: MIT */
/*
 * selftest.h: what the parts of the selftest share: counting and telling, and golden cases through
 * an engine anywhere.
 *
 *   selftest.c            golden vectors, on the CPU
 *   selftest_variants.c   the CPU's variants over shapes, without an engine around them
 *   selftest_ops.c        every contender of every op, on the CPU and on GPUs
 *   selftest_gpu.c        every device of every GPU backend; the files beside it are its parts
 */
#ifndef IRON_ENGINE_SELFTEST_H
#define IRON_ENGINE_SELFTEST_H

#include "engine/golden.h"

#include <iron/iron_arena.h>

#include <stdbool.h>

typedef struct iron__selftest {
    bool is_quick;
    const char *only; /* NULL, or what a check's name must contain */
    iron_selftest_line line;
    void *context;
    iron_selftest_result result;
    iron_error error; /* the first thing that kept a check from its answer; IRON_OK: none */
} iron__selftest;

/* Where an engine runs; `memory` is NULL for the default. */
typedef struct iron__selftest_place {
    const char *backend, *mode, *memory;
    uint32_t device, threads;
} iron__selftest_place;

/* Why a case is left out in the modes where every node reads every token. */
#define IRON_SELFTEST_TOO_SLOW "nodes x tokens are too many for a selftest in this mode"

/* For iron__selftest_fail. */
extern const iron_error iron__selftest_no_memory;

/* Is this check to be run? */
bool iron__selftest_wants(const iron__selftest *t, const char *what);

/* Something other than a difference went wrong: memory, threads. Remembers the first. */
void iron__selftest_fail(iron__selftest *t, const iron_error *error);

/* Counts one check and tells it; `difference` is a printf format, "" when all is well. */
void iron__selftest_tell(iron__selftest *t, const char *what, const char *difference, ...)
    __attribute__((format(printf, 3, 4)));

void iron__selftest_skip(iron__selftest *t, const char *what, const char *reason);

/* A configuration's defaults at a place. */
iron_config iron__selftest_config(const iron__selftest_place *place);

/* A golden case through an engine; `text` becomes "" or how the result differs. */
iron_status iron__selftest_case(const iron__golden_case *c, const iron__selftest_place *place,
                                const uint32_t *tokens, size_t count, char *text, size_t size,
                                iron_error *err);

/* Golden cases in every variant of the CPU with several thread counts; tables; seals. */
void iron__selftest_golden(iron__selftest *t);

/* Every variant of the CPU against the reference over lengths, positions, alignments and
 * vocabularies. */
void iron__selftest_variants(iron__selftest *t);

/* Every contender of every op on the CPU, over shapes. */
void iron__selftest_ops(iron__selftest *t);

/* Every device of every GPU backend, in every mode and memory strategy. */
void iron__selftest_gpus(iron__selftest *t);

#endif
