/* SPDX-License-Identifier: MIT */
/*
 * source_parts.h: what an iron_source is made of, for the files that share it: source_open.c finds
 * out what the files are, source.c reads them, source_seen.c looks whether they are still that.
 */
#ifndef IRON_FORMATS_SOURCE_PARTS_H
#define IRON_FORMATS_SOURCE_PARTS_H

#include "formats/file_list.h"
#include "formats/format.h"
#include "formats/source.h"

#include <sys/stat.h>

/* What a regular file was when it was opened. */
typedef struct iron__seen_file {
    bool is_regular;
    uint64_t bytes; /* all of it, also of standard input that others have read from */
    dev_t device;
    ino_t inode;
} iron__seen_file;

struct iron_source {
    iron_dtype dtype;           /* of all files; NONE only while the source is being opened */
    size_t dtype_file;          /* the file that said so, if `given` did not */
    iron_dtype given;           /* what the user says; NONE: nothing */
    bool is_for_raw;            /* and says only of files that do not say it themselves */
    bool is_seekable;           /* regular files with names alone; does not change */
    const iron__format *forced; /* NULL: looked for in each file */
    iron__file_list files;
    iron__layout *layouts; /* of each file */
    iron__seen_file *seen; /* of each file, too */
    uint64_t tokens;

    size_t current;         /* index of the file being read */
    uint64_t done;          /* bytes of its tokens that were read */
    iron__source_file file; /* the current one; not open before it is read */
};

/* Looks into the current file, which is open and is a pipe: what it is, and whether its tokens are
 * those of the source. */
iron_status iron__source_look_into(iron_source *source, const atomic_bool *stop, iron_error *err);

/* Of a path, or of standard input; 0, or -1 and errno. */
int iron__source_stat(const char *path, struct stat *info);

#endif
