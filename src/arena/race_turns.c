/* SPDX-License-Identifier: MIT */
/*
 * race_turns.c: who runs when, how often, and how long.
 *
 * What takes turns is a lane: one racer in one scope, warm or cold. In each round every lane that
 * still wants samples has one turn, in an order drawn anew, so that slow drift of clocks and the
 * noise of neighbours meet all alike.
 *
 * Time. All lanes still running have an equal share of what is left; those that end early, by
 * precision, leave theirs to the others. A lane is over when it has spent its share and has three
 * samples. One whose three samples cost more than its share takes the rest from the others, but
 * never more than half of an equal share of each: a slow entrant makes the race longer rather than
 * the others' figures worthless. What is spent is counted a call at a time, as the greater of the
 * time on the wall and the time that the entrant reports: caches being emptied count, and entrants
 * that only pretend to take time (the tests') are believed.
 *
 * Throttling. The samples of a round before or after which the machine was throttled are dropped
 * and taken again. When the time is spent and nothing but throttled rounds came, a lane keeps what
 * it has; if that is nothing, its racer has failed.
 *
 * Looking at the interval after every round and stopping when it is narrow makes it hold a little
 * less often than 95 %. The comparison of two runs therefore widens it (compare.c).
 */
#include "arena/race_turns.h"

#include "core/clock.h"
#include "core/fail.h"
#include "core/mix.h"

#include <stdio.h>
#include <stdlib.h>

#define SAMPLES_MIN       3u
#define SAMPLES_PRECISION 6u

/* A sample shorter than this is mostly the clock and the call. */
#define SAMPLE_MS  2.0
#define PASSES_MAX 1000u

/* 4 warm scopes less prepare, and cold. */
#define LANES_EACH 4u

typedef struct lane {
    iron__racer *racer;
    iron__samples *samples;
    iron__scope scope;
    bool is_cold, is_over;
    double spent_ms;
} lane;

typedef struct turns {
    const iron__race_rules *rules;
    iron__race_progress *progress;
    double from, to; /* of the progress */
    lane *lanes;     /* those that run come first, in the order of the round */
    size_t lane_count;
    uint64_t draws;
} turns;

static bool is_running(const lane *l) { return !l->is_over && iron__racer_is_in(l->racer); }

/* Calls the entrant and counts what it cost. False: the racer is out. */
static bool time_passes(lane *l, uint32_t passes, double *ms) {
    iron__entrant *e = l->racer->entrant;
    uint64_t start = iron__clock_ns();
    iron_error why = {0};
    double wall_ms;
    iron_status status;

    *ms = 0;
    status = e->ops->time(e, l->scope, l->is_cold, passes, ms, &why);
    wall_ms = (double)(iron__clock_ns() - start) / 1e6;
    if (status == IRON_OK && !(*ms >= 0 && *ms <= 1e15))
        status = iron__fail(&why, IRON_E_MISMATCH, 0, "%s: its own clock says %g ms",
                            iron__scope_name(l->scope), *ms);
    if (status != IRON_OK) {
        iron__racer_fail(l->racer, status, &why);
        return false;
    }
    l->spent_ms += wall_ms > *ms * passes ? wall_ms : *ms * passes;
    return true;
}

/* Room for one more sample. */
static iron_status make_room(iron__samples *s, iron_error *err) {
    uint32_t room = s->room ? 2 * s->room : 16;
    double *ms;

    if (s->count < s->room)
        return IRON_OK;
    ms = realloc(s->ms, room * sizeof *ms);
    IRON_FAIL_IF(!ms, err, IRON_E_NOMEM, "out of memory: %u samples; ask for fewer runs", room);
    s->ms = ms;
    s->room = room;
    return IRON_OK;
}

static iron_status add_sample(iron__samples *s, double ms, iron_error *err) {
    IRON_TRY(make_room(s, err));
    s->ms[s->count++] = ms;
    return IRON_OK;
}

static iron_status take_turn(lane *l, iron_error *err) {
    double ms;

    if (!l->is_cold && !time_passes(l, 1, &ms))
        return IRON_OK;
    if (!time_passes(l, l->samples->passes, &ms))
        return IRON_OK;
    return add_sample(l->samples, ms, err);
}

