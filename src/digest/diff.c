/* SPDX-License-Identifier: MIT */
/*
 * diff.c: iron_diff: where do two streams differ, and what happened?
 *
 * A comparison first finds which chunks differ and where the first difference is. How it compares
 * depends on what the two sides have:
 *
 *     words of both, chunks of one size             the words tell which chunks differ
 *     words of one, tokens of the other             the tokens are scanned first
 *     else tokens of both                           token by token
 *     else, unless the seals are equal              refused, with what to do
 *
 * Words are preferred to tokens: they were made from all tokens already. With a chunk size that no
 * manifest has, tokens are compared. Then it looks for an explanation: tokens that were inserted or
 * deleted, chunks that moved. The parts of the file are in the order in which they run; the public
 * functions are at the end.
 */
#include "digest/digest_internal.h"

#include "core/cpu.h"
#include "core/fail.h"
#include "formats/source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which chunks of two streams differ: one bit per chunk, which many threads may set at once. For a
 * terabyte of tokens in chunks of a million that is a hundred kilobytes. */
typedef struct diff_bits {
    uint64_t chunk_tokens;
    uint64_t chunks; /* that there is memory for */
    _Atomic uint64_t *words;
} diff_bits;

typedef struct diff_range {
    uint64_t first, end; /* positions */
} diff_range;

/* One side as tokens that any thread can read anywhere. */
typedef struct diff_text {
    iron__parallel_source *at; /* NULL: cannot be read anywhere */
    iron_dtype dtype;
    uint64_t tokens;
    const char *name;
} diff_text;

struct iron_diff {
    iron_diff_report report;
    diff_bits bits;
    diff_range *ranges; /* from malloc */
};

/* One comparison while it runs. */
typedef struct diff_run {
    iron_diff *diff;
    iron__thread_pool *pool;
    iron_progress progress; /* or NULL */
    void *context;
    const iron_diff_side *side[2];
    iron_source *source[2]; /* NULL: no tokens are available */
    diff_text text[2];
    const iron_manifest *manifest[2]; /* with chunks of the comparison's size, or NULL */
    iron_manifest *made[2];           /* by scanning; owned */
    bool has_same_seal;               /* two manifests that cannot be compared by chunks */
    char note[160];                   /* what the sentence must say besides */
} diff_run;

/* The tokens of the shorter and of the longer stream. */
static uint64_t common_tokens(const iron_diff_report *report) {
    return report->tokens[0] < report->tokens[1] ? report->tokens[0] : report->tokens[1];
}

static uint64_t longer_tokens(const iron_diff_report *report) {
    return report->tokens[0] < report->tokens[1] ? report->tokens[1] : report->tokens[0];
}

static bool has_texts(const diff_run *run) { return run->text[0].at && run->text[1].at; }

static const char *side_name(const diff_run *run, int side) {
    const char *name = run->side[side]->name;

    return name ? name : side ? "the second stream" : "the first stream";
}

static uint64_t chunks_of(uint64_t tokens, uint64_t chunk_tokens) {
    return tokens / chunk_tokens + (tokens % chunk_tokens != 0);
}

/* The sides. */

static const iron_manifest *manifest_of(const diff_run *run, int side) {
    return run->side[side]->manifest;
}

static iron_status check_side(const diff_run *run, int side, iron_error *err) {
    const iron_manifest *m = manifest_of(run, side);

    IRON_FAIL_IF(!m && !run->side[side]->source, err, IRON_E_ARG,
                 "%.100s has neither a manifest nor files", side_name(run, side));
    IRON_FAIL_IF(m && (m->parts > 0 || m->first > 0 || m->tokens != m->stream_tokens), err,
                 IRON_E_FORMAT,
                 "%.100s is the manifest of part %" PRIu32 " of %" PRIu32
                 "; join all parts first, with iron merge",
                 side_name(run, side), m->part, m->parts);
    return IRON_OK;
}

static void close_text(diff_text *text) {
    iron__parallel_source_close(text->at);
    text->at = NULL;
}

/* The side's tokens do not match its manifest: they are not used any more, and the sentence says
 * so. */
static void drop_text(diff_run *run, int side) {
    size_t length = strlen(run->note);

    close_text(&run->text[side]);
    run->source[side] = NULL;
    snprintf(run->note + length, sizeof run->note - length,
             "; the files of %.60s are no longer what its manifest says", side_name(run, side));
}

/* Opens the tokens of a side, if it has any that can be read anywhere: from the source's position
 * on. */
static iron_status open_text(diff_run *run, int side, iron_error *err) {
    const iron_manifest *m = manifest_of(run, side);
    diff_text *text = &run->text[side];
    iron_source *source = run->side[side]->source;

    run->source[side] = source;
    if (!source || !iron__source_is_seekable(source))
        return IRON_OK;
    IRON_TRY(iron__parallel_source_open(source, iron__allocator_default(), &text->at, err));
    text->dtype = iron_source_dtype(source);
    text->tokens = iron__parallel_source_tokens(text->at);
    text->name = side_name(run, side);
    if (m && m->tokens != text->tokens)
        drop_text(run, side);
    return IRON_OK;
}

/* Words and marks of a side's chunks: its manifest's, or from another pass over its tokens. */
static iron_status words_of(diff_run *run, int side, const iron_manifest **out, iron_error *err) {
    iron_scan_options o;

    *out = run->manifest[side] ? run->manifest[side] : run->made[side];
    if (*out)
        return IRON_OK;
    iron_scan_options_init(&o);
    o.threads = iron__thread_pool_threads(run->pool);
    o.backend = "cpu";
    o.chunk_tokens = run->diff->bits.chunk_tokens;
    o.progress = run->progress;
    o.context = run->context;
    IRON_TRY(iron_scan(run->source[side], &o, &run->made[side], err));
    *out = run->made[side];
    return IRON_OK;
}

/* The chunk size of the comparison: what the caller wants, else that of a manifest whose tokens are
 * not available, else that of any manifest. */
static uint64_t choose_chunks(const diff_run *run, uint64_t wanted) {
    for (int side = 0; side < 2 && !wanted; side++)
        if (!run->source[side])
            wanted = manifest_of(run, side)->chunk_tokens;
    for (int side = 0; side < 2 && !wanted; side++)
        if (manifest_of(run, side))
            wanted = manifest_of(run, side)->chunk_tokens;
    return wanted ? wanted : IRON_CHUNK_TOKENS;
}

static bool has_words(const diff_run *run, int side) {
    return manifest_of(run, side) &&
           manifest_of(run, side)->chunk_tokens == run->diff->bits.chunk_tokens;
}

static bool have_same_seal(const diff_run *run) {
    const iron_manifest *a = manifest_of(run, 0), *b = manifest_of(run, 1);

    return a && b && iron__words_equal(&a->words, &b->words);
}

static iron_status refuse(const diff_run *run, int side, iron_error *err) {
    const iron_manifest *m = manifest_of(run, side);

    if (m->chunk_tokens == 0)
        IRON_FAIL(err, IRON_E_FORMAT,
                  "the manifest %.100s has no chunks to compare, and its files are not available; "
                  "make it with --chunk %" PRIu64 "%s",
                  side_name(run, side), run->diff->bits.chunk_tokens, run->note);
    IRON_FAIL(err, IRON_E_FORMAT,
              "the manifest %.100s has chunks of %" PRIu64 " tokens, not %" PRIu64
              ", and its files are not available; make both with one --chunk%s",
              side_name(run, side), m->chunk_tokens, run->diff->bits.chunk_tokens, run->note);
}

/* Sees to it that there are either tokens of both, or words of chunks of one size of both (or
 * neither, with has_same_seal). */
static iron_status choose_way(diff_run *run, iron_error *err) {
    bool words[2] = {has_words(run, 0), has_words(run, 1)};

    run->has_same_seal = have_same_seal(run) && !(words[0] && words[1]);
    if (run->has_same_seal)
        return IRON_OK;
    for (int side = 0; side < 2; side++)
        if (!words[side] && !run->source[side])
            return refuse(run, side, err);
    for (int side = 0; side < 2 && (words[0] || words[1]); side++) {
        if (words[side])
            run->manifest[side] = manifest_of(run, side);
        else
            IRON_TRY(words_of(run, side, &run->manifest[side], err));
    }
    return IRON_OK;
}

/* chunk_tokens: 0, or what the caller wants. */
static iron_status open_sides(diff_run *run, uint64_t chunk_tokens, iron_error *err) {
    for (int side = 0; side < 2; side++)
        IRON_TRY(check_side(run, side, err));
    IRON_FAIL_IF(run->side[0]->source && run->side[0]->source == run->side[1]->source, err,
                 IRON_E_ARG, "both sides are the same source; open it twice");
    for (int side = 0; side < 2; side++)
        IRON_TRY(open_text(run, side, err));
    run->diff->bits.chunk_tokens = choose_chunks(run, chunk_tokens);
    return choose_way(run, err);
}

/* Finding the differences: which chunks differ, and where the first difference is.
 *
 *     compare_tokens    two texts token by token on all threads, at the speed of reading
 *     compare_in_order  two streams as they come, where one cannot be read twice: one pass by one
 *                       thread, in bounded memory (except for one bit per chunk)
 *     compare_words     two manifests chunk by chunk; the first chunk that differs is read */

/* The set of chunks that differ. */

#define WORD_BITS 64u

/* Makes sure that there are bits for the chunks of so many tokens; what was set stays. Not while
 * other threads use them. */
static iron_status bits_reserve(diff_bits *bits, uint64_t tokens, iron_error *err) {
    uint64_t chunks = chunks_of(tokens, bits->chunk_tokens);
    uint64_t have = bits->chunks / WORD_BITS, need;
    _Atomic uint64_t *words;

    if (chunks <= bits->chunks && bits->words)
        return IRON_OK;
    /* by doubling: the length of a pipe is not known */
    need = chunks_of(chunks < 2 * bits->chunks ? 2 * bits->chunks : chunks, WORD_BITS);
    need = need ? need : 1;
    words = need <= SIZE_MAX / sizeof *words ? realloc(bits->words, need * sizeof *words) : NULL;
    if (!words)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM,
                          "out of memory for one bit per chunk, %" PRIu64
                          " chunks; give a larger --chunk",
                          chunks);
    for (uint64_t k = have; k < need; k++)
        atomic_init(&words[k], 0);
    bits->words = words;
    bits->chunks = need * WORD_BITS;
    return IRON_OK;
}

