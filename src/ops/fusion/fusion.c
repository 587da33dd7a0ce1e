/* SPDX-License-Identifier: MIT */
/*
 * fusion.c: kernel fusion: an elementwise chain of two or six steps, as one loop or kernel per step
 * with arrays between them, or as one loop or kernel for all steps.
 *
 * Each operation rounds once to f32 (nothing is contracted, see CMakeLists.txt), so all contenders
 * give the same bits. The check computes each element again and compares bits; no reference is
 * stored.
 *
 * The CPU rows are plain C that the compiler vectorizes; with separate steps all threads meet
 * between two steps.
 */
#include "core/fail.h"
#include "ops/data.h"
#include "ops/fusion/kernel_params.h"
#include "ops/kit.h"
#include "ops/op.h"

/* t is the result of the step before; for the first step it is a. */
typedef enum chain_step {
    STEP_ADD,      /* t + b */
    STEP_SCALE,    /* t * FUSION_SCALE */
    STEP_MULTIPLY, /* t * a */
    STEP_CLAMP,    /* t limited to FUSION_LOW ... FUSION_HIGH */
    STEP_SUBTRACT, /* t - b */
    STEPS
} chain_step;

#define CHAIN_LENGTH 6u

typedef struct chain {
    chain_step steps[CHAIN_LENGTH];
    size_t count;
    size_t between; /* arrays between the steps; two, used in turns, suffice for any chain */
} chain;

/* Values of the axis `chain`. */
enum { CHAIN_SHORT, CHAIN_LONG };

static bool is_long(const iron__case *c) { return c->at[0] == CHAIN_LONG; }

static const chain *chain_of(const iron__case *c) {
    static const chain both[] = {
        {{STEP_ADD, STEP_SCALE}, 2, 1},
        {{STEP_ADD, STEP_SCALE, STEP_ADD, STEP_MULTIPLY, STEP_CLAMP, STEP_SUBTRACT}, 6, 2}};

    return &both[is_long(c)];
}

static inline float clamped(float t) {
    t = t < FUSION_LOW ? FUSION_LOW : t;
    return t > FUSION_HIGH ? FUSION_HIGH : t;
}

static inline float short_chain(float a, float b) { return (a + b) * FUSION_SCALE; }

static inline float long_chain(float a, float b) {
    return clamped((short_chain(a, b) + b) * a) - b;
}

static iron_status fill(iron__op_problem *p, iron_error *err) {
    IRON_TRY(iron__data_input(p, "a", (size_t)p->c.rows, NULL, err));
    return iron__data_input(p, "b", (size_t)p->c.rows, NULL, err);
}

static uint32_t expected(const iron__op_problem *problem, size_t k) {
    float a = ((const float *)problem->inputs[0].data)[k];
    float b = ((const float *)problem->inputs[1].data)[k];

    return iron__data_word_of(is_long(&problem->c) ? long_chain(a, b) : short_chain(a, b));
}

/* One step over a range. */
typedef struct step_work {
    const float *t, *a, *b;
    float *to;
    chain_step step;
} step_work;

static void take_step(void *context, size_t begin, size_t end) {
    const step_work *w = context;
    const float *restrict t = w->t, *restrict a = w->a, *restrict b = w->b;
    float *restrict to = w->to;

    switch (w->step) {
    case STEP_ADD:
        for (size_t k = begin; k < end; k++)
            to[k] = t[k] + b[k];
        break;
    case STEP_SCALE:
        for (size_t k = begin; k < end; k++)
            to[k] = t[k] * FUSION_SCALE;
        break;
    case STEP_MULTIPLY:
        for (size_t k = begin; k < end; k++)
            to[k] = t[k] * a[k];
        break;
    case STEP_CLAMP:
        for (size_t k = begin; k < end; k++)
            to[k] = clamped(t[k]);
        break;
    default:
        for (size_t k = begin; k < end; k++)
            to[k] = t[k] - b[k];
        break;
    }
}

