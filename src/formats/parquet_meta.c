/* SPDX-License-Identifier: MIT */
/*
 * parquet_meta.c: the metadata of a Parquet file, in Thrift's compact protocol: the footer, with
 * the schema and the row groups, and the headers of pages.
 *
 * Fields that are not needed are skipped, whatever they are; those that are needed must have the
 * type and the range of Parquet's definition. The first fault ends the parsing: from then on every
 * function returns zero, so that faults are looked at in a few places only.
 *
 * The footer is read in two steps: first the schema, from which the column is chosen; then the row
 * groups, of which only the chosen column is kept.
 */
#include "formats/parquet.h"

#include "core/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Structs in structs: Parquet has 6. */
#define DEPTH_MAX 24u

typedef enum thrift_type {
    THRIFT_STOP = 0,
    THRIFT_TRUE = 1,
    THRIFT_FALSE = 2,
    THRIFT_I8 = 3,
    THRIFT_I16 = 4,
    THRIFT_I32 = 5,
    THRIFT_I64 = 6,
    THRIFT_DOUBLE = 7,
    THRIFT_BINARY = 8,
    THRIFT_LIST = 9,
    THRIFT_SET = 10,
    THRIFT_MAP = 11,
    THRIFT_STRUCT = 12,
    THRIFT_UUID = 13
} thrift_type;

typedef struct thrift {
    const unsigned char *at, *end;
    const char *fault; /* NULL: none so far */
    bool is_short;     /* the fault is that the data ended */
} thrift;

typedef struct thrift_field {
    int id; /* 0 before the first */
    unsigned type;
} thrift_field;

static uint64_t fail(thrift *t, const char *fault) {
    if (!t->fault)
        t->fault = fault;
    t->end = t->at; /* nothing more is read */
    return 0;
}

static unsigned next_byte(thrift *t) {
    if (t->at == t->end) {
        t->is_short = t->is_short || !t->fault;
        return (unsigned)fail(t, "it ends too early");
    }
    return *t->at++;
}

static const unsigned char *next_bytes(thrift *t, uint64_t count) {
    const unsigned char *at = t->at;

    if (count > (uint64_t)(t->end - t->at)) {
        t->is_short = t->is_short || !t->fault;
        (void)fail(t, "it ends too early");
        return NULL;
    }
    t->at += count;
    return at;
}

static uint64_t next_varint(thrift *t) {
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        unsigned byte = next_byte(t);

        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return t->fault ? 0 : value;
    }
    return fail(t, "a number is too long");
}

