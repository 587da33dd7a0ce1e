/* SPDX-License-Identifier: MIT */
/*
 * tokens.c: the op `tokens` in races: one batch of tokens is reduced to its contribution and
 * applied to 4096 nodes. The contenders are the modes: the CPU's rows (tokens.h), then the GPU's
 * (tokens_gpu.h). Also what the op `seal` shares with it (tokens_contender.h).
 *
 * A case is one batch: `rows` tokens at positions 0, 1, ..., generated below the vocabulary; since
 * positions begin at 0, every run computes the same. Swept over sizes, this is Part I's advice
 * about batches: one that fits the last level of the cache is read from there the next time.
 */
#include "ops/tokens/tokens.h"
#include "core/fail.h"
#include "core/number.h"
#include "ops/data.h"
#include "ops/kit.h"
#include "ops/op.h"
#include "ops/tokens/tokens_contender.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NODES 4096u

/* The answer: the batch's contribution, and the nodes after it. A contender without nodes (a
 * library that only reduces) sets has_nodes to 0 and may leave out all members after it. */
typedef struct tokens_answer {
    uint64_t sum;
    uint32_t xors;
    uint32_t has_nodes;
    uint64_t count;
    uint32_t xor_accumulators[NODES];
    float potentials[NODES];
} tokens_answer;

/* The op's part of a problem. */
typedef struct tokens_problem {
    iron__divisor divisor;
    iron_lattice *lattice;
    iron__nodes start; /* before the batch */
    tokens_answer *expected;
} tokens_problem;

iron_status iron__tokens_accept_vocab(const iron__case *c, iron_error *err) {
    IRON_FAIL_IF(c->vocab < 2 || c->vocab > UINT32_C(1) << 31, err, IRON_E_ARG,
                 "vocab is %" PRIu32 "; it must be 2 to 2147483648", c->vocab);
    return IRON_OK;
}

static iron_status accept(const iron__case *c, iron_error *err) {
    uint64_t most;

    IRON_TRY(iron__tokens_accept_vocab(c, err));
    most = iron__min(IRON_TOKENS_ROWS_MAX, (UINT64_C(1) << 62) / c->vocab);
    IRON_FAIL_IF(c->rows < 1 || c->rows > most, err, IRON_E_ARG,
                 "a batch of %" PRIu64 " tokens; it must be 1 to %" PRIu64, c->rows, most);
    return IRON_OK;
}

/* A row's loop over the runs of a batch, and their contributions. */
typedef struct reduction {
    const iron__tokens_variant *variant;
    const iron__op_problem *problem;
    iron__contribution *runs;
} reduction;

static const tokens_problem *own_of(const iron__op_problem *p) { return p->own; }

static iron__tokens_run run_at(const iron__op_problem *p, uint64_t first, size_t count) {
    return (iron__tokens_run){(const uint32_t *)p->inputs[0].data + first, count, first,
                              &own_of(p)->divisor, NULL};
}

static void reduce_run(void *context, size_t index) {
    const reduction *r = context;
    uint64_t first = (uint64_t)index * IRON_TOKENS_RUN;
    iron__tokens_run run =
        run_at(r->problem, first, iron__min_size(IRON_TOKENS_RUN, r->problem->c.rows - first));

    r->runs[index] = r->variant->reduce(&run);
}

static size_t runs_of(const iron__case *c) { return iron__kit_pieces(c->rows, IRON_TOKENS_RUN); }

/* The contribution of the batch. */
static iron__contribution reduce_batch(reduction r, iron__thread_pool *pool) {
    iron__contribution c = iron__contribution_neutral();
    size_t runs = runs_of(&r.problem->c);

    iron__thread_pool_run(pool, reduce_run, &r, runs);
    for (size_t k = 0; k < runs; k++)
        c = iron__contribution_merge(c, r.runs[k]);
    return c;
}

/* Copies the nodes before the batch to the answer's arrays. */
static iron__nodes nodes_in(const iron__op_problem *p, tokens_answer *answer) {
    iron__nodes nodes = own_of(p)->start;

    memcpy(answer->xor_accumulators, nodes.xor_accumulators, sizeof answer->xor_accumulators);
    memcpy(answer->potentials, nodes.potentials, sizeof answer->potentials);
    nodes.xor_accumulators = answer->xor_accumulators;
    nodes.potentials = answer->potentials;
    return nodes;
}

