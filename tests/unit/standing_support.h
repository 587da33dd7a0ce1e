/* SPDX-License-Identifier: MIT */
/*
 * standing_support.h: what the tests of standings on the CPU and on a GPU share: bodies of any
 * length, each closed at its end as a store's feeds are, somebody who writes down the batches that
 * close, and the three promises, checked for any configuration.
 */
#ifndef TESTS_UNIT_STANDING_SUPPORT_H
#define TESTS_UNIT_STANDING_SUPPORT_H

#include "gpu_support.h"

#include "engine/standing.h"

/* Who listens, and what was heard. */
typedef struct notes {
    iron__contribution *batches;
    size_t count, room;
} notes;

static inline void hear(void *context, iron__contribution batch) {
    notes *n = context;

    assert_true(n->count < n->room);
    n->batches[n->count++] = batch;
}

/* A body: its last batch may be short. */
static inline void feed_body(iron_engine *e, const uint32_t *tokens, size_t count) {
    iron_error err;

    assert_ok(iron_engine_feed(e, tokens, count, &err), &err);
    assert_ok(iron_engine_end_batch(e, &err), &err);
}

/* Lengths on both sides of batches of 1, 7 and 1000; their sum is BODY_TOKENS. */
#define BODY_TOKENS 4040u
static const size_t bodies[] = {1, 6, 13, 1000, 999, 2, 2019};

static inline void feed_bodies(iron_engine *e, const uint32_t *tokens, size_t first, size_t last) {
    size_t at = 0;

    for (size_t k = 0; k < first; k++)
        at += bodies[k];
    for (size_t k = first; k < last; k++) {
        feed_body(e, tokens + at, bodies[k]);
        at += bodies[k];
    }
    assert_true(at <= BODY_TOKENS);
}

/* A fork in the middle goes its own way, the first is not touched by that, and both end alike. */
static inline void check_fork(const iron_config *config) {
    uint32_t *tokens = grab_tokens(7, 50257, BODY_TOKENS);
    iron_engine *whole = engine_of(config), *fork = engine_of(config), *plain = engine_of(config);
    iron__standing standing;
    iron_error err;

    feed_body(fork, tokens, 55); /* of no importance once it stands elsewhere */
    feed_bodies(whole, tokens, 0, 4);
    assert_ok(iron__engine_standing(whole, &standing, &err), &err);
    assert_ok(iron__engine_stand(fork, &standing, whole->nodes.xor_accumulators,
                                 whole->nodes.potentials, &err),
              &err);
    assert_same_engines(whole, fork);
    feed_bodies(fork, tokens, 4, COUNT(bodies));
    feed_bodies(whole, tokens, 4, COUNT(bodies));
    feed_bodies(plain, tokens, 0, COUNT(bodies));
    assert_same_engines(fork, plain);
    assert_same_engines(whole, plain);
    iron_engine_destroy(whole);
    iron_engine_destroy(fork);
    iron_engine_destroy(plain);
    free(tokens);
}

/* A batch's contribution as SPEC defines it, a token at a time. */
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

static inline size_t reduce_bodies(const iron_config *c, const uint32_t *tokens,
                                   iron__contribution *out) {
    size_t count = 0, at = 0;

    for (size_t k = 0; k < COUNT(bodies); k++)
        for (size_t done = 0; done < bodies[k];) {
            size_t batch = bodies[k] - done < c->batch ? bodies[k] - done : (size_t)c->batch;

            out[count++] = reduce_plainly(c, tokens + at, batch, at);
            done += batch;
            at += batch;
        }
    return count;
}

/* Batches reduced elsewhere, in two goes, make the engine that was fed; and both go on alike. */
static inline void check_replay(const iron_config *config) {
    uint32_t *tokens = grab_tokens(11, 50257, BODY_TOKENS);
    iron__contribution *batches = grab(BODY_TOKENS * sizeof *batches);
    size_t count = reduce_bodies(config, tokens, batches), half = count / 2;
    iron_engine *fed = engine_of(config), *replayed = engine_of(config);
    iron__seal seal = {.carried = 0};
    uint64_t at = 0;
    iron_error err;

    feed_bodies(fed, tokens, 0, COUNT(bodies));
    for (size_t k = 0; k < half; k++)
        at += batches[k].count;
    iron__seal_feed(&seal, tokens, (size_t)at);
    assert_ok(iron__engine_replay(replayed, batches, half, &seal, &err), &err);
    iron__seal_feed(&seal, tokens + at, (size_t)(BODY_TOKENS - at));
    assert_ok(iron__engine_replay(replayed, batches + half, count - half, &seal, &err), &err);
    assert_same_engines(fed, replayed);
    feed_bodies(fed, tokens, 2, 4);
    feed_bodies(replayed, tokens, 2, 4);
    assert_same_engines(fed, replayed);
    iron_engine_destroy(fed);
    iron_engine_destroy(replayed);
    free(batches);
    free(tokens);
}

/* What is heard is what the definition gives, from feeds that end anywhere. */
static inline void check_listener(const iron_config *config) {
    uint32_t *tokens = grab_tokens(13, 50257, BODY_TOKENS);
    iron__contribution *expected = grab(BODY_TOKENS * sizeof *expected), all = {0, 0, 0};
    size_t count = reduce_bodies(config, tokens, expected);
    notes heard = {grab(BODY_TOKENS * sizeof *expected), 0, BODY_TOKENS};
    iron_engine *e = engine_of(config);

    iron__engine_listen(e, hear, &heard);
    feed_bodies(e, tokens, 0, COUNT(bodies));
    assert_int_equal(heard.count, count);
    for (size_t k = 0; k < count; k++) {
        assert_int_equal(heard.batches[k].count, expected[k].count);
        assert_int_equal(heard.batches[k].sum, expected[k].sum);
        assert_int_equal(heard.batches[k].xors, expected[k].xors);
        all = iron__contribution_merge(all, heard.batches[k]);
    }
    assert_int_equal(all.count, report_of(e).tokens);
    assert_int_equal(all.sum, report_of(e).sum);
    assert_int_equal(all.xors, report_of(e).xor_total);
    iron_engine_destroy(e);
    free(heard.batches);
    free(expected);
    free(tokens);
}

#endif
