/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_devices.c: several GPUs share a stream and give the bits of one CPU thread: feeds from
 * memory and files, with and without a seal, past the potentials that add up in any order, states,
 * scans. An error names its device, the first bad token of the stream is the one reported, and
 * nothing goes on after a lost range.
 *
 * PoCL shows as many devices as POCL_DEVICES has words; a CUDA device is opened several times.
 */
#include "gpu_support.h"

#include <iron/iron_digest.h>

#include <unistd.h>

/* Long enough that each of three devices has a range. */
#define TOKENS ((size_t)1 << 20)

static const char *several = "0,0,0";

static int set_up(void **state) {
    setenv("POCL_DEVICES", "pthread pthread pthread", 1);
    gpu_set_up(state);
    if (gpu_reason.status == IRON_OK && iron_device_count(gpu_backend()) >= 3)
        several = "0,1,2";
    return 0;
}

static iron_config devices_config(void) {
    iron_config c = gpu_config();

    c.devices = several;
    return c;
}

/* An engine on one CPU thread; the configuration is the same otherwise. */
static iron_engine *reference_of(iron_config c) {
    c = as_on_cpu(c);
    c.devices = NULL;
    return create(&c);
}

static void lists_are_read(void **state) {
    static const char *const wrong[] = {"",   ",",  "0,",   ",0",  "a",          "0 ",
                                        "-1", "+1", "0,,1", "All", "99999999999"};
    iron__gpu_devices d;
    char text[IRON_GPU_DEVICES_TEXT], many[3 * IRON_GPU_DEVICES_MAX] = "0";
    iron_error err;

    (void)state;
    for (size_t k = 0; k < COUNT(wrong); k++) {
        assert_refused(iron__gpu_devices_parse(wrong[k], 0, &d, &err), IRON_E_ARG, &err);
        assert_says(&err, "all");
    }
    assert_ok(iron__gpu_devices_parse("7,0,7", 1, &d, &err), &err);
    iron__gpu_devices_print(&d, text);
    assert_string_equal(text, "7,0,7");
    assert_ok(iron__gpu_devices_parse(NULL, 5, &d, &err), &err);
    iron__gpu_devices_print(&d, text);
    assert_string_equal(text, "5");
    assert_ok(iron__gpu_devices_parse("all", 5, &d, &err), &err);
    assert_true(d.is_all);
    assert_ok(iron__gpu_choose("cpu", &d, &err), &err);
    assert_int_equal(d.count, 1);
    assert_int_equal(d.index[0], 0);
    assert_ok(iron__gpu_devices_parse("0,0", 0, &d, &err), &err);
    assert_refused(iron__gpu_choose("cpu", &d, &err), IRON_E_ARG, &err);
    for (size_t k = 1; k < IRON_GPU_DEVICES_MAX; k++)
        strcat(many, ",0");
    assert_ok(iron__gpu_devices_parse(many, 0, &d, &err), &err);
    assert_int_equal(d.count, IRON_GPU_DEVICES_MAX);
    strcat(many, ",0");
    assert_refused(iron__gpu_devices_parse(many, 0, &d, &err), IRON_E_ARG, &err);
}

static void engines_describe_themselves(void **state) {
    iron_config c = devices_config();
    size_t devices;
    iron_engine *e;
    iron_error err;

    (void)state;
    NEED_GPU();
    e = engine_of(&c);
    assert_non_null(strstr(iron_engine_device(e), several));
    assert_string_equal(iron_engine_config(e)->devices, several);
    iron_engine_destroy(e);
    c.devices = "all";
    c.mode = NULL;
    devices = iron_device_count(gpu_backend());
    e = engine_of(&c);
    assert_int_equal(e->members ? e->members->count : 1, devices);
    iron_engine_destroy(e);
    c.devices = "0";
    c.device = 99; /* not looked at */
    e = engine_of(&c);
    assert_null(e->members);
    assert_null(iron_engine_config(e)->devices);
    iron_engine_destroy(e);
    c.devices = "0,99";
    assert_refused(iron_engine_create(&c, &e, &err), IRON_E_ARG, &err);
    assert_says(&err, "device 99");
    c.devices = several;
    c.mode = "reduce";
    assert_refused(iron_engine_create(&c, &e, &err), IRON_E_ARG, &err);
    assert_says(&err, "champion");
}

