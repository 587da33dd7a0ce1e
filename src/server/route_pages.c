/* SPDX-License-Identifier: MIT */
/*
 * route_pages.c: what is answered as it is: the OpenAPI document, which is part of the program, and
 * the report, which was read when the server started. No file is opened for a request.
 */
#include "server/route.h"

#include "core/fnv.h"

#include <inttypes.h>
#include <string.h>

extern const char iron__openapi_text[]; /* openapi.json, ended by a zero (cmake/Embed.cmake) */

/* What the page of a report needs, which is one file: its own style and script, no network. In its
 * sandbox it is of no origin: whatever stands in the file, it reaches nothing that pages of this
 * server keep in the browser. */
#define REPORT_POLICY                                                                              \
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "   \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "                                \
    "sandbox allow-scripts allow-downloads allow-popups"

void iron__route_tagged(iron__exchange *x, const char *type, const void *bytes, size_t count) {
    const char *known = iron__exchange_header(x, "If-None-Match");
    char tag[19];

    snprintf(tag, sizeof tag, "\"%016" PRIx64 "\"", iron__fnv(IRON_FNV_START, bytes, count));
    iron__answer_header(x, "ETag", tag);
    if (known && (strcmp(known, "*") == 0 || strstr(known, tag)))
        iron__answer_empty(x, 304);
    else
        iron__answer_fixed(x, 200, type, bytes, count);
}

void iron__route_openapi(iron__exchange *x) {
    iron__route_tagged(x, "application/json", iron__openapi_text, strlen(iron__openapi_text));
}

void iron__route_report(iron__exchange *x) {
    if (!x->site->report) {
        iron__answer_problem(x, "no-such-path",
                             "Start the server with --report FILE; iron arena --html makes one.",
                             "this server was started without a report");
        return;
    }
    iron__answer_header(x, "Content-Security-Policy", REPORT_POLICY);
    iron__answer_header(x, "Referrer-Policy", "no-referrer");
    iron__answer_fixed(x, 200, "text/html; charset=utf-8", x->site->report, x->site->report_bytes);
}
