/* SPDX-License-Identifier: MIT */
/*
 * server.c: a server's options, its service manager, its listening socket, its start and its stop.
 *
 * The start begins with what can be refused quickly, then opens the store, which may take long, and
 * accepts connections last. The stop goes in the opposite order: no new requests and connections;
 * then connections.c ends the connections that are left; the store is closed when nothing uses it
 * any more.
 */
#include "server/server_internal.h"

#include "core/number.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define SECONDS_MAX      UINT32_C(1000000)
#define CONNECTIONS_MAX  UINT32_C(65536)
#define PEM_BYTES_MAX    ((size_t)1 << 20)
#define REPORT_BYTES_MAX ((size_t)64 << 20)
#define TICK_MS          100u
#define LOADING_NS       UINT64_C(1000000000) /* between two reports that the store is opening */
#define EXTENDED_US      30000000             /* that each of them asks for */
#define FIRST_DESCRIPTOR 3u
#define SEND_TIMEOUT_S   10
#define REPORT_NS        (2 * SECOND_NS)
#define REPORT_MIN_NS    UINT64_C(10000000)

/* Options */

static iron_status read_log_options(const iron_server_options *o, iron__log_options *log,
                                    iron_error *err) {
    static const char *const levels[] = {[IRON_LOG_DEBUG] = "debug",
                                         [IRON_LOG_INFO] = "info",
                                         [IRON_LOG_WARNING] = "warning",
                                         [IRON_LOG_ERROR] = "error"};
    size_t k = 0;

    IRON_FAIL_IF(strcmp(o->log, "text") != 0 && strcmp(o->log, "json") != 0, err, IRON_E_ARG,
                 "unknown log format '%.40s'; use text or json", o->log);
    while (k < sizeof levels / sizeof levels[0] && strcmp(o->log_level, levels[k]) != 0)
        k++;
    IRON_FAIL_IF(k == sizeof levels / sizeof levels[0], err, IRON_E_ARG,
                 "unknown log level '%.40s'; use debug, info, warning or error", o->log_level);
    *log = (iron__log_options){
        .fd = STDERR_FILENO, .is_json = strcmp(o->log, "json") == 0, .level = (iron__log_level)k};
    return IRON_OK;
}

static void fill(uint32_t *value, uint32_t otherwise) { *value = *value ? *value : otherwise; }

/* Fills in defaults, and checks. */
static iron_status init_options(iron_server *server, const iron_server_options *given,
                                iron_error *err) {
    static const char *const default_listens[] = {"127.0.0.1:8080"};
    iron_server_options *o = &server->options;

    IRON_FAIL_IF(given->struct_size == 0 || given->struct_size > sizeof *o, err, IRON_E_ARG,
                 "iron_server_options.struct_size is %u, this library supports %zu",
                 given->struct_size, sizeof *o);
    memcpy(o, given, given->struct_size);
    if (o->service)
        server->service = *o->service;
    IRON_FAIL_IF(
        server->service.listen_fd && o->listen_count, err, IRON_E_ARG,
        "listen '%.80s': a socket was passed already (LISTEN_FDS); leave --listen out, and "
        "write the address into the socket unit (ListenStream=)",
        o->listens[0]);
    if (o->listen_count == 0) {
        o->listens = default_listens;
        o->listen_count = 1;
    }
    o->data = o->data ? o->data : "iron-data";
    o->log = o->log ? o->log : "text";
    o->log_level = o->log_level ? o->log_level : "info";
    fill(&o->max_engines, 256);
    fill(&o->max_connections, 512);
    fill(&o->max_per_address, 256);
    fill(&o->max_uploads, 64);
    fill(&o->header_seconds, 15);
    fill(&o->request_seconds, 3600);
    fill(&o->grace_seconds, 10);
    o->max_body = o->max_body ? o->max_body : (uint64_t)1 << 40;
    o->max_run = o->max_run ? o->max_run : (uint64_t)256 << 20;
    o->min_body_rate = o->min_body_rate ? o->min_body_rate : 1024;
    IRON_FAIL_IF(o->header_seconds > SECONDS_MAX || o->request_seconds > SECONDS_MAX ||
                     o->grace_seconds > SECONDS_MAX || o->drain_seconds > SECONDS_MAX,
                 err, IRON_E_ARG, "a timeout is longer than %u seconds", SECONDS_MAX);
    IRON_FAIL_IF(o->max_connections > CONNECTIONS_MAX, err, IRON_E_ARG,
                 "%u connections are too many: at most %u", o->max_connections, CONNECTIONS_MAX);
    IRON_FAIL_IF(o->max_body > INT64_MAX, err, IRON_E_ARG,
                 "the limit of a body must be below 2^63");
    IRON_FAIL_IF(!o->tls_cert != !o->tls_key, err, IRON_E_ARG,
                 "TLS needs both a certificate and its key");
    for (size_t k = 0; k < o->host_count; k++)
        IRON_FAIL_IF(!iron__host_is_valid(iron__text_of(o->hosts[k]), false), err, IRON_E_ARG,
                     "host '%.80s' is not a name (without a port)", o->hosts[k]);
    return IRON_OK;
}

