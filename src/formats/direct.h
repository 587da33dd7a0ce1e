/* SPDX-License-Identifier: MIT */
/*
 * direct.h: reading a file past the page cache.
 *
 * A file that is not in the page cache comes from the disk either way; past the cache it is not
 * copied once more, and nothing has to make room for it. What is in the cache is faster from there.
 * Direct reading wants whole blocks at whole blocks in memory: what is neither goes through a
 * buffer, and what cannot be read directly at all is left to whoever reads in the ordinary way,
 * with the words that they have for what goes wrong.
 */
#ifndef IRON_FORMATS_DIRECT_H
#define IRON_FORMATS_DIRECT_H

#include <iron/iron.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* COLD: files that are hardly in the page cache, and long enough to matter. */
typedef enum iron__direct { IRON_DIRECT_NEVER, IRON_DIRECT_COLD, IRON_DIRECT_ALWAYS } iron__direct;

/* A second descriptor of an open file, for direct reading, and how much of it: whole blocks as
 * long as it is now. fd is -1 if that is not wanted or cannot be had. */
typedef struct iron__direct_file {
    int fd;
    uint64_t bytes;
} iron__direct_file;

iron__direct_file iron__direct_open(int fd, iron__direct how);
void iron__direct_close(iron__direct_file *file); /* also one that is not open */

/* Buffers for threads that read at the same time, made when they are needed: pages of their own,
 * since an iron_allocator is not for readers' threads. */
#define IRON_DIRECT_IDLE 64u
typedef struct iron__direct_buffers {
    pthread_mutex_t mutex;
    size_t count;
    char *idle[IRON_DIRECT_IDLE];
} iron__direct_buffers;

void iron__direct_buffers_init(iron__direct_buffers *b);
void iron__direct_buffers_deinit(iron__direct_buffers *b);

/* Reads up to `want` bytes from byte `at` on, to any address. Returns how many it brought; where it
 * stops short of `want`, the ordinary way goes on: at the file's end, at an error, when called off.
 */
size_t iron__direct_read(iron__direct_buffers *b, const iron__direct_file *file, uint64_t at,
                         void *to, size_t want, const atomic_bool *stop);

#endif
