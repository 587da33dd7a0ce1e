/* SPDX-License-Identifier: MIT */
/*
 * test_opencl_abi.c: compares our declarations of OpenCL with the real header, where it is
 * installed: every constant, every result code, every function type. The compiler does all of it;
 * the program only reports whether it did. For the comparison of types our opaque objects get the
 * header's names.
 */
#if defined(__has_include)
#if __has_include(<CL/cl.h>) && __has_include(<CL/cl_ext.h>)
#define HAS_HEADER 1
#endif
#endif

#ifdef HAS_HEADER
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#define iron__cl_platform _cl_platform_id
#define iron__cl_device   _cl_device_id
#define iron__cl_context  _cl_context
#define iron__cl_queue    _cl_command_queue
#define iron__cl_memory   _cl_mem
#define iron__cl_program  _cl_program
#define iron__cl_kernel   _cl_kernel
#define iron__cl_event    _cl_event
#endif

#include "support.h"

#include "gpu/opencl/opencl_internal.h"

#ifdef HAS_HEADER

#define SAME_VALUE(name, value) _Static_assert(IRON_CL_##name == CL_##name, #name);
IRON_CL_CONSTANT_MAP(SAME_VALUE)
IRON_CL_ERROR_MAP(SAME_VALUE)

#define SAME_TYPE(result, name, parameters)                                                        \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&(name)),                               \
                                                __typeof__(((iron__opencl_api *)0)->name)),        \
                   #name);
#define IRON_CL_REQUIRED SAME_TYPE
#define IRON_CL_OPTIONAL SAME_TYPE
#include "gpu/opencl/opencl_symbols.def"

static void declarations_match_the_header(void **state) { (void)state; }

#else

static void declarations_match_the_header(void **state) {
    (void)state;
    print_message("not compared: <CL/cl.h> is not installed (package opencl-c-headers)\n");
    skip();
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(declarations_match_the_header),
    };

    return cmocka_run_group_tests_name("opencl_abi", tests, NULL, NULL);
}
