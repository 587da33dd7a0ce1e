/* SPDX-License-Identifier: MIT */
/*
 * cmd_ledger.c: `iron ledger`: what a training run really consumed: shows its ledgers, looks for
 * what repeats, is missing or conflicts, compares two runs, and finds samples in their dataset.
 */
#include "command.h"

#include <iron/iron_ledger.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct ledger_options {
    bool wants_json, lists_steps;
    uint64_t memory, limit;
    uint32_t threads;
    text_list in;
    uint64_t sample;
    const char *csv, *svg, *html;
    reading reading;
} ledger_options;

static const ledger_options ledger_defaults = {.memory = UINT64_C(1) << 30, .limit = 10000};

static const option ledger_table[] = {
    OPTION("json", OPTION_FLAG, NULL, ledger_options, wants_json, JSON_HELP),
    OPTION("steps", OPTION_FLAG, NULL, ledger_options, lists_steps,
           "show: one line for each record that counts"),
    OPTION("limit", OPTION_NUMBER, "N", ledger_options, limit,
           "check: list the first N findings of each kind", .standard = "10000"),
    OPTION("in", OPTION_LIST, "DATASET", ledger_options, in,
           "trace: a file or folder of the dataset; may be repeated"),
    OPTION("sample", OPTION_NUMBER, "LENGTH", ledger_options, sample,
           "trace: tokens of each sample; without it samples are the files' rows or documents"),
    OPTION("csv", OPTION_TEXT, "FILE", ledger_options, csv,
           "trace: write one line for each recorded sample: where in the dataset it is"),
    OPTION("svg", OPTION_TEXT, "FILE", ledger_options, svg,
           "trace: draw how often each part of the dataset was seen"),
    OPTION("html", OPTION_TEXT, "FILE", ledger_options, html,
           "trace: write a page with that picture, the counts and what was never seen"),
    OPTION("memory", OPTION_NUMBER, "SIZE", ledger_options, memory,
           "check, trace: size of the tables that find samples", .min = 1 << 16,
           .standard = "1GiB"),
    OPTION("threads", OPTION_NUMBER, "N", ledger_options, threads,
           "check, trace: number of threads; 0: every CPU", .max = 1024, .standard = "0"),
};

/* Showing. */

static iron_status show_records(const iron_ledgers *l, iron_json_writer *j, iron_error *err) {
    iron_ledger_record r = {.struct_size = sizeof r};
    char bag[IRON_BAG_TEXT];

    if (!j)
        puts("step rank micro epoch samples tokens seal bag");
    for (uint64_t k = 0; k < iron_ledgers_record_count(l); k++) {
        IRON_TRY(iron_ledgers_record(l, k, &r, err));
        iron_bag_format(&r.bag, bag);
        if (j)
            JSON_PUT(j,
                     OBJECT(NULL, NUMBER("step", r.step), NUMBER("rank", r.rank),
                            NUMBER("micro", r.micro), NUMBER("epoch", r.epoch),
                            NUMBER("samples", r.bag.samples), NUMBER("tokens", r.tokens),
                            TEXT("seal", r.seal), TEXT("bag", bag), DECIMAL("time_ns", r.time_ns)));
        else
            printf("%" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64
                   " %s %s\n",
                   r.step, r.rank, r.micro, r.epoch, r.bag.samples, r.tokens, r.seal, bag);
    }
    return IRON_OK;
}

static void summary_json(iron_json_writer *j, const char *schema, const iron_ledgers_summary *s) {
    JSON_PUT(j, TEXT("schema", schema), NUMBER("steps", s->steps), NUMBER("ranks", s->ranks),
             NUMBER("world", s->world), NUMBER("samples", s->samples), NUMBER("tokens", s->tokens),
             NUMBER_IF(s->steps > 0, "first_step", s->first_step),
             NUMBER_IF(s->steps > 0, "last_step", s->last_step), NUMBER("records", s->records),
             NUMBER("superseded", s->superseded));
}

