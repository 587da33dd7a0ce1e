/* SPDX-License-Identifier: MIT */
/*
 * tokens_gpu_feed.c: spans of tokens become launches.
 *
 * Invariants: 1. The contribution of the open batch is entry `waiting` (takes_many), or entry
 * `turn` and each node's own (the others). 2. Entries behind the open one, and the other turn's,
 * are neutral or become so before they are used. 3. Waiting batches are whole, except that the last
 * one may be short, and then it is applied at once.
 */
#include "ops/tokens/tokens_gpu_state.h"

#include "core/fail.h"

#define WIDEN_GROUPS 4096u
#define FEW_GROUPS   65536u

/* A launch of the modes that take one batch: few enough tokens for kernels to count in 32 bits, and
 * to be over in a second or two: displays and watchdogs wait for it. */
#define PIECE_TOKENS  (UINT64_C(1) << 28)
#define PIECE_LEAST   UINT64_C(256)
#define PIECE_SECONDS 1.0

static tokens_span span_of(const iron__tokens_gpu *t, uint64_t begin, uint64_t count) {
    const iron__tokens_gpu_progress *p = &t->progress;
    tokens_span s = t->span;

    s.begin = begin;
    s.count = count;
    s.open = p->open_tokens;
    s.first = t->config.by_batch ? p->open_tokens : p->closed_tokens + p->open_tokens;
    s.slot = t->config.row->takes_many ? t->waiting : t->turn;
    return s;
}

/* Books tokens that a launch has taken, and the batches that they close. */
static void book(iron__tokens_gpu *t, uint64_t count) {
    iron__tokens_gpu_progress *p = &t->progress;
    uint64_t closed = (p->open_tokens + count) / t->config.batch;

    p->open_tokens = (p->open_tokens + count) % t->config.batch;
    p->closed_tokens += closed * t->config.batch;
    p->batches += closed;
    t->waiting += (uint32_t)closed;
}

static iron_status launch_reduce(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                 const iron__gpu_buffer *tokens, const tokens_span *s,
                                 iron_error *err) {
    const iron__tokens_gpu_row *row = t->config.row;
    iron__gpu_arg args[] = {IRON_GPU_BUFFER(tokens), IRON_GPU_BUFFER(t->buffers.xors),
                            IRON_GPU_BUFFER(t->buffers.sums), IRON_GPU_VALUE(*s)};
    iron__gpu_launch launch = {.kernel = t->kernels.reduce,
                               .groups = {1, 1},
                               .threads = {row->threads[0], row->threads[1]},
                               .args = args,
                               .arg_count = sizeof args / sizeof args[0]};

    row->groups(&t->device->info, s, launch.groups);
    if (row->takes_many && s->batch < TOKENS_FEW_MAX) {
        uint64_t batches = (s->open + s->count + s->batch - 1) / s->batch;

        launch.kernel = t->kernels.few;
        launch.threads[0] = TOKENS_FEW_THREADS;
        launch.groups[0] = batches < FEW_GROUPS ? (uint32_t)batches : FEW_GROUPS;
    }
    t->is_step_last = false;
    return iron__gpu_run(queue, &launch, err);
}

/* Part II's second kernel: one batch of `count` tokens to every node; its entries are neutral then,
 * or the next batch takes others that are. */
static iron_status apply_one(iron__tokens_gpu *t, iron__gpu_queue *queue, uint64_t count,
                             iron_error *err) {
    const iron__tokens_gpu_row *row = t->config.row;
    iron__tokens_gpu_buffers *b = &t->buffers;
    tokens_closing c = t->closing;
    uint32_t shared = !row->per_node ? 3u : row->shares_sum ? 2u : 0u;
    iron__gpu_arg args[] = {IRON_GPU_BUFFER(b->xors),         IRON_GPU_BUFFER(b->sums),
                            IRON_GPU_BUFFER(b->accumulators), IRON_GPU_BUFFER(b->potentials),
                            IRON_GPU_BUFFER(b->activations),  IRON_GPU_BUFFER(b->totals),
                            IRON_GPU_BUFFER(b->points),       IRON_GPU_BUFFER(b->nearest),
                            IRON_GPU_VALUE(t->lattice),       IRON_GPU_VALUE(c),
                            IRON_GPU_VALUE(shared),           IRON_GPU_VALUE(t->turn)};
    iron__gpu_launch launch = {
        .kernel = t->kernels.apply_one,
        .groups = {(t->config.nodes + TOKENS_APPLY_THREADS - 1) / TOKENS_APPLY_THREADS, 1},
        .threads = {TOKENS_APPLY_THREADS, 1},
        .args = args,
        .arg_count = sizeof args / sizeof args[0]};

    c.count = 1;
    c.last = count;
    IRON_TRY(iron__gpu_run(queue, &launch, err));
    t->turn ^= 1;
    return IRON_OK;
}

