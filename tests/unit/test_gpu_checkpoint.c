/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_checkpoint.c: the properties of test_checkpoint.c for engines on a GPU; forks between
 * devices; the batch callback when a feed is split, collected and sent; and that batches lost with
 * a device are not reported.
 */
#include "checkpoint_support.h"

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

static void forks_continue(void **state) {
    (void)state;
    NEED_GPU();
    in_every_kind(check_fork);
}

static void replay_equals_feeding(void **state) {
    (void)state;
    NEED_GPU();
    in_every_kind(check_replay);
}

static void callback_gets_all_batches(void **state) {
    iron_config c = gpu_config();

    (void)state;
    NEED_GPU();
    in_every_kind(check_callback);
    c.batch = 1;
    check_callback(&c);
}

/* A checkpoint is the same on every device. */
static void forks_between_devices(void **state) {
    uint32_t *tokens = grab_tokens(17, 50257, PART_TOKENS);
    iron_config c = gpu_config(), on_cpu;
    iron_engine *gpu, *cpu;
    iron__checkpoint checkpoint;
    iron_error err;

    (void)state;
    NEED_GPU();
    c.with_seal = 1;
    on_cpu = as_on_cpu(c);
    gpu = engine_of(&c);
    cpu = engine_of(&on_cpu);
    feed_parts(gpu, tokens, 0, 4);
    assert_ok(iron__engine_checkpoint(gpu, &checkpoint, &err), &err);
    assert_ok(iron__engine_restore(cpu, &checkpoint, gpu->nodes.xor_accumulators,
                                   gpu->nodes.potentials, &err),
              &err);
    feed_parts(cpu, tokens, 4, 6);
    assert_ok(iron__engine_checkpoint(cpu, &checkpoint, &err), &err);
    assert_ok(iron__engine_restore(gpu, &checkpoint, cpu->nodes.xor_accumulators,
                                   cpu->nodes.potentials, &err),
              &err);
    feed_parts(cpu, tokens, 6, COUNT(parts));
    feed_parts(gpu, tokens, 6, COUNT(parts));
    assert_same_engines(gpu, cpu);
    iron_engine_destroy(gpu);
    iron_engine_destroy(cpu);
    free(tokens);
}

/* Feeds that end within batches, with a callback that is set only later. */
static void callback_set_in_mid_stream(void **state) {
    uint32_t *tokens = grab_tokens(19, 50257, 5000);
    iron__contribution batches[8];
    batch_log log = {batches, 0, COUNT(batches)};
    iron_config c = gpu_config(), on_cpu = as_on_cpu(c);
    iron__contribution before, all;
    iron_engine *gpu, *cpu;
    iron_error err;

    (void)state;
    NEED_GPU();
    gpu = engine_of(&c);
    cpu = engine_of(&on_cpu);
    assert_ok(iron_engine_feed(gpu, tokens, 2500, &err), &err);
    iron__engine_on_batch(gpu, log_batch, &log);
    assert_ok(iron_engine_feed(gpu, tokens + 2500, 499, &err), &err);
    assert_int_equal(log.count, 0);
    assert_ok(iron_engine_feed(gpu, tokens + 2999, 2001, &err), &err);
    assert_int_equal(log.count, 3);
    assert_ok(iron_engine_feed(cpu, tokens, 2000, &err), &err);
    before = cpu->closed;
    assert_ok(iron_engine_feed(cpu, tokens + 2000, 3000, &err), &err);
    assert_same_engines(gpu, cpu);
    all = before;
    for (size_t k = 0; k < log.count; k++)
        all = iron__contribution_merge(all, batches[k]);
    assert_int_equal(all.count, cpu->closed.count);
    assert_int_equal(all.sum, cpu->closed.sum);
    assert_int_equal(all.xors, cpu->closed.xors);
    iron_engine_destroy(gpu);
    iron_engine_destroy(cpu);
    free(tokens);
}

static void callback_while_feeding_files(void **state) {
    uint32_t *tokens = grab_tokens(29, 50257, 5500);
    iron__contribution batches[8];
    batch_log log = {batches, 0, COUNT(batches)};
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
    iron__engine_on_batch(e, log_batch, &log);
    assert_ok(iron_source_open(&options, &source, &err), &err);
    assert_ok(iron_engine_feed_source(e, source, NULL, NULL, &err), &err);
    assert_int_equal(log.count, 5);
    iron_source_close(source);
    iron_engine_destroy(e);
    free(tokens);
}

/* Memory for the batches is allocated before anything is taken; and an engine whose device has
 * failed reports no batches and cannot be restored. */
static void lost_batches_are_not_reported(void **state) {
    uint32_t *tokens = grab_tokens(21, 50257, 3000);
    batch_log log = {.room = 0};
    ledger books = {0};
    iron_allocator allocator = ledger_allocator(&books);
    iron_config c = gpu_config();
    iron__checkpoint checkpoint;
    iron_engine *e;
    iron_error err;

    (void)state;
    NEED_GPU();
    c.allocator = &allocator;
    e = engine_of(&c);
    iron__engine_on_batch(e, log_batch, &log);
    books.fail_at = books.calls + 1;
    assert_refused(iron_engine_feed(e, tokens, 3000, &err), IRON_E_NOMEM, &err);
    assert_int_equal(report_of(e).tokens + report_of(e).open_tokens, 0);
    assert_ok(iron__engine_checkpoint(e, &checkpoint, &err), &err);
    e->failure = (iron_error){.status = IRON_E_IO, .text = "fell over"};
    assert_refused(iron_engine_feed(e, tokens, 3000, &err), IRON_E_IO, &err);
    assert_refused(iron__engine_replay(e, NULL, 0, NULL, &err), IRON_E_IO, &err);
    assert_refused(
        iron__engine_restore(e, &checkpoint, e->nodes.xor_accumulators, e->nodes.potentials, &err),
        IRON_E_IO, &err);
    assert_int_equal(log.count, 0);
    iron_engine_destroy(e);
    free(tokens);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forks_continue),
        cmocka_unit_test(replay_equals_feeding),
        cmocka_unit_test(callback_gets_all_batches),
        cmocka_unit_test(forks_between_devices),
        cmocka_unit_test(callback_set_in_mid_stream),
        cmocka_unit_test(callback_while_feeding_files),
        cmocka_unit_test(lost_batches_are_not_reported),
    };

    return cmocka_run_group_tests(tests, gpu_set_up, gpu_tear_down);
}