static int64_t next_signed(thrift *t) {
    uint64_t value = next_varint(t);

    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

/* False: the struct has ended, or a fault. */
static bool next_field(thrift *t, thrift_field *f) {
    unsigned byte = next_byte(t), delta = byte >> 4;
    int64_t id;

    f->type = byte & 15;
    if (t->fault || byte == THRIFT_STOP)
        return false;
    id = delta ? f->id + (int64_t)delta : next_signed(t);
    if (f->type == THRIFT_STOP || f->type > THRIFT_UUID || id < INT16_MIN || id > INT16_MAX)
        (void)fail(t, "a field has no valid type or number");
    f->id = (int)id;
    return !t->fault;
}

/* Begins a list: the number of its elements. Each has at least one byte. */
static size_t next_list(thrift *t, const thrift_field *f, unsigned type) {
    unsigned byte;
    uint64_t count;

    if (f->type != THRIFT_LIST)
        return (size_t)fail(t, "a field is not the list that it must be");
    byte = next_byte(t);
    count = byte >> 4 == 15 ? next_varint(t) : byte >> 4;
    if (count > 0 && (byte & 15) != type)
        return (size_t)fail(t, "a list has elements of another type");
    if (count > (uint64_t)(t->end - t->at))
        return (size_t)fail(t, "a list has more elements than bytes");
    return (size_t)count;
}

static void skip(thrift *t, unsigned type, unsigned depth);

/* Skips the elements of a list, set or map. */
static void skip_elements(thrift *t, unsigned type, unsigned depth) {
    unsigned byte, key = 0, value;
    uint64_t count;

    if (type == THRIFT_MAP) {
        count = next_varint(t);
        byte = count > 0 ? next_byte(t) : 0;
        key = byte >> 4;
        value = byte & 15;
    } else {
        byte = next_byte(t);
        count = byte >> 4 == 15 ? next_varint(t) : byte >> 4;
        value = byte & 15;
    }
    if (count > (uint64_t)(t->end - t->at)) {
        t->is_short = t->is_short || !t->fault;
        (void)fail(t, "a list has more elements than bytes");
    }
    for (uint64_t k = 0; k < count && !t->fault; k++)
        for (unsigned part = key ? 0 : 1; part < 2; part++) {
            unsigned element = part == 0 ? key : value;

            if (element == THRIFT_TRUE || element == THRIFT_FALSE)
                (void)next_byte(t); /* has a byte here, but not as a field */
            else
                skip(t, element, depth);
        }
}

/* Skips a value. */
static void skip(thrift *t, unsigned type, unsigned depth) {
    thrift_field f = {0, THRIFT_STOP};

    if (depth == DEPTH_MAX) {
        (void)fail(t, "it is nested too deeply");
        return;
    }
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        break;
    case THRIFT_I8:
        (void)next_byte(t);
        break;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64:
        (void)next_varint(t);
        break;
    case THRIFT_DOUBLE:
        (void)next_bytes(t, 8);
        break;
    case THRIFT_UUID:
        (void)next_bytes(t, 16);
        break;
    case THRIFT_BINARY:
        (void)next_bytes(t, next_varint(t));
        break;
    case THRIFT_LIST:
    case THRIFT_SET:
    case THRIFT_MAP:
        skip_elements(t, type, depth + 1);
        break;
    case THRIFT_STRUCT:
        while (next_field(t, &f))
            skip(t, f.type, depth + 1);
        break;
    default:
        (void)fail(t, "a value has no valid type");
    }
}

/* Fields of known types. */

static int64_t field_integer(thrift *t, const thrift_field *f, int64_t least, int64_t most) {
    int64_t value;

    if (f->type < THRIFT_I16 || f->type > THRIFT_I64)
        return (int64_t)fail(t, "a field is not the integer that it must be");
    value = next_signed(t);
    if (value < least || value > most)
        return (int64_t)fail(t, "a number is out of range");
    return value;
}

static int field_enum(thrift *t, const thrift_field *f) {
    return (int)field_integer(t, f, INT32_MIN, INT32_MAX);
}

static uint32_t field_size(thrift *t, const thrift_field *f) {
    return (uint32_t)field_integer(t, f, 0, INT32_MAX);
}

static uint64_t field_long(thrift *t, const thrift_field *f) {
    return (uint64_t)field_integer(t, f, 0, INT64_MAX);
}

static const unsigned char *field_binary(thrift *t, const thrift_field *f, size_t *bytes) {
    uint64_t count;

    *bytes = 0;
    if (f->type != THRIFT_BINARY) {
        (void)fail(t, "a field is not the string that it must be");
        return NULL;
    }
    count = next_varint(t);
    if (count <= (uint64_t)(t->end - t->at))
        *bytes = (size_t)count;
    return next_bytes(t, count);
}

static bool field_bool(thrift *t, const thrift_field *f) {
    if (f->type != THRIFT_TRUE && f->type != THRIFT_FALSE)
        (void)fail(t, "a field is not the truth value that it must be");
    return f->type == THRIFT_TRUE;
}

static bool field_is_struct(thrift *t, const thrift_field *f) {
    if (f->type != THRIFT_STRUCT)
        (void)fail(t, "a field is not the struct that it must be");
    return !t->fault;
}

/* The error for a fault in the footer. */
static iron_status refuse(const iron__parquet_footer *f, const thrift *t, iron_error *err) {
    IRON_FAIL(err, IRON_E_FORMAT, "%.100s: its Parquet footer is damaged at byte %" PRIu64 ": %s",
              f->name, f->at + (uint64_t)(t->at - f->data), t->fault);
}

/* The schema. */

enum {
    TYPE_BOOLEAN = 0,
    TYPE_INT32 = 1,
    TYPE_INT64 = 2,
    TYPE_INT96 = 3,
    TYPE_FLOAT = 4,
    TYPE_DOUBLE = 5,
    TYPE_BYTE_ARRAY = 6,
    TYPE_FIXED = 7
};