static iron_status show(const ledger_options *o, const iron_ledgers *l,
                        const iron_ledgers_summary *s, iron_error *err) {
    iron_ledger_info info = {.struct_size = sizeof info};
    iron_status status = IRON_OK;
    iron_json_writer j;

    if (o->wants_json) {
        j = json_begin('{');
        summary_json(&j, "iron.ledger/1", s);
        iron_json_open(&j, "ledgers", '[');
        for (size_t k = 0; status == IRON_OK && k < s->ledgers; k++) {
            bool has_records;

            status = iron_ledgers_at(l, k, &info, err);
            has_records = info.records > 0;
            JSON_PUT(&j, OBJECT(NULL, TEXT("file", info.path), NUMBER("rank", info.rank),
                                NUMBER("world", info.world), NUMBER("records", info.records),
                                NUMBER("superseded", info.superseded),
                                NUMBER("samples", info.samples), NUMBER("tokens", info.tokens),
                                NUMBER_IF(has_records, "first_step", info.first_step),
                                NUMBER_IF(has_records, "last_step", info.last_step),
                                NUMBER_IF(has_records, "first_epoch", info.first_epoch),
                                NUMBER_IF(has_records, "last_epoch", info.last_epoch),
                                NUMBER("resumes", info.resumes), NUMBER("bytes", info.bytes),
                                NUMBER("torn_bytes", info.torn), BOOL("closed", info.is_closed),
                                BOOL("sample_seals", info.has_samples)));
        }
        iron_json_close(&j, ']');
        if (o->lists_steps && status == IRON_OK) {
            iron_json_open(&j, "entries", '[');
            status = show_records(l, &j, err);
            iron_json_close(&j, ']');
        }
        json_end(&j, '}');
        return status;
    }
    if (o->lists_steps)
        return show_records(l, NULL, err);
    for (size_t k = 0; k < s->ledgers; k++) {
        IRON_TRY(iron_ledgers_at(l, k, &info, err));
        printf("rank %" PRIu32 " of %" PRIu32 "  %s\n", info.rank, info.world, info.path);
        if (info.records == 0)
            printf("  no records");
        else
            printf("  steps %" PRIu64 " to %" PRIu64 ", %" PRIu64 " records, %" PRIu64
                   " samples, %" PRIu64 " tokens, epochs %" PRIu32 " to %" PRIu32,
                   info.first_step, info.last_step, info.records, info.samples, info.tokens,
                   info.first_epoch, info.last_epoch);
        if (info.resumes > 0)
            printf("; resumed %" PRIu32 " time%s, %" PRIu64 " record%s superseded", info.resumes,
                   plural_s(info.resumes), info.superseded, plural_s(info.superseded));
        if (info.torn > 0)
            printf("; cut off after step %" PRIu64 " (%" PRIu64 " torn bytes)", info.last_step,
                   info.torn);
        else if (!info.is_closed)
            printf("; not closed: still being written, or its process was killed");
        putchar('\n');
    }
    printf("%" PRIu64 " step%s on %" PRIu64 " rank%s, %" PRIu64 " sample%s, %" PRIu64 " token%s\n",
           s->steps, plural_s(s->steps), s->ranks, plural_s(s->ranks), s->samples,
           plural_s(s->samples), s->tokens, plural_s(s->tokens));
    return IRON_OK;
}

/* Checking. */

/* Findings that one sentence tells: `steps` consecutive ones of one kind, at one distance. */
typedef struct finding_run {
    iron_ledger_finding first;
    uint64_t steps, count;
} finding_run;

static bool run_takes(const finding_run *r, const iron_ledger_finding *f) {
    const iron_ledger_finding *g = &r->first;

    return f->kind == g->kind && f->rank == g->rank && f->first_rank == g->first_rank &&
           f->kind != IRON_LEDGER_MISSING_STEP && f->step == g->step + r->steps &&
           f->first_step == g->first_step + r->steps;
}

