/* SPDX-License-Identifier: MIT */
/*
 * selftest.c: iron_selftest: checks on any machine, without the test suite, that this build
 * computes right results: the golden vectors through engines in every registry row, every variant
 * of the CPU against the reference, every contender of every op against its op's reference, and
 * engines, tokens in device memory and digests on every GPU against the CPU.
 *
 * Engines name their backend: `auto` would leave the CPU untested where there is a GPU. OpenCL
 * devices that are CPUs are tested too; they are slow in modes where every node reads every token,
 * so what such a mode may cost is limited.
 */
#include "arena/arena_internal.h"
#include "core/cpu.h"
#include "core/fail.h"
#include "core/hash.h"
#include "core/seal.h"
#include "engine/checkpoint.h"
#include "gpu/gpu.h"
#include "ops/tokens/tokens.h"
#include "ops/tokens/tokens_gpu.h"
#include "selftest/golden.h"

#include <stdarg.h>

#define SMALLER(a, b) ((a) < (b) ? (a) : (b))

/* A selftest in progress. The device stays open during all of its checks, so that starting it is
 * paid once. A driver's error ends the device's test: it is one failed check, and the device's
 * other checks are not run. */
typedef struct selftest {
    bool is_quick;
    const char *only; /* NULL, or what a check's name must contain */
    iron_selftest_line line;
    void *context;
    iron_selftest_result result;
    iron_error error;         /* the first error that was not a difference; IRON_OK: none */
    iron__gpu_device *device; /* under test, or NULL: the CPU */
    size_t backend, index;    /* of the device */
    char place[40];           /* "cuda device 0" */
    bool is_lost;             /* the device has failed */
} selftest;

/* One check, from its name to its result. It owns what it uses: check_end and check_skip free
 * it. */
typedef struct check {
    selftest *test;
    char name[240];
    char difference[320]; /* "" if the result is right */
    iron_error error;
    iron_engine *engines[4];
    void *memory;
    iron__gpu_queue *queue;
    iron__gpu_buffer *buffer;
} check;

static void report(selftest *t, iron_verdict verdict, const char *what, const char *text) {
    t->result.passed += verdict == IRON_VERDICT_PASSED;
    t->result.failed += verdict == IRON_VERDICT_FAILED;
    t->result.skipped += verdict == IRON_VERDICT_SKIPPED;
    if (t->line)
        t->line(t->context, verdict, what, text);
}

/* Begins a check; false if it is not to be run. */
static bool __attribute__((format(printf, 3, 4)))
check_begin(check *c, selftest *test, const char *name, ...) {
    va_list args;

    *c = (check){.test = test};
    va_start(args, name);
    vsnprintf(c->name, sizeof c->name, name, args);
    va_end(args);
    return !test->is_lost && (!test->only || strstr(c->name, test->only));
}

static void free_check(check *c) {
    for (size_t k = 0; k < COUNT(c->engines); k++)
        iron_engine_destroy(c->engines[k]);
    if (c->queue)
        (void)iron__gpu_queue_wait(c->queue, NULL); /* copies may still read `memory` */
    iron__gpu_buffer_destroy(c->buffer);
    iron__gpu_queue_destroy(c->queue);
    free(c->memory);
}

/* Remembers an error that is not a difference. */
static void keep_error(selftest *test, const iron_error *error) {
    if (test->error.status == IRON_OK)
        test->error = *error;
}

/* Counts and reports the check: `difference` if status is IRON_OK, else `error`. An error on the
 * CPU is not a wrong result: the selftest ends with that error. */
static void check_end(check *c, iron_status status) {
    selftest *t = c->test;

    free_check(c);
    if (status != IRON_OK && !t->device) {
        keep_error(t, &c->error);
        return;
    }
    if (status != IRON_OK) {
        t->is_lost = true;
        snprintf(c->difference, sizeof c->difference, "%s; this device is not tested any further",
                 c->error.text);
    }
    report(t, c->difference[0] ? IRON_VERDICT_FAILED : IRON_VERDICT_PASSED, c->name, c->difference);
}

static void check_skip(check *c, const char *reason) {
    free_check(c);
    report(c->test, IRON_VERDICT_SKIPPED, c->name, reason);
}

/* Pairs of node and token that a check may cost in the per-node modes: on the CPU, on a GPU, and
 * per compute unit of an OpenCL device that is a CPU; quick and full. An H200 takes 10^11 of them
 * per second; PoCL about 10^8 per compute unit, and half of that in atomic2d. Few on a GPU in a
 * quick selftest, which runs under sanitizers too. */
static const uint64_t pairs_max[][2] = {{UINT64_C(1) << 24, UINT64_C(1) << 28},
                                        {UINT64_C(1) << 25, UINT64_C(1) << 34},
                                        {UINT64_C(1) << 24, UINT64_C(1) << 26}};

/* The threads that a node costs in modes with a group per node, however few the tokens. */
#define GROUP_THREADS 256u

/* Skips a check whose mode reads every token for every node, if that would take too long. */
static bool can_afford(check *c, bool per_node, uint64_t nodes, uint64_t tokens) {
    const iron__gpu_info *info = c->test->device ? &c->test->device->info : NULL;
    uint64_t pairs = pairs_max[!info ? 0 : info->is_gpu ? 1 : 2][!c->test->is_quick];

    if (info && !info->is_gpu)
        pairs *= info->units;
    if (info && tokens < GROUP_THREADS)
        tokens = GROUP_THREADS;
    if (!per_node || tokens <= pairs / nodes)
        return true;
    check_skip(c, "nodes x tokens are too many for a selftest in this mode");
    return false;
}

/* The default configuration on the device under test, or on the CPU; two threads. */
static iron_config config_for(const selftest *test, const char *mode) {
    iron_config config;

    iron_config_init(&config);
    config.backend = test->device ? iron__gpu_backend_name(test->backend) : "cpu";
    config.device = test->device ? (uint32_t)test->index : 0;
    config.mode = mode;
    config.threads = 2;
    return config;
}

/* Golden vectors. */

static const iron__golden *const golden = &iron__golden_vectors;

/* Runs golden tokens in two pieces, so that the open batch and the seal's carry pass from call to
 * call. */
static iron_status run_golden(check *c, const iron_config *config, uint32_t *tokens, size_t count,
                              iron_report *r) {
    size_t first = count / 3;

    *r = (iron_report){.struct_size = sizeof *r};
    c->memory = tokens;
    IRON_FAIL_IF(!tokens, &c->error, IRON_E_NOMEM, "out of memory for %zu tokens", count);
    IRON_TRY(iron_engine_create(config, &c->engines[0], &c->error));
    IRON_TRY(iron_engine_feed(c->engines[0], tokens, first, &c->error));
    IRON_TRY(iron_engine_feed(c->engines[0], tokens + first, count - first, &c->error));
    IRON_TRY(iron_engine_end_batch(c->engines[0], &c->error));
    return iron_engine_report(c->engines[0], r, &c->error);
}

/* Every golden case in one mode, with each of the thread counts. The state is a hash of all
 * nodes. */
static void test_golden_row(selftest *t, const char *mode, const char *name, bool per_node,
                            const uint32_t *threads, size_t thread_counts) {
    for (size_t k = 0; k < golden->case_count * thread_counts; k++) {
        const iron__golden_case *g = &golden->cases[k / thread_counts];
        iron_config config = config_for(t, mode);
        iron_status status;
        char got[120], want[120];
        uint32_t *tokens;
        iron_report r;
        check c;
        size_t count;

        config.threads = threads[k % thread_counts];
        if (!check_begin(&c, t, "golden %s, %s, %s %zu", g->name, name,
                         t->device ? "device" : "threads",
                         t->device ? t->index : (size_t)config.threads) ||
            !can_afford(&c, per_node, g->nodes, g->expect_tokens))
            continue;
        config.nodes = g->nodes;
        config.vocab = g->vocab;
        config.batch = g->batch;
        config.positions = g->positions;
        config.lattice = g->lattice;
        config.lattice_count = (uint32_t)g->lattice_count;
        config.activations = g->activations;
        tokens = iron__golden_tokens(g->tokens, g->tokens_count, g->gen_seed, g->gen_limit,
                                     g->gen_count, &count);
        status = run_golden(&c, &config, tokens, count, &r);
        snprintf(got, sizeof got, "%" PRIu64 " %" PRIu64 " %08" PRIx32 " %" PRIu64 " %016" PRIx64,
                 r.tokens, r.batches, r.xor_total, r.sum, r.state);
        snprintf(want, sizeof want, "%" PRIu64 " %" PRIu64 " %s %s %s", g->expect_tokens,
                 g->expect_batches, g->xor_total, g->sum, g->state);
        if (status == IRON_OK && strcmp(got, want) != 0)
            snprintf(c.difference, sizeof c.difference, "got %s, expected %s", got, want);
        check_end(&c, status);
    }
}

