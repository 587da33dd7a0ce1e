/* SPDX-License-Identifier: MIT */
/*
 * arrow.c: Arrow IPC files and streams.
 *
 * A stream is a sequence of messages: FFFFFFFF and a 32-bit length (streams of before 2019 have
 * only the length), metadata in FlatBuffers, and a body of buffers. The first message is the
 * schema; record batches follow, and batches of dictionaries, which apply to what comes after
 * them. FFFFFFFF 00000000 ends a stream; Arrow lets streams end without this mark, too, but then
 * one that was cut between two messages could not be told from a whole one, so it is required. A
 * file begins with "ARROW1", is a stream after that, and ends with a footer that repeats the schema
 * and lists all batches, its length and "ARROW1" again. Some writers leave the schema out of the
 * stream inside a file, or the mark.
 *
 * Metadata are trusted in nothing. FlatBuffers are read by the functions that begin with flat_:
 * whatever lies outside of the metadata or is not aligned makes the whole message damaged. Buffers
 * must lie in the body one after another, with no more than padding between them, as the
 * specification says: so most damage is noticed, although Arrow has no checksums.
 *
 * A regular file is examined message by message, without its values: of a list column the first
 * and the last offset tell how many tokens there are. Blocks are cut at rows. Values that are
 * stored as they are become direct blocks; a compressed batch is one block; runs of small batches
 * share a block. Every part of the file that is needed to decode a block is read and checked again
 * when it is decoded. Dictionaries are kept in memory.
 */
#include "core/array.h"
#include "core/fail.h"
#include "core/memory.h"
#include "core/number.h"
#include "formats/format.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define METADATA_BYTES_MAX ((uint64_t)1 << 28)
/* What is read of a file at a time when little is needed. */
#define WINDOW_BYTES ((size_t)64 << 10)
#define JUMP_BYTES   ((size_t)2 << 10)
/* Fields inside fields, and all fields together. */
#define DEPTH_MAX  64u
#define FIELDS_MAX ((size_t)1 << 20)
/* Batches with fewer tokens and rows share a block with their neighbours, so many at most. */
#define SMALL_BATCH    ((uint64_t)1 << 16)
#define SHARED_BATCHES 4096u

#define MAGIC         "ARROW1"
#define MAGIC_BYTES   6u
#define TRAILER_BYTES (4u + MAGIC_BYTES)

/* FlatBuffers. */

/* A message's metadata. Everything that is wrong with them sets is_bad; what is read then is
 * zero. */
typedef struct flat {
    const unsigned char *data;
    size_t count;
    bool is_bad;
} flat;

typedef struct flat_table {
    size_t at; /* 0 if it is absent */
    size_t vtable;
    size_t vtable_bytes, bytes;
} flat_table;

static flat_table flat_open(flat *f, uint64_t at) {
    flat_table t = {.at = 0};
    int64_t vtable;

    f->is_bad |= at % 4 != 0 || at < 4 || at > f->count || f->count - at < 4;
    if (f->is_bad)
        return t;
    vtable = (int64_t)at - (int32_t)iron__load_u32(f->data + at);
    f->is_bad |= vtable < 4 || vtable % 2 != 0 || (uint64_t)vtable + 4 > f->count;
    if (f->is_bad)
        return t;
    t = (flat_table){(size_t)at, (size_t)vtable, iron__load(f->data + vtable, 2),
                     iron__load(f->data + vtable + 2, 2)};
    f->is_bad |= t.vtable_bytes < 4 || t.vtable_bytes % 2 != 0 ||
                 t.vtable_bytes > f->count - t.vtable || t.bytes < 4 || t.bytes > f->count - t.at;
    if (f->is_bad)
        t.at = 0;
    return t;
}

/* Where a field of so many bytes is; 0: it is absent. */
static size_t flat_field(flat *f, const flat_table *t, unsigned index, size_t bytes) {
    size_t slot = 4 + 2 * (size_t)index, at;

    if (f->is_bad || t->at == 0 || slot + 2 > t->vtable_bytes)
        return 0;
    at = iron__load(f->data + t->vtable + slot, 2);
    if (at == 0)
        return 0;
    f->is_bad |= at < 4 || at + bytes > t->bytes || (t->at + at) % bytes != 0;
    return f->is_bad ? 0 : t->at + at;
}

static uint64_t flat_number(flat *f, const flat_table *t, unsigned index, size_t bytes,
                            uint64_t otherwise) {
    size_t at = flat_field(f, t, index, bytes);

    return at ? iron__load(f->data + at, bytes) : otherwise;
}

/* Numbers that must not be negative. */
static uint64_t flat_count(flat *f, const flat_table *t, unsigned index) {
    uint64_t value = flat_number(f, t, index, 8, 0);

    f->is_bad |= value > INT64_MAX;
    return f->is_bad ? 0 : value;
}

static bool flat_bool(flat *f, const flat_table *t, unsigned index) {
    uint64_t value = flat_number(f, t, index, 1, 0);

    f->is_bad |= value > 1;
    return value == 1;
}

/* What an offset points to; 0: it is absent. */
static uint64_t flat_target(flat *f, const flat_table *t, unsigned index) {
    size_t at = flat_field(f, t, index, 4);

    return at ? (uint64_t)at + iron__load_u32(f->data + at) : 0;
}

static flat_table flat_child(flat *f, const flat_table *t, unsigned index) {
    uint64_t at = flat_target(f, t, index);
    flat_table none = {.at = 0};

    return at ? flat_open(f, at) : none;
}

/* The first element of a vector whose elements have `each` bytes. */
static size_t flat_vector(flat *f, const flat_table *t, unsigned index, size_t each,
                          size_t *count) {
    uint64_t at = flat_target(f, t, index);

    *count = 0;
    if (!at)
        return 0;
    f->is_bad |= at % 4 != 0 || at > f->count || f->count - at < 4;
    if (f->is_bad)
        return 0;
    *count = iron__load_u32(f->data + at);
    at += 4;
    f->is_bad |= *count > (f->count - at) / each || (each % 8 == 0 && *count > 0 && at % 8 != 0);
    if (f->is_bad)
        *count = 0;
    return f->is_bad ? 0 : (size_t)at;
}

/* The table at an element of a vector of offsets. */
static flat_table flat_element(flat *f, size_t vector, size_t index) {
    size_t at = vector + 4 * index;

    return flat_open(f, (uint64_t)at + iron__load_u32(f->data + at));
}

/* Fields of the tables in Message.fbs, Schema.fbs and File.fbs. */
enum { MESSAGE_VERSION, MESSAGE_HEADER_TYPE, MESSAGE_HEADER, MESSAGE_BODY };
enum { SCHEMA_ENDIANNESS, SCHEMA_FIELDS };
enum { FIELD_NAME, FIELD_NULLABLE, FIELD_TYPE_TYPE, FIELD_TYPE, FIELD_DICTIONARY, FIELD_CHILDREN };
enum { ENCODING_ID, ENCODING_INDEX, ENCODING_ORDERED, ENCODING_KIND };
enum { BATCH_LENGTH, BATCH_NODES, BATCH_BUFFERS, BATCH_COMPRESSION, BATCH_VIEWS };
enum { COMPRESSION_CODEC, COMPRESSION_METHOD };
enum { DICTIONARY_ID, DICTIONARY_DATA, DICTIONARY_IS_DELTA };
enum { FOOTER_VERSION, FOOTER_SCHEMA, FOOTER_DICTIONARIES, FOOTER_BATCHES };

#define VERSION_4         3u
#define VERSION_5         4u
#define NODE_BYTES        16u
#define BUFFER_BYTES      16u
#define FOOTER_BLOCK      24u
#define HEADER_NONE       0u /* the end of the stream */
#define HEADER_SCHEMA     1u
#define HEADER_DICTIONARY 2u
#define HEADER_BATCH      3u

/* Types. */

enum { TYPE_INT = 2, TYPE_FLOAT = 3, TYPE_LIST = 12, TYPE_UNION = 14, TYPE_FIXED_SIZE_LIST = 16 };
enum { TYPE_LARGE_LIST = 21, TYPE_BINARY_VIEW = 23, TYPE_STRING_VIEW, TYPE_LIST_VIEW };
enum { TYPE_LARGE_LIST_VIEW = 26, TYPE_COUNT };

#define ANY_CHILDREN 255u

/* Types by their number: names, how many buffers a column has, children not counted, and how many
 * children. */
static const struct type_row {
    const char *name;
    unsigned char buffers, children;
} types[TYPE_COUNT] = {{NULL, 0, 0},
                       {"null", 0, 0},
                       {"int", 2, 0},
                       {"float", 2, 0},
                       {"binary", 3, 0},
                       {"string", 3, 0},
                       {"bool", 2, 0},
                       {"decimal", 2, 0},
                       {"date", 2, 0},
                       {"time", 2, 0},
                       {"timestamp", 2, 0},
                       {"interval", 2, 0},
                       {"list", 2, 1},
                       {"struct", 1, ANY_CHILDREN},
                       {"union", 1, ANY_CHILDREN},
                       {"fixed_size_binary", 2, 0},
                       {"fixed_size_list", 1, 1},
                       {"map", 2, 1},
                       {"duration", 2, 0},
                       {"large_binary", 3, 0},
                       {"large_string", 3, 0},
                       {"large_list", 2, 1},
                       {"run_end_encoded", 0, 2},
                       {"binary_view", 2, 0},
                       {"string_view", 2, 0},
                       {"list_view", 3, 1},
                       {"large_list_view", 3, 1}};

/* How many nodes and buffers fields have in a batch; `views` is the number of columns whose number
 * of buffers differs from batch to batch. */
typedef struct counts {
    uint64_t nodes, buffers, views;
} counts;

typedef enum shape { SHAPE_PLAIN, SHAPE_LIST, SHAPE_LARGE_LIST, SHAPE_FIXED_SIZE_LIST } shape;

/* A column of tokens. */
typedef struct column {
    shape shape;
    uint64_t list_size;  /* of a fixed size list */
    iron__stored stored; /* the values; of a dictionary-encoded column, the dictionary's */
    bool has_dictionary;
    uint64_t dictionary; /* its id */
    iron__stored index;
    counts before, all; /* in a batch: the columns before it; all columns */
} column;

typedef struct dictionary_type {
    uint64_t id;
    counts values;
} dictionary_type;

