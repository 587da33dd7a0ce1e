/* SPDX-License-Identifier: MIT */
/*
 * run.c: runs a planned race, and turns its samples into a report.
 *
 * First the ceilings of every device that takes part. Then case by case, so that only one problem
 * is in memory at a time; and within a case device by device: its contenders are set up, race each
 * other, and are closed before the next device begins. The requested time is for all cases: each
 * row has an equal share of what is left. Ceilings belong to the device, not to a case. They are
 * measured before the first case. Those of a CPU, which other processes disturb, are measured again
 * after the last case, and the one that a case is compared with takes turns with its contenders;
 * the best measurement counts, the others are its band. Where a contender is above a ceiling all
 * the same, the best way to reach it is searched anew, and if that does not help, the row is
 * marked.
 *
 * In reading order: the race of some contenders (verify, sample in rounds, verify again), the cases
 * and devices, the report.
 *
 * Verifying. The output is filled with 0xFF (NaN for floats, the greatest number for the rest), the
 * contender gives an answer, and the op checks it. Before the first sample that happens twice in a
 * row, since some contenders are right only on fresh memory: accumulators that are not reset, flags
 * that stay set. After the last sample it happens once more, since some are right only until they
 * have run a thousand times. A contender that is wrong at any time keeps no samples: a wrong answer
 * has no speed. One that returns an error is out too: skipped if the error is IRON_E_UNSUPPORTED,
 * failed otherwise. Neither ends the race of the others.
 *
 * Rounds. A series is one row in one scope, warm (an untimed pass comes right before the timed
 * ones) or cold (the caches are emptied before). In each round every series that still needs
 * samples gets one, in a new random order, so that slow drift of clocks and load from other
 * processes affect all alike. A series stops when the median's interval is within the
 * requested precision, when its share of the time is spent, or after a fixed number of runs; the
 * reason is kept.
 *
 * Time. It is for checking answers and for samples. All running series have an equal share of what
 * is left; those that stop early, by precision, leave theirs to the others. A series is over when
 * it has spent its share and has three samples, or one if the race's time is spent. One whose
 * samples cost more than its share takes the rest from the others, but never more than half of an
 * equal share of each: a slow contender makes the race longer rather than the figures of the others
 * worthless. It cannot make it much longer: a pass that takes half a second is sampled without a
 * warming pass and not cold, and a contender whose first answer shows that it needs more time than
 * there is for it is skipped. Each call costs the greater of the wall time and the time that the
 * contender reports: emptying caches counts, and contenders that only claim to take time (those of
 * the tests) are believed.
 *
 * Throttling. The samples of a round before or after which the machine was throttled are dropped
 * and taken again. When the time is spent and only throttled rounds came, a series keeps what it
 * has; if it has nothing, its row has failed.
 *
 * Energy. Where a counter of it can be read, a fifth of the time is for the energy of the rows.
 * They run one after the other when all samples were taken (energy.c).
 *
 * Looking at the interval after every round and stopping when it is narrow makes it hold slightly
 * less often than 95 %. The comparison of two runs therefore widens it (compare.c).
 *
 * The report. Useful bytes come from the op, so the rates of two contenders differ only where their
 * times do. Shares are of the same device: kernels are compared with its read or copy ceiling (the
 * op says which), transfers and whole runs with page-locked copies, the fastest way to the device.
 */
#include "arena/outside.h"
#include "core/array.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/fail.h"
#include "core/hash.h"

#include <stdarg.h>
#include <sys/utsname.h>
#include <time.h>

#define POISON 0xFF

/* Parts of the progress: verifying, sampling, verifying. In a race by time sampling is almost all
 * of it. */
#define PROGRESS_VERIFIED 0.1
#define PROGRESS_SAMPLED  0.95

#define SAMPLES_MIN       3u
#define SAMPLES_PRECISION 6u

/* What a row still needs after its first answer: two more, a pass that calibrates, and a sample. */
#define PASSES_AFTER_FIRST 4.0

/* A pass as long as this is not warmed up, nor sampled cold: what the caches can hold is read in
 * less than a hundredth of it. */
#define LONG_PASS_MS 500.0

/* A sample shorter than this is mostly the cost of the clock and the call. */
#define SAMPLE_MS  2.0
#define PASSES_MAX 1000u

/* Kernel, transfer, end to end, and cold. */
#define SERIES_PER_ROW 4u

typedef struct race_rules {
    double seconds;          /* for the answers and samples of all rows */
    double seconds_a_row;    /* a row that needs more is skipped; 0: none is */
    double seconds_asked;    /* for the whole run */
    double seconds_over;     /* after so many, rows that have not begun are skipped; 0: none is */
    double *spent;           /* NULL, or: the seconds that both took are added to it */
    uint32_t runs;           /* 0: by precision and time; else exactly so many samples per scope */
    iron__race_row *ceiling; /* NULL, or: takes turns as long as any row does */
    double precision;        /* 0.01: the interval within 1 % of the median */
    uint64_t seed;           /* of the random order */
    iron__energy_meter *meter;           /* NULL: there is none */
    double energy_ms;                    /* for the energy of a row */
    bool (*is_throttled)(void *context); /* asked before and after each round; may be NULL */
    iron_progress progress;              /* NULL, or: done and total in thousandths */
    void *context;                       /* of both */
} race_rules;

/* One row in one scope, warm or cold. */
typedef struct series {
    iron__race_row *row;
    iron__samples *samples;
    iron__scope scope;
    bool is_cold, is_over;
    double spent_ms;
} series;

typedef struct race {
    const race_rules *rules;
    iron__race_row *rows;
    size_t row_count;
    series *all; /* those that run come first, in the order of the round */
    size_t series_count;
    double answers_ms;       /* that checking answers took so far */
    uint64_t draws;          /* random numbers used so far */
    uint64_t progress_shown; /* thousandths; never goes back */
    void *output;            /* as long as the largest answer */
} race;

const char *iron__scope_name(iron__scope scope) {
    static const char *const names[IRON_SCOPES] = {"prepare", "kernel", "transfer", "end_to_end"};

    return scope < IRON_SCOPES ? names[scope] : "";
}

const char *iron__row_status_name(iron__row_status status) {
    static const char *const names[IRON_ROW_STATUSES] = {"ok", "wrong", "skipped", "failed",
                                                         "implausible"};

    return names[status];
}

/* fraction: 0 ... 1 of the whole race. IRON_E_CANCELLED when told to stop. */
static iron_status show_race_part(race *r, double fraction, iron_error *err) {
    uint64_t done = fraction > 0 ? (uint64_t)(1000 * (fraction < 1 ? fraction : 1)) : 0;

    if (done > r->progress_shown)
        r->progress_shown = done;
    IRON_FAIL_IF(r->rules->progress &&
                     r->rules->progress(r->rules->context, r->progress_shown, 1000),
                 err, IRON_E_CANCELLED, "the race was cancelled");
    return IRON_OK;
}

static bool is_in(const iron__race_row *row) {
    return row->contender && row->status == IRON_ROW_OK;
}

static bool has_scope(const iron__race_row *row, iron__scope scope) {
    return (row->contender->scopes >> scope & 1u) != 0;
}

/* Takes a row out of the race. */
static void __attribute__((format(printf, 3, 4)))
drop(iron__race_row *row, iron__row_status status, const char *format, ...) {
    va_list list;

    row->status = status;
    va_start(list, format);
    vsnprintf(row->reason, sizeof row->reason, format, list);
    va_end(list);
    iron__race_row_deinit(row);
}

/* After an error, of the contender or while it was set up: skipped if the device or the case does
 * not allow it. */
static void fail_row(iron__race_row *row, iron_status status, const iron_error *why) {
    bool is_skip = status == IRON_E_UNSUPPORTED || (status == IRON_E_NOMEM && !row->contender);

    drop(row,
         row->contender && row->contender->fault != IRON_ROW_OK ? row->contender->fault
         : is_skip                                              ? IRON_ROW_SKIPPED
                                                                : IRON_ROW_FAILED,
         "%s", why->text[0] ? why->text : iron_status_text(status));
}

