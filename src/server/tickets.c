/* SPDX-License-Identifier: MIT */
/*
 * tickets.c: see tickets.h. A guess is compared with every ticket, in a time that does not depend
 * on how much of it is right.
 */
#include "server/tickets.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

void iron__tickets_init(iron__tickets *tickets) {
    memset(tickets, 0, sizeof *tickets);
    pthread_mutex_init(&tickets->lock, NULL);
}

void iron__tickets_deinit(iron__tickets *tickets) {
    pthread_mutex_destroy(&tickets->lock);
    explicit_bzero(tickets->all, sizeof tickets->all);
}

/* One that is free, or the one that ends first. */
static iron__ticket *place(iron__tickets *tickets) {
    iron__ticket *first = &tickets->all[0];

    for (size_t k = 1; k < IRON_TICKETS_MAX; k++)
        if (tickets->all[k].ends_ns < first->ends_ns)
            first = &tickets->all[k];
    return first;
}

bool iron__tickets_issue(iron__tickets *tickets, uint64_t now_ns, char text[IRON_TICKET_TEXT]) {
    iron__ticket ticket = {.ends_ns = now_ns + IRON_TICKET_SECONDS * UINT64_C(1000000000)};

    if (getrandom(ticket.bytes, sizeof ticket.bytes, 0) != (ssize_t)sizeof ticket.bytes)
        return false;
    for (size_t k = 0; k < IRON_TICKET_BYTES; k++)
        snprintf(text + 2 * k, 3, "%02x", ticket.bytes[k]);
    pthread_mutex_lock(&tickets->lock);
    *place(tickets) = ticket;
    pthread_mutex_unlock(&tickets->lock);
    explicit_bzero(&ticket, sizeof ticket);
    return true;
}

static bool read_digit(char digit, unsigned *value) {
    static const char digits[] = "0123456789abcdef";
    const char *at = digit ? strchr(digits, digit) : NULL;

    *value = at ? (unsigned)(at - digits) : 0;
    return at != NULL;
}

static bool read_text(const char *text, unsigned char bytes[IRON_TICKET_BYTES]) {
    unsigned high, low;

    if (strlen(text) != IRON_TICKET_TEXT - 1)
        return false;
    for (size_t k = 0; k < IRON_TICKET_BYTES; k++) {
        if (!read_digit(text[2 * k], &high) || !read_digit(text[2 * k + 1], &low))
            return false;
        bytes[k] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* All ones if they are equal, else 0. */
static uint64_t equal(const unsigned char *a, const unsigned char *b) {
    unsigned difference = 0;

    for (size_t k = 0; k < IRON_TICKET_BYTES; k++)
        difference |= (unsigned)(a[k] ^ b[k]);
    return (uint64_t)((difference + 0xFF) >> 8) - 1;
}

bool iron__tickets_redeem(iron__tickets *tickets, uint64_t now_ns, const char *text) {
    unsigned char guess[IRON_TICKET_BYTES];
    uint64_t ends_ns = 0;

    if (!read_text(text, guess))
        return false;
    pthread_mutex_lock(&tickets->lock);
    for (size_t k = 0; k < IRON_TICKETS_MAX; k++) {
        uint64_t is_it = equal(tickets->all[k].bytes, guess);

        ends_ns |= tickets->all[k].ends_ns & is_it;
        tickets->all[k].ends_ns &= ~is_it;
    }
    pthread_mutex_unlock(&tickets->lock);
    return ends_ns > now_ns;
}