static int compare(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

static int by_kind_and_rank(const void *a, const void *b) {
    const iron_ledger_finding *x = a, *y = b;
    int order = compare(x->kind, y->kind);

    order = order ? order : compare(x->rank, y->rank);
    return order ? order : compare(x->step, y->step);
}

static int by_step(const void *a, const void *b) {
    const finding_run *x = a, *y = b;
    int order = compare(x->first.step, y->first.step);

    return order ? order : compare(x->first.rank, y->first.rank);
}

static iron_status print_findings(iron_ledger_findings *found, iron_error *err) {
    finding_run *runs = calloc(found->count + 1, sizeof *runs);
    char text[IRON_LEDGER_SENTENCE];
    size_t count = 0;

    if (!runs)
        return usage(err, "out of memory for the findings");
    if (found->count > 1)
        qsort(found->list, found->count, sizeof *found->list, by_kind_and_rank);
    for (size_t k = 0; k < found->count; k++) {
        const iron_ledger_finding *f = &found->list[k];

        if (count == 0 || !run_takes(&runs[count - 1], f))
            runs[count++] = (finding_run){.first = *f};
        runs[count - 1].steps++;
        runs[count - 1].count += f->count;
    }
    qsort(runs, count, sizeof *runs, by_step);
    for (size_t k = 0; k < count; k++) {
        iron_ledger_finding_text(&runs[k].first, runs[k].steps, runs[k].count, text);
        puts(text);
    }
    free(runs);
    return IRON_OK;
}

static iron_status check(const ledger_options *o, const iron_ledgers *l,
                         const iron_ledgers_summary *s, iron_error *err) {
    iron_ledger_findings found;
    iron_ledger_check_options options;
    progress p = progress_start(0);
    iron_status status;

    iron_ledger_check_options_init(&options);
    options.memory = o->memory;
    options.limit = o->limit;
    options.threads = o->threads;
    options.progress = progress_update;
    options.context = &p;
    status = iron_ledgers_check(l, &options, &found, err);
    progress_clear(&p);
    if (status != IRON_OK)
        return status;
    if (s->missing_ranks > 0)
        report_warning("iron",
                       "%" PRIu32 " of the run's ranks have no ledger here, first rank %" PRIu32
                       "; what they saw is not checked",
                       s->missing_ranks, s->first_missing_rank);
    if (o->wants_json) {
        iron_json_writer j = json_begin('{');

        summary_json(&j, "iron.ledger-check/1", s);
        iron_json_open(&j, "findings", '[');
        for (const iron_ledger_finding *f = found.list; f < found.list + found.count; f++)
            JSON_PUT(&j, OBJECT(NULL, TEXT("kind", iron_ledger_kind_name(f->kind)),
                                NUMBER("step", f->step), NUMBER("rank", f->rank),
                                NUMBER("first_step", f->first_step),
                                NUMBER("first_rank", f->first_rank), NUMBER("count", f->count)));
        iron_json_close(&j, ']');
        iron_json_number(&j, "findings_total", found.total);
        iron_json_open(&j, "totals", '{');
        for (int k = 0; k < IRON_LEDGER_KINDS; k++)
            iron_json_number(&j, iron_ledger_kind_name((iron_ledger_kind)k), found.totals[k]);
        iron_json_close(&j, '}');
        json_end(&j, '}');
    } else if (found.total > 0) {
        status = print_findings(&found, err);
    } else {
        printf("OK: %" PRIu64 " step%s on %" PRIu64 " rank%s, %" PRIu64 " sample%s, %" PRIu64
               " token%s: nothing repeats, conflicts or is missing\n",
               s->steps, plural_s(s->steps), s->ranks, plural_s(s->ranks), s->samples,
               plural_s(s->samples), s->tokens, plural_s(s->tokens));
    }
    if (status == IRON_OK && found.total > 0) {
        usage(err, "%" PRIu64 " finding%s", found.total, plural_s(found.total));
        status = err->status = IRON_E_MISMATCH;
    }
    iron_ledger_findings_deinit(&found);
    return status;
}

/* Comparing. */

static iron_status diff(const ledger_options *o, const args *a, iron_error *err) {
    iron_ledger_diff d = {.struct_size = sizeof d};
    iron_ledgers *runs[2] = {NULL, NULL};
    iron_status status = IRON_OK;
    bool differs;

    if (a->value_count != 2)
        return usage(err, "iron ledger diff compares two runs: A and B, each a ledger or a folder");
    for (size_t k = 0; status == IRON_OK && k < 2; k++)
        status = iron_ledgers_open((const char *const *)&a->values[k], 1, &runs[k], err);
    if (status != IRON_OK || (status = iron_ledgers_diff(runs[0], runs[1], &d, err)) != IRON_OK)
        goto done;
    differs = d.change != IRON_LEDGER_EQUAL;
    if (o->wants_json) {
        iron_json_writer j = json_begin('{');

        JSON_PUT(&j, TEXT("schema", "iron.ledger-diff/1"), BOOL("equal", !differs),
                 TEXT("kind", differs ? iron_ledger_change_name(d.change) : NULL),
                 NUMBER_IF(differs, "first_step", d.first_step),
                 NUMBER_IF(differs && d.rank != UINT32_MAX, "rank", d.rank),
                 NUMBER_IF(d.change == IRON_LEDGER_REPEATED || d.change == IRON_LEDGER_SKIPPED,
                           "other_step", d.other_step),
                 TEXT("sentence", d.sentence), BOOL("same_world", d.has_same_world),
                 NUMBER("steps_equal", d.steps), NUMBER("steps_a", d.steps_a),
                 NUMBER("steps_b", d.steps_b));
        json_end(&j, '}');
    } else {
        printf("%s: %s\n", iron_ledger_change_name(d.change), d.sentence);
    }
    if (differs) {
        err->text[0] = '\0'; /* the line above says it */
        status = IRON_E_MISMATCH;
    }
done:
    iron_ledgers_close(runs[0]);
    iron_ledgers_close(runs[1]);
    return status;
}

/* Tracing. */

/* An output as a stream; keeps the first error. */
typedef struct output_stream {
    iron_output *to;
    iron_status status;
    iron_error error;
} output_stream;

static ssize_t write_output(void *context, const char *bytes, size_t count) {
    output_stream *s = context;

    if (s->status == IRON_OK)
        s->status = iron_output_write(s->to, bytes, count, &s->error);
    return s->status == IRON_OK ? (ssize_t)count : 0;
}

typedef struct traced {
    const iron_ledgers *ledgers;
    iron_ledger_trace *trace;
    iron_ledger_trace_summary sums;
    const char *in; /* the first of the dataset's paths */
} traced;

static void write_csv(FILE *f, const traced *t) {
    const uint64_t *places = iron_ledger_trace_places(t->trace);
    bool has_positions = t->sums.cut.kind == IRON_BAG_CUT_SAMPLE;
    iron_ledger_record r = {.struct_size = sizeof r};

    fprintf(f, "step,rank,micro,epoch,row,sample,position\n");
    for (uint64_t k = 0; k < iron_ledgers_record_count(t->ledgers); k++) {
        if (iron_ledgers_record(t->ledgers, k, &r, NULL) != IRON_OK)
            break;
        for (uint64_t row = 0; row < r.bag.samples; row++) {
            uint64_t sample = *places++;

            fprintf(f, "%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",", r.step,
                    r.rank, r.micro, r.epoch, row);
            if (sample == UINT64_MAX)
                fprintf(f, ",\n");
            else if (has_positions)
                fprintf(f, "%" PRIu64 ",%" PRIu64 "\n", sample, sample * t->sums.cut.value);
            else
                fprintf(f, "%" PRIu64 ",\n", sample);
        }
    }
}

#define PLOT_COLUMNS 720u
#define PLOT_HEIGHT  160u

/* The picture: the dataset from left to right, in each column the shares of its samples that were
 * seen never, once and more often. */
static void write_svg(FILE *f, const traced *t) {
    static const char *const names[] = {"never seen", "seen once", "seen more than once"};
    const uint32_t *seen = iron_ledger_trace_seen(t->trace);
    uint64_t samples = t->sums.dataset_samples;
    unsigned columns = samples < PLOT_COLUMNS ? (unsigned)samples : PLOT_COLUMNS;

    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 280\" role=\"img\" "
               "font-family=\"system-ui, sans-serif\" font-size=\"13\">\n"
               "<title>How often each part of the dataset was seen</title>\n<style>\n"
               "rect{shape-rendering:crispEdges}.page{fill:#fff}.ink{fill:#1b2733}"
               ".soft{fill:#5a6774}.s0{fill:#c9d1d9}.s1{fill:#2f7ec2}"
               ".s2{fill:#d1443b}\n@media (prefers-color-scheme:dark){.page{fill:#12181f}"
               ".ink{fill:#e6edf3}.soft{fill:#9fb0c0}.s0{fill:#3a4653}.s1{fill:#58a6e8}"
               ".s2{fill:#f0766d}}\n</style>\n"
               "<rect class=\"page\" width=\"800\" height=\"280\"/>\n"
               "<text class=\"ink\" x=\"40\" y=\"28\" font-size=\"16\" font-weight=\"600\">"
               "How often each part of the dataset was seen</text>\n");
    for (unsigned k = 0; k < 3; k++)
        fprintf(f,
                "<rect class=\"s%u\" x=\"%u\" y=\"42\" width=\"12\" height=\"12\"/>"
                "<text class=\"ink\" x=\"%u\" y=\"53\">%s</text>\n",
                k, 40 + 130 * k, 58 + 130 * k, names[k]);
    for (unsigned c = 0; c < columns; c++) {
        uint64_t first = samples * c / columns, end = samples * (c + 1) / columns, count[3] = {0};
        double y = 70, width = (double)PLOT_COLUMNS / columns;

        for (uint64_t k = first; k < end; k++)
            count[seen[k] < 2 ? seen[k] : 2]++;
        for (unsigned k = 3; k-- > 0;) {
            double height = (double)PLOT_HEIGHT * (double)count[k] / (double)(end - first);

            if (count[k] > 0)
                fprintf(f,
                        "<rect class=\"s%u\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
                        "height=\"%.2f\"/>\n",
                        k, 40 + width * c, y, width + .3, height);
            y += height;
        }
    }
    fprintf(f,
            "<text class=\"soft\" x=\"40\" y=\"252\">sample 0</text>"
            "<text class=\"soft\" x=\"760\" y=\"252\" text-anchor=\"end\">sample %" PRIu64
            "</text>\n<text class=\"soft\" x=\"400\" y=\"252\" text-anchor=\"middle\">"
            "in the order of the dataset</text>\n</svg>\n",
            samples > 0 ? samples - 1 : 0);
}

