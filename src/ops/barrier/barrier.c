/* SPDX-License-Identifier: MIT */
/*
 * barrier.c: sums that threads compute together: one u32 per segment of 1024 elements
 * (reach=block), or one u64 of the whole line (reach=grid). The race compares ways to wait for
 * other threads.
 *
 * Sums are exact: integers in any order give the same bits. No element is 0, so leaving one out or
 * adding one twice changes its sum; segments have different sums, so a wrong order is detected.
 *
 * On the CPU a thread meets the others once per 256 KiB, which costs nothing compared to reading;
 * the CPU rows are only there for comparison. On GPUs reach=block launches one group or one warp
 * per segment. reach=grid launches a few groups per unit, fewer if the line is short, each of which
 * computes one sum. The only state between launches is a counter of arrived groups: it is 0 when
 * the contender is created, and each launch leaves it ready for the next.
 */
#include "core/fail.h"
#include "core/number.h"
#include "ops/barrier/kernel_params.h"
#include "ops/data.h"
#include "ops/kit.h"
#include "ops/op.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

/* The words of the axis `reach`, by index. */
enum { REACH_BLOCK, REACH_GRID };

/* Elements are 1 ... LIMIT-1, so the sum of a segment fits 32 bits. */
#define LIMIT (UINT32_C(1) << 22)

static bool is_grid_case(const iron__case *c) { return c->at[0] == (double)REACH_GRID; }

static uint64_t segments_of(const iron__case *c) {
    return iron__kit_pieces(c->rows, BARRIER_SEGMENT);
}

static size_t output_bytes_of(const iron__case *c) {
    return is_grid_case(c) ? sizeof(uint64_t) : (size_t)segments_of(c) * sizeof(uint32_t);
}

static uint32_t make_element(const iron__op_problem *p, size_t index, uint64_t bits) {
    (void)p;
    (void)index;
    return 1 + iron__data_below(bits, LIMIT - 1);
}

/* The sums of a line: of its segments, or of all. */
typedef struct summing {
    const uint32_t *line;
    uint32_t *sums;
    _Atomic uint64_t total;
} summing;

/* Pieces begin at segments. */
static void add_segments(void *context, size_t begin, size_t end) {
    const summing *s = context;

    for (size_t k = begin; k < end; k += BARRIER_SEGMENT) {
        size_t count = iron__min_size(BARRIER_SEGMENT, end - k);
        uint32_t sum = 0;

        for (size_t j = 0; j < count; j++) /* a plain loop, which compilers vectorize */
            sum += s->line[k + j];
        s->sums[k / BARRIER_SEGMENT] = sum;
    }
}

static void add_piece(void *context, size_t begin, size_t end) {
    summing *s = context;
    uint64_t sum = 0;

    for (size_t k = begin; k < end; k++)
        sum += s->line[k];
    atomic_fetch_add_explicit(&s->total, sum, memory_order_relaxed);
}

/* The answer. */
static void add_all(const iron__op_problem *p, iron__thread_pool *pool, void *output) {
    summing s = {.line = p->inputs[0].data, .sums = output};

    iron__data_pieces(pool, (size_t)p->c.rows, is_grid_case(&p->c) ? add_piece : add_segments, &s);
    if (is_grid_case(&p->c))
        *(uint64_t *)output = s.total;
}

static iron_status fill(iron__op_problem *p, iron_error *err) {
    p->output_bytes = output_bytes_of(&p->c);
    IRON_TRY(iron__data_input(p, "line", (size_t)p->c.rows, make_element, err));
    IRON_TRY(iron__data_take(&p->reference, "sums", p->output_bytes, err));
    add_all(p, p->pool, p->reference.data);
    return IRON_OK;
}