/* Applies the waiting batches, the last of which has `last` tokens. */
static iron_status apply_many(iron__tokens_gpu *t, iron__gpu_queue *queue, uint64_t last,
                              iron_error *err) {
    iron__tokens_gpu_buffers *b = &t->buffers;
    uint32_t tiles = (t->config.nodes + TOKENS_APPLY_THREADS - 1) / TOKENS_APPLY_THREADS;
    uint32_t chunks = (t->waiting + TOKENS_CHUNK - 1) / TOKENS_CHUNK;
    tokens_closing c = t->closing;
    iron__gpu_arg gather[] = {IRON_GPU_BUFFER(b->xors),
                              IRON_GPU_BUFFER(b->sums),
                              IRON_GPU_BUFFER(b->activations),
                              IRON_GPU_BUFFER(b->batch_potentials),
                              IRON_GPU_BUFFER(b->additions),
                              IRON_GPU_BUFFER(b->maps),
                              IRON_GPU_BUFFER(b->totals),
                              IRON_GPU_BUFFER(b->points),
                              IRON_GPU_BUFFER(b->nearest),
                              IRON_GPU_VALUE(t->lattice),
                              IRON_GPU_VALUE(c)};
    iron__gpu_arg settle[] = {
        IRON_GPU_BUFFER(b->xors),         IRON_GPU_BUFFER(b->sums),
        IRON_GPU_BUFFER(b->accumulators), IRON_GPU_BUFFER(b->potentials),
        IRON_GPU_BUFFER(b->activations),  IRON_GPU_BUFFER(b->batch_potentials),
        IRON_GPU_BUFFER(b->additions),    IRON_GPU_BUFFER(b->maps),
        IRON_GPU_BUFFER(b->points),       IRON_GPU_BUFFER(b->nearest),
        IRON_GPU_VALUE(t->lattice),       IRON_GPU_VALUE(c)};
    iron__gpu_launch launch = {.kernel = t->kernels.gather,
                               .groups = {tiles, chunks},
                               .threads = {TOKENS_APPLY_THREADS, 1},
                               .args = gather,
                               .arg_count = sizeof gather / sizeof gather[0]};

    c.count = t->waiting;
    c.last = last;
    t->is_step_last = false;
    IRON_TRY(iron__gpu_run(queue, &launch, err));
    launch.kernel = t->kernels.settle;
    launch.groups[1] = 1;
    launch.args = settle;
    launch.arg_count = sizeof settle / sizeof settle[0];
    IRON_TRY(iron__gpu_run(queue, &launch, err));
    t->waiting = 0;
    return IRON_OK;
}

iron_status iron__tokens_gpu_settle(iron__tokens_gpu *t, iron__gpu_queue *queue, iron_error *err) {
    return t->waiting > 0 ? apply_many(t, queue, t->config.batch, err) : IRON_OK;
}

iron_status iron__tokens_gpu_end_batch(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                       iron_error *err) {
    uint64_t count = t->progress.open_tokens;

    if (count == 0)
        return IRON_OK;
    t->progress.open_tokens = 0;
    t->progress.closed_tokens += count;
    t->progress.batches++;
    if (!t->config.row->takes_many)
        return apply_one(t, queue, count, err);
    t->waiting++;
    return apply_many(t, queue, count, err);
}

static uint64_t stream_position(const iron__tokens_gpu *t) {
    return t->progress.closed_tokens + t->progress.open_tokens;
}

/* How many tokens of the span one launch can take for contribution and seal alike: whole quads of
 * one window, where batches are made of whole quads too. 0: they go their own ways. */
static uint64_t quads_of(const iron__tokens_gpu *t, const tokens_span *s) {
    uint64_t position = stream_position(t), quads = s->count / 4, left;

    if (!t->quads || s->begin % 4 || position % 4 || s->open % 4 || s->batch % 4 ||
        s->batch < TOKENS_FEW_MAX || (t->config.lanes & IRON_LANE_APART))
        return 0;
    left = iron__quads_in_window(position);
    return 4 * (quads < left ? quads : left);
}

/* Contribution and seal of a span that is whole quads. */
static iron_status launch_all(iron__tokens_gpu *t, iron__gpu_queue *queue,
                              const iron__gpu_buffer *tokens, const tokens_span *s,
                              iron_error *err) {
    t->is_step_last = false;
    return iron__quads_gpu_feed_all(t->quads, queue, tokens, t->buffers.xors, t->buffers.sums, s,
                                    stream_position(t), err);
}

/* The seal of a span whose contribution goes its own way. */
static iron_status seal_apart(iron__tokens_gpu *t, iron__gpu_queue *queue,
                              const iron__gpu_buffer *tokens, const tokens_span *s,
                              iron_error *err) {
    if (!t->quads)
        return IRON_OK;
    t->is_step_last = false;
    return iron__quads_gpu_feed(t->quads, queue, tokens, s->begin, s->count, stream_position(t),
                                err);
}

