/* SPDX-License-Identifier: MIT */
/*
 * route_info.c: GET /v1/info, /healthz and /readyz, and the pages: the dashboard, the OpenAPI
 * document and the report.
 *
 * The dashboard (a page, its script and its style; cmake/Dashboard.cmake) and the OpenAPI document
 * are embedded in the program; the report was read at the start. No file is opened for a request.
 * The dashboard contains no data of any engine, so it needs no token: a browser cannot send one
 * with a link, and the page asks for it. Everything else it gets through the public routes. A build
 * without npm's packages has no dashboard, and says why.
 */
#include "server/server_internal.h"

#include "core/hash.h"
#include "engine/engine.h"
#include "gpu/gpu.h"

#include <sys/statvfs.h>

extern const char iron__openapi_text[]; /* openapi.json, NUL-terminated (cmake/Embed.cmake) */

/* A report is one file: it may use its own style and script, and no network. In its sandbox it has
 * no origin: whatever the file contains, it reaches nothing that pages of this server keep in the
 * browser. */
#define REPORT_POLICY                                                                              \
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "   \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "                                \
    "sandbox allow-scripts allow-downloads allow-popups"

/* The dashboard may use its own script and style, and ask its own server: if a name or a file
 * smuggled a script into it, that could send nothing elsewhere. */
#define DASHBOARD_POLICY                                                                           \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* Files from cmake/Embed.cmake, and their lengths. */
#define DECLARE(name)                                                                              \
    extern const unsigned char iron__dashboard_##name[];                                           \
    extern const uint64_t iron__dashboard_##name##_bytes

DECLARE(html);
DECLARE(html_gz);
DECLARE(js);
DECLARE(js_gz);
DECLARE(css);
DECLARE(css_gz);
DECLARE(why);

/* GET /v1/info: version, uptime, data, backends, devices, limits */

/* Drivers take tens of MiB: without a GPU they are looked at only if an engine has loaded them. */
static bool is_in_use(const iron__request *req, const char *backend) {
    size_t count = 0;
    iron__store_engine_view *views = iron__route_views(req, &count);
    bool is_used = iron__gpu_may_exist();

    for (size_t k = 0; views && k < count; k++)
        is_used = is_used || strcmp(views[k].plan.backend, backend) == 0;
    free(views);
    return is_used;
}

static void write_backends(const iron__request *req, iron_json_writer *j) {
    iron_json_open(j, "backends", '[');
    for (size_t k = 0; k < iron_backend_count(); k++) {
        const char *name = k ? iron__gpu_backend_name(k - 1) : "cpu";
        iron_backend_info info = {.struct_size = sizeof info, .name = name};

        if (k > 0 && !is_in_use(req, name))
            snprintf(
                info.reason, sizeof info.reason,
                "not looked for, since this machine shows no GPU; engines that name it try it");
        else if (iron_backend_at(k, &info, NULL) != IRON_OK)
            continue;
        iron_json_open(j, NULL, '{');
        iron_json_text(j, "name", info.name);
        iron_json_bool(j, "is_available", info.is_available);
        iron_json_text(j, "reason", info.reason[0] ? info.reason : NULL);
        iron_json_close(j, '}');
    }
    iron_json_close(j, ']');
}

static void write_device(iron_json_writer *j, const char *backend, uint64_t device,
                         const char *name, uint64_t units, uint64_t memory_bytes) {
    iron_json_open(j, NULL, '{');
    iron_json_text(j, "backend", backend);
    iron_json_number(j, "device", device);
    iron_json_text(j, "name", name);
    iron_json_number(j, "units", units);
    iron_json_number(j, "memory_bytes", memory_bytes);
    iron_json_close(j, '}');
}

static void write_devices(const iron__request *req, iron_json_writer *j) {
    static const char *const backends[] = {"cuda", "opencl"};
    iron_cpu_info cpu = {.struct_size = sizeof cpu};

    iron_json_open(j, "devices", '[');
    if (iron_cpu_describe(&cpu, NULL) == IRON_OK)
        write_device(j, "cpu", 0, cpu.name, cpu.threads, cpu.memory_bytes);
    for (size_t b = 0; b < sizeof backends / sizeof backends[0]; b++) {
        size_t count = is_in_use(req, backends[b]) ? iron_device_count(backends[b]) : 0;

        for (size_t k = 0; k < count; k++) {
            iron_device_info info = {.struct_size = sizeof info};

            if (iron_device_at(backends[b], k, &info, NULL) == IRON_OK)
                write_device(j, backends[b], k, info.name, info.units, info.memory_bytes);
        }
    }
    iron_json_close(j, ']');
}

