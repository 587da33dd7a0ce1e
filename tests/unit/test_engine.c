/* SPDX-License-Identifier: MIT */
/*
 * test_engine.c: the engine through its public API, in every registry row, with 1 to 8 threads.
 *
 * Golden cases fix the bits. Random configurations are compared with a slow engine written here
 * from SPEC, batch by batch and node by node, without threads, queues or composed maps. Streams are
 * fed in random pieces and in every width. A failed call must leave the engine unchanged.
 */
#include "engine_support.h"

#include "ops/tokens/tokens.h"
#include "selftest/golden.h"

#include <math.h>

/* Per-node rows cost nodes x tokens; beyond this only the long test runs them. */
#define PER_NODE_WORK (UINT64_C(1) << 25)

static iron_config small_config(void) {
    iron_config c;

    iron_config_init(&c);
    c.nodes = 20;
    c.batch = 100;
    c.threads = 2;
    return c;
}

static bool same_nodes(iron_engine *a, iron_engine *b, size_t nodes) {
    return memcmp(iron_engine_xor_accumulators(a), iron_engine_xor_accumulators(b),
                  nodes * sizeof(uint32_t)) == 0 &&
           memcmp(iron_engine_potentials(a), iron_engine_potentials(b), nodes * sizeof(float)) == 0;
}

static bool same_reports(const iron_report *a, const iron_report *b) {
    return a->tokens == b->tokens && a->batches == b->batches && a->xor_total == b->xor_total &&
           a->sum == b->sum && a->state == b->state && a->open_tokens == b->open_tokens &&
           strcmp(a->seal, b->seal) == 0;
}

static void assert_same_engines(iron_engine *a, iron_engine *b, size_t nodes) {
    iron_report x = report_of(a), y = report_of(b);

    assert_true(same_reports(&x, &y));
    assert_true(same_nodes(a, b, nodes));
}

/* In pieces of any length, including empty ones. */
static void feed_pieces(iron_engine *e, const uint32_t *tokens, size_t count, size_t most, rng *r) {
    iron_error err;

    for (size_t done = 0; done < count;) {
        size_t piece = (size_t)rng_below(r, most + 1);

        piece = piece < count - done ? piece : count - done;
        assert_ok(iron_engine_feed(e, tokens + done, piece, &err), &err);
        done += piece;
    }
}

static iron_config golden_config(const iron__golden_case *c, float *activations) {
    iron_config config;

    iron_config_init(&config);
    config.nodes = c->nodes;
    config.vocab = c->vocab;
    config.batch = c->batch;
    config.positions = c->positions;
    config.lattice = c->lattice;
    config.lattice_count = (uint32_t)c->lattice_count;
    for (size_t k = 0; k < c->activations_count; k++)
        activations[k] = (float)c->activations[k];
    config.activations = c->activations_count ? activations : NULL;
    return config;
}

static void assert_golden(const iron__golden_case *c, iron_engine *e) {
    iron_report r = report_of(e);
    char text[24];

    assert_int_equal(r.tokens, c->expect_tokens);
    assert_int_equal(r.batches, c->expect_batches);
    snprintf(text, sizeof text, "%08x", r.xor_total);
    assert_string_equal(text, c->xor_total);
    snprintf(text, sizeof text, "%llu", (unsigned long long)r.sum);
    assert_string_equal(text, c->sum);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)r.state);
    assert_string_equal(text, c->state);
    for (size_t j = 0; j < c->xors_count; j++)
        assert_int_equal(iron_engine_xor_accumulators(e)[j], c->xors[j]);
    for (size_t j = 0; j < c->potentials_count; j++)
        assert_true(iron_engine_potentials(e)[j] == (float)c->potentials[j]);
}

static void run_golden(const iron__golden_case *c, const iron__tokens_variant *row,
                       const uint32_t *tokens, size_t count) {
    float activations[64];
    iron_config config = golden_config(c, activations);
    rng r = {81};

    assert_true(c->activations_count <= COUNT(activations));
    config.mode = row->name;
    for (uint32_t threads = 1; threads <= 8; threads++) {
        iron_engine *e;
        iron_error err;

        config.threads = threads;
        e = create(&config);
        if (threads % 2)
            assert_ok(iron_engine_feed(e, tokens, count, &err), &err);
        else
            feed_pieces(e, tokens, count, 1 + count / 3, &r);
        assert_ok(iron_engine_end_batch(e, &err), &err);
        assert_golden(c, e);
        iron_engine_destroy(e);
    }
}

