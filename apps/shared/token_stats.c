/* SPDX-License-Identifier: MIT */
/*
 * token_stats.c: the options of `stat`, and its report as text or JSON.
 *
 * The text shows the most frequent ids and the first ranges of unused ids; both are found in the
 * histogram here.
 */
#include "reading.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define TOP_MAX     1000u
#define TOP_DEFAULT 10u
#define RANGES_MAX  16u

const option stat_table[STAT_COUNT] = {
    OPTION("vocab", OPTION_NUMBER, "V", stat_options, vocab,
           "required: size of the vocabulary, whose ids are 0 to V-1", .min = 1,
           .max = UINT64_C(1) << 32, GIVEN(stat_options, has_vocab)),
    OPTION("eos", OPTION_NUMBER, "E", stat_options, eos,
           "report documents that end with token E, which is part of their length, instead of the "
           "files' rows or documents; median and p95 are exact for documents up to 1048576 tokens "
           "and within 1/1024 above",
           GIVEN(stat_options, has_eos)),
    OPTION("hist", OPTION_FLAG, NULL, stat_options, wants_histogram,
           "count every id: used and unused ids, entropy, most frequent ids; for vocabularies up "
           "to 67108864"),
    OPTION("top", OPTION_NUMBER, "K", stat_options, top,
           "with --hist: how many of the most frequent ids to list", .max = TOP_MAX,
           .standard = "10", GIVEN(stat_options, has_top)),
    OPTION("json", OPTION_FLAG, NULL, stat_options, wants_json, JSON_HELP),
};

iron_status stat_source_open(stat_options *o, const args *a, iron_source **source,
                             iron_error *err) {
    const reading *r = &o->reading;

    if (!o->has_vocab)
        return usage(err, "--vocab is missing; give the size of the vocabulary, such as 50257");
    if (o->has_top && !o->wants_histogram)
        return usage(err, "--top needs --hist, which counts the ids");
    IRON_TRY(reading_cpu_only(r, "statistics run", err));
    IRON_TRY(reading_check(&o->reading, err));
    return reading_open(r, (const char *const *)a->values, a->value_count, source, err);
}

iron_stat_options stat_scan_options(const stat_options *o) {
    iron_stat_options options;

    iron_stat_options_init(&options);
    options.threads = o->reading.threads;
    options.vocab = o->vocab;
    options.eos = o->has_eos ? o->eos : IRON_COUNT_UNKNOWN;
    options.wants_histogram = o->wants_histogram;
    return options;
}

typedef struct id_count {
    uint64_t id, count;
} id_count;

typedef struct id_range {
    uint64_t first, last;
} id_range;

/* Everything that is printed; top and ranges only with a histogram. */
typedef struct stat_result {
    const iron_source *source;
    iron_stat_report report;
    uint64_t vocab;
    bool has_histogram;
    double seconds, gb_per_s;
    uint64_t ranks;
    size_t top_count, range_count;
    id_count top[TOP_MAX];       /* most frequent ids; the smaller id first if counts are equal */
    id_range ranges[RANGES_MAX]; /* first ranges of unused ids */
} stat_result;

/* Inserts into the sorted list of the `wanted` most frequent ids. */
static void offer_id(stat_result *f, id_count one, uint64_t wanted) {
    size_t at = f->top_count;

    if (at == wanted && (at == 0 || one.count <= f->top[at - 1].count))
        return;
    if (at < wanted)
        f->top_count++;
    else
        at--;
    for (; at > 0 && f->top[at - 1].count < one.count; at--)
        f->top[at] = f->top[at - 1];
    f->top[at] = one;
}

static double share(uint64_t part, uint64_t all) {
    return all ? 100 * (double)part / (double)all : 0;
}

static void print_number(const char *name, uint64_t value) {
    printf("%-13s %" PRIu64 "\n", name, value);
}