static iron_status write_report(const char *path, void (*write)(FILE *, const traced *),
                                const traced *t, iron_error *err) {
    output_stream s = {.status = IRON_OK};
    FILE *file;

    IRON_TRY(iron_output_open(path, &s.to, err));
    command_guard_file(iron_output_temporary(s.to));
    file = fopencookie(&s, "w", (cookie_io_functions_t){.write = write_output});
    if (file)
        write(file, t);
    if (!file || (fclose(file) != 0 && s.status == IRON_OK))
        s.error = (iron_error){s.status = IRON_E_NOMEM, 0, "out of memory for a report"};
    if (s.status == IRON_OK) {
        s.status = iron_output_commit(s.to, err);
    } else {
        *err = s.error;
        iron_output_abandon(s.to);
    }
    command_guard_file(NULL);
    return s.status;
}

/* Finds the next range of samples that were never seen, starting at `at`. False at the end. */
static bool next_unseen(const traced *t, uint64_t at, uint64_t *first, uint64_t *end) {
    const uint32_t *seen = iron_ledger_trace_seen(t->trace);
    uint64_t samples = t->sums.dataset_samples;

    while (at < samples && seen[at] > 0)
        at++;
    *first = at;
    while (at < samples && seen[at] == 0)
        at++;
    *end = at;
    return *first < samples;
}

