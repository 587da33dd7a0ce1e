/* SPDX-License-Identifier: MIT */
/*
 * json.c: the JSON parser and the lookups of json.h, and the writer of <iron/iron_json.h>.
 *
 * Memory. One pass over the text before parsing gives an upper bound of what the tree needs: every
 * value but the first follows a comma or an opening bracket and takes at least two bytes with its
 * separator, and a string takes no more bytes than its source, quotes included. So the tree is one
 * block:
 *
 *     | root | finished values ->      <- values of open brackets | bytes of strings -> |
 *
 * The values of arrays and objects that are still open lie on a stack that grows down from the
 * right end of the same array. When a bracket closes, they move as one run to the end of the
 * finished values on the left. Finished and open values together never exceed the total, so the two
 * sides never meet. Runs make lookups fast: by index in arrays, by binary search in objects, whose
 * members are sorted by name. Sorting also finds duplicate names without comparing all pairs.
 *
 * Depth is limited, so the parser's recursion is too.
 *
 * Strings are validated while they are copied: UTF-8 in its shortest form and without surrogates,
 * no control characters, only the escapes of the RFC. The copy is never longer than the source (the
 * six bytes of \u00e9 become two, the twelve of a surrogate pair four), so it always fits.
 *
 * Numbers are checked against the grammar and converted by strtod, which rounds correctly, in the C
 * locale: the process may have set a locale with a decimal comma.
 *
 * The writer puts each entry of the outer two levels on its own line; deeper levels share a line.
 * So a document of many rows has one row per line: easy to read, to grep and to diff. Text may hold
 * any bytes; those that are not UTF-8 become U+FFFD. U+2028 and U+2029 are always escaped, because
 * older JavaScript treats them as line ends inside strings. In HTML mode '<' is escaped too, so
 * that a name or message can contain neither `</script>` nor `<!--`.
 */
#include "core/json.h"

#include "core/fail.h"
#include "core/memory.h"
#include "core/number.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const char *start, *at, *end;
    uint32_t depth;
    iron__json *finished, *open; /* the two ends of the free space between the values */
    char *strings;               /* where the next string goes */
} reader;

/* IRON_E_FORMAT with the line and column of r->at. */
static iron_status fail_at(const reader *r, iron_error *err, const char *why) {
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

static void skip_blanks(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
        r->at++;
}

/* Four hexadecimal digits at p, or -1. */
static int32_t hex4(const char *p, const char *end) {
    int32_t value = 0;

    for (int k = 0; k < 4; k++) {
        int digit = p + k < end ? iron__hex_digit(p[k]) : -1;

        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

size_t iron__utf8_put(uint32_t character, char to[4]) {
    static const unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};
    unsigned more = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;

    to[0] = (char)(first[more] | character >> 6 * more);
    for (unsigned k = 1; k <= more; k++)
        to[k] = (char)(0x80 | (character >> 6 * (more - k) & 0x3F));
    return more + 1;
}

/* A \u escape; r->at is behind the u. */
static iron_status read_unicode(reader *r, iron_error *err) {
    int32_t c = hex4(r->at, r->end), low;

    if (c <= 0)
        return fail_at(r, err,
                       c < 0 ? "expected four hexadecimal digits after \\u"
                             : "a zero character is not allowed in a string");
    if (c >= 0xD800 && c <= 0xDFFF) {
        bool has_pair = c < 0xDC00 && r->end - r->at >= 10 && r->at[4] == '\\' && r->at[5] == 'u';

        low = has_pair ? hex4(r->at + 6, r->end) : -1;
        if (low < 0xDC00 || low > 0xDFFF)
            return fail_at(r, err, "unpaired surrogate");
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        r->at += 6;
    }
    r->at += 4;
    r->strings += iron__utf8_put((uint32_t)c, r->strings);
    return IRON_OK;
}

/* An escape; r->at is at the backslash. */
static iron_status read_escape(reader *r, iron_error *err) {
    static const char letters[] = "\"\\/bfnrtu", meant[] = "\"\\/\b\f\n\r\t";
    const char *found;

    r->at++;
    found = r->at < r->end && *r->at ? strchr(letters, *r->at) : NULL;
    if (!found)
        return fail_at(r, err, "unknown escape; use \\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u");
    r->at++;
    if (*found == 'u')
        return read_unicode(r, err);
    *r->strings++ = meant[found - letters];
    return IRON_OK;
}

/* Reads a string, from behind the opening quote to behind the closing one. */
static iron_status read_string(reader *r, iron__json *out, iron_error *err) {
    char *text = r->strings;

    while (r->at < r->end && *r->at != '"') {
        size_t length;

        if (*r->at == '\\') {
            IRON_TRY(read_escape(r, err));
            continue;
        }
        if ((unsigned char)*r->at < 0x20)
            return fail_at(r, err, "control character in a string; write it as \\u00..");
        length = iron__utf8_length((const unsigned char *)r->at, (size_t)(r->end - r->at));
        if (length == 0)
            return fail_at(r, err, "invalid UTF-8");
        memcpy(r->strings, r->at, length);
        r->strings += length;
        r->at += length;
    }
    if (r->at == r->end)
        return fail_at(r, err, "expected '\"' at the end of the string");
    r->at++;
    *out = (iron__json){
        .kind = IRON_JSON_STRING, .count = (uint32_t)(r->strings - text), .text = text};
    *r->strings++ = '\0';
    return IRON_OK;
}

/* The end of the digits at p. */
static const char *skip_digits(const char *p, const char *end) {
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

/* The end of the number at p by the grammar of the RFC; or NULL, and *wrong is the offending
 * place. */
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

/* Reads a number. Any character that cannot start a value ends up here too. */
static iron_status read_number(reader *r, iron__json *out, iron_error *err) {
    const char *start = r->at, *wrong, *end = number_end(start, r->end, &wrong);
    double value;

    if (!end) {
        r->at = wrong;
        if (wrong < r->end && *wrong == '0')
            return fail_at(r, err, "a number must not have leading zeros");
        return fail_at(r, err, wrong == start ? "expected a value" : "expected a digit");
    }
    if (end - start > (ptrdiff_t)IRON_JSON_DIGITS_MAX)
        return fail_at(r, err, "number is longer than 128 characters");
    value = convert(start, (size_t)(end - start));
    if (value > DBL_MAX || value < -DBL_MAX)
        return fail_at(r, err, "number is out of range for a double");
    r->at = end;
    *out = (iron__json){.kind = IRON_JSON_NUMBER, .number = value};
    return IRON_OK;
}

static iron_status read_value(reader *r, iron__json *out, iron_error *err);

/* Skips blanks and then the character, if it is next. */
static bool skip(reader *r, char character) {
    skip_blanks(r);
    if (r->at == r->end || *r->at != character)
        return false;
    r->at++;
    return true;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const iron__json *)a)->name, ((const iron__json *)b)->name);
}

