/* SPDX-License-Identifier: MIT */
/*
 * fuzz_digest.c: digests. The first byte of the input selects how the rest is used:
 *
 *   raw        as a digest's state, unchanged
 *   framed     as a state with correct magic, versions and checksum; the rest is the input's
 *   work       as a sequence of updates, merges, saves and loads of three digests
 *
 * An accepted state saves to the same bytes, is refused when truncated or with a flipped bit, and
 * works: it accepts missing positions, refuses those it has, and merges. In a sequence every result
 * is compared with a simple model: an array of the positions seen by each digest, and the reference
 * seal.
 */
#include "core/hash.h"
#include "core/seal.h"
#include "fuzz.h"

#define STREAM  256u
#define DIGESTS 3u
#define VOCAB   200u

static iron_digest load(const void *data, size_t bytes) {
    iron_digest digest;
    iron_error err;
    iron_status status = iron_digest_load(&digest, NULL, data, bytes, &err);

    FUZZ_REQUIRE(fuzz_refused(status, &err) == (digest.own == NULL));
    return digest;
}

static unsigned char *save(const iron_digest *digest, size_t *bytes) {
    unsigned char *data;
    iron_error err;

    FUZZ_REQUIRE(iron_digest_save(digest, NULL, 0, bytes, &err) == IRON_OK);
    data = malloc(*bytes);
    FUZZ_REQUIRE(data);
    FUZZ_REQUIRE(iron_digest_save(digest, data, *bytes, bytes, &err) == IRON_OK);
    return data;
}

static void require_refused(const unsigned char *data, size_t bytes) {
    iron_digest digest;

    FUZZ_REQUIRE(iron_digest_load(&digest, NULL, data, bytes, NULL) != IRON_OK);
    FUZZ_REQUIRE(!digest.own);
}

/* It is what it says, and damage to it shows. */
static void require_bytes(const iron_digest *digest, const unsigned char *data, size_t bytes,
                          uint8_t where) {
    size_t again_bytes, bit;
    unsigned char *again = save(digest, &again_bytes);

    FUZZ_REQUIRE(bytes > 0);
    bit = where % (8 * bytes);
    FUZZ_REQUIRE(again_bytes == bytes && memcmp(again, data, bytes) == 0);
    require_refused(again, bytes - 1 - where % bytes);
    again[bit / 8] ^= (unsigned char)(1u << bit % 8);
    require_refused(again, bytes);
    free(again);
}

/* Takes the first missing token, after which it is not missing, and not one that is there. */
static void require_working(iron_digest *digest, uint32_t token) {
    iron_digest_result r = {.struct_size = sizeof r};
    iron_digest empty;
    uint64_t first, end, next;
    iron_status status;
    iron_error err;

    iron_digest_gap(digest, &first, &end);
    FUZZ_REQUIRE(first < end);
    status = iron_digest_final(digest, &r, &err);
    FUZZ_REQUIRE(status == (end == IRON_COUNT_UNKNOWN ? IRON_OK : IRON_E_STATE));
    FUZZ_REQUIRE(status != IRON_OK || (r.tokens == first && r.words[0] == first));
    if (first > 0)
        FUZZ_REQUIRE(iron_digest_update(digest, first - 1, IRON_DTYPE_U32, &token, 1, &err) ==
                     IRON_E_STATE);
    if (first == UINT64_MAX)
        return;
    FUZZ_REQUIRE(iron_digest_update(digest, first, IRON_DTYPE_U32, &token, 1, &err) == IRON_OK);
    iron_digest_gap(digest, &next, &end);
    FUZZ_REQUIRE(next > first);
    FUZZ_REQUIRE(iron_digest_merge(digest, digest, &err) == IRON_E_STATE);
    FUZZ_REQUIRE(iron_digest_init(&empty, NULL, &err) == IRON_OK);
    status = iron_digest_merge(&empty, digest, &err);
    FUZZ_REQUIRE(status == IRON_OK || status == IRON_E_ARG); /* another vocab */
    iron_digest_deinit(&empty);
}

static void put_word(unsigned char *at, uint64_t value, unsigned bytes) {
    for (unsigned k = 0; k < bytes; k++)
        at[k] = (unsigned char)(value >> 8 * k);
}

static void try_state(fuzz_input in, bool is_framed, uint8_t where) {
    static const unsigned char frame[16] = {'I', 'R', 'O', 'N', 'D', 'G', 'S', 'T', 1, 0, 0, 0, 1};
    size_t bytes = in.left;
    unsigned char *data = fuzz_copy(in.at, bytes);
    iron_digest digest;

    if (is_framed && bytes >= 24) {
        memcpy(data, frame, sizeof frame);
        put_word(data + bytes - 8, iron__fnv(IRON_FNV_START, data, bytes - 8), 8);
    }
    digest = load(data, bytes);
    if (digest.own) {
        require_bytes(&digest, data, bytes, where);
        require_working(&digest, where * 1000003u);
        iron_digest_deinit(&digest);
    }
    free(data);
}

