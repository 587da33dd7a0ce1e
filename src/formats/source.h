/* SPDX-License-Identifier: MIT */
/*
 * source.h: the inside doors of iron_source.
 *
 *   iron__source_read   the stream in order, by one thread, which another one can call off
 *   iron__source_at     a source of regular files alone, read anywhere by many threads at once
 *   iron__source_file   what both are made of: one open file and how far it has been read
 *
 * Where a stop flag is taken it may be NULL; once it is set, reading gives up with IRON_E_CANCELLED
 * within a tenth of a second, even while a pipe's other end is silent.
 */
#ifndef IRON_FORMATS_SOURCE_H
#define IRON_FORMATS_SOURCE_H

#include <iron/iron.h>

#include <stdatomic.h>
#include <stdbool.h>

/* iron_source_read that can be called off. */
iron_status iron__source_read(iron_source *source, void *tokens, size_t capacity, size_t *count,
                              const atomic_bool *stop, iron_error *err);

/* Is every file a regular one with a name? Not standard input, even if it is a file: whoever shares
 * its offset with us expects it to move as we read. */
bool iron__source_is_seekable(const iron_source *source);

/* Tokens read so far, and going on from another one; of seekable sources. */
uint64_t iron__source_position(const iron_source *source);
void iron__source_seek(iron_source *source, uint64_t position);

/* Size of a file when the source was opened, or IRON_COUNT_UNKNOWN. */
uint64_t iron__source_file_bytes(const iron_source *source, size_t index);

typedef struct iron__source_file {
    const char *path;
    uint64_t bytes; /* or IRON_COUNT_UNKNOWN */
    uint64_t taken; /* bytes from its beginning to where reading goes on */
    int fd;         /* -1 while it is not open */
} iron__source_file;

/* Opens file->path, never waiting for a pipe's writer. Closing a file that is not open is fine. */
iron_status iron__source_file_open(iron__source_file *file, iron_error *err);
void iron__source_file_close(iron__source_file *file);

/* Reads until `want` bytes are there or the file ends; `taken` moves along. Regular files are read
 * by place, so that a descriptor may serve several threads, each with a struct of its own. */
iron_status iron__source_file_read(iron__source_file *file, void *to, size_t want, size_t *got,
                                   const atomic_bool *stop, iron_error *err);

/* The file has ended where it stands: an error if that is not where it should. */
iron_status iron__source_file_check_end(const iron__source_file *file, iron_dtype dtype,
                                        iron_error *err);

/* A seekable source, from its position on, for many threads. Borrows the source, which nobody may
 * move meanwhile. */
typedef struct iron__source_at iron__source_at;

iron_status iron__source_at_open(const iron_source *source, const iron_allocator *allocator,
                                 iron__source_at **out, iron_error *err);
void iron__source_at_close(iron__source_at *at);

/* How many tokens there are from the position on. */
uint64_t iron__source_at_tokens(const iron__source_at *at);

/* Reads exactly the tokens first ... first+count-1, counted from the position, which must be there.
 * Any thread, any order; but each token once, since a file is closed when all of it was read. */
iron_status iron__source_at_read(iron__source_at *at, uint64_t first, void *tokens, size_t count,
                                 const atomic_bool *stop, iron_error *err);

#endif
