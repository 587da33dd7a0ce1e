/* SPDX-License-Identifier: MIT */
/*
 * json_read.c: the grammar of json_read.h; its words are in json_scan.c.
 *
 * Memory. Before reading, one look over the text bounds what it can need: every value but the first
 * comes after a comma or an opening bracket, takes two bytes with what separates it, and a string
 * takes no more bytes than it is written with, quotes included. So the tree is one block:
 *
 *     | root | settled values ->      <- values of open brackets | bytes of strings -> |
 *
 * Values whose array or object is still open wait on a stack that grows from the right end of the
 * same row; when the bracket closes they are moved, as one run, behind the settled ones on the
 * left. Settled and waiting together are never more than there are values, so the two never meet. A
 * run is what makes looking fast: by index in arrays, by halving in objects, whose members are
 * sorted; sorting also brings equal names together, so nobody compares all with all.
 *
 * Depth is limited, so the recursion of the grammar is too.
 */
#include "core/json_scan.h"

#include "core/fail.h"
#include "core/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Counts values and bytes of strings; never too few for what the reader takes in, also of a text
 * that goes wrong somewhere. */
static void measure(const char *text, size_t length, size_t *values, size_t *bytes) {
    /* Of what is closed, a value and its separator are two bytes; what is open is not deep. */
    size_t most = length / 2 + 2 + IRON_JSON_DEPTH_MAX;
    bool is_string = false;

    *values = 1;
    *bytes = 0;
    for (size_t k = 0; k < length; k++) {
        char c = text[k];

        if (c == '"')
            is_string = !is_string;
        if (is_string || c == '"')
            ++*bytes;
        else if (c == ',' || c == '[' || c == '{')
            ++*values;
        if (is_string && c == '\\' && k + 1 < length) {
            k++;
            ++*bytes;
        }
    }
    if (*values > most)
        *values = most;
}

static iron_status read_value(iron__json_reader *r, iron__json *out, iron_error *err);

static void push(iron__json_reader *r, const iron__json *value) {
    assert(r->waiting > r->settled);
    *--r->waiting = *value;
}

static void reverse(iron__json *run, size_t count) {
    for (size_t k = 0; k < count / 2; k++) {
        iron__json kept = run[k];

        run[k] = run[count - 1 - k];
        run[count - 1 - k] = kept;
    }
}

/* Moves the run of the last `count` values from the stack to where it stays. */
static void settle(iron__json_reader *r, iron__json *out, iron__json_kind kind, size_t count) {
    memmove(r->settled, r->waiting, count * sizeof *r->settled);
    *out = (iron__json){.kind = kind, .count = (uint32_t)count, .items = r->settled};
    r->settled += count;
    r->waiting += count;
}

/* Takes the comma between two values, or the closing bracket: *is_open says which. */
static iron_status read_separator(iron__json_reader *r, char close, bool *is_open,
                                  iron_error *err) {
    iron__json_skip_blanks(r);
    *is_open = r->at < r->end && *r->at == ',';
    if (!*is_open && (r->at == r->end || *r->at != close))
        return iron__json_refuse(r, err,
                                 close == ']' ? "expected ',' or ']'" : "expected ',' or '}'");
    r->at++;
    return IRON_OK;
}

/* Takes the opening bracket, and the closing one if it follows. */
static iron_status read_opening(iron__json_reader *r, char close, bool *is_open, iron_error *err) {
    if (++r->depth > IRON_JSON_DEPTH_MAX)
        return iron__json_refuse(r, err, "nested more than 64 deep");
    r->at++;
    iron__json_skip_blanks(r);
    *is_open = r->at == r->end || *r->at != close;
    if (!*is_open)
        r->at++;
    return IRON_OK;
}

static iron_status read_array(iron__json_reader *r, iron__json *out, iron_error *err) {
    bool is_open = false;
    size_t count = 0;

    IRON_TRY(read_opening(r, ']', &is_open, err));
    for (; is_open; count++) {
        iron__json value;

        IRON_TRY(read_value(r, &value, err));
        push(r, &value);
        IRON_TRY(read_separator(r, ']', &is_open, err));
    }
    reverse(r->waiting, count);
    settle(r, out, IRON_JSON_ARRAY, count);
    r->depth--;
    return IRON_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const iron__json *)a)->name, ((const iron__json *)b)->name);
}

