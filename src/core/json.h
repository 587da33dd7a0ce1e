/* SPDX-License-Identifier: MIT */
/*
 * json.h: a JSON parser for reports on disk and request bodies, and (through <iron/iron_json.h>)
 * the writer.
 *
 * The parser is strict (RFC 8259): UTF-8 throughout, no comments, no trailing commas, nothing after
 * the value. Where the RFC leaves a choice it accepts less: names in an object are unique, strings
 * contain no zero character (so they are C strings), numbers are finite doubles of at most
 * IRON_JSON_DIGITS_MAX characters, and nesting and size are limited. Errors give line and column.
 *
 *   const iron__json *root;
 *   IRON_TRY(iron__json_parse(text, length, allocator, &root, err));
 *   const char *name = iron__json_get_text(iron__json_member(root, "name"));
 *   iron__json_destroy(allocator, root);
 *
 * Lookups accept NULL and values of any kind and then return "not found", so they can be chained
 * without a check at every step.
 */
#ifndef IRON_CORE_JSON_H
#define IRON_CORE_JSON_H

#include <iron/iron.h>
#include <iron/iron_json.h>

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

/* Parses a text into a tree in one block of memory: at most 13 n + 2 KiB for a text of n bytes. The
 * tree does not refer to the text. IRON_E_FORMAT: "line 3, column 7: expected ',' or '}'", where
 * columns count characters. */
iron_status iron__json_parse(const char *text, size_t length, const iron_allocator *allocator,
                             const iron__json **out, iron_error *err);
void iron__json_destroy(const iron_allocator *allocator, const iron__json *root);

/* The member with that name; NULL if there is none or `object` is not an object. */
const iron__json *iron__json_member(const iron__json *object, const char *name);
/* The value at the index; NULL past the end or if `array` is not an array. */
const iron__json *iron__json_at(const iron__json *array, size_t index);
/* The number of values in an array; 0 for any other kind. */
size_t iron__json_length(const iron__json *array);

/* NULL if the value is not a string. */
const char *iron__json_get_text(const iron__json *value);
/* These return false and leave *out unchanged if the value is of another kind. */
bool iron__json_get_number(const iron__json *value, double *out);
bool iron__json_get_bool(const iron__json *value, bool *out);
/* A whole number 0 ... max; max is at most 2^53, up to which doubles are exact. */
bool iron__json_get_whole(const iron__json *value, uint64_t max, uint64_t *out);

/* The length of the UTF-8 character at p, which has at most `left` bytes; 0 if it is not valid
 * UTF-8 (table 3-7 of the Unicode standard). */
static inline size_t iron__utf8_length(const unsigned char *p, size_t left) {
    size_t length = p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
    unsigned char low = 0x80, high = 0xBF;

    if (p[0] < 0x80)
        return 1;
    if (length == 0 || left < length)
        return 0;
    low = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : low;   /* longer than necessary */
    high = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : high; /* surrogates; past the last */
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t k = 2; k < length; k++)
        if ((p[k] & 0xC0) != 0x80)
            return 0;
    return length;
}

/* Writes a character as UTF-8; returns its length. */
size_t iron__utf8_put(uint32_t character, char to[4]);

/* Whether the text is valid UTF-8, so that the writer stores it unchanged. */
bool iron__json_is_utf8(const char *text);

#endif
