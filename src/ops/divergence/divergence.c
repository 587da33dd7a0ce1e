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
 */
#include "ops/data.h"
#include "ops/divergence/kernel_params.h"
#include "ops/kit.h"
#include "ops/op.h"

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

static uint32_t make_element(const iron__op_problem *p, size_t index, uint64_t bits) {
    uint32_t x = (uint32_t)(bits >> 32);

    return alternates(&p->c) ? (x & ~UINT32_C(1)) | (uint32_t)(index & 1) : x;
}

static iron_status fill(iron__op_problem *p, iron_error *err) {
    return iron__data_input(p, "in", (size_t)p->c.rows, make_element, err);
}

static uint32_t expected(const iron__op_problem *problem, size_t k) {
    return value_of(((const uint32_t *)problem->inputs[0].data)[k]);
}

typedef uint32_t lanes __attribute__((vector_size(16)));

#define LANES  (sizeof(lanes) / sizeof(uint32_t))
#define CHAINS 4u /* independent vectors */

static void plain_piece(const iron__cpu_work *w, size_t begin, size_t end) {
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

static void branch_free_piece(const iron__cpu_work *w, size_t begin, size_t end) {
    const uint32_t *in = w->problem->inputs[0].data;
    uint32_t *out = w->output;
    size_t k = begin;

    for (; k + CHAINS * LANES <= end; k += CHAINS * LANES) {
        lanes x[CHAINS], y[CHAINS];

        memcpy(x, in + k, sizeof x);
        both_paths(x, y);
        memcpy(out + k, y, sizeof y);
    }
    plain_piece(w, k, end);
}

/* Approximate operations per second of one thread, to tell seconds from minutes. */
#define PLAIN_RATE  4e9
#define VECTOR_RATE 2e10

static double seconds(const iron__contender *row, const iron__case *c, const iron__gpu_info *device,
                      uint32_t threads) {
    double path = 4.0 * DIVERGENCE_ROUNDS * (double)c->rows;

    (void)device;
    if (row->cpu_piece == plain_piece)
        return path / PLAIN_RATE;
    return 2 * path / VECTOR_RATE / (row->is_single ? 1 : threads);
}

/* For rows that rely on the index. */
static bool wants_alternating(const iron__contender *row, const iron__case *c) {
    (void)row;
    return alternates(c);
}

IRON_KIT_IMAGE(divergence)

/* Local memory of sorted: elements with gaps, and a small reserve. */
#define LOCAL_BYTES (DIVERGENCE_CHUNK * 5u + DIVERGENCE_THREADS * 4u + 256u)

#define CPU(piece) IRON_ON_CPU, .seconds = seconds, .cpu_run = iron__line_run, .cpu_piece = (piece)
#define GPU(kernel, ...)                                                                           \
    IRON_ON_GPU, .gpu = IRON_KIT(.kernels = {kernel}, .threads = DIVERGENCE_THREADS,               \
                                 .run = iron__kit_run, __VA_ARGS__)

static const iron__contender contenders[] = {
    {"plain", "one element at a time with a branch", NULL, CPU(plain_piece), .is_single = true},
    {"branch-free", "both paths in vectors, selected by masks", "plain", CPU(branch_free_piece),
     .is_single = true},
    {"threads", "the same on all threads", "branch-free", CPU(branch_free_piece)},
    {"thread-odd-even", "thread k takes element k: warps contain both kinds and execute both paths",
     NULL, GPU("divergence_thread", .block = DIVERGENCE_THREADS)},
    {"branch-free", "both paths for every element, selected by masks", "thread-odd-even",
     GPU("divergence_both", .block = DIVERGENCE_THREADS)},
    {"block-uniform", "every second group takes the odd elements, the others take the even ones",
     "thread-odd-even", GPU("divergence_block", .block = 2 * DIVERGENCE_THREADS, .sharing = 2),
     .suits = wants_alternating},
    {"warp-uniform",
     "every second warp takes the odd ones of 64 elements: both warps use the same cache lines",
     "block-uniform", GPU("divergence_warp", .block = DIVERGENCE_THREADS),
     .suits = wants_alternating},
    {"thread-pair",
     "a thread takes 16 bytes, two elements of each kind: both paths run on all lanes",
     "warp-uniform", GPU("divergence_pair", .block = 4 * DIVERGENCE_THREADS),
     .suits = wants_alternating},
    {"sorted", "a group sorts its elements by key in local memory, for unpredictable keys",
     "thread-odd-even",
     GPU("divergence_sorted", .block = DIVERGENCE_CHUNK, .own_local_bytes = LOCAL_BYTES)},
};

const iron__op iron__op_divergence = {
    .name = "divergence",
    .contract = "out = A(in) for odd elements, B(in) for even ones: two chains of operations",
    .why =
        "The 32 threads of a warp run in lockstep. If some take one side of a branch and some the "
        "other, the warp executes both, each with part of its threads idle. The cost comes from "
        "the mixture, not from the branch: a warp whose threads all take the same side pays for "
        "that side only.\n"
        "\n"
        "So the question is which thread processes which element. If the keys alternate, the index "
        "tells: warps or whole groups of one kind read every second element and run one path; or a "
        "thread takes neighbours of both kinds and runs both paths, each on all lanes. If the keys "
        "are random, a group first sorts its elements by key in local memory: then all of its "
        "warps but one have a single kind. The paths are so long that a kernel that runs both is "
        "limited by computation, and one that runs only the right one comes close to memory "
        "bandwidth.",
    .traffic =
        "Each element read once and written once, 8 bytes; the key is a bit of the element. "
        "block-uniform has two groups for each cache line: each uses half of it, and the second "
        "reads it from the L2 cache.",
    .unless =
        "Sorting does not pay if the paths are short (compilers turn a few instructions into "
        "selections without a branch), if one path is almost never taken, if keys come in runs of "
        "whole warps anyway, or if memory takes longer than both paths together.",
    .used =
        "In tokens_champion (src/ops/tokens/champion.k) all threads of a group reach the end of a "
        "batch at the same time, since a group reads one contiguous range: its loops are uniform, "
        "and what does not fill 16 bytes is processed at the edges, once per batch. The single "
        "pass in src/ops/atax/atax_real.k chooses between aligned and unaligned rows at compile "
        "time, not per element. No kernel of the engine needs to sort by path.",
    IRON_LINE_OP(IRON_U32, iron__line_check),
    .bound = IRON_BOUND_COPY,
    IRON_AXES({.name = "keys",
               .about = "which elements are odd: every second one, or random ones",
               IRON_WORDS("alternating", "random")}),
    .baselines = {"plain", "thread-odd-even"},
    IRON_LINE_SIZES(16, 24, 28),
    .usual_log2 = {{24, 36}, {26, 36}},
    .bytes_each = 2 * sizeof(uint32_t),
    .operations_each = 4 * DIVERGENCE_ROUNDS, /* of one path */
    .rows_max = UINT64_C(1) << 36,
    .output = "out",
    .expected = expected,
};
