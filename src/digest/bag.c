/* SPDX-License-Identifier: MIT */
/*
 * bag.c: bags: the sums of the seals of samples, whatever their order.
 *
 * A cutter takes tokens in order, finds where samples begin and end, and seals each sample from its
 * own position 0. Scans use it while a piece of the stream is in the cache (scan.c): each thread
 * has a cutter, and a piece owns the samples that begin in it. After the piece, the thread reads
 * past its end to finish the last sample. Only samples that go on for LONG_TOKENS more are left to
 * the end, where all threads share them. Of a pipe there is one cutter, which never stops.
 *
 * Where samples begin: every L tokens; after each EOS, which the cutter finds; or where the rows or
 * documents of the files do, which formats/documents.c finds. Empty rows and documents have no
 * tokens and are only counted.
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

/* Samples that have so many tokens after the piece they begin in are sealed by all threads. */
#ifndef LONG_TOKENS /* small ones in tests */
#define LONG_TOKENS ((uint64_t)4 << 20)
#endif

/* Samples up to this length are sealed without the rows for long runs, whose setup costs more. */
#define SHORT_TOKENS 64u

/* What is read at first to find the EOS of a piece's last sample. */
#define FIRST_READ_TOKENS 4096u

#define VOCAB_ANY (UINT64_C(1) << 32)

/* Bags. */

static inline void add_words(iron_bag *bag, iron__seal_words words, uint64_t times) {
    bag->hi += times * iron__seal_fold(0, words);
    bag->lo += times * iron__seal_fold(1, words);
    bag->samples += times;
}

static void add_empty(iron_bag *bag, uint64_t times) {
    add_words(bag, (iron__seal_words){0, 0, 0, 0}, times);
}

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

void iron_bag_cut_format(const iron_bag_cut *cut, char text[IRON_BAG_CUT_TEXT]) {
    const char *word = cut->kind == IRON_BAG_CUT_ROWS        ? "rows"
                       : cut->kind == IRON_BAG_CUT_DOCUMENTS ? "documents"
                                                             : "";

    if (cut->kind == IRON_BAG_CUT_SAMPLE || cut->kind == IRON_BAG_CUT_EOS)
        snprintf(text, IRON_BAG_CUT_TEXT, "%s=%" PRIu64,
                 cut->kind == IRON_BAG_CUT_SAMPLE ? "sample" : "eos", cut->value);
    else
        snprintf(text, IRON_BAG_CUT_TEXT, "%s", word);
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
    const char *number = "0";

    if (strcmp(text, "rows") == 0)
        read.kind = IRON_BAG_CUT_ROWS;
    else if (strcmp(text, "documents") == 0)
        read.kind = IRON_BAG_CUT_DOCUMENTS;
    else if (strncmp(text, "sample=", 7) == 0)
        read.kind = IRON_BAG_CUT_SAMPLE, number = text + 7;
    else if (strncmp(text, "eos=", 4) == 0)
        read.kind = IRON_BAG_CUT_EOS, number = text + 4;
    IRON_FAIL_IF(read.kind == IRON_BAG_CUT_NONE || !parse_count(number, &read.value) ||
                     check_cut(&read, NULL) != IRON_OK,
                 err, IRON_E_FORMAT,
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
                 "%.120s has %s, not %s", iron_source_file(source, 0),
                 cut->kind == IRON_BAG_CUT_ROWS ? "rows" : "documents",
                 cut->kind == IRON_BAG_CUT_ROWS ? "documents" : "rows");
    return IRON_OK;
}

/* Sealing. */

/* The words of a sample of at most SHORT_TOKENS tokens. */
static inline iron__seal_words seal_short(const uint32_t *tokens, size_t count) {
    const uint64_t window = iron__seal_window(0);
    iron__seal_words words = {count, 0, 0, 0};
    size_t rest = count % 4;
    uint32_t quad = 0;

    for (; count - rest > 4 * (size_t)quad; quad++)
        iron__seal_add_quad(&words, tokens + 4 * (size_t)quad, quad, window);
    if (rest > 0) {
        const uint32_t *t = tokens + 4 * (size_t)quad;
        const uint32_t last[4] = {t[0], rest > 1 ? t[1] : 0, rest > 2 ? t[2] : 0, 0};

        iron__seal_add_quad(&words, last, quad, window);
    }
    return words;
}

void iron__seal_view(const iron__seal_variant *row, const iron__tokens_view *view, size_t begin,
                     size_t end, uint32_t *wide, iron__seal *seal) {
    size_t some;

    if (seal->carried > 0) {
        some = 4 - seal->carried < end - begin ? 4 - seal->carried : end - begin;
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
        add_words(&sums, iron__seal_total(&seal), 1);
    }
    iron_bag_merge(bag, &sums);
    return IRON_OK;
}