static void golden_cases_in_every_row(void **state) {
    const iron__golden *g = &iron__golden_vectors;
    size_t runs = 0;

    (void)state;
    for (size_t k = 0; k < g->case_count; k++) {
        const iron__golden_case *c = &g->cases[k];
        size_t count;
        uint32_t *tokens = iron__golden_tokens(c->tokens, c->tokens_count, c->gen_seed,
                                               c->gen_limit, c->gen_count, &count);

        assert_non_null(tokens);
        for (size_t v = 0; v < iron__tokens_variant_count(); v++) {
            const iron__tokens_variant *row = iron__tokens_variant_at(v);
            bool is_heavy = row->per_node && c->nodes * count > PER_NODE_WORK;

            if (!iron__tokens_variant_runs_here(row) || (is_heavy && !is_long_test()))
                continue;
            run_golden(c, row, tokens, count);
            runs++;
        }
        free(tokens);
    }
    assert_true(runs > 6 * g->case_count);
}

/* SPEC's engine: one batch after the other, one node after the other. */
typedef struct slow_engine {
    const iron_config *config;
    const iron_lattice *lattice;
    uint32_t xors[200];
    float potentials[200], activations[200];
    uint64_t tokens, batches, sum;
    uint32_t folded;
} slow_engine;

static void slow_start(slow_engine *s, const iron_config *c, const iron_lattice *l) {
    memset(s, 0, sizeof *s);
    s->config = c;
    s->lattice = l;
    for (uint32_t j = 0; j < c->nodes; j++) {
        s->xors[j] = iron_lattice_points(l)[j % iron_lattice_count(l)];
        s->activations[j] = c->activations ? c->activations[j] : (float)(j + 1) / (float)c->nodes;
    }
}

static void slow_batch(slow_engine *s, const uint32_t *tokens, size_t count) {
    uint64_t half = s->config->vocab / 2, sum = 0;
    uint32_t folded = 0;
    float potential;

    for (size_t k = 0; k < count; k++) {
        uint64_t i = s->config->positions == IRON_POSITIONS_BATCH ? k : s->tokens + k;
        uint32_t p = (uint32_t)(tokens[k] + 137 * i + 17 * (i >> 4));

        folded ^= p;
        sum += p % s->config->vocab;
    }
    potential = (float)((double)(int64_t)(sum - count * half) * (1.0 / (double)half));
    for (uint32_t j = 0; j < s->config->nodes; j++) {
        float c = s->activations[j] * potential;

        s->xors[j] = iron_lattice_quantize_xor(s->lattice, s->xors[j] ^ folded);
        s->potentials[j] += (float)iron_lattice_quantize_real(s->lattice, (double)c);
    }
    s->tokens += count;
    s->batches++;
    s->sum += sum;
    s->folded ^= folded;
}

static void slow_feed(slow_engine *s, const uint32_t *tokens, size_t count) {
    for (size_t done = 0; done < count;) {
        size_t batch = count - done;

        if (batch > s->config->batch)
            batch = (size_t)s->config->batch;
        slow_batch(s, tokens + done, batch);
        done += batch;
    }
}

static void assert_same_as_slow(iron_engine *e, const slow_engine *s) {
    iron_report r = report_of(e);

    assert_true(r.tokens == s->tokens && r.batches == s->batches);
    assert_true(r.sum == s->sum && r.xor_total == s->folded);
    assert_memory_equal(iron_engine_xor_accumulators(e), s->xors,
                        s->config->nodes * sizeof(uint32_t));
    assert_memory_equal(iron_engine_potentials(e), s->potentials, s->config->nodes * sizeof(float));
}

static iron_config random_config(rng *r, float activations[200]) {
    static const uint32_t steep[] = {1, 5, 900, 65535};
    static const uint64_t vocabs[] = {2, 3, 50257, 65536, 128256, UINT64_C(1) << 31};
    iron_config c;

    iron_config_init(&c);
    c.nodes = 1 + rng_below(r, 200);
    c.vocab = vocabs[rng_below(r, COUNT(vocabs))];
    c.batch = rng_below(r, 4) ? 1 + rng_below(r, 3000) : 1 + rng_below(r, 9);
    c.positions = (iron_positions)rng_below(r, 2);
    c.lattice = rng_below(r, 2) ? steep : NULL;
    c.lattice_count = c.lattice ? COUNT(steep) : 0;
    c.threads = 1 + (uint32_t)rng_below(r, 4);
    for (size_t j = 0; j < 200; j++)
        activations[j] = (float)rng_below(r, 2001) / 100.0f - 10.0f;
    c.activations = rng_below(r, 2) ? activations : NULL;
    return c;
}

