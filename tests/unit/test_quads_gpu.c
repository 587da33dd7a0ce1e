/* SPDX-License-Identifier: MIT */
/*
 * test_quads_gpu.c: the seal and the statistics on a device against their definition: many ways to
 * cut a stream into feeds, every alignment of feed and buffer, the border between two windows of
 * keys, tokens outside the vocabulary at any position, and the kernels that also compute the
 * contribution.
 */
#include "gpu_support.h"

#include "ops/tokens/tokens_gpu.c"

#define TOKENS 70000u
#define VOCAB  50257u

static iron__gpu_device *device;
static iron__gpu_queue *queue;
static iron__gpu_buffer *buffer;
static iron__gpu_program *program;
static uint32_t *tokens;

static void send(void) {
    iron__gpu_copy copy = {
        .to = buffer, .from_host = tokens, .bytes = (TOKENS + 8) * sizeof(uint32_t)};
    iron_error err;

    assert_ok(iron__gpu_copy_bytes(queue, &copy, &err), &err);
    assert_ok(iron__gpu_queue_wait(queue, &err), &err);
}

static int set_up(void **state) {
    iron_error err;

    gpu_set_up(state);
    if (gpu_reason.status != IRON_OK)
        return 0;
    tokens = grab_tokens(5, VOCAB, TOKENS + 8);
    assert_ok(iron__gpu_device_open(gpu_index(), 0, &device, &err), &err);
    assert_ok(iron__gpu_program_load(device, &iron__tokens_image, &program, &err), &err);
    assert_ok(iron__gpu_queue_create(device, &queue, &err), &err);
    assert_ok(iron__gpu_buffer_create(device, IRON_GPU_MEMORY_DEVICE,
                                      (TOKENS + 8) * sizeof(uint32_t), &buffer, &err),
              &err);
    send();
    return 0;
}

static int tear_down(void **state) {
    if (gpu_reason.status == IRON_OK) {
        iron__gpu_buffer_destroy(buffer);
        iron__gpu_queue_destroy(queue);
        iron__gpu_program_unload(device, program);
        iron__gpu_device_close(device);
        free(tokens);
    }
    return gpu_tear_down(state);
}

/* An object that has the parts of the seal only. */
static iron__tokens_gpu *quads_of(bool has_stats, uint32_t last) {
    iron__tokens_gpu *t = calloc(1, sizeof *t);
    iron_error err;

    assert_non_null(t);
    t->config.allocator = iron__allocator_default();
    t->config.program = t->program = program;
    t->config.last = last;
    t->config.outputs = IRON_TOKENS_SEAL | (has_stats ? (uint32_t)IRON_TOKENS_STATS : 0);
    t->device = device;
    assert_ok(quads_build(t, &err), &err);
    return t;
}

/* The state of a stream at a position, to continue from. Its words are arbitrary. */
static iron__quads_total total_at(uint64_t position) {
    iron__quads_total t = {.stats = iron__token_stats_neutral()};

    t.seal.words = (iron__seal_words){position / 4 * 4, 11, 12, 13};
    t.seal.carried = (uint32_t)(position % 4);
    for (uint32_t k = 0; k < t.seal.carried; k++)
        t.seal.carry[k] = 100 + k;
    return t;
}

/* The definition. */
static void take(iron__quads_total *t, const uint32_t *some, size_t count, uint64_t position,
                 uint32_t last) {
    iron__seal_feed(&t->seal, some, count);
    for (size_t k = 0; k < count; k++) {
        bool is_out = some[k] > last;
        iron__token_stats one = {is_out, is_out ? position + k : UINT64_MAX, is_out ? some[k] : 0,
                                 some[k], some[k]};

        t->stats = iron__token_stats_merge(t->stats, one);
    }
}

static void assert_totals(const iron__quads_total *a, const iron__quads_total *b, bool has_stats) {
    assert_memory_equal(&a->seal.words, &b->seal.words, sizeof a->seal.words);
    assert_int_equal(a->seal.carried, b->seal.carried);
    for (uint32_t k = 0; k < a->seal.carried; k++)
        assert_int_equal(a->seal.carry[k], b->seal.carry[k]);
    if (!has_stats)
        return;
    assert_int_equal(a->stats.out_of_vocab, b->stats.out_of_vocab);
    assert_int_equal(a->stats.first_position, b->stats.first_position);
    assert_int_equal(a->stats.first_value, b->stats.first_value);
    assert_int_equal(a->stats.min, b->stats.min);
    assert_int_equal(a->stats.max, b->stats.max);
}

typedef struct stream {
    iron__tokens_gpu *quads;
    iron__quads_total want;
    uint64_t position;
    uint32_t last;
    bool has_stats;
} stream;

static stream stream_at(uint64_t position, bool has_stats, uint32_t last) {
    stream s = {quads_of(has_stats, last), total_at(position), position, last, has_stats};
    iron_error err;

    assert_ok(iron__tokens_gpu_seal_begin(s.quads, queue, &s.want, &err), &err);
    return s;
}

