/* SPDX-License-Identifier: MIT */
/*
 * parquet.c: Parquet files: a column of integers, or of lists of integers, in pages.
 *
 * A column of a row group is a chunk: a sequence of pages, the first of which may be a dictionary.
 * A page has repetition levels (0: a row begins), definition levels (the maximum: there is a value;
 * less: an empty list or a null) and values.
 *
 * Examining a file reads its footer and the headers of all pages of the chosen column. Of flat
 * columns that is all; of lists the levels are counted, too, by several threads if there is much to
 * read, so that the number of tokens is exact before the first is read. Consecutive pages of a
 * chunk form a block of about IRON_TABLE_BLOCK_TOKENS tokens. Large pages whose values lie in the
 * file as they are, are direct blocks. Decoding a block reads and checks everything again.
 *
 * Checksums of pages are checked whenever their values are decoded; so a page with a checksum is
 * never direct. Nulls are refused when they are seen: at the latest when they are decoded.
 *
 * Nothing is read past the given bytes but IRON_SLACK, whatever the data say, and what was read
 * there is never used.
 */
#include "core/array.h"
#include "core/cpu.h"
#include "core/fail.h"
#include "core/number.h"
#include "core/thread_pool.h"
#include "formats/format.h"
#include "io/checksum.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC       "PAR1"
#define MAGIC_BYTES 4u
#define TAIL_BYTES  8u /* the footer's length and the magic */

#define FOOTER_BYTES_MAX ((uint64_t)1 << 30)

/* Page headers are read together with what follows them, in the expectation that it is needed. */
#define HEADER_BYTES     ((size_t)4 << 10)
#define HEADER_BYTES_MAX ((size_t)1 << 20)

/* Levels of a page: so many rows may begin in it, each with 8 bytes for its place. */
#define PAGE_VALUES_MAX (IRON_TABLE_PART_BYTES_MAX / 8)

/* Values of a direct block, and the pages of a block that is decoded, in the file. */
#define DIRECT_BYTES_MIN ((uint64_t)64 << 10)
#define PART_BYTES       ((uint64_t)16 << 20)

/* Larger buffers are not kept for the next block. */
#define KEPT_BYTES_MAX ((size_t)64 << 20)

/* Less than this is read by one thread. */
#define THREAD_BYTES   ((uint64_t)32 << 20)
#define THREADS_MAX    16u
#define LEVELS_AT_ONCE ((size_t)64 << 10) /* bytes of a page that are decompressed for them */

/* A number of 7 bits a byte: at most 10 bytes. Returns false if it is cut off
 * or longer. */
static bool read_varint(const unsigned char **at, const unsigned char *end, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        unsigned byte = *(*at)++;

        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return shift < 63 || byte <= 1;
    }
    return false;
}

static uint64_t zigzag(uint64_t value) { return value >> 1 ^ (0 - (value & 1)); }

/* Thrift's compact protocol, in which metadata are written: the footer, with the schema and the row
 * groups, and the headers of pages.
 *
 * Fields that are not needed are skipped, whatever they are; those that are needed must have the
 * type and the range of Parquet's definition. The first fault ends the parsing: from then on every
 * function returns zero, so that faults are looked at in a few places only.
 *
 * The footer is read in two steps: first the schema, from which the column is chosen; then the row
 * groups, of which only the chosen column is kept. */

/* Structs in structs: Parquet has 6. */
#define DEPTH_MAX 24u

enum { THRIFT_STOP, THRIFT_TRUE, THRIFT_FALSE, THRIFT_I8, THRIFT_I16, THRIFT_I32, THRIFT_I64 };
enum { THRIFT_DOUBLE = 7, THRIFT_BINARY, THRIFT_LIST, THRIFT_SET, THRIFT_MAP, THRIFT_STRUCT };
enum { THRIFT_UUID = 13 };

typedef struct thrift {
    const unsigned char *at, *end;
    const char *fault; /* NULL: none so far */
    bool is_short;     /* the fault is that the data ended */
} thrift;

typedef struct thrift_field {
    int id; /* 0 before the first */
    unsigned type;
    unsigned found; /* bit k: a field of number k was there, 1 to 31 */
} thrift_field;

typedef struct text {
    const unsigned char *at; /* NULL: none */
    size_t bytes;
} text;

static uint64_t thrift_fail(thrift *t, const char *fault) {
    if (!t->fault)
        t->fault = fault;
    t->end = t->at; /* nothing more is read */
    return 0;
}

static uint64_t thrift_ends(thrift *t, const char *fault) {
    t->is_short = t->is_short || !t->fault;
    return thrift_fail(t, fault);
}

static text next_bytes(thrift *t, uint64_t count) {
    text bytes = {t->at, (size_t)count};

    if (count > (uint64_t)(t->end - t->at)) {
        (void)thrift_ends(t, "it ends too early");
        return (text){NULL, 0};
    }
    t->at += count;
    return bytes;
}

static unsigned next_byte(thrift *t) {
    text byte = next_bytes(t, 1);

    return byte.at ? *byte.at : 0;
}

static uint64_t next_varint(thrift *t) {
    const unsigned char *start = t->at;
    uint64_t value;

    if (read_varint(&t->at, t->end, &value))
        return value;
    return t->at - start < 10 ? thrift_ends(t, "it ends too early")
                              : thrift_fail(t, "a number is too long");
}

static int64_t next_signed(thrift *t) { return (int64_t)zigzag(next_varint(t)); }

/* False: the struct has ended, or a fault. */
static bool next_field(thrift *t, thrift_field *f) {
    unsigned byte = next_byte(t), delta = byte >> 4;
    int64_t id;

    f->type = byte & 15;
    if (t->fault || byte == THRIFT_STOP)
        return false;
    id = delta ? f->id + (int64_t)delta : next_signed(t);
    if (f->type == THRIFT_STOP || f->type > THRIFT_UUID || id < INT16_MIN || id > INT16_MAX)
        (void)thrift_fail(t, "a field has no valid type or number");
    f->id = (int)id;
    f->found |= id > 0 && id < 32 ? 1u << id : 0;
    return !t->fault;
}

/* Begins a list: the number of its elements. Each has at least one byte. */
static size_t next_list(thrift *t, unsigned field_type, unsigned type) {
    unsigned byte;
    uint64_t count;

    if (field_type != THRIFT_LIST)
        return (size_t)thrift_fail(t, "a field is not the list that it must be");
    byte = next_byte(t);
    count = byte >> 4 == 15 ? next_varint(t) : byte >> 4;
    if (count > 0 && (byte & 15) != type)
        return (size_t)thrift_fail(t, "a list has elements of another type");
    if (count > (uint64_t)(t->end - t->at))
        return (size_t)thrift_fail(t, "a list has more elements than bytes");
    return (size_t)count;
}

/* Skips a value. */
static void skip(thrift *t, unsigned type, unsigned depth) {
    unsigned byte = 0, element;
    thrift_field f = {0};
    uint64_t count;

    if (depth == DEPTH_MAX) {
        (void)thrift_fail(t, "it is nested too deeply");
        return;
    }
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        break;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64:
        (void)next_varint(t);
        break;
    case THRIFT_I8:
    case THRIFT_DOUBLE:
    case THRIFT_UUID:
        (void)next_bytes(t, type == THRIFT_I8 ? 1 : type == THRIFT_DOUBLE ? 8 : 16);
        break;
    case THRIFT_BINARY:
        (void)next_bytes(t, next_varint(t));
        break;
    case THRIFT_STRUCT:
        while (next_field(t, &f))
            skip(t, f.type, depth + 1);
        break;
    case THRIFT_LIST:
    case THRIFT_SET:
    case THRIFT_MAP:
        count = type == THRIFT_MAP ? next_varint(t) : 0;
        if (type != THRIFT_MAP || count > 0)
            byte = next_byte(t); /* two types, or a short length and a type */
        if (type != THRIFT_MAP)
            count = byte >> 4 == 15 ? next_varint(t) : byte >> 4;
        if (count > (uint64_t)(t->end - t->at))
            (void)thrift_ends(t, "a list has more elements than bytes");
        for (uint64_t k = 0; k < count && !t->fault; k++)
            for (unsigned part = type == THRIFT_MAP && byte >> 4 ? 0 : 1; part < 2; part++) {
                element = part == 0 ? byte >> 4 : byte & 15;
                if (element == THRIFT_TRUE || element == THRIFT_FALSE)
                    (void)next_byte(t); /* has a byte here, but not as a field */
                else
                    skip(t, element, depth + 1);
            }
        break;
    default:
        (void)thrift_fail(t, "a value has no valid type");
    }
}

/* What a needed field is, and where it goes. */
typedef enum field_kind {
    FIELD_ENUM,       /* int */
    FIELD_SIZE,       /* int or uint32_t: 0 to 2^31-1 */
    FIELD_REPETITION, /* int: 0 to 2 */
    FIELD_LONG,       /* uint64_t: 0 to 2^63-1 */
    FIELD_BYTE,       /* int; a field of another type is skipped */
    FIELD_BOOL,
    FIELD_TEXT,
    FIELD_PATH,   /* a list of texts: the first of them */
    FIELD_PLACE,  /* where the value begins; it is skipped */
    FIELD_STRUCT, /* unsigned: which fields were found in it; they go into the same struct */
    FIELD_MEMBER, /* the same, of a union; a field of another type is skipped */
    FIELD_UNION   /* int: the number of its member */
} field_kind;

typedef struct struct_rules {
    unsigned needed;   /* fields that must be there, a bit for each; */
    const char *lacks; /* the fault otherwise */
    struct field_rule {
        int id; /* 0: no more rules */
        field_kind kind;
        size_t at;
        const struct struct_rules *inside;
    } fields[8];
} struct_rules;

static thrift_field read_struct(thrift *t, const struct_rules *rules, void *to);

static int64_t next_integer(thrift *t, unsigned type, field_kind kind) {
    static const struct {
        int64_t least, most;
    } ranges[] = {[FIELD_ENUM] = {INT32_MIN, INT32_MAX},
                  [FIELD_SIZE] = {0, INT32_MAX},
                  [FIELD_REPETITION] = {0, 2},
                  [FIELD_LONG] = {0, INT64_MAX}};
    int64_t value;

    if (type < THRIFT_I16 || type > THRIFT_I64)
        return (int64_t)thrift_fail(t, "a field is not the integer that it must be");
    value = next_signed(t);
    if (value < ranges[kind].least || value > ranges[kind].most)
        return (int64_t)thrift_fail(t, "a number is out of range");
    return value;
}

