/* SPDX-License-Identifier: MIT */
/*
 * test_effect.c: a stream fed by several engines, each with a range of batches, against one engine
 * that was fed all of it: the same report, the same nodes, the same saved file, and the same again
 * after both continue. Effects are applied one by one, joined first, or batch by batch; near 2^24
 * only the last is right, and the test shows that the order counts there.
 */
#include "engine_support.h"
#include "source_support.h"

#include <math.h>

#define RANGES_MAX  9u
#define TOKENS_MAX  20000u
#define NODES_MAX   300u
#define BATCHES_MAX 20000u

/* A configuration, a stream, and its cuts. */
typedef struct stage {
    iron_config config;
    uint32_t points[64];
    float activations[NODES_MAX];
    uint32_t *tokens;
    size_t count;
    size_t cuts[RANGES_MAX + 1];
    size_t ranges;
} stage;

static void feed(iron_engine *e, const uint32_t *tokens, size_t count) {
    iron_error err;

    assert_ok(iron_engine_feed(e, tokens, count, &err), &err);
    assert_ok(iron_engine_end_batch(e, &err), &err);
}

/* Compares everything that engines report, and the bytes that they save. */
static void assert_same(iron_engine *a, iron_engine *b) {
    iron_report x = report_of(a), y = report_of(b);
    size_t nodes = (size_t)iron_engine_config(a)->nodes, bytes;
    file_name first, second;
    iron_error err;
    folder f;
    char *saved;

    assert_int_equal(x.tokens, y.tokens);
    assert_int_equal(x.batches, y.batches);
    assert_int_equal(x.xor_total, y.xor_total);
    assert_int_equal(x.sum, y.sum);
    assert_int_equal(x.state, y.state);
    assert_string_equal(x.seal, y.seal);
    assert_memory_equal(x.seal_words, y.seal_words, sizeof x.seal_words);
    assert_memory_equal(iron_engine_xor_accumulators(a), iron_engine_xor_accumulators(b),
                        nodes * sizeof(uint32_t));
    assert_memory_equal(iron_engine_potentials(a), iron_engine_potentials(b),
                        nodes * sizeof(float));
    folder_make(&f);
    first = name_in(&f, "a");
    second = name_in(&f, "b");
    assert_ok(iron_engine_save(a, first.path, &err), &err);
    assert_ok(iron_engine_save(b, second.path, &err), &err);
    saved = file_read(first.path, &bytes);
    assert_file_holds(second.path, saved, bytes);
    free(saved);
    folder_remove(&f);
}

static void random_lattice(stage *s, rng *r) {
    uint32_t point = 0;

    s->config.lattice_count = (uint32_t)(2 + rng_below(r, 63));
    for (uint32_t k = 0; k < s->config.lattice_count; k++)
        s->points[k] = point += (uint32_t)(1 + rng_below(r, rng_below(r, 2) ? 8 : 900));
    s->config.lattice = s->points;
}

/* Cuts at whole batches, and for the seal at multiples of 4; empty ranges too. */
static void random_cuts(stage *s, rng *r) {
    size_t grid = (size_t)s->config.batch * (s->config.with_seal ? 4 : 1);

    s->ranges = (size_t)(1 + rng_below(r, RANGES_MAX));
    s->cuts[0] = 0;
    s->cuts[s->ranges] = s->count;
    for (size_t k = 1; k < s->ranges; k++) {
        size_t cut =
            s->cuts[k - 1] + (size_t)rng_below(r, 2 * s->count / s->ranges / grid + 2) * grid;

        s->cuts[k] = cut < s->count ? cut : s->count;
    }
    /* the stream's end may be off the grid: the next range is empty and begins on the grid */
}

