/* SPDX-License-Identifier: MIT */
/*
 * effect.c: what a range of batches does to any lattice, as plain numbers, so that different
 * processes can feed the ranges of one stream.
 *
 * A batch acts on the nodes in two ways. Its XOR maps the lattice's points to points, and maps
 * compose (core/nodes.h), so a range needs one map. Its potential adds whole numbers to the nodes'
 * potentials: an engine that began with zeros has their sum in its own potentials, exactly, while
 * it stays below 2^24. Beyond that float addition rounds and the order counts, so the batches
 * themselves (8 bytes each) must be passed on: they are written to the caller's array instead of
 * being applied to the nodes.
 *
 * An engine that begins at a position counts all tokens before it as closed: closed.count and the
 * seal's count are positions in the stream, and `origin` is subtracted in reports.
 */
#include "core/fail.h"
#include "core/hash.h"
#include "engine/engine.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

_Static_assert(sizeof(((iron_effect *)0)->map) == IRON_LATTICE_MAX, "one entry per point");

/* A hash of the configuration: effects of differently configured engines must not be composed. */
static uint64_t kind_of(const iron_engine *e) {
    const iron_config *c = &e->config;
    const uint64_t numbers[] = {
        c->nodes, c->vocab, c->batch, (uint64_t)c->positions, c->with_seal != 0, c->lattice_count};
    uint64_t hash = iron__fnv(IRON_FNV_START, numbers, sizeof numbers);

    hash = iron__fnv(hash, c->lattice, c->lattice_count * sizeof *c->lattice);
    return iron__fnv(hash, c->activations, (size_t)c->nodes * sizeof *c->activations);
}

static iron_status begin_at(iron_engine *engine, uint64_t position, iron_error *err) {
    IRON_FAIL_IF(engine->config.with_seal && position % 4 != 0, err, IRON_E_ARG,
                 "position %" PRIu64 " is not a multiple of 4, as a range with a seal needs",
                 position);
    IRON_TRY(iron__engine_check_failure(engine, err));
    engine->range = (iron__range){.is_begun = true, .origin = position};
    for (uint32_t k = 0; k < engine->lattice->count; k++)
        engine->range.map[k] = (uint8_t)k;
    engine->open = iron__contribution_neutral();
    engine->closed = (iron__contribution){.count = position};
    engine->batches = 0;
    engine->seal = (iron__seal){.words = {.count = engine->config.with_seal ? position : 0}};
    iron__nodes_reset(&engine->nodes);
    return engine->backend->restart(engine, err);
}

iron_status iron_engine_begin_at(iron_engine *engine, uint64_t position, iron_error *err) {
    IRON_FAIL_IF(!engine->backend->sees_batches && engine->nodes.count < engine->lattice->count,
                 err, IRON_E_UNSUPPORTED,
                 "a GPU reads the effect of batches from its nodes, and %u nodes are too few for "
                 "%u points; use the CPU",
                 engine->nodes.count, engine->lattice->count);
    return begin_at(engine, position, err);
}

iron_status iron_engine_record(iron_engine *engine, iron_batch_effect *room, size_t capacity,
                               iron_error *err) {
    IRON_FAIL_IF(!room || !engine->range.is_begun || engine->batches > 0 || engine->open.count > 0,
                 err, IRON_E_STATE,
                 "recording must start right after iron_engine_begin_at; call that again");
    if (engine->backend->record)
        IRON_TRY(engine->backend->record(engine, err));
    engine->range.record = room;
    engine->range.capacity = capacity;
    return IRON_OK;
}

iron_status iron__engine_begin_recording(iron_engine *engine, uint64_t position,
                                         iron_batch_effect *room, size_t capacity,
                                         iron_error *err) {
    IRON_TRY(begin_at(engine, position, err));
    return iron_engine_record(engine, room, capacity, err);
}

static iron_status check_sums(const iron_engine *e, uint64_t batches, uint64_t exact,
                              iron_error *err) {
    IRON_FAIL_IF(batches > exact, err, IRON_E_STATE,
                 "%" PRIu64 " batches of up to %u may pass 2^24, where sums round (%" PRIu64
                 " batches cannot); record them and apply them in order",
                 batches, e->lattice->last, exact);
    return IRON_OK;
}