static void test_golden_cases(selftest *t) {
    static const uint32_t threads[] = {1, 2, 3, 8};
    const iron__tokens_gpu_row *gpu_row;

    for (size_t k = 0; t->device && (gpu_row = iron__tokens_gpu_row_at(k)); k++)
        test_golden_row(t, gpu_row->mode, gpu_row->names[t->backend], gpu_row->per_node,
                        threads + 1, 1);
    for (size_t k = 0; !t->device && k < iron__tokens_variant_count(); k++) {
        const iron__tokens_variant *row = iron__tokens_variant_at(k);
        size_t counts = !row->all_threads ? 1 : t->is_quick ? 2 : COUNT(threads);

        if (iron__tokens_variant_runs_here(row))
            test_golden_row(t, row->name, row->name, row->per_node, threads, counts);
        else
            report(t, IRON_VERDICT_SKIPPED, row->name, "this processor lacks the instructions");
    }
}

static void test_golden_tables(selftest *t) {
    iron_lattice *l = NULL;
    iron_status status;
    size_t wrong = 0;
    check c;

    if (!check_begin(&c, t, "golden tables"))
        return;
    status = iron_lattice_create(NULL, 0, &l, &c.error);
    for (size_t k = 0; l && k < golden->quantize_xor_count; k++)
        wrong += iron_lattice_quantize_xor(l, (uint32_t)golden->quantize_xor[k].from) !=
                 golden->quantize_xor[k].to;
    for (size_t k = 0; l && k < golden->quantize_real_count; k++)
        wrong += iron_lattice_quantize_real(l, golden->quantize_real[k].from) !=
                 golden->quantize_real[k].to;
    for (size_t k = 0; k < golden->position_hash_count; k++)
        wrong += iron__position_hash(golden->position_hash[k].from) != golden->position_hash[k].to;
    for (size_t k = 0; k < golden->quad_count; k++) {
        iron__seal_words words = {0, 0, 0, 0};

        iron__seal_quads(&words, golden->quads[k].tokens, golden->quads[k].quad, 1);
        wrong += words.a != golden->quads[k].a || words.b != golden->quads[k].b;
    }
    iron_lattice_destroy(l);
    if (wrong)
        snprintf(c.difference, sizeof c.difference, "%zu entries differ", wrong);
    check_end(&c, status);
}

/* The engine's seal, on two threads, with batches that end inside quads. */
static void test_golden_seals(selftest *t) {
    for (const iron__golden_seal *g = golden->seals; g < golden->seals + golden->seal_count; g++) {
        iron_config config = config_for(t, NULL);
        iron_status status;
        uint32_t *tokens;
        iron_report r;
        check c;
        size_t count;

        if (!check_begin(&c, t, "golden seal %s", g->name))
            continue;
        config.nodes = 1;
        config.batch = 4999;
        config.with_seal = 1;
        tokens = iron__golden_tokens(g->tokens, g->tokens_count, g->gen_seed, g->gen_limit,
                                     g->gen_count, &count);
        status = run_golden(&c, &config, tokens, count, &r);
        if (status == IRON_OK &&
            (strcmp(r.seal, g->seal) != 0 || memcmp(r.seal_words, g->words, sizeof g->words) != 0))
            snprintf(c.difference, sizeof c.difference, "got %s, expected %s", r.seal, g->seal);
        check_end(&c, status);
    }
}

/* The CPU's variants without an engine, on the shapes that break vector code: empty, odd, just
 * around a group of 16 and a block, unaligned, at positions beyond 2^32 and 2^36; with tokens
 * inside the vocabulary, anywhere in 32 bits, and all ones. The rows of the seal likewise, on whole
 * quads and across the boundaries of its windows. */

static const size_t lengths[] = {0,  1,   3,    4,    15,   16,   17,   31,
                                 64, 255, 4095, 4096, 4097, 4098, 4099, 65537};
static const uint64_t first_positions[] = {0, 5, (UINT64_C(1) << 32) - 9, (UINT64_C(1) << 36) + 7,
                                           (UINT64_C(1) << 63) + 1};
static const uint32_t vocabs[] = {2,     3,      6,      7,       10,         32000,     50257,
                                  50304, 65536,  100277, 128256,  1048576,    1048577,   16777259,
                                  65535, 151936, 999983, 1048574, 2147483647, 2147483648};

#define LONG_TOKENS 999983u /* a prime near 10^6 */
#define TOKENS_MAX  (LONG_TOKENS + 3)

enum { KIND_IN_VOCAB, KIND_ANY, KIND_ONES, KIND_COUNT };
static const char *const kind_names[] = {"in vocabulary", "of 32 bits", "all ones"};

static bool is_same_sum(iron__contribution x, iron__contribution y) {
    return x.count == y.count && x.xors == y.xors && x.sum == y.sum;
}

/* Also from 16-bit tokens (`narrow`, if not NULL). */
static bool is_right_sum(check *c, const iron__tokens_variant *row, const iron__tokens_run *run,
                         const uint16_t *narrow) {
    iron__tokens_run narrow_run = {NULL, run->count, run->first, run->divisor, narrow};
    iron__contribution got = row->reduce(run), want = iron__tokens_scalar(run);
    bool is_narrow = narrow && row->reads_u16;

    if (is_same_sum(got, want) && (!is_narrow || is_same_sum(row->reduce(&narrow_run), want)))
        return true;
    snprintf(c->difference, sizeof c->difference,
             "%zu tokens at %" PRIu64 ": xor %08x sum %" PRIu64 ", reference %08x %" PRIu64
             ", or u16 differ",
             run->count, run->first, got.xors, got.sum, want.xors, want.sum);
    return false;
}

static bool is_same_seal(iron__seal_words x, iron__token_stats p, iron__seal_words y,
                         iron__token_stats q) {
    return x.count == y.count && x.t == y.t && x.a == y.a && x.b == y.b && p.min == q.min &&
           p.max == q.max && p.out_of_vocab == q.out_of_vocab &&
           p.first_position == q.first_position && p.first_value == q.first_value;
}

/* With statistics and without, and from 16-bit tokens (`narrow`, if not NULL). */
static bool is_right_seal(check *c, const iron__seal_variant *row, const iron__quads_run *run,
                          const uint16_t *narrow) {
    iron__token_stats got_stats = iron__token_stats_neutral(), want_stats = got_stats;
    iron__token_stats narrow_stats = got_stats;
    iron__seal_words got = {0, 0, 0, 0}, want = got, alone = got, from_narrow = got;
    iron__quads_run_u16 narrow_run = {narrow, run->quads, run->first_quad, run->vocab};
    bool is_narrow = narrow && row->take_u16;

    iron__seal_variant_find("reference")->take(run, &want, &want_stats);
    row->take(run, &got, &got_stats);
    row->take(run, &alone, NULL);
    if (is_narrow)
        row->take_u16(&narrow_run, &from_narrow, &narrow_stats);
    if (is_same_seal(got, got_stats, want, want_stats) &&
        is_same_seal(alone, want_stats, want, want_stats) &&
        (!is_narrow || is_same_seal(from_narrow, narrow_stats, want, want_stats)))
        return true;
    snprintf(c->difference, sizeof c->difference,
             "%zu quads at quad %" PRIu64 ": T %016" PRIx64 " A %016" PRIx64 " B %016" PRIx64
             ", reference %016" PRIx64 " %016" PRIx64 " %016" PRIx64
             ", or statistics or u16 differ",
             run->quads, run->first_quad, got.t, got.a, got.b, want.t, want.a, want.b);
    return false;
}

