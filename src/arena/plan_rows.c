/* SPDX-License-Identifier: MIT */
/*
 * plan_rows.c: who could race over a case: for every device the contenders that suit it and the
 * peers that the globs choose, each with the memory strategies asked for; and of each whether it
 * can race, or why not.
 */
#include "arena/planning.h"
#include "arena/select.h"
#include "core/cpu.h"
#include "core/fail.h"

#include <stdio.h>
#include <string.h>

/* A run that is expected to take longer than this share of a case's time is not started. */
#define SHARE_OF_CASE 8.0
#define SECONDS_USUAL 60.0

bool iron__plan_chooses(const iron__planning *p, const char *name) {
    bool is_any = p->o->glob_count == 0;

    for (size_t k = 0; k < p->o->glob_count; k++) {
        if (iron__select_matches(p->o->globs[k], name)) {
            p->is_used[k] = true;
            is_any = true;
        }
    }
    return is_any;
}

static iron_status add_row(iron__planning *p, const iron__plan_row *row, iron_error *err) {
    iron__plan *plan = p->plan;
    iron__plan_row *rows =
        iron__plan_grow(plan->rows, plan->row_count, &plan->row_room, sizeof *rows, err);

    if (!rows)
        return IRON_E_NOMEM;
    plan->rows = rows;
    rows[plan->row_count++] = *row;
    return IRON_OK;
}

/* Why the row cannot race, if it cannot. Every problem is made in the host's memory first, and an
 * eighth of that is left to others: where memory is promised freely, asking for too much ends the
 * process. */
static void find_reason(const iron__planning *p, iron__plan_row *row) {
    const iron__plan_device *d = &p->plan->devices[row->device_index];
    const iron__contender *c = &row->contender;
    const iron__case *k = &p->plan->cases[row->case_index].c;
    uint64_t bytes = k->op->host_bytes ? k->op->host_bytes(k) : k->op->useful_bytes(k);

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
}

/* Rows of absent backends are shown only to those who ask for the backend. */
static bool is_shown(iron__planning *p, const iron__plan_device *d) {
    if (!d->is_there && !d->is_named)
        p->passed_over = d;
    return d->is_there || d->is_named;
}

/* A row a strategy on GPUs, one on the CPU. */
static iron_status add_rows(iron__planning *p, iron__plan_row row, uint32_t memory,
                            iron_error *err) {
    bool is_cpu = p->plan->devices[row.device_index].is_cpu;

    for (uint32_t k = 0; k < IRON_GPU_STRATEGIES; k++) {
        if (is_cpu ? k > 0 : !(memory & IRON_BIT(k)))
            continue;
        row.memory = is_cpu ? IRON_GPU_STRATEGIES : (iron__gpu_strategy)k;
        find_reason(p, &row);
        IRON_TRY(add_row(p, &row, err));
    }
    return IRON_OK;
}

/* An op whose race is about kernels takes the plainest memory, unless it is told which. */
static uint32_t memory_of(const iron__planning *p) {
    return p->op->is_resident && !p->o->memory ? IRON_BIT(IRON_GPU_PAGEABLE) : p->memory;
}

/* A list shows everyone, whatever the case. */
static bool is_suited(const iron__planning *p, const iron__contender *row, size_t case_index) {
    return p->o->is_listing || !row->suits || row->suits(row, &p->plan->cases[case_index].c);
}

static iron_status add_contenders(iron__planning *p, size_t case_index, size_t device,
                                  iron_error *err) {
    const iron__plan_device *d = &p->plan->devices[device];
    iron__plan_row row = {.case_index = case_index, .device_index = device};

    for (size_t k = 0; p->op->contender_at(k, &row.contender); k++) {
        if (!(row.contender.backends & d->on) || !is_suited(p, &row.contender, case_index))
            continue;
        snprintf(row.name, sizeof row.name, "%s.%s.%s", p->op->name, d->backend,
                 row.contender.name);
        if (iron__plan_chooses(p, row.name) && is_shown(p, d))
            IRON_TRY(add_rows(p, row, memory_of(p), err));
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

bool iron__plan_has_peer(const iron_peer *peer, const iron__op *op, const iron__plan_device *d) {
    char lead[40];

    snprintf(lead, sizeof lead, "%s.%s.", op->name, d->backend);
    return strncmp(peer->name, lead, strlen(lead)) == 0;
}

static iron_status add_peers(iron__planning *p, size_t case_index, size_t device, iron_error *err) {
    const iron__plan_device *d = &p->plan->devices[device];
    /* a peer computes on device memory: what copies there is the same for all */
    uint32_t memory = IRON_BIT(IRON_GPU_PAGEABLE) | IRON_BIT(IRON_GPU_PINNED);
    iron__peer_entry e;

    for (size_t k = 0; iron__peers_at(p->plan->peers, k, &e); k++) {
        iron__plan_row row = {.case_index = case_index, .device_index = device, .peer = e.row};

        if (!iron__plan_has_peer(e.row, p->op, d))
            continue;
        snprintf(row.name, sizeof row.name, "%s", e.row->name);
        row.contender.name = strchr(strchr(e.row->name, '.') + 1, '.') + 1;
        row.contender.idea = e.row->idea;
        row.contender.passes = e.row->passes;
        row.contender.elements = elements_of(e.row->dtypes) | NO_ELEMENT;
        if (iron__plan_chooses(p, row.name) && is_shown(p, d))
            IRON_TRY(add_rows(p, row, memory & memory_of(p), err));
    }
    return IRON_OK;
}

iron_status iron__plan_rows(iron__planning *p, size_t case_index, iron_error *err) {
    for (size_t d = 0; d < p->plan->device_count; d++) {
        IRON_TRY(add_contenders(p, case_index, d, err));
        IRON_TRY(add_peers(p, case_index, d, err));
    }
    return IRON_OK;
}

void iron__plan_pass_over_slow(iron__planning *p) {
    double race = p->o->seconds > 0 ? p->o->seconds : SECONDS_USUAL;
    double shares = SHARE_OF_CASE * (double)p->plan->case_count;
    uint32_t threads = p->o->threads ? p->o->threads : iron__cpu_threads();

    for (size_t k = 0; k < p->plan->row_count; k++) {
        iron__plan_row *row = &p->plan->rows[k];
        const iron__plan_device *d = &p->plan->devices[row->device_index];
        const iron__contender *c = &row->contender;
        double one;
        char about[32];

        if (row->reason[0] || !c->seconds)
            continue;
        one =
            c->seconds(c, &p->plan->cases[row->case_index].c, d->is_cpu ? NULL : &d->info, threads);
        if (one <= race / shares)
            continue;
        snprintf(about, sizeof about, one < 10 ? "%.2g" : "%.0f", one);
        snprintf(row->reason, sizeof row->reason,
                 "one run would take about %s s; use a smaller --size, or --time %.0f or more",
                 about, one * shares + 0.5);
    }
}
