/* SPDX-License-Identifier: MIT */
/*
 * gpu.h: GPUs as the rest of iron sees them. CUDA and OpenCL implement the same table of functions
 * (iron__gpu_ops); neither sees the other, and other modules include this header only.
 *
 *   backend   probe returns the number of devices, or the reason why there are none
 *   device    opened by index; owns every other object
 *   image     the kernels of an op as embedded in the binary: CUDA machine code and OpenCL source
 *   program   an image loaded on a device; kernels are looked up in it by name
 *   buffer    memory of one kind: device, page-locked, managed or mapped
 *   queue     commands executed in order; different queues of a device may run concurrently
 *   event     a point in a queue: another queue or the host can wait for it; two give a duration
 *   graph     commands of a queue, recorded once and replayed with one call (optional)
 *
 * Contract: a function that can fail returns a status. On failure it sets *out to NULL and leaks
 * nothing. A driver error is reported with the driver's name and text for it and marks the device
 * as failed: every later call on that device returns the same error without calling the driver.
 * Running out of memory and requesting an unsupported feature do not mark the device. The process
 * never exits. Parents outlive their children. A device is used by one thread at a time.
 */
#ifndef IRON_GPU_GPU_H
#define IRON_GPU_GPU_H

#include "core/fail.h"

#include <iron/iron.h>

#include <stdbool.h>

/* Minimum alignment of device buffers. */
#define IRON_GPU_ALIGNMENT 256u

/* How tokens in host memory reach a kernel. The command uses the same names. */
typedef enum iron__gpu_strategy {
    IRON_GPU_PAGEABLE,     /* ordinary memory, copied by the driver */
    IRON_GPU_PINNED,       /* page-locked memory, one queue */
    IRON_GPU_STREAMS,      /* page-locked memory, several queues: copies overlap kernels */
    IRON_GPU_UVM,          /* managed memory, pages migrate when a kernel touches them */
    IRON_GPU_UVM_PREFETCH, /* managed memory, prefetched before the kernel */
    IRON_GPU_ZERO_COPY,    /* kernels read page-locked host memory across the bus */
    IRON_GPU_STRATEGIES
} iron__gpu_strategy;

/* "pageable", "pinned", "streams", "uvm", "uvm-prefetch", "zero-copy". */
const char *iron__gpu_strategy_name(iron__gpu_strategy strategy);
/* IRON_GPU_STRATEGIES if the name is unknown. */
iron__gpu_strategy iron__gpu_strategy_find(const char *name);

typedef enum iron__gpu_memory {
    IRON_GPU_MEMORY_DEVICE,  /* device memory; the host copies to and from it */
    IRON_GPU_MEMORY_PINNED,  /* page-locked host memory: copies run at full bus bandwidth */
    IRON_GPU_MEMORY_MANAGED, /* one address for host and device, migrated on demand */
    IRON_GPU_MEMORY_MAPPED   /* page-locked host memory that kernels read directly */
} iron__gpu_memory;

typedef struct iron__gpu_info {
    char name[96];   /* "NVIDIA H200" */
    char driver[96]; /* "CUDA 13.0, driver 580.159.04"; OpenCL: platform and driver version */
    bool is_gpu;     /* false: an OpenCL device that is a CPU or an accelerator */
    uint32_t units;  /* multiprocessors, compute units */
    uint32_t group_threads_max;
    uint64_t local_bytes_max;
    uint64_t memory_bytes;
    uint64_t cache_bytes; /* last level; 0: unknown */
    uint32_t version;     /* compute capability or OpenCL version: major * 100 + minor * 10 */
    bool has_addresses;   /* device memory is addressed by pointers: a wrapped buffer may start
                             anywhere in an allocation */
    bool can_graph;
    bool can_overlap;   /* IRON_GPU_LAUNCH_OVERLAP has an effect */
    bool can_cooperate; /* IRON_GPU_LAUNCH_COOPERATIVE is supported */
    bool has_f64;       /* kernels can use doubles */
    bool has_textures;
    uint64_t persisting_bytes_max; /* of last-level cache that can be reserved; 0: none */
    /* Why a strategy is not supported on this device; "" if it is. */
    char lacks[IRON_GPU_STRATEGIES][96];
} iron__gpu_info;

/* Current clocks, temperature, and the energy taken so far. A value the driver does not report is
 * 0. */
