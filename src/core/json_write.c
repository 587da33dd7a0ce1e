/* SPDX-License-Identifier: MIT */
/*
 * json_write.c: see json_write.h.
 *
 * The outer two levels get a line an entry, deeper ones share a line: a document of many rows stays
 * a row a line, which people read, grep finds and diff compares. Text may hold anything: what is no
 * UTF-8 becomes U+FFFD. U+2028 and U+2029 are always escaped, since older JavaScript takes them for
 * ends of lines inside strings. Inside a page `<` is escaped too, so that neither
 * `</script>` nor `<!--` can come out of a name or a reason.
 */
#include "core/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define DEPTH_OF_LINES 2u

/* Bytes of the UTF-8 character at `at`, 0 if it is none. */
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

bool iron__json_is_text(const char *text) {
    const unsigned char *at = (const unsigned char *)text;

    for (size_t bytes; *at; at += bytes)
        if ((bytes = character_bytes(at)) == 0)
            return false;
    return true;
}

static bool is_line_separator(const unsigned char *at) {
    return at[0] == 0xE2 && at[1] == 0x80 && (at[2] == 0xA8 || at[2] == 0xA9);
}

/* Bytes from here on that are written as they are: nearly all, so they go out together. */
static size_t plain_bytes(const iron__json_writer *j, const unsigned char *at) {
    size_t k = 0;

    while (at[k] >= 0x20 && at[k] < 0x7F && at[k] != '"' && at[k] != '\\' &&
           (at[k] != '<' || !j->is_in_html))
        k++;
    return k;
}

/* One character that may not stay as it is; returns its bytes. */
static size_t put_special(const iron__json_writer *j, const unsigned char *at) {
    size_t bytes = character_bytes(at);

    if (*at == '"' || *at == '\\')
        fprintf(j->to, "\\%c", *at);
    else if (*at < 0x20 || *at == 0x7F || (j->is_in_html && *at == '<'))
        fprintf(j->to, "\\u%04x", *at);
    else if (bytes == 0)
        fputs("\\ufffd", j->to);
    else if (is_line_separator(at))
        fprintf(j->to, "\\u20%02x", at[2] & 0x3F);
    else
        fwrite(at, 1, bytes, j->to);
    return bytes ? bytes : 1;
}

static void put_string(const iron__json_writer *j, const char *text) {
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

static bool has_lines(const iron__json_writer *j, uint32_t depth) {
    return depth <= DEPTH_OF_LINES && !j->is_on_a_line;
}

static void new_line(const iron__json_writer *j) {
    fputc('\n', j->to);
    for (uint32_t k = 0; k < j->depth; k++)
        fputs("  ", j->to);
}

static void begin(iron__json_writer *j, const char *name) {
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

void iron__json_write_open(iron__json_writer *j, const char *name, char bracket) {
    begin(j, name);
    fputc(bracket, j->to);
    j->needs_comma = false;
    j->depth++;
}

void iron__json_write_close(iron__json_writer *j, char bracket) {
    bool has_entries = j->needs_comma;

    j->depth--;
    if (has_entries && has_lines(j, j->depth + 1))
        new_line(j);
    fputc(bracket, j->to);
    j->needs_comma = true;
}

void iron__json_write_text(iron__json_writer *j, const char *name, const char *text) {
    begin(j, name);
    if (text)
        put_string(j, text);
    else
        fputs("null", j->to);
}

void iron__json_write_whole(iron__json_writer *j, const char *name, uint64_t value) {
    begin(j, name);
    fprintf(j->to, "%" PRIu64, value);
}

void iron__json_write_real(iron__json_writer *j, const char *name, double value) {
    begin(j, name);
    if (isfinite(value))
        fprintf(j->to, "%.9g", value);
    else
        fputs("null", j->to);
}

void iron__json_write_bool(iron__json_writer *j, const char *name, bool value) {
    begin(j, name);
    fputs(value ? "true" : "false", j->to);
}

void iron__json_write_null(iron__json_writer *j, const char *name) {
    begin(j, name);
    fputs("null", j->to);
}

void iron__json_write_end(iron__json_writer *j) {
    fputc('\n', j->to);
    j->needs_comma = false;
}
