/* SPDX-License-Identifier: MIT */
/*
 * help_text.h: a help text, line by line, with what each line is.
 *
 * The help of a command is the one description that there is of it: manual pages and completions
 * are made of it, so nothing is written twice. It is laid out as
 *
 *     usage: iron NAME ...
 *
 *     Paragraphs, from the first column on.
 *
 *       --option VALUE   an item: two blanks, the term, and its text from one column on
 *                        further lines of it
 *
 *     Exit status: a paragraph of its own, if it begins a line.
 *
 *     examples: a line
 *               and more, to the end of the text
 *
 * No byte but blanks and the words "usage:", "example:" and "examples:" is outside the spans.
 */
#ifndef APPS_IRON_HELP_TEXT_H
#define APPS_IRON_HELP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct span {
    const char *at;
    size_t length;
} span;

typedef enum help_section {
    HELP_USAGE,
    HELP_DESCRIPTION,
    HELP_ITEMS,
    HELP_EXIT_STATUS,
    HELP_EXAMPLES
} help_section;

typedef enum help_kind {
    HELP_TEXT, /* a line of a paragraph, of the usage or of an example */
    HELP_ITEM, /* begins an item: term, and the text beside it, which may be empty */
    HELP_MORE, /* goes on with an item's text */
    HELP_BREAK /* an empty line */
} help_kind;

typedef struct help_line {
    help_section section;
    help_kind kind;
    span term, text;
} help_line;

typedef struct help_reader {
    const char *at;
    help_section section, before; /* before: where an exit status interrupts */
    size_t column;                /* where the texts of items begin; 0: not known yet */
    size_t indent;                /* blanks before further lines of examples */
} help_reader;

help_reader help_open(const char *text);
/* The next line; false at the end. */
bool help_next(help_reader *reader, help_line *line);

bool span_begins(span s, const char *prefix);
bool span_is(span s, const char *text);
/* The part from `offset` on. */
span span_from(span s, size_t offset);

#endif
