/* SPDX-License-Identifier: MIT */
/*
 * seal_problem.c: problems of the op `seal`: tokens from the generator, a few of them outside the
 * vocabulary, and the right answer, by the references of seal, statistics and contribution.
 *
 * Strangers are rare, as in any stream that somebody checks: the first in the middle, then one in
 * a million. So every row must find some, and no row lives on finding them.
 */
#include "core/fail.h"
#include "ops/data.h"
#include "ops/seal/seal_op.h"
#include "ops/tokens/tokens.h"

#define STRANGER_EVERY UINT64_C(999983)

static void generate(void *context, size_t begin, size_t end) {
    const iron__problem *p = context;

    (void)iron_generate(p->c.seed, p->c.vocab, begin, (uint32_t *)p->inputs[0].data + begin,
                        end - begin, NULL);
}

static void place_strangers(const iron__problem *p) {
    uint32_t *tokens = p->inputs[0].data;

    for (uint64_t k = p->c.rows / 2; k < p->c.rows; k += STRANGER_EVERY)
        tokens[k] = p->c.vocab + (uint32_t)(k % p->c.vocab);
}

/* Token by token, and not by any of the rows that race. */
static iron__token_stats right_stats(const iron__problem *p) {
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

static iron__seal_answer right_answer(const iron__problem *p, const iron__divisor *divisor) {
    const uint32_t *tokens = p->inputs[0].data;
    iron__token_stats stats = iron__token_stats_neutral();
    iron__contribution c = iron__contribution_neutral();
    iron__seal seal = {.carried = 0};

    iron__seal_feed(&seal, tokens, (size_t)p->c.rows);
    if (iron__seal_has_stats(&p->c))
        stats = right_stats(p);
    if (iron__seal_has_contribution(&p->c)) {
        iron__tokens_run run = {tokens, (size_t)p->c.rows, 0, divisor};

        c = iron__tokens_scalar(&run);
    }
    return iron__seal_answer_of(iron__seal_total(&seal), stats, c);
}

static iron_status fill(iron__problem *p, iron_error *err) {
    iron__seal_problem *own;

    p->own = own = iron__allocate(iron__allocator_default(), 1, sizeof *own, "a problem", err);
    if (!own)
        return IRON_E_NOMEM;
    own->divisor = iron__divisor_make(p->c.vocab);
    p->input_count = 1;
    IRON_TRY(iron__data_take(&p->inputs[0], "tokens", (size_t)p->c.op->useful_bytes(&p->c), err));
    iron__data_pieces(p->team, (size_t)p->c.rows, generate, p);
    place_strangers(p);
    own->expected = right_answer(p, &own->divisor);
    return IRON_OK;
}

void iron__seal_unmake(iron__problem *problem) {
    iron__data_release(problem);
    iron__release(iron__allocator_default(), problem->own);
    *problem = (iron__problem){.c = problem->c};
}

iron_status iron__seal_make(iron__problem *out, iron__team *team, iron_error *err) {
    iron_status status;

    *out = (iron__problem){.c = out->c, .team = team, .output_bytes = sizeof(iron__seal_answer)};
    status = fill(out, err);
    if (status != IRON_OK)
        iron__seal_unmake(out);
    return status;
}
