/* SPDX-License-Identifier: MIT */
/*
 * selftest.c: is this build right on this machine? For machines without the test suite: golden
 * vectors through the whole engine, in every registry row that runs here. The backend is always
 * named: `auto` would leave the CPU untested where there is a GPU.
 */
#include "engine/selftest.h"

#include "core/fail.h"
#include "core/mix.h"
#include "core/seal.h"
#include "engine/engine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Node-centric rows cost nodes x tokens: skip cases above this. */
#define PER_NODE_WORK_QUICK (UINT64_C(1) << 24)
#define PER_NODE_WORK       (UINT64_C(1) << 28)

const iron_error iron__selftest_no_memory = {IRON_E_NOMEM, 0,
                                             "out of memory for the selftest's tokens"};

bool iron__selftest_wants(const iron__selftest *t, const char *what) {
    return !t->only || strstr(what, t->only);
}

void iron__selftest_tell(iron__selftest *t, const char *what, const char *difference, ...) {
    char text[320];
    va_list args;

    va_start(args, difference);
    vsnprintf(text, sizeof text, difference, args);
    va_end(args);
    if (text[0])
        t->result.failed++;
    else
        t->result.passed++;
    if (t->line)
        t->line(t->context, text[0] ? IRON_VERDICT_FAILED : IRON_VERDICT_PASSED, what, text);
}

void iron__selftest_skip(iron__selftest *t, const char *what, const char *reason) {
    t->result.skipped++;
    if (t->line)
        t->line(t->context, IRON_VERDICT_SKIPPED, what, reason);
}

void iron__selftest_fail(iron__selftest *t, const iron_error *error) {
    if (t->error.status == IRON_OK)
        t->error = *error;
}

/* How a report differs from what a case expects; "" if it does not. */
static void compare_report(const iron__golden_case *c, const iron_report *r, char *text,
                           size_t size) {
    char got[120], want[120];

    snprintf(got, sizeof got, "%" PRIu64 " %" PRIu64 " %08" PRIx32 " %" PRIu64 " %016" PRIx64,
             r->tokens, r->batches, r->xor_total, r->sum, r->state);
    snprintf(want, sizeof want, "%" PRIu64 " %" PRIu64 " %s %s %s", c->expect_tokens,
             c->expect_batches, c->xor_total, c->sum, c->state);
    text[0] = '\0';
    if (strcmp(got, want) != 0)
        snprintf(text, size, "got %s, expected %s", got, want);
}

static void compare_arrays(const iron__golden_case *c, iron_engine *e, char *text, size_t size) {
    const uint32_t *xors = iron_engine_xor_accumulators(e);
    const float *potentials = iron_engine_potentials(e);

    if (!xors || !potentials) {
        snprintf(text, size, "the nodes cannot be read");
        return;
    }
    for (size_t j = 0; j < c->xors_count; j++)
        if (xors[j] != c->xors[j])
            snprintf(text, size, "node %zu: xor %u, expected %u", j, xors[j], c->xors[j]);
    for (size_t j = 0; j < c->potentials_count; j++)
        if (potentials[j] != c->potentials[j])
            snprintf(text, size, "node %zu: potential %g, expected %g", j, (double)potentials[j],
                     (double)c->potentials[j]);
}

/* In two pieces, so that the open batch and the seal's carry go from call to call. */
static iron_status feed_in_two(iron_engine *e, const uint32_t *tokens, size_t count,
                               iron_report *report, iron_error *err) {
    IRON_TRY(iron_engine_feed(e, tokens, count / 3, err));
    IRON_TRY(iron_engine_feed(e, tokens + count / 3, count - count / 3, err));
    IRON_TRY(iron_engine_end_batch(e, err));
    return iron_engine_report(e, report, err);
}

iron_config iron__selftest_config(const iron__selftest_place *place) {
    iron_config config;

    iron_config_init(&config);
    config.backend = place->backend;
    config.mode = place->mode;
    config.memory = place->memory;
    config.device = place->device;
    config.threads = place->threads;
    return config;
}

