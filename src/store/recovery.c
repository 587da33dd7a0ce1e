/* SPDX-License-Identifier: MIT */
/* recovery.c: see recovery.h. */
#include "store/recovery.h"

#include "core/fail.h"
#include "engine/state_file.h"
#include "store/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESTORE "; the database is damaged: restore a backup"

iron_status iron__recovery_begin(iron__recovery *r, const iron__plan *plan, iron_error *err) {
    iron_report report = {.struct_size = sizeof report};
    iron_config config;

    *r = (iron__recovery){.plan = plan, .at = iron__moment_start()};
    r->waiting = calloc(IRON_BLOCK_BATCHES, sizeof *r->waiting);
    IRON_FAIL_IF(!r->waiting, err, IRON_E_NOMEM, "out of memory: batches to be replayed");
    iron__plan_config_cpu(plan, &config);
    IRON_TRY(iron_engine_create(&config, &r->engine, err));
    IRON_TRY(iron_engine_report(r->engine, &report, err));
    r->at.state = report.state;
    return IRON_OK;
}

void iron__recovery_free(iron__recovery *r) {
    iron_engine_destroy(r->engine);
    free(r->waiting);
}

static bool is_same_plan(const iron_config *a, const iron_config *b) {
    return a->nodes == b->nodes && a->vocab == b->vocab && a->batch == b->batch &&
           a->positions == b->positions && a->with_seal && a->lattice_count == b->lattice_count &&
           memcmp(a->lattice, b->lattice, a->lattice_count * sizeof a->lattice[0]) == 0;
}

static bool is_same_standing(const iron__standing *a, const iron__standing *b) {
    return a->closed.count == b->closed.count && a->closed.sum == b->closed.sum &&
           a->closed.xors == b->closed.xors && a->batches == b->batches &&
           a->seal.words.t == b->seal.words.t && a->seal.words.a == b->seal.words.a &&
           a->seal.words.b == b->seal.words.b &&
           memcmp(a->seal.carry, b->seal.carry, sizeof a->seal.carry) == 0;
}

/* Is this state what the snapshot's row and the feed's say? */
static iron_status check_snapshot(iron__recovery *r, const iron__snapshot_row *snapshot,
                                  const iron__moment *want, iron_engine *parsed, iron_error *err) {
    iron_report report = {.struct_size = sizeof report};
    iron__standing standing;

    IRON_FAIL_IF(!is_same_plan(iron_engine_config(parsed), iron_engine_config(r->engine)), err,
                 IRON_E_FORMAT,
                 "engine %s: the snapshot after feed %" PRIu64
                 " is of another configuration" RESTORE,
                 r->plan->name, snapshot->number);
    IRON_TRY(iron_engine_report(parsed, &report, err));
    IRON_TRY(iron__engine_standing(parsed, &standing, err));
    IRON_FAIL_IF(report.state != snapshot->state || report.state != want->state, err, IRON_E_FORMAT,
                 "engine %s: the snapshot after feed %" PRIu64 " has state %016" PRIx64
                 " and should have %016" PRIx64 RESTORE,
                 r->plan->name, snapshot->number, report.state, want->state);
    IRON_FAIL_IF(!is_same_standing(&standing, &want->standing), err, IRON_E_FORMAT,
                 "engine %s: the snapshot after feed %" PRIu64
                 " has other totals than the feed" RESTORE,
                 r->plan->name, snapshot->number);
    return iron__engine_stand(r->engine, &standing, iron_engine_xor_accumulators(parsed),
                              iron_engine_potentials(parsed), err);
}

