/* SPDX-License-Identifier: MIT */
/*
 * json_scan.c: the words of a JSON text: strings, numbers, and where in the text something is.
 *
 * A string's bytes are checked as they are copied: UTF-8 in its shortest form and without
 * surrogates, no control characters, escapes as the RFC lists them. A \u escape for half of a
 * surrogate pair must be followed by the other half. The copy is never longer than the original
 * (six bytes of \u00e9 become two, twelve of a pair four), so it always fits.
 *
 * A number's characters are checked here, then strtod converts them, which rounds correctly; asked
 * in the C locale, since a program around us may have set one that writes commas.
 */
#include "core/json_scan.h"

#include "core/fail.h"

#include <float.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

iron_status iron__json_refuse(const iron__json_reader *r, iron_error *err, const char *why) {
    size_t line = 1, column = 1;

    for (const char *p = r->start; p < r->at; p++) {
        if (*p == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*p & 0xC0) != 0x80) { /* a character's first byte */
            column++;
        }
    }
    IRON_FAIL(err, IRON_E_FORMAT, "line %zu, column %zu: %s", line, column, why);
}

void iron__json_skip_blanks(iron__json_reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
        r->at++;
}

/* Four hexadecimal digits at p, or -1. */
static int32_t hex4(const char *p, const char *end) {
    int32_t value = 0;

    if (end - p < 4)
        return -1;
    for (int k = 0; k < 4; k++) {
        char c = p[k];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;

        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static void put_utf8(iron__json_reader *r, uint32_t c) {
    unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};

    *r->strings++ = (char)(first[more] | c >> 6 * more);
    while (more-- > 0)
        *r->strings++ = (char)(0x80 | (c >> 6 * more & 0x3F));
}

/* r->at is behind \u. */
static iron_status read_unicode(iron__json_reader *r, iron_error *err) {
    int32_t c = hex4(r->at, r->end), low;

    if (c < 0)
        return iron__json_refuse(r, err, "expected four hexadecimal digits after \\u");
    if (c == 0)
        return iron__json_refuse(r, err, "a zero character in a string is not accepted");
    if (c >= 0xD800 && c <= 0xDFFF) {
        bool has_pair = c < 0xDC00 && r->end - r->at >= 10 && r->at[4] == '\\' && r->at[5] == 'u';

        low = has_pair ? hex4(r->at + 6, r->end) : -1;
        if (low < 0xDC00 || low > 0xDFFF)
            return iron__json_refuse(r, err, "half of a surrogate pair without the other");
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        r->at += 6;
    }
    r->at += 4;
    put_utf8(r, (uint32_t)c);
    return IRON_OK;
}

/* r->at is at the backslash. */
static iron_status read_escape(iron__json_reader *r, iron_error *err) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *found;

    r->at++;
    if (r->at < r->end && *r->at == 'u') {
        r->at++;
        return read_unicode(r, err);
    }
    found = r->at < r->end && *r->at ? strchr(letters, *r->at) : NULL;
    if (!found)
        return iron__json_refuse(r, err,
                                 "no such escape; there are \\\" \\\\ \\/ \\b \\f \\n \\r "
                                 "\\t and \\u");
    r->at++;
    *r->strings++ = meant[found - letters];
    return IRON_OK;
}

/* How many bytes the character at p has, or 0 if it is no UTF-8 (Unicode's table 3-7). */
static size_t utf8_length(const unsigned char *p, size_t left) {
    size_t length = p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
    unsigned char low = 0x80, high = 0xBF;

    if (p[0] < 0x80)
        return 1;
    if (length == 0 || left < length)
        return 0;
    low = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : low;   /* longer than need be */
    high = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : high; /* surrogates; past the last */
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t k = 2; k < length; k++)
        if ((p[k] & 0xC0) != 0x80)
            return 0;
    return length;
}

static iron_status read_character(iron__json_reader *r, iron_error *err) {
    size_t length;

    if ((unsigned char)*r->at < 0x20)
        return iron__json_refuse(r, err, "a control character in a string; write it as \\u00..");
    length = utf8_length((const unsigned char *)r->at, (size_t)(r->end - r->at));
    if (length == 0)
        return iron__json_refuse(r, err, "this is no UTF-8");
    memcpy(r->strings, r->at, length);
    r->strings += length;
    r->at += length;
    return IRON_OK;
}

iron_status iron__json_read_string(iron__json_reader *r, iron__json *out, iron_error *err) {
    char *text = r->strings;

    r->at++;
    while (r->at < r->end && *r->at != '"')
        IRON_TRY(*r->at == '\\' ? read_escape(r, err) : read_character(r, err));
    if (r->at == r->end)
        return iron__json_refuse(r, err, "expected '\"' at the end of the string");
    r->at++;
    *out = (iron__json){
        .kind = IRON_JSON_STRING, .count = (uint32_t)(r->strings - text), .text = text};
    *r->strings++ = '\0';
    return IRON_OK;
}

/* Digits from p on; p itself if there are none. */
static const char *skip_digits(const char *p, const char *end) {
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

/* The end of the number at p by the RFC's grammar; or NULL, and *wrong is where it goes astray. */
static const char *number_end(const char *p, const char *end, const char **wrong) {
    const char *digits = p < end && *p == '-' ? p + 1 : p;

    *wrong = digits;
    p = skip_digits(digits, end);
    if (p == digits || (*digits == '0' && p > digits + 1))
        return NULL;
    if (p < end && *p == '.') {
        *wrong = ++p;
        p = skip_digits(p, end);
        if (p == *wrong)
            return NULL;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p += p + 1 < end && (p[1] == '+' || p[1] == '-') ? 2 : 1;
        *wrong = p;
        p = skip_digits(p, end);
        if (p == *wrong)
            return NULL;
    }
    return p;
}

static double convert(const char *digits, size_t length) {
    char text[IRON_JSON_DIGITS_MAX + 1];
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* takes no memory in glibc */
    double value;

    memcpy(text, digits, length);
    text[length] = '\0';
    value = plain ? strtod_l(text, NULL, plain) : strtod(text, NULL);
    if (plain)
        freelocale(plain);
    return value;
}

iron_status iron__json_read_number(iron__json_reader *r, iron__json *out, iron_error *err) {
    const char *start = r->at, *wrong, *end = number_end(start, r->end, &wrong);
    double value;

    if (!end && wrong == start) {
        return iron__json_refuse(r, err,
                                 start < r->end && *start == '0'
                                     ? "a number does not begin with a needless 0"
                                     : "expected a value");
    }
    if (!end) {
        r->at = wrong;
        return iron__json_refuse(r, err,
                                 wrong < r->end && *wrong == '0'
                                     ? "a number does not begin with a needless 0"
                                     : "expected a digit");
    }
    if (end - start > (ptrdiff_t)IRON_JSON_DIGITS_MAX)
        return iron__json_refuse(r, err, "a number of more than 128 characters");
    value = convert(start, (size_t)(end - start));
    if (value > DBL_MAX || value < -DBL_MAX)
        return iron__json_refuse(r, err, "a number beyond the range of doubles");
    r->at = end;
    *out = (iron__json){.kind = IRON_JSON_NUMBER, .number = value};
    return IRON_OK;
}
