/* SPDX-License-Identifier: MIT */
/*
 * remote.c: remote objects: requests for them, what the responses mean, and retries; their names
 * and credentials, opening them, transfers of a whole object, and lists.
 *
 * An object is opened with a GET of its first 64 KiB and not with HEAD, which signed addresses and
 * many servers refuse. The answer tells whether ranges are served (206 or 200), the size, and the
 * version: ETag, or else Last-Modified. Every later response is compared with it. A strong ETag is
 * also sent (If-Match), so that the server compares.
 *
 * What may go better next time is tried again: failed connections, transfers that break off, and
 * HTTP 408, 429, 500, 502, 503 and 504; up to five times without progress, with waits that grow,
 * or as long as the server asks for in Retry-After. A range continues where it broke off.
 *
 * An address that redirects is asked once; later requests go to where it led, until that address
 * is refused (signed addresses expire).
 */
#include "io/remote_internal.h"

#include "core/clock.h"
#include "core/fail.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/memory.h"
#include "core/number.h"
#include "core/thread_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define TRIES_MAX         5u
#define CONNECT_TRIES_MAX 3u /* of the first request: the address may be wrong */
#define PATIENCE_NS       (UINT64_C(300) * 1000000000)
#define RETRY_AFTER_MAX_S 30u
#define CONNECTIONS_KEPT  16u
#define PIPE_BYTES        (1 << 20)
#define PAGE_BYTES_MAX    ((size_t)16 << 20)

atomic_uint iron__remote_backoff_ms = 200;

/* Connections that are not in use. */
static struct {
    pthread_mutex_t mutex;
    struct {
        iron__http_connection *connection;
        const iron__remote *last; /* what it was used for: its sockets fit best */
    } list[CONNECTIONS_KEPT];
    unsigned count;
} kept = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Connections. */

static iron__http_connection *take_connection(const iron__remote *remote) {
    iron__http_connection *connection = NULL;

    pthread_mutex_lock(&kept.mutex);
    if (kept.count > 0) {
        unsigned k = kept.count - 1;

        while (k > 0 && kept.list[k].last != remote)
            k--;
        connection = kept.list[k].connection;
        kept.list[k] = kept.list[--kept.count];
    }
    pthread_mutex_unlock(&kept.mutex);
    return connection ? connection : iron__http_connection_create();
}

static void give_connection(iron__http_connection *connection, const iron__remote *remote) {
    pthread_mutex_lock(&kept.mutex);
    if (kept.count < CONNECTIONS_KEPT) {
        kept.list[kept.count].connection = connection;
        kept.list[kept.count++].last = remote;
        connection = NULL;
    }
    pthread_mutex_unlock(&kept.mutex);
    iron__http_connection_destroy(connection);
}

/* A request and its response. */

static bool has_range(const iron__exchange *x) {
    switch (x->kind) {
    case IRON_EXCHANGE_OPEN:
        return x->room > 0;
    case IRON_EXCHANGE_RANGE:
        return true;
    case IRON_EXCHANGE_CHECK:
        return x->remote->has_ranges && !x->remote->whole && x->remote->bytes > 0;
    default:
        return false;
    }
}

/* The next byte of a range that is asked for: one that broke off is continued. */
static uint64_t range_start(const iron__exchange *x) {
    return x->at + (x->kind == IRON_EXCHANGE_RANGE ? x->filled : 0);
}

/* Compares a response with what was opened and what was asked for. */
static bool is_expected(iron__exchange *x, const iron__http_response *r) {
    const iron__remote *remote = x->remote;
    uint64_t total = r->status == 206 ? r->range_total : r->content_length;

    if (x->kind == IRON_EXCHANGE_PAGE)
        return true;
    if (r->status == 206 && (!has_range(x) || r->has_bad_range || r->range_first != range_start(x)))
        x->is_odd = true;
    if (x->kind == IRON_EXCHANGE_OPEN)
        return !x->is_odd;
    if (remote->tag[0] && r->tag[0])
        x->has_changed = strcmp(remote->tag, r->tag) != 0;
    else if (remote->modified[0] && r->modified[0])
        x->has_changed = strcmp(remote->modified, r->modified) != 0;
    if (total != IRON_COUNT_UNKNOWN && remote->bytes != IRON_COUNT_UNKNOWN && !x->is_odd)
        x->has_changed = x->has_changed || total != remote->bytes;
    if (x->kind == IRON_EXCHANGE_RANGE && r->status != 206)
        x->is_odd = true;
    return !x->has_changed && !x->is_odd;
}

