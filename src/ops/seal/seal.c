/* SPDX-License-Identifier: MIT */
/*
 * seal.c: the op `seal` in races: a stream of tokens, read once, is reduced to its seal and to what
 * else the parameter `lanes` asks for: statistics of its values, and its contribution. The answer
 * must be right in every bit.
 *
 * Tokens come from the generator. A few are outside the vocabulary, as in real streams: the first
 * in the middle, then one in a million. So every row must find some, and none can specialise in
 * them.
 *
 * On the CPU the contenders are the seal's rows of ops/tokens/tokens.h; tokens are distributed in
 * runs. With the contribution a run is processed in blocks: the seal's row reads one, which brings
 * it into the first-level cache, then the best row of the op `tokens`.
 *
 * On GPUs they are the kernels that the product runs (ops/tokens/quads.k). With the contribution
 * the stream is one batch, and both are computed in one read where its length is a multiple of
 * four.
 */
#include "core/seal.h"
#include "core/contribution.h"
#include "core/divisor.h"
#include "core/fail.h"
#include "core/number.h"
#include "ops/data.h"
#include "ops/kit.h"
#include "ops/op.h"
#include "ops/tokens/tokens.h"
#include "ops/tokens/tokens_contender.h"

#include <inttypes.h>
#include <stdio.h>

/* Values of the parameter `lanes`, in the order of its words. */
enum { WITH_STATS, WITH_ALL, SEAL_ALONE };

static bool has_stats(const iron__case *c) { return c->at[0] != SEAL_ALONE; }

static bool has_contribution(const iron__case *c) { return c->at[0] == WITH_ALL; }

/* The answer, 72 bytes without padding. The stream begins at position 0; its last quad is padded
 * with zeros, which statistics do not count. What the case does not ask for has the value of an
 * empty stream: first_position and min all ones, the others 0. */
typedef struct seal_answer {
    uint64_t count, t, a, b;
    uint64_t out_of_vocab, first_position;
    uint32_t first_value, min, max;
    uint32_t xors; /* of the contribution, like sum */
    uint64_t sum;
} seal_answer;

_Static_assert(sizeof(seal_answer) == 72, "no padding");

static seal_answer answer_of(iron__seal_words w, iron__token_stats s, iron__contribution c) {
    return (seal_answer){w.count,       w.t,   w.a,   w.b,    s.out_of_vocab, s.first_position,
                         s.first_value, s.min, s.max, c.xors, c.sum};
}

/* The op's part of a problem. */
typedef struct seal_problem {
    iron__divisor divisor;
    seal_answer expected;
} seal_problem;

/* A quad's keys take 16, its sums and products 16, T 4: 9 per token; statistics 3 per token, the
 * contribution 5. */
static double operations(const iron__case *c) {
    double each = 9 + (has_stats(c) ? 3 : 0) + (has_contribution(c) ? 5 : 0);

    return each * (double)c->rows;
}

static iron_status accept(const iron__case *c, iron_error *err) {
    IRON_TRY(iron__line_accept_case(c, err));
    IRON_TRY(iron__tokens_accept_vocab(c, err));
    IRON_FAIL_IF(c->rows > (UINT64_C(1) << 62) / c->vocab, err, IRON_E_ARG,
                 "%" PRIu64 " tokens with a vocabulary of %" PRIu32
                 " are too many; the most is %" PRIu64,
                 c->rows, c->vocab, (UINT64_C(1) << 62) / c->vocab);
    return IRON_OK;
}

#define OUTSIDE_EVERY UINT64_C(999983)

/* Token by token, not by any of the rows in the race. */
static iron__token_stats right_stats(const iron__op_problem *p) {
    const uint32_t *tokens = p->inputs[0].data;
    iron__token_stats s = iron__token_stats_neutral();

    for (uint64_t k = 0; k < p->c.rows; k++) {
        s.min = tokens[k] < s.min ? tokens[k] : s.min;
        s.max = tokens[k] > s.max ? tokens[k] : s.max;
        if (tokens[k] >= p->c.vocab && s.out_of_vocab++ == 0) {
            s.first_position = k;
            s.first_value = tokens[k];
        }
    }
    return s;
}

