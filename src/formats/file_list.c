/* SPDX-License-Identifier: MIT */
/* file_list.c: see file_list.h. */
#include "formats/file_list.h"

#include "core/fail.h"
#include "formats/natural.h"
#include "formats/sidecar.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static iron_status no_memory(iron_error *err) {
    return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while listing files");
}

/* Takes `path`, also when it fails. */
static iron_status append(iron__file_list *list, char *path, iron_error *err) {
    if (!path)
        return no_memory(err);
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 16;
        char **paths = realloc(list->paths, capacity * sizeof *paths);

        if (!paths) {
            free(path);
            return no_memory(err);
        }
        list->paths = paths;
        list->capacity = capacity;
    }
    list->paths[list->count++] = path;
    return IRON_OK;
}

static char *join(const char *directory, const char *name) {
    size_t length = strlen(directory);
    const char *slash = length && directory[length - 1] == '/' ? "" : "/";
    char *path = NULL;

    return asprintf(&path, "%s%s%s", directory, slash, name) < 0 ? NULL : path;
}

static int by_natural_order(const void *a, const void *b) {
    return iron__natural_compare(*(char *const *)a, *(char *const *)b);
}

/* A folder in the folder is passed over, and so is what only tells about a token file beside it; a
 * file that cannot be looked at is a missing shard. */
static iron_status add_entry(iron__file_list *list, const char *path, const char *name,
                             iron_error *err) {
    char *file = join(path, name);
    struct stat info;
    int code;

    if (file && stat(file, &info) != 0) {
        code = errno;
        iron__fail(err, IRON_E_IO, code, "cannot open %.120s: %s", file, strerror(code));
        free(file);
        return IRON_E_IO;
    }
    if (file && (S_ISDIR(info.st_mode) || iron__sidecar_is(file))) {
        free(file);
        return IRON_OK;
    }
    return append(list, file, err);
}

static iron_status add_entries(iron__file_list *list, DIR *directory, const char *path,
                               iron_error *err) {
    struct dirent *entry;

    while ((errno = 0, entry = readdir(directory)))
        if (entry->d_name[0] != '.')
            IRON_TRY(add_entry(list, path, entry->d_name, err));
    if (errno)
        return iron__fail(err, IRON_E_IO, errno, "cannot list directory %.120s: %s", path,
                          strerror(errno));
    return IRON_OK;
}

static iron_status add_directory(iron__file_list *list, const char *path, iron_error *err) {
    size_t first = list->count;
    DIR *directory = opendir(path);
    iron_status status;

    if (!directory)
        return iron__fail(err, IRON_E_IO, errno, "cannot list directory %.120s: %s", path,
                          strerror(errno));
    status = add_entries(list, directory, path, err);
    closedir(directory);
    IRON_TRY(status);
    IRON_FAIL_IF(list->count == first, err, IRON_E_ARG,
                 "directory %.120s has no files; name files or a directory that has some", path);
    qsort(list->paths + first, list->count - first, sizeof *list->paths, by_natural_order);
    return IRON_OK;
}

iron_status iron__file_list_add(iron__file_list *list, const char *path, iron_error *err) {
    struct stat info;

    if (strcmp(path, "-") == 0)
        return append(list, strdup(path), err);
    if (stat(path, &info) != 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return add_directory(list, path, err);
    return append(list, strdup(path), err);
}

void iron__file_list_clear(iron__file_list *list) {
    for (size_t k = 0; k < list->count; k++)
        free(list->paths[k]);
    free(list->paths);
    *list = (iron__file_list){0};
}
