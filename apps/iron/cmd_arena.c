/* SPDX-License-Identifier: MIT */
/*
 * cmd_arena.c: `iron arena`: benchmarks contenders for memory-bound operations on this machine
 * next to the measured bandwidth of its memory.
 *
 * The table goes to standard output unless a report does ("-"). Report files appear only when they
 * are complete, and they are written before a wrong result or a slowdown ends the command with
 * status 1. Whether reports can be written and an old report can be read is checked before the
 * race, which may take minutes.
 */
#include "command.h"

#include <iron/iron_arena.h>

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_COLUMNS 96  /* of explanations */
#define FILE_COLUMNS 140 /* of the table in a file or pipe: all columns */

typedef struct request {
    iron_arena_options options;
    bool wants_list, wants_plan;
    const char *explained, *compared, *template;
    const char *data, *format, *column;
    text_list contenders, defines;
    const char *reports[5]; /* by format; the first, the table, is unused */
    double threshold;
    text_list params;
    bool has_time, has_runs;
} request;

static const option arena_table[] = {
    OPTION("list", OPTION_FLAG, NULL, request, wants_list,
           "list contenders, sizes and parameters without a race; with --json F everything known "
           "about them, as JSON"),
    OPTION("dry-run", OPTION_FLAG, NULL, request, wants_plan,
           "show what would race, or why not, without a race"),
    OPTION("explain", OPTION_TEXT, "OP", request, explained,
           "explain what an operation computes, what its race shows and when it pays off; '*' "
           "explains all"),
    OPTION("template", OPTION_TEXT, "OP.c", request, template,
           "print a complete contender for an operation, to begin with: OP.c, OP.cl or OP.cu; "
           "new-op.c, .cl or .cu is an operation of your own"),
    OPTION("contender", OPTION_LIST, "FILE", request, contenders,
           "race a contender of your own under the referee: a .c, .so, .cl or .cu file"),
    OPTION("define", OPTION_LIST, "NAME=V,...", request, defines,
           "compile the contenders with NAME=V, once for each value", .letter = 'D'),
    OPTION("size", OPTION_TEXT, "S,...", request, options.sizes,
           "NAME, SET:NAME, 'SET:*', ROWSxCOLS, a number of elements, or "
           "random:COUNT[:SEED[:ELEMENTS]], so many shapes of 1 to ELEMENTS (10^9) elements"),
    OPTION("dtype", OPTION_TEXT, "T,...", request, options.dtype,
           "element types; with --data the file's token type (also i32, i64), required for "
           "headerless files",
           .choices = "f32 f64 u8 u16 u32"),
    OPTION("data", OPTION_TEXT, "FILE", request, data,
           "race tokens, seal and histogram over the tokens of a file or directory; --size takes "
           "the first ones, --vocab must be above all of them"),
    OPTION("format", OPTION_TEXT, "F", request, format, "with --data: as in iron stat",
           .choices = "auto raw llmc megatron npy ds litpkds arrow parquet mds",
           .standard = "auto"),
    OPTION("column", OPTION_TEXT, "NAME", request, column, "with --data: as in iron stat"),
    OPTION("param", OPTION_LIST, "NAME=V,...", request, params,
           "values of one parameter, such as data=zipf; repeat it for other parameters. Without "
           "it all values race, or only the first if no GLOB is given"),
    OPTION("memory", OPTION_TEXT, "M,...", request, options.memory, "memory strategies of GPUs",
           .choices = "pageable pinned streams uvm uvm-prefetch zero-copy", .standard = "all"),
    OPTION("scope", OPTION_TEXT, "S,...", request, options.scopes,
           "what is timed; kernel is always included", .choices = "kernel transfer end_to_end",
           .standard = "all"),
    OPTION("streams", OPTION_NUMBER, "N", request, options.streams,
           "queues of the memory strategy streams", .min = 1, .max = 32, .standard = "4"),
    OPTION("vocab", OPTION_NUMBER, "V", request, options.vocab,
           "vocabulary size for operations on tokens of type u32", .min = 2,
           .max = UINT32_C(1) << 31, .standard = "50257"),
    OPTION("device", OPTION_TEXT, "K", request, options.devices,
           "device number within each GPU backend; all, or several separated by commas, race one "
           "after another",
           .standard = "the first GPU"),
    OPTION("threads", OPTION_NUMBER, "T", request, options.threads, "number of CPU threads",
           .min = 1, .standard = "all available CPUs"),
    OPTION("seed", OPTION_NUMBER, "S", request, options.seed,
           "seed of the data and of the order of turns", .standard = "1"),
    OPTION("time", OPTION_REAL, "S", request, options.seconds,
           "seconds for checking and timing all rows together; measuring the ceilings and making "
           "the data come on top. A row ends when its median is known to 1 % or its share of the "
           "time is used up; one that is too slow for the time is skipped",
           .standard = "60", GIVEN(request, has_time)),
    OPTION("runs", OPTION_NUMBER, "N", request, options.runs,
           "take N samples of each row instead of --time", .min = 1, GIVEN(request, has_runs)),
};

