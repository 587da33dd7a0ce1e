/* SPDX-License-Identifier: MIT */
/*
 * files.c: the list of files that arguments name. A folder stands for its files in natural order,
 * or, if a library wrote it as one dataset, for those that it lists in a file of its own:
 *
 *   index.json         {"shards": [{"raw_data": {"basename": ...}, "zip_data": ...}, ...]}
 *   state.json         {"_data_files": [{"filename": "data-00000-of-00002.arrow"}, ...], ...}
 *   dataset_dict.json  {"splits": ["train", "test"]}
 *
 * The first is of MosaicML Streaming, the others are of Hugging Face's save_to_disk.
 */
#include "core/array.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/memory.h"
#include "formats/format.h"
#include "formats/source.h"
#include "io/remote.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Of state.json and dataset_dict.json. */
#define LIST_BYTES_MAX ((size_t)16 << 20)

/* Takes `path`, also on failure. */
static iron_status append(iron__file_list *list, char *path, iron_error *err) {
    if (!path || !IRON_ARRAY_GROW(&list->paths, list->count, &list->capacity)) {
        free(path);
        return iron__no_memory(err, "a list of files");
    }
    list->paths[list->count++] = path;
    return IRON_OK;
}

void iron__file_list_clear(iron__file_list *list) {
    for (size_t k = 0; k < list->count; k++)
        free(list->paths[k]);
    free(list->paths);
    *list = (iron__file_list){0};
}

/* Datasets. */

/* What a folder is, on this machine or on a server. */
typedef enum folder_kind {
    FOLDER_PLAIN, /* no such list */
    FOLDER_MDS,
    FOLDER_HF,       /* Arrow files */
    FOLDER_HF_SPLITS /* its parts are folders */
} folder_kind;

typedef struct folder_list {
    folder_kind kind;
    iron__file_list parts; /* relative to the folder, in order */
} folder_list;

char *iron__folder_join(const char *folder, const char *name) {
    size_t length = strlen(folder);

    return iron__print("%s%s%s", folder, length == 0 || folder[length - 1] == '/' ? "" : "/", name);
}

bool iron__name_is_inside(const char *name) {
    if (name[0] == '\0' || name[0] == '/')
        return false;
    for (const char *at = name; *at; at += strcspn(at, "/"), at += *at == '/')
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return false;
    return true;
}

/* Of a shard that is stored compressed, the decompressed file may be there as well, or instead. On
 * a server it is not looked for. */
static iron_status add_shard(const char *path, folder_list *f, const iron__json *shard,
                             size_t index, iron_error *err) {
    const char *raw = iron__mds_basename(shard, "raw_data");
    const char *zip = iron__mds_basename(shard, "zip_data");
    bool is_zip = !raw || (zip && iron__path_is_remote(path));

    IRON_FAIL_IF(!raw && !zip, err, IRON_E_FORMAT,
                 "%.100s: shard %zu of index.json has no basename of a file in the folder", path,
                 index);
    if (zip && !is_zip) {
        char *raw_path = iron__folder_join(path, raw), *zip_path = iron__folder_join(path, zip);

        is_zip =
            raw_path && zip_path && !iron__path_is_there(raw_path) && iron__path_is_there(zip_path);
        free(raw_path);
        free(zip_path);
    }
    return append(&f->parts, strdup(is_zip ? zip : raw), err);
}

/* An index.json that is something else does not make a folder an MDS dataset. */
static iron_status read_mds(const char *path, folder_list *f, iron_error *err) {
    const iron__json *shards;
    iron__mds_index *index;
    iron_status status = iron__mds_index_open(path, &index, err);

    if (status == IRON_E_FORMAT)
        return IRON_OK;
    if (status != IRON_OK || !index)
        return status;
    f->kind = FOLDER_MDS;
    shards = iron__mds_index_shards(index);
    for (size_t k = 0; k < iron__json_length(shards) && status == IRON_OK; k++)
        status = add_shard(path, f, iron__json_at(shards, k), k, err);
    iron__mds_index_close(index);
    return status;
}

