/* SPDX-License-Identifier: MIT */
/*
 * json_write.h: one JSON document, written as it goes: commas, quotes and line breaks are put where
 * they belong. Names are NULL inside an array. What a stream refuses shows in ferror, once, at the
 * end.
 */
#ifndef IRON_CORE_JSON_WRITE_H
#define IRON_CORE_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct iron__json_writer {
    FILE *to;
    bool is_in_html;   /* inside a page's <script>: no `<` is left that could end it */
    bool is_on_a_line; /* all of it, for files that are read line by line */
    bool needs_comma;
    uint32_t depth;
} iron__json_writer;

void iron__json_write_open(iron__json_writer *j, const char *name, char bracket); /* '{' or '[' */
void iron__json_write_close(iron__json_writer *j, char bracket);                  /* '}' or ']' */
void iron__json_write_text(iron__json_writer *j, const char *name,
                           const char *text); /* NULL: null */
void iron__json_write_whole(iron__json_writer *j, const char *name, uint64_t value);
/* Nine digits; what is not finite becomes null, for JSON has no word for it. */
void iron__json_write_real(iron__json_writer *j, const char *name, double value);
void iron__json_write_bool(iron__json_writer *j, const char *name, bool value);
void iron__json_write_null(iron__json_writer *j, const char *name);
void iron__json_write_end(iron__json_writer *j); /* the last newline */

/* Is it UTF-8 throughout, so that it is read back as it was written? */
bool iron__json_is_text(const char *text);

#endif