static void bits_set(diff_bits *bits, uint64_t chunk) {
    atomic_fetch_or_explicit(&bits->words[chunk / WORD_BITS], UINT64_C(1) << chunk % WORD_BITS,
                             memory_order_relaxed);
}

static bool bits_has(const diff_bits *bits, uint64_t chunk) {
    uint64_t word = atomic_load_explicit(&bits->words[chunk / WORD_BITS], memory_order_relaxed);

    return word >> chunk % WORD_BITS & 1;
}

/* All chunks that hold a position first ... end-1. */
static void bits_set_tokens(diff_bits *bits, uint64_t first, uint64_t end) {
    if (first < end)
        for (uint64_t k = first / bits->chunk_tokens; k <= (end - 1) / bits->chunk_tokens; k++)
            bits_set(bits, k);
}

/* Tokens of one side, and where two runs of tokens in memory differ. */

/* Can a value be stored that is not a token? Then all of the text has to be read. */
static bool can_be_bad(const diff_text *text) {
    return text->dtype == IRON_DTYPE_I32 || text->dtype == IRON_DTYPE_I64;
}

/* `position` is that of the view's first token. */
static iron_status check_view(const iron__tokens_view *view, const char *name, uint64_t position,
                              iron_error *err) {
    size_t bad = iron__view_first_bad(view);

    IRON_FAIL_IF(bad < view->count, err, IRON_E_FORMAT,
                 "%.100s: token at position %" PRIu64 " is %" PRId64
                 "; tokens must be 0 to 4294967295: check --dtype",
                 name, position + bad, iron__view_stored(view, bad));
    return IRON_OK;
}

/* Tokens as stored. */
static iron_status read_stored(const diff_text *text, uint64_t first, void *to, size_t count,
                               iron_error *err) {
    const iron__tokens_view view = {text->dtype, to, count};

    if (count == 0)
        return IRON_OK;
    IRON_TRY(iron__parallel_source_read(text->at, first, to, count, NULL, err));
    return check_view(&view, text->name, first, err);
}

/* Reads `count` tokens from `first` on, which must exist, as 32 bits. Values that are not tokens
 * are errors with their position. */
static iron_status text_read(const diff_text *text, uint64_t first, uint32_t *to, size_t count,
                             iron_error *err) {
    uint64_t stored[IRON_WIDEN_TOKENS]; /* of any width */

    for (size_t done = 0; done < count;) {
        size_t some = count - done < IRON_WIDEN_TOKENS ? count - done : IRON_WIDEN_TOKENS;
        const iron__tokens_view view = {text->dtype, stored, some};
        uint32_t wide[IRON_WIDEN_TOKENS];

        IRON_TRY(read_stored(text, first + done, stored, some, err));
        memcpy(to + done, iron__view_tokens(&view, 0, &some, wide), some * sizeof *to);
        done += some;
    }
    return IRON_OK;
}

/* Where bytes that are known to differ do so first. */
static size_t first_other_byte(const char *a, const char *b, size_t bytes) {
    size_t k = 0;

    while (bytes - k > 256 && memcmp(a + k, b + k, 256) == 0)
        k += 256;
    while (a[k] == b[k])
        k++;
    return k;
}

static size_t compare_bytes(const void *a, const void *b, size_t count, size_t width) {
    if (memcmp(a, b, count * width) == 0)
        return count;
    return first_other_byte(a, b, count * width) / width;
}

/* Index of the first token that differs, or the count, which both views must have in common. Tokens
 * of one width are compared as bytes first: memcmp runs at the cache's speed. Others are widened a
 * few thousand at a time. */
static size_t first_difference(const iron__tokens_view *a, const iron__tokens_view *b) {
    size_t width = iron_dtype_bytes(a->dtype);
    uint32_t wide_a[IRON_WIDEN_TOKENS], wide_b[IRON_WIDEN_TOKENS];

    if (width == iron_dtype_bytes(b->dtype))
        return a->count ? compare_bytes(a->data, b->data, a->count, width) : 0;
    for (size_t done = 0; done < a->count;) {
        size_t some = a->count - done < IRON_WIDEN_TOKENS ? a->count - done : IRON_WIDEN_TOKENS;
        const uint32_t *x = iron__view_tokens(a, done, &some, wide_a);
        const uint32_t *y = iron__view_tokens(b, done, &some, wide_b);
        size_t same = compare_bytes(x, y, some, sizeof *x);

        done += same;
        if (same < some)
            return done;
    }
    return a->count;
}

/* Two texts on all threads.
 *
 * A piece is read window by window into two buffers that stay in the second-level cache, so
 * comparing costs next to nothing beside reading. Windows in chunks that are known to differ are
 * not read at all, once a difference before them is known: two unrelated streams are done after one
 * window per chunk. (Not so for i32 and i64, where every value must be checked.)
 *
 * Pieces run in rounds, between which progress is reported and a search for the first difference
 * ends. Traffic: both texts once; nothing written. */

/* Two windows of 128 KiB leave space in a second-level cache of half a megabyte. */
#define WINDOW_BYTES  ((size_t)128 * 1024)
#define PIECE_WINDOWS 8u
#define ROUND_PIECES  512u

/* Compares `count` tokens of two texts, from these positions on. With one text NULL the other is
 * only read and checked. */
typedef struct text_pair {
    const diff_text *text[2];
    uint64_t from[2];
    uint64_t count;
    diff_bits *bits; /* NULL: only the first difference is wanted; else from[] must be 0 */
} text_pair;

typedef struct windows {
    void *of[2];
} windows;

typedef struct job {
    const text_pair *pair;
    windows *workers; /* one per thread */
    size_t window_tokens;
    uint64_t round_first;   /* the first token of the round */
    _Atomic uint64_t first; /* the first difference so far */
    bool must_read_all;
} job;

static void lower(_Atomic uint64_t *value, uint64_t to) {
    uint64_t now = atomic_load_explicit(value, memory_order_relaxed);

    while (to < now && !atomic_compare_exchange_weak_explicit(value, &now, to, memory_order_relaxed,
                                                              memory_order_relaxed))
        ;
}

/* Can nothing new be learned from these tokens? */
static bool is_known(const job *j, uint64_t at, size_t count) {
    const diff_bits *bits = j->pair->bits;

    if (atomic_load_explicit(&j->first, memory_order_relaxed) > at)
        return false;
    if (bits)
        for (uint64_t k = at / bits->chunk_tokens; k <= (at + count - 1) / bits->chunk_tokens; k++)
            if (!bits_has(bits, k))
                return false;
    return true;
}

/* Compares a window, cut at the borders of chunks. */
static void compare_window(job *j, uint64_t at, iron__tokens_view a, iron__tokens_view b) {
    diff_bits *bits = j->pair->bits;

    while (a.count > 0) {
        uint64_t to_border = bits ? bits->chunk_tokens - at % bits->chunk_tokens : a.count;
        size_t some = to_border < a.count ? (size_t)to_border : a.count;
        iron__tokens_view x = {a.dtype, a.data, some}, y = {b.dtype, b.data, some};
        size_t same = is_known(j, at, some) ? some : first_difference(&x, &y);

        if (same < some) {
            if (bits)
                bits_set(bits, at / bits->chunk_tokens);
            lower(&j->first, at + same);
        }
        a = iron__view_rest(&a, some);
        b = iron__view_rest(&b, some);
        at += some;
    }
}

static iron_status compare_piece(void *context, uint32_t worker, uint64_t index,
                                 const atomic_bool *stop, iron_error *err) {
    job *j = context;
    const text_pair *pair = j->pair;
    const windows *own = &j->workers[worker];
    uint64_t at = j->round_first + index * PIECE_WINDOWS * j->window_tokens;

    (void)stop;
    for (uint32_t k = 0; k < PIECE_WINDOWS && at < pair->count; k++) {
        uint64_t left = pair->count - at;
        size_t count = left < j->window_tokens ? (size_t)left : j->window_tokens;
        iron__tokens_view views[2] = {{0}};

        if (j->must_read_all || !is_known(j, at, count)) {
            for (int side = 0; side < 2; side++) {
                const diff_text *text = pair->text[side];

                if (!text)
                    continue;
                IRON_TRY(read_stored(text, pair->from[side] + at, own->of[side], count, err));
                views[side] = (iron__tokens_view){text->dtype, own->of[side], count};
            }
            if (pair->text[0] && pair->text[1])
                compare_window(j, at, views[0], views[1]);
        }
        at += count;
    }
    return IRON_OK;
}

/* IRON_E_CANCELLED if the caller cancels. */
static iron_status report_progress(const diff_run *run, uint64_t done, uint64_t total,
                                   iron_error *err) {
    IRON_FAIL_IF(run->progress && run->progress(run->context, done, total), err, IRON_E_CANCELLED,
                 "cancelled after %" PRIu64 " tokens", done);
    return IRON_OK;
}

static iron_status run_rounds(diff_run *run, job *j, iron_error *err) {
    uint64_t piece_tokens = (uint64_t)PIECE_WINDOWS * j->window_tokens, count = j->pair->count;

    while (j->round_first < count) {
        iron__ordered_run round = {.count = chunks_of(count - j->round_first, piece_tokens),
                                   .piece = compare_piece,
                                   .context = j};

        round.count = round.count < ROUND_PIECES ? round.count : ROUND_PIECES;
        IRON_TRY(iron__thread_pool_run_ordered(run->pool, &round, err));
        j->round_first += round.count * piece_tokens;
        IRON_TRY(report_progress(run, j->round_first < count ? j->round_first : count, count, err));
        if (!j->pair->bits && !j->must_read_all && atomic_load(&j->first) < count)
            break;
    }
    return IRON_OK;
}

static size_t widest(const text_pair *pair) {
    size_t width = 1;

    for (int side = 0; side < 2; side++)
        if (pair->text[side] && iron_dtype_bytes(pair->text[side]->dtype) > width)
            width = iron_dtype_bytes(pair->text[side]->dtype);
    return width;
}