/* Parses a file of the folder; *root is NULL if it is not there. Without it the order of the files
 * would be lost, so one that is damaged is an error. */
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
    status = file.bytes > LIST_BYTES_MAX ? IRON_E_FORMAT
                                         : iron__sidecar_text(&file, LIST_BYTES_MAX, &text, err);
    if (status == IRON_OK)
        status = iron__json_parse(text, (size_t)file.bytes, iron__allocator_default(), root, err);
    free(text);
    iron__sidecar_close(&file);
    IRON_FAIL_IF(
        status == IRON_E_FORMAT, err, IRON_E_FORMAT,
        "%.100s: %s is not valid JSON, and the order of the files is in it; restore it, or "
        "name the files in their order",
        path, name);
    return status;
}

static const struct dataset_list {
    folder_kind kind;
    const char *file, *member;
    const char *part, *fault; /* for the message about a bad name */
} dataset_lists[] = {
    {FOLDER_HF, "state.json", "_data_files", "data file", "has no name of a file in the folder"},
    {FOLDER_HF_SPLITS, "dataset_dict.json", "splits", "split", "is not the name of a folder in it"},
};

static iron_status add_names(const char *path, const struct dataset_list *list,
                             const iron__json *root, folder_list *f, iron_error *err) {
    static const char *const selections[] = {"_indices_data_files", "_indices_files"};
    const iron__json *parts = iron__json_member(root, list->member);

    if (!parts || parts->kind != IRON_JSON_ARRAY)
        return IRON_OK;
    f->kind = list->kind;
    /* a dataset that was saved with a selection of its rows would be read without it */
    for (size_t k = 0; f->kind == FOLDER_HF && k < 2; k++)
        IRON_FAIL_IF(iron__json_length(iron__json_member(root, selections[k])) > 0, err,
                     IRON_E_UNSUPPORTED,
                     "%.100s: state.json has %s, a selection of rows, which is not read; save the "
                     "dataset again after flatten_indices()",
                     path, selections[k]);
    for (size_t k = 0; k < iron__json_length(parts); k++) {
        const iron__json *part = iron__json_at(parts, k);
        const char *name =
            iron__json_get_text(f->kind == FOLDER_HF ? iron__json_member(part, "filename") : part);

        IRON_FAIL_IF(!name || !iron__name_is_inside(name), err, IRON_E_FORMAT,
                     "%.100s: %s %zu of %s %s", path, list->part, k, list->file, list->fault);
        IRON_TRY(append(&f->parts, strdup(name), err));
    }
    return IRON_OK;
}

/* Finds out what a folder is. Errors: the list is damaged. Clear its parts, also then. */
static iron_status read_folder(const char *path, folder_list *out, iron_error *err) {
    *out = (folder_list){.kind = FOLDER_PLAIN};
    IRON_TRY(read_mds(path, out, err));
    for (size_t k = 0; k < 2 && out->kind == FOLDER_PLAIN; k++) {
        const iron__json *root;
        iron_status status = read_list(path, dataset_lists[k].file, &root, err);

        if (status == IRON_OK && root)
            status = add_names(path, &dataset_lists[k], root, out, err);
        iron__json_destroy(iron__allocator_default(), root);
        IRON_TRY(status);
    }
    return IRON_OK;
}

/* Natural order. */

static size_t digits(const char *text) { return strspn(text, "0123456789"); }

/* Like strcmp, but runs of digits compare as numbers. A total order: equal only if identical. */
static int natural_compare(const char *a, const char *b) {
    const char *x = a, *y = b;

    while (*x && *y) {
        if (digits(x) && digits(y)) {
            size_t x_length, y_length;
            int order;

            x += strspn(x, "0");
            y += strspn(y, "0");
            x_length = digits(x);
            y_length = digits(y);
            if (x_length != y_length)
                return x_length < y_length ? -1 : 1;
            order = memcmp(x, y, x_length);
            if (order)
                return order;
            x += x_length;
            y += y_length;
        } else {
            /* the files of a directory stay together */
            if (*x != *y && (*x == '/' || *y == '/'))
                return *x == '/' ? -1 : 1;
            if (*x != *y)
                return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
            x++;
            y++;
        }
    }
    if (*x || *y)
        return *x ? 1 : -1;
    return strcmp(a, b); /* 01 and 1: any order, but always the same */
}

