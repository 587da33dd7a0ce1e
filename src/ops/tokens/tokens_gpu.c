/* SPDX-License-Identifier: MIT */
/*
 * tokens_gpu.c: see tokens_gpu.h. In this order: the rows; the object; the seal and statistics of a
 * stream; kernels and device memory; how spans of tokens become launches.
 *
 * A span that is one whole batch is a single launch, which reduces the batch and updates the nodes.
 * There are two such kernels. Where groups can wait for each other (CUDA) they exchange their sums,
 * and some of them update the nodes: `step` (champion.cu). Elsewhere, and for tokens that are not
 * aligned, the group that finishes last updates all nodes: `whole` (champion.k). docs/limits.md has
 * the times of both.
 *
 * The seal needs whole quads. A piece of a stream is whole quads and up to three tokens on either
 * side of them. Whole quads are a launch that fills the device; a launch of one thread stores the
 * tokens before and after them in a carry on the device until their quad is complete.
 *
 * Invariants:
 * 1. The contribution of the open batch is entry `pending` (takes_many), or entry `shared_entry`
 *    and each node's own (the others).
 * 2. Entries after the open one, and the other shared entry, are neutral or become neutral before
 *    they are used.
 * 3. Pending batches are whole, except that the last one may be short; then it is applied at once.
 * 4. found[g] is written only by group g, and by one launch at a time; entry QUADS_GROUPS belongs
 *    to the tokens at the edges. What was found before `begin` stays on the host and is added by
 *    fetch.
 * 5. Entry k of the carry is the last token at a position with remainder k modulo 4.
 * 6. While batches are recorded, the totals on the device are those of begin; `record->total` has
 *    the rest.
 */
#include "ops/tokens/tokens_gpu.h"

#include "core/divisor.h"
#include "core/fail.h"
#include "core/memory.h"
#include "core/number.h"
#include "ops/kit.h"

#include <string.h>

IRON_GPU_EMBEDDED(tokens)

/* One unit's 65,536 registers must hold all groups that the densest kernels are written for, those
 * of the seal (quads.k). Left alone, NVIDIA's OpenCL gives a thread more registers, and fewer loads
 * are in flight. */
const iron__gpu_image iron__tokens_image =
    IRON_GPU_IMAGE_LIMITED(tokens, 65536 / (QUADS_THREADS * QUADS_UNIT_GROUPS));

#define PAIRS_ROWS_MAX   65535u
#define PAIRS_GROUPS_MAX (1u << 20)
#define VECTOR_GROUPS    64u

/* A modern GPU's multiprocessor holds 2048 threads: eight of these groups. */
#define CHAMPION_GROUPS 8u

static uint32_t at_most(uint64_t value, uint32_t most) {
    return value < most ? (uint32_t)value : most;
}

static void pair_groups(const iron__gpu_info *info, const tokens_span *s, uint32_t groups[2]) {
    (void)info;
    groups[0] = at_most(iron__kit_pieces(s->count, TOKENS_PAIRS_SIDE), PAIRS_GROUPS_MAX);
    groups[1] = at_most(iron__kit_pieces(s->nodes, TOKENS_PAIRS_SIDE), PAIRS_ROWS_MAX);
}

/* 64 groups of 8 warps, or two per unit of a larger device. */
static void warp_per_node(const iron__gpu_info *info, const tokens_span *s, uint32_t groups[2]) {
    uint32_t most = (uint32_t)iron__kit_pieces(s->nodes, TOKENS_TILED_THREADS / 32);
    uint32_t wanted = (uint32_t)iron__max(UINT64_C(2) * info->units, VECTOR_GROUPS);

    groups[0] = wanted < most || most < VECTOR_GROUPS ? wanted : most;
}

static void as_in_the_paper(const iron__gpu_info *info, const tokens_span *s, uint32_t groups[2]) {
    (void)info;
    (void)s;
    groups[0] = TOKENS_REDUCE_GROUPS;
}

static void fill_the_device(const iron__gpu_info *info, const tokens_span *s, uint32_t groups[2]) {
    uint64_t turn = UINT64_C(4) * TOKENS_CHAMPION_THREADS; /* at least one load per thread */

    groups[0] = at_most(iron__kit_pieces(s->count, turn), CHAMPION_GROUPS * info->units);
}

#define ROW(its_mode, its_kernel, size, its_groups, text, slower, ...)                             \
    {                                                                                              \
        .names = {"tokens.cuda." its_mode, "tokens.opencl." its_mode}, .mode = its_mode,           \
        .kernel = its_kernel, .threads = {size}, .groups = its_groups, .idea = text,               \
        .beats = slower, __VA_ARGS__                                                               \
    }
#define PER_NODE(pairs) .per_node = true, .unit_pairs = (pairs)