/* The service manager: systemd's protocol, which other service managers speak too; it needs no
 * library.
 *
 * At start the environment is read:
 *
 *     LISTEN_PID, LISTEN_FDS    sockets from descriptor 3 on, if the PID is this process
 *     NOTIFY_SOCKET             a datagram socket: a path, or @ and an abstract name
 *     WATCHDOG_USEC, _PID       period of the signs of life, if the PID is this process
 *
 * All variables are removed from the environment: they are not for child processes. Variables for
 * another process are ignored, as the protocol requires.
 *
 * Later, messages go to the notify socket ("READY=1", "STATUS=...", "WATCHDOG=1"). Sending waits
 * for room, since a manager that misses a message would wait for good; but not for ever, since a
 * manager that hangs must not hang the server. A failure is logged once and does not stop the
 * server.
 *
 * The reporter is a thread that reports a changed status and, if the manager wants it, a regular
 * sign of life. That is withheld while the store's writer is busy with one piece of work for longer
 * than the manager's watchdog period: so a disk that no longer responds makes the manager restart
 * the process. */

/* The number in a variable, or `otherwise` if it is not set. */
static iron_status read_variable(const char *name, uint64_t otherwise, uint64_t *number,
                                 iron_error *err) {
    const char *text = getenv(name);

    *number = otherwise;
    IRON_FAIL_IF(text && !iron__text_number(iron__text_of(text), number), err, IRON_E_ARG,
                 "the variable %s is '%.40s', which is not a number; unset it, or let the service "
                 "manager set it",
                 name, text);
    return IRON_OK;
}

static iron_status read_service(iron_service *service, iron_error *err) {
    uint64_t self = (uint64_t)getpid(), process, count;
    const char *address = getenv("NOTIFY_SOCKET");

    IRON_TRY(read_variable("LISTEN_PID", 0, &process, err));
    IRON_TRY(read_variable("LISTEN_FDS", 0, &count, err));
    count = process == self ? count : 0;
    IRON_FAIL_IF(count > 1, err, IRON_E_ARG,
                 "%llu sockets were passed (LISTEN_FDS); a server listens on one: leave one "
                 "ListenStream= in the socket unit",
                 (unsigned long long)count);
    service->listen_fd = count ? FIRST_DESCRIPTOR : 0;
    if (address && address[0]) {
        IRON_FAIL_IF(address[0] != '/' && address[0] != '@', err, IRON_E_ARG,
                     "the variable NOTIFY_SOCKET is '%.80s', which is neither a path nor @ and a "
                     "name; unset it",
                     address);
        IRON_FAIL_IF(strlen(address) >= sizeof((struct sockaddr_un *)NULL)->sun_path, err,
                     IRON_E_ARG,
                     "the variable NOTIFY_SOCKET has %zu bytes, too many for a socket's name; "
                     "unset it",
                     strlen(address));
        snprintf(service->notify, sizeof service->notify, "%s", address);
    }
    IRON_TRY(read_variable("WATCHDOG_PID", self, &process, err));
    IRON_TRY(read_variable("WATCHDOG_USEC", 0, &service->watchdog_us, err));
    if (process != self)
        service->watchdog_us = 0;
    return IRON_OK;
}