/* Reads an array or an object, from the opening bracket to behind the closing one. */
static iron_status read_container(reader *r, iron__json_kind kind, iron__json *out,
                                  iron_error *err) {
    bool is_object = kind == IRON_JSON_OBJECT, is_open;
    char close = is_object ? '}' : ']';
    size_t count = 0;

    if (++r->depth > IRON_JSON_DEPTH_MAX)
        return fail_at(r, err, "nesting is deeper than 64 levels");
    r->at++;
    for (is_open = !skip(r, close); is_open; count++) {
        iron__json name = {.text = NULL}, value;

        if (is_object) {
            if (!skip(r, '"'))
                return fail_at(r, err, "expected a member's name in quotes");
            IRON_TRY(read_string(r, &name, err));
            if (!skip(r, ':'))
                return fail_at(r, err, "expected ':'");
        }
        IRON_TRY(read_value(r, &value, err));
        value.name = name.text;
        assert(r->open > r->finished);
        *--r->open = value;
        is_open = skip(r, ',');
        if (!is_open && !skip(r, close))
            return fail_at(r, err, is_object ? "expected ',' or '}'" : "expected ',' or ']'");
    }
    if (is_object)
        qsort(r->open, count, sizeof *r->open, by_name);
    for (size_t k = 1; is_object && k < count; k++)
        if (by_name(&r->open[k - 1], &r->open[k]) == 0) {
            r->at--; /* the error points at the closing bracket */
            return fail_at(r, err, "two members of this object have the same name");
        }
    for (size_t k = 0; !is_object && k < count / 2; k++) { /* the stack grows down */
        iron__json value = r->open[k];

        r->open[k] = r->open[count - 1 - k];
        r->open[count - 1 - k] = value;
    }
    /* its values move from the stack to the finished ones */
    memmove(r->finished, r->open, count * sizeof *r->finished);
    *out = (iron__json){.kind = kind, .count = (uint32_t)count, .items = r->finished};
    r->finished += count;
    r->open += count;
    r->depth--;
    return IRON_OK;
}

static iron_status read_value(reader *r, iron__json *out, iron_error *err) {
    static const char *const words[] = {
        [IRON_JSON_NULL] = "null", [IRON_JSON_FALSE] = "false", [IRON_JSON_TRUE] = "true"};

    if (skip(r, '"'))
        return read_string(r, out, err);
    if (r->at < r->end && (*r->at == '{' || *r->at == '['))
        return read_container(r, *r->at == '{' ? IRON_JSON_OBJECT : IRON_JSON_ARRAY, out, err);
    for (iron__json_kind kind = IRON_JSON_NULL; kind <= IRON_JSON_TRUE; kind++) {
        size_t length = strlen(words[kind]);

        if ((size_t)(r->end - r->at) >= length && memcmp(r->at, words[kind], length) == 0) {
            r->at += length;
            *out = (iron__json){.kind = kind};
            return IRON_OK;
        }
    }
    return read_number(r, out, err);
}

