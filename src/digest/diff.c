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
 * manifest has, tokens are compared. Then it finds out what happened: edits, in the tokens of both;
 * without them, chunks and marks that moved. If that is not one exact edit, the samples may have
 * been shuffled: the bags tell. The parts of the file are in the order in which they
 * run; the public functions are at the end.
 */
#include "digest/digest_internal.h"

#include "core/array.h"
#include "core/cpu.h"
#include "core/fail.h"
#include "core/number.h"
#include "formats/source.h"

#include <inttypes.h>
#include <stddef.h>
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
    iron_bag_cut bag_cut;             /* that the caller wants, or NONE */
    bool is_unsure;                   /* what happened cannot be told for certain */
    uint64_t last_end;                /* streams compared in order: after the last difference */
    char note[160];                   /* what the sentence must say besides */
} diff_run;

/* The tokens of the shorter and of the longer stream. */
static uint64_t common_tokens(const iron_diff_report *report) {
    return iron__min(report->tokens[0], report->tokens[1]);
}

static uint64_t longer_tokens(const iron_diff_report *report) {
    return iron__max(report->tokens[0], report->tokens[1]);
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

static void close_text(diff_text *text) {
    iron__parallel_source_close(text->at);
    text->at = NULL;
}

/* The side's tokens do not match its manifest: they are not used any more, and the sentence says
 * so. */
static void drop_text(diff_run *run, int side) {
    close_text(&run->text[side]);
    run->source[side] = NULL;
    iron__append(run->note, sizeof run->note,
                 "; the files of %.60s are no longer what its manifest says", side_name(run, side));
}

/* Opens both sides, and sees to it that there are either tokens of both, or words of chunks of one
 * size of both (or neither, with has_same_seal). chunk_tokens: 0, or what the caller wants. */
static iron_status open_sides(diff_run *run, uint64_t chunk_tokens, iron_error *err) {
    const iron_manifest *both[2] = {manifest_of(run, 0), manifest_of(run, 1)};
    bool words[2];

    for (int side = 0; side < 2; side++) {
        const iron_manifest *m = both[side];

        IRON_FAIL_IF(!m && !run->side[side]->source, err, IRON_E_ARG,
                     "%.100s has neither a manifest nor files", side_name(run, side));
        IRON_FAIL_IF(m && (m->parts > 0 || m->first > 0 || m->tokens != m->stream_tokens), err,
                     IRON_E_FORMAT,
                     "%.100s is the manifest of part %" PRIu32 " of %" PRIu32
                     "; join all parts first, with iron merge",
                     side_name(run, side), m->part, m->parts);
    }
    IRON_FAIL_IF(run->side[0]->source && run->side[0]->source == run->side[1]->source, err,
                 IRON_E_ARG, "both sides are the same source; open it twice");
    /* tokens that can be read anywhere: from the source's position on */
    for (int side = 0; side < 2; side++) {
        diff_text *text = &run->text[side];
        iron_source *source = run->source[side] = run->side[side]->source;

        if (!source || !iron__source_is_seekable(source))
            continue;
        IRON_TRY(iron__parallel_source_open(source, iron__allocator_default(), &text->at, err));
        text->dtype = iron_source_dtype(source);
        text->tokens = iron__parallel_source_tokens(text->at);
        text->name = side_name(run, side);
        if (both[side] && both[side]->tokens != text->tokens)
            drop_text(run, side);
    }
    /* the chunk size: what the caller wants, else that of a manifest whose tokens are not
     * available, else that of any manifest */
    for (int side = 0; side < 2 && !chunk_tokens; side++)
        chunk_tokens = run->source[side] ? 0 : both[side]->chunk_tokens;
    for (int side = 0; side < 2 && !chunk_tokens; side++)
        chunk_tokens = both[side] ? both[side]->chunk_tokens : 0;
    chunk_tokens = chunk_tokens ? chunk_tokens : IRON_CHUNK_TOKENS;
    run->diff->bits.chunk_tokens = chunk_tokens;
    for (int side = 0; side < 2; side++)
        words[side] = both[side] && both[side]->chunk_tokens == chunk_tokens;
    run->has_same_seal = both[0] && both[1] && !(words[0] && words[1]) &&
                         iron__words_equal(&both[0]->words, &both[1]->words);
    if (run->has_same_seal)
        return IRON_OK;
    for (int side = 0; side < 2; side++) {
        if (words[side] || run->source[side])
            continue;
        IRON_FAIL_IF(both[side]->chunk_tokens == 0, err, IRON_E_FORMAT,
                     "the manifest %.100s has no chunks to compare, and its files are not "
                     "available; make it with --chunk %" PRIu64 "%s",
                     side_name(run, side), chunk_tokens, run->note);
        IRON_FAIL(err, IRON_E_FORMAT,
                  "the manifest %.100s has chunks of %" PRIu64 " tokens, not %" PRIu64
                  ", and its files are not available; make both with one --chunk%s",
                  side_name(run, side), both[side]->chunk_tokens, chunk_tokens, run->note);
    }
    for (int side = 0; side < 2 && (words[0] || words[1]); side++) {
        iron_scan_options o;

        run->manifest[side] = both[side];
        if (words[side])
            continue;
        iron_scan_options_init(&o);
        o.threads = iron__thread_pool_threads(run->pool);
        o.backend = "cpu";
        o.chunk_tokens = chunk_tokens;
        o.progress = run->progress;
        o.context = run->context;
        IRON_TRY(iron_scan(run->source[side], &o, &run->made[side], err));
        run->manifest[side] = run->made[side];
    }
    return IRON_OK;
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
    IRON_FAIL_IF(!words, err, IRON_E_NOMEM,
                 "out of memory for one bit per chunk, %" PRIu64 " chunks; give a larger --chunk",
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

/* How many elements agree at the beginning, or backwards at the end. memcmp runs at the cache's
 * speed. */
static size_t common_elements(const void *a, const void *b, size_t count, size_t width,
                              bool is_backward) {
    const char *x = a, *y = b;
    size_t bytes = count * width, same = 0;

    if (!is_backward && memcmp(a, b, bytes) == 0)
        return count;
    for (size_t step = 256; step > 0; step = step == 256 ? width : 0)
        while (bytes - same >= step) {
            size_t at = is_backward ? bytes - same - step : same;

            if (memcmp(x + at, y + at, step) != 0)
                break;
            same += step;
        }
    return same / width;
}

/* How many tokens agree at the beginning, or backwards at the end, of both views, which have the
 * same count. Tokens of two widths are widened a few thousand at a time. */
static size_t common_part(const iron__tokens_view *a, const iron__tokens_view *b,
                          bool is_backward) {
    size_t width = iron_dtype_bytes(a->dtype), done = 0;
    uint32_t wide_a[IRON_WIDEN_TOKENS], wide_b[IRON_WIDEN_TOKENS];

    if (width == iron_dtype_bytes(b->dtype))
        return a->count ? common_elements(a->data, b->data, a->count, width, is_backward) : 0;
    while (done < a->count) {
        size_t some = (size_t)iron__min(a->count - done, IRON_WIDEN_TOKENS), same;
        size_t at = is_backward ? a->count - done - some : done;
        const uint32_t *x = iron__view_tokens(a, at, &some, wide_a);
        const uint32_t *y = iron__view_tokens(b, at, &some, wide_b);

        same = common_elements(x, y, some, sizeof *x, is_backward);
        done += same;
        if (same < some)
            break;
    }
    return done;
}

/* Two texts on all threads.
 *
 * A piece is read window by window into two buffers that stay in the second-level cache, so
 * comparing costs next to nothing beside reading. Windows in chunks that are known to differ are
 * not read at all, once a difference before them is known: two unrelated streams are done after one
 * window per chunk. (Not so for i32 and i64, where every value must be checked.)
 *
 * A search for the first difference ends with the round in which it is found. Traffic: both texts
 * once; nothing written. */

/* Two windows of 128 KiB leave space in a second-level cache of half a megabyte. */
#define WINDOW_BYTES  ((size_t)128 * 1024)
#define PIECE_WINDOWS 8u
#define ROUND_PIECES  512u

/* Pieces run on all threads in rounds, between which progress is reported. */
typedef struct rounds {
    uint64_t pieces;      /* in all */
    uint64_t round;       /* pieces of a round */
    uint64_t next;        /* the first piece of this round */
    atomic_bool is_ended; /* no other round is needed */
} rounds;

/* Compares `count` tokens of two texts, from these positions on or, backwards, up to them. With one
 * text NULL the other is only read and checked. */
typedef struct text_pair {
    const diff_text *text[2];
    uint64_t from[2];
    uint64_t count;
    diff_bits *bits; /* NULL: only the first difference is wanted; else both positions are equal */
    bool is_backward;
} text_pair;

typedef struct job {
    rounds rounds;
    const text_pair *pair;
    char *windows; /* two per thread */
    size_t window_tokens;
    _Atomic uint64_t first; /* the first difference so far */
    bool must_read_all;
} job;

/* There is a difference after `same` tokens that agree. */
static void note_difference(job *j, uint64_t same) {
    iron__lower(&j->first, same);
    if (!j->pair->bits)
        atomic_store(&j->rounds.is_ended, true);
}

/* Can nothing new be learned from these tokens? */
static bool is_known(const job *j, uint64_t at, size_t count) {
    const diff_bits *bits = j->pair->bits;

    if (atomic_load_explicit(&j->first, memory_order_relaxed) > at)
        return false;
    if (bits) {
        uint64_t first = j->pair->from[0] + at;

        for (uint64_t k = first / bits->chunk_tokens; k <= (first + count - 1) / bits->chunk_tokens;
             k++)
            if (!bits_has(bits, k))
                return false;
    }
    return true;
}

/* Compares a window, cut at the borders of chunks. */
static void compare_window(job *j, uint64_t at, iron__tokens_view a, iron__tokens_view b) {
    diff_bits *bits = j->pair->bits;
    uint64_t from = j->pair->from[0];

    while (a.count > 0) {
        uint64_t to_border = bits ? bits->chunk_tokens - (from + at) % bits->chunk_tokens : a.count;
        size_t some = to_border < a.count ? (size_t)to_border : a.count;
        iron__tokens_view x = {a.dtype, a.data, some}, y = {b.dtype, b.data, some};
        size_t same = is_known(j, at, some) ? some : common_part(&x, &y, false);

        if (same < some) {
            if (bits)
                bits_set(bits, (from + at) / bits->chunk_tokens);
            note_difference(j, at + same);
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
    uint64_t at = (j->rounds.next + index) * PIECE_WINDOWS * j->window_tokens;

    (void)stop;
    for (uint32_t k = 0; k < PIECE_WINDOWS && at < pair->count; k++) {
        uint64_t left = pair->count - at;
        size_t count = left < j->window_tokens ? (size_t)left : j->window_tokens;
        iron__tokens_view views[2] = {{0}};

        if (j->must_read_all || !is_known(j, at, count)) {
            for (int side = 0; side < 2; side++) {
                const diff_text *text = pair->text[side];
                char *window = j->windows + (2 * (size_t)worker + (size_t)side) * WINDOW_BYTES;
                uint64_t from = pair->from[side];

                if (!text)
                    continue;
                from = pair->is_backward ? from - at - count : from + at;
                IRON_TRY(read_stored(text, from, window, count, err));
                views[side] = (iron__tokens_view){text->dtype, window, count};
            }
            if (!pair->is_backward && pair->text[0] && pair->text[1])
                compare_window(j, at, views[0], views[1]);
            if (pair->is_backward) { /* then `at` counts from the end */
                size_t same = common_part(&views[0], &views[1], true);

                if (same < count)
                    note_difference(j, at + same);
            }
        }
        at += count;
    }
    return IRON_OK;
}

/* `all` is the work, of `tokens` in pieces of so many; its count is that of a round. */
static iron_status run_rounds(diff_run *run, rounds *r, iron__ordered_run all,
                              uint64_t piece_tokens, uint64_t tokens, iron_error *err) {
    while (r->next < r->pieces && !atomic_load(&r->is_ended)) {
        all.count = iron__min(r->pieces - r->next, r->round);
        IRON_TRY(iron__thread_pool_run_ordered(run->pool, &all, err));
        r->next += all.count;
        IRON_TRY(iron__progress(run->progress, run->context,
                                iron__min(r->next * piece_tokens, tokens), tokens, err));
    }
    return IRON_OK;
}

/* So many windows for each thread. */
static char *make_windows(const diff_run *run, size_t count, iron_error *err) {
    return iron__allocate(iron__allocator_default(), count * iron__thread_pool_threads(run->pool),
                          WINDOW_BYTES, "windows of tokens", err);
}

/* `count` tokens of both texts from these positions on. */
static text_pair both_texts(const diff_run *run, uint64_t a, uint64_t b, uint64_t count) {
    return (text_pair){.text = {&run->text[0], &run->text[1]}, .from = {a, b}, .count = count};
}

/* *first: how many tokens agree before the first that differs (backwards: after the last); count if
 * all do. */
static iron_status compare_texts(diff_run *run, const text_pair *pair, uint64_t *first,
                                 iron_error *err) {
    job j = {.rounds.round = ROUND_PIECES,
             .pair = pair,
             .windows = make_windows(run, 2, err),
             .window_tokens = WINDOW_BYTES};
    const iron__ordered_run all = {.piece = compare_piece, .context = &j};
    iron_status status = IRON_E_NOMEM;
    uint64_t piece_tokens;

    atomic_init(&j.first, pair->count);
    for (int side = 0; side < 2; side++)
        if (pair->text[side]) {
            size_t tokens = WINDOW_BYTES / iron_dtype_bytes(pair->text[side]->dtype);

            j.window_tokens = tokens < j.window_tokens ? tokens : j.window_tokens;
            j.must_read_all |= pair->bits && can_be_bad(pair->text[side]);
        }
    piece_tokens = (uint64_t)PIECE_WINDOWS * j.window_tokens;
    j.rounds.pieces = chunks_of(pair->count, piece_tokens);
    if (j.windows)
        status = run_rounds(run, &j.rounds, all, piece_tokens, pair->count, err);
    iron__release(iron__allocator_default(), j.windows);
    *first = atomic_load(&j.first);
    return status;
}

/* Sets position and values of the first difference, as far as there are texts. */
static iron_status set_first(diff_run *run, uint64_t first, iron_error *err) {
    iron_diff_report *r = &run->diff->report;

    r->first = first;
    r->first_end = first + 1;
    for (int side = 0; side < 2; side++) {
        r->has_value[side] = run->text[side].at && first < r->tokens[side];
        if (r->has_value[side])
            IRON_TRY(text_read(&run->text[side], first, &r->value[side], 1, err));
    }
    return IRON_OK;
}

/* Two streams as they come. */

#define PIECE_TOKENS ((size_t)65536)

typedef struct stream {
    iron_source *source;
    const char *name;
    void *data;
    iron__tokens_view view; /* what was read last */
} stream;

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

/* Compares what was read of both, from `position` on, chunk by chunk. */
static void compare_pieces(diff_run *run, const stream p[2], uint64_t position, size_t common) {
    uint64_t chunk_tokens = run->diff->bits.chunk_tokens;

    for (size_t done = 0, some; done < common; done += some) {
        uint64_t to_border = chunk_tokens - (position + done) % chunk_tokens;
        iron__tokens_view a = iron__view_rest(&p[0].view, done);
        iron__tokens_view b = iron__view_rest(&p[1].view, done);
        size_t same, last;

        a.count = b.count = last = some = iron__min_size(common - done, to_border);
        same = common_part(&a, &b, false);
        if (same == some)
            continue;
        bits_set(&run->diff->bits, (position + done) / chunk_tokens);
        note_first(&run->diff->report, p, position, done + same);
        while (iron__view_stored(&a, last - 1) == iron__view_stored(&b, last - 1))
            last--;
        run->last_end = position + done + last;
    }
    if (p[0].view.count != p[1].view.count) /* reads are short at ends only */
        note_first(&run->diff->report, p, position, common);
}

/* A stream that continues alone is read to its end, too: its tokens must be counted. */
static iron_status compare_streams(diff_run *run, stream p[2], iron_error *err) {
    iron_diff_report *r = &run->diff->report;
    diff_bits *bits = &run->diff->bits;
    bool has_ended[2] = {false, false};

    for (uint64_t position = 0; !has_ended[0] || !has_ended[1]; position += PIECE_TOKENS) {
        for (int side = 0; side < 2; side++) {
            iron__tokens_view *view = &p[side].view;

            *view = (iron__tokens_view){iron_source_dtype(p[side].source), p[side].data, 0};
            if (!has_ended[side])
                IRON_TRY(iron_source_read(p[side].source, p[side].data, PIECE_TOKENS, &view->count,
                                          err));
            IRON_TRY(check_view(view, p[side].name, position, err));
            has_ended[side] = view->count < PIECE_TOKENS;
            r->tokens[side] += view->count;
        }
        IRON_TRY(bits_reserve(bits, common_tokens(r), err));
        compare_pieces(run, p, position, iron__min_size(p[0].view.count, p[1].view.count));
        IRON_TRY(
            iron__progress(run->progress, run->context, longer_tokens(r), IRON_COUNT_UNKNOWN, err));
    }
    IRON_TRY(bits_reserve(bits, longer_tokens(r), err));
    bits_set_tokens(bits, common_tokens(r), longer_tokens(r));
    return IRON_OK;
}

static iron_status compare_in_order(diff_run *run, iron_error *err) {
    uint64_t *data = iron__allocate(iron__allocator_default(), 2 * PIECE_TOKENS, sizeof *data,
                                    "pieces of two streams", err);
    stream p[2] = {{run->source[0], side_name(run, 0), data, {0}},
                   {run->source[1], side_name(run, 1), data + PIECE_TOKENS, {0}}};
    iron_status status = data ? compare_streams(run, p, err) : IRON_E_NOMEM;

    iron__release(iron__allocator_default(), data);
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

/* Are these the words of the chunk? The count is not compared. */
static bool chunk_has_words(const iron__chunk *c, const iron__seal_words *words) {
    return c->t == words->t && c->a == words->a && c->b == words->b;
}

/* The words of `count` tokens from `first` on as a stream of their own; the last quad is padded
 * with zeros. */
static iron_status words_at(const diff_text *text, uint64_t first, uint64_t count,
                            iron__seal_words *words, iron_error *err) {
    uint32_t *block = iron__allocate(iron__allocator_default(), BLOCK_TOKENS, sizeof *block,
                                     "a block of tokens", err);
    iron_status status = block ? IRON_OK : IRON_E_NOMEM;

    *words = (iron__seal_words){0};
    for (uint64_t done = 0; done < count && status == IRON_OK;) {
        size_t some = (size_t)iron__min(count - done, BLOCK_TOKENS), padded = (some + 3) / 4 * 4;
        const iron__quads_run quads = {block, padded / 4, done / 4, 1};

        status = text_read(text, first + done, block, some, err);
        memset(block + some, 0, (padded - some) * sizeof *block);
        iron__seal_variant_find("champion")->take(&quads, words, NULL);
        done += some;
    }
    iron__release(iron__allocator_default(), block);
    words->count = count;
    return status;
}

/* The first difference is in this chunk, as far as words can tell. */
static iron_status find_in_chunk(diff_run *run, uint64_t chunk, iron_error *err) {
    iron_diff_report *r = &run->diff->report;
    uint64_t begin = chunk * run->diff->bits.chunk_tokens, common = common_tokens(r);
    uint64_t end = begin + run->diff->bits.chunk_tokens, same = 0;
    text_pair pair;

    end = end < longer_tokens(r) ? end : longer_tokens(r);
    r->first = begin;
    r->first_end = end;
    for (int side = 0; side < 2; side++) {
        const iron_manifest *m = run->manifest[side];
        iron__seal_words words;

        /* words that were just scanned need no check */
        if (!run->text[side].at || m == run->made[side] || chunk >= m->chunk_count)
            continue;
        IRON_TRY(words_at(&run->text[side], begin, iron__manifest_chunk_tokens(m, (size_t)chunk),
                          &words, err));
        if (!chunk_has_words(&m->chunks[chunk], &words))
            drop_text(run, side);
    }
    if (begin >= common) /* one has ended exactly here */
        return set_first(run, begin, err);
    if (!has_texts(run))
        return IRON_OK;
    pair = both_texts(run, begin, begin, (common < end ? common : end) - begin);
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

/* Fills the report's bits, tokens, first, first_end and, where it can, the values. */
static iron_status compare(diff_run *run, iron_error *err) {
    iron_diff_report *r = &run->diff->report;
    diff_bits *bits = &run->diff->bits;
    text_pair pair;
    uint64_t first = UINT64_MAX, most;

    r->first = IRON_COUNT_UNKNOWN;
    r->first_end = IRON_COUNT_UNKNOWN;
    if (run->has_same_seal) {
        r->tokens[0] = r->tokens[1] = run->side[0]->manifest->tokens;
        return bits_reserve(bits, r->tokens[0], err);
    }
    if (run->manifest[0] && run->manifest[1]) {
        const iron_manifest *a = run->manifest[0], *b = run->manifest[1];

        r->tokens[0] = a->tokens;
        r->tokens[1] = b->tokens;
        most = iron__max(a->chunk_count, b->chunk_count);
        IRON_TRY(bits_reserve(bits, longer_tokens(r), err));
        for (uint64_t k = 0; k < most; k++) {
            if (k < a->chunk_count && k < b->chunk_count && chunks_equal(a, k, b, k))
                continue;
            bits_set(bits, k);
            first = iron__min(first, k);
        }
        if ((first >= most) != iron__words_equal(&a->words, &b->words))
            return refuse_damaged(run, first >= most, err);
        return first < most ? find_in_chunk(run, first, err) : IRON_OK;
    }
    if (!has_texts(run))
        return compare_in_order(run, err);
    /* what is after the first difference is compared once it is known what moved */
    for (int side = 0; side < 2; side++)
        r->tokens[side] = run->text[side].tokens;
    pair = both_texts(run, 0, 0, common_tokens(r));
    IRON_TRY(bits_reserve(bits, longer_tokens(r), err));
    IRON_TRY(compare_texts(run, &pair, &first, err));
    return first < longer_tokens(r) ? set_first(run, first, err) : IRON_OK;
}

/* What happened? Edits, found in the tokens of both.
 *
 * Both texts are equal before the first difference and, counted from their ends, after the last
 * one. Between these is the gap. One edit is recognised by it, and named exactly:
 *
 *     nothing in the second's gap       deleted; truncated, if that is its end
 *     nothing in the first's gap        inserted or extended; repeated, if the first has the
 *                                       block in another place
 *     two parts that changed places     moved
 *     the same, around a third part     reordered
 *
 * Otherwise both are walked from one place where they agree again to the next, and what is between
 * two such places is an edit. Everything that is reported was seen in the tokens.
 *
 * Blocks are found by seeds: runs of SEED_TOKENS tokens. To find a needle in a text, the seeds at
 * all places of the needle are put into a table, and the text is looked at once per length of the
 * needle: if the needle is there, one of these places is in it. So a search costs at most one read
 * of the text, and hardly anything if the needle is long. */

#define SEED_TOKENS 32u
#define HASH_FACTOR UINT64_C(0x9E3779B97F4A7C15)
/* Seeds of a needle: their table of half a megabyte stays in the second-level cache. */
#define SEEDS_MAX  ((size_t)65536)
#define NEEDLE_MAX (SEEDS_MAX + SEED_TOKENS - 1)
#define HITS_MAX   64u

/* How far apart both may be for a place where they agree again: 16 MiB of each are in memory. */
#define AHEAD_MAX ((uint64_t)1 << 22)
/* Tokens that agree by chance at an edit's borders. */
#define SLACK_MAX 64u
/* Runs of equal tokens between two edits: at least this many. */
#define APART_MIN 256u
#define EDITS_MAX 256u

/* x tokens of the first from at[0] on have become y tokens of the second from at[1] on. */
typedef struct edit {
    iron_diff_kind kind;
    uint64_t at[2], count[2];
    uint64_t position, length, source; /* as in the report; source: or IRON_COUNT_UNKNOWN */
} edit;

/* The tokens between the first and the last difference. */
typedef struct text_gap {
    uint64_t first;  /* in both */
    uint64_t end[2]; /* where it ends in each */
} text_gap;

/* How many tokens agree from these places on, of at most `most`, which both must have. */
static iron_status agree_from(diff_run *run, uint64_t a, uint64_t b, uint64_t most, uint64_t *same,
                              iron_error *err) {
    const text_pair pair = both_texts(run, a, b, most);

    return compare_texts(run, &pair, same, err);
}

/* The same of the tokens directly before these places. */
static iron_status agree_before(diff_run *run, uint64_t a, uint64_t b, uint64_t most,
                                uint64_t *same, iron_error *err) {
    text_pair pair = both_texts(run, a, b, most);

    pair.is_backward = true;
    return compare_texts(run, &pair, same, err);
}

/* `length` tokens of the first from at[0] on, and of the second from at[1] on. */
typedef struct block {
    uint64_t at[2], length;
} block;

/* Have both the same tokens in all of these blocks? */
static iron_status blocks_agree(diff_run *run, const block *blocks, size_t count, bool *agree,
                                iron_error *err) {
    *agree = true;
    for (size_t k = 0; k < count && *agree; k++) {
        uint64_t same;

        IRON_TRY(agree_from(run, blocks[k].at[0], blocks[k].at[1], blocks[k].length, &same, err));
        *agree = same == blocks[k].length;
    }
    return IRON_OK;
}

/* Seeds. */

typedef struct seeds {
    uint32_t *tokens; /* of the needle; owned */
    size_t count, step;
    uint32_t *slots; /* 1 + the place of a seed; 0: free */
    unsigned bits;   /* there are 2^bits slots, at most half of them taken */
} seeds;

static uint64_t seed_hash(const uint32_t *tokens) {
    uint64_t hash = 0;

    for (size_t k = 0; k < SEED_TOKENS; k++)
        hash = hash * HASH_FACTOR + tokens[k];
    return hash;
}

/* The weight of the token that leaves the window. */
static uint64_t seed_weight(void) {
    uint64_t weight = 1;

    for (size_t k = 0; k < SEED_TOKENS; k++)
        weight *= HASH_FACTOR;
    return weight;
}

static bool are_equal(const uint32_t *a, const uint32_t *b, size_t count) {
    return memcmp(a, b, count * sizeof *a) == 0;
}

/* The slot of a seed with these tokens, or the free one where it belongs. */
static uint32_t *seed_slot(const seeds *s, const uint32_t *seed, uint64_t hash) {
    size_t k = (size_t)(hash >> (64 - s->bits)), mask = ((size_t)1 << s->bits) - 1;

    while (s->slots[k] && !are_equal(s->tokens + s->slots[k] - 1, seed, SEED_TOKENS))
        k = (k + 1) & mask;
    return &s->slots[k];
}

static void free_seeds(seeds *s) {
    iron__release(iron__allocator_default(), s->tokens);
    iron__release(iron__allocator_default(), s->slots);
    *s = (seeds){0};
}

/* Makes room for every `step`th seed of `count` tokens. */
static iron_status make_seeds(seeds *s, size_t count, size_t step, iron_error *err) {
    const iron_allocator *memory = iron__allocator_default();

    *s = (seeds){.count = count, .step = step, .bits = 4};
    while (((size_t)1 << s->bits) < 2 * (count / step + 1))
        s->bits++;
    s->tokens = iron__allocate(memory, count, sizeof *s->tokens, "tokens to search for", err);
    if (s->tokens)
        s->slots = iron__allocate(memory, (size_t)1 << s->bits, sizeof *s->slots, "seeds", err);
    if (!s->slots) {
        free_seeds(s);
        return IRON_E_NOMEM;
    }
    memset(s->slots, 0, sizeof *s->slots << s->bits);
    return IRON_OK;
}

/* Enters the seeds of the tokens. Of equal seeds the first is kept. */
static void enter_seeds(seeds *s) {
    const uint64_t weight = seed_weight();
    uint64_t hash = 0;

    for (size_t k = 0; k + SEED_TOKENS <= s->count; k++) {
        const uint32_t *seed = s->tokens + k;

        hash = k ? hash * HASH_FACTOR + seed[SEED_TOKENS - 1] - seed[-1] * weight : seed_hash(seed);
        /* one token over and over is found anywhere and says nothing */
        if (k % s->step == 0 && !are_equal(seed, seed + 1, SEED_TOKENS - 1)) {
            uint32_t *slot = seed_slot(s, seed, hash);

            *slot = *slot ? *slot : (uint32_t)k + 1;
        }
    }
}

/* The needle that stands in a text from `first` on. */
static iron_status load_needle(seeds *s, const diff_text *text, uint64_t first, size_t count,
                               iron_error *err) {
    iron_status status = make_seeds(s, count, 1, err);

    if (status == IRON_OK)
        status = text_read(text, first, s->tokens, count, err);
    if (status == IRON_OK)
        enter_seeds(s);
    else
        free_seeds(s);
    return status;
}

/* Where needles stand in a text: a seed of one was seen at `at`, which is at `offset` in the
 * needle. */
typedef struct seed_hit {
    uint64_t at;
    size_t offset, needle;
} seed_hit;

typedef struct seed_scan {
    rounds rounds;
    const diff_text *text;
    uint64_t first, end; /* the range that is searched */
    const seeds *needles;
    size_t needle_count;
    uint64_t stride;               /* from one place that is looked at to the next */
    uint64_t places, piece_places; /* in the range, and in a piece of it */
    char *windows; /* one per thread; NULL: places are far apart and read one by one */
    atomic_size_t hit_count;
    seed_hit hits[HITS_MAX];
} seed_scan;

static void look_at(seed_scan *scan, uint64_t at, const uint32_t *seed) {
    uint64_t hash = seed_hash(seed);

    for (size_t k = 0; k < scan->needle_count; k++) {
        uint32_t slot = *seed_slot(&scan->needles[k], seed, hash);
        size_t hit = slot ? atomic_fetch_add(&scan->hit_count, 1) : HITS_MAX;

        if (hit < HITS_MAX)
            scan->hits[hit] = (seed_hit){at, slot - 1, k};
    }
}

static iron_status scan_piece(void *context, uint32_t worker, uint64_t index,
                              const atomic_bool *stop, iron_error *err) {
    seed_scan *scan = context;
    uint64_t place = (scan->rounds.next + index) * scan->piece_places;
    uint64_t count = iron__min(scan->places - place, scan->piece_places);
    uint64_t first = scan->first + place * scan->stride;
    size_t width = iron_dtype_bytes(scan->text->dtype);
    uint32_t seed[IRON_WIDEN_TOKENS];
    char *window = scan->windows ? scan->windows + worker * WINDOW_BYTES : NULL;

    (void)stop;
    if (window)
        IRON_TRY(read_stored(scan->text, first, window,
                             (size_t)((count - 1) * scan->stride) + SEED_TOKENS, err));
    for (uint64_t k = 0; k < count; k++) {
        size_t offset = (size_t)(k * scan->stride), tokens = SEED_TOKENS;

        if (window) {
            const iron__tokens_view view = {scan->text->dtype, window + offset * width, tokens};

            look_at(scan, first + offset, iron__view_tokens(&view, 0, &tokens, seed));
        } else {
            IRON_TRY(text_read(scan->text, first + k * scan->stride, seed, tokens, err));
            look_at(scan, first + k * scan->stride, seed);
        }
    }
    return IRON_OK;
}

/* Up to this distance of places all of the text is read, window by window: on many threads, that is
 * faster than many small reads. */
#define READ_ALL_BYTES (WINDOW_BYTES / 2)

/* Searches positions first ... end-1 of a side for needles of one length. The hits are in order. */
static iron_status scan_text(diff_run *run, seed_scan *scan, iron_error *err) {
    const iron__ordered_run all = {.piece = scan_piece, .context = scan};
    size_t width = iron_dtype_bytes(scan->text->dtype);
    iron_status status;

    scan->stride = scan->needles[0].count - SEED_TOKENS + 1;
    scan->piece_places = 64;
    if (scan->end - scan->first < SEED_TOKENS)
        return IRON_OK;
    scan->places = (scan->end - scan->first - SEED_TOKENS) / scan->stride + 1;
    if (scan->stride * width <= READ_ALL_BYTES) {
        scan->piece_places = (WINDOW_BYTES / width - SEED_TOKENS) / scan->stride;
        scan->windows = make_windows(run, 1, err);
        if (!scan->windows)
            return IRON_E_NOMEM;
    }
    scan->rounds.pieces = chunks_of(scan->places, scan->piece_places);
    scan->rounds.round = (uint64_t)ROUND_PIECES * PIECE_WINDOWS;
    status = run_rounds(run, &scan->rounds, all, scan->piece_places * scan->stride,
                        scan->end - scan->first, err);
    iron__release(iron__allocator_default(), scan->windows);
    if (atomic_load(&scan->hit_count) > HITS_MAX)
        atomic_store(&scan->hit_count, HITS_MAX);
    qsort(scan->hits, atomic_load(&scan->hit_count), sizeof scan->hits[0], iron__by_first_number);
    return status;
}

/* Searches positions first ... end-1 of a side for `length` tokens of the other from `at` on. */
static iron_status find_needle(diff_run *run, int side, uint64_t first, uint64_t end, uint64_t at,
                               size_t length, seed_scan *scan, iron_error *err) {
    seeds needle;
    iron_status status;

    *scan = (seed_scan){.text = &run->text[side],
                        .first = first,
                        .end = end,
                        .needles = &needle,
                        .needle_count = 1};
    IRON_TRY(load_needle(&needle, &run->text[!side], at, length, err));
    status = scan_text(run, scan, err);
    free_seeds(&needle);
    return status;
}

/* One edit: a block that was inserted. */

/* Is the new block of an edit a copy of one in the first? A block that begins up to `slide` tokens
 * earlier makes the same stream, so it counts too. */
static iron_status find_source(diff_run *run, edit *e, iron_error *err) {
    uint64_t length = e->count[1], slide = 0, same;
    seed_scan scan;

    if (length < (e->count[0] ? APART_MIN : SEED_TOKENS))
        return IRON_OK;
    if (e->count[0] == 0)
        IRON_TRY(agree_before(run, e->at[0], e->at[1] + length, iron__min(length, e->at[0]), &slide,
                              err));
    if (slide == length) { /* the block before it, once more */
        e->kind = IRON_DIFF_REPEATED;
        e->source = e->at[0] - length;
        return IRON_OK;
    }
    /* what every placement has, unless that is too little */
    if (length - slide >= SEED_TOKENS)
        length -= slide;
    IRON_TRY(find_needle(run, 0, 0, run->text[0].tokens, e->at[1],
                         (size_t)iron__min(length, NEEDLE_MAX), &scan, err));
    for (size_t k = 0; k < atomic_load(&scan.hit_count) && e->kind != IRON_DIFF_REPEATED; k++) {
        uint64_t source = scan.hits[k].at - scan.hits[k].offset, missing;

        if (scan.hits[k].at < scan.hits[k].offset)
            continue;
        IRON_TRY(agree_from(run, source, e->at[1],
                            iron__min(e->count[1], run->text[0].tokens - source), &same, err));
        missing = e->count[1] - same;
        if (missing > slide || missing > source)
            continue;
        IRON_TRY(agree_before(run, source, e->at[1], missing, &same, err));
        if (same == missing) {
            e->kind = IRON_DIFF_REPEATED;
            e->position = e->at[1] - missing;
            e->source = source - missing;
        }
    }
    return IRON_OK;
}

/* One edit: blocks that changed places.
 *
 * The gap of the first is X M Y, that of the second Y M X. Where the second's gap begins and ends,
 * Y and X are found in the first: `ahead` tokens further on and `behind` tokens further back. If M
 * is empty it is a move. Then the tokens that X and Y begin or end with alike, which look as if
 * they were not in the gap, have to be added again. */

static iron_status try_move(diff_run *run, const text_gap *g, uint64_t ahead, uint64_t behind,
                            edit *e, iron_error *err) {
    uint64_t length = ahead + behind, gap = g->end[0] - g->first, slack = length - gap;
    uint64_t before, same, low, tokens = run->text[0].tokens;
    bool agree;

    if (length < gap || slack > SLACK_MAX || g->first + ahead > tokens || behind > g->end[0])
        return IRON_OK;
    /* Y from the gap's beginning on, and X up to its end */
    IRON_TRY(
        agree_before(run, g->first + ahead, g->first, iron__min(slack, g->first), &before, err));
    low = g->first - before;
    if (low + length < g->end[0])
        low = g->end[0] - length;
    IRON_TRY(agree_from(run, g->end[0] - behind, g->end[0], iron__min(slack, tokens - g->end[0]),
                        &same, err));
    if (low > g->first || low + length > g->end[0] + same)
        return IRON_OK;
    IRON_TRY(blocks_agree(run,
                          (block[]){{{low + ahead, low}, behind}, {{low, low + behind}, ahead}}, 2,
                          &agree, err));
    if (!agree)
        return IRON_OK;
    e->kind = IRON_DIFF_MOVED;
    e->length = iron__min(ahead, behind);
    e->position = behind <= ahead ? low : low + behind;
    e->source = behind <= ahead ? low + ahead : low;
    return IRON_OK;
}

static iron_status try_swap(diff_run *run, const text_gap *g, uint64_t ahead, uint64_t behind,
                            edit *e, iron_error *err) {
    uint64_t first = g->first, end = g->end[0];
    uint64_t middle = end - ahead, middle_end = first + behind; /* of the second, where M is */
    const block blocks[] = {{{first + ahead, first}, middle - first},
                            {{first, middle_end}, end - middle_end},
                            {{middle + ahead - behind, middle}, middle_end - middle}};
    bool agree;

    if (ahead >= end - first || behind >= end - first || middle > middle_end)
        return IRON_OK;
    IRON_TRY(blocks_agree(run, blocks, 3, &agree, err));
    if (agree) {
        e->kind = IRON_DIFF_REORDERED;
        e->source = first + ahead;
    }
    return IRON_OK;
}

/* By how much tokens of the second's gap were found further on in the first; modulo 2^64, those
 * further back. */
typedef struct distances {
    uint64_t by[HITS_MAX];
    size_t count;
    bool has_begin; /* what the second's gap begins with was found */
} distances;

static distances list_distances(const seed_scan *scan, const uint64_t starts[2]) {
    distances d = {.count = 0};

    for (size_t k = 0; k < atomic_load(&scan->hit_count); k++) {
        const seed_hit *hit = &scan->hits[k];
        uint64_t by = hit->at - (starts[hit->needle] + hit->offset);
        size_t known = 0;

        d.has_begin = d.has_begin || (hit->needle == 0 && by != 0);
        while (known < d.count && d.by[known] != by)
            known++;
        if (by != 0 && known == d.count)
            d.by[d.count++] = by;
    }
    return d;
}

static bool is_ahead(uint64_t by) { return by <= INT64_MAX; }

static iron_status try_distances(diff_run *run, const text_gap *g, const distances *d, edit *e,
                                 iron_error *err) {
    uint64_t gap = g->end[0] - g->first;

    for (size_t i = 0; i < d->count; i++)
        for (size_t k = 0; k < d->count && e->kind == IRON_DIFF_CHANGED; k++) {
            if (!is_ahead(d->by[i]) || is_ahead(d->by[k]))
                continue;
            IRON_TRY(try_move(run, g, d->by[i], -d->by[k], e, err));
            if (e->kind == IRON_DIFF_CHANGED)
                IRON_TRY(try_swap(run, g, d->by[i], -d->by[k], e, err));
        }
    /* one block is too short for a seed: its distance follows from the other's; first those ahead,
     * then those behind */
    for (uint64_t slack = 0; slack <= SLACK_MAX / 4; slack++)
        for (size_t k = 0; k < 2 * d->count && e->kind == IRON_DIFF_CHANGED; k++) {
            bool wants_ahead = k < d->count;
            uint64_t by = d->by[k % d->count], far = is_ahead(by) ? by : -by;

            if (is_ahead(by) == wants_ahead && far < gap)
                IRON_TRY(try_move(run, g, wants_ahead ? far : gap + slack - far,
                                  wants_ahead ? gap + slack - far : far, e, err));
        }
    return IRON_OK;
}

static const size_t needle_lengths[] = {NEEDLE_MAX, 4096 + SEED_TOKENS - 1, 256, 64};

#define NEEDLE_COUNT (sizeof needle_lengths / sizeof needle_lengths[0])

/* Searches the first's gap for the beginning and the end of the second's, with long needles first,
 * since finding them costs next to nothing. *has_begin: the first's gap has what the second's
 * begins with, in another place. */
static iron_status find_exchange(diff_run *run, const text_gap *g, edit *e, bool *has_begin,
                                 iron_error *err) {
    uint64_t gap = g->end[0] - g->first;

    for (size_t k = 0; k < NEEDLE_COUNT && e->kind == IRON_DIFF_CHANGED; k++) {
        size_t length = needle_lengths[k];
        const uint64_t starts[2] = {g->first, g->end[1] - length};
        seeds needles[2] = {{0}};
        seed_scan scan = {.text = &run->text[0],
                          .first = g->first,
                          .end = g->end[0],
                          .needles = needles,
                          .needle_count = 2};
        iron_status status = IRON_OK;
        distances d;

        if (length > gap || (length < 256 && gap > AHEAD_MAX)) /* the latter is costly */
            continue;
        for (int i = 0; i < 2 && status == IRON_OK; i++)
            status = load_needle(&needles[i], &run->text[1], starts[i], length, err);
        if (status == IRON_OK)
            status = scan_text(run, &scan, err);
        for (int i = 0; i < 2; i++)
            free_seeds(&needles[i]);
        IRON_TRY(status);
        d = list_distances(&scan, starts);
        *has_begin = *has_begin || d.has_begin;
        IRON_TRY(try_distances(run, g, &d, e, err));
    }
    return IRON_OK;
}

/* One edit: more blocks in another order. The second's gap is taken apart into blocks of the
 * first's, each as long as possible; if they make up all of the first's gap, these are the same
 * tokens. */

#define BLOCKS_MAX 1024u

/* The longest block of the first's gap that begins at a place of the second's, found by a needle of
 * this length. */
static iron_status find_block(diff_run *run, const text_gap *g, size_t length, block *b,
                              iron_error *err) {
    seed_scan scan;

    IRON_TRY(find_needle(run, 0, g->first, g->end[0], b->at[1], length, &scan, err));
    for (size_t k = 0; k < atomic_load(&scan.hit_count); k++) {
        uint64_t at = scan.hits[k].at - scan.hits[k].offset, same;

        if (scan.hits[k].at < scan.hits[k].offset + g->first)
            continue;
        IRON_TRY(agree_from(run, at, b->at[1], iron__min(g->end[0] - at, g->end[1] - b->at[1]),
                            &same, err));
        if (same > b->length) {
            b->at[0] = at;
            b->length = same;
        }
    }
    return IRON_OK;
}

/* Tokens by which two blocks overlap in the first agree by chance: they belong to the block that
 * follows in the second. */
static iron_status trim_blocks(diff_run *run, block *blocks, size_t count, iron_error *err) {
    for (size_t k = 0; k + 1 < count; k++) {
        block *b = &blocks[k], *after = NULL;
        uint64_t end = b->at[0] + b->length, over, same;

        over = end > blocks[k + 1].at[0] ? end - blocks[k + 1].at[0] : 0;
        for (size_t i = 0; i < count && over; i++)
            if (blocks[i].at[1] == b->at[1] + b->length)
                after = &blocks[i];
        if (!after || over >= b->length || over > iron__min(after->at[0], SLACK_MAX))
            continue;
        IRON_TRY(agree_before(run, after->at[0], after->at[1], over, &same, err));
        if (same < over)
            continue;
        b->length -= over;
        after->length += over;
        after->at[0] -= over;
        after->at[1] -= over;
    }
    return IRON_OK;
}

static iron_status find_order(diff_run *run, const text_gap *g, edit *e, iron_error *err) {
    uint64_t gap = g->end[0] - g->first, left = 16 * AHEAD_MAX + gap / 2, end = g->first, source;
    block blocks[BLOCKS_MAX];
    size_t count = 0;

    for (uint64_t at = g->first; at < g->end[1] && count < BLOCKS_MAX;
         at += blocks[count++].length) {
        block *b = &blocks[count];

        *b = (block){.at = {0, at}};
        for (size_t k = 0; k < NEEDLE_COUNT && b->length == 0; k++) {
            uint64_t cost = gap / (needle_lengths[k] / 256 + 1);

            if (needle_lengths[k] > g->end[1] - at || cost > left)
                continue;
            left -= cost;
            IRON_TRY(find_block(run, g, needle_lengths[k], b, err));
        }
        if (b->length == 0)
            break; /* not all of it */
    }
    if (count == 0)
        return IRON_OK;
    source = blocks[0].at[0];
    qsort(blocks, count, sizeof *blocks, iron__by_first_number);
    IRON_TRY(trim_blocks(run, blocks, count, err));
    for (size_t k = 0; k < count && blocks[k].at[0] == end; k++)
        end += blocks[k].length;
    if (end == g->end[0]) {
        e->kind = IRON_DIFF_REORDERED;
        e->source = source;
    }
    return IRON_OK;
}

/* Several edits: from one place where both agree again to the next. */

typedef struct edit_list {
    edit edits[EDITS_MAX];
    size_t count;
    bool has_more;
} edit_list;

typedef struct walk {
    diff_run *run;
    const text_gap *gap;
    uint64_t at[2];    /* here both differ */
    uint32_t *ahead;   /* tokens of the second from there on */
    uint64_t searched; /* tokens, so far */
} walk;

/* A place where both agree again: so many tokens further on in each. */
typedef struct resync {
    bool is_found;
    uint64_t skip[2];
} resync;

static void keep_nearer(resync *best, uint64_t a, uint64_t b) {
    if (!best->is_found || a + b < best->skip[0] + best->skip[1])
        *best = (resync){true, {a, b}};
}

/* Looks for seeds of the first's next tokens in the second's. The tokens before a seed that agree
 * belong to what agrees. */
static void find_near_seeds(const seeds *s, const uint32_t *ahead, size_t count, resync *best) {
    const uint64_t weight = seed_weight();
    uint64_t hash = 0;

    for (size_t k = 0; k + SEED_TOKENS <= count; k++) {
        const uint32_t *seed = ahead + k;
        size_t a, b = k;

        if (best->is_found && k >= best->skip[0] + best->skip[1] + SEED_TOKENS)
            break;
        hash = k ? hash * HASH_FACTOR + seed[SEED_TOKENS - 1] - seed[-1] * weight : seed_hash(seed);
        a = *seed_slot(s, seed, hash);
        if (a-- == 0 || (best->is_found && a - b == best->skip[0] - best->skip[1]))
            continue; /* none, or more of the same */
        for (; a > 0 && b > 0 && s->tokens[a - 1] == ahead[b - 1]; a--)
            b--;
        keep_nearer(best, a, b);
    }
}

/* Searches the next `most` tokens of the gap: after it both agree anyway. */
static iron_status find_near(walk *w, uint64_t most, resync *best, iron_error *err) {
    const diff_text *text = w->run->text;
    size_t count[2];
    seeds s;
    iron_status status;

    for (int side = 0; side < 2; side++) {
        uint64_t end = w->gap->end[side];

        count[side] = end > w->at[side] ? (size_t)iron__min(most, end - w->at[side]) : 0;
    }
    if (count[0] < SEED_TOKENS || count[1] < SEED_TOKENS)
        return IRON_OK;
    w->searched += count[0] + count[1];
    IRON_TRY(make_seeds(&s, count[0], most > 4096 ? SEED_TOKENS : 1, err));
    status = text_read(&text[0], w->at[0], s.tokens, count[0], err);
    if (status == IRON_OK)
        status = text_read(&text[1], w->at[1], w->ahead, count[1], err);
    if (status == IRON_OK) {
        enter_seeds(&s);
        find_near_seeds(&s, w->ahead, count[1], best);
    }
    free_seeds(&s);
    return status;
}

/* Searches a side, from where both differ to the end, for the other's next tokens. */
static iron_status find_far(walk *w, int side, resync *best, iron_error *err) {
    diff_run *run = w->run;
    seed_scan scan;

    if (run->text[!side].tokens - w->at[!side] < NEEDLE_MAX)
        return IRON_OK;
    IRON_TRY(find_needle(run, side, w->at[side], run->text[side].tokens, w->at[!side], NEEDLE_MAX,
                         &scan, err));
    for (size_t k = 0; k < atomic_load(&scan.hit_count); k++) {
        uint64_t skip[2], back;

        skip[side] = scan.hits[k].at - w->at[side];
        skip[!side] = scan.hits[k].offset;
        IRON_TRY(agree_before(run, w->at[0] + skip[0], w->at[1] + skip[1],
                              iron__min(skip[0], skip[1]), &back, err));
        keep_nearer(best, skip[0] - back, skip[1] - back);
    }
    return IRON_OK;
}

/* The place where both agree to their ends is known; it may be the nearest. */
static void keep_end(const walk *w, uint64_t most, resync *best) {
    uint64_t left[2], same, skip[2];

    for (int side = 0; side < 2; side++)
        left[side] = w->run->text[side].tokens - w->at[side];
    same = iron__min(w->run->text[0].tokens - w->gap->end[0], iron__min(left[0], left[1]));
    for (int side = 0; side < 2; side++)
        skip[side] = left[side] - same;
    if (skip[0] <= most && skip[1] <= most)
        keep_nearer(best, skip[0], skip[1]);
}

static iron_status find_resync(walk *w, resync *best, iron_error *err) {
    *best = (resync){.is_found = false};
    for (uint64_t most = 4096; most <= AHEAD_MAX && !best->is_found;
         most *= most < 65536 ? 16 : 8) {
        IRON_TRY(find_near(w, most, best, err));
        keep_end(w, most, best);
    }
    for (int side = 0; side < 2 && !best->is_found; side++)
        IRON_TRY(find_far(w, side, best, err));
    keep_end(w, UINT64_MAX, best);
    return IRON_OK;
}

/* An edit of so many tokens. */
static edit make_edit(const walk *w, const uint64_t count[2]) {
    const diff_text *text = w->run->text;
    edit e = {.at = {w->at[0], w->at[1]},
              .count = {count[0], count[1]},
              .kind = IRON_DIFF_CHANGED,
              .position = w->at[1],
              .length = count[1],
              .source = IRON_COUNT_UNKNOWN};

    if (count[0] == 0)
        e.kind = w->at[0] == text[0].tokens ? IRON_DIFF_EXTENDED : IRON_DIFF_INSERTED;
    if (count[1] == 0) {
        e.kind = w->at[1] == text[1].tokens ? IRON_DIFF_TRUNCATED : IRON_DIFF_DELETED;
        e.position = w->at[0];
        e.length = count[0];
    }
    return e;
}

static iron_status walk_gap(walk *w, edit_list *list, iron_error *err) {
    const diff_text *text = w->run->text;
    const uint64_t *end = w->gap->end, budget = 8 * AHEAD_MAX + text[0].tokens / 4;

    for (;;) {
        uint64_t rest[2] = {text[0].tokens - w->at[0], text[1].tokens - w->at[1]};
        uint64_t left, to_end, same;
        resync next;
        bool is_known;
        edit e, *last;

        list->has_more = list->count == EDITS_MAX || w->searched > budget;
        if (list->has_more || (rest[0] == 0 && rest[1] == 0))
            return IRON_OK;
        if (rest[0] == 0 || rest[1] == 0)
            next = (resync){true, {rest[0], rest[1]}};
        else
            IRON_TRY(find_resync(w, &next, err));
        e = make_edit(w, next.skip);
        last = list->count ? &list->edits[list->count - 1] : NULL;
        /* changes in place that are close together are one */
        if (last && last->kind == IRON_DIFF_CHANGED && e.kind == IRON_DIFF_CHANGED &&
            last->count[0] == last->count[1] && e.count[0] == e.count[1] &&
            e.at[1] - last->at[1] - last->count[1] < APART_MIN)
            last->count[0] = last->count[1] = last->length = e.at[1] + e.count[1] - last->at[1];
        else
            list->edits[list->count++] = e;
        for (int side = 0; side < 2; side++)
            w->at[side] += next.skip[side];
        left = iron__min(text[0].tokens - w->at[0], text[1].tokens - w->at[1]);
        to_end = w->at[0] < end[0] ? end[0] - w->at[0] : 0;
        is_known = w->at[0] - w->at[1] == end[0] - end[1]; /* what follows the gap agrees */
        IRON_TRY(agree_from(w->run, w->at[0], w->at[1], is_known ? to_end : left, &same, err));
        if (is_known && same == to_end)
            same = text[0].tokens - w->at[0];
        w->at[0] += same;
        w->at[1] += same;
    }
}

/* The first edit took a block away or put one in, and a later one did the opposite with the same
 * block: one edit, which moved it. Two changes that exchanged their blocks reordered them. */
static iron_status join_with_first(diff_run *run, edit_list *list, iron_error *err) {
    edit *first = &list->edits[0];

    for (size_t k = 1; k < list->count; k++) {
        const edit *e = &list->edits[k];
        bool is_there = e->count[0] == first->count[1] && e->count[1] == first->count[0] &&
                        e->count[0] + e->count[1] >= SEED_TOKENS;
        uint64_t same[2] = {0, 0};

        if (is_there && e->count[1])
            IRON_TRY(agree_from(run, first->at[0], e->at[1], e->count[1], &same[1], err));
        if (is_there && e->count[0] && same[1] == e->count[1])
            IRON_TRY(agree_from(run, e->at[0], first->at[1], e->count[0], &same[0], err));
        if (!is_there || same[0] != e->count[0] || same[1] != e->count[1])
            continue;
        if (e->count[0] && e->count[1]) {
            first->kind = IRON_DIFF_REORDERED;
            first->length = e->at[1] + e->count[1] - first->at[1];
            first->source = e->at[0];
        } else {
            first->kind = IRON_DIFF_MOVED;
            first->length = e->count[0] + e->count[1];
            first->position = e->count[0] ? first->at[1] : e->at[1];
            first->source = e->count[0] ? e->at[0] : first->at[0];
        }
        memmove(&list->edits[k], &list->edits[k + 1],
                (list->count - k - 1) * sizeof list->edits[0]);
        list->count--;
        return IRON_OK;
    }
    return IRON_OK;
}

/* From the first difference to the last. */
static iron_status find_gap(diff_run *run, text_gap *g, iron_error *err) {
    const iron_diff_report *r = &run->diff->report;
    uint64_t left = common_tokens(r) - r->first, same;

    IRON_TRY(agree_before(run, r->tokens[0], r->tokens[1], left, &same, err));
    g->first = r->first;
    for (int side = 0; side < 2; side++)
        g->end[side] = r->tokens[side] - same;
    return IRON_OK;
}

/* Fills the list with at least one edit. */
static iron_status list_edits(diff_run *run, const text_gap *g, edit_list *list, iron_error *err) {
    walk w = {.run = run, .gap = g, .at = {g->first, g->first}};
    uint64_t count[2] = {g->end[0] - g->first, g->end[1] - g->first};
    edit one = make_edit(&w, count), *first = &list->edits[0];
    bool has_begin = false;
    iron_status status;

    if (count[0] == count[1])
        IRON_TRY(find_exchange(run, g, &one, &has_begin, err));
    if (has_begin && one.kind == IRON_DIFF_CHANGED)
        IRON_TRY(find_order(run, g, &one, err));
    if (one.kind == IRON_DIFF_CHANGED) {
        IRON_TRY(IRON_ALLOCATE(&w.ahead, iron__allocator_default(),
                               (size_t)iron__min(AHEAD_MAX, run->text[1].tokens),
                               "tokens to search", err));
        status = walk_gap(&w, list, err);
        iron__release(iron__allocator_default(), w.ahead);
        IRON_TRY(status);
        IRON_TRY(join_with_first(run, list, err));
    } else {
        list->edits[list->count++] = one;
    }
    if (first->kind == IRON_DIFF_INSERTED || first->kind == IRON_DIFF_EXTENDED ||
        first->kind == IRON_DIFF_CHANGED)
        IRON_TRY(find_source(run, first, err));
    return IRON_OK;
}

/* Did all edits that were found leave everything else in its place? */
static bool are_in_place(const edit_list *list) {
    for (size_t k = 0; k < list->count; k++) {
        const edit *e = &list->edits[k];
        bool is_end = e->kind == IRON_DIFF_TRUNCATED || e->kind == IRON_DIFF_EXTENDED;
        bool is_change = e->kind == IRON_DIFF_CHANGED || e->kind == IRON_DIFF_REPEATED;

        if (!is_end && !(is_change && e->count[0] == e->count[1]))
            return false;
    }
    return true;
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

/* A mark's positions in both. */
typedef struct mark_pair {
    uint64_t at[2];
} mark_pair;

/* The manifest's marks from a chunk on that occur once, sorted. */
static iron_status list_marks(const iron_manifest *m, uint64_t chunk, placed_mark **marks,
                              size_t *count, iron_error *err) {
    size_t once = 0;

    *count = 0;
    IRON_TRY(IRON_NEW(marks, m->chunk_count, "marks of chunks", err));
    for (uint64_t k = chunk; k < m->chunk_count; k++)
        if (m->chunks[k].mark != IRON_MARK_NONE)
            (*marks)[(*count)++] =
                (placed_mark){m->chunks[k].mark, k * m->chunk_tokens + m->chunks[k].mark_at};
    qsort(*marks, *count, sizeof **marks, iron__by_first_number);
    for (size_t k = 0, next; k < *count; k = next) {
        for (next = k + 1; next < *count && (*marks)[next].mark == (*marks)[k].mark; next++)
            ;
        if (next == k + 1)
            (*marks)[once++] = (*marks)[k];
    }
    *count = once;
    return IRON_OK;
}

/* Differences modulo 2^64 compare as well as signed ones. */
static uint64_t moved_by(const mark_pair *p) { return p->at[1] - p->at[0]; }

/* `apart`: up to there nothing has moved. */
static void vote(const mark_pair *pairs, size_t count, uint64_t length_says, uint64_t apart,
                 marks_shift *shift) {
    uint64_t moved = 0;

    for (size_t k = 0; k < count; k++) {
        uint64_t says = moved_by(&pairs[k]);
        size_t votes = 0, seen = 0;

        if (!shift->is_found && says == 0)
            apart = pairs[k].at[0];
        if (shift->is_found && says == moved)
            shift->votes++;
        if (says == moved)
            continue;
        for (; seen < NEXT_PAIRS && k + seen < count; seen++)
            votes += moved_by(&pairs[k + seen]) == says;
        if (2 * votes < seen || (votes < 2 && says != length_says))
            continue; /* the next pairs do not confirm it */
        if (shift->is_found) {
            shift->has_more = true;
        } else {
            shift->is_found = true;
            shift->votes = 1;
            shift->apart = apart;
            shift->at[0] = pairs[k].at[0];
            shift->at[1] = pairs[k].at[1];
            moved = says;
        }
    }
}

/* Searches chunks from `chunk` on. */
static iron_status find_marks_shift(const iron_manifest *a, const iron_manifest *b, uint64_t chunk,
                                    marks_shift *shift, iron_error *err) {
    placed_mark *marks[2] = {NULL, NULL};
    mark_pair *pairs = NULL;
    size_t count[2], pair_count = 0;
    uint64_t at;
    iron_status status = list_marks(a, chunk, &marks[0], &count[0], err);

    *shift = (marks_shift){0};
    if (status == IRON_OK)
        status = list_marks(b, chunk, &marks[1], &count[1], err);
    if (status == IRON_OK)
        status = IRON_NEW(&pairs, count[0], "marks of chunks", err);
    if (status == IRON_OK) {
        for (size_t i = 0, j = 0; i < count[0] && j < count[1];) {
            placed_mark x = marks[0][i], y = marks[1][j];

            if (x.mark == y.mark)
                pairs[pair_count++] = (mark_pair){{x.position, y.position}};
            i += x.mark <= y.mark;
            j += y.mark <= x.mark;
        }
        qsort(pairs, pair_count, sizeof *pairs, iron__by_first_number);
        vote(pairs, pair_count, b->tokens - a->tokens, chunk * a->chunk_tokens, shift);
    }
    /* chunks between where they part and the first vote, not counting what was inserted */
    at = iron__min(shift->at[0], shift->at[1]);
    if (at > shift->apart && shift->votes < (at - shift->apart) / a->chunk_tokens)
        shift->is_found = false;
    free(marks[0]);
    free(marks[1]);
    free(pairs);
    return status;
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

/* Any order in which equal chunks follow each other. */
static int by_words(const void *x, const void *y) {
    return memcmp(x, y, offsetof(placed_chunk, index));
}

static placed_chunk *sorted_chunks(const iron_manifest *m) {
    placed_chunk *chunks = calloc(m->chunk_count + 1, sizeof *chunks);

    if (!chunks)
        return NULL;
    for (size_t k = 0; k < m->chunk_count; k++)
        chunks[k] = (placed_chunk){iron__manifest_chunk_tokens(m, k), m->chunks[k].t,
                                   m->chunks[k].a, m->chunks[k].b, k};
    qsort(chunks, m->chunk_count, sizeof *chunks, by_words);
    return chunks;
}

static bool is_in_place(const iron_manifest *a, const iron_manifest *b, uint64_t k) {
    return k < a->chunk_count && k < b->chunk_count && chunks_equal(a, k, b, k);
}

/* Both manifests must have chunks of one size. */
static iron_status find_moves(const iron_manifest *a, const iron_manifest *b, chunk_moves *moves,
                              iron_error *err) {
    placed_chunk *sorted[2] = {sorted_chunks(a), sorted_chunks(b)};
    const placed_chunk *next[2] = {sorted[0], sorted[1]};
    size_t left[2] = {a->chunk_count, b->chunk_count};
    iron_status status =
        sorted[0] && sorted[1] ? IRON_OK : iron__no_memory(err, "a list of chunks");

    *moves = (chunk_moves){.from = UINT64_MAX, .to = UINT64_MAX};
    while (status == IRON_OK && (left[0] > 0 || left[1] > 0)) {
        bool takes_a = left[1] == 0 || (left[0] > 0 && by_words(next[0], next[1]) <= 0);
        const placed_chunk *like = takes_a ? next[0] : next[1];
        uint64_t count[2] = {0, 0}, first[2] = {UINT64_MAX, UINT64_MAX}; /* of equal chunks */
        uint64_t gone[2] = {UINT64_MAX, UINT64_MAX}, elsewhere = 0;      /* those not in place */

        for (int side = 0; side < 2; side++)
            for (; left[side] > 0 && by_words(next[side], like) == 0; left[side]--) {
                uint64_t at = next[side]++->index;

                count[side]++;
                first[side] = iron__min(first[side], at);
                if (is_in_place(a, b, at))
                    continue;
                gone[side] = iron__min(gone[side], at);
                elsewhere += side == 0;
            }
        if (count[0] > count[1])
            moves->missing += count[0] - count[1];
        else
            moves->excess += count[1] - count[0];
        if (count[0] == 0)
            moves->foreign += count[1];
        if (count[0] == 0 || count[1] == 0)
            continue;
        moves->elsewhere += elsewhere;
        if (gone[0] == UINT64_MAX) /* all are still in place: a copy */
            gone[0] = first[0];
        if (gone[1] != UINT64_MAX && gone[0] < moves->from) {
            moves->from = gone[0];
            moves->to = gone[1];
        }
    }
    free(sorted[0]);
    free(sorted[1]);
    return status;
}

/* A shift suggested by marks, verified where one side is a manifest and the other has its
 * tokens: the words of the manifest's chunks are computed again from the tokens that are where
 * the shift says. All threads, one chunk per piece; the first that is wrong ends it. */

/* Chunks between two reports of progress: some hundred megabytes of the usual size. */
#define ROUND_CHUNKS 128u

typedef struct verification {
    rounds rounds; /* of chunks; ended: one is wrong */
    const iron_manifest *known;
    const diff_text *text;
    uint64_t by; /* the shift */
} verification;

static iron_status verify_chunk(void *context, uint32_t worker, uint64_t index,
                                const atomic_bool *stop, iron_error *err) {
    verification *v = context;
    uint64_t chunk = v->rounds.next + index;
    const iron__chunk *c = &v->known->chunks[chunk];
    iron__seal_words words;

    (void)worker;
    (void)stop;
    if (atomic_load_explicit(&v->rounds.is_ended, memory_order_relaxed))
        return IRON_OK;
    IRON_TRY(words_at(v->text, chunk * v->known->chunk_tokens + v->by,
                      iron__manifest_chunk_tokens(v->known, (size_t)chunk), &words, err));
    if (!chunk_has_words(c, &words))
        atomic_store(&v->rounds.is_ended, true);
    return IRON_OK;
}

/* Is every chunk of side `known` from `chunk` on found `by` tokens (modulo 2^64) further on in the
 * tokens of the other side? False too if there is no such chunk, or not all of them can be there: a
 * chunk that reaches past the end cannot be verified. */
static iron_status verify_chunks(diff_run *run, int known, uint64_t chunk, uint64_t by,
                                 bool *all_found, iron_error *err) {
    const iron_manifest *m = run->manifest[known];
    const diff_text *text = &run->text[!known];
    verification v = {.rounds = {.pieces = m->chunk_count, .round = ROUND_CHUNKS, .next = chunk},
                      .known = m,
                      .text = text,
                      .by = by};
    const iron__ordered_run all = {.piece = verify_chunk, .context = &v};

    *all_found = chunk < m->chunk_count && chunk * m->chunk_tokens + by <= text->tokens &&
                 m->tokens + by <= text->tokens;
    if (!*all_found)
        return IRON_OK;
    IRON_TRY(run_rounds(run, &v.rounds, all, m->chunk_tokens, m->tokens, err));
    *all_found = !atomic_load(&v.rounds.is_ended);
    return IRON_OK;
}

/* The sentences. They say what was seen and no more, and call the two streams "the first" and "the
 * second", since a finding must fit into one line with any names. */

/* Appends to the sentence. */
#define say(run, ...)                                                                              \
    (void)iron__append((run)->diff->report.text, sizeof(run)->diff->report.text, __VA_ARGS__)

/* Every sentence ends with the note. */
static void finish(diff_run *run, iron_diff_kind kind, bool is_verified) {
    run->diff->report.kind = kind;
    run->diff->report.is_verified = is_verified && !run->is_unsure;
    say(run, "%s", run->note);
}

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

static const char *were(uint64_t count) { return count == 1 ? "was" : "were"; }

static void set_edit(diff_run *run, uint64_t position, uint64_t length, uint64_t source) {
    iron_diff_report *r = &run->diff->report;

    r->position = position;
    r->length = length;
    r->source = source;
}

/* The shorter one is the beginning of the longer. */
static void report_beginning(diff_run *run, bool is_verified) {
    iron_diff_report *r = &run->diff->report;
    bool is_cut = r->tokens[1] < r->tokens[0];
    uint64_t more = longer_tokens(r) - common_tokens(r);

    set_edit(run, common_tokens(r), more, IRON_COUNT_UNKNOWN);
    r->edits = 1;
    say(run, "the %s is the beginning of the %s, which has %" PRIu64 " token%s more",
        is_cut ? "second" : "first", is_cut ? "first" : "second", more, plural(more));
    if (!is_verified)
        say(run,
            "; positions %" PRIu64 " to %" PRIu64
            " could not be compared: the files are not available",
            r->first, common_tokens(r) - 1);
    finish(run, is_cut ? IRON_DIFF_TRUNCATED : IRON_DIFF_EXTENDED, is_verified);
}

/* Names the first edit, and says how many there are. */
static void report_edits(diff_run *run, const edit_list *list) {
    const edit *e = &list->edits[0];
    iron_diff_report *r = &run->diff->report;
    uint64_t last;

    if (list->count == 1 && !list->has_more &&
        (e->kind == IRON_DIFF_TRUNCATED || e->kind == IRON_DIFF_EXTENDED)) {
        report_beginning(run, true);
        return;
    }
    set_edit(run, e->position, e->length, e->source);
    r->edits = list->count;
    r->has_more_edits = list->has_more;
    last = e->position + e->length - 1;
    switch (e->kind) {
    case IRON_DIFF_TRUNCATED:
    case IRON_DIFF_DELETED:
        say(run, "%" PRIu64 " token%s of the first, from position %" PRIu64 " on, %s deleted",
            e->length, plural(e->length), e->position, were(e->length));
        break;
    case IRON_DIFF_EXTENDED:
    case IRON_DIFF_INSERTED:
        say(run, "%" PRIu64 " token%s %s inserted at position %" PRIu64, e->length,
            plural(e->length), were(e->length), e->position);
        break;
    case IRON_DIFF_REPEATED:
        say(run,
            "at position %" PRIu64 " the second repeats %" PRIu64
            " tokens of the first, from its position %" PRIu64 " on%s",
            e->position, e->length, e->source, e->count[0] ? ", in place of others" : "");
        break;
    case IRON_DIFF_MOVED:
        say(run,
            "%" PRIu64 " token%s moved from position %" PRIu64 " of the first to %" PRIu64
            " of the second",
            e->length, plural(e->length), e->source, e->position);
        break;
    case IRON_DIFF_REORDERED:
        say(run,
            "positions %" PRIu64 " to %" PRIu64
            " have the same tokens in another order: blocks changed places",
            e->position, last);
        break;
    default:
        if (e->count[0] == e->count[1] && e->length == 1)
            say(run, "the token at position %" PRIu64 " changed", e->position);
        else if (e->count[0] == e->count[1])
            say(run, "tokens changed from position %" PRIu64 " to %" PRIu64, e->position, last);
        else
            say(run, "at position %" PRIu64 " %" PRIu64 " token%s became %" PRIu64 " others",
                e->position, e->count[0], plural(e->count[0]), e->count[1]);
    }
    if (list->count == 1 && !list->has_more) {
        if (e->count[0] < r->tokens[0] || e->count[1] < r->tokens[1])
            say(run, "; the rest agrees");
    } else {
        say(run, "; the first of %s%zu edits", list->has_more ? "more than " : "", list->count);
    }
    finish(run, e->kind, true);
}

/* The chunk after the last one that differs. */
static uint64_t differing_end(const diff_run *run) {
    uint64_t end = run->diff->report.chunks;

    while (end > 0 && !bits_has(&run->diff->bits, end - 1))
        end--;
    return end;
}

/* is_verified: the words of all chunks after the first difference were found at the shift. */
static void report_marks(diff_run *run, const marks_shift *shift, bool is_verified) {
    const diff_bits *bits = &run->diff->bits;
    uint64_t chunk = iron__min(shift->at[0], shift->at[1]) / bits->chunk_tokens, place;
    bool is_more = shift->at[1] > shift->at[0];
    uint64_t by = is_more ? shift->at[1] - shift->at[0] : shift->at[0] - shift->at[1];

    while (chunk > 0 && bits_has(bits, chunk - 1)) /* where the differing chunks begin */
        chunk--;
    place = chunk * bits->chunk_tokens;
    set_edit(run, place, by, IRON_COUNT_UNKNOWN);
    run->diff->report.has_more_edits = shift->has_more;
    say(run, "%" PRIu64 " token%s %s%s %s after position %" PRIu64, by, plural(by),
        is_verified ? "" : "apparently ", were(by), is_more ? "inserted" : "deleted", place);
    if (is_verified)
        say(run, "; the chunks after them agree");
    else
        say(run, ", as marks of %" PRIu64 " chunk%s suggest", shift->votes, plural(shift->votes));
    if (shift->has_more)
        say(run, "; there are more shifts further on");
    finish(run, is_more ? IRON_DIFF_INSERTED : IRON_DIFF_DELETED, is_verified);
}

/* All that chunks can tell: from the first that differs to the last; of streams that were compared
 * in order, from the first token to the last. */
static void set_changed(diff_run *run) {
    iron_diff_report *r = &run->diff->report;
    uint64_t end = iron__min(differing_end(run) * r->chunk_tokens, longer_tokens(r));

    if (run->last_end > 0 && r->tokens[0] == r->tokens[1])
        end = run->last_end;
    set_edit(run, r->first, end - r->first, IRON_COUNT_UNKNOWN);
    if (r->chunks == 1)
        say(run, "tokens differ");
    else
        say(run, "tokens differ in %" PRIu64 " of %" PRIu64 " chunks", r->differing_chunks,
            r->chunks);
}

static void report_changed(diff_run *run, const chunk_moves *moves) {
    set_changed(run);
    if (moves && moves->elsewhere)
        say(run,
            "; %" PRIu64 " chunk%s of the first stand%s elsewhere in the second (chunk %" PRIu64
            " at %" PRIu64 ")",
            moves->elsewhere, plural(moves->elsewhere), moves->elsewhere == 1 ? "s" : "",
            moves->from, moves->to);
    finish(run, IRON_DIFF_CHANGED, true);
}

/* The order of explanations: the surest and cheapest first. With the tokens of both, edits are
 * found in them. Otherwise only words and marks can tell, and what marks tell is a suggestion. */

/* Is the shorter one the beginning of the longer, as far as words can tell? Its last chunk is
 * shorter than the other's: it can be compared where the other's tokens are available. Otherwise
 * chunks before it that agree suggest it, or a mark that both have. */
static iron_status find_beginning(diff_run *run, bool *is_beginning, bool *is_verified,
                                  iron_error *err) {
    iron_diff_report *r = &run->diff->report;
    uint64_t common = common_tokens(r), chunk = r->first / run->diff->bits.chunk_tokens;
    int shorter = r->tokens[0] < r->tokens[1] ? 0 : 1;
    const iron_manifest *a = run->manifest[shorter], *b = run->manifest[!shorter];
    const diff_text *text = &run->text[!shorter];
    iron__seal_words words;

    *is_verified = true;
    *is_beginning = r->tokens[0] != r->tokens[1] && r->first == common;
    if (*is_beginning || r->first >= common || r->first_end <= common)
        return IRON_OK;
    if (!text->at) {
        const iron__chunk *x = &a->chunks[chunk], *y = &b->chunks[chunk];
        uint64_t tokens = iron__manifest_chunk_tokens(a, (size_t)chunk);
        bool has_mark = x->mark != IRON_MARK_NONE && x->mark == y->mark;

        /* could the beginning of b's chunk be all of a's? If b's smallest window is not in a, then
         * it reaches past a's end */
        *is_verified = y->mark == x->mark
                           ? has_mark && y->mark_at != x->mark_at
                           : y->mark > x->mark || y->mark_at + IRON_MARK_TOKENS <= tokens;
        *is_beginning = !*is_verified && (chunk > 0 || has_mark);
        return IRON_OK;
    }
    IRON_TRY(words_at(text, r->first, a->tokens - r->first, &words, err));
    *is_verified = *is_beginning = chunk_has_words(&a->chunks[chunk], &words);
    if (!*is_beginning)
        return IRON_OK;
    r->first = common; /* now known exactly */
    r->first_end = common + 1;
    r->has_value[!shorter] = 1;
    return text_read(text, common, &r->value[!shorter], 1, err);
}

/* One run of chunks that moved: did two adjacent runs of chunks change places, first ... middle-1
 * and middle ... end-1? In the second, the first run begins at `turn`. */
static bool report_moved(diff_run *run) {
    const iron_manifest *a = run->manifest[0], *b = run->manifest[1];
    const iron_diff_report *r = &run->diff->report;
    uint64_t first = r->first / r->chunk_tokens, end = differing_end(run), middle = first;
    uint64_t ahead, behind;
    bool is_exchange = false;

    while (!is_exchange && ++middle < end) {
        uint64_t turn = first + (end - middle), k = first;

        while (k < end &&
               chunks_equal(a, k < turn ? k + (middle - first) : k - (end - middle), b, k))
            k++;
        is_exchange = k == end;
    }
    if (!is_exchange || end * r->chunk_tokens > r->tokens[0])
        return false;
    ahead = (middle - first) * r->chunk_tokens;
    behind = (end - middle) * r->chunk_tokens;
    first *= r->chunk_tokens;
    if (behind <= ahead)
        set_edit(run, first, behind, first + ahead);
    else
        set_edit(run, first + behind, ahead, first);
    say(run,
        "%" PRIu64 " tokens moved from position %" PRIu64 " of the first to %" PRIu64
        " of the second; all other chunks agree",
        r->length, r->source, r->position);
    finish(run, IRON_DIFF_MOVED, true);
    return true;
}

static iron_status explain_words(diff_run *run, iron_error *err) {
    const iron_manifest *a = run->manifest[0], *b = run->manifest[1];
    const iron_diff_report *r = &run->diff->report;
    uint64_t chunk = r->first / run->diff->bits.chunk_tokens;
    marks_shift marks;
    chunk_moves moves;
    bool is_verified = false;
    int known = run->text[0].at ? 1 : 0;

    IRON_TRY(find_moves(a, b, &moves, err));
    if (moves.excess == 0 && moves.missing == 0) {
        if (report_moved(run))
            return IRON_OK;
        set_edit(run, r->first,
                 iron__min(differing_end(run) * r->chunk_tokens, r->tokens[1]) - r->first,
                 moves.from * r->chunk_tokens);
        say(run,
            "the same chunks in another order: %" PRIu64 " moved, the first is chunk %" PRIu64
            ", which stands at %" PRIu64 " in the second",
            moves.elsewhere, moves.from, moves.to);
        finish(run, IRON_DIFF_REORDERED, true);
        return IRON_OK;
    }
    if (moves.excess > 0 && moves.foreign == 0) {
        set_edit(run, moves.to * r->chunk_tokens, moves.excess * r->chunk_tokens,
                 moves.from * r->chunk_tokens);
        say(run,
            "%" PRIu64 " chunk%s of the first stand%s in the second once more: chunk %" PRIu64
            " also at %" PRIu64,
            moves.excess, plural(moves.excess), moves.excess == 1 ? "s" : "", moves.from, moves.to);
        if (moves.missing)
            say(run, "; %" PRIu64 " chunk%s of the first %s missing", moves.missing,
                plural(moves.missing), moves.missing == 1 ? "is" : "are");
        finish(run, IRON_DIFF_REPEATED, true);
        return IRON_OK;
    }
    IRON_TRY(find_marks_shift(a, b, chunk, &marks, err));
    if (!marks.is_found) {
        report_changed(run, &moves);
    } else if (r->tokens[0] == r->tokens[1] && !bits_has(&run->diff->bits, r->chunks - 1)) {
        bool is_more = marks.at[1] > marks.at[0];

        set_changed(run); /* a shift that ends again: at their ends both are at the same places */
        say(run,
            "; some of the first's tokens from about position %" PRIu64 " stand %" PRIu64
            " %s in the second",
            marks.at[0], is_more ? marks.at[1] - marks.at[0] : marks.at[0] - marks.at[1],
            is_more ? "later" : "earlier");
        finish(run, IRON_DIFF_CHANGED, true);
    } else {
        /* where one side's tokens are available, the other's chunks after the one that holds the
         * mark must all be found there */
        if (!marks.has_more && run->text[!known].at)
            IRON_TRY(verify_chunks(run, known, marks.at[known] / run->diff->bits.chunk_tokens + 1,
                                   marks.at[!known] - marks.at[known], &is_verified, err));
        report_marks(run, &marks, is_verified);
    }
    return IRON_OK;
}

/* Fills the report's kind, edit, is_verified and text. */
static iron_status explain(diff_run *run, iron_error *err) {
    iron_diff_report *r = &run->diff->report;
    bool is_small = r->differing_chunks == 1 && r->tokens[0] == r->tokens[1];
    bool is_beginning, is_verified;

    r->edits = IRON_COUNT_UNKNOWN;
    if (r->first == IRON_COUNT_UNKNOWN) {
        set_edit(run, IRON_COUNT_UNKNOWN, 0, IRON_COUNT_UNKNOWN);
        r->edits = 0;
        say(run, "the same %" PRIu64 " token%s%s", r->tokens[0], plural(r->tokens[0]),
            run->has_same_seal ? "; their seals are equal" : "");
        finish(run, IRON_DIFF_EQUAL, true);
        return IRON_OK;
    }
    /* a place that is not exact: files have changed since their words were made */
    if (has_texts(run) && r->first_end == r->first + 1) {
        edit_list list = {.count = 0};
        text_gap gap;

        IRON_TRY(find_gap(run, &gap, err));
        /* values that are not tokens are errors wherever they are; what is outside the gap was
         * read */
        for (int side = 0; side < 2; side++) {
            const diff_text *text = &run->text[side];
            const text_pair alone = {
                .text = {text}, .from = {gap.first}, .count = gap.end[side] - gap.first};
            uint64_t first;

            if (can_be_bad(text))
                IRON_TRY(compare_texts(run, &alone, &first, err));
        }
        IRON_TRY(list_edits(run, &gap, &list, err));
        /* which chunks differ, unless words have told it: those of the gap are compared in place
         * if nothing has moved; otherwise all of them count as different, and so does what follows
         * if the lengths differ */
        if (!(run->manifest[0] && run->manifest[1])) {
            uint64_t common = iron__min(gap.end[0], gap.end[1]);
            text_pair pair = both_texts(run, gap.first, gap.first, common - gap.first);
            bool is_even = gap.end[0] == gap.end[1], is_there = are_in_place(&list);

            pair.bits = &run->diff->bits;
            if (!is_even || !is_there)
                bits_set_tokens(pair.bits, is_there ? common : gap.first,
                                is_even ? common : longer_tokens(r));
            if (is_there)
                IRON_TRY(compare_texts(run, &pair, &common, err));
        }
        report_edits(run, &list);
        return IRON_OK;
    }
    IRON_TRY(find_beginning(run, &is_beginning, &is_verified, err));
    if (!is_beginning && !is_verified) {
        run->is_unsure = true;
        iron__append(run->note, sizeof run->note,
                     "; only files can tell whether the shorter is the beginning of the longer");
    }
    if (is_beginning) {
        report_beginning(run, is_verified);
        return IRON_OK;
    }
    if (!is_small && run->manifest[0] && run->manifest[1])
        return explain_words(run, err);
    if (!is_small)
        snprintf(run->note, sizeof run->note,
                 "; moved tokens can be found in files, not in a pipe");
    report_changed(run, NULL);
    return IRON_OK;
}

/* Shuffled samples.
 *
 * Two streams of the same length whose bags agree have the same samples in another order. A single
 * edit that is known exactly says more, so bags are compared only if no such edit was found.
 * The bag of a side is its manifest's, or made from its tokens. */

/* Rows of one format are documents of another. */
static bool is_same_cut(iron_bag_cut x, iron_bag_cut y) {
    return iron__cut_is_own(x.kind) ? iron__cut_is_own(y.kind)
                                    : x.kind == y.kind && x.value == y.value;
}

/* Whether a side has, or its tokens can give, the bag of a cut. */
static bool has_bag(const diff_run *run, int side, iron_bag_cut cut) {
    const iron_manifest *m = manifest_of(run, side);
    iron_bag_cut own = {IRON_BAG_CUT_NONE, 0};

    if (m && m->bag_cut.kind != IRON_BAG_CUT_NONE && is_same_cut(m->bag_cut, cut))
        return true;
    if (!run->text[side].at)
        return false;
    return !iron__cut_is_own(cut.kind) ||
           (iron_bag_source_cut(run->source[side], &own, NULL) == IRON_OK &&
            own.kind != IRON_BAG_CUT_NONE);
}

static iron_status explain_by_bags(diff_run *run, iron_error *err) {
    iron_diff_report *r = &run->diff->report;
    uint64_t end = r->range_count ? run->diff->ranges[r->range_count - 1].end : r->tokens[0];
    /* an edit that is named exactly stays named; a range that merely contains all differences is
     * not such an edit */
    bool is_exact = r->edits == 1 && !r->has_more_edits && r->kind != IRON_DIFF_CHANGED &&
                    r->kind != IRON_DIFF_REORDERED;
    iron_bag_result bags[2];
    iron_bag_cut cut;
    static const iron_bag_cut own = {IRON_BAG_CUT_FORMAT, 0}, none = {IRON_BAG_CUT_NONE, 0};

    if (r->kind == IRON_DIFF_EQUAL || r->tokens[0] != r->tokens[1] || is_exact)
        return IRON_OK;
    /* what a sample is: as the caller wants; else as a manifest's bag says, for which the other
     * side has a bag too; else rows or documents. NONE: bags cannot be compared */
    cut = run->bag_cut;
    for (int side = 0; side < 2 && cut.kind != IRON_BAG_CUT_NONE; side++)
        IRON_FAIL_IF(!has_bag(run, side, cut), err, IRON_E_FORMAT,
                     "%.100s has no bag of such samples, and its files are not available; make "
                     "both manifests with one --sample or --eos",
                     side_name(run, side));
    for (int side = 0; side < 2 && cut.kind == IRON_BAG_CUT_NONE; side++)
        if (manifest_of(run, side) && has_bag(run, !side, manifest_of(run, side)->bag_cut))
            cut = manifest_of(run, side)->bag_cut;
    if (cut.kind == IRON_BAG_CUT_NONE)
        cut = has_bag(run, 0, own) && has_bag(run, 1, own) ? own : none;
    if (cut.kind == IRON_BAG_CUT_NONE)
        return IRON_OK;
    for (int side = 0; side < 2; side++) {
        const iron_manifest *m = manifest_of(run, side);
        iron_bag_options o;

        bags[side] = (iron_bag_result){.struct_size = sizeof bags[side]};
        if (m && m->bag_cut.kind != IRON_BAG_CUT_NONE && is_same_cut(m->bag_cut, cut)) {
            IRON_TRY(iron_manifest_bag(m, &bags[side], err));
            continue;
        }
        iron_bag_options_init(&o);
        o.threads = iron__thread_pool_threads(run->pool);
        o.cut = iron__cut_is_own(cut.kind) ? own : cut;
        o.progress = run->progress;
        o.context = run->context;
        IRON_TRY(iron_bag_source(run->source[side], &o, &bags[side], err));
    }
    if (bags[0].bag.hi != bags[1].bag.hi || bags[0].bag.lo != bags[1].bag.lo ||
        bags[0].bag.samples != bags[1].bag.samples)
        return IRON_OK;
    if (has_texts(run) && r->first_end == r->first + 1) {
        text_gap gap;

        IRON_TRY(find_gap(run, &gap, err));
        end = gap.end[1];
    }
    set_edit(run, r->first, end - r->first, IRON_COUNT_UNKNOWN);
    r->edits = 1;
    r->has_more_edits = false;
    r->bag_cut = bags[0].cut;
    r->text[0] = '\0';
    say(run,
        "both have the same %" PRIu64 " samples (%s) in another order, from position %" PRIu64
        " to %" PRIu64,
        bags[0].bag.samples, bags[0].cut_text, r->first, end - 1);
    finish(run, IRON_DIFF_SHUFFLED, true);
    return IRON_OK;
}

/* The comparison. */

/* Which chunks differ is known: how many, and in which ranges of positions. */
static iron_status find_ranges(iron_diff *d, iron_error *err) {
    iron_diff_report *r = &d->report;
    const diff_bits *bits = &d->bits;
    uint64_t longer = longer_tokens(r);
    size_t count = 0;

    r->chunk_tokens = bits->chunk_tokens;
    r->chunks = chunks_of(longer, r->chunk_tokens);
    r->differing_chunks = r->range_count = 0;
    for (uint64_t k = 0; k < r->chunks; k++) {
        r->differing_chunks += bits_has(bits, k);
        r->range_count += bits_has(bits, k) && (k == 0 || !bits_has(bits, k - 1));
    }
    free(d->ranges);
    d->ranges = calloc(r->range_count + 1, sizeof *d->ranges);
    IRON_FAIL_IF(!d->ranges, err, IRON_E_NOMEM,
                 "out of memory for %zu ranges of chunks; give a larger --chunk", r->range_count);
    for (uint64_t k = 0; k < r->chunks; k++) {
        if (!bits_has(bits, k))
            continue;
        if (k == 0 || !bits_has(bits, k - 1))
            d->ranges[count++].first = k * r->chunk_tokens;
        d->ranges[count - 1].end = k + 1 < r->chunks ? (k + 1) * r->chunk_tokens : longer;
    }
    return IRON_OK;
}

static iron_status run_comparison(diff_run *run, uint64_t chunk_tokens, iron_error *err) {
    IRON_TRY(open_sides(run, chunk_tokens, err));
    IRON_TRY(compare(run, err));
    IRON_TRY(find_ranges(run->diff, err));
    IRON_TRY(explain(run, err));
    if (has_texts(run)) /* edits have told which chunks differ */
        IRON_TRY(find_ranges(run->diff, err));
    return explain_by_bags(run, err);
}

iron_status iron_diff_run(const iron_diff_side *a, const iron_diff_side *b,
                          const iron_diff_options *options, iron_diff **out, iron_error *err) {
    static const iron_diff_options defaults = {.struct_size = sizeof defaults};
    const iron_diff_options *o = options ? options : &defaults;
    diff_run run = {.side = {a, b}};
    iron_status status;

    *out = NULL;
    IRON_TRY(iron__struct_check(o, sizeof *o, "iron_diff_options", err));
    IRON_FAIL_IF(o->threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "threads is %" PRIu32 "; it must be at most %u", o->threads, IRON_THREADS_MAX);
    IRON_TRY(iron__chunk_tokens_check(o->chunk_tokens, err));
    IRON_TRY(IRON_NEW(&run.diff, 1, "a comparison", err));
    run.diff->report.struct_size = sizeof run.diff->report;
    run.progress = o->progress;
    run.context = o->context;
    run.bag_cut = o->bag;
    status = iron__thread_pool_create(o->threads ? o->threads : iron__cpu_threads(),
                                      iron__allocator_default(), &run.pool, err);
    if (status == IRON_OK)
        status = run_comparison(&run, o->chunk_tokens, err);
    for (int side = 0; side < 2; side++) {
        close_text(&run.text[side]);
        iron_manifest_destroy(run.made[side]);
    }
    iron__thread_pool_destroy(run.pool);
    if (status == IRON_OK)
        *out = run.diff;
    else
        iron_diff_destroy(run.diff);
    return status;
}

void iron_diff_destroy(iron_diff *diff) {
    if (!diff)
        return;
    free(diff->bits.words);
    free(diff->ranges);
    free(diff);
}

iron_status iron_diff_describe(const iron_diff *diff, iron_diff_report *report, iron_error *err) {
    IRON_TRY(iron__struct_check(report, sizeof *report, "iron_diff_report", err));
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