static const iron__tokens_gpu_row rows[] = {
    ROW("atomic2d", "tokens_atomic2d", TOKENS_PAIRS_SIDE, pair_groups,
        "one thread per pair of token and node, one 32-bit atomic each", NULL, PER_NODE(2e7),
        .threads[1] = TOKENS_PAIRS_SIDE, .shares_sum = true),
    ROW("node", "tokens_node", TOKENS_NODE_THREADS, NULL,
        "one thread per node, which reads all tokens", "atomic2d", PER_NODE(5.7e8),
        .nodes = TOKENS_NODE_THREADS, .token_ns = 55),
    ROW("hybrid", "tokens_hybrid", TOKENS_HYBRID_THREADS, NULL,
        "one group per node: strided tokens, warp and local reduction, one write", "node",
        PER_NODE(9e9), .nodes = 1),
    ROW("tiled", "tokens_tiled", TOKENS_TILED_THREADS, NULL,
        "tiles of tokens through local memory, 256 nodes per group", "node", PER_NODE(5.2e8),
        .nodes = TOKENS_NODE_THREADS, .token_ns = 59),
    ROW("tiled-wide", "tokens_tiled_wide", TOKENS_TILED_WIDE_THREADS, NULL,
        "tiles of tokens through local memory, 32 nodes per group", "tiled", PER_NODE(5.5e8),
        .nodes = TOKENS_TILED_WIDE_THREADS, .token_ns = 57),
    ROW("tiled-vector", "tokens_tiled_vector", TOKENS_TILED_THREADS, warp_per_node,
        "16-byte loads of tiles, one warp per node", "tiled-wide", PER_NODE(5.5e9)),
    ROW("hybrid-vector", "tokens_hybrid_vector", TOKENS_HYBRID_THREADS, NULL,
        "hybrid with 16-byte loads, four tokens per iteration", "hybrid", PER_NODE(1.1e10),
        .nodes = 1),
    ROW("reduce", "tokens_reduce", TOKENS_REDUCE_THREADS, as_in_the_paper,
        "tokens reduced once, then applied to every node; % and a tree, as in Part II",
        "hybrid-vector", .per_node = false),
    ROW("champion", "tokens_champion", TOKENS_CHAMPION_THREADS, fill_the_device,
        "one read at the memory limit: wide loads in flight, no division, many batches at once",
        "reduce", .takes_many = true),
};

#define ROW_COUNT IRON_KIT_COUNT(rows)

const iron__tokens_gpu_row *iron__tokens_gpu_row_at(size_t index) {
    return index < ROW_COUNT ? &rows[index] : NULL;
}

const iron__tokens_gpu_row *iron__tokens_gpu_row_find(const char *name) {
    for (size_t k = 0; k < ROW_COUNT; k++)
        if (strcmp(rows[k].mode, name) == 0 || strcmp(rows[k].names[0], name) == 0 ||
            strcmp(rows[k].names[1], name) == 0)
            return &rows[k];
    return NULL;
}

const iron__tokens_gpu_row *iron__tokens_gpu_row_for(size_t backend, const char *name) {
    const iron__tokens_gpu_row *row = iron__tokens_gpu_row_find(name);

    return row && strcmp(row->names[!backend], name) != 0 ? row : NULL;
}

