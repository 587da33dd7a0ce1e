/* SPDX-License-Identifier: MIT */
/* transpose_op.h: the op transpose, B = A^T, as the list of ops sees it. */
#ifndef IRON_OPS_TRANSPOSE_TRANSPOSE_OP_H
#define IRON_OPS_TRANSPOSE_TRANSPOSE_OP_H

#include "ops/op.h"

extern const iron__op iron__op_transpose;

#endif
