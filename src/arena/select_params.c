/* SPDX-License-Identifier: MIT */
/*
 * select_params.c: see select_params.h. Strict, as select.c is: a value that is not understood is
 * refused with what would do; one that is named twice is raced once.
 */
#include "arena/select_params.h"

#include "arena/params.h"
#include "core/fail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_ROOM 64u

static size_t name_length(const char *param) { return strcspn(param, "="); }

iron_status iron__params_check(const char *const *params, size_t count, iron_error *err) {
    for (size_t k = 0; k < count; k++) {
        size_t length = name_length(params[k]);

        IRON_FAIL_IF(length == 0 || params[k][length] == '\0' || params[k][length + 1] == '\0', err,
                     IRON_E_ARG, "parameter '%.60s' is no NAME=VALUE; iron arena --list shows them",
                     params[k]);
        for (size_t other = 0; other < k; other++)
            IRON_FAIL_IF(name_length(params[other]) == length &&
                             strncmp(params[other], params[k], length) == 0,
                         err, IRON_E_ARG,
                         "parameter '%.*s' is given twice; put its values into one, with commas",
                         length < 60 ? (int)length : 60, params[k]);
    }
    return IRON_OK;
}

bool iron__param_is_of(const char *param, const iron__axis *axis) {
    size_t length = name_length(param);

    return strlen(axis->name) == length && strncmp(param, axis->name, length) == 0;
}

/* Adds to a text that ends with a zero; what does not fit is cut. */
static void add_text(char *text, size_t size, const char *before, const char *more) {
    size_t used = strlen(text);

    snprintf(text + used, size - used, "%s%s", before, more);
}

static iron__param_value value_at(const iron__axis *axis, size_t index) {
    iron__param_value v;

    if (!axis->words)
        return iron__param_number(axis->numbers[index]);
    snprintf(v.text, sizeof v.text, "%s", axis->words[index]);
    return v;
}

void iron__axis_list(const iron__axis *axis, char *text, size_t size) {
    text[0] = '\0';
    for (size_t k = 0; k < axis->count; k++)
        add_text(text, size, k > 0 ? ", " : "", value_at(axis, k).text);
}

void iron__axis_takes(const iron__axis *axis, char *text, size_t size) {
    text[0] = '\0';
    if (!axis->words) {
        snprintf(text, size, "%snumbers from %s to %s", axis->is_whole ? "whole " : "",
                 iron__param_number(axis->least).text, iron__param_number(axis->most).text);
        return;
    }
    for (size_t k = 0; k < axis->count; k++)
        add_text(text, size, k == 0 ? "" : k + 1 == axis->count ? " or " : ", ", axis->words[k]);
}

static bool read_word(const iron__axis *axis, const char *value, double *at) {
    for (size_t k = 0; k < axis->count; k++)
        if (strcmp(axis->words[k], value) == 0) {
            *at = (double)k;
            return true;
        }
    return false;
}

/* Decimal notation alone: strtod would take hexadecimal, "inf" and blanks, too. */
static bool read_number(const iron__axis *axis, const char *value, double *at) {
    char *end = NULL;

    if (strspn(value, "+-.0123456789eE") != strlen(value) || !strpbrk(value, "0123456789"))
        return false;
    errno = 0;
    *at = strtod(value, &end);
    if (*end || errno != 0 || !(*at >= axis->least && *at <= axis->most))
        return false;
    return !axis->is_whole || iron__number_is_whole(*at);
}

static bool has_value(const iron__axis_values *values, double at) {
    for (size_t k = 0; k < values->count; k++)
        if (!(values->at[k] < at || values->at[k] > at))
            return true;
    return false;
}

static iron_status add_value(const iron__op *op, const iron__axis *axis, const char *value,
                             iron__axis_values *out, iron_error *err) {
    double at = 0;
    char takes[200];

    iron__axis_takes(axis, takes, sizeof takes);
    IRON_FAIL_IF(!(axis->words ? read_word(axis, value, &at) : read_number(axis, value, &at)), err,
                 IRON_E_ARG, "%s: %s is '%.60s'; it must be %s", op->name, axis->name, value,
                 takes);
    if (has_value(out, at))
        return IRON_OK;
    IRON_FAIL_IF(out->count == IRON_AXIS_VALUES_MAX, err, IRON_E_ARG,
                 "more than %u values of %s; use fewer", IRON_AXIS_VALUES_MAX, axis->name);
    out->at[out->count++] = at;
    return IRON_OK;
}

/* Values with commas between them; too long a one is cut, and unknown then. */
static iron_status add_values(const iron__op *op, const iron__axis *axis, const char *list,
                              iron__axis_values *out, iron_error *err) {
    char value[VALUE_ROOM];

    for (const char *at = list, *end; at; at = *end ? end + 1 : NULL) {
        end = at + strcspn(at, ",");
        snprintf(value, sizeof value, "%.*s",
                 end - at < (ptrdiff_t)VALUE_ROOM ? (int)(end - at) : (int)VALUE_ROOM, at);
        IRON_TRY(add_value(op, axis, value, out, err));
    }
    return IRON_OK;
}

iron_status iron__select_values(const iron__op *op, const iron__axis *axis,
                                const char *const *params, size_t param_count, bool is_wide,
                                iron__axis_values *out, iron_error *err) {
    *out = (iron__axis_values){.count = 0};
    for (size_t k = 0; k < param_count; k++) {
        if (!iron__param_is_of(params[k], axis))
            continue;
        out->is_asked = true;
        return add_values(op, axis, params[k] + name_length(params[k]) + 1, out, err);
    }
    for (size_t k = 0; k < axis->count && out->count < IRON_AXIS_VALUES_MAX; k++)
        if (is_wide || k == axis->telling)
            out->at[out->count++] = axis->words ? (double)k : axis->numbers[k];
    return IRON_OK;
}
