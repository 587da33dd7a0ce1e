/* SPDX-License-Identifier: MIT */
/*
 * params.c: see params.h. Values are compared as they are written: a report on disk has nine
 * digits, and a race of now must find itself in it.
 */
#include "arena/params.h"

#include <stdio.h>
#include <string.h>

#define WHOLE_MAX 9007199254740992.0 /* 2^53: up to it, doubles have every whole number */

/* The next one, with its name; NULL: there is no room, which the ops' tests would have told. */
static iron__param *add(iron__params *params, const char *name, bool is_axis) {
    iron__param *p = &params->list[params->count];

    if (params->count == IRON_PARAMS_MAX)
        return NULL;
    params->count++;
    snprintf(p->name, sizeof p->name, "%s", name);
    p->is_axis = is_axis;
    return p;
}

iron__params iron__params_of(const iron__case *c) {
    iron__params all = {.count = 0};
    const char *name = "";
    double value = 0;

    for (size_t k = 0; k < c->op->axis_count; k++) {
        const iron__axis *axis = &c->op->axes[k];
        iron__param *p = add(&all, axis->name, true);

        if (p && axis->words)
            snprintf(p->word, sizeof p->word, "%s", axis->words[(size_t)c->at[k]]);
        else if (p)
            p->number = c->at[k];
    }
    for (size_t k = 0; c->op->param_at && c->op->param_at(c, k, &name, &value); k++) {
        iron__param *p = add(&all, name, false);

        if (!p)
            break;
        p->number = value;
    }
    return all;
}

bool iron__number_is_whole(double number) {
    return number >= -WHOLE_MAX && number <= WHOLE_MAX && (double)(int64_t)number == number;
}

iron__param_value iron__param_number(double number) {
    iron__param_value v;

    /* what is added to a negative zero takes its sign away */
    snprintf(v.text, sizeof v.text, iron__number_is_whole(number) ? "%.0f" : "%.9g", number + 0.0);
    return v;
}

iron__param_value iron__param_text(const iron__param *param) {
    iron__param_value v;

    if (!param->word[0])
        return iron__param_number(param->number);
    snprintf(v.text, sizeof v.text, "%s", param->word);
    return v;
}

static const iron__param *find(const iron__params *params, const char *name) {
    for (size_t k = 0; k < params->count; k++)
        if (strcmp(params->list[k].name, name) == 0)
            return &params->list[k];
    return NULL;
}

bool iron__params_are_same(const iron__params *a, const iron__params *b) {
    if (a->count != b->count)
        return false;
    for (size_t k = 0; k < a->count; k++) {
        const iron__param *other = find(b, a->list[k].name);

        if (!other || strcmp(iron__param_text(&a->list[k]).text, iron__param_text(other).text) != 0)
            return false;
    }
    return true;
}

static iron__params_line line_of(const iron__params *params, bool is_axis) {
    iron__params_line line = {""};
    size_t used = 0;

    for (size_t k = 0; k < params->count; k++) {
        const iron__param *p = &params->list[k];

        if (p->is_axis != is_axis)
            continue;
        snprintf(line.text + used, sizeof line.text - used, "%s%s %s", used > 0 ? ", " : "",
                 p->name, iron__param_text(p).text);
        used = strlen(line.text);
    }
    return line;
}

iron__params_line iron__params_axes(const iron__params *params) { return line_of(params, true); }

iron__params_line iron__params_facts(const iron__params *params) { return line_of(params, false); }