static void put_contribution(tokens_answer *answer, iron__contribution c) {
    answer->sum = c.sum;
    answer->xors = c.xors;
    answer->count = c.count;
    answer->has_nodes = 1;
}

/* The answer from the contribution: applies it to the nodes. */
static void answer_with(const iron__op_problem *p, iron__contribution c, tokens_answer *answer) {
    iron_batch_effect effect = {c.xors, iron__contribution_potential(c, p->c.vocab)};
    iron__nodes nodes = nodes_in(p, answer);

    iron__nodes_apply(&nodes, &effect, 1, NULL);
    put_contribution(answer, c);
}

static void generate(void *context, size_t begin, size_t end) {
    const iron__op_problem *p = context;

    (void)iron_generate(p->c.seed, p->c.vocab, begin, (uint32_t *)p->inputs[0].data + begin,
                        end - begin, NULL);
}

iron_status iron__tokens_generate(iron__op_problem *p, iron_error *err) {
    IRON_TRY(iron__data_own(p, "tokens", err));
    if (!p->c.data)
        iron__data_pieces(p->pool, (size_t)p->c.rows, generate, p);
    return IRON_OK;
}

static iron_status fill(iron__op_problem *p, iron_error *err) {
    const iron_allocator *allocator = iron__allocator_default();
    tokens_problem *own;
    reduction r;

    IRON_TRY(IRON_ALLOCATE(&own, allocator, 1, "a problem", err));
    p->own = own;
    p->output_bytes = sizeof(tokens_answer);
    own->divisor = iron__divisor_make(p->c.vocab);
    IRON_TRY(iron_lattice_create(NULL, 0, &own->lattice, err));
    IRON_TRY(iron__nodes_init(&own->start, NODES, own->lattice, NULL, allocator, err));
    IRON_TRY(IRON_ALLOCATE(&own->expected, allocator, 1, "an answer", err));
    IRON_TRY(iron__tokens_generate(p, err));
    /* The reference: token by token, with %. */
    r = (reduction){iron__tokens_variant_find("scalar"), p, NULL};
    IRON_TRY(IRON_ALLOCATE(&r.runs, allocator, runs_of(&p->c), "runs", err));
    answer_with(p, reduce_batch(r, p->pool), own->expected);
    iron__release(allocator, r.runs);
    return IRON_OK;
}

static void unmake(iron__op_problem *p) {
    tokens_problem *own = p->own;

    if (own) {
        iron__nodes_deinit(&own->start);
        iron_lattice_destroy(own->lattice);
        iron__release(iron__allocator_default(), own->expected);
    }
    iron__data_unmake(p);
}

static bool check(const iron__op_problem *problem, const void *output, char *text, size_t size) {
    const tokens_answer *got = output, *want = own_of(problem)->expected;

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
    for (size_t j = 0; j < NODES; j++) {
        if (got->xor_accumulators[j] != want->xor_accumulators[j]) {
            snprintf(text, size, "accumulator %zu is %" PRIu32 ", should be %" PRIu32, j,
                     got->xor_accumulators[j], want->xor_accumulators[j]);
            return false;
        }
        if (iron__data_word_of(got->potentials[j]) != iron__data_word_of(want->potentials[j])) {
            snprintf(text, size, "potential %zu is %.9g, should be %.9g", j,
                     (double)got->potentials[j], (double)want->potentials[j]);
            return false;
        }
    }
    return true;
}

static size_t scratch_bytes(const iron__op_problem *p, uint32_t threads) {
    (void)threads;
    return runs_of(&p->c) * sizeof(iron__contribution);
}

static void run_once(const iron__cpu_work *w) {
    answer_with(w->problem, reduce_batch((reduction){w->row->own, w->problem, w->scratch}, w->pool),
                w->output);
}

#define TASK_NODES 16u

/* Part I: every node reads all tokens. */
typedef struct node_work {
    const iron__cpu_work *work;
    iron__nodes nodes;
    iron__contribution first; /* of node 0, reported as the batch's */
} node_work;

