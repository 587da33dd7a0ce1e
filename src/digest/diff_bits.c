/* SPDX-License-Identifier: MIT */
/* diff_bits.c: the set of differing chunks. */
#include "digest/diff_bits.h"

#include "core/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define WORD_BITS 64u

iron_status iron__diff_bits_reach(iron__diff_bits *bits, uint64_t tokens, iron_error *err) {
    uint64_t chunks = iron__chunks_of(tokens, bits->chunk_tokens);
    uint64_t have = bits->chunks / WORD_BITS, need;
    _Atomic uint64_t *words;

    if (chunks <= bits->chunks && bits->words)
        return IRON_OK;
    /* by doubling: a pipe does not say how long it will be */
    need = iron__chunks_of(chunks < 2 * bits->chunks ? 2 * bits->chunks : chunks, WORD_BITS);
    need = need ? need : 1;
    words = need <= SIZE_MAX / sizeof *words ? realloc(bits->words, need * sizeof *words) : NULL;
    if (!words)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM,
                          "out of memory for a bit for each of %" PRIu64
                          " chunks; give a larger --chunk",
                          chunks);
    for (uint64_t k = have; k < need; k++)
        atomic_init(&words[k], 0);
    bits->words = words;
    bits->chunks = need * WORD_BITS;
    return IRON_OK;
}

void iron__diff_bits_clear(iron__diff_bits *bits) {
    free(bits->words);
    bits->words = NULL;
    bits->chunks = 0;
}

void iron__diff_bits_set(iron__diff_bits *bits, uint64_t chunk) {
    atomic_fetch_or_explicit(&bits->words[chunk / WORD_BITS], UINT64_C(1) << chunk % WORD_BITS,
                             memory_order_relaxed);
}

bool iron__diff_bits_has(const iron__diff_bits *bits, uint64_t chunk) {
    uint64_t word = atomic_load_explicit(&bits->words[chunk / WORD_BITS], memory_order_relaxed);

    return word >> chunk % WORD_BITS & 1;
}

void iron__diff_bits_set_tokens(iron__diff_bits *bits, uint64_t first, uint64_t end) {
    if (first < end)
        for (uint64_t k = first / bits->chunk_tokens; k <= (end - 1) / bits->chunk_tokens; k++)
            iron__diff_bits_set(bits, k);
}

/* Goes through the ranges; writes them where there is room for them. */
static size_t walk_ranges(const iron__diff_bits *bits, uint64_t chunks, uint64_t *set,
                          iron__diff_range *ranges) {
    size_t count = 0;
    bool was_set = false;

    *set = 0;
    for (uint64_t k = 0; k < chunks; k++) {
        bool is_set = iron__diff_bits_has(bits, k);

        *set += is_set;
        if (is_set && !was_set && ranges)
            ranges[count].first = k;
        if (is_set && ranges)
            ranges[count].end = k + 1;
        count += !is_set && was_set;
        was_set = is_set;
    }
    return count + was_set;
}

iron_status iron__diff_bits_ranges(const iron__diff_bits *bits, uint64_t chunks, uint64_t *set,
                                   iron__diff_range **ranges, size_t *count, iron_error *err) {
    *count = walk_ranges(bits, chunks, set, NULL);
    *ranges = calloc(*count + 1, sizeof **ranges);
    if (!*ranges)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM,
                          "out of memory for %zu ranges of chunks; give a larger --chunk", *count);
    walk_ranges(bits, chunks, set, *ranges);
    return IRON_OK;
}
