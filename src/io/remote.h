/* SPDX-License-Identifier: MIT */
/*
 * remote.h: objects at http://, https:// and s3:// addresses, read with libcurl, which is loaded
 * when the first address is used.
 *
 * Credentials never leave remote.c: an address that contains some (a user, a signed query) is
 * replaced by a name without them as soon as it is given, and that name is what all other code,
 * all messages and all files have.
 */
#ifndef IRON_IO_REMOTE_H
#define IRON_IO_REMOTE_H

#include <iron/iron.h>

#include <stdatomic.h>
#include <stdbool.h>

/* Whether a path is an address. */
bool iron__path_is_remote(const char *path);

/* The name for an address, without its credentials, which are remembered for this process. The
 * caller frees it; NULL: out of memory. */
char *iron__remote_name(const char *address);

/* An object. It is kept, with its connections, until the process ends: opening it again is
 * cheap, and gives the same version or an error. */
typedef struct iron__remote iron__remote;

/* Asks for size, version (ETag, or else the date of the last change) and whether ranges are
 * served. Errors name the address, the HTTP status and what to do. */
iron_status iron__remote_open(const char *address, iron__remote **out, iron_error *err);

/* Reads bytes at ... at+want-1, or up to the end of the object. Reads in order, of one thread or of
 * several that share the object, are answered from ranges that are fetched ahead, several at a
 * time, in bounded memory. Retries what can be retried. An error if the object changed. May be
 * called from several threads at once. */
iron_status iron__remote_read(iron__remote *remote, uint64_t at, void *to, size_t want, size_t *got,
                              const atomic_bool *stop, iron_error *err);

/* Asks the server again: an error if the object is no longer the version that was opened. */
iron_status iron__remote_check_unchanged(iron__remote *remote, iron_error *err);

/* The whole object in one transfer, for servers without ranges: a thread writes it to a pipe, whose
 * other end is *fd. */
typedef struct iron__remote_stream iron__remote_stream;

iron_status iron__remote_stream_open(iron__remote *remote, iron__remote_stream **out, int *fd,
                                     iron_error *err);
/* After the end of the pipe was read: an error if the transfer failed or was cut. */
iron_status iron__remote_stream_check(iron__remote_stream *stream, iron_error *err);
/* Ends the transfer, closes the pipe and waits for the thread. */
void iron__remote_stream_close(iron__remote_stream *stream);

/* The objects below an s3:// prefix that ends in a slash, in the order of their bytes: names for
 * iron__remote_open, from malloc. */
iron_status iron__remote_list(const char *prefix, char ***names, size_t *count, iron_error *err);

#endif
