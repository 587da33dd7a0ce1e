/* SPDX-License-Identifier: MIT */
/*
 * input.h: one file, pipe or remote object, and the position up to which it was read.
 *
 * A path is a file's name, "-" for standard input, or an address (io/remote.h). Once a stop
 * flag is set, reading fails with IRON_E_CANCELLED within a tenth of a second.
 */
#ifndef IRON_IO_INPUT_H
#define IRON_IO_INPUT_H

#include "core/number.h" /* for those who read numbers from what they have read */
#include "io/codec.h"

#include <iron/iron.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* Enough to recognise any format and container, and to judge the width of tokens. */
#define IRON_HEAD_BYTES 4096u

typedef struct iron__input {
    const char *path;
    uint64_t bytes;  /* size; IRON_COUNT_UNKNOWN: a pipe, a device, or decompressed data */
    uint64_t start;  /* where a regular file begins: nonzero only for standard input */
    uint64_t offset; /* of the next byte, counted from start */
    bool is_stream;  /* standard input that is a regular file: read in order, moving its offset */
    int fd;          /* -1 if not open */
    const atomic_bool *stop;              /* borrowed; may be NULL. Once it is set, reading fails */
    struct iron__remote *remote;          /* NULL unless it is a remote object */
    struct iron__remote_stream *transfer; /* of a remote object that is read like a pipe */
    struct iron__decompressed *decompression; /* NULL: bytes are as stored */
    const struct iron__frames *inside; /* borrowed: bytes are what these parts decompress to */
    unsigned char *ahead; /* of a pipe: peeked at but not read yet; freed when it is closed */
    size_t ahead_count;
    bool has_ended; /* a pipe that was read to its end while it was peeked at */
} iron__input;

static inline bool iron__input_is_pipe(const iron__input *in) {
    return in->bytes == IRON_COUNT_UNKNOWN;
}

static inline bool iron__path_is_stdin(const char *path) { return strcmp(path, "-") == 0; }

/* Standard input, opened once more with an offset of its own: of a regular file alone. */
#define IRON_STDIN_AGAIN "/proc/self/fd/0"

/* A path as messages show it. */
static inline const char *iron__path_shown(const char *path) {
    return iron__path_is_stdin(path) || strcmp(path, IRON_STDIN_AGAIN) == 0 ? "standard input"
                                                                            : path;
}

/* What a path names. */
typedef enum iron__input_kind {
    IRON_INPUT_REGULAR,   /* a file, or a remote object that is served in ranges */
    IRON_INPUT_DIRECTORY, /* on this machine */
    IRON_INPUT_PIPE       /* anything that can only be read in order */
} iron__input_kind;

typedef struct iron__input_identity {
    iron__input_kind kind;
    uint64_t bytes;         /* of a regular file, the whole file; else 0 */
    uint64_t device, inode; /* of a remote object: 0, and a hash of its version */
} iron__input_identity;

iron_status iron__input_identify(const char *path, iron__input_identity *out, iron_error *err);

/* Call after reading: an error if a regular file is no longer the one that was identified. One that
 * became shorter has already caused an error; one that grew or was replaced has not, and what was
 * read of it is a state that it never had or no longer has. */
iron_status iron__input_check_unchanged(const char *path, const iron__input_identity *before,
                                        iron_error *err);

/* Opens in->path without waiting for the writer of a pipe; in->bytes must be set: the size, or
 * IRON_COUNT_UNKNOWN for what is to be read in order. Closing what is not open does nothing. */
iron_status iron__input_open(iron__input *in, iron_error *err);
void iron__input_close(iron__input *in);

/* Reads until `want` bytes are there or the input ends, and advances the offset. */
iron_status iron__input_read(iron__input *in, void *to, size_t want, size_t *got, iron_error *err);

/* Reads bytes at ... at+want-1 of a regular file, wherever the offset is; an error if it is
 * shorter. May be called from several threads at once. */
iron_status iron__input_read_at(const iron__input *in, uint64_t at, void *to, size_t want,
                                iron_error *err);

/* Copies IRON_HEAD_BYTES from the current offset without consuming them; fewer at the end. Waits
 * for a pipe that is slow. */
iron_status iron__input_peek(iron__input *in, unsigned char head[IRON_HEAD_BYTES], size_t *got,
                             iron_error *err);

/* From its beginning on, the input is what decompressing it gives, in order: a pipe. */
iron_status iron__input_decompress(iron__input *in, iron__codec codec, iron_error *err);

/* From its beginning on, the input is what decompressing it gives: a regular file, which is read
 * at any position. The parts must have a cache (io/frames.h) and outlive the input. */
void iron__input_use_frames(iron__input *in, const struct iron__frames *frames);

/* The input ended at its offset: an error if a regular file ended before its size. */
iron_status iron__input_check_end(const iron__input *in, iron_error *err);

#endif
