/* SPDX-License-Identifier: MIT */
/*
 * source_file.c: see source_file.h. Reads are blocking and fill what they are given, but notice
 * within a tenth of a second that they were called off.
 */
#include "formats/source_file.h"

#include "core/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* How soon a called-off reader notices: that long for a pipe, that many bytes for a file, which a
 * slow disk delivers in a tenth of a second too. */
#define STOP_POLL_MS     100
#define STOP_PIECE_BYTES ((size_t)8 << 20)

/* Linux gives pipes 64 KiB; with a mebibyte writer and reader meet less often. */
#define PIPE_BYTES (1 << 20)

bool iron__path_is_stdin(const char *path) { return strcmp(path, "-") == 0; }

const char *iron__path_shown(const char *path) {
    return iron__path_is_stdin(path) ? "standard input" : path;
}

static bool is_pipe(const iron__source_file *f) { return f->bytes == IRON_COUNT_UNKNOWN; }

iron_status iron__source_file_open(iron__source_file *file, iron_error *err) {
    /* a named pipe would block here until somebody writes, deaf to being called off */
    int waiting = is_pipe(file) ? O_NONBLOCK : 0;

    file->fd = STDIN_FILENO;
    if (!iron__path_is_stdin(file->path))
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
    if (file->fd >= 0 && !iron__path_is_stdin(file->path))
        close(file->fd);
    file->fd = -1;
}

/* Waits until a pipe has something to say, or a first writer; false once *stop is set. */
static bool wait_for_data(const iron__source_file *f, const atomic_bool *stop) {
    struct pollfd pipe_end = {.fd = f->fd, .events = POLLIN};

    while (!stop || !atomic_load(stop)) {
        int ready;

        if (!is_pipe(f))
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
    if (is_pipe(f) || f->moves)
        return read(f->fd, to, bytes);
    return pread(f->fd, to, bytes, (off_t)(f->start + at));
}

/* Up to `want` bytes from byte `at` of the file on; nothing of the struct moves. */
static iron_status read_at(const iron__source_file *file, uint64_t at, char *to, size_t want,
                           size_t *got, const atomic_bool *stop, iron_error *err) {
    *got = 0;
    while (*got < want) {
        ssize_t count;

        IRON_FAIL_IF(!wait_for_data(file, stop), err, IRON_E_CANCELLED, "reading was called off");
        count = read_some(file, to + *got, want - *got, at + *got);
        if (count < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (count < 0)
            return iron__fail(err, IRON_E_IO, errno, "cannot read %.120s at byte %" PRIu64 ": %s",
                              iron__path_shown(file->path), at + *got, strerror(errno));
        if (count == 0)
            break;
        *got += (size_t)count;
    }
    return IRON_OK;
}

/* The bytes of a pipe that were looked at come first. */
static size_t take_ahead(iron__source_file *file, char *to, size_t want) {
    size_t count = want < file->ahead_count ? want : file->ahead_count;

    memcpy(to, file->ahead, count);
    file->ahead_count -= count;
    memmove(file->ahead, file->ahead + count, file->ahead_count);
    return count;
}

iron_status iron__source_file_read(iron__source_file *file, void *to, size_t want, size_t *got,
                                   const atomic_bool *stop, iron_error *err) {
    size_t known = file->ahead_count ? take_ahead(file, to, want) : 0;

    IRON_TRY(read_at(file, file->taken + known, (char *)to + known, want - known, got, stop, err));
    *got += known;
    file->taken += *got;
    return IRON_OK;
}

iron_status iron__source_file_peek(iron__source_file *file, unsigned char head[IRON_HEAD_BYTES],
                                   size_t *got, const atomic_bool *stop, iron_error *err) {
    size_t more;

    if (!is_pipe(file))
        return read_at(file, file->taken, (char *)head, IRON_HEAD_BYTES, got, stop, err);
    IRON_TRY(read_at(file, file->taken + file->ahead_count, (char *)file->ahead + file->ahead_count,
                     IRON_HEAD_BYTES - file->ahead_count, &more, stop, err));
    file->ahead_count += more;
    *got = file->ahead_count;
    memcpy(head, file->ahead, *got);
    return IRON_OK;
}

iron_status iron__source_file_check_end(const iron__source_file *file, iron_error *err) {
    IRON_FAIL_IF(!is_pipe(file) && file->taken < file->bytes, err, IRON_E_IO,
                 "%.120s ended at byte %" PRIu64 " of %" PRIu64 "; it was cut while being read",
                 iron__path_shown(file->path), file->taken, file->bytes);
    return IRON_OK;
}
