/* SPDX-License-Identifier: MIT */
/* layout_op.h: the op layout, a step of particles, as the list of ops sees it. */
#ifndef IRON_OPS_LAYOUT_LAYOUT_OP_H
#define IRON_OPS_LAYOUT_LAYOUT_OP_H

#include "ops/op.h"

extern const iron__op iron__op_layout;

#endif
