/* SPDX-License-Identifier: MIT */
/*
 * check.c: are the files of a manifest still what they were? First each file is looked for and
 * opened: is it there, of its format and width, with as many tokens? Then the chunks of those that
 * are sound are read again (check_chunks.c), and what came out is put into words.
 */
#include "digest/check.h"

#include "core/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_stdin(const char *path) { return strcmp(path, "-") == 0; }

/* The name beside the manifest; NULL: it was not read from a file, or the name is absolute. */
static char *name_beside(const iron_manifest *m, const char *path) {
    const char *slash = m->origin ? strrchr(m->origin, '/') : NULL;
    char *beside = NULL;

    if (!slash || path[0] == '/' ||
        asprintf(&beside, "%.*s/%s", (int)(slash - m->origin), m->origin, path) < 0)
        return NULL;
    return beside;
}

/* Under its name or beside the manifest; NULL: nowhere. */
static char *find_file(const iron_manifest *m, const char *path) {
    char *beside;

    if (is_stdin(path) || access(path, F_OK) == 0)
        return strdup(path);
    beside = name_beside(m, path);
    if (beside && access(beside, F_OK) == 0)
        return beside;
    free(beside);
    return NULL;
}

static void set_state(iron__check_entry *e, iron_check_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void set_state(iron__check_entry *e, iron_check_state state, const char *format, ...) {
    va_list list;

    e->report.state = state;
    va_start(list, format);
    vsnprintf(e->report.reason, sizeof e->report.reason, format, list);
    va_end(list);
}

/* Is it what it was, as far as opening tells? A pipe tells nothing before it is read. */
static void look_at(const iron__manifest_entry *f, iron__check_entry *e) {
    const char *paths[] = {e->path};
    iron_source_options o = {.struct_size = sizeof o,
                             .dtype = f->dtype,
                             .format = f->format,
                             .paths = paths,
                             .path_count = 1};
    iron_source *source = NULL;
    iron_error why = {0};
    uint64_t tokens;

    e->is_sound = is_stdin(e->path);
    if (e->is_sound)
        return;
    if (iron_source_open(&o, &source, &why) != IRON_OK) {
        set_state(e, why.status == IRON_E_FORMAT ? IRON_CHECK_FAILED : IRON_CHECK_ERROR, "%s",
                  why.text);
        return;
    }
    tokens = iron_source_tokens(source);
    e->is_sound = tokens == f->tokens || tokens == IRON_COUNT_UNKNOWN;
    iron_source_close(source);
    if (e->is_sound)
        return;
    set_state(e, IRON_CHECK_FAILED, "it has %" PRIu64 " tokens, and had %" PRIu64, tokens,
              f->tokens);
    snprintf(e->report.expected, sizeof e->report.expected, "%" PRIu64 " tokens", f->tokens);
    snprintf(e->report.found, sizeof e->report.found, "%" PRIu64 " tokens", tokens);
}

static iron_status look_at_all(iron_check *c, iron_error *err) {
    const iron_manifest *m = c->manifest;

    c->entries = calloc(m->file_count, sizeof *c->entries);
    if (!c->entries)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while checking files");
    for (; c->count < m->file_count; c->count++) {
        iron__check_entry *e = &c->entries[c->count];
        const char *path = m->files[c->count].path;

        e->report.struct_size = sizeof e->report;
        e->report.path = strdup(path);
        if (!e->report.path)
            return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while checking files");
        e->path = find_file(m, path);
        if (e->path)
            look_at(&m->files[c->count], e);
        else
            set_state(e, IRON_CHECK_MISSING, "the file is not there");
    }
    return IRON_OK;
}

static void describe_wrong(const iron_check *c, iron__check_entry *e, size_t index) {
    const iron__manifest_entry *f = &c->manifest->files[index];
    uint64_t end = f->first + f->tokens < e->end_wrong ? f->first + f->tokens : e->end_wrong;
    char more[48] = "";

    if (e->wrong_runs > 1)
        snprintf(more, sizeof more, " and %zu more ranges", e->wrong_runs - 1);
    set_state(e, IRON_CHECK_FAILED, "positions %" PRIu64 " to %" PRIu64 "%s differ",
              f->first > e->first_wrong ? f->first : e->first_wrong, end - 1, more);
}

/* What a sound file's chunks come to. */
static void conclude(const iron_check *c, size_t index) {
    iron__check_entry *e = &c->entries[index];
    const char *neighbour = c->manifest->files[e->neighbour].path;

    if (!e->is_sound)
        return;
    if (e->wrong_runs > 0)
        describe_wrong(c, e, index);
    else if (e->skipped > 0 && !c->options.takes_missing)
        set_state(e, IRON_CHECK_FAILED,
                  "%" PRIu64 " of its chunks cannot be checked without %.100s, or what it was",
                  e->skipped, neighbour);
    else if (e->skipped > 0)
        set_state(e, e->right > 0 ? IRON_CHECK_PARTLY : IRON_CHECK_UNCHECKED,
                  "%" PRIu64 " of its %" PRIu64 " chunks not checked, being shared with %.100s",
                  e->skipped, e->skipped + e->right, neighbour);
}

static iron_status check_options(const iron_manifest *m, const iron_check_options *o,
                                 iron_error *err) {
    IRON_FAIL_IF(!o || o->struct_size != sizeof *o, err, IRON_E_ARG,
                 "iron_check_options.struct_size is not %zu; set it to sizeof", sizeof *o);
    IRON_FAIL_IF(m->parts > 0, err, IRON_E_ARG,
                 "%.100s is part %u of %u; join the parts first (iron merge)",
                 m->origin ? m->origin : "the manifest", m->part, m->parts);
    return IRON_OK;
}

static iron_status run(iron_check *c, iron_error *err) {
    const iron_manifest *m = c->manifest;

    c->chunk_tokens = m->chunk_tokens;
    if (c->chunk_tokens == 0) { /* one chunk is all of it */
        c->chunk_tokens = m->stream_tokens / 4 * 4 + 4;
        c->chunk_tokens = c->chunk_tokens < 1024 ? 1024 : c->chunk_tokens;
    }
    c->chunks = iron__manifest_chunks_of(0, m->stream_tokens, c->chunk_tokens);
    c->damage = (iron_check_file){.struct_size = sizeof c->damage};
    c->damage.path = strdup(m->origin ? m->origin : "the manifest");
    if (!c->damage.path)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while checking files");
    IRON_TRY(look_at_all(c, err));
    IRON_TRY(iron__check_chunks(c, err));
    for (size_t k = 0; k < c->count; k++)
        conclude(c, k);
    return IRON_OK;
}

iron_status iron_check_run(const iron_manifest *manifest, const iron_check_options *options,
                           iron_check **out, iron_error *err) {
    iron_check *c;
    iron_status status;

    *out = NULL;
    IRON_TRY(check_options(manifest, options, err));
    c = calloc(1, sizeof *c);
    if (!c)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while checking files");
    c->manifest = manifest;
    c->options = *options;
    status = run(c, err);
    c->manifest = NULL;
    if (status == IRON_OK)
        *out = c;
    else
        iron_check_destroy(c);
    return status;
}

void iron_check_destroy(iron_check *check) {
    if (!check)
        return;
    free((char *)(uintptr_t)check->damage.path);
    for (size_t k = 0; check->entries && k < check->count; k++) {
        free(check->entries[k].path);
        free((char *)(uintptr_t)check->entries[k].report.path);
    }
    free(check->entries);
    free(check);
}

size_t iron_check_file_count(const iron_check *check) { return check->count + check->is_damaged; }

iron_status iron_check_file_at(const iron_check *check, size_t index, iron_check_file *file,
                               iron_error *err) {
    IRON_FAIL_IF(file->struct_size != sizeof *file, err, IRON_E_ARG,
                 "iron_check_file.struct_size is not %zu; set it to sizeof", sizeof *file);
    IRON_FAIL_IF(index >= iron_check_file_count(check), err, IRON_E_ARG,
                 "file %zu of a check of %zu; they count from 0", index,
                 iron_check_file_count(check));
    *file = index < check->count ? check->entries[index].report : check->damage;
    return IRON_OK;
}
