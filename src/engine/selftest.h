/* SPDX-License-Identifier: MIT */
/* selftest.h: what the two halves of the selftest share: counting and telling. */
#ifndef IRON_ENGINE_SELFTEST_H
#define IRON_ENGINE_SELFTEST_H

#include <iron/iron_arena.h>

#include <stdbool.h>

typedef struct iron__selftest {
    bool is_quick;
    iron_selftest_line line;
    void *context;
    iron_selftest_result result;
    iron_error error; /* the first thing that kept a check from its answer; IRON_OK: none */
} iron__selftest;

/* Something other than a difference went wrong: memory, threads. Remembers the first. */
void iron__selftest_fail(iron__selftest *t, const iron_error *error);

/* Counts one check and tells it; `difference` is a printf format, "" when all is well. */
void iron__selftest_tell(iron__selftest *t, const char *what, const char *difference, ...)
    __attribute__((format(printf, 3, 4)));

/* Golden cases in every variant with several thread counts; tables; seals. */
void iron__selftest_golden(iron__selftest *t);

/* Every variant against the reference over lengths, positions, alignments and vocabularies. */
void iron__selftest_variants(iron__selftest *t);

#endif
