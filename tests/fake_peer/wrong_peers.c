/* SPDX-License-Identifier: MIT */
/*
 * wrong_peers.c: a plug-in with one correct row of atax and rows with every kind of wrong answer
 * that the arena must detect. tests/cli/test_arena.py builds it. Each row computes the right
 * answer, which `spoil` makes wrong once it has run `good_runs` times.
 */
#include <iron/iron_peer.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job job;
typedef int (*spoiler)(job *j, double *y, char *why, size_t why_size);

struct job {
    iron_peer_case c;
    uint64_t runs, good_runs;
    spoiler spoil;
};

/* y = A^T (A x), or A (A x) for the row that forgets to transpose; A is square then. */
static void multiply(const iron_peer_case *c, double *y, int is_transposed) {
    const double *a = c->inputs[0], *x = c->inputs[1];
    double *t = calloc(c->rows, sizeof *t);

    memset(y, 0, c->cols * sizeof *y);
    for (uint64_t i = 0; t && i < c->rows; i++)
        for (uint64_t j = 0; j < c->cols; j++)
            t[i] += a[i * c->cols + j] * x[j];
    for (uint64_t i = 0; t && i < c->rows; i++)
        for (uint64_t j = 0; j < c->cols; j++)
            y[is_transposed ? j : i] += a[i * c->cols + j] * t[is_transposed ? i : j];
    free(t);
}

static int run(void *state, char *why, size_t why_size) {
    job *j = state;
    double *y = j->c.output;

    if (j->spoil && j->runs++ >= j->good_runs)
        return j->spoil(j, y, why, why_size);
    multiply(&j->c, y, 1);
    return 0;
}

static int open_job(const iron_peer_case *c, void **state, spoiler spoil, uint64_t good_runs) {
    job *j = calloc(1, sizeof *j);

    if (!j)
        return 1;
    *j = (job){.c = *c, .spoil = spoil, .good_runs = good_runs};
    *state = j;
    return 0;
}

static int spoil_one(job *j, double *y, char *why, size_t why_size) {
    (void)why, (void)why_size;
    multiply(&j->c, y, 1);
    y[3] = 2 * y[3] + 1;
    return 0;
}

static int spoil_last(job *j, double *y, char *why, size_t why_size) {
    (void)why, (void)why_size;
    multiply(&j->c, y, 1);
    y[j->c.cols - 1] = -y[j->c.cols - 1] - 1;
    return 0;
}

static int write_nothing(job *j, double *y, char *why, size_t why_size) {
    (void)j, (void)y, (void)why, (void)why_size;
    return 0;
}

static int write_nan(job *j, double *y, char *why, size_t why_size) {
    (void)why, (void)why_size;
    for (uint64_t k = 0; k < j->c.cols; k++)
        y[k] = NAN;
    return 0;
}

static int forget_to_transpose(job *j, double *y, char *why, size_t why_size) {
    (void)why, (void)why_size;
    multiply(&j->c, y, 0);
    return 0;
}

static int fail(job *j, double *y, char *why, size_t why_size) {
    (void)j, (void)y;
    snprintf(why, why_size, "had enough of it");
    return 1;
}

/* Reports the first value of the input, where a test reads it. */
static int tell(job *j, double *y, char *why, size_t why_size) {
    (void)y;
    snprintf(why, why_size, "the data begin with %.17g", *(const double *)j->c.inputs[0]);
    return 1;
}

/* More runs than come before timing, and fewer than three samples have however slow the machine. */
enum { GOOD_WHILE_VERIFIED = 6 };

#define OPENER(name, spoil, good_runs)                                                             \
    static int name(const iron_peer_case *c, void **state, char *why, size_t why_size) {           \
        (void)why, (void)why_size;                                                                 \
        return open_job(c, state, spoil, good_runs);                                               \
    }
OPENER(open_right, NULL, 0)
OPENER(open_one, spoil_one, 0)
OPENER(open_last, spoil_last, 0)
OPENER(open_silent, write_nothing, 0)
OPENER(open_nan, write_nan, 0)
OPENER(open_square, forget_to_transpose, 0)
OPENER(open_second, spoil_one, 1)
OPENER(open_lazy, write_nothing, 1)
OPENER(open_late, spoil_one, GOOD_WHILE_VERIFIED)
OPENER(open_failing, fail, 0)
OPENER(open_failing_late, fail, GOOD_WHILE_VERIFIED)
OPENER(open_telling, tell, 0)

static int open_never(const iron_peer_case *c, void **state, char *why, size_t why_size) {
    (void)c, (void)state;
    snprintf(why, why_size, "does not open today");
    return 1;
}

static int is_never_content(const iron_peer_case *host, const void *output, char *why,
                            size_t why_size) {
    (void)host, (void)output;
    snprintf(why, why_size, "not what was meant");
    return 1;
}

#define ROW(name, open)                                                                            \
    { sizeof rows[0], "atax.cpu." name, "a test's", "f64", 2, open, run, free, 0 }

static const iron_peer rows[] = {
    ROW("right", open_right),
    ROW("wrong-one", open_one),
    ROW("wrong-last", open_last),
    ROW("wrong-silent", open_silent),
    ROW("wrong-nan", open_nan),
    ROW("wrong-square", open_square),
    ROW("wrong-second", open_second),
    ROW("wrong-lazy", open_lazy),
    ROW("wrong-late", open_late),
    ROW("failing", open_failing),
    ROW("failing-late", open_failing_late),
    ROW("failing-open", open_never),
    ROW("telling", open_telling),
    {sizeof rows[0], "atax.cpu.wrong-check", "a test's", "f64", 2, open_right, run, free,
     is_never_content},
    {sizeof rows[0], "atax.cpu.other-type", "a test's", "f32", 2, open_right, run, free, 0},
};
static const iron_peer_list list = {IRON_PEER_ABI, "Wrong", "1", rows,
                                    sizeof rows / sizeof rows[0]};

const iron_peer_list *iron_peer_list_get(void) { return &list; }
