/* SPDX-License-Identifier: MIT */
/*
 * compare_old.c: reads the report of an earlier race: JSON of the schema iron.arena/1, as
 * iron__report_json writes it.
 *
 * Everything a comparison will look at is checked here, so that what follows need not: rows are
 * objects with names, statuses are known words, samples are numbers that can be times, and not too
 * many. Members that are not known are passed over: a later report of the same schema may say more.
 * Texts lose their control characters, since they will be printed to a terminal.
 */
#include "arena/compare_old.h"

#include "core/fail.h"
#include "core/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* More than any race has, and few enough that a file made to hurt cannot. */
#define ROWS_MAX 100000u

#define WHAT_TO_DO "name a file that iron arena --json wrote"

static iron_status read_open_file(const char *path, FILE *file, char **text, size_t *length,
                                  iron_error *err) {
    struct stat info;

    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode))
        IRON_FAIL(err, IRON_E_IO, "%s is no regular file; " WHAT_TO_DO, path);
    IRON_FAIL_IF((uint64_t)info.st_size > IRON_JSON_BYTES_MAX, err, IRON_E_FORMAT,
                 "%s has %lld bytes, and reports of at most %zu are read; " WHAT_TO_DO, path,
                 (long long)info.st_size, IRON_JSON_BYTES_MAX);
    *text = malloc((size_t)info.st_size + 1);
    IRON_FAIL_IF(!*text, err, IRON_E_NOMEM, "out of memory: %s has %lld bytes", path,
                 (long long)info.st_size);
    *length = fread(*text, 1, (size_t)info.st_size, file);
    if (ferror(file))
        return iron__fail(err, IRON_E_IO, errno, "%s cannot be read: %s", path, strerror(errno));
    return IRON_OK;
}

/* *text is to be freed, whatever comes. */
static iron_status read_file(const char *path, char **text, size_t *length, iron_error *err) {
    FILE *file = fopen(path, "rb");
    iron_status status;

    if (!file)
        return iron__fail(err, IRON_E_IO, errno, "%s cannot be opened: %s; " WHAT_TO_DO, path,
                          strerror(errno));
    status = read_open_file(path, file, text, length, err);
    fclose(file);
    return status;
}

static iron_status parse_file(const char *path, const iron__json **root, iron_error *err) {
    char *text = NULL;
    size_t length = 0;
    iron_error why = {0};
    iron_status status = read_file(path, &text, &length, err);

    if (status == IRON_OK) {
        status = iron__json_parse(text, length, iron__allocator_default(), root, &why);
        if (status != IRON_OK)
            iron__fail(err, status, 0, "%s, %s; " WHAT_TO_DO, path, why.text);
    }
    free(text);
    return status;
}

/* What fits, with control characters replaced. */
static void copy_text(char *to, size_t size, const char *from) {
    snprintf(to, size, "%s", from);
    for (; *to; to++)
        if ((unsigned char)*to < 0x20 || *to == 0x7F)
            *to = '?';
}

typedef struct key_field {
    const char *name;
    size_t offset, size;
    bool is_needed;
} key_field;

