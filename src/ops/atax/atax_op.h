/* SPDX-License-Identifier: MIT */
/* atax_op.h: the op atax, y = A^T (A x), as the list of ops sees it. */
#ifndef IRON_OPS_ATAX_ATAX_OP_H
#define IRON_OPS_ATAX_ATAX_OP_H

#include "ops/op.h"

extern const iron__op iron__op_atax;

#endif
