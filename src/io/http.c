/* SPDX-License-Identifier: MIT */
/*
 * http.c: one request with libcurl, which is loaded when it is first needed; the few functions and
 * numbers that are used are declared here and in http.h.
 *
 * Requests run on libcurl's multi interface, although there is one at a time: its loop is ours, so
 * that a transfer that nobody wants any more ends within 50 ms, and not when libcurl next looks.
 * HTTP/1.1 is enough: parallel ranges want connections of their own, and one body at a time needs
 * no frames. Bodies are never decoded. A redirect is followed to http and https alone, never from
 * https to http, and libcurl sends user and password to the first host only. A body that is sent
 * cannot be restarted by libcurl, when a kept connection turns out to be dead: there is no seek
 * function, and the caller knows what may be sent again.
 */
#include "io/http.h"

#include "core/fail.h"
#include "core/library.h"
#include "core/number.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define REDIRECTS_MAX      10L
#define CONNECT_TIMEOUT_MS 10000L
#define SILENCE_MAX_S      30u /* a transfer without a byte for so long has failed */
#define POLL_MS            50  /* how often a waiting transfer is asked whether it is wanted */
#define BUFFER_BYTES       (512L * 1024) /* the most that libcurl 7.88 takes */
#define SEND_BYTES         (2L << 20)    /* the same; 64 KiB are a quarter slower */
#define ERROR_BODY_MAX     ((size_t)64 * 1024)

typedef size_t (*curl_writer)(char *data, size_t size, size_t count, void *context);

/* X(result, name, parameters) */
#define CURL_FUNCTIONS(X)                                                                          \
    X(int, curl_global_init, (long flags))                                                         \
    X(char *, curl_version, (void))                                                                \
    X(void *, curl_easy_init, (void))                                                              \
    X(int, curl_easy_setopt, (void *easy, int option, ...))                                        \
    X(int, curl_easy_getinfo, (void *easy, int info, ...))                                         \
    X(void, curl_easy_reset, (void *easy))                                                         \
    X(void, curl_easy_cleanup, (void *easy))                                                       \
    X(const char *, curl_easy_strerror, (int code))                                                \
    X(void *, curl_slist_append, (void *list, const char *line))                                   \
    X(void, curl_slist_free_all, (void *list))                                                     \
    X(void *, curl_multi_init, (void))                                                             \
    X(int, curl_multi_add_handle, (void *multi, void *easy))                                       \
    X(int, curl_multi_remove_handle, (void *multi, void *easy))                                    \
    X(int, curl_multi_perform, (void *multi, int *running))                                        \
    X(int, curl_multi_poll,                                                                        \
      (void *multi, void *extra, unsigned extras, int timeout_ms, int *ready))                     \
    X(iron__curl_message *, curl_multi_info_read, (void *multi, int *left))                        \
    X(int, curl_multi_cleanup, (void *multi))

typedef struct curl_functions {
/* A declarator takes no more parentheses. NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define FIELD(result, name, parameters) result(*name) parameters;
    CURL_FUNCTIONS(FIELD)
#undef FIELD
} curl_functions;

static iron__once curl_once = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static struct {
    curl_functions curl;
    char version[64];
} loaded;

struct iron__http_connection {
    void *easy, *multi;
};

static iron_status load(iron_error *err) {
    static const iron__symbol symbols[] = {
#define SYMBOL(result, name, parameters) {#name, offsetof(curl_functions, name), true},
        CURL_FUNCTIONS(SYMBOL)
#undef SYMBOL
    };
    static const char *const usual[] = {"libcurl.so.4", "libcurl-gnutls.so.4", NULL}; /* Debian's */
    iron__library l = iron__library_open("IRON_CURL_LIBRARY", usual, symbols,
                                         sizeof symbols / sizeof symbols[0], &loaded.curl);
    const char *version;

    IRON_FAIL_IF(!IRON_LOADS_LIBRARIES, err, IRON_E_UNSUPPORTED,
                 "this build of iron cannot load libcurl, which remote files and iron push need; "
                 "build it without IRON_STATIC_COMMAND");
    IRON_FAIL_IF(!l.handle, err, IRON_E_UNSUPPORTED,
                 "remote files and iron push need libcurl: %.120s; install the package libcurl4%s",
                 l.fault, l.is_named ? " or unset IRON_CURL_LIBRARY" : "");
    IRON_FAIL_IF(l.missing, err, IRON_E_UNSUPPORTED,
                 "remote files and iron push need libcurl 7.66 or later, but this one has no %s",
                 l.missing);
    IRON_FAIL_IF(loaded.curl.curl_global_init(IRON_CURL_GLOBAL_DEFAULT) != IRON_CURLE_OK, err,
                 IRON_E_UNSUPPORTED,
                 "remote files and iron push need libcurl, which cannot be initialised");
    version = loaded.curl.curl_version();
    snprintf(loaded.version, sizeof loaded.version, "%.*s", (int)strcspn(version, " "), version);
    return IRON_OK;
}

