/* SPDX-License-Identifier: MIT */
/*
 * gpu.h: what the rest of iron knows of GPUs: one small table of functions a backend, and the
 * objects they make. CUDA and OpenCL stand behind it and never see each other; nobody else sees
 * either of them.
 *
 *   backend   probe tells how many devices there are, or why there are none
 *   device    opened by index; everything else belongs to one
 *   image     the kernels of an op as they are embedded: CUDA machine code and OpenCL text
 *   program   an image loaded on a device; kernels are found in it by name
 *   buffer    memory of one kind: the device's own, page-locked, managed, or mapped
 *   queue     work in order; queues of one device run beside each other
 *   event     a point in a queue: others wait for it, the host waits for it, two give a time
 *   graph     a queue's work, recorded once and replayed with one call (optional)
 *
 * Contract of every call that can fail: it returns a status and, on failure, leaves *out NULL and
 * nothing behind. A driver's error is reported with its own name and text, and marks the device:
 * later calls on that device fail with the same words, at once and without touching the driver
 * (running out of memory and asking for what a device cannot do are no such errors). The process
 * always lives. Parents outlive their children. One device belongs to one thread at a time.
 *
 * Callers use the iron__gpu_... functions below; they keep the contract about marked devices and
 * call through the table.
 */
#ifndef IRON_GPU_GPU_H
#define IRON_GPU_GPU_H

#include <iron/iron.h>

#include <stdbool.h>

typedef struct iron__gpu_ops iron__gpu_ops;
typedef struct iron__gpu_program iron__gpu_program;
typedef struct iron__gpu_kernel iron__gpu_kernel; /* belongs to its program */
typedef struct iron__gpu_event iron__gpu_event;
typedef struct iron__gpu_graph iron__gpu_graph;

/* Device buffers begin at multiples of this, at least. */
#define IRON_GPU_ALIGNMENT 256u

/* Ways to bring the host's tokens before a kernel. The names are the command's. */
typedef enum iron__gpu_strategy {
    IRON_GPU_PAGEABLE,     /* ordinary memory, copied by the driver */
    IRON_GPU_PINNED,       /* page-locked memory, one queue */
    IRON_GPU_STREAMS,      /* page-locked memory, several queues: copies under kernels */
    IRON_GPU_UVM,          /* managed memory, pages come when a kernel touches them */
    IRON_GPU_UVM_PREFETCH, /* managed memory, sent ahead of the kernel */
    IRON_GPU_ZERO_COPY,    /* kernels read page-locked host memory across the bus */
    IRON_GPU_STRATEGIES
} iron__gpu_strategy;

/* "pageable", "pinned", "streams", "uvm", "uvm-prefetch", "zero-copy". */
const char *iron__gpu_strategy_name(iron__gpu_strategy strategy);
/* IRON_GPU_STRATEGIES: there is none of that name. */
iron__gpu_strategy iron__gpu_strategy_find(const char *name);

typedef enum iron__gpu_memory {
    IRON_GPU_MEMORY_DEVICE,  /* the device's own; the host copies to and from it */
    IRON_GPU_MEMORY_PINNED,  /* page-locked host memory: copies run at the bus's full rate */
    IRON_GPU_MEMORY_MANAGED, /* one address for both sides, moved on demand */
    IRON_GPU_MEMORY_MAPPED   /* page-locked host memory that kernels read directly */
} iron__gpu_memory;

typedef struct iron__gpu_info {
    char name[96];   /* "NVIDIA H200" */
    char driver[96]; /* "CUDA 13.0, driver 580.159.04"; OpenCL: platform and driver version */
    bool is_gpu;     /* false: an OpenCL device that is a CPU or something else */
    uint32_t units;  /* multiprocessors, compute units */
    uint32_t group_threads_max;
    uint32_t subgroup; /* threads that run in step; 1: unknown */
    uint64_t local_bytes_max;
    uint64_t memory_bytes;
    uint64_t cache_bytes; /* last level; 0 unknown */
    uint32_t version;     /* compute capability or OpenCL version: major * 100 + minor * 10 */
    bool has_addresses;   /* device memory is addresses: a caller's may begin anywhere in it */
    bool can_graph;
    bool can_overlap; /* IRON_GPU_LAUNCH_OVERLAP has an effect */
    bool can_gather;  /* IRON_GPU_LAUNCH_TOGETHER is kept */
    bool has_f64;     /* kernels may compute with doubles */
    bool has_textures;
    uint64_t keep_bytes_max; /* of the last-level cache that can be set aside; 0: none */
    /* Why a strategy cannot be had on this device; "" where it can. */
    char lacks[IRON_GPU_STRATEGIES][96];
} iron__gpu_info;

