/* SPDX-License-Identifier: MIT */
/*
 * compare.c: compares a race with the JSON report of an earlier one: what became slower, faster,
 * broke, is new or gone.
 *
 * Two runs of the same program never have the same medians. A row is called slower or faster only
 * if its median moved by more than the threshold, and the two medians' intervals, widened as below,
 * do not overlap; of fewer than six samples, which have no interval, all must lie apart. If only
 * the first holds it is unclear, and a longer race would tell.
 *
 * The interval of a median says what other samples of the same minutes would have given. It does
 * not know that the clock rose or another process started in between, so both intervals are widened
 * by the drift within each run: its samples, in time order, are cut into up to five blocks of three
 * or more, and half of the spread of the blocks' medians is added on either side. Runs of fewer
 * than three samples decide nothing.
 *
 * New rows are matched with old ones in order, each with at most one; what is left over on either
 * side is new or gone.
 *
 * Everything that is read from the old report is checked when it is read: rows are objects with
 * names, statuses are known words, samples are numbers that can be times, and not too many. Unknown
 * members are ignored: a later report of the same schema may have more. Control characters in texts
 * are replaced, since they will be printed to a terminal.
 */
#include "arena/arena_internal.h"
#include "core/array.h"
#include "core/fail.h"
#include "core/files.h"

#define SCHEMA "iron.arena/1"

/* More than any race has, and few enough to bound the work that a malicious file causes. */
#define ROWS_MAX 100000u

#define WHAT_TO_DO "name a file that iron arena --json wrote"

#define BLOCKS_MAX   5u
#define BLOCK_MIN    3u
#define DECIDING_MIN 3u

typedef enum change_kind {
    CHANGE_SAME,
    CHANGE_FASTER,
    CHANGE_SLOWER,
    CHANGE_UNCLEAR, /* beyond the threshold, but within the variation of the runs */
    CHANGE_BROKEN,  /* was ok, is wrong or failed */
    CHANGE_NEW,     /* only in the new report */
    CHANGE_GONE,    /* only in the old report */
    CHANGES
} change_kind;

/* Samples in ms, and where their median lies, widened by the drift. */
typedef struct span {
    size_t count; /* 0: not measured */
    double median, low, high;
} span;

typedef struct comparison_row {
    const iron__report_row *of; /* of the new report; of the old one if it is gone */
    iron__scope scope;          /* IRON_SCOPES: the row as a whole */
    change_kind change;
    span old, new;
    double ratio;     /* of the medians, new / old; 0: unknown */
    char reason[256]; /* details of broken, new or gone; "" */
} comparison_row;

typedef struct old_row {
    iron__report_row row; /* what identifies it, and its status */
    /* UINT64_MAX: the report does not say, and any number matches */
    uint64_t nodes, threads, streams;
    const iron__json *samples[IRON_SCOPES]; /* arrays of 1 ... IRON_SAMPLES_MAX numbers; or NULL */
    bool is_matched;
} old_row;

typedef struct old_report {
    const iron__json *root;
    old_row *rows;
    size_t row_count;
} old_report;

typedef struct comparison {
    char path[256];
    double threshold_percent;
    old_report old;
    comparison_row *rows; /* owned; in the order of the new report, then those that are gone */
    size_t row_count, row_room;
    size_t counts[CHANGES];
    size_t slower_count; /* slower and broken: what makes a comparison fail */
} comparison;

/* Copies what fits, with control characters replaced. */
static void copy_text(char *to, size_t size, const char *from) {
    snprintf(to, size, "%s", from);
    for (; *to; to++)
        if ((unsigned char)*to < 0x20 || *to == 0x7F)
            *to = '?';
}

/* Reads the texts that identify a row. Returns the member that is missing or invalid, or NULL.
 * Optional texts may be absent or null. */
