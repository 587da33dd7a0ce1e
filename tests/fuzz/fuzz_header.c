/* SPDX-License-Identifier: MIT */
/*
 * fuzz_header.c: any bytes as a request's header. An accepted header conforms to the RFC in every
 * byte, and its end is found for any split into pieces. A refused header has a message.
 */
#include "fuzz.h"

#include "server/header.c"
#include "server/request.c"

static void require_said(const iron__http_error *error) {
    FUZZ_REQUIRE(error->help && error->detail[0]);
    FUZZ_REQUIRE(memchr(error->detail, '\0', sizeof error->detail));
}

/* Writing what was understood gives the same bytes, but for blanks around values. */
static void require_same(const iron__header *header, const char *bytes, size_t count) {
    const char *at = bytes, *end = bytes + count;

    FUZZ_REQUIRE(header->method.at == at);
    at += header->method.bytes;
    FUZZ_REQUIRE(*at++ == ' ' && header->target.at == at);
    at += header->target.bytes;
    FUZZ_REQUIRE(*at++ == ' ' && header->version.at == at && header->version.bytes == 8);
    at += 8;
    for (uint32_t k = 0; k < header->count; k++) {
        FUZZ_REQUIRE(memcmp(at, "\r\n", 2) == 0 && header->fields[k].name.at == at + 2);
        at += 2 + header->fields[k].name.bytes;
        FUZZ_REQUIRE(*at++ == ':');
        at += strspn(at, " \t");
        FUZZ_REQUIRE(header->fields[k].value.bytes == 0 || header->fields[k].value.at == at);
        at += header->fields[k].value.bytes;
        at += strspn(at, " \t");
    }
    FUZZ_REQUIRE(end - at == 4 && memcmp(at, "\r\n\r\n", 4) == 0);
}

/* What no header that passed may have. */
static void require_strict(const iron__header *header, const char *bytes, size_t count) {
    uint32_t lengths = 0, codings = 0, hosts = 0;

    FUZZ_REQUIRE(count <= IRON_HEADER_BYTES_MAX && header->count <= IRON_HEADER_FIELDS_MAX);
    for (size_t k = 0; k < count; k++) {
        unsigned char c = (unsigned char)bytes[k];

        FUZZ_REQUIRE(c >= 0x20 || c == '\t' || c == '\r' || c == '\n');
        FUZZ_REQUIRE((c == '\n') == (k > 0 && bytes[k - 1] == '\r'));
    }
    for (uint32_t k = 0; k < header->count; k++) {
        lengths += iron__text_is_caseless(header->fields[k].name, "content-length");
        codings += iron__text_is_caseless(header->fields[k].name, "transfer-encoding");
        hosts += iron__text_is_caseless(header->fields[k].name, "host");
    }
    FUZZ_REQUIRE(lengths + codings <= 1 && hosts <= 1);
    FUZZ_REQUIRE(hosts == 1 || iron__text_is(header->version, "HTTP/1.0"));
    FUZZ_REQUIRE(header->target.at[0] == '/' && header->target.bytes <= IRON_TARGET_BYTES_MAX);
    FUZZ_REQUIRE(codings == (header->body_bytes == IRON_LENGTH_UNKNOWN));
    FUZZ_REQUIRE(codings || header->body_bytes <= INT64_MAX);
}

/* Verdict and end do not depend on how much had arrived when it was looked at before. */
static void require_steady(const char *bytes, size_t count) {
    size_t end, earlier;
    iron__http_error error = find_end(bytes, count, &end);

    for (size_t have = 0; have < count; have += 1 + count / 8) {
        iron__http_error before = find_end(bytes, have, &earlier);

        if (earlier > 0)
            FUZZ_REQUIRE(earlier == end);
        if (before.kind && strcmp(before.kind, "malformed-request") == 0)
            FUZZ_REQUIRE(error.kind && strcmp(error.kind, before.kind) == 0);
    }
    if (error.kind)
        require_said(&error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static iron__listener at = {.host = "127.0.0.1"};
    static const iron_server ours = {.listeners = &at, .listener_count = 1, .is_loopback = true};
    iron__header header;
    iron__http_error error;
    char *copy;
    size_t end;

    if (size == 0)
        return 0;
    copy = fuzz_copy(data, size);
    require_steady(copy, size);
    error = iron__header_parse(copy, size, &header, &end);
    if (!error.kind && end == size)
        error = iron__header_check(&header);
    if (error.kind) {
        require_said(&error);
    } else if (end == size) {
        require_same(&header, copy, size);
        require_strict(&header, copy, size);
        error = check_origin(&ours, &header);
        if (error.kind)
            require_said(&error);
    }
    free(copy);
    return 0;
}