iron_status iron_service_take(iron_service *service, iron_error *err) {
    static const char *const names[] = {"LISTEN_PID",    "LISTEN_FDS",    "LISTEN_FDNAMES",
                                        "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};
    iron_status status;

    *service = (iron_service){.struct_size = sizeof *service};
    status = read_service(service, err);
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        unsetenv(names[k]);
    return status;
}

/* Sends lines of NAME=VALUE; does nothing if there is no service manager. */
__attribute__((format(printf, 2, 3))) static void notify(iron_server *server, const char *format,
                                                         ...) {
    const iron_service *service = &server->service;
    const struct timeval timeout = {.tv_sec = SEND_TIMEOUT_S};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t address_bytes;
    char text[600];
    va_list values;
    int bytes;

    if (!service->notify[0])
        return;
    if (server->notify_fd < 0) {
        server->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        (void)setsockopt(server->notify_fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    }
    va_start(values, format);
    bytes = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (bytes < 0)
        return;
    if ((size_t)bytes >= sizeof text)
        bytes = sizeof text - 1;
    address_bytes = strlen(service->notify);
    memcpy(address.sun_path, service->notify, address_bytes);
    if (address.sun_path[0] == '@') /* an abstract name begins with a NUL */
        address.sun_path[0] = '\0';
    address_bytes += offsetof(struct sockaddr_un, sun_path);
    if (sendto(server->notify_fd, text, (size_t)bytes, MSG_NOSIGNAL, (struct sockaddr *)&address,
               (socklen_t)address_bytes) < 0 &&
        !atomic_exchange(&server->has_notify_failed, true))
        iron__note(server->log, "cannot notify the service manager at %s: %s", service->notify,
                   strerror(errno));
}

/* The watchdog's period; 0: no signs of life are wanted. */
static uint64_t watchdog_ns(const iron_server *server) {
    uint64_t us = server->service.watchdog_us;

    return us < UINT64_MAX / 1000 ? us * 1000 : 0;
}

/* Reports the status if it has changed, with `first` before it, and a sign of life. */
static void report(iron_server *server, const char *first) {
    iron__store_counts counts;
    size_t engines = iron__store_list(server->store, NULL, 0);
    bool is_well;
    char text[sizeof server->reported];
    iron_error why = {0};

    iron__store_count(server->store, &counts, NULL);
    is_well = watchdog_ns(server) == 0 || counts.busy_ns < watchdog_ns(server);
    if (iron__store_failure(server->store, &why) != IRON_OK)
        snprintf(text, sizeof text, "read-only: %s", why.text);
    else if (iron__store_full(server->store, &why) != IRON_OK)
        snprintf(text, sizeof text, "no feeds: %s", why.text);
    else if (!is_well)
        snprintf(text, sizeof text, "the disk has not responded for %" PRIu64 " s",
                 counts.busy_ns / SECOND_NS);
    else
        snprintf(text, sizeof text, "serving %s, %zu engine%s", iron_server_url(server), engines,
                 engines == 1 ? "" : "s");
    if (strcmp(text, server->reported) != 0) {
        notify(server, "%sSTATUS=%s", first, text);
        memcpy(server->reported, text, sizeof text);
    }
    if (is_well && watchdog_ns(server))
        notify(server, "WATCHDOG=1");
}

static void *run_reporter(void *context) {
    iron_server *server = context;
    iron__worker *w = &server->reporter;
    uint64_t period_ns = REPORT_NS;

    if (watchdog_ns(server))
        period_ns = iron__min(period_ns, iron__max(watchdog_ns(server) / 3, REPORT_MIN_NS));
    pthread_mutex_lock(&w->mutex);
    while (!w->is_over) {
        struct timespec until = iron__deadline_after(period_ns);

        while (!w->is_over && pthread_cond_timedwait(&w->wake, &w->mutex, &until) != ETIMEDOUT)
            continue;
        if (w->is_over)
            break;
        pthread_mutex_unlock(&w->mutex);
        report(server, "");
        pthread_mutex_lock(&w->mutex);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

/* Threads */

iron_status iron__worker_start(iron__worker *worker, void *(*run)(void *context), void *context,
                               iron_error *err) {
    int number;

    pthread_mutex_init(&worker->mutex, NULL);
    iron__condition_init(&worker->wake);
    number = pthread_create(&worker->thread, NULL, run, context);
    worker->is_running = number == 0;
    if (worker->is_running)
        return IRON_OK;
    pthread_cond_destroy(&worker->wake);
    pthread_mutex_destroy(&worker->mutex);
    return iron__fail(err, IRON_E_NOMEM, number, "cannot start a thread: %s", strerror(number));
}

void iron__worker_stop(iron__worker *worker) {
    if (!worker->is_running)
        return;
    pthread_mutex_lock(&worker->mutex);
    worker->is_over = true;
    pthread_cond_broadcast(&worker->wake);
    pthread_mutex_unlock(&worker->mutex);
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->wake);
    pthread_mutex_destroy(&worker->mutex);
    worker->is_running = false;
}

/* Listening sockets: "127.0.0.1:8080", "[::1]:0", "localhost:8080", "unix:/run/iron.sock", or one
 * that was passed */

#define UNIX_PREFIX "unix:"

/* The port, which is in the same place in both families. */
static in_port_t *port_of(iron__listener *l) {
    return &((struct sockaddr_in *)&l->address)->sin_port;
}
static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
              "port_of");

/* Names are not looked up, except localhost, which is 127.0.0.1. */
static iron_status parse_address(iron__listener *l, const char *text, iron_error *err) {
    struct sockaddr *any = (struct sockaddr *)&l->address;
    struct sockaddr_un *un = (struct sockaddr_un *)&l->address;
    const char *colon = strrchr(text, ':'), *digits = colon ? colon + 1 : "";
    const char *path = text + strlen(UNIX_PREFIX);
    bool is_v6 = text[0] == '[';
    size_t bytes = colon ? (size_t)(colon - text) : 0, count = strlen(digits);
    unsigned long port;

    *l = (iron__listener){.fd = -1};
    if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0) {
        IRON_FAIL_IF(!*path || strlen(path) >= sizeof un->sun_path, err, IRON_E_ARG,
                     "listen '%.120s': a path of 1 to %zu bytes follows " UNIX_PREFIX, text,
                     sizeof un->sun_path - 1);
        l->address_bytes = sizeof *un;
        l->is_loopback = true;
        un->sun_family = AF_UNIX;
        memcpy(un->sun_path, path, strlen(path) + 1);
        return IRON_OK;
    }
    IRON_FAIL_IF(!colon || bytes == 0 || (is_v6 && (bytes < 2 || text[bytes - 1] != ']')), err,
                 IRON_E_ARG, "listen '%s': write ADDRESS:PORT or [ADDRESS]:PORT", text);
    IRON_FAIL_IF(count == 0 || count > 5 || strspn(digits, "0123456789") != count, err, IRON_E_ARG,
                 "listen '%s': '%s' is not a port; write ADDRESS:PORT, as in 127.0.0.1:8080", text,
                 digits);
    port = strtoul(digits, NULL, 10);
    IRON_FAIL_IF(port > 65535, err, IRON_E_ARG, "listen '%s': ports end at 65535", text);
    bytes -= is_v6 ? 2 : 0;
    IRON_FAIL_IF(bytes >= sizeof l->host, err, IRON_E_ARG, "listen '%s': invalid address", text);
    memcpy(l->host, text + (is_v6 ? 1 : 0), bytes);
    l->host[bytes] = '\0';
    if (!is_v6 && strcmp(l->host, "localhost") == 0)
        snprintf(l->host, sizeof l->host, "127.0.0.1");
    any->sa_family = is_v6 ? AF_INET6 : AF_INET;
    l->address_bytes = is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    *port_of(l) = htons((in_port_t)port);
    IRON_FAIL_IF(inet_pton(any->sa_family, l->host, (void *)(uintptr_t)iron__address_bytes(any)) !=
                     1,
                 err, IRON_E_ARG,
                 "listen '%s': invalid address; names are not looked up: write 0.0.0.0:PORT or "
                 "[::]:PORT for every address",
                 text);
    l->is_loopback = iron__is_loopback(any->sa_family, iron__address_bytes(any));
    return IRON_OK;
}

/* Takes over the address of a socket that was passed, which must be a listening stream socket of
 * IPv4 or IPv6, and makes it non-blocking. The socket stays the caller's if it is refused. */
static iron_status adopt_socket(iron__listener *l, int fd, iron_error *err) {
    struct sockaddr *any = (struct sockaddr *)&l->address;
    int type = 0, accepts = 0, flags, family;
    socklen_t type_bytes = sizeof type, accepts_bytes = sizeof accepts;

    l->fd = -1;
    l->address_bytes = sizeof l->address;
    if (getsockname(fd, any, &l->address_bytes) != 0)
        return iron__fail(err, IRON_E_ARG, errno,
                          "descriptor %d was passed (LISTEN_FDS), but is not a socket: %s", fd,
                          strerror(errno));
    family = l->address.ss_family;
    IRON_FAIL_IF(family == AF_UNIX, err, IRON_E_ARG,
                 "the socket that was passed is a file system socket; give an address and a port "
                 "to ListenStream=, as in 127.0.0.1:8080");
    IRON_FAIL_IF(family != AF_INET && family != AF_INET6, err, IRON_E_ARG,
                 "the socket that was passed has family %d, neither IPv4 nor IPv6", family);
    IRON_FAIL_IF(
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes) != 0 || type != SOCK_STREAM ||
            getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &accepts_bytes) != 0 || !accepts,
        err, IRON_E_ARG,
        "the socket that was passed does not listen for connections; use ListenStream= "
        "and Accept=no in the socket unit");
    flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot use descriptor %d: %s", fd,
                          strerror(errno));
    l->is_loopback = iron__is_loopback(family, iron__address_bytes(any));
    inet_ntop(family, iron__address_bytes(any), l->host, sizeof l->host);
    return IRON_OK;
}

