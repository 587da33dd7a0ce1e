/* SPDX-License-Identifier: MIT */
/*
 * check.c: are the files of a manifest still what they were?
 *
 * First each file is searched for and opened: does it exist, with the same format, width and number
 * of tokens? Then the chunks of those that could be opened are read again.
 *
 * Readable files that follow one another form a run. A chunk that lies in one run can be read again
 * whatever is missing elsewhere, since its words are those of a stream that begins with it; one
 * that reaches out of a run cannot. So each run is one scan, from its first chunk's beginning to
 * its last one's end. A chunk counts for every file that it overlaps. When a run cannot be read,
 * its files are read one by one: those that fail are taken out, and the rest is cut into runs
 * again.
 *
 * Finally the manifest itself: the stream's words A and B and its statistics do not follow from its
 * chunks. But once all of the stream was read and every chunk is right, the scan knows them; a
 * manifest that says otherwise was changed.
 */
#include "digest/digest_internal.h"

#include "core/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct entry {
    char *path;        /* where it was found; NULL: not found */
    bool is_readable;  /* exists with the expected number of tokens; else `report` says why not */
    uint64_t right;    /* chunks that are as they were */
    uint64_t skipped;  /* chunks that it shares with an unreadable file, */
    size_t neighbour;  /* such as this one */
    size_t wrong_runs; /* of consecutive chunks that differ */
    uint64_t first_wrong, end_wrong; /* positions of the first such run */
    uint64_t last_wrong;             /* where the last one ends */
    iron_check_file report;
} entry;

struct iron_check {
    const iron_manifest *manifest; /* only while it runs */
    iron_check_options options;
    uint64_t chunk_tokens; /* for a manifest without chunks: one chunk is all of it */
    uint64_t chunks;
    entry *entries;
    size_t count;
    uint64_t wrong;         /* chunks that differ */
    uint64_t done;          /* tokens, for progress */
    bool is_damaged;        /* the manifest itself, */
    iron_check_file damage; /* and how */
};

/* Finding and opening files. */

static bool is_stdin(const char *path) { return strcmp(path, "-") == 0; }

/* The name relative to the manifest's folder; NULL: it was not read from a file, or the name is
 * absolute. */
static char *name_beside(const iron_manifest *m, const char *path) {
    const char *slash = m->origin ? strrchr(m->origin, '/') : NULL;
    char *beside = NULL;

    if (!slash || path[0] == '/' ||
        asprintf(&beside, "%.*s/%s", (int)(slash - m->origin), m->origin, path) < 0)
        return NULL;
    return beside;
}

/* Under its name or beside the manifest; NULL: not found. */
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