enum { REPETITION_REQUIRED = 0, REPETITION_OPTIONAL = 1, REPETITION_REPEATED = 2 };

enum { CONVERTED_MAP = 1, CONVERTED_MAP_KEY_VALUE = 2, CONVERTED_LIST = 3, CONVERTED_UINT_8 = 11 };

/* Numbers of the union LogicalType; any other is a type that we do not know. */
enum { LOGICAL_MAP = 2, LOGICAL_LIST = 3, LOGICAL_INTEGER = 10 };

/* A logical integer: its bits and whether it is signed. */
static void read_integer_type(thrift *t, iron__parquet_element *e) {
    thrift_field f = {0, THRIFT_STOP};

    while (next_field(t, &f)) {
        if (f.id == 1 && f.type == THRIFT_I8)
            e->bits = (int)next_byte(t);
        else if (f.id == 2)
            e->is_signed = field_bool(t, &f);
        else
            skip(t, f.type, 0);
    }
}

static void read_logical(thrift *t, iron__parquet_element *e) {
    thrift_field f = {0, THRIFT_STOP};

    e->logical = 0;
    while (next_field(t, &f)) {
        e->logical = f.id;
        if (f.id == LOGICAL_INTEGER && f.type == THRIFT_STRUCT)
            read_integer_type(t, e);
        else
            skip(t, f.type, 0);
    }
}

static void read_element(thrift *t, iron__parquet_element *e) {
    thrift_field f = {0, THRIFT_STOP};

    *e = (iron__parquet_element){.type = -1, .repetition = -1, .converted = -1, .logical = -1};
    while (next_field(t, &f)) {
        if (f.id == 1)
            e->type = (int)field_integer(t, &f, 0, INT32_MAX);
        else if (f.id == 3)
            e->repetition = (int)field_integer(t, &f, 0, 2);
        else if (f.id == 4)
            e->name = field_binary(t, &f, &e->name_bytes);
        else if (f.id == 5)
            e->children = field_size(t, &f);
        else if (f.id == 6)
            e->converted = field_enum(t, &f);
        else if (f.id == 10 && field_is_struct(t, &f))
            read_logical(t, e);
        else if (f.id != 10)
            skip(t, f.type, 0);
    }
    if (!t->fault && !e->name)
        (void)fail(t, "an element of the schema has no name");
    if (!t->fault && e->type >= 0 && e->children > 0)
        (void)fail(t, "an element of the schema is a value and a group");
}

static iron_status read_schema(iron__parquet_footer *f, iron_error *err) {
    thrift t = {.at = f->schema, .end = f->data + f->bytes};
    thrift_field list = {2, THRIFT_LIST};
    size_t count = next_list(&t, &list, THRIFT_STRUCT), open = 1;

    if (count > 0)
        f->elements = calloc(count, sizeof *f->elements);
    if (count > 0 && !f->elements)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory: a schema of %zu elements",
                          count);
    for (size_t k = 0; k < count && !t.fault; k++) {
        iron__parquet_element *e = &f->elements[k];

        read_element(&t, e);
        if (open == 0 || e->children > count)
            (void)fail(&t, "the elements of the schema are not one tree");
        open += e->children - 1;
        f->leaf_count += e->type >= 0;
        if (k > 0 && e->repetition < 0)
            (void)fail(&t, "an element of the schema is neither required, optional nor repeated");
    }
    if (!t.fault && (open != 0 || f->elements[0].type >= 0))
        (void)fail(&t, "the elements of the schema are not one tree");
    f->element_count = count;
    return t.fault ? refuse(f, &t, err) : IRON_OK;
}

/* Columns. */

/* The integers of an element, if it is a column of those: false for dates, decimals and the like.
 */
