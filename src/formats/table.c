/* SPDX-License-Identifier: MIT */
/*
 * table.c: what the formats of tables share: choosing the column, converting stored integers to
 * tokens, and reading tokens at any position.
 */
#include "formats/table.h"

#include "core/array.h"
#include "core/fail.h"
#include "core/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stored bytes of a direct block that are converted at a time. */
#define CONVERT_BYTES ((size_t)32 << 10)

iron_status iron__table_create(const iron__table_kind *kind, size_t state_bytes, iron__table **out,
                               iron_error *err) {
    *out = calloc(1, sizeof **out);
    if (*out)
        (*out)->state = calloc(1, state_bytes);
    if (*out && (*out)->state) {
        (*out)->kind = kind;
        return IRON_OK;
    }
    free(*out);
    *out = NULL;
    return iron__no_memory(err, "a table");
}

void iron__table_destroy(iron__table *table) {
    if (!table)
        return;
    table->kind->destroy(table->state);
    free(table->column);
    free(table->blocks);
    free(table);
}

iron_status iron__table_add_block(iron__table *table, const iron__table_block *block,
                                  iron_error *err) {
    if (!IRON_ARRAY_GROW(&table->blocks, table->block_count, &table->block_capacity))
        return iron__no_memory(err, "a table");
    table->blocks[table->block_count++] = *block;
    return IRON_OK;
}

/* Stored integers. */

iron_dtype iron__stored_dtype(iron__stored stored) {
    size_t bytes = iron__stored_bytes(stored);

    return bytes == 1 ? IRON_DTYPE_U8 : bytes == 2 ? IRON_DTYPE_U16 : IRON_DTYPE_U32;
}

iron_dtype iron__stored_signed(iron__stored stored) {
    return stored == IRON_STORED_I32   ? IRON_DTYPE_I32
           : stored == IRON_STORED_I64 ? IRON_DTYPE_I64
                                       : IRON_DTYPE_NONE;
}

const char *iron__stored_name(iron__stored stored) {
    static const char *const names[] = {"uint8", "uint16", "uint32", "uint64",
                                        "int8",  "int16",  "int32",  "int64"};

    return names[stored];
}

/* The first of `count` integers of a signed type that is negative, or count. Most often none is:
 * so their union is looked at first, which compilers vectorise. */
#define DEFINE_CHECK(name, type)                                                                   \
    static size_t name(const unsigned char *from, size_t count) {                                  \
        type all = 0, value;                                                                       \
                                                                                                   \
        for (size_t k = 0; k < count; k++) {                                                       \
            memcpy(&value, from + k * sizeof value, sizeof value);                                 \
            all = (type)(all | value);                                                             \
        }                                                                                          \
        for (size_t k = 0; all < 0 && k < count; k++) {                                            \
            memcpy(&value, from + k * sizeof value, sizeof value);                                 \
            if (value < 0)                                                                         \
                return k;                                                                          \
        }                                                                                          \
        return count;                                                                              \
    }

DEFINE_CHECK(first_negative_8, int8_t)
DEFINE_CHECK(first_negative_16, int16_t)
DEFINE_CHECK(first_negative_32, int32_t)

/* 64 bits to 32; negative ones have their upper bits set, too. */
static size_t narrow(const unsigned char *from, size_t count, unsigned char *to) {
    uint64_t all = 0, value;

    for (size_t k = 0; k < count; k++) {
        uint32_t token;

        memcpy(&value, from + 8 * k, sizeof value);
        all |= value;
        token = (uint32_t)value;
        memcpy(to + 4 * k, &token, sizeof token);
    }
    for (size_t k = 0; all > UINT32_MAX && k < count; k++) {
        memcpy(&value, from + 8 * k, sizeof value);
        if (value > UINT32_MAX)
            return k;
    }
    return count;
}

size_t iron__stored_convert(iron__stored stored, const void *from, size_t count, void *to) {
    if (iron__stored_bytes(stored) == 8)
        return narrow(from, count, to);
    if (to != from)
        memcpy(to, from, count * iron__stored_bytes(stored));
    switch (stored) {
    case IRON_STORED_I8:
        return first_negative_8(to, count);
    case IRON_STORED_I16:
        return first_negative_16(to, count);
    case IRON_STORED_I32:
        return first_negative_32(to, count);
    default:
        return count;
    }
}

