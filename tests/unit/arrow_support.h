/* SPDX-License-Identifier: MIT */
/*
 * arrow_support.h: Arrow files and streams for the tests, made byte by byte. FlatBuffers are
 * written from front to back: each table after its vtable, and before everything that it points
 * to.
 */
#ifndef TESTS_UNIT_ARROW_SUPPORT_H
#define TESTS_UNIT_ARROW_SUPPORT_H

#include "codec_support.h"

static inline void add_number(bytes *b, uint64_t value, unsigned count) {
    for (unsigned k = 0; k < count; k++) {
        unsigned char byte = (unsigned char)(k < 8 ? value >> 8 * k : 0);

        bytes_add(b, &byte, 1);
    }
}

static inline void set_number(bytes *b, size_t at, uint64_t value, unsigned count) {
    assert_true(at + count <= b->count);
    for (unsigned k = 0; k < count; k++)
        b->data[at + k] = (unsigned char)(value >> 8 * k);
}

static inline uint64_t get_number(const bytes *b, size_t at, unsigned count) {
    uint64_t value = 0;

    assert_true(at + count <= b->count);
    for (unsigned k = 0; k < count; k++)
        value |= (uint64_t)b->data[at + k] << 8 * k;
    return value;
}

/* Zeros until the count is `rest` modulo `unit`. */
static inline void pad(bytes *b, size_t unit, size_t rest) {
    while (b->count % unit != rest)
        add_number(b, 0, 1);
}

/* FlatBuffers. */

/* A table whose fields have these sizes, one digit each; 0: absent. Wide fields come first. */
static inline size_t add_table(bytes *b, const char *sizes) {
    size_t fields = strlen(sizes), used = 4, vtable, at;

    while ((b->count + 4 + 2 * fields) % 8 != 4)
        add_number(b, 0, 1);
    vtable = b->count;
    add_number(b, 4 + 2 * fields, 2);
    add_number(b, 0, 2 + 2 * (unsigned)fields);
    at = b->count;
    add_number(b, at - vtable, 4);
    for (unsigned width = 8; width > 0; width /= 2)
        for (size_t k = 0; k < fields; k++)
            if ((unsigned)(sizes[k] - '0') == width) {
                set_number(b, vtable + 4 + 2 * k, used, 2);
                add_number(b, 0, width);
                used += width;
            }
    set_number(b, vtable + 2, used, 2);
    return at;
}

static inline size_t field_of(const bytes *b, size_t table, unsigned index) {
    size_t vtable = table - (size_t)get_number(b, table, 4);
    size_t at = (size_t)get_number(b, vtable + 4 + 2 * (size_t)index, 2);

    assert_true(at > 0);
    return table + at;
}

static inline void set_field(bytes *b, size_t table, unsigned index, uint64_t value,
                             unsigned width) {
    set_number(b, field_of(b, table, index), value, width);
}

static inline void point(bytes *b, size_t slot, size_t target) {
    set_number(b, slot, target - slot, 4);
}

/* A vector for a field: its elements' bytes follow. Returns the first one. */
static inline size_t add_vector(bytes *b, size_t table, unsigned index, const void *elements,
                                size_t count, size_t each) {
    pad(b, 8, 4);
    point(b, field_of(b, table, index), b->count);
    add_number(b, count, 4);
    bytes_add(b, elements, count * each);
    return b->count - count * each;
}

/* Files. */

/* The last ones have only a schema. */
enum { PLAIN, LIST, LARGE_LIST, FIXED, LIST_VIEW, LARGE_LIST_VIEW, MAP, STRUCT, RUN_END };

typedef struct arrow_spec {
    int shape;
    unsigned bits; /* 0: 32 */
    bool is_signed;
    unsigned list_size;
    unsigned index_bits; /* of a dictionary; 0: none */
    bool is_index_signed;
    iron__codec codec;
    bool is_stored;        /* "compressed" as they are */
    bool has_wrong_length; /* as apache-arrow for JavaScript writes it */
    bool is_file, is_legacy, has_no_schema, has_no_end, is_wide; /* wide: 64-byte alignment */
    bool has_others;                                             /* columns before and after */
    bool has_bitmaps;
    uint64_t skipped;             /* items before the first list */
    size_t null_row, null_item;   /* from 1; 0: none */
    size_t null_word;             /* the same of a dictionary */
    const char *name;             /* NULL: input_ids */
    unsigned version, endianness; /* 0: V5, little */
} arrow_spec;

typedef struct arrow_file {
    arrow_spec s;
    bytes all;
    bytes blocks[2];                        /* of the footer: dictionaries, batches */
    size_t metadata[64][2], metadata_count; /* where each message's metadata begin and end */
} arrow_file;

static inline unsigned spec_bits(const arrow_spec *s) { return s->bits ? s->bits : 32; }

