/* SPDX-License-Identifier: MIT */
/*
 * source.c: several token files as one stream, read in order by one thread.
 *
 * When a source is opened, everything that can be known is checked before the first token is read:
 * that each file exists and is readable, that its header, its size and the files beside it agree,
 * and that all files hold tokens of one dtype. A pipe can be examined only when it is read. If the
 * user or another file gives the dtype, a pipe is examined when its turn comes; otherwise opening
 * the source waits for the first bytes of the first pipe.
 *
 * It is an error if a file became shorter since the source was opened, if a pipe ends inside a
 * token, or if a pipe delivers fewer or more tokens than its header says. parallel_source.c reads
 * files at several positions at once.
 */
#include "formats/source.h"

#include "core/fail.h"
#include "core/hash.h"
#include "formats/format.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The identity of a regular file when the source was opened. */
typedef struct file_identity {
    bool is_regular;
    uint64_t bytes; /* the whole file, also for standard input that was partly read before */
    dev_t device;
    ino_t inode;
} file_identity;

/* Arrays in Fortran order, read in C order.
 *
 * NumPy saves an array in Fortran order if that is how it is in memory, as after a transpose.
 * Loaded, it is the same array as one saved in C order, so it is the same stream of tokens: the
 * last index changes fastest. In the file the first index does.
 *
 * The file consists of columns: all elements with the same indexes but the first. A tile is a range
 * of the first index, as many rows as fit into TILE_BYTES: one piece of each column, read and
 * written to its place in C order. Larger tiles mean longer reads. A source keeps two tiles, for
 * threads that are at the end of one and at the beginning of the next. */

#ifndef TILE_BYTES /* small ones in tests */
#define TILE_BYTES ((size_t)64 << 20)
#endif
#define COLUMN_BYTES ((size_t)1 << 20) /* of several columns, if the tile has all rows */
#define TILES        2u

typedef struct tile {
    const char *path; /* of the file, borrowed; NULL: empty */
    uint64_t first;   /* token */
    uint64_t count;
    uint64_t last_use;
    size_t capacity; /* of data, in bytes */
    unsigned char *data;
} tile;

typedef struct fortran_reader {
    pthread_mutex_t mutex;
    uint64_t clock;
    tile tiles[TILES];
} fortran_reader;

static iron_status fortran_reader_create(fortran_reader **out, iron_error *err) {
    *out = calloc(1, sizeof **out);
    if (!*out)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for an array reader");
    pthread_mutex_init(&(*out)->mutex, NULL);
    return IRON_OK;
}

static void fortran_reader_destroy(fortran_reader *reader) {
    if (!reader)
        return;
    for (size_t k = 0; k < TILES; k++)
        free(reader->tiles[k].data);
    pthread_mutex_destroy(&reader->mutex);
    free(reader);
}

/* The tokens of a row: all with the same first index. */
static uint64_t row_tokens(const iron__format_layout *l) { return l->tokens / l->shape[0]; }

iron_status iron__fortran_check(const iron__format_layout *l, const char *name, iron_error *err) {
    uint64_t bytes = l->tokens ? row_tokens(l) * iron_dtype_bytes(l->dtype) : 0;

    IRON_FAIL_IF(bytes > TILE_BYTES, err, IRON_E_UNSUPPORTED,
                 "%.80s: an array in Fortran order with %" PRIu64 " bytes for each first index, at "
                 "most %zu can be read; save it with numpy.ascontiguousarray",
                 name, bytes, TILE_BYTES);
    return IRON_OK;
}

/* Where a token is in the file, counted in tokens. */
static uint64_t fortran_place(const iron__format_layout *l, uint64_t token) {
    uint64_t place = 0, columns = l->tokens, stride = 1;

    for (unsigned d = 0; d < l->dimensions; d++) {
        columns /= l->shape[d];
        place += token / columns * stride;
        token %= columns;
        stride *= l->shape[d];
    }
    return place;
}

