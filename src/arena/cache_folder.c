/* SPDX-License-Identifier: MIT */
/* cache_folder.c: where built kernels and calibrations are kept, for those who want to say it. */
#include "core/cache_dir.h"
#include "core/fail.h"

#include <iron/iron_arena.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

iron_status iron_cache_folder(char *path, size_t size, iron_error *err) {
    char *file = iron__cache_path("any", 0, ""), *slash = file ? strrchr(file, '/') : NULL;
    size_t length = slash ? (size_t)(slash - file) : 0;
    bool fits = slash && length < size;

    if (size > 0)
        snprintf(path, size, "%.*s", fits ? (int)length : 0, file ? file : "");
    free(file);
    IRON_FAIL_IF(!slash, err, IRON_E_UNSUPPORTED,
                 "there is no folder to keep things in; set IRON_CACHE_DIR to one");
    IRON_FAIL_IF(!fits, err, IRON_E_ARG, "the cache folder's name has %zu bytes, and no room",
                 length);
    return IRON_OK;
}
