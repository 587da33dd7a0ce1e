/* SPDX-License-Identifier: MIT */
/*
 * members.c: an engine on several GPUs.
 *
 * The engine itself is on the first device, as if there were no other. Each further device has an
 * engine of its own, a member, which records what its batches do instead of applying it (effect.c).
 * A long feed is cut into one range of whole batches per device; they are fed at the same time, and
 * then the engine applies the members' batches in the order of the stream:
 *
 *     tokens    | engine: open batch, its range | member 1 | member 2 | ... | engine: the rest |
 *
 * So the order of every rounding is that of one device, and results agree bit for bit. What is too
 * short to be worth it, comes from a pipe or is in the memory of the first device, the engine takes
 * alone. Members allocate with malloc: they work on threads on which the caller's allocator must
 * not be called.
 */
#include "core/cpu.h"
#include "core/fail.h"
#include "engine/engine.h"
#include "feed/split.h"

/* Shorter ranges are fed sooner than threads are started and results are fetched. */
#define RANGE_TOKENS_MIN (UINT64_C(1) << 18)
/* Records are 8 bytes per batch: 4 MiB per member. A longer feed is shared out several times. */
#define RANGE_BATCHES_MAX (UINT64_C(1) << 19)

/* A range of the input for every device. */
typedef struct feed_round {
    iron_engine *engine;
    iron__range_feed feed;
    void *input;
    uint64_t first;    /* token of the input at which it begins */
    uint64_t own;      /* how many the engine takes */
    uint64_t batches;  /* how many each member takes */
    uint64_t position; /* in the stream, of the first member's range */
} feed_round;

static iron_status create_member(void *context, size_t index, iron_progress progress, void *of_part,
                                 iron_error *err) {
    iron_engine *e = context;
    iron_config config = e->config;
    iron_error why = {0};
    iron_status status;

    (void)progress;
    (void)of_part;
    if (index == 0)
        return IRON_OK;
    config.devices = NULL;
    config.device = e->choice.devices.index[index];
    config.threads = e->config.threads / e->sharers > 0 ? e->config.threads / e->sharers : 1;
    config.allocator = NULL;
    status =
        iron__engine_create_sharing(&config, e->sharers, &e->members->each[index].engine, &why);
    if (status != IRON_OK)
        iron__fail(err, status, why.native, "device %u: %.200s", config.device, why.text);
    return status;
}

iron_status iron__members_create(iron_engine *e, iron_error *err) {
    size_t count = e->choice.devices.count;
    iron__split split = {.count = count, .part = create_member, .context = e};

    e->members =
        iron__allocate(e->allocator, 1, sizeof *e->members + count * sizeof e->members->each[0],
                       "engines on several devices", err);
    if (!e->members)
        return IRON_E_NOMEM;
    e->members->count = count;
    return iron__split_run(&split, err);
}

void iron__members_destroy(iron_engine *e) {
    for (size_t k = 1; e->members && k < e->members->count; k++) {
        iron_engine_destroy(e->members->each[k].engine);
        iron__release(e->allocator, e->members->each[k].record);
    }
    iron__release(e->allocator, e->members);
}

static iron_status prepare_member(void *context, size_t index, iron_progress progress,
                                  void *of_part, iron_error *err) {
    iron_engine *e = context;

    (void)progress;
    (void)of_part;
    return iron__engine_prepare_one(index == 0 ? e : e->members->each[index].engine, err);
}

iron_status iron__members_prepare(iron_engine *e, iron_error *err) {
    iron__split split = {.count = e->members->count, .part = prepare_member, .context = e};

    return iron__split_run(&split, err);
}

bool iron__members_share(const iron_engine *e) {
    return e->members && !e->on_batch && !e->range.record;
}

/* Cuts the next `left` tokens of the input into ranges; false: the engine takes them alone. Members
 * begin where a batch begins, and for the seal at a multiple of 4. */
