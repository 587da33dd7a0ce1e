/* SPDX-License-Identifier: MIT */
/*
 * route_batches.c: GET /v1/engines/{name}/batches: an engine's history, a page at a time.
 */
#include "server/route.h"

#include <inttypes.h>
#include <stdlib.h>

#define LIMIT_DEFAULT 1000u
#define LIMIT_MAX     10000u

static void write_row(iron__json_writer *j, const iron__batch_row *row) {
    char xors[9], sum[21];

    snprintf(xors, sizeof xors, "%08" PRIx32, row->xors);
    snprintf(sum, sizeof sum, "%" PRIu64, row->sum);
    iron__json_write_open(j, NULL, '{');
    iron__json_write_whole(j, "batch", row->batch);
    iron__json_write_whole(j, "position", row->position);
    iron__json_write_whole(j, "tokens", row->tokens);
    iron__json_write_text(j, "xor", xors);
    iron__json_write_text(j, "sum", sum);
    iron__json_write_close(j, '}');
}

/* A page that starts past the end is empty; its next one starts there too, so that a client that
 * waits for more asks for the right ones. */
static void answer_page(iron__exchange *x, const iron__batch_row *rows, size_t count,
                        uint64_t since, uint64_t total) {
    iron__json_writer *j = iron__answer_json(x);
    uint64_t next = since + count;

    iron__json_write_open(j, NULL, '{');
    iron__json_write_open(j, "batches", '[');
    for (size_t k = 0; k < count; k++)
        write_row(j, &rows[k]);
    iron__json_write_close(j, ']');
    iron__json_write_whole(j, "next", next);
    iron__json_write_whole(j, "total", total > next || count == 0 ? total : next);
    iron__json_write_close(j, '}');
    iron__answer_json_end(x, 200);
}

static void read_page(iron__exchange *x, iron__kept *kept, uint64_t since, size_t limit) {
    iron__batch_row *rows = calloc(limit, sizeof *rows);
    iron_error err = {IRON_E_NOMEM, 0, "out of memory: a page of batches"};
    iron__kept_view view;
    size_t count = 0;
    iron_status status = IRON_E_NOMEM;

    iron__kept_look(kept, &view);
    if (rows)
        status = iron__kept_batches(kept, since, rows, limit, &count, &err);
    if (status == IRON_OK)
        answer_page(x, rows, count, since, view.batches);
    else if (status == IRON_E_STATE)
        iron__answer_problem(x, "no-such-engine", "GET /v1/engines lists the engines.",
                             "%s was deleted while its batches were read", x->variable);
    else
        iron__route_failure(x, &err);
    free(rows);
}

void iron__route_batches(iron__exchange *x) {
    uint64_t since = 0, limit = LIMIT_DEFAULT;
    iron__kept *kept;

    if (!iron__route_number(x, "since", 0, UINT64_MAX, &since) ||
        !iron__route_number(x, "limit", 1, LIMIT_MAX, &limit))
        return;
    kept = iron__route_engine(x, x->variable);
    if (kept)
        read_page(x, kept, since, (size_t)limit);
    iron__kept_release(kept);
}
