/* SPDX-License-Identifier: MIT */
/*
 * test_race.c: the race's rules, with entrants that only pretend.
 *
 * An actor says what its times are and spoils its answers on cue; it never sleeps: the race counts
 * the time that entrants report, so an hour of racing takes a moment here; and since it counts the
 * time on the wall too where that is greater, actors take seconds: no stall of a busy machine can
 * matter. Every call goes into one shared diary, in order.
 */
#include "support.h"

#include "arena/race.h"

#include <math.h>

#define VALUES 8u

typedef enum call_kind { CALL_TIME, CALL_ANSWER } call_kind;

typedef struct call {
    unsigned actor;
    call_kind kind;
    iron__scope scope;
    bool is_cold;
    uint32_t passes;
} call;

static struct {
    call calls[200000];
    size_t count;
} diary;

typedef struct actor {
    iron__entrant base; /* first */
    unsigned number;
    double ms[IRON_SCOPES]; /* of one pass */
    double cold_ms;
    double spread; /* 0.2: times are between 0.9 and 1.1 of ms */
    dice noise;
    unsigned answers, timings; /* so far */
    /* Cues; 0: never. Answers and timings count from 1. */
    unsigned wrong_from_answer, silent_from_answer, nan_from_answer;
    bool is_wrong_after_timing, has_end_to_end_wrong;
    iron_status answer_status, time_status;
    unsigned fails_from_timing;
} actor;

static void write_down(const actor *a, call_kind kind, iron__scope scope, bool is_cold,
                       uint32_t passes) {
    assert_true(diary.count < COUNT(diary.calls));
    diary.calls[diary.count++] = (call){a->number, kind, scope, is_cold, passes};
}

static iron_status act_time(iron__entrant *e, iron__scope scope, bool is_cold, uint32_t passes,
                            double *ms, iron_error *err) {
    actor *a = (actor *)e;
    double part = (double)(roll(&a->noise) >> 11) / 9007199254740992.0 - 0.5;

    write_down(a, CALL_TIME, scope, is_cold, passes);
    a->timings++;
    if (a->fails_from_timing && a->timings >= a->fails_from_timing) {
        if (err)
            snprintf(err->text, sizeof err->text, "the device fell off the bus");
        return a->time_status;
    }
    *ms = (is_cold ? a->cold_ms : a->ms[scope]) * (1 + a->spread * part);
    return IRON_OK;
}

static iron_status act_answer(iron__entrant *e, iron__scope scope, void *output, iron_error *err) {
    actor *a = (actor *)e;
    float *y = output;

    for (unsigned k = 0; k < VALUES; k++)
        assert_true(isnan(y[k])); /* the race poisons it every time */
    write_down(a, CALL_ANSWER, scope, false, 1);
    a->answers++;
    if (a->answer_status) {
        if (err && a->answer_status != IRON_E_STATE)
            snprintf(err->text, sizeof err->text, "needs a card with tensor cores");
        return a->answer_status;
    }
    if (a->silent_from_answer && a->answers >= a->silent_from_answer)
        return IRON_OK;
    for (unsigned k = 0; k < VALUES; k++)
        y[k] = 1.5f;
    if (a->wrong_from_answer && a->answers >= a->wrong_from_answer)
        y[3] = 0;
    if (a->nan_from_answer && a->answers >= a->nan_from_answer)
        y[5] = NAN;
    if ((a->is_wrong_after_timing && a->timings) ||
        (a->has_end_to_end_wrong && scope == IRON_SCOPE_END_TO_END))
        y[0] = 7;
    return IRON_OK;
}

static void act_close(iron__entrant *e) { (void)e; }

static const iron__entrant_ops acting = {act_time, act_answer, act_close};

static bool judge(const void *context, const void *output, char *text, size_t size) {
    const float *y = output, wanted = *(const float *)context;

    for (unsigned k = 0; k < VALUES; k++)
        if (!(y[k] == wanted)) {
            snprintf(text, size, "y[%u] is %g, should be %g", k, (double)y[k], (double)wanted);
            return false;
        }
    return true;
}

static const float right = 1.5f;

