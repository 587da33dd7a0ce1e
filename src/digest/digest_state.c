/* SPDX-License-Identifier: MIT */
/*
 * digest_state.c: digests saved as bytes and loaded again. Bytes are believed only after magic,
 * version, length, checksum and every value have been checked, in this order; digest_state_check.c
 * has the values. Numbers are put together byte by byte, so that any machine reads them.
 */
#include "digest/digest_state.h"

#include "core/fail.h"
#include "core/fnv.h"

#include <inttypes.h>
#include <string.h>

#define MAGIC_BYTES 8u

typedef struct writer {
    unsigned char *at;
} writer;

typedef struct reader {
    const unsigned char *at;
} reader;

static void put(writer *w, uint64_t value, unsigned bytes) {
    for (unsigned k = 0; k < bytes; k++)
        *w->at++ = (unsigned char)(value >> 8 * k);
}

static uint64_t get(reader *r, unsigned bytes) {
    uint64_t value = 0;

    for (unsigned k = 0; k < bytes; k++)
        value |= (uint64_t)*r->at++ << 8 * k;
    return value;
}

static uint32_t get_u32(reader *r) { return (uint32_t)get(r, 4); }

static size_t state_bytes(const iron__digest *d) {
    return IRON_DIGEST_HEADER_BYTES + d->seen.stretches.count * IRON_DIGEST_STRETCH_BYTES +
           d->open.quads.count * IRON_DIGEST_QUAD_BYTES + IRON_DIGEST_CHECKSUM_BYTES;
}

static void put_header(writer *w, const iron__digest *d) {
    memcpy(w->at, IRON_DIGEST_STATE_MAGIC, MAGIC_BYTES);
    w->at += MAGIC_BYTES;
    put(w, IRON_DIGEST_STATE_VERSION, 4);
    put(w, IRON_SEAL_VERSION, 4);
    put(w, d->vocab, 8);
    put(w, d->words.count, 8);
    put(w, d->words.t, 8);
    put(w, d->words.a, 8);
    put(w, d->words.b, 8);
    put(w, d->stats.out_of_vocab, 8);
    put(w, d->stats.first_position, 8);
    put(w, d->stats.first_value, 4);
    put(w, d->stats.min, 4);
    put(w, d->stats.max, 4);
    put(w, 0, 4);
    put(w, d->seen.stretches.count, 8);
    put(w, d->open.quads.count, 8);
}

static void put_arrays(writer *w, const iron__digest *d) {
    iron__sorted_place at;
    const iron__stretch *s = iron__sorted_first(&d->seen.stretches, &at);
    const iron__open_quad *q;

    for (; s; s = iron__sorted_next(&d->seen.stretches, &at)) {
        put(w, s->first, 8);
        put(w, s->end, 8);
    }
    q = iron__sorted_first(&d->open.quads, &at);
    for (; q; q = iron__sorted_next(&d->open.quads, &at)) {
        put(w, q->quad, 8);
        for (uint32_t i = 0; i < 4; i++)
            put(w, q->tokens[i], 4);
        put(w, q->there, 4);
        put(w, 0, 4);
    }
}

iron_status iron_digest_save(const iron_digest *digest, void *buffer, size_t room, size_t *bytes,
                             iron_error *err) {
    const iron__digest *d = iron__digest_of(digest, err);
    writer w = {buffer};

    *bytes = 0;
    if (!d)
        return IRON_E_STATE;
    *bytes = state_bytes(d);
    if (!buffer)
        return IRON_OK;
    IRON_FAIL_IF(room < *bytes, err, IRON_E_ARG,
                 "a digest's state takes %zu bytes and there is room for %zu; ask for the size "
                 "with a NULL buffer first",
                 *bytes, room);
    put_header(&w, d);
    put_arrays(&w, d);
    put(&w, iron__fnv(IRON_FNV_START, buffer, *bytes - IRON_DIGEST_CHECKSUM_BYTES),
        IRON_DIGEST_CHECKSUM_BYTES);
    return IRON_OK;
}

/* Magic, version, length, checksum: are these whole bytes that this version can read? */
static iron_status check_frame(const unsigned char *data, size_t bytes, iron_error *err) {
    const size_t least = IRON_DIGEST_HEADER_BYTES + IRON_DIGEST_CHECKSUM_BYTES;
    reader r = {data + MAGIC_BYTES}, end;
    uint32_t version, seal_version;

    IRON_FAIL_IF(bytes < MAGIC_BYTES + 8 || memcmp(data, IRON_DIGEST_STATE_MAGIC, MAGIC_BYTES) != 0,
                 err, IRON_E_FORMAT,
                 "these %zu bytes are no digest's state: they do not begin "
                 "with " IRON_DIGEST_STATE_MAGIC,
                 bytes);
    version = get_u32(&r);
    seal_version = get_u32(&r);
    IRON_FAIL_IF(version > IRON_DIGEST_STATE_VERSION, err, IRON_E_FORMAT,
                 "the digest's state has version %u, newer than %u; load it with a newer iron",
                 version, IRON_DIGEST_STATE_VERSION);
    IRON_FAIL_IF(seal_version > IRON_SEAL_VERSION, err, IRON_E_FORMAT,
                 "the digest's state has seal version %u, newer than %u; load it with a newer iron",
                 seal_version, IRON_SEAL_VERSION);
    IRON_FAIL_IF(version < 1 || seal_version < 1, err, IRON_E_FORMAT,
                 "the digest's state is damaged: version %u, seal version %u", version,
                 seal_version);
    IRON_FAIL_IF(bytes < least, err, IRON_E_FORMAT,
                 "the digest's state is truncated: %zu bytes, and an empty one's has %zu", bytes,
                 least);
    end.at = data + bytes - IRON_DIGEST_CHECKSUM_BYTES;
    IRON_FAIL_IF(get(&end, 8) != iron__fnv(IRON_FNV_START, data, bytes - 8), err, IRON_E_FORMAT,
                 "the digest's state is damaged or cut short: its checksum differs");
    return IRON_OK;
}