typedef struct iron__gpu_clocks {
    uint32_t core_mhz, memory_mhz, celsius;
    uint64_t energy_mj; /* millijoules */
    bool is_throttled;  /* slowed down by heat or by the power supply */
    char reasons[96];   /* why it is below its maximum clock: "idle, power cap"; "": no reason */
} iron__gpu_clocks;

/* Kernels as embedded by the build. */
typedef struct iron__gpu_image {
    const char *name;                            /* "tokens" */
    const char *source;                          /* complete OpenCL C; NULL: none */
    const void *machine_code, *machine_code_end; /* a CUDA fatbin; empty: none */
    /* Maximum registers per thread for compilers that only accept one limit for the whole source
     * (NVIDIA's OpenCL); 0: no limit. CUDA kernels set it individually (K_KERNEL_DENSE). */
    uint32_t registers_max;
    /* A user's: its source is in the backend's own language, and what the compiler says about it
     * goes to standard error. */
    bool is_users;
} iron__gpu_image;

/* Declares the symbols that cmake/Kernels.cmake generates for a program. The machine code is empty
 * in a build without nvcc. */
#define IRON_GPU_EMBEDDED(program)                                                                 \
    extern const char iron__##program##_kernels_text[];                                            \
    extern const unsigned char iron__##program##_kernels_code[];                                   \
    extern const unsigned char iron__##program##_kernels_code_end[];
#define IRON_GPU_IMAGE(program) IRON_GPU_IMAGE_LIMITED(program, 0)
#define IRON_GPU_IMAGE_LIMITED(program, registers)                                                 \
    {                                                                                              \
#program, iron__##program##_kernels_text, iron__##program##_kernels_code,                  \
            iron__##program##_kernels_code_end, registers, false                                   \
    }

/* Objects. gpu.c allocates, lists and frees them; a backend fills `native` and releases it, and
 * never sees an object that could not be made. A backend's own structs of devices and kernels start
 * with these, so a pointer to one is a pointer to the other. */

typedef struct iron__gpu_device {
    const struct iron__gpu_ops *ops;
    iron__gpu_info info;
    iron_error failure; /* status IRON_OK until a driver error marks the device as failed */
    struct iron__gpu_launch_log *launch_log; /* NULL: launches are not logged */
    uint64_t persisting_bytes; /* of cache reserved now; set by iron__gpu_cache_reserve */
    /* Kernels marked cache lines as persisting themselves. Set by the code that launches such
     * kernels; iron__gpu_cache_reserve(0) resets the lines and clears it. */
    bool has_persisting_lines;
} iron__gpu_device;

typedef struct iron__gpu_kernel { /* belongs to its program */
    const char *name;
    struct iron__gpu_kernel *next; /* of its program */
} iron__gpu_kernel;

typedef struct iron__gpu_program {
    iron__gpu_device *device;
    const char *name;          /* of the image */
    void *native;              /* CUmodule, cl_program */
    iron__gpu_kernel *kernels; /* found so far */
} iron__gpu_program;

typedef struct iron__gpu_buffer {
    iron__gpu_device *device;
    iron__gpu_memory memory;
    size_t bytes;
    void *host;           /* host address; NULL for device memory */
    uintptr_t native;     /* CUdeviceptr, cl_mem, or an SVM pointer */
    size_t native_offset; /* a wrapped buffer starts this many bytes after native */
    void *allocation;     /* an SVM pointer as allocated: native is aligned in it */
    bool is_borrowed;     /* wraps memory of the caller; destroy does not free it */
} iron__gpu_buffer;

typedef struct iron__gpu_queue {
    iron__gpu_device *device;
    uintptr_t native; /* CUstream, cl_command_queue */
    bool is_borrowed;
} iron__gpu_queue;

typedef struct iron__gpu_event {
    iron__gpu_device *device;
    void *native; /* CUevent, or the cl_event of the last record */
} iron__gpu_event;

typedef struct iron__gpu_graph {
    iron__gpu_device *device;
    void *native; /* CUgraphExec */
} iron__gpu_graph;

/* Copies bytes from `from` at from_offset to `to` at to_offset. A side without a buffer is host
 * memory, which must not change until the queue has executed the copy. */
typedef struct iron__gpu_copy {
    const iron__gpu_buffer *from, *to;
    const void *from_host;
    void *to_host;
    size_t from_offset, to_offset, bytes;
} iron__gpu_copy;

/* A whole buffer (offsets are separate arguments), or a value that is copied by the launch. */
typedef struct iron__gpu_arg {
    const iron__gpu_buffer *buffer;
    const void *value;
    size_t bytes;
} iron__gpu_arg;

