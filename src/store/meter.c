/* SPDX-License-Identifier: MIT */
/*
 * meter.c: see meter.h. A word has the count in its lower 40 bits (a thousand times what memory can
 * deliver in a quarter) and in its upper 24 the number of times that the quarters have gone round
 * the slots, which repeats after two years.
 */
#include "store/meter.h"

#define COUNT_BITS 40u
#define COUNT_MAX  ((UINT64_C(1) << COUNT_BITS) - 1)
#define QUARTERS   8u /* that a rate looks at */

static uint64_t round_of(uint64_t quarter) { return quarter / IRON_METER_SLOTS << COUNT_BITS; }

static uint64_t count_in(uint64_t word, uint64_t quarter) {
    return (word & ~COUNT_MAX) == round_of(quarter) ? word & COUNT_MAX : 0;
}

bool iron__meter_add(iron__meter *meter, uint64_t now_ns, uint64_t tokens) {
    uint64_t quarter = now_ns / IRON_METER_QUARTER_NS, before;
    atomic_uint_fast64_t *slot = &meter->slots[quarter % IRON_METER_SLOTS];
    uint_fast64_t word = atomic_load_explicit(slot, memory_order_relaxed), next;

    if (tokens == 0)
        return false;
    do {
        before = count_in(word, quarter);
        next = round_of(quarter) | (tokens < COUNT_MAX - before ? before + tokens : COUNT_MAX);
    } while (!atomic_compare_exchange_weak_explicit(slot, &word, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    return before == 0;
}

static double count_of(const iron__meter *meter, uint64_t quarter) {
    const atomic_uint_fast64_t *slot = &meter->slots[quarter % IRON_METER_SLOTS];

    return (double)count_in(atomic_load_explicit(slot, memory_order_relaxed), quarter);
}

/* The oldest quarter leaves as the present one passes: a rate has no steps. */
double iron__meter_rate(const iron__meter *meter, uint64_t now_ns) {
    uint64_t now = now_ns / IRON_METER_QUARTER_NS;
    double passed = (double)(now_ns % IRON_METER_QUARTER_NS) / (double)IRON_METER_QUARTER_NS;
    double tokens = 0;

    for (uint64_t k = 0; k < QUARTERS && k <= now; k++)
        tokens += count_of(meter, now - k);
    if (now >= QUARTERS)
        tokens += (1 - passed) * count_of(meter, now - QUARTERS);
    return tokens * 1e9 / (double)(QUARTERS * IRON_METER_QUARTER_NS);
}
