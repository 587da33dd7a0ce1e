/* SPDX-License-Identifier: MIT */
/*
 * table.h: the tokens of a column of a table: Arrow, Parquet and MDS files.
 *
 * A column holds integers, or lists of integers; each row is a document. When a file is examined
 * (format.h), its reader chooses the column, checks the structure of the whole file and divides the
 * tokens into blocks, each of about IRON_TABLE_BLOCK_TOKENS tokens, that can be decoded
 * independently. After that, table.c reads tokens at any position, from any thread. A block whose
 * values lie in the file as they are (uncompressed, not encoded) is "direct": table.c reads the
 * part that is needed and converts it. Other blocks are decoded as a whole by the format and kept
 * in a cache (io/blocks.h).
 *
 * Tokens come out as u8, u16 or u32: integers stored in 8 or 16 bits keep their width, those stored
 * in 32 or 64 bits (in Parquet, all) become u32; bytes of MDS have the user's dtype. Values outside
 * 0 ... 2^32-1 and nulls are errors that name row and column.
 */
#ifndef IRON_FORMATS_TABLE_H
#define IRON_FORMATS_TABLE_H

#include "io/blocks.h"
#include "io/input.h"

#include <iron/iron.h>

#include <stdbool.h>

#define IRON_TABLE_BLOCK_TOKENS ((uint64_t)1 << 20)
/* What a reader accepts to hold in memory for one block; larger parts are refused, with advice. */
#define IRON_TABLE_PART_BYTES_MAX ((uint64_t)1 << 30)

/* How integers are stored: little-endian. */
typedef enum iron__stored {
    IRON_STORED_U8,
    IRON_STORED_U16,
    IRON_STORED_U32,
    IRON_STORED_U64,
    IRON_STORED_I8,
    IRON_STORED_I16,
    IRON_STORED_I32,
    IRON_STORED_I64
} iron__stored;

static inline size_t iron__stored_bytes(iron__stored stored) { return (size_t)1 << (stored & 3); }

/* u8, u16 or u32: what tokens of such a column are. */
iron_dtype iron__stored_dtype(iron__stored stored);

/* I32 or I64 if the integers are of this type; else NONE. */
iron_dtype iron__stored_signed(iron__stored stored);

/* "uint8", "int64". */
const char *iron__stored_name(iron__stored stored);

typedef struct iron__table_block {
    uint64_t first;     /* token */
    uint64_t first_row; /* how many rows begin before it, in the file */
    uint64_t at;        /* direct: byte of the first value; else the format's own */
    bool is_direct;
    iron__stored stored; /* of a direct block */
} iron__table_block;

typedef struct iron__table iron__table;

typedef struct iron__table_kind {
    /* Decodes block `index`: appends tokens (of the table's dtype) to out->data, if wants_tokens,
     * and to out->places the tokens of the block with which rows begin, in order, counted from the
     * block's first: as often as rows begin there, since rows may be empty; a row that begins after
     * the block's last token and has no tokens has the place of the block's end. Places of a column
     * without lists may be left out if wants_tokens. Direct blocks are decoded only for their
     * places. Uses only `in`, which is open, and the table. Checks all
     * that the file claims, again: it may have changed. Called from several threads at once. */
    iron_status (*decode)(const iron__table *table, const iron__input *in, size_t index,
                          bool wants_tokens, iron__block *out, iron_error *err);
    void (*destroy)(void *state);
    /* (optional) Of a table that is read in order, because it comes through a pipe or is compressed
     * as a whole: appends the tokens of the next record batch to out->data, and to out->places
     * those with which its rows begin, as above. Sets *has_ended if there is no
     * further batch. */
    iron_status (*next)(iron__table *table, iron__input *in, iron__block *out, bool *has_ended,
                        iron_error *err);
} iron__table_kind;

/* Filled by a format's examine function; everything is from malloc. */
struct iron__table {
    const iron__table_kind *kind;
    void *state;          /* the format's own */
    char *column;         /* NULL: not a column, but an array in Fortran order; or not chosen yet */
    iron_dtype dtype;     /* NONE: the column is not chosen yet */
    iron_dtype stored_as; /* what the column itself has: I32, I64; or NONE */
    uint64_t tokens;
    uint64_t rows;             /* of a column; those that were read, if it is read in order */
    iron__table_block *blocks; /* in order; the tokens of a block end where the next one begins */
    size_t block_count, block_capacity;
};

/* `state_bytes`: of the format's own state, which is zeroed. */
iron_status iron__table_create(const iron__table_kind *kind, size_t state_bytes, iron__table **out,
                               iron_error *err);
void iron__table_destroy(iron__table *table);
/* Appends a block; its `first` must be the tokens of the blocks before. */
iron_status iron__table_add_block(iron__table *table, const iron__table_block *block,
                                  iron_error *err);
static inline uint64_t iron__table_block_tokens(const iron__table *t, size_t index) {
    return (index + 1 < t->block_count ? t->blocks[index + 1].first : t->tokens) -
           t->blocks[index].first;
}

/* Converts `count` stored integers to tokens of iron__stored_dtype(stored). Returns the index of
 * the first that is not a token, or count. `to` may be `from` if the widths are equal. */
size_t iron__stored_convert(iron__stored stored, const void *from, size_t count, void *to);
/* The error for a value that is not a token: `index` counts values from `from` on; `row` is the row
 * it is in. Its native code is EDOM, which tells it from damage. */
iron_status iron__stored_refuse(iron__stored stored, const void *from, size_t index,
                                const char *name, const char *column, uint64_t row,
                                iron_error *err);
/* The error for a null, with EDOM, too. */
iron_status iron__table_refuse_null(const char *name, const char *column, uint64_t row,
                                    iron_error *err);

/* Part of a regular file in memory; after it, IRON_SLACK bytes are zero, so that whole words can be
 * read at its end. */
#define IRON_SLACK 64u

typedef struct iron__window {
    iron__block block;
    uint64_t at; /* of its first byte */
} iron__window;

/* Gives bytes at ... at+need-1 of the file until the next call. If they are not all there, reads up
 * to `want` bytes from `at` on. */
iron_status iron__window_get(iron__window *w, const iron__input *in, uint64_t at, size_t need,
                             size_t want, const unsigned char **out, iron_error *err);

/* Columns, as they are offered to the user. */
typedef struct iron__table_column {
    char *name;     /* from malloc */
    char type[80];  /* "int32", "list<uint16>", "string" */
    bool is_tokens; /* integers, or a list of them */
} iron__table_column;

/* Whether it is a usual name of a column of tokens. */
bool iron__table_is_usual(const char *name);

void iron__table_columns_free(iron__table_column *columns, size_t count);

/* Which column to read: `wanted`, or the first of input_ids, tokens, token_ids and ids, or the only
 * one of integers. The error lists the columns. `name` is the file's. */
iron_status iron__table_choose(const iron__table_column *columns, size_t count, const char *wanted,
                               const char *name, size_t *index, iron_error *err);

/* Reads tokens first ... first+count-1, which must exist; `in` is the file, open. May be called
 * from several threads at once. */
iron_status iron__table_read(const iron__table *table, const iron__input *in,
                             const iron__blocks_range *blocks, uint64_t first, void *to,
                             size_t count, iron_error *err);

/* The block with a token: the last that begins there or before. */
size_t iron__table_find(const iron__table *table, uint64_t token);

/* Appends to `places` the tokens of the file with which the rows of block `index` begin. */
iron_status iron__table_row_starts(const iron__table *table, const iron__input *in, size_t index,
                                   iron__block *places, iron_error *err);

#endif
