/* SPDX-License-Identifier: MIT */
/*
 * exchange.c: requests for an object, what their responses mean, and retries.
 *
 * What may go better next time is tried again: failed connections, transfers that break off, and
 * HTTP 408, 429, 500, 502, 503 and 504; up to five times without progress, with waits that grow,
 * or as long as the server asks for in Retry-After. A range continues where it broke off.
 *
 * Every response is compared with the one that opened the object: size, and ETag or else
 * Last-Modified. A strong ETag is also sent (If-Match), so that the server compares.
 *
 * An address that redirects is asked once; later requests go to where it led, until that address
 * is refused (signed addresses expire).
 */
#include "io/remote_internal.h"

#include "core/clock.h"
#include "core/fail.h"
#include "core/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES_MAX         5u
#define CONNECT_TRIES_MAX 3u /* of the first request: the address may be wrong */
#define PATIENCE_NS       (UINT64_C(300) * 1000000000)
#define RETRY_AFTER_MAX_S 30u
#define CONNECTIONS_KEPT  16u

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

void iron__exchange_before_fork(void) { pthread_mutex_lock(&kept.mutex); }

void iron__exchange_after_fork(bool is_child) {
    if (is_child)
        kept.count = 0; /* not closed: that would write to the parent's sockets */
    pthread_mutex_unlock(&kept.mutex);
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
