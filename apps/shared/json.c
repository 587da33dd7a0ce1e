/* SPDX-License-Identifier: MIT */
/* json.c: see json.h. Whether standard output took it all is checked once, as the command ends. */
#include "json.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

/* Bytes of the UTF-8 character at `at`, 0 if it is none: file names may hold anything. */
static size_t character_bytes(const unsigned char *at) {
    size_t more = at[0] < 0x80                    ? 0
                  : at[0] >= 0xC2 && at[0] < 0xE0 ? 1
                  : at[0] >= 0xE0 && at[0] < 0xF0 ? 2
                  : at[0] >= 0xF0 && at[0] < 0xF5 ? 3
                                                  : 4;

    if (more == 4)
        return 0;
    for (size_t k = 1; k <= more; k++)
        if ((at[k] & 0xC0) != 0x80)
            return 0;
    if ((at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] > 0x9F) ||
        (at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] > 0x8F))
        return 0;
    return more + 1;
}

static void put_string(const char *text) {
    const unsigned char *at = (const unsigned char *)text;

    putchar('"');
    while (*at) {
        size_t bytes = character_bytes(at);

        if (*at == '"' || *at == '\\')
            printf("\\%c", *at);
        else if (*at < 0x20)
            printf("\\u%04x", *at);
        else if (bytes == 0)
            printf("\\ufffd");
        else
            fwrite(at, 1, bytes, stdout);
        at += bytes ? bytes : 1;
    }
    putchar('"');
}

static void begin(json *j, const char *name) {
    if (j->needs_comma)
        fputs(", ", stdout);
    j->needs_comma = true;
    if (name) {
        put_string(name);
        fputs(": ", stdout);
    }
}

void json_open(json *j, const char *name, char bracket) {
    begin(j, name);
    putchar(bracket);
    j->needs_comma = false;
}

void json_close(json *j, char bracket) {
    putchar(bracket);
    j->needs_comma = true;
}

void json_text(json *j, const char *name, const char *text) {
    begin(j, name);
    put_string(text);
}

void json_number(json *j, const char *name, uint64_t value) {
    begin(j, name);
    printf("%" PRIu64, value);
}

void json_real(json *j, const char *name, const char *format, double value) {
    begin(j, name);
    printf(format, value);
}

void json_bool(json *j, const char *name, bool value) {
    begin(j, name);
    fputs(value ? "true" : "false", stdout);
}

void json_null(json *j, const char *name) {
    begin(j, name);
    fputs("null", stdout);
}

void json_hex(json *j, const char *name, uint64_t value, int digits) {
    begin(j, name);
    printf("\"%0*" PRIx64 "\"", digits, value);
}

void json_end(json *j) {
    putchar('\n');
    j->needs_comma = false;
}
