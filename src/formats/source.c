/* SPDX-License-Identifier: MIT */
/*
 * source.c: several token files as one stream.
 *
 * Everything that can be known is checked when the source is opened: that each file is there and
 * readable, that its size is a whole number of tokens, that it is not in a format whose header
 * would be taken for tokens. While reading, a file that got shorter, or a pipe that ends inside a
 * token, is an error, never a guess. Reads are blocking and fill what they are given.
 *
 * Here the files are read one after another by one thread; source_at.c reads them in several places
 * at once, with the functions at the end of this file.
 */
#include "formats/source.h"

#include "core/fail.h"
#include "formats/file_list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How soon a called-off reader notices: that long for a pipe, that many bytes for a file, which a
 * slow disk delivers in a tenth of a second too. */
#define STOP_POLL_MS     100
#define STOP_PIECE_BYTES ((size_t)8 << 20)

/* Linux gives pipes 64 KiB; with a mebibyte writer and reader meet less often. */
#define PIPE_BYTES (1 << 20)

/* As many bytes as it takes to recognise any format. */
#define HEAD_BYTES 8

struct iron_source {
    iron_dtype dtype;
    bool takes_any_header; /* --format raw: the user knows */
    iron__file_list files;
    uint64_t *sizes; /* bytes of each file, IRON_COUNT_UNKNOWN for pipes */
    uint64_t tokens;
    size_t current;                 /* index of the file being read */
    iron__source_file file;         /* the current one; not opened before it is read */
    unsigned char head[HEAD_BYTES]; /* its first bytes, if it is a pipe */
    size_t head_count;
};

static bool is_stdin(const char *path) { return strcmp(path, "-") == 0; }

static const char *name_of(const char *path) { return is_stdin(path) ? "standard input" : path; }

static iron_status check_format_name(const char *format, iron_error *err) {
    static const char *const later[] = {"llmc", "megatron", "npy", "ds", "litpkds"};

    if (!format || strcmp(format, "auto") == 0 || strcmp(format, "raw") == 0)
        return IRON_OK;
    for (size_t k = 0; k < sizeof later / sizeof later[0]; k++)
        IRON_FAIL_IF(strcmp(format, later[k]) == 0, err, IRON_E_UNSUPPORTED,
                     "format %s is not read by version %s; convert the file to raw tokens", format,
                     iron_version());
    IRON_FAIL(err, IRON_E_ARG, "unknown format '%.40s'; use auto or raw", format);
}

/* The name of a format with a header that the first bytes give away, or NULL. */
static const char *recognise(const unsigned char *bytes, size_t count) {
    int32_t words[2];

    if (count >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0)
        return "npy";
    if (count >= 7 && memcmp(bytes, "LITPKDS", 7) == 0)
        return "litpkds";
    if (count < sizeof words)
        return NULL;
    memcpy(words, bytes, sizeof words);
    if ((words[0] == 20240520 && words[1] == 1) || (words[0] == 20240801 && words[1] == 7))
        return "llmc";
    return NULL;
}

static iron_status check_header(const char *path, const unsigned char *bytes, size_t count,
                                iron_error *err) {
    const char *format = recognise(bytes, count);

    IRON_FAIL_IF(format, err, IRON_E_FORMAT,
                 "%.120s begins like a %s file; convert it, or say --format raw to read its "
                 "header as tokens too",
                 name_of(path), format);
    return IRON_OK;
}

/* The first bytes of a regular file, without moving anything. */
static iron_status peek(const char *path, int fd, off_t from, iron_error *err) {
    unsigned char bytes[HEAD_BYTES];
    ssize_t count = pread(fd, bytes, sizeof bytes, from);

    if (count < 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot read %.120s: %s", name_of(path),
                          strerror(errno));
    return check_header(path, bytes, (size_t)count, err);
}

/* Sizes and checks an open regular file from its position on. */
static iron_status examine_regular(const iron_source *s, const char *path, int fd, off_t size,
                                   uint64_t *bytes, iron_error *err) {
    off_t from = lseek(fd, 0, SEEK_CUR);

    from = from < 0 ? 0 : from < size ? from : size;
    if (!s->takes_any_header)
        IRON_TRY(peek(path, fd, from, err));
    *bytes = (uint64_t)(size - from);
    IRON_FAIL_IF(*bytes % iron_dtype_bytes(s->dtype) != 0, err, IRON_E_FORMAT,
                 "%.120s has %" PRIu64 " bytes, not a whole number of %s tokens (%zu bytes each); "
                 "check --dtype and the file's end",
                 name_of(path), *bytes, iron_dtype_name(s->dtype), iron_dtype_bytes(s->dtype));
    return IRON_OK;
}

/* Pipes and devices have no size and are taken as they come. */
static iron_status examine(const iron_source *s, const char *path, uint64_t *bytes,
                           iron_error *err) {
    iron__source_file file = {.path = path};
    struct stat info;
    iron_status status;

    *bytes = IRON_COUNT_UNKNOWN;
    if ((is_stdin(path) ? fstat(STDIN_FILENO, &info) : stat(path, &info)) != 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", name_of(path),
                          strerror(errno));
    IRON_FAIL_IF(S_ISDIR(info.st_mode), err, IRON_E_ARG,
                 "%.120s is a directory; name it as an argument instead", name_of(path));
    if (!S_ISREG(info.st_mode))
        return IRON_OK;
    IRON_TRY(iron__source_file_open(&file, err));
    status = examine_regular(s, path, file.fd, info.st_size, bytes, err);
    iron__source_file_close(&file);
    return status;
}