/* Directories. */

/* A file of a directory. What a library wrote as one dataset stays together, in its own order:
 * these files share a key, the path of their folder. */
typedef struct found_file {
    char *path;
    char *key;        /* NULL: the path */
    size_t order;     /* of files with the same key */
    const char *what; /* NULL: it is read; otherwise what it is instead of tokens */
} found_file;

static int by_natural_order(const void *a, const void *b) {
    const found_file *x = a, *y = b;
    int order = natural_compare(x->key ? x->key : x->path, y->key ? y->key : y->path);

    return order ? order : x->order < y->order ? -1 : x->order > y->order;
}

/* What a directory that the user named contains. */
typedef struct contents {
    size_t root_length; /* of its path, with the slash */
    size_t subfolders;  /* that were not entered */
    const char *list;   /* the file that lists those of a dataset, or NULL */
    size_t not_chosen;  /* by --include and --exclude */
    found_file *entries;
    size_t count, capacity;
} contents;

/* A directory that is being listed, and those that it is in. */
typedef struct listing {
    const char *path;
    const struct listing *parent;
    dev_t device;
    ino_t inode;
    contents *in;
    const char *key; /* of a folder that is a split of a dataset: of its files; else NULL */
} listing;

/* A glob without a slash matches the base name, one with a slash the path relative to the folder
 * that the user named, in which ** also matches slashes. One that ends in a slash matches only
 * directories. */
static bool glob_matches(const char *glob, const char *relative, bool is_directory) {
    const char *name = strrchr(relative, '/');
    size_t length = strlen(glob);
    char pattern[PATH_MAX];

    if (length >= sizeof pattern || (length > 1 && glob[length - 1] == '/' && !is_directory))
        return false;
    memcpy(pattern, glob, length + 1);
    if (length > 1 && pattern[length - 1] == '/')
        pattern[length - 1] = '\0';
    if (!strchr(pattern, '/'))
        return fnmatch(pattern, name ? name + 1 : relative, 0) == 0;
    glob = pattern[0] == '/' ? pattern + 1 : pattern;
    if (strncmp(glob, "**/", 3) == 0 && glob_matches(glob + 3, relative, is_directory))
        return true;
    return fnmatch(glob, relative, strstr(glob, "**") ? 0 : FNM_PATHNAME) == 0;
}

static bool any_matches(const char *const *globs, size_t count, const char *relative,
                        bool is_directory) {
    for (size_t k = 0; k < count; k++)
        if (glob_matches(globs[k], relative, is_directory))
            return true;
    return false;
}

/* What a file's name says if it is not tokens, or NULL; that of a compressed file ends in more. */
static const char *judge_name(const char *path, iron_dtype dtype) {
    static const char *const suffixes[] = {".gz", ".zst", ".zstd", ".xz", ".lz4"};
    const char *what = iron__container_by_name(path, dtype);

    for (size_t k = 0; k < sizeof suffixes / sizeof suffixes[0] && !what; k++)
        if (iron__path_ends(path, suffixes[k])) {
            char *inside = iron__path_beside(path, strlen(suffixes[k]), "");

            what = inside ? iron__container_by_name(inside, dtype) : NULL;
            free(inside);
        }
    return what;
}

/* What a file of a directory is if it is not tokens, or NULL. A name decides only if the user has
 * not chosen names with --include; files that cannot be read are reported when they are opened. */
