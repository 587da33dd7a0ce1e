/* SPDX-License-Identifier: MIT */
/*
 * scan_crew.c: threads that take the pieces of a stretch, in its order, each the next one.
 *
 * A thread has a buffer and a tally of its own, so nothing is shared while a piece is reduced. The
 * buffer is small enough to stay in the second-level cache: tokens are copied out of the page cache
 * into it and reduced from there, and memory is read once.
 *
 * Invariants: 1. pieces are handed out in order, so when one fails, all before it have been handed
 * out, and the error of the first that fails is the one kept. 2. Only the thread that called run
 * tells how far it is.
 */
#include "digest/scan.h"

#include "core/fail.h"

#include <string.h>

/* 64 Ki tokens. On a Neoverse V1 (1 MiB of second-level cache a core) 128 to 512 KiB are alike. */
#define PIECE_BYTES ((size_t)256 << 10)

/* How many pieces its teller takes between two words to the caller: 4 MiB, a millisecond. */
#define PIECES_A_WORD 16u

/* The buffer holds a piece and what windows reach beyond it. */
#define AHEAD_TOKENS (IRON_MARK_TOKENS - 1)
#define AHEAD_BYTES  ((size_t)IRON_MARK_TOKENS * 8)
#define WIDE_BYTES   ((size_t)IRON_WIDEN_TOKENS * sizeof(uint32_t))

typedef struct hand {
    _Alignas(IRON_CACHE_LINE) iron__scan_tally tally;
    char *memory; /* where fetch reads to, if it does; then what the tally widens into */
} hand;

struct iron__crew {
    iron__scan *scan;
    iron__team *team;
    hand *hands;
    const iron__scan_stretch *stretch;
    size_t piece_tokens;
    uint64_t pieces;
    atomic_uint_fast64_t next;
    pthread_t teller;
    atomic_bool stop;
    pthread_mutex_t mutex; /* of the three below */
    uint64_t failed;       /* the first piece that did; UINT64_MAX: none */
    iron_status status;
    iron_error error;
};

size_t iron__crew_piece_tokens(const iron__scan *scan) {
    size_t width = iron_dtype_bytes(scan->dtype);

    return PIECE_BYTES / (width < 2 ? 2 : width);
}

static iron_status allocate_hands(iron__crew *c, uint32_t count, bool needs_buffers,
                                  iron_error *err) {
    size_t buffer_bytes = needs_buffers ? PIECE_BYTES + AHEAD_BYTES : 0;

    c->hands =
        iron__allocate(iron__allocator_default(), count, sizeof *c->hands, "a crew's tallies", err);
    if (!c->hands)
        return IRON_E_NOMEM;
    for (uint32_t k = 0; k < count; k++) {
        hand *h = &c->hands[k];

        h->tally.stats = iron__token_stats_neutral();
        h->memory =
            iron__allocate(iron__allocator_default(), 1,
                           buffer_bytes + WIDE_BYTES + IRON_SCAN_SLACK, "a reading buffer", err);
        if (!h->memory)
            return IRON_E_NOMEM;
        h->tally.wide = (uint32_t *)(void *)(h->memory + buffer_bytes);
    }
    return IRON_OK;
}

iron_status iron__crew_create(iron__scan *scan, uint64_t pieces, bool needs_buffers,
                              iron__crew **out, iron_error *err) {
    uint32_t threads = pieces < scan->threads ? (uint32_t)pieces : scan->threads;
    iron__crew *c = iron__allocate(iron__allocator_default(), 1, sizeof *c, "a crew", err);
    iron_status status;

    *out = NULL;
    if (!c)
        return IRON_E_NOMEM;
    pthread_mutex_init(&c->mutex, NULL);
    c->scan = scan;
    c->piece_tokens = iron__crew_piece_tokens(scan);
    status = iron__team_create(threads ? threads : 1, iron__allocator_default(), &c->team, err);
    if (status == IRON_OK)
        status = allocate_hands(c, iron__team_threads(c->team), needs_buffers, err);
    if (status != IRON_OK) {
        iron__crew_destroy(c);
        return status;
    }
    *out = c;
    return IRON_OK;
}

