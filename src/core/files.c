/* SPDX-License-Identifier: MIT */
/*
 * files.c: small files that are read whole, with the permission check for secrets; the
 * authentication token; the cache folder. Permissions are checked on the open descriptor, so that
 * the file cannot be exchanged between check and read.
 */
#include "core/files.h"

#include "core/fail.h"
#include "core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
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

static uint32_t little_endian(const unsigned char *at, size_t bytes) {
    uint32_t number = 0;

    for (size_t k = bytes; k > 0; k--)
        number = number << 8 | at[k - 1];
    return number;
}

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
        little_endian(list, ACL_HEADER_BYTES) != ACL_VERSION)
        return false;
    for (const unsigned char *entry = list + ACL_HEADER_BYTES; entry < list + bytes;
         entry += ACL_ENTRY_BYTES) {
        uint32_t tag = little_endian(entry, 2), permissions = little_endian(entry + 2, 2);
        uint32_t user = little_endian(entry + 4, 4);

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

iron_status iron__small_file_read(const char *path, const char *what, size_t bytes_max,
                                  bool is_secret, char **out, size_t *bytes, iron_error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    char *text = NULL;
    struct stat info;
    iron_status status;
    ssize_t got;

    *out = NULL;
    *bytes = 0;
    if (fd < 0 || fstat(fd, &info) != 0) {
        status = iron__fail(err, IRON_E_IO, errno, "%s %s: %s", what, path, strerror(errno));
        goto done;
    }
    status = check(path, what, bytes_max, is_secret, fd, &info, err);
    if (status != IRON_OK)
        goto done;
    text = malloc((size_t)info.st_size + 1);
    if (!text) {
        status = iron__fail(err, IRON_E_NOMEM, 0, "out of memory for %s of %" PRId64 " bytes", what,
                            (int64_t)info.st_size);
        goto done;
    }
    got = iron__read_all(fd, text, (size_t)info.st_size);
    if (got < 0) {
        status = iron__fail(err, IRON_E_IO, errno, "%s %s: %s", what, path, strerror(errno));
        free(text);
        goto done;
    }
    text[got] = '\0';
    *out = text;
    *bytes = (size_t)got;
done:
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
    if (bytes)
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
