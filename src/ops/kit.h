/* SPDX-License-Identifier: MIT */
/*
 * kit.h: the common form of a GPU contender: kernels of one program, some device buffers, and a
 * function that launches the kernels. A row states them in its launcher, whose create, destroy,
 * device_bytes and spoil are iron__kit_... functions:
 *
 *   {"tiled", "32 x 32 tiles", "naive", IRON_ON_GPU,
 *    .gpu = IRON_KIT(.kernels = {"transpose_tiled"}, .run = run_tiled)}
 *
 * The op's file defines the program, `image`; launchers without one need no kernels of their own.
 *
 * A recording captures a contender's launches once and replays them with one call. It contains the
 * addresses of the buffers, so the first run records, and so does each run with other buffers.
 */
#ifndef IRON_OPS_KIT_H
#define IRON_OPS_KIT_H

#include "ops/op.h"

/* A launcher's `run`. */
typedef iron_status (*iron__recorded_run)(iron__gpu_work *work, const iron__gpu_data *data,
                                          iron__gpu_queue *queue, iron_error *err);

/* Enqueues what `run` enqueues, as a replay of the work's recording. */
iron_status iron__recording_run(iron__gpu_work *work, iron__recorded_run run,
                                const iron__gpu_data *data, iron__gpu_queue *queue,
                                iron_error *err);

/* A launcher's `suits`: IRON_E_UNSUPPORTED if the device cannot record launches. */
iron_status iron__recording_suits(const iron__gpu_device *device, const iron__case *c,
                                  iron_error *err);

/* The state of such a contender. */
struct iron__gpu_work {
    iron__gpu_device *device;
    iron__contender row;
    const iron__gpu_launcher *spec; /* row.gpu */
    const iron__op_problem *problem;
    iron__case c;
    iron__gpu_program *program;
    iron__gpu_kernel *kernels[IRON_KIT_KERNELS];
    iron__gpu_buffer *buffers[IRON_KIT_BUFFERS];
    iron__gpu_graph *graph; /* a recording, or NULL; released by destroy, like texture and event */
    uintptr_t recorded[3];  /* the two inputs and the output of the recording */
    uint64_t texture;
    iron__gpu_event *event;
    uint32_t parts;     /* the largest part count, at least 1 */
    uint64_t params[4]; /* launch parameters that set_up computes for run */
    void *own;          /* of the op: from iron__allocate in set_up, released by destroy */
};

iron_status iron__kit_create(iron__gpu_device *device, const iron__contender *row,
                             const iron__op_problem *problem, uint32_t parts, iron__gpu_work **out,
                             iron_error *err);
void iron__kit_destroy(iron__gpu_work *work);
uint64_t iron__kit_device_bytes(const iron__contender *row, const iron__case *c);
/* Clears the scratch buffers. */
iron_status iron__kit_spoil(iron__gpu_work *work, iron__gpu_queue *queue, iron_error *err);

/* For set_up: finds kernel number `index` by its name without and with the element type; allocates
 * buffer number `index`. */
iron_status iron__kit_find(iron__gpu_work *work, size_t index, const char *name, bool is_typed,
                           iron_error *err);
iron_status iron__kit_allocate(iron__gpu_work *work, size_t index, uint64_t bytes, iron_error *err);

/* Defines `image`, the program of an op's folder. */
#define IRON_KIT_IMAGE(program)                                                                    \
    IRON_GPU_EMBEDDED(program)                                                                     \
    static const iron__gpu_image image = IRON_GPU_IMAGE(program);

/* The address of a launcher of the common form; the arguments are its other members. */
#define IRON_KIT(...)                                                                              \
    &(const iron__gpu_launcher) {                                                                  \
        .create = iron__kit_create, .destroy = iron__kit_destroy,                                  \
        .device_bytes = iron__kit_device_bytes, .spoil = iron__kit_spoil, .image = &image,         \
        __VA_ARGS__                                                                                \
    }

/* A launcher's `run` for a kernel 0 whose arguments are all inputs, the output, and the number of
 * elements: spec->sharing groups of spec->threads for each spec->block elements. */
iron_status iron__kit_run(iron__gpu_work *work, const iron__gpu_data *data, iron__gpu_queue *queue,
                          iron_error *err);

/* Members args and arg_count of an iron__gpu_launch. */
#define IRON_KIT_ARGS(...)                                                                         \
    .args = (const iron__gpu_arg[]){__VA_ARGS__},                                                  \
    .arg_count = IRON_KIT_COUNT(((const iron__gpu_arg[]){__VA_ARGS__}))

/* Launches a kernel on `count` groups of `size` threads, with the rest as its arguments. */
#define IRON_KIT_LAUNCH(queue, err, which, count, size, ...)                                       \
    iron__gpu_run(queue,                                                                           \
                  &(const iron__gpu_launch){.kernel = (which),                                     \
                                            .groups = {(uint32_t)(count)},                         \
                                            .threads = {(size)},                                   \
                                            IRON_KIT_ARGS(__VA_ARGS__)},                           \
                  err)

/* How many pieces of `size` cover `of`. */
static inline uint64_t iron__kit_pieces(uint64_t of, uint64_t size) {
    return (of + size - 1) / size;
}

/* Groups for a kernel that loops over its pieces: one per piece, at most `per_unit` per compute
 * unit, at least one. */
uint32_t iron__kit_groups(const iron__gpu_work *work, uint64_t pieces, uint32_t per_unit);

#define IRON_KIT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
