/* SPDX-License-Identifier: MIT */
/*
 * check.c: are the files of a manifest still what they were?
 *
 * First each file is searched for and opened: does it exist, with the same format, width and number
 * of tokens? Then those that could be opened are read again. Readable files that follow one another
 * form a run, which is read in one scan. When that fails, the files are read one by one.
 *
 * Version 2 has a seal for every file, and a file is right if its seal is. Chunks only tell where a
 * file differs: if the scan was of the whole stream, they are known; otherwise those of the files
 * that differ and have more than one chunk are read again.
 *
 * Version 1 has only chunks. A chunk that lies in one run can be read again whatever is missing
 * elsewhere, since its words are those of a stream that begins with it; one that reaches out of a
 * run cannot. A chunk counts for every file that it overlaps.
 *
 * Finally the manifest itself: seals of files, chunks, the stream's seal and its statistics do not
 * follow from one another. But once all of the stream was read, the scan knows them; a manifest
 * that contradicts itself was changed.
 */
#include "digest/digest_internal.h"

#include "core/array.h"
#include "core/fail.h"
#include "core/number.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct entry {
    char *path;        /* where it was found; NULL: not found */
    bool is_readable;  /* exists with the expected number of tokens; else `report` says why not */
    bool is_changed;   /* its seal differs */
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
    size_t common_folder; /* of the names: its length */
    entry *entries;
    size_t count;
    uint64_t wrong;         /* chunks that differ */
    size_t changed;         /* files whose seal differs */
    uint64_t done;          /* tokens, for progress */
    iron_check_file damage; /* of the manifest itself, unless its state is OK */
};

/* Finding and opening files. */

/* How many leading characters, up to a slash, the names of all files have in common. */
static size_t common_folder(const iron_manifest *m) {
    const char *first = m->files[0].path;
    size_t length = strlen(first);

    for (size_t k = 0; k < m->file_count; k++) {
        size_t same = 0;

        while (same < length && m->files[k].path[same] == first[same])
            same++;
        length = same;
    }
    while (length > 0 && first[length - 1] != '/')
        length--;
    return length;
}

/* Searches for a file under its name, then beside the manifest: there a name may lack folders that
 * all names begin with, since those may be where the manifest is now. The longest name wins. NULL:
 * not found. A file that may not be accessed is there. */
static char *find_file(const iron_check *c, const char *path) {
    const char *origin = c->manifest->origin, *slash = origin ? strrchr(origin, '/') : NULL;
    int length = slash ? (int)(slash - origin) + 1 : 0;

    if (iron__path_is_stdin(path) || iron_path_is_remote(path) || access(path, F_OK) == 0 ||
        (errno != ENOENT && errno != ENOTDIR))
        return strdup(path);
    if (!origin)
        return NULL;
    for (size_t skip = 0; skip <= c->common_folder;) {
        char *beside = NULL;

        if (path[skip] != '/' && asprintf(&beside, "%.*s%s", length, origin, path + skip) >= 0) {
            if (access(beside, F_OK) == 0)
                return beside;
            free(beside);
        }
        skip += strcspn(path + skip, "/") + 1;
    }
    return NULL;
}

/* Of a file, or of the manifest itself; what was found first stays. */
static __attribute__((format(printf, 3, 4))) void
set_state(iron_check_file *report, iron_check_state state, const char *format, ...) {
    va_list list;

    if (report->state != IRON_CHECK_OK)
        return;
    report->state = state;
    va_start(list, format);
    vsnprintf(report->reason, sizeof report->reason, format, list);
    va_end(list);
}

static void fail_file(entry *e, const iron_error *why) {
    e->is_readable = false;
    set_state(&e->report, why->status == IRON_E_FORMAT ? IRON_CHECK_FAILED : IRON_CHECK_ERROR, "%s",
              why->text);
}

typedef struct run {
    size_t begin, end;    /* files */
    uint64_t first, stop; /* positions */
} run;