#define IRON_GPU_BUFFER(b) ((iron__gpu_arg){.buffer = (b)})
#define IRON_GPU_VALUE(v)  ((iron__gpu_arg){.value = &(v), .bytes = sizeof(v)})

enum {
    /* May start before the previous launch in the queue has ended; the kernel itself waits where
     * necessary. No effect on devices without support. */
    IRON_GPU_LAUNCH_OVERLAP = 1,
    /* All groups run concurrently, so they may wait for each other; otherwise the launch fails. */
    IRON_GPU_LAUNCH_COOPERATIVE = 2
};

#define IRON_GPU_ARGS_MAX 16u

typedef struct iron__gpu_launch {
    iron__gpu_kernel *kernel;
    uint32_t groups[2];  /* x below 2^31, y at most 65,535; 0 in y means 1 */
    uint32_t threads[2]; /* per group; 0 in y means 1 */
    uint32_t flags;
    const iron__gpu_arg *args;
    size_t arg_count; /* at most IRON_GPU_ARGS_MAX */
    /* Size per group of the kernel's K_DYNAMIC, which is not in args; 0 if it has none.
     * IRON_E_UNSUPPORTED if the device has less. */
    size_t local_bytes;
    /* (optional) Accesses to the first persisting_bytes of this buffer should stay in the cache
     * reserved by iron__gpu_cache_reserve. If they do not all fit, a proportional part stays and
     * the rest is streamed. No effect if nothing is reserved. */
    const iron__gpu_buffer *persisting;
    size_t persisting_bytes;
} iron__gpu_launch;

/* Resources a kernel uses, as reported by the driver. A value it does not report is 0. */
typedef struct iron__gpu_resources {
    uint32_t registers;   /* per thread */
    uint32_t spill_bytes; /* per thread: variables that did not fit into registers */
    uint64_t local_bytes; /* per group: K_LOCAL_VAR variables and K_DYNAMIC */
    uint32_t groups;      /* resident on a unit at a time */
    double occupancy;     /* resident threads of a unit / the maximum: 0 to 1 */
} iron__gpu_resources;

typedef struct iron__gpu_launch_record {
    char kernel[64];
    uint64_t groups;
    uint32_t threads; /* per group */
    iron__gpu_resources resources;
} iron__gpu_launch_record;

#define IRON_GPU_LAUNCH_RECORDS 8u

/* The kernels launched on a device while device->launch_log points here: one record for each, in
 * the order of their first launches, holding its largest launch. Further kernels are ignored. */
typedef struct iron__gpu_launch_log {
    iron__gpu_launch_record seen[IRON_GPU_LAUNCH_RECORDS];
    size_t count;
} iron__gpu_launch_log;

/* A backend. The functions have the contract of the iron__gpu_ functions below that call them and
 * that check what needs no driver: arguments against each other and against the device's
 * properties. Those that make an object get it zeroed, but for its device and what the caller asked
 * for; if they fail, the function that releases the object is called next. Entries marked
 * (optional) may be NULL. */

typedef struct iron__gpu_program_ops {
    iron_status (*load)(iron__gpu_program *program, const iron__gpu_image *image, iron_error *err);
    void (*unload)(iron__gpu_program *program); /* after its kernels were released */
    size_t kernel_bytes;                        /* of the backend's own struct */
    iron_status (*kernel_find)(iron__gpu_program *program, iron__gpu_kernel *kernel,
                               iron_error *err);
    void (*kernel_release)(iron__gpu_program *program, iron__gpu_kernel *kernel); /* (optional) */
    void (*kernel_resources)(iron__gpu_device *device, const iron__gpu_kernel *kernel,
                             uint32_t threads, size_t local_bytes,
                             iron__gpu_resources *out); /* (optional) */
    /* With at least 1 in y, and an allowed number of groups, threads and arguments. */
    iron_status (*launch)(iron__gpu_queue *queue, const iron__gpu_launch *launch, iron_error *err);
} iron__gpu_program_ops;