static void read_field(thrift *t, unsigned type, const struct field_rule *rule, void *to) {
    void *at = (char *)to + rule->at;
    thrift_field last;

    switch (rule->kind) {
    case FIELD_ENUM:
    case FIELD_SIZE:
    case FIELD_REPETITION:
        *(int *)at = (int)next_integer(t, type, rule->kind);
        break;
    case FIELD_LONG:
        *(uint64_t *)at = (uint64_t)next_integer(t, type, rule->kind);
        break;
    case FIELD_BYTE:
        if (type == THRIFT_I8)
            *(int *)at = (int)next_byte(t);
        else
            skip(t, type, 0);
        break;
    case FIELD_BOOL:
        if (type != THRIFT_TRUE && type != THRIFT_FALSE)
            (void)thrift_fail(t, "a field is not the truth value that it must be");
        *(bool *)at = type == THRIFT_TRUE;
        break;
    case FIELD_TEXT:
        if (type != THRIFT_BINARY)
            (void)thrift_fail(t, "a field is not the string that it must be");
        else
            *(text *)at = next_bytes(t, next_varint(t));
        break;
    case FIELD_PATH:
        *(text *)at = (text){NULL, 0};
        for (size_t k = 0, count = next_list(t, type, THRIFT_BINARY); k < count && !t->fault; k++) {
            text part = next_bytes(t, next_varint(t));

            *(text *)at = k == 0 ? part : *(text *)at;
        }
        break;
    case FIELD_PLACE:
        *(const unsigned char **)at = t->at;
        skip(t, type, 0);
        break;
    case FIELD_STRUCT:
    case FIELD_MEMBER:
    case FIELD_UNION:
        if (type != THRIFT_STRUCT && rule->kind == FIELD_MEMBER) {
            skip(t, type, 0);
            break;
        }
        if (type != THRIFT_STRUCT)
            (void)thrift_fail(t, "a field is not the struct that it must be");
        last = read_struct(t, rule->inside, to);
        if (rule->kind == FIELD_UNION)
            *(int *)at = last.id;
        else
            *(unsigned *)at |= last.found;
    }
}

/* Reads a struct by its rules. Returns its last field, with all that were found. */
static thrift_field read_struct(thrift *t, const struct_rules *rules, void *to) {
    thrift_field f = {0};

    while (next_field(t, &f)) {
        const struct field_rule *rule = rules->fields;

        while (rule->id && rule->id != f.id)
            rule++;
        if (rule->id)
            read_field(t, f.type, rule, to);
        else
            skip(t, f.type, 0);
    }
    if ((f.found & rules->needed) != rules->needed)
        (void)thrift_fail(t, rules->lacks);
    return f;
}

/* The schema. */

/* What the levels of a column mean. */
typedef struct level_shape {
    unsigned repetition_max; /* 1: lists; 0: one value in each row */
    unsigned definition_max; /* of a value: 0 to 3 */
    unsigned empty;          /* of an empty list; UINT_MAX: not possible */
} level_shape;

/* One element of the schema, a tree whose elements follow each other depth first. */
typedef struct schema_element {
    text name;
    int type;       /* -1: a group */
    int repetition; /* -1: not given */
    int converted;  /* -1: none */
    int logical;    /* -1: none */
    int bits;       /* of a logical integer */
    bool is_signed;
    unsigned found; /* fields of a logical integer */
    uint32_t children;
} schema_element;

/* A top-level column that can be read. */
typedef struct column_detail {
    level_shape shape;
    iron__stored stored;
    int type;    /* INT32 or INT64 */
    size_t leaf; /* its place among the columns of a row group */
} column_detail;

typedef struct file_footer {
    const char *name; /* of the file */
    uint64_t at;      /* where it begins in the file */
    unsigned char *data;
    size_t bytes;
    const unsigned char *schema, *groups; /* in data: where these lists begin, or NULL */
    uint64_t rows;
    schema_element *elements;
    size_t leaf_count;
    iron__table_column *columns;
    column_detail *details; /* of the columns that are tokens */
    size_t column_count;
} file_footer;

/* Consecutive pages of a chunk: a block of the table. */
typedef struct part {
    uint64_t at, bytes; /* from the first page's header on */
    uint64_t values_at; /* direct: the first value; else 0 */
    uint64_t values, tokens, rows;
    size_t chunk;
} part;

/* The chosen column of one row group. */
typedef struct column_chunk {
    uint64_t at, end; /* bytes of its pages */
    uint64_t values;  /* levels: values, and rows without any */
    uint64_t rows, first_row;
    iron__codec codec;
    uint64_t dictionary_at; /* its page; 0: none was found */
    part *parts;            /* while it is examined */
    size_t part_count, part_capacity;
} column_chunk;

/* The error for a fault in the footer. */
static iron_status refuse(const file_footer *f, const thrift *t, iron_error *err) {
    IRON_FAIL(err, IRON_E_FORMAT, "%.100s: its Parquet footer is damaged at byte %" PRIu64 ": %s",
              f->name, f->at + (uint64_t)(t->at - f->data), t->fault);
}

enum { TYPE_INT32 = 1, TYPE_INT64 = 2 };

enum { REPETITION_REQUIRED = 0, REPETITION_OPTIONAL = 1, REPETITION_REPEATED = 2 };

enum { CONVERTED_MAP = 1, CONVERTED_MAP_KEY_VALUE = 2, CONVERTED_LIST = 3, CONVERTED_UINT_8 = 11 };

/* Numbers of the union LogicalType; any other is a type that we do not know. */
enum { LOGICAL_MAP = 2, LOGICAL_LIST = 3, LOGICAL_INTEGER = 10 };

#define AT(member) offsetof(schema_element, member)
static const struct_rules integer_rules = {
    .fields = {{1, FIELD_BYTE, AT(bits), NULL}, {2, FIELD_BOOL, AT(is_signed), NULL}}};
static const struct_rules logical_rules = {
    .fields = {{LOGICAL_INTEGER, FIELD_MEMBER, AT(found), &integer_rules}}};
static const struct_rules element_rules = {1u << 4,
                                           "an element of the schema has no name",
                                           {{1, FIELD_SIZE, AT(type), NULL},
                                            {3, FIELD_REPETITION, AT(repetition), NULL},
                                            {4, FIELD_TEXT, AT(name), NULL},
                                            {5, FIELD_SIZE, AT(children), NULL},
                                            {6, FIELD_ENUM, AT(converted), NULL},
                                            {10, FIELD_UNION, AT(logical), &logical_rules}}};
#undef AT

static iron_status read_schema(file_footer *f, iron_error *err) {
    static const char not_a_tree[] = "the elements of the schema are not one tree";
    thrift t = {.at = f->schema, .end = f->data + f->bytes};
    size_t count = next_list(&t, THRIFT_LIST, THRIFT_STRUCT), open = 1;

    if (count > 0)
        f->elements = calloc(count, sizeof *f->elements);
    IRON_FAIL_IF(count > 0 && !f->elements, err, IRON_E_NOMEM,
                 "out of memory for a schema of %zu elements", count);
    for (size_t k = 0; k < count && !t.fault; k++) {
        schema_element *e = &f->elements[k];

        *e = (schema_element){.type = -1, .repetition = -1, .converted = -1, .logical = -1};
        (void)read_struct(&t, &element_rules, e);
        if (e->type >= 0 && e->children > 0)
            (void)thrift_fail(&t, "an element of the schema is a value and a group");
        if (open == 0 || e->children > count)
            (void)thrift_fail(&t, not_a_tree);
        open += e->children - (size_t)1;
        f->leaf_count += e->type >= 0;
        if (k > 0 && e->repetition < 0)
            (void)thrift_fail(
                &t, "an element of the schema is neither required, optional nor repeated");
    }
    if (!t.fault && (open != 0 || f->elements[0].type >= 0))
        (void)thrift_fail(&t, not_a_tree);
    return t.fault ? refuse(f, &t, err) : IRON_OK;
}

/* Columns. */

/* The integers of an element, if it is a column of those: false for dates, decimals and the like.
 */
