/* SPDX-License-Identifier: MIT */
/*
 * arena.c: the arena's face to the outside (iron_arena.h): a plan is made, shown, raced, reported,
 * compared. The work is done elsewhere; here the pieces are held together and given back.
 */
#include "arena/arena.h"

#include "arena/compare.h"
#include "arena/compare_old.h"
#include "arena/report_words.h"
#include "core/fail.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void iron_arena_options_init(iron_arena_options *options) {
    *options = (iron_arena_options){.struct_size = sizeof *options, .seed = 1};
}

/* Adds a word to a text. */
static void add_word(char *command, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add_word(char *command, size_t size, const char *format, ...) {
    size_t used = strlen(command);
    va_list list;

    va_start(list, format);
    vsnprintf(command + used, size - used, format, list);
    va_end(list);
}

static void write_command(const iron_arena_options *o, char *command, size_t size) {
    snprintf(command, size, "iron arena");
    for (size_t k = 0; k < o->glob_count; k++)
        add_word(command, size, " '%s'", o->globs[k]);
    if (o->sizes)
        add_word(command, size, " --size '%s'", o->sizes);
    if (o->dtype)
        add_word(command, size, " --dtype %s", o->dtype);
    for (size_t k = 0; k < o->param_count; k++)
        add_word(command, size, " --param '%s'", o->params[k]);
    if (o->memory)
        add_word(command, size, " --memory %s", o->memory);
    if (o->scopes)
        add_word(command, size, " --scope %s", o->scopes);
    if (o->vocab)
        add_word(command, size, " --vocab %u", o->vocab);
    if (o->has_device)
        add_word(command, size, " --device %u", o->device);
    if (o->threads)
        add_word(command, size, " --threads %u", o->threads);
    if (o->streams)
        add_word(command, size, " --streams %u", o->streams);
    add_word(command, size, " --seed %" PRIu64, o->seed);
    if (o->runs)
        add_word(command, size, " --runs %u", o->runs);
    else if (o->seconds > 0)
        add_word(command, size, " --time %g", o->seconds);
}

static iron_status check_options(const iron_arena_options *o, iron_error *err) {
    IRON_FAIL_IF(o->struct_size != sizeof *o, err, IRON_E_ARG,
                 "arena options of %u bytes are of another version; call iron_arena_options_init",
                 o->struct_size);
    IRON_FAIL_IF(o->threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "threads is %u; it must be at most %u", o->threads, IRON_THREADS_MAX);
    IRON_FAIL_IF(o->streams > 32, err, IRON_E_ARG, "streams is %u; it must be 1 to 32", o->streams);
    IRON_FAIL_IF(o->runs > IRON_SAMPLES_MAX, err, IRON_E_ARG, "runs is %u; it must be at most %u",
                 o->runs, IRON_SAMPLES_MAX);
    return IRON_OK;
}

static iron_status fill(iron_arena *a, iron__op_lister op_at, iron_error *err) {
    IRON_TRY(iron__plan_make(&a->plan, &a->options, op_at, err));
    a->racers = calloc(a->plan.row_count + 1, sizeof *a->racers);
    a->kernels = calloc(a->plan.row_count + 1, sizeof *a->kernels);
    a->ceiling_samples = calloc(IRON_CEILINGS_MAX, sizeof *a->ceiling_samples);
    a->report.ceilings = calloc(IRON_CEILINGS_MAX, sizeof *a->report.ceilings);
    a->report.devices = calloc(IRON_PLAN_DEVICES, sizeof *a->report.devices);
    a->report.rows = calloc(a->plan.row_count + 1, sizeof *a->report.rows);
    IRON_FAIL_IF(!a->racers || !a->kernels || !a->ceiling_samples || !a->report.ceilings ||
                     !a->report.devices || !a->report.rows,
                 err, IRON_E_NOMEM, "out of memory: an arena of %zu rows", a->plan.row_count);
    write_command(&a->options, a->report.command, sizeof a->report.command);
    return IRON_OK;
}

iron_status iron__arena_open(const iron_arena_options *options, iron__op_lister op_at,
                             iron_arena **out, iron_error *err) {
    iron_arena *a;
    iron_status status;

    *out = NULL;
    IRON_TRY(check_options(options, err));
    a = calloc(1, sizeof *a);
    if (!a)
        return iron__fail(err, IRON_E_NOMEM, 0, "out of memory: an arena");
    a->options = *options;
    status = fill(a, op_at, err);
    if (status != IRON_OK)
        iron_arena_close(a);
    else
        *out = a;
    return status;
}

iron_status iron_arena_open(const iron_arena_options *options, iron_arena **out, iron_error *err) {
    return iron__arena_open(options, iron__op_at, out, err);
}

void iron_arena_close(iron_arena *arena) {
    if (!arena)
        return;
    if (arena->racers)
        iron__racers_deinit(arena->racers, arena->plan.row_count);
    for (size_t k = 0; arena->ceiling_samples && k < IRON_CEILINGS_MAX; k++)
        free(arena->ceiling_samples[k].ms);
    free(arena->ceiling_samples);
    free(arena->racers);
    free(arena->kernels);
    free(arena->report.ceilings);
    free(arena->report.devices);
    free(arena->report.rows);
    iron__plan_deinit(&arena->plan);
    free(arena);
}

size_t iron_arena_count(const iron_arena *arena) { return arena->plan.row_count; }

iron_status iron_arena_at(const iron_arena *arena, size_t index, iron_arena_row *row,
                          iron_error *err) {
    const iron__plan_row *r;
    const iron__plan_case *c;

    IRON_FAIL_IF(index >= arena->plan.row_count, err, IRON_E_ARG, "row %zu is none; there are %zu",
                 index, arena->plan.row_count);
    IRON_FAIL_IF(row->struct_size != sizeof *row, err, IRON_E_ARG,
                 "an arena row of %u bytes is of another version", row->struct_size);
    r = &arena->plan.rows[index];
    c = &arena->plan.cases[r->case_index];
    *row = (iron_arena_row){.struct_size = sizeof *row,
                            .name = r->name,
                            .memory = iron__plan_memory_name(r),
                            .device = arena->plan.devices[r->device_index].info.name,
                            .size = c->size,
                            .size_name = c->size_name,
                            .dtype = iron__element_name(c->c.element),
                            .idea = r->contender.idea,
                            .params = c->axes.text,
                            .is_peer = r->peer != NULL,
                            .reason = r->reason,
                            .bytes = c->c.op->useful_bytes(&c->c)};
    return IRON_OK;
}

const char *iron_arena_remark(const iron_arena *arena, size_t index) {
    return index < arena->plan.remark_count ? arena->plan.remarks[index] : NULL;
}

/* "histogram.cpu.naive, data zipf" */
static iron__words name_of(const iron__report_row *row) {
    iron__params_line axes = iron__params_axes(&row->params);
    iron__words w;

    snprintf(w.text, sizeof w.text, "%s.%s.%s%s%.200s", row->op, row->backend, row->contender,
             axes.text[0] ? ", " : "", axes.text);
    return w;
}

/* What the rows say of the race as a whole. */
static iron_status verdict(const iron_arena *a, iron_error *err) {
    const iron__report_row *wrong = NULL, *failed = NULL;
    size_t wrong_count = 0, failed_count = 0, ok_count = 0;

    for (size_t k = 0; k < a->report.row_count; k++) {
        const iron__report_row *r = &a->report.rows[k];

        ok_count += r->status == IRON_ROW_OK;
        wrong_count += r->status == IRON_ROW_WRONG;
        failed_count += r->status == IRON_ROW_FAILED;
        if (r->status == IRON_ROW_WRONG && !wrong)
            wrong = r;
        if (r->status == IRON_ROW_FAILED && !failed)
            failed = r;
    }
    IRON_FAIL_IF(wrong, err, IRON_E_MISMATCH, "%zu wrong: %.100s: %.120s", wrong_count,
                 name_of(wrong).text, wrong->reason);
    IRON_FAIL_IF(failed, err, IRON_E_STATE, "%zu failed: %.100s: %.120s", failed_count,
                 name_of(failed).text, failed->reason);
    IRON_FAIL_IF(ok_count == 0, err, IRON_E_UNSUPPORTED, "nobody could race: %.180s",
                 a->report.row_count ? a->report.rows[0].reason : "no row was chosen");
    return IRON_OK;
}

iron_status iron_arena_race(iron_arena *arena, iron_error *err) {
    IRON_FAIL_IF(arena->has_begun, err, IRON_E_STATE, "this arena has raced; open another");
    arena->has_begun = true;
    IRON_TRY(iron__arena_run(arena, err));
    IRON_TRY(iron__arena_conclude(arena, err));
    arena->has_raced = true;
    return verdict(arena, err);
}

void iron_arena_print(const iron_arena *arena, int is_terminal, int columns) {
    iron__report_table(&arena->report, stdout, is_terminal != 0, columns);
}

static void write_report(const iron__report *report, iron_report_format format, FILE *to) {
    switch (format) {
    case IRON_REPORT_TABLE:
        iron__report_table(report, to, false, 100);
        break;
    case IRON_REPORT_MARKDOWN:
        iron__report_markdown(report, to);
        break;
    case IRON_REPORT_CSV:
        iron__report_csv(report, to);
        break;
    case IRON_REPORT_JSON:
        iron__report_json(report, to);
        break;
    case IRON_REPORT_HTML:
        iron__report_html(report, to);
        break;
    }
}

/* The whole report in memory first: a file is written whole or not at all. */
static iron_status put_file(const char *path, const char *text, size_t bytes, iron_error *err) {
    iron_output *output = NULL;
    iron_status status;

    IRON_TRY(iron_output_open(path, &output, err));
    status = iron_output_write(output, text, bytes, err);
    if (status == IRON_OK)
        return iron_output_commit(output, err);
    iron_output_abandon(output);
    return status;
}

/* A document whose text is complete; "-" is standard output. */
static iron_status put(const char *path, FILE *to, char **text, const size_t *bytes,
                       iron_error *err) {
    iron_status status = IRON_OK;

    if (fclose(to) != 0)
        status = iron__fail(err, IRON_E_NOMEM, 0, "out of memory: a report");
    else if (strcmp(path, "-") == 0)
        fwrite(*text, 1, *bytes, stdout); /* whether it got there is for the caller to ask */
    else
        status = put_file(path, *text, *bytes, err);
    free(*text);
    return status;
}

iron_status iron_arena_report(const iron_arena *arena, iron_report_format format, const char *path,
                              iron_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to;

    IRON_FAIL_IF(!arena->has_raced, err, IRON_E_STATE, "there is no report before the race");
    to = open_memstream(&text, &bytes);
    IRON_FAIL_IF(!to, err, IRON_E_NOMEM, "out of memory: a report");
    write_report(&arena->report, format, to);
    return put(path, to, &text, &bytes, err);
}

iron_status iron_arena_registry(const char *path, iron_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);

    IRON_FAIL_IF(!to, err, IRON_E_NOMEM, "out of memory: the registry");
    iron__registry_json(to);
    return put(path, to, &text, &bytes, err);
}

iron_status iron_arena_compare_check(const char *path, iron_error *err) {
    iron__old_report old;

    IRON_TRY(iron__old_report_read(path, &old, err));
    iron__old_report_deinit(&old);
    return IRON_OK;
}

iron_status iron_arena_compare(const iron_arena *arena, const char *path, double threshold_percent,
                               iron_error *err) {
    iron__comparison c;
    size_t slower;

    IRON_TRY(iron__compare(path, &arena->report, threshold_percent, &c, err));
    iron__comparison_print(&c, stdout);
    slower = c.slower_count;
    iron__comparison_deinit(&c);
    IRON_FAIL_IF(slower > 0, err, IRON_E_MISMATCH, "%zu slower than in %.120s", slower, path);
    return IRON_OK;
}

int iron_arena_has_raced(const iron_arena *arena) { return arena->has_raced; }