static iron_status examine_all(iron_source *s, iron_error *err) {
    size_t stdins = 0;

    s->sizes = calloc(s->files.count + 1, sizeof *s->sizes);
    if (!s->sizes)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while listing files");
    for (size_t k = 0; k < s->files.count; k++) {
        const char *path = s->files.paths[k];

        stdins += is_stdin(path);
        IRON_FAIL_IF(stdins > 1, err, IRON_E_ARG,
                     "standard input (-) is named twice; name it once");
        IRON_TRY(examine(s, path, &s->sizes[k], err));
        if (s->sizes[k] == IRON_COUNT_UNKNOWN)
            s->tokens = IRON_COUNT_UNKNOWN;
        else if (s->tokens != IRON_COUNT_UNKNOWN)
            s->tokens += s->sizes[k] / iron_dtype_bytes(s->dtype);
    }
    return IRON_OK;
}

static iron_status check_options(const iron_source_options *o, iron_error *err) {
    IRON_FAIL_IF(!o || o->struct_size != sizeof *o, err, IRON_E_ARG,
                 "iron_source_options.struct_size is not %zu; set it to sizeof", sizeof *o);
    IRON_FAIL_IF(o->path_count == 0, err, IRON_E_ARG,
                 "no input; name files, or - for standard input");
    IRON_TRY(check_format_name(o->format, err));
    IRON_FAIL_IF(iron_dtype_bytes(o->dtype) == 0, err, IRON_E_ARG,
                 "%.120s: raw tokens do not say their width; give --dtype u8, u16, u32, i32 or i64 "
                 "(`iron sniff` guesses)",
                 name_of(o->paths[0]));
    return IRON_OK;
}

iron_status iron_source_open(const iron_source_options *options, iron_source **out,
                             iron_error *err) {
    iron_source *s;
    iron_status status = IRON_OK;

    *out = NULL;
    IRON_TRY(check_options(options, err));
    s = calloc(1, sizeof *s);
    if (!s)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while opening files");
    s->dtype = options->dtype;
    s->file.fd = -1;
    s->takes_any_header = options->format && strcmp(options->format, "raw") == 0;
    for (size_t k = 0; k < options->path_count && status == IRON_OK; k++)
        status = iron__file_list_add(&s->files, options->paths[k], err);
    if (status == IRON_OK)
        status = examine_all(s, err);
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
    iron__source_file_close(&source->file);
    iron__file_list_clear(&source->files);
    free(source->sizes);
    free(source);
}

iron_dtype iron_source_dtype(const iron_source *source) { return source->dtype; }

uint64_t iron_source_tokens(const iron_source *source) { return source->tokens; }

size_t iron_source_file_count(const iron_source *source) { return source->files.count; }

const char *iron_source_file(const iron_source *source, size_t index) {
    return index < source->files.count ? source->files.paths[index] : NULL;
}

uint64_t iron__source_file_bytes(const iron_source *source, size_t index) {
    return source->sizes[index];
}

bool iron__source_is_seekable(const iron_source *source) {
    uint64_t bytes = 0;

    for (size_t k = 0; k < source->files.count; k++)
        if (source->sizes[k] == IRON_COUNT_UNKNOWN || is_stdin(source->files.paths[k]) ||
            __builtin_add_overflow(bytes, source->sizes[k], &bytes))
            return false;
    return true;
}

uint64_t iron__source_position(const iron_source *source) {
    uint64_t bytes = source->file.taken;

    for (size_t k = 0; k < source->current; k++)
        bytes += source->sizes[k];
    return bytes / iron_dtype_bytes(source->dtype);
}

/* Goes to a place in a file, or with index == files.count to the end of all. */
static void go_to(iron_source *s, size_t index, uint64_t byte) {
    iron__source_file_close(&s->file);
    s->current = index;
    s->file.taken = byte;
    s->head_count = 0;
}

void iron__source_seek(iron_source *source, uint64_t position) {
    uint64_t byte = position * iron_dtype_bytes(source->dtype);
    size_t index = 0;

    while (index < source->files.count && byte >= source->sizes[index])
        byte -= source->sizes[index++];
    go_to(source, index, byte);
}

static iron_status open_current(iron_source *s, iron_error *err) {
    s->file.path = s->files.paths[s->current];
    s->file.bytes = s->sizes[s->current];
    return iron__source_file_open(&s->file, err);
}

/* A pipe cannot be peeked into: its first bytes are kept as they pass, and looked at each time
 * there are more of them. */
static iron_status check_passing(iron_source *s, const unsigned char *bytes, size_t count,
                                 iron_error *err) {
    size_t room = sizeof s->head - s->head_count;
    size_t some = count < room ? count : room;

    if (some == 0)
        return IRON_OK;
    memcpy(s->head + s->head_count, bytes, some);
    s->head_count += some;
    return check_header(s->file.path, s->head, s->head_count, err);
}

