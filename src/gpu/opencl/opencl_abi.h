/* SPDX-License-Identifier: MIT */
/*
 * opencl_abi.h: our declarations of the part of OpenCL's binary interface that iron uses, so that
 * building needs no OpenCL header and running needs no OpenCL library.
 *
 * Objects are opaque. OpenCL's scalar types are spelled out: cl_int is int32_t, cl_uint and cl_bool
 * are uint32_t, cl_ulong and all bit fields are uint64_t. The functions are in opencl_symbols.def.
 * The constants are macro lists, so that test_opencl_abi.c compares every row with the real header
 * where it is installed.
 */
#ifndef IRON_GPU_OPENCL_OPENCL_ABI_H
#define IRON_GPU_OPENCL_OPENCL_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct iron__cl_platform iron__cl_platform;
typedef struct iron__cl_device iron__cl_device;
typedef struct iron__cl_context iron__cl_context;
typedef struct iron__cl_queue iron__cl_queue;
typedef struct iron__cl_memory iron__cl_memory;
typedef struct iron__cl_program iron__cl_program;
typedef struct iron__cl_kernel iron__cl_kernel;
typedef struct iron__cl_event iron__cl_event;

typedef void (*iron__cl_context_callback)(const char *text, const void *data, size_t bytes,
                                          void *user);
typedef void (*iron__cl_program_callback)(iron__cl_program *program, void *user);

/* For opencl_symbols.def. */
#define IRON_CL_WAITS uint32_t, iron__cl_event *const *, iron__cl_event **

#define IRON_CL_CONSTANT_MAP(X)                                                                    \
    X(DEVICE_TYPE_CPU, 1 << 1)                                                                     \
    X(DEVICE_TYPE_GPU, 1 << 2)                                                                     \
    X(DEVICE_TYPE_ACCELERATOR, 1 << 3)                                                             \
    X(PLATFORM_VERSION, 0x0901)                                                                    \
    X(PLATFORM_NAME, 0x0902)                                                                       \
    X(DEVICE_MAX_COMPUTE_UNITS, 0x1002)                                                            \
    X(DEVICE_MAX_WORK_GROUP_SIZE, 0x1004)                                                          \
    X(DEVICE_MAX_MEM_ALLOC_SIZE, 0x1010)                                                           \
    X(DEVICE_GLOBAL_MEM_CACHE_SIZE, 0x101E)                                                        \
    X(DEVICE_GLOBAL_MEM_SIZE, 0x101F)                                                              \
    X(DEVICE_LOCAL_MEM_SIZE, 0x1023)                                                               \
    X(DEVICE_ENDIAN_LITTLE, 0x1026)                                                                \
    X(DEVICE_AVAILABLE, 0x1027)                                                                    \
    X(DEVICE_COMPILER_AVAILABLE, 0x1028)                                                           \
    X(DEVICE_NAME, 0x102B)                                                                         \
    X(DEVICE_VENDOR, 0x102C)                                                                       \
    X(DRIVER_VERSION, 0x102D)                                                                      \
    X(DEVICE_VERSION, 0x102F)                                                                      \
    X(DEVICE_EXTENSIONS, 0x1030)                                                                   \
    X(DEVICE_SVM_CAPABILITIES, 0x1053)                                                             \
    X(DEVICE_SVM_COARSE_GRAIN_BUFFER, 1 << 0)                                                      \
    X(CONTEXT_PLATFORM, 0x1084)                                                                    \
    X(QUEUE_CONTEXT, 0x1090)                                                                       \
    X(QUEUE_DEVICE, 0x1091)                                                                        \
    X(QUEUE_PROPERTIES, 0x1093)                                                                    \
    X(QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 1 << 0)                                                 \
    X(QUEUE_PROFILING_ENABLE, 1 << 1)                                                              \
    X(MEM_READ_WRITE, 1 << 0)                                                                      \
    X(MEM_ALLOC_HOST_PTR, 1 << 4)                                                                  \
    X(MEM_OBJECT_BUFFER, 0x10F0)                                                                   \
    X(MEM_TYPE, 0x1100)                                                                            \
    X(MEM_SIZE, 0x1102)                                                                            \
    X(MEM_CONTEXT, 0x1106)                                                                         \
    X(MAP_READ, 1 << 0)                                                                            \
    X(MAP_WRITE, 1 << 1)                                                                           \
    X(PROGRAM_BINARY_SIZES, 0x1165)                                                                \
    X(PROGRAM_BINARIES, 0x1166)                                                                    \
    X(PROGRAM_BUILD_LOG, 0x1183)                                                                   \
    X(KERNEL_NUM_ARGS, 0x1191)                                                                     \
    X(KERNEL_LOCAL_MEM_SIZE, 0x11B2)                                                               \
    X(PROFILING_COMMAND_END, 0x1283)