#define KEY_FIELD(name, is_needed)                                                                 \
    { #name, offsetof(iron__row_key, name), sizeof((iron__row_key *)0)->name, is_needed }

static const key_field key_fields[] = {
    KEY_FIELD(op, true),      KEY_FIELD(contender, true), KEY_FIELD(backend, true),
    KEY_FIELD(memory, false), KEY_FIELD(device, false),   KEY_FIELD(size, false),
    KEY_FIELD(dtype, false),
};

/* Why the row is none, or NULL. Absent and null texts are empty ones where that may be. */
static const char *read_key(const iron__json *row, iron__row_key *key) {
    for (size_t k = 0; k < sizeof key_fields / sizeof key_fields[0]; k++) {
        const key_field *f = &key_fields[k];
        const iron__json *value = iron__json_member(row, f->name);
        const char *text = iron__json_text(value);

        if (value && !text && value->kind != IRON_JSON_NULL)
            return f->name;
        if (f->is_needed && !(text && text[0]))
            return f->name;
        copy_text((char *)key + f->offset, f->size, text ? text : "");
    }
    return NULL;
}

static bool read_status(const iron__json *row, iron__row_status *status) {
    const char *text = iron__json_text(iron__json_member(row, "status"));

    for (int k = IRON_ROW_OK; text && k <= IRON_ROW_FAILED; k++)
        if (strcmp(text, iron__row_status_name((iron__row_status)k)) == 0) {
            *status = (iron__row_status)k;
            return true;
        }
    return false;
}

static bool are_samples(const iron__json *samples) {
    double ms = 0;

    if (samples->kind != IRON_JSON_ARRAY || samples->count > IRON_SAMPLES_MAX)
        return false;
    for (uint32_t k = 0; k < samples->count; k++)
        if (!iron__json_number(&samples->items[k], &ms) || ms < 0)
            return false;
    return true;
}

static bool read_samples(const iron__json *row, iron__old_row *out) {
    const iron__json *scopes = iron__json_member(row, "scopes");

    for (int k = 0; k < IRON_SCOPES; k++) {
        const iron__json *scope = iron__json_member(scopes, iron__scope_name((iron__scope)k));
        const iron__json *samples = iron__json_member(scope, "samples");

        if (samples && !are_samples(samples))
            return false;
        out->samples[k] = iron__json_length(samples) > 0 ? samples : NULL;
    }
    return true;
}

/* A number of the params; `otherwise` if it is not there; false if it is something else. */
static bool read_param(const iron__json *row, const char *name, uint64_t otherwise, uint64_t *out) {
    const iron__json *value = iron__json_member(iron__json_member(row, "params"), name);

    *out = otherwise;
    return !value || value->kind == IRON_JSON_NULL || iron__json_whole(value, UINT32_MAX, out);
}

/* Those that say how a row was raced, not over what; and vocab, which has a place of its own. */
static bool is_own_param(const char *name) {
    static const char *const own[] = {"vocab", "nodes", "threads", "streams", "size_name"};

    for (size_t k = 0; k < sizeof own / sizeof own[0]; k++)
        if (strcmp(own[k], name) == 0)
            return true;
    return false;
}

/* A word or a number; false if it is something else. Whether it was an axis does not matter: it is
 * only compared, and told by name. */
static bool read_value(const iron__json *value, iron__param *out) {
    const char *word = iron__json_text(value);
    bool flag = false;

    if (iron__json_flag(value, &flag))
        word = flag ? "true" : "false";
    copy_text(out->name, sizeof out->name, value->name);
    copy_text(out->word, sizeof out->word, word ? word : "");
    return word ? word[0] != '\0' : iron__json_number(value, &out->number);
}

/* The parameters of the case; false if one is none, or they are too many. */
static bool read_case_params(const iron__json *row, iron__params *out) {
    const iron__json *params = iron__json_member(row, "params");
    size_t count = params && params->kind == IRON_JSON_OBJECT ? params->count : 0;

    for (size_t k = 0; k < count; k++) {
        const iron__json *value = &params->items[k];

        if (is_own_param(value->name) || value->kind == IRON_JSON_NULL)
            continue;
        if (out->count == IRON_PARAMS_MAX || !read_value(value, &out->list[out->count]))
            return false;
        out->count++;
    }
    return true;
}

/* Why the row is none, or NULL. */
static const char *read_row(const iron__json *row, iron__old_row *out) {
    const char *wrong = read_key(row, &out->key);
    uint64_t vocab = 0;

    if (wrong)
        return wrong;
    if (!read_status(row, &out->status))
        return "status";
    if (!read_param(row, "vocab", 0, &vocab))
        return "params.vocab";
    if (!read_param(row, "nodes", UINT64_MAX, &out->nodes))
        return "params.nodes";
    if (!read_param(row, "threads", UINT64_MAX, &out->threads))
        return "params.threads";
    if (!read_param(row, "streams", UINT64_MAX, &out->streams))
        return "params.streams";
    if (!read_case_params(row, &out->key.params))
        return "params";
    out->key.vocab = (uint32_t)vocab;
    return read_samples(row, out) ? NULL : "scopes";
}

static iron_status read_rows(const char *path, const iron__json *results, iron__old_report *out,
                             iron_error *err) {
    size_t count = iron__json_length(results);

    IRON_FAIL_IF(!results || results->kind != IRON_JSON_ARRAY || count > ROWS_MAX, err,
                 IRON_E_FORMAT, "%s: results must be an array of at most %u rows; " WHAT_TO_DO,
                 path, ROWS_MAX);
    out->rows = calloc(count + 1, sizeof *out->rows);
    IRON_FAIL_IF(!out->rows, err, IRON_E_NOMEM, "out of memory: %zu rows of %s", count, path);
    for (; out->row_count < count; out->row_count++) {
        const char *wrong = read_row(&results->items[out->row_count], &out->rows[out->row_count]);

        IRON_FAIL_IF(wrong, err, IRON_E_FORMAT,
                     "%s: results[%zu].%s is missing or not what a report has; " WHAT_TO_DO, path,
                     out->row_count, wrong);
    }
    return IRON_OK;
}

static iron_status check_schema(const char *path, const iron__json *root, iron_error *err) {
    const char *schema = iron__json_text(iron__json_member(root, "schema"));
    char shown[40];

    IRON_FAIL_IF(!schema, err, IRON_E_FORMAT,
                 "%s has no schema, so it is no report of a race; " WHAT_TO_DO, path);
    copy_text(shown, sizeof shown, schema);
    IRON_FAIL_IF(strcmp(schema, IRON_ARENA_SCHEMA) != 0, err, IRON_E_FORMAT,
                 "%s has the schema '%s', and this iron reads %s; race again with it", path, shown,
                 IRON_ARENA_SCHEMA);
    return IRON_OK;
}

static iron_status read_report(const char *path, iron__old_report *out, iron_error *err) {
    IRON_TRY(parse_file(path, &out->root, err));
    IRON_TRY(check_schema(path, out->root, err));
    return read_rows(path, iron__json_member(out->root, "results"), out, err);
}

iron_status iron__old_report_read(const char *path, iron__old_report *out, iron_error *err) {
    iron_status status;

    *out = (iron__old_report){0};
    status = read_report(path, out, err);
    if (status != IRON_OK)
        iron__old_report_deinit(out);
    return status;
}

void iron__old_report_deinit(iron__old_report *report) {
    free(report->rows);
    iron__json_destroy(iron__allocator_default(), report->root);
    *report = (iron__old_report){0};
}