static void write_url(iron__listener *l, bool is_tls) {
    bool is_v6 = l->address.ss_family == AF_INET6;

    if (l->address.ss_family == AF_UNIX)
        snprintf(l->url, sizeof l->url, UNIX_PREFIX "%s",
                 ((const struct sockaddr_un *)&l->address)->sun_path);
    else
        snprintf(l->url, sizeof l->url, "http%s://%s%s%s:%u", is_tls ? "s" : "", is_v6 ? "[" : "",
                 l->host, is_v6 ? "]" : "", (unsigned)ntohs(*port_of(l)));
}

/* Removes the socket of a server that no longer listens there. */
static void remove_stale(const iron__listener *l) {
    const char *path = ((const struct sockaddr_un *)&l->address)->sun_path;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct stat info;

    if (fd >= 0 && lstat(path, &info) == 0 && S_ISSOCK(info.st_mode) &&
        connect(fd, (const struct sockaddr *)&l->address, l->address_bytes) != 0 &&
        errno == ECONNREFUSED)
        (void)unlink(path);
    if (fd >= 0)
        close(fd);
}

/* Opens the listening socket, or takes the one that was passed (0: none); fills in port and URL. A
 * path can be used by the server's user and group, as far as its umask allows. */
static iron_status open_socket(iron__listener *l, int passed, bool is_tls, iron_error *err) {
    struct sockaddr *address = (struct sockaddr *)&l->address;
    int family = address->sa_family, number;
    const int yes = 1, no = 0;
    bool is_good = passed;

    l->fd = passed;
    if (!passed) {
        l->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (l->fd >= 0 && family == AF_UNIX)
            remove_stale(l);
        is_good = l->fd >= 0 &&
                  (family == AF_UNIX
                       ? fchmod(l->fd, 0660)
                       : setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes)) == 0 &&
                  (family != AF_INET6 ||
                   setsockopt(l->fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) == 0) &&
                  bind(l->fd, address, l->address_bytes) == 0 && listen(l->fd, 1024) == 0 &&
                  getsockname(l->fd, address, &l->address_bytes) == 0;
    }
    number = errno;
    write_url(l, is_tls);
    if (is_good)
        return IRON_OK;
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1; /* so that the path of another server stays */
    return iron__fail(err, IRON_E_IO, number, "cannot listen on %s: %s%s", l->url, strerror(number),
                      number == EADDRINUSE && l->host[0] ? "; choose another port, or 0 for any"
                                                         : "");
}