/* Result codes. Codes not listed here are not part of the standard. */
#define IRON_CL_ERROR_MAP(X)                                                                       \
    X(SUCCESS, 0)                                                                                  \
    X(DEVICE_NOT_FOUND, -1)                                                                        \
    X(DEVICE_NOT_AVAILABLE, -2)                                                                    \
    X(COMPILER_NOT_AVAILABLE, -3)                                                                  \
    X(MEM_OBJECT_ALLOCATION_FAILURE, -4)                                                           \
    X(OUT_OF_RESOURCES, -5)                                                                        \
    X(OUT_OF_HOST_MEMORY, -6)                                                                      \
    X(PROFILING_INFO_NOT_AVAILABLE, -7)                                                            \
    X(MEM_COPY_OVERLAP, -8)                                                                        \
    X(IMAGE_FORMAT_MISMATCH, -9)                                                                   \
    X(IMAGE_FORMAT_NOT_SUPPORTED, -10)                                                             \
    X(BUILD_PROGRAM_FAILURE, -11)                                                                  \
    X(MAP_FAILURE, -12)                                                                            \
    X(MISALIGNED_SUB_BUFFER_OFFSET, -13)                                                           \
    X(EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, -14)                                              \
    X(COMPILE_PROGRAM_FAILURE, -15)                                                                \
    X(LINKER_NOT_AVAILABLE, -16)                                                                   \
    X(LINK_PROGRAM_FAILURE, -17)                                                                   \
    X(DEVICE_PARTITION_FAILED, -18)                                                                \
    X(KERNEL_ARG_INFO_NOT_AVAILABLE, -19)                                                          \
    X(INVALID_VALUE, -30)                                                                          \
    X(INVALID_DEVICE_TYPE, -31)                                                                    \
    X(INVALID_PLATFORM, -32)                                                                       \
    X(INVALID_DEVICE, -33)                                                                         \
    X(INVALID_CONTEXT, -34)                                                                        \
    X(INVALID_QUEUE_PROPERTIES, -35)                                                               \
    X(INVALID_COMMAND_QUEUE, -36)                                                                  \
    X(INVALID_HOST_PTR, -37)                                                                       \
    X(INVALID_MEM_OBJECT, -38)                                                                     \
    X(INVALID_IMAGE_FORMAT_DESCRIPTOR, -39)                                                        \
    X(INVALID_IMAGE_SIZE, -40)                                                                     \
    X(INVALID_SAMPLER, -41)                                                                        \
    X(INVALID_BINARY, -42)                                                                         \
    X(INVALID_BUILD_OPTIONS, -43)                                                                  \
    X(INVALID_PROGRAM, -44)                                                                        \
    X(INVALID_PROGRAM_EXECUTABLE, -45)                                                             \
    X(INVALID_KERNEL_NAME, -46)                                                                    \
    X(INVALID_KERNEL_DEFINITION, -47)                                                              \
    X(INVALID_KERNEL, -48)                                                                         \
    X(INVALID_ARG_INDEX, -49)                                                                      \
    X(INVALID_ARG_VALUE, -50)                                                                      \
    X(INVALID_ARG_SIZE, -51)                                                                       \
    X(INVALID_KERNEL_ARGS, -52)                                                                    \
    X(INVALID_WORK_DIMENSION, -53)                                                                 \
    X(INVALID_WORK_GROUP_SIZE, -54)                                                                \
    X(INVALID_WORK_ITEM_SIZE, -55)                                                                 \
    X(INVALID_GLOBAL_OFFSET, -56)                                                                  \
    X(INVALID_EVENT_WAIT_LIST, -57)                                                                \
    X(INVALID_EVENT, -58)                                                                          \
    X(INVALID_OPERATION, -59)                                                                      \
    X(INVALID_GL_OBJECT, -60)                                                                      \
    X(INVALID_BUFFER_SIZE, -61)                                                                    \
    X(INVALID_MIP_LEVEL, -62)                                                                      \
    X(INVALID_GLOBAL_WORK_SIZE, -63)                                                               \
    X(INVALID_PROPERTY, -64)                                                                       \
    X(INVALID_IMAGE_DESCRIPTOR, -65)                                                               \
    X(INVALID_COMPILER_OPTIONS, -66)                                                               \
    X(INVALID_LINKER_OPTIONS, -67)                                                                 \
    X(INVALID_DEVICE_PARTITION_COUNT, -68)                                                         \
    X(INVALID_PIPE_SIZE, -69)                                                                      \
    X(INVALID_DEVICE_QUEUE, -70)                                                                   \
    X(INVALID_SPEC_ID, -71)                                                                        \
    X(MAX_SIZE_RESTRICTION_EXCEEDED, -72)                                                          \
    X(PLATFORM_NOT_FOUND_KHR, -1001)                                                               \
    X(CONTEXT_TERMINATED_KHR, -1121)

enum {
#define IRON_CL_ENUM(name, value) IRON_CL_##name = (value),
    IRON_CL_CONSTANT_MAP(IRON_CL_ENUM) IRON_CL_ERROR_MAP(IRON_CL_ENUM)
#undef IRON_CL_ENUM
};

#endif
