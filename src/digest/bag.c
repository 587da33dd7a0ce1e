/* SPDX-License-Identifier: MIT */
/*
 * bag.c: bags: the sums of the seals of samples, whatever their order.
 *
 * Their texts and arithmetic, what a sample is in which source, and bags of samples in memory.
 * Scans make the bags of streams (scan.c).
 */
#include "digest/digest_internal.h"

#include "core/array.h"
#include "core/fail.h"
#include "core/number.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VOCAB_ANY (UINT64_C(1) << 32)

/* Bags. */

void iron_bag_merge(iron_bag *bag, const iron_bag *other) {
    bag->hi += other->hi;
    bag->lo += other->lo;
    bag->samples += other->samples;
}

void iron_bag_format(const iron_bag *bag, char text[IRON_BAG_TEXT]) {
    snprintf(text, IRON_BAG_TEXT, "%016" PRIx64 "%016" PRIx64 "-%" PRIu64, bag->hi, bag->lo,
             bag->samples);
}

/* Decimal digits without a leading zero, below 2^64, up to the end of the text. */
static bool parse_count(const char *text, uint64_t *out) {
    bool is_padded = text[0] == '0' && text[1];

    return iron__read_digits(&text, NULL, 10, out) && !*text && !is_padded;
}

iron_status iron_bag_parse(const char *text, iron_bag *bag, iron_error *err) {
    const char *hi = text, *lo = text + 16;
    iron_bag read = {0, 0, 0};

    IRON_FAIL_IF(
        strlen(text) < 33 || !iron__read_digits(&hi, lo, 16, &read.hi) || hi != lo ||
            !iron__read_digits(&lo, text + 32, 16, &read.lo) || lo != text + 32 || *lo != '-' ||
            !parse_count(text + 33, &read.samples),
        err, IRON_E_FORMAT,
        "'%.60s' is not a bag: 32 lowercase hex digits, a hyphen and the number of samples", text);
    *bag = read;
    return IRON_OK;
}

/* As texts, by kind; those with a value go on with it. */
static const char *const cut_words[] = {
    [IRON_BAG_CUT_NONE] = "",          [IRON_BAG_CUT_FORMAT] = "",
    [IRON_BAG_CUT_ROWS] = "rows",      [IRON_BAG_CUT_DOCUMENTS] = "documents",
    [IRON_BAG_CUT_SAMPLE] = "sample=", [IRON_BAG_CUT_EOS] = "eos=",
};

static bool has_value(iron_bag_cut_kind kind) {
    return kind == IRON_BAG_CUT_SAMPLE || kind == IRON_BAG_CUT_EOS;
}

void iron_bag_cut_format(const iron_bag_cut *cut, char text[IRON_BAG_CUT_TEXT]) {
    bool is_known = cut->kind <= IRON_BAG_CUT_EOS;
    int length = snprintf(text, IRON_BAG_CUT_TEXT, "%s", is_known ? cut_words[cut->kind] : "");

    if (has_value(cut->kind))
        snprintf(text + length, IRON_BAG_CUT_TEXT - (size_t)length, "%" PRIu64, cut->value);
}

static iron_status check_cut(const iron_bag_cut *cut, iron_error *err) {
    IRON_FAIL_IF(cut->kind == IRON_BAG_CUT_SAMPLE && cut->value == 0, err, IRON_E_ARG,
                 "samples of 0 tokens; --sample must be at least 1");
    IRON_FAIL_IF(cut->kind == IRON_BAG_CUT_EOS && cut->value > UINT32_MAX, err, IRON_E_ARG,
                 "eos %" PRIu64 "; tokens are 0 to 4294967295", cut->value);
    IRON_FAIL_IF(cut->kind > IRON_BAG_CUT_EOS, err, IRON_E_ARG,
                 "unknown cut %d of a bag; use those of iron_bag_cut_kind", (int)cut->kind);
    return IRON_OK;
}

iron_status iron_bag_cut_parse(const char *text, iron_bag_cut *cut, iron_error *err) {
    iron_bag_cut read = {IRON_BAG_CUT_NONE, 0};
    bool is_one = false;

    for (int kind = IRON_BAG_CUT_NONE; !is_one && kind <= IRON_BAG_CUT_EOS; kind++) {
        size_t length = strlen(cut_words[kind]);

        read.kind = (iron_bag_cut_kind)kind;
        if (has_value(read.kind))
            is_one = strncmp(text, cut_words[kind], length) == 0 &&
                     parse_count(text + length, &read.value) && check_cut(&read, NULL) == IRON_OK;
        else
            is_one = length > 0 && strcmp(text, cut_words[kind]) == 0;
    }
    IRON_FAIL_IF(!is_one, err, IRON_E_FORMAT,
                 "'%.40s' is not the cut of a bag: rows, documents, sample=LENGTH or eos=TOKEN",
                 text);
    *cut = read;
    return IRON_OK;
}

