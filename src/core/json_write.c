/* SPDX-License-Identifier: MIT */
/*
 * json_write.c: the writer of <iron/iron_json.h>.
 *
 * The outer two levels put each entry on its own line and deeper levels share a line, so that a
 * document of many rows has one row per line: easy to read, to grep and to diff. Text may hold any
 * bytes; those that are not UTF-8 become U+FFFD. U+2028 and U+2029 are always escaped, because
 * older JavaScript treats them as line ends inside strings. In HTML mode '<' is escaped too, so
 * that a name or message can contain neither `</script>` nor `<!--`.
 */
#include "core/json.h"

#include <inttypes.h>
#include <math.h>

/* Levels that put each entry on its own line. */
#define DEPTH_OF_LINES 2u

/* The length of the character at `at` in a string that ends with a zero, which is not a
 * continuation byte; 0 if it is not valid UTF-8. */
static size_t character_bytes(const unsigned char *at) { return iron__utf8_length(at, 4); }

bool iron__json_is_utf8(const char *text) {
    const unsigned char *at = (const unsigned char *)text;

    for (size_t bytes; *at; at += bytes)
        if ((bytes = character_bytes(at)) == 0)
            return false;
    return true;
}

static bool is_line_separator(const unsigned char *at) {
    return at[0] == 0xE2 && at[1] == 0x80 && (at[2] == 0xA8 || at[2] == 0xA9);
}

/* The number of bytes from here on that need no escape. They are written with one call. */
static size_t plain_bytes(const iron_json_writer *j, const unsigned char *at) {
    size_t k = 0;

    while (at[k] >= 0x20 && at[k] < 0x7F && at[k] != '"' && at[k] != '\\' &&
           (at[k] != '<' || !j->is_html))
        k++;
    return k;
}

/* Writes one character that may need an escape; returns its length. */
static size_t put_special(const iron_json_writer *j, const unsigned char *at) {
    size_t bytes = character_bytes(at);

    if (*at == '"' || *at == '\\')
        fprintf(j->to, "\\%c", *at);
    else if (*at < 0x20 || *at == 0x7F || (j->is_html && *at == '<'))
        fprintf(j->to, "\\u%04x", *at);
    else if (bytes == 0)
        fputs("\\ufffd", j->to);
    else if (is_line_separator(at))
        fprintf(j->to, "\\u20%02x", at[2] & 0x3F);
    else
        fwrite(at, 1, bytes, j->to);
    return bytes ? bytes : 1;
}

static void put_string(const iron_json_writer *j, const char *text) {
    const unsigned char *at = (const unsigned char *)text;

    fputc('"', j->to);
    for (;;) {
        size_t plain = plain_bytes(j, at);

        fwrite(at, 1, plain, j->to);
        at += plain;
        if (!*at)
            break;
        at += put_special(j, at);
    }
    fputc('"', j->to);
}

static bool has_lines(const iron_json_writer *j, uint32_t depth) {
    return depth <= DEPTH_OF_LINES && !j->is_one_line;
}

static void new_line(const iron_json_writer *j) {
    fputc('\n', j->to);
    for (uint32_t k = 0; k < j->depth; k++)
        fputs("  ", j->to);
}

static void begin(iron_json_writer *j, const char *name) {
    if (j->needs_comma)
        fputc(',', j->to);
    if (j->depth > 0 && has_lines(j, j->depth))
        new_line(j);
    else if (j->needs_comma)
        fputc(' ', j->to);
    j->needs_comma = true;
    if (name) {
        put_string(j, name);
        fputs(": ", j->to);
    }
}

void iron_json_open(iron_json_writer *j, const char *name, char bracket) {
    begin(j, name);
    fputc(bracket, j->to);
    j->needs_comma = false;
    j->depth++;
}

void iron_json_close(iron_json_writer *j, char bracket) {
    bool has_entries = j->needs_comma;

    j->depth--;
    if (has_entries && has_lines(j, j->depth + 1))
        new_line(j);
    fputc(bracket, j->to);
    j->needs_comma = true;
}

void iron_json_text(iron_json_writer *j, const char *name, const char *text) {
    begin(j, name);
    if (text)
        put_string(j, text);
    else
        fputs("null", j->to);
}

void iron_json_number(iron_json_writer *j, const char *name, uint64_t value) {
    begin(j, name);
    fprintf(j->to, "%" PRIu64, value);
}

void iron_json_real_format(iron_json_writer *j, const char *name, const char *format,
                           double value) {
    begin(j, name);
    if (isfinite(value))
        fprintf(j->to, format, value);
    else
        fputs("null", j->to);
}

void iron_json_real(iron_json_writer *j, const char *name, double value) {
    iron_json_real_format(j, name, "%.9g", value);
}

void iron_json_bool(iron_json_writer *j, const char *name, bool value) {
    begin(j, name);
    fputs(value ? "true" : "false", j->to);
}

void iron_json_null(iron_json_writer *j, const char *name) { iron_json_text(j, name, NULL); }

void iron_json_hex(iron_json_writer *j, const char *name, uint64_t value, int digits) {
    begin(j, name);
    fprintf(j->to, "\"%0*" PRIx64 "\"", digits, value);
}

void iron_json_end(iron_json_writer *j) {
    fputc('\n', j->to);
    j->needs_comma = false;
}