static seal_answer right_answer(const iron__op_problem *p, const iron__divisor *divisor) {
    iron__tokens_run run = {p->inputs[0].data, (size_t)p->c.rows, 0, divisor, NULL};
    iron__seal seal = {.carried = 0};

    iron__seal_feed(&seal, run.tokens, run.count);
    return answer_of(
        iron__seal_total(&seal), has_stats(&p->c) ? right_stats(p) : iron__token_stats_neutral(),
        has_contribution(&p->c) ? iron__tokens_scalar(&run) : iron__contribution_neutral());
}

static iron_status fill(iron__op_problem *p, iron_error *err) {
    seal_problem *own;
    uint32_t *tokens;

    IRON_TRY(IRON_ALLOCATE(&own, iron__allocator_default(), 1, "a problem", err));
    p->own = own;
    own->divisor = iron__divisor_make(p->c.vocab);
    p->output_bytes = sizeof(seal_answer);
    IRON_TRY(iron__tokens_generate(p, err));
    tokens = p->inputs[0].data;
    for (uint64_t k = p->c.rows / 2; !p->c.data && k < p->c.rows; k += OUTSIDE_EVERY)
        tokens[k] = p->c.vocab + (uint32_t)(k % p->c.vocab);
    own->expected = right_answer(p, &own->divisor);
    return IRON_OK;
}

static bool check(const iron__op_problem *problem, const void *output, char *text, size_t size) {
    const seal_answer *got = output;
    const seal_answer *want = &((const seal_problem *)problem->own)->expected;
#define WORD(name, member)                                                                         \
    { name, got->member, want->member }
    const struct {
        const char *name;
        uint64_t got, want;
    } words[] = {WORD("count", count),
                 WORD("T", t),
                 WORD("A", a),
                 WORD("B", b),
                 WORD("min", min),
                 WORD("max", max),
                 WORD("out_of_vocab", out_of_vocab),
                 WORD("the first position out of vocab", first_position),
                 WORD("the first value out of vocab", first_value),
                 WORD("the contribution's xor", xors),
                 WORD("the contribution's sum", sum)};
#undef WORD

    for (size_t k = 0; k < IRON_KIT_COUNT(words); k++)
        if (words[k].got != words[k].want) {
            snprintf(text, size, "%s is %" PRIu64 ", should be %" PRIu64, words[k].name,
                     words[k].got, words[k].want);
            return false;
        }
    return true;
}

/* With the contribution: tokens that are read twice, the second time from the L1 cache. */
#define BLOCK_TOKENS ((size_t)1 << 12)

/* What is computed from a run. */
typedef struct outcome {
    iron__seal_words words;
    iron__token_stats stats;
    iron__contribution contribution;
} outcome;

typedef struct reading {
    const iron__seal_variant *row;
    const iron__tokens_variant *tokens_row; /* NULL: no contribution */
    const iron__op_problem *problem;
    outcome *runs;
} reading;

static const uint32_t *tokens_of(const iron__op_problem *p) { return p->inputs[0].data; }

static outcome nothing(void) {
    return (outcome){{0, 0, 0, 0}, iron__token_stats_neutral(), iron__contribution_neutral()};
}

/* Whole quads from token `first` on. */
static void take(const reading *r, size_t first, size_t count, outcome *to) {
    const iron__op_problem *p = r->problem;
    iron__quads_run run = {tokens_of(p) + first, count / 4, first / 4, p->c.vocab};

    r->row->take(&run, &to->words, has_stats(&p->c) ? &to->stats : NULL);
}

static void add_contribution(const reading *r, size_t first, size_t count, outcome *to) {
    const seal_problem *own = r->problem->own;
    iron__tokens_run run = {tokens_of(r->problem) + first, count, first, &own->divisor, NULL};

    to->contribution = iron__contribution_merge(to->contribution, r->tokens_row->reduce(&run));
}

static void take_run(void *context, size_t index) {
    const reading *r = context;
    size_t first = index * IRON_TOKENS_RUN;
    size_t end = iron__min_size(first + IRON_TOKENS_RUN, (size_t)r->problem->c.rows / 4 * 4);
    outcome to = nothing();

    for (size_t at = first, count; at < end; at += count) {
        count = iron__min_size(end - at, r->tokens_row ? BLOCK_TOKENS : IRON_TOKENS_RUN);
        take(r, at, count, &to);
        if (r->tokens_row)
            add_contribution(r, at, count, &to);
    }
    r->runs[index] = to;
}

