/* SPDX-License-Identifier: MIT */
/*
 * header.c: parses and checks request headers, strictly (server_internal.h says why), and the small
 * texts in them.
 *
 * There are two steps. iron__header_parse splits bytes into lines and fields: a line ends with CR
 * LF and nowhere else, a name is directly followed by its colon, a request line has two blanks. The
 * acceptor uses it for the first header of a connection, before libmicrohttpd reads it.
 * iron__header_check looks at the names and values only, so it is used for every request, also for
 * those that only libmicrohttpd has read.
 */
#include "server/server_internal.h"

#include <stdarg.h>

#define HELP_SYNTAX "send the request as RFC 9112 requires; HTTP libraries do"
#define HELP_SHORT  "send fewer or shorter header fields"
#define HELP_BODY   "send either one Content-Length or `Transfer-Encoding: chunked`"

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static bool is_control(unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7F; }

iron__http_error iron__http_error_make(const char *kind, const char *help, const char *detail,
                                       ...) {
    iron__http_error error = {.kind = kind, .help = help};
    va_list values;

    va_start(values, detail);
    vsnprintf(error.detail, sizeof error.detail, detail, values);
    va_end(values);
    return error;
}

static iron__http_error malformed(const char *help, const char *detail) {
    return iron__http_error_make("malformed-request", help, "%s", detail);
}

iron__http_error iron__target_too_long(void) {
    return iron__http_error_make("target-too-long", "ask for a shorter path and query",
                                 "the target has more than %zu bytes", IRON_TARGET_BYTES_MAX);
}

/* Texts */

iron__text iron__text_trim(iron__text text) {
    while (text.bytes > 0 && is_blank(text.at[0])) {
        text.at++;
        text.bytes--;
    }
    while (text.bytes > 0 && is_blank(text.at[text.bytes - 1]))
        text.bytes--;
    return text;
}

bool iron__text_number(iron__text text, uint64_t *value) {
    uint64_t number = 0;

    for (size_t k = 0; k < text.bytes; k++)
        if (text.at[k] < '0' || text.at[k] > '9' ||
            __builtin_mul_overflow(number, UINT64_C(10), &number) ||
            __builtin_add_overflow(number, (uint64_t)(text.at[k] - '0'), &number))
            return false;
    if (text.bytes > 0)
        *value = number;
    return text.bytes > 0;
}

bool iron__text_is_one_of(iron__text text, const char *words, bool is_caseless) {
    for (size_t bytes; *words; words += bytes + (words[bytes] == ' ')) {
        bytes = strcspn(words, " ");
        if (bytes == text.bytes &&
            (is_caseless ? strncasecmp : strncmp)(words, text.at, bytes) == 0)
            return true;
    }
    return false;
}

bool iron__text_is_word(iron__text text, const char *others) {
    for (size_t k = 0; k < text.bytes; k++) {
        char c = text.at[k];

        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
              (c != '\0' && strchr(others, c))))
            return false;
    }
    return text.bytes > 0;
}

bool iron__text_is_type(iron__text type, const char *name) {
    size_t bytes = strlen(name);

    return type.bytes >= bytes && strncasecmp(type.at, name, bytes) == 0 &&
           (type.bytes == bytes || strchr("; \t", type.at[bytes]));
}

/* Parsing */

/* *end is the length of the header including the empty line, or 0 while more must arrive. */
static iron__http_error find_end(const char *bytes, size_t count, size_t *end) {
    *end = 0;
    for (size_t k = 0; k < count && k < IRON_HEADER_BYTES_MAX; k++) {
        unsigned char c = (unsigned char)bytes[k];
        bool is_after_cr = k > 0 && bytes[k - 1] == '\r';

        if (c == '\n' && !is_after_cr)
            return malformed(HELP_SYNTAX, "a line feed has no CR before it");
        if (c != '\n' && is_after_cr)
            return malformed(HELP_SYNTAX, "a CR has no line feed after it");
        if (c != '\n' && c != '\r' && is_control(c))
            return malformed(HELP_SYNTAX, "the header contains a control character");
        if (bytes[k] == '\n' && k >= 3 && bytes[k - 2] == '\n') {
            *end = k + 1;
            return iron__http_error_none();
        }
        if (bytes[k] == '\n' && k == 1)
            return malformed(HELP_SYNTAX, "the request begins with an empty line");
    }
    if (count < IRON_HEADER_BYTES_MAX)
        return iron__http_error_none();
    if (!memchr(bytes, '\n', IRON_TARGET_BYTES_MAX)) /* the request line alone is too long */
        return iron__target_too_long();
    return iron__http_error_make("header-too-large", HELP_SHORT,
                                 "the header has more than %zu bytes", IRON_HEADER_BYTES_MAX);
}

