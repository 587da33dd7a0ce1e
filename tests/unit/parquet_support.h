/* SPDX-License-Identifier: MIT */
/*
 * parquet_support.h: a small writer of Parquet files, for tests that change any part of them. It
 * writes one column of integers in any form, encoding and page version. Compressed pages hold their
 * bytes as they are, in the frame of the codec, so that no library is needed for writing.
 */
#ifndef TESTS_UNIT_PARQUET_SUPPORT_H
#define TESTS_UNIT_PARQUET_SUPPORT_H

#include "source_support.h"

/* Bytes that grow at their end. */
typedef struct bytes {
    unsigned char *data;
    size_t count, room;
} bytes;

static inline void bytes_free(bytes *b) {
    free(b->data);
    *b = (bytes){.data = NULL};
}

static inline void add(bytes *b, const void *data, size_t count) {
    if (b->count + count > b->room) {
        b->room = 2 * (b->count + count) + 64;
        b->data = realloc(b->data, b->room);
        assert_non_null(b->data);
    }
    if (count)
        memcpy(b->data + b->count, data, count);
    b->count += count;
}

static inline void add_all(bytes *b, bytes *from) {
    add(b, from->data, from->count);
    bytes_free(from);
}

static inline void add_number(bytes *b, uint64_t value, unsigned count) {
    for (unsigned k = 0; k < count; k++) {
        unsigned char byte = (unsigned char)(value >> 8 * k);

        add(b, &byte, 1);
    }
}

static inline void add_varint(bytes *b, uint64_t value) {
    for (; value >= 128; value >>= 7)
        add_number(b, value | 128, 1);
    add_number(b, value, 1);
}