/* All lengths and positions; half of a seal's run lies before a boundary of windows. One of the
 * rows is NULL. `narrow` are the tokens in 16 bits, or NULL if they do not fit. */
static void test_variant(check *c, const iron__tokens_variant *row,
                         const iron__seal_variant *seal_row, const uint32_t *tokens,
                         const uint16_t *narrow, uint32_t vocab) {
    iron__divisor d = iron__divisor_make(vocab);
    size_t shape_count = COUNT(lengths) * COUNT(first_positions);
    bool is_same = true;

    for (size_t k = 0; is_same && k < shape_count + !c->test->is_quick; k++) {
        size_t p = k % COUNT(first_positions), lead = (k / COUNT(first_positions) + p) % 4;
        size_t length = k < shape_count ? lengths[k / COUNT(first_positions)] : LONG_TOKENS;
        size_t quads = length < 4096 ? length : length / 4;
        uint64_t window = p % 3, quad = window ? (window << 32) - quads / 2 : k;

        is_same =
            row ? is_right_sum(
                      c, row,
                      &(iron__tokens_run){tokens + lead, length, first_positions[p], &d, NULL},
                      narrow ? narrow + lead : NULL)
                : is_right_seal(c, seal_row, &(iron__quads_run){tokens + lead, quads, quad, vocab},
                                narrow ? narrow + lead : NULL);
    }
}

static void test_variants(selftest *t) {
    iron_error no_memory = {IRON_E_NOMEM, 0, "out of memory for the selftest's tokens"};
    uint32_t *tokens = malloc(TOKENS_MAX * (sizeof(uint32_t) + sizeof(uint16_t)));
    uint16_t *narrow = tokens ? (uint16_t *)(void *)(tokens + TOKENS_MAX) : NULL;
    size_t sums = iron__tokens_variant_count();
    check c;

    if (!tokens)
        keep_error(t, &no_memory);
    for (size_t k = 0; tokens && k < COUNT(vocabs) * KIND_COUNT; k++) {
        uint32_t vocab = vocabs[k / KIND_COUNT];
        int kind = (int)(k % KIND_COUNT);
        bool is_narrow = kind == KIND_IN_VOCAB && vocab <= 65536;

        iron_generate(vocab, kind == KIND_IN_VOCAB ? vocab : UINT64_C(1) << 32, 0, tokens,
                      TOKENS_MAX, NULL);
        for (size_t i = 0; i < TOKENS_MAX; i++) {
            tokens[i] = kind == KIND_ONES ? UINT32_MAX : tokens[i];
            narrow[i] = (uint16_t)tokens[i];
        }
        for (size_t v = 0; v < sums || iron__seal_variant_at(v - sums); v++) {
            const iron__tokens_variant *row = v < sums ? iron__tokens_variant_at(v) : NULL;
            const iron__seal_variant *seal_row = row ? NULL : iron__seal_variant_at(v - sums);

            if ((row ? iron__tokens_variant_runs_here(row)
                     : iron__seal_variant_runs_here(seal_row)) &&
                check_begin(&c, t, "shapes, %s, vocab %u, tokens %s",
                            row ? row->name : seal_row->name, vocab, kind_names[kind])) {
                test_variant(&c, row, seal_row, tokens, is_narrow ? narrow : NULL, vocab);
                check_end(&c, IRON_OK);
            }
        }
    }
    free(tokens);
}

/* Ops: every contender of every op against its op's reference, in every element type and over
 * shapes that catch loose ends: one row, one column, primes, rows that are no multiple of any
 * vector, rows too long for local memory; and with every value of the op's
 * axes. Contenders run as in a race, twice: outputs are poisoned before each run. On GPUs the whole
 * computation, and the same from the host's memory in three parts. */

#define PARTS   3u
#define THREADS 3u

typedef struct op_shape {
    uint64_t rows, cols;
    bool is_quick; /* also in a quick selftest */
} op_shape;

static const op_shape matrices[] = {
    {1, 1, true},       {1, 7, true},      {7, 1, false},     {33, 31, true},    {38, 42, false},
    {257, 129, true},   {64, 1000, false}, {1009, 61, false}, {40, 4099, false}, {100, 8192, false},
    {24, 20001, false}, {2003, 24, false}, {500, 333, false}};
static const op_shape lines[] = {{1, 1, true},    {17, 1, true},     {1000, 1, true},
                                 {9001, 1, true}, {70001, 1, false}, {600000, 1, false}};

/* One op, one op_shape, one element type. */
typedef struct trial {
    selftest *t;
    iron__thread_pool *pool;
    iron__race_device *device;
    bool has_begun; /* the problem is on the device */
    iron__op_problem problem;
    void *output;
    void *unpacked;  /* as long: for answers in a contender's own order */
    char params[60]; /* ", data zipf"; "" */
} trial;

static void test_contender(trial *r, const iron__contender *row) {
    const iron__race_device_ops *device = r->device->ops;
    const iron__case *k = &r->problem.c;
    bool has_parts =
        r->t->device && row->gpu->run_part && !r->t->device->info.lacks[IRON_GPU_STREAMS][0];
    iron__race_plan_row planned = {.contender = *row,
                                   .memory = has_parts ? IRON_GPU_STREAMS : IRON_GPU_PAGEABLE};
    iron__race_contender *contender = NULL;
    iron_status status = IRON_OK;
    iron__kernels kernels = {0};

    for (int in_parts = 0; in_parts < (has_parts ? 2 : 1); in_parts++) {
        iron__scope scope = in_parts ? IRON_SCOPE_END_TO_END : IRON_SCOPE_KERNEL;
        check c;

        if (!check_begin(&c, r->t, "%s.%s.%s, %s, %" PRIu64 "x%" PRIu64 "%s%s", k->op->name,
                         r->t->device ? iron__gpu_backend_name(r->t->backend) : "cpu", row->name,
                         iron__element_name(k->element), k->rows, k->cols, r->params,
                         in_parts ? ", in parts" : ""))
            continue;
        if (!contender && !r->has_begun) {
            r->has_begun = true; /* end is called also after begin failed */
            status = device->begin(r->device, &r->problem, &c.error);
        }
        if (!contender && status == IRON_OK)
            status = device->contender_open(r->device, &planned, &kernels, &contender, &c.error);
        if (status == IRON_E_UNSUPPORTED) {
            check_skip(&c, c.error.text);
            break;
        }
        /* more than once: what an object keeps between runs must suit the next run */
        for (int turn = 0; turn < 2 && status == IRON_OK && !c.difference[0]; turn++) {
            memset(r->output, 0xFF, r->problem.output_bytes);
            status = contender->ops->answer(contender, scope, r->output, &c.error);
            if (status == IRON_OK && iron__op_check(&r->problem, row, r->output, r->unpacked,
                                                    c.difference, sizeof c.difference))
                c.difference[0] = '\0';
        }
        check_end(&c, status);
    }
    if (contender)
        contender->ops->close(contender);
}

static void test_case(trial *r) {
    const iron__case *c = &r->problem.c;
    const iron__op *op = c->op;
    const iron__gpu_device *device = r->t->device;
    uint32_t on = device ? (uint32_t)IRON_ON_CUDA << r->t->backend : IRON_ON_CPU;
    iron_error err = {IRON_E_NOMEM, 0, "out of memory for an op's output"};
    iron__contender row;

    if (op->make(&r->problem, r->pool, &err) != IRON_OK) {
        keep_error(r->t, &err);
        return;
    }
    r->output = malloc(r->problem.output_bytes);
    r->unpacked = malloc(r->problem.output_bytes);
    if (!r->output || !r->unpacked)
        keep_error(r->t, &err);
    for (size_t k = 0; r->output && r->unpacked && iron__op_contender(op, k, &row); k++)
        if ((row.backends & on) && (!row.elements || (row.elements & IRON_BIT(c->element))) &&
            iron__cpu_has(row.needs) && (!row.suits || row.suits(&row, c)) &&
            /* modes in which every node reads every token are tested elsewhere, over less */
            (!row.seconds || row.seconds(&row, c, device ? &device->info : NULL, THREADS) < 0.05))
            test_contender(r, &row);
    if (r->has_begun)
        r->device->ops->end(r->device);
    r->has_begun = false;
    free(r->unpacked);
    free(r->output);
    op->unmake(&r->problem);
}