double iron__tokens_gpu_seconds(const iron__tokens_gpu_row *row, const iron__gpu_info *info,
                                uint64_t nodes, uint64_t tokens) {
    /* OpenCL on a CPU, measured with PoCL: about a hundredth */
    double pace = (info->is_gpu ? 1.0 : 0.01) * (info->units ? info->units : 1);
    double at_once, one_by_one;

    if (!row->per_node)
        return 0;
    at_once = (double)tokens * (double)nodes / (row->unit_pairs * pace);
    one_by_one = (double)tokens * row->token_ns * 1e-9;
    return at_once > one_by_one ? at_once : one_by_one;
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

_Static_assert(sizeof(quads_span) == 40 && sizeof(quads_found) == 56,
               "kernels see the same layout: 8-byte members first, no padding");

#define FOUND_COUNT (QUADS_GROUPS + 1u)
#define CARRY_COUNT 4u

/* The seal of a stream. */
typedef struct quads_gpu {
    iron__gpu_kernel *aligned, *anywhere, *all, *edges;
    iron__quads_total before;
    quads_found host[FOUND_COUNT]; /* copied to or from the device: must outlive a failed call */
    uint32_t host_carry[CARRY_COUNT];
} quads_gpu;

typedef struct gpu_kernels {
    iron__gpu_kernel *reduce, *few, *whole;
    iron__gpu_kernel *step; /* only on CUDA: NULL elsewhere */
    iron__gpu_kernel *apply_one, *gather, *settle;
    iron__gpu_kernel *widen_u8, *widen_u16, *widen_i64;
} gpu_kernels;

/* Device memory; every array begins at a multiple of IRON_GPU_ALIGNMENT. */
typedef struct gpu_buffers {
    iron__gpu_buffer *xors;         /* u32: of pending batches and the open one, or per node */
    iron__gpu_buffer *sums;         /* u64: likewise */
    iron__gpu_buffer *accumulators; /* u32 per node, never 16 bits */
    iron__gpu_buffer *potentials;   /* f32 per node */
    iron__gpu_buffer *activations;  /* f32 per node */
    iron__gpu_buffer *totals;       /* u64 sum, u64 whose lower half is the XOR: closed batches */
    iron__gpu_buffer *points;       /* u32, TOKENS_POINTS of them */
    iron__gpu_buffer *nearest;      /* u8, the lattice's table; step reads whole 16 bytes of it */
    iron__gpu_buffer *additions;    /* u32 per node, 0 between launches */
    iron__gpu_buffer *batch_potentials; /* f32 per pending batch */
    iron__gpu_buffer *maps;             /* u8, TOKENS_POINTS per chunk */
    iron__gpu_buffer *slots;            /* of step: 16 bytes per group */
    iron__gpu_buffer *epochs;           /* of step: u32 */
    iron__gpu_buffer *arrived;          /* of whole: u32, 0 between launches */
    iron__gpu_buffer *overflow;         /* u32: nonzero once a token had more than 32 bits */
    iron__gpu_buffer *found, *carry;    /* with a seal */
} gpu_buffers;

#define BUFFER_COUNT (sizeof(gpu_buffers) / sizeof(iron__gpu_buffer *))

/* Batches on their way to the host instead of the nodes: the pending ones and the open one. */
typedef struct batch_record {
    iron__batch_closed closed; /* NULL: batches are applied to the nodes */
    void *context;
    iron__contribution total; /* of those handed over */
    uint32_t xors[TOKENS_PENDING_MAX + 1];
    uint64_t sums[TOKENS_PENDING_MAX + 1];
} batch_record;

struct iron__tokens_gpu {
    iron__tokens_gpu_config config;
    iron__gpu_device *device;
    iron__gpu_program *program;
    gpu_kernels kernels;
    quads_gpu *quads;     /* NULL: no seal */
    batch_record *record; /* NULL: never asked for */
    union {
        gpu_buffers buffers;
        iron__gpu_buffer *all_buffers[BUFFER_COUNT];
    };
    tokens_span span;       /* with the members that do not change from launch to launch */
    tokens_lattice lattice; /* likewise */
    tokens_closing closing; /* likewise */
    iron__tokens_gpu_progress progress;
    uint64_t totals[2];    /* copied to or from the device: must outlive a failed call */
    uint32_t overflow;     /* likewise */
    uint32_t pending;      /* closed batches that are not applied yet */
    uint32_t shared_entry; /* 0 or 1: the open batch's entry, where nodes share one */
    bool is_step_last;     /* the last launch was a step: the next one may overlap it */
};

typedef struct wanted_kernel {
    const char *name;
    iron__gpu_kernel **kernel;
} wanted_kernel;

static iron_status find_all(const iron__tokens_gpu *t, const wanted_kernel *wanted, size_t count,
                            iron_error *err) {
    for (size_t k = 0; k < count; k++)
        IRON_TRY(
            iron__gpu_kernel_find(t->device, t->program, wanted[k].name, wanted[k].kernel, err));
    return IRON_OK;
}

static iron_status quads_build(iron__tokens_gpu *t, iron_error *err) {
    bool stats = (t->config.outputs & IRON_TOKENS_STATS) != 0;
    quads_gpu *q = iron__allocate(t->config.allocator, 1, sizeof *q, "the seal on a GPU", err);

    t->quads = q;
    if (!q)
        return IRON_E_NOMEM;
    IRON_TRY(iron__gpu_buffer_create(t->device, IRON_GPU_MEMORY_DEVICE, sizeof q->host,
                                     &t->buffers.found, err));
    IRON_TRY(iron__gpu_buffer_create(t->device, IRON_GPU_MEMORY_DEVICE, sizeof q->host_carry,
                                     &t->buffers.carry, err));
    return find_all(t,
                    (const wanted_kernel[]){
                        {stats ? "quads_stats_aligned" : "quads_seal_aligned", &q->aligned},
                        {stats ? "quads_stats_anywhere" : "quads_seal_anywhere", &q->anywhere},
                        {stats ? "quads_all_stats" : "quads_all_seal", &q->all},
                        {"quads_edges", &q->edges},
                    },
                    4, err);
}

/* How many quads, beginning at a position, are in one window. */
static uint64_t quads_in_window(uint64_t position) {
    return (UINT64_C(1) << 32) - (uint32_t)(position / 4);
}

static quads_span quads_span_of(const iron__tokens_gpu *t, uint64_t begin, uint64_t position,
                                uint64_t quads) {
    uint64_t window = iron__seal_window(position / 4);

    return (quads_span){.begin = begin,
                        .quads = quads,
                        .position = position,
                        .window_low = (uint32_t)window,
                        .window_high = (uint32_t)(window >> 32),
                        .last = t->config.last};
}

/* Twice what fills the device, so that the last groups of all units end together (with the
 * contribution that gives 0.956 of the ceiling on an H200, 0.941 without), and no more than have
 * work. */
static uint32_t quads_groups(const iron__tokens_gpu *t, uint64_t quads) {
    uint32_t full = at_most(UINT64_C(2) * QUADS_UNIT_GROUPS * t->device->info.units, QUADS_GROUPS);

    return at_most(iron__kit_pieces(quads, QUADS_THREADS), full > 0 ? full : 1);
}

static uint64_t stream_position(const iron__tokens_gpu *t) {
    return t->progress.closed_tokens + t->progress.open_tokens;
}

/* The seal of a span, if it is wanted; the contribution is another launch. */
static iron_status launch_seal(iron__tokens_gpu *t, iron__gpu_queue *queue,
                               const iron__gpu_buffer *tokens, const tokens_span *c,
                               iron_error *err) {
    const quads_gpu *q = t->quads;
    uint64_t position = stream_position(t), head = iron__min(-position % 4, c->count);
    quads_span s = quads_span_of(t, c->begin, position, 0);
    uint64_t quads = (c->count - head) / 4, at = QUADS_GROUPS;

    if (!q)
        return IRON_OK;
    t->is_step_last = false;
    if (head > 0 || (c->count - head) % 4 > 0)
        IRON_TRY(IRON_KIT_LAUNCH(queue, err, q->edges, 1, QUADS_EDGE_THREADS,
                                 IRON_GPU_BUFFER(tokens), IRON_GPU_BUFFER(t->buffers.found),
                                 IRON_GPU_BUFFER(t->buffers.carry), IRON_GPU_VALUE(s),
                                 IRON_GPU_VALUE(c->count), IRON_GPU_VALUE(at)));
    for (uint64_t done = head; quads > 0; quads -= s.quads, done += 4 * s.quads) {
        uint64_t in_window = quads_in_window(position + done);

        s = quads_span_of(t, c->begin + done, position + done, iron__min(quads, in_window));
        IRON_TRY(IRON_KIT_LAUNCH(queue, err, s.begin % 4 == 0 ? q->aligned : q->anywhere,
                                 quads_groups(t, s.quads), QUADS_THREADS, IRON_GPU_BUFFER(tokens),
                                 IRON_GPU_BUFFER(t->buffers.found), IRON_GPU_VALUE(s)));
    }
    return IRON_OK;
}

/* Seal and contribution of whole quads of one window that begin at a multiple of 16 bytes. */
static iron_status launch_seal_and_reduce(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                          const iron__gpu_buffer *tokens, const tokens_span *c,
                                          iron_error *err) {
    quads_span s = quads_span_of(t, c->begin, stream_position(t), c->count / 4);

    t->is_step_last = false;
    return IRON_KIT_LAUNCH(queue, err, t->quads->all, quads_groups(t, s.quads), QUADS_THREADS,
                           IRON_GPU_BUFFER(tokens), IRON_GPU_BUFFER(t->buffers.xors),
                           IRON_GPU_BUFFER(t->buffers.sums), IRON_GPU_BUFFER(t->buffers.found),
                           IRON_GPU_VALUE(*c), IRON_GPU_VALUE(s));
}

_Static_assert(sizeof(tokens_span) == 72 && sizeof(tokens_lattice) == 40 &&
                   sizeof(tokens_closing) == 32,
               "kernels see the same layout: 8-byte members first, no padding");
_Static_assert(IRON_GPU_ALIGNMENT % 16 == 0, "kernels load 16 bytes at a time from any buffer");
_Static_assert(sizeof(k_u32) == sizeof(((iron__nodes *)0)->xor_accumulators[0]),
               "accumulators are 32 bits wide on the device too: atomics work on whole words");

void iron__tokens_gpu_destroy(iron__tokens_gpu *t) {
    if (!t)
        return;
    for (size_t k = 0; k < BUFFER_COUNT; k++)
        iron__gpu_buffer_destroy(t->all_buffers[k]);
    if (!t->config.program)
        iron__gpu_program_unload(t->device, t->program);
    iron__release(t->config.allocator, t->quads);
    iron__release(t->config.allocator, t->record);
    iron__release(t->config.allocator, t);
}

static iron_status find_kernels(iron__tokens_gpu *t, iron_error *err) {
    gpu_kernels *k = &t->kernels;
    const wanted_kernel wanted[] = {
        {t->config.row->kernel, &k->reduce},  {"tokens_champion_few", &k->few},
        {"tokens_champion_whole", &k->whole}, {"tokens_apply_one", &k->apply_one},
        {"tokens_apply_gather", &k->gather},  {"tokens_apply_settle", &k->settle},
        {"tokens_widen_u8", &k->widen_u8},    {"tokens_widen_u16", &k->widen_u16},
        {"tokens_widen_i64", &k->widen_i64},  {"tokens_champion_step", &k->step},
    };
    bool has_step = t->config.row->takes_many && t->device->info.can_cooperate;

    t->program = t->config.program;
    if (!t->program)
        IRON_TRY(iron__gpu_program_load(t->device, &iron__tokens_image, &t->program, err));
    return find_all(t, wanted, IRON_KIT_COUNT(wanted) - (has_step ? 0 : 1), err);
}

static iron_status make_buffers(iron__tokens_gpu *t, iron_error *err) {
    gpu_buffers *b = &t->buffers;
    size_t nodes = t->config.nodes;
    size_t entries =
        t->config.row->per_node ? nodes + 1 : TOKENS_PENDING_MAX + 1; /* at least two */
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
        {&b->nearest, (2 * (size_t)t->config.lattice->span + 15) / 16 * 16},
        {&b->additions, nodes * sizeof(k_u32)},
        {&b->batch_potentials, TOKENS_PENDING_MAX * sizeof(k_f32)},
        {&b->maps, (size_t)TOKENS_CHUNKS * TOKENS_POINTS},
        {&b->slots, TOKENS_STEP_GROUPS * (size_t)16},
        {&b->epochs, sizeof(k_u64)},
        {&b->arrived, sizeof(k_u32)},
        {&b->overflow, sizeof(k_u32)},
    };

    for (size_t n = 0; n < IRON_KIT_COUNT(wanted); n++)
        IRON_TRY(iron__gpu_buffer_create(t->device, IRON_GPU_MEMORY_DEVICE, wanted[n].bytes,
                                         wanted[n].buffer, err));
    return IRON_OK;
}

