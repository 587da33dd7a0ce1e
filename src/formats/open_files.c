/* SPDX-License-Identifier: MIT */
/*
 * open_files.c: see open_files.h.
 *
 * All threads that read a file use one descriptor: a file that is renamed over or removed meanwhile
 * stays for all of them what the first one opened. If it was closed for want of room and is not the
 * same file when it is opened again, that is an error: no result is made of two versions.
 *
 * Invariants, under the mutex: 1. a file is in at most one place; 2. a place with users, or with
 * a descriptor of -1, is never taken from its file. A thread that finds all places in use waits for
 * one: their users are reading regular files and come back.
 */
#include "formats/open_files.h"

#include "core/fail.h"
#include "core/memory.h"
#include "formats/source_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define FREE SIZE_MAX

static const iron__open_file free_place = {.index = FREE, .fd = -1, .direct.fd = -1};

iron_status iron__open_files_init(iron__open_files *t, const iron_source *source,
                                  const iron_allocator *allocator, iron_error *err) {
    *t = (iron__open_files){.source = source, .allocator = allocator};
    t->seen = iron__allocate(allocator, iron_source_file_count(source), sizeof *t->seen,
                             "a table of files", err);
    if (!t->seen)
        return IRON_E_NOMEM;
    for (size_t k = 0; k < IRON_OPEN_FILES_MAX; k++)
        t->places[k] = free_place;
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->changed, NULL);
    return IRON_OK;
}

static void close_place(const iron__open_files *t, iron__open_file *place) {
    iron__source_file file = {.fd = place->fd};

    if (place->index != FREE) {
        file.path = iron_source_file(t->source, place->index);
        iron__source_file_close(&file);
        iron__direct_close(&place->direct);
    }
    *place = free_place;
}

void iron__open_files_deinit(iron__open_files *t) {
    for (size_t k = 0; k < IRON_OPEN_FILES_MAX; k++)
        close_place(t, &t->places[k]);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->mutex);
    iron__release(t->allocator, t->seen);
}

static iron__open_file *place_of(iron__open_files *t, size_t index) {
    iron__open_file *place = &t->places[t->seen[index].place];

    return place->index == index ? place : NULL;
}

/* The file that nobody uses, and nobody used for longest. */
static iron__open_file *oldest_idle(iron__open_files *t) {
    iron__open_file *oldest = NULL;

    for (size_t k = 0; k < IRON_OPEN_FILES_MAX; k++) {
        iron__open_file *place = &t->places[k];

        if (place->index != FREE && place->users == 0 &&
            (!oldest || place->last_use < oldest->last_use))
            oldest = place;
    }
    return oldest;
}

/* A place for another file; NULL: all are in use. */
static iron__open_file *make_room(iron__open_files *t) {
    iron__open_file *place = NULL;

    for (size_t k = 0; k < IRON_OPEN_FILES_MAX; k++)
        if (t->places[k].index == FREE)
            return &t->places[k];
    place = oldest_idle(t);
    if (place)
        close_place(t, place);
    return place;
}

/* The process may open no more files: an idle one of ours makes room, or one in use once it is
 * idle. False: none of them is ours. */
static bool wait_for_descriptor(iron__open_files *t) {
    iron__open_file *idle;
    bool are_ours = true;

    pthread_mutex_lock(&t->mutex);
    while (!(idle = oldest_idle(t)) && are_ours) {
        are_ours = false;
        for (size_t k = 0; k < IRON_OPEN_FILES_MAX; k++)
            are_ours = are_ours || t->places[k].fd >= 0;
        if (are_ours)
            pthread_cond_wait(&t->changed, &t->mutex);
    }
    if (idle)
        close_place(t, idle);
    pthread_mutex_unlock(&t->mutex);
    return idle != NULL;
}

static iron_status open_file(iron__open_files *t, size_t index, iron__source_file *file,
                             struct stat *info, iron_error *err) {
    iron_error why = {0};
    iron_status status;

    *file = (iron__source_file){.path = iron_source_file(t->source, index), .fd = -1};
    while ((status = iron__source_file_open(file, &why)) != IRON_OK) {
        bool is_full = why.native == EMFILE || why.native == ENFILE;

        if (is_full && wait_for_descriptor(t))
            continue;
        if (err)
            *err = why;
        return status;
    }
    if (fstat(file->fd, info) != 0) {
        status = iron__fail(err, IRON_E_IO, errno, "cannot look at %.120s: %s", file->path,
                            strerror(errno));

        iron__source_file_close(file);
        return status;
    }
    return IRON_OK;
}

/* With the mutex held: is it the file that was opened under this name before? */
static iron_status check_identity(iron__first_seen *seen, const char *path, const struct stat *info,
                                  iron_error *err) {
    IRON_FAIL_IF(seen->is_known && (seen->device != info->st_dev || seen->inode != info->st_ino),
                 err, IRON_E_IO, "%.120s was replaced by another file while being read", path);
    seen->device = info->st_dev;
    seen->inode = info->st_ino;
    seen->is_known = 1;
    return IRON_OK;
}

/* Opens the file that a place was reserved for; others may use the table meanwhile. */
static iron_status fill_place(iron__open_files *t, iron__open_file *place, iron_error *err) {
    size_t index = place->index;
    iron__source_file file;
    struct stat info = {0};
    iron_status status = open_file(t, index, &file, &info, err);
    iron__direct_file direct = iron__direct_open(file.fd, t->how);

    pthread_mutex_lock(&t->mutex);
    if (status == IRON_OK) {
        status = check_identity(&t->seen[index], file.path, &info, err);
        place->fd = file.fd;
        place->direct = direct;
    }
    if (status != IRON_OK)
        close_place(t, place);
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
    return status;
}

iron_status iron__open_files_take(iron__open_files *t, size_t index, int *fd,
                                  iron__direct_file *direct, iron_error *err) {
    iron__open_file *place;
    bool is_open;

    pthread_mutex_lock(&t->mutex);
    for (;;) {
        place = place_of(t, index);
        is_open = place && place->fd >= 0;
        if (!place)
            place = make_room(t);
        else if (!is_open)
            place = NULL; /* another thread is opening it */
        if (place)
            break;
        pthread_cond_wait(&t->changed, &t->mutex);
    }
    if (!is_open) {
        *place = free_place;
        place->index = index;
        t->seen[index].place = (uint32_t)(place - t->places);
    }
    place->users++;
    place->last_use = ++t->clock;
    pthread_mutex_unlock(&t->mutex);
    if (!is_open)
        IRON_TRY(fill_place(t, place, err));
    *fd = place->fd;
    *direct = place->direct;
    return IRON_OK;
}

void iron__open_files_give_back(iron__open_files *t, size_t index) {
    pthread_mutex_lock(&t->mutex);
    if (--t->places[t->seen[index].place].users == 0)
        pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
}
