/* SPDX-License-Identifier: MIT */
/*
 * routes.c: the table of routes, and nothing else: the single source for dispatch, for 405's Allow,
 * and for scripts/check-openapi, which holds it against openapi.json.
 */
#include "server/route.h"

/* clang-format off: a table */
const iron__route iron__routes[] = {
    {"GET", "/v1/engines", NULL, IRON_BODY_NONE, false, false, NULL, NULL, iron__route_list, NULL},
    {"POST", "/v1/engines", NULL, IRON_BODY_JSON, false, false, NULL, NULL, iron__route_create,
     NULL},
    {"GET", "/v1/engines/{name}", NULL, IRON_BODY_NONE, false, false, NULL, NULL, iron__route_show,
     NULL},
    {"DELETE", "/v1/engines/{name}", NULL, IRON_BODY_NONE, false, false, NULL, NULL,
     iron__route_delete, NULL},
    {"POST", "/v1/engines/{name}/feed", "dtype at", IRON_BODY_STREAM, false, false,
     iron__route_feed_begin, iron__route_feed_take, iron__route_feed_end, iron__route_feed_drop},
    {"POST", "/v1/engines/{name}/quantize", NULL, IRON_BODY_JSON, false, false, NULL, NULL,
     iron__route_quantize, NULL},
    {"GET", "/v1/engines/{name}/state", "format array", IRON_BODY_NONE, false, false, NULL, NULL,
     iron__route_state, iron__route_state_drop},
    {"GET", "/v1/engines/{name}/batches", "since limit", IRON_BODY_NONE, false, false, NULL, NULL,
     iron__route_batches, NULL},
    {"GET", "/v1/engines/{name}/events", NULL, IRON_BODY_NONE, false, false, NULL, NULL,
     iron__route_events, NULL},
    {"GET", "/v1/events", "engine", IRON_BODY_NONE, false, false, NULL, NULL, iron__route_live,
     NULL},
    {"POST", "/v1/tickets", NULL, IRON_BODY_NONE, false, false, NULL, NULL, iron__route_ticket,
     NULL},
    {"GET", "/v1/info", NULL, IRON_BODY_NONE, false, false, NULL, NULL, iron__route_info, NULL},
    {"GET", "/healthz", NULL, IRON_BODY_NONE, true, false, NULL, NULL, iron__route_health, NULL},
    {"GET", "/readyz", NULL, IRON_BODY_NONE, true, false, NULL, NULL, iron__route_ready, NULL},
    {"GET", "/metrics", NULL, IRON_BODY_NONE, false, false, NULL, NULL, iron__route_metrics, NULL},
    {"GET", "/openapi.json", NULL, IRON_BODY_NONE, false, false, NULL, NULL, iron__route_openapi,
     NULL},
    {"GET", "/", NULL, IRON_BODY_NONE, true, false, NULL, NULL, iron__route_dashboard, NULL},
    {"GET", "/dashboard.js", NULL, IRON_BODY_NONE, true, false, NULL, NULL,
     iron__route_dashboard_script, NULL},
    {"GET", "/dashboard.css", NULL, IRON_BODY_NONE, true, false, NULL, NULL,
     iron__route_dashboard_style, NULL},
    {"GET", "/report", "ticket", IRON_BODY_NONE, false, true, NULL, NULL, iron__route_report, NULL},
    {NULL, NULL, NULL, IRON_BODY_NONE, false, false, NULL, NULL, NULL, NULL},
};
/* clang-format on */
