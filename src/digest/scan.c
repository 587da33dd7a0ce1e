/* SPDX-License-Identifier: MIT */
/*
 * scan.c: iron_scan: what is asked for is checked, the manifest's frame is made (files, ranges,
 * room for chunks), and one of the ways to run fills it.
 */
#include "digest/scan.h"

#include "core/cpu.h"
#include "core/fail.h"
#include "digest/marks.h"
#include "formats/format.h"
#include "formats/source.h"
#include "gpu/gpu.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_TOKENS_MIN 1024u

void iron_scan_options_init_sized(iron_scan_options *options, size_t struct_size) {
    memset(options, 0, struct_size);
    if (struct_size < sizeof *options)
        return; /* an older caller: iron_scan says so */
    options->struct_size = (uint32_t)struct_size;
    options->vocab = 50257;
    options->count = IRON_COUNT_UNKNOWN;
}

/* `auto` is the CPU: files come no faster than it seals them, and a GPU's start costs more than
 * gigabytes do (8 GiB of page cache: 0.13 s by 16 Xeon cores, 0.47 s by an H200). Chunks and ranges
 * are the CPU's anyhow: a GPU would have to read twice for them. */
static iron_status choose_backend(iron__scan *s, iron_error *err) {
    const iron_scan_options *o = &s->options;
    bool is_whole = o->first == 0 && o->count == IRON_COUNT_UNKNOWN && o->parts == 0;
    size_t cpu = iron__gpu_backend_count();

    IRON_TRY(iron__gpu_choose(iron__gpu_is_auto(o->backend) ? "cpu" : o->backend, o->device,
                              &s->backend, err));
    IRON_FAIL_IF(s->backend != cpu && (o->chunk_tokens || !is_whole), err, IRON_E_UNSUPPORTED,
                 "manifests and parts are made on the CPU; leave --backend %s out", o->backend);
    return IRON_OK;
}

iron_status iron__chunk_tokens_check(uint64_t chunk_tokens, iron_error *err) {
    IRON_FAIL_IF(chunk_tokens != 0 && (chunk_tokens < CHUNK_TOKENS_MIN || chunk_tokens % 4 != 0 ||
                                       chunk_tokens > IRON_MANIFEST_WHOLE_MAX),
                 err, IRON_E_ARG,
                 "chunks of %" PRIu64 " tokens; they must be a multiple of 4, at least %u",
                 chunk_tokens, CHUNK_TOKENS_MIN);
    return IRON_OK;
}

static iron_status check_options(const iron_scan_options *o, iron_error *err) {
    IRON_FAIL_IF(!o || o->struct_size != sizeof *o, err, IRON_E_ARG,
                 "iron_scan_options.struct_size is not %zu; call iron_scan_options_init",
                 sizeof *o);
    IRON_FAIL_IF(o->threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "threads is %u; it must be at most %u", o->threads, IRON_THREADS_MAX);
    IRON_FAIL_IF(o->vocab < 1 || o->vocab > UINT64_C(1) << 32, err, IRON_E_ARG,
                 "vocab is %" PRIu64 "; it must be 1 to 4294967296", o->vocab);
    IRON_FAIL_IF((o->part == 0) != (o->parts == 0) || o->part > o->parts, err, IRON_E_ARG,
                 "part %u of %u; parts count from 1", o->part, o->parts);
    return iron__chunk_tokens_check(o->chunk_tokens, err);
}

