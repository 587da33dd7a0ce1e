/* SPDX-License-Identifier: MIT */
/*
 * seal_cpu.c: the contenders of the op `seal` on the CPU, which are the rows of ops/tokens/quads.h.
 *
 * Tokens are dealt out in runs. With the contribution a run goes by blocks: the seal's row takes
 * one, which brings it into the first-level cache, and then the best row of the op `tokens`.
 */
#include "ops/seal/seal_op.h"
#include "ops/tokens/quads.h"
#include "ops/tokens/tokens.h"

/* Tokens that a thread takes at a time; the engine's runs are as long. Whole quads, and whole
 * groups of the position hash. */
#define RUN_TOKENS   ((size_t)1 << 18)
#define BLOCK_TOKENS ((size_t)1 << 12)

/* What a run comes down to. */
typedef struct outcome {
    iron__seal_words words;
    iron__token_stats stats;
    iron__contribution contribution;
} outcome;

typedef struct reading {
    const iron__seal_variant *row;
    const iron__tokens_variant *beside; /* NULL: no contribution */
    const iron__problem *problem;
    outcome *runs;
} reading;

static const uint32_t *tokens_of(const iron__problem *p) { return p->inputs[0].data; }

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static outcome nothing(void) {
    return (outcome){{0, 0, 0, 0}, iron__token_stats_neutral(), iron__contribution_neutral()};
}

/* Whole quads from token `first` on. */
static void take(const reading *r, size_t first, size_t count, outcome *to) {
    const iron__problem *p = r->problem;
    iron__quads_run run = {tokens_of(p) + first, count / 4, first / 4, p->c.vocab};

    r->row->take(&run, &to->words, iron__seal_has_stats(&p->c) ? &to->stats : NULL);
}

static void add_contribution(const reading *r, size_t first, size_t count, outcome *to) {
    const iron__seal_problem *own = r->problem->own;
    iron__tokens_run run = {tokens_of(r->problem) + first, count, first, &own->divisor};

    to->contribution = iron__contribution_merge(to->contribution, r->beside->reduce(&run));
}

static void take_run(void *context, size_t index) {
    const reading *r = context;
    size_t first = index * RUN_TOKENS;
    size_t end = smaller(first + RUN_TOKENS, (size_t)r->problem->c.rows / 4 * 4);
    outcome to = nothing();

    if (!r->beside)
        take(r, first, end - first, &to);
    else
        for (size_t at = first; at < end; at += BLOCK_TOKENS) {
            size_t count = smaller(end - at, BLOCK_TOKENS);

            take(r, at, count, &to);
            add_contribution(r, at, count, &to);
        }
    r->runs[index] = to;
}

/* The one to three tokens that are no quad, filled up with zeros; statistics of these tokens. */
static void take_rest(const reading *r, outcome *to) {
    const iron__problem *p = r->problem;
    size_t first = (size_t)p->c.rows / 4 * 4, count = (size_t)p->c.rows % 4;
    uint32_t quad[4] = {0, 0, 0, 0};
    iron__quads_run run = {quad, 1, first / 4, p->c.vocab};

    for (size_t k = 0; k < count; k++) {
        uint32_t token = quad[k] = tokens_of(p)[first + k];
        bool is_stranger = token >= p->c.vocab;
        iron__token_stats one = {is_stranger, is_stranger ? first + k : UINT64_MAX,
                                 is_stranger ? token : 0, token, token};

        if (iron__seal_has_stats(&p->c))
            to->stats = iron__token_stats_merge(to->stats, one);
    }
    if (count > 0)
        r->row->take(&run, &to->words, NULL);
    to->words.count = p->c.rows;
    if (r->beside)
        add_contribution(r, first, count, to);
}

static void merge(outcome *to, const outcome *from) {
    to->words = iron__seal_merge(to->words, from->words);
    to->stats = iron__token_stats_merge(to->stats, from->stats);
    to->contribution = iron__contribution_merge(to->contribution, from->contribution);
}

static size_t runs_of(const iron__case *c) {
    return ((size_t)c->rows / 4 * 4 + RUN_TOKENS - 1) / RUN_TOKENS;
}

static size_t scratch_bytes(const iron__problem *p, uint32_t threads) {
    (void)threads;
    return runs_of(&p->c) * sizeof(outcome);
}

/* The contribution is not what races: every row has the same beside it, but the reference. */
static const iron__tokens_variant *beside_of(const iron__problem *p,
                                             const iron__seal_variant *row) {
    if (!iron__seal_has_contribution(&p->c))
        return NULL;
    return iron__tokens_variant_find(row->beats ? "vector" : "scalar");
}

static void run(const iron__cpu_work *w) {
    const iron__seal_variant *row = w->row->own;
    reading r = {row, beside_of(w->problem, row), w->problem, w->scratch};
    size_t runs = runs_of(&w->problem->c);
    outcome all = nothing();

    if (row->all_threads)
        iron__team_run(w->team, take_run, &r, runs);
    else
        for (size_t k = 0; k < runs; k++)
            take_run(&r, k);
    for (size_t k = 0; k < runs; k++)
        merge(&all, &r.runs[k]);
    take_rest(&r, &all);
    *(iron__seal_answer *)w->output = iron__seal_answer_of(all.words, all.stats, all.contribution);
}

size_t iron__seal_cpu_contender_count(void) {
    size_t count = 0;

    while (iron__seal_variant_at(count))
        count++;
    return count;
}

#define NAME_LEAD (sizeof "seal.cpu." - 1)

bool iron__seal_cpu_contender_at(size_t index, iron__contender *out) {
    const iron__seal_variant *v = iron__seal_variant_at(index);

    if (!v)
        return false;
    *out = (iron__contender){.name = v->name + NAME_LEAD,
                             .idea = v->idea,
                             .beats = v->beats ? v->beats + NAME_LEAD : NULL,
                             .backends = IRON_ON_CPU,
                             .needs = v->needs,
                             .cpu_run = run,
                             .cpu_scratch_bytes = scratch_bytes,
                             .is_single = !v->all_threads,
                             .own = v};
    return true;
}
