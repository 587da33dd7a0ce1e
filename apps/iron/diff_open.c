/* SPDX-License-Identifier: MIT */
/*
 * diff_open.c: opens what `iron diff` is given. A manifest's files are opened too if they are still
 * there, as named from the current folder or else from the manifest's; whether they are still what
 * the manifest says is for the library to find out.
 */
#include "diff_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The manifest's files by the names that they may have now. */
typedef struct file_names {
    char **paths;
    size_t count;
} file_names;

static void free_names(file_names *n) {
    for (size_t k = 0; k < n->count; k++)
        free(n->paths[k]);
    free(n->paths);
    *n = (file_names){0};
}

/* `folder` is the part of a path up to its last slash, `length` bytes; may be none. */
static char *joined(const char *folder, size_t length, const char *path) {
    size_t room = length + strlen(path) + 1;
    char *name = malloc(room);

    if (name)
        snprintf(name, room, "%.*s%s", (int)length, folder, path);
    return name;
}

/* Names all files; false if one of them is not there, is no regular file, or memory is short. */
static bool name_files(const iron_manifest *m, size_t count, const char *folder, size_t length,
                       file_names *n) {
    n->paths = calloc(count + 1, sizeof *n->paths);
    for (size_t k = 0; k < count && n->paths; k++) {
        iron_manifest_file file = {.struct_size = sizeof file};
        struct stat info;
        char *name;

        if (iron_manifest_file_at(m, k, &file, NULL) != IRON_OK)
            return false;
        name = joined(folder, file.path[0] == '/' ? 0 : length, file.path);
        if (!name)
            return false;
        n->paths[n->count++] = name;
        if (strcmp(name, "-") == 0 || stat(name, &info) != 0 || !S_ISREG(info.st_mode))
            return false;
    }
    return n->paths && count > 0;
}

/* One format for all, as they were read; of several each is looked for. */
static const char *common_format(const iron_manifest *m, size_t count) {
    iron_manifest_file first = {.struct_size = sizeof first}, next = first;

    if (iron_manifest_file_at(m, 0, &first, NULL) != IRON_OK)
        return NULL;
    for (size_t k = 1; k < count; k++)
        if (iron_manifest_file_at(m, k, &next, NULL) != IRON_OK ||
            strcmp(first.format, next.format) != 0)
            return NULL;
    return first.format;
}

static iron_source *open_names(const iron_manifest *m, const file_names *n) {
    iron_manifest_file first = {.struct_size = sizeof first};
    iron_source_options o = {.struct_size = sizeof o};
    iron_source *source = NULL;

    if (iron_manifest_file_at(m, 0, &first, NULL) != IRON_OK)
        return NULL;
    o.dtype = first.dtype;
    o.format = common_format(m, n->count);
    o.paths = (const char *const *)n->paths;
    o.path_count = n->count;
    return iron_source_open(&o, &source, NULL) == IRON_OK ? source : NULL;
}

/* The files, from a folder; they are kept if they have the manifest's length, or none are kept
 * yet. */
static void try_folder(diff_input *input, const iron_manifest_info *info, size_t folder_length) {
    file_names names = {0};
    iron_source *source = NULL;

    if (name_files(input->manifest, info->file_count, input->path, folder_length, &names))
        source = open_names(input->manifest, &names);
    free_names(&names);
    if (source && (!input->source || iron_source_tokens(source) == info->tokens)) {
        iron_source_close(input->source);
        input->source = source;
    } else {
        iron_source_close(source);
    }
}

static iron_status open_manifest(diff_input *input, iron_error *err) {
    iron_manifest_info info = {.struct_size = sizeof info};
    const char *slash = strrchr(input->path, '/');
    iron_status status = iron_manifest_read(input->path, &input->manifest, err);

    if (status == IRON_OK)
        status = iron_manifest_describe(input->manifest, &info, err);
    if (status != IRON_OK || info.parts > 0)
        return status;
    try_folder(input, &info, 0);
    if (slash && (!input->source || iron_source_tokens(input->source) != info.tokens))
        try_folder(input, &info, (size_t)(slash - input->path) + 1);
    return IRON_OK;
}

iron_status diff_input_open(const char *path, const reading *r, diff_input *input,
                            iron_error *err) {
    input->path = path;
    if (strcmp(path, "-") != 0 && iron_manifest_is_one(path))
        return open_manifest(input, err);
    return reading_open(r, &path, 1, &input->source, err);
}

void diff_input_close(diff_input *input) {
    iron_source_close(input->source);
    iron_manifest_destroy(input->manifest);
}

static const char *place_in_source(const iron_source *source, uint64_t position, uint64_t *token) {
    for (size_t k = 0; k < iron_source_file_count(source); k++) {
        uint64_t tokens = iron_source_file_tokens(source, k);

        *token = position;
        if (tokens == IRON_COUNT_UNKNOWN) /* a pipe: only the first can be told */
            return k == 0 ? iron_source_file(source, k) : NULL;
        if (position < tokens)
            return iron_source_file(source, k);
        position -= tokens;
    }
    return NULL;
}

const char *diff_input_place(const diff_input *input, uint64_t position, uint64_t *token) {
    iron_manifest_file file = {.struct_size = sizeof file};

    if (!input->manifest)
        return place_in_source(input->source, position, token);
    for (size_t k = 0; iron_manifest_file_at(input->manifest, k, &file, NULL) == IRON_OK; k++) {
        *token = position - file.first;
        if (position >= file.first && *token < file.tokens)
            return file.path;
    }
    return NULL;
}
