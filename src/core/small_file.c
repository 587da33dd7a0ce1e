/* SPDX-License-Identifier: MIT */
/*
 * small_file.c: see small_file.h. What is checked is checked of the file that is open, so that it
 * cannot be exchanged in between.
 */
#include "core/small_file.h"

#include "core/access_list.h"
#include "core/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The group's bits are those of an access list where there is one. */
static bool is_for_others(int fd, const struct stat *info) {
    if ((info->st_mode & 07) != 0)
        return true;
    return (info->st_mode & 070) != 0 && !iron__access_list_is_private(fd);
}

static iron_status check(const char *path, const char *what, size_t bytes_max, bool is_secret,
                         int fd, const struct stat *info, iron_error *err) {
    IRON_FAIL_IF(!S_ISREG(info->st_mode), err, IRON_E_ARG, "%s %s: it is no regular file", what,
                 path);
    IRON_FAIL_IF(info->st_size < 0 || (uint64_t)info->st_size > bytes_max, err, IRON_E_ARG,
                 "%s %s: it has %" PRId64 " bytes, at most %zu are taken", what, path,
                 (int64_t)info->st_size, bytes_max);
    IRON_FAIL_IF(is_secret && info->st_uid != geteuid() && info->st_uid != 0, err, IRON_E_ARG,
                 "%s %s: it belongs to user %u; it must be yours or root's", what, path,
                 (unsigned)info->st_uid);
    IRON_FAIL_IF(is_secret && is_for_others(fd, info), err, IRON_E_ARG,
                 "%s %s: others may read or write it (mode %04o); chmod 600 it", what, path,
                 (unsigned)info->st_mode & 07777);
    return IRON_OK;
}

static ssize_t read_all(int fd, char *room, size_t bytes) {
    size_t have = 0;

    while (have < bytes) {
        ssize_t got = read(fd, room + have, bytes - have);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

static iron_status read_open(int fd, const char *path, const char *what, size_t bytes_max,
                             bool is_secret, char **out, size_t *bytes, iron_error *err) {
    struct stat info;
    ssize_t got;

    if (fstat(fd, &info) != 0)
        return iron__fail(err, IRON_E_IO, errno, "%s %s: %s", what, path, strerror(errno));
    IRON_TRY(check(path, what, bytes_max, is_secret, fd, &info, err));
    *out = malloc((size_t)info.st_size + 1);
    IRON_FAIL_IF(!*out, err, IRON_E_NOMEM, "out of memory: %s of %" PRId64, what,
                 (int64_t)info.st_size);
    got = read_all(fd, *out, (size_t)info.st_size);
    if (got < 0) {
        free(*out);
        *out = NULL;
        return iron__fail(err, IRON_E_IO, errno, "%s %s: %s", what, path, strerror(errno));
    }
    (*out)[got] = '\0';
    *bytes = (size_t)got;
    return IRON_OK;
}

iron_status iron__small_file_read(const char *path, const char *what, size_t bytes_max,
                                  bool is_secret, char **out, size_t *bytes, iron_error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    iron_status status;

    *out = NULL;
    *bytes = 0;
    if (fd < 0)
        return iron__fail(err, IRON_E_IO, errno, "%s %s: %s", what, path, strerror(errno));
    status = read_open(fd, path, what, bytes_max, is_secret, out, bytes, err);
    close(fd);
    return status;
}
