/* SPDX-License-Identifier: MIT */
/*
 * cmd_selftest.c: `iron selftest`: is this build right on this machine?
 *
 * Failed checks are told as they come; skipped ones are kept until the end, where a line says each
 * reason once, and the JSON document lists them all.
 */
#include "command.h"
#include "json.h"
#include "progress.h"

#include <iron/iron_arena.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct skip {
    char *check, *reason;
} skip;

typedef struct telling {
    bool wants_json, wants_all;
    json j;
    progress p;
    uint64_t done;
    skip *skips;
    size_t skip_count, skip_room;
} telling;

/* Keeps a skipped check; where memory is out it is counted all the same, by the library. */
static void keep_skip(telling *t, const char *check, const char *reason) {
    skip s = {strdup(check), strdup(reason)};

    if (t->skip_count == t->skip_room) {
        size_t room = t->skip_room ? 2 * t->skip_room : 64;
        skip *more = realloc(t->skips, room * sizeof *more);

        if (more) {
            t->skips = more;
            t->skip_room = room;
        }
    }
    if (s.check && s.reason && t->skip_count < t->skip_room) {
        t->skips[t->skip_count++] = s;
        return;
    }
    free(s.check);
    free(s.reason);
}

static void free_skips(telling *t) {
    for (size_t k = 0; k < t->skip_count; k++) {
        free(t->skips[k].check);
        free(t->skips[k].reason);
    }
    free(t->skips);
}

static void tell(void *context, iron_verdict verdict, const char *what, const char *text) {
    telling *t = context;

    progress_tell(&t->p, ++t->done, UINT64_MAX);
    if (t->wants_all && !t->wants_json && verdict == IRON_VERDICT_PASSED) {
        printf("right %s\n", what);
        fflush(stdout); /* what comes next may hang: that is what one wants to see */
    }
    if (verdict == IRON_VERDICT_SKIPPED)
        keep_skip(t, what, text);
    if (verdict != IRON_VERDICT_FAILED)
        return;
    if (t->wants_json) {
        json_open(&t->j, NULL, '{');
        json_text(&t->j, "check", what);
        json_text(&t->j, "difference", text);
        json_close(&t->j, '}');
    } else {
        printf("WRONG %s: %s\n", what, text);
    }
}

static bool is_same(const telling *t, size_t a, size_t b) {
    return strcmp(t->skips[a].reason, t->skips[b].reason) == 0;
}

/* A reason with the first check that it holds for, unless it was said before. */
static void print_reason(const telling *t, size_t index) {
    size_t others = 0;

    for (size_t k = 0; k < index; k++)
        if (is_same(t, k, index))
            return;
    for (size_t k = index + 1; k < t->skip_count; k++)
        others += is_same(t, k, index);
    printf("skipped %s", t->skips[index].check);
    if (others > 0)
        printf(" and %zu more", others);
    printf(": %s\n", t->skips[index].reason);
}

static void print_end(const telling *t, const iron_selftest_result *result) {
    for (size_t k = 0; k < t->skip_count; k++)
        print_reason(t, k);
    printf("%" PRIu64 " passed, %" PRIu64 " failed, %" PRIu64 " skipped\n", result->passed,
           result->failed, result->skipped);
}

static void json_finish(telling *t, const iron_selftest_result *result) {
    json *j = &t->j;

    json_close(j, ']');
    json_open(j, "skips", '[');
    for (size_t k = 0; k < t->skip_count; k++) {
        json_open(j, NULL, '{');
        json_text(j, "check", t->skips[k].check);
        json_text(j, "reason", t->skips[k].reason);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_number(j, "passed", result->passed);
    json_number(j, "failed", result->failed);
    json_number(j, "skipped", result->skipped);
    json_close(j, '}');
    json_end(j);
}

static iron_status run(int argc, char **argv, iron_error *err) {
    bool is_quick = false, is_done;
    const char *only = NULL;
    telling t = {0};
    const option options[] = {
        {"quick", OPTION_FLAG, &is_quick, NULL},
        {"only", OPTION_TEXT, &only, NULL},
        {"verbose", OPTION_FLAG, &t.wants_all, NULL},
        {"json", OPTION_FLAG, &t.wants_json, NULL},
    };
    args a = {.options = options, .option_count = COUNT(options)};
    iron_selftest_options wanted = {.line = tell, .context = &t};
    iron_selftest_result result = {0};
    iron_status status = command_args(&command_selftest, &a, argc, argv, &is_done, err);

    if (is_done)
        return status;
    if (a.value_count > 0)
        return usage(err, "selftest takes no argument '%.60s'", a.values[0]);
    if (t.wants_json) {
        json_open(&t.j, NULL, '{');
        json_open(&t.j, "failures", '[');
    }
    t.p = progress_start(0);
    wanted.is_quick = is_quick;
    wanted.only = only;
    status = iron_selftest(&wanted, &result, err);
    progress_clear(&t.p);
    if (t.wants_json)
        json_finish(&t, &result);
    else
        print_end(&t, &result);
    free_skips(&t);
    return status;
}

const command command_selftest = {
    "selftest", "golden vectors and every variant on this machine",
    "usage: iron selftest [--quick] [--only TEXT] [--verbose] [--json]\n\n"
    "Runs the golden vectors through the engine and compares every variant that this machine can\n"
    "run with the reference, over odd lengths, positions and vocabularies: on the CPU, and on\n"
    "every device of every GPU backend, in every mode and memory strategy. What cannot be tested\n"
    "here is skipped, and why is said. Exit status 1 if anything differs or a device fails.\n\n"
    "  --quick     the same with smaller sizes\n"
    "  --only T    only checks whose names contain T, cuda.champion for one\n"
    "  --verbose   every check, as it passes\n"
    "  --json      one JSON document\n\n"
    "example: iron selftest --quick\n",
    run};