/* How many passes make a sample long enough; where there are transfers, one. The first of the two
 * here only warms up. */
static void calibrate(lane *l) {
    double ms = 0, wanted;

    l->samples->passes = 1;
    if (l->is_cold || l->scope != IRON_SCOPE_KERNEL)
        return;
    for (int pass = 0; pass < 2; pass++)
        if (!time_passes(l, 1, &ms))
            return;
    wanted = ms > 0 ? SAMPLE_MS / ms : PASSES_MAX;
    if (wanted > 1)
        l->samples->passes = wanted < PASSES_MAX ? (uint32_t)(wanted + 0.999) : PASSES_MAX;
}

static iron_status calibrate_all(turns *t, iron_error *err) {
    for (size_t k = 0; k < t->lane_count; k++) {
        if (is_running(&t->lanes[k]))
            calibrate(&t->lanes[k]);
        t->lanes[k].spent_ms = 0; /* the time is for turns */
        IRON_TRY(iron__race_show(t->progress, t->from, err));
    }
    return IRON_OK;
}

/* What each running lane may spend in all. */
static double share_ms(const turns *t) {
    double all = 1000 * t->rules->seconds, left = all, share, least;
    size_t running = 0;

    for (size_t k = 0; k < t->lane_count; k++) {
        if (is_running(&t->lanes[k]))
            running++;
        else
            left -= t->lanes[k].spent_ms;
    }
    share = running ? left / (double)running : 0;
    least = all / (double)t->lane_count / 2;
    return share > least ? share : least;
}

static uint32_t runs_of(const iron__race_rules *rules) {
    return rules->runs < IRON_SAMPLES_MAX ? rules->runs : IRON_SAMPLES_MAX;
}

static double lane_progress(const lane *l, const iron__race_rules *rules, double share) {
    double part;

    if (!is_running(l))
        return 1;
    if (rules->runs)
        part = (double)l->samples->count / runs_of(rules);
    else
        part = share > 0 ? l->spent_ms / share : 1;
    return part < 1 ? part : 1;
}

static iron_status show(turns *t, iron_error *err) {
    double share = share_ms(t), sum = 0;

    for (size_t k = 0; k < t->lane_count; k++)
        sum += lane_progress(&t->lanes[k], t->rules, share);
    return iron__race_show(t->progress, t->from + (t->to - t->from) * sum / (double)t->lane_count,
                           err);
}

static void swap_lanes(lane *a, lane *b) {
    lane kept = *a;

    *a = *b;
    *b = kept;
}

/* Puts the lanes that run first, in an order of chance (Fisher and Yates); returns how many. */
static size_t draw_order(turns *t) {
    size_t count = 0;

    for (size_t k = 0; k < t->lane_count; k++)
        if (is_running(&t->lanes[k]))
            swap_lanes(&t->lanes[count++], &t->lanes[k]);
    for (size_t k = count; k > 1; k--) {
        uint64_t drawn = iron__mix64(t->rules->seed + ++t->draws * IRON_GOLDEN_GAMMA);

        swap_lanes(&t->lanes[k - 1], &t->lanes[drawn % k]);
    }
    return count;
}

static void drop_last(turns *t, size_t count) {
    for (size_t k = 0; k < count; k++) {
        iron__samples *s = t->lanes[k].samples;

        if (is_running(&t->lanes[k])) {
            s->count--;
            s->dropped++;
        }
    }
}

/* Has the lane what it was to have? NONE: not yet. */
static iron__stop why_stop(const lane *l, const iron__race_rules *rules, bool is_throttled,
                           double share) {
    const iron__samples *s = l->samples;
    uint32_t wanted = rules->runs ? runs_of(rules) : SAMPLES_MIN;

    if (s->count >= (rules->runs ? wanted : IRON_SAMPLES_MAX))
        return IRON_STOP_RUNS;
    if (!rules->runs && s->count >= SAMPLES_PRECISION) {
        iron__statistics figures = iron__statistics_of(s->ms, s->count);

        if (iron__statistics_is_within(&figures, rules->precision))
            return IRON_STOP_PRECISION;
    }
    if (l->spent_ms < share)
        return IRON_STOP_NONE;
    if ((!rules->runs && s->count >= SAMPLES_MIN) || (is_throttled && s->dropped >= wanted))
        return IRON_STOP_TIME;
    return IRON_STOP_NONE;
}

