/* SPDX-License-Identifier: MIT */
/*
 * s3.c: what S3 adds to HTTP: addresses of buckets, credentials as the AWS tools find them,
 * signatures (version 4) and lists of objects.
 *
 * Requests are signed here and not by libcurl, whose own signing (CURLOPT_AWS_SIGV4) has orders of
 * headers and encodings that differ from version to version. The signature covers host and x-amz-*
 * headers; a range may be asked for without being signed.
 *
 * Keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN), else from the
 * profile AWS_PROFILE ("default") of ~/.aws/credentials or ~/.aws/config. Without keys, requests
 * are not signed, which is right for public buckets.
 */
#include "io/remote_internal.h"

#include "core/array.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/memory.h"
#include "core/number.h"
#include "core/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* HMAC (RFC 2104). False: out of memory. */
static bool hmac(const void *key, size_t key_bytes, const char *text, size_t bytes,
                 unsigned char out[32]) {
    unsigned char *inner = malloc(64 + bytes), outer[64 + 32], hashed[32];

    if (!inner)
        return false;
    if (key_bytes > 64) {
        iron__sha256(key, key_bytes, hashed);
        key = hashed;
        key_bytes = sizeof hashed;
    }
    memset(inner, 0, 64);
    memcpy(inner, key, key_bytes);
    for (unsigned k = 0; k < 64; k++) {
        outer[k] = inner[k] ^ 0x5c;
        inner[k] ^= 0x36;
    }
    memcpy(inner + 64, text, bytes);
    iron__sha256(inner, 64 + bytes, outer + 64);
    iron__sha256(outer, sizeof outer, out);
    free(inner);
    return true;
}

static void write_hex(const unsigned char digest[32], char hex[65]) {
    for (unsigned k = 0; k < 32; k++)
        snprintf(hex + 2 * (size_t)k, 3, "%02x", digest[k]);
}

char *iron__s3_encode(const char *text, bool is_path) {
    static const char plain[] =
        "/ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    char *coded = malloc(3 * strlen(text) + 1), *to = coded;

    for (; coded && *text; text++) {
        if (strchr(plain + !is_path, *text))
            *to++ = *text;
        else
            to += sprintf(to, "%%%02X", (unsigned char)*text);
    }
    if (coded)
        *to = '\0';
    return coded;
}

/* Signatures. */

#define SERVICE "s3"
/* SHA-256 of an empty body. */
#define EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* The key of the day, region and service signs the text. False: out of memory. */
static bool sign_text(const iron__s3_signing *s, const char *text, char hex[65]) {
    const char *const parts[] = {s->region, SERVICE, "aws4_request", text};
    char *first = iron__print("AWS4%s", s->secret);
    unsigned char key[32];
    bool is_done = first && hmac(first, strlen(first), s->time, strlen("20130524"), key);

    for (unsigned k = 0; is_done && k < 4; k++)
        is_done = hmac(key, sizeof key, parts[k], strlen(parts[k]), key);
    free(first);
    if (is_done)
        write_hex(key, hex);
    return is_done;
}

char *iron__s3_authorization(const iron__s3_signing *s) {
    char *scope = iron__print("%.8s/%s/" SERVICE "/aws4_request", s->time, s->region);
    char names[256] = "", hash[65], signature[65], *request = NULL, *text = NULL, *line = NULL;
    unsigned char digest[32];
    size_t length = 0;
    FILE *to = open_memstream(&request, &length);
    bool is_whole;

    if (!to)
        goto done;
    /* the canonical request */
    fprintf(to, "GET\n%s\n%s\n", s->path, s->query);
    for (unsigned k = 0; k < s->count; k++) {
        iron__append(names, sizeof names, "%s%s", k > 0 ? ";" : "", s->headers[k].name);
        fprintf(to, "%s:%s\n", s->headers[k].name, s->headers[k].value);
    }
    fprintf(to, "\n%s\n" EMPTY_HASH, names);
    is_whole = !ferror(to);
    if (fclose(to) != 0 || !is_whole)
        goto done;
    iron__sha256(request, length, digest);
    write_hex(digest, hash);
    if (scope)
        text = iron__print("AWS4-HMAC-SHA256\n%s\n%s\n%s", s->time, scope, hash);
    if (text && sign_text(s, text, signature))
        line = iron__print("AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s",
                           s->key, scope, names, signature);
done:
    free(scope);
    free(request);
    free(text);
    return line;
}