enum {
    KERNEL = 1 << IRON_SCOPE_KERNEL,
    TRANSFER = 1 << IRON_SCOPE_TRANSFER,
    END_TO_END = 1 << IRON_SCOPE_END_TO_END
};

static actor make_actor(unsigned number, uint32_t scopes, double ms) {
    actor a = {.base = {.ops = &acting, .scopes = scopes},
               .number = number,
               .ms = {0, ms, ms, ms},
               .cold_ms = 2 * ms,
               .noise = {number + 1}};

    return a;
}

/* One race of up to eight actors. */
typedef struct stage {
    iron__racer racers[8];
    iron__race_rules rules;
    iron_error err;
} stage;

static stage make_stage(actor *actors, size_t count) {
    stage s = {.rules = {.seconds = 1000, .precision = 0.01, .seed = 1}};

    diary.count = 0;
    for (size_t k = 0; k < count; k++)
        s.racers[k] = (iron__racer){.entrant = &actors[k].base,
                                    .output_bytes = VALUES * sizeof(float),
                                    .judge = judge,
                                    .judge_context = &right};
    return s;
}

static void run(stage *s, size_t count) {
    assert_ok(iron__race_run(s->racers, count, &s->rules, &s->err), &s->err);
}

static void assert_no_samples(const iron__racer *r) {
    for (int scope = 0; scope < IRON_SCOPES; scope++) {
        assert_int_equal(r->warm[scope].count, 0);
        assert_null(r->warm[scope].ms);
        assert_int_equal(r->warm[scope].stop, IRON_STOP_NONE);
    }
    assert_int_equal(r->cold.count, 0);
    assert_false(r->is_verified);
}

static size_t calls_of(unsigned number, call_kind kind) {
    size_t found = 0;

    for (size_t k = 0; k < diary.count; k++)
        found += diary.calls[k].actor == number && diary.calls[k].kind == kind;
    return found;
}

static void the_right_one_is_timed(void **state) {
    actor a = make_actor(0, KERNEL | TRANSFER | END_TO_END, 4);
    stage s;

    (void)state;
    a.base.has_cold = true;
    a.base.prepare_ms = 12.5;
    s = make_stage(&a, 1);
    run(&s, 1);
    assert_int_equal(s.racers[0].status, IRON_ROW_OK);
    assert_string_equal(s.racers[0].reason, "");
    assert_true(s.racers[0].is_verified);
    for (int scope = IRON_SCOPE_KERNEL; scope < IRON_SCOPES; scope++) {
        const iron__samples *w = &s.racers[0].warm[scope];

        assert_int_equal(w->count, 6); /* constant times: as soon as there is an interval */
        assert_int_equal(w->stop, IRON_STOP_PRECISION);
        assert_int_equal(w->passes, 1);
        assert_true(w->ms[0] == 4);
    }
    assert_int_equal(s.racers[0].cold.count, 6);
    assert_true(s.racers[0].cold.ms[5] == 8);
    assert_int_equal(s.racers[0].warm[IRON_SCOPE_PREPARE].count, 1);
    assert_int_equal(s.racers[0].warm[IRON_SCOPE_PREPARE].stop, IRON_STOP_RUNS);
    assert_true(s.racers[0].warm[IRON_SCOPE_PREPARE].ms[0] == 12.5);
    /* twice a scope before, once after */
    assert_int_equal(a.answers, 6);
    for (size_t k = 0; k < 4; k++)
        assert_int_equal(diary.calls[k].kind, CALL_ANSWER);
    for (size_t k = diary.count - 2; k < diary.count; k++)
        assert_int_equal(diary.calls[k].kind, CALL_ANSWER);
    iron__racers_deinit(s.racers, 1);
}

