/* SPDX-License-Identifier: MIT */
/*
 * source.h: reading token files, for the other modules.
 *
 *   iron__source_*            an iron_source read in order by one thread
 *   iron__parallel_source_*   an iron_source of regular files, read at any position by many threads
 *   iron__file_list_*         the files that a user's arguments name
 *
 * A stop flag may be NULL; once it is set, reading fails with IRON_E_CANCELLED within a tenth of a
 * second, even while waiting for the writer of a pipe.
 */
#ifndef IRON_FORMATS_SOURCE_H
#define IRON_FORMATS_SOURCE_H

#include <iron/iron.h>

#include <stdatomic.h>
#include <stdbool.h>

typedef struct iron_documents iron_documents;
struct iron__format_layout;
struct iron__block;
struct iron__input;

iron_status iron__source_options_check(const iron_source_options *options, iron_error *err);

/* iron_source_read with a stop flag. */
iron_status iron__source_read(iron_source *source, void *tokens, size_t capacity, size_t *count,
                              const atomic_bool *stop, iron_error *err);

/* Whether every file is a regular file with a name. Standard input does not count, even if it is a
 * file: other processes that share its offset expect it to move as we read. */
bool iron__source_is_seekable(const iron_source *source);

/* The number of tokens read so far, and continuing at another one; for seekable sources. */
uint64_t iron__source_position(const iron_source *source);
void iron__source_seek(iron_source *source, uint64_t position);

/* Finds the file of a token and the token's byte offset in it, header included. `position` counts
 * from the beginning of the source, which must be seekable. False: there is no such token. */
bool iron__source_locate(const iron_source *source, uint64_t position, size_t *index,
                         uint64_t *byte);

/* The layout of a file, as found when the source was opened. */
const struct iron__format_layout *iron__source_layout(const iron_source *source, size_t index);

/* Reads tokens of a regular file whose tokens are not simply its bytes: big-endian, a table,
 * compressed. They must exist; `in` is the file, open. May be called from any thread. */
iron_status iron__source_read_converted(const iron_source *source, size_t index,
                                        const struct iron__input *in, uint64_t first, void *tokens,
                                        size_t count, iron_error *err);

/* Tokens of such a file where they are decoded, if all of them are in one block: then *held is not
 * NULL, and is to be released. */
iron_status iron__source_hold(const iron_source *source, size_t index, uint64_t first, size_t count,
                              const void **tokens, const struct iron__block **held,
                              const atomic_bool *stop, iron_error *err);
void iron__source_release(const iron_source *source, const struct iron__block *held, size_t count);

/* Rows of tables and documents of indexes (documents.c): what a file's format cuts it into. */
typedef enum iron__cut { IRON_CUT_NONE, IRON_CUT_ROWS, IRON_CUT_DOCUMENTS } iron__cut;

iron__cut iron__source_cut(const iron_source *source, size_t index);

/* What a caller does with a document: tokens first ... end-1 of the file. */
typedef iron_status (*iron__document_use)(void *context, uint64_t first, uint64_t end,
                                          iron_error *err);

/* Calls `use` for the documents that begin at tokens first ... end-1 of the file, in order, also
 * for empty ones; and for those that begin at `end`, if the file ends there. The documents belong
 * to one thread at a time. */
iron_status iron__documents_each(iron_documents *documents, uint64_t first, uint64_t end,
                                 iron__document_use use, void *context, const atomic_bool *stop,
                                 iron_error *err);

/* Whether all files are tables, so that the next two functions apply. */
bool iron__source_tells_starts(const iron_source *source);

/* Rows of a source that is read in order: after `note`, take_starts gives the positions in the
 * stream of the rows that begin in what was read since the last call. */
void iron__source_note_starts(iron_source *source);
iron_status iron__source_take_starts(iron_source *source, struct iron__block *places,
                                     iron_error *err);

/* Call after all tokens were read: IRON_E_IO if a regular file no longer has the size and identity
 * that it had when the source was opened. */
iron_status iron__source_check_unchanged(const iron_source *source, iron_error *err);

/* FNV-1a of the first and the last IRON_SAMPLE_BYTES of a file on disk, or of the whole file if it
 * is not longer than both. It distinguishes two files of the same name and size, unless they differ
 * only in between. Pipes and standard input have none: *is_there is false. */
#define IRON_SAMPLE_BYTES 4096u
iron_status iron__source_sample(const iron_source *source, size_t index, uint64_t *sample,
                                bool *is_there, iron_error *err);

/* A seekable source from its current position on, for many threads. Borrows the source, whose
 * position must not change meanwhile. */
typedef struct iron__parallel_source iron__parallel_source;

iron_status iron__parallel_source_open(const iron_source *source, const iron_allocator *allocator,
                                       iron__parallel_source **out, iron_error *err);
void iron__parallel_source_close(iron__parallel_source *p);

/* Which files are read past the page cache. COLD: files that are large enough to matter and mostly
 * not in the page cache. */
typedef enum iron__direct_mode {
    IRON_DIRECT_NEVER,
    IRON_DIRECT_COLD,
    IRON_DIRECT_ALWAYS
} iron__direct_mode;

/* Call before the first read; the default is NEVER. */
void iron__parallel_source_set_direct(iron__parallel_source *p, iron__direct_mode mode);

/* Large files in the page cache are mapped, for iron__parallel_source_use. Call before the first
 * read. From the first such file until the source is closed, the process has a handler for
 * SIGBUS. */
void iron__parallel_source_set_mapped(iron__parallel_source *p);

/* The number of tokens from the position on. */
uint64_t iron__parallel_source_tokens(const iron__parallel_source *p);

/* Reads exactly the tokens first ... first+count-1, counted from the position; they must exist. May
 * be called from any thread, in any order and repeatedly. */
iron_status iron__parallel_source_read(iron__parallel_source *p, uint64_t first, void *tokens,
                                       size_t count, const atomic_bool *stop, iron_error *err);

/* What a caller does with tokens; it must not keep the pointer. */
typedef iron_status (*iron__tokens_use)(void *context, const void *tokens, iron_error *err);

/* Calls `use` with the tokens first ... first+count-1 where they are mapped or decoded; *is_used is
 * false if they are not, or not in one place, and must be read. If the file is truncated meanwhile,
 * that is an error, and `use` may be left in the middle: while it reads tokens it must not hold
 * locks or other resources, and its results are void. May be called from any thread. */
iron_status iron__parallel_source_use(iron__parallel_source *p, uint64_t first, size_t count,
                                      iron__tokens_use use, void *context, bool *is_used,
                                      iron_error *err);

/* The files that a user's arguments name, in order. A directory that a library wrote as one
 * dataset stands for the files that its list names (files.c), any other for its files in natural
 * order (part-2 before part-10), without hidden files, subfolders and indexes of other files. With
 * options, files of a directory that are not tokens are skipped with a warning, and is_recursive,
 * include, exclude and the format's own names apply. A directory without files is an error. */
typedef struct iron_input_files {
    char **paths;
    size_t count, capacity;
    const iron_source_options *options; /* borrowed while it is filled; else NULL */
} iron__file_list;

/* Adds all paths of the options. */
iron_status iron__file_list_fill(iron__file_list *list, const iron_source_options *options,
                                 iron_error *err);
void iron__file_list_clear(iron__file_list *list);

#endif
