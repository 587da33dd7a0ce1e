/* SPDX-License-Identifier: MIT */
/*
 * entrant_cpu.c: a contender or a peer on the CPU. Its inputs are where they were made; its output
 * and scratch are its own. Timed by the monotonic clock, around whole passes. Before cold turns a
 * buffer of twice the last-level cache is read. (Written would not do: stores that bypass the cache
 * throw nothing out of it.)
 */
#include "arena/ceilings.h"
#include "arena/entrants.h"
#include "core/clock.h"
#include "core/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cpu_entrant {
    iron__entrant base;
    iron__cpu_stage *stage;
    iron__contender contender;
    iron__cpu_work work;
    size_t scratch_bytes;
    /* a peer's */
    const iron_peer *peer;
    void *state;
    bool is_open;
} cpu_entrant;

static iron_status run_peer(cpu_entrant *e, iron_error *err) {
    char why[160] = "";

    IRON_FAIL_IF(e->peer->run(e->state, why, sizeof why) != 0, err, IRON_E_STATE, "%s failed: %s",
                 e->peer->name, why);
    return IRON_OK;
}

static iron_status run_once(cpu_entrant *e, iron_error *err) {
    if (e->peer)
        return run_peer(e, err);
    e->contender.cpu_run(&e->work);
    return IRON_OK;
}

static iron_status time_passes(iron__entrant *base, iron__scope scope, bool is_cold,
                               uint32_t passes, double *ms, iron_error *err) {
    cpu_entrant *e = (cpu_entrant *)base;
    uint64_t start;

    (void)scope; /* the CPU has the kernel scope alone */
    if (is_cold) /* twice: what was used lately survives the first */
        for (int k = 0; k < 2; k++)
            (void)iron__read_pass(e->stage->team, e->stage->flush, e->stage->flush_bytes);
    start = iron__clock_ns();
    for (uint32_t k = 0; k < passes; k++)
        IRON_TRY(run_once(e, err));
    *ms = (double)(iron__clock_ns() - start) * 1e-6 / passes;
    return IRON_OK;
}

static iron_status answer(iron__entrant *base, iron__scope scope, void *output, iron_error *err) {
    cpu_entrant *e = (cpu_entrant *)base;
    size_t bytes = e->work.problem->output_bytes;

    (void)scope;
    memset(e->work.output, 0xFF, bytes);
    IRON_TRY(run_once(e, err));
    memcpy(output, e->work.output, bytes);
    return IRON_OK;
}

static void close_entrant(iron__entrant *base) {
    cpu_entrant *e = (cpu_entrant *)base;

    if (e->is_open)
        e->peer->close(e->state);
    e->stage->lent_bytes -= e->work.problem->output_bytes;
    e->stage->lent_bytes -= e->work.scratch ? e->scratch_bytes : 0;
    iron__release_large(e->work.scratch, e->scratch_bytes);
    iron__release_large(e->work.output, e->work.problem->output_bytes);
    free(e);
}

static const iron__entrant_ops ops = {time_passes, answer, close_entrant};

/* An eighth is left to others: where memory is promised freely, taking too much of it ends the
 * process. */
static void *borrow(iron__cpu_stage *s, size_t bytes, iron_error *err) {
    uint64_t most = s->host_bytes - s->host_bytes / 8;

    if (s->host_bytes && (s->lent_bytes > most || bytes > most - s->lent_bytes)) {
        iron__fail(err, IRON_E_NOMEM, 0,
                   "too large for this machine beside the others: %.1f GiB more, and %.1f of %.1f "
                   "GiB are lent; race it with fewer others, or use a smaller --size",
                   (double)bytes / 0x1p30, (double)s->lent_bytes / 0x1p30,
                   (double)s->host_bytes / 0x1p30);
        return NULL;
    }
    s->lent_bytes += bytes;
    return iron__allocate_large(bytes, err);
}

static cpu_entrant *create(iron__cpu_stage *stage, iron_error *err) {
    cpu_entrant *e = calloc(1, sizeof *e);

    if (!e) {
        iron__fail(err, IRON_E_NOMEM, 0, "out of memory: a contender");
        return NULL;
    }
    e->base =
        (iron__entrant){.ops = &ops,
                        .scopes = IRON_BIT(IRON_SCOPE_KERNEL),
                        .has_cold = stage->flush_bytes > 0 && !stage->problem->c.op->is_never_cold};
    e->stage = stage;
    e->work = (iron__cpu_work){.problem = stage->problem, .team = stage->team};
    e->work.output = borrow(stage, stage->problem->output_bytes, err);
    if (!e->work.output) {
        free(e);
        return NULL;
    }
    return e;
}