/* Removes the text up to `mark`, and the mark, from `rest`; false if there is no mark. */
static bool cut(iron__text *rest, char mark, iron__text *out) {
    const char *found = memchr(rest->at, mark, rest->bytes);

    if (!found)
        return false;
    *out = (iron__text){rest->at, (size_t)(found - rest->at)};
    rest->at += out->bytes + 1;
    rest->bytes -= out->bytes + 1;
    return true;
}

/* The next line without its CR LF, which find_end has seen. */
static iron__text next_line(iron__text *rest) {
    iron__text line = {rest->at, 0};

    if (cut(rest, '\n', &line) && line.bytes > 0)
        line.bytes--;
    return line;
}

iron__http_error iron__header_parse(const char *bytes, size_t count, iron__header *header,
                                    size_t *end) {
    iron__http_error error = find_end(bytes, count, end);
    iron__text rest = {bytes, *end}, line;

    header->count = 0;
    header->body_bytes = 0;
    if (error.kind || *end == 0)
        return error;
    line = next_line(&rest);
    if (!cut(&line, ' ', &header->method) || !cut(&line, ' ', &header->target))
        return malformed(HELP_SYNTAX, "the request line is not `METHOD target HTTP/1.1`");
    header->version = line;
    for (line = next_line(&rest); line.bytes > 0; line = next_line(&rest)) {
        iron__text name;

        if (is_blank(line.at[0]))
            return malformed(HELP_SYNTAX, "a header line begins with a blank: folded lines are not "
                                          "accepted");
        if (!cut(&line, ':', &name))
            return malformed(HELP_SYNTAX, "a header line has no colon");
        if (!iron__header_add(header, name, line))
            return iron__http_error_make("header-too-large", HELP_SHORT,
                                         "the header has more than %u fields",
                                         IRON_HEADER_FIELDS_MAX);
    }
    return error;
}

/* Checking */

static bool is_field_value(iron__text text) {
    for (size_t k = 0; k < text.bytes; k++)
        if (is_control((unsigned char)text.at[k]))
            return false;
    return true;
}

static iron__http_error check_request_line(const iron__header *header) {
    static const char methods[] = "GET HEAD POST PUT DELETE OPTIONS PATCH TRACE CONNECT";
    iron__text version = header->version, target = header->target;

    if (!iron__text_is(version, "HTTP/1.1") && !iron__text_is(version, "HTTP/1.0")) {
        if (version.bytes == 8 && memcmp(version.at, "HTTP/", 5) == 0 && version.at[6] == '.')
            return iron__http_error_make("unsupported-version", "use HTTP/1.1",
                                         "the request is %.8s", version.at);
        return malformed("send `METHOD target HTTP/1.1`", "the request line names no HTTP version");
    }
    if (!iron__text_is_one_of(header->method, methods, false))
        return malformed("methods are written in capitals: GET, POST, DELETE",
                         "the method is not one of HTTP's");
    if (target.bytes > IRON_TARGET_BYTES_MAX)
        return iron__target_too_long();
    if (target.bytes == 0 || target.at[0] != '/')
        return malformed("send a path that begins with /", "the target is not a path");
    for (size_t k = 0; k < target.bytes; k++) {
        unsigned char c = (unsigned char)target.at[k];

        if (c <= 0x20 || c >= 0x7F || c == '#')
            return malformed("percent-encode everything but visible ASCII",
                             "the target contains a character that is not allowed there");
    }
    return iron__http_error_none();
}

static bool occurs_before(const iron__header *header, uint32_t index) {
    iron__text name = header->fields[index].name;

    for (uint32_t k = 0; k < index; k++)
        if (header->fields[k].name.bytes == name.bytes &&
            strncasecmp(header->fields[k].name.at, name.at, name.bytes) == 0)
            return true;
    return false;
}

static iron__http_error check_fields(const iron__header *header) {
    /* Of these, a second one would leave open which one counts. */
    static const char once[] =
        "Host Content-Length Transfer-Encoding Content-Type Authorization Idempotency-Key "
        "Content-Encoding Expect Origin Range Content-Range Sec-Fetch-Site Last-Event-ID "
        "Max-Forwards From Referer User-Agent If-Modified-Since If-Unmodified-Since";
    /* libmicrohttpd acts on these itself and takes a trailing blank for a part of the value: it
     * would not know `chunked ` and wait for a body without end. */
    static const char exact[] = "Content-Length Transfer-Encoding Expect";

    for (uint32_t k = 0; k < header->count; k++) {
        iron__text name = header->fields[k].name;

        if (!iron__text_is_word(name, "!#$%&'*+-.^_`|~"))
            return malformed("a field's name is a token directly before its colon",
                             "a header field has an invalid name");
        if (!is_field_value(header->fields[k].value))
            return malformed("send visible text", "a header field contains a control character");
        if (header->fields[k].is_followed_by_blank && iron__text_is_one_of(name, exact, true))
            return iron__http_error_make("malformed-request", "send it without a trailing blank",
                                         "a blank follows the %.*s", (int)name.bytes, name.at);
        if (iron__text_is_one_of(name, once, true) && occurs_before(header, k))
            return iron__http_error_make("malformed-request",
                                         "send each of these header fields once, with one value",
                                         "%.*s occurs twice", (int)name.bytes, name.at);
    }
    return iron__http_error_none();
}