/* As much as the waiting entries have room for; *taken says how much. */
static iron_status feed_many(iron__tokens_gpu *t, iron__gpu_queue *queue,
                             const iron__gpu_buffer *tokens, uint64_t begin, uint64_t count,
                             uint64_t *taken, iron_error *err) {
    uint64_t batch = t->config.batch, quads;
    uint32_t room = TOKENS_WAITING - t->waiting;
    tokens_span s;

    *taken = count;
    if (count / batch >= room)
        *taken = room * batch - t->progress.open_tokens;
    s = span_of(t, begin, *taken);
    quads = quads_of(t, &s);
    if (quads > 0) {
        s.count = *taken = quads;
        IRON_TRY(launch_all(t, queue, tokens, &s, err));
    } else {
        IRON_TRY(seal_apart(t, queue, tokens, &s, err));
        if (iron__tokens_gpu_is_whole(t, &s))
            return iron__tokens_gpu_feed_whole(t, queue, tokens, &s, err);
        IRON_TRY(launch_reduce(t, queue, tokens, &s, err));
    }
    book(t, *taken);
    return t->waiting == TOKENS_WAITING ? iron__tokens_gpu_settle(t, queue, err) : IRON_OK;
}

static uint64_t piece_of(const iron__tokens_gpu *t) {
    double seconds =
        iron__tokens_gpu_seconds(t->config.row, &t->device->info, t->config.nodes, PIECE_TOKENS);
    double piece = (double)PIECE_TOKENS;

    if (seconds > PIECE_SECONDS)
        piece *= PIECE_SECONDS / seconds;
    return piece > (double)PIECE_LEAST ? (uint64_t)piece : PIECE_LEAST;
}

/* A piece of the open batch, which is applied if that closes it. */
static iron_status feed_piece(iron__tokens_gpu *t, iron__gpu_queue *queue,
                              const iron__gpu_buffer *tokens, uint64_t begin, uint64_t count,
                              uint64_t *taken, iron_error *err) {
    uint64_t left = t->config.batch - t->progress.open_tokens, piece = piece_of(t);
    tokens_span s;

    *taken = count < left ? count : left;
    *taken = *taken < piece ? *taken : piece;
    s = span_of(t, begin, *taken);
    IRON_TRY(seal_apart(t, queue, tokens, &s, err));
    IRON_TRY(launch_reduce(t, queue, tokens, &s, err));
    t->progress.open_tokens += *taken;
    return t->progress.open_tokens == t->config.batch ? iron__tokens_gpu_end_batch(t, queue, err)
                                                      : IRON_OK;
}

/* The seal alone: all of it is one open batch, which nobody looks at. */
static iron_status feed_seal(iron__tokens_gpu *t, iron__gpu_queue *queue,
                             const iron__gpu_buffer *tokens, uint64_t begin, uint64_t count,
                             uint64_t *taken, iron_error *err) {
    tokens_span s = span_of(t, begin, count);

    IRON_TRY(seal_apart(t, queue, tokens, &s, err));
    t->progress.open_tokens += count;
    *taken = count;
    return IRON_OK;
}

iron_status iron__tokens_gpu_feed(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                  const iron__gpu_buffer *tokens, uint64_t begin, uint64_t count,
                                  iron_error *err) {
    while (count > 0) {
        uint64_t taken = 0;

        IRON_TRY((t->config.lanes & IRON_LANE_ALONE ? feed_seal
                  : t->config.row->takes_many
                      ? feed_many
                      : feed_piece)(t, queue, tokens, begin, count, &taken, err));
        begin += taken;
        count -= taken;
    }
    return IRON_OK;
}

iron_status iron__tokens_gpu_widen(iron__tokens_gpu *t, iron__gpu_queue *queue, size_t width,
                                   const iron__gpu_buffer *from, uint64_t begin,
                                   const iron__gpu_buffer *to, uint64_t count, iron_error *err) {
    uint64_t groups = (count + TOKENS_WIDEN_THREADS - 1) / TOKENS_WIDEN_THREADS;
    iron__gpu_arg args[] = {IRON_GPU_BUFFER(from), IRON_GPU_BUFFER(to),
                            IRON_GPU_BUFFER(t->buffers.beyond), IRON_GPU_VALUE(begin),
                            IRON_GPU_VALUE(count)};
    iron__gpu_launch launch = {
        .kernel = width == 1   ? t->kernels.widen_u8
                  : width == 2 ? t->kernels.widen_u16
                               : t->kernels.widen_i64,
        .groups = {groups < WIDEN_GROUPS ? (uint32_t)groups : WIDEN_GROUPS, 1},
        .threads = {TOKENS_WIDEN_THREADS, 1},
        .args = args,
        .arg_count = sizeof args / sizeof args[0]};

    t->is_step_last = false;
    return iron__gpu_run(queue, &launch, err);
}
