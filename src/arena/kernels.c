/* SPDX-License-Identifier: MIT */
/* kernels.c: see kernels.h. */
#include "arena/kernels.h"

#include <string.h>

static bool has(const iron__gpu_watch *w, const char *name) {
    for (size_t k = 0; k < w->count; k++)
        if (strcmp(w->seen[k].kernel, name) == 0)
            return true;
    return false;
}

const iron__gpu_sighting *iron__kernels_at(const iron__kernels *kernels, size_t index,
                                           bool *is_prepare) {
    *is_prepare = kernels && index >= kernels->answer.count;
    if (!kernels)
        return NULL;
    if (!*is_prepare)
        return &kernels->answer.seen[index];
    index -= kernels->answer.count;
    for (size_t k = 0; k < kernels->prepare.count; k++)
        if (!has(&kernels->answer, kernels->prepare.seen[k].kernel) && index-- == 0)
            return &kernels->prepare.seen[k];
    return NULL;
}

static uint64_t threads_of(const iron__gpu_sighting *kernel) {
    return kernel->groups * kernel->threads;
}

const iron__gpu_sighting *iron__kernels_main(const iron__kernels *kernels) {
    const iron__gpu_sighting *main = NULL, *k;
    bool is_prepare, has_answer = kernels && kernels->answer.count > 0;

    for (size_t at = 0; (k = iron__kernels_at(kernels, at, &is_prepare)); at++)
        if ((!main || threads_of(k) > threads_of(main)) && !(is_prepare && has_answer))
            main = k;
    return main;
}

iron__kernel_figures iron__kernel_figures_of(const iron__gpu_sighting *kernel) {
    const iron__gpu_facts none = {0}, *f = kernel ? &kernel->facts : &none;
    bool is_told = f->registers > 0;

    return (iron__kernel_figures){
        .registers = is_told ? (double)f->registers : -1,
        .local_bytes = is_told || f->local_bytes > 0 ? (double)f->local_bytes : -1,
        .spill_bytes = is_told || f->spill_bytes > 0 ? (double)f->spill_bytes : -1,
        .groups_per_unit = f->groups > 0 ? (double)f->groups : -1,
        .occupancy_percent = f->occupancy > 0 ? 100 * f->occupancy : -1};
}