iron_status iron_bag_source_cut(const iron_source *source, iron_bag_cut *cut, iron_error *err) {
    static const iron_bag_cut_kind kinds[] = {IRON_BAG_CUT_NONE, IRON_BAG_CUT_ROWS,
                                              IRON_BAG_CUT_DOCUMENTS};
    iron__cut first = IRON_CUT_NONE;

    *cut = (iron_bag_cut){IRON_BAG_CUT_NONE, 0};
    for (size_t k = 0; k < iron_source_file_count(source); k++) {
        iron__cut kind = iron__source_cut(source, k);
        static const char *const has[] = {"neither rows nor documents", "rows", "documents"};

        first = k == 0 ? kind : first;
        IRON_FAIL_IF(
            k > 0 && !iron__source_layout(source, k)->format, err, IRON_E_ARG,
            "%.100s can only be read in order, after %.80s, so its rows are not known yet; "
            "cut the stream with --sample or --eos instead, or read one such file",
            iron__path_shown(iron_source_file(source, k)),
            iron__path_shown(iron_source_file(source, 0)));
        IRON_FAIL_IF(kind != first, err, IRON_E_ARG,
                     "%.80s has %s and %.80s %s; cut the stream with --sample or --eos instead",
                     iron_source_file(source, 0), has[first], iron_source_file(source, k),
                     has[kind]);
    }
    cut->kind = kinds[first];
    return IRON_OK;
}

iron_status iron_bag_cut_resolve(const iron_source *source, iron_bag_cut *cut, iron_error *err) {
    iron_bag_cut wanted = *cut;

    IRON_TRY(check_cut(cut, err));
    if (!iron__cut_is_own(wanted.kind))
        return IRON_OK;
    IRON_TRY(iron_bag_source_cut(source, cut, err));
    IRON_FAIL_IF(cut->kind == IRON_BAG_CUT_NONE, err, IRON_E_ARG,
                 "%.120s has no rows or documents of its own; say what a sample is with --sample "
                 "LENGTH or --eos E",
                 iron_source_file_count(source) ? iron_source_file(source, 0) : "the stream");
    IRON_FAIL_IF(wanted.kind != IRON_BAG_CUT_FORMAT && wanted.kind != cut->kind, err, IRON_E_ARG,
                 "%.120s has %s, not %s", iron_source_file(source, 0), cut_words[cut->kind],
                 cut_words[wanted.kind]);
    return IRON_OK;
}

/* Sealing. */

void iron__seal_view(const iron__seal_variant *row, const iron__tokens_view *view, size_t begin,
                     size_t end, uint32_t *wide, iron__seal *seal) {
    size_t some;

    if (seal->carried > 0) {
        some = iron__min_size(4 - seal->carried, end - begin);
        iron__seal_feed(seal, iron__view_tokens(view, begin, &some, wide), some);
        begin += some;
    }
    some = (end - begin) / 4;
    iron__quads_add(row, view, begin, some, seal->words.count / 4, VOCAB_ANY, wide, &seal->words,
                    NULL, NULL);
    begin += 4 * some;
    if (begin < end) {
        some = end - begin;
        iron__seal_feed(seal, iron__view_tokens(view, begin, &some, wide), some);
    }
}

iron_status iron_bag_add_rows(iron_bag *bag, iron_dtype dtype, const void *tokens, size_t rows,
                              size_t length, iron_error *err) {
    const iron__seal_variant *row = iron__seal_variant_find("champion");
    iron__tokens_view view = {dtype, tokens, 0};
    iron_bag sums = {0, 0, 0};
    iron__widened wide;

    IRON_FAIL_IF(iron_dtype_bytes(dtype) == 0, err, IRON_E_ARG,
                 "unknown dtype %d; use those of iron_dtype", (int)dtype);
    IRON_FAIL_IF(__builtin_mul_overflow(rows, length, &view.count) ||
                     (view.count > 0 && (!tokens || (uintptr_t)tokens % iron_dtype_bytes(dtype))),
                 err, IRON_E_ARG, "%zu samples of %zu tokens at %p; align them to their width",
                 rows, length, tokens);
    IRON_TRY(iron__view_check(&view, 0, err));
    iron__widened_touch(&wide);
    for (size_t k = 0; k < rows; k++) {
        iron__seal seal = {.carried = 0};

        if (length > 0)
            iron__seal_view(row, &view, k * length, (k + 1) * length, wide.tokens, &seal);
        iron__bag_add(&sums, iron__seal_total(&seal), 1);
    }
    iron_bag_merge(bag, &sums);
    return IRON_OK;
}