static inline void add_name(bytes *b, size_t field, const char *name) {
    add_vector(b, field, 0, name, strlen(name) + 1, 1);
    set_number(b, b->count - strlen(name) - 5, strlen(name), 4); /* the zero does not count */
}

static inline size_t add_int_type(bytes *b, unsigned bits, bool is_signed) {
    size_t type = add_table(b, "41");

    set_field(b, type, 0, bits, 4);
    set_field(b, type, 1, is_signed, 1);
    return type;
}

/* A field without children and dictionary, and with a type without parameters. */
static inline size_t add_simple_field(bytes *b, const char *name, unsigned type) {
    size_t field = add_table(b, "4114");

    add_name(b, field, name);
    set_field(b, field, 2, type, 1);
    point(b, field_of(b, field, 3), add_table(b, ""));
    return field;
}

/* The integers of a column, or of its lists. */
static inline size_t add_items_field(bytes *b, const arrow_spec *s, const char *name) {
    size_t field = add_table(b, s->index_bits ? "41144" : "4114");

    add_name(b, field, name);
    set_field(b, field, 1, 1, 1);
    set_field(b, field, 2, 2, 1);
    point(b, field_of(b, field, 3), add_int_type(b, spec_bits(s), s->is_signed));
    if (s->index_bits) {
        size_t encoding = add_table(b, "841");

        point(b, field_of(b, field, 4), encoding);
        set_field(b, encoding, 0, 5, 8);
        point(b, field_of(b, encoding, 1), add_int_type(b, s->index_bits, s->is_index_signed));
    }
    return field;
}

static inline size_t add_tokens_field(bytes *b, const arrow_spec *s) {
    static const unsigned char types[] = {2, 12, 21, 16, 25, 26, 17, 13, 22};
    const char *name = s->name ? s->name : "input_ids";
    size_t field, type, children;

    if (s->shape == PLAIN)
        return add_items_field(b, s, name);
    field = add_table(b, "411404");
    add_name(b, field, name);
    set_field(b, field, 2, types[s->shape], 1);
    type = add_table(b, s->shape == FIXED ? "4" : "");
    if (s->shape == FIXED)
        set_field(b, type, 0, s->list_size, 4);
    point(b, field_of(b, field, 3), type);
    children = add_vector(b, field, 5, (const char[8]){0}, s->shape == RUN_END ? 2 : 1, 4);
    point(b, children, add_items_field(b, s, "item"));
    if (s->shape == RUN_END)
        point(b, children + 4, add_items_field(b, s, "values"));
    return field;
}

static inline size_t add_schema_table(bytes *b, const arrow_spec *s) {
    size_t schema = add_table(b, "24"), fields, count = s->has_others ? 5 : 1;

    set_field(b, schema, 0, s->endianness, 2);
    fields = add_vector(b, schema, 1, (const char[20]){0}, count, 4);
    if (!s->has_others) {
        point(b, fields, add_tokens_field(b, s));
        return schema;
    }
    point(b, fields, add_simple_field(b, "text", 5));
    point(b, fields + 4, add_simple_field(b, "view", 24));
    point(b, fields + 8, add_simple_field(b, "nothing", 1));
    point(b, fields + 12, add_tokens_field(b, s));
    point(b, fields + 16, add_simple_field(b, "flag", 6));
    return schema;
}

/* Adds a message: its metadata begin with the root's offset; `body` may be NULL. */
static inline void add_message(arrow_file *f, bytes *metadata, const bytes *body) {
    size_t prefix = f->s.is_legacy ? 4 : 8, unit = f->s.is_wide ? 64 : 8;

    pad(metadata, unit, unit - prefix == 0 ? 0 : unit - prefix);
    if (!f->s.is_legacy)
        add_number(&f->all, UINT32_MAX, 4);
    add_number(&f->all, metadata->count, 4);
    f->metadata[f->metadata_count % 64][0] = f->all.count;
    bytes_add(&f->all, metadata->data, metadata->count);
    f->metadata[f->metadata_count++ % 64][1] = f->all.count;
    if (body)
        bytes_add(&f->all, body->data, body->count);
}

/* A message's root, whose header has this type. */
static inline size_t add_root(bytes *b, const arrow_spec *s, unsigned header, uint64_t body) {
    size_t root;

    add_number(b, 0, 4);
    root = add_table(b, "2148");
    point(b, 0, root);
    set_field(b, root, 0, s->version ? s->version - 1 : 4, 2);
    set_field(b, root, 1, header, 1);
    set_field(b, root, 3, body, 8);
    return root;
}

static inline void add_schema(arrow_file *f) {
    bytes b = {NULL, 0, 0};
    size_t root = add_root(&b, &f->s, 1, 0);

    point(&b, field_of(&b, root, 2), add_schema_table(&b, &f->s));
    add_message(f, &b, NULL);
    bytes_clear(&b);
}