iron_status iron__recovery_snapshot(iron__recovery *r, const iron__snapshot_row *snapshot,
                                    const iron__feed_row *last, iron_error *err) {
    char name[100 + IRON_ENGINE_NAME_MAX];
    const iron__moment want = last ? last->after : r->at;
    iron_engine *parsed = NULL;
    iron_config config;
    iron_status status;

    IRON_FAIL_IF(want.feeds != snapshot->number, err, IRON_E_FORMAT,
                 "engine %s: there is a snapshot after feed %" PRIu64 ", but no such feed" RESTORE,
                 r->plan->name, snapshot->number);
    snprintf(name, sizeof name, "the snapshot of engine %s after feed %" PRIu64, r->plan->name,
             snapshot->number);
    iron__plan_config_cpu(r->plan, &config);
    IRON_TRY(iron__state_parse(name, snapshot->bytes, snapshot->count, &config, &parsed, err));
    status = check_snapshot(r, snapshot, &want, parsed, err);
    iron_engine_destroy(parsed);
    r->at = want;
    r->snapshot_feeds = snapshot->number;
    return status;
}

/* The seal is not made of batches: its number of tokens is all that replaying looks at. */
static iron_status replay_waiting(iron__recovery *r, iron_error *err) {
    uint64_t tokens = r->engine->closed.count;
    iron__seal seal;

    for (size_t k = 0; k < r->waiting_count; k++)
        tokens += r->waiting[k].count;
    seal = iron__seal_of_count(tokens);
    IRON_TRY(iron__engine_replay(r->engine, r->waiting, r->waiting_count, &seal, err));
    r->replayed += r->waiting_count;
    r->waiting_count = 0;
    return IRON_OK;
}

iron_status iron__recovery_feed(iron__recovery *r, const iron__feed_row *row, iron_error *err) {
    IRON_TRY(iron__feed_row_follows(row, &r->at, r->plan, err));
    r->row = *row;
    r->row_batches = 0;
    r->row_sum = iron__contribution_neutral();
    return IRON_OK;
}

iron_status iron__recovery_batches(iron__recovery *r, const unsigned char *bytes, size_t count,
                                   iron_error *err) {
    IRON_FAIL_IF(count > r->row.batches - r->row_batches, err, IRON_E_FORMAT,
                 "engine %s: feed %" PRIu64 " has more than its %" PRIu64 " batches" RESTORE,
                 r->plan->name, r->row.number, r->row.batches);
    for (size_t k = 0; k < count; k++) {
        uint64_t tokens = iron__row_batch_tokens(&r->row, r->plan->batch, r->row_batches++);
        iron__contribution batch = iron__batch_decode(bytes + k * IRON_BATCH_BYTES, tokens);

        if (r->waiting_count == IRON_BLOCK_BATCHES)
            IRON_TRY(replay_waiting(r, err));
        r->waiting[r->waiting_count++] = batch;
        r->row_sum = iron__contribution_merge(r->row_sum, batch);
    }
    return IRON_OK;
}

iron_status iron__recovery_feed_end(iron__recovery *r, iron_error *err) {
    const iron__feed_row *row = &r->row;

    IRON_FAIL_IF(r->row_batches != row->batches || r->row_sum.count != row->fed.count ||
                     r->row_sum.sum != row->fed.sum || r->row_sum.xors != row->fed.xors,
                 err, IRON_E_FORMAT,
                 "engine %s: the batches of feed %" PRIu64 " do not come to its totals" RESTORE,
                 r->plan->name, row->number);
    r->at = row->after;
    r->row.batch_bytes = NULL;
    return IRON_OK;
}

iron_status iron__recovery_end(iron__recovery *r, iron_error *err) {
    iron__hash_lane lane;

    IRON_TRY(replay_waiting(r, err));
    lane = (iron__hash_lane){iron_engine_xor_accumulators(r->engine),
                             iron_engine_potentials(r->engine), 0};
    iron__nodes_hash_lanes(&lane, 1, (uint32_t)r->plan->nodes);
    IRON_FAIL_IF(lane.hash != r->at.state, err, IRON_E_FORMAT,
                 "engine %s: its state after feed %" PRIu64 " is %016" PRIx64
                 " and should be %016" PRIx64 RESTORE,
                 r->plan->name, r->at.feeds, lane.hash, r->at.state);
    return IRON_OK;
}
