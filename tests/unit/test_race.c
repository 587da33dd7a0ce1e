/* SPDX-License-Identifier: MIT */
/*
 * test_race.c: the rules of a race, with fake contenders.
 *
 * A fake contender is told which times to report and when to give wrong answers; it never sleeps.
 * The race counts the time that contenders report, so an hour of racing takes milliseconds here. It
 * counts wall time where that is greater, so fakes report seconds, and a stall of a busy machine
 * does not matter. Every call is logged, in order.
 */
#include "support.h"

#include "arena/run.c"

#include <math.h>

#define VALUES 8u

typedef enum call_kind { CALL_TIME, CALL_ANSWER } call_kind;

typedef struct call {
    unsigned fake;
    call_kind kind;
    iron__scope scope;
    bool is_cold;
    uint32_t passes;
} call;

static struct {
    call calls[200000];
    size_t count;
} call_log;

typedef struct fake {
    iron__race_contender base; /* first */
    unsigned number;
    double ms[IRON_SCOPES]; /* of one pass */
    double cold_ms;
    double spread; /* 0.2: times are between 0.9 and 1.1 of ms */
    rng noise;
    unsigned answers, timings; /* so far */
    /* When it misbehaves; 0: never. Answers and timings count from 1. */
    unsigned wrong_from_answer, missing_from_answer, nan_from_answer;
    bool is_wrong_after_timing, has_end_to_end_wrong;
    iron_status answer_status, time_status;
    unsigned fails_from_timing;
} fake;

static void log_call(const fake *a, call_kind kind, iron__scope scope, bool is_cold,
                     uint32_t passes) {
    assert_true(call_log.count < COUNT(call_log.calls));
    call_log.calls[call_log.count++] = (call){a->number, kind, scope, is_cold, passes};
}

static iron_status fake_time(iron__race_contender *e, iron__scope scope, bool is_cold,
                             uint32_t passes, double *ms, iron_error *err) {
    fake *a = (fake *)e;
    double part = (double)(rng_next(&a->noise) >> 11) / 9007199254740992.0 - 0.5;

    log_call(a, CALL_TIME, scope, is_cold, passes);
    a->timings++;
    if (a->fails_from_timing && a->timings >= a->fails_from_timing) {
        if (err)
            snprintf(err->text, sizeof err->text, "the device fell off the bus");
        return a->time_status;
    }
    *ms = (is_cold ? a->cold_ms : a->ms[scope]) * (1 + a->spread * part);
    return IRON_OK;
}