typedef struct iron__gpu_memory_ops {
    iron_status (*buffer_create)(iron__gpu_buffer *buffer, iron_error *err);
    iron_status (*buffer_wrap)(iron__gpu_buffer *buffer, uintptr_t native, iron_error *err);
    void (*buffer_destroy)(iron__gpu_buffer *buffer);
    iron_status (*constant_find)(iron__gpu_program *program, const char *name,
                                 iron__gpu_buffer *buffer, iron_error *err);
    iron_status (*host_begin)(iron__gpu_queue *queue, iron__gpu_buffer *buffer, iron_error *err);
    /* The rest is (optional). */
    iron_status (*host_end)(iron__gpu_queue *queue, iron__gpu_buffer *buffer, iron_error *err);
    bool (*is_pinned)(iron__gpu_device *device, const void *memory, size_t bytes);
    iron_status (*texture_create)(const iron__gpu_buffer *buffer, uint64_t *handle,
                                  iron_error *err);
    void (*texture_destroy)(iron__gpu_device *device, uint64_t handle);
} iron__gpu_memory_ops;

typedef struct iron__gpu_queue_ops {
    iron_status (*create)(iron__gpu_queue *queue, iron_error *err);
    /* (optional) Checks and retains the caller's queue, which gpu.c then sets. */
    iron_status (*wrap)(iron__gpu_device *device, uintptr_t native, iron_error *err);
    void (*destroy)(iron__gpu_queue *queue); /* with a native queue */
    iron_status (*wait)(iron__gpu_queue *queue, iron_error *err);
    iron_status (*wait_event)(iron__gpu_queue *queue, iron__gpu_event *event, iron_error *err);
    /* These three: with ranges that are in their buffers, and bytes is not 0. */
    iron_status (*clear)(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t offset,
                         size_t bytes, iron_error *err);
    iron_status (*copy)(iron__gpu_queue *queue, const iron__gpu_copy *copy, iron_error *err);
    iron_status (*prefetch)(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t bytes,
                            iron_error *err);
    iron_status (*event_create)(iron__gpu_event *event, iron_error *err); /* (optional) */
    void (*event_destroy)(iron__gpu_event *event);                        /* with a native event */
    iron_status (*event_record)(iron__gpu_queue *queue, iron__gpu_event *event, iron_error *err);
    iron_status (*event_wait)(iron__gpu_event *event, iron_error *err);
    iron_status (*event_elapsed)(iron__gpu_event *from, iron__gpu_event *to, double *ms,
                                 iron_error *err);
    /* (optional: info.can_graph is false) */
    iron_status (*graph_begin)(iron__gpu_queue *queue, iron_error *err);
    /* Allocates *out, which is destroyed next if this fails. */
    iron_status (*graph_end)(iron__gpu_queue *queue, iron__gpu_graph **out, iron_error *err);
    iron_status (*graph_replay)(iron__gpu_graph *graph, iron__gpu_queue *queue, iron_error *err);
    void (*graph_destroy)(iron__gpu_graph *graph);
} iron__gpu_queue_ops;

typedef struct iron__gpu_ops {
    const char *name;
    /* Cheap; may be called any number of times, from any thread. IRON_E_UNSUPPORTED with the reason
     * if there is no driver, no device, or the driver is too old. */
    iron_status (*probe)(size_t *count, iron_error *err);
    iron_status (*describe)(size_t index, iron__gpu_info *info, iron_error *err);
    iron_status (*device_open)(size_t index, iron__gpu_device **out, iron_error *err);
    void (*device_close)(iron__gpu_device *device);
    /* (optional, both or none) Called before and after every function on an open device or its
     * objects, except those that release something, kernel_resources and clocks. leave returns
     * status, or its own failure if status is IRON_OK. */
    iron_status (*enter)(iron__gpu_device *device, iron_error *err);
    iron_status (*leave)(iron__gpu_device *device, iron_status status, iron_error *err);
    /* (optional: 0) The native context, for callers that wrap their own memory and queues. */
    uintptr_t (*context)(iron__gpu_device *device);
    /* (optional) Never marks the device as failed. */
    iron_status (*clocks)(iron__gpu_device *device, iron__gpu_clocks *out, iron_error *err);
    /* (optional: info.persisting_bytes_max is 0) */
    iron_status (*cache_reserve)(iron__gpu_device *device, uint64_t bytes, iron_error *err);
    const iron__gpu_program_ops *program;
    const iron__gpu_memory_ops *memory;
    const iron__gpu_queue_ops *queue;
} iron__gpu_ops;

/* Each is defined if its backend is part of the build. */
extern const iron__gpu_ops iron__cuda_ops, iron__opencl_ops;

/* Backends by number, usable or not: "cuda", "opencl". find returns the count if the name is
 * unknown. */
