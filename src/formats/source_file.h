/* SPDX-License-Identifier: MIT */
/*
 * source_file.h: one open file or pipe, and how far it has been read. What a source and those who
 * look into a file's header are made of.
 */
#ifndef IRON_FORMATS_SOURCE_FILE_H
#define IRON_FORMATS_SOURCE_FILE_H

#include <iron/iron.h>

#include <stdatomic.h>
#include <stdbool.h>

/* As many bytes as it takes to recognise any format. */
#define IRON_HEAD_BYTES 8u

typedef struct iron__source_file {
    const char *path;
    uint64_t bytes; /* IRON_COUNT_UNKNOWN: a pipe or a device, which is taken as it comes */
    uint64_t start; /* of a regular file: where it begins, not 0 for standard input alone */
    uint64_t taken; /* bytes from its beginning to where reading goes on */
    bool moves;     /* regular, but read in order: standard input, whose offset others see */
    int fd;         /* -1 while it is not open */
    unsigned char ahead[IRON_HEAD_BYTES]; /* of a pipe: looked at, but not read yet */
    size_t ahead_count;
} iron__source_file;

bool iron__path_is_stdin(const char *path);
/* A path as messages show it: "standard input" for "-". */
const char *iron__path_shown(const char *path);

/* Opens file->path, never waiting for a pipe's writer. Closing a file that is not open is fine. */
iron_status iron__source_file_open(iron__source_file *file, iron_error *err);
void iron__source_file_close(iron__source_file *file);

/* Reads until `want` bytes are there or the file ends; `taken` moves along. Regular files are read
 * by place, so that a descriptor may serve several threads, each with a struct of its own. */
iron_status iron__source_file_read(iron__source_file *file, void *to, size_t want, size_t *got,
                                   const atomic_bool *stop, iron_error *err);

/* Copies up to IRON_HEAD_BYTES from where the file stands, which stay to be read; fewer when it
 * ends before. */
iron_status iron__source_file_peek(iron__source_file *file, unsigned char head[IRON_HEAD_BYTES],
                                   size_t *got, const atomic_bool *stop, iron_error *err);

/* A regular file has ended where it stands: an error if that is not where it should. */
iron_status iron__source_file_check_end(const iron__source_file *file, iron_error *err);

#endif
