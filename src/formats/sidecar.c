/* SPDX-License-Identifier: MIT */
/*
 * sidecar.c: the files beside token files that describe them, and what paths tell.
 */
#include "core/fail.h"
#include "core/memory.h"
#include "formats/format.h"
#include "io/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* datatrove also writes loss masks and file lists beside its tokens. */
static const struct {
    const char *suffix, *main_suffix, *what;
} kinds[] = {
    {".idx", ".bin", "the Megatron index"},     {".ds.index", ".ds", "the index"},
    {".ds.metadata", ".ds", "the description"}, {".ds.loss", ".ds", "the loss mask"},
    {".ds.datalist", ".ds", "the list"},
};

#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

/* Of a sidecar that cannot be read in pieces. */
#define SIDECAR_BYTES_MAX ((size_t)1 << 30)

bool iron__path_ends(const char *path, const char *suffix) {
    size_t length = strlen(path), end = strlen(suffix);

    return length > end && strcmp(path + length - end, suffix) == 0;
}

char *iron__path_beside(const char *path, size_t cut, const char *suffix) {
    return iron__print("%.*s%s", (int)(strlen(path) - cut), path, suffix);
}

bool iron__path_is_there(const char *path) {
    iron__input_identity identity;
    struct stat info;

    if (!iron__path_is_remote(path))
        return stat(path, &info) == 0 && S_ISREG(info.st_mode);
    return !strchr(path, '?') && iron__input_identify(path, &identity, NULL) == IRON_OK;
}

bool iron__path_has_beside(const char *path, size_t cut, const char *suffix) {
    char *beside = iron__path_beside(path, cut, suffix);
    bool is_there = beside && iron__path_is_there(beside);

    free(beside);
    return is_there;
}

bool iron__path_has_idx(const char *path) {
    return iron__path_ends(path, ".bin") && iron__path_has_beside(path, 4, ".idx");
}

/* The kind of sidecar that a path names, or KIND_COUNT, and its main file, which may be missing.
 * The caller frees *main_path. */
static size_t kind_of(const char *path, char **main_path, bool *has_main) {
    size_t k = 0;

    *main_path = NULL;
    *has_main = false;
    while (k < KIND_COUNT && !iron__path_ends(path, kinds[k].suffix))
        k++;
    if (k < KIND_COUNT)
        *main_path = iron__path_beside(path, strlen(kinds[k].suffix), kinds[k].main_suffix);
    *has_main = *main_path && iron__path_is_there(*main_path);
    return k;
}

bool iron__path_is_sidecar(const char *path) {
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
        status = iron__fail(
            err, IRON_E_ARG, 0, "%.90s is %s of %.90s, %s", path, kinds[k].what, main_path,
            has_main ? "which holds the tokens: name that file" : "which is missing");
    free(main_path);
    return status;
}

/* Sidecars from a server without ranges are read at once. */
static iron_status read_whole(iron__sidecar *s, iron_error *err) {
    size_t room = (size_t)64 << 10, got = 0;

    for (;; room *= 2) {
        unsigned char *grown = realloc(s->memory, room);
        size_t some;

        if (!grown)
            return iron__no_memory(err, s->path);
        s->memory = grown;
        IRON_TRY(iron__input_read(&s->file, grown + got, room - got, &some, err));
        got += some;
        s->bytes = got;
        if (got < room)
            return IRON_OK;
        IRON_FAIL_IF(room >= SIDECAR_BYTES_MAX, err, IRON_E_UNSUPPORTED,
                     "%.100s has more than %zu MiB, and the server does not serve ranges: download "
                     "it first",
                     s->path, SIDECAR_BYTES_MAX >> 20);
    }
}

