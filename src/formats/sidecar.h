/* SPDX-License-Identifier: MIT */
/*
 * sidecar.h: the files that lie beside token files and tell about them: P.idx beside P.bin,
 * X.ds.index and its like beside X.ds. They are no tokens.
 */
#ifndef IRON_FORMATS_SIDECAR_H
#define IRON_FORMATS_SIDECAR_H

#include <iron/iron.h>

#include <stdbool.h>

bool iron__path_ends(const char *path, const char *suffix);

/* The path without its last `cut` characters, with `suffix` behind it; the caller frees it. NULL:
 * no memory. */
char *iron__path_beside(const char *path, size_t cut, const char *suffix);

/* Is the path that of a sidecar whose main file is there? Looks at nothing else. */
bool iron__sidecar_is(const char *path);

/* Refuses a sidecar that was named as if it held tokens, and names its main file. */
iron_status iron__sidecar_refuse(const char *path, iron_error *err);

/* A sidecar to read from, in any place. */
typedef struct iron__sidecar {
    char *path;
    uint64_t bytes;
    int fd;
} iron__sidecar;

/* Takes `path`, also when it fails. A sidecar that is not there is no failure: *is_there tells. */
iron_status iron__sidecar_open(char *path, iron__sidecar *out, bool *is_there, iron_error *err);
void iron__sidecar_close(iron__sidecar *sidecar);

/* Bytes at ... at+want-1, all of them. */
iron_status iron__sidecar_read(const iron__sidecar *sidecar, uint64_t at, void *to, size_t want,
                               iron_error *err);

#endif
