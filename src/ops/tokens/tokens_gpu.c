/* SPDX-License-Identifier: MIT */
/*
 * tokens_gpu.c: makes the object: program, kernels, device memory; brings the nodes to the device
 * and back. What happens in between is in tokens_gpu_feed.c.
 */
#include "ops/tokens/tokens_gpu_state.h"

#include "core/divisor.h"
#include "core/fail.h"

#include <string.h>

#define STEP_SLOT_BYTES 16u

_Static_assert(sizeof(tokens_span) == 72 && sizeof(tokens_lattice) == 40 &&
                   sizeof(tokens_closing) == 32,
               "kernels see the same layout: 8-byte members first, nothing padded");
_Static_assert(IRON_GPU_ALIGNMENT % 16 == 0, "kernels load 16 bytes at a time from any buffer");
_Static_assert(sizeof(k_u32) == sizeof(((iron__nodes *)0)->xor_accumulators[0]),
               "accumulators are 32 bits wide on the device too: atomics work on whole words");

static iron_status find_kernels(iron__tokens_gpu *t, iron_error *err) {
    iron__tokens_gpu_kernels *k = &t->kernels;
    const struct {
        const char *name;
        iron__gpu_kernel **kernel;
    } wanted[] = {
        {t->config.row->kernel, &k->reduce},  {"tokens_champion_few", &k->few},
        {"tokens_champion_whole", &k->whole}, {"tokens_apply_one", &k->apply_one},
        {"tokens_apply_gather", &k->gather},  {"tokens_apply_settle", &k->settle},
        {"tokens_widen_u8", &k->widen_u8},    {"tokens_widen_u16", &k->widen_u16},
        {"tokens_widen_i64", &k->widen_i64},
    };

    t->program = t->config.program;
    if (!t->program)
        IRON_TRY(iron__gpu_program_load(t->device, &iron__tokens_image, &t->program, err));
    for (size_t n = 0; n < sizeof wanted / sizeof wanted[0]; n++)
        IRON_TRY(
            iron__gpu_kernel_find(t->device, t->program, wanted[n].name, wanted[n].kernel, err));
    if (!t->config.row->takes_many || !t->device->info.can_gather)
        return IRON_OK;
    IRON_TRY(iron__gpu_kernel_find(t->device, t->program, "tokens_champion_step", &k->step, err));
    return iron__gpu_kernel_find(t->device, t->program, "tokens_champion_stride", &k->stride, err);
}

static iron_status make_buffers(iron__tokens_gpu *t, iron_error *err) {
    iron__tokens_gpu_buffers *b = &t->buffers;
    size_t nodes = t->config.nodes;
    size_t entries = t->config.row->per_node ? nodes + 1 : TOKENS_WAITING + 1; /* at least two */
    const struct {
        iron__gpu_buffer **buffer;
        size_t bytes;
    } wanted[] = {
        {&b->xors, entries * sizeof(k_u32)},
        {&b->sums, entries * sizeof(k_u64)},
        {&b->accumulators, nodes * sizeof(k_u32)},
        {&b->potentials, nodes * sizeof(k_f32)},
        {&b->activations, nodes * sizeof(k_f32)},
        {&b->totals, 2 * sizeof(k_u64)},
        {&b->points, TOKENS_POINTS * sizeof(k_u32)},
        {&b->nearest, 2 * (size_t)t->config.lattice->span},
        {&b->additions, nodes * sizeof(k_u32)},
        {&b->batch_potentials, TOKENS_WAITING * sizeof(k_f32)},
        {&b->maps, (size_t)TOKENS_CHUNKS * TOKENS_POINTS},
        {&b->slots, TOKENS_STRIDE_GROUPS * (size_t)STEP_SLOT_BYTES},
        {&b->epochs, sizeof(k_u64)},
        {&b->arrived, sizeof(k_u32)},
        {&b->beyond, sizeof(k_u32)},
    };

    for (size_t n = 0; n < sizeof wanted / sizeof wanted[0]; n++)
        IRON_TRY(iron__gpu_buffer_create(t->device, IRON_GPU_MEMORY_DEVICE, wanted[n].bytes,
                                         wanted[n].buffer, err));
    return IRON_OK;
}

static void fill_params(iron__tokens_gpu *t) {
    const iron_lattice *l = t->config.lattice;
    iron__divisor vocab = iron__divisor_make(t->config.vocab);
    /* a span of 2 ... 65,535 numbers; divisors begin at 2, and so do spans: two points at least */
    iron__divisor span = iron__divisor_make(l->span);
    uint32_t middle = t->config.vocab / 2;
    double inverse = 1.0 / (double)middle;

    t->span = (tokens_span){.batch = t->config.batch,
                            .addend = vocab.addend,
                            .multiplier = vocab.multiplier,
                            .shift = vocab.shift - 32,
                            .vocab = t->config.vocab,
                            .by_batch = t->config.by_batch,
                            .nodes = t->config.nodes};
    t->lattice = (tokens_lattice){.span_addend = span.addend,
                                  .span_multiplier = span.multiplier,
                                  .span_shift = span.shift - 32,
                                  .count = l->count,
                                  .first = l->first,
                                  .last = l->last,
                                  .span = l->span,
                                  .first_fold = l->first_fold,
                                  .nodes = t->config.nodes};
    t->closing = (tokens_closing){.batch = t->config.batch, .middle = middle};
    memcpy(&t->closing.inverse_bits, &inverse, sizeof inverse);
}

static iron_status make_quads(iron__tokens_gpu *t, iron_error *err) {
    iron__quads_gpu_config config = {.program = t->program,
                                     .allocator = t->config.allocator,
                                     .last = t->config.last,
                                     .has_stats = (t->config.lanes & IRON_LANE_STATS) != 0};

    return iron__quads_gpu_create(t->device, &config, &t->quads, err);
}

