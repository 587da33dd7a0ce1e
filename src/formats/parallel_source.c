/* SPDX-License-Identifier: MIT */
/*
 * parallel_source.c: a source of regular files, read at many positions at once.
 *
 * One thread does not get the full memory bandwidth out of the page cache; two threads at different
 * positions get 1.9 times as much (two cores of a Neoverse V1). All threads that read a file share
 * one descriptor and use pread. The descriptors are in a small table, because a source may have
 * 100,000 files: a file in frequent use stays open, and the least recently used one is closed when
 * another needs its entry.
 *
 * Sharing a descriptor also means that a file that is renamed or removed meanwhile stays the same
 * for all threads. If it was closed to free an entry and is another file when it is opened again,
 * that is an error: a result never mixes two versions.
 *
 * Invariants of the table, under its mutex: 1. a file has at most one entry; 2. an entry with
 * users, or with a descriptor of -1, is never given to another file. A thread that finds all
 * entries in use waits for one: their users are reading regular files and will finish.
 *
 * Direct reads. A file that is not in the page cache comes from the disk in any case; past the
 * cache it is not copied a second time and evicts nothing. Data in the cache is faster from there.
 * Direct reads need whole blocks at block-aligned addresses in memory: other reads go through a
 * buffer, and whatever cannot be read directly is left to ordinary reads, which also report the
 * errors. Blocks are pages of 4096 bytes, which any disk accepts; a file system that needs larger
 * ones refuses, and is read in the ordinary way.
 *
 * Mapped reads. Copying out of the page cache takes longer than a seal. A caller that looks at
 * tokens once therefore gets them where they are: large files that are in the page cache are mapped
 * as a whole while they are open, and pages that were used are dropped, so that resident memory
 * stays bounded. Neither takes the lock of the address space from other threads, as mapping a part
 * for each use would. Reading a page that a truncated file no longer has raises SIGBUS. A source
 * with mapped files therefore has a handler for it, which ends the use; an ordinary read then
 * reports the error. All other signals of that kind go to the handler that was there before.
 */
#include "formats/source.h"

#include "core/array.h"
#include "core/fail.h"
#include "core/memory.h"
#include "core/number.h"
#include "formats/format.h"
#include "io/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK ((size_t)4096)

/* Largest single direct read, so that a stop flag is noticed soon. */
#define CALL_BYTES ((size_t)8 << 20)

/* Size of a buffer: disks are usually asked for 1 MiB at a time anyway. */
#define BUFFER_BYTES ((size_t)1 << 20)

/* For smaller files a second descriptor costs as much as it gains. */
#define COLD_BYTES   ((uint64_t)16 << 20)
#define COLD_SAMPLES 64u

/* As many as a feed ring has readers at most; the usual limit of a process is 1024. */
#define OPEN_FILES_MAX 64u

/* Descriptors that are not ours: standard streams, and one that is in use for a moment. And how
 * many sources share the others: the two of a diff, and one more. */
#define DESCRIPTORS_OTHER   4u
#define DESCRIPTORS_SOURCES 3u

/* Around a missing page, the kernel maps this many aligned bytes at once. */
#define FAULT_BYTES ((size_t)64 << 10)

/* A second descriptor of an open file for direct reads, and the number of bytes that can be read
 * with it: the whole blocks of its current size. fd is -1 if direct reads are off or impossible. */
typedef struct direct_file {
    int fd;
    uint64_t bytes;
} direct_file;

/* A file in memory; bytes is NULL if it is not mapped. */
typedef struct file_map {
    char *bytes;
    size_t size;
} file_map;

/* An entry of the table of open files. */
typedef struct open_file {
    size_t index; /* the file; FREE: unused entry */
    int fd;       /* -1: a thread is opening it */
    direct_file direct;
    file_map map;
    unsigned users;
    uint64_t last_use;
} open_file;

#define FREE SIZE_MAX

static const open_file free_entry = {.index = FREE, .fd = -1, .direct.fd = -1};

/* The identity of a file when it was first opened. */
typedef struct first_identity {
    dev_t device;
    ino_t inode;
    uint32_t entry; /* the entry that it had last */
    bool is_known;
} first_identity;