static void take_all(const iron__cpu_work *w, size_t begin, size_t end) {
    const float *restrict a = w->problem->inputs[0].data;
    const float *restrict b = w->problem->inputs[1].data;
    float *restrict d = w->output;

    if (is_long(&w->problem->c))
        for (size_t k = begin; k < end; k++)
            d[k] = long_chain(a[k], b[k]);
    else
        for (size_t k = begin; k < end; k++)
            d[k] = short_chain(a[k], b[k]);
}

static void run_separate(const iron__cpu_work *w) {
    const chain *steps = chain_of(&w->problem->c);
    float *between = w->scratch;
    step_work s = {.a = w->problem->inputs[0].data, .b = w->problem->inputs[1].data};

    s.t = s.a;
    for (size_t k = 0; k < steps->count; k++) {
        s.step = steps->steps[k];
        s.to = k + 1 == steps->count ? (float *)w->output : between + k % 2 * w->problem->c.rows;
        iron__data_pieces(w->pool, (size_t)w->problem->c.rows, take_step, &s);
        s.t = s.to;
    }
}

static size_t separate_scratch(const iron__op_problem *p, uint32_t threads) {
    (void)threads;
    return chain_of(&p->c)->between * (size_t)p->c.rows * sizeof(float);
}

IRON_KIT_IMAGE(fusion)

/* Elements per group. */
enum { SINGLES = FUSION_EACH * FUSION_THREADS, VECTORS = 4 * FUSION_QUADS * FUSION_THREADS };

static iron_status launch(iron__gpu_work *work, iron__gpu_kernel *kernel, uint64_t piece,
                          const iron__gpu_buffer *const from[2], const iron__gpu_buffer *to,
                          iron__gpu_queue *queue, iron_error *err) {
    return IRON_KIT_LAUNCH(queue, err, kernel, iron__kit_pieces(work->c.rows, piece),
                           FUSION_THREADS, IRON_GPU_BUFFER(from[0]), IRON_GPU_BUFFER(from[1]),
                           IRON_GPU_BUFFER(to), IRON_GPU_VALUE(work->c.rows));
}

/* The kernels are in the order of chain_step. */
static iron_status launch_separate(iron__gpu_work *work, const iron__gpu_data *data,
                                   iron__gpu_queue *queue, iron_error *err) {
    const chain *steps = chain_of(&work->c);
    const iron__gpu_buffer *t = data->inputs[0];

    for (size_t k = 0; k < steps->count; k++) {
        chain_step step = steps->steps[k];
        const iron__gpu_buffer *from[2] = {t, data->inputs[step != STEP_MULTIPLY]};
        const iron__gpu_buffer *to = k + 1 == steps->count ? data->output : work->buffers[k % 2];

        IRON_TRY(launch(work, work->kernels[step], SINGLES, from, to, queue, err));
        t = to;
    }
    return IRON_OK;
}

/* The kernels are in the order of the axis `chain`. */
static iron_status launch_fused(iron__gpu_work *work, const iron__gpu_data *data,
                                iron__gpu_queue *queue, iron_error *err) {
    return launch(work, work->kernels[is_long(&work->c)], work->spec->block, data->inputs,
                  data->output, queue, err);
}

static iron_status launch_graph(iron__gpu_work *work, const iron__gpu_data *data,
                                iron__gpu_queue *queue, iron_error *err) {
    return iron__recording_run(work, launch_separate, data, queue, err);
}

static uint64_t between_bytes(const iron__case *c, size_t index) {
    return index < chain_of(c)->between ? c->rows * sizeof(float) : 0;
}

#define GPU(...) IRON_ON_GPU, .gpu = IRON_KIT(.threads = FUSION_THREADS, __VA_ARGS__)
#define STEPWISE(...)                                                                              \
    GPU(.kernels = {"fusion_add", "fusion_scale", "fusion_multiply", "fusion_clamp",               \
                    "fusion_subtract"},                                                            \
        .buffer_bytes = between_bytes, .scratch = IRON_BIT(0) | IRON_BIT(1), __VA_ARGS__)