static bool is_integer(const iron__parquet_element *e, iron__stored *stored, int *bits) {
    bool is_signed = true, is_wide = e->type == TYPE_INT64;

    if (e->type != TYPE_INT32 && e->type != TYPE_INT64)
        return false;
    *bits = is_wide ? 64 : 32;
    if (e->logical >= 0) {
        if (e->logical != LOGICAL_INTEGER ||
            (is_wide ? e->bits != 64 : e->bits != 8 && e->bits != 16 && e->bits != 32))
            return false;
        *bits = e->bits;
        is_signed = e->is_signed;
    } else if (e->converted >= 0) {
        int k = e->converted - CONVERTED_UINT_8; /* uint 8, 16, 32, 64, int 8, 16, 32, 64 */

        if (k < 0 || k > 7 || (k % 4 == 3) != is_wide)
            return false;
        *bits = 8 << k % 4;
        is_signed = k >= 4;
    }
    if (is_wide)
        *stored = is_signed ? IRON_STORED_I64 : IRON_STORED_U64;
    else
        *stored = is_signed ? IRON_STORED_I32 : IRON_STORED_U32;
    return true;
}

/* The type of a value, in words. */
static void name_value(const iron__parquet_element *e, char *to, size_t room) {
    static const char *const types[] = {"bool",  "int32",  "int64",  "int96",
                                        "float", "double", "binary", "fixed"};
    static const char *const converted[] = {
        "string",  "map",       "map",       "list",    "enum",    "decimal", "date",    "time",
        "time",    "timestamp", "timestamp", "integer", "integer", "integer", "integer", "integer",
        "integer", "integer",   "integer",   "json",    "bson",    "interval"};
    static const char *const logical[] = {"unknown", "string",  "map",      "list",      "enum",
                                          "decimal", "date",    "time",     "timestamp", "unknown",
                                          "integer", "null",    "json",     "bson",      "uuid",
                                          "float16", "variant", "geometry", "geography"};
    const char *name = "unknown";
    iron__stored stored;
    int bits;

    if (is_integer(e, &stored, &bits)) {
        bool is_signed = stored == IRON_STORED_I32 || stored == IRON_STORED_I64;

        snprintf(to, room, "%sint%d", is_signed ? "" : "u", bits);
        return;
    }
    if (e->logical >= 0) {
        if ((size_t)e->logical < sizeof logical / sizeof logical[0])
            name = logical[e->logical];
    } else if (e->converted >= 0) {
        if ((size_t)e->converted < sizeof converted / sizeof converted[0])
            name = converted[e->converted];
    } else if (e->type >= 0 && (size_t)e->type < sizeof types / sizeof types[0]) {
        name = types[e->type];
    }
    snprintf(to, room, "%s", name);
}

static bool is_list(const iron__parquet_element *e) {
    return e->logical >= 0 ? e->logical == LOGICAL_LIST : e->converted == CONVERTED_LIST;
}

static bool is_map(const iron__parquet_element *e) {
    return e->logical >= 0
               ? e->logical == LOGICAL_MAP
               : e->converted == CONVERTED_MAP || e->converted == CONVERTED_MAP_KEY_VALUE;
}

static const char *group_name(const iron__parquet_element *e) {
    return is_list(e) ? "list" : is_map(e) ? "map" : "struct";
}

/* A repeated group with one field, in a list: by its name, an old writer's struct of one field
 * (Parquet's rules for backward compatibility). Its levels are those of a list. */
static bool is_tuple(const iron__parquet_element *list, const iron__parquet_element *e) {
    static const char suffix[] = "_tuple";
    size_t length = sizeof suffix - 1;

    if (e->name_bytes == 5 && memcmp(e->name, "array", 5) == 0)
        return true;
    return e->name_bytes == list->name_bytes + length &&
           memcmp(e->name, list->name, list->name_bytes) == 0 &&
           memcmp(e->name + list->name_bytes, suffix, length) == 0;
}

/* Describes a list: a group `e` whose only child is repeated. The child is the element itself, or a
 * group whose only field is the element. */