static iron_status fake_answer(iron__race_contender *e, iron__scope scope, void *output,
                               iron_error *err) {
    fake *a = (fake *)e;
    float *y = output;

    for (unsigned k = 0; k < VALUES; k++)
        assert_true(isnan(y[k])); /* the race poisons it every time */
    log_call(a, CALL_ANSWER, scope, false, 1);
    a->answers++;
    if (a->answer_status) {
        if (err && a->answer_status != IRON_E_STATE)
            snprintf(err->text, sizeof err->text, "needs a card with tensor cores");
        return a->answer_status;
    }
    if (a->missing_from_answer && a->answers >= a->missing_from_answer)
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

static void fake_close(iron__race_contender *e) { (void)e; }

static const iron__race_contender_ops fake_ops = {fake_time, fake_answer, fake_close};

static bool check(const void *context, const void *output, char *text, size_t size) {
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

static fake make_fake(unsigned number, uint32_t scopes, double ms) {
    fake a = {.base = {.ops = &fake_ops, .scopes = scopes},
              .number = number,
              .ms = {0, ms, ms, ms},
              .cold_ms = 2 * ms,
              .noise = {number + 1}};

    return a;
}

/* One race of up to eight fakes. */
typedef struct test_race {
    iron__race_row rows[8];
    race_rules rules;
    iron_error err;
} test_race;

static test_race make_race(fake *fakes, size_t count) {
    test_race s = {.rules = {.seconds = 1000, .precision = 0.01, .seed = 1}};

    call_log.count = 0;
    for (size_t k = 0; k < count; k++)
        s.rows[k] = (iron__race_row){.contender = &fakes[k].base,
                                     .output_bytes = VALUES * sizeof(float),
                                     .check = check,
                                     .check_context = &right};
    return s;
}

static void free_rows(test_race *s, size_t count) {
    for (size_t k = 0; k < count; k++)
        iron__race_row_deinit(&s->rows[k]);
}

static void run_ok(test_race *s, size_t count) {
    assert_ok(run_race(s->rows, count, &s->rules, &s->err), &s->err);
}

static void assert_no_samples(const iron__race_row *r) {
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

    for (size_t k = 0; k < call_log.count; k++)
        found += call_log.calls[k].fake == number && call_log.calls[k].kind == kind;
    return found;
}

static void a_correct_contender_is_timed(void **state) {
    fake a = make_fake(0, KERNEL | TRANSFER | END_TO_END, 4);
    test_race s;

    (void)state;
    a.base.has_cold = true;
    a.base.prepare_ms = 12.5;
    s = make_race(&a, 1);
    run_ok(&s, 1);
    assert_int_equal(s.rows[0].status, IRON_ROW_OK);
    assert_string_equal(s.rows[0].reason, "");
    assert_true(s.rows[0].is_verified);
    for (int scope = IRON_SCOPE_KERNEL; scope < IRON_SCOPES; scope++) {
        const iron__samples *w = &s.rows[0].warm[scope];

        assert_int_equal(w->count, 6); /* constant times: as soon as there is an interval */
        assert_int_equal(w->stop, IRON_STOP_PRECISION);
        assert_int_equal(w->passes, 1);
        assert_true(w->ms[0] == 4);
    }
    assert_int_equal(s.rows[0].cold.count, 6);
    assert_true(s.rows[0].cold.ms[5] == 8);
    assert_int_equal(s.rows[0].warm[IRON_SCOPE_PREPARE].count, 1);
    assert_int_equal(s.rows[0].warm[IRON_SCOPE_PREPARE].stop, IRON_STOP_RUNS);
    assert_true(s.rows[0].warm[IRON_SCOPE_PREPARE].ms[0] == 12.5);
    /* twice per scope before, once after */
    assert_int_equal(a.answers, 6);
    for (size_t k = 0; k < 4; k++)
        assert_int_equal(call_log.calls[k].kind, CALL_ANSWER);
    for (size_t k = call_log.count - 2; k < call_log.count; k++)
        assert_int_equal(call_log.calls[k].kind, CALL_ANSWER);
    free_rows(&s, 1);
}

/* Races it against a correct contender, whose race must continue. */
static void assert_out(fake a, iron__row_status status, const char *reason, bool is_timed) {
    fake fakes[2] = {a, make_fake(1, KERNEL, 3)};
    test_race s = make_race(fakes, 2);

    fakes[0].number = 0;
    run_ok(&s, 2);
    assert_int_equal(s.rows[0].status, status);
    assert_string_equal(s.rows[0].reason, reason);
    assert_no_samples(&s.rows[0]);
    assert_int_equal(calls_of(0, CALL_TIME) > 0, is_timed);
    assert_int_equal(s.rows[1].status, IRON_ROW_OK);
    assert_int_equal(s.rows[1].warm[IRON_SCOPE_KERNEL].count, 6);
    free_rows(&s, 2);
}

static void wrong_contenders_are_out(void **state) {
    fake a = make_fake(0, KERNEL | END_TO_END, 1);

    (void)state;
    a.wrong_from_answer = 1;
    assert_out(a, IRON_ROW_WRONG, "kernel: y[3] is 0, should be 1.5", false);
    a.base.scopes = END_TO_END;
    assert_out(a, IRON_ROW_WRONG, "end_to_end: y[3] is 0, should be 1.5", false);
    a = make_fake(0, KERNEL | END_TO_END, 1);
    a.has_end_to_end_wrong = true;
    assert_out(a, IRON_ROW_WRONG, "end_to_end: y[0] is 7, should be 1.5", false);
    a = make_fake(0, KERNEL, 1);
    a.nan_from_answer = 1;
    assert_out(a, IRON_ROW_WRONG, "kernel: y[5] is nan, should be 1.5", false);
}

/* Without the poison the buffer would still hold the other contender's right answer. */
static void contenders_without_an_answer_are_out(void **state) {
    fake a = make_fake(0, KERNEL, 1), fakes[2];
    test_race s;

    (void)state;
    a.missing_from_answer = 2;
    assert_out(a, IRON_ROW_WRONG, "the second time, kernel: y[0] is -nan, should be 1.5", false);
    fakes[0] = make_fake(0, KERNEL, 1);
    fakes[1] = make_fake(1, KERNEL, 1);
    fakes[1].missing_from_answer = 1;
    s = make_race(fakes, 2);
    run_ok(&s, 2);
    assert_int_equal(s.rows[0].status, IRON_ROW_OK);
    assert_int_equal(s.rows[1].status, IRON_ROW_WRONG);
    free_rows(&s, 2);
}

static void wrong_the_second_time(void **state) {
    fake a = make_fake(0, KERNEL, 1);

    (void)state;
    a.wrong_from_answer = 2;
    assert_out(a, IRON_ROW_WRONG, "the second time, kernel: y[3] is 0, should be 1.5", false);
}

static void wrong_after_timing(void **state) {
    fake a = make_fake(0, KERNEL | END_TO_END, 1);

    (void)state;
    a.base.prepare_ms = 3;
    a.base.has_cold = true;
    a.is_wrong_after_timing = true;
    assert_out(a, IRON_ROW_WRONG, "after timing, kernel: y[0] is 7, should be 1.5", true);
}

static void errors_become_reasons(void **state) {
    fake a = make_fake(0, KERNEL | END_TO_END, 1);

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
    a = make_fake(0, KERNEL, (double)NAN);
    assert_out(a, IRON_ROW_FAILED, "kernel: its own clock says nan ms", true);
    a = make_fake(0, KERNEL, -1);
    assert_out(a, IRON_ROW_FAILED, "kernel: its own clock says -1 ms", true);
}

static void rows_without_a_contender_are_left_alone(void **state) {
    fake a = make_fake(0, KERNEL, 3);
    test_race s = make_race(&a, 1);

    (void)state;
    s.rows[1] = (iron__race_row){.status = IRON_ROW_SKIPPED, .reason = "no such device"};
    run_ok(&s, 2);
    assert_int_equal(s.rows[1].status, IRON_ROW_SKIPPED);
    assert_string_equal(s.rows[1].reason, "no such device");
    free_rows(&s, 2);
    assert_ok(run_race(NULL, 0, &s.rules, &s.err), &s.err);
    assert_ok(run_race(&s.rows[1], 1, &s.rules, &s.err), &s.err);
}

static void without_a_check_nothing_is_verified(void **state) {
    fake a = make_fake(0, KERNEL, 3);
    test_race s = make_race(&a, 1);

    (void)state;
    s.rows[0].check = NULL;
    run_ok(&s, 1);
    assert_int_equal(a.answers, 0);
    assert_int_equal(s.rows[0].status, IRON_ROW_OK);
    assert_false(s.rows[0].is_verified);
    assert_int_equal(s.rows[0].warm[IRON_SCOPE_KERNEL].count, 6);
    free_rows(&s, 1);
}

/* Samples of about 2 ms or one pass; only of the kernel, only warm. */
static void short_passes_are_repeated(void **state) {
    static const double ms[] = {5, 2, 1, 0.3, 0.001, 0};
    static const uint32_t passes[] = {1, 1, 2, 7, 1000, 1000};

    (void)state;
    for (size_t k = 0; k < COUNT(ms); k++) {
        fake a = make_fake(0, KERNEL | TRANSFER | END_TO_END, ms[k]);
        test_race s;

        a.base.has_cold = true;
        s = make_race(&a, 1);
        run_ok(&s, 1);
        assert_int_equal(s.rows[0].warm[IRON_SCOPE_KERNEL].passes, passes[k]);
        assert_int_equal(s.rows[0].warm[IRON_SCOPE_TRANSFER].passes, 1);
        assert_int_equal(s.rows[0].warm[IRON_SCOPE_END_TO_END].passes, 1);
        assert_int_equal(s.rows[0].cold.passes, 1);
        free_rows(&s, 1);
    }
}

/* The timed calls of the log after calibration, as samples: a warm one is two calls. */
typedef struct taken {
    unsigned fake, scope, is_cold;
} taken;

static size_t samples_of_log(taken *to, size_t room) {
    size_t k = 0, count = 0;

    while (k < call_log.count && call_log.calls[k].kind == CALL_ANSWER)
        k++;
    /* calibration: two passes of each fake's kernel, in the order of the rows */
    for (unsigned number = 0; number < 3; number++, k += 2)
        assert_true(call_log.calls[k].fake == number &&
                    call_log.calls[k].scope == IRON_SCOPE_KERNEL);
    while (k < call_log.count && call_log.calls[k].kind == CALL_TIME) {
        const call *c = &call_log.calls[k];

        assert_true(count < room);
        to[count++] = (taken){c->fake, c->scope, c->is_cold};
        if (!c->is_cold) { /* right after its own warm-up of one pass */
            assert_int_equal(c->passes, 1);
            assert_true(c[1].fake == c->fake && c[1].scope == c->scope && !c[1].is_cold);
        }
        k += c->is_cold ? 1 : 2;
    }
    return count;
}

/* 3 fakes x (kernel, end to end, cold kernel) = 9 samples per round. */
static void rounds_have_a_random_order(void **state) {
    enum { ROUNDS = 400, SERIES = 9 };
    static taken samples[ROUNDS * SERIES];
    unsigned places[SERIES][SERIES] = {{0}}, same = 0;

    (void)state;
    for (int again = 0; again < 2; again++) {
        fake fakes[3];
        test_race s;

        for (unsigned k = 0; k < 3; k++) {
            fakes[k] = make_fake(k, KERNEL | END_TO_END, 1 + k);
            fakes[k].base.has_cold = true;
        }
        s = make_race(fakes, 3);
        s.rules.runs = ROUNDS;
        s.rules.seed = (uint64_t)again;
        run_ok(&s, 3);
        assert_int_equal(samples_of_log(samples, COUNT(samples)), COUNT(samples));
        free_rows(&s, 3);
    }
    for (size_t round = 0; round < ROUNDS; round++) {
        const taken *now = samples + round * SERIES;
        unsigned seen = 0;

        for (unsigned place = 0; place < SERIES; place++) {
            unsigned who = now[place].fake * 3 + (now[place].is_cold ? 2u : now[place].scope / 2u);

            seen |= 1u << who;
            places[who][place]++;
        }
        assert_int_equal(seen, (1u << SERIES) - 1); /* each once */
        same += round > 0 && memcmp(now, now - SERIES, SERIES * sizeof *now) == 0;
    }
    assert_true(same < 3); /* out of 362,880 orders */
    /* 44 expected at each place; values outside these bounds have a probability below one in a
     * million */
    for (unsigned who = 0; who < SERIES; who++)
        for (unsigned place = 0; place < SERIES; place++)
            assert_in_range(places[who][place], 14, 85);
}

static void the_seed_decides_the_order(void **state) {
    static taken orders[3][60];

    (void)state;
    for (unsigned k = 0; k < 3; k++) {
        fake fakes[3] = {make_fake(0, KERNEL, 1), make_fake(1, KERNEL, 1), make_fake(2, KERNEL, 1)};
        test_race s = make_race(fakes, 3);

        s.rules.runs = 20;
        s.rules.seed = k == 2 ? 99 : 5;
        run_ok(&s, 3);
        assert_int_equal(samples_of_log(orders[k], 60), 60);
        free_rows(&s, 3);
    }
    assert_memory_equal(orders[0], orders[1], sizeof orders[0]);
    assert_memory_not_equal(orders[0], orders[2], sizeof orders[0]);
}

static void stops_by_precision_or_time(void **state) {
    fake fakes[2] = {make_fake(0, KERNEL, 5000), make_fake(1, KERNEL, 5000)};
    test_race s = make_race(fakes, 2);
    const iron__samples *steady = &s.rows[0].warm[IRON_SCOPE_KERNEL];
    const iron__samples *noisy = &s.rows[1].warm[IRON_SCOPE_KERNEL];
    iron__statistics figures;

    (void)state;
    fakes[0].spread = 0.001;
    fakes[1].spread = 1.5;
    run_ok(&s, 2);
    assert_int_equal(steady->stop, IRON_STOP_PRECISION);
    assert_int_equal(steady->count, 6);
    assert_int_equal(noisy->stop, IRON_STOP_TIME);
    /* it gets all the time that the other left: (1000 - 7 x 5) s at about 5 s per sample */
    assert_in_range(noisy->count, 130, 260);
    figures = iron__statistics_of(noisy->ms, noisy->count);
    assert_false(iron__statistics_is_within(&figures, s.rules.precision));
    free_rows(&s, 2);
}

static void a_higher_precision_takes_longer(void **state) {
    uint32_t counts[2];

    (void)state;
    for (int k = 0; k < 2; k++) {
        fake a = make_fake(0, KERNEL, 2);
        test_race s = make_race(&a, 1);

        a.spread = 0.1;
        s.rules.seconds = 1e6;
        s.rules.precision = k ? 0.005 : 0.02;
        run_ok(&s, 1);
        assert_int_equal(s.rows[0].warm[IRON_SCOPE_KERNEL].stop, IRON_STOP_PRECISION);
        counts[k] = s.rows[0].warm[IRON_SCOPE_KERNEL].count;
        free_rows(&s, 1);
    }
    assert_true(counts[1] > counts[0]);
}

static void the_number_of_runs_is_exact(void **state) {
    static const uint32_t runs[] = {1, 2, 3, 7, 50, 1000, 5000};

    (void)state;
    for (size_t k = 0; k < COUNT(runs); k++) {
        uint32_t wanted = runs[k] < IRON_SAMPLES_MAX ? runs[k] : IRON_SAMPLES_MAX;
        fake fakes[2] = {make_fake(0, KERNEL, 2), make_fake(1, KERNEL | END_TO_END, 900)};
        test_race s = make_race(fakes, 2);

        fakes[0].spread = 0.5;
        s.rules.runs = runs[k];
        run_ok(&s, 2);
        for (int who = 0; who < 2; who++) {
            assert_int_equal(s.rows[who].warm[IRON_SCOPE_KERNEL].count, wanted);
            assert_int_equal(s.rows[who].warm[IRON_SCOPE_KERNEL].stop, IRON_STOP_RUNS);
        }
        assert_int_equal(s.rows[1].warm[IRON_SCOPE_END_TO_END].count, wanted);
        free_rows(&s, 2);
    }
}

static void the_number_of_samples_is_limited(void **state) {
    fake a = make_fake(0, KERNEL, 2);
    test_race s = make_race(&a, 1);

    (void)state;
    a.spread = 1.9;
    s.rules.seconds = 1e6;
    s.rules.precision = 0;
    run_ok(&s, 1);
    assert_int_equal(s.rows[0].warm[IRON_SCOPE_KERNEL].count, IRON_SAMPLES_MAX);
    assert_int_equal(s.rows[0].warm[IRON_SCOPE_KERNEL].stop, IRON_STOP_RUNS);
    free_rows(&s, 1);
}

/* The time of all samples, as reported by fakes that are too slow for warm-ups. */
static double total_ms(const test_race *s, size_t count) {
    double sum = 0;

    for (size_t r = 0; r < count; r++)
        for (int scope = IRON_SCOPE_KERNEL; scope < IRON_SCOPES; scope++)
            for (uint32_t k = 0; k < s->rows[r].warm[scope].count; k++)
                sum += s->rows[r].warm[scope].ms[k];
    return sum;
}

static void slow_contenders_leave_time_to_the_others(void **state) {
    fake fakes[4];
    test_race s;

    (void)state;
    for (unsigned k = 0; k < 4; k++) {
        fakes[k] = make_fake(k, KERNEL, k == 2 ? 5e6 : 5e3); /* 5000 s per sample, or 5 */
        fakes[k].spread = 1.5;
    }
    s = make_race(fakes, 4);
    s.rules.seconds = 8000;
    s.rules.precision = 1e-6;
    run_ok(&s, 4);
    assert_int_equal(s.rows[2].warm[IRON_SCOPE_KERNEL].count, 1);
    for (unsigned k = 0; k < 4; k++) {
        const iron__samples *w = &s.rows[k].warm[IRON_SCOPE_KERNEL];

        assert_int_equal(w->stop, IRON_STOP_TIME);
        if (k != 2) /* half of an equal share: 1000 s */
            assert_in_range(w->count, 140, 280);
    }
    free_rows(&s, 4);
}

/* Two that cost more than their share, but not more than the total: the race lasts as long as
 * requested. */
static void the_total_stays_near_the_requested_time(void **state) {
    static const double ms[] = {7e5, 2e3, 5e3, 9e5, 2e4, 3e3};
    fake fakes[COUNT(ms)];
    test_race s;

    (void)state;
    for (unsigned k = 0; k < COUNT(ms); k++) {
        fakes[k] = make_fake(k, KERNEL, ms[k]);
        fakes[k].spread = 1.5;
    }
    s = make_race(fakes, COUNT(ms));
    s.rules.seconds = 18000;
    s.rules.precision = 1e-6;
    run_ok(&s, COUNT(ms));
    for (unsigned k = 0; k < COUNT(ms); k++)
        assert_true(s.rows[k].warm[IRON_SCOPE_KERNEL].count >= 3);
    assert_in_range((uintmax_t)total_ms(&s, COUNT(ms)) / 1000, 14000, 21000);
    free_rows(&s, COUNT(ms));
}

static void without_time_there_is_one_sample(void **state) {
    fake a = make_fake(0, KERNEL | END_TO_END, 50);
    test_race s = make_race(&a, 1);

    (void)state;
    s.rules.seconds = 0;
    run_ok(&s, 1);
    assert_int_equal(s.rows[0].warm[IRON_SCOPE_KERNEL].count, 1);
    assert_int_equal(s.rows[0].warm[IRON_SCOPE_END_TO_END].count, 1);
    assert_int_equal(s.rows[0].warm[IRON_SCOPE_KERNEL].stop, IRON_STOP_TIME);
    free_rows(&s, 1);
}

/* 22 s hold a pass that calibrates and four samples of 5 s; the last one starts before the time is
 * over. */
static void the_time_is_for_all_passes(void **state) {
    fake a = make_fake(0, KERNEL, 5000);
    test_race s = make_race(&a, 1);
    double spent = 7; /* by earlier races */

    (void)state;
    s.rules.seconds = 22;
    s.rules.spent = &spent;
    run_ok(&s, 1);
    assert_true(fabs(spent - 7 - 25) < 0.5);
    assert_int_equal(s.rows[0].warm[IRON_SCOPE_KERNEL].count, 4);
    assert_int_equal(s.rows[0].warm[IRON_SCOPE_KERNEL].stop, IRON_STOP_TIME);
    free_rows(&s, 1);
}

/* Neither warmed up nor sampled cold, nor calibrated twice: one pass and one answer for each. */
static void long_passes_are_run_only_for_samples(void **state) {
    fake a = make_fake(0, KERNEL, 600);
    test_race s;

    (void)state;
    a.base.has_cold = true;
    s = make_race(&a, 1);
    s.rules.runs = 4;
    run_ok(&s, 1);
    assert_int_equal(s.rows[0].status, IRON_ROW_OK);
    assert_int_equal(s.rows[0].warm[IRON_SCOPE_KERNEL].count, 4);
    assert_int_equal(s.rows[0].cold.count, 0);
    assert_int_equal(calls_of(0, CALL_TIME), 1 + 4);
    free_rows(&s, 1);
}

static void rows_that_are_too_slow_are_skipped(void **state) {
    race_rules rules = {.seconds_a_row = 4, .seconds_asked = 10};
    iron__race_row row = {.answer_ms = 999};

    (void)state;
    skip_slow(&row, &rules);
    assert_int_equal(row.status, IRON_ROW_OK);
    row.answer_ms = 2000; /* one of five passes */
    skip_slow(&row, &rules);
    assert_int_equal(row.status, IRON_ROW_SKIPPED);
    assert_string_equal(row.reason, "one run takes 2 s, which is too slow for --time 10; use a "
                                    "smaller --size, or --time 21 or more");
    row = (iron__race_row){.answer_ms = 1e9};
    rules.seconds_a_row = 0; /* a number of runs was asked for */
    skip_slow(&row, &rules);
    assert_int_equal(row.status, IRON_ROW_OK);
}

/* Answers and progress calls. Throttled is queried twice per round: yes from query `from` on,
 * `count` times. */
typedef struct observer {
    unsigned questions, from, count;
    unsigned shown, stop_at; /* progress: cancels at call number stop_at */
    uint64_t last, total;
    bool has_gone_back;
} observer;

static bool say_throttled(void *context) {
    observer *w = context;
    unsigned question = w->questions++;

    return question >= w->from && question - w->from < w->count;
}

static int observe_progress(void *context, uint64_t done, uint64_t total) {
    observer *w = context;

    w->has_gone_back |= done < w->last || done > total;
    w->last = done;
    w->total = total;
    return ++w->shown == w->stop_at;
}

static void throttled_rounds_are_dropped(void **state) {
    /* queries 4, 5, 6: the third round and the beginning of the fourth */
    observer w = {.from = 4, .count = 3};
    fake fakes[2] = {make_fake(0, KERNEL, 5), make_fake(1, KERNEL | END_TO_END, 5)};
    test_race s = make_race(fakes, 2);

    (void)state;
    s.rules.is_throttled = say_throttled;
    s.rules.context = &w;
    s.rules.runs = 10;
    run_ok(&s, 2);
    assert_int_equal(w.questions, 2 * 12);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(s.rows[k].warm[IRON_SCOPE_KERNEL].count, 10);
        assert_int_equal(s.rows[k].warm[IRON_SCOPE_KERNEL].dropped, 2);
        assert_int_equal(s.rows[k].warm[IRON_SCOPE_KERNEL].stop, IRON_STOP_RUNS);
    }
    assert_int_equal(s.rows[1].warm[IRON_SCOPE_END_TO_END].dropped, 2);
    free_rows(&s, 2);
}

static void samples_before_throttling_are_kept(void **state) {
    observer w = {.from = 8, .count = 1000000};
    fake a = make_fake(0, KERNEL, 5000);
    test_race s = make_race(&a, 1);

    (void)state;
    a.spread = 1.5;
    s.rules.is_throttled = say_throttled;
    s.rules.context = &w;
    run_ok(&s, 1);
    assert_int_equal(s.rows[0].status, IRON_ROW_OK);
    assert_int_equal(s.rows[0].warm[IRON_SCOPE_KERNEL].count, 4);
    assert_true(s.rows[0].warm[IRON_SCOPE_KERNEL].dropped > 50);
    assert_int_equal(s.rows[0].warm[IRON_SCOPE_KERNEL].stop, IRON_STOP_TIME);
    free_rows(&s, 1);
}

static void throttling_all_the_time_is_a_failure(void **state) {
    static const uint32_t runs[] = {0, 12};

    (void)state;
    for (size_t k = 0; k < COUNT(runs); k++) {
        observer w = {.count = 1000000};
        fake a = make_fake(0, KERNEL, 5000);
        test_race s = make_race(&a, 1);

        s.rules.is_throttled = say_throttled;
        s.rules.context = &w;
        s.rules.runs = runs[k];
        run_ok(&s, 1);
        assert_int_equal(s.rows[0].status, IRON_ROW_FAILED);
        assert_string_equal(s.rows[0].reason,
                            "every sample was taken while the machine was throttled");
        assert_no_samples(&s.rows[0]);
        assert_in_range(w.questions, 350, 450); /* 1000 s of 5 s per sample, two queries each */
        free_rows(&s, 1);
    }
}

static void progress_goes_forward_to_the_end(void **state) {
    observer w = {0};
    fake fakes[3] = {make_fake(0, KERNEL, 5), make_fake(1, KERNEL | END_TO_END, 40),
                     make_fake(2, KERNEL, 1)};
    test_race s = make_race(fakes, 3);

    (void)state;
    fakes[1].spread = fakes[2].spread = 1.5;
    s.rules.progress = observe_progress;
    s.rules.context = &w;
    run_ok(&s, 3);
    assert_false(w.has_gone_back);
    assert_int_equal(w.last, 1000);
    assert_int_equal(w.total, 1000);
    free_rows(&s, 3);
}

static void a_race_can_be_cancelled_at_any_time(void **state) {
    bool is_through = false;

    (void)state;
    for (unsigned at = 1; !is_through; at++) {
        observer w = {.stop_at = at};
        fake fakes[2] = {make_fake(0, KERNEL, 5), make_fake(1, END_TO_END, 40)};
        test_race s = make_race(fakes, 2);
        iron_status status;

        s.rules.progress = observe_progress;
        s.rules.context = &w;
        s.rules.runs = 4;
        status = run_race(s.rows, 2, &s.rules, &s.err);
        is_through = w.shown < at;
        assert_int_equal(status, is_through ? IRON_OK : IRON_E_CANCELLED);
        if (!is_through)
            assert_int_equal(w.shown, at); /* not queried again */
        free_rows(&s, 2);
    }
}

static void names(void **state) {
    (void)state;
    assert_string_equal(iron__scope_name(IRON_SCOPE_PREPARE), "prepare");
    assert_string_equal(iron__scope_name(IRON_SCOPE_END_TO_END), "end_to_end");
    assert_string_equal(iron__row_status_name(IRON_ROW_OK), "ok");
    assert_string_equal(iron__row_status_name(IRON_ROW_FAILED), "failed");
}

static fake *fails_when_read;

/* A counter that moves by 1 J and a clock that moves by 100 ms with each reading. */
static bool steady_read(iron__energy_meter *m, iron__energy_reading *now) {
    fails_when_read->fails_from_timing = 1;
    m->joules += 1;
    *now = (iron__energy_reading){.joules = m->joules, .ms = 100 * m->joules};
    return true;
}

/* Each row on its own, after all samples and before the last answer; neither rows that are out nor
 * those without bytes. One that fails meanwhile has failed. */
static void energy_is_measured_after_the_samples(void **state) {
    iron__energy_meter meter = {.source = "nvml", .read = steady_read, .update_ms = 1};
    fake fakes[] = {make_fake(0, KERNEL, 2000), make_fake(1, KERNEL, 2000),
                    make_fake(2, KERNEL, 2000), make_fake(3, KERNEL, 2000)};
    test_race s = make_race(fakes, 4);
    size_t last_answer = 0;

    (void)state;
    s.rules.meter = &meter;
    s.rules.energy_ms = 1e6;
    s.rules.runs = 6;
    s.rows[0].useful_bytes = s.rows[2].useful_bytes = s.rows[3].useful_bytes = 1e9;
    fakes[2].wrong_from_answer = 1;
    fails_when_read = &fakes[3];
    fakes[3].time_status = IRON_E_STATE;
    run_ok(&s, 4);
    assert_string_equal(s.rows[0].energy.source, "nvml");
    assert_true(fabs(s.rows[0].energy.watts - 10) < 1e-9);
    assert_true(fabs(s.rows[0].energy.joules_per_gb - 1) < 1e-9);
    assert_int_equal(s.rows[0].warm[IRON_SCOPE_KERNEL].count, 6);
    assert_null(s.rows[1].energy.source);
    assert_int_equal(s.rows[1].status, IRON_ROW_OK);
    assert_int_equal(s.rows[2].status, IRON_ROW_WRONG);
    assert_null(s.rows[2].energy.source);
    assert_int_equal(s.rows[3].status, IRON_ROW_FAILED);
    assert_null(s.rows[3].energy.source);
    for (size_t k = 0; k < call_log.count; k++)
        if (call_log.calls[k].fake == 0 && call_log.calls[k].kind == CALL_TIME)
            last_answer = k;
    while (last_answer < call_log.count && call_log.calls[last_answer].kind != CALL_ANSWER)
        last_answer++;
    assert_true(last_answer < call_log.count); /* it is verified after that, too */
    assert_true(calls_of(0, CALL_TIME) > calls_of(1, CALL_TIME));
    free_rows(&s, 4);
}

static void energy_has_a_fifth_of_the_time(void **state) {
    iron__energy_meter none = {.source = NULL}, some = {.source = "rapl"};
    race_rules rules = {.seconds = 60}, by_runs = {.seconds = 60, .runs = 5};

    (void)state;
    plan_energy(&rules, &none, 10);
    assert_null(rules.meter);
    assert_true(fabs(rules.seconds - 60) < 1e-9);
    plan_energy(&rules, &some, 10);
    assert_ptr_equal(rules.meter, &some);
    assert_true(fabs(rules.seconds - 48) < 1e-9 && fabs(rules.energy_ms - 1200) < 1e-9);
    plan_energy(&by_runs, &some, 10);
    assert_true(fabs(by_runs.energy_ms - ENERGY_MS) < 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_correct_contender_is_timed),
        cmocka_unit_test(wrong_contenders_are_out),
        cmocka_unit_test(contenders_without_an_answer_are_out),
        cmocka_unit_test(wrong_the_second_time),
        cmocka_unit_test(wrong_after_timing),
        cmocka_unit_test(errors_become_reasons),
        cmocka_unit_test(rows_without_a_contender_are_left_alone),
        cmocka_unit_test(without_a_check_nothing_is_verified),
        cmocka_unit_test(short_passes_are_repeated),
        cmocka_unit_test(rounds_have_a_random_order),
        cmocka_unit_test(the_seed_decides_the_order),
        cmocka_unit_test(stops_by_precision_or_time),
        cmocka_unit_test(a_higher_precision_takes_longer),
        cmocka_unit_test(the_number_of_runs_is_exact),
        cmocka_unit_test(the_number_of_samples_is_limited),
        cmocka_unit_test(slow_contenders_leave_time_to_the_others),
        cmocka_unit_test(the_total_stays_near_the_requested_time),
        cmocka_unit_test(without_time_there_is_one_sample),
        cmocka_unit_test(the_time_is_for_all_passes),
        cmocka_unit_test(long_passes_are_run_only_for_samples),
        cmocka_unit_test(rows_that_are_too_slow_are_skipped),
        cmocka_unit_test(throttled_rounds_are_dropped),
        cmocka_unit_test(samples_before_throttling_are_kept),
        cmocka_unit_test(throttling_all_the_time_is_a_failure),
        cmocka_unit_test(progress_goes_forward_to_the_end),
        cmocka_unit_test(a_race_can_be_cancelled_at_any_time),
        cmocka_unit_test(names),
        cmocka_unit_test(energy_is_measured_after_the_samples),
        cmocka_unit_test(energy_has_a_fifth_of_the_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
