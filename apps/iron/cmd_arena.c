/* SPDX-License-Identifier: MIT */
/*
 * cmd_arena.c: `iron arena`: races contenders over memory-bound work on this machine, beside what
 * its memory can give, and says what paid.
 *
 * The table goes to standard output unless a report does ("-"); reports go to files, each whole or
 * not at all. They are written before a wrong result or a slowdown ends the command with 1. What
 * would keep them or a comparison from being made is looked for before the race: a minute is long.
 */
#include "arena_show.h"
#include "command.h"
#include "progress.h"

#include <iron/iron_arena.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct request {
    iron_arena_options options;
    bool wants_list, wants_plan;
    const char *explained, *compared;
    const char *reports[5]; /* by format; the table has none */
    const char *time, *threshold;
    text_list params;
    uint64_t vocab, device, threads, streams, seed, runs;
    bool has_device, has_time, has_runs, has_vocab, has_seed, has_threads, has_streams;
} request;

static const char help[] =
    "usage: iron arena [GLOB...] [OPTIONS]\n"
    "\n"
    "Races every way of doing memory-bound work on this machine: each result is verified before "
    "and\n"
    "after it is timed, turns go round in random order, and every rate stands beside what the "
    "memory\n"
    "gave in the same run. Contenders are op.backend.name; globs choose among them. A GPU's take "
    "part\n"
    "once for each memory strategy; of ops that are about kernels alone, with pageable memory and\n"
    "without the copies, unless --memory and --scope say otherwise. Rows of a GPU tell what their\n"
    "kernels take of it: registers, local memory, spills, occupancy.\n"
    "\n"
    "  --list            the contenders, sizes and parameters that there are; races nothing\n"
    "                    (with --json F: all that is known of them, as JSON)\n"
    "  --dry-run         who would race over what, or why not; races nothing\n"
    "  --explain OP      what an op computes, what its race shows, when it pays; '*' for all\n"
    "  --size S,...      NAME, SET:NAME, 'SET:*', ROWSxCOLS or a count of elements\n"
    "  --dtype T         f32, f64, u8, u16 or u32\n"
    "  --param NAME=V,...\n"
    "                    values of a parameter of the ops, such as data=zipf; once for each name.\n"
    "                    Otherwise all of its values, or its first where there is no GLOB\n"
    "  --memory M,...    pageable, pinned, streams, uvm, uvm-prefetch, zero-copy (all)\n"
    "  --scope S,...     kernel, transfer, end_to_end (all; kernel always)\n"
    "  --streams N       queues of the strategy streams (4)\n"
    "  --vocab V         vocabulary, for ops over tokens (50257)\n"
    "  --device K        that device of each GPU backend (the first GPU)\n"
    "  --threads T       threads on the CPU (all)\n"
    "  --seed S          of the data and of the order of turns (1)\n"
    "  --time S          seconds for all turns together (60): a row ends when its median is known "
    "to\n"
    "                    1 %, or when its share is spent\n"
    "  --runs N          N samples of everything instead\n"
    "  --json F, --csv F, --md F, --html F\n"
    "                    reports; - is standard output. The HTML file needs nothing but itself\n"
    "  --compare OLD     against an earlier race's JSON: same, faster, slower or unclear, a row "
    "each;\n"
    "                    exit status 1 if one is slower by more than noise and threshold\n"
    "  --threshold P     percent (5)\n"
    "\n"
    "examples:\n"
    "  iron arena --list\n"
    "  iron arena 'atax.*' --size STANDARD --html report.html\n"
    "  iron arena 'tokens.cpu.*' --size 'batch:*' --time 20\n"
    "  iron arena 'histogram.*' --param data=zipf,sorted --dtype u32 --vocab 50257\n"
    "  iron arena atax.cpu --size 500x500 --dtype f32 --runs 5 --json race.json\n"
    "  iron arena atax.cpu --size 500x500 --dtype f32 --runs 5 --compare race.json --threshold "
    "50\n";

static iron_status parse_seconds(request *r, iron_error *err) {
    if (!r->has_time)
        return IRON_OK;
    if (r->has_runs)
        return usage(err, "--time and --runs exclude each other; use one");
    if (parse_real(r->time, &r->options.seconds, err) != IRON_OK ||
        !(r->options.seconds > 0 && r->options.seconds <= 86400))
        return usage(err, "--time is %.40s; it must be above 0, at most 86400 seconds", r->time);
    return IRON_OK;
}