typedef struct schema {
    iron__table_column *columns;
    column *details; /* as many */
    size_t count;
    counts all;
    dictionary_type *dictionaries; /* by id */
    size_t dictionary_count, dictionary_capacity;
    unsigned version;
    size_t fields_left; /* while it is read: more fields than these cannot be in the metadata */
    bool has_no_memory;
    uint64_t unknown_type; /* its number; 0: none */
} schema;

static void schema_clear(schema *s) {
    iron__table_columns_free(s->columns, s->count);
    free(s->details);
    free(s->dictionaries);
    *s = (schema){.columns = NULL};
}

static bool read_integer_type(flat *f, const flat_table *type, iron__stored *stored) {
    uint64_t bits = flat_number(f, type, 0, 4, 0);
    unsigned power = bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3;
    bool is_signed = flat_bool(f, type, 1);

    f->is_bad |= bits != 8ull << power;
    *stored = (iron__stored)(power + (is_signed ? (unsigned)IRON_STORED_I8 : 0));
    return !f->is_bad;
}

static iron__stored read_index_type(flat *f, const flat_table *encoding) {
    flat_table index = flat_child(f, encoding, ENCODING_INDEX);
    iron__stored stored = IRON_STORED_I32; /* if it is not said */

    if (index.at)
        read_integer_type(f, &index, &stored);
    return stored;
}

/* Writes a type as Arrow does; of what cannot be tokens, no more than its kind. */
static void describe_type(flat *f, const flat_table *field, unsigned depth, char *to, size_t room) {
    uint64_t number = flat_number(f, field, FIELD_TYPE_TYPE, 1, 0);
    flat_table type = flat_child(f, field, FIELD_TYPE);
    flat_table encoding = flat_child(f, field, FIELD_DICTIONARY);
    const char *name = number < TYPE_COUNT && types[number].name ? types[number].name : "unknown";
    size_t children, vector = flat_vector(f, field, FIELD_CHILDREN, 4, &children);
    char inner[48] = "...";
    iron__stored stored;

    if (number == TYPE_INT && read_integer_type(f, &type, &stored)) {
        snprintf(inner, sizeof inner, "%s", iron__stored_name(stored));
    } else if (number == TYPE_FLOAT) {
        uint64_t precision = flat_number(f, &type, 0, 2, 0);

        snprintf(inner, sizeof inner, "%s",
                 precision == 0   ? "halffloat"
                 : precision == 1 ? "float"
                                  : "double");
    } else if (number == TYPE_LIST || number == TYPE_LARGE_LIST || number == TYPE_LIST_VIEW ||
               number == TYPE_LARGE_LIST_VIEW || number == TYPE_FIXED_SIZE_LIST) {
        char item[48] = "...";
        char size[16] = "";

        if (children == 1 && depth < 3 && !f->is_bad) {
            flat_table child = flat_element(f, vector, 0);

            describe_type(f, &child, depth + 1, item, sizeof item);
        }
        if (number == TYPE_FIXED_SIZE_LIST)
            snprintf(size, sizeof size, "[%" PRIu64 "]", flat_number(f, &type, 0, 4, 0));
        snprintf(inner, sizeof inner, "%s<%.*s>%s", name,
                 (int)(sizeof inner - 3 - strlen(name) - strlen(size)), item, size);
    } else {
        snprintf(inner, sizeof inner, "%s", name);
    }
    if (!encoding.at)
        snprintf(to, room, "%s", inner);
    else
        snprintf(to, room, "dictionary<values=%.10s, indices=%s>", inner,
                 iron__stored_name(read_index_type(f, &encoding)));
}

/* Adds the nodes and buffers of a field; the values of its dictionary are not among them. */
static void measure_field(schema *s, flat *f, const flat_table *field, unsigned depth,
                          counts *sum) {
    uint64_t number = flat_number(f, field, FIELD_TYPE_TYPE, 1, 0);
    size_t children, vector = flat_vector(f, field, FIELD_CHILDREN, 4, &children);
    flat_table type = flat_child(f, field, FIELD_TYPE);
    flat_table encoding = flat_child(f, field, FIELD_DICTIONARY);
    counts values = {0, 0, 0}, *own = encoding.at ? &values : sum;

    if (number >= TYPE_COUNT && s->fields_left > 0)
        s->unknown_type = number;
    f->is_bad |= s->fields_left == 0 || number == 0 || number >= TYPE_COUNT || !type.at ||
                 depth > DEPTH_MAX || flat_number(f, &encoding, ENCODING_KIND, 2, 0) != 0;
    if (f->is_bad)
        return;
    s->fields_left--;
    f->is_bad |= types[number].children != ANY_CHILDREN && types[number].children != children;
    own->nodes++;
    own->buffers += types[number].buffers;
    own->views += number == TYPE_BINARY_VIEW || number == TYPE_STRING_VIEW;
    if (number == TYPE_UNION) /* dense ones have offsets; before version 5 they could be null */
        own->buffers +=
            (flat_number(f, &type, 0, 2, 0) == 1 ? 1u : 0u) + (s->version == VERSION_4 ? 1u : 0u);
    for (size_t k = 0; k < children && !f->is_bad; k++) {
        flat_table child = flat_element(f, vector, k);

        measure_field(s, f, &child, depth + 1, own);
    }
    if (!encoding.at)
        return;
    read_index_type(f, &encoding);
    sum->nodes++;
    sum->buffers += 2;
    if (IRON_ARRAY_GROW(&s->dictionaries, s->dictionary_count, &s->dictionary_capacity))
        s->dictionaries[s->dictionary_count++] =
            (dictionary_type){flat_number(f, &encoding, ENCODING_ID, 8, 0), values};
    else
        s->has_no_memory = true;
}

/* Whether a field is a column of tokens. */
static bool read_column(flat *f, const flat_table *field, column *out) {
    uint64_t number = flat_number(f, field, FIELD_TYPE_TYPE, 1, 0);
    flat_table type = flat_child(f, field, FIELD_TYPE), items = *field, encoding;
    size_t children, vector = flat_vector(f, field, FIELD_CHILDREN, 4, &children);

    *out = (column){.shape = SHAPE_PLAIN, .list_size = 1};
    if (number == TYPE_LIST || number == TYPE_LARGE_LIST || number == TYPE_FIXED_SIZE_LIST) {
        encoding = flat_child(f, field, FIELD_DICTIONARY);
        if (encoding.at || f->is_bad || children != 1)
            return false;
        out->shape = number == TYPE_LIST         ? SHAPE_LIST
                     : number == TYPE_LARGE_LIST ? SHAPE_LARGE_LIST
                                                 : SHAPE_FIXED_SIZE_LIST;
        if (number == TYPE_FIXED_SIZE_LIST)
            out->list_size = flat_number(f, &type, 0, 4, 0);
        f->is_bad |= out->list_size > INT32_MAX;
        items = flat_element(f, vector, 0);
        number = flat_number(f, &items, FIELD_TYPE_TYPE, 1, 0);
        type = flat_child(f, &items, FIELD_TYPE);
    }
    /* rows of lists of size 0 leave no trace in the file, so that their number is any claim */
    if (number != TYPE_INT || out->list_size == 0 || !read_integer_type(f, &type, &out->stored))
        return false;
    encoding = flat_child(f, &items, FIELD_DICTIONARY);
    out->has_dictionary = encoding.at != 0;
    if (out->has_dictionary) {
        out->dictionary = flat_number(f, &encoding, ENCODING_ID, 8, 0);
        out->index = read_index_type(f, &encoding);
    }
    return !f->is_bad;
}

static bool is_same_schema(const schema *a, const schema *b) {
    bool is_same = a->count == b->count && memcmp(&a->all, &b->all, sizeof a->all) == 0;

    for (size_t k = 0; is_same && k < a->count; k++) { /* names of long types are cut */
        const column *x = &a->details[k], *y = &b->details[k];

        is_same = strcmp(a->columns[k].name, b->columns[k].name) == 0 &&
                  strcmp(a->columns[k].type, b->columns[k].type) == 0 && x->shape == y->shape &&
                  x->list_size == y->list_size && x->stored == y->stored &&
                  x->has_dictionary == y->has_dictionary && x->dictionary == y->dictionary &&
                  x->index == y->index;
    }
    return is_same;
}

/* Reading. */

/* Reads pieces of a regular file anywhere, or of a pipe in order. */
typedef struct reader {
    const iron__input *file; /* a regular file, or NULL */
    iron__input *pipe;
    const char *name;
    uint64_t limit;    /* where messages end at the latest */
    uint64_t position; /* of a pipe: the next byte */
    unsigned prefix;   /* bytes before the metadata of all messages; 0: not known yet */
    iron__window window;
    iron__block scratch; /* a decompressed buffer */
} reader;

static void reader_clear(reader *r) {
    iron__block_clear(&r->window.block);
    iron__block_clear(&r->scratch);
}

static iron_status damaged(const reader *r, uint64_t at, const char *what, iron_error *err) {
    IRON_FAIL(err, IRON_E_FORMAT, "%.90s at byte %" PRIu64 ": %s; this is not valid Arrow data",
              r->name, at, what);
}

static iron_status cut_off(const reader *r, uint64_t end, uint64_t needed, iron_error *err) {
    IRON_FAIL(err, IRON_E_FORMAT,
              "%.100s ends at byte %" PRIu64 ", but its Arrow data need %" PRIu64
              " bytes at least; is it cut off?",
              r->name, end, needed);
}

static iron_status too_large(const reader *r, const char *what, uint64_t bytes, iron_error *err) {
    IRON_FAIL(err, IRON_E_UNSUPPORTED,
              "%.90s: %s of %" PRIu64 " bytes, more than the %" PRIu64
              " that are held in memory at once; write smaller record batches",
              r->name, what, bytes, IRON_TABLE_PART_BYTES_MAX);
}

/* Reads the next bytes of a pipe into the window, after skipping to `at`; fewer at its end. Memory
 * grows with what really comes. */
static iron_status fill_from_pipe(reader *r, uint64_t at, uint64_t bytes, iron_error *err) {
    iron__block *b = &r->window.block;
    size_t want, some;

    b->bytes = 0;
    IRON_TRY(iron__block_reserve(b, WINDOW_BYTES, err));
    while (r->position < at) {
        want = iron__min_size(b->capacity, at - r->position);
        IRON_TRY(iron__input_read(r->pipe, b->data, want, &some, err));
        r->position += some;
        if (some < want)
            return cut_off(r, r->position, at + bytes, err);
    }
    r->window.at = at;
    while (b->bytes < bytes) {
        uint64_t room = iron__min(2 * (uint64_t)b->capacity, bytes);

        if (b->bytes == b->capacity && room > IRON_TABLE_PART_BYTES_MAX)
            return too_large(r, "a buffer", room, err);
        if (b->bytes == b->capacity)
            IRON_TRY(iron__block_reserve(b, (size_t)room, err));
        want = iron__min_size(b->capacity, bytes) - b->bytes;
        IRON_TRY(iron__input_read(r->pipe, b->data + b->bytes, want, &some, err));
        r->position += some;
        b->bytes += some;
        if (some < want)
            break;
    }
    return IRON_OK;
}

