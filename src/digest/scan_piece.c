/* SPDX-License-Identifier: MIT */
/*
 * scan_piece.c: what is computed of a piece of the stream, while it is in the cache.
 *
 * Without chunks that is one call of the seal's fastest row. With chunks the piece is cut at their
 * borders, and each cut goes block by block through the row twice: at the stream's positions, with
 * statistics, and at the chunk's; then once through the marks.
 */
#include "digest/scan.h"

#include "core/fail.h"
#include "digest/marks.h"
#include "digest/quads_pass.h"
#include "formats/source.h"

#include <inttypes.h>
#include <string.h>

/* 32 KiB: what goes through twice comes from the first-level cache the second time. */
#define BLOCK_TOKENS ((size_t)8192)

static size_t smaller(size_t a, uint64_t b) { return a < b ? a : (size_t)b; }

/* The 1 ... 3 tokens of the stream's last quad; the seal pads them, statistics do not. */
static void take_rest(const iron__scan *scan, const uint32_t *tokens, size_t count, uint64_t first,
                      iron__seal_words *words, iron__token_stats *stats) {
    uint32_t quad[4] = {0, 0, 0, 0};
    iron__quads_run run = {quad, 1, first / 4, scan->options.vocab};

    memcpy(quad, tokens, count * sizeof *quad);
    scan->row->take(&run, words, NULL);
    words->count -= 4 - count;
    if (stats)
        iron__stats_take(stats, tokens, count, first, scan->options.vocab);
}

static void take_tokens(const iron__scan *scan, const uint32_t *tokens, size_t count,
                        uint64_t first, iron__seal_words *words, iron__token_stats *stats) {
    iron__quads_run run = {tokens, count / 4, first / 4, scan->options.vocab};

    if (run.quads > 0)
        scan->row->take(&run, words, stats);
    if (count % 4 != 0)
        take_rest(scan, tokens + 4 * run.quads, count % 4, first + 4 * run.quads, words, stats);
}

/* Whole quads of 16-bit tokens as they are stored, if the row takes them; how many tokens. */
static size_t take_narrow(const iron__scan *scan, const iron__scan_piece *piece,
                          iron__scan_tally *tally) {
    iron__quads_run_u16 run = {piece->view.data, piece->view.count / 4, piece->first / 4,
                               scan->options.vocab};

    if (piece->view.dtype != IRON_DTYPE_U16 || !scan->row->take_u16 || run.quads == 0)
        return 0;
    scan->row->take_u16(&run, &tally->words, &tally->stats);
    return 4 * run.quads;
}

static void take_plain(const iron__scan *scan, const iron__scan_piece *piece,
                       iron__scan_tally *tally) {
    for (size_t begin = take_narrow(scan, piece, tally); begin < piece->view.count;) {
        size_t count = piece->view.count - begin;
        const uint32_t *tokens = iron__view_tokens(&piece->view, begin, &count, tally->wide);

        take_tokens(scan, tokens, count, piece->first + begin, &tally->words, &tally->stats);
        begin += count;
    }
}

/* Tokens begin ... end-1 of the piece, all of one chunk, the first of them at `offset` of it. */
static iron__chunk take_cut(const iron__scan *scan, const iron__scan_piece *piece, size_t begin,
                            size_t end, uint64_t offset, iron__scan_tally *tally) {
    iron__tokens_view with_ahead = piece->view;
    iron__seal_words words = {0, 0, 0, 0};
    iron__chunk chunk = iron__chunk_empty();
    size_t windows;

    for (size_t at = begin; at < end;) {
        size_t count = smaller(end - at, BLOCK_TOKENS);
        const uint32_t *tokens = iron__view_tokens(&piece->view, at, &count, tally->wide);

        take_tokens(scan, tokens, count, piece->first + at, &tally->words, &tally->stats);
        take_tokens(scan, tokens, count, offset + (at - begin), &words, NULL);
        at += count;
    }
    with_ahead.count += piece->ahead;
    windows = with_ahead.count < IRON_MARK_TOKENS ? 0 : with_ahead.count - IRON_MARK_TOKENS + 1;
    windows = smaller(windows, end);
    if (windows > begin)
        iron__marks_take(&with_ahead, begin, windows - begin, offset, tally->wide, &chunk);
    chunk.t = words.t;
    chunk.a = words.a;
    chunk.b = words.b;
    return chunk;
}

static void take_chunks(iron__scan *scan, const iron__scan_piece *piece, iron__scan_tally *tally) {
    uint64_t chunk_tokens = scan->options.chunk_tokens;

    for (size_t begin = 0, end; begin < piece->view.count; begin = end) {
        uint64_t position = piece->first + begin;
        uint64_t offset = position % chunk_tokens;
        iron__chunk *chunk = iron__scan_chunk(scan, position);
        iron__chunk found;

        end = begin + smaller(piece->view.count - begin, chunk_tokens - offset);
        found = take_cut(scan, piece, begin, end, offset, tally);
        if (end - begin == chunk_tokens) {
            *chunk = found; /* nobody else has any of it */
            continue;
        }
        pthread_mutex_lock(&scan->chunk_mutex);
        iron__chunk_add(chunk, &found);
        pthread_mutex_unlock(&scan->chunk_mutex);
    }
}

/* It has a position in the stream; people look for it in a file. */
static iron_status refuse_token(const iron__scan *scan, const iron__scan_piece *piece, size_t bad,
                                iron_error *err) {
    uint64_t position = piece->first + bad, byte;
    int64_t stored = iron__view_stored(&piece->view, bad);
    size_t file;

    if (scan->is_seekable && iron__source_locate(scan->source, scan->base + position, &file, &byte))
        IRON_FAIL(err, IRON_E_FORMAT,
                  "%.100s at byte %" PRIu64 ": token at position %" PRIu64 " is %" PRId64
                  "; tokens must be 0 to 4294967295: check --dtype",
                  iron_source_file(scan->source, file), byte, position, stored);
    IRON_FAIL(err, IRON_E_FORMAT,
              "token at position %" PRIu64 " is %" PRId64
              "; tokens must be 0 to 4294967295: check --dtype",
              position, stored);
}

iron_status iron__scan_take_piece(iron__scan *scan, const iron__scan_piece *piece,
                                  iron__scan_tally *tally, iron_error *err) {
    size_t bad = iron__view_first_bad(&piece->view);

    if (bad < piece->view.count)
        return refuse_token(scan, piece, bad, err);
    if (scan->options.chunk_tokens)
        take_chunks(scan, piece, tally);
    else
        take_plain(scan, piece, tally);
    return IRON_OK;
}
