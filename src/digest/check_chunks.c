/* SPDX-License-Identifier: MIT */
/*
 * check_chunks.c: chunks that lie in sound files, read again.
 *
 * Sound files that follow one another form a run. A chunk that lies in one run can be read again
 * whatever is missing elsewhere, since its words are those of a stream that begins with it; one
 * that reaches out of a run cannot. So each run is one scan, from its first chunk's beginning to
 * its last one's end. A chunk counts for every file that it overlaps.
 *
 * When a run cannot be read, its files are read one by one: those that fail are sound no longer,
 * and what is left is cut into runs again.
 */
#include "core/fail.h"
#include "digest/check.h"
#include "digest/scan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The first file that ends behind a position. */
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

static void describe_wrong(const iron_check *c, iron_check_file *report, uint64_t index,
                           const iron__chunk *found) {
    iron__chunk expected = expected_chunk(c, index);
    uint64_t count = chunk_end(c, index) - index * c->chunk_tokens;

    iron__seal_text((iron__seal_words){count, expected.t, expected.a, expected.b},
                    report->expected);
    iron__seal_text((iron__seal_words){count, found->t, found->a, found->b}, report->found);
}

static void count_wrong(const iron_check *c, iron__check_entry *e, uint64_t index,
                        const iron__chunk *found) {
    uint64_t first = index * c->chunk_tokens;

    if (e->wrong_runs == 0) {
        describe_wrong(c, &e->report, index, found);
        e->first_wrong = first;
    }
    if (e->wrong_runs == 0 || e->last_wrong != first)
        e->wrong_runs++;
    e->last_wrong = chunk_end(c, index);
    if (e->wrong_runs == 1)
        e->end_wrong = e->last_wrong;
}

static bool is_right(const iron_check *c, uint64_t index, const iron__chunk *found) {
    iron__chunk expected = expected_chunk(c, index);

    return found->t == expected.t && found->a == expected.a && found->b == expected.b;
}

/* found: NULL for a chunk that could not be read. */
static void count_chunk(iron_check *c, uint64_t index, const iron__chunk *found) {
    const iron__manifest_entry *files = c->manifest->files;
    size_t begin = file_at(c, index * c->chunk_tokens), end = begin, bad = begin;

    c->wrong += found && !is_right(c, index, found);
    for (; end < c->count && files[end].first < chunk_end(c, index); end++)
        if (!c->entries[end].is_sound)
            bad = end;
    for (size_t k = begin; k < end; k++) {
        iron__check_entry *e = &c->entries[k];

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

static int tell(void *context, uint64_t done, uint64_t total) {
    const iron_check *c = context;

    (void)total;
    return c->options.progress
               ? c->options.progress(c->options.context, c->done + done, c->manifest->stream_tokens)
               : 0;
}

/* Files were of one format and width when they were opened, or each said its own. */
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

static iron_scan_options scan_options(iron_check *c) {
    iron_scan_options o;

    iron_scan_options_init(&o);
    o.threads = c->options.threads;
    o.device = c->options.device;
    o.backend = c->options.backend;
    o.vocab = c->manifest->vocab;
    o.chunk_tokens = c->chunk_tokens;
    o.progress = tell;
    o.context = c;
    return o;
}

/* The chunks of positions first ... stop-1 of the run. */
static iron_status scan_run(iron_check *c, const run *r, uint64_t first, uint64_t stop,
                            iron_manifest **out, iron_error *err) {
    iron_scan_options o = scan_options(c);
    iron_source *source = NULL;
    iron_status status;

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

static void mark_unsound(iron__check_entry *e, const iron_error *why) {
    e->is_sound = false;
    e->report.state = why->status == IRON_E_FORMAT ? IRON_CHECK_FAILED : IRON_CHECK_ERROR;
    snprintf(e->report.reason, sizeof e->report.reason, "%s", why->text);
}

/* Which files of a run that failed fail alone? Nonzero: some do, and are sound no longer. */
static size_t find_culprits(iron_check *c, const run *r, const iron_error *reason) {
    size_t found = 0;

    if (r->end - r->begin == 1) {
        mark_unsound(&c->entries[r->begin], reason);
        return 1;
    }
    for (size_t k = r->begin; k < r->end; k++) {
        const iron__manifest_entry *f = &c->manifest->files[k];
        run alone = {k, k + 1, f->first, f->first + f->tokens};
        iron_manifest *m = NULL;
        iron_error why = {0};

        if (scan_run(c, &alone, alone.first, alone.stop, &m, &why) != IRON_OK) {
            mark_unsound(&c->entries[k], &why);
            found++;
        }
        iron_manifest_destroy(m);
    }
    return found;
}

/* The run of sound files from `begin` on, which may be empty. */
static run run_from(const iron_check *c, size_t begin) {
    run r = {.begin = begin, .end = begin, .first = c->manifest->files[begin].first};

    r.stop = r.first;
    while (r.end < c->count && c->entries[r.end].is_sound) {
        r.stop += c->manifest->files[r.end].tokens;
        r.end++;
    }
    return r;
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
        iron__check_itself(c, found);
    iron_manifest_destroy(found);
    return IRON_OK;
}

iron_status iron__check_chunks(iron_check *check, iron_error *err) {
    uint64_t next = 0;

    for (size_t begin = 0; begin < check->count;) {
        run r = run_from(check, begin);
        iron_error why = {0};
        iron_status status = check_run(check, &r, &next, &why);

        if ((status == IRON_E_IO || status == IRON_E_FORMAT) && find_culprits(check, &r, &why) > 0)
            continue;
        if (status != IRON_OK && err)
            *err = why;
        IRON_TRY(status);
        begin = r.end + 1; /* the file there is not sound */
    }
    for (; next < check->chunks; next++)
        count_chunk(check, next, NULL);
    return IRON_OK;
}
