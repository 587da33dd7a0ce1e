/* SPDX-License-Identifier: MIT */
/*
 * certificate.c: warns of a TLS certificate that clients refuse, or should.
 *
 * libmicrohttpd brings GnuTLS with it, whose functions are looked up in this process. Where its
 * header was not installed, or libmicrohttpd has no TLS, nothing is checked.
 */
#include "server/server_internal.h"

#if __has_include(<gnutls/x509.h>)

#include <dlfcn.h>
#include <gnutls/x509.h>

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
    X(sign_is_secure)

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

#else

void iron__certificate_warn(const char *pem, const char *path, iron__log *log) {
    (void)pem;
    (void)path;
    (void)log;
}

#endif