/* The last one to three tokens, padded with zeros to a quad; statistics count only the tokens. */
static void take_rest(const reading *r, outcome *to) {
    const iron__op_problem *p = r->problem;
    size_t first = (size_t)p->c.rows / 4 * 4, count = (size_t)p->c.rows % 4;
    uint32_t quad[4] = {0, 0, 0, 0};
    iron__quads_run run = {quad, 1, first / 4, p->c.vocab};

    for (size_t k = 0; k < count; k++) {
        uint32_t token = quad[k] = tokens_of(p)[first + k];
        bool is_outside = token >= p->c.vocab;
        iron__token_stats one = {is_outside, is_outside ? first + k : UINT64_MAX,
                                 is_outside ? token : 0, token, token};

        if (has_stats(&p->c))
            to->stats = iron__token_stats_merge(to->stats, one);
    }
    if (count > 0)
        r->row->take(&run, &to->words, NULL);
    to->words.count = p->c.rows;
    if (r->tokens_row)
        add_contribution(r, first, count, to);
}

static size_t runs_of(const iron__case *c) {
    return iron__kit_pieces(c->rows / 4 * 4, IRON_TOKENS_RUN);
}

static size_t scratch_bytes(const iron__op_problem *p, uint32_t threads) {
    (void)threads;
    return runs_of(&p->c) * sizeof(outcome);
}

/* The contribution is not what is compared: every row but the reference uses the same. */
static void run(const iron__cpu_work *w) {
    const iron__seal_variant *row = w->row->own;
    reading r = {.row = row, .problem = w->problem, .runs = w->scratch};
    size_t runs = runs_of(&w->problem->c);
    outcome all = nothing();

    if (has_contribution(&w->problem->c))
        r.tokens_row = iron__tokens_variant_find(row->beats ? "vector" : "scalar");
    iron__thread_pool_run(w->pool, take_run, &r, runs);
    for (size_t k = 0; k < runs; k++) {
        all.words = iron__seal_merge(all.words, r.runs[k].words);
        all.stats = iron__token_stats_merge(all.stats, r.runs[k].stats);
        all.contribution = iron__contribution_merge(all.contribution, r.runs[k].contribution);
    }
    take_rest(&r, &all);
    *(seal_answer *)w->output = answer_of(all.words, all.stats, all.contribution);
}

/* The difference between the two rows. */
static const uint32_t one_read = 0, two_reads = IRON_TOKENS_TWO_READS;

/* One node, which is not part of the answer. */
static iron_status set_up(iron__gpu_work *work, iron_error *err) {
    const iron_allocator *a = iron__allocator_default();
    const iron__case *c = &work->c;
    iron__tokens_contender *t;
    iron__tokens_gpu_config config = {
        .row = iron__tokens_gpu_row_find("champion"),
        .allocator = a,
        .batch = c->rows,
        .nodes = 1,
        .vocab = c->vocab,
        .outputs = IRON_TOKENS_SEAL | *(const uint32_t *)work->row.own |
                   (has_stats(c) ? (uint32_t)IRON_TOKENS_STATS : 0) |
                   (has_contribution(c) ? 0 : (uint32_t)IRON_TOKENS_SEAL_ONLY),
        .last = c->vocab - 1,
        .by_batch = true};

    IRON_TRY(iron__tokens_contender_init(work, &t, err));
    IRON_TRY(iron_lattice_create(NULL, 0, &t->lattice, err));
    IRON_TRY(iron__nodes_init(&t->nodes, 1, t->lattice, NULL, a, err));
    config.lattice = t->lattice;
    return iron__tokens_gpu_create(work->device, &config, &t->tokens, err);
}

static iron_status reset(iron__gpu_work *work, iron__gpu_queue *queue, iron_error *err) {
    iron__tokens_contender *c = work->own;
    iron__quads_total empty = {.stats = iron__token_stats_neutral()};

    IRON_TRY(
        iron__tokens_gpu_begin(c->tokens, queue, &c->nodes, iron__contribution_neutral(), 0, err));
    return iron__tokens_gpu_seal_begin(c->tokens, queue, &empty, err);
}