static inline uint64_t zigzag(int64_t value) {
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

/* Thrift's compact protocol. `last` is the number of the field before. */
enum {
    T_TRUE = 1,
    T_FALSE = 2,
    T_I8 = 3,
    T_I32 = 5,
    T_I64 = 6,
    T_BINARY = 8,
    T_LIST = 9,
    T_STRUCT = 12
};

static inline void add_field(bytes *b, int *last, int id, unsigned type) {
    if (id > *last && id - *last < 16) {
        add_number(b, (unsigned)(id - *last) << 4 | type, 1);
    } else {
        add_number(b, type, 1);
        add_varint(b, zigzag(id));
    }
    *last = id;
}

static inline void add_int(bytes *b, int *last, int id, int64_t value) {
    add_field(b, last, id, value >= INT32_MIN && value <= INT32_MAX ? T_I32 : T_I64);
    add_varint(b, zigzag(value));
}

static inline void add_string(bytes *b, const char *text) {
    add_varint(b, strlen(text));
    add(b, text, strlen(text));
}

static inline void add_text(bytes *b, int *last, int id, const char *text) {
    add_field(b, last, id, T_BINARY);
    add_string(b, text);
}

static inline void add_list(bytes *b, int *last, int id, unsigned type, size_t count) {
    add_field(b, last, id, T_LIST);
    if (count < 15) {
        add_number(b, count << 4 | type, 1);
    } else {
        add_number(b, 0xF0 | type, 1);
        add_varint(b, count);
    }
}

static inline void add_stop(bytes *b) { add_number(b, 0, 1); }

/* What is written. */

typedef enum form {
    FLAT_REQUIRED,
    FLAT_OPTIONAL,
    LIST_OPTIONAL, /* three levels; list and elements may be null */
    LIST_REQUIRED, /* three levels; neither may */
    LIST_MIXED,    /* three levels; the list may */
    LIST_TWO,      /* an optional list of a repeated value */
    LIST_TUPLE,    /* an optional list of a repeated group "array" */
    LIST_BARE,     /* a repeated value */
    LIST_NESTED    /* a list of lists: refused */
} form;

enum {
    PLAIN = 0,
    PLAIN_DICTIONARY = 2,
    BIT_PACKED = 4,
    DELTA = 5,
    DELTA_LENGTH = 6,
    DICTIONARY = 8,
    SPLIT = 9
};
enum {
    UNCOMPRESSED = 0,
    SNAPPY = 1,
    GZIP = 2,
    LZO = 3,
    BROTLI = 4,
    LZ4 = 5,
    ZSTD = 6,
    LZ4_RAW = 7
};
enum { INT32 = 1, INT64 = 2 };

typedef struct spec {
    const char *name; /* NULL: input_ids */
    form form;
    int type;           /* 0: INT32 */
    int converted;      /* 0: none; else one more than the type's number */
    int bits;           /* 0: no logical type; < 0: of a signed one */
    int logical;        /* another logical type, or 0 */
    int codec, version; /* version 0: 1 */
    int encoding;       /* of values */
    size_t fallback;    /* pages from this one on are plain; 0: none */
    size_t page_levels; /* 0: all of a row group */
    size_t group_rows;  /* 0: all */
    bool is_packed;     /* levels and indices: packed, not repeated */
    bool has_crc;
    bool has_bad_entry; /* of the dictionary: -9, which no value is */
    bool is_flag_clear; /* version 2: is_compressed is false */
    int level_encoding; /* 0: RLE */
    bool is_encrypted, is_elsewhere;
    size_t extra_columns; /* strings, before it */
    int64_t claim_rows;   /* added to what the footer says */
    int64_t claim_values; /* added to what chunks say */
    uint64_t claim_size;  /* of pages, instead of theirs; 0: the truth */
} spec;

/* Rows: of lists, their lengths; NULL_LIST and NULL_ELEMENT (a list of one null). Of flat columns a
 * row is a value, or NULL_ELEMENT. */
enum { NULL_LIST = -1, NULL_ELEMENT = -2 };

typedef struct level {
    unsigned repetition, definition;
    bool has_value;
    int64_t value;
} level;

typedef struct levels {
    level *at;
    size_t count;
} levels;

static inline bool is_flat(const spec *s) { return s->form <= FLAT_OPTIONAL; }

static inline unsigned definition_max(const spec *s) {
    switch (s->form) {
    case FLAT_REQUIRED:
        return 0;
    case FLAT_OPTIONAL:
    case LIST_REQUIRED:
    case LIST_BARE:
        return 1;
    case LIST_OPTIONAL:
        return 3;
    default:
        return 2;
    }
}

/* The levels of rows: values are taken in order. */
static inline levels make_levels(const spec *s, const int *rows, size_t row_count,
                                 const int64_t *values) {
    unsigned most = definition_max(s);
    bool is_list_optional = s->form == LIST_OPTIONAL || s->form == LIST_MIXED ||
                            s->form == LIST_TWO || s->form == LIST_TUPLE;
    size_t room = 1;
    levels l = {NULL, 0};

    for (size_t r = 0; r < row_count; r++)
        room += rows[r] > 0 ? (size_t)rows[r] : 1;
    l.at = grab(room * sizeof *l.at);
    for (size_t r = 0; r < row_count; r++) {
        if (rows[r] <= 0) {
            unsigned definition = rows[r] == NULL_LIST      ? 0
                                  : rows[r] == NULL_ELEMENT ? most - 1
                                                            : is_list_optional;

            l.at[l.count++] = (level){0, definition, false, 0};
        }
        for (int k = 0; k < rows[r]; k++)
            l.at[l.count++] = (level){k > 0, most, true, *values++};
    }
    return l;
}

/* Encodings. */

static inline void add_packed(bytes *b, const uint64_t *values, size_t count, unsigned width) {
    uint64_t byte = 0;
    unsigned bits = 0;

    for (size_t k = 0; k < count; k++)
        for (unsigned bit = 0; bit < width; bit++) {
            byte |= (values[k] >> bit & 1) << bits;
            if (++bits == 8) {
                add_number(b, byte, 1);
                byte = bits = 0;
            }
        }
    if (bits)
        add_number(b, byte, 1);
}

/* Runs: packed ones of 24 values, or repeated ones. */
static inline void add_runs(bytes *b, const uint64_t *values, size_t count, unsigned width,
                            bool is_packed) {
    for (size_t k = 0, n; k < count; k += n) {
        n = 1;
        if (is_packed) {
            uint64_t padded[24] = {0};

            n = count - k < 24 ? count - k : 24;
            memcpy(padded, values + k, n * sizeof *padded);
            add_varint(b, (n + 7) / 8 << 1 | 1);
            add_packed(b, padded, (n + 7) / 8 * 8, width);
            continue;
        }
        while (k + n < count && values[k + n] == values[k])
            n++;
        add_varint(b, n << 1);
        add_number(b, values[k], (width + 7) / 8);
    }
}

static inline bytes make_level_runs(const spec *s, const level *at, size_t count, bool repetition) {
    unsigned width = !repetition && definition_max(s) > 1 ? 2 : 1;
    uint64_t *values = grab(count * sizeof *values);
    bytes b = {.data = NULL};

    for (size_t k = 0; k < count; k++)
        values[k] = repetition ? at[k].repetition : at[k].definition;
    add_runs(&b, values, count, width, s->is_packed);
    free(values);
    return b;
}

static inline unsigned width_of(uint64_t value) {
    unsigned width = 0;

    for (; value; value >>= 1)
        width++;
    return width;
}

/* Deltas in blocks of 128 and miniblocks of 32. */
static inline void add_deltas(bytes *b, const int64_t *values, size_t count, bool is_wide) {
    add_varint(b, 128);
    add_varint(b, 4);
    add_varint(b, count);
    add_varint(b, zigzag(count ? values[0] : 0));
    for (size_t k = 1; k < count; k += 128) {
        uint64_t deltas[128] = {0};
        unsigned widths[4] = {0};
        int64_t least = INT64_MAX;
        size_t n = count - k < 128 ? count - k : 128;

        for (size_t i = 0; i < n; i++) {
            int64_t delta = (int64_t)((uint64_t)values[k + i] - (uint64_t)values[k + i - 1]);

            delta = is_wide ? delta : (int32_t)delta;
            least = delta < least ? delta : least;
            deltas[i] = (uint64_t)delta;
        }
        for (size_t i = 0; i < n; i++) {
            deltas[i] -= (uint64_t)least;
            deltas[i] &= is_wide ? UINT64_MAX : UINT32_MAX;
            if (width_of(deltas[i]) > widths[i / 32])
                widths[i / 32] = width_of(deltas[i]);
        }
        add_varint(b, zigzag(least));
        for (size_t m = 0; m < 4; m++)
            add_number(b, widths[m], 1);
        for (size_t m = 0; m < 4 && 32 * m < n; m++)
            add_packed(b, deltas + 32 * m, 32, widths[m]);
    }
}

typedef struct dictionary {
    int64_t values[4096];
    size_t count;
} dictionary;

static inline size_t look_up(dictionary *d, int64_t value) {
    size_t k = 0;

    while (k < d->count && d->values[k] != value)
        k++;
    assert_true(k < COUNT(d->values));
    if (k == d->count)
        d->values[d->count++] = value;
    return k;
}

static inline void add_values(bytes *b, const spec *s, int encoding, const int64_t *values,
                              size_t count, dictionary *d) {
    unsigned width = s->type == INT64 ? 8 : 4;

    if (encoding == DELTA) {
        add_deltas(b, values, count, width == 8);
    } else if (encoding == DICTIONARY || encoding == PLAIN_DICTIONARY) {
        uint64_t *indices = grab(count * sizeof *indices);
        unsigned bits = width_of(d->count ? d->count - 1 : 0);

        for (size_t k = 0; k < count; k++)
            indices[k] = look_up(d, values[k]);
        add_number(b, bits, 1);
        if (bits > 0)
            add_runs(b, indices, count, bits, s->is_packed);
        free(indices);
    } else {
        for (unsigned part = 0; part < (encoding == SPLIT ? width : 1); part++)
            for (size_t k = 0; k < count; k++)
                add_number(b, (uint64_t)values[k] >> 8 * part, encoding == SPLIT ? 1 : width);
    }
}

/* Codecs: the bytes as they are, in the codec's frame. */

static inline uint32_t crc_of(const unsigned char *data, size_t count) {
    uint32_t crc = UINT32_MAX;

    for (size_t k = 0; k < count; k++) {
        crc ^= data[k];
        for (unsigned bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

static inline void add_compressed(bytes *b, int codec, const unsigned char *data, size_t count) {
    assert_true(codec == UNCOMPRESSED || codec == LZ4_RAW || count < 65536);
    switch (codec) {
    case SNAPPY: /* a literal with a length of two bytes */
        add_varint(b, count);
        if (count > 0) {
            add_number(b, 61 << 2, 1);
            add_number(b, count - 1, 2);
        }
        add(b, data, count);
        break;
    case GZIP: /* a stored block */
        add(b, "\x1F\x8B\x08\0\0\0\0\0\0\xFF\x01", 11);
        add_number(b, count, 2);
        add_number(b, ~count, 2);
        add(b, data, count);
        add_number(b, crc_of(data, count), 4);
        add_number(b, count, 4);
        break;
    case ZSTD: /* a single segment with a size of four bytes, and a raw block */
        add(b, "\x28\xB5\x2F\xFD\xA0", 5);
        add_number(b, count, 4);
        add_number(b, count << 3 | 1, 3);
        add(b, data, count);
        break;
    case LZ4_RAW: /* literals */
        add_number(b, count < 15 ? count << 4 : 0xF0, 1);
        if (count >= 15) {
            size_t left = count - 15;

            for (; left >= 255; left -= 255)
                add_number(b, 255, 1);
            add_number(b, left, 1);
        }
        add(b, data, count);
        break;
    default:
        add(b, data, count);
    }
}

/* Pages. */

static inline void add_page(bytes *file, const spec *s, int type, const bytes *header, size_t size,
                            const bytes *body) {
    int last = 0;

    add_int(file, &last, 1, type);
    add_int(file, &last, 2, (int64_t)(s->claim_size ? s->claim_size : size));
    add_int(file, &last, 3, (int64_t)(s->claim_size ? s->claim_size : body->count));
    if (s->has_crc)
        add_int(file, &last, 4, (int32_t)crc_of(body->data, body->count));
    add_field(file, &last, type == 0 ? 5 : type == 2 ? 7 : 8, T_STRUCT);
    add(file, header->data, header->count);
    add_stop(file);
    add(file, body->data, body->count);
}

static inline void add_dictionary_page(bytes *file, const spec *s, const dictionary *d) {
    bytes header = {.data = NULL}, plain = {.data = NULL}, body = {.data = NULL};
    int last = 0;

    add_int(&header, &last, 1, (int64_t)d->count);
    add_int(&header, &last, 2, s->encoding == PLAIN_DICTIONARY ? PLAIN_DICTIONARY : PLAIN);
    add_stop(&header);
    for (size_t k = 0; k < d->count; k++)
        add_number(&plain, (uint64_t)d->values[k], s->type == INT64 ? 8 : 4);
    add_compressed(&body, s->codec, plain.data, plain.count);
    add_page(file, s, 2, &header, plain.count, &body);
    bytes_free(&header);
    bytes_free(&plain);
    bytes_free(&body);
}

static inline void add_data_page(bytes *file, const spec *s, int encoding, const level *at,
                                 size_t count, dictionary *d) {
    bytes repetition = make_level_runs(s, at, count, true);
    bytes definition = make_level_runs(s, at, count, false);
    bytes header = {.data = NULL}, all = {.data = NULL}, body = {.data = NULL};
    int64_t *values = grab(count * sizeof *values);
    size_t value_count = 0, rows = 0;
    int last = 0;

    for (size_t k = 0; k < count; k++) {
        rows += at[k].repetition == 0;
        if (at[k].has_value)
            values[value_count++] = at[k].value;
    }
    if (is_flat(s))
        repetition.count = 0;
    if (definition_max(s) == 0)
        definition.count = 0;
    add_int(&header, &last, 1, (int64_t)count);
    if (s->version == 2) {
        bytes plain = {.data = NULL};

        add_int(&header, &last, 2, (int64_t)(count - value_count));
        add_int(&header, &last, 3, (int64_t)rows);
        add_int(&header, &last, 4, encoding);
        add_int(&header, &last, 5, (int64_t)definition.count);
        add_int(&header, &last, 6, (int64_t)repetition.count);
        if (s->is_flag_clear)
            add_field(&header, &last, 7, T_FALSE);
        add(&body, repetition.data, repetition.count);
        add(&body, definition.data, definition.count);
        add_values(&plain, s, encoding, values, value_count, d);
        all.count = body.count + plain.count;
        add_compressed(&body, s->is_flag_clear ? UNCOMPRESSED : s->codec, plain.data, plain.count);
        bytes_free(&plain);
    } else {
        int levels = s->level_encoding ? s->level_encoding : 3;

        add_int(&header, &last, 2, encoding);
        add_int(&header, &last, 3, definition_max(s) ? levels : BIT_PACKED);
        add_int(&header, &last, 4, is_flat(s) ? BIT_PACKED : levels);
        if (!is_flat(s)) {
            add_number(&all, repetition.count, 4);
            add(&all, repetition.data, repetition.count);
        }
        if (definition_max(s) > 0) {
            add_number(&all, definition.count, 4);
            add(&all, definition.data, definition.count);
        }
        add_values(&all, s, encoding, values, value_count, d);
        add_compressed(&body, s->codec, all.data, all.count);
    }
    add_stop(&header);
    add_page(file, s, s->version == 2 ? 3 : 0, &header, all.count, &body);
    free(values);
    bytes_free(&repetition);
    bytes_free(&definition);
    bytes_free(&header);
    bytes_free(&all);
    bytes_free(&body);
}

/* The footer. */

static inline void add_element(bytes *b, const char *name, int type, int repetition, int children,
                               int converted) {
    int last = 0;

    if (type >= 0)
        add_int(b, &last, 1, type);
    if (repetition >= 0)
        add_int(b, &last, 3, repetition);
    add_text(b, &last, 4, name);
    if (children >= 0)
        add_int(b, &last, 5, children);
    if (converted >= 0)
        add_int(b, &last, 6, converted);
    add_stop(b);
}

/* The value itself, with its logical type. */
static inline void add_leaf(bytes *b, const spec *s, const char *name, int repetition) {
    int last = 0, inner = 0, innermost = 0;

    add_int(b, &last, 1, s->type ? s->type : INT32);
    add_int(b, &last, 3, repetition);
    add_text(b, &last, 4, name);
    if (s->converted)
        add_int(b, &last, 6, s->converted - 1);
    if (s->bits || s->logical) {
        add_field(b, &last, 10, T_STRUCT);
        add_field(b, &inner, s->logical ? s->logical : 10, T_STRUCT);
        if (s->bits) {
            add_field(b, &innermost, 1, T_I8);
            add_number(b, (uint64_t)(s->bits < 0 ? -s->bits : s->bits), 1);
            add_field(b, &innermost, 2, s->bits < 0 ? T_TRUE : T_FALSE);
        }
        add_stop(b);
        add_stop(b);
    }
    add_stop(b);
}

static inline const char *column_name(const spec *s) { return s->name ? s->name : "input_ids"; }

/* The schema; returns the number of its elements. */
static inline size_t add_schema(bytes *b, const spec *s) {
    bool is_optional = s->form != LIST_REQUIRED;
    size_t count = s->extra_columns + 1;

    add_element(b, "root", -1, -1, (int)s->extra_columns + 1, -1);
    for (size_t k = 0; k < s->extra_columns; k++)
        add_element(b, "text", 6, 1, -1, 0);
    if (is_flat(s) || s->form == LIST_BARE) {
        add_leaf(b, s, column_name(s), s->form == LIST_BARE ? 2 : s->form == FLAT_OPTIONAL);
        return count + 1;
    }
    add_element(b, column_name(s), -1, is_optional, 1, 3);
    if (s->form == LIST_TWO) {
        add_leaf(b, s, "element", 2);
        return count + 2;
    }
    add_element(b, s->form == LIST_TUPLE ? "array" : "list", -1, 2, 1, -1);
    if (s->form == LIST_NESTED) {
        add_element(b, "element", -1, 1, 1, 3);
        add_leaf(b, s, "array", 2);
        return count + 4;
    }
    add_leaf(b, s, "element", s->form == LIST_OPTIONAL);
    return count + 3;
}

typedef struct chunk {
    size_t at, bytes, data_at, rows, values;
} chunk;

static inline void add_chunk(bytes *b, const spec *s, const chunk *c) {
    int last = 0, inner = 0;

    if (s->is_elsewhere)
        add_text(b, &last, 1, "other.parquet");
    add_int(b, &last, 2, 0);
    add_field(b, &last, 3, T_STRUCT);
    add_int(b, &inner, 1, s->type ? s->type : INT32);
    add_list(b, &inner, 2, T_I32, 1);
    add_varint(b, zigzag(s->encoding));
    add_list(b, &inner, 3, T_BINARY, is_flat(s) ? 1 : 2);
    add_string(b, column_name(s));
    if (!is_flat(s))
        add_string(b, "list");
    add_int(b, &inner, 4, s->codec);
    add_int(b, &inner, 5, (int64_t)c->values + s->claim_values);
    add_int(b, &inner, 6, (int64_t)c->bytes);
    add_int(b, &inner, 7, (int64_t)c->bytes);
    add_int(b, &inner, 9, (int64_t)c->data_at);
    if (c->data_at != c->at)
        add_int(b, &inner, 11, (int64_t)c->at);
    add_stop(b);
    if (s->is_encrypted) {
        add_field(b, &last, 8, T_STRUCT);
        add_stop(b);
    }
    add_stop(b);
}

static inline void add_footer(bytes *b, const spec *s, const chunk *chunks, size_t chunk_count) {
    bytes schema = {.data = NULL};
    size_t elements = add_schema(&schema, s), rows = 0, at = b->count;
    int last = 0;

    for (size_t k = 0; k < chunk_count; k++)
        rows += chunks[k].rows;
    add_int(b, &last, 1, 2);
    add_list(b, &last, 2, T_STRUCT, elements);
    add_all(b, &schema);
    add_int(b, &last, 3, (int64_t)rows + s->claim_rows);
    add_list(b, &last, 4, T_STRUCT, chunk_count);
    for (size_t k = 0; k < chunk_count; k++) {
        int inner = 0;

        add_list(b, &inner, 1, T_STRUCT, s->extra_columns + 1);
        for (size_t extra = 0; extra < s->extra_columns; extra++)
            add_stop(b); /* nothing in it is looked at */
        add_chunk(b, s, &chunks[k]);
        add_int(b, &inner, 2, (int64_t)chunks[k].bytes);
        add_int(b, &inner, 3, (int64_t)chunks[k].rows);
        add_stop(b);
    }
    add_text(b, &last, 6, "test");
    add_stop(b);
    add_number(b, b->count - at, 4);
    add(b, "PAR1", 4);
}

/* The pages of some rows. */
static inline chunk add_pages(bytes *file, const spec *s, const levels *l, size_t rows) {
    chunk c = {.at = file->count, .rows = rows, .values = l->count};
    size_t page = s->page_levels ? s->page_levels : l->count + 1, number = 0;
    bool has_dictionary = s->encoding == DICTIONARY || s->encoding == PLAIN_DICTIONARY;
    dictionary *d = grab(sizeof *d);

    d->count = 0;
    for (size_t k = 0; has_dictionary && k < l->count; k++)
        if (l->at[k].has_value && (!s->fallback || k < s->fallback * page))
            (void)look_up(d, l->at[k].value);
    if (s->has_bad_entry)
        (void)look_up(d, -9);
    if (has_dictionary)
        add_dictionary_page(file, s, d);
    c.data_at = file->count;
    for (size_t k = 0; k < l->count; k += page, number++)
        add_data_page(file, s, s->fallback && number >= s->fallback ? PLAIN : s->encoding,
                      l->at + k, l->count - k < page ? l->count - k : page, d);
    c.bytes = file->count - c.at;
    free(d);
    return c;
}

/* A whole file of rows. */
static inline bytes parquet_make(const spec *s, const int *rows, size_t row_count,
                                 const int64_t *values) {
    size_t per_group = s->group_rows ? s->group_rows : row_count + 1, count = 0;
    chunk *chunks = grab((row_count / per_group + 1) * sizeof *chunks);
    bytes file = {.data = NULL};

    add(&file, "PAR1", 4);
    for (size_t r = 0; r < row_count; r += per_group) {
        size_t n = row_count - r < per_group ? row_count - r : per_group;
        levels l = make_levels(s, rows + r, n, values);

        for (size_t k = 0; k < n; k++)
            values += rows[r + k] > 0 ? rows[r + k] : 0;
        chunks[count++] = add_pages(&file, s, &l, n);
        free(l.at);
    }
    add_footer(&file, s, chunks, count);
    free(chunks);
    return file;
}

#endif