size_t iron__gpu_backend_count(void);
const char *iron__gpu_backend_name(size_t backend);
size_t iron__gpu_backend_find(const char *name);

/* The number of devices, or IRON_E_UNSUPPORTED with the reason why this build can use none. */
iron_status iron__gpu_probe(size_t backend, size_t *count, iron_error *err);
iron_status iron__gpu_describe(size_t backend, size_t index, iron__gpu_info *info, iron_error *err);

/* The devices of a backend that share some work. */
#define IRON_GPU_DEVICES_MAX  64u
#define IRON_GPU_DEVICES_TEXT ((size_t)4 * IRON_GPU_DEVICES_MAX)

typedef struct iron__gpu_devices {
    size_t backend; /* set by choose; backend_count stands for the CPU */
    bool is_all;    /* all devices of the backend; choose lists them */
    uint32_t count;
    uint32_t index[IRON_GPU_DEVICES_MAX]; /* may repeat */
} iron__gpu_devices;

/* From the text of the option: "all", or numbers with commas between them; NULL: `device`. */
iron_status iron__gpu_devices_parse(const char *text, uint32_t device, iron__gpu_devices *out,
                                    iron_error *err);
/* The numbers with commas between them. */
void iron__gpu_devices_print(const iron__gpu_devices *devices, char text[IRON_GPU_DEVICES_TEXT]);

/* Resolves the user's choice of a backend. is_for_auto: the backend is usable and has these
 * devices, which are GPUs; an OpenCL CPU device must be requested by name, and is not among all
 * then. choose: by name, including "cpu"; NULL or "auto" is the first backend with such GPUs. */
bool iron__gpu_is_auto(const char *name);
bool iron__gpu_is_for_auto(size_t backend, iron__gpu_devices *devices);
/* Does this machine have a device file of a GPU? If not, drivers are loaded only if their backend
 * is named: they take tens of MiB. */
bool iron__gpu_may_exist(void);
iron_status iron__gpu_choose(const char *name, iron__gpu_devices *devices, iron_error *err);

/* From here on every function first returns the error of a device that is marked as failed. The
 * destroy, unload and close functions accept NULL. */

iron_status iron__gpu_device_open(size_t backend, size_t index, iron__gpu_device **out,
                                  iron_error *err);
void iron__gpu_device_close(iron__gpu_device *device);
/* The error that marked the device as failed, if any. */
static inline iron_status iron__gpu_device_check(const iron__gpu_device *device, iron_error *err) {
    if (device->failure.status != IRON_OK && err)
        *err = device->failure;
    return device->failure.status;
}
/* IRON_E_UNSUPPORTED if the backend does not report clocks. */
iron_status iron__gpu_clocks_read(iron__gpu_device *device, iron__gpu_clocks *out, iron_error *err);
/* Reserves part of the last-level cache for memory that launches mark as persisting. 0 ends the
 * reservation and resets persisting lines; closing the device does the same. */
iron_status iron__gpu_cache_reserve(iron__gpu_device *device, uint64_t bytes, iron_error *err);

iron_status iron__gpu_program_load(iron__gpu_device *device, const iron__gpu_image *image,
                                   iron__gpu_program **out, iron_error *err);
void iron__gpu_program_unload(iron__gpu_device *device, iron__gpu_program *program);
/* The first bytes of the program's K_CONSTANT_BLOCK of that name, as a buffer to copy to and to
 * pass to kernels. Destroy it before the program. The caller orders copies to it against kernels
 * that read it. */
iron_status iron__gpu_constant_find(iron__gpu_device *device, iron__gpu_program *program,
                                    const char *name, size_t bytes, iron__gpu_buffer **out,
                                    iron_error *err);
iron_status iron__gpu_kernel_find(iron__gpu_device *device, iron__gpu_program *program,
                                  const char *name, iron__gpu_kernel **out, iron_error *err);
/* For groups of this many threads and this much K_DYNAMIC. Values the driver does not report are
 * 0; that is not a failure and never marks the device. */
iron_status iron__gpu_kernel_resources(iron__gpu_device *device, const iron__gpu_kernel *kernel,
                                       uint32_t threads, size_t local_bytes,
                                       iron__gpu_resources *out, iron_error *err);
/* Enqueues a kernel. */
iron_status iron__gpu_run(iron__gpu_queue *queue, const iron__gpu_launch *launch, iron_error *err);

