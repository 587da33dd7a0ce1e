/* SPDX-License-Identifier: MIT */
/* fusion_op.h: the op fusion, a chain of elementwise steps, as the list of ops sees it. */
#ifndef IRON_OPS_FUSION_FUSION_OP_H
#define IRON_OPS_FUSION_FUSION_OP_H

#include "ops/op.h"

extern const iron__op iron__op_fusion;

#endif