static bool check(const iron__op_problem *problem, const void *output, char *text, size_t size) {
    const uint32_t *is = output, *should_be = problem->reference.data;
    size_t count = (size_t)segments_of(&problem->c), first;

    if (is_grid_case(&problem->c)) {
        uint64_t total = *(const uint64_t *)output;
        uint64_t right = *(const uint64_t *)problem->reference.data;

        if (total != right)
            snprintf(text, size, "the sum is %" PRIu64 ", should be %" PRIu64, total, right);
        return total == right;
    }
    first = iron__data_first_word(problem, output, count);
    if (first < count)
        snprintf(text, size,
                 "sum[%zu] is %" PRIu32 ", should be %" PRIu32 ": elements %" PRIu64 " and on",
                 first, is[first], should_be[first], (uint64_t)first * BARRIER_SEGMENT);
    return first == count;
}

static void run_sums(const iron__cpu_work *work) {
    add_all(work->problem, work->pool, work->output);
}

IRON_KIT_IMAGE(barrier)

/* buffers[] of a work. */
enum { PARTIALS = 0, ARRIVED = 1 };

/* params[] of a work with reach=grid: the number of groups, and the loads per thread. */
enum { GROUPS = 0, SHARE = 1 };

/* Rows for reach=block have blocks. */
static bool suits_reach(const iron__contender *row, const iron__case *c) {
    return is_grid_case(c) == (row->gpu->block == 0);
}

static iron_status suits_grid_sync(const iron__gpu_device *device, const iron__case *c,
                                   iron_error *err) {
    (void)c;
    IRON_FAIL_IF(!device->info.can_cooperate, err, IRON_E_UNSUPPORTED,
                 "%s cannot launch groups that wait for each other", device->info.name);
    return IRON_OK;
}

static uint64_t partials_bytes(const iron__case *c, size_t index) {
    (void)c;
    return index == PARTIALS ? BARRIER_PARTIALS * sizeof(uint64_t) : 0;
}

static uint64_t counter_bytes(const iron__case *c, size_t index) {
    return index == ARRIVED ? sizeof(uint32_t) : partials_bytes(c, index);
}

/* Divides the line among the groups; if they all wait, no more than run at the same time. */
static iron_status set_up_groups(iron__gpu_work *work, iron_error *err) {
    uint64_t pieces = iron__kit_pieces(work->c.rows / 4, BARRIER_THREADS);
    uint64_t most = iron__kit_groups(work, BARRIER_PARTIALS, BARRIER_GROUPS);
    iron__gpu_resources facts = {.groups = 0};

    if (work->spec->suits == suits_grid_sync)
        IRON_TRY(iron__gpu_kernel_resources(work->device, work->kernels[0], BARRIER_THREADS, 0,
                                            &facts, err));
    if (facts.groups > 0 && work->device->info.units > 0)
        most = iron__min(most, (uint64_t)facts.groups * work->device->info.units);
    work->params[SHARE] = iron__max(iron__kit_pieces(pieces, most), 1);
    work->params[GROUPS] = iron__max(iron__kit_pieces(pieces, work->params[SHARE]), 1);
    return work->buffers[ARRIVED]
               ? iron__gpu_clear_now(work->buffers[ARRIVED], sizeof(uint32_t), err)
               : IRON_OK;
}

/* The whole line, into partial sums or one word. */
static iron_status run_line(iron__gpu_work *work, const iron__gpu_data *data,
                            const iron__gpu_buffer *to, iron__gpu_queue *queue, iron_error *err) {
    uint32_t share = (uint32_t)work->params[SHARE];

    return IRON_KIT_LAUNCH(queue, err, work->kernels[0], work->params[GROUPS], BARRIER_THREADS,
                           IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(to),
                           IRON_GPU_VALUE(work->c.rows), IRON_GPU_VALUE(share));
}

static iron_status run_two_launches(iron__gpu_work *work, const iron__gpu_data *data,
                                    iron__gpu_queue *queue, iron_error *err) {
    const iron__gpu_buffer *partials = work->buffers[PARTIALS];
    uint32_t groups = (uint32_t)work->params[GROUPS];

    IRON_TRY(run_line(work, data, partials, queue, err));
    return IRON_KIT_LAUNCH(queue, err, work->kernels[1], 1, BARRIER_THREADS,
                           IRON_GPU_BUFFER(partials), IRON_GPU_BUFFER(data->output),
                           IRON_GPU_VALUE(groups));
}

