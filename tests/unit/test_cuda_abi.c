/* SPDX-License-Identifier: MIT */
/*
 * test_cuda_abi.c: compares cuda_abi.h with CUDA's header, where it is installed: every value of
 * the list, size, alignment and field offsets of every struct, the type of every driver function.
 * The compiler does all of it; if the test runs, it has passed.
 */
#include "support.h"

#include "gpu/cuda/cuda_abi.h"

#if defined(__has_include)
#if __has_include(<cuda.h>)
#define HAS_CUDA_H 1
#endif
#endif

#ifdef HAS_CUDA_H
#include <cuda.h>

#define SAME_VALUE(name, value) _Static_assert((int)(IRON_##name) == (int)(name), #name);
IRON_CU_VALUES(SAME_VALUE)

#define SAME_SIZE(ours, theirs)                                                                    \
    _Static_assert(sizeof(ours) == sizeof(theirs) && _Alignof(ours) == _Alignof(theirs), #theirs)
#define SAME_FIELD(ours, field, theirs, their_field)                                               \
    _Static_assert(offsetof(ours, field) == offsetof(theirs, their_field) &&                       \
                       sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->their_field),           \
                   #theirs "." #their_field)

SAME_SIZE(iron__cu_result, CUresult);
SAME_SIZE(iron__cu_device, CUdevice);
SAME_SIZE(iron__cu_pointer, CUdeviceptr);
SAME_SIZE(iron__cu_context *, CUcontext);
SAME_SIZE(iron__cu_stream *, CUstream);
SAME_SIZE(iron__cu_device_attribute, CUdevice_attribute);
SAME_SIZE(iron__cu_function_attribute, CUfunction_attribute);
SAME_SIZE(iron__cu_pointer_attribute, CUpointer_attribute);
SAME_SIZE(iron__cu_capture_mode, CUstreamCaptureMode);
SAME_SIZE(iron__cu_capture_status, CUstreamCaptureStatus);
SAME_SIZE(unsigned, CUmemorytype);
SAME_SIZE(iron__cu_limit, CUlimit);
SAME_SIZE(iron__cu_array_format, CUarray_format);
SAME_SIZE(iron__cu_texture, CUtexObject);

SAME_SIZE(iron__cu_location, CUmemLocation);
SAME_FIELD(iron__cu_location, type, CUmemLocation, type);
SAME_FIELD(iron__cu_location, id, CUmemLocation, id);

SAME_SIZE(iron__cu_window, CUaccessPolicyWindow);
SAME_FIELD(iron__cu_window, start, CUaccessPolicyWindow, base_ptr);
SAME_FIELD(iron__cu_window, bytes, CUaccessPolicyWindow, num_bytes);
SAME_FIELD(iron__cu_window, hit_ratio, CUaccessPolicyWindow, hitRatio);
SAME_FIELD(iron__cu_window, hit, CUaccessPolicyWindow, hitProp);
SAME_FIELD(iron__cu_window, miss, CUaccessPolicyWindow, missProp);

SAME_SIZE(iron__cu_launch_attribute, CUlaunchAttribute);
SAME_FIELD(iron__cu_launch_attribute, id, CUlaunchAttribute, id);
SAME_FIELD(iron__cu_launch_attribute, value, CUlaunchAttribute, value);
SAME_FIELD(iron__cu_launch_attribute, value.window, CUlaunchAttribute, value.accessPolicyWindow);
SAME_FIELD(iron__cu_launch_attribute, value.is_cooperative, CUlaunchAttribute, value.cooperative);
SAME_FIELD(iron__cu_launch_attribute, value.may_overlap, CUlaunchAttribute,
           value.programmaticStreamSerializationAllowed);

SAME_SIZE(iron__cu_launch_config, CUlaunchConfig);
SAME_FIELD(iron__cu_launch_config, grid_x, CUlaunchConfig, gridDimX);
SAME_FIELD(iron__cu_launch_config, grid_y, CUlaunchConfig, gridDimY);
SAME_FIELD(iron__cu_launch_config, grid_z, CUlaunchConfig, gridDimZ);
SAME_FIELD(iron__cu_launch_config, block_x, CUlaunchConfig, blockDimX);
SAME_FIELD(iron__cu_launch_config, block_y, CUlaunchConfig, blockDimY);
SAME_FIELD(iron__cu_launch_config, block_z, CUlaunchConfig, blockDimZ);
SAME_FIELD(iron__cu_launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_FIELD(iron__cu_launch_config, stream, CUlaunchConfig, hStream);
SAME_FIELD(iron__cu_launch_config, attributes, CUlaunchConfig, attrs);
SAME_FIELD(iron__cu_launch_config, attribute_count, CUlaunchConfig, numAttrs);

SAME_SIZE(iron__cu_resource, CUDA_RESOURCE_DESC);
SAME_FIELD(iron__cu_resource, type, CUDA_RESOURCE_DESC, resType);
SAME_FIELD(iron__cu_resource, of, CUDA_RESOURCE_DESC, res);
SAME_FIELD(iron__cu_resource, of.linear.start, CUDA_RESOURCE_DESC, res.linear.devPtr);
SAME_FIELD(iron__cu_resource, of.linear.format, CUDA_RESOURCE_DESC, res.linear.format);
SAME_FIELD(iron__cu_resource, of.linear.channels, CUDA_RESOURCE_DESC, res.linear.numChannels);
SAME_FIELD(iron__cu_resource, of.linear.bytes, CUDA_RESOURCE_DESC, res.linear.sizeInBytes);
SAME_FIELD(iron__cu_resource, flags, CUDA_RESOURCE_DESC, flags);

SAME_SIZE(iron__cu_reading, CUDA_TEXTURE_DESC);
SAME_FIELD(iron__cu_reading, flags, CUDA_TEXTURE_DESC, flags);

/* With our types replaced by CUDA's, the prototypes must match cuda.h. Of the two prefetch
 * functions cuda.h declares only the one of its version. */
#define iron__cu_result             CUresult
#define iron__cu_device_attribute   CUdevice_attribute
#define iron__cu_function_attribute CUfunction_attribute
#define iron__cu_pointer_attribute  CUpointer_attribute
#define iron__cu_capture_mode       CUstreamCaptureMode
#define iron__cu_capture_status     CUstreamCaptureStatus
#define iron__cu_device             CUdevice
#define iron__cu_pointer            CUdeviceptr
#define iron__cu_location           CUmemLocation
#define iron__cu_launch_config      CUlaunchConfig
#define iron__cu_limit              CUlimit
#define iron__cu_array_format       CUarray_format
#define iron__cu_texture            CUtexObject
#define iron__cu_resource           CUDA_RESOURCE_DESC
#define iron__cu_reading            CUDA_TEXTURE_DESC
#define iron__cu_view               CUDA_RESOURCE_VIEW_DESC
#define iron__cu_context            struct CUctx_st
#define iron__cu_module             struct CUmod_st
#define iron__cu_function           struct CUfunc_st
#define iron__cu_stream             struct CUstream_st
#define iron__cu_event              struct CUevent_st
#define iron__cu_graph              struct CUgraph_st
#define iron__cu_graph_exec         struct CUgraphExec_st

#define DECLARED_SO(name, parameters)                                                              \
    _Static_assert(_Generic(&(name), CUresult(*) parameters : 1, default : 0), #name);
#define IF_DECLARED(name, parameters) CUresult CUDAAPI name parameters;
#undef cuMemPrefetchAsync
IRON_CUDA_FUNCTIONS(DECLARED_SO, IF_DECLARED)

static void declarations_match_the_header(void **state) {
    (void)state;
    print_message("compared with cuda.h of CUDA %d.%d\n", CUDA_VERSION / 1000,
                  CUDA_VERSION % 1000 / 10);
}
#else
static void declarations_match_the_header(void **state) {
    (void)state;
    print_message("skipped: cuda.h is not installed\n");
    skip();
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(declarations_match_the_header)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