#define RANGES_MAX 100u

static void put_escaped(FILE *f, const char *text) {
    for (; *text; text++)
        fprintf(f, strchr("<>&\"", *text) ? "&#%d;" : "%c", *text);
}

/* A file of its own: it loads nothing. */
static void write_html(FILE *f, const traced *t) {
    const iron_ledger_trace_summary *s = &t->sums;
    uint64_t first = 0, end = 0;
    unsigned ranges = 0;

    fprintf(f,
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width\">\n"
            "<title>Coverage of a dataset</title>\n<style>\n"
            ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;"
            "margin:2rem auto;padding:0 1rem;background:#fff;color:#1b2733}svg{width:100%%}"
            "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
            "th,td{padding:.2rem 1.5rem .2rem 0;text-align:right;border-bottom:1px solid #8886}"
            "@media (prefers-color-scheme:dark){body{background:#12181f;color:#e6edf3}}\n"
            "</style>\n<main>\n<h1>Coverage of ");
    put_escaped(f, t->in);
    fprintf(f, "</h1>\n<p>%" PRIu64 " samples in the dataset, %" PRIu64 " recorded",
            s->dataset_samples, s->samples);
    if (s->unknown > 0)
        fprintf(f,
                "; %" PRIu64 " of them are not in the dataset, first at step %" PRIu64
                " on rank %" PRIu32,
                s->unknown, s->first_unknown_step, s->first_unknown_rank);
    if (s->copies > 0)
        fprintf(f, "; %" PRIu64 " samples of the dataset are equal to an earlier one", s->copies);
    fprintf(f, ".</p>\n");
    write_svg(f, t);
    fprintf(f, "<h2>How often</h2>\n<table>\n<tr><th scope=\"col\">seen<th scope=\"col\">samples"
               "<th scope=\"col\">share\n");
    for (unsigned k = 0; k < IRON_LEDGER_SEEN; k++)
        if (s->seen[k] > 0 || k < 2)
            fprintf(f, "<tr><td>%u%s<td>%" PRIu64 "<td>%.2f %%\n", k,
                    k == IRON_LEDGER_SEEN - 1 ? " or more" : "", s->seen[k],
                    100 * (double)s->seen[k] /
                        (s->dataset_samples ? (double)s->dataset_samples : 1));
    fprintf(f, "</table>\n<h2>Never seen</h2>\n<table>\n<tr><th scope=\"col\">first sample"
               "<th scope=\"col\">last<th scope=\"col\">samples\n");
    for (; ranges < RANGES_MAX && next_unseen(t, end, &first, &end); ranges++)
        fprintf(f, "<tr><td>%" PRIu64 "<td>%" PRIu64 "<td>%" PRIu64 "\n", first, end - 1,
                end - first);
    fprintf(f, "</table>\n<p>%s</p>\n</main>\n</html>\n",
            ranges == 0                         ? "Every sample was seen."
            : next_unseen(t, end, &first, &end) ? "Only the first 100 ranges are listed."
                                                : "These are all ranges.");
}

