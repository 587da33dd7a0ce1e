/* SPDX-License-Identifier: MIT */
/*
 * plan_cases.c: what is raced over: every size asked for, with every combination of values of the
 * op's axes. A combination that the op cannot do at that size is passed over, as long as every
 * value that was asked for by name is in another that it can.
 */
#include "arena/planning.h"
#include "arena/select.h"
#include "arena/select_params.h"
#include "core/fail.h"

#include <string.h>

/* More than anybody waits for. */
#define CASES_MAX 4096u

/* The values that the op is raced with, a list an axis. */
typedef struct grid {
    iron__axis_values axes[IRON_OP_AXES];
    size_t count; /* of combinations */
} grid;

/* The element type for a size; IRON_ELEMENTS: the op does not know what was asked for. */
static iron__element element_for(const iron__planning *p, const iron__chosen_size *size) {
    iron__element e = p->op->usual;

    if (p->o->dtype)
        e = iron__element_find(p->o->dtype);
    else if (size->dtype)
        e = iron__element_find(size->dtype);
    return e < IRON_ELEMENTS && (p->op->elements & IRON_BIT(e)) ? e : IRON_ELEMENTS;
}

/* Caches of the devices that take part decide how large the usual size must be. */
static void usual_size(const iron__planning *p, iron__chosen_size *size) {
    uint64_t cache = 0;
    bool has_gpu = false;
    iron__element element = element_for(p, size);

    for (size_t k = 0; k < p->plan->device_count; k++) {
        const iron__plan_device *d = &p->plan->devices[k];

        if (!d->is_there || !iron__plan_touches(p, d))
            continue;
        has_gpu = has_gpu || d->info.is_gpu;
        cache = d->cache_bytes > cache ? d->cache_bytes : cache;
    }
    p->op->usual_size(cache, has_gpu, element < IRON_ELEMENTS ? element : p->op->usual, &size->rows,
                      &size->cols);
}

/* Without a glob a race is over everything, and each axis has its telling value alone. */
static iron_status make_grid(const iron__planning *p, grid *g, iron_error *err) {
    const iron_arena_options *o = p->o;
    bool is_wide = o->glob_count > 0 && !o->is_listing;

    *g = (grid){.count = 1};
    for (size_t k = 0; k < p->op->axis_count; k++) {
        const iron__axis *axis = &p->op->axes[k];

        IRON_TRY(
            iron__select_values(p->op, axis, o->params, o->param_count, is_wide, &g->axes[k], err));
        g->count *= g->axes[k].count;
        for (size_t n = 0; n < o->param_count; n++)
            p->is_known[n] = p->is_known[n] || iron__param_is_of(o->params[n], axis);
    }
    return IRON_OK;
}

/* Which value of its last axis combination number *index has; *index becomes that of the axes
 * before it. The last axis changes fastest. */
static size_t take_last(const iron__axis_values *axis, size_t *index) {
    size_t count = axis->count > 0 ? axis->count : 1, at = *index % count;

    *index /= count;
    return at;
}

static void place(const grid *g, size_t index, iron__case *c) {
    for (size_t k = c->op->axis_count; k-- > 0;)
        c->at[k] = g->axes[k].at[take_last(&g->axes[k], &index)];
}

/* An op whose race is about kernels times them alone, unless it is told what. */
static uint32_t scopes_of(const iron__planning *p) {
    return p->op->is_resident && !p->o->scopes ? IRON_BIT(IRON_SCOPE_KERNEL) : p->scopes;
}

static iron_status add_case(iron__planning *p, const iron__chosen_size *size, const iron__case *c,
                            iron_error *err) {
    iron__plan *plan = p->plan;
    iron__plan_case *cases =
        iron__plan_grow(plan->cases, plan->case_count, &plan->case_room, sizeof *cases, err);
    iron__plan_case *added;

    if (!cases)
        return IRON_E_NOMEM;
    plan->cases = cases;
    IRON_FAIL_IF(plan->case_count == CASES_MAX, err, IRON_E_ARG,
                 "more than %u cases; use fewer sizes or values", CASES_MAX);
    added = &cases[plan->case_count++];
    *added = (iron__plan_case){.c = *c, .scopes = scopes_of(p), .params = iron__params_of(c)};
    memcpy(added->size_name, size->name, sizeof added->size_name);
    iron__size_text(p->op, size->rows, size->cols, added->size, sizeof added->size);
    added->axes = iron__params_axes(&added->params);
    return iron__plan_rows(p, plan->case_count - 1, err);
}

/* Which values of each axis a case was planned for. */
typedef struct served {
    bool is_any, values[IRON_OP_AXES][IRON_AXIS_VALUES_MAX];
} served;

static void serve(served *s, const grid *g, size_t axis_count, size_t index) {
    s->is_any = true;
    for (size_t k = axis_count; k-- > 0;)
        s->values[k][take_last(&g->axes[k], &index)] = true;
}

/* What was asked for by name must be in some case, and some case there must be. If not, the op says
 * why. */
static iron_status check_served(const served *s, const grid *g, iron__case c, iron_error *err) {
    place(g, 0, &c);
    if (!s->is_any)
        return c.op->accept(&c, err);
    for (size_t k = 0; k < c.op->axis_count; k++)
        for (size_t v = 0; g->axes[k].is_asked && v < g->axes[k].count; v++) {
            if (s->values[k][v])
                continue;
            c.at[k] = g->axes[k].at[v];
            return c.op->accept(&c, err);
        }
    return IRON_OK;
}

static iron_status add_grid(iron__planning *p, const grid *g, const iron__chosen_size *size,
                            iron__element element, iron_error *err) {
    iron__case c = {.op = p->op,
                    .rows = size->rows,
                    .cols = size->cols,
                    .element = element,
                    .seed = p->o->seed};
    served s = {.is_any = false};
    iron_error why;

    if (p->op->vocab_usual && element == IRON_U32)
        c.vocab = p->o->vocab ? p->o->vocab : p->op->vocab_usual;
    for (size_t k = 0; k < g->count; k++) {
        place(g, k, &c);
        if (p->op->accept(&c, &why) != IRON_OK)
            continue;
        IRON_TRY(add_case(p, size, &c, err));
        serve(&s, g, p->op->axis_count, k);
    }
    return check_served(&s, g, c, err);
}

iron_status iron__plan_cases(iron__planning *p, iron_error *err) {
    iron__chosen_size sizes[IRON_SIZES_MAX] = {{0}};
    size_t count = 1;
    grid g;

    IRON_TRY(make_grid(p, &g, err));
    if (p->o->sizes)
        IRON_TRY(iron__select_sizes(p->op, p->o->sizes, sizes, &count, err));
    else
        usual_size(p, &sizes[0]);
    for (size_t k = 0; k < count; k++) {
        iron__element e = element_for(p, &sizes[k]);

        if (e < IRON_ELEMENTS)
            IRON_TRY(add_grid(p, &g, &sizes[k], e, err));
    }
    return IRON_OK;
}
