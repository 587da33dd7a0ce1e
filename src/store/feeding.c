/* SPDX-License-Identifier: MIT */
/*
 * feeding.c: the calls that feed. A body begins small unless it is known to be large: its bytes are
 * kept. When there are more than IRON_SMALL_BODY it becomes an upload (upload.h).
 */
#include "core/fail.h"
#include "store/small_feeds.h"
#include "store/upload.h"
#include "store/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 8192u

struct iron__feed {
    iron__kept *kept;
    iron_dtype dtype;
    size_t width;
    bool has_at;
    uint64_t at, expected;
    char key[IRON_FEED_KEY_MAX + 1];
    unsigned char *body; /* of a small one */
    size_t held, room;
    uint64_t taken;             /* bytes in all */
    iron__upload *upload;       /* of a large one */
    iron__feed_outcome refused; /* DONE: it was not */
};

static iron__feed_outcome count_outcome(iron__store *store, iron__feed_outcome outcome) {
    atomic_fetch_add_explicit(&store->outcomes[outcome], 1, memory_order_relaxed);
    return outcome;
}

static iron__feed_outcome refuse_ragged(uint64_t bytes, const iron__feed *feed, iron_error *err) {
    iron__fail(err, IRON_E_FORMAT, 0,
               "%" PRIu64 " bytes are no whole number of %s tokens of %zu bytes", bytes,
               iron_dtype_name(feed->dtype), feed->width);
    return IRON_FEED_RAGGED;
}

/* What is certain before the first byte. */
static iron__feed_outcome check_early(const iron__feed *feed, iron_error *err) {
    iron__store *store = feed->kept->store;

    if (atomic_load(&store->has_failed)) {
        iron__store_failure(store, err);
        return IRON_FEED_READ_ONLY;
    }
    if (atomic_load(&store->is_stopping)) {
        iron__fail(err, IRON_E_STATE, 0, "the store is being closed");
        return IRON_FEED_STOPPING;
    }
    if (iron__kept_is_deleted(feed->kept)) {
        iron__fail(err, IRON_E_STATE, 0, "engine %s was deleted", feed->kept->plan.name);
        return IRON_FEED_GONE;
    }
    if (feed->expected != UINT64_MAX && feed->expected % feed->width != 0)
        return refuse_ragged(feed->expected, feed, err);
    return IRON_FEED_DONE;
}

/* What was not said yet, in words. */
static void explain(const iron__feed *feed, iron__feed_outcome outcome, uint64_t position,
                    iron_error *err) {
    const char *name = feed->kept->plan.name;

    if (outcome == IRON_FEED_POSITION)
        iron__fail(err, IRON_E_STATE, 0, "engine %s is at position %" PRIu64, name, position);
    else if (outcome == IRON_FEED_KEY_REUSED)
        iron__fail(err, IRON_E_STATE, 0, "the key was used with other tokens for engine %s", name);
    else if (outcome == IRON_FEED_GONE)
        iron__fail(err, IRON_E_STATE, 0, "engine %s was deleted", name);
}

static iron__feed_outcome become_large(iron__feed *feed, iron__feed_answer *answer,
                                       iron_error *err) {
    iron__upload_request request = {
        .dtype = feed->dtype,
        .has_at = feed->has_at,
        .at = feed->at,
        .key = feed->key,
        .tokens = feed->expected == UINT64_MAX ? UINT64_MAX : feed->expected / feed->width,
    };
    uint64_t position = 0;
    iron__feed_outcome outcome =
        iron__upload_begin(feed->kept, &request, &feed->upload, &position, err);

    if (outcome == IRON_FEED_POSITION && answer)
        *answer = (iron__feed_answer){.position = position};
    explain(feed, outcome, position, err);
    if (outcome == IRON_FEED_DONE && feed->held > 0)
        outcome = iron__upload_take(feed->upload, feed->body, feed->held, err);
    free(feed->body);
    feed->body = NULL;
    feed->held = feed->room = 0;
    return outcome;
}

static iron__feed *make_feed(iron__kept *kept, const iron__feed_request *request, iron_error *err) {
    iron__feed *feed = calloc(1, sizeof *feed);

    if (!feed) {
        iron__fail(err, IRON_E_NOMEM, 0, "out of memory: a feed");
        return NULL;
    }
    feed->kept = iron__kept_hold(kept);
    feed->dtype = request->dtype;
    feed->width = iron_dtype_bytes(request->dtype);
    feed->has_at = request->has_at;
    feed->at = request->at;
    feed->expected = request->expected_bytes;
    snprintf(feed->key, sizeof feed->key, "%s", request->key ? request->key : "");
    atomic_fetch_add(&kept->store->feeds_open, 1);
    return feed;
}

void iron__feed_abandon(iron__feed *feed) {
    if (!feed)
        return;
    iron__upload_free(feed->upload, false);
    atomic_fetch_sub(&feed->kept->store->feeds_open, 1);
    iron__kept_release(feed->kept);
    free(feed->body);
    free(feed);
}