iron_status iron_bag_add_sample(iron_bag *bag, iron_dtype dtype, const void *tokens, size_t count,
                                iron_error *err) {
    return iron_bag_add_rows(bag, dtype, tokens, 1, count, err);
}

/* Finding the EOS: blocks without one are skipped by a loop that compilers vectorise. */

#define EOS_BLOCK 64u

#define DEFINE_FIND(name, type)                                                                    \
    static size_t name(const type *tokens, size_t from, size_t count, type wanted) {               \
        for (; count - from >= EOS_BLOCK; from += EOS_BLOCK) {                                     \
            type found = 0;                                                                        \
                                                                                                   \
            for (size_t k = 0; k < EOS_BLOCK; k++)                                                 \
                found = (type)(found | (type)(tokens[from + k] == wanted));                        \
            if (found)                                                                             \
                break;                                                                             \
        }                                                                                          \
        while (from < count && tokens[from] != wanted)                                             \
            from++;                                                                                \
        return from;                                                                               \
    }

DEFINE_FIND(find_u8, uint8_t)
DEFINE_FIND(find_u16, uint16_t)
DEFINE_FIND(find_u32, uint32_t)
DEFINE_FIND(find_u64, uint64_t)

/* The index of the first token from `from` on that is the EOS, or the view's count. */
static size_t find_eos(const iron__tokens_view *view, size_t from, uint64_t eos) {
    size_t width = iron_dtype_bytes(view->dtype);

    if (width < 8 && eos >> (8 * width) != 0)
        return view->count;
    switch (width) {
    case 1:
        return find_u8(view->data, from, view->count, (uint8_t)eos);
    case 2:
        return find_u16(view->data, from, view->count, (uint16_t)eos);
    case 4:
        return find_u32(view->data, from, view->count, (uint32_t)eos);
    default:
        return find_u64(view->data, from, view->count, eos);
    }
}

/* The cutter. */

#define NO_START UINT64_MAX

/* Where the next sample begins, from token `at` of the view on: a position, or NO_START if it is
 * not known. */
static uint64_t next_start(iron__bag_cutter *c, const iron__tokens_view *view, size_t at) {
    switch (c->cut.kind) {
    case IRON_BAG_CUT_SAMPLE:
        return c->start;
    case IRON_BAG_CUT_EOS:
        if (!c->is_after_eos) {
            at = find_eos(view, at, c->cut.value);
            if (at == view->count)
                return NO_START;
            c->is_after_eos = true;
            at++;
        }
        return c->position + at;
    default:
        return c->next < c->starts.place_count ? c->starts.places[c->next] : NO_START;
    }
}

static void open_sample(iron__bag_cutter *c, uint64_t start) {
    c->is_open = true;
    c->first = start;
    c->seal = (iron__seal){.carried = 0};
    if (c->cut.kind == IRON_BAG_CUT_SAMPLE)
        c->stop = c->cut.value < NO_START - start ? start + c->cut.value : NO_START;
    else if (c->cut.kind != IRON_BAG_CUT_EOS)
        c->stop = ++c->next < c->starts.place_count ? c->starts.places[c->next] : c->after;
}

/* The end of the open sample in the view; *is_end is false if it goes on. */
static size_t sample_end(iron__bag_cutter *c, const iron__tokens_view *view, size_t at,
                         bool *is_end) {
    if (c->cut.kind == IRON_BAG_CUT_EOS) {
        at = find_eos(view, at, c->cut.value);
        *is_end = c->is_after_eos = at < view->count;
        return at + *is_end;
    }
    *is_end = c->stop - c->position <= view->count;
    return *is_end ? (size_t)(c->stop - c->position) : view->count;
}

static void close_sample(iron__bag_cutter *c, iron__seal_words words) {
    add_words(&c->sums, words, 1);
    c->is_open = false;
    c->start = c->stop;
}

/* Adds tokens at ... end-1 to the open sample, which is complete then if is_end. */
static inline void add_to_sample(iron__bag_cutter *c, const iron__tokens_view *view, size_t at,
                                 size_t end, bool is_end) {
    if (is_end && end - at <= SHORT_TOKENS && c->first == c->position + at) {
        size_t count = end - at;
        const uint32_t *tokens = iron__view_tokens(view, at, &count, c->wide);

        close_sample(c, seal_short(tokens, count));
        return;
    }
    iron__seal_view(c->row, view, at, end, c->wide, &c->seal);
    if (is_end)
        close_sample(c, iron__seal_total(&c->seal));
}

