/* SPDX-License-Identifier: MIT */
/*
 * route_engines.c: making, listing, showing and deleting engines. What is answered was published by
 * the store: it can no longer be lost.
 */
#include "server/route.h"
#include "server/route_plan.h"
#include "server/route_text.h"

#include <stdlib.h>
#include <string.h>

static void answer_engine(iron__exchange *x, iron__kept *kept, unsigned status) {
    iron__json_writer *j = iron__answer_json(x);
    iron__kept_view view;

    iron__kept_look(kept, &view);
    iron__json_write_open(j, NULL, '{');
    iron__write_engine(j, &view);
    iron__json_write_close(j, '}');
    iron__answer_json_end(x, status);
}

void iron__route_list(iron__exchange *x) {
    size_t room = x->site->options.max_engines, count;
    iron__kept **engines = calloc(room + 1, sizeof(iron__kept *));
    iron__json_writer *j;

    if (!engines) {
        iron__route_failure(x, &(iron_error){IRON_E_NOMEM, 0, "out of memory: a list of engines"});
        return;
    }
    count = iron__store_list(x->site->store, engines, room);
    j = iron__answer_json(x);
    iron__json_write_open(j, NULL, '{');
    iron__json_write_open(j, "engines", '[');
    for (size_t k = 0; k < count && k < room; k++) {
        iron__kept_view view;

        iron__kept_look(engines[k], &view);
        iron__json_write_open(j, NULL, '{');
        iron__write_engine(j, &view);
        iron__json_write_close(j, '}');
        iron__kept_release(engines[k]);
    }
    iron__json_write_close(j, ']');
    iron__json_write_close(j, '}');
    iron__answer_json_end(x, 200);
    free((void *)engines);
}

static void refuse_plan(iron__exchange *x, const char *kind, const iron_error *err) {
    const char *help = "GET /openapi.json has the schema, Plan.";

    if (strcmp(kind, "bad-name") == 0)
        help = "A name has 1 to 64 letters, digits, '.', '_' and '-' and begins with a letter or a "
               "digit.";
    iron__answer_problem(x, kind, help, "%s", err->text);
}

static void refuse_engine(iron__exchange *x, const iron__plan *plan, const iron_error *err) {
    switch (err->status) {
    case IRON_E_STATE:
        iron__answer_problem(x, "engine-exists",
                             "Choose another name, or delete the engine that has it.",
                             "there is an engine named %s already", plan->name);
        break;
    case IRON_E_ARG:
        refuse_plan(x, "bad-configuration", err);
        break;
    case IRON_E_NOMEM:
        iron__answer_problem(x, "too-many-engines",
                             "Delete engines that are not needed, or ask for fewer nodes; "
                             "GET /v1/info has the limits.",
                             "%s", err->text);
        break;
    default:
        iron__route_failure(x, err);
    }
}

void iron__route_create(iron__exchange *x) {
    iron_error err = {0};
    iron__kept *kept = NULL;
    const char *kind;
    iron__plan plan;
    char location[sizeof "/v1/engines/" + IRON_ENGINE_NAME_MAX];

    if (iron__plan_parse(x->body, x->body_bytes, &plan, &kind, &err) != IRON_OK) {
        if (err.status == IRON_E_NOMEM)
            iron__route_failure(x, &err);
        else
            refuse_plan(x, kind, &err);
        return;
    }
    if (iron__store_create(x->site->store, &plan, &kept, &err) != IRON_OK) {
        refuse_engine(x, &plan, &err);
        return;
    }
    snprintf(location, sizeof location, "/v1/engines/%s", plan.name);
    iron__answer_header(x, "Location", location);
    answer_engine(x, kept, 201);
    iron__kept_release(kept);
}

void iron__route_show(iron__exchange *x) {
    iron__kept *kept = iron__route_engine(x, x->variable);

    if (kept)
        answer_engine(x, kept, 200);
    iron__kept_release(kept);
}

void iron__route_delete(iron__exchange *x) {
    iron__kept *kept = iron__route_engine(x, x->variable);
    iron_error err = {0};

    if (!kept)
        return;
    if (iron__store_delete(x->site->store, kept, &err) == IRON_OK)
        iron__answer_empty(x, 204);
    else if (err.status == IRON_E_STATE)
        iron__answer_problem(x, "no-such-engine", "There is nothing left to do.",
                             "%s was deleted a moment ago", x->variable);
    else
        iron__route_failure(x, &err);
    iron__kept_release(kept);
}