/* last-block and grid-sync count arrivals; the latter's groups all wait. */
static iron_status run_counted(iron__gpu_work *work, const iron__gpu_data *data,
                               iron__gpu_queue *queue, iron_error *err) {
    uint32_t share = (uint32_t)work->params[SHARE];
    const iron__gpu_launch l = {
        .kernel = work->kernels[0],
        .groups = {(uint32_t)work->params[GROUPS]},
        .threads = {BARRIER_THREADS},
        .flags = work->spec->suits == suits_grid_sync ? IRON_GPU_LAUNCH_COOPERATIVE : 0,
        IRON_KIT_ARGS(IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(work->buffers[PARTIALS]),
                      IRON_GPU_BUFFER(work->buffers[ARRIVED]), IRON_GPU_BUFFER(data->output),
                      IRON_GPU_VALUE(work->c.rows), IRON_GPU_VALUE(share))};

    return iron__gpu_run(queue, &l, err);
}

static iron_status run_atomic(iron__gpu_work *work, const iron__gpu_data *data,
                              iron__gpu_queue *queue, iron_error *err) {
    IRON_TRY(iron__gpu_clear(queue, data->output, 0, sizeof(uint64_t), err));
    return run_line(work, data, data->output, queue, err);
}

#define BLOCK(kernel, per_group)                                                                   \
    .suits = suits_reach, .gpu = IRON_KIT(.threads = BARRIER_THREADS, .kernels = {kernel},         \
                                          .block = (per_group), .run = iron__kit_run)
/* The counter is no scratch: a launch that leaves a wrong count must be detected. */
#define GRID(function, ...)                                                                        \
    .suits = suits_reach, .gpu = IRON_KIT(.threads = BARRIER_THREADS, .set_up = set_up_groups,     \
                                          .run = (function), __VA_ARGS__)
#define SUMS(bytes) .buffer_bytes = (bytes), .scratch = IRON_BIT(PARTIALS)

static const iron__contender contenders[] = {
    {"plain", "one loop on one thread", NULL, IRON_ON_CPU, .cpu_run = run_sums, .is_single = true},
    {"threads", "pieces of 256 KiB on all threads", "plain", IRON_ON_CPU, .cpu_run = run_sums},
    {"block-barrier", "a tree in local memory with a group barrier before each step", NULL,
     IRON_ON_GPU, BLOCK("barrier_block_barrier", BARRIER_SEGMENT)},
    {"warp-sync", "the same tree; the last warp only synchronizes with itself", "block-barrier",
     IRON_ON_GPU, BLOCK("barrier_warp_sync", BARRIER_SEGMENT)},
    {"shuffle", "warps add in registers; one barrier, then eight sums are left", "warp-sync",
     IRON_ON_GPU, BLOCK("barrier_shuffle", BARRIER_SEGMENT)},
    {"redux", "the sum of a warp in one instruction (8.0 and later; shuffles on older cards)",
     "shuffle", IRON_ON_CUDA, BLOCK("barrier_redux", BARRIER_SEGMENT)},
    {"warp-segment", "one warp per segment, eight loads per thread: no barrier", "shuffle",
     IRON_ON_GPU, BLOCK("barrier_warp_segment", BARRIER_THREADS / 32 * BARRIER_SEGMENT)},
    {"two-launches", "one sum per group; a second launch adds them", NULL, IRON_ON_GPU,
     GRID(run_two_launches, SUMS(partials_bytes),
          .kernels = {"barrier_partials", "barrier_total"})},
    {"last-block", "one launch: the last group to arrive adds all sums", "two-launches",
     IRON_ON_GPU, GRID(run_counted, SUMS(counter_bytes), .kernels = {"barrier_last_block"})},
    {"grid-sync", "one cooperative launch: all groups wait for each other, the first adds all sums",
     "two-launches", IRON_ON_CUDA,
     GRID(run_counted, SUMS(counter_bytes), .kernels = {"barrier_grid_sync"},
          .suits = suits_grid_sync)},
    {"atomic", "every group adds to one word, which is cleared first", "two-launches", IRON_ON_GPU,
     GRID(run_atomic, .kernels = {"barrier_atomic"})},
};