/* Gives the bytes at ... at+bytes-1; valid until the next call. */
static iron_status reader_get(reader *r, uint64_t at, uint64_t bytes, const unsigned char **out,
                              iron_error *err) {
    static const unsigned char nothing[8];
    iron__window *w = &r->window;
    uint64_t ahead = WINDOW_BYTES;

    *out = nothing; /* on failure */
    if (at >= w->at && at - w->at <= w->block.bytes && bytes <= w->block.bytes - (at - w->at) &&
        w->block.data) {
        *out = w->block.data + (at - w->at);
        return IRON_OK;
    }
    if (r->pipe) {
        if (at < r->position)
            return damaged(r, at, "buffers that are not in order", err);
        IRON_TRY(fill_from_pipe(r, at, bytes, err));
        *out = w->block.data;
        return w->block.bytes < bytes ? cut_off(r, r->position, at + bytes, err) : IRON_OK;
    }
    assert(r->file);
    if (at > r->file->bytes || bytes > r->file->bytes - at)
        return cut_off(r, r->file->bytes, at + bytes, err);
    if (bytes > IRON_TABLE_PART_BYTES_MAX)
        return too_large(r, "a buffer", bytes, err);
    /* after a jump over the values of a batch, only a little ahead */
    if (at < w->at || at - w->at > 2 * WINDOW_BYTES)
        ahead = JUMP_BYTES;
    ahead = iron__min(ahead, r->file->bytes - at);
    return iron__window_get(w, r->file, at, (size_t)bytes, (size_t)ahead, out, err);
}

/* Messages. */

typedef struct message {
    unsigned header;
    unsigned version;
    flat flat;        /* valid until the next reader_get */
    flat_table table; /* the header's */
    uint64_t at, metadata_bytes, body_at, body_bytes, end;
} message;

/* The first four bytes of a message: where it begins, what its metadata's length is. No length:
 * the stream has ended. */
static iron_status read_prefix(reader *r, message *m, uint64_t *length, iron_error *err) {
    const unsigned char *bytes = NULL;
    size_t got = iron__min_size(4, r->limit - m->at);
    unsigned prefix = 4;

    *length = 0;
    m->metadata_bytes = 0;
    if (r->pipe) {
        IRON_TRY(fill_from_pipe(r, m->at, 4, err));
        got = r->window.block.bytes;
        bytes = r->window.block.data;
    } else if (got == 4) {
        IRON_TRY(reader_get(r, m->at, 4, &bytes, err));
    }
    if (got == 0)
        return IRON_OK;
    if (got < 4)
        return cut_off(r, m->at + got, m->at + 8, err);
    assert(bytes);
    *length = iron__load_u32(bytes);
    if (*length == UINT32_MAX) {
        prefix = 8;
        if (r->file && r->limit - m->at < 8)
            return cut_off(r, r->limit, m->at + 8, err);
        IRON_TRY(reader_get(r, m->at + 4, 4, &bytes, err));
        *length = iron__load_u32(bytes);
    }
    m->metadata_bytes = prefix + *length;
    if (*length == 0)
        return IRON_OK;
    if (r->prefix != 0 && prefix != r->prefix)
        return damaged(r, m->at, "no message begins here", err);
    r->prefix = prefix;
    if ((prefix + *length) % 8 != 0 || *length < 8)
        return damaged(r, m->at, "the length of a message's metadata is not a multiple of 8", err);
    if (*length > METADATA_BYTES_MAX)
        return damaged(r, m->at, "the metadata of a message are longer than 256 MiB", err);
    return IRON_OK;
}

/* Reads the message at a position. HEADER_NONE: the stream ended, with or without a mark. */
static iron_status read_message(reader *r, uint64_t at, message *m, iron_error *err) {
    const unsigned char *bytes;
    uint64_t length;
    flat_table root;

    *m = (message){.header = HEADER_NONE, .at = at};
    IRON_TRY(read_prefix(r, m, &length, err));
    m->body_at = m->end = at + m->metadata_bytes;
    if (length == 0)
        return IRON_OK;
    if (m->body_at > r->limit)
        return cut_off(r, r->limit, m->body_at, err);
    IRON_TRY(reader_get(r, m->body_at - length, length, &bytes, err));
    m->flat = (flat){bytes, (size_t)length, false};
    root = flat_open(&m->flat, iron__load_u32(bytes));
    m->version = (unsigned)flat_number(&m->flat, &root, MESSAGE_VERSION, 2, 0);
    m->header = (unsigned)flat_number(&m->flat, &root, MESSAGE_HEADER_TYPE, 1, 0);
    m->table = flat_child(&m->flat, &root, MESSAGE_HEADER);
    m->body_bytes = flat_count(&m->flat, &root, MESSAGE_BODY);
    if (m->flat.is_bad || !m->table.at || m->body_bytes % 8 != 0)
        return damaged(r, at, "the metadata of a message are damaged", err);
    IRON_FAIL_IF(m->version < VERSION_4, err, IRON_E_UNSUPPORTED,
                 "%.100s at byte %" PRIu64 ": Arrow metadata of version %u, from before 2017; "
                 "write it again with a newer Arrow",
                 r->name, at, m->version + 1);
    IRON_FAIL_IF(m->version > VERSION_5, err, IRON_E_UNSUPPORTED,
                 "%.100s at byte %" PRIu64 ": Arrow metadata of version %u; versions 4 and 5 are "
                 "read",
                 r->name, at, m->version + 1);
    if (m->header < HEADER_SCHEMA || m->header > HEADER_BATCH)
        return damaged(r, at, "a message that is neither a schema nor a batch", err);
    if (m->header == HEADER_SCHEMA && m->body_bytes != 0)
        return damaged(r, at, "a schema with a body", err);
    if (__builtin_add_overflow(m->body_at, m->body_bytes, &m->end) || m->end > INT64_MAX)
        return damaged(r, at, "the length of a message's body is impossible", err);
    return m->end > r->limit ? cut_off(r, r->limit, m->end, err) : IRON_OK;
}

/* Reads the schema of a message or of the footer; clear it also on failure. */
static iron_status read_schema(const reader *r, uint64_t at, flat *f, const flat_table *table,
                               unsigned version, schema *out, iron_error *err) {
    uint64_t endianness = flat_number(f, table, SCHEMA_ENDIANNESS, 2, 0);
    size_t count, vector = flat_vector(f, table, SCHEMA_FIELDS, 4, &count);

    out->version = version;
    IRON_FAIL_IF(endianness == 1 && !f->is_bad, err, IRON_E_UNSUPPORTED,
                 "%.100s: Arrow data of a big-endian machine; write it again on a little-endian "
                 "one",
                 r->name);
    out->fields_left = f->count / 8 < FIELDS_MAX ? f->count / 8 : FIELDS_MAX;
    f->is_bad |= endianness != 0 || count > out->fields_left;
    count = f->is_bad ? 0 : count;
    IRON_TRY(IRON_NEW(&out->columns, count, r->name, err));
    IRON_TRY(IRON_NEW(&out->details, count, r->name, err));
    for (; out->count < count && !out->has_no_memory && !f->is_bad; out->count++) {
        iron__table_column *c = &out->columns[out->count];
        flat_table field = flat_element(f, vector, out->count);
        counts before = out->all;
        size_t length, name = flat_vector(f, &field, FIELD_NAME, 1, &length);

        c->name = strndup(name ? (const char *)f->data + name : "", length);
        out->has_no_memory = !c->name;
        describe_type(f, &field, 0, c->type, sizeof c->type);
        c->is_tokens = read_column(f, &field, &out->details[out->count]);
        out->details[out->count].before = before;
        measure_field(out, f, &field, 0, &out->all);
    }
    if (out->has_no_memory)
        return iron__no_memory(err, r->name);
    for (size_t k = 0; k < out->count; k++)
        out->details[k].all = out->all;
    if (out->dictionary_count > 0)
        qsort(out->dictionaries, out->dictionary_count, sizeof *out->dictionaries,
              iron__by_first_number);
    for (size_t k = 1; k < out->dictionary_count; k++) { /* columns may share a dictionary */
        const dictionary_type *a = &out->dictionaries[k - 1], *b = &out->dictionaries[k];

        f->is_bad |= a->id == b->id && memcmp(&a->values, &b->values, sizeof a->values) != 0;
    }
    IRON_FAIL_IF(out->unknown_type != 0, err, IRON_E_UNSUPPORTED,
                 "%.100s: a column of the Arrow type number %" PRIu64 ", which is newer than this "
                 "reader; write the column of tokens alone",
                 r->name, out->unknown_type);
    return f->is_bad ? damaged(r, at, "the schema is damaged", err) : IRON_OK;
}

/* Record batches. */

typedef struct span {
    uint64_t at, bytes; /* at: in the file */
} span;

typedef struct batch {
    uint64_t at; /* of its message */
    iron__codec codec;
    uint64_t rows, items;       /* items: values of all lists; of a plain column, rows */
    uint64_t nulls, item_nulls; /* of a plain column, nulls are item_nulls */
    span validity, offsets, item_validity, values;
} batch;

static uint64_t offset_bytes(const column *c) { return c->shape == SHAPE_LARGE_LIST ? 8 : 4; }

/* How wide the values of a batch are: those of a dictionary-encoded column are indices. */
static uint64_t value_bytes(const column *c) {
    return iron__stored_bytes(c->has_dictionary ? c->index : c->stored);
}

/* Buffers follow one another; between them is padding to 8 bytes, up to 64. */
static bool is_packed(uint64_t end, uint64_t next) {
    for (uint64_t unit = 8; unit <= 64; unit *= 2)
        if (next == (end + unit - 1) / unit * unit)
            return true;
    return false;
}

