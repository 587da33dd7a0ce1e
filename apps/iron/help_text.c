/* SPDX-License-Identifier: MIT */
/* help_text.c: see help_text.h. A span is part of the text: nothing is copied. */
#include "help_text.h"

#include <string.h>

bool span_begins(span s, const char *prefix) {
    return s.length >= strlen(prefix) && memcmp(s.at, prefix, strlen(prefix)) == 0;
}

bool span_is(span s, const char *text) { return s.length == strlen(text) && span_begins(s, text); }

span span_from(span s, size_t offset) {
    return offset > s.length ? (span){s.at + s.length, 0}
                             : (span){s.at + offset, s.length - offset};
}

static size_t leading_blanks(span s) {
    size_t k = 0;

    while (k < s.length && s.at[k] == ' ')
        k++;
    return k;
}

help_reader help_open(const char *text) { return (help_reader){.at = text}; }

static bool take_line(help_reader *reader, span *line) {
    if (!*reader->at)
        return false;
    *line = (span){reader->at, strcspn(reader->at, "\n")};
    reader->at += line->length + (reader->at[line->length] == '\n');
    return true;
}

/* Where the text of an item begins: after two blanks, or where that of the others does, if its term
 * leaves but one. Its end if it has none. */
static size_t find_column(help_reader *reader, span line) {
    for (size_t k = 3; k + 1 < line.length; k++)
        if (line.at[k] == ' ' && line.at[k + 1] == ' ')
            return reader->column = k + leading_blanks(span_from(line, k));
    if (reader->column && reader->column < line.length && line.at[reader->column - 1] == ' ')
        return reader->column;
    return line.length;
}

static void take_item(help_reader *reader, span whole, help_line *line) {
    size_t column = find_column(reader, whole);

    reader->section = HELP_ITEMS;
    line->kind = HELP_ITEM;
    line->text = span_from(whole, column);
    line->term = (span){whole.at + 2, column - 2};
    while (line->term.length && line->term.at[line->term.length - 1] == ' ')
        line->term.length--;
}

/* The line that begins the examples: one may stand in it. */
static bool begins_examples(help_reader *reader, span whole, help_line *line) {
    static const char *const words[] = {"example: ", "examples: ", "examples:"};

    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
        if (!span_begins(whole, words[k]))
            continue;
        line->text = span_from(whole, strlen(words[k]));
        line->kind = line->text.length ? HELP_TEXT : HELP_BREAK;
        reader->indent = line->text.length ? strlen(words[k]) : 2;
        reader->section = HELP_EXAMPLES;
        return true;
    }
    return false;
}

static void take_example(const help_reader *reader, span whole, help_line *line) {
    size_t blanks = leading_blanks(whole);

    line->text = span_from(whole, blanks < reader->indent ? blanks : reader->indent);
}

static void take_text(help_reader *reader, span whole, help_line *line) {
    if (span_begins(whole, "usage: ")) {
        line->text = span_from(whole, strlen("usage: "));
        return;
    }
    if (span_begins(whole, "Exit status:") && reader->section != HELP_EXIT_STATUS) {
        reader->before = reader->section;
        reader->section = HELP_EXIT_STATUS;
    }
}

/* An empty line ends the usage and an exit status. */
static void take_break(help_reader *reader, help_line *line) {
    line->kind = HELP_BREAK;
    if (reader->section == HELP_USAGE)
        reader->section = HELP_DESCRIPTION;
    else if (reader->section == HELP_EXIT_STATUS)
        reader->section = reader->before;
}

bool help_next(help_reader *reader, help_line *line) {
    span whole;

    if (!take_line(reader, &whole))
        return false;
    *line = (help_line){.kind = HELP_TEXT, .text = whole};
    if (reader->section == HELP_EXAMPLES) {
        take_example(reader, whole, line);
    } else if (whole.length == 0) {
        take_break(reader, line);
    } else if (leading_blanks(whole) == 2) {
        take_item(reader, whole, line);
    } else if (leading_blanks(whole) > 2) {
        line->kind = HELP_MORE;
        line->text = span_from(whole, leading_blanks(whole));
    } else if (!begins_examples(reader, whole, line)) {
        take_text(reader, whole, line);
    }
    line->section = reader->section;
    return true;
}
