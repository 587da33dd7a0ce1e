/* SPDX-License-Identifier: MIT */
/* rows.c: see rows.h. Check words, the encoding of batches, and what makes a chain of rows. */
#include "store/rows.h"

#include "core/fail.h"
#include "store/check_word.h"

#include <inttypes.h>
#include <string.h>

/* Different kinds of rows begin with different words: one is never taken for another. */
enum { CHECK_FEED = 1, CHECK_BLOCK, CHECK_SNAPSHOT, CHECK_ENGINE };

static uint64_t check_moment(uint64_t check, const iron__moment *m) {
    const iron__seal *s = &m->standing.seal;
    const uint64_t words[] = {m->standing.closed.count,
                              m->standing.closed.sum,
                              m->standing.closed.xors,
                              m->standing.batches,
                              s->words.t,
                              s->words.a,
                              s->words.b,
                              s->carry[0],
                              s->carry[1],
                              s->carry[2],
                              m->feeds,
                              m->state,
                              m->changed_ms};

    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
        check = iron__check_word(check, words[k]);
    return check;
}

uint64_t iron__feed_row_check(const iron__feed_row *r) {
    const uint64_t words[] = {r->engine,
                              r->number,
                              r->position,
                              r->fed.count,
                              r->fed.sum,
                              r->fed.xors,
                              r->batches,
                              r->first_batch,
                              r->has_blocks ? 1 : 0,
                              r->has_blocks ? r->upload : 0};
    uint64_t check = CHECK_FEED;

    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
        check = iron__check_word(check, words[k]);
    check = check_moment(check, &r->after);
    check = iron__check_bytes(check, r->key, strlen(r->key));
    return iron__check_bytes(check, r->batch_bytes, r->batch_bytes_count);
}

uint64_t iron__block_check(uint64_t upload, uint64_t number, const unsigned char *bytes,
                           size_t count) {
    uint64_t check = iron__check_word(CHECK_BLOCK, upload);

    return iron__check_bytes(iron__check_word(check, number), bytes, count);
}

uint64_t iron__snapshot_check(const iron__snapshot_row *row) {
    uint64_t check = iron__check_word(CHECK_SNAPSHOT, row->engine);

    check = iron__check_word(check, row->number);
    check = iron__check_word(check, row->state);
    return iron__check_bytes(check, row->bytes, row->count);
}

uint64_t iron__plan_check(const iron__plan *p, uint64_t id, uint64_t created_ms) {
    const uint64_t words[] = {
        id, created_ms, p->nodes, p->vocab, p->batch, (uint64_t)p->positions, p->device};
    uint64_t check = CHECK_ENGINE;

    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
        check = iron__check_word(check, words[k]);
    check = iron__check_bytes(check, p->name, strlen(p->name));
    check = iron__check_bytes(check, p->mode, strlen(p->mode));
    check = iron__check_bytes(check, p->backend, strlen(p->backend));
    return iron__check_bytes(check, p->lattice, p->lattice_count * sizeof p->lattice[0]);
}

static void put_little(unsigned char *to, uint64_t value, unsigned bytes) {
    for (unsigned k = 0; k < bytes; k++)
        to[k] = (unsigned char)(value >> 8 * k);
}

static uint64_t get_little(const unsigned char *from, unsigned bytes) {
    uint64_t value = 0;

    for (unsigned k = 0; k < bytes; k++)
        value |= (uint64_t)from[k] << 8 * k;
    return value;
}

void iron__batch_encode(unsigned char *to, iron__contribution batch) {
    put_little(to, batch.xors, 4);
    put_little(to + 4, batch.sum, 8);
}

iron__contribution iron__batch_decode(const unsigned char *from, uint64_t tokens) {
    return (iron__contribution){tokens, get_little(from + 4, 8), (uint32_t)get_little(from, 4)};
}

uint64_t iron__row_batch_tokens(const iron__feed_row *row, uint64_t batch, uint64_t index) {
    return index + 1 < row->batches ? batch : row->fed.count - index * batch;
}

uint64_t iron__row_in_blocks(const iron__feed_row *row) {
    return row->has_blocks ? row->batches - row->batches % IRON_BLOCK_BATCHES : 0;
}

iron__moment iron__moment_start(void) { return (iron__moment){.feeds = 0}; }

iron__seal iron__seal_of_count(uint64_t tokens) {
    return (iron__seal){.words = {.count = tokens - tokens % 4}, .carried = (uint32_t)(tokens % 4)};
}

/* Do the numbers within the row agree with each other and with the engine's batches? */
static bool is_coherent(const iron__feed_row *r, uint64_t batch) {
    const iron__standing *s = &r->after.standing;
    uint64_t batches = r->fed.count ? (r->fed.count - 1) / batch + 1 : 0;

    if (r->number < 1 || r->fed.count > UINT64_MAX - r->position || r->batches != batches)
        return false;
    if (s->closed.count != r->position + r->fed.count || s->batches != r->first_batch + r->batches)
        return false;
    if (s->seal.carried != s->closed.count % 4 ||
        s->seal.words.count != s->closed.count - s->seal.carried)
        return false;
    for (uint32_t k = s->seal.carried; k < 3; k++)
        if (s->seal.carry[k] != 0)
            return false;
    return r->after.feeds == r->number &&
           r->batch_bytes_count / IRON_BATCH_BYTES == r->batches - iron__row_in_blocks(r) &&
           r->batch_bytes_count % IRON_BATCH_BYTES == 0;
}

iron_status iron__feed_row_follows(const iron__feed_row *r, const iron__moment *before,
                                   const iron__plan *plan, iron_error *err) {
    const iron__standing *b = &before->standing;
    iron__contribution sum = iron__contribution_merge(b->closed, r->fed);

    IRON_FAIL_IF(!is_coherent(r, plan->batch), err, IRON_E_FORMAT,
                 "engine %s: feed %" PRIu64 " contradicts itself; the database is damaged: "
                 "restore a backup",
                 plan->name, r->number);
    IRON_FAIL_IF(r->number != before->feeds + 1, err, IRON_E_FORMAT,
                 "engine %s: feed %" PRIu64 " is missing, %" PRIu64
                 " comes next; the database is damaged: restore a backup",
                 plan->name, before->feeds + 1, r->number);
    IRON_FAIL_IF(r->position != b->closed.count || r->first_batch != b->batches, err, IRON_E_FORMAT,
                 "engine %s: feed %" PRIu64 " begins at %" PRIu64 ", batch %" PRIu64
                 ", and not at %" PRIu64 ", %" PRIu64 "; the database is damaged: restore a backup",
                 plan->name, r->number, r->position, r->first_batch, b->closed.count, b->batches);
    IRON_FAIL_IF(r->after.standing.closed.sum != sum.sum ||
                     r->after.standing.closed.xors != sum.xors,
                 err, IRON_E_FORMAT,
                 "engine %s: the totals after feed %" PRIu64
                 " are not those before it and its own; the database is damaged: restore a backup",
                 plan->name, r->number);
    return IRON_OK;
}

void iron__answer_of(const iron__moment *after, uint64_t tokens, uint64_t batches,
                     iron__feed_answer *answer) {
    *answer = (iron__feed_answer){
        .position = after->standing.closed.count,
        .tokens = after->standing.closed.count,
        .batches = after->standing.batches,
        .sum = after->standing.closed.sum,
        .state = after->state,
        .xors = after->standing.closed.xors,
        .fed_tokens = tokens,
        .fed_batches = batches,
    };
    iron__seal_text(iron__seal_total(&after->standing.seal), answer->seal);
}
