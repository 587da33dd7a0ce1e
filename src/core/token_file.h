/* SPDX-License-Identifier: MIT */
/*
 * token_file.h: the secret that a server asks for and a client gives, alone on the line of a file
 * that nobody else may read. One reader for both, so that what one takes the other has.
 */
#ifndef IRON_CORE_TOKEN_FILE_H
#define IRON_CORE_TOKEN_FILE_H

#include <iron/iron.h>

#define IRON_TOKEN_BYTES_MAX 4096u
#define IRON_TOKEN_ROOM      (IRON_TOKEN_BYTES_MAX + 1)

/* 1 to IRON_TOKEN_BYTES_MAX visible ASCII characters; a line's end may follow. The rest of `text`
 * is zeros. Whoever has it wipes it after use. */
iron_status iron__token_file_read(const char *path, char text[IRON_TOKEN_ROOM], iron_error *err);

#endif
