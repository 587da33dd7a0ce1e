/* SPDX-License-Identifier: MIT */
/*
 * test_checkpoint.c: engines that are restored from a checkpoint, or that replay batches reduced
 * before, continue as if they had been fed everything: every bit of nodes, totals and seal. The
 * batch callback gets each batch once, in order, with its contribution.
 *
 * Every kind of mode (runs on many threads, one thread, per-node), both kinds of positions, batches
 * of 1, 7 and 1000 tokens, with and without a seal. Engines on a GPU: test_gpu_checkpoint.c.
 */
#include "checkpoint_support.h"

static const char *const modes[] = {"auto", "scalar", "node", "hybrid"};
static const uint64_t batches[] = {1, 7, 1000};

static iron_config config_of(const char *mode, iron_positions positions, uint64_t batch,
                             uint32_t seal) {
    iron_config c;

    iron_config_init(&c);
    c.backend = "cpu";
    c.mode = mode;
    c.nodes = 37;
    c.batch = batch;
    c.positions = positions;
    c.threads = 3;
    c.with_seal = seal;
    return c;
}

static void in_every_kind(void (*check)(const iron_config *config)) {
    for (size_t m = 0; m < COUNT(modes); m++)
        for (size_t b = 0; b < COUNT(batches); b++)
            for (uint32_t kind = is_full_test() ? 0 : (m + b) % 4; kind < 4;
                 kind += is_full_test() ? 1 : 4) {
                iron_config c =
                    config_of(modes[m], kind & 1 ? IRON_POSITIONS_BATCH : IRON_POSITIONS_STREAM,
                              batches[b], kind >> 1);

                check(&c);
            }
}

static void forks_continue(void **state) {
    (void)state;
    in_every_kind(check_fork);
}

static void replay_equals_feeding(void **state) {
    (void)state;
    in_every_kind(check_replay);
}

static void callback_gets_all_batches(void **state) {
    (void)state;
    in_every_kind(check_callback);
}

/* More batches than the queue holds, so that they are applied in blocks; and in another mode than
 * the one they were reduced in. */
static void long_replays(void **state) {
    iron_config c = config_of("scalar", IRON_POSITIONS_STREAM, 3, 1), other = c;
    size_t count = (size_t)IRON_QUEUE_BATCHES * 9 + 5;
    uint32_t *tokens = grab_tokens(23, 50257, count);
    iron_engine *fed = engine_of(&c), *replayed;
    batch_log log = {.room = count};
    iron_error err;

    (void)state;
    log.batches = grab(count * sizeof *log.batches);
    iron__engine_on_batch(fed, log_batch, &log);
    feed_and_end(fed, tokens, count);
    assert_true(log.count > 3 * (size_t)IRON_QUEUE_BATCHES);
    other.mode = "node";
    replayed = engine_of(&other);
    assert_ok(iron__engine_replay(replayed, log.batches, log.count, &fed->seal, &err), &err);
    assert_same_engines(fed, replayed);
    iron_engine_destroy(fed);
    iron_engine_destroy(replayed);
    free(log.batches);
    free(tokens);
}

static void callback_can_be_removed(void **state) {
    iron_config c = config_of("auto", IRON_POSITIONS_STREAM, 10, 0);
    uint32_t *tokens = grab_tokens(3, 50257, 100);
    iron_engine *e = engine_of(&c);
    batch_log log = {.room = 16};
    iron_error err;

    (void)state;
    log.batches = grab(16 * sizeof *log.batches);
    iron__engine_on_batch(e, log_batch, &log);
    assert_ok(iron_engine_feed(e, tokens, 25, &err), &err);
    assert_int_equal(log.count, 2);
    iron__engine_on_batch(e, NULL, NULL);
    assert_ok(iron_engine_feed(e, tokens, 25, &err), &err);
    assert_int_equal(log.count, 2);
    iron_engine_destroy(e);
    free(log.batches);
    free(tokens);
}

/* A refused feed does not call the callback and leaves the engine as it was. */
static void refused_feeds_report_no_batches(void **state) {
    iron_config c = config_of("auto", IRON_POSITIONS_STREAM, 2, 1);
    int32_t tokens[9] = {1, 2, 3, 4, 5, 6, 7, 8, -9};
    batch_log log = {.room = 0};
    iron_engine *e = engine_of(&c);
    iron_error err;

    (void)state;
    iron__engine_on_batch(e, log_batch, &log);
    assert_refused(iron_engine_feed_as(e, IRON_DTYPE_I32, tokens, COUNT(tokens), &err),
                   IRON_E_FORMAT, &err);
    assert_int_equal(log.count, 0);
    assert_int_equal(e->closed.count + e->open.count, 0);
    assert_int_equal(iron_engine_end_batch(e, &err), IRON_OK);
    assert_int_equal(log.count, 0);
    iron_engine_destroy(e);
}

