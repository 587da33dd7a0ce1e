/* SPDX-License-Identifier: MIT */
/*
 * roff.c: see roff.h. Lines are filled again by troff, so that a page is as wide as its reader's
 * terminal; examples stay as they are.
 */
#include "roff.h"

#include <ctype.h>
#include <string.h>

static void put_character(FILE *to, char c) {
    switch (c) {
    case '\\':
        fputs("\\e", to);
        break;
    case '-': /* a minus, which can be copied into a shell; a bare one becomes a hyphen */
        fputs("\\-", to);
        break;
    case '\'':
        fputs("\\(aq", to);
        break;
    case '`':
        fputs("\\(ga", to);
        break;
    case '^':
        fputs("\\(ha", to);
        break;
    case '~':
        fputs("\\(ti", to);
        break;
    default:
        fputc(c, to);
    }
}

static void put_span(FILE *to, span text) {
    for (size_t k = 0; k < text.length; k++)
        put_character(to, text.at[k]);
}

void roff_line(FILE *to, span text) {
    if (text.length == 0)
        return;
    if (text.at[0] == '.') /* a request, were it the first */
        fputs("\\&", to);
    put_span(to, text);
    fputc('\n', to);
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '-' || c == '_'; }

static char font_of(span word) {
    if (word.at[0] == '-' && word.length > 1)
        return 'B';
    for (size_t k = 0; k < word.length; k++)
        if (!isupper((unsigned char)word.at[k]))
            return 'R';
    return 'I';
}

void roff_term(FILE *to, span term) {
    while (term.length > 0) {
        span word = term;

        word.length = 0;
        while (word.length < term.length && is_word(term.at[word.length]))
            word.length++;
        if (word.length == 0) {
            put_character(to, term.at[0]);
            term = span_from(term, 1);
            continue;
        }
        term = span_from(term, word.length);
        if (font_of(word) != 'R')
            fprintf(to, "\\f%c", font_of(word));
        put_span(to, word);
        if (font_of(word) != 'R')
            fputs("\\fR", to);
    }
    fputc('\n', to);
}

/* A text in the first column is no part of the item before it, empty line or not. */
static void put_in_order(FILE *to, const help_line *line, help_kind before) {
    if (line->kind == HELP_ITEM) {
        fputs(".TP\n", to);
        roff_term(to, line->term);
    } else if (line->kind == HELP_TEXT && before != HELP_TEXT) {
        fputs(".PP\n", to);
    }
    if (span_begins(line->text, "Exit status: "))
        roff_line(to, span_from(line->text, strlen("Exit status: ")));
    else
        roff_line(to, line->text);
}

bool roff_section(FILE *to, const char *help, help_section section, const char *heading) {
    help_reader reader = help_open(help);
    help_line line;
    help_kind before = HELP_TEXT; /* nothing parts a heading and its first paragraph */
    bool is_begun = false;

    while (help_next(&reader, &line)) {
        if (line.section != section || (line.kind == HELP_BREAK && !is_begun))
            continue;
        if (!is_begun)
            fprintf(to, ".SH %s\n%s", heading, section == HELP_EXAMPLES ? ".nf\n" : "");
        is_begun = true;
        if (section == HELP_EXAMPLES)
            roff_line(to, line.text);
        else if (line.kind != HELP_BREAK)
            put_in_order(to, &line, before);
        before = line.kind;
    }
    if (is_begun && section == HELP_EXAMPLES)
        fputs(".fi\n", to);
    return is_begun;
}
