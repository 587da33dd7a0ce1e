/* SPDX-License-Identifier: MIT */
/*
 * divergence.c: branch divergence: odd elements take one path of 24 rounds, even elements another.
 * The race shows which assignments of elements to threads keep a warp on one path.
 *
 * The lowest bit of an element chooses its path, so the key costs no memory. The axis `keys` makes
 * it the lowest bit of the index (alternating) or a random bit. The check computes each element
 * again; no reference is stored.
 *
 * On the CPU a branch costs when it is mispredicted, and it prevents vectorization. Computing both
 * paths in vectors and selecting by masks avoids both problems but computes twice as much.
 *
 * The file holds, in order: the two paths, the problem and its check, the CPU rows, the GPU rows
 * (one kernel each; they differ in the number of elements per group), and the op's table.
 */
#include "core/fail.h"
#include "ops/data.h"
#include "ops/divergence/kernel_params.h"
#include "ops/kit.h"
#include "ops/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Values of the axis `keys`. */
enum { KEYS_ALTERNATING, KEYS_RANDOM };

static bool alternates(const iron__case *c) { return c->at[0] == KEYS_ALTERNATING; }

static inline uint32_t odd_path(uint32_t x) {
    for (int k = 0; k < DIVERGENCE_ROUNDS; k++) {
        x = x * DIVERGENCE_ODD_P + DIVERGENCE_ODD_Q;
        x ^= x >> 15;
    }
    return x;
}

static inline uint32_t even_path(uint32_t x) {
    for (int k = 0; k < DIVERGENCE_ROUNDS; k++) {
        x ^= x << 11 ^ DIVERGENCE_EVEN_R;
        x *= DIVERGENCE_EVEN_S;
    }
    return x;
}

static inline uint32_t value_of(uint32_t x) { return x & 1 ? odd_path(x) : even_path(x); }

#define STREAM 1u

typedef struct filling {
    uint32_t *in;
    uint64_t base;
    bool alternates;
} filling;

static void fill_piece(void *context, size_t begin, size_t end) {
    const filling *f = context;

    for (size_t k = begin; k < end; k++) {
        uint32_t x = (uint32_t)(iron__data_bits(f->base, k) >> 32);

        f->in[k] = f->alternates ? (x & ~UINT32_C(1)) | (uint32_t)(k & 1) : x;
    }
}

static iron_status fill(iron__op_problem *p, iron_error *err) {
    filling f = {.base = iron__data_base(p->c.seed, STREAM), .alternates = alternates(&p->c)};

    p->input_count = 1;
    p->output_bytes = (size_t)p->c.rows * sizeof(uint32_t);
    IRON_TRY(iron__data_take(&p->inputs[0], "in", p->output_bytes, err));
    f.in = p->inputs[0].data;
    iron__data_pieces(p->pool, (size_t)p->c.rows, fill_piece, &f);
    return IRON_OK;
}

static iron_status make(iron__op_problem *out, iron__thread_pool *pool, iron_error *err) {
    return iron__data_make(out, pool, fill, err);
}

typedef struct answer {
    const uint32_t *in, *out;
} answer;

static bool differs(const void *context, size_t k) {
    const answer *a = context;

    return a->out[k] != value_of(a->in[k]);
}

static bool check(const iron__op_problem *problem, const void *output, char *text, size_t size) {
    answer a = {problem->inputs[0].data, output};
    size_t count = (size_t)problem->c.rows;
    size_t first = iron__data_first(problem->pool, count, differs, &a);

    if (first < count)
        snprintf(text, size, "out[%zu] is %" PRIu32 ", should be %" PRIu32, first, a.out[first],
                 value_of(a.in[first]));
    return first == count;
}

typedef uint32_t lanes __attribute__((vector_size(16)));

#define LANES  (sizeof(lanes) / sizeof(uint32_t))
#define CHAINS 4u /* independent vectors */

static void plain_piece(void *context, size_t begin, size_t end) {
    const iron__cpu_work *w = context;
    const uint32_t *in = w->problem->inputs[0].data;
    uint32_t *out = w->output;

    for (size_t k = begin; k < end; k++)
        out[k] = value_of(in[k]);
}

