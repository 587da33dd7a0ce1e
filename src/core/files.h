/* SPDX-License-Identifier: MIT */
/*
 * files.h: small files that are read whole, the user's cache folder, and signals while a file is
 * being written.
 */
#ifndef IRON_CORE_FILES_H
#define IRON_CORE_FILES_H

#include <iron/iron.h>

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Reads a whole file: a key, a certificate, a page. Returns malloc'ed memory with a terminating
 * zero that is not counted. `what` names the file's role in errors: "token file". A secret must
 * belong to this user or to root and be inaccessible to everyone else. */
iron_status iron__small_file_read(const char *path, const char *what, size_t bytes_max,
                                  bool is_secret, char **out, size_t *bytes, iron_error *err);

/* Reads up to `bytes` bytes, fewer only at the end of the file. Returns how many, or -1. */
ssize_t iron__read_all(int fd, void *to, size_t bytes);
/* Writes all of them, however long it takes; false, with errno. */
bool iron__write_all(int fd, const void *data, size_t bytes);

/* The authentication token that a server requires and a client sends. */
#define IRON_AUTH_TOKEN_MAX  4096u
#define IRON_AUTH_TOKEN_SIZE (IRON_AUTH_TOKEN_MAX + 1)

/* Reads the token from a secret file: 1 to IRON_AUTH_TOKEN_MAX visible ASCII characters, then
 * optionally a line end. The rest of `text` is filled with zeros. The caller wipes it after use. */
iron_status iron__auth_token_read(const char *path, char text[IRON_AUTH_TOKEN_SIZE],
                                  iron_error *err);

/* The user's folder for data that can be made again (built kernels, measurements):
 * $IRON_CACHE_DIR, else $XDG_CACHE_HOME/iron, else $HOME/.cache/iron. Returns NULL if none of them
 * is set, which is not an error. The caller frees it. */
char *iron__cache_folder(void);

/* The path of PREFIX-<hash as 16 hex digits>SUFFIX in the cache folder, or NULL. The caller frees
 * it. */
char *iron__cache_path(const char *prefix, uint64_t hash, const char *suffix);

/* Creates the cache folder and its parents, accessible to this user only. Errors are not reported:
 * they show when a file is written there. */
void iron__cache_folder_create(void);

/* Delays SIGINT, SIGTERM and SIGHUP until restore, so that a signal cannot leave a temporary file
 * behind. */
void iron__signals_block(sigset_t *before);
void iron__signals_restore(const sigset_t *before);

#endif