static const option report_table[] = {
    OPTION("json", OPTION_TEXT, "F", request, reports[IRON_REPORT_JSON],
           "write a JSON report to F; - is standard output"),
    OPTION("csv", OPTION_TEXT, "F", request, reports[IRON_REPORT_CSV], "write a CSV report"),
    OPTION("md", OPTION_TEXT, "F", request, reports[IRON_REPORT_MARKDOWN],
           "write a Markdown report"),
    OPTION("html", OPTION_TEXT, "F", request, reports[IRON_REPORT_HTML],
           "write an HTML report, a single file without external references"),
    OPTION("compare", OPTION_TEXT, "OLD", request, compared,
           "compare with the JSON report of an earlier race: each row is same, faster, slower or "
           "unclear"),
    OPTION("threshold", OPTION_REAL, "P", request, threshold,
           "with --compare: how many percent slower a row may be", .standard = "5"),
};

static bool row_at(const iron_arena *a, size_t index, iron_arena_row *row) {
    row->struct_size = sizeof *row;
    return iron_arena_at(a, index, row, NULL) == IRON_OK;
}

static void print_remarks(const iron_arena *a) {
    for (size_t k = 0; iron_arena_remark(a, k); k++)
        printf("%s%s\n", k == 0 ? "\n" : "", iron_arena_remark(a, k));
}

/* Prints each contender once with its idea, then sizes and parameters. */
static void print_list(const iron_arena *a) {
    iron_arena_axis axis = {.struct_size = sizeof axis};
    iron_arena_row row, earlier;
    const char *op, *heading = "\nparameters\n";
    char sizes[1024];

    for (size_t k = 0; k < iron_arena_count(a) && row_at(a, k, &row); k++) {
        size_t n = 0; /* names repeat for each memory, size and parameter */

        while (n < k && row_at(a, n, &earlier) && strcmp(row.name, earlier.name) != 0)
            n++;
        if (n == k)
            printf("%-34s %s%s%s\n", row.name,
                   row.is_peer      ? "peer: "
                   : row.is_outside ? "from "
                                    : "",
                   row.idea, row.device[0] ? "" : " (unavailable)");
    }
    printf("\nsizes\n");
    for (size_t k = 0; (op = iron_arena_op_at(k)); k++) {
        iron_arena_sizes(op, sizes, sizeof sizes);
        for (char *line = strtok(sizes, "\n"); line; line = strtok(NULL, "\n"))
            printf("%-10s %s\n", op, line);
    }
    for (size_t k = 0; (op = iron_arena_op_at(k)); k++)
        for (size_t n = 0; iron_arena_axis_at(op, n, &axis); n++, heading = "")
            printf("%s%-10s %s: %s (%s)\n", heading, op, axis.name, axis.values, axis.about);
    print_remarks(a);
}

/* Prints every row: what it would race over, or why it is skipped. */
static void print_plan(const iron_arena *a) {
    iron_arena_row row;

    for (size_t k = 0; k < iron_arena_count(a) && row_at(a, k, &row); k++) {
        printf("%-34s %-12s %-12s %-4s %10.1f MB  %s%s", row.name, row.memory, row.size, row.dtype,
               (double)row.bytes * 1e-6, row.params, row.params[0] ? "; " : "");
        if (row.reason[0])
            printf("skipped: %s\n", row.reason);
        else
            printf("%s\n", row.device);
    }
    print_remarks(a);
}