/* Everyone beside one that is right, whose race goes on. */
static void assert_out(actor a, iron__row_status status, const char *reason, bool is_timed) {
    actor actors[2] = {a, make_actor(1, KERNEL, 3)};
    stage s = make_stage(actors, 2);

    actors[0].number = 0;
    run(&s, 2);
    assert_int_equal(s.racers[0].status, status);
    assert_string_equal(s.racers[0].reason, reason);
    assert_no_samples(&s.racers[0]);
    assert_int_equal(calls_of(0, CALL_TIME) > 0, is_timed);
    assert_int_equal(s.racers[1].status, IRON_ROW_OK);
    assert_int_equal(s.racers[1].warm[IRON_SCOPE_KERNEL].count, 6);
    iron__racers_deinit(s.racers, 2);
}

static void the_wrong_ones_are_out(void **state) {
    actor a = make_actor(0, KERNEL | END_TO_END, 1);

    (void)state;
    a.wrong_from_answer = 1;
    assert_out(a, IRON_ROW_WRONG, "kernel: y[3] is 0, should be 1.5", false);
    a.base.scopes = END_TO_END;
    assert_out(a, IRON_ROW_WRONG, "end_to_end: y[3] is 0, should be 1.5", false);
    a = make_actor(0, KERNEL | END_TO_END, 1);
    a.has_end_to_end_wrong = true;
    assert_out(a, IRON_ROW_WRONG, "end_to_end: y[0] is 7, should be 1.5", false);
    a = make_actor(0, KERNEL, 1);
    a.nan_from_answer = 1;
    assert_out(a, IRON_ROW_WRONG, "kernel: y[5] is nan, should be 1.5", false);
}

/* Were the poison missing, the buffer would still hold the other actor's right answer. */
static void the_silent_are_out(void **state) {
    actor a = make_actor(0, KERNEL, 1), actors[2];
    stage s;

    (void)state;
    a.silent_from_answer = 2;
    assert_out(a, IRON_ROW_WRONG, "the second time, kernel: y[0] is -nan, should be 1.5", false);
    actors[0] = make_actor(0, KERNEL, 1);
    actors[1] = make_actor(1, KERNEL, 1);
    actors[1].silent_from_answer = 1;
    s = make_stage(actors, 2);
    run(&s, 2);
    assert_int_equal(s.racers[0].status, IRON_ROW_OK);
    assert_int_equal(s.racers[1].status, IRON_ROW_WRONG);
    iron__racers_deinit(s.racers, 2);
}

static void wrong_the_second_time(void **state) {
    actor a = make_actor(0, KERNEL, 1);

    (void)state;
    a.wrong_from_answer = 2;
    assert_out(a, IRON_ROW_WRONG, "the second time, kernel: y[3] is 0, should be 1.5", false);
}

static void wrong_after_timing(void **state) {
    actor a = make_actor(0, KERNEL | END_TO_END, 1);

    (void)state;
    a.base.prepare_ms = 3;
    a.base.has_cold = true;
    a.is_wrong_after_timing = true;
    assert_out(a, IRON_ROW_WRONG, "after timing, kernel: y[0] is 7, should be 1.5", true);
}

static void errors_are_told(void **state) {
    actor a = make_actor(0, KERNEL | END_TO_END, 1);

    (void)state;
    a.answer_status = IRON_E_IO;
    assert_out(a, IRON_ROW_FAILED, "needs a card with tensor cores", false);
    a.answer_status = IRON_E_UNSUPPORTED;
    assert_out(a, IRON_ROW_SKIPPED, "needs a card with tensor cores", false);
    a.answer_status = IRON_E_STATE; /* without a text */
    assert_out(a, IRON_ROW_FAILED, iron_status_text(IRON_E_STATE), false);
    a.answer_status = IRON_OK;
    a.time_status = IRON_E_IO;
    for (unsigned at = 1; at <= 26;
         at++) { /* calibrating: 2; warming up and being timed: 6 x 2 x 2 */
        a.fails_from_timing = at;
        assert_out(a, IRON_ROW_FAILED, "the device fell off the bus", true);
    }
    a.time_status = IRON_E_UNSUPPORTED;
    assert_out(a, IRON_ROW_SKIPPED, "the device fell off the bus", true);
    a = make_actor(0, KERNEL, (double)NAN);
    assert_out(a, IRON_ROW_FAILED, "kernel: its own clock says nan ms", true);
    a = make_actor(0, KERNEL, -1);
    assert_out(a, IRON_ROW_FAILED, "kernel: its own clock says -1 ms", true);
}