static void random_stage(stage *s, rng *r) {
    static const char *const modes[] = {"auto", "scalar", "champion", "node"};

    *s = (stage){.count = (size_t)rng_below(r, TOKENS_MAX)};
    iron_config_init(&s->config);
    s->config.backend = "cpu";
    s->config.mode = modes[rng_below(r, COUNT(modes))];
    s->config.threads = (uint32_t)(1 + rng_below(r, 3));
    s->config.nodes = rng_below(r, 3) ? 1 + rng_below(r, NODES_MAX) : 1 + rng_below(r, 4);
    s->config.vocab = 2 + rng_below(r, 70000);
    s->config.batch = 1 + rng_below(r, rng_below(r, 2) ? 40 : 3000);
    s->config.positions = rng_below(r, 2) ? IRON_POSITIONS_STREAM : IRON_POSITIONS_BATCH;
    s->config.with_seal = rng_below(r, 2) != 0;
    if (rng_below(r, 4))
        random_lattice(s, r);
    if (rng_below(r, 2)) {
        for (size_t j = 0; j < s->config.nodes; j++)
            s->activations[j] = (float)((double)rng_below(r, 2001) / 50 - 20);
        s->config.activations = s->activations;
    }
    s->tokens = grab_tokens(rng_next(r), s->config.vocab, s->count);
    random_cuts(s, r);
}

/* The seal of a range begins on the grid, even if the stream has ended off it. */
static uint64_t begin_of(const stage *s, size_t range) {
    uint64_t first = s->cuts[range];

    return first == s->cuts[range + 1] ? first / 4 * 4 : first;
}

static void feed_range(iron_engine *e, const stage *s, size_t k) {
    iron_error err;

    assert_ok(iron_engine_begin_at(e, begin_of(s, k), &err), &err);
    feed(e, s->tokens + s->cuts[k], s->cuts[k + 1] - s->cuts[k]);
}

/* Applies effects as sums, one after the other. */
static void apply_each(iron_engine *whole, iron_engine *rank, const stage *s) {
    int32_t additions[NODES_MAX];
    iron_effect effect = {.struct_size = sizeof effect};
    iron_error err;

    for (size_t k = 0; k < s->ranges; k++) {
        feed_range(rank, s, k);
        assert_ok(iron_engine_effect(rank, &effect, additions, &err), &err);
        assert_ok(iron_engine_apply(whole, &effect, additions, &err), &err);
    }
}

/* Applies effects as sums, joined first, as a reduction over ranks does. */
static void apply_joined(iron_engine *whole, iron_engine *rank, const stage *s) {
    int32_t total[NODES_MAX] = {0}, additions[NODES_MAX];
    iron_effect joined = {.struct_size = sizeof joined}, effect = joined;
    iron_error err;

    for (size_t k = 0; k < s->ranges; k++) {
        feed_range(rank, s, k);
        assert_ok(iron_engine_effect(rank, k ? &effect : &joined, additions, &err), &err);
        if (k > 0)
            assert_ok(iron_effect_join(&joined, &effect, &err), &err);
        for (size_t j = 0; j < s->config.nodes; j++)
            total[j] += additions[j];
    }
    assert_ok(iron_engine_apply(whole, &joined, total, &err), &err);
}

/* Applies recorded batches in order. */
static void apply_recorded(iron_engine *whole, iron_engine *rank, const stage *s) {
    iron_batch_effect *batches = grab(BATCHES_MAX * sizeof *batches);
    iron_effect effect = {.struct_size = sizeof effect};
    iron_error err;

    for (size_t k = 0; k < s->ranges; k++) {
        size_t count = s->cuts[k + 1] - s->cuts[k];

        assert_ok(iron_engine_begin_at(rank, begin_of(s, k), &err), &err);
        assert_ok(iron_engine_record(rank, batches, count / s->config.batch + 1, &err), &err);
        feed(rank, s->tokens + s->cuts[k], count);
        assert_ok(iron_engine_effect(rank, &effect, NULL, &err), &err);
        assert_int_equal(effect.has_map, 0);
        assert_ok(iron_engine_apply_batches(whole, &effect, batches, &err), &err);
    }
    free(batches);
}

