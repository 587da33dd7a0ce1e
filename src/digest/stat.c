/* SPDX-License-Identifier: MIT */
/*
 * stat.c: statistics as an object: made, continued, described.
 *
 * The document that a range begins with and the one it ends with are in no table, since a
 * neighbour may complete them: they are counted when somebody asks.
 */
#include "digest/stat.h"

#include "core/fail.h"
#include "core/memory.h"
#include "digest/stat_entropy.h"

#include <inttypes.h>
#include <string.h>

static iron_status check_rule(const iron__stat_rule *rule, bool wants_histogram, iron_error *err) {
    IRON_FAIL_IF(rule->vocab < 1 || rule->vocab > UINT64_C(1) << 32, err, IRON_E_ARG,
                 "vocab is %" PRIu64 "; it must be 1 to 4294967296", rule->vocab);
    IRON_FAIL_IF(rule->eos > UINT32_MAX && rule->eos != IRON_COUNT_UNKNOWN, err, IRON_E_ARG,
                 "eos is %" PRIu64 "; a token is at most 4294967295", rule->eos);
    IRON_FAIL_IF(wants_histogram && rule->vocab > IRON_STAT_HISTOGRAM_MAX, err, IRON_E_ARG,
                 "a histogram of a vocabulary of %" PRIu64
                 " would take more than 512 MiB; it goes up to 67108864: leave --hist out",
                 rule->vocab);
    return IRON_OK;
}

iron_status iron__stat_create(const iron__stat_rule *rule, bool wants_histogram, uint64_t first,
                              iron_stat **out, iron_error *err) {
    const iron_allocator *memory = iron__allocator_default();
    bool is_whole = true;
    iron_stat *s;

    *out = NULL;
    IRON_TRY(check_rule(rule, wants_histogram, err));
    s = iron__allocate(memory, 1, sizeof *s, "statistics", err);
    if (!s)
        return IRON_E_NOMEM;
    s->rule = *rule;
    s->range = iron__stat_range_at(first);
    if (rule->eos != IRON_COUNT_UNKNOWN) {
        s->lengths = iron__allocate(memory, 1, sizeof *s->lengths, "a table of lengths", err);
        is_whole = s->lengths;
    }
    if (wants_histogram && is_whole) {
        s->histogram =
            iron__allocate(memory, (size_t)rule->vocab, sizeof(uint64_t), "a histogram", err);
        is_whole = s->histogram;
    }
    if (!is_whole) {
        iron_stat_destroy(s);
        return IRON_E_NOMEM;
    }
    *out = s;
    return IRON_OK;
}

void iron_stat_destroy(iron_stat *stat) {
    const iron_allocator *memory = iron__allocator_default();

    if (!stat)
        return;
    iron__release(memory, stat->lengths);
    iron__release(memory, stat->histogram);
    iron__release(memory, stat);
}

static void append_range(iron_stat *stat, const iron__stat_range *next) {
    uint64_t joined = iron__stat_range_append(&stat->range, next);

    if (joined > 0)
        iron__stat_lengths_add(stat->lengths, joined, 1);
}

void iron__stat_take_piece(iron_stat *stat, const iron__stat_piece *piece) {
    append_range(stat, &piece->range);
    for (uint32_t k = 0; k < piece->long_count; k++)
        iron__stat_lengths_add(stat->lengths, piece->longs[k], 1);
}

void iron__stat_take_lane(iron_stat *stat, iron__stat_lane *lane) {
    if (stat->lengths)
        for (size_t k = 1; k <= IRON_SHORT_DOCUMENTS; k++)
            iron__stat_lengths_add(stat->lengths, k, lane->shorts[k]);
    memset(lane->shorts, 0, sizeof lane->shorts);
    if (!stat->histogram)
        return;
    for (size_t k = 0; k < stat->rule.vocab; k++)
        stat->histogram[k] += (uint64_t)lane->histogram[0][k] + lane->histogram[1][k];
    for (size_t k = 0; k < 2; k++)
        memset(lane->histogram[k], 0, (size_t)stat->rule.vocab * sizeof(uint32_t));
}