static void absent_ones_are_left_alone(void **state) {
    actor a = make_actor(0, KERNEL, 3);
    stage s = make_stage(&a, 1);

    (void)state;
    s.racers[1] = (iron__racer){.status = IRON_ROW_SKIPPED, .reason = "no such device"};
    run(&s, 2);
    assert_int_equal(s.racers[1].status, IRON_ROW_SKIPPED);
    assert_string_equal(s.racers[1].reason, "no such device");
    iron__racers_deinit(s.racers, 2);
    assert_ok(iron__race_run(NULL, 0, &s.rules, &s.err), &s.err);
    assert_ok(iron__race_run(&s.racers[1], 1, &s.rules, &s.err), &s.err);
}

static void without_a_judge_nothing_is_verified(void **state) {
    actor a = make_actor(0, KERNEL, 3);
    stage s = make_stage(&a, 1);

    (void)state;
    s.racers[0].judge = NULL;
    run(&s, 1);
    assert_int_equal(a.answers, 0);
    assert_int_equal(s.racers[0].status, IRON_ROW_OK);
    assert_false(s.racers[0].is_verified);
    assert_int_equal(s.racers[0].warm[IRON_SCOPE_KERNEL].count, 6);
    iron__racers_deinit(s.racers, 1);
}

/* Samples of about 2 ms or one pass; only of the kernel, only warm. */
static void short_passes_are_repeated(void **state) {
    static const double ms[] = {5, 2, 1, 0.3, 0.001, 0};
    static const uint32_t passes[] = {1, 1, 2, 7, 1000, 1000};

    (void)state;
    for (size_t k = 0; k < COUNT(ms); k++) {
        actor a = make_actor(0, KERNEL | TRANSFER | END_TO_END, ms[k]);
        stage s;

        a.base.has_cold = true;
        s = make_stage(&a, 1);
        run(&s, 1);
        assert_int_equal(s.racers[0].warm[IRON_SCOPE_KERNEL].passes, passes[k]);
        assert_int_equal(s.racers[0].warm[IRON_SCOPE_TRANSFER].passes, 1);
        assert_int_equal(s.racers[0].warm[IRON_SCOPE_END_TO_END].passes, 1);
        assert_int_equal(s.racers[0].cold.passes, 1);
        iron__racers_deinit(s.racers, 1);
    }
}

/* The timed calls of the diary after calibration, as turns: a warm one is two calls. */
typedef struct turn {
    unsigned actor, scope, is_cold;
} turn;

static size_t turns_of_diary(turn *to, size_t room) {
    size_t k = 0, count = 0;

    while (k < diary.count && diary.calls[k].kind == CALL_ANSWER)
        k++;
    /* calibration: two passes of each actor's kernel, in the order of the rows */
    for (unsigned number = 0; number < 3; number++, k += 2)
        assert_true(diary.calls[k].actor == number && diary.calls[k].scope == IRON_SCOPE_KERNEL);
    while (k < diary.count && diary.calls[k].kind == CALL_TIME) {
        const call *c = &diary.calls[k];

        assert_true(count < room);
        to[count++] = (turn){c->actor, c->scope, c->is_cold};
        if (!c->is_cold) { /* right after its own warm-up of one pass */
            assert_int_equal(c->passes, 1);
            assert_true(c[1].actor == c->actor && c[1].scope == c->scope && !c[1].is_cold);
        }
        k += c->is_cold ? 1 : 2;
    }
    return count;
}

