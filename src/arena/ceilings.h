/* SPDX-License-Identifier: MIT */
/*
 * ceilings.h: one pass of reading, for those who want the ceiling in the same breath as what they
 * measure against it.
 */
#ifndef IRON_ARENA_CEILINGS_H
#define IRON_ARENA_CEILINGS_H

#include "core/team.h"

/* Reads all of `bytes`, a multiple of 1 MiB, aligned to 16, once, on the team's threads; returns
 * the XOR of its 64-bit words. */
uint64_t iron__read_pass(iron__team *team, const void *data, size_t bytes);

#endif
