/* SPDX-License-Identifier: MIT */
/* route_metrics.c: GET /metrics: gathers the figures of site, store and engines. */
#include "server/route_metrics.h"
#include "server/route.h"

#include "core/clock.h"

#include <stdlib.h>

/* What is published of each engine. NULL: there is no memory. */
static iron__kept_view *look_at_all(iron__site *site, size_t *count) {
    size_t room = site->options.max_engines, there;
    iron__kept **engines = calloc(room + 1, sizeof(iron__kept *));
    iron__kept_view *views = NULL;

    if (!engines)
        return NULL;
    there = iron__store_list(site->store, engines, room);
    *count = there < room ? there : room;
    views = calloc(*count + 1, sizeof *views);
    for (size_t k = 0; k < *count; k++) {
        if (views)
            iron__kept_look(engines[k], &views[k]);
        iron__kept_release(engines[k]);
    }
    free((void *)engines);
    return views;
}

static bool write_all(iron__site *site, char **text, size_t *bytes) {
    iron__metrics m = {.site = site};
    iron__kept_view *views = look_at_all(site, &m.engine_count);
    FILE *to = views ? open_memstream(text, bytes) : NULL;
    bool is_good = to != NULL;

    if (is_good) {
        m.engines = views;
        m.uptime_seconds = (double)(iron__clock_ns() - site->started_ns) * 1e-9;
        m.is_read_only = iron__store_failure(site->store, NULL) != IRON_OK;
        iron__store_count(site->store, &m.counts);
        iron__store_weigh(site->store, &m.disk);
        iron__process_look(&m.process);
        m.log_lines = iron__log_lines(site->log);
        m.log_dropped = iron__log_dropped(site->log);
        iron__metrics_write(to, &m);
        is_good = !ferror(to);
        is_good = fclose(to) == 0 && is_good;
    }
    free(views);
    return is_good;
}

void iron__route_metrics(iron__exchange *x) {
    char *text = NULL;
    size_t bytes = 0;

    if (write_all(x->site, &text, &bytes)) {
        iron__answer_bytes(x, 200, "text/plain; version=0.0.4; charset=utf-8", text, bytes);
        return;
    }
    free(text);
    iron__route_failure(x, &(iron_error){IRON_E_NOMEM, 0, "out of memory: the figures"});
}
