/* SPDX-License-Identifier: MIT */
/*
 * file_list.h: the files that a user's arguments stand for, in order. A directory stands for its
 * files (not hidden ones, not those of its folders, not the indexes of others) in natural order; an
 * empty one is refused, and so is one with a file that cannot be looked at.
 */
#ifndef IRON_FORMATS_FILE_LIST_H
#define IRON_FORMATS_FILE_LIST_H

#include <iron/iron.h>

typedef struct iron__file_list {
    char **paths;
    size_t count, capacity;
} iron__file_list;

iron_status iron__file_list_add(iron__file_list *list, const char *path, iron_error *err);
void iron__file_list_clear(iron__file_list *list);

#endif