struct iron__parallel_source {
    const iron_source *source;
    const iron_allocator *allocator;
    uint64_t begin, end; /* tokens of the source */
    size_t width;
    size_t count;
    uint64_t *starts;              /* the stream position of each file's first token */
    iron__direct_mode direct_mode; /* for files that are opened from now on */
    bool is_mapping;               /* the same */
    bool has_bus_handler;          /* since the first file was mapped */
    first_identity *identities;    /* of each file */
    /* the table of open files */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t clock;
    size_t capacity; /* how many of the entries are used */
    open_file entries[OPEN_FILES_MAX];
    /* Buffers for direct reads, one per thread that reads, created on demand with mmap: an
     * iron_allocator must not be called from reader threads. Each idle one begins with the address
     * of the next. */
    pthread_mutex_t buffer_mutex;
    char *idle_buffers;
    atomic_uint_fast64_t direct_bytes; /* read past the page cache; for tests */
};

/* Maps a large file; small ones are not worth it. */
static file_map map_file(int fd, uint64_t bytes) {
    file_map map = {.bytes = NULL};
    void *at;

    if (bytes < COLD_BYTES || bytes > SIZE_MAX)
        return map;
    at = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED)
        map = (file_map){at, (size_t)bytes};
    return map;
}

static void unmap_file(file_map *map) {
    if (map->bytes)
        munmap(map->bytes, map->size);
    *map = (file_map){.bytes = NULL};
}

/* Whether less than half of a file is in the page cache, from a sample of evenly spread pages. For
 * files that this user neither owns nor may write, the kernel reports all pages as cached. */
static bool is_cold(const file_map *map) {
    uint64_t pages = map->size / BLOCK;
    unsigned missing = 0;

    if (!map->bytes || sysconf(_SC_PAGESIZE) != (long)BLOCK)
        return false;
    for (unsigned k = 0; k < COLD_SAMPLES; k++) {
        size_t page = (size_t)(pages / COLD_SAMPLES * k);
        unsigned char is_here = 1;

        if (mincore(map->bytes + page * BLOCK, BLOCK, &is_here) == 0 && !(is_here & 1))
            missing++;
    }
    return missing > COLD_SAMPLES / 2;
}

/* Drops the pages of a use, and those that the kernel mapped around them; another thread that needs
 * one of these gets it again. */
static void drop(const file_map *map, size_t from, size_t bytes) {
    size_t before = (uintptr_t)(map->bytes + from) % FAULT_BYTES, end = from + bytes;
    size_t after = FAULT_BYTES - 1 - (uintptr_t)(map->bytes + end - 1) % FAULT_BYTES;

    from -= before < from ? before : from;
    end += after < map->size - end ? after : map->size - end;
    (void)madvise(map->bytes + from, end - from, MADV_DONTNEED);
}

