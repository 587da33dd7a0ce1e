/* SPDX-License-Identifier: MIT */
/*
 * digest_update.c: tokens in memory go into a digest.
 *
 * The piece is cut into head, whole quads and tail; the team takes the quads in one pass over
 * memory; then all of it goes in, or, if a value is no token, nothing.
 *
 * Threads are started when a piece is first long enough for two: most digests of a data loader see
 * short ones alone. A loader may also fork its workers, and a fork has the digest but none of its
 * threads; so the process is remembered, and another one starts its own.
 */
#include "core/fail.h"
#include "digest/digest.h"

#include <inttypes.h>
#include <unistd.h>

void iron__digest_team_leave(iron__digest *d) {
    if (d->team && d->team_owner == getpid())
        iron__team_destroy(d->team);
    d->team = NULL; /* another process's: its threads are not here, and cannot be ended here */
}

/* The team for so many tokens; *out is NULL where one thread will do. */
static iron_status team_for(iron__digest *d, size_t tokens, iron__team **out, iron_error *err) {
    *out = NULL;
    if (tokens <= IRON_PASS_TOKENS || d->threads == 1)
        return IRON_OK;
    if (d->team && d->team_owner != getpid())
        d->team = NULL;
    if (!d->team) {
        IRON_TRY(iron__team_create(d->threads, d->allocator, &d->team, err));
        d->team_owner = getpid();
    }
    *out = d->team;
    return IRON_OK;
}

static iron_status check_view(const iron__tokens_view *view, iron_error *err) {
    size_t width = iron_dtype_bytes(view->dtype);

    IRON_FAIL_IF(width == 0, err, IRON_E_ARG, "dtype %d is unknown; use an iron_dtype",
                 (int)view->dtype);
    IRON_FAIL_IF(!view->data, err, IRON_E_ARG, "%zu tokens at NULL; give their address",
                 view->count);
    IRON_FAIL_IF(view->count > SIZE_MAX / width, err, IRON_E_ARG,
                 "%zu tokens of %zu bytes are more than memory can hold; check the count",
                 view->count, width);
    IRON_FAIL_IF((uintptr_t)view->data % width != 0, err, IRON_E_ARG,
                 "tokens at %p are not aligned to their %zu bytes; copy them", view->data, width);
    return IRON_OK;
}

static iron_status refuse_value(const iron__tokens_view *view, size_t bad, uint64_t position,
                                iron_error *err) {
    IRON_FAIL(err, IRON_E_FORMAT,
              "token at position %" PRIu64 " is %" PRId64
              "; tokens must be 0 to 4294967295: check the dtype",
              position + bad, iron__view_stored(view, bad));
}

/* Up to three tokens at an edge of the view; the index of a bad one, or SIZE_MAX. */
static size_t read_edge(const iron__tokens_view *view, size_t begin, size_t count,
                        uint32_t tokens[3]) {
    for (size_t k = 0; k < count; k++) {
        int64_t stored = iron__view_stored(view, begin + k);

        if (stored < 0 || stored > UINT32_MAX)
            return begin + k;
        tokens[k] = (uint32_t)stored;
    }
    return SIZE_MAX;
}

/* Fills the piece from the tokens; the index of the first bad one, or SIZE_MAX. */
static size_t read_piece(const iron__digest *d, const iron__tokens_view *view, iron__team *team,
                         iron__digest_piece *piece) {
    iron__digest_cuts cuts = iron__digest_cut(piece->position, piece->count);
    iron__tokens_view quads = iron__view_rest(view, cuts.head);
    iron__quads_sum sum;
    size_t bad = read_edge(view, 0, cuts.head, piece->head);

    if (bad != SIZE_MAX)
        return bad;
    quads.count = 4 * (size_t)cuts.quads;
    sum = iron__quads_pass(&quads, (piece->position + cuts.head) / 4, d->vocab, team, d->sums);
    if (sum.bad != SIZE_MAX)
        return cuts.head + sum.bad;
    piece->words = sum.words;
    piece->stats = sum.stats;
    return read_edge(view, view->count - cuts.tail, cuts.tail, piece->tail);
}

iron_status iron_digest_update(iron_digest *digest, uint64_t position, iron_dtype dtype,
                               const void *tokens, size_t count, iron_error *err) {
    iron__digest *d = iron__digest_of(digest, err);
    iron__tokens_view view = {dtype, tokens, count};
    iron__digest_piece piece = {.position = position, .count = count};
    iron__team *team = NULL;
    size_t bad;

    if (!d)
        return IRON_E_STATE;
    if (count == 0)
        return IRON_OK;
    IRON_TRY(check_view(&view, err));
    IRON_TRY(iron__digest_check_range(d, position, count, err));
    IRON_TRY(team_for(d, count, &team, err));
    bad = read_piece(d, &view, team, &piece);
    if (bad != SIZE_MAX)
        return refuse_value(&view, bad, position, err);
    return iron__digest_take_range(d, &piece, err);
}