static uint64_t useful_bytes(const iron__case *c) {
    return c->rows * sizeof(uint32_t) + output_bytes_of(c);
}

static bool param_at(const iron__case *c, size_t index, const char **name, double *value) {
    if (index > 0 || is_grid_case(c))
        return false;
    *name = "segment";
    *value = BARRIER_SEGMENT;
    return true;
}

const iron__op iron__op_barrier = {
    .name = "barrier",
    .contract = "the sum of each 1024 consecutive u32 (reach=block; the last segment may be "
                "shorter), or one "
                "64-bit sum of all (reach=grid)",
    .why =
        "A sum is the simplest result that threads cannot compute without each other, and its cost "
        "is waiting. A barrier stops all warps of a group until the slowest arrives; a tree over "
        "256 sums has eight of them. But once 32 sums are left, only one warp works, and it needs "
        "no group barrier: it can order its own accesses to local memory (__syncwarp), pass values "
        "between registers by shuffles, or add them with one instruction (redux). Segments are as "
        "short as one load of a group, so that this part is visible next to the reading. A warp "
        "with its own segment waits for no other warp.\n"
        "\n"
        "There is no barrier across groups, unless all of them run at the same time and build one "
        "from atomics. Otherwise: end the launch and start another; count arrivals and let the "
        "last group finish; add everything to one word. All are equal on a large line, which is "
        "read at the rate of memory; on a small one, launches and waiting are all that counts. "
        "Compare --size 'size:*'.",
    .traffic =
        "The line is read once, 4 bytes per element. For reach=block 4 bytes are written per 1024 "
        "elements; for reach=grid each group writes and reads 8 bytes, a few kilobytes in total.",
    .unless =
        "If a thread has much to read before it must wait, all methods are equal, and the simplest "
        "is best. A last group or a grid-wide barrier pays only if a launch takes as long as the "
        "work; the latter also limits the launch to as many groups as fit at once. One word for "
        "all is fine for hundreds of groups, but not for millions of threads.",
    .used = "tokens_reduce_group in src/ops/tokens/tokens.k adds by shuffles with one barrier, for "
            "champion.k and others; tokens_reduce in src/ops/tokens/reduce.k keeps the tree with a "
            "barrier per step, as in its paper. tokens_champion_step in src/ops/tokens/champion.cu "
            "uses redux, and its groups wait for each other within one launch. tokens_champion in "
            "src/ops/tokens/champion.k adds each group's sums by atomics; atax_sum in "
            "src/ops/atax/atax_real.k is a second launch. No kernel lets its last group finish: "
            "atomics add the sums, and no group needs to read the total.",
    IRON_LINE_OP(IRON_U32, check),
    .bound = IRON_BOUND_READ,
    IRON_AXES({.name = "reach",
               .about = "what is summed: each 1024 elements (block), or all elements (grid)",
               IRON_WORDS("block", "grid")}),
    .param_at = param_at,
    .baselines = {"plain", "block-barrier"},
    IRON_SIZES({"size", "SMALL", UINT64_C(1) << 16, 1, NULL},
               {"size", "MEDIUM", UINT64_C(1) << 20, 1, NULL},
               {"size", "LARGE", UINT64_C(1) << 28, 1, NULL}),
    .usual_log2 = {{24, 26}, {28, 32}},
    .bytes_each = sizeof(uint32_t),
    .useful_bytes = useful_bytes, /* and the sums */
    .operations_each = 1,
    .rows_max = UINT64_C(1) << 38,
};
