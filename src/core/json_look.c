/* SPDX-License-Identifier: MIT */
/*
 * json_look.c: finding things in a tree that json_read.c made. Nothing here fails: what is not
 * there, or of another kind, is NULL or false, and NULL may be asked for things too.
 */
#include "core/json_read.h"

#include <string.h>

const iron__json *iron__json_member(const iron__json *object, const char *name) {
    size_t low = 0, high = object && object->kind == IRON_JSON_OBJECT ? object->count : 0;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, object->items[middle].name);

        if (order == 0)
            return &object->items[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

size_t iron__json_length(const iron__json *array) {
    return array && array->kind == IRON_JSON_ARRAY ? array->count : 0;
}

const iron__json *iron__json_at(const iron__json *array, size_t index) {
    return index < iron__json_length(array) ? &array->items[index] : NULL;
}

const char *iron__json_text(const iron__json *value) {
    return value && value->kind == IRON_JSON_STRING ? value->text : NULL;
}

bool iron__json_number(const iron__json *value, double *out) {
    bool is_number = value && value->kind == IRON_JSON_NUMBER;

    if (is_number)
        *out = value->number;
    return is_number;
}

bool iron__json_flag(const iron__json *value, bool *out) {
    bool is_flag = value && (value->kind == IRON_JSON_TRUE || value->kind == IRON_JSON_FALSE);

    if (is_flag)
        *out = value->kind == IRON_JSON_TRUE;
    return is_flag;
}

bool iron__json_whole(const iron__json *value, uint64_t max, uint64_t *out) {
    double number;

    if (!iron__json_number(value, &number) || !(number >= 0 && number <= (double)max) ||
        (double)(uint64_t)number != number)
        return false;
    *out = (uint64_t)number;
    return true;
}
