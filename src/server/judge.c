/* SPDX-License-Identifier: MIT */
/*
 * judge.c: what the lines of a header say, judged; see audit.h. The judge sees names and values
 * alone, so that it serves for headers that were taken apart here and for the HTTP library's view.
 */
#include "server/audit.h"
#include "server/hosts.h"

#include <string.h>
#include <strings.h>

#define HELP_ONCE "send each of these header fields once, with one value"
#define HELP_BODY "send either one Content-Length or `Transfer-Encoding: chunked`"

static iron__verdict malformed(const char *help, const char *detail) {
    return iron__verdict_make("malformed-request", help, "%s", detail);
}

static bool is_token_byte(unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(iron__text text) {
    for (size_t k = 0; k < text.bytes; k++)
        if (!is_token_byte((unsigned char)text.at[k]))
            return false;
    return text.bytes > 0;
}

static bool is_field_value(iron__text text) {
    for (size_t k = 0; k < text.bytes; k++) {
        unsigned char c = (unsigned char)text.at[k];

        if ((c < 0x20 && c != '\t') || c == 0x7F)
            return false;
    }
    return true;
}

static iron__verdict judge_version(iron__text version) {
    if (iron__text_is(version, "HTTP/1.1") || iron__text_is(version, "HTTP/1.0"))
        return iron__verdict_fine();
    if (version.bytes == 8 && memcmp(version.at, "HTTP/", 5) == 0 && version.at[6] == '.')
        return iron__verdict_make("unsupported-version", "speak HTTP/1.1", "the request is %.8s",
                                  version.at);
    return malformed("send `METHOD target HTTP/1.1`", "the request line names no HTTP version");
}

static iron__verdict judge_method(iron__text method) {
    static const char *const known[] = {"GET",     "HEAD",  "POST",  "PUT",    "DELETE",
                                        "OPTIONS", "PATCH", "TRACE", "CONNECT"};

    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        if (iron__text_is(method, known[k]))
            return iron__verdict_fine();
    return malformed("methods are written in capitals: GET, POST, DELETE",
                     "the method is none of HTTP's");
}

static iron__verdict judge_target(iron__text target) {
    if (target.bytes > IRON_TARGET_BYTES_MAX)
        return iron__verdict_make("target-too-long", "ask for a shorter path and query",
                                  "the target has more than %zu bytes", IRON_TARGET_BYTES_MAX);
    if (target.bytes == 0 || target.at[0] != '/')
        return malformed("send a path that begins with /", "the target is no path");
    for (size_t k = 0; k < target.bytes; k++) {
        unsigned char c = (unsigned char)target.at[k];

        if (c <= 0x20 || c >= 0x7F || c == '#')
            return malformed("percent-encode what is not visible ASCII",
                             "the target holds a character that no target may hold");
    }
    return iron__verdict_fine();
}

/* Fields of which two would leave open which one counts. */
static bool stands_once(iron__text name) {
    static const char *const once[] = {"Host",
                                       "Content-Length",
                                       "Transfer-Encoding",
                                       "Content-Type",
                                       "Content-Encoding",
                                       "Authorization",
                                       "Idempotency-Key",
                                       "Expect",
                                       "Origin",
                                       "Range",
                                       "Content-Range",
                                       "Sec-Fetch-Site",
                                       "Last-Event-ID",
                                       "Max-Forwards",
                                       "From",
                                       "Referer",
                                       "User-Agent",
                                       "If-Modified-Since",
                                       "If-Unmodified-Since"};

    for (size_t k = 0; k < sizeof once / sizeof once[0]; k++)
        if (iron__text_is_caseless(name, once[k]))
            return true;
    return false;
}

static bool stands_before(const iron__header *header, uint32_t index) {
    iron__text name = header->fields[index].name;

    for (uint32_t k = 0; k < index; k++)
        if (header->fields[k].name.bytes == name.bytes &&
            strncasecmp(header->fields[k].name.at, name.at, name.bytes) == 0)
            return true;
    return false;
}

/* Fields that the HTTP library acts on itself, which sees a blank at the end as part of them: it
 * would not know `chunked ` and wait for a body without end. */
static bool is_read_exactly(iron__text name) {
    return iron__text_is_caseless(name, "Content-Length") ||
           iron__text_is_caseless(name, "Transfer-Encoding") ||
           iron__text_is_caseless(name, "Expect");
}

static iron__verdict judge_fields(const iron__header *header) {
    for (uint32_t k = 0; k < header->count; k++) {
        iron__text name = header->fields[k].name;

        if (!is_token(name))
            return malformed("a field's name is a token right before its colon",
                             "a header field has a name that is none");
        if (!is_field_value(header->fields[k].value))
            return malformed("send visible text", "a header field holds a control character");
        if (header->fields[k].is_followed_by_blank && is_read_exactly(name))
            return iron__verdict_make("malformed-request", "send it without a blank at its end",
                                      "a blank follows the %.*s", (int)name.bytes, name.at);
        if (stands_once(name) && stands_before(header, k))
            return iron__verdict_make("malformed-request", HELP_ONCE, "%.*s stands twice",
                                      (int)name.bytes, name.at);
    }
    return iron__verdict_fine();
}

static iron__verdict judge_host(const iron__header *header) {
    iron__text host = iron__header_find(header, "Host");

    if (host.at && !iron__host_is_valid(host))
        return malformed("send `Host: name:port`", "the Host is no name with a port");
    if (!host.at && iron__text_is(header->version, "HTTP/1.1"))
        return malformed("send a Host", "the request has no Host");
    return iron__verdict_fine();
}

/* Digits below 2^63, which every program can count with. */
static bool read_length(iron__text text, uint64_t *out) {
    *out = 0;
    for (size_t k = 0; k < text.bytes; k++) {
        if (text.at[k] < '0' || text.at[k] > '9' || *out > (INT64_MAX - 9) / 10)
            return false;
        *out = *out * 10 + (uint64_t)(text.at[k] - '0');
    }
    return text.bytes > 0;
}

static iron__verdict judge_body(iron__header *header) {
    iron__text length = iron__header_find(header, "Content-Length");
    iron__text coding = iron__header_find(header, "Transfer-Encoding");

    header->body_bytes = 0;
    if (length.at && coding.at)
        return malformed(HELP_BODY, "Content-Length and Transfer-Encoding stand together");
    if (coding.at && !iron__text_is_caseless(coding, "chunked"))
        return malformed(HELP_BODY, "the Transfer-Encoding is not `chunked`");
    if (coding.at && !iron__text_is(header->version, "HTTP/1.1"))
        return malformed(HELP_BODY, "HTTP/1.0 has no Transfer-Encoding");
    if (length.at && !read_length(length, &header->body_bytes))
        return malformed(HELP_BODY, "the Content-Length is no number that can be");
    if (coding.at)
        header->body_bytes = IRON_LENGTH_UNKNOWN;
    return iron__verdict_fine();
}

static iron__verdict judge_expect(const iron__header *header) {
    iron__text expect = iron__header_find(header, "Expect");

    if (expect.at && !iron__text_is_caseless(expect, "100-continue"))
        return malformed("send `Expect: 100-continue` or none",
                         "the request expects what this server does not know");
    return iron__verdict_fine();
}

iron__verdict iron__audit_judge(iron__header *header) {
    iron__verdict verdict = judge_version(header->version);

    if (!verdict.kind)
        verdict = judge_method(header->method);
    if (!verdict.kind)
        verdict = judge_target(header->target);
    if (!verdict.kind)
        verdict = judge_fields(header);
    if (!verdict.kind)
        verdict = judge_host(header);
    if (!verdict.kind)
        verdict = judge_body(header);
    if (!verdict.kind)
        verdict = judge_expect(header);
    return verdict;
}
