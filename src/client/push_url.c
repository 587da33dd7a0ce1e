/* SPDX-License-Identifier: MIT */
/*
 * push_url.c: see push_url.h.
 *
 *     http://HOST[:PORT]/v1/engines/NAME[/feed]
 *
 * No user, no query, no percent signs: an engine's name needs none, and what would be decoded
 * twice, or read by the server as another path, cannot be written.
 */
#include "client/push_url.h"

#include "core/fail.h"

#include <string.h>

#define ENGINES "/v1/engines/"

#define DIGITS  "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/* Where the text goes on after `word`, whose letters may be large or small; NULL: elsewhere. */
static const char *after_word(const char *text, const char *word) {
    for (; *word; text++, word++)
        if ((*text | 0x20) != (*word | 0x20))
            return NULL;
    return text;
}

static const char *after_scheme(const char *text) {
    const char *rest = after_word(text, "http");

    if (rest && (*rest == 's' || *rest == 'S'))
        rest++;
    return rest && strncmp(rest, "://", 3) == 0 ? rest + 3 : NULL;
}

/* A name, an IPv4 address, or an IPv6 address in brackets. */
static const char *after_host(const char *host) {
    size_t length;

    if (*host == '[') {
        length = strspn(host + 1, DIGITS "abcdefABCDEF:.");
        return length > 0 && host[1 + length] == ']' ? host + length + 2 : NULL;
    }
    length = strspn(host, LETTERS DIGITS ".-_");
    return length > 0 ? host + length : NULL;
}

/* ":1" to ":65535", or nothing. */
static const char *after_port(const char *text) {
    size_t digits;
    unsigned port = 0;

    if (*text != ':')
        return text;
    digits = strspn(text + 1, DIGITS);
    for (size_t k = 1; k <= digits && port <= 65535; k++)
        port = 10 * port + (unsigned)(text[k] - '0');
    return port >= 1 && port <= 65535 ? text + 1 + digits : NULL;
}

/* As the server has them: letters, digits, . _ -, beginning with a letter or digit. */
static const char *after_name(const char *name) {
    size_t length = strspn(name, LETTERS DIGITS "._-");

    if (length == 0 || length >= IRON_PUSH_NAME_ROOM || strchr("._-", name[0]))
        return NULL;
    return name + length;
}

/* Names that stand for this machine by definition, and 127.0.0.0/8. */
static bool is_loopback(const char *host, size_t length) {
    static const char *const names[] = {"localhost", "[::1]"};
    size_t digits_and_dots = strspn(host, DIGITS ".");

    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        if (length == strlen(names[k]) && after_word(host, names[k]))
            return true;
    return digits_and_dots == length && strncmp(host, "127.", 4) == 0;
}

/* The pieces in their order; false at the first that is not there. */
static bool take_apart(const char *text, iron__push_url *url) {
    const char *host = after_scheme(text), *host_end, *path, *name, *end;

    if (!host || !(host_end = after_host(host)) || !(path = after_port(host_end)) ||
        strncmp(path, ENGINES, sizeof ENGINES - 1) != 0)
        return false;
    name = path + sizeof ENGINES - 1;
    end = after_name(name);
    if (!end || (*end && strcmp(end, "/feed") != 0) || end - text >= (int)IRON_PUSH_URL_ROOM)
        return false;
    memcpy(url->engine, text, (size_t)(end - text));
    memcpy(url->name, name, (size_t)(end - name));
    url->is_loopback = is_loopback(host, (size_t)(host_end - host));
    return true;
}

iron_status iron__push_url_parse(const char *text, iron__push_url *url, iron_error *err) {
    *url = (iron__push_url){0};
    IRON_FAIL_IF(!take_apart(text, url), err, IRON_E_ARG,
                 "'%.100s' is no engine's address; it looks like "
                 "http://127.0.0.1:8080/v1/engines/NAME (https:// for a server with TLS)",
                 text);
    return IRON_OK;
}
