/* SPDX-License-Identifier: MIT */
/* adaptive_op.h: the op adaptive, an expensive function of sparse data, as the list of ops sees
 * it. */
#ifndef IRON_OPS_ADAPTIVE_ADAPTIVE_OP_H
#define IRON_OPS_ADAPTIVE_ADAPTIVE_OP_H

#include "ops/op.h"

extern const iron__op iron__op_adaptive;

#endif
