/* SPDX-License-Identifier: MIT */
/*
 * tokens_op.c: the op `tokens` for races: how its problem is made and judged, and its contenders on
 * the CPU, which are the rows of registry.c.
 *
 * A case is one batch: rows tokens at positions 0, 1, ..., drawn from the generator below the
 * vocabulary. Swept over sizes, that is Part I's advice about batches: one that fits into the last
 * level of the cache is read from there when it is read again.
 */
#include "ops/tokens/tokens_op.h"

#include "core/fail.h"
#include "ops/line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tokens that a thread takes at a time; the engine's runs are as long. */
#define RUN_TOKENS  ((size_t)1 << 18)
#define TASK_NODES  16u
#define VOCAB_USUAL 50257u

/* What a thread takes in of pairs of node and token in a second, about (a Xeon's, an older
 * Neoverse's): enough to tell seconds from minutes. */
#define PAIRS_A_SECOND 5e8

static const char contract[] =
    "count, xor and sum of a batch of positioned tokens, applied to 4096 nodes";

static const char why[] =
    "A token is read once, four bytes, and a handful of integer operations follow: memory should "
    "be "
    "the only limit. The first kernels read every token once for each of 4096 nodes, and are "
    "limited "
    "by that; later ones read it once, but wait for a division, or for too few bytes in flight. "
    "The "
    "champion has neither, and comes within a few percent of a bare read.\n\n"
    "Sizes are batches. One that fits into the last level of the cache (2 to 4 MB is Part I's "
    "advice) "
    "is served from there when it comes again: compare the warm and the cold column, or sweep with "
    "--size 'batch:*'.";

static const char traffic[] =
    "Four bytes a token, and some words a batch: the nodes of the lattice are updated from one sum "
    "and one exclusive or. The first modes read every token once a node instead.";
static const char unless[] =
    "A batch of a few thousand tokens ends before the last of many groups has begun: launching "
    "decides then, and modes differ little. Many small batches at once are what the champion's "
    "segmented reduction is for.";
static const char used[] =
    "This is the product's own work: `iron feed` runs these rows (src/ops/tokens/champion.k, "
    "apply.k, champion_step.cu), and --mode auto chooses among them.";

/* Powers of two around what caches hold, and the papers' 3 MiB. */
static const iron__size sizes[] = {
    {"batch", "64KiB", 1 << 14, 1, NULL},  {"batch", "256KiB", 1 << 16, 1, NULL},
    {"batch", "1MiB", 1 << 18, 1, NULL},   {"batch", "2MiB", 1 << 19, 1, NULL},
    {"batch", "3MiB", 786432, 1, NULL},    {"batch", "4MiB", 1 << 20, 1, NULL},
    {"batch", "8MiB", 1 << 21, 1, NULL},   {"batch", "16MiB", 1 << 22, 1, NULL},
    {"batch", "32MiB", 1 << 23, 1, NULL},  {"batch", "64MiB", 1 << 24, 1, NULL},
    {"batch", "128MiB", 1 << 25, 1, NULL}, {"batch", "256MiB", 1 << 26, 1, NULL},
    {"batch", "1GiB", 1 << 28, 1, NULL},
};

static void usual_size(uint64_t cache_bytes, bool has_gpu, iron__element element, uint64_t *rows,
                       uint64_t *cols) {
    uint64_t least = has_gpu ? UINT64_C(1) << 28 : UINT64_C(1) << 26;

    (void)element;
    *rows = iron__line_usual(least, UINT64_MAX, sizeof(uint32_t), cache_bytes);
    *cols = 1;
}

static uint64_t useful_bytes(const iron__case *c) { return c->rows * sizeof(uint32_t); }

/* Hash, addition, XOR, remainder, sum: five. */
static double operations(const iron__case *c) { return 5.0 * (double)c->rows; }

static iron_status accept(const iron__case *c, iron_error *err) {
    IRON_FAIL_IF(c->vocab < 2 || c->vocab > UINT32_C(1) << 31, err, IRON_E_ARG,
                 "vocab is %" PRIu32 "; it must be 2 to 2147483648", c->vocab);
    IRON_FAIL_IF(
        c->rows < 1 || c->rows > (UINT64_C(1) << 62) / c->vocab || c->rows > UINT64_C(1) << 40, err,
        IRON_E_ARG, "a batch of %" PRIu64 " tokens is none, or too large; use less", c->rows);
    return IRON_OK;
}

/* The tokens' loop, on however many threads. */
typedef struct reduction {
    const iron__tokens_variant *variant;
    const iron__problem *problem;
    iron__contribution *runs;
} reduction;

static const iron__tokens_problem *own_of(const iron__problem *p) { return p->own; }

static iron__tokens_run run_at(const iron__problem *p, uint64_t first, uint64_t count) {
    return (iron__tokens_run){(const uint32_t *)p->inputs[0].data + first, (size_t)count, first,
                              &own_of(p)->divisor};
}

static void reduce_run(void *context, size_t index) {
    const reduction *r = context;
    uint64_t first = (uint64_t)index * RUN_TOKENS, left = r->problem->c.rows - first;
    iron__tokens_run run = run_at(r->problem, first, left < RUN_TOKENS ? left : RUN_TOKENS);

    r->runs[index] = r->variant->reduce(&run);
}

