/* SPDX-License-Identifier: MIT */
/* cmd_quantize.c: `iron quantize`: values to lattice points, a line each. */
#include "command.h"
#include "json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_ROOM 512u

typedef struct quantizer {
    const iron_lattice *lattice;
    bool is_xor;
    bool wants_json;
    double *values, *points; /* what JSON prints at the end */
    size_t count, capacity;
} quantizer;

static iron_status quantize_one(const quantizer *q, const char *text, double *value, double *point,
                                iron_error *err) {
    iron_status status;
    uint64_t number;

    if (!q->is_xor) {
        status = parse_real(text, value, err);
        if (status == IRON_OK)
            *point = iron_lattice_quantize_real(q->lattice, *value);
        return status;
    }
    status = parse_number("value", text, &number, err);
    if (status != IRON_OK)
        return status;
    if (number > UINT32_MAX)
        return usage(err, "value %.40s is beyond 32 bits; XOR values are 0 to 4294967295", text);
    *value = (double)number;
    *point = iron_lattice_quantize_xor(q->lattice, (uint32_t)number);
    return IRON_OK;
}

static bool grow(quantizer *q) {
    size_t capacity = q->capacity ? 2 * q->capacity : 64;
    double *values = realloc(q->values, capacity * sizeof *values);
    double *points;

    if (values)
        q->values = values;
    points = values ? realloc(q->points, capacity * sizeof *points) : NULL;
    if (!points)
        return false;
    q->points = points;
    q->capacity = capacity;
    return true;
}

/* A line now, or an entry for JSON later. */
static iron_status take_value(quantizer *q, const char *text, iron_error *err) {
    double value = 0, point = 0;
    iron_status status = quantize_one(q, text, &value, &point, err);

    if (status != IRON_OK)
        return status;
    if (!q->wants_json) {
        printf("%.0f\n", point);
        return IRON_OK;
    }
    if (q->count == q->capacity && !grow(q))
        return usage(err, "out of memory after %zu values; give fewer at a time", q->count);
    q->values[q->count] = value;
    q->points[q->count++] = point;
    return IRON_OK;
}

static bool is_blank(int c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* The next word of standard input; *length is 0 at the end, WORD_ROOM when it does not fit. */
static void next_word(char word[WORD_ROOM], size_t *length) {
    int c;

    do
        c = getchar();
    while (is_blank(c));
    for (*length = 0; c != EOF && !is_blank(c) && *length < WORD_ROOM; c = getchar())
        word[(*length)++] = (char)c;
    if (*length < WORD_ROOM)
        word[*length] = '\0';
}

static iron_status take_stdin(quantizer *q, iron_error *err) {
    char word[WORD_ROOM];
    iron_status status = IRON_OK;
    size_t length;

    for (next_word(word, &length); length > 0 && status == IRON_OK; next_word(word, &length)) {
        if (length == WORD_ROOM || strlen(word) != length)
            return usage(err, "value '%.40s...' is no number; give decimals with blanks between",
                         word);
        status = take_value(q, word, err);
    }
    if (status == IRON_OK && ferror(stdin))
        return usage(err, "cannot read standard input: %s", strerror(errno));
    return status;
}

/* Arguments are all checked before the first line is printed. */
static iron_status take_arguments(quantizer *q, const args *a, iron_error *err) {
    iron_status status = IRON_OK;

    for (size_t k = 0; k < a->value_count && status == IRON_OK; k++) {
        double value, point;

        status = quantize_one(q, a->values[k], &value, &point, err);
    }
    for (size_t k = 0; k < a->value_count && status == IRON_OK; k++)
        status = take_value(q, a->values[k], err);
    return status;
}

static void print_json(const quantizer *q) {
    json j = {0};

    json_open(&j, NULL, '{');
    json_text(&j, "kind", q->is_xor ? "xor" : "real");
    json_open(&j, "values", '[');
    for (size_t k = 0; k < q->count; k++)
        json_real(&j, NULL, "%.17g", q->values[k]);
    json_close(&j, ']');
    json_open(&j, "points", '[');
    for (size_t k = 0; k < q->count; k++)
        json_real(&j, NULL, "%.0f", q->points[k]);
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

static iron_status quantize_all(quantizer *q, const args *a, iron_error *err) {
    bool is_stdin = a->value_count == 1 && strcmp(a->values[0], "-") == 0;
    iron_status status = is_stdin ? take_stdin(q, err) : take_arguments(q, a, err);

    if (status == IRON_OK && q->wants_json)
        print_json(q);
    free(q->values);
    free(q->points);
    return status;
}

static iron_status run(int argc, char **argv, iron_error *err) {
    const char *kind = "real", *lattice_text = NULL;
    quantizer q = {0};
    const option options[] = {
        {"kind", OPTION_TEXT, &kind, NULL},
        {"lattice", OPTION_TEXT, &lattice_text, NULL},
        {"json", OPTION_FLAG, &q.wants_json, NULL},
    };
    args a = {.options = options, .option_count = COUNT(options)};
    uint32_t points[LATTICE_ROOM], count = 0;
    iron_lattice *lattice = NULL;
    iron_status status;
    bool is_done;

    status = command_args(&command_quantize, &a, argc, argv, &is_done, err);
    if (is_done)
        return status;
    q.is_xor = strcmp(kind, "xor") == 0;
    if (!q.is_xor && strcmp(kind, "real") != 0)
        return usage(err, "kind '%.40s' is unknown; use real or xor", kind);
    if (a.value_count == 0)
        return usage(err, "no values; give some, or - to read them from standard input");
    if (lattice_text && (status = parse_lattice(lattice_text, points, &count, err)) != IRON_OK)
        return status;
    status = iron_lattice_create(lattice_text ? points : NULL, count, &lattice, err);
    if (status != IRON_OK)
        return status;
    q.lattice = lattice;
    status = quantize_all(&q, &a, err);
    iron_lattice_destroy(lattice);
    return status;
}

const command command_quantize = {
    "quantize", "prints the lattice point of each value",
    "usage: iron quantize [--kind real|xor] [--lattice A,B,...] [--json] VALUE...|-\n\n"
    "Prints a line a value: its lattice point.\n\n"
    "  --kind real       0 for 0, else the point nearest to |value|, with its sign (default);\n"
    "                    a tie goes to the lower point\n"
    "  --kind xor        a 32-bit number folded into the lattice's range, then the nearest point\n"
    "  --lattice A,B,... 2 to 64 strictly increasing points in 1 to 65535\n"
    "                    (default 7,15,23,31,47,63,95,127,191,255,383,511)\n"
    "  -                 reads values from standard input\n\n"
    "example: iron quantize -11.5 446.9 1e9\n",
    run};