static iron_status fetch(iron__gpu_work *work, iron__gpu_queue *queue, void *output,
                         iron_error *err) {
    iron__tokens_contender *c = work->own;
    iron__contribution closed = iron__contribution_neutral();
    iron__quads_total total;

    if (has_contribution(&work->c))
        IRON_TRY(iron__tokens_gpu_fetch(c->tokens, queue, &c->nodes, &closed, err));
    IRON_TRY(iron__tokens_gpu_seal_fetch(c->tokens, queue, &total, err));
    if (!has_stats(&work->c))
        total.stats = iron__token_stats_neutral();
    *(seal_answer *)output = answer_of(iron__seal_total(&total.seal), total.stats, closed);
    return IRON_OK;
}

static const iron__gpu_launcher launcher = {IRON_TOKENS_CONTENDER, .set_up = set_up, .reset = reset,
                                            .fetch = fetch};

static bool is_for_all(const iron__contender *row, const iron__case *c) {
    (void)row;
    return has_contribution(c);
}

static const iron__contender gpu_contenders[] = {
    {"champion",
     "six quads in flight per thread, keys by addition, only the outputs asked for, one read", NULL,
     IRON_ON_GPU, .gpu = &launcher, .own = &one_read},
    {"apart", "separate kernels for the contribution and the seal: two reads", NULL, IRON_ON_GPU,
     .passes = 2, .suits = is_for_all, .gpu = &launcher, .own = &two_reads},
};

#define PREFIX (sizeof "seal.cpu." - 1)

static bool contender_at(size_t index, iron__contender *out) {
    const iron__seal_variant *v = iron__seal_variant_at(index);

    if (!v) {
        for (size_t k = 0; iron__seal_variant_at(k); k++)
            index--;
        return iron__row_at(gpu_contenders, IRON_KIT_COUNT(gpu_contenders), &index, out);
    }
    *out = (iron__contender){.name = v->name + PREFIX,
                             .idea = v->idea,
                             .beats = v->beats ? v->beats + PREFIX : NULL,
                             .backends = IRON_ON_CPU,
                             .needs = v->needs,
                             .cpu_run = run,
                             .cpu_scratch_bytes = scratch_bytes,
                             .is_single = !v->all_threads,
                             .own = v};
    return true;
}

const iron__op iron__op_seal = {
    .name = "seal",
    .contract = "the seal's words of a token stream, statistics of its values, its contribution",
    .why =
        "A checksum of a token stream is worth having if it costs nothing beyond reading the "
        "tokens. This one is a sum over quads of tokens: twice two products of a pair of tokens "
        "each, under keys that depend on the quad's position. Sums can be taken in any order, so "
        "all threads and all lanes of a vector work in parallel, and parts of a stream merge.\n"
        "\n"
        "The race asks how close that comes to a plain read. The parameter lanes says what the "
        "same pass computes: only the seal; also the smallest and largest token and those outside "
        "the vocabulary; and the contribution as well, which is all that the product needs from a "
        "token.",
    .traffic =
        "Four bytes per token, read once, and a few words per run. With the contribution a block "
        "of tokens is processed twice while it is in the first-level cache.",
    .unless =
        "If the tokens are in a cache already, only arithmetic is left, and the seal costs "
        "several times as much as a plain sum. Against deliberate manipulation it does not help "
        "at all: a cryptographic hash does, at a small part of the rate.",
    .used = "This is the product's own work: `iron feed --seal` and the digests run the champion's "
            "rows (src/ops/tokens/tokens_neon.c, tokens_avx2.c, tokens_avx512.c; on GPUs quads.k).",
    IRON_TOKENS_OP,
    IRON_DATA_OP,
    IRON_AXES(
        {.name = "lanes",
         .about =
             "seal-stats: words and statistics; all: the contribution too; seal: only the words",
         IRON_WORDS("seal-stats", "all", "seal")}),
    .baselines = {"reference", "champion"},
    IRON_LINE_SIZES(20, 26, 31),
    .operations = operations,
    .rows_max = IRON_TOKENS_ROWS_MAX,
};