static void run_random(const iron__tokens_variant *row, const uint32_t *tokens, rng *r) {
    float activations[200];
    iron_config c = random_config(r, activations);
    size_t count = (size_t)rng_below(r, row->per_node ? 4000 : 20000);
    iron_lattice *l = NULL;
    iron_engine *e;
    slow_engine s;
    iron_error err;

    c.mode = row->name;
    assert_ok(iron_lattice_create(c.lattice, c.lattice_count, &l, &err), &err);
    slow_start(&s, &c, l);
    slow_feed(&s, tokens, count);
    e = create(&c);
    feed_pieces(e, tokens, count, rng_below(r, 2) ? 7 * 1000 : 50, r);
    assert_ok(iron_engine_end_batch(e, &err), &err);
    assert_same_as_slow(e, &s);
    iron_engine_destroy(e);
    iron_lattice_destroy(l);
}

static void random_configurations_against_the_definition(void **state) {
    uint32_t *tokens = grab_tokens(83, UINT64_C(1) << 32, 20000);
    int rounds = is_long_test() ? 1000 : 40;
    rng r = {83};

    (void)state;
    for (size_t v = 0; v < iron__tokens_variant_count(); v++)
        for (int k = 0; k < rounds; k++)
            if (iron__tokens_variant_runs_here(iron__tokens_variant_at(v)))
                run_random(iron__tokens_variant_at(v), tokens, &r);
    free(tokens);
}

/* Many thousand batches in one call: more than the runs of a span, more than the queue holds. */
static void batches_of_one_token(void **state) {
    enum { TOKENS = 10000 };
    uint32_t *tokens = grab_tokens(84, 50257, TOKENS);
    iron_config c = small_config();
    iron_lattice *l = NULL;
    iron_engine *e;
    slow_engine s;
    iron_error err;

    (void)state;
    c.batch = 1;
    c.nodes = 150;
    assert_ok(iron_lattice_create(NULL, 0, &l, &err), &err);
    slow_start(&s, &c, l);
    slow_feed(&s, tokens, TOKENS);
    e = create(&c);
    assert_ok(iron_engine_feed(e, tokens, TOKENS, &err), &err);
    assert_int_equal(report_of(e).open_tokens, 0);
    assert_same_as_slow(e, &s);
    iron_engine_destroy(e);
    iron_lattice_destroy(l);
    free(tokens);
}

/* Reading results between pieces applies the queue: later results must not change. */
static void reports_change_nothing(void **state) {
    uint32_t *tokens = grab_tokens(85, 50257, 5000);
    iron_config c = small_config();
    iron_engine *seen, *unseen;
    iron_error err;

    (void)state;
    c.nodes = 300;
    c.with_seal = 1;
    seen = create(&c);
    unseen = create(&c);
    for (size_t k = 0; k < 5000; k += 125) {
        assert_ok(iron_engine_feed(seen, tokens + k, 125, &err), &err);
        report_of(seen);
        assert_non_null(iron_engine_potentials(seen));
    }
    assert_ok(iron_engine_feed(unseen, tokens, 5000, &err), &err);
    assert_same_engines(seen, unseen, 300);
    iron_engine_destroy(seen);
    iron_engine_destroy(unseen);
    free(tokens);
}

static void *store(iron_dtype dtype, const uint32_t *tokens, size_t count) {
    size_t width = iron_dtype_bytes(dtype);
    unsigned char *data = grab(count * width);

    for (size_t k = 0; k < count; k++) {
        uint64_t value = tokens[k];

        memcpy(data + k * width, &value, width);
    }
    return data;
}