static bool take_body(void *context, const iron__http_response *r, const void *data, size_t bytes) {
    iron__exchange *x = context;
    size_t room = x->room - x->filled;

    if (!x->is_checked) {
        x->is_checked = true;
        if (!is_expected(x, r))
            return false;
    }
    switch (x->kind) {
    case IRON_EXCHANGE_CHECK:
        return r->status == 206; /* that is one byte; not so the whole object */
    case IRON_EXCHANGE_STREAM:
        x->filled += bytes;
        return x->deliver(x->context, data, bytes);
    default:
        x->is_full = bytes > room;
        if (x->is_full)
            bytes = room;
        memcpy(x->to + x->filled, data, bytes);
        x->filled += bytes;
        return !x->is_full;
    }
}

static bool is_still_wanted(void *context) {
    const iron__exchange *x = context;

    return !x->is_wanted || x->is_wanted(x->context);
}

/* The sentences about responses that are errors. */
static iron_status fail_status(const iron__exchange *x, iron_error *err) {
    const iron__http_response *r = &x->response;
    const char *what = "cannot be read", *advice = "check the address", *more = "";

    if (r->status == 404 || r->status == 410) {
        what = "was not found";
    } else if (r->status == 401 || r->status == 403) {
        what = "may not be read";
        if (!x->remote->is_s3)
            advice = x->remote->user ? "check user and password in the address"
                                     : "it needs credentials, https://user:password@..., or its "
                                       "signature is wrong or too old";
        else if (x->remote->access.key)
            advice = "check the AWS keys, their session token and rights, and AWS_REGION";
        else
            advice = "no AWS keys were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                     "AWS_PROFILE";
    } else if (r->status >= 300 && r->status < 400) {
        what = "is elsewhere";
        advice = x->remote->is_s3 ? "check the address and AWS_REGION" : advice;
        more = r->region[0] ? ": another region has it" : "";
    } else if (r->status >= 500 || r->status == 429) {
        advice = "try again later";
    }
    return iron__fail(err, IRON_E_IO, (int)r->status, "%.100s %s (HTTP %u%s%s); %s%s",
                      x->remote->name, what, r->status, r->code[0] ? " " : "", r->code, advice,
                      more);
}

static iron_status fail_connection(const iron__exchange *x, iron_error *err) {
    const iron__http_response *r = &x->response;
    const char *advice = "check the address and the network";
    size_t length = strcspn(r->curl_text, "\r\n");

    if (r->curl_code == IRON_CURLE_SSL_CONNECT_ERROR ||
        r->curl_code == IRON_CURLE_PEER_FAILED_VERIFICATION ||
        r->curl_code == IRON_CURLE_SSL_CACERT_BADFILE)
        advice = "if the server's certificate is to be trusted, name its CA's file in "
                 "SSL_CERT_FILE";
    while (length > 0 && r->curl_text[length - 1] == '.')
        length--;
    return iron__fail(err, IRON_E_IO, r->curl_code, "%.80s cannot be read: %.*s; %s",
                      x->remote->name, (int)(length < 90 ? length : 90), r->curl_text, advice);
}

iron_status iron__remote_fail_changed(iron__remote *remote, iron_error *err) {
    atomic_store(&remote->is_changed, true);
    IRON_FAIL(err, IRON_E_IO, "%.120s changed while being read; read it again when it is complete",
              remote->name);
}

static iron_status fail_odd(const iron__exchange *x, iron_error *err) {
    const iron__http_response *r = &x->response;

    IRON_FAIL_IF(
        r->status != 206, err, IRON_E_IO,
        "%.120s: the server served ranges before, but answered a request for one with HTTP "
        "%u; download the file",
        x->remote->name, r->status);
    IRON_FAIL_IF(r->has_bad_range || r->range_first == IRON_COUNT_UNKNOWN, err, IRON_E_IO,
                 "%.120s: the server answered without a valid Content-Range; download the file",
                 x->remote->name);
    IRON_FAIL(err, IRON_E_IO,
              "%.120s: the server answered with the range from byte %" PRIu64 ", not from %" PRIu64
              "; download the file",
              x->remote->name, r->range_first, range_start(x));
}

static bool is_busy(unsigned status) {
    return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 ||
           status == 504;
}

