/* SPDX-License-Identifier: MIT */
/* sidecar.c: see sidecar.h. */
#include "formats/sidecar.h"

#include "core/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* datatrove writes loss masks and lists of its files beside its tokens too. */
static const struct {
    const char *suffix, *main_suffix, *what;
} kinds[] = {
    {".idx", ".bin", "the Megatron index"},     {".ds.index", ".ds", "the index"},
    {".ds.metadata", ".ds", "the description"}, {".ds.loss", ".ds", "the loss mask"},
    {".ds.datalist", ".ds", "the list"},
};

#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

bool iron__path_ends(const char *path, const char *suffix) {
    size_t length = strlen(path), end = strlen(suffix);

    return length > end && strcmp(path + length - end, suffix) == 0;
}

char *iron__path_beside(const char *path, size_t cut, const char *suffix) {
    char *beside = NULL;

    return asprintf(&beside, "%.*s%s", (int)(strlen(path) - cut), path, suffix) < 0 ? NULL : beside;
}

/* The kind of sidecar that a path names, KIND_COUNT if it names none, and its main file, which may
 * be missing; *main_path is the caller's. */
static size_t kind_of(const char *path, char **main_path, bool *has_main) {
    struct stat info;
    size_t k = 0;

    *main_path = NULL;
    *has_main = false;
    while (k < KIND_COUNT && !iron__path_ends(path, kinds[k].suffix))
        k++;
    if (k < KIND_COUNT)
        *main_path = iron__path_beside(path, strlen(kinds[k].suffix), kinds[k].main_suffix);
    if (*main_path)
        *has_main = stat(*main_path, &info) == 0 && S_ISREG(info.st_mode);
    return k;
}

bool iron__sidecar_is(const char *path) {
    char *main_path;
    bool has_main;

    kind_of(path, &main_path, &has_main);
    free(main_path);
    return has_main;
}

iron_status iron__sidecar_refuse(const char *path, iron_error *err) {
    iron_status status = IRON_OK;
    char *main_path;
    bool has_main;
    size_t k = kind_of(path, &main_path, &has_main);

    if (k < KIND_COUNT && main_path && (has_main || strcmp(kinds[k].suffix, ".idx") != 0))
        status = iron__fail(err, IRON_E_ARG, 0, "%.90s is %s of %.90s, %s", path, kinds[k].what,
                            main_path,
                            has_main ? "which holds the tokens: name that" : "which is missing");
    free(main_path);
    return status;
}

/* Opens what may be a pipe without waiting for its writer. */
static iron_status open_regular(iron__sidecar *s, bool *is_there, iron_error *err) {
    struct stat info;

    s->fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (s->fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG))
        return IRON_OK;
    if (s->fd < 0 || fstat(s->fd, &info) != 0)
        return iron__fail(err, IRON_E_IO, errno, "cannot open %.120s: %s", s->path,
                          strerror(errno));
    IRON_FAIL_IF(!S_ISREG(info.st_mode), err, IRON_E_IO, "%.120s is not a regular file", s->path);
    s->bytes = (uint64_t)info.st_size;
    *is_there = true;
    return IRON_OK;
}

iron_status iron__sidecar_open(char *path, iron__sidecar *out, bool *is_there, iron_error *err) {
    iron_status status;

    *is_there = false;
    *out = (iron__sidecar){.path = path, .fd = -1};
    if (!path)
        return iron__fail(err, IRON_E_NOMEM, ENOMEM, "out of memory for a file's name");
    status = open_regular(out, is_there, err);
    if (!*is_there)
        iron__sidecar_close(out);
    return status;
}

void iron__sidecar_close(iron__sidecar *sidecar) {
    if (sidecar->fd >= 0)
        close(sidecar->fd);
    free(sidecar->path);
    *sidecar = (iron__sidecar){.fd = -1};
}

iron_status iron__sidecar_read(const iron__sidecar *sidecar, uint64_t at, void *to, size_t want,
                               iron_error *err) {
    size_t got = 0;

    while (got < want) {
        ssize_t count = pread(sidecar->fd, (char *)to + got, want - got, (off_t)(at + got));

        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return iron__fail(err, IRON_E_IO, errno, "cannot read %.120s at byte %" PRIu64 ": %s",
                              sidecar->path, at + got, strerror(errno));
        IRON_FAIL_IF(count == 0, err, IRON_E_FORMAT,
                     "%.120s ended at byte %" PRIu64 ", expected %" PRIu64 " bytes at least",
                     sidecar->path, at + got, at + want);
        got += (size_t)count;
    }
    return IRON_OK;
}
