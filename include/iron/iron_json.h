/* SPDX-License-Identifier: MIT */
/*
 * iron_json.h: the JSON writer used by the commands. libiron.so does not export it and the header
 * is not installed: no stable ABI.
 *
 * A document is written as it goes; the writer puts commas, quotes and line breaks where they
 * belong. The name is NULL inside an array and for the outermost value.
 *
 *     iron_json_writer j = {.to = stdout, .is_one_line = true};
 *     iron_json_open(&j, NULL, '{');
 *     iron_json_number(&j, "tokens", 1000);
 *     iron_json_close(&j, '}');
 *     iron_json_end(&j);
 *
 * Write errors are not reported here: check ferror(j.to) once, after iron_json_end.
 */
#ifndef IRON_IRON_JSON_H
#define IRON_IRON_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct iron_json_writer {
    FILE *to;
    bool is_html;     /* inside a <script> element: escape '<' too, so that nothing can end it */
    bool is_one_line; /* the whole document on one line, for files that are read line by line */
    bool needs_comma;
    uint32_t depth;
} iron_json_writer;

void iron_json_open(iron_json_writer *j, const char *name, char bracket); /* '{' or '[' */
void iron_json_close(iron_json_writer *j, char bracket);                  /* '}' or ']' */
/* Bytes that are not UTF-8 become U+FFFD; NULL becomes null. */
void iron_json_text(iron_json_writer *j, const char *name, const char *text);
void iron_json_number(iron_json_writer *j, const char *name, uint64_t value);
/* With nine digits, or with a printf format for one double. A value that is not finite becomes
 * null, because JSON cannot express it. */
void iron_json_real(iron_json_writer *j, const char *name, double value);
void iron_json_real_format(iron_json_writer *j, const char *name, const char *format, double value);
void iron_json_bool(iron_json_writer *j, const char *name, bool value);
void iron_json_null(iron_json_writer *j, const char *name);
/* A string of at least `digits` hexadecimal digits. */
void iron_json_hex(iron_json_writer *j, const char *name, uint64_t value, int digits);
void iron_json_end(iron_json_writer *j); /* writes the final newline */

#ifdef __cplusplus
}
#endif

#endif
