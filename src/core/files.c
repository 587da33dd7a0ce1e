/* SPDX-License-Identifier: MIT */
/*
 * files.c: small files that are read whole, with the permission check for secrets; the
 * authentication token; the cache folder; and output files that appear complete or not at all.
 *
 * Permissions are checked on the open descriptor, so that the file cannot be exchanged between
 * check and read.
 *
 * The bytes of an output go to an unnamed file (O_TMPFILE) in the target's folder, so that nothing
 * is left behind however the process ends. Commit syncs it, links it under a temporary name,
 * renames that to the target and syncs the folder; signals are blocked meanwhile. On file systems
 * without O_TMPFILE the temporary name exists from the start. Devices and pipes are written
 * directly.
 */
#include "core/files.h"

#include "core/clock.h"
#include "core/fail.h"
#include "core/memory.h"
#include "core/number.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* POSIX access control lists, in the kernel's format (linux/posix_acl_xattr.h): a version, then
 * entries of a tag, permissions and an id, all little-endian. Parsed here because it is a few bytes
 * and libacl would be a dependency. */
#define ACL_VERSION      2u
#define ACL_HEADER_BYTES 4u
#define ACL_ENTRY_BYTES  8u
#define ACL_ENTRIES_MAX  32u

enum { ACL_TAG_OWNER = 0x01, ACL_TAG_USER = 0x02, ACL_TAG_MASK = 0x10 };

/* Whether the file has an access control list that gives nothing to groups or others, nor to any
 * user but this process's, root and the owner. False if the list cannot be parsed.
 *
 * Where a file has a list, the group bits of its mode show the most that the list gives to anyone.
 * systemd passes credentials this way: root's file, mode 0400, with one entry that lets the
 * service's user read it; stat then reports 0440 although no group may read it. */
static bool is_acl_private(int fd) {
    unsigned char list[ACL_HEADER_BYTES + ACL_ENTRIES_MAX * ACL_ENTRY_BYTES];
    ssize_t got = fgetxattr(fd, "system.posix_acl_access", list, sizeof list);
    size_t bytes = got > 0 ? (size_t)got : 0;

    if (bytes <= ACL_HEADER_BYTES || (bytes - ACL_HEADER_BYTES) % ACL_ENTRY_BYTES != 0 ||
        iron__load(list, ACL_HEADER_BYTES) != ACL_VERSION)
        return false;
    for (const unsigned char *entry = list + ACL_HEADER_BYTES; entry < list + bytes;
         entry += ACL_ENTRY_BYTES) {
        uint64_t tag = iron__load(entry, 2), permissions = iron__load(entry + 2, 2);
        uint64_t user = iron__load(entry + 4, 4);

        if (permissions != 0 && tag != ACL_TAG_OWNER && tag != ACL_TAG_MASK &&
            !(tag == ACL_TAG_USER && (user == 0 || user == geteuid())))
            return false;
    }
    return true;
}

static iron_status check(const char *path, const char *what, size_t bytes_max, bool is_secret,
                         int fd, const struct stat *info, iron_error *err) {
    bool is_for_others = (info->st_mode & 07) != 0;

    IRON_FAIL_IF(!S_ISREG(info->st_mode), err, IRON_E_ARG, "%s %s: not a regular file", what, path);
    IRON_FAIL_IF(info->st_size < 0 || (uint64_t)info->st_size > bytes_max, err, IRON_E_ARG,
                 "%s %s: it has %" PRId64 " bytes, at most %zu are allowed", what, path,
                 (int64_t)info->st_size, bytes_max);
    if (!is_secret)
        return IRON_OK;
    IRON_FAIL_IF(info->st_uid != geteuid() && info->st_uid != 0, err, IRON_E_ARG,
                 "%s %s: it belongs to user %u; it must be yours or root's", what, path,
                 (unsigned)info->st_uid);
    is_for_others = is_for_others || ((info->st_mode & 070) != 0 && !is_acl_private(fd));
    IRON_FAIL_IF(is_for_others, err, IRON_E_ARG,
                 "%s %s: others may read or write it (mode %04o); chmod 600 it", what, path,
                 (unsigned)info->st_mode & 07777);
    return IRON_OK;
}

