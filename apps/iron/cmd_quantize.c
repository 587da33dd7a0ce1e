/* SPDX-License-Identifier: MIT */
/* cmd_quantize.c: `iron quantize`: values to lattice points, a line each. */
#include "command.h"
#include "json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct quantizer {
    const iron_lattice *lattice;
    bool is_xor;
    bool wants_json;
    json j;
    const char *key; /* which of "values" and "points" is being written */
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

static iron_status print_value(quantizer *q, const char *text, iron_error *err) {
    double value = 0, point = 0;
    iron_status status = quantize_one(q, text, &value, &point, err);

    if (status != IRON_OK)
        return status;
    if (!q->wants_json)
        printf("%.0f\n", point);
    else if (strcmp(q->key, "points") == 0)
        json_real(&q->j, NULL, "%.0f", point);
    else
        json_real(&q->j, NULL, "%.17g", value);
    return IRON_OK;
}

/* Words of standard input, up to `size` - 1 characters each; longer ones are refused by the parser
 * like any other nonsense. */
static bool next_word(char *word, size_t size) {
    size_t length = 0;
    int c;

    do
        c = getchar();
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r');
    for (; c != EOF && c != ' ' && c != '\t' && c != '\n' && c != '\r'; c = getchar())
        if (length + 1 < size)
            word[length++] = (char)c;
    word[length] = '\0';
    return length > 0;
}

static iron_status print_stdin(quantizer *q, iron_error *err) {
    char word[512];
    iron_status status = IRON_OK;

    while (status == IRON_OK && next_word(word, sizeof word))
        status = print_value(q, word, err);
    if (status == IRON_OK && ferror(stdin))
        return usage(err, "cannot read standard input: %s", strerror(errno));
    return status;
}

/* Every argument is checked before the first line is printed. */
static iron_status check_all(const quantizer *q, const args *a, iron_error *err) {
    for (size_t k = 0; k < a->value_count; k++) {
        double value, point;
        iron_status status = quantize_one(q, a->values[k], &value, &point, err);

        if (status != IRON_OK)
            return status;
    }
    return IRON_OK;
}

static void print_list(quantizer *q, const args *a, const char *key, iron_error *err) {
    q->key = key;
    json_open(&q->j, key, '[');
    for (size_t k = 0; k < a->value_count; k++)
        print_value(q, a->values[k], err);
    json_close(&q->j, ']');
}

static iron_status print_all(quantizer *q, const args *a, iron_error *err) {
    iron_status status;

    if (a->value_count == 1 && strcmp(a->values[0], "-") == 0)
        return q->wants_json ? usage(err, "--json takes values as arguments, not from -")
                             : print_stdin(q, err);
    status = check_all(q, a, err);
    if (status != IRON_OK)
        return status;
    if (!q->wants_json) {
        for (size_t k = 0; k < a->value_count; k++)
            print_value(q, a->values[k], err);
        return IRON_OK;
    }
    json_open(&q->j, NULL, '{');
    json_text(&q->j, "kind", q->is_xor ? "xor" : "real");
    print_list(q, a, "values", err);
    print_list(q, a, "points", err);
    json_close(&q->j, '}');
    json_end(&q->j);
    return IRON_OK;
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
    status = print_all(&q, &a, err);
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