iron_status iron__http_load(iron_error *err) { return iron__once_get(&curl_once, load, err); }

iron_status iron_remote_describe(iron_library_info *info, iron_error *err) {
    bool is_there;

    IRON_TRY(iron__struct_check(info, sizeof *info, "iron_library_info", err));
    is_there = iron__http_load(NULL) == IRON_OK;
    *info = (iron_library_info){
        .struct_size = sizeof *info,
        .is_available = is_there,
        .name = "remote",
        .library = "libcurl",
        .package = "libcurl4",
        .version = is_there ? loaded.version : NULL,
    };
    return IRON_OK;
}

iron__http_connection *iron__http_connection_create(void) {
    iron__http_connection *connection = calloc(1, sizeof *connection);

    if (!connection)
        return NULL;
    connection->easy = loaded.curl.curl_easy_init();
    connection->multi = loaded.curl.curl_multi_init();
    if (connection->easy && connection->multi)
        return connection;
    iron__http_connection_destroy(connection);
    return NULL;
}

void iron__http_connection_destroy(iron__http_connection *connection) {
    if (!connection)
        return;
    if (connection->easy)
        loaded.curl.curl_easy_cleanup(connection->easy);
    if (connection->multi)
        loaded.curl.curl_multi_cleanup(connection->multi);
    free(connection);
}

/* The header of a response. */

/* A decimal number that takes all of the text; false: it is not one, or too large. */
static bool read_number(const char *text, size_t length, uint64_t *out) {
    const char *end = text + length;
    uint64_t value;

    if (length > 19 || !iron__read_digits(&text, end, 10, &value) || text != end)
        return false;
    *out = value;
    return true;
}

/* "bytes 0-9/100", "bytes 0-9/" with a star for an unknown size, or with a star for the range. */
static bool read_range(const char *text, size_t length, iron__http_response *r) {
    const char *slash = memchr(text, '/', length), *dash;
    size_t left;

    if (length < 6 || strncasecmp(text, "bytes ", 6) != 0 || !slash || slash < text + 7)
        return false;
    if (r->range_first != IRON_COUNT_UNKNOWN || r->range_total != IRON_COUNT_UNKNOWN)
        return false; /* two of them */
    left = length - (size_t)(slash + 1 - text);
    if (left == 1 && slash[1] == '*')
        r->range_total = IRON_COUNT_UNKNOWN;
    else if (!read_number(slash + 1, left, &r->range_total))
        return false;
    text += 6;
    if (slash - text == 1 && text[0] == '*')
        return r->range_total != IRON_COUNT_UNKNOWN;
    dash = memchr(text, '-', (size_t)(slash - text));
    return dash && read_number(text, (size_t)(dash - text), &r->range_first) &&
           read_number(dash + 1, (size_t)(slash - dash - 1), &r->range_last) &&
           r->range_first <= r->range_last && r->range_last < r->range_total;
}

static void copy_value(char *to, size_t room, const char *value, size_t length) {
    if (length >= room)
        length = 0;
    memcpy(to, value, length);
    to[length] = '\0';
}