/* Copies `rows` elements, which follow each other, to every row of the tile at one column. */
static void scatter(const unsigned char *from, size_t rows, unsigned char *to, size_t row_bytes,
                    size_t width) {
    for (size_t r = 0; r < rows; r++)
        memcpy(to + r * row_bytes, from + r * width, width);
}

/* Reads exactly `want` bytes. */
static iron_status read_exactly(iron__input *file, uint64_t at, void *to, size_t want,
                                const atomic_bool *stop, iron_error *err) {
    size_t got;

    file->offset = at;
    IRON_TRY(iron__input_read(file, to, want, &got, stop, err));
    return got < want ? iron__input_check_end(file, err) : IRON_OK;
}

/* Fills the tile with rows `row` ... row+rows-1. `piece` has room for one column's part of it, and
 * for COLUMN_BYTES. */
static iron_status fill(const iron__format_layout *l, iron__input *file, uint64_t row,
                        size_t rows, unsigned char *to, unsigned char *piece,
                        const atomic_bool *stop, iron_error *err) {
    uint64_t index[IRON_DIMENSIONS_MAX] = {0}, stride[IRON_DIMENSIONS_MAX], column = 0;
    size_t width = iron_dtype_bytes(l->dtype), part = rows * width;
    uint64_t columns = row_tokens(l), place = 0;

    /* a step of index d moves so many tokens within a row */
    stride[l->dimensions - 1] = 1;
    for (unsigned d = l->dimensions - 1; d > 1; d--)
        stride[d - 1] = stride[d] * l->shape[d];
    while (column < columns) {
        /* columns that follow each other without a gap are read together */
        size_t some = rows == l->shape[0] && part < COLUMN_BYTES ? COLUMN_BYTES / part : 1;

        some = some < columns - column ? some : (size_t)(columns - column);
        IRON_TRY(read_exactly(file, l->data_offset + (column * l->shape[0] + row) * width, piece,
                              some * part, stop, err));
        for (size_t k = 0; k < some; k++) {
            scatter(piece + k * part, rows, to + place * width, (size_t)columns * width, width);
            for (unsigned d = 1; d < l->dimensions; d++) {
                place += stride[d];
                if (++index[d] < l->shape[d])
                    break;
                place -= stride[d] * l->shape[d];
                index[d] = 0;
            }
        }
        column += some;
    }
    return IRON_OK;
}

/* Loads the tile that begins with the row of a token. */
static iron_status load(tile *t, const iron__format_layout *l, const char *path, uint64_t token,
                        const atomic_bool *stop, iron_error *err) {
    iron__input file = {.path = path, .bytes = l->bytes, .fd = -1};
    uint64_t columns = row_tokens(l), row = token / columns;
    size_t width = iron_dtype_bytes(l->dtype), fit = TILE_BYTES / (size_t)(columns * width);
    size_t rows = fit < l->shape[0] - row ? fit : (size_t)(l->shape[0] - row);
    unsigned char *piece = malloc(rows * width > COLUMN_BYTES ? rows * width : COLUMN_BYTES);
    iron_status status;

    t->path = NULL;
    if (t->capacity < rows * columns * width) {
        free(t->data);
        t->capacity = rows * (size_t)columns * width;
        t->data = malloc(t->capacity);
    }
    if (!t->data)
        t->capacity = 0;
    if (!piece || !t->data)
        status = iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for a part of %.120s", path);
    else
        status = iron__input_open(&file, err);
    if (status == IRON_OK) {
        status = fill(l, &file, row, rows, t->data, piece, stop, err);
        iron__input_close(&file);
    }
    free(piece);
    if (status == IRON_OK) {
        t->path = path;
        t->first = row * columns;
        t->count = rows * columns;
    }
    return status;
}

/* The tile with a token; loads it in place of the one that was not used for longest. */
static iron_status find_tile(fortran_reader *r, const iron__format_layout *l, const char *path,
                             uint64_t token, const atomic_bool *stop, tile **out, iron_error *err) {
    tile *oldest = &r->tiles[0];

    for (size_t k = 0; k < TILES; k++) {
        tile *t = &r->tiles[k];

        if (t->path == path && token >= t->first && token - t->first < t->count) {
            *out = t;
            return IRON_OK;
        }
        oldest = t->last_use < oldest->last_use ? t : oldest;
    }
    *out = oldest;
    return load(oldest, l, path, token, stop, err);
}