iron__http_error iron__header_check(iron__header *header) {
    iron__text host = iron__header_get(header, "Host");
    iron__text expect = iron__header_get(header, "Expect");
    iron__text length = iron__header_get(header, "Content-Length");
    iron__text coding = iron__header_get(header, "Transfer-Encoding");
    iron__http_error error = check_request_line(header);

    if (!error.kind)
        error = check_fields(header);
    if (error.kind)
        return error;
    if (host.at && !iron__host_is_valid(host, true))
        return malformed("send `Host: name:port`", "the Host is not a name with an optional port");
    if (!host.at && iron__text_is(header->version, "HTTP/1.1"))
        return malformed("send a Host", "the request has no Host");
    header->body_bytes = 0;
    if (length.at && coding.at)
        return malformed(HELP_BODY, "the request has both Content-Length and Transfer-Encoding");
    if (coding.at && !iron__text_is_caseless(coding, "chunked"))
        return malformed(HELP_BODY, "the Transfer-Encoding is not `chunked`");
    if (coding.at && !iron__text_is(header->version, "HTTP/1.1"))
        return malformed(HELP_BODY, "HTTP/1.0 has no Transfer-Encoding");
    if (length.at && (!iron__text_number(length, &header->body_bytes) ||
                      header->body_bytes > INT64_MAX)) /* which every program can represent */
        return malformed(HELP_BODY, "the Content-Length is not a valid number");
    if (coding.at)
        header->body_bytes = IRON_LENGTH_UNKNOWN;
    if (expect.at && !iron__text_is_caseless(expect, "100-continue"))
        return malformed("send `Expect: 100-continue` or no Expect",
                         "the request expects something this server does not know");
    return error;
}

/* Digests (RFC 9530): a dictionary of structured fields, as in `sha-256=:BASE64:, sha-512=:...:` */

/* Exactly 32 bytes as base64. */
static bool read_base64(iron__text text, unsigned char digest[32]) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    size_t count = 0;

    if (text.bytes != 44 || text.at[43] != '=')
        return false;
    for (size_t k = 0; k < 43; k++) {
        const char *found = memchr(digits, text.at[k], sizeof digits - 1);

        if (!found)
            return false;
        bits = bits << 6 | (uint32_t)(found - digits);
        if (k % 4 == 3 || k == 42) {
            bits <<= k == 42 ? 6 : 0;
            for (int shift = 16; shift >= 0 && count < 32; shift -= 8)
                digest[count++] = (unsigned char)(bits >> shift);
            bits = 0;
        }
    }
    return true;
}

/* A member is `name=:BASE64:`, with parameters that mean nothing. */
iron__http_error iron__header_digest(const iron__header *header, unsigned char digest[32],
                                     bool *has_digest) {
    static const char name[] = "sha-256=";
    size_t skip = sizeof name - 1;

    *has_digest = false;
    for (uint32_t k = 0; k < header->count; k++) {
        iron__text rest = header->fields[k].value, member;
        unsigned char found[32];
        bool is_more =
            iron__text_is_one_of(header->fields[k].name, "Content-Digest Repr-Digest", true);

        while (is_more) {
            is_more = cut(&rest, ',', &member);
            member = iron__text_trim(is_more ? member : rest);
            if (member.bytes < skip || memcmp(member.at, name, skip) != 0)
                continue;
            member = (iron__text){member.at + skip, member.bytes - skip};
            if (cut(&(iron__text){member.at, member.bytes}, ';', &member))
                member = iron__text_trim(member);
            if (member.bytes <= 2 || member.at[0] != ':' || member.at[member.bytes - 1] != ':' ||
                !read_base64((iron__text){member.at + 1, member.bytes - 2}, found))
                return iron__http_error_make("bad-digest", "send `sha-256=:BASE64:` with 32 bytes",
                                             "the digest cannot be read");
            if (*has_digest && memcmp(found, digest, sizeof found) != 0)
                return iron__http_error_make("bad-digest", "send one digest",
                                             "the digests differ from each other");
            memcpy(digest, found, sizeof found);
            *has_digest = true;
        }
    }
    return iron__http_error_none();
}
