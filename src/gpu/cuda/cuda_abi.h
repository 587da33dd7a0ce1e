/* SPDX-License-Identifier: MIT */
/*
 * cuda_abi.h: our declarations of the binary interfaces of the CUDA driver and of NVML: handles,
 * constants, the few structs, and every function that iron calls. CUDA's headers are not needed to
 * build: a machine without the toolkit builds a library that finds a driver at run time.
 *
 * The name of each value is CUDA's with the prefix IRON_, generated from one list. Where cuda.h is
 * installed, test_cuda_abi.c compares the whole list with it. Published values never change; all of
 * these exist since CUDA 12.0.
 */
#ifndef IRON_GPU_CUDA_ABI_H
#define IRON_GPU_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Enums in cuda.h, as wide as an int; IRON_CU_VALUES lists their values. */
typedef int iron__cu_result;
typedef int iron__cu_device_attribute;
typedef int iron__cu_function_attribute;
typedef int iron__cu_pointer_attribute;
typedef int iron__cu_capture_mode;
typedef int iron__cu_capture_status;
typedef int iron__cu_limit;
typedef int iron__cu_array_format;

typedef int iron__cu_device;
typedef uintptr_t iron__cu_pointer; /* a device address, as wide as a host address */
typedef unsigned long long iron__cu_texture;

typedef struct iron__cu_context iron__cu_context;
typedef struct iron__cu_module iron__cu_module;
typedef struct iron__cu_function iron__cu_function;
typedef struct iron__cu_stream iron__cu_stream;
typedef struct iron__cu_event iron__cu_event;
typedef struct iron__cu_graph iron__cu_graph;
typedef struct iron__cu_graph_exec iron__cu_graph_exec;
typedef struct iron__cu_view iron__cu_view; /* of a texture; always NULL */