/* What a device does at this moment; figures that it does not tell are 0. */
typedef struct iron__gpu_clocks {
    uint32_t core_mhz, memory_mhz, core_max_mhz, temperature_c, power_w;
    bool is_throttled; /* slower than it was asked to be: heat, or the power supply */
    char reasons[96];  /* why it is not at its highest clock: "idle, power cap"; "": no reason */
} iron__gpu_clocks;

/* Kernels as a build embeds them. */
typedef struct iron__gpu_image {
    const char *name;                            /* "tokens" */
    const char *source;                          /* OpenCL C, complete; NULL: none */
    const void *machine_code, *machine_code_end; /* a CUDA fatbin; empty: none */
    /* The most registers that a thread of its kernels should take where a compiler lets itself be
     * told for a whole text only (OpenCL's); 0: as many as it likes. CUDA's kernels say it each for
     * themselves (K_KERNEL_DENSE). */
    uint32_t most_registers;
} iron__gpu_image;

/* Symbols that cmake/Kernels.cmake makes for a program, and the image of them. The code is empty in
 * a build without nvcc. */
#define IRON_GPU_EMBEDDED(program)                                                                 \
    extern const char iron__##program##_kernels_text[];                                            \
    extern const unsigned char iron__##program##_kernels_code[];                                   \
    extern const unsigned char iron__##program##_kernels_code_end[];
#define IRON_GPU_IMAGE(program) IRON_GPU_IMAGE_WITHIN(program, 0)
#define IRON_GPU_IMAGE_WITHIN(program, registers)                                                  \
    {                                                                                              \
#program, iron__##program##_kernels_text, iron__##program##_kernels_code,                  \
            iron__##program##_kernels_code_end, registers                                          \
    }

typedef struct iron__gpu_device {
    const iron__gpu_ops *ops;
    iron__gpu_info info;
    iron_error failure;            /* status IRON_OK until a driver's error marks the device */
    struct iron__gpu_watch *watch; /* NULL: nobody watches the launches */
    uint64_t kept_bytes; /* of the cache, set aside at present; iron__gpu_keep sees to it */
    /* Kernels have told the cache themselves what to keep, says who launched them; until
     * iron__gpu_keep(0) lets go of that, too. */
    bool has_marks;
} iron__gpu_device;

typedef struct iron__gpu_buffer {
    iron__gpu_device *device;
    iron__gpu_memory memory;
    size_t bytes;
    void *host;        /* where the host sees it; NULL for device memory */
    uintptr_t native;  /* CUdeviceptr, cl_mem, or an SVM pointer */
    size_t lead_bytes; /* a wrapped buffer begins so many bytes after native, which is aligned */
    bool is_borrowed;  /* the caller's: destroy frees nothing of it */
} iron__gpu_buffer;

typedef struct iron__gpu_queue {
    iron__gpu_device *device;
    uintptr_t native; /* CUstream, cl_command_queue */
    bool is_borrowed;
} iron__gpu_queue;

/* bytes from `from` at from_offset to `to` at to_offset; a side without a buffer is host memory,
 * which must stay as it is until the queue has passed the copy. */
typedef struct iron__gpu_copy {
    const iron__gpu_buffer *from, *to;
    const void *from_host;
    void *to_host;
    size_t from_offset, to_offset, bytes;
} iron__gpu_copy;

/* A buffer (whole: offsets are arguments of their own), or a value copied at the launch. */
typedef struct iron__gpu_arg {
    const iron__gpu_buffer *buffer;
    const void *value;
    size_t bytes;
} iron__gpu_arg;

#define IRON_GPU_BUFFER(b) ((iron__gpu_arg){.buffer = (b)})
#define IRON_GPU_VALUE(v)  ((iron__gpu_arg){.value = &(v), .bytes = sizeof(v)})

enum {
    /* May begin before the launch ahead of it in the queue has ended; the kernel itself waits where
     * it must. Without effect where a device cannot. */
    IRON_GPU_LAUNCH_OVERLAP = 1,
    /* All groups run at the same time, or the launch fails: they may wait for each other. */
    IRON_GPU_LAUNCH_TOGETHER = 2
};