static void every_width_gives_the_same(void **state) {
    enum { TOKENS = 200003 };
    static const char *const modes[] = {"champion", "scalar", "hybrid"};
    uint32_t *tokens = grab_tokens(86, 256, TOKENS);
    iron_error err;

    (void)state;
    for (size_t m = 0; m < COUNT(modes); m++) {
        size_t count = m == 2 ? 20003 : TOKENS;
        iron_config c = small_config();
        iron_engine *plain;

        c.batch = 70001;
        c.with_seal = 1;
        c.mode = modes[m];
        plain = create(&c);
        assert_ok(iron_engine_feed(plain, tokens, count, &err), &err);
        for (iron_dtype dtype = IRON_DTYPE_U8; dtype <= IRON_DTYPE_I64; dtype++) {
            iron_engine *e = create(&c);
            char *data = store(dtype, tokens, count);
            size_t first = 33333 % count; /* a second call that begins inside a quad */

            assert_ok(iron_engine_feed_as(e, dtype, data, first, &err), &err);
            assert_ok(iron_engine_feed_as(e, dtype, data + first * iron_dtype_bytes(dtype),
                                          count - first, &err),
                      &err);
            assert_same_engines(e, plain, c.nodes);
            free(data);
            iron_engine_destroy(e);
        }
        iron_engine_destroy(plain);
    }
    free(tokens);
}

/* `data` is refused and the engine is unchanged. */
static void refuse_feed(iron_engine *e, iron_dtype dtype, const void *data, size_t count,
                        iron_status expected, const char *word) {
    iron_report before = report_of(e), after;
    iron_error err;

    assert_refused(iron_engine_feed_as(e, dtype, data, count, &err), expected, &err);
    assert_says(&err, word);
    assert_int_equal(iron_engine_feed_as(e, dtype, data, count, NULL), expected);
    after = report_of(e);
    assert_true(same_reports(&before, &after));
}

static void bad_tokens_change_nothing(void **state) {
    uint32_t *tokens = grab_tokens(87, 50257, 1000);
    int32_t *narrow = store(IRON_DTYPE_I32, tokens, 1000);
    int64_t *wide = store(IRON_DTYPE_I64, tokens, 1000);
    iron_config c = small_config();
    iron_engine *e, *untouched;
    iron_error err;

    (void)state;
    c.with_seal = 1;
    e = create(&c);
    untouched = create(&c);
    assert_ok(iron_engine_feed(e, tokens, 333, &err), &err);
    assert_ok(iron_engine_feed(untouched, tokens, 333, &err), &err);
    narrow[700] = -1;
    refuse_feed(e, IRON_DTYPE_I32, narrow, 1000, IRON_E_FORMAT, "position 1033 is -1;");
    narrow[0] = INT32_MIN;
    refuse_feed(e, IRON_DTYPE_I32, narrow, 1000, IRON_E_FORMAT, "-2147483648");
    wide[999] = INT64_C(1) << 32;
    refuse_feed(e, IRON_DTYPE_I64, wide, 1000, IRON_E_FORMAT, "position 1332 is 4294967296;");
    wide[5] = -7;
    refuse_feed(e, IRON_DTYPE_I64, wide, 1000, IRON_E_FORMAT, "position 338 is -7;");
    assert_ok(iron_engine_feed(e, tokens + 333, 667, &err), &err);
    assert_ok(iron_engine_feed(untouched, tokens + 333, 667, &err), &err);
    assert_same_engines(e, untouched, c.nodes);
    iron_engine_destroy(e);
    iron_engine_destroy(untouched);
    free(tokens);
    free(narrow);
    free(wide);
}

static void misaligned_and_unknown_are_refused(void **state) {
    static _Alignas(64) unsigned char data[64];
    iron_config c = small_config();
    iron_engine *e = create(&c);
    iron_error err;

    (void)state;
    refuse_feed(e, IRON_DTYPE_U16, data + 1, 3, IRON_E_ARG, "align");
    refuse_feed(e, IRON_DTYPE_U32, data + 1, 3, IRON_E_ARG, "align");
    refuse_feed(e, IRON_DTYPE_U32, data + 2, 3, IRON_E_ARG, "align");
    refuse_feed(e, IRON_DTYPE_I32, data + 3, 3, IRON_E_ARG, "align");
    refuse_feed(e, IRON_DTYPE_I64, data + 4, 3, IRON_E_ARG, "align");
    refuse_feed(e, IRON_DTYPE_NONE, data, 3, IRON_E_ARG, "dtype");
    refuse_feed(e, (iron_dtype)77, data, 3, IRON_E_ARG, "77");
    assert_ok(iron_engine_feed_as(e, IRON_DTYPE_U8, data + 1, 3, &err), &err);
    assert_ok(iron_engine_feed_as(e, IRON_DTYPE_U32, data + 4, 3, &err), &err);
    assert_int_equal(report_of(e).open_tokens, 6);
    iron_engine_destroy(e);
}

