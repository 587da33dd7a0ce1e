/* SPDX-License-Identifier: MIT */
/*
 * cmd_sniff.c: `iron sniff`: what token files contain, and why it thinks so. A damaged file is
 * shown as what it looks like, together with the problem; the other files are still shown, and the
 * exit status is then 2.
 */
#include "command.h"

#include <inttypes.h>

/* Tables can have thousands of columns: in text, so many are listed. */
#define COLUMNS_SHOWN 32u

typedef struct sniff_options {
    const char *column;
    bool wants_json;
} sniff_options;

static const option sniff_table[] = {
    OPTION("column", OPTION_TEXT, "NAME", sniff_options, column,
           "of arrow, parquet and mds files, the column with the tokens",
           .standard = "input_ids, tokens, token_ids or ids, or the only column of integers"),
    OPTION("json", OPTION_FLAG, NULL, sniff_options, wants_json,
           "print one JSON document: an array with one object per file"),
};

/* What was found in one file, and the problem if there is one. */
typedef struct finding {
    const char *file;
    iron_sniff_report report;
    iron_status status;
    iron_error problem;
} finding;

static void print_count(const char *what, uint64_t count) {
    if (count != IRON_COUNT_UNKNOWN)
        printf("%-10s%" PRIu64 "\n", what, count);
}

/* Names of files and columns may contain control characters, which must not break the line. */
static void print_shown(const char *text) {
    for (; *text; text++)
        putchar((unsigned char)*text < 0x20 || *text == 0x7F ? '?' : *text);
}

static void print_line(const char *what, const char *text) {
    printf("%-10s", what);
    print_shown(text);
    putchar('\n');
}

/* Of the columns, the first ones, and the one with the tokens wherever it is. */
static void print_text(const finding *f) {
    const iron_sniff_report *r = &f->report;
    const char *doubt = r->is_guess ? " (a guess)" : "", *what = "columns";
    size_t hidden = 0;

    print_line("file", f->file);
    if (r->format[0])
        printf("%-10s%s%s%s\n", "format", r->format, r->compression[0] ? ", compressed with " : "",
               r->compression);
    if (r->dtype != IRON_DTYPE_NONE)
        printf("%-10s%s%s\n", "dtype", iron_dtype_name(r->dtype), doubt);
    print_count("bytes", r->bytes);
    if (r->dtype != IRON_DTYPE_NONE && r->column_count == 0 && f->status == IRON_OK)
        printf("%-10sfrom byte %" PRIu64 "\n", "data", r->data_offset);
    if (r->tokens != IRON_COUNT_UNKNOWN)
        printf("%-10s%" PRIu64 "%s\n", "tokens", r->tokens, doubt);
    print_count(r->column_count ? "rows" : "documents", r->documents);
    for (size_t k = 0; k < r->column_count; k++) {
        const iron_sniff_column *c = &r->columns[k];

        if (k >= COLUMNS_SHOWN && !c->is_chosen) {
            hidden++;
            continue;
        }
        printf("%-10s", what);
        print_shown(c->name);
        putchar(' ');
        print_shown(c->type);
        puts(c->is_chosen ? " (the tokens)" : "");
        what = "";
    }
    if (hidden > 0)
        printf("%-10sand %zu more; --json lists all\n", "", hidden);
    for (size_t k = 0; k < r->reason_count; k++)
        print_line(k ? "" : "why", r->reasons[k]);
    if (f->status != IRON_OK)
        print_line("problem", f->problem.text);
}

static void print_json(iron_json_writer *j, const finding *f) {
    const iron_sniff_report *r = &f->report;
    bool is_good = f->status == IRON_OK, has_dtype = r->dtype != IRON_DTYPE_NONE;

    iron_json_open(j, NULL, '{');
    JSON_PUT(
        j, TEXT("file", f->file), TEXT("format", r->format[0] ? r->format : NULL),
        TEXT("dtype", has_dtype ? iron_dtype_name(r->dtype) : NULL), BOOL("is_guess", r->is_guess),
        KNOWN("bytes", r->bytes),
        NUMBER_IF(is_good && r->data_offset != IRON_COUNT_UNKNOWN, "data_offset", r->data_offset),
        KNOWN("tokens", r->tokens), KNOWN("documents", r->documents),
        TEXT("compression", r->compression[0] ? r->compression : NULL),
        NUMBER_IF(r->column_count > 0 && r->documents != IRON_COUNT_UNKNOWN, "rows", r->documents));
    iron_json_open(j, "columns", '[');
    for (const iron_sniff_column *c = r->columns; c < r->columns + r->column_count; c++)
        JSON_PUT(j, OBJECT(NULL, TEXT("name", c->name), TEXT("type", c->type),
                           BOOL("is_tokens", c->is_chosen)));
    iron_json_close(j, ']');
    iron_json_open(j, "reasons", '[');
    for (size_t k = 0; k < r->reason_count; k++)
        iron_json_text(j, NULL, r->reasons[k]);
    iron_json_close(j, ']');
    iron_json_text(j, "problem", is_good || !f->problem.text[0] ? NULL : f->problem.text);
    iron_json_close(j, '}');
}

static iron_status run(void *options, args *a, iron_error *err) {
    sniff_options *o = options;
    iron_json_writer j = {0};
    iron_status first = IRON_OK; /* the first problem decides the exit status */

    if (a->value_count == 0)
        return usage(err, "no file; name the token files to look at");
    if (o->wants_json)
        j = json_begin('[');
    for (size_t k = 0; k < a->value_count; k++) {
        finding f = {.file = a->values[k], .report.struct_size = sizeof f.report};

        f.status = iron_sniff(f.file, o->column, &f.report, &f.problem);
        if (f.status != IRON_OK && first == IRON_OK) {
            first = f.status;
            *err = f.problem;
        }
        if (o->wants_json) {
            print_json(&j, &f);
        } else {
            fputs(k > 0 ? "\n" : "", stdout);
            print_text(&f);
        }
        iron_sniff_report_deinit(&f.report);
    }
    if (o->wants_json)
        json_end(&j, ']');
    return first;
}

const command command_sniff = {
    .name = "sniff",
    .summary = "detects format and token type of files, with reasons",
    .synopsis = "FILE... [--column NAME] [--json]",
    .description =
        "Looks at the first bytes, the size and the index next to a file, and prints its format, "
        "token type and number of tokens, with the reasons. If nothing states the token type, it "
        "is guessed from a sample of the values and marked as a guess. Of a table, all columns are "
        "listed; if none or several could be the tokens, their number is unknown until --column "
        "names one. Containers that are not "
        "tokens, such as gzip or zip, are named. A file whose header does "
        "not match its size or its index is shown with the problem, and the exit status is 2.",
    .groups = {{NULL, sniff_table, COUNT(sniff_table), 0}},
    .examples = "iron sniff tokens.bin",
    .options_bytes = sizeof(sniff_options),
    .run = run,
};