static const char *not_tokens(const iron_source_options *o, const char *path, uint64_t bytes) {
    iron__input file = {.path = path, .bytes = bytes, .fd = -1};
    iron__candidate c = {.file = &file, .name = path, .dtype = o->dtype};
    const iron__container *found = NULL;
    bool is_recognised = false;

    if (o->include_count > 0 && o->format && strcmp(o->format, "raw") == 0)
        return NULL;
    if (iron__input_open(&file, NULL) == IRON_OK &&
        iron__input_peek(&file, c.head, &c.head_count, NULL) == IRON_OK) {
        is_recognised = iron__format_recognise(&c) != &iron__format_raw;
        found = is_recognised ? NULL : iron__container_find(&c);
        if (found && found->codec != IRON_CODEC_NONE) /* what is inside decides */
            found = iron__codec_is_there(found->codec) &&
                            iron__input_decompress(&file, found->codec, NULL) == IRON_OK &&
                            iron__input_peek(&file, c.head, &c.head_count, NULL) == IRON_OK &&
                            iron__format_recognise(&c) == &iron__format_raw
                        ? iron__container_find(&c)
                        : NULL;
    }
    iron__input_close(&file);
    if (found)
        return found->what;
    return o->include_count == 0 && !is_recognised ? judge_name(path, o->dtype) : NULL;
}

/* Takes `path`, also on failure. `key`: borrowed; may be NULL. */
static iron_status add(contents *in, char *path, const char *key, const char *what,
                       iron_error *err) {
    found_file file = {path, key ? strdup(key) : NULL, in->count, what};

    if (!path || (key && !file.key) || !IRON_ARRAY_GROW(&in->entries, in->count, &in->capacity)) {
        free(path);
        free(file.key);
        return iron__no_memory(err, "a list of files");
    }
    in->entries[in->count++] = file;
    return IRON_OK;
}

static iron_status add_folder(const iron_source_options *o, const listing *f, iron_error *err);

/* Enters a subdirectory, unless it is one of those that it is in: a symbolic link can form a
 * loop. */
static iron_status add_subfolder(const iron_source_options *o, const char *path,
                                 const struct stat *info, const listing *parent, const char *key,
                                 iron_error *err) {
    listing sub = {path, parent, info->st_dev, info->st_ino, parent->in, key};

    for (const listing *f = parent; f; f = f->parent)
        if (f->device == sub.device && f->inode == sub.inode)
            return IRON_OK;
    return add_folder(o, &sub, err);
}

/* Whether --include and --exclude choose a path of the directory that the user named; counts those
 * that they do not choose. */
static bool choose(const iron_source_options *o, contents *in, const char *path,
                   bool is_directory) {
    const char *relative = path + in->root_length;
    bool is_chosen = !any_matches(o->exclude, o->exclude_count, relative, is_directory) &&
                     (is_directory || o->include_count == 0 ||
                      any_matches(o->include, o->include_count, relative, false));

    in->not_chosen += !is_chosen;
    return is_chosen;
}

/* Takes `file`. A file that stat cannot access is a missing shard: it is listed, and opening it
 * fails. */
static iron_status add_entry(const iron_source_options *o, const listing *f, char *file,
                             iron_error *err) {
    iron_status status = IRON_OK;
    struct stat info = {0};
    bool is_there, is_directory;

    if (!file)
        return iron__no_memory(err, "a list of files");
    is_there = stat(file, &info) == 0;
    is_directory = is_there && S_ISDIR(info.st_mode);
    if ((is_there && !is_directory && iron__path_is_sidecar(file)) ||
        !choose(o, f->in, file, is_directory)) {
        free(file);
    } else if (is_directory) {
        if (o->is_recursive)
            status = add_subfolder(o, file, &info, f, NULL, err);
        else
            f->in->subfolders++;
        free(file);
    } else {
        const char *what = NULL;

        if (is_there && !S_ISREG(info.st_mode)) /* a pipe nobody may ever write to */
            what = "not a regular file";
        else if (is_there)
            what = not_tokens(o, file, (uint64_t)info.st_size);
        status = add(f->in, file, NULL, what, err);
    }
    return status;
}