static inline arrow_file arrow_begin(const arrow_spec *s) {
    arrow_file f = {.s = *s};

    if (s->is_file) {
        bytes_add(&f.all, "ARROW1\0", 8);
        pad(&f.all, s->is_wide ? 64 : 8, 0);
    }
    if (!s->has_no_schema)
        add_schema(&f);
    return f;
}

/* The nodes and buffers of a batch. */
typedef struct arrow_body {
    const arrow_spec *s;
    bytes nodes, buffers, data;
} arrow_body;

static inline void add_node(arrow_body *b, uint64_t length, uint64_t nulls) {
    add_number(&b->nodes, length, 8);
    add_number(&b->nodes, nulls, 8);
}

static inline void add_buffer(arrow_body *b, const bytes *from) {
    size_t at = b->data.count;
    bytes packed = {NULL, 0, 0};

    if (b->s->codec != IRON_CODEC_NONE && from->count > 0) {
        if (b->s->codec == IRON_CODEC_ZSTD)
            add_zstd(&packed, from->data, from->count, true);
        else
            add_lz4(&packed, from->data, from->count, true);
        add_number(&b->data,
                   b->s->is_stored          ? UINT64_MAX
                   : b->s->has_wrong_length ? packed.count
                                            : from->count,
                   8);
        bytes_add(&b->data, b->s->is_stored ? from->data : packed.data,
                  b->s->is_stored ? from->count : packed.count);
    } else {
        bytes_add(&b->data, from->data, from->count);
    }
    add_number(&b->buffers, at, 8);
    add_number(&b->buffers, b->data.count - at, 8);
    pad(&b->data, b->s->is_wide ? 64 : 8, 0);
    bytes_clear(&packed);
}

/* A bitmap with one zero, if `null` is not 0; none at all unless the spec has them. */
static inline void add_bitmap(arrow_body *b, size_t count, size_t null) {
    bytes bits = {NULL, 0, 0};

    if (b->s->has_bitmaps || null) {
        for (size_t k = 0; k < (count + 7) / 8; k++)
            add_number(&bits, 0xFF, 1);
        if (null)
            bits.data[(null - 1) / 8] ^= (unsigned char)(1u << (null - 1) % 8);
    }
    add_buffer(b, &bits);
    bytes_clear(&bits);
}

static inline void add_integers(arrow_body *b, const int64_t *values, size_t before, size_t count,
                                unsigned bits) {
    size_t width = bits / 8;
    bytes data = {NULL, 0, 0};
    unsigned char *at = bytes_room(&data, (before + count) * width);

    memset(at, 0xFF, before * width); /* must never be looked at */
    for (size_t k = 0; k < count; k++)
        memcpy(at + (before + k) * width, &values[k], width);
    data.count = (before + count) * width;
    add_buffer(b, &data);
    bytes_clear(&data);
}

static inline void add_others(arrow_body *b, size_t rows, bool is_before) {
    bytes none = {NULL, 0, 0}, some = {NULL, 0, 0};

    add_node(b, rows, 0);
    add_buffer(b, &none);
    if (is_before) { /* text, views with two buffers of their own, nothing */
        for (size_t k = 0; k <= rows; k++)
            add_number(&some, k, 4);
        add_buffer(b, &some);
        add_buffer(b, &some);
        add_node(b, rows, 0);
        add_buffer(b, &none);
        add_buffer(b, &some);
        add_buffer(b, &some);
        add_buffer(b, &none);
        add_node(b, rows, rows);
    } else {
        for (size_t k = 0; k < (rows + 7) / 8; k++)
            add_number(&some, 0x55, 1);
        add_buffer(b, &some);
    }
    bytes_clear(&some);
}

