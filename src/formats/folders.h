/* SPDX-License-Identifier: MIT */
/*
 * folders.h: folders that a library wrote as one dataset, with a file that lists its parts in
 * order: MosaicML Streaming (index.json) and Hugging Face's save_to_disk (state.json,
 * dataset_dict.json).
 */
#ifndef IRON_FORMATS_FOLDERS_H
#define IRON_FORMATS_FOLDERS_H

#include <iron/iron.h>

typedef enum iron__folder_kind {
    IRON_FOLDER_PLAIN, /* no such list: its files, in natural order */
    IRON_FOLDER_MDS,
    IRON_FOLDER_HF,       /* Arrow files */
    IRON_FOLDER_HF_SPLITS /* its parts are folders */
} iron__folder_kind;

typedef struct iron__folder {
    iron__folder_kind kind;
    char **parts; /* relative to the folder, in order; from malloc */
    size_t count, capacity;
} iron__folder;

/* Finds out what a folder is: on this machine, or an address. Errors: the list is damaged. Clear
 * it, also then. */
iron_status iron__folder_read(const char *path, iron__folder *out, iron_error *err);
void iron__folder_clear(iron__folder *folder);

/* The path of a part, or of anything in the folder; the caller frees it. NULL: out of memory. */
char *iron__folder_join(const char *folder, const char *name);

#endif
