/* SPDX-License-Identifier: MIT */
/*
 * cache_dir.h: the user's folder for what can be made again: built kernels, measurements. It is
 * $IRON_CACHE_DIR, else $XDG_CACHE_HOME/iron, else $HOME/.cache/iron. Having none is no error.
 */
#ifndef IRON_CORE_CACHE_DIR_H
#define IRON_CORE_CACHE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The folder; NULL: no place for a cache. free() it. */
char *iron__cache_folder(void);

/* PREFIX-<16 hex digits of key's hash>SUFFIX in the folder; NULL where there is no folder. free()
 * it. */
char *iron__cache_path(const char *prefix, uint64_t hash, const char *suffix);

/* Makes the folder and those above it, for this user alone. What goes wrong shows when a file is
 * written there. */
void iron__cache_make(void);

#endif