static iron_status add_plain(const iron_source_options *o, const listing *f, iron_error *err) {
    DIR *directory = opendir(f->path);
    iron_status status = IRON_OK;
    struct dirent *entry;

    if (!directory)
        return iron__fail_path(err, "list directory", f->path, errno);
    while (status == IRON_OK && (errno = 0, entry = readdir(directory)))
        /* not hidden files, and those that Spark writes beside its data */
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "_SUCCESS") != 0 &&
            strcmp(entry->d_name, "_metadata") != 0 &&
            strcmp(entry->d_name, "_common_metadata") != 0)
            status = add_entry(o, f, iron__folder_join(f->path, entry->d_name), err);
    if (status == IRON_OK && errno)
        status = iron__fail_path(err, "list directory", f->path, errno);
    closedir(directory);
    return status;
}

/* The files of a dataset. Those that are missing are listed as well, and opening them fails. */
static iron_status add_parts(const iron_source_options *o, const listing *f,
                             const folder_list *dataset, const char *key, iron_error *err) {
    f->in->list = dataset->kind == FOLDER_MDS ? "index.json" : "state.json";
    for (size_t k = 0; k < dataset->parts.count; k++) {
        char *path = iron__folder_join(f->path, dataset->parts.paths[k]);

        if (path && !choose(o, f->in, path, false))
            free(path);
        else
            IRON_TRY(add(f->in, path, key, NULL, err));
    }
    return IRON_OK;
}

/* A dataset of several splits is read as a whole only if the user says so: test data would be taken
 * for training data. Those of a remote dataset are not read together: each is an address of its
 * own. */
static iron_status add_splits(const iron_source_options *o, const listing *f,
                              iron__file_list *splits, const char *key, iron_error *err) {
    bool is_remote = iron__path_is_remote(f->path);
    iron_status status = IRON_OK;
    char text[80] = "", item[32];
    size_t chosen = 0;

    for (size_t k = 0; k < splits->count; k++) { /* leaves those that --exclude does not name */
        char *path = iron__folder_join(f->path, splits->paths[k]);

        if (path && !is_remote && !choose(o, f->in, path, true)) {
            free(splits->paths[k]);
        } else {
            snprintf(item, sizeof item, "%.30s", splits->paths[k]);
            iron__append_item(text, sizeof text, item);
            splits->paths[chosen++] = splits->paths[k];
        }
        free(path);
    }
    splits->count = chosen;
    IRON_FAIL_IF(is_remote, err, IRON_E_ARG, "%.90s has the splits %s; name one: %.90s%.20s/",
                 f->path, text, f->path, chosen ? splits->paths[0] : "train");
    IRON_FAIL_IF(chosen > 1 && !o->is_recursive, err, IRON_E_ARG,
                 "%.70s has the splits %s; name %.60s/%.20s, or give -r to read all", f->path, text,
                 f->path, splits->paths[0]);
    for (size_t k = 0; k < chosen && status == IRON_OK; k++) {
        char *path = iron__folder_join(f->path, splits->paths[k]);
        struct stat info;

        if (!path)
            status = iron__no_memory(err, "a list of files");
        else if (stat(path, &info) != 0)
            status = iron__fail(err, IRON_E_IO, errno,
                                "cannot open %.100s, which dataset_dict.json lists: %s", path,
                                strerror(errno));
        else
            status = add_subfolder(o, path, &info, f, key, err);
        free(path);
    }
    return status;
}

/* The objects below an s3:// prefix: judged by their names, because opening each would cost a
 * request. Those of datasets are recognised when they are opened. */
