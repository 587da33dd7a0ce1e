/* SPDX-License-Identifier: MIT */
/* histogram_op.h: the op histogram, how often each value occurs, as the list of ops sees it. */
#ifndef IRON_OPS_HISTOGRAM_HISTOGRAM_OP_H
#define IRON_OPS_HISTOGRAM_HISTOGRAM_OP_H

#include "ops/op.h"

extern const iron__op iron__op_histogram;

#endif