/* *first: how many tokens agree before the first that differs; count if all do. */
static iron_status compare_texts(diff_run *run, const text_pair *pair, uint64_t *first,
                                 iron_error *err) {
    const iron_allocator *memory = iron__allocator_default();
    uint32_t threads = iron__thread_pool_threads(run->pool);
    job j = {.pair = pair, .window_tokens = WINDOW_BYTES / widest(pair)};
    iron_status status = IRON_OK;

    atomic_init(&j.first, pair->count);
    for (int side = 0; side < 2 && pair->bits; side++)
        j.must_read_all |= pair->text[side] && can_be_bad(pair->text[side]);
    j.workers = iron__allocate(memory, threads, sizeof *j.workers, "buffers", err);
    if (!j.workers)
        status = IRON_E_NOMEM;
    for (uint32_t k = 0; k < 2 * threads && status == IRON_OK; k++) {
        void *window = iron__allocate(memory, 1, WINDOW_BYTES, "a window of tokens", err);

        j.workers[k / 2].of[k % 2] = window;
        status = window ? IRON_OK : IRON_E_NOMEM;
    }
    if (status == IRON_OK)
        status = run_rounds(run, &j, err);
    for (uint32_t k = 0; k < 2 * threads && j.workers; k++)
        iron__release(memory, j.workers[k / 2].of[k % 2]);
    iron__release(memory, j.workers);
    *first = atomic_load(&j.first);
    return status;
}

/* Sets position and values of the first difference, from the texts of both. */
static iron_status set_first(diff_run *run, uint64_t first, iron_error *err) {
    iron_diff_report *r = &run->diff->report;

    r->first = first;
    r->first_end = first + 1;
    for (int side = 0; side < 2; side++) {
        r->has_value[side] = first < r->tokens[side];
        if (r->has_value[side])
            IRON_TRY(text_read(&run->text[side], first, &r->value[side], 1, err));
    }
    return IRON_OK;
}

/* What the longer one has past the other's end must be tokens, too. */
static iron_status check_rest(diff_run *run, uint64_t common, iron_error *err) {
    for (int side = 0; side < 2; side++) {
        const diff_text *text = &run->text[side];
        const text_pair rest = {{text, NULL}, {common, 0}, text->tokens - common, NULL};
        uint64_t first;

        if (text->tokens > common && can_be_bad(text))
            IRON_TRY(compare_texts(run, &rest, &first, err));
    }
    return IRON_OK;
}

static iron_status compare_tokens(diff_run *run, iron_error *err) {
    iron_diff *d = run->diff;
    text_pair pair = {{&run->text[0], &run->text[1]}, {0, 0}, 0, &d->bits};
    uint64_t first, longer;

    for (int side = 0; side < 2; side++)
        d->report.tokens[side] = run->text[side].tokens;
    pair.count = common_tokens(&d->report);
    longer = longer_tokens(&d->report);
    IRON_TRY(bits_reserve(&d->bits, longer, err));
    IRON_TRY(compare_texts(run, &pair, &first, err));
    IRON_TRY(check_rest(run, pair.count, err));
    bits_set_tokens(&d->bits, pair.count, longer);
    return first < longer ? set_first(run, first, err) : IRON_OK;
}

/* Two streams as they come. */

#define PIECE_TOKENS ((size_t)65536)

typedef struct stream {
    iron_source *source;
    const char *name;
    void *data;
    iron__tokens_view view; /* what was read last */
} stream;

static iron_status stream_open(stream *p, const diff_run *run, int side, iron_error *err) {
    p->source = run->source[side];
    p->name = side_name(run, side);
    p->data = iron__allocate(iron__allocator_default(), PIECE_TOKENS, sizeof(uint64_t),
                             "a piece of a stream", err);
    return p->data ? IRON_OK : IRON_E_NOMEM;
}

static iron_status stream_read(stream *p, uint64_t position, iron_error *err) {
    p->view = (iron__tokens_view){iron_source_dtype(p->source), p->data, 0};
    IRON_TRY(iron_source_read(p->source, p->data, PIECE_TOKENS, &p->view.count, err));
    return check_view(&p->view, p->name, position, err);
}

/* Reads a stream that continues alone to its end: its tokens must be counted. */
static iron_status count_rest(diff_run *run, stream *p, uint64_t *tokens, iron_error *err) {
    do {
        IRON_TRY(stream_read(p, *tokens, err));
        *tokens += p->view.count;
        IRON_TRY(report_progress(run, *tokens, IRON_COUNT_UNKNOWN, err));
    } while (p->view.count > 0);
    return IRON_OK;
}

static void note_first(iron_diff_report *r, const stream p[2], uint64_t position, size_t index) {
    if (r->first != IRON_COUNT_UNKNOWN)
        return;
    r->first = position + index;
    r->first_end = r->first + 1;
    for (int side = 0; side < 2; side++) {
        r->has_value[side] = index < p[side].view.count;
        if (r->has_value[side])
            r->value[side] = (uint32_t)iron__view_stored(&p[side].view, index);
    }
}

/* The tokens that both have in this piece, chunk by chunk. */
static void compare_common(diff_run *run, const stream p[2], uint64_t position, size_t common) {
    uint64_t chunk_tokens = run->diff->bits.chunk_tokens;

    for (size_t done = 0; done < common;) {
        uint64_t to_border = chunk_tokens - (position + done) % chunk_tokens;
        size_t some = to_border < common - done ? (size_t)to_border : common - done, same;
        iron__tokens_view a = iron__view_rest(&p[0].view, done);
        iron__tokens_view b = iron__view_rest(&p[1].view, done);

        a.count = b.count = some;
        same = first_difference(&a, &b);
        if (same < some) {
            bits_set(&run->diff->bits, (position + done) / chunk_tokens);
            note_first(&run->diff->report, p, position, done + same);
        }
        done += some;
    }
}

static iron_status compare_streams(diff_run *run, stream p[2], iron_error *err) {
    iron_diff *d = run->diff;
    uint64_t position = 0;

    for (;;) {
        size_t common;

        IRON_TRY(stream_read(&p[0], position, err));
        IRON_TRY(stream_read(&p[1], position, err));
        common = p[0].view.count < p[1].view.count ? p[0].view.count : p[1].view.count;
        IRON_TRY(bits_reserve(&d->bits, position + common, err));
        compare_common(run, p, position, common);
        if (p[0].view.count != p[1].view.count || common == 0) { /* reads are short at ends only */
            if (p[0].view.count != p[1].view.count)
                note_first(&d->report, p, position, common);
            break;
        }
        position += common;
        IRON_TRY(report_progress(run, position, IRON_COUNT_UNKNOWN, err));
    }
    for (int side = 0; side < 2; side++) {
        d->report.tokens[side] = position + p[side].view.count;
        if (p[side].view.count == PIECE_TOKENS)
            IRON_TRY(count_rest(run, &p[side], &d->report.tokens[side], err));
    }
    IRON_TRY(bits_reserve(&d->bits, longer_tokens(&d->report), err));
    bits_set_tokens(&d->bits, common_tokens(&d->report), longer_tokens(&d->report));
    return IRON_OK;
}

static iron_status compare_in_order(diff_run *run, iron_error *err) {
    stream p[2] = {{0}};
    iron_status status = stream_open(&p[0], run, 0, err);

    if (status == IRON_OK)
        status = stream_open(&p[1], run, 1, err);
    if (status == IRON_OK)
        status = compare_streams(run, p, err);
    for (int side = 0; side < 2; side++)
        iron__release(iron__allocator_default(), p[side].data);
    return status;
}

/* Two manifests.
 *
 * The words tell which chunks differ. Where in the first of them, and with which values, only the
 * tokens can tell: that one chunk is read on both sides, if possible. A file may have changed since
 * its manifest was made; so the chunk's words are computed again from what was read, and a file
 * that contradicts its manifest is not used. */

#define BLOCK_TOKENS ((size_t)16384)

/* Have two chunks, which must exist, the same words and number of tokens? */
static bool chunks_equal(const iron_manifest *a, uint64_t i, const iron_manifest *b, uint64_t j) {
    const iron__chunk *x = &a->chunks[i], *y = &b->chunks[j];

    return iron__manifest_chunk_tokens(a, (size_t)i) == iron__manifest_chunk_tokens(b, (size_t)j) &&
           x->t == y->t && x->a == y->a && x->b == y->b;
}

static uint64_t tokens_of_chunk(const iron_manifest *m, uint64_t k) {
    return k < m->chunk_count ? iron__manifest_chunk_tokens(m, (size_t)k) : 0;
}

/* Are these the words of the chunk? The count is not compared. */
static bool chunk_has_words(const iron__chunk *c, const iron__seal_words *words) {
    return c->t == words->t && c->a == words->a && c->b == words->b;
}

/* Adds tokens at positions of a stream of their own; the last quad is padded with zeros. */
static void add_words(iron__seal_words *words, uint32_t *tokens, size_t count, uint64_t first) {
    size_t padded = (count + 3) / 4 * 4;
    const iron__quads_run quads = {tokens, padded / 4, first / 4, 1};

    memset(tokens + count, 0, (padded - count) * sizeof *tokens);
    iron__seal_variant_find("champion")->take(&quads, words, NULL);
}

/* The words of `count` tokens from `first` on as a stream of their own. */
static iron_status words_at(const diff_text *text, uint64_t first, uint64_t count,
                            iron__seal_words *words, iron_error *err) {
    uint32_t *block = iron__allocate(iron__allocator_default(), BLOCK_TOKENS, sizeof *block,
                                     "a block of tokens", err);
    iron_status status = block ? IRON_OK : IRON_E_NOMEM;

    *words = (iron__seal_words){0};
    for (uint64_t done = 0; done < count && status == IRON_OK;) {
        size_t some = count - done < BLOCK_TOKENS ? (size_t)(count - done) : BLOCK_TOKENS;

        status = text_read(text, first + done, block, some, err);
        if (status == IRON_OK)
            add_words(words, block, some, done);
        done += some;
    }
    iron__release(iron__allocator_default(), block);
    words->count = count;
    return status;
}

/* Drops the side's tokens if they do not match the chunk's words. Words that were just scanned need
 * no check. */
static iron_status check_against_manifest(diff_run *run, int side, uint64_t chunk,
                                          iron_error *err) {
    const iron_manifest *m = run->manifest[side];
    const iron__chunk *c = &m->chunks[chunk];
    iron__seal_words words;

    if (!run->text[side].at || m == run->made[side] || chunk >= m->chunk_count)
        return IRON_OK;
    IRON_TRY(words_at(&run->text[side], chunk * m->chunk_tokens, tokens_of_chunk(m, chunk), &words,
                      err));
    if (!chunk_has_words(c, &words))
        drop_text(run, side);
    return IRON_OK;
}