/* "http://host:port/path?query": the host as libcurl sends it, without the scheme's own port. */
static bool split_url(const char *url, char **host, char **path, const char **query) {
    const char *at = strstr(url, "://") + 3, *slash = strchr(at, '/'), *mark;
    size_t length = slash ? (size_t)(slash - at) : strcspn(at, "?");
    const char *port = strncmp(url, "https", 5) == 0 ? ":443" : ":80";
    size_t port_length = strlen(port);

    if (length > port_length && memcmp(at + length - port_length, port, port_length) == 0)
        *host = strndup(at, length - port_length);
    else
        *host = strndup(at, length);
    at += length;
    mark = strchr(at, '?');
    *path = at[0] == '/' ? strndup(at, mark ? (size_t)(mark - at) : strlen(at)) : strdup("/");
    *query = mark ? mark + 1 : "";
    return *host && *path;
}

iron_status iron__s3_sign(const iron__s3_access *access, const char *url, time_t now,
                          char *lines[IRON_HTTP_LINES_MAX], unsigned *count, iron_error *err) {
    char stamp[32], *host = NULL, *path = NULL, *authorization = NULL;
    iron__s3_header headers[] = {{"host", NULL},
                                 {"x-amz-content-sha256", EMPTY_HASH},
                                 {"x-amz-date", stamp},
                                 {"x-amz-security-token", access->token}};
    iron__s3_signing signing = {.headers = headers,
                                .count = access->token ? 4 : 3,
                                .time = stamp,
                                .region = access->region,
                                .key = access->key,
                                .secret = access->secret};
    struct tm utc;
    bool is_done = true;

    *count = 0;
    if (!access->key)
        return IRON_OK;
    gmtime_r(&now, &utc);
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
    if (split_url(url, &host, &path, &signing.query)) {
        headers[0].value = host;
        signing.path = path;
        authorization = iron__s3_authorization(&signing);
    }
    if (authorization) {
        lines[(*count)++] = iron__print("Authorization: %s", authorization);
        for (unsigned k = 1; k < signing.count; k++)
            lines[(*count)++] = iron__print("%s: %s", headers[k].name, headers[k].value);
    }
    for (unsigned k = 0; k < *count; k++)
        is_done = is_done && lines[k];
    free(host);
    free(path);
    free(authorization);
    if (*count > 0 && is_done)
        return IRON_OK;
    for (unsigned k = 0; k < *count; k++)
        free(lines[k]);
    *count = 0;
    return iron__no_memory(err, "a signed request");
}

/* Addresses. */

iron_status iron__s3_split(const char *name, char bucket[64], const char **key, iron_error *err) {
    const char *at = name + strlen("s3://");
    size_t length = strcspn(at, "/");

    IRON_FAIL_IF(memchr(at, '@', length), err, IRON_E_ARG,
                 "an s3:// address has no user and password; set AWS_ACCESS_KEY_ID and "
                 "AWS_SECRET_ACCESS_KEY instead");
    IRON_FAIL_IF(
        length < 1 || length > 63 || at[length] != '/' ||
            strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_") !=
                length,
        err, IRON_E_ARG, "'%.120s' is not the address of an object: s3://bucket/key", name);
    memcpy(bucket, at, length);
    bucket[length] = '\0';
    *key = at + length + 1;
    return IRON_OK;
}

char *iron__s3_url(const iron__s3_access *access, const char *bucket, const char *key,
                   const char *query) {
    const char *endpoint = access->endpoint;
    const char *china = !endpoint && strncmp(access->region, "cn-", 3) == 0 ? ".cn" : "";
    char *coded = iron__s3_encode(key ? key : "", true), *server = NULL, *url = NULL;

    if (endpoint) {
        size_t length = strlen(endpoint);

        while (length > 0 && endpoint[length - 1] == '/')
            length--;
        server = iron__print("%.*s/%s", (int)length, endpoint, bucket);
    } else if (strchr(bucket, '.') || strchr(bucket, '_')) {
        server = iron__print("https://s3.%s.amazonaws.com%s/%s", access->region, china, bucket);
    } else {
        server = iron__print("https://%s.s3.%s.amazonaws.com%s%s", bucket, access->region, china,
                             key ? "" : "/");
    }
    if (coded && server)
        url = iron__print("%s%s%s%s%s", server, key ? "/" : "", coded, query ? "?" : "",
                          query ? query : "");
    free(coded);
    free(server);
    return url;
}

/* Credentials. */