/* Opened through /proc/self/fd: the path may name another file by now. */
static direct_file direct_open(int fd, iron__direct_mode mode) {
    direct_file file = {.fd = -1};
    struct stat info;
    char name[40];

    if (mode == IRON_DIRECT_NEVER || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return file;
    if (mode == IRON_DIRECT_COLD) {
        file_map map = map_file(fd, (uint64_t)info.st_size);
        bool is_worth_it = is_cold(&map);

        unmap_file(&map);
        if (!is_worth_it)
            return file;
    }
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    file.fd = open(name, O_RDONLY | O_CLOEXEC | O_DIRECT);
    file.bytes = (uint64_t)info.st_size / BLOCK * BLOCK;
    return file;
}

/* NULL: out of memory; ordinary reads are used instead. */
static char *take_buffer(iron__parallel_source *p) {
    char *buffer;

    pthread_mutex_lock(&p->buffer_mutex);
    buffer = p->idle_buffers;
    if (buffer)
        memcpy(&p->idle_buffers, buffer, sizeof p->idle_buffers);
    pthread_mutex_unlock(&p->buffer_mutex);
    if (buffer)
        return buffer;
    buffer = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return buffer == MAP_FAILED ? NULL : buffer;
}

static void give_buffer(iron__parallel_source *p, char *buffer) {
    pthread_mutex_lock(&p->buffer_mutex);
    memcpy(buffer, &p->idle_buffers, sizeof p->idle_buffers);
    p->idle_buffers = buffer;
    pthread_mutex_unlock(&p->buffer_mutex);
}

/* Reads whole blocks to a block-aligned address; 0 at the end of the file and on error. */
static size_t read_blocks(const direct_file *file, uint64_t at, void *to, size_t bytes) {
    ssize_t count;

    do
        count = pread(file->fd, to, bytes, (off_t)at);
    while (count < 0 && errno == EINTR);
    return count > 0 ? (size_t)count : 0;
}

/* Reads up to `want` bytes from byte `at` on, to any address, and returns how many: directly into
 * memory where both are aligned, else through a buffer. It stops short at the end of the file, on
 * errors and when stopped; ordinary reads continue from there. */
static size_t direct_read(iron__parallel_source *p, const direct_file *file, uint64_t at, char *to,
                          size_t want, const atomic_bool *stop) {
    char *buffer = NULL;
    size_t done = 0, got = 1;

    for (; got > 0 && done < want && at + done < file->bytes && !(stop && atomic_load(stop));
         done += got) {
        uint64_t begin = (at + done) / BLOCK * BLOCK, left = file->bytes - begin;
        size_t lead = (size_t)(at + done - begin), need = lead + want - done;

        if (lead == 0 && (uintptr_t)(to + done) % BLOCK == 0 && need >= BLOCK) {
            need = need < CALL_BYTES ? need / BLOCK * BLOCK : CALL_BYTES;
            got = read_blocks(file, begin, to + done, iron__min_size(need, left));
            continue;
        }
        if (!buffer && !(buffer = take_buffer(p)))
            break;
        need = need < BUFFER_BYTES ? (need + BLOCK - 1) / BLOCK * BLOCK : BUFFER_BYTES;
        got = read_blocks(file, begin, buffer, iron__min_size(need, left));
        got = iron__min_size(got > lead ? got - lead : 0, want - done);
        memcpy(to + done, buffer + lead, got);
    }
    if (buffer)
        give_buffer(p, buffer);
    return done;
}

/* SIGBUS. A thread that uses a mapped file has a guard: in it the handler finds where to go on. */

typedef struct bus_guard {
    sigjmp_buf out;
    const char *begin, *end;
} bus_guard;

static _Thread_local bus_guard *volatile own_guard;

static pthread_mutex_t bus_mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned bus_users;
static struct sigaction bus_before;

static void on_bus_error(int number, siginfo_t *info, void *context) {
    bus_guard *guard = own_guard;
    const char *at = info->si_addr;

    if (guard && info->si_code > 0 && at >= guard->begin && at < guard->end)
        siglongjmp(guard->out, 1);
    if (bus_before.sa_flags & SA_SIGINFO) {
        bus_before.sa_sigaction(number, info, context);
    } else if (bus_before.sa_handler == SIG_IGN && info->si_code <= 0) {
        return; /* sent by a process */
    } else if (bus_before.sa_handler == SIG_DFL || bus_before.sa_handler == SIG_IGN) {
        signal(number, SIG_DFL);
        raise(number); /* delivered when this handler returns */
    } else {
        bus_before.sa_handler(number);
    }
}

static void bus_handler_retain(void) {
    struct sigaction ours = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    pthread_mutex_lock(&bus_mutex);
    sigemptyset(&ours.sa_mask);
    if (bus_users++ == 0)
        sigaction(SIGBUS, &ours, &bus_before);
    pthread_mutex_unlock(&bus_mutex);
}

/* Restores the handler of before, unless somebody has replaced ours. */
static void bus_handler_release(void) {
    struct sigaction now;

    pthread_mutex_lock(&bus_mutex);
    if (--bus_users == 0 && sigaction(SIGBUS, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
        now.sa_sigaction == on_bus_error)
        sigaction(SIGBUS, &bus_before, NULL);
    pthread_mutex_unlock(&bus_mutex);
}

/* Calls `use`; false if it was left because the mapped tokens were no longer there. Threads of a
 * pool block all signals, and the kernel ends a process that blocks this one. */
static bool use_guarded(bus_guard *guard, iron__tokens_use use, void *context, const void *tokens,
                        iron_status *status, iron_error *err) {
    bus_guard *volatile outer = own_guard;
    sigset_t bus, before;
    bool is_whole = false;

    sigemptyset(&bus);
    sigaddset(&bus, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &bus, &before);
    if (sigsetjmp(guard->out, 0) == 0) {
        own_guard = guard;
        *status = use(context, tokens, err);
        is_whole = true;
    }
    own_guard = outer;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_whole;
}

/* A share of the descriptors that the process may have, two for each file. */
static size_t open_files_capacity(void) {
    struct rlimit limit;
    uint64_t share;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= DESCRIPTORS_OTHER)
        return 1;
    share = (limit.rlim_cur - DESCRIPTORS_OTHER) / ((rlim_t)2 * DESCRIPTORS_SOURCES);
    return iron__min_size(OPEN_FILES_MAX, iron__max(share, 1));
}

static void close_entry(const iron__parallel_source *p, open_file *entry) {
    iron__input file = {.fd = entry->fd};

    if (entry->index != FREE) {
        file.path = iron_source_file(p->source, entry->index);
        iron__input_close(&file);
        if (entry->direct.fd >= 0)
            close(entry->direct.fd);
        unmap_file(&entry->map);
    }
    *entry = free_entry;
}

/* The least recently used entry without users, or a free one if that will do; NULL: none. */
static open_file *oldest_idle(iron__parallel_source *p, bool may_be_free) {
    open_file *oldest = NULL;

    for (size_t k = 0; k < p->capacity; k++) {
        open_file *entry = &p->entries[k];

        if ((may_be_free || entry->index != FREE) && entry->users == 0 &&
            (!oldest || entry->last_use < oldest->last_use))
            oldest = entry;
    }
    return oldest;
}

/* The process has reached its limit of open files: closes an idle file of ours, waiting until one
 * is idle. False: none of the open files are ours. */
static bool wait_for_descriptor(iron__parallel_source *p) {
    open_file *idle;
    bool are_ours = true;

    pthread_mutex_lock(&p->mutex);
    while (!(idle = oldest_idle(p, false)) && are_ours) {
        are_ours = false;
        for (size_t k = 0; k < p->capacity; k++)
            are_ours = are_ours || p->entries[k].fd >= 0;
        if (are_ours)
            pthread_cond_wait(&p->changed, &p->mutex);
    }
    if (idle)
        close_entry(p, idle);
    pthread_mutex_unlock(&p->mutex);
    return idle != NULL;
}

/* Opens the file that an entry was reserved for, waiting for a descriptor if the process has too
 * many. Other threads may use the table meanwhile. */
static iron_status fill_entry(iron__parallel_source *p, open_file *entry, iron_error *err) {
    size_t index = entry->index;
    iron__input file = {.path = iron_source_file(p->source, index), .fd = -1};
    direct_file direct = {.fd = -1};
    file_map map = {.bytes = NULL};
    struct stat info = {0};
    iron_error why = {0};
    iron_status status;

    while ((status = iron__input_open(&file, &why)) != IRON_OK &&
           (why.native == EMFILE || why.native == ENFILE) && wait_for_descriptor(p))
        ;
    if (status != IRON_OK) {
        (void)iron__fail_again(err, &why);
    } else if (fstat(file.fd, &info) != 0) {
        status = iron__fail_path(err, "stat", file.path, errno);
        iron__input_close(&file);
    } else {
        direct = direct_open(file.fd, p->direct_mode);
        if (p->is_mapping)
            map = map_file(file.fd, (uint64_t)info.st_size);
    }
    /* What a disk must deliver comes sooner by ordinary reads, which read ahead. */
    if (is_cold(&map))
        unmap_file(&map);
    /* so that dropping pages does not mark them as in frequent use */
    if (map.bytes)
        (void)madvise(map.bytes, map.size, MADV_SEQUENTIAL);
    pthread_mutex_lock(&p->mutex);
    if (status == IRON_OK) {
        first_identity *first = &p->identities[index];

        if (first->is_known && (first->device != info.st_dev || first->inode != info.st_ino))
            status = iron__fail(err, IRON_E_IO, 0,
                                "%.120s was replaced by another file while being read", file.path);
        else
            *first = (first_identity){info.st_dev, info.st_ino, first->entry, 1};
        entry->fd = file.fd;
        entry->direct = direct;
        entry->map = map;
    }
    if (entry->map.bytes && !p->has_bus_handler) {
        bus_handler_retain();
        p->has_bus_handler = true;
    }
    if (status != IRON_OK)
        close_entry(p, entry);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
    return status;
}

/* A file's entry, to be read until released. It is an error if the file is not the one that was
 * opened first. */
static iron_status open_files_acquire(iron__parallel_source *p, size_t index, const open_file **out,
                                      iron_error *err) {
    open_file *entry;
    bool is_open;

    pthread_mutex_lock(&p->mutex);
    for (;;) {
        entry = &p->entries[p->identities[index].entry];
        if (entry->index != index)
            entry = NULL;
        is_open = entry && entry->fd >= 0;
        if (!entry)
            entry = oldest_idle(p, true);
        else if (!is_open)
            entry = NULL; /* another thread is opening it */
        if (entry)
            break;
        pthread_cond_wait(&p->changed, &p->mutex);
    }
    if (!is_open) {
        close_entry(p, entry);
        entry->index = index;
        p->identities[index].entry = (uint32_t)(entry - p->entries);
    }
    entry->users++;
    entry->last_use = ++p->clock;
    pthread_mutex_unlock(&p->mutex);
    if (!is_open)
        IRON_TRY(fill_entry(p, entry, err));
    *out = entry;
    return IRON_OK;
}

static void open_files_release(iron__parallel_source *p, size_t index) {
    pthread_mutex_lock(&p->mutex);
    if (--p->entries[p->identities[index].entry].users == 0)
        pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
}

iron_status iron__parallel_source_open(const iron_source *source, const iron_allocator *allocator,
                                       iron__parallel_source **out, iron_error *err) {
    iron__parallel_source *p;

    *out = NULL;
    IRON_TRY(IRON_ALLOCATE(&p, allocator, 1, "a file reader", err));
    p->source = source;
    p->allocator = allocator;
    p->width = iron_dtype_bytes(iron_source_dtype(source));
    p->begin = iron__source_position(source);
    p->count = iron_source_file_count(source);
    p->starts = iron__allocate(allocator, p->count, sizeof *p->starts, "a list of files", err);
    p->identities = iron__allocate(allocator, p->count, sizeof *p->identities, "a file table", err);
    p->capacity = open_files_capacity();
    for (size_t k = 0; k < p->capacity; k++)
        p->entries[k] = free_entry;
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->changed, NULL);
    pthread_mutex_init(&p->buffer_mutex, NULL);
    if (!p->starts || !p->identities) {
        iron__parallel_source_close(p);
        return IRON_E_NOMEM;
    }
    for (size_t k = 0; k < p->count; k++) {
        p->starts[k] = p->end;
        p->end += iron_source_file_tokens(source, k);
    }
    *out = p;
    return IRON_OK;
}

