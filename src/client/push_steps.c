/* SPDX-License-Identifier: MIT */
/* push_steps.c: see push_steps.h. */
#include "client/push_steps.h"

#define FIRST_PAUSE_MS UINT64_C(200)
#define PAUSE_MAX_MS   UINT64_C(30000)
#define ASKED_MAX_S    UINT64_C(300)

/* 408: the network was slow this time. 502 and 504 are a proxy's, whose server is away. A server
 * that no longer writes says 503 too, and will until somebody restarts it. */
bool iron__push_is_passing(const iron__push_answer *answer) {
    switch (answer->status) {
    case 0:
        return answer->is_lost;
    case 408:
    case 429:
    case 502:
    case 504:
        return true;
    case 503:
        return !answer->is_read_only;
    default:
        return answer->status >= 500 && answer->has_retry_after;
    }
}

/* No answer, or one of somebody who does not know either. */
bool iron__push_is_unsure(const iron__push_answer *answer) {
    return answer->status == 0 || (answer->status >= 500 && answer->status != 503);
}

iron__push_step iron__push_after_feed(const iron__push_answer *answer,
                                      const iron__push_piece *piece) {
    if (answer->status == 200 && answer->has_engine)
        return answer->engine.tokens == piece->at + piece->tokens ? IRON_PUSH_GO_ON
                                                                  : IRON_PUSH_FOREIGN;
    /* the position: ours from a request whose answer was lost, or somebody else's */
    if (answer->status == 409 || iron__push_is_passing(answer))
        return IRON_PUSH_AGAIN;
    return IRON_PUSH_REFUSED;
}

iron__push_step iron__push_after_asking(const iron__push_answer *answer,
                                        const iron__push_piece *piece) {
    if (answer->status == 200 && answer->has_engine) {
        if (answer->engine.tokens == piece->at + piece->tokens)
            return IRON_PUSH_GO_ON;
        return answer->engine.tokens == piece->at ? IRON_PUSH_SEND : IRON_PUSH_FOREIGN;
    }
    return iron__push_is_passing(answer) ? IRON_PUSH_AGAIN : IRON_PUSH_REFUSED;
}

uint64_t iron__push_pause_ms(uint32_t attempt, uint64_t dice, uint64_t retry_after_s) {
    uint64_t asked = 1000 * (retry_after_s < ASKED_MAX_S ? retry_after_s : ASKED_MAX_S);
    uint64_t pause = attempt > 8 ? PAUSE_MAX_MS : FIRST_PAUSE_MS << (attempt - 1);

    pause = pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS;
    pause -= dice % (pause / 2);
    return pause > asked ? pause : asked;
}
