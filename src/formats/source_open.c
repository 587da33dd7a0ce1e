/* SPDX-License-Identifier: MIT */
/*
 * source_open.c: what the files of a source are. Everything that can be known is checked here,
 * before the first token is read: that each file is there and readable, that its header, its size
 * and its neighbours agree, that all hold tokens of one width.
 *
 * A pipe shows what it is only when it is read. With a width from the user or from another file it
 * is looked into when its turn comes; otherwise the source waits for its first bytes when opened.
 */
#include "formats/source_parts.h"

#include "core/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* All files hold tokens of one width. */
static iron_status settle_dtype(iron_source *s, size_t index, iron_error *err) {
    const char *path = iron__path_shown(s->files.paths[index]);
    iron_dtype found = s->layouts[index].dtype;

    if (s->dtype == IRON_DTYPE_NONE) {
        s->dtype = found;
        s->dtype_file = index;
    }
    IRON_FAIL_IF(found != s->dtype, err, IRON_E_FORMAT,
                 "%.80s holds %s tokens and %.80s %s; the files of one stream must agree", path,
                 iron_dtype_name(found), iron__path_shown(s->files.paths[s->dtype_file]),
                 iron_dtype_name(s->dtype));
    return IRON_OK;
}

static iron_status look_into(iron_source *s, size_t index, iron__source_file *file,
                             const atomic_bool *stop, iron_error *err) {
    iron__candidate candidate = {.file = file,
                                 .name = iron__path_shown(file->path),
                                 .dtype = s->given,
                                 .is_for_raw = s->is_for_raw,
                                 .stop = stop};

    IRON_TRY(iron__format_examine(s->forced, &candidate, &s->layouts[index], err));
    return settle_dtype(s, index, err);
}

iron_status iron__source_look_into(iron_source *source, const atomic_bool *stop, iron_error *err) {
    return look_into(source, source->current, &source->file, stop, err);
}

/* An open regular file, from its position on: of standard input, others may have read a part. */
static iron_status examine_regular(iron_source *s, size_t index, iron__source_file *file,
                                   iron_error *err) {
    uint64_t size = file->bytes;
    off_t from = lseek(file->fd, 0, SEEK_CUR);

    file->start = from < 0 ? 0 : (uint64_t)from < size ? (uint64_t)from : size;
    file->bytes = size - file->start;
    return look_into(s, index, file, NULL, err);
}

/* Pipes and devices have no size; they wait. */
static iron_status examine(iron_source *s, size_t index, iron_error *err) {
    const char *path = s->files.paths[index];
    iron__source_file file = {.path = path, .fd = -1};
    struct stat info;
    iron_status status;

    s->layouts[index] = (iron__layout){.bytes = IRON_COUNT_UNKNOWN, .tokens = IRON_COUNT_UNKNOWN};
    if (iron__source_stat(path, &info) != 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", iron__path_shown(path),
                          strerror(errno));
    IRON_FAIL_IF(S_ISDIR(info.st_mode), err, IRON_E_ARG,
                 "%.120s is a directory; name it as an argument instead", iron__path_shown(path));
    if (!S_ISREG(info.st_mode))
        return IRON_OK;
    file.bytes = (uint64_t)info.st_size;
    s->seen[index] = (iron__seen_file){true, file.bytes, info.st_dev, info.st_ino};
    IRON_TRY(iron__source_file_open(&file, err));
    status = examine_regular(s, index, &file, err);
    iron__source_file_close(&file);
    return status;
}

static void count_tokens(iron_source *s) {
    for (size_t k = 0; k < s->files.count; k++)
        if (s->layouts[k].bytes == IRON_COUNT_UNKNOWN) /* what a pipe says is not there yet */
            s->tokens = IRON_COUNT_UNKNOWN;
        else if (s->tokens != IRON_COUNT_UNKNOWN)
            s->tokens += s->layouts[k].tokens;
}