#define IRON_CU_VALUES(X)                                                                          \
    X(CUDA_SUCCESS, 0)                                                                             \
    X(CUDA_ERROR_INVALID_VALUE, 1)                                                                 \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                                                 \
    X(CUDA_ERROR_NO_DEVICE, 100)                                                                   \
    X(CUDA_ERROR_INVALID_DEVICE, 101)                                                              \
    X(CUDA_ERROR_INVALID_IMAGE, 200)                                                               \
    X(CUDA_ERROR_INVALID_CONTEXT, 201)                                                             \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                                           \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                                           \
    X(CUDA_ERROR_INVALID_PTX, 218)                                                                 \
    X(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221)                                                      \
    X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)                                                     \
    X(CUDA_ERROR_JIT_COMPILATION_DISABLED, 223)                                                    \
    X(CUDA_ERROR_OPERATING_SYSTEM, 304)                                                            \
    X(CUDA_ERROR_INVALID_HANDLE, 400)                                                              \
    X(CUDA_ERROR_NOT_FOUND, 500)                                                                   \
    X(CUDA_ERROR_NOT_READY, 600)                                                                   \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                                             \
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)                                                     \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                                              \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                                                        \
    X(CUDA_ERROR_LAUNCH_FAILED, 719)                                                               \
    X(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720)                                                \
    X(CUDA_ERROR_NOT_PERMITTED, 800)                                                               \
    X(CUDA_ERROR_NOT_SUPPORTED, 801)                                                               \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                                                  \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)                                                  \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)                                                 \
    X(CUDA_ERROR_UNKNOWN, 999)                                                                     \
    X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                                                \
    X(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 14)                                                   \
    X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                                \
    X(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 19)                                                 \
    X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                                                       \
    X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)                                      \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                            \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                                            \
    X(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 83)                                                      \
    X(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 89)                                           \
    X(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 95)                                                  \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)                                   \
    X(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 108)                                       \
    X(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, 109)                                      \
    X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                                                      \
    X(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                                                       \
    X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                                                               \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                                          \
    X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                                                         \
    X(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)                                                          \
    X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                                                      \
    X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                                                   \
    X(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                                                         \
    X(CU_MEMORYTYPE_HOST, 1)                                                                       \
    X(CU_MEMORYTYPE_DEVICE, 2)                                                                     \
    X(CU_MEMHOSTALLOC_PORTABLE, 1)                                                                 \
    X(CU_MEMHOSTALLOC_DEVICEMAP, 2)                                                                \
    X(CU_MEM_ATTACH_GLOBAL, 1)                                                                     \
    X(CU_MEM_LOCATION_TYPE_DEVICE, 1)                                                              \
    X(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 6)                                                        \
    X(CU_ACCESS_PROPERTY_STREAMING, 1)                                                             \
    X(CU_ACCESS_PROPERTY_PERSISTING, 2)                                                            \
    X(CU_RESOURCE_TYPE_LINEAR, 2)                                                                  \
    X(CU_AD_FORMAT_UNSIGNED_INT32, 3)                                                              \
    X(CU_TRSF_READ_AS_INTEGER, 1)                                                                  \
    X(CU_STREAM_NON_BLOCKING, 1)                                                                   \
    X(CU_EVENT_DEFAULT, 0)                                                                         \
    X(CU_EVENT_WAIT_DEFAULT, 0)                                                                    \
    X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                                                      \
    X(CU_STREAM_CAPTURE_STATUS_NONE, 0)                                                            \
    X(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1)                                                          \
    X(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, 1)                                                 \
    X(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 2)                                                          \
    X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)

enum {
#define IRON_CU_ENUM(name, value) IRON_##name = (value),
    IRON_CU_VALUES(IRON_CU_ENUM)
#undef IRON_CU_ENUM
};

/* Where managed memory is prefetched to. */
typedef struct iron__cu_location {
    int type; /* IRON_CU_MEM_LOCATION_TYPE_... */
    int id;   /* the device's ordinal */
} iron__cu_location;

/* How accesses to a memory range use the cache: hit_ratio of its lines get the property `hit`. */
typedef struct iron__cu_window {
    void *start;
    size_t bytes;
    float hit_ratio;
    int hit, miss; /* IRON_CU_ACCESS_PROPERTY_... */
} iron__cu_window;

typedef struct iron__cu_launch_attribute {
    int id; /* IRON_CU_LAUNCH_ATTRIBUTE_... */
    char unused[4];
    union {
        iron__cu_window window;
        int is_cooperative;
        int may_overlap; /* programmatic stream serialization */
        uint64_t padding[8];
    } value;
} iron__cu_launch_attribute;

typedef struct iron__cu_launch_config {
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    iron__cu_stream *stream;
    iron__cu_launch_attribute *attributes;
    unsigned attribute_count;
} iron__cu_launch_config;

/* The memory behind a texture. */
typedef struct iron__cu_resource {
    int type; /* IRON_CU_RESOURCE_TYPE_... */
    union {
        struct {
            iron__cu_pointer start;
            iron__cu_array_format format;
            unsigned channels;
            size_t bytes;
        } linear;
        int padding[32];
    } of;
    unsigned flags;
} iron__cu_resource;

/* How a texture is read; linear memory uses only the flags. */
typedef struct iron__cu_reading {
    int modes[4];
    unsigned flags; /* IRON_CU_TRSF_... */
    int unused[21];
} iron__cu_reading;

/* The driver's functions under the versioned names that the library exports: cuda.h hides versions
 * behind macros (cuMemAlloc is cuMemAlloc_v2), and the unversioned name is a different function
 * with different parameters. Those marked MAY are NULL if missing; a driver without one of the
 * others is too old. All return a CUresult. */

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

typedef struct iron__nvml_device iron__nvml_device;

/* The functions of NVML that iron calls. MUST: required; MAY: NULL if missing. All but
 * nvmlErrorString return a code, 0 for success. clang-format would take the parameters for
 * products. */
/* clang-format off */
#define IRON_NVML_FUNCTIONS(MUST, MAY)                                                             \
    MUST(int, nvmlInit_v2, (void))                                                                 \
    MUST(const char *, nvmlErrorString, (int code))                                                \
    MUST(int, nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, iron__nvml_device **device))     \
    MUST(int, nvmlDeviceGetClockInfo, (iron__nvml_device *device, int clock, unsigned *mhz))       \
    MAY(int, nvmlDeviceGetCurrentClocksEventReasons,                                               \
        (iron__nvml_device *device, unsigned long long *reasons))                                  \
    MAY(int, nvmlDeviceGetCurrentClocksThrottleReasons,                                            \
        (iron__nvml_device *device, unsigned long long *reasons))                                  \
    MAY(int, nvmlDeviceGetTotalEnergyConsumption,                                                  \
        (iron__nvml_device *device, unsigned long long *millijoules))                              \
    MAY(int, nvmlDeviceGetTemperature, (iron__nvml_device *device, int sensor, unsigned *celsius))
/* clang-format on */

enum { IRON_NVML_SUCCESS = 0, IRON_NVML_ERROR_NOT_SUPPORTED = 3 };
enum { IRON_NVML_CLOCK_SM = 1, IRON_NVML_CLOCK_MEMORY = 2 };
enum { IRON_NVML_TEMPERATURE_GPU = 0 };

/* Why clocks are below their maximum. */
enum {
    IRON_NVML_IDLE = 0x1,
    IRON_NVML_APPLICATION_CLOCKS = 0x2,
    IRON_NVML_POWER_CAP = 0x4,
    IRON_NVML_HW_SLOWDOWN = 0x8,
    IRON_NVML_SYNC_BOOST = 0x10,
    IRON_NVML_SW_THERMAL = 0x20,
    IRON_NVML_HW_THERMAL = 0x40,
    IRON_NVML_POWER_BRAKE = 0x80,
    IRON_NVML_DISPLAY_CLOCKS = 0x100
};

#endif