static iron_status list_bucket(const iron_source_options *o, const listing *f, iron_error *err) {
    iron_status status;
    char **names = NULL;
    size_t count = 0;

    status = iron__remote_list(f->path, &names, &count, err);
    for (size_t k = 0; k < count && status == IRON_OK; k++) {
        const char *relative = names[k] + f->in->root_length;
        const char *what = o->include_count == 0 ? judge_name(names[k], o->dtype) : NULL;

        if (strlen(names[k]) <= f->in->root_length || iron__path_ends(names[k], "/"))
            continue;
        if (strchr(relative, '/') && !o->is_recursive) {
            f->in->subfolders++;
        } else if (choose(o, f->in, names[k], false) &&
                   (what || !iron__path_is_sidecar(names[k]))) {
            status = add(f->in, names[k], NULL, what, err);
            names[k] = NULL;
        }
    }
    for (size_t k = 0; k < count; k++)
        free(names[k]);
    free(names);
    return status;
}

static iron_status add_folder(const iron_source_options *o, const listing *f, iron_error *err) {
    char *key = f->key ? strdup(f->key) : iron__folder_join(f->path, "");
    folder_list dataset;
    iron_status status = read_folder(f->path, &dataset, err);

    if (status == IRON_OK && !key)
        status = iron__no_memory(err, "a list of files");
    else if (status == IRON_OK && f->key && dataset.kind != FOLDER_HF)
        status = iron__fail(err, IRON_E_FORMAT, 0,
                            "%.120s is listed as a split by dataset_dict.json, but has no "
                            "state.json that lists its files",
                            f->path);
    else if (status == IRON_OK && dataset.kind == FOLDER_HF_SPLITS)
        status = add_splits(o, f, &dataset.parts, key, err);
    else if (status == IRON_OK && dataset.kind != FOLDER_PLAIN)
        status = add_parts(o, f, &dataset, key, err);
    else if (status == IRON_OK && !iron__path_is_remote(f->path))
        status = add_plain(o, f, err);
    else if (status == IRON_OK && strncmp(f->path, "s3://", 5) == 0)
        status = list_bucket(o, f, err);
    else if (status == IRON_OK)
        status = iron__fail(err, IRON_E_UNSUPPORTED, 0,
                            "%.120s has no index.json or state.json, and folders cannot be listed "
                            "over HTTP; name the files",
                            f->path);
    iron__file_list_clear(&dataset.parts);
    free(key);
    return status;
}

/* The error for a directory without token files. A container says more than a text beside it. */
static iron_status nothing_left(const contents *in, const char *path, iron_error *err) {
    const found_file *shown = in->count > 0 ? in->entries : NULL;

    for (size_t k = 0; k < in->count && strncmp(shown->what, "text", 4) == 0; k++)
        shown = strncmp(in->entries[k].what, "text", 4) == 0 ? shown : &in->entries[k];
    IRON_FAIL_IF(shown, err, IRON_E_ARG,
                 "directory %.70s has no token files: %.60s is %s, not tokens%s", path,
                 shown->path + in->root_length, shown->what,
                 in->count > 1 ? "; neither are the others" : "");
    IRON_FAIL_IF(in->not_chosen > 0, err, IRON_E_ARG,
                 "no file of directory %.100s is chosen by --include and --exclude", path);
    IRON_FAIL_IF(in->list, err, IRON_E_ARG, "%.120s has no files: its %s lists none", path,
                 in->list);
    IRON_FAIL_IF(in->subfolders > 0, err, IRON_E_ARG,
                 "directory %.100s has only subdirectories; give -r to read their files", path);
    IRON_FAIL(err, IRON_E_ARG,
              "directory %.120s has no files; name files or a directory that has some", path);
}

/* Moves what is read to the list, in order, and reports what is not. */
static iron_status take_contents(iron__file_list *list, contents *in, const char *path,
                                 iron_status status, iron_error *err) {
    const iron_source_options *o = list->options;
    size_t found = 0;

    if (in->count > 0)
        qsort(in->entries, in->count, sizeof *in->entries, by_natural_order);
    for (size_t k = 0; k < in->count; k++)
        found += !in->entries[k].what;
    if (status == IRON_OK && found == 0)
        status = nothing_left(in, path, err);
    for (size_t k = 0; k < in->count; k++) {
        found_file *e = &in->entries[k];

        if (status == IRON_OK && e->what && o->warn)
            o->warn(o->warn_context, &(iron_warning){IRON_WARNING_SKIPPED, e->path, e->what});
        if (status == IRON_OK && !e->what)
            status = append(list, e->path, err);
        else
            free(e->path);
        free(e->key);
    }
    free(in->entries);
    return status;
}