void iron__crew_destroy(iron__crew *crew) {
    if (!crew)
        return;
    for (uint32_t k = 0; crew->hands && k < iron__team_threads(crew->team); k++)
        iron__release(iron__allocator_default(), crew->hands[k].memory);
    iron__release(iron__allocator_default(), crew->hands);
    iron__team_destroy(crew->team);
    pthread_mutex_destroy(&crew->mutex);
    iron__release(iron__allocator_default(), crew);
}

static iron_status take(iron__crew *c, uint64_t index, hand *h, iron_error *err) {
    const iron__scan_stretch *s = c->stretch;
    uint64_t offset = index * c->piece_tokens;
    uint64_t left = s->count - offset;
    size_t count = left < c->piece_tokens ? (size_t)left : c->piece_tokens;
    uint64_t behind = left - count + s->ahead;
    iron__scan_piece piece = {.first = s->first + offset};
    const void *tokens = NULL;

    if (c->scan->options.chunk_tokens)
        piece.ahead = behind < AHEAD_TOKENS ? (size_t)behind : AHEAD_TOKENS;
    IRON_TRY(s->fetch(s->context, offset, count + piece.ahead, h->memory, &tokens, &c->stop, err));
    piece.view = (iron__tokens_view){c->scan->dtype, tokens, count};
    return iron__scan_take_piece(c->scan, &piece, &h->tally, err);
}

static void note_failure(iron__crew *c, uint64_t index, iron_status status,
                         const iron_error *error) {
    atomic_store(&c->next, c->pieces);
    pthread_mutex_lock(&c->mutex);
    if (index < c->failed) {
        c->failed = index;
        c->status = status;
        c->error = *error;
    }
    pthread_mutex_unlock(&c->mutex);
}

static iron_status tell(const iron__crew *c, uint64_t index, iron_error *err) {
    uint64_t done = (index + 1) * c->piece_tokens;

    if (index % PIECES_A_WORD != 0 || !pthread_equal(pthread_self(), c->teller))
        return IRON_OK;
    done = done < c->stretch->count ? done : c->stretch->count;
    return iron__scan_tell(c->scan, c->stretch->first - c->scan->first + done, err);
}

static void hand_main(void *context, size_t task) {
    iron__crew *c = context;
    uint64_t index;

    while ((index = atomic_fetch_add(&c->next, 1)) < c->pieces) {
        iron_error error = {0};
        iron_status status = take(c, index, &c->hands[task], &error);

        if (status == IRON_OK)
            status = tell(c, index, &error);
        if (status == IRON_E_CANCELLED)
            atomic_store(&c->stop, true);
        if (status != IRON_OK)
            note_failure(c, index, status, &error);
    }
}

iron_status iron__crew_run(iron__crew *crew, const iron__scan_stretch *stretch, iron_error *err) {
    crew->stretch = stretch;
    crew->pieces = stretch->count / crew->piece_tokens + (stretch->count % crew->piece_tokens != 0);
    crew->teller = pthread_self();
    crew->failed = UINT64_MAX;
    crew->status = IRON_OK;
    atomic_store(&crew->next, 0);
    iron__team_run(crew->team, hand_main, crew, iron__team_threads(crew->team));
    if (crew->status != IRON_OK && err)
        *err = crew->error;
    return crew->status;
}

void iron__crew_settle(iron__crew *crew) {
    iron_manifest *m = crew->scan->manifest;

    for (uint32_t k = 0; k < iron__team_threads(crew->team); k++) {
        m->words = iron__seal_merge(m->words, crew->hands[k].tally.words);
        m->stats = iron__token_stats_merge(m->stats, crew->hands[k].tally.stats);
    }
}
