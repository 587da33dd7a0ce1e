/* SPDX-License-Identifier: MIT */
/*
 * adaptive.c: an expensive function over sparse data: out = f(in), where f(0) = 0 and most elements
 * may be 0. The race shows which ways of skipping the zeros save time.
 *
 * An element is 0 or, with the probability that the case calls density, a number between -1/8 and
 * 1/8. Values in this range still differ after a hundred turns and stay far from denormals. The
 * reference is computed once, since it takes longer than a check should; answers must match it bit
 * for bit.
 *
 * On the CPU the function processes blocks of sixteen values. The hundred turns of one value are a
 * chain in which each operation waits for the one before it; four vectors of four values are
 * sixteen independent chains. A block corresponds to a warp on a GPU: a branch saves time only if
 * the whole block is 0, and packing fills the blocks.
 */
#include "core/fail.h"
#include "core/number.h"
#include "ops/adaptive/kernel_params.h"
#include "ops/data.h"
#include "ops/kit.h"
#include "ops/op.h"

#include <string.h>

/* Multiplications and additions for one value. */
#define OPERATIONS (8.0 * ADAPTIVE_TURNS)

/* Values that the function processes at a time on the CPU: four vectors. */
#define BLOCK 16u

/* The share of elements that are not 0. */
static double density_of(const iron__case *c) { return c->at[0]; }

typedef float lanes __attribute__((vector_size(16)));

static inline lanes turn(lanes v) {
    lanes w = v * v;
    lanes q = w * ADAPTIVE_C7 + ADAPTIVE_C5;

    q = q * w + ADAPTIVE_C3;
    q = q * w + 1.0f;
    return v * q;
}

static void apply_block(float *values) {
    lanes v[4];

    memcpy(v, values, sizeof v);
    for (int k = 0; k < ADAPTIVE_TURNS; k++) {
        v[0] = turn(v[0]);
        v[1] = turn(v[1]);
        v[2] = turn(v[2]);
        v[3] = turn(v[3]);
    }
    memcpy(values, v, sizeof v);
}

_Static_assert(4 * sizeof(lanes) == BLOCK * sizeof(float), "a block is four vectors");

/* Replaces each value by its function. */
static void apply(float *values, size_t count) {
    float last[BLOCK] = {0};
    size_t whole = count / BLOCK * BLOCK;

    for (size_t k = 0; k < whole; k += BLOCK)
        apply_block(values + k);
    if (whole == count)
        return;
    memcpy(last, values + whole, (count - whole) * sizeof(float));
    apply_block(last);
    memcpy(values + whole, last, (count - whole) * sizeof(float));
}

/* The function of each value; blocks of zeros are skipped. */
static void apply_where_nonzero(const float *in, float *out, size_t count) {
    memcpy(out, in, count * sizeof(float));
    for (size_t k = 0; k < count; k += BLOCK) {
        size_t left = iron__min_size(BLOCK, count - k);
        bool has_any = false;

        for (size_t j = k; j < k + left; j++)
            has_any |= out[j] != 0;
        if (has_any)
            apply(out + k, left);
    }
}

#define SCALE    0.125f
#define ALL_BITS 4294967296.0 /* 2^32 */

/* An element is not 0 if its lower 32 random bits are below the density's share of 2^32. */
static uint32_t make_element(const iron__op_problem *p, size_t index, uint64_t bits) {
    uint64_t below = (uint64_t)(density_of(&p->c) * ALL_BITS);

    (void)index;
    return (bits & UINT32_MAX) < below ? iron__data_word_of(iron__data_f32(bits) * SCALE) : 0;
}

static void compute_piece(void *context, size_t begin, size_t end) {
    const iron__op_problem *p = context;

    apply_where_nonzero((const float *)p->inputs[0].data + begin,
                        (float *)p->reference.data + begin, end - begin);
}

static iron_status fill(iron__op_problem *p, iron_error *err) {
    IRON_TRY(iron__data_input(p, "in", (size_t)p->c.rows, make_element, err));
    IRON_TRY(iron__data_take(&p->reference, "reference", p->output_bytes, err));
    iron__data_pieces(p->pool, (size_t)p->c.rows, compute_piece, p);
    return IRON_OK;
}

/* Elements that are packed together: they stay in the L1 cache. */
#define PACK 1024u

static void compute_all(const iron__cpu_work *w, size_t begin, size_t end) {
    const float *in = w->problem->inputs[0].data;
    float *out = w->output;

    memcpy(out + begin, in + begin, (end - begin) * sizeof(float));
    apply(out + begin, end - begin);
}

static void compute_blocks(const iron__cpu_work *w, size_t begin, size_t end) {
    const float *in = w->problem->inputs[0].data;
    float *out = w->output;

    apply_where_nonzero(in + begin, out + begin, end - begin);
}

/* Packs without a branch per element: each element is stored behind those found so far, and is
 * overwritten by the next one if it was 0. Unpacking works the same way. */
static void pack(const float *in, float *out, size_t count) {
    float values[PACK];
    size_t found = 0;

    for (size_t k = 0; k < count; k++) {
        values[found] = in[k];
        found += in[k] != 0;
    }
    apply(values, found);
    found = 0;
    for (size_t k = 0; k < count; k++)
        out[k] = in[k] != 0 ? values[found++] : 0;
}

static void compute_packs(const iron__cpu_work *w, size_t begin, size_t end) {
    const float *in = w->problem->inputs[0].data;
    float *out = w->output;

    for (size_t k = begin; k < end; k += PACK)
        pack(in + k, out + k, iron__min_size(PACK, end - k));
}

/* Approximate rates of one thread, and of an OpenCL device on a CPU, which vectorizes little: to
 * tell seconds from minutes. */
