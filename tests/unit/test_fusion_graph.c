/* SPDX-License-Identifier: MIT */
/*
 * test_fusion_graph.c: the row `graph` of fusion on a fake device, which records launches and
 * computes the steps on the host when they are replayed. The row records at its first run and when
 * its buffers change, and only then; the replayed result is right; a failed recording leaks
 * nothing; a device that cannot record is refused with a message.
 */
#include "line_op_support.h"

#include "ops/fusion/fusion.c"

#define LAUNCHES 8u
#define PIECE    ((uint64_t)FUSION_THREADS * FUSION_EACH) /* elements that a group takes */

typedef struct note {
    const char *kernel;
    const float *from[2];
    float *to;
    uint64_t count;
} note;

typedef struct fake_graph {
    iron__gpu_graph base;
    note notes[LAUNCHES];
    size_t count;
} fake_graph;

/* Current state and counters of the device. */
static struct {
    fake_graph *recording;
    size_t begun, ended, replayed, graphs, fail_at, launches;
} fake;

static iron_status load(iron__gpu_program *program, const iron__gpu_image *image, iron_error *err) {
    (void)program;
    (void)image;
    (void)err;
    return IRON_OK;
}

static iron_status find(iron__gpu_program *program, iron__gpu_kernel *kernel, iron_error *err) {
    (void)program;
    (void)kernel;
    (void)err;
    return IRON_OK;
}

static iron_status take(iron__gpu_buffer *buffer, iron_error *err) {
    (void)err;
    buffer->native = (uintptr_t)grab(buffer->bytes);
    memset((void *)buffer->native, 0xFF, buffer->bytes);
    return IRON_OK;
}

static void give_back(iron__gpu_buffer *buffer) { free((void *)buffer->native); }

/* Launches are recorded; this row must not launch outside of a recording. */
static iron_status put(iron__gpu_queue *queue, const iron__gpu_launch *launch, iron_error *err) {
    note n = {.kernel = launch->kernel->name};

    (void)queue;
    assert_non_null(fake.recording);
    assert_int_equal(launch->arg_count, 4);
    if (++fake.launches == fake.fail_at) {
        *err = (iron_error){IRON_E_NOMEM, 0, "no room for a launch"};
        return IRON_E_NOMEM;
    }
    n.from[0] = (const float *)launch->args[0].buffer->native;
    n.from[1] = (const float *)launch->args[1].buffer->native;
    n.to = (float *)launch->args[2].buffer->native;
    memcpy(&n.count, launch->args[3].value, sizeof n.count);
    assert_int_equal(launch->threads[0], FUSION_THREADS);
    assert_int_equal(launch->groups[0], (n.count + PIECE - 1) / PIECE);
    assert_true(fake.recording->count < LAUNCHES);
    fake.recording->notes[fake.recording->count++] = n;
    return IRON_OK;
}

static iron_status begin(iron__gpu_queue *queue, iron_error *err) {
    (void)queue;
    (void)err;
    assert_null(fake.recording);
    fake.recording = calloc(1, sizeof *fake.recording);
    assert_non_null(fake.recording);
    fake.begun++;
    fake.graphs++;
    return IRON_OK;
}

static iron_status end(iron__gpu_queue *queue, iron__gpu_graph **out, iron_error *err) {
    (void)queue;
    (void)err;
    assert_non_null(fake.recording);
    *out = &fake.recording->base;
    fake.recording = NULL;
    fake.ended++;
    return IRON_OK;
}

static void carry_out(const note *n) {
    for (uint64_t k = 0; k < n->count; k++) {
        float t = n->from[0][k], other = n->from[1][k];

        if (strcmp(n->kernel, "fusion_add") == 0)
            n->to[k] = t + other;
        else if (strcmp(n->kernel, "fusion_scale") == 0)
            n->to[k] = t * FUSION_SCALE;
        else if (strcmp(n->kernel, "fusion_multiply") == 0)
            n->to[k] = t * other;
        else if (strcmp(n->kernel, "fusion_clamp") == 0)
            n->to[k] = clamped(t);
        else if (strcmp(n->kernel, "fusion_subtract") == 0)
            n->to[k] = t - other;
        else
            fail_msg("no step is called %s", n->kernel);
    }
}

static iron_status replay(iron__gpu_graph *base, iron__gpu_queue *queue, iron_error *err) {
    const fake_graph *graph = (const fake_graph *)base;

    (void)queue;
    (void)err;
    for (size_t k = 0; k < graph->count; k++)
        carry_out(&graph->notes[k]);
    fake.replayed++;
    return IRON_OK;
}

static void forget(iron__gpu_graph *graph) {
    fake.graphs--;
    free(graph);
}

static const iron__gpu_program_ops program_ops = {
    .load = load, .kernel_bytes = sizeof(iron__gpu_kernel), .kernel_find = find, .launch = put};
static const iron__gpu_memory_ops memory_ops = {.buffer_create = take, .buffer_destroy = give_back};
static const iron__gpu_queue_ops queue_ops = {
    .graph_begin = begin, .graph_end = end, .graph_replay = replay, .graph_destroy = forget};
