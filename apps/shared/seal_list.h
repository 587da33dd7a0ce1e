/* SPDX-License-Identifier: MIT */
/*
 * seal_list.h: lines of `<seal>  <name>`, written and read as sha256sum does: two blanks, or a
 * blank and a star; a name with a backslash, a newline or a carriage return has these written as
 * \\, \n and \r, and the line then begins with a backslash.
 */
#ifndef APPS_SHARED_SEAL_LIST_H
#define APPS_SHARED_SEAL_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define SEAL_DIGITS 32u

typedef enum seal_line_kind {
    SEAL_LINE_GOOD,
    SEAL_LINE_NOTHING, /* blank, or a comment: begins with # */
    SEAL_LINE_BAD
} seal_line_kind;

typedef struct seal_line {
    char seal[SEAL_DIGITS + 1]; /* in lower case */
    const char *name;           /* in the line's own memory */
} seal_line;

/* Reads a line of `length` bytes, which is changed; line[length] must be there to be written. */
seal_line_kind seal_line_read(char *line, size_t length, seal_line *out);

void seal_line_print(const char *seal, const char *name);
/* A name as such lines have it, with the backslash in front where there is one. */
void seal_name_print(const char *name);

#endif
