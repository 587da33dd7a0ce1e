/* SPDX-License-Identifier: MIT */
/*
 * cuda_driver.h: the NVIDIA driver library, loaded at run time and never linked.
 *
 * One list has every driver function that iron calls, under the versioned name that the library
 * exports: cuda.h hides versions behind macros (cuMemAlloc is cuMemAlloc_v2), and the unversioned
 * name is a different function with different parameters. Functions marked MAY are NULL if missing;
 * a driver without one of the others is too old. All return a CUresult.
 */
#ifndef IRON_GPU_CUDA_DRIVER_H
#define IRON_GPU_CUDA_DRIVER_H

#include "gpu/cuda/cuda_abi.h"

#include <iron/iron.h>

#include <stdbool.h>

/* The oldest supported driver: CUDA 12.0 has launch attributes. 1000 * major + 10 * minor. */
#define IRON_CUDA_VERSION_MIN 12000

/* clang-format would take the parameters for products. */
/* clang-format off */
#define IRON_CUDA_FUNCTIONS(MUST, MAY)                                                             \
    MUST(cuInit, (unsigned flags))                                                                 \
    MUST(cuDriverGetVersion, (int *version))                                                       \
    MUST(cuGetErrorName, (iron__cu_result code, const char **name))                                \
    MUST(cuGetErrorString, (iron__cu_result code, const char **text))                              \
    MUST(cuDeviceGetCount, (int *count))                                                           \
    MUST(cuDeviceGet, (iron__cu_device *device, int ordinal))                                      \
    MUST(cuDeviceGetName, (char *name, int size, iron__cu_device device))                          \
    MUST(cuDeviceGetPCIBusId, (char *name, int size, iron__cu_device device))                      \
    MUST(cuDeviceTotalMem_v2, (size_t *bytes, iron__cu_device device))                             \
    MUST(cuDeviceGetAttribute,                                                                     \
         (int *value, iron__cu_device_attribute attribute, iron__cu_device device))                \
    MUST(cuDeviceGetTexture1DLinearMaxWidth, (size_t *count, iron__cu_array_format format,         \
                                              unsigned channels, iron__cu_device device))          \
    MUST(cuDevicePrimaryCtxRetain, (iron__cu_context **context, iron__cu_device device))           \
    MUST(cuDevicePrimaryCtxRelease_v2, (iron__cu_device device))                                   \
    MUST(cuCtxPushCurrent_v2, (iron__cu_context *context))                                         \
    MUST(cuCtxPopCurrent_v2, (iron__cu_context **context))                                         \
    MUST(cuCtxSynchronize, (void))                                                                 \
    MUST(cuCtxSetLimit, (iron__cu_limit limit, size_t value))                                      \
    MUST(cuCtxGetLimit, (size_t *value, iron__cu_limit limit))                                     \
    MUST(cuCtxResetPersistingL2Cache, (void))                                                      \
    MUST(cuModuleLoadData, (iron__cu_module **module, const void *image))                          \
    MUST(cuModuleUnload, (iron__cu_module *module))                                                \
    MUST(cuModuleGetFunction,                                                                      \
         (iron__cu_function **function, iron__cu_module *module, const char *name))                \
    MUST(cuModuleGetGlobal_v2, (iron__cu_pointer *pointer, size_t *bytes, iron__cu_module *module, \
                                const char *name))                                                 \
    MUST(cuFuncGetAttribute,                                                                       \
         (int *value, iron__cu_function_attribute attribute, iron__cu_function *function))         \
    MUST(cuFuncSetAttribute,                                                                       \
         (iron__cu_function *function, iron__cu_function_attribute attribute, int value))          \
    MUST(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                              \
         (int *groups, iron__cu_function *function, int threads, size_t shared_bytes))             \
    MUST(cuMemGetInfo_v2, (size_t *free_bytes, size_t *total_bytes))                               \
    MUST(cuMemAlloc_v2, (iron__cu_pointer *pointer, size_t bytes))                                 \
    MUST(cuMemFree_v2, (iron__cu_pointer pointer))                                                 \
    MUST(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                            \
    MUST(cuMemFreeHost, (void *memory))                                                            \
    MUST(cuMemHostGetDevicePointer_v2, (iron__cu_pointer *pointer, void *host, unsigned flags))    \
    MUST(cuMemAllocManaged, (iron__cu_pointer *pointer, size_t bytes, unsigned flags))             \
    MUST(cuPointerGetAttribute,                                                                    \
         (void *data, iron__cu_pointer_attribute attribute, iron__cu_pointer pointer))             \
    MUST(cuPointerGetAttributes, (unsigned count, iron__cu_pointer_attribute *attributes,          \
                                  void **data, iron__cu_pointer pointer))                          \
    MUST(cuTexObjectCreate, (iron__cu_texture *texture, const iron__cu_resource *resource,         \
                             const iron__cu_reading *reading, const iron__cu_view *view))          \
    MUST(cuTexObjectDestroy, (iron__cu_texture texture))                                           \
    MUST(cuMemsetD32Async,                                                                         \
         (iron__cu_pointer to, unsigned value, size_t count, iron__cu_stream *stream))             \
    MUST(cuMemcpyHtoDAsync_v2,                                                                     \
         (iron__cu_pointer to, const void *from, size_t bytes, iron__cu_stream *stream))           \
    MUST(cuMemcpyDtoHAsync_v2,                                                                     \
         (void *to, iron__cu_pointer from, size_t bytes, iron__cu_stream *stream))                 \
    MUST(cuMemcpyDtoDAsync_v2,                                                                     \
         (iron__cu_pointer to, iron__cu_pointer from, size_t bytes, iron__cu_stream *stream))      \
    MAY(cuMemPrefetchAsync_v2, (iron__cu_pointer memory, size_t bytes, iron__cu_location where,    \
                                unsigned flags, iron__cu_stream *stream))                          \
    MAY(cuMemPrefetchAsync,                                                                        \
        (iron__cu_pointer memory, size_t bytes, iron__cu_device where, iron__cu_stream *stream))   \
    MUST(cuStreamCreate, (iron__cu_stream **stream, unsigned flags))                               \
    MUST(cuStreamDestroy_v2, (iron__cu_stream *stream))                                            \
    MUST(cuStreamSynchronize, (iron__cu_stream *stream))                                           \
    MUST(cuStreamWaitEvent, (iron__cu_stream *stream, iron__cu_event *event, unsigned flags))      \
    MUST(cuEventCreate, (iron__cu_event **event, unsigned flags))                                  \
    MUST(cuEventDestroy_v2, (iron__cu_event *event))                                               \
    MUST(cuEventRecord, (iron__cu_event *event, iron__cu_stream *stream))                          \
    MUST(cuEventSynchronize, (iron__cu_event *event))                                              \
    MUST(cuEventElapsedTime, (float *ms, iron__cu_event *from, iron__cu_event *to))                \
    MUST(cuLaunchKernel,                                                                           \
         (iron__cu_function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,          \
          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,             \
          iron__cu_stream *stream, void **arguments, void **extra))                                \
    MAY(cuLaunchKernelEx, (const iron__cu_launch_config *config, iron__cu_function *function,      \
                           void **arguments, void **extra))                                        \
    MUST(cuStreamBeginCapture_v2, (iron__cu_stream *stream, iron__cu_capture_mode mode))           \
    MUST(cuStreamEndCapture, (iron__cu_stream *stream, iron__cu_graph **graph))                    \
    MUST(cuStreamIsCapturing, (iron__cu_stream *stream, iron__cu_capture_status *status))          \
    MUST(cuGraphInstantiateWithFlags,                                                              \
         (iron__cu_graph_exec **exec, iron__cu_graph *graph, unsigned long long flags))            \
    MUST(cuGraphLaunch, (iron__cu_graph_exec *exec, iron__cu_stream *stream))                      \
    MUST(cuGraphExecDestroy, (iron__cu_graph_exec *exec))                                          \
    MUST(cuGraphDestroy, (iron__cu_graph *graph))
/* clang-format on */

typedef struct iron__cuda_driver {
    int version; /* newest CUDA version it supports: 13000 is 13.0 */
/* A declarator takes no more parentheses. NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define IRON_CUDA_FIELD(name, parameters) iron__cu_result(*name) parameters;
    IRON_CUDA_FUNCTIONS(IRON_CUDA_FIELD, IRON_CUDA_FIELD)
#undef IRON_CUDA_FIELD
} iron__cuda_driver;

/* "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)". */
void iron__cuda_error_text(const iron__cuda_driver *driver, iron__cu_result code, char *text,
                           size_t size);

#endif