static void print_trace(const traced *t) {
    const iron_ledger_trace_summary *s = &t->sums;
    double all = s->dataset_samples > 0 ? (double)s->dataset_samples : 1;
    uint64_t first, end;

    printf("%s: %" PRIu64 " samples; recorded: %" PRIu64 "\n", t->in, s->dataset_samples,
           s->samples);
    for (unsigned k = 0; k < IRON_LEDGER_SEEN; k++)
        if (s->seen[k] > 0 || k < 2)
            printf("seen %u time%s%s: %" PRIu64 " samples (%.2f %%)\n", k, plural_s(k),
                   k == IRON_LEDGER_SEEN - 1 ? " or more" : "", s->seen[k],
                   100 * (double)s->seen[k] / all);
    if (s->seen[0] > 0 && s->seen[0] < s->dataset_samples && next_unseen(t, 0, &first, &end))
        printf("never seen, first: samples %" PRIu64 " to %" PRIu64 "\n", first, end - 1);
    if (s->copies > 0)
        printf("%" PRIu64 " samples of the dataset are equal to an earlier one\n", s->copies);
    if (s->unknown > 0)
        printf("%" PRIu64 " recorded samples are not in the dataset, first at step %" PRIu64
               " on rank %" PRIu32 "\n",
               s->unknown, s->first_unknown_step, s->first_unknown_rank);
}

static void trace_json(const traced *t) {
    const iron_ledger_trace_summary *s = &t->sums;
    iron_json_writer j = json_begin('{');
    char cut[IRON_BAG_CUT_TEXT];
    uint64_t first = 0, end = 0;

    iron_bag_cut_format(&s->cut, cut);
    JSON_PUT(&j, TEXT("schema", "iron.ledger-trace/1"), TEXT("cut", cut),
             NUMBER("dataset_samples", s->dataset_samples),
             NUMBER("dataset_tokens", s->dataset_tokens), NUMBER("dataset_copies", s->copies),
             NUMBER("samples", s->samples), NUMBER("unknown", s->unknown),
             NUMBER_IF(s->unknown > 0, "first_unknown_step", s->first_unknown_step),
             NUMBER_IF(s->unknown > 0, "first_unknown_rank", s->first_unknown_rank));
    iron_json_open(&j, "seen", '['); /* samples seen 0, 1, 2, ... times */
    for (unsigned k = 0; k < IRON_LEDGER_SEEN; k++)
        iron_json_number(&j, NULL, s->seen[k]);
    iron_json_close(&j, ']');
    iron_json_open(&j, "never", '['); /* the first ranges */
    for (unsigned k = 0; k < RANGES_MAX && next_unseen(t, end, &first, &end); k++)
        JSON_PUT(&j, OBJECT(NULL, NUMBER("first", first), NUMBER("count", end - first)));
    iron_json_close(&j, ']');
    json_end(&j, '}');
}