/* A range must lie in the stream, begin on the grid of quads, and end there or with the stream. */
static iron_status set_range(iron__scan *s, iron_error *err) {
    const iron_scan_options *o = &s->options;
    bool is_whole = o->first == 0 && o->count == IRON_COUNT_UNKNOWN && o->parts == 0;

    s->first = o->first;
    s->stream_tokens = iron_source_tokens(s->source);
    if (s->stream_tokens != IRON_COUNT_UNKNOWN)
        s->stream_tokens -= s->base;
    IRON_FAIL_IF(!s->is_seekable && !is_whole, err, IRON_E_ARG,
                 "a part of a stream needs files on a disk; a pipe is scanned whole");
    if (!s->is_seekable) {
        s->count = IRON_COUNT_UNKNOWN;
        return IRON_OK;
    }
    IRON_FAIL_IF(s->first > s->stream_tokens, err, IRON_E_ARG,
                 "a range from position %" PRIu64 " on; the stream has %" PRIu64 " tokens",
                 s->first, s->stream_tokens);
    s->count = o->count == IRON_COUNT_UNKNOWN ? s->stream_tokens - s->first : o->count;
    IRON_FAIL_IF(s->count > s->stream_tokens - s->first, err, IRON_E_ARG,
                 "a range of %" PRIu64 " tokens from position %" PRIu64
                 " on; the stream has %" PRIu64,
                 s->count, s->first, s->stream_tokens);
    IRON_FAIL_IF(s->first % 4 != 0 || (s->count % 4 != 0 && s->first + s->count < s->stream_tokens),
                 err, IRON_E_ARG,
                 "a range of positions %" PRIu64 " to %" PRIu64
                 "; it must begin and end at multiples of 4, or end with the stream",
                 s->first, s->first + s->count);
    return IRON_OK;
}

/* How many chunks a known stream makes is known before it is read. Of a part, all of the stream's
 * count: a merge that cannot be written would come too late. */
static iron_status check_chunk_count(const iron__scan *s, iron_error *err) {
    uint64_t size = s->options.chunk_tokens, fits = CHUNK_TOKENS_MIN;
    uint64_t first = s->options.parts ? 0 : s->first;
    uint64_t tokens = s->options.parts ? s->stream_tokens : s->count;

    if (s->count == IRON_COUNT_UNKNOWN ||
        iron__manifest_chunks_of(first, tokens, size) <= IRON_CHUNKS_MAX)
        return IRON_OK;
    while (iron__manifest_chunks_of(first, tokens, fits) > IRON_CHUNKS_MAX)
        fits *= 2;
    IRON_FAIL(err, IRON_E_ARG,
              "chunks of %" PRIu64 " tokens make %" PRIu64 " chunks of this stream, and a manifest "
              "has at most %" PRIu64 "; use --chunk %" PRIu64,
              size, iron__manifest_chunks_of(first, tokens, size), IRON_CHUNKS_MAX, fits);
}

iron_status iron__scan_reserve(iron__scan *scan, uint64_t end, iron_error *err) {
    iron_manifest *m = scan->manifest;
    uint64_t size = m->chunk_tokens;
    uint64_t needed = iron__manifest_chunks_of(scan->first, end - scan->first, size);
    size_t room = scan->chunk_room;
    iron__chunk *chunks;

    IRON_FAIL_IF(needed > IRON_CHUNKS_MAX, err, IRON_E_ARG,
                 "chunks of %" PRIu64 " tokens make more than %" PRIu64
                 " chunks of this stream; use larger ones (--chunk)",
                 size, IRON_CHUNKS_MAX);
    if (needed > room) {
        /* a known range takes what it needs, a pipe twice what it had */
        room = scan->count != IRON_COUNT_UNKNOWN || needed > 2 * room ? (size_t)needed : 2 * room;
        chunks = realloc(m->chunks, room * sizeof *chunks);
        if (!chunks)
            return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory: %zu chunks", room);
        m->chunks = chunks;
        scan->chunk_room = room;
    }
    for (; m->chunk_count < needed; m->chunk_count++)
        m->chunks[m->chunk_count] = iron__chunk_empty();
    return IRON_OK;
}

iron__chunk *iron__scan_chunk(const iron__scan *scan, uint64_t position) {
    uint64_t size = scan->options.chunk_tokens;

    return &scan->manifest->chunks[position / size - scan->first / size];
}

iron_status iron__scan_tell(const iron__scan *scan, uint64_t done, iron_error *err) {
    const iron_scan_options *o = &scan->options;
    uint64_t total = scan->count != IRON_COUNT_UNKNOWN ? scan->count : scan->stream_tokens;

    IRON_FAIL_IF(o->progress && o->progress(o->context, done, total), err, IRON_E_CANCELLED,
                 "cancelled after %" PRIu64 " tokens", done);
    return IRON_OK;
}