/* Skips a row whose first answers say that it needs more time than there is for one. */
static void skip_slow(iron__race_row *row, const race_rules *rules) {
    double one = row->answer_ms / 1000, limit = rules->seconds_a_row;

    if (limit <= 0 || PASSES_AFTER_FIRST * one <= limit)
        return;
    drop(row, IRON_ROW_SKIPPED,
         "one run takes %.3g s, which is too slow for --time %g; use a smaller --size, or "
         "--time %.0f or more",
         one, rules->seconds_asked, rules->seconds_asked * PASSES_AFTER_FIRST * one / limit + 1);
}

/* Checks `times` answers in each scope that has answers, until one is wrong. The reason begins with
 * whens[k] for answer k. */
static void verify(race *r, iron__race_row *row, const char *const *whens, size_t times) {
    static const iron__scope scopes[] = {IRON_SCOPE_KERNEL, IRON_SCOPE_END_TO_END};
    bool is_first = row->answer_ms <= 0;

    for (size_t k = 0; k < 2 * times && row->check && is_in(row); k++) {
        iron__scope scope = scopes[k / times];
        uint64_t start = iron__clock_ns();
        double ms;
        char text[sizeof row->reason] = "";
        iron_error why = {0};
        iron_status status;

        if (!has_scope(row, scope))
            continue;
        memset(r->output, POISON, row->output_bytes);
        status = row->contender->ops->answer(row->contender, scope, r->output, &why);
        ms = (double)(iron__clock_ns() - start) / 1e6;
        r->answers_ms += ms;
        if (is_first && k % times == 0)
            row->answer_ms += ms;
        if (status != IRON_OK) {
            fail_row(row, status, &why);
        } else if (!row->check(row->check_context, r->output, text, sizeof text)) {
            drop(row, IRON_ROW_WRONG, "%s%s: %.200s", whens[k % times], iron__scope_name(scope),
                 text);
        } else if (is_first && k % times == 0) {
            skip_slow(row, r->rules);
        }
    }
}

/* Skips a row that has not begun, since the others took all the time. */
static void skip_late(iron__race_row *row, double asked) {
    drop(row, IRON_ROW_SKIPPED,
         "the rows before it took more than --time %g; use more, or race fewer rows", asked);
}

static bool is_running(const series *s) { return !s->is_over && is_in(s->row); }

/* Calls the contender and counts what it cost. False: the row is out. */
static bool time_passes(series *s, uint32_t passes, double *ms) {
    iron__race_contender *c = s->row->contender;
    uint64_t start = iron__clock_ns();
    iron_error why = {0};
    double wall_ms;
    iron_status status;

    *ms = 0;
    status = c->ops->time(c, s->scope, s->is_cold, passes, ms, &why);
    wall_ms = (double)(iron__clock_ns() - start) / 1e6;
    if (status == IRON_OK && !(*ms >= 0 && *ms <= 1e15))
        status = iron__fail(&why, IRON_E_MISMATCH, 0, "%s: its own clock says %g ms",
                            iron__scope_name(s->scope), *ms);
    if (status != IRON_OK) {
        fail_row(s->row, status, &why);
        return false;
    }
    s->spent_ms += wall_ms > *ms * passes ? wall_ms : *ms * passes;
    return true;
}

static iron_status add_sample(iron__samples *s, double ms, iron_error *err) {
    IRON_FAIL_IF(!IRON_ARRAY_GROW(&s->ms, s->count, &s->room), err, IRON_E_NOMEM,
                 "out of memory for %u samples; ask for fewer runs", s->count + 1);
    s->ms[s->count++] = ms;
    return IRON_OK;
}

/* Sets how many passes make a sample long enough; one where there are transfers. The first of the
 * two passes here only warms up; one that is far too long for more needs no second. */
static void calibrate(series *s) {
    uint32_t most = s->row->contender->passes_max ? s->row->contender->passes_max : PASSES_MAX;
    double ms = 0, wanted;

    s->samples->passes = 1;
    if (s->is_cold || s->scope != IRON_SCOPE_KERNEL)
        return;
    for (int pass = 0; pass < 2 && ms < 10 * SAMPLE_MS; pass++)
        if (!time_passes(s, 1, &ms))
            return;
    s->row->kernel_ms = ms;
    wanted = ms > 0 ? SAMPLE_MS / ms : most;
    if (wanted > 1)
        s->samples->passes = wanted < most ? (uint32_t)(wanted + 0.999) : most;
}

/* What each running series may spend in all. */
static double share_ms(const race *r) {
    double all = 1000 * r->rules->seconds, left = all - r->answers_ms, share, least;
    size_t running = 0;

    for (size_t k = 0; k < r->series_count; k++) {
        if (is_running(&r->all[k]))
            running++;
        else
            left -= r->all[k].spent_ms;
    }
    share = running ? left / (double)running : 0;
    least = all / (double)r->series_count / 2;
    return share > least ? share : least;
}

static uint32_t runs_of(const race_rules *rules) {
    return rules->runs < IRON_SAMPLES_MAX ? rules->runs : IRON_SAMPLES_MAX;
}

static iron_status show_sampling_progress(race *r, iron_error *err) {
    double share = share_ms(r), sum = 0;

    for (const series *s = r->all; s < r->all + r->series_count; s++) {
        double part = 1;

        if (is_running(s) && r->rules->runs)
            part = (double)s->samples->count / runs_of(r->rules);
        else if (is_running(s) && share > 0)
            part = s->spent_ms / share;
        sum += part < 1 ? part : 1;
    }
    return show_race_part(r,
                          PROGRESS_VERIFIED + (PROGRESS_SAMPLED - PROGRESS_VERIFIED) * sum /
                                                  (double)r->series_count,
                          err);
}

static void swap_series(series *a, series *b) {
    series kept = *a;

    *a = *b;
    *b = kept;
}

/* Puts the running series first, in random order (Fisher and Yates); returns how many there are. */
static size_t draw_order(race *r) {
    size_t count = 0;

    for (size_t k = 0; k < r->series_count; k++)
        if (is_running(&r->all[k]))
            swap_series(&r->all[count++], &r->all[k]);
    for (size_t k = count; k > 1; k--) {
        uint64_t drawn = iron__mix64(r->rules->seed + ++r->draws * IRON_GOLDEN_GAMMA);

        swap_series(&r->all[k - 1], &r->all[drawn % k]);
    }
    return count;
}

/* Why the series is over, or IRON_STOP_NONE. */
static iron__stop why_stop(const series *s, const race_rules *rules, bool is_throttled,
                           double share, bool is_spent) {
    const iron__samples *samples = s->samples;
    uint32_t wanted = rules->runs ? runs_of(rules) : is_spent ? 1 : SAMPLES_MIN;

    if (s->row == rules->ceiling && samples->count < IRON_SAMPLES_MAX)
        return IRON_STOP_NONE;
    if (samples->count >= (rules->runs ? wanted : IRON_SAMPLES_MAX))
        return IRON_STOP_RUNS;
    if (!rules->runs && samples->count >= SAMPLES_PRECISION) {
        iron__statistics figures = iron__statistics_of(samples->ms, samples->count);

        if (iron__statistics_is_within(&figures, rules->precision))
            return IRON_STOP_PRECISION;
    }
    if (s->spent_ms < share)
        return IRON_STOP_NONE;
    if ((!rules->runs && samples->count >= wanted) || (is_throttled && samples->dropped >= wanted))
        return IRON_STOP_TIME;
    return IRON_STOP_NONE;
}

static bool is_throttled_now(const race_rules *rules) {
    return rules->is_throttled && rules->is_throttled(rules->context);
}

