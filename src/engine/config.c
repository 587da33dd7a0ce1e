/* SPDX-License-Identifier: MIT */
/*
 * config.c: from a configuration to an engine. Everything that could fail mid-stream is refused
 * here: after this only input and output can fail.
 */
#include "core/cpu.h"
#include "core/fail.h"
#include "engine/engine.h"

#include <inttypes.h>
#include <string.h>

void iron_config_init_sized(iron_config *config, size_t struct_size) {
    iron_config defaults = {
        .struct_size = (uint32_t)struct_size,
        .positions = IRON_POSITIONS_STREAM,
        .nodes = 4096,
        .vocab = 50257,
        .batch = 786432,
    };

    /* a caller built with another version has another size: no byte beyond it is ours */
    memcpy(config, &defaults, struct_size < sizeof defaults ? struct_size : sizeof defaults);
}

iron_status iron__config_check(const iron_config *c, iron_error *err) {
    IRON_FAIL_IF(!c || c->struct_size != sizeof *c, err, IRON_E_ARG,
                 "iron_config.struct_size is not %zu; call iron_config_init first", sizeof *c);
    IRON_FAIL_IF(c->nodes < 1 || c->nodes > IRON_NODES_MAX, err, IRON_E_ARG,
                 "nodes is %" PRIu64 "; it must be 1 to 1048576", c->nodes);
    IRON_FAIL_IF(c->vocab < 2 || c->vocab > IRON_VOCAB_MAX, err, IRON_E_ARG,
                 "vocab is %" PRIu64 "; it must be 2 to 2147483648", c->vocab);
    IRON_FAIL_IF(c->batch < 1, err, IRON_E_ARG, "batch is 0; it must be at least 1 token");
    IRON_FAIL_IF(c->batch > IRON_BATCH_VOCAB_MAX / c->vocab, err, IRON_E_ARG,
                 "batch %" PRIu64 " times vocab %" PRIu64 " is above 2^62; use smaller batches",
                 c->batch, c->vocab);
    IRON_FAIL_IF(c->positions != IRON_POSITIONS_STREAM && c->positions != IRON_POSITIONS_BATCH, err,
                 IRON_E_ARG, "positions is %d; use IRON_POSITIONS_STREAM or IRON_POSITIONS_BATCH",
                 (int)c->positions);
    IRON_FAIL_IF(c->threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "threads is %u; it must be at most %u", c->threads, IRON_THREADS_MAX);
    IRON_FAIL_IF(!c->lattice && c->lattice_count > 0, err, IRON_E_ARG,
                 "lattice_count is %u but lattice is NULL; give the points too", c->lattice_count);
    return c->activations ? iron__activations_check(c->activations, c->nodes, err) : IRON_OK;
}

static iron_status allocate_queues(iron_engine *e, iron_error *err) {
    const iron_allocator *a = e->allocator;

    e->queue = iron__allocate(a, IRON_QUEUE_BATCHES, sizeof *e->queue, "the batch queue", err);
    if (!e->queue)
        return IRON_E_NOMEM;
    e->runs = iron__allocate(a, IRON_RUNS_MAX, sizeof *e->runs, "the runs of a feed", err);
    if (!e->runs)
        return IRON_E_NOMEM;
    if (e->config.with_seal) {
        e->seal_runs = iron__allocate(a, IRON_RUNS_MAX, sizeof *e->seal_runs, "seal words", err);
        if (!e->seal_runs)
            return IRON_E_NOMEM;
    }
    if (!e->choice.variant || !e->choice.variant->per_node)
        return IRON_OK;
    e->per_node.xors = iron__allocate(a, e->nodes.count, sizeof(uint32_t), "a XOR a node", err);
    if (!e->per_node.xors)
        return IRON_E_NOMEM;
    e->per_node.sums = iron__allocate(a, e->nodes.count, sizeof(uint64_t), "a sum a node", err);
    return e->per_node.sums ? IRON_OK : IRON_E_NOMEM;
}

/* The engine's own copy of the configuration: nothing of the caller's is kept but the allocator. */
static void adopt_config(iron_engine *e, uint32_t threads) {
    e->config.lattice = e->lattice->points;
    e->config.lattice_count = e->lattice->count;
    e->config.activations = e->nodes.activations;
    e->config.backend = e->gpu ? iron__gpu_backend_name(e->choice.gpu_backend) : "cpu";
    e->config.mode = e->gpu ? e->choice.gpu_row->mode : e->choice.variant->mode;
    e->config.memory = e->gpu ? iron__gpu_feed_memory(e->gpu) : "pageable";
    e->config.threads = threads;
    e->config.allocator = e->allocator;
}

static iron_status build(iron_engine *e, iron_error *err) {
    const iron_config *c = &e->config;
    uint32_t threads = c->threads ? c->threads : iron__cpu_threads();

    IRON_TRY(iron__mode_choose(c, &e->choice, err));
    IRON_TRY(iron__lattice_create(c->lattice, c->lattice_count, e->allocator, &e->lattice, err));
    IRON_TRY(iron__nodes_init(&e->nodes, (uint32_t)c->nodes, e->lattice, c->activations,
                              e->allocator, err));
    IRON_TRY(allocate_queues(e, err));
    if (e->choice.variant && !e->choice.variant->all_threads)
        threads = 1;
    IRON_TRY(iron__team_create(threads, e->allocator, &e->team, err));
    e->divisor = iron__divisor_make((uint32_t)c->vocab);
    if (e->choice.gpu_row)
        IRON_TRY(iron__gpu_engine_create(e, err));
    else
        iron__cpu_name(e->device, sizeof e->device);
    adopt_config(e, threads);
    return IRON_OK;
}

iron_status iron_engine_create(const iron_config *config, iron_engine **out, iron_error *err) {
    const iron_allocator *allocator;
    iron_engine *e;
    iron_status status;

    *out = NULL;
    IRON_TRY(iron__config_check(config, err));
    allocator = config->allocator ? config->allocator : iron__allocator_default();
    e = iron__allocate(allocator, 1, sizeof *e, "an engine", err);
    if (!e)
        return IRON_E_NOMEM;
    e->config = *config;
    e->allocator = allocator;
    status = build(e, err);
    if (status != IRON_OK) {
        iron_engine_destroy(e);
        return status;
    }
    *out = e;
    return IRON_OK;
}

void iron_engine_destroy(iron_engine *engine) {
    const iron_allocator *a;

    if (!engine)
        return;
    a = engine->allocator;
    iron__gpu_feed_destroy(engine->gpu);
    iron__team_destroy(engine->team);
    iron__release(a, engine->per_node.sums);
    iron__release(a, engine->per_node.xors);
    iron__release(a, engine->seal_runs);
    iron__release(a, engine->runs);
    iron__release(a, engine->queue);
    iron__nodes_deinit(&engine->nodes);
    iron_lattice_destroy(engine->lattice);
    iron__release(a, engine);
}

const iron_config *iron_engine_config(const iron_engine *engine) { return &engine->config; }

const char *iron_engine_backend(const iron_engine *engine) { return engine->config.backend; }

const char *iron_engine_device(const iron_engine *engine) { return engine->device; }

const char *iron_engine_mode(const iron_engine *engine) { return engine->config.mode; }

const char *iron_engine_mode_reason(const iron_engine *engine) { return engine->choice.reason; }

const char *iron_engine_memory(const iron_engine *engine) { return engine->config.memory; }
