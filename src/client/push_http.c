/* SPDX-License-Identifier: MIT */
/*
 * push_http.c: see push_http.h. The only file that knows libcurl.
 *
 * What it is told not to do: other protocols than HTTP and HTTPS, redirects (a token would go along
 * to wherever they point), proxies for this machine's own addresses, waiting for "100 Continue",
 * signals. HTTP/1.1 alone: one body at a time needs no frames around it. Nor can it begin a body
 * again by itself when a kept connection turns out to be dead (there is no seek function): whether
 * a piece is sent again is not decided here.
 */
#include "client/push_http.h"

#include "core/fail.h"
#include "core/token_file.h"

#include <curl/curl.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is read from the file at once, and handed to the socket at once: the most that libcurl
 * takes. Smaller ones cost calls: 64 KiB are a quarter slower. */
#define SEND_BYTES (2L << 20)

#define CONNECT_SECONDS 10L
#define ASK_SECONDS     30L
/* Not a byte moves for so long: the connection is dead. */
#define SILENT_SECONDS 60L

struct iron__push_http {
    CURL *curl;
    struct curl_slist *headers;
    const iron__push_url *url;
    bool has_begun; /* curl_global_init was called */
    char why[CURL_ERROR_SIZE];
    char *text; /* of the answer; kept for the next one */
    size_t bytes, room;
};

static size_t take_answer(char *data, size_t size, size_t count, void *context) {
    iron__push_http *h = context;
    size_t some = size * count, room = h->room ? h->room : 4096;
    char *text;

    if (some > IRON_PUSH_ANSWER_MAX - h->bytes)
        return 0;
    while (room < h->bytes + some)
        room *= 2;
    text = room > h->room ? realloc(h->text, room) : h->text;
    if (!text)
        return 0;
    h->text = text;
    h->room = room;
    memcpy(h->text + h->bytes, data, some);
    h->bytes += some;
    return some;
}

static size_t give_body(char *to, size_t size, size_t count, void *context) {
    iron__push_body *body = context;
    size_t some = iron__push_body_take(body, to, size * count);

    return body->status == IRON_OK ? some : CURL_READFUNC_ABORT;
}

static bool add_header(iron__push_http *h, const char *line) {
    struct curl_slist *longer = curl_slist_append(h->headers, line);

    if (longer)
        h->headers = longer;
    return longer != NULL;
}

static iron_status add_token(iron__push_http *h, const char *file, iron_error *err) {
    char token[IRON_TOKEN_ROOM], line[IRON_TOKEN_ROOM + 32];
    bool is_added;

    IRON_TRY(iron__token_file_read(file, token, err));
    snprintf(line, sizeof line, "Authorization: Bearer %s", token);
    is_added = add_header(h, line);
    explicit_bzero(token, sizeof token);
    explicit_bzero(line, sizeof line);
    IRON_FAIL_IF(!is_added, err, IRON_E_NOMEM, "out of memory: a request's header");
    return IRON_OK;
}

static iron_status add_headers(iron__push_http *h, const char *token_file, iron_error *err) {
    IRON_FAIL_IF(!add_header(h, "Expect:") ||
                     !add_header(h, "Content-Type: application/octet-stream") ||
                     !add_header(h, "Accept: application/json, application/problem+json"),
                 err, IRON_E_NOMEM, "out of memory: a request's header");
    return token_file ? add_token(h, token_file, err) : IRON_OK;
}

/* What holds for every request. */
static bool set_up(iron__push_http *h, const char *ca_file) {
    CURL *c = h->curl;
    bool is_set = curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
                  curl_easy_setopt(c, CURLOPT_UPLOAD_BUFFERSIZE, SEND_BYTES) == CURLE_OK &&
                  curl_easy_setopt(c, CURLOPT_HTTPHEADER, h->headers) == CURLE_OK;

    if (ca_file)
        is_set = is_set && curl_easy_setopt(c, CURLOPT_CAINFO, ca_file) == CURLE_OK &&
                 curl_easy_setopt(c, CURLOPT_CAPATH, NULL) == CURLE_OK;
    if (h->url->is_loopback)
        is_set = is_set && curl_easy_setopt(c, CURLOPT_NOPROXY, "*") == CURLE_OK;
    return is_set &&
           curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_USERAGENT, "iron/" IRON_VERSION) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_ERRORBUFFER, h->why) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_answer) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_WRITEDATA, h) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_READFUNCTION, give_body) == CURLE_OK;
}