/* The files had one format and dtype when they were scanned, or each declares its own. */
static iron_status open_run(const iron_check *c, const run *r, iron_source **out, iron_error *err) {
    const iron__manifest_entry *files = c->manifest->files;
    size_t count = r->end - r->begin;
    iron_source_options o = {.struct_size = sizeof o, .path_count = count};
    const char **paths;
    iron_status status;

    IRON_TRY(IRON_NEW(&paths, count + 1, "a list of files", err));
    o.dtype = files[r->begin].dtype;
    o.format = files[r->begin].format;
    o.column = files[r->begin].column;
    for (size_t k = 0; k < count; k++) {
        paths[k] = c->entries[r->begin + k].path;
        if (files[r->begin + k].dtype != o.dtype)
            o.dtype = IRON_DTYPE_NONE;
        if (strcmp(files[r->begin + k].format, o.format) != 0)
            o.format = "auto";
        if (o.column &&
            (!files[r->begin + k].column || strcmp(files[r->begin + k].column, o.column) != 0))
            o.column = NULL; /* each has the one that is read without a choice */
    }
    o.paths = paths;
    status = iron_source_open(&o, out, err);
    free(paths);
    return status;
}

/* Opens the file: has it the expected format and number of tokens? Of a pipe that is unknown before
 * it is read. */
static void open_file(iron_check *c, size_t index) {
    const iron__manifest_entry *f = &c->manifest->files[index];
    entry *e = &c->entries[index];
    iron_source *source = NULL;
    iron_error why = {0};
    struct stat info;
    uint64_t tokens;

    e->is_readable = iron__path_is_stdin(e->path);
    if (e->is_readable)
        return;
    if (stat(e->path, &info) == 0 && S_ISDIR(info.st_mode)) { /* as a source it means its files */
        set_state(&e->report, IRON_CHECK_ERROR, "%.120s is a directory", e->path);
        return;
    }
    if (open_run(c, &(run){.begin = index, .end = index + 1}, &source, &why) != IRON_OK) {
        fail_file(e, &why);
        return;
    }
    tokens = iron_source_tokens(source);
    e->is_readable = tokens == f->tokens || tokens == IRON_COUNT_UNKNOWN;
    iron_source_close(source);
    if (e->is_readable)
        return;
    set_state(&e->report, IRON_CHECK_FAILED, "it has %" PRIu64 " tokens, expected %" PRIu64, tokens,
              f->tokens);
    snprintf(e->report.expected, sizeof e->report.expected, "%" PRIu64 " tokens", f->tokens);
    snprintf(e->report.found, sizeof e->report.found, "%" PRIu64 " tokens", tokens);
}

/* Chunks. */

static iron__chunk expected_chunk(const iron_check *c, uint64_t index) {
    const iron_manifest *m = c->manifest;

    if (m->chunk_tokens)
        return m->chunks[index];
    return (iron__chunk){.t = m->words.t, .a = m->words.a, .b = m->words.b};
}

static uint64_t chunk_end(const iron_check *c, uint64_t index) {
    return iron__min((index + 1) * c->chunk_tokens, c->manifest->stream_tokens);
}

/* The chunks that lie in a run: *begin ... *end-1. */
static void chunks_in(const iron_check *c, const run *r, uint64_t *begin, uint64_t *end) {
    *begin = r->first / c->chunk_tokens + (r->first % c->chunk_tokens != 0);
    *end = r->stop == c->manifest->stream_tokens ? c->chunks : r->stop / c->chunk_tokens;
}

static void seal_chunk(iron__chunk chunk, uint64_t tokens, char text[IRON_SEAL_TEXT]) {
    iron__seal_text((iron__seal_words){tokens, chunk.t, chunk.a, chunk.b}, text);
}

/* found: NULL for a chunk that could not be read. With seals of files, only those that differ
 * count. */
