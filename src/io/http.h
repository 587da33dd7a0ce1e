/* SPDX-License-Identifier: MIT */
/*
 * http.h: one HTTP request at a time, with libcurl, which is loaded when it is first needed.
 */
#ifndef IRON_IO_HTTP_H
#define IRON_IO_HTTP_H

#include <iron/iron.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers of libcurl that are used (tests/unit/test_remote_s3.c compares them with its header).
 */
enum {
    IRON_CURLOPT_WRITEDATA = 10001,
    IRON_CURLOPT_URL = 10002,
    IRON_CURLOPT_READDATA = 10009,
    IRON_CURLOPT_ERRORBUFFER = 10010,
    IRON_CURLOPT_WRITEFUNCTION = 20011,
    IRON_CURLOPT_READFUNCTION = 20012,
    IRON_CURLOPT_USERAGENT = 10018,
    IRON_CURLOPT_LOW_SPEED_LIMIT = 19,
    IRON_CURLOPT_LOW_SPEED_TIME = 20,
    IRON_CURLOPT_HTTPHEADER = 10023,
    IRON_CURLOPT_HEADERDATA = 10029,
    IRON_CURLOPT_POST = 47,
    IRON_CURLOPT_FOLLOWLOCATION = 52,
    IRON_CURLOPT_CAINFO = 10065,
    IRON_CURLOPT_MAXREDIRS = 68,
    IRON_CURLOPT_HEADERFUNCTION = 20079,
    IRON_CURLOPT_HTTP_VERSION = 84,
    IRON_CURLOPT_CAPATH = 10097,
    IRON_CURLOPT_BUFFERSIZE = 98,
    IRON_CURLOPT_NOSIGNAL = 99,
    IRON_CURLOPT_TIMEOUT_MS = 155,
    IRON_CURLOPT_CONNECTTIMEOUT_MS = 156,
    IRON_CURLOPT_USERNAME = 10173,
    IRON_CURLOPT_PASSWORD = 10174,
    IRON_CURLOPT_NOPROXY = 10177,
    IRON_CURLOPT_PROTOCOLS = 181,
    IRON_CURLOPT_REDIR_PROTOCOLS = 182,
    IRON_CURLOPT_PATH_AS_IS = 234,
    IRON_CURLOPT_UPLOAD_BUFFERSIZE = 280,
    IRON_CURLOPT_POSTFIELDSIZE_LARGE = 30120,
    IRON_CURLINFO_EFFECTIVE_URL = 0x100001,
    IRON_CURLINFO_REDIRECT_COUNT = 0x200014,
    IRON_CURLINFO_RETRY_AFTER = 0x600039,
    IRON_CURL_HTTP_VERSION_1_1 = 2,
    IRON_CURLPROTO_HTTP = 1,
    IRON_CURLPROTO_HTTPS = 2,
    IRON_CURLMSG_DONE = 1,
    IRON_CURL_GLOBAL_DEFAULT = 3,
    IRON_CURL_ERROR_SIZE = 256,
    IRON_CURL_READFUNC_ABORT = 0x10000000,
    IRON_CURLE_OK = 0,
    IRON_CURLE_COULDNT_RESOLVE_PROXY = 5,
    IRON_CURLE_COULDNT_RESOLVE_HOST = 6,
    IRON_CURLE_COULDNT_CONNECT = 7,
    IRON_CURLE_PARTIAL_FILE = 18,
    IRON_CURLE_OPERATION_TIMEDOUT = 28,
    IRON_CURLE_SSL_CONNECT_ERROR = 35,
    IRON_CURLE_GOT_NOTHING = 52,
    IRON_CURLE_SEND_ERROR = 55,
    IRON_CURLE_RECV_ERROR = 56,
    IRON_CURLE_PEER_FAILED_VERIFICATION = 60,
    IRON_CURLE_SEND_FAIL_REWIND = 65,
    IRON_CURLE_SSL_CACERT_BADFILE = 77
};

/* libcurl's message about a finished transfer. */
typedef struct iron__curl_message {
    int kind;
    void *easy;
    union {
        void *whatever;
        int result;
    } data;
} iron__curl_message;

#define IRON_HTTP_TAG_BYTES 256 /* longer ETags are ignored */

/* What the header of a response says; fields that are missing are IRON_COUNT_UNKNOWN or empty. */
typedef struct iron__http_response {
    unsigned status;         /* 0: there was no response */
    uint64_t content_length; /* as announced */
    bool is_chunked;
    uint64_t range_first, range_last, range_total; /* of Content-Range; total alone for 416 */
    bool has_bad_range;                            /* a Content-Range that cannot be read */
    uint64_t retry_after_s;
    char tag[IRON_HTTP_TAG_BYTES]; /* ETag */
    char modified[64];             /* Last-Modified */
    char region[32];               /* x-amz-bucket-region */
    char code[64];                 /* of S3's error document */
    char message[1024];            /* the start of an error's body */
    size_t message_bytes;
    bool is_stopped; /* by the body function, or because nobody wants it any more */
    int curl_code;
    char curl_text[IRON_CURL_ERROR_SIZE];
    char *redirected; /* the address that answered, if it is another one; freed by the caller */
} iron__http_response;

/* One line of a header; a status line starts a new response. */
void iron__http_header_line(iron__http_response *response, const char *line, size_t bytes);

#define IRON_HTTP_LINES_MAX 8u

/* A GET, or with `send` a POST. */
typedef struct iron__http_request {
    const char *url;
    const char *user, *password; /* NULL: none */
    const char *lines[IRON_HTTP_LINES_MAX];
    unsigned line_count;
    const char *ca_file;  /* certificates to trust; NULL: those of the environment or the system */
    bool follows;         /* redirects */
    bool is_direct;       /* uses no proxy */
    bool wants_errors;    /* `body` takes the bodies of all responses */
    unsigned seconds;     /* that it may take; 0: any time */
    unsigned silence_max; /* seconds without a byte after which it has failed; 0: 30 */
    /* Takes a part of the body of a response below 300; false stops the transfer. */
    bool (*body)(void *context, const iron__http_response *response, const void *data,
                 size_t bytes);
    /* Gives up to `room` bytes, at least one, of the send_bytes to post; 0 stops the transfer. It
     * is never asked to begin again: a request whose connection fails has failed. */
    size_t (*send)(void *context, char *to, size_t room);
    uint64_t send_bytes;
    /* Asked often; false stops the transfer. */
    bool (*is_wanted)(void *context);
    void *context;
} iron__http_request;

/* Loads libcurl at the first call. */
iron_status iron__http_load(iron_error *err);

/* A connection serves one request at a time, and keeps its sockets open for the next one. */
typedef struct iron__http_connection iron__http_connection;

iron__http_connection *iron__http_connection_create(void); /* NULL: out of memory */
void iron__http_connection_destroy(iron__http_connection *connection);

/* Runs a request. response->curl_code says how it went. */
void iron__http_run(iron__http_connection *connection, const iron__http_request *request,
                    iron__http_response *response);
/* Did it fail in a way that may be over soon? An untrusted certificate stays. */
bool iron__http_is_transient(const iron__http_response *response);

#endif