static size_t runs_of(const iron__case *c) {
    return (size_t)((c->rows + RUN_TOKENS - 1) / RUN_TOKENS);
}

static size_t scratch_bytes(const iron__problem *p, uint32_t threads) {
    (void)threads;
    return runs_of(&p->c) * sizeof(iron__contribution);
}

/* The start's nodes in the answer's arrays. */
static iron__nodes nodes_in(const iron__problem *p, iron__tokens_answer *answer) {
    iron__nodes nodes = own_of(p)->start;
    size_t bytes = sizeof answer->potentials;

    memcpy(answer->xor_accumulators, nodes.xor_accumulators, sizeof answer->xor_accumulators);
    memcpy(answer->potentials, nodes.potentials, bytes);
    nodes.xor_accumulators = answer->xor_accumulators;
    nodes.potentials = answer->potentials;
    return nodes;
}

static void put_contribution(iron__tokens_answer *answer, iron__contribution c) {
    answer->sum = c.sum;
    answer->xors = c.xors;
    answer->count = c.count;
    answer->has_nodes = 1;
}

static void answer_with(const iron__problem *p, iron__contribution c, iron__tokens_answer *answer) {
    iron__batch_effect effect = {c.xors, iron__contribution_potential(c, p->c.vocab)};
    iron__nodes nodes = nodes_in(p, answer);

    iron__nodes_apply(&nodes, &effect, 1, NULL);
    put_contribution(answer, c);
}

static void run_once(const iron__cpu_work *w) {
    reduction r = {w->row->own, w->problem, w->scratch};
    iron__contribution c = iron__contribution_neutral();
    size_t runs = runs_of(&w->problem->c);

    if (r.variant->all_threads)
        iron__team_run(w->team, reduce_run, &r, runs);
    else
        for (size_t k = 0; k < runs; k++)
            reduce_run(&r, k);
    for (size_t k = 0; k < runs; k++)
        c = iron__contribution_merge(c, r.runs[k]);
    answer_with(w->problem, c, w->output);
}

/* Part I: every node reads all tokens by itself. */
typedef struct node_work {
    const iron__cpu_work *work;
    iron__nodes nodes;
    iron__contribution first; /* of node 0: it stands for the batch */
} node_work;

static void reduce_nodes(void *context, size_t task) {
    node_work *n = context;
    const iron__tokens_variant *variant = n->work->row->own;
    const iron__problem *p = n->work->problem;
    iron__tokens_run run = run_at(p, 0, p->c.rows);

    for (uint32_t j = (uint32_t)task * TASK_NODES; j < ((uint32_t)task + 1) * TASK_NODES; j++) {
        iron__contribution c = variant->reduce(&run);
        iron__batch_effect effect = {c.xors, iron__contribution_potential(c, p->c.vocab)};

        iron__nodes_apply_to(&n->nodes, j, effect);
        if (j == 0)
            n->first = c;
    }
}

static void run_per_node(const iron__cpu_work *w) {
    node_work n = {.work = w, .nodes = nodes_in(w->problem, w->output)};

    iron__team_run(w->team, reduce_nodes, &n, IRON_TOKENS_RACE_NODES / TASK_NODES);
    put_contribution(w->output, n.first);
}

static double seconds(const iron__contender *row, const iron__case *c, const iron__gpu_info *device,
                      uint32_t threads) {
    const iron__tokens_variant *variant = row->own;

    (void)device;
    if (!variant->per_node)
        return 0;
    return (double)c->rows * IRON_TOKENS_RACE_NODES / PAIRS_A_SECOND / threads;
}

#define NAME_LEAD (sizeof "tokens.cpu." - 1)

static bool contender_at(size_t index, iron__contender *out) {
    const iron__tokens_variant *v = iron__tokens_variant_at(index);

    if (!v)
        return iron__tokens_gpu_contender_at(index - iron__tokens_variant_count(), out);
    *out = (iron__contender){.name = v->name + NAME_LEAD,
                             .idea = v->idea,
                             .beats = v->beats ? v->beats + NAME_LEAD : NULL,
                             .backends = IRON_ON_CPU,
                             .needs = v->needs,
                             .passes = v->per_node ? IRON_TOKENS_RACE_NODES : 1,
                             .cpu_run = v->per_node ? run_per_node : run_once,
                             .cpu_scratch_bytes = scratch_bytes,
                             .is_single = !v->all_threads,
                             .seconds = seconds,
                             .own = v};
    return true;
}

/* Fills pieces of the tokens, each with its own part of the generator's stream. */
static void generate_run(void *context, size_t index) {
    iron__problem *p = context;
    uint64_t first = (uint64_t)index * RUN_TOKENS, left = p->c.rows - first;

    (void)iron_generate(p->c.seed, p->c.vocab, first, (uint32_t *)p->inputs[0].data + first,
                        (size_t)(left < RUN_TOKENS ? left : RUN_TOKENS), NULL);
}

