/* SPDX-License-Identifier: MIT */
/*
 * files.c: the files that a stream is made of: the sidecars beside token files, and the list of
 * files that arguments name.
 */
#include "core/fail.h"
#include "formats/folders.h"
#include "formats/format.h"
#include "formats/mds.h"
#include "formats/source.h"
#include "io/remote.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sidecars. */

/* datatrove also writes loss masks and file lists beside its tokens. */
static const struct {
    const char *suffix, *main_suffix, *what;
} kinds[] = {
    {".idx", ".bin", "the Megatron index"},     {".ds.index", ".ds", "the index"},
    {".ds.metadata", ".ds", "the description"}, {".ds.loss", ".ds", "the loss mask"},
    {".ds.datalist", ".ds", "the list"},
};

#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

/* Of a sidecar that cannot be read in pieces. */
#define SIDECAR_BYTES_MAX ((size_t)1 << 30)

bool iron__path_ends(const char *path, const char *suffix) {
    size_t length = strlen(path), end = strlen(suffix);

    return length > end && strcmp(path + length - end, suffix) == 0;
}

char *iron__path_beside(const char *path, size_t cut, const char *suffix) {
    char *beside = NULL;

    return asprintf(&beside, "%.*s%s", (int)(strlen(path) - cut), path, suffix) < 0 ? NULL : beside;
}

bool iron__path_is_there(const char *path) {
    iron__input_identity identity;
    struct stat info;

    if (!iron__path_is_remote(path))
        return stat(path, &info) == 0 && S_ISREG(info.st_mode);
    return !strchr(path, '?') && iron__input_identify(path, &identity, NULL) == IRON_OK;
}

bool iron__path_has_idx(const char *path) {
    char *beside = iron__path_ends(path, ".bin") ? iron__path_beside(path, 4, ".idx") : NULL;
    bool is_there = beside && iron__path_is_there(beside);

    free(beside);
    return is_there;
}

/* The kind of sidecar that a path names, or KIND_COUNT, and its main file, which may be missing.
 * The caller frees *main_path. */
static size_t kind_of(const char *path, char **main_path, bool *has_main) {
    size_t k = 0;

    *main_path = NULL;
    *has_main = false;
    while (k < KIND_COUNT && !iron__path_ends(path, kinds[k].suffix))
        k++;
    if (k < KIND_COUNT)
        *main_path = iron__path_beside(path, strlen(kinds[k].suffix), kinds[k].main_suffix);
    *has_main = *main_path && iron__path_is_there(*main_path);
    return k;
}

/* Whether the path names a sidecar whose main file exists. */
static bool is_sidecar(const char *path) {
    char *main_path;
    bool has_main;

    kind_of(path, &main_path, &has_main);
    free(main_path);
    return has_main;
}

iron_status iron__sidecar_refuse(const char *path, iron_error *err) {
    iron_status status = IRON_OK;
    char *main_path;
    bool has_main;
    size_t k = kind_of(path, &main_path, &has_main);

    if (k < KIND_COUNT && main_path && (has_main || strcmp(kinds[k].suffix, ".idx") != 0))
        status = iron__fail(
            err, IRON_E_ARG, 0, "%.90s is %s of %.90s, %s", path, kinds[k].what, main_path,
            has_main ? "which holds the tokens: name that file" : "which is missing");
    free(main_path);
    return status;
}

/* Whether an error means that there is no such file, or object: without the permission to list a
 * bucket, S3 answers 403 for objects that do not exist. */
static bool is_missing(const char *path, const iron_error *err) {
    if (iron__path_is_remote(path))
        return err->native == 404 || err->native == 410 || err->native == 403;
    return err->native == ENOENT || err->native == ENOTDIR || err->native == ENAMETOOLONG;
}

/* Sidecars from a server without ranges are read at once. */
static iron_status read_whole(iron__sidecar *s, iron_error *err) {
    size_t room = (size_t)64 << 10, got = 0;

    for (;; room *= 2) {
        unsigned char *grown = realloc(s->memory, room);
        size_t some;

        if (!grown)
            return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for %.100s", s->path);
        s->memory = grown;
        IRON_TRY(iron__input_read(&s->file, grown + got, room - got, &some, NULL, err));
        got += some;
        s->bytes = got;
        if (got < room)
            return IRON_OK;
        IRON_FAIL_IF(room >= SIDECAR_BYTES_MAX, err, IRON_E_UNSUPPORTED,
                     "%.100s has more than %zu MiB, and the server does not serve ranges: download "
                     "it first",
                     s->path, SIDECAR_BYTES_MAX >> 20);
    }
}

