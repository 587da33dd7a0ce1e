/* SPDX-License-Identifier: MIT */
/*
 * digest.c: iron_digest: made, merged, read out; and the one door through which pieces come in.
 *
 * What a digest has seen is four things that always agree: which positions (coverage), the tokens
 * at the edges (open quads), the words of everything between, the statistics of all. They change
 * together, after everything that can fail, at the end of take_range, of merge and of loading.
 */
#include "digest/digest_gpu.h"

#include "core/cpu.h"
#include "core/fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static iron_status check_options(const iron_digest_options *o, iron_error *err) {
    IRON_FAIL_IF(o->struct_size != sizeof *o, err, IRON_E_ARG,
                 "iron_digest_options.struct_size is %u, not %zu; set it to sizeof", o->struct_size,
                 sizeof *o);
    IRON_FAIL_IF(o->threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "threads is %u; it must be at most %u", o->threads, IRON_THREADS_MAX);
    IRON_FAIL_IF(o->vocab > IRON_DIGEST_VOCAB_MAX, err, IRON_E_ARG,
                 "vocab is %" PRIu64 "; it must be 1 to 4294967296, or 0 for 50257", o->vocab);
    IRON_FAIL_IF(o->backend && strcmp(o->backend, "auto") != 0 && strcmp(o->backend, "cuda") != 0 &&
                     strcmp(o->backend, "opencl") != 0,
                 err, IRON_E_ARG, "unknown backend '%.40s'; use auto, cuda or opencl", o->backend);
    return IRON_OK;
}

iron_status iron_digest_init(iron_digest *digest, const iron_digest_options *options,
                             iron_error *err) {
    static const iron_digest_options defaults = {.struct_size = sizeof defaults};
    const iron_digest_options *o = options ? options : &defaults;
    const iron_allocator *allocator;
    iron__digest *d;

    digest->own = NULL;
    IRON_TRY(check_options(o, err));
    allocator = o->allocator ? o->allocator : iron__allocator_default();
    d = iron__allocate(allocator, 1, sizeof *d, "a digest", err);
    if (!d)
        return IRON_E_NOMEM;
    d->allocator = allocator;
    d->vocab = o->vocab ? o->vocab : IRON_DIGEST_VOCAB;
    d->threads = o->threads ? o->threads : iron__cpu_threads();
    d->device = o->device;
    snprintf(d->backend, sizeof d->backend, "%s", o->backend ? o->backend : "auto");
    d->stats = iron__token_stats_neutral();
    d->seen = iron__coverage_make(allocator);
    d->open = iron__open_quads_make(allocator);
    d->sums = iron__allocate(allocator, IRON_PASS_TASKS, sizeof *d->sums, "a digest's sums", err);
    digest->own = d;
    if (!d->sums) {
        iron_digest_deinit(digest);
        return IRON_E_NOMEM;
    }
    return IRON_OK;
}

void iron_digest_deinit(iron_digest *digest) {
    iron__digest *d = digest ? digest->own : NULL;
    const iron_allocator *allocator;

    if (!d)
        return;
    allocator = d->allocator;
    iron__digest_gpu_leave(d);
    iron__digest_team_leave(d);
    iron__coverage_deinit(&d->seen);
    iron__open_quads_deinit(&d->open);
    iron__release(allocator, d->sums);
    iron__release(allocator, d);
    digest->own = NULL;
}

iron__digest *iron__digest_of(const iron_digest *digest, iron_error *err) {
    if (!digest || !digest->own) {
        iron__fail(err, IRON_E_STATE, 0, "the digest is not initialised; call iron_digest_init");
        return NULL;
    }
    return digest->own;
}

iron_status iron__digest_refuse_seen(iron__stretch seen, iron_error *err) {
    static const char *const advice = "was a batch repeated, or is its position wrong?";

    if (seen.end - seen.first == 1)
        IRON_FAIL(err, IRON_E_STATE, "position %" PRIu64 " was seen before; %s", seen.first,
                  advice);
    IRON_FAIL(err, IRON_E_STATE, "positions %" PRIu64 " to %" PRIu64 " were seen before; %s",
              seen.first, seen.end - 1, advice);
}

iron_status iron__digest_check_range(const iron__digest *d, uint64_t position, uint64_t count,
                                     iron_error *err) {
    iron__stretch piece = {position, position + count}, seen;

    IRON_FAIL_IF(count > UINT64_MAX - position, err, IRON_E_ARG,
                 "%" PRIu64 " tokens from position %" PRIu64
                 " pass the last one, 18446744073709551614; check the position",
                 count, position);
    if (count > 0 && iron__coverage_overlaps(&d->seen, piece, &seen))
        return iron__digest_refuse_seen(seen, err);
    return IRON_OK;
}

iron__digest_cuts iron__digest_cut(uint64_t position, uint64_t count) {
    uint64_t head = (4 - position % 4) % 4;

    if (head > count)
        head = count;
    return (iron__digest_cuts){(uint32_t)head, (uint32_t)((count - head) % 4), (count - head) / 4};
}

