/* SPDX-License-Identifier: MIT */
/*
 * census.c: a hash table of addresses with a fixed number of places, one for each connection that
 * there may be at most: nothing is allocated after the start. See census.h.
 */
#include "server/census.h"

#include "core/clock.h"
#include "core/fail.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct place {
    uint64_t key;   /* of the address */
    uint32_t count; /* connections from it; 0: the place is free */
    uint32_t next;  /* in the chain or among the free ones; NOWHERE ends it */
} place;

#define NOWHERE UINT32_MAX

struct iron__census {
    pthread_mutex_t mutex;
    uint32_t all, all_max, address_max;
    uint64_t seed; /* so that nobody can choose addresses that fall into one chain */
    uint32_t free, mask;
    uint32_t *chains;
    place *places;
};

/* 64 bits that tell addresses apart: IPv4's 32, or the network of an IPv6 address. */
static uint64_t key_of(const struct sockaddr *address) {
    uint64_t key = 0;

    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;

        key = UINT64_C(0xFFFF) << 32 | ntohl(v4->sin_addr.s_addr);
    } else if (address->sa_family == AF_INET6) {
        const unsigned char *bytes =
            ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr.s6_addr;
        static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
        bool is_v4 = memcmp(bytes, mapped, sizeof mapped) == 0;

        key = is_v4 ? 0xFFFF : 0;
        for (int k = is_v4 ? 12 : 0; k < (is_v4 ? 16 : 8); k++)
            key = key << 8 | bytes[k];
    }
    return key;
}

static uint32_t chain_of(const iron__census *c, uint64_t key) {
    uint64_t x = (key ^ c->seed) * UINT64_C(0x9E3779B97F4A7C15);

    x = (x ^ x >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    return (uint32_t)(x >> 32) & c->mask;
}

/* Where the number of the key's place is written: the last link of its chain if it has none. */
static uint32_t *link_of(iron__census *c, uint64_t key) {
    uint32_t *link = &c->chains[chain_of(c, key)];

    while (*link != NOWHERE && c->places[*link].key != key)
        link = &c->places[*link].next;
    return link;
}

iron__census_answer iron__census_enter(iron__census *c, const struct sockaddr *address) {
    uint64_t key = key_of(address);
    iron__census_answer answer = IRON_CENSUS_ENTERED;
    uint32_t *link;

    pthread_mutex_lock(&c->mutex);
    link = link_of(c, key);
    if (c->all == c->all_max) {
        answer = IRON_CENSUS_FULL;
    } else if (*link != NOWHERE && c->places[*link].count >= c->address_max) {
        answer = IRON_CENSUS_ADDRESS_FULL;
    } else {
        if (*link == NOWHERE) { /* there is a free place, since there are as many as connections */
            uint32_t taken = c->free;

            c->free = c->places[taken].next;
            c->places[taken] = (place){.key = key, .next = NOWHERE};
            *link = taken;
        }
        c->places[*link].count++;
        c->all++;
    }
    pthread_mutex_unlock(&c->mutex);
    return answer;
}

void iron__census_leave(iron__census *c, const struct sockaddr *address) {
    uint32_t *link, leaving;

    pthread_mutex_lock(&c->mutex);
    link = link_of(c, key_of(address));
    leaving = *link;
    if (leaving != NOWHERE) {
        c->all--;
        if (--c->places[leaving].count == 0) {
            *link = c->places[leaving].next;
            c->places[leaving].next = c->free;
            c->free = leaving;
        }
    }
    pthread_mutex_unlock(&c->mutex);
}

uint32_t iron__census_count(iron__census *c) {
    uint32_t count;

    pthread_mutex_lock(&c->mutex);
    count = c->all;
    pthread_mutex_unlock(&c->mutex);
    return count;
}

static void clear(iron__census *c) {
    for (uint32_t k = 0; k <= c->mask; k++)
        c->chains[k] = NOWHERE;
    for (uint32_t k = 0; k < c->all_max; k++)
        c->places[k].next = k + 1 < c->all_max ? k + 1 : NOWHERE;
}

iron_status iron__census_create(uint32_t all_max, uint32_t address_max, iron__census **out,
                                iron_error *err) {
    iron__census *c = calloc(1, sizeof *c);

    *out = NULL;
    IRON_FAIL_IF(!c, err, IRON_E_NOMEM, "out of memory: table of addresses");
    pthread_mutex_init(&c->mutex, NULL);
    c->all_max = all_max;
    c->address_max = address_max;
    if (getentropy(&c->seed, sizeof c->seed) != 0)
        c->seed = iron__clock_ns();
    c->mask = 1;
    while (c->mask < all_max)
        c->mask = c->mask << 1 | 1;
    c->chains = calloc((size_t)c->mask + 1, sizeof *c->chains);
    c->places = calloc(all_max, sizeof *c->places);
    if (!c->chains || !c->places) {
        iron__census_destroy(c);
        IRON_FAIL(err, IRON_E_NOMEM, "out of memory: table of %u addresses", all_max);
    }
    clear(c);
    *out = c;
    return IRON_OK;
}

void iron__census_destroy(iron__census *c) {
    if (!c)
        return;
    free(c->chains);
    free(c->places);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}
