/* SPDX-License-Identifier: MIT */
/*
 * source.h: the inside doors of iron_source.
 *
 *   iron__source_read   the stream in order, by one thread, which another one can call off
 *   iron__source_at     a source of regular files alone, read anywhere by many threads at once
 *
 * Where a stop flag is taken it may be NULL; once it is set, reading gives up with IRON_E_CANCELLED
 * within a tenth of a second, even while a pipe's other end is silent.
 */
#ifndef IRON_FORMATS_SOURCE_H
#define IRON_FORMATS_SOURCE_H

#include "formats/direct.h"

#include <stdatomic.h>
#include <stdbool.h>

struct iron__layout;

/* iron_source_read that can be called off. */
iron_status iron__source_read(iron_source *source, void *tokens, size_t capacity, size_t *count,
                              const atomic_bool *stop, iron_error *err);

/* Is every file a regular one with a name? Not standard input, even if it is a file: whoever shares
 * its offset with us expects it to move as we read. */
bool iron__source_is_seekable(const iron_source *source);

/* Tokens read so far, and going on from another one; of seekable sources. */
uint64_t iron__source_position(const iron_source *source);
void iron__source_seek(iron_source *source, uint64_t position);

/* Where a token lies: the file, and the byte in it, its header counted. `position` counts from the
 * beginning of the source, which must be seekable. False: there is no such token. */
bool iron__source_locate(const iron_source *source, uint64_t position, size_t *index,
                         uint64_t *byte);

/* What was found out of a file when the source was opened. */
const struct iron__layout *iron__source_layout(const iron_source *source, size_t index);

/* Size of a file when the source was opened, or IRON_COUNT_UNKNOWN. */
uint64_t iron__source_file_bytes(const iron_source *source, size_t index);

/* After all was read: have the regular files still the size and the identity that they had when the
 * source was opened? IRON_E_IO: one has not. */
iron_status iron__source_check_unchanged(const iron_source *source, iron_error *err);

/* FNV-1a of the first and the last IRON_SAMPLE_BYTES of a file as it lies on the disk, or of all of
 * it if it is no longer than both: two files of one name and size are told apart by it, unless they
 * differ in between. *is_there: not of pipes, nor of standard input. */
#define IRON_SAMPLE_BYTES 4096u
iron_status iron__source_sample(const iron_source *source, size_t index, uint64_t *sample,
                                bool *is_there, iron_error *err);

/* A seekable source, from its position on, for many threads. Borrows the source, which nobody may
 * move meanwhile. */
typedef struct iron__source_at iron__source_at;

iron_status iron__source_at_open(const iron_source *source, const iron_allocator *allocator,
                                 iron__source_at **out, iron_error *err);
void iron__source_at_close(iron__source_at *at);

/* Whether files are read past the page cache: said before the first read; NEVER if it is not. And
 * how many bytes were. */
void iron__source_at_direct(iron__source_at *at, iron__direct how);
uint64_t iron__source_at_direct_bytes(const iron__source_at *at);

/* How many tokens there are from the position on. */
uint64_t iron__source_at_tokens(const iron__source_at *at);

/* Reads exactly the tokens first ... first+count-1, counted from the position, which must be there.
 * Any thread, any order, any number of times. */
iron_status iron__source_at_read(iron__source_at *at, uint64_t first, void *tokens, size_t count,
                                 const atomic_bool *stop, iron_error *err);

#endif
