/* SPDX-License-Identifier: MIT */
/* push_token.c: see push_token.h. No message shows any of it. */
#include "client/push_token.h"

#include "core/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A line's end may follow; then nothing. */
static size_t line_length(const char *text, size_t bytes) {
    if (bytes > 0 && text[bytes - 1] == '\n')
        bytes--;
    return bytes > 0 && text[bytes - 1] == '\r' ? bytes - 1 : bytes;
}

static bool is_visible(const char *text, size_t length) {
    for (size_t k = 0; k < length; k++)
        if (text[k] < 0x21 || text[k] > 0x7E)
            return false;
    return length > 0;
}

/* Looks at what was opened, not at the name again. */
static iron_status check_mode(int fd, const char *path, iron_error *err) {
    struct stat info;

    if (fstat(fd, &info) != 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot look at %.100s: %s", path,
                          strerror(errno));
    IRON_FAIL_IF(!S_ISREG(info.st_mode), err, IRON_E_ARG,
                 "--token-file %.100s is no regular file; name a file with the token", path);
    IRON_FAIL_IF(info.st_mode & 077, err, IRON_E_ARG,
                 "--token-file %.100s may be read by others (mode %03o); chmod 600 it", path,
                 (unsigned)(info.st_mode & 0777));
    return IRON_OK;
}

static iron_status read_all(int fd, const char *path, char *to, size_t room, size_t *got,
                            iron_error *err) {
    ssize_t some = 1;

    for (*got = 0; some > 0 && *got < room; *got += (size_t)some) {
        do
            some = read(fd, to + *got, room - *got);
        while (some < 0 && errno == EINTR);
        if (some < 0)
            return iron__fail(err, IRON_E_IO, errno, "cannot read %.100s: %s", path,
                              strerror(errno));
    }
    return IRON_OK;
}

iron_status iron__push_token_read(const char *path, char token[IRON_PUSH_TOKEN_ROOM],
                                  iron_error *err) {
    char bytes[IRON_PUSH_TOKEN_ROOM + 1]; /* a line's end more than a token */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t got = 0, length;
    iron_status status;

    token[0] = '\0';
    if (fd < 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot open --token-file %.100s: %s", path,
                          strerror(errno));
    status = check_mode(fd, path, err);
    if (status == IRON_OK)
        status = read_all(fd, path, bytes, sizeof bytes, &got, err);
    close(fd);
    length = line_length(bytes, got);
    if (status == IRON_OK && (length >= IRON_PUSH_TOKEN_ROOM || !is_visible(bytes, length)))
        status = iron__fail(err, IRON_E_FORMAT, 0,
                            "--token-file %.100s holds no token: one line of 1 to %u visible "
                            "ASCII characters, without blanks",
                            path, IRON_PUSH_TOKEN_ROOM - 1);
    if (status == IRON_OK) {
        memcpy(token, bytes, length);
        token[length] = '\0';
    }
    explicit_bzero(bytes, sizeof bytes);
    return status;
}