iron__feed_outcome iron__feed_begin(iron__kept *kept, const iron__feed_request *request,
                                    iron__feed **out, iron__feed_answer *answer, iron_error *err) {
    iron__feed *feed;
    iron__feed_outcome outcome = IRON_FEED_FAILED;

    *out = NULL;
    if (iron_dtype_bytes(request->dtype) == 0 ||
        (request->key && (!request->key[0] || strlen(request->key) > IRON_FEED_KEY_MAX)))
        iron__fail(err, IRON_E_ARG, 0, "a feed needs a dtype, and a key has 1 to %u characters",
                   IRON_FEED_KEY_MAX);
    else if ((feed = make_feed(kept, request, err))) {
        outcome = check_early(feed, err);
        if (outcome == IRON_FEED_DONE && feed->expected != UINT64_MAX &&
            feed->expected > IRON_SMALL_BODY)
            outcome = become_large(feed, answer, err);
        if (outcome == IRON_FEED_DONE) {
            *out = feed;
            return outcome;
        }
        iron__feed_abandon(feed);
    }
    return count_outcome(kept->store, outcome);
}

/* All of it at once when its length is known, else by doubling. */
static bool make_room(iron__feed *feed, size_t bytes) {
    size_t room = feed->room ? feed->room : FIRST_BYTES;
    unsigned char *body;

    if (bytes <= feed->room)
        return true;
    while (room < bytes)
        room *= 2;
    if (feed->expected <= IRON_SMALL_BODY && feed->expected >= bytes)
        room = (size_t)feed->expected;
    body = realloc(feed->body, room);
    if (!body)
        return false;
    feed->body = body;
    feed->room = room;
    return true;
}

static iron__feed_outcome keep(iron__feed *feed, const void *bytes, size_t count, iron_error *err) {
    if (!make_room(feed, feed->held + count)) {
        iron__fail(err, IRON_E_NOMEM, 0, "out of memory: a body of %zu bytes", feed->held + count);
        return IRON_FEED_FAILED;
    }
    if (count > 0)
        memcpy(feed->body + feed->held, bytes, count);
    feed->held += count;
    return IRON_FEED_DONE;
}

iron__feed_outcome iron__feed_take(iron__feed *feed, const void *bytes, size_t count,
                                   iron__feed_answer *answer, iron_error *err) {
    iron__feed_outcome outcome = feed->refused;

    if (outcome != IRON_FEED_DONE)
        return outcome;
    feed->taken += count;
    if (!feed->upload && count <= IRON_SMALL_BODY - feed->held)
        outcome = keep(feed, bytes, count, err);
    else {
        if (!feed->upload)
            outcome = become_large(feed, answer, err);
        if (outcome == IRON_FEED_DONE)
            outcome = iron__upload_take(feed->upload, bytes, count, err);
        if (outcome == IRON_FEED_KEY_REUSED)
            explain(feed, outcome, 0, err);
    }
    feed->refused = outcome;
    return outcome == IRON_FEED_DONE ? outcome : count_outcome(feed->kept->store, outcome);
}

static iron__feed_outcome end_small(iron__feed *feed, iron__feed_result *result, iron_error *err) {
    iron__small_feed small = {
        .job = {.run = iron__small_feed_run, .kept = feed->kept},
        .view = {feed->dtype, feed->body, feed->held / feed->width},
        .has_at = feed->has_at,
        .at = feed->at,
        .key = feed->key,
    };

    if (feed->held % feed->width != 0)
        return refuse_ragged(feed->held, feed, err);
    if (iron__view_check(&small.view, 0, err) != IRON_OK)
        return IRON_FEED_BAD_TOKEN;
    iron__writer_do(feed->kept->store->writer, &small.job);
    if (small.job.error.status != IRON_OK && err)
        *err = small.job.error;
    *result = small.result;
    return small.job.is_refused ? IRON_FEED_READ_ONLY : result->outcome;
}

static iron__feed_outcome end_large(iron__feed *feed, iron__feed_result *result, iron_error *err) {
    iron__feed_outcome outcome = iron__upload_end(feed->upload, feed->key, result, err);

    if (outcome == IRON_FEED_RAGGED)
        refuse_ragged(feed->taken, feed, err);
    iron__upload_free(feed->upload, outcome == IRON_FEED_DONE);
    feed->upload = NULL;
    return outcome;
}

static void count_done(iron__feed *feed, const iron__feed_result *result) {
    iron__store *store = feed->kept->store;

    atomic_fetch_add_explicit(&store->fed_feeds, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&store->fed_tokens, result->tokens, memory_order_relaxed);
    atomic_fetch_add_explicit(&store->fed_batches, result->batches, memory_order_relaxed);
    atomic_fetch_add_explicit(&store->fed_bytes, feed->taken, memory_order_relaxed);
}

iron__feed_outcome iron__feed_end(iron__feed *feed, iron__feed_answer *answer, iron_error *err) {
    iron__feed_result result = {.outcome = IRON_FEED_FAILED};
    iron__feed_outcome outcome = feed->refused;

    if (outcome == IRON_FEED_DONE)
        outcome = feed->upload ? end_large(feed, &result, err) : end_small(feed, &result, err);
    if (outcome == IRON_FEED_DONE || outcome == IRON_FEED_REPEATED) {
        iron__answer_of(&result.after, result.tokens, result.batches, answer);
        answer->position = result.position;
        if (outcome == IRON_FEED_DONE)
            count_done(feed, &result);
    } else {
        *answer = (iron__feed_answer){.position = result.position};
        explain(feed, outcome, result.position, err);
    }
    count_outcome(feed->kept->store, outcome);
    iron__feed_abandon(feed);
    return outcome;
}