static void reduce_nodes(void *context, size_t task) {
    node_work *n = context;
    const iron__tokens_variant *variant = n->work->row->own;
    const iron__op_problem *p = n->work->problem;
    iron__tokens_run run = run_at(p, 0, (size_t)p->c.rows);

    for (uint32_t j = (uint32_t)task * TASK_NODES; j < ((uint32_t)task + 1) * TASK_NODES; j++) {
        iron__contribution c = variant->reduce(&run);
        iron_batch_effect effect = {c.xors, iron__contribution_potential(c, p->c.vocab)};

        iron__nodes_apply_to(&n->nodes, j, effect);
        if (j == 0)
            n->first = c;
    }
}

static void run_per_node(const iron__cpu_work *w) {
    node_work n = {.work = w, .nodes = nodes_in(w->problem, w->output)};

    iron__thread_pool_run(w->pool, reduce_nodes, &n, NODES / TASK_NODES);
    put_contribution(w->output, n.first);
}

/* Pairs of node and token per second and thread, roughly (a Xeon, an older Neoverse): enough to
 * tell seconds from minutes. */
#define PAIRS_PER_SECOND 5e8

static double seconds(const iron__contender *row, const iron__case *c, const iron__gpu_info *device,
                      uint32_t threads) {
    if (device)
        return iron__tokens_gpu_seconds(row->own, device, NODES, c->rows);
    return row->passes > 1 ? (double)c->rows * NODES / PAIRS_PER_SECOND / threads : 0;
}

iron_status iron__tokens_contender_init(iron__gpu_work *work, iron__tokens_contender **out,
                                        iron_error *err) {
    IRON_TRY(IRON_ALLOCATE(out, iron__allocator_default(), 1, "a contender", err));
    work->own = *out;
    return iron__gpu_event_create(work->device, &work->event, err);
}

void iron__tokens_contender_tear_down(iron__gpu_work *work) {
    iron__tokens_contender *c = work->own;

    if (!c)
        return;
    iron__tokens_gpu_destroy(c->tokens);
    iron__nodes_deinit(&c->nodes);
    iron_lattice_destroy(c->lattice);
}

iron_status iron__tokens_contender_finish(iron__gpu_work *work, const iron__gpu_data *data,
                                          iron__gpu_queue *queue, iron_error *err) {
    (void)data;
    return iron__tokens_gpu_apply_pending(((iron__tokens_contender *)work->own)->tokens, queue,
                                          err);
}

iron_status iron__tokens_contender_run(iron__gpu_work *work, const iron__gpu_data *data,
                                       iron__gpu_queue *queue, iron_error *err) {
    iron__tokens_contender *c = work->own;

    IRON_TRY(iron__tokens_gpu_feed(c->tokens, queue, data->inputs[0], 0, work->c.rows, err));
    return iron__tokens_contender_finish(work, data, queue, err);
}

iron_status iron__tokens_contender_run_part(iron__gpu_work *work, const iron__gpu_data *data,
                                            iron__gpu_part part, iron__gpu_queue *queue,
                                            iron_error *err) {
    iron__tokens_contender *c = work->own;

    if (part.index > 0)
        IRON_TRY(iron__gpu_queue_wait_event(queue, work->event, err));
    IRON_TRY(iron__tokens_gpu_feed(c->tokens, queue, data->inputs[0], part.first, part.count, err));
    return iron__gpu_event_record(queue, work->event, err);
}

static iron_status set_up(iron__gpu_work *work, iron_error *err) {
    iron__tokens_contender *c;
    iron__tokens_gpu_config config = {.row = work->row.own,
                                      .lattice = own_of(work->problem)->lattice,
                                      .allocator = iron__allocator_default(),
                                      .batch = work->c.rows,
                                      .nodes = NODES,
                                      .vocab = work->c.vocab,
                                      .by_batch = true};

    IRON_TRY(iron__tokens_contender_init(work, &c, err));
    return iron__tokens_gpu_create(work->device, &config, &c->tokens, err);
}

static iron_status reset(iron__gpu_work *work, iron__gpu_queue *queue, iron_error *err) {
    iron__tokens_contender *c = work->own;
    const tokens_problem *own = own_of(work->problem);

    return iron__tokens_gpu_begin(c->tokens, queue, &own->start, iron__contribution_neutral(), 0,
                                  err);
}