static iron_status to_u32(const char *name, uint64_t value, uint32_t *out, iron_error *err) {
    if (value > UINT32_MAX)
        return usage(err, "--%s is %" PRIu64 "; it must be below 2^32", name, value);
    *out = (uint32_t)value;
    return IRON_OK;
}

static iron_status convert(request *r, iron_error *err) {
    const struct {
        const char *name;
        uint64_t value;
        uint32_t *target;
    } numbers[] = {{"vocab", r->vocab, &r->options.vocab},
                   {"device", r->device, &r->options.device},
                   {"threads", r->threads, &r->options.threads},
                   {"streams", r->streams, &r->options.streams},
                   {"runs", r->runs, &r->options.runs}};

    for (size_t k = 0; k < COUNT(numbers); k++) {
        iron_status status = to_u32(numbers[k].name, numbers[k].value, numbers[k].target, err);

        if (status != IRON_OK)
            return status;
    }
    if (r->has_runs && r->runs == 0)
        return usage(err, "--runs is 0; it must be 1 or more");
    if (r->has_threads && r->threads == 0)
        return usage(err, "--threads is 0; it must be 1 or more");
    if (r->has_streams && r->streams == 0)
        return usage(err, "--streams is 0; it must be 1 to 32");
    if (r->has_vocab && r->vocab < 2)
        return usage(err, "--vocab is %" PRIu64 "; it must be 2 to 2147483648", r->vocab);
    if (r->has_seed)
        r->options.seed = r->seed;
    r->options.has_device = r->has_device;
    return parse_seconds(r, err);
}

/* A file or a pipe has room for all columns, what kernels take among them. */
#define FILE_COLUMNS 140

static int terminal_columns(void) {
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return FILE_COLUMNS;
}

static bool is_stdout_taken(const request *r) {
    for (size_t k = 0; k < COUNT(r->reports); k++)
        if (r->reports[k] && strcmp(r->reports[k], "-") == 0)
            return true;
    return false;
}

static iron_status write_reports(const request *r, const iron_arena *a, iron_error *err) {
    for (size_t k = 0; k < COUNT(r->reports); k++) {
        iron_status status = IRON_OK;

        if (r->reports[k])
            status = iron_arena_report(a, (iron_report_format)k, r->reports[k], err);
        if (status != IRON_OK)
            return status;
    }
    return IRON_OK;
}

static iron_status compare(const request *r, const iron_arena *a, iron_error *err) {
    double threshold = 5;

    if (r->threshold && parse_real(r->threshold, &threshold, err) != IRON_OK)
        return IRON_E_ARG;
    return iron_arena_compare(a, r->compared, threshold, err);
}

/* Everything that can be shown is shown before the outcome is told. The old report is read before
 * the new one is written, since that may take its place. */
static iron_status race(const request *r, iron_arena *a, iron_error *err) {
    const char *no_color = getenv("NO_COLOR");
    bool is_terminal = isatty(STDOUT_FILENO) && !(no_color && no_color[0]);
    iron_status outcome = iron_arena_race(a, err), status;
    iron_error other = {IRON_OK, 0, ""};

    progress_clear(r->options.context);
    if (!iron_arena_has_raced(a))
        return outcome;
    if (!is_stdout_taken(r))
        iron_arena_print(a, is_terminal, terminal_columns());
    if (r->compared) {
        status = compare(r, a, &other);
        if (outcome == IRON_OK) {
            outcome = status;
            *err = other;
        }
    }
    status = write_reports(r, a, &other);
    if (status == IRON_OK)
        return outcome;
    *err = other;
    return status;
}

/* Pipes and devices are not opened twice: whoever reads would take that for the end. */
static iron_status check_writable(const char *path, iron_error *err) {
    iron_output *probe = NULL;
    struct stat info;
    iron_status status;

    if (strcmp(path, "-") == 0)
        return IRON_OK;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        return IRON_OK;
    status = iron_output_open(path, &probe, err);
    iron_output_abandon(probe);
    return status;
}

