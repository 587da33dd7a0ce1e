/* SPDX-License-Identifier: MIT */
/*
 * selftest_ops.c: every contender of every op against its op's reference, in every element type and
 * over shapes that catch loose ends: one row, one column, primes, rows that are no multiple of any
 * vector, rows too long to be held; and with every value of the op's axes. On GPUs the whole
 * computation, and the same in three parts; each twice. Outputs are poisoned before each run.
 */
#include "core/cpu.h"
#include "core/fail.h"
#include "engine/selftest_gpu.h"
#include "ops/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARTS   3u
#define THREADS 3u
#define SEED    5u
#define TURNS   2

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct shape {
    uint64_t rows, cols;
    bool is_quick; /* also in a quick selftest */
} shape;

static const shape matrices[] = {{1, 1, true},       {1, 7, true},      {7, 1, false},
                                 {33, 31, true},     {38, 42, false},   {257, 129, true},
                                 {64, 1000, false},  {1009, 61, false}, {40, 4099, false},
                                 {100, 8192, false}, {24, 20001, false}};
static const shape lines[] = {{1, 1, true},    {17, 1, true},     {1000, 1, true},
                              {9001, 1, true}, {70001, 1, false}, {600000, 1, false}};

/* One op, one shape, one element type: a problem, and where a check's name comes from. */
typedef struct trial {
    iron__selftest *t;
    iron__selftest_device *d; /* NULL: the CPU */
    iron__team *team;
    iron__problem problem;
    void *output;
    void *unpacked;  /* as long: for answers in a contender's own order */
    char params[60]; /* ", data zipf"; "" */
} trial;

static void name_check(const trial *r, const iron__contender *row, const char *way, char *what,
                       size_t size) {
    const iron__case *c = &r->problem.c;

    snprintf(what, size, "%s.%s.%s, %s, %" PRIu64 "x%" PRIu64 "%s%s", c->op->name,
             r->d ? iron__gpu_backend_name(r->d->backend) : "cpu", row->name,
             iron__element_name(c->element), c->rows, c->cols, r->params, way);
}

static void poison(trial *r) { memset(r->output, 0xFF, r->problem.output_bytes); }

static const char *judge(const trial *r, const iron__contender *row, char *text, size_t size) {
    const void *answer = r->output;

    if (row->unpack) {
        memset(r->unpacked, 0xFF, r->problem.output_bytes);
        row->unpack(&r->problem, r->output, r->unpacked);
        answer = r->unpacked;
    }
    return r->problem.c.op->check(&r->problem, answer, text, size) ? "" : text;
}

static void test_on_cpu(trial *r, const iron__contender *row) {
    iron__cpu_work w = {.row = row, .problem = &r->problem, .team = r->team, .output = r->output};
    size_t bytes = 0;
    char what[120], text[160] = "";

    name_check(r, row, "", what, sizeof what);
    if (!iron__selftest_wants(r->t, what))
        return;
    if (row->cpu_scratch_bytes)
        bytes = row->cpu_scratch_bytes(&r->problem, iron__team_threads(r->team));
    w.scratch = iron__allocate(iron__allocator_default(), bytes, 1, "scratch", NULL);
    if (!w.scratch) {
        iron__selftest_fail(r->t, &iron__selftest_no_memory);
        return;
    }
    memset(w.scratch, 0xFF, bytes);
    poison(r);
    if (row->cpu_prepare)
        row->cpu_prepare(&w);
    row->cpu_run(&w);
    iron__release(iron__allocator_default(), w.scratch);
    iron__selftest_tell(r->t, what, "%s", judge(r, row, text, sizeof text));
}

/* A contender on a device, and what it works on. */
typedef struct bench {
    iron__gpu_device *device;
    iron__gpu_queue *queue;
    const iron__gpu_way *way;
    iron__gpu_work *work;
    iron__gpu_buffer *inputs[IRON_OP_INPUTS];
    iron__gpu_data data;
} bench;

static iron_status fill_inputs(bench *b, const iron__problem *p, iron_error *err) {
    for (size_t k = 0; k < p->input_count; k++) {
        iron__gpu_copy copy = {.from_host = p->inputs[k].data, .bytes = p->inputs[k].bytes};

        IRON_TRY(iron__gpu_buffer_create(b->device, IRON_GPU_MEMORY_DEVICE, p->inputs[k].bytes,
                                         &b->inputs[k], err));
        b->data.inputs[k] = copy.to = b->inputs[k];
        IRON_TRY(iron__gpu_copy_bytes(b->queue, &copy, err));
    }
    return iron__gpu_queue_wait(b->queue, err);
}