static void begin_response(iron__http_response *r, const char *line, size_t bytes) {
    const char *blank = memchr(line, ' ', bytes);
    uint64_t status = 0;

    if (blank && (size_t)(line + bytes - blank) >= 4)
        read_number(blank + 1, 3, &status);
    r->status = (unsigned)status;
    r->content_length = r->range_first = r->range_last = r->range_total = IRON_COUNT_UNKNOWN;
    r->retry_after_s = IRON_COUNT_UNKNOWN;
    r->is_chunked = r->has_bad_range = false;
    r->tag[0] = r->modified[0] = r->region[0] = r->code[0] = '\0';
    r->message_bytes = 0;
}

void iron__http_header_line(iron__http_response *r, const char *line, size_t bytes) {
    const char *colon, *value;
    size_t name, length;

    while (bytes > 0 && isspace((unsigned char)line[bytes - 1]))
        bytes--;
    if (bytes >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        begin_response(r, line, bytes);
        return;
    }
    colon = memchr(line, ':', bytes);
    if (!colon)
        return;
    name = (size_t)(colon - line);
    for (value = colon + 1; value < line + bytes && isblank((unsigned char)*value);)
        value++;
    length = (size_t)(line + bytes - value);
#define IS(text) (name == sizeof(text) - 1 && strncasecmp(line, text, name) == 0)
    if (IS("etag")) {
        copy_value(r->tag, sizeof r->tag, value, length);
    } else if (IS("last-modified")) {
        copy_value(r->modified, sizeof r->modified, value, length);
    } else if (IS("x-amz-bucket-region")) {
        copy_value(r->region, sizeof r->region, value, length);
    } else if (IS("content-length")) {
        if (!read_number(value, length, &r->content_length))
            r->content_length = IRON_COUNT_UNKNOWN;
    } else if (IS("retry-after")) {
        if (!read_number(value, length, &r->retry_after_s))
            r->retry_after_s = IRON_COUNT_UNKNOWN;
    } else if (IS("content-range")) {
        r->has_bad_range = r->has_bad_range || !read_range(value, length, r);
    } else if (IS("transfer-encoding")) {
        r->is_chunked = length >= 7 && strncasecmp(value + length - 7, "chunked", 7) == 0;
    }
#undef IS
}

/* A running request. */

typedef struct transfer {
    const iron__http_request *request;
    iron__http_response *response;
    size_t error_bytes;
    uint64_t sent_bytes;
} transfer;

static size_t take_header(char *data, size_t size, size_t count, void *context) {
    transfer *run = context;

    iron__http_header_line(run->response, data, size * count);
    return size * count;
}

static size_t take_body(char *data, size_t size, size_t count, void *context) {
    transfer *run = context;
    iron__http_response *r = run->response;
    size_t bytes = size * count, room = sizeof r->message - 1 - r->message_bytes;

    if ((r->status >= 200 && r->status < 300) || run->request->wants_errors) {
        if (run->request->body(run->request->context, r, data, bytes))
            return bytes;
        r->is_stopped = true;
        return bytes + 1; /* an error, also for 0 bytes */
    }
    room = iron__min_size(room, bytes);
    memcpy(r->message + r->message_bytes, data, room);
    r->message_bytes += room;
    r->message[r->message_bytes] = '\0';
    run->error_bytes +=
        bytes; /* read to its end, if it is short, so that the socket stays usable */
    return run->error_bytes <= ERROR_BODY_MAX ? bytes : bytes + 1;
}

static size_t give_body(char *to, size_t size, size_t count, void *context) {
    transfer *run = context;
    uint64_t left = run->request->send_bytes - run->sent_bytes;
    size_t some = size * count;

    some = iron__min_size(some, left);
    if (some > 0)
        some = run->request->send(run->request->context, to, some);
    run->sent_bytes += some;
    return some > 0 || left == 0 ? some : IRON_CURL_READFUNC_ABORT;
}