static inline void both_paths(const lanes *x, lanes *out) {
    lanes odd[CHAINS], even[CHAINS];

    memcpy(odd, x, sizeof odd);
    memcpy(even, x, sizeof even);
    for (int k = 0; k < DIVERGENCE_ROUNDS; k++)
        for (size_t c = 0; c < CHAINS; c++) {
            odd[c] = odd[c] * DIVERGENCE_ODD_P + DIVERGENCE_ODD_Q;
            odd[c] ^= odd[c] >> 15;
            even[c] ^= even[c] << 11 ^ DIVERGENCE_EVEN_R;
            even[c] *= DIVERGENCE_EVEN_S;
        }
    for (size_t c = 0; c < CHAINS; c++) {
        lanes mask = -(x[c] & 1);

        out[c] = (odd[c] & mask) | (even[c] & ~mask);
    }
}

static void branch_free_piece(void *context, size_t begin, size_t end) {
    const iron__cpu_work *w = context;
    const uint32_t *in = w->problem->inputs[0].data;
    uint32_t *out = w->output;
    size_t k = begin;

    for (; k + CHAINS * LANES <= end; k += CHAINS * LANES) {
        lanes x[CHAINS], y[CHAINS];

        memcpy(x, in + k, sizeof x);
        both_paths(x, y);
        memcpy(out + k, y, sizeof y);
    }
    plain_piece(context, k, end);
}

static void run_plain(const iron__cpu_work *w) {
    iron__data_run(w, plain_piece, (void *)(uintptr_t)w);
}

static void run_branch_free(const iron__cpu_work *w) {
    iron__data_run(w, branch_free_piece, (void *)(uintptr_t)w);
}

/* Approximate operations per second of one thread, to tell seconds from minutes. */
#define PLAIN_RATE  4e9
#define VECTOR_RATE 2e10

static double seconds(const iron__contender *row, const iron__case *c, const iron__gpu_info *device,
                      uint32_t threads) {
    double path = 4.0 * DIVERGENCE_ROUNDS * (double)c->rows;

    (void)device;
    if (row->cpu_run == run_plain)
        return path / PLAIN_RATE;
    return 2 * path / VECTOR_RATE / (row->is_single ? 1 : threads);
}

static const iron__contender cpu_rows[] = {
    {.name = "plain",
     .idea = "one element at a time with a branch",
     .backends = IRON_ON_CPU,
     .cpu_run = run_plain,
     .is_single = true,
     .seconds = seconds},
    {.name = "branch-free",
     .idea = "both paths in vectors, selected by masks",
     .beats = "plain",
     .backends = IRON_ON_CPU,
     .cpu_run = run_branch_free,
     .is_single = true,
     .seconds = seconds},
    {.name = "threads",
     .idea = "the same on all threads",
     .beats = "branch-free",
     .backends = IRON_ON_CPU,
     .cpu_run = run_branch_free,
     .seconds = seconds},
};

IRON_GPU_EMBEDDED(divergence)

static const iron__gpu_image image = IRON_GPU_IMAGE(divergence);

/* Local memory of sorted: elements with gaps, and a small reserve. */
#define LOCAL_BYTES (DIVERGENCE_CHUNK * 5u + DIVERGENCE_THREADS * 4u + 256u)

/* `sharing` groups process `piece` elements together. */
static iron_status launch(iron__gpu_work *work, const iron__gpu_data *data, uint64_t piece,
                          uint32_t sharing, iron__gpu_queue *queue, iron_error *err) {
    uint64_t count = work->c.rows;
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(count)};
    const iron__gpu_launch l = {.kernel = work->kernels[0],
                                .groups = {(uint32_t)iron__kit_pieces(count, piece) * sharing},
                                .threads = {DIVERGENCE_THREADS},
                                .args = args,
                                .arg_count = IRON_KIT_COUNT(args)};

    return iron__gpu_run(queue, &l, err);
}

static iron_status run_elements(iron__gpu_work *work, const iron__gpu_data *data,
                                iron__gpu_queue *queue, iron_error *err) {
    return launch(work, data, DIVERGENCE_THREADS, 1, queue, err);
}

