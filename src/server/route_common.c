/* SPDX-License-Identifier: MIT */
/* route_common.c: what several routes share; see route.h. */
#include "server/route.h"
#include "server/route_text.h"

#include <inttypes.h>

iron__kept *iron__route_engine(iron__exchange *x, const char *name) {
    iron__kept *kept;

    if (!iron__engine_name_is_valid(name)) {
        iron__answer_problem(x, "bad-name",
                             "A name has 1 to 64 letters, digits, '.', '_' and '-' and begins with "
                             "a letter or a digit.",
                             "'%.80s' is no engine's name", name);
        return NULL;
    }
    kept = iron__store_find(x->site->store, name);
    if (!kept)
        iron__answer_problem(x, "no-such-engine",
                             "GET /v1/engines lists the engines; POST /v1/engines makes one.",
                             "there is no engine named %s", name);
    return kept;
}

/* A write that failed, one that was refused since the server stops, or something else. */
static void io_failure(iron__exchange *x, const iron_error *err) {
    iron_error why = {0};

    if (iron__store_failure(x->site->store, &why) != IRON_OK) {
        iron__answer_problem(x, "read-only",
                             "It was not acknowledged. The operator must see to the data directory "
                             "and start the server again; then look whether it was done.",
                             "%s", why.text);
    } else if (atomic_load(&x->site->is_stopping)) {
        iron__answer_problem(x, "stopping", "Try again when the server is back.",
                             "the server is being stopped");
    } else {
        iron__answer_problem(x, "internal", "The server's log may say more.", "%s", err->text);
    }
}

void iron__route_failure(iron__exchange *x, const iron_error *err) {
    switch (err->status) {
    case IRON_E_IO:
        io_failure(x, err);
        break;
    case IRON_E_FORMAT:
        iron__answer_problem(x, "damaged",
                             "What is stored is not what was written: see to the disk, and restore "
                             "the data directory from a copy.",
                             "%s", err->text);
        break;
    case IRON_E_NOMEM:
        iron__answer_problem(x, "busy", "Nothing was changed. Try again.", "%s", err->text);
        break;
    case IRON_E_UNSUPPORTED:
        iron__answer_problem(x, "backend-unavailable", "GET /v1/info says which backends are here.",
                             "%s", err->text);
        break;
    default:
        iron__answer_problem(x, "internal", "The server's log may say more.", "%s", err->text);
    }
}

bool iron__route_number(iron__exchange *x, const char *name, uint64_t min, uint64_t max,
                        uint64_t *value) {
    const char *text = iron__exchange_query(x, name);
    uint64_t number;

    if (!text)
        return true;
    if (iron__text_number(text, &number) && number >= min && number <= max) {
        *value = number;
        return true;
    }
    iron__answer_problem(x, "bad-query", "Give a whole number in plain decimal digits.",
                         "%s is '%.40s'; it must be %" PRIu64 " to %" PRIu64, name, text, min, max);
    return false;
}