/* Start */

/* A connection takes one descriptor, and a second one while it ends; the rest is for everything
 * else. Where the system allows too few, the number of connections is reduced so that others can
 * still be refused, which takes a descriptor too. */
static void raise_descriptor_limit(iron_server *server) {
    uint32_t *connections = &server->options.max_connections;
    rlim_t need = (rlim_t)*connections + 1024;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return;
    limit.rlim_cur = limit.rlim_max < need ? limit.rlim_max : need;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 2 >= *connections)
        return;
    *connections = limit.rlim_cur > 2 ? (uint32_t)(limit.rlim_cur / 2) : 1;
    iron__note(server->log,
               "the system allows this process %llu descriptors (ulimit -n): serving %u "
               "connections at once",
               (unsigned long long)limit.rlim_cur, *connections);
}

/* Reads tokens, key and certificate, which the caller frees; what is not needed stays NULL. */
static iron_status read_secrets(const iron_server *server, iron__tokens **tokens,
                                iron__daemon *pair, iron_error *err) {
    const iron_server_options *o = &server->options;
    size_t bytes;

    if (o->token_file)
        IRON_TRY(iron__tokens_read(o->token_file, server->log, tokens, err));
    if (o->tls_cert) {
        IRON_TRY(iron__small_file_read(o->tls_cert, "certificate", PEM_BYTES_MAX, false,
                                       &pair->cert, &bytes, err));
        IRON_TRY(iron__small_file_read(o->tls_key, "TLS key", PEM_BYTES_MAX, true, &pair->key,
                                       &bytes, err));
        iron__certificate_warn(pair->cert, o->tls_cert, server->log);
    }
    return IRON_OK;
}