typedef void (*way)(iron_engine *whole, iron_engine *rank, const stage *s);

/* Every method that is exact for so many batches; then both engines continue. */
static void compare_ways(const stage *s) {
    static const way ways[] = {apply_recorded, apply_each, apply_joined};
    iron_engine *serial = create(&s->config), *rank = create(&s->config);
    size_t exact = (size_t)iron_engine_exact_batches(rank);

    feed(serial, s->tokens, s->count);
    for (size_t w = 0; w < (s->count / s->config.batch < exact ? COUNT(ways) : 1); w++) {
        iron_engine *whole = create(&s->config), *longer = create(&s->config);

        ways[w](whole, rank, s);
        assert_same(serial, whole);
        feed(longer, s->tokens, s->count);
        feed(longer, s->tokens, s->count / 2);
        feed(whole, s->tokens, s->count / 2);
        assert_same(longer, whole);
        iron_engine_destroy(whole);
        iron_engine_destroy(longer);
    }
    iron_engine_destroy(serial);
    iron_engine_destroy(rank);
}

static void ranges_are_the_whole(void **state) {
    size_t cases = is_long_test() ? 3000 : 40;
    rng r = {2026};

    (void)state;
    for (size_t n = 0; n < cases; n++) {
        stage s;

        random_stage(&s, &r);
        compare_ways(&s);
        free(s.tokens);
    }
}

/* Ranges are applied to an engine after begin_at; its effect is the effect of all of them. */
static void effects_nest(void **state) {
    iron_effect inner = {.struct_size = sizeof inner}, outer = inner;
    int32_t additions[NODES_MAX], outer_additions[NODES_MAX];
    iron_batch_effect batches[64];
    rng r = {77};

    (void)state;
    for (size_t n = 0; n < 40; n++) {
        iron_engine *serial, *rank, *middle, *whole;
        iron_error err;
        stage s;

        random_stage(&s, &r);
        s.config.batch = 1 + s.count / 40;
        s.cuts[1] = s.config.batch * 12;
        s.cuts[2] = s.config.batch * 24;
        if (s.count < s.cuts[2])
            s.count = s.cuts[2] = s.cuts[1] = 0;
        serial = create(&s.config);
        rank = create(&s.config);
        middle = create(&s.config);
        whole = create(&s.config);
        feed(serial, s.tokens, s.count);
        feed(whole, s.tokens, s.cuts[1]);
        assert_ok(iron_engine_begin_at(middle, s.cuts[1], &err), &err);
        feed_range(rank, &s, 1);
        assert_ok(iron_engine_effect(rank, &inner, additions, &err), &err);
        assert_ok(iron_engine_apply(middle, &inner, additions, &err), &err);
        assert_ok(iron_engine_begin_at(rank, s.cuts[2], &err), &err);
        assert_ok(iron_engine_record(rank, batches, COUNT(batches), &err), &err);
        feed(rank, s.tokens + s.cuts[2], s.count - s.cuts[2]);
        assert_ok(iron_engine_effect(rank, &inner, NULL, &err), &err);
        assert_ok(iron_engine_apply_batches(middle, &inner, batches, &err), &err);
        assert_ok(iron_engine_effect(middle, &outer, outer_additions, &err), &err);
        assert_ok(iron_engine_apply(whole, &outer, outer_additions, &err), &err);
        assert_same(serial, whole);
        iron_engine_destroy(serial);
        iron_engine_destroy(rank);
        iron_engine_destroy(middle);
        iron_engine_destroy(whole);
        free(s.tokens);
    }
}

/* Large activations, and tokens that mostly increase the potential: every batch adds up to
 * 65,535. */