static void count_chunk(iron_check *c, uint64_t index, const iron__chunk *found) {
    const iron__manifest_entry *files = c->manifest->files;
    uint64_t first = index * c->chunk_tokens, stop = chunk_end(c, index);
    size_t begin = iron__array_find(&files[0].first, sizeof *files, c->count, first);
    size_t end = begin, bad = begin;
    iron__chunk expected = expected_chunk(c, index);
    bool is_wrong =
        found && (found->t != expected.t || found->a != expected.a || found->b != expected.b);
    bool is_explained = false;

    c->wrong += is_wrong;
    for (; end < c->count && files[end].first < stop; end++) {
        if (!c->entries[end].is_readable)
            bad = end;
        is_explained = is_explained || c->entries[end].is_changed;
    }
    if (is_wrong && c->manifest->has_file_seals && !is_explained)
        set_state(&c->damage, IRON_CHECK_FAILED,
                  "the manifest is damaged: chunk %" PRIu64
                  " does not match its files, whose seals do",
                  index);
    for (size_t k = begin; k < end; k++) {
        entry *e = &c->entries[k];

        if (files[k].tokens == 0 || (c->manifest->has_file_seals && !e->is_changed))
            continue;
        if (!found) {
            e->skipped++;
            e->neighbour = bad;
        }
        e->right += found && !is_wrong;
        if (!is_wrong)
            continue;
        if (e->wrong_runs == 0 && !c->manifest->has_file_seals) {
            seal_chunk(expected, stop - first, e->report.expected);
            seal_chunk(*found, stop - first, e->report.found);
        }
        if (e->wrong_runs == 0)
            e->first_wrong = first;
        if (e->wrong_runs == 0 || e->last_wrong != first)
            e->wrong_runs++;
        e->last_wrong = stop;
        if (e->wrong_runs == 1)
            e->end_wrong = stop;
    }
}

static int report_progress(void *context, uint64_t done, uint64_t total) {
    const iron_check *c = context;

    total = c->manifest->stream_tokens;
    done = iron__min(c->done + done, total); /* some files are read twice */
    return c->options.progress ? c->options.progress(c->options.context, done, total) : 0;
}

/* The bag is part of the same scan, unless the files' format is not what it was. */
static bool can_check_bag(const iron_manifest *m, const iron_source *source) {
    iron_bag_cut own;

    if (!iron__cut_is_own(m->bag_cut.kind))
        return m->bag_cut.kind != IRON_BAG_CUT_NONE;
    return iron_bag_source_cut(source, &own, NULL) == IRON_OK && own.kind == m->bag_cut.kind;
}

/* Scans positions first ... stop-1 of a run for their chunks; or all of it for the seals of its
 * files, and for its chunks if they are the manifest's. */