/* The contents are undefined. IRON_E_NOMEM states the requested and the free size. */
iron_status iron__gpu_buffer_create(iron__gpu_device *device, iron__gpu_memory memory, size_t bytes,
                                    iron__gpu_buffer **out, iron_error *err);
/* Wraps device memory of the caller, which must be aligned to 4 bytes. If info.has_addresses,
 * native is rounded down to 16 bytes and native_offset holds the difference. */
iron_status iron__gpu_buffer_wrap(iron__gpu_device *device, uintptr_t native, size_t bytes,
                                  iron__gpu_buffer **out, iron_error *err);
void iron__gpu_buffer_destroy(iron__gpu_buffer *buffer);
/* Bracket the host's writes to a managed or mapped buffer. */
iron_status iron__gpu_host_begin(iron__gpu_queue *queue, iron__gpu_buffer *buffer, iron_error *err);
iron_status iron__gpu_host_end(iron__gpu_queue *queue, iron__gpu_buffer *buffer, iron_error *err);
/* Whether this host memory is page-locked, so that copies from it are fast and asynchronous. */
bool iron__gpu_is_pinned(iron__gpu_device *device, const void *memory, size_t bytes);
/* The buffer as a texture of u32: a handle that kernels take as a k_u64. IRON_E_UNSUPPORTED if the
 * buffer is too long, IRON_E_ARG if wrapped memory is not aligned for textures (created buffers
 * are). Destroy it before the buffer; destroy accepts 0. */
iron_status iron__gpu_texture_create(const iron__gpu_buffer *buffer, uint64_t *handle,
                                     iron_error *err);
void iron__gpu_texture_destroy(iron__gpu_device *device, uint64_t handle);

iron_status iron__gpu_queue_create(iron__gpu_device *device, iron__gpu_queue **out,
                                   iron_error *err);
/* Wraps the caller's queue or stream (0: CUDA's default stream). Destroying the wrapper does not
 * wait for its commands. */
iron_status iron__gpu_queue_wrap(iron__gpu_device *device, uintptr_t native, iron__gpu_queue **out,
                                 iron_error *err);
void iron__gpu_queue_destroy(iron__gpu_queue *queue);
/* The host waits for all commands in the queue. */
iron_status iron__gpu_queue_wait(iron__gpu_queue *queue, iron_error *err);
/* Later commands of the queue wait for the event's last record. */
iron_status iron__gpu_queue_wait_event(iron__gpu_queue *queue, iron__gpu_event *event,
                                       iron_error *err);
/* Enqueues zeroing; offset and bytes are multiples of 4. */
iron_status iron__gpu_clear(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t offset,
                            size_t bytes, iron_error *err);
/* Zeroes the first bytes of a buffer in a temporary queue, and waits. */
iron_status iron__gpu_clear_now(iron__gpu_buffer *buffer, size_t bytes, iron_error *err);
iron_status iron__gpu_copy_bytes(iron__gpu_queue *queue, const iron__gpu_copy *copy,
                                 iron_error *err);
/* Enqueues a prefetch of managed memory to the device. */
iron_status iron__gpu_prefetch(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t bytes,
                               iron_error *err);

iron_status iron__gpu_event_create(iron__gpu_device *device, iron__gpu_event **out,
                                   iron_error *err);
void iron__gpu_event_destroy(iron__gpu_device *device, iron__gpu_event *event);
iron_status iron__gpu_event_record(iron__gpu_queue *queue, iron__gpu_event *event, iron_error *err);
/* The host waits for the event's last record. */
iron_status iron__gpu_event_wait(iron__gpu_device *device, iron__gpu_event *event, iron_error *err);
/* The time between the records of two events; call it after iron__gpu_event_wait(to). */
iron_status iron__gpu_event_elapsed(iron__gpu_device *device, iron__gpu_event *from,
                                    iron__gpu_event *to, double *ms, iron_error *err);

/* Commands put into the queue between begin and end are recorded instead of executed.
 * IRON_E_UNSUPPORTED if info.can_graph is false. */
iron_status iron__gpu_graph_begin(iron__gpu_queue *queue, iron_error *err);
iron_status iron__gpu_graph_end(iron__gpu_queue *queue, iron__gpu_graph **out, iron_error *err);
iron_status iron__gpu_graph_replay(iron__gpu_graph *graph, iron__gpu_queue *queue, iron_error *err);
void iron__gpu_graph_destroy(iron__gpu_device *device, iron__gpu_graph *graph);

#endif
