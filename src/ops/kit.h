/* SPDX-License-Identifier: MIT */
/*
 * kit.h: GPU contenders that need nothing of their own: kernels of one program, some device memory,
 * and a function that launches. A row's `own` points to a recipe; its way is made of iron__kit_...
 * functions and of the op's own run:
 *
 *   static const iron__kit_recipe tiled = {.image = &image, .kernels = {"transpose_tiled"}};
 *   static const iron__gpu_way way = {IRON_KIT_WAY, .run = run_tiled};
 *   {.name = "tiled", ..., .gpu = &way, .own = &tiled}
 *
 * Ops whose contenders keep more than this define an iron__gpu_work of their own instead.
 */
#ifndef IRON_OPS_KIT_H
#define IRON_OPS_KIT_H

#include "ops/recording.h"

#define IRON_KIT_KERNELS 6u
#define IRON_KIT_BUFFERS 4u

typedef struct iron__kit_recipe {
    const iron__gpu_image *image;
    const char *kernels[IRON_KIT_KERNELS]; /* NULL after the last */
    bool is_typed;                         /* kernels are named after the element type: name_f32 */
    /* (optional) IRON_E_UNSUPPORTED with the reason where device or case do not suit. */
    iron_status (*suits)(const iron__gpu_device *device, const iron__case *c, iron_error *err);
    /* (optional) Bytes of the work's own buffer number `index`; 0: there is none. */
    uint64_t (*buffer_bytes)(const iron__case *c, size_t index);
    uint32_t scratch; /* IRON_BIT(index) of buffers that hold nothing from one run to the next */
    /* (optional) The last part of create; and the first of destroy, also after a set_up that
     * failed. */
    iron_status (*set_up)(iron__gpu_work *work, iron_error *err);
    void (*tear_down)(iron__gpu_work *work);
    const void *own; /* for the op */
} iron__kit_recipe;

/* The object of such a contender. */
struct iron__gpu_work {
    iron__gpu_device *device;
    iron__contender row;
    const iron__kit_recipe *recipe;
    const iron__problem *problem;
    iron__case c;
    iron__gpu_program *program;
    iron__gpu_kernel *kernels[IRON_KIT_KERNELS];
    iron__gpu_buffer *buffers[IRON_KIT_BUFFERS];
    iron__recording recording; /* ended with the object */
    uint64_t texture;          /* likewise */
    uint64_t kept[4];          /* set_up's, for run: numbers that need not be computed again */
};

iron_status iron__kit_create(iron__gpu_device *device, const iron__contender *row,
                             const iron__problem *problem, uint32_t parts, iron__gpu_work **out,
                             iron_error *err);
void iron__kit_destroy(iron__gpu_work *work);
uint64_t iron__kit_device_bytes(const iron__contender *row, const iron__case *c);
/* Clears the scratch buffers. */
iron_status iron__kit_spoil(iron__gpu_work *work, iron__gpu_queue *queue, iron_error *err);

#define IRON_KIT_WAY                                                                               \
    .create = iron__kit_create, .destroy = iron__kit_destroy,                                      \
    .device_bytes = iron__kit_device_bytes, .spoil = iron__kit_spoil

static inline const iron__kit_recipe *iron__kit_recipe_of(const iron__contender *row) {
    return row->own;
}

/* How many pieces of that size cover `of`. */
static inline uint64_t iron__kit_pieces(uint64_t of, uint64_t size) {
    return (of + size - 1) / size;
}

/* Groups for a kernel that walks through its elements: as many as there are pieces, `per_unit` a
 * unit at most, one at least. */
uint32_t iron__kit_groups(const iron__gpu_work *work, uint64_t pieces, uint32_t per_unit);

#define IRON_KIT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