/* The first difference is in this chunk, as far as words can tell. */
static iron_status find_in_chunk(diff_run *run, uint64_t chunk, iron_error *err) {
    iron_diff_report *r = &run->diff->report;
    uint64_t begin = chunk * run->diff->bits.chunk_tokens, common = common_tokens(r);
    uint64_t end = begin + run->diff->bits.chunk_tokens, same = 0;
    text_pair pair = {{&run->text[0], &run->text[1]}, {begin, begin}, 0, NULL};

    end = end < longer_tokens(r) ? end : longer_tokens(r);
    r->first = begin;
    r->first_end = end;
    for (int side = 0; side < 2; side++)
        IRON_TRY(check_against_manifest(run, side, chunk, err));
    if (begin >= common) { /* one has ended exactly here */
        r->first_end = begin + 1;
        for (int side = 0; side < 2; side++) {
            r->has_value[side] = run->text[side].at && begin < r->tokens[side];
            if (r->has_value[side])
                IRON_TRY(text_read(&run->text[side], begin, &r->value[side], 1, err));
        }
        return IRON_OK;
    }
    if (!has_texts(run))
        return IRON_OK;
    pair.count = (common < end ? common : end) - begin;
    IRON_TRY(compare_texts(run, &pair, &same, err));
    if (same == pair.count && begin + same < common) /* changed while being read */
        return IRON_OK;
    return set_first(run, begin + same, err);
}

/* The chunks say that the streams are equal, the seals that they are not, or the other way round: a
 * manifest was changed. One that was just scanned was not. */
static iron_status refuse_damaged(const diff_run *run, bool are_same, iron_error *err) {
    char seals[2][IRON_SEAL_TEXT];
    int damaged = run->manifest[0] == run->made[0] ? 1 : 0;

    for (int side = 0; side < 2; side++)
        iron__seal_text(run->manifest[side]->words, seals[side]);
    if (run->manifest[0] == run->made[0] || run->manifest[1] == run->made[1])
        IRON_FAIL(err, IRON_E_FORMAT,
                  "%.100s is a damaged manifest: its chunks and its seal %.32s do not belong "
                  "together",
                  side_name(run, damaged), seals[damaged]);
    IRON_FAIL(err, IRON_E_FORMAT,
              "%.40s or %.40s is a damaged manifest: their chunks are %s, their seals %.32s and "
              "%.32s %s; use iron check to find out which",
              side_name(run, 0), side_name(run, 1), are_same ? "equal" : "not", seals[0], seals[1],
              are_same ? "are not" : "are");
}

static iron_status compare_words(diff_run *run, iron_error *err) {
    const iron_manifest *a = run->manifest[0], *b = run->manifest[1];
    iron_diff *d = run->diff;
    uint64_t most, first = UINT64_MAX;

    d->report.tokens[0] = a->tokens;
    d->report.tokens[1] = b->tokens;
    most = a->chunk_count > b->chunk_count ? a->chunk_count : b->chunk_count;
    IRON_TRY(bits_reserve(&d->bits, longer_tokens(&d->report), err));
    for (uint64_t k = 0; k < most; k++) {
        if (k < a->chunk_count && k < b->chunk_count && chunks_equal(a, k, b, k))
            continue;
        bits_set(&d->bits, k);
        first = k < first ? k : first;
    }
    if ((first >= most) != iron__words_equal(&a->words, &b->words))
        return refuse_damaged(run, first >= most, err);
    return first < most ? find_in_chunk(run, first, err) : IRON_OK;
}

/* Fills the report's bits, tokens, first, first_end and, where it can, the values. */
static iron_status compare(diff_run *run, iron_error *err) {
    iron_diff_report *r = &run->diff->report;

    r->first = IRON_COUNT_UNKNOWN;
    r->first_end = IRON_COUNT_UNKNOWN;
    if (run->has_same_seal) {
        r->tokens[0] = r->tokens[1] = run->side[0]->manifest->tokens;
        return bits_reserve(&run->diff->bits, r->tokens[0], err);
    }
    if (run->manifest[0] && run->manifest[1])
        return compare_words(run, err);
    return has_texts(run) ? compare_tokens(run, err) : compare_in_order(run, err);
}

/* Has content moved by some tokens?
 *
 * A suggestion (from the lengths, a probe, a mark) becomes a finding only when the tokens have been
 * compared: from the earliest place where the shift could begin to the end, on all threads. So
 * everything that is reported of a shift was seen, and it is known how far.
 *
 * A probe is a run of 256 tokens of one text that does not repeat itself, searched for in the
 * other. If tokens were inserted, the first text's next tokens are further on in the second; if
 * some were deleted, the other way round; so probes are taken from both. If something else has
 * changed near the difference, a probe further on is past it: the distances grow by a factor of
 * four. A rolling hash finds a probe in one pass over the other text, even where that text repeats
 * itself. */

#define PROBE_TOKENS 256u
#define HASH_FACTOR  UINT64_C(0x9E3779B97F4A7C15)
#define HITS_MAX     16u
/* Enough agreement: probes further on are not tried. */
#define ENOUGH_TOKENS 4096u

/* How far probes are searched for: 16 MiB per side, twice what a chunk of the usual size needs; and
 * for changes in place. */
#define FAR_TOKENS  ((uint64_t)1 << 22)
#define NEAR_TOKENS ((uint64_t)1 << 13)
/* Changes in place that are passed over in the search for a shift. */
#define CHANGES_MAX 256u

#define BACK_TOKENS ((size_t)16384)

/* Two runs of tokens that begin with a difference. */
typedef struct token_runs {
    const uint32_t *tokens[2];
    size_t count[2];
} token_runs;

/* Does the run repeat itself, so that finding it elsewhere means little? */
static bool is_periodic(const uint32_t *tokens, size_t count) {
    uint16_t border[PROBE_TOKENS] = {0}; /* longest proper border of each beginning */
    size_t length = 0;

    for (size_t k = 1; k < count; k++) {
        while (length > 0 && tokens[k] != tokens[length])
            length = border[length - 1];
        length += tokens[k] == tokens[length];
        border[k] = (uint16_t)length;
    }
    return 2 * (count - length) <= count;
}

static bool are_equal(const uint32_t *a, const uint32_t *b, size_t count) {
    return memcmp(a, b, count * sizeof *a) == 0;
}

/* Do both agree again at the same place, after a change of a few tokens in place? */
static bool find_in_place(const token_runs *texts, size_t *at) {
    static const size_t offsets[] = {1, 4, 16, 64, 256, 1024, 4096};
    size_t count = texts->count[0] < texts->count[1] ? texts->count[0] : texts->count[1];

    for (size_t k = 0; k < sizeof offsets / sizeof offsets[0]; k++) {
        *at = offsets[k];
        if (*at + PROBE_TOKENS > count)
            return false;
        if (are_equal(texts->tokens[0] + *at, texts->tokens[1] + *at, PROBE_TOKENS) &&
            !is_periodic(texts->tokens[0] + *at, PROBE_TOKENS))
            return true;
    }
    return false;
}

static uint64_t hash_of(const uint32_t *tokens) {
    uint64_t hash = 0;

    for (size_t k = 0; k < PROBE_TOKENS; k++)
        hash = hash * HASH_FACTOR + tokens[k];
    return hash;
}

/* The weight of the token that leaves the window. */
static uint64_t weight_of_first(void) {
    uint64_t weight = 1;

    for (size_t k = 0; k < PROBE_TOKENS; k++)
        weight *= HASH_FACTOR;
    return weight;
}

static size_t find_probe(const uint32_t *probe, const uint32_t *text, size_t count,
                         size_t hits[HITS_MAX]) {
    const uint64_t wanted = hash_of(probe), weight = weight_of_first();
    size_t found = 0;
    uint64_t hash;

    if (count < PROBE_TOKENS)
        return 0;
    hash = hash_of(text);
    for (size_t k = 0; found < HITS_MAX; k++) {
        if (hash == wanted && are_equal(probe, text + k, PROBE_TOKENS))
            hits[found++] = k;
        if (k + PROBE_TOKENS == count)
            break;
        hash = hash * HASH_FACTOR + text[k + PROBE_TOKENS] - text[k] * weight;
    }
    return found;
}

static size_t agreement(const token_runs *texts, const size_t at[2]) {
    size_t left[2] = {texts->count[0] - at[0], texts->count[1] - at[1]};
    size_t most = left[0] < left[1] ? left[0] : left[1], same = 0;

    while (same < most && texts->tokens[0][at[0] + same] == texts->tokens[1][at[1] + same])
        same++;
    return same;
}

/* The best place found so far. */
typedef struct best {
    size_t at[2];
    size_t agrees;
} best;

/* Searches for a probe of text `from` in the other. */
static void try_probe(const token_runs *texts, int from, size_t offset, best *b) {
    size_t hits[HITS_MAX], count;
    const uint32_t *probe = texts->tokens[from] + offset;

    if (offset + PROBE_TOKENS > texts->count[from] || is_periodic(probe, PROBE_TOKENS))
        return;
    count = find_probe(probe, texts->tokens[!from], texts->count[!from], hits);
    for (size_t k = 0; k < count; k++) {
        size_t at[2], agrees;

        at[from] = offset;
        at[!from] = hits[k];
        agrees = agreement(texts, at);
        if (agrees > b->agrees)
            *b = (best){{at[0], at[1]}, agrees};
    }
}

/* Finds places in both from which at least PROBE_TOKENS agree: of those found, where most do. */
static bool find_moved_text(const token_runs *texts, size_t at[2]) {
    best b = {{0, 0}, 0};

    for (size_t offset = 0; offset < texts->count[0] || offset < texts->count[1];
         offset = offset ? 4 * offset : 64) {
        try_probe(texts, 0, offset, &b);
        try_probe(texts, 1, offset, &b);
        if (b.agrees >= ENOUGH_TOKENS)
            break;
    }
    at[0] = b.at[0];
    at[1] = b.at[1];
    return b.agrees > 0;
}

/* Shifts. */

/* Up to `apart` (except for small changes in place) both texts are equal; from at[0] of the first
 * and at[1] of the second on, `agrees` tokens are equal again. */
typedef struct text_shift {
    bool is_found;
    uint64_t apart;
    uint64_t at[2];
    uint64_t agrees;
    bool to_end;      /* of at least one of them */
    bool has_changes; /* in place, before `apart` */
} text_shift;

static uint64_t smaller(uint64_t x, uint64_t y) { return x < y ? x : y; }

/* Tokens that both have from these places on. */
static uint64_t left_at(const diff_run *run, const uint64_t at[2]) {
    return smaller(run->text[0].tokens - at[0], run->text[1].tokens - at[1]);
}

static iron_status agree_from(diff_run *run, const uint64_t at[2], uint64_t *agrees,
                              iron_error *err) {
    const text_pair pair = {{&run->text[0], &run->text[1]}, {at[0], at[1]}, left_at(run, at), NULL};

    return compare_texts(run, &pair, agrees, err);
}