static iron_status build(iron__tokens_gpu *t, iron_error *err) {
    const iron_lattice *l = t->config.lattice;
    iron__divisor vocab = iron__divisor_make(t->config.vocab);
    /* 2 ... 65,535: a lattice has at least two points, and divisors begin at 2 */
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
    IRON_TRY(find_kernels(t, err));
    IRON_TRY(make_buffers(t, err));
    return t->config.outputs ? quads_build(t, err) : IRON_OK;
}

iron_status iron__tokens_gpu_create(iron__gpu_device *device, const iron__tokens_gpu_config *config,
                                    iron__tokens_gpu **out, iron_error *err) {
    iron__tokens_gpu *t;
    iron_status status;

    *out = NULL;
    IRON_TRY(IRON_ALLOCATE(&t, config->allocator, 1, "an engine on a GPU", err));
    t->config = *config;
    t->device = device;
    status = build(t, err);
    if (status == IRON_OK)
        *out = t;
    else
        iron__tokens_gpu_destroy(t);
    return status;
}

iron_status iron__tokens_gpu_begin(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                   const iron__nodes *nodes, iron__contribution closed,
                                   uint64_t batches, iron_error *err) {
    const iron_lattice *l = t->config.lattice;
    gpu_buffers *b = &t->buffers;
    iron__gpu_buffer *cleared[] = {b->xors,   b->sums,    b->additions, b->slots,
                                   b->epochs, b->arrived, b->overflow,  b->nearest};
    size_t n = nodes->count;

    t->totals[0] = closed.sum;
    t->totals[1] = closed.xors;
    t->progress = (iron__tokens_gpu_progress){.closed_tokens = closed.count, .batches = batches};
    t->pending = 0;
    t->shared_entry = 0;
    t->is_step_last = false;
    if (t->record)
        t->record->closed = NULL;
    for (size_t k = 0; k < IRON_KIT_COUNT(cleared); k++)
        IRON_TRY(iron__gpu_clear(queue, cleared[k], 0, cleared[k]->bytes, err));
    IRON_TRY(upload(queue, b->accumulators, nodes->xor_accumulators, n * sizeof(k_u32), err));
    IRON_TRY(upload(queue, b->potentials, nodes->potentials, n * sizeof(k_f32), err));
    IRON_TRY(upload(queue, b->activations, nodes->activations, n * sizeof(k_f32), err));
    IRON_TRY(upload(queue, b->totals, t->totals, sizeof t->totals, err));
    IRON_TRY(upload(queue, b->points, l->points, sizeof l->points, err));
    IRON_TRY(upload(queue, b->nearest, l->nearest, 2 * (size_t)l->span - 1, err));
    return iron__gpu_queue_wait(queue, err);
}