/* Sorts the members that wait; the error points at the bracket that ends the object. */
static iron_status sort_members(iron__json_reader *r, size_t count, iron_error *err) {
    qsort(r->waiting, count, sizeof *r->waiting, by_name);
    for (size_t k = 1; k < count; k++)
        if (by_name(&r->waiting[k - 1], &r->waiting[k]) == 0) {
            r->at--;
            return iron__json_refuse(r, err, "two members of this object have the same name");
        }
    return IRON_OK;
}

static iron_status read_member(iron__json_reader *r, iron__json *out, iron_error *err) {
    iron__json name;

    iron__json_skip_blanks(r);
    if (r->at == r->end || *r->at != '"')
        return iron__json_refuse(r, err, "expected a member's name in quotes");
    IRON_TRY(iron__json_read_string(r, &name, err));
    iron__json_skip_blanks(r);
    if (r->at == r->end || *r->at != ':')
        return iron__json_refuse(r, err, "expected ':'");
    r->at++;
    IRON_TRY(read_value(r, out, err));
    out->name = name.text;
    return IRON_OK;
}

static iron_status read_object(iron__json_reader *r, iron__json *out, iron_error *err) {
    bool is_open = false;
    size_t count = 0;

    IRON_TRY(read_opening(r, '}', &is_open, err));
    for (; is_open; count++) {
        iron__json member;

        IRON_TRY(read_member(r, &member, err));
        push(r, &member);
        IRON_TRY(read_separator(r, '}', &is_open, err));
    }
    IRON_TRY(sort_members(r, count, err));
    settle(r, out, IRON_JSON_OBJECT, count);
    r->depth--;
    return IRON_OK;
}

static iron_status read_word(iron__json_reader *r, const char *word, iron__json_kind kind,
                             iron__json *out, iron_error *err) {
    size_t length = strlen(word);

    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0)
        return iron__json_refuse(r, err, "expected a value");
    r->at += length;
    *out = (iron__json){.kind = kind};
    return IRON_OK;
}

static iron_status read_value(iron__json_reader *r, iron__json *out, iron_error *err) {
    iron__json_skip_blanks(r);
    switch (r->at < r->end ? *r->at : '\0') {
    case '{':
        return read_object(r, out, err);
    case '[':
        return read_array(r, out, err);
    case '"':
        return iron__json_read_string(r, out, err);
    case 't':
        return read_word(r, "true", IRON_JSON_TRUE, out, err);
    case 'f':
        return read_word(r, "false", IRON_JSON_FALSE, out, err);
    case 'n':
        return read_word(r, "null", IRON_JSON_NULL, out, err);
    default:
        return iron__json_read_number(r, out, err);
    }
}

static iron_status read_text(iron__json_reader *r, iron__json *root, iron_error *err) {
    IRON_TRY(read_value(r, root, err));
    iron__json_skip_blanks(r);
    if (r->at < r->end)
        return iron__json_refuse(r, err, "expected nothing more after the value");
    return IRON_OK;
}

iron_status iron__json_parse(const char *text, size_t length, const iron_allocator *allocator,
                             const iron__json **out, iron_error *err) {
    size_t values, bytes;
    iron__json *block;
    iron__json_reader r = {.start = text, .at = text, .end = text + length};
    iron_status status;

    *out = NULL;
    IRON_FAIL_IF(length > IRON_JSON_BYTES_MAX, err, IRON_E_FORMAT,
                 "a JSON text of %zu bytes is more than is read, %zu", length, IRON_JSON_BYTES_MAX);
    measure(text, length, &values, &bytes);
    block = iron__allocate(allocator, 1, values * sizeof *block + bytes, "a JSON tree", err);
    if (!block)
        return IRON_E_NOMEM;
    r.settled = block + 1;
    r.waiting = block + values;
    r.strings = (char *)(block + values);
    status = read_text(&r, block, err);
    if (status == IRON_OK)
        *out = block;
    else
        iron__release(allocator, block);
    return status;
}

void iron__json_destroy(const iron_allocator *allocator, const iron__json *root) {
    iron__release(allocator, (void *)(uintptr_t)root);
}