static void steep_stage(stage *s) {
    static const uint32_t points[] = {1, 2, 301, 5000, 65535};
    rng r = {31};

    *s = (stage){.count = 6000};
    iron_config_init(&s->config);
    s->config.backend = "cpu";
    s->config.nodes = 150;
    s->config.vocab = 1000;
    s->config.batch = 4;
    s->config.positions = IRON_POSITIONS_BATCH;
    s->config.with_seal = 1;
    memcpy(s->points, points, sizeof points);
    s->config.lattice = s->points;
    s->config.lattice_count = COUNT(points);
    for (size_t j = 0; j < s->config.nodes; j++)
        s->activations[j] = (float)(1 + j * j * 100);
    s->config.activations = s->activations;
    s->tokens = grab(s->count * sizeof *s->tokens);
    for (size_t k = 0; k < s->count; k++)
        s->tokens[k] = (uint32_t)(rng_below(&r, 5) ? 500 + rng_below(&r, 80) : 0);
    s->ranges = 5;
    for (size_t k = 0; k <= s->ranges; k++)
        s->cuts[k] = k * 1200;
}

static uint64_t state_of_reversed(const stage *s, iron_engine *rank) {
    iron_batch_effect *batches = grab(BATCHES_MAX * sizeof *batches);
    iron_effect effect = {.struct_size = sizeof effect};
    iron_engine *whole = create(&s->config);
    size_t count = s->count / (size_t)s->config.batch;
    uint64_t state;
    iron_error err;

    assert_ok(iron_engine_begin_at(rank, 0, &err), &err);
    assert_ok(iron_engine_record(rank, batches, count, &err), &err);
    feed(rank, s->tokens, s->count);
    assert_ok(iron_engine_effect(rank, &effect, NULL, &err), &err);
    for (size_t k = 0; k < count / 2; k++) {
        float first = batches[k].potential;

        batches[k].potential = batches[count - 1 - k].potential;
        batches[count - 1 - k].potential = first;
    }
    assert_ok(iron_engine_apply_batches(whole, &effect, batches, &err), &err);
    state = report_of(whole).state;
    iron_engine_destroy(whole);
    free(batches);
    return state;
}

static void order_counts_beyond_the_limit(void **state) {
    int32_t additions[NODES_MAX];
    iron_effect effect = {.struct_size = sizeof effect};
    iron_engine *serial, *rank, *whole;
    iron_error err;
    stage s;

    (void)state;
    steep_stage(&s);
    serial = create(&s.config);
    rank = create(&s.config);
    whole = create(&s.config);
    feed(serial, s.tokens, s.count);
    assert_true(fabsf(iron_engine_potentials(serial)[NODES_MAX / 2 - 1]) > 0x1p24f);
    apply_recorded(whole, rank, &s);
    assert_same(serial, whole);
    assert_true(state_of_reversed(&s, rank) != report_of(serial).state);

    /* sums that would round are refused: too many batches at once, or too many in total */
    assert_ok(iron_engine_begin_at(rank, 0, &err), &err);
    assert_int_equal(iron_engine_exact_batches(rank), ((1 << 24) - 1) / 65535);
    feed(rank, s.tokens, s.count);
    assert_refused(iron_engine_effect(rank, &effect, additions, &err), IRON_E_STATE, &err);
    assert_says(&err, "2^24");
    iron_engine_destroy(whole);
    whole = create(&s.config);
    feed(whole, s.tokens, 240 * 4);
    assert_true(iron_engine_exact_batches(whole) < 240);
    assert_ok(iron_engine_begin_at(rank, 240 * 4, &err), &err);
    feed(rank, s.tokens + (size_t)240 * 4, (size_t)240 * 4);
    assert_ok(iron_engine_effect(rank, &effect, additions, &err), &err);
    assert_refused(iron_engine_apply(whole, &effect, additions, &err), IRON_E_STATE, &err);
    iron_engine_destroy(serial);
    iron_engine_destroy(rank);
    iron_engine_destroy(whole);
    free(s.tokens);
}

