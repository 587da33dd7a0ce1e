/* SPDX-License-Identifier: MIT */
/*
 * quads_gpu.c: see quads_gpu.h.
 *
 * Invariants: 1. found[g] is written by group g alone, and by one launch at a time; entry
 * QUADS_GROUPS is the edges'. 2. What was found before `begin` is kept by the host and added when
 * somebody fetches. 3. The carry's entry k is the last token at a position of remainder k.
 */
#include "ops/tokens/quads_gpu.h"

#include "core/fail.h"
#include "core/memory.h"

#include <string.h>

_Static_assert(sizeof(quads_span) == 40 && sizeof(quads_found) == 56,
               "kernels see the same layout: 8-byte members first, nothing padded");

#define FOUND_COUNT (QUADS_GROUPS + 1u)
#define CARRY_COUNT 4u

struct iron__quads_gpu {
    iron__quads_gpu_config config;
    iron__gpu_device *device;
    iron__gpu_kernel *aligned, *anywhere, *all, *edges;
    iron__gpu_buffer *found, *carry;
    iron__quads_total before;
    quads_found host[FOUND_COUNT]; /* on their way: must outlive a failed call */
    uint32_t host_carry[CARRY_COUNT];
};

static iron_status build(iron__quads_gpu *q, iron_error *err) {
    bool stats = q->config.has_stats;
    const struct {
        const char *name;
        iron__gpu_kernel **kernel;
    } wanted[] = {
        {stats ? "quads_stats_aligned" : "quads_seal_aligned", &q->aligned},
        {stats ? "quads_stats_anywhere" : "quads_seal_anywhere", &q->anywhere},
        {stats ? "quads_all_stats" : "quads_all_seal", &q->all},
        {"quads_edges", &q->edges},
    };

    for (size_t n = 0; n < sizeof wanted / sizeof wanted[0]; n++)
        IRON_TRY(iron__gpu_kernel_find(q->device, q->config.program, wanted[n].name,
                                       wanted[n].kernel, err));
    IRON_TRY(
        iron__gpu_buffer_create(q->device, IRON_GPU_MEMORY_DEVICE, sizeof q->host, &q->found, err));
    return iron__gpu_buffer_create(q->device, IRON_GPU_MEMORY_DEVICE, sizeof q->host_carry,
                                   &q->carry, err);
}

iron_status iron__quads_gpu_create(iron__gpu_device *device, const iron__quads_gpu_config *config,
                                   iron__quads_gpu **out, iron_error *err) {
    iron__quads_gpu *q = iron__allocate(config->allocator, 1, sizeof *q, "a GPU's seal", err);
    iron_status status;

    *out = NULL;
    if (!q)
        return IRON_E_NOMEM;
    q->config = *config;
    q->device = device;
    status = build(q, err);
    if (status != IRON_OK) {
        iron__quads_gpu_destroy(q);
        return status;
    }
    *out = q;
    return IRON_OK;
}

void iron__quads_gpu_destroy(iron__quads_gpu *q) {
    if (!q)
        return;
    iron__gpu_buffer_destroy(q->found);
    iron__gpu_buffer_destroy(q->carry);
    iron__release(q->config.allocator, q);
}

iron_status iron__quads_gpu_begin(iron__quads_gpu *q, iron__gpu_queue *queue,
                                  const iron__quads_total *from, iron_error *err) {
    iron__gpu_copy found = {.to = q->found, .from_host = q->host, .bytes = sizeof q->host};
    iron__gpu_copy carry = {
        .to = q->carry, .from_host = q->host_carry, .bytes = sizeof q->host_carry};

    q->before = *from;
    for (size_t k = 0; k < FOUND_COUNT; k++)
        q->host[k] = (quads_found){.first = UINT64_MAX, .min = UINT32_MAX};
    memcpy(q->host_carry, from->seal.carry, sizeof from->seal.carry);
    IRON_TRY(iron__gpu_copy_bytes(queue, &found, err));
    IRON_TRY(iron__gpu_copy_bytes(queue, &carry, err));
    return iron__gpu_queue_wait(queue, err);
}

uint64_t iron__quads_in_window(uint64_t position) {
    return (UINT64_C(1) << 32) - (uint32_t)(position / 4);
}

static quads_span span_of(const iron__quads_gpu *q, uint64_t begin, uint64_t position,
                          uint64_t quads) {
    uint64_t window = iron__seal_window(position / 4);

    return (quads_span){.begin = begin,
                        .quads = quads,
                        .position = position,
                        .window_low = (uint32_t)window,
                        .window_high = (uint32_t)(window >> 32),
                        .last = q->config.last};
}

/* Twice what fills the device, so that the units' last groups end together (with the contribution
 * that is 0.956 of the ceiling on an H200, 0.941 without), and no more than have work. */
static uint32_t groups_for(const iron__quads_gpu *q, uint64_t quads) {
    uint64_t turns = (quads + QUADS_THREADS - 1) / QUADS_THREADS;
    uint64_t full = UINT64_C(2) * QUADS_UNIT_GROUPS * q->device->info.units;

    full = full < 1 ? 1 : full < QUADS_GROUPS ? full : QUADS_GROUPS;
    return (uint32_t)(turns < full ? turns : full);
}

