/* SPDX-License-Identifier: MIT */
/*
 * request.c: requests as libmicrohttpd delivers them: the target, the header, pieces of the body,
 * its end, and the end of the request. libmicrohttpd calls from the connection's own thread, so
 * routes may wait for the disk or a device without holding up others. It has no listening socket:
 * the acceptor (connections.c) hands it connections.
 *
 * When the header is complete, the request gets its route or is refused: the header, Host and
 * Origin, the path, the token and its role, the method, the query's names, the body's length, type
 * and digest are checked, and the first error is the response.
 *
 * A request without a body is answered at its end and not before, since libmicrohttpd closes a
 * connection whose request was answered at the header.
 */
#include "server/server_internal.h"

#include "core/memory.h"

#include <arpa/inet.h>
#include <stdarg.h>

/* libmicrohttpd's memory for each connection: half of it reads bodies, as much as it gets in one
 * call. */
#define POOL_BYTES ((size_t)128 << 10)
/* Address space; only what is touched becomes memory, and sanitizers touch more. */
#define STACK_BYTES ((size_t)1 << 20)
#define PRIORITIES  "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

#define DISCARD_MAX ((uint64_t)64 << 20)

#define SMALL_MAX     ((size_t)4 << 10)
#define WHOLE_MAX     (IRON_JSON_BODY_MAX + 1) /* with the NUL at the end */
#define DOCUMENTS_MAX ((uint64_t)64 * WHOLE_MAX)

#define HELP_QUERY  "see /openapi.json for the parameters of this path"
#define HELP_ESCAPE "percent-encode with two hexadecimal digits, UTF-8, and no zero byte"

#define NAME_BYTES_MAX 253u

/* What a route may ask of its request */

iron__text iron__request_header(const iron__request *req, const char *name) {
    const char *value = MHD_lookup_connection_value(req->mhd, MHD_HEADER_KIND, name);

    /* libmicrohttpd keeps trailing blanks */
    return value ? iron__text_trim(iron__text_of(value)) : (iron__text){NULL, 0};
}

const char *iron__request_query(const iron__request *req, const char *name) {
    const iron__target *target = &req->target;

    for (uint32_t k = 0; k < target->pair_count; k++)
        if (strcmp(target->pairs[k].name, name) == 0)
            return target->pairs[k].value;
    return NULL;
}

/* The target
 *
 * It is decoded once, and must be UTF-8 without NULs; `+` is itself, as in paths. Literal parts of
 * a path are compared as they were sent: there is one way to write each of them. */

