/* SPDX-License-Identifier: MIT */
/*
 * direct.c: see direct.h. Blocks are pages of 4096 bytes: what any disk takes; a file system that
 * wants larger ones refuses, and is read in the ordinary way.
 */
#include "formats/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK ((size_t)4096)

/* What one call asks for: a called-off reader notices that soon. */
#define CALL_BYTES ((size_t)8 << 20)

/* Through the buffer: 1 MiB is what disks are asked for at a time anyhow. */
#define BUFFER_BYTES ((size_t)1 << 20)

/* Below, opening a second descriptor costs what it brings. */
#define COLD_BYTES   ((uint64_t)16 << 20)
#define COLD_SAMPLES 64u

/* Is less than half of it in the page cache? Asked of single pages, spread evenly. Of a file that
 * is neither ours nor writable for us the kernel says that all of it is. */
static bool is_cold(int fd, uint64_t bytes) {
    uint64_t pages = bytes / BLOCK;
    unsigned missing = 0;
    char *map;

    if (bytes < COLD_BYTES || bytes > SIZE_MAX || sysconf(_SC_PAGESIZE) != (long)BLOCK)
        return false;
    map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return false;
    for (unsigned k = 0; k < COLD_SAMPLES; k++) {
        size_t page = (size_t)(pages / COLD_SAMPLES * k);
        unsigned char is_here = 1;

        if (mincore(map + page * BLOCK, BLOCK, &is_here) == 0 && !(is_here & 1))
            missing++;
    }
    munmap(map, (size_t)bytes);
    return missing > COLD_SAMPLES / 2;
}

/* By its descriptor's name: by its own it might be another file by now. */
iron__direct_file iron__direct_open(int fd, iron__direct how) {
    iron__direct_file file = {.fd = -1};
    struct stat info;
    char name[40];

    if (how == IRON_DIRECT_NEVER || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return file;
    if (how == IRON_DIRECT_COLD && !is_cold(fd, (uint64_t)info.st_size))
        return file;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    file.fd = open(name, O_RDONLY | O_CLOEXEC | O_DIRECT);
    file.bytes = (uint64_t)info.st_size / BLOCK * BLOCK;
    return file;
}

void iron__direct_close(iron__direct_file *file) {
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

void iron__direct_buffers_init(iron__direct_buffers *b) {
    pthread_mutex_init(&b->mutex, NULL);
    b->count = 0;
}

void iron__direct_buffers_deinit(iron__direct_buffers *b) {
    while (b->count > 0)
        munmap(b->idle[--b->count], BUFFER_BYTES);
    pthread_mutex_destroy(&b->mutex);
}

/* NULL: there is no memory, and reading is left to the ordinary way. */
static char *take_buffer(iron__direct_buffers *b) {
    char *taken = NULL;

    pthread_mutex_lock(&b->mutex);
    if (b->count > 0)
        taken = b->idle[--b->count];
    pthread_mutex_unlock(&b->mutex);
    if (taken)
        return taken;
    taken = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return taken == MAP_FAILED ? NULL : taken;
}

static void give_buffer(iron__direct_buffers *b, char *buffer) {
    pthread_mutex_lock(&b->mutex);
    if (b->count < IRON_DIRECT_IDLE) {
        b->idle[b->count++] = buffer;
        buffer = NULL;
    }
    pthread_mutex_unlock(&b->mutex);
    if (buffer)
        munmap(buffer, BUFFER_BYTES);
}

/* Whole blocks to a block's beginning; 0 at the end and at an error. */
static size_t read_blocks(const iron__direct_file *file, uint64_t at, void *to, size_t bytes) {
    ssize_t count;

    do
        count = pread(file->fd, to, bytes, (off_t)at);
    while (count < 0 && errno == EINTR);
    return count > 0 ? (size_t)count : 0;
}

static size_t read_straight(const iron__direct_file *file, uint64_t at, void *to, size_t want) {
    size_t bytes = want < CALL_BYTES ? want / BLOCK * BLOCK : CALL_BYTES;

    if (at % BLOCK != 0 || (uintptr_t)to % BLOCK != 0 || bytes == 0)
        return 0;
    if (bytes > file->bytes - at)
        bytes = (size_t)(file->bytes - at);
    return read_blocks(file, at, to, bytes);
}

static size_t read_through(iron__direct_buffers *b, const iron__direct_file *file, uint64_t at,
                           void *to, size_t want) {
    uint64_t begin = at / BLOCK * BLOCK;
    size_t lead = (size_t)(at - begin), bytes = BUFFER_BYTES, got;
    char *buffer = take_buffer(b);

    if (!buffer)
        return 0;
    if (want < BUFFER_BYTES - lead)
        bytes = (lead + want + BLOCK - 1) / BLOCK * BLOCK;
    if (bytes > file->bytes - begin)
        bytes = (size_t)(file->bytes - begin);
    got = read_blocks(file, begin, buffer, bytes);
    got = got > lead ? got - lead : 0;
    got = got < want ? got : want;
    memcpy(to, buffer + lead, got);
    give_buffer(b, buffer);
    return got;
}

size_t iron__direct_read(iron__direct_buffers *b, const iron__direct_file *file, uint64_t at,
                         void *to, size_t want, const atomic_bool *stop) {
    size_t done = 0;

    while (done < want && at + done < file->bytes && !(stop && atomic_load(stop))) {
        char *next = (char *)to + done;
        size_t got = read_straight(file, at + done, next, want - done);

        if (got == 0) /* not whole blocks, or memory that disks cannot write to */
            got = read_through(b, file, at + done, next, want - done);
        if (got == 0)
            break;
        done += got;
    }
    return done;
}
