/* SPDX-License-Identifier: MIT */
/*
 * manifest_check.c: does a manifest agree with itself? Everything that is said twice must be said
 * alike, and every range must lie where it can: what others build on a manifest, indices and sums,
 * is then safe, and a file that was damaged or edited is refused instead of believed.
 */
#include "core/fail.h"
#include "digest/manifest.h"

#include <inttypes.h>
#include <stdbool.h>

#define REFUSE_IF(condition, ...) IRON_FAIL_IF(condition, err, IRON_E_FORMAT, __VA_ARGS__)

static iron_status check_range(const iron_manifest *m, const char *name, iron_error *err) {
    uint64_t end = m->first + m->tokens;

    REFUSE_IF(end > m->stream_tokens,
              "%.80s: positions %" PRIu64 " to %" PRIu64 " of a stream of %" PRIu64 " tokens", name,
              m->first, end, m->stream_tokens);
    REFUSE_IF((m->part == 0) != (m->parts == 0) || m->part > m->parts,
              "%.80s: part %u of %u; parts count from 1", name, m->part, m->parts);
    REFUSE_IF(m->first % 4 != 0 || (end % 4 != 0 && end != m->stream_tokens),
              "%.80s: positions %" PRIu64 " to %" PRIu64
              " do not begin and end at multiples of 4 or with the stream",
              name, m->first, end);
    REFUSE_IF(m->words.count != m->tokens,
              "%.80s: its seal is of %" PRIu64 " tokens, and it tells of %" PRIu64, name,
              m->words.count, m->tokens);
    REFUSE_IF(m->tokens == 0 && (m->words.t || m->words.a || m->words.b),
              "%.80s: its seal is not that of no tokens", name);
    return IRON_OK;
}

static iron_status check_statistics(const iron_manifest *m, const char *name, iron_error *err) {
    const iron__token_stats *s = &m->stats;
    bool has_out = s->out_of_vocab > 0;

    REFUSE_IF(m->vocab < 1, "%.80s: vocab is 0; it is at least 1", name);
    REFUSE_IF(m->tokens > 0 ? s->min > s->max : s->min != UINT32_MAX || s->max != 0,
              "%.80s: tokens from %u to %u in %" PRIu64 " tokens", name, s->min, s->max, m->tokens);
    REFUSE_IF(s->out_of_vocab > m->tokens || has_out != (m->tokens > 0 && s->max >= m->vocab),
              "%.80s: %" PRIu64 " tokens out of the vocabulary, with a largest of %u in %" PRIu64
              " tokens and a vocabulary of %" PRIu64,
              name, s->out_of_vocab, s->max, m->tokens, m->vocab);
    REFUSE_IF(has_out != (s->first_position != UINT64_MAX),
              "%.80s: %" PRIu64 " tokens out of the vocabulary, and a first of them is %sthere",
              name, s->out_of_vocab, has_out ? "not " : "");
    REFUSE_IF(has_out &&
                  (s->first_position < m->first || s->first_position - m->first >= m->tokens ||
                   s->first_value < m->vocab || s->first_value > s->max),
              "%.80s: the first token out of the vocabulary is %u at position %" PRIu64
              ", which cannot be",
              name, s->first_value, s->first_position);
    return IRON_OK;
}

static iron_status check_files(const iron_manifest *m, const char *name, iron_error *err) {
    uint64_t place = 0;

    REFUSE_IF(m->file_count == 0, "%.80s lists no files", name);
    for (size_t k = 0; k < m->file_count; k++) {
        const iron__manifest_entry *f = &m->files[k];

        REFUSE_IF(f->first != place,
                  "%.80s: %.60s begins at position %" PRIu64 ", and the files before it end at "
                  "%" PRIu64,
                  name, f->path, f->first, place);
        place += f->tokens;
        REFUSE_IF(place > m->stream_tokens,
                  "%.80s: %.60s ends at position %" PRIu64 " of a stream of %" PRIu64 " tokens",
                  name, f->path, place, m->stream_tokens);
    }
    REFUSE_IF(place != m->stream_tokens,
              "%.80s: the files have %" PRIu64 " tokens, the stream %" PRIu64, name, place,
              m->stream_tokens);
    return IRON_OK;
}

/* A mark's window begins in what was seen of its chunk, and lies in the stream. */
static bool mark_can_be(const iron_manifest *m, size_t k) {
    const iron__chunk *c = &m->chunks[k];
    uint64_t first = iron__manifest_chunk_first(m, k), seen = first > m->first ? first : m->first;
    uint64_t position = first + c->mark_at;

    if (c->mark == IRON_MARK_NONE)
        return true;
    return c->mark_at < m->chunk_tokens && position >= seen &&
           position < seen + iron__manifest_chunk_tokens(m, k) &&
           m->stream_tokens - position >= IRON_MARK_TOKENS;
}

static iron_status check_chunks(const iron_manifest *m, const char *name, iron_error *err) {
    uint64_t expected = iron__manifest_chunks_of(m->first, m->tokens, m->chunk_tokens);
    uint64_t sum = 0;

    REFUSE_IF(m->chunk_count != expected,
              "%.80s has %zu chunks; %" PRIu64 " tokens in chunks of %" PRIu64 " make %" PRIu64,
              name, m->chunk_count, m->tokens, m->chunk_tokens, expected);
    if (m->chunk_tokens == 0)
        return IRON_OK;
    for (size_t k = 0; k < m->chunk_count; k++) {
        sum += m->chunks[k].t;
        REFUSE_IF(!mark_can_be(m, k),
                  "%.80s: the mark of chunk %zu is at offset %" PRIu64 ", where no window begins",
                  name, k, m->chunks[k].mark_at);
    }
    REFUSE_IF(sum != m->words.t,
              "%.80s: the chunks' sums come to %" PRIu64 ", the stream's is %" PRIu64
              "; the manifest is damaged",
              name, sum, m->words.t);
    /* the first chunk's positions are the stream's: alone, its words are too */
    REFUSE_IF(m->chunk_count == 1 && m->first < m->chunk_tokens &&
                  (m->chunks[0].a != m->words.a || m->chunks[0].b != m->words.b),
              "%.80s: its one chunk and its seal differ; the manifest is damaged", name);
    return IRON_OK;
}

iron_status iron__manifest_check(const iron_manifest *m, const char *name, iron_error *err) {
    IRON_TRY(check_range(m, name, err));
    REFUSE_IF(m->parts == 0 && m->tokens != m->stream_tokens,
              "%.80s is of no part, but of %" PRIu64 " tokens of %" PRIu64, name, m->tokens,
              m->stream_tokens);
    IRON_TRY(check_statistics(m, name, err));
    IRON_TRY(check_files(m, name, err));
    REFUSE_IF(iron__chunk_tokens_check(m->chunk_tokens, NULL) != IRON_OK,
              "%.80s has chunks of %" PRIu64 " tokens; that is no multiple of 4, or too small",
              name, m->chunk_tokens);
    return check_chunks(m, name, err);
}
