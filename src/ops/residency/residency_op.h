/* SPDX-License-Identifier: MIT */
/* residency_op.h: the op residency, a table that should stay in the cache while a stream passes
 * through it, as the list of ops sees it. */
#ifndef IRON_OPS_RESIDENCY_RESIDENCY_OP_H
#define IRON_OPS_RESIDENCY_RESIDENCY_OP_H

#include "ops/op.h"

extern const iron__op iron__op_residency;

#endif
