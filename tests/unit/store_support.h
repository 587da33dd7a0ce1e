/* SPDX-License-Identifier: MIT */
/*
 * store_support.h: shared by the tests of the store: a store in its own folder, bodies fed in
 * pieces, and the reference: an engine that is fed the same bodies directly.
 */
#ifndef TESTS_UNIT_STORE_SUPPORT_H
#define TESTS_UNIT_STORE_SUPPORT_H

#include "store/store.h"
#include "support.h"

static inline iron__store *store_at_with(const folder *in, iron__store_options options) {
    iron__store *store = NULL;
    iron_error err = {0};

    options.directory = in->path;
    assert_ok(iron__store_open(&options, &store, &err), &err);
    return store;
}

static inline iron__store *store_at(const folder *in) {
    return store_at_with(in, (iron__store_options){.directory = NULL});
}

/* Few nodes and small batches: few tokens make many batches. */
static inline iron__store_plan small_plan(const char *name) {
    iron__store_plan plan;

    iron__store_plan_init(&plan);
    snprintf(plan.name, sizeof plan.name, "%s", name);
    plan.nodes = 61;
    plan.vocab = 1000;
    plan.batch = 10;
    snprintf(plan.backend, sizeof plan.backend, "cpu");
    return plan;
}

static inline iron__store_engine *make_engine(iron__store *store, const iron__store_plan *plan) {
    iron__store_engine *entry = NULL;
    iron_error err = {0};

    assert_ok(iron__store_create(store, plan, &entry, &err), &err);
    assert_non_null(entry);
    return entry;
}

typedef struct feeding {
    iron_dtype dtype; /* NONE: u32 */
    bool has_at;
    uint64_t at;
    const char *key;
    bool is_chunked; /* without a length */
    size_t piece;    /* bytes at once; 0: all */
} feeding;

/* Feeds a body; returns the outcome of whichever call gave it. */
static inline iron__feed_outcome feed_as(iron__store_engine *entry, feeding how, const void *body,
                                         size_t bytes, iron__feed_answer *answer, iron_error *err) {
    iron__feed_request request = {
        .dtype = how.dtype ? how.dtype : IRON_DTYPE_U32,
        .has_at = how.has_at,
        .at = how.at,
        .key = how.key,
        .expected_bytes = how.is_chunked ? UINT64_MAX : bytes,
    };
    size_t piece = how.piece ? how.piece : bytes + 1;
    iron__feed *feed = NULL;
    iron__feed_outcome outcome;

    memset(answer, 0, sizeof *answer);
    outcome = iron__feed_begin(entry, &request, &feed, answer, err);
    assert_true((outcome == IRON_FEED_DONE) == (feed != NULL));
    for (size_t at = 0; at < bytes && outcome == IRON_FEED_DONE; at += piece)
        outcome = iron__feed_take(feed, (const char *)body + at,
                                  bytes - at < piece ? bytes - at : piece, answer, err);
    if (outcome == IRON_FEED_DONE)
        return iron__feed_end(feed, answer, err);
    iron__feed_abandon(feed);
    return outcome;
}

static inline iron__feed_answer feed_done(iron__store_engine *entry, feeding how, const void *body,
                                          size_t bytes) {
    iron__feed_answer answer;
    iron_error err = {0};
    iron__feed_outcome outcome = feed_as(entry, how, body, bytes, &answer, &err);

    if (outcome != IRON_FEED_DONE)
        fail_msg("outcome %d: %s", (int)outcome, err.text);
    return answer;
}

/* The reference. */

static inline iron_engine *direct_engine(const iron__store_plan *plan) {
    iron_engine *engine = NULL;
    iron_config config;
    iron_error err = {0};

    iron_config_init(&config);
    config.nodes = plan->nodes;
    config.vocab = plan->vocab;
    config.batch = plan->batch;
    config.positions = plan->positions;
    config.lattice = plan->lattice_count ? plan->lattice : NULL;
    config.lattice_count = plan->lattice_count;
    config.with_seal = 1;
    config.backend = "cpu";
    config.mode = "scalar";
    config.threads = 1;
    assert_ok(iron_engine_create(&config, &engine, &err), &err);
    return engine;
}

/* The end of a body ends its batch. */
static inline iron_report direct_feed(iron_engine *engine, iron_dtype dtype, const void *body,
                                      size_t tokens) {
    iron_report report = {.struct_size = sizeof report};
    iron_error err = {0};

    assert_ok(iron_engine_feed_as(engine, dtype, body, tokens, &err), &err);
    assert_ok(iron_engine_end_batch(engine, &err), &err);
    assert_ok(iron_engine_report(engine, &report, &err), &err);
    return report;
}

static inline void assert_answer(const iron__feed_answer *answer, const iron_report *want) {
    assert_true(answer->tokens == want->tokens);
    assert_true(answer->batches == want->batches);
    assert_true(answer->sum == want->sum);
    assert_true(answer->xors == want->xor_total);
    assert_true(answer->state == want->state);
    assert_string_equal(answer->seal, want->seal);
}

static inline iron__store_engine_view look_at(iron__store_engine *entry) {
    iron__store_engine_view view;

    iron__store_engine_get_view(entry, &view, NULL);
    return view;
}

static inline void assert_view(iron__store_engine *entry, const iron_report *want) {
    iron__store_engine_view view = look_at(entry);

    assert_true(view.tokens == want->tokens);
    assert_true(view.batches == want->batches);
    assert_true(view.sum == want->sum);
    assert_true(view.xors == want->xor_total);
    assert_true(view.state == want->state);
    assert_string_equal(view.seal, want->seal);
}

static inline iron_report report_now(iron_engine *engine) {
    iron_report report = {.struct_size = sizeof report};

    assert_int_equal(iron_engine_report(engine, &report, NULL), IRON_OK);
    return report;
}

/* The engine of this name; release it. */
static inline iron__store_engine *found(iron__store *store, const char *name) {
    iron__store_engine *entry = iron__store_find(store, name);

    assert_non_null(entry);
    return entry;
}

#endif
