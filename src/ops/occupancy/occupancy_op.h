/* SPDX-License-Identifier: MIT */
/* occupancy_op.h: the op occupancy, one kernel with more or fewer threads on a unit, as the list of
 * ops sees it. */
#ifndef IRON_OPS_OCCUPANCY_OCCUPANCY_OP_H
#define IRON_OPS_OCCUPANCY_OCCUPANCY_OP_H

#include "ops/op.h"

extern const iron__op iron__op_occupancy;

#endif