iron_status iron__selftest_case(const iron__golden_case *c, const iron__selftest_place *place,
                                const uint32_t *tokens, size_t count, char *text, size_t size,
                                iron_error *err) {
    iron_report report = {.struct_size = sizeof report};
    iron_config config = iron__selftest_config(place);
    iron_engine *e = NULL;
    iron_status status;

    config.nodes = c->nodes;
    config.vocab = c->vocab;
    config.batch = c->batch;
    config.positions = c->positions;
    config.lattice = c->lattice;
    config.lattice_count = (uint32_t)c->lattice_count;
    config.activations = c->activations;
    status = iron_engine_create(&config, &e, err);
    if (status == IRON_OK)
        status = feed_in_two(e, tokens, count, &report, err);
    if (status == IRON_OK) {
        compare_report(c, &report, text, size);
        compare_arrays(c, e, text, size);
    }
    iron_engine_destroy(e);
    return status;
}

static void test_case(iron__selftest *t, const iron__golden_case *c,
                      const iron__tokens_variant *row) {
    static const uint32_t thread_counts[] = {1, 2, 3, 8};
    size_t threads = row->all_threads ? (t->is_quick ? 2 : 4) : 1;
    size_t count;
    uint32_t *tokens = iron__golden_tokens(c->tokens, c->tokens_count, c->gen_seed, c->gen_limit,
                                           c->gen_count, &count);

    for (size_t k = 0; k < threads && tokens; k++) {
        iron__selftest_place place = {
            .backend = "cpu", .mode = row->name, .threads = thread_counts[k]};
        char what[120], text[280];
        iron_error err;

        snprintf(what, sizeof what, "golden %s, %s, threads %u", c->name, row->name,
                 thread_counts[k]);
        if (!iron__selftest_wants(t, what))
            continue;
        if (iron__selftest_case(c, &place, tokens, count, text, sizeof text, &err))
            iron__selftest_fail(t, &err);
        else
            iron__selftest_tell(t, what, "%s", text);
    }
    if (!tokens)
        iron__selftest_fail(t, &iron__selftest_no_memory);
    free(tokens);
}

static bool is_affordable(const iron__selftest *t, const iron__golden_case *c,
                          const iron__tokens_variant *row) {
    uint64_t most = t->is_quick ? PER_NODE_WORK_QUICK : PER_NODE_WORK;

    return !row->per_node || c->nodes * c->expect_tokens <= most;
}

static void test_cases(iron__selftest *t, const iron__tokens_variant *row) {
    const iron__golden *g = iron__golden_vectors();

    for (size_t k = 0; k < g->case_count; k++) {
        char what[120];

        if (is_affordable(t, &g->cases[k], row)) {
            test_case(t, &g->cases[k], row);
            continue;
        }
        snprintf(what, sizeof what, "golden %s, %s", g->cases[k].name, row->name);
        iron__selftest_skip(t, what, IRON_SELFTEST_TOO_SLOW);
    }
}

static void test_tables(iron__selftest *t) {
    const iron__golden *g = iron__golden_vectors();
    iron_lattice *l = NULL;
    iron_error err;
    size_t wrong = 0;

    if (iron_lattice_create(NULL, 0, &l, &err) != IRON_OK) {
        iron__selftest_fail(t, &err);
        return;
    }
    for (size_t k = 0; k < g->quantize_xor_count; k++)
        wrong += iron_lattice_quantize_xor(l, (uint32_t)g->quantize_xor[k].from) !=
                 g->quantize_xor[k].to;
    for (size_t k = 0; k < g->quantize_real_count; k++)
        wrong += iron_lattice_quantize_real(l, g->quantize_real[k].from) != g->quantize_real[k].to;
    for (size_t k = 0; k < g->position_hash_count; k++)
        wrong += iron__position_hash(g->position_hash[k].from) != g->position_hash[k].to;
    iron_lattice_destroy(l);
    if (wrong)
        iron__selftest_tell(t, "golden tables", "%zu entries differ", wrong);
    else
        iron__selftest_tell(t, "golden tables", "%s", "");
}