iron_status iron__tokens_gpu_record(iron__tokens_gpu *t, iron__batch_closed closed, void *context,
                                    iron_error *err) {
    IRON_FAIL_IF(!t->config.row->takes_many, err, IRON_E_UNSUPPORTED,
                 "mode %s applies batches on the GPU; they can be recorded in mode champion",
                 t->config.row->mode);
    if (!t->record)
        IRON_TRY(IRON_ALLOCATE(&t->record, t->config.allocator, 1, "batches", err));
    t->record->closed = closed;
    t->record->context = context;
    t->record->total = iron__contribution_neutral();
    return IRON_OK;
}

static bool is_recording(const iron__tokens_gpu *t) { return t->record && t->record->closed; }

static tokens_span span_of(const iron__tokens_gpu *t, uint64_t begin, uint64_t count) {
    tokens_span s = t->span;

    s.begin = begin;
    s.count = count;
    s.open = t->progress.open_tokens;
    s.first = t->config.by_batch ? s.open : stream_position(t);
    s.slot = t->config.row->takes_many ? t->pending : t->shared_entry;
    return s;
}

/* Counts tokens that a launch has taken, and the batches that they close. */
static void count_tokens(iron__tokens_gpu *t, uint64_t count) {
    iron__tokens_gpu_progress *p = &t->progress;
    uint64_t closed = (p->open_tokens + count) / t->config.batch;

    p->open_tokens = (p->open_tokens + count) % t->config.batch;
    p->closed_tokens += closed * t->config.batch;
    p->batches += closed;
    t->pending += (uint32_t)closed;
}

/* Below this one small group per batch is fastest; above, all groups work on each batch. */
#define SHORT_BATCH  16384u
#define SHORT_GROUPS 65536u

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

    if (row->groups)
        row->groups(&t->device->info, s, launch.groups);
    else
        launch.groups[0] = (uint32_t)iron__kit_pieces(s->nodes, row->nodes);
    if (row->takes_many && s->batch < SHORT_BATCH) {
        launch.kernel = t->kernels.few;
        launch.threads[0] = TOKENS_FEW_THREADS;
        launch.groups[0] = at_most(iron__kit_pieces(s->open + s->count, s->batch), SHORT_GROUPS);
    }
    t->is_step_last = false;
    return iron__gpu_run(queue, &launch, err);
}

/* Arguments that several kernels have. */
#define NODE_ARGS(b)                                                                               \
    IRON_GPU_BUFFER((b)->accumulators), IRON_GPU_BUFFER((b)->potentials),                          \
        IRON_GPU_BUFFER((b)->activations)
#define LATTICE_ARGS(b) IRON_GPU_BUFFER((b)->points), IRON_GPU_BUFFER((b)->nearest)

static uint32_t apply_groups(const iron__tokens_gpu *t) {
    return (uint32_t)iron__kit_pieces(t->config.nodes, TOKENS_APPLY_THREADS);
}

/* Part II's second kernel: applies one batch of `count` tokens to every node. Afterwards its
 * entries are neutral, or the next batch uses others that are. */
static iron_status apply_one(iron__tokens_gpu *t, iron__gpu_queue *queue, uint64_t count,
                             iron_error *err) {
    const iron__tokens_gpu_row *row = t->config.row;
    gpu_buffers *b = &t->buffers;
    tokens_closing c = t->closing;
    uint32_t shared = !row->per_node ? 3u : row->shares_sum ? 2u : 0u;

    c.count = 1;
    c.last = count;
    IRON_TRY(IRON_KIT_LAUNCH(queue, err, t->kernels.apply_one, apply_groups(t),
                             TOKENS_APPLY_THREADS, IRON_GPU_BUFFER(b->xors),
                             IRON_GPU_BUFFER(b->sums), NODE_ARGS(b), IRON_GPU_BUFFER(b->totals),
                             LATTICE_ARGS(b), IRON_GPU_VALUE(t->lattice), IRON_GPU_VALUE(c),
                             IRON_GPU_VALUE(shared), IRON_GPU_VALUE(t->shared_entry)));
    t->shared_entry ^= 1;
    return IRON_OK;
}

/* Hands the pending batches to the host. The open batch, whose entry follows them, moves to the
 * first entry. */
