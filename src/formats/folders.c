/* SPDX-License-Identifier: MIT */
/*
 * folders.c: the lists of MDS datasets and of Hugging Face's save_to_disk.
 *
 *   index.json         {"shards": [{"raw_data": {"basename": ...}, "zip_data": ...}, ...]}
 *   state.json         {"_data_files": [{"filename": "data-00000-of-00002.arrow"}, ...], ...}
 *   dataset_dict.json  {"splits": ["train", "test"]}
 */
#include "formats/folders.h"

#include "core/fail.h"
#include "core/json.h"
#include "core/memory.h"
#include "formats/format.h"
#include "formats/mds.h"
#include "io/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of state.json and dataset_dict.json. */
#define LIST_BYTES_MAX ((size_t)16 << 20)

static iron_status no_memory(iron_error *err) {
    return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while listing files");
}

char *iron__folder_join(const char *folder, const char *name) {
    size_t length = strlen(folder);
    const char *slash = length && folder[length - 1] == '/' ? "" : "/";
    char *path = NULL;

    return asprintf(&path, "%s%s%s", folder, slash, name) < 0 ? NULL : path;
}

static iron_status add_part(iron__folder *f, const char *name, iron_error *err) {
    char *copy;

    if (f->count == f->capacity) {
        size_t capacity = f->capacity ? 2 * f->capacity : 16;
        char **parts = realloc(f->parts, capacity * sizeof *parts);

        if (!parts)
            return no_memory(err);
        f->parts = parts;
        f->capacity = capacity;
    }
    copy = strdup(name);
    if (!copy)
        return no_memory(err);
    f->parts[f->count++] = copy;
    return IRON_OK;
}

void iron__folder_clear(iron__folder *folder) {
    for (size_t k = 0; k < folder->count; k++)
        free(folder->parts[k]);
    free(folder->parts);
    *folder = (iron__folder){.kind = IRON_FOLDER_PLAIN};
}

/* Of a shard that is stored compressed, the decompressed file may be there as well, or instead. On
 * a server it is not looked for. */
static iron_status add_shard(const char *path, iron__folder *f, const iron__json *shard,
                             size_t index, iron_error *err) {
    const char *raw = iron__mds_basename(shard, "raw_data");
    const char *zip = iron__mds_basename(shard, "zip_data"), *chosen = raw ? raw : zip;

    IRON_FAIL_IF(!chosen, err, IRON_E_FORMAT,
                 "%.100s: shard %zu of index.json has no basename of a file in the folder", path,
                 index);
    if (raw && zip && iron__path_is_remote(path)) {
        chosen = zip;
    } else if (raw && zip) {
        char *raw_path = iron__folder_join(path, raw), *zip_path = iron__folder_join(path, zip);

        if (raw_path && zip_path && !iron__path_is_there(raw_path) && iron__path_is_there(zip_path))
            chosen = zip;
        free(raw_path);
        free(zip_path);
    }
    return add_part(f, chosen, err);
}

/* An index.json that is something else does not make a folder an MDS dataset. */
static iron_status read_mds(const char *path, iron__folder *f, iron_error *err) {
    const iron__json *shards;
    iron__mds_index *index;
    iron_status status = iron__mds_index_open(path, &index, err);

    if (status == IRON_E_FORMAT)
        return IRON_OK;
    if (status != IRON_OK || !index)
        return status;
    f->kind = IRON_FOLDER_MDS;
    shards = iron__mds_index_shards(index);
    for (size_t k = 0; k < iron__json_length(shards) && status == IRON_OK; k++)
        status = add_shard(path, f, iron__json_at(shards, k), k, err);
    iron__mds_index_close(index);
    return status;
}

/* Parses a file of the folder; *root is NULL if it is not there, or is not JSON. */
static iron_status read_list(const char *path, const char *name, const iron__json **root,
                             iron_error *err) {
    iron__sidecar file;
    bool is_there;
    char *text = NULL;
    iron_status status;

    *root = NULL;
    IRON_TRY(iron__sidecar_open(iron__folder_join(path, name), &file, &is_there, err));
    if (!is_there)
        return IRON_OK;
    if (file.bytes <= LIST_BYTES_MAX) {
        status = iron__sidecar_text(&file, LIST_BYTES_MAX, &text, err);
        if (status == IRON_OK)
            status =
                iron__json_parse(text, (size_t)file.bytes, iron__allocator_default(), root, err);
    } else {
        status = IRON_E_FORMAT;
    }
    free(text);
    iron__sidecar_close(&file);
    return status == IRON_E_FORMAT ? IRON_OK : status;
}

/* A dataset that was saved with a selection of its rows would be read without it. */
static iron_status check_selection(const char *path, const iron__json *root, iron_error *err) {
    static const char *const names[] = {"_indices_data_files", "_indices_files"};

    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        IRON_FAIL_IF(iron__json_length(iron__json_member(root, names[k])) > 0, err,
                     IRON_E_UNSUPPORTED,
                     "%.100s: state.json has %s, a selection of rows, which is not read; save the "
                     "dataset again after flatten_indices()",
                     path, names[k]);
    return IRON_OK;
}

static iron_status add_data_files(const char *path, iron__folder *f, const iron__json *root,
                                  iron_error *err) {
    const iron__json *files = iron__json_member(root, "_data_files");

    if (!files || files->kind != IRON_JSON_ARRAY)
        return IRON_OK;
    f->kind = IRON_FOLDER_HF;
    IRON_TRY(check_selection(path, root, err));
    for (size_t k = 0; k < iron__json_length(files); k++) {
        const iron__json *file = iron__json_at(files, k);
        const char *name = iron__json_get_text(iron__json_member(file, "filename"));

        IRON_FAIL_IF(!name || !iron__name_is_inside(name), err, IRON_E_FORMAT,
                     "%.100s: data file %zu of state.json has no name of a file in the folder",
                     path, k);
        IRON_TRY(add_part(f, name, err));
    }
    return IRON_OK;
}

static iron_status add_splits(const char *path, iron__folder *f, const iron__json *root,
                              iron_error *err) {
    const iron__json *splits = iron__json_member(root, "splits");

    if (!splits || splits->kind != IRON_JSON_ARRAY)
        return IRON_OK;
    f->kind = IRON_FOLDER_HF_SPLITS;
    for (size_t k = 0; k < iron__json_length(splits); k++) {
        const char *name = iron__json_get_text(iron__json_at(splits, k));

        IRON_FAIL_IF(!name || !iron__name_is_inside(name), err, IRON_E_FORMAT,
                     "%.100s: split %zu of dataset_dict.json is not the name of a folder in it",
                     path, k);
        IRON_TRY(add_part(f, name, err));
    }
    return IRON_OK;
}

iron_status iron__folder_read(const char *path, iron__folder *out, iron_error *err) {
    const iron__json *root = NULL;
    iron_status status;

    *out = (iron__folder){.kind = IRON_FOLDER_PLAIN};
    IRON_TRY(read_mds(path, out, err));
    if (out->kind != IRON_FOLDER_PLAIN)
        return IRON_OK;
    status = read_list(path, "state.json", &root, err);
    if (status == IRON_OK && root)
        status = add_data_files(path, out, root, err);
    iron__json_destroy(iron__allocator_default(), root);
    if (status != IRON_OK || out->kind != IRON_FOLDER_PLAIN)
        return status;
    status = read_list(path, "dataset_dict.json", &root, err);
    if (status == IRON_OK && root)
        status = add_splits(path, out, root, err);
    iron__json_destroy(iron__allocator_default(), root);
    return status;
}
