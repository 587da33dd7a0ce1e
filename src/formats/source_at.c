/* SPDX-License-Identifier: MIT */
/*
 * source_at.c: a source of regular files, read in many places at once.
 *
 * One thread does not get out of the page cache what memory gives; two, each in another place, get
 * 1.9 times as much (two cores of a Neoverse V1). All threads that read a file use one descriptor,
 * by pread: a file that is renamed over or removed meanwhile stays for all of them what the first
 * one opened, and no result is made of two versions.
 *
 * A source may have 100,000 files. One is opened by the first who needs a piece of it and closed by
 * whoever reads the last piece. So when neighbouring stretches are read at once, only those files
 * are open in which a reader is or a stretch begins or ends: a handful.
 *
 * Invariants: 1. `left` goes down after bytes were read, never before: whoever uses a descriptor
 * has bytes outstanding, so nobody closes it under him. 2. A descriptor is entered once, and taken
 * out only when nothing is left.
 */
#include "formats/source.h"

#include "core/fail.h"
#include "core/memory.h"

#define NOT_OPEN (-1)

typedef struct shared_file {
    uint64_t start;            /* its first byte's place in the stream */
    atomic_uint_fast64_t left; /* bytes that nobody has read yet */
    atomic_int fd;
} shared_file;

struct iron__source_at {
    const iron_source *source;
    const iron_allocator *allocator;
    uint64_t begin, end; /* bytes of the stream */
    size_t count;
    shared_file *files;
};

static void list_files(iron__source_at *at) {
    uint64_t place = 0;

    for (size_t k = 0; k < at->count; k++) {
        shared_file *f = &at->files[k];
        uint64_t bytes = iron__source_file_bytes(at->source, k);
        uint64_t before = at->begin > place ? at->begin - place : 0;

        f->start = place;
        atomic_init(&f->left, before < bytes ? bytes - before : 0);
        atomic_init(&f->fd, NOT_OPEN);
        place += bytes;
    }
    at->end = place;
}

iron_status iron__source_at_open(const iron_source *source, const iron_allocator *allocator,
                                 iron__source_at **out, iron_error *err) {
    size_t width = iron_dtype_bytes(iron_source_dtype(source));
    iron__source_at *at;

    *out = NULL;
    at = iron__allocate(allocator, 1, sizeof *at, "a reader of files", err);
    if (!at)
        return IRON_E_NOMEM;
    at->source = source;
    at->allocator = allocator;
    at->begin = iron__source_position(source) * width;
    at->count = iron_source_file_count(source);
    at->files = iron__allocate(allocator, at->count, sizeof *at->files, "a list of files", err);
    if (!at->files) {
        iron__release(allocator, at);
        return IRON_E_NOMEM;
    }
    list_files(at);
    *out = at;
    return IRON_OK;
}

/* The file as one thread sees it, from a byte of the stream on. */
static iron__source_file view_of(const iron__source_at *at, size_t index, uint64_t place) {
    return (iron__source_file){.path = iron_source_file(at->source, index),
                               .bytes = iron__source_file_bytes(at->source, index),
                               .taken = place - at->files[index].start,
                               .fd = atomic_load(&at->files[index].fd)};
}

void iron__source_at_close(iron__source_at *at) {
    if (!at)
        return;
    for (size_t k = 0; k < at->count; k++) {
        iron__source_file file = view_of(at, k, at->files[k].start);

        iron__source_file_close(&file);
    }
    iron__release(at->allocator, at->files);
    iron__release(at->allocator, at);
}

uint64_t iron__source_at_tokens(const iron__source_at *at) {
    return (at->end - at->begin) / iron_dtype_bytes(iron_source_dtype(at->source));
}

/* The file that holds a byte of the stream: the last that starts there or before. */
static size_t file_with(const iron__source_at *at, uint64_t place) {
    size_t low = 0, high = at->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (at->files[middle].start <= place)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Two threads may both open a file; the second one's descriptor goes, and so does its error. */
static iron_status open_shared(shared_file *shared, iron__source_file *file, iron_error *err) {
    iron_status status = iron__source_file_open(file, err);
    int first = NOT_OPEN;

    if (status != IRON_OK) {
        file->fd = atomic_load(&shared->fd);
        return file->fd == NOT_OPEN ? status : IRON_OK;
    }
    if (!atomic_compare_exchange_strong(&shared->fd, &first, file->fd)) {
        iron__source_file_close(file);
        file->fd = first;
    }
    return IRON_OK;
}

/* Up to `room` bytes from a place in one file on, as many as it has. */
static iron_status read_piece(iron__source_at *at, size_t index, uint64_t place, char *to,
                              size_t room, size_t *got, const atomic_bool *stop, iron_error *err) {
    shared_file *shared = &at->files[index];
    iron__source_file file = view_of(at, index, place);
    uint64_t rest = file.bytes - file.taken;
    size_t want = room < rest ? room : (size_t)rest;

    *got = 0;
    if (want == 0)
        return IRON_OK;
    if (file.fd == NOT_OPEN)
        IRON_TRY(open_shared(shared, &file, err));
    IRON_TRY(iron__source_file_read(&file, to, want, got, stop, err));
    if (*got < want)
        return iron__source_file_check_end(&file, iron_source_dtype(at->source), err);
    if (atomic_fetch_sub(&shared->left, want) == want) {
        atomic_store(&shared->fd, NOT_OPEN);
        iron__source_file_close(&file);
    }
    return IRON_OK;
}

iron_status iron__source_at_read(iron__source_at *at, uint64_t first, void *tokens, size_t count,
                                 const atomic_bool *stop, iron_error *err) {
    size_t width = iron_dtype_bytes(iron_source_dtype(at->source));
    uint64_t place = at->begin + first * width;
    size_t room = count * width, filled = 0;

    for (size_t k = file_with(at, place); filled < room; k++) {
        size_t got;

        IRON_TRY(read_piece(at, k, place + filled, (char *)tokens + filled, room - filled, &got,
                            stop, err));
        filled += got;
    }
    return IRON_OK;
}