/* How many tokens directly before the anchor agree, of at most `most`. */
static iron_status agree_before(diff_run *run, const uint64_t anchor[2], uint64_t most,
                                uint32_t *block[2], uint64_t *back, iron_error *err) {
    *back = 0;
    while (*back < most) {
        size_t some = (size_t)smaller(most - *back, BACK_TOKENS), same = 0;

        for (int side = 0; side < 2; side++)
            IRON_TRY(
                text_read(&run->text[side], anchor[side] - *back - some, block[side], some, err));
        while (same < some && block[0][some - 1 - same] == block[1][some - 1 - same])
            same++;
        *back += same;
        if (same < some)
            break;
    }
    return IRON_OK;
}

static iron_status make_blocks(size_t count, uint32_t *block[2], iron_error *err) {
    const iron_allocator *memory = iron__allocator_default();

    block[0] = iron__allocate(memory, 2 * count, sizeof *block[0], "tokens to search", err);
    block[1] = block[0] ? block[0] + count : NULL;
    return block[0] ? IRON_OK : IRON_E_NOMEM;
}

/* The agreement does not go back to where it could begin at the earliest: how far does it? */
static iron_status find_shift_start(diff_run *run, const uint64_t anchor[2], uint64_t most,
                                    text_shift *shift, iron_error *err) {
    uint32_t *block[2];
    uint64_t back = 0;
    iron_status status = make_blocks(BACK_TOKENS, block, err);

    if (status == IRON_OK)
        status = agree_before(run, anchor, most, block, &back, err);
    iron__release(iron__allocator_default(), block[0]);
    IRON_TRY(status);
    for (int side = 0; side < 2; side++)
        shift->at[side] = anchor[side] - back;
    return agree_from(run, shift->at, &shift->agrees, err);
}

/* Verifies a suggestion: the texts agree at these places. shift->apart is set. */
static iron_status verify_shift(diff_run *run, const uint64_t anchor[2], text_shift *shift,
                                iron_error *err) {
    uint64_t earliest = smaller(anchor[0], anchor[1]) - shift->apart;

    for (int side = 0; side < 2; side++)
        shift->at[side] = anchor[side] - earliest;
    IRON_TRY(agree_from(run, shift->at, &shift->agrees, err));
    if (shift->agrees < earliest)
        IRON_TRY(find_shift_start(run, anchor, earliest, shift, err));
    shift->is_found = true;
    shift->to_end = shift->agrees == left_at(run, shift->at);
    return IRON_OK;
}

/* Tries what the lengths suggest: that all tokens that one has more are at the first difference. */
static iron_status find_by_lengths(diff_run *run, text_shift *shift, iron_error *err) {
    uint64_t *tokens = run->diff->report.tokens;

    shift->is_found = false;
    if (tokens[0] == tokens[1])
        return IRON_OK;
    for (int side = 0; side < 2; side++)
        shift->at[side] =
            shift->apart + (tokens[side] > tokens[!side] ? tokens[side] - tokens[!side] : 0);
    IRON_TRY(agree_from(run, shift->at, &shift->agrees, err));
    shift->is_found = shift->to_end = shift->agrees == left_at(run, shift->at);
    return IRON_OK;
}

/* Reads the tokens from where they are apart on, at most so many of each. */
static iron_status load(diff_run *run, uint64_t apart, uint64_t most, uint32_t *block[2],
                        token_runs *texts, iron_error *err) {
    for (int side = 0; side < 2; side++) {
        size_t count = (size_t)smaller(run->text[side].tokens - apart, most);

        texts->tokens[side] = block[side];
        texts->count[side] = count;
        IRON_TRY(text_read(&run->text[side], apart, block[side], count, err));
    }
    return IRON_OK;
}

/* One search, from where they are apart: *at is where they agree again, in the texts loaded. A
 * change of a few tokens in place is searched for first, since that takes few tokens. */
static iron_status search_once(diff_run *run, uint64_t apart, uint32_t *block[2], size_t at[2],
                               bool *is_found, iron_error *err) {
    token_runs texts;

    IRON_TRY(load(run, apart, NEAR_TOKENS, block, &texts, err));
    *is_found = find_in_place(&texts, &at[0]);
    at[1] = at[0];
    if (*is_found)
        return IRON_OK;
    IRON_TRY(load(run, apart, FAR_TOKENS, block, &texts, err));
    *is_found = find_moved_text(&texts, at);
    return IRON_OK;
}

/* From one change in place to the next, until something has moved. */
static iron_status search(diff_run *run, uint32_t *block[2], text_shift *shift, iron_error *err) {
    uint64_t common = common_tokens(&run->diff->report);

    for (uint32_t k = 0; k < CHANGES_MAX && shift->apart < common; k++) {
        size_t at[2] = {0, 0};
        uint64_t anchor[2], agrees;
        bool is_found;

        IRON_TRY(search_once(run, shift->apart, block, at, &is_found, err));
        if (!is_found)
            return IRON_OK;
        for (int side = 0; side < 2; side++)
            anchor[side] = shift->apart + at[side];
        if (at[0] != at[1])
            return verify_shift(run, anchor, shift, err);
        IRON_TRY(agree_from(run, anchor, &agrees, err));
        shift->has_changes = true;
        shift->apart = anchor[0] + agrees;
    }
    return IRON_OK;
}

/* Searches for a shift near the first difference, up to some million tokens away. */
static iron_status find_shift(diff_run *run, text_shift *shift, iron_error *err) {
    uint64_t most = smaller(FAR_TOKENS, longer_tokens(&run->diff->report));
    uint32_t *block[2];
    iron_status status;

    *shift = (text_shift){.apart = run->diff->report.first};
    IRON_TRY(find_by_lengths(run, shift, err));
    if (shift->is_found)
        return IRON_OK;
    status = make_blocks((size_t)most, block, err);
    if (status == IRON_OK)
        status = search(run, block, shift, err);
    iron__release(iron__allocator_default(), block[0]);
    return status;
}

/* A shift read off the marks of two manifests.
 *
 * A mark is the same wherever its text is. Marks that occur once in each manifest are paired;
 * the difference of a pair's positions is a vote for a shift. One vote may be a coincidence (a
 * sentence that both have in different places), several in a row for one shift are not: a shift is
 * believed if among the next eight pairs at least half, and at least two, agree. A single pair is
 * believed where the streams' lengths say the same. And there must be as many votes as there are
 * chunks between the last place where both agreed and the first vote: two different texts that end
 * alike have not been shifted. */

#define NEXT_PAIRS 8u

typedef struct marks_shift {
    bool is_found;
    uint64_t at[2]; /* the first mark that has moved: where it is in each */
    uint64_t apart; /* the last mark before it that has not, or the first chunk's begin */
    bool has_more;  /* marks further on have moved by a different amount */
    uint64_t votes; /* marks that have moved by the same amount */
} marks_shift;

typedef struct placed_mark {
    uint64_t mark, position;
} placed_mark;

typedef struct pair {
    uint64_t at[2];
} pair;

typedef struct pairing {
    placed_mark *marks[2];
    size_t count[2];
    pair *pairs;
    size_t pair_count;
} pairing;

static int by_mark(const void *x, const void *y) {
    const placed_mark *a = x, *b = y;

    return (a->mark > b->mark) - (a->mark < b->mark);
}

static int by_position(const void *x, const void *y) {
    const pair *a = x, *b = y;

    return (a->at[0] > b->at[0]) - (a->at[0] < b->at[0]);
}

static void drop_repeated(placed_mark *marks, size_t *count) {
    size_t count_left = 0;

    for (size_t k = 0; k < *count;) {
        size_t next = k + 1;

        while (next < *count && marks[next].mark == marks[k].mark)
            next++;
        if (next == k + 1)
            marks[count_left++] = marks[k];
        k = next;
    }
    *count = count_left;
}

/* The manifest's marks from a chunk on that occur once, sorted. */
static iron_status list_marks(const iron_manifest *m, uint64_t chunk, placed_mark **marks,
                              size_t *count, iron_error *err) {
    *count = 0;
    *marks = calloc(m->chunk_count + 1, sizeof **marks);
    if (!*marks)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for %zu marks", m->chunk_count);
    for (uint64_t k = chunk; k < m->chunk_count; k++)
        if (m->chunks[k].mark != IRON_MARK_NONE)
            (*marks)[(*count)++] =
                (placed_mark){m->chunks[k].mark, k * m->chunk_tokens + m->chunks[k].mark_at};
    qsort(*marks, *count, sizeof **marks, by_mark);
    drop_repeated(*marks, count);
    return IRON_OK;
}

static iron_status pair_up(pairing *p, iron_error *err) {
    size_t i = 0, j = 0;

    p->pairs = calloc(p->count[0] + 1, sizeof *p->pairs);
    if (!p->pairs)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for %zu marks", p->count[0]);
    while (i < p->count[0] && j < p->count[1]) {
        placed_mark x = p->marks[0][i], y = p->marks[1][j];

        if (x.mark == y.mark)
            p->pairs[p->pair_count++] = (pair){{x.position, y.position}};
        i += x.mark <= y.mark;
        j += y.mark <= x.mark;
    }
    qsort(p->pairs, p->pair_count, sizeof *p->pairs, by_position);
    return IRON_OK;
}

/* Differences modulo 2^64 compare as well as signed ones. */
static uint64_t moved_by(const pair *p) { return p->at[1] - p->at[0]; }

/* Do the pairs from k on confirm pair k? */
static bool is_believed(const pairing *p, size_t k, uint64_t length_says) {
    size_t votes = 0, seen = 0;

    for (; seen < NEXT_PAIRS && k + seen < p->pair_count; seen++)
        votes += moved_by(&p->pairs[k + seen]) == moved_by(&p->pairs[k]);
    return 2 * votes >= seen && (votes >= 2 || moved_by(&p->pairs[k]) == length_says);
}

/* `apart`: up to there nothing has moved. */
static void vote(const pairing *p, uint64_t length_says, uint64_t apart, marks_shift *shift) {
    uint64_t moved = 0;

    for (size_t k = 0; k < p->pair_count; k++) {
        uint64_t says = moved_by(&p->pairs[k]);

        if (!shift->is_found && says == 0)
            apart = p->pairs[k].at[0];
        if (shift->is_found && says == moved)
            shift->votes++;
        if (says == moved || !is_believed(p, k, length_says))
            continue;
        if (shift->is_found) {
            shift->has_more = true;
        } else {
            shift->is_found = true;
            shift->votes = 1;
            shift->apart = apart;
            shift->at[0] = p->pairs[k].at[0];
            shift->at[1] = p->pairs[k].at[1];
            moved = says;
        }
    }
}