/* Whether a buffer has enough bytes for `count` elements of `bits` bits. */
static bool has_room(const batch *b, const span *s, uint64_t count, uint64_t bits) {
    uint64_t total;

    if (count == 0)
        return true;
    if (b->codec != IRON_CODEC_NONE) /* the length before the data is checked later */
        return s->bytes > 8 && count <= INT64_MAX / bits;
    return !__builtin_mul_overflow(count, bits, &total) && total <= INT64_MAX &&
           s->bytes >= (total + 7) / 8;
}

/* Checks nodes and buffers of all columns, and finds the first buffer of column `c`. */
static const char *check_structure(flat *f, const flat_table *t, const counts *all, const column *c,
                                   uint64_t body_bytes, size_t *nodes, size_t *buffers) {
    size_t node_count, buffer_count, view_count, views;
    uint64_t extra = 0, end = 0, before = 0;

    *nodes = flat_vector(f, t, BATCH_NODES, NODE_BYTES, &node_count);
    *buffers = flat_vector(f, t, BATCH_BUFFERS, BUFFER_BYTES, &buffer_count);
    views = flat_vector(f, t, BATCH_VIEWS, 8, &view_count);
    if (f->is_bad || node_count != all->nodes || view_count != all->views)
        return "a batch whose columns are not those of the schema";
    for (size_t k = 0; k < view_count; k++) {
        uint64_t more = iron__load_u64(f->data + views + 8 * k);

        if (more > buffer_count)
            return "a batch with an impossible number of buffers";
        extra += more;
        before += c && k < c->before.views ? more : 0;
    }
    if (buffer_count != all->buffers + extra)
        return "a batch whose buffers are not those of the schema";
    for (size_t k = 0; k < node_count; k++) {
        uint64_t length = iron__load_u64(f->data + *nodes + NODE_BYTES * k);

        if (length > INT64_MAX || iron__load_u64(f->data + *nodes + NODE_BYTES * k + 8) > length)
            return "a column with an impossible length or number of nulls";
    }
    for (size_t k = 0; k < buffer_count; k++) {
        uint64_t at = iron__load_u64(f->data + *buffers + BUFFER_BYTES * k);
        uint64_t bytes = iron__load_u64(f->data + *buffers + BUFFER_BYTES * k + 8);

        if (at > body_bytes || bytes > body_bytes - at)
            return "a buffer outside of its message";
        if (bytes > 0 && !is_packed(end, at))
            return "a buffer that does not follow the one before it";
        end = bytes > 0 ? at + bytes : end;
    }
    if (!is_packed(end, body_bytes))
        return "a message that is longer than its buffers";
    if (c) {
        *nodes += NODE_BYTES * c->before.nodes;
        *buffers += BUFFER_BYTES * (c->before.buffers + before);
    }
    return NULL;
}

static span next_buffer(const flat *f, size_t *buffers, uint64_t body_at) {
    span s = {body_at + iron__load_u64(f->data + *buffers), iron__load_u64(f->data + *buffers + 8)};

    *buffers += BUFFER_BYTES;
    return s;
}

/* Finds column `c` in a batch (NULL: only checks the batch). `all`: what the batch must have.
 * Returns what is wrong, or NULL. */
static const char *read_batch(message *m, const flat_table *t, const counts *all, const column *c,
                              batch *out) {
    flat *f = &m->flat;
    flat_table compression = flat_child(f, t, BATCH_COMPRESSION);
    uint64_t codec = flat_number(f, &compression, COMPRESSION_CODEC, 1, 0), wanted;
    size_t nodes, buffers;
    const char *wrong;

    *out = (batch){.at = m->at, .rows = flat_count(f, t, BATCH_LENGTH)};
    if (compression.at) {
        if (codec > 1 || flat_number(f, &compression, COMPRESSION_METHOD, 1, 0) != 0)
            return "an unknown compression";
        out->codec = codec == 0 ? IRON_CODEC_LZ4 : IRON_CODEC_ZSTD;
    }
    wrong = check_structure(f, t, all, c, m->body_bytes, &nodes, &buffers);
    if (wrong || !c)
        return wrong;
    if (iron__load_u64(f->data + nodes) != out->rows)
        return "a column that is not as long as its batch";
    if (c->shape != SHAPE_PLAIN) {
        out->nulls = iron__load_u64(f->data + nodes + 8);
        out->validity = next_buffer(f, &buffers, m->body_at);
        nodes += NODE_BYTES;
    }
    if (c->shape == SHAPE_LIST || c->shape == SHAPE_LARGE_LIST)
        out->offsets = next_buffer(f, &buffers, m->body_at);
    out->items = iron__load_u64(f->data + nodes);
    out->item_nulls = iron__load_u64(f->data + nodes + 8);
    out->item_validity = next_buffer(f, &buffers, m->body_at);
    out->values = next_buffer(f, &buffers, m->body_at);
    if (c->shape == SHAPE_FIXED_SIZE_LIST &&
        (__builtin_mul_overflow(out->rows, c->list_size, &wanted) || wanted != out->items))
        return "lists of a fixed size with more or fewer values than rows times size";
    if (!has_room(out, &out->validity, out->nulls ? out->rows : 0, 1) ||
        !has_room(out, &out->item_validity, out->item_nulls ? out->items : 0, 1))
        return "a column with nulls, but without a bitmap of them";
    if (out->offsets.at && out->rows == INT64_MAX)
        return "a batch with an impossible length";
    if (out->offsets.at &&
        !has_room(out, &out->offsets, out->rows ? out->rows + 1 : 0, 8 * offset_bytes(c)))
        return "a buffer that is too short for the offsets of its lists";
    if (!has_room(out, &out->values, out->items, 8 * value_bytes(c)))
        return "a buffer that is too short for its values";
    return NULL;
}

/* Buffers. */

/* What the decompressed length before a compressed buffer says: *is_stored is true if the buffer is
 * not compressed after all. Some writers (apache-arrow for JavaScript, version 21) put the
 * compressed length there: then *length is UNKNOWN. */
static iron_status read_length(reader *r, const span *s, uint64_t *length, bool *is_stored,
                               iron_error *err) {
    const unsigned char *bytes;

    IRON_TRY(reader_get(r, s->at, 8, &bytes, err));
    *length = iron__load_u64(bytes);
    *is_stored = *length == UINT64_MAX;
    if (*is_stored)
        *length = s->bytes - 8;
    else if (*length == s->bytes - 8)
        *length = IRON_COUNT_UNKNOWN;
    else if (*length > INT64_MAX)
        return damaged(r, s->at, "a compressed buffer with a negative length", err);
    else if (*length > IRON_TABLE_PART_BYTES_MAX)
        return too_large(r, "a compressed buffer", *length, err);
    return IRON_OK;
}

/* Decompresses what may have any length into the scratch. */
static iron_status decompress_all(reader *r, iron__codec codec, const unsigned char *from,
                                  size_t count, iron_error *err) {
    iron__block *to = &r->scratch;
    iron__decompression *d = NULL;
    iron__codec_buffers buffers = {.from = from, .from_count = count};
    iron_status status = iron__decompression_create(codec, r->name, &d, err);

    to->bytes = 0;
    while (status == IRON_OK) {
        size_t before = buffers.from_count, room = to->bytes ? 2 * to->bytes : WINDOW_BYTES;

        if (to->bytes == to->capacity && room > IRON_TABLE_PART_BYTES_MAX)
            status = too_large(r, "a buffer", room, err);
        else if (to->bytes == to->capacity)
            status = iron__block_reserve(to, room, err);
        if (status != IRON_OK)
            break;
        buffers.to = to->data + to->bytes;
        buffers.room = to->capacity - to->bytes;
        status = iron__decompression_run(d, &buffers, err);
        if (to->capacity - buffers.room == to->bytes && buffers.from_count == before)
            break;
        to->bytes = to->capacity - buffers.room;
    }
    if (status == IRON_OK)
        status = iron__decompression_finish(d, err);
    iron__decompression_destroy(d);
    return status;
}

static const char too_short[] = "a compressed buffer that is too short for its column";

/* Gives bytes from ... from+bytes-1 of a buffer, decompressed; valid until the next call. */
static iron_status load(reader *r, const batch *b, const span *s, uint64_t from, uint64_t bytes,
                        const unsigned char **out, iron_error *err) {
    static const unsigned char nothing[8];
    uint64_t length;
    bool is_stored;

    *out = nothing;
    if (bytes == 0)
        return IRON_OK;
    if (bytes > IRON_TABLE_PART_BYTES_MAX)
        return too_large(r, "a column", bytes, err);
    if (b->codec == IRON_CODEC_NONE)
        return reader_get(r, s->at + from, bytes, out, err);
    IRON_TRY(read_length(r, s, &length, &is_stored, err));
    if (length < from + bytes)
        return damaged(r, s->at, too_short, err);
    if (is_stored)
        return reader_get(r, s->at + 8 + from, bytes, out, err);
    IRON_TRY(reader_get(r, s->at, s->bytes, out, err));
    if (length == IRON_COUNT_UNKNOWN) {
        IRON_TRY(decompress_all(r, b->codec, *out + 8, (size_t)s->bytes - 8, err));
        if (r->scratch.bytes < from + bytes)
            return damaged(r, s->at, too_short, err);
    } else {
        r->scratch.bytes = 0;
        IRON_TRY(iron__block_reserve(&r->scratch, (size_t)length, err));
        IRON_TRY(iron__codec_decompress(b->codec, r->name, *out + 8, (size_t)s->bytes - 8,
                                        r->scratch.data, (size_t)length, err));
    }
    *out = r->scratch.data + from;
    return IRON_OK;
}

/* A pipe: reads all buffers of a batch's column into the window, since they are next to one
 * another. Then they can be used in any order. */
static iron_status fetch(reader *r, const batch *b, iron_error *err) {
    const span *spans[] = {&b->validity, &b->offsets, &b->item_validity, &b->values};
    uint64_t start = UINT64_MAX, end = 0;
    const unsigned char *bytes;

    for (size_t k = 0; k < sizeof spans / sizeof spans[0]; k++)
        if (spans[k]->bytes > 0) {
            start = spans[k]->at < start ? spans[k]->at : start;
            end = spans[k]->at + spans[k]->bytes;
        }
    if (!r->pipe || end == 0)
        return IRON_OK;
    if (end - start > IRON_TABLE_PART_BYTES_MAX)
        return too_large(r, "a batch with a column", end - start, err);
    return reader_get(r, start, end - start, &bytes, err);
}