static void set_state(entry *e, iron_check_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void set_state(entry *e, iron_check_state state, const char *format, ...) {
    va_list list;

    e->report.state = state;
    va_start(list, format);
    vsnprintf(e->report.reason, sizeof e->report.reason, format, list);
    va_end(list);
}

/* Opens the file: has it the expected format and number of tokens? Of a pipe that is unknown before
 * it is read. */
static void open_file(const iron__manifest_entry *f, entry *e) {
    const char *paths[] = {e->path};
    iron_source_options o = {.struct_size = sizeof o,
                             .dtype = f->dtype,
                             .format = f->format,
                             .paths = paths,
                             .path_count = 1};
    iron_source *source = NULL;
    iron_error why = {0};
    uint64_t tokens;

    e->is_readable = is_stdin(e->path);
    if (e->is_readable)
        return;
    if (iron_source_open(&o, &source, &why) != IRON_OK) {
        set_state(e, why.status == IRON_E_FORMAT ? IRON_CHECK_FAILED : IRON_CHECK_ERROR, "%s",
                  why.text);
        return;
    }
    tokens = iron_source_tokens(source);
    e->is_readable = tokens == f->tokens || tokens == IRON_COUNT_UNKNOWN;
    iron_source_close(source);
    if (e->is_readable)
        return;
    set_state(e, IRON_CHECK_FAILED, "it has %" PRIu64 " tokens, expected %" PRIu64, tokens,
              f->tokens);
    snprintf(e->report.expected, sizeof e->report.expected, "%" PRIu64 " tokens", f->tokens);
    snprintf(e->report.found, sizeof e->report.found, "%" PRIu64 " tokens", tokens);
}

static iron_status open_files(iron_check *c, iron_error *err) {
    const iron_manifest *m = c->manifest;

    c->entries = calloc(m->file_count, sizeof *c->entries);
    if (!c->entries)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while checking files");
    for (; c->count < m->file_count; c->count++) {
        entry *e = &c->entries[c->count];
        const char *path = m->files[c->count].path;

        e->report.struct_size = sizeof e->report;
        e->report.path = strdup(path);
        if (!e->report.path)
            return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while checking files");
        e->path = find_file(m, path);
        if (e->path)
            open_file(&m->files[c->count], e);
        else
            set_state(e, IRON_CHECK_MISSING, "the file does not exist");
    }
    return IRON_OK;
}

/* Chunks. */

typedef struct run {
    size_t begin, end;    /* files */
    uint64_t first, stop; /* positions */
} run;

static iron__chunk expected_chunk(const iron_check *c, uint64_t index) {
    const iron_manifest *m = c->manifest;

    if (m->chunk_tokens)
        return m->chunks[index];
    return (iron__chunk){.t = m->words.t, .a = m->words.a, .b = m->words.b};
}

static uint64_t chunk_end(const iron_check *c, uint64_t index) {
    uint64_t end = (index + 1) * c->chunk_tokens;

    return end < c->manifest->stream_tokens ? end : c->manifest->stream_tokens;
}

/* The first file that ends after a position. */
static size_t file_at(const iron_check *c, uint64_t position) {
    size_t low = 0, high = c->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const iron__manifest_entry *f = &c->manifest->files[middle];

        if (f->first + f->tokens <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_right(const iron_check *c, uint64_t index, const iron__chunk *found) {
    iron__chunk expected = expected_chunk(c, index);

    return found->t == expected.t && found->a == expected.a && found->b == expected.b;
}

/* Adds a chunk that differs to a file. */
static void count_wrong(const iron_check *c, entry *e, uint64_t index, const iron__chunk *found) {
    uint64_t first = index * c->chunk_tokens, end = chunk_end(c, index);

    if (e->wrong_runs == 0) {
        iron__chunk expected = expected_chunk(c, index);

        iron__seal_text((iron__seal_words){end - first, expected.t, expected.a, expected.b},
                        e->report.expected);
        iron__seal_text((iron__seal_words){end - first, found->t, found->a, found->b},
                        e->report.found);
        e->first_wrong = first;
    }
    if (e->wrong_runs == 0 || e->last_wrong != first)
        e->wrong_runs++;
    e->last_wrong = end;
    if (e->wrong_runs == 1)
        e->end_wrong = end;
}

/* found: NULL for a chunk that could not be read. */
static void count_chunk(iron_check *c, uint64_t index, const iron__chunk *found) {
    const iron__manifest_entry *files = c->manifest->files;
    size_t begin = file_at(c, index * c->chunk_tokens), end = begin, bad = begin;

    c->wrong += found && !is_right(c, index, found);
    for (; end < c->count && files[end].first < chunk_end(c, index); end++)
        if (!c->entries[end].is_readable)
            bad = end;
    for (size_t k = begin; k < end; k++) {
        entry *e = &c->entries[k];

        if (files[k].tokens == 0)
            continue;
        if (!found) {
            e->skipped++;
            e->neighbour = bad;
        } else if (is_right(c, index, found)) {
            e->right++;
        } else {
            count_wrong(c, e, index, found);
        }
    }
}

static int report_progress(void *context, uint64_t done, uint64_t total) {
    const iron_check *c = context;

    (void)total;
    return c->options.progress
               ? c->options.progress(c->options.context, c->done + done, c->manifest->stream_tokens)
               : 0;
}

/* The files had one format and dtype when they were scanned, or each declares its own. */
static iron_status open_run(const iron_check *c, const run *r, iron_source **out, iron_error *err) {
    const iron__manifest_entry *files = c->manifest->files;
    size_t count = r->end - r->begin;
    const char **paths = calloc(count + 1, sizeof *paths);
    iron_source_options o = {.struct_size = sizeof o, .path_count = count};
    iron_status status;

    if (!paths)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while listing files");
    o.dtype = files[r->begin].dtype;
    o.format = files[r->begin].format;
    for (size_t k = 0; k < count; k++) {
        paths[k] = c->entries[r->begin + k].path;
        if (files[r->begin + k].dtype != o.dtype)
            o.dtype = IRON_DTYPE_NONE;
        if (strcmp(files[r->begin + k].format, o.format) != 0)
            o.format = "auto";
    }
    o.paths = paths;
    status = iron_source_open(&o, out, err);
    free(paths);
    return status;
}

/* Scans positions first ... stop-1 of the run. */
static iron_status scan_run(iron_check *c, const run *r, uint64_t first, uint64_t stop,
                            iron_manifest **out, iron_error *err) {
    iron_source *source = NULL;
    iron_scan_options o;
    iron_status status;

    iron_scan_options_init(&o);
    o.threads = c->options.threads;
    o.device = c->options.device;
    o.backend = c->options.backend;
    o.vocab = c->manifest->vocab;
    o.chunk_tokens = c->chunk_tokens;
    o.progress = report_progress;
    o.context = c;
    *out = NULL;
    IRON_TRY(open_run(c, r, &source, err));
    if (first != r->first || stop != r->stop)
        o.count = stop - first;
    status = iron__scan_from(source, first - r->first, &o, out, err);
    if (status == IRON_OK && (*out)->tokens != stop - first) {
        iron__fail(err, IRON_E_FORMAT, 0, "%.100s has %" PRIu64 " tokens, not %" PRIu64,
                   iron_source_file(source, 0), (*out)->tokens, stop - first);
        iron_manifest_destroy(*out);
        *out = NULL;
        status = IRON_E_FORMAT;
    }
    iron_source_close(source);
    return status;
}

static void fail_file(entry *e, const iron_error *why) {
    e->is_readable = false;
    e->report.state = why->status == IRON_E_FORMAT ? IRON_CHECK_FAILED : IRON_CHECK_ERROR;
    snprintf(e->report.reason, sizeof e->report.reason, "%s", why->text);
}

/* Finds the files of a failed run that also fail alone, and marks them. Returns how many. */
static size_t find_bad_files(iron_check *c, const run *r, const iron_error *reason) {
    size_t found = 0;

    if (r->end - r->begin == 1) {
        fail_file(&c->entries[r->begin], reason);
        return 1;
    }
    for (size_t k = r->begin; k < r->end; k++) {
        const iron__manifest_entry *f = &c->manifest->files[k];
        run alone = {k, k + 1, f->first, f->first + f->tokens};
        iron_manifest *m = NULL;
        iron_error why = {0};

        if (scan_run(c, &alone, alone.first, alone.stop, &m, &why) != IRON_OK) {
            fail_file(&c->entries[k], &why);
            found++;
        }
        iron_manifest_destroy(m);
    }
    return found;
}

/* The run of readable files from `begin` on, which may be empty. */
static run run_at(const iron_check *c, size_t begin) {
    run r = {.begin = begin, .end = begin, .first = c->manifest->files[begin].first};

    r.stop = r.first;
    while (r.end < c->count && c->entries[r.end].is_readable) {
        r.stop += c->manifest->files[r.end].tokens;
        r.end++;
    }
    return r;
}

/* The manifest itself. */

static void damage(iron_check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void damage(iron_check *c, const char *format, ...) {
    va_list list;

    c->is_damaged = true;
    c->damage.state = IRON_CHECK_FAILED;
    va_start(list, format);
    vsnprintf(c->damage.reason, sizeof c->damage.reason, format, list);
    va_end(list);
}

static bool has_same_statistics(const iron__token_stats *x, const iron__token_stats *y) {
    return x->min == y->min && x->max == y->max && x->out_of_vocab == y->out_of_vocab &&
           x->first_position == y->first_position &&
           (x->out_of_vocab == 0 || x->first_value == y->first_value);
}

/* The first chunk with another mark; chunk_count if there is none. */
static size_t first_other_mark(const iron_manifest *m, const iron_manifest *found) {
    size_t k = 0;

    while (
        k < m->chunk_count && m->chunks[k].mark == found->chunks[k].mark &&
        (m->chunks[k].mark == IRON_MARK_NONE || m->chunks[k].mark_at == found->chunks[k].mark_at))
        k++;
    return k;
}

/* All of the stream was read. If every chunk is right, everything else that the manifest says of
 * the stream must be right too: above all its seal, which people quote. */
static void check_manifest_itself(iron_check *check, const iron_manifest *found) {
    const iron_manifest *m = check->manifest;

    if (check->wrong > 0)
        return;
    if (!iron__words_equal(&m->words, &found->words)) {
        iron__seal_text(m->words, check->damage.expected);
        iron__seal_text(found->words, check->damage.found);
        damage(check, "the manifest is damaged: its chunks match its files, its seal does not");
    } else if (!has_same_statistics(&m->stats, &found->stats)) {
        damage(check, "the manifest is damaged: its statistics do not match its files");
    } else if (first_other_mark(m, found) < m->chunk_count) {
        damage(check, "the manifest is damaged: the mark of chunk %zu does not match its files",
               first_other_mark(m, found));
    }
}

/* Checks the chunks in a run, and counts those between *next and it as skipped. */
static iron_status check_run(iron_check *c, const run *r, uint64_t *next, iron_error *err) {
    uint64_t begin = r->first / c->chunk_tokens + (r->first % c->chunk_tokens != 0);
    uint64_t end = r->stop == c->manifest->stream_tokens ? c->chunks : r->stop / c->chunk_tokens;
    iron_manifest *found = NULL;

    if (begin >= end)
        return IRON_OK;
    IRON_TRY(scan_run(c, r, begin * c->chunk_tokens, chunk_end(c, end - 1), &found, err));
    for (; *next < begin; ++*next)
        count_chunk(c, *next, NULL);
    for (; *next < end; ++*next)
        count_chunk(c, *next, &found->chunks[*next - begin]);
    c->done += found->tokens;
    if (found->tokens == c->manifest->stream_tokens)
        check_manifest_itself(c, found);
    iron_manifest_destroy(found);
    return IRON_OK;
}

static iron_status check_chunks(iron_check *c, iron_error *err) {
    uint64_t next = 0;

    for (size_t begin = 0; begin < c->count;) {
        run r = run_at(c, begin);
        iron_error why = {0};
        iron_status status = check_run(c, &r, &next, &why);

        if ((status == IRON_E_IO || status == IRON_E_FORMAT) && find_bad_files(c, &r, &why) > 0)
            continue;
        if (status != IRON_OK && err)
            *err = why;
        IRON_TRY(status);
        begin = r.end + 1; /* the file at r.end is not readable */
    }
    for (; next < c->chunks; next++)
        count_chunk(c, next, NULL);
    return IRON_OK;
}

/* The result of a readable file. */
static void report_file(const iron_check *c, size_t index) {
    entry *e = &c->entries[index];
    const iron__manifest_entry *f = &c->manifest->files[index];
    const char *neighbour = c->manifest->files[e->neighbour].path;

    if (!e->is_readable)
        return;
    if (e->wrong_runs > 0) {
        uint64_t end = f->first + f->tokens < e->end_wrong ? f->first + f->tokens : e->end_wrong;
        char more[48] = "";

        if (e->wrong_runs > 1)
            snprintf(more, sizeof more, " and %zu more ranges", e->wrong_runs - 1);
        set_state(e, IRON_CHECK_FAILED, "positions %" PRIu64 " to %" PRIu64 "%s differ",
                  f->first > e->first_wrong ? f->first : e->first_wrong, end - 1, more);
    } else if (e->skipped > 0 && !c->options.takes_missing) {
        set_state(e, IRON_CHECK_FAILED,
                  "%" PRIu64 " of its chunks cannot be checked without the original %.100s",
                  e->skipped, neighbour);
    } else if (e->skipped > 0) {
        set_state(e, e->right > 0 ? IRON_CHECK_PARTLY : IRON_CHECK_UNCHECKED,
                  "%" PRIu64 " of its %" PRIu64 " chunks not checked: they are shared with %.100s",
                  e->skipped, e->skipped + e->right, neighbour);
    }
}

static iron_status run_check(iron_check *c, iron_error *err) {
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
    IRON_TRY(open_files(c, err));
    IRON_TRY(check_chunks(c, err));
    for (size_t k = 0; k < c->count; k++)
        report_file(c, k);
    return IRON_OK;
}

iron_status iron_check_run(const iron_manifest *manifest, const iron_check_options *options,
                           iron_check **out, iron_error *err) {
    iron_check *c;
    iron_status status;

    *out = NULL;
    IRON_FAIL_IF(!options || options->struct_size != sizeof *options, err, IRON_E_ARG,
                 "iron_check_options.struct_size is not %zu; set it to sizeof", sizeof *options);
    IRON_FAIL_IF(manifest->parts > 0, err, IRON_E_ARG,
                 "%.100s is part %u of %u; join the parts first (iron merge)",
                 manifest->origin ? manifest->origin : "the manifest", manifest->part,
                 manifest->parts);
    c = calloc(1, sizeof *c);
    if (!c)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while checking files");
    c->manifest = manifest;
    c->options = *options;
    status = run_check(c, err);
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
                 "file %zu of a check of %zu files; they count from 0", index,
                 iron_check_file_count(check));
    *file = index < check->count ? check->entries[index].report : check->damage;
    return IRON_OK;
}