iron_status iron__source_read(iron_source *source, void *tokens, size_t capacity, size_t *count,
                              const atomic_bool *stop, iron_error *err) {
    size_t width = iron_dtype_bytes(source->dtype);
    size_t room = capacity * width, filled = 0;

    *count = 0;
    while (filled < room && source->current < source->files.count) {
        uint64_t left = source->sizes[source->current];
        bool is_sized = left != IRON_COUNT_UNKNOWN;
        size_t want = room - filled, got = 0;

        left -= is_sized ? source->file.taken : 0;
        if (left == 0) { /* used up, or empty and never opened */
            go_to(source, source->current + 1, 0);
            continue;
        }
        if (source->file.fd < 0)
            IRON_TRY(open_current(source, err));
        want = want < left ? want : (size_t)left;
        IRON_TRY(
            iron__source_file_read(&source->file, (char *)tokens + filled, want, &got, stop, err));
        if (!is_sized && !source->takes_any_header)
            IRON_TRY(check_passing(source, (const unsigned char *)tokens + filled, got, err));
        filled += got;
        if (got < want) {
            IRON_TRY(iron__source_file_check_end(&source->file, source->dtype, err));
            go_to(source, source->current + 1, 0);
        }
    }
    *count = filled / width;
    return IRON_OK;
}

iron_status iron_source_read(iron_source *source, void *tokens, size_t capacity, size_t *count,
                             iron_error *err) {
    return iron__source_read(source, tokens, capacity, count, NULL, err);
}

iron_status iron__source_file_open(iron__source_file *file, iron_error *err) {
    /* a named pipe would block here until somebody writes, deaf to being called off */
    int waiting = file->bytes == IRON_COUNT_UNKNOWN ? O_NONBLOCK : 0;

    file->fd = STDIN_FILENO;
    if (!is_stdin(file->path))
        file->fd = open(file->path, O_RDONLY | O_CLOEXEC | waiting);
    if (file->fd < 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", file->path,
                          strerror(errno));
    /* Hints: whichever does not apply to this kind of file is ignored. */
    posix_fadvise(file->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    fcntl(file->fd, F_SETPIPE_SZ, PIPE_BYTES);
    return IRON_OK;
}

void iron__source_file_close(iron__source_file *file) {
    if (file->fd >= 0 && !is_stdin(file->path))
        close(file->fd);
    file->fd = -1;
}

/* Waits until a pipe has something to say, or a first writer; false once *stop is set. */
static bool wait_for_data(const iron__source_file *f, const atomic_bool *stop) {
    struct pollfd pipe_end = {.fd = f->fd, .events = POLLIN};

    while (!stop || !atomic_load(stop)) {
        int ready;

        if (f->bytes != IRON_COUNT_UNKNOWN)
            return true;
        ready = poll(&pipe_end, 1, stop ? STOP_POLL_MS : -1);
        /* interrupted is not ready: without a writer yet, reading would look like the end */
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return true;
    }
    return false;
}

static ssize_t read_some(const iron__source_file *f, char *to, size_t bytes, uint64_t at) {
    bytes = bytes < STOP_PIECE_BYTES ? bytes : STOP_PIECE_BYTES;
    if (f->bytes == IRON_COUNT_UNKNOWN || is_stdin(f->path))
        return read(f->fd, to, bytes);
    return pread(f->fd, to, bytes, (off_t)at);
}

iron_status iron__source_file_read(iron__source_file *file, void *to, size_t want, size_t *got,
                                   const atomic_bool *stop, iron_error *err) {
    *got = 0;
    while (*got < want) {
        ssize_t count;

        IRON_FAIL_IF(!wait_for_data(file, stop), err, IRON_E_CANCELLED, "reading was called off");
        count = read_some(file, (char *)to + *got, want - *got, file->taken + *got);
        if (count < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (count < 0)
            return iron__fail(err, IRON_E_IO, errno, "cannot read %.120s at byte %" PRIu64 ": %s",
                              name_of(file->path), file->taken + *got, strerror(errno));
        if (count == 0)
            break;
        *got += (size_t)count;
    }
    file->taken += *got;
    return IRON_OK;
}

iron_status iron__source_file_check_end(const iron__source_file *file, iron_dtype dtype,
                                        iron_error *err) {
    const char *name = name_of(file->path);

    IRON_FAIL_IF(file->bytes != IRON_COUNT_UNKNOWN && file->taken < file->bytes, err, IRON_E_IO,
                 "%.120s ended at byte %" PRIu64 " of %" PRIu64 "; it was cut while being read",
                 name, file->taken, file->bytes);
    IRON_FAIL_IF(file->taken % iron_dtype_bytes(dtype) != 0, err, IRON_E_FORMAT,
                 "%.120s ended after %" PRIu64 " bytes, not a whole number of %s tokens (%zu bytes "
                 "each); check --dtype and the sender",
                 name, file->taken, iron_dtype_name(dtype), iron_dtype_bytes(dtype));
    return IRON_OK;
}