/* Prints a wrapped text after `column` characters that are already on the line. */
static void print_text(const char *text, int column, size_t indent) {
    print_wrapped(stdout, text, (size_t)column, indent, TEXT_COLUMNS);
}

static void explain_op(const char *op) {
    iron_arena_axis axis = {.struct_size = sizeof axis};
    iron_arena_contender row = {.struct_size = sizeof row};

    print_text(iron_arena_note(op, IRON_NOTE_CONTRACT), printf("%s: ", op), 0);
    for (iron_note note = IRON_NOTE_WHY; iron_arena_note_title(note); note++) {
        const char *title = iron_arena_note_title(note), *text = iron_arena_note(op, note);

        if (!text)
            continue;
        printf("\n");
        print_text(text, title[0] ? printf("%s: ", title) : 0, 0);
    }
    for (size_t k = 0; iron_arena_axis_at(op, k, &axis); k++) {
        if (k == 0)
            printf("\nParameters (--param NAME=VALUE,...):\n");
        print_text(axis.about, printf("  %-12s ", axis.name), 15);
        print_text(axis.values, printf("%15s", ""), 15);
        if (strncmp(axis.takes, "numbers", 7) == 0 || strncmp(axis.takes, "whole", 5) == 0)
            print_text(axis.takes, printf("%15sor other ", ""), 15);
    }
    printf("\nContenders:\n");
    for (size_t k = 0; iron_arena_contender_at(op, k, &row); k++) {
        char text[400];

        snprintf(text, sizeof text, "%s%s%s%s", row.idea, row.beats[0] ? " (improves on " : "",
                 row.beats, row.beats[0] ? ")" : "");
        print_text(text, printf("  %-24s %-13s ", row.name, row.backends), 41);
    }
}

static bool is_stdout_taken(const request *r) {
    for (size_t k = 0; k < COUNT(r->reports); k++)
        if (r->reports[k] && strcmp(r->reports[k], "-") == 0)
            return true;
    return false;
}

/* Prints and writes everything before it returns the outcome. The old report is read before the new
 * one is written, because both may be the same file. */
static iron_status race(const request *r, iron_arena *a, iron_error *err) {
    const char *no_color = getenv("NO_COLOR");
    bool is_terminal = isatty(STDOUT_FILENO) && !(no_color && no_color[0]);
    iron_status outcome = iron_arena_race(a, err), status;
    iron_error other = {IRON_OK, 0, ""};
    struct winsize size;

    progress_clear(r->options.context);
    if (!iron_arena_has_raced(a))
        return outcome;
    if (!is_stdout_taken(r))
        iron_arena_print(a, is_terminal,
                         ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0
                             ? size.ws_col
                             : FILE_COLUMNS);
    if (r->compared) {
        status = iron_arena_compare(a, r->compared, r->threshold, &other);
        if (outcome == IRON_OK) {
            outcome = status;
            *err = other;
        }
    }
    for (size_t k = 0; k < COUNT(r->reports); k++)
        if (r->reports[k] &&
            iron_arena_report(a, (iron_report_format)k, r->reports[k], &other) != IRON_OK) {
            *err = other;
            return err->status;
        }
    return outcome;
}

static iron_status check_request(const request *r, iron_error *err) {
    if (r->has_time && r->has_runs)
        return usage(err, "--time and --runs exclude each other; use one");
    if (r->has_time && !(r->options.seconds > 0 && r->options.seconds <= 86400))
        return usage(err, "--time is %g; it must be above 0, at most 86400 seconds",
                     r->options.seconds);
    if (!(r->threshold >= 0 && r->threshold <= 1e6))
        return usage(err, "--threshold is %g; it must be 0 to 1000000 percent", r->threshold);
    if (r->explained || r->template)
        return IRON_OK;
    if (r->compared && is_stdout_taken(r))
        return usage(err, "--compare and the report - both use standard output; name a file");
    if (r->compared)
        IRON_TRY(iron_arena_compare_check(r->compared, err));
    for (size_t k = 0; k < COUNT(r->reports); k++) {
        const char *path = r->reports[k];
        iron_output *probe = NULL;
        struct stat info;

        if (!path)
            continue;
        for (size_t other = 0; other < k; other++)
            if (r->reports[other] && strcmp(path, r->reports[other]) == 0)
                return usage(err, "two reports cannot both be written to %.120s; name another file",
                             path);
        /* pipes and devices are not opened: closing them would look like the end to their reader */
        if (strcmp(path, "-") == 0 ||
            (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)))
            continue;
        IRON_TRY(iron_output_open(path, &probe, err));
        iron_output_abandon(probe);
    }
    return IRON_OK;
}

