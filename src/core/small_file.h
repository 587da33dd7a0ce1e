/* SPDX-License-Identifier: MIT */
/*
 * small_file.h: files that are read whole: tokens, keys, certificates, pages. A secret must be
 * nobody else's to read.
 */
#ifndef IRON_CORE_SMALL_FILE_H
#define IRON_CORE_SMALL_FILE_H

#include <iron/iron.h>

#include <stdbool.h>

/* malloc'ed, with a zero after it that is not counted. `what` names it in errors: "token file". */
iron_status iron__small_file_read(const char *path, const char *what, size_t bytes_max,
                                  bool is_secret, char **out, size_t *bytes, iron_error *err);

#endif