void iron__parallel_source_close(iron__parallel_source *p) {
    if (!p)
        return;
    for (size_t k = 0; k < p->capacity; k++)
        close_entry(p, &p->entries[k]);
    if (p->has_bus_handler)
        bus_handler_release();
    while (p->idle_buffers)
        munmap(take_buffer(p), BUFFER_BYTES);
    pthread_mutex_destroy(&p->buffer_mutex);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mutex);
    iron__release(p->allocator, p->identities);
    iron__release(p->allocator, p->starts);
    iron__release(p->allocator, p);
}

void iron__parallel_source_set_direct(iron__parallel_source *p, iron__direct_mode mode) {
    p->direct_mode = mode;
}

void iron__parallel_source_set_mapped(iron__parallel_source *p) { p->is_mapping = true; }

uint64_t iron__parallel_source_tokens(const iron__parallel_source *p) { return p->end - p->begin; }

/* The file that contains a token of the stream: the last one that starts there or before. */
static size_t file_with(const iron__parallel_source *p, uint64_t position) {
    return iron__array_find(p->starts, sizeof *p->starts, p->count, position);
}

/* Reads `want` bytes of a file from one of its tokens on; the file must have them all. Opening a
 * remote file that was opened before costs nothing. */
static iron_status read_piece(iron__parallel_source *p, size_t index, uint64_t token, char *to,
                              size_t want, const atomic_bool *stop, iron_error *err) {
    const iron__format_layout *l = iron__source_layout(p->source, index);
    iron__input file = {.path = iron_source_file(p->source, index),
                        .bytes = l->bytes,
                        .offset = l->data_offset + token * p->width,
                        .stop = stop,
                        .fd = -1};
    bool is_remote = iron__path_is_remote(file.path);
    const open_file *entry = NULL;
    iron_status status;
    size_t done = 0, got = 0;

    if (is_remote)
        IRON_TRY(iron__input_open(&file, err));
    else
        IRON_TRY(open_files_acquire(p, index, &entry, err));
    file.fd = entry ? entry->fd : file.fd;
    iron__layout_use_frames(l, &file);
    if (iron__layout_is_converted(l)) {
        status =
            iron__source_read_converted(p->source, index, &file, token, to, want / p->width, err);
    } else if (!entry) {
        status = iron__input_read_at(&file, file.offset, to, want, err);
    } else {
        if (entry->direct.fd >= 0) {
            done = direct_read(p, &entry->direct, file.offset, to, want, stop);
            p->direct_bytes += done;
            file.offset += done;
        }
        status = iron__input_read(&file, to + done, want - done, &got, err);
        if (status == IRON_OK && done + got < want)
            status = iron__input_check_end(&file, err);
    }
    if (is_remote)
        iron__input_close(&file);
    else
        open_files_release(p, index);
    return status;
}