iron_status iron__stored_refuse(iron__stored stored, const void *from, size_t index,
                                const char *name, const char *column, uint64_t row,
                                iron_error *err) {
    size_t bytes = iron__stored_bytes(stored);
    unsigned unused = 64 - 8 * (unsigned)bytes; /* upper bits */
    uint64_t bits = 0;
    char value[24];

    memcpy(&bits, (const unsigned char *)from + index * bytes, bytes);
    if (stored == IRON_STORED_U64)
        snprintf(value, sizeof value, "%" PRIu64, bits);
    else /* with the sign */
        snprintf(value, sizeof value, "%" PRId64, (int64_t)(bits << unused) >> unused);
    return iron__fail(err, IRON_E_FORMAT, EDOM,
                      "%.90s: row %" PRIu64 " of column %.50s has %s; tokens must be 0 to "
                      "4294967295",
                      name, row, column, value);
}

iron_status iron__table_refuse_null(const char *name, const char *column, uint64_t row,
                                    iron_error *err) {
    return iron__fail(err, IRON_E_FORMAT, EDOM,
                      "%.90s: row %" PRIu64 " of column %.50s is null or has a null; every row "
                      "must have tokens",
                      name, row, column);
}

iron_status iron__window_get(iron__window *w, const iron__input *in, uint64_t at, size_t need,
                             size_t want, const unsigned char **out, iron_error *err) {
    uint64_t end = w->at + w->block.bytes;
    size_t there = 0;
    iron_status status;

    want = want > need ? want : need;
    if (at >= w->at && at <= end && w->block.data) {
        there = (size_t)(end - at);
        *out = w->block.data + (at - w->at);
        if (there >= need)
            return IRON_OK;
        memmove(w->block.data, *out, there);
    }
    w->block.bytes = there;
    status = iron__block_reserve(&w->block, want + IRON_SLACK, err);
    w->block.bytes = 0; /* if the rest cannot be read */
    *out = w->block.data;
    IRON_TRY(status);
    IRON_TRY(iron__input_read_at(in, at + there, w->block.data + there, want - there, err));
    memset(w->block.data + want, 0, IRON_SLACK);
    w->at = at;
    w->block.bytes = want;
    return IRON_OK;
}

/* The column. */

void iron__table_columns_free(iron__table_column *columns, size_t count) {
    for (size_t k = 0; k < count; k++)
        free(columns[k].name);
    free(columns);
}

static const char *const usual[] = {"input_ids", "tokens", "token_ids", "ids"};

bool iron__table_is_usual(const char *name) {
    for (size_t k = 0; k < sizeof usual / sizeof usual[0]; k++)
        if (strcmp(name, usual[k]) == 0)
            return true;
    return false;
}

iron_status iron__table_choose(const iron__table_column *columns, size_t count, const char *wanted,
                               const char *name, size_t *index, iron_error *err) {
    char text[120] = "", item[128];
    size_t found = 0;

    *index = 0;
    for (size_t k = 0; k < count; k++) {
        snprintf(item, sizeof item, "%.40s (%s)", columns[k].name, columns[k].type);
        iron__append_item(text, sizeof text, item);
    }
    for (size_t k = 0; wanted && k < count; k++)
        if (strcmp(columns[k].name, wanted) == 0) {
            *index = k;
            IRON_FAIL_IF(!columns[k].is_tokens, err, IRON_E_FORMAT,
                         "%.80s: column %.40s is %s, not integers or a list of them; its columns "
                         "are: %s",
                         name, wanted, columns[k].type, text);
            return IRON_OK;
        }
    IRON_FAIL_IF(wanted, err, IRON_E_ARG, "%.80s has no column %.40s; its columns are: %s", name,
                 wanted, text);
    for (size_t u = 0; u < sizeof usual / sizeof usual[0]; u++)
        for (size_t k = 0; k < count; k++)
            if (columns[k].is_tokens && strcmp(columns[k].name, usual[u]) == 0) {
                *index = k;
                return IRON_OK;
            }
    for (size_t k = 0; k < count; k++) {
        *index = columns[k].is_tokens ? k : *index;
        found += columns[k].is_tokens;
    }
    IRON_FAIL_IF(found == 0, err, IRON_E_FORMAT,
                 "%.80s has no column of integers or lists of integers; its columns are: %s", name,
                 count ? text : "none");
    IRON_FAIL_IF(found > 1, err, IRON_E_ARG,
                 "%.80s has %zu columns that could be tokens; choose one with --column: %s", name,
                 found, text);
    return IRON_OK;
}

