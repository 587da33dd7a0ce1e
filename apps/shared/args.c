/* SPDX-License-Identifier: MIT */
/* args.c: see args.h. Strict on purpose: what is not understood is refused, never skipped. */
#include "args.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

iron_status usage(iron_error *err, const char *format, ...) {
    va_list list;

    err->status = IRON_E_ARG;
    err->native = 0;
    va_start(list, format);
    vsnprintf(err->text, sizeof err->text, format, list);
    va_end(list);
    return IRON_E_ARG;
}

iron_status parse_number(const char *what, const char *text, uint64_t *value, iron_error *err) {
    const char *at = text;

    *value = 0;
    for (; isdigit((unsigned char)*at); at++)
        if (__builtin_mul_overflow(*value, 10u, value) ||
            __builtin_add_overflow(*value, (uint64_t)(*at - '0'), value))
            return usage(err, "%.60s %.40s is beyond 64 bits; give a smaller number", what, text);
    if (at == text || *at)
        return usage(err, "%.60s '%.40s' is no number; give plain decimal digits", what, text);
    return IRON_OK;
}

iron_status parse_real(const char *text, double *value, iron_error *err) {
    char *end = NULL;

    /* strtod alone would take hexadecimal, "inf" and "nan" too */
    if (strspn(text, "+-.0123456789eE") != strlen(text) || !strpbrk(text, "0123456789"))
        return usage(err, "value '%.40s' is no number; give a decimal like -11.5", text);
    errno = 0;
    *value = strtod(text, &end);
    if (*end)
        return usage(err, "value '%.40s' is no number; give a decimal like -11.5", text);
    if (!isfinite(*value))
        return usage(err, "value %.40s is too large; give a finite number", text);
    /* too small for a double is not zero: it still has a sign and a nearest point */
    if (*value == 0 && errno == ERANGE)
        *value = text[0] == '-' ? -DBL_MIN : DBL_MIN;
    return IRON_OK;
}

iron_status parse_lattice(const char *text, uint32_t points[LATTICE_ROOM], uint32_t *count,
                          iron_error *err) {
    *count = 0;
    for (const char *at = text;;) {
        size_t length = strcspn(at, ",");
        char item[24];
        uint64_t point;

        if (length >= sizeof item)
            return usage(err, "lattice point '%.30s' is no point; points are 1 to 65535", at);
        memcpy(item, at, length);
        item[length] = '\0';
        if (parse_number("lattice point", item, &point, err) != IRON_OK)
            return err->status;
        if (point > UINT32_MAX)
            return usage(err, "lattice point %s is too large; points are 1 to 65535", item);
        if (*count < LATTICE_ROOM)
            points[(*count)++] = (uint32_t)point;
        if (at[length] == '\0')
            return IRON_OK;
        at += length + 1;
    }
}

iron_status parse_positions(const char *text, iron_positions *positions, iron_error *err) {
    if (strcmp(text, "stream") == 0)
        *positions = IRON_POSITIONS_STREAM;
    else if (strcmp(text, "batch") == 0)
        *positions = IRON_POSITIONS_BATCH;
    else
        return usage(err, "positions '%.40s' is unknown; use stream or batch", text);
    return IRON_OK;
}

static const option *find_option(const args *a, const char *name, size_t length) {
    for (size_t k = 0; k < a->option_count; k++)
        if (strlen(a->options[k].name) == length && strncmp(a->options[k].name, name, length) == 0)
            return &a->options[k];
    return NULL;
}

static bool is_value(const char *text) {
    return text[0] != '-' || text[1] == '\0' || text[1] == '.' || isdigit((unsigned char)text[1]);
}

static iron_status append(const option *o, const char *value, iron_error *err) {
    text_list *list = o->target;

    if (list->count == LIST_ROOM)
        return usage(err, "option --%s is there more than %u times; use fewer", o->name, LIST_ROOM);
    list->texts[list->count++] = value;
    return IRON_OK;
}

static iron_status store(const option *o, const char *value, iron_error *err) {
    char what[64];

    if (o->given)
        *o->given = true;
    if (o->kind == OPTION_LIST)
        return append(o, value, err);
    if (o->kind == OPTION_TEXT)
        *(const char **)o->target = value;
    if (o->kind != OPTION_NUMBER)
        return IRON_OK;
    snprintf(what, sizeof what, "--%s", o->name);
    return parse_number(what, value, (uint64_t *)o->target, err);
}

/* One option at argv[*k]; moves *k past a value taken from the next argument. */
static iron_status take_option(args *a, int argc, char **argv, int *k, iron_error *err) {
    const char *text = argv[*k];
    const char *name = strcmp(text, "-o") == 0 ? "output" : text[1] == '-' ? text + 2 : text;
    size_t length = strcspn(name, "=");
    const option *o = find_option(a, name, length);

    if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) {
        a->wants_help = true;
        return IRON_OK;
    }
    if (!o)
        return usage(err, "unknown option '%.60s'; --help lists the options", text);
    if (o->kind == OPTION_FLAG) {
        if (name[length])
            return usage(err, "option --%s takes no value, and has '%.40s'", o->name, text);
        *(bool *)o->target = true;
        if (o->given)
            *o->given = true;
        return IRON_OK;
    }
    if (name[length])
        return store(o, name + length + 1, err);
    if (*k + 1 >= argc)
        return usage(err, "option %.60s needs a value; --help shows which", text);
    return store(o, argv[++*k], err);
}

iron_status args_parse(args *a, int argc, char **argv, iron_error *err) {
    bool has_ended = false;

    a->values = argv;
    a->value_count = 0;
    a->wants_help = false;
    for (int k = 0; k < argc; k++) {
        if (has_ended || is_value(argv[k])) {
            a->values[a->value_count++] = argv[k];
        } else if (strcmp(argv[k], "--") == 0) {
            has_ended = true;
        } else {
            iron_status status = take_option(a, argc, argv, &k, err);

            if (status != IRON_OK)
                return status;
        }
    }
    return IRON_OK;
}
