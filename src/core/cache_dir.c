/* SPDX-License-Identifier: MIT */
/*
 * cache_dir.c: where the cache folder is. The rules are those of the XDG base directories: a
 * relative path in their variables is ignored.
 */
#include "core/cache_dir.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *absolute(const char *variable) {
    const char *value = getenv(variable);

    return value && value[0] == '/' ? value : NULL;
}

char *iron__cache_folder(void) {
    const char *own = getenv("IRON_CACHE_DIR"), *xdg = absolute("XDG_CACHE_HOME");
    const char *home = absolute("HOME");
    char *path = NULL;
    int length = -1;

    if (own && own[0])
        length = asprintf(&path, "%s", own);
    else if (xdg)
        length = asprintf(&path, "%s/iron", xdg);
    else if (home)
        length = asprintf(&path, "%s/.cache/iron", home);
    return length >= 0 ? path : NULL;
}

char *iron__cache_path(const char *prefix, uint64_t hash, const char *suffix) {
    char *directory = iron__cache_folder(), *path = NULL;
    int length = -1;

    if (directory)
        length = asprintf(&path, "%s/%s-%016" PRIx64 "%s", directory, prefix, hash, suffix);
    free(directory);
    return length >= 0 ? path : NULL;
}

void iron__cache_make(void) {
    char *path = iron__cache_folder();

    if (!path)
        return;
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    (void)mkdir(path, 0700);
    free(path);
}