static void get_info(iron__request *req) {
    iron_server *server = req->server;
    const iron_server_options *o = &server->options;
    iron_json_writer *j = iron__response_json(req);
    struct statvfs disk;
    bool has_disk = statvfs(o->data, &disk) == 0;

    iron_json_text(j, "name", "iron");
    iron_json_text(j, "version", iron_version());
    iron__write_time(j, "started", server->started_ms);
    iron_json_number(j, "uptime_seconds",
                     (iron__clock_ns() - server->started_ns) / UINT64_C(1000000000));
    iron_json_number(j, "data_format", IRON_STORE_FORMAT);
    iron__write_number_or_null(j, "data_free_bytes", has_disk,
                               has_disk ? (uint64_t)disk.f_bavail * disk.f_frsize : 0);
    iron_json_bool(j, "is_writable",
                   iron__store_failure(server->store, NULL) == IRON_OK &&
                       iron__store_full(server->store, NULL) == IRON_OK);
    iron_json_number(j, "engines", iron__store_list(server->store, NULL, 0));
    iron_json_number(j, "connections", atomic_load(&server->connections));
    iron_json_bool(j, "is_token_needed", o->token_file != NULL);
    iron_json_bool(j, "report", server->report != NULL);
    write_backends(req, j);
    write_devices(req, j);
    iron_json_open(j, "limits", '{');
    iron_json_number(j, "max_body", o->max_body);
    iron_json_number(j, "max_json_body", IRON_JSON_BODY_MAX);
    iron_json_number(j, "max_engines", o->max_engines);
    iron_json_number(j, "max_nodes", IRON_NODES_MAX);
    iron_json_number(j, "max_connections", o->max_connections);
    iron_json_number(j, "max_per_address", o->max_per_address);
    iron_json_number(j, "max_uploads", o->max_uploads);
    iron_json_number(j, "max_run", o->max_run);
    iron_json_number(j, "header_seconds", o->header_seconds);
    iron_json_number(j, "request_seconds", o->request_seconds);
    iron_json_number(j, "grace_seconds", o->grace_seconds);
    iron_json_number(j, "drain_seconds", o->drain_seconds);
    iron__write_number_or_null(j, "keep_batches", o->keep_batches > 0, o->keep_batches);
    iron__write_number_or_null(j, "keep_keys", o->keep_keys > 0, o->keep_keys);
    iron_json_number(j, "min_body_rate", o->min_body_rate);
    iron_json_close(j, '}');
    iron__response_json_end(req, 200);
}

/* Health */

static void respond_status(iron__request *req, const char *word) {
    iron_json_text(iron__response_json(req), "status", word);
    iron__response_json_end(req, 200);
}

/* Says whether a token is needed, so that a page need not run into a 401 to know. Touches nothing
 * else: it responds also while everything waits for a disk. */
static void get_health(iron__request *req) {
    if (req->server->options.token_file)
        iron__response_header(req, "WWW-Authenticate", "Bearer");
    respond_status(req, "ok");
}

static void get_ready(iron__request *req) {
    iron_error why = {0};

    if (atomic_load(&req->server->is_draining))
        iron__response_problem(req, "stopping", "Try again when the server is back.",
                               "the server is about to stop");
    else if (iron__store_failure(req->server->store, &why) != IRON_OK ||
             iron__store_full(req->server->store, &why) != IRON_OK)
        iron__route_failure(req, &(iron_error){IRON_E_IO, 0, "the store takes no writes"});
    else
        respond_status(req, "ready");
}

/* Pages */