typedef struct iron__gpu_launch {
    iron__gpu_kernel *kernel;
    uint32_t groups[2];  /* x below 2^31, y at most 65,535; a 0 in y means 1 */
    uint32_t threads[2]; /* of a group; a 0 in y means 1 */
    uint32_t flags;
    const iron__gpu_arg *args;
    size_t arg_count;
    /* Of the kernel's K_DYNAMIC, a group each: not among args. 0 where it has none.
     * IRON_E_UNSUPPORTED where the device has less. */
    size_t local_bytes;
    /* (optional) What the kernel touches in the first kept_bytes of it shall stay in the part of
     * the cache that iron__gpu_keep has set aside, or as much of it as fits there; the rest of
     * them passes through. Without effect where nothing is set aside. */
    const iron__gpu_buffer *kept;
    size_t kept_bytes;
} iron__gpu_launch;

/* What a kernel takes of a unit, from the driver; figures that it does not tell are 0. */
typedef struct iron__gpu_facts {
    uint32_t registers;   /* a thread */
    uint32_t spill_bytes; /* a thread: what did not fit into registers */
    uint64_t local_bytes; /* a group: its K_LOCAL_VARs and its K_DYNAMIC */
    uint32_t groups;      /* that a unit holds at a time */
    double occupancy;     /* threads that a unit holds at a time, of those it could: 0 to 1 */
} iron__gpu_facts;

/* One kernel as it was launched. */
typedef struct iron__gpu_sighting {
    char kernel[64];
    uint64_t groups;
    uint32_t threads; /* of a group */
    iron__gpu_facts facts;
} iron__gpu_sighting;

#define IRON_GPU_SIGHTINGS 8u

/* The kernels that were launched on a device while it is watched, each once, in order: the largest
 * launch of each. device->watch points to one while somebody looks. */
typedef struct iron__gpu_watch {
    iron__gpu_sighting seen[IRON_GPU_SIGHTINGS];
    size_t count;
} iron__gpu_watch;

/* One backend. Everything but probe and describe gets objects of its own making. An entry marked
 * (optional) may be NULL, with the default that is said there. */
struct iron__gpu_ops {
    const char *name;

    /* Cheap, and callable any number of times from any thread. IRON_E_UNSUPPORTED with the reason
     * when there is no driver, an old one, or no device: that is no error. */
    iron_status (*probe)(size_t *count, iron_error *err);
    iron_status (*describe)(size_t index, iron__gpu_info *info, iron_error *err);
    iron_status (*device_open)(size_t index, iron__gpu_device **out, iron_error *err);
    void (*device_close)(iron__gpu_device *device);
    /* (optional: 0) The native context, for callers who bring memory of their own. */
    uintptr_t (*context)(iron__gpu_device *device);
    /* (optional: IRON_E_UNSUPPORTED) Never marks the device: it works on without being watched. */
    iron_status (*clocks)(iron__gpu_device *device, iron__gpu_clocks *out, iron_error *err);

    iron_status (*program_load)(iron__gpu_device *device, const iron__gpu_image *image,
                                iron__gpu_program **out, iron_error *err);
    void (*program_unload)(iron__gpu_program *program);
    iron_status (*kernel_find)(iron__gpu_program *program, const char *name, iron__gpu_kernel **out,
                               iron_error *err);
    /* (optional: IRON_E_UNSUPPORTED) The first bytes of a program's K_CONSTANT_BLOCK of that name,
     * as a buffer to copy to and to give to kernels. Destroy it before the program; copies to it
     * and kernels that read it must follow each other. */
    iron_status (*constant_find)(iron__gpu_program *program, const char *name, size_t bytes,
                                 iron__gpu_buffer **out, iron_error *err);

    /* (optional: all 0) For groups of so many threads with so much K_DYNAMIC. Not to tell is no
     * failure, and never marks the device. */
    iron_status (*kernel_facts)(iron__gpu_device *device, const iron__gpu_kernel *kernel,
                                uint32_t threads, size_t local_bytes, iron__gpu_facts *out,
                                iron_error *err);
    const char *(*kernel_name)(const iron__gpu_kernel *kernel);

    /* Contents are undefined. IRON_E_NOMEM says how much was asked for and what is free. */
    iron_status (*buffer_create)(iron__gpu_device *device, iron__gpu_memory memory, size_t bytes,
                                 iron__gpu_buffer **out, iron_error *err);
    /* The caller's own device memory; the alignment to 4 bytes is checked. Where addresses are
     * visible, native is rounded down to 16 bytes, and lead_bytes says by how much. */
    iron_status (*buffer_wrap)(iron__gpu_device *device, uintptr_t native, size_t bytes,
                               iron__gpu_buffer **out, iron_error *err);
    void (*buffer_destroy)(iron__gpu_buffer *buffer);
    /* (optional: nothing) The host is about to write a managed or mapped buffer, and has done. */
    iron_status (*host_begin)(iron__gpu_queue *queue, iron__gpu_buffer *buffer, iron_error *err);
    iron_status (*host_end)(iron__gpu_queue *queue, iron__gpu_buffer *buffer, iron_error *err);
    /* (optional: false) Is this host memory page-locked already, so that copies from it are fast
     * and do not block? */
    bool (*is_pinned)(iron__gpu_device *device, const void *memory, size_t bytes);