static void describe_list(const iron__parquet_element *e, iron__table_column *column,
                          iron__parquet_column *detail) {
    unsigned outer = e->repetition == REPETITION_OPTIONAL;
    const iron__parquet_element *element = e + 1;
    const char *wrap = "";
    unsigned inner = 0;
    char type[24];
    int bits;

    if (element->type < 0 && element->children == 1 && !is_list(element) && !is_map(element) &&
        element[1].repetition != REPETITION_REPEATED) {
        wrap = is_tuple(e, element) ? "struct<" : "";
        element++;
        inner = element->repetition == REPETITION_OPTIONAL;
    }
    if (element->type < 0) {
        snprintf(column->type, sizeof column->type, "list<%s>", group_name(element));
        return;
    }
    name_value(element, type, sizeof type);
    snprintf(column->type, sizeof column->type, "list<%s%s%s>", wrap, type, wrap[0] ? ">" : "");
    column->is_tokens = is_integer(element, &detail->stored, &bits);
    detail->type = element->type;
    detail->shape = (iron__parquet_shape){1, outer + 1 + inner, outer};
}

/* Describes the column that begins with element `e`. */
static void describe(const iron__parquet_element *e, iron__table_column *column,
                     iron__parquet_column *detail) {
    bool is_repeated = e->repetition == REPETITION_REPEATED;
    char type[24];
    int bits;

    if (e->type >= 0) {
        name_value(e, type, sizeof type);
        snprintf(column->type, sizeof column->type, is_repeated ? "list<%s>" : "%s", type);
        column->is_tokens = is_integer(e, &detail->stored, &bits);
        detail->type = e->type;
        detail->shape =
            is_repeated ? (iron__parquet_shape){1, 1, 0}
                        : (iron__parquet_shape){0, e->repetition == REPETITION_OPTIONAL, UINT_MAX};
    } else if (!is_repeated && is_list(e) && e->children == 1 &&
               e[1].repetition == REPETITION_REPEATED) {
        describe_list(e, column, detail);
    } else {
        snprintf(column->type, sizeof column->type, is_repeated ? "list<%s>" : "%s", group_name(e));
    }
}

/* A name for messages and for --column: control characters are replaced. */
static char *copy_name(const iron__parquet_element *e) {
    char *name = malloc(e->name_bytes + 1);

    for (size_t k = 0; name && k < e->name_bytes; k++)
        name[k] = (char)(e->name[k] < 0x20 || e->name[k] == 0x7F ? '?' : e->name[k]);
    if (name)
        name[e->name_bytes] = '\0';
    return name;
}

static iron_status list_columns(iron__parquet_footer *f, iron_error *err) {
    size_t top = f->elements[0].children, at = 1, leaf = 0;

    f->columns = calloc(top + 1, sizeof *f->columns);
    f->details = calloc(top + 1, sizeof *f->details);
    if (!f->columns || !f->details)
        return iron__no_memory(err, "the columns of a file");
    for (size_t k = 0; k < top; k++) {
        f->columns[k].name = copy_name(&f->elements[at]);
        if (!f->columns[k].name)
            return iron__no_memory(err, "the columns of a file");
        f->column_count++;
        f->details[k].leaf = leaf;
        describe(&f->elements[at], &f->columns[k], &f->details[k]);
        for (size_t open = 1; open > 0; at++) {
            leaf += f->elements[at].type >= 0;
            open += f->elements[at].children - 1;
        }
    }
    return IRON_OK;
}

iron_status iron__parquet_footer_read(iron__parquet_footer *f, iron_error *err) {
    thrift t = {.at = f->data, .end = f->data + f->bytes};
    thrift_field field = {0, THRIFT_STOP};
    bool has_rows = false;

    while (next_field(&t, &field)) {
        if (field.id == 2 || field.id == 4)
            *(field.id == 2 ? &f->schema : &f->groups) = t.at;
        if (field.id == 3) {
            f->rows = field_long(&t, &field);
            has_rows = true;
        } else {
            skip(&t, field.type, 0);
        }
    }
    if (!t.fault && (!f->schema || !f->groups || !has_rows))
        (void)fail(&t, "it has no schema, no row groups or no number of rows");
    if (t.fault)
        return refuse(f, &t, err);
    IRON_TRY(read_schema(f, err));
    return list_columns(f, err);
}

void iron__parquet_footer_clear(iron__parquet_footer *f) {
    iron__table_columns_free(f->columns, f->column_count);
    free(f->details);
    free(f->elements);
    free(f->data);
    *f = (iron__parquet_footer){.data = NULL};
}

/* Row groups. */