static iron_status take_sample(const iron__scan *s, size_t index, iron__manifest_entry *f,
                               iron_error *err) {
    bool is_there = false;
    uint64_t sample = 0;

    IRON_TRY(iron__source_sample(s->source, index, &sample, &is_there, err));
    if (is_there)
        snprintf(f->sample, sizeof f->sample, "%016" PRIx64, sample);
    return IRON_OK;
}

/* After the scan: only then a pipe has shown what it is. */
static iron_status list_files(const iron__scan *s, iron_error *err) {
    iron_manifest *m = s->manifest;
    size_t count = iron_source_file_count(s->source);
    uint64_t place = 0;

    m->files = calloc(count ? count : 1, sizeof *m->files);
    if (!m->files)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while listing files");
    while (m->file_count < count) {
        iron__manifest_entry *f = &m->files[m->file_count];
        iron_dtype dtype = iron__source_layout(s->source, m->file_count)->dtype;

        f->path = strdup(iron_source_file(s->source, m->file_count));
        if (!f->path)
            return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while listing files");
        strncpy(f->format, iron_source_file_format(s->source, m->file_count), sizeof f->format - 1);
        f->dtype = dtype == IRON_DTYPE_NONE ? s->dtype : dtype;
        f->first = place;
        f->tokens = iron_source_file_tokens(s->source, m->file_count);
        place += f->tokens;
        m->file_count++;
        IRON_TRY(take_sample(s, m->file_count - 1, f, err));
    }
    return IRON_OK;
}

static iron_status run_scan(iron__scan *scan, iron_error *err) {
    if (scan->backend != iron__gpu_backend_count())
        return iron__scan_gpu(scan, err);
    return scan->is_seekable ? iron__scan_files(scan, err) : iron__scan_pipe(scan, err);
}

static iron_status fill_manifest(iron__scan *s, iron_error *err) {
    iron_manifest *m = s->manifest;

    m->first = s->first;
    m->vocab = s->options.vocab;
    m->part = s->options.part;
    m->parts = s->options.parts;
    m->chunk_tokens = s->options.chunk_tokens;
    m->stats = iron__token_stats_neutral();
    IRON_TRY(run_scan(s, err));
    IRON_TRY(iron__source_check_unchanged(s->source, err));
    if (!s->is_seekable)
        s->stream_tokens = s->count;
    m->tokens = s->count;
    m->stream_tokens = s->stream_tokens;
    return s->base == 0 ? list_files(s, err) : IRON_OK;
}

iron_status iron_scan(iron_source *source, const iron_scan_options *options, iron_manifest **out,
                      iron_error *err) {
    return iron__scan_from(source, 0, options, out, err);
}

iron_status iron__scan_from(iron_source *source, uint64_t base, const iron_scan_options *options,
                            iron_manifest **out, iron_error *err) {
    iron__scan s = {.source = source, .base = base, .row = iron__seal_variant_find("champion")};
    iron_status status;

    *out = NULL;
    IRON_TRY(check_options(options, err));
    s.options = *options;
    s.threads = options->threads ? options->threads : iron__cpu_threads();
    s.dtype = iron_source_dtype(source);
    s.is_seekable = iron__source_is_seekable(source);
    IRON_TRY(choose_backend(&s, err));
    IRON_TRY(set_range(&s, err));
    IRON_TRY(check_chunk_count(&s, err));
    s.manifest = calloc(1, sizeof *s.manifest);
    if (!s.manifest)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory: a manifest");
    pthread_mutex_init(&s.chunk_mutex, NULL);
    status = fill_manifest(&s, err);
    pthread_mutex_destroy(&s.chunk_mutex);
    if (status == IRON_OK)
        *out = s.manifest;
    else
        iron_manifest_destroy(s.manifest);
    return status;
}