/* Reads tokens first ... first+count-1 in C order; they must exist. `path` must stay valid while
 * the reader is used. May be called from any thread. */
static iron_status fortran_read(fortran_reader *reader, const iron__format_layout *l,
                                const char *path, uint64_t first, void *to, size_t count,
                                const atomic_bool *stop, iron_error *err) {
    size_t width = iron_dtype_bytes(l->dtype);
    iron_status status = IRON_OK;

    pthread_mutex_lock(&reader->mutex);
    while (count > 0 && status == IRON_OK) {
        tile *t;

        status = find_tile(reader, l, path, first, stop, &t, err);
        if (status == IRON_OK) {
            uint64_t left = t->first + t->count - first;
            size_t some = count < left ? count : (size_t)left;

            memcpy(to, t->data + (first - t->first) * width, some * width);
            t->last_use = ++reader->clock;
            to = (char *)to + some * width;
            first += some;
            count -= some;
        }
    }
    pthread_mutex_unlock(&reader->mutex);
    return status;
}

/* Sources. */

struct iron_source {
    iron_dtype dtype;            /* of all files; NONE only while the source is being opened */
    size_t dtype_file;           /* the file that determined it, if `given` did not */
    iron_dtype given;            /* given by the user, or NONE */
    bool is_for_raw;             /* `given` applies only to files without a dtype of their own */
    bool is_seekable;            /* only regular files with names; does not change */
    const iron__format *forced;  /* NULL: recognise the format of each file */
    iron_source_options options; /* only warn and its context */
    iron__file_list files;
    iron__format_layout *layouts; /* of each file */
    file_identity *identities;    /* of each file */
    uint64_t tokens;

    size_t current;          /* index of the file being read */
    uint64_t done;           /* bytes of its tokens that were read */
    iron__input file;  /* the current file; opened when it is first read */
    fortran_reader *fortran; /* NULL unless a file is an array in Fortran order */
};

/* stat of a path or of standard input; 0, or -1 and errno. */
static int stat_path(const char *path, struct stat *info) {
    return iron__path_is_stdin(path) ? fstat(STDIN_FILENO, info) : stat(path, info);
}

/* Examines an open file and checks that its dtype is the one of the source. */
static iron_status examine_open(iron_source *s, size_t index, iron__input *file,
                                const atomic_bool *stop, iron_error *err) {
    iron__candidate candidate = {.file = file,
                                 .name = iron__path_shown(file->path),
                                 .dtype = s->given,
                                 .is_for_raw = s->is_for_raw,
                                 .stop = stop,
                                 .options = &s->options};
    iron_dtype found;

    IRON_TRY(iron__format_examine(s->forced, &candidate, &s->layouts[index], err));
    found = s->layouts[index].dtype;
    if (s->dtype == IRON_DTYPE_NONE) {
        s->dtype = found;
        s->dtype_file = index;
    }
    IRON_FAIL_IF(found != s->dtype, err, IRON_E_FORMAT,
                 "%.80s holds %s tokens and %.80s %s; the files of one stream must agree",
                 candidate.name, iron_dtype_name(found),
                 iron__path_shown(s->files.paths[s->dtype_file]), iron_dtype_name(s->dtype));
    return IRON_OK;
}