static void open_batches_have_no_checkpoint(void **state) {
    iron_config c = config_of("auto", IRON_POSITIONS_STREAM, 10, 0);
    iron__contribution batch = {10, 3, 4};
    uint32_t tokens[11] = {0};
    iron_engine *e = engine_of(&c);
    iron__checkpoint checkpoint;
    unsigned char *room = grab(iron__state_bytes(e));
    iron_error err;

    (void)state;
    assert_ok(iron_engine_feed(e, tokens, COUNT(tokens), &err), &err);
    assert_refused(iron__engine_checkpoint(e, &checkpoint, &err), IRON_E_STATE, &err);
    assert_says(&err, "a batch of 1 tokens is open");
    assert_refused(iron__engine_replay(e, &batch, 1, NULL, &err), IRON_E_STATE, &err);
    assert_refused(iron__state_write(e, room, &err), IRON_E_STATE, &err);
    assert_ok(iron_engine_end_batch(e, &err), &err);
    assert_ok(iron__engine_checkpoint(e, &checkpoint, &err), &err);
    assert_int_equal(checkpoint.closed.count, 11);
    assert_int_equal(checkpoint.batches, 2);
    assert_ok(iron_engine_begin_at(e, 20, &err), &err);
    assert_refused(iron__engine_checkpoint(e, &checkpoint, &err), IRON_E_STATE, &err);
    assert_says(&err, "position 20");
    iron_engine_destroy(e);
    free(room);
}

/* Restore discards an open batch with everything else. */
static void restore_discards_open_batch(void **state) {
    iron_config c = config_of("node", IRON_POSITIONS_STREAM, 10, 1);
    uint32_t *tokens = grab_tokens(9, 50257, 64);
    iron_engine *fork = engine_of(&c), *fresh = engine_of(&c);
    iron__checkpoint start;
    iron_error err;

    (void)state;
    assert_ok(iron__engine_checkpoint(fresh, &start, &err), &err);
    assert_ok(iron_engine_feed(fork, tokens, 33, &err), &err);
    assert_ok(iron__engine_restore(fork, &start, fresh->nodes.xor_accumulators,
                                   fresh->nodes.potentials, &err),
              &err);
    feed_and_end(fork, tokens, 64);
    feed_and_end(fresh, tokens, 64);
    assert_same_engines(fork, fresh);
    iron_engine_destroy(fork);
    iron_engine_destroy(fresh);
    free(tokens);
}

static void impossible_batches_are_refused(void **state) {
    static const struct {
        iron__contribution batch;
        iron__seal seal;
        const char *says;
    } cases[] = {
        {{0, 0, 0}, {{0, 0, 0, 0}, {0}, 0}, "0 tokens"},
        {{11, 0, 0}, {{8, 0, 0, 0}, {0}, 3}, "11 tokens"},
        {{10, 0, 0}, {{8, 0, 0, 0}, {0}, 1}, "seal"},
        {{10, 0, 0}, {{6, 0, 0, 0}, {0}, 4}, "seal"},
    };
    iron_config c = config_of("auto", IRON_POSITIONS_STREAM, 10, 1);
    iron_engine *e = engine_of(&c), *fresh = engine_of(&c);
    iron__contribution fine = {10, 0, 0};
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(cases); k++) {
        assert_refused(iron__engine_replay(e, &cases[k].batch, 1, &cases[k].seal, &err),
                       IRON_E_FORMAT, &err);
        assert_says(&err, cases[k].says);
        assert_same_engines(e, fresh);
    }
    assert_refused(iron__engine_replay(e, &fine, 1, NULL, &err), IRON_E_FORMAT, &err);
    e->closed.count = UINT64_MAX - 5;
    assert_refused(iron__engine_replay(e, &fine, 1, &cases[0].seal, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "2^64");
    iron_engine_destroy(e);
    iron_engine_destroy(fresh);
}

/* The bytes in memory and in a file are the same, and load into an equal engine. */
static void states_in_memory(void **state) {
    iron_config c = config_of("auto", IRON_POSITIONS_BATCH, 7, 1);
    uint32_t *tokens = grab_tokens(31, 50257, 500);
    iron_engine *e = engine_of(&c), *again = NULL;
    size_t bytes = iron__state_bytes(e);
    unsigned char *room = grab(bytes);
    folder place;
    iron_error err;

    (void)state;
    folder_make(&place);
    feed_and_end(e, tokens, 499);
    assert_ok(iron__state_write(e, room, &err), &err);
    assert_ok(iron_engine_save(e, name_in(&place, "state").path, &err), &err);
    assert_file_holds(name_in(&place, "state").path, room, bytes);
    assert_ok(iron__state_parse("memory", room, bytes, NULL, &again, &err), &err);
    assert_same_engines(e, again);
    feed_and_end(e, tokens, 500);
    feed_and_end(again, tokens, 500);
    assert_same_engines(e, again);
    room[bytes / 2] ^= 1;
    iron_engine_destroy(again);
    assert_refused(iron__state_parse("memory", room, bytes, NULL, &again, &err), IRON_E_FORMAT,
                   &err);
    iron_engine_destroy(e);
    folder_remove(&place);
    free(room);
    free(tokens);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forks_continue),
        cmocka_unit_test(replay_equals_feeding),
        cmocka_unit_test(callback_gets_all_batches),
        cmocka_unit_test(long_replays),
        cmocka_unit_test(callback_can_be_removed),
        cmocka_unit_test(refused_feeds_report_no_batches),
        cmocka_unit_test(open_batches_have_no_checkpoint),
        cmocka_unit_test(restore_discards_open_batch),
        cmocka_unit_test(impossible_batches_are_refused),
        cmocka_unit_test(states_in_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