/* 3 actors x (kernel, end to end, cold kernel) = 9 turns a round. */
static void turns_go_round_in_an_order_of_chance(void **state) {
    enum { ROUNDS = 400, LANES = 9 };
    static turn turns[ROUNDS * LANES];
    unsigned places[LANES][LANES] = {{0}}, same = 0;

    (void)state;
    for (int again = 0; again < 2; again++) {
        actor actors[3];
        stage s;

        for (unsigned k = 0; k < 3; k++) {
            actors[k] = make_actor(k, KERNEL | END_TO_END, 1 + k);
            actors[k].base.has_cold = true;
        }
        s = make_stage(actors, 3);
        s.rules.runs = ROUNDS;
        s.rules.seed = (uint64_t)again;
        run(&s, 3);
        assert_int_equal(turns_of_diary(turns, COUNT(turns)), COUNT(turns));
        iron__racers_deinit(s.racers, 3);
    }
    for (size_t round = 0; round < ROUNDS; round++) {
        const turn *now = turns + round * LANES;
        unsigned seen = 0;

        for (unsigned place = 0; place < LANES; place++) {
            unsigned who = now[place].actor * 3 + (now[place].is_cold ? 2u : now[place].scope / 2u);

            seen |= 1u << who;
            places[who][place]++;
        }
        assert_int_equal(seen, (1u << LANES) - 1); /* everyone once */
        same += round > 0 && memcmp(now, now - LANES, LANES * sizeof *now) == 0;
    }
    assert_true(same < 3); /* of 362,880 orders */
    /* 44 expected at each place; beyond these bounds lies less than one in a million */
    for (unsigned who = 0; who < LANES; who++)
        for (unsigned place = 0; place < LANES; place++)
            assert_in_range(places[who][place], 14, 85);
}

static void the_seed_decides_the_order(void **state) {
    static turn orders[3][60];

    (void)state;
    for (unsigned k = 0; k < 3; k++) {
        actor actors[3] = {make_actor(0, KERNEL, 1), make_actor(1, KERNEL, 1),
                           make_actor(2, KERNEL, 1)};
        stage s = make_stage(actors, 3);

        s.rules.runs = 20;
        s.rules.seed = k == 2 ? 99 : 5;
        run(&s, 3);
        assert_int_equal(turns_of_diary(orders[k], 60), 60);
        iron__racers_deinit(s.racers, 3);
    }
    assert_memory_equal(orders[0], orders[1], sizeof orders[0]);
    assert_memory_not_equal(orders[0], orders[2], sizeof orders[0]);
}

static void stops_by_precision_or_time(void **state) {
    actor actors[2] = {make_actor(0, KERNEL, 5000), make_actor(1, KERNEL, 5000)};
    stage s = make_stage(actors, 2);
    const iron__samples *steady = &s.racers[0].warm[IRON_SCOPE_KERNEL];
    const iron__samples *noisy = &s.racers[1].warm[IRON_SCOPE_KERNEL];
    iron__statistics figures;

    (void)state;
    actors[0].spread = 0.001;
    actors[1].spread = 1.5;
    run(&s, 2);
    assert_int_equal(steady->stop, IRON_STOP_PRECISION);
    assert_int_equal(steady->count, 6);
    assert_int_equal(noisy->stop, IRON_STOP_TIME);
    /* it has all that the other left: (1000 - 6 x 10) s at about 10 s a turn */
    assert_in_range(noisy->count, 60, 130);
    figures = iron__statistics_of(noisy->ms, noisy->count);
    assert_false(iron__statistics_is_within(&figures, s.rules.precision));
    iron__racers_deinit(s.racers, 2);
}

static void a_sharper_precision_takes_longer(void **state) {
    uint32_t counts[2];

    (void)state;
    for (int k = 0; k < 2; k++) {
        actor a = make_actor(0, KERNEL, 2);
        stage s = make_stage(&a, 1);

        a.spread = 0.1;
        s.rules.seconds = 1e6;
        s.rules.precision = k ? 0.005 : 0.02;
        run(&s, 1);
        assert_int_equal(s.racers[0].warm[IRON_SCOPE_KERNEL].stop, IRON_STOP_PRECISION);
        counts[k] = s.racers[0].warm[IRON_SCOPE_KERNEL].count;
        iron__racers_deinit(s.racers, 1);
    }
    assert_true(counts[1] > counts[0]);
}

