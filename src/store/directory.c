/* SPDX-License-Identifier: MIT */
/*
 * directory.c: see directory.h. The lock is the kernel's and ends with the process, however it
 * ends; the number in the file is for people.
 */
#include "store/directory.h"

#include "core/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The new name is on the disk when the directory above is. */
static iron_status sync_above(const char *directory, iron_error *err) {
    char *copy = strdup(directory);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int failed = fd < 0 || fsync(fd) != 0 ? errno : 0;

    if (fd >= 0)
        close(fd);
    free(copy);
    if (failed)
        return iron__fail(err, IRON_E_IO, failed, "cannot sync the directory above %.120s: %s",
                          directory, strerror(failed));
    return IRON_OK;
}

static iron_status make_directory(const char *directory, iron_error *err) {
    struct stat info;

    if (mkdir(directory, 0700) == 0)
        return sync_above(directory, err);
    if (errno != EEXIST)
        return iron__fail(err, IRON_E_IO, errno, "cannot make the directory %.120s: %s", directory,
                          strerror(errno));
    IRON_FAIL_IF(stat(directory, &info) != 0 || !S_ISDIR(info.st_mode), err, IRON_E_IO,
                 "%.120s is no directory; use another name", directory);
    return IRON_OK;
}

static iron_status refuse_other(const char *directory, int fd, iron_error *err) {
    char pid[32] = "";
    ssize_t bytes = pread(fd, pid, sizeof pid - 1, 0);

    pid[bytes > 0 ? bytes : 0] = '\0';
    pid[strspn(pid, "0123456789")] = '\0';
    return iron__fail(err, IRON_E_STATE, 0,
                      "%.120s is in use by another iron serve%s%s; stop that one, or use another "
                      "directory",
                      directory, pid[0] ? ", process " : "", pid);
}

static void write_pid(int fd) {
    char pid[32];
    int length = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());

    if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)length, 0) != length)
        return; /* the lock holds without it */
}

iron_status iron__directory_lock(const char *directory, int *lock, iron_error *err) {
    char *path = NULL;
    iron_status status = IRON_OK;
    int fd;

    *lock = -1;
    IRON_TRY(make_directory(directory, err));
    if (asprintf(&path, "%s/lock", directory) < 0)
        IRON_FAIL(err, IRON_E_NOMEM, "out of memory: a file's name");
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        status = iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", path, strerror(errno));
    else if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        status = errno == EWOULDBLOCK ? refuse_other(directory, fd, err)
                                      : iron__fail(err, IRON_E_IO, errno, "cannot lock %.120s: %s",
                                                   path, strerror(errno));
    free(path);
    if (status == IRON_OK)
        write_pid(fd);
    else if (fd >= 0)
        close(fd);
    if (status == IRON_OK)
        *lock = fd;
    return status;
}