static iron_status open_sidecar(iron__sidecar *s, bool *is_there, iron_error *err) {
    iron__input_identity identity;
    bool is_remote = iron__path_is_remote(s->path), is_pipe;
    iron_error why = {0};
    iron_status status;

    if (is_remote && strchr(s->path, '?')) /* what is signed is one object alone */
        return IRON_OK;
    status = iron__input_identify(s->path, &identity, &why);
    if (status == IRON_OK) {
        is_pipe = identity.kind == IRON_INPUT_PIPE;
        IRON_FAIL_IF(identity.kind != IRON_INPUT_REGULAR && !(is_remote && is_pipe), err, IRON_E_IO,
                     "%.120s is not a regular file", s->path);
        s->bytes = identity.bytes;
        s->file.path = s->path;
        s->file.bytes = is_pipe ? IRON_COUNT_UNKNOWN : identity.bytes;
        status = iron__input_open(&s->file, &why);
        if (status == IRON_OK && is_pipe)
            status = read_whole(s, &why);
    }
    *is_there = status == IRON_OK;
    if (status != IRON_OK && is_missing(s->path, &why))
        return IRON_OK;
    if (status != IRON_OK && err)
        *err = why;
    return status;
}

iron_status iron__sidecar_open(char *path, iron__sidecar *out, bool *is_there, iron_error *err) {
    iron_status status;

    *is_there = false;
    *out = (iron__sidecar){.path = path, .file = {.fd = -1}};
    if (!path)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for a file name");
    status = open_sidecar(out, is_there, err);
    if (!*is_there)
        iron__sidecar_close(out);
    return status;
}

void iron__sidecar_close(iron__sidecar *sidecar) {
    if (sidecar->file.path)
        iron__input_close(&sidecar->file);
    free(sidecar->memory);
    free(sidecar->path);
    *sidecar = (iron__sidecar){.file = {.fd = -1}};
}

iron_status iron__sidecar_read(const iron__sidecar *sidecar, uint64_t at, void *to, size_t want,
                               iron_error *err) {
    uint64_t end;

    IRON_FAIL_IF(__builtin_add_overflow(at, want, &end) || end > sidecar->bytes, err, IRON_E_FORMAT,
                 "%.120s ended at byte %" PRIu64 ", expected at least %" PRIu64 " bytes",
                 sidecar->path, sidecar->bytes, at + want);
    if (!sidecar->memory)
        return iron__input_read_at(&sidecar->file, at, to, want, NULL, err);
    if (want > 0)
        memcpy(to, sidecar->memory + at, want);
    return IRON_OK;
}

iron_status iron__sidecar_text(const iron__sidecar *sidecar, size_t bytes_max, char **text,
                               iron_error *err) {
    iron_status status;

    *text = NULL;
    IRON_FAIL_IF(sidecar->bytes > bytes_max, err, IRON_E_UNSUPPORTED,
                 "%.120s has %" PRIu64 " bytes, more than %zu", sidecar->path, sidecar->bytes,
                 bytes_max);
    *text = malloc((size_t)sidecar->bytes + 1);
    if (!*text)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for %.100s", sidecar->path);
    status = iron__sidecar_read(sidecar, 0, *text, (size_t)sidecar->bytes, err);
    (*text)[sidecar->bytes] = '\0';
    if (status != IRON_OK) {
        free(*text);
        *text = NULL;
    }
    return status;
}

/* The files that arguments name. The files of a directory come in natural order. */

static size_t digits(const char *text) { return strspn(text, "0123456789"); }

/* Compares the numbers at *a and *b as digit strings and advances both past them. */
static int compare_numbers(const char **a, const char **b) {
    size_t zeros_a = strspn(*a, "0"), zeros_b = strspn(*b, "0");
    size_t length_a = digits(*a + zeros_a), length_b = digits(*b + zeros_b);
    int order;

    if (length_a != length_b)
        order = length_a < length_b ? -1 : 1;
    else
        order = memcmp(*a + zeros_a, *b + zeros_b, length_a);
    *a += zeros_a + length_a;
    *b += zeros_b + length_b;
    return order;
}