iron_status iron_server_reload(iron_server *server, iron_error *err) {
    iron__tokens *tokens = NULL, *old;
    iron__daemon pair = {0};
    iron_error why = {0};
    iron_status status = read_secrets(server, &tokens, &pair, &why);

    if (status == IRON_OK && server->is_tls &&
        (strcmp(pair.key, server->daemon.key) != 0 ||
         strcmp(pair.cert, server->daemon.cert) != 0)) {
        status = iron__connections_renew(server, pair, &why);
        if (status == IRON_OK)
            pair = (iron__daemon){0};
    }
    if (status == IRON_OK) {
        pthread_mutex_lock(&server->tokens_lock);
        old = server->tokens;
        server->tokens = tokens;
        pthread_mutex_unlock(&server->tokens_lock);
        tokens = old;
        iron__log_event(server->log, IRON_LOG_INFO, "reload", NULL,
                        "tokens and certificate were read again");
    } else {
        iron__log_event(server->log, IRON_LOG_ERROR, "reload", NULL,
                        "the old tokens and certificate stay in use: %s", why.text);
    }
    iron__tokens_destroy(tokens);
    iron__daemon_stop(&pair);
    if (err)
        *err = why;
    return status;
}

/* The store is opening: once a second, reports progress and asks for half a minute more. */
static void report_loading(void *context, const iron__store_loading *loading) {
    iron_server *server = context;
    uint64_t now = iron__clock_ns();

    if (server->loading_ns && now - server->loading_ns < LOADING_NS)
        return;
    server->loading_ns = now;
    if (!loading->engine)
        notify(server, "STATUS=inspecting the database\nEXTEND_TIMEOUT_USEC=%d", EXTENDED_US);
    else
        notify(server,
               "STATUS=replaying engine %s (%zu of %zu), %" PRIu64
               " batches so far\nEXTEND_TIMEOUT_USEC=%d",
               loading->engine, loading->number, loading->engines, loading->batches, EXTENDED_US);
}

static void note_of_store(void *context, const char *sentence) {
    iron__note(((iron_server *)context)->log, "%s", sentence);
}

static double clock_seconds(clockid_t clock) {
    struct timespec now;

    return clock_gettime(clock, &now) == 0 ? (double)now.tv_sec + (double)now.tv_nsec * 1e-9 : 0;
}

/* When the process was started, in seconds since 1970; 0 if /proc does not tell. Read once, since
 * the result changes with every correction of the clock. */
static double read_process_start(void) {
    FILE *from = fopen("/proc/self/stat", "re");
    long hertz = sysconf(_SC_CLK_TCK);
    unsigned long long ticks = 0;
    char text[1024] = "";
    const char *at;

    if (!from)
        return 0;
    text[fread(text, 1, sizeof text - 1, from)] = '\0';
    fclose(from);
    at = strrchr(text, ')'); /* ends field 2, the process name, which may contain anything */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    /* field 22: ticks between the start of the machine and that of the process */
    if (!at || sscanf(at, "%llu", &ticks) != 1 || ticks == 0 || hertz <= 0) // NOLINT(cert-err34-c)
        return 0;
    return clock_seconds(CLOCK_REALTIME) - clock_seconds(CLOCK_BOOTTIME) +
           (double)ticks / (double)hertz;
}