/* The first bit from `from` on that is not set, or `end`. */
static uint64_t first_clear(const unsigned char *bits, uint64_t from, uint64_t end) {
    for (uint64_t k = from; k < end; k++) {
        if (k % 8 == 0 && bits[k / 8] == 0xFF && end - k >= 8)
            k += 7;
        else if (!(bits[k / 8] >> k % 8 & 1))
            return k;
    }
    return end;
}

/* Finds a null among elements first ... end-1 of a bitmap; *found is `end` if there is none. */
static iron_status find_null(reader *r, const batch *b, const span *validity, uint64_t first,
                             uint64_t end, uint64_t *found, iron_error *err) {
    const unsigned char *bits;

    IRON_TRY(load(r, b, validity, first / 8, (end + 7) / 8 - first / 8, &bits, err));
    *found = first_clear(bits, first % 8, end - first / 8 * 8) + first / 8 * 8;
    return IRON_OK;
}

/* Decoding. */

/* What the messages before a point of a stream have made of the column's dictionary. */
typedef struct dictionary_state {
    size_t at;      /* its first value's byte in arrow.dictionary */
    uint64_t count; /* of values */
} dictionary_state;

/* Messages by their header: their number, a hash of where they are, and one that does not depend on
 * their order. */
typedef struct message_places {
    uint64_t counts[4], hashes[4], sums[4];
} message_places;

/* Where a block is: rows from row `row` of the batch at `message` on, in as many batches as it
 * takes. */
typedef struct part {
    uint64_t message;
    uint64_t row, rows;
    size_t state; /* of the dictionary */
} part;

/* An examined file, or a stream that is being read. */
typedef struct arrow {
    schema schema;
    column column;
    const char *column_name; /* of the table, or of the stream */
    bool is_file;
    bool keeps_all; /* dictionaries that were replaced */
    uint64_t limit;
    unsigned prefix;
    bool has_dictionary;      /* a batch of the column's dictionary was read */
    iron__block dictionary;   /* its values, as stored; those that replaced others follow them */
    iron__block nulls;        /* for each value 1 if it is null; empty: none is */
    dictionary_state *states; /* after each batch of the column's dictionary; the first: none */
    size_t state_count, state_capacity;
    part *parts; /* for each block of the table */
    size_t part_capacity;
    size_t shared; /* batches in the last block, if more may follow */
    message_places places;
    /* of a stream */
    reader reader;
    uint64_t position;
    bool has_ended;
} arrow;

typedef struct decoding {
    reader *r;
    const arrow *a;
    const dictionary_state *dictionary;
    bool wants_tokens;
    iron__block *out;
    uint64_t tokens, rows; /* so far, in this block */
    uint64_t first_row;    /* of the block */
} decoding;

static uint64_t load_offset(const column *c, const unsigned char *offsets, uint64_t index) {
    if (c->shape == SHAPE_LARGE_LIST)
        return iron__load_u64(offsets + 8 * index);
    return (uint64_t)(int64_t)(int32_t)iron__load_u32(offsets + 4 * index);
}

/* Checks where a row ends whose values begin at `first`. */
static iron_status check_row(const reader *r, const arrow *a, uint64_t row, uint64_t first,
                             uint64_t end, uint64_t items, iron_error *err) {
    IRON_FAIL_IF(end < first || end > items, err, IRON_E_FORMAT,
                 "%.90s: row %" PRIu64 " of column %.50s has values %" PRId64 " to %" PRId64
                 " of %" PRIu64 "; this is not valid Arrow data",
                 r->name, row, a->column_name, (int64_t)first, (int64_t)end, items);
    return IRON_OK;
}

/* Adds the places of rows, and finds the items that they have. All offsets are checked. */
static iron_status decode_places(decoding *d, const batch *b, uint64_t row, uint64_t rows,
                                 uint64_t *first, uint64_t *end, iron_error *err) {
    const column *c = &d->a->column;
    uint64_t each = offset_bytes(c), size = c->list_size, last;
    const unsigned char *offsets;

    if (rows > IRON_TABLE_PART_BYTES_MAX / sizeof(uint64_t))
        return too_large(d->r, "a batch with rows", rows * sizeof(uint64_t), err);
    IRON_TRY(iron__block_reserve_places(d->out, d->out->place_count + (size_t)rows, err));
    *first = row * size;
    *end = (row + rows) * size;
    if (c->shape == SHAPE_PLAIN || c->shape == SHAPE_FIXED_SIZE_LIST) {
        for (uint64_t k = 0; k < rows; k++)
            IRON_TRY(iron__block_add_place(d->out, d->tokens + k * size, err));
        return IRON_OK;
    }
    IRON_TRY(load(d->r, b, &b->offsets, row * each, (rows + 1) * each, &offsets, err));
    last = *first = load_offset(c, offsets, 0);
    for (uint64_t k = 1; k <= rows; k++) {
        uint64_t next = load_offset(c, offsets, k);

        IRON_TRY(check_row(d->r, d->a, d->first_row + d->rows + k - 1, last, next, b->items, err));
        IRON_TRY(iron__block_add_place(d->out, d->tokens + last - *first, err));
        last = next;
    }
    *end = last;
    return IRON_OK;
}

/* The row, counted in the file, of an item of the rows that were added last. */
static uint64_t row_of(const decoding *d, uint64_t rows, uint64_t item) {
    const uint64_t *places = d->out->places + (d->out->place_count - rows);

    return d->first_row + d->rows +
           iron__array_find(places, sizeof *places, (size_t)rows, d->tokens + item);
}

#define DEFINE_WIDEN(name, type)                                                                   \
    static void name(const unsigned char *from, size_t count, uint64_t *to) {                      \
        for (size_t k = 0; k < count; k++) {                                                       \
            type value;                                                                            \
                                                                                                   \
            memcpy(&value, from + k * sizeof value, sizeof value);                                 \
            to[k] = (uint64_t)(int64_t)value;                                                      \
        }                                                                                          \
    }

DEFINE_WIDEN(widen_u8, uint8_t)
DEFINE_WIDEN(widen_u16, uint16_t)
DEFINE_WIDEN(widen_u32, uint32_t)
DEFINE_WIDEN(widen_u64, uint64_t)
DEFINE_WIDEN(widen_i8, int8_t)
DEFINE_WIDEN(widen_i16, int16_t)
DEFINE_WIDEN(widen_i32, int32_t)
DEFINE_WIDEN(widen_i64, int64_t)

#define PIECE 512u

/* Converts indices of a dictionary to tokens at the end of the block. */
static iron_status decode_indices(decoding *d, const unsigned char *from, size_t count,
                                  unsigned char *to, uint64_t rows, iron_error *err) {
    static void (*const widen[])(const unsigned char *, size_t, uint64_t *) = {
        widen_u8, widen_u16, widen_u32, widen_u64, widen_i8, widen_i16, widen_i32, widen_i64};
    const column *c = &d->a->column;
    size_t bytes = iron__stored_bytes(c->stored),
           width = iron_dtype_bytes(iron__stored_dtype(c->stored));
    uint64_t entries = d->dictionary->count; /* 0: there may be no dictionary */
    const unsigned char *dictionary = entries ? d->a->dictionary.data + d->dictionary->at : NULL;
    const unsigned char *nulls =
        entries && d->a->nulls.bytes ? d->a->nulls.data + d->dictionary->at / bytes : NULL;
    unsigned char values[PIECE * sizeof(uint64_t)];
    uint64_t index[PIECE];

    for (size_t done = 0, some; done < count; done += some) {
        size_t known = 0, valid, good;

        some = count - done < PIECE ? count - done : PIECE;
        widen[c->index](from + done * iron__stored_bytes(c->index), some, index);
        for (; known < some && index[known] < entries; known++) /* negative: large */
            memcpy(values + known * bytes, dictionary + index[known] * bytes, bytes);
        valid = nulls ? 0 : known;
        while (valid < known && !nulls[index[valid]])
            valid++;
        good = iron__stored_convert(c->stored, values, valid, to + done * width);
        if (good < valid)
            return iron__stored_refuse(c->stored, values, good, d->r->name, d->a->column_name,
                                       row_of(d, rows, done + good), err);
        if (valid < known)
            return iron__table_refuse_null(d->r->name, d->a->column_name,
                                           row_of(d, rows, done + valid), err);
        IRON_FAIL_IF(known < some, err, IRON_E_FORMAT,
                     "%.90s: row %" PRIu64 " of column %.50s has index %" PRId64
                     ", but its dictionary has %" PRIu64 " values; this is not valid Arrow data",
                     d->r->name, row_of(d, rows, done + known), d->a->column_name,
                     (int64_t)index[known], entries);
    }
    return IRON_OK;
}

/* Appends `rows` rows of a batch from row `row` on to the block. */
static iron_status decode_rows(decoding *d, const batch *b, uint64_t row, uint64_t rows,
                               iron_error *err) {
    const column *c = &d->a->column;
    uint64_t each = value_bytes(c), first = 0, end = 0, found;
    size_t width = iron_dtype_bytes(iron__stored_dtype(c->stored)), count, good;
    const unsigned char *values;

    if (b->nulls > 0) {
        IRON_TRY(find_null(d->r, b, &b->validity, row, row + rows, &found, err));
        if (found < row + rows)
            return iron__table_refuse_null(d->r->name, d->a->column_name,
                                           d->first_row + d->rows + found - row, err);
    }
    IRON_TRY(decode_places(d, b, row, rows, &first, &end, err));
    if (b->item_nulls > 0) {
        IRON_TRY(find_null(d->r, b, &b->item_validity, first, end, &found, err));
        if (found < end)
            return iron__table_refuse_null(d->r->name, d->a->column_name,
                                           row_of(d, rows, found - first), err);
    }
    count = (size_t)(end - first);
    if (d->wants_tokens && count > 0) {
        if (end - first > IRON_TABLE_PART_BYTES_MAX / width)
            return too_large(d->r, "a batch with tokens", (end - first) * width, err);
        IRON_TRY(load(d->r, b, &b->values, first * each, (end - first) * each, &values, err));
        IRON_TRY(iron__block_reserve(d->out, d->out->bytes + count * width, err));
        if (c->has_dictionary) {
            IRON_TRY(decode_indices(d, values, count, d->out->data + d->out->bytes, rows, err));
        } else {
            good = iron__stored_convert(c->stored, values, count, d->out->data + d->out->bytes);
            if (good < count)
                return iron__stored_refuse(c->stored, values, good, d->r->name, d->a->column_name,
                                           row_of(d, rows, good), err);
        }
        d->out->bytes += count * width;
    }
    d->tokens += end - first;
    d->rows += rows;
    return IRON_OK;
}

