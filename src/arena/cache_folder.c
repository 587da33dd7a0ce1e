/* SPDX-License-Identifier: MIT */
/* cache_folder.c: where built kernels and calibrations are kept, for those who want to say it. */
#include "core/cache_dir.h"
#include "core/fail.h"

#include <iron/iron_arena.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

iron_status iron_cache_folder(char *path, size_t size, iron_error *err) {
    char *folder = iron__cache_folder();
    size_t length = folder ? strlen(folder) : 0;
    bool is_there = folder != NULL, fits = length < size;

    if (size > 0)
        snprintf(path, size, "%s", is_there && fits ? folder : "");
    free(folder);
    IRON_FAIL_IF(!is_there, err, IRON_E_UNSUPPORTED,
                 "there is no folder to keep things in; set IRON_CACHE_DIR to one");
    IRON_FAIL_IF(!fits, err, IRON_E_ARG, "the cache folder's name has %zu bytes, and no room",
                 length);
    return IRON_OK;
}