static iron_status build(iron__push_http *h, const char *token_file, const char *ca_file,
                         iron_error *err) {
    h->has_begun = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    h->curl = h->has_begun ? curl_easy_init() : NULL;
    IRON_FAIL_IF(!h->curl, err, IRON_E_NOMEM, "libcurl cannot be started; is there memory left?");
    IRON_TRY(add_headers(h, token_file, err));
    IRON_FAIL_IF(!set_up(h, ca_file), err, IRON_E_UNSUPPORTED,
                 "libcurl %s lacks an option that is needed; 7.85 or newer has all of them",
                 curl_version_info(CURLVERSION_NOW)->version);
    return IRON_OK;
}

iron_status iron__push_http_open(const iron__push_url *url, const char *token_file,
                                 const char *ca_file, iron__push_http **out, iron_error *err) {
    iron__push_http *h = calloc(1, sizeof *h);
    iron_status status;

    *out = NULL;
    IRON_FAIL_IF(!h, err, IRON_E_NOMEM, "out of memory: a connection");
    h->url = url;
    status = build(h, token_file, ca_file, err);
    if (status == IRON_OK)
        *out = h;
    else
        iron__push_http_close(h);
    return status;
}

void iron__push_http_close(iron__push_http *http) {
    if (!http)
        return;
    curl_easy_cleanup(http->curl);
    curl_slist_free_all(http->headers);
    if (http->has_begun)
        curl_global_cleanup();
    free(http->text);
    free(http);
}

/* What may be otherwise next time. A certificate that is not trusted will not be. */
static bool is_passing(CURLcode code) {
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SEND_FAIL_REWIND:
        return true;
    default:
        return false;
    }
}

static void describe_failure(const iron__push_http *h, CURLcode code, iron__push_answer *answer) {
    *answer = (iron__push_answer){.is_lost = is_passing(code)};
    if (code == CURLE_SEND_FAIL_REWIND)
        snprintf(answer->words, sizeof answer->words, "the connection was lost");
    else if (code == CURLE_WRITE_ERROR)
        snprintf(answer->words, sizeof answer->words,
                 "its answer is longer than %zu bytes; is it iron serve?", IRON_PUSH_ANSWER_MAX);
    else
        snprintf(answer->words, sizeof answer->words, "%.190s",
                 h->why[0] ? h->why : curl_easy_strerror(code));
}

static void perform(iron__push_http *h, iron__push_answer *answer) {
    curl_off_t seconds = 0;
    long status = 0;
    CURLcode code;

    h->bytes = 0;
    h->why[0] = '\0';
    code = curl_easy_perform(h->curl);
    if (code != CURLE_OK) {
        describe_failure(h, code, answer);
        return;
    }
    curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(h->curl, CURLINFO_RETRY_AFTER, &seconds);
    iron__push_answer_read(answer, (unsigned)status, h->text ? h->text : "", h->bytes);
    answer->has_retry_after = seconds > 0;
    answer->retry_after_s = seconds > 0 ? (uint64_t)seconds : 0;
}

/* Memory is all that these can lack; then the request is one that failed. */
static void give_up(iron__push_answer *answer) {
    *answer = (iron__push_answer){.words = "out of memory: a request"};
}

void iron__push_http_ask(iron__push_http *http, iron__push_answer *answer) {
    CURL *c = http->curl;

    if (curl_easy_setopt(c, CURLOPT_URL, http->url->engine) == CURLE_OK &&
        curl_easy_setopt(c, CURLOPT_HTTPGET, 1L) == CURLE_OK &&
        curl_easy_setopt(c, CURLOPT_TIMEOUT, ASK_SECONDS) == CURLE_OK)
        perform(http, answer);
    else
        give_up(answer);
}

void iron__push_http_send(iron__push_http *http, iron_dtype dtype, uint64_t at,
                          iron__push_body *body, iron__push_answer *answer) {
    curl_off_t bytes = (curl_off_t)iron__push_body_bytes(body);
    char url[IRON_PUSH_URL_ROOM + 64];
    CURL *c = http->curl;

    snprintf(url, sizeof url, "%s/feed?dtype=%s&at=%" PRIu64, http->url->engine,
             iron_dtype_name(dtype), at);
    body->taken = 0;
    if (curl_easy_setopt(c, CURLOPT_URL, url) == CURLE_OK &&
        curl_easy_setopt(c, CURLOPT_POST, 1L) == CURLE_OK &&
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, bytes) == CURLE_OK &&
        curl_easy_setopt(c, CURLOPT_READDATA, body) == CURLE_OK &&
        curl_easy_setopt(c, CURLOPT_TIMEOUT, 0L) == CURLE_OK &&
        curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L) == CURLE_OK &&
        curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, SILENT_SECONDS) == CURLE_OK)
        perform(http, answer);
    else
        give_up(answer);
}