/* Dictionaries. */

static void arrow_destroy(void *state) {
    arrow *a = state;

    schema_clear(&a->schema);
    iron__block_clear(&a->dictionary);
    iron__block_clear(&a->nulls);
    free(a->states);
    free(a->parts);
    reader_clear(&a->reader);
    free(a);
}

/* Notes which of the values that a batch adds to the dictionary are null. That matters only if a
 * row has one. */
static iron_status note_nulls(arrow *a, reader *r, const batch *b, iron_error *err) {
    size_t first = a->dictionary.bytes / iron__stored_bytes(a->column.stored);
    size_t all = first + (size_t)b->rows, noted = iron__min_size(first, a->nulls.bytes);
    const unsigned char *bits;

    if (b->rows == 0 || (b->item_nulls == 0 && a->nulls.bytes == 0))
        return IRON_OK;
    IRON_TRY(iron__block_reserve(&a->nulls, all, err));
    memset(a->nulls.data + noted, 0, all - noted);
    a->nulls.bytes = all;
    if (b->item_nulls == 0)
        return IRON_OK;
    IRON_TRY(load(r, b, &b->item_validity, 0, (b->rows + 7) / 8, &bits, err));
    for (uint64_t k = first_clear(bits, 0, b->rows); k < b->rows;
         k = first_clear(bits, k + 1, b->rows))
        a->nulls.data[first + k] = 1;
    return IRON_OK;
}

/* Whether a dictionary batch is one of the column's; checks it. */
static iron_status read_dictionary(const arrow *a, const reader *r, message *m, batch *b,
                                   bool *is_column, bool *is_delta, iron_error *err) {
    uint64_t id = flat_number(&m->flat, &m->table, DICTIONARY_ID, 8, 0);
    flat_table data = flat_child(&m->flat, &m->table, DICTIONARY_DATA);
    const dictionary_type key = {.id = id}, *type = NULL;
    column values = {.shape = SHAPE_PLAIN, .list_size = 1, .stored = a->column.stored};
    const char *wrong;

    if (a->schema.dictionary_count > 0)
        type = bsearch(&key, a->schema.dictionaries, a->schema.dictionary_count, sizeof key,
                       iron__by_first_number);
    *is_delta = flat_bool(&m->flat, &m->table, DICTIONARY_IS_DELTA);
    *is_column = a->column.has_dictionary && id == a->column.dictionary;
    if (!type || !data.at)
        return damaged(r, m->at, "a dictionary that no column has", err);
    wrong = read_batch(m, &data, &type->values, *is_column ? &values : NULL, b);
    return wrong ? damaged(r, m->at, wrong, err) : IRON_OK;
}

static iron_status add_dictionary(arrow *a, reader *r, message *m, iron_error *err) {
    size_t width = iron__stored_bytes(a->column.stored), bytes;
    dictionary_state state = a->states[a->state_count - 1];
    bool is_column, is_delta;
    batch b = {.rows = 0};
    const unsigned char *values;

    IRON_TRY(read_dictionary(a, r, m, &b, &is_column, &is_delta, err));
    if (!is_column)
        return IRON_OK;
    if (is_delta && !a->has_dictionary)
        return damaged(r, m->at, "an addition to a dictionary that is not there", err);
    if (!is_delta && a->is_file && a->has_dictionary)
        return damaged(r, m->at,
                       "a dictionary that replaces another one, which files must not have", err);
    IRON_TRY(fetch(r, &b, err));
    /* Adds the values of a batch to the dictionary, or begins another one with them. */
    if (!is_delta && !a->keeps_all)
        a->dictionary.bytes = 0;
    if (b.rows > IRON_TABLE_PART_BYTES_MAX / width ||
        b.rows * width > IRON_TABLE_PART_BYTES_MAX - a->dictionary.bytes)
        return too_large(r, "dictionaries", a->dictionary.bytes + b.rows, err);
    bytes = (size_t)b.rows * width;
    IRON_TRY(load(r, &b, &b.values, 0, bytes, &values, err));
    IRON_TRY(iron__block_reserve(&a->dictionary, a->dictionary.bytes + bytes, err));
    memcpy(a->dictionary.data + a->dictionary.bytes, values, bytes);
    IRON_TRY(note_nulls(a, r, &b, err));
    if (!is_delta)
        state = (dictionary_state){a->dictionary.bytes, 0};
    state.count += b.rows;
    a->dictionary.bytes += bytes;
    a->has_dictionary = true;
    if (a->keeps_all && !IRON_ARRAY_GROW(&a->states, a->state_count, &a->state_capacity))
        return iron__no_memory(err, "an Arrow file");
    a->state_count += a->keeps_all;
    a->states[a->state_count - 1] = state;
    return IRON_OK;
}

/* Finds the column in a batch, if one was chosen. */
static iron_status find_batch(const arrow *a, const reader *r, message *m, batch *b,
                              iron_error *err) {
    const column *c = a->column_name ? &a->column : NULL;
    const char *wrong = read_batch(m, &m->table, &a->schema.all, c, b);

    return wrong ? damaged(r, m->at, wrong, err) : IRON_OK;
}

/* Decodes the batches of a block. Dictionaries in files apply to all batches, wherever they are. */
static iron_status decode_part(decoding *d, const iron__table *table, size_t index,
                               iron_error *err) {
    const arrow *a = d->a;
    const part *p = &a->parts[index];
    uint64_t at = p->message, row = p->row, rows, tokens = iron__table_block_tokens(table, index);
    size_t bytes = (size_t)tokens * iron_dtype_bytes(table->dtype);
    size_t state = a->is_file ? a->state_count - 1 : p->state;
    bool is_column, is_delta;
    message m;
    batch b = {.rows = 0};

    IRON_TRY(iron__block_reserve_places(d->out, (size_t)p->rows, err));
    IRON_TRY(d->wants_tokens ? iron__block_reserve(d->out, bytes, err) : IRON_OK);
    for (; d->rows < p->rows; at = m.end) {
        IRON_TRY(read_message(d->r, at, &m, err));
        if (m.header == HEADER_DICTIONARY) {
            IRON_TRY(read_dictionary(a, d->r, &m, &b, &is_column, &is_delta, err));
            state += is_column && !a->is_file && state + 1 < a->state_count;
            continue;
        }
        if (m.header != HEADER_BATCH)
            return damaged(d->r, at, "no batch", err);
        IRON_TRY(find_batch(a, d->r, &m, &b, err));
        if (b.rows < row)
            return damaged(d->r, at, "fewer rows than before", err);
        rows = b.rows - row < p->rows - d->rows ? b.rows - row : p->rows - d->rows;
        d->dictionary = &a->states[state];
        IRON_TRY(decode_rows(d, &b, row, rows, err));
        row = 0;
    }
    IRON_FAIL_IF(d->tokens != tokens, err, IRON_E_IO, "%.120s changed while it was read",
                 d->r->name);
    return IRON_OK;
}

static iron_status table_decode(const iron__table *table, const iron__input *in, size_t index,
                                bool wants_tokens, iron__block *out, iron_error *err) {
    const arrow *a = table->state;
    reader r = {
        .file = in, .name = iron__path_shown(in->path), .limit = a->limit, .prefix = a->prefix};
    decoding d = {.r = &r,
                  .a = a,
                  .wants_tokens = wants_tokens,
                  .out = out,
                  .first_row = table->blocks[index].first_row};
    iron_status status = decode_part(&d, table, index, err);

    reader_clear(&r);
    return status;
}

/* Examining. */

/* The items of all rows of a batch. */
static iron_status find_items(reader *r, const column *c, const batch *b, uint64_t *first,
                              uint64_t *end, iron_error *err) {
    uint64_t each = offset_bytes(c), at[2] = {b->offsets.at, b->offsets.at + b->rows * each};
    const unsigned char *offsets;
    unsigned char ends[2][8];

    *first = 0;
    *end = b->rows * c->list_size;
    if (b->rows == 0 || !b->offsets.at)
        return IRON_OK;
    if (b->codec != IRON_CODEC_NONE) {
        IRON_TRY(load(r, b, &b->offsets, 0, (b->rows + 1) * each, &offsets, err));
        memcpy(ends[0], offsets, each);
        memcpy(ends[1], offsets + b->rows * each, each);
    }
    for (size_t k = 0; k < 2 && b->codec == IRON_CODEC_NONE; k++) {
        const iron__window *w = &r->window; /* what follows it is needed: it stays */

        if (at[k] >= w->at && at[k] - w->at <= w->block.bytes &&
            each <= w->block.bytes - (at[k] - w->at))
            memcpy(ends[k], w->block.data + (at[k] - w->at), each);
        else
            IRON_TRY(iron__input_read_at(r->file, at[k], ends[k], each, err));
    }
    *first = load_offset(c, ends[0], 0);
    *end = load_offset(c, ends[1], 0);
    return *first > *end || *end > b->items
               ? damaged(r, b->offsets.at, "offsets of lists that are outside of their values", err)
               : IRON_OK;
}

/* Looks for nulls in a batch that says it has some. */
static iron_status check_nulls(const arrow *a, reader *r, const iron__table *t, const batch *b,
                               iron_error *err) {
    iron__block places = {.data = NULL};
    iron_status status = IRON_OK;
    decoding d = {.r = r, .a = a, .out = &places, .first_row = t->rows};

    for (uint64_t row = 0, rows; row < b->rows && status == IRON_OK; row += rows) {
        rows = b->rows - row < IRON_TABLE_BLOCK_TOKENS ? b->rows - row : IRON_TABLE_BLOCK_TOKENS;
        places.place_count = 0;
        d.tokens = 0;
        status = decode_rows(&d, b, row, rows, err);
    }
    iron__block_clear(&places);
    return status;
}

/* Moves *item, where the values of row `row` begin, past `rows` rows of an uncompressed batch. The
 * values of a direct block are read without their offsets, so these are checked here. */
static iron_status pass_rows(const arrow *a, reader *r, const iron__table *t, const batch *b,
                             uint64_t row, uint64_t rows, uint64_t *item, iron_error *err) {
    uint64_t each = offset_bytes(&a->column);
    unsigned char piece[8192];

    if (!b->offsets.at)
        *item += rows * a->column.list_size;
    for (uint64_t done = 0, some; b->offsets.at && done < rows; done += some) {
        some = iron__min(rows - done, sizeof piece / each);
        IRON_TRY(iron__input_read_at(r->file, b->offsets.at + (row + done + 1) * each, piece,
                                     (size_t)(some * each), err));
        for (uint64_t k = 0; k < some; k++) {
            uint64_t next = load_offset(&a->column, piece, k);

            IRON_TRY(check_row(r, a, t->rows + done + k, *item, next, b->items, err));
            *item = next;
        }
    }
    return IRON_OK;
}