static iron_status record_many(iron__tokens_gpu *t, iron__gpu_queue *queue, uint64_t last,
                               iron_error *err) {
    batch_record *r = t->record;
    gpu_buffers *b = &t->buffers;
    uint32_t count = t->pending;
    size_t xors = (count + 1) * sizeof(k_u32), sums = (count + 1) * sizeof(k_u64);

    IRON_TRY(download(queue, b->xors, r->xors, xors, err));
    IRON_TRY(download(queue, b->sums, r->sums, sums, err));
    IRON_TRY(iron__gpu_clear(queue, b->xors, 0, xors, err));
    IRON_TRY(iron__gpu_clear(queue, b->sums, 0, sums, err));
    IRON_TRY(iron__gpu_queue_wait(queue, err));
    IRON_TRY(upload(queue, b->xors, &r->xors[count], sizeof(k_u32), err));
    IRON_TRY(upload(queue, b->sums, &r->sums[count], sizeof(k_u64), err));
    IRON_TRY(iron__gpu_queue_wait(queue, err));
    t->pending = 0;
    for (uint32_t k = 0; k < count; k++) {
        iron__contribution batch = {k + 1 < count ? t->config.batch : last, r->sums[k], r->xors[k]};

        r->total = iron__contribution_merge(r->total, batch);
        r->closed(r->context, batch);
    }
    return IRON_OK;
}

/* Applies the pending batches, or hands them to the host; the last one has `last` tokens. */
static iron_status apply_many(iron__tokens_gpu *t, iron__gpu_queue *queue, uint64_t last,
                              iron_error *err) {
    gpu_buffers *b = &t->buffers;
    tokens_closing c = t->closing;
    iron__gpu_launch gather = {
        .kernel = t->kernels.gather,
        .groups = {apply_groups(t), (uint32_t)iron__kit_pieces(t->pending, TOKENS_CHUNK)},
        .threads = {TOKENS_APPLY_THREADS, 1},
        IRON_KIT_ARGS(IRON_GPU_BUFFER(b->xors), IRON_GPU_BUFFER(b->sums),
                      IRON_GPU_BUFFER(b->activations), IRON_GPU_BUFFER(b->batch_potentials),
                      IRON_GPU_BUFFER(b->additions), IRON_GPU_BUFFER(b->maps),
                      IRON_GPU_BUFFER(b->totals), LATTICE_ARGS(b), IRON_GPU_VALUE(t->lattice),
                      IRON_GPU_VALUE(c))};

    if (is_recording(t))
        return record_many(t, queue, last, err);
    c.count = t->pending;
    c.last = last;
    t->is_step_last = false;
    IRON_TRY(iron__gpu_run(queue, &gather, err));
    IRON_TRY(IRON_KIT_LAUNCH(queue, err, t->kernels.settle, apply_groups(t), TOKENS_APPLY_THREADS,
                             IRON_GPU_BUFFER(b->xors), IRON_GPU_BUFFER(b->sums), NODE_ARGS(b),
                             IRON_GPU_BUFFER(b->batch_potentials), IRON_GPU_BUFFER(b->additions),
                             IRON_GPU_BUFFER(b->maps), LATTICE_ARGS(b), IRON_GPU_VALUE(t->lattice),
                             IRON_GPU_VALUE(c)));
    t->pending = 0;
    return IRON_OK;
}

iron_status iron__tokens_gpu_apply_pending(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                           iron_error *err) {
    return t->pending == 0 ? IRON_OK : apply_many(t, queue, t->config.batch, err);
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
    t->pending++;
    return apply_many(t, queue, count, err);
}

/* A step: 6144 quads per group, 12 per thread. Fewer groups exchange their sums sooner, more groups
 * read faster: 32 were best for 3 MiB on an H200, in a chain of launches that overlap. One group
 * per unit reads as fast as two, except for what takes so long that the end does not matter. */
#define STEP_SHARE       6144u
#define STEP_TOKENS_LONG (UINT64_C(128) << 20)

/* Whole: the time that one group takes for all nodes must be short compared with the reading. Half
 * of the groups that fit a unit read as fast as all, and only half as many must arrive. */
#define WHOLE_NODES_MAX   16384u
#define WHOLE_UNIT_GROUPS 4u

/* Can the groups wait for each other, and are the tokens aligned as step needs it? */
static bool can_synchronise(const iron__tokens_gpu *t, const tokens_span *s) {
    return t->kernels.step && s->begin % 4 == 0 && s->first % 16 == 0;
}

/* The group that finishes last updates the nodes. */
static iron_status launch_last_group(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                     const iron__gpu_buffer *tokens, const tokens_span *s,
                                     iron_error *err) {
    gpu_buffers *b = &t->buffers;
    tokens_closing c = t->closing;
    uint32_t groups[2];

    t->config.row->groups(&t->device->info, s, groups);
    c.count = 1;
    c.last = s->count;
    t->is_step_last = false;
    return IRON_KIT_LAUNCH(queue, err, t->kernels.whole,
                           at_most((uint64_t)WHOLE_UNIT_GROUPS * t->device->info.units, groups[0]),
                           TOKENS_CHAMPION_THREADS, IRON_GPU_BUFFER(tokens),
                           IRON_GPU_BUFFER(b->xors), IRON_GPU_BUFFER(b->sums),
                           IRON_GPU_BUFFER(b->arrived), NODE_ARGS(b), IRON_GPU_BUFFER(b->totals),
                           LATTICE_ARGS(b), IRON_GPU_VALUE(*s), IRON_GPU_VALUE(t->lattice),
                           IRON_GPU_VALUE(c));
}

