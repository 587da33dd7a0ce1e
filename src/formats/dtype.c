/* SPDX-License-Identifier: MIT */
/*
 * dtype.c: the table of dtypes, and the conversion of each to 32 bits. The loops are plain, so that
 * the compiler vectorises them.
 */
#include "formats/dtype.h"

#include "core/cpu.h"
#include "core/fail.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name, *numpy_name; /* both are understood */
    size_t bytes;
} dtypes[] = {[IRON_DTYPE_NONE] = {"none", "none", 0}, [IRON_DTYPE_U8] = {"u8", "uint8", 1},
              [IRON_DTYPE_U16] = {"u16", "uint16", 2}, [IRON_DTYPE_U32] = {"u32", "uint32", 4},
              [IRON_DTYPE_I32] = {"i32", "int32", 4},  [IRON_DTYPE_I64] = {"i64", "int64", 8}};

#define LANES    32u
#define LINE_I64 8u /* in a line of 64 bytes */

#define DTYPE_COUNT (sizeof dtypes / sizeof dtypes[0])

iron_status iron_dtype_parse(const char *name, iron_dtype *out, iron_error *err) {
    for (*out = IRON_DTYPE_U8; *out < DTYPE_COUNT; ++*out)
        if (strcmp(dtypes[*out].name, name) == 0 || strcmp(dtypes[*out].numpy_name, name) == 0)
            return IRON_OK;
    *out = IRON_DTYPE_NONE;
    IRON_FAIL(err, IRON_E_ARG, "unknown dtype '%.40s'; use u8, u16, u32, i32 or i64", name);
}

const char *iron_dtype_name(iron_dtype dtype) {
    return dtypes[(size_t)dtype < DTYPE_COUNT ? dtype : IRON_DTYPE_NONE].name;
}

size_t iron_dtype_bytes(iron_dtype dtype) {
    return (size_t)dtype < DTYPE_COUNT ? dtypes[dtype].bytes : 0;
}

iron_status iron__dtype_from_code(unsigned code, bool is_f64_first, const char *name, unsigned byte,
                                  iron_dtype *dtype, iron_error *err) {
    static const char *const names[] = {"nothing", "u8",  "i8",  "i16", "i32",
                                        "i64",     "f32", "f64", "u16"};
    const char *shown = "unknown";

    *dtype = code == 1   ? IRON_DTYPE_U8
             : code == 4 ? IRON_DTYPE_I32
             : code == 5 ? IRON_DTYPE_I64
             : code == 8 ? IRON_DTYPE_U16
                         : IRON_DTYPE_NONE;
    if (code == 6 || code == 7)
        shown = (code == 6) == is_f64_first ? "f64" : "f32";
    else if (code < sizeof names / sizeof names[0])
        shown = names[code];
    IRON_FAIL_IF(*dtype == IRON_DTYPE_NONE, err, IRON_E_FORMAT,
                 "%.100s at byte %u: element type %u (%s), expected 1 (u8), 4 (i32), 5 (i64) or 8 "
                 "(u16)",
                 name, byte, code, shown);
    return IRON_OK;
}

/* Narrows i64, and returns whether all are tokens. Bits are collected in as many lanes as several
 * vectors have: those of one vector would wait for each other. */
static bool narrow_i64(const int64_t *from, size_t count, uint32_t *to) {
    uint64_t bits[LANES] = {0}, all = 0;

    for (; count >= LANES; count -= LANES, from += LANES, to += LANES) {
        for (size_t line = 0; line < LANES; line += LINE_I64)
            iron__prefetch(from + line);
        for (size_t k = 0; k < LANES; k++) {
            bits[k] |= (uint64_t)from[k];
            to[k] = (uint32_t)from[k];
        }
    }
    for (size_t k = 0; k < count; k++) {
        all |= (uint64_t)from[k];
        to[k] = (uint32_t)from[k];
    }
    for (size_t k = 0; k < LANES; k++)
        all |= bits[k];
    return all <= UINT32_MAX;
}

/* The bits of i32 and i64 that tokens do not have. */
static uint64_t extra_bits_i32(const int32_t *values, size_t count) {
    uint32_t bits[LANES] = {0}, all = 0;

    for (; count >= LANES; count -= LANES, values += LANES)
        for (size_t k = 0; k < LANES; k++)
            bits[k] |= (uint32_t)values[k];
    for (size_t k = 0; k < count; k++)
        all |= (uint32_t)values[k];
    for (size_t k = 0; k < LANES; k++)
        all |= bits[k];
    return all >> 31;
}

static uint64_t extra_bits_i64(const int64_t *values, size_t count) {
    uint64_t all = 0;

    for (size_t k = 0; k < count; k++)
        all |= (uint64_t)values[k];
    return all >> 32;
}

