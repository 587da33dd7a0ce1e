/* SPDX-License-Identifier: MIT */
/*
 * dtype.c: the table of dtypes, and the conversion of each to 32 bits. The loops are plain, so that
 * the compiler vectorises them.
 */
#include "formats/dtype.h"

#include "core/fail.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    iron_dtype dtype;
    const char *name, *numpy_name; /* both are understood */
    size_t bytes;
} dtypes[] = {
    {IRON_DTYPE_U8, "u8", "uint8", 1},    {IRON_DTYPE_U16, "u16", "uint16", 2},
    {IRON_DTYPE_U32, "u32", "uint32", 4}, {IRON_DTYPE_I32, "i32", "int32", 4},
    {IRON_DTYPE_I64, "i64", "int64", 8},
};

#define DTYPE_COUNT (sizeof dtypes / sizeof dtypes[0])

iron_status iron_dtype_parse(const char *name, iron_dtype *out, iron_error *err) {
    for (size_t k = 0; k < DTYPE_COUNT; k++) {
        if (strcmp(dtypes[k].name, name) == 0 || strcmp(dtypes[k].numpy_name, name) == 0) {
            *out = dtypes[k].dtype;
            return IRON_OK;
        }
    }
    *out = IRON_DTYPE_NONE;
    IRON_FAIL(err, IRON_E_ARG, "unknown dtype '%.40s'; use u8, u16, u32, i32 or i64", name);
}

const char *iron_dtype_name(iron_dtype dtype) {
    for (size_t k = 0; k < DTYPE_COUNT; k++)
        if (dtypes[k].dtype == dtype)
            return dtypes[k].name;
    return "none";
}

size_t iron_dtype_bytes(iron_dtype dtype) {
    for (size_t k = 0; k < DTYPE_COUNT; k++)
        if (dtypes[k].dtype == dtype)
            return dtypes[k].bytes;
    return 0;
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

/* i32 without negative values has the same bits as u32. */
static int is_in_place(iron_dtype dtype) {
    return dtype == IRON_DTYPE_U32 || dtype == IRON_DTYPE_I32;
}

static void widen_u8(const uint8_t *from, size_t count, uint32_t *to) {
    for (size_t k = 0; k < count; k++)
        to[k] = from[k];
}

static void widen_u16(const uint16_t *from, size_t count, uint32_t *to) {
    for (size_t k = 0; k < count; k++)
        to[k] = from[k];
}

static void narrow_i64(const int64_t *from, size_t count, uint32_t *to) {
    for (size_t k = 0; k < count; k++)
        to[k] = (uint32_t)from[k];
}

const uint32_t *iron__view_tokens(const iron__tokens_view *view, size_t begin, size_t *count,
                                  uint32_t wide[IRON_WIDEN_TOKENS]) {
    if (is_in_place(view->dtype))
        return (const uint32_t *)view->data + begin;
    if (*count > IRON_WIDEN_TOKENS)
        *count = IRON_WIDEN_TOKENS;
    if (view->dtype == IRON_DTYPE_U8)
        widen_u8((const uint8_t *)view->data + begin, *count, wide);
    else if (view->dtype == IRON_DTYPE_U16)
        widen_u16((const uint16_t *)view->data + begin, *count, wide);
    else
        narrow_i64((const int64_t *)view->data + begin, *count, wide);
    return wide;
}

/* First checks whether any value is out of range, which vectorises, and only then searches for
 * it. */
static size_t first_bad_i32(const int32_t *tokens, size_t count) {
    int32_t signs = 0;
    size_t good = 0;

    for (size_t k = 0; k < count; k++)
        signs |= tokens[k];
    if (signs >= 0)
        return count;
    while (tokens[good] >= 0)
        good++;
    return good;
}

static size_t first_bad_i64(const int64_t *tokens, size_t count) {
    uint64_t high = 0;
    size_t good = 0;

    for (size_t k = 0; k < count; k++)
        high |= (uint64_t)tokens[k] >> 32;
    if (high == 0)
        return count;
    while ((uint64_t)tokens[good] >> 32 == 0)
        good++;
    return good;
}

size_t iron__view_first_bad(const iron__tokens_view *view) {
    if (view->dtype == IRON_DTYPE_I32)
        return first_bad_i32(view->data, view->count);
    if (view->dtype == IRON_DTYPE_I64)
        return first_bad_i64(view->data, view->count);
    return view->count;
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