/* Reading. */

size_t iron__table_find(const iron__table *t, uint64_t token) {
    return t->block_count == 0
               ? 0
               : iron__array_find(&t->blocks[0].first, sizeof t->blocks[0], t->block_count, token);
}

/* Reads and converts stored values of a direct block, from token `offset` of it on. `from` has room
 * for them; it may be `to`. */
static iron_status convert(const iron__table *t, const iron__input *in, size_t index,
                           uint64_t offset, unsigned char *from, unsigned char *to, size_t count,
                           iron_error *err) {
    const iron__table_block *b = &t->blocks[index];
    size_t stored = iron__stored_bytes(b->stored), good;
    iron__block rows = {.data = NULL};
    uint64_t begun = b->first_row;
    iron_status status;

    IRON_TRY(iron__input_read_at(in, b->at + offset * stored, from, count * stored, err));
    good = iron__stored_convert(b->stored, from, count, to);
    if (good == count)
        return IRON_OK;
    status = t->kind->decode(t, in, index, false, &rows, err);
    for (size_t k = 0; k < rows.place_count && rows.places[k] <= offset + good; k++)
        begun++;
    iron__block_clear(&rows);
    IRON_TRY(status);
    return iron__stored_refuse(b->stored, from, good, iron__path_shown(in->path), t->column,
                               begun > 0 ? begun - 1 : 0, err);
}

/* Reads tokens of a direct block; what need not be narrowed goes to where it is wanted. */
static iron_status read_direct(const iron__table *t, const iron__input *in, size_t index,
                               uint64_t offset, unsigned char *to, size_t count, iron_error *err) {
    size_t stored = iron__stored_bytes(t->blocks[index].stored);
    size_t width = iron_dtype_bytes(t->dtype);
    unsigned char scratch[CONVERT_BYTES];

    if (stored == width)
        return convert(t, in, index, offset, to, to, count, err);
    while (count > 0) {
        size_t some = CONVERT_BYTES / stored < count ? CONVERT_BYTES / stored : count;

        IRON_TRY(convert(t, in, index, offset, scratch, to, some, err));
        to += some * width;
        offset += some;
        count -= some;
    }
    return IRON_OK;
}

iron_status iron__table_read(const iron__table *table, const iron__input *in,
                             const iron__blocks_range *blocks, uint64_t first, void *to,
                             size_t count, iron_error *err) {
    size_t width = iron_dtype_bytes(table->dtype);
    unsigned char *next = to;

    for (size_t k = iron__table_find(table, first); count > 0; k++) {
        uint64_t offset = first - table->blocks[k].first;
        uint64_t left = iron__table_block_tokens(table, k) - offset;
        size_t some = count < left ? count : (size_t)left;
        const iron__block *block;

        if (some > 0 && table->blocks[k].is_direct) {
            IRON_TRY(read_direct(table, in, k, offset, next, some, err));
        } else if (some > 0) {
            IRON_TRY(iron__blocks_get(blocks->cache, blocks->owner, blocks->base + k, &block,
                                      in->stop, err));
            memcpy(next, block->data + offset * width, some * width);
            iron__blocks_put(blocks->cache, block, some * width);
        }
        next += some * width;
        first += some;
        count -= some;
    }
    return IRON_OK;
}

iron_status iron__table_row_starts(const iron__table *table, const iron__input *in, size_t index,
                                   iron__block *places, iron_error *err) {
    iron__block rows = {.data = NULL};
    iron_status status = table->kind->decode(table, in, index, false, &rows, err);

    for (size_t k = 0; k < rows.place_count && status == IRON_OK; k++)
        status = iron__block_add_place(places, table->blocks[index].first + rows.places[k], err);
    iron__block_clear(&rows);
    return status;
}
