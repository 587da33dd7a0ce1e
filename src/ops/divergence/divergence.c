/* SPDX-License-Identifier: MIT */
/*
 * divergence.c: the op divergence: what it is, its axis and sizes, its data, and its judge.
 *
 * The key that chooses a path is the element's own lowest bit, so it costs no memory. On the axis
 * `keys` it is the index's lowest bit (alternating), or a random one. The judge computes each
 * element anew; there is no array of right answers.
 */
#include "ops/divergence/divergence.h"

#include "ops/data.h"
#include "ops/divergence/divergence_op.h"
#include "ops/line.h"

#include <inttypes.h>
#include <stdio.h>

#define ROWS_MAX (UINT64_C(1) << 36)
#define STREAM   1u

static const char why[] =
    "32 threads of a GPU run in step. Where some take one side of a branch and some the other, the "
    "warp walks through both sides, each with part of its threads idle: two paths that differ from "
    "neighbour to neighbour cost the sum of both. It is not the branch that costs but the mixture: "
    "a warp whose threads all take the same side pays for that side alone.\n"
    "\n"
    "So the question is which thread takes which element. Where the data alternate, the index "
    "tells: warps, or whole groups, of one kind read every second element and run one path; or a "
    "thread takes neighbours of both kinds and runs both paths, each on all lanes. Where the keys "
    "are random, a group sorts its elements by key in local memory first: all of its warps but one "
    "are of one kind then. Computing both paths for every element and choosing without a branch "
    "does on purpose what a divergent warp does by accident. The paths are so long that a kernel "
    "which runs both is limited by them, and one that runs the right one alone comes near what "
    "memory allows.";

static const char traffic[] =
    "Useful: each element read and written once, 8 bytes; the key is a bit of the element. "
    "block-uniform has two groups for every cache line: each reads all of it and uses a half, and "
    "the second reads it from the L2 cache. In warp-uniform two warps of one group share a line.";

static const char unless[] =
    "Sorting does not pay where the paths are short (compilers turn a few instructions into "
    "selections, without a branch), where one path is nearly never taken, where keys come in runs "
    "of whole warps anyway, or where memory takes longer than both paths together.";

static const char used[] =
    "In src/ops/tokens/champion.k (tokens_champion) all threads of a group meet the end of a batch "
    "at the same time, since a group reads one contiguous range: its loops are uniform, and what "
    "does not fill 16 bytes is taken at the edges, once a batch. src/ops/atax/single_pass_real.k "
    "chooses between whole and odd rows when it is compiled, not element by element. Nothing of "
    "ours has to sort by path.";

static const char *const keys[] = {"alternating", "random"};
static const iron__axis axes[] = {{.name = "keys",
                                   .about = "which elements take which path: every second, or at "
                                            "random",
                                   .words = keys,
                                   .count = sizeof keys / sizeof keys[0]}};

static const iron__size sizes[] = {{"size", "SMALL", UINT64_C(1) << 16, 1, NULL},
                                   {"size", "STANDARD", UINT64_C(1) << 24, 1, NULL},
                                   {"size", "LARGE", UINT64_C(1) << 28, 1, NULL}};

static uint64_t useful_bytes(const iron__case *c) { return 2 * sizeof(uint32_t) * c->rows; }

/* One path, four operations a round. */
static double operations(const iron__case *c) { return 4.0 * DIVERGENCE_ROUNDS * (double)c->rows; }

static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t least = has_gpu ? UINT64_C(1) << 26 : UINT64_C(1) << 24;

    (void)element;
    *rows = iron__line_usual(least, ROWS_MAX, 2 * sizeof(uint32_t), cache_bytes);
    *cols = 1;
}

static iron_status accept(const iron__case *c, iron_error *err) {
    return iron__line_accept(c, ROWS_MAX, err);
}

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

static void unmake(iron__problem *problem) {
    iron__data_release(problem);
    *problem = (iron__problem){.c = problem->c};
}

static iron_status make(iron__problem *out, iron__team *team, iron_error *err) {
    size_t bytes = (size_t)out->c.rows * sizeof(uint32_t);
    filling f = {.base = iron__data_base(out->c.seed, STREAM),
                 .alternates = iron__divergence_alternates(&out->c)};
    iron_status status;

    *out = (iron__problem){.c = out->c, .team = team, .input_count = 1, .output_bytes = bytes};
    status = iron__data_take(&out->inputs[0], "in", bytes, err);
    if (status != IRON_OK) {
        unmake(out);
        return status;
    }
    f.in = out->inputs[0].data;
    iron__data_pieces(team, (size_t)out->c.rows, fill_piece, &f);
    return IRON_OK;
}

typedef struct answer {
    const uint32_t *in, *out;
} answer;

static bool differs(const void *context, size_t k) {
    const answer *a = context;

    return a->out[k] != iron__divergence_value(a->in[k]);
}

static bool check(const iron__problem *problem, const void *output, char *text, size_t size) {
    answer a = {problem->inputs[0].data, output};
    size_t count = (size_t)problem->c.rows;
    size_t first = iron__data_first(problem->team, count, differs, &a);

    if (first < count)
        snprintf(text, size, "out[%zu] is %" PRIu32 ", should be %" PRIu32, first, a.out[first],
                 iron__divergence_value(a.in[first]));
    return first == count;
}

static bool contender_at(size_t index, iron__contender *out) {
    size_t on_cpu = iron__divergence_cpu_contender_count();

    return index < on_cpu ? iron__divergence_cpu_contender_at(index, out)
                          : iron__divergence_gpu_contender_at(index - on_cpu, out);
}

const iron__op iron__op_divergence = {
    .name = "divergence",
    .contract = "out = A(in) where in is odd, B(in) where it is even: two chains of operations",
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
    .axis_count = sizeof axes / sizeof axes[0],
    .baselines = {"plain", "thread-odd-even"},
    .sizes = sizes,
    .size_count = sizeof sizes / sizeof sizes[0],
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations = operations,
    .accept = accept,
    .make = make,
    .unmake = unmake,
    .check = check,
    .contender_at = contender_at,
};