static iron_status check_reports(const request *r, iron_error *err) {
    for (size_t k = 0; k < COUNT(r->reports); k++) {
        iron_status status = IRON_OK;

        for (size_t other = 0; r->reports[k] && other < k; other++)
            if (r->reports[other] && strcmp(r->reports[k], r->reports[other]) == 0)
                return usage(err, "two reports cannot both go to %.120s; name another file",
                             r->reports[k]);
        if (r->reports[k])
            status = check_writable(r->reports[k], err);
        if (status != IRON_OK)
            return status;
    }
    return IRON_OK;
}

static iron_status check_request(const request *r, iron_error *err) {
    double threshold = 0;
    iron_status status;

    if (r->threshold && (parse_real(r->threshold, &threshold, err) != IRON_OK ||
                         !(threshold >= 0 && threshold <= 1e6)))
        return usage(err, "--threshold is %.40s; it must be 0 to 1000000 percent", r->threshold);
    if (r->compared && is_stdout_taken(r))
        return usage(err, "--compare prints to standard output, as the report - does; name a file");
    status = r->compared ? iron_arena_compare_check(r->compared, err) : IRON_OK;
    return status == IRON_OK ? check_reports(r, err) : status;
}

static iron_status work(request *r, iron_error *err) {
    progress p;
    iron_arena *a = NULL;
    iron_status status = check_request(r, err);

    if (status != IRON_OK)
        return status;
    r->options.is_listing = r->wants_list;
    p = progress_start(0);
    r->options.progress = progress_tell;
    r->options.context = &p;
    status = iron_arena_open(&r->options, &a, err);
    if (status != IRON_OK)
        return status;
    if (r->wants_list && r->reports[IRON_REPORT_JSON])
        status = iron_arena_registry(r->reports[IRON_REPORT_JSON], err);
    else if (r->wants_list)
        arena_show_list(a);
    else if (r->wants_plan)
        arena_show_plan(a);
    else
        status = race(r, a, err);
    iron_arena_close(a);
    return status;
}

static iron_status run(int argc, char **argv, iron_error *err) {
    request r = {.wants_list = false};
    const option options[] = {
        {"list", OPTION_FLAG, &r.wants_list, NULL},
        {"dry-run", OPTION_FLAG, &r.wants_plan, NULL},
        {"explain", OPTION_TEXT, &r.explained, NULL},
        {"size", OPTION_TEXT, &r.options.sizes, NULL},
        {"dtype", OPTION_TEXT, &r.options.dtype, NULL},
        {"param", OPTION_LIST, &r.params, NULL},
        {"memory", OPTION_TEXT, &r.options.memory, NULL},
        {"scope", OPTION_TEXT, &r.options.scopes, NULL},
        {"streams", OPTION_NUMBER, &r.streams, &r.has_streams},
        {"vocab", OPTION_NUMBER, &r.vocab, &r.has_vocab},
        {"device", OPTION_NUMBER, &r.device, &r.has_device},
        {"threads", OPTION_NUMBER, &r.threads, &r.has_threads},
        {"seed", OPTION_NUMBER, &r.seed, &r.has_seed},
        {"time", OPTION_TEXT, &r.time, &r.has_time},
        {"runs", OPTION_NUMBER, &r.runs, &r.has_runs},
        {"json", OPTION_TEXT, &r.reports[IRON_REPORT_JSON], NULL},
        {"csv", OPTION_TEXT, &r.reports[IRON_REPORT_CSV], NULL},
        {"md", OPTION_TEXT, &r.reports[IRON_REPORT_MARKDOWN], NULL},
        {"html", OPTION_TEXT, &r.reports[IRON_REPORT_HTML], NULL},
        {"compare", OPTION_TEXT, &r.compared, NULL},
        {"threshold", OPTION_TEXT, &r.threshold, NULL},
    };
    args a = {.options = options, .option_count = COUNT(options)};
    iron_status status;
    bool is_done;

    iron_arena_options_init(&r.options);
    status = command_args(&command_arena, &a, argc, argv, &is_done, err);
    if (is_done)
        return status;
    r.options.globs = (const char *const *)a.values;
    r.options.glob_count = a.value_count;
    r.options.params = r.params.texts;
    r.options.param_count = r.params.count;
    status = convert(&r, err);
    if (status != IRON_OK)
        return status;
    return r.explained ? arena_explain(r.explained, err) : work(&r, err);
}

const command command_arena = {"arena", "races ways of doing memory-bound work, beside the limit",
                               help, run};
