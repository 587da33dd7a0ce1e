/* SPDX-License-Identifier: MIT */
/*
 * opencl_support.h: what the tests of OpenCL share: the first device there is, or why there is
 * none, and a folder for everything that is left on disk.
 */
#ifndef IRON_UNIT_OPENCL_SUPPORT_H
#define IRON_UNIT_OPENCL_SUPPORT_H

#include "support.h"

#include "gpu/opencl/opencl.h"

#define OPS (&iron__opencl_ops)

static folder place;
static iron__gpu_device *device;
static iron_error reason; /* why there is no device */

/* PoCL's compiler never gives back what it took; leaks of our own are found all the same. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libpocl\nleak:libLLVM\n"; }

#define NEED_DEVICE()                                                                              \
    do {                                                                                           \
        if (!device) {                                                                             \
            print_message("skipped: %s\n", reason.text);                                           \
            skip();                                                                                \
        }                                                                                          \
    } while (0)

#endif
