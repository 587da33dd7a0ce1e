/* SPDX-License-Identifier: MIT */
/*
 * fake_op.h: two ops for the tests of the arena, independent of the library's ops: `echo` has two
 * axes, a fact, a contender that suits only one value, contenders that answer in their own order,
 * and kernels; `grain` has an axis of fractions, and a contender that unpacks its answer
 * incompletely.
 *
 * Both invert the bits of an array of u32, independently of the axes.
 */
#ifndef TESTS_UNIT_FAKE_OP_H
#define TESTS_UNIT_FAKE_OP_H

#include "support.h"

#include "ops/data.h"
#include "ops/kit.h"

static const char *const echo_words[] = {"plain", "sorted", "zipf"};
static const double echo_strides[] = {1, 4, 16};
static const iron__axis echo_axes[] = {
    {.name = "data", .about = "what the data are like", .words = echo_words, .count = 3},
    {.name = "stride",
     .about = "how far apart they lie",
     .numbers = echo_strides,
     .count = 3,
     .least = 1,
     .most = 64,
     .is_whole = true}};
static const double grain_densities[] = {0.25, 0.5};
static const iron__axis grain_axes[] = {{.name = "density",
                                         .about = "how many count",
                                         .numbers = grain_densities,
                                         .count = 2,
                                         .least = 0,
                                         .most = 1}};

/* How many problems were made, and the most that existed at a time. */
static struct { unsigned made, alive, most_alive; } fake_problems;

static void fake_usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element,
                            uint64_t *rows, uint64_t *cols) {
    (void)cache_bytes;
    (void)has_gpu;
    (void)element;
    *rows = 1000;
    *cols = 1;
}

static uint64_t fake_useful_bytes(const iron__case *c) { return 8 * c->rows; }

static double fake_operations(const iron__case *c) { return (double)c->rows; }

static iron_status echo_accept(const iron__case *c, iron_error *err) {
    if (c->at[1] <= (double)c->rows)
        return IRON_OK;
    *err = (iron_error){.status = IRON_E_ARG};
    snprintf(err->text, sizeof err->text, "echo: stride %g is beyond %g elements", c->at[1],
             (double)c->rows);
    return IRON_E_ARG;
}

static iron_status grain_accept(const iron__case *c, iron_error *err) {
    (void)c;
    (void)err;
    return IRON_OK;
}

static bool echo_param_at(const iron__case *c, size_t index, const char **name, double *value) {
    *name = "bins";
    *value = c->element == IRON_U32 ? 4294967296.0 : 0;
    return index == 0;
}

static iron_status fake_make(iron__op_problem *out, iron__thread_pool *pool, iron_error *err) {
    uint32_t *x;

    out->pool = pool;
    out->input_count = 1;
    if (iron__data_take(&out->inputs[0], "x", (size_t)out->c.rows * 4, err) != IRON_OK)
        return IRON_E_NOMEM;
    x = out->inputs[0].data;
    for (uint64_t k = 0; k < out->c.rows; k++)
        x[k] = (uint32_t)iron__data_bits(iron__data_base(out->c.seed, 1), k);
    out->output_bytes = (size_t)out->c.rows * 4;
    fake_problems.made++;
    if (++fake_problems.alive > fake_problems.most_alive)
        fake_problems.most_alive = fake_problems.alive;
    return IRON_OK;
}

static void fake_unmake(iron__op_problem *problem) {
    fake_problems.alive--;
    iron__data_unmake(problem);
}

static bool fake_check(const iron__op_problem *problem, const void *output, char *text,
                       size_t size) {
    const uint32_t *x = problem->inputs[0].data, *y = output;

    for (uint64_t k = 0; k < problem->c.rows; k++)
        if (y[k] != ~x[k]) {
            snprintf(text, size, "y[%u] is %x, should be %x", (unsigned)k, y[k], ~x[k]);
            return false;
        }
    return true;
}

