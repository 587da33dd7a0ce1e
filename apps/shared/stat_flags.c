/* SPDX-License-Identifier: MIT */
/* stat_flags.c: see stat_flags.h. */
#include "stat_flags.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void stat_option_table(stat_flags *o, option table[STAT_OPTIONS]) {
    const option options[STAT_OPTIONS] = {
        {"vocab", OPTION_NUMBER, &o->vocab, &o->has_vocab},
        {"eos", OPTION_NUMBER, &o->eos, &o->has_eos},
        {"hist", OPTION_FLAG, &o->wants_histogram, NULL},
        {"top", OPTION_NUMBER, &o->top, &o->has_top},
        {"json", OPTION_FLAG, &o->wants_json, NULL},
        READING_OPTIONS(o->reading),
    };

    *o = (stat_flags){.top = TOP_DEFAULT};
    memcpy(table, options, sizeof options);
}

static iron_status check_flags(const stat_flags *o, iron_error *err) {
    const reading *r = &o->reading;

    if (!o->has_vocab)
        return usage(err, "--vocab is missing; give the size of the vocabulary, such as 50257");
    if (o->has_eos && o->eos > UINT32_MAX)
        return usage(err, "eos is %" PRIu64 "; a token is at most 4294967295", o->eos);
    if (o->has_top && !o->wants_histogram)
        return usage(err, "--top needs --hist, which counts the ids");
    if (o->top > TOP_MAX)
        return usage(err, "top is %" PRIu64 "; it must be 0 to %u", o->top, TOP_MAX);
    if (r->backend && strcmp(r->backend, "auto") != 0 && strcmp(r->backend, "cpu") != 0)
        return usage(err, "--backend %.40s: statistics run on the CPU; leave it out", r->backend);
    if (r->device != 0)
        return usage(err, "device %" PRIu64 " does not exist: statistics run on the CPU, device 0",
                     r->device);
    return IRON_OK;
}

iron_status stat_source_open(stat_flags *o, const args *a, iron_source **source, iron_error *err) {
    iron_status status = check_flags(o, err);

    if (status == IRON_OK)
        status = reading_check(&o->reading, err);
    if (status != IRON_OK)
        return status;
    return reading_open(&o->reading, (const char *const *)a->values, a->value_count, source, err);
}

iron_stat_options stat_options_of(const stat_flags *o) {
    iron_stat_options options;

    iron_stat_options_init(&options);
    options.threads = (uint32_t)o->reading.threads;
    options.vocab = o->vocab;
    options.eos = o->has_eos ? o->eos : IRON_COUNT_UNKNOWN;
    options.wants_histogram = o->wants_histogram;
    return options;
}

static void warn_of_strangers(const stat_findings *f) {
    const iron_stat_report *r = &f->report;

    if (r->out_of_vocab > 0)
        fprintf(stderr,
                "iron: warning: %" PRIu64 " of %" PRIu64
                " tokens are not in the vocabulary of %" PRIu64 "; the first is %" PRIu32
                " at position %" PRIu64 "\n",
                r->out_of_vocab, r->tokens, f->vocab, r->places[0].value, r->places[0].position);
}

iron_status stat_show(const stat_flags *o, const iron_stat *stat, stat_findings *f,
                      iron_error *err) {
    size_t width = iron_dtype_bytes(iron_source_dtype(f->source));
    iron_status status;
    uint64_t ids;
    const uint64_t *counts = iron_stat_histogram(stat, &ids);

    f->report.struct_size = sizeof f->report;
    status = iron_stat_describe(stat, &f->report, err);
    if (status != IRON_OK)
        return status;
    f->vocab = o->vocab;
    f->has_documents = o->has_eos;
    f->has_histogram = counts;
    f->rate = f->seconds > 0 ? (double)f->report.tokens * (double)width / f->seconds * 1e-9 : 0;
    if (counts)
        stat_find_ids(f, counts, ids, o->top);
    if (o->wants_json) {
        stat_show_json(f);
        return IRON_OK;
    }
    stat_show_text(f);
    warn_of_strangers(f);
    return IRON_OK;
}