static void runs_are_exact(void **state) {
    static const uint32_t runs[] = {1, 2, 3, 7, 50, 1000, 5000};

    (void)state;
    for (size_t k = 0; k < COUNT(runs); k++) {
        uint32_t wanted = runs[k] < IRON_SAMPLES_MAX ? runs[k] : IRON_SAMPLES_MAX;
        actor actors[2] = {make_actor(0, KERNEL, 2), make_actor(1, KERNEL | END_TO_END, 900)};
        stage s = make_stage(actors, 2);

        actors[0].spread = 0.5;
        s.rules.runs = runs[k];
        run(&s, 2);
        for (int who = 0; who < 2; who++) {
            assert_int_equal(s.racers[who].warm[IRON_SCOPE_KERNEL].count, wanted);
            assert_int_equal(s.racers[who].warm[IRON_SCOPE_KERNEL].stop, IRON_STOP_RUNS);
        }
        assert_int_equal(s.racers[1].warm[IRON_SCOPE_END_TO_END].count, wanted);
        iron__racers_deinit(s.racers, 2);
    }
}

static void there_is_an_end_to_samples(void **state) {
    actor a = make_actor(0, KERNEL, 2);
    stage s = make_stage(&a, 1);

    (void)state;
    a.spread = 1.9;
    s.rules.seconds = 1e6;
    s.rules.precision = 0;
    run(&s, 1);
    assert_int_equal(s.racers[0].warm[IRON_SCOPE_KERNEL].count, IRON_SAMPLES_MAX);
    assert_int_equal(s.racers[0].warm[IRON_SCOPE_KERNEL].stop, IRON_STOP_RUNS);
    iron__racers_deinit(s.racers, 1);
}

/* What all samples and their warm-ups took by the actors' own word. */
static double total_ms(const stage *s, size_t count) {
    double sum = 0;

    for (size_t r = 0; r < count; r++)
        for (int scope = IRON_SCOPE_KERNEL; scope < IRON_SCOPES; scope++)
            for (uint32_t k = 0; k < s->racers[r].warm[scope].count; k++)
                sum += 2 * s->racers[r].warm[scope].ms[k];
    return sum;
}

static void the_slow_do_not_starve_the_others(void **state) {
    actor actors[4];
    stage s;

    (void)state;
    for (unsigned k = 0; k < 4; k++) {
        actors[k] = make_actor(k, KERNEL, k == 2 ? 5e6 : 5e3); /* 10,000 s a turn, or 10 */
        actors[k].spread = 1.5;
    }
    s = make_stage(actors, 4);
    s.rules.seconds = 8000;
    s.rules.precision = 1e-6;
    run(&s, 4);
    assert_int_equal(s.racers[2].warm[IRON_SCOPE_KERNEL].count, 3);
    for (unsigned k = 0; k < 4; k++) {
        const iron__samples *w = &s.racers[k].warm[IRON_SCOPE_KERNEL];

        assert_int_equal(w->stop, IRON_STOP_TIME);
        if (k != 2) /* half of an equal share: 1000 s */
            assert_in_range(w->count, 70, 140);
    }
    iron__racers_deinit(s.racers, 4);
}

/* Two that cost more than their share, but not more than there is: the race is as long as asked. */
static void the_total_stays_near_what_was_asked(void **state) {
    static const double ms[] = {7e5, 2e3, 5e3, 9e5, 2e4, 3e3};
    actor actors[COUNT(ms)];
    stage s;

    (void)state;
    for (unsigned k = 0; k < COUNT(ms); k++) {
        actors[k] = make_actor(k, KERNEL, ms[k]);
        actors[k].spread = 1.5;
    }
    s = make_stage(actors, COUNT(ms));
    s.rules.seconds = 18000;
    s.rules.precision = 1e-6;
    run(&s, COUNT(ms));
    for (unsigned k = 0; k < COUNT(ms); k++)
        assert_true(s.racers[k].warm[IRON_SCOPE_KERNEL].count >= 3);
    assert_in_range((uintmax_t)total_ms(&s, COUNT(ms)) / 1000, 14000, 21000);
    iron__racers_deinit(s.racers, COUNT(ms));
}