/* A stream in pieces, of which some leave a batch open and some are long enough to be shared. */
static void compare_feeds(iron_config c, const size_t *pieces, size_t count, uint64_t seed) {
    iron_engine *gpu = engine_of(&c), *cpu = reference_of(c);
    iron_error err;

    for (size_t k = 0; k < count; k++) {
        uint32_t *tokens = grab_tokens(seed + k, UINT64_C(1) << 32, pieces[k]);

        assert_ok(iron_engine_feed(gpu, tokens, pieces[k], &err), &err);
        assert_ok(iron_engine_feed(cpu, tokens, pieces[k], &err), &err);
        assert_same_engines(gpu, cpu);
        free(tokens);
        if (k % 2) {
            assert_ok(iron_engine_end_batch(gpu, &err), &err);
            assert_ok(iron_engine_end_batch(cpu, &err), &err);
        }
    }
    assert_same_engines(gpu, cpu);
    iron_engine_destroy(gpu);
    iron_engine_destroy(cpu);
}

static void feeds_are_shared(void **state) {
    static const size_t pieces[] = {5, TOKENS, 3, 1, TOKENS + 7, 70000, TOKENS + 1234};
    static const uint64_t batches[] = {1000, 1001, 1002, 64, 300000, UINT64_C(1) << 30};

    (void)state;
    NEED_GPU();
    for (size_t k = 0; k < COUNT(batches); k++)
        for (uint32_t with_seal = 0; with_seal < 2; with_seal++) {
            iron_config c = devices_config();

            c.batch = batches[k];
            c.with_seal = with_seal;
            c.nodes = k % 2 ? 33 : 1; /* fewer nodes than points, too */
            c.positions = k % 3 ? IRON_POSITIONS_STREAM : IRON_POSITIONS_BATCH;
            compare_feeds(c, pieces, COUNT(pieces), 100 * k);
        }
}

/* A few hundred batches pass 2^24, where sums round and the order counts. */
static void order_counts(void **state) {
    static const uint32_t points[] = {1, 65535};
    static const size_t pieces[] = {TOKENS, TOKENS + 5};
    iron_config c = devices_config();

    (void)state;
    NEED_GPU();
    c.batch = 500;
    c.lattice = points;
    c.lattice_count = COUNT(points);
    compare_feeds(c, pieces, COUNT(pieces), 77);
}

static void tokens_of_every_width(void **state) {
    static const iron_dtype dtypes[] = {IRON_DTYPE_U8, IRON_DTYPE_U16, IRON_DTYPE_I64};

    (void)state;
    NEED_GPU();
    for (size_t w = 0; w < COUNT(dtypes); w++) {
        size_t bytes = TOKENS * iron_dtype_bytes(dtypes[w]);
        iron_config c = devices_config();
        iron_engine *gpu = engine_of(&c), *cpu = reference_of(c);
        unsigned char *tokens = grab(bytes);
        uint64_t position;
        uint32_t value, same;
        iron_error err;

        for (size_t k = 0; k < bytes; k++)
            tokens[k] = dtypes[w] == IRON_DTYPE_I64 && k % 8 > 3 ? 0 : (unsigned char)(k * k >> 3);
        iron_engine_count_out_of_vocab(gpu);
        iron_engine_count_out_of_vocab(cpu);
        assert_ok(iron_engine_feed_as(gpu, dtypes[w], tokens, TOKENS, &err), &err);
        assert_ok(iron_engine_feed_as(cpu, dtypes[w], tokens, TOKENS, &err), &err);
        assert_same_engines(gpu, cpu);
        assert_int_equal(iron_engine_out_of_vocab(gpu, &position, &value),
                         iron_engine_out_of_vocab(cpu, &position, &same));
        assert_int_equal(value, same);
        iron_engine_destroy(gpu);
        iron_engine_destroy(cpu);
        free(tokens);
    }
}

