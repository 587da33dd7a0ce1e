/* SPDX-License-Identifier: MIT */
/*
 * calibrate.c: measures every mode on a device, over batch sizes and numbers of nodes.
 *
 * Tokens lie in device memory; a case's time is that of feeding a batch and having it applied, over
 * so many batches that the clock does not matter, the best of a few rounds. Modes that read every
 * token for every node are left out where they would take long: they have lost there.
 */
#include "core/clock.h"
#include "core/fail.h"
#include "engine/calibration.h"

#include <iron/iron_arena.h>

#include <stdlib.h>

#define ROUNDS     3u
#define ROUND_NS   2e6 /* a round takes about this long */
#define REPEAT_MAX 256u

/* What a case may cost in pairs of node and token, a unit. */
#define PAIRS (UINT64_C(1) << 20)

static const uint64_t batches[] = {1024, 16384, 262144, 1048576, 16777216};
static const uint64_t node_counts[] = {1, 256, 4096, 65536};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

_Static_assert(COUNT(batches) * COUNT(node_counts) == IRON_CALIBRATION_CASES, "room for all cases");

typedef struct bench {
    iron__gpu_device *device;
    iron__gpu_program *program;
    iron__gpu_queue *queue;
    iron__gpu_buffer *tokens;
    iron_lattice *lattice;
    uint64_t tokens_max;
} bench;

/* Nanoseconds that `repeat` batches take, to the end. */
static iron_status time_batches(bench *b, iron__tokens_gpu *t, uint64_t batch, uint32_t repeat,
                                double *ns, iron_error *err) {
    uint64_t start;

    IRON_TRY(iron__gpu_queue_wait(b->queue, err));
    start = iron__clock_ns();
    for (uint32_t k = 0; k < repeat; k++)
        IRON_TRY(iron__tokens_gpu_feed(t, b->queue, b->tokens, 0, batch, err));
    IRON_TRY(iron__tokens_gpu_settle(t, b->queue, err));
    IRON_TRY(iron__gpu_queue_wait(b->queue, err));
    *ns = (double)(iron__clock_ns() - start);
    return IRON_OK;
}

static iron_status time_mode(bench *b, iron__tokens_gpu *t, uint64_t batch, double *out,
                             iron_error *err) {
    uint32_t repeat = 1;
    double ns;

    IRON_TRY(time_batches(b, t, batch, 1, &ns, err)); /* the first is for warming up */
    IRON_TRY(time_batches(b, t, batch, 1, &ns, err));
    if (ns < ROUND_NS)
        repeat = ns * REPEAT_MAX < ROUND_NS ? REPEAT_MAX : (uint32_t)(ROUND_NS / ns) + 1;
    for (uint32_t k = 0; k < ROUNDS; k++) {
        IRON_TRY(time_batches(b, t, batch, repeat, &ns, err));
        if (k == 0 || ns / repeat < *out)
            *out = ns / repeat;
    }
    return IRON_OK;
}

static iron_status measure_mode(bench *b, const iron__tokens_gpu_row *row, uint64_t batch,
                                uint64_t nodes, double *ns, iron_error *err) {
    const iron_allocator *a = iron__allocator_default();
    iron__tokens_gpu_config config = {.row = row,
                                      .lattice = b->lattice,
                                      .allocator = a,
                                      .program = b->program,
                                      .batch = batch,
                                      .nodes = (uint32_t)nodes,
                                      .vocab = 50257};
    iron__nodes state = {0};
    iron__tokens_gpu *t = NULL;
    iron_status status;

    status = iron__nodes_init(&state, config.nodes, b->lattice, NULL, a, err);
    if (status == IRON_OK)
        status = iron__tokens_gpu_create(b->device, &config, &t, err);
    if (status == IRON_OK)
        status = iron__tokens_gpu_begin(t, b->queue, &state, iron__contribution_neutral(), 0, err);
    if (status == IRON_OK)
        status = time_mode(b, t, batch, ns, err);
    iron__tokens_gpu_destroy(t);
    iron__nodes_deinit(&state);
    return status;
}