/* Sets the case to combination `index` of its axes' values; false past the last. */
static bool set_axes(trial *r, size_t index) {
    iron__case *c = &r->problem.c;
    size_t used = 0;

    r->params[0] = '\0';
    for (size_t k = 0; k < c->op->axis_count; k++) {
        const iron__axis *axis = &c->op->axes[k];
        size_t at = index % axis->count;

        index /= axis->count;
        c->at[k] = axis->words ? (double)at : axis->numbers[at];
        if (axis->words)
            snprintf(r->params + used, sizeof r->params - used, ", %s %s", axis->name,
                     axis->words[at]);
        else
            snprintf(r->params + used, sizeof r->params - used, ", %s %g", axis->name, c->at[k]);
        used = strlen(r->params);
    }
    return index == 0;
}

static void test_ops(selftest *test) {
    const iron__race_plan plan = {
        .devices = {{.gpu_backend = test->backend, .index = (uint32_t)test->index}}};
    const iron__race_device_ops *ops = test->device ? &iron__race_gpu : &iron__race_cpu;
    iron__thread_pool *pool = NULL;
    iron__race_device *device = NULL;
    const iron__op *op;
    iron_error err;

    if (iron__thread_pool_create(THREADS, iron__allocator_default(), &pool, &err) != IRON_OK ||
        ops->open(&plan, 0, PARTS, pool, &device, &err) != IRON_OK) {
        keep_error(test, &err);
        iron__thread_pool_destroy(pool);
        return;
    }
    for (size_t at = 0; (op = iron__op_at(at)); at++) {
        const op_shape *sizes = op->is_line ? lines : matrices;
        size_t count = op->is_line ? COUNT(lines) : COUNT(matrices);

        for (size_t k = 0; k < count * IRON_ELEMENTS; k++) {
            const op_shape *s = &sizes[k / IRON_ELEMENTS];
            iron__element element = (iron__element)(k % IRON_ELEMENTS);
            trial r = {.t = test, .pool = pool, .device = device};

            if (!(op->elements & IRON_BIT(element)) || (test->is_quick && !s->is_quick))
                continue;
            r.problem.c = (iron__case){.op = op,
                                       .rows = s->rows,
                                       .cols = s->cols,
                                       .element = element,
                                       .vocab = element == IRON_U32 ? op->vocab_usual : 0,
                                       .seed = 5};
            for (size_t axes = 0; set_axes(&r, axes); axes++)
                test_case(&r);
        }
    }
    ops->close(device);
    iron__thread_pool_destroy(pool);
}

/* GPUs: engines and digests on the device under test against the CPU, which is fed the same tokens.
 * In every mode:
 *
 *   - all memory strategies, and the shapes that break kernels: lengths around a quad, a warp, a
 *     group and a slot; batches shorter and longer than a group's turn and than the stream; few and
 *     many nodes; vocabularies at their limits; tokens of every width and value; custom lattices
 *   - tokens in device memory: at any alignment, in pieces that cross batches, more batches than
 *     can wait, potentials around 2^24, far positions, more than 2^31 tokens
 *
 * Then digests of tokens in device memory, in pieces of odd lengths in any order; a stream that
 * several devices share; and checkpoints: an engine replayed from its batches, and a fork that goes
 * on. */

/* Compares what engine k and engine 0, the reference, report; `state` is a hash of all nodes. */
static iron_status compare(check *c, size_t k, const char *who) {
    iron_report w = {.struct_size = sizeof w}, g = w;

    IRON_TRY(iron_engine_report(c->engines[0], &w, &c->error));
    IRON_TRY(iron_engine_report(c->engines[k], &g, &c->error));
    if (!c->difference[0] &&
        (g.tokens != w.tokens || g.batches != w.batches || g.xor_total != w.xor_total ||
         g.sum != w.sum || g.open_tokens != w.open_tokens || g.state != w.state ||
         strcmp(g.seal, w.seal) != 0))
        snprintf(c->difference, sizeof c->difference,
                 "%sgot %" PRIu64 " tokens %" PRIu64 " batches xor %08" PRIx32 " sum %" PRIu64
                 " state %016" PRIx64 " seal %s, expected %" PRIu64 " %" PRIu64 " %08" PRIx32
                 " %" PRIu64 " %016" PRIx64 " %s",
                 who, g.tokens, g.batches, g.xor_total, g.sum, g.state, g.seal, w.tokens, w.batches,
                 w.xor_total, w.sum, w.state, w.seal);
    return IRON_OK;
}

/* The check's memory: `bytes` of tokens and whatever else it needs. */
static iron_status allocate(check *c, size_t bytes) {
    c->memory = malloc(bytes);
    IRON_FAIL_IF(!c->memory, &c->error, IRON_E_NOMEM, "out of memory for %zu bytes", bytes);
    return IRON_OK;
}

/* Copies bytes to device memory, over and over until `total`, in a queue of the check's own. Does
 * not wait: what reads the tokens must follow the queue. */
static iron_status upload(check *c, const void *data, size_t bytes, uint64_t total) {
    IRON_TRY(iron__gpu_queue_create(c->test->device, &c->queue, &c->error));
    IRON_TRY(iron__gpu_buffer_create(c->test->device, IRON_GPU_MEMORY_DEVICE, (size_t)total,
                                     &c->buffer, &c->error));
    for (uint64_t done = 0; done < total; done += bytes) {
        iron__gpu_copy copy = {.from_host = data,
                               .to = c->buffer,
                               .to_offset = (size_t)done,
                               .bytes = (size_t)SMALLER(bytes, total - done)};

        IRON_TRY(iron__gpu_copy_bytes(c->queue, &copy, &c->error));
    }
    return IRON_OK;
}

typedef enum token_kind { IN_VOCAB, ANY, ONES } token_kind;

/* Lattices: 0 the default, 1 two points, 2 as many as there can be. */
typedef struct shape {
    uint64_t tokens, nodes, batch, vocab;
    iron_positions positions;
    token_kind kind;
    iron_dtype dtype;
    uint32_t lattice;
    bool has_activations;
    uint64_t first; /* tokens of the first feed */
    uint32_t lead;  /* tokens by which the memory is off a multiple of 64 bytes */
} shape;

#define STREAM     IRON_POSITIONS_STREAM
#define BATCH      IRON_POSITIONS_BATCH
#define U8         IRON_DTYPE_U8
#define U16        IRON_DTYPE_U16
#define U32        IRON_DTYPE_U32
#define I32        IRON_DTYPE_I32
#define I64        IRON_DTYPE_I64
#define BATCH_HUGE (UINT64_C(1) << 40)

/* Every value occurs, small streams first: a quick test ends where tokens pass QUICK_TOKENS. */
#define QUICK_TOKENS 4097u
static const shape shapes[] = {
    {1, 1, 1, 2, STREAM, IN_VOCAB, U8, 0, false, 0, 0},
    {3, 31, 7, 3, BATCH, ANY, U16, 1, true, 1, 1},
    {4, 4096, 4096, 50257, STREAM, ONES, U32, 2, false, 2, 0},
    {5, 32, 1, 65536, BATCH, IN_VOCAB, I32, 0, true, 4, 3},
    {15, 1, 64, 128256, STREAM, ANY, I64, 1, false, 6, 1},
    {16, 33, 16384, 2147483647, BATCH, ANY, U32, 2, true, 0, 2},
    {5, 100003, 7, 2147483648, STREAM, ANY, U32, 0, false, 2, 0},
    {5, 1048576, 8, 50257, BATCH, ANY, U32, 1, false, 3, 1}, /* the most nodes there can be */
    {17, 4096, 20000, 50257, BATCH, IN_VOCAB, I64, 1, true, 16, 0},
    {255, 31, 1, 65537, BATCH, IN_VOCAB, U16, 1, true, 100, 3},
    {255, 256, 786432, 3, STREAM, ONES, U8, 2, false, 254, 2},
    {255, 1, BATCH_HUGE, 2, BATCH, ANY, U32, 0, true, 77, 1},
    {4097, 31, 7, 128256, STREAM, ANY, U32, 2, false, 2048, 2},
    {4097, 4096, 4096, 2147483648, STREAM, ONES, I64, 0, true, 4095, 1},
    {4097, 257, UINT64_C(1) << 31, 2147483648, BATCH, ANY, U32, 1, true, 1, 0},
    {4097, 2, 1000, 65535, BATCH, ANY, I32, 2, false, 1365, 3},
    {65537, 31, 16384, 50257, STREAM, ANY, U32, 0, false, 16383, 1},
    {65537, 31, 20000, 65536, BATCH, IN_VOCAB, U16, 2, true, 30000, 0},
    {65537, 1, 4096, 7, BATCH, ANY, U8, 1, false, 21845, 3},
    {65537, 31, 786432, 128256, STREAM, ANY, I64, 0, true, 65536, 0},
    {131072, 1000, 16385, 50257, STREAM, ANY, U32, 0, false, 16383, 0},
    {999983, 1, 786432, 2147483647, STREAM, ANY, U32, 0, true, 333327, 3},
    {999983, 31, 20000, 128256, BATCH, ONES, U32, 2, false, 500000, 2},
    {999983, 1, BATCH_HUGE, 50257, STREAM, IN_VOCAB, I64, 1, true, 1, 0},
    {999983, 1, 16383, 2, BATCH, ANY, I32, 0, false, 999982, 1},
    {999983, 4096, 786432, 50257, STREAM, IN_VOCAB, U32, 0, false, 333327, 0},
};