/* The course of work. */
typedef struct course {
    uint32_t stream[STREAM];
    iron_digest digests[DIGESTS];
    bool seen[DIGESTS][STREAM];
} course;

static void step_update(course *c, size_t who, size_t first, size_t count) {
    bool was_seen = false;
    iron_status status;
    iron_error err;

    count = count < STREAM - first ? count : STREAM - first;
    for (size_t k = first; k < first + count; k++)
        was_seen |= c->seen[who][k];
    status =
        iron_digest_update(&c->digests[who], first, IRON_DTYPE_U32, c->stream + first, count, &err);
    fuzz_refused(status, &err);
    FUZZ_REQUIRE(status == (was_seen ? IRON_E_STATE : IRON_OK));
    for (size_t k = first; status == IRON_OK && k < first + count; k++)
        c->seen[who][k] = true;
}

static void step_merge(course *c, size_t into, size_t from) {
    bool meet = false;
    iron_status status;
    iron_error err;

    for (size_t k = 0; k < STREAM; k++)
        meet |= c->seen[into][k] && c->seen[from][k];
    status = iron_digest_merge(&c->digests[into], &c->digests[from], &err);
    fuzz_refused(status, &err);
    FUZZ_REQUIRE(status == (meet ? IRON_E_STATE : IRON_OK));
    for (size_t k = 0; status == IRON_OK && k < STREAM; k++)
        c->seen[into][k] |= c->seen[from][k];
}

static void step_reload(course *c, size_t who) {
    size_t bytes;
    unsigned char *data = save(&c->digests[who], &bytes);

    iron_digest_deinit(&c->digests[who]);
    c->digests[who] = load(data, bytes);
    FUZZ_REQUIRE(c->digests[who].own);
    require_bytes(&c->digests[who], data, bytes, (uint8_t)bytes);
    free(data);
}

static void require_model(const course *c, size_t who, bool is_whole, size_t tokens) {
    iron_digest_result r = {.struct_size = sizeof r};
    iron__seal seal = {0};
    char text[IRON_SEAL_TEXT];
    uint32_t min = UINT32_MAX, max = 0;
    uint64_t out = 0;
    iron_error err;
    iron_status status = iron_digest_final(&c->digests[who], &r, &err);

    FUZZ_REQUIRE(fuzz_refused(status, &err) == !is_whole);
    if (!is_whole)
        return;
    iron__seal_feed(&seal, c->stream, tokens);
    iron__seal_text(iron__seal_total(&seal), text);
    for (size_t k = 0; k < tokens; k++) {
        min = c->stream[k] < min ? c->stream[k] : min;
        max = c->stream[k] > max ? c->stream[k] : max;
        out += c->stream[k] >= VOCAB;
    }
    FUZZ_REQUIRE(r.tokens == tokens && strcmp(r.seal, text) == 0);
    FUZZ_REQUIRE(r.min == min && r.max == max && r.out_of_vocab == out);
    FUZZ_REQUIRE(out == 0 || c->stream[r.first_out_position] == r.first_out_value);
}

static void step_look(const course *c, size_t who) {
    uint64_t first, end;
    size_t tokens = 0, behind;

    while (tokens < STREAM && c->seen[who][tokens])
        tokens++;
    for (behind = tokens; behind < STREAM && !c->seen[who][behind];)
        behind++;
    iron_digest_gap(&c->digests[who], &first, &end);
    FUZZ_REQUIRE(first == tokens);
    FUZZ_REQUIRE(end == (behind < STREAM ? behind : IRON_COUNT_UNKNOWN));
    require_model(c, who, behind == STREAM, tokens);
}

static void try_work(fuzz_input in) {
    iron_digest_options o = {.struct_size = sizeof o, .threads = 1, .vocab = VOCAB};
    course c = {0};

    for (size_t k = 0; k < STREAM; k++)
        c.stream[k] = (uint32_t)(k * 2654435761u) >> (k % 3 ? 24 : 0);
    for (size_t k = 0; k < DIGESTS; k++)
        FUZZ_REQUIRE(iron_digest_init(&c.digests[k], &o, NULL) == IRON_OK);
    while (in.left > 0) {
        uint8_t step = fuzz_byte(&in);
        size_t who = step % DIGESTS;

        if (step < 192) {
            size_t first = fuzz_byte(&in);

            step_update(&c, who, first, fuzz_byte(&in) % (step < 96 ? 9u : 200u));
        } else if (step < 224) {
            step_merge(&c, who, fuzz_byte(&in) % DIGESTS);
        } else {
            step_reload(&c, who);
        }
        step_look(&c, who);
    }
    for (size_t k = 0; k < DIGESTS; k++)
        iron_digest_deinit(&c.digests[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    uint8_t kind = fuzz_byte(&in);

    if (kind % 4 < 2)
        try_work(in);
    else
        try_state(in, kind % 4 == 3, (uint8_t)(kind / 4));
    return 0;
}