/* A transfer that ended early, or one that could not begin. */
static iron_status judge_failure(const iron__exchange *x, bool *again, iron_error *err) {
    const iron__http_response *r = &x->response;

    if (x->kind == IRON_EXCHANGE_RANGE && x->filled == x->room)
        return IRON_OK;
    if (x->kind == IRON_EXCHANGE_STREAM && x->filled > 0)
        return iron__fail(err, IRON_E_IO, r->curl_code,
                          "%.120s broke off after %zu bytes, and its server has no ranges to "
                          "continue with; try again, or download the file",
                          x->remote->name, x->filled);
    *again = iron__http_is_transient(r);
    return fail_connection(x, err);
}

/* What the response means. *again: another try may succeed. */
static iron_status judge(iron__exchange *x, bool *again, iron_error *err) {
    const iron__http_response *r = &x->response;
    bool is_good = r->status == 200 || r->status == 206;

    *again = false;
    if (is_good && !x->is_checked)
        is_expected(x, r);
    if (x->has_changed || r->status == 412)
        return iron__remote_fail_changed(x->remote, err);
    if (x->is_odd) {
        *again = r->status != 206;
        return fail_odd(x, err);
    }
    if (r->status >= 300 && r->status < 400 && r->curl_code > 0)
        return judge_failure(x, again, err); /* a redirect that may not be followed */
    if (r->status >= 300 || (r->status > 0 && r->curl_code == 0 && !is_good)) {
        *again = is_busy(r->status);
        return fail_status(x, err);
    }
    if (r->curl_code != 0 && !r->is_stopped)
        return judge_failure(x, again, err);
    IRON_FAIL_IF(r->is_stopped && x->kind == IRON_EXCHANGE_STREAM, err, IRON_E_CANCELLED,
                 "the transfer of %.120s was stopped", x->remote->name);
    /* the body would end with the connection */
    IRON_FAIL_IF((x->kind == IRON_EXCHANGE_OPEN || x->kind == IRON_EXCHANGE_STREAM) &&
                     r->status == 200 && r->content_length == IRON_COUNT_UNKNOWN && !r->is_chunked,
                 err, IRON_E_UNSUPPORTED,
                 "%.120s: its server announces neither a length nor chunks, so that a cut could "
                 "not be noticed; download the file",
                 x->remote->name);
    IRON_FAIL_IF(x->kind == IRON_EXCHANGE_PAGE && x->is_full, err, IRON_E_FORMAT,
                 "%.120s: the server's list of objects is too long", x->remote->name);
    *again = true;
    IRON_FAIL_IF(x->kind == IRON_EXCHANGE_RANGE && x->filled < x->room, err, IRON_E_IO,
                 "%.120s: the server sent fewer bytes than it announced; try again later",
                 x->remote->name);
    return IRON_OK;
}

/* The address for the next request; from malloc. */
static char *choose_url(const iron__exchange *x, bool *is_direct) {
    iron__remote *remote = x->remote;
    char bucket[64], *url;
    const char *key;

    *is_direct = false;
    if (x->url)
        return strdup(x->url);
    if (remote->is_s3)
        return iron__s3_split(remote->name, bucket, &key, NULL) == IRON_OK
                   ? iron__s3_url(&remote->access, bucket, key, NULL)
                   : NULL;
    pthread_mutex_lock(&remote->mutex);
    *is_direct = remote->direct && !remote->user;
    url = strdup(*is_direct ? remote->direct : remote->url);
    pthread_mutex_unlock(&remote->mutex);
    return url;
}

static void set_direct(iron__remote *remote, char *url) {
    pthread_mutex_lock(&remote->mutex);
    free(remote->direct);
    remote->direct = url;
    pthread_mutex_unlock(&remote->mutex);
}

/* The region of a bucket at Amazon, as its answer to a request in the wrong one gives it. */
static bool take_region(iron__exchange *x) {
    iron__s3_access *access = &x->remote->access;
    const iron__http_response *r = &x->response;
    char *region;

    if (!x->remote->is_s3 || x->remote->is_ready || x->has_region || access->endpoint ||
        !r->region[0] ||
        (r->status != 301 && r->status != 307 && r->status != 400 && r->status != 403) ||
        strcmp(r->region, access->region) == 0 ||
        r->region[strspn(r->region, "abcdefghijklmnopqrstuvwxyz0123456789-")] != '\0')
        return false;
    region = strdup(r->region);
    if (!region)
        return false;
    free(access->region);
    access->region = region;
    x->has_region = true;
    return true;
}