/* Whole quads of one window. */
static iron_status take_quads(iron__quads_gpu *q, iron__gpu_queue *queue,
                              const iron__gpu_buffer *tokens, const quads_span *s,
                              iron_error *err) {
    iron__gpu_arg args[] = {IRON_GPU_BUFFER(tokens), IRON_GPU_BUFFER(q->found), IRON_GPU_VALUE(*s)};
    iron__gpu_launch launch = {.kernel = s->begin % 4 == 0 ? q->aligned : q->anywhere,
                               .groups = {groups_for(q, s->quads), 1},
                               .threads = {QUADS_THREADS, 1},
                               .args = args,
                               .arg_count = sizeof args / sizeof args[0]};

    return iron__gpu_run(queue, &launch, err);
}

static iron_status take_edges(iron__quads_gpu *q, iron__gpu_queue *queue,
                              const iron__gpu_buffer *tokens, const quads_span *s, uint64_t count,
                              iron_error *err) {
    uint64_t at = QUADS_GROUPS;
    iron__gpu_arg args[] = {IRON_GPU_BUFFER(tokens),   IRON_GPU_BUFFER(q->found),
                            IRON_GPU_BUFFER(q->carry), IRON_GPU_VALUE(*s),
                            IRON_GPU_VALUE(count),     IRON_GPU_VALUE(at)};
    iron__gpu_launch launch = {.kernel = q->edges,
                               .groups = {1, 1},
                               .threads = {QUADS_EDGE_THREADS, 1},
                               .args = args,
                               .arg_count = sizeof args / sizeof args[0]};

    return iron__gpu_run(queue, &launch, err);
}

iron_status iron__quads_gpu_feed(iron__quads_gpu *q, iron__gpu_queue *queue,
                                 const iron__gpu_buffer *tokens, uint64_t begin, uint64_t count,
                                 uint64_t position, iron_error *err) {
    uint64_t to_quad = -position % 4;
    uint64_t head = to_quad < count ? to_quad : count;
    uint64_t quads = (count - head) / 4;

    if (head > 0 || (count - head) % 4 > 0) {
        quads_span s = span_of(q, begin, position, 0);

        IRON_TRY(take_edges(q, queue, tokens, &s, count, err));
    }
    begin += head;
    position += head;
    while (quads > 0) {
        uint64_t left = iron__quads_in_window(position);
        quads_span s = span_of(q, begin, position, quads < left ? quads : left);

        IRON_TRY(take_quads(q, queue, tokens, &s, err));
        begin += 4 * s.quads;
        position += 4 * s.quads;
        quads -= s.quads;
    }
    return IRON_OK;
}

iron_status iron__quads_gpu_feed_all(iron__quads_gpu *q, iron__gpu_queue *queue,
                                     const iron__gpu_buffer *tokens, const iron__gpu_buffer *xors,
                                     const iron__gpu_buffer *sums, const tokens_span *c,
                                     uint64_t position, iron_error *err) {
    quads_span s = span_of(q, c->begin, position, c->count / 4);
    iron__gpu_arg args[] = {IRON_GPU_BUFFER(tokens),   IRON_GPU_BUFFER(xors), IRON_GPU_BUFFER(sums),
                            IRON_GPU_BUFFER(q->found), IRON_GPU_VALUE(*c),    IRON_GPU_VALUE(s)};
    iron__gpu_launch launch = {.kernel = q->all,
                               .groups = {groups_for(q, s.quads), 1},
                               .threads = {QUADS_THREADS, 1},
                               .args = args,
                               .arg_count = sizeof args / sizeof args[0]};

    return iron__gpu_run(queue, &launch, err);
}

static iron__token_stats stats_of(const quads_found *f) {
    return (iron__token_stats){f->outside, f->first, f->first_value, f->min, f->max};
}

iron_status iron__quads_gpu_fetch(iron__quads_gpu *q, iron__gpu_queue *queue, uint64_t position,
                                  iron__quads_total *total, iron_error *err) {
    iron__gpu_copy found = {.from = q->found, .to_host = q->host, .bytes = sizeof q->host};
    iron__gpu_copy carry = {
        .from = q->carry, .to_host = q->host_carry, .bytes = sizeof q->host_carry};

    IRON_TRY(iron__gpu_copy_bytes(queue, &found, err));
    IRON_TRY(iron__gpu_copy_bytes(queue, &carry, err));
    IRON_TRY(iron__gpu_queue_wait(queue, err));
    *total = q->before;
    total->seal.words.count = position / 4 * 4;
    total->seal.carried = (uint32_t)(position % 4);
    for (uint32_t k = 0; k < 3; k++) /* what is left of quads that are whole now is no carry */
        total->seal.carry[k] = k < total->seal.carried ? q->host_carry[k] : 0;
    for (size_t k = 0; k < FOUND_COUNT; k++) {
        const quads_found *f = &q->host[k];

        total->seal.words =
            iron__seal_merge(total->seal.words, (iron__seal_words){0, f->t, f->a, f->b});
        total->stats = iron__token_stats_merge(total->stats, stats_of(f));
    }
    return IRON_OK;
}
