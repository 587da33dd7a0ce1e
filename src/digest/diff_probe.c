/* SPDX-License-Identifier: MIT */
/*
 * diff_probe.c: probes of one text searched in the other.
 *
 * A probe is a run of 256 tokens that does not repeat itself. If tokens were inserted, the first
 * text's next tokens stand further on in the second; if some were deleted, the other way round; so
 * probes are taken from both. Should something else have changed near the difference, a probe
 * further on is past it: the distances grow by fours. A rolling hash finds a probe in one pass
 * over the other text, whatever that repeats.
 */
#include "digest/diff_probe.h"

#include <string.h>

#define HASH_FACTOR UINT64_C(0x9E3779B97F4A7C15)
#define HITS_MAX    16u
/* Agreement that settles the matter: probes further on are not tried. */
#define ENOUGH_TOKENS 4096u

bool iron__probe_is_periodic(const uint32_t *tokens, size_t count) {
    uint16_t border[IRON_PROBE_TOKENS] = {0}; /* longest proper border of each beginning */
    size_t length = 0;

    for (size_t k = 1; k < count; k++) {
        while (length > 0 && tokens[k] != tokens[length])
            length = border[length - 1];
        length += tokens[k] == tokens[length];
        border[k] = (uint16_t)length;
    }
    return 2 * (count - length) <= count;
}

static bool are_equal(const uint32_t *a, const uint32_t *b, size_t count) {
    return memcmp(a, b, count * sizeof *a) == 0;
}

bool iron__probe_in_place(const iron__probe_texts *texts, size_t *at) {
    static const size_t offsets[] = {1, 4, 16, 64, 256, 1024, 4096};
    size_t count = texts->count[0] < texts->count[1] ? texts->count[0] : texts->count[1];

    for (size_t k = 0; k < sizeof offsets / sizeof offsets[0]; k++) {
        *at = offsets[k];
        if (*at + IRON_PROBE_TOKENS > count)
            return false;
        if (are_equal(texts->tokens[0] + *at, texts->tokens[1] + *at, IRON_PROBE_TOKENS) &&
            !iron__probe_is_periodic(texts->tokens[0] + *at, IRON_PROBE_TOKENS))
            return true;
    }
    return false;
}

static uint64_t hash_of(const uint32_t *tokens) {
    uint64_t hash = 0;

    for (size_t k = 0; k < IRON_PROBE_TOKENS; k++)
        hash = hash * HASH_FACTOR + tokens[k];
    return hash;
}

/* Weight of the token that leaves the window. */
static uint64_t weight_of_first(void) {
    uint64_t weight = 1;

    for (size_t k = 0; k < IRON_PROBE_TOKENS; k++)
        weight *= HASH_FACTOR;
    return weight;
}

static size_t find(const uint32_t *probe, const uint32_t *text, size_t count,
                   size_t hits[HITS_MAX]) {
    const uint64_t wanted = hash_of(probe), weight = weight_of_first();
    size_t found = 0;
    uint64_t hash;

    if (count < IRON_PROBE_TOKENS)
        return 0;
    hash = hash_of(text);
    for (size_t k = 0; found < HITS_MAX; k++) {
        if (hash == wanted && are_equal(probe, text + k, IRON_PROBE_TOKENS))
            hits[found++] = k;
        if (k + IRON_PROBE_TOKENS == count)
            break;
        hash = hash * HASH_FACTOR + text[k + IRON_PROBE_TOKENS] - text[k] * weight;
    }
    return found;
}

static size_t agreement(const iron__probe_texts *texts, const size_t at[2]) {
    size_t left[2] = {texts->count[0] - at[0], texts->count[1] - at[1]};
    size_t most = left[0] < left[1] ? left[0] : left[1], same = 0;

    while (same < most && texts->tokens[0][at[0] + same] == texts->tokens[1][at[1] + same])
        same++;
    return same;
}

/* The best place found so far. */
typedef struct best {
    size_t at[2];
    size_t agrees;
} best;

/* A probe of text `from` at an offset, searched in the other. */
static void try_probe(const iron__probe_texts *texts, int from, size_t offset, best *b) {
    size_t hits[HITS_MAX], count;
    const uint32_t *probe = texts->tokens[from] + offset;

    if (offset + IRON_PROBE_TOKENS > texts->count[from] ||
        iron__probe_is_periodic(probe, IRON_PROBE_TOKENS))
        return;
    count = find(probe, texts->tokens[!from], texts->count[!from], hits);
    for (size_t k = 0; k < count; k++) {
        size_t at[2], agrees;

        at[from] = offset;
        at[!from] = hits[k];
        agrees = agreement(texts, at);
        if (agrees > b->agrees)
            *b = (best){{at[0], at[1]}, agrees};
    }
}

bool iron__probe_search(const iron__probe_texts *texts, size_t at[2]) {
    best b = {{0, 0}, 0};

    for (size_t offset = 0; offset < texts->count[0] || offset < texts->count[1];
         offset = offset ? 4 * offset : 64) {
        try_probe(texts, 0, offset, &b);
        try_probe(texts, 1, offset, &b);
        if (b.agrees >= ENOUGH_TOKENS)
            break;
    }
    at[0] = b.at[0];
    at[1] = b.at[1];
    return b.agrees > 0;
}
