/* SPDX-License-Identifier: MIT */
/*
 * files.c: the files that a stream is made of: the sidecars beside token files, and the list of
 * files that arguments name.
 */
#include "core/fail.h"
#include "formats/format.h"
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

static char *join(const char *directory, const char *name) {
    size_t length = strlen(directory);
    const char *slash = length && directory[length - 1] == '/' ? "" : "/";
    char *path = NULL;

    return asprintf(&path, "%s%s%s", directory, slash, name) < 0 ? NULL : path;
}

static int by_natural_order(const void *a, const void *b) {
    return natural_compare(*(char *const *)a, *(char *const *)b);
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
    size_t not_chosen;  /* by --include and --exclude */
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

/* What a file of a directory is if it is not tokens, or NULL. A name decides only if the user has
 * not chosen names with --include; files that cannot be read are reported when they are opened. */
static const char *not_tokens(const iron_source_options *o, const char *path, uint64_t bytes) {
    iron__input file = {.path = path, .bytes = bytes, .fd = -1};
    iron__candidate c = {.file = &file, .name = path, .dtype = o->dtype};
    const iron__container *found = NULL;

    if (o->include_count > 0 && o->format && strcmp(o->format, "raw") == 0)
        return NULL;
    if (iron__input_open(&file, NULL) == IRON_OK) {
        if (iron__input_peek(&file, c.head, &c.head_count, NULL, NULL) == IRON_OK &&
            iron__format_recognise(&c) == &iron__format_raw)
            found = iron__container_find(&c);
        iron__input_close(&file);
    }
    if (found)
        return found->what;
    return o->include_count == 0 ? iron__container_by_name(path, o->dtype) : NULL;
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

static iron_status add_folder(iron__file_list *list, const listing *f, iron_error *err);

/* Enters a subdirectory, unless it is one of those that it is in: a symbolic link can form a
 * loop. */
static iron_status add_subfolder(iron__file_list *list, const char *path, const struct stat *info,
                                 const listing *parent, iron_error *err) {
    listing sub = {path, parent, info->st_dev, info->st_ino, parent->in};

    for (const listing *f = parent; f; f = f->parent)
        if (f->device == sub.device && f->inode == sub.inode)
            return IRON_OK;
    return add_folder(list, &sub, err);
}

/* Takes `file`. A file that stat cannot access is a missing shard: it is listed, and opening it
 * fails. */
static iron_status add_entry(iron__file_list *list, const listing *f, char *file, iron_error *err) {
    const iron_source_options *o = list->options;
    const char *relative, *what;
    iron_status status = IRON_OK;
    struct stat info = {0};
    bool is_there, is_directory;

    if (!file)
        return no_memory(err);
    is_there = stat(file, &info) == 0;
    is_directory = is_there && S_ISDIR(info.st_mode);
    relative = file + f->in->root_length;
    if (is_there && !is_directory && is_sidecar(file)) {
        free(file);
    } else if (o && (any_matches(o->exclude, o->exclude_count, relative, is_directory) ||
                     (!is_directory && o->include_count > 0 &&
                      !any_matches(o->include, o->include_count, relative, false)))) {
        f->in->not_chosen++;
        free(file);
    } else if (is_directory) {
        if (o && o->is_recursive)
            status = add_subfolder(list, file, &info, f, err);
        else
            f->in->subfolders++;
        free(file);
    } else if (o && is_there && S_ISREG(info.st_mode) &&
               (what = not_tokens(o, file, (uint64_t)info.st_size))) {
        status = skip(f->in, file, what, err);
    } else {
        status = append(list, file, err);
    }
    return status;
}

static iron_status add_folder(iron__file_list *list, const listing *f, iron_error *err) {
    DIR *directory = opendir(f->path);
    iron_status status = IRON_OK;
    struct dirent *entry;

    if (!directory)
        return iron__fail(err, IRON_E_IO, errno, "cannot list directory %.120s: %s", f->path,
                          strerror(errno));
    while (status == IRON_OK && (errno = 0, entry = readdir(directory)))
        if (entry->d_name[0] != '.')
            status = add_entry(list, f, join(f->path, entry->d_name), err);
    if (status == IRON_OK && errno)
        status = iron__fail(err, IRON_E_IO, errno, "cannot list directory %.120s: %s", f->path,
                            strerror(errno));
    closedir(directory);
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
    IRON_FAIL_IF(in->subfolders > 0, err, IRON_E_ARG,
                 "directory %.100s has only subdirectories; give -r to read their files", path);
    IRON_FAIL(err, IRON_E_ARG,
              "directory %.120s has no files; name files or a directory that has some", path);
}

static iron_status add_directory(iron__file_list *list, const char *path, const struct stat *info,
                                 iron_error *err) {
    const iron_source_options *o = list->options;
    size_t first = list->count, length = strlen(path);
    contents in = {.root_length = length + (length == 0 || path[length - 1] != '/')};
    listing f = {path, NULL, info->st_dev, info->st_ino, &in};
    iron_status status = add_folder(list, &f, err);

    if (in.skipped_count > 0)
        qsort(in.skipped, in.skipped_count, sizeof *in.skipped, by_skipped_path);
    if (status == IRON_OK && list->count == first)
        status = nothing_left(&in, path, err);
    else if (status == IRON_OK)
        qsort(list->paths + first, list->count - first, sizeof *list->paths, by_natural_order);
    for (size_t k = 0; k < in.skipped_count; k++) {
        const skipped_file *s = &in.skipped[k];

        if (status == IRON_OK && o->warn)
            o->warn(o->warn_context, &(iron_warning){IRON_WARNING_SKIPPED, s->path, s->what});
        free(s->path);
    }
    free(in.skipped);
    return status;
}

iron_status iron__file_list_add(iron__file_list *list, const char *path, iron_error *err) {
    struct stat info;

    if (iron__path_is_stdin(path))
        return append(list, strdup(path), err);
    if (stat(path, &info) != 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return add_directory(list, path, &info, err);
    return append(list, strdup(path), err);
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