/* All groups exchange their sums; the first ones update the nodes. */
static iron_status launch_synchronised(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                       const iron__gpu_buffer *tokens, const tokens_span *s,
                                       iron_error *err) {
    gpu_buffers *b = &t->buffers;
    uint32_t most = t->device->info.units * (s->count < STEP_TOKENS_LONG ? 1u : 2u);
    /* It reads tokens before it waits: it may begin early only after another step, which writes
     * none, with nothing else in between. */
    uint32_t overlaps = t->config.is_chained && t->is_step_last;
    tokens_closing c = t->closing;
    iron__gpu_launch launch = {
        .kernel = t->kernels.step,
        .groups = {at_most(iron__kit_pieces(s->count / 4, STEP_SHARE),
                           at_most(most, TOKENS_STEP_GROUPS))},
        .threads = {TOKENS_STEP_THREADS, 1},
        .flags = IRON_GPU_LAUNCH_COOPERATIVE | (overlaps ? IRON_GPU_LAUNCH_OVERLAP : 0u),
        IRON_KIT_ARGS(IRON_GPU_BUFFER(tokens), IRON_GPU_BUFFER(b->slots),
                      IRON_GPU_BUFFER(b->epochs), NODE_ARGS(b), IRON_GPU_BUFFER(b->totals),
                      LATTICE_ARGS(b), IRON_GPU_VALUE(*s), IRON_GPU_VALUE(t->lattice),
                      IRON_GPU_VALUE(c), IRON_GPU_VALUE(overlaps))};

    c.count = 1;
    c.last = s->count;
    IRON_TRY(iron__gpu_run(queue, &launch, err));
    t->is_step_last = true;
    return IRON_OK;
}

/* Is the span one whole batch that a single launch can reduce and apply? No batch is pending. */
static bool is_whole_batch(const iron__tokens_gpu *t, const tokens_span *s) {
    return !is_recording(t) && t->pending == 0 && s->open == 0 && s->count == s->batch &&
           s->batch >= SHORT_BATCH && (t->config.nodes <= WHOLE_NODES_MAX || can_synchronise(t, s));
}

/* How many tokens of the span one launch can take for both contribution and seal: whole quads of
 * one window, if batches consist of whole quads too. 0: they need separate launches. */
static uint64_t shared_quads(const iron__tokens_gpu *t, const tokens_span *s) {
    uint64_t position = stream_position(t);

    if (!t->quads || s->begin % 4 || position % 4 || s->open % 4 || s->batch % 4 ||
        s->batch < SHORT_BATCH || (t->config.outputs & IRON_TOKENS_TWO_READS))
        return 0;
    return 4 * iron__min(s->count / 4, quads_in_window(position));
}

/* Takes as much as there are entries for; *taken says how much. */
static iron_status feed_many(iron__tokens_gpu *t, iron__gpu_queue *queue,
                             const iron__gpu_buffer *tokens, uint64_t begin, uint64_t count,
                             uint64_t *taken, iron_error *err) {
    uint64_t batch = t->config.batch, quads;
    uint32_t entries = TOKENS_PENDING_MAX - t->pending;
    tokens_span s;

    *taken = count / batch < entries ? count : entries * batch - t->progress.open_tokens;
    s = span_of(t, begin, *taken);
    quads = shared_quads(t, &s);
    if (quads > 0) {
        s.count = *taken = quads;
        IRON_TRY(launch_seal_and_reduce(t, queue, tokens, &s, err));
    } else {
        IRON_TRY(launch_seal(t, queue, tokens, &s, err));
        if (is_whole_batch(t, &s)) {
            IRON_TRY((can_synchronise(t, &s) ? launch_synchronised
                                             : launch_last_group)(t, queue, tokens, &s, err));
            t->progress.closed_tokens += s.count;
            t->progress.batches++;
            return IRON_OK;
        }
        IRON_TRY(launch_reduce(t, queue, tokens, &s, err));
    }
    count_tokens(t, *taken);
    return t->pending == TOKENS_PENDING_MAX ? iron__tokens_gpu_apply_pending(t, queue, err)
                                            : IRON_OK;
}

/* A launch of the modes that take one batch: few enough tokens to count in 32 bits, and to end in a
 * second or two, because displays and watchdogs wait for it. */
#define PIECE_TOKENS  (UINT64_C(1) << 28)
#define PIECE_LEAST   UINT64_C(256)
#define PIECE_SECONDS 1.0

static uint64_t piece_of(const iron__tokens_gpu *t) {
    double seconds =
        iron__tokens_gpu_seconds(t->config.row, &t->device->info, t->config.nodes, PIECE_TOKENS);
    double piece = (double)PIECE_TOKENS;

    if (seconds > PIECE_SECONDS)
        piece *= PIECE_SECONDS / seconds;
    return iron__max((uint64_t)piece, PIECE_LEAST);
}

/* A piece of the open batch. If that closes the batch, it is applied. */
static iron_status feed_piece(iron__tokens_gpu *t, iron__gpu_queue *queue,
                              const iron__gpu_buffer *tokens, uint64_t begin, uint64_t count,
                              uint64_t *taken, iron_error *err) {
    uint64_t left = t->config.batch - t->progress.open_tokens;
    tokens_span s = span_of(t, begin, iron__min(iron__min(count, left), piece_of(t)));

    *taken = s.count;
    IRON_TRY(launch_seal(t, queue, tokens, &s, err));
    IRON_TRY(launch_reduce(t, queue, tokens, &s, err));
    t->progress.open_tokens += *taken;
    return t->progress.open_tokens == t->config.batch ? iron__tokens_gpu_end_batch(t, queue, err)
                                                      : IRON_OK;
}