/* One sample for each of the first `count` series. */
static iron_status run_round(race *r, size_t count, iron_error *err) {
    bool is_throttled = is_throttled_now(r->rules);
    double share, spent;

    for (size_t k = 0; k < count; k++) {
        /* another scope of the same row may have failed in this round */
        series *s = &r->all[k];
        bool is_long = s->scope == IRON_SCOPE_KERNEL && s->row->kernel_ms >= LONG_PASS_MS;
        bool is_warmed = !s->is_cold && !is_long;
        double ms;

        if (is_running(s) && (!is_warmed || time_passes(s, 1, &ms)) &&
            time_passes(s, s->samples->passes, &ms))
            IRON_TRY(add_sample(s->samples, ms, err));
        IRON_TRY(show_sampling_progress(r, err));
    }
    is_throttled = is_throttled_now(r->rules) || is_throttled;
    for (size_t k = 0; k < count && is_throttled; k++)
        if (is_running(&r->all[k])) {
            r->all[k].samples->count--;
            r->all[k].samples->dropped++;
        }
    share = share_ms(r); /* the same for all, whatever their order */
    spent = r->answers_ms;
    for (size_t k = 0; k < r->series_count; k++)
        spent += r->all[k].spent_ms;
    for (series *s = r->all; s < r->all + count; s++) {
        if (is_running(s))
            s->samples->stop =
                why_stop(s, r->rules, is_throttled, share, spent >= 1000 * r->rules->seconds);
        s->is_over = !is_running(s) || s->samples->stop != IRON_STOP_NONE;
    }
    return IRON_OK;
}

/* Adds the row's series. Preparing happened once, before the race: one sample. */
static iron_status add_row(race *r, iron__race_row *row, iron_error *err) {
    if (row->contender->prepare_ms > 0) {
        iron__samples *s = &row->warm[IRON_SCOPE_PREPARE];

        s->passes = 1;
        s->stop = IRON_STOP_RUNS;
        IRON_TRY(add_sample(s, row->contender->prepare_ms, err));
    }
    for (int scope = IRON_SCOPE_KERNEL; scope < IRON_SCOPES; scope++)
        if (has_scope(row, (iron__scope)scope))
            r->all[r->series_count++] =
                (series){.row = row, .samples = &row->warm[scope], .scope = (iron__scope)scope};
    if (row->contender->has_cold && has_scope(row, IRON_SCOPE_KERNEL))
        r->all[r->series_count++] = (series){
            .row = row, .samples = &row->cold, .scope = IRON_SCOPE_KERNEL, .is_cold = true};
    return IRON_OK;
}

static iron_status take_samples(race *r, iron_error *err) {
    static const iron_error throttled = {
        .text = "every sample was taken while the machine was throttled"};
    size_t count;

    if (r->rules->ceiling)
        IRON_TRY(add_row(r, r->rules->ceiling, err));
    for (size_t k = 0; k < r->row_count; k++)
        if (is_in(&r->rows[k]))
            IRON_TRY(add_row(r, &r->rows[k], err));
    for (series *s = r->all; s < r->all + r->series_count; s++) {
        if (is_running(s))
            calibrate(s);
        s->is_over = s->is_cold && s->row->kernel_ms >= LONG_PASS_MS; /* after the kernel's own */
        IRON_TRY(show_race_part(r, PROGRESS_VERIFIED, err));
    }
    while ((count = draw_order(r)) > 1 || (count == 1 && r->all[0].row != r->rules->ceiling))
        IRON_TRY(run_round(r, count, err));
    for (size_t k = 0; k < r->series_count; k++)
        if (is_in(r->all[k].row) && r->all[k].samples->count == 0 && !r->all[k].is_cold)
            fail_row(r->all[k].row, IRON_E_STATE, &throttled);
    return IRON_OK;
}

static iron_status run_stages(race *r, iron_error *err) {
    static const char *const before[] = {"", "the second time, "}, *const after = "after timing, ";

    /* The last rows first: ops list their contenders from the simplest to the fastest, and if the
     * time is too short for all, it is better spent on the fast ones. */
    for (size_t k = 0; k < r->row_count; k++) {
        iron__race_row *row = &r->rows[r->row_count - 1 - k];

        IRON_TRY(show_race_part(r, PROGRESS_VERIFIED * (double)k / (double)r->row_count, err));
        if (is_in(row) && r->rules->seconds_over > 0 &&
            r->answers_ms > 1000 * r->rules->seconds_over)
            skip_late(row, r->rules->seconds_asked);
        verify(r, row, before, 2);
    }
    IRON_TRY(take_samples(r, err));
    /* row after row: a counter of energy does not tell apart what takes turns */
    for (iron__race_row *row = r->rows; r->rules->meter && row < r->rows + r->row_count; row++) {
        const iron__samples *warm = &row->warm[IRON_SCOPE_KERNEL];
        uint64_t start = iron__clock_ns();
        iron_error why = {0};
        iron_status status;

        if (!is_in(row) || warm->count == 0 || !(row->useful_bytes > 0))
            continue;
        status = iron__energy_measure(r->rules->meter, row->contender,
                                      iron__statistics_of(warm->ms, warm->count).median,
                                      row->useful_bytes, r->rules->energy_ms, &row->energy, &why);
        if (status != IRON_OK)
            fail_row(row, status, &why);
        if (r->rules->spent)
            *r->rules->spent += (double)(iron__clock_ns() - start) * 1e-9;
        IRON_TRY(show_race_part(r, PROGRESS_SAMPLED, err));
    }
    for (size_t k = 0; k < r->row_count; k++) {
        iron__race_row *row = &r->rows[k];
        double part = (double)(k + 1) / (double)r->row_count;

        verify(r, row, &after, 1);
        row->is_verified =
            is_in(row) && row->check &&
            (has_scope(row, IRON_SCOPE_KERNEL) || has_scope(row, IRON_SCOPE_END_TO_END));
        IRON_TRY(show_race_part(r, PROGRESS_SAMPLED + (1 - PROGRESS_SAMPLED) * part, err));
    }
    return IRON_OK;
}

/* IRON_OK also when rows were wrong or failed: their status says so. IRON_E_CANCELLED when progress
 * says stop, IRON_E_NOMEM. */
static iron_status run_race(iron__race_row *rows, size_t count, const race_rules *rules,
                            iron_error *err) {
    race r = {.rules = rules, .rows = rows, .row_count = count};
    size_t output_bytes = 1;
    iron_status status;

    for (size_t k = 0; k < count; k++) {
        if (!rows[k].contender)
            continue;
        iron__race_row_deinit(&rows[k]);
        rows[k].status = IRON_ROW_OK;
        rows[k].reason[0] = '\0';
        rows[k].is_verified = false;
        rows[k].answer_ms = rows[k].kernel_ms = 0;
        if (rows[k].output_bytes > output_bytes)
            output_bytes = rows[k].output_bytes;
    }
    r.output = malloc(output_bytes);
    r.all = calloc((count + 1) * SERIES_PER_ROW, sizeof *r.all);
    if (!r.output || !r.all) {
        status =
            iron__fail(err, IRON_E_NOMEM, 0,
                       "out of memory for a race of %zu rows, answers of %zu bytes; race smaller "
                       "sizes",
                       count, output_bytes);
        goto done;
    }
    status = run_stages(&r, err);
    for (size_t k = 0; rules->spent && k < r.series_count; k++)
        *rules->spent += r.all[k].spent_ms / 1000;
    if (rules->spent)
        *rules->spent += r.answers_ms / 1000;
done:
    free(r.all);
    free(r.output);
    return status;
}

#define PRECISION 0.01

#define PROGRESS_ALL      1000u
#define PROGRESS_CEILINGS 100u /* of it */

/* Boost clocks move by a step or two all the time; a drop of more than 5 % is more than that. */
#define CLOCK_DROP 0.95