ssize_t iron__read_all(int fd, void *to, size_t bytes) {
    size_t have = 0;

    while (have < bytes) {
        ssize_t got = read(fd, (char *)to + have, bytes - have);

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

bool iron__write_all(int fd, const void *data, size_t bytes) {
    struct pollfd end = {.fd = fd, .events = POLLOUT};
    const char *at = data;

    while (bytes > 0) {
        ssize_t count = write(fd, at, bytes);

        /* waits if it is a full non-blocking pipe */
        if (count < 0 && (errno == EINTR || (errno == EAGAIN && poll(&end, 1, -1) > 0)))
            continue;
        if (count < 0)
            return false;
        at += count;
        bytes -= (size_t)count;
    }
    return true;
}

iron_status iron__small_file_read(const char *path, const char *what, size_t bytes_max,
                                  bool is_secret, char **out, size_t *bytes, iron_error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    iron_status status = IRON_OK;
    struct stat info;
    ssize_t got = -1;

    *out = NULL;
    *bytes = 0;
    if (fd >= 0 && fstat(fd, &info) == 0) {
        status = check(path, what, bytes_max, is_secret, fd, &info, err);
        if (status == IRON_OK && !(*out = malloc((size_t)info.st_size + 1)))
            status = iron__fail(err, IRON_E_NOMEM, 0, "out of memory for %s of %" PRId64 " bytes",
                                what, (int64_t)info.st_size);
        if (status == IRON_OK)
            got = iron__read_all(fd, *out, (size_t)info.st_size);
    }
    if (got >= 0) {
        (*out)[got] = '\0';
        *bytes = (size_t)got;
    } else if (status == IRON_OK) {
        status = iron__fail(err, IRON_E_IO, errno, "%s %s: %s", what, path, strerror(errno));
        free(*out);
        *out = NULL;
    }
    if (fd >= 0)
        close(fd);
    return status;
}

/* Copies the token out of the file's bytes. No message shows any of it. */
static iron_status parse_auth_token(const char *path, const char *bytes, size_t count, char *text,
                                    iron_error *err) {
    if (count > 0 && bytes[count - 1] == '\n')
        count--;
    if (count > 0 && bytes[count - 1] == '\r')
        count--;
    IRON_FAIL_IF(count == 0, err, IRON_E_ARG,
                 "token file %.120s is empty; write the token on one line", path);
    IRON_FAIL_IF(count > IRON_AUTH_TOKEN_MAX, err, IRON_E_ARG,
                 "token file %.120s: the token has %zu bytes, at most %u are allowed", path, count,
                 IRON_AUTH_TOKEN_MAX);
    for (size_t k = 0; k < count; k++)
        IRON_FAIL_IF(
            bytes[k] <= 0x20 || bytes[k] >= 0x7F, err, IRON_E_ARG,
            "token file %.120s: byte %zu is a blank or not visible ASCII; write only the token, on "
            "one line",
            path, k);
    memcpy(text, bytes, count);
    return IRON_OK;
}

iron_status iron__auth_token_read(const char *path, char text[IRON_AUTH_TOKEN_SIZE],
                                  iron_error *err) {
    iron_status status;
    char *bytes;
    size_t count;

    memset(text, 0, IRON_AUTH_TOKEN_SIZE);
    IRON_TRY(iron__small_file_read(path, "token file", IRON_AUTH_TOKEN_MAX + 2, true, &bytes,
                                   &count, err));
    status = parse_auth_token(path, bytes, count, text, err);
    explicit_bzero(bytes, count);
    free(bytes);
    return status;
}

/* The value of a variable of the XDG base directories, where relative paths are ignored. */
static const char *absolute(const char *variable) {
    const char *value = getenv(variable);

    return value && value[0] == '/' ? value : NULL;
}

char *iron__cache_folder(void) {
    const char *own = getenv("IRON_CACHE_DIR"), *xdg = absolute("XDG_CACHE_HOME");
    const char *home = absolute("HOME");

    if (own && own[0])
        return strdup(own);
    if (xdg)
        return iron__print("%s/iron", xdg);
    return home ? iron__print("%s/.cache/iron", home) : NULL;
}

char *iron__cache_path(const char *prefix, uint64_t hash, const char *suffix) {
    char *directory = iron__cache_folder(), *path = NULL;

    if (directory)
        path = iron__print("%s/%s-%016" PRIx64 "%s", directory, prefix, hash, suffix);
    free(directory);
    return path;
}

void iron__cache_folder_create(void) {
    char *path = iron__cache_folder();

    if (!path)
        return;
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    (void)mkdir(path, 0700);
    free(path);
}

/* Outputs. */

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

/* Gives the file an unused temporary name: links the open one, or creates one. The name is short,
 * so that long target names stay possible; a file left by a killed process with the same pid does
 * not matter. */
static iron_status take_name(iron_output *o, iron_error *err) {
    bool is_open = o->fd >= 0;
    char link[64];
    int code;

    snprintf(link, sizeof link, "/proc/self/fd/%d", o->fd);
    do {
        free(o->temporary);
        o->temporary =
            iron__print("%s/.iron-%lx-%" PRIx64, o->directory, (long)getpid(), iron__clock_ns());
        errno = ENOMEM;
        if (o->temporary && is_open)
            code = linkat(AT_FDCWD, link, AT_FDCWD, o->temporary, AT_SYMLINK_FOLLOW);
        else if (o->temporary)
            code = o->fd = open(o->temporary, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
        else
            code = -1;
    } while (code < 0 && errno == EEXIST);
    if (code >= 0)
        return IRON_OK;
    code = errno;
    free(o->temporary);
    o->temporary = NULL; /* it is not ours */
    return iron__fail_path(err, "write into", o->directory, code);
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
    o->fd = open(o->directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (o->fd < 0 && errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
        return iron__fail_path(err, "write into", o->directory, errno);
    if (o->fd < 0)
        IRON_TRY(take_name(o, err));
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
    if (!iron__write_all(output->fd, data, bytes))
        return iron__fail_path(err, "write", shown_name(output), errno);
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
    iron_status status;

    if (fsync(o->fd) != 0)
        return iron__fail_path(err, "sync", o->target, errno);
    iron__signals_block(&before);
    status = o->temporary ? IRON_OK : take_name(o, err);
    if (status == IRON_OK && rename(o->temporary, o->target) != 0)
        status = iron__fail_path(err, "rename to", o->target, errno);
    if (status == IRON_OK) {
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