/* Several batches, odd lengths, and a second feed that is larger than a slot of 4 MiB and begins
 * inside one. Last, many slots in a row while a slow kernel reads: buffers must be reused as soon
 * as they are free, and not sooner. */
static const shape strategy_shapes[] = {
    {12004, 3, 999, 50257, STREAM, ANY, U32, 0, false, 5003, 0},
    {12004, 3, 999, 50257, STREAM, ANY, U16, 0, false, 5003, 0},
    {1418584, 3, 99991, 50257, STREAM, ANY, U32, 0, false, 300007, 0},
    {2467160, 3, 99991, 50257, STREAM, ANY, U16, 0, false, 300007, 0},
    {9449529, 512, 1000003, 50257, STREAM, ANY, U32, 0, false, 1000, 0},
};

/* Combinations of the shapes' values, the same in every run. At most 400 batches: however short,
 * one costs the modes that take one at a time four launches. */
static shape mixed_shape(size_t k) {
    shape s = shapes[k % COUNT(shapes)];
    const shape *a = &shapes[iron__mix64(k) % COUNT(shapes)];
    const shape *b = &shapes[iron__mix64(k + 1000) % COUNT(shapes)];

    s.batch = SMALLER(a->batch, UINT64_C(1) << 31); /* times any vocabulary at most 2^62 */
    if (s.tokens / s.batch > 400)
        s.batch = s.tokens / 400;
    s.vocab = b->vocab;
    s.positions = a->positions;
    s.kind = b->kind;
    s.dtype = a->dtype;
    s.lattice = b->lattice;
    s.has_activations = a->lead % 2 == 0;
    s.first = iron__mix64(k + 2000) % (s.tokens + 1);
    return s;
}

static void store_token(unsigned char *tokens, iron_dtype dtype, size_t index, uint64_t value) {
    size_t width = iron_dtype_bytes(dtype);

    memcpy(tokens + index * width, &value, width); /* little-endian: the low bytes come first */
}

/* Tokens in device memory; the shape's lead is where they begin in the buffer. */
typedef struct plan {
    const char *what;
    shape s; /* `tokens` is the sum of the pieces */
    const uint64_t *pieces;
    size_t piece_count;
    uint64_t start; /* tokens before the first one: its position in the stream */
    enum { PLAIN, NEAR_LIMIT, SYNCED, BY_POINTER } kind;
} plan;

/* Creates an engine where a plan wants it: at a position, and with potentials on both sides of
 * 2^24, where float sums stop being exact, with both signs. */
static iron_status create_engine(check *c, size_t index, const iron_config *config, const plan *p) {
    iron_engine *e;

    IRON_TRY(iron_engine_create(config, &c->engines[index], &c->error));
    e = c->engines[index];
    if (!p)
        return IRON_OK;
    e->closed.count = p->start;
    for (int64_t j = 0; p->kind == NEAR_LIMIT && j < e->nodes.count; j++)
        e->nodes.potentials[j] =
            (float)((j % 2 ? -1 : 1) * (IRON_EXACT_LIMIT + (j % 3 == 2 ? 200 * j : -1 - 37 * j)));
    return e->backend->restart(e, &c->error);
}

/* Feeds a plan's pieces from device memory. By pointer: through iron_feed_device, which needs the
 * buffer to begin with the tokens where memory has no addresses; every other piece from the
 * host. */
static iron_status feed_plan(check *c, iron_engine *e, const plan *p, uint64_t count) {
    bool is_pointer = p->kind == BY_POINTER;
    uint64_t at = p->s.lead, base = 0, width = sizeof(uint32_t);
    const uint32_t *tokens = c->memory;
    iron_report r = {.struct_size = sizeof r};

    if (is_pointer && !c->test->device->info.has_addresses)
        base = at + p->pieces[0];
    IRON_TRY(upload(c, tokens + base, (size_t)((at + count - base) * width),
                    (at + p->s.tokens - base) * width));
    for (size_t k = 0; k < p->piece_count; at += p->pieces[k++]) {
        if (is_pointer && k % 2 == 0)
            IRON_TRY(iron_engine_feed(e, tokens + at, (size_t)p->pieces[k], &c->error));
        else if (is_pointer)
            IRON_TRY(iron_feed_device(e, (const void *)(c->buffer->native + (at - base) * width),
                                      p->pieces[k], (void *)c->queue->native, &c->error));
        else
            IRON_TRY(iron__gpu_feed_resident(e->gpu, c->buffer->native, U32, at, p->pieces[k],
                                             c->queue->native, &c->error));
        if (p->kind == SYNCED)
            IRON_TRY(iron_engine_report(e, &r, &c->error));
    }
    return IRON_OK;
}

/* In two feeds, so that the open batch passes from call to call. */
static iron_status feed_shape(check *c, iron_engine *e, const shape *s, const unsigned char *tokens,
                              bool from_pinned) {
    size_t count = (size_t)(s->tokens - s->first), width = iron_dtype_bytes(s->dtype);
    void *pinned = NULL;
    iron_status status;

    IRON_TRY(iron_engine_feed_as(e, s->dtype, tokens, (size_t)s->first, &c->error));
    tokens += s->first * width;
    if (from_pinned) {
        IRON_TRY(iron_engine_tokens_alloc(e, count * width, &pinned, &c->error));
        tokens = memcpy(pinned, tokens, count * width);
    }
    status = iron_engine_feed_as(e, s->dtype, tokens, count, &c->error);
    iron_engine_tokens_free(e, pinned);
    return status;
}

/* Host memory holds at most this many tokens of a shape; longer streams repeat them. */
#define CHUNK_TOKENS (UINT64_C(1) << 24)

