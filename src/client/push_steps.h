/* SPDX-License-Identifier: MIT */
/*
 * push_steps.h: what to do after each answer, as functions of the answer alone: no network, no
 * clock. push.c does what they say.
 *
 *     send a piece ── in ──────────────────────────────> the next piece
 *          ^  └─ nobody knows, or later: pause, ask ┐
 *          │                                        v
 *          └── at its beginning ── where is the engine? ── at its end ──> whose? ──> the next piece
 *                                         └─ elsewhere: somebody else feeds it: give up
 *
 * A piece is sent with the position that it belongs to, so the server takes it there or not at all:
 * sending it again can never feed it twice.
 */
#ifndef IRON_CLIENT_PUSH_STEPS_H
#define IRON_CLIENT_PUSH_STEPS_H

#include "client/push_answer.h"
#include "client/push_plan.h"

typedef enum iron__push_step {
    IRON_PUSH_SEND,    /* the piece, once more */
    IRON_PUSH_GO_ON,   /* it is in */
    IRON_PUSH_AGAIN,   /* pause, then ask where the engine stands */
    IRON_PUSH_REFUSED, /* for good; the answer's words say why */
    IRON_PUSH_FOREIGN  /* somebody else feeds this engine */
} iron__push_step;

/* May the same request be answered otherwise later? */
bool iron__push_is_passing(const iron__push_answer *answer);

/* May a piece that was answered so have been taken? */
bool iron__push_is_unsure(const iron__push_answer *answer);

iron__push_step iron__push_after_feed(const iron__push_answer *answer,
                                      const iron__push_piece *piece);
iron__push_step iron__push_after_asking(const iron__push_answer *answer,
                                        const iron__push_piece *piece);

/* Before attempt 1, 2, ...: twice as long each time up to half a minute, of which `dice` takes off
 * up to a half, so that clients that were cut off together do not come back together; and never
 * less than the server asked for (up to five minutes). */
uint64_t iron__push_pause_ms(uint32_t attempt, uint64_t dice, uint64_t retry_after_s);

#endif
