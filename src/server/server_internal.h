/* SPDX-License-Identifier: MIT */
/*
 * server_internal.h: the parts of a running server, by file. What routes may use is in http.h.
 *
 *     server.c       options, service manager, listening socket, start and stop   (one thread)
 *     connections.c  accepts connections, limits, times out and drains them      (two threads)
 *     header.c       parses and checks request headers
 *     request.c      requests as libmicrohttpd delivers them, their checks and routes, Host and
 *                    Origin                                          (one thread per connection)
 *     tls.c          warnings of a TLS certificate; sending over TLS beside libmicrohttpd
 *     access.c       tokens and their roles, tickets, wrong tokens
 *     response.c     builds and sends responses
 *     log.c          log lines on standard error                                  (one thread)
 *     runs.c         checks the records of training runs                          (one thread)
 *     routes.c       the list of routes, whose functions are in route_*.c and events.c, and what
 *                    several of them share
 */
#ifndef IRON_SERVER_SERVER_INTERNAL_H
#define IRON_SERVER_SERVER_INTERNAL_H

#include "server/http.h"

#include "core/clock.h"
#include "core/fail.h"
#include "core/files.h"
#include "core/number.h"
#include "store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)

/* Request headers (header.c): pure functions over bytes.
 *
 * Where two programs read one request differently, requests can be smuggled past the stricter one.
 * So everything that RFC 9112 lets a server tolerate is refused: bare CR or LF, folded lines,
 * blanks before a colon, two lengths, a length together with Transfer-Encoding, targets in other
 * forms. */

#define IRON_HEADER_BYTES_MAX  ((size_t)16 << 10)
#define IRON_HEADER_FIELDS_MAX 100u
#define IRON_TARGET_BYTES_MAX  ((size_t)8 << 10)
#define IRON_LENGTH_UNKNOWN    UINT64_MAX /* of a chunked body */

static inline iron__text iron__text_of(const char *string) {
    return (iron__text){string, strlen(string)};
}

static inline bool iron__text_is(iron__text text, const char *word) {
    return text.bytes == strlen(word) && memcmp(text.at, word, text.bytes) == 0;
}

static inline bool iron__text_is_caseless(iron__text text, const char *word) {
    return text.bytes == strlen(word) && strncasecmp(text.at, word, text.bytes) == 0;
}

/* Without the blanks and tabs around it. */
iron__text iron__text_trim(iron__text text);
/* Decimal digits below 2^64; false, and `value` is unchanged, for anything else. */
bool iron__text_number(iron__text text, uint64_t *value);
/* Has it letters, digits and these other characters alone, and at least one? */
bool iron__text_is_word(iron__text text, const char *others);
/* Is it one of the words, which are separated by blanks? */
bool iron__text_is_one_of(iron__text text, const char *words, bool is_caseless);
/* Is it this media type, with or without parameters? */
bool iron__text_is_type(iron__text type, const char *name);

/* Why a request is refused, as a problem of http.h; kind NULL: it is not. */
typedef struct iron__http_error {
    const char *kind, *help;
    char detail[200];
} iron__http_error;

static inline iron__http_error iron__http_error_none(void) {
    return (iron__http_error){.kind = NULL};
}

iron__http_error iron__http_error_make(const char *kind, const char *help, const char *detail, ...)
    __attribute__((format(printf, 3, 4)));

typedef struct iron__header {
    iron__text method, target, version;
    struct {
        iron__text name, value;    /* without blanks around it */
        bool is_followed_by_blank; /* libmicrohttpd keeps such a blank */
    } fields[IRON_HEADER_FIELDS_MAX];
    uint32_t count;
    uint64_t body_bytes; /* set by the check: Content-Length, 0, or IRON_LENGTH_UNKNOWN */
} iron__header;

/* Adds a field; false if there are too many. `line` is what follows the colon. */
static inline bool iron__header_add(iron__header *header, iron__text name, iron__text line) {
    iron__text value = iron__text_trim(line);
    uint32_t k = header->count;

    if (k == IRON_HEADER_FIELDS_MAX)
        return false;
    header->fields[k].name = name;
    header->fields[k].value = value;
    header->fields[k].is_followed_by_blank = value.at + value.bytes != line.at + line.bytes;
    header->count++;
    return true;
}

/* The value of a field, or a text whose `at` is NULL. */
static inline iron__text iron__header_get(const iron__header *header, const char *name) {
    for (uint32_t k = 0; k < header->count; k++)
        if (iron__text_is_caseless(header->fields[k].name, name))
            return header->fields[k].value;
    return (iron__text){NULL, 0};
}

