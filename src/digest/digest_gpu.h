/* SPDX-License-Identifier: MIT */
/* digest_gpu.h: the device that a digest may have opened. */
#ifndef IRON_DIGEST_DIGEST_GPU_H
#define IRON_DIGEST_DIGEST_GPU_H

#include "digest/digest.h"

/* Closes it; takes a digest that has none. */
void iron__digest_gpu_leave(iron__digest *d);

#endif
