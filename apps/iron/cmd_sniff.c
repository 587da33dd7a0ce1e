/* SPDX-License-Identifier: MIT */
/*
 * cmd_sniff.c: `iron sniff`: what token files are, and why. A file that is not what it says is
 * shown as what it looks like, with what is wrong; the others are shown too, and the exit status
 * tells that one was wrong.
 */
#include "command.h"
#include "json.h"

#include <inttypes.h>
#include <stdio.h>

/* One file: what was found, and the problem if there is one. */
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

/* Messages name files, whose names may hold anything but must not break a line. */
static void print_line(const char *what, const char *text) {
    printf("%-10s", what);
    for (; *text; text++)
        putchar((unsigned char)*text < 0x20 || *text == 0x7F ? '?' : *text);
    putchar('\n');
}

static void print_text(const finding *f) {
    const iron_sniff_report *r = &f->report;
    const char *doubt = r->is_guess ? " (a guess)" : "";

    print_line("file", f->file);
    if (r->format[0])
        printf("%-10s%s\n", "format", r->format);
    if (r->dtype != IRON_DTYPE_NONE)
        printf("%-10s%s%s\n", "dtype", iron_dtype_name(r->dtype), doubt);
    print_count("bytes", r->bytes);
    if (r->format[0] && f->status == IRON_OK)
        printf("%-10sfrom byte %" PRIu64 "\n", "data", r->data_offset);
    if (r->tokens != IRON_COUNT_UNKNOWN)
        printf("%-10s%" PRIu64 "%s\n", "tokens", r->tokens, doubt);
    print_count("documents", r->documents);
    for (size_t k = 0; k < r->reason_count; k++)
        print_line(k ? "" : "why", r->reasons[k]);
    if (f->status != IRON_OK)
        print_line("problem", f->problem.text);
}

static void json_count(json *j, const char *name, uint64_t count) {
    if (count == IRON_COUNT_UNKNOWN)
        json_null(j, name);
    else
        json_number(j, name, count);
}

static void json_word(json *j, const char *name, const char *text) {
    if (text && text[0])
        json_text(j, name, text);
    else
        json_null(j, name);
}

static void print_json(json *j, const finding *f) {
    const iron_sniff_report *r = &f->report;
    bool has_dtype = r->dtype != IRON_DTYPE_NONE;

    json_open(j, NULL, '{');
    json_text(j, "file", f->file);
    json_word(j, "format", r->format);
    json_word(j, "dtype", has_dtype ? iron_dtype_name(r->dtype) : NULL);
    json_bool(j, "is_guess", r->is_guess != 0);
    json_count(j, "bytes", r->bytes);
    json_count(j, "data_offset", f->status == IRON_OK ? r->data_offset : IRON_COUNT_UNKNOWN);
    json_count(j, "tokens", r->tokens);
    json_count(j, "documents", r->documents);
    json_open(j, "reasons", '[');
    for (size_t k = 0; k < r->reason_count; k++)
        json_text(j, NULL, r->reasons[k]);
    json_close(j, ']');
    json_word(j, "problem", f->status == IRON_OK ? NULL : f->problem.text);
    json_close(j, '}');
}

/* The first problem is the command's. */
static iron_status sniff_all(const args *a, json *j, iron_error *err) {
    iron_status first = IRON_OK;

    for (size_t k = 0; k < a->value_count; k++) {
        finding f = {.file = a->values[k], .report.struct_size = sizeof f.report};

        f.status = iron_sniff(f.file, &f.report, &f.problem);
        if (f.status != IRON_OK && first == IRON_OK) {
            first = f.status;
            *err = f.problem;
        }
        if (j)
            print_json(j, &f);
        else if (k > 0)
            putchar('\n');
        if (!j)
            print_text(&f);
    }
    return first;
}

static iron_status run(int argc, char **argv, iron_error *err) {
    bool wants_json = false, is_done;
    const option options[] = {{"json", OPTION_FLAG, &wants_json, NULL}};
    args a = {.options = options, .option_count = COUNT(options)};
    json j = {0};
    iron_status status = command_args(&command_sniff, &a, argc, argv, &is_done, err);

    if (is_done)
        return status;
    if (a.value_count == 0)
        return usage(err, "no file; name the token files to look at");
    if (!wants_json)
        return sniff_all(&a, NULL, err);
    json_open(&j, NULL, '[');
    status = sniff_all(&a, &j, err);
    json_close(&j, ']');
    json_end(&j);
    return status;
}

const command command_sniff = {
    "sniff", "tells what token files are, and why",
    "usage: iron sniff FILE... [--json]\n\n"
    "Looks at the first bytes, the size and the index beside a file and tells its format, the\n"
    "width of its tokens and how many there are, with the reasons. Where nothing says the width, "
    "it\n"
    "is guessed from a sample of the values, and called a guess. A file whose header does not "
    "agree\n"
    "with its size or its index is shown with the problem, and the exit status is 2.\n\n"
    "  --json              one JSON document: an array with an object for each file\n\n"
    "example: iron sniff tokens.bin\n",
    run};
