/* SPDX-License-Identifier: MIT */
/* route_tickets.c: POST /v1/tickets: leave to look at the report once, by a link; see tickets.h. */
#include "server/route.h"

#include "core/clock.h"

void iron__route_ticket(iron__exchange *x) {
    char text[IRON_TICKET_TEXT];
    iron__json_writer *j;

    if (!iron__tickets_issue(&x->site->tickets, iron__clock_ns(), text)) {
        iron__answer_problem(x, "internal", "Try again a little later.",
                             "the system gives no random bytes");
        return;
    }
    j = iron__answer_json(x);
    iron__json_write_open(j, NULL, '{');
    iron__json_write_text(j, "ticket", text);
    iron__json_write_whole(j, "seconds", IRON_TICKET_SECONDS);
    iron__json_write_close(j, '}');
    iron__answer_json_end(x, 201);
}