/* Decodes in place; false for a bad escape, a zero byte, or if the result is not UTF-8. */
static bool decode(char *text) {
    char *to = text;

    for (const char *from = text; *from; from++) {
        char c = *from;

        if (c == '%') {
            int high = iron__hex_digit(from[1]), low = high < 0 ? -1 : iron__hex_digit(from[2]);

            if (low < 0 || (high == 0 && low == 0))
                return false;
            c = (char)(high * 16 + low);
            from += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return iron__json_is_utf8(text);
}

static iron__http_error bad_query(const char *help, const char *detail) {
    return iron__http_error_make("bad-query", help, "%s", detail);
}

/* Splits a target that passed iron__header_check. The caller frees target->room, also after an
 * error. */
static iron__http_error target_parse(iron__target *target, const char *text) {
    size_t bytes = strlen(text) + 1;
    char *query, *pair;

    *target = (iron__target){.variable = "", .path = ""};
    target->room = malloc(2 * bytes); /* the second half is spare: for the variable */
    if (!target->room)
        return iron__http_error_make("internal", "try again later", "the server is out of memory");
    memcpy(target->room, text, bytes);
    target->path = target->room;
    target->spare = target->room + bytes;
    query = strchr(target->room, '?');
    if (query)
        *query++ = '\0';
    if (query && !*query)
        query = NULL;
    while ((pair = strsep(&query, "&"))) {
        char *equals = strchr(pair, '=');

        if (!equals || equals == pair)
            return bad_query(HELP_QUERY, "a parameter is not written name=value");
        *equals = '\0';
        if (!decode(pair) || !decode(equals + 1))
            return bad_query(HELP_ESCAPE, "a parameter is not percent-encoded correctly");
        for (uint32_t k = 0; k < target->pair_count; k++)
            if (strcmp(target->pairs[k].name, pair) == 0)
                return iron__http_error_make("bad-query", "give each parameter once",
                                             "the parameter '%.60s' occurs twice", pair);
        if (target->pair_count == IRON_QUERY_MAX)
            return bad_query(HELP_QUERY, "there are too many parameters");
        target->pairs[target->pair_count].name = pair;
        target->pairs[target->pair_count++].value = equals + 1;
    }
    return iron__http_error_none();
}

/* Does the path match the pattern? Then *variable is the part for {...}, as sent. */
static bool path_matches(const char *path, const char *pattern, iron__text *variable) {
    *variable = (iron__text){NULL, 0};
    while (*pattern) {
        if (*pattern == '{') {
            *variable = (iron__text){path, strcspn(path, "/")};
            path += variable->bytes;
            pattern = strchr(pattern, '}') + 1;
            if (variable->bytes == 0)
                return false;
        } else if (*path++ != *pattern++) {
            return false;
        }
    }
    return *path == '\0';
}

/* The route that a target names. */
typedef struct match {
    const iron__route *route; /* NULL: there is no such path or method */
    bool is_path_known;
    bool is_open;   /* the path's first route needs no token */
    char allow[64]; /* methods of the path: "GET, HEAD, POST" */
} match;

/* Finds the route; a variable in the path that cannot be decoded is an error. An escape may stand
 * for anything but a slash: `a%2Fb` would be another path. */
static iron__http_error target_match(iron__target *target, const iron__route *const *routes,
                                     const char *method, match *found) {
    const char *served = strcmp(method, "HEAD") == 0 ? "GET" : method;
    iron__text variable, value = {NULL, 0};

    memset(found, 0, sizeof *found);
    for (; *routes; routes++) {
        const iron__route *route = *routes;
        size_t used = strlen(found->allow);

        if (!path_matches(target->path, route->pattern, &variable))
            continue;
        if (!found->is_path_known)
            found->is_open = route->is_open;
        found->is_path_known = true;
        snprintf(found->allow + used, sizeof found->allow - used, "%s%s%s", used ? ", " : "",
                 route->method, strcmp(route->method, "GET") == 0 ? ", HEAD" : "");
        if (!found->route && strcmp(route->method, served) == 0) {
            found->route = route;
            value = variable;
        }
    }
    if (!found->route || !value.at)
        return iron__http_error_none();
    memcpy(target->spare, value.at, value.bytes);
    target->spare[value.bytes] = '\0';
    if (!decode(target->spare) || strchr(target->spare, '/'))
        return iron__http_error_make("malformed-request", HELP_ESCAPE,
                                     "the path is not percent-encoded correctly");
    target->variable = target->spare;
    return iron__http_error_none();
}

static iron__http_error check_query(const iron__target *target, const iron__route *route) {
    for (uint32_t k = 0; k < target->pair_count; k++)
        if (!iron__text_is_one_of(iron__text_of(target->pairs[k].name),
                                  route->query ? route->query : "", false))
            return iron__http_error_make("bad-query", HELP_QUERY,
                                         "there is no parameter '%.60s' here",
                                         target->pairs[k].name);
    return iron__http_error_none();
}

/* The header, as libmicrohttpd has read it
 *
 * The acceptor sees the first header of a connection as it arrived. Of later ones, and of all under
 * TLS, only libmicrohttpd's view is available, and libmicrohttpd is tolerant: it silently accepts
 * bare line feeds, folds and zero bytes, and drops fields without a name. But it parses a header
 * where it lies, and writes zeros in place of blanks, colons and line ends. So each name and value
 * must be exactly where a strict header has it, and the last of them at the end of what was read.
 * One thing is not detected: a zero byte and a line feed in place of CR LF.
 *
 * This depends on libmicrohttpd's internals. A version that works differently fails the check, also
 * for a first header that the acceptor found correct: then the connection ends with its response,
 * and later headers never arrive. */

static enum MHD_Result collect_field(void *context, enum MHD_ValueKind kind, const char *name,
                                     size_t name_bytes, const char *value, size_t value_bytes) {
    iron__header *header = context;

    (void)kind;
    if (iron__header_add(header, (iron__text){name ? name : "", name ? name_bytes : 0},
                         (iron__text){value ? value : "", value ? value_bytes : 0}))
        return MHD_YES;
    header->count = IRON_HEADER_FIELDS_MAX + 1; /* too many */
    return MHD_NO;
}

/* Steps over a line end, which libmicrohttpd has turned into two zeros. */
static bool step_line_end(const char **at, const char *end) {
    if (end - *at < 2 || (*at)[0] != '\0' || (*at)[1] != '\0')
        return false;
    *at += 2;
    return true;
}

static void step_blanks(const char **at, const char *end) {
    while (*at < end && (**at == ' ' || **at == '\t'))
        ++*at;
}

/* `target` is where libmicrohttpd had the target, target_bytes its length then. */
static bool is_strict(const iron__header *header, size_t header_bytes, const char *target,
                      size_t target_bytes) {
    const char *at = header->method.at;
    const char *end = at + header_bytes;

    if (target != at + header->method.bytes + 1 || header->version.at != target + target_bytes + 1)
        return false;
    at = header->version.at + header->version.bytes;
    if (!step_line_end(&at, end))
        return false;
    for (uint32_t k = 0; k < header->count; k++) {
        iron__text name = header->fields[k].name, value = header->fields[k].value;

        if (at != name.at)
            return false;
        at += name.bytes;
        if (at >= end || *at != '\0') /* the colon */
            return false;
        ++at;
        step_blanks(&at, end);
        if (at != value.at)
            return false;
        at += value.bytes;
        step_blanks(&at, end);
        if (!step_line_end(&at, end))
            return false;
    }
    return step_line_end(&at, end) && at == end;
}

static iron__http_error bad_request(const char *detail) {
    return iron__http_error_make("malformed-request",
                                 "send the request as RFC 9112 requires; HTTP libraries do", "%s",
                                 detail);
}

static iron__http_error header_too_large(void) {
    return iron__http_error_make("header-too-large", "send fewer or shorter header fields",
                                 "the header has more than %u fields or %zu bytes",
                                 IRON_HEADER_FIELDS_MAX, IRON_HEADER_BYTES_MAX);
}

static iron__http_error check_header(iron__request *req, const char *method, const char *version,
                                     iron__header *header) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(req->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    bool was_checked = !req->connection->had_request && !req->server->is_tls; /* by the acceptor */
    size_t header_bytes = info ? info->header_size : 0, bytes = strlen(req->target_text);

    header->method = iron__text_of(method);
    header->version = iron__text_of(version);
    header->count = 0;
    header->body_bytes = 0;
    MHD_get_connection_values_n(req->mhd, MHD_HEADER_KIND, collect_field, header);
    if (header->count > IRON_HEADER_FIELDS_MAX || header_bytes > IRON_HEADER_BYTES_MAX)
        return header_too_large();
    req->body_at = header->method.at + header_bytes;
    if (!is_strict(header, header_bytes, req->target_at, bytes)) {
        req->body_at = NULL;
        req->must_close = true;
        if (!was_checked)
            return bad_request("the header does not follow RFC 9112");
    }
    header->target = (iron__text){req->target_text, bytes};
    return iron__header_check(header);
}

/* Host and Origin
 *
 * A web page from anywhere can make a browser send requests to a server on the same machine: by its
 * address (then Origin or Sec-Fetch-Site tell), or by a name of its own that resolves to 127.0.0.1
 * (then the Host is that name). Neither is accepted. Names are compared as text and never looked
 * up. */

/* Parses an address of a family (into in_addr, in6_addr). */
static bool read_address(iron__text text, int family, void *address) {
    char copy[INET6_ADDRSTRLEN];

    if (text.bytes >= sizeof copy)
        return false;
    memcpy(copy, text.at, text.bytes);
    copy[text.bytes] = '\0';
    return inet_pton(family, copy, address) == 1;
}

/* The name without brackets and port; false if the host is invalid. */
static bool host_name(iron__text host, iron__text *name) {
    bool is_bracketed = host.bytes > 0 && host.at[0] == '[';
    const char *end = memchr(host.at, is_bracketed ? ']' : ':', host.bytes);
    struct in6_addr v6;
    iron__text port;
    uint64_t number;

    if (is_bracketed) {
        if (!end)
            return false;
        *name = (iron__text){host.at + 1, (size_t)(end - host.at) - 1};
        end++;
    } else {
        end = end ? end : host.at + host.bytes;
        *name = (iron__text){host.at, (size_t)(end - host.at)};
    }
    port = (iron__text){end + 1, (size_t)(host.at + host.bytes - end) - 1};
    if (end != host.at + host.bytes &&
        (*end != ':' || port.bytes > 5 || !iron__text_number(port, &number) || number == 0 ||
         number > 65535))
        return false;
    return is_bracketed ? read_address(*name, AF_INET6, &v6)
                        : iron__text_is_word(*name, ".-_") && name->bytes <= NAME_BYTES_MAX;
}

bool iron__host_is_valid(iron__text host, bool may_have_port) {
    iron__text name;

    return host.bytes > 0 && host_name(host, &name) &&
           (may_have_port || name.bytes + (host.at[0] == '[' ? 2u : 0u) == host.bytes);
}

/* A server on loopback serves names of this machine and those of --host. One on a public address
 * serves any name, or, with --host, only those and its address. */
static bool is_own_host(const iron_server *server, iron__text host) {
    const iron_server_options *o = &server->options;
    iron__text name, more;
    struct in6_addr any; /* of either family */

    if (!host_name(host, &name))
        return false;
    if (name.bytes > 1 && name.at[name.bytes - 1] == '.')
        name.bytes--; /* "localhost." is the same name */
    if (!server->is_loopback && o->host_count == 0)
        return true;
    for (size_t k = 0; k < o->host_count; k++)
        if (host_name(iron__text_of(o->hosts[k]), &more) && more.bytes == name.bytes &&
            strncasecmp(more.at, name.at, name.bytes) == 0)
            return true;
    for (size_t k = 0; k < server->listener_count; k++)
        if (iron__text_is_caseless(name, server->listeners[k].host))
            return true;
    if (!server->is_loopback || iron__text_is_caseless(name, "localhost"))
        return server->is_loopback;
    /* however it is written: an IPv6 address has many forms */
    return read_address(name, AF_INET, &any)
               ? iron__is_loopback(AF_INET, &any)
               : read_address(name, AF_INET6, &any) && iron__is_loopback(AF_INET6, &any);
}

/* Host, Origin and Sec-Fetch-Site. */
static iron__http_error check_origin(const iron_server *server, const iron__header *header) {
    static const char help[] = "use a page of this server, or a client that is not a browser";
    const char *scheme = server->is_tls ? "https://" : "http://";
    size_t scheme_bytes = strlen(scheme);
    iron__text host = iron__header_get(header, "Host");
    iron__text origin = iron__header_get(header, "Origin");
    iron__text site = iron__header_get(header, "Sec-Fetch-Site");
    bool is_reading = iron__text_is(header->method, "GET") || iron__text_is(header->method, "HEAD");

    if (host.at && !is_own_host(server, host))
        return iron__http_error_make(
            "wrong-host", "use the server's address, or start the server with --host",
            "this server is not %.*s", host.bytes < 100 ? (int)host.bytes : 100, host.at);
    /* the origin of a page of this server is its scheme and the Host that the request names */
    if (origin.at && (!host.at || origin.bytes != scheme_bytes + host.bytes ||
                      strncasecmp(origin.at, scheme, scheme_bytes) != 0 ||
                      strncasecmp(origin.at + scheme_bytes, host.at, host.bytes) != 0))
        return iron__http_error_make("foreign-origin", help, "the Origin is not this server");
    if (site.at && !is_reading &&
        (iron__text_is_caseless(site, "cross-site") || iron__text_is_caseless(site, "same-site")))
        return iron__http_error_make("foreign-origin", help,
                                     "the request comes from a page of another site");
    return iron__http_error_none();
}

/* Which route a request gets, or why it is refused */

static bool is_collected(iron__body_kind kind) {
    return kind == IRON_BODY_JSON || kind == IRON_BODY_BYTES;
}

static iron__http_error check_content(const iron__request *req, const iron__header *header) {
    uint64_t max = req->server->options.max_body;
    iron__body_kind kind = req->route->body;
    iron__text type = iron__header_get(header, "Content-Type");
    iron__text coding = iron__header_get(header, "Content-Encoding");

    if (header->body_bytes == 0)
        return iron__http_error_none();
    if (kind == IRON_BODY_NONE)
        return iron__http_error_make("unexpected-body", "send the request without a body",
                                     "this path takes no body");
    if (is_collected(kind) && max > IRON_JSON_BODY_MAX)
        max = IRON_JSON_BODY_MAX;
    if (header->body_bytes != IRON_LENGTH_UNKNOWN && header->body_bytes > max)
        return iron__http_error_make(
            "too-large", "send less at once", "the body has %llu bytes, at most %llu are accepted",
            (unsigned long long)header->body_bytes, (unsigned long long)max);
    if (coding.at && !iron__text_is_caseless(coding, "identity"))
        return iron__http_error_make("unsupported-type", "send the body without an encoding",
                                     "bodies with a Content-Encoding are not accepted");
    /* curl sends a form's type with any --data. That pages of other sites can send it without
     * asking first is what the check of Origin is for. */
    if (kind == IRON_BODY_JSON && type.at && !iron__text_is_type(type, "application/json") &&
        !iron__text_is_type(type, "application/x-www-form-urlencoded"))
        return iron__http_error_make("unsupported-type", "send `Content-Type: application/json`",
                                     "the body of this path is JSON");
    return iron__http_error_none();
}

/* Only clients with access learn whether a path exists. An unneeded ticket is not used up. */
static iron__http_error check_route(iron__request *req, const iron__header *header,
                                    const char *method) {
    match found;
    iron__http_error query_error = target_parse(&req->target, req->target_text);
    iron__http_error path_error = target_match(&req->target, iron__routes, method, &found);
    iron__http_error error = iron__http_error_none();
    bool takes_ticket = found.route && found.route->takes_ticket;
    bool is_open = found.route ? found.route->is_open : found.is_open;
    uint32_t all = req->server->options.max_connections;

    req->route = found.route;
    req->variable = req->target.variable;
    if (!is_open)
        error = iron__access_check(req, iron__header_get(header, "Authorization"),
                                   takes_ticket ? iron__request_query(req, "ticket") : NULL);
    req->connection->is_known = !is_open && !error.kind && req->server->options.token_file;
    /* An eighth of the connections is kept for requests with a token and for probes: requests
     * without one that are answered slowly, or read slowly, cannot take all of them. */
    if (!req->connection->is_known && !(found.route && found.route->is_probe)) {
        req->is_stranger = true;
        if (atomic_fetch_add(&req->server->strangers, 1) >= all - all / 8)
            return iron__http_error_make("busy", "try again a little later, or send a token",
                                         "all connections for requests without a token are in use");
    }
    if (error.kind)
        return iron__access_slow_down(req, error);
    if (!found.is_path_known)
        return iron__http_error_make("no-such-path", "see /openapi.json for the paths",
                                     "there is nothing at this path");
    if (!found.route) {
        iron__response_header(req, "Allow", found.allow);
        return iron__http_error_make("method-not-allowed", "use one of the methods in Allow",
                                     "this path takes %s, not %s", found.allow, method);
    }
    if (path_error.kind)
        return path_error;
    if (query_error.kind)
        return query_error;
    error = iron__access_allows(req);
    if (error.kind)
        return error;
    error = check_query(&req->target, found.route);
    if (!error.kind)
        error = check_content(req, header);
    iron__sha256_init(&req->hash);
    return error.kind ? error : iron__header_digest(header, req->digest, &req->has_digest);
}

/* Finds the route, or responds with the reason why the request is refused. */
static void check_request(iron__request *req, const char *method, const char *version) {
    iron_server *server = req->server;
    iron__header header;
    iron__http_error error = check_header(req, method, version, &header);

    if (error.kind) {
        atomic_fetch_add(&server->malformed, 1);
        req->must_close = true;
        req->expected_bytes = IRON_LENGTH_UNKNOWN; /* the body's length cannot be trusted */
    } else {
        req->expected_bytes = header.body_bytes;
        req->must_close |= header.body_bytes == IRON_LENGTH_UNKNOWN;
        if (atomic_load(&server->is_stopping))
            error = iron__http_error_make("stopping", "try again when the server is back",
                                          "the server accepts no new requests");
    }
    if (!error.kind && req->connection->key != IRON_LOCAL_KEY) /* no browser gets there */
        error = check_origin(server, &header);
    if (!error.kind)
        error = check_route(req, &header, method);
    if (error.kind || !req->route) /* without a route there is always an error */
        iron__response_error(req, &error);
}

/* Collected bodies
 *
 * So that many clients at once do not fill the memory, large documents share a budget of
 * DOCUMENTS_MAX while they arrive, and are parsed one at a time. A large document gets all of its
 * room or none: if it grew, many that arrive together would fill the budget with their beginnings
 * and none could finish. Small ones, as all that create engines are, wait for nothing. */

static uint64_t counted(size_t room) { return room > SMALL_MAX ? room : 0; }

static bool make_room(iron__request *req, size_t count) {
    size_t need = req->body_bytes + count + 1, room = WHOLE_MAX;
    uint64_t said = req->expected_bytes, more;
    char *larger;

    if (need <= req->body_room)
        return true;
    if (need <= SMALL_MAX)
        room = SMALL_MAX;
    else if (said < IRON_JSON_BODY_MAX && need <= said + 1)
        room = (size_t)said + 1;
    more = counted(room) - counted(req->body_room);
    if (!iron__budget_take(&req->server->document_bytes, more, DOCUMENTS_MAX))
        return false;
    larger = realloc(req->body_buffer, room);
    if (!larger) {
        atomic_fetch_sub(&req->server->document_bytes, more);
        return false;
    }
    req->body_buffer = larger;
    req->body_room = room;
    return true;
}

static void refuse_large(iron__request *req, uint64_t max) {
    iron__response_problem(req, "too-large", "send less at once",
                           "the body has more than the %llu bytes that are accepted",
                           (unsigned long long)max);
}

static void collect(iron__request *req, const char *bytes, size_t count) {
    if (count > IRON_JSON_BODY_MAX - req->body_bytes) {
        refuse_large(req, IRON_JSON_BODY_MAX);
    } else if (!make_room(req, count)) {
        iron__response_problem(req, "busy", "try again a little later",
                               "there is no room for another large document now");
    } else {
        memcpy(req->body_buffer + req->body_bytes, bytes, count);
        req->body_bytes += count;
    }
}

iron_status iron__request_read_json(iron__request *req,
                                    iron_status (*read)(const iron__json *root, void *context,
                                                        iron_error *err),
                                    void *context, iron_error *err) {
    bool is_large = req->body_room > SMALL_MAX;
    const iron__json *root = NULL;
    iron_status status;

    if (is_large)
        pthread_mutex_lock(&req->server->parsing);
    status = iron__json_parse(req->body, req->body_bytes, iron__allocator_default(), &root, err);
    if (status == IRON_OK)
        status = read(root, context, err);
    iron__json_destroy(iron__allocator_default(), root);
    if (is_large)
        pthread_mutex_unlock(&req->server->parsing);
    return status;
}

/* Chunks
 *
 * libmicrohttpd reads them, and tolerates bare line feeds and control characters in their lines. It
 * leaves the line before the chunk's first bytes, unless it had to read more in between: then the
 * bytes begin where its buffer does. */

/* `begin` is where its buffer begins; NULL: unknown. */
static bool is_chunk_line_good(const char *begin, const char *bytes) {
    const char *at = bytes - 2;

    if (!begin || bytes < begin + 2 || bytes[-1] != '\n')
        return true; /* the line is not there */
    if (*at != '\r')
        return false;
    while (at > begin && at[-1] != '\n') {
        unsigned char c = (unsigned char)*--at;

        if ((c < 0x20 && c != '\t') || c == 0x7F)
            return false;
    }
    return true;
}

/* Callbacks of libmicrohttpd */

_Thread_local iron__connection *iron__thread_connection;
static _Thread_local iron__request *current; /* of this connection's thread */

static void count_begun(iron__request *req) {
    req->is_begun = true;
    req->begun_ns = iron__clock_ns();
    req->id = req->connection->request_id = iron__request_id(req->server);
    atomic_fetch_add(&req->server->in_flight, 1);
}

/* The target has arrived. */
static void *create(void *server, const char *target, struct MHD_Connection *mhd) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    iron__request *req = calloc(1, sizeof *req);

    if (!req)
        return NULL;
    req->server = server;
    req->mhd = mhd;
    req->connection = iron__thread_connection = info ? info->socket_context : NULL;
    req->target_at = target;
    req->target_text = strdup(target ? target : "");
    req->variable = "";
    if (req->target_text && req->connection) {
        current = req;
        return req;
    }
    free(req->target_text);
    free(req);
    return NULL;
}

static bool enter(iron__request *req, iron__phase phase, size_t body_bytes) {
    return iron__connection_enter(req->server, req->connection, phase, body_bytes);
}

/* The body is complete. */
static enum MHD_Result end(iron__request *req) {
    req->is_body_over = true;
    if (!enter(req, IRON_PHASE_WORKING, 0))
        return MHD_NO;
    if (!req->is_answered && req->has_digest) {
        unsigned char digest[IRON_SHA256_BYTES];

        iron__sha256_end(&req->hash, digest);
        if (memcmp(digest, req->digest, sizeof digest) != 0)
            iron__response_problem(req, "bad-digest", "nothing was changed: send it again",
                                   "the SHA-256 of the %llu bytes that arrived is another one",
                                   (unsigned long long)req->received_bytes);
    }
    if (!req->is_answered && is_collected(req->route->body)) {
        if (req->body_buffer)
            req->body_buffer[req->body_bytes] = '\0';
        req->body = req->body_buffer ? req->body_buffer : "";
    }
    if (!req->is_answered)
        req->route->end(req);
    if (!req->is_answered) {
        iron__note(req->server->log, "request %016llx: %s %s has no response",
                   (unsigned long long)req->id, req->route->method, req->route->pattern);
        iron__response_problem(req, "internal", "report this", "the server has no response");
    }
    return iron__response_send(req);
}

/* The header is complete. */
static enum MHD_Result begin(iron__request *req, const char *method, const char *version) {
    count_begun(req);
    snprintf(req->method, sizeof req->method, "%s", method);
    if (!enter(req, IRON_PHASE_WORKING, 0))
        return MHD_NO;
    check_request(req, method, version);
    req->connection->had_request = true;
    if (!req->is_answered) {
        req->is_routed = true;
        if (req->route->begin)
            req->route->begin(req);
    }
    if (req->expected_bytes == 0) {
        if (!iron__request_header(req, "Expect").at)
            return MHD_YES; /* it calls again at once */
        /* Asked to continue although there is no body, libmicrohttpd would say so, take what
         * follows (the next request, if it is there) for the body, and then refuse our response. */
        req->must_close = true;
        return end(req);
    }
    if (req->is_answered)
        return iron__response_send(req);
    if (iron__request_header(req, "Expect").at && strcmp(version, "HTTP/1.1") == 0)
        atomic_fetch_add(&req->server->responses[1], 1); /* libmicrohttpd sends 100 */
    return enter(req, IRON_PHASE_BODY, 0) ? MHD_YES : MHD_NO;
}

/* A piece of the body has arrived. */
static enum MHD_Result take(iron__request *req, const char *bytes, size_t count) {
    iron_server *server = req->server;

    atomic_fetch_add(&server->bytes_in, count);
    req->received_bytes += count;
    req->taken_bytes += count;
    if (req->is_discarding)
        return req->taken_bytes < DISCARD_MAX && enter(req, IRON_PHASE_BODY, count) ? MHD_YES
                                                                                    : MHD_NO;
    if (!enter(req, IRON_PHASE_WORKING, 0))
        return MHD_NO;
    if (req->has_digest)
        iron__sha256_add(&req->hash, bytes, count);
    if (atomic_load(&server->is_cutting)) {
        iron__response_problem(req, "stopping", "send it again when the server is back",
                               "the server is stopping and no longer waits for bodies");
    } else if (req->expected_bytes == IRON_LENGTH_UNKNOWN &&
               !is_chunk_line_good(req->body_at, bytes)) {
        atomic_fetch_add(&server->malformed, 1);
        iron__response_problem(req, "malformed-request",
                               "end lines with CR LF, and send visible text in extensions",
                               "the line before a chunk contains a control character");
    } else if (req->taken_bytes > server->options.max_body) {
        refuse_large(req, server->options.max_body);
    } else if (is_collected(req->route->body)) {
        collect(req, bytes, count);
    } else if (req->route->take) {
        req->route->take(req, bytes, count);
    }
    if (req->is_answered)
        return iron__response_send(req);
    return enter(req, IRON_PHASE_BODY, count) ? MHD_YES : MHD_NO;
}

static enum MHD_Result handle(void *server, struct MHD_Connection *mhd, const char *url,
                              const char *method, const char *version, const char *bytes,
                              size_t *count, void **context) {
    iron__request *req = *context;
    size_t taken = *count;

    (void)server;
    (void)mhd;
    (void)url; /* target_parse decodes the target itself */
    if (!req)
        return MHD_NO;
    if (!req->is_begun)
        return begin(req, method, version);
    if (req->is_queued) /* libmicrohttpd calls on if it is shutting down and refused the response */
        return MHD_NO;
    if (taken == 0)
        return end(req);
    *count = 0;
    return take(req, bytes, taken);
}

static void log_request(const iron__request *req, uint64_t ns) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(req->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    iron__connection *c = req->connection;
    const iron__route *route = req->route;
    bool is_run = route && strstr(route->pattern, "{run}");
    bool is_in_query = !req->variable[0] && route && route->query && strstr(route->query, "engine");
    iron__request_record record = {
        .id = req->id,
        .method = {req->method[0] ? req->method : NULL, strlen(req->method)},
        .target = {req->target_at ? req->target_text : NULL, strlen(req->target_text)},
        .route = route,
        .engine = is_run        ? ""
                  : is_in_query ? iron__request_query(req, "engine")
                                : req->variable,
        .client = info ? info->client_addr : NULL,
        .bytes_in = req->received_bytes,
        .bytes_out = req->sent_bytes,
        .ns = ns};

    if (req->is_sent) {
        record.status = req->response.status;
        record.problem = req->response.problem;
    } else {
        pthread_mutex_lock(&c->mutex);
        record.detail = c->timeout_reason;
        if (c->is_told) {
            record.problem = iron__http_problem_find("too-slow");
            record.status = record.problem->status;
        }
        pthread_mutex_unlock(&c->mutex);
    }
    iron__log_request(req->server->log, &record);
}

/* The request is over, however it ended. */
static void destroy(void *context, struct MHD_Connection *mhd, void **request,
                    enum MHD_RequestTerminationCode how) {
    iron__request *req = *request;
    iron_server *server = context;

    (void)mhd;
    (void)how;
    *request = NULL;
    current = NULL;
    if (!req)
        return;
    if (req->is_routed && req->route->drop)
        req->route->drop(req);
    if (req->is_begun) {
        uint64_t ns = iron__clock_ns() - req->begun_ns;

        if (!req->is_stream)
            iron__count_latency(server, req->route, ns);
        atomic_fetch_add(&server->bytes_out, req->sent_bytes);
        log_request(req, ns);
        (void)enter(req, IRON_PHASE_IDLE, 0);
        atomic_fetch_sub(&server->in_flight, 1);
        if (req->is_stranger)
            atomic_fetch_sub(&server->strangers, 1);
    }
    iron__response_free(&req->response);
    atomic_fetch_sub(&server->document_bytes, counted(req->body_room));
    free(req->body_buffer);
    free(req->target.room);
    free(req->target_text);
    free(req);
}

/* libmicrohttpd's own refusals
 *
 * It answers some errors itself, with a page of HTML: chunks that it cannot read, and lines that it
 * cannot read in a header that the acceptor has not seen. But first it logs that, in the
 * connection's thread. So the problem is sent then, and its own answer finds a closed socket.
 * Where it cannot read the request line, there is no request yet, and one is made for the problem.
 * A line without any blank it does not answer at all. */

static void replace_refusal(void *server, const char *format, va_list values) {
    static const char mark[] = "Error processing request";
    unsigned status = MHD_HTTP_BAD_REQUEST;
    bool is_new = !current && iron__thread_connection;
    iron__http_error error;
    void *made = NULL;

    if (strncmp(format, mark, sizeof mark - 1) != 0)
        return;
    if (strstr(format, "%u")) /* ... (HTTP response code is %u ...) */
        status = va_arg(values, unsigned);
    if (is_new)
        made = create(server, NULL, iron__thread_connection->mhd);
    if (!current || current->is_answered)
        return;
    if (!current->is_begun)
        count_begun(current);
    atomic_fetch_add(&current->server->malformed, 1);
    if (status == MHD_HTTP_HTTP_VERSION_NOT_SUPPORTED)
        error = iron__http_error_make("unsupported-version", "use HTTP/1.1",
                                      "the request is neither HTTP/1.1 nor HTTP/1.0");
    else if (status == MHD_HTTP_URI_TOO_LONG)
        error = iron__target_too_long();
    else if (status == MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE)
        error = header_too_large();
    else
        error = bad_request(current->is_routed ? "the chunks of the body cannot be read"
                            : is_new           ? "the request line is not `METHOD target HTTP/1.1`"
                                               : "the header does not follow RFC 9112");
    iron__response_error(current, &error);
    iron__response_send_raw(current);
    if (is_new) /* libmicrohttpd does not know it */
        destroy(server, current->mhd, &made, MHD_REQUEST_TERMINATED_WITH_ERROR);
}

/* Escapes stay: target_parse decodes them, once and strictly. */
static size_t keep_escapes(void *context, struct MHD_Connection *mhd, char *text) {
    (void)context;
    (void)mhd;
    return strlen(text);
}

/* libmicrohttpd's own strictness is off: header.c finds the same errors, and explains them. */
iron_status iron__http_start(iron_server *server, MHD_NotifyConnectionCallback notify,
                             iron__daemon *daemon, iron_error *err) {
    const iron_server_options *options = &server->options;
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                     MHD_USE_POLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_KEY, 0, daemon->key},
                                   {MHD_OPTION_HTTPS_MEM_CERT, 0, daemon->cert},
                                   {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)PRIORITIES},
                                   {MHD_OPTION_END, 0, NULL}};

    IRON_FAIL_IF(server->is_tls && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES, err,
                 IRON_E_UNSUPPORTED, "this libmicrohttpd was built without TLS");
    if (server->is_tls)
        flags |= MHD_USE_TLS;
    daemon->mhd = MHD_start_daemon(
        flags, 0, NULL, NULL, handle, server, MHD_OPTION_EXTERNAL_LOGGER, replace_refusal, server,
        MHD_OPTION_ARRAY, server->is_tls ? tls : &tls[3], MHD_OPTION_CONNECTION_LIMIT,
        options->max_connections + 64u, MHD_OPTION_CONNECTION_MEMORY_LIMIT, POOL_BYTES,
        MHD_OPTION_THREAD_STACK_SIZE, STACK_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 0,
        MHD_OPTION_URI_LOG_CALLBACK, create, server, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes,
        NULL, MHD_OPTION_NOTIFY_CONNECTION, notify, server, MHD_OPTION_NOTIFY_COMPLETED, destroy,
        server, MHD_OPTION_END);
    IRON_FAIL_IF(!daemon->mhd && server->is_tls, err, IRON_E_ARG,
                 "TLS cannot start: %s and %s are not a certificate and its key in PEM",
                 options->tls_cert, options->tls_key);
    IRON_FAIL_IF(!daemon->mhd, err, IRON_E_IO, "libmicrohttpd cannot start (threads, memory?)");
    return IRON_OK;
}