    /* (optional: info.has_textures is false) The buffer's u32 as a texture: a handle that kernels
     * take as a k_u64. IRON_E_UNSUPPORTED where the buffer is too long for one. A buffer that was
     * created begins where a texture may; wrapped memory that does not is IRON_E_ARG. Destroy it
     * before the buffer. */
    iron_status (*texture_create)(const iron__gpu_buffer *buffer, uint64_t *handle,
                                  iron_error *err);
    void (*texture_destroy)(iron__gpu_device *device, uint64_t handle);
    /* (optional: info.keep_bytes_max is 0) Sets so many bytes of the last-level cache aside for
     * what launches say they keep; 0: gives them back, and lets go of what is kept, as closing the
     * device does. */
    iron_status (*keep)(iron__gpu_device *device, uint64_t bytes, iron_error *err);

    iron_status (*queue_create)(iron__gpu_device *device, iron__gpu_queue **out, iron_error *err);
    /* The caller's own queue or stream (0: CUDA's default stream). */
    iron_status (*queue_wrap)(iron__gpu_device *device, uintptr_t native, iron__gpu_queue **out,
                              iron_error *err);
    void (*queue_destroy)(iron__gpu_queue *queue); /* does not wait for the caller's own */
    iron_status (*queue_wait)(iron__gpu_queue *queue, iron_error *err);

    /* All of these only put work into the queue. */
    iron_status (*clear)(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t offset,
                         size_t bytes, iron_error *err); /* zeros; multiples of 4 */
    iron_status (*copy)(iron__gpu_queue *queue, const iron__gpu_copy *copy, iron_error *err);
    iron_status (*prefetch)(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t bytes,
                            iron_error *err); /* (optional: nothing) managed memory, ahead */
    iron_status (*launch)(iron__gpu_queue *queue, const iron__gpu_launch *launch, iron_error *err);

    iron_status (*event_create)(iron__gpu_device *device, iron__gpu_event **out, iron_error *err);
    void (*event_destroy)(iron__gpu_event *event);
    iron_status (*event_record)(iron__gpu_queue *queue, iron__gpu_event *event, iron_error *err);
    /* What is put into the queue from now on waits for the event's last record. */
    iron_status (*event_follow)(iron__gpu_queue *queue, iron__gpu_event *event, iron_error *err);
    iron_status (*event_wait)(iron__gpu_event *event, iron_error *err); /* the host waits */
    iron_status (*event_elapsed)(iron__gpu_event *from, iron__gpu_event *to, double *ms,
                                 iron_error *err); /* after event_wait(to) */

    /* (optional: info.can_graph is false) What is put into the queue in between is recorded. */
    iron_status (*graph_begin)(iron__gpu_queue *queue, iron_error *err);
    iron_status (*graph_end)(iron__gpu_queue *queue, iron__gpu_graph **out, iron_error *err);
    iron_status (*graph_replay)(iron__gpu_graph *graph, iron__gpu_queue *queue, iron_error *err);
    void (*graph_destroy)(iron__gpu_graph *graph);
};

/* Backends by number, whether they can be used or not: "cuda", "opencl". find: the count if there
 * is none of that name. */
size_t iron__gpu_backend_count(void);
const char *iron__gpu_backend_name(size_t backend);
size_t iron__gpu_backend_find(const char *name);

/* How many devices, or IRON_E_UNSUPPORTED with the reason why none can be used by this build. */
iron_status iron__gpu_probe(size_t backend, size_t *count, iron_error *err);
iron_status iron__gpu_describe(size_t backend, size_t index, iron__gpu_info *info, iron_error *err);
iron_status iron__gpu_device_open(size_t backend, size_t index, iron__gpu_device **out,
                                  iron_error *err);

/* From what users ask for to a backend. check: is it here, with a device of that number?
 * is_for_auto: and is that a GPU? CPUs behind OpenCL must be asked for by name. choose: by a name,
 * "cpu" among them, or NULL or "auto" for the first backend with such a GPU; backend_count stands
 * for the CPU. */
bool iron__gpu_is_auto(const char *name);
iron_status iron__gpu_check(size_t backend, uint32_t device, iron_error *err);
bool iron__gpu_is_for_auto(size_t backend, uint32_t device);
iron_status iron__gpu_choose(const char *name, uint32_t device, size_t *backend, iron_error *err);

