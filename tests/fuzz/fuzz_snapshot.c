/* SPDX-License-Identifier: MIT */
/*
 * fuzz_snapshot.c: loading an engine from its rows. The harness makes a valid history of a few
 * feeds and a snapshot after one of them. The input then changes bytes of the snapshot (whose
 * checksum may be corrected), numbers of any row, and bytes of the batches. The store's loading
 * code gets the result, without a database.
 *
 * An unchanged history must load as it was. A changed one is refused with a message, or the engine
 * has exactly the state and the totals of the last row; if the check word of every row is still
 * valid, these are the original ones.
 *
 * Input: configuration (4 bytes), feeds (one byte each, the number of tokens), then changes of 10
 * bytes: kind, place, value.
 */
#include "store/recovery.c"

#include "core/hash.h"
#include "engine/checkpoint.h"
#include "fuzz.h"

#define FEEDS_MAX   6u
#define BATCHES_MAX 256u

typedef struct written {
    iron__store_plan plan;
    iron__feed_row rows[FEEDS_MAX];
    uint64_t checks[FEEDS_MAX];
    unsigned char batches[FEEDS_MAX][BATCHES_MAX * IRON_BATCH_BYTES];
    size_t feeds;
    iron__snapshot_row snapshot; /* bytes are malloc'ed */
    uint64_t snapshot_check;
    bool has_snapshot;
} written;

typedef struct listener {
    unsigned char *to;
    size_t count;
    iron__contribution sum;
} listener;

static void hear(void *context, iron__contribution batch) {
    listener *l = context;

    FUZZ_REQUIRE(l->count < BATCHES_MAX);
    iron__batch_encode(l->to + l->count++ * IRON_BATCH_BYTES, batch);
    l->sum = iron__contribution_merge(l->sum, batch);
}

static iron_engine *make_engine(iron__store_plan *plan, fuzz_input *in) {
    iron_engine *engine = NULL;
    iron_config config;

    iron__store_plan_init(plan);
    snprintf(plan->name, sizeof plan->name, "fuzzed");
    plan->nodes = 1 + fuzz_byte(in) % 16;
    plan->vocab = 2 + fuzz_byte(in);
    plan->batch = 1 + fuzz_byte(in) % 8;
    plan->positions = fuzz_byte(in) & 1 ? IRON_POSITIONS_BATCH : IRON_POSITIONS_STREAM;
    iron_config_init(&config);
    config.nodes = plan->nodes;
    config.vocab = plan->vocab;
    config.batch = plan->batch;
    config.positions = plan->positions;
    config.with_seal = 1;
    config.backend = "cpu";
    config.threads = 1;
    FUZZ_REQUIRE(iron_engine_create(&config, &engine, NULL) == IRON_OK);
    return engine;
}

/* A feed of so many tokens, and its row as the store writes it. */
static void feed_one(written *w, iron_engine *engine, size_t tokens) {
    iron__feed_row *row = &w->rows[w->feeds];
    listener l = {.to = w->batches[w->feeds], .sum = iron__contribution_neutral()};
    uint32_t body[BATCHES_MAX];
    iron__checkpoint before;

    FUZZ_REQUIRE(iron_generate(w->feeds, 1000, 0, body, tokens, NULL) == IRON_OK);
    FUZZ_REQUIRE(iron__engine_checkpoint(engine, &before, NULL) == IRON_OK);
    iron__engine_on_batch(engine, hear, &l);
    FUZZ_REQUIRE(iron_engine_feed(engine, body, tokens, NULL) == IRON_OK);
    FUZZ_REQUIRE(iron_engine_end_batch(engine, NULL) == IRON_OK);
    iron__engine_on_batch(engine, NULL, NULL);
    *row = (iron__feed_row){.engine = 1,
                            .number = w->feeds + 1,
                            .position = before.closed.count,
                            .first_batch = before.batches,
                            .batches = l.count,
                            .fed = l.sum,
                            .batch_bytes = l.to,
                            .batch_bytes_count = l.count * IRON_BATCH_BYTES};
    FUZZ_REQUIRE(iron__engine_checkpoint(engine, &row->after.checkpoint, NULL) == IRON_OK);
    row->after.feeds = row->number;
    row->after.state = fuzz_report(engine).state;
    w->checks[w->feeds++] = iron__feed_row_check(row);
}

static void take_snapshot(written *w, iron_engine *engine) {
    size_t bytes = iron__state_bytes(engine);
    unsigned char *room = malloc(bytes);

    FUZZ_REQUIRE(room && iron__state_write(engine, room, NULL) == IRON_OK);
    w->snapshot = (iron__snapshot_row){.engine = 1,
                                       .number = w->feeds,
                                       .state = fuzz_report(engine).state,
                                       .bytes = room,
                                       .count = bytes};
    w->snapshot_check = iron__snapshot_check(&w->snapshot);
    w->has_snapshot = true;
}

static iron_report make_history(written *w, fuzz_input *in) {
    iron_engine *engine = make_engine(&w->plan, in);
    size_t feeds = fuzz_byte(in) % (FEEDS_MAX + 1), after = fuzz_byte(in) % (FEEDS_MAX + 2);
    iron_report report;

    for (size_t k = 0; k <= feeds; k++) {
        if (k == after)
            take_snapshot(w, engine);
        if (k < feeds)
            feed_one(w, engine, fuzz_byte(in));
    }
    report = fuzz_report(engine);
    iron_engine_destroy(engine);
    return report;
}

