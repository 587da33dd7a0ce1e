/* SPDX-License-Identifier: MIT */
/* cmd_quantize.c: `iron quantize`: prints the lattice point of each value, one per line. */
#include "command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORD_ROOM 512u

typedef struct quantize_options {
    const char *kind, *lattice;
    bool wants_json;
} quantize_options;

static const option quantize_table[] = {
    OPTION("kind", OPTION_CHOICE, "K", quantize_options, kind,
           "real: 0 for 0, otherwise the point nearest to |value|, with the sign of the value; a "
           "tie goes to the lower point. xor: a 32-bit number folded into the range of the "
           "lattice, then the nearest point",
           .choices = "real xor", .standard = "real"),
    OPTION("lattice", OPTION_TEXT, "A,B,...", quantize_options, lattice, LATTICE_HELP,
           .standard = LATTICE_STANDARD),
    OPTION("json", OPTION_FLAG, NULL, quantize_options, wants_json, JSON_HELP),
};

typedef struct quantizer {
    const iron_lattice *lattice;
    bool is_xor;
    bool wants_json;
    struct {
        double value, point;
    } * results; /* for JSON, which is printed at the end */
    size_t count, capacity;
} quantizer;

static iron_status quantize_one(const quantizer *q, const char *text, double *value, double *point,
                                iron_error *err) {
    uint64_t number;

    if (!q->is_xor) {
        IRON_TRY(parse_real("value", text, value, err));
        *point = iron_lattice_quantize_real(q->lattice, *value);
        return IRON_OK;
    }
    IRON_TRY(parse_number("value", text, &number, err));
    if (number > UINT32_MAX)
        return usage(err, "value %.40s is beyond 32 bits; XOR values are 0 to 4294967295", text);
    *value = (double)number;
    *point = iron_lattice_quantize_xor(q->lattice, (uint32_t)number);
    return IRON_OK;
}

/* Prints a line, or keeps the value for JSON. */
static iron_status take_value(quantizer *q, const char *text, iron_error *err) {
    double value = 0, point = 0;

    IRON_TRY(quantize_one(q, text, &value, &point, err));
    if (!q->wants_json) {
        printf("%.0f\n", point);
        return IRON_OK;
    }
    q->results = list_grow(q->results, q->count, &q->capacity, sizeof *q->results);
    if (q->count == q->capacity)
        return usage(err, "out of memory after %zu values; give fewer at a time", q->count);
    q->results[q->count].value = value;
    q->results[q->count++].point = point;
    return IRON_OK;
}

static bool is_blank(int c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* Reads the next word of standard input; *length is 0 at the end, WORD_ROOM if it is too long. */
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

static iron_status run(void *options, args *a, iron_error *err) {
    quantize_options *o = options;
    quantizer q = {0};
    uint32_t points[LATTICE_ROOM], count = 0;
    iron_lattice *lattice = NULL;
    double value, point;
    char word[WORD_ROOM];
    size_t length;
    iron_status status = IRON_OK;

    if (a->value_count == 0)
        return usage(err, "no values; give some, or - to read them from standard input");
    if (o->lattice)
        IRON_TRY(parse_lattice(o->lattice, points, &count, err));
    IRON_TRY(iron_lattice_create(o->lattice ? points : NULL, count, &lattice, err));
    q.lattice = lattice;
    q.is_xor = strcmp(o->kind, "xor") == 0;
    q.wants_json = o->wants_json;
    if (a->value_count == 1 && strcmp(a->values[0], "-") == 0) {
        while (status == IRON_OK) {
            next_word(word, &length);
            if (length == 0)
                break;
            status = length < WORD_ROOM && strlen(word) == length
                         ? take_value(&q, word, err)
                         : usage(err,
                                 "value '%.40s...' is not a number; give decimals separated by "
                                 "blanks",
                                 word);
        }
        if (status == IRON_OK && ferror(stdin))
            status = usage(err, "cannot read standard input: %s", strerror(errno));
    } else { /* all arguments are checked before the first line is printed */
        for (size_t k = 0; k < a->value_count && status == IRON_OK; k++)
            status = quantize_one(&q, a->values[k], &value, &point, err);
        for (size_t k = 0; k < a->value_count && status == IRON_OK; k++)
            status = take_value(&q, a->values[k], err);
    }
    if (status == IRON_OK && q.wants_json) {
        iron_json_writer j = json_begin('{');

        iron_json_text(&j, "kind", o->kind);
        iron_json_open(&j, "values", '[');
        for (size_t k = 0; k < q.count; k++)
            iron_json_real_format(&j, NULL, "%.17g", q.results[k].value);
        iron_json_close(&j, ']');
        iron_json_open(&j, "points", '[');
        for (size_t k = 0; k < q.count; k++)
            iron_json_real_format(&j, NULL, "%.0f", q.results[k].point);
        iron_json_close(&j, ']');
        json_end(&j, '}');
    }
    free(q.results);
    iron_lattice_destroy(lattice);
    return status;
}

const command command_quantize = {
    .name = "quantize",
    .summary = "prints the lattice point of each value",
    .synopsis = "[--kind real|xor] [--lattice A,B,...] [--json] VALUE...|-",
    .description = "Prints the lattice point of each value, one per line. With - the values are "
                   "read from standard input, separated by blanks or line breaks.",
    .groups = {{NULL, quantize_table, COUNT(quantize_table), 0}},
    .examples = "iron quantize -11.5 446.9 1e9",
    .options_bytes = sizeof(quantize_options),
    .defaults = &(const quantize_options){.kind = "real"},
    .run = run,
};