static bool is_integer(const schema_element *e, iron__stored *stored, int *bits) {
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
static void name_value(const schema_element *e, char *to, size_t room) {
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

static bool is_list(const schema_element *e) {
    return e->logical >= 0 ? e->logical == LOGICAL_LIST : e->converted == CONVERTED_LIST;
}

static bool is_map(const schema_element *e) {
    return e->logical >= 0
               ? e->logical == LOGICAL_MAP
               : e->converted == CONVERTED_MAP || e->converted == CONVERTED_MAP_KEY_VALUE;
}

/* A repeated group with one field, in a list: by its name, an old writer's struct of one field
 * (Parquet's rules for backward compatibility). Its levels are those of a list. */
static bool is_tuple(const schema_element *list, const schema_element *e) {
    static const char suffix[] = "_tuple";
    size_t length = sizeof suffix - 1, own = list->name.bytes;

    if (e->name.bytes == 5 && memcmp(e->name.at, "array", 5) == 0)
        return true;
    return e->name.bytes == own + length && memcmp(e->name.at, list->name.at, own) == 0 &&
           memcmp(e->name.at + own, suffix, length) == 0;
}

/* Describes the column that begins with element `e`: a value; a repeated value; or a list, which is
 * a group whose only child is repeated. This child is the element itself, or a group whose only
 * field is the element. */
static void describe(const schema_element *e, iron__table_column *column, column_detail *detail) {
    bool is_repeated = e->repetition == REPETITION_REPEATED, is_array = is_repeated;
    unsigned optional = e->repetition == REPETITION_OPTIONAL;
    const char *wrap = "";
    char type[24];
    int bits;

    detail->shape = is_repeated ? (level_shape){1, 1, 0} : (level_shape){0, optional, UINT_MAX};
    if (e->type < 0 && !is_repeated && is_list(e) && e->children == 1 &&
        e[1].repetition == REPETITION_REPEATED) {
        const schema_element *list = e++;

        is_array = true;
        detail->shape = (level_shape){1, optional + 1, optional};
        if (e->type < 0 && e->children == 1 && !is_list(e) && !is_map(e) &&
            e[1].repetition != REPETITION_REPEATED) {
            wrap = is_tuple(list, e) ? "struct<" : "";
            e++;
            detail->shape.definition_max += e->repetition == REPETITION_OPTIONAL;
        }
    }
    if (e->type >= 0) {
        name_value(e, type, sizeof type);
        column->is_tokens = is_integer(e, &detail->stored, &bits);
        detail->type = e->type;
    } else {
        wrap = "";
        snprintf(type, sizeof type, "%s", is_list(e) ? "list" : is_map(e) ? "map" : "struct");
    }
    snprintf(column->type, sizeof column->type, is_array ? "list<%s%s%s>" : "%s%s%s", wrap, type,
             wrap[0] ? ">" : "");
}

static iron_status parse_footer(file_footer *f, iron_error *err) {
    static const struct_rules rules = {1u << 2 | 1u << 3 | 1u << 4,
                                       "it has no schema, no row groups or no number of rows",
                                       {{2, FIELD_PLACE, offsetof(file_footer, schema), NULL},
                                        {3, FIELD_LONG, offsetof(file_footer, rows), NULL},
                                        {4, FIELD_PLACE, offsetof(file_footer, groups), NULL}}};
    thrift t = {.at = f->data, .end = f->data + f->bytes};
    size_t top, at = 1, leaf = 0;

    (void)read_struct(&t, &rules, f);
    if (t.fault)
        return refuse(f, &t, err);
    IRON_TRY(read_schema(f, err));
    /* read_schema has set it: NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    top = f->elements[0].children;
    IRON_TRY(IRON_NEW(&f->columns, top, f->name, err));
    IRON_TRY(IRON_NEW(&f->details, top, f->name, err));
    for (size_t k = 0; k < top; k++) {
        text from = f->elements[at].name;
        char *name;

        IRON_TRY(IRON_NEW(&name, from.bytes + 1, f->name, err));
        f->columns[f->column_count++].name = name;
        for (size_t b = 0; b < from.bytes; b++) /* for messages and --column */
            name[b] = (char)(from.at[b] < 0x20 || from.at[b] == 0x7F ? '?' : from.at[b]);
        f->details[k].leaf = leaf;
        describe(&f->elements[at], &f->columns[k], &f->details[k]);
        for (size_t open = 1; open > 0; at++) {
            leaf += f->elements[at].type >= 0;
            open += f->elements[at].children - (size_t)1;
        }
    }
    return IRON_OK;
}

/* Row groups. */

/* Fields that the metadata of a chunk must have. */
#define CHUNK_FIELDS (1u << 1 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 7 | 1u << 9)

/* A chunk's metadata as they are in the footer. */
typedef struct chunk_meta {
    int type, codec;
    uint64_t values, bytes, data_at, dictionary_at;
    text column;    /* the path of the column in the schema begins with its name */
    unsigned found; /* fields, as in thrift_field */
} chunk_meta;

#define AT(member) offsetof(chunk_meta, member)
static const struct_rules meta_rules = {.fields = {{1, FIELD_ENUM, AT(type), NULL},
                                                   {3, FIELD_PATH, AT(column), NULL},
                                                   {4, FIELD_ENUM, AT(codec), NULL},
                                                   {5, FIELD_LONG, AT(values), NULL},
                                                   {7, FIELD_LONG, AT(bytes), NULL},
                                                   {9, FIELD_LONG, AT(data_at), NULL},
                                                   {11, FIELD_LONG, AT(dictionary_at), NULL}}};
static const struct_rules chunk_rules = {.fields = {{3, FIELD_STRUCT, AT(found), &meta_rules}}};
#undef AT

/* Whether this is the name, in which control characters are replaced. */
static bool is_name(text t, const char *name) {
    bool is_same = t.at && t.bytes == strlen(name);

    for (size_t b = 0; is_same && b < t.bytes; b++)
        is_same = t.at[b] == (unsigned char)name[b] || name[b] == '?';
    return is_same;
}

static iron_status find_codec(const file_footer *f, int number, iron__codec *codec,
                              iron_error *err) {
    static const struct {
        const char *name;
        iron__codec codec; /* NONE, but for the first: it is not read */
    } codecs[] = {{"UNCOMPRESSED", IRON_CODEC_NONE}, {"SNAPPY", IRON_CODEC_SNAPPY},
                  {"GZIP", IRON_CODEC_GZIP},         {"LZO", IRON_CODEC_NONE},
                  {"BROTLI", IRON_CODEC_NONE},       {"LZ4 (the old one)", IRON_CODEC_NONE},
                  {"ZSTD", IRON_CODEC_ZSTD},         {"LZ4_RAW", IRON_CODEC_LZ4_RAW}};

    if (number < 0 || (size_t)number >= sizeof codecs / sizeof codecs[0])
        IRON_FAIL(err, IRON_E_UNSUPPORTED,
                  "%.100s is compressed with Parquet codec %d, which is not known; write it with "
                  "ZSTD or SNAPPY",
                  f->name, number);
    *codec = codecs[number].codec;
    IRON_FAIL_IF(number != 0 && *codec == IRON_CODEC_NONE, err, IRON_E_UNSUPPORTED,
                 "%.100s is compressed with %s, which is not read; write it with ZSTD, SNAPPY, "
                 "GZIP or LZ4_RAW",
                 f->name, codecs[number].name);
    return IRON_OK;
}

/* Checks a chunk's metadata; `found`: the fields of the chunk, `group`: the row group's number. */
static iron_status check_chunk(const file_footer *f, size_t column, size_t group, unsigned found,
                               const chunk_meta *m, column_chunk *c, iron_error *err) {
    const column_detail *detail = &f->details[column];
    const char *name = f->columns[column].name;

    IRON_FAIL_IF(
        found & (1u << 8 | 1u << 9), err, IRON_E_UNSUPPORTED,
        "%.100s: column %.60s is encrypted, which is not read; write it without encryption",
        f->name, name);
    IRON_FAIL_IF(found & 1u << 1, err, IRON_E_UNSUPPORTED,
                 "%.100s: column %.60s is in another file, which is not read; give that file",
                 f->name, name);
    IRON_FAIL_IF((m->found & CHUNK_FIELDS) != CHUNK_FIELDS || m->type != detail->type ||
                     !is_name(m->column, name),
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
static iron_status read_group(const file_footer *f, thrift *t, size_t column, size_t group,
                              column_chunk *c, iron_error *err) {
    thrift_field field = {0};
    chunk_meta meta = {.type = -1};
    bool has_columns = false;
    unsigned found = 0;

    while (next_field(t, &field)) {
        if (field.id == 3) {
            c->rows = (uint64_t)next_integer(t, field.type, FIELD_LONG);
        } else if (field.id == 1 && !has_columns) {
            size_t count = next_list(t, field.type, THRIFT_STRUCT);

            if (!t->fault && count != f->leaf_count)
                (void)thrift_fail(t, "a row group has not as many columns as the schema");
            for (size_t k = 0; k < count && !t->fault; k++)
                if (k == f->details[column].leaf)
                    found = read_struct(t, &chunk_rules, &meta).found;
                else
                    skip(t, THRIFT_STRUCT, 0);
            has_columns = true;
        } else {
            skip(t, field.type, 0);
        }
    }
    if ((field.found & (1u << 1 | 1u << 3)) != (1u << 1 | 1u << 3))
        (void)thrift_fail(t, "a row group has no columns or no number of rows");
    return t->fault ? refuse(f, t, err) : check_chunk(f, column, group, found, &meta, c, err);
}

static iron_status list_chunks(const file_footer *f, size_t column, column_chunk **out,
                               size_t *count, iron_error *err) {
    thrift t = {.at = f->groups, .end = f->data + f->bytes};
    uint64_t rows = 0, values = 0;
    column_chunk *chunks;

    *count = next_list(&t, THRIFT_LIST, THRIFT_STRUCT);
    if (t.fault)
        return refuse(f, &t, err);
    IRON_TRY(IRON_NEW(out, *count, f->name, err));
    chunks = *out;
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

/* Page headers. */

enum { PAGE_DATA = 0, PAGE_INDEX = 1, PAGE_DICTIONARY = 2, PAGE_DATA_V2 = 3 };

enum { ENCODING_PLAIN = 0, ENCODING_PLAIN_DICTIONARY = 2, ENCODING_RLE = 3, ENCODING_DELTA = 5 };
enum { ENCODING_RLE_DICTIONARY = 8, ENCODING_BYTE_STREAM_SPLIT = 9 };

typedef struct page_header {
    uint64_t at, body;     /* bytes of the file: the header, and what follows it */
    int type;              /* of those above, or one that is not known */
    uint32_t size, stored; /* bytes of the body when decompressed, and in the file */
    bool has_crc;
    uint32_t crc;
    uint32_t values;
    int encoding, definition_encoding, repetition_encoding;
    uint32_t definition_bytes, repetition_bytes; /* version 2 */
    bool is_compressed;                          /* version 2; true otherwise */
    unsigned found;                              /* fields of what belongs to the type */
} page_header;

static const char incomplete[] = "the header lacks its type, a size or what belongs to its type";

#define AT(member) offsetof(page_header, member)
static const struct_rules data_rules = {0x1E,
                                        "the header lacks the number of values or an encoding",
                                        {{1, FIELD_SIZE, AT(values), NULL},
                                         {2, FIELD_ENUM, AT(encoding), NULL},
                                         {3, FIELD_ENUM, AT(definition_encoding), NULL},
                                         {4, FIELD_ENUM, AT(repetition_encoding), NULL}}};
static const struct_rules dictionary_rules = {
    6,
    "the header lacks the number of values or the encoding",
    {{1, FIELD_SIZE, AT(values), NULL}, {2, FIELD_ENUM, AT(encoding), NULL}}};
static const struct_rules data_v2_rules = {
    0x72,
    "the header lacks the number of values, the encoding or a length",
    {{1, FIELD_SIZE, AT(values), NULL},
     {4, FIELD_ENUM, AT(encoding), NULL},
     {5, FIELD_SIZE, AT(definition_bytes), NULL},
     {6, FIELD_SIZE, AT(repetition_bytes), NULL},
     {7, FIELD_BOOL, AT(is_compressed), NULL}}};
static const struct_rules page_rules = {0xE,
                                        incomplete,
                                        {{1, FIELD_SIZE, AT(type), NULL},
                                         {2, FIELD_SIZE, AT(size), NULL},
                                         {3, FIELD_SIZE, AT(stored), NULL},
                                         {4, FIELD_ENUM, AT(crc), NULL},
                                         {5, FIELD_STRUCT, AT(found), &data_rules},
                                         {7, FIELD_STRUCT, AT(found), &dictionary_rules},
                                         {8, FIELD_STRUCT, AT(found), &data_v2_rules}}};
#undef AT

/* Reads a page header; its fields are valid if there is no fault. */
static void parse_page(thrift *t, page_header *out) {
    unsigned found, needed;

    *out = (page_header){.type = -1, .encoding = -1, .is_compressed = true};
    found = read_struct(t, &page_rules, out).found;
    out->has_crc = found & 1u << 4;
    if (out->type == PAGE_DATA_V2)
        out->definition_encoding = out->repetition_encoding = ENCODING_RLE;
    needed = out->type == PAGE_DATA         ? 1u << 5
             : out->type == PAGE_DICTIONARY ? 1u << 7
             : out->type == PAGE_DATA_V2    ? 1u << 8
                                            : 0;
    /* a header of another type may only be there if it is not used */
    if ((found & (1u << 5 | 1u << 7 | 1u << 8)) != needed)
        (void)thrift_fail(t, incomplete);
}

/* Encodings, of levels and integers.
 *
 * Levels and dictionary indices are sequences of runs: a value that is repeated, or values that are
 * packed in a few bits each. Levels are not expanded: repeated ones are counted at once, packed
 * ones 28 or 56 at a time, as bits of a word. Values are unpacked in groups of eight; a group reads
 * words, which may reach beyond the data by less than IRON_SLACK. */

/* Runs. */

typedef struct runs {
    const unsigned char *at, *end; /* the next run */
    unsigned width;                /* of a value, in bits: 1 to 32 */
    bool is_packed;
    uint64_t left; /* values of the current run */
    uint32_t value;
    const unsigned char *packed;
    uint64_t bit; /* of `packed`: the next value's */
} runs;

/* Starts the next run. Returns false at the end, or if the run is damaged. */
static bool next_run(runs *r) {
    uint64_t head;
    size_t bytes = (r->width + 7) / 8;

    if (!read_varint(&r->at, r->end, &head) || head >> 1 == 0 || head >> 32 != 0)
        return false;
    r->is_packed = head & 1;
    if (r->is_packed) {
        uint64_t there = (uint64_t)(r->end - r->at), size = (head >> 1) * r->width;

        /* some writers leave out the padding of the last group */
        r->left = size <= there ? (head >> 1) * 8 : there * 8 / r->width;
        r->packed = r->at;
        r->bit = 0;
        r->at += size <= there ? size : there;
        return r->left > 0;
    }
    if ((size_t)(r->end - r->at) < bytes)
        return false;
    r->left = head >> 1;
    r->value = 0;
    memcpy(&r->value, r->at, bytes);
    r->at += bytes;
    return r->width == 32 || r->value >> r->width == 0;
}

/* Levels. */

/* The levels of a page. */
typedef struct page_levels {
    const unsigned char *repetition, *definition; /* runs; followed by slack */
    size_t repetition_bytes, definition_bytes;
    uint64_t count;
} page_levels;

typedef struct level_tally {
    const level_shape *shape;
    iron__block *places;   /* NULL, or receives the tokens with which rows begin */
    uint64_t first;        /* the first token, for the places */
    uint64_t tokens, rows; /* values, and rows that begin */
    bool is_continued;     /* the first value belongs to a row that began before */
    bool has_null;         /* the tally ends before it */
    const char *fault;     /* NULL, or what is wrong with the levels */
} level_tally;

/* Every other bit of a word, beginning with the lowest. */
static uint64_t even_bits(uint64_t word) {
    word &= UINT64_C(0x5555555555555555);
    word = (word | word >> 1) & UINT64_C(0x3333333333333333);
    word = (word | word >> 2) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    word = (word | word >> 4) & UINT64_C(0x00FF00FF00FF00FF);
    word = (word | word >> 8) & UINT64_C(0x0000FFFF0000FFFF);
    return (word | word >> 16) & UINT64_C(0x00000000FFFFFFFF);
}

/* A bit for each of the next `n` values of a run: whether it is `value`. */
static uint64_t where_equal(const runs *r, unsigned n, unsigned value) {
    uint64_t mask = (UINT64_C(1) << n) - 1, bits, low, high;

    if (!r->is_packed)
        return r->value == value ? mask : 0;
    memcpy(&bits, r->packed + (r->bit >> 3), sizeof bits);
    bits >>= r->bit & 7; /* 57 at least; those beyond the run are arbitrary */
    if (r->width == 1)
        return value > 1 ? 0 : (value ? bits : ~bits) & mask;
    low = even_bits(bits);
    high = even_bits(bits >> 1);
    return value > 3 ? 0 : (value & 1 ? low : ~low) & (value & 2 ? high : ~high) & mask;
}

static void take(runs *r, uint64_t n) {
    r->left -= n;
    if (r->is_packed)
        r->bit += n * r->width;
}

/* Counts `n` values, all of the same levels. */
static iron_status tally_same(level_tally *out, unsigned repetition, unsigned definition,
                              uint64_t n, iron_error *err) {
    bool is_value = definition == out->shape->definition_max;
    iron__block *places = out->places;

    if (!is_value && definition != out->shape->empty) {
        out->rows += repetition == 0; /* the row that has it */
        out->has_null = true;
        return IRON_OK;
    }
    if (!is_value && repetition > 0) {
        out->fault = "an empty list continues a row";
        return IRON_OK;
    }
    if (repetition == 0 && places) {
        uint64_t *to, place = out->first + out->tokens, step = is_value;

        IRON_TRY(iron__block_reserve_places(places, places->place_count + (size_t)n, err));
        to = places->places + places->place_count;
        for (uint64_t k = 0; k < n; k++)
            to[k] = place + k * step;
        places->place_count += (size_t)n;
    }
    out->rows += repetition == 0 ? n : 0;
    out->tokens += is_value ? n : 0;
    return IRON_OK;
}

/* Counts `n` values by bits: those that begin a row, have a value, are an empty list. */
static iron_status tally_bits(level_tally *out, uint64_t begins, uint64_t has_value,
                              uint64_t is_empty, unsigned n, iron_error *err) {
    uint64_t all = (UINT64_C(1) << n) - 1, null = all & ~(has_value | is_empty);
    iron__block *places = out->places;

    if (null) {
        /* up to and with the null, so that the row is known */
        uint64_t before = null ^ (null - 1);

        out->rows += (unsigned)__builtin_popcountll(begins & before);
        out->has_null = true;
        return IRON_OK;
    }
    if (is_empty & ~begins) {
        out->fault = "an empty list continues a row";
        return IRON_OK;
    }
    if (places && begins) {
        IRON_TRY(iron__block_reserve_places(places, places->place_count + (size_t)n, err));
        for (uint64_t rest = begins; rest; rest &= rest - 1) {
            uint64_t before = (rest & (0 - rest)) - 1;

            places->places[places->place_count++] =
                out->first + out->tokens + (unsigned)__builtin_popcountll(has_value & before);
        }
    }
    out->rows += (unsigned)__builtin_popcountll(begins);
    out->tokens += (unsigned)__builtin_popcountll(has_value);
    return IRON_OK;
}

/* The runs of levels up to `most`; a column that has only one level stores none. */
static runs level_runs(unsigned most, const unsigned char *from, size_t bytes, uint64_t count) {
    if (most == 0)
        return (runs){.width = 1, .left = count};
    return (runs){.at = from, .end = from + bytes, .width = most > 1 ? 2 : 1};
}

/* Counts tokens and rows. Fails only without memory. */
static iron_status tally_levels(level_tally *out, const page_levels *levels, iron_error *err) {
    const level_shape *shape = out->shape;
    runs repetition = level_runs(shape->repetition_max, levels->repetition,
                                 levels->repetition_bytes, levels->count);
    runs definition = level_runs(shape->definition_max, levels->definition,
                                 levels->definition_bytes, levels->count);
    iron_status status = IRON_OK;

    for (uint64_t left = levels->count, n; left > 0; left -= n) {
        if ((repetition.left == 0 && !next_run(&repetition)) ||
            (definition.left == 0 && !next_run(&definition))) {
            out->fault = "its levels end too early or are damaged";
            return IRON_OK;
        }
        n = repetition.left < definition.left ? repetition.left : definition.left;
        n = n < left ? n : left;
        if (!repetition.is_packed && !definition.is_packed) {
            if (definition.value > shape->definition_max)
                out->fault = "a definition level is too high";
            else
                status = tally_same(out, repetition.value, definition.value, n, err);
            if (left == levels->count)
                out->is_continued = repetition.value > 0;
        } else {
            unsigned most = definition.is_packed && definition.width > 1 ? 28 : 56;
            unsigned some = n < most ? (unsigned)n : most;
            uint64_t begins = where_equal(&repetition, some, 0);

            if (shape->definition_max == 2 && where_equal(&definition, some, 3))
                out->fault = "a definition level is too high";
            else
                status =
                    tally_bits(out, begins, where_equal(&definition, some, shape->definition_max),
                               where_equal(&definition, some, shape->empty), some, err);
            if (left == levels->count)
                out->is_continued = !(begins & 1);
            n = some;
        }
        if (status != IRON_OK || out->fault || out->has_null)
            return status;
        take(&repetition, n);
        take(&definition, n);
    }
    return IRON_OK;
}

/* Unpacking. */

/* Groups of eight values of `width` bits; inlined for each width, so that all shifts are constant:
 * twice as fast. */
static inline __attribute__((always_inline)) void
unpack_groups(const unsigned char *from, size_t groups, uint32_t *to, unsigned width) {
    uint32_t mask = (uint32_t)((UINT64_C(1) << width) - 1);

    for (size_t g = 0; g < groups; g++) {
        for (unsigned k = 0; k < 8; k++) {
            uint64_t word;

            memcpy(&word, from + (k * width >> 3), sizeof word);
            to[k] = (uint32_t)(word >> (k * width & 7)) & mask;
        }
        from += width;
        to += 8;
    }
}

/* `groups` times eight values of 0 to 32 bits. */
static void unpack(const unsigned char *from, size_t groups, uint32_t *to, unsigned width) {
#define WIDTH(n)                                                                                   \
    case n:                                                                                        \
        unpack_groups(from, groups, to, n);                                                        \
        break;
#define WIDTHS(n) WIDTH((n)) WIDTH((n) + 1) WIDTH((n) + 2) WIDTH((n) + 3)
    switch (width) {
        WIDTHS(1)
        WIDTHS(5)
        WIDTHS(9)
        WIDTHS(13)
        WIDTHS(17)
        WIDTHS(21)
        WIDTHS(25)
        WIDTHS(29)
    default:
        memset(to, 0, groups * 8 * sizeof *to);
    }
#undef WIDTHS
#undef WIDTH
}

/* Values. */

typedef struct token_dictionary {
    const unsigned char *stored; /* the integers of its page */
    const uint32_t *tokens;
    size_t count;
    bool has_bad; /* some of its integers are not tokens */
} token_dictionary;

typedef struct stored_values {
    int encoding;
    iron__stored stored;
    const unsigned char *from; /* followed by slack */
    size_t bytes, count;
    const token_dictionary *dictionary;
    uint32_t *to; /* the tokens */
    /* why they could not be decoded: a fault of their encoding, or an integer that is no token */
    const char *fault;
    size_t bad;
    unsigned char bad_value[8];
} stored_values;

static bool damaged(stored_values *v, const char *fault) {
    v->fault = fault;
    return false;
}

/* Value `index` is not a token. */
static bool fail_value(stored_values *v, size_t index, const void *value) {
    v->bad = index;
    memcpy(v->bad_value, value, iron__stored_bytes(v->stored));
    return false;
}

/* Indices that are unpacked at a time: a kilobyte, which stays in the first-level cache. */
#define INDEX_PIECE 256u

/* Looks up a piece of indices: of the values from `done` on. */
static bool look_up(stored_values *v, const uint32_t *indices, size_t count, size_t done) {
    const token_dictionary *dictionary = v->dictionary;
    uint32_t most = 0, *to = v->to + done, token;

    for (size_t k = 0; k < count; k++)
        most = indices[k] > most ? indices[k] : most;
    if (most >= dictionary->count)
        return damaged(v, "a value is not in its dictionary");
    for (size_t k = 0; k < count; k++)
        to[k] = dictionary->tokens[indices[k]];
    for (size_t k = 0; dictionary->has_bad && k < count; k++) {
        const unsigned char *entry =
            dictionary->stored + indices[k] * iron__stored_bytes(v->stored);

        if (iron__stored_convert(v->stored, entry, 1, &token) == 0)
            return fail_value(v, done + k, entry);
    }
    return true;
}

/* A run of the same index. */
static bool repeat(stored_values *v, uint32_t index, size_t count, size_t done) {
    if (!look_up(v, &index, 1, done))
        return false;
    for (size_t k = 1; k < count; k++)
        v->to[done + k] = v->to[done];
    return true;
}

static bool decode_dictionary(stored_values *v) {
    runs r = {.at = v->from + 1, .end = v->from + v->bytes};
    uint32_t indices[INDEX_PIECE] = {0};

    if (v->bytes == 0 || v->from[0] > 32)
        return damaged(v, "its dictionary indices have no valid width");
    r.width = v->from[0];
    if (r.width == 0)
        return repeat(v, 0, v->count, 0);
    for (size_t done = 0, n; done < v->count; done += n) {
        bool is_good;

        if (r.left == 0 && !next_run(&r))
            return damaged(v, "its dictionary indices end too early or are damaged");
        n = iron__min_size(v->count - done, r.left);
        if (!r.is_packed) {
            is_good = repeat(v, r.value, n, done);
        } else {
            n = n < INDEX_PIECE ? n : INDEX_PIECE; /* whole groups, but for the last */
            unpack(r.packed + (r.bit >> 3), (n + 7) / 8, indices, r.width);
            is_good = look_up(v, indices, n, done);
        }
        if (!is_good)
            return false;
        take(&r, n);
    }
    return true;
}

/* Deltas: blocks of miniblocks, each with a width of its own. */
typedef struct deltas {
    const unsigned char *at, *end;
    uint64_t minis, per_mini; /* miniblocks in a block, values in a miniblock */
    uint64_t last;
} deltas;

#define DELTA_PIECE 32u /* values: every miniblock is a multiple */

/* Adds up to 32 deltas of `width` bits; false: a result is not a token. */
static bool add_deltas_32(deltas *d, const unsigned char *from, size_t n, uint64_t least,
                          unsigned width, bool is_signed, uint32_t *to) {
    uint32_t piece[DELTA_PIECE], last = (uint32_t)d->last, all = 0;

    unpack(from, (n + 7) / 8, piece, width);
    for (size_t k = 0; k < n; k++) {
        /* unpack wrote it: NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
        last += (uint32_t)least + piece[k];
        all |= last;
        to[k] = last;
    }
    d->last = last;
    return !is_signed || all >> 31 == 0;
}

/* The same for up to 64 bits; `wide` receives the results. */
static bool add_deltas_64(deltas *d, const unsigned char *from, size_t n, uint64_t least,
                          unsigned width, uint64_t wide[DELTA_PIECE], uint32_t *to) {
    uint64_t mask = width < 64 ? (UINT64_C(1) << width) - 1 : UINT64_MAX, bit = 0;
    uint64_t last = d->last, all = 0, word;

    for (size_t k = 0; k < n; k++, bit += width) {
        unsigned shift = bit & 7;

        memcpy(&word, from + (bit >> 3), sizeof word);
        word >>= shift;
        if (width + shift > 64)
            word |= (uint64_t)from[(bit >> 3) + 8] << (64 - shift);
        last += least + (word & mask);
        all |= last;
        wide[k] = last;
        to[k] = (uint32_t)last;
    }
    d->last = last;
    return all <= UINT32_MAX;
}

/* The values of one miniblock. */
static bool decode_mini(stored_values *v, deltas *d, uint64_t least, unsigned width, size_t done,
                        size_t count) {
    bool is_wide = iron__stored_bytes(v->stored) == 8, is_signed = v->stored == IRON_STORED_I32;
    uint32_t *to = v->to + done, tokens[DELTA_PIECE];
    uint64_t wide[DELTA_PIECE];

    for (size_t k = 0, n, bad; k < count; k += n) {
        const unsigned char *from = d->at + k / 8 * width;
        const unsigned char *values = (const unsigned char *)(is_wide ? (void *)wide : to + k);

        n = count - k < DELTA_PIECE ? count - k : DELTA_PIECE;
        if (is_wide ? add_deltas_64(d, from, n, least, width, wide, to + k)
                    : add_deltas_32(d, from, n, least, width, is_signed, to + k))
            continue;
        bad = iron__stored_convert(v->stored, values, n, tokens);
        return fail_value(v, done + k + bad, values + bad * iron__stored_bytes(v->stored));
    }
    return true;
}

static bool decode_deltas(stored_values *v) {
    static const char why[] = "its deltas end too early or are damaged";
    size_t bits = 8 * iron__stored_bytes(v->stored), done = 1;
    deltas d = {.at = v->from, .end = v->from + v->bytes};
    uint64_t block, total, first;

    if (!read_varint(&d.at, d.end, &block) || !read_varint(&d.at, d.end, &d.minis) ||
        !read_varint(&d.at, d.end, &total) || !read_varint(&d.at, d.end, &first) || block == 0 ||
        block % 128 != 0 || block > 1u << 24 || d.minis == 0 || block % d.minis != 0 ||
        total != v->count || block / d.minis % DELTA_PIECE != 0)
        return damaged(v, why);
    d.per_mini = block / d.minis;
    d.last = zigzag(first);
    if (iron__stored_convert(v->stored, &d.last, 1, v->to) == 0)
        return fail_value(v, 0, &d.last);
    while (done < v->count) {
        const unsigned char *widths;
        uint64_t least;

        if (!read_varint(&d.at, d.end, &least) || (uint64_t)(d.end - d.at) < d.minis)
            return damaged(v, why);
        widths = d.at;
        d.at += d.minis;
        for (uint64_t m = 0; m < d.minis && done < v->count; m++) {
            size_t n = iron__min_size(v->count - done, d.per_mini);
            uint64_t there = (uint64_t)(d.end - d.at);

            if (widths[m] > bits || ((uint64_t)n * widths[m] + 7) / 8 > there)
                return damaged(v, why);
            if (!decode_mini(v, &d, zigzag(least), widths[m], done, n))
                return false;
            /* some writers leave out the padding of the last miniblock */
            d.at += iron__min(d.per_mini / 8 * widths[m], there);
            done += n;
        }
    }
    return true;
}

/* The first bytes of all values, then the second ones, and so on. */
static bool decode_split(stored_values *v) {
    size_t width = iron__stored_bytes(v->stored), count = v->count;
    const unsigned char *s = v->from;
    uint32_t upper = 0, *to = v->to;

    if (v->bytes != count * width)
        return damaged(v, "its split values have not the size that their number gives");
    for (size_t k = 0; k < count; k++)
        to[k] = s[k] | (uint32_t)s[k + count] << 8 | (uint32_t)s[k + 2 * count] << 16 |
                (uint32_t)s[k + 3 * count] << 24;
    if (v->stored == IRON_STORED_I32)
        for (size_t k = 0; k < count; k++)
            upper |= to[k] >> 31;
    for (size_t k = 4 * count; k < count * width; k++)
        upper |= s[k];
    for (size_t k = 0; upper && k < count; k++) {
        unsigned char value[8];
        uint32_t token;

        for (size_t b = 0; b < width; b++)
            value[b] = s[k + b * count];
        if (iron__stored_convert(v->stored, value, 1, &token) == 0)
            return fail_value(v, k, value);
    }
    return true;
}

/* Decodes values to tokens of 32 bits; false: they say why not. */
static bool decode_values(stored_values *v) {
    size_t width = iron__stored_bytes(v->stored), good;

    if (v->count == 0)
        return true;
    switch (v->encoding) {
    case ENCODING_PLAIN:
        if (v->bytes != v->count * width)
            return damaged(v, "its plain values have not the size that their number gives");
        good = iron__stored_convert(v->stored, v->from, v->count, v->to);
        return good == v->count || fail_value(v, good, v->from + good * width);
    case ENCODING_PLAIN_DICTIONARY:
    case ENCODING_RLE_DICTIONARY:
        return decode_dictionary(v);
    case ENCODING_DELTA:
        return decode_deltas(v);
    case ENCODING_BYTE_STREAM_SPLIT:
        return decode_split(v);
    default:
        return damaged(v, "its encoding is not read");
    }
}

/* What a thread needs for decoding; kept for the next block. */
typedef struct workspace {
    struct workspace *next;
    iron__window pages, dictionary_page;
    iron__block page;           /* decompressed */
    iron__block stored, tokens; /* of the dictionary */
    const column_chunk *dictionary_of;
    token_dictionary dictionary;
} workspace;

/* The state of a table. */
typedef struct parquet {
    const char *column_name;
    column_detail column;
    column_chunk *chunks;
    size_t chunk_count;
    part *parts; /* one for each block */
    pthread_mutex_t mutex;
    workspace *idle;
} parquet;

/* One pass over pages of a chunk. */
typedef struct reader {
    parquet *file;
    const column_chunk *chunk;
    iron__input in; /* a copy: reads at any place do not change it */
    const char *name;
    workspace *work;
    iron__window *window; /* one of the workspace's */
} reader;

static iron_status reader_begin(reader *r, parquet *file, size_t chunk, const iron__input *in,
                                iron_error *err) {
    workspace *w;

    pthread_mutex_lock(&file->mutex);
    w = file->idle;
    if (w)
        file->idle = w->next;
    pthread_mutex_unlock(&file->mutex);
    if (!w)
        w = calloc(1, sizeof *w);
    if (!w)
        return iron__no_memory(err, iron__path_shown(in->path));
    *r = (reader){.file = file,
                  .chunk = &file->chunks[chunk],
                  .in = *in,
                  .name = iron__path_shown(in->path),
                  .work = w,
                  .window = &w->pages};
    r->in.is_stream = false;
    return IRON_OK;
}

static void reader_end(reader *r) {
    workspace *w = r->work;

    if (w->pages.block.capacity > KEPT_BYTES_MAX)
        iron__block_clear(&w->pages.block);
    if (w->page.capacity > KEPT_BYTES_MAX)
        iron__block_clear(&w->page);
    w->pages.block.bytes = 0;
    pthread_mutex_lock(&r->file->mutex);
    w->next = r->file->idle;
    r->file->idle = w;
    pthread_mutex_unlock(&r->file->mutex);
}

static void destroy(void *state) {
    parquet *file = state;

    while (file->idle) {
        workspace *w = file->idle;

        file->idle = w->next;
        iron__block_clear(&w->pages.block);
        iron__block_clear(&w->dictionary_page.block);
        iron__block_clear(&w->page);
        iron__block_clear(&w->stored);
        iron__block_clear(&w->tokens);
        free(w);
    }
    pthread_mutex_destroy(&file->mutex);
    for (size_t k = 0; file->chunks && k < file->chunk_count; k++)
        free(file->chunks[k].parts);
    free(file->parts);
    free(file->chunks);
    free(file);
}

/* Bytes of the file: at least `need` from `at` on, which are in the chunk; reads up to `want`. */
static iron_status fetch(reader *r, uint64_t at, size_t need, size_t want,
                         const unsigned char **out, iron_error *err) {
    return iron__window_get(r->window, &r->in, at, need, iron__min_size(want, r->chunk->end - at),
                            out, err);
}

/* Makes room for `bytes` of a page, and slack. */
static iron_status reserve(iron__block *b, size_t bytes, iron_error *err) {
    IRON_TRY(iron__block_reserve(b, bytes + IRON_SLACK, err));
    memset(b->data + bytes, 0, IRON_SLACK);
    return IRON_OK;
}

/* Fails with a sentence that begins with the page. */
static __attribute__((format(printf, 5, 6))) iron_status
fail_page(const reader *r, const page_header *p, iron_status status, iron_error *err,
          const char *format, ...) {
    char rest[200];
    va_list list;

    va_start(list, format);
    vsnprintf(rest, sizeof rest, format, list);
    va_end(list);
    IRON_FAIL(err, status, "%.90s: the page of column %.40s at byte %" PRIu64 " %s", r->name,
              r->file->column_name, p->at, rest);
}

/* The error for a page whose content contradicts itself. */
static iron_status refuse_page(const reader *r, const page_header *p, const char *why,
                               iron_error *err) {
    return fail_page(r, p, IRON_E_FORMAT, err, "is damaged: %s", why);
}

/* Pages. */

static bool is_data(const page_header *p) {
    return p->type == PAGE_DATA || p->type == PAGE_DATA_V2;
}

static bool is_dictionary_encoded(const page_header *p) {
    return p->encoding == ENCODING_PLAIN_DICTIONARY || p->encoding == ENCODING_RLE_DICTIONARY;
}

static bool is_packed(const reader *r, const page_header *p) {
    return r->chunk->codec != IRON_CODEC_NONE && p->is_compressed;
}

/* Refuses encodings that are not read. */
static iron_status check_encodings(const reader *r, const page_header *p, iron_error *err) {
    static const char *const names[] = {
        [1] = "GROUP_VAR_INT",    [3] = "RLE", [4] = "BIT_PACKED", [6] = "DELTA_LENGTH_BYTE_ARRAY",
        [7] = "DELTA_BYTE_ARRAY", [10] = "ALP"};
    const level_shape *shape = &r->file->column.shape;
    bool is_known = p->encoding >= 0 && (size_t)p->encoding < sizeof names / sizeof names[0];

    if ((shape->repetition_max && p->repetition_encoding != ENCODING_RLE) ||
        (shape->definition_max && p->definition_encoding != ENCODING_RLE))
        return fail_page(r, p, IRON_E_UNSUPPORTED, err,
                         "has levels in the encoding BIT_PACKED or an unknown one, not RLE; write "
                         "the file again with a current writer");
    if (p->encoding == ENCODING_PLAIN || p->encoding == ENCODING_DELTA ||
        p->encoding == ENCODING_BYTE_STREAM_SPLIT || is_dictionary_encoded(p))
        return IRON_OK;
    return fail_page(r, p, IRON_E_UNSUPPORTED, err,
                     "has the encoding %s, which is not read for integers; write it with PLAIN or "
                     "a dictionary",
                     is_known ? names[p->encoding] : "of an unknown number");
}

/* Checks what the header of a page says about its sizes. */
static iron_status check_page(const reader *r, const page_header *p, iron_error *err) {
    uint64_t levels = (uint64_t)p->repetition_bytes + p->definition_bytes;
    uint64_t left = r->chunk->end - p->body;

    if (p->stored > left)
        return fail_page(r, p, IRON_E_FORMAT, err,
                         "is said to have %" PRIu32 " bytes, but its row group has only %" PRIu64
                         " left",
                         p->stored, left);
    if (p->size > IRON_TABLE_PART_BYTES_MAX || p->stored > IRON_TABLE_PART_BYTES_MAX ||
        p->values > PAGE_VALUES_MAX)
        return fail_page(r, p, IRON_E_UNSUPPORTED, err,
                         "has %" PRIu32 " bytes and %" PRIu32
                         " values, more than is decoded at once; write it with smaller pages",
                         p->size, p->values);
    if (p->type == PAGE_DATA_V2 && (levels > p->stored || levels > p->size))
        return refuse_page(r, p, "its levels have more bytes than the page", err);
    if (!is_packed(r, p) && p->stored != p->size)
        return refuse_page(r, p, "it is not compressed, but its two sizes differ", err);
    return is_data(p) ? check_encodings(r, p, err) : IRON_OK;
}

/* Reads the header of the page at byte `at`, and checks it. */
static iron_status read_header(reader *r, uint64_t at, page_header *p, iron_error *err) {
    size_t most = iron__min_size(HEADER_BYTES_MAX, r->chunk->end - at);
    thrift t = {.fault = "there is no room for it", .is_short = true};

    *p = (page_header){.type = -1};
    for (size_t bytes = 64; t.is_short && at < r->chunk->end && bytes < 8 * most; bytes *= 8) {
        const unsigned char *from;

        bytes = bytes < most ? bytes : most;
        IRON_TRY(fetch(r, at, bytes, HEADER_BYTES, &from, err));
        t = (thrift){.at = from, .end = from + bytes};
        parse_page(&t, p);
        p->body = at + (uint64_t)(t.at - from);
    }
    p->at = at;
    return t.fault ? refuse_page(r, p, t.fault, err) : check_page(r, p, err);
}

/* The body of a data page. */
typedef struct body {
    page_levels levels;
    const unsigned char *values; /* NULL: not wanted */
    size_t value_bytes;
    uint64_t values_at; /* where they are in the file; 0: they are compressed */
} body;

/* Finds the levels at the beginning of a page of version 1, of which `have` bytes are known.
 * Returns the bytes that must be known, up to the values; more than `size`: damaged. */
static uint64_t split_levels(const level_shape *shape, const unsigned char *from, uint64_t have,
                             page_levels *out) {
    uint64_t at = 0;

    if (shape->repetition_max) {
        if (have < 4)
            return 4;
        out->repetition_bytes = iron__load_u32(from);
        out->repetition = from + 4;
        at = 4 + (uint64_t)out->repetition_bytes;
    }
    if (shape->definition_max) {
        if (have < at + 4)
            return at + 4;
        out->definition_bytes = iron__load_u32(from + at);
        out->definition = from + at + 4;
        at += 4 + (uint64_t)out->definition_bytes;
    }
    return at;
}

/* Version 1: levels and values are compressed together. */
static iron_status read_body_v1(reader *r, const page_header *p, bool wants_values, body *out,
                                iron_error *err) {
    const unsigned char *from = r->window->block.data, *stored;
    uint64_t values, need, have = 0;
    bool is_compressed = is_packed(r, p) && p->size > 0;
    iron__block *page = &r->work->page;

    for (;;) {
        values = split_levels(&r->file->column.shape, from, have, &out->levels);
        if (values > p->size)
            return refuse_page(r, p, "its levels have more bytes than the page", err);
        need = wants_values ? p->size : values;
        if (need <= have)
            break;
        if (!is_compressed) {
            have = need;
            IRON_TRY(fetch(r, p->body, (size_t)have, 0, &from, err));
            continue;
        }
        IRON_TRY(fetch(r, p->body, p->stored, 0, &stored, err));
        IRON_TRY(reserve(page, p->size, err));
        have = iron__min(need < LEVELS_AT_ONCE ? LEVELS_AT_ONCE : 2 * need, p->size);
        from = page->data;
        IRON_TRY(iron__codec_decompress_start(r->chunk->codec, r->name, stored, p->stored,
                                              page->data, p->size, (size_t)have, err));
    }
    out->value_bytes = (size_t)(p->size - values);
    out->values = wants_values ? from + values : NULL;
    out->values_at = is_compressed ? 0 : p->body + values;
    return IRON_OK;
}

/* Version 2: levels are never compressed. */
static iron_status read_body_v2(reader *r, const page_header *p, bool wants_values, body *out,
                                iron_error *err) {
    size_t levels = (size_t)p->repetition_bytes + p->definition_bytes;
    const unsigned char *from;
    iron__block *page = &r->work->page;

    IRON_TRY(fetch(r, p->body, wants_values ? p->stored : levels, 0, &from, err));
    out->levels.repetition = from;
    out->levels.repetition_bytes = p->repetition_bytes;
    out->levels.definition = from + p->repetition_bytes;
    out->levels.definition_bytes = p->definition_bytes;
    out->value_bytes = p->size - levels;
    if (!is_packed(r, p) || out->value_bytes == 0) {
        out->values = from + levels;
        out->values_at = p->body + levels;
    } else if (wants_values) {
        IRON_TRY(reserve(page, out->value_bytes, err));
        out->values = page->data;
        return iron__codec_decompress(r->chunk->codec, r->name, from + levels, p->stored - levels,
                                      page->data, out->value_bytes, err);
    }
    return IRON_OK;
}

/* Checks the checksum of a page's body, as it is in the file. */
static iron_status check_crc(reader *r, const page_header *p, iron_error *err) {
    const unsigned char *from;
    uint32_t crc;

    if (!p->has_crc)
        return IRON_OK;
    IRON_TRY(fetch(r, p->body, p->stored, 0, &from, err));
    crc = iron__crc32(from, p->stored);
    return crc == p->crc ? IRON_OK
                         : fail_page(r, p, IRON_E_FORMAT, err,
                                     "has the checksum %08" PRIx32
                                     ", but its header says %08" PRIx32 "; the file is damaged",
                                     crc, p->crc);
}

/* Reads a data page: its levels, and its values if they are wanted. */
static iron_status read_body(reader *r, const page_header *p, bool wants_values, body *out,
                             iron_error *err) {
    *out = (body){.levels = {.count = p->values}};
    if (wants_values)
        IRON_TRY(check_crc(r, p, err));
    if (p->type == PAGE_DATA_V2)
        return read_body_v2(r, p, wants_values, out, err);
    return read_body_v1(r, p, wants_values, out, err);
}

/* Counts the tokens and rows of a page. `row`: how many rows begin before it in the file. */
static iron_status tally(const reader *r, const page_header *p, const page_levels *levels,
                         uint64_t row, level_tally *out, iron_error *err) {
    out->shape = &r->file->column.shape;
    IRON_TRY(tally_levels(out, levels, err));
    if (out->fault)
        return refuse_page(r, p, out->fault, err);
    if (out->is_continued && row == r->chunk->first_row)
        return refuse_page(r, p, "the row group does not begin with a row", err);
    row += out->rows;
    if (out->has_null)
        return iron__table_refuse_null(r->name, r->file->column_name, row > 0 ? row - 1 : 0, err);
    return IRON_OK;
}

/* Examining: the pages of a chunk become parts. */

/* Examines one data page; `row` rows of the file begin before it. */
static iron_status examine_page(reader *r, const page_header *p, uint64_t row, column_chunk *chunk,
                                part *page, iron_error *err) {
    size_t width = iron__stored_bytes(r->file->column.stored);
    bool may_be_direct = p->encoding == ENCODING_PLAIN && !is_packed(r, p) && !p->has_crc &&
                         p->values * width >= DIRECT_BYTES_MIN;
    part *last = chunk->part_count > 0 ? &chunk->parts[chunk->part_count - 1] : NULL;
    uint64_t end = p->body + p->stored;
    level_tally counted = {.tokens = 0};
    body b;

    *page = (part){.at = p->at,
                   .bytes = end - p->at,
                   .values = p->values,
                   .tokens = p->values,
                   .rows = p->values,
                   .chunk = (size_t)(chunk - r->file->chunks)};
    if (is_dictionary_encoded(p) && !r->chunk->dictionary_at)
        return refuse_page(r, p, "its row group has no dictionary before it", err);
    if (r->file->column.shape.repetition_max || may_be_direct) {
        IRON_TRY(read_body(r, p, false, &b, err));
        IRON_TRY(tally(r, p, &b.levels, row, &counted, err));
        page->tokens = counted.tokens;
        page->rows = counted.rows;
        if (may_be_direct && counted.tokens * width >= DIRECT_BYTES_MIN) {
            if (b.value_bytes != counted.tokens * width)
                return refuse_page(
                    r, p, "its plain values have not the size that their number gives", err);
            page->values_at = b.values_at;
        }
    }
    /* the page goes into the last part, or begins another one */
    if (!last || page->values_at || last->values_at ||
        last->values + page->values > IRON_TABLE_BLOCK_TOKENS || end - last->at > PART_BYTES) {
        if (!IRON_ARRAY_GROW(&chunk->parts, chunk->part_count, &chunk->part_capacity))
            return iron__no_memory(err, "the blocks of a file");
        chunk->parts[chunk->part_count++] = *page;
        return IRON_OK;
    }
    last->bytes = end - last->at;
    last->values += page->values;
    last->tokens += page->tokens;
    last->rows += page->rows;
    return IRON_OK;
}

/* Examines all pages of a chunk. */
static iron_status examine_chunk(reader *r, column_chunk *chunk, iron_error *err) {
    uint64_t at = chunk->at, values = 0, rows = 0;

    while (values < chunk->values) {
        page_header p;
        part page = {.rows = 0};

        IRON_TRY(read_header(r, at, &p, err));
        if (p.type == PAGE_DICTIONARY) {
            if (chunk->dictionary_at)
                return refuse_page(r, &p, "its row group has two dictionaries", err);
            chunk->dictionary_at = at;
        } else if (is_data(&p)) {
            if (p.values > chunk->values - values)
                return refuse_page(r, &p, "it has more values than its row group", err);
            IRON_TRY(examine_page(r, &p, chunk->first_row + rows, chunk, &page, err));
            values += p.values;
            rows += page.rows;
        }
        at = p.body + p.stored;
    }
    IRON_FAIL_IF(rows != chunk->rows, err, IRON_E_FORMAT,
                 "%.90s: column %.40s of the row group at byte %" PRIu64 " has %" PRIu64
                 " rows, but the footer says %" PRIu64,
                 r->name, r->file->column_name, chunk->at, rows, chunk->rows);
    return IRON_OK;
}

/* Examining on several threads: each takes the next chunk. */
static iron_status survey_chunk(void *context, uint32_t worker, uint64_t piece,
                                const atomic_bool *stop, iron_error *err) {
    const reader *all = context;
    iron_status status;
    reader r;

    (void)worker, (void)stop;
    IRON_TRY(reader_begin(&r, all->file, piece, &all->in, err));
    status = examine_chunk(&r, &all->file->chunks[piece], err);
    reader_end(&r);
    return status;
}

/* Examines all chunks, and makes the blocks of the table of their parts. */
static iron_status examine_pages(const iron__input *in, parquet *file, iron__table *table,
                                 iron_error *err) {
    const iron_allocator *memory = iron__allocator_default();
    reader all = {.file = file, .in = *in};
    iron__ordered_run run = {.count = file->chunk_count, .piece = survey_chunk, .context = &all};
    uint64_t bytes = 0, threads = 1;
    iron__thread_pool *pool = NULL;
    size_t count = 0, done = 0;
    iron_status status;

    for (size_t k = 0; k < file->chunk_count; k++)
        bytes += file->chunks[k].end - file->chunks[k].at;
    if (file->column.shape.repetition_max > 0) { /* levels are all that takes time */
        threads = iron__min(bytes / THREAD_BYTES + 1, iron__max(file->chunk_count, 1));
        threads = iron__min(iron__min(threads, iron__cpu_threads()), THREADS_MAX);
    }
    /* where there are no more threads, this one does all */
    if (iron__thread_pool_create((uint32_t)threads, memory, &pool, NULL) != IRON_OK)
        IRON_TRY(iron__thread_pool_create(1, memory, &pool, err));
    status = iron__thread_pool_run_ordered(pool, &run, err);
    iron__thread_pool_destroy(pool);
    IRON_TRY(status);
    for (size_t k = 0; k < file->chunk_count; k++)
        count += file->chunks[k].part_count;
    IRON_TRY(IRON_NEW(&file->parts, count, "the blocks of a file", err));
    for (size_t k = 0; k < file->chunk_count; k++) {
        column_chunk *chunk = &file->chunks[k];

        for (size_t p = 0; p < chunk->part_count; p++) {
            const part *from = &chunk->parts[p];
            iron__table_block block = {.first = table->tokens,
                                       .first_row = table->rows,
                                       .at = from->values_at ? from->values_at : from->at,
                                       .is_direct = from->values_at != 0,
                                       .stored = file->column.stored};

            IRON_TRY(iron__table_add_block(table, &block, err));
            table->tokens += from->tokens;
            table->rows += from->rows;
            file->parts[done++] = *from;
        }
        free(chunk->parts);
        chunk->parts = NULL;
    }
    return IRON_OK;
}

/* Decoding. */

static iron_status read_dictionary_page(reader *r, iron_error *err) {
    workspace *w = r->work;
    iron__stored stored = r->file->column.stored;
    size_t width = iron__stored_bytes(stored), bytes;
    const unsigned char *from;
    page_header p;

    IRON_TRY(read_header(r, r->chunk->dictionary_at, &p, err));
    bytes = p.values * width;
    if (p.type != PAGE_DICTIONARY)
        return refuse_page(r, &p, "it is not a dictionary any more", err);
    if (p.encoding != ENCODING_PLAIN && p.encoding != ENCODING_PLAIN_DICTIONARY)
        return refuse_page(r, &p, "its encoding is not that of dictionaries", err);
    if (p.size != bytes)
        return refuse_page(r, &p, "its size is not that of its number of values", err);
    IRON_TRY(check_crc(r, &p, err));
    IRON_TRY(fetch(r, p.body, p.stored, 0, &from, err));
    IRON_TRY(reserve(&w->stored, bytes, err));
    IRON_TRY(reserve(&w->tokens, p.values * sizeof(uint32_t), err));
    if (is_packed(r, &p) && bytes > 0)
        IRON_TRY(iron__codec_decompress(r->chunk->codec, r->name, from, p.stored, w->stored.data,
                                        bytes, err));
    else
        memcpy(w->stored.data, from, bytes);
    w->dictionary = (token_dictionary){.stored = w->stored.data,
                                       .tokens = (const uint32_t *)(const void *)w->tokens.data,
                                       .count = p.values};
    /* Integers that are not tokens matter only if they are used: each step ends at the next one. */
    for (size_t k = 0; k < p.values; k++) {
        k += iron__stored_convert(stored, w->stored.data + k * width, p.values - k,
                                  w->tokens.data + k * sizeof(uint32_t));
        w->dictionary.has_bad = w->dictionary.has_bad || k < p.values;
    }
    return IRON_OK;
}

/* Reads the chunk's dictionary unless this workspace has it. */
static iron_status read_dictionary(reader *r, iron_error *err) {
    workspace *w = r->work;
    iron__window *before = r->window;
    iron_status status;

    if (w->dictionary_of == r->chunk)
        return IRON_OK;
    w->dictionary_of = NULL;
    r->window = &w->dictionary_page; /* the pages that were read are still needed */
    r->window->block.bytes = 0;
    status = read_dictionary_page(r, err);
    r->window = before;
    if (status == IRON_OK)
        w->dictionary_of = r->chunk;
    return status;
}

/* A block that is being decoded. */
typedef struct decoding {
    reader r;
    const part *part;
    uint64_t first_row;
    bool wants_tokens;
    iron__block *out;
    uint64_t tokens, rows; /* so far */
    size_t places_before;
} decoding;

/* The error for a value that is not a token. */
static iron_status refuse_value(const decoding *d, const stored_values *v, iron_error *err) {
    uint64_t token = d->tokens + v->bad, begun = d->first_row;

    if (d->r.file->column.shape.repetition_max == 0)
        begun += token + 1;
    for (size_t k = d->places_before; k < d->out->place_count && d->out->places[k] <= token; k++)
        begun++;
    return iron__stored_refuse(v->stored, v->bad_value, 0, d->r.name, d->r.file->column_name,
                               begun > 0 ? begun - 1 : 0, err);
}

static iron_status decode_page(decoding *d, const page_header *p, iron_error *err) {
    /* of a flat column, every token is a row: who wants tokens needs no places */
    bool has_places = !d->wants_tokens || d->r.file->column.shape.repetition_max > 0;
    level_tally counted = {.places = has_places ? d->out : NULL, .first = d->tokens};
    body b;

    if (d->wants_tokens && is_dictionary_encoded(p)) {
        if (!d->r.chunk->dictionary_at)
            return refuse_page(&d->r, p, "its row group has no dictionary before it", err);
        IRON_TRY(read_dictionary(&d->r, err));
    }
    IRON_TRY(read_body(&d->r, p, d->wants_tokens, &b, err));
    IRON_TRY(tally(&d->r, p, &b.levels, d->first_row + d->rows, &counted, err));
    if (counted.tokens > d->part->tokens - d->tokens)
        return fail_page(&d->r, p, IRON_E_FORMAT, err,
                         "has more tokens than before; the file was changed while being read");
    if (d->wants_tokens) {
        stored_values values = {.encoding = p->encoding,
                                .stored = d->r.file->column.stored,
                                .from = b.values,
                                .bytes = b.value_bytes,
                                .count = (size_t)counted.tokens,
                                .dictionary = &d->r.work->dictionary,
                                .to = (uint32_t *)(void *)(d->out->data + d->out->bytes)};

        if (!decode_values(&values))
            return values.fault ? refuse_page(&d->r, p, values.fault, err)
                                : refuse_value(d, &values, err);
        d->out->bytes += values.count * sizeof(uint32_t);
    }
    d->tokens += counted.tokens;
    d->rows += counted.rows;
    return IRON_OK;
}

/* Decodes the pages of a block. */
static iron_status decode_part(decoding *d, iron_error *err) {
    uint64_t at = d->part->at, end = at + d->part->bytes;
    const unsigned char *unused;

    if (d->wants_tokens) {
        size_t bytes = (size_t)d->part->tokens * sizeof(uint32_t);

        IRON_TRY(iron__block_reserve(d->out, d->out->bytes + bytes, err));
        IRON_TRY(fetch(&d->r, at, (size_t)d->part->bytes, 0, &unused, err));
    }
    while (at < end) {
        page_header p;

        IRON_TRY(read_header(&d->r, at, &p, err));
        if (is_data(&p))
            IRON_TRY(decode_page(d, &p, err));
        at = p.body + p.stored;
    }
    IRON_FAIL_IF(d->tokens != d->part->tokens || d->rows != d->part->rows || at != end, err,
                 IRON_E_FORMAT,
                 "%.90s: column %.40s has not the same pages at byte %" PRIu64
                 " as before; the file was changed while being read",
                 d->r.name, d->r.file->column_name, d->part->at);
    return IRON_OK;
}

static iron_status decode(const iron__table *table, const iron__input *in, size_t index,
                          bool wants_tokens, iron__block *out, iron_error *err) {
    parquet *file = table->state;
    decoding d = {.part = &file->parts[index],
                  .first_row = table->blocks[index].first_row,
                  .wants_tokens = wants_tokens,
                  .out = out,
                  .places_before = out->place_count};
    iron_status status;

    IRON_TRY(reader_begin(&d.r, file, d.part->chunk, in, err));
    status = decode_part(&d, err);
    reader_end(&d.r);
    return status;
}

static const iron__table_kind kind = {decode, destroy, NULL};

/* The format. */

/* "PAR1" at both ends; of a pipe, or if the end is cut off, the first field of a page header. */
static bool recognise(const iron__candidate *c) {
    const iron__input *file = c->file;
    unsigned char end[MAGIC_BYTES];

    if (c->head_count < MAGIC_BYTES ||
        (memcmp(c->head, MAGIC, MAGIC_BYTES) != 0 && memcmp(c->head, "PARE", MAGIC_BYTES) != 0))
        return false;
    if (c->head_count > MAGIC_BYTES && c->head[MAGIC_BYTES] == 0x15)
        return true;
    return !iron__input_is_pipe(file) && file->bytes >= MAGIC_BYTES + TAIL_BYTES &&
           iron__input_read_at(file, file->bytes - MAGIC_BYTES, end, sizeof end, NULL) == IRON_OK &&
           memcmp(end, c->head, MAGIC_BYTES) == 0;
}

/* Reads the footer's bytes. */
static iron_status read_footer(const iron__candidate *c, file_footer *f, iron_error *err) {
    unsigned char head[MAGIC_BYTES], tail[TAIL_BYTES];
    uint64_t bytes = c->file->bytes, length;

    f->name = c->name;
    IRON_FAIL_IF(bytes < MAGIC_BYTES + TAIL_BYTES, err, IRON_E_FORMAT,
                 "%.100s has %" PRIu64 " bytes; a Parquet file has at least 12", c->name, bytes);
    IRON_TRY(iron__input_read_at(c->file, 0, head, sizeof head, err));
    IRON_TRY(iron__input_read_at(c->file, bytes - TAIL_BYTES, tail, sizeof tail, err));
    IRON_FAIL_IF(memcmp(tail + 4, "PARE", MAGIC_BYTES) == 0, err, IRON_E_UNSUPPORTED,
                 "%.100s is an encrypted Parquet file, which is not read; write it without "
                 "encryption",
                 c->name);
    IRON_FAIL_IF(memcmp(head, MAGIC, MAGIC_BYTES) != 0, err, IRON_E_FORMAT,
                 "%.100s at byte 0: %02x %02x %02x %02x, expected Parquet's magic PAR1", c->name,
                 head[0], head[1], head[2], head[3]);
    IRON_FAIL_IF(memcmp(tail + 4, MAGIC, MAGIC_BYTES) != 0, err, IRON_E_FORMAT,
                 "%.100s does not end with Parquet's magic PAR1, but with %02x %02x %02x %02x; is "
                 "it cut off?",
                 c->name, tail[4], tail[5], tail[6], tail[7]);
    length = iron__load_u32(tail);
    IRON_FAIL_IF(length > bytes - MAGIC_BYTES - TAIL_BYTES, err, IRON_E_FORMAT,
                 "%.100s at byte %" PRIu64 ": its footer is said to have %" PRIu64
                 " bytes, more than the file; it is damaged",
                 c->name, bytes - TAIL_BYTES, length);
    IRON_FAIL_IF(length > FOOTER_BYTES_MAX, err, IRON_E_UNSUPPORTED,
                 "%.100s has a footer of %" PRIu64 " bytes, more than 1 GiB; write it with larger "
                 "row groups",
                 c->name, length);
    f->at = bytes - TAIL_BYTES - length;
    f->bytes = (size_t)length;
    f->data = malloc(f->bytes + 1);
    IRON_FAIL_IF(!f->data, err, IRON_E_NOMEM, "out of memory for a footer of %zu bytes", f->bytes);
    return iron__input_read_at(c->file, f->at, f->data, f->bytes, err);
}

static iron_status examine_file(const iron__candidate *c, file_footer *footer,
                                iron__format_layout *layout, iron_error *err) {
    iron__table *table;
    parquet *file;
    size_t chosen;

    IRON_TRY(read_footer(c, footer, err));
    IRON_TRY(parse_footer(footer, err));
    iron__format_reason(c, "magic PAR1 at both ends; footer of %zu bytes", footer->bytes);
    IRON_TRY(iron__table_create(&kind, sizeof *file, &layout->table, err));
    table = layout->table;
    file = table->state;
    pthread_mutex_init(&file->mutex, NULL);
    IRON_TRY(iron__format_choose(c, footer->columns, footer->column_count, &chosen, &table->column,
                                 err));
    if (!table->column) {
        table->rows = footer->rows;
        iron__layout_use_table(layout);
        return IRON_OK;
    }
    file->column_name = table->column;
    file->column = footer->details[chosen];
    table->dtype = iron__stored_dtype(file->column.stored);
    table->stored_as = iron__stored_signed(file->column.stored);
    IRON_TRY(list_chunks(footer, chosen, &file->chunks, &file->chunk_count, err));
    for (size_t k = 0; k < file->chunk_count; k++)
        /* list_chunks has set them: NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
        if (file->chunks[k].codec != IRON_CODEC_NONE &&
            (k == 0 || file->chunks[k].codec != file->chunks[k - 1].codec))
            IRON_TRY(iron__codec_load(file->chunks[k].codec, c->name, err));
    IRON_TRY(examine_pages(c->file, file, table, err));
    iron__format_reason(c, "%" PRIu64 " row%s in %zu row group%s; pages and levels agree with them",
                        table->rows, table->rows == 1 ? "" : "s", file->chunk_count,
                        file->chunk_count == 1 ? "" : "s");
    iron__layout_use_table(layout);
    return IRON_OK;
}

static iron_status examine(iron__candidate *c, iron__format_layout *layout, iron_error *err) {
    file_footer footer = {.data = NULL};
    iron_status status;

    IRON_FAIL_IF(iron__input_is_pipe(c->file), err, IRON_E_UNSUPPORTED,
                 "%.100s: Parquet is read from its end: it needs a file, not a pipe; save it to a "
                 "file first",
                 c->name);
    status = examine_file(c, &footer, layout, err);
    iron__table_columns_free(footer.columns, footer.column_count);
    free(footer.details);
    free(footer.elements);
    free(footer.data);
    return status;
}

const iron__format iron__format_parquet = {"parquet", recognise, examine, NULL};
