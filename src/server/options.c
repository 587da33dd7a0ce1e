/* SPDX-License-Identifier: MIT */
/*
 * options.c: what a server was asked for, with defaults in place of zeros, checked, and in copies
 * that live as long as the server does.
 */
#include "server/server.h"

#include "core/fail.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECONDS_MAX     UINT32_C(1000000)
#define CONNECTIONS_MAX UINT32_C(65536)

static void fill(uint32_t *value, uint32_t otherwise) { *value = *value ? *value : otherwise; }

static void fill_defaults(iron_server_options *o) {
    o->listen = o->listen ? o->listen : "127.0.0.1:8080";
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
    o->min_body_rate = o->min_body_rate ? o->min_body_rate : 1024;
}

iron_status iron__options_log(const iron_server_options *o, iron__log_plan *plan, iron_error *err) {
    static const char *const levels[] = {[IRON_LOG_DEBUG] = "debug",
                                         [IRON_LOG_INFO] = "info",
                                         [IRON_LOG_WARNING] = "warning",
                                         [IRON_LOG_ERROR] = "error"};
    size_t k = 0;

    IRON_FAIL_IF(strcmp(o->log, "text") != 0 && strcmp(o->log, "json") != 0, err, IRON_E_ARG,
                 "log '%.40s' is none; use text or json", o->log);
    while (k < sizeof levels / sizeof levels[0] && strcmp(o->log_level, levels[k]) != 0)
        k++;
    IRON_FAIL_IF(k == sizeof levels / sizeof levels[0], err, IRON_E_ARG,
                 "log level '%.40s' is none; use debug, info, warning or error", o->log_level);
    *plan = (iron__log_plan){
        .fd = STDERR_FILENO, .is_json = strcmp(o->log, "json") == 0, .least = (iron__log_level)k};
    return IRON_OK;
}

/* As it was asked for, before defaults make the answer. */
static iron_status check_socket(const iron_server_options *o, iron_error *err) {
    IRON_FAIL_IF(o->service && o->service->listen_fd && o->listen, err, IRON_E_ARG,
                 "listen '%.80s': a socket was handed over already (LISTEN_FDS); leave --listen "
                 "out, and write the address into the socket unit (ListenStream=)",
                 o->listen);
    return IRON_OK;
}

static iron_status check(const iron_server_options *o, iron_error *err) {
    iron__log_plan log;

    IRON_TRY(iron__options_log(o, &log, err));
    IRON_FAIL_IF(o->header_seconds > SECONDS_MAX || o->request_seconds > SECONDS_MAX ||
                     o->grace_seconds > SECONDS_MAX,
                 err, IRON_E_ARG, "a deadline of more than %u seconds is none", SECONDS_MAX);
    IRON_FAIL_IF(o->max_connections > CONNECTIONS_MAX, err, IRON_E_ARG,
                 "%u connections are too many: at most %u", o->max_connections, CONNECTIONS_MAX);
    IRON_FAIL_IF(o->max_body > INT64_MAX, err, IRON_E_ARG, "a body's limit must be below 2^63");
    IRON_FAIL_IF(!o->tls_cert != !o->tls_key, err, IRON_E_ARG,
                 "TLS needs both a certificate and its key");
    for (size_t k = 0; k < o->host_count; k++)
        IRON_FAIL_IF(!iron__host_is_name(iron__text_of(o->hosts[k])), err, IRON_E_ARG,
                     "host '%.80s': that is no name (without a port)", o->hosts[k]);
    return IRON_OK;
}

/* Puts copies in the places of texts: each is its own or NULL then. False without memory. */
static bool copy_texts(const char **texts[], size_t count) {
    bool is_copied = true;

    for (size_t k = 0; k < count; k++) {
        char *copy = *texts[k] ? strdup(*texts[k]) : NULL;

        is_copied = is_copied && !copy == !*texts[k];
        *texts[k] = copy;
    }
    return is_copied;
}

static bool copy_names(iron_server_options *o) {
    const char **texts[] = {&o->listen,  &o->data,   &o->token_file, &o->tls_cert,
                            &o->tls_key, &o->report, &o->log,        &o->log_level};

    return copy_texts(texts, sizeof texts / sizeof texts[0]);
}

static bool copy_hosts(iron_server_options *o) {
    const char **copies = calloc(o->host_count + 1, sizeof *copies);
    bool is_copied = copies != NULL;

    for (size_t k = 0; k < o->host_count && is_copied; k++) {
        copies[k] = strdup(o->hosts[k]);
        is_copied = copies[k] != NULL;
    }
    o->hosts = copies;
    return is_copied;
}

iron_status iron__options_init(iron_server_options *o, const iron_server_options *given,
                               iron_error *err) {
    iron_server_options filled = {0};
    bool is_copied;

    memset(o, 0, sizeof *o);
    IRON_FAIL_IF(given->struct_size == 0 || given->struct_size > sizeof filled, err, IRON_E_ARG,
                 "iron_server_options.struct_size is %u, this library knows %zu",
                 given->struct_size, sizeof filled);
    memcpy(&filled, given, given->struct_size);
    filled.struct_size = sizeof filled;
    IRON_TRY(check_socket(&filled, err));
    fill_defaults(&filled);
    IRON_TRY(check(&filled, err));
    *o = filled;
    is_copied = copy_names(o);
    if (copy_hosts(o) && is_copied)
        return IRON_OK;
    iron__options_deinit(o);
    IRON_FAIL(err, IRON_E_NOMEM, "out of memory: options");
}

void iron__options_deinit(iron_server_options *o) {
    const char *texts[] = {o->listen,  o->data,   o->token_file, o->tls_cert,
                           o->tls_key, o->report, o->log,        o->log_level};

    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
        free((void *)(uintptr_t)texts[k]);
    for (size_t k = 0; o->hosts && o->hosts[k]; k++)
        free((void *)(uintptr_t)o->hosts[k]);
    free((void *)(uintptr_t)o->hosts);
    memset(o, 0, sizeof *o);
}