static void empty_feeds_and_empty_batches(void **state) {
    static const uint32_t tokens[] = {1, 2, 3};
    iron_config c = small_config();
    iron_engine *e = create(&c), *fresh = create(&c);
    iron_error err;

    (void)state;
    assert_ok(iron_engine_feed(e, NULL, 0, &err), &err);
    assert_ok(iron_engine_feed_as(e, IRON_DTYPE_I64, NULL, 0, &err), &err);
    assert_ok(iron_engine_end_batch(e, &err), &err);
    assert_same_engines(e, fresh, c.nodes);
    assert_int_equal(report_of(e).batches, 0);
    assert_ok(iron_engine_feed(e, tokens, 3, &err), &err);
    assert_int_equal(report_of(e).open_tokens, 3);
    assert_int_equal(report_of(e).tokens, 0);
    assert_ok(iron_engine_end_batch(e, &err), &err);
    assert_ok(iron_engine_end_batch(e, NULL), &err);
    assert_int_equal(report_of(e).batches, 1);
    assert_int_equal(report_of(e).tokens, 3);
    assert_int_equal(report_of(e).open_tokens, 0);
    iron_engine_destroy(e);
    iron_engine_destroy(fresh);
    iron_engine_destroy(NULL);
}

/* The seal covers open tokens too and does not depend on batches, vocabulary or positions. */
static void seal_is_of_the_stream(void **state) {
    const iron__golden *g = &iron__golden_vectors;

    (void)state;
    for (size_t k = 0; k < g->seal_count; k++) {
        const iron__golden_seal *s = &g->seals[k];
        size_t count;
        uint32_t *tokens = iron__golden_tokens(s->tokens, s->tokens_count, s->gen_seed,
                                               s->gen_limit, s->gen_count, &count);
        rng random = {88 + k};

        for (uint32_t threads = 1; threads <= 3; threads++) {
            iron_config c = small_config();
            iron_engine *e;
            iron_report r;

            c.with_seal = 1;
            c.threads = threads;
            c.batch = 1 + rng_below(&random, 500);
            c.positions = threads == 2 ? IRON_POSITIONS_BATCH : IRON_POSITIONS_STREAM;
            e = create(&c);
            feed_pieces(e, tokens, count, 1 + count / 2, &random);
            r = report_of(e);
            assert_int_equal(r.has_seal, 1);
            assert_string_equal(r.seal, s->seal);
            assert_memory_equal(r.seal_words, s->words, sizeof s->words);
            iron_engine_destroy(e);
        }
        free(tokens);
    }
}

static void reports_know_their_size(void **state) {
    iron_config c = small_config();
    iron_engine *e = create(&c);
    iron_report r = {.struct_size = sizeof r - 8, .tokens = 99};
    iron_error err;

    (void)state;
    assert_refused(iron_engine_report(e, &r, &err), IRON_E_ARG, &err);
    assert_int_equal(r.tokens, 99);
    r.struct_size = 0;
    assert_int_equal(iron_engine_report(e, &r, NULL), IRON_E_ARG);
    assert_int_equal(iron_engine_report(e, NULL, NULL), IRON_E_ARG);
    r.struct_size = sizeof r;
    assert_ok(iron_engine_report(e, &r, &err), &err);
    assert_int_equal(r.tokens, 0);
    assert_int_equal(r.has_seal, 0);
    assert_string_equal(r.seal, "");
    iron_engine_destroy(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_cases_in_every_row),
        cmocka_unit_test(random_configurations_against_the_definition),
        cmocka_unit_test(batches_of_one_token),
        cmocka_unit_test(reports_change_nothing),
        cmocka_unit_test(every_width_gives_the_same),
        cmocka_unit_test(bad_tokens_change_nothing),
        cmocka_unit_test(misaligned_and_unknown_are_refused),
        cmocka_unit_test(empty_feeds_and_empty_batches),
        cmocka_unit_test(seal_is_of_the_stream),
        cmocka_unit_test(reports_know_their_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
