/* SPDX-License-Identifier: MIT */
/*
 * plan.c: makes the plan: for every op that a glob touches its cases (plan_cases.c), for every case
 * and device those who could race over it (plan_rows.c); and says what is not here, and why.
 */
#include "arena/planning.h"

#include "arena/plan_devices.h"
#include "arena/select.h"
#include "arena/select_params.h"
#include "core/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REMARKS_MAX 32u

const char *iron__plan_memory_name(const iron__plan_row *row) {
    return row->memory == IRON_GPU_STRATEGIES ? "host" : iron__gpu_strategy_name(row->memory);
}

void *iron__plan_grow(void *array, size_t count, size_t *room, size_t size, iron_error *err) {
    size_t more = *room ? 2 * *room : 32;
    void *grown;

    if (count < *room)
        return array;
    grown = realloc(array, more * size);
    if (!grown) {
        iron__fail(err, IRON_E_NOMEM, 0, "out of memory: a plan of %zu rows", more);
        return NULL;
    }
    *room = more;
    return grown;
}

static void remark(iron__plan *plan, const char *what, const char *reason) {
    bool is_said = strncmp(reason, what, strlen(what)) == 0; /* many reasons begin with the name */

    if (plan->remark_count < REMARKS_MAX)
        snprintf(plan->remarks[plan->remark_count++], sizeof plan->remarks[0], "%s%s%s",
                 is_said ? "" : what, is_said ? "" : ": ", reason);
}

/* Asks with every name that it could have. */
bool iron__plan_touches(const iron__planning *p, const iron__plan_device *d) {
    iron__contender c;
    iron__peer_entry e;
    bool is_any = false;
    char name[80];

    for (size_t k = 0; p->op->contender_at(k, &c); k++) {
        if (!(c.backends & d->on))
            continue;
        snprintf(name, sizeof name, "%s.%s.%s", p->op->name, d->backend, c.name);
        is_any = iron__plan_chooses(p, name) || is_any;
    }
    for (size_t k = 0; iron__peers_at(p->plan->peers, k, &e); k++)
        if (iron__plan_has_peer(e.row, p->op, d))
            is_any = iron__plan_chooses(p, e.row->name) || is_any;
    return is_any;
}

/* Does any glob choose something of the op? */
static bool is_touched(const iron__planning *p) {
    bool is_any = false;

    for (size_t d = 0; d < p->plan->device_count; d++)
        is_any = iron__plan_touches(p, &p->plan->devices[d]) || is_any;
    return is_any;
}

/* The names of the axes that the chosen ops have. */
static void list_axes(iron__planning *p, char *text, size_t size) {
    size_t used = 0;

    text[0] = '\0';
    for (size_t k = 0; (p->op = p->plan->op_at(k)); k++)
        for (size_t a = 0; is_touched(p) && a < p->op->axis_count && used < size; a++)
            used += (size_t)snprintf(text + used, size - used, "%s%s (%s)", used > 0 ? ", " : "",
                                     p->op->axes[a].name, p->op->name);
}

/* The types of elements that the chosen ops have. */
static void list_types(iron__planning *p, char *text, size_t size) {
    size_t used = 0;

    text[0] = '\0';
    for (size_t k = 0; (p->op = p->plan->op_at(k)); k++) {
        if (!is_touched(p))
            continue;
        for (iron__element e = 0; e < IRON_ELEMENTS && used < size; e++)
            if (p->op->elements & IRON_BIT(e))
                used += (size_t)snprintf(text + used, size - used, "%s ", iron__element_name(e));
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, "(%s) ", p->op->name);
    }
    if (used > 0 && used < size)
        text[used - 1] = '\0';
}

/* Sizes and types were asked for that no chosen op has. */
static iron_status refuse_cases(iron__planning *p, iron_error *err) {
    const iron_arena_options *o = p->o;
    char types[160];

    list_types(p, types, sizeof types);
    IRON_FAIL(err, IRON_E_ARG,
              "no chosen op has %s%.40s%s%s%.10s; iron arena --list shows sizes, types are %s",
              o->sizes ? "size " : "", o->sizes ? o->sizes : "",
              o->sizes && o->dtype ? " with " : "", o->dtype ? "dtype " : "",
              o->dtype ? o->dtype : "", types);
}

