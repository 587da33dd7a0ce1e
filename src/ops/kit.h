/* SPDX-License-Identifier: MIT */
/*
 * kit.h: the common form of a GPU contender: kernels of one program, some device buffers, and a
 * function that launches the kernels. A row's `own` points to an iron__kit_spec; its launcher
 * consists of iron__kit_... functions and the op's own run:
 *
 *   static const iron__kit_spec tiled = {.image = &image, .kernels = {"transpose_tiled"}};
 *   static const iron__gpu_launcher launcher = {IRON_KIT_LAUNCHER, .run = run_tiled};
 *   {.name = "tiled", ..., .gpu = &launcher, .own = &tiled}
 *
 * Ops with more state use a struct of their own and cast it to iron__gpu_work.
 *
 * A recording captures a contender's launches once and replays them with one call. It contains the
 * addresses of the buffers, so the first run records, and so does each run with other buffers.
 */
#ifndef IRON_OPS_KIT_H
#define IRON_OPS_KIT_H

#include "ops/op.h"

typedef struct iron__recording {
    iron__gpu_graph *graph; /* NULL: nothing recorded */
    uintptr_t buffers[3];   /* the two inputs and the output it was recorded with */
} iron__recording;

/* A launcher's `run`. */
typedef iron_status (*iron__recorded_run)(iron__gpu_work *work, const iron__gpu_data *data,
                                          iron__gpu_queue *queue, iron_error *err);

/* Enqueues what `run` enqueues, as a replay of a recording. The owner of the recording destroys its
 * graph. */
iron_status iron__recording_run(iron__recording *recording, iron__gpu_device *device,
                                iron__recorded_run run, iron__gpu_work *work,
                                const iron__gpu_data *data, iron__gpu_queue *queue,
                                iron_error *err);

/* IRON_E_UNSUPPORTED if the device cannot record launches. */
iron_status iron__recording_suits(const iron__gpu_device *device, iron_error *err);

#define IRON_KIT_KERNELS 6u
#define IRON_KIT_BUFFERS 4u

typedef struct iron__kit_spec {
    const iron__gpu_image *image;
    const char *kernels[IRON_KIT_KERNELS]; /* NULL after the last */
    bool is_typed;                         /* kernel names end with the element type: name_f32 */
    /* (optional) IRON_E_UNSUPPORTED with the reason if the contender cannot run the case. */
    iron_status (*suits)(const iron__gpu_device *device, const iron__case *c, iron_error *err);
    /* (optional) Bytes of the work's buffer number `index`; 0: not allocated. */
    uint64_t (*buffer_bytes)(const iron__case *c, size_t index);
    uint32_t scratch; /* IRON_BIT(index) of buffers whose content is not needed between runs */
    /* (optional) The last step of create, and the first of destroy, also after a failed set_up. */
    iron_status (*set_up)(iron__gpu_work *work, iron_error *err);
    void (*tear_down)(iron__gpu_work *work);
    const void *own; /* for the op */
} iron__kit_spec;

/* The state of such a contender. */
struct iron__gpu_work {
    iron__gpu_device *device;
    iron__contender row;
    const iron__kit_spec *spec;
    const iron__op_problem *problem;
    iron__case c;
    iron__gpu_program *program;
    iron__gpu_kernel *kernels[IRON_KIT_KERNELS];
    iron__gpu_buffer *buffers[IRON_KIT_BUFFERS];
    iron__recording recording; /* released by destroy */
    uint64_t texture;          /* likewise */
    uint64_t params[4];        /* launch parameters that set_up computes for run */
};

iron_status iron__kit_create(iron__gpu_device *device, const iron__contender *row,
                             const iron__op_problem *problem, uint32_t parts, iron__gpu_work **out,
                             iron_error *err);
void iron__kit_destroy(iron__gpu_work *work);
uint64_t iron__kit_device_bytes(const iron__contender *row, const iron__case *c);
/* Clears the scratch buffers. */
iron_status iron__kit_spoil(iron__gpu_work *work, iron__gpu_queue *queue, iron_error *err);

#define IRON_KIT_LAUNCHER                                                                          \
    .create = iron__kit_create, .destroy = iron__kit_destroy,                                      \
    .device_bytes = iron__kit_device_bytes, .spoil = iron__kit_spoil

/* How many pieces of `size` cover `of`. */
static inline uint64_t iron__kit_pieces(uint64_t of, uint64_t size) {
    return (of + size - 1) / size;
}

/* Groups for a kernel that loops over its pieces: one per piece, at most `per_unit` per compute
 * unit, at least one. */
uint32_t iron__kit_groups(const iron__gpu_work *work, uint64_t pieces, uint32_t per_unit);

#define IRON_KIT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
