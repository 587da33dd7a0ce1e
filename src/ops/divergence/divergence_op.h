/* SPDX-License-Identifier: MIT */
/* divergence_op.h: the op divergence, two paths chosen element by element, as the list of ops sees
 * it. */
#ifndef IRON_OPS_DIVERGENCE_DIVERGENCE_OP_H
#define IRON_OPS_DIVERGENCE_DIVERGENCE_OP_H

#include "ops/op.h"

extern const iron__op iron__op_divergence;

#endif