static iron_source *open_file(const char *path, iron_dtype dtype) {
    iron_source_options o = {
        .struct_size = sizeof o, .dtype = dtype, .paths = &path, .path_count = 1};
    iron_source *source = NULL;
    iron_error err;

    assert_ok(iron_source_open(&o, &source, &err), &err);
    return source;
}

typedef struct seen_progress {
    uint64_t last, total, cancel_at;
} seen_progress;

static int note_progress(void *context, uint64_t done, uint64_t total) {
    seen_progress *seen = context;

    assert_true(done >= seen->last && done <= total);
    seen->last = done;
    seen->total = total;
    return seen->cancel_at > 0 && done >= seen->cancel_at;
}

static void files_are_shared(void **state) {
    file_name path = name_in(&gpu_place, "tokens.bin"), saved = name_in(&gpu_place, "state");
    uint32_t *tokens;

    (void)state;
    NEED_GPU();
    tokens = grab_tokens(5, 60000, TOKENS + 3);
    file_write(path.path, tokens, (TOKENS + 3) * sizeof *tokens);
    for (uint32_t turn = 0; turn < 3; turn++) {
        iron_config c = devices_config(), run = c;
        iron_engine *gpu, *cpu, *loaded = NULL;
        iron_source *source = open_file(path.path, IRON_DTYPE_U32);
        seen_progress seen = {0};
        uint64_t position = 0, same = 0;
        uint32_t value;
        iron_error err;

        c.with_seal = 1;
        gpu = engine_of(&c);
        cpu = reference_of(c);
        iron_engine_count_out_of_vocab(gpu);
        iron_engine_count_out_of_vocab(cpu);
        assert_ok(iron_engine_prepare(gpu, &err), &err);
        /* the whole source; a range of it; a range, and then what follows */
        if (turn == 0)
            assert_ok(iron_engine_feed_source(gpu, source, note_progress, &seen, &err), &err);
        else
            assert_ok(
                iron_engine_feed_range(gpu, source, 0, TOKENS - 40, note_progress, &seen, &err),
                &err);
        if (turn == 2)
            assert_ok(iron_engine_feed_source(gpu, source, NULL, NULL, &err), &err);
        assert_int_equal(seen.last, turn == 0 ? TOKENS + 3 : TOKENS - 40);
        assert_ok(iron_engine_feed(cpu, tokens, turn == 1 ? TOKENS - 40 : TOKENS + 3, &err), &err);
        assert_same_engines(gpu, cpu);
        assert_int_equal(iron_engine_out_of_vocab(gpu, &position, &value),
                         iron_engine_out_of_vocab(cpu, &same, &value));
        assert_int_equal(position, same);
        assert_ok(iron_engine_end_batch(gpu, &err), &err);
        assert_ok(iron_engine_save(gpu, saved.path, &err), &err);
        assert_ok(iron_engine_load(saved.path, &run, &loaded, &err), &err);
        assert_non_null(loaded->members);
        assert_same_engines(loaded, gpu);
        iron_engine_destroy(loaded);
        iron_engine_destroy(gpu);
        iron_engine_destroy(cpu);
        iron_source_close(source);
    }
    free(tokens);
}