/* Was a device throttled while it was timed? Asked before and after each round. It was if the
 * driver says so (heat, power), or if its clock has dropped since the last reading. A clock that
 * settles lower and stays there does not spoil every round that follows: what is timed from then on
 * is what the device does. */
typedef struct clock_state {
    uint32_t last_mhz;   /* 0: not read yet */
    uint64_t last_count; /* of a CPU's throttling events */
    bool has_count;
} clock_state;

typedef struct run {
    iron_arena *arena;
    iron__thread_pool *pool;      /* all threads */
    size_t rows_total, rows_done; /* that race */
    size_t rows_now;              /* in the current race */
    double spent; /* of the time asked for: seconds that answers and samples took so far */
    iron__race_device *devices[IRON_PLAN_DEVICES]; /* open for the whole run */
    const iron__race_device *clocked;              /* whose clocks are read */
    iron__report_device *clock_report;             /* where they are noted */
    clock_state clock;
    unsigned searches[IRON_PLAN_DEVICES]; /* new ones, for contenders above a ceiling */
} run;

static bool does_race(const run *r, size_t row) {
    return r->arena->plan.rows[row].reason[0] == '\0';
}

/* IRON_E_CANCELLED when told to stop. */
static iron_status show_progress(const run *r, uint64_t thousandths, iron_error *err) {
    const iron_arena_options *o = &r->arena->options;

    IRON_FAIL_IF(o->progress && o->progress(o->context, thousandths, PROGRESS_ALL), err,
                 IRON_E_CANCELLED, "cancelled while racing");
    return IRON_OK;
}

/* Returns the index of the device's ceiling with this name, or ceiling_count. */
static size_t find_ceiling(const iron__report *r, const iron__race_plan_device *d,
                           const char *name) {
    size_t at = 0;

    while (at < r->ceiling_count && (strcmp(r->ceilings[at].backend, d->backend) != 0 ||
                                     strcmp(r->ceilings[at].device, d->info.name) != 0 ||
                                     strcmp(r->ceilings[at].name, name) != 0))
        at++;
    return at;
}

/* Where a ceiling becomes a row of the report. */
typedef struct ceiling_target {
    iron_arena *arena;
    const iron__race_plan_device *device;
} ceiling_target;

/* Datasheet bandwidths in GB/s of the memories of GPUs whose names contain a text; the first one
 * that does counts. */
typedef struct peak {
    const char *name;
    double gb_s;
} peak;

static const peak peaks[] = {{"B200", 8000},
                             {"GH200 480GB", 4000},
                             {"H200", 4800},
                             {"H100 PCIe", 2000},
                             {"H100 NVL", 3900},
                             {"H100", 3350},
                             {"A100-SXM4-80GB", 2039},
                             {"A100 80GB PCIe", 1935},
                             {"A100", 1555},
                             {"L40S", 864},
                             {"L40", 864},
                             {"NVIDIA L4", 300},
                             {"A10G", 600},
                             {"A10", 600},
                             {"V100", 900},
                             {"Tesla T4", 320},
                             {"RTX 5090", 1792},
                             {"RTX 4090", 1008},
                             {"RTX 3090", 936}};

/* Keeps the best measurement of a ceiling, on a CPU by its fastest pass, and the band of all: a
 * limit lowered by other load is not a limit. Without memory for its samples the ceiling is
 * missing, and shares of it are not shown. */
static void add_ceiling(void *context, const iron__ceiling_samples *samples) {
    const ceiling_target *target = context;
    iron__report *r = &target->arena->report;
    iron__statistics figures = iron__statistics_of(samples->ms, samples->count);
    size_t at = find_ceiling(r, target->device, samples->name);
    iron__report_ceiling *to;
    iron__samples *kept;
    double *ms, gb_s, low;

    if (at == IRON_CEILINGS_MAX || !(figures.median > 0))
        return;
    to = &r->ceilings[at];
    low = samples->bytes / figures.median * 1e-6;
    gb_s = target->device->is_cpu ? samples->bytes / figures.min * 1e-6 : low;
    if (at < r->ceiling_count) {
        to->measurements++;
        to->low_gb_s = low < to->low_gb_s ? low : to->low_gb_s;
        if (to->figures.gb_s >= gb_s)
            return;
    }
    ms = malloc(samples->count * sizeof *ms);
    if (!ms)
        return;
    memcpy(ms, samples->ms, samples->count * sizeof *ms);
    kept = &target->arena->ceiling_samples[at];
    iron__samples_deinit(kept);
    *kept = (iron__samples){.ms = ms,
                            .count = (uint32_t)samples->count,
                            .room = samples->count,
                            .passes = 1,
                            .stop = IRON_STOP_RUNS};
    if (at == r->ceiling_count) {
        r->ceiling_count++;
        to->measurements = 1;
        to->low_gb_s = low;
    }
    if (iron__cpu_pass_find(samples->name) < IRON_CPU_PASSES) { /* of its own memory */
        const peak *p = peaks, *end = p + COUNT(peaks);

        while (p < end && !strstr(target->device->info.name, p->name))
            p++;
        to->peak_gb_s = p < end ? p->gb_s : 0;
    }
    snprintf(to->backend, sizeof to->backend, "%s", target->device->backend);
    snprintf(to->device, sizeof to->device, "%s", target->device->info.name);
    snprintf(to->name, sizeof to->name, "%s", samples->name);
    snprintf(to->shape, sizeof to->shape, "%s", samples->shape);
    to->bytes = (uint64_t)samples->bytes;
    to->figures = (iron__report_scope){.is_measured = true,
                                       .warm = figures,
                                       .gb_s = gb_s,
                                       .percent_of_ceiling = 100,
                                       .samples = kept};
}

static const iron__race_device_ops *ops_of(const iron__race_plan_device *d) {
    return d->is_cpu ? &iron__race_cpu : &iron__race_gpu;
}

static iron_status measure_device(run *r, size_t index, bool is_new_search, iron_error *err) {
    const iron__race_plan_device *d = &r->arena->plan.devices[index];
    ceiling_target target = {r->arena, d};
    iron__ceiling_sink sink = {add_ceiling, &target};
    iron_measure_options o = {.threads = r->arena->options.threads,
                              .buffer_bytes = r->arena->ceiling_bytes};
    uint64_t start = iron__clock_ns();
    iron_status status = ops_of(d)->measure(r->devices[index], d, &o, is_new_search, sink, err);

    r->arena->report.ceiling_seconds += (double)(iron__clock_ns() - start) * 1e-9;
    return status;
}

static bool takes_part(const run *r, size_t device) {
    const iron__race_plan *plan = &r->arena->plan;

    for (size_t k = 0; k < plan->row_count; k++)
        if (plan->rows[k].device_index == device && does_race(r, k))
            return true;
    return false;
}

/* A device whose ceilings cannot be measured does not race; the others do. */
static iron_status measure_ceilings(run *r, iron_error *err) {
    iron__race_plan *plan = &r->arena->plan;

    for (size_t d = 0; d < plan->device_count; d++) {
        iron_error why = {IRON_OK, 0, ""};
        iron_status status = takes_part(r, d) ? measure_device(r, d, false, &why) : IRON_OK;

        IRON_FAIL_IF(status == IRON_E_CANCELLED, err, status, "%s", why.text);
        for (size_t k = 0; status != IRON_OK && k < plan->row_count; k++) {
            if (plan->rows[k].device_index != d || !does_race(r, k))
                continue;
            snprintf(plan->rows[k].reason, sizeof plan->rows[k].reason, "no ceiling: %.220s",
                     why.text);
            r->rows_total--;
            drop(&r->arena->race_rows[k], IRON_ROW_SKIPPED, "%s", plan->rows[k].reason);
        }
        IRON_TRY(show_progress(r, (d + 1) * PROGRESS_CEILINGS / plan->device_count, err));
    }
    return IRON_OK;
}

