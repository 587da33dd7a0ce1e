/* SPDX-License-Identifier: MIT */
/*
 * roster.h: what one reader of a stream was told of all engines, and what is new to it since.
 */
#ifndef IRON_SERVER_ROSTER_H
#define IRON_SERVER_ROSTER_H

#include "server/event_stream.h"

/* Between two events. */
#define IRON_ROSTER_NS UINT64_C(250000000)

/* What was told of an engine. */
typedef struct iron__roster_row {
    iron__glimpse glimpse;
    uint64_t told_ns, incoming;
    double rate;
} iron__roster_row;

typedef struct iron__roster {
    bool has_begun;
    iron__roster_row *rows, *next; /* by name; as many as there is room for */
    iron__glimpse *glimpses;
    size_t count, room;
    uint64_t wake_ns; /* when something is to be told although there is no news */
} iron__roster;

/* Writes an event `engines`: the first has all engines, later ones what has changed; none if
 * nothing has. */
void iron__roster_tell(iron__roster *r, iron__event_stream *s);
void iron__roster_deinit(iron__roster *r);

#endif