static void print_text(const stat_result *f) {
    const iron_stat_report *r = &f->report;
    size_t files = iron_source_file_count(f->source);
    double of_limit = r->entropy_limit_bits > 0 ? r->entropy_bits / r->entropy_limit_bits : 0;
    uint64_t shown = 0, offset;

    for (size_t k = 0; files > 1 && k < files; k++)
        printf("%-13s %s\n", k ? "" : "files", iron_source_file(f->source, k));
    print_number("tokens", r->tokens);
    print_number("vocab", f->vocab);
    if (r->tokens > 0) {
        print_number("min", r->min);
        print_number("max", r->max);
    }
    printf("%-13s %" PRIu64 " (%.3f %%)\n", "zeros", r->zeros, share(r->zeros, r->tokens));
    printf("%-13s %" PRIu64 " of %" PRIu64 " tokens\n", "out of vocab", r->out_of_vocab, r->tokens);
    for (const iron_stat_place *p = r->places; p < r->places + r->place_count; p++) {
        const char *file = reading_find_file(f->source, p->position, &offset);

        printf("%-13s position %" PRIu64 ": %" PRIu32, "", p->position, p->value);
        if (file)
            printf(", in %s at %" PRIu64, file, offset);
        putchar('\n');
    }
    if (r->out_of_vocab > r->place_count)
        printf("%-13s ... and %" PRIu64 " more\n", "", r->out_of_vocab - r->place_count);
    if (r->tokens > 0)
        printf("%-13s %" PRIu64 " times %" PRIu32 ", starting at position %" PRIu64 "\n",
               "longest run", r->run_length, r->run_value, r->run_position);
    if (r->document_cut.kind != IRON_BAG_CUT_NONE)
        printf("%-13s %" PRIu64 "%s\n",
               r->document_cut.kind == IRON_BAG_CUT_ROWS ? "rows" : "documents", r->documents,
               r->is_last_open ? ", the last one without eos" : "");
    if (r->document_cut.kind != IRON_BAG_CUT_NONE && r->documents > 0) {
        print_number("  shortest", r->document_min);
        print_number("  longest", r->document_max);
        printf("%-13s %.2f\n", "  mean", r->document_mean);
        print_number("  median", r->document_median);
        print_number("  p95", r->document_p95);
        print_number("  empty", r->empty_documents);
    }
    if (f->has_histogram) {
        printf("%-13s %" PRIu64 " of %" PRIu64 ", %" PRIu64 " unused\n", "ids used", r->used_ids,
               f->vocab, r->unused_ids);
        printf("%-13s %.6f bits per token, %.2f %% of the maximum %.6f for %" PRIu64 " ids\n",
               "entropy", r->entropy_bits, 100 * of_limit, r->entropy_limit_bits, f->vocab);
    }
    for (size_t k = 0; k < f->top_count; k++)
        printf("%-13s %10" PRIu64 " %14" PRIu64 " times %7.3f %%\n", k ? "" : "most frequent",
               f->top[k].id, f->top[k].count, share(f->top[k].count, r->tokens));
    for (const id_range *ids = f->ranges; ids < f->ranges + f->range_count; ids++) {
        printf(ids == f->ranges ? "%-13s %" PRIu64 : "%s, %" PRIu64,
               ids == f->ranges ? "unused ids" : "", ids->first);
        if (ids->last > ids->first)
            printf("-%" PRIu64, ids->last);
        shown += ids->last - ids->first + 1;
    }
    if (f->range_count > 0 && shown < r->unused_ids)
        printf(", ... and %" PRIu64 " more", r->unused_ids - shown);
    if (f->range_count > 0)
        putchar('\n');
    printf("%-13s %.6f s, %.3f GB/s\n", "time", f->seconds, f->gb_per_s);
    if (f->ranks > 0)
        print_number("ranks", f->ranks);
}