static const char *read_key(const iron__json *row, iron__report_row *out) {
    const struct {
        const char *name;
        char *to;
        size_t size;
        bool is_needed;
    } texts[] = {{"op", out->op, sizeof out->op, true},
                 {"contender", out->contender, sizeof out->contender, true},
                 {"backend", out->backend, sizeof out->backend, true},
                 {"memory", out->memory, sizeof out->memory, false},
                 {"device", out->device, sizeof out->device, false},
                 {"size", out->size, sizeof out->size, false},
                 {"dtype", out->dtype, sizeof out->dtype, false}};

    for (size_t k = 0; k < COUNT(texts); k++) {
        const iron__json *value = iron__json_member(row, texts[k].name);
        const char *text = iron__json_get_text(value);

        if ((value && !text && value->kind != IRON_JSON_NULL) ||
            (texts[k].is_needed && !(text && text[0])))
            return texts[k].name;
        copy_text(texts[k].to, texts[k].size, text ? text : "");
    }
    return NULL;
}

static bool read_samples(const iron__json *row, old_row *out) {
    const iron__json *scopes = iron__json_member(row, "scopes");
    double ms = 0;

    for (int k = 0; k < IRON_SCOPES; k++) {
        const iron__json *scope = iron__json_member(scopes, iron__scope_name((iron__scope)k));
        const iron__json *samples = iron__json_member(scope, "samples");

        if (samples && (samples->kind != IRON_JSON_ARRAY || samples->count > IRON_SAMPLES_MAX))
            return false;
        for (size_t n = 0; samples && n < samples->count; n++)
            if (!iron__json_get_number(&samples->items[n], &ms) || ms < 0)
                return false;
        out->samples[k] = iron__json_length(samples) > 0 ? samples : NULL;
    }
    return true;
}

/* Reads a number of the params, or `otherwise` if it is absent; false if it is not a number. */
static bool read_param(const iron__json *row, const char *name, uint64_t otherwise, uint64_t *out) {
    const iron__json *value = iron__json_member(iron__json_member(row, "params"), name);

    *out = otherwise;
    return !value || value->kind == IRON_JSON_NULL || iron__json_get_whole(value, UINT32_MAX, out);
}

/* Reads the parameters of the case, words or numbers; false if one is invalid, or there are too
 * many. Whether one was an axis does not matter: it is only compared and printed. */
static bool read_case_params(const iron__json *row, iron__params *out) {
    /* how the row was raced, and vocab, which has its own field */
    static const char *const others[] = {"vocab", "nodes", "threads", "streams", "size_name"};
    const iron__json *params = iron__json_member(row, "params");
    size_t count = params && params->kind == IRON_JSON_OBJECT ? params->count : 0;

    for (size_t k = 0; k < count; k++) {
        const iron__json *value = &params->items[k];
        const char *word = iron__json_get_text(value);
        iron__param *to = &out->list[out->count];
        bool flag = false, is_other = value->kind == IRON_JSON_NULL;

        for (size_t n = 0; n < COUNT(others); n++)
            is_other = is_other || strcmp(others[n], value->name) == 0;
        if (is_other)
            continue;
        if (iron__json_get_bool(value, &flag))
            word = flag ? "true" : "false";
        if (out->count == IRON_PARAMS_MAX ||
            (word ? !word[0] : !iron__json_get_number(value, &to->number)))
            return false;
        copy_text(to->name, sizeof to->name, value->name);
        copy_text(to->word, sizeof to->word, word ? word : "");
        out->count++;
    }
    return true;
}

/* Returns the member that is missing or invalid, or NULL. */
static const char *read_row(const iron__json *row, old_row *out) {
    const char *wrong = read_key(row, &out->row);
    const char *status = iron__json_get_text(iron__json_member(row, "status"));
    iron__row_status *s = &out->row.status;
    uint64_t vocab = 0;

    if (wrong)
        return wrong;
    while (status && *s < IRON_ROW_STATUSES && strcmp(status, iron__row_status_name(*s)) != 0)
        ++*s;
    if (!status || *s == IRON_ROW_STATUSES)
        return "status";
    if (!read_param(row, "vocab", 0, &vocab))
        return "params.vocab";
    if (!read_param(row, "nodes", UINT64_MAX, &out->nodes))
        return "params.nodes";
    if (!read_param(row, "threads", UINT64_MAX, &out->threads))
        return "params.threads";
    if (!read_param(row, "streams", UINT64_MAX, &out->streams))
        return "params.streams";
    if (!read_case_params(row, &out->row.params))
        return "params";
    out->row.vocab = (uint32_t)vocab;
    return read_samples(row, out) ? NULL : "scopes";
}

