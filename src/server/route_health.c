/* SPDX-License-Identifier: MIT */
/*
 * route_health.c: whether the process is alive, and whether it takes feeds. The first touches
 * nothing: it is answered also while everything else waits for a disk.
 */
#include "server/route.h"

static void answer_status(iron__exchange *x, const char *word) {
    iron__json_writer *j = iron__answer_json(x);

    iron__json_write_open(j, NULL, '{');
    iron__json_write_text(j, "status", word);
    iron__json_write_close(j, '}');
    iron__answer_json_end(x, 200);
}

/* Says beforehand whether a token will be wanted: a page need not run into a 401 to know. */
void iron__route_health(iron__exchange *x) {
    if (x->site->options.token_file)
        iron__answer_header(x, "WWW-Authenticate", "Bearer");
    answer_status(x, "ok");
}

void iron__route_ready(iron__exchange *x) {
    iron_error why = {0};
    bool is_stopping = atomic_load(&x->site->is_stopping);

    if (is_stopping || iron__store_failure(x->site->store, &why) != IRON_OK)
        iron__route_failure(x, &(iron_error){IRON_E_IO, 0, "the store takes no writes"});
    else
        answer_status(x, "ready");
}
