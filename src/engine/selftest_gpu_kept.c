/* SPDX-License-Identifier: MIT */
/*
 * selftest_gpu_kept.c: engines on a device as a store keeps them (standing.h): batches heard while
 * bodies are fed, an engine made anew of them, and a fork that goes on. The reference is an engine
 * on the CPU that was fed the same bodies; its state, totals and seal must come out each time.
 */
#include "engine/selftest_gpu.h"

#include "core/fail.h"
#include "engine/standing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* In batches: none, a part of one, one and a part, exactly two, many. The last is the fork's. */
#define BATCH 700u
static const size_t bodies[] = {0, 3, 701, 1400, 1, 20011, 5003};
#define BODY_TOKENS  27119u
#define BATCHES_ROOM (BODY_TOKENS / BATCH + COUNT(bodies))

typedef struct kept_test {
    iron__selftest_device *d;
    const uint32_t *tokens;
    iron_engine *want, *first, *again, *fork;
    iron__contribution heard[BATCHES_ROOM];
    size_t heard_count;
} kept_test;

static void hear(void *context, iron__contribution batch) {
    kept_test *t = context;

    if (t->heard_count < BATCHES_ROOM)
        t->heard[t->heard_count] = batch;
    t->heard_count++;
}

static iron_status create(const kept_test *t, bool is_on_device, iron_positions positions,
                          iron_engine **out, iron_error *err) {
    iron_config c;

    iron_config_init(&c);
    c.nodes = 129;
    c.batch = BATCH;
    c.positions = positions;
    c.with_seal = 1;
    c.threads = 1;
    c.backend = is_on_device ? iron__gpu_backend_name(t->d->backend) : "cpu";
    c.device = is_on_device ? (uint32_t)t->d->index : 0;
    c.mode = is_on_device ? "champion" : "scalar";
    return iron_engine_create(&c, out, err);
}

/* Bodies first ... end-1, each with the end of its last batch. */
static iron_status feed(const kept_test *t, iron_engine *e, size_t first, size_t end,
                        iron_error *err) {
    size_t at = 0;

    for (size_t k = 0; k < end; at += bodies[k++]) {
        if (k < first)
            continue;
        IRON_TRY(iron_engine_feed(e, t->tokens + at, bodies[k], err));
        IRON_TRY(iron_engine_end_batch(e, err));
    }
    return IRON_OK;
}

static iron_status compare(iron_engine *got, iron_engine *want, const char *who, char *text,
                           size_t size, iron_error *err) {
    iron_report g = {.struct_size = sizeof g}, w = {.struct_size = sizeof w};

    IRON_TRY(iron_engine_report(got, &g, err));
    IRON_TRY(iron_engine_report(want, &w, err));
    if (!text[0] && (g.tokens != w.tokens || g.batches != w.batches || g.xor_total != w.xor_total ||
                     g.sum != w.sum || g.state != w.state || strcmp(g.seal, w.seal) != 0))
        snprintf(text, size,
                 "%s: %" PRIu64 " tokens, xor %08" PRIx32 " state %016" PRIx64
                 " seal %s, expected %" PRIu64 " %08" PRIx32 " %016" PRIx64 " %s",
                 who, g.tokens, g.xor_total, g.state, g.seal, w.tokens, w.xor_total, w.state,
                 w.seal);
    return IRON_OK;
}

static iron_status run(kept_test *t, iron_positions positions, char *text, size_t size,
                       iron_error *err) {
    size_t last = COUNT(bodies) - 1;
    iron__standing standing;

    IRON_TRY(create(t, false, positions, &t->want, err));
    IRON_TRY(create(t, true, positions, &t->first, err));
    IRON_TRY(create(t, true, positions, &t->again, err));
    IRON_TRY(create(t, true, positions, &t->fork, err));
    IRON_TRY(feed(t, t->want, 0, last, err));
    iron__engine_listen(t->first, hear, t);
    IRON_TRY(feed(t, t->first, 0, last, err));
    IRON_TRY(compare(t->first, t->want, "fed", text, size, err));
    if (t->heard_count > BATCHES_ROOM)
        return IRON_OK; /* more batches than there are: the comparison has told */
    IRON_TRY(iron__engine_standing(t->first, &standing, err));
    IRON_TRY(iron__engine_replay(t->again, t->heard, t->heard_count, &standing.seal, err));
    IRON_TRY(compare(t->again, t->want, "replayed", text, size, err));
    IRON_TRY(iron__engine_stand(t->fork, &standing, iron_engine_xor_accumulators(t->first),
                                iron_engine_potentials(t->first), err));
    IRON_TRY(feed(t, t->fork, last, last + 1, err));
    IRON_TRY(feed(t, t->want, last, last + 1, err));
    return compare(t->fork, t->want, "forked", text, size, err);
}

static void test_positions(iron__selftest_device *d, const uint32_t *tokens,
                           iron_positions positions) {
    kept_test t = {.d = d, .tokens = tokens};
    char name[120], text[280] = "";
    iron_error err;
    iron_status status;

    snprintf(name, sizeof name, "kept engine, positions of the %s, %s device %zu",
             positions == IRON_POSITIONS_BATCH ? "batch" : "stream",
             iron__gpu_backend_name(d->backend), d->index);
    if (d->is_lost || !iron__selftest_wants(d->test, name))
        return;
    status = run(&t, positions, text, sizeof text, &err);
    iron_engine_destroy(t.want);
    iron_engine_destroy(t.first);
    iron_engine_destroy(t.again);
    iron_engine_destroy(t.fork);
    iron__selftest_tell_gpu(d, name, status, text, &err);
}

void iron__selftest_gpu_kept(iron__selftest_device *d) {
    uint32_t *tokens = malloc(BODY_TOKENS * sizeof *tokens);

    if (!tokens) {
        iron__selftest_fail(d->test, &iron__selftest_no_memory);
        return;
    }
    iron_generate(15, UINT64_C(1) << 32, 0, tokens, BODY_TOKENS, NULL);
    test_positions(d, tokens, IRON_POSITIONS_STREAM);
    test_positions(d, tokens, IRON_POSITIONS_BATCH);
    free(tokens);
}
