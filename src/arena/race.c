/* SPDX-License-Identifier: MIT */
/*
 * race.c: see race.h. A race is: everyone verified, turns (race_turns.c), everyone verified again.
 *
 * Verifying means: the output is filled with 0xFF (NaN for floats, the greatest number for the
 * rest), the entrant gives an answer, the op judges it. Before the first sample that happens twice
 * in a row, since some are right only on fresh memory: accumulators that are not reset, flags that
 * stay up. After the last sample it happens once more, since some are right only until they have
 * run a thousand times. Whoever is wrong at any time has no samples: a wrong answer has no speed.
 *
 * An entrant that returns an error is out too: skipped when it says that the thing is not available
 * here (IRON_E_UNSUPPORTED), failed otherwise. Neither ends the race of the others.
 */
#include "arena/race_turns.h"

#include "core/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POISON 0xFF

/* Which part of the progress is verifying; in a race by time almost all of it is turns. */
#define VERIFIED_BEFORE 0.1
#define TURNS_TAKEN     0.95

const char *iron__scope_name(iron__scope scope) {
    static const char *const names[IRON_SCOPES] = {"prepare", "kernel", "transfer", "end_to_end"};

    return scope < IRON_SCOPES ? names[scope] : "";
}

const char *iron__row_status_name(iron__row_status status) {
    static const char *const names[] = {"ok", "wrong", "skipped", "failed"};

    return names[status];
}

const char *iron__stop_name(iron__stop stop) {
    static const char *const names[] = {"", "precision", "time", "runs"};

    return names[stop];
}

iron_status iron__race_show(iron__race_progress *p, double fraction, iron_error *err) {
    uint64_t done = fraction > 0 ? (uint64_t)(1000 * (fraction < 1 ? fraction : 1)) : 0;

    if (done > p->shown)
        p->shown = done;
    IRON_FAIL_IF(p->rules->progress && p->rules->progress(p->rules->context, p->shown, 1000), err,
                 IRON_E_CANCELLED, "the race was cancelled");
    return IRON_OK;
}

static void samples_forget(iron__samples *s) {
    free(s->ms);
    *s = (iron__samples){0};
}

static void racer_forget(iron__racer *r) {
    for (int scope = 0; scope < IRON_SCOPES; scope++)
        samples_forget(&r->warm[scope]);
    samples_forget(&r->cold);
}

bool iron__racer_is_in(const iron__racer *r) { return r->entrant && r->status == IRON_ROW_OK; }

void iron__racer_fail(iron__racer *r, iron_status status, const iron_error *why) {
    r->status = status == IRON_E_UNSUPPORTED ? IRON_ROW_SKIPPED : IRON_ROW_FAILED;
    snprintf(r->reason, sizeof r->reason, "%s",
             why->text[0] ? why->text : iron_status_text(status));
    racer_forget(r);
}

/* `when` is what the reason begins with: "" or "after timing, ". */
static void racer_is_wrong(iron__racer *r, const char *when, iron__scope scope, const char *text) {
    r->status = IRON_ROW_WRONG;
    snprintf(r->reason, sizeof r->reason, "%s%s: %.200s", when, iron__scope_name(scope), text);
    racer_forget(r);
}

static void verify_scope(iron__racer *r, iron__scope scope, void *output, const char *when) {
    char text[sizeof r->reason] = "";
    iron_error why = {0};
    iron_status status;

    memset(output, POISON, r->output_bytes);
    status = r->entrant->ops->answer(r->entrant, scope, output, &why);
    if (status != IRON_OK)
        iron__racer_fail(r, status, &why);
    else if (!r->judge(r->judge_context, output, text, sizeof text))
        racer_is_wrong(r, when, scope, text);
}

/* An answer for each of `whens` in each scope that has answers, until one is wrong. */
static void verify(iron__racer *r, void *output, const char *const *whens, size_t when_count) {
    static const iron__scope answering[] = {IRON_SCOPE_KERNEL, IRON_SCOPE_END_TO_END};

    for (size_t k = 0; k < 2 && r->judge; k++)
        for (size_t w = 0; w < when_count; w++)
            if (iron__racer_is_in(r) && iron__racer_has(r, answering[k]))
                verify_scope(r, answering[k], output, whens[w]);
}

static bool has_answer(const iron__racer *r) {
    return r->judge &&
           (iron__racer_has(r, IRON_SCOPE_KERNEL) || iron__racer_has(r, IRON_SCOPE_END_TO_END));
}

static iron_status verify_before(iron__racer *racers, size_t count, void *output,
                                 iron__race_progress *progress, iron_error *err) {
    static const char *const whens[] = {"", "the second time, "};

    for (size_t k = 0; k < count; k++) {
        IRON_TRY(iron__race_show(progress, VERIFIED_BEFORE * (double)k / (double)count, err));
        if (iron__racer_is_in(&racers[k]))
            verify(&racers[k], output, whens, 2);
    }
    return IRON_OK;
}

static iron_status verify_after(iron__racer *racers, size_t count, void *output,
                                iron__race_progress *progress, iron_error *err) {
    static const char *const when = "after timing, ";

    for (size_t k = 0; k < count; k++) {
        double part = (double)(k + 1) / (double)count;

        if (iron__racer_is_in(&racers[k])) {
            verify(&racers[k], output, &when, 1);
            racers[k].is_verified = iron__racer_is_in(&racers[k]) && has_answer(&racers[k]);
        }
        IRON_TRY(iron__race_show(progress, TURNS_TAKEN + (1 - TURNS_TAKEN) * part, err));
    }
    return IRON_OK;
}

static iron_status run_race(iron__racer *racers, size_t count, void *output,
                            const iron__race_rules *rules, iron_error *err) {
    iron__race_progress progress = {.rules = rules};

    IRON_TRY(verify_before(racers, count, output, &progress, err));
    IRON_TRY(iron__race_turns(racers, count, &progress, VERIFIED_BEFORE, TURNS_TAKEN, err));
    return verify_after(racers, count, output, &progress, err);
}

/* Everyone in, with nothing from before; returns how large the largest answer is. */
static size_t line_up(iron__racer *racers, size_t count) {
    size_t bytes = 1;

    for (size_t k = 0; k < count; k++) {
        if (!racers[k].entrant)
            continue;
        racer_forget(&racers[k]);
        racers[k].status = IRON_ROW_OK;
        racers[k].reason[0] = '\0';
        racers[k].is_verified = false;
        if (racers[k].output_bytes > bytes)
            bytes = racers[k].output_bytes;
    }
    return bytes;
}

iron_status iron__race_run(iron__racer *racers, size_t count, const iron__race_rules *rules,
                           iron_error *err) {
    size_t bytes = line_up(racers, count);
    void *output = malloc(bytes);
    iron_status status;

    IRON_FAIL_IF(!output, err, IRON_E_NOMEM,
                 "out of memory: answers of %zu bytes; race smaller sizes", bytes);
    status = run_race(racers, count, output, rules, err);
    free(output);
    return status;
}

void iron__racers_deinit(iron__racer *racers, size_t count) {
    for (size_t k = 0; k < count; k++)
        racer_forget(&racers[k]);
}