#define PIECE_TOKENS ((size_t)1 << 18)

/* Reads tokens of the file's type as u32; i32 and i64 must be ids. */
static iron_status read_tokens(void *context, uint32_t *tokens, size_t count, iron_error *err) {
    iron_source *source = context;
    const char *file = iron_source_file(source, 0);
    iron_dtype dtype = iron_source_dtype(source);
    void *piece = malloc(PIECE_TOKENS * sizeof(int64_t));
    iron_status status = IRON_OK;
    size_t done = 0, got = 1;

    if (!piece)
        return usage(err, "out of memory");
    while (status == IRON_OK && done < count && got > 0) {
        size_t left = count - done;

        status =
            iron_source_read(source, piece, left < PIECE_TOKENS ? left : PIECE_TOKENS, &got, err);
        for (size_t k = 0; k < got && status == IRON_OK; k++) {
            int64_t token = dtype == IRON_DTYPE_U8    ? ((const uint8_t *)piece)[k]
                            : dtype == IRON_DTYPE_U16 ? ((const uint16_t *)piece)[k]
                            : dtype == IRON_DTYPE_U32 ? ((const uint32_t *)piece)[k]
                            : dtype == IRON_DTYPE_I32 ? ((const int32_t *)piece)[k]
                                                      : ((const int64_t *)piece)[k];

            if (token < 0 || token > UINT32_MAX)
                status = usage(err, "%.150s: %" PRId64 " is no token; ids are 0 to 4294967295",
                               file, token);
            tokens[done + k] = (uint32_t)token;
        }
        done += got;
    }
    free(piece);
    if (status == IRON_OK && done < count)
        return usage(err, "%.150s ended after %zu of %zu tokens", file, done, count);
    return status;
}

/* Opens the user's tokens, if there are any; the source is to be closed after the arena was opened.
 */
static iron_status open_data(request *r, iron_arena_data *data, char *arguments, size_t size,
                             iron_source **source, iron_error *err) {
    reading how = {.format = r->format,
                   .column = r->column,
                   .dtype_name = r->options.dtype,
                   .wants_seekable = true};
    iron_dtype dtype;

    if (!r->data && (r->format || r->column))
        return usage(err, "--%s is for --data", r->format ? "format" : "column");
    if (!r->data)
        return IRON_OK;
    IRON_TRY(reading_check(&how, err));
    IRON_TRY(reading_open(&how, &r->data, 1, source, err));
    dtype = iron_source_dtype(*source);
    snprintf(arguments, size, "--data '%s'%s%s%s%s%s%s", r->data, how.dtype_name ? " --dtype " : "",
             how.dtype_name ? how.dtype_name : "", r->format ? " --format " : "",
             r->format ? r->format : "", r->column ? " --column " : "", r->column ? r->column : "");
    *data = (iron_arena_data){
        .struct_size = sizeof *data,
        .file = r->data,
        .arguments = arguments,
        .dtype = iron_dtype_name(iron_dtype_bytes(dtype) > 2 ? IRON_DTYPE_U32 : dtype),
        .tokens = iron_source_tokens(*source),
        .read = read_tokens,
        .context = *source};
    if (data->tokens == IRON_COUNT_UNKNOWN)
        return usage(err, "--data %.150s: its length is unknown; name a file", r->data);
    r->options.dtype = NULL;
    r->options.data = data;
    return IRON_OK;
}