/* Examines a regular file. Pipes and devices have no size and are examined later. */
static iron_status examine_file(iron_source *s, size_t index, iron_error *err) {
    const char *path = s->files.paths[index];
    iron__input file = {.path = path, .fd = -1};
    struct stat info;
    iron_status status;
    uint64_t size;
    off_t from;

    s->layouts[index] =
        (iron__format_layout){.bytes = IRON_COUNT_UNKNOWN, .tokens = IRON_COUNT_UNKNOWN};
    if (stat_path(path, &info) != 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", iron__path_shown(path),
                          strerror(errno));
    IRON_FAIL_IF(S_ISDIR(info.st_mode), err, IRON_E_ARG,
                 "%.120s is a directory; name it as an argument instead", iron__path_shown(path));
    if (!S_ISREG(info.st_mode))
        return IRON_OK;
    size = (uint64_t)info.st_size;
    s->identities[index] = (file_identity){true, size, info.st_dev, info.st_ino};
    file.bytes = size;
    IRON_TRY(iron__input_open(&file, err));
    from = lseek(file.fd, 0, SEEK_CUR); /* part of standard input may have been read already */
    file.start = from < 0 ? 0 : (uint64_t)from < size ? (uint64_t)from : size;
    file.bytes = size - file.start;
    status = examine_open(s, index, &file, NULL, err);
    iron__input_close(&file);
    return status;
}

/* Examines all files and adds up their tokens. */
static iron_status examine_all(iron_source *s, iron_error *err) {
    size_t stdins = 0;

    s->layouts = calloc(s->files.count + 1, sizeof *s->layouts);
    s->identities = calloc(s->files.count + 1, sizeof *s->identities);
    if (!s->layouts || !s->identities)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while listing files");
    for (size_t k = 0; k < s->files.count; k++) {
        stdins += iron__path_is_stdin(s->files.paths[k]);
        IRON_FAIL_IF(stdins > 1, err, IRON_E_ARG,
                     "standard input (-) is named twice; name it once");
        IRON_TRY(examine_file(s, k, err));
        if (s->layouts[k].shape && !s->fortran)
            IRON_TRY(fortran_reader_create(&s->fortran, err));
        if (s->layouts[k].bytes == IRON_COUNT_UNKNOWN) /* a pipe's header is not read yet */
            s->tokens = IRON_COUNT_UNKNOWN;
        else if (s->tokens != IRON_COUNT_UNKNOWN)
            s->tokens += s->layouts[k].tokens;
    }
    return IRON_OK;
}

iron_status iron__source_options_check(const iron_source_options *o, iron_error *err) {
    IRON_FAIL_IF(!o || o->struct_size != sizeof *o, err, IRON_E_ARG,
                 "iron_source_options.struct_size is not %zu; set it to sizeof", sizeof *o);
    IRON_FAIL_IF(o->path_count == 0, err, IRON_E_ARG,
                 "no input; name files, or - for standard input");
    IRON_FAIL_IF(o->dtype != IRON_DTYPE_NONE && iron_dtype_bytes(o->dtype) == 0, err, IRON_E_ARG,
                 "unknown dtype %d; use those of --dtype: u8, u16, u32, i32 or i64", (int)o->dtype);
    return IRON_OK;
}

/* Computed once: while a source is read, the reader fills in the layouts of pipes. */
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
    s->options = (iron_source_options){.warn = o->warn, .warn_context = o->warn_context};
    IRON_TRY(iron__file_list_fill(&s->files, o, err));
    IRON_TRY(examine_all(s, err));
    s->is_seekable = is_seekable(s);
    if (s->dtype != IRON_DTYPE_NONE)
        return IRON_OK;
    /* No file gave the dtype, so the first one is a pipe: examine it now. It stays open, because
     * the bytes that were read cannot be read again. */
    s->file = (iron__input){.path = s->files.paths[0], .bytes = IRON_COUNT_UNKNOWN, .fd = -1};
    IRON_TRY(iron__input_open(&s->file, err));
    return examine_open(s, 0, &s->file, NULL, err);
}

iron_status iron_source_open(const iron_source_options *options, iron_source **out,
                             iron_error *err) {
    iron_source *s;
    iron_status status;

    *out = NULL;
    IRON_TRY(iron__source_options_check(options, err));
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
        iron__input_close(&source->file);
    fortran_reader_destroy(source->fortran);
    for (size_t k = 0; source->layouts && k < source->files.count; k++)
        iron__format_layout_clear(&source->layouts[k]);
    iron__file_list_clear(&source->files);
    free(source->layouts);
    free(source->identities);
    free(source);
}

iron_dtype iron_source_dtype(const iron_source *source) { return source->dtype; }

uint64_t iron_source_tokens(const iron_source *source) { return source->tokens; }

