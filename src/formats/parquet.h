/* SPDX-License-Identifier: MIT */
/*
 * parquet.h: what the files of the Parquet reader share.
 *
 *   parquet_meta.c    Thrift: the footer (schema, row groups) and the headers of pages
 *   parquet_values.c  encodings: levels and values
 *   parquet.c         the format: chunks, pages and blocks
 *
 * A column of a row group is a chunk: a sequence of pages, the first of which may be a dictionary.
 * A page has repetition levels (0: a row begins), definition levels (the maximum: there is a value;
 * less: an empty list or a null) and values.
 */
#ifndef IRON_FORMATS_PARQUET_H
#define IRON_FORMATS_PARQUET_H

#include "formats/table.h"

#include <limits.h>

/* Bytes that can be read after the end of encoded data: unpacking reads whole words. */
#define IRON_PARQUET_SLACK 64u

/* What the levels of a column mean. */
typedef struct iron__parquet_shape {
    unsigned repetition_max; /* 1: lists; 0: one value in each row */
    unsigned definition_max; /* of a value: 0 to 3 */
    unsigned empty;          /* of an empty list; UINT_MAX: not possible */
} iron__parquet_shape;

/* The footer (parquet_meta.c). */

/* One element of the schema, a tree whose elements follow each other depth first. */
typedef struct iron__parquet_element {
    const unsigned char *name;
    size_t name_bytes;
    int type;       /* -1: a group */
    int repetition; /* -1: not given */
    int converted;  /* -1: none */
    int logical;    /* -1: none */
    int bits;       /* of a logical integer */
    bool is_signed;
    size_t children;
} iron__parquet_element;

/* A top-level column that can be read. */
typedef struct iron__parquet_column {
    iron__parquet_shape shape;
    iron__stored stored;
    int type;    /* INT32 or INT64 */
    size_t leaf; /* its place among the columns of a row group */
} iron__parquet_column;

typedef struct iron__parquet_footer {
    const char *name; /* of the file */
    uint64_t at;      /* where it begins in the file */
    unsigned char *data;
    size_t bytes;
    const unsigned char *schema, *groups; /* in data: where these lists begin; NULL: nowhere */
    uint64_t rows;
    iron__parquet_element *elements;
    size_t element_count, leaf_count;
    iron__table_column *columns;
    iron__parquet_column *details; /* of the columns that are tokens */
    size_t column_count;
} iron__parquet_footer;

/* The chosen column of one row group. */
typedef struct iron__parquet_chunk {
    uint64_t at, end; /* bytes of its pages */
    uint64_t values;  /* levels: values, and rows without any */
    uint64_t rows, first_row;
    iron__codec codec;
    uint64_t dictionary_at; /* its page; 0: none was found */
} iron__parquet_chunk;

/* Reads the schema; at, data, bytes and name must be set. Clear the footer, also after a failure,
 * which frees its data. */
iron_status iron__parquet_footer_read(iron__parquet_footer *f, iron_error *err);
void iron__parquet_footer_clear(iron__parquet_footer *f);

/* The chunks of a column; the caller frees *out, also after a failure. */
iron_status iron__parquet_chunks_read(const iron__parquet_footer *f, size_t column,
                                      iron__parquet_chunk **out, size_t *count, iron_error *err);

/* Pages. */

typedef enum iron__parquet_page_type {
    IRON_PARQUET_DATA = 0,
    IRON_PARQUET_INDEX = 1,
    IRON_PARQUET_DICTIONARY = 2,
    IRON_PARQUET_DATA_V2 = 3
} iron__parquet_page_type;

typedef enum iron__parquet_encoding {
    IRON_PARQUET_PLAIN = 0,
    IRON_PARQUET_PLAIN_DICTIONARY = 2,
    IRON_PARQUET_RLE = 3,
    IRON_PARQUET_BIT_PACKED = 4,
    IRON_PARQUET_DELTA = 5,
    IRON_PARQUET_RLE_DICTIONARY = 8,
    IRON_PARQUET_BYTE_STREAM_SPLIT = 9
} iron__parquet_encoding;

typedef struct iron__parquet_page {
    uint64_t at, body;     /* bytes of the file: the header, and what follows it */
    int type;              /* iron__parquet_page_type, or one that is not known */
    uint32_t size, stored; /* bytes of the body when decompressed, and in the file */
    bool has_crc;
    uint32_t crc;
    uint32_t values;
    int encoding, definition_encoding, repetition_encoding;
    uint32_t definition_bytes, repetition_bytes; /* version 2 */
    bool is_compressed;                          /* version 2; true otherwise */
} iron__parquet_page;

typedef enum iron__parquet_parse {
    IRON_PARQUET_PARSED,
    IRON_PARQUET_SHORT, /* the header is longer than this */
    IRON_PARQUET_BROKEN /* *why says how */
} iron__parquet_parse;

/* Reads a page header; `used` are its bytes. */
iron__parquet_parse iron__parquet_page_parse(const unsigned char *from, size_t count,
                                             iron__parquet_page *out, size_t *used,
                                             const char **why);

/* Levels (parquet_values.c). */

/* The levels of a page. */
typedef struct iron__parquet_levels {
    const unsigned char *repetition, *definition; /* runs; followed by slack */
    size_t repetition_bytes, definition_bytes;
    uint64_t count;
} iron__parquet_levels;

typedef struct iron__parquet_tally {
    uint64_t tokens, rows; /* values, and rows that begin */
    bool is_continued;     /* the first value belongs to a row that began before */
    bool has_null;         /* the tally ends before it */
    const char *fault;     /* NULL, or what is wrong with the levels */
} iron__parquet_tally;

/* Counts tokens and rows. If `places` is not NULL, it receives the tokens with which rows begin,
 * the first token of the page being `first`. Fails only without memory. */
iron_status iron__parquet_tally_levels(const iron__parquet_shape *shape,
                                       const iron__parquet_levels *levels, iron__block *places,
                                       uint64_t first, iron__parquet_tally *out, iron_error *err);

/* Values. */

typedef struct iron__parquet_dictionary {
    const unsigned char *stored; /* the integers of its page */
    const uint32_t *tokens;
    size_t count;
    bool has_bad; /* some of its integers are not tokens */
} iron__parquet_dictionary;

typedef struct iron__parquet_values {
    int encoding;
    iron__stored stored;
    const unsigned char *from; /* followed by slack */
    size_t bytes, count;
    const iron__parquet_dictionary *dictionary;
} iron__parquet_values;

/* Why values could not be decoded: a fault of their encoding, or an integer that is not a token. */
typedef struct iron__parquet_failure {
    const char *fault;
    size_t index; /* of the value */
    unsigned char stored[8];
} iron__parquet_failure;

/* Decodes values to tokens of 32 bits; false: *failure says why. */
bool iron__parquet_decode(const iron__parquet_values *values, uint32_t *to,
                          iron__parquet_failure *failure);

#endif
