/* SPDX-License-Identifier: MIT */
/*
 * target.h: a request's target taken apart: path and query, decoded strictly, and the route that
 * the path names. Pure functions; the table of routes is given.
 */
#ifndef IRON_SERVER_TARGET_H
#define IRON_SERVER_TARGET_H

#include "server/audit.h"
#include "server/exchange.h"

#define IRON_QUERY_MAX 16u

typedef struct iron__query_pair {
    const char *name, *value;
} iron__query_pair;

typedef struct iron__target {
    char *room, *spare;   /* all texts below are in them */
    const char *path;     /* as it was sent */
    const char *variable; /* decoded, after a match; "" if the route has none */
    iron__query_pair pairs[IRON_QUERY_MAX];
    uint32_t pair_count;
} iron__target;

/* Which route, and what there is to say if it is none. */
typedef struct iron__match {
    const iron__route *route; /* NULL: the path or the method is not there */
    bool is_path_known;
    bool is_open;   /* of the path: its first row needs no token */
    char allow[64]; /* methods of the path: "GET, HEAD, POST" */
} iron__match;

/* A target that the judge found right. deinit always, also after a verdict. */
iron__verdict iron__target_init(iron__target *target, const char *text);
void iron__target_deinit(iron__target *target);

/* Finds the row; a variable in the path that cannot be decoded is a verdict. */
iron__verdict iron__target_match(iron__target *target, const iron__route *table, const char *method,
                                 iron__match *match);
/* Every name of the query is among `names` (exchange.h: with blanks between; NULL: none). */
iron__verdict iron__target_check_query(const iron__target *target, const char *names);
/* The value, or NULL. */
const char *iron__target_query(const iron__target *target, const char *name);

#endif