static iron_status start(iron_server *server, const iron_server_options *given, iron_error *err) {
    iron_server_options *o = &server->options;
    iron__store_options store = {
        .loading = report_loading, .note = note_of_store, .context = server};
    iron__log_options log;
    struct stat info;
    uint64_t engines;
    int passed;                     /* 0: none */
    const char *public_host = NULL; /* the first address that other machines can reach */

    IRON_TRY(init_options(server, given, err));
    passed = (int)server->service.listen_fd;
    IRON_TRY(read_log_options(o, &log, err));
    IRON_TRY(iron__log_open(&log, &server->log, err));
    const iron__log_member started[] = {
        {.name = "version", .text = iron_version()},
        {.name = "pid", .number = (uint64_t)getpid()},
        {.name = "listen", .text = passed ? "a socket that was passed" : o->listens[0]},
        {0},
    };
    iron__log_event(server->log, IRON_LOG_INFO, "start", started, NULL);
    server->listeners = calloc(o->listen_count, sizeof *server->listeners);
    IRON_FAIL_IF(!server->listeners, err, IRON_E_NOMEM, "out of memory for listening sockets");
    for (; server->listener_count < o->listen_count; server->listener_count++) {
        iron__listener *l = &server->listeners[server->listener_count];

        IRON_TRY(passed ? adopt_socket(l, passed, err)
                        : parse_address(l, o->listens[server->listener_count], err));
        if (!l->is_loopback && !public_host)
            public_host = l->host;
    }
    server->is_loopback = !public_host;
    server->is_tls = o->tls_cert != NULL;
    IRON_FAIL_IF(!server->is_loopback && !o->token_file, err, IRON_E_ARG,
                 "listen '%s': an address that others can reach needs a token file (--token-file)",
                 public_host);
    IRON_TRY(read_secrets(server, &server->tokens, &server->daemon, err));
    if (!server->is_loopback && !server->is_tls)
        iron__note(server->log,
                   "others can reach %s without TLS: the token and all data can be read on their "
                   "way",
                   public_host);
    if (o->report)
        IRON_TRY(iron__small_file_read(o->report, "report", REPORT_BYTES_MAX, false,
                                       &server->report, &server->report_bytes, err));
    server->null_file = fopen("/dev/null", "w");
    IRON_FAIL_IF(!server->null_file, err, IRON_E_IO, "cannot open /dev/null");
    raise_descriptor_limit(server);
    for (size_t k = 0; k < server->listener_count; k++)
        IRON_TRY(open_socket(&server->listeners[k], passed, server->is_tls, err));
    IRON_TRY(iron__connections_start(server, err));
    store.directory = o->data;
    store.engines_max = o->max_engines;
    store.uploads_max = o->max_uploads;
    store.keep_batches = o->keep_batches;
    store.run_bytes_max = o->max_run;
    store.keep_keys_ms = o->keep_keys * 1000;
    store.accept_loss = o->accept_loss;
    store.reserve_bytes = o->reserve ? o->reserve : IRON_RESERVE_AUTO;
    IRON_TRY(iron__store_open(&store, &server->store, err));
    IRON_TRY(iron__checker_start(server, err));
    if (stat(o->data, &info) == 0 && (info.st_mode & S_IWOTH)) /* and can replace the database */
        iron__note(server->log, "every user can write to the data directory %s: chmod o-w it",
                   o->data);
    server->started_ns = iron__clock_ns();
    server->started_ms = iron__now_ms();
    server->process_start = read_process_start();
    IRON_TRY(iron__connections_accept(server, err));
    if (server->service.notify[0]) {
        report(server, "READY=1\n");
        IRON_TRY(iron__worker_start(&server->reporter, run_reporter, server, err));
    }
    engines = iron_server_engines(server);
    for (size_t k = 1; k < server->listener_count; k++)
        iron__log_event(
            server->log, IRON_LOG_INFO, "listen",
            (iron__log_member[]){{.name = "url", .text = server->listeners[k].url}, {0}},
            "listening on %s too", server->listeners[k].url);
    iron__log_event(server->log, IRON_LOG_INFO, "ready",
                    (iron__log_member[]){{.name = "url", .text = iron_server_url(server)},
                                         {.name = "data", .text = o->data},
                                         {.name = "engines", .number = engines},
                                         {0}},
                    "serving %s, data in %s, %" PRIu64 " engine%s", iron_server_url(server),
                    o->data, engines, engines == 1 ? "" : "s");
    return IRON_OK;
}

