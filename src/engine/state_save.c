/* SPDX-License-Identifier: MIT */
/*
 * state_save.c: states saved, to a file or to memory: the same bytes (state_file.h).
 */
#include "core/fail.h"
#include "core/fnv.h"
#include "core/output.h"
#include "engine/standing.h"
#include "engine/state_file.h"

#include <string.h>

/* The parts of a saved state, one after the other; they point into this and the engine. */
#define PARTS 5u
typedef struct saved {
    iron__state_header header;
    uint64_t checksum;
    struct {
        const void *data;
        size_t bytes;
    } parts[PARTS];
} saved;

static iron__state_header describe(const iron_engine *e) {
    const iron__seal *s = &e->seal;
    iron__state_header h = {
        .version = IRON_STATE_VERSION,
        .header_bytes = sizeof(iron__state_header),
        .nodes = e->config.nodes,
        .vocab = e->config.vocab,
        .batch = e->config.batch,
        .positions = (uint32_t)e->config.positions,
        .lattice_count = e->lattice->count,
        .tokens = e->closed.count,
        .batches = e->batches,
        .sum = e->closed.sum,
        .xors = e->closed.xors,
        .with_seal = e->config.with_seal ? 1 : 0,
        .seal_words = {s->words.count, s->words.t, s->words.a, s->words.b},
        .seal_carried = s->carried,
    };

    memcpy(h.magic, IRON_STATE_MAGIC, sizeof h.magic);
    memcpy(h.seal_carry, s->carry, s->carried * sizeof h.seal_carry[0]);
    memcpy(h.lattice, e->lattice->points, e->lattice->count * sizeof h.lattice[0]);
    return h;
}

static void gather(const iron_engine *e, saved *s) {
    size_t bytes = e->nodes.count * sizeof(uint32_t);

    *s = (saved){.header = describe(e),
                 .checksum = IRON_FNV_START,
                 .parts = {{&s->header, sizeof s->header},
                           {e->nodes.xor_accumulators, bytes},
                           {e->nodes.potentials, bytes},
                           {e->nodes.activations, bytes},
                           {&s->checksum, sizeof s->checksum}}};
    for (size_t k = 0; k < PARTS - 1; k++)
        s->checksum = iron__fnv(s->checksum, s->parts[k].data, s->parts[k].bytes);
}

static iron_status save(const iron_engine *e, const char *path, iron_error *err) {
    iron_output *output = NULL;
    iron_status status;
    saved s;

    IRON_TRY(iron_output_open(path, &output, err));
    gather(e, &s);
    status = IRON_OK;
    for (size_t k = 0; status == IRON_OK && k < PARTS; k++)
        status = iron_output_write(output, s.parts[k].data, s.parts[k].bytes, err);
    if (status == IRON_OK)
        return iron_output_commit(output, err);
    iron_output_abandon(output);
    return status;
}

iron_status iron_engine_save(iron_engine *engine, const char *path, iron_error *err) {
    sigset_t before;
    iron_status status;

    IRON_TRY(iron__engine_check_whole(engine, err));
    IRON_TRY(iron_state_path_check(path, err));
    IRON_TRY(iron__engine_settle(engine, err));
    iron__interruptions_hold(&before);
    status = save(engine, path, err);
    iron__interruptions_release(&before);
    return status;
}

size_t iron__state_bytes(const iron_engine *engine) {
    return (size_t)iron__state_room(engine->nodes.count);
}

iron_status iron__state_write(iron_engine *engine, unsigned char *room, iron_error *err) {
    saved s;

    IRON_TRY(iron__engine_check_whole(engine, err));
    IRON_TRY(iron__engine_settle(engine, err));
    gather(engine, &s);
    for (size_t k = 0; k < PARTS; k++) {
        memcpy(room, s.parts[k].data, s.parts[k].bytes);
        room += s.parts[k].bytes;
    }
    return IRON_OK;
}
