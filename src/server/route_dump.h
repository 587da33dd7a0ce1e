/* SPDX-License-Identifier: MIT */
/*
 * route_dump.h: an engine with its nodes as text or as a NumPy file, made while it is sent: what it
 * takes is one copy of the nodes, however long the text becomes.
 */
#ifndef IRON_SERVER_ROUTE_DUMP_H
#define IRON_SERVER_ROUTE_DUMP_H

#include "store/store.h"

#include <stdio.h>

/* In the order in which they stand in every form. */
typedef enum iron__array {
    IRON_ARRAY_XORS,
    IRON_ARRAY_POTENTIALS,
    IRON_ARRAY_ACTIVATIONS,
    IRON_ARRAYS
} iron__array;

extern const char *const iron__array_names[IRON_ARRAYS]; /* "xor_accumulators" ... */

/* Bytes that the copies of an engine's nodes take. */
#define IRON_DUMP_NODE_BYTES 12u

typedef struct iron__dump iron__dump;

/* JSON: the engine's members and three arrays. NULL: there is no memory. */
iron__dump *iron__dump_json(iron__kept *kept);
/* A NumPy file: of one array, or (IRON_ARRAYS) of records of all three. */
iron__dump *iron__dump_npy(iron__kept *kept, iron__array array);
/* The next bytes, as many as fit into `room` (64 or more); 0 at the end. */
size_t iron__dump_next(iron__dump *dump, char *room, size_t bytes);
void iron__dump_destroy(iron__dump *dump); /* NULL is fine */

#endif