/* Only the seal: all of it counts as one open batch, which is never applied. */
static iron_status feed_seal(iron__tokens_gpu *t, iron__gpu_queue *queue,
                             const iron__gpu_buffer *tokens, uint64_t begin, uint64_t count,
                             uint64_t *taken, iron_error *err) {
    tokens_span s = span_of(t, begin, count);

    IRON_TRY(launch_seal(t, queue, tokens, &s, err));
    t->progress.open_tokens += count;
    *taken = count;
    return IRON_OK;
}

iron_status iron__tokens_gpu_feed(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                  const iron__gpu_buffer *tokens, uint64_t begin, uint64_t count,
                                  iron_error *err) {
    while (count > 0) {
        uint64_t taken = 0;

        IRON_TRY((t->config.outputs & IRON_TOKENS_SEAL_ONLY ? feed_seal
                  : t->config.row->takes_many
                      ? feed_many
                      : feed_piece)(t, queue, tokens, begin, count, &taken, err));
        begin += taken;
        count -= taken;
    }
    return IRON_OK;
}

#define WIDEN_GROUPS 4096u

iron_status iron__tokens_gpu_widen(iron__tokens_gpu *t, iron__gpu_queue *queue, size_t width,
                                   const iron__gpu_buffer *from, uint64_t begin,
                                   const iron__gpu_buffer *to, uint64_t count, iron_error *err) {
    uint32_t groups = at_most(iron__kit_pieces(count, TOKENS_WIDEN_THREADS), WIDEN_GROUPS);
    iron__gpu_kernel *kernel = width == 1   ? t->kernels.widen_u8
                               : width == 2 ? t->kernels.widen_u16
                                            : t->kernels.widen_i64;

    t->is_step_last = false;
    return IRON_KIT_LAUNCH(queue, err, kernel, groups, TOKENS_WIDEN_THREADS, IRON_GPU_BUFFER(from),
                           IRON_GPU_BUFFER(to), IRON_GPU_BUFFER(t->buffers.overflow),
                           IRON_GPU_VALUE(begin), IRON_GPU_VALUE(count));
}

iron_status iron__tokens_gpu_fetch(iron__tokens_gpu *t, iron__gpu_queue *queue, iron__nodes *nodes,
                                   iron__contribution *closed, iron_error *err) {
    gpu_buffers *b = &t->buffers;
    size_t n = nodes->count;

    IRON_TRY(iron__tokens_gpu_apply_pending(t, queue, err));
    IRON_TRY(download(queue, b->accumulators, nodes->xor_accumulators, n * sizeof(k_u32), err));
    IRON_TRY(download(queue, b->potentials, nodes->potentials, n * sizeof(k_f32), err));
    IRON_TRY(download(queue, b->totals, t->totals, sizeof t->totals, err));
    IRON_TRY(iron__gpu_queue_wait(queue, err));
    *closed = (iron__contribution){t->progress.closed_tokens, t->totals[0], (uint32_t)t->totals[1]};
    if (is_recording(t)) {
        closed->sum += t->record->total.sum;
        closed->xors ^= t->record->total.xors;
    }
    return IRON_OK;
}

iron__tokens_gpu_progress iron__tokens_gpu_progress_of(const iron__tokens_gpu *t) {
    return t->progress;
}

iron_status iron__tokens_gpu_overflowed(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                        bool *overflowed, iron_error *err) {
    IRON_TRY(download(queue, t->buffers.overflow, &t->overflow, sizeof t->overflow, err));
    IRON_TRY(iron__gpu_queue_wait(queue, err));
    *overflowed = t->overflow != 0;
    return IRON_OK;
}

iron_status iron__tokens_gpu_seal_begin(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                        const iron__quads_total *from, iron_error *err) {
    quads_gpu *q = t->quads;

    q->before = *from;
    for (size_t k = 0; k < FOUND_COUNT; k++)
        q->host[k] = (quads_found){.first = UINT64_MAX, .min = UINT32_MAX};
    memcpy(q->host_carry, from->seal.carry, sizeof from->seal.carry);
    IRON_TRY(upload(queue, t->buffers.found, q->host, sizeof q->host, err));
    IRON_TRY(upload(queue, t->buffers.carry, q->host_carry, sizeof q->host_carry, err));
    return iron__gpu_queue_wait(queue, err);
}

iron_status iron__tokens_gpu_seal_fetch(iron__tokens_gpu *t, iron__gpu_queue *queue,
                                        iron__quads_total *total, iron_error *err) {
    quads_gpu *q = t->quads;
    uint64_t position = stream_position(t);

    IRON_TRY(download(queue, t->buffers.found, q->host, sizeof q->host, err));
    IRON_TRY(download(queue, t->buffers.carry, q->host_carry, sizeof q->host_carry, err));
    IRON_TRY(iron__gpu_queue_wait(queue, err));
    *total = q->before;
    total->seal.words.count = position / 4 * 4;
    total->seal.carried = (uint32_t)(position % 4);
    for (uint32_t k = 0; k < 3; k++) /* entries of a complete quad are not carried */
        total->seal.carry[k] = k < total->seal.carried ? q->host_carry[k] : 0;
    for (size_t k = 0; k < FOUND_COUNT; k++) {
        const quads_found *f = &q->host[k];
        iron__token_stats stats = {f->outside, f->first, f->first_value, f->min, f->max};

        total->seal.words =
            iron__seal_merge(total->seal.words, (iron__seal_words){0, f->t, f->a, f->b});
        total->stats = iron__token_stats_merge(total->stats, stats);
    }
    return IRON_OK;
}