static const char *variable(const char *name) {
    const char *value = secure_getenv(name);

    return value && value[0] ? value : NULL;
}

/* The value of a line "name = value", with blanks removed around both; NULL: not that name. */
static char *setting(char *line, const char *name) {
    char *equals = strchr(line, '='), *end;
    size_t length;

    if (!equals || line[0] == ' ' || line[0] == '\t') /* an indented line belongs to a group */
        return NULL;
    length = (size_t)(equals - line);
    while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t'))
        length--;
    if (length != strlen(name) || strncasecmp(line, name, length) != 0)
        return NULL;
    equals += 1 + strspn(equals + 1, " \t");
    end = equals + strlen(equals);
    while (end > equals && strchr(" \t\r\n", end[-1]))
        *--end = '\0';
    return equals[0] ? equals : NULL;
}

/* Copies the value unless *to has one already; a NULL value changes nothing. Returns false if out
 * of memory. */
static bool keep(const char *value, char **to) {
    if (value && !*to)
        *to = strdup(value);
    return !value || *to;
}

/* Whether a line begins the profile's section: [name], or in the config file [profile name]. */
static bool is_section(const char *line, const char *profile) {
    size_t length = strlen(profile);

    line += 1 + strspn(line + 1, " \t");
    if (strncmp(line, "profile", 7) == 0 && (line[7] == ' ' || line[7] == '\t'))
        line += 7 + strspn(line + 7, " \t");
    if (strncmp(line, profile, length) != 0)
        return false;
    line += length;
    return line[strspn(line, " \t")] == ']';
}

/* Reads the profile's section of a file; a missing file has none. False: out of memory. */
static bool read_profile(const char *path, const char *profile, iron__s3_access *access,
                         bool *is_found) {
    FILE *file = fopen(path, "re");
    bool is_in = false, is_done = true;
    iron__s3_access here = {.region = access->region, .endpoint = access->endpoint};
    char *line = NULL;
    size_t room = 0;

    if (!file)
        return true;
    while (is_done && getline(&line, &room, file) >= 0) {
        if (line[0] == '[') {
            is_in = is_section(line, profile);
            *is_found = *is_found || is_in;
        } else if (is_in) {
            is_done = keep(setting(line, "aws_access_key_id"), &here.key) &&
                      keep(setting(line, "aws_secret_access_key"), &here.secret) &&
                      keep(setting(line, "aws_session_token"), &here.token) &&
                      keep(setting(line, "region"), &here.region) &&
                      keep(setting(line, "endpoint_url"), &here.endpoint);
        }
    }
    free(line);
    fclose(file);
    access->region = here.region;
    access->endpoint = here.endpoint;
    if (is_done && !access->key && here.key && here.secret) { /* all of them from one place */
        access->key = here.key;
        access->secret = here.secret;
        access->token = here.token;
    } else {
        free(here.key);
        free(here.secret);
        free(here.token);
    }
    return is_done;
}

/* Reads ~/.aws/NAME, or the file that the variable names. False: out of memory. */
static bool read_file(const char *named, const char *name, const char *profile,
                      iron__s3_access *access, bool *is_found) {
    const char *given = variable(named), *home = variable("HOME");
    char *path = given ? strdup(given) : home ? iron__print("%s/.aws/%s", home, name) : NULL;
    bool is_done = path ? read_profile(path, profile, access, is_found) : !given && !home;

    free(path);
    return is_done;
}