static bool is_affordable(const bench *b, const iron__tokens_gpu_row *row,
                          const iron__calibration_case *c) {
    return row->per_node ? c->batch <= b->device->info.units * PAIRS / c->nodes
                         : c->batch <= b->tokens_max;
}

static iron_status measure_case(bench *b, iron__calibration_case *c, iron_error *err) {
    for (size_t k = 0; iron__tokens_gpu_row_at(k); k++) {
        const iron__tokens_gpu_row *row = iron__tokens_gpu_row_at(k);

        if (c->batch <= b->tokens_max && is_affordable(b, row, c))
            IRON_TRY(measure_mode(b, row, c->batch, c->nodes, &c->ns[k], err));
    }
    return IRON_OK;
}

static iron_status measure_all(bench *b, iron__calibration *out, iron_progress progress,
                               void *context, iron_error *err) {
    for (size_t k = 0; k < IRON_CALIBRATION_CASES; k++) {
        iron__calibration_case *c = &out->cases[out->count];

        *c = (iron__calibration_case){.batch = batches[k / COUNT(node_counts)],
                                      .nodes = node_counts[k % COUNT(node_counts)]};
        IRON_TRY(measure_case(b, c, err));
        if (iron__calibration_fastest(c) < IRON_CALIBRATION_MODES)
            out->count++;
        IRON_FAIL_IF(progress && progress(context, k + 1, IRON_CALIBRATION_CASES), err,
                     IRON_E_CANCELLED, "cancelled while calibrating");
    }
    return IRON_OK;
}

static iron_status fill_tokens(bench *b, iron_error *err) {
    size_t bytes = (size_t)b->tokens_max * sizeof(uint32_t);
    iron__gpu_copy copy = {.bytes = bytes};
    uint32_t *tokens = malloc(bytes);
    iron_status status;

    if (!tokens)
        return iron__fail(err, IRON_E_NOMEM, 0, "out of memory: %zu bytes of tokens", bytes);
    status = iron_generate(1, 50257, 0, tokens, (size_t)b->tokens_max, err);
    copy.from_host = tokens;
    if (status == IRON_OK)
        status = iron__gpu_buffer_create(b->device, IRON_GPU_MEMORY_DEVICE, bytes, &b->tokens, err);
    copy.to = b->tokens;
    if (status == IRON_OK)
        status = iron__gpu_copy_bytes(b->queue, &copy, err);
    if (status == IRON_OK)
        status = iron__gpu_queue_wait(b->queue, err);
    free(tokens);
    return status;
}

static iron_status set_up(bench *b, size_t backend, size_t device, iron_error *err) {
    IRON_TRY(iron__gpu_device_open(backend, device, &b->device, err));
    b->tokens_max = batches[COUNT(batches) - (b->device->info.is_gpu ? 1 : 2)];
    IRON_TRY(iron_lattice_create(NULL, 0, &b->lattice, err));
    IRON_TRY(iron__gpu_program_load(b->device, &iron__tokens_image, &b->program, err));
    IRON_TRY(iron__gpu_queue_create(b->device, &b->queue, err));
    return fill_tokens(b, err);
}

static void tear_down(bench *b) {
    iron__gpu_buffer_destroy(b->tokens);
    iron__gpu_queue_destroy(b->queue);
    if (b->device)
        iron__gpu_program_unload(b->device, b->program);
    iron_lattice_destroy(b->lattice);
    iron__gpu_device_close(b->device);
}

iron_status iron_calibrate(const char *backend, uint32_t device, iron_progress progress,
                           void *context, iron_error *err) {
    size_t index = iron__gpu_backend_find(backend);
    iron__calibration calibration = {.count = 0};
    bench b = {.device = NULL};
    iron_status status;
    char key[320];

    IRON_FAIL_IF(index == iron__gpu_backend_count(), err, IRON_E_ARG,
                 "backend '%.20s' is not calibrated; use cuda or opencl", backend);
    status = set_up(&b, index, device, err);
    if (status == IRON_OK)
        status = measure_all(&b, &calibration, progress, context, err);
    if (status == IRON_OK) {
        iron__calibration_key(index, &b.device->info, key, sizeof key);
        status = iron__calibration_save(key, &calibration, err);
    }
    tear_down(&b);
    return status;
}
