/* SPDX-License-Identifier: MIT */
/*
 * digest_state_check.c: is what a digest's state says possible?
 *
 * Positions come first: everything else follows from them or is bounded by them. Which quads are
 * open is known from the edges of what was seen; how many tokens the words have is known then; sums
 * and statistics must lie where so many tokens of such values can put them. What passes is a state
 * that some stream leaves, as far as sums can tell, and no later call can be surprised by it.
 */
#include "core/fail.h"
#include "digest/digest_state.h"

#include <inttypes.h>
#include <stdbool.h>

static bool is_as_seen(const iron__coverage *seen, const iron__open_quad *q, uint64_t quad) {
    if (q->quad != quad || q->there != iron__coverage_quad(seen, quad))
        return false;
    for (uint32_t k = 0; k < 4; k++)
        if (!(q->there & 1u << k) && q->tokens[k] != 0)
            return false;
    return true;
}

/* Every edge inside a quad leaves that quad open, and nothing else does. */
static iron_status check_open(const iron__digest *d, iron_error *err) {
    iron__sorted_place at, quad_at;
    const iron__stretch *s = iron__sorted_first(&d->seen.stretches, &at);
    const iron__open_quad *q = iron__sorted_first(&d->open.quads, &quad_at);
    uint64_t last = UINT64_MAX;

    for (; s; s = iron__sorted_next(&d->seen.stretches, &at)) {
        const uint64_t edges[2] = {s->first, s->end};

        for (size_t e = 0; e < 2; e++) {
            uint64_t quad = edges[e] / 4;

            if (edges[e] % 4 == 0 || quad == last)
                continue;
            IRON_FAIL_IF(!q || !is_as_seen(&d->seen, q, quad), err, IRON_E_FORMAT,
                         "the digest's state is refused: its tokens of quad %" PRIu64
                         " are not those of the positions it has seen",
                         quad);
            q = iron__sorted_next(&d->open.quads, &quad_at);
            last = quad;
        }
    }
    IRON_FAIL_IF(q, err, IRON_E_FORMAT,
                 "the digest's state is refused: no position that it has seen leaves quad %" PRIu64
                 " open",
                 q->quad);
    return IRON_OK;
}

/* Of the tokens that wait, what is certain: those that the statistics must have met. */
static iron__token_stats stats_of_open(const iron__digest *d, uint64_t *tokens) {
    iron__token_stats stats = iron__token_stats_neutral();
    iron__sorted_place at;
    const iron__open_quad *q = iron__sorted_first(&d->open.quads, &at);

    *tokens = 0;
    for (; q; q = iron__sorted_next(&d->open.quads, &at)) {
        for (uint32_t i = 0; i < 4; i++) {
            if (!(q->there & 1u << i))
                continue;
            iron__stats_take(&stats, &q->tokens[i], 1, 4 * q->quad + i, d->vocab);
            ++*tokens;
        }
    }
    return stats;
}

/* T of so many tokens between min and max. */
static bool sum_is_possible(iron__seal_words w, const iron__token_stats *s) {
    uint64_t least, most;

    if (w.count == 0)
        return w.t == 0 && w.a == 0 && w.b == 0;
    if (__builtin_mul_overflow(w.count, (uint64_t)s->max, &most))
        return true;
    least = w.count * s->min;
    return least <= w.t && w.t <= most;
}

static bool first_out_is_possible(const iron__digest *d, const iron__token_stats *open) {
    const iron__token_stats *s = &d->stats;
    iron__stretch at = {s->first_position, s->first_position + 1}, seen;

    if (s->out_of_vocab == 0)
        return s->first_position == UINT64_MAX && s->first_value == 0;
    if (s->first_position == UINT64_MAX || !iron__coverage_overlaps(&d->seen, at, &seen))
        return false;
    if (s->first_position > open->first_position)
        return false;
    if (s->first_position == open->first_position)
        return s->first_value == open->first_value;
    /* then it is in a whole quad: an open one's would have been met above */
    return iron__coverage_quad(&d->seen, s->first_position / 4) == IRON_QUAD_WHOLE &&
           s->first_value >= d->vocab && s->first_value >= s->min && s->first_value <= s->max;
}

static bool stats_are_possible(const iron__digest *d, uint64_t total, uint64_t waiting,
                               const iron__token_stats *open) {
    const iron__token_stats *s = &d->stats;

    if (total == 0)
        return s->min == UINT32_MAX && s->max == 0 && s->out_of_vocab == 0;
    if (s->min > s->max || s->min > open->min || s->max < open->max)
        return false;
    if (total == waiting && (s->min != open->min || s->max != open->max))
        return false;
    if (s->out_of_vocab < open->out_of_vocab ||
        s->out_of_vocab - open->out_of_vocab > total - waiting)
        return false;
    return (s->max >= d->vocab) == (s->out_of_vocab > 0) &&
           (s->min >= d->vocab) == (s->out_of_vocab == total);
}

iron_status iron__digest_state_check(const iron__digest *d, iron_error *err) {
    iron__token_stats open;
    uint64_t total, waiting;

    IRON_FAIL_IF(d->vocab < 1 || d->vocab > IRON_DIGEST_VOCAB_MAX, err, IRON_E_FORMAT,
                 "the digest's state is refused: vocab %" PRIu64 ", not 1 to 4294967296", d->vocab);
    IRON_TRY(check_open(d, err));
    total = iron__coverage_total(&d->seen);
    open = stats_of_open(d, &waiting);
    IRON_FAIL_IF(d->words.count != total - waiting, err, IRON_E_FORMAT,
                 "the digest's state is refused: words of %" PRIu64 " tokens, and %" PRIu64
                 " were seen in whole quads",
                 d->words.count, total - waiting);
    IRON_FAIL_IF(!stats_are_possible(d, total, waiting, &open) || !first_out_is_possible(d, &open),
                 err, IRON_E_FORMAT,
                 "the digest's state is refused: its statistics contradict each other");
    IRON_FAIL_IF(!sum_is_possible(d->words, &d->stats), err, IRON_E_FORMAT,
                 "the digest's state is refused: its sum is none of tokens between %u and %u",
                 d->stats.min, d->stats.max);
    return IRON_OK;
}
