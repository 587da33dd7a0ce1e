/* SPDX-License-Identifier: MIT */
/*
 * plan.c: makes the plan: for every op that a glob touches its cases, for every case and device the
 * contenders and peers that the globs choose, each with the memory strategies asked for; and says
 * of each whether it can race, or why not.
 */
#include "arena/plan.h"

#include "arena/plan_devices.h"
#include "arena/select.h"
#include "core/cpu.h"
#include "core/fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A run that is expected to take longer than this share of the race is not started. */
#define SHARE_OF_RACE 8.0
#define SECONDS_USUAL 60.0
#define REMARKS_MAX   32u

typedef struct planning {
    iron__plan *plan;
    const iron_arena_options *o;
    uint32_t memory; /* bits of strategies */
    const iron__op *op;
    bool *is_used; /* of each glob */
    const iron__plan_device
        *passed_over; /* not here; globs chose some of its rows without its name */
} planning;

const char *iron__plan_memory_name(const iron__plan_row *row) {
    return row->memory == IRON_GPU_STRATEGIES ? "host" : iron__gpu_strategy_name(row->memory);
}

static void *grow(void *array, size_t count, size_t *room, size_t size, iron_error *err) {
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

/* Is the name chosen by a glob? All globs that choose it are marked as used. */
static bool is_chosen(const planning *p, const char *name) {
    bool is_any = p->o->glob_count == 0;

    for (size_t k = 0; k < p->o->glob_count; k++) {
        if (iron__select_matches(p->o->globs[k], name)) {
            p->is_used[k] = true;
            is_any = true;
        }
    }
    return is_any;
}

static iron_status add_row(planning *p, const iron__plan_row *row, iron_error *err) {
    iron__plan *plan = p->plan;
    iron__plan_row *rows = grow(plan->rows, plan->row_count, &plan->row_room, sizeof *rows, err);

    if (!rows)
        return IRON_E_NOMEM;
    plan->rows = rows;
    rows[plan->row_count++] = *row;
    return IRON_OK;
}

/* Does it take too long to be worth starting? */
static double too_long(const planning *p, const iron__plan_row *row, const iron__plan_device *d) {
    const iron__case *c = &p->plan->cases[row->case_index].c;
    double race = p->o->seconds > 0 ? p->o->seconds : SECONDS_USUAL, one = 0;

    uint32_t threads = p->o->threads ? p->o->threads : iron__cpu_threads();

    if (row->contender.seconds && d->is_there)
        one = row->contender.seconds(&row->contender, c, d->is_cpu ? NULL : &d->info, threads);
    return one > race / SHARE_OF_RACE ? one : 0;
}

/* Why the row cannot race, if it cannot. Every problem is made in the host's memory first, and an
 * eighth of that is left to others: where memory is promised freely, asking for too much ends the
 * process. */
static void find_reason(const planning *p, iron__plan_row *row) {
    const iron__plan_device *d = &p->plan->devices[row->device_index];
    const iron__contender *c = &row->contender;
    const iron__case *k = &p->plan->cases[row->case_index].c;
    double seconds = too_long(p, row, d);
    uint64_t bytes = k->op->useful_bytes(k);

    row->reason[0] = '\0';
    if (!d->is_there)
        snprintf(row->reason, sizeof row->reason, "%s", d->reason);
    else if (p->plan->host_bytes && bytes / 7 > p->plan->host_bytes / 8)
        snprintf(row->reason, sizeof row->reason,
                 "too large for this machine: %.1f GiB of data, and it has %.1f GiB of memory; use "
                 "a smaller --size",
                 (double)bytes / 0x1p30, (double)p->plan->host_bytes / 0x1p30);
    else if (c->elements && !(c->elements & IRON_BIT(k->element)))
        snprintf(row->reason, sizeof row->reason, "does not know %s",
                 iron__element_name(k->element));
    else if (d->is_cpu && (c->needs & ~iron__cpu_features()))
        snprintf(row->reason, sizeof row->reason, "this processor lacks what it needs");
    else if (row->memory != IRON_GPU_STRATEGIES && d->info.lacks[row->memory][0])
        snprintf(row->reason, sizeof row->reason, "%s: %.200s",
                 iron__gpu_strategy_name(row->memory), d->info.lacks[row->memory]);
    else if (seconds > 0)
        snprintf(row->reason, sizeof row->reason,
                 "one run would take about %.0f s; use a smaller --size, or --time %.0f or more",
                 seconds, SHARE_OF_RACE * seconds);
}

/* Rows of absent backends are shown only to those who ask for the backend. */
static bool is_shown(planning *p, const iron__plan_device *d) {
    if (!d->is_there && !d->is_named)
        p->passed_over = d;
    return d->is_there || d->is_named;
}

/* A row a strategy on GPUs, one on the CPU. */
static iron_status add_rows(planning *p, iron__plan_row row, uint32_t memory, iron_error *err) {
    bool is_cpu = p->plan->devices[row.device_index].is_cpu;

    for (uint32_t k = 0; k < IRON_GPU_STRATEGIES; k++) {
        if (is_cpu ? k > 0 : !(memory & p->memory & IRON_BIT(k)))
            continue;
        row.memory = is_cpu ? IRON_GPU_STRATEGIES : (iron__gpu_strategy)k;
        find_reason(p, &row);
        IRON_TRY(add_row(p, &row, err));
    }
    return IRON_OK;
}

static iron_status add_contenders(planning *p, size_t case_index, size_t device, iron_error *err) {
    const iron__plan_device *d = &p->plan->devices[device];
    iron__plan_row row = {.case_index = case_index, .device_index = device};

    for (size_t k = 0; p->op->contender_at(k, &row.contender); k++) {
        if (!(row.contender.backends & d->on))
            continue;
        snprintf(row.name, sizeof row.name, "%s.%s.%s", p->op->name, d->backend,
                 row.contender.name);
        if (is_chosen(p, row.name) && is_shown(p, d))
            IRON_TRY(add_rows(p, row, IRON_BIT(IRON_GPU_STRATEGIES) - 1, err));
    }
    return IRON_OK;
}

/* Tells a peer that knows none of the types from a contender that knows all. */
#define NO_ELEMENT IRON_BIT(IRON_ELEMENTS)

static uint32_t elements_of(const char *dtypes) {
    uint32_t bits = 0;

    for (uint32_t k = 0; k < IRON_ELEMENTS; k++)
        if (strstr(dtypes, iron__element_name((iron__element)k)))
            bits |= IRON_BIT(k);
    return bits;
}

/* Is it a row of this op on this backend? */
static bool is_peer_of(const iron_peer *peer, const iron__op *op, const iron__plan_device *d) {
    char lead[40];

    snprintf(lead, sizeof lead, "%s.%s.", op->name, d->backend);
    return strncmp(peer->name, lead, strlen(lead)) == 0;
}

static iron_status add_peers(planning *p, size_t case_index, size_t device, iron_error *err) {
    const iron__plan_device *d = &p->plan->devices[device];
    /* a peer computes on device memory: what copies there is the same for all */
    uint32_t memory = IRON_BIT(IRON_GPU_PAGEABLE) | IRON_BIT(IRON_GPU_PINNED);
    iron__peer_entry e;

    for (size_t k = 0; iron__peers_at(p->plan->peers, k, &e); k++) {
        iron__plan_row row = {.case_index = case_index, .device_index = device, .peer = e.row};

        if (!is_peer_of(e.row, p->op, d))
            continue;
        snprintf(row.name, sizeof row.name, "%s", e.row->name);
        row.contender.name = strchr(strchr(e.row->name, '.') + 1, '.') + 1;
        row.contender.idea = e.row->idea;
        row.contender.passes = e.row->passes;
        row.contender.elements = elements_of(e.row->dtypes) | NO_ELEMENT;
        if (is_chosen(p, row.name) && is_shown(p, d))
            IRON_TRY(add_rows(p, row, memory, err));
    }
    return IRON_OK;
}

static iron_status add_case(planning *p, const iron__chosen_size *size, iron__element element,
                            iron_error *err) {
    iron__plan *plan = p->plan;
    iron__plan_case *cases =
        grow(plan->cases, plan->case_count, &plan->case_room, sizeof *cases, err);
    iron__plan_case *c;
    size_t index = plan->case_count;

    if (!cases)
        return IRON_E_NOMEM;
    plan->cases = cases;
    c = &cases[plan->case_count++];
    *c = (iron__plan_case){.c = {.op = p->op,
                                 .rows = size->rows,
                                 .cols = size->cols,
                                 .element = element,
                                 .seed = p->o->seed}};
    if (p->op->vocab_usual)
        c->c.vocab = p->o->vocab ? p->o->vocab : p->op->vocab_usual;
    memcpy(c->size_name, size->name, sizeof c->size_name);
    iron__size_text(p->op, size->rows, size->cols, c->size, sizeof c->size);
    IRON_TRY(p->op->accept(&c->c, err));
    for (size_t d = 0; d < plan->device_count; d++) {
        IRON_TRY(add_contenders(p, index, d, err));
        IRON_TRY(add_peers(p, index, d, err));
    }
    return IRON_OK;
}

/* The element type for a size; IRON_ELEMENTS: the op does not know what was asked for. */
static iron__element element_for(const planning *p, const iron__chosen_size *size) {
    iron__element e = p->op->usual;

    if (p->o->dtype)
        e = iron__element_find(p->o->dtype);
    else if (size->dtype)
        e = iron__element_find(size->dtype);
    return e < IRON_ELEMENTS && (p->op->elements & IRON_BIT(e)) ? e : IRON_ELEMENTS;
}

/* Caches of the devices that take part decide how large the usual size must be. */
static void usual_size(const planning *p, iron__chosen_size *size) {
    uint64_t cache = 0;
    bool has_gpu = false;
    iron__element element = element_for(p, size);

    for (size_t k = 0; k < p->plan->device_count; k++) {
        const iron__plan_device *d = &p->plan->devices[k];

        if (!d->is_there)
            continue;
        has_gpu = has_gpu || d->info.is_gpu;
        cache = d->cache_bytes > cache ? d->cache_bytes : cache;
    }
    p->op->usual_size(cache, has_gpu, element < IRON_ELEMENTS ? element : p->op->usual, &size->rows,
                      &size->cols);
}

static iron_status add_cases(planning *p, iron_error *err) {
    iron__chosen_size sizes[IRON_SIZES_MAX] = {{0}};
    size_t count = 1;

    if (p->o->sizes)
        IRON_TRY(iron__select_sizes(p->op, p->o->sizes, sizes, &count, err));
    else
        usual_size(p, &sizes[0]);
    for (size_t k = 0; k < count; k++) {
        iron__element e = element_for(p, &sizes[k]);

        if (e < IRON_ELEMENTS)
            IRON_TRY(add_case(p, &sizes[k], e, err));
    }
    return IRON_OK;
}

/* Does any glob choose something of the op? Asks with every name that it could have. */
static bool is_touched(const planning *p) {
    iron__contender c;
    iron__peer_entry e;
    bool is_any = false;
    char name[80];

    for (size_t d = 0; d < p->plan->device_count; d++) {
        for (size_t k = 0; p->op->contender_at(k, &c); k++) {
            if (!(c.backends & p->plan->devices[d].on))
                continue;
            snprintf(name, sizeof name, "%s.%s.%s", p->op->name, p->plan->devices[d].backend,
                     c.name);
            is_any = is_chosen(p, name) || is_any;
        }
        for (size_t k = 0; iron__peers_at(p->plan->peers, k, &e); k++)
            if (is_peer_of(e.row, p->op, &p->plan->devices[d]))
                is_any = is_chosen(p, e.row->name) || is_any;
    }
    return is_any;
}

static iron_status add_ops(planning *p, iron_error *err) {
    const iron_arena_options *o = p->o;
    bool is_touched_any = false;

    for (size_t k = 0; (p->op = iron__op_at(k)); k++) {
        if (!is_touched(p))
            continue;
        is_touched_any = true;
        IRON_TRY(add_cases(p, err));
    }
    for (size_t k = 0; k < o->glob_count; k++)
        IRON_FAIL_IF(!p->is_used[k], err, IRON_E_ARG,
                     "no contender matches '%.60s'; iron arena --list shows them all", o->globs[k]);
    IRON_FAIL_IF(!is_touched_any, err, IRON_E_UNSUPPORTED, "this build has no ops to race");
    IRON_FAIL_IF(p->plan->case_count == 0, err, IRON_E_ARG,
                 "no chosen op has size %.40s with dtype %.10s; iron arena --list shows sizes and "
                 "types",
                 o->sizes ? o->sizes : "(its own)", o->dtype ? o->dtype : "(its own)");
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

static iron_status fill(planning *p, iron_error *err) {
    iron_cpu_info cpu = {.struct_size = sizeof cpu};

    IRON_TRY(iron__select_memory(p->o->memory, &p->memory, err));
    IRON_TRY(iron__select_scopes(p->o->scopes, &p->plan->scopes, err));
    IRON_FAIL_IF(p->o->dtype && iron__element_find(p->o->dtype) == IRON_ELEMENTS, err, IRON_E_ARG,
                 "dtype '%.20s' is unknown; use f32, f64, u8, u16 or u32", p->o->dtype);
    IRON_TRY(iron__peers_open(&p->plan->peers, err));
    p->plan->remarks = calloc(REMARKS_MAX, sizeof p->plan->remarks[0]);
    IRON_FAIL_IF(!p->plan->remarks, err, IRON_E_NOMEM, "out of memory: a plan");
    p->plan->device_count = iron__plan_devices(p->o, p->plan->devices);
    if (iron_cpu_describe(&cpu, NULL) == IRON_OK)
        p->plan->host_bytes = cpu.memory_bytes;
    IRON_TRY(add_ops(p, err));
    IRON_FAIL_IF(p->plan->row_count == 0 && p->passed_over, err, IRON_E_UNSUPPORTED,
                 "nobody can race: %.200s", p->passed_over->reason);
    add_remarks(p->plan);
    return IRON_OK;
}

iron_status iron__plan_make(iron__plan *plan, const iron_arena_options *options, iron_error *err) {
    planning p = {.plan = plan, .o = options};
    iron_status status;

    *plan = (iron__plan){.peers = NULL};
    p.is_used = calloc(options->glob_count + 1, sizeof *p.is_used);
    if (!p.is_used)
        return iron__fail(err, IRON_E_NOMEM, 0, "out of memory: a plan");
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
