/* SPDX-License-Identifier: MIT */
/*
 * cmd_selftest.c: `iron selftest`: checks this build on this machine.
 *
 * Failed checks are printed immediately. Skipped checks are collected: at the end one line per
 * reason is printed, and the JSON document lists all of them.
 */
#include "command.h"

#include <iron/iron_arena.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct skip {
    char *check, *reason;
} skip;

typedef struct selftest {
    const char *only; /* the options */
    bool is_quick, wants_json, wants_all;
    iron_json_writer j;
    progress p;
    uint64_t done;
    skip *skips;
    size_t skip_count, skip_room;
} selftest;

static const option selftest_table[] = {
    OPTION("quick", OPTION_FLAG, NULL, selftest, is_quick, "use smaller sizes"),
    OPTION("only", OPTION_TEXT, "TEXT", selftest, only,
           "run only checks whose names contain TEXT, such as cuda.champion"),
    OPTION("verbose", OPTION_FLAG, NULL, selftest, wants_all, "print every check that passes"),
    OPTION("json", OPTION_FLAG, NULL, selftest, wants_json, JSON_HELP),
};

/* Called by the library after each check. */
static void report_check(void *context, iron_verdict verdict, const char *what, const char *text) {
    selftest *t = context;

    progress_update(&t->p, ++t->done, UINT64_MAX);
    if (t->wants_all && !t->wants_json && verdict == IRON_VERDICT_PASSED) {
        printf("right %s\n", what);
        fflush(stdout); /* if the next check hangs, the last line shows where */
    }
    if (verdict == IRON_VERDICT_SKIPPED) {
        skip s = {strdup(what), strdup(text)};

        t->skips = list_grow(t->skips, t->skip_count, &t->skip_room, sizeof *t->skips);
        if (s.check && s.reason && t->skip_count < t->skip_room) {
            t->skips[t->skip_count++] = s;
        } else { /* only its reason is lost: the library counts it */
            free(s.check);
            free(s.reason);
        }
    }
    if (verdict != IRON_VERDICT_FAILED)
        return;
    if (t->wants_json)
        JSON_PUT(&t->j, OBJECT(NULL, TEXT("check", what), TEXT("difference", text)));
    else
        printf("WRONG %s: %s\n", what, text);
}

static bool is_same(const skip *a, const skip *b) { return strcmp(a->reason, b->reason) == 0; }

/* Prints each reason with its first check. */
static void print_reasons(const selftest *t) {
    const skip *end = t->skips + t->skip_count;

    for (const skip *s = t->skips; s < end; s++) {
        const skip *first = t->skips;
        size_t others = 0;

        while (!is_same(first, s))
            first++;
        for (const skip *other = s + 1; other < end; other++)
            others += is_same(other, s);
        if (first != s) /* it has been printed */
            continue;
        printf("skipped %s", s->check);
        if (others > 0)
            printf(" and %zu more", others);
        printf(": %s\n", s->reason);
    }
}

static iron_status run(void *options, args *a, iron_error *err) {
    selftest *t = options;
    iron_selftest_options wanted = {.line = report_check, .context = t};
    iron_selftest_result result = {0};
    iron_status status;

    if (a->value_count > 0)
        return usage(err, "selftest takes no argument '%.60s'", a->values[0]);
    if (t->wants_json) {
        t->j = json_begin('{');
        iron_json_open(&t->j, "failures", '[');
    }
    t->p = progress_start(0);
    wanted.is_quick = t->is_quick;
    wanted.only = t->only;
    status = iron_selftest(&wanted, &result, err);
    progress_clear(&t->p);
    if (t->wants_json) {
        iron_json_close(&t->j, ']');
        iron_json_open(&t->j, "skips", '[');
        for (const skip *s = t->skips; s < t->skips + t->skip_count; s++)
            JSON_PUT(&t->j, OBJECT(NULL, TEXT("check", s->check), TEXT("reason", s->reason)));
        iron_json_close(&t->j, ']');
        JSON_PUT(&t->j, NUMBER("passed", result.passed), NUMBER("failed", result.failed),
                 NUMBER("skipped", result.skipped));
        json_end(&t->j, '}');
    } else {
        print_reasons(t);
        printf("%" PRIu64 " passed, %" PRIu64 " failed, %" PRIu64 " skipped\n", result.passed,
               result.failed, result.skipped);
    }
    for (size_t k = 0; k < t->skip_count; k++) {
        free(t->skips[k].check);
        free(t->skips[k].reason);
    }
    free(t->skips);
    return status;
}

const command command_selftest = {
    .name = "selftest",
    .summary = "checks golden vectors and every variant on this machine",
    .synopsis = "[--quick] [--only TEXT] [--verbose] [--json]",
    .description =
        "Runs the golden vectors through the engine and compares every variant that this machine "
        "can run with the reference, for many lengths, positions and vocabularies: on the CPU and "
        "on every device of every GPU backend, in every mode and memory strategy. Checks that "
        "cannot run here are skipped, and the reason is printed.",
    .groups = {{NULL, selftest_table, COUNT(selftest_table), 0}},
    .exit_status = "0: all checks passed; 1: a result differs or a device failed; 2: error.",
    .environment = DRIVER_VARIABLES,
    .examples = "iron selftest --quick",
    .options_bytes = sizeof(selftest),
    .run = run,
};
