/* SPDX-License-Identifier: MIT */
/*
 * layout.c: the op layout: what it is, its axis and its sizes. Its rows are in layout_cpu.c and
 * layout_gpu.c.
 */
#include "ops/layout/layout.h"

#include "ops/layout/layout_op.h"
#include "ops/line.h"

#define BYTES_MAX (UINT64_C(1) << 40)

static const char why[] =
    "A particle has six numbers, and there are two plain ways to lay out many of them: a structure "
    "a particle, one after the other, or an array a field. For one particle the first is the "
    "nearer "
    "one; but processors work on many particles at once, and then it matters what lies beside "
    "what. "
    "Thirty-two threads of a GPU that read the same field of 32 structures touch six lines of "
    "memory for what would fit into one, and a CPU's vector has to be put together element by "
    "element. With an array a field both read whole lines of what they need.\n"
    "\n"
    "How much it costs depends on how much of a structure is used. A step that reads and writes "
    "all "
    "six fields uses every byte of every line in either layout, and caches mend the order; a step "
    "that needs one field of six drags the other five along. That is the axis `fields`. Blocks of "
    "32 particles, each a small structure of arrays, are the third way: vectors find what they "
    "need, and a particle's fields stay close together, within a few lines of one page. The "
    "contenders work on a copy in their own layout, which is made beforehand and counts as "
    "`prepare`: in a program one would keep it that way.";

static const char traffic[] =
    "fields all: 24 bytes read and 24 written a particle, in every layout. fields one: useful are "
    "4 "
    "read and 4 written; an array of structures reads all 24, since memory comes in sectors of 32 "
    "bytes and lines of 64 or 128.";

static const char unless[] =
    "It does not pay where particles are picked one by one at random and all their fields are "
    "needed: then a structure is one line, and six arrays are six. Nor where the data must be "
    "turned around for every use: that costs as much as the step itself.";

static const char used[] =
    "Nodes are arrays a field: accumulators, potentials and activations lie apart in iron__nodes "
    "(src/core/nodes.h), and the kernel tokens_apply_one in src/ops/tokens/apply.k takes them so. "
    "Tokens and matrices have one field only.";

static const char *const words[] = {"all", "one"};

static const iron__axis axes[] = {{.name = "fields",
                                   .about = "what a step touches: all six fields, or x alone",
                                   .words = words,
                                   .count = sizeof words / sizeof words[0]}};

static const iron__size sizes[] = {
    {"size", "SMALL", 1 << 20, 1, NULL},
    {"size", "STANDARD", 1 << 24, 1, NULL},
    {"size", "LARGE", 1 << 27, 1, NULL},
    {"size", "ODD", (1 << 27) - 1, 1, NULL},
};

static bool contender_at(size_t index, iron__contender *out) {
    if (index < iron__layout_cpu_count())
        return iron__layout_cpu_contender_at(index, out);
    return iron__layout_gpu_contender_at(index - iron__layout_cpu_count(), out);
}

/* On a GPU all fields are 1.5 GiB, and one is a quarter of one. On a CPU all fields are four times
 * the cache; one is, too, as long as that does not take more than 400 MB of particles. */
static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t count = has_gpu ? 1 << 26 : 1 << 22, most = UINT64_C(1) << 35;

    (void)element;
    while (count < most && (count * sizeof(layout_particle) / 4 < cache_bytes ||
                            (count * sizeof(float) / 2 < cache_bytes && count < 1 << 24)))
        count *= 2;
    *rows = count;
    *cols = 1;
}

static uint64_t useful_bytes(const iron__case *c) {
    return 2 * c->rows * (iron__layout_is_one(c) ? sizeof(float) : sizeof(layout_particle));
}

/* Particles have all their fields, whatever a step touches; and an answer. */
static uint64_t host_bytes(const iron__case *c) {
    return c->rows * sizeof(layout_particle) + useful_bytes(c) / 2;
}

/* A subtraction, three products and three sums; or one sum. */
static double operations(const iron__case *c) {
    return (double)c->rows * (iron__layout_is_one(c) ? 1 : 7);
}

static iron_status accept(const iron__case *c, iron_error *err) {
    return iron__line_accept(c, BYTES_MAX / sizeof(layout_particle), err);
}

const iron__op iron__op_layout = {
    .name = "layout",
    .contract = "a time step of particles (x y z vx vy vz): fall, then move; or x shifted alone",
    .why = why,
    .traffic = traffic,
    .unless = unless,
    .used = used,
    .elements = IRON_BIT(IRON_F32),
    .usual = IRON_F32,
    .is_line = true,
    .bound = IRON_BOUND_COPY,
    .is_resident = true,
    .axes = axes,
    .axis_count = sizeof axes / sizeof axes[0],
    .baselines = {"aos", "aos"},
    .sizes = sizes,
    .size_count = sizeof sizes / sizeof sizes[0],
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .host_bytes = host_bytes,
    .operations = operations,
    .accept = accept,
    .make = iron__layout_make_problem,
    .unmake = iron__layout_unmake_problem,
    .check = iron__layout_check,
    .contender_at = contender_at,
};