static iron_status scan_run(iron_check *c, const run *r, uint64_t first, uint64_t stop,
                            iron__scan_what what, iron_manifest **out, iron_error *err) {
    bool is_whole = r->begin == 0 && r->end == c->count;
    iron_source *source = NULL;
    iron_scan_options o;
    iron_status status;

    *out = NULL;
    IRON_TRY(open_run(c, r, &source, err));
    iron_scan_options_init(&o);
    o.threads = c->options.threads;
    o.device = c->options.device;
    o.devices = c->options.devices;
    o.backend = c->options.backend;
    o.vocab = c->manifest->vocab;
    o.chunk_tokens = what == IRON_SCAN_SEAL || is_whole ? c->chunk_tokens : 0;
    o.progress = report_progress;
    o.context = c;
    if (first != r->first || stop != r->stop)
        o.count = stop - first;
    if (what == IRON_SCAN_FILE_SEALS && is_whole && can_check_bag(c->manifest, source))
        o.bag = c->manifest->bag_cut;
    status = iron__scan(source, what, first - r->first, &o, out, err);
    /* the length of a pipe is known only after it was read */
    if (status == IRON_OK && (*out)->tokens != stop - first) {
        status = IRON_E_FORMAT; /* clang-tidy does not know that iron__fail returns it */
        iron__fail(err, status, 0, "%.100s has %" PRIu64 " tokens, not %" PRIu64,
                   iron_source_file(source, 0), (*out)->tokens, stop - first);
        iron_manifest_destroy(*out);
        *out = NULL;
    }
    iron_source_close(source);
    return status;
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

/* Whether an error is about the files. */
static bool is_of_files(iron_status status) {
    return status == IRON_E_IO || status == IRON_E_FORMAT;
}

static void judge_file(iron_check *c, size_t index, const iron__seal_words *found) {
    const iron__seal_words *expected = &c->manifest->files[index].words;
    entry *e = &c->entries[index];

    if (!c->manifest->has_file_seals || iron__words_equal(expected, found))
        return;
    e->is_changed = true;
    c->changed++;
    iron__seal_text(*expected, e->report.expected);
    iron__seal_text(*found, e->report.found);
}

/* A file of the run cannot be read, so that all are read alone. *failed counts those that also fail
 * alone. */
static iron_status read_one_by_one(iron_check *c, const run *r, const iron_error *reason,
                                   size_t *failed, iron_error *err) {
    *failed = 0;
    if (r->end - r->begin == 1) {
        fail_file(&c->entries[r->begin], reason);
        *failed = 1;
        return IRON_OK;
    }
    for (size_t k = r->begin; k < r->end; k++) {
        const iron__manifest_entry *f = &c->manifest->files[k];
        run alone = {k, k + 1, f->first, f->first + f->tokens};
        iron_manifest *found = NULL;
        iron_error why = {0};
        iron_status status =
            scan_run(c, &alone, alone.first, alone.stop, IRON_SCAN_FILE_SEALS, &found, &why);

        if (status == IRON_OK)
            judge_file(c, k, &found->words);
        iron_manifest_destroy(found);
        if (is_of_files(status)) {
            fail_file(&c->entries[k], &why);
            ++*failed;
        } else if (status != IRON_OK) {
            return iron__fail_again(err, &why);
        }
        c->done += f->tokens;
    }
    return IRON_OK;
}

/* The manifest itself. */

/* The first chunk with another mark; chunk_count if there is none. */
static size_t first_other_mark(const iron_manifest *m, const iron_manifest *found) {
    size_t k = 0;

    while (
        k < m->chunk_count && m->chunks[k].mark == found->chunks[k].mark &&
        (m->chunks[k].mark == IRON_MARK_NONE || m->chunks[k].mark_at == found->chunks[k].mark_at))
        k++;
    return k;
}

/* All of the stream was read. If every file and chunk is right, everything else that the manifest
 * says of the stream must be right too: above all its seal, which people quote. */
static void check_manifest_itself(iron_check *check, const iron_manifest *found) {
    const iron_manifest *m = check->manifest;
    const iron__token_stats *x = &m->stats, *y = &found->stats;

    if (check->wrong > 0 || check->changed > 0)
        return;
    if (!iron__words_equal(&m->words, &found->words)) {
        iron__seal_text(m->words, check->damage.expected);
        iron__seal_text(found->words, check->damage.found);
        set_state(&check->damage, IRON_CHECK_FAILED,
                  "the manifest is damaged: its chunks match its files, its seal does not");
    } else if (found->bag_cut.kind != IRON_BAG_CUT_NONE &&
               memcmp(&m->bag, &found->bag, sizeof m->bag) != 0) {
        iron_bag_format(&m->bag, check->damage.expected);
        iron_bag_format(&found->bag, check->damage.found);
        set_state(&check->damage, IRON_CHECK_FAILED, "%s",
                  iron__cut_is_own(m->bag_cut.kind)
                      ? "the bag differs: the tokens are the same, but not where documents begin"
                      : "the manifest is damaged: its bag does not match its files");
    } else if (x->min != y->min || x->max != y->max || x->out_of_vocab != y->out_of_vocab ||
               x->first_position != y->first_position ||
               (x->out_of_vocab > 0 && x->first_value != y->first_value)) {
        set_state(&check->damage, IRON_CHECK_FAILED,
                  "the manifest is damaged: its statistics do not match its files");
    } else if (first_other_mark(m, found) < m->chunk_count) {
        set_state(&check->damage, IRON_CHECK_FAILED,
                  "the manifest is damaged: the mark of chunk %zu does not match its files",
                  first_other_mark(m, found));
    }
}

/* Version 1: chunks decide. */

/* Checks the chunks in a run, and counts those between *next and it as skipped. */
static iron_status check_run(iron_check *c, const run *r, uint64_t *next, iron_error *err) {
    iron_manifest *found = NULL;
    uint64_t begin, end;

    chunks_in(c, r, &begin, &end);
    if (begin >= end)
        return IRON_OK;
    IRON_TRY(scan_run(c, r, begin * c->chunk_tokens, chunk_end(c, end - 1), IRON_SCAN_SEAL, &found,
                      err));
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
        uint64_t done = c->done;
        iron_error why = {0};
        iron_status status = check_run(c, &r, &next, &why);
        size_t failed = 0;

        if (is_of_files(status))
            IRON_TRY(read_one_by_one(c, &r, &why, &failed, err));
        if (failed > 0) {
            c->done = done;
            continue;
        }
        if (status != IRON_OK)
            return iron__fail_again(err, &why);
        begin = r.end + 1; /* the file at r.end is not readable */
    }
    for (; next < c->chunks; next++)
        count_chunk(c, next, NULL);
    return IRON_OK;
}