static iron_status run_blocks(iron__gpu_work *work, const iron__gpu_data *data,
                              iron__gpu_queue *queue, iron_error *err) {
    return launch(work, data, UINT64_C(2) * DIVERGENCE_THREADS, 2, queue, err);
}

static iron_status run_quads(iron__gpu_work *work, const iron__gpu_data *data,
                             iron__gpu_queue *queue, iron_error *err) {
    return launch(work, data, UINT64_C(4) * DIVERGENCE_THREADS, 1, queue, err);
}

static iron_status run_chunks(iron__gpu_work *work, const iron__gpu_data *data,
                              iron__gpu_queue *queue, iron_error *err) {
    return launch(work, data, (uint64_t)DIVERGENCE_CHUNK, 1, queue, err);
}

static iron_status suits(const iron__gpu_device *device, const iron__case *c, iron_error *err) {
    (void)c;
    return iron__needs_threads(device, DIVERGENCE_THREADS, err);
}

static iron_status suits_chunks(const iron__gpu_device *device, const iron__case *c,
                                iron_error *err) {
    IRON_TRY(suits(device, c, err));
    return iron__needs_local(device, LOCAL_BYTES, err);
}

/* For rows that rely on the index. */
static bool wants_alternating(const iron__contender *row, const iron__case *c) {
    (void)row;
    return alternates(c);
}

#define SPEC(kernel, rule)                                                                         \
    { .image = &image, .kernels = {kernel}, .suits = (rule) }

static const iron__kit_spec by_thread = SPEC("divergence_thread", suits);
static const iron__kit_spec by_warp = SPEC("divergence_warp", suits);
static const iron__kit_spec by_block = SPEC("divergence_block", suits);
static const iron__kit_spec both = SPEC("divergence_both", suits);
static const iron__kit_spec pair = SPEC("divergence_pair", suits);
static const iron__kit_spec sorted = SPEC("divergence_sorted", suits_chunks);

static const iron__gpu_launcher elements_launcher = {IRON_KIT_LAUNCHER, .run = run_elements};
static const iron__gpu_launcher blocks_launcher = {IRON_KIT_LAUNCHER, .run = run_blocks};
static const iron__gpu_launcher quads_launcher = {IRON_KIT_LAUNCHER, .run = run_quads};
static const iron__gpu_launcher chunks_launcher = {IRON_KIT_LAUNCHER, .run = run_chunks};

static const iron__contender gpu_rows[] = {
    {.name = "thread-odd-even",
     .idea = "thread k takes element k: warps contain both kinds and execute both paths",
     .backends = IRON_ON_GPU,
     .gpu = &elements_launcher,
     .own = &by_thread},
    {.name = "branch-free",
     .idea = "both paths for every element, selected by masks",
     .beats = "thread-odd-even",
     .backends = IRON_ON_GPU,
     .gpu = &elements_launcher,
     .own = &both},
    {.name = "block-uniform",
     .idea = "every second group takes the odd elements, the others take the even ones",
     .beats = "thread-odd-even",
     .backends = IRON_ON_GPU,
     .suits = wants_alternating,
     .gpu = &blocks_launcher,
     .own = &by_block},
    {.name = "warp-uniform",
     .idea =
         "every second warp takes the odd ones of 64 elements: both warps use the same cache lines",
     .beats = "block-uniform",
     .backends = IRON_ON_GPU,
     .suits = wants_alternating,
     .gpu = &elements_launcher,
     .own = &by_warp},
    {.name = "thread-pair",
     .idea = "a thread takes 16 bytes, two elements of each kind: both paths run on all lanes",
     .beats = "warp-uniform",
     .backends = IRON_ON_GPU,
     .suits = wants_alternating,
     .gpu = &quads_launcher,
     .own = &pair},
    {.name = "sorted",
     .idea = "a group sorts its elements by key in local memory, for unpredictable keys",
     .beats = "thread-odd-even",
     .backends = IRON_ON_GPU,
     .gpu = &chunks_launcher,
     .own = &sorted},
};

