/* SPDX-License-Identifier: MIT */
/*
 * remote_internal.h: what the files behind remote.h share. From the bottom: http.h runs one
 * request; s3.c turns an s3:// address into signed requests and reads lists of objects; remote.c
 * knows what responses mean, retries, and has addresses, objects and whole transfers;
 * remote_cache.c answers reads from ranges that its threads fetch.
 */
#ifndef IRON_IO_REMOTE_INTERNAL_H
#define IRON_IO_REMOTE_INTERNAL_H

#include "io/http.h"
#include "io/remote.h"

#include <pthread.h>
#include <time.h>

/* s3.c */

typedef struct iron__s3_access {
    char *key, *secret, *token; /* NULL: requests are not signed */
    char *region;
    char *endpoint; /* NULL: Amazon's */
} iron__s3_access;

/* From the environment and the files of the AWS tools. */
iron_status iron__s3_access_load(iron__s3_access *access, iron_error *err);
void iron__s3_access_free(iron__s3_access *access);

/* "s3://bucket/key", taken apart; key is the rest of the address, byte by byte. */
iron_status iron__s3_split(const char *name, char bucket[64], const char **key, iron_error *err);

/* The URL of an object, or with a query that of its bucket; from malloc, NULL: out of memory. */
char *iron__s3_url(const iron__s3_access *access, const char *bucket, const char *key,
                   const char *query);

/* Percent-encodes by the rules of S3: all but letters, digits, - . _ ~ and, in a path, slashes. */
char *iron__s3_encode(const char *text, bool is_path);

typedef struct iron__s3_header {
    const char *name, *value; /* lowercase; in order of their names */
} iron__s3_header;

typedef struct iron__s3_signing {
    const char *path, *query; /* encoded as they are sent */
    const iron__s3_header *headers;
    unsigned count;
    const char *time; /* 20130524T000000Z */
    const char *region, *key, *secret;
} iron__s3_signing;

/* The value of the header Authorization (signature version 4) of a GET without a body; from malloc,
 * NULL: out of memory. */
char *iron__s3_authorization(const iron__s3_signing *signing);

/* The header lines of a GET of this URL at this time, from malloc; without a key there are none. */
iron_status iron__s3_sign(const iron__s3_access *access, const char *url, time_t now,
                          char *lines[IRON_HTTP_LINES_MAX], unsigned *count, iron_error *err);

/* A page of a list of objects. */
typedef struct iron__s3_page {
    char **keys;
    size_t count, room;
    char *next; /* the token of the next page; NULL: this is the last */
} iron__s3_page;

/* Appends a page's keys. */
iron_status iron__s3_read_page(const char *address, const char *document, size_t bytes,
                               iron__s3_page *page, iron_error *err);
void iron__s3_page_free(iron__s3_page *page);

/* remote.c */

struct iron__remote {
    struct iron__remote *next; /* in the list of all */
    char *name;
    uint64_t hash;               /* of the name */
    char *url, *user, *password; /* of an http(s) address */
    bool is_s3;
    iron__s3_access access;
    pthread_mutex_t mutex; /* of `direct` */
    char *direct;          /* where the address redirects to; NULL: it does not */
    bool is_ready;         /* opened: what follows does not change any more */
    uint64_t bytes;        /* IRON_COUNT_UNKNOWN: not told */
    uint64_t version;      /* a hash of the tag, or of the date, and of the size */
    bool has_ranges;
    char tag[IRON_HTTP_TAG_BYTES];
    char modified[64];
    unsigned char *whole; /* a small object that was read when it was opened; else NULL */
    atomic_bool is_changed;
    struct iron__remote_cursor *cursors; /* remote_cache.c */
};

/* What is wanted from an object. */
typedef enum iron__exchange_kind {
    IRON_EXCHANGE_OPEN,   /* whatever the server has: a range, or the start of the whole */
    IRON_EXCHANGE_RANGE,  /* exactly `room` bytes from `at` on */
    IRON_EXCHANGE_CHECK,  /* the header alone */
    IRON_EXCHANGE_STREAM, /* the whole, handed to `deliver` */
    IRON_EXCHANGE_PAGE    /* the whole, at most `room` bytes */
} iron__exchange_kind;

typedef struct iron__exchange {
    iron__remote *remote;
    const char *url; /* instead of the object's; NULL: the object's */
    iron__exchange_kind kind;
    uint64_t at;
    unsigned char *to;
    size_t room, filled;
    bool (*deliver)(void *context, const void *data, size_t bytes);
    bool (*is_wanted)(void *context);
    void *context;
    bool is_checked;  /* the response is what was asked for */
    bool was_direct;  /* the address that a redirect led to was refused */
    bool has_region;  /* the bucket's region was learnt from a response */
    bool is_full;     /* there is more than `room` */
    bool has_changed; /* the response is of another version */
    bool is_odd;      /* the response is not what was asked for */
    iron__http_response response;
} iron__exchange;

/* The error for an object that is not the version that was opened any more. */
iron_status iron__remote_fail_changed(iron__remote *remote, iron_error *err);

/* Runs an exchange, with retries. IRON_E_CANCELLED: nobody wants it any more. */
iron_status iron__exchange_run(iron__exchange *x, iron_error *err);

/* The first wait between tries, 200; each further one is three times as long. Tests set less. */
extern atomic_uint iron__remote_backoff_ms;

void iron__remote_before_fork(void);
void iron__remote_after_fork(bool is_child);

/* remote_cache.c: the start of an object, read when it was opened, is kept. */
void iron__remote_cache_add(iron__remote *remote, const void *data, size_t bytes);
#define IRON_REMOTE_FIRST_BYTES ((size_t)64 * 1024)

#endif
