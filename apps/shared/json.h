/* SPDX-License-Identifier: MIT */
/*
 * json.h: one JSON document on standard output, written as it goes: commas and quotes are put where
 * they belong. Names may be NULL inside an array.
 */
#ifndef APPS_SHARED_JSON_H
#define APPS_SHARED_JSON_H

#include <stdbool.h>
#include <stdint.h>

typedef struct json {
    bool needs_comma;
} json;

void json_open(json *j, const char *name, char bracket); /* '{' or '[' */
void json_close(json *j, char bracket);                  /* '}' or ']' */
void json_text(json *j, const char *name, const char *text);
void json_number(json *j, const char *name, uint64_t value);
void json_real(json *j, const char *name, const char *format, double value);
void json_bool(json *j, const char *name, bool value);
void json_null(json *j, const char *name);
void json_hex(json *j, const char *name, uint64_t value, int digits); /* as a string */
void json_end(json *j);                                               /* the last newline */

#endif
