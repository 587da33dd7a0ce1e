/* SPDX-License-Identifier: MIT */
/*
 * source_at.c: a source of regular files, read in many places at once.
 *
 * One thread does not get out of the page cache what memory gives; two, each in another place, get
 * 1.9 times as much (two cores of a Neoverse V1). All threads that read a file use one descriptor,
 * by pread, from a table that stays small (open_files.h): a source may have 100,000 files. Those
 * that are not in the page cache can be read past it (direct.h).
 */
#include "formats/source.h"

#include "core/fail.h"
#include "core/memory.h"
#include "formats/format.h"
#include "formats/open_files.h"

struct iron__source_at {
    const iron_source *source;
    const iron_allocator *allocator;
    uint64_t begin, end; /* tokens of the source */
    size_t width;
    size_t count;
    uint64_t *starts; /* of each file: its first token's place in the stream */
    iron__open_files files;
    iron__direct_buffers buffers;
    atomic_uint_fast64_t direct_bytes; /* that were read past the page cache */
};

static void list_files(iron__source_at *at) {
    uint64_t place = 0;

    for (size_t k = 0; k < at->count; k++) {
        at->starts[k] = place;
        place += iron_source_file_tokens(at->source, k);
    }
    at->end = place;
}

static iron_status build(iron__source_at *at, iron_error *err) {
    at->width = iron_dtype_bytes(iron_source_dtype(at->source));
    at->begin = iron__source_position(at->source);
    at->count = iron_source_file_count(at->source);
    at->starts =
        iron__allocate(at->allocator, at->count, sizeof *at->starts, "a list of files", err);
    if (!at->starts)
        return IRON_E_NOMEM;
    list_files(at);
    iron__direct_buffers_init(&at->buffers);
    return iron__open_files_init(&at->files, at->source, at->allocator, err);
}

iron_status iron__source_at_open(const iron_source *source, const iron_allocator *allocator,
                                 iron__source_at **out, iron_error *err) {
    iron__source_at *at;
    iron_status status;

    *out = NULL;
    at = iron__allocate(allocator, 1, sizeof *at, "a reader of files", err);
    if (!at)
        return IRON_E_NOMEM;
    at->source = source;
    at->allocator = allocator;
    status = build(at, err);
    if (status != IRON_OK) {
        if (at->starts)
            iron__direct_buffers_deinit(&at->buffers);
        if (at->starts)
            iron__release(allocator, at->starts);
        iron__release(allocator, at);
        return status;
    }
    *out = at;
    return IRON_OK;
}

void iron__source_at_close(iron__source_at *at) {
    if (!at)
        return;
    iron__open_files_deinit(&at->files);
    iron__direct_buffers_deinit(&at->buffers);
    iron__release(at->allocator, at->starts);
    iron__release(at->allocator, at);
}

void iron__source_at_direct(iron__source_at *at, iron__direct how) { at->files.how = how; }

uint64_t iron__source_at_direct_bytes(const iron__source_at *at) { return at->direct_bytes; }

uint64_t iron__source_at_tokens(const iron__source_at *at) { return at->end - at->begin; }

/* The file that holds a token of the stream: the last that starts there or before. */
static size_t file_with(const iron__source_at *at, uint64_t place) {
    size_t low = 0, high = at->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (at->starts[middle] <= place)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Directly what can be, the rest in the ordinary way. */
static iron_status read_both_ways(iron__source_at *at, iron__source_file *file,
                                  const iron__direct_file *direct, char *to, size_t want,
                                  size_t *got, const atomic_bool *stop, iron_error *err) {
    size_t past = 0;

    if (direct->fd >= 0) {
        past = iron__direct_read(&at->buffers, direct, file->taken, to, want, stop);
        at->direct_bytes += past;
        file->taken += past;
    }
    IRON_TRY(iron__source_file_read(file, to + past, want - past, got, stop, err));
    *got += past;
    return IRON_OK;
}

/* `want` bytes from a token of a file on, all of which it should have. */
static iron_status read_piece(iron__source_at *at, size_t index, uint64_t token, void *to,
                              size_t want, const atomic_bool *stop, iron_error *err) {
    const iron__layout *l = iron__source_layout(at->source, index);
    iron__source_file file = {.path = iron_source_file(at->source, index),
                              .bytes = l->bytes,
                              .taken = l->data_offset + token * at->width};
    iron__direct_file direct;
    iron_status status;
    size_t got = 0;

    IRON_TRY(iron__open_files_take(&at->files, index, &file.fd, &direct, err));
    status = read_both_ways(at, &file, &direct, to, want, &got, stop, err);
    iron__open_files_give_back(&at->files, index);
    if (status == IRON_OK && got < want)
        status = iron__source_file_check_end(&file, err);
    return status;
}

iron_status iron__source_at_read(iron__source_at *at, uint64_t first, void *tokens, size_t count,
                                 const atomic_bool *stop, iron_error *err) {
    uint64_t place = at->begin + first;
    char *to = tokens;

    for (size_t k = file_with(at, place); count > 0; k++) {
        uint64_t token = place - at->starts[k];
        uint64_t rest = iron_source_file_tokens(at->source, k) - token;
        size_t some = count < rest ? count : (size_t)rest;

        if (some > 0)
            IRON_TRY(read_piece(at, k, token, to, some * at->width, stop, err));
        place += some;
        to += some * at->width;
        count -= some;
    }
    return IRON_OK;
}
