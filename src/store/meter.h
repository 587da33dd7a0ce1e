/* SPDX-License-Identifier: MIT */
/*
 * meter.h: how many tokens a second come in, over about the last two seconds.
 *
 * Tokens are counted in quarters of a second, each in one word that also says which quarter it is:
 * whoever counts needs no lock, and nobody has to come by to clear what is old. A count costs one
 * exchange of that word, so count runs of tokens, not tokens.
 */
#ifndef IRON_STORE_METER_H
#define IRON_STORE_METER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define IRON_METER_QUARTER_NS UINT64_C(250000000)
#define IRON_METER_SLOTS      16u

/* All zeros: nothing came. */
typedef struct iron__meter {
    atomic_uint_fast64_t slots[IRON_METER_SLOTS];
} iron__meter;

/* True if they are the first of their quarter: a rate that was 0 may be none now. */
bool iron__meter_add(iron__meter *meter, uint64_t now_ns, uint64_t tokens);
/* Tokens a second; 0 when the last ones came two seconds and a quarter ago, or earlier. */
double iron__meter_rate(const iron__meter *meter, uint64_t now_ns);

#endif