static iron_status run(void *options, args *a, iron_error *err) {
    request *r = options;
    iron_arena *arena = NULL;
    iron_source *source = NULL;
    iron_arena_data data;
    char arguments[400];
    iron_status status = IRON_OK;
    size_t explained = 0; /* operations that match */
    const char *op;
    progress p;

    IRON_TRY(check_request(r, err));
    for (size_t k = 0; r->explained && (op = iron_arena_op_at(k)); k++)
        if (fnmatch(r->explained, op, 0) == 0) {
            fputs(explained++ > 0 ? "\n\n" : "", stdout);
            explain_op(op);
        }
    if (r->explained && explained == 0)
        return usage(err, "unknown op '%.40s'; iron arena --list shows all", r->explained);
    if (r->explained)
        return IRON_OK;
    if (r->template) {
        char *text = iron_arena_template(r->template);

        if (!text)
            return usage(err,
                         "--template %.60s: it must be the name of an operation with the ending "
                         ".c, .cl or .cu; iron arena --list shows operations",
                         r->template);
        fputs(text, stdout);
        free(text);
        return IRON_OK;
    }
    p = progress_start(0);
    r->options.globs = (const char *const *)a->values;
    r->options.glob_count = a->value_count;
    r->options.params = r->params.texts;
    r->options.param_count = r->params.count;
    r->options.contenders = r->contenders.texts;
    r->options.contender_count = r->contenders.count;
    r->options.defines = r->defines.texts;
    r->options.define_count = r->defines.count;
    r->options.is_listing = r->wants_list;
    r->options.progress = progress_update;
    r->options.context = &p;
    status = open_data(r, &data, arguments, sizeof arguments, &source, err);
    if (status == IRON_OK)
        status = iron_arena_open(&r->options, &arena, err);
    iron_source_close(source);
    r->options.data = NULL;
    IRON_TRY(status);
    if (r->wants_list && r->reports[IRON_REPORT_JSON])
        status = iron_arena_registry(r->reports[IRON_REPORT_JSON], err);
    else if (r->wants_list)
        print_list(arena);
    else if (r->wants_plan)
        print_plan(arena);
    else
        status = race(r, arena, err);
    iron_arena_close(arena);
    return status;
}

const command command_arena = {
    .name = "arena",
    .summary = "benchmarks memory-bound algorithms against the memory's bandwidth",
    .synopsis = "[GLOB...] [OPTIONS]",
    .description =
        "Races different algorithms for memory-bound operations on this machine. Every result is "
        "verified before and after it is timed, the rows take turns in random order, and every "
        "rate is shown next to the memory bandwidth measured in the same run. Contenders are named "
        "op.backend.name; globs select among them.\n\n"
        "GPU contenders race once for each memory strategy. Operations that are only about kernels "
        "race with pageable memory and without copies, unless --memory or --scope is given. GPU "
        "rows also show the registers, local memory, spills and occupancy of their kernels.",
    .groups = {{NULL, arena_table, COUNT(arena_table), 0},
               {"Reports", report_table, COUNT(report_table), 0}},
    .exit_status = "0: success; 1: a result is wrong, a contender from a file is wrong, "
                   "implausible or failed, or with --compare a row is slower by more "
                   "than noise and threshold; 2: error.",
    .environment =
        DRIVER_VARIABLES " IRON_NVML_LIBRARY IRON_NVRTC_LIBRARY IRON_PEERS IRON_POWERCAP CC NVCC "
                         "NO_COLOR",
    .examples = "iron arena --list\n"
                "iron arena 'atax.*' --size STANDARD --html report.html\n"
                "iron arena 'tokens.cpu.*' --size 'batch:*' --time 20\n"
                "iron arena 'histogram.*' --param data=zipf,sorted --dtype u32 --vocab 50257\n"
                "iron arena --data corpus.bin --dtype u16 --time 20\n"
                "iron arena --template histogram.c > mine.c\n"
                "iron arena 'histogram.cpu.*' --contender mine.c --size SMALL\n"
                "iron arena atax.cpu --size 500x500 --dtype f32 --runs 5 --json race.json\n"
                "iron arena atax.cpu --size 500x500 --dtype f32 --runs 5 --compare race.json "
                "--threshold 50",
    .options_bytes = sizeof(request),
    .defaults = &(const request){.options = {.struct_size = sizeof(iron_arena_options), .seed = 1},
                                 .threshold = 5},
    .run = run,
};