static void note_clocks(iron__report_device *seen, const iron__gpu_clocks *clocks) {
    if (clocks->core_mhz && (!seen->clock_min || clocks->core_mhz < seen->clock_min))
        seen->clock_min = clocks->core_mhz;
    if (clocks->core_mhz > seen->clock_max)
        seen->clock_max = clocks->core_mhz;
    seen->memory_clock = clocks->memory_mhz;
    if (clocks->celsius > seen->celsius)
        seen->celsius = clocks->celsius;
    if (clocks->is_throttled)
        snprintf(seen->throttle, sizeof seen->throttle, "%s", clocks->reasons);
}

/* Notes a reading for the report; true if the device was throttled. */
static bool is_gpu_throttled(clock_state *state, const iron__gpu_clocks *clocks,
                             iron__report_device *seen) {
    uint32_t before = state->last_mhz;

    note_clocks(seen, clocks);
    state->last_mhz = clocks->core_mhz;
    return clocks->is_throttled || (double)clocks->core_mhz < CLOCK_DROP * before;
}

/* The same for a CPU, from its clock and its counter of thermal throttling (0: unknown). Only the
 * counter decides: clocks of cores that have just become idle drop all the time. */
static bool is_cpu_throttled(clock_state *state, uint32_t mhz, uint64_t throttle_count,
                             iron__report_device *seen) {
    iron__gpu_clocks clocks = {.core_mhz = mhz, .reasons = "heat"};

    clocks.is_throttled = state->has_count && throttle_count > state->last_count;
    state->has_count = true;
    state->last_count = throttle_count;
    note_clocks(seen, &clocks);
    return clocks.is_throttled;
}

static bool is_throttled(void *context) {
    run *r = context;
    iron__gpu_clocks clocks;

    if (!r->clocked->gpu) {
        iron__cpu_clock cpu = iron__cpu_clock_read(IRON_CPU_CLOCK_ROOT);

        return is_cpu_throttled(&r->clock, cpu.mhz, cpu.throttle_count, r->clock_report);
    }
    if (iron__gpu_clocks_read(r->clocked->gpu, &clocks, NULL) != IRON_OK)
        return false;
    return is_gpu_throttled(&r->clock, &clocks, r->clock_report);
}

/* Turns the progress of one race into that of the whole run. */
static int show_race_progress(void *context, uint64_t done, uint64_t total) {
    const run *r = context;
    double part = total ? (double)done / (double)total : 0;
    double all = ((double)r->rows_done + part * (double)r->rows_now) /
                 (double)(r->rows_total ? r->rows_total : 1);
    double span = PROGRESS_ALL - PROGRESS_CEILINGS;

    return show_progress(r, PROGRESS_CEILINGS + (uint64_t)(all * span), NULL) != IRON_OK;
}

static double seconds_of(const iron_arena_options *o) {
    return o->seconds > 0 ? o->seconds : IRON_SECONDS_DEFAULT;
}

/* Seconds for the rows of the current race. Earlier rows leave the time they did not need; if they
 * took more, these rows still have half of an equal share. */
static double share_of_time(const run *r) {
    double all = seconds_of(&r->arena->options);
    double share = (all - r->spent) * (double)r->rows_now / (double)(r->rows_total - r->rows_done);
    double least = all * (double)r->rows_now / (double)r->rows_total / 2;

    return share > least ? share : least;
}

/* Seconds that one row may take: the share of all rows of the current race, or a quarter of what is
 * left of all. So slow rows together take no more than is left. 0: the time is not limited. */
static double limit_of_row(const run *r) {
    double share = share_of_time(r), left = (seconds_of(&r->arena->options) - r->spent) / 4;

    return r->arena->options.runs ? 0 : share > left ? share : left;
}

/* What is left until no row begins any more: half as much again as was asked for. 0: no limit. */
static double seconds_left(const run *r) {
    double left = 1.5 * seconds_of(&r->arena->options) - r->spent;

    return r->arena->options.runs ? 0 : left > 1e-9 ? left : 1e-9;
}

static void fail_all(run *r, size_t first, size_t last, iron_status status, const iron_error *why) {
    for (size_t k = first; k < last; k++)
        if (does_race(r, k))
            fail_row(&r->arena->race_rows[k], status, why);
}

/* How the answers of a row are checked. */
typedef struct answer_check {
    const iron__op_problem *problem;
    const iron__race_plan_row *row;
    void *unpacked; /* as long as an answer; NULL if no row unpacks */
} answer_check;

/* Uses the peer's own check if it has one, else the op's. */
static bool check_answer(const void *context, const void *output, char *text, size_t size) {
    const answer_check *a = context;
    const iron_peer *peer = a->row->peer;
    iron_peer_case c;

    if (!peer || !peer->check)
        return iron__op_check(a->problem, &a->row->contender, output, a->unpacked, text, size);
    c = iron__peer_case(a->problem, NULL, 1);
    return peer->check(&c, output, text, size) == 0;
}

/* Sets a row's contender up. The first one from outside calls the referee. */
static iron_status open_row(run *r, iron__race_device *device, const iron__op_problem *problem,
                            size_t index, iron__referee **referee, iron_error *err) {
    const iron__race_plan *plan = &r->arena->plan;
    const iron_arena_options *o = &r->arena->options;
    const iron__race_plan_row *row = &plan->rows[index];
    iron__race_row *to = &r->arena->race_rows[index];

    if (!row->outside)
        return device->ops->contender_open(device, row, &r->arena->kernels[index], &to->contender,
                                           err);
    if (!*referee)
        IRON_TRY(iron__referee_create(problem, referee, err));
    IRON_TRY(iron__outside_open(*referee, plan, row, o->command ? o->command : "/proc/self/exe",
                                iron__thread_pool_threads(r->pool), o->seconds, &to->contender,
                                err));
    to->check = iron__outside_check;
    to->check_context = to->contender;
    return IRON_OK;
}

/* Of the time; a race by runs has so many milliseconds for each row instead. */
#define ENERGY_SHARE 0.2
#define ENERGY_MS    1000.0

/* Reserves time for the rows' energy, if there is a counter of it. */
static void plan_energy(race_rules *rules, iron__energy_meter *meter, size_t rows) {
    if (!meter->source)
        return;
    rules->meter = meter;
    rules->energy_ms = rules->runs ? ENERGY_MS : ENERGY_SHARE * rules->seconds / (double)rows * 1e3;
    rules->seconds *= 1 - ENERGY_SHARE;
}

/* Could part of the problem stay in the last-level cache from one pass to the next? */
static bool is_cache_resident(const iron__race_plan_device *d, const iron__case *c) {
    return d->cache_bytes > 0 && iron__op_useful_bytes(c) < 4 * d->cache_bytes;
}

/* The ceiling that the op's kernels are compared with. */
static const char *ceiling_name(const iron__op *op) {
    return op->bound == IRON_BOUND_COPY ? "copy" : "read";
}

/* GB/s of the ceiling that a scope is compared with; 0: not measured. */
static double ceiling_for(const iron__report *r, const iron__race_plan_device *d,
                          const iron__op *op, iron__scope scope) {
    bool is_kernel = scope != IRON_SCOPE_TRANSFER && scope != IRON_SCOPE_END_TO_END;
    size_t at = find_ceiling(r, d, is_kernel ? ceiling_name(op) : "to_device_pinned");

    return at < r->ceiling_count ? r->ceilings[at].figures.gb_s : 0;
}

/* As many samples of a ceiling as it is measured with otherwise. */
#define CEILING_BLOCK 9u

