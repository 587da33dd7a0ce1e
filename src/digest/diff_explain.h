/* SPDX-License-Identifier: MIT */
/*
 * diff_explain.h: what happened between two streams whose differing chunks are known.
 */
#ifndef IRON_DIGEST_DIFF_EXPLAIN_H
#define IRON_DIGEST_DIFF_EXPLAIN_H

#include "digest/diff.h"

/* Fills the report's kind, shift, moved, is_verified and text. */
iron_status iron__diff_explain(iron__diff_run *run, iron_error *err);

#endif