static iron_status fetch(iron__gpu_work *work, iron__gpu_queue *queue, void *output,
                         iron_error *err) {
    iron__tokens_contender *c = work->own;
    const tokens_problem *own = own_of(work->problem);
    tokens_answer *answer = output;
    iron__nodes nodes = own->start;
    iron__contribution closed;

    nodes.xor_accumulators = answer->xor_accumulators;
    nodes.potentials = answer->potentials;
    IRON_TRY(iron__tokens_gpu_fetch(c->tokens, queue, &nodes, &closed, err));
    put_contribution(answer, closed);
    return IRON_OK;
}

static const iron__gpu_launcher launcher = {IRON_TOKENS_CONTENDER, .set_up = set_up, .reset = reset,
                                            .fetch = fetch};

#define PREFIX (sizeof "tokens.cpu." - 1)

static bool contender_at(size_t index, iron__contender *out) {
    const iron__tokens_variant *v = iron__tokens_variant_at(index);

    if (!v) {
        const iron__tokens_gpu_row *row =
            iron__tokens_gpu_row_at(index - iron__tokens_variant_count());

        if (!row)
            return false;
        *out = (iron__contender){.name = row->mode,
                                 .idea = row->idea,
                                 .beats = row->beats,
                                 .backends = IRON_ON_GPU,
                                 .passes = row->per_node ? NODES : 1,
                                 .gpu = &launcher,
                                 .seconds = seconds,
                                 .own = row};
        return true;
    }
    *out = (iron__contender){.name = v->name + PREFIX,
                             .idea = v->idea,
                             .beats = v->beats ? v->beats + PREFIX : NULL,
                             .backends = IRON_ON_CPU,
                             .needs = v->needs,
                             .passes = v->per_node ? NODES : 1,
                             .cpu_run = v->per_node ? run_per_node : run_once,
                             .cpu_scratch_bytes = scratch_bytes,
                             .is_single = !v->all_threads,
                             .seconds = seconds,
                             .own = v};
    return true;
}

const iron__op iron__op_tokens = {
    .name = "tokens",
    .contract = "count, xor and sum of a batch of positioned tokens, applied to 4096 nodes",
    .why =
        "A token is four bytes, read once, followed by a handful of integer operations: memory "
        "should be the only limit. The first kernels read every token once per node, 4096 times; "
        "later ones read it once, but wait for a division, or have too few bytes in flight. The "
        "champion does neither and comes within a few percent of a plain read.\n"
        "\n"
        "Sizes are batches. One that fits the last level of the cache (Part I advises 2 to 4 MB) "
        "is read from there the next time: compare the warm and the cold column, or sweep with "
        "--size 'batch:*'.",
    .traffic =
        "Four bytes per token, and a few words per batch; the first modes read every token once "
        "per node instead.",
    .unless =
        "A batch of a few thousand tokens is finished before the last of many groups has begun: "
        "then the launch decides, and the modes differ little. For many small batches at once "
        "there is the champion's segmented reduction.",
    .used =
        "This is the product's own work: `iron feed` runs these rows (src/ops/tokens/champion.k, "
        "apply.k, champion.cu), and --mode auto chooses among them.",
    IRON_TOKENS_OP,
    .nodes = NODES,
    .baselines = {"scalar", "reduce"},
    /* Powers of two around the sizes of caches, and the papers' 3 MiB. */
    IRON_SIZES({"batch", "64KiB", 1 << 14, 1, NULL}, {"batch", "256KiB", 1 << 16, 1, NULL},
               {"batch", "1MiB", 1 << 18, 1, NULL}, {"batch", "2MiB", 1 << 19, 1, NULL},
               {"batch", "3MiB", 786432, 1, NULL}, {"batch", "4MiB", 1 << 20, 1, NULL},
               {"batch", "8MiB", 1 << 21, 1, NULL}, {"batch", "16MiB", 1 << 22, 1, NULL},
               {"batch", "32MiB", 1 << 23, 1, NULL}, {"batch", "64MiB", 1 << 24, 1, NULL},
               {"batch", "128MiB", 1 << 25, 1, NULL}, {"batch", "256MiB", 1 << 26, 1, NULL},
               {"batch", "1GiB", 1 << 28, 1, NULL}),
    .operations_each = 5, /* hash, addition, XOR, remainder, sum */
    .make = iron__data_make,
    .fill = fill,
    .unmake = unmake,
    .check = check,
};