/* Scratch, and what is made in it once. */
static iron_status prepare(cpu_entrant *e, iron_error *err) {
    const iron__contender *c = &e->contender;
    uint64_t start = iron__clock_ns();

    if (c->cpu_scratch_bytes)
        e->scratch_bytes = c->cpu_scratch_bytes(e->work.problem, iron__team_threads(e->work.team));
    if (e->scratch_bytes) {
        e->work.scratch = borrow(e->stage, e->scratch_bytes, err);
        if (!e->work.scratch)
            return IRON_E_NOMEM;
        memset(e->work.scratch, 0xFF, e->scratch_bytes); /* nobody may count on zeros */
    }
    if (!c->cpu_prepare)
        return IRON_OK; /* taking scratch alone is nothing that anybody would time */
    c->cpu_prepare(&e->work);
    e->base.prepare_ms = (double)(iron__clock_ns() - start) * 1e-6;
    return IRON_OK;
}

iron_status iron__entrant_cpu(iron__cpu_stage *stage, const iron__contender *contender,
                              iron__entrant **out, iron_error *err) {
    cpu_entrant *e = create(stage, err);
    iron_status status;

    *out = NULL;
    if (!e)
        return IRON_E_NOMEM;
    e->contender = *contender;
    e->work.row = &e->contender;
    if (contender->is_single)
        e->work.team = stage->alone;
    status = prepare(e, err);
    if (status != IRON_OK)
        close_entrant(&e->base);
    else
        *out = &e->base;
    return status;
}

/* "reach=grid": the case's places on its op's axes, and what else the op says of it. */
static void tell_params(const iron__case *c, char *text, size_t size) {
    const char *name;
    double value;
    size_t used = 0;

    text[0] = '\0';
    for (size_t k = 0; k < c->op->axis_count; k++) {
        const iron__axis *axis = &c->op->axes[k];

        if (axis->words)
            snprintf(text + used, size - used, " %s=%s", axis->name, axis->words[(size_t)c->at[k]]);
        else
            snprintf(text + used, size - used, " %s=%.15g", axis->name, c->at[k]);
        used = strlen(text);
    }
    for (size_t k = 0; c->op->param_at && c->op->param_at(c, k, &name, &value); k++) {
        snprintf(text + used, size - used, " %s=%.15g", name, value);
        used = strlen(text);
    }
    if (used > 0)
        memmove(text, text + 1, used); /* the first blank */
}

iron_peer_case iron__peer_case(const iron__problem *problem, void *output, uint32_t threads) {
    iron_peer_case c = {.struct_size = sizeof c,
                        .threads = threads,
                        .dtype = iron__element_name(problem->c.element),
                        .rows = problem->c.rows,
                        .cols = problem->c.cols,
                        .vocab = problem->c.vocab,
                        .input_count = (uint32_t)problem->input_count,
                        .output = output,
                        .output_bytes = problem->output_bytes};

    for (size_t k = 0; k < problem->input_count; k++) {
        c.inputs[k] = problem->inputs[k].data;
        c.input_bytes[k] = problem->inputs[k].bytes;
    }
    tell_params(&problem->c, c.params, sizeof c.params);
    return c;
}

iron_status iron__entrant_cpu_peer(iron__cpu_stage *stage, const iron_peer *peer,
                                   iron__entrant **out, iron_error *err) {
    cpu_entrant *e = create(stage, err);
    iron_peer_case c;
    uint64_t start;
    char why[160] = "";

    *out = NULL;
    if (!e)
        return IRON_E_NOMEM;
    e->peer = peer;
    start = iron__clock_ns();
    c = iron__peer_case(stage->problem, e->work.output, iron__team_threads(stage->team));
    if (peer->open(&c, &e->state, why, sizeof why) != 0) {
        close_entrant(&e->base);
        return iron__fail(err, IRON_E_UNSUPPORTED, 0, "%s: %s", peer->name, why);
    }
    e->is_open = true;
    e->base.prepare_ms = (double)(iron__clock_ns() - start) * 1e-6;
    *out = &e->base;
    return IRON_OK;
}

bool iron__judge_answer(const void *context, const void *output, char *text, size_t size) {
    const iron__judging *j = context;
    iron_peer_case c;

    if (!j->peer && j->contender->unpack) {
        memset(j->unpacked, 0xFF, j->problem->output_bytes); /* what is not unpacked is not there */
        j->contender->unpack(j->problem, output, j->unpacked);
        output = j->unpacked;
    }
    if (!j->peer || !j->peer->check)
        return j->problem->c.op->check(j->problem, output, text, size);
    c = iron__peer_case(j->problem, NULL, 1);
    return j->peer->check(&c, output, text, size) == 0;
}
