/* SPDX-License-Identifier: MIT */
/*
 * tokens_gpu_whole.c: a span that is one whole batch becomes a single launch, which reduces it and
 * moves the nodes. There are three such kernels. Where groups can wait for each other (CUDA) all
 * of them meet, and each moves some nodes: the step for what takes microseconds, the stride for
 * what takes longer (champion_step.cu). Elsewhere, and for tokens that lie askew, the last group
 * moves them all (champion_whole.k).
 *
 * On an H200 (replayed, caches warm up to 32 MiB): 32 MiB take 10.7 us by the step, 64 MiB 22, 256
 * MiB 66, 1 GiB 243 by the stride, 97 % of the read ceiling; by the last group 72 and 248.
 */
#include "ops/tokens/tokens_gpu_state.h"

#include "core/fail.h"

/* A step: 6144 quads a group, 12 a thread. Fewer groups find each other sooner, more read faster:
 * 32 were best for 3 MiB on an H200, in a chain of launches that overlap. */
#define STEP_SHARE      6144u
#define STEP_TOKENS_MAX (UINT64_C(8) << 20)

/* A whole: the walk of one group through the nodes must be short beside the reading. Half of the
 * groups that a unit holds read as fast as all, and half as many have to arrive. */
#define WHOLE_NODES_MAX   16384u
#define WHOLE_UNIT_GROUPS 4u

/* Can the groups meet, and do the tokens lie as the kernels for that want it? */
static bool is_meeting(const iron__tokens_gpu *t, const tokens_span *s) {
    return t->kernels.step && s->begin % 4 == 0 && s->first % 16 == 0;
}

static iron_status launch_whole(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                const iron__gpu_buffer *tokens, const tokens_span *s,
                                iron_error *err) {
    iron__tokens_gpu_buffers *b = &t->buffers;
    uint32_t most = WHOLE_UNIT_GROUPS * t->device->info.units;
    tokens_closing c = t->closing;
    iron__gpu_arg args[] = {IRON_GPU_BUFFER(tokens),
                            IRON_GPU_BUFFER(b->xors),
                            IRON_GPU_BUFFER(b->sums),
                            IRON_GPU_BUFFER(b->arrived),
                            IRON_GPU_BUFFER(b->accumulators),
                            IRON_GPU_BUFFER(b->potentials),
                            IRON_GPU_BUFFER(b->activations),
                            IRON_GPU_BUFFER(b->totals),
                            IRON_GPU_BUFFER(b->points),
                            IRON_GPU_BUFFER(b->nearest),
                            IRON_GPU_VALUE(*s),
                            IRON_GPU_VALUE(t->lattice),
                            IRON_GPU_VALUE(c)};
    iron__gpu_launch launch = {.kernel = t->kernels.whole,
                               .groups = {1, 1},
                               .threads = {TOKENS_CHAMPION_THREADS, 1},
                               .args = args,
                               .arg_count = sizeof args / sizeof args[0]};

    t->config.row->groups(&t->device->info, s, launch.groups);
    launch.groups[0] = launch.groups[0] < most ? launch.groups[0] : most;
    c.count = 1;
    c.last = s->count;
    t->is_step_last = false;
    return iron__gpu_run(queue, &launch, err);
}

static iron_status launch_meeting(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                  const iron__gpu_buffer *tokens, const tokens_span *s,
                                  iron_error *err) {
    iron__tokens_gpu_buffers *b = &t->buffers;
    bool is_short = s->count <= STEP_TOKENS_MAX;
    uint64_t quads = s->count / 4, groups;
    uint32_t most = is_short ? TOKENS_STEP_GROUPS : TOKENS_STRIDE_GROUPS;
    uint32_t held = t->device->info.units * (is_short ? 1u : 2u), share;
    tokens_closing c = t->closing;
    iron__gpu_arg args[] = {IRON_GPU_BUFFER(tokens),        IRON_GPU_BUFFER(b->slots),
                            IRON_GPU_BUFFER(b->epochs),     IRON_GPU_BUFFER(b->accumulators),
                            IRON_GPU_BUFFER(b->potentials), IRON_GPU_BUFFER(b->activations),
                            IRON_GPU_BUFFER(b->totals),     IRON_GPU_BUFFER(b->points),
                            IRON_GPU_BUFFER(b->nearest),    IRON_GPU_VALUE(*s),
                            IRON_GPU_VALUE(t->lattice),     IRON_GPU_VALUE(c),
                            IRON_GPU_VALUE(share)};
    iron__gpu_launch launch = {.kernel = is_short ? t->kernels.step : t->kernels.stride,
                               .groups = {1, 1},
                               .threads = {TOKENS_STEP_THREADS, 1},
                               .flags = IRON_GPU_LAUNCH_TOGETHER,
                               .args = args,
                               .arg_count = sizeof args / sizeof args[0]};

    most = held < most ? held : most;
    groups = (quads + STEP_SHARE - 1) / STEP_SHARE;
    groups = groups < most ? groups : most;
    share = (uint32_t)((quads + groups - 1) / groups);
    launch.groups[0] = (uint32_t)groups;
    c.count = 1;
    c.last = s->count;
    /* It reads tokens before it waits: only after another step, which wrote none, may it begin
     * early, and only if nobody else put anything in between. A stride gains nothing by that. */
    if (is_short && t->config.is_chained && t->is_step_last)
        launch.flags |= IRON_GPU_LAUNCH_OVERLAP;
    IRON_TRY(iron__gpu_run(queue, &launch, err));
    t->is_step_last = is_short;
    return IRON_OK;
}

bool iron__tokens_gpu_is_whole(const iron__tokens_gpu *t, const tokens_span *s) {
    return t->waiting == 0 && s->open == 0 && s->count == s->batch && s->batch >= TOKENS_FEW_MAX &&
           (t->config.nodes <= WHOLE_NODES_MAX || is_meeting(t, s));
}

iron_status iron__tokens_gpu_feed_whole(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                        const iron__gpu_buffer *tokens, const tokens_span *s,
                                        iron_error *err) {
    IRON_TRY((is_meeting(t, s) ? launch_meeting : launch_whole)(t, queue, tokens, s, err));
    t->progress.closed_tokens += s->count;
    t->progress.batches++;
    return IRON_OK;
}
