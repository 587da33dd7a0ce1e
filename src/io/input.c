/* SPDX-License-Identifier: MIT */
/*
 * input.c: reading one file, pipe or remote object.
 *
 * Reads block and fill the buffer they are given, but notice a stop flag within a tenth of a
 * second. Decompressed data is a pipe, whatever is decompressed, unless frames.c reads it at any
 * position.
 */
#include "io/input.h"

#include "core/fail.h"
#include "io/frames.h"
#include "io/remote_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How soon a stop flag is noticed: after this time on a pipe, after this many bytes of a file,
 * which a slow disk also delivers in a tenth of a second. */
#define STOP_POLL_MS     100
#define STOP_PIECE_BYTES ((size_t)8 << 20)

/* The Linux default is 64 KiB; with 1 MiB the writer and the reader switch less often. */
#define PIPE_BYTES (1 << 20)

/* Compressed bytes read at a time. */
#define COMPRESSED_BYTES ((size_t)256 << 10)

/* A decompressed input, and the compressed bytes that were read but not used yet. */
typedef struct iron__decompressed {
    iron__decompression *codec;
    uint64_t bytes; /* of the compressed input, or IRON_COUNT_UNKNOWN */
    uint64_t at;    /* of the next compressed byte to be read */
    iron__codec_buffers buffers;
    bool has_ended; /* all compressed bytes have been read */
    unsigned char data[COMPRESSED_BYTES];
} decompression;

iron_status iron__input_identify(const char *path, iron__input_identity *out, iron_error *err) {
    struct stat info;
    iron__remote *remote;

    *out = (iron__input_identity){.kind = IRON_INPUT_PIPE};
    if (iron__path_is_remote(path)) {
        IRON_TRY(iron__remote_open(path, &remote, err));
        if (remote->has_ranges)
            *out = (iron__input_identity){IRON_INPUT_REGULAR, remote->bytes, 0, remote->version};
        return IRON_OK;
    }
    if ((iron__path_is_stdin(path) ? fstat(STDIN_FILENO, &info) : stat(path, &info)) != 0)
        return iron__fail_path(err, "open", iron__path_shown(path), errno);
    if (S_ISREG(info.st_mode))
        *out = (iron__input_identity){IRON_INPUT_REGULAR, (uint64_t)info.st_size, info.st_dev,
                                      info.st_ino};
    else if (S_ISDIR(info.st_mode))
        out->kind = IRON_INPUT_DIRECTORY;
    return IRON_OK;
}

iron_status iron__input_check_unchanged(const char *path, const iron__input_identity *before,
                                        iron_error *err) {
    const char *name = iron__path_shown(path);
    iron__input_identity now;
    iron__remote *remote;
    iron_error why = {0};

    if (before->kind != IRON_INPUT_REGULAR)
        return IRON_OK;
    if (iron__path_is_remote(path)) {
        IRON_TRY(iron__remote_open(path, &remote, err));
        return iron__remote_check_unchanged(remote, err);
    }
    if (iron__input_identify(path, &now, &why) != IRON_OK)
        return iron__fail(err, IRON_E_IO, why.native,
                          "cannot stat %.100s after reading: %s; it changed while being read", name,
                          strerror(why.native));
    IRON_FAIL_IF(now.bytes != before->bytes, err, IRON_E_IO,
                 "%.100s has %" PRIu64 " bytes now, it had %" PRIu64
                 " when it was opened; it changed while being read",
                 name, now.bytes, before->bytes);
    IRON_FAIL_IF(now.device != before->device || now.inode != before->inode, err, IRON_E_IO,
                 "%.100s was replaced by another file while being read", name);
    return IRON_OK;
}

