/* SPDX-License-Identifier: MIT */
/*
 * audit.c: the bytes of a header, taken apart without any indulgence; see audit.h. A line ends with
 * CR LF and nowhere else, a name is a token right before its colon, a request line has two blanks.
 */
#include "server/audit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define HELP_SYNTAX "send the request as RFC 9112 writes it; HTTP libraries do"
#define HELP_SHORT  "send fewer or shorter header fields"

iron__verdict iron__verdict_fine(void) { return (iron__verdict){.kind = NULL}; }

iron__verdict iron__verdict_make(const char *kind, const char *help, const char *detail, ...) {
    iron__verdict verdict = {.kind = kind, .help = help};
    va_list values;

    va_start(values, detail);
    vsnprintf(verdict.detail, sizeof verdict.detail, detail, values);
    va_end(values);
    return verdict;
}

static iron__verdict malformed(const char *detail) {
    return iron__verdict_make("malformed-request", HELP_SYNTAX, "%s", detail);
}

iron__text iron__text_of(const char *string) { return (iron__text){string, strlen(string)}; }

bool iron__text_is(iron__text text, const char *word) {
    return text.bytes == strlen(word) && memcmp(text.at, word, text.bytes) == 0;
}

bool iron__text_is_caseless(iron__text text, const char *word) {
    return text.bytes == strlen(word) && strncasecmp(text.at, word, text.bytes) == 0;
}

/* What is wrong with the byte at `at`, which is not the last one that will come. */
static const char *wrong_byte(const char *bytes, size_t at) {
    unsigned char c = (unsigned char)bytes[at];

    if (c == '\n')
        return at > 0 && bytes[at - 1] == '\r' ? NULL : "a line feed stands without CR before it";
    if (at > 0 && bytes[at - 1] == '\r')
        return "a CR stands without line feed after it";
    if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7F)
        return "a control character stands in the header";
    return NULL;
}

/* More than a header may have, and no end: was it the target? */
static iron__verdict too_long(const char *bytes, size_t count) {
    if (!memchr(bytes, '\n', count < IRON_TARGET_BYTES_MAX ? count : IRON_TARGET_BYTES_MAX))
        return iron__verdict_make("target-too-long", "ask for a shorter path and query",
                                  "the target has more than %zu bytes", IRON_TARGET_BYTES_MAX);
    return iron__verdict_make("header-too-large", HELP_SHORT, "the header has more than %zu bytes",
                              IRON_HEADER_BYTES_MAX);
}

iron__verdict iron__audit_extent(const char *bytes, size_t count, size_t *end) {
    *end = 0;
    for (size_t k = 0; k < count && k < IRON_HEADER_BYTES_MAX; k++) {
        const char *wrong = wrong_byte(bytes, k);

        if (wrong)
            return malformed(wrong);
        if (bytes[k] == '\n' && k >= 3 && bytes[k - 2] == '\n') {
            *end = k + 1;
            return iron__verdict_fine();
        }
        if (bytes[k] == '\n' && k == 1)
            return malformed("the request begins with an empty line");
    }
    return count >= IRON_HEADER_BYTES_MAX ? too_long(bytes, count) : iron__verdict_fine();
}

/* The text up to `mark`, which is taken away with it; false if there is none. */
static bool cut(iron__text *rest, char mark, iron__text *out) {
    const char *found = memchr(rest->at, mark, rest->bytes);

    if (!found)
        return false;
    *out = (iron__text){rest->at, (size_t)(found - rest->at)};
    rest->at += out->bytes + 1;
    rest->bytes -= out->bytes + 1;
    return true;
}

/* The next line without its CR LF, which iron__audit_extent has seen to be there. */
static iron__text next_line(iron__text *rest) {
    iron__text line = {rest->at, 0};

    if (cut(rest, '\n', &line) && line.bytes > 0)
        line.bytes--;
    return line;
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

iron__field iron__field_make(iron__text name, iron__text line) {
    iron__field field = {.name = name, .value = line};

    while (field.value.bytes > 0 && is_blank(field.value.at[0])) {
        field.value.at++;
        field.value.bytes--;
    }
    while (field.value.bytes > 0 && is_blank(field.value.at[field.value.bytes - 1])) {
        field.value.bytes--;
        field.is_followed_by_blank = true;
    }
    return field;
}

static iron__verdict split_request_line(iron__text line, iron__header *header) {
    if (!cut(&line, ' ', &header->method) || !cut(&line, ' ', &header->target))
        return malformed("the request line is not `METHOD target HTTP/1.1`");
    header->version = line;
    return iron__verdict_fine();
}

static iron__verdict split_field(iron__text line, iron__header *header) {
    iron__text name;

    if (is_blank(line.at[0]))
        return malformed("a header line begins with a blank: folded lines are not taken");
    if (!cut(&line, ':', &name))
        return malformed("a header line has no colon");
    if (header->count == IRON_HEADER_FIELDS_MAX)
        return iron__verdict_make("header-too-large", HELP_SHORT, "there are more than %u fields",
                                  IRON_HEADER_FIELDS_MAX);
    header->fields[header->count++] = iron__field_make(name, line);
    return iron__verdict_fine();
}

iron__verdict iron__audit_split(const char *bytes, size_t count, iron__header *header) {
    iron__text rest = {bytes, count};
    size_t end;
    iron__verdict verdict = iron__audit_extent(bytes, count, &end);

    header->count = 0;
    header->body_bytes = 0;
    if (verdict.kind)
        return verdict;
    if (end != count)
        return malformed("the header does not end where it should");
    verdict = split_request_line(next_line(&rest), header);
    while (!verdict.kind) {
        iron__text line = next_line(&rest);

        if (line.bytes == 0)
            break;
        verdict = split_field(line, header);
    }
    return verdict;
}

iron__text iron__header_find(const iron__header *header, const char *name) {
    for (uint32_t k = 0; k < header->count; k++)
        if (iron__text_is_caseless(header->fields[k].name, name))
            return header->fields[k].value;
    return (iron__text){NULL, 0};
}