/* Short samples of one length that are all in the view: their tokens are widened together. Returns
 * where the first sample begins that is left. */
static size_t add_short_samples(iron__bag_cutter *c, const iron__tokens_view *view, size_t at) {
    size_t length = (size_t)c->cut.value, most = IRON_WIDEN_TOKENS / length * length;

    for (;;) {
        uint64_t position = c->position + at, left = view->count - at;
        size_t count = left < most ? (size_t)left / length * length : most;
        const uint32_t *tokens;

        if (count == 0 || c->end <= position || c->end - position < count)
            return at;
        tokens = iron__view_tokens(view, at, &count, c->wide);
        for (size_t k = 0; k < count; k += length)
            add_words(&c->sums, seal_short(tokens + k, length), 1);
        at += count;
        c->start = c->position + at;
    }
}

void iron__bag_add(iron__bag_cutter *c, const iron__tokens_view *view) {
    bool has_short = c->cut.kind == IRON_BAG_CUT_SAMPLE && c->cut.value <= SHORT_TOKENS;

    for (size_t at = 0, end; at < view->count; at = end) {
        bool is_end;

        if (!c->is_open && has_short && c->start == c->position + at) {
            at = add_short_samples(c, view, at);
            if (at == view->count)
                break;
        }
        if (!c->is_open) {
            uint64_t start = next_start(c, view, at);

            if (start >= c->end || start - c->position >= view->count)
                break;
            at = (size_t)(start - c->position);
            open_sample(c, start);
        }
        end = sample_end(c, view, at, &is_end);
        add_to_sample(c, view, at, end, is_end);
    }
    c->position += view->count;
}

/* A bag of files, or of a range of them. */

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

iron_status iron__bag_job_init(iron__bag_job *job, iron_source *source, iron_bag_cut cut,
                               const iron__bag_range *range, iron_error *err) {
    bool is_last;

    *job = (iron__bag_job){.source = source, .cut = cut};
    pthread_mutex_init(&job->mutex, NULL);
    IRON_TRY(iron_bag_cut_resolve(source, &job->cut, err));
    job->has_starts = iron__cut_is_own(job->cut.kind);
    if (!range) {
        IRON_FAIL_IF(job->has_starts && !iron__source_tells_starts(source), err, IRON_E_ARG,
                     "rows or documents of files together with a pipe; cut the stream with "
                     "--sample or --eos instead");
        if (job->has_starts)
            iron__source_note_starts(source);
        return IRON_OK;
    }
    job->first = range->first;
    job->end = range->first + range->count;
    job->stream_tokens = iron_source_tokens(source);
    if (!job->has_starts)
        return IRON_OK;
    job->file_starts = iron__file_starts(source, err);
    if (!job->file_starts)
        return IRON_E_NOMEM;
    /* of the parts of an empty stream, the first is the last */
    is_last = job->end == job->stream_tokens &&
              (job->stream_tokens > 0 ? job->end > job->first : range->part <= 1);
    add_empty(&job->sums, iron__documents_without_tokens(source, job->file_starts, job->first,
                                                         job->end, is_last));
    return IRON_OK;
}

void iron__bag_job_deinit(iron__bag_job *job) {
    free((void *)job->file_starts);
    free(job->longs);
    pthread_mutex_destroy(&job->mutex);
}

void iron__bag_cutter_init(iron__bag_cutter *c, const iron__bag_job *job, uint32_t *wide) {
    *c = (iron__bag_cutter){.cut = job->cut,
                            .row = iron__seal_variant_find("champion"),
                            .wide = wide,
                            .is_after_eos = true, /* of a pipe: the first token begins a sample */
                            .end = NO_START};
}

void iron__bag_cutter_deinit(iron__bag_cutter *c) {
    iron_documents_close(c->walk.documents);
    iron__block_clear(&c->starts);
}

static iron_status take_document(void *context, uint64_t first, uint64_t end, iron_error *err) {
    iron__bag_cutter *c = context;

    if (first == end) {
        add_empty(&c->sums, 1);
        return IRON_OK;
    }
    c->after = c->walk.base + end;
    return iron__block_add_place(&c->starts, c->walk.base + first, err);
}

