/* SPDX-License-Identifier: MIT */
/*
 * engine.c: creates engines from configurations and reports their results.
 *
 * Everything that could fail in the middle of a stream is refused when the engine is created;
 * afterwards only input, output and devices can fail.
 */
#include "engine/engine.h"

#include "core/cpu.h"
#include "core/fail.h"

#include <inttypes.h>
#include <string.h>

void iron_config_init_sized(iron_config *config, size_t struct_size) {
    const iron_config defaults = {
        .positions = IRON_POSITIONS_STREAM, .nodes = 4096, .vocab = 50257, .batch = 786432};

    iron__struct_init(config, struct_size, &defaults, sizeof defaults);
}

iron_status iron__config_check(const iron_config *c, iron_error *err) {
    IRON_TRY(iron__struct_check(c, sizeof *c, "iron_config", err));
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

static iron_status init_engine(iron_engine *e, iron_error *err) {
    iron_config *c = &e->config;
    bool is_cpu;
    IRON_TRY(iron__mode_choose(c, &e->choice, err));
    c->device = e->choice.devices.index[0];
    if (e->sharers == 0)
        e->sharers = e->choice.devices.count;
    is_cpu = e->choice.variant != NULL;
    e->backend = is_cpu ? &iron__engine_cpu : &iron__engine_gpu;
    IRON_TRY(iron__lattice_create(c->lattice, c->lattice_count, e->allocator, &e->lattice, err));
    IRON_TRY(iron__nodes_init(&e->nodes, (uint32_t)c->nodes, e->lattice, c->activations,
                              e->allocator, err));
    if (is_cpu && !e->choice.variant->all_threads)
        c->threads = 1;
    else if (c->threads == 0)
        c->threads = iron__cpu_threads();
    IRON_TRY(iron__thread_pool_create(c->threads, e->allocator, &e->pool, err));
    IRON_TRY(e->backend->create(e, err));
    /* from here on the configuration borrows nothing from the caller but the allocator */
    c->lattice = e->lattice->points;
    c->lattice_count = e->lattice->count;
    c->activations = e->nodes.activations;
    c->allocator = e->allocator;
    c->devices = NULL;
    if (e->choice.devices.count == 1)
        return IRON_OK;
    iron__gpu_devices_print(&e->choice.devices, e->devices);
    c->devices = e->devices;
    iron__append(e->device, sizeof e->device, ", devices %s", e->devices);
    return iron__members_create(e, err);
}

iron_status iron_engine_create(const iron_config *config, iron_engine **out, iron_error *err) {
    return iron__engine_create_sharing(config, 0, out, err);
}

iron_status iron__engine_create_sharing(const iron_config *config, uint32_t sharers,
                                        iron_engine **out, iron_error *err) {
    const iron_allocator *allocator;
    iron_engine *e;
    iron_status status;

    *out = NULL;
    IRON_TRY(iron__config_check(config, err));
    allocator = config->allocator ? config->allocator : iron__allocator_default();
    IRON_TRY(IRON_ALLOCATE(&e, allocator, 1, "an engine", err));
    e->config = *config;
    e->allocator = allocator;
    e->sharers = sharers;
    pthread_mutex_init(&e->outside.mutex, NULL);
    e->outside.found = iron__token_stats_neutral();
    status = init_engine(e, err);
    if (status == IRON_OK)
        *out = e;
    else
        iron_engine_destroy(e);
    return status;
}

void iron_engine_destroy(iron_engine *engine) {
    if (!engine)
        return;
    iron__members_destroy(engine);
    if (engine->backend)
        engine->backend->destroy(engine);
    iron__thread_pool_destroy(engine->pool);
    iron__nodes_deinit(&engine->nodes);
    iron_lattice_destroy(engine->lattice);
    pthread_mutex_destroy(&engine->outside.mutex);
    iron__release(engine->allocator, engine);
}

const iron_config *iron_engine_config(const iron_engine *engine) { return &engine->config; }

const char *iron_engine_backend(const iron_engine *engine) { return engine->config.backend; }

const char *iron_engine_device(const iron_engine *engine) { return engine->device; }

const char *iron_engine_mode(const iron_engine *engine) { return engine->config.mode; }

const char *iron_engine_mode_reason(const iron_engine *engine) { return engine->choice.reason; }

const char *iron_engine_memory(const iron_engine *engine) { return engine->config.memory; }

double iron_engine_seconds_estimate(const iron_engine *engine, uint64_t tokens) {
    return engine->backend->seconds_estimate(engine, tokens);
}

void *iron_engine_native_context(const iron_engine *engine) {
    return engine->gpu ? (void *)iron__gpu_feed_context(engine->gpu) : NULL;
}

iron_status iron__engine_check_failure(const iron_engine *engine, iron_error *err) {
    if (engine->failure.status != IRON_OK && err)
        *err = engine->failure;
    return engine->failure.status;
}

iron_status iron__engine_sync(iron_engine *engine, iron_error *err) {
    return engine->backend->sync(engine, err);
}

iron_status iron__engine_check_closed(const iron_engine *engine, iron_error *err) {
    IRON_FAIL_IF(engine->open.count > 0, err, IRON_E_STATE,
                 "a batch of %" PRIu64 " tokens is open; call iron_engine_end_batch before",
                 engine->open.count);
    return IRON_OK;
}

iron_status iron__engine_check_complete(const iron_engine *engine, iron_error *err) {
    IRON_TRY(iron__engine_check_closed(engine, err));
    IRON_FAIL_IF(engine->range.origin > 0 || engine->range.record, err, IRON_E_STATE,
                 "this engine has only the batches from position %" PRIu64
                 " on; apply their effect to one that has all, and use that",
                 engine->range.origin);
    return IRON_OK;
}

void iron__engine_apply_effects(iron_engine *engine, const iron_batch_effect *effects,
                                size_t count) {
    iron__nodes_apply(&engine->nodes, effects, count, engine->pool);
    if (engine->range.is_begun)
        iron__batches_compose(engine->lattice, effects, count, engine->range.map);
}

const uint32_t *iron_engine_xor_accumulators(iron_engine *engine) {
    return iron__engine_sync(engine, NULL) == IRON_OK ? engine->nodes.xor_accumulators : NULL;
}

const float *iron_engine_potentials(iron_engine *engine) {
    return iron__engine_sync(engine, NULL) == IRON_OK ? engine->nodes.potentials : NULL;
}

const float *iron_engine_activations(iron_engine *engine) { return engine->nodes.activations; }

iron_status iron_engine_report(iron_engine *engine, iron_report *report, iron_error *err) {
    IRON_TRY(iron__struct_check(report, sizeof *report, "iron_report", err));
    IRON_TRY(iron__engine_sync(engine, err));
    *report = (iron_report){
        .struct_size = sizeof *report,
        .xor_total = engine->closed.xors,
        .tokens = engine->closed.count - engine->range.origin,
        .batches = engine->batches,
        .sum = engine->closed.sum,
        .state = iron__nodes_hash(&engine->nodes),
        .open_tokens = engine->open.count,
        .has_seal = engine->config.with_seal,
    };
    if (engine->config.with_seal) {
        iron__seal_words w = iron__seal_total(&engine->seal);

        w.count -= engine->range.origin;
        memcpy(report->seal_words, (uint64_t[4]){w.count, w.t, w.a, w.b},
               sizeof report->seal_words);
        iron__seal_text(w, report->seal);
    }
    return IRON_OK;
}