static void feed(stream *s, uint64_t begin, uint64_t count) {
    const tokens_span span = {.begin = begin, .count = count};
    iron_error err;

    s->quads->progress.closed_tokens = s->position;
    assert_ok(launch_seal(s->quads, queue, buffer, &span, &err), &err);
    take(&s->want, tokens + begin, (size_t)count, s->position, s->last);
    s->position += count;
}

static void check(const stream *s) {
    iron__quads_total got;
    iron_error err;

    s->quads->progress.closed_tokens = s->position;
    assert_ok(iron__tokens_gpu_seal_fetch(s->quads, queue, &got, &err), &err);
    assert_totals(&got, &s->want, s->has_stats);
}

static void end(stream *s) {
    check(s);
    iron__tokens_gpu_destroy(s->quads);
}

/* Every remainder of position, begin and count, alone and one after the other. */
static void every_alignment(void **state) {
    (void)state;
    NEED_GPU();
    for (uint64_t position = 0; position < 4; position++) {
        stream s = stream_at(position, position % 2, VOCAB - 1);

        for (uint64_t begin = 0; begin < 5; begin++)
            for (uint64_t count = 0; count < 11; count++)
                feed(&s, begin, count);
        end(&s);
    }
}

static void random_cuts(void **state) {
    rng r = {17};

    (void)state;
    NEED_GPU();
    for (size_t round = 0; round < 4; round++) {
        stream s = stream_at(rng_below(&r, 9), round % 2, VOCAB - 1);

        for (size_t k = 0; k < 12; k++) {
            uint64_t begin = rng_below(&r, 8);

            feed(&s, begin, rng_below(&r, rng_below(&r, 3) ? 3000 : TOKENS));
            if (rng_below(&r, 4) == 0)
                check(&s);
        }
        end(&s);
    }
}

/* Keys change with the upper half of a quad's number: feeds across that border, and far beyond. */
static void across_windows(void **state) {
    static const uint64_t near[] = {(UINT64_C(1) << 34) - 20000, (UINT64_C(1) << 34) - 3,
                                    (UINT64_C(1) << 36) - 4097, (UINT64_C(1) << 62) + 5};

    (void)state;
    NEED_GPU();
    for (size_t k = 0; k < COUNT(near); k++) {
        stream s = stream_at(near[k], true, VOCAB - 1);

        feed(&s, k, 40001);
        feed(&s, 1, 10);
        end(&s);
    }
}

/* The first token outside the vocabulary is reported, whichever group finds it. */
static void outside_the_vocabulary(void **state) {
    static const uint64_t places[] = {0, 3, 4, 1023, 6144, 33333, TOKENS - 1};

    (void)state;
    NEED_GPU();
    for (size_t k = 0; k < COUNT(places); k++) {
        stream s;

        for (size_t n = k; n < COUNT(places); n++)
            tokens[places[n]] |= 0x80000000u + (uint32_t)n;
        send();
        s = stream_at(k, true, VOCAB - 1);
        feed(&s, 0, TOKENS);
        assert_int_equal(s.want.stats.first_position, k + places[k]);
        end(&s);
        for (size_t n = k; n < COUNT(places); n++)
            iron_generate(5, VOCAB, places[n], &tokens[places[n]], 1, NULL);
    }
    send();
    for (uint32_t last = 0; last < 2; last++) { /* nearly all are outside; then none */
        stream s = stream_at(0, true, last ? UINT32_MAX : 0);

        feed(&s, 1, TOKENS);
        end(&s);
    }
}

/* With the contribution: engines whose batches are whole quads (one read), and others. */
static void with_the_contribution(void **state) {
    static const uint64_t batches[] = {16384, 20000, 16386, 70000, 1u << 20};
    static const size_t cuts[] = {4, 65536, 4, 1, 3, 40000, 7, 1, 69999, 70000};

    (void)state;
    NEED_GPU();
    for (size_t b = 0; b < 2 * COUNT(batches); b++) {
        iron_config c = gpu_config(), on_cpu;
        iron_engine *gpu, *cpu;
        iron_error err;

        c.batch = batches[b / 2];
        c.with_seal = 1;
        c.positions = b % 2 ? IRON_POSITIONS_BATCH : IRON_POSITIONS_STREAM;
        on_cpu = as_on_cpu(c);
        gpu = engine_of(&c);
        cpu = engine_of(&on_cpu);
        for (size_t k = 0; k < COUNT(cuts); k++) {
            assert_ok(iron_engine_feed(gpu, tokens, cuts[k], &err), &err);
            assert_ok(iron_engine_feed(cpu, tokens, cuts[k], &err), &err);
            if (k % 3 == 0)
                assert_same_engines(gpu, cpu);
        }
        assert_same_engines(gpu, cpu);
        iron_engine_destroy(gpu);
        iron_engine_destroy(cpu);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_alignment),       cmocka_unit_test(random_cuts),
        cmocka_unit_test(across_windows),        cmocka_unit_test(outside_the_vocabulary),
        cmocka_unit_test(with_the_contribution),
    };

    return cmocka_run_group_tests_name("quads_gpu", tests, set_up, tear_down);
}