iron_status iron__bag_begin(const iron__bag_job *job, iron__bag_cutter *c,
                            iron__parallel_source *at, uint64_t first, uint64_t count,
                            const atomic_bool *stop, iron_error *err) {
    uint64_t length = job->cut.value, before[1];
    iron__tokens_view view = {iron_source_dtype(job->source), before, 1};

    c->position = first;
    c->end = first + count;
    c->is_open = false;
    switch (job->cut.kind) {
    case IRON_BAG_CUT_SAMPLE:
        c->start = first % length ? first + (length - first % length) : first;
        c->start = c->start < first ? NO_START : c->start; /* the sum has overflowed */
        return IRON_OK;
    case IRON_BAG_CUT_EOS:
        c->is_after_eos = first == 0;
        if (first > 0) {
            IRON_TRY(iron__parallel_source_read(at, first - 1, before, 1, stop, err));
            c->is_after_eos = find_eos(&view, 0, length) == 0;
        }
        return IRON_OK;
    default:
        c->starts.place_count = c->next = 0;
        return iron__document_walk_range(&c->walk, job->source, job->file_starts, first, c->end,
                                         take_document, c, stop, err);
    }
}

/* Leaves the open sample to iron__bag_finish. */
static iron_status leave_sample(iron__bag_job *job, iron__bag_cutter *c, iron_error *err) {
    iron__bag_long one = {c->first, job->cut.kind == IRON_BAG_CUT_EOS ? NO_START : c->stop,
                          c->position};
    bool has_room;

    c->is_open = false;
    pthread_mutex_lock(&job->mutex);
    has_room = IRON_ARRAY_GROW(&job->longs, job->long_count, &job->long_capacity);
    if (has_room)
        job->longs[job->long_count++] = one;
    pthread_mutex_unlock(&job->mutex);
    return has_room ? IRON_OK : iron__no_memory(err, "samples");
}

iron_status iron__bag_end(iron__bag_job *job, iron__bag_cutter *c, iron__parallel_source *at,
                          const atomic_bool *stop, iron_error *err) {
    bool is_eos = job->cut.kind == IRON_BAG_CUT_EOS;
    size_t want = is_eos ? FIRST_READ_TOKENS : c->buffer_tokens;
    uint64_t limit = c->position + LONG_TOKENS;

    if (c->is_open && (is_eos || c->stop > job->stream_tokens))
        c->stop = job->stream_tokens;
    while (c->is_open && c->position < c->stop) {
        uint64_t left = c->stop - c->position;
        iron__tokens_view view = {iron_source_dtype(job->source), c->buffer, 0};

        if (is_eos ? c->position >= limit : c->stop > limit)
            return leave_sample(job, c, err);
        want = want < c->buffer_tokens ? want : c->buffer_tokens;
        view.count = want < left ? want : (size_t)left;
        IRON_TRY(iron__parallel_source_read(at, c->position, c->buffer, view.count, stop, err));
        IRON_TRY(iron__stored_check(job->source, c->position, &view, c->position, err));
        iron__bag_add(c, &view);
        want *= 4;
    }
    if (c->is_open)
        close_sample(c, iron__seal_total(&c->seal));
    return IRON_OK;
}

/* Long samples: all threads look for the EOS, then all seal the sample. */

typedef struct long_run {
    iron__bag_job *job;
    iron__thread_pool *pool;
    iron__bag_cutter *cutters; /* one per thread */
    iron__parallel_source *at;
    const iron__bag_long *sample;
    uint64_t first, end;
    iron__tokens_use use; /* what is done with their tokens */
    _Atomic uint64_t eos; /* position of the first one found */
} long_run;

/* A piece of a long sample, for one thread. */
typedef struct long_piece {
    long_run *run;
    iron__bag_cutter *c;
    uint64_t first;
    size_t count;
} long_piece;

static iron_status seal_long_piece(void *context, const void *tokens, iron_error *err) {
    const long_piece *p = context;
    const iron__bag_job *job = p->run->job;
    iron__tokens_view view = {iron_source_dtype(job->source), tokens, p->count};
    iron__seal seal = {.words.count = p->first - p->run->sample->first};

    IRON_TRY(iron__stored_check(job->source, p->first, &view, p->first, err));
    iron__seal_view(p->c->row, &view, 0, view.count, p->c->wide, &seal);
    seal.words = iron__seal_total(&seal);
    seal.words.count -= p->first - p->run->sample->first;
    p->c->long_words = iron__seal_merge(p->c->long_words, seal.words);
    return IRON_OK;
}

/* The piece with the first EOS ends the ordered run: it reports that it was cancelled. */
static iron_status search_long_piece(void *context, const void *tokens, iron_error *err) {
    const long_piece *p = context;
    iron__tokens_view view = {iron_source_dtype(p->run->job->source), tokens, p->count};
    size_t at = find_eos(&view, 0, p->run->job->cut.value);

    if (at == view.count)
        return IRON_OK;
    iron__lower(&p->run->eos, p->first + at);
    return iron__fail(err, IRON_E_CANCELLED, 0, "found");
}

