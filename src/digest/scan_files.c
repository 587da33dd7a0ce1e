/* SPDX-License-Identifier: MIT */
/*
 * scan_files.c: a range of files on a disk, read in many places at once. Files are read, not
 * mapped: one that is cut meanwhile would end the process instead of the scan.
 */
#include "digest/scan.h"

#include "formats/source.h"

typedef struct file_range {
    iron__source_at *at;
    uint64_t first;
} file_range;

static iron_status fetch(void *context, uint64_t offset, size_t count, void *buffer,
                         const void **tokens, const atomic_bool *stop, iron_error *err) {
    const file_range *range = context;

    *tokens = buffer;
    return iron__source_at_read(range->at, range->first + offset, buffer, count, stop, err);
}

static iron_status run(iron__scan *scan, iron__crew *crew, file_range *range, iron_error *err) {
    iron__scan_stretch all = {.first = scan->first,
                              .count = scan->count,
                              .ahead = scan->stream_tokens - scan->first - scan->count,
                              .fetch = fetch,
                              .context = range};
    iron_status status = iron__scan_reserve(scan, scan->first + scan->count, err);

    if (status == IRON_OK)
        status = iron__crew_run(crew, &all, err);
    if (status == IRON_OK)
        iron__crew_settle(crew);
    return status;
}

iron_status iron__scan_files(iron__scan *scan, iron_error *err) {
    uint64_t before = iron__source_position(scan->source);
    file_range range = {.first = scan->base + scan->first};
    iron__crew *crew = NULL;
    iron_status status;

    /* positions are the stream's, whatever was read of it before */
    iron__source_seek(scan->source, 0);
    status = iron__source_at_open(scan->source, iron__allocator_default(), &range.at, err);
    if (status == IRON_OK)
        status = iron__crew_create(scan, scan->count / iron__crew_piece_tokens(scan) + 1, true,
                                   &crew, err);
    if (status == IRON_OK)
        status = run(scan, crew, &range, err);
    iron__crew_destroy(crew);
    iron__source_at_close(range.at);
    iron__source_seek(scan->source, before);
    return status;
}
