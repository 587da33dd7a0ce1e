/* SPDX-License-Identifier: MIT */
/*
 * diff_follow.h: do chunks of a manifest stand in a text, moved by some tokens?
 */
#ifndef IRON_DIGEST_DIFF_FOLLOW_H
#define IRON_DIGEST_DIFF_FOLLOW_H

#include "digest/diff.h"

/* Of side `known`, whose chunks are known, against the tokens of the other side: is every chunk
 * from `chunk` on found `by` tokens (modulo 2^64) further on there? False too if there is no such
 * chunk, or not all of them can be there. */
iron_status iron__diff_follow(iron__diff_run *run, int known, uint64_t chunk, uint64_t by,
                              bool *all_found, iron_error *err);

#endif