iron_status iron__input_open(iron__input *in, iron_error *err) {
    /* opening a named pipe would block until there is a writer, ignoring the stop flag */
    int waiting = iron__input_is_pipe(in) ? O_NONBLOCK : 0;

    if (iron__path_is_remote(in->path)) {
        IRON_TRY(iron__remote_open(in->path, &in->remote, err));
        /* read like a pipe if the server does not serve ranges */
        return iron__input_is_pipe(in)
                   ? iron__remote_stream_open(in->remote, &in->transfer, &in->fd, err)
                   : IRON_OK;
    }
    in->fd = STDIN_FILENO;
    if (!iron__path_is_stdin(in->path))
        in->fd = open(in->path, O_RDONLY | O_CLOEXEC | waiting);
    if (in->fd < 0)
        return iron__fail_path(err, "open", in->path, errno);
    /* Hints: those that do not apply to this kind of file have no effect. */
    posix_fadvise(in->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    fcntl(in->fd, F_SETPIPE_SZ, PIPE_BYTES);
    return IRON_OK;
}

static void drop_decompression(iron__input *in) {
    if (in->decompression)
        iron__decompression_destroy(in->decompression->codec);
    free(in->decompression);
    in->decompression = NULL;
}

void iron__input_close(iron__input *in) {
    if (in->transfer)
        iron__remote_stream_close(in->transfer);
    else if (in->fd >= 0 && !iron__path_is_stdin(in->path))
        close(in->fd);
    drop_decompression(in);
    free(in->ahead);
    in->inside = NULL;
    in->transfer = NULL;
    in->remote = NULL;
    in->ahead = NULL;
    in->ahead_count = 0;
    in->fd = -1;
}

/* Waits until a pipe has data or has ended; false once the stop flag is set. */
static bool wait_for_data(const iron__input *in, bool is_pipe) {
    struct pollfd pipe_end = {.fd = in->fd, .events = POLLIN};

    while (!in->stop || !atomic_load(in->stop)) {
        int ready = is_pipe ? poll(&pipe_end, 1, in->stop ? STOP_POLL_MS : -1) : 1;

        /* interrupted is not ready: before the first writer, read would report the end */
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return true;
    }
    return false;
}

/* Reads up to `want` stored bytes from byte `at` on; does not change the struct. A pipe that is
 * read by parts is not waited for once it has given some. */
static iron_status read_stored(const iron__input *in, bool is_pipe, bool by_parts, uint64_t at,
                               void *to, size_t want, size_t *got, iron_error *err) {
    char *next = to;

    *got = 0;
    if (in->inside) {
        *got = at > in->bytes ? 0 : in->bytes - at < want ? (size_t)(in->bytes - at) : want;
        return iron__frames_read_at(in->inside, at, to, *got, in->stop, err);
    }
    if (in->remote && !is_pipe)
        return iron__remote_read(in->remote, in->start + at, to, want, got, in->stop, err);
    while (*got < want && !(by_parts && *got > 0)) {
        size_t some = want - *got < STOP_PIECE_BYTES ? want - *got : STOP_PIECE_BYTES;
        ssize_t count;

        IRON_FAIL_IF(!wait_for_data(in, is_pipe), err, IRON_E_CANCELLED, "reading was cancelled");
        if (is_pipe || in->is_stream)
            count = read(in->fd, next + *got, some);
        else
            count = pread(in->fd, next + *got, some, (off_t)(in->start + at + *got));
        if (count < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (count < 0)
            return iron__fail(err, IRON_E_IO, errno, "cannot read %.120s at byte %" PRIu64 ": %s",
                              iron__path_shown(in->path), at + *got, strerror(errno));
        if (count == 0)
            return in->transfer ? iron__remote_stream_check(in->transfer, err) : IRON_OK;
        *got += (size_t)count;
    }
    return IRON_OK;
}

/* Reads the next compressed bytes: of a pipe, those that are there. */
static iron_status refill(const iron__input *in, iron_error *err) {
    decompression *d = in->decompression;
    bool is_pipe = d->bytes == IRON_COUNT_UNKNOWN;
    size_t want = sizeof d->data, got = 0;

    if (!is_pipe && d->bytes - d->at < want)
        want = (size_t)(d->bytes - d->at);
    if (want > 0)
        IRON_TRY(read_stored(in, is_pipe, is_pipe, d->at, d->data, want, &got, err));
    IRON_FAIL_IF(!is_pipe && got < want, err, IRON_E_IO,
                 "%.120s ended at byte %" PRIu64 " of %" PRIu64 "; it was cut while being read",
                 iron__path_shown(in->path), d->at + got, d->bytes);
    d->at += got;
    d->has_ended = is_pipe ? got == 0 : d->at == d->bytes;
    d->buffers.from = d->data;
    d->buffers.from_count = got;
    return IRON_OK;
}

/* Reads up to `want` bytes from byte `at` of the input; changes only the state of a pipe. */
static iron_status read_from(const iron__input *in, uint64_t at, void *to, size_t want, size_t *got,
                             iron_error *err) {
    *got = 0;
    if (want == 0)
        return IRON_OK;
    if (in->decompression) {
        decompression *d = in->decompression;

        d->buffers.to = to;
        d->buffers.room = want;
        for (;;) {
            size_t before = d->buffers.room, left = d->buffers.from_count;

            IRON_FAIL_IF(in->stop && atomic_load(in->stop), err, IRON_E_CANCELLED,
                         "reading was cancelled");
            IRON_TRY(iron__decompression_run(d->codec, &d->buffers, err));
            *got = want - d->buffers.room;
            if (d->buffers.room == 0)
                return IRON_OK;
            if (d->buffers.room < before || d->buffers.from_count < left)
                continue;
            if (d->has_ended)
                return iron__decompression_finish(d->codec, err);
            IRON_TRY(refill(in, err));
        }
    }
    return read_stored(in, iron__input_is_pipe(in), false, at, to, want, got, err);
}

iron_status iron__input_read(iron__input *in, void *to, size_t want, size_t *got, iron_error *err) {
    size_t ahead = want < in->ahead_count ? want : in->ahead_count;

    if (ahead > 0) {
        memcpy(to, in->ahead, ahead);
        in->ahead_count -= ahead;
        memmove(in->ahead, in->ahead + ahead, in->ahead_count);
    }
    *got = 0;
    if (!in->has_ended) /* a terminal would want a second end-of-file */
        IRON_TRY(read_from(in, in->offset + ahead, (char *)to + ahead, want - ahead, got, err));
    *got += ahead;
    in->offset += *got;
    return IRON_OK;
}

iron_status iron__input_read_at(const iron__input *in, uint64_t at, void *to, size_t want,
                                iron_error *err) {
    iron__input file = *in;
    size_t got;

    file.is_stream = false; /* does not move the offset of standard input */
    IRON_TRY(read_stored(&file, false, false, at, to, want, &got, err));
    IRON_FAIL_IF(got < want, err, IRON_E_IO,
                 "%.120s ended at byte %" PRIu64 ", expected at least %" PRIu64
                 " bytes; it was cut while being read",
                 iron__path_shown(in->path), at + got, at + want);
    return IRON_OK;
}

iron_status iron__input_peek(iron__input *in, unsigned char head[IRON_HEAD_BYTES], size_t *got,
                             iron_error *err) {
    size_t want = IRON_HEAD_BYTES - in->ahead_count, more;

    if (!iron__input_is_pipe(in))
        return read_from(in, in->offset, head, IRON_HEAD_BYTES, got, err);
    if (!in->ahead)
        in->ahead = malloc(IRON_HEAD_BYTES);
    if (!in->ahead)
        return iron__no_memory(err, "the beginning of a pipe");
    /* All of it is waited for: what the pipe is must not depend on how fast its bytes come. */
    if (!in->has_ended && want > 0) {
        IRON_TRY(read_from(in, in->offset + in->ahead_count, in->ahead + in->ahead_count, want,
                           &more, err));
        in->ahead_count += more;
        in->has_ended = more < want;
    }
    *got = in->ahead_count;
    memcpy(head, in->ahead, *got);
    return IRON_OK;
}

iron_status iron__input_decompress(iron__input *in, iron__codec codec, iron_error *err) {
    decompression *d = malloc(sizeof *d);

    if (!d)
        return iron__no_memory(err, iron__path_shown(in->path));
    *d = (decompression){.bytes = in->bytes, .at = in->offset, .has_ended = in->has_ended};
    in->decompression = d;
    if (in->ahead_count > 0) {
        memcpy(d->data, in->ahead, in->ahead_count);
        d->at += in->ahead_count;
        d->buffers.from = d->data;
        d->buffers.from_count = in->ahead_count;
    }
    in->ahead_count = 0;
    in->has_ended = false;
    in->bytes = IRON_COUNT_UNKNOWN;
    in->offset = 0;
    return iron__decompression_create(codec, iron__path_shown(in->path), &d->codec, err);
}

void iron__input_use_frames(iron__input *in, const iron__frames *frames) {
    drop_decompression(in);
    in->ahead_count = 0;
    in->has_ended = false;
    in->inside = frames;
    in->bytes = iron__frames_bytes(frames);
    in->offset = 0;
}

iron_status iron__input_check_end(const iron__input *in, iron_error *err) {
    IRON_FAIL_IF(!iron__input_is_pipe(in) && in->offset < in->bytes, err, IRON_E_IO,
                 "%.120s ended at byte %" PRIu64 " of %" PRIu64 "; it was cut while being read",
                 iron__path_shown(in->path), in->offset, in->bytes);
    return IRON_OK;
}