#define ROWS_MAX (UINT64_C(1) << 36)

static const char why[] =
    "The 32 threads of a warp run in lockstep. If some take one side of a branch and some the "
    "other, the warp executes both sides, each with part of its threads idle: two paths that "
    "alternate between neighbours cost the sum of both. The cost comes from the mixture, not from "
    "the branch: a warp whose threads all take the same side pays for that side only.\n"
    "\n"
    "So the question is which thread processes which element. If the keys alternate, the index "
    "tells: warps or whole groups of one kind read every second element and run one path; or a "
    "thread takes neighbours of both kinds and runs both paths, each on all lanes. If the keys "
    "are random, a group first sorts its elements by key in local memory: then all of its warps "
    "but one have a single kind. Computing both paths for every element and selecting without a "
    "branch does on purpose what a divergent warp does by accident. The paths are so long that a "
    "kernel that runs both is limited by computation, and a kernel that runs only the right one "
    "comes close to memory bandwidth.";

static const char traffic[] =
    "Useful: each element read once and written once, 8 bytes; the key is a bit of the element. "
    "block-uniform has two groups for each cache line: each reads all of it and uses half, and "
    "the second reads it from the L2 cache. In warp-uniform two warps of one group share a cache "
    "line.";

static const char unless[] =
    "Sorting does not pay if the paths are short (compilers turn a few instructions into "
    "selections without a branch), if one path is almost never taken, if keys come in runs of "
    "whole warps anyway, or if memory takes longer than both paths together.";

static const char used[] =
    "In tokens_champion (src/ops/tokens/champion.k) all threads of a group reach the end of a "
    "batch at the same time, since a group reads one contiguous range: its loops are uniform, and "
    "what does not fill 16 bytes is processed at the edges, once per batch. The single pass in "
    "src/ops/atax/atax_real.k chooses between aligned and unaligned rows at compile time, not per "
    "element. No kernel of the engine needs to sort by path.";

static const char *const keys[] = {"alternating", "random"};
static const iron__axis axes[] = {
    {.name = "keys",
     .about = "which elements are odd: every second one, or random ones",
     .words = keys,
     .count = IRON_KIT_COUNT(keys)}};

static const iron__size sizes[] = {{"size", "SMALL", UINT64_C(1) << 16, 1, NULL},
                                   {"size", "STANDARD", UINT64_C(1) << 24, 1, NULL},
                                   {"size", "LARGE", UINT64_C(1) << 28, 1, NULL}};

static uint64_t useful_bytes(const iron__case *c) { return 2 * sizeof(uint32_t) * c->rows; }

/* One path, four operations per round. */
static double operations(const iron__case *c) { return 4.0 * DIVERGENCE_ROUNDS * (double)c->rows; }

static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t least = has_gpu ? UINT64_C(1) << 26 : UINT64_C(1) << 24;

    (void)element;
    *rows = iron__line_usual(least, ROWS_MAX, 2 * sizeof(uint32_t), cache_bytes);
    *cols = 1;
}

static bool contender_at(size_t index, iron__contender *out) {
    return iron__row_at(cpu_rows, IRON_KIT_COUNT(cpu_rows), &index, out) ||
           iron__row_at(gpu_rows, IRON_KIT_COUNT(gpu_rows), &index, out);
}

const iron__op iron__op_divergence = {
    .name = "divergence",
    .contract = "out = A(in) for odd elements, B(in) for even ones: two chains of operations",
    .why = why,
    .traffic = traffic,
    .unless = unless,
    .used = used,
    .elements = IRON_BIT(IRON_U32),
    .usual = IRON_U32,
    .is_line = true,
    .bound = IRON_BOUND_COPY,
    .is_resident = true,
    .axes = axes,
    .axis_count = IRON_KIT_COUNT(axes),
    .baselines = {"plain", "thread-odd-even"},
    .sizes = sizes,
    .size_count = IRON_KIT_COUNT(sizes),
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations = operations,
    .rows_max = ROWS_MAX,
    .accept = iron__line_accept_case,
    .make = make,
    .unmake = iron__data_unmake,
    .check = check,
    .contender_at = contender_at,
};