/* The message of a batch, of a dictionary if `is_dictionary`. */
static inline void add_batch_message(arrow_file *f, const arrow_body *body, size_t rows,
                                     bool is_dictionary, bool is_delta) {
    static const unsigned char views[8] = {2};
    bytes b = {NULL, 0, 0};
    bool has_views = f->s.has_others && !is_dictionary;
    size_t root = add_root(&b, &f->s, is_dictionary ? 2 : 3, body->data.count), batch;
    size_t dictionary = 0;
    size_t at = f->all.count;
    bytes *blocks = &f->blocks[!is_dictionary];

    if (is_dictionary) {
        dictionary = add_table(&b, is_delta ? "841" : "84");
        point(&b, field_of(&b, root, 2), dictionary);
        set_field(&b, dictionary, 0, 5, 8);
        if (is_delta)
            set_field(&b, dictionary, 2, 1, 1);
    }
    batch = add_table(&b, has_views ? "84444" : f->s.codec != IRON_CODEC_NONE ? "8444" : "844");
    point(&b, is_dictionary ? field_of(&b, dictionary, 1) : field_of(&b, root, 2), batch);
    set_field(&b, batch, 0, rows, 8);
    add_vector(&b, batch, 1, body->nodes.data, body->nodes.count / 16, 16);
    add_vector(&b, batch, 2, body->buffers.data, body->buffers.count / 16, 16);
    if (has_views)
        add_vector(&b, batch, 4, views, 1, 8);
    if (f->s.codec != IRON_CODEC_NONE) {
        size_t compression = add_table(&b, "11");

        point(&b, field_of(&b, batch, 3), compression);
        set_field(&b, compression, 0, f->s.codec == IRON_CODEC_ZSTD, 1);
    } else if (has_views) { /* the slot is there, but absent */
        size_t vtable = batch - (size_t)get_number(&b, batch, 4);

        set_number(&b, vtable + 4 + 2 * 3, 0, 2);
    }
    add_message(f, &b, &body->data);
    add_number(blocks, at, 8);
    add_number(blocks, f->all.count - at - body->data.count, 4);
    add_number(blocks, 0, 4);
    add_number(blocks, body->data.count, 8);
    bytes_clear(&b);
}

static inline void body_clear(arrow_body *b) {
    bytes_clear(&b->nodes);
    bytes_clear(&b->buffers);
    bytes_clear(&b->data);
}

static inline void arrow_dictionary(arrow_file *f, const int64_t *values, size_t count,
                                    bool is_delta) {
    arrow_body b = {.s = &f->s};

    add_node(&b, count, f->s.null_word > 0);
    add_bitmap(&b, count, f->s.null_word);
    add_integers(&b, values, 0, count, spec_bits(&f->s));
    add_batch_message(f, &b, count, true, is_delta);
    body_clear(&b);
}

/* A batch with rows of these lengths; plain columns and lists of a fixed size have no lengths. */
static inline void arrow_batch(arrow_file *f, const size_t *lengths, size_t rows,
                               const int64_t *values) {
    const arrow_spec *s = &f->s;
    arrow_body b = {.s = s};
    size_t items = s->shape == FIXED ? rows * s->list_size : s->shape == PLAIN ? rows : 0;
    uint64_t before = s->shape == LIST || s->shape == LARGE_LIST ? s->skipped : 0;
    unsigned bits = s->index_bits ? s->index_bits : spec_bits(s);

    if (s->has_others)
        add_others(&b, rows, true);
    if (s->shape != PLAIN) {
        add_node(&b, rows, s->null_row > 0);
        add_bitmap(&b, rows, s->null_row);
    }
    if (s->shape == LIST || s->shape == LARGE_LIST) {
        unsigned width = s->shape == LIST ? 4 : 8;
        bytes offsets = {NULL, 0, 0};

        add_number(&offsets, before, width);
        for (size_t k = 0; k < rows; k++) {
            items += lengths[k];
            add_number(&offsets, before + items, width);
        }
        add_buffer(&b, &offsets);
        bytes_clear(&offsets);
    }
    add_node(&b, before + items, s->null_item > 0);
    add_bitmap(&b, before + items, s->null_item ? before + s->null_item : 0);
    add_integers(&b, values, before, items, bits);
    if (s->has_others)
        add_others(&b, rows, false);
    add_batch_message(f, &b, rows, false, false);
    body_clear(&b);
}

static inline void arrow_end(arrow_file *f) {
    bytes b = {NULL, 0, 0};
    size_t footer, schema;

    if (!f->s.has_no_end) {
        if (!f->s.is_legacy)
            add_number(&f->all, UINT32_MAX, 4);
        add_number(&f->all, 0, 4);
    }
    if (f->s.is_file) {
        add_number(&b, 0, 4);
        footer = add_table(&b, "2444");
        point(&b, 0, footer);
        set_field(&b, footer, 0, f->s.version ? f->s.version - 1 : 4, 2);
        schema = add_schema_table(&b, &f->s);
        point(&b, field_of(&b, footer, 1), schema);
        add_vector(&b, footer, 2, f->blocks[0].data, f->blocks[0].count / 24, 24);
        add_vector(&b, footer, 3, f->blocks[1].data, f->blocks[1].count / 24, 24);
        pad(&b, 8, 0);
        f->metadata[f->metadata_count % 64][0] = f->all.count;
        bytes_add(&f->all, b.data, b.count);
        add_number(&f->all, b.count, 4);
        bytes_add(&f->all, "ARROW1", 6);
        f->metadata[f->metadata_count++ % 64][1] = f->all.count;
    }
    bytes_clear(&b);
}

static inline void arrow_clear(arrow_file *f) {
    bytes_clear(&f->all);
    bytes_clear(&f->blocks[0]);
    bytes_clear(&f->blocks[1]);
}

#endif