/* A chunk's metadata as they are in the footer. */
typedef struct chunk_meta {
    int type, codec;
    uint64_t values, bytes, data_at, dictionary_at;
    unsigned fields; /* a bit for each that was there */
    bool is_elsewhere, is_encrypted, is_of_column;
} chunk_meta;

#define CHUNK_FIELDS (1u << 1 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 7 | 1u << 9)

/* The path of a column in the schema begins with its name. */
static bool read_path(thrift *t, const thrift_field *f, const char *name) {
    size_t count = next_list(t, f, THRIFT_BINARY);
    bool is_same = false;

    for (size_t k = 0; k < count && !t->fault; k++) {
        thrift_field element = {0, THRIFT_BINARY};
        size_t bytes;
        const unsigned char *part = field_binary(t, &element, &bytes);

        if (k > 0 || !part || bytes != strlen(name))
            continue;
        is_same = true;
        for (size_t b = 0; b < bytes; b++) /* control characters of names are replaced */
            is_same = is_same && (part[b] == (unsigned char)name[b] || name[b] == '?');
    }
    return is_same;
}

static void read_meta(thrift *t, const char *name, chunk_meta *m) {
    thrift_field f = {0, THRIFT_STOP};

    while (next_field(t, &f)) {
        if (f.id > 0 && f.id < 32)
            m->fields |= 1u << f.id;
        if (f.id == 1)
            m->type = field_enum(t, &f);
        else if (f.id == 3)
            m->is_of_column = read_path(t, &f, name);
        else if (f.id == 4)
            m->codec = field_enum(t, &f);
        else if (f.id == 5)
            m->values = field_long(t, &f);
        else if (f.id == 7)
            m->bytes = field_long(t, &f);
        else if (f.id == 9)
            m->data_at = field_long(t, &f);
        else if (f.id == 11)
            m->dictionary_at = field_long(t, &f);
        else
            skip(t, f.type, 0);
    }
}

static void read_chunk(thrift *t, const char *name, chunk_meta *m) {
    thrift_field f = {0, THRIFT_STOP};

    *m = (chunk_meta){.type = -1};
    while (next_field(t, &f)) {
        m->is_elsewhere = m->is_elsewhere || f.id == 1;
        m->is_encrypted = m->is_encrypted || f.id == 8 || f.id == 9;
        if (f.id == 3 && field_is_struct(t, &f))
            read_meta(t, name, m);
        else if (f.id != 3)
            skip(t, f.type, 0);
    }
}

static iron_status find_codec(const iron__parquet_footer *f, int number, iron__codec *codec,
                              iron_error *err) {
    static const struct {
        const char *name;
        iron__codec codec;
        bool is_read;
    } codecs[] = {
        {"UNCOMPRESSED", IRON_CODEC_NONE, true}, {"SNAPPY", IRON_CODEC_SNAPPY, true},
        {"GZIP", IRON_CODEC_GZIP, true},         {"LZO", IRON_CODEC_NONE, false},
        {"BROTLI", IRON_CODEC_NONE, false},      {"LZ4 (the old one)", IRON_CODEC_NONE, false},
        {"ZSTD", IRON_CODEC_ZSTD, true},         {"LZ4_RAW", IRON_CODEC_LZ4_RAW, true},
    };

    IRON_FAIL_IF(number < 0 || (size_t)number >= sizeof codecs / sizeof codecs[0], err,
                 IRON_E_UNSUPPORTED,
                 "%.100s is compressed with Parquet codec %d, which is not known; write it with "
                 "ZSTD or SNAPPY",
                 f->name, number);
    IRON_FAIL_IF(!codecs[number].is_read, err, IRON_E_UNSUPPORTED,
                 "%.100s is compressed with %s, which is not read; write it with ZSTD, SNAPPY, "
                 "GZIP or LZ4_RAW",
                 f->name, codecs[number].name);
    *codec = codecs[number].codec;
    return IRON_OK;
}