static void fake_run(const iron__cpu_work *work) {
    const uint32_t *x = work->problem->inputs[0].data;
    uint32_t *y = work->output;

    for (uint64_t k = 0; k < work->problem->c.rows; k++)
        y[k] = ~x[k];
}

static void fake_run_backwards(const iron__cpu_work *work) {
    const uint32_t *x = work->problem->inputs[0].data;
    uint32_t *y = work->output;

    for (uint64_t k = 0, rows = work->problem->c.rows; k < rows; k++)
        y[rows - 1 - k] = ~x[k];
}

static void fake_reverse(const iron__op_problem *problem, const void *own_order, void *output) {
    const uint32_t *from = own_order;
    uint32_t *to = output;

    for (uint64_t k = 0, rows = problem->c.rows; k < rows; k++)
        to[k] = from[rows - 1 - k];
}

/* All but the last. */
static void fake_reverse_badly(const iron__op_problem *problem, const void *own_order,
                               void *output) {
    uint32_t *to = output, last = to[problem->c.rows - 1];

    fake_reverse(problem, own_order, output);
    to[problem->c.rows - 1] = last;
}

static bool suits_zipf(const iron__contender *row, const iron__case *c) {
    (void)row;
    return c->at[0] > 1.5;
}

static double takes_a_second(const iron__contender *row, const iron__case *c,
                             const iron__gpu_info *device, uint32_t threads) {
    (void)row;
    (void)c;
    (void)device;
    (void)threads;
    return 1;
}

#define FAKE_GROUP 64u

static const char fake_source[] =
    "__kernel void echo_ready(__global uint *y) { if (get_global_id(0) == 0) y[0] = 1u; }\n"
    "__kernel void echo_mark(__global uint *y) { if (get_global_id(0) == 0) y[0] = 0u; }\n"
    "__kernel void echo_not(__global const uint *x, __global uint *y, uint n, uint turns) {\n"
    "    uint k = (uint)get_global_id(0);\n"
    "    if (k < n) y[turns ? n - 1u - k : k] = ~x[k];\n"
    "}\n";
static const iron__gpu_image fake_image = {.name = "fake_echo", .source = fake_source};

static iron_status fake_run_gpu(iron__gpu_work *work, const iron__gpu_data *data,
                                iron__gpu_queue *queue, iron_error *err) {
    uint32_t n = (uint32_t)work->c.rows, turns = work->row.unpack != NULL;
    const iron__gpu_arg mark[] = {IRON_GPU_BUFFER(data->output)};
    const iron__gpu_arg args[] = {IRON_GPU_BUFFER(data->inputs[0]), IRON_GPU_BUFFER(data->output),
                                  IRON_GPU_VALUE(n), IRON_GPU_VALUE(turns)};
    iron__gpu_launch launch = {.kernel = work->kernels[0],
                               .groups = {1},
                               .threads = {FAKE_GROUP},
                               .args = mark,
                               .arg_count = COUNT(mark)};
    iron_status status = iron__gpu_run(queue, &launch, err);

    launch.kernel = work->kernels[1];
    launch.groups[0] = (n + FAKE_GROUP - 1) / FAKE_GROUP;
    launch.args = args;
    launch.arg_count = COUNT(args);
    return status == IRON_OK ? iron__gpu_run(queue, &launch, err) : status;
}

/* A useless kernel that is larger than those of the answer. */
static iron_status fake_derive_gpu(iron__gpu_work *work, const iron__gpu_data *data,
                                   iron__gpu_queue *queue, iron_error *err) {
    const iron__gpu_arg mark[] = {IRON_GPU_BUFFER(data->output)};
    iron__gpu_launch launch = {.kernel = work->kernels[2],
                               .groups = {1000},
                               .threads = {FAKE_GROUP},
                               .args = mark,
                               .arg_count = COUNT(mark)};

    return iron__gpu_run(queue, &launch, err);
}

