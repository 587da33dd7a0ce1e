/* SPDX-License-Identifier: MIT */
/*
 * json_read.h: a JSON text (RFC 8259) as a tree, for reports on disk and bodies from the network.
 *
 * Strict: UTF-8 throughout, no comments, no trailing commas, nothing after the value. Narrower than
 * the RFC where it leaves room: a name stands once in an object, strings hold no zero character (so
 * they are C strings), numbers are finite doubles written with at most IRON_JSON_DIGITS_MAX
 * characters, nesting and size have limits. What is refused is refused with line and column.
 *
 *   const iron__json *root;
 *   IRON_TRY(iron__json_parse(text, length, allocator, &root, err));
 *   const char *name = iron__json_text(iron__json_member(root, "name"));
 *   iron__json_destroy(allocator, root);
 *
 * Lookups take NULL and values of any kind and answer "not there", so they may be chained without
 * a check at every step.
 */
#ifndef IRON_CORE_JSON_READ_H
#define IRON_CORE_JSON_READ_H

#include <iron/iron.h>

#include <stdbool.h>

#define IRON_JSON_BYTES_MAX  ((size_t)256 << 20)
#define IRON_JSON_DEPTH_MAX  64u
#define IRON_JSON_DIGITS_MAX 128u

typedef enum iron__json_kind {
    IRON_JSON_NULL,
    IRON_JSON_FALSE,
    IRON_JSON_TRUE,
    IRON_JSON_NUMBER,
    IRON_JSON_STRING,
    IRON_JSON_ARRAY,
    IRON_JSON_OBJECT
} iron__json_kind;

typedef struct iron__json iron__json;

struct iron__json {
    iron__json_kind kind;
    uint32_t count;   /* string: bytes; array: values; object: members */
    const char *name; /* of a member; else NULL */
    union {
        double number;
        const char *text;        /* ends with a zero */
        const iron__json *items; /* members are sorted by name */
    };
};

/* The tree is one block of memory; a text of n bytes takes at most 13 n + 2 KiB. IRON_E_FORMAT:
 * "line 3, column 7: expected ',' or '}'", where columns count characters. The text is not needed
 * after. */
iron_status iron__json_parse(const char *text, size_t length, const iron_allocator *allocator,
                             const iron__json **out, iron_error *err);
void iron__json_destroy(const iron_allocator *allocator, const iron__json *root);

/* The member of that name; NULL if there is none, or `object` is no object. */
const iron__json *iron__json_member(const iron__json *object, const char *name);
/* The value at index; NULL past the last, or if `array` is no array. */
const iron__json *iron__json_at(const iron__json *array, size_t index);
/* How many values are in an array; 0 for anything else. */
size_t iron__json_length(const iron__json *array);

/* NULL if it is no string. */
const char *iron__json_text(const iron__json *value);
/* The value if it is of that kind; else false, and *out is left alone. */
bool iron__json_number(const iron__json *value, double *out);
bool iron__json_flag(const iron__json *value, bool *out);
/* A whole number 0 ... max; max at most 2^53, up to which every one is exact. */
bool iron__json_whole(const iron__json *value, uint64_t max, uint64_t *out);

#endif