iron_status iron__tokens_gpu_create(iron__gpu_device *device, const iron__tokens_gpu_config *config,
                                    iron__tokens_gpu **out, iron_error *err) {
    iron__tokens_gpu *t = iron__allocate(config->allocator, 1, sizeof *t, "a GPU's engine", err);
    iron_status status;

    *out = NULL;
    if (!t)
        return IRON_E_NOMEM;
    t->config = *config;
    t->device = device;
    fill_params(t);
    status = find_kernels(t, err);
    if (status == IRON_OK)
        status = make_buffers(t, err);
    if (status == IRON_OK && config->lanes)
        status = make_quads(t, err);
    if (status != IRON_OK) {
        iron__tokens_gpu_destroy(t);
        return status;
    }
    *out = t;
    return IRON_OK;
}

void iron__tokens_gpu_destroy(iron__tokens_gpu *t) {
    if (!t)
        return;
    for (size_t k = 0; k < TOKENS_GPU_BUFFERS; k++)
        iron__gpu_buffer_destroy(t->all_buffers[k]);
    iron__quads_gpu_destroy(t->quads);
    if (!t->config.program)
        iron__gpu_program_unload(t->device, t->program);
    iron__release(t->config.allocator, t);
}

static iron_status upload(iron__gpu_queue *queue, iron__gpu_buffer *to, const void *from,
                          size_t bytes, iron_error *err) {
    iron__gpu_copy copy = {.to = to, .from_host = from, .bytes = bytes};

    return iron__gpu_copy_bytes(queue, &copy, err);
}

static iron_status download(iron__gpu_queue *queue, const iron__gpu_buffer *from, void *to,
                            size_t bytes, iron_error *err) {
    iron__gpu_copy copy = {.from = from, .to_host = to, .bytes = bytes};

    return iron__gpu_copy_bytes(queue, &copy, err);
}

static iron_status clear_all(iron__tokens_gpu *t, iron__gpu_queue *queue, iron_error *err) {
    iron__tokens_gpu_buffers *b = &t->buffers;
    iron__gpu_buffer *cleared[] = {b->xors,   b->sums,    b->additions, b->slots,
                                   b->epochs, b->arrived, b->beyond};

    for (size_t k = 0; k < sizeof cleared / sizeof cleared[0]; k++)
        IRON_TRY(iron__gpu_clear(queue, cleared[k], 0, cleared[k]->bytes, err));
    return IRON_OK;
}

iron_status iron__tokens_gpu_begin(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                   const iron__nodes *nodes, iron__contribution closed,
                                   uint64_t batches, iron_error *err) {
    const iron_lattice *l = t->config.lattice;
    iron__tokens_gpu_buffers *b = &t->buffers;
    size_t n = nodes->count;

    t->totals[0] = closed.sum;
    t->totals[1] = closed.xors;
    t->progress = (iron__tokens_gpu_progress){.closed_tokens = closed.count, .batches = batches};
    t->waiting = 0;
    t->turn = 0;
    t->is_step_last = false;
    IRON_TRY(clear_all(t, queue, err));
    IRON_TRY(upload(queue, b->accumulators, nodes->xor_accumulators, n * sizeof(k_u32), err));
    IRON_TRY(upload(queue, b->potentials, nodes->potentials, n * sizeof(k_f32), err));
    IRON_TRY(upload(queue, b->activations, nodes->activations, n * sizeof(k_f32), err));
    IRON_TRY(upload(queue, b->totals, t->totals, sizeof t->totals, err));
    IRON_TRY(upload(queue, b->points, l->points, sizeof l->points, err));
    IRON_TRY(upload(queue, b->nearest, l->nearest, 2 * (size_t)l->span - 1, err));
    return iron__gpu_queue_wait(queue, err);
}

iron_status iron__tokens_gpu_fetch(iron__tokens_gpu *t, iron__gpu_queue *queue, iron__nodes *nodes,
                                   iron__contribution *closed, iron_error *err) {
    iron__tokens_gpu_buffers *b = &t->buffers;
    size_t n = nodes->count;

    IRON_TRY(iron__tokens_gpu_settle(t, queue, err));
    IRON_TRY(download(queue, b->accumulators, nodes->xor_accumulators, n * sizeof(k_u32), err));
    IRON_TRY(download(queue, b->potentials, nodes->potentials, n * sizeof(k_f32), err));
    IRON_TRY(download(queue, b->totals, t->totals, sizeof t->totals, err));
    IRON_TRY(iron__gpu_queue_wait(queue, err));
    *closed = (iron__contribution){t->progress.closed_tokens, t->totals[0], (uint32_t)t->totals[1]};
    return IRON_OK;
}

iron__tokens_gpu_progress iron__tokens_gpu_progress_of(const iron__tokens_gpu *t) {
    return t->progress;
}

iron_status iron__tokens_gpu_is_beyond(iron__tokens_gpu *t, iron__gpu_queue *queue, bool *beyond,
                                       iron_error *err) {
    IRON_TRY(download(queue, t->buffers.beyond, &t->beyond, sizeof t->beyond, err));
    IRON_TRY(iron__gpu_queue_wait(queue, err));
    *beyond = t->beyond != 0;
    return IRON_OK;
}

iron_status iron__tokens_gpu_seal_begin(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                        const iron__quads_total *from, iron_error *err) {
    return iron__quads_gpu_begin(t->quads, queue, from, err);
}

iron_status iron__tokens_gpu_seal_fetch(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                        iron__quads_total *total, iron_error *err) {
    return iron__quads_gpu_fetch(t->quads, queue,
                                 t->progress.closed_tokens + t->progress.open_tokens, total, err);
}
