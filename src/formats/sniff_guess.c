/* SPDX-License-Identifier: MIT */
/*
 * sniff_guess.c: see sniff.h. The widths are tried from the widest down, and one is believed when
 * its upper part is what ids of any vocabulary leave there: zeros in 64 bits, less than 16 in the
 * upper half of 32 (ids below 2^20). Tokens of half the width would have to alternate with such
 * small ones all the time. Between u16 and u8 values tell nothing certain; u16 is what people have.
 *
 * Every answer comes with the numbers that led to it.
 */
#include "formats/sniff.h"

#include <inttypes.h>
#include <string.h>

#define SMALL 16u /* upper halves of ids below 2^20 */

/* What the sample's 32-bit words look like. */
typedef struct halves {
    size_t words;
    size_t small, negative, zero; /* upper halves below SMALL, 0xFFFF, 0 */
    size_t large_low;             /* lower halves of SMALL and more */
} halves;

static bool is_all_zero(const iron__sample *s) {
    for (size_t k = 0; k < s->count; k++)
        if (s->data[k])
            return false;
    return true;
}

/* Bytes that text does not have: control characters, and what is no UTF-8. A sample may begin and
 * end inside a character. */
static size_t no_text(const iron__sample *s) {
    size_t bad = 0;

    for (size_t k = 0; k < s->count;) {
        unsigned char c = s->data[k];
        size_t more = c < 0x80 ? 0 : c >= 0xC2 && c < 0xE0 ? 1 : c >= 0xE0 && c < 0xF0 ? 2 : 3;
        size_t found = 0;

        if ((c < 0x20 && !strchr("\t\n\f\r", c)) || c == 0 || c == 0x7F)
            bad++;
        else if ((c >= 0x80 && c < 0xC2) || c >= 0xF5)
            bad++, more = 0;
        while (found < more && k + 1 + found < s->count && (s->data[k + 1 + found] & 0xC0) == 0x80)
            found++;
        bad += found < more;
        k += 1 + found;
    }
    return bad;
}

/* i64: upper words are zero; a few of negative numbers may be among them. */
static bool is_i64(const iron__candidate *c, const iron__sample *s) {
    size_t count = s->count / 8, zero = 0, negative = 0;

    if (s->file_bytes % 8 != 0)
        return false;
    for (size_t k = 0; k < count; k++) {
        uint32_t upper = iron__stored_u32(s->data + 8 * k + 4);

        zero += upper == 0;
        negative += upper == UINT32_MAX;
    }
    if (zero + negative < count || negative * 2 > count)
        return false;
    iron__because(c, "as i64, the upper 32 bits of %zu of %zu sampled values are 0", zero, count);
    if (negative)
        iron__because(c, "%zu are negative, which reading will refuse", negative);
    return true;
}

static halves look_at_halves(const iron__sample *s) {
    halves h = {.words = s->count / 4};

    for (size_t k = 0; k < h.words; k++) {
        uint32_t word = iron__stored_u32(s->data + 4 * k), upper = word >> 16;

        h.small += upper < SMALL;
        h.zero += upper == 0;
        h.negative += upper == UINT16_MAX;
        h.large_low += (word & UINT16_MAX) >= SMALL;
    }
    return h;
}

static iron_dtype guess_32(const iron__candidate *c, const iron__sample *s) {
    halves h = look_at_halves(s);
    bool fits = (h.small + h.negative) * 1000 >= h.words * 999 && h.negative * 2 <= h.words;

    if (s->file_bytes % 4 != 0)
        return IRON_DTYPE_NONE;
    if (!fits || (h.zero < h.words && h.large_low * 10 < h.words)) {
        iron__because(c, "as u32, %zu of %zu sampled values are below 2^20: too few for ids",
                      h.small, h.words);
        return IRON_DTYPE_NONE;
    }
    iron__because(c, "as u32, %zu of %zu sampled values are below 2^20, %zu below 2^16", h.small,
                  h.words, h.zero);
    if (h.negative == 0)
        return IRON_DTYPE_U32;
    iron__because(c, "as i32, %zu are negative, which reading will refuse", h.negative);
    return IRON_DTYPE_I32;
}

/* Of u16, u8 and a sample that is not empty: how low bytes and high bytes differ. */
static iron_dtype guess_16(const iron__candidate *c, const iron__sample *s) {
    uint64_t sums[2] = {0, 0}, pairs = s->count / 2;
    unsigned largest = 0;

    if (s->file_bytes % 2 != 0) {
        iron__because(c, "%" PRIu64 " bytes are odd: no width but u8 fits", s->file_bytes);
        return IRON_DTYPE_U8;
    }
    for (size_t k = 0; k < pairs; k++) {
        unsigned value = s->data[2 * k] | (unsigned)s->data[2 * k + 1] << 8;

        sums[0] += s->data[2 * k];
        sums[1] += s->data[2 * k + 1];
        largest = value > largest ? value : largest;
    }
    if (pairs == 0) /* it was cut since its size was asked */
        return IRON_DTYPE_NONE;
    iron__because(c, "as u16, the largest of %" PRIu64 " sampled values is %u", pairs, largest);
    iron__because(c,
                  "bytes at even places are %" PRIu64 " on average, at odd ones %" PRIu64
                  "; alike would not tell u16 from u8",
                  sums[0] / pairs, sums[1] / pairs);
    return IRON_DTYPE_U16;
}

iron_dtype iron__sniff_guess(const iron__candidate *c, const iron__sample *sample) {
    iron_dtype dtype;

    if (sample->count == 0 || is_all_zero(sample)) {
        iron__because(c, "%s: nothing tells how wide tokens are",
                      sample->count ? "every sampled byte is 0" : "it is empty");
        return IRON_DTYPE_NONE;
    }
    if (no_text(sample) * 1000 <= sample->count) {
        iron__because(c, "it reads as text (ASCII or UTF-8), which is no tokens yet");
        iron__because(c, "--dtype u8 would take its %" PRIu64 " bytes for tokens",
                      sample->file_bytes);
        return IRON_DTYPE_U8;
    }
    if (is_i64(c, sample))
        return IRON_DTYPE_I64;
    dtype = guess_32(c, sample);
    return dtype == IRON_DTYPE_NONE ? guess_16(c, sample) : dtype;
}