iron_status iron__sidecar_open(char *path, iron__sidecar *out, bool *is_there, iron_error *err) {
    iron__input_identity identity = {.kind = IRON_INPUT_REGULAR};
    bool is_remote, is_missing;
    iron_error why = {0};
    iron_status status;

    *is_there = false;
    *out = (iron__sidecar){.path = path, .file = {.fd = -1}};
    if (!path)
        return iron__no_memory(err, "a file name");
    is_remote = iron__path_is_remote(path);
    is_missing = is_remote && strchr(path, '?'); /* what is signed is one object alone */
    status = is_missing ? IRON_E_IO : iron__input_identify(path, &identity, &why);
    if (status == IRON_OK && identity.kind != IRON_INPUT_REGULAR &&
        !(is_remote && identity.kind == IRON_INPUT_PIPE))
        status = iron__fail(&why, IRON_E_IO, 0, "%.120s is not a regular file", path);
    if (status == IRON_OK) {
        bool is_pipe = identity.kind == IRON_INPUT_PIPE;

        out->bytes = identity.bytes;
        out->file.path = path;
        out->file.bytes = is_pipe ? IRON_COUNT_UNKNOWN : identity.bytes;
        status = iron__input_open(&out->file, &why);
        if (status == IRON_OK && is_pipe)
            status = read_whole(out, &why);
    }
    *is_there = status == IRON_OK;
    if (*is_there)
        return IRON_OK;
    iron__sidecar_close(out);
    /* is there no such file, or object? without the permission to list a bucket, S3 answers 403 */
    if (is_missing ||
        (is_remote ? why.native == 404 || why.native == 410 || why.native == 403
                   : why.native == ENOENT || why.native == ENOTDIR || why.native == ENAMETOOLONG))
        return IRON_OK;
    return iron__fail_again(err, &why);
}

void iron__sidecar_close(iron__sidecar *sidecar) {
    if (sidecar->file.path)
        iron__input_close(&sidecar->file);
    free(sidecar->memory);
    free(sidecar->path);
    *sidecar = (iron__sidecar){.file = {.fd = -1}};
}

iron_status iron__sidecar_read(const iron__sidecar *sidecar, uint64_t at, void *to, size_t want,
                               iron_error *err) {
    uint64_t end;

    IRON_FAIL_IF(__builtin_add_overflow(at, want, &end) || end > sidecar->bytes, err, IRON_E_FORMAT,
                 "%.120s ended at byte %" PRIu64 ", expected at least %" PRIu64 " bytes",
                 sidecar->path, sidecar->bytes, at + want);
    if (!sidecar->memory)
        return iron__input_read_at(&sidecar->file, at, to, want, err);
    if (want > 0)
        memcpy(to, sidecar->memory + at, want);
    return IRON_OK;
}

iron_status iron__numbers_get(iron__numbers *n, uint64_t index, uint64_t *value, iron_error *err) {
    const unsigned char *at;

    if (index < n->first || index - n->first >= n->held) {
        uint64_t some = n->is_sought ? 1 : sizeof n->data / n->width;

        some = some < n->count - index ? some : n->count - index;
        n->held = 0;
        IRON_TRY(iron__sidecar_read(n->file, n->at + index * n->width, n->data,
                                    (size_t)some * n->width, err));
        n->first = index;
        n->held = (size_t)some;
    }
    at = n->data + (index - n->first) * n->width;
    *value = n->width == 4 ? iron__load_u32(at) : iron__load_u64(at);
    return IRON_OK;
}

iron_status iron__sidecar_text(const iron__sidecar *sidecar, size_t bytes_max, char **text,
                               iron_error *err) {
    iron_status status;

    *text = NULL;
    IRON_FAIL_IF(sidecar->bytes > bytes_max, err, IRON_E_UNSUPPORTED,
                 "%.120s has %" PRIu64 " bytes, more than %zu", sidecar->path, sidecar->bytes,
                 bytes_max);
    IRON_TRY(IRON_NEW(text, (size_t)sidecar->bytes + 1, sidecar->path, err));
    status = iron__sidecar_read(sidecar, 0, *text, (size_t)sidecar->bytes, err);
    if (status != IRON_OK) {
        free(*text);
        *text = NULL;
    }
    return status;
}
