/* SPDX-License-Identifier: MIT */
/*
 * checkpoint_support.h: shared by the checkpoint tests of the CPU and the GPU: feeds of any length
 * that each end their batch, as the store's do, a log of closed batches, and three properties that
 * are checked for any configuration.
 */
#ifndef TESTS_UNIT_CHECKPOINT_SUPPORT_H
#define TESTS_UNIT_CHECKPOINT_SUPPORT_H

#include "gpu_support.h"

#include "engine/checkpoint.h"

/* The batches that a callback received. */
typedef struct batch_log {
    iron__contribution *batches;
    size_t count, room;
} batch_log;

static inline void log_batch(void *context, iron__contribution batch) {
    batch_log *n = context;

    assert_true(n->count < n->room);
    n->batches[n->count++] = batch;
}

/* Feeds tokens; the last batch may be short. */
static inline void feed_and_end(iron_engine *e, const uint32_t *tokens, size_t count) {
    iron_error err;

    assert_ok(iron_engine_feed(e, tokens, count, &err), &err);
    assert_ok(iron_engine_end_batch(e, &err), &err);
}

/* Lengths on both sides of batches of 1, 7 and 1000; their sum is PART_TOKENS. */
#define PART_TOKENS 4040u
static const size_t parts[] = {1, 6, 13, 1000, 999, 2, 2019};

static inline void feed_parts(iron_engine *e, const uint32_t *tokens, size_t first, size_t last) {
    size_t at = 0;

    for (size_t k = 0; k < first; k++)
        at += parts[k];
    for (size_t k = first; k < last; k++) {
        feed_and_end(e, tokens + at, parts[k]);
        at += parts[k];
    }
    assert_true(at <= PART_TOKENS);
}

/* A fork in the middle continues on its own, the first engine is not affected, and both end
 * alike. */
static inline void check_fork(const iron_config *config) {
    uint32_t *tokens = grab_tokens(7, 50257, PART_TOKENS);
    iron_engine *whole = engine_of(config), *fork = engine_of(config), *plain = engine_of(config);
    iron__checkpoint checkpoint;
    iron_error err;

    feed_and_end(fork, tokens, 55); /* discarded by restore */
    feed_parts(whole, tokens, 0, 4);
    assert_ok(iron__engine_checkpoint(whole, &checkpoint, &err), &err);
    assert_ok(iron__engine_restore(fork, &checkpoint, whole->nodes.xor_accumulators,
                                   whole->nodes.potentials, &err),
              &err);
    assert_same_engines(whole, fork);
    feed_parts(fork, tokens, 4, COUNT(parts));
    feed_parts(whole, tokens, 4, COUNT(parts));
    feed_parts(plain, tokens, 0, COUNT(parts));
    assert_same_engines(fork, plain);
    assert_same_engines(whole, plain);
    iron_engine_destroy(whole);
    iron_engine_destroy(fork);
    iron_engine_destroy(plain);
    free(tokens);
}

/* A batch's contribution as SPEC defines it, one token at a time. */
static inline iron__contribution reduce_plainly(const iron_config *c, const uint32_t *tokens,
                                                size_t count, uint64_t position) {
    iron__contribution sum = {count, 0, 0};

    for (size_t k = 0; k < count; k++) {
        uint64_t at = c->positions == IRON_POSITIONS_BATCH ? k : position + k;
        uint32_t p = tokens[k] + (uint32_t)(137 * at + 17 * (at >> 4));

        sum.xors ^= p;
        sum.sum += p % c->vocab;
    }
    return sum;
}

static inline size_t reduce_parts(const iron_config *c, const uint32_t *tokens,
                                  iron__contribution *out) {
    size_t count = 0, at = 0;

    for (size_t k = 0; k < COUNT(parts); k++)
        for (size_t done = 0; done < parts[k];) {
            size_t batch = parts[k] - done < c->batch ? parts[k] - done : (size_t)c->batch;

            out[count++] = reduce_plainly(c, tokens + at, batch, at);
            done += batch;
            at += batch;
        }
    return count;
}

/* Batches reduced elsewhere, replayed in two calls, equal feeding; and both engines continue
 * alike. */
static inline void check_replay(const iron_config *config) {
    uint32_t *tokens = grab_tokens(11, 50257, PART_TOKENS);
    iron__contribution *batches = grab(PART_TOKENS * sizeof *batches);
    size_t count = reduce_parts(config, tokens, batches), half = count / 2;
    iron_engine *fed = engine_of(config), *replayed = engine_of(config);
    iron__seal seal = {.carried = 0};
    uint64_t at = 0;
    iron_error err;

    feed_parts(fed, tokens, 0, COUNT(parts));
    for (size_t k = 0; k < half; k++)
        at += batches[k].count;
    iron__seal_feed(&seal, tokens, (size_t)at);
    assert_ok(iron__engine_replay(replayed, batches, half, &seal, &err), &err);
    iron__seal_feed(&seal, tokens + at, (size_t)(PART_TOKENS - at));
    assert_ok(iron__engine_replay(replayed, batches + half, count - half, &seal, &err), &err);
    assert_same_engines(fed, replayed);
    feed_parts(fed, tokens, 2, 4);
    feed_parts(replayed, tokens, 2, 4);
    assert_same_engines(fed, replayed);
    iron_engine_destroy(fed);
    iron_engine_destroy(replayed);
    free(batches);
    free(tokens);
}

/* The callback gets what the definition gives, from feeds that end anywhere. */
static inline void check_callback(const iron_config *config) {
    uint32_t *tokens = grab_tokens(13, 50257, PART_TOKENS);
    iron__contribution *expected = grab(PART_TOKENS * sizeof *expected), all = {0, 0, 0};
    size_t count = reduce_parts(config, tokens, expected);
    batch_log log = {grab(PART_TOKENS * sizeof *expected), 0, PART_TOKENS};
    iron_engine *e = engine_of(config);

    iron__engine_on_batch(e, log_batch, &log);
    feed_parts(e, tokens, 0, COUNT(parts));
    assert_int_equal(log.count, count);
    for (size_t k = 0; k < count; k++) {
        assert_int_equal(log.batches[k].count, expected[k].count);
        assert_int_equal(log.batches[k].sum, expected[k].sum);
        assert_int_equal(log.batches[k].xors, expected[k].xors);
        all = iron__contribution_merge(all, log.batches[k]);
    }
    assert_int_equal(all.count, report_of(e).tokens);
    assert_int_equal(all.sum, report_of(e).sum);
    assert_int_equal(all.xors, report_of(e).xor_total);
    iron_engine_destroy(e);
    free(log.batches);
    free(expected);
    free(tokens);
}

#endif