/* Checks a chunk's metadata; `group` is the row group's number. */
static iron_status check_chunk(const iron__parquet_footer *f, size_t column, size_t group,
                               const chunk_meta *m, iron__parquet_chunk *c, iron_error *err) {
    const iron__parquet_column *detail = &f->details[column];
    const char *name = f->columns[column].name;

    IRON_FAIL_IF(
        m->is_encrypted, err, IRON_E_UNSUPPORTED,
        "%.100s: column %.60s is encrypted, which is not read; write it without encryption",
        f->name, name);
    IRON_FAIL_IF(m->is_elsewhere, err, IRON_E_UNSUPPORTED,
                 "%.100s: column %.60s is in another file, which is not read; give that file",
                 f->name, name);
    IRON_FAIL_IF((m->fields & CHUNK_FIELDS) != CHUNK_FIELDS || m->type != detail->type ||
                     !m->is_of_column,
                 err, IRON_E_FORMAT,
                 "%.100s: row group %zu does not describe column %.60s as the schema does; the "
                 "footer is damaged",
                 f->name, group, name);
    IRON_FAIL_IF(detail->shape.repetition_max ? m->values < c->rows : m->values != c->rows, err,
                 IRON_E_FORMAT,
                 "%.100s: row group %zu has %" PRIu64 " rows, but %" PRIu64
                 " values in column %.60s; the footer is damaged",
                 f->name, group, c->rows, m->values, name);
    IRON_TRY(find_codec(f, m->codec, &c->codec, err));
    c->values = m->values;
    c->at = m->dictionary_at > 0 && m->dictionary_at < m->data_at ? m->dictionary_at : m->data_at;
    if (c->values == 0)
        return IRON_OK;
    IRON_FAIL_IF(c->at < 4 || c->at > f->at || m->bytes > f->at - c->at, err, IRON_E_FORMAT,
                 "%.100s: column %.60s of row group %zu is said to have %" PRIu64
                 " bytes from byte %" PRIu64 " on, but the footer begins at byte %" PRIu64
                 "; it is damaged",
                 f->name, name, group, m->bytes, c->at, f->at);
    c->end = c->at + m->bytes;
    return IRON_OK;
}

/* Reads one row group. */
static iron_status read_group(const iron__parquet_footer *f, thrift *t, size_t column, size_t group,
                              iron__parquet_chunk *c, iron_error *err) {
    thrift_field field = {0, THRIFT_STOP};
    bool has_columns = false, has_rows = false;
    chunk_meta meta = {.type = -1};

    while (next_field(t, &field)) {
        if (field.id == 3) {
            c->rows = field_long(t, &field);
            has_rows = true;
        } else if (field.id == 1 && !has_columns) {
            size_t count = next_list(t, &field, THRIFT_STRUCT);

            if (!t->fault && count != f->leaf_count)
                (void)fail(t, "a row group has not as many columns as the schema");
            for (size_t k = 0; k < count && !t->fault; k++)
                if (k == f->details[column].leaf)
                    read_chunk(t, f->columns[column].name, &meta);
                else
                    skip(t, THRIFT_STRUCT, 0);
            has_columns = true;
        } else {
            skip(t, field.type, 0);
        }
    }
    if (!t->fault && (!has_columns || !has_rows))
        (void)fail(t, "a row group has no columns or no number of rows");
    return t->fault ? refuse(f, t, err) : check_chunk(f, column, group, &meta, c, err);
}

iron_status iron__parquet_chunks_read(const iron__parquet_footer *f, size_t column,
                                      iron__parquet_chunk **out, size_t *count, iron_error *err) {
    thrift t = {.at = f->groups, .end = f->data + f->bytes};
    thrift_field list = {4, THRIFT_LIST};
    uint64_t rows = 0, values = 0;
    iron__parquet_chunk *chunks;

    *count = next_list(&t, &list, THRIFT_STRUCT);
    if (t.fault)
        return refuse(f, &t, err);
    *out = chunks = calloc(*count + 1, sizeof *chunks);
    if (!chunks)
        return iron__no_memory(err, "the row groups of a file");
    for (size_t k = 0; k < *count; k++) {
        chunks[k].first_row = rows;
        IRON_TRY(read_group(f, &t, column, k, &chunks[k], err));
        IRON_FAIL_IF(
            __builtin_add_overflow(rows, chunks[k].rows, &rows) ||
                __builtin_add_overflow(values, chunks[k].values, &values) || values > INT64_MAX,
            err, IRON_E_FORMAT, "%.100s: its row groups have more than 2^63 values", f->name);
    }
    IRON_FAIL_IF(rows != f->rows, err, IRON_E_FORMAT,
                 "%.100s: its footer says %" PRIu64 " rows, but its row groups have %" PRIu64
                 "; it is damaged",
                 f->name, f->rows, rows);
    return IRON_OK;
}

