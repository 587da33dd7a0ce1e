/* SPDX-License-Identifier: MIT */
/*
 * output.c: files that appear whole or not at all.
 *
 * The bytes go to a file without a name (O_TMPFILE) in the target's folder, so that nothing is left
 * behind however the process ends. Commit syncs it, links it under a temporary name, renames that
 * over the target and syncs the folder. Where a file system has no nameless files, the temporary
 * name exists from the start. Devices and pipes are written directly: there is nothing to replace.
 */
#include "core/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct iron_output {
    int fd;
    bool is_direct;  /* standard output, a device, a pipe: no renaming */
    bool has_name;   /* the temporary name exists */
    char *target;    /* where it will appear */
    char *directory; /* the target's folder */
    char *temporary; /* a name beside it */
};

static iron_status fail_path(iron_error *err, const char *what, const char *path, int code) {
    return iron__fail(err, IRON_E_IO, code, "cannot %s %.120s: %s", what, path, strerror(code));
}

static void destroy(iron_output *o) {
    if (o->fd >= 0 && o->fd != STDOUT_FILENO)
        close(o->fd);
    free(o->target);
    free(o->directory);
    free(o->temporary);
    free(o);
}

/* The target with symbolic links followed, so that a link keeps pointing at the new file. */
static char *resolve(const char *path) {
    char *real = realpath(path, NULL);

    return real ? real : strdup(path);
}

static iron_status name_files(iron_output *o, const char *path, iron_error *err) {
    char *slash;

    o->target = resolve(path);
    o->directory = o->target ? strdup(o->target) : NULL;
    if (!o->directory || !o->directory[0])
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while opening %.120s", path);
    slash = strrchr(o->directory, '/');
    if (slash)
        slash[slash == o->directory] = '\0';
    else
        memcpy(o->directory, ".", 2); /* a file's name has a character at least */
    if (asprintf(&o->temporary, "%s.%ld.tmp", o->target, (long)getpid()) < 0) {
        o->temporary = NULL;
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while opening %.120s", path);
    }
    return IRON_OK;
}

static iron_status open_temporary(iron_output *o, mode_t mode, iron_error *err) {
    o->fd = open(o->directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    if (o->fd >= 0)
        return IRON_OK;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)
        return fail_path(err, "write into", o->directory, errno);
    o->fd = open(o->temporary, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);
    if (o->fd < 0)
        return fail_path(err, "create", o->temporary, errno);
    o->has_name = true;
    return IRON_OK;
}

static iron_status open_target(iron_output *o, const char *path, iron_error *err) {
    struct stat info;
    mode_t mode = 0666;

    if (strcmp(path, "-") == 0) {
        o->is_direct = true;
        o->fd = STDOUT_FILENO;
        return IRON_OK;
    }
    if (stat(path, &info) == 0) {
        IRON_FAIL_IF(S_ISDIR(info.st_mode), err, IRON_E_ARG,
                     "%.120s is a directory; name a file in it", path);
        o->is_direct = !S_ISREG(info.st_mode);
        mode = info.st_mode & 0777;
    }
    if (o->is_direct) {
        o->fd = open(path, O_WRONLY | O_CLOEXEC);
        return o->fd >= 0 ? IRON_OK : fail_path(err, "open", path, errno);
    }
    IRON_TRY(name_files(o, path, err));
    return open_temporary(o, mode, err);
}

iron_status iron_output_open(const char *path, iron_output **out, iron_error *err) {
    iron_output *o = calloc(1, sizeof *o);
    iron_status status;

    *out = NULL;
    if (!o)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory while opening %.120s", path);
    o->fd = -1;
    status = open_target(o, path, err);
    if (status != IRON_OK) {
        destroy(o);
        return status;
    }
    *out = o;
    return IRON_OK;
}

static const char *shown_name(const iron_output *o) { return o->target ? o->target : "the output"; }

iron_status iron_output_write(iron_output *output, const void *data, size_t bytes,
                              iron_error *err) {
    const char *at = data;

    while (bytes > 0) {
        ssize_t count = write(output->fd, at, bytes);

        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return fail_path(err, "write", shown_name(output), errno);
        at += count;
        bytes -= (size_t)count;
    }
    return IRON_OK;
}

static iron_status sync_directory(const iron_output *o, iron_error *err) {
    int fd = open(o->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = 0;

    if (fd < 0)
        return fail_path(err, "open", o->directory, errno);
    /* EINVAL: a file system that cannot sync directories has nothing to lose there. */
    if (fsync(fd) != 0 && errno != EINVAL)
        code = errno;
    close(fd);
    return code ? fail_path(err, "sync", o->directory, code) : IRON_OK;
}

static iron_status give_name(iron_output *o, iron_error *err) {
    char link[64];

    if (o->has_name)
        return IRON_OK;
    snprintf(link, sizeof link, "/proc/self/fd/%d", o->fd);
    unlink(o->temporary); /* left by a process of the same number that lost its power */
    if (linkat(AT_FDCWD, link, AT_FDCWD, o->temporary, AT_SYMLINK_FOLLOW) != 0)
        return fail_path(err, "create", o->temporary, errno);
    o->has_name = true;
    return IRON_OK;
}

static iron_status publish(iron_output *o, iron_error *err) {
    if (fsync(o->fd) != 0)
        return fail_path(err, "sync", o->target, errno);
    IRON_TRY(give_name(o, err));
    if (rename(o->temporary, o->target) != 0)
        return fail_path(err, "rename to", o->target, errno);
    o->has_name = false;
    return sync_directory(o, err);
}

iron_status iron_output_commit(iron_output *output, iron_error *err) {
    iron_status status = output->is_direct ? IRON_OK : publish(output, err);

    if (status == IRON_OK && output->is_direct && output->fd != STDOUT_FILENO) {
        int fd = output->fd;

        output->fd = -1;
        if (close(fd) != 0)
            status = fail_path(err, "close", shown_name(output), errno);
    }
    iron_output_abandon(output);
    return status;
}

void iron_output_abandon(iron_output *output) {
    if (!output)
        return;
    if (output->has_name)
        unlink(output->temporary);
    destroy(output);
}

const char *iron_output_temporary(const iron_output *output) {
    return output && output->has_name ? output->temporary : NULL;
}