/* Where a file differs, by its chunks, unless it differs everywhere, as far as they tell. */
static void report_ranges(entry *e, const iron__manifest_entry *f) {
    uint64_t stop = f->first + f->tokens, end = iron__min(stop, e->end_wrong);
    uint64_t first = iron__max(f->first, e->first_wrong);
    char more[48] = "";

    if (e->wrong_runs > 1)
        snprintf(more, sizeof more, " and %zu more range%s", e->wrong_runs - 1,
                 e->wrong_runs > 2 ? "s" : "");
    if (e->wrong_runs == 0 || (first == f->first && end == stop))
        set_state(&e->report, IRON_CHECK_FAILED, "%s", "");
    else
        set_state(&e->report, IRON_CHECK_FAILED, "positions %" PRIu64 " to %" PRIu64 "%s differ",
                  first, end - 1, more);
}

/* The result of a readable file by its chunks. */
static void report_by_chunks(iron_check *c, size_t index) {
    entry *e = &c->entries[index];
    const char *neighbour = c->manifest->files[e->neighbour].path;

    if (e->wrong_runs > 0) {
        report_ranges(e, &c->manifest->files[index]);
    } else if (e->skipped > 0 && !c->options.takes_missing) {
        set_state(&e->report, IRON_CHECK_FAILED,
                  "it cannot be checked without %.100s, with which it shares a chunk", neighbour);
    } else if (e->skipped > 0 && e->right == 0) {
        set_state(&e->report, IRON_CHECK_UNCHECKED, "it shares a chunk with %.100s", neighbour);
    } else if (e->skipped > 0) {
        set_state(&e->report, IRON_CHECK_PARTLY,
                  "%" PRIu64 " of its %" PRIu64 " chunks not checked: shared with %.100s",
                  e->skipped, e->skipped + e->right, neighbour);
    }
}

/* Version 2: seals of files decide. */

/* Finds where the files of a run differ that have more than one chunk. What cannot be read again is
 * not located: that it differs is known already. */
static iron_status locate_changes(iron_check *c, const run *r, iron_error *err) {
    uint64_t begin = UINT64_MAX, end = 0, run_begin, run_end;
    iron_manifest *found = NULL;
    iron_error why = {0};
    iron_status status;

    for (size_t k = r->begin; k < r->end; k++) {
        const iron__manifest_entry *f = &c->manifest->files[k];
        uint64_t chunk = f->first / c->chunk_tokens;
        uint64_t chunks = iron__manifest_chunks_of(f->first, f->tokens, c->chunk_tokens);

        if (!c->entries[k].is_changed || chunks < 2)
            continue;
        begin = begin < chunk ? begin : chunk;
        end = chunk + chunks;
    }
    chunks_in(c, r, &run_begin, &run_end);
    begin = begin > run_begin ? begin : run_begin;
    end = end < run_end ? end : run_end;
    if (begin >= end)
        return IRON_OK;
    status = scan_run(c, r, begin * c->chunk_tokens, chunk_end(c, end - 1), IRON_SCAN_SEAL, &found,
                      &why);
    for (uint64_t k = begin; status == IRON_OK && k < end; k++)
        count_chunk(c, k, &found->chunks[k - begin]);
    iron_manifest_destroy(found);
    if (status == IRON_OK || is_of_files(status) || status == IRON_E_ARG)
        return IRON_OK; /* IRON_E_ARG: a pipe */
    return iron__fail_again(err, &why);
}

