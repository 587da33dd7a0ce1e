/* SPDX-License-Identifier: MIT */
/* banks_op.h: the op banks, strides in local memory, as the list of ops sees it. */
#ifndef IRON_OPS_BANKS_BANKS_OP_H
#define IRON_OPS_BANKS_BANKS_OP_H

#include "ops/op.h"

extern const iron__op iron__op_banks;

#endif