const uint32_t *iron__view_check_tokens(const iron__tokens_view *view, size_t begin, size_t *count,
                                        uint32_t wide[IRON_WIDEN_TOKENS], bool *is_bad) {
    const uint32_t *in_place = view->data;

    if (view->dtype == IRON_DTYPE_U32)
        return in_place + begin;
    if (*count > IRON_WIDEN_TOKENS)
        *count = IRON_WIDEN_TOKENS;
    switch (view->dtype) {
    case IRON_DTYPE_I32:
        *is_bad = extra_bits_i32((const int32_t *)in_place + begin, *count) || *is_bad;
        return in_place + begin;
    case IRON_DTYPE_U8:
        for (size_t k = 0; k < *count; k++)
            wide[k] = ((const uint8_t *)view->data + begin)[k];
        break;
    case IRON_DTYPE_U16:
        for (size_t k = 0; k < *count; k++)
            wide[k] = ((const uint16_t *)view->data + begin)[k];
        break;
    default:
        *is_bad = !narrow_i64((const int64_t *)view->data + begin, *count, wide) || *is_bad;
    }
    return wide;
}

const uint32_t *iron__view_tokens(const iron__tokens_view *view, size_t begin, size_t *count,
                                  uint32_t wide[IRON_WIDEN_TOKENS]) {
    bool is_bad = false;

    if (view->dtype == IRON_DTYPE_I32) /* without negative values it has the same bits as u32 */
        return (const uint32_t *)view->data + begin;
    return iron__view_check_tokens(view, begin, count, wide, &is_bad);
}

/* First checks whether there is a bad value at all, and only then searches for it. */
size_t iron__view_first_bad(const iron__tokens_view *view) {
    uint64_t extra = 0;
    size_t good = 0;

    if (view->dtype == IRON_DTYPE_I32)
        extra = extra_bits_i32(view->data, view->count);
    else if (view->dtype == IRON_DTYPE_I64)
        extra = extra_bits_i64(view->data, view->count);
    if (!extra)
        return view->count;
    while ((uint64_t)iron__view_stored(view, good) <= UINT32_MAX)
        good++;
    return good;
}

iron_status iron__view_check(const iron__tokens_view *view, uint64_t position, iron_error *err) {
    size_t bad = iron__view_first_bad(view);

    IRON_FAIL_IF(bad < view->count, err, IRON_E_FORMAT,
                 "token at position %" PRIu64 " is %" PRId64
                 "; tokens must be 0 to 4294967295: check the dtype",
                 position + bad, iron__view_stored(view, bad));
    return IRON_OK;
}

int64_t iron__view_stored(const iron__tokens_view *view, size_t index) {
    switch (view->dtype) {
    case IRON_DTYPE_U8:
        return ((const uint8_t *)view->data)[index];
    case IRON_DTYPE_U16:
        return ((const uint16_t *)view->data)[index];
    case IRON_DTYPE_U32:
        return ((const uint32_t *)view->data)[index];
    case IRON_DTYPE_I32:
        return ((const int32_t *)view->data)[index];
    case IRON_DTYPE_I64:
        return ((const int64_t *)view->data)[index];
    case IRON_DTYPE_NONE:
        break;
    }
    return 0;
}

iron__tokens_view iron__view_rest(const iron__tokens_view *view, size_t taken) {
    const char *data = view->data;

    return (iron__tokens_view){view->dtype, data + taken * iron_dtype_bytes(view->dtype),
                               view->count - taken};
}

/* Tokens outside the vocabulary. They are rare, and the maximum rules them out: finding it is
 * several times as fast as counting. Four maxima, so that the compiler's vector code need not wait
 * for one. */
#define COUNT_OUTSIDE(type)                                                                        \
    do {                                                                                           \
        const type *t = view->data;                                                                \
        size_t quarter = view->count / 4;                                                          \
        type a = 0, b = 0, c = 0, d = 0;                                                           \
        for (size_t k = 0; k < quarter; k++) {                                                     \
            a = t[k] > a ? t[k] : a;                                                               \
            b = t[k + quarter] > b ? t[k + quarter] : b;                                           \
            c = t[k + 2 * quarter] > c ? t[k + 2 * quarter] : c;                                   \
            d = t[k + 3 * quarter] > d ? t[k + 3 * quarter] : d;                                   \
        }                                                                                          \
        for (size_t k = 4 * quarter; k < view->count; k++)                                         \
            a = t[k] > a ? t[k] : a;                                                               \
        if (a >= vocab || b >= vocab || c >= vocab || d >= vocab)                                  \
            for (size_t k = 0; k < view->count; k++)                                               \
                count += t[k] >= vocab;                                                            \
    } while (0)

uint64_t iron__view_count_outside(const iron__tokens_view *view, uint64_t vocab) {
    uint64_t count = 0;

    switch (iron_dtype_bytes(view->dtype)) {
    case 1:
        if (vocab <= UINT8_MAX)
            COUNT_OUTSIDE(uint8_t);
        break;
    case 2:
        if (vocab <= UINT16_MAX)
            COUNT_OUTSIDE(uint16_t);
        break;
    case 4:
        COUNT_OUTSIDE(uint32_t);
        break;
    default:
        COUNT_OUTSIDE(uint64_t);
        break;
    }
    return count;
}
