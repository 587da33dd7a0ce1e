/* SPDX-License-Identifier: MIT */
/*
 * selftest_gpu_large.c: more tokens in one buffer than 31 bits count. Indices, batch ends and grid
 * sizes that were computed in 32 bits would show here, and nowhere else.
 *
 * The buffer is one chunk of tokens over and over, which the CPU is fed as often. It takes 8 GiB on
 * the device, so only GPUs with room for that are tested; a device that is short of memory at the
 * moment is skipped, not failed. The modes in which every node reads every token get one node: the
 * arithmetic is the same, and 2^31 tokens are enough work.
 */
#include "engine/selftest_gpu.h"

#include "core/fail.h"
#include "core/nodes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define LARGE_TOKENS  ((UINT64_C(1) << 31) + 3)
#define CHUNK_TOKENS  ((size_t)1 << 24)
#define DEVICE_MEMORY (UINT64_C(12) << 30)
#define VOCAB         50257u

typedef struct large_case {
    uint64_t nodes, batch;
    const char *modes[3];
} large_case;

static const large_case cases[] = {
    {4096, LARGE_TOKENS, {"champion", "reduce", NULL}},
    {4096, 786432, {"champion", "reduce", NULL}},
    {1, LARGE_TOKENS, {"hybrid-vector", "tiled-vector", "atomic2d"}},
};

typedef struct bench {
    iron__selftest_device *d;
    iron_lattice *lattice;
    iron__gpu_program *program;
    iron__gpu_queue *queue;
    iron__gpu_buffer *buffer;
    uint32_t *chunk;
} bench;

static size_t chunk_at(uint64_t done) {
    return LARGE_TOKENS - done < CHUNK_TOKENS ? (size_t)(LARGE_TOKENS - done) : CHUNK_TOKENS;
}

static iron_status fill_buffer(bench *b, iron_error *err) {
    for (uint64_t done = 0; done < LARGE_TOKENS; done += CHUNK_TOKENS) {
        iron__gpu_copy copy = {.to = b->buffer,
                               .from_host = b->chunk,
                               .to_offset = (size_t)done * sizeof(uint32_t),
                               .bytes = chunk_at(done) * sizeof(uint32_t)};

        IRON_TRY(iron__gpu_copy_bytes(b->queue, &copy, err));
    }
    return iron__gpu_queue_wait(b->queue, err);
}

static iron_status set_up(bench *b, iron_error *err) {
    iron__gpu_device *device = b->d->device;

    IRON_TRY(iron_generate(31, UINT64_C(1) << 32, 0, b->chunk, CHUNK_TOKENS, err));
    IRON_TRY(iron_lattice_create(NULL, 0, &b->lattice, err));
    IRON_TRY(iron__gpu_program_load(device, &iron__tokens_image, &b->program, err));
    IRON_TRY(iron__gpu_queue_create(device, &b->queue, err));
    IRON_TRY(iron__gpu_buffer_create(device, IRON_GPU_MEMORY_DEVICE,
                                     (size_t)LARGE_TOKENS * sizeof(uint32_t), &b->buffer, err));
    return fill_buffer(b, err);
}

static void tear_down(bench *b) {
    iron__gpu_buffer_destroy(b->buffer);
    iron__gpu_queue_destroy(b->queue);
    iron__gpu_program_unload(b->d->device, b->program);
    iron_lattice_destroy(b->lattice);
    free(b->chunk);
}

/* The same stream on all of the CPU's threads. The engine is returned owned. */
static iron_status reference(const bench *b, const large_case *c, iron_engine **out,
                             iron_error *err) {
    iron_config config =
        iron__selftest_config(&(iron__selftest_place){.backend = "cpu", .mode = "champion"});
    iron_status status;

    config.nodes = c->nodes;
    config.batch = c->batch;
    config.vocab = VOCAB;
    status = iron_engine_create(&config, out, err);
    for (uint64_t done = 0; status == IRON_OK && done < LARGE_TOKENS; done += CHUNK_TOKENS)
        status = iron_engine_feed(*out, b->chunk, chunk_at(done), err);
    if (status == IRON_OK)
        status = iron_engine_end_batch(*out, err);
    if (status != IRON_OK) {
        iron_engine_destroy(*out);
        *out = NULL;
    }
    return status;
}

