/* SPDX-License-Identifier: MIT */
/*
 * output.c: output files that appear complete or not at all.
 *
 * The bytes go to an unnamed file (O_TMPFILE) in the target's folder, so that nothing is left
 * behind however the process ends. Commit syncs it, links it under a temporary name, renames that
 * to the target and syncs the folder; signals are blocked meanwhile. On file systems without
 * O_TMPFILE the temporary name exists from the start. Devices and pipes are written directly.
 */
#include "core/files.h"

#include "core/clock.h"
#include "core/fail.h"
#include "core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct iron_output {
    int fd;
    bool is_borrowed; /* standard output: do not close */
    bool is_direct;   /* standard output, a device, a pipe: no renaming */
    char *target;     /* the path that commit creates */
    char *directory;  /* the target's folder */
    char *temporary;  /* a name in that folder, while the file has one */
};

void iron__signals_block(sigset_t *before) {
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, before);
}

void iron__signals_restore(const sigset_t *before) { pthread_sigmask(SIG_SETMASK, before, NULL); }

/* Sets target and directory. Symbolic links are followed, so that a link keeps pointing at the new
 * file. False: out of memory. */
static bool set_paths(iron_output *o, const char *path) {
    char *slash;

    o->target = realpath(path, NULL);
    if (!o->target)
        o->target = strdup(path);
    o->directory = o->target ? strdup(o->target) : NULL;
    if (!o->directory)
        return false;
    slash = strrchr(o->directory, '/');
    if (slash)
        slash[slash == o->directory] = '\0';
    else
        memcpy(o->directory, ".", 2); /* a file name has at least one character */
    return true;
}

/* Gives the file an unused temporary name. It is short, so that long target names stay possible; a
 * file left by a killed process with the same pid does not matter. Returns 0 or errno. */
static int take_name(iron_output *o, int (*create)(iron_output *o, const char *name)) {
    char *name = NULL;
    int code;

    do {
        free(name);
        name = iron__print("%s/.iron-%lx-%" PRIx64, o->directory, (long)getpid(), iron__clock_ns());
        if (!name)
            return ENOMEM;
        code = create(o, name);
    } while (code == EEXIST);
    if (code == 0)
        o->temporary = name;
    else
        free(name);
    return code;
}

static int create_named(iron_output *o, const char *name) {
    o->fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    return o->fd < 0 ? errno : 0;
}

static int link_unnamed(iron_output *o, const char *name) {
    char link[64];

    snprintf(link, sizeof link, "/proc/self/fd/%d", o->fd);
    return linkat(AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW) ? errno : 0;
}

static iron_status open_temporary(iron_output *o, iron_error *err) {
    int code;

    o->fd = open(o->directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (o->fd >= 0)
        return IRON_OK;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
        return iron__fail_path(err, "write into", o->directory, errno);
    code = take_name(o, create_named);
    return code ? iron__fail_path(err, "write into", o->directory, code) : IRON_OK;
}

static iron_status open_target(iron_output *o, const char *path, iron_error *err) {
    struct stat info;
    bool is_there;

    IRON_FAIL_IF(path[0] == '\0', err, IRON_E_ARG, "the output name is empty; give a file name");
    if (strcmp(path, "-") == 0) {
        o->is_direct = o->is_borrowed = true;
        o->fd = STDOUT_FILENO;
        return IRON_OK;
    }
    is_there = stat(path, &info) == 0;
    if (is_there) {
        IRON_FAIL_IF(S_ISDIR(info.st_mode), err, IRON_E_ARG,
                     "%.120s is a directory; name a file in it", path);
        o->is_direct = !S_ISREG(info.st_mode);
    }
    if (o->is_direct) {
        o->fd = open(path, O_WRONLY | O_CLOEXEC);
        return o->fd >= 0 ? IRON_OK : iron__fail_path(err, "open", path, errno);
    }
    if (!set_paths(o, path))
        return iron__no_memory(err, path);
    IRON_TRY(open_temporary(o, err));
    /* a replaced file keeps its permissions; a new file gets them from the umask */
    if (is_there && fchmod(o->fd, info.st_mode & 07777) != 0)
        return iron__fail_path(err, "set permissions of", path, errno);
    return IRON_OK;
}

iron_status iron_output_open(const char *path, iron_output **out, iron_error *err) {
    iron_output *o;
    iron_status status;

    *out = NULL;
    IRON_TRY(IRON_NEW(&o, 1, path, err));
    o->fd = -1;
    status = open_target(o, path, err);
    if (status == IRON_OK)
        *out = o;
    else
        iron_output_abandon(o);
    return status;
}

static const char *shown_name(const iron_output *o) { return o->target ? o->target : "the output"; }

iron_status iron_output_write(iron_output *output, const void *data, size_t bytes,
                              iron_error *err) {
    struct pollfd end = {.fd = output->fd, .events = POLLOUT};
    const char *at = data;

    while (bytes > 0) {
        ssize_t count = write(output->fd, at, bytes);

        /* waits if the output is a full non-blocking pipe */
        if (count < 0 && (errno == EINTR || (errno == EAGAIN && poll(&end, 1, -1) > 0)))
            continue;
        if (count < 0)
            return iron__fail_path(err, "write", shown_name(output), errno);
        at += count;
        bytes -= (size_t)count;
    }
    return IRON_OK;
}

static iron_status sync_directory(const iron_output *o, iron_error *err) {
    int fd = open(o->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = 0;

    if (fd < 0)
        return iron__fail_path(err, "open", o->directory, errno);
    /* EINVAL: this file system cannot sync directories and does not need it. */
    if (fsync(fd) != 0 && errno != EINVAL)
        code = errno;
    close(fd);
    return code ? iron__fail_path(err, "sync", o->directory, code) : IRON_OK;
}

/* Syncs the file, renames it to the target and syncs the folder. */
static iron_status publish(iron_output *o, iron_error *err) {
    sigset_t before;
    iron_status status = IRON_OK;
    int code = 0;

    if (fsync(o->fd) != 0)
        return iron__fail_path(err, "sync", o->target, errno);
    iron__signals_block(&before);
    if (!o->temporary)
        code = take_name(o, link_unnamed);
    if (code) {
        status = iron__fail_path(err, "write into", o->directory, code);
    } else if (rename(o->temporary, o->target) != 0) {
        status = iron__fail_path(err, "rename to", o->target, errno);
    } else {
        free(o->temporary);
        o->temporary = NULL;
    }
    iron__signals_restore(&before);
    return status == IRON_OK ? sync_directory(o, err) : status;
}

iron_status iron_output_commit(iron_output *output, iron_error *err) {
    iron_status status = output->is_direct ? IRON_OK : publish(output, err);

    if (status == IRON_OK && output->is_direct && !output->is_borrowed) {
        int fd = output->fd;

        output->fd = -1;
        if (close(fd) != 0)
            status = iron__fail_path(err, "close", shown_name(output), errno);
    }
    iron_output_abandon(output);
    return status;
}

void iron_output_abandon(iron_output *output) {
    if (!output)
        return;
    if (output->temporary)
        unlink(output->temporary);
    if (output->fd >= 0 && !output->is_borrowed)
        close(output->fd);
    free(output->target);
    free(output->directory);
    free(output->temporary);
    free(output);
}

const char *iron_output_temporary(const iron_output *output) {
    return output ? output->temporary : NULL;
}