static const iron__gpu_ops ops = {
    .name = "fake", .program = &program_ops, .memory = &memory_ops, .queue = &queue_ops};

static iron__contender graph_row(void) {
    iron__contender row;
    size_t k = 0;

    while (iron__op_contender(&iron__op_fusion, k, &row) && strcmp(row.name, "graph") != 0)
        k++;
    assert_string_equal(row.name, "graph");
    return row;
}

/* A problem, its inputs on the device, and two outputs. */
typedef struct bench {
    iron__gpu_device device;
    iron__gpu_queue queue;
    iron__contender row;
    iron__thread_pool *pool;
    iron__op_problem problem;
    iron__gpu_buffer *inputs[2], *outputs[2];
    iron__gpu_work *work;
} bench;

static void set_up(bench *b, double chain) {
    iron_error err;

    memset(&fake, 0, sizeof fake);
    *b = (bench){.device = {.ops = &ops, .info = {.group_threads_max = 1024, .can_graph = true}}};
    b->queue.device = &b->device;
    b->row = graph_row();
    b->pool = make_team(1);
    b->problem = make_problem(&iron__op_fusion, 1001, chain, 5, b->pool);
    for (size_t k = 0; k < 2; k++) {
        size_t bytes = b->problem.output_bytes;

        assert_ok(
            iron__gpu_buffer_create(&b->device, IRON_GPU_MEMORY_DEVICE, bytes, &b->inputs[k], &err),
            &err);
        assert_ok(iron__gpu_buffer_create(&b->device, IRON_GPU_MEMORY_DEVICE, bytes, &b->outputs[k],
                                          &err),
                  &err);
        memcpy((void *)b->inputs[k]->native, b->problem.inputs[k].data, bytes);
    }
    assert_ok(b->row.gpu->create(&b->device, &b->row, &b->problem, 1, &b->work, &err), &err);
}

static void tear_down(bench *b) {
    b->row.gpu->destroy(b->work);
    for (size_t k = 0; k < 2; k++) {
        iron__gpu_buffer_destroy(b->inputs[k]);
        iron__gpu_buffer_destroy(b->outputs[k]);
    }
    iron__op_fusion.unmake(&b->problem);
    iron__thread_pool_destroy(b->pool);
    assert_int_equal(fake.graphs, 0);
    assert_null(fake.recording);
}

static iron_status run(bench *b, size_t output, iron_error *err) {
    iron__gpu_data data = {{b->inputs[0], b->inputs[1]}, b->outputs[output]};

    memset((void *)b->outputs[output]->native, 0xFF, b->problem.output_bytes);
    return b->row.gpu->run(b->work, &data, &b->queue, err);
}

static void records_once_per_set_of_buffers(void **state) {
    static const size_t outputs[] = {0, 0, 0, 1, 1, 0}, recordings[] = {1, 1, 1, 2, 2, 3};
    iron_error err;
    bench b;

    (void)state;
    for (size_t chain = 0; chain < 2; chain++) {
        set_up(&b, (double)chain);
        for (size_t k = 0; k < COUNT(outputs); k++) {
            assert_ok(run(&b, outputs[k], &err), &err);
            assert_passes(&b.problem, (void *)b.outputs[outputs[k]]->native, "graph");
            assert_int_equal(fake.begun, recordings[k]);
            assert_int_equal(fake.ended, recordings[k]);
            assert_int_equal(fake.replayed, k + 1);
            assert_int_equal(fake.launches, recordings[k] * (chain ? 6 : 2));
        }
        tear_down(&b);
    }
}

/* At any of its launches; the next run records again, and its result is right. */
static void failed_recordings_leak_nothing(void **state) {
    iron_error err;
    bench b;

    (void)state;
    for (size_t at = 1; at <= 6; at++) {
        set_up(&b, CHAIN_LONG);
        fake.fail_at = at;
        assert_refused(run(&b, 0, &err), IRON_E_NOMEM, &err);
        assert_says(&err, "no room");
        assert_true(fake.begun == 1 && fake.ended == 1 && fake.graphs == 0 && fake.replayed == 0);
        assert_ok(run(&b, 0, &err), &err);
        assert_passes(&b.problem, (void *)b.outputs[0]->native, "after a failure");
        tear_down(&b);
    }
}

static void devices_without_recording_are_refused(void **state) {
    iron_error err;
    iron__gpu_work *work = NULL;
    bench b;

    (void)state;
    set_up(&b, CHAIN_SHORT);
    b.device.info.can_graph = false;
    assert_refused(b.row.gpu->create(&b.device, &b.row, &b.problem, 1, &work, &err),
                   IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "record");
    b.device.info.can_graph = true;
    b.device.info.group_threads_max = 64;
    assert_refused(b.row.gpu->create(&b.device, &b.row, &b.problem, 1, &work, &err),
                   IRON_E_UNSUPPORTED, &err);
    assert_says(&err, "64 threads");
    assert_null(work);
    tear_down(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_once_per_set_of_buffers),
        cmocka_unit_test(failed_recordings_leak_nothing),
        cmocka_unit_test(devices_without_recording_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