/* Tokens of one quad, which they do not fill. */
static void take_edge(iron__digest *d, uint64_t position, const uint32_t *tokens, uint32_t count) {
    iron__open_quad part = {.quad = position / 4};

    if (count == 0)
        return;
    for (uint32_t k = 0; k < count; k++) {
        part.tokens[position % 4 + k] = tokens[k];
        part.there |= 1u << (position % 4 + k);
    }
    iron__open_quads_put(&d->open, &part, &d->words);
    iron__stats_take(&d->stats, tokens, count, position, d->vocab);
}

iron_status iron__digest_take_range(iron__digest *d, const iron__digest_piece *piece,
                                    iron_error *err) {
    uint64_t position = piece->position, end = position + piece->count;
    iron__digest_cuts cuts = iron__digest_cut(position, piece->count);

    IRON_TRY(iron__digest_check_range(d, position, piece->count, err));
    IRON_TRY(iron__coverage_reserve(&d->seen, err));
    IRON_TRY(iron__open_quads_reserve(&d->open, err));

    iron__coverage_add(&d->seen, (iron__stretch){position, end});
    d->words = iron__seal_merge(d->words, piece->words);
    d->stats = iron__token_stats_merge(d->stats, piece->stats);
    take_edge(d, position, piece->head, cuts.head);
    take_edge(d, end - cuts.tail, piece->tail, cuts.tail);
    return IRON_OK;
}

/* What both have seen, in memory of its own, which replaces the digest's. */
static iron_status join(iron__digest *d, const iron__digest *other, iron_error *err) {
    iron__seal_words words = iron__seal_merge(d->words, other->words);
    iron__coverage seen;
    iron__open_quads open;
    iron_status status;

    IRON_TRY(iron__coverage_join(&d->seen, &other->seen, &seen, err));
    status = iron__open_quads_join(&d->open, &other->open, &open, &words, err);
    if (status != IRON_OK) {
        iron__coverage_deinit(&seen);
        return status;
    }
    iron__coverage_deinit(&d->seen);
    iron__open_quads_deinit(&d->open);
    d->seen = seen;
    d->open = open;
    d->words = words;
    d->stats = iron__token_stats_merge(d->stats, other->stats);
    return IRON_OK;
}

iron_status iron_digest_merge(iron_digest *digest, const iron_digest *other, iron_error *err) {
    iron__digest *d = iron__digest_of(digest, err);
    const iron__digest *o = d ? iron__digest_of(other, err) : NULL;
    iron__stretch both;

    if (!d || !o)
        return IRON_E_STATE;
    IRON_FAIL_IF(d->vocab != o->vocab, err, IRON_E_ARG,
                 "digests with vocab %" PRIu64 " and %" PRIu64
                 " do not merge; make them with the same",
                 d->vocab, o->vocab);
    if (iron__coverage_meets(&d->seen, &o->seen, &both))
        return iron__digest_refuse_seen(both, err);
    return o->seen.stretches.count ? join(d, o, err) : IRON_OK;
}

void iron_digest_gap(const iron_digest *digest, uint64_t *first, uint64_t *end) {
    const iron__digest *d = iron__digest_of(digest, NULL);
    iron__stretch gap = {0, IRON_COUNT_UNKNOWN};

    if (d)
        gap = iron__coverage_gap(&d->seen);
    *first = gap.first;
    *end = gap.end;
}

/* Of a stream without a gap: at most its last quad is open, and is filled up with zeros. */
static iron__seal_words total_words(const iron__digest *d, uint64_t tokens) {
    iron__seal_words words = d->words;
    iron__sorted_place at;
    const iron__open_quad *last = iron__sorted_first(&d->open.quads, &at);

    if (last)
        iron__seal_quads(&words, last->tokens, last->quad, 1);
    words.count = tokens;
    return words;
}

iron_status iron_digest_final(const iron_digest *digest, iron_digest_result *result,
                              iron_error *err) {
    const iron__digest *d = iron__digest_of(digest, err);
    iron__stretch gap;
    iron__seal_words w;

    if (!d)
        return IRON_E_STATE;
    IRON_FAIL_IF(!result || result->struct_size != sizeof *result, err, IRON_E_ARG,
                 "iron_digest_result.struct_size is not %zu; set it to sizeof", sizeof *result);
    gap = iron__coverage_gap(&d->seen);
    IRON_FAIL_IF(gap.end != IRON_COUNT_UNKNOWN, err, IRON_E_STATE,
                 "positions %" PRIu64 " to %" PRIu64
                 " were not seen, and later ones were; update or merge them first",
                 gap.first, gap.end - 1);
    w = total_words(d, gap.first);
    *result = (iron_digest_result){.struct_size = sizeof *result,
                                   .seal_version = IRON_SEAL_VERSION,
                                   .words = {w.count, w.t, w.a, w.b},
                                   .tokens = gap.first,
                                   .vocab = d->vocab,
                                   .out_of_vocab = d->stats.out_of_vocab,
                                   .first_out_position = d->stats.first_position,
                                   .first_out_value = d->stats.first_value,
                                   .min = d->stats.min,
                                   .max = d->stats.max};
    iron__seal_text(w, result->seal);
    return IRON_OK;
}