static iron_status check_next(const iron_stat *stat, const iron_stat *next, iron_error *err) {
    uint64_t end = stat->range.first + stat->range.tokens;

    IRON_FAIL_IF(stat->rule.vocab != next->rule.vocab, err, IRON_E_ARG,
                 "statistics of vocabularies %" PRIu64 " and %" PRIu64 " do not join",
                 stat->rule.vocab, next->rule.vocab);
    IRON_FAIL_IF(stat->rule.eos != next->rule.eos, err, IRON_E_ARG,
                 "statistics that end documents with other tokens do not join; use one eos");
    IRON_FAIL_IF(!stat->histogram != !next->histogram, err, IRON_E_ARG,
                 "statistics with and without a histogram do not join; use the same options");
    IRON_FAIL_IF(next->range.first != end, err, IRON_E_ARG,
                 "a range that begins at %" PRIu64 " does not follow one that ends at %" PRIu64
                 "; append them in order, without gaps",
                 next->range.first, end);
    return IRON_OK;
}

iron_status iron_stat_append(iron_stat *stat, const iron_stat *next, iron_error *err) {
    IRON_TRY(check_next(stat, next, err));
    append_range(stat, &next->range);
    if (stat->lengths)
        iron__stat_lengths_merge(stat->lengths, next->lengths);
    if (stat->histogram)
        for (size_t k = 0; k < stat->rule.vocab; k++)
            stat->histogram[k] += next->histogram[k];
    return IRON_OK;
}

const uint64_t *iron_stat_histogram(const iron_stat *stat, uint64_t *ids) {
    if (ids)
        *ids = stat->histogram ? stat->rule.vocab : 0;
    return stat->histogram;
}

/* The range's first and last document; how many there are. */
static size_t open_documents(const iron__stat_range *r, uint64_t lengths[2]) {
    size_t count = 0;

    if (r->ends > 0)
        lengths[count++] = r->document_head;
    if (r->document_tail > 0)
        lengths[count++] = r->document_tail;
    return count;
}

static void describe_documents(const iron_stat *stat, iron_stat_report *report) {
    const iron__stat_range *r = &stat->range;
    uint64_t low = iron__stat_lengths_min(stat->lengths);
    uint64_t high = iron__stat_lengths_max(stat->lengths);
    uint64_t n = r->ends + (r->document_tail > 0), p95 = n - n / 20, open[2];
    size_t opens = open_documents(r, open);

    if (n == 0)
        return;
    for (size_t k = 0; k < opens; k++) {
        low = low == 0 || open[k] < low ? open[k] : low;
        high = open[k] > high ? open[k] : high;
    }
    report->documents = n;
    report->document_min = low;
    report->document_max = high;
    report->document_mean = (double)r->tokens / (double)n;
    report->document_median = iron__stat_lengths_at(stat->lengths, open, opens, n - n / 2);
    report->document_p95 = iron__stat_lengths_at(stat->lengths, open, opens, p95);
    if (p95 == n) /* of fewer than 20, the largest, which is known exactly */
        report->document_p95 = high;
    if (n == 1)
        report->document_median = high;
    report->empty_documents = stat->lengths->counts[1] + (r->document_head == 1);
    report->is_last_open = r->document_tail > 0;
}

static void describe_histogram(const iron_stat *stat, iron_stat_report *report) {
    for (size_t k = 0; k < stat->rule.vocab; k++)
        report->used_ids += stat->histogram[k] > 0;
    report->unused_ids = stat->rule.vocab - report->used_ids;
    report->entropy_bits = iron__entropy_bits(stat->histogram, (size_t)stat->rule.vocab);
    report->entropy_limit_bits = iron__log2((double)stat->rule.vocab);
}

iron_status iron_stat_describe(const iron_stat *stat, iron_stat_report *report, iron_error *err) {
    const iron__stat_range *r = &stat->range;

    IRON_FAIL_IF(!report || report->struct_size != sizeof *report, err, IRON_E_ARG,
                 "iron_stat_report.struct_size is not %zu; set it to sizeof", sizeof *report);
    memset(report, 0, sizeof *report);
    report->struct_size = sizeof *report;
    report->min = r->tokens ? r->min : 0;
    report->max = r->max;
    report->tokens = r->tokens;
    report->zeros = r->zeros;
    report->out_of_vocab = r->out_of_vocab;
    report->place_count = r->place_count;
    memcpy(report->places, r->places, sizeof report->places);
    report->run_length = r->longest.length;
    report->run_position = r->longest.position;
    report->run_value = r->longest.value;
    if (stat->lengths)
        describe_documents(stat, report);
    if (stat->histogram)
        describe_histogram(stat, report);
    return IRON_OK;
}