iron_status iron_engine_effect(iron_engine *engine, iron_effect *effect, int32_t *additions,
                               iron_error *err) {
    uint64_t exact = (uint64_t)(IRON_EXACT_LIMIT - 1) / engine->lattice->last;
    uint64_t origin = engine->range.origin;
    const iron__seal *s = &engine->seal;

    IRON_TRY(iron__struct_check(effect, sizeof *effect, "iron_effect", err));
    IRON_FAIL_IF(!engine->range.is_begun, err, IRON_E_STATE,
                 "effects are counted from iron_engine_begin_at on; call that first");
    IRON_TRY(iron__engine_check_closed(engine, err));
    IRON_FAIL_IF(!additions != !!engine->range.record, err, IRON_E_ARG,
                 "additions must be NULL if batches were recorded, and must not be otherwise");
    if (additions)
        IRON_TRY(check_sums(engine, engine->batches, exact, err));
    IRON_TRY(iron__engine_sync(engine, err));
    *effect = (iron_effect){
        .struct_size = sizeof *effect,
        .xor_total = engine->closed.xors,
        .position = origin,
        .tokens = engine->closed.count - origin,
        .batches = engine->batches,
        .sum = engine->closed.sum,
        .kind = kind_of(engine),
        .seal_words = {s->words.count - (engine->config.with_seal ? origin : 0), s->words.t,
                       s->words.a, s->words.b},
        .seal_carried = s->carried,
        .has_map = engine->range.record == NULL,
    };
    memcpy(effect->seal_carry, s->carry, s->carried * sizeof s->carry[0]);
    /* the first nodes began on the lattice's points in turn: where they are now is the map */
    for (uint32_t k = 0; effect->has_map && k < engine->lattice->count; k++)
        effect->map[k] = engine->backend->sees_batches
                             ? engine->range.map[k]
                             : (uint8_t)iron__lattice_index_xor(engine->lattice,
                                                                engine->nodes.xor_accumulators[k]);
    for (uint32_t j = 0; additions && j < engine->nodes.count; j++)
        additions[j] = (int32_t)engine->nodes.potentials[j];
    return IRON_OK;
}

/* Fails unless `next` follows a range of this kind that ends at position `end`. */
static iron_status check_next(const iron_effect *next, uint64_t kind, uint64_t end,
                              uint32_t carried, iron_error *err) {
    IRON_TRY(iron__struct_check(next, sizeof *next, "iron_effect", err));
    IRON_FAIL_IF(next->kind != kind, err, IRON_E_ARG,
                 "the effect is from an engine with another configuration; use one for all ranges");
    IRON_FAIL_IF(next->tokens > 0 && next->position != end, err, IRON_E_ARG,
                 "the effect begins at position %" PRIu64 ", not at %" PRIu64
                 "; apply effects in the stream's order",
                 next->position, end);
    IRON_FAIL_IF(next->tokens > 0 && carried > 0, err, IRON_E_ARG,
                 "the range before position %" PRIu64
                 " does not end at a multiple of 4, as a range with a seal must",
                 next->position);
    return IRON_OK;
}

iron_status iron_effect_join(iron_effect *effect, const iron_effect *next, iron_error *err) {
    IRON_TRY(iron__struct_check(effect, sizeof *effect, "iron_effect", err));
    IRON_TRY(check_next(next, effect->kind,
                        effect->tokens ? effect->position + effect->tokens : next->position,
                        effect->seal_carried, err));
    if (next->tokens == 0)
        return IRON_OK;
    if (effect->tokens == 0)
        effect->position = next->position;
    effect->tokens += next->tokens;
    effect->batches += next->batches;
    effect->sum += next->sum;
    effect->xor_total ^= next->xor_total;
    for (size_t k = 0; k < 4; k++)
        effect->seal_words[k] += next->seal_words[k];
    memcpy(effect->seal_carry, next->seal_carry, sizeof effect->seal_carry);
    effect->seal_carried = next->seal_carried;
    effect->has_map = effect->has_map && next->has_map;
    for (size_t k = 0; k < IRON_LATTICE_MAX; k++)
        effect->map[k] = next->map[effect->map[k] % IRON_LATTICE_MAX];
    return IRON_OK;
}