/* Chunks between where they part and the first vote, not counting what was inserted. */
static uint64_t chunks_between(const marks_shift *shift, uint64_t chunk_tokens) {
    uint64_t at = shift->at[0] < shift->at[1] ? shift->at[0] : shift->at[1];

    return at > shift->apart ? (at - shift->apart) / chunk_tokens : 0;
}

/* Searches chunks from `chunk` on. */
static iron_status find_marks_shift(const iron_manifest *a, const iron_manifest *b, uint64_t chunk,
                                    marks_shift *shift, iron_error *err) {
    pairing p = {0};
    iron_status status = list_marks(a, chunk, &p.marks[0], &p.count[0], err);

    *shift = (marks_shift){0};
    if (status == IRON_OK)
        status = list_marks(b, chunk, &p.marks[1], &p.count[1], err);
    if (status == IRON_OK)
        status = pair_up(&p, err);
    if (status == IRON_OK)
        vote(&p, b->tokens - a->tokens, chunk * a->chunk_tokens, shift);
    if (shift->is_found && shift->votes < chunks_between(shift, a->chunk_tokens))
        shift->is_found = false;
    free(p.marks[0]);
    free(p.marks[1]);
    free(p.pairs);
    return status;
}

/* Could the beginning of b's chunk be all of a's same chunk, which is shorter? */
static bool can_be_continued(const iron_manifest *a, const iron_manifest *b, uint64_t chunk) {
    const iron__chunk *x = &a->chunks[chunk], *y = &b->chunks[chunk];
    uint64_t tokens = iron__manifest_chunk_tokens(a, (size_t)chunk);

    if (y->mark == x->mark)
        return x->mark == IRON_MARK_NONE || y->mark_at == x->mark_at;
    /* b's smallest window is not in a: then it reaches past a's end */
    return y->mark < x->mark && y->mark_at + IRON_MARK_TOKENS > tokens;
}

/* Chunks of two manifests compared as multisets, whatever their order. Both are sorted by their
 * words and walked side by side, one group of equal chunks after another: how often does each
 * have it, and where? */

typedef struct chunk_moves {
    uint64_t elsewhere; /* chunks of the first that are not in their place, but in another */
    uint64_t missing;   /* chunks of the first that the second lacks, counted with repetition */
    uint64_t excess;    /* chunks of the second beyond what the first has */
    uint64_t foreign;   /* of those, chunks that are nowhere in the first */
    uint64_t from, to;  /* the first example: chunk `from` of the first is at `to` in the second;
                           UINT64_MAX: there is none */
} chunk_moves;

typedef struct placed_chunk {
    uint64_t tokens, t, a, b, index;
} placed_chunk;

static int by_words(const void *x, const void *y) {
    const placed_chunk *p = x, *q = y;

    if (p->tokens != q->tokens)
        return p->tokens < q->tokens ? -1 : 1;
    if (p->t != q->t)
        return p->t < q->t ? -1 : 1;
    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    return (p->b > q->b) - (p->b < q->b);
}

static int by_words_and_place(const void *x, const void *y) {
    const placed_chunk *p = x, *q = y;
    int order = by_words(x, y);

    return order ? order : (p->index > q->index) - (p->index < q->index);
}

static placed_chunk *sorted_chunks(const iron_manifest *m) {
    placed_chunk *chunks = calloc(m->chunk_count + 1, sizeof *chunks);

    if (!chunks)
        return NULL;
    for (size_t k = 0; k < m->chunk_count; k++)
        chunks[k] = (placed_chunk){iron__manifest_chunk_tokens(m, k), m->chunks[k].t,
                                   m->chunks[k].a, m->chunks[k].b, k};
    qsort(chunks, m->chunk_count, sizeof *chunks, by_words_and_place);
    return chunks;
}

/* Equal chunks: so many of each manifest, in the order of their places. */
typedef struct group {
    const placed_chunk *chunks[2];
    size_t count[2];
} group;

static bool is_in_place(const iron_manifest *a, const iron_manifest *b, uint64_t k) {
    return k < a->chunk_count && k < b->chunk_count && chunks_equal(a, k, b, k);
}

/* For a group that both have: which of the first's have left their place, and where to? */
static void find_moved_chunks(const group *g, const iron_manifest *a, const iron_manifest *b,
                              chunk_moves *moves) {
    uint64_t left = UINT64_MAX, arrived = UINT64_MAX;

    for (size_t k = g->count[0]; k-- > 0;) {
        if (is_in_place(a, b, g->chunks[0][k].index))
            continue;
        moves->elsewhere++;
        left = g->chunks[0][k].index;
    }
    for (size_t k = g->count[1]; k-- > 0;)
        if (!is_in_place(a, b, g->chunks[1][k].index))
            arrived = g->chunks[1][k].index;
    if (left == UINT64_MAX) /* all are still in place: a copy */
        left = g->chunks[0][0].index;
    if (arrived != UINT64_MAX && left < moves->from) {
        moves->from = left;
        moves->to = arrived;
    }
}

static void count_group(const group *g, const iron_manifest *a, const iron_manifest *b,
                        chunk_moves *moves) {
    if (g->count[0] > g->count[1])
        moves->missing += g->count[0] - g->count[1];
    if (g->count[1] > g->count[0])
        moves->excess += g->count[1] - g->count[0];
    if (g->count[0] == 0)
        moves->foreign += g->count[1];
    if (g->count[0] > 0 && g->count[1] > 0)
        find_moved_chunks(g, a, b, moves);
}

static size_t group_length(const placed_chunk *chunks, size_t left, const placed_chunk *like) {
    size_t count = 0;

    while (count < left && by_words(&chunks[count], like) == 0)
        count++;
    return count;
}

static void compare_sorted(const iron_manifest *a, const iron_manifest *b,
                           const placed_chunk *sorted[2], chunk_moves *moves) {
    size_t left[2] = {a->chunk_count, b->chunk_count};
    const placed_chunk *next[2] = {sorted[0], sorted[1]};

    while (left[0] > 0 || left[1] > 0) {
        bool takes_a = left[1] == 0 || (left[0] > 0 && by_words(next[0], next[1]) <= 0);
        const placed_chunk *like = takes_a ? next[0] : next[1];
        group g;

        for (int side = 0; side < 2; side++) {
            g.chunks[side] = next[side];
            g.count[side] = group_length(next[side], left[side], like);
            next[side] += g.count[side];
            left[side] -= g.count[side];
        }
        count_group(&g, a, b, moves);
    }
}

/* Both manifests must have chunks of one size. */
static iron_status find_moves(const iron_manifest *a, const iron_manifest *b, chunk_moves *moves,
                              iron_error *err) {
    placed_chunk *first = sorted_chunks(a), *second = sorted_chunks(b);
    iron_status status = IRON_OK;

    *moves = (chunk_moves){.from = UINT64_MAX, .to = UINT64_MAX};
    if (first && second)
        compare_sorted(a, b, (const placed_chunk *[2]){first, second}, moves);
    else
        status = iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for a list of chunks");
    free(first);
    free(second);
    return status;
}

/* A shift suggested by marks, verified where one side is a manifest and the other has its
 * tokens: the words of the manifest's chunks are computed again from the tokens that are where
 * the shift says. All threads, one chunk per piece; the first that is wrong ends it. */

/* Chunks between two reports of progress: some hundred megabytes of the usual size. */
#define ROUND_CHUNKS 128u

typedef struct verification {
    const iron_manifest *known;
    const diff_text *text;
    uint64_t by, next; /* the shift; the first chunk of the round */
    atomic_bool is_wrong;
} verification;

static iron_status verify_chunk(void *context, uint32_t worker, uint64_t index,
                                const atomic_bool *stop, iron_error *err) {
    verification *v = context;
    uint64_t chunk = v->next + index;
    const iron__chunk *c = &v->known->chunks[chunk];
    iron__seal_words words;

    (void)worker;
    (void)stop;
    if (atomic_load_explicit(&v->is_wrong, memory_order_relaxed))
        return IRON_OK;
    IRON_TRY(words_at(v->text, chunk * v->known->chunk_tokens + v->by,
                      iron__manifest_chunk_tokens(v->known, (size_t)chunk), &words, err));
    if (!chunk_has_words(c, &words))
        atomic_store(&v->is_wrong, true);
    return IRON_OK;
}

/* Is every chunk of side `known` from `chunk` on found `by` tokens (modulo 2^64) further on in the
 * tokens of the other side? False too if there is no such chunk, or not all of them can be there: a
 * chunk that reaches past the end cannot be verified. */
static iron_status verify_chunks(diff_run *run, int known, uint64_t chunk, uint64_t by,
                                 bool *all_found, iron_error *err) {
    const iron_manifest *m = run->manifest[known];
    const diff_text *text = &run->text[!known];
    verification v = {.known = m, .text = text, .by = by, .next = chunk};

    *all_found = chunk < m->chunk_count && chunk * m->chunk_tokens + by <= text->tokens &&
                 m->tokens + by <= text->tokens;
    while (v.next < m->chunk_count && *all_found) {
        uint64_t left = m->chunk_count - v.next;
        iron__ordered_run round = {.count = left < ROUND_CHUNKS ? left : ROUND_CHUNKS,
                                   .piece = verify_chunk,
                                   .context = &v};

        IRON_TRY(iron__thread_pool_run_ordered(run->pool, &round, err));
        *all_found = !atomic_load(&v.is_wrong);
        v.next += round.count;
        IRON_TRY(report_progress(run, v.next * m->chunk_tokens, m->tokens, err));
    }
    return IRON_OK;
}

/* Judging a shift that the tokens have shown. */

/* Less agreement than this is not reported as a shift, unless all ends fit. */
#define AGREES_MIN     64u
#define AGREES_MIN_MID 1024u

/* Tokens that were changed and not only inserted or deleted: 0 for a pure shift. */
static uint64_t shift_changed(const text_shift *shift) {
    return (shift->at[0] < shift->at[1] ? shift->at[0] : shift->at[1]) - shift->apart;
}

/* Tokens that one has more at the end than the shift accounts for: 0 if both end as it says. */
static uint64_t shift_excess(const diff_run *run, const text_shift *shift) {
    uint64_t a = run->text[0].tokens - shift->at[0], b = run->text[1].tokens - shift->at[1];

    return a > b ? a - b : b - a;
}