static iron_status read_rows(const char *path, const iron__json *results, old_report *out,
                             iron_error *err) {
    size_t count = iron__json_length(results);

    IRON_FAIL_IF(!results || results->kind != IRON_JSON_ARRAY || count > ROWS_MAX, err,
                 IRON_E_FORMAT, "%s: results must be an array of at most %u rows; " WHAT_TO_DO,
                 path, ROWS_MAX);
    out->rows = calloc(count + 1, sizeof *out->rows);
    IRON_FAIL_IF(!out->rows, err, IRON_E_NOMEM, "out of memory for %zu rows of %s", count, path);
    for (; out->row_count < count; out->row_count++) {
        const char *wrong = read_row(&results->items[out->row_count], &out->rows[out->row_count]);

        IRON_FAIL_IF(wrong, err, IRON_E_FORMAT,
                     "%s: results[%zu].%s is missing or invalid; " WHAT_TO_DO, path, out->row_count,
                     wrong);
    }
    return IRON_OK;
}

static void old_report_deinit(old_report *report) {
    free(report->rows);
    iron__json_destroy(iron__allocator_default(), report->root);
    *report = (old_report){0};
}

static iron_status old_report_read(const char *path, old_report *out, iron_error *err) {
    iron_error why = {0};
    const char *schema;
    char shown[40], *text = NULL;
    size_t length = 0;
    iron_status status;

    *out = (old_report){0};
    status =
        iron__small_file_read(path, "report", IRON_JSON_BYTES_MAX, false, &text, &length, &why);
    if (status != IRON_OK)
        return iron__fail(err, status, why.native, "%s; " WHAT_TO_DO, why.text);
    status = iron__json_parse(text, length, iron__allocator_default(), &out->root, &why);
    free(text);
    if (status != IRON_OK)
        return iron__fail(err, status, 0, "%s, %s; " WHAT_TO_DO, path, why.text);
    schema = iron__json_get_text(iron__json_member(out->root, "schema"));
    copy_text(shown, sizeof shown, schema ? schema : "");
    if (!schema)
        status = iron__fail(err, IRON_E_FORMAT, 0,
                            "%s has no schema, so it is not a report of a race; " WHAT_TO_DO, path);
    else if (strcmp(schema, SCHEMA) != 0)
        status = iron__fail(err, IRON_E_FORMAT, 0,
                            "%s has the schema '%s', but this iron reads %s; race again with this "
                            "iron",
                            path, shown, SCHEMA);
    else
        status = read_rows(path, iron__json_member(out->root, "results"), out, err);
    if (status != IRON_OK)
        old_report_deinit(out);
    return status;
}

/* The interval, wider by half of the spread of the medians of blocks of samples, in time order. */
static span span_of(const double *ms, size_t count) {
    iron__statistics s = iron__statistics_of(ms, count);
    size_t blocks = count / BLOCK_MIN < BLOCKS_MAX ? count / BLOCK_MIN : BLOCKS_MAX;
    double low = 0, high = 0, drift;
    bool has_interval = s.coverage > 0;

    for (size_t b = 0; b < blocks; b++) {
        size_t from = b * count / blocks, to = (b + 1) * count / blocks;
        double median = iron__statistics_of(ms + from, to - from).median;

        low = b == 0 || median < low ? median : low;
        high = b == 0 || median > high ? median : high;
    }
    drift = (high - low) / 2;
    return (span){count, s.median, (has_interval ? s.low : s.min) - drift,
                  (has_interval ? s.high : s.max) + drift};
}

static iron_status add_change(comparison *out, const comparison_row *row, iron_error *err) {
    IRON_FAIL_IF(!IRON_ARRAY_GROW(&out->rows, out->row_count, &out->row_room), err, IRON_E_NOMEM,
                 "out of memory for a comparison of %zu rows", out->row_count + 1);
    out->rows[out->row_count++] = *row;
    out->counts[row->change]++;
    out->slower_count += row->change == CHANGE_SLOWER || row->change == CHANGE_BROKEN;
    return IRON_OK;
}