/* Sums while they are exact, and batches in order afterwards, wherever the limit is exceeded. */
static void sums_then_order(void **state) {
    int32_t additions[NODES_MAX];
    iron_batch_effect batches[16];
    iron_effect effect = {.struct_size = sizeof effect};
    iron_engine *serial, *rank, *whole;
    size_t sums = 0;
    iron_error err;
    stage s;

    (void)state;
    steep_stage(&s);
    serial = create(&s.config);
    rank = create(&s.config);
    whole = create(&s.config);
    feed(serial, s.tokens, s.count);
    for (size_t at = 0; at < s.count; at += 40) {
        bool is_exact = iron_engine_exact_batches(whole) >= 10;

        assert_ok(iron_engine_begin_at(rank, at, &err), &err);
        if (!is_exact)
            assert_ok(iron_engine_record(rank, batches, COUNT(batches), &err), &err);
        feed(rank, s.tokens + at, 40);
        assert_ok(iron_engine_effect(rank, &effect, is_exact ? additions : NULL, &err), &err);
        assert_ok(is_exact ? iron_engine_apply(whole, &effect, additions, &err)
                           : iron_engine_apply_batches(whole, &effect, batches, &err),
                  &err);
        sums += is_exact;
    }
    assert_true(sums > 10 && sums < 140);
    assert_same(serial, whole);
    iron_engine_destroy(serial);
    iron_engine_destroy(rank);
    iron_engine_destroy(whole);
    free(s.tokens);
}

static void small_stage(stage *s) {
    *s = (stage){.count = 1000, .ranges = 2, .cuts = {0, 400, 1000}};
    iron_config_init(&s->config);
    s->config.backend = "cpu";
    s->config.nodes = 20;
    s->config.batch = 100;
    s->config.with_seal = 1;
    s->tokens = grab_tokens(8, 50257, s->count);
}

static void ranges_are_checked(void **state) {
    int32_t additions[NODES_MAX];
    iron_effect effect = {.struct_size = sizeof effect}, old = {.struct_size = 8};
    folder f;
    iron_engine *e;
    iron_error err;
    stage s;

    (void)state;
    small_stage(&s);
    e = create(&s.config);
    assert_refused(iron_engine_effect(e, &effect, additions, &err), IRON_E_STATE, &err);
    assert_refused(iron_engine_begin_at(e, 402, &err), IRON_E_ARG, &err);
    assert_says(&err, "402");
    feed_range(e, &s, 1);
    assert_int_equal(report_of(e).tokens, 600);
    assert_int_equal(report_of(e).seal_words[0], 600);
    assert_refused(iron_engine_effect(e, &old, additions, &err), IRON_E_ARG, &err);
    assert_refused(iron_engine_effect(e, &effect, NULL, &err), IRON_E_ARG, &err);
    folder_make(&f);
    assert_refused(iron_engine_save(e, name_in(&f, "x").path, &err), IRON_E_STATE, &err);
    assert_int_equal(folder_entries(&f), 0);
    folder_remove(&f);
    assert_ok(iron_engine_feed(e, s.tokens, 1, &err), &err);
    assert_refused(iron_engine_effect(e, &effect, additions, &err), IRON_E_STATE, &err);
    iron_engine_destroy(e);
    free(s.tokens);
}