/* Sets up, races and closes `count` rows of one case on one device. */
static iron_status race_rows(run *r, iron__race_device *device, const iron__op_problem *problem,
                             size_t first, size_t count, iron_error *err) {
    const iron__race_plan *plan = &r->arena->plan;
    const iron_arena_options *o = &r->arena->options;
    race_rules rules = {.seconds = share_of_time(r),
                        .seconds_a_row = limit_of_row(r),
                        .seconds_asked = seconds_of(o),
                        .seconds_over = seconds_left(r),
                        .spent = &r->spent,
                        .runs = o->runs,
                        .precision = PRECISION,
                        .seed = o->seed + first,
                        .is_throttled = is_throttled,
                        .progress = show_race_progress,
                        .context = r};
    iron__energy_meter meter = iron__energy_meter_open(device->gpu);
    answer_check *checks = calloc(count, sizeof *checks);
    iron__referee *referee = NULL;
    size_t at = plan->rows[first].device_index;
    iron__ceiling_samples what = {.name = NULL};
    iron__race_row ceiling = {.contender = NULL};
    void *unpacked = NULL; /* shared: one answer is checked at a time */
    bool has_unpack = false;
    iron_status status;

    plan_energy(&rules, &meter, r->rows_now);
    for (size_t k = first; k < first + count; k++)
        has_unpack = has_unpack || plan->rows[k].contender.unpack;
    if (has_unpack)
        unpacked = malloc(problem->output_bytes);
    if (!checks || (has_unpack && !unpacked)) {
        status = iron__no_memory(err, "a race");
        goto done;
    }
    for (size_t k = 0; k < count; k++) {
        const iron__race_plan_row *row = &plan->rows[first + k];
        iron__race_row *to = &r->arena->race_rows[first + k];
        iron_error why = {IRON_OK, 0, ""};

        checks[k] = (answer_check){problem, row, unpacked};
        to->output_bytes = problem->output_bytes;
        to->check = check_answer;
        to->check_context = &checks[k];
        /* the referee works between the passes of those from outside */
        to->useful_bytes = row->outside ? 0 : (double)iron__op_useful_bytes(&problem->c);
        if (!does_race(r, first + k))
            continue;
        status = open_row(r, device, problem, first + k, &referee, &why);
        if (status == IRON_OK)
            to->contender->scopes &= plan->cases[row->case_index].scopes;
        else
            fail_row(to, status, &why);
    }
    if (device->ops->ceiling_open && !is_cache_resident(&plan->devices[at], &problem->c) &&
        device->ops->ceiling_open(device, ceiling_name(problem->c.op), &what, &ceiling.contender,
                                  NULL) == IRON_OK)
        rules.ceiling = &ceiling;
    status = run_race(r->arena->race_rows + first, count, &rules, err);
    if (ceiling.contender) {
        ceiling_target target = {r->arena, &plan->devices[at]};
        const iron__samples *raced = &ceiling.warm[IRON_SCOPE_KERNEL];

        /* it took turns with the rows: each block of its samples is a measurement */
        for (uint32_t k = 0; k < raced->count; k += CEILING_BLOCK) {
            what.ms = raced->ms + k;
            what.count = raced->count - k < CEILING_BLOCK ? raced->count - k : CEILING_BLOCK;
            if (what.count == CEILING_BLOCK || k == 0)
                add_ceiling(&target, &what);
        }
        ceiling.contender->ops->close(ceiling.contender);
        iron__race_row_deinit(&ceiling);
    }
    for (size_t k = first; k < first + count; k++) {
        iron__race_row *row = &r->arena->race_rows[k];

        if (row->contender)
            row->contender->ops->close(row->contender);
        row->contender = NULL;
    }
done:
    iron__referee_destroy(referee);
    free(unpacked);
    free(checks);
    return status;
}

static size_t count_racing(const run *r, size_t first, size_t last) {
    size_t count = 0;

    for (size_t k = first; k < last; k++)
        count += does_race(r, k);
    return count;
}

/* A contender above this share of its ceiling shows that the ceiling was not found. */
#define ABOVE_CEILING 1.02
/* New searches for a device: if they do not help, more do not either. */
#define SEARCHES_MAX 3u

/* Searches the ceilings of a device anew if a contender has just been above one. */
static iron_status search_again(run *r, size_t first, size_t last, iron_error *err) {
    const iron__race_plan_row *p = &r->arena->plan.rows[first];
    const iron__race_plan_device *d = &r->arena->plan.devices[p->device_index];
    const iron__case *c = &r->arena->plan.cases[p->case_index].c;
    double ceiling = ceiling_for(&r->arena->report, d, c->op, IRON_SCOPE_KERNEL);
    bool is_above = false;

    for (size_t k = first; k < last && ceiling > 0 && !is_cache_resident(d, c); k++) {
        const iron__samples *s = &r->arena->race_rows[k].warm[IRON_SCOPE_KERNEL];
        double bytes = (double)iron__op_useful_bytes(c);

        is_above = is_above ||
                   (s->count > 0 && bytes / iron__statistics_of(s->ms, s->count).median * 1e-6 >
                                        ABOVE_CEILING * ceiling);
    }
    if (!is_above || r->searches[p->device_index]++ >= SEARCHES_MAX)
        return IRON_OK;
    return measure_device(r, p->device_index, true, err);
}

/* The rows of one case, device by device. */
static iron_status race_case(run *r, size_t first, size_t last, iron_error *err) {
    const iron__race_plan *plan = &r->arena->plan;
    iron__op_problem problem = {.c = plan->cases[plan->rows[first].case_index].c};
    iron_error why = {IRON_OK, 0, ""};
    iron_status status;

    if (!r->arena->options.runs && seconds_left(r) <= 1e-9) {
        for (size_t k = first; k < last; k++)
            if (does_race(r, k))
                skip_late(&r->arena->race_rows[k], seconds_of(&r->arena->options));
        r->rows_done += count_racing(r, first, last);
        return IRON_OK;
    }
    status = problem.c.op->make(&problem, r->pool, &why);
    if (status != IRON_OK) {
        fail_all(r, first, last, status, &why);
        r->rows_done += count_racing(r, first, last);
        return IRON_OK;
    }
    for (size_t end; first < last && status == IRON_OK; first = end) {
        size_t at = plan->rows[first].device_index;
        iron__race_device *device = r->devices[at];

        for (end = first; end < last && plan->rows[end].device_index == at;)
            end++;
        r->rows_now = count_racing(r, first, end);
        if (r->rows_now == 0)
            continue;
        r->clock_report = &r->arena->report.devices[at];
        r->clocked = device;
        r->clock = (clock_state){0};
        status = device->ops->begin(device, &problem, &why);
        if (status == IRON_OK) {
            status = race_rows(r, device, &problem, first, end - first, err);
        } else {
            fail_all(r, first, end, status, &why);
            status = IRON_OK;
        }
        device->ops->end(device);
        if (status == IRON_OK)
            status = search_again(r, first, end, err);
        r->rows_done += r->rows_now;
    }
    problem.c.op->unmake(&problem);
    return status;
}

static iron_status run_all(iron_arena *arena, iron_error *err) {
    const iron__race_plan *plan = &arena->plan;
    uint32_t threads = arena->options.threads, streams = arena->options.streams;
    run r = {.arena = arena};
    uint64_t start = iron__clock_ns();
    iron_status status;

    arena->report.remarks = (const char(*)[IRON_REMARK_ROOM])plan->remarks;
    arena->report.remark_count = plan->remark_count;
    for (size_t k = 0; k < plan->row_count; k++)
        if (!does_race(&r, k))
            drop(&arena->race_rows[k], IRON_ROW_SKIPPED, "%s", plan->rows[k].reason);
    r.rows_total = count_racing(&r, 0, plan->row_count);
    status = iron__thread_pool_create(threads ? threads : iron__cpu_threads(),
                                      iron__allocator_default(), &r.pool, err);
    for (size_t k = 0; status == IRON_OK && k < plan->device_count; k++)
        status = ops_of(&plan->devices[k])
                     ->open(plan, k, streams ? streams : IRON_STREAMS_DEFAULT, r.pool,
                            &r.devices[k], err);
    if (status == IRON_OK && r.rows_total > 0)
        status = measure_ceilings(&r, err);
    for (size_t first = 0, last; status == IRON_OK && first < plan->row_count; first = last) {
        for (last = first;
             last < plan->row_count && plan->rows[last].case_index == plan->rows[first].case_index;)
            last++;
        if (count_racing(&r, first, last) > 0)
            status = race_case(&r, first, last, err);
    }
    for (size_t k = 0; status == IRON_OK && k < plan->device_count; k++)
        if (plan->devices[k].is_cpu && takes_part(&r, k))
            status = measure_device(&r, k, false, err);
    for (size_t k = 0; k < IRON_PLAN_DEVICES; k++)
        if (r.devices[k])
            r.devices[k]->ops->close(r.devices[k]);
    iron__thread_pool_destroy(r.pool);
    arena->report.seconds = (double)(iron__clock_ns() - start) * 1e-9;
    arena->report.race_seconds = r.spent;
    return status;
}