/* Adds a change of the row as a whole. */
static iron_status add_whole(comparison *out, const iron__report_row *of, change_kind change,
                             const char *what, const char *reason, iron_error *err) {
    comparison_row row = {.of = of, .scope = IRON_SCOPES, .change = change};

    snprintf(row.reason, sizeof row.reason, "%s%s", what, reason);
    return add_change(out, &row, err);
}

/* Adds a row that is only in the new report, or ok only in the old one, with its status. */
static iron_status add_now(comparison *out, const iron__report_row *now, change_kind change,
                           iron_error *err) {
    char what[24] = "";

    if (now->status != IRON_ROW_OK)
        snprintf(what, sizeof what, "%s: ", iron__row_status_name(now->status));
    return add_whole(out, now, change, what, now->reason, err);
}

/* Compares one scope of a row that is ok in both reports; with samples in only one of them, it is
 * new or gone. */
static iron_status compare_scope(comparison *out, const iron__report_row *now, iron__scope scope,
                                 const iron__json *then, iron_error *err) {
    const iron__samples *samples =
        now->scopes[scope].is_measured ? now->scopes[scope].samples : NULL;
    comparison_row row = {.of = now, .scope = scope, .change = CHANGE_NEW};
    double ms[IRON_SAMPLES_MAX] = {0}, threshold = out->threshold_percent / 100;

    for (size_t k = 0; k < iron__json_length(then); k++)
        iron__json_get_number(&then->items[k], &ms[k]);
    if (then)
        row.old = span_of(ms, iron__json_length(then));
    if (samples && samples->count > 0)
        row.new = span_of(samples->ms, samples->count);
    if (row.old.count == 0 && row.new.count == 0)
        return IRON_OK;
    if (row.old.count > 0 && row.new.count > 0) {
        bool is_slower = row.new.median > row.old.median *(1 + threshold);
        bool is_faster = row.old.median > row.new.median *(1 + threshold);
        bool is_sure = row.old.count >= DECIDING_MIN && row.new.count >= DECIDING_MIN;

        row.change = !is_slower && !is_faster                             ? CHANGE_SAME
                     : is_sure && is_slower && row.new.low > row.old.high ? CHANGE_SLOWER
                     : is_sure &&is_faster &&row.new.high < row.old.low   ? CHANGE_FASTER
                                                                          : CHANGE_UNCLEAR;
        row.ratio = row.old.median > 0 ? row.new.median / row.old.median : 0;
    } else if (row.old.count > 0) {
        row.change = CHANGE_GONE;
    }
    return add_change(out, &row, err);
}

/* A row that is not ok in both reports is compared as a whole; one that is ok in neither is
 * ignored. */
static iron_status compare_row(comparison *out, const old_row *old, const iron__report_row *now,
                               iron_error *err) {
    bool was_ok = old->row.status == IRON_ROW_OK, is_ok = now->status == IRON_ROW_OK;

    if (was_ok && is_ok) {
        IRON_TRY(compare_scope(out, now, IRON_SCOPE_KERNEL, old->samples[IRON_SCOPE_KERNEL], err));
        return compare_scope(out, now, IRON_SCOPE_END_TO_END, old->samples[IRON_SCOPE_END_TO_END],
                             err);
    }
    if (was_ok)
        return add_now(out, now, now->status == IRON_ROW_SKIPPED ? CHANGE_GONE : CHANGE_BROKEN,
                       err);
    if (is_ok)
        return add_whole(out, now, CHANGE_NEW, "it was ", iron__row_status_name(old->row.status),
                         err);
    return IRON_OK;
}

static bool is_same_or_unknown(uint64_t then, uint32_t now) {
    return then == now || then == UINT64_MAX;
}

