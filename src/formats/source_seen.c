/* SPDX-License-Identifier: MIT */
/*
 * source_seen.c: are the files of a source still what they were when it was opened? One that was
 * cut while it was read has said so itself. One that grew, or was replaced, has not: what was read
 * of it is a state that it never had, or that nobody will find again. And what little of a file
 * tells it from another one of its name and size.
 */
#include "formats/source_parts.h"

#include "core/fail.h"
#include "core/fnv.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

int iron__source_stat(const char *path, struct stat *info) {
    return iron__path_is_stdin(path) ? fstat(STDIN_FILENO, info) : stat(path, info);
}

static iron_status check_file(const char *path, const iron__seen_file *seen, iron_error *err) {
    const char *name = iron__path_shown(path);
    struct stat info;

    if (iron__source_stat(path, &info) != 0)
        return iron__fail(err, IRON_E_IO, errno,
                          "cannot look at %.100s again: %s; it changed while "
                          "being read",
                          name, strerror(errno));
    IRON_FAIL_IF((uint64_t)info.st_size != seen->bytes, err, IRON_E_IO,
                 "%.100s has %" PRIu64 " bytes now, it had %" PRIu64
                 " when it was opened; it changed while being read",
                 name, (uint64_t)info.st_size, seen->bytes);
    IRON_FAIL_IF(info.st_dev != seen->device || info.st_ino != seen->inode, err, IRON_E_IO,
                 "%.100s was replaced by another file while being read", name);
    return IRON_OK;
}

iron_status iron__source_check_unchanged(const iron_source *source, iron_error *err) {
    for (size_t k = 0; k < source->files.count; k++)
        if (source->seen[k].is_regular)
            IRON_TRY(check_file(source->files.paths[k], &source->seen[k], err));
    return IRON_OK;
}

/* Adds so many bytes from a place on, which the file must have. */
static iron_status add_bytes(iron__source_file *file, uint64_t from, size_t bytes, uint64_t *hash,
                             iron_error *err) {
    unsigned char data[2 * IRON_SAMPLE_BYTES];
    size_t got = 0;

    file->taken = from;
    IRON_TRY(iron__source_file_read(file, data, bytes, &got, NULL, err));
    if (got < bytes)
        IRON_TRY(iron__source_file_check_end(file, err));
    *hash = iron__fnv(*hash, data, got);
    return IRON_OK;
}

iron_status iron__source_sample(const iron_source *source, size_t index, uint64_t *sample,
                                bool *is_there, iron_error *err) {
    uint64_t bytes = source->seen[index].bytes;
    iron__source_file file = {.path = source->files.paths[index], .bytes = bytes, .fd = -1};
    iron_status status;

    *sample = IRON_FNV_START;
    *is_there = source->seen[index].is_regular && !iron__path_is_stdin(file.path);
    if (!*is_there)
        return IRON_OK;
    IRON_TRY(iron__source_file_open(&file, err));
    if (bytes <= 2 * (uint64_t)IRON_SAMPLE_BYTES) {
        status = add_bytes(&file, 0, (size_t)bytes, sample, err);
    } else {
        status = add_bytes(&file, 0, IRON_SAMPLE_BYTES, sample, err);
        if (status == IRON_OK)
            status = add_bytes(&file, bytes - IRON_SAMPLE_BYTES, IRON_SAMPLE_BYTES, sample, err);
    }
    iron__source_file_close(&file);
    return status;
}