/* A line break in a value would end the header that it is sent in. */
static bool is_one_line(const char *text) {
    for (; text && *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    return true;
}

iron_status iron__s3_access_load(iron__s3_access *access, iron_error *err) {
    const char *named = variable("AWS_PROFILE"), *profile = named ? named : "default";
    bool is_found = false, is_done = true;
    const char *endpoint;

    *access = (iron__s3_access){.key = NULL};
    if (variable("AWS_ACCESS_KEY_ID") && variable("AWS_SECRET_ACCESS_KEY"))
        is_done = keep(variable("AWS_ACCESS_KEY_ID"), &access->key) &&
                  keep(variable("AWS_SECRET_ACCESS_KEY"), &access->secret) &&
                  keep(variable("AWS_SESSION_TOKEN"), &access->token);
    is_done = is_done && keep(variable("AWS_REGION"), &access->region) &&
              keep(variable("AWS_DEFAULT_REGION"), &access->region) &&
              keep(variable("AWS_ENDPOINT_URL_S3"), &access->endpoint) &&
              keep(variable("AWS_ENDPOINT_URL"), &access->endpoint) &&
              read_file("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile, access, &is_found) &&
              read_file("AWS_CONFIG_FILE", "config", profile, access, &is_found);
    if (is_done && !access->region)
        is_done = (access->region = strdup("us-east-1")) != NULL;
    IRON_FAIL_IF(!is_done, err, IRON_E_NOMEM, "out of memory while reading the AWS settings");
    IRON_FAIL_IF(named && !access->key && !is_found, err, IRON_E_ARG,
                 "the profile '%.60s' (AWS_PROFILE) is not in the AWS credentials and config files",
                 named);
    endpoint = access->endpoint;
    IRON_FAIL_IF(!is_one_line(access->key) || !is_one_line(access->secret) ||
                     !is_one_line(access->token) || !is_one_line(access->region) ||
                     !is_one_line(endpoint),
                 err, IRON_E_ARG,
                 "the AWS keys, region or endpoint contain a control character; check AWS_*");
    IRON_FAIL_IF(endpoint && strncmp(endpoint, "http://", 7) != 0 &&
                     strncmp(endpoint, "https://", 8) != 0,
                 err, IRON_E_ARG,
                 "the S3 endpoint must begin with http:// or https://; check "
                 "AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL");
    IRON_FAIL_IF(endpoint && strpbrk(endpoint, "@?#"), err, IRON_E_ARG,
                 "the S3 endpoint must be scheme, host and port, perhaps a path; check "
                 "AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL");
    IRON_FAIL_IF(strspn(access->region, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789-_") != strlen(access->region),
                 err, IRON_E_ARG, "'%.40s' is not an AWS region; check AWS_REGION", access->region);
    return IRON_OK;
}

void iron__s3_access_free(iron__s3_access *access) {
    free(access->key);
    free(access->secret);
    free(access->token);
    free(access->region);
    free(access->endpoint);
    *access = (iron__s3_access){.key = NULL};
}

/* Lists of objects: the part of XML that such a document has. */

#define DEPTH_MAX   16u
#define OBJECTS_MAX 10000000u

typedef struct span {
    const char *at;
    size_t bytes;
} span;

typedef struct xml {
    const char *at, *end;
    span open[DEPTH_MAX]; /* names of the open elements */
    unsigned depth;
} xml;

typedef enum tag { TAG_NONE, TAG_OPEN, TAG_EMPTY, TAG_CLOSE, TAG_BAD } tag;

static bool span_is(span s, const char *text) {
    return s.bytes == strlen(text) && memcmp(s.at, text, s.bytes) == 0;
}

/* Moves past the next tag; `text` is what stands before it, as it is written. Comments, CDATA and
 * document types, which S3 does not use, are not valid here. */
static tag next_tag(xml *x, span *text, span *name) {
    tag kind = TAG_OPEN;
    char quote = 0;

    *text = (span){x->at, 0};
    while (x->at < x->end && *x->at != '<')
        x->at++;
    text->bytes = (size_t)(x->at - text->at);
    if (x->at == x->end)
        return TAG_NONE;
    x->at++;
    if (x->at < x->end && *x->at == '/') {
        kind = TAG_CLOSE;
        x->at++;
    }
    name->at = x->at;
    while (x->at != x->end && (unsigned char)*x->at > ' ' && !strchr("<>/=\"'&", *x->at))
        x->at++;
    name->bytes = (size_t)(x->at - name->at);
    if (name->bytes == 0 || *name->at == '!' || *name->at == '?')
        return TAG_BAD;
    for (; x->at < x->end; x->at++) { /* attributes */
        if (quote) {
            quote = *x->at == quote ? 0 : quote;
        } else if (*x->at == '>') {
            x->at++;
            return kind == TAG_OPEN && x->at[-2] == '/' ? TAG_EMPTY : kind;
        } else if (*x->at == '<' || (kind == TAG_CLOSE && !strchr(" \t\r\n", *x->at))) {
            return TAG_BAD;
        } else if (*x->at == '"' || *x->at == '\'') {
            quote = *x->at;
        }
    }
    return TAG_BAD;
}

/* "&amp;", "&#38;" or "&#x26;": writes the character; returns the length, 0 if it is not valid. */
static size_t decode_entity(span s, char **to) {
    static const struct {
        const char *text;
        char character;
    } named[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    uint32_t value = 0;
    unsigned base;
    size_t k;

    for (k = 0; k < 5; k++) {
        size_t length = strlen(named[k].text);

        if (s.bytes >= length && memcmp(s.at, named[k].text, length) == 0) {
            *(*to)++ = named[k].character;
            return length;
        }
    }
    if (s.bytes < 4 || s.at[1] != '#')
        return 0;
    base = s.at[2] == 'x' ? 16 : 10;
    for (k = base == 16 ? 3 : 2; k < s.bytes && k < 10 && s.at[k] != ';'; k++) {
        int digit = iron__hex_digit(s.at[k]);

        if (digit < 0 || digit >= (int)base)
            return 0;
        value = value * base + (uint32_t)digit;
    }
    if (k >= s.bytes || s.at[k] != ';' || k == (base == 16 ? 3u : 2u) || value == 0 ||
        value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
        return 0;
    *to += iron__utf8_put(value, *to);
    return k + 1;
}

/* The text of an element, which is never longer than it is written; NULL: not valid, or out of
 * memory. */
static char *decode_text(span s) {
    char *text = malloc(s.bytes + 1), *to = text;

    for (size_t used; text && s.bytes > 0; s.at += used, s.bytes -= used) {
        used = s.at[0] == '&' ? decode_entity(s, &to) : s.at[0] != '\0';
        if (used == 0) {
            free(text);
            return NULL;
        }
        if (s.at[0] != '&')
            *to++ = s.at[0];
    }
    if (text)
        *to = '\0';
    return text;
}

/* An element has ended: keeps its text if it is one of those that matter. False: not valid. */
static bool take_element(const xml *x, span name, span text, iron__s3_page *page,
                         bool *is_truncated) {
    if (x->depth == 2 && span_is(x->open[1], "Contents") && span_is(name, "Key")) {
        char *key = decode_text(text);

        if (!key || !key[0] || page->count == OBJECTS_MAX ||
            !IRON_ARRAY_GROW(&page->keys, page->count, &page->room)) {
            free(key);
            return false;
        }
        page->keys[page->count++] = key;
        return true;
    }
    if (x->depth == 1 && span_is(name, "IsTruncated")) {
        *is_truncated = span_is(text, "true");
        return *is_truncated || span_is(text, "false");
    }
    if (x->depth == 1 && span_is(name, "NextContinuationToken")) {
        free(page->next);
        page->next = decode_text(text);
        return page->next != NULL;
    }
    return true;
}

iron_status iron__s3_read_page(const char *address, const char *document, size_t bytes,
                               iron__s3_page *page, iron_error *err) {
    xml x = {.at = document, .end = document + bytes};
    bool has_root = false, is_leaf = false, is_truncated = false, is_valid = true;
    span text, name;
    tag kind;

    free(page->next);
    page->next = NULL;
    while (x.end - x.at >= 2 && memcmp(x.at, "<?", 2) == 0) { /* <?xml version="1.0"?> */
        const char *end = memmem(x.at, (size_t)(x.end - x.at), "?>", 2);

        x.at = end ? end + 2 : x.end;
    }
    while (is_valid && (kind = next_tag(&x, &text, &name)) != TAG_NONE) {
        if (kind == TAG_OPEN || kind == TAG_EMPTY) {
            is_valid =
                x.depth > 0 ? x.depth < DEPTH_MAX : !has_root && span_is(name, "ListBucketResult");
            has_root = true;
            if (is_valid && kind == TAG_OPEN)
                x.open[x.depth++] = name;
        } else {
            is_valid = kind == TAG_CLOSE && x.depth > 0 &&
                       x.open[x.depth - 1].bytes == name.bytes &&
                       memcmp(x.open[x.depth - 1].at, name.at, name.bytes) == 0;
            if (is_valid) {
                x.depth--;
                is_valid = !is_leaf || take_element(&x, name, text, page, &is_truncated);
            }
        }
        is_leaf = kind == TAG_OPEN;
    }
    if (is_valid && has_root && x.depth == 0 && (!is_truncated || (page->next && page->next[0]))) {
        if (!is_truncated) {
            free(page->next);
            page->next = NULL;
        }
        return IRON_OK;
    }
    IRON_FAIL(
        err, IRON_E_FORMAT,
        "%.120s: the server's list of objects cannot be read near byte %zu; is the endpoint an "
        "S3 server?",
        address, (size_t)(x.at - document));
}

void iron__s3_page_free(iron__s3_page *page) {
    for (size_t k = 0; k < page->count; k++)
        free(page->keys[k]);
    free(page->keys);
    free(page->next);
    *page = (iron__s3_page){.keys = NULL};
}