/* Divides a batch whose items are first ... end-1 into blocks, at rows. */
static iron_status divide_batch(arrow *a, reader *r, iron__table *t, const batch *b, uint64_t first,
                                uint64_t end, iron_error *err) {
    uint64_t tokens = end - first, pieces = 1, each, item = first;

    if (b->codec == IRON_CODEC_NONE) {
        pieces = iron__max(tokens, b->rows) + IRON_TABLE_BLOCK_TOKENS - 1;
        pieces = iron__min(pieces / IRON_TABLE_BLOCK_TOKENS, b->rows);
    }
    each = (b->rows + pieces - 1) / pieces;
    for (uint64_t row = 0; row < b->rows; row += each) {
        uint64_t rows = iron__min(b->rows - row, each), next = item;
        iron__table_block block = {.first = t->tokens, .first_row = t->rows, .at = b->at};

        block.is_direct = b->codec == IRON_CODEC_NONE && !a->column.has_dictionary;
        if (block.is_direct) {
            block.stored = a->column.stored;
            block.at = b->values.at + item * value_bytes(&a->column);
        }
        if (!IRON_ARRAY_GROW(&a->parts, t->block_count, &a->part_capacity))
            return iron__no_memory(err, "an Arrow file");
        a->parts[t->block_count] = (part){b->at, row, rows, a->state_count - 1};
        IRON_TRY(iron__table_add_block(t, &block, err));
        if (b->codec == IRON_CODEC_NONE)
            IRON_TRY(pass_rows(a, r, t, b, row, rows, &next, err));
        else
            next = end;
        if (!block.is_direct && next - item > IRON_TABLE_PART_BYTES_MAX / 8)
            return too_large(r, "rows with tokens", (next - item) * 8, err);
        t->tokens += next - item;
        t->rows += rows;
        item = next;
    }
    a->shared = tokens < SMALL_BATCH && b->rows < SMALL_BATCH ? 1 : 0;
    return IRON_OK;
}

static iron_status add_batch(arrow *a, reader *r, iron__table *t, message *m, iron_error *err) {
    iron__table_block *last = t->block_count ? &t->blocks[t->block_count - 1] : NULL;
    uint64_t first = 0, end = 0, tokens, rows, width = value_bytes(&a->column), length;
    batch b = {.rows = 0};
    bool is_stored;

    IRON_TRY(find_batch(a, r, m, &b, err));
    if (t->column)
        IRON_TRY(find_items(r, &a->column, &b, &first, &end, err));
    if (__builtin_add_overflow(t->tokens, end - first, &tokens) ||
        __builtin_add_overflow(t->rows, b.rows, &rows) || tokens > INT64_MAX || rows > INT64_MAX)
        return damaged(r, m->at, "more rows than there can be", err);
    if (!t->column) {
        t->rows = rows;
        return IRON_OK;
    }
    if (b.codec != IRON_CODEC_NONE) {
        /* they are decoded as a whole: memory must be enough for that */
        IRON_TRY(iron__codec_load(b.codec, r->name, err));
        IRON_FAIL_IF(
            b.rows > IRON_TABLE_PART_BYTES_MAX / 8 || b.items > IRON_TABLE_PART_BYTES_MAX / width ||
                end - first > IRON_TABLE_PART_BYTES_MAX / 4,
            err, IRON_E_UNSUPPORTED,
            "%.90s at byte %" PRIu64 ": a compressed batch of %" PRIu64 " rows and %" PRIu64
            " values, too many to hold in memory at once; write smaller record batches",
            r->name, b.at, b.rows, b.items);
        if (b.items > 0)
            IRON_TRY(read_length(r, &b.values, &length, &is_stored, err));
        if (b.items > 0 && length < b.items * width)
            return damaged(r, b.values.at, too_short, err);
    }
    if (b.nulls > 0 || b.item_nulls > 0)
        IRON_TRY(check_nulls(a, r, t, &b, err));
    if (b.rows == 0)
        return IRON_OK;
    if (!last || a->shared == 0 || a->shared >= SHARED_BATCHES || end - first >= SMALL_BATCH ||
        b.rows >= SMALL_BATCH || t->tokens - last->first >= IRON_TABLE_BLOCK_TOKENS ||
        t->rows - last->first_row >= IRON_TABLE_BLOCK_TOKENS)
        return divide_batch(a, r, t, &b, first, end, err);
    last->is_direct = false;
    last->at = a->parts[t->block_count - 1].message;
    a->parts[t->block_count - 1].rows += b.rows;
    a->shared++;
    t->tokens = tokens;
    t->rows = rows;
    return IRON_OK;
}

/* A hash of where messages are, to compare them with the footer. */
static void note_place(message_places *p, unsigned header, uint64_t at, uint64_t metadata,
                       uint64_t body) {
    const uint64_t numbers[3] = {at, metadata, body};
    uint64_t hash = 0;

    for (size_t k = 0; k < 3; k++)
        hash = (hash ^ numbers[k] ^ hash >> 32) * 0x9E3779B97F4A7C15u + 1;
    p->counts[header]++;
    p->hashes[header] = (p->hashes[header] ^ hash) * 0x9E3779B97F4A7C15u + 1;
    p->sums[header] += hash ^ hash >> 32;
}

static iron_status note_footer_blocks(message_places *p, const reader *r, flat *f,
                                      const flat_table *footer, unsigned field, unsigned header,
                                      iron_error *err) {
    size_t count, at = flat_vector(f, footer, field, FOOTER_BLOCK, &count);

    if (f->is_bad)
        return damaged(r, r->limit, "the footer is damaged", err);
    for (; count > 0; count--, at += FOOTER_BLOCK)
        note_place(p, header, iron__load_u64(f->data + at), iron__load_u32(f->data + at + 8),
                   iron__load_u64(f->data + at + 16));
    return IRON_OK;
}

/* Reads the footer of a file, of so many bytes: the schema, and where it says that messages are. */
static iron_status read_footer(reader *r, const unsigned char *bytes, uint64_t count, schema *out,
                               message_places *places, iron_error *err) {
    flat f = {bytes, (size_t)count, false};
    flat_table footer, table;
    unsigned version;

    if (count < 8)
        return damaged(r, r->limit, "the footer is too short", err);
    footer = flat_open(&f, iron__load_u32(bytes));
    version = (unsigned)flat_number(&f, &footer, FOOTER_VERSION, 2, 0);
    table = flat_child(&f, &footer, FOOTER_SCHEMA);
    if (f.is_bad || !table.at)
        return damaged(r, r->limit, "the footer is damaged", err);
    IRON_FAIL_IF(version < VERSION_4 || version > VERSION_5, err, IRON_E_UNSUPPORTED,
                 "%.100s: an Arrow footer of version %u; versions 4 and 5 are read", r->name,
                 version + 1);
    IRON_TRY(read_schema(r, r->limit, &f, &table, version, out, err));
    IRON_TRY(
        note_footer_blocks(places, r, &f, &footer, FOOTER_DICTIONARIES, HEADER_DICTIONARY, err));
    return note_footer_blocks(places, r, &f, &footer, FOOTER_BATCHES, HEADER_BATCH, err);
}

/* Compares the messages that were found with the footer's. By the specification, a file's batches
 * have the order of the footer. All writers write them in that order, and only so do files and
 * pipes give the same tokens: another order is refused. */
static iron_status check_places(const reader *r, const message_places *found,
                                const message_places *footer, iron_error *err) {
    if (memcmp(found, footer, sizeof *found) == 0)
        return IRON_OK;
    IRON_FAIL_IF(memcmp(found->counts, footer->counts, sizeof found->counts) == 0 &&
                     memcmp(found->sums, footer->sums, sizeof found->sums) == 0,
                 err, IRON_E_UNSUPPORTED,
                 "%.90s at byte %" PRIu64 ": the footer lists its %s in another order than they "
                 "have in the file, which is not read; write it again",
                 r->name, r->limit,
                 found->hashes[HEADER_BATCH] != footer->hashes[HEADER_BATCH] ? "record batches"
                                                                             : "dictionaries");
    return damaged(r, r->limit, "the footer does not list the batches that the file has", err);
}

/* Where messages begin: after the magic of a file, which some writers pad to 64 bytes. */
static uint64_t find_start(const iron__candidate *c, bool is_file) {
    static const unsigned char zeros[64 - 8];

    if (!is_file)
        return 0;
    return c->head_count >= 64 && memcmp(c->head + 8, zeros, sizeof zeros) == 0 ? 64 : 8;
}

/* Reads messages from a position on up to the next batch; HEADER_NONE after the last. Arrow lets a
 * stream end without a mark. But all its writers write one when they are closed, and without it a
 * stream that was cut between two batches would pass for a whole one. */
static iron_status next_batch(arrow *a, reader *r, uint64_t at, message *m, iron_error *err) {
    for (;; at = m->end) {
        IRON_TRY(read_message(r, at, m, err));
        IRON_FAIL_IF(m->header == HEADER_NONE && !a->is_file && m->metadata_bytes == 0, err,
                     IRON_E_FORMAT,
                     "%.100s ends at byte %" PRIu64 " without the mark that ends an Arrow stream; "
                     "it was cut off, or its writer was not closed",
                     r->name, m->at);
        if (m->header == HEADER_NONE)
            return IRON_OK;
        if (m->header == HEADER_SCHEMA)
            return damaged(r, m->at, "a second schema", err);
        note_place(&a->places, m->header, m->at, m->metadata_bytes, m->body_bytes);
        if (m->header == HEADER_BATCH)
            return IRON_OK;
        IRON_TRY(add_dictionary(a, r, m, err));
    }
}

/* Chooses the column. Without one, rows are counted alone. */
static iron_status choose_column(arrow *a, const iron__candidate *c, iron__table *t,
                                 iron_error *err) {
    const schema *s = &a->schema;
    size_t chosen;

    IRON_TRY(iron__format_choose(c, s->columns, s->count, &chosen, &t->column, err));
    a->column_name = t->column;
    if (!t->column)
        return IRON_OK;
    a->column = s->details[chosen];
    t->dtype = iron__stored_dtype(a->column.stored);
    t->stored_as = iron__stored_signed(a->column.stored);
    iron__format_reason(c, "column %.60s: %s", t->column, s->columns[chosen].type);
    return IRON_OK;
}