iron_status iron_bag_add_sample(iron_bag *bag, iron_dtype dtype, const void *tokens, size_t count,
                                iron_error *err) {
    return iron_bag_add_rows(bag, dtype, tokens, 1, count, err);
}

/* Files, and their rows or documents. */

uint64_t *iron__file_starts(const iron_source *source, iron_error *err) {
    size_t count = iron_source_file_count(source);
    uint64_t *starts = calloc(count + 1, sizeof *starts);

    if (!starts)
        iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for %zu files", count);
    for (size_t k = 0; starts && k < count; k++)
        starts[k + 1] = starts[k] + iron_source_file_tokens(source, k);
    return starts;
}

uint64_t iron__documents_without_tokens(const iron_source *source, const uint64_t *starts,
                                        uint64_t first, uint64_t end, bool is_last) {
    uint64_t documents = 0;

    for (size_t k = 0; k < iron_source_file_count(source); k++)
        if (starts[k] == starts[k + 1] && starts[k] >= first &&
            (starts[k] < end || (starts[k] == end && is_last)))
            documents += iron__source_layout(source, k)->documents;
    return documents;
}

iron_status iron__document_walk_range(iron__document_walk *w, const iron_source *source,
                                      const uint64_t *starts, uint64_t first, uint64_t end,
                                      iron__document_use use, void *context,
                                      const atomic_bool *stop, iron_error *err) {
    size_t count = iron_source_file_count(source);

    for (size_t k = iron__array_find(starts, sizeof *starts, count, first);
         k < count && starts[k] < end; k++) {
        uint64_t stop_at = starts[k + 1] < end ? starts[k + 1] : end;

        if (starts[k] == starts[k + 1])
            continue;
        if (!w->documents || w->file != k) {
            iron_documents_close(w->documents);
            *w = (iron__document_walk){.file = k, .base = starts[k]};
            IRON_TRY(iron_documents_open(source, k, &w->documents, err));
        }
        IRON_FAIL_IF(!w->documents, err, IRON_E_FORMAT, "%.120s changed while being read",
                     iron_source_file(source, k));
        IRON_TRY(iron__documents_each(w->documents, first > w->base ? first - w->base : 0,
                                      stop_at - w->base, use, context, stop, err));
    }
    return IRON_OK;
}

/* Bags of sources. */

void iron_bag_options_init_sized(iron_bag_options *options, size_t struct_size) {
    const iron_bag_options defaults = {.cut.kind = IRON_BAG_CUT_FORMAT,
                                       .count = IRON_COUNT_UNKNOWN};

    iron__struct_init(options, struct_size, &defaults, sizeof defaults);
}

iron_status iron__bag_result_set(iron_bag_result *result, iron_bag bag, iron_bag_cut cut,
                                 iron_error *err) {
    IRON_TRY(iron__struct_check(result, sizeof *result, "iron_bag_result", err));
    *result = (iron_bag_result){.struct_size = sizeof *result, .bag = bag, .cut = cut};
    if (cut.kind != IRON_BAG_CUT_NONE)
        iron_bag_format(&bag, result->text);
    iron_bag_cut_format(&cut, result->cut_text);
    return IRON_OK;
}

iron_status iron_bag_source(iron_source *source, const iron_bag_options *options,
                            iron_bag_result *result, iron_error *err) {
    iron_manifest *m = NULL;
    iron_scan_options o;
    iron_status status;

    IRON_TRY(iron__struct_check(options, sizeof *options, "iron_bag_options", err));
    IRON_FAIL_IF(options->cut.kind == IRON_BAG_CUT_NONE, err, IRON_E_ARG,
                 "the bag's cut is NONE; say what a sample is");
    iron_scan_options_init(&o);
    o.threads = options->threads;
    o.bag = options->cut;
    o.first = options->first;
    o.count = options->count;
    o.progress = options->progress;
    o.context = options->context;
    IRON_TRY(iron__scan(source, IRON_SCAN_BAG, 0, &o, &m, err));
    status = iron_manifest_bag(m, result, err);
    iron_manifest_destroy(m);
    return status;
}