/* Pages. */

/* Of a data page of version 1, or of a dictionary, which has no levels. */
static void read_data_header(thrift *t, iron__parquet_page *p, bool has_levels) {
    unsigned found = 0, needed = has_levels ? 0x1E : 6;
    thrift_field f = {0, THRIFT_STOP};

    while (next_field(t, &f)) {
        if (f.id > 0 && f.id <= 4)
            found |= 1u << f.id;
        if (f.id == 1)
            p->values = field_size(t, &f);
        else if (f.id == 2)
            p->encoding = field_enum(t, &f);
        else if (f.id == 3 && has_levels)
            p->definition_encoding = field_enum(t, &f);
        else if (f.id == 4 && has_levels)
            p->repetition_encoding = field_enum(t, &f);
        else
            skip(t, f.type, 0);
    }
    if (!t->fault && (found & needed) != needed)
        (void)fail(t, has_levels ? "the header lacks the number of values or an encoding"
                                 : "the header lacks the number of values or the encoding");
}

static void read_data_header_v2(thrift *t, iron__parquet_page *p) {
    thrift_field f = {0, THRIFT_STOP};
    unsigned found = 0;

    p->definition_encoding = p->repetition_encoding = IRON_PARQUET_RLE;
    while (next_field(t, &f)) {
        if (f.id > 0 && f.id <= 6)
            found |= 1u << f.id;
        if (f.id == 1)
            p->values = field_size(t, &f);
        else if (f.id == 4)
            p->encoding = field_enum(t, &f);
        else if (f.id == 5)
            p->definition_bytes = field_size(t, &f);
        else if (f.id == 6)
            p->repetition_bytes = field_size(t, &f);
        else if (f.id == 7)
            p->is_compressed = field_bool(t, &f);
        else
            skip(t, f.type, 0);
    }
    if (!t->fault && (found & 0x72) != 0x72)
        (void)fail(t, "the header lacks the number of values, the encoding or a length");
}

iron__parquet_parse iron__parquet_page_parse(const unsigned char *from, size_t count,
                                             iron__parquet_page *out, size_t *used,
                                             const char **why) {
    thrift t = {.at = from, .end = from + count};
    thrift_field f = {0, THRIFT_STOP};
    unsigned found = 0, needed;

    *out = (iron__parquet_page){.type = -1, .encoding = -1, .is_compressed = true};
    while (next_field(&t, &f)) {
        if (f.id > 0 && f.id <= 8)
            found |= 1u << f.id;
        if (f.id == 1)
            out->type = (int)field_integer(&t, &f, 0, INT32_MAX);
        else if (f.id == 2)
            out->size = field_size(&t, &f);
        else if (f.id == 3)
            out->stored = field_size(&t, &f);
        else if (f.id == 4)
            out->crc = (uint32_t)field_integer(&t, &f, INT32_MIN, INT32_MAX);
        else if ((f.id == 5 || f.id == 7) && field_is_struct(&t, &f))
            read_data_header(&t, out, f.id == 5);
        else if (f.id == 8 && field_is_struct(&t, &f))
            read_data_header_v2(&t, out);
        else
            skip(&t, f.type, 0);
    }
    out->has_crc = found & 1u << 4;
    needed = out->type == IRON_PARQUET_DATA         ? 1u << 5
             : out->type == IRON_PARQUET_DICTIONARY ? 1u << 7
             : out->type == IRON_PARQUET_DATA_V2    ? 1u << 8
                                                    : 0;
    /* a header of another type may only be there if it is not used */
    if (!t.fault && ((found & 0xE) != 0xE || (found & (1u << 5 | 1u << 7 | 1u << 8)) != needed))
        (void)fail(&t, "the header lacks its type, a size or what belongs to its type");
    *used = (size_t)(t.at - from);
    *why = t.fault;
    return !t.fault ? IRON_PARQUET_PARSED : t.is_short ? IRON_PARQUET_SHORT : IRON_PARQUET_BROKEN;
}
