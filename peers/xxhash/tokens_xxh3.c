/* SPDX-License-Identifier: MIT */
/*
 * tokens_xxh3.c: XXH3 of the tokens' bytes, in one thread: the usual choice for a fingerprint of
 * data at the speed of memory. It computes something else than the op, and so checks itself: the
 * streaming interface, fed in uneven pieces, must give the same hash.
 *
 * Compiled in with this build's flags: half again as fast as Debian's shared library.
 */
#include "peer.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wshadow"
#include <xxhash.h>
#pragma GCC diagnostic pop

#define TEXT(number)   #number
#define NUMBER(number) TEXT(number)
#define LIBRARY_VERSION                                                                            \
    NUMBER(XXH_VERSION_MAJOR) "." NUMBER(XXH_VERSION_MINOR) "." NUMBER(XXH_VERSION_RELEASE)
#define PIECE_BYTES_MAX ((size_t)1 << 20)

typedef struct work {
    const void *tokens;
    size_t bytes;
    void *output;
} work;

static int open_hash(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    work *w;

    *state = NULL;
    if (c->input_count < 1 || c->output_bytes < sizeof(XXH64_hash_t))
        return peer_refuse(why, why_size,
                           "there are no tokens, or fewer than 8 bytes for their hash");
    w = malloc(sizeof *w);
    if (!w)
        return peer_refuse(why, why_size, "out of memory");
    *w = (work){c->inputs[0], c->input_bytes[0], c->output};
    *state = w;
    return 0;
}

static int run_hash(void *state, char *why, size_t why_size) {
    const work *w = state;
    XXH64_hash_t hash = XXH3_64bits(w->tokens, w->bytes);

    (void)why;
    (void)why_size;
    memcpy(w->output, &hash, sizeof hash);
    return 0;
}

/* Pieces of 1, 8, 57, 400 ... bytes: they do not end where the hash's own blocks do. */
static XXH64_hash_t hash_in_pieces(XXH3_state_t *state, const char *bytes, size_t count) {
    size_t piece = 1;

    XXH3_64bits_reset(state);
    while (count > 0) {
        if (piece > count)
            piece = count;
        XXH3_64bits_update(state, bytes, piece);
        bytes += piece;
        count -= piece;
        piece = piece * 7 + 1;
        if (piece > PIECE_BYTES_MAX)
            piece = 1;
    }
    return XXH3_64bits_digest(state);
}

static int check_hash(const iron_peer_case *host, const void *output, char *why, size_t why_size) {
    XXH3_state_t *state = XXH3_createState();
    XXH64_hash_t want, got;

    if (!state)
        return peer_refuse(why, why_size, "out of memory");
    want = hash_in_pieces(state, host->inputs[0], host->input_bytes[0]);
    XXH3_freeState(state);
    memcpy(&got, output, sizeof got);
    if (got == want)
        return 0;
    snprintf(why, why_size, "the hash is %016llx, in pieces %016llx", (unsigned long long)got,
             (unsigned long long)want);
    return 1;
}

const iron_peer_list *iron_peer_list_get(void) {
    static const iron_peer rows[] = {{
        .struct_size = sizeof rows[0],
        .name = "tokens.cpu.xxh3",
        .idea = "another question: XXH3 of the bytes, 64 bits, one thread",
        .dtypes = "u32",
        .open = open_hash,
        .run = run_hash,
        .close = free,
        .check = check_hash,
    }};
    static const iron_peer_list list = {IRON_PEER_ABI, "xxHash", LIBRARY_VERSION, rows, 1};

    return &list;
}
