/* SPDX-License-Identifier: MIT */
/*
 * notes.h: what there is to say of an op, by the op itself; iron_arena.h has the same by its name.
 */
#ifndef IRON_ARENA_NOTES_H
#define IRON_ARENA_NOTES_H

#include "ops/op.h"

#include <iron/iron_arena.h>

/* NULL: nothing to say. */
const char *iron__op_note(const iron__op *op, iron_note note);

/* The same as iron_arena_axis_at and iron_arena_contender_at. */
bool iron__op_axis_at(const iron__op *op, size_t index, iron_arena_axis *axis);
bool iron__op_contender_at(const iron__op *op, size_t index, iron_arena_contender *contender);

#endif
