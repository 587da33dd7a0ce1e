/* SPDX-License-Identifier: MIT */
/*
 * select.h: which contenders and sizes a race is asked for, from the words of the command.
 */
#ifndef IRON_ARENA_SELECT_H
#define IRON_ARENA_SELECT_H

#include "arena/race.h"
#include "ops/op.h"

/* Does the glob choose op.backend.contender? `*` also stands for dots. A glob that ends at a dot of
 * the name chooses all below: tokens.cpu.champion is tokens.cpu.champion.neon too. */
bool iron__select_matches(const char *glob, const char *name);

/* Does the glob ask for that backend by its name, and not only by a wildcard? */
bool iron__select_names(const char *glob, const char *backend);

typedef struct iron__chosen_size {
    uint64_t rows, cols;
    char name[40];     /* "talk:STANDARD"; "" for plain numbers */
    const char *dtype; /* the suite's own; NULL */
} iron__chosen_size;

#define IRON_SIZES_MAX 64u

/* The sizes of a list that the op knows: set:NAME, set:*, NAME (the first set that has it, so an
 * op's first set is its default), ROWSxCOLS or a count, with commas between them. IRON_E_ARG when a
 * word is no size at all; a word that suits other ops is passed over. */
iron_status iron__select_sizes(const iron__op *op, const char *list, iron__chosen_size *out,
                               size_t *count, iron_error *err);

/* "4000x4000", or "67108864" for an op over a line. */
void iron__size_text(const iron__op *op, uint64_t rows, uint64_t cols, char *text, size_t size);

/* Scopes with commas between them, as bits of iron__scope; NULL: all. */
iron_status iron__select_scopes(const char *list, uint32_t *bits, iron_error *err);

/* Strategies with commas between them, as bits; NULL: all. */
iron_status iron__select_memory(const char *list, uint32_t *bits, iron_error *err);

#endif