/* Is it more than a coincidence? */
static bool is_convincing(const diff_run *run, const text_shift *shift) {
    uint64_t changed = shift_changed(shift);

    if (!shift->is_found || shift->at[0] == shift->at[1])
        return false;
    if (shift->to_end && changed == 0 && shift_excess(run, shift) == 0)
        return shift->agrees > 0;
    return shift->agrees >= (shift->to_end ? AGREES_MIN : AGREES_MIN_MID) &&
           shift->agrees / 4 >= changed;
}

/* The sentences. They say what was seen and no more, and call the two streams "the first" and "the
 * second", since a finding must fit into one line with any names. */

/* Appends to the sentence. */
static void say(diff_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(diff_run *run, const char *format, ...) {
    char *text = run->diff->report.text;
    size_t used = strlen(text), size = sizeof run->diff->report.text;
    va_list values;

    va_start(values, format);
    vsnprintf(text + used, size - used, format, values);
    va_end(values);
}

/* Every sentence ends with the note. */
static void finish(diff_run *run, iron_diff_kind kind, bool is_verified) {
    run->diff->report.kind = kind;
    run->diff->report.is_verified = is_verified;
    say(run, "%s", run->note);
}

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

static const char *were(uint64_t count) { return count == 1 ? "was" : "were"; }

static void report_same(diff_run *run) {
    uint64_t tokens = run->diff->report.tokens[0];

    say(run, "the same %" PRIu64 " token%s%s", tokens, plural(tokens),
        run->has_same_seal ? "; their seals are equal" : "");
    finish(run, IRON_DIFF_SAME, true);
}

/* The shorter one is the beginning of the longer. */
static void report_beginning(diff_run *run, bool is_verified) {
    const iron_diff_report *r = &run->diff->report;
    bool is_cut = r->tokens[1] < r->tokens[0];
    uint64_t more = longer_tokens(r) - common_tokens(r);

    say(run, "the %s is the beginning of the %s, which has %" PRIu64 " token%s more",
        is_cut ? "second" : "first", is_cut ? "first" : "second", more, plural(more));
    if (!is_verified)
        say(run,
            "; positions %" PRIu64 " to %" PRIu64
            " could not be compared: the files are not available",
            r->first, common_tokens(r) - 1);
    finish(run, is_cut ? IRON_DIFF_CUT : IRON_DIFF_EXTENDED, is_verified);
}

/* "N tokens were inserted at position P", as a kind and its numbers. */
static iron_diff_kind note_shift(diff_run *run, const uint64_t at[2], uint64_t place) {
    iron_diff_report *r = &run->diff->report;
    bool is_more = at[1] > at[0];

    r->shift = is_more ? at[1] - at[0] : at[0] - at[1];
    r->shift_at = place;
    return is_more ? IRON_DIFF_INSERTED : IRON_DIFF_DELETED;
}

static const char *what_happened(iron_diff_kind kind) {
    return kind == IRON_DIFF_INSERTED ? "inserted" : "deleted";
}

/* What is left where the lengths do not fit the shift. */
static void say_excess(diff_run *run, const text_shift *shift) {
    uint64_t left[2] = {run->text[0].tokens - shift->at[0], run->text[1].tokens - shift->at[1]};
    uint64_t excess = shift_excess(run, shift);

    if (excess)
        say(run, "; the %s has %" PRIu64 " token%s more at its end",
            left[0] > left[1] ? "first" : "second", excess, plural(excess));
}

static void report_shift(diff_run *run, const text_shift *shift) {
    iron_diff_kind kind = note_shift(run, shift->at, shift->apart);
    uint64_t shifted = run->diff->report.shift;

    if (shift_changed(shift) == 0)
        say(run, "%" PRIu64 " token%s %s %s at position %" PRIu64, shifted, plural(shifted),
            were(shifted), what_happened(kind), shift->apart);
    else
        say(run, "at position %" PRIu64 " %" PRIu64 " tokens were replaced by %" PRIu64 " others",
            shift->apart, shift->at[0] - shift->apart, shift->at[1] - shift->apart);
    if (shift->to_end) {
        say(run, "; the rest agrees");
        say_excess(run, shift);
    } else {
        say(run, "; the next %" PRIu64 " tokens agree, and there are more differences",
            shift->agrees);
    }
    if (shift->has_changes)
        say(run, "; before that tokens changed in place");
    finish(run, kind, shift->to_end);
}

/* Where the run of differing chunks begins that holds a mark. */
static uint64_t differing_begin(const diff_run *run, const uint64_t at[2]) {
    const diff_bits *bits = &run->diff->bits;
    uint64_t chunk = (at[0] < at[1] ? at[0] : at[1]) / bits->chunk_tokens;

    while (chunk > 0 && bits_has(bits, chunk - 1))
        chunk--;
    return chunk * bits->chunk_tokens;
}

/* is_verified: the words of all chunks after the first difference were found at the shift. */
static void report_marks(diff_run *run, const marks_shift *shift, bool is_verified) {
    uint64_t place = differing_begin(run, shift->at);
    iron_diff_kind kind = note_shift(run, shift->at, place);
    uint64_t shifted = run->diff->report.shift;

    say(run, "%" PRIu64 " token%s %s%s %s after position %" PRIu64, shifted, plural(shifted),
        is_verified ? "" : "apparently ", were(shifted), what_happened(kind), place);
    if (is_verified)
        say(run, "; the chunks after them agree");
    else
        say(run, ", as marks of %" PRIu64 " chunk%s suggest", shift->votes, plural(shift->votes));
    if (shift->has_more)
        say(run, "; there are more shifts further on");
    finish(run, kind, is_verified);
}

static void report_reordered(diff_run *run, const chunk_moves *moves) {
    run->diff->report.moved = moves->elsewhere;
    say(run,
        "the same chunks in another order: %" PRIu64 " moved, the first is chunk %" PRIu64
        ", which stands at %" PRIu64 " in the second",
        moves->elsewhere, moves->from, moves->to);
    finish(run, IRON_DIFF_REORDERED, true);
}

static void report_repeated(diff_run *run, const chunk_moves *moves) {
    run->diff->report.moved = moves->excess;
    say(run,
        "%" PRIu64 " chunk%s of the first stand%s in the second once more: chunk %" PRIu64
        " also at %" PRIu64,
        moves->excess, plural(moves->excess), moves->excess == 1 ? "s" : "", moves->from,
        moves->to);
    if (moves->missing)
        say(run, "; %" PRIu64 " chunk%s of the first %s missing", moves->missing,
            plural(moves->missing), moves->missing == 1 ? "is" : "are");
    finish(run, IRON_DIFF_REPEATED, true);
}

/* The tokens inserted are a repetition of those directly before them. */
static void report_repeated_at(diff_run *run, const text_shift *shift) {
    iron_diff_report *r = &run->diff->report;
    uint64_t more = shift->at[1] - shift->at[0];

    note_shift(run, shift->at, shift->apart);
    r->moved = more / r->chunk_tokens;
    say(run,
        "at position %" PRIu64 " the %" PRIu64 " tokens before it stand once more; the rest agrees",
        shift->apart, more);
    say_excess(run, shift);
    finish(run, IRON_DIFF_REPEATED, true);
}

static void report_changed(diff_run *run, const chunk_moves *moves) {
    const iron_diff_report *r = &run->diff->report;

    say(run, "tokens differ in %" PRIu64 " of %" PRIu64 " chunk%s", r->differing_chunks, r->chunks,
        plural(r->chunks));
    if (moves && moves->elsewhere)
        say(run,
            "; %" PRIu64 " chunk%s of the first stand%s elsewhere in the second (chunk %" PRIu64
            " at %" PRIu64 ")",
            moves->elsewhere, plural(moves->elsewhere), moves->elsewhere == 1 ? "s" : "",
            moves->from, moves->to);
    finish(run, IRON_DIFF_CHANGED, true);
}

/* A shift that ends again: from at[0] and at[1] on, for `agrees` tokens (0: about there). */
static void report_moved_range(diff_run *run, const uint64_t at[2], uint64_t agrees) {
    bool is_more = at[1] > at[0];
    uint64_t by = is_more ? at[1] - at[0] : at[0] - at[1];
    const iron_diff_report *r = &run->diff->report;

    say(run, "tokens differ in %" PRIu64 " of %" PRIu64 " chunk%s; ", r->differing_chunks,
        r->chunks, plural(r->chunks));
    if (agrees)
        say(run, "the first's %" PRIu64 " tokens from position %" PRIu64, agrees, at[0]);
    else
        say(run, "some of the first's tokens from about position %" PRIu64, at[0]);
    say(run, " stand %" PRIu64 " %s in the second", by, is_more ? "later" : "earlier");
    finish(run, IRON_DIFF_CHANGED, true);
}

/* The order of explanations: the surest and cheapest first.
 *
 *     1. one is a beginning of the other      known from the comparison
 *     2. one chunk of many, the same length   nothing to explain, unless it is the last: what is
 *                                             inserted there pushes as much out at the end
 *     3. a shift that reaches to the end      lengths and probes, verified by the tokens
 *     4. the same chunks in another order     the words of all chunks: another pass if there are
 *        or more often                        no manifests
 *     5. any other shift                      as probes found it, or marks
 *
 * Without the tokens of both sides only words and marks can tell, and what marks tell is a
 * suggestion. */

/* Could the shorter one be the beginning of the longer, as far as words can tell? Its last chunk is
 * shorter than the other's: it can be compared where the other's tokens are available. */
static iron_status check_last_chunk(diff_run *run, bool *is_beginning, bool *is_verified,
                                    iron_error *err) {
    const iron_diff_report *r = &run->diff->report;
    int shorter = r->tokens[0] < r->tokens[1] ? 0 : 1;
    const iron_manifest *a = run->manifest[shorter], *b = run->manifest[!shorter];
    uint64_t chunk = r->first / run->diff->bits.chunk_tokens;
    iron__seal_words words;

    if (!run->text[!shorter].at) {
        *is_verified = false;
        *is_beginning = can_be_continued(a, b, chunk);
        return IRON_OK;
    }
    IRON_TRY(words_at(&run->text[!shorter], r->first, a->tokens - r->first, &words, err));
    *is_verified = *is_beginning = chunk_has_words(&a->chunks[chunk], &words);
    return IRON_OK;
}

static iron_status find_beginning(diff_run *run, bool *is_beginning, bool *is_verified,
                                  iron_error *err) {
    iron_diff_report *r = &run->diff->report;
    uint64_t common = common_tokens(r);
    int longer = r->tokens[0] < r->tokens[1];

    *is_verified = true;
    *is_beginning = r->tokens[0] != r->tokens[1] && r->first == common;
    if (*is_beginning || r->first >= common || r->first_end <= common)
        return IRON_OK;
    IRON_TRY(check_last_chunk(run, is_beginning, is_verified, err));
    if (!*is_beginning || !*is_verified)
        return IRON_OK;
    r->first = common; /* now known exactly */
    r->first_end = common + 1;
    r->has_value[longer] = 1;
    return text_read(&run->text[longer], common, &r->value[longer], 1, err);
}

/* Are both at the same places again at their ends? */
static bool is_in_place_again(const diff_run *run) {
    const iron_diff_report *r = &run->diff->report;

    return r->tokens[0] == r->tokens[1] && !bits_has(&run->diff->bits, r->chunks - 1);
}

static void report_any_shift(diff_run *run, const text_shift *shift) {
    if (!shift->to_end && is_in_place_again(run))
        report_moved_range(run, shift->at, shift->agrees);
    else
        report_shift(run, shift);
}

/* Is it only an insertion or a deletion, and all of it was seen? */
static bool is_pure(const diff_run *run, const text_shift *shift) {
    return is_convincing(run, shift) && shift->to_end && !shift->has_changes &&
           shift_changed(shift) == 0;
}

/* Are the inserted tokens a repetition of those directly before them? */
static iron_status check_repeat(diff_run *run, const text_shift *shift, bool *is_repeat,
                                iron_error *err) {
    uint64_t more = shift->at[1] - shift->at[0], same;
    text_pair what = {
        {&run->text[0], &run->text[1]}, {shift->apart - more, shift->apart}, more, NULL};

    *is_repeat = false;
    if (shift->at[1] < shift->at[0] || more > shift->apart)
        return IRON_OK;
    IRON_TRY(compare_texts(run, &what, &same, err));
    *is_repeat = same == more;
    return IRON_OK;
}

static bool is_large_insertion(const diff_run *run, const text_shift *shift) {
    return shift->at[1] > shift->at[0] &&
           shift->at[1] - shift->at[0] >= run->diff->bits.chunk_tokens;
}

/* A pure shift is reported at once, except for one that may be a repetition of chunks. */
static iron_status explain_by_tokens(diff_run *run, text_shift *shift, bool *is_done,
                                     iron_error *err) {
    *is_done = false;
    IRON_TRY(find_shift(run, shift, err));
    if (!is_pure(run, shift))
        return IRON_OK;
    if (is_large_insertion(run, shift)) {
        IRON_TRY(check_repeat(run, shift, is_done, err));
        if (*is_done)
            report_repeated_at(run, shift);
        return IRON_OK;
    }
    *is_done = true;
    report_shift(run, shift);
    return IRON_OK;
}

static bool report_moves(diff_run *run, const chunk_moves *moves) {
    if (moves->excess == 0 && moves->missing == 0)
        report_reordered(run, moves);
    else if (moves->excess > 0 && moves->foreign == 0)
        report_repeated(run, moves);
    else
        return false;
    return true;
}

/* Verifies a shift that marks suggest with the tokens. */
static iron_status verify_marks(diff_run *run, const iron_manifest *const words[2],
                                text_shift *shift, iron_error *err) {
    uint64_t chunk = shift->apart / run->diff->bits.chunk_tokens;
    marks_shift marks;

    IRON_TRY(find_marks_shift(words[0], words[1], chunk, &marks, err));
    shift->is_found = false;
    if (!marks.is_found || marks.at[0] < shift->apart || marks.at[1] < shift->apart)
        return IRON_OK;
    return verify_shift(run, marks.at, shift, err);
}

static iron_status explain_files(diff_run *run, iron_error *err) {
    const iron_manifest *words[2];
    text_shift shift;
    chunk_moves moves;
    bool is_done;

    IRON_TRY(explain_by_tokens(run, &shift, &is_done, err));
    if (is_done)
        return IRON_OK;
    for (int side = 0; side < 2; side++)
        IRON_TRY(words_of(run, side, &words[side], err));
    IRON_TRY(find_moves(words[0], words[1], &moves, err));
    if (report_moves(run, &moves))
        return IRON_OK;
    if (!is_convincing(run, &shift))
        IRON_TRY(verify_marks(run, words, &shift, err));
    if (is_convincing(run, &shift))
        report_any_shift(run, &shift);
    else
        report_changed(run, &moves);
    return IRON_OK;
}

/* Verifies a shift of marks where one side's tokens are available: the other's chunks after the one
 * that holds the mark must all be found there. */
static iron_status verify_marks_by_words(diff_run *run, const marks_shift *marks, bool *is_verified,
                                         iron_error *err) {
    int known = run->text[0].at ? 1 : 0;
    uint64_t chunk = marks->at[known] / run->diff->bits.chunk_tokens + 1;

    *is_verified = false;
    if (marks->has_more || !run->text[!known].at)
        return IRON_OK;
    return verify_chunks(run, known, chunk, marks->at[!known] - marks->at[known], is_verified, err);
}

static iron_status explain_words(diff_run *run, iron_error *err) {
    const iron_manifest *a = run->manifest[0], *b = run->manifest[1];
    uint64_t chunk = run->diff->report.first / run->diff->bits.chunk_tokens;
    marks_shift marks;
    chunk_moves moves;
    bool is_verified;

    IRON_TRY(find_moves(a, b, &moves, err));
    if (report_moves(run, &moves))
        return IRON_OK;
    IRON_TRY(find_marks_shift(a, b, chunk, &marks, err));
    if (!marks.is_found) {
        report_changed(run, &moves);
    } else if (is_in_place_again(run)) {
        report_moved_range(run, marks.at, 0);
    } else {
        IRON_TRY(verify_marks_by_words(run, &marks, &is_verified, err));
        report_marks(run, &marks, is_verified);
    }
    return IRON_OK;
}

/* Only the last chunk differs. */
static iron_status explain_last_chunk(diff_run *run, iron_error *err) {
    text_shift shift;
    bool is_done;

    IRON_TRY(explain_by_tokens(run, &shift, &is_done, err));
    if (is_done)
        return IRON_OK;
    if (is_convincing(run, &shift))
        report_shift(run, &shift);
    else
        report_changed(run, NULL);
    return IRON_OK;
}

static iron_status explain_difference(diff_run *run, iron_error *err) {
    const iron_diff_report *r = &run->diff->report;
    bool is_small = r->differing_chunks == 1 && r->tokens[0] == r->tokens[1];

    if (!is_small && has_texts(run))
        return explain_files(run, err);
    if (!is_small && run->manifest[0] && run->manifest[1])
        return explain_words(run, err);
    if (has_texts(run) && !is_in_place_again(run))
        return explain_last_chunk(run, err);
    if (!is_small)
        snprintf(run->note, sizeof run->note,
                 "; moved tokens can be found in files, not in a pipe");
    report_changed(run, NULL);
    return IRON_OK;
}

/* Fills the report's kind, shift, moved, is_verified and text. */
static iron_status explain(diff_run *run, iron_error *err) {
    bool is_beginning, is_verified;

    if (run->diff->report.differing_chunks == 0) {
        report_same(run);
        return IRON_OK;
    }
    IRON_TRY(find_beginning(run, &is_beginning, &is_verified, err));
    if (!is_beginning)
        return explain_difference(run, err);
    report_beginning(run, is_verified);
    return IRON_OK;
}

/* The comparison. */

static iron_status check_options(const iron_diff_options *o, iron_error *err) {
    if (!o)
        return IRON_OK;
    IRON_FAIL_IF(o->struct_size != sizeof *o, err, IRON_E_ARG,
                 "iron_diff_options.struct_size is not %zu; set it to sizeof", sizeof *o);
    IRON_FAIL_IF(o->threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "threads is %" PRIu32 "; it must be at most %u", o->threads, IRON_THREADS_MAX);
    return iron__chunk_tokens_check(o->chunk_tokens, err);
}

/* Counts the ranges of neighbouring chunks that differ, and writes them if there is memory. */
static size_t walk_ranges(const diff_bits *bits, uint64_t chunks, uint64_t *set,
                          diff_range *ranges) {
    size_t count = 0;
    bool was_set = false;

    *set = 0;
    for (uint64_t k = 0; k < chunks; k++) {
        bool is_set = bits_has(bits, k);

        *set += is_set;
        if (is_set && !was_set && ranges)
            ranges[count].first = k;
        if (is_set && ranges)
            ranges[count].end = k + 1;
        count += !is_set && was_set;
        was_set = is_set;
    }
    return count + was_set;
}

/* Which chunks differ is known: how many, and in which ranges of positions. */
static iron_status find_ranges(iron_diff *d, iron_error *err) {
    iron_diff_report *r = &d->report;
    uint64_t longer = longer_tokens(r);

    r->chunk_tokens = d->bits.chunk_tokens;
    r->chunks = chunks_of(longer, r->chunk_tokens);
    r->range_count = walk_ranges(&d->bits, r->chunks, &r->differing_chunks, NULL);
    d->ranges = calloc(r->range_count + 1, sizeof *d->ranges);
    if (!d->ranges)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM,
                          "out of memory for %zu ranges of chunks; give a larger --chunk",
                          r->range_count);
    walk_ranges(&d->bits, r->chunks, &r->differing_chunks, d->ranges);
    for (size_t k = 0; k < r->range_count; k++) { /* chunks become positions */
        diff_range *range = &d->ranges[k];

        range->end = range->end < r->chunks ? range->end * r->chunk_tokens : longer;
        range->first *= r->chunk_tokens;
    }
    return IRON_OK;
}

static iron_status run_comparison(diff_run *run, const iron_diff_options *o, iron_error *err) {
    uint32_t threads = o && o->threads ? o->threads : iron__cpu_threads();
    iron_status status;

    if (o) {
        run->progress = o->progress;
        run->context = o->context;
    }
    IRON_TRY(iron__thread_pool_create(threads, iron__allocator_default(), &run->pool, err));
    status = open_sides(run, o ? o->chunk_tokens : 0, err);
    if (status == IRON_OK)
        status = compare(run, err);
    if (status == IRON_OK)
        status = find_ranges(run->diff, err);
    if (status == IRON_OK)
        status = explain(run, err);
    for (int side = 0; side < 2; side++) {
        close_text(&run->text[side]);
        iron_manifest_destroy(run->made[side]);
    }
    iron__thread_pool_destroy(run->pool);
    return status;
}

iron_status iron_diff_run(const iron_diff_side *a, const iron_diff_side *b,
                          const iron_diff_options *options, iron_diff **out, iron_error *err) {
    diff_run run = {.side = {a, b}};
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
    free(diff->bits.words);
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