size_t iron_source_file_count(const iron_source *source) { return source->files.count; }

const char *iron_source_file(const iron_source *source, size_t index) {
    return index < source->files.count ? source->files.paths[index] : NULL;
}

const char *iron_source_file_format(const iron_source *source, size_t index) {
    const iron__format *format;

    if (index >= source->files.count)
        return NULL;
    format = source->layouts[index].format ? source->layouts[index].format : source->forced;
    return format ? format->name : "auto";
}

uint64_t iron_source_file_tokens(const iron_source *source, size_t index) {
    return index < source->files.count ? source->layouts[index].tokens : IRON_COUNT_UNKNOWN;
}

const iron__format_layout *iron__source_layout(const iron_source *source, size_t index) {
    return &source->layouts[index];
}

bool iron__source_is_seekable(const iron_source *source) { return source->is_seekable; }

uint64_t iron__source_position(const iron_source *source) {
    uint64_t tokens = source->done / iron_dtype_bytes(source->dtype);

    for (size_t k = 0; k < source->current; k++)
        tokens += source->layouts[k].tokens;
    return tokens;
}

/* The file that contains a token; files.count if past the end. *position becomes the token's index
 * in that file. */
static size_t file_with(const iron_source *s, uint64_t *position) {
    size_t index = 0;

    while (index < s->files.count && *position >= s->layouts[index].tokens)
        *position -= s->layouts[index++].tokens;
    return index;
}

bool iron__source_locate(const iron_source *source, uint64_t position, size_t *index,
                         uint64_t *byte) {
    *index = file_with(source, &position);
    if (*index == source->files.count)
        return false;
    if (source->layouts[*index].shape)
        position = fortran_place(&source->layouts[*index], position);
    *byte = source->layouts[*index].data_offset + position * iron_dtype_bytes(source->dtype);
    return true;
}

/* Moves to a byte of a file's tokens; index == files.count is the end of the stream. */
static void go_to(iron_source *s, size_t index, uint64_t done) {
    if (s->file.path)
        iron__input_close(&s->file);
    s->file.path = NULL;
    s->current = index;
    s->done = done;
}

void iron__source_seek(iron_source *source, uint64_t position) {
    size_t index = file_with(source, &position);

    go_to(source, index, position * iron_dtype_bytes(source->dtype));
}

/* Opens the current file at its next token; a pipe is examined now. */
static iron_status open_current(iron_source *s, const atomic_bool *stop, iron_error *err) {
    const iron__format_layout *l = &s->layouts[s->current];
    const char *path = s->files.paths[s->current];

    if (s->file.path)
        return IRON_OK;
    s->file = (iron__input){.path = path, .bytes = l->bytes, .fd = -1};
    s->file.is_stream = l->bytes != IRON_COUNT_UNKNOWN && iron__path_is_stdin(path);
    IRON_TRY(iron__input_open(&s->file, err));
    if (iron__input_is_pipe(&s->file))
        return examine_open(s, s->current, &s->file, stop, err);
    s->file.offset = l->data_offset + s->done;
    /* other processes see the offset of standard input: skip the header as if it were read */
    if (s->file.is_stream && lseek(s->file.fd, (off_t)s->file.offset, SEEK_CUR) < 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot seek in standard input: %s",
                          strerror(errno));
    return IRON_OK;
}

/* Checks a pipe that ended, or that continues after its last token. */
static iron_status check_pipe(const iron_source *s, bool has_more, iron_error *err) {
    const iron__format_layout *l = &s->layouts[s->current];
    const char *name = iron__path_shown(s->file.path);
    uint64_t width = iron_dtype_bytes(s->dtype);

    IRON_FAIL_IF(has_more, err, IRON_E_FORMAT,
                 "%.100s continues after byte %" PRIu64 ", but its %s header says %" PRIu64
                 " tokens",
                 name, s->file.offset - 1, l->format->name, l->tokens);
    IRON_FAIL_IF(l->tokens != IRON_COUNT_UNKNOWN && s->done < l->tokens * width, err, IRON_E_FORMAT,
                 "%.100s ended after byte %" PRIu64 " with %" PRIu64 " of the %" PRIu64
                 " tokens in its %s header",
                 name, s->file.offset, s->done / width, l->tokens, l->format->name);
    IRON_FAIL_IF(s->done % width != 0, err, IRON_E_FORMAT,
                 "%.100s ended after %" PRIu64 " bytes, not a whole number of %s tokens (%zu bytes "
                 "each); %s",
                 name, s->file.offset, iron_dtype_name(s->dtype), (size_t)width,
                 l->format == &iron__format_raw ? "check --dtype and the sender"
                                                : "is it cut off?");
    return IRON_OK;
}