static void no_time_at_all_is_three_samples(void **state) {
    actor a = make_actor(0, KERNEL | END_TO_END, 50);
    stage s = make_stage(&a, 1);

    (void)state;
    s.rules.seconds = 0;
    run(&s, 1);
    assert_int_equal(s.racers[0].warm[IRON_SCOPE_KERNEL].count, 3);
    assert_int_equal(s.racers[0].warm[IRON_SCOPE_END_TO_END].count, 3);
    assert_int_equal(s.racers[0].warm[IRON_SCOPE_KERNEL].stop, IRON_STOP_TIME);
    iron__racers_deinit(s.racers, 1);
}

/* Neither verifying nor calibrating is charged: 35 s hold four turns of 10 s, the last one begun
 * before they are over. */
static void the_time_is_for_turns(void **state) {
    actor a = make_actor(0, KERNEL, 5000);
    stage s = make_stage(&a, 1);
    double spent = 7; /* by races before */

    (void)state;
    s.rules.seconds = 35;
    s.rules.spent = &spent;
    run(&s, 1);
    assert_true(fabs(spent - 7 - 40) < 0.5);
    assert_int_equal(s.racers[0].warm[IRON_SCOPE_KERNEL].count, 4);
    assert_int_equal(s.racers[0].warm[IRON_SCOPE_KERNEL].stop, IRON_STOP_TIME);
    iron__racers_deinit(s.racers, 1);
}

/* Asked twice a round: says yes to the questions from `from` on, `count` of them. */
typedef struct weather {
    unsigned questions, from, count;
    unsigned shown, stop_at; /* progress: cancels at call number stop_at */
    uint64_t last, total;
    bool has_gone_back;
} weather;

static bool is_hot(void *context) {
    weather *w = context;
    unsigned question = w->questions++;

    return question >= w->from && question - w->from < w->count;
}

static int watch(void *context, uint64_t done, uint64_t total) {
    weather *w = context;

    w->has_gone_back |= done < w->last || done > total;
    w->last = done;
    w->total = total;
    return ++w->shown == w->stop_at;
}

static void throttled_rounds_are_dropped(void **state) {
    /* questions 4, 5, 6: the third round and the beginning of the fourth */
    weather w = {.from = 4, .count = 3};
    actor actors[2] = {make_actor(0, KERNEL, 5), make_actor(1, KERNEL | END_TO_END, 5)};
    stage s = make_stage(actors, 2);

    (void)state;
    s.rules.is_throttled = is_hot;
    s.rules.context = &w;
    s.rules.runs = 10;
    run(&s, 2);
    assert_int_equal(w.questions, 2 * 12);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(s.racers[k].warm[IRON_SCOPE_KERNEL].count, 10);
        assert_int_equal(s.racers[k].warm[IRON_SCOPE_KERNEL].dropped, 2);
        assert_int_equal(s.racers[k].warm[IRON_SCOPE_KERNEL].stop, IRON_STOP_RUNS);
    }
    assert_int_equal(s.racers[1].warm[IRON_SCOPE_END_TO_END].dropped, 2);
    iron__racers_deinit(s.racers, 2);
}

static void what_was_taken_before_the_heat_is_kept(void **state) {
    weather w = {.from = 8, .count = 1000000};
    actor a = make_actor(0, KERNEL, 5000);
    stage s = make_stage(&a, 1);

    (void)state;
    a.spread = 1.5;
    s.rules.is_throttled = is_hot;
    s.rules.context = &w;
    run(&s, 1);
    assert_int_equal(s.racers[0].status, IRON_ROW_OK);
    assert_int_equal(s.racers[0].warm[IRON_SCOPE_KERNEL].count, 4);
    assert_true(s.racers[0].warm[IRON_SCOPE_KERNEL].dropped > 50);
    assert_int_equal(s.racers[0].warm[IRON_SCOPE_KERNEL].stop, IRON_STOP_TIME);
    iron__racers_deinit(s.racers, 1);
}