static iron_status try_once(iron__exchange *x, bool *again, iron_error *err) {
    iron__remote *remote = x->remote;
    iron__http_request request = {.follows = !remote->is_s3 || !remote->access.key,
                                  .body = take_body,
                                  .is_wanted = is_still_wanted,
                                  .context = x};
    iron__http_connection *connection;
    char range[64], match[IRON_HTTP_TAG_BYTES + 16], *url, *signed_lines[IRON_HTTP_LINES_MAX];
    unsigned signed_count = 0;
    bool is_direct;
    iron_status status;

    *again = false;
    url = choose_url(x, &is_direct);
    connection = url ? take_connection(remote) : NULL;
    status = connection ? IRON_OK : iron__no_memory(err, remote->name);
    if (status == IRON_OK && remote->is_s3)
        status = iron__s3_sign(&remote->access, url, time(NULL), signed_lines, &signed_count, err);
    if (status != IRON_OK)
        goto done;
    request.url = url;
    request.user = is_direct ? NULL : remote->user;
    request.password = is_direct ? NULL : remote->password;
    request.lines[request.line_count++] = "Accept-Encoding: identity";
    if (has_range(x)) {
        snprintf(range, sizeof range, "Range: bytes=%" PRIu64 "-%" PRIu64, range_start(x),
                 x->at + (x->room > 0 ? x->room : 1) - 1);
        request.lines[request.line_count++] = range;
    }
    if (remote->is_ready && remote->tag[0] == '"') { /* not a weak one, W/"..." */
        snprintf(match, sizeof match, "If-Match: %s", remote->tag);
        request.lines[request.line_count++] = match;
    }
    for (unsigned k = 0; k < signed_count; k++)
        request.lines[request.line_count++] = signed_lines[k];
    x->is_checked = x->is_full = x->has_changed = x->is_odd = false;
    if (x->kind != IRON_EXCHANGE_RANGE && x->kind != IRON_EXCHANGE_STREAM)
        x->filled = 0;
    iron__http_run(connection, &request, &x->response);
    status = judge(x, again, err);
    if (status == IRON_OK && x->response.redirected && !remote->is_s3 && !x->url) {
        set_direct(remote, x->response.redirected);
        x->response.redirected = NULL;
    } else if (status != IRON_OK && !*again && is_direct && x->response.status >= 400 &&
               !x->was_direct) {
        set_direct(remote, NULL);
        x->was_direct = *again = true;
    }
    free(x->response.redirected);
    x->response.redirected = NULL;
done:
    if (connection)
        give_connection(connection, remote);
    for (unsigned k = 0; k < signed_count; k++)
        free(signed_lines[k]);
    free(url);
    return status;
}