static void recording_is_checked(void **state) {
    iron_batch_effect batches[3] = {{0, 0}, {0, 0}, {77, 7}};
    int32_t additions[NODES_MAX];
    iron_effect effect = {.struct_size = sizeof effect};
    iron_engine *e;
    iron_error err;
    stage s;

    (void)state;
    small_stage(&s);
    e = create(&s.config);
    assert_refused(iron_engine_record(e, batches, 2, &err), IRON_E_STATE, &err);
    assert_ok(iron_engine_begin_at(e, 0, &err), &err);
    assert_refused(iron_engine_record(e, NULL, 2, &err), IRON_E_STATE, &err);
    assert_ok(iron_engine_record(e, batches, 2, &err), &err);
    assert_refused(iron_engine_feed(e, s.tokens, 300, &err), IRON_E_STATE, &err);
    assert_ok(iron_engine_feed(e, s.tokens, 250, &err), &err);
    assert_refused(iron_engine_end_batch(e, &err), IRON_E_STATE, &err);
    assert_refused(iron_engine_feed(e, s.tokens + 250, 50, &err), IRON_E_STATE, &err);
    assert_int_equal(report_of(e).open_tokens, 50);
    assert_int_equal(batches[2].xors, 77);
    assert_ok(iron_engine_begin_at(e, 0, &err), &err); /* also frees the memory */
    feed(e, s.tokens, 300);
    assert_ok(iron_engine_effect(e, &effect, additions, &err), &err);
    assert_int_equal(effect.batches, 3);
    assert_ok(iron_engine_begin_at(e, 0, &err), &err);
    assert_ok(iron_engine_record(e, batches, 3, &err), &err);
    assert_refused(iron_engine_apply(e, &effect, additions, &err), IRON_E_STATE, &err);
    iron_engine_destroy(e);
    free(s.tokens);
}

static void assert_not_applied(iron_engine *whole, const iron_effect *effect,
                               const int32_t *additions, const char *word) {
    uint64_t before = report_of(whole).state;
    iron_error err;

    assert_refused(iron_engine_apply(whole, effect, additions, &err), IRON_E_ARG, &err);
    assert_says(&err, word);
    assert_int_equal(report_of(whole).state, before);
    assert_int_equal(report_of(whole).tokens, 0);
}

static void damaged_effects_are_refused(void **state) {
    int32_t additions[NODES_MAX] = {0};
    iron_effect first = {.struct_size = sizeof first}, second = first, bad;
    iron_batch_effect nan[4] = {{0, 0}, {0, NAN}, {0, 0}, {0, 0}};
    iron_engine *whole, *e;
    iron_error err;
    stage s;

    (void)state;
    small_stage(&s);
    e = create(&s.config);
    whole = create(&s.config);
    feed_range(e, &s, 1);
    assert_ok(iron_engine_effect(e, &second, additions, &err), &err);
    assert_not_applied(whole, &second, additions, "position 400");
    feed_range(e, &s, 0);
    assert_ok(iron_engine_effect(e, &first, additions, &err), &err);
    assert_refused(iron_effect_join(&second, &first, &err), IRON_E_ARG, &err);
    bad = first;
    bad.map[3] = 12;
    assert_not_applied(whole, &bad, additions, "point 3");
    bad = first;
    bad.kind++;
    assert_not_applied(whole, &bad, additions, "configuration");
    bad = first;
    bad.batches = 401;
    assert_not_applied(whole, &bad, additions, "damaged");
    bad = first;
    bad.struct_size--;
    assert_not_applied(whole, &bad, additions, "struct_size");
    assert_refused(iron_effect_join(&bad, &second, &err), IRON_E_ARG, &err);
    additions[19] = 4 * 511 + 1;
    assert_not_applied(whole, &first, additions, "node 19");
    assert_refused(iron_engine_apply_batches(whole, &first, nan, &err), IRON_E_ARG, &err);
    assert_not_applied(whole, &first, NULL, "recorded");
    bad = first;
    bad.seal_carried = 2; /* and then more tokens */
    assert_refused(iron_effect_join(&bad, &second, &err), IRON_E_ARG, &err);
    assert_says(&err, "multiple of 4");
    iron_engine_destroy(e);
    iron_engine_destroy(whole);
    free(s.tokens);
}