static iron_status run_shape(check *c, const shape *s, const plan *p, iron_config config,
                             bool from_pinned) {
    static const uint32_t lattice_counts[] = {0, 2, IRON_LATTICE_MAX};
    size_t count = (size_t)SMALLER(s->tokens, CHUNK_TOKENS), width = iron_dtype_bytes(s->dtype);
    size_t words = 2 * (count + s->lead); /* room for all widths */
    uint32_t points[IRON_LATTICE_MAX];
    iron_config on_cpu;
    unsigned char *tokens;
    float *activations;
    /* activations: negative, zero, huge, as small as allowed, and such that products fall between
     * points */
    static const float values[] = {-1.0f, 0.0f,      3e38f,     -3e38f,   0x1p-96f,
                                   0.5f,  -65535.5f, 7.000001f, 1e-6f,    -1e-6f,
                                   1.0f,  -0x1p-96f, 511.25f,   -0.3333f, 1e9f};
    uint64_t largest = (UINT64_C(1) << (s->dtype == I32 ? 31 : 8 * SMALLER(width, 4))) - 1;
    uint64_t limit = s->kind == IN_VOCAB ? SMALLER(s->vocab, largest + 1) : largest + 1;

    IRON_TRY(allocate(c, (words + (size_t)s->nodes) * sizeof(uint32_t)));
    tokens = (unsigned char *)c->memory + s->lead * width;
    activations = (float *)c->memory + words;
    for (size_t k = 0; k < count; k++)
        store_token(tokens, s->dtype, k,
                    s->kind == ONES ? largest
                                    : iron__mix64(s->vocab + (k + 1) * IRON_GOLDEN_GAMMA) % limit);
    for (uint64_t j = 0; j < s->nodes; j++)
        activations[j] = values[j % COUNT(values)];
    for (uint32_t k = 0; k < IRON_LATTICE_MAX - 1; k++) /* at growing distances */
        points[k] = s->lattice == 1 ? k + 1 : 1 + k + 16 * k * k;
    points[IRON_LATTICE_MAX - 1] = IRON_LATTICE_POINT_MAX;
    config.nodes = s->nodes;
    config.vocab = s->vocab;
    config.batch = s->batch;
    config.positions = s->positions;
    config.activations = s->has_activations ? activations : NULL;
    config.lattice = s->lattice ? points : NULL;
    config.lattice_count = lattice_counts[s->lattice];
    on_cpu = config;
    on_cpu.backend = "cpu";
    on_cpu.device = on_cpu.threads = 0;
    on_cpu.mode = s->tokens > count ? "champion" : "scalar";
    on_cpu.memory = NULL;
    IRON_TRY(create_engine(c, 0, &on_cpu, p));
    for (uint64_t done = 0; done < s->tokens; done += count)
        IRON_TRY(iron_engine_feed_as(c->engines[0], s->dtype, tokens,
                                     (size_t)SMALLER(count, s->tokens - done), &c->error));
    IRON_TRY(create_engine(c, 1, &config, p));
    IRON_TRY(p ? feed_plan(c, c->engines[1], p, count)
               : feed_shape(c, c->engines[1], s, tokens, from_pinned));
    for (size_t k = 0; k < 2; k++)
        IRON_TRY(iron_engine_end_batch(c->engines[k], &c->error));
    return compare(c, 1, "");
}

/* One shape in one mode. */
static void test_shape(selftest *t, const iron__tokens_gpu_row *row, const shape *s, const plan *p,
                       const char *memory, bool from_pinned, const char *label) {
    iron_config config = config_for(t, row->mode);
    iron_status status;
    check c;

    config.memory = memory;
    if (!check_begin(&c, t,
                     "%s%" PRIu64 " %s tokens, batch %" PRIu64 ", nodes %" PRIu64 ", vocab %" PRIu64
                     ", positions %d, values %d, lattice %u, activations %d, "
                     "first %" PRIu64 ", lead %u, %s, device %zu",
                     label, s->tokens, iron_dtype_name(s->dtype), s->batch, s->nodes, s->vocab,
                     s->positions, s->kind, s->lattice, s->has_activations, s->first, s->lead,
                     row->names[t->backend], t->index) ||
        !can_afford(&c, row->per_node, s->nodes, s->tokens))
        return;
    status = run_shape(&c, s, p, config, from_pinned);
    if (status == IRON_E_NOMEM && s->tokens > CHUNK_TOKENS)
        check_skip(&c, c.error.text); /* the device is short of memory at the moment */
    else
        check_end(&c, status);
}

static void test_modes(selftest *t, const shape *s, const char *memory, bool from_pinned,
                       const char *label) {
    for (size_t k = 0; iron__tokens_gpu_row_at(k); k++)
        test_shape(t, iron__tokens_gpu_row_at(k), s, NULL, memory, from_pinned, label);
}

static void test_strategies(selftest *t) {
    size_t first = t->is_quick ? 0 : 2;

    for (iron__gpu_strategy k = 0; k < IRON_GPU_STRATEGIES; k++) {
        const char *memory = iron__gpu_strategy_name(k);
        shape reuse = strategy_shapes[4];
        check c;
        char label[60];

        snprintf(label, sizeof label, "memory %s, ", memory);
        if (t->device->info.lacks[k][0]) {
            (void)check_begin(&c, t, "%s%s", label, t->place); /* also if lost */
            check_skip(&c, t->device->info.lacks[k]);
            continue;
        }
        test_modes(t, &strategy_shapes[first], memory, true, label);
        test_modes(t, &strategy_shapes[first + 1], memory, false, label);
        reuse.nodes = t->device->info.is_gpu ? reuse.nodes : 4;
        if (!t->is_quick)
            test_shape(t, iron__tokens_gpu_row_find("hybrid"), &reuse, NULL, memory, false, label);
    }
}

#define PIECES(list) (list), COUNT(list)

static const uint64_t small[] = {1, 2, 3, 4, 5, 1, 7, 15, 16, 17, 31, 64, 1000, 999, 1, 3001};
static const uint64_t large[] = {1, 19999, 20001, 3, 16384, 8192, 5, 20000};
static const uint64_t even[] = {16384, 16384, 16384, 16384, 16384};
static const uint64_t odd[] = {16387, 16387, 1, 16387, 32, 16387};
static const uint64_t several[] = {7500, 9123, 999, 12001, 20000};
static const uint64_t far[] = {1, 999, 5, 40000, 17};
static const uint64_t together[] = {6400, 1, 77};
static const uint64_t apart[] = {20000, 16384, 20000, 5};

#define SHAPE(nodes, batch, positions, lattice, lead)                                              \
    { 0, nodes, batch, 50257, positions, ANY, U32, lattice, false, 0, lead }

static const plan plans[] = {
    /* around quads, warps and batches, at every alignment */
    {"small pieces", SHAPE(33, 1000, STREAM, 0, 0), PIECES(small), 0, PLAIN},
    {"small pieces", SHAPE(33, 1000, BATCH, 0, 1), PIECES(small), 0, PLAIN},
    {"small pieces", SHAPE(33, 1000, STREAM, 0, 2), PIECES(small), 0, PLAIN},
    {"small pieces", SHAPE(33, 1000, BATCH, 0, 3), PIECES(small), 0, PLAIN},
    {"large pieces", SHAPE(33, 20000, BATCH, 0, 0), PIECES(large), 0, PLAIN},
    {"large pieces", SHAPE(33, 20000, STREAM, 0, 1), PIECES(large), 0, PLAIN},
    {"large pieces", SHAPE(33, 20000, BATCH, 0, 2), PIECES(large), 0, PLAIN},
    {"large pieces", SHAPE(33, 20000, STREAM, 0, 3), PIECES(large), 0, PLAIN},
    /* waiting batches are applied while one is open, and more wait later than did before */
    {"applied after each piece", SHAPE(33, 1000, STREAM, 0, 1), PIECES(several), 0, SYNCED},
    /* whole batches, which one launch can reduce and apply where a device gathers its groups; and
     * pieces that are almost so: not at 16 bytes, or of a length that shifts positions */
    {"whole batches", SHAPE(33, 16384, STREAM, 0, 0), PIECES(even), 0, PLAIN},
    {"whole batches", SHAPE(33, 16384, BATCH, 2, 4), PIECES(even), 0, PLAIN},
    {"whole batches, unaligned", SHAPE(33, 16384, BATCH, 0, 5), PIECES(even), 0, PLAIN},
    {"whole odd batches", SHAPE(1, 16387, BATCH, 0, 0), PIECES(odd), 0, PLAIN},
    {"whole batches near 2^24", SHAPE(33, 16384, STREAM, 2, 0), PIECES(even), 0, NEAR_LIMIT},
    {"whole batches, many nodes", SHAPE(100003, 16384, STREAM, 0, 0), PIECES(even), 0, PLAIN},
    /* positions that need more than 32 bits, and more than 36 */
    {"far", SHAPE(33, 1000, STREAM, 0, 0), PIECES(far), (UINT64_C(1) << 32) - 30011, PLAIN},
    {"far", SHAPE(33, 20000, STREAM, 0, 0), PIECES(far), (UINT64_C(1) << 36) - 16400, PLAIN},
    {"far", SHAPE(33, 20000, STREAM, 0, 0), PIECES(far), (UINT64_C(1) << 63) + 1, PLAIN},
    /* batches that wait together, and single ones, while potentials pass 2^24 */
    {"potentials near 2^24", SHAPE(33, 64, STREAM, 0, 3), PIECES(together), 0, NEAR_LIMIT},
    {"potentials near 2^24", SHAPE(33, 16384, BATCH, 0, 4), PIECES(apart), 0, NEAR_LIMIT},
};