static void change_row(iron__feed_row *row, uint8_t field, uint64_t by) {
    iron__checkpoint *s = &row->after.checkpoint;
    uint64_t *const words[] = {
        &row->number,     &row->position,    &row->first_batch, &row->batches, &row->fed.count,
        &row->fed.sum,    &s->closed.count,  &s->closed.sum,    &s->batches,   &s->seal.words.t,
        &s->seal.words.a, &row->after.feeds, &row->after.state, &row->upload,
    };

    field %= 20;
    if (field < sizeof words / sizeof words[0])
        *words[field] += by;
    else if (field == 14)
        row->fed.xors ^= (uint32_t)by;
    else if (field == 15)
        s->closed.xors ^= (uint32_t)by;
    else if (field == 16)
        s->seal.carry[by % 3] ^= (uint32_t)(by >> 8);
    else if (field == 17)
        s->seal.words.b ^= by;
    else if (field == 18)
        row->has_blocks = by & 1;
    else
        row->batch_bytes_count -= row->batch_bytes_count ? by % row->batch_bytes_count : 0;
}

/* One change: to the snapshot's bytes, its row, its checksum; to a feed's row or batches. */
static void change(written *w, uint8_t what, uint8_t where, uint64_t by) {
    unsigned char *bytes = (unsigned char *)w->snapshot.bytes;
    size_t k = w->feeds ? where % w->feeds : 0;

    if (what % 5 == 0 && w->feeds)
        change_row(&w->rows[k], (uint8_t)(what / 5), by);
    else if (what % 5 == 1 && w->feeds && w->rows[k].batch_bytes_count)
        w->batches[k][(by >> 8) % w->rows[k].batch_bytes_count] ^= (unsigned char)by;
    else if (what % 5 == 2 && w->has_snapshot)
        bytes[(by >> 8) % w->snapshot.count] ^= (unsigned char)by;
    else if (what % 5 == 3 && w->has_snapshot && w->snapshot.count >= sizeof by) {
        uint64_t sum = iron__fnv(IRON_FNV_START, bytes, w->snapshot.count - sizeof sum);

        memcpy(bytes + w->snapshot.count - sizeof sum, &sum, sizeof sum);
    } else if (what % 5 == 4 && w->has_snapshot) {
        w->snapshot.number += where & 1 ? by : 0;
        w->snapshot.state += where & 2 ? by : 0;
        w->snapshot.count -= where & 4 ? by % w->snapshot.count : 0;
    }
}

static bool is_as_written(const written *w) {
    for (size_t k = 0; k < w->feeds; k++)
        if (iron__feed_row_check(&w->rows[k]) != w->checks[k])
            return false;
    return !w->has_snapshot || iron__snapshot_check(&w->snapshot) == w->snapshot_check;
}

/* The feed that the snapshot says it was taken after, as the database would find it. */
static const iron__feed_row *feed_of_snapshot(const written *w) {
    for (size_t k = 0; k < w->feeds; k++)
        if (w->rows[k].number == w->snapshot.number)
            return &w->rows[k];
    return NULL;
}

static iron_status load_row(recovery *r, const iron__feed_row *row, iron_error *err) {
    iron_status status = recovery_feed(r, row, err);

    if (status == IRON_OK && batches_in_blocks(row) > 0) {
        snprintf(err->text, sizeof err->text, "there are no blocks here");
        return err->status = IRON_E_FORMAT;
    }
    if (status == IRON_OK)
        status =
            recovery_batches(r, row->batch_bytes, row->batch_bytes_count / IRON_BATCH_BYTES, err);
    return status == IRON_OK ? recovery_feed_end(r, err) : status;
}

static iron_status load(recovery *r, const written *w, iron_error *err) {
    iron_status status = recovery_begin(r, &w->plan, err);

    if (status == IRON_OK && w->has_snapshot)
        status = recovery_snapshot(r, &w->snapshot, feed_of_snapshot(w), err);
    for (size_t k = 0; k < w->feeds && status == IRON_OK; k++)
        if (w->rows[k].number > r->at.feeds)
            status = load_row(r, &w->rows[k], err);
    return status == IRON_OK ? recovery_end(r, err) : status;
}

static void check_loaded(const recovery *r, const written *w, const iron_report *was) {
    iron_report got = fuzz_report(r->engine);

    FUZZ_REQUIRE(got.state == r->at.state);
    FUZZ_REQUIRE(got.tokens == r->at.checkpoint.closed.count);
    FUZZ_REQUIRE(got.batches == r->at.checkpoint.batches);
    FUZZ_REQUIRE(got.sum == r->at.checkpoint.closed.sum);
    FUZZ_REQUIRE(got.xor_total == r->at.checkpoint.closed.xors);
    if (is_as_written(w)) {
        FUZZ_REQUIRE(got.state == was->state && got.tokens == was->tokens);
        FUZZ_REQUIRE(got.batches == was->batches && got.sum == was->sum);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static written w;
    fuzz_input in = {data, size};
    recovery r;
    iron_error err = {0};
    iron_report was;
    size_t room;

    memset(&w, 0, sizeof w);
    was = make_history(&w, &in);
    room = w.snapshot.count;
    while (in.left > 0) {
        uint8_t what = fuzz_byte(&in), where = fuzz_byte(&in);

        change(&w, what, where, fuzz_word(&in, 8));
    }
    if (w.snapshot.count < room) { /* so that a sanitizer sees the first byte past it */
        void *cut = fuzz_copy(w.snapshot.bytes, w.snapshot.count);

        free((void *)w.snapshot.bytes);
        w.snapshot.bytes = cut;
    }
    if (fuzz_refused(load(&r, &w, &err), &err))
        FUZZ_REQUIRE(!is_as_written(&w));
    else
        check_loaded(&r, &w, &was);
    recovery_free(&r);
    free((void *)w.snapshot.bytes);
    return 0;
}