/* Shares are those at the round's end, the same for all: who is asked first gains nothing. */
static void end_lanes(turns *t, size_t count, bool is_throttled) {
    double share = share_ms(t);

    for (size_t k = 0; k < count; k++) {
        lane *l = &t->lanes[k];

        if (is_running(l))
            l->samples->stop = why_stop(l, t->rules, is_throttled, share);
        l->is_over = !is_running(l) || l->samples->stop != IRON_STOP_NONE;
    }
}

static bool is_throttled_now(const iron__race_rules *rules) {
    return rules->is_throttled && rules->is_throttled(rules->context);
}

static iron_status run_round(turns *t, size_t count, iron_error *err) {
    bool before = is_throttled_now(t->rules), is_throttled;

    for (size_t k = 0; k < count; k++) {
        /* another scope of the same racer may have failed in this very round */
        if (is_running(&t->lanes[k]))
            IRON_TRY(take_turn(&t->lanes[k], err));
        IRON_TRY(show(t, err));
    }
    is_throttled = is_throttled_now(t->rules) || before;
    if (is_throttled)
        drop_last(t, count);
    end_lanes(t, count, is_throttled);
    return IRON_OK;
}

static void fail_the_empty(turns *t) {
    iron_error why = {.text = "every sample was taken while the machine was throttled"};

    for (size_t k = 0; k < t->lane_count; k++)
        if (iron__racer_is_in(t->lanes[k].racer) && t->lanes[k].samples->count == 0)
            iron__racer_fail(t->lanes[k].racer, IRON_E_STATE, &why);
}

static iron_status run_rounds(turns *t, iron_error *err) {
    size_t count;

    IRON_TRY(calibrate_all(t, err));
    while ((count = draw_order(t)) > 0)
        IRON_TRY(run_round(t, count, err));
    fail_the_empty(t);
    return IRON_OK;
}

static void add_lanes(turns *t, iron__racer *r) {
    for (int scope = IRON_SCOPE_KERNEL; scope < IRON_SCOPES; scope++)
        if (iron__racer_has(r, (iron__scope)scope))
            t->lanes[t->lane_count++] =
                (lane){.racer = r, .samples = &r->warm[scope], .scope = (iron__scope)scope};
    if (r->entrant->has_cold && iron__racer_has(r, IRON_SCOPE_KERNEL))
        t->lanes[t->lane_count++] =
            (lane){.racer = r, .samples = &r->cold, .scope = IRON_SCOPE_KERNEL, .is_cold = true};
}

/* Preparing happened once, before the race: one sample. */
static iron_status keep_prepare(iron__racer *r, iron_error *err) {
    iron__samples *s = &r->warm[IRON_SCOPE_PREPARE];

    if (!(r->entrant->prepare_ms > 0))
        return IRON_OK;
    s->passes = 1;
    s->stop = IRON_STOP_RUNS;
    return add_sample(s, r->entrant->prepare_ms, err);
}

static iron_status enter(turns *t, iron__racer *racers, size_t count, iron_error *err) {
    for (size_t k = 0; k < count; k++) {
        if (!iron__racer_is_in(&racers[k]))
            continue;
        IRON_TRY(keep_prepare(&racers[k], err));
        add_lanes(t, &racers[k]);
    }
    return IRON_OK;
}

iron_status iron__race_turns(iron__racer *racers, size_t count, iron__race_progress *progress,
                             double from, double to, iron_error *err) {
    turns t = {.rules = progress->rules, .progress = progress, .from = from, .to = to};
    size_t room = count ? count * LANES_EACH : 1;
    iron_status status;

    t.lanes = calloc(room, sizeof *t.lanes);
    IRON_FAIL_IF(!t.lanes, err, IRON_E_NOMEM, "out of memory: a race of %zu rows", count);
    status = enter(&t, racers, count, err);
    if (status == IRON_OK)
        status = run_rounds(&t, err);
    for (size_t k = 0; t.rules->spent && k < t.lane_count; k++)
        *t.rules->spent += t.lanes[k].spent_ms / 1000;
    free(t.lanes);
    return status;
}
