/* SPDX-License-Identifier: MIT */
/* file_names.c: the files that a name stands for, without opening any of them. */
#include "core/fail.h"
#include "formats/file_list.h"

#include <iron/iron_digest.h>

#include <errno.h>
#include <stdlib.h>

struct iron_file_names {
    iron__file_list list;
};

iron_status iron_file_names_list(const char *path, iron_file_names **out, iron_error *err) {
    iron_file_names *names = calloc(1, sizeof *names);
    iron_status status;

    *out = NULL;
    if (!names)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while listing files");
    status = iron__file_list_add(&names->list, path, err);
    if (status == IRON_OK)
        *out = names;
    else
        iron_file_names_destroy(names);
    return status;
}

void iron_file_names_destroy(iron_file_names *names) {
    if (!names)
        return;
    iron__file_list_clear(&names->list);
    free(names);
}

size_t iron_file_names_count(const iron_file_names *names) { return names->list.count; }

const char *iron_file_names_at(const iron_file_names *names, size_t index) {
    return index < names->list.count ? names->list.paths[index] : NULL;
}
