/* SPDX-License-Identifier: MIT */
/*
 * route_plan.h: from the body of POST /v1/engines to a plan. Pure: any bytes may come.
 */
#ifndef IRON_SERVER_ROUTE_PLAN_H
#define IRON_SERVER_ROUTE_PLAN_H

#include "store/store.h"

/* What is not named in the text keeps its default. On failure *kind is the problem's: "bad-json"
 * for what is no object of these members, "bad-name", "bad-configuration" for values out of range.
 * Whether the backend and the mode exist, and whether batch times vocab is too much, the store
 * says. */
iron_status iron__plan_parse(const char *text, size_t bytes, iron__plan *plan, const char **kind,
                             iron_error *err);

#endif
