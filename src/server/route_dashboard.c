/* SPDX-License-Identifier: MIT */
/*
 * route_dashboard.c: the dashboard: a page, its script and its style, which are part of the program
 * (cmake/Dashboard.cmake), as they are and packed with gzip. They hold nothing of any engine, so
 * they need no token: a browser cannot send one with a link, and the page asks for it. All else
 * the page gets through the routes that anybody uses.
 *
 * A build without npm's packages has no page; then it says why.
 */
#include "server/route.h"

#include "server/route_text.h"

/* From cmake/Embed.cmake: a file, and how long it is. */
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

/* The page may run its own script and style, ask its own server, and nothing else: what a name or a
 * file might smuggle into it would have no one to tell. */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

typedef struct embedded {
    const unsigned char *bytes;
    uint64_t count;
} embedded;

#define EMBEDDED(name)                                                                             \
    (embedded) { iron__dashboard_##name, iron__dashboard_##name##_bytes }

static void answer_part(iron__exchange *x, const char *type, embedded plain, embedded packed) {
    bool is_packed = iron__wants_gzip(iron__exchange_header(x, "Accept-Encoding"));
    embedded chosen;

    if (plain.count == 0) {
        iron__answer_problem(x, "no-such-path",
                             "Build it again when that is there. Everything else works: GET "
                             "/openapi.json lists the paths.",
                             "this server was built without the dashboard, since %s",
                             (const char *)iron__dashboard_why);
        return;
    }
    iron__answer_header(x, "Content-Security-Policy", POLICY);
    iron__answer_header(x, "Referrer-Policy", "no-referrer");
    iron__answer_header(x, "Cache-Control", "no-cache");
    iron__answer_header(x, "Vary", "Accept-Encoding");
    if (is_packed)
        iron__answer_header(x, "Content-Encoding", "gzip");
    chosen = is_packed ? packed : plain;
    iron__route_tagged(x, type, chosen.bytes, (size_t)chosen.count);
}

void iron__route_dashboard(iron__exchange *x) {
    answer_part(x, "text/html; charset=utf-8", EMBEDDED(html), EMBEDDED(html_gz));
}

void iron__route_dashboard_script(iron__exchange *x) {
    answer_part(x, "text/javascript; charset=utf-8", EMBEDDED(js), EMBEDDED(js_gz));
}

void iron__route_dashboard_style(iron__exchange *x) {
    answer_part(x, "text/css; charset=utf-8", EMBEDDED(css), EMBEDDED(css_gz));
}