static void nothing_but_heat_is_a_failure(void **state) {
    static const uint32_t runs[] = {0, 12};

    (void)state;
    for (size_t k = 0; k < COUNT(runs); k++) {
        weather w = {.count = 1000000};
        actor a = make_actor(0, KERNEL, 5000);
        stage s = make_stage(&a, 1);

        s.rules.is_throttled = is_hot;
        s.rules.context = &w;
        s.rules.runs = runs[k];
        run(&s, 1);
        assert_int_equal(s.racers[0].status, IRON_ROW_FAILED);
        assert_string_equal(s.racers[0].reason,
                            "every sample was taken while the machine was throttled");
        assert_no_samples(&s.racers[0]);
        assert_in_range(w.questions, 150, 250); /* 1000 s of 10 s a turn, two questions each */
        iron__racers_deinit(s.racers, 1);
    }
}

static void progress_goes_forward_to_the_end(void **state) {
    weather w = {0};
    actor actors[3] = {make_actor(0, KERNEL, 5), make_actor(1, KERNEL | END_TO_END, 40),
                       make_actor(2, KERNEL, 1)};
    stage s = make_stage(actors, 3);

    (void)state;
    actors[1].spread = actors[2].spread = 1.5;
    s.rules.progress = watch;
    s.rules.context = &w;
    run(&s, 3);
    assert_false(w.has_gone_back);
    assert_int_equal(w.last, 1000);
    assert_int_equal(w.total, 1000);
    iron__racers_deinit(s.racers, 3);
}

static void a_race_can_be_cancelled_at_any_time(void **state) {
    bool is_through = false;

    (void)state;
    for (unsigned at = 1; !is_through; at++) {
        weather w = {.stop_at = at};
        actor actors[2] = {make_actor(0, KERNEL, 5), make_actor(1, END_TO_END, 40)};
        stage s = make_stage(actors, 2);
        iron_status status;

        s.rules.progress = watch;
        s.rules.context = &w;
        s.rules.runs = 4;
        status = iron__race_run(s.racers, 2, &s.rules, &s.err);
        is_through = w.shown < at;
        assert_int_equal(status, is_through ? IRON_OK : IRON_E_CANCELLED);
        if (!is_through)
            assert_int_equal(w.shown, at); /* not asked again */
        iron__racers_deinit(s.racers, 2);
    }
}

static void names(void **state) {
    (void)state;
    assert_string_equal(iron__scope_name(IRON_SCOPE_PREPARE), "prepare");
    assert_string_equal(iron__scope_name(IRON_SCOPE_END_TO_END), "end_to_end");
    assert_string_equal(iron__row_status_name(IRON_ROW_OK), "ok");
    assert_string_equal(iron__row_status_name(IRON_ROW_FAILED), "failed");
    assert_string_equal(iron__stop_name(IRON_STOP_NONE), "");
    assert_string_equal(iron__stop_name(IRON_STOP_RUNS), "runs");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_right_one_is_timed),
        cmocka_unit_test(the_wrong_ones_are_out),
        cmocka_unit_test(the_silent_are_out),
        cmocka_unit_test(wrong_the_second_time),
        cmocka_unit_test(wrong_after_timing),
        cmocka_unit_test(errors_are_told),
        cmocka_unit_test(absent_ones_are_left_alone),
        cmocka_unit_test(without_a_judge_nothing_is_verified),
        cmocka_unit_test(short_passes_are_repeated),
        cmocka_unit_test(turns_go_round_in_an_order_of_chance),
        cmocka_unit_test(the_seed_decides_the_order),
        cmocka_unit_test(stops_by_precision_or_time),
        cmocka_unit_test(a_sharper_precision_takes_longer),
        cmocka_unit_test(runs_are_exact),
        cmocka_unit_test(there_is_an_end_to_samples),
        cmocka_unit_test(the_slow_do_not_starve_the_others),
        cmocka_unit_test(the_total_stays_near_what_was_asked),
        cmocka_unit_test(no_time_at_all_is_three_samples),
        cmocka_unit_test(the_time_is_for_turns),
        cmocka_unit_test(throttled_rounds_are_dropped),
        cmocka_unit_test(what_was_taken_before_the_heat_is_kept),
        cmocka_unit_test(nothing_but_heat_is_a_failure),
        cmocka_unit_test(progress_goes_forward_to_the_end),
        cmocka_unit_test(a_race_can_be_cancelled_at_any_time),
        cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