/* Where certificates are found if not in the system's place. */
static void set_certificates(void *easy, const char *ca_file) {
    static const char *const names[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE"};
    const char *file = ca_file, *folder = ca_file ? NULL : secure_getenv("SSL_CERT_DIR");

    for (unsigned k = 0; !ca_file && k < 3 && (!file || !file[0]); k++)
        file = secure_getenv(names[k]);
    if (ca_file || (file && file[0]))
        loaded.curl.curl_easy_setopt(easy, IRON_CURLOPT_CAINFO, file);
    if (ca_file || (folder && folder[0]))
        loaded.curl.curl_easy_setopt(easy, IRON_CURLOPT_CAPATH, folder);
}

static void *set_options(void *easy, const iron__http_request *request, transfer *run) {
    int (*set)(void *, int, ...) = loaded.curl.curl_easy_setopt;
    long both = IRON_CURLPROTO_HTTP | IRON_CURLPROTO_HTTPS;
    bool is_secure = strncmp(request->url, "https://", 8) == 0;
    curl_writer header = take_header, body = take_body, send = give_body;
    unsigned silence = request->silence_max ? request->silence_max : SILENCE_MAX_S;
    char agent[64]; /* libcurl copies it */
    void *lines = NULL;

    loaded.curl.curl_easy_reset(easy); /* keeps sockets and sessions */
    set(easy, IRON_CURLOPT_URL, request->url);
    set(easy, IRON_CURLOPT_PATH_AS_IS, 1L);
    set(easy, IRON_CURLOPT_NOSIGNAL, 1L);
    snprintf(agent, sizeof agent, "iron/%s", iron_version());
    set(easy, IRON_CURLOPT_USERAGENT, agent);
    set(easy, IRON_CURLOPT_HTTP_VERSION, (long)IRON_CURL_HTTP_VERSION_1_1);
    set(easy, IRON_CURLOPT_PROTOCOLS, both);
    set(easy, IRON_CURLOPT_REDIR_PROTOCOLS, is_secure ? (long)IRON_CURLPROTO_HTTPS : both);
    set(easy, IRON_CURLOPT_FOLLOWLOCATION, request->follows ? 1L : 0L);
    set(easy, IRON_CURLOPT_MAXREDIRS, REDIRECTS_MAX);
    set(easy, IRON_CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    set(easy, IRON_CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(easy, IRON_CURLOPT_LOW_SPEED_TIME, (long)silence);
    set(easy, IRON_CURLOPT_TIMEOUT_MS, 1000L * request->seconds);
    set(easy, IRON_CURLOPT_BUFFERSIZE, BUFFER_BYTES);
    set(easy, IRON_CURLOPT_ERRORBUFFER, run->response->curl_text);
    set(easy, IRON_CURLOPT_HEADERFUNCTION, header);
    set(easy, IRON_CURLOPT_HEADERDATA, run);
    set(easy, IRON_CURLOPT_WRITEFUNCTION, body);
    set(easy, IRON_CURLOPT_WRITEDATA, run);
    if (request->send) {
        set(easy, IRON_CURLOPT_POST, 1L);
        set(easy, IRON_CURLOPT_POSTFIELDSIZE_LARGE, (int64_t)request->send_bytes);
        set(easy, IRON_CURLOPT_UPLOAD_BUFFERSIZE, SEND_BYTES);
        set(easy, IRON_CURLOPT_READFUNCTION, send);
        set(easy, IRON_CURLOPT_READDATA, run);
    }
    if (request->is_direct)
        set(easy, IRON_CURLOPT_NOPROXY, "*");
    if (request->user)
        set(easy, IRON_CURLOPT_USERNAME, request->user);
    if (request->password)
        set(easy, IRON_CURLOPT_PASSWORD, request->password);
    set_certificates(easy, request->ca_file);
    for (unsigned k = 0; k < request->line_count; k++) {
        void *longer = loaded.curl.curl_slist_append(lines, request->lines[k]);

        lines = longer ? longer : lines;
    }
    set(easy, IRON_CURLOPT_HTTPHEADER, lines);
    return lines;
}

/* Runs until the transfer ends or nobody wants it. Returns libcurl's code; -1: not wanted. */
static int drive(iron__http_connection *connection, const iron__http_request *request) {
    int running = 1, left, code = -1;
    iron__curl_message *message;

    while (running) {
        if (loaded.curl.curl_multi_perform(connection->multi, &running) != 0)
            return IRON_CURLE_RECV_ERROR;
        if (!running)
            break;
        if (request->is_wanted && !request->is_wanted(request->context))
            return -1;
        loaded.curl.curl_multi_poll(connection->multi, NULL, 0, POLL_MS, NULL);
    }
    while ((message = loaded.curl.curl_multi_info_read(connection->multi, &left)))
        if (message->kind == IRON_CURLMSG_DONE)
            code = message->data.result;
    return code >= 0 ? code : IRON_CURLE_RECV_ERROR;
}

/* The <Code> of S3's error document. */
static void find_code(iron__http_response *r) {
    const char *at = r->message_bytes > 0 ? strstr(r->message, "<Code>") : NULL;
    size_t length;

    if (!at)
        return;
    at += 6;
    length = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789");
    if (at[length] == '<')
        copy_value(r->code, sizeof r->code, at, length);
}

void iron__http_run(iron__http_connection *connection, const iron__http_request *request,
                    iron__http_response *response) {
    transfer run = {.request = request, .response = response};
    void *lines, *easy = connection->easy;
    char *url = NULL;
    int64_t retry_after_s = 0;
    long redirects = 0;
    sigset_t before, pipe, pending;

    *response = (iron__http_response){.status = 0};
    begin_response(response, "", 0);
    /* Writing to a TLS socket that the server has closed raises SIGPIPE in some libraries. */
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    lines = set_options(easy, request, &run);
    if (loaded.curl.curl_multi_add_handle(connection->multi, easy) != 0) {
        response->curl_code = IRON_CURLE_RECV_ERROR;
    } else {
        response->curl_code = drive(connection, request);
        if (response->curl_code < 0)
            response->is_stopped = true;
        loaded.curl.curl_easy_getinfo(easy, IRON_CURLINFO_REDIRECT_COUNT, &redirects);
        loaded.curl.curl_easy_getinfo(easy, IRON_CURLINFO_EFFECTIVE_URL, &url);
        if (redirects > 0 && url)
            response->redirected = strdup(url);
        loaded.curl.curl_easy_getinfo(easy, IRON_CURLINFO_RETRY_AFTER, &retry_after_s);
        if (retry_after_s > 0) /* also of a date */
            response->retry_after_s = (uint64_t)retry_after_s;
        loaded.curl.curl_multi_remove_handle(connection->multi, easy);
    }
    if (response->curl_code > 0 && response->curl_text[0] == '\0')
        snprintf(response->curl_text, sizeof response->curl_text, "%s",
                 loaded.curl.curl_easy_strerror(response->curl_code));
    find_code(response);
    loaded.curl.curl_easy_reset(easy); /* it must not refer to `response` and `lines` any more */
    loaded.curl.curl_slist_free_all(lines);
    if (sigismember(&pending, SIGPIPE) != 1) /* it was not pending before: takes it if it is now */
        sigtimedwait(&pipe, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool iron__http_is_transient(const iron__http_response *r) {
    switch (r->curl_code) {
    case IRON_CURLE_COULDNT_RESOLVE_PROXY:
    case IRON_CURLE_COULDNT_RESOLVE_HOST:
    case IRON_CURLE_COULDNT_CONNECT:
    case IRON_CURLE_PARTIAL_FILE:
    case IRON_CURLE_OPERATION_TIMEDOUT:
    case IRON_CURLE_SSL_CONNECT_ERROR:
    case IRON_CURLE_GOT_NOTHING:
    case IRON_CURLE_SEND_ERROR:
    case IRON_CURLE_RECV_ERROR:
    case IRON_CURLE_SEND_FAIL_REWIND:
        return true;
    default:
        return false;
    }
}