/* Reads the schema that begins a stream. In a file it is in the footer, too, where it was read
 * before; *at moves behind it. */
static iron_status read_first(arrow *a, reader *r, uint64_t *at, iron_error *err) {
    schema second = {.columns = NULL}, *s = r->pipe || !a->is_file ? &a->schema : &second;
    iron_status status;
    message m;

    IRON_TRY(read_message(r, *at, &m, err));
    if (m.header != HEADER_SCHEMA && a->is_file && r->file)
        return IRON_OK;
    IRON_FAIL_IF(m.header != HEADER_SCHEMA && a->is_file, err, IRON_E_UNSUPPORTED,
                 "%.100s: an Arrow file whose schema is only at its end cannot be read in order; "
                 "give the file itself, or write an Arrow stream",
                 r->name);
    if (m.header != HEADER_SCHEMA)
        return damaged(r, *at, "the first message is not a schema", err);
    *at = m.end;
    status = read_schema(r, m.at, &m.flat, &m.table, m.version, s, err);
    if (status == IRON_OK && s == &second && !is_same_schema(&a->schema, &second))
        status = damaged(r, m.at, "a schema that is not that of the footer", err);
    schema_clear(&second);
    return status;
}

static iron_status examine_file(arrow *a, iron__candidate *c, reader *r, iron__table *t,
                                iron_error *err) {
    uint64_t bytes = c->file->bytes, at = find_start(c, a->is_file), length;
    message_places footer = {{0}, {0}, {0}};
    message m = {.header = HEADER_NONE};
    const unsigned char *data;

    r->limit = bytes;
    if (a->is_file) {
        if (bytes < 8 + TRAILER_BYTES)
            return cut_off(r, bytes, 8 + TRAILER_BYTES, err);
        IRON_TRY(reader_get(r, bytes - TRAILER_BYTES, TRAILER_BYTES, &data, err));
        IRON_FAIL_IF(memcmp(data + 4, MAGIC, MAGIC_BYTES) != 0, err, IRON_E_FORMAT,
                     "%.100s begins like an Arrow file, but does not end with %s; is it cut off?",
                     r->name, MAGIC);
        length = iron__load_u32(data);
        if (length > bytes - TRAILER_BYTES - 8 || length > METADATA_BYTES_MAX)
            return damaged(r, bytes - TRAILER_BYTES, "the length of the footer is impossible", err);
        r->limit = bytes - TRAILER_BYTES - length;
        IRON_TRY(reader_get(r, r->limit, length, &data, err));
        IRON_TRY(read_footer(r, data, length, &a->schema, &footer, err));
    }
    IRON_TRY(read_first(a, r, &at, err));
    IRON_TRY(choose_column(a, c, t, err));
    for (;; at = m.end) {
        IRON_TRY(next_batch(a, r, at, &m, err));
        if (m.header == HEADER_NONE)
            break;
        IRON_TRY(add_batch(a, r, t, &m, err));
    }
    IRON_FAIL_IF(!a->is_file && m.end != r->limit, err, IRON_E_FORMAT,
                 "%.100s: the Arrow stream ends at byte %" PRIu64 ", but the file has %" PRIu64
                 " bytes; was something appended?",
                 r->name, m.end, r->limit);
    if (a->is_file) { /* only padding may follow */
        length = r->limit - m.end;
        if (length < 64)
            IRON_TRY(reader_get(r, m.end, length, &data, err));
        for (uint64_t k = 0; k < length; k++)
            if (length >= 64 || data[k] != 0)
                return damaged(r, m.end, "the messages end before the footer begins", err);
        IRON_TRY(check_places(r, &a->places, &footer, err));
    }
    a->limit = r->limit;
    a->prefix = r->prefix;
    iron__format_reason(c, "record batches: %" PRIu64 ", rows: %" PRIu64,
                        a->places.counts[HEADER_BATCH], t->rows);
    return IRON_OK;
}

/* Pipes. */

/* What follows the last message of a file that is read in order: the footer. Of a stream, nothing
 * may follow. */
static iron_status check_rest(arrow *a, reader *r, uint64_t at, iron_error *err) {
    message_places footer = {{0}, {0}, {0}};
    schema repeated = {.columns = NULL};
    const iron__block *rest = &r->window.block;
    iron_status status;
    uint64_t length;

    IRON_TRY(fill_from_pipe(r, at, a->is_file ? METADATA_BYTES_MAX : 1, err));
    IRON_FAIL_IF(!a->is_file && rest->bytes > 0, err, IRON_E_FORMAT,
                 "%.100s: bytes follow the end of the Arrow stream at byte %" PRIu64
                 "; was something appended?",
                 r->name, at);
    if (!a->is_file)
        return IRON_OK;
    if (rest->bytes < TRAILER_BYTES ||
        memcmp(rest->data + rest->bytes - MAGIC_BYTES, MAGIC, MAGIC_BYTES) != 0)
        return cut_off(r, r->position, r->position + TRAILER_BYTES, err);
    length = iron__load_u32(rest->data + rest->bytes - TRAILER_BYTES);
    if (length > rest->bytes - TRAILER_BYTES || rest->bytes - TRAILER_BYTES - length >= 64)
        return damaged(r, r->position - TRAILER_BYTES, "the length of the footer is impossible",
                       err);
    r->limit = r->position - TRAILER_BYTES - length;
    status = read_footer(r, rest->data + (r->limit - at), length, &repeated, &footer, err);
    if (status == IRON_OK && !is_same_schema(&repeated, &a->schema))
        status = damaged(r, r->limit, "the footer has another schema than the file", err);
    if (status == IRON_OK)
        status = check_places(r, &a->places, &footer, err);
    schema_clear(&repeated);
    return status;
}

static iron_status stream_next(iron__table *stream, iron__input *in, iron__block *out,
                               bool *has_ended, iron_error *err) {
    arrow *a = stream->state;
    reader *r = &a->reader;
    decoding d = {.r = r, .a = a, .dictionary = a->states, .wants_tokens = true, .out = out};
    message m = {.header = HEADER_NONE};
    batch b = {.rows = 0};

    *has_ended = a->has_ended;
    if (a->has_ended)
        return IRON_OK;
    r->pipe = in;
    r->name = iron__path_shown(in->path);
    IRON_TRY(next_batch(a, r, a->position, &m, err));
    *has_ended = a->has_ended = m.header == HEADER_NONE;
    if (a->has_ended)
        return check_rest(a, r, m.end, err);
    IRON_TRY(find_batch(a, r, &m, &b, err));
    a->position = m.end;
    d.first_row = stream->rows;
    d.tokens = out->bytes / iron_dtype_bytes(stream->dtype);
    IRON_TRY(fetch(r, &b, err));
    if (b.rows > 0)
        IRON_TRY(decode_rows(&d, &b, 0, b.rows, err));
    stream->rows += b.rows;
    return IRON_OK;
}

/* The row. */

static bool begins_with_magic(const iron__candidate *c) {
    return c->head_count >= 8 && memcmp(c->head, MAGIC "\0", 8) == 0;
}

static iron_status examine(iron__candidate *c, iron__format_layout *layout, iron_error *err) {
    static const iron__table_kind kind = {table_decode, arrow_destroy, stream_next};
    bool is_pipe = iron__input_is_pipe(c->file);
    iron__table **table = is_pipe ? &layout->stream : &layout->table;
    reader r = {.file = c->file, .name = c->name};
    iron_status status;
    arrow *a;

    IRON_TRY(iron__table_create(&kind, sizeof *a, table, err));
    a = (*table)->state;
    IRON_TRY(IRON_NEW(&a->states, 1, "an Arrow file", err));
    a->state_count = a->state_capacity = 1;
    IRON_TRY(iron__input_peek(c->file, c->head, &c->head_count, err));
    a->is_file = begins_with_magic(c);
    a->keeps_all = !is_pipe;
    iron__format_reason(c, "Arrow IPC %s", a->is_file ? "file" : "stream");
    if (is_pipe) {
        a->reader = (reader){.pipe = c->file, .name = c->name, .limit = UINT64_MAX};
        a->position = find_start(c, a->is_file);
        IRON_TRY(read_first(a, &a->reader, &a->position, err));
        IRON_TRY(choose_column(a, c, *table, err));
        layout->dtype = (*table)->dtype;
        return IRON_OK;
    }
    status = examine_file(a, c, &r, layout->table, err);
    reader_clear(&r);
    iron__layout_use_table(layout); /* also of a damaged file: what was found so far */
    return status;
}

/* A file; or a stream, whose first message is a schema. The magic of a stream can be a single token
 * of 32 bits, and older streams have none at all: so the message must be one in every detail that
 * the first bytes show. */
static bool recognise(const iron__candidate *c) {
    bool has_mark = c->head_count >= 4 && iron__load_u32(c->head) == UINT32_MAX;
    size_t prefix = has_mark ? 8 : 4, shown, fields;
    flat_table root, table;
    uint64_t length;
    flat f;

    if (begins_with_magic(c))
        return true;
    if (c->head_count < prefix + 32)
        return false;
    length = iron__load_u32(c->head + prefix - 4);
    if ((prefix + length) % 8 != 0 || length < 32 || length > METADATA_BYTES_MAX)
        return false;
    shown = c->head_count - prefix;
    f = (flat){c->head + prefix, length < shown ? (size_t)length : shown, false};
    root = flat_open(&f, iron__load_u32(f.data));
    if (flat_number(&f, &root, MESSAGE_VERSION, 2, 0) > VERSION_5 ||
        flat_number(&f, &root, MESSAGE_HEADER_TYPE, 1, 0) != HEADER_SCHEMA ||
        flat_number(&f, &root, MESSAGE_BODY, 8, 0) != 0 || f.is_bad || root.vtable_bytes > 64)
        return false;
    table = flat_child(&f, &root, MESSAGE_HEADER);
    flat_vector(&f, &table, SCHEMA_FIELDS, 4, &fields);
    if (f.is_bad) /* it may lie beyond what is shown */
        return has_mark && length > shown;
    return table.at && table.vtable_bytes <= 64 &&
           flat_number(&f, &table, SCHEMA_ENDIANNESS, 2, 0) <= 1;
}

const iron__format iron__format_arrow = {"arrow", recognise, examine, NULL};