/* From the build (CMakeLists.txt), so that a figure can be understood years later. */
#ifndef IRON_BUILD_COMPILER
#define IRON_BUILD_COMPILER "unknown"
#endif
#ifndef IRON_BUILD_FLAGS
#define IRON_BUILD_FLAGS ""
#endif
#ifndef IRON_BUILD_COMMIT
#define IRON_BUILD_COMMIT "unknown"
#endif

static iron__report_scope scope_of(const iron__samples *warm, const iron__samples *cold,
                                   double bytes, double ceiling) {
    iron__report_scope s = {.is_measured = warm->count > 0};

    if (!s.is_measured)
        return s;
    s.warm = iron__statistics_of(warm->ms, warm->count);
    s.samples = warm;
    s.gb_s = bytes / s.warm.median * 1e-6;
    s.percent_of_ceiling = ceiling > 0 ? 100 * s.gb_s / ceiling : 0;
    if (cold && cold->count > 0) {
        s.cold = iron__statistics_of(cold->ms, cold->count);
        s.cold_gb_s = bytes / s.cold.median * 1e-6;
        s.cold_samples = cold;
    }
    return s;
}

/* The op's own baseline; where that does not suit the case, the first contender that does and
 * improves on no other. */
static const char *baseline_of(const iron__case *c, const iron__race_plan_device *d) {
    const char *usual = c->op->baselines[d->is_cpu ? 0 : 1], *first = NULL;
    iron__contender row;

    for (size_t k = 0; iron__op_contender(c->op, k, &row); k++) {
        if (!(row.backends & d->on) || (row.suits && !row.suits(&row, c)))
            continue;
        if (strcmp(row.name, usual) == 0)
            return usual;
        if (!first && !row.beats)
            first = row.name;
    }
    return first ? first : usual;
}

/* A GPU's caches are not measured; they deliver a few times as much as its memory. */
#define GPU_CACHE_FACTOR 10.0
/* Ceilings are measured under the load of the moment, and the contender may have had less. */
#define PLAUSIBLE_FACTOR 2.0
/* A CPU's are measured with short reads, whose own overhead counts where the nearest cache has the
 * data. */
#define CPU_CACHE_FACTOR 5.0

/* A contender from outside that moves its bytes faster than memory can deliver them, or the cache
 * for data that may be in it, has not moved them. Ceilings may have been measured under load that
 * has ended since: on a CPU, or an OpenCL device that is no GPU, a rate above them is compared with
 * what the CPU can do now. */
static void judge_rate(const iron_arena *a, const iron__race_plan_device *d, iron__report_row *r) {
    static const char *const names[] = {"read", "write", "copy"};
    iron__report_scope *s = &r->scopes[IRON_SCOPE_KERNEL];
    double most = 0, rate = s->gb_s > s->cold_gb_s ? s->gb_s : s->cold_gb_s, now;
    bool is_gpu = !d->is_cpu && d->info.is_gpu;

    for (size_t k = 0; k < COUNT(names); k++) {
        size_t at = find_ceiling(&a->report, d, names[k]);

        if (at < a->report.ceiling_count && a->report.ceilings[at].figures.gb_s > most)
            most = a->report.ceilings[at].figures.gb_s;
    }
    most *= is_gpu && r->is_cache_resident ? GPU_CACHE_FACTOR : PLAUSIBLE_FACTOR;
    if (!s->is_measured || most <= 0 || rate <= most)
        return;
    if (!is_gpu) {
        now = iron__cpu_read_gb_s(r->useful_bytes, a->report.host.threads) *
              (r->is_cache_resident ? CPU_CACHE_FACTOR : PLAUSIBLE_FACTOR);
        most = now > most ? now : most;
        if (rate <= most || now <= 0)
            return;
    }
    r->status = IRON_ROW_IMPLAUSIBLE;
    snprintf(r->reason, sizeof r->reason,
             "%.3g GB/s: the %s cannot deliver more than %.3g GB/s of the bytes that must be read",
             rate, r->is_cache_resident ? "cache" : "memory", most);
    memset(r->scopes, 0, sizeof r->scopes);
}

static void fill_row(const iron_arena *a, size_t index, iron__report_row *r) {
    const iron__race_plan_row *p = &a->plan.rows[index];
    const iron__race_row *raced = &a->race_rows[index];
    const iron__race_plan_case *planned = &a->plan.cases[p->case_index];
    const iron__case *c = &planned->c;
    const iron__race_plan_device *d = &a->plan.devices[p->device_index];
    const iron__kernels *seen = &a->kernels[index];

    snprintf(r->op, sizeof r->op, "%s", c->op->name);
    snprintf(r->contender, sizeof r->contender, "%s", p->contender.name);
    snprintf(r->backend, sizeof r->backend, "%s", d->backend);
    snprintf(r->memory, sizeof r->memory, "%s", iron__race_plan_memory(p));
    snprintf(r->device, sizeof r->device, "%s", d->info.name);
    snprintf(r->size, sizeof r->size, "%s", planned->size);
    snprintf(r->size_name, sizeof r->size_name, "%s", planned->size_name);
    snprintf(r->dtype, sizeof r->dtype, "%s", iron__element_name(c->element));
    r->vocab = c->vocab;
    r->params = planned->params;
    r->kernels = seen->answer.count + seen->prepare.count > 0 ? seen : NULL;
    if (p->memory == IRON_GPU_STREAMS)
        r->streams = a->options.streams ? a->options.streams : IRON_STREAMS_DEFAULT;
    r->nodes = c->op->nodes;
    if (d->is_cpu && !p->peer) /* how many threads a peer uses is not known */
        r->threads = p->contender.is_single ? 1 : a->report.host.threads;
    r->idea = p->contender.idea;
    r->is_peer = p->peer != NULL;
    r->is_outside = p->outside != NULL;
    r->useful_bytes = iron__op_useful_bytes(c);
    r->is_cache_resident = is_cache_resident(d, c);
    r->is_verified = raced->is_verified;
    if (raced->status == IRON_ROW_OK)
        r->energy = raced->energy;
    r->operations = iron__op_operations(c);
    r->passes = p->contender.passes > 0 ? p->contender.passes : 1;
    r->status = raced->status;
    memcpy(r->reason, raced->reason, sizeof r->reason);
    snprintf(r->baseline, sizeof r->baseline, "%s", baseline_of(c, d));
    for (size_t k = 0; k < IRON_SCOPES && r->status == IRON_ROW_OK; k++)
        r->scopes[k] =
            scope_of(&raced->warm[k], k == IRON_SCOPE_KERNEL ? &raced->cold : NULL,
                     (double)r->useful_bytes, ceiling_for(&a->report, d, c->op, (iron__scope)k));
    r->is_above_ceiling = !r->is_cache_resident &&
                          r->scopes[IRON_SCOPE_KERNEL].percent_of_ceiling > 100 * ABOVE_CEILING;
    if (r->is_outside && r->status == IRON_ROW_OK)
        judge_rate(a, d, r);
}

