/* SPDX-License-Identifier: MIT */
/*
 * gpu_passes.c: the kernels of ceilings.k, loaded and launched. Who times them, and over what, is
 * decided elsewhere (gpu_ceilings.c).
 */
#include "arena/gpu_passes.h"

#include "core/fail.h"

#include <stdio.h>

#define GROUP_THREADS 256u /* CEILINGS_THREADS of ceilings.k */

IRON_GPU_EMBEDDED(ceilings)

static const iron__gpu_image image = IRON_GPU_IMAGE(ceilings);

static const struct {
    const char *kernel, *alone;
} names[IRON_PASS_VERBS] = {
    {"ceilings_read", "ceilings_read_alone"},
    {"ceilings_write", "ceilings_write_alone"},
    {"ceilings_copy", "ceilings_copy_alone"},
};

/* A multiprocessor holds 2048 threads, eight groups: half of them with room for more registers,
 * all, and twice as many, which evens out units that fall behind. */
static const iron__pass_shape gpu_shapes[] = {
    {8, IRON_PASS_CONTIGUOUS}, {4, IRON_PASS_CONTIGUOUS}, {16, IRON_PASS_CONTIGUOUS},
    {8, IRON_PASS_STRIDED},    {4, IRON_PASS_STRIDED},    {16, IRON_PASS_STRIDED},
};

static const iron__pass_shape other_shapes[] = {{8, IRON_PASS_ALONE}, {8, IRON_PASS_CONTIGUOUS}};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const iron__pass_shape *iron__pass_shape_at(size_t index) {
    return index < COUNT(gpu_shapes) ? &gpu_shapes[index] : NULL;
}

const iron__pass_shape *iron__pass_shape_for(const iron__gpu_info *info, size_t index) {
    if (info->is_gpu)
        return iron__pass_shape_at(index);
    return index < COUNT(other_shapes) ? &other_shapes[index] : NULL;
}

void iron__pass_shape_name(iron__pass_shape shape, char *text, size_t size) {
    static const char *const orders[] = {"contiguous", "strided", "each alone"};

    snprintf(text, size, "%u x %u threads a unit, %s", shape.groups_a_unit, GROUP_THREADS,
             orders[shape.order]);
}

static iron_status load(iron__passes *p, iron_error *err) {
    iron__gpu_device *d = p->device;

    IRON_FAIL_IF(d->info.group_threads_max < GROUP_THREADS, err, IRON_E_UNSUPPORTED,
                 "%s has groups of %u threads at most; its ceilings are measured with %u",
                 d->info.name, d->info.group_threads_max, GROUP_THREADS);
    IRON_TRY(iron__gpu_program_load(d, &image, &p->program, err));
    for (size_t k = 0; k < IRON_PASS_VERBS; k++) {
        IRON_TRY(iron__gpu_kernel_find(d, p->program, names[k].kernel, &p->kernels[k], err));
        IRON_TRY(iron__gpu_kernel_find(d, p->program, names[k].alone, &p->alone[k], err));
    }
    return iron__gpu_buffer_create(d, IRON_GPU_MEMORY_DEVICE, sizeof(uint32_t), &p->result, err);
}

iron_status iron__passes_init(iron__passes *p, iron__gpu_device *device, iron_error *err) {
    iron_status status;

    *p = (iron__passes){.device = device};
    status = load(p, err);
    if (status != IRON_OK)
        iron__passes_deinit(p);
    return status;
}

void iron__passes_deinit(iron__passes *p) {
    if (!p->device)
        return;
    iron__gpu_buffer_destroy(p->result);
    iron__gpu_program_unload(p->device, p->program);
    *p = (iron__passes){.device = NULL};
}

iron_status iron__passes_put(iron__passes *p, iron__gpu_queue *queue, iron__pass_verb verb,
                             iron__pass_shape shape, const iron__gpu_buffer *data, uint64_t quads,
                             uint32_t value, iron_error *err) {
    uint32_t units = p->device->info.units ? p->device->info.units : 1;
    uint32_t is_strided = shape.order == IRON_PASS_STRIDED;
    bool is_alone = shape.order == IRON_PASS_ALONE;
    iron__gpu_arg args[4] = {IRON_GPU_BUFFER(data), IRON_GPU_VALUE(quads)};
    iron__gpu_launch launch = {.kernel = is_alone ? p->alone[verb] : p->kernels[verb],
                               .groups = {units * shape.groups_a_unit},
                               .threads = {GROUP_THREADS},
                               .args = args,
                               .arg_count = 2};

    if (!is_alone)
        args[launch.arg_count++] = IRON_GPU_VALUE(is_strided);
    if (verb == IRON_PASS_READ)
        args[launch.arg_count++] = IRON_GPU_BUFFER(p->result);
    if (verb == IRON_PASS_WRITE)
        args[launch.arg_count++] = IRON_GPU_VALUE(value);
    return iron__gpu_run(queue, &launch, err);
}

iron_status iron__passes_read(iron__passes *p, iron__gpu_queue *queue, iron__pass_shape shape,
                              const iron__gpu_buffer *data, uint64_t quads, iron_error *err) {
    return iron__passes_put(p, queue, IRON_PASS_READ, shape, data, quads, 0, err);
}

iron_status iron__passes_reset(iron__passes *p, iron__gpu_queue *queue, iron_error *err) {
    return iron__gpu_clear(queue, p->result, 0, sizeof(uint32_t), err);
}

iron_status iron__passes_result(iron__passes *p, iron__gpu_queue *queue, uint32_t *xors,
                                iron_error *err) {
    iron__gpu_copy copy = {.from = p->result, .to_host = xors, .bytes = sizeof *xors};

    IRON_TRY(iron__gpu_copy_bytes(queue, &copy, err));
    return iron__gpu_queue_wait(queue, err);
}
