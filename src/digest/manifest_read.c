/* SPDX-License-Identifier: MIT */
/* manifest_read.c: manifests that are files: is this one, and reading it whole. */
#include "core/fail.h"
#include "core/json_read.h"
#include "digest/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_BYTES ((size_t)64 << 10)

/* What every manifest holds, wherever it stands: others may have sorted its members. */
#define SIGN        "\"" IRON_MANIFEST_SCHEMA
#define SIGN_BYTES  (sizeof SIGN - 1)
#define PIECE_BYTES ((size_t)16 << 10)

/* Fills `to` as far as the file goes; -1: errno says why not. */
static ssize_t read_full(int fd, char *to, size_t bytes) {
    size_t filled = 0;

    while (filled < bytes) {
        ssize_t count = read(fd, to + filled, bytes - filled);

        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return -1;
        if (count == 0)
            break;
        filled += (size_t)count;
    }
    return (ssize_t)filled;
}

/* Is the first byte that is no blank a brace? Blanks alone leave that open: 0, else 1 or -1. */
static int begins_object(const char *text, size_t length) {
    for (size_t k = 0; k < length; k++)
        if (text[k] != ' ' && text[k] != '\t' && text[k] != '\r' && text[k] != '\n')
            return text[k] == '{' ? 1 : -1;
    return 0;
}

/* In pieces, each behind the end of the one before, so that no seam hides the sign. */
static bool holds_sign(int fd) {
    char room[SIGN_BYTES + PIECE_BYTES];
    size_t kept = 0;
    int is_object = 0;

    for (;;) {
        ssize_t count = read_full(fd, room + kept, PIECE_BYTES);
        size_t length;

        if (count <= 0)
            return false;
        if (is_object == 0)
            is_object = begins_object(room + kept, (size_t)count);
        if (is_object < 0)
            return false;
        length = kept + (size_t)count;
        if (is_object > 0 && memmem(room, length, SIGN, SIGN_BYTES))
            return true;
        kept = length < SIGN_BYTES - 1 ? length : SIGN_BYTES - 1;
        memmove(room, room + length - kept, kept);
    }
}

static bool is_readable_whole(const struct stat *info) {
    return S_ISREG(info->st_mode) && (uint64_t)info->st_size <= IRON_JSON_BYTES_MAX;
}

/* What a pipe brings can be read once, and is left to whoever reads it. It is not even opened: its
 * writer would find a reader, and lose it again. */
int iron_manifest_is_one(const char *path) {
    struct stat info;
    bool is_one;
    int fd;

    if (stat(path, &info) != 0 || !is_readable_whole(&info))
        return 0;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    is_one = fstat(fd, &info) == 0 && is_readable_whole(&info) && holds_sign(fd);
    close(fd);
    return is_one;
}

/* All of a file, which may be a pipe, up to one byte more than is read. */
static iron_status read_text(int fd, const char *path, char **text, size_t *length,
                             iron_error *err) {
    size_t room = FIRST_BYTES;

    *text = NULL;
    *length = 0;
    for (;;) {
        char *larger = realloc(*text, room);
        ssize_t count;

        if (!larger)
            return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while reading %.120s",
                              path);
        *text = larger;
        count = read_full(fd, *text + *length, room - *length);
        if (count < 0)
            return iron__fail(err, IRON_E_IO, errno, "cannot read %.120s: %s", path,
                              strerror(errno));
        *length += (size_t)count;
        if (*length < room)
            return IRON_OK;
        IRON_FAIL_IF(*length > IRON_JSON_BYTES_MAX, err, IRON_E_FORMAT,
                     "%.120s has more than %zu bytes, the largest manifest that is read; was it "
                     "made with larger chunks?",
                     path, IRON_JSON_BYTES_MAX);
        room = 2 * room < IRON_JSON_BYTES_MAX ? 2 * room : IRON_JSON_BYTES_MAX + 1;
    }
}

static iron_status remember_origin(iron_manifest *m, const char *path, iron_error *err) {
    m->origin = strdup(path);
    if (!m->origin)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while reading %.120s", path);
    return IRON_OK;
}

iron_status iron_manifest_read(const char *path, iron_manifest **out, iron_error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    size_t length = 0;
    iron_status status;

    *out = NULL;
    if (fd < 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", path, strerror(errno));
    status = read_text(fd, path, &text, &length, err);
    close(fd);
    if (status == IRON_OK)
        status = iron__manifest_parse(path, text, length, out, err);
    free(text);
    if (status == IRON_OK)
        status = remember_origin(*out, path, err);
    if (status != IRON_OK) {
        iron_manifest_destroy(*out);
        *out = NULL;
    }
    return status;
}