/* Like strcmp, but runs of digits compare as numbers. A total order: equal only if identical. */
static int natural_compare(const char *a, const char *b) {
    const char *x = a, *y = b;

    while (*x && *y) {
        if (digits(x) && digits(y)) {
            int order = compare_numbers(&x, &y);

            if (order)
                return order;
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

static iron_status no_memory(iron_error *err) {
    return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while listing files");
}

/* Takes `path`, also on failure. */
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

/* A file of a directory. What a library wrote as one dataset stays together, in its own order:
 * these files share a key, the path of their folder. */
typedef struct found_file {
    char *path;
    char *key;    /* NULL: the path */
    size_t order; /* of files with the same key */
} found_file;

static int by_natural_order(const void *a, const void *b) {
    const found_file *x = a, *y = b;
    int order = natural_compare(x->key ? x->key : x->path, y->key ? y->key : y->path);

    return order ? order : x->order < y->order ? -1 : x->order > y->order;
}

/* A file of a directory that is not tokens. */
typedef struct skipped_file {
    char *path;
    const char *what;
} skipped_file;

/* What a directory that the user named contains besides the files that are read. */
typedef struct contents {
    size_t root_length; /* of its path, with the slash */
    size_t subfolders;  /* that were not entered */
    const char *list;   /* the file that lists those of a dataset; NULL: there is none */
    size_t not_chosen;  /* by --include and --exclude */
    found_file *found;
    size_t found_count, found_capacity;
    skipped_file *skipped;
    size_t skipped_count, capacity;
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

/* What is inside a compressed file, if that is not tokens; NULL also if that cannot be told. */
static const iron__container *look_inside(iron__candidate *c, iron__codec codec) {
    if (!iron__codec_is_there(codec) || iron__input_decompress(c->file, codec, NULL) != IRON_OK ||
        iron__input_peek(c->file, c->head, &c->head_count, NULL, NULL) != IRON_OK ||
        iron__format_recognise(c) != &iron__format_raw)
        return NULL;
    return iron__container_find(c);
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
    if (iron__input_open(&file, NULL) == IRON_OK) {
        if (iron__input_peek(&file, c.head, &c.head_count, NULL, NULL) == IRON_OK) {
            is_recognised = iron__format_recognise(&c) != &iron__format_raw;
            found = is_recognised ? NULL : iron__container_find(&c);
        }
        if (found && found->codec != IRON_CODEC_NONE)
            found = look_inside(&c, found->codec);
        iron__input_close(&file);
    }
    if (found)
        return found->what;
    return o->include_count == 0 && !is_recognised ? judge_name(path, o->dtype) : NULL;
}

/* Takes `path`, also on failure. `key`: borrowed; may be NULL. */
static iron_status find(contents *in, char *path, const char *key, iron_error *err) {
    found_file file = {path, key ? strdup(key) : NULL, in->found_count};

    if (in->found_count == in->found_capacity) {
        size_t capacity = in->found_capacity ? 2 * in->found_capacity : 16;
        found_file *found = realloc(in->found, capacity * sizeof *found);

        if (found) {
            in->found = found;
            in->found_capacity = capacity;
        }
    }
    if (!path || (key && !file.key) || in->found_count == in->found_capacity) {
        free(path);
        free(file.key);
        return no_memory(err);
    }
    in->found[in->found_count++] = file;
    return IRON_OK;
}

/* Takes `path`, also on failure. */
static iron_status skip(contents *in, char *path, const char *what, iron_error *err) {
    if (in->skipped_count == in->capacity) {
        size_t capacity = in->capacity ? 2 * in->capacity : 16;
        skipped_file *skipped = realloc(in->skipped, capacity * sizeof *skipped);

        if (!skipped) {
            free(path);
            return no_memory(err);
        }
        in->skipped = skipped;
        in->capacity = capacity;
    }
    in->skipped[in->skipped_count++] = (skipped_file){path, what};
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

/* Whether --include and --exclude choose a path of the directory that the user named. */
static bool is_chosen(const iron_source_options *o, const char *relative, bool is_directory) {
    return !o || (!any_matches(o->exclude, o->exclude_count, relative, is_directory) &&
                  (is_directory || o->include_count == 0 ||
                   any_matches(o->include, o->include_count, relative, false)));
}

/* Takes `file`. A file that stat cannot access is a missing shard: it is listed, and opening it
 * fails. */
static iron_status add_entry(const iron_source_options *o, const listing *f, char *file,
                             iron_error *err) {
    const char *what;
    iron_status status = IRON_OK;
    struct stat info = {0};
    bool is_there, is_directory;

    if (!file)
        return no_memory(err);
    is_there = stat(file, &info) == 0;
    is_directory = is_there && S_ISDIR(info.st_mode);
    if (is_there && !is_directory && is_sidecar(file)) {
        free(file);
    } else if (!is_chosen(o, file + f->in->root_length, is_directory)) {
        f->in->not_chosen++;
        free(file);
    } else if (is_directory) {
        if (o && o->is_recursive)
            status = add_subfolder(o, file, &info, f, NULL, err);
        else
            f->in->subfolders++;
        free(file);
    } else if (o && is_there && S_ISREG(info.st_mode) &&
               (what = not_tokens(o, file, (uint64_t)info.st_size))) {
        status = skip(f->in, file, what, err);
    } else {
        status = find(f->in, file, NULL, err);
    }
    return status;
}

static iron_status add_plain(const iron_source_options *o, const listing *f, iron_error *err) {
    DIR *directory = opendir(f->path);
    iron_status status = IRON_OK;
    struct dirent *entry;

    if (!directory)
        return iron__fail(err, IRON_E_IO, errno, "cannot list directory %.120s: %s", f->path,
                          strerror(errno));
    while (status == IRON_OK && (errno = 0, entry = readdir(directory)))
        if (entry->d_name[0] != '.')
            status = add_entry(o, f, iron__folder_join(f->path, entry->d_name), err);
    if (status == IRON_OK && errno)
        status = iron__fail(err, IRON_E_IO, errno, "cannot list directory %.120s: %s", f->path,
                            strerror(errno));
    closedir(directory);
    return status;
}

/* The files of a dataset. Those that are missing are listed as well, and opening them fails. */
static iron_status add_parts(const iron_source_options *o, const listing *f,
                             const iron__folder *folder, iron_error *err) {
    char *key = iron__folder_join(f->path, "");
    iron_status status = key ? IRON_OK : no_memory(err);

    f->in->list = folder->kind == IRON_FOLDER_MDS ? "index.json" : "state.json";
    for (size_t k = 0; k < folder->count && status == IRON_OK; k++) {
        char *path = iron__folder_join(f->path, folder->parts[k]);

        if (path && !is_chosen(o, path + f->in->root_length, false)) {
            f->in->not_chosen++;
            free(path);
        } else {
            status = find(f->in, path, f->key ? f->key : key, err);
        }
    }
    free(key);
    return status;
}

/* "train, test", as many as there is room for. */
static void list_splits(const iron__folder *folder, char *text, size_t room) {
    size_t used = 0;

    for (size_t k = 0; k < folder->count && used < room; k++) {
        int length = snprintf(text + used, room - used, "%s%.30s", k ? ", " : "", folder->parts[k]);

        used += length > 0 ? (size_t)length : 0;
    }
    if (used >= room)
        memcpy(text + room - 4, "...", 4);
}

/* A dataset of several splits is read as a whole only if the user says so: test data would be taken
 * for training data. */
static iron_status add_splits(const iron_source_options *o, const listing *f, iron__folder *folder,
                              iron_error *err) {
    char *key = iron__folder_join(f->path, ""), text[80] = "";
    iron_status status = key ? IRON_OK : no_memory(err);
    size_t chosen = 0;

    for (size_t k = 0; k < folder->count; k++) { /* leaves those that --exclude does not name */
        char *path = iron__folder_join(f->path, folder->parts[k]);

        if (path && !is_chosen(o, path + f->in->root_length, true)) {
            free(folder->parts[k]);
            f->in->not_chosen++;
        } else {
            folder->parts[chosen++] = folder->parts[k];
        }
        free(path);
    }
    folder->count = chosen;
    list_splits(folder, text, sizeof text);
    if (status == IRON_OK && folder->count > 1 && !(o && o->is_recursive))
        status = iron__fail(err, IRON_E_ARG, 0,
                            "%.70s has the splits %s; name %.60s/%.20s, or give -r to read all",
                            f->path, text, f->path, folder->parts[0]);
    for (size_t k = 0; k < folder->count && status == IRON_OK; k++) {
        char *path = iron__folder_join(f->path, folder->parts[k]);
        struct stat info;

        if (!path)
            status = no_memory(err);
        else if (stat(path, &info) != 0)
            status = iron__fail(err, IRON_E_IO, errno,
                                "cannot open %.100s, which dataset_dict.json lists: %s", path,
                                strerror(errno));
        else
            status = add_subfolder(o, path, &info, f, f->key ? f->key : key, err);
        free(path);
    }
    free(key);
    return status;
}

static iron_status add_folder(const iron_source_options *o, const listing *f, iron_error *err) {
    iron__folder folder;
    iron_status status = iron__folder_read(f->path, &folder, err);

    if (status == IRON_OK && f->key && folder.kind != IRON_FOLDER_HF)
        status = iron__fail(err, IRON_E_FORMAT, 0,
                            "%.120s is listed as a split by dataset_dict.json, but has no "
                            "state.json that lists its files",
                            f->path);
    else if (status == IRON_OK && folder.kind == IRON_FOLDER_PLAIN)
        status = add_plain(o, f, err);
    else if (status == IRON_OK && folder.kind == IRON_FOLDER_HF_SPLITS)
        status = add_splits(o, f, &folder, err);
    else if (status == IRON_OK)
        status = add_parts(o, f, &folder, err);
    iron__folder_clear(&folder);
    return status;
}

static int by_skipped_path(const void *a, const void *b) {
    return natural_compare(((const skipped_file *)a)->path, ((const skipped_file *)b)->path);
}

/* The error for a directory without token files. A container says more than a text beside it. */
static iron_status nothing_left(const contents *in, const char *path, iron_error *err) {
    const skipped_file *shown = in->skipped;

    for (size_t k = 0; k < in->skipped_count && strncmp(shown->what, "text", 4) == 0; k++)
        shown = strncmp(in->skipped[k].what, "text", 4) == 0 ? shown : &in->skipped[k];
    IRON_FAIL_IF(shown, err, IRON_E_ARG,
                 "directory %.70s has no token files: %.60s is %s, not tokens%s", path,
                 shown->path + in->root_length, shown->what,
                 in->skipped_count > 1 ? "; neither are the others" : "");
    IRON_FAIL_IF(in->not_chosen > 0, err, IRON_E_ARG,
                 "no file of directory %.100s is chosen by --include and --exclude", path);
    IRON_FAIL_IF(in->list, err, IRON_E_ARG, "%.120s has no files: its %s lists none", path,
                 in->list);
    IRON_FAIL_IF(in->subfolders > 0, err, IRON_E_ARG,
                 "directory %.100s has only subdirectories; give -r to read their files", path);
    IRON_FAIL(err, IRON_E_ARG,
              "directory %.120s has no files; name files or a directory that has some", path);
}

/* Moves what was found to the list, in order, and reports what was skipped. */
static iron_status take_contents(iron__file_list *list, contents *in, const char *path,
                                 iron_status status, iron_error *err) {
    const iron_source_options *o = list->options;

    if (in->skipped_count > 0)
        qsort(in->skipped, in->skipped_count, sizeof *in->skipped, by_skipped_path);
    if (in->found_count > 0)
        qsort(in->found, in->found_count, sizeof *in->found, by_natural_order);
    if (status == IRON_OK && in->found_count == 0)
        status = nothing_left(in, path, err);
    for (size_t k = 0; k < in->found_count; k++) {
        if (status == IRON_OK)
            status = append(list, in->found[k].path, err);
        else
            free(in->found[k].path);
        free(in->found[k].key);
    }
    for (size_t k = 0; k < in->skipped_count; k++) {
        const skipped_file *s = &in->skipped[k];

        if (status == IRON_OK && o->warn)
            o->warn(o->warn_context, &(iron_warning){IRON_WARNING_SKIPPED, s->path, s->what});
        free(s->path);
    }
    free(in->found);
    free(in->skipped);
    return status;
}

static iron_status add_directory(iron__file_list *list, const char *path, const struct stat *info,
                                 iron_error *err) {
    size_t length = strlen(path);
    contents in = {.root_length = length + (length == 0 || path[length - 1] != '/')};
    listing f = {path, NULL, info->st_dev, info->st_ino, &in, NULL};

    return take_contents(list, &in, path, add_folder(list->options, &f, err), err);
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
        const char *what = o && o->include_count == 0 ? judge_name(names[k], o->dtype) : NULL;
        char *main_path;
        bool has_main;

        if (strlen(names[k]) <= f->in->root_length || iron__path_ends(names[k], "/"))
            continue;
        if (strchr(relative, '/') && !(o && o->is_recursive)) {
            f->in->subfolders++;
        } else if (!is_chosen(o, relative, false)) {
            f->in->not_chosen++;
        } else if (what) {
            status = skip(f->in, names[k], what, err);
            names[k] = NULL;
        } else if (kind_of(names[k], &main_path, &has_main), free(main_path), !has_main) {
            status = find(f->in, names[k], NULL, err);
            names[k] = NULL;
        }
    }
    for (size_t k = 0; k < count; k++)
        free(names[k]);
    free(names);
    return status;
}

/* The splits of a remote dataset are not read together: each is an address of its own. */
static iron_status add_remote_folder(iron__file_list *list, const char *address, iron_error *err) {
    contents in = {.root_length = strlen(address)};
    listing f = {.path = address, .in = &in};
    char text[80] = "";
    iron__folder folder;
    iron_status status = iron__folder_read(address, &folder, err);

    list_splits(&folder, text, sizeof text);
    if (status == IRON_OK && folder.kind == IRON_FOLDER_HF_SPLITS)
        status = iron__fail(err, IRON_E_ARG, 0, "%.90s has the splits %s; name one: %.90s%.20s/",
                            address, text, address, folder.count ? folder.parts[0] : "train");
    else if (status == IRON_OK && folder.kind != IRON_FOLDER_PLAIN)
        status = add_parts(list->options, &f, &folder, err);
    else if (status == IRON_OK && strncmp(address, "s3://", 5) == 0)
        status = list_bucket(list->options, &f, err);
    else if (status == IRON_OK)
        status = iron__fail(err, IRON_E_UNSUPPORTED, 0,
                            "%.120s has no index.json or state.json, and folders cannot be listed "
                            "over HTTP; name the files",
                            address);
    iron__folder_clear(&folder);
    return take_contents(list, &in, address, status, err);
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

/* Takes `name`, that of an address. */
static iron_status add_remote(iron__file_list *list, char *name, iron_error *err) {
    char *folder = name ? folder_of_index(name) : NULL;
    iron_status status;

    if (!name || !(folder || iron__path_ends(name, "/")))
        return append(list, name, err);
    status = add_remote_folder(list, folder ? folder : name, err);
    free(folder);
    free(name);
    return status;
}

iron_status iron__file_list_add(iron__file_list *list, const char *path, iron_error *err) {
    char *folder = NULL;
    iron_status status;
    struct stat info;

    if (iron__path_is_stdin(path))
        return append(list, strdup(path), err);
    if (iron__path_is_remote(path))
        return add_remote(list, iron__remote_name(path), err);
    if (stat(path, &info) != 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", path, strerror(errno));
    if (S_ISREG(info.st_mode) && (folder = folder_of_index(path)) && stat(folder, &info) != 0)
        status =
            iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", folder, strerror(errno));
    else if (S_ISDIR(info.st_mode))
        status = add_directory(list, folder ? folder : path, &info, err);
    else
        status = append(list, strdup(path), err);
    free(folder);
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

        status = iron__file_list_add(list, main_path ? main_path : path, err);
        free(main_path);
    }
    list->options = NULL;
    return status;
}

struct iron_input_files {
    iron__file_list list;
};

iron_status iron_input_files_list(const iron_source_options *options, iron_input_files **out,
                                  iron_error *err) {
    iron_input_files *files;
    iron_status status;

    *out = NULL;
    IRON_TRY(iron__source_options_check(options, err));
    files = calloc(1, sizeof *files);
    status = files ? iron__file_list_fill(&files->list, options, err) : no_memory(err);
    if (status == IRON_OK)
        *out = files;
    else
        iron_input_files_destroy(files);
    return status;
}

void iron_input_files_destroy(iron_input_files *files) {
    if (files)
        iron__file_list_clear(&files->list);
    free(files);
}

size_t iron_input_files_count(const iron_input_files *files) { return files->list.count; }

const char *iron_input_files_at(const iron_input_files *files, size_t index) {
    return index < files->list.count ? files->list.paths[index] : NULL;
}

void iron__file_list_clear(iron__file_list *list) {
    for (size_t k = 0; k < list->count; k++)
        free(list->paths[k]);
    free(list->paths);
    *list = (iron__file_list){0};
}
