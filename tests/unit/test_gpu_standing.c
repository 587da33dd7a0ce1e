/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_standing.c: the promises of test_standing.c for engines on a GPU; forks from one kind of
 * device to the other; listeners where a feed is cut, collected and sent; and nobody hears of
 * batches that a device lost.
 */
#include "standing_support.h"

static void in_every_kind(void (*check)(const iron_config *config)) {
    static const uint64_t batches[] = {7, 1000};

    for (size_t b = 0; b < COUNT(batches); b++)
        for (uint32_t kind = 0; kind < 4; kind++) {
            iron_config c = gpu_config();

            c.positions = kind & 1 ? IRON_POSITIONS_BATCH : IRON_POSITIONS_STREAM;
            c.with_seal = kind >> 1;
            c.batch = batches[b];
            check(&c);
        }
}

static void forks_go_on(void **state) {
    (void)state;
    NEED_GPU();
    in_every_kind(check_fork);
}

static void replays_are_feeds(void **state) {
    (void)state;
    NEED_GPU();
    in_every_kind(check_replay);
}

static void listeners_hear_all(void **state) {
    iron_config c = gpu_config();

    (void)state;
    NEED_GPU();
    in_every_kind(check_listener);
    c.batch = 1;
    check_listener(&c);
}

/* A standing is the same on every device. */
static void forks_between_devices(void **state) {
    uint32_t *tokens = grab_tokens(17, 50257, BODY_TOKENS);
    iron_config c = gpu_config(), on_cpu;
    iron_engine *gpu, *cpu;
    iron__standing standing;
    iron_error err;

    (void)state;
    NEED_GPU();
    c.with_seal = 1;
    on_cpu = as_on_cpu(c);
    gpu = engine_of(&c);
    cpu = engine_of(&on_cpu);
    feed_bodies(gpu, tokens, 0, 4);
    assert_ok(iron__engine_standing(gpu, &standing, &err), &err);
    assert_ok(iron__engine_stand(cpu, &standing, gpu->nodes.xor_accumulators, gpu->nodes.potentials,
                                 &err),
              &err);
    feed_bodies(cpu, tokens, 4, 6);
    assert_ok(iron__engine_standing(cpu, &standing, &err), &err);
    assert_ok(iron__engine_stand(gpu, &standing, cpu->nodes.xor_accumulators, cpu->nodes.potentials,
                                 &err),
              &err);
    feed_bodies(cpu, tokens, 6, COUNT(bodies));
    feed_bodies(gpu, tokens, 6, COUNT(bodies));
    assert_same_engines(gpu, cpu);
    iron_engine_destroy(gpu);
    iron_engine_destroy(cpu);
    free(tokens);
}

/* Feeds that end within batches, listened to only from some point on, and a file. */
static void listening_begins_late(void **state) {
    uint32_t *tokens = grab_tokens(19, 50257, 5000);
    iron__contribution batches[8];
    notes heard = {batches, 0, COUNT(batches)};
    iron_config c = gpu_config(), on_cpu = as_on_cpu(c);
    iron__contribution before, all;
    iron_engine *gpu, *cpu;
    iron_error err;

    (void)state;
    NEED_GPU();
    gpu = engine_of(&c);
    cpu = engine_of(&on_cpu);
    assert_ok(iron_engine_feed(gpu, tokens, 2500, &err), &err);
    iron__engine_listen(gpu, hear, &heard);
    assert_ok(iron_engine_feed(gpu, tokens + 2500, 499, &err), &err);
    assert_int_equal(heard.count, 0);
    assert_ok(iron_engine_feed(gpu, tokens + 2999, 2001, &err), &err);
    assert_int_equal(heard.count, 3);
    assert_ok(iron_engine_feed(cpu, tokens, 2000, &err), &err);
    before = cpu->closed;
    assert_ok(iron_engine_feed(cpu, tokens + 2000, 3000, &err), &err);
    assert_same_engines(gpu, cpu);
    all = before;
    for (size_t k = 0; k < heard.count; k++)
        all = iron__contribution_merge(all, batches[k]);
    assert_int_equal(all.count, cpu->closed.count);
    assert_int_equal(all.sum, cpu->closed.sum);
    assert_int_equal(all.xors, cpu->closed.xors);
    iron_engine_destroy(gpu);
    iron_engine_destroy(cpu);
    free(tokens);
}

static void files_are_heard_too(void **state) {
    uint32_t *tokens = grab_tokens(29, 50257, 5500);
    iron__contribution batches[8];
    notes heard = {batches, 0, COUNT(batches)};
    iron_config c = gpu_config();
    file_name name = name_in(&gpu_place, "tokens.u32");
    const char *path = name.path;
    iron_source_options options = {.struct_size = sizeof options,
                                   .dtype = IRON_DTYPE_U32,
                                   .format = "raw",
                                   .paths = &path,
                                   .path_count = 1};
    iron_source *source;
    iron_engine *e;
    iron_error err;

    (void)state;
    NEED_GPU();
    file_write(name.path, tokens, 5500 * sizeof *tokens);
    e = engine_of(&c);
    iron__engine_listen(e, hear, &heard);
    assert_ok(iron_source_open(&options, &source, &err), &err);
    assert_ok(iron_engine_feed_source(e, source, NULL, NULL, &err), &err);
    assert_int_equal(heard.count, 5);
    iron_source_close(source);
    iron_engine_destroy(e);
    free(tokens);
}

/* Memory for what is to be told is asked for before anything is taken; and an engine whose device
 * has failed tells nothing and stands nowhere. */
static void lost_batches_are_not_heard(void **state) {
    uint32_t *tokens = grab_tokens(21, 50257, 3000);
    notes heard = {.room = 0};
    ledger books = {0};
    iron_allocator allocator = ledger_allocator(&books);
    iron_config c = gpu_config();
    iron__standing standing;
    iron_engine *e;
    iron_error err;

    (void)state;
    NEED_GPU();
    c.allocator = &allocator;
    e = engine_of(&c);
    iron__engine_listen(e, hear, &heard);
    books.fail_at = books.calls + 1;
    assert_refused(iron_engine_feed(e, tokens, 3000, &err), IRON_E_NOMEM, &err);
    assert_int_equal(report_of(e).tokens + report_of(e).open_tokens, 0);
    assert_ok(iron__engine_standing(e, &standing, &err), &err);
    e->failure = (iron_error){.status = IRON_E_IO, .text = "fell over"};
    assert_refused(iron_engine_feed(e, tokens, 3000, &err), IRON_E_IO, &err);
    assert_refused(iron__engine_replay(e, NULL, 0, NULL, &err), IRON_E_IO, &err);
    assert_refused(
        iron__engine_stand(e, &standing, e->nodes.xor_accumulators, e->nodes.potentials, &err),
        IRON_E_IO, &err);
    assert_int_equal(heard.count, 0);
    iron_engine_destroy(e);
    free(tokens);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forks_go_on),
        cmocka_unit_test(replays_are_feeds),
        cmocka_unit_test(listeners_hear_all),
        cmocka_unit_test(forks_between_devices),
        cmocka_unit_test(listening_begins_late),
        cmocka_unit_test(files_are_heard_too),
        cmocka_unit_test(lost_batches_are_not_heard),
    };

    return cmocka_run_group_tests(tests, gpu_set_up, gpu_tear_down);
}
