/* SPDX-License-Identifier: MIT */
/* cmd_selftest.c: `iron selftest`: is this build right on this machine? */
#include "command.h"
#include "json.h"
#include "progress.h"

#include <iron/iron_arena.h>

#include <inttypes.h>
#include <stdio.h>

typedef struct telling {
    bool wants_json;
    json j;
    progress p;
    uint64_t done;
} telling;

static void tell(void *context, const char *what, const char *difference) {
    telling *t = context;

    progress_tell(&t->p, ++t->done, UINT64_MAX);
    if (!difference[0])
        return;
    if (t->wants_json) {
        json_open(&t->j, NULL, '{');
        json_text(&t->j, "check", what);
        json_text(&t->j, "difference", difference);
        json_close(&t->j, '}');
    } else {
        printf("WRONG %s: %s\n", what, difference);
    }
}

static iron_status run(int argc, char **argv, iron_error *err) {
    bool is_quick = false, is_done;
    telling t = {0};
    const option options[] = {
        {"quick", OPTION_FLAG, &is_quick, NULL},
        {"json", OPTION_FLAG, &t.wants_json, NULL},
    };
    args a = {.options = options, .option_count = COUNT(options)};
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
    status = iron_selftest(is_quick, tell, &t, &result, err);
    progress_clear(&t.p);
    if (t.wants_json) {
        json_close(&t.j, ']');
        json_number(&t.j, "passed", result.passed);
        json_number(&t.j, "failed", result.failed);
        json_close(&t.j, '}');
        json_end(&t.j);
    } else {
        printf("%" PRIu64 " passed, %" PRIu64 " failed\n", result.passed, result.failed);
    }
    return status;
}

const command command_selftest = {
    "selftest", "golden vectors and every variant on this machine",
    "usage: iron selftest [--quick] [--json]\n\n"
    "Runs the golden vectors through the engine and compares every variant that this machine can\n"
    "run with the reference, over odd lengths, positions and vocabularies. Exit status 1 if\n"
    "anything differs.\n\n"
    "  --quick   the same with smaller sizes\n\n"
    "example: iron selftest --quick\n",
    run};