static iron_status examine_all(iron_source *s, iron_error *err) {
    size_t stdins = 0;

    s->layouts = calloc(s->files.count + 1, sizeof *s->layouts);
    s->seen = calloc(s->files.count + 1, sizeof *s->seen);
    if (!s->layouts || !s->seen)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while listing files");
    for (size_t k = 0; k < s->files.count; k++) {
        stdins += iron__path_is_stdin(s->files.paths[k]);
        IRON_FAIL_IF(stdins > 1, err, IRON_E_ARG,
                     "standard input (-) is named twice; name it once");
        IRON_TRY(examine(s, k, err));
    }
    count_tokens(s);
    return IRON_OK;
}

/* No file said how wide tokens are, so the first one is a pipe, which must say it now. It stays
 * open: what was read of it is gone. */
static iron_status ask_first_pipe(iron_source *s, iron_error *err) {
    s->file = (iron__source_file){.path = s->files.paths[0], .bytes = IRON_COUNT_UNKNOWN, .fd = -1};
    IRON_TRY(iron__source_file_open(&s->file, err));
    return iron__source_look_into(s, NULL, err);
}

static iron_status check_options(const iron_source_options *o, iron_error *err) {
    IRON_FAIL_IF(!o || o->struct_size != sizeof *o, err, IRON_E_ARG,
                 "iron_source_options.struct_size is not %zu; set it to sizeof", sizeof *o);
    IRON_FAIL_IF(o->path_count == 0, err, IRON_E_ARG,
                 "no input; name files, or - for standard input");
    IRON_FAIL_IF(o->dtype != IRON_DTYPE_NONE && iron_dtype_bytes(o->dtype) == 0, err, IRON_E_ARG,
                 "unknown token width %d; use those of --dtype: u8, u16, u32, i32 or i64",
                 (int)o->dtype);
    return IRON_OK;
}

/* A path may stand for another file in the format that the user names. */
static iron_status add_path(iron_source *s, const char *path, iron_error *err) {
    char *main_path = s->forced && s->forced->main_path ? s->forced->main_path(path) : NULL;
    iron_status status = iron__file_list_add(&s->files, main_path ? main_path : path, err);

    free(main_path);
    return status;
}

/* Told once: while a source is read, the reader fills in what a pipe turns out to be. */
static bool is_seekable(const iron_source *s) {
    uint64_t bytes = 0;

    for (size_t k = 0; k < s->files.count; k++)
        if (s->layouts[k].bytes == IRON_COUNT_UNKNOWN || iron__path_is_stdin(s->files.paths[k]) ||
            __builtin_add_overflow(bytes, s->layouts[k].bytes, &bytes))
            return false;
    return true;
}

static iron_status open_files(iron_source *s, const iron_source_options *o, iron_error *err) {
    IRON_TRY(iron__format_find(o->format, &s->forced, err));
    s->given = o->dtype;
    s->is_for_raw = o->dtype_is_for_raw != 0;
    s->dtype = s->is_for_raw ? IRON_DTYPE_NONE : o->dtype;
    s->file.fd = -1;
    for (size_t k = 0; k < o->path_count; k++)
        IRON_TRY(add_path(s, o->paths[k], err));
    IRON_TRY(examine_all(s, err));
    s->is_seekable = is_seekable(s);
    return s->dtype == IRON_DTYPE_NONE ? ask_first_pipe(s, err) : IRON_OK;
}

iron_status iron_source_open(const iron_source_options *options, iron_source **out,
                             iron_error *err) {
    iron_source *s;
    iron_status status;

    *out = NULL;
    IRON_TRY(check_options(options, err));
    s = calloc(1, sizeof *s);
    if (!s)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while opening files");
    status = open_files(s, options, err);
    if (status != IRON_OK) {
        iron_source_close(s);
        return status;
    }
    *out = s;
    return IRON_OK;
}

void iron_source_close(iron_source *source) {
    if (!source)
        return;
    if (source->file.path)
        iron__source_file_close(&source->file);
    iron__file_list_clear(&source->files);
    free(source->layouts);
    free(source->seen);
    free(source);
}
