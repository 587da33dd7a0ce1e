/* SPDX-License-Identifier: MIT */
/*
 * diff.c: the calls of the header. A comparison first finds which chunks differ and where the first
 * difference is, by whichever way the two sides allow, and then looks for an explanation.
 */
#include "digest/diff.h"

#include "core/cpu.h"
#include "core/fail.h"
#include "digest/diff_explain.h"
#include "digest/diff_sides.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static iron_status check_options(const iron_diff_options *o, iron_error *err) {
    if (!o)
        return IRON_OK;
    IRON_FAIL_IF(o->struct_size != sizeof *o, err, IRON_E_ARG,
                 "iron_diff_options.struct_size is not %zu; set it to sizeof", sizeof *o);
    IRON_FAIL_IF(o->threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "threads is %" PRIu32 "; it must be at most %u", o->threads, IRON_THREADS_MAX);
    return iron__chunk_tokens_check(o->chunk_tokens, err);
}

iron_status iron__diff_show_first(iron__diff_run *run, uint64_t first, iron_error *err) {
    iron_diff_report *r = &run->diff->report;

    r->first = first;
    r->first_end = first + 1;
    for (int side = 0; side < 2; side++) {
        r->has_value[side] = first < r->tokens[side];
        if (r->has_value[side])
            IRON_TRY(iron__diff_text_take(&run->text[side], first, &r->value[side], 1, err));
    }
    return IRON_OK;
}

/* Of the longer one what is past the other's end must still be tokens. */
static iron_status check_rest(iron__diff_run *run, uint64_t common, iron_error *err) {
    for (int side = 0; side < 2; side++) {
        const iron__diff_text *text = &run->text[side];
        const iron__lockstep rest = {{text, NULL}, {common, 0}, text->tokens - common, NULL};
        uint64_t first;

        if (text->tokens > common && iron__diff_text_can_be_bad(text))
            IRON_TRY(iron__lockstep_run(&rest, &run->crew, &first, err));
    }
    return IRON_OK;
}

iron_status iron__diff_by_tokens(iron__diff_run *run, iron_error *err) {
    iron_diff *d = run->diff;
    iron__lockstep what = {{&run->text[0], &run->text[1]}, {0, 0}, 0, &d->bits};
    uint64_t first, longer;

    for (int side = 0; side < 2; side++)
        d->report.tokens[side] = run->text[side].tokens;
    what.count = iron__diff_common(&d->report);
    longer = iron__diff_longer(&d->report);
    IRON_TRY(iron__diff_bits_reach(&d->bits, longer, err));
    IRON_TRY(iron__lockstep_run(&what, &run->crew, &first, err));
    IRON_TRY(check_rest(run, what.count, err));
    iron__diff_bits_set_tokens(&d->bits, what.count, longer);
    return first < longer ? iron__diff_show_first(run, first, err) : IRON_OK;
}

/* Which chunks differ is known: how many, and in which ranges of positions. */
static iron_status sum_up(iron_diff *d, iron_error *err) {
    iron_diff_report *r = &d->report;
    uint64_t longer = iron__diff_longer(r);

    r->chunk_tokens = d->bits.chunk_tokens;
    r->chunks = iron__chunks_of(longer, r->chunk_tokens);
    IRON_TRY(iron__diff_bits_ranges(&d->bits, r->chunks, &r->differing_chunks, &d->ranges,
                                    &r->range_count, err));
    for (size_t k = 0; k < r->range_count; k++) {
        iron__diff_range *range = &d->ranges[k];

        range->end = range->end < r->chunks ? range->end * r->chunk_tokens : longer;
        range->first *= r->chunk_tokens;
    }
    return IRON_OK;
}

static iron_status compare(iron__diff_run *run, iron_error *err) {
    iron_diff_report *r = &run->diff->report;

    r->first = IRON_COUNT_UNKNOWN;
    r->first_end = IRON_COUNT_UNKNOWN;
    if (run->has_same_seal)
        r->tokens[0] = r->tokens[1] = run->side[0]->manifest->tokens;
    if (run->has_same_seal)
        IRON_TRY(iron__diff_bits_reach(&run->diff->bits, r->tokens[0], err));
    else if (run->manifest[0] && run->manifest[1])
        IRON_TRY(iron__diff_by_words(run, err));
    else if (iron__diff_has_texts(run))
        IRON_TRY(iron__diff_by_tokens(run, err));
    else
        IRON_TRY(iron__diff_in_order(run, err));
    IRON_TRY(sum_up(run->diff, err));
    return iron__diff_explain(run, err);
}

static iron_status run_comparison(iron__diff_run *run, const iron_diff_options *o,
                                  iron_error *err) {
    uint32_t threads = o && o->threads ? o->threads : iron__cpu_threads();
    iron_status status;

    if (o) {
        run->crew.progress = o->progress;
        run->crew.context = o->context;
    }
    IRON_TRY(iron__team_create(threads, iron__allocator_default(), &run->crew.team, err));
    status = iron__diff_sides_open(run, o ? o->chunk_tokens : 0, err);
    if (status == IRON_OK)
        status = compare(run, err);
    iron__diff_sides_close(run);
    iron__team_destroy(run->crew.team);
    return status;
}

iron_status iron_diff_run(const iron_diff_side *a, const iron_diff_side *b,
                          const iron_diff_options *options, iron_diff **out, iron_error *err) {
    iron__diff_run run = {.side = {a, b}};
    iron_status status;

    *out = NULL;
    IRON_TRY(check_options(options, err));
    run.diff = calloc(1, sizeof *run.diff);
    if (!run.diff)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for a comparison");
    run.diff->report.struct_size = sizeof run.diff->report;
    status = run_comparison(&run, options, err);
    if (status != IRON_OK) {
        iron_diff_destroy(run.diff);
        return status;
    }
    *out = run.diff;
    return IRON_OK;
}

void iron_diff_destroy(iron_diff *diff) {
    if (!diff)
        return;
    iron__diff_bits_clear(&diff->bits);
    free(diff->ranges);
    free(diff);
}

iron_status iron_diff_describe(const iron_diff *diff, iron_diff_report *report, iron_error *err) {
    IRON_FAIL_IF(report->struct_size != sizeof *report, err, IRON_E_ARG,
                 "iron_diff_report.struct_size is not %zu; set it to sizeof", sizeof *report);
    *report = diff->report;
    return IRON_OK;
}

int iron_diff_range(const iron_diff *diff, size_t index, uint64_t *first, uint64_t *end) {
    if (index >= diff->report.range_count)
        return 1;
    *first = diff->ranges[index].first;
    *end = diff->ranges[index].end;
    return 0;
}