static void print_json(const stat_result *f) {
    const iron_stat_report *r = &f->report;
    iron_json_writer j = json_begin('{');
    bool has_documents = r->documents > 0;
    char cut[IRON_BAG_CUT_TEXT];
    uint64_t offset = 0;

    JSON_PUT(&j, NUMBER("tokens", r->tokens), NUMBER_IF(r->tokens > 0, "min", r->min),
             NUMBER_IF(r->tokens > 0, "max", r->max), NUMBER("zeros", r->zeros),
             NUMBER("vocab", f->vocab), NUMBER("out_of_vocab", r->out_of_vocab));
    iron_json_open(&j, "out_of_vocab_places", '[');
    for (const iron_stat_place *p = r->places; p < r->places + r->place_count; p++) {
        const char *file = reading_find_file(f->source, p->position, &offset);

        JSON_PUT(&j, OBJECT(NULL, NUMBER("position", p->position), NUMBER("value", p->value),
                            TEXT("file", file), NUMBER_IF(file, "offset", offset)));
    }
    iron_json_close(&j, ']');
    JSON_PUT(&j, OBJECT_IF(r->run_length > 0, "longest_run", NUMBER("length", r->run_length),
                           NUMBER("position", r->run_position), NUMBER("value", r->run_value)));
    iron_bag_cut_format(&r->document_cut, cut);
    if (r->document_cut.kind != IRON_BAG_CUT_NONE)
        JSON_PUT(&j, TEXT("document_cut", cut),
                 OBJECT("documents", NUMBER("count", r->documents),
                        NUMBER_IF(has_documents, "min", r->document_min),
                        NUMBER_IF(has_documents, "max", r->document_max),
                        REAL("mean", "%.17g", has_documents ? r->document_mean : NAN), /* null */
                        NUMBER_IF(has_documents, "median", r->document_median),
                        NUMBER_IF(has_documents, "p95", r->document_p95),
                        NUMBER("empty", r->empty_documents), BOOL("last_open", r->is_last_open)));
    if (f->has_histogram) {
        iron_json_open(&j, "histogram", '{');
        JSON_PUT(&j, NUMBER("used", r->used_ids), NUMBER("unused", r->unused_ids),
                 REAL("entropy_bits", "%.17g", r->entropy_bits));
        iron_json_open(&j, "top", '[');
        for (const id_count *top = f->top; top < f->top + f->top_count; top++)
            JSON_PUT(&j, OBJECT(NULL, NUMBER("id", top->id), NUMBER("count", top->count)));
        iron_json_close(&j, ']');
        iron_json_open(&j, "unused_ids", '[');
        for (const id_range *ids = f->ranges; ids < f->ranges + f->range_count; ids++)
            JSON_PUT(&j, ARRAY(NULL, NUMBER(NULL, ids->first), NUMBER(NULL, ids->last)));
        iron_json_close(&j, ']');
        iron_json_close(&j, '}');
    }
    json_files(&j, f->source);
    JSON_PUT(&j, REAL("seconds", "%.6f", f->seconds), REAL("gb_per_s", "%.6f", f->gb_per_s));
    if (f->ranks > 0)
        iron_json_number(&j, "ranks", f->ranks);
    json_end(&j, '}');
}

iron_status stat_print(const stat_options *o, const iron_stat *stat, const iron_source *source,
                       double seconds, uint64_t ranks, iron_error *err) {
    size_t width = iron_dtype_bytes(iron_source_dtype(source));
    stat_result *f = calloc(1, sizeof *f);
    uint64_t ids;
    const uint64_t *counts = iron_stat_histogram(stat, &ids);
    const iron_stat_report *r;
    iron_status status;

    if (!f)
        return usage(err, "out of memory for the report");
    r = &f->report;
    *f = (stat_result){.source = source,
                       .report.struct_size = sizeof f->report,
                       .vocab = o->vocab,
                       .has_histogram = counts,
                       .seconds = seconds,
                       .ranks = ranks};
    if ((status = iron_stat_describe(stat, &f->report, err)) != IRON_OK)
        goto done;
    f->gb_per_s = seconds > 0 ? (double)r->tokens * (double)width / seconds * 1e-9 : 0;
    for (uint64_t k = 0; counts && k < ids; k++) {
        if (counts[k] > 0)
            offer_id(f, (id_count){k, counts[k]}, o->has_top ? o->top : TOP_DEFAULT);
        else if (k > 0 && counts[k - 1] == 0 && f->ranges[f->range_count - 1].last == k - 1)
            f->ranges[f->range_count - 1].last = k;
        else if (f->range_count < RANGES_MAX)
            f->ranges[f->range_count++] = (id_range){k, k};
    }
    (o->wants_json ? print_json : print_text)(f);
    if (r->out_of_vocab > 0 && !o->wants_json)
        report_warning("iron",
                       "%" PRIu64 " of %" PRIu64 " tokens are not in the vocabulary of %" PRIu64
                       "; the first is %" PRIu32 " at position %" PRIu64,
                       r->out_of_vocab, r->tokens, f->vocab, r->places[0].value,
                       r->places[0].position);
    if (o->reading.is_strict && r->out_of_vocab > 0) {
        err->text[0] = '\0';
        status = IRON_E_MISMATCH;
    }
done:
    free(f);
    return status;
}
