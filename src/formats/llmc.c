/* SPDX-License-Identifier: MIT */
/*
 * llmc.c: token files of llm.c and modded-nanogpt: a header of 256 int32, of which three are used,
 * then the tokens. Each of the two magics stands for a width and has one version.
 */
#include "core/fail.h"
#include "formats/format.h"

#include <inttypes.h>

#define HEADER_BYTES 1024u

static const struct kind {
    uint32_t magic, version;
    iron_dtype dtype;
} kinds[] = {{20240520, 1, IRON_DTYPE_U16}, {20240801, 7, IRON_DTYPE_U32}};

static const struct kind *kind_of(const unsigned char *head) {
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        if (iron__stored_u32(head) == kinds[k].magic)
            return &kinds[k];
    return NULL;
}

static bool recognise(const iron__candidate *c) { return c->head_count >= 4 && kind_of(c->head); }

static iron_status examine(iron__candidate *c, iron__layout *layout, iron_error *err) {
    unsigned char header[HEADER_BYTES];
    const struct kind *kind;
    uint32_t count;

    IRON_TRY(iron__candidate_take(c, header, 4, err));
    kind = kind_of(header);
    IRON_FAIL_IF(!kind, err, IRON_E_FORMAT,
                 "%.100s at byte 0: %" PRIu32 ", expected llm.c's magic 20240520 or 20240801",
                 c->name, iron__stored_u32(header));
    iron__because(c, "the magic of llm.c, %" PRIu32 ", at byte 0: tokens are %s", kind->magic,
                  iron_dtype_name(kind->dtype));
    IRON_TRY(iron__candidate_take(c, header + 4, sizeof header - 4, err));
    IRON_FAIL_IF(iron__stored_u32(header + 4) != kind->version, err, IRON_E_FORMAT,
                 "%.100s at byte 4: llm.c version %" PRId32 ", expected %" PRIu32
                 " with magic %" PRIu32 "; if these are tokens, say --format raw",
                 c->name, (int32_t)iron__stored_u32(header + 4), kind->version, kind->magic);
    iron__because(c, "its version, %" PRIu32 ", at byte 4", kind->version);
    count = iron__stored_u32(header + 8);
    IRON_FAIL_IF(count > INT32_MAX, err, IRON_E_FORMAT,
                 "%.100s at byte 8: %" PRId32 " tokens, expected a number that is not negative",
                 c->name, (int32_t)count);
    iron__because(c, "%" PRIu32 " tokens, says byte 8, against the size of the file", count);
    layout->dtype = kind->dtype;
    layout->data_offset = HEADER_BYTES;
    layout->tokens = count;
    return IRON_OK;
}

const iron__format iron__format_llmc = {"llmc", recognise, examine, NULL};
