/* SPDX-License-Identifier: MIT */
/*
 * digest_add.c: results of parts become the whole's. A part's words are those of its tokens at the
 * stream's positions, so they add up, like everything else here, in any order and grouping.
 */
#include "core/fail.h"
#include "core/seal.h"
#include "core/token_stats.h"

#include <inttypes.h>
#include <string.h>

static iron__token_stats stats_of(const iron_digest_result *r) {
    return (iron__token_stats){r->out_of_vocab, r->first_out_position, r->first_out_value, r->min,
                               r->max};
}

static iron_status check(const iron_digest_result *r, iron_error *err) {
    IRON_FAIL_IF(!r || r->struct_size != sizeof *r, err, IRON_E_ARG,
                 "iron_digest_result.struct_size is not %zu; set it to sizeof", sizeof *r);
    IRON_FAIL_IF(r->seal_version != IRON_SEAL_VERSION, err, IRON_E_ARG,
                 "a result of seal version %u; this library has %u", r->seal_version,
                 IRON_SEAL_VERSION);
    return IRON_OK;
}

iron_status iron_digest_result_add(iron_digest_result *result, const iron_digest_result *other,
                                   iron_error *err) {
    iron__token_stats s;

    IRON_TRY(check(result, err));
    IRON_TRY(check(other, err));
    IRON_FAIL_IF(result->vocab != other->vocab, err, IRON_E_ARG,
                 "results for vocabularies of %" PRIu64 " and %" PRIu64 "; parts must have one",
                 result->vocab, other->vocab);
    s = iron__token_stats_merge(stats_of(result), stats_of(other));
    for (size_t k = 0; k < 4; k++)
        result->words[k] += other->words[k];
    result->tokens += other->tokens;
    result->out_of_vocab = s.out_of_vocab;
    result->first_out_position = s.first_position;
    result->first_out_value = s.first_value;
    result->min = s.min;
    result->max = s.max;
    iron__seal_text(
        (iron__seal_words){result->words[0], result->words[1], result->words[2], result->words[3]},
        result->seal);
    return IRON_OK;
}