static void test_quads(iron__selftest *t) {
    const iron__golden *g = iron__golden_vectors();
    size_t wrong = 0;

    for (size_t k = 0; k < g->quad_count; k++) {
        iron__seal_words words = {0, 0, 0, 0};

        iron__seal_quads(&words, g->quads[k].tokens, g->quads[k].quad, 1);
        wrong += words.a != g->quads[k].a || words.b != g->quads[k].b;
    }
    if (wrong)
        iron__selftest_tell(t, "golden quads", "%zu of %zu differ", wrong, g->quad_count);
    else
        iron__selftest_tell(t, "golden quads", "%s", "");
}

/* The engine's own way to the seal, on two threads, with batches that end inside quads. */
static iron_status seal_of(const uint32_t *tokens, size_t count, iron_report *report,
                           iron_error *err) {
    iron_config config =
        iron__selftest_config(&(iron__selftest_place){.backend = "cpu", .threads = 2});
    iron_engine *e = NULL;
    iron_status status;

    config.nodes = 1;
    config.batch = 4999;
    config.with_seal = 1;
    status = iron_engine_create(&config, &e, err);
    if (status == IRON_OK)
        status = feed_in_two(e, tokens, count, report, err);
    iron_engine_destroy(e);
    return status;
}

static void test_seal(iron__selftest *t, const iron__golden_seal *g) {
    iron_report report = {.struct_size = sizeof report};
    char what[80];
    iron_error err;
    size_t count;
    uint32_t *tokens = iron__golden_tokens(g->tokens, g->tokens_count, g->gen_seed, g->gen_limit,
                                           g->gen_count, &count);

    snprintf(what, sizeof what, "golden seal %s", g->name);
    if (!iron__selftest_wants(t, what)) {
        free(tokens);
        return;
    }
    if (!tokens)
        iron__selftest_fail(t, &iron__selftest_no_memory);
    else if (seal_of(tokens, count, &report, &err) != IRON_OK)
        iron__selftest_fail(t, &err);
    else if (strcmp(report.seal, g->seal) != 0 ||
             memcmp(report.seal_words, g->words, sizeof g->words) != 0)
        iron__selftest_tell(t, what, "got %s, expected %s", report.seal, g->seal);
    else
        iron__selftest_tell(t, what, "%s", "");
    free(tokens);
}

void iron__selftest_golden(iron__selftest *t) {
    const iron__golden *g = iron__golden_vectors();

    if (iron__selftest_wants(t, "golden tables"))
        test_tables(t);
    if (iron__selftest_wants(t, "golden quads"))
        test_quads(t);
    for (size_t k = 0; k < g->seal_count; k++)
        test_seal(t, &g->seals[k]);
    for (size_t v = 0; v < iron__tokens_variant_count(); v++) {
        const iron__tokens_variant *row = iron__tokens_variant_at(v);

        if (iron__tokens_variant_runs_here(row))
            test_cases(t, row);
        else
            iron__selftest_skip(t, row->name, "this processor lacks the instructions");
    }
}

iron_status iron_selftest(const iron_selftest_options *options, iron_selftest_result *result,
                          iron_error *err) {
    iron__selftest t = {.is_quick = options->is_quick != 0,
                        .only = options->only,
                        .line = options->line,
                        .context = options->context};

    iron__selftest_golden(&t);
    iron__selftest_variants(&t);
    iron__selftest_ops(&t);
    iron__selftest_gpus(&t);
    *result = t.result;
    if (t.error.status != IRON_OK && err)
        *err = t.error;
    if (t.error.status != IRON_OK)
        return t.error.status;
    IRON_FAIL_IF(t.only && t.result.passed + t.result.failed == 0, err, IRON_E_ARG,
                 "no check here has '%.60s' in its name; iron selftest --verbose shows the names",
                 t.only);
    IRON_FAIL_IF(t.result.failed > 0, err, IRON_E_MISMATCH,
                 "%" PRIu64 " of %" PRIu64
                 " checks failed; do not trust what this build computes here",
                 t.result.failed, t.result.failed + t.result.passed);
    return IRON_OK;
}
