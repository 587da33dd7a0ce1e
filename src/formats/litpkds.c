/* SPDX-License-Identifier: MIT */
/*
 * litpkds.c: packed data sets of lit-gpt and TinyLlama: 24 bytes of header, then the tokens of one
 * chunk. How many there are follows from the file's size; the chunk size in the header is what the
 * writer aimed at, so that a difference is worth a word but is no fault.
 */
#include "core/fail.h"
#include "formats/format.h"

#include <inttypes.h>
#include <string.h>

#define MAGIC        "LITPKDS"
#define MAGIC_BYTES  7u
#define HEADER_BYTES 24u

static bool recognise(const iron__candidate *c) {
    return c->head_count >= MAGIC_BYTES && memcmp(c->head, MAGIC, MAGIC_BYTES) == 0;
}

static iron_status take_dtype(const iron__candidate *c, unsigned code, iron__layout *layout,
                              iron_error *err) {
    static const char *const names[] = {"nothing", "u8",  "i8",  "i16", "i32",
                                        "i64",     "f32", "f64", "u16"};
    static const iron_dtype dtypes[] = {
        IRON_DTYPE_NONE, IRON_DTYPE_U8,   IRON_DTYPE_NONE, IRON_DTYPE_NONE, IRON_DTYPE_I32,
        IRON_DTYPE_I64,  IRON_DTYPE_NONE, IRON_DTYPE_NONE, IRON_DTYPE_U16,
    };
    bool is_known = code < sizeof names / sizeof names[0];

    layout->dtype = is_known ? dtypes[code] : IRON_DTYPE_NONE;
    IRON_FAIL_IF(layout->dtype == IRON_DTYPE_NONE, err, IRON_E_FORMAT,
                 "%.100s at byte 15: element type %u (%s), expected 1 (u8), 4 (i32), 5 (i64) or 8 "
                 "(u16)",
                 c->name, code, is_known ? names[code] : "unknown");
    iron__because(c, "element type %u, which is %s, at byte 15", code, names[code]);
    return IRON_OK;
}

/* Of a file whose size is known. */
static void tell_chunk(const iron__candidate *c, const iron__layout *l, uint64_t chunk) {
    uint64_t tokens = (l->bytes - HEADER_BYTES) / iron_dtype_bytes(l->dtype);

    if (chunk == tokens)
        iron__because(c, "a chunk of %" PRIu64 " tokens, at byte 16, as the file's size says",
                      chunk);
    else
        iron__because(c,
                      "a chunk of %" PRIu64 " tokens, at byte 16, but %" PRIu64
                      " by the file's size: cut or extended?",
                      chunk, tokens);
}

static iron_status examine(iron__candidate *c, iron__layout *layout, iron_error *err) {
    unsigned char header[HEADER_BYTES];
    uint64_t version, chunk;

    IRON_TRY(iron__candidate_take(c, header, MAGIC_BYTES, err));
    IRON_FAIL_IF(memcmp(header, MAGIC, MAGIC_BYTES) != 0, err, IRON_E_FORMAT,
                 "%.100s at byte 0: %02x %02x %02x %02x ..., expected the magic LITPKDS", c->name,
                 header[0], header[1], header[2], header[3]);
    iron__because(c, "the magic LITPKDS at byte 0");
    IRON_TRY(iron__candidate_take(c, header + MAGIC_BYTES, sizeof header - MAGIC_BYTES, err));
    version = iron__stored_u64(header + MAGIC_BYTES);
    IRON_FAIL_IF(version != 1, err, IRON_E_FORMAT,
                 "%.100s at byte 7: LITPKDS version %" PRIu64 ", expected 1", c->name, version);
    iron__because(c, "its version, 1, at byte 7");
    IRON_TRY(take_dtype(c, header[15], layout, err));
    chunk = iron__stored_u64(header + 16);
    layout->data_offset = HEADER_BYTES;
    if (chunk == 0) /* aimed at nothing, so there is nothing */
        layout->tokens = 0;
    if (!iron__candidate_is_pipe(c))
        tell_chunk(c, layout, chunk);
    return IRON_OK;
}

const iron__format iron__format_litpkds = {"litpkds", recognise, examine, NULL};