/* Counts values and bytes of strings. The counts are upper bounds, for invalid texts too. */
static void measure(const char *text, size_t length, size_t *values, size_t *bytes) {
    /* In closed brackets a value and its separator take two bytes; open brackets are limited by the
     * depth. */
    size_t most = length / 2 + 2 + IRON_JSON_DEPTH_MAX;
    bool is_string = false;

    *values = 1;
    *bytes = 0;
    for (size_t k = 0; k < length; k++) {
        char c = text[k];

        if (c == '"')
            is_string = !is_string;
        if (is_string || c == '"')
            ++*bytes;
        else if (c == ',' || c == '[' || c == '{')
            ++*values;
        if (is_string && c == '\\' && k + 1 < length) {
            k++;
            ++*bytes;
        }
    }
    if (*values > most)
        *values = most;
}

iron_status iron__json_parse(const char *text, size_t length, const iron_allocator *allocator,
                             const iron__json **out, iron_error *err) {
    size_t values, bytes;
    iron__json *block;
    reader r = {.start = text, .at = text, .end = text + length};
    iron_status status;

    *out = NULL;
    IRON_FAIL_IF(length > IRON_JSON_BYTES_MAX, err, IRON_E_FORMAT,
                 "JSON text has %zu bytes; the limit is %zu", length, IRON_JSON_BYTES_MAX);
    measure(text, length, &values, &bytes);
    block = iron__allocate(allocator, 1, values * sizeof *block + bytes, "a JSON tree", err);
    if (!block)
        return IRON_E_NOMEM;
    r.finished = block + 1;
    r.open = block + values;
    r.strings = (char *)(block + values);
    status = read_value(&r, block, err);
    skip_blanks(&r);
    if (status == IRON_OK && r.at < r.end)
        status = fail_at(&r, err, "unexpected text after the value");
    if (status == IRON_OK)
        *out = block;
    else
        iron__release(allocator, block);
    return status;
}

void iron__json_destroy(const iron_allocator *allocator, const iron__json *root) {
    iron__release(allocator, (void *)(uintptr_t)root);
}

const iron__json *iron__json_member(const iron__json *object, const char *name) {
    const iron__json wanted = {.name = name};

    if (!object || object->kind != IRON_JSON_OBJECT)
        return NULL;
    return bsearch(&wanted, object->items, object->count, sizeof wanted, by_name);
}

size_t iron__json_length(const iron__json *array) {
    return array && array->kind == IRON_JSON_ARRAY ? array->count : 0;
}

const iron__json *iron__json_at(const iron__json *array, size_t index) {
    return index < iron__json_length(array) ? &array->items[index] : NULL;
}

const char *iron__json_get_text(const iron__json *value) {
    return value && value->kind == IRON_JSON_STRING ? value->text : NULL;
}

bool iron__json_get_number(const iron__json *value, double *out) {
    bool is_number = value && value->kind == IRON_JSON_NUMBER;

    if (is_number)
        *out = value->number;
    return is_number;
}

bool iron__json_get_bool(const iron__json *value, bool *out) {
    bool is_flag = value && (value->kind == IRON_JSON_TRUE || value->kind == IRON_JSON_FALSE);

    if (is_flag)
        *out = value->kind == IRON_JSON_TRUE;
    return is_flag;
}

bool iron__json_get_whole(const iron__json *value, uint64_t max, uint64_t *out) {
    double number;

    if (!iron__json_get_number(value, &number) || !(number >= 0 && number <= (double)max) ||
        (double)(uint64_t)number != number)
        return false;
    *out = (uint64_t)number;
    return true;
}

/* The writer. */

/* Levels that put each entry on its own line. */
#define DEPTH_OF_LINES 2u

/* Looks at no byte behind the zero at the end, which continues no character. */
bool iron__json_is_utf8(const char *text) {
    const unsigned char *at = (const unsigned char *)text;

    for (size_t bytes; *at; at += bytes)
        if ((bytes = iron__utf8_length(at, 4)) == 0)
            return false;
    return true;
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
    size_t bytes = iron__utf8_length(at, 4); /* as above */

    if (*at == '"' || *at == '\\')
        fprintf(j->to, "\\%c", *at);
    else if (*at < 0x20 || *at == 0x7F || (j->is_html && *at == '<'))
        fprintf(j->to, "\\u%04x", *at);
    else if (bytes == 0)
        fputs("\\ufffd", j->to);
    else if (at[0] == 0xE2 && at[1] == 0x80 && (at[2] | 1) == 0xA9) /* U+2028, U+2029 */
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