/* The current file ended, or all its tokens were read: then a pipe must end too. */
static iron_status finish_current(iron_source *s, bool has_ended, const atomic_bool *stop,
                                  iron_error *err) {
    iron__format_layout *l = &s->layouts[s->current];
    unsigned char more;
    size_t got = 0;

    IRON_TRY(has_ended ? iron__input_check_end(&s->file, err) : IRON_OK);
    if (l->bytes == IRON_COUNT_UNKNOWN) { /* a pipe; s->file may not be open */
        /* not twice: on a terminal the user would have to type a second end-of-file */
        if (!has_ended)
            IRON_TRY(iron__input_read(&s->file, &more, 1, &got, stop, err));
        IRON_TRY(check_pipe(s, got > 0, err));
        l->tokens = s->done / iron_dtype_bytes(s->dtype);
    }
    go_to(s, s->current + 1, 0);
    return IRON_OK;
}

/* Bytes of tokens left in the current file; no limit for a pipe of unknown length. */
static uint64_t bytes_left(const iron_source *s) {
    uint64_t tokens = s->layouts[s->current].tokens;

    if (tokens == IRON_COUNT_UNKNOWN)
        return UINT64_MAX;
    return tokens * iron_dtype_bytes(s->dtype) - s->done;
}

static void swap_bytes(unsigned char *tokens, size_t count, size_t width) {
    for (size_t k = 0; k < count; k++, tokens += width)
        for (size_t n = 0; n < width / 2; n++) {
            unsigned char byte = tokens[n];

            tokens[n] = tokens[width - 1 - n];
            tokens[width - 1 - n] = byte;
        }
}

iron_status iron__source_read_converted(const iron_source *source, size_t index, uint64_t first,
                                        void *tokens, size_t count, const atomic_bool *stop,
                                        iron_error *err) {
    const iron__format_layout *l = &source->layouts[index];
    iron__input file = {.path = source->files.paths[index], .bytes = l->bytes, .fd = -1};
    size_t width = iron_dtype_bytes(l->dtype), got = 0;
    iron_status status;

    if (l->shape) {
        IRON_TRY(fortran_read(source->fortran, l, file.path, first, tokens, count, stop, err));
    } else {
        file.offset = l->data_offset + first * width;
        IRON_TRY(iron__input_open(&file, err));
        status = iron__input_read(&file, tokens, count * width, &got, stop, err);
        if (status == IRON_OK && got < count * width)
            status = iron__input_check_end(&file, err);
        iron__input_close(&file);
        IRON_TRY(status);
    }
    if (l->is_swapped)
        swap_bytes(tokens, count, width);
    return IRON_OK;
}

/* Reads tokens of the current file from s->done on; `want` and *got are bytes. */
static iron_status read_tokens(iron_source *s, void *to, size_t want, size_t *got,
                               const atomic_bool *stop, iron_error *err) {
    const iron__format_layout *l = &s->layouts[s->current];
    size_t width = iron_dtype_bytes(s->dtype);

    if (l->shape) {
        *got = want;
        return iron__source_read_converted(s, s->current, s->done / width, to, want / width, stop,
                                           err);
    }
    IRON_TRY(iron__input_read(&s->file, to, want, got, stop, err));
    if (l->is_swapped)
        swap_bytes(to, *got / width, width);
    return IRON_OK;
}

