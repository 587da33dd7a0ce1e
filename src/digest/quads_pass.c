/* SPDX-License-Identifier: MIT */
/*
 * quads_pass.c: see quads_pass.h.
 *
 * Memory is read once. Signed widths are looked through for values that are no tokens, and narrow
 * ones widened, a few thousand at a time: the block is in the first-level cache then, where the
 * sums read it again. Each task leaves a sum of its own; merging them is a few nanoseconds each.
 */
#include "digest/quads_pass.h"

typedef struct pass {
    iron__tokens_view view;
    uint64_t first_quad;
    uint64_t vocab;
    const iron__seal_variant *row;
    iron__quads_sum *sums;
} pass;

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static iron__quads_sum nothing(void) {
    return (iron__quads_sum){{0, 0, 0, 0}, iron__token_stats_neutral(), SIZE_MAX};
}

void iron__stats_take(iron__token_stats *stats, const uint32_t *tokens, size_t count,
                      uint64_t position, uint64_t vocab) {
    for (size_t k = 0; k < count; k++) {
        uint32_t t = tokens[k];
        iron__token_stats one = {0, UINT64_MAX, 0, t, t};

        if (t >= vocab) {
            one.out_of_vocab = 1;
            one.first_position = position + k;
            one.first_value = t;
        }
        *stats = iron__token_stats_merge(*stats, one);
    }
}

/* Only 32 bits without a sign need no look at each value, and go through in one. */
static size_t block_tokens(iron_dtype dtype, size_t left) {
    return dtype == IRON_DTYPE_U32 ? left : smaller(left, IRON_WIDEN_TOKENS);
}

/* Tokens of 16 bits as they are stored: they need no look, and no widening. */
static void sum_narrow(const pass *p, size_t begin, size_t end, iron__quads_sum *sum) {
    iron__quads_run_u16 run = {(const uint16_t *)p->view.data + begin, (end - begin) / 4,
                               p->first_quad + begin / 4, p->vocab};

    p->row->take_u16(&run, &sum->words, &sum->stats);
}

static void sum_task(void *context, size_t task) {
    const pass *p = context;
    size_t begin = task * IRON_PASS_TOKENS;
    size_t end = smaller(begin + IRON_PASS_TOKENS, p->view.count);
    iron__quads_sum sum = nothing();
    uint32_t wide[IRON_WIDEN_TOKENS];

    if (p->view.dtype == IRON_DTYPE_U16 && p->row->take_u16) {
        sum_narrow(p, begin, end, &sum);
        p->sums[task] = sum;
        return;
    }
    while (begin < end && sum.bad == SIZE_MAX) {
        size_t count = block_tokens(p->view.dtype, end - begin);
        iron__tokens_view block = iron__view_rest(&p->view, begin);
        iron__quads_run run = {NULL, 0, p->first_quad + begin / 4, p->vocab};
        size_t good;

        block.count = count;
        good = iron__view_first_bad(&block);
        if (good < count)
            sum.bad = begin + good;
        run.tokens = iron__view_tokens(&block, 0, &count, wide);
        run.quads = count / 4;
        p->row->take(&run, &sum.words, &sum.stats);
        begin += count;
    }
    p->sums[task] = sum;
}

static void run_tasks(iron__team *team, pass *p, size_t tasks) {
    if (team)
        iron__team_run(team, sum_task, p, tasks);
    else
        for (size_t k = 0; k < tasks; k++)
            sum_task(p, k);
}

iron__quads_sum iron__quads_pass(const iron__tokens_view *view, uint64_t first_quad, uint64_t vocab,
                                 iron__team *team, iron__quads_sum *sums) {
    const iron__seal_variant *row = iron__seal_variant_find("champion");
    iron__quads_sum total = nothing();

    for (size_t done = 0; done < view->count && total.bad == SIZE_MAX;) {
        pass p = {iron__view_rest(view, done), first_quad + done / 4, vocab, row, sums};
        size_t tasks;

        p.view.count = smaller(p.view.count, IRON_PASS_TASKS * IRON_PASS_TOKENS);
        tasks = (p.view.count + IRON_PASS_TOKENS - 1) / IRON_PASS_TOKENS;
        run_tasks(team, &p, tasks);
        for (size_t k = 0; k < tasks; k++) {
            total.words = iron__seal_merge(total.words, sums[k].words);
            total.stats = iron__token_stats_merge(total.stats, sums[k].stats);
            if (total.bad == SIZE_MAX && sums[k].bad != SIZE_MAX)
                total.bad = done + sums[k].bad;
        }
        done += p.view.count;
    }
    return total;
}