/* Responds with embedded bytes and an ETag made of them; 304 if the client has them. */
static void respond_tagged(iron__request *req, const char *type, const void *bytes, size_t count) {
    iron__text known = iron__request_header(req, "If-None-Match");
    char tag[19];

    snprintf(tag, sizeof tag, "\"%016" PRIx64 "\"", iron__fnv(IRON_FNV_START, bytes, count));
    iron__response_header(req, "ETag", tag);
    if (known.at && (iron__text_is(known, "*") || strstr(known.at, tag)))
        iron__response_empty(req, 304);
    else
        iron__response_bytes(req, IRON_RESPONSE_STATIC, 200, type, bytes, count);
}

static void get_openapi(iron__request *req) {
    respond_tagged(req, "application/json", iron__openapi_text, strlen(iron__openapi_text));
}

static void get_report(iron__request *req) {
    if (!req->server->report) {
        iron__response_problem(req, "no-such-path",
                               "Start the server with --report FILE; iron arena --html writes one.",
                               "this server was started without a report");
        return;
    }
    iron__response_header(req, "Content-Security-Policy", REPORT_POLICY);
    iron__response_header(req, "Referrer-Policy", "no-referrer");
    iron__response_bytes(req, IRON_RESPONSE_STATIC, 200, "text/html; charset=utf-8",
                         req->server->report, req->server->report_bytes);
}

typedef struct embedded {
    const unsigned char *bytes;
    uint64_t count;
} embedded;

#define EMBEDDED(name)                                                                             \
    (embedded) { iron__dashboard_##name, iron__dashboard_##name##_bytes }

/* Does Accept-Encoding (NULL: no) prefer gzip, or accept it equally? */
static bool wants_gzip(const char *accept_encoding) {
    unsigned gzip = accept_encoding ? iron__accept_weight(accept_encoding, "gzip") : 0;

    return gzip > 0 && gzip >= iron__accept_weight(accept_encoding, "identity");
}

static void respond_embedded(iron__request *req, const char *type, embedded plain,
                             embedded packed) {
    bool is_packed = wants_gzip(iron__request_header(req, "Accept-Encoding").at);
    embedded chosen = is_packed ? packed : plain;

    if (plain.count == 0) {
        iron__response_problem(req, "no-such-path",
                               "Rebuild it with that installed. Everything else works: GET "
                               "/openapi.json lists the paths.",
                               "this server was built without the dashboard, since %s",
                               (const char *)iron__dashboard_why);
        return;
    }
    iron__response_header(req, "Content-Security-Policy", DASHBOARD_POLICY);
    iron__response_header(req, "Referrer-Policy", "no-referrer");
    iron__response_header(req, "Cache-Control", "no-cache");
    iron__response_header(req, "Vary", "Accept-Encoding");
    if (is_packed)
        iron__response_header(req, "Content-Encoding", "gzip");
    respond_tagged(req, type, chosen.bytes, (size_t)chosen.count);
}

static void get_dashboard(iron__request *req) {
    respond_embedded(req, "text/html; charset=utf-8", EMBEDDED(html), EMBEDDED(html_gz));
}

static void get_dashboard_script(iron__request *req) {
    respond_embedded(req, "text/javascript; charset=utf-8", EMBEDDED(js), EMBEDDED(js_gz));
}

static void get_dashboard_style(iron__request *req) {
    respond_embedded(req, "text/css; charset=utf-8", EMBEDDED(css), EMBEDDED(css_gz));
}

IRON_ROUTE(info, "GET", "/v1/info", .end = get_info);
IRON_ROUTE(health, "GET", "/healthz", .is_open = true, .is_probe = true, .end = get_health);
IRON_ROUTE(ready, "GET", "/readyz", .is_open = true, .is_probe = true, .end = get_ready);
IRON_ROUTE(openapi, "GET", "/openapi.json", .end = get_openapi);
IRON_ROUTE(dashboard, "GET", "/", .is_open = true, .end = get_dashboard);
IRON_ROUTE(dashboard_script, "GET", "/dashboard.js", .is_open = true, .end = get_dashboard_script);
IRON_ROUTE(dashboard_style, "GET", "/dashboard.css", .is_open = true, .end = get_dashboard_style);
IRON_ROUTE(report, "GET", "/report", .query = "ticket", .takes_ticket = true, .end = get_report);
