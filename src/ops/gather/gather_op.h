/* SPDX-License-Identifier: MIT */
/* gather_op.h: the op gather, out[i] = table[index[i]], as the list of ops sees it. */
#ifndef IRON_OPS_GATHER_GATHER_OP_H
#define IRON_OPS_GATHER_GATHER_OP_H

#include "ops/op.h"

extern const iron__op iron__op_gather;

#endif