/* The same as the table's entries, for devices that may be marked; destroy and close take NULL. */
void iron__gpu_device_close(iron__gpu_device *device);
iron_status iron__gpu_clocks_read(iron__gpu_device *device, iron__gpu_clocks *out, iron_error *err);
iron_status iron__gpu_program_load(iron__gpu_device *device, const iron__gpu_image *image,
                                   iron__gpu_program **out, iron_error *err);
void iron__gpu_program_unload(iron__gpu_device *device, iron__gpu_program *program);
iron_status iron__gpu_kernel_find(iron__gpu_device *device, iron__gpu_program *program,
                                  const char *name, iron__gpu_kernel **out, iron_error *err);
iron_status iron__gpu_constant_find(iron__gpu_device *device, iron__gpu_program *program,
                                    const char *name, size_t bytes, iron__gpu_buffer **out,
                                    iron_error *err);
iron_status iron__gpu_kernel_facts(iron__gpu_device *device, const iron__gpu_kernel *kernel,
                                   uint32_t threads, size_t local_bytes, iron__gpu_facts *out,
                                   iron_error *err);
iron_status iron__gpu_texture_create(const iron__gpu_buffer *buffer, uint64_t *handle,
                                     iron_error *err);
void iron__gpu_texture_destroy(iron__gpu_device *device, uint64_t handle); /* takes 0, too */
iron_status iron__gpu_keep(iron__gpu_device *device, uint64_t bytes, iron_error *err);
iron_status iron__gpu_buffer_create(iron__gpu_device *device, iron__gpu_memory memory, size_t bytes,
                                    iron__gpu_buffer **out, iron_error *err);
iron_status iron__gpu_buffer_wrap(iron__gpu_device *device, uintptr_t native, size_t bytes,
                                  iron__gpu_buffer **out, iron_error *err);
void iron__gpu_buffer_destroy(iron__gpu_buffer *buffer);
iron_status iron__gpu_host_begin(iron__gpu_queue *queue, iron__gpu_buffer *buffer, iron_error *err);
iron_status iron__gpu_host_end(iron__gpu_queue *queue, iron__gpu_buffer *buffer, iron_error *err);
bool iron__gpu_is_pinned(iron__gpu_device *device, const void *memory, size_t bytes);
iron_status iron__gpu_queue_create(iron__gpu_device *device, iron__gpu_queue **out,
                                   iron_error *err);
iron_status iron__gpu_queue_wrap(iron__gpu_device *device, uintptr_t native, iron__gpu_queue **out,
                                 iron_error *err);
void iron__gpu_queue_destroy(iron__gpu_queue *queue);
iron_status iron__gpu_queue_wait(iron__gpu_queue *queue, iron_error *err);
iron_status iron__gpu_clear(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t offset,
                            size_t bytes, iron_error *err);
/* The first bytes of a new buffer, in a queue of its own, and waits. */
iron_status iron__gpu_clear_now(iron__gpu_buffer *buffer, size_t bytes, iron_error *err);
iron_status iron__gpu_copy_bytes(iron__gpu_queue *queue, const iron__gpu_copy *copy,
                                 iron_error *err);
iron_status iron__gpu_prefetch(iron__gpu_queue *queue, iron__gpu_buffer *buffer, size_t bytes,
                               iron_error *err);
iron_status iron__gpu_run(iron__gpu_queue *queue, const iron__gpu_launch *launch, iron_error *err);
iron_status iron__gpu_event_create(iron__gpu_device *device, iron__gpu_event **out,
                                   iron_error *err);
void iron__gpu_event_destroy(iron__gpu_device *device, iron__gpu_event *event);
iron_status iron__gpu_event_record(iron__gpu_queue *queue, iron__gpu_event *event, iron_error *err);
iron_status iron__gpu_event_follow(iron__gpu_queue *queue, iron__gpu_event *event, iron_error *err);
iron_status iron__gpu_event_wait(iron__gpu_device *device, iron__gpu_event *event, iron_error *err);
iron_status iron__gpu_event_elapsed(iron__gpu_device *device, iron__gpu_event *from,
                                    iron__gpu_event *to, double *ms, iron_error *err);
iron_status iron__gpu_graph_begin(iron__gpu_queue *queue, iron_error *err);
iron_status iron__gpu_graph_end(iron__gpu_queue *queue, iron__gpu_graph **out, iron_error *err);
iron_status iron__gpu_graph_replay(iron__gpu_graph *graph, iron__gpu_queue *queue, iron_error *err);
void iron__gpu_graph_destroy(iron__gpu_device *device, iron__gpu_graph *graph);

#endif