/* Two bad tokens, in the ranges of two devices: the first is reported, with its place. */
static void the_first_bad_token(void **state) {
    file_name path = name_in(&gpu_place, "bad.bin");
    iron_config c = devices_config();
    iron_scan_options o;
    iron_manifest *m = NULL;
    iron_source *source;
    iron_engine *e;
    int64_t *tokens;
    iron_error err;

    (void)state;
    NEED_GPU();
    tokens = grab(TOKENS * sizeof *tokens);
    memset(tokens, 0, TOKENS * sizeof *tokens);
    tokens[TOKENS / 2 + 11] = tokens[TOKENS - 1] = -5;
    file_write(path.path, tokens, TOKENS * sizeof *tokens);
    e = engine_of(&c);
    source = open_file(path.path, IRON_DTYPE_I64);
    assert_refused(iron_engine_feed_source(e, source, NULL, NULL, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "position 524299");
    assert_says(&err, "bad.bin");
    assert_refused(iron_engine_feed_as(e, IRON_DTYPE_I64, tokens + TOKENS / 2, 20, &err),
                   IRON_E_FORMAT, &err);
    iron_engine_destroy(e);
    iron_source_close(source);
    source = open_file(path.path, IRON_DTYPE_I64);
    iron_scan_options_init(&o);
    o.backend = gpu_backend();
    o.devices = several;
    assert_refused(iron_scan(source, &o, &m, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "524299");
    assert_null(m);
    iron_source_close(source);
    free(tokens);
}

static void feeds_are_cancelled(void **state) {
    file_name path = name_in(&gpu_place, "long.bin");
    seen_progress seen = {.cancel_at = 1};
    iron_config c = devices_config();
    iron_scan_options o;
    iron_manifest *m = NULL;
    iron_source *source;
    uint32_t *tokens;
    iron_engine *e;
    iron_error err;

    (void)state;
    NEED_GPU();
    tokens = grab_tokens(9, 100, 4 * TOKENS);
    file_write(path.path, tokens, 4 * TOKENS * sizeof *tokens);
    e = engine_of(&c);
    source = open_file(path.path, IRON_DTYPE_U32);
    assert_refused(iron_engine_feed_source(e, source, note_progress, &seen, &err), IRON_E_CANCELLED,
                   &err);
    iron_engine_destroy(e);
    iron_source_close(source);
    source = open_file(path.path, IRON_DTYPE_U32);
    iron_scan_options_init(&o);
    o.backend = gpu_backend();
    o.devices = several;
    o.progress = note_progress;
    o.context = &seen;
    seen.last = 0;
    assert_refused(iron_scan(source, &o, &m, &err), IRON_E_CANCELLED, &err);
    assert_null(m);
    iron_source_close(source);
    free(tokens);
}

/* One device is lost: the error has its number, every later call returns it, nothing is saved. */
static void a_lost_device(void **state) {
    file_name saved = name_in(&gpu_place, "none");
    iron_report report = {.struct_size = sizeof report};
    iron_config c = devices_config();
    char name[24];
    uint32_t *tokens;
    iron_engine *e;
    iron_error err;

    (void)state;
    NEED_GPU();
    tokens = grab_tokens(9, 100, TOKENS);
    e = engine_of(&c);
    assert_ok(iron_engine_feed(e, tokens, TOKENS, &err), &err);
    device_of(e->members->each[2].engine)->failure =
        (iron_error){.status = IRON_E_IO, .native = 719, .text = "it fell off the bus"};
    snprintf(name, sizeof name, "device %u: ", e->choice.devices.index[2]);
    assert_refused(iron_engine_feed(e, tokens, TOKENS, &err), IRON_E_IO, &err);
    assert_says(&err, name);
    assert_says(&err, "it fell off the bus");
    assert_refused(iron_engine_feed(e, tokens, 1, &err), IRON_E_IO, &err);
    assert_refused(iron_engine_report(e, &report, &err), IRON_E_IO, &err);
    assert_refused(iron_engine_save(e, saved.path, &err), IRON_E_IO, &err);
    assert_says(&err, name);
    assert_int_not_equal(access(saved.path, F_OK), 0);
    iron_engine_destroy(e);
    free(tokens);
}

/* What a GPU records equals what the CPU records, past the entries of one launch. */
static void batches_are_recorded(void **state) {
    const uint64_t batches[] = {16, 20000};

    (void)state;
    NEED_GPU();
    for (size_t k = 0; k < COUNT(batches); k++) {
        iron_config c = gpu_config();
        size_t count = 6000 * 16 + 5, capacity = count / batches[k] + 1;
        iron_effect effect = {.struct_size = sizeof effect}, same = effect;
        iron_batch_effect *record[2] = {grab(capacity * 8), grab(capacity * 8)};
        uint32_t *tokens = grab_tokens(k, 50257, count);
        iron_engine *e, *cpu;
        iron_error err;

        c.batch = batches[k];
        c.with_seal = 1;
        e = engine_of(&c);
        cpu = reference_of(c);
        for (size_t n = 0; n < 2; n++) {
            iron_engine *to = n ? cpu : e;

            assert_ok(iron_engine_begin_at(to, 400, &err), &err);
            assert_ok(iron_engine_record(to, record[n], capacity, &err), &err);
            assert_ok(iron_engine_feed(to, tokens, 1003, &err), &err);
            assert_int_equal(report_of(to).open_tokens, 1003 % c.batch);
            assert_ok(iron_engine_feed(to, tokens + 1003, count - 1003, &err), &err);
            assert_ok(iron_engine_end_batch(to, &err), &err);
            assert_refused(iron_engine_feed(to, tokens, 2 * (size_t)c.batch, &err), IRON_E_STATE,
                           &err);
            assert_ok(iron_engine_effect(to, n ? &same : &effect, NULL, &err), &err);
        }
        assert_memory_equal(&effect, &same, sizeof effect);
        assert_memory_equal(record[0], record[1], capacity * 8);
        iron_engine_destroy(e);
        iron_engine_destroy(cpu);
        free(tokens);
        free(record[0]);
        free(record[1]);
    }
}

static iron_digest_result scan(const char *path, const char *backend, const char *devices) {
    iron_source *source = open_file(path, IRON_DTYPE_U32);
    iron_digest_result result = {.struct_size = sizeof result};
    iron_manifest *m = NULL;
    iron_scan_options o;
    iron_error err;

    iron_scan_options_init(&o);
    o.backend = backend;
    o.devices = devices;
    o.vocab = 50257;
    assert_ok(iron_scan(source, &o, &m, &err), &err);
    assert_ok(iron_manifest_digest(m, &result, &err), &err);
    iron_manifest_destroy(m);
    iron_source_close(source);
    return result;
}

static void scans_are_shared(void **state) {
    static const size_t sizes[] = {0, 1, 1000, TOKENS - 1, TOKENS, TOKENS + 2};
    file_name path = name_in(&gpu_place, "scanned.bin");

    (void)state;
    NEED_GPU();
    for (size_t k = 0; k < COUNT(sizes); k++) {
        uint32_t *tokens = grab_tokens(k, 50300, sizes[k] + 1);
        iron_digest_result a, b;

        file_write(path.path, tokens, sizes[k] * sizeof *tokens);
        a = scan(path.path, gpu_backend(), several);
        b = scan(path.path, "cpu", "all");
        assert_memory_equal(&a, &b, sizeof a);
        free(tokens);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_read),        cmocka_unit_test(engines_describe_themselves),
        cmocka_unit_test(feeds_are_shared),      cmocka_unit_test(order_counts),
        cmocka_unit_test(tokens_of_every_width), cmocka_unit_test(files_are_shared),
        cmocka_unit_test(the_first_bad_token),   cmocka_unit_test(feeds_are_cancelled),
        cmocka_unit_test(a_lost_device),         cmocka_unit_test(batches_are_recorded),
        cmocka_unit_test(scans_are_shared),
    };

    return cmocka_run_group_tests_name("gpu_devices", tests, set_up, gpu_tear_down);
}
