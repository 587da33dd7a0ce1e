/* SPDX-License-Identifier: MIT */
/*
 * tls.c: what the server asks of GnuTLS itself: warnings of a certificate that clients refuse, or
 * should, and a response in place of libmicrohttpd's.
 *
 * libmicrohttpd brings GnuTLS with it, whose functions are looked up in this process. Where its
 * header was not installed, or libmicrohttpd has no TLS, nothing is checked or sent.
 */
#include "server/server_internal.h"

#if __has_include(<gnutls/x509.h>)

#include <dlfcn.h>
#include <gnutls/x509.h>
#include <poll.h>

#define SEND_MS 1000 /* that a client may take to read on */

/* The functions that are used, without their common prefix. */
#define FUNCTIONS(X)                                                                               \
    X(x509_crt_init)                                                                               \
    X(x509_crt_deinit)                                                                             \
    X(x509_crt_import)                                                                             \
    X(x509_crt_get_activation_time)                                                                \
    X(x509_crt_get_expiration_time)                                                                \
    X(x509_crt_get_pk_algorithm)                                                                   \
    X(x509_crt_get_signature_algorithm)                                                            \
    X(pk_bits_to_sec_param)                                                                        \
    X(sign_is_secure)                                                                              \
    X(transport_set_ptr2)                                                                          \
    X(transport_set_pull_function)                                                                 \
    X(record_send)                                                                                 \
    X(bye)

typedef struct library {
#define MEMBER(name) __typeof__(gnutls_##name) *name; // NOLINT(bugprone-macro-parentheses)
    FUNCTIONS(MEMBER)
#undef MEMBER
} library;

static bool find_library(library *gnutls) {
    bool is_found = true;

#define FIND(name)                                                                                 \
    {                                                                                              \
        void *symbol = dlsym(RTLD_DEFAULT, "gnutls_" #name);                                       \
        memcpy(&gnutls->name, &symbol, sizeof symbol); /* ISO C has no cast for it */              \
        is_found = is_found && symbol;                                                             \
    }
    FUNCTIONS(FIND)
#undef FIND
    return is_found;
}

static void check(const library *gnutls, gnutls_x509_crt_t cert, const char *path, iron__log *log) {
    time_t now = time(NULL);
    int algorithm, signature = gnutls->x509_crt_get_signature_algorithm(cert);
    unsigned bits = 0;

    if (gnutls->x509_crt_get_expiration_time(cert) < now)
        iron__note(log, "certificate %s has expired: clients refuse it", path);
    if (gnutls->x509_crt_get_activation_time(cert) > now)
        iron__note(log, "certificate %s is not valid yet: clients refuse it", path);
    algorithm = gnutls->x509_crt_get_pk_algorithm(cert, &bits);
    if (algorithm >= 0 && gnutls->pk_bits_to_sec_param((gnutls_pk_algorithm_t)algorithm, bits) <
                              GNUTLS_SEC_PARAM_MEDIUM)
        iron__note(log, "certificate %s has a weak key of %u bits", path, bits);
    if (signature >= 0 && !gnutls->sign_is_secure((gnutls_sign_algorithm_t)signature))
        iron__note(log, "certificate %s has a weak signature", path);
}

void iron__certificate_warn(const char *pem, const char *path, iron__log *log) {
    gnutls_datum_t text = {(unsigned char *)(uintptr_t)pem, (unsigned)strlen(pem)};
    gnutls_x509_crt_t cert;
    library gnutls;

    if (!find_library(&gnutls) || gnutls.x509_crt_init(&cert) != GNUTLS_E_SUCCESS)
        return;
    if (gnutls.x509_crt_import(cert, &text, GNUTLS_X509_FMT_PEM) == GNUTLS_E_SUCCESS)
        check(&gnutls, cert, path, log);
    gnutls.x509_crt_deinit(cert);
}

static gnutls_session_t session_of(const iron__connection *c) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);

    return info ? info->tls_session : NULL;
}

/* As GnuTLS reads itself. */
static ssize_t pull(gnutls_transport_ptr_t c, void *room, size_t bytes) {
    iron__thread_connection = c;
    return recv(iron__thread_connection->fd, room, bytes, 0);
}

void iron__tls_watch(iron__connection *c) {
    gnutls_session_t session = session_of(c);
    library gnutls;

    if (!session || !find_library(&gnutls))
        return;
    gnutls.transport_set_ptr2(session, c, (gnutls_transport_ptr_t)(intptr_t)c->fd);
    gnutls.transport_set_pull_function(session, pull);
}

bool iron__tls_send(const iron__connection *c, const char *bytes, size_t count) {
    gnutls_session_t session = session_of(c);
    library gnutls;
    ssize_t sent = 0;

    if (!session || !find_library(&gnutls))
        return false;
    for (; count > 0; bytes += sent, count -= (size_t)sent) {
        struct pollfd ready = {.fd = c->fd, .events = POLLOUT};

        do
            sent = gnutls.record_send(session, bytes, count);
        while (sent == GNUTLS_E_INTERRUPTED ||
               (sent == GNUTLS_E_AGAIN && poll(&ready, 1, SEND_MS) > 0));
        if (sent <= 0)
            return false;
    }
    (void)gnutls.bye(session, GNUTLS_SHUT_WR);
    return true;
}

#else

void iron__tls_watch(iron__connection *c) { (void)c; }

bool iron__tls_send(const iron__connection *c, const char *bytes, size_t count) {
    (void)c;
    (void)bytes;
    return count == 0;
}

void iron__certificate_warn(const char *pem, const char *path, iron__log *log) {
    (void)pem;
    (void)path;
    (void)log;
}

#endif