static void test_plan(selftest *t, const iron__tokens_gpu_row *row, plan p) {
    char label[120];

    p.s.has_activations = p.kind == NEAR_LIMIT;
    for (size_t k = 0; k < p.piece_count; k++)
        p.s.tokens += p.pieces[k];
    snprintf(label, sizeof label, "on the device: %s at position %" PRIu64 ", ", p.what, p.start);
    test_shape(t, row, &p.s, &p, NULL, false, label);
}

static void test_plans(selftest *t) {
    static const uint64_t leads[] = {0, 1, 2, 3, 4097};
    size_t pointers = t->device->info.has_addresses ? COUNT(leads) : 1;
    const iron__tokens_gpu_row *row;

    for (size_t r = 0; (row = iron__tokens_gpu_row_at(r)); r++) {
        /* where every node reads every token, other numbers of nodes would only take long */
        for (size_t k = 0; k < COUNT(plans); k++)
            if (!row->per_node || plans[k].s.nodes == 33)
                test_plan(t, row, plans[k]);
        /* More closed batches than can wait: in one launch, and with pieces that end just before,
         * at and after the last place. Other modes apply every batch at once: a few are enough. */
        for (uint64_t batch = 1; batch <= 3; batch++) {
            uint64_t room = row->takes_many ? batch * TOKENS_PENDING_MAX : 40;
            uint64_t once[] = {2 * room + 5}, cut[] = {room - 1, 2, room - 2, 2, 1, room, 3, 2};
            shape s = SHAPE(33, batch, STREAM, 0, 1);

            test_plan(t, row, (plan){"many batches", s, PIECES(once), 0, PLAIN});
            s.positions = BATCH;
            s.lead = 2;
            test_plan(t, row, (plan){"many batches in pieces", s, PIECES(cut), 0, PLAIN});
        }
        for (size_t k = 0; k < pointers; k++) {
            uint64_t pieces[] = {776 + leads[k], 70001 - leads[k], 777};
            shape s = SHAPE(33, 20000, STREAM, 0, 0);

            test_plan(t, row, (plan){"a caller's tokens", s, PIECES(pieces), 0, BY_POINTER});
        }
    }
}

/* More tokens in one buffer than 31 bits count: shows indices, batch ends and grid sizes that were
 * computed in 32 bits. Takes 8 GiB on the device. The per-node modes get one node: the arithmetic
 * is the same. */
#define LARGE_TOKENS ((UINT64_C(1) << 31) + 3)

static void test_large(selftest *t) {
    static const uint64_t all[] = {LARGE_TOKENS};
    static const struct {
        uint64_t batch, nodes;
        const char *mode;
    } cases[] = {{LARGE_TOKENS, 4096, "champion"},   {LARGE_TOKENS, 4096, "reduce"},
                 {786432, 4096, "champion"},         {786432, 4096, "reduce"},
                 {LARGE_TOKENS, 1, "hybrid-vector"}, {LARGE_TOKENS, 1, "tiled-vector"},
                 {LARGE_TOKENS, 1, "atomic2d"}};
    const iron__gpu_info *info = &t->device->info;
    check c;

    if (t->is_quick || !info->is_gpu || info->memory_bytes < UINT64_C(12) << 30) {
        if (check_begin(&c, t, "2^31 tokens and three, %s", t->place))
            check_skip(&c, t->is_quick ? "8 GiB of tokens are not part of a quick selftest"
                                       : "8 GiB of tokens need a GPU with 12 GiB");
        return;
    }
    for (size_t k = 0; k < COUNT(cases); k++) {
        shape s = SHAPE(cases[k].nodes, cases[k].batch, STREAM, 0, 0);

        test_plan(t, iron__tokens_gpu_row_find(cases[k].mode),
                  (plan){"large", s, PIECES(all), 0, PLAIN});
    }
}

#define LEAD_MAX 4097u

/* Where the stream is cut. Edges of every remainder, pieces without a whole quad, and some that
 * take several groups. Pieces are taken in steps of PIECE_STEP modulo their number: each once, and
 * never after its neighbour. */
#define PIECE_STEP 7u
static const size_t digest_cuts[] = {0,    1,     3,     6,     10,    15,    16,    23,   1024,
                                     1030, 41033, 41048, 41064, 60063, 60065, 60098, 60141};
#define DIGEST_PIECES (COUNT(digest_cuts) - 1)
#define DIGEST_TOKENS (LEAD_MAX + 60141)

/* All pieces on the CPU or, for the most part, on the device. The stream begins `lead` tokens into
 * the check's memory and buffer. */
static iron_status run_digest(check *c, iron_dtype dtype, size_t lead, bool on_device,
                              iron_digest_result *result) {
    iron_config place = config_for(c->test, NULL);
    iron_digest_options o = {.struct_size = sizeof o,
                             .threads = 1,
                             .vocab = 50257,
                             .device = place.device,
                             .backend = place.backend};
    iron_digest digest = {NULL};
    iron_status status = iron_digest_init(&digest, &o, &c->error);

    *result = (iron_digest_result){.struct_size = sizeof *result};
    for (size_t turn = 0; status == IRON_OK && turn < DIGEST_PIECES; turn++) {
        size_t piece = turn * PIECE_STEP % DIGEST_PIECES, at = digest_cuts[piece];
        size_t count = digest_cuts[piece + 1] - at, width = iron_dtype_bytes(dtype);
        size_t offset = c->test->device->info.has_addresses ? (lead + at) * width : 0;

        status = on_device && turn % 5 != 4
                     ? iron_digest_update_device(&digest, at, dtype,
                                                 (const void *)(c->buffer->native + offset), count,
                                                 (void *)c->queue->native, &c->error)
                     : iron_digest_update(&digest, at, dtype, (char *)c->memory + offset, count,
                                          &c->error);
    }
    if (status == IRON_OK)
        status = iron_digest_final(&digest, result, &c->error);
    iron_digest_deinit(&digest);
    return status;
}

/* Tokens hold all values of their width, also those beyond the vocabulary. A token out of range
 * must be refused by the device in the CPU's words. */
static iron_status compare_digests(check *c, iron_dtype dtype, size_t lead, bool has_bad) {
    size_t width = iron_dtype_bytes(dtype), count = DIGEST_TOKENS;
    iron_digest_result got, want;
    iron_status expected, status;
    iron_error refusal;

    IRON_TRY(allocate(c, count * width));
    for (size_t k = 0; k < count; k++)
        store_token(c->memory, dtype, k, (uint32_t)iron__mix64(k) >> (dtype == I32));
    if (has_bad)
        memset((char *)c->memory + 777 * width, 0xFF, width); /* -1 */
    IRON_TRY(upload(c, c->memory, count * width, count * width));
    expected = run_digest(c, dtype, lead, false, &want);
    refusal = c->error;
    c->error = (iron_error){.status = IRON_OK};
    status = run_digest(c, dtype, lead, true, &got);
    if (status != IRON_OK && status != IRON_E_FORMAT)
        return status;
    if (status != expected || (has_bad && status == IRON_OK) ||
        strcmp(c->error.text, refusal.text) != 0 || strcmp(got.seal, want.seal) != 0 ||
        got.tokens != want.tokens || got.min != want.min || got.max != want.max ||
        got.out_of_vocab != want.out_of_vocab ||
        got.first_out_position != want.first_out_position ||
        got.first_out_value != want.first_out_value)
        snprintf(c->difference, sizeof c->difference,
                 "seal %s values %u to %u, %.60s; expected %s %u to %u, %.60s", got.seal, got.min,
                 got.max, c->error.text, want.seal, want.min, want.max, refusal.text);
    return IRON_OK;
}

/* Several devices that share a stream: this one twice, and from the first one all of them. Long
 * enough that each has a range; past 2^24, where the order of batches counts. */
#define SHARED_TOKENS ((size_t)3 << 19)