static void compare(const iron__nodes *nodes, iron__contribution closed, uint64_t batches,
                    iron_engine *want, char *text, size_t size) {
    iron_report r = {.struct_size = sizeof r};

    (void)iron_engine_report(want, &r, NULL); /* on the CPU nothing fails */
    if (closed.count != r.tokens || closed.sum != r.sum || closed.xors != r.xor_total ||
        batches != r.batches || iron__nodes_hash(nodes) != r.state)
        snprintf(text, size,
                 "got %" PRIu64 " tokens %" PRIu64 " batches xor %08" PRIx32 " sum %" PRIu64
                 " state %016" PRIx64 ", expected %" PRIu64 " %" PRIu64 " %08" PRIx32 " %" PRIu64
                 " %016" PRIx64,
                 closed.count, batches, closed.xors, closed.sum, iron__nodes_hash(nodes), r.tokens,
                 r.batches, r.xor_total, r.sum, r.state);
}

static iron_status run_mode(const bench *b, const iron__tokens_gpu_row *row, const large_case *c,
                            iron_engine *want, char *text, size_t size, iron_error *err) {
    const iron_allocator *a = iron__allocator_default();
    iron__tokens_gpu_config config = {.row = row,
                                      .lattice = b->lattice,
                                      .allocator = a,
                                      .program = b->program,
                                      .batch = c->batch,
                                      .nodes = (uint32_t)c->nodes,
                                      .vocab = VOCAB};
    iron__contribution none = iron__contribution_neutral(), closed = none;
    iron__nodes nodes = {0};
    iron__tokens_gpu *t = NULL;
    iron_status status = iron__nodes_init(&nodes, config.nodes, b->lattice, NULL, a, err);

    if (status == IRON_OK)
        status = iron__tokens_gpu_create(b->d->device, &config, &t, err);
    if (status == IRON_OK)
        status = iron__tokens_gpu_begin(t, b->queue, &nodes, none, 0, err);
    if (status == IRON_OK)
        status = iron__tokens_gpu_feed(t, b->queue, b->buffer, 0, LARGE_TOKENS, err);
    if (status == IRON_OK)
        status = iron__tokens_gpu_end_batch(t, b->queue, err);
    if (status == IRON_OK)
        status = iron__tokens_gpu_fetch(t, b->queue, &nodes, &closed, err);
    if (status == IRON_OK)
        compare(&nodes, closed, iron__tokens_gpu_progress_of(t).batches, want, text, size);
    iron__tokens_gpu_destroy(t);
    iron__nodes_deinit(&nodes);
    return status;
}

static void test_case(const bench *b, const large_case *c) {
    iron_engine *want = NULL;
    iron_error err;

    if (reference(b, c, &want, &err) != IRON_OK) {
        iron__selftest_fail(b->d->test, &err);
        return;
    }
    for (size_t k = 0; k < COUNT(c->modes) && c->modes[k] && !b->d->is_lost; k++) {
        const iron__tokens_gpu_row *row = iron__tokens_gpu_row_find(c->modes[k]);
        char what[120], text[320] = "";
        iron__selftest_name name;
        iron_status status;

        snprintf(what, sizeof what, "2^31 tokens and three, batch %" PRIu64, c->batch);
        name = iron__selftest_name_of(b->d, row, what);
        if (!iron__selftest_wants(b->d->test, name.text))
            continue;
        status = run_mode(b, row, c, want, text, sizeof text, &err);
        iron__selftest_tell_gpu(b->d, name.text, status, text, &err);
    }
    iron_engine_destroy(want);
}

/* NULL: this device is tested. */
static const char *why_not(const iron__selftest_device *d) {
    if (d->test->is_quick)
        return "8 GiB of tokens are not part of a quick selftest";
    if (!d->device->info.is_gpu)
        return "8 GiB of tokens are for GPUs alone";
    return d->device->info.memory_bytes < DEVICE_MEMORY ? "8 GiB of tokens need a GPU with 12 GiB"
                                                        : NULL;
}

void iron__selftest_gpu_large(iron__selftest_device *d) {
    const char *reason = why_not(d);
    bench b = {.d = d};
    char what[80];
    iron_error err = iron__selftest_no_memory;
    iron_status status = IRON_E_NOMEM;

    if (d->is_lost)
        return;
    snprintf(what, sizeof what, "2^31 tokens and three, %s device %zu",
             iron__gpu_backend_name(d->backend), d->index);
    if (reason) {
        iron__selftest_skip(d->test, what, reason);
        return;
    }
    b.chunk = malloc(CHUNK_TOKENS * sizeof *b.chunk);
    if (b.chunk)
        status = set_up(&b, &err);
    for (size_t k = 0; status == IRON_OK && k < COUNT(cases); k++)
        test_case(&b, &cases[k]);
    if (status == IRON_E_NOMEM)
        iron__selftest_skip(d->test, what, err.text);
    else if (status != IRON_OK)
        iron__selftest_tell_gpu(d, what, status, "", &err);
    tear_down(&b);
}