#define OPERATIONS_PER_SECOND            1.6e10
#define OPENCL_CPU_OPERATIONS_PER_SECOND 4e9

static double seconds(const iron__contender *row, const iron__case *c, const iron__gpu_info *device,
                      uint32_t threads) {
    double all = OPERATIONS * (double)c->rows;

    if (device)
        return device->is_gpu ? 0 : all / OPENCL_CPU_OPERATIONS_PER_SECOND;
    if (row->cpu_piece == compute_packs)
        all *= density_of(c);
    return all / OPERATIONS_PER_SECOND / (row->is_single ? 1 : threads);
}

IRON_KIT_IMAGE(adaptive)

/* Local memory of compact and auto: elements, their positions, and a small reserve. */
#define LOCAL_BYTES (ADAPTIVE_CHUNK * 6u + ADAPTIVE_THREADS * 4u + 256u)

/* density-switch has the density as its last argument. */
static iron_status run_switch(iron__gpu_work *work, const iron__gpu_data *data,
                              iron__gpu_queue *queue, iron_error *err) {
    float density = (float)density_of(&work->c);
    uint64_t groups = iron__kit_pieces(work->c.rows, ADAPTIVE_THREADS);

    return IRON_KIT_LAUNCH(queue, err, work->kernels[0], groups, ADAPTIVE_THREADS,
                           IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->output),
                           IRON_GPU_VALUE(work->c.rows), IRON_GPU_VALUE(density));
}

#define CPU(piece) IRON_ON_CPU, .seconds = seconds, .cpu_run = iron__line_run, .cpu_piece = (piece)
#define GPU(kernel, per_group, ...)                                                                \
    IRON_ON_GPU, .seconds = seconds,                                                               \
                 .gpu = IRON_KIT(.kernels = {kernel}, .threads = ADAPTIVE_THREADS,                 \
                                 .block = (per_group), __VA_ARGS__)
#define ELEMENTS(kernel) GPU(kernel, ADAPTIVE_THREADS, .run = iron__kit_run)
#define CHUNKS(kernel)                                                                             \
    GPU(kernel, ADAPTIVE_CHUNK, .run = iron__kit_run, .own_local_bytes = LOCAL_BYTES)

static const iron__contender contenders[] = {
    {"dense-always", "computes f of every element, including zeros", NULL, CPU(compute_all),
     .is_single = true},
    {"branch", "skips blocks of sixteen elements that are all 0", "dense-always",
     CPU(compute_blocks), .is_single = true},
    {"compact", "packs the nonzero elements, computes full blocks, writes the results back",
     "branch", CPU(compute_packs), .is_single = true},
    {"threads", "compact on all threads", "compact", CPU(compute_packs)},
    {"dense-always", "computes f of every element, including zeros", NULL,
     ELEMENTS("adaptive_dense")},
    {"branch", "one branch per element: a warp saves the work only if all its 32 elements are 0",
     "dense-always", ELEMENTS("adaptive_branch")},
    {"density-switch",
     "as in the guide: knows the density, branches below one half, computes all above", "branch",
     GPU("adaptive_switch", ADAPTIVE_THREADS, .run = run_switch)},
    {"compact", "a group packs its nonzero elements, so that warps are either full or idle",
     "density-switch", CHUNKS("adaptive_compact")},
    {"auto", "each group counts its nonzero elements and then skips, packs, or computes all",
     "compact", CHUNKS("adaptive_auto")},
};

static double operations(const iron__case *c) {
    return OPERATIONS * density_of(c) * (double)c->rows;
}

const iron__op iron__op_adaptive = {
    .name = "adaptive",
    .contract =
        "out = f(in) for each element: f(0) = 0, otherwise v = sin(v) cos(v) a hundred times",
    .why =
        "An expensive function with f(0) = 0 is applied to data that are mostly 0. One branch per "
        "element does not help on a GPU: 32 threads run in lockstep, and as long as one of them "
        "has work, all of them wait for it. With one nonzero element in ten at random places, 97 "
        "of 100 warps contain one. Switching between a branching and a dense kernel by density, as "
        "the guide does, therefore gains almost nothing.\n"
        "\n"
        "It helps to move the work instead: a group packs its nonzero elements through local "
        "memory, and nearly all warps are full or idle. Then the time follows the density until "
        "memory becomes the limit. auto looks at what it has loaded anyway: groups without work "
        "only write, full groups compute everything, all others pack.",
    .traffic =
        "Each element read once and written once, 8 bytes, by all contenders; they differ in how "
        "many of their threads compute something useful.",
    .unless =
        "Packing does not pay if the function is cheap (a few dozen operations hide behind memory "
        "accesses), if almost nothing is 0, or if zeros come in runs of whole warps: then a branch "
        "is enough.",
    .used =
        "tokens_apply_settle in src/ops/tokens/apply.k checks each node's potential and adds its "
        "batches as one integer where that is exact, one by one where it is not; the host uses "
        "tokens_champion_few for batches too short for tokens_champion "
        "(src/ops/tokens/champion.k). No kernel of the engine packs elements: every token counts.",
    IRON_LINE_OP(IRON_F32, iron__line_check),
    .bound = IRON_BOUND_COPY,
    IRON_AXES({.name = "density",
               .about = "the share of elements that are not 0",
               IRON_NUMBERS(0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1),
               .telling = 2,
               .least = 0,
               .most = 1}),
    .baselines = {"dense-always", "dense-always"},
    IRON_LINE_SIZES(16, 24, 28),
    /* with a GPU several times any cache, but not more: the reference takes the host a while */
    .usual_log2 = {{22, 36}, {26, 36}},
    .bytes_each = 2 * sizeof(float),
    .operations = operations,
    .rows_max = UINT64_C(1) << 36,
    .output = "out",
};