iron_status iron__parallel_source_read(iron__parallel_source *p, uint64_t first, void *tokens,
                                       size_t count, const atomic_bool *stop, iron_error *err) {
    uint64_t position = p->begin + first;
    char *to = tokens;

    for (size_t k = file_with(p, position); count > 0; k++) {
        uint64_t token = position - p->starts[k];
        uint64_t rest = iron_source_file_tokens(p->source, k) - token;
        size_t some = count < rest ? count : (size_t)rest;

        if (some > 0)
            IRON_TRY(read_piece(p, k, token, to, some * p->width, stop, err));
        position += some;
        to += some * p->width;
        count -= some;
    }
    return IRON_OK;
}

/* A page of a mapped file was gone: an ordinary read says why. */
static iron_status why_gone(iron__parallel_source *p, size_t index, uint64_t token, size_t count,
                            iron_error *err) {
    char page[BLOCK];

    for (size_t some; count > 0; token += some, count -= some) {
        some = count < BLOCK / p->width ? count : BLOCK / p->width;
        IRON_TRY(read_piece(p, index, token, page, some * p->width, NULL, err));
    }
    IRON_FAIL(err, IRON_E_IO, "%.120s changed while being read",
              iron_source_file(p->source, index)); /* it was cut and grew again */
}

iron_status iron__parallel_source_use(iron__parallel_source *p, uint64_t first, size_t count,
                                      iron__tokens_use use, void *context, bool *is_used,
                                      iron_error *err) {
    uint64_t position = p->begin + first;
    size_t index = file_with(p, position), bytes = count * p->width;
    uint64_t token = position - p->starts[index];
    const iron__format_layout *layout = iron__source_layout(p->source, index);
    uint64_t at = layout->data_offset + token * p->width;
    const open_file *entry;
    iron_status status = IRON_OK;
    bool is_whole = true;
    bus_guard guard;

    *is_used = false;
    if (!p->is_mapping || count == 0 || count > iron_source_file_tokens(p->source, index) - token)
        return IRON_OK;
    if (iron__layout_is_converted(layout)) {
        /* Uses tokens that were decoded where they are. */
        const iron__block *held;
        const void *tokens;

        IRON_TRY(iron__source_hold(p->source, index, token, count, &tokens, &held, NULL, err));
        if (!held)
            return IRON_OK;
        *is_used = true;
        status = use(context, tokens, err);
        iron__source_release(p->source, held, count);
        return status;
    }
    if (at % p->width != 0 || iron__path_is_remote(iron_source_file(p->source, index)))
        return IRON_OK;
    IRON_TRY(open_files_acquire(p, index, &entry, err));
    if (at < entry->map.size && bytes <= entry->map.size - at) {
        *is_used = true;
        guard.begin = entry->map.bytes;
        guard.end = guard.begin + entry->map.size;
#ifdef MADV_POPULATE_READ
        /* maps the pages in one call instead of many page faults; where the kernel cannot (before
         * Linux 5.14), they are faults again */
        (void)madvise(entry->map.bytes + at / BLOCK * BLOCK, (size_t)(at % BLOCK) + bytes,
                      MADV_POPULATE_READ);
#endif
        is_whole = use_guarded(&guard, use, context, guard.begin + at, &status, err);
        drop(&entry->map, (size_t)at, bytes);
    }
    open_files_release(p, index);
    return is_whole ? status : why_gone(p, index, token, count, err);
}