static const iron__contender contenders[] = {
    {"separate", "one loop per step, with an array in memory between two steps", NULL, IRON_ON_CPU,
     .cpu_run = run_separate, .cpu_scratch_bytes = separate_scratch, .is_single = true},
    {"fused", "all steps in one loop: intermediate values stay in registers", "separate",
     IRON_ON_CPU, .cpu_run = iron__line_run, .cpu_piece = take_all, .is_single = true},
    {"separate-threads", "one loop per step on all threads, with a barrier after each", "separate",
     IRON_ON_CPU, .cpu_run = run_separate, .cpu_scratch_bytes = separate_scratch},
    {"fused-threads", "the fused loop on all threads", "separate-threads", IRON_ON_CPU,
     .cpu_run = iron__line_run, .cpu_piece = take_all},
    {"separate", "one kernel per step, with an array in memory between two steps", NULL,
     STEPWISE(.run = launch_separate)},
    {"graph", "the same kernels, recorded once and replayed with one call", "separate",
     STEPWISE(.run = launch_graph, .suits = iron__recording_suits)},
    {"fused", "one kernel of the same shape: intermediate values stay in registers", "separate",
     GPU(.kernels = {"fusion_fused_short", "fusion_fused_long"}, .block = SINGLES,
         .run = launch_fused)},
    {"fused-vector", "the same with 16-byte loads, several of each input in flight per thread",
     "fused",
     GPU(.kernels = {"fusion_vector_short", "fusion_vector_long"}, .block = VECTORS,
         .run = launch_fused)},
};

_Static_assert(STEPS <= IRON_KIT_KERNELS, "a launcher names the kernel of each step");

static double operations(const iron__case *c) {
    return (double)chain_of(c)->count * (double)c->rows;
}

const iron__op iron__op_fusion = {
    .name = "fusion",
    .contract = "d = (a + b) s for each element, or a chain of six such steps",
    .why =
        "An elementwise step performs one operation for every eight or twelve bytes it moves. With "
        "one kernel per step, each intermediate array is written to memory by one kernel and read "
        "back by the next. Fused into one kernel, intermediate values stay in registers: whatever "
        "the length of the chain, two arrays are read and one is written, and the arithmetic is "
        "hidden behind that.\n"
        "\n"
        "A launch also costs a few microseconds, which matters for small arrays: race size:SMALL "
        "and size:LARGE side by side. A graph replays all separate kernels with one call; that "
        "saves launches but no bytes. All but fused-vector have several 4-byte loads in flight per "
        "thread, so the gain of fused over separate is due to fusion alone.",
    .traffic =
        "Useful: a and b read, d written, 12 bytes per element, which is what fused contenders "
        "move. Separate kernels move 20 bytes per element for the short chain (two kernels) and 64 "
        "for the long one (six). Memory reads faster than it writes, so a fused contender can "
        "exceed the copy ceiling, where half of the bytes are writes.",
    .unless =
        "Fusion does not pay if an intermediate array is needed for itself, if a step needs "
        "results of neighbouring elements (a sum over all, a transpose), or if all arrays fit into "
        "a cache and are long enough to hide the launches. Very long chains may need so many "
        "registers that too few threads fit.",
    .used = "src/ops/tokens/champion.cu reduces a batch and applies it to the nodes in one launch; "
            "the atax_single_... kernels in src/ops/atax/atax_real.k compute both products while a "
            "row is in registers, so A x is never an array between two kernels.",
    IRON_LINE_OP(IRON_F32, iron__line_check),
    .bound = IRON_BOUND_COPY,
    IRON_AXES({.name = "chain",
               .about = "short: d = (a + b) s; long: six steps, d = clamp(((a + b) s + b) a) - b",
               IRON_WORDS("short", "long")}),
    .baselines = {"separate", "separate"},
    IRON_LINE_SIZES(16, 24, 28),
    .usual_log2 = {{24, 36}, {28, 36}},
    .bytes_each = 3 * sizeof(float),
    .operations = operations,
    .rows_max = UINT64_C(1) << 36,
    .output = "d",
    .expected = expected,
};