/* Waits before the next try; false: nobody wants it any more. */
static bool wait_for_retry(iron__exchange *x, unsigned tries) {
    static const unsigned powers[] = {1, 3, 9, 27, 81};
    uint64_t asked = x->response.retry_after_s, now = iron__clock_ns(), until;
    uint64_t wait_ms =
        (uint64_t)atomic_load(&iron__remote_backoff_ms) * powers[tries < 5 ? tries : 4];

    /* between 3/4 and 5/4 of it, so that many readers do not come back together */
    wait_ms = wait_ms * 3 / 4 + iron__mix64(now ^ (uintptr_t)x) % (wait_ms / 2 + 1);
    if (asked != IRON_COUNT_UNKNOWN)
        wait_ms = (asked < RETRY_AFTER_MAX_S ? asked : RETRY_AFTER_MAX_S) * 1000;
    until = now + wait_ms * 1000000;
    while (is_still_wanted(x)) {
        const struct timespec nap = {.tv_nsec = 10000000};

        if (iron__clock_ns() >= until)
            return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

iron_status iron__exchange_run(iron__exchange *x, iron_error *err) {
    uint64_t deadline = iron__clock_ns() + PATIENCE_NS;
    iron_error why = {.status = IRON_E_IO};
    unsigned tries = 0;

    for (;;) {
        size_t before = x->filled;
        bool again, is_done = try_once(x, &again, &why) == IRON_OK;
        bool has_progress = x->kind == IRON_EXCHANGE_RANGE && x->filled > before;
        unsigned most = TRIES_MAX;

        if (is_done)
            return IRON_OK;
        IRON_FAIL_IF(!is_still_wanted(x), err, IRON_E_CANCELLED, "reading %.120s was cancelled",
                     x->remote->name);
        if (take_region(x))
            continue;
        if (x->kind == IRON_EXCHANGE_OPEN && x->response.status == 0)
            most = CONNECT_TRIES_MAX;
        tries = has_progress ? 0 : tries + 1;
        if (!again || tries >= most || iron__clock_ns() > deadline)
            break;
        if (!has_progress && !wait_for_retry(x, tries - 1))
            continue; /* and says above that it was cancelled */
    }
    return iron__fail_again(err, &why);
}

/* Objects. */

/* An address with credentials and the name that stands for it. */
typedef struct alias {
    struct alias *next;
    char *name, *address;
} alias;

/* Everything that is kept until the process ends. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    alias *aliases;
    iron__remote *remotes;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};

/* Names. */

bool iron__path_is_remote(const char *path) {
    return strncmp(path, "http://", 7) == 0 || strncmp(path, "https://", 8) == 0 ||
           strncmp(path, "s3://", 5) == 0;
}

/* Whether a query has a parameter whose name suggests a secret. */
static bool has_secret(const char *query, size_t length) {
    static const char *const words[] = {"sig", "token", "key", "credential", "password", "secret"};
    bool is_name = true;

    for (size_t at = 0; at < length; at++) {
        if (query[at] == '&' || query[at] == ';' || query[at] == '?')
            is_name = true;
        else if (query[at] == '=')
            is_name = false;
        for (size_t k = 0; is_name && k < sizeof words / sizeof words[0]; k++)
            if (strlen(words[k]) <= length - at &&
                strncasecmp(query + at, words[k], strlen(words[k])) == 0)
                return true;
    }
    return false;
}

/* The address without user, password, fragment and a query with secrets. */
static char *without_credentials(const char *address) {
    const char *start = strstr(address, "://") + 3, *path = start + strcspn(start, "/?#"), *user;
    bool is_s3 = strncmp(address, "s3://", 5) == 0;
    size_t rest = is_s3 ? strlen(path) : strcspn(path, "#"), query = strcspn(path, "?#");

    user = memrchr(start, '@', (size_t)(path - start));
    if (!is_s3 && query < rest && has_secret(path + query + 1, rest - query - 1))
        rest = query;
    return iron__print("%.*s%.*s%.*s", (int)(start - address), address,
                       (int)(path - (user ? user + 1 : start)), user ? user + 1 : start, (int)rest,
                       path);
}

static alias *find_alias(const char *name) {
    alias *a = all.aliases;

    while (a && strcmp(a->name, name) != 0)
        a = a->next;
    return a;
}

/* Remembers the address under the name, or under name#2 ... if that stands for another one. */
static alias *add_alias(const char *name, const char *address) {
    alias *a = calloc(1, sizeof *a);
    unsigned number = 2;

    if (!a)
        return NULL;
    a->address = strdup(address);
    a->name = strdup(name);
    while (a->name && find_alias(a->name)) {
        free(a->name);
        a->name = iron__print("%s#%u", name, number++);
    }
    if (a->address && a->name) {
        a->next = all.aliases;
        return all.aliases = a;
    }
    free(a->address);
    free(a->name);
    free(a);
    return NULL;
}

char *iron__remote_name(const char *address) {
    char *name = strlen(address) < INT32_MAX ? without_credentials(address) : NULL, *out = NULL;
    alias *a;

    if (!name || strcmp(name, address) == 0) /* nothing to hide */
        return name;
    pthread_mutex_lock(&all.mutex);
    for (a = all.aliases; a; a = a->next)
        if (strcmp(a->address, address) == 0 || strcmp(a->name, address) == 0)
            break;
    if (!a)
        a = add_alias(name, address);
    out = a ? strdup(a->name) : NULL;
    pthread_mutex_unlock(&all.mutex);
    free(name);
    return out;
}

/* Addresses. */

static char *decode_percent(const char *text, size_t length) {
    char *out = malloc(length + 1), *to = out;

    for (size_t k = 0; out && k < length; k++) {
        int high = text[k] == '%' && k + 2 < length ? iron__hex_digit(text[k + 1]) : -1;
        int low = high >= 0 ? iron__hex_digit(text[k + 2]) : -1;

        *to++ = low >= 0 ? (char)(high * 16 + low) : text[k];
        k += low >= 0 ? 2 : 0;
    }
    if (out)
        *to = '\0';
    return out;
}

/* The address as it is requested: without user and fragment, and with blanks and non-ASCII bytes
 * after the host encoded, which libcurl refuses. */
static char *request_url(const char *address, const char *host, const char *path) {
    size_t length = strcspn(path, "#");
    char *url = malloc(strlen(address) + 2 * length + 1), *to = url;

    if (!url)
        return NULL;
    to += sprintf(to, "%s", strncmp(address, "https", 5) == 0 ? "https://" : "http://");
    memcpy(to, host, (size_t)(path - host));
    to += path - host;
    for (size_t k = 0; k < length; k++) {
        unsigned char c = (unsigned char)path[k];

        if (c <= ' ' || c >= 0x7f)
            to += sprintf(to, "%%%02X", c);
        else
            *to++ = (char)c;
    }
    *to = '\0';
    return url;
}

/* Takes an http(s) address apart. False: out of memory. */
static bool set_address(iron__remote *remote, const char *address) {
    const char *start = strstr(address, "://") + 3, *path = start + strcspn(start, "/?#");
    const char *at = memrchr(start, '@', (size_t)(path - start)), *colon;

    remote->url = request_url(address, at ? at + 1 : start, path);
    if (!at || !remote->url)
        return remote->url != NULL;
    colon = memchr(start, ':', (size_t)(at - start));
    remote->user = decode_percent(start, (size_t)((colon ? colon : at) - start));
    remote->password = decode_percent(colon ? colon + 1 : at, colon ? (size_t)(at - colon - 1) : 0);
    return remote->user && remote->password;
}

static void destroy_remote(iron__remote *remote) {
    if (!remote)
        return;
    free(remote->name);
    free(remote->url);
    free(remote->user);
    free(remote->password);
    free(remote->direct);
    free(remote->whole);
    iron__s3_access_free(&remote->access);
    pthread_mutex_destroy(&remote->mutex);
    free(remote);
}

/* A child of fork has its parent's objects, but must not use its sockets. */
void iron__remote_before_fork(void) {
    pthread_mutex_lock(&all.mutex);
    pthread_mutex_lock(&kept.mutex);
}

void iron__remote_after_fork(bool is_child) {
    if (is_child)
        kept.count = 0; /* not closed: that would write to the parent's sockets */
    pthread_mutex_unlock(&kept.mutex);
    for (iron__remote *r = all.remotes; is_child && r; r = r->next)
        pthread_mutex_init(&r->mutex, NULL);
    pthread_mutex_unlock(&all.mutex);
}

/* Opening. */

/* Asks for the start of the object and learns the rest from the response. */
static iron_status ask(iron__remote *remote, iron_error *err) {
    unsigned char *first = malloc(IRON_REMOTE_FIRST_BYTES);
    iron__exchange x = {
        .remote = remote, .kind = IRON_EXCHANGE_OPEN, .to = first, .room = IRON_REMOTE_FIRST_BYTES};
    const iron__http_response *r = &x.response;
    iron_status status;

    if (!first)
        return iron__no_memory(err, remote->name);
    status = iron__exchange_run(&x, err);
    if (status != IRON_OK && r->status == 416) { /* an empty object has no first byte */
        x.room = 0;
        status = iron__exchange_run(&x, err);
    }
    if (status != IRON_OK)
        goto done;
    remote->has_ranges = r->status == 206 && r->range_total != IRON_COUNT_UNKNOWN;
    remote->bytes = r->status == 206 ? r->range_total : r->content_length;
    if (r->status == 200 && !x.is_full) { /* that was all of it */
        remote->bytes = x.filled;
        remote->has_ranges = true;
        remote->whole = first;
        first = NULL;
    }
    memcpy(remote->tag, r->tag, sizeof remote->tag);
    memcpy(remote->modified, r->modified, sizeof remote->modified);
    remote->version = iron__fnv(IRON_FNV_START, remote->tag, strlen(remote->tag) + 1);
    if (!remote->tag[0])
        remote->version = iron__fnv(remote->version, remote->modified, strlen(remote->modified));
    remote->version = iron__fnv(remote->version, &remote->bytes, sizeof remote->bytes);
    if (remote->has_ranges && !remote->whole)
        iron__remote_cache_add(remote, first, x.filled);
done:
    free(first);
    return status;
}

/* A remote object that is not open yet. */
static iron_status create_remote(const char *name, iron__remote **out, iron_error *err) {
    const alias *a = find_alias(name);
    const char *address = a ? a->address : name, *key;
    iron_status status = IRON_OK;
    iron__remote *remote;
    char bucket[64];

    IRON_TRY(IRON_NEW(&remote, 1, name, err));
    pthread_mutex_init(&remote->mutex, NULL);
    remote->bytes = IRON_COUNT_UNKNOWN;
    remote->name = strdup(name);
    remote->is_s3 = strncmp(name, "s3://", 5) == 0;
    if (!remote->name || (!remote->is_s3 && !set_address(remote, address)))
        status = iron__no_memory(err, name);
    if (status == IRON_OK && remote->is_s3)
        status = iron__s3_split(address, bucket, &key, err);
    if (status == IRON_OK && remote->is_s3)
        status = iron__s3_access_load(&remote->access, err);
    if (status == IRON_OK)
        *out = remote;
    else
        destroy_remote(remote);
    return status;
}

/* Finds the object, or adds one that this thread has to open. Waits while another thread opens it.
 * With all.mutex held. */
static iron_status find_remote(const char *name, iron__remote **out, iron_error *err) {
    uint64_t hash = iron__fnv(IRON_FNV_START, name, strlen(name));

    for (;;) {
        iron__remote *remote = all.remotes;

        while (remote && (remote->hash != hash || strcmp(remote->name, name) != 0))
            remote = remote->next;
        *out = remote;
        if (!remote)
            break;
        if (remote->is_ready)
            return IRON_OK;
        pthread_cond_wait(&all.opened, &all.mutex);
    }
    IRON_TRY(create_remote(name, out, err));
    (*out)->hash = hash;
    (*out)->next = all.remotes;
    all.remotes = *out;
    return IRON_OK;
}

iron_status iron__remote_open(const char *address, iron__remote **out, iron_error *err) {
    char *name = iron__remote_name(address); /* nothing changes if it is a name already */
    iron__remote *remote = NULL;
    iron_status status;

    *out = NULL;
    if (!name)
        return iron__no_memory(err, "an address");
    status = iron__http_load(err);
    pthread_mutex_lock(&all.mutex);
    if (status == IRON_OK)
        status = find_remote(name, &remote, err);
    if (status == IRON_OK && !remote->is_ready) {
        pthread_mutex_unlock(&all.mutex);
        status = ask(remote, err);
        pthread_mutex_lock(&all.mutex);
        remote->is_ready = status == IRON_OK;
        if (status != IRON_OK) {
            iron__remote **at = &all.remotes;

            while (*at != remote)
                at = &(*at)->next;
            *at = remote->next;
            destroy_remote(remote);
        }
        pthread_cond_broadcast(&all.opened);
    }
    pthread_mutex_unlock(&all.mutex);
    free(name);
    if (status == IRON_OK)
        *out = remote;
    return status;
}

iron_status iron__remote_check_unchanged(iron__remote *remote, iron_error *err) {
    iron__exchange x = {.remote = remote, .kind = IRON_EXCHANGE_CHECK};

    return iron__exchange_run(&x, err);
}

/* Whole transfers. */

struct iron__remote_stream {
    iron__remote *remote;
    int fds[2];
    pthread_t thread;
    bool is_joined;
    atomic_bool stop;
    iron_status status; /* read after the thread has ended */
    iron_error error;
};

static bool is_stream_wanted(void *context) {
    const iron__remote_stream *stream = context;

    return !atomic_load(&stream->stop);
}

/* Writes to the pipe; false: the reader has closed it. The thread blocks SIGPIPE. */
static bool deliver(void *context, const void *data, size_t bytes) {
    const iron__remote_stream *stream = context;

    return iron__write_all(stream->fds[1], data, bytes);
}

static void *stream_main(void *argument) {
    iron__remote_stream *stream = argument;
    iron__exchange x = {.remote = stream->remote,
                        .kind = IRON_EXCHANGE_STREAM,
                        .deliver = deliver,
                        .is_wanted = is_stream_wanted,
                        .context = stream};

    stream->status = iron__exchange_run(&x, &stream->error);
    close(stream->fds[1]);
    return NULL;
}

iron_status iron__remote_stream_open(iron__remote *remote, iron__remote_stream **out, int *fd,
                                     iron_error *err) {
    iron__remote_stream *stream;
    int code;

    *out = NULL;
    *fd = -1;
    IRON_TRY(IRON_NEW(&stream, 1, remote->name, err));
    stream->remote = remote;
    if (pipe2(stream->fds, O_CLOEXEC) != 0) {
        code = errno;
        free(stream);
        return iron__fail_path(err, "make a pipe for", remote->name, code);
    }
    fcntl(stream->fds[0], F_SETPIPE_SZ, PIPE_BYTES); /* smaller ones are slower, not wrong */
    code = iron__thread_start(&stream->thread, stream_main, stream);
    if (code) {
        close(stream->fds[0]);
        close(stream->fds[1]);
        free(stream);
        return iron__fail(err, IRON_E_NOMEM, code, "cannot start a thread to read %.120s: %s",
                          remote->name, strerror(code));
    }
    *out = stream;
    *fd = stream->fds[0];
    return IRON_OK;
}

iron_status iron__remote_stream_check(iron__remote_stream *stream, iron_error *err) {
    if (!stream->is_joined)
        pthread_join(stream->thread, NULL);
    stream->is_joined = true;
    return stream->status == IRON_OK ? IRON_OK : iron__fail_again(err, &stream->error);
}

void iron__remote_stream_close(iron__remote_stream *stream) {
    if (!stream)
        return;
    atomic_store(&stream->stop, true);
    close(stream->fds[0]); /* a thread that writes to it is told so */
    if (!stream->is_joined)
        pthread_join(stream->thread, NULL);
    free(stream);
}

/* Lists. */

static iron_status page_url(const iron__remote *remote, const char *bucket, const char *prefix,
                            const char *token, char **url, iron_error *err) {
    char *coded_prefix = iron__s3_encode(prefix, false), *query = NULL;
    char *coded_token = iron__s3_encode(token ? token : "", false);

    if (coded_prefix && coded_token) /* parameters in the order of their names */
        query = iron__print("%s%s%slist-type=2&prefix=%s", token ? "continuation-token=" : "",
                            coded_token, token ? "&" : "", coded_prefix);
    *url = query ? iron__s3_url(&remote->access, bucket, NULL, query) : NULL;
    free(query);
    free(coded_prefix);
    free(coded_token);
    return *url ? IRON_OK : iron__no_memory(err, remote->name);
}

/* Reads all pages. */
static iron_status read_pages(iron__remote *remote, iron__s3_page *page, iron_error *err) {
    iron__exchange x = {.remote = remote, .kind = IRON_EXCHANGE_PAGE, .room = PAGE_BYTES_MAX};
    iron_status status;
    const char *prefix;
    char bucket[64];

    IRON_TRY(iron__s3_split(remote->name, bucket, &prefix, err));
    x.to = malloc(x.room);
    if (!x.to)
        return iron__no_memory(err, remote->name);
    do {
        size_t before = page->count;
        char *url;

        status = page_url(remote, bucket, prefix, page->next, &url, err);
        if (status != IRON_OK)
            break;
        x.url = url;
        status = iron__exchange_run(&x, err);
        free(url);
        if (status == IRON_OK)
            status = iron__s3_read_page(remote->name, (char *)x.to, x.filled, page, err);
        if (status == IRON_OK && page->next && page->count == before)
            status =
                iron__fail(err, IRON_E_FORMAT, 0,
                           "%.120s: the server's list of objects has an empty page", remote->name);
    } while (status == IRON_OK && page->next);
    free(x.to);
    return status;
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Keys to names; keys that end in a slash are folders, as some tools make them. */
static iron_status name_keys(const iron__remote *remote, iron__s3_page *page, char **names,
                             size_t *count, iron_error *err) {
    size_t bucket = strcspn(remote->name + 5, "/");

    if (page->count > 0)
        qsort(page->keys, page->count, sizeof *page->keys, compare_keys);
    for (size_t k = 0; k < page->count; k++) {
        if (page->keys[k][strlen(page->keys[k]) - 1] == '/')
            continue;
        names[*count] = iron__print("s3://%.*s/%s", (int)bucket, remote->name + 5, page->keys[k]);
        if (!names[*count])
            return iron__no_memory(err, remote->name);
        (*count)++;
    }
    return IRON_OK;
}

iron_status iron__remote_list(const char *prefix, char ***names, size_t *count, iron_error *err) {
    iron__s3_page page = {.keys = NULL};
    iron__remote *remote = NULL;
    char *name = NULL;
    iron_status status;

    *names = NULL;
    *count = 0;
    IRON_TRY(iron__http_load(err));
    IRON_FAIL_IF(strncmp(prefix, "s3://", 5) != 0, err, IRON_E_UNSUPPORTED,
                 "%.120s: folders cannot be listed over HTTP; name the files", prefix);
    name = iron__remote_name(prefix);
    if (!name)
        return iron__no_memory(err, "a list of objects");
    pthread_mutex_lock(&all.mutex);
    status = create_remote(name, &remote, err);
    pthread_mutex_unlock(&all.mutex);
    if (status == IRON_OK)
        status = read_pages(remote, &page, err);
    if (status == IRON_OK) {
        *names = calloc(page.count ? page.count : 1, sizeof **names);
        status = *names ? name_keys(remote, &page, *names, count, err) : iron__no_memory(err, name);
    }
    if (status != IRON_OK && *names) {
        for (size_t k = 0; k < *count; k++)
            free((*names)[k]);
        free(*names);
        *names = NULL;
        *count = 0;
    }
    iron__s3_page_free(&page);
    destroy_remote(remote);
    free(name);
    return status;
}