/* How many entries the arrays have; together they fill what is left. */
typedef struct lengths {
    uint64_t stretches, quads;
} lengths;

static iron_status get_header(reader *r, size_t bytes, iron__digest *d, lengths *n,
                              iron_error *err) {
    size_t left = bytes - IRON_DIGEST_HEADER_BYTES - IRON_DIGEST_CHECKSUM_BYTES;
    uint32_t zero;

    r->at += MAGIC_BYTES + 8;
    d->vocab = get(r, 8);
    d->words.count = get(r, 8);
    d->words.t = get(r, 8);
    d->words.a = get(r, 8);
    d->words.b = get(r, 8);
    d->stats.out_of_vocab = get(r, 8);
    d->stats.first_position = get(r, 8);
    d->stats.first_value = get_u32(r);
    d->stats.min = get_u32(r);
    d->stats.max = get_u32(r);
    zero = get_u32(r);
    n->stretches = get(r, 8);
    n->quads = get(r, 8);
    IRON_FAIL_IF(zero != 0 || n->stretches > left / IRON_DIGEST_STRETCH_BYTES ||
                     n->quads > left / IRON_DIGEST_QUAD_BYTES ||
                     n->stretches * IRON_DIGEST_STRETCH_BYTES + n->quads * IRON_DIGEST_QUAD_BYTES !=
                         left,
                 err, IRON_E_FORMAT,
                 "the digest's state is damaged: %" PRIu64 " stretches and %" PRIu64
                 " open quads do not take %zu bytes",
                 n->stretches, n->quads, left);
    return IRON_OK;
}

/* Stretches in order, with a gap before each but the first. */
static iron_status get_stretches(reader *r, uint64_t count, iron__digest *d, iron_error *err) {
    iron__stretch s = {0, 0};

    IRON_TRY(iron__sorted_reserve_behind(&d->seen.stretches, (size_t)count, err));
    for (uint64_t k = 0; k < count; k++) {
        uint64_t before = s.end;

        s.first = get(r, 8);
        s.end = get(r, 8);
        IRON_FAIL_IF(s.first >= s.end || (k > 0 && s.first <= before), err, IRON_E_FORMAT,
                     "the digest's state is refused: stretch %" PRIu64 " of its positions, %" PRIu64
                     " to %" PRIu64 ", is empty or out of order",
                     k, s.first, s.end);
        iron__sorted_insert(&d->seen.stretches, &s);
    }
    return IRON_OK;
}

static iron_status get_quads(reader *r, uint64_t count, iron__digest *d, iron_error *err) {
    iron__open_quad q = {0};

    IRON_TRY(iron__sorted_reserve_behind(&d->open.quads, (size_t)count, err));
    for (uint64_t k = 0; k < count; k++) {
        uint64_t before = q.quad;

        q.quad = get(r, 8);
        for (uint32_t i = 0; i < 4; i++)
            q.tokens[i] = get_u32(r);
        q.there = get_u32(r);
        IRON_FAIL_IF(get_u32(r) != 0 || (k > 0 && q.quad <= before), err, IRON_E_FORMAT,
                     "the digest's state is refused: open quad %" PRIu64
                     " is out of order, or does not end in zeros",
                     q.quad);
        iron__sorted_insert(&d->open.quads, &q);
    }
    return IRON_OK;
}

static iron_status adopt(iron__digest *d, const iron_digest_options *options, const void *buffer,
                         size_t bytes, iron_error *err) {
    reader r = {buffer};
    lengths n;

    IRON_TRY(get_header(&r, bytes, d, &n, err));
    IRON_TRY(get_stretches(&r, n.stretches, d, err));
    IRON_TRY(get_quads(&r, n.quads, d, err));
    IRON_TRY(iron__digest_state_check(d, err));
    IRON_FAIL_IF(options && options->vocab && options->vocab != d->vocab, err, IRON_E_ARG,
                 "the digest was saved with vocab %" PRIu64 ", not %" PRIu64
                 "; give the same, or 0 to take the saved one",
                 d->vocab, options->vocab);
    return IRON_OK;
}

iron_status iron_digest_load(iron_digest *digest, const iron_digest_options *options,
                             const void *buffer, size_t bytes, iron_error *err) {
    iron_status status;

    digest->own = NULL;
    IRON_FAIL_IF(!buffer, err, IRON_E_ARG, "a digest's state at NULL; give its address");
    IRON_TRY(check_frame(buffer, bytes, err));
    IRON_TRY(iron_digest_init(digest, options, err));
    status = adopt(digest->own, options, buffer, bytes, err);
    if (status != IRON_OK)
        iron_digest_deinit(digest);
    return status;
}