/* Ranges of files from any position, across files, with exactly the tokens asked for. */
static void files_are_fed_by_range(void **state) {
    uint16_t tokens[5000];
    const size_t sizes[] = {1, 1700, 0, 2000, 1299};
    const char *paths[COUNT(sizes)];
    file_name names[COUNT(sizes)];
    iron_source *source;
    iron_config config;
    iron_error err;
    rng r = {9};
    folder f;
    size_t at = 0;

    (void)state;
    fill_u16(tokens, COUNT(tokens));
    folder_make(&f);
    for (size_t k = 0; k < COUNT(sizes); at += sizes[k++]) {
        char name[8];

        snprintf(name, sizeof name, "f%zu", k);
        names[k] = name_in(&f, name);
        file_write(names[k].path, tokens + at, sizes[k] * 2);
        paths[k] = names[k].path;
    }
    source = open_all(IRON_DTYPE_U16, paths, COUNT(paths));
    iron_config_init(&config);
    config.backend = "cpu";
    config.batch = 64;
    for (size_t n = 0; n < 60; n++) {
        size_t first = (size_t)rng_below(&r, COUNT(tokens) + 1);
        size_t count = (size_t)rng_below(&r, COUNT(tokens) - first + 1);
        iron_engine *a = create(&config), *b = create(&config);

        assert_ok(iron_engine_begin_at(a, first, &err), &err);
        assert_ok(iron_engine_begin_at(b, first, &err), &err);
        assert_ok(iron_engine_feed_as(a, IRON_DTYPE_U16, tokens + first, count, &err), &err);
        assert_ok(iron_engine_feed_range(b, source, first, count, NULL, NULL, &err), &err);
        assert_int_equal(report_of(a).open_tokens, report_of(b).open_tokens);
        assert_int_equal(report_of(a).tokens + report_of(a).open_tokens, count);
        assert_int_equal(report_of(a).sum, report_of(b).sum);
        assert_int_equal(report_of(a).state, report_of(b).state);
        iron_engine_destroy(a);
        iron_engine_destroy(b);
    }
    iron_source_close(source);
    folder_remove(&f);
}

static void no_such_range(void **state) {
    const char *dash = "-";
    uint16_t tokens[10] = {0};
    iron_source *source;
    iron_config config;
    iron_engine *e;
    iron_error err;
    folder f;
    file_name name;
    int saved, writer;

    (void)state;
    folder_make(&f);
    name = name_in(&f, "t");
    file_write(name.path, tokens, sizeof tokens);
    iron_config_init(&config);
    config.backend = "cpu";
    e = create(&config);
    source = open_all(IRON_DTYPE_U16, (const char *[]){name.path}, 1);
    assert_refused(iron_engine_feed_range(e, source, 11, 0, NULL, NULL, &err), IRON_E_ARG, &err);
    assert_refused(iron_engine_feed_range(e, source, 4, 7, NULL, NULL, &err), IRON_E_ARG, &err);
    assert_refused(iron_engine_feed_range(e, source, 4, UINT64_MAX, NULL, NULL, &err), IRON_E_ARG,
                   &err);
    assert_ok(iron_engine_feed_range(e, source, 4, 6, NULL, NULL, &err), &err);
    assert_int_equal(report_of(e).open_tokens, 6);
    iron_source_close(source);
    writer = pipe_as_stdin(&saved);
    source = open_all(IRON_DTYPE_U16, &dash, 1);
    assert_refused(iron_engine_feed_range(e, source, 0, 1, NULL, NULL, &err), IRON_E_ARG, &err);
    assert_says(&err, "pipes");
    iron_source_close(source);
    close(writer);
    restore_stdin(saved);
    iron_engine_destroy(e);
    folder_remove(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_the_whole),
        cmocka_unit_test(effects_nest),
        cmocka_unit_test(order_counts_beyond_the_limit),
        cmocka_unit_test(sums_then_order),
        cmocka_unit_test(ranges_are_checked),
        cmocka_unit_test(recording_is_checked),
        cmocka_unit_test(damaged_effects_are_refused),
        cmocka_unit_test(files_are_fed_by_range),
        cmocka_unit_test(no_such_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
