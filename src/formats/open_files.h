/* SPDX-License-Identifier: MIT */
/*
 * open_files.h: descriptors of a source's files, shared by many threads and few at a time, however
 * many files there are. A file that is used often stays open; the one that nobody has used for
 * longest is closed when another needs its place.
 */
#ifndef IRON_FORMATS_OPEN_FILES_H
#define IRON_FORMATS_OPEN_FILES_H

#include "formats/direct.h"

#include <pthread.h>
#include <sys/types.h>

/* As many as a ring has readers at most; a process may usually open 1024. */
#define IRON_OPEN_FILES_MAX 64u

/* A descriptor in the table. */
typedef struct iron__open_file {
    size_t index; /* the file, or SIZE_MAX: the place is free */
    int fd;       /* -1: somebody is opening it */
    iron__direct_file direct;
    unsigned users;
    uint64_t last_use;
} iron__open_file;

/* What a file was when it was first opened. */
typedef struct iron__first_seen {
    dev_t device;
    ino_t inode;
    uint32_t place; /* where in the table to look first */
    uint32_t is_known;
} iron__first_seen;

typedef struct iron__open_files {
    const iron_source *source;
    iron__direct how; /* of files that are opened from now on; NEVER at first */
    const iron_allocator *allocator;
    iron__first_seen *seen;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t clock;
    iron__open_file places[IRON_OPEN_FILES_MAX];
} iron__open_files;

iron_status iron__open_files_init(iron__open_files *t, const iron_source *source,
                                  const iron_allocator *allocator, iron_error *err);
void iron__open_files_deinit(iron__open_files *t);

/* A descriptor of the file for reading by place, until it is given back, and one for reading
 * directly, if there is one. A file that is not the one that was opened first any more is refused.
 */
iron_status iron__open_files_take(iron__open_files *t, size_t index, int *fd,
                                  iron__direct_file *direct, iron_error *err);
void iron__open_files_give_back(iron__open_files *t, size_t index);

#endif
