/* SPDX-License-Identifier: MIT */
/*
 * fusion.c: the op fusion: what it is, its chains and sizes, its data, and its judge.
 *
 * The judge computes each element anew and wants its very bits; there is no array of right answers.
 */
#include "ops/fusion/fusion.h"

#include "core/fail.h"
#include "ops/data.h"
#include "ops/fusion/fusion_op.h"
#include "ops/line.h"

#include <stdio.h>
#include <string.h>

#define ROWS_MAX (UINT64_C(1) << 36)

static const char why[] =
    "An elementwise step does one operation for every eight or twelve bytes that it moves, so a "
    "chain of steps takes as long as its arrays take to pass through memory. Written as a kernel a "
    "step, "
    "each intermediate array is written to memory by one kernel and read back by the next. Fused "
    "into one kernel it never leaves the registers: whatever the length of the chain, two arrays "
    "are read and one is written, and the arithmetic hides behind that. The longer the chain, the "
    "more there is to gain.\n"
    "\n"
    "A launch costs a few microseconds, too, which counts where arrays are small: race the sizes "
    "size:SMALL and size:LARGE side by side. A graph replays all separate kernels with one call; "
    "that saves the launches and not one byte. All of these, and fused, have several loads of four "
    "bytes under way in each thread: what fused gains over separate is fusion alone. fused-vector "
    "shows what loads of 16 bytes add to that.";

static const char traffic[] =
    "Useful: a and b read, d written, 12 bytes an element. Fused contenders move just that. "
    "Separate kernels move 20 bytes an element for the short chain (two kernels, one array in "
    "between) and 64 for the long one (six kernels, five arrays in between). Two thirds of the "
    "useful bytes are reads, which memory gives faster than writes: so a fused contender can come "
    "past the copy ceiling, of which half are writes.";

static const char unless[] =
    "Fusion does not pay where an intermediate array is wanted for itself, where a step needs its "
    "neighbours' results (a sum over all, a transpose), or where all arrays fit into a cache and "
    "are long enough for launches not to count. Very long chains may need more registers than "
    "leave enough threads.";

static const char used[] =
    "src/ops/tokens/champion_step.cu reduces a batch and applies it to the nodes in one launch; "
    "src/ops/atax/single_pass_real.k (atax_single_...) computes both products while a row is in "
    "registers, so that A x never is an array between two kernels.";

static const char *const chains[] = {"short", "long"};
static const iron__axis axes[] = {
    {.name = "chain",
     .about = "short: d = (a + b) s; long: six steps, d = clamp(((a + b) s + b) a) - b",
     .words = chains,
     .count = sizeof chains / sizeof chains[0]}};

static const iron__size sizes[] = {{"size", "SMALL", UINT64_C(1) << 16, 1, NULL},
                                   {"size", "STANDARD", UINT64_C(1) << 24, 1, NULL},
                                   {"size", "LARGE", UINT64_C(1) << 28, 1, NULL}};

const iron__fusion_chain *iron__fusion_chain_of(const iron__case *c) {
    static const iron__fusion_chain both[] = {
        {{IRON_FUSION_ADD, IRON_FUSION_SCALE}, 2, 1},
        {{IRON_FUSION_ADD, IRON_FUSION_SCALE, IRON_FUSION_ADD, IRON_FUSION_MULTIPLY,
          IRON_FUSION_CLAMP, IRON_FUSION_SUBTRACT},
         6,
         2}};

    return &both[iron__fusion_is_long(c)];
}

static uint64_t useful_bytes(const iron__case *c) { return 3 * sizeof(float) * c->rows; }

static double operations(const iron__case *c) {
    return (double)iron__fusion_chain_of(c)->count * (double)c->rows;
}

static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t least = has_gpu ? UINT64_C(1) << 28 : UINT64_C(1) << 24;

    (void)element;
    *rows = iron__line_usual(least, ROWS_MAX, 3 * sizeof(float), cache_bytes);
    *cols = 1;
}

static iron_status accept(const iron__case *c, iron_error *err) {
    return iron__line_accept(c, ROWS_MAX, err);
}

/* Streams of numbers of one seed. */
enum { STREAM_A = 1, STREAM_B = 2 };

static void unmake(iron__problem *problem) {
    iron__data_release(problem);
    *problem = (iron__problem){.c = problem->c};
}

static iron_status make_all(iron__problem *p, iron_error *err) {
    size_t bytes = (size_t)p->c.rows * sizeof(float);

    p->input_count = 2;
    p->output_bytes = bytes;
    IRON_TRY(iron__data_take(&p->inputs[0], "a", bytes, err));
    IRON_TRY(iron__data_take(&p->inputs[1], "b", bytes, err));
    iron__data_fill_reals(&p->inputs[0], &p->c, STREAM_A, p->team);
    iron__data_fill_reals(&p->inputs[1], &p->c, STREAM_B, p->team);
    return IRON_OK;
}

static iron_status make(iron__problem *out, iron__team *team, iron_error *err) {
    iron_status status;

    *out = (iron__problem){.c = out->c, .team = team};
    status = make_all(out, err);
    if (status != IRON_OK)
        unmake(out);
    return status;
}

typedef struct answer {
    const float *a, *b, *d;
    bool is_long;
} answer;

static float right_at(const answer *t, size_t k) {
    return t->is_long ? iron__fusion_long(t->a[k], t->b[k]) : iron__fusion_short(t->a[k], t->b[k]);
}

static uint32_t bits_of(float value) {
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* By bits: -0 is not 0, and NaN is nothing that was asked for. */
static bool differs(const void *context, size_t k) {
    const answer *t = context;

    return bits_of(t->d[k]) != bits_of(right_at(t, k));
}

static bool check(const iron__problem *problem, const void *output, char *text, size_t size) {
    answer t = {problem->inputs[0].data, problem->inputs[1].data, output,
                iron__fusion_is_long(&problem->c)};
    size_t count = (size_t)problem->c.rows;
    size_t first = iron__data_first(problem->team, count, differs, &t);

    if (first < count)
        snprintf(text, size, "d[%zu] is %.9g, should be %.9g", first, (double)t.d[first],
                 (double)right_at(&t, first));
    return first == count;
}

static bool contender_at(size_t index, iron__contender *out) {
    size_t on_cpu = iron__fusion_cpu_contender_count();

    return index < on_cpu ? iron__fusion_cpu_contender_at(index, out)
                          : iron__fusion_gpu_contender_at(index - on_cpu, out);
}

const iron__op iron__op_fusion = {
    .name = "fusion",
    .contract = "d = (a + b) s, or a chain of six such steps, element by element",
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
    .baselines = {"separate", "separate"},
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