static iron_status set_up(bench *b, const trial *r, const iron__contender *row, iron_error *err) {
    const iron__problem *p = &r->problem;

    IRON_TRY(iron__gpu_queue_create(b->device, &b->queue, err));
    IRON_TRY(fill_inputs(b, p, err));
    if (!b->way->fetch)
        IRON_TRY(iron__gpu_buffer_create(b->device, IRON_GPU_MEMORY_DEVICE, p->output_bytes,
                                         &b->data.output, err));
    IRON_TRY(b->way->create(b->device, row, p, PARTS, &b->work, err));
    return b->way->derive ? b->way->derive(b->work, &b->data, b->queue, err) : IRON_OK;
}

static void tear_down(bench *b) {
    if (b->queue)
        (void)iron__gpu_queue_wait(b->queue, NULL); /* what fails now has failed before */
    if (b->work)
        b->way->destroy(b->work);
    for (size_t k = 0; k < IRON_OP_INPUTS; k++)
        iron__gpu_buffer_destroy(b->inputs[k]);
    iron__gpu_buffer_destroy(b->data.output);
    iron__gpu_queue_destroy(b->queue);
}

static iron_status run_in_parts(bench *b, uint64_t rows, iron_error *err) {
    uint32_t parts = rows < PARTS ? (uint32_t)rows : PARTS;

    for (uint32_t k = 0; k < parts; k++) {
        uint64_t first = rows * k / parts;
        iron__gpu_part part = {first, rows * (k + 1) / parts - first, k, parts};

        IRON_TRY(b->way->run_part(b->work, &b->data, part, b->queue, err));
    }
    return b->way->finish(b->work, &b->data, b->queue, err);
}

static iron_status answer(bench *b, trial *r, bool in_parts, iron_error *err) {
    size_t bytes = r->problem.output_bytes;
    iron__gpu_copy in = {.from_host = r->output, .to = b->data.output, .bytes = bytes};
    iron__gpu_copy out = {.from = b->data.output, .to_host = r->output, .bytes = bytes};

    poison(r);
    if (b->way->spoil)
        IRON_TRY(b->way->spoil(b->work, b->queue, err));
    IRON_TRY(b->way->reset ? b->way->reset(b->work, b->queue, err)
                           : iron__gpu_copy_bytes(b->queue, &in, err));
    IRON_TRY(iron__gpu_queue_wait(b->queue, err));
    IRON_TRY(in_parts ? run_in_parts(b, r->problem.c.rows, err)
                      : b->way->run(b->work, &b->data, b->queue, err));
    if (b->way->fetch)
        return b->way->fetch(b->work, b->queue, r->output, err);
    IRON_TRY(iron__gpu_copy_bytes(b->queue, &out, err));
    return iron__gpu_queue_wait(b->queue, err);
}

/* More than once: what an object keeps between runs must be fit for the next. */
static void test_way(bench *b, trial *r, const iron__contender *row, bool in_parts) {
    char what[120], text[160] = "";
    const char *wrong = "";
    iron_error err = {IRON_OK, 0, ""};
    iron_status status = IRON_OK;

    name_check(r, row, in_parts ? ", in parts" : "", what, sizeof what);
    if (!iron__selftest_wants(r->t, what) || r->d->is_lost)
        return;
    for (int turn = 0; turn < TURNS && status == IRON_OK && !wrong[0]; turn++) {
        status = answer(b, r, in_parts, &err);
        wrong = status == IRON_OK ? judge(r, row, text, sizeof text) : "";
    }
    iron__selftest_tell_gpu(r->d, what, status, wrong, &err);
}

/* Whole or in parts. */
static bool wants_any(const trial *r, const iron__contender *row) {
    char whole[120], parts[120];

    name_check(r, row, "", whole, sizeof whole);
    name_check(r, row, ", in parts", parts, sizeof parts);
    return iron__selftest_wants(r->t, whole) || iron__selftest_wants(r->t, parts);
}