static iron_status trace(ledger_options *o, const iron_ledgers *l, iron_error *err) {
    traced t = {.ledgers = l, .sums = {.struct_size = sizeof t.sums}, .in = o->in.texts[0]};
    const struct {
        const char *path;
        void (*write)(FILE *, const traced *);
    } reports[] = {{o->csv, write_csv}, {o->svg, write_svg}, {o->html, write_html}};
    iron_ledger_trace_options options;
    iron_source *source = NULL;
    progress p = progress_start(1);
    iron_status status;

    if (o->in.count == 0)
        return usage(err, "no dataset; name its files or folder with --in");
    IRON_TRY(reading_check(&o->reading, err));
    iron_ledger_trace_options_init(&options);
    options.memory = o->memory;
    options.threads = o->threads;
    options.cut = o->sample ? (iron_bag_cut){IRON_BAG_CUT_SAMPLE, o->sample}
                            : (iron_bag_cut){IRON_BAG_CUT_FORMAT, 0};
    options.progress = progress_update;
    options.context = &p;
    status = reading_open(&o->reading, o->in.texts, o->in.count, &source, err);
    if (status == IRON_OK) {
        p.unit_bytes = iron_dtype_bytes(iron_source_dtype(source));
        status = iron_ledgers_trace(l, source, &options, &t.trace, err);
    }
    progress_clear(&p);
    if (status == IRON_OK)
        status = iron_ledger_trace_summarize(t.trace, &t.sums, err);
    for (size_t k = 0; status == IRON_OK && k < COUNT(reports); k++)
        if (reports[k].path)
            status = write_report(reports[k].path, reports[k].write, &t, err);
    if (status == IRON_OK)
        (o->wants_json ? trace_json : print_trace)(&t);
    iron_ledger_trace_destroy(t.trace);
    iron_source_close(source);
    return status;
}

static iron_status run(void *options, args *a, iron_error *err) {
    static const char *const verbs = "show check diff trace";
    ledger_options *o = options;
    iron_ledgers_summary summary = {.struct_size = sizeof summary};
    const char *verb = a->value_count > 0 ? a->values[0] : "";
    iron_ledgers *ledgers = NULL;
    iron_status status;

    if (!*verb || !has_word(verbs, verb))
        return usage(err, "%s%.40s%s; use iron ledger show, check, diff or trace",
                     *verb ? "unknown verb '" : "no verb", verb, *verb ? "'" : "");
    a->values++;
    a->value_count--;
    if (strcmp(verb, "diff") == 0)
        return diff(o, a, err);
    if (a->value_count == 0)
        return usage(err, "no ledgers; name files, or the folder that has one for each rank");
    status = iron_ledgers_open((const char *const *)a->values, a->value_count, &ledgers, err);
    if (status == IRON_OK)
        status = iron_ledgers_summarize(ledgers, &summary, err);
    if (status == IRON_OK)
        status = strcmp(verb, "show") == 0    ? show(o, ledgers, &summary, err)
                 : strcmp(verb, "trace") == 0 ? trace(o, ledgers, err)
                                              : check(o, ledgers, &summary, err);
    iron_ledgers_close(ledgers);
    return status;
}

const command command_ledger = {
    .name = "ledger",
    .summary = "checks and compares what training runs consumed",
    .synopsis = "show|check|trace LEDGER... | diff A B [OPTIONS]",
    .description =
        "Reads ledgers: records of the tokens that each step of a training run really consumed, "
        "written by the Recorder of iron_tokens, one file for each rank. LEDGER is a file, or a "
        "folder of them.\n\n"
        "show prints what the ledgers contain. check looks for samples and steps that repeat "
        "within an epoch, steps that are missing, ranks that saw the same tokens, steps that were "
        "recorded again with other tokens, and a torn end. diff compares two runs and says where "
        "they part first; A is the reference, and the number of ranks may differ. trace finds each "
        "recorded sample in the dataset (--in), and says how many of its samples were seen never, "
        "once, or more often.",
    .groups = {{NULL, ledger_table, COUNT(ledger_table), 0},
               {"Options for the files of a dataset", reading_options, READING_FORMAT_COUNT,
                offsetof(ledger_options, reading)}},
    .arguments = "show check diff trace",
    .exit_status = "0: nothing found, or equal; 1: a finding, or a difference; 2: error.",
    .environment = "TMPDIR",
    .examples = "iron ledger check run/\n"
                "iron ledger diff run-a/ run-b/ --json\n"
                "iron ledger trace run/ --in shards/ --dtype u16 --sample 2048 --svg seen.svg",
    .options_bytes = sizeof(ledger_options),
    .defaults = &ledger_defaults,
    .run = run,
};