iron_status iron__source_read(iron_source *source, void *tokens, size_t capacity, size_t *count,
                              const atomic_bool *stop, iron_error *err) {
    size_t width = iron_dtype_bytes(source->dtype);
    size_t wanted = capacity * width, filled = 0;

    *count = 0;
    while (filled < wanted && source->current < source->files.count) {
        size_t want = wanted - filled, got = 0;
        uint64_t left;

        if (bytes_left(source) > 0) /* empty files are never opened */
            IRON_TRY(open_current(source, stop, err));
        left = bytes_left(source);
        want = want < left ? want : (size_t)left;
        if (want > 0)
            IRON_TRY(read_tokens(source, (char *)tokens + filled, want, &got, stop, err));
        filled += got;
        source->done += got;
        if (got < want || got == left)
            IRON_TRY(finish_current(source, got < want, stop, err));
    }
    *count = filled / width;
    return IRON_OK;
}

iron_status iron_source_read(iron_source *source, void *tokens, size_t capacity, size_t *count,
                             iron_error *err) {
    return iron__source_read(source, tokens, capacity, count, NULL, err);
}

/* Checks after reading. A file that became shorter has already caused an error. One that grew or
 * was replaced has not: what was read of it is a state that it never had or no longer has. */
iron_status iron__source_check_unchanged(const iron_source *source, iron_error *err) {
    for (size_t k = 0; k < source->files.count; k++) {
        const file_identity *before = &source->identities[k];
        const char *name = iron__path_shown(source->files.paths[k]);
        struct stat info;

        if (!before->is_regular)
            continue;
        if (stat_path(source->files.paths[k], &info) != 0)
            return iron__fail(err, IRON_E_IO, errno,
                              "cannot stat %.100s after reading: %s; it changed while being read",
                              name, strerror(errno));
        IRON_FAIL_IF((uint64_t)info.st_size != before->bytes, err, IRON_E_IO,
                     "%.100s has %" PRIu64 " bytes now, it had %" PRIu64
                     " when it was opened; it changed while being read",
                     name, (uint64_t)info.st_size, before->bytes);
        IRON_FAIL_IF(info.st_dev != before->device || info.st_ino != before->inode, err, IRON_E_IO,
                     "%.100s was replaced by another file while being read", name);
    }
    return IRON_OK;
}

/* Hashes `bytes` bytes of the file from `from` on; they must exist. */
static iron_status add_bytes(iron__input *file, uint64_t from, size_t bytes, uint64_t *hash,
                             iron_error *err) {
    unsigned char data[2 * IRON_SAMPLE_BYTES];
    size_t got = 0;

    file->offset = from;
    IRON_TRY(iron__input_read(file, data, bytes, &got, NULL, err));
    if (got < bytes)
        IRON_TRY(iron__input_check_end(file, err));
    *hash = iron__fnv(*hash, data, got);
    return IRON_OK;
}

iron_status iron__source_sample(const iron_source *source, size_t index, uint64_t *sample,
                                bool *is_there, iron_error *err) {
    uint64_t bytes = source->identities[index].bytes;
    iron__input file = {.path = source->files.paths[index], .bytes = bytes, .fd = -1};
    iron_status status;

    *sample = IRON_FNV_START;
    *is_there = source->identities[index].is_regular && !iron__path_is_stdin(file.path);
    if (!*is_there)
        return IRON_OK;
    IRON_TRY(iron__input_open(&file, err));
    if (bytes <= 2 * (uint64_t)IRON_SAMPLE_BYTES) {
        status = add_bytes(&file, 0, (size_t)bytes, sample, err);
    } else {
        status = add_bytes(&file, 0, IRON_SAMPLE_BYTES, sample, err);
        if (status == IRON_OK)
            status = add_bytes(&file, bytes - IRON_SAMPLE_BYTES, IRON_SAMPLE_BYTES, sample, err);
    }
    iron__input_close(&file);
    return status;
}

void iron__source_note_starts(iron_source *source) { (void)source; }

iron_status iron__source_take_starts(iron_source *source, iron__block *places, iron_error *err) {
    (void)source, (void)places, (void)err;
    return IRON_OK;
}