static void test_on_gpu(trial *r, const iron__contender *row) {
    bench b = {.device = r->d->device, .way = row->gpu};
    iron_error err = {IRON_OK, 0, ""};
    iron_status status;
    char what[120];

    name_check(r, row, "", what, sizeof what);
    if (r->d->is_lost || !wants_any(r, row))
        return;
    status = set_up(&b, r, row, &err);
    if (status == IRON_E_UNSUPPORTED)
        iron__selftest_skip(r->t, what, err.text);
    else if (status != IRON_OK)
        iron__selftest_tell_gpu(r->d, what, status, "", &err);
    else
        test_way(&b, r, row, false);
    if (status == IRON_OK && row->gpu->run_part)
        test_way(&b, r, row, true);
    tear_down(&b);
}

/* A mode in which every node reads every token is tested elsewhere, over less. */
static bool is_affordable(const trial *r, const iron__contender *row) {
    const iron__gpu_info *info = r->d ? &r->d->device->info : NULL;

    return !row->seconds || row->seconds(row, &r->problem.c, info, THREADS) < 0.05;
}

static void test_contenders(trial *r) {
    uint32_t on = r->d ? (uint32_t)IRON_ON_CUDA << r->d->backend : IRON_ON_CPU;
    uint32_t element = IRON_BIT(r->problem.c.element);
    iron__contender row;

    for (size_t k = 0; r->problem.c.op->contender_at(k, &row); k++) {
        if (!(row.backends & on) || (row.elements && !(row.elements & element)) ||
            (row.needs & ~iron__cpu_features()) || !is_affordable(r, &row) ||
            (row.suits && !row.suits(&row, &r->problem.c)))
            continue;
        if (r->d)
            test_on_gpu(r, &row);
        else
            test_on_cpu(r, &row);
    }
}

static void test_case(trial *r) {
    iron_error err = {IRON_OK, 0, ""};

    if (r->problem.c.op->make(&r->problem, r->team, &err) != IRON_OK) {
        iron__selftest_fail(r->t, &err);
        return;
    }
    r->output = malloc(r->problem.output_bytes);
    r->unpacked = malloc(r->problem.output_bytes);
    if (r->output && r->unpacked)
        test_contenders(r);
    else
        iron__selftest_fail(r->t, &iron__selftest_no_memory);
    free(r->unpacked);
    free(r->output);
    r->problem.c.op->unmake(&r->problem);
}

/* Puts a case on the values number `index` of its axes, counted through; false past the last. */
static bool place(trial *r, size_t index) {
    iron__case *c = &r->problem.c;
    size_t used = 0;

    r->params[0] = '\0';
    for (size_t k = 0; k < c->op->axis_count; k++) {
        const iron__axis *axis = &c->op->axes[k];
        size_t at = index % axis->count;

        index /= axis->count;
        c->at[k] = axis->words ? (double)at : axis->numbers[at];
        if (axis->words)
            snprintf(r->params + used, sizeof r->params - used, ", %s %s", axis->name,
                     axis->words[at]);
        else
            snprintf(r->params + used, sizeof r->params - used, ", %s %g", axis->name, c->at[k]);
        used = strlen(r->params);
    }
    return index == 0;
}

static void test_op(iron__selftest *t, iron__selftest_device *d, iron__team *team,
                    const iron__op *op) {
    const shape *shapes = op->is_line ? lines : matrices;
    size_t count = op->is_line ? COUNT(lines) : COUNT(matrices);

    for (size_t k = 0; k < count; k++) {
        for (uint32_t e = 0; e < IRON_ELEMENTS; e++) {
            trial r = {.t = t, .d = d, .team = team};

            if (!(op->elements & IRON_BIT(e)) || (t->is_quick && !shapes[k].is_quick))
                continue;
            r.problem.c = (iron__case){.op = op,
                                       .rows = shapes[k].rows,
                                       .cols = shapes[k].cols,
                                       .element = (iron__element)e,
                                       .vocab = e == IRON_U32 ? op->vocab_usual : 0,
                                       .seed = SEED};
            for (size_t at = 0; place(&r, at); at++)
                test_case(&r);
        }
    }
}

static void test_ops(iron__selftest *t, iron__selftest_device *d) {
    iron__team *team = NULL;
    iron_error err;

    if (iron__team_create(THREADS, iron__allocator_default(), &team, &err) != IRON_OK) {
        iron__selftest_fail(t, &err);
        return;
    }
    for (size_t k = 0; iron__op_at(k); k++)
        test_op(t, d, team, iron__op_at(k));
    iron__team_destroy(team);
}

void iron__selftest_ops(iron__selftest *t) { test_ops(t, NULL); }

void iron__selftest_gpu_ops(iron__selftest_device *d) { test_ops(d->test, d); }