static iron_status run_shared(check *c, const char *devices, uint64_t batch) {
    const uint32_t points[] = {1, 65535};
    selftest on_cpu = {.device = NULL};

    IRON_TRY(allocate(c, SHARED_TOKENS * sizeof(uint32_t)));
    IRON_TRY(iron_generate(16, UINT64_C(1) << 32, 0, c->memory, SHARED_TOKENS, &c->error));
    for (size_t k = 0; k < 2; k++) {
        iron_config config = config_for(k ? c->test : &on_cpu, "champion");

        config.devices = k ? devices : NULL;
        config.batch = batch;
        config.with_seal = 1;
        config.lattice = points;
        config.lattice_count = COUNT(points);
        IRON_TRY(iron_engine_create(&config, &c->engines[k], &c->error));
        IRON_TRY(iron_engine_feed(c->engines[k], c->memory, SHARED_TOKENS - 5, &c->error));
        IRON_TRY(iron_engine_feed(c->engines[k], c->memory, 5, &c->error));
        IRON_TRY(iron_engine_end_batch(c->engines[k], &c->error));
    }
    return compare(c, 1, "");
}

/* Checkpoints, as the store uses them. Feeds between these cuts, in batches of 700: none, a part of
 * a batch, one and a part, exactly two, many. The last feed is the fork's. */
static const size_t feed_cuts[] = {0, 0, 3, 704, 2104, 2105, 22116, 27119};
#define FEEDS       (COUNT(feed_cuts) - 1)
#define FEED_TOKENS 27119u
#define FEED_BATCH  700u
#define BATCHES_MAX (FEED_TOKENS / FEED_BATCH + FEEDS)

typedef struct batch_log {
    iron__contribution batches[BATCHES_MAX];
    size_t count;
} batch_log;

static void log_batch(void *context, iron__contribution batch) {
    batch_log *log = context;

    if (log->count < BATCHES_MAX)
        log->batches[log->count++] = batch;
}

static iron_status feed_all(check *c, size_t engine, size_t first, size_t end) {
    for (size_t k = first; k < end; k++) {
        IRON_TRY(iron_engine_feed(c->engines[engine], (uint32_t *)c->memory + feed_cuts[k],
                                  feed_cuts[k + 1] - feed_cuts[k], &c->error));
        IRON_TRY(iron_engine_end_batch(c->engines[engine], &c->error));
    }
    return IRON_OK;
}

/* Engines: 0 on the CPU, 1 fed, 2 replayed, 3 forked. */
static iron_status run_checkpoint(check *c, iron_positions positions) {
    selftest on_cpu = {.device = NULL};
    batch_log log = {.count = 0};
    iron__checkpoint checkpoint;

    IRON_TRY(allocate(c, FEED_TOKENS * sizeof(uint32_t)));
    IRON_TRY(iron_generate(15, UINT64_C(1) << 32, 0, c->memory, FEED_TOKENS, &c->error));
    for (size_t k = 0; k < 4; k++) {
        iron_config config = k ? config_for(c->test, "champion") : config_for(&on_cpu, "scalar");

        config.nodes = 129;
        config.batch = FEED_BATCH;
        config.positions = positions;
        config.with_seal = 1;
        IRON_TRY(iron_engine_create(&config, &c->engines[k], &c->error));
    }
    IRON_TRY(feed_all(c, 0, 0, FEEDS - 1));
    iron__engine_on_batch(c->engines[1], log_batch, &log);
    IRON_TRY(feed_all(c, 1, 0, FEEDS - 1));
    IRON_TRY(compare(c, 1, "fed: "));
    IRON_TRY(iron__engine_checkpoint(c->engines[1], &checkpoint, &c->error));
    IRON_TRY(
        iron__engine_replay(c->engines[2], log.batches, log.count, &checkpoint.seal, &c->error));
    IRON_TRY(compare(c, 2, "replayed: "));
    IRON_TRY(iron__engine_restore(c->engines[3], &checkpoint,
                                  iron_engine_xor_accumulators(c->engines[1]),
                                  iron_engine_potentials(c->engines[1]), &c->error));
    IRON_TRY(feed_all(c, 3, FEEDS - 1, FEEDS));
    IRON_TRY(feed_all(c, 0, FEEDS - 1, FEEDS));
    return compare(c, 3, "forked: ");
}

static void test_gpu(selftest *test) {
    check c;
    size_t count = COUNT(shapes) * (test->device->info.is_gpu && !test->is_quick ? 4 : 2);
    static const iron_dtype dtypes[] = {U8, U16, U32, I32, I64};
    static const size_t leads[] = {0, 1, 2, 3, 5, LEAD_MAX, 0}; /* the last with a bad token */
    bool has_all = test->index == 0 && iron_device_count(iron__gpu_backend_name(test->backend)) > 1;
    char twice[48];

    test_strategies(test);
    for (size_t k = 0; k < count; k++) {
        shape s = k < COUNT(shapes) ? shapes[k] : mixed_shape(k);

        if (!test->is_quick || s.tokens <= QUICK_TOKENS)
            test_modes(test, &s, NULL, false, "");
    }
    test_plans(test);
    test_large(test);
    for (size_t k = 0; k < COUNT(dtypes) * COUNT(leads); k++) {
        iron_dtype dtype = dtypes[k / COUNT(leads)];
        size_t lead = leads[k % COUNT(leads)];
        bool has_bad = k % COUNT(leads) == COUNT(leads) - 1;

        if ((!has_bad || dtype == I32 || dtype == I64) &&
            (lead == 0 || test->device->info.has_addresses) &&
            check_begin(&c, test, "on the device: a digest of %s %s tokens, from %zu, %s",
                        has_bad ? "bad" : "a caller's", iron_dtype_name(dtype), lead, test->place))
            check_end(&c, compare_digests(&c, dtype, lead, has_bad));
    }
    snprintf(twice, sizeof twice, "%zu,%zu", test->index, test->index);
    for (int all = 0; all < (has_all ? 2 : 1); all++)
        for (uint64_t batch = 1001; batch < 200000; batch *= 100)
            if (check_begin(&c, test, "shared by devices %s, batch %" PRIu64 ", %s",
                            all ? "all" : twice, batch, test->place))
                check_end(&c, run_shared(&c, all ? "all" : twice, batch));
    for (int by_batch = 0; by_batch < 2; by_batch++)
        if (check_begin(&c, test, "checkpoint, replay and fork, positions of the %s, %s",
                        by_batch ? "batch" : "stream", test->place))
            check_end(&c, run_checkpoint(&c, by_batch ? BATCH : STREAM));
}

/* The whole selftest. */

static void test_backend(selftest *t, size_t backend) {
    const char *name = iron__gpu_backend_name(backend);
    iron_error why;
    check c;
    size_t devices;

    (void)check_begin(&c, t, "backend %s", name);
    if (iron__gpu_probe(backend, &devices, &why) != IRON_OK)
        check_skip(&c, why.text);
    t->backend = backend;
    for (t->index = 0; t->index < devices; t->index++) {
        snprintf(t->place, sizeof t->place, "%s device %zu", name, t->index);
        if (iron__gpu_device_open(backend, t->index, &t->device, &why) != IRON_OK) {
            report(t, IRON_VERDICT_FAILED, t->place, why.text);
            continue;
        }
        test_golden_cases(t);
        test_gpu(t);
        test_ops(t);
        iron__gpu_device_close(t->device);
        t->device = NULL;
        t->is_lost = false;
    }
}

iron_status iron_selftest(const iron_selftest_options *options, iron_selftest_result *result,
                          iron_error *err) {
    selftest t = {.is_quick = options->is_quick != 0,
                  .only = options->only,
                  .line = options->line,
                  .context = options->context};

    test_golden_tables(&t);
    test_golden_seals(&t);
    test_golden_cases(&t);
    test_variants(&t);
    test_ops(&t);
    for (size_t backend = 0; backend < iron__gpu_backend_count(); backend++)
        test_backend(&t, backend);
    *result = t.result;
    if (t.error.status != IRON_OK)
        return iron__fail_again(err, &t.error);
    IRON_FAIL_IF(t.only && t.result.passed + t.result.failed == 0, err, IRON_E_ARG,
                 "no check here has '%.60s' in its name; iron selftest --verbose shows the names",
                 t.only);
    IRON_FAIL_IF(t.result.failed > 0, err, IRON_E_MISMATCH,
                 "%" PRIu64 " of %" PRIu64
                 " checks failed; do not trust what this build computes here",
                 t.result.failed, t.result.failed + t.result.passed);
    return IRON_OK;
}
