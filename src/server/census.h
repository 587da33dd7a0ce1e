/* SPDX-License-Identifier: MIT */
/*
 * census.h: how many connections there are, in all and from each address. An IPv4 address counts
 * the same however it is written; one of IPv6 by its first 64 bits, for whoever has one address of
 * a network has all of them.
 */
#ifndef IRON_SERVER_CENSUS_H
#define IRON_SERVER_CENSUS_H

#include <iron/iron.h>

#include <stdbool.h>
#include <sys/socket.h>

typedef struct iron__census iron__census;

typedef enum iron__census_answer {
    IRON_CENSUS_ENTERED,
    IRON_CENSUS_FULL,        /* of all together */
    IRON_CENSUS_ADDRESS_FULL /* of this address */
} iron__census_answer;

iron_status iron__census_create(uint32_t all_max, uint32_t address_max, iron__census **out,
                                iron_error *err);
void iron__census_destroy(iron__census *census); /* NULL is fine */
/* From any thread. Whoever entered leaves, with the same address. */
iron__census_answer iron__census_enter(iron__census *census, const struct sockaddr *address);
void iron__census_leave(iron__census *census, const struct sockaddr *address);
uint32_t iron__census_count(iron__census *census);

#endif