static iron_status check_seals(iron_check *c, iron_error *err) {
    run r;

    for (size_t begin = 0; begin < c->count; begin = r.end + 1) { /* that at r.end is unreadable */
        iron_manifest *found = NULL;
        iron_error why = {0};
        iron_status status;
        size_t failed;

        r = run_at(c, begin);
        if (r.begin == r.end)
            continue;
        status = scan_run(c, &r, r.first, r.stop, IRON_SCAN_FILE_SEALS, &found, &why);
        if (is_of_files(status)) {
            IRON_TRY(read_one_by_one(c, &r, &why, &failed, err));
            IRON_TRY(locate_changes(c, &r, err));
            continue;
        }
        if (status != IRON_OK)
            return iron__fail_again(err, &why);
        for (size_t k = r.begin; k < r.end; k++)
            judge_file(c, k, &found->files[k - r.begin].words);
        c->done += found->tokens;
        if (r.end - r.begin == c->count) {
            for (uint64_t k = 0; k < c->chunks; k++)
                count_chunk(c, k, &found->chunks[k]);
            check_manifest_itself(c, found);
        } else {
            status = locate_changes(c, &r, err);
        }
        iron_manifest_destroy(found);
        IRON_TRY(status);
    }
    return IRON_OK;
}

/* The result of a readable file by its seal. If all its chunks are right, its seal was changed. */
static void report_by_seal(iron_check *c, size_t index) {
    const iron__manifest_entry *f = &c->manifest->files[index];
    entry *e = &c->entries[index];

    if (!e->is_changed)
        return;
    if (e->right > 0 &&
        e->right == iron__manifest_chunks_of(f->first, f->tokens, c->chunk_tokens)) {
        set_state(&c->damage, IRON_CHECK_FAILED,
                  "the manifest is damaged: its seal of %.100s does not match the file, its chunks "
                  "do",
                  f->path);
        e->report.expected[0] = e->report.found[0] = '\0';
    } else {
        report_ranges(e, f);
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
        return iron__no_memory(err, "a check of files");
    c->common_folder = common_folder(m);
    IRON_TRY(IRON_NEW(&c->entries, m->file_count, "a check of files", err));
    for (; c->count < m->file_count; c->count++) {
        entry *e = &c->entries[c->count];
        const char *path = m->files[c->count].path;

        e->report.struct_size = sizeof e->report;
        e->report.path = strdup(path);
        if (!e->report.path)
            return iron__no_memory(err, "a check of files");
        e->path = find_file(c, path);
        if (e->path)
            open_file(c, c->count);
        else
            set_state(&e->report, IRON_CHECK_MISSING, "the file does not exist");
    }
    IRON_TRY((m->has_file_seals ? check_seals : check_chunks)(c, err));
    for (size_t k = 0; k < c->count; k++)
        if (c->entries[k].is_readable)
            (m->has_file_seals ? report_by_seal : report_by_chunks)(c, k);
    return IRON_OK;
}

iron_status iron_check_run(const iron_manifest *manifest, const iron_check_options *options,
                           iron_check **out, iron_error *err) {
    iron_check *c;
    iron_status status;

    *out = NULL;
    IRON_TRY(iron__struct_check(options, sizeof *options, "iron_check_options", err));
    IRON_FAIL_IF(manifest->parts > 0, err, IRON_E_ARG,
                 "%.100s is part %u of %u; join the parts first (iron merge)",
                 manifest->origin ? manifest->origin : "the manifest", manifest->part,
                 manifest->parts);
    IRON_TRY(IRON_NEW(&c, 1, "a check of files", err));
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

size_t iron_check_file_count(const iron_check *check) {
    return check->count + (check->damage.state != IRON_CHECK_OK);
}

iron_status iron_check_file_at(const iron_check *check, size_t index, iron_check_file *file,
                               iron_error *err) {
    IRON_TRY(iron__struct_check(file, sizeof *file, "iron_check_file", err));
    IRON_FAIL_IF(index >= iron_check_file_count(check), err, IRON_E_ARG,
                 "file %zu of a check of %zu files; they count from 0", index,
                 iron_check_file_count(check));
    *file = index < check->count ? check->entries[index].report : check->damage;
    return IRON_OK;
}