static iron_status compare_rows(comparison *out, const iron__report *now, iron_error *err) {
    old_row *end = out->old.rows + out->old.row_count, *then;

    for (const iron__report_row *row = now->rows; row < now->rows + now->row_count; row++) {
        for (then = out->old.rows; then < end; then++)
            if (!then->is_matched && iron__rows_are_grouped(&then->row, row) &&
                strcmp(then->row.contender, row->contender) == 0 &&
                strcmp(then->row.backend, row->backend) == 0 &&
                strcmp(then->row.memory, row->memory) == 0 &&
                strcmp(then->row.device, row->device) == 0 &&
                is_same_or_unknown(then->nodes, row->nodes) &&
                is_same_or_unknown(then->threads, row->threads) &&
                is_same_or_unknown(then->streams, row->streams))
                break;
        if (then < end)
            then->is_matched = true;
        IRON_TRY(then < end ? compare_row(out, then, row, err)
                            : add_now(out, row, CHANGE_NEW, err));
    }
    for (then = out->old.rows; then < end; then++)
        if (!then->is_matched)
            IRON_TRY(add_whole(out, &then->row, CHANGE_GONE, "it was ",
                               iron__row_status_name(then->row.status), err));
    return IRON_OK;
}

static void comparison_deinit(comparison *c) {
    old_report_deinit(&c->old);
    free(c->rows);
    *c = (comparison){0};
}

/* Reads the report at `path` and compares `now`, which must outlive *out, with it, kernel and
 * end_to_end. On failure *out is empty. */
static iron_status compare_reports(const char *path, const iron__report *now,
                                   double threshold_percent, comparison *out, iron_error *err) {
    iron_status status;

    *out = (comparison){.threshold_percent = threshold_percent};
    snprintf(out->path, sizeof out->path, "%.*s", (int)sizeof out->path - 1, path);
    IRON_FAIL_IF(!(threshold_percent >= 0 && threshold_percent <= 1e6), err, IRON_E_ARG,
                 "the threshold is %g %%; it must be 0 or more", threshold_percent);
    IRON_TRY(old_report_read(path, &out->old, err));
    status = compare_rows(out, now, err);
    if (status != IRON_OK)
        comparison_deinit(out);
    return status;
}

static const char *change_name(change_kind change) {
    static const char *const names[CHANGES] = {"same",   "faster", "slower", "unclear",
                                               "broken", "new",    "gone"};

    return change < CHANGES ? names[change] : "";
}

/* What a row is called: "atax.cpu.naive host 4096x4096 f32 on ..." */
typedef struct row_key {
    char text[1024];
} row_key;

static row_key key_of(const iron__report_row *row) {
    row_key key;
    size_t room = sizeof key.text;

    snprintf(key.text, room, "%s.%s.%s", row->op, row->backend, row->contender);
    if (row->memory[0])
        iron__append(key.text, room, " %s", row->memory);
    if (row->size[0])
        iron__append(key.text, room, " %s", row->size);
    if (row->dtype[0])
        iron__append(key.text, room, " %s", row->dtype);
    if (row->vocab)
        iron__append(key.text, room, " vocab %u", row->vocab);
    for (size_t k = 0; k < row->params.count; k++)
        iron__append(key.text, room, "%s%s %s", k > 0 || row->vocab ? ", " : " ",
                     row->params.list[k].name, iron__param_text(&row->params.list[k]).text);
    if (row->device[0])
        iron__append(key.text, room, " on %s", row->device);
    return key;
}

/* One line per row and scope, each median with its number of samples, then how many of each change
 * there are:
 *
 *     slower   atax.cpu.naive 4096x4096 f32, kernel: 10.12 ms of 30 -> 11.20 ms of 20, +10.7 %
 *     broken   atax.cuda.tree pinned 4096x4096 f32 on NVIDIA H200: wrong: kernel: y[3] is 0
 *     against old.json: 41 same, 1 slower, 1 broken (threshold 5 %) */