static bool plan_round(feed_round *r, uint64_t left) {
    const iron_engine *e = r->engine;
    uint64_t batch = e->config.batch, grid = 1, ranges;

    r->own = e->open.count > 0 ? batch - e->open.count : 0;
    r->position = e->closed.count + e->open.count + r->own;
    if (e->config.with_seal) {
        grid = batch % 4 == 0 ? 1 : batch % 2 == 0 ? 2 : 4;
        for (uint64_t k = 0; k < grid && r->position % 4 != 0; k++) {
            r->own += batch;
            r->position += batch;
        }
    }
    if (r->position % (e->config.with_seal ? 4 : 1) != 0 || r->own >= left)
        return false;
    ranges = (left - r->own) / (grid * batch) / e->members->count;
    ranges = ranges < RANGE_BATCHES_MAX / grid ? ranges : RANGE_BATCHES_MAX / grid;
    r->batches = ranges * grid;
    r->own += r->batches * batch;
    r->position += r->batches * batch;
    return r->batches > 0 &&
           r->batches >= RANGE_TOKENS_MIN / batch + (RANGE_TOKENS_MIN % batch > 0);
}

/* The engine's own range, or that of a member, up to its effect. */
static iron_status feed_range(void *context, size_t index, iron_progress progress, void *of_part,
                              iron_error *err) {
    feed_round *r = context;
    iron__member *m = &r->engine->members->each[index];
    uint64_t tokens = r->batches * r->engine->config.batch, before = (index - 1) * tokens;

    if (index == 0)
        return r->feed(r->input, r->engine, r->first, r->own, progress, of_part, err);
    IRON_TRY(
        iron__engine_begin_recording(m->engine, r->position + before, m->record, m->capacity, err));
    m->engine->outside.is_on = r->engine->outside.is_on;
    m->engine->outside.found = iron__token_stats_neutral();
    IRON_TRY(
        r->feed(r->input, m->engine, r->first + r->own + before, tokens, progress, of_part, err));
    m->effect.struct_size = sizeof m->effect;
    return iron_engine_effect(m->engine, &m->effect, NULL, err);
}

iron_status iron__members_feed(iron_engine *e, iron__range_feed feed, void *input, uint64_t count,
                               iron_progress progress, void *context, iron_error *err) {
    feed_round r = {.engine = e, .feed = feed, .input = input};
    iron__split split = {.count = e->members->count,
                         .part = feed_range,
                         .context = &r,
                         .progress = progress,
                         .progress_context = context,
                         .total = count};

    while (plan_round(&r, count - r.first)) {
        iron_error error = {0};
        iron_status status;

        for (size_t k = 1; k < e->members->count; k++) {
            iron__member *m = &e->members->each[k];

            if (m->capacity >= r.batches)
                continue;
            iron__release(e->allocator, m->record);
            m->capacity = 0;
            IRON_TRY(IRON_ALLOCATE(&m->record, e->allocator, (size_t)r.batches,
                                   "batches of a device", err));
            m->capacity = (size_t)r.batches;
        }
        split.before = r.first;
        status = iron__split_run(&split, &error);
        for (size_t k = 1; status == IRON_OK && k < e->members->count; k++) {
            iron__member *m = &e->members->each[k];

            e->outside.found = iron__token_stats_merge(e->outside.found, m->engine->outside.found);
            status = iron_engine_apply_batches(e, &m->effect, m->record, &error);
        }
        if (status != IRON_OK) {
            /* the engine has taken its own range only: if a member's is lost, it cannot go on */
            bool is_lost = status == IRON_E_NOMEM;

            for (size_t k = 1; k < e->members->count; k++)
                is_lost = is_lost || e->members->each[k].engine->failure.status != IRON_OK;
            if (is_lost && e->failure.status == IRON_OK)
                e->failure = error;
            return iron__fail_again(err, &error);
        }
        r.first += r.own + (e->members->count - 1) * r.batches * e->config.batch;
    }
    split.count = 1;
    split.before = r.first;
    r.own = count - r.first;
    return r.own > 0 ? iron__split_run(&split, err) : IRON_OK;
}