static iron_status check_used(iron__planning *p, iron_error *err) {
    const iron_arena_options *o = p->o;
    char names[160];

    for (size_t k = 0; k < o->glob_count; k++)
        IRON_FAIL_IF(!p->is_used[k], err, IRON_E_ARG,
                     "no contender matches '%.60s'; iron arena --list shows them all", o->globs[k]);
    for (size_t k = 0; k < o->param_count; k++) {
        if (p->is_known[k])
            continue;
        list_axes(p, names, sizeof names);
        IRON_FAIL(err, IRON_E_ARG, "no chosen op has the parameter '%.*s'; they have %s",
                  (int)(strcspn(o->params[k], "=") < 40 ? strcspn(o->params[k], "=") : 40),
                  o->params[k], names[0] ? names : "none");
    }
    return IRON_OK;
}

static iron_status add_ops(iron__planning *p, iron_error *err) {
    bool is_touched_any = false;

    for (size_t k = 0; (p->op = p->plan->op_at(k)); k++) {
        if (!is_touched(p))
            continue;
        is_touched_any = true;
        IRON_TRY(iron__plan_cases(p, err));
    }
    IRON_TRY(check_used(p, err));
    IRON_FAIL_IF(!is_touched_any, err, IRON_E_UNSUPPORTED, "this build has no ops to race");
    if (p->plan->case_count == 0)
        return refuse_cases(p, err);
    IRON_FAIL_IF(p->plan->row_count == 0 && p->passed_over, err, IRON_E_UNSUPPORTED,
                 "nobody can race: %.200s", p->passed_over->reason);
    IRON_FAIL_IF(p->plan->row_count == 0, err, IRON_E_ARG,
                 "no chosen contender is for these cases; use other globs, or another --param or "
                 "--memory");
    return IRON_OK;
}

static void add_remarks(iron__plan *plan) {
    iron__peer_absence absence;

    for (size_t k = 0; k < plan->device_count; k++)
        if (!plan->devices[k].is_there)
            remark(plan, plan->devices[k].backend, plan->devices[k].reason);
    for (size_t k = 0; iron__peers_absent_at(plan->peers, k, &absence); k++)
        remark(plan, absence.path[0] ? absence.path : "peers", absence.reason);
}

static iron_status fill(iron__planning *p, iron_error *err) {
    iron_cpu_info cpu = {.struct_size = sizeof cpu};

    IRON_TRY(iron__select_memory(p->o->memory, &p->memory, err));
    IRON_TRY(iron__select_scopes(p->o->scopes, &p->scopes, err));
    IRON_FAIL_IF(p->o->dtype && iron__element_find(p->o->dtype) == IRON_ELEMENTS, err, IRON_E_ARG,
                 "dtype '%.20s' is unknown; use f32, f64, u8, u16 or u32", p->o->dtype);
    IRON_TRY(iron__params_check(p->o->params, p->o->param_count, err));
    IRON_TRY(iron__peers_open(&p->plan->peers, err));
    p->plan->remarks = calloc(REMARKS_MAX, sizeof p->plan->remarks[0]);
    IRON_FAIL_IF(!p->plan->remarks, err, IRON_E_NOMEM, "out of memory: a plan");
    p->plan->device_count = iron__plan_devices(p->o, p->plan->devices);
    if (iron_cpu_describe(&cpu, NULL) == IRON_OK)
        p->plan->host_bytes = cpu.memory_bytes;
    IRON_TRY(add_ops(p, err));
    iron__plan_pass_over_slow(p);
    add_remarks(p->plan);
    return IRON_OK;
}

iron_status iron__plan_make(iron__plan *plan, const iron_arena_options *options,
                            iron__op_lister op_at, iron_error *err) {
    iron__planning p = {.plan = plan, .o = options};
    iron_status status;

    *plan = (iron__plan){.op_at = op_at};
    p.is_used = calloc(options->glob_count + options->param_count + 1, sizeof *p.is_used);
    if (!p.is_used)
        return iron__fail(err, IRON_E_NOMEM, 0, "out of memory: a plan");
    p.is_known = p.is_used + options->glob_count;
    status = fill(&p, err);
    free(p.is_used);
    if (status != IRON_OK)
        iron__plan_deinit(plan);
    return status;
}

void iron__plan_deinit(iron__plan *plan) {
    iron__peers_close(plan->peers);
    free(plan->cases);
    free(plan->rows);
    free(plan->remarks);
    *plan = (iron__plan){.peers = NULL};
}