/* The reference: token by token, with %. */
static iron_status find_answer(iron__problem *p, iron__team *team, iron_error *err) {
    reduction r = {iron__tokens_variant_find("scalar"), p, NULL};
    iron__tokens_problem *own = p->own;
    iron__contribution c = iron__contribution_neutral();
    size_t runs = runs_of(&p->c);

    r.runs = iron__allocate(iron__allocator_default(), runs, sizeof *r.runs, "runs", err);
    if (!r.runs)
        return IRON_E_NOMEM;
    iron__team_run(team, reduce_run, &r, runs);
    for (size_t k = 0; k < runs; k++)
        c = iron__contribution_merge(c, r.runs[k]);
    iron__release(iron__allocator_default(), r.runs);
    answer_with(p, c, own->expected);
    return IRON_OK;
}

static iron_status make_start(iron__tokens_problem *own, uint32_t vocab, iron_error *err) {
    own->divisor = iron__divisor_make(vocab);
    IRON_TRY(iron_lattice_create(NULL, 0, &own->lattice, err));
    return iron__nodes_init(&own->start, IRON_TOKENS_RACE_NODES, own->lattice, NULL,
                            iron__allocator_default(), err);
}

static iron_status fill(iron__problem *p, iron__team *team, iron_error *err) {
    const iron_allocator *allocator = iron__allocator_default();
    iron__array *tokens = &p->inputs[0];
    iron__tokens_problem *own;

    p->own = own = iron__allocate(allocator, 1, sizeof *own, "a problem", err);
    if (!own)
        return IRON_E_NOMEM;
    IRON_TRY(make_start(own, p->c.vocab, err));
    own->expected = iron__allocate(allocator, 1, sizeof *own->expected, "an answer", err);
    tokens->bytes = (size_t)useful_bytes(&p->c);
    tokens->data = own->expected ? iron__allocate_large(tokens->bytes, err) : NULL;
    if (!tokens->data)
        return IRON_E_NOMEM;
    iron__team_run(team, generate_run, p, runs_of(&p->c));
    return find_answer(p, team, err);
}

static void unmake(iron__problem *p) {
    iron__tokens_problem *own = p->own;

    iron__release_large(p->inputs[0].data, p->inputs[0].bytes);
    if (own) {
        iron__nodes_deinit(&own->start);
        iron_lattice_destroy(own->lattice);
        iron__release(iron__allocator_default(), own->expected);
        iron__release(iron__allocator_default(), own);
    }
    *p = (iron__problem){.c = p->c};
}

static iron_status make(iron__problem *out, iron__team *team, iron_error *err) {
    iron_status status;

    *out =
        (iron__problem){.c = out->c, .input_count = 1, .output_bytes = sizeof(iron__tokens_answer)};
    out->inputs[0].name = "tokens";
    status = fill(out, team, err);
    if (status != IRON_OK)
        unmake(out);
    return status;
}

static uint32_t bits_of(float value) {
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static bool check_nodes(const iron__tokens_answer *got, const iron__tokens_answer *want, char *text,
                        size_t size) {
    for (size_t j = 0; j < IRON_TOKENS_RACE_NODES; j++) {
        if (got->xor_accumulators[j] != want->xor_accumulators[j]) {
            snprintf(text, size, "accumulator %zu is %" PRIu32 ", should be %" PRIu32, j,
                     got->xor_accumulators[j], want->xor_accumulators[j]);
            return false;
        }
        if (bits_of(got->potentials[j]) != bits_of(want->potentials[j])) {
            snprintf(text, size, "potential %zu is %.9g, should be %.9g", j,
                     (double)got->potentials[j], (double)want->potentials[j]);
            return false;
        }
    }
    return true;
}

static bool check(const iron__problem *problem, const void *output, char *text, size_t size) {
    const iron__tokens_answer *got = output, *want = own_of(problem)->expected;

    if (got->xors != want->xors || got->sum != want->sum) {
        snprintf(text, size,
                 "xor %08" PRIx32 " and sum %" PRIu64 ", should be %08" PRIx32 " and %" PRIu64,
                 got->xors, got->sum, want->xors, want->sum);
        return false;
    }
    if (got->has_nodes == 0)
        return true;
    if (got->has_nodes != 1 || got->count != want->count) {
        snprintf(text, size, "%" PRIu64 " tokens, should be %" PRIu64, got->count, want->count);
        return false;
    }
    return check_nodes(got, want, text, size);
}

const iron__op iron__op_tokens = {
    .name = "tokens",
    .contract = contract,
    .why = why,
    .traffic = traffic,
    .unless = unless,
    .used = used,
    .elements = IRON_BIT(IRON_U32),
    .usual = IRON_U32,
    .is_line = true,
    .nodes = IRON_TOKENS_RACE_NODES,
    .vocab_usual = VOCAB_USUAL,
    .bound = IRON_BOUND_READ,
    .baselines = {"scalar", "reduce"},
    .sizes = sizes,
    .size_count = sizeof sizes / sizeof sizes[0],
    .usual_size = usual_size,
    .useful_bytes = useful_bytes,
    .operations = operations,
    .accept = accept,
    .make = make,
    .unmake = unmake,
    .check = check,
    .contender_at = contender_at,
};