uint64_t iron_engine_exact_batches(iron_engine *engine) {
    if (iron__engine_sync(engine, NULL) != IRON_OK)
        return 0;
    return iron__nodes_exact_batches(&engine->nodes);
}

static iron_status check_apply(iron_engine *e, const iron_effect *effect, iron_error *err) {
    IRON_FAIL_IF(!effect, err, IRON_E_ARG, "effect is NULL; give the effect to apply");
    IRON_TRY(iron__engine_check_closed(e, err));
    IRON_FAIL_IF(e->range.record, err, IRON_E_STATE,
                 "this engine records its batches; apply effects to another one");
    IRON_TRY(iron__engine_sync(e, err)); /* also what the seal carries */
    IRON_TRY(check_next(effect, kind_of(e), e->closed.count, e->seal.carried, err));
    IRON_FAIL_IF(effect->seal_carried > 3 || effect->batches > effect->tokens ||
                     effect->tokens > UINT64_MAX - e->closed.count,
                 err, IRON_E_ARG,
                 "%" PRIu64 " batches of %" PRIu64 " tokens, %u carried: the effect is damaged",
                 effect->batches, effect->tokens, effect->seal_carried);
    return IRON_OK;
}

static iron_status take_totals(iron_engine *e, const iron_effect *effect, iron_error *err) {
    e->closed = iron__contribution_merge(
        e->closed, (iron__contribution){effect->tokens, effect->sum, effect->xor_total});
    e->batches += effect->batches;
    e->seal.words = iron__seal_merge(
        e->seal.words, (iron__seal_words){effect->seal_words[0], effect->seal_words[1],
                                          effect->seal_words[2], effect->seal_words[3]});
    e->seal.carried = effect->seal_carried;
    memcpy(e->seal.carry, effect->seal_carry, sizeof e->seal.carry);
    return e->backend->restart(e, err);
}

iron_status iron_engine_apply(iron_engine *engine, const iron_effect *effect,
                              const int32_t *additions, iron_error *err) {
    const iron_lattice *l = engine->lattice;
    iron__nodes *nodes = &engine->nodes;
    int64_t most;

    IRON_TRY(check_apply(engine, effect, err));
    if (effect->tokens == 0)
        return IRON_OK;
    IRON_FAIL_IF(!additions || !effect->has_map, err, IRON_E_ARG,
                 "the batches were recorded; apply them with iron_engine_apply_batches");
    IRON_TRY(check_sums(engine, effect->batches, iron__nodes_exact_batches(nodes), err));
    for (uint32_t k = 0; k < l->count; k++)
        IRON_FAIL_IF(effect->map[k] >= l->count, err, IRON_E_ARG,
                     "the effect maps point %u to %u of %u: it is damaged", k, effect->map[k],
                     l->count);
    most = (int64_t)effect->batches * l->last;
    for (uint32_t j = 0; j < nodes->count; j++)
        IRON_FAIL_IF(additions[j] > most || additions[j] < -most, err, IRON_E_ARG,
                     "%" PRIu64 " batches add %" PRId32 " to node %u: the effect is damaged",
                     effect->batches, additions[j], j);
    for (uint32_t j = 0; j < nodes->count; j++) {
        uint32_t point = iron__lattice_index_xor(l, nodes->xor_accumulators[j]);

        nodes->xor_accumulators[j] = l->points[effect->map[point]];
        nodes->potentials[j] += (float)additions[j];
    }
    for (uint32_t k = 0; engine->range.is_begun && k < l->count; k++)
        engine->range.map[k] = effect->map[engine->range.map[k]];
    return take_totals(engine, effect, err);
}

iron_status iron_engine_apply_batches(iron_engine *engine, const iron_effect *effect,
                                      const iron_batch_effect *batches, iron_error *err) {
    IRON_TRY(check_apply(engine, effect, err));
    if (effect->tokens == 0)
        return IRON_OK;
    for (uint64_t k = 0; k < effect->batches; k++)
        IRON_FAIL_IF(!isfinite(batches[k].potential), err, IRON_E_ARG,
                     "batch %" PRIu64 " has potential %g: the effect is damaged", k,
                     (double)batches[k].potential);
    iron__engine_apply_effects(engine, batches, (size_t)effect->batches);
    return take_totals(engine, effect, err);
}