/* Over the row of the baseline on the same device, with pageable memory on GPUs. */
static void fill_speedups(const iron__report *report, iron__report_row *r) {
    for (const iron__report_row *b = report->rows; b < report->rows + report->row_count; b++) {
        if (strcmp(b->contender, r->baseline) != 0 || strcmp(b->backend, r->backend) != 0 ||
            strcmp(b->device, r->device) != 0 || !iron__rows_are_grouped(b, r) ||
            (strcmp(b->memory, "host") != 0 && strcmp(b->memory, "pageable") != 0))
            continue;
        for (size_t s = 0; b->status == IRON_ROW_OK && s < IRON_SCOPES; s++)
            if (r->scopes[s].is_measured && b->scopes[s].is_measured)
                r->scopes[s].speedup = b->scopes[s].warm.median / r->scopes[s].warm.median;
        break;
    }
    r->speedup = r->scopes[IRON_SCOPE_KERNEL].speedup;
}

/* Ranked rows by time, then wrong, failed and skipped ones; else in the order of the plan. */
static bool comes_before(const iron__report_row *a, const iron__report_row *b) {
    static const int order[IRON_ROW_STATUSES] = {[IRON_ROW_OK] = 0,
                                                 [IRON_ROW_WRONG] = 1,
                                                 [IRON_ROW_IMPLAUSIBLE] = 2,
                                                 [IRON_ROW_FAILED] = 3,
                                                 [IRON_ROW_SKIPPED] = 4};

    if (a->status != b->status)
        return order[a->status] < order[b->status];
    return a->status == IRON_ROW_OK &&
           a->scopes[IRON_SCOPE_KERNEL].warm.median < b->scopes[IRON_SCOPE_KERNEL].warm.median;
}

/* Insertion sort: stable, and a group has a hundred rows at most. */
static void rank_group(iron__report_row *rows, size_t count) {
    uint32_t rank = 0;

    for (size_t k = 1; k < count; k++) {
        iron__report_row row = rows[k];
        size_t at = k;

        for (; at > 0 && comes_before(&row, &rows[at - 1]); at--)
            rows[at] = rows[at - 1];
        rows[at] = row;
    }
    for (size_t k = 0; k < count; k++)
        rows[k].rank = rows[k].status == IRON_ROW_OK ? ++rank : 0;
}

/* Fills the report's rows and figures from the samples. */
static void conclude(iron_arena *arena) {
    iron__report *r = &arena->report;
    iron_cpu_info cpu = {.struct_size = sizeof cpu};
    uint32_t features = iron__cpu_features();
    time_t now = time(NULL);
    struct utsname names;
    struct tm utc;

    snprintf(r->version, sizeof r->version, "%s", iron_version());
    r->host = (iron__report_host){.threads = iron__cpu_threads(),
                                  .cache_bytes = iron__cpu_last_cache_bytes()};
    iron__cpu_name(r->host.cpu, sizeof r->host.cpu);
    snprintf(r->host.features, sizeof r->host.features, "%s%s%s",
             features & IRON_CPU_NEON ? "neon " : "", features & IRON_CPU_AVX2 ? "avx2 " : "",
             features & IRON_CPU_AVX512 ? "avx512 " : "");
    if (r->host.features[0])
        r->host.features[strlen(r->host.features) - 1] = '\0';
    if (uname(&names) == 0) {
        snprintf(r->host.name, sizeof r->host.name, "%.63s", names.nodename);
        snprintf(r->host.kernel, sizeof r->host.kernel, "%.30s %.40s %.20s", names.sysname,
                 names.release, names.machine);
    }
    if (iron_cpu_describe(&cpu, NULL) == IRON_OK)
        r->host.memory_bytes = cpu.memory_bytes;
    snprintf(r->host.compiler, sizeof r->host.compiler, "%s", IRON_BUILD_COMPILER);
    snprintf(r->host.flags, sizeof r->host.flags, "%s", IRON_BUILD_FLAGS);
    snprintf(r->host.commit, sizeof r->host.commit, "%s", IRON_BUILD_COMMIT);
    if (gmtime_r(&now, &utc))
        strftime(r->host.date, sizeof r->host.date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (arena->options.threads)
        r->host.threads = arena->options.threads;
    for (size_t k = 0; k < arena->plan.device_count; k++) {
        const iron__race_plan_device *d = &arena->plan.devices[k];
        iron__report_device *to = &arena->report.devices[k];

        snprintf(to->backend, sizeof to->backend, "%s", d->backend);
        snprintf(to->name, sizeof to->name, "%s", d->info.name);
        snprintf(to->driver, sizeof to->driver, "%s", d->info.driver);
        snprintf(to->reason, sizeof to->reason, "%s", d->reason);
        to->index = d->index;
        to->units = d->is_cpu ? arena->report.host.threads : d->info.units;
        to->memory_bytes = d->is_cpu ? arena->report.host.memory_bytes : d->info.memory_bytes;
        to->cache_bytes = d->cache_bytes;
        to->is_available = d->is_available;
    }
    arena->report.device_count = arena->plan.device_count;
    r->row_count = arena->plan.row_count;
    for (size_t k = 0; k < r->row_count; k++) {
        const iron__op *op = arena->plan.cases[arena->plan.rows[k].case_index].c.op;

        fill_row(arena, k, &r->rows[k]);
        /* rows of one op are consecutive */
        if (r->op_count < IRON_REPORT_OPS && (r->op_count == 0 || r->ops[r->op_count - 1] != op))
            r->ops[r->op_count++] = op;
    }
    for (size_t k = 0; k < r->row_count; k++)
        fill_speedups(r, &r->rows[k]);
    for (size_t first = 0, last; first < r->row_count; first = last) {
        last = iron__report_group_end(r, first);
        rank_group(r->rows + first, last - first);
    }
}

/* The status of the race as a whole: the first wrong row, else the first implausible one, else the
 * first failed one, those from outside first: a contender that fails has lost. */
static iron_status verdict(const iron_arena *a, iron_error *err) {
    static const iron__row_status bad[] = {IRON_ROW_WRONG, IRON_ROW_IMPLAUSIBLE, IRON_ROW_FAILED};
    const iron__report_row *first[IRON_ROW_STATUSES] = {NULL};
    size_t counts[IRON_ROW_STATUSES] = {0}, outside_failed = 0;
    char names[IRON_ROW_STATUSES][200] = {""};

    for (size_t k = 0; k < a->report.row_count; k++) {
        const iron__report_row *row = &a->report.rows[k];
        iron__params_line axes = iron__params_text(&row->params, true);

        if (counts[row->status]++ > 0 &&
            !(row->status == IRON_ROW_FAILED && row->is_outside && outside_failed == 0))
            continue;
        outside_failed += row->status == IRON_ROW_FAILED && row->is_outside;
        first[row->status] = row;
        snprintf(names[row->status], sizeof names[0], "%s.%s.%s%s%.100s", row->op, row->backend,
                 row->contender, axes.text[0] ? ", " : "", axes.text);
    }
    for (size_t k = 0; k < COUNT(bad); k++)
        IRON_FAIL_IF(counts[bad[k]], err,
                     bad[k] == IRON_ROW_FAILED && !outside_failed ? IRON_E_STATE : IRON_E_MISMATCH,
                     "%zu %s: %.100s: %.120s", counts[bad[k]], iron__row_status_name(bad[k]),
                     names[bad[k]], first[bad[k]]->reason);
    IRON_FAIL_IF(!counts[IRON_ROW_OK], err, IRON_E_UNSUPPORTED, "no contender could race: %.180s",
                 a->report.row_count ? a->report.rows[0].reason : "no row was chosen");
    return IRON_OK;
}

iron_status iron_arena_race(iron_arena *arena, iron_error *err) {
    IRON_FAIL_IF(arena->has_begun, err, IRON_E_STATE, "this arena has raced; open another");
    arena->has_begun = true;
    IRON_TRY(run_all(arena, err));
    conclude(arena);
    arena->has_raced = true;
    return verdict(arena, err);
}