static iron_status use_long_piece(void *context, uint32_t worker, uint64_t index,
                                  const atomic_bool *stop, iron_error *err) {
    long_run *run = context;
    iron__bag_cutter *c = &run->cutters[worker];
    size_t tokens = c->buffer_tokens / 4 * 4;
    uint64_t first = run->first + index * tokens, left = run->end - first;
    long_piece p = {run, c, first, tokens < left ? tokens : (size_t)left};
    bool is_used = false;

    IRON_TRY(iron__parallel_source_use(run->at, p.first, p.count, run->use, &p, &is_used, err));
    if (is_used)
        return IRON_OK;
    IRON_TRY(iron__parallel_source_read(run->at, p.first, c->buffer, p.count, stop, err));
    return run->use(&p, c->buffer, err);
}

/* Positions first ... end-1 by all threads. */
static iron_status run_long(long_run *run, uint64_t first, uint64_t end, iron__tokens_use use,
                            iron_error *err) {
    size_t tokens = run->cutters[0].buffer_tokens / 4 * 4;
    iron__ordered_run ordered = {.count = (end - first) / tokens + ((end - first) % tokens != 0),
                                 .piece = use_long_piece,
                                 .context = run};

    run->first = first;
    run->end = end;
    run->use = use;
    return iron__thread_pool_run_ordered(run->pool, &ordered, err);
}

static iron_status add_long(long_run *run, iron_error *err) {
    const iron__bag_long *sample = run->sample;
    iron__bag_job *job = run->job;
    iron__seal_words words = {0, 0, 0, 0};
    uint64_t end = sample->end;

    if (end == NO_START) {
        iron_status status;

        atomic_init(&run->eos, NO_START);
        status = run_long(run, sample->searched, job->stream_tokens, search_long_piece, err);
        if (status != IRON_OK && atomic_load(&run->eos) == NO_START)
            return status;
        end = atomic_load(&run->eos);
        end = end == NO_START ? job->stream_tokens : end + 1;
    }
    IRON_TRY(run_long(run, sample->first, end, seal_long_piece, err));
    for (uint32_t k = 0; k < iron__thread_pool_threads(run->pool); k++) {
        words = iron__seal_merge(words, run->cutters[k].long_words);
        run->cutters[k].long_words = (iron__seal_words){0, 0, 0, 0};
    }
    add_words(&job->sums, words, 1);
    return IRON_OK;
}

iron_status iron__bag_finish(iron__bag_job *job, iron__thread_pool *pool, iron__bag_cutter *cutters,
                             iron__parallel_source *at, iron_error *err) {
    for (uint32_t k = 0; k < iron__thread_pool_threads(pool); k++)
        iron_bag_merge(&job->sums, &cutters[k].sums);
    for (size_t k = 0; k < job->long_count; k++)
        IRON_TRY(add_long(
            &(long_run){
                .job = job, .pool = pool, .cutters = cutters, .at = at, .sample = &job->longs[k]},
            err));
    return IRON_OK;
}

/* A bag of a pipe. */

/* The starts of rows are those of a list that grows while the pipe is read. A row that begins where
 * the next one begins is empty; so the last one waits for the next. */
iron_status iron__bag_add_pipe(iron__bag_cutter *c, const iron__tokens_view *view,
                               const iron__block *starts, iron_error *err) {
    size_t kept = c->starts.place_count - c->next;

    if (starts && c->next > 0) {
        memmove(c->starts.places, c->starts.places + c->next, kept * sizeof *c->starts.places);
        c->starts.place_count = kept;
        c->next = 0;
    }
    for (size_t k = 0; starts && k < starts->place_count; k++) {
        uint64_t start = starts->places[k];

        if (c->has_pending && c->pending == start)
            add_empty(&c->sums, 1);
        else
            IRON_TRY(iron__block_add_place(&c->starts, start, err));
        c->has_pending = true;
        c->pending = start;
    }
    /* the end of an open row may have become known */
    c->after = NO_START;
    if (starts && c->is_open)
        c->stop = c->next < c->starts.place_count ? c->starts.places[c->next] : NO_START;
    iron__bag_add(c, view);
    return IRON_OK;
}

void iron__bag_finish_pipe(iron__bag_job *job, iron__bag_cutter *c) {
    if (c->is_open)
        close_sample(c, iron__seal_total(&c->seal));
    if (c->has_pending && c->pending == c->position)
        add_empty(&c->sums, 1);
    iron_bag_merge(&job->sums, &c->sums);
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