static const iron__gpu_launcher fake_way = {.create = iron__kit_create,
                                            .destroy = iron__kit_destroy,
                                            .device_bytes = iron__kit_device_bytes,
                                            .spoil = iron__kit_spoil,
                                            .image = &fake_image,
                                            .kernels = {"echo_mark", "echo_not", "echo_ready"},
                                            .run = fake_run_gpu,
                                            .derive = fake_derive_gpu};

static bool echo_contender_at(size_t index, iron__contender *out) {
    static const iron__contender rows[] = {
        {.name = "naive", .idea = "one at a time", .backends = IRON_ON_CPU, .cpu_run = fake_run},
        {.name = "packed",
         .idea = "the last comes first",
         .beats = "naive",
         .backends = IRON_ON_CPU,
         .cpu_run = fake_run_backwards,
         .unpack = fake_reverse},
        {.name = "zipf-only",
         .idea = "for zipf alone",
         .backends = IRON_ON_CPU,
         .cpu_run = fake_run,
         .suits = suits_zipf,
         .seconds = takes_a_second},
        {.name = "naive", .idea = "a thread each", .backends = IRON_ON_GPU, .gpu = &fake_way},
        {.name = "packed",
         .idea = "the last thread first",
         .backends = IRON_ON_GPU,
         .gpu = &fake_way,
         .unpack = fake_reverse},
    };

    if (index >= COUNT(rows))
        return false;
    *out = rows[index];
    return true;
}

static bool grain_contender_at(size_t index, iron__contender *out) {
    static const iron__contender rows[] = {
        {.name = "naive", .idea = "one at a time", .backends = IRON_ON_CPU, .cpu_run = fake_run},
        {.name = "forgetful",
         .idea = "unpacks all but the last",
         .backends = IRON_ON_CPU,
         .cpu_run = fake_run_backwards,
         .unpack = fake_reverse_badly},
        {.name = "naive", .idea = "a thread each", .backends = IRON_ON_GPU, .gpu = &fake_way},
    };

    if (index >= COUNT(rows))
        return false;
    *out = rows[index];
    return true;
}

static const iron__op op_echo = {.name = "echo",
                                 .contract = "every bit of x inverted",
                                 .why = "It shows nothing.\n\nNothing at all.",
                                 .traffic = "x once, y once.",
                                 .unless = "Never.",
                                 .used = "Nowhere, </script> not even here.",
                                 .elements = IRON_BIT(IRON_U32),
                                 .usual = IRON_U32,
                                 .is_line = true,
                                 .bound = IRON_BOUND_COPY,
                                 .is_resident = true,
                                 .axes = echo_axes,
                                 .axis_count = 2,
                                 .param_at = echo_param_at,
                                 .baselines = {"naive", "naive"},
                                 .usual_size = fake_usual_size,
                                 .useful_bytes = fake_useful_bytes,
                                 .operations = fake_operations,
                                 .accept = echo_accept,
                                 .make = fake_make,
                                 .unmake = fake_unmake,
                                 .check = fake_check,
                                 .contender_at = echo_contender_at};

static const iron__op op_grain = {.name = "grain",
                                  .contract = "the same",
                                  .why = "Nothing.",
                                  .elements = IRON_BIT(IRON_U32),
                                  .usual = IRON_U32,
                                  .is_line = true,
                                  .axes = grain_axes,
                                  .axis_count = 1,
                                  .baselines = {"naive", "naive"},
                                  .usual_size = fake_usual_size,
                                  .useful_bytes = fake_useful_bytes,
                                  .operations = fake_operations,
                                  .accept = grain_accept,
                                  .make = fake_make,
                                  .unmake = fake_unmake,
                                  .check = fake_check,
                                  .contender_at = grain_contender_at};

static inline const iron__op *fake_op_at(size_t index) {
    static const iron__op *const ops[] = {&op_echo, &op_grain, NULL};

    return index < COUNT(ops) ? ops[index] : NULL;
}

#endif