static void destroy(iron_server *server) {
    iron__worker_stop(&server->reporter);
    iron__connections_stop(server);
    iron__listeners_close(server);
    free(server->listeners);
    iron__checker_stop(server);
    if (server->store)
        iron__store_close(server->store);
    if (server->notify_fd >= 0)
        close(server->notify_fd);
    if (server->null_file)
        fclose(server->null_file);
    free(server->report);
    iron__log_close(server->log);
    iron__tokens_destroy(server->tokens);
    pthread_mutex_destroy(&server->tokens_lock);
    pthread_mutex_destroy(&server->daemon_lock);
    pthread_mutex_destroy(&server->tickets.lock);
    pthread_mutex_destroy(&server->parsing);
    pthread_mutex_destroy(&server->checker.comparing);
    pthread_mutex_destroy(&server->keys_lock);
    explicit_bzero(server, sizeof *server); /* tickets */
    free(server);
}

/* now_ns is the clock of all timeouts, which are checked every tick_ms. */
static iron_status start_with_clock(const iron_server_options *options, uint64_t (*now_ns)(void),
                                    uint32_t tick_ms, iron_server **out, iron_error *err) {
    iron_error why = {0};
    iron_server *server;
    iron_status status;

    *out = NULL;
    IRON_FAIL_IF(!options, err, IRON_E_ARG, "a server needs options");
    server = calloc(1, sizeof *server);
    IRON_FAIL_IF(!server, err, IRON_E_NOMEM, "out of memory for the server");
    pthread_mutex_init(&server->parsing, NULL);
    pthread_mutex_init(&server->checker.comparing, NULL);
    pthread_mutex_init(&server->keys_lock, NULL);
    pthread_mutex_init(&server->tickets.lock, NULL);
    pthread_mutex_init(&server->tokens_lock, NULL);
    if (getentropy(&server->guesses.seed, sizeof server->guesses.seed) != 0)
        server->guesses.seed = now_ns();
    pthread_mutex_init(&server->daemon_lock, NULL);
    server->notify_fd = -1;
    server->now_ns = now_ns;
    server->tick_ms = tick_ms;
    status = start(server, options, &why);
    if (status == IRON_OK) {
        *out = server;
        return IRON_OK;
    }
    notify(server, "STATUS=refused: %s", why.text);
    destroy(server);
    if (err)
        *err = why;
    return status;
}

iron_status iron_server_start(const iron_server_options *options, iron_server **out,
                              iron_error *err) {
    return start_with_clock(options, iron__clock_ns, TICK_MS, out, err);
}

const char *iron_server_url(const iron_server *server) { return server->listeners[0].url; }

uint64_t iron_server_engines(const iron_server *server) {
    return iron__store_list(server->store, NULL, 0);
}

iron_status iron_server_stop(iron_server *server, iron_error *err) {
    iron_status status;
    uint64_t until_ns;

    if (!server)
        return IRON_OK;
    iron__log_event(server->log, IRON_LOG_INFO, "stop", NULL, "stopping");
    iron__worker_stop(&server->reporter);
    notify(server, "STOPPING=1\nSTATUS=stopping: requests in flight have %u s",
           server->options.drain_seconds + server->options.grace_seconds);
    /* serves on while load balancers learn from /readyz that they must send requests elsewhere */
    until_ns = server->now_ns() + server->options.drain_seconds * SECOND_NS;
    atomic_store(&server->is_draining, true);
    while (server->now_ns() < until_ns)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    atomic_store(&server->is_stopping, true);
    iron__store_stop(server->store);
    iron__connections_stop(server);
    status = iron__store_failure(server->store, err);
    destroy(server);
    return status;
}

bool iron_server_complain(const iron_server_options *options, const iron_error *error) {
    iron_server_options filled = {.log = options->log ? options->log : "text",
                                  .log_level = options->log_level ? options->log_level : "info"};
    iron__log_options log_options;
    iron__log *log;

    if (read_log_options(&filled, &log_options, NULL) != IRON_OK ||
        iron__log_open(&log_options, &log, NULL) != IRON_OK)
        return false;
    iron__log_event(log, IRON_LOG_ERROR, "error", NULL, "%s", error->text);
    iron__log_close(log);
    return true;
}
