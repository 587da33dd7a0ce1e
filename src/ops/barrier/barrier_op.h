/* SPDX-License-Identifier: MIT */
/* barrier_op.h: the op barrier, sums and what waiting for each other costs, as the list of ops sees
 * it. */
#ifndef IRON_OPS_BARRIER_BARRIER_OP_H
#define IRON_OPS_BARRIER_BARRIER_OP_H

#include "ops/op.h"

extern const iron__op iron__op_barrier;

#endif
