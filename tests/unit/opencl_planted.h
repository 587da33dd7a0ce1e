/* SPDX-License-Identifier: MIT */
/* opencl_planted.h: functions of a driver that fail, in place of the loader's, with one code. */
#ifndef TESTS_UNIT_OPENCL_PLANTED_H
#define TESTS_UNIT_OPENCL_PLANTED_H

#include "gpu/opencl/opencl_loader.h"

static int32_t planted; /* the code that planted functions answer with */

static inline iron__cl_context *bad_context(const intptr_t *properties, uint32_t count,
                                            iron__cl_device *const *devices,
                                            iron__cl_context_callback callback, void *user,
                                            int32_t *code) {
    (void)properties;
    (void)count;
    (void)devices;
    (void)callback;
    (void)user;
    *code = planted;
    return NULL;
}

#endif