/* The folder of an index.json that lists shards; the caller frees it. NULL: something else. */
static char *folder_of_index(const char *path) {
    const char *slash = strrchr(path, '/');
    iron__mds_index *index = NULL;
    char *folder;

    if (strcmp(slash ? slash + 1 : path, "index.json") != 0)
        return NULL;
    folder = slash ? strndup(path, (size_t)(slash + 1 - path)) : strdup("./");
    if (folder && iron__mds_index_open(folder, &index, NULL) == IRON_OK && index) {
        iron__mds_index_close(index);
        return folder;
    }
    free(folder);
    return NULL;
}

/* The files of a directory or of a dataset, which may be remote. */
static iron_status add_directory(iron__file_list *list, const char *path, const struct stat *info,
                                 iron_error *err) {
    size_t length = strlen(path);
    contents in = {.root_length = length + (length == 0 || path[length - 1] != '/')};
    listing f = {path, NULL, info->st_dev, info->st_ino, &in, NULL};

    return take_contents(list, &in, path, add_folder(list->options, &f, err), err);
}

static iron_status add_argument(iron__file_list *list, const char *argument, iron_error *err) {
    bool is_remote = iron__path_is_remote(argument), is_directory;
    char *path, *folder = NULL;
    struct stat info = {.st_mode = S_IFREG};
    iron_status status;

    if (iron__path_is_stdin(argument))
        return append(list, strdup(argument), err);
    if (!is_remote && stat(argument, &info) != 0)
        return iron__fail_path(err, "open", argument, errno);
    path = is_remote ? iron__remote_name(argument) : strdup(argument);
    if (path && S_ISREG(info.st_mode))
        folder = folder_of_index(path);
    is_directory = S_ISDIR(info.st_mode) || (path && is_remote && iron__path_ends(path, "/"));
    if (!path || !(folder || is_directory))
        return append(list, path, err);
    if (folder && !is_remote && stat(folder, &info) != 0)
        status = iron__fail_path(err, "open", folder, errno);
    else
        status = add_directory(list, folder ? folder : path, &info, err);
    free(folder);
    free(path);
    return status;
}

iron_status iron__file_list_fill(iron__file_list *list, const iron_source_options *options,
                                 iron_error *err) {
    const iron__format *forced;
    iron_status status = iron__format_find(options->format, &forced, err);

    list->options = options;
    for (size_t k = 0; k < options->path_count && status == IRON_OK; k++) {
        const char *path = options->paths[k];
        /* in the format that the user names, the path may mean another file */
        char *main_path = forced && forced->main_path ? forced->main_path(path) : NULL;

        status = add_argument(list, main_path ? main_path : path, err);
        free(main_path);
    }
    list->options = NULL;
    return status;
}

iron_status iron_input_files_list(const iron_source_options *options, iron_input_files **out,
                                  iron_error *err) {
    iron_input_files *files;
    iron_status status;

    *out = NULL;
    IRON_TRY(iron__source_options_check(options, err));
    IRON_TRY(IRON_NEW(&files, 1, "a list of files", err));
    status = iron__file_list_fill(files, options, err);
    if (status == IRON_OK)
        *out = files;
    else
        iron_input_files_destroy(files);
    return status;
}

void iron_input_files_destroy(iron_input_files *files) {
    if (files)
        iron__file_list_clear(files);
    free(files);
}

size_t iron_input_files_count(const iron_input_files *files) { return files->count; }

const char *iron_input_files_at(const iron_input_files *files, size_t index) {
    return index < files->count ? files->paths[index] : NULL;
}