static void comparison_print(const comparison *c, FILE *to) {
    const char *between = " ";

    for (const comparison_row *row = c->rows; row < c->rows + c->row_count; row++) {
        fprintf(to, "%-8s %s", change_name(row->change), key_of(row->of).text);
        if (row->scope != IRON_SCOPES) {
            fprintf(to, ", %s:", iron__scope_name(row->scope));
            if (row->change == CHANGE_NEW)
                fprintf(to, " %.4g ms of %zu", row->new.median, row->new.count);
            else if (row->change == CHANGE_GONE)
                fprintf(to, " was %.4g ms of %zu", row->old.median, row->old.count);
            else
                fprintf(to, " %.4g ms of %zu -> %.4g ms of %zu", row->old.median, row->old.count,
                        row->new.median, row->new.count);
            if (row->ratio > 0)
                fprintf(to, ", %+.1f %%", 100 * (row->ratio - 1));
        }
        if (row->reason[0])
            fprintf(to, ": %s", row->reason);
        fputc('\n', to);
    }
    fprintf(to, "against %s:", c->path);
    for (int k = 0; k < CHANGES; k++)
        if (c->counts[k] > 0) {
            fprintf(to, "%s%zu %s", between, c->counts[k], change_name((change_kind)k));
            between = ", ";
        }
    if (c->row_count == 0)
        fputs(" nothing to compare", to);
    fprintf(to, " (threshold %g %%)\n", c->threshold_percent);
}

iron_status iron_arena_compare_check(const char *path, iron_error *err) {
    old_report old;

    IRON_TRY(old_report_read(path, &old, err));
    old_report_deinit(&old);
    return IRON_OK;
}

static void put_span(iron_json_writer *j, const char *name, const span *of) {
    if (of->count == 0) {
        iron_json_null(j, name);
        return;
    }
    iron_json_open(j, name, '{');
    iron_json_real(j, "median_ms", of->median);
    iron_json_real(j, "low_ms", of->low);
    iron_json_real(j, "high_ms", of->high);
    iron_json_number(j, "count", of->count);
    iron_json_close(j, '}');
}

/* The comparison for the page of the report, as JSON that may stand in HTML; NULL if memory ran
 * out. A row of the new report is named by its place in there, one that is gone by its text. */
static char *comparison_text(const comparison *c, const iron__report *now) {
    iron_json_writer j = {.is_html = true};
    char *text = NULL;
    size_t bytes = 0;

    j.to = open_memstream(&text, &bytes);
    if (!j.to)
        return NULL;
    iron_json_open(&j, NULL, '{');
    iron_json_text(&j, "path", c->path);
    iron_json_real(&j, "threshold_percent", c->threshold_percent);
    iron_json_open(&j, "rows", '[');
    for (const comparison_row *row = c->rows; row < c->rows + c->row_count; row++) {
        bool is_now = row->of >= now->rows && row->of < now->rows + now->row_count;

        iron_json_open(&j, NULL, '{');
        if (is_now)
            iron_json_number(&j, "row", (uint64_t)(row->of - now->rows));
        else
            iron_json_null(&j, "row");
        iron_json_text(&j, "key", key_of(row->of).text);
        iron_json_text(&j, "scope", row->scope == IRON_SCOPES ? "" : iron__scope_name(row->scope));
        iron_json_text(&j, "change", change_name(row->change));
        put_span(&j, "old", &row->old);
        put_span(&j, "new", &row->new);
        iron_json_text(&j, "reason", row->reason);
        iron_json_close(&j, '}');
    }
    iron_json_close(&j, ']');
    iron_json_close(&j, '}');
    iron_json_end(&j);
    if (fclose(j.to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

iron_status iron_arena_compare(iron_arena *arena, const char *path, double threshold_percent,
                               iron_error *err) {
    comparison c;
    size_t slower;

    IRON_TRY(compare_reports(path, &arena->report, threshold_percent, &c, err));
    comparison_print(&c, stdout);
    free(arena->report.comparison);
    arena->report.comparison = comparison_text(&c, &arena->report);
    slower = c.slower_count;
    comparison_deinit(&c);
    IRON_FAIL_IF(!arena->report.comparison, err, IRON_E_NOMEM, "out of memory for a comparison");
    IRON_FAIL_IF(slower > 0, err, IRON_E_MISMATCH, "%zu slower than in %.120s", slower, path);
    return IRON_OK;
}