/* Looks for a header at the start of what has arrived. *end is its length including the empty line,
 * or 0 while more must arrive; then, if there is no error, the header is parsed and its texts point
 * into `bytes`. An error is returned as soon as it is certain. */
iron__http_error iron__header_parse(const char *bytes, size_t count, iron__header *header,
                                    size_t *end);
/* Reads the SHA-256 of the body from Content-Digest and Repr-Digest (RFC 9530), which mean the same
 * here; *has_digest: there is one. Other algorithms are ignored. */
iron__http_error iron__header_digest(const iron__header *header, unsigned char digest[32],
                                     bool *has_digest);
iron__http_error iron__target_too_long(void);
/* Checks what the lines say, and sets body_bytes. */
iron__http_error iron__header_check(iron__header *header);

/* Addresses */

/* The in_addr or in6_addr in it; NULL for other families. */
static inline const void *iron__address_bytes(const struct sockaddr *address) {
    if (address->sa_family == AF_INET)
        return &((const struct sockaddr_in *)(const void *)address)->sin_addr;
    if (address->sa_family == AF_INET6)
        return &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    return NULL;
}

/* Is the in_addr or in6_addr one that no other machine can reach? */
static inline bool iron__is_loopback(int family, const void *address) {
    const struct in6_addr *v6 = address;

    if (family == AF_INET)
        return ntohl(((const struct in_addr *)address)->s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

/* The log (log.c): sentences ("iron: ...") or one JSON object per line.
 *
 * A line goes into a bounded queue and the caller continues: a stopped terminal, an unread pipe or
 * a full disk costs lines, never time. Lines that do not fit are dropped and counted. One thread
 * writes. All functions may be called from any thread, and with a log that is NULL. */

typedef enum iron__log_level {
    IRON_LOG_DEBUG,
    IRON_LOG_INFO,
    IRON_LOG_WARNING,
    IRON_LOG_ERROR
} iron__log_level;

typedef struct iron__log_options {
    int fd; /* borrowed */
    bool is_json;
    iron__log_level level; /* less severe lines are left out */
    size_t room;           /* bytes in the queue at most; 0: 2 MiB */
    uint32_t close_ms; /* how long closing waits for queued lines to be read; 0: three seconds */
} iron__log_options;

typedef struct iron__log {
    atomic_uint_fast64_t lines, dropped; /* written; did not fit or could not be written */

    /* For log.c. */
    iron__log_options options;
    pthread_t thread;
    pthread_mutex_t mutex;    /* guards what follows */
    pthread_cond_t wake, end; /* there are lines; the thread has ended */
    char *filled, *written;   /* written is the thread's */
    size_t used;              /* of filled */
    uint64_t unreported;      /* lines that did not fit, since that was last logged */
    bool is_idle, is_closing, is_over;
    uint64_t closing_ns; /* when closing began */
} iron__log;

/* A member of a JSON line: a text, else an address, else a number. */
typedef struct iron__log_member {
    const char *name, *text;
    const struct sockaddr *address;
    uint64_t number;
} iron__log_member;

iron_status iron__log_open(const iron__log_options *options, iron__log **out, iron_error *err);
/* Writes what is queued, unless it is not read in time. */
void iron__log_close(iron__log *log);
/* An event. Text logs get the sentence, JSON logs the members; without members (a NULL name ends
 * them; NULL: none) the sentence is the JSON member `message`. format NULL: JSON logs only. */
void iron__log_event(iron__log *log, iron__log_level level, const char *event,
                     const iron__log_member *members, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The event "note", a warning. */
#define iron__note(log, ...) iron__log_event((log), IRON_LOG_WARNING, "note", NULL, __VA_ARGS__)

/* A finished request. What is unknown (NULL, a text whose `at` is NULL) is left out. */
typedef struct iron__request_record {
    uint64_t id;
    iron__text method, target;
    const iron__route *route; /* NULL: none was reached */
    unsigned status;          /* 0: no response was sent */
    const char *engine;       /* "": the request names none */
    const struct sockaddr *client;
    uint64_t bytes_in, bytes_out; /* of bodies */
    uint64_t ns;
    const iron__http_problem *problem;
    const char *detail; /* what is wrong, if no route has reported it */
} iron__request_record;

/* JSON logs only. Only the path of the target is logged: the query may contain secrets. */
void iron__log_request(iron__log *log, const iron__request_record *record);

/* Access (access.c) */

typedef struct iron__tokens iron__tokens; /* of a token file */

/* Logs too if tokens are too short. */
iron_status iron__tokens_read(const char *path, iron__log *log, iron__tokens **out,
                              iron_error *err);
void iron__tokens_destroy(iron__tokens *tokens);
/* Checks the bearer token or, unless NULL, the ticket, which is redeemed if it is needed; the
 * request gets the rights of its token. */
iron__http_error iron__access_check(iron__request *req, iron__text authorization,
                                    const char *ticket);
/* Makes guessing slow: waits if the address has sent too many wrong tokens. Returns the error. */
iron__http_error iron__access_slow_down(iron__request *req, iron__http_error error);
/* May the request's token use its route with the engine in the path? */
iron__http_error iron__access_allows(const iron__request *req);
/* And this engine? "" is fine. */
iron__http_error iron__access_engine(const iron__request *req, const char *name);

#define IRON_GUESSES_MAX 1024u /* addresses whose wrong tokens are remembered */

typedef struct iron__guess {
    uint64_t key, next_ns;
} iron__guess;

typedef struct iron__guesses {
    uint64_t seed;
    iron__guess all[IRON_GUESSES_MAX];
    atomic_uint waiting; /* answers to wrong tokens */
} iron__guesses;

/* Tickets: permission to open one page once. A link cannot send a token, and a token in
 * a link would stay in histories and logs. So the holder of the token asks for a ticket, which is
 * good for one request within a minute, at the routes whose row says so. */

#define IRON_TICKETS_MAX    64u /* when there are more, the oldest becomes invalid */
#define IRON_TICKET_SECONDS 60u
#define IRON_TICKET_BYTES   16u

typedef struct iron__tickets {
    pthread_mutex_t lock;
    struct {
        unsigned char bytes[IRON_TICKET_BYTES];
        uint64_t ends_ns; /* 0: unused, or redeemed */
    } all[IRON_TICKETS_MAX];
} iron__tickets;

/* A thread that works until it is stopped (server.c). The mutex guards is_over, and what the owner
 * says; `wake` is signalled at the end too. */
typedef struct iron__worker {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake; /* its timeouts are times of the monotonic clock */
    bool is_running, is_over;
} iron__worker;

iron_status iron__worker_start(iron__worker *worker, void *(*run)(void *context), void *context,
                               iron_error *err);
/* Waits for its end. Does nothing if it does not run. */
void iron__worker_stop(iron__worker *worker);

/* Runs (runs.c) */

/* The newest result of checking a run. */
typedef struct iron__run_check {
    char name[IRON_ENGINE_NAME_MAX + 1];
    uint64_t run, records; /* how many were checked */
    iron_ledgers_summary summary;
    iron_ledger_findings found;
    uint64_t most[IRON_LEDGER_KINDS]; /* that any check since the start has found */
} iron__run_check;

typedef struct iron__checker {
    iron__worker worker; /* its mutex guards what follows */
    iron__run_check all[IRON_RUNS_MAX + 1];
    size_t count;
    uint64_t changes;          /* records came, a run was deleted or checked */
    pthread_mutex_t comparing; /* held during a comparison: it bounds the memory */
} iron__checker;

iron_status iron__checker_start(iron_server *server, iron_error *err);
void iron__checker_stop(iron_server *server);
/* A run has changed. */
void iron__checker_notify(iron_server *server);
/* Waits until there are more than `seen` changes of runs and checks, or the time is over; returns
 * their number. */
uint64_t iron__checker_wait(iron_server *server, uint64_t seen, uint32_t milliseconds);
/* A copy, whose findings are to be released; false: it was not checked yet. */
bool iron__run_check_get(iron_server *server, uint64_t run, iron__run_check *copy);
/* All checks without their lists, at most IRON_RUNS_MAX; returns how many. */
size_t iron__run_checks(iron_server *server, iron__run_check *out);
/* Compares the records of two runs. IRON_E_STATE: one of them was deleted meanwhile. */
iron_status iron__run_diff(iron_server *server, const iron__run_view *reference,
                           const iron__run_view *view, iron_ledger_diff *diff, iron_error *err);

/* The server */

typedef struct iron__acceptor iron__acceptor;

#define IRON_LOCAL_KEY UINT64_MAX /* of clients without an address, on a file system socket */

/* What a connection that libmicrohttpd serves waits for. Only waiting for the client counts towards
 * a timeout. */
typedef enum iron__phase {
    IRON_PHASE_IDLE,      /* for the next request's header */
    IRON_PHASE_WORKING,   /* for the server: the disk, a device */
    IRON_PHASE_BODY,      /* for more of the body */
    IRON_PHASE_SENDING,   /* for the client to read a response */
    IRON_PHASE_STREAMING, /* the same, for one that may last */
    IRON_PHASE_TIMED_OUT, /* sending side closed; the client may read the 408 */
    IRON_PHASE_SHUT       /* both sides closed */
} iron__phase;

typedef struct iron__connection {
    struct iron__connection *next, *prev;
    int fd;
    struct MHD_Connection *mhd;
    uint64_t key;          /* of the client's address */
    atomic_bool is_known;  /* a request on it was allowed by a token */
    bool is_released;      /* no longer counted; guarded by the list's lock */
    bool had_request;      /* its own thread's: the acceptor checked only the first header */
    uint64_t request_id;   /* its own thread's, except in IRON_PHASE_BODY */
    pthread_mutex_t mutex; /* guards what follows */
    iron__phase phase;
    const char *timeout_reason; /* NULL: it has not timed out */
    bool is_told;               /* a 408 was sent */
    uint64_t since_ns;          /* of the phase */
    uint64_t waited_ns;         /* for the client, in earlier phases of this request */
    uint64_t body_bytes;
    uint64_t received;           /* by the socket, when the last response began */
    uint64_t acked, acked_at_ns; /* the last progress of a response */
    int unsent;                  /* then */
} iron__connection;

/* A socket that the server listens on. */
typedef struct iron__listener {
    struct sockaddr_storage address;
    socklen_t address_bytes;
    bool is_loopback; /* no other machine can reach it */
    char host[64];    /* the address as text, without brackets; "" for a path */
    char url[128];    /* "http://127.0.0.1:8080", "unix:/run/iron.sock" */
    int fd;           /* -1: none */
} iron__listener;

/* libmicrohttpd with one certificate. */
typedef struct iron__daemon {
    struct MHD_Daemon *mhd;
    char *key, *cert; /* PEM; NULL without TLS */
} iron__daemon;

#define IRON_RETIRED_MAX 8u

struct iron_server {
    iron_server_options options; /* with every default filled in */
    uint64_t (*now_ns)(void);    /* the clock of all timeouts: iron__clock_ns, or a test's */
    uint32_t tick_ms;            /* how often timeouts are checked */

    iron__listener *listeners;
    size_t listener_count;
    bool is_loopback; /* all of them */

    pthread_mutex_t tokens_lock; /* guards the tokens and wrong tokens */
    iron__tokens *tokens;        /* NULL: none is needed */
    iron__guesses guesses;
    iron__tickets tickets;
    bool is_tls;
    char *report; /* --report, read at start; NULL: none */
    size_t report_bytes;

    iron_service service; /* zeros: there is no service manager */
    int notify_fd;        /* -1: not open */
    atomic_bool has_notify_failed;
    uint64_t loading_ns; /* when progress of opening the store was last reported */
    iron__worker reporter;
    char reported[400]; /* the last STATUS */

    iron__log *log;
    iron__store *store;
    iron__checker checker;
    iron__worker timeouts;
    iron__connection connected; /* head of the ring of all that libmicrohttpd serves; guarded by the
                                   mutex of timeouts */
    iron__acceptor *acceptor;
    pthread_mutex_t daemon_lock;            /* guards the two below, after the start */
    iron__daemon daemon;                    /* that serves new connections */
    iron__daemon retired[IRON_RETIRED_MAX]; /* with older certificates; mhd NULL: none */
    FILE *null_file;                        /* takes documents that there is no memory for */
    atomic_bool is_draining;                /* it will stop soon: /readyz says so */
    atomic_bool is_stopping;                /* no new requests */
    atomic_bool is_cutting; /* the grace period is over: bodies are refused, streams broken off */

    pthread_mutex_t keys_lock; /* guards the feeds with a key (route_feed.c) */
    struct feed_state *keyed;
    pthread_mutex_t parsing;             /* held while a large JSON body is parsed */
    atomic_uint_fast64_t document_bytes; /* reserved for large JSON bodies (request.c) */
    atomic_uint_fast64_t copied_bytes;   /* reserved for copies of nodes (route_state.c) */

    uint64_t started_ns, started_ms; /* monotonic, and since 1970 */
    double process_start;            /* seconds since 1970; 0: unknown */
    atomic_uint_fast64_t requests;
    atomic_uint_fast64_t responses[6];                 /* by class of the status: [2] is 2xx */
    atomic_uint_fast64_t problems[IRON_PROBLEM_COUNT]; /* responses that are problems, by row */
    atomic_uint_fast64_t bytes_in, bytes_out;          /* of bodies */
    atomic_uint_fast64_t refused_connections, dropped_connections, timed_out, malformed;
    iron__latency latency[IRON_ROUTES_MAX + 1]; /* by route; the last: of none */
    atomic_uint connections;
    atomic_uint strangers; /* requests in flight without a token, except probes */
    atomic_uint in_flight; /* requests whose header has arrived and that are not over */
};

/* Takes `bytes` of a budget; false, and nothing is taken, if less is left. A plain addition that is
 * undone would let a refused request refuse others in between. */
static inline bool iron__budget_take(atomic_uint_fast64_t *used, uint64_t bytes, uint64_t max) {
    uint_fast64_t now = atomic_load(used);

    do {
        if (bytes > max || now > max - bytes)
            return false;
    } while (!atomic_compare_exchange_weak(used, &now, now + bytes));
    return true;
}

/* Closes a file; was everything written? */
static inline bool iron__close_whole(FILE *to) {
    bool is_whole = !ferror(to);

    return fclose(to) == 0 && is_whole;
}

/* Counting (response.c) */

/* Counts a request, and returns a number that no other request to this server has. */
uint64_t iron__request_id(iron_server *server);
/* Counts how long a request took; route NULL: it reached none. */
void iron__count_latency(iron_server *server, const iron__route *route, uint64_t ns);

/* Connections (connections.c) */

/* That this thread serves; NULL: not known yet. */
extern _Thread_local iron__connection *iron__thread_connection;

/* Starts libmicrohttpd with the key and certificate of server->daemon, and everything that a
 * connection needs. */
iron_status iron__connections_start(iron_server *server, iron_error *err);
/* Accepts connections from now on. */
iron_status iron__connections_accept(iron_server *server, iron_error *err);
void iron__listeners_close(iron_server *server);
/* Stops libmicrohttpd, if it runs, and wipes the key. */
void iron__daemon_stop(iron__daemon *daemon);
/* Serves new connections with this key and certificate, which it takes if it succeeds. */
iron_status iron__connections_renew(iron_server *server, iron__daemon renewed, iron_error *err);
/* Requests in flight get the grace period, in which new ones are refused. Then no more connections
 * are accepted, those whose header is incomplete are closed, bodies are refused at their next
 * bytes, sockets are shut, and threads join. Of what was not started, nothing is stopped. */
void iron__connections_stop(iron_server *server);
/* Enters a phase; body_bytes of the body have arrived since the last one. False: it has timed out,
 * and nothing may be written to it. */
bool iron__connection_enter(const iron_server *server, iron__connection *c, iron__phase phase,
                            size_t body_bytes);

/* Closes a socket so that the client can read the last response. Closing one with unread bytes
 * resets it, and the client's system may then discard the response. So what arrives is discarded
 * until the client closes or two seconds have passed. Takes a non-blocking TCP socket, or a
 * duplicate of one that is still written to but no longer read. -1 is fine. Closes at once when 256
 * sockets are drained already. */
void iron__drain_socket(iron_server *server, int fd);

/* TLS (tls.c) */

/* Logs what is wrong with a certificate, of which `path` is the file. */
void iron__certificate_warn(const char *pem, const char *path, iron__log *log);
/* Makes the connection's thread set iron__thread_connection before it reads anything. */
void iron__tls_watch(iron__connection *c);
/* Sends bytes and ends the TLS session, in the connection's thread; false: they were not sent. */
bool iron__tls_send(const iron__connection *c, const char *bytes, size_t count);

/* Requests (request.c) */

/* Starts libmicrohttpd, which calls `notify` for connections that begin and end. */
iron_status iron__http_start(iron_server *server, MHD_NotifyConnectionCallback notify,
                             iron__daemon *daemon, iron_error *err);
/* A name or an address, with brackets around IPv6 and, where allowed, a port. */
bool iron__host_is_valid(iron__text host, bool may_have_port);

/* Responses (response.c) */

/* Sends the response, in the way that fits how much of the body was read; returns what
 * libmicrohttpd must be told. */
enum MHD_Result iron__response_send(iron__request *req);
/* Writes the response to the socket, which libmicrohttpd can only close from then on. Not under
 * TLS. */
void iron__response_send_raw(iron__request *req);
/* Makes a whole response that ends its connection, for connections.c to send, and counts it. From
 * malloc, NULL without memory; `head` is the length of its header. */
char *iron__raw_problem(iron_server *server, const iron__http_error *error, uint64_t id,
                        size_t *head, size_t *bytes);
void iron__response_free(iron__response *response);
void iron__response_error(iron__request *req, const iron__http_error *error);

#endif
